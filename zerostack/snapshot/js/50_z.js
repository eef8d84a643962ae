// `z`: six operations, each a promise. A call hands JSON text to the host and gets JSON values back; no host object ever
// reaches the cell, and no host function is reachable from what does.
"use strict";

((bag) => {
  const { P } = bag;
  const pending = new P.Map();
  let nextCall = 1;

  // `operation` is the index in the contract's list; `name` is what the cell called.
  const call = ((operation, name, args) => {
    // Made here so that its stack, and the place reported for an uncaught failure, is the caller's.
    const failure = bag.trace();
    return new P.Promise((resolve, reject) => {
      const text = bag.encodeArguments(name, args);
      const id = nextCall++;
      const refused = bag.host(bag.native.CALL, operation, name, id, text);
      if (refused !== undefined) {
        reject(bag.fill(failure, refused[0], refused[1], false, refused[2], undefined));
        return;
      }
      P.MapSet(pending, id, { __proto__: null, resolve, reject, failure });
    });
  });

  // Called by the frame with the outcome of a call. The promises are the intrinsic ones; at most the cell's own `then` on
  // its own values runs here.
  bag.settle = ((id, ok, value) => {
    const waiting = P.MapGet(pending, id);
    P.MapDelete(pending, id);
    if (ok) {
      waiting.resolve(value);
    } else {
      // value: {kind, detail, retryable, path?, accepted?}, parsed from the host's JSON.
      waiting.reject(bag.fill(waiting.failure, value.kind, value.detail, value.retryable, value.path, value.accepted));
    }
  });

  const operations = {
    read: (...args) => call(0, "read", args),
    find: (...args) => call(1, "find", args),
    edit: (...args) => call(2, "edit", args),
    apply: (...args) => call(3, "apply", args),
    run: (...args) => call(4, "run", args),
    state: {
      get: (...args) => call(5, "state.get", args),
      set: (...args) => call(5, "state.set", args),
      test: (...args) => call(5, "state.test", args),
      delete: (...args) => call(5, "state.delete", args),
      list: (...args) => call(5, "state.list", args),
    },
  };
  const freeze = (object) => {
    const keys = P.ObjectKeys(object);
    for (let i = 0; i < keys.length; i++) {
      if (typeof object[keys[i]] === "object") freeze(object[keys[i]]);
      P.ObjectFreeze(object[keys[i]]);
    }
    return P.ObjectFreeze(object);
  };
  bag.z = freeze(operations);
})(globalThis.__zero);
