const { handles, bytes } = await z.run('seq 1 20000');
const { content } = await z.read(handles.stdout, { lines: [19999, 20000] });
return [bytes.stdout, content];
