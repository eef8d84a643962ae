'use strict';

// The addon inside a Node process: its event loop, its end, its workers, its own children.

const assert = require('node:assert/strict');
const { execFile, spawn } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const { test } = require('node:test');
const { setTimeout: sleep } = require('node:timers/promises');
const { promisify } = require('node:util');
const { Worker } = require('node:worker_threads');

const { directory, processes, workspace, value } = require('./support');

const here = path.join(__dirname, '..');

/** Runs a program in a Node of its own. */
function node(source, ...args) {
  return promisify(execFile)(process.execPath, ['-e', source, ...args], { cwd: here, timeout: 60_000 });
}

const OPEN = `
  const { ZeroKernel } = require('@zerostack/zero-kernel');
  const kernel = new ZeroKernel({ root: process.argv[1], store: 'transient' });
`;

test('the event loop goes on while cells compute', async (t) => {
  const { kernel } = workspace(t);
  await kernel.initialize();
  let ticks = 0;
  const timer = setInterval(() => ticks++, 5);
  const cells = Array.from({ length: 8 }, () => kernel.executeCell('for (;;) {}', { timeoutMs: 1000 }));
  const responses = await Promise.all(cells);
  clearInterval(timer);
  assert.deepEqual(new Set(responses.map((response) => response.error.kind)), new Set(['deadline']));
  // 200 would be all of them; a loop that is blocked by one cell has none.
  assert.ok(ticks > 20, `${ticks} ticks`);
});

test("cells leave libuv's pool alone", async (t) => {
  const { root, kernel } = workspace(t, { a: '1' });
  await kernel.initialize();
  const cells = Array.from({ length: 6 }, () => kernel.executeCell('await new Promise((d) => setTimeout(d, 1500))'));
  const first = await Promise.race([fs.promises.readFile(path.join(root, 'a'), 'utf8'), ...cells]);
  assert.equal(first, '1');
  await Promise.all(cells);
});

test('several kernels live side by side', async (t) => {
  const kernels = await Promise.all([1, 2, 3].map(async (n) => workspace(t, { a: `${n}` }).kernel));
  const values = await Promise.all(kernels.flatMap((kernel) => [1, 2].map(() => value(kernel, "return z.read('a')"))));
  assert.deepEqual(values, ['1', '1', '2', '2', '3', '3']);
});

test('a pending cell keeps the process alive, an idle kernel does not', async (t) => {
  const { stdout } = await node(
    `${OPEN} kernel.executeCell('await new Promise((d) => setTimeout(d, 300)); return 7').then((r) => console.log(r.value))`,
    directory(t),
  );
  assert.equal(stdout, '7\n');
});

/** Starts cells in a Node of its own, of which one runs a command; ends it by `last` when the command runs, and says how. */
async function dying(t, last) {
  const root = directory(t);
  const mark = `mark${process.pid}x${Date.now()}`;
  const source = `${OPEN}
    process.stdin.resume().once('end', () => { ${last} });
    kernel.initialize().then(({ store }) => {
      console.log(store);
      for (let n = 0; n < 4; n++) kernel.executeCell('for (;;) {}');
      kernel.executeCell("await z.edit('a', { create: '1' }); await z.run(['sh', '-c', 'sleep 1000; true', '${mark}'])");
      kernel.executeCell('await new Promise(() => setTimeout(() => {}, 60000))');
    });`;
  const child = spawn(process.execPath, ['-e', source, root], { cwd: here });
  const said = { stdout: '', stderr: '' };
  for (const stream of ['stdout', 'stderr']) child[stream].on('data', (text) => (said[stream] += text));
  const ended = new Promise((resolve) => child.once('close', (code, signal) => resolve({ code, signal })));
  // This process has the word in no argument of its own; the child has it in its program.
  for (let tries = 0; processes(`true\0${mark}`).length === 0 && tries < 200; tries++) await sleep(50);
  assert.ok(processes(`true\0${mark}`).length > 0, said.stderr);
  child.stdin.end();
  const { code, signal } = await ended;
  return { root, mark, code, signal, stderr: said.stderr, store: said.stdout.trim() };
}

test('a subscription keeps the process alive only if it is persistent', async (t) => {
  const listen = (options, then) => `${OPEN}
    const events = kernel.events(${options});
    events.next().then(({ value }) => { console.log(value.event.outcome); ${then} });
    events.ready.then(() => kernel.executeCell('return 1'));
    kernel.initialize();`;
  const open = await node(listen('{ persistent: false }', ''), directory(t));
  assert.ok(['', 'Completed\n'].includes(open.stdout));
  const closed = await node(listen('', 'events.return()'), directory(t));
  assert.equal(closed.stdout, 'Completed\n');
});

test('a process that exits with live cells ends cleanly, and takes their commands and the transient store with it', async (t) => {
  const { root, mark, code, signal, stderr, store } = await dying(t, 'process.exit(5)');
  assert.deepEqual([code, signal, stderr], [5, null, '']);
  assert.ok(!fs.existsSync(store), 'the transient store is still there');
  assert.deepEqual(fs.readdirSync(root), []);
  assert.deepEqual(processes(mark), []);
});

test('an uncaught exception ends its cells in the same way', async (t) => {
  const { root, mark, code, stderr, store } = await dying(t, "throw new Error('mine')");
  assert.equal(code, 1);
  assert.match(stderr, /Error: mine/);
  assert.deepEqual([fs.readdirSync(root), processes(mark), fs.existsSync(store)], [[], [], false]);
});

test('a killed process leaves no command behind', async (t) => {
  const { mark, signal, store } = await dying(t, "process.kill(process.pid, 'SIGKILL')");
  t.after(() => fs.rmSync(store, { recursive: true, force: true }));
  assert.equal(signal, 'SIGKILL');
  for (let tries = 0; processes(mark).length > 0 && tries < 100; tries++) await sleep(50);
  assert.deepEqual(processes(mark), []);
});

test('workers have kernels of their own, also in a process that has none, and can be terminated at any time', async (t) => {
  const root = directory(t);
  fs.writeFileSync(path.join(root, 'a'), 'from a worker');
  const inside = `
    const { parentPort, workerData } = require('node:worker_threads');
    const { ZeroKernel } = require(workerData.package);
    const kernel = new ZeroKernel({ root: workerData.root, store: 'transient' });
    kernel.executeCell("return z.read('a')").then((response) => {
      parentPort.postMessage(response.value);
      if (workerData.busy) kernel.executeCell('for (;;) {}');
    });`;
  const worker = (busy) => new Worker(inside, { eval: true, workerData: { package: here, root, busy } });
  const ended = (worker) => new Promise((resolve) => worker.once('exit', resolve));
  const said = (worker) => new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject));

  const calm = [worker(false), worker(false)];
  const ends = calm.map(ended);
  assert.deepEqual(await Promise.all(calm.map(said)), ['from a worker', 'from a worker']);
  assert.deepEqual(await Promise.all(ends), [0, 0]);

  const busy = worker(true);
  await said(busy);
  await sleep(100);
  const begun = Date.now();
  await busy.terminate();
  assert.ok(Date.now() - begun < 3000, `${Date.now() - begun} ms`);

  // The library must not be unloaded with the only environment that used it: V8 keeps a thread.
  const only = `
    const { Worker } = require('node:worker_threads');
    const data = JSON.parse(process.argv[1]);
    const once = () => new Promise((done) => new Worker(data.inside, { eval: true, workerData: data }).once('exit', done));
    once().then(once).then((code) => console.log('ended', code));`;
  const { stdout } = await node(only, JSON.stringify({ inside, package: here, root, busy: false }));
  assert.equal(stdout, 'ended 0\n');
});

test("the process's own children keep their statuses while cells run commands", async (t) => {
  const { kernel } = workspace(t);
  await kernel.initialize();
  const child = (code) =>
    new Promise((resolve) => spawn('sh', ['-c', `sleep 0.0${code % 10}; exit ${code}`]).once('exit', (status) => resolve(status)));
  const codes = Array.from({ length: 20 }, (_, n) => n + 1);
  const cell = (n) => value(kernel, `return (await z.run('exit ${n}')).exitCode`);
  const [own, theirs] = await Promise.all([Promise.all(codes.map(child)), Promise.all([41, 42, 43].map(cell))]);
  assert.deepEqual(own, codes);
  assert.deepEqual(theirs, [41, 42, 43]);
});
