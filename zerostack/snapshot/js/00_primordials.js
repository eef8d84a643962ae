// The intrinsics that the surface uses, taken before any cell has run. Nothing below may reach an intrinsic through a
// prototype, an iterator, a spread or a destructured array: a cell can replace all of those. It uses `P` only.
"use strict";

// Here and in the other scripts a function in parentheses is one that every frame runs: V8 compiles it when the snapshot is
// made, and the frame need not.

((global) => {
  const { bind, call } = Function.prototype;
  const uncurry = bind.bind(call);
  const getter = (target, name) => uncurry(Object.getOwnPropertyDescriptor(target, name).get);
  const TypedArray = Object.getPrototypeOf(Uint8Array);

  const P = {
    __proto__: null,
    Array,
    ArrayBuffer,
    ArrayIsArray: Array.isArray,
    ArrayPrototype: Array.prototype,
    ArrayPrototypeValues: uncurry(Array.prototype.values),
    ArrayBufferPrototype: ArrayBuffer.prototype,
    ArrayBufferByteLength: getter(ArrayBuffer.prototype, "byteLength"),
    ArrayBufferTransfer: uncurry(ArrayBuffer.prototype.transfer),
    DataViewBuffer: getter(DataView.prototype, "buffer"),
    DataViewByteLength: getter(DataView.prototype, "byteLength"),
    DataViewByteOffset: getter(DataView.prototype, "byteOffset"),
    DateToISOString: uncurry(Date.prototype.toISOString),
    Error,
    JSONStringify: JSON.stringify,
    Map,
    MapDelete: uncurry(Map.prototype.delete),
    MapForEach: uncurry(Map.prototype.forEach),
    MapGet: uncurry(Map.prototype.get),
    MapHas: uncurry(Map.prototype.has),
    MapSet: uncurry(Map.prototype.set),
    MapSize: getter(Map.prototype, "size"),
    MathTrunc: Math.trunc,
    Number,
    NumberIsFinite: Number.isFinite,
    NumberIsInteger: Number.isInteger,
    ObjectCreate: Object.create,
    ObjectDefineProperty: Object.defineProperty,
    ObjectFreeze: Object.freeze,
    ObjectGetOwnPropertyDescriptor: Object.getOwnPropertyDescriptor,
    ObjectHasOwn: Object.hasOwn,
    ObjectKeys: Object.keys,
    ObjectPrototype: Object.prototype,
    ObjectSetPrototypeOf: Object.setPrototypeOf,
    ObjectValueOf: uncurry(Object.prototype.valueOf),
    Promise,
    PromiseResolve: Promise.resolve.bind(Promise),
    PromiseThen: uncurry(Promise.prototype.then),
    RangeError,
    ReflectApply: Reflect.apply,
    ReflectConstruct: Reflect.construct,
    ReflectGetPrototypeOf: Reflect.getPrototypeOf,
    ReflectOwnKeys: Reflect.ownKeys,
    RegExpToString: uncurry(RegExp.prototype.toString),
    Set,
    SetForEach: uncurry(Set.prototype.forEach),
    SetSize: getter(Set.prototype, "size"),
    String,
    StringCharCodeAt: uncurry(String.prototype.charCodeAt),
    StringIndexOf: uncurry(String.prototype.indexOf),
    StringIsWellFormed: uncurry(String.prototype.isWellFormed),
    StringSlice: uncurry(String.prototype.slice),
    StringToLowerCase: uncurry(String.prototype.toLowerCase),
    StringToWellFormed: uncurry(String.prototype.toWellFormed),
    StringTrim: uncurry(String.prototype.trim),
    SymbolIterator: Symbol.iterator,
    SymbolToString: uncurry(Symbol.prototype.toString),
    SymbolToStringTag: Symbol.toStringTag,
    BigIntToString: uncurry(BigInt.prototype.toString),
    TypedArrayByteLength: getter(TypedArray.prototype, "byteLength"),
    TypedArrayLength: getter(TypedArray.prototype, "length"),
    TypedArrayTag: getter(TypedArray.prototype, Symbol.toStringTag),
    TypeError,
    Uint8Array,
  };

  // A list that no setter on Array.prototype can intercept.
  P.list = (values) => P.ObjectSetPrototypeOf(values, null);

  // The primitive inside a boxed one.
  const valueOfs = P.list([Number, String, Boolean, BigInt, Symbol].map((of) => uncurry(of.prototype.valueOf)));
  P.unbox = (boxed) => {
    for (let i = 0; i < 5; i++) {
      try {
        return valueOfs[i](boxed);
      } catch {
        // Another class.
      }
    }
  };

  // An ordinary array for the cell, filled by definition and so not interceptable either.
  P.arrayFrom = (list, length) => {
    const array = new P.Array(length);
    for (let i = 0; i < length; i++) {
      P.ObjectDefineProperty(array, i, {
        __proto__: null,
        value: list[i],
        writable: true,
        enumerable: true,
        configurable: true,
      });
    }
    return array;
  };

  // Hides how a class is written: methods not enumerable already are; the tag is the platform's convention.
  P.tag = (prototype, name) =>
    P.ObjectDefineProperty(prototype, Symbol.toStringTag, { __proto__: null, value: name, configurable: true });

  // `host` is the one native function, given by the frame when it installs the surface; the numbers are its protocol
  // (see `Native` in zerostack's frame).
  global.__zero = { __proto__: null, P, host: undefined };
})(globalThis);
