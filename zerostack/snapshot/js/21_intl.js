// Intl objects live outside of V8's heap (a DateTimeFormat has about 27 KiB there) and V8 does not count them, so a cell
// may make so many and no more. The wrappers share their prototypes with what they wrap.
"use strict";

((bag) => {
  const { P } = bag;
  const LIMIT = 2000;
  let made = 0;

  const spend = () => {
    if (made === LIMIT) {
      throw bag.zeroError("budget", "the cell has made " + LIMIT + " Intl objects: make one and use it again", "intl");
    }
    made++;
  };

  const copy = (from, to) => {
    for (const key of P.ReflectOwnKeys(from)) {
      if (key !== "prototype") P.ObjectDefineProperty(to, key, P.ObjectGetOwnPropertyDescriptor(from, key));
    }
  };

  const callable = { __proto__: null, Collator: true, DateTimeFormat: true, NumberFormat: true };
  for (const name of P.ReflectOwnKeys(Intl)) {
    const native = Intl[name];
    if (typeof native !== "function" || native.prototype === undefined) continue;
    const wrapper = function (...args) {
      if (new.target === undefined && !callable[name]) throw new P.TypeError("Constructor Intl." + name + " requires 'new'");
      spend();
      return P.ReflectConstruct(native, args, new.target ?? wrapper);
    };
    copy(native, wrapper);
    P.ObjectDefineProperty(wrapper, "prototype", { __proto__: null, value: native.prototype, writable: false });
    const own = P.ObjectGetOwnPropertyDescriptor(native.prototype, "constructor");
    P.ObjectDefineProperty(native.prototype, "constructor", { __proto__: null, ...own, value: wrapper });
    P.ObjectDefineProperty(Intl, name, { __proto__: null, ...P.ObjectGetOwnPropertyDescriptor(Intl, name), value: wrapper });
  }

  // Each holds a break iterator.
  const segment = Intl.Segmenter.prototype.segment;
  const { segment: counted } = {
    segment(input) {
      spend();
      return P.ReflectApply(segment, this, [input]);
    },
  };
  P.ObjectDefineProperty(Intl.Segmenter.prototype, "segment", {
    __proto__: null,
    value: counted,
    writable: true,
    enumerable: false,
    configurable: true,
  });
})(globalThis.__zero);
