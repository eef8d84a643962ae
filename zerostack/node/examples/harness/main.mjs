// `node examples/harness/main.mjs`: the scripted conversation on a small project, printed as it goes.

import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

import { converse } from './harness.mjs';
import { model } from './model.mjs';

const root = mkdtempSync(path.join(tmpdir(), 'zero-kernel-harness-'));
try {
  cpSync(new URL('project/', import.meta.url), root, { recursive: true });
  const lines = Array.from({ length: 3000 }, (_, n) => `ok   order ${n + 1}: total as expected`);
  lines[1416] = 'FAIL order 1417 in discounted: 10 % off 50.00 gave 49.90, expected 45.00';
  writeFileSync(path.join(root, 'run.log'), `${lines.join('\n')}\n`);
  await converse({ root, model, tokens: 3000, log: console.log });
} finally {
  rmSync(root, { recursive: true, force: true });
}
