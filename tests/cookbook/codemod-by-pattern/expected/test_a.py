"""Café: 1 € each."""


def test():
    assert one() == 1
    assert two(1, 2) == [3]
    # assertEqual(not, this)
    print("assertEqual(nor, this)")
