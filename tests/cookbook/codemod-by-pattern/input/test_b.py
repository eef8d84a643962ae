assertEqual(x, y)
