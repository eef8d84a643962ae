'use strict';

// The types as a TypeScript program sees them, through `import` and through `require`.

const assert = require('node:assert/strict');
const { execFile } = require('node:child_process');
const path = require('node:path');
const { test } = require('node:test');
const { promisify } = require('node:util');

const here = path.join(__dirname, '..');

test('programs in both module systems are accepted, and mistakes are found', async () => {
  const tsc = path.join(here, 'node_modules/typescript/bin/tsc');
  const options = ['--noEmit', '--strict', '--skipLibCheck', 'false', '--module', 'node16', '--target', 'es2022', '--types', 'node'];
  const files = ['types/test.cts', 'types/test.mts'].map((file) => path.join(here, file));
  const checked = await promisify(execFile)(process.execPath, [tsc, ...options, ...files], { cwd: here }).catch((why) => why);
  assert.equal(checked.stdout.trim(), '');
});

test('what the types promise is what there is', () => {
  const kernel = require('@zerostack/zero-kernel');
  const source = require('node:fs').readFileSync(path.join(here, 'types/classes.d.ts'), 'utf8');
  const classes = [...source.matchAll(/^export class (\w+)([^]*?)^}/gm)];
  assert.deepEqual(classes.map(([, name]) => name).sort(), Object.keys(kernel).sort());
  for (const [, name, body] of classes) {
    const methods = [...body.matchAll(/^ {2}(\w+)\(/gm)].map(([, method]) => method);
    const own = Object.getOwnPropertyNames(kernel[name].prototype).filter((method) => !['constructor', 'name'].includes(method));
    assert.deepEqual(new Set(methods.filter((method) => method !== 'constructor')), new Set(own), name);
  }
});
