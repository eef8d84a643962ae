'use strict';

const { fileURLToPath } = require('node:url');

const calls = require('./calls');
const { ZeroKernelError, misuse } = require('./errors');
const { mounts } = require('./mounts');

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

function instance(value, type, path) {
  if (value !== undefined && !(value instanceof type)) throw misuse(`${path} must be an ${type.name}`, path);
  return value;
}

function string(value, path, what) {
  if (typeof value !== 'string') throw misuse(`${path} must be a string: ${what}`, path);
  return value;
}

/** A path, or a `file:` URL, as a path. */
function filePath(value) {
  return value instanceof URL ? fileURLToPath(value) : value;
}

/** What a channel throws for an effect that certainly was not done, and may be tried again. */
class NotSent extends Error {}
Object.defineProperty(NotSent.prototype, 'name', { value: 'NotSent' });

const message = (why) => (why instanceof Error ? why.message : String(why));

/** Makes the function that answers the questions of a kernel's cells from functions of the host's. */
function asker(options, mounted) {
  const channels = record(record(options.effects, 'effects').channels, 'effects.channels');
  for (const [name, channel] of Object.entries(channels)) {
    callable(record(channel, `effects.channels.${name}`).dispatch, `effects.channels.${name}.dispatch`);
    callable(channel.probe, `effects.channels.${name}.probe`);
  }
  const functions = {
    policy: callable(options.policy, 'policy'),
    ...mounted,
    dispatch: async ({ channel, effect }) => {
      try {
        return { sent: (await channels[channel].dispatch(effect)) ?? null };
      } catch (why) {
        return why instanceof NotSent ? { notSent: message(why) } : { unknown: message(why) };
      }
    },
    probe: async ({ channel, effect }) => {
      const { status, evidence = null, detail = 'the probe cannot tell' } = (await channels[channel].probe(effect)) ?? {};
      if (status === 'sent') return { sent: evidence };
      return status === 'not_sent' ? { notSent: '' } : { unknown: detail };
    },
  };
  return ({ ask, ...question }) => functions[ask](question);
}

class ZeroKernel {
  #native;
  /** Kept alive with the kernel: the other side holds it weakly. */
  #asked;

  constructor(config) {
    if (config instanceof Fork) {
      this.#native = config.native;
      this.#asked = config.asked;
      return;
    }
    const { root, ...rest } = record(config, 'config');
    if (root === undefined) throw misuse('root is missing: the directory that cells work in', 'root');
    const mounted = mounts(record(rest.mounts, 'mounts'));
    this.#asked = asker(rest, mounted.functions);
    const given = { ...rest, root: filePath(root), store: filePath(rest.store), mounts: mounted.options };
    if (rest.signingKey instanceof Uint8Array) given.signingKey = Buffer.from(rest.signingKey).toString('hex');
    this.#native = calls.kernel(given, this.#asked);
  }

  #start(method, args, more) {
    return calls.start(this.#native, method, args, { ...more, keep: this });
  }

  async #call(method, args = {}) {
    return this.#start(method, args).answer;
  }

  /** Starts a call that a signal cancels, unless it has: a short call might end before it hears of it. */
  async #startUnless(signal, method, args) {
    instance(signal, AbortSignal, 'signal');
    if (signal?.aborted) throw new ZeroKernelError({ kind: 'cancelled', detail: 'the signal was aborted before the call' });
    return this.#start(method, args, { signal }).answer;
  }

  initialize() {
    return this.#call('initialize');
  }

  async executeCell(source, options) {
    string(source, 'source', 'the body of the cell');
    const { signal, interrupt, onOutput, stdin, ...rest } = record(options, 'options');
    instance(signal, AbortSignal, 'signal');
    instance(interrupt, Interrupt, 'interrupt');
    callable(onOutput, 'onOutput');
    const args = {
      source,
      options: {
        ...rest,
        stdin: stdin instanceof Uint8Array ? { base64: Buffer.from(stdin).toString('base64') } : stdin,
        signal: signal !== undefined,
        interrupt: interrupt !== undefined,
        onOutput: onOutput !== undefined,
      },
    };
    const started = this.#start('executeCell', args, { signal, told: onOutput && output(onOutput) });
    return interrupt === undefined ? started.answer : interrupt[WATCH](started);
  }

  async planCell(source) {
    return this.#call('planCell', { source: string(source, 'source', 'the body of the cell') });
  }

  undo(event, options) {
    return this.#call('undo', { event, options });
  }

  session() {
    return new Session((method, args) => this.#call(`session.${method}`, args));
  }

  async forkSession(name, options) {
    const { attached = false, ...rest } = record(options, 'options');
    const started = this.#start('forkSession', { name, attached, ...rest });
    await started.answer;
    return new ZeroKernel(new Fork(started.made(), this.#asked));
  }

  cancel(cell) {
    return this.#call('cancel', { cell });
  }

  status() {
    return this.#call('status');
  }

  async whyNoPrivateView() {
    return (await this.#call('whyNoPrivateView')) ?? undefined;
  }

  events(options) {
    const { persistent = true, ...rest } = record(options, 'options');
    return new EventStream((told) => this.#start('events', rest, { told, holds: persistent }));
  }

  reconcile() {
    return this.#call('reconcile');
  }

  effects(options) {
    return this.#call('effects', options);
  }

  effect(handle) {
    return this.#call('effect', { handle });
  }

  abandonEffect(handle, why) {
    return this.#call('abandonEffect', { handle, why });
  }

  retryEffect(handle) {
    return this.#call('retryEffect', { handle });
  }

  async log(options) {
    const entries = await this.#call('log', options);
    return entries.map((entry) => (entry.error === undefined ? entry : { ...entry, error: new ZeroKernelError(entry.error) }));
  }

  event(event) {
    return this.#call('event', { event });
  }

  async object(handle) {
    const { base64 } = await this.#call('object', { handle });
    return new Uint8Array(Buffer.from(base64, 'base64'));
  }

  sessions() {
    return this.#call('sessions');
  }

  exportEvent(event) {
    return this.#call('exportEvent', { event });
  }

  exportChain() {
    return this.#call('exportChain');
  }

  async receipts(event, options) {
    const { schema = 'receipt.v1', ...rest } = record(options, 'options');
    return this.#call('receipts', { event, schema, ...rest });
  }

  async verify(options) {
    const { signal, ...rest } = record(options, 'options');
    return this.#startUnless(signal, 'verify', rest);
  }

  async gc(options) {
    const { signal, ...rest } = record(options, 'options');
    return this.#startUnless(signal, 'gc', rest);
  }

  shutdown(options) {
    return this.#call('shutdown', options);
  }

  async [Symbol.asyncDispose ?? Symbol.for('nodejs.asyncDispose')]() {
    await this.shutdown();
  }

  static async migrate(config) {
    return new ZeroKernel(config).#call('migrate');
  }

  static async examine(config) {
    return new ZeroKernel(config).#call('examine');
  }

  static async verifyEvidence(file, options) {
    const text = file instanceof Uint8Array ? new TextDecoder().decode(file) : file;
    const args = { file: typeof text === 'string' ? text : JSON.stringify(text), ...record(options, 'options') };
    return calls.start(undefined, 'verifyEvidence', args).answer;
  }

  static schemas() {
    return JSON.parse(calls.addon.schemas());
  }

  schemas() {
    return ZeroKernel.schemas();
  }

  static instructions() {
    return calls.addon.instructions();
  }

  instructions() {
    return ZeroKernel.instructions();
  }
}

/** The addon's side of a forked session, on its way into a kernel. */
class Fork {
  constructor(native, asked) {
    this.native = native;
    this.asked = asked;
  }
}

class Session {
  #call;

  constructor(call) {
    this.#call = call;
  }

  async get(key) {
    return (await this.#call('get', { key })) ?? undefined;
  }

  async set(key, value, options) {
    if (value === undefined) throw misuse('value is missing', 'value');
    await this.#call('set', { key, value, ...record(options, 'options') });
  }

  async delete(key) {
    await this.#call('delete', { key });
  }

  list(prefix = '') {
    return this.#call('list', { prefix });
  }

  lastResponse() {
    return this.#call('lastResponse').then((response) => response ?? undefined);
  }

  async reset() {
    await this.#call('reset');
  }
}

const WATCH = Symbol('watch');

/** Ends what the cells it was given to wait for, and lets them go on. */
class Interrupt {
  #cells = new Set();

  fire() {
    let calls = 0;
    for (const cell of this.#cells) calls += cell.interrupt();
    return calls;
  }

  [WATCH](started) {
    this.#cells.add(started);
    return started.answer.finally(() => this.#cells.delete(started));
  }
}

/** Events as they are recorded, for one reader. What it has not read yet waits here. */
class EventStream {
  /** Settles when nothing that is recorded from then on is missed. */
  ready;
  #started;
  #waiting = [];
  #reader;
  #ended;

  constructor(start) {
    this.ready = new Promise((resolve, reject) => {
      this.#started = start((recorded) => (recorded === null ? resolve() : this.#take(recorded)));
      this.#started.answer.then(
        () => this.#end({ done: true, value: undefined }),
        (why) => this.#end(Promise.reject(why)),
      );
      this.#started.answer.then(resolve, reject);
    });
    // Whoever reads hears of it there.
    this.ready.catch(() => {});
  }

  #take(recorded) {
    if (this.#reader === undefined) {
      this.#waiting.push(recorded);
    } else {
      this.#reader({ done: false, value: recorded });
      this.#reader = undefined;
    }
  }

  #end(result) {
    if (result instanceof Promise) result.catch(() => {});
    this.#ended = result;
    this.#reader?.(result);
    this.#reader = undefined;
  }

  async next() {
    if (this.#waiting.length > 0) return { done: false, value: this.#waiting.shift() };
    if (this.#ended !== undefined) return this.#ended;
    if (this.#reader !== undefined) throw misuse('somebody waits for the next event already', 'next');
    return new Promise((resolve) => (this.#reader = resolve));
  }

  async return() {
    this.#started.cancel();
    this.#waiting = [];
    this.#end({ done: true, value: undefined });
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator]() {
    return this;
  }
}

/** Gives output as bytes and as text; a character that is cut in two comes with its second half. */
function output(listener) {
  const decoders = new Map();
  return ({ base64, ...rest }) => {
    const key = `${rest.run} ${rest.stream}`;
    if (!decoders.has(key)) decoders.set(key, new TextDecoder());
    const bytes = new Uint8Array(Buffer.from(base64, 'base64'));
    listener({ ...rest, bytes, text: decoders.get(key).decode(bytes, { stream: true }) });
  };
}

module.exports = { Interrupt, NotSent, ZeroKernel, ZeroKernelError };
