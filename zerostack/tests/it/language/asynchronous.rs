//! Promises, async functions, the order of jobs, timers.

use super::table;

#[test]
fn promises_and_their_order() {
    table(&[
        (
            "const log = []; Promise.resolve().then(() => log.push('micro')); log.push('sync'); await null; log.push('after'); return log",
            "[\"sync\",\"micro\",\"after\"]",
        ),
        (
            "const log = []; setTimeout(() => log.push('timer'), 0); await new Promise((r) => setTimeout(r, 5)); log.push('end'); return log",
            "[\"timer\",\"end\"]",
        ),
        (
            "const log = []; queueMicrotask(() => log.push(1)); Promise.resolve().then(() => log.push(2)); await null; await null; return log",
            "[1,2]",
        ),
        (
            "return await Promise.all([1, Promise.resolve(2), {then(r) { r(3) }}])",
            "[1,2,3]",
        ),
        (
            "return (await Promise.allSettled([Promise.reject(1), 2])).map((x) => x.status)",
            "[\"rejected\",\"fulfilled\"]",
        ),
        (
            "return await Promise.race([new Promise(() => {}), Promise.resolve('fast')])",
            "\"fast\"",
        ),
        (
            "try { await Promise.any([Promise.reject(1)]) } catch (e) { return [e.name, e.errors] }",
            "[\"AggregateError\",[1]]",
        ),
        (
            "const {promise, resolve} = Promise.withResolvers(); setTimeout(resolve, 1, 'later'); return await promise",
            "\"later\"",
        ),
        (
            "return await Promise.try(() => { throw new Error('x') }).catch((e) => e.message)",
            "\"x\"",
        ),
        (
            "const log = []; await (async () => { try { await Promise.reject(1) } catch (e) { log.push(e) } finally { log.push('f') } })(); return log",
            "[1,\"f\"]",
        ),
        (
            "const f = async () => { throw 1 }; const p = f(); return await p.catch((e) => e + 1)",
            "2",
        ),
        (
            "return await Promise.resolve(1).then(2).then((x) => { throw x }).catch((e) => [e]).finally(() => 9)",
            "[1]",
        ),
        (
            "let n = 0; const t = {then(r) { n++; r(n) }}; return [await t, await t]",
            "[1,2]",
        ),
        ("const p = new Promise((r) => { r(1); r(2) }); return await p", "1"),
        (
            "try { await new Promise((r, j) => { r(Promise.reject(new Error('inner'))) }) } catch (e) { return e.message }",
            "\"inner\"",
        ),
        (
            "let p; p = new Promise((r) => setTimeout(() => r(p), 1)); try { await p } catch (e) { return e.name }",
            "\"TypeError\"",
        ),
        (
            "const log = []; const f = async () => { log.push(1); await 0; log.push(3) }; const p = f(); log.push(2); await p; return log",
            "[1,2,3]",
        ),
        (
            "const c = new AbortController(); setTimeout(() => c.abort(new Error('stop')), 1); try { await new Promise((_, j) => c.signal.addEventListener('abort', () => j(c.signal.reason))) } catch (e) { return e.message }",
            "\"stop\"",
        ),
        (
            "const id = setInterval(() => {}, 1); clearInterval(id); return typeof id",
            "\"number\"",
        ),
        (
            "const log = []; { using a = {[Symbol.dispose]() { log.push('a') }}; using b = {[Symbol.dispose]() { log.push('b') }}; log.push('body') } return log",
            "[\"body\",\"b\",\"a\"]",
        ),
        (
            "const log = []; { await using a = {async [Symbol.asyncDispose]() { await null; log.push('a') }}; } return log",
            "[\"a\"]",
        ),
        ("return await (await z.read('a')).name", "\"read\""),
        (
            "const a = await Array.fromAsync((async function* () { yield 1; yield 2 })()); return a",
            "[1,2]",
        ),
    ]);
}
