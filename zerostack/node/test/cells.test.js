'use strict';

// Every operation of a cell, through the addon; and every way in which a cell can end.

const assert = require('node:assert/strict');
const { test } = require('node:test');
const { setTimeout: sleep } = require('node:timers/promises');

const { ZeroKernel, ZeroKernelError } = require('@zerostack/zero-kernel');
const { directory, workspace, value } = require('./support');

const SOURCE = 'pub fn one() -> u32 {\n    1\n}\n\npub fn two() -> u32 {\n    one() + one()\n}\n';

test('read: text, a part, a directory, bytes', async (t) => {
  const { kernel } = workspace(t, { 'src/lib.rs': SOURCE, 'data.bin': Buffer.from([0, 255, 0]) });
  assert.equal(await value(kernel, "return z.read('src/lib.rs')"), SOURCE);
  const part = await value(kernel, "return z.read('src/lib.rs', { lines: [1, 1] })");
  assert.equal(part.content, 'pub fn one() -> u32 {\n');
  const listed = await value(kernel, "return (await z.read('.', { recursive: true })).entries.map((entry) => entry.path)");
  assert.ok(listed.includes('src/lib.rs'), String(listed));
  assert.deepEqual(await value(kernel, "return [...(await z.read('data.bin', { full: true }))]"), [0, 255, 0]);
});

test('find: text and structure', async (t) => {
  const { kernel } = workspace(t, { 'src/lib.rs': SOURCE });
  const found = await value(kernel, "return z.find('one', { mode: 'definitions' })");
  assert.deepEqual(found.items.map((item) => [item.path, item.range.start.line]), [['src/lib.rs', 1]]);
  const absent = await value(kernel, "return z.find('three')");
  assert.deepEqual([absent.total, absent.absence], [0, 'certified']);
});

test('edit and apply: published together, when the cell completes', async (t) => {
  const { kernel, content } = workspace(t, { a: '1\n', b: '2\n' });
  const response = await kernel.executeCell(`
    await z.edit('a', { find: '1', replacement: '$&' });
    await z.apply([{ path: 'b', find: '2', replacement: 'two' }, { move: ['b', 'c/d'] }]);
  `);
  assert.equal(response.outcome, 'Completed', JSON.stringify(response.error));
  assert.equal(response.effects.disposition, 'committed');
  assert.deepEqual([content('a'), content('c/d')], ['$&\n', 'two\n']);
});

test('run: on the staged tree, and a non-zero exit is a result', async (t) => {
  const { kernel } = workspace(t, { a: '1\n' });
  const ran = await value(
    kernel,
    "await z.edit('a', { content: 'staged' }, { expect: 'any' }); return z.run('cat a; echo $NAME; exit 3')",
    { env: { NAME: 'from the host' } },
  );
  assert.deepEqual([ran.exitCode, ran.stdout, ran.cleanup], [3, 'stagedfrom the host\n', 'clean']);
});

test('state: kept from cell to cell', async (t) => {
  const { kernel } = workspace(t);
  await value(kernel, "await z.state.set('n', input.n)", { input: { n: [1, { deep: null }] } });
  assert.deepEqual(await value(kernel, "return z.state.get('n')"), [1, { deep: null }]);
});

test('a cell that throws leaves no trace', async (t) => {
  const { kernel, content } = workspace(t, { a: '1\n' });
  const response = await kernel.executeCell("await z.edit('a', { find: '1', replacement: '2' });\nthrow new RangeError('no')");
  assert.equal(response.protocol, 'ZeroKernel');
  assert.equal(response.outcome, 'Failed');
  const { kind, phase, retryable, location, detail } = response.error;
  assert.deepEqual({ kind, phase, retryable, line: location.line }, { kind: 'exception', phase: 'running', retryable: false, line: 2 });
  assert.match(detail, /RangeError: no/);
  assert.equal(response.effects.disposition, 'restored');
  assert.equal(content('a'), '1\n');
});

test('every failure of a cell is a response, never a rejection', async (t) => {
  const { kernel } = workspace(t);
  const cases = [
    ['return (', {}, 'syntax', 'rejected'],
    ["return z.read('absent')", {}, 'not_found', 'running'],
    ["return z.read('../x')", {}, 'outside_workspace', 'running'],
    ["return z.read('a', { lnes: [1, 2] })", {}, 'invalid_input', 'running'],
    ['for (;;) {}', { timeoutMs: 300 }, 'deadline', 'running'],
    ['return 1', { timeoutMs: 0 }, 'deadline', 'rejected'],
    ['const all = []; for (;;) all.push(new Array(1e4).fill(all.length))', { budgets: { heapBytes: 16 << 20 } }, 'budget', 'running'],
    ["x".repeat(300 * 1024), {}, 'invalid_input', 'rejected'],
    ['return { big: 1n }', {}, 'invalid_input', undefined],
  ];
  for (const [source, options, kind, phase] of cases) {
    const response = await kernel.executeCell(source, options);
    const shown = `${source.slice(0, 60)}: ${JSON.stringify(response.error)}`;
    assert.equal(response.outcome, 'Failed', shown);
    assert.equal(response.error.kind, kind, shown);
    if (phase !== undefined) assert.equal(response.error.phase, phase, shown);
  }
  const { error } = await kernel.executeCell("return z.read('a', { lnes: [1, 2] })");
  assert.ok(error.accepted.includes('lines'), JSON.stringify(error));
});

test('a workspace that cannot be opened is a rejected response, and a refused initialize', async (t) => {
  const kernel = new ZeroKernel({ root: `${directory(t)}/absent` });
  const response = await kernel.executeCell('return 1');
  assert.deepEqual([response.outcome, response.error.kind, response.error.phase], ['Failed', 'not_found', 'rejected']);
  await assert.rejects(kernel.initialize(), { name: 'ZeroKernelError', kind: 'not_found' });
});

test('misuse is refused by name, with what is accepted', async (t) => {
  const root = directory(t);
  const thrown = (work) => {
    try {
      work();
    } catch (why) {
      return why;
    }
    return undefined;
  };
  for (const [options, path] of [
    [undefined, 'root'],
    [{ root, roote: 1 }, 'roote'],
    [{ root, policy: 'no' }, 'policy'],
    [{ root, session: '../x' }, 'session'],
    [{ root, sessionId: '../x' }, 'sessionId'],
    [{ root, session: 'a', sessionId: 'a' }, 'sessionId'],
    [{ root, budgets: { wallMs: -1 } }, 'budgets.wallMs'],
    [{ root, externalReads: 7 }, 'externalReads'],
  ]) {
    const why = thrown(() => new ZeroKernel(options));
    assert.ok(why instanceof ZeroKernelError, JSON.stringify(options));
    assert.deepEqual([why.kind, why.path], ['invalid_input', path]);
  }
  assert.ok(thrown(() => new ZeroKernel({ root, roote: 1 })).accepted.includes('session'));
  for (const name of ['session', 'sessionId']) {
    const named = new ZeroKernel({ root, store: 'transient', [name]: 'mine' });
    assert.equal((await named.status()).session, 'mine');
    await named.shutdown();
  }

  const kernel = new ZeroKernel({ root, store: 'transient' });
  for (const [call, path] of [
    [() => kernel.executeCell(7), 'source'],
    [() => kernel.executeCell('', { timeout: 1 }), 'options.timeout'],
    [() => kernel.executeCell('', { signal: {} }), 'signal'],
    [() => kernel.executeCell('', { onOutput: 1 }), 'onOutput'],
    [() => kernel.executeCell('', { input: { n: 1n } }), 'n'],
    [() => kernel.executeCell('', 'fast'), 'options'],
  ]) {
    await assert.rejects(call, (why) => {
      assert.deepEqual([why.name, why.kind, why.path], ['ZeroKernelError', 'invalid_input', path], String(why));
      return true;
    });
  }
});

test('an AbortSignal cancels a cell, at once or later, and its commands', async (t) => {
  const { kernel, content } = workspace(t, { a: '1\n' });
  for (const source of [
    'for (;;) {}',
    'await new Promise((done) => setTimeout(done, 60_000))',
    "await z.edit('a', { find: '1', replacement: '2' }); await z.run('sleep 60')",
  ]) {
    const controller = new AbortController();
    const answer = kernel.executeCell(source, { signal: controller.signal });
    await sleep(150);
    controller.abort();
    const response = await answer;
    assert.deepEqual([response.outcome, response.error.kind], ['Cancelled', 'cancelled'], source);
    assert.equal(response.ledger.liveChildren, 0);
    assert.equal(content('a'), '1\n');
  }
  const before = await kernel.executeCell('return 1', { signal: AbortSignal.abort() });
  assert.equal(before.outcome, 'Cancelled');
  const after = new AbortController();
  assert.equal(await value(kernel, 'return 1', { signal: after.signal }), 1);
  after.abort();
});

test('cells of one kernel run at once', async (t) => {
  const { kernel } = workspace(t, { a: '0\n' });
  await kernel.initialize();
  const sources = Array.from({ length: 8 }, (_, n) => `
    await z.state.list();
    await new Promise((done) => setTimeout(done, 300));
    return ${n}`);
  const begun = Date.now();
  const values = await Promise.all(sources.map((source) => value(kernel, source)));
  assert.deepEqual(values, [0, 1, 2, 3, 4, 5, 6, 7]);
  // One after the other they would take 2.4 s of waiting alone.
  assert.ok(Date.now() - begun < 2400, `${Date.now() - begun} ms`);
});

test('cells that change one file wait for each other, and every change is kept', async (t) => {
  const { kernel, content } = workspace(t, { a: '' });
  const cell = `
    await z.edit('mine' + input.n, { create: '' });
    const { content } = await z.read('a', { snapshot: true });
    await z.edit('a', { content: content + input.n });
  `;
  const append = async (n) => {
    for (;;) {
      const response = await kernel.executeCell(cell, { input: { n } });
      if (response.outcome === 'Completed') return;
      assert.ok(['conflict', 'busy'].includes(response.error.kind), JSON.stringify(response.error));
    }
  };
  await Promise.all([1, 2, 3, 4].map(append));
  assert.deepEqual([...content('a')].sort(), ['1', '2', '3', '4']);
});
