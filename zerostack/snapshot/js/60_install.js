// Seals the global object and installs the surface. Runs once per frame, before the cell is compiled: what V8 and
// deno_core put back when a snapshot is restored is removed here, by an allow-list, so that a name which a later version
// brings is absent until someone has looked at it.
"use strict";

((global) => {
  const bag = global.__zero;
  const { P } = bag;

  const kept = P.list([
    "Object", "Function", "Array", "Number", "parseFloat", "parseInt", "Infinity", "NaN", "undefined", "Boolean", "String",
    "Symbol", "Date", "Promise", "RegExp", "Error", "AggregateError", "EvalError", "RangeError", "ReferenceError",
    "SyntaxError", "TypeError", "URIError", "SuppressedError", "globalThis", "JSON", "Math", "Intl", "Uint8Array",
    "Int8Array", "Uint16Array", "Int16Array", "Uint32Array", "Int32Array", "BigUint64Array", "BigInt64Array",
    "Uint8ClampedArray", "Float16Array", "Float32Array", "Float64Array", "DataView", "Map", "BigInt", "Set", "Iterator",
    "WeakMap", "WeakSet", "WeakRef", "Proxy", "Reflect", "FinalizationRegistry", "Atomics", "DisposableStack",
    "AsyncDisposableStack", "decodeURI", "decodeURIComponent", "encodeURI", "encodeURIComponent", "escape", "unescape",
    "eval", "isFinite", "isNaN",
  ]);
  const keptNames = { __proto__: null };
  for (let i = 0; kept[i] !== undefined; i++) keptNames[kept[i]] = true;

  // Resizable buffers commit memory past the counted allocator, so there are none: the option is refused.
  const NativeArrayBuffer = P.ArrayBuffer;
  const isView = NativeArrayBuffer.isView;
  function ArrayBuffer(length, options = undefined) {
    if (new.target === undefined) throw new P.TypeError("Constructor ArrayBuffer requires 'new'");
    if (options !== null && typeof options === "object" && options.maxByteLength !== undefined) {
      throw new P.RangeError("Resizable array buffers are not available");
    }
    return P.ReflectConstruct(NativeArrayBuffer, [length], new.target);
  }
  P.ObjectDefineProperty(ArrayBuffer, "isView", {
    __proto__: null,
    value: isView,
    writable: true,
    enumerable: false,
    configurable: true,
  });
  P.ObjectDefineProperty(ArrayBuffer, "prototype", {
    __proto__: null,
    value: NativeArrayBuffer.prototype,
    writable: false,
    enumerable: false,
    configurable: false,
  });

  // V8's own never looks for a stop, and the length of what it walks is the cell's word.
  const { raw } = {
    raw(strings, ...values) {
      const texts = strings.raw;
      const wanted = P.MathTrunc(P.Number(texts.length));
      let text = "";
      for (let i = 0; i < wanted; i++) {
        text += `${texts[i]}`;
        if (i + 1 < wanted && i < values.length) text += `${values[i]}`;
      }
      return text;
    },
  };
  P.ObjectDefineProperty(P.String, "raw", {
    __proto__: null,
    value: raw,
    writable: true,
    enumerable: false,
    configurable: true,
  });

  const AsyncFunction = (async () => {}).constructor;

  const define = ((name, value) =>
    P.ObjectDefineProperty(global, name, {
      __proto__: null,
      value,
      writable: true,
      enumerable: false,
      configurable: true,
    }));
  const fixed = ((object, name, value) =>
    P.ObjectDefineProperty(object, name, {
      __proto__: null,
      value,
      writable: false,
      enumerable: true,
      configurable: false,
    }));

  // `native` gives the numbers of the host's protocol by name; `input` is a value parsed from the host's JSON.
  const install = ((host, native, input) => {
    bag.host = host;
    bag.native = P.ObjectSetPrototypeOf(native, null);
    const names = P.ReflectOwnKeys(global);
    for (let i = 0; i < names.length; i++) {
      const name = names[i];
      if (keptNames[name] !== true && !delete global[name]) throw new P.Error("cannot remove " + P.String(name));
    }
    delete global.Atomics.wait;
    delete global.Atomics.waitAsync;
    delete global.Atomics.pause;
    delete P.ArrayBufferPrototype.resize;
    // Not in every V8 archive; cells must behave alike.
    delete global.Date.prototype.toTemporalInstant;
    P.ObjectDefineProperty(ArrayBuffer, Symbol.species, P.ObjectGetOwnPropertyDescriptor(NativeArrayBuffer, Symbol.species));
    P.ObjectDefineProperty(P.ArrayBufferPrototype, "constructor", {
      __proto__: null,
      value: ArrayBuffer,
      writable: true,
      enumerable: false,
      configurable: true,
    });
    define("ArrayBuffer", ArrayBuffer);
    define("console", bag.console);
    define("DOMException", bag.DOMException);
    const groups = P.list([bag.encoding, bag.url, bag.timing]);
    for (let g = 0; g < 3; g++) {
      const members = P.ObjectKeys(groups[g]);
      for (let i = 0; i < members.length; i++) define(members[i], groups[g][members[i]]);
    }
    fixed(global, "z", bag.z);
    fixed(global, "input", input);
  });

  // What the frame calls; see `Surface` there.
  bag.exports = {
    __proto__: null,
    install,
    check: ((body) => {
      new AsyncFunction(body);
    }),
    settle: bag.settle,
    fire: bag.fire,
    encodeValue: bag.encodeValue,
    dataCloneError: bag.dataCloneError,
    // [kind, detail, retryable, path, accepted] of a ZeroError, or [text] of anything else.
    describe: (value) => {
      const facts = bag.facts(value);
      if (facts !== undefined) {
        return P.list([facts.kind, facts.detail, facts.retryable, facts.path, facts.accepted]);
      }
      return P.list([bag.describe(value)]);
    },
  };

  // An error as one line of text: what it says of itself, or how it looks when it is not an error.
  bag.describe = (value) => {
    const text = describe(value);
    return text.length > MAX_SHOWN ? P.StringSlice(text, 0, MAX_SHOWN) : text;
  };
  const MAX_SHOWN = 16 * 1024;
  const describe = (value) => {
    try {
      if (typeof value === "object" && value !== null && bag.host(bag.native.CLASSIFY, value) === bag.classes.ERROR) {
        const name = P.String(value.name);
        const message = P.String(value.message);
        return name === "" ? message : message === "" ? name : name + ": " + message;
      }
      return typeof value === "string" ? value : bag.inspect(value);
    } catch {
      return "[not printable]";
    }
  };
})(globalThis);
