'use strict';

// Read-only mounts: what a host's `list` and `read` give, as the addon takes it.

const { misuse } = require('./errors');

/** Kinds of errors that an exception of a mount may name itself. */
const KINDS = new Set(['not_found', 'denied', 'invalid_input', 'conflict', 'busy', 'unsupported', 'corrupt', 'io']);

/** Kinds by the codes of Node's own exceptions. */
const CODES = new Map([['ENOENT', 'not_found'], ['ENOTDIR', 'not_found'], ['EACCES', 'denied'], ['EPERM', 'denied']]);

/** What a mount gave or threw. What lies nowhere is nothing, not a failure. */
async function answer(give) {
  try {
    return { given: (await give()) ?? null };
  } catch (why) {
    const kind = KINDS.has(why?.kind) ? why.kind : (CODES.get(why?.code) ?? 'io');
    if (kind === 'not_found') return { given: null };
    return { failed: { kind, detail: why instanceof Error ? why.message : String(why) } };
  }
}

/** A file's content and its version, of the forms that a host may give it in. */
function content(given) {
  if (given === undefined || given === null) return null;
  const whole = typeof given === 'string' || given instanceof Uint8Array;
  const { content: bytes, version } = whole ? { content: given } : given;
  if (typeof bytes !== 'string' && !(bytes instanceof Uint8Array)) throw new TypeError('read gave no string and no Uint8Array');
  const buffer = typeof bytes === 'string' ? Buffer.from(bytes) : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return { base64: buffer.toString('base64'), version };
}

/** A listing; it may be of any iterable form. */
function listing(given) {
  return given === undefined || given === null ? null : [...given];
}

/** The functions that answer questions about mounts, and the mounts as the addon's options have them. */
function mounts(given) {
  const options = {};
  for (const [name, mount] of Object.entries(given)) {
    for (const part of ['list', 'read']) {
      if (typeof mount?.[part] !== 'function') throw misuse(`mounts.${name}.${part} must be a function`, `mounts.${name}.${part}`);
    }
    // Methods of a class are not its own members, and what else it has is its own business.
    const plain = [Object.prototype, null].includes(Object.getPrototypeOf(mount));
    options[name] = { ...(plain ? mount : { timeoutMs: mount.timeoutMs }), list: true, read: true };
  }
  return {
    options,
    functions: {
      list: ({ mount, path }) => answer(async () => listing(await given[mount].list(path))),
      read: ({ mount, path }) => answer(async () => content(await given[mount].read(path))),
    },
  };
}

module.exports = { mounts };
