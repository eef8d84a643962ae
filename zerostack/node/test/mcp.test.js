'use strict';

// `zero-kernel mcp` as the official client of the protocol sees it.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { test } = require('node:test');
const { setTimeout: sleep } = require('node:timers/promises');

const { Client } = require('@modelcontextprotocol/sdk/client/index.js');
const { StdioClientTransport } = require('@modelcontextprotocol/sdk/client/stdio.js');

const { directory, processes } = require('./support');

/** The command line; `cargo xtask test` names it. */
const CLI = process.env.ZERO_KERNEL_CLI ?? path.join(__dirname, '../../../target/debug/zero-kernel');

/** Starts the server on a workspace with one file, and a client of it. */
async function connect(t) {
  const [root, store] = [directory(t), directory(t)];
  fs.writeFileSync(path.join(root, 'a'), '1\n');
  const transport = new StdioClientTransport({ command: CLI, args: ['mcp', '--root', root, '--store', store], stderr: 'inherit' });
  const client = new Client({ name: 'test', version: '1.0.0' });
  await client.connect(transport);
  t.after(() => client.close());
  const execute = async (source, more = {}, options = {}) => {
    const result = await client.callTool({ name: 'execute_cell', arguments: { source, ...more } }, undefined, options);
    assert.deepEqual([result.content.length, result.content[0].type], [1, 'text']);
    const response = JSON.parse(result.content[0].text);
    assert.equal(Boolean(result.isError), response.outcome !== 'Completed');
    return response;
  };
  return { root, client, execute, pid: transport.pid };
}

const alive = (pid) => fs.existsSync(`/proc/${pid}`) && !/^State:\s+Z/m.test(fs.readFileSync(`/proc/${pid}/status`, 'utf8'));

test('one tool, and its surface is in its description', async (t) => {
  const { client } = await connect(t);
  assert.equal(client.getServerVersion().name, 'zero-kernel');
  const { tools } = await client.listTools();
  assert.deepEqual(tools.map((tool) => tool.name), ['execute_cell']);
  assert.deepEqual(Object.keys(tools[0].inputSchema.properties).sort(), ['input', 'source', 'timeoutMs']);
  assert.match(tools[0].inputSchema.properties.source.description, /JavaScript or TypeScript/);
  assert.match(tools[0].description, /JavaScript or TypeScript/);
  for (const operation of ['z.read', 'z.find', 'z.edit', 'z.apply', 'z.run', 'z.state']) {
    assert.ok(tools[0].description.includes(operation), operation);
  }
});

test('a cell may be TypeScript', async (t) => {
  const { execute } = await connect(t);
  const source = "interface Named { name: string }\nconst one: Named = { name: await z.read('a') as string };\nreturn one.name satisfies string;";
  assert.equal((await execute(source)).value, '1\n');
});

test('cells run, fail and are refused, each with a response', async (t) => {
  const { root, client, execute } = await connect(t);
  const completed = await execute("await z.edit('a', { find: '1', replacement: String(input.n) }); return z.read('a')", { input: { n: 2 } });
  assert.deepEqual([completed.outcome, completed.value], ['Completed', '2\n']);
  assert.equal(fs.readFileSync(path.join(root, 'a'), 'utf8'), '2\n');
  const failed = await execute("await z.edit('a', { find: '2', replacement: '3' }); throw new Error('no')");
  assert.deepEqual([failed.outcome, failed.error.kind, failed.effects.disposition], ['Failed', 'exception', 'restored']);
  const late = await execute('for (;;) {}', { timeoutMs: 200 });
  assert.equal(late.error.kind, 'deadline');
  const refused = await execute('return 1', { timeout: 5 });
  assert.deepEqual([refused.error.kind, refused.error.phase], ['invalid_input', 'rejected']);
  assert.ok(refused.error.accepted.includes('timeoutMs'));
  await assert.rejects(client.callTool({ name: 'other', arguments: {} }), /there is no tool/);
});

test('two cells run at once', async (t) => {
  const { execute } = await connect(t);
  const order = [];
  const slow = execute('await new Promise((done) => setTimeout(done, 1000))').then(() => order.push('slow'));
  const quick = execute('return 1').then(() => order.push('quick'));
  await Promise.all([slow, quick]);
  assert.deepEqual(order, ['quick', 'slow']);
});

test('progress is told to those who ask for it', async (t) => {
  const { execute } = await connect(t);
  const heard = [];
  await execute('await new Promise((done) => setTimeout(done, 2500))', {}, { onprogress: (progress) => heard.push(progress.progress) });
  assert.ok(heard.length >= 1 && heard.every((at, n) => n === 0 || at > heard[n - 1]), String(heard));
});

test('a cancelled request ends its cell and its command, and the next one runs', async (t) => {
  const { root, execute } = await connect(t);
  const controller = new AbortController();
  const answer = execute("await z.edit('a', { find: '1', replacement: '2' }); await z.run('sleep 60')", {}, { signal: controller.signal });
  await sleep(500);
  controller.abort();
  await assert.rejects(answer, /abort/i);
  // The workspace is free again as soon as the cell has ended.
  const next = await execute("await z.edit('a', { find: '1', replacement: '3' }); return z.read('a')");
  assert.deepEqual([next.outcome, next.value], ['Completed', '3\n'], JSON.stringify(next.error));
  assert.equal(fs.readFileSync(path.join(root, 'a'), 'utf8'), '3\n');
});

test('the server lives and dies with its client, and its cells with it', async (t) => {
  const { root, client, execute, pid } = await connect(t);
  const mark = `mark${process.pid}x${Date.now()}`;
  const answer = execute(`await z.edit('a', { find: '1', replacement: '2' }); await z.run(['sh', '-c', 'sleep 1000; true', '${mark}'])`);
  answer.catch(() => {});
  for (let tries = 0; processes(mark).length === 0 && tries < 100; tries++) await sleep(50);
  assert.ok(alive(pid) && processes(mark).length > 0);
  await client.close();
  for (let tries = 0; alive(pid) && tries < 50; tries++) await sleep(100);
  assert.ok(!alive(pid), 'the server is still there');
  assert.equal(fs.readFileSync(path.join(root, 'a'), 'utf8'), '1\n');
  assert.deepEqual(processes(mark), []);
});
