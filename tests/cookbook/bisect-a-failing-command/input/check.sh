! grep -q '^deny' rules.txt
