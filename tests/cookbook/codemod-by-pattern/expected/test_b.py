assert x == y
