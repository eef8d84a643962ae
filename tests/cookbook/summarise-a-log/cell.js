const { handles, bytes } = await z.run('sh produce.sh');
const counts = {};
let next;
do {
  const page = await z.read(handles.stdout, { match: 'ERROR', next });
  for (const line of page.content.split('\n')) {
    const [, what] = line.match(/ERROR (\w+)/) ?? [];
    if (what) {
      counts[what] ??= { times: 0, first: line };
      counts[what].times += 1;
    }
  }
  next = page.next;
} while (next);
return { bytes: bytes.stdout, counts };
