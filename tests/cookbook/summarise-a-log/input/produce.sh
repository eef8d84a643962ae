i=1
while [ $i -le 20000 ]; do
  if [ $((i % 1000)) -eq 0 ]; then echo "$i ERROR net down"
  elif [ $((i % 500)) -eq 0 ]; then echo "$i ERROR disk full"; echo "$i ERROR disk full"
  else echo "$i fine"; fi
  i=$((i + 1))
done
