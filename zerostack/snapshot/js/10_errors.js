// ZeroError, the only error class of `z`, and DOMException for the web interfaces.
"use strict";

((bag) => {
  const { P } = bag;
  const secret = {};

  class ZeroError extends P.Error {
    #kind;

    constructor(key) {
      if (key !== secret) throw new P.TypeError("Illegal constructor");
      super("");
    }

    static #define(error, name, value) {
      P.ObjectDefineProperty(error, name, {
        __proto__: null,
        value,
        writable: true,
        enumerable: name !== "message",
        configurable: true,
      });
    }

    // The object is made where the call is made, so that its stack is the caller's, and filled when the call fails.
    static fill(error, kind, detail, retryable, path, accepted) {
      error.#kind = { __proto__: null, kind, detail, retryable, path, accepted };
      ZeroError.#define(error, "message", detail);
      ZeroError.#define(error, "kind", kind);
      ZeroError.#define(error, "detail", detail);
      ZeroError.#define(error, "retryable", retryable);
      if (path !== undefined) ZeroError.#define(error, "path", path);
      if (accepted !== undefined) ZeroError.#define(error, "accepted", accepted);
      return error;
    }

    // What the host may believe of a thrown value: the fields as they were filled, whatever the cell made of them.
    static facts(value) {
      return typeof value === "object" && value !== null && #kind in value ? value.#kind : undefined;
    }
  }
  P.ObjectDefineProperty(ZeroError.prototype, "name", {
    __proto__: null,
    value: "ZeroError",
    writable: true,
    enumerable: false,
    configurable: true,
  });

  const { fill, facts } = ZeroError;
  delete ZeroError.fill;
  delete ZeroError.facts;

  const codes = { __proto__: null, AbortError: 20, TimeoutError: 23, DataCloneError: 25, InvalidCharacterError: 5 };

  class DOMException extends P.Error {
    #name;
    #code;

    constructor(message = "", name = "Error") {
      super(P.String(message));
      this.#name = P.String(name);
      this.#code = codes[this.#name] ?? 0;
    }

    get name() {
      return this.#name;
    }

    get code() {
      return this.#code;
    }
  }
  P.tag(DOMException.prototype, "DOMException");

  // Frozen, so that `super()` keeps its meaning whatever a cell does.
  P.ObjectFreeze(ZeroError);
  P.ObjectFreeze(ZeroError.prototype);
  P.ObjectFreeze(DOMException);

  bag.trace = () => new ZeroError(secret);
  bag.fill = fill;
  bag.facts = facts;
  bag.zeroError = (kind, detail, path, accepted) => fill(bag.trace(), kind, detail, false, path, accepted);
  bag.DOMException = DOMException;
})(globalThis.__zero);
