grep -nv '[;{}]$' main.c | sed 's/^\([0-9]*\):.*/main.c:\1: missing semicolon/' >&2
! grep -qv '[;{}]$' main.c
