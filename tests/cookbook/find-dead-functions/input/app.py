from lib.tools import used_one

print(used_one())
