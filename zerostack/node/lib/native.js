'use strict';

// Finds the addon of exactly this platform. Nothing is downloaded or compiled: what is not there is said, file by file.

const fs = require('node:fs');
const path = require('node:path');

const { version } = require('../package.json');

/** Platforms whose packages exist. */
const PREBUILT = ['linux-x64-gnu'];

/** Names this platform as the prebuilt packages are named: system, architecture and, on Linux, C library. */
function platform() {
  const base = `${process.platform}-${process.arch}`;
  return process.platform === 'linux' ? `${base}-${isMusl() ? 'musl' : 'gnu'}` : base;
}

function isMusl() {
  try {
    // The loader that every dynamic program names. A look at it costs far less than a process report.
    return fs.readFileSync('/usr/bin/ldd', 'utf8').includes('musl');
  } catch {
    const { excludeNetwork } = process.report;
    process.report.excludeNetwork = true;
    const report = process.report.getReport();
    process.report.excludeNetwork = excludeNetwork;
    return !(typeof report === 'string' ? JSON.parse(report) : report).header.glibcVersionRuntime;
  }
}

/** The places where the addon may be, in order; each a function that gives its path. */
function places(name, override) {
  const file = `zero-kernel.${name}.node`;
  if (override) return [{ what: override, find: () => path.resolve(override) }];
  return [
    { what: path.join(__dirname, '..', file), find: () => path.join(__dirname, '..', file) },
    {
      what: `@zerostack/zero-kernel-${name}/${file}`,
      find: () => require.resolve(`@zerostack/zero-kernel-${name}/${file}`),
    },
  ];
}

/** Loads one file, and says why if it cannot be used. */
function open(file, anyVersion) {
  if (!fs.existsSync(file)) throw new Error('there is no such file');
  const addon = require(file);
  if (!anyVersion && addon.version() !== version) {
    throw new Error(`it has version ${addon.version()}, and ${version} is needed`);
  }
  const supervisor = path.join(path.dirname(file), 'zero-supervisor');
  try {
    fs.accessSync(supervisor, fs.constants.X_OK);
  } catch (why) {
    throw new Error(`the program beside it that owns commands cannot be used: ${why.message}`);
  }
  return { addon, supervisor };
}

/**
 * Loads the addon and finds the supervisor beside it.
 * @throws an Error with code ERR_ZERO_KERNEL_NATIVE that names every file that was looked for, and why it was not used.
 */
function load() {
  const override = process.env.ZERO_KERNEL_NATIVE_ADDON;
  const name = platform();
  const tried = [];
  for (const { what, find } of places(name, override)) {
    try {
      return open(find(), Boolean(override));
    } catch (why) {
      const absent = why.code === 'MODULE_NOT_FOUND' && why.message.includes(what);
      tried.push(`  ${what}: ${absent ? 'the package is not installed' : why.message.split('\n')[0]}`);
    }
  }
  const lines = [
    `@zerostack/zero-kernel ${version} has no usable addon for ${name} (Node ${process.versions.node}). Looked for:`,
    ...tried,
  ];
  if (override) {
    lines.push('ZERO_KERNEL_NATIVE_ADDON names that file, so no other was looked for.');
  } else if (PREBUILT.includes(name)) {
    lines.push(`Install @zerostack/zero-kernel-${name}@${version}; --omit=optional or a lockfile made elsewhere leaves it out.`);
    lines.push('In a checkout of its repository, `cargo xtask node --dev` makes it.');
  } else {
    lines.push(`There is no prebuilt addon for this platform; there is one for ${PREBUILT.join(', ')}.`);
  }
  throw Object.assign(new Error(lines.join('\n')), { code: 'ERR_ZERO_KERNEL_NATIVE', looked: tried.map((line) => line.trim()) });
}

module.exports = { load, platform };
