fn broken( { let missing = 1
