'use strict';

// Every call of the host: sessions, forks, undo, events, output, policy, interrupts, shutdown.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { test } = require('node:test');
const { setTimeout: sleep } = require('node:timers/promises');

const { Interrupt, ZeroKernel, ZeroKernelError } = require('@zerostack/zero-kernel');
const { directory, workspace, value } = require('./support');

test('initialize and status say where the kernel works and what runs', async (t) => {
  const { root, kernel } = workspace(t);
  const status = await kernel.initialize();
  assert.deepEqual([status.root, status.session, status.running, status.tainted, status.closed], [root, 'default', [], false, false]);
  const contract = JSON.parse(fs.readFileSync(path.join(__dirname, '../../../contracts/forms/contract.json'), 'utf8'));
  assert.deepEqual(status.contract, { version: contract.version, digest: contract.digest });
  const cell = kernel.executeCell('await new Promise((done) => setTimeout(done, 500))', { id: 'cell-one' });
  await sleep(150);
  assert.deepEqual((await kernel.status()).running, ['cell-one']);
  await cell;
  assert.deepEqual((await kernel.status()).running, []);
});

test('a named session keeps its state in its store', async (t) => {
  const store = directory(t);
  const root = directory(t);
  const open = (session) => new ZeroKernel({ root, store, session });
  await value(open('one'), "await z.state.set('n', 1)");
  assert.equal(await open('one').session().get('n'), 1);
  assert.equal(await open('two').session().get('n'), undefined);
});

test('the host reads and writes facts of the session', async (t) => {
  const { kernel } = workspace(t);
  const session = kernel.session();
  assert.equal(await session.lastResponse(), undefined);
  await session.set('a.x', { deep: [1] });
  await session.set('b', null);
  assert.deepEqual(await session.list('a.'), [{ key: 'a.x', value: { deep: [1] } }]);
  assert.deepEqual(await value(kernel, "return z.state.get('a.x')"), { deep: [1] });
  await assert.rejects(session.set('a.x', 2, { expect: 1 }), { kind: 'conflict' });
  await assert.rejects(session.set('a.x', 2, { expct: 1 }), { kind: 'invalid_input' });
  await session.set('new', 1, { expect: null });
  await session.delete('new');
  assert.equal(await session.get('new'), undefined);
  const last = await session.lastResponse();
  assert.deepEqual([last.outcome, last.value], ['Completed', { deep: [1] }]);
  await session.reset();
  assert.deepEqual(await session.list(), []);
});

test('a fork goes its own way, and an attached one ends with its parent', async (t) => {
  const { kernel } = workspace(t, { a: '1' });
  await value(kernel, "await z.state.set('n', 1)");
  const [attached, detached] = await Promise.all([kernel.forkSession('attached', { attached: true }), kernel.forkSession('detached')]);
  await value(attached, "await z.state.set('n', 2)");
  assert.deepEqual([await kernel.session().get('n'), await attached.session().get('n'), await detached.session().get('n')], [1, 2, 1]);
  assert.equal((await attached.status()).session, 'attached');
  await assert.rejects(kernel.forkSession('detached'), { kind: 'conflict' });
  await assert.rejects(kernel.forkSession('other', { detached: true }), { kind: 'invalid_input' });

  const running = attached.executeCell('await new Promise(() => setTimeout(() => {}, 60_000))');
  await sleep(200);
  const left = await kernel.shutdown();
  assert.deepEqual(left.cells, []);
  assert.equal((await running).outcome, 'Cancelled');
  assert.equal(await value(detached, "return z.read('a')"), '1');
});

test('a plan names the calls of a cell without running it', async (t) => {
  const { kernel } = workspace(t, { a: '1' });
  const plan = await kernel.planCell("const text = await z.read('a'); await z.edit('a', { content: text })");
  assert.deepEqual(plan.operations.map((planned) => planned.operation), ['read', 'edit']);
  assert.deepEqual(plan.operations[0].arguments, { listed: [{ literal: 'a' }] });
  assert.equal(plan.operations[1].location.line, 1);
  await assert.rejects(kernel.planCell('return ('), { kind: 'syntax' });
  await assert.rejects(kernel.planCell(7), { kind: 'invalid_input' });
});

test('undo takes back what a cell committed, whole or by path, and can be undone', async (t) => {
  const { kernel, content } = workspace(t, { a: '1\n', b: '1\n' });
  const { event } = await kernel.executeCell(`
    for (const path of ['a', 'b']) await z.edit(path, { find: '1', replacement: '2' });`);
  const dry = await kernel.undo(event, { dryRun: true });
  assert.deepEqual([dry.disposition, dry.receipts.length, content('a')], ['none', 2, '2\n']);
  const part = await kernel.undo(event, { paths: ['a'] });
  assert.deepEqual([part.disposition, content('a'), content('b')], ['committed', '1\n', '2\n']);
  await kernel.undo(part.event);
  assert.equal(content('a'), '2\n');
  await assert.rejects(kernel.undo('z://event/x'), { kind: 'invalid_input' });
  await assert.rejects(kernel.undo(event, { dry: true }), (why) => {
    assert.ok(why instanceof ZeroKernelError && why.accepted.includes('dryRun'), String(why));
    assert.match(why.stack, /host\.test\.js/);
    return true;
  });
});

test('events are heard as they are recorded, and the log has them afterwards', async (t) => {
  const { kernel } = workspace(t);
  const events = kernel.events();
  await events.ready;
  const first = await kernel.executeCell('return 1');
  const second = await kernel.executeCell("throw new Error('no')");
  const heard = [await events.next(), await events.next()].map((next) => next.value);
  assert.deepEqual(heard.map((recorded) => recorded.handle), [first.event, second.event]);
  assert.deepEqual(heard.map((recorded) => recorded.event.outcome), ['Completed', 'Failed']);
  const pending = events.next();
  await events.return();
  assert.deepEqual(await pending, { done: true, value: undefined });

  const log = await kernel.log({ limit: 1 });
  assert.deepEqual(log.map((entry) => entry.handle), [second.event]);
  assert.equal((await kernel.log()).length, 2);

  const later = kernel.events();
  await assert.rejects(kernel.events({ persistant: true }).next(), { kind: 'invalid_input' });
  const until = (async () => {
    const outcomes = [];
    for await (const { event } of later) outcomes.push(event.outcome);
    return outcomes;
  })();
  await sleep(100);
  await kernel.executeCell('return 1');
  await kernel.shutdown();
  assert.deepEqual(await until, ['Completed']);
});

test('output of commands comes while they run, as bytes and as whole characters', async (t) => {
  const { kernel } = workspace(t);
  const heard = [];
  const response = await kernel.executeCell("return (await z.run(`printf '\\\\303'; sleep 0.3; printf '\\\\251'; echo no >&2`)).stdout", {
    onOutput: ({ run, stream, text, bytes }) => heard.push({ run, stream, text, bytes: bytes.length }),
  });
  assert.equal(response.value, 'é', JSON.stringify(response));
  const stdout = heard.filter((piece) => piece.stream === 'stdout');
  assert.equal(stdout.map((piece) => piece.text).join(''), 'é');
  assert.equal(stdout.reduce((sum, piece) => sum + piece.bytes, 0), 2);
  assert.equal(heard.filter((piece) => piece.stream === 'stderr').map((piece) => piece.text).join(''), 'no\n');
  assert.ok(heard.every((piece) => piece.run === 0));
});

test('what a command reads is what the host gives it', async (t) => {
  const { kernel } = workspace(t);
  const cell = "return (await z.run('cat')).stdout";
  assert.equal(await value(kernel, cell, { stdin: 'text' }), 'text');
  assert.equal(await value(kernel, cell, { stdin: new Uint8Array([98, 121]) }), 'by');
});

test('an interrupt ends the command, and the cell goes on', async (t) => {
  const { kernel } = workspace(t);
  const interrupt = new Interrupt();
  const ended = [];
  const onOutput = () => ended.push(interrupt.fire());
  const reason = await value(kernel, "return (await z.run('echo up; sleep 60')).reason", { interrupt, onOutput });
  assert.deepEqual([ended, reason, interrupt.fire()], [[1], 'cancelled', 0]);
});

test('a policy may take its time, and what it refuses does not happen', async (t) => {
  const asked = [];
  const policy = async ({ operation, arguments: args }) => {
    asked.push([operation, args[0]]);
    await sleep(20);
    if (args[0] === 'false') return false;
    if (args[0] === 'throws') throw new Error('no rule for this');
    if (args[0] === 'odd') return { verdict: 'maybe' };
    return operation === 'edit' ? 'this workspace is for reading' : undefined;
  };
  const { kernel, content } = workspace(t, { a: '1' }, { policy });
  assert.equal(await value(kernel, "return z.read('a')"), '1');
  const denial = async (source) => (await kernel.executeCell(source)).error;
  const edit = await denial("await z.edit('a', { content: '2' }, { expect: 'any' })");
  assert.equal(edit.kind, 'denied');
  assert.match(edit.detail, /this workspace is for reading/);
  assert.match((await denial("await z.read('false')")).detail, /not allowed/);
  assert.match((await denial("await z.read('throws')")).detail, /no rule for this/);
  assert.match((await denial("await z.read('odd')")).detail, /no verdict/);
  assert.equal(content('a'), '1');
  assert.deepEqual(asked.slice(0, 2), [['read', 'a'], ['edit', 'a']]);
});

test('a policy that never answers is over with its cell', async (t) => {
  const { kernel } = workspace(t, { a: '1' }, { policy: () => new Promise(() => {}) });
  const late = await kernel.executeCell("return z.read('a')", { timeoutMs: 300 });
  assert.equal(late.error.kind, 'deadline');
  const controller = new AbortController();
  const answer = kernel.executeCell("return z.read('a')", { signal: controller.signal });
  await sleep(100);
  controller.abort();
  assert.equal((await answer).outcome, 'Cancelled');
});

test('shutdown ends everything, and a kernel that is shut down says so', async (t) => {
  const { kernel } = workspace(t);
  const cells = [kernel.executeCell('for (;;) {}'), kernel.executeCell("await z.run('sleep 60')")];
  await sleep(300);
  const left = await kernel.shutdown({ deadlineMs: 8000 });
  assert.deepEqual([left.cells, left.framesGivenUp], [[], 0]);
  assert.deepEqual((await Promise.all(cells)).map((response) => response.outcome), ['Cancelled', 'Cancelled']);
  const after = await kernel.executeCell('return 1');
  assert.deepEqual([after.outcome, after.error.phase], ['Failed', 'rejected']);
  await assert.rejects(kernel.status(), { kind: 'invalid_input' });
  assert.deepEqual((await kernel.shutdown()).cells, []);
});

test('instructions are those of the kernel', (t) => {
  const { kernel } = workspace(t);
  assert.match(kernel.instructions(), /z\.read/);
  assert.equal(ZeroKernel.instructions(), kernel.instructions());
});
