const git = async (...args) => {
  const { exitCode, stdout, stderr } = await z.run(['git', '-c', 'user.name=cell', '-c', 'user.email=cell@localhost', ...args]);
  if (exitCode !== 0) throw new Error(`git ${args[0]}: ${stderr || stdout}`);
  return stdout.trim();
};
await git('init', '--quiet');
await z.edit('note.txt', { find: 'draft', replacement: 'final' });
await git('add', 'note.txt');
await git('commit', '--quiet', '--message', 'The final note');
const subject = await git('log', '--format=%s');
if (input.keep) return subject;
throw new Error(`not kept: ${subject}`);
