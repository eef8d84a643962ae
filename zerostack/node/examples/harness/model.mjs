// A model that follows a script. It sees what any model sees, the conversation, and two of its turns depend on it: the second
// takes a handle from the first answer, the fourth repairs the third, which fails.

const last = (conversation) => conversation.at(-1);

/** Returns the next cell, or says that it is done. */
export async function model(conversation) {
  const turn = conversation.filter((message) => message.role === 'model').length + 1;
  switch (turn) {
    case 1:
      return {
        why: 'What is there, and what does the last run say?',
        cell: `
const { entries } = await z.read('.', { recursive: true });
return { files: entries.filter((entry) => entry.kind === 'file').map((entry) => entry.path), log: await z.read('run.log') };`,
      };
    case 2: {
      // The log came back as a view of itself. Its whole is behind the handle that stands in the answer.
      const [handle] = last(conversation).handles;
      return {
        why: 'The log was cut. What failed in it, by its handle, and the code that it names.',
        cell: `
const log = await z.read('${handle}');
const failures = log.split('\\n').filter((line) => line.startsWith('FAIL'));
const named = failures[0].match(/in (\\w+):/)[1];
const { items } = await z.find(named, { mode: 'definitions' });
return { failures, at: items.map((item) => item.path + ':' + item.range.start.line), code: await z.read(items[0].path) };`,
      };
    }
    case 3:
      return {
        why: 'The discount is subtracted as if it were money. Correct it, and let the check decide.',
        cell: `
await z.edit('src/price.js', { find: 'price - discount', replacement: 'price * (1 - discount)' });
const check = await z.run('node check.js');
if (check.exitCode !== 0) throw new Error(check.stdout);
return check.stdout;`,
      };
    case 4: {
      const { outcome, error } = last(conversation);
      if (outcome !== 'Failed' || error.kind !== 'conflict') throw new Error('this script expects a conflict');
      return {
        why: 'It occurs twice, and nothing was changed. Both are wrong: correct all.',
        cell: `
await z.edit('src/price.js', { find: 'price - discount', replacement: 'price * (1 - discount)', count: 'all' });
const check = await z.run('node check.js');
if (check.exitCode !== 0) throw new Error(check.stdout);
return check.stdout;`,
      };
    }
    default:
      return { done: `The check says: ${last(conversation).value.trim()}` };
  }
}
