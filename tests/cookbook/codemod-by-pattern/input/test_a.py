"""Café: 1 € each."""


def test():
    assertEqual(one(), 1)
    assertEqual(two(1, 2), [3])
    # assertEqual(not, this)
    print("assertEqual(nor, this)")
