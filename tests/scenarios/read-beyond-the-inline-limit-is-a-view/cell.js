const view = await z.read('long');
const whole = await z.read('long', { full: true });
return { kind: view.kind, lines: view.lines, omitted: view.omitted > 0, whole: whole.length };
