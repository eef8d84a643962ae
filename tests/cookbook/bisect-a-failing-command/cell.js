const { content } = await z.read('rules.txt', { snapshot: true });
const rules = content.trimEnd().split('\n');
const fails = async (count) => {
  await z.edit('rules.txt', { content: `${rules.slice(0, count).join('\n')}\n` });
  return (await z.run('sh check.sh')).exitCode !== 0;
};

let [good, bad, trials] = [0, rules.length, 0];
while (bad - good > 1) {
  const middle = (good + bad) >> 1;
  trials += 1;
  if (await fails(middle)) bad = middle;
  else good = middle;
}
await z.edit('rules.txt', { content });
return { culprit: rules[bad - 1], line: bad, trials };
