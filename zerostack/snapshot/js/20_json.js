// How values leave a cell: as JSON text, never as live objects.
//
// JSON's own rules hold (`toJSON`, which plain objects and arrays must have themselves, undefined properties left out, NaN and infinities as null), and what JSON would lose
// silently is either carried or refused with its place: bytes become {"base64": ...}, errors their name, message and
// own fields; functions, symbols, BigInts, maps, sets, promises, other typed arrays and cycles are refused. Nesting is
// bounded, so that a million nested arrays is an ordinary error.
"use strict";

((bag) => {
  const { P } = bag;
  const MAX_DEPTH = 100;
  const PATH_SHOWN = 400;
  const MAX_TEXT = 64 * 1024 * 1024;

  // Answers of the host's brand check; see `value_class` in the frame.
  const BYTES = 1, MAP = 2, SET = 3, PROMISE = 4, REGEXP = 5, ERROR = 6, WEAK = 7, BOXED = 8, OTHER_ARRAY = 9, ITERATOR = 10,
    BUFFER = 11, DATAVIEW = 12;
  bag.classes = {
    __proto__: null,
    BYTES, MAP, SET, PROMISE, REGEXP, ERROR, WEAK, BOXED, OTHER_ARRAY, ITERATOR, BUFFER, DATAVIEW,
  };

  const refusals = {
    __proto__: null,
    [MAP]: "a Map has no JSON form: use Object.fromEntries(map)",
    [SET]: "a Set has no JSON form: use [...set]",
    [PROMISE]: "a Promise has no JSON form: await it",
    [REGEXP]: "a RegExp has no JSON form: use its source",
    [WEAK]: "a weak collection or reference has no JSON form",
    [OTHER_ARRAY]: "only Uint8Array and ArrayBuffer travel as bytes: use Array.from(value), or new Uint8Array(value.buffer)",
    [ITERATOR]: "an iterator has no JSON form: use [...iterator]",
  };

  const plainName = (key) => {
    if (key.length === 0 || key.length > 64) return false;
    for (let i = 0; i < key.length; i++) {
      const c = P.StringCharCodeAt(key, i);
      const letter = (c >= 65 && c <= 90) || (c >= 97 && c <= 122) || c === 95 || c === 36;
      if (!letter && !(i > 0 && c >= 48 && c <= 57)) return false;
    }
    return true;
  };

  // `at` is a chain of {up, key, value} from the innermost place to the outermost; `root` names the whole.
  const pathOf = (root, at) => {
    let path = "";
    for (let place = at; place.up !== null; place = place.up) {
      const key = place.key;
      const step = typeof key === "number"
        ? "[" + key + "]"
        : plainName(key)
        ? "." + key
        : "[" + P.JSONStringify(P.StringSlice(key, 0, 64)) + "]";
      path = step + path;
      if (path.length > PATH_SHOWN) return root + "\u2026" + P.StringSlice(path, -PATH_SHOWN);
    }
    return root + path;
  };

  const refuse = (root, at, why) => {
    const path = pathOf(root, at);
    throw bag.zeroError("invalid_input", path + ": " + why, path);
  };

  const bytesText = (view) => '{"base64":"' + bag.host(bag.native.BASE64, view) + '"}';

  // Longer ones would leave V8's heap many times over: as UTF-8, escaped, and in the answer.
  const checkLength = ((length, root, at) => {
    if (length > MAX_TEXT) {
      const path = pathOf(root, at);
      throw bag.zeroError("budget", path + ": a value of more than " + MAX_TEXT + " characters cannot leave the cell", path);
    }
  });

  const encodeString = ((text, root, at, lenient) => {
    checkLength(text.length, root, at);
    if (P.StringIsWellFormed(text)) return P.JSONStringify(text);
    if (lenient) return P.JSONStringify(P.StringToWellFormed(text));
    return refuse(root, at, "the text has an unpaired surrogate and cannot be written as UTF-8");
  });

  // Gives the JSON text, or undefined for a value that JSON leaves out.
  const encode = ((value, key, root, up, depth, lenient) => {
    switch (typeof value) {
      case "undefined":
        return undefined;
      case "boolean":
        return value ? "true" : "false";
      case "number":
        return P.NumberIsFinite(value) ? "" + value : "null";
      case "string":
        return encodeString(value, root, { __proto__: null, up, key, value }, lenient);
      case "object":
        break;
      default:
        if (typeof value === "bigint" && typeof value.toJSON === "function") {
          return encode(P.ReflectApply(value.toJSON, value, [P.String(key)]), key, root, up, depth, lenient);
        }
        return refuse(
          root,
          { __proto__: null, up, key, value },
          typeof value === "bigint"
            ? "a BigInt has no JSON form: use String(value) or Number(value)"
            : "a " + typeof value + " has no JSON form",
        );
    }
    if (value === null) return "null";
    const at = { __proto__: null, up, key, value };
    if (depth >= MAX_DEPTH) return refuse(root, at, "nested deeper than " + MAX_DEPTH + " levels");
    for (let place = up; place !== null; place = place.up) {
      if (place.value === value) return refuse(root, at, "refers back to " + pathOf(root, place) + ": cycles have no JSON form");
    }

    const isArray = P.ArrayIsArray(value);
    const prototype = P.ReflectGetPrototypeOf(value);
    const isPlain = (isArray && prototype === P.ArrayPrototype) || prototype === P.ObjectPrototype || prototype === null;
    if (!isPlain) {
      const cls = bag.host(bag.native.CLASSIFY, value);
      if (cls === BYTES) return bytesText(value);
      if (cls === BUFFER) return bytesText(new P.Uint8Array(value));
      if (cls === DATAVIEW) {
        return bytesText(new P.Uint8Array(P.DataViewBuffer(value), P.DataViewByteOffset(value), P.DataViewByteLength(value)));
      }
      if (cls === BOXED) return encode(P.unbox(value), key, root, up, depth + 1, lenient);
      const why = refusals[cls];
      if (why !== undefined && typeof value.toJSON !== "function") return refuse(root, at, why);
      if (cls === ERROR && typeof value.toJSON !== "function") return encodeError(value, root, at, depth, lenient);
    }
    // What is written out reaches the host as it is written, whatever the cell did to the prototypes: plans rely on it.
    const toJSON = isPlain && !P.ObjectHasOwn(value, "toJSON") ? undefined : value.toJSON;
    if (typeof toJSON === "function") {
      const replaced = P.ReflectApply(toJSON, value, [P.String(key)]);
      // Once only, as JSON does it: the replacement's own toJSON is not asked again.
      return typeof replaced === "object" && replaced !== null
        ? encodeMembers(replaced, root, at, depth, lenient)
        : encode(replaced, key, root, up, depth + 1, lenient);
    }
    return encodeMembers(value, root, at, depth, lenient);
  });

  const encodeMembers = ((value, root, at, depth, lenient) => {
    if (P.ArrayIsArray(value)) {
      let text = "[";
      const length = value.length;
      for (let i = 0; i < length; i++) {
        const item = encode(value[i], i, root, at, depth + 1, lenient);
        text += (i > 0 ? "," : "") + (item === undefined ? "null" : item);
        checkLength(text.length, root, at);
      }
      return text + "]";
    }
    let text = "";
    const keys = P.ObjectKeys(value);
    for (let i = 0; i < keys.length; i++) {
      const name = keys[i];
      const item = encode(value[name], name, root, at, depth + 1, lenient);
      if (item !== undefined) {
        text += (text === "" ? "" : ",") + encodeString(name, root, at, lenient) + ":" + item;
        checkLength(text.length, root, at);
      }
    }
    return "{" + text + "}";
  });

  const encodeError = (error, root, at, depth, lenient) => {
    let text = '"name":' + encodeString(P.String(error.name), root, at, true) + ',"message":' +
      encodeString(P.String(error.message), root, at, true);
    const keys = P.ObjectKeys(error);
    for (let i = 0; i < keys.length; i++) {
      const name = keys[i];
      if (name === "name" || name === "message") continue;
      const item = encode(error[name], name, root, at, depth + 1, lenient);
      if (item !== undefined) text += "," + encodeString(name, root, at, lenient) + ":" + item;
    }
    return "{" + text + "}";
  };

  // The value a cell returns; undefined when there is none. Unpaired surrogates become U+FFFD: a text cut in the middle
  // of a character must not cost the whole answer.
  bag.encodeValue = ((value) => encode(value, "", "$", null, 0, true));

  // The arguments of a call, as a JSON array. Exact, or refused.
  bag.encodeArguments = ((operation, args) => {
    let text = "[";
    let length = args.length;
    while (length > 0 && args[length - 1] === undefined) length--;
    for (let i = 0; i < length; i++) {
      const root = "arguments[" + i + "] of z." + operation;
      const item = encode(args[i], "", root, null, 0, false);
      text += (i > 0 ? "," : "") + (item === undefined ? "null" : item);
    }
    return text + "]";
  });
})(globalThis.__zero);
