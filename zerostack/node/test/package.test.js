'use strict';

// The package as it is installed, and its loader; what the addon shows to the process around it.

const assert = require('node:assert/strict');
const { execFile } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const { test } = require('node:test');
const { promisify } = require('node:util');

const { directory } = require('./support');

const here = path.join(__dirname, '..');
const FILE = 'zero-kernel.linux-x64-gnu.node';
const run = (program, args, options) => promisify(execFile)(program, args, { timeout: 120_000, maxBuffer: 64 << 20, ...options });

/** Packages in a directory with nothing but Node: no registry, no cache, no compiler, no variables that help. */
function plain(cwd) {
  const env = { PATH: path.dirname(process.execPath) + ':/usr/bin:/bin', HOME: cwd, npm_config_cache: path.join(cwd, 'cache') };
  return { cwd, env: { ...env, npm_config_offline: 'true', npm_config_audit: 'false', npm_config_fund: 'false' } };
}

/** Lays out and packs both packages, as `cargo xtask node` does it. */
async function packed(t) {
  const to = directory(t);
  const xtask = path.join(here, '../../target/debug/xtask');
  await run(process.env.ZEROSTACK_XTASK ?? xtask, ['node', '--staged', to]);
  return { to, tarballs: fs.readdirSync(to).filter((name) => name.endsWith('.tgz')).map((name) => path.join(to, name)) };
}

test('both packages install offline into an empty folder and run, through require and import', async (t) => {
  const { tarballs } = await packed(t);
  assert.equal(tarballs.length, 2);
  const folder = directory(t);
  const options = plain(folder);
  fs.writeFileSync(path.join(folder, 'package.json'), '{"private": true}');
  await run('npm', ['install', '--silent', ...tarballs], options);

  const installed = path.join(folder, 'node_modules/@zerostack');
  for (const name of ['zero-kernel', 'zero-kernel-linux-x64-gnu']) {
    const manifest = JSON.parse(fs.readFileSync(path.join(installed, name, 'package.json'), 'utf8'));
    assert.equal(manifest.scripts, undefined, `${name} has scripts`);
    assert.equal(manifest.dependencies, undefined, `${name} has dependencies`);
    assert.equal(manifest.devDependencies, undefined);
  }
  assert.deepEqual(fs.readdirSync(path.join(installed, 'zero-kernel-linux-x64-gnu')).sort(), [
    'LICENSE', 'THIRD_PARTY.md', 'package.json', FILE, 'zero-supervisor',
  ].sort());

  const cell = "kernel.executeCell(\"await z.edit('a', { create: '1' }); return (await z.run('cat a')).stdout\")";
  const root = directory(t);
  const common = `
    const { ZeroKernel } = require('@zerostack/zero-kernel');
    const kernel = new ZeroKernel({ root: ${JSON.stringify(root)}, store: 'transient' });
    ${cell}.then((response) => console.log(JSON.stringify(response.value ?? response.error)));`;
  assert.equal((await run(process.execPath, ['-e', common], options)).stdout, '"1"\n');
  const esm = `
    import { ZeroKernel, Interrupt, ZeroKernelError } from '@zerostack/zero-kernel';
    const kernel = new ZeroKernel({ root: ${JSON.stringify(root)}, store: 'transient' });
    console.log((await kernel.executeCell("return z.read('a')")).value, typeof Interrupt, typeof ZeroKernelError);`;
  fs.writeFileSync(path.join(folder, 'program.mjs'), esm);
  assert.equal((await run(process.execPath, ['program.mjs'], options)).stdout, '1 function function\n');

  // Without the package of its platform, the loader says what is missing and how to get it.
  fs.rmSync(path.join(installed, 'zero-kernel-linux-x64-gnu'), { recursive: true });
  await assert.rejects(run(process.execPath, ['program.mjs'], options), (why) => {
    assert.match(why.stderr, /no usable addon for linux-x64-gnu/);
    assert.match(why.stderr, /zero-kernel\.linux-x64-gnu\.node: there is no such file/);
    assert.match(why.stderr, /@zerostack\/zero-kernel-linux-x64-gnu\/.*: the package is not installed/);
    assert.match(why.stderr, /Install @zerostack\/zero-kernel-linux-x64-gnu@/);
    return true;
  });
});

/** Loads the package in a Node of its own and returns the error. */
async function refusal(prelude, env = {}) {
  const source = `${prelude}
    try { require(${JSON.stringify(here)}); console.log('{}'); }
    catch (why) { console.log(JSON.stringify({ message: why.message, code: why.code, looked: why.looked })); }`;
  return JSON.parse((await run(process.execPath, ['-e', source], { env: { ...process.env, ...env } })).stdout);
}

test('the override is the only file that is looked for, and the reason of a failure is told', async (t) => {
  const folder = directory(t);
  const absent = await refusal('', { ZERO_KERNEL_NATIVE_ADDON: path.join(folder, 'x.node') });
  assert.equal(absent.code, 'ERR_ZERO_KERNEL_NATIVE');
  assert.deepEqual(absent.looked, [`${path.join(folder, 'x.node')}: there is no such file`]);
  assert.match(absent.message, /ZERO_KERNEL_NATIVE_ADDON names that file/);

  fs.writeFileSync(path.join(folder, 'x.node'), 'not a library');
  const broken = await refusal('', { ZERO_KERNEL_NATIVE_ADDON: path.join(folder, 'x.node') });
  assert.match(broken.looked[0], /x\.node: .*(invalid ELF header|file too short)/);

  fs.rmSync(path.join(folder, 'x.node'));
  fs.linkSync(path.join(here, FILE), path.join(folder, 'x.node'));
  const alone = await refusal('', { ZERO_KERNEL_NATIVE_ADDON: path.join(folder, 'x.node') });
  assert.match(alone.looked[0], /owns commands cannot be used: .*zero-supervisor/);

  fs.copyFileSync(path.join(here, 'zero-supervisor'), path.join(folder, 'zero-supervisor'));
  fs.chmodSync(path.join(folder, 'zero-supervisor'), 0o755);
  assert.deepEqual(await refusal('', { ZERO_KERNEL_NATIVE_ADDON: path.join(folder, 'x.node') }), {});
});

test('an addon of another version is refused, and so is another platform, by its name', async (t) => {
  const folder = directory(t);
  for (const name of ['index.js', 'lib', 'package.json', FILE, 'zero-supervisor']) {
    fs.cpSync(path.join(here, name), path.join(folder, name), { recursive: true });
  }
  const manifest = JSON.parse(fs.readFileSync(path.join(folder, 'package.json'), 'utf8'));
  fs.writeFileSync(path.join(folder, 'package.json'), JSON.stringify({ ...manifest, version: '99.0.0' }));
  const source = (prelude) => `${prelude} try { require(${JSON.stringify(folder)}) } catch (why) { console.log(why.message) }`;
  const { stdout } = await run(process.execPath, ['-e', source('')]);
  assert.match(stdout, /node: it has version \d+\.\d+\.\d+, and 99\.0\.0 is needed/);
  const other = await run(process.execPath, ['-e', source("Object.defineProperty(process, 'arch', { value: 'riscv64' });")]);
  assert.match(other.stdout, /no usable addon for linux-riscv64-gnu/);
  assert.match(other.stdout, /There is no prebuilt addon for this platform; there is one for linux-x64-gnu/);
});

/** Dynamic symbols of an addon must be its one entry, and what the C library and the compiler's runtime give. */
async function onlyItsEntry(addon) {
  const symbols = async (which) => {
    const { stdout } = await run('nm', ['-D', which, '--format=posix', addon]);
    return stdout.trim().split('\n').map((line) => line.split(' ')[0]);
  };
  assert.deepEqual(await symbols('--defined-only'), ['napi_register_module_v1']);
  const foreign = /v8|V8|cppgc|^_ZN?K?4node|^uv_|crdtp|icu|rusty|temporal|diplomat|sqlite/;
  const imported = await symbols('--undefined-only');
  assert.ok(imported.length > 50);
  assert.deepEqual(imported.filter((name) => foreign.test(name)), []);
  // Everything else comes from the C library and the compiler's own runtime.
  const unversioned = imported.filter((name) => !name.includes('@'));
  const known = new Set(['_ITM_deregisterTMCloneTable', '_ITM_registerTMCloneTable', '__gmon_start__', '__cxa_thread_atexit_impl']);
  assert.deepEqual(unversioned.filter((name) => !known.has(name) && !/^(pidfd_|posix_spawn_|gnu_get_libc|statx|copy_file_range)/.test(name)), []);
}

test("the addon exports its entry and nothing else, and nothing of V8's is looked for in the process", () => onlyItsEntry(path.join(here, FILE)));

test('what is packed is the same without symbols and debug information, and as small as that makes it', async (t) => {
  const { tarballs } = await packed(t);
  const folder = directory(t);
  const native = tarballs.find((name) => name.includes('linux-x64-gnu'));
  await run('tar', ['-xzf', native, '-C', folder]);
  const addon = path.join(folder, 'package', FILE);
  await onlyItsEntry(addon);
  const { stdout } = await run('readelf', ['--wide', '--section-headers', addon]);
  assert.match(stdout, /\.text/);
  assert.doesNotMatch(stdout, /\.(symtab|strtab|z?debug_)/);
  assert.ok(fs.statSync(addon).size <= fs.statSync(path.join(here, FILE)).size);
});

test("Node's own V8 works beside it", async () => {
  const { ZeroKernel } = require('@zerostack/zero-kernel');
  assert.equal(typeof ZeroKernel, 'function');
  const wasm = Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 127, 3, 2, 1, 0, 7, 5, 1, 1, 102, 0, 0, 10, 6, 1, 4, 0, 65, 42, 11);
  const { instance } = await WebAssembly.instantiate(wasm);
  assert.equal(instance.exports.f(), 42);
  assert.match('zero-kernel', /(?<=zero-)\p{L}+/u);
  assert.equal(new Intl.NumberFormat('de').format(1234.5), '1.234,5');
});
