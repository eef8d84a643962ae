def used_one():
    return 1

def never_called():
    return used_one()
