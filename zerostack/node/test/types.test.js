'use strict';

// The types as a TypeScript program sees them, through `import` and through `require`.

const assert = require('node:assert/strict');
const { execFile } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { test } = require('node:test');
const { promisify } = require('node:util');

const here = path.join(__dirname, '..');

/** What `tsc` says of the files of a directory. */
async function check(cwd, ...args) {
  const tsc = path.join(here, 'node_modules/typescript/bin/tsc');
  const options = ['--noEmit', '--module', 'node16', '--types', 'node', ...args];
  const checked = await promisify(execFile)(process.execPath, [tsc, ...options], { cwd }).catch((why) => why);
  return checked.stdout.trim();
}

test('programs in both module systems are accepted, and mistakes are found', async () => {
  const files = ['types/test.cts', 'types/test.mts'].map((file) => path.join(here, file));
  assert.equal(await check(here, '--strict', '--skipLibCheck', 'false', '--target', 'es2022', ...files), '');
});

test('cells are checked by their types: those of the cookbook are right, and mistakes are found', async () => {
  // As a project that has installed the package.
  const project = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'zero-types-')));
  try {
    fs.mkdirSync(path.join(project, 'node_modules/@zerostack'), { recursive: true });
    fs.symlinkSync(here, path.join(project, 'node_modules/@zerostack/zero-kernel'));
    fs.symlinkSync(path.join(here, 'node_modules/@types'), path.join(project, 'node_modules/@types'));
    fs.copyFileSync(path.join(here, 'types/cell.mts'), path.join(project, 'cell.mts'));
    assert.equal(await check(project, '--strict', '--skipLibCheck', 'false', '--target', 'esnext', 'cell.mts'), '');

    const cell = (name, source) => {
      const text = `/// <reference types="@zerostack/zero-kernel/cell" />\nexport async function cell() {\n${source}\n}\n`;
      fs.writeFileSync(path.join(project, `${name}.mjs`), text);
      return `${name}.mjs`;
    };
    const cookbook = path.join(here, '../../tests/cookbook');
    const names = fs.readdirSync(cookbook);
    assert.ok(names.length >= 15);
    const cells = names.map((name) => cell(name, fs.readFileSync(path.join(cookbook, name, 'cell.js'), 'utf8')));
    const loose = ['--allowJs', '--checkJs', '--target', 'esnext'];
    assert.equal(await check(project, ...loose, ...cells), '');
    assert.match(await check(project, ...loose, cell('wrong', "return z.find('a', { mod: 'word' });")), /'mod' does not exist/);
  } finally {
    fs.rmSync(project, { recursive: true });
  }
});

test('what the types promise is what there is', () => {
  const kernel = require('@zerostack/zero-kernel');
  const source = fs.readFileSync(path.join(here, 'types/classes.d.ts'), 'utf8');
  const classes = [...source.matchAll(/^export class (\w+)([^]*?)^}/gm)];
  assert.deepEqual(classes.map(([, name]) => name).sort(), Object.keys(kernel).sort());
  for (const [, name, body] of classes) {
    const methods = [...body.matchAll(/^ {2}(\w+)\(/gm)].map(([, method]) => method);
    const own = Object.getOwnPropertyNames(kernel[name].prototype).filter((method) => !['constructor', 'name'].includes(method));
    assert.deepEqual(new Set(methods.filter((method) => method !== 'constructor')), new Set(own), name);
  }
});
