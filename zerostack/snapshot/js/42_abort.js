// Timers, queueMicrotask, AbortController and AbortSignal. The clock is the host's; an error thrown by a callback fails
// the cell.
"use strict";

((bag) => {
  const { P } = bag;
  const timers = new P.Map();
  let nextTimer = 1;

  // An error of `work` becomes the rejection of a promise that nothing handles.
  const soon = (work) => {
    P.PromiseThen(P.PromiseResolve(undefined), work);
  };

  const start = (callback, delay, args, repeat) => {
    if (typeof callback !== "function") throw new P.TypeError("The callback must be a function");
    let ms = P.Number(delay);
    if (!(ms >= 0)) ms = 0;
    ms = P.MathTrunc(ms);
    if (ms > 0x7fffffff) ms = 0x7fffffff;
    if (repeat && ms < 1) ms = 1;
    if (!bag.host(bag.native.TIMER_SET, nextTimer, ms)) {
      throw bag.zeroError("budget", "too many timers are pending", "timers");
    }
    P.MapSet(timers, nextTimer, { __proto__: null, callback, args, repeat, ms });
    return nextTimer++;
  };

  const stop = (id) => {
    const key = P.Number(id);
    if (P.MapDelete(timers, key)) bag.host(bag.native.TIMER_CLEAR, key);
  };

  // Called by the frame when a timer is due.
  bag.fire = (id) => {
    const timer = P.MapGet(timers, id);
    if (timer === undefined) return;
    if (timer.repeat) {
      // The callback may clear the interval, so it is set again first.
      bag.host(bag.native.TIMER_SET, id, timer.ms);
    } else {
      P.MapDelete(timers, id);
    }
    P.ReflectApply(timer.callback, undefined, timer.args);
  };

  const { setTimeout, clearTimeout, setInterval, clearInterval, queueMicrotask } = {
    setTimeout(callback, delay = 0, ...args) {
      return start(callback, delay, args, false);
    },
    clearTimeout(id = undefined) {
      stop(id);
    },
    setInterval(callback, delay = 0, ...args) {
      return start(callback, delay, args, true);
    },
    clearInterval(id = undefined) {
      stop(id);
    },
    queueMicrotask(callback) {
      if (typeof callback !== "function") throw new P.TypeError("The callback must be a function");
      soon(() => {
        callback();
      });
    },
  };

  // Only what AbortSignal needs of events; neither class is a global.
  class Event {
    #type;
    #target;

    constructor(type, target) {
      this.#type = P.String(type);
      this.#target = target ?? null;
    }

    get type() {
      return this.#type;
    }

    get target() {
      return this.#target;
    }
  }
  P.tag(Event.prototype, "Event");

  const secret = {};

  class AbortSignal {
    #aborted = false;
    #reason = undefined;
    #onabort = null;
    // Listeners in order: {callback, once}, and functions of the signals that follow this one.
    #listeners = P.list([]);
    #length = 0;

    constructor(key) {
      if (key !== secret) throw new P.TypeError("Illegal constructor");
    }

    static abort(reason = undefined) {
      const signal = new AbortSignal(secret);
      signal.#abort(reason);
      return signal;
    }

    static timeout(ms) {
      const signal = new AbortSignal(secret);
      start(
        () => signal.#abort(new bag.DOMException("The signal timed out", "TimeoutError")),
        ms,
        P.list([]),
        false,
      );
      return signal;
    }

    static any(signals) {
      const list = [...signals];
      const signal = new AbortSignal(secret);
      for (let i = 0; i < list.length; i++) {
        const source = list[i];
        if (source.#aborted) {
          signal.#abort(source.#reason);
          return signal;
        }
      }
      for (let i = 0; i < list.length; i++) {
        const source = list[i];
        source.#add(() => signal.#abort(source.#reason), true);
      }
      return signal;
    }

    #add(callback, once) {
      for (let i = 0; i < this.#length; i++) if (this.#listeners[i].callback === callback) return;
      this.#listeners[this.#length++] = { __proto__: null, callback, once };
    }

    #remove(callback) {
      let kept = 0;
      for (let i = 0; i < this.#length; i++) {
        if (this.#listeners[i].callback !== callback) this.#listeners[kept++] = this.#listeners[i];
      }
      this.#length = kept;
    }

    #abort(reason) {
      if (this.#aborted) return;
      this.#aborted = true;
      this.#reason = reason === undefined ? new bag.DOMException("The operation was aborted", "AbortError") : reason;
      const event = new Event("abort", this);
      const listeners = this.#listeners;
      const length = this.#length;
      this.#listeners = P.list([]);
      this.#length = 0;
      const call = (callback) => {
        try {
          if (typeof callback === "function") P.ReflectApply(callback, this, [event]);
          else callback.handleEvent(event);
        } catch (error) {
          // As an uncaught error of an event listener: it fails the cell, not the caller of abort().
          soon(() => {
            throw error;
          });
        }
      };
      if (this.#onabort !== null) call(this.#onabort);
      for (let i = 0; i < length; i++) call(listeners[i].callback);
    }

    get aborted() {
      return this.#aborted;
    }

    get reason() {
      return this.#reason;
    }

    get onabort() {
      return this.#onabort;
    }

    set onabort(callback) {
      this.#onabort = typeof callback === "function" ? callback : null;
    }

    throwIfAborted() {
      if (this.#aborted) throw this.#reason;
    }

    addEventListener(type, callback, options = undefined) {
      if (type !== "abort" || callback === null || callback === undefined) return;
      const once = typeof options === "object" && options !== null && !!options.once;
      this.#add(callback, once);
    }

    removeEventListener(type, callback) {
      if (type === "abort") this.#remove(callback);
    }

    static internals() {
      return { make: () => new AbortSignal(secret), abort: (signal, reason) => signal.#abort(reason) };
    }
  }
  const { make, abort } = AbortSignal.internals();
  delete AbortSignal.internals;
  P.tag(AbortSignal.prototype, "AbortSignal");

  class AbortController {
    #signal = make();

    get signal() {
      return this.#signal;
    }

    abort(reason = undefined) {
      abort(this.#signal, reason);
    }
  }
  P.tag(AbortController.prototype, "AbortController");

  P.ObjectFreeze(Event);
  P.ObjectFreeze(AbortSignal);
  P.ObjectFreeze(AbortController);
  bag.timing = {
    __proto__: null,
    setTimeout,
    clearTimeout,
    setInterval,
    clearInterval,
    queueMicrotask,
    AbortController,
    AbortSignal,
  };
})(globalThis.__zero);
