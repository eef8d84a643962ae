const first = await z.run('sh test.sh');
if (first.exitCode === 0) return 'nothing to fix';

const [, path, line] = first.stderr.match(/^(\S+):(\d+): missing semicolon/m);
const { content } = await z.read(path, { lines: [Number(line), Number(line)] });
await z.edit(path, { lines: [Number(line), Number(line)], content: `${content.trimEnd()};` });

const second = await z.run('sh test.sh');
if (second.exitCode !== 0) throw new Error(`still failing: ${second.stderr}`);
return { fixed: `${path}:${line}` };
