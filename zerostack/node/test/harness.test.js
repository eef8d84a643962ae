'use strict';

// The example harness, and the transcript in its README.

const assert = require('node:assert/strict');
const { execFile } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');
const { test } = require('node:test');
const { promisify } = require('node:util');

const example = path.join(__dirname, '../examples/harness');

test('the scripted conversation goes as its README tells it', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [path.join(example, 'main.mjs')], { timeout: 60_000 });
  const readme = fs.readFileSync(path.join(example, 'README.md'), 'utf8');
  const [, transcript] = readme.match(/^```text\n([^]*?)^```$/m);
  assert.equal(stdout, transcript);
});

test('a harness whose budget is spent says so instead of going on', async () => {
  const { converse } = await import('../examples/harness/harness.mjs');
  const root = path.join(example, 'project');
  const talk = async (conversation) => (conversation.length > 8 ? { done: 'never' } : { why: 'once more', cell: "return z.read('src/price.js')" });
  await assert.rejects(converse({ root, model: talk, tokens: 300, log: () => {} }), /the budget is spent/);
});
