'use strict';

const { fileURLToPath } = require('node:url');

const calls = require('./calls');
const { misuse } = require('./errors');

/** An object of options, checked only as far as the addon cannot: names and values are its business. */
function record(value, path) {
  if (value === undefined) return {};
  if (value === null || typeof value !== 'object' || Array.isArray(value)) throw misuse(`${path} must be an object`, path);
  return value;
}

function callable(value, path) {
  if (value !== undefined && typeof value !== 'function') throw misuse(`${path} must be a function`, path);
  return value;
}

/** A path, or a `file:` URL, as a path. */
function filePath(value) {
  return value instanceof URL ? fileURLToPath(value) : value;
}

/** What answers the questions of a kernel's cells. Each is a function of the host's. */
function callbacks(options) {
  const policy = callable(options.policy, 'policy');
  return {
    policy: (question) => policy(question),
  };
}

/** Makes the function that the addon asks. */
function asker(functions) {
  return ({ ask, ...question }) => functions[ask](question);
}

class ZeroKernel {
  #native;
  /** Kept alive with the kernel: the addon's side holds it weakly. */
  #asked;

  constructor(options, made) {
    if (made !== undefined) {
      [this.#native, this.#asked] = made(SECRET);
      return;
    }
    const { root, ...rest } = record(options, 'options');
    if (root === undefined) throw misuse('root is missing: the directory that cells work in', 'root');
    this.#asked = asker(callbacks(rest));
    const store = filePath(rest.store);
    this.#native = calls.kernel({ ...rest, root: filePath(root), store }, this.#asked);
  }

  #call(method, args, more) {
    try {
      return calls.start(this.#native, method, args, { ...more, keep: this }).answer;
    } catch (why) {
      return Promise.reject(why);
    }
  }

  initialize() {
    return this.#call('initialize', {});
  }

  async executeCell(source, options) {
    if (typeof source !== 'string') throw misuse('source must be a string: the body of the cell', 'source');
    const { signal, onOutput, ...rest } = record(options, 'options');
    if (signal !== undefined && !(signal instanceof AbortSignal)) throw misuse('signal must be an AbortSignal', 'signal');
    callable(onOutput, 'onOutput');
    const args = { source, options: { ...rest, signal: signal !== undefined, onOutput: onOutput !== undefined } };
    return this.#call('executeCell', args, { signal, told: onOutput && output(onOutput) });
  }

  status() {
    return this.#call('status', {});
  }
}

/** Gives output as bytes and as text; a character that is cut in two comes with its second half. */
function output(listener) {
  const decoders = new Map();
  return ({ run, stream, base64 }) => {
    const key = `${run} ${stream}`;
    if (!decoders.has(key)) decoders.set(key, new TextDecoder());
    const bytes = Buffer.from(base64, 'base64');
    listener({ run, stream, bytes, text: decoders.get(key).decode(bytes, { stream: true }) });
  };
}

const SECRET = Symbol('native');

module.exports = { ZeroKernel };
