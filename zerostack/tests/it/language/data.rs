//! Numbers, texts, regular expressions, dates, JSON, typed arrays, arrays.

use super::table;

#[test]
fn numbers_and_texts() {
    table(&[
        (
            "return [0.1 + 0.2, 1e21 + '', (25).toString(36), (0.000001234).toString(), Number('0x1f'), Number(''), parseInt('12px')]",
            "[0.30000000000000004,\"1e+21\",\"p\",\"0.000001234\",31,0,12]",
        ),
        (
            "return [2n ** 64n === 18446744073709551616n, -7n / 2n === -3n, BigInt.asUintN(8, 257n) === 1n, 1n < 2, 2n == 2]",
            "[true,true,true,true,true]",
        ),
        ("try { 1n + 1 } catch (e) { return e.name }", "\"TypeError\""),
        (
            "return [Math.hypot(3, 4), Math.sign(-3), Math.trunc(-1.5), Math.clz32(1), Math.fround(5.5), Math.imul(3, 4)]",
            "[5,-1,-1,31,5.5,12]",
        ),
        (
            "return ['abc'.at(-1), 'a-b-c'.replaceAll('-', '+'), 'x'.padStart(3, 'ab'), ' t '.trim(), 'abc'.slice(-2), 'ab'.repeat(2)]",
            "[\"c\",\"a+b+c\",\"abx\",\"t\",\"bc\",\"abab\"]",
        ),
        (
            "return ['😀'.length, [...'😀'].length, '😀'.codePointAt(0), String.fromCodePoint(128512), 'e\\u0301'.normalize('NFC').length]",
            "[2,1,128512,\"😀\",1]",
        ),
        (
            "return ['ß'.toUpperCase(), 'İ'.toLowerCase().length, 'ä'.localeCompare('z', 'de') < 0, 'a\\ud800'.isWellFormed()]",
            "[\"SS\",2,true,false]",
        ),
        (
            "return 'a1b22'.replace(/(?<d>\\d+)/g, (m, d, at, s, g) => `<${g.d}@${at}>`)",
            "\"a<1@1>b<22@3>\"",
        ),
        (
            "return [...'a1b2'.matchAll(/([a-z])(\\d)/g)].map((m) => m[1] + m[2] + m.index)",
            "[\"a10\",\"b22\"]",
        ),
        (
            "const r = /a/gy; r.lastIndex = 1; return [r.test('ba'), r.lastIndex, r.test('ba'), r.flags]",
            "[true,2,false,\"gy\"]",
        ),
        (
            "return ['2020-01-02'.match(/(?<y>\\d+)-(?<m>\\d+)/).groups.m, /(?<=\\$)\\d+/.exec('$42')[0], /^.$/su.test('\\n'), 'aBc'.search(/b/i)]",
            "[\"01\",\"42\",true,1]",
        ),
        (
            "return [new Date(0).toISOString(), Date.UTC(2020, 1, 29), new Date('2020-02-30T00:00:00Z').getTime(), JSON.stringify(new Date(NaN))]",
            "[\"1970-01-01T00:00:00.000Z\",1582934400000,1583020800000,\"null\"]",
        ),
        (
            "return new Intl.NumberFormat('de', {style: 'currency', currency: 'EUR'}).format(1234.5).replace(/\\s/g, ' ')",
            "\"1.234,50 €\"",
        ),
        (
            "return [encodeURIComponent('a b&ü'), decodeURIComponent('%C3%BC'), escape('ü'), btoa('hi'), atob('aGk=')]",
            "[\"a%20b%26%C3%BC\",\"ü\",\"%FC\",\"aGk=\",\"hi\"]",
        ),
        (
            "try { decodeURIComponent('%') } catch (e) { return e.name }",
            "\"URIError\"",
        ),
    ]);
}

#[test]
fn arrays_json_and_bytes() {
    table(&[
        (
            "return [[3, 1, 10].sort(), [3, 1, 10].toSorted((a, b) => a - b), [1, 2, 3].toReversed(), [1, 2, 3].with(1, 9)]",
            "[[1,10,3],[1,3,10],[3,2,1],[1,9,3]]",
        ),
        (
            "return [[1, [2, [3, [4]]]].flat(Infinity), [1, 2].flatMap((x) => [x, x]), [1, 2, 3, 4].findLast((x) => x % 2), [1, 2, 3].at(-1)]",
            "[[1,2,3,4],[1,1,2,2],3,3]",
        ),
        (
            "const a = [1, , 3]; return [a.length, 1 in a, a.map((x) => 2), Object.keys(a)]",
            "[3,false,[2,null,2],[\"0\",\"2\"]]",
        ),
        (
            "const a = [1, 2, 3]; a.length = 1; a[3] = 4; return [a, a.splice(1, 1, 'x', 'y'), a]",
            "[[1,\"x\",\"y\",null,4],[null],[1,\"x\",\"y\",null,4]]",
        ),
        (
            "return [[1, 2, 3].includes(NaN), [NaN].includes(NaN), [NaN].indexOf(NaN), [1, 2, 3].copyWithin(0, 1), Array.of(7).fill(1)]",
            "[false,true,-1,[2,3,3],[1]]",
        ),
        ("return [1, 2, 3].reduceRight((a, b) => a + '-' + b)", "\"3-2-1\""),
        (
            "const words = ['b1', 'a1', 'b0']; return words.sort((x, y) => x[0] < y[0] ? -1 : x[0] > y[0] ? 1 : 0)",
            "[\"a1\",\"b1\",\"b0\"]",
        ),
        (
            "return JSON.stringify({a: [1, undefined, () => 1], b: undefined, c: new Date(0), d: {toJSON: () => 'j'}}, null, 1)",
            "\"{\\n \\\"a\\\": [\\n  1,\\n  null,\\n  null\\n ],\\n \\\"c\\\": \\\"1970-01-01T00:00:00.000Z\\\",\\n \\\"d\\\": \\\"j\\\"\\n}\"",
        ),
        (
            "return JSON.parse('{\"a\": [1, {\"b\": 2}]}', (k, v) => typeof v === 'number' ? v + 1 : v)",
            "{\"a\":[2,{\"b\":3}]}",
        ),
        (
            "return [JSON.parse('{\"__proto__\": 1}').__proto__, JSON.stringify('\\u2028\\ud800'), JSON.rawJSON('1.0').rawJSON]",
            "[1,\"\\\"\u{2028}\\\\ud800\\\"\",\"1.0\"]",
        ),
        (
            "try { JSON.parse('{a: 1}') } catch (e) { return e.name }",
            "\"SyntaxError\"",
        ),
        (
            "const b = new Uint8Array([1, 2, 3, 4]); return [new DataView(b.buffer).getUint16(1), [...new Uint16Array(b.buffer)], b.subarray(1, 3).byteOffset, new Uint8ClampedArray([300, -1])[0]]",
            "[515,[513,1027],1,255]",
        ),
        (
            "return [new Float32Array([1.1])[0] === Math.fround(1.1), new BigInt64Array([-1n])[0] === -1n, new Float16Array([65504])[0], Uint8Array.from('12')]",
            "[true,true,65504,{\"base64\":\"AQI=\"}]",
        ),
        (
            "return [new Uint8Array([222, 173]).toHex(), Uint8Array.fromBase64('3q0=').length, new TextDecoder().decode(new TextEncoder().encode('€'))]",
            "[\"dead\",2,\"€\"]",
        ),
        (
            "const a = new Uint8Array(2); a[5] = 1; a[-1] = 2; return [Object.keys(a), a.at(-1)]",
            "[[\"0\",\"1\"],0]",
        ),
        (
            "return [new URL('../x?q=1#h', 'https://e.org/a/b').href, new URLSearchParams('a=1&a=2').getAll('a')]",
            "[\"https://e.org/x?q=1#h\",[\"1\",\"2\"]]",
        ),
    ]);
}
