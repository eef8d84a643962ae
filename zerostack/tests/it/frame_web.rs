//! The small web interfaces of a frame.

use serde_json::json;

use crate::frame_support::{failure, value};

#[test]
fn text_is_encoded_and_decoded() {
    assert_eq!(
        value("return Array.from(new TextEncoder().encode('aé€😀\\ud800'))"),
        json!([97, 195, 169, 226, 130, 172, 240, 159, 152, 128, 239, 191, 189])
    );
    assert_eq!(
        value(
            "const a = new Uint8Array(5); const r = new TextEncoder().encodeInto('a€é', a); return [r, Array.from(a)]"
        ),
        json!([{"read": 2, "written": 4}, [97, 226, 130, 172, 0]])
    );
    assert_eq!(
        value("return new TextDecoder().decode(new Uint8Array([0xef, 0xbb, 0xbf, 104, 105, 0xff]))"),
        json!("hi\u{fffd}")
    );
    assert_eq!(
        value(
            "return new TextDecoder('utf8', {ignoreBOM: true}).decode(new Uint8Array([0xef, 0xbb, 0xbf, 104]).buffer)"
        ),
        json!("\u{feff}h")
    );
    assert_eq!(
        value("return new TextDecoder('utf-16le').decode(new Uint16Array([0x68, 0x20ac]))"),
        json!("h€")
    );
    assert_eq!(
        value(
            "return [new TextDecoder('latin1').encoding, new TextDecoder('ascii').decode(new Uint8Array([0xe9, 0x80]))]"
        ),
        json!(["windows-1252", "é€"])
    );
    assert_eq!(value("return new TextDecoder().decode()"), json!(""));
    assert_eq!(
        failure("new TextDecoder('utf-8', {fatal: true}).decode(new Uint8Array([0xc3]))").2,
        "TypeError: The encoded data is not valid utf-8"
    );
    assert_eq!(
        failure("new TextDecoder('shift_jis')").2,
        "RangeError: The encoding 'shift_jis' is not supported: use utf-8, utf-16le, utf-16be or windows-1252"
    );
    assert_eq!(
        failure("new TextDecoder().decode('text')").2,
        "TypeError: The input must be an ArrayBuffer, a typed array or a DataView"
    );
    // Streams cut anywhere give what the whole gives.
    let source = "
        const results = [];
        for (const [label, bytes] of [['utf-8', new TextEncoder().encode('\\ufeffaé€😀z')], ['utf-16le', new Uint8Array(new Uint16Array([0xfeff, 97, 0xd83d, 0xde00]).buffer)]]) {
            const whole = new TextDecoder(label).decode(bytes);
            for (let i = 0; i <= bytes.length; i++) for (let j = i; j <= bytes.length; j++) {
                const d = new TextDecoder(label, {fatal: true});
                const text = d.decode(bytes.subarray(0, i), {stream: true}) + d.decode(bytes.subarray(i, j), {stream: true}) + d.decode(bytes.subarray(j));
                if (text !== whole) results.push([label, i, j, text]);
            }
            results.push(whole);
        }
        return results";
    assert_eq!(value(source), json!(["aé€😀z", "a😀"]));
}

#[test]
fn base64_is_forgiving_as_the_standard_says() {
    assert_eq!(
        value("return [btoa('aé\\0'), atob('YWLp'), atob(' Y W\\nI= '), atob('YWI'), atob('')]"),
        json!(["YekA", "abé", "ab", "ab", ""])
    );
    for bad in ["'a'", "'ab=c'", "'a==='", "'ab='", "'*'"] {
        assert_eq!(
            failure(&format!("atob({bad})")).2,
            "InvalidCharacterError: The string is not correctly encoded base64",
            "{bad}"
        );
    }
    assert_eq!(
        failure("btoa('€')").2,
        "InvalidCharacterError: The string has characters beyond Latin-1"
    );
}

#[test]
fn values_are_cloned_by_structure() {
    let source = "
        const a = {m: new Map([[1, new Set(['x'])]]), d: new Date(5), b: new Uint8Array([1]), e: new RangeError('r'), r: /x/gi, n: 5n, u: undefined};
        a.self = a;
        const c = structuredClone(a);
        a.b[0] = 9;
        const buffer = new ArrayBuffer(3), moved = structuredClone(buffer, {transfer: [buffer]});
        return [c !== a, c.self === c, c.m.get(1).has('x'), c.d.getTime(), c.b[0], c.e instanceof RangeError, c.e.message, String(c.r), String(c.n), 'u' in c,
            buffer.byteLength, moved.byteLength]";
    assert_eq!(
        value(source),
        json!([true, true, true, 5, 1, true, "r", "/x/gi", "5", true, 0, 3])
    );
    assert_eq!(
        failure("structuredClone(() => 1)").2,
        "DataCloneError: () => 1 could not be cloned."
    );
    assert_eq!(
        value("try { structuredClone(Symbol('x')) } catch (e) { return [e instanceof DOMException, e.name, e.code] }"),
        json!([true, "DataCloneError", 25])
    );
    assert_eq!(
        value("class A { #x = 1; y = 2 } return structuredClone(new A())"),
        json!({"y": 2})
    );
    assert_eq!(
        failure("structuredClone(z)").2,
        "DataCloneError: (...args) => call(0, \"read\", args) could not be cloned."
    );
}

#[test]
fn urls_are_parsed_and_changed() {
    let source = "
        const u = new URL('../x/./y?a=1&b=2#h', 'HTTPS://user:p%40ss@Exämple.com:8443/a/b/c');
        const before = [u.href, u.protocol, u.username, u.password, u.host, u.hostname, u.port, u.pathname, u.search, u.hash, u.origin];
        u.port = '443'; u.pathname = '/sp ace'; u.hash = ''; u.searchParams.append('c', 'é &'); u.searchParams.delete('a'); u.host = 'other.org'; u.protocol = 'http';
        return [before, u.href, String(u), JSON.stringify(u)]";
    assert_eq!(
        value(source),
        json!([
            [
                "https://user:p%40ss@xn--exmple-cua.com:8443/a/x/y?a=1&b=2#h",
                "https:",
                "user",
                "p%40ss",
                "xn--exmple-cua.com:8443",
                "xn--exmple-cua.com",
                "8443",
                "/a/x/y",
                "?a=1&b=2",
                "#h",
                "https://xn--exmple-cua.com:8443"
            ],
            "http://user:p%40ss@other.org/sp%20ace?b=2&c=%C3%A9+%26",
            "http://user:p%40ss@other.org/sp%20ace?b=2&c=%C3%A9+%26",
            "\"http://user:p%40ss@other.org/sp%20ace?b=2&c=%C3%A9+%26\""
        ])
    );
    assert_eq!(
        value(
            "return [URL.canParse('x'), URL.canParse('x', 'http://a'), URL.parse('nope'), URL.parse('http://b').href]"
        ),
        json!([false, true, null, "http://b/"])
    );
    assert_eq!(failure("new URL('no scheme')").2, "TypeError: Invalid URL: 'no scheme'");
    assert_eq!(
        failure("new URL('http://a').href = 'x'").2,
        "TypeError: Invalid URL: 'x'"
    );
    assert_eq!(
        value(
            "const u = new URL('http://a/?x=1'); const p = u.searchParams; u.search = '?y=2'; return [p.get('x'), p.get('y'), u.searchParams === p]"
        ),
        json!([null, "2", true])
    );
}

#[test]
fn search_parameters_are_a_list() {
    let source = "
        const p = new URLSearchParams('?b=1&a=2&b=3&c&=4&d=%F0%9F%98%80+x');
        const log = [[...p], p.size, p.get('b'), p.getAll('b'), p.has('c'), p.has('b', '9'), p.get('none')];
        p.set('b', 'new'); p.append('e', 'é&='); p.delete('a'); p.delete('d', 'other');
        log.push(p.toString()); p.sort(); log.push(String(p), [...p.keys()], [...p.values()]);
        const each = []; p.forEach((value, key, self) => each.push(key + value + (self === p))); log.push(each.length, each[0]);
        log.push(String(new URLSearchParams({x: 1, y: null})), String(new URLSearchParams([['k', 'v'], ['k', 'w']])), String(new URLSearchParams(new URLSearchParams('q=1'))));
        return log";
    assert_eq!(
        value(source),
        json!([
            [["b", "1"], ["a", "2"], ["b", "3"], ["c", ""], ["", "4"], ["d", "😀 x"]],
            6,
            "1",
            ["1", "3"],
            true,
            false,
            null,
            "b=new&c=&=4&d=%F0%9F%98%80+x&e=%C3%A9%26%3D",
            "=4&b=new&c=&d=%F0%9F%98%80+x&e=%C3%A9%26%3D",
            ["", "b", "c", "d", "e"],
            ["4", "new", "", "😀 x", "é&="],
            5,
            "4true",
            "x=1&y=null",
            "k=v&k=w",
            "q=1"
        ])
    );
    assert_eq!(
        failure("new URLSearchParams([['a']])").2,
        "TypeError: Each item must be a [name, value] pair"
    );
}

#[test]
fn timers_fire_in_order() {
    let source = "
        const log = [];
        await new Promise(resolve => {
            setTimeout(() => log.push('late'), 15);
            setTimeout((a, b) => log.push(a + b), 5, 'ar', 'gs');
            clearTimeout(setTimeout(() => log.push('never'), 1));
            setTimeout(() => { log.push('zero'); Promise.resolve().then(() => log.push('micro')) });
            setTimeout(() => log.push('after micro'), 0);
            queueMicrotask(() => log.push('first'));
            let n = 0; const id = setInterval(() => { if (++n === 3) { clearInterval(id); log.push('three') } }, 1);
            setTimeout(resolve, 60);
            clearTimeout(); clearTimeout('x'); clearTimeout(12345);
        });
        return [log[0], log.indexOf('zero') < log.indexOf('micro'), log.indexOf('micro') < log.indexOf('after micro'), log.includes('args'), log.includes('three'), log.includes('never'), log.at(-1)]";
    assert_eq!(value(source), json!(["first", true, true, true, true, false, "late"]));
    assert_eq!(
        value("const start = Date.now(); await new Promise(r => setTimeout(r, 30)); return Date.now() - start >= 29"),
        json!(true)
    );
}

#[test]
fn work_can_be_aborted() {
    let source = "
        const log = [], c = new AbortController(), s = c.signal;
        s.onabort = (e) => log.push('on ' + e.type + (e.target === s)); s.addEventListener('abort', () => log.push('listener'));
        const gone = () => log.push('gone'); s.addEventListener('abort', gone); s.removeEventListener('abort', gone);
        s.addEventListener('abort', {handleEvent() { log.push('object') }}); s.addEventListener('other', gone);
        log.push(s.aborted, AbortSignal.any([s]).aborted);
        const any = AbortSignal.any([new AbortController().signal, s]);
        c.abort(); c.abort('again');
        log.push(s.aborted, s.reason.name, s.reason instanceof DOMException, any.aborted, any.reason === s.reason);
        try { s.throwIfAborted() } catch (e) { log.push(e === s.reason) }
        log.push(AbortSignal.abort('why').reason);
        const t = AbortSignal.timeout(5); await new Promise(r => t.addEventListener('abort', r)); log.push(t.reason.name);
        return log";
    assert_eq!(
        value(source),
        json!([
            false,
            false,
            "on aborttrue",
            "listener",
            "object",
            true,
            "AbortError",
            true,
            true,
            true,
            true,
            "why",
            "TimeoutError"
        ])
    );
    assert_eq!(failure("const c = new AbortController(); c.signal.onabort = () => { throw new Error('in listener') }; c.abort(); await null; await null; await null").2, "Error: in listener");
    assert_eq!(failure("new AbortSignal()").2, "TypeError: Illegal constructor");
}

#[test]
fn the_languages_own_globals_are_there() {
    let source = "
        return [new Intl.NumberFormat('de').format(1234.5), new Date(0).toLocaleDateString('en-GB', {timeZone: 'UTC'}), 'ä'.localeCompare('z', 'de') < 0,
            [...new Intl.Segmenter('th', {granularity: 'word'}).segment('สวัสดีครับ')].length > 1, 'ﬁ'.normalize('NFKC'), /\\p{Script=Greek}/u.test('α'),
            Object.groupBy([1, 2], x => x % 2 ? 'odd' : 'even'), [3, 1].toSorted(), new Set([1]).union(new Set([2])).size, Math.f16round(1.1),
            await Array.fromAsync([1]), typeof Iterator.prototype.map, (() => { using x = {[Symbol.dispose]() {}}; return 'using' })(),
            Uint8Array.fromBase64('AQ==')[0], structuredClone(new Float16Array(1)).length, new WeakRef({}).deref() !== undefined]";
    assert_eq!(
        value(source),
        json!(["1.234,5", "01/01/1970", true, true, "fi", true, {"odd": [1], "even": [2]}, [1, 3], 2, 1.099609375, [1], "function", "using", 1, 1, true])
    );
}
