'use strict';

// Calls into the addon and what comes back: one promise a call, and questions to functions of the host. The addon delivers
// every message to `deliver`, which never throws.

const { load } = require('./native');
const { ZeroKernelError, misuse } = require('./errors');

/** Topics of messages, as in `src/mailbox.rs`. */
const [ANSWERED, REFUSED, TOLD, ASKED] = [0, 1, 2, 3];

/** Calls that have no answer yet. Each keeps its kernel from being forgotten. */
const pending = new Map();
/** The number of the last call. */
let last = 0;
/** Kernels by number, for the questions of their cells. */
const kernels = new Map();

const { addon, supervisor } = load();
const native = new addon.Addon(deliver, supervisor);
// Cells that are alive are taken back, and their commands with them, before the process goes.
process.once('exit', () => native.close());

/** Runs a function of the host's later, so that what it throws is the host's own uncaught exception. */
function run(listener, value) {
  queueMicrotask(() => listener(value));
}

function deliver(topic, number, text) {
  if (topic === ASKED) {
    reply(number, JSON.parse(text));
    return;
  }
  const call = pending.get(number);
  if (call === undefined) return;
  if (topic === TOLD) {
    run(call.told, JSON.parse(text));
    return;
  }
  finish(number, call);
  if (topic === ANSWERED) call.resolve(JSON.parse(text));
  else call.reject(refusal(JSON.parse(text), call.site));
}

/** Makes the error of a refused call, with the place of the call in place of that of its answer. */
function refusal(error, { stack }) {
  const refused = new ZeroKernelError(error);
  refused.stack = `${refused}\n${stack.slice(stack.indexOf('\n') + 1)}`;
  return refused;
}

async function reply(number, { kernel, ...question }) {
  try {
    const asked = kernels.get(kernel)?.deref();
    if (asked === undefined) throw new Error('the kernel is gone');
    native.answer(number, true, JSON.stringify((await asked(question)) ?? null));
  } catch (why) {
    native.answer(number, false, why instanceof Error ? why.message : String(why));
  }
}

/** Calls that keep the event loop alive: all but those that say otherwise. */
let live = 0;

function finish(number, call) {
  pending.delete(number);
  call.signal?.removeEventListener('abort', call.abort);
  if (call.holds && --live === 0) native.hold(false);
}

/**
 * Starts a method of a kernel.
 * @param kernel the addon's kernel; undefined for a call that needs none
 * @param keep what must live as long as the call does
 */
function start(kernel, method, args, { signal, told, holds = true, keep } = {}) {
  const text = json(args);
  const number = (last = (last % 0xffff_ffff) + 1);
  const site = {};
  Error.captureStackTrace(site, start);
  const answer = new Promise((resolve, reject) => {
    const abort = () => native.cancel(number);
    pending.set(number, { resolve, reject, told, signal, abort, holds, keep, site });
    if (kernel === undefined) native.callAlone(number, method, text);
    else native.call(number, kernel, method, text);
    if (holds && ++live === 1) native.hold(true);
    if (signal?.aborted) abort();
    else signal?.addEventListener('abort', abort, { once: true });
  });
  return {
    answer,
    cancel: () => native.cancel(number),
    interrupt: () => native.interrupt(number),
    made: () => native.made(kernel, number),
  };
}

/** JSON text of arguments, in which a function stands for itself as `true`. */
function json(args) {
  try {
    return JSON.stringify(args, (key, value) => {
      if (typeof value === 'bigint' || typeof value === 'symbol') throw misuse(`a ${typeof value} is not JSON`, key);
      return typeof value === 'function' ? true : value;
    });
  } catch (why) {
    if (why instanceof ZeroKernelError) throw why;
    throw misuse(`an argument is not JSON: ${why.message.split('\n')[0]}`);
  }
}

let kernelNumber = 0;

/**
 * Makes a kernel of the addon.
 * @param asked answers the questions of its cells; it is held weakly
 */
function kernel(options, asked) {
  const number = (kernelNumber = (kernelNumber % 0xffff_ffff) + 1);
  const made = native.kernel(json(options), number);
  if (typeof made === 'string') throw new ZeroKernelError(JSON.parse(made));
  kernels.set(number, new WeakRef(asked));
  forgotten.register(asked, number);
  return made;
}

const forgotten = new FinalizationRegistry((number) => kernels.delete(number));

module.exports = { addon, start, kernel };
