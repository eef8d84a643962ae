. ./limit.conf
test $limit -ge 50
