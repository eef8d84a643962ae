// URL and URLSearchParams over the host's parser (the `url` crate).
"use strict";

((bag) => {
  const { P } = bag;
  const MAX_URL = 2 * 1024 * 1024;
  let linked; // Connects the search parameters of a URL with it.

  class URLSearchParams {
    // A list of names and values in turn, and its length.
    #list = P.list([]);
    #length = 0;
    #url = null;

    constructor(init = "") {
      if (init === linked) {
        linked = undefined;
        return;
      }
      if (typeof init === "object" && init !== null) {
        if (typeof init[P.SymbolIterator] === "function") {
          for (const pair of init) {
            if (typeof pair !== "object" || pair === null) throw new P.TypeError("Each item must be a [name, value] pair");
            const { 0: name, 1: value, length } = P.ArrayIsArray(pair) ? pair : [...pair];
            if (length !== 2) throw new P.TypeError("Each item must be a [name, value] pair");
            this.#push(P.String(name), P.String(value));
          }
        } else {
          const keys = P.ObjectKeys(init);
          for (let i = 0; i < keys.length; i++) this.#push(keys[i], P.String(init[keys[i]]));
        }
      } else {
        this.#parse(P.String(init));
      }
    }

    static #of(url, search) {
      const params = new URLSearchParams(linked = {});
      params.#url = url;
      params.#parse(search);
      return params;
    }

    #push(name, value) {
      this.#list[this.#length++] = P.StringToWellFormed(name);
      this.#list[this.#length++] = P.StringToWellFormed(value);
    }

    #parse(text) {
      const flat = bag.host(bag.native.FORM_PARSE, P.StringCharCodeAt(text, 0) === 63 ? P.StringSlice(text, 1) : text);
      this.#list = P.ObjectSetPrototypeOf(flat, null);
      this.#length = flat.length;
    }

    #changed() {
      if (this.#url !== null) setSearch(this.#url, this.toString());
    }

    // Keeps the pairs that `keep` accepts.
    #retain(keep) {
      const list = P.list([]);
      let length = 0;
      for (let i = 0; i < this.#length; i += 2) {
        if (keep(this.#list[i], this.#list[i + 1])) {
          list[length++] = this.#list[i];
          list[length++] = this.#list[i + 1];
        }
      }
      this.#list = list;
      this.#length = length;
    }

    #select(what) {
      const array = P.list([]);
      let length = 0;
      for (let i = 0; i < this.#length; i += 2) {
        array[length++] = what === 0
          ? this.#list[i]
          : what === 1
          ? this.#list[i + 1]
          : P.arrayFrom([this.#list[i], this.#list[i + 1]], 2);
      }
      return P.ArrayPrototypeValues(P.arrayFrom(array, length));
    }

    get size() {
      return this.#length / 2;
    }

    append(name, value) {
      this.#push(P.String(name), P.String(value));
      this.#changed();
    }

    delete(name, value = undefined) {
      const wanted = P.String(name);
      const only = value === undefined ? undefined : P.String(value);
      this.#retain((key, item) => key !== wanted || (only !== undefined && item !== only));
      this.#changed();
    }

    get(name) {
      const wanted = P.String(name);
      for (let i = 0; i < this.#length; i += 2) if (this.#list[i] === wanted) return this.#list[i + 1];
      return null;
    }

    getAll(name) {
      const wanted = P.String(name);
      const found = P.list([]);
      let length = 0;
      for (let i = 0; i < this.#length; i += 2) if (this.#list[i] === wanted) found[length++] = this.#list[i + 1];
      return P.arrayFrom(found, length);
    }

    has(name, value = undefined) {
      const wanted = P.String(name);
      const only = value === undefined ? undefined : P.String(value);
      for (let i = 0; i < this.#length; i += 2) {
        if (this.#list[i] === wanted && (only === undefined || this.#list[i + 1] === only)) return true;
      }
      return false;
    }

    set(name, value) {
      const wanted = P.StringToWellFormed(P.String(name));
      const text = P.StringToWellFormed(P.String(value));
      let met = false;
      for (let i = 0; i < this.#length; i += 2) {
        if (this.#list[i] === wanted && !met) {
          met = true;
          this.#list[i + 1] = text;
          const first = i;
          let at = 0;
          this.#retain((key) => {
            const index = at;
            at += 2;
            return key !== wanted || index === first;
          });
        }
      }
      if (!met) this.#push(wanted, text);
      this.#changed();
    }

    sort() {
      // Insertion sort by UTF-16 code units: stable, and the lists are short.
      for (let i = 2; i < this.#length; i += 2) {
        const name = this.#list[i];
        const value = this.#list[i + 1];
        let j = i;
        for (; j > 0 && this.#list[j - 2] > name; j -= 2) {
          this.#list[j] = this.#list[j - 2];
          this.#list[j + 1] = this.#list[j - 1];
        }
        this.#list[j] = name;
        this.#list[j + 1] = value;
      }
      this.#changed();
    }

    forEach(callback, self = undefined) {
      for (let i = 0; i < this.#length; i += 2) {
        P.ReflectApply(callback, self, [this.#list[i + 1], this.#list[i], this]);
      }
    }

    keys() {
      return this.#select(0);
    }

    values() {
      return this.#select(1);
    }

    entries() {
      return this.#select(2);
    }

    toString() {
      return bag.host(bag.native.FORM_WRITE, P.arrayFrom(this.#list, this.#length));
    }

    static internals() {
      return { of: URLSearchParams.#of, reset: (params, search) => params.#parse(search) };
    }
  }
  const { of, reset } = URLSearchParams.internals();
  delete URLSearchParams.internals;
  P.ObjectDefineProperty(URLSearchParams.prototype, P.SymbolIterator, {
    __proto__: null,
    value: URLSearchParams.prototype.entries,
    writable: true,
    enumerable: false,
    configurable: true,
  });
  P.tag(URLSearchParams.prototype, "URLSearchParams");

  let setSearch;

  const parse = (text, base) =>
    text.length > MAX_URL || (base !== undefined && base.length > MAX_URL)
      ? undefined
      : bag.host(bag.native.URL_PARSE, text, base);

  class URL {
    // The host's answer: a list in the order of `Part` in the frame; 0 is the whole.
    #parts;
    #params = null;

    constructor(url, base = undefined) {
      const text = P.String(url);
      const parts = parse(text, base === undefined ? undefined : P.String(base));
      if (parts === undefined) {
        throw new P.TypeError(
          text.length > MAX_URL
            ? "Invalid URL: longer than " + MAX_URL + " characters"
            : "Invalid URL: '" + P.StringSlice(text, 0, 256) + "'",
        );
      }
      this.#parts = parts;
    }

    static canParse(url, base = undefined) {
      return parse(P.String(url), base === undefined ? undefined : P.String(base)) !== undefined;
    }

    static parse(url, base = undefined) {
      return URL.canParse(url, base) ? new URL(url, base) : null;
    }

    #set(part, value) {
      const parts = bag.host(bag.native.URL_SET, this.#parts[0], part, P.String(value));
      if (parts === undefined) {
        if (part === 0) throw new P.TypeError("Invalid URL: '" + P.StringSlice(P.String(value), 0, 256) + "'");
        return;
      }
      this.#parts = parts;
      if (this.#params !== null && (part === 0 || part === 8)) reset(this.#params, parts[8]);
    }

    static internals() {
      return (url, search) => {
        const parts = bag.host(bag.native.URL_SET, url.#parts[0], 8, search);
        if (parts !== undefined) url.#parts = parts;
      };
    }

    get href() {
      return this.#parts[0];
    }

    set href(value) {
      this.#set(0, value);
    }

    get protocol() {
      return this.#parts[1];
    }

    set protocol(value) {
      this.#set(1, value);
    }

    get username() {
      return this.#parts[2];
    }

    set username(value) {
      this.#set(2, value);
    }

    get password() {
      return this.#parts[3];
    }

    set password(value) {
      this.#set(3, value);
    }

    get host() {
      return this.#parts[4];
    }

    set host(value) {
      this.#set(4, value);
    }

    get hostname() {
      return this.#parts[5];
    }

    set hostname(value) {
      this.#set(5, value);
    }

    get port() {
      return this.#parts[6];
    }

    set port(value) {
      this.#set(6, value);
    }

    get pathname() {
      return this.#parts[7];
    }

    set pathname(value) {
      this.#set(7, value);
    }

    get search() {
      return this.#parts[8];
    }

    set search(value) {
      this.#set(8, value);
    }

    get hash() {
      return this.#parts[9];
    }

    set hash(value) {
      this.#set(9, value);
    }

    get origin() {
      return this.#parts[10];
    }

    get searchParams() {
      return this.#params ??= of(this, this.#parts[8]);
    }

    toString() {
      return this.#parts[0];
    }

    toJSON() {
      return this.#parts[0];
    }
  }
  setSearch = URL.internals();
  delete URL.internals;
  P.tag(URL.prototype, "URL");

  P.ObjectFreeze(URL);
  P.ObjectFreeze(URLSearchParams);
  bag.url = { __proto__: null, URL, URLSearchParams };
})(globalThis.__zero);
