'use strict';

const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');

const { ZeroKernel } = require('@zerostack/zero-kernel');

/** A directory that goes with the test. */
function directory(t) {
  const made = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'zero-kernel-test-')));
  t.after(() => fs.rmSync(made, { recursive: true, force: true }));
  return made;
}

/** A workspace with files, and a kernel on it that leaves nothing behind. */
function workspace(t, files = {}, options = {}) {
  const root = directory(t);
  for (const [name, content] of Object.entries(files)) {
    fs.mkdirSync(path.dirname(path.join(root, name)), { recursive: true });
    fs.writeFileSync(path.join(root, name), content);
  }
  const kernel = new ZeroKernel({ root, store: 'transient', ...options });
  return { root, kernel, content: (name) => fs.readFileSync(path.join(root, name), 'utf8') };
}

/** The value of a cell that must complete. */
async function value(kernel, source, options) {
  const response = await kernel.executeCell(source, options);
  if (response.outcome !== 'Completed') throw new Error(`${source}: ${JSON.stringify(response.error)}`);
  return response.value;
}

/** Processes whose command line has a word. */
function processes(word) {
  const found = [];
  for (const pid of fs.readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const line = fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8');
      if (line.includes(word) && Number(pid) !== process.pid) found.push(line);
    } catch {
      // It has ended meanwhile.
    }
  }
  return found;
}

module.exports = { directory, processes, workspace, value };
