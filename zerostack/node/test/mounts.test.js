'use strict';

// Read-only mounts whose functions are the host's.

const assert = require('node:assert/strict');
const fs = require('node:fs/promises');
const path = require('node:path');
const { test } = require('node:test');
const { setTimeout: sleep } = require('node:timers/promises');

const { ZeroKernel, ZeroKernelError } = require('@zerostack/zero-kernel');
const { directory, workspace, value } = require('./support');

/** A mount over an object of paths, which counts what it is asked. */
function tree(files, more = {}) {
  const asked = [];
  const list = (at) => {
    asked.push(`list ${at}`);
    const prefix = at === '' ? '' : `${at}/`;
    const inside = Object.keys(files).filter((name) => name.startsWith(prefix));
    if (at !== '' && inside.length === 0) return undefined;
    const names = new Set(inside.map((name) => name.slice(prefix.length).split('/')[0]));
    return [...names].map((name) => {
      const content = files[prefix + name];
      if (content === undefined) return { name, kind: 'directory' };
      return { name, kind: 'file', bytes: Buffer.byteLength(content), version: String(content) };
    });
  };
  const read = (at) => {
    asked.push(`read ${at}`);
    return files[at] === undefined ? undefined : { content: files[at], version: String(files[at]) };
  };
  return { mount: { list, read, ...more }, asked };
}

test('a cell reads and searches a mount under its name', async (t) => {
  const bytes = new Uint8Array([0, 255, 10]);
  const { mount, asked } = tree({ 'README.md': 'a library\n', 'src/lib.js': 'export function answer() { return 42; }\n', 'raw/b': bytes });
  const { kernel } = workspace(t, { a: 'function answer() {}\n' }, { mounts: { lib: mount } });
  assert.equal(await value(kernel, "return z.read('mount:lib/README.md')"), 'a library\n');
  const listed = await value(kernel, "return z.read('mount:lib', { recursive: true })");
  assert.deepEqual(
    listed.entries.map((entry) => [entry.path, entry.kind, entry.bytes]),
    [
      ['mount:lib/README.md', 'file', 10],
      ['mount:lib/raw', 'directory', undefined],
      ['mount:lib/raw/b', 'file', 3],
      ['mount:lib/src', 'directory', undefined],
      ['mount:lib/src/lib.js', 'file', 40],
    ],
  );
  assert.deepEqual(await value(kernel, "return [...(await z.read('mount:lib/raw/b', { full: true }))]"), [0, 255, 10]);
  const found = await value(kernel, "return z.find('answer', { path: 'mount:lib', mode: 'definitions' })");
  assert.deepEqual(found.items.map((item) => item.path), ['mount:lib/src/lib.js']);
  const text = "return (await z.find('library', { path: 'mount:lib' })).items.map((item) => [item.path, item.range.start.line])";
  assert.deepEqual(await value(kernel, text), [['mount:lib/README.md', 1]]);
  // The workspace is searched without the mount.
  assert.equal((await value(kernel, "return z.find('library')")).items.length, 0);
  assert.ok(asked.every((question) => !question.includes('mount:')), asked.join());
});

test('what is not in a mount is not found, and nothing of it can be changed', async (t) => {
  const { mount } = tree({ 'd/f': 'x' });
  const { kernel } = workspace(t, {}, { mounts: { lib: mount } });
  const error = async (source) => (await kernel.executeCell(source)).error;
  for (const at of ['nothing', 'd/nothing', 'd/f/deeper', 'no/thing']) {
    const { kind, path: named } = await error(`return z.read('mount:lib/${at}')`);
    assert.deepEqual([kind, named], ['not_found', `mount:lib/${at}`]);
  }
  assert.equal((await error("return z.read('mount:lib/../x')")).kind, 'outside_workspace');
  const unknown = await error("return z.read('mount:other/f')");
  assert.deepEqual([unknown.kind, unknown.accepted], ['not_found', ['mount:lib/']]);
  for (const change of ["z.edit('mount:lib/d/f', { content: 'y' })", "z.apply([{ path: 'mount:lib/d/f', remove: true }])"]) {
    assert.notEqual((await kernel.executeCell(`await ${change}`)).outcome, 'Completed', change);
  }
  const caught = "try { await z.read('mount:lib/nothing') } catch (e) { return [e.kind, e.path] }";
  assert.deepEqual(await value(kernel, caught), ['not_found', 'mount:lib/nothing']);
});

test('a mount over a directory of the disk takes a few lines, and a class may be one', async (t) => {
  const base = directory(t);
  await fs.mkdir(path.join(base, 'sub'));
  await fs.writeFile(path.join(base, 'sub/a.txt'), 'on disk');
  class Disk {
    #base = base;
    async *#entries(at) {
      for (const entry of await fs.readdir(path.join(this.#base, at), { withFileTypes: true })) {
        const kind = entry.isDirectory() ? 'directory' : 'file';
        const { size, mtimeMs } = await fs.stat(path.join(this.#base, at, entry.name));
        yield { name: entry.name, kind, bytes: size, version: mtimeMs };
      }
    }
    async list(at) {
      const entries = [];
      for await (const entry of this.#entries(at)) entries.push(entry);
      return new Set(entries);
    }
    read(at) {
      return fs.readFile(path.join(this.#base, at));
    }
  }
  const { kernel } = workspace(t, {}, { mounts: { disk: new Disk() } });
  assert.equal(await value(kernel, "return z.read('mount:disk/sub/a.txt')"), 'on disk');
  // What Node itself throws says that there is nothing.
  assert.equal((await kernel.executeCell("return z.read('mount:disk/none/b')")).error.kind, 'not_found');
});

test('what a host marks as ignored is left out, unless it is asked for', async (t) => {
  const list = (at) =>
    at === '' ? [{ name: 'kept', kind: 'file', bytes: 4 }, { name: 'built', kind: 'directory', ignored: true }] : [{ name: 'out', kind: 'file', bytes: 4 }];
  const { kernel } = workspace(t, {}, { mounts: { m: { list, read: () => 'word' } } });
  const paths = async (options) => (await value(kernel, `return z.find('word', { path: 'mount:m', ...${JSON.stringify(options)} })`)).items.map((item) => item.path);
  assert.deepEqual(await paths({}), ['mount:m/kept']);
  assert.deepEqual(await paths({ ignored: true }), ['mount:m/built/out', 'mount:m/kept']);
});

test('exceptions of a mount keep their kind, and what it must not give is told', async (t) => {
  const answers = new Map([
    ['denied', () => { throw Object.assign(new Error('not for you'), { kind: 'denied' }); }],
    ['perm', () => { throw Object.assign(new Error('no'), { code: 'EACCES' }); }],
    ['plain', () => { throw new Error('the line broke'); }],
    ['odd', () => { throw Object.assign(new Error('x'), { kind: 'no such kind' }); }],
    ['number', () => 7],
    ['missing', () => { throw Object.assign(new Error('gone'), { kind: 'not_found' }); }],
  ]);
  const list = () => [...answers.keys()].map((name) => ({ name, kind: 'file', bytes: 1 }));
  const { kernel } = workspace(t, {}, { mounts: { m: { list, read: async (at) => answers.get(at)() } } });
  const error = async (at) => (await kernel.executeCell(`return z.read('mount:m/${at}')`)).error;
  for (const [at, kind, detail] of [
    ['denied', 'denied', /not for you/],
    ['perm', 'denied', /the mount `m`/],
    ['plain', 'io', /the line broke/],
    ['odd', 'io', /the mount `m`: x/],
    ['number', 'io', /no string and no Uint8Array/],
    ['missing', 'not_found', /there is no/],
  ]) {
    const told = await error(at);
    assert.deepEqual([told.kind, told.path], [kind, `mount:m/${at}`], JSON.stringify(told));
    assert.match(told.detail, detail);
  }
  for (const [entries, detail] of [
    [[{ name: 'a/b', kind: 'file', bytes: 1 }], /name/],
    [[{ name: 'a', kind: 'file' }], /without `bytes`/],
    [[{ name: 'a', kind: 'link' }], /must not/],
    [[{ name: 'a', kind: 'file', bytes: 1, size: 1 }], /unknown field `size`/],
    [[{ name: 'a', kind: 'directory' }, { name: 'a', kind: 'directory' }], /twice/],
    [{}, /iterable/],
  ]) {
    const kernel = workspace(t, {}, { mounts: { m: { list: () => entries, read: () => '' } } }).kernel;
    const told = (await kernel.executeCell("return z.read('mount:m')")).error;
    assert.equal(told?.kind, 'io', JSON.stringify(told));
    assert.match(told.detail, detail);
  }
});

test('a mount that never answers is over with its cell, or with its own time', async (t) => {
  const never = () => new Promise(() => {});
  const { kernel } = workspace(t, {}, { mounts: { m: { list: never, read: never, timeoutMs: 200 } } });
  const slow = (await kernel.executeCell("return z.read('mount:m/a')")).error;
  assert.deepEqual([slow.kind, slow.retryable], ['io', true], JSON.stringify(slow));
  assert.match(slow.detail, /within 200 ms/);
  const { kernel: patient } = workspace(t, {}, { mounts: { m: { list: () => [{ name: 'a', kind: 'file', bytes: 1 }], read: never } } });
  const late = await patient.executeCell("return z.read('mount:m/a')", { timeoutMs: 300 });
  assert.equal(late.error.kind, 'deadline');
  const controller = new AbortController();
  const answer = patient.executeCell("return z.read('mount:m/a')", { signal: controller.signal });
  await sleep(100);
  controller.abort();
  assert.equal((await answer).outcome, 'Cancelled');
  assert.deepEqual((await patient.shutdown()).cells, []);
});

test('a search sees a version that has changed, and forks see the mounts of their kernel', async (t) => {
  const files = { a: 'one' };
  const { mount, asked } = tree(files);
  const { kernel } = workspace(t, {}, { mounts: { m: mount } });
  const count = "return (await z.find(input.word, { path: 'mount:m' })).items.length";
  assert.equal(await value(kernel, count, { input: { word: 'one' } }), 1);
  files.a = 'two';
  assert.equal(await value(kernel, count, { input: { word: 'two' } }), 1);
  assert.equal(await value(kernel, count, { input: { word: 'one' } }), 0);
  const fork = await kernel.forkSession('other');
  assert.equal(await value(fork, "return z.read('mount:m/a')"), 'two');
  assert.ok(asked.length > 0);
});

test('mounts that are none are refused by name', (t) => {
  const root = directory(t);
  const list = () => [];
  for (const [mounts, at] of [
    [{ m: {} }, 'mounts.m.list'],
    [{ m: { list } }, 'mounts.m.read'],
    [{ m: { list, read: 'x' } }, 'mounts.m.read'],
    [{ m: 7 }, 'mounts.m.list'],
    [[], 'mounts'],
    [{ m: { list, read: list, depth: 1 } }, 'mounts.m.depth'],
  ]) {
    assert.throws(() => new ZeroKernel({ root, mounts }), (why) => {
      assert.ok(why instanceof ZeroKernelError && why.kind === 'invalid_input', String(why));
      assert.equal(why.path, at);
      return true;
    });
  }
});

test('a name that cannot name a mount is told when the workspace is opened', async (t) => {
  const { kernel } = workspace(t, {}, { mounts: { 'a/b': { list: () => [], read: () => '' } } });
  await assert.rejects(kernel.initialize(), { kind: 'invalid_input', path: 'mounts' });
});
