'use strict';

// What a host does with a store beside running cells.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { test } = require('node:test');
const { setTimeout: sleep } = require('node:timers/promises');

const { ZeroKernel } = require('@zerostack/zero-kernel');
const { directory, workspace, value } = require('./support');

/** A workspace whose store lasts. */
function lasting(t, files = {}, options = {}) {
  const store = directory(t);
  return { store, ...workspace(t, files, { ...options, store }) };
}

test('a cell is cancelled by its name', async (t) => {
  const { kernel } = workspace(t);
  const running = kernel.executeCell('await new Promise((done) => setTimeout(done, 60_000))', { id: 'mine' });
  await sleep(200);
  assert.equal(await kernel.cancel('other'), false);
  assert.equal(await kernel.cancel('mine'), true);
  assert.equal((await running).outcome, 'Cancelled');
  assert.equal(await kernel.cancel('mine'), false);
  await assert.rejects(kernel.cancel('no/name'), { kind: 'invalid_input', path: 'cell' });
});

test('schemas are those of the messages', (t) => {
  const { kernel } = workspace(t);
  const { $defs } = ZeroKernel.schemas();
  for (const name of ['read', 'find', 'edit', 'apply', 'run', 'state', 'response', 'event']) assert.equal(typeof $defs[name], 'object', name);
  assert.deepEqual(kernel.schemas(), ZeroKernel.schemas());
});

test('events and objects are read by their handles', async (t) => {
  const { kernel } = workspace(t, { a: '1\n' });
  const response = await kernel.executeCell("await z.edit('a', { find: '1', replacement: '2' }); return z.read('a', { snapshot: true })");
  const event = await kernel.event(response.event);
  assert.deepEqual([event.outcome, event.cell.startsWith('cell-')], ['Completed', true]);
  const [handle] = (await value(kernel, "const { handles } = await z.run(\"printf '\\\\377x'\"); return [handles.stdout]"));
  const bytes = await kernel.object(handle);
  assert.ok(bytes instanceof Uint8Array);
  assert.deepEqual([...bytes], [255, 120]);
  assert.deepEqual(await kernel.sessions(), ['default']);
  await assert.rejects(kernel.event(handle), { kind: 'invalid_input', path: 'event' });
  await assert.rejects(kernel.object(`z://blob/${'0'.repeat(64)}`), { kind: 'not_found' });
  await assert.rejects(kernel.object('nothing'), { kind: 'invalid_input' });
});

test('what is exported is checked with nothing else, and signed by the key', async (t) => {
  const signingKey = new Uint8Array(32).fill(7);
  const { kernel } = lasting(t, { a: '1\n' }, { signingKey });
  const { event } = await kernel.executeCell("await z.edit('a', { find: '1', replacement: '2' })");
  const exported = await kernel.exportEvent(event);
  const { key } = exported.event.signature;
  const found = await ZeroKernel.verifyEvidence(exported, { key });
  assert.deepEqual([found.valid, found.scope], [true, 'signed'], JSON.stringify(found));
  const chain = await kernel.exportChain();
  assert.equal((await ZeroKernel.verifyEvidence(JSON.stringify(chain), { key })).valid, true);
  assert.equal((await ZeroKernel.verifyEvidence(Buffer.from(JSON.stringify(chain)), { key: '0'.repeat(64) })).valid, false);
  exported.event.outcome = 'Failed';
  assert.equal((await ZeroKernel.verifyEvidence(exported)).valid, false);
  assert.equal((await ZeroKernel.verifyEvidence('no json')).valid, false);

  const [receipt, ...others] = await kernel.receipts(event, { issuer: 'me' });
  assert.deepEqual([others, receipt.schema, receipt.issuer], [[], 'receipt.v1', 'me']);
  assert.match(receipt.subject.subjectKey, /#a$/);
  assert.equal((await ZeroKernel.verifyEvidence(receipt)).valid, true);
  const [dreamnet] = await kernel.receipts(event, { issuer: 'me', schema: 'dreamnet.receipt.v1' });
  assert.equal((await ZeroKernel.verifyEvidence(dreamnet)).valid, true);
  await assert.rejects(kernel.receipts(event, { issuer: 'me', schema: 'receipt.v9' }), { kind: 'invalid_input' });
  await assert.rejects(kernel.receipts(event), { kind: 'invalid_input' });

  const checked = await kernel.verify({ key });
  assert.deepEqual([checked.valid, checked.damage, checked.chains.map((one) => one.session)], [true, [], ['default']]);
  assert.equal((await kernel.verify({ key: '0'.repeat(64) })).valid, false);
  await assert.rejects(kernel.verify({ kye: key }), { kind: 'invalid_input' });
  assert.throws(() => new ZeroKernel({ root: '.', signingKey: 'short' }), { kind: 'invalid_input', path: 'signingKey' });
});

test('a damaged store is told: by verify, and by a look that opens no kernel', async (t) => {
  const { root, store, kernel } = lasting(t, { a: '1\n' });
  await kernel.executeCell("await z.edit('a', { find: '1', replacement: '2' }); return 'x'.repeat(50_000)");
  await kernel.shutdown();
  const well = await ZeroKernel.examine({ root, store });
  assert.deepEqual([well.healthy, well.damage, well.readable.events], [true, [], 1]);
  const objects = fs.readdirSync(path.join(store, 'objects'), { recursive: true }).map((name) => path.join(store, 'objects', name));
  for (const file of objects.filter((name) => fs.statSync(name).isFile())) fs.writeFileSync(file, 'damaged');
  const ill = await ZeroKernel.examine({ root, store });
  assert.equal(ill.healthy, false);
  assert.ok(ill.damage.length > 0);
  const { valid, damage } = await new ZeroKernel({ root, store }).verify();
  assert.deepEqual([valid, damage.length > 0], [false, true]);
  await assert.rejects(ZeroKernel.examine({ root, store: 'transient' }), { kind: 'not_found' });
});

test('a collection keeps as many events as it is told, and waits for nobody', async (t) => {
  const { kernel } = lasting(t);
  for (let n = 0; n < 4; n++) await value(kernel, `return ${n}`);
  const report = await kernel.gc({ keepEvents: 2 });
  assert.equal(report.eventsPruned, 2);
  assert.equal((await kernel.log()).length, 2);
  assert.equal((await kernel.exportChain()).pruned, 2);
  assert.equal((await kernel.verify()).valid, true);
  await assert.rejects(kernel.gc({ keep: 1 }), { kind: 'invalid_input' });
  await assert.rejects(kernel.gc({ signal: AbortSignal.abort() }), { kind: 'cancelled' });
});

test('a store of this version needs no migration', async (t) => {
  const { root, store, kernel } = lasting(t);
  await value(kernel, 'return 1');
  await kernel.shutdown();
  const { from, to } = await ZeroKernel.migrate({ root, store });
  assert.equal(from, to);
  await assert.rejects(ZeroKernel.migrate({ root, store: path.join(store, 'none') }), { kind: 'not_found' });
});

test('commands are captured as the host wants it', async (t) => {
  const { kernel } = workspace(t, {}, { capture: 'baseline' });
  const response = await kernel.executeCell("return (await z.run('echo 1 > a')).exitCode");
  assert.deepEqual([response.value, response.effects.capture], [0, 'baseline']);
  const why = await kernel.whyNoPrivateView();
  assert.ok(why === undefined || typeof why === 'string');
  assert.throws(() => workspace(t, {}, { capture: 'always' }), (error) => {
    assert.deepEqual([error.path, error.accepted], ['capture', ['prefer_private', 'require_private', 'baseline']]);
    return true;
  });
});

test('one effect is read by its handle', async (t) => {
  const { kernel } = workspace(t, {}, { effects: { channels: { mail: { dispatch: () => 'done' } } } });
  await value(kernel, "await z.apply({ effect: 'mail', key: 'k', payload: 1 })");
  const [{ handle }] = await kernel.effects();
  const effect = await kernel.effect(handle);
  assert.deepEqual([effect.key, effect.state, effect.evidence], ['k', 'committed', 'done']);
  await assert.rejects(kernel.effect(`z://effect/${'0'.repeat(64)}`), { kind: 'not_found' });
});
