await z.run('echo 3 >> a && mkdir -p new/dir && mv b new/dir/');
