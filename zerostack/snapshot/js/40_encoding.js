// TextEncoder, TextDecoder, atob, btoa, structuredClone. The conversions are the host's; see `natives` in the frame.
"use strict";

((bag) => {
  const { P } = bag;

  class TextEncoder {
    get encoding() {
      return "utf-8";
    }

    encode(text = "") {
      return bag.host(bag.native.ENCODE, P.String(text));
    }

    encodeInto(text, into) {
      const source = P.String(text);
      const size = P.TypedArrayLength(into);
      let read = 0;
      let written = 0;
      while (read < source.length) {
        const unit = P.StringCharCodeAt(source, read);
        let point = unit;
        let units = 1;
        if (unit >= 0xd800 && unit < 0xe000) {
          const next = read + 1 < source.length ? P.StringCharCodeAt(source, read + 1) : 0;
          if (unit < 0xdc00 && next >= 0xdc00 && next < 0xe000) {
            point = 0x10000 + ((unit - 0xd800) << 10) + (next - 0xdc00);
            units = 2;
          } else {
            point = 0xfffd;
          }
        }
        const bytes = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
        if (written + bytes > size) break;
        if (bytes === 1) {
          into[written] = point;
        } else {
          for (let i = bytes - 1, rest = point; i > 0; i--, rest >>= 6) into[written + i] = 0x80 | (rest & 0x3f);
          into[written] = (bytes === 2 ? 0xc0 : bytes === 3 ? 0xe0 : 0xf0) | (point >> (6 * (bytes - 1)));
        }
        read += units;
        written += bytes;
      }
      return { read, written };
    }
  }
  P.tag(TextEncoder.prototype, "TextEncoder");

  // A view of any buffer source; everything else is refused.
  const bytesOf = (input) => {
    if (input === undefined) return new P.Uint8Array(0);
    const cls = bag.host(bag.native.CLASSIFY, input);
    const { BYTES, BUFFER, DATAVIEW, OTHER_ARRAY } = bag.classes;
    if (cls === BYTES || cls === BUFFER || cls === DATAVIEW || cls === OTHER_ARRAY) return bag.host(bag.native.VIEW, input);
    throw new P.TypeError("The input must be an ArrayBuffer, a typed array or a DataView");
  };

  class TextDecoder {
    #encoding;
    #fatal;
    #ignoreBOM;
    #pending = new P.Uint8Array(0);
    #started = false;

    constructor(label = "utf-8", options = undefined) {
      const name = bag.host(bag.native.ENCODING, P.String(label));
      if (name === undefined) {
        throw new P.RangeError("The encoding '" + P.StringSlice(P.String(label), 0, 64) +
          "' is not supported: use utf-8, utf-16le, utf-16be or windows-1252");
      }
      this.#encoding = name;
      this.#fatal = !!options?.fatal;
      this.#ignoreBOM = !!options?.ignoreBOM;
    }

    get encoding() {
      return this.#encoding;
    }

    get fatal() {
      return this.#fatal;
    }

    get ignoreBOM() {
      return this.#ignoreBOM;
    }

    decode(input = undefined, options = undefined) {
      const stream = !!options?.stream;
      const pending = this.#pending;
      this.#pending = new P.Uint8Array(0);
      const keepBom = this.#ignoreBOM || this.#started;
      // [text, bytes of an unfinished character at the end, whether any byte was consumed]
      const answer = bag.host(bag.native.DECODE, this.#encoding, pending, bytesOf(input), this.#fatal, keepBom, stream);
      if (answer === undefined) {
        this.#started = false;
        throw new P.TypeError("The encoded data is not valid " + this.#encoding);
      }
      this.#pending = answer[1];
      this.#started = stream && (this.#started || answer[2]);
      return answer[0];
    }
  }
  P.tag(TextDecoder.prototype, "TextDecoder");

  const { atob, btoa, structuredClone } = {
    atob(data) {
      const text = P.String(data);
      const bytes = bag.host(bag.native.UNBASE64, text);
      if (bytes === undefined) {
        throw new bag.DOMException("The string is not correctly encoded base64", "InvalidCharacterError");
      }
      return bag.host(bag.native.LATIN1_TEXT, bytes);
    },
    btoa(data) {
      const bytes = bag.host(bag.native.LATIN1_BYTES, P.String(data));
      if (bytes === undefined) {
        throw new bag.DOMException("The string has characters beyond Latin-1", "InvalidCharacterError");
      }
      return bag.host(bag.native.BASE64, bytes);
    },
    structuredClone(value, options = undefined) {
      const transfer = options?.transfer;
      const buffers = P.list([]);
      if (transfer !== undefined) {
        if (!P.ArrayIsArray(transfer)) throw new P.TypeError("transfer must be an array");
        for (let i = 0; i < transfer.length; i++) {
          buffers[i] = transfer[i];
          if (bag.host(bag.native.CLASSIFY, buffers[i]) !== bag.classes.BUFFER) {
            throw new bag.DOMException("Only an ArrayBuffer can be transferred", "DataCloneError");
          }
        }
      }
      const copy = bag.host(bag.native.CLONE, value);
      for (let i = 0; buffers[i] !== undefined; i++) P.ArrayBufferTransfer(buffers[i]);
      return copy;
    },
  };

  // The host says why a value cannot be cloned; the class is the platform's.
  bag.dataCloneError = (message) => new bag.DOMException(message, "DataCloneError");

  for (const made of [TextEncoder, TextDecoder]) P.ObjectFreeze(made);
  bag.encoding = { __proto__: null, TextEncoder, TextDecoder, atob, btoa, structuredClone };
})(globalThis.__zero);
