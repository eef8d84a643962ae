// console: five levels, captured as text. Formatting never calls a getter, and is bounded in depth, width and length.
"use strict";

((bag) => {
  const { P, classes } = bag;
  const MAX_DEPTH = 4;
  const MAX_ITEMS = 100;
  const MAX_LINE = 16 * 1024;

  const quote = (text) => P.JSONStringify(text.length > MAX_LINE ? P.StringSlice(text, 0, MAX_LINE) + "\u2026" : text);

  const nameOf = (value) => {
    for (let object = value, i = 0; object !== null && i < 8; object = P.ReflectGetPrototypeOf(object), i++) {
      const own = P.ObjectGetOwnPropertyDescriptor(object, "constructor");
      if (own !== undefined) {
        const named = typeof own.value === "function" ? P.ObjectGetOwnPropertyDescriptor(own.value, "name") : undefined;
        return named !== undefined && typeof named.value === "string" ? named.value : "";
      }
    }
    return "[Object: null prototype]";
  };

  const property = (object, name) => {
    const found = P.ObjectGetOwnPropertyDescriptor(object, name);
    return found !== undefined && "value" in found ? found.value : undefined;
  };

  const errorText = (error) => {
    const stack = property(error, "stack");
    const name = bag.facts(error) !== undefined ? "ZeroError" : nameOf(error) || "Error";
    const message = property(error, "message");
    const head = typeof message === "string" && message !== "" ? name + ": " + message : name;
    return typeof stack === "string" ? stack : head;
  };

  const inspect = (value, seen, depth, room) => {
    switch (typeof value) {
      case "string":
        return quote(value);
      case "bigint":
        return P.BigIntToString(value) + "n";
      case "symbol":
        return P.SymbolToString(value);
      case "function": {
        const name = property(value, "name");
        return typeof name === "string" && name !== "" ? "[Function: " + name + "]" : "[Function]";
      }
      case "object":
        break;
      default:
        return "" + value;
    }
    if (value === null) return "null";
    for (let place = seen; place !== null; place = place.up) {
      if (place.value === value) return "[Circular]";
    }
    const at = { __proto__: null, up: seen, value };
    const isArray = P.ArrayIsArray(value);
    const prototype = P.ReflectGetPrototypeOf(value);
    let cls = 0;
    if (!isArray && prototype !== P.ObjectPrototype) cls = bag.host(bag.native.CLASSIFY, value);
    if (cls === classes.ERROR) return errorText(value);
    if (cls === classes.REGEXP) return P.RegExpToString(value);
    if (cls === classes.PROMISE) return "Promise {}";
    if (cls === classes.BOXED) return "[" + inspect(P.unbox(value), at, depth, room) + "]";
    if (cls === classes.BYTES || cls === classes.OTHER_ARRAY) {
      const length = P.TypedArrayLength(value);
      let text = P.TypedArrayTag(value) + "(" + length + ") [";
      for (let i = 0; i < length && i < MAX_ITEMS; i++) text += (i > 0 ? ", " : " ") + value[i];
      return text + (length > MAX_ITEMS ? ", \u2026" : "") + (length > 0 ? " ]" : "]");
    }
    if (cls === classes.BUFFER) return "ArrayBuffer(" + P.ArrayBufferByteLength(value) + ")";
    if (cls === 0 && !isArray && prototype !== P.ObjectPrototype && prototype !== null) {
      try {
        return P.DateToISOString(value);
      } catch {
        // Not a date.
      }
    }
    const name = isArray || prototype === P.ObjectPrototype ? "" : nameOf(value) + " ";
    if (depth >= MAX_DEPTH) return isArray ? "[Array]" : "[" + (name === "" ? "Object" : P.StringTrim(name)) + "]";

    let text = "";
    let items = 0;
    const add = (item) => {
      if (items === MAX_ITEMS || room.left <= 0) {
        if (items === MAX_ITEMS) text += ", \u2026";
        items = MAX_ITEMS + 1;
      } else if (items < MAX_ITEMS) {
        const piece = item();
        room.left -= piece.length;
        text += (items > 0 ? ", " : "") + piece;
        items++;
      }
    };
    if (cls === classes.MAP) {
      P.MapForEach(value, (item, key) =>
        add(() => inspect(key, at, depth + 1, room) + " => " + inspect(item, at, depth + 1, room)));
      return "Map(" + P.MapSize(value) + ") {" + (text === "" ? "}" : " " + text + " }");
    }
    if (cls === classes.SET) {
      P.SetForEach(value, (item) => add(() => inspect(item, at, depth + 1, room)));
      return "Set(" + P.SetSize(value) + ") {" + (text === "" ? "}" : " " + text + " }");
    }
    const show = (key) => {
      const found = P.ObjectGetOwnPropertyDescriptor(value, key);
      if (found === undefined) return "<empty>";
      if (!("value" in found)) return found.get === undefined ? "[Setter]" : "[Getter]";
      return inspect(found.value, at, depth + 1, room);
    };
    if (isArray) {
      const length = value.length;
      for (let i = 0; i < length && items <= MAX_ITEMS; i++) add(() => show(P.String(i)));
      return "[" + (text === "" ? "]" : " " + text + " ]");
    }
    const keys = P.ObjectKeys(value);
    for (let i = 0; i < keys.length && items <= MAX_ITEMS; i++) {
      const key = keys[i];
      add(() => key + ": " + show(key));
    }
    return name + "{" + (text === "" ? "}" : " " + text + " }");
  };

  const format = (args) => {
    let text = "";
    const room = { __proto__: null, left: MAX_LINE };
    for (let i = 0; i < args.length; i++) {
      let piece;
      try {
        piece = typeof args[i] === "string" ? args[i] : inspect(args[i], null, 0, room);
      } catch {
        // A proxy's trap threw, or the stack is full.
        piece = "[not printable]";
      }
      text += (i > 0 ? " " : "") + piece;
      if (text.length > MAX_LINE) return P.StringSlice(text, 0, MAX_LINE) + "\u2026";
    }
    return text;
  };

  bag.inspect = (value) => format([value]);

  const levels = ["debug", "log", "info", "warn", "error"];
  const console = {};
  for (let level = 0; level < levels.length; level++) {
    const name = levels[level];
    const { [name]: method } = {
      [name](...args) {
        bag.host(bag.native.CONSOLE, level, format(args));
      },
    };
    P.ObjectDefineProperty(console, name, {
      __proto__: null,
      value: method,
      writable: true,
      enumerable: true,
      configurable: true,
    });
  }
  P.tag(console, "console");
  bag.console = console;
})(globalThis.__zero);
