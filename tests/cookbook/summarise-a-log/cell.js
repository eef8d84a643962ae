const { handles, bytes } = await z.run('sh produce.sh');
const log = await z.read(handles.stdout, { full: true });
const counts = {};
for (const [line, what] of log.matchAll(/^.*ERROR (\w+).*$/gm)) {
  counts[what] ??= { times: 0, first: line };
  counts[what].times += 1;
}
return { bytes: bytes.stdout, counts };
