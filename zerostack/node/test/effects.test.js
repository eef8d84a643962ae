'use strict';

// Effects on the outside world, through channels that are functions of the host.

const assert = require('node:assert/strict');
const { execFile } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const { test } = require('node:test');
const { setTimeout: sleep } = require('node:timers/promises');
const { promisify } = require('node:util');

const { NotSent, ZeroKernel, ZeroKernelError } = require('@zerostack/zero-kernel');
const { directory, workspace, value } = require('./support');

const ASK = "return (await z.apply({ effect: 'mail', key: input.key, payload: { to: 'a' } })).status";

test('a channel is called once the cell is committed, and its evidence is kept', async (t) => {
  const calls = [];
  const dispatch = async (effect) => {
    await sleep(30);
    calls.push(effect);
    return { id: 7 };
  };
  const { kernel } = workspace(t, {}, { effects: { channels: { mail: { dispatch } } } });
  assert.equal(await value(kernel, ASK, { input: { key: 'one' } }), 'staged');
  const { key, payload, attempt, effect, session } = calls[0];
  assert.deepEqual({ key, payload, attempt, effect, session }, { key: 'one', payload: { to: 'a' }, attempt: 1, effect: 'mail', session: 'default' });
  assert.equal(await value(kernel, ASK, { input: { key: 'one' } }), 'duplicate');
  const failed = await kernel.executeCell(`${ASK.replace('return', '')}; throw new Error('no')`, { input: { key: 'two' } });
  assert.equal(failed.outcome, 'Failed');
  assert.equal(calls.length, 1);
  const [record] = await kernel.effects();
  assert.deepEqual([record.state, record.evidence, record.key], ['committed', { id: 7 }, 'one']);
  assert.equal(calls[0].handle, record.handle);
  assert.deepEqual(await kernel.effects({ states: ['quarantined'] }), []);
});

test('what a channel throws decides whether it is tried again', async (t) => {
  const answers = [new NotSent('not now'), 'sent', new Error('the line broke'), { status: 'sent', evidence: 'found' }];
  const calls = [];
  const next = (kind) => async ({ key }) => {
    calls.push([kind, key]);
    const answer = answers.shift();
    if (answer instanceof Error) throw answer;
    return answer;
  };
  const channels = { mail: { dispatch: next('dispatch'), probe: next('probe') } };
  const { kernel } = workspace(t, {}, { effects: { channels, ceiling: 3 } });
  await value(kernel, ASK, { input: { key: 'one' } });
  assert.equal((await kernel.effects())[0].state, 'prepared');
  assert.equal((await kernel.reconcile()).committed.length, 1);
  await value(kernel, ASK, { input: { key: 'two' } });
  // The channel is asked at once what became of an effect whose fate is unknown.
  const [, two] = await kernel.effects();
  assert.deepEqual([two.state, two.evidence], ['committed', 'found'], JSON.stringify(two));
  assert.deepEqual(calls, [['dispatch', 'one'], ['dispatch', 'one'], ['dispatch', 'two'], ['probe', 'two']]);
});

test('an effect is given up at the ceiling, by hand, and tried again by hand', async (t) => {
  let works = false;
  const dispatch = () => {
    if (!works) throw new NotSent('closed');
  };
  const { kernel } = workspace(t, {}, { effects: { channels: { mail: { dispatch } }, ceiling: 1 } });
  await value(kernel, ASK, { input: { key: 'one' } });
  const [one] = await kernel.effects();
  assert.equal(one.state, 'quarantined', JSON.stringify(one));
  works = true;
  await kernel.retryEffect(one.handle);
  await kernel.reconcile();
  assert.equal((await kernel.effects())[0].state, 'committed');
  await assert.rejects(kernel.abandonEffect(one.handle, 'late'), { kind: 'conflict' });
  await assert.rejects(kernel.retryEffect('z://effect/x'), { kind: 'invalid_input' });
});

test('a built-in channel needs no function', async (t) => {
  const file = path.join(directory(t), 'sent.jsonl');
  const { kernel } = workspace(t, {}, { effects: { channels: { mail: { appendFile: { path: file } } } } });
  await value(kernel, ASK, { input: { key: 'one' } });
  assert.equal(fs.readFileSync(file, 'utf8').trim().split('\n').length, 1);
});

test('a process that ends while its channel is called leaves it to the probe of the next', async (t) => {
  const [root, store] = [directory(t), directory(t)];
  const program = `
    const { ZeroKernel } = require('@zerostack/zero-kernel');
    const dispatch = () => { process.exit(0); };
    const kernel = new ZeroKernel({ root: process.argv[1], store: process.argv[2], effects: { channels: { mail: { dispatch } } } });
    kernel.executeCell(${JSON.stringify(ASK)}, { input: { key: 'one' } });`;
  await promisify(execFile)(process.execPath, ['-e', program, root, store], { cwd: path.join(__dirname, '..') });
  const calls = [];
  const channel = {
    dispatch: () => calls.push('dispatch'),
    probe: () => {
      calls.push('probe');
      return { status: 'sent', evidence: 1 };
    },
  };
  const kernel = new ZeroKernel({ root, store, effects: { channels: { mail: channel } } });
  await kernel.initialize();
  await kernel.reconcile();
  assert.deepEqual(calls, ['probe']);
  assert.equal((await kernel.effects())[0].state, 'committed');
  await kernel.shutdown();
});

test('channels that are none are refused by name', (t) => {
  const root = directory(t);
  for (const [channels, at] of [
    [{ mail: {} }, 'effects.channels.mail'],
    [{ mail: { dispatch: 'x' } }, 'effects.channels.mail.dispatch'],
    [{ mail: { dispatch() {}, prob() {} } }, 'effects.channels.mail'],
    [{ mail: 7 }, 'effects.channels.mail'],
  ]) {
    assert.throws(() => new ZeroKernel({ root, effects: { channels } }), (why) => {
      assert.ok(why instanceof ZeroKernelError);
      assert.equal(why.path, at);
      return true;
    });
  }
});
