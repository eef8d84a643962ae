// What the package costs a Node program. Prints one JSON row a line, `{bench, case, median, p95, unit, against?, ratio?}`, and
// writes every sample with what it was measured on to the file that is named as the argument.
//
// As the reference run does it: one warm-up that is not counted, then twenty in sequence.

import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { performance } from 'node:perf_hooks';
import { fileURLToPath } from 'node:url';

const SAMPLES = 20;

/** Medians that the reference implementation publishes, in milliseconds, on a far faster machine. */
const PUBLISHED = { initialization: 21.9, 'no-op cell': 12.9, 'read of 2,865 bytes': 20.7 };

/** Size of a file that is read. */
const BYTES = 2865;

const rss = () => process.memoryUsage.rss() / 1e6;
const before = rss();
const { ZeroKernel } = await import('@zerostack/zero-kernel');
const loaded = rss();

const root = mkdtempSync(path.join(os.tmpdir(), 'zero-kernel-bench-'));
const cases = {};
/** Answers that were not as they must be: their times are not counted. */
let dropped = 0;

/** Measures an action, of which one call is a warm-up; `check` looks at what it gave. */
async function measure(name, action, check, after = async () => {}) {
  const samples = [];
  for (let n = 0; n <= SAMPLES; n++) {
    const begun = performance.now();
    const gave = await action();
    const took = performance.now() - begun;
    if (!check(gave)) dropped += 1;
    else if (n > 0) samples.push(took);
    await after(gave);
  }
  cases[name] = { unit: 'ms', samples };
}

try {
  writeFileSync(path.join(root, 'file.txt'), 'x'.repeat(BYTES));
  const options = { root, store: 'transient' };
  const opened = [];
  await measure(
    'initialization',
    async () => {
      const kernel = new ZeroKernel(options);
      opened.push(kernel);
      return kernel.initialize();
    },
    (status) => status.root !== undefined,
    () => opened.pop().shutdown(),
  );
  const kernel = new ZeroKernel(options);
  await kernel.initialize();
  const completed = (wanted) => (response) => response.outcome === 'Completed' && response.value === wanted;
  await measure('no-op cell', () => kernel.executeCell('return 1'), completed(1));
  await measure('read of 2,865 bytes', () => kernel.executeCell("return (await z.read('file.txt')).length"), completed(BYTES));
  const package_ = fileURLToPath(new URL('..', import.meta.url));
  const program = `const begun = performance.now(); require(${JSON.stringify(package_)}); console.log(performance.now() - begun)`;
  const loads = [];
  for (let n = 0; n <= SAMPLES; n++) loads.push(Number(execFileSync(process.execPath, ['-e', program], { encoding: 'utf8' })));
  cases['loading the package in a new process'] = { unit: 'ms', samples: loads.slice(1) };
  cases['delay of the event loop, idle'] = { unit: 'ms', samples: await delays(() => new Promise((done) => setTimeout(done, 1500))) };
  cases['delay of the event loop, 8 cells compute'] = {
    unit: 'ms',
    samples: await delays(() => Promise.all(Array.from({ length: 8 }, () => kernel.executeCell('for (;;) {}', { timeoutMs: 3000 })))),
  };
  const used = rss();
  for (let n = 0; n < 200; n++) await kernel.executeCell('return 1');
  cases['memory of the process (RSS)'] = {
    unit: 'MB',
    named: { 'Node alone': before, 'with the package loaded': loaded, 'after this run': used, 'after 200 more cells': rss() },
  };
  await kernel.shutdown();
} finally {
  rmSync(root, { recursive: true, force: true });
}

/** How late a timer of one millisecond fires, again and again, while something happens. */
async function delays(happens) {
  const samples = [];
  let over = false;
  const happened = happens().then(() => (over = true));
  while (!over) {
    const begun = performance.now();
    await new Promise((done) => setTimeout(done, 1));
    samples.push(Math.max(0, performance.now() - begun - 1));
  }
  await happened;
  return samples;
}

function quantile(samples, q) {
  const sorted = [...samples].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))];
}

for (const [name, { unit, samples, named }] of Object.entries(cases)) {
  for (const [what, size] of Object.entries(named ?? {})) {
    console.log(JSON.stringify({ bench: 'node', case: `RSS: ${what}`, median: size, p95: size, unit }));
  }
  if (samples === undefined) continue;
  const row = { bench: 'node', case: name, median: quantile(samples, 0.5), p95: quantile(samples, 0.95), unit };
  if (name in PUBLISHED) Object.assign(row, { against: PUBLISHED[name], ratio: row.median / PUBLISHED[name] });
  console.log(JSON.stringify(row));
  if (name.startsWith('delay')) {
    const p99 = quantile(samples, 0.99);
    console.log(JSON.stringify({ bench: 'node', case: `${name}: p99`, median: p99, p95: p99, unit }));
  }
}

const [cpu] = os.cpus();
const artifact = {
  runtime: { node: process.version, v8: process.versions.v8, package: JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')).version },
  hardware: { class: `${os.cpus().length} × ${cpu?.model}`, memoryGb: Math.round(os.totalmem() / 1e9), system: `${os.type()} ${os.release()} ${os.arch()}` },
  load: os.loadavg()[0],
  method: `one warm-up, then ${SAMPLES} in sequence, timed in this process around the awaited call; every sample is kept; delays are how late timers of 1 ms fire`,
  dropped,
  cases,
};
if (process.argv[2]) writeFileSync(process.argv[2], `${JSON.stringify(artifact, null, 1)}\n`);
