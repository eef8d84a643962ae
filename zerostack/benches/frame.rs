//! The cost of a frame beside its floors, measured in turns in one process.
//!
//! Prints one JSON row a line: `{bench, case, median, p95, unit, against, ratio}`. `ZEROSTACK_BENCH_SAMPLES` sets how many
//! samples each case gets (default 400).

use std::future::Future;
use std::hint::black_box;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use deno_core::{Extension, JsRuntime, PollEventLoopOptions, RuntimeOptions, v8};
use zero_contracts::{CancelToken, Error};
use zero_frame_snapshot::{EXTENSION, FRAME_SNAPSHOT};
use zerostack::frame::{CallHandler, CallReply, CallRequest, FrameSpec, run};

struct One;

impl CallHandler for One {
    fn call(&self, _: CallRequest) -> Pin<Box<dyn Future<Output = Result<CallReply, Error>> + Send>> {
        Box::pin(async { Ok(CallReply::json("1")) })
    }
}

fn frame(source: &str) {
    let spec = FrameSpec {
        source: source.to_owned(),
        ..FrameSpec::default()
    };
    let outcome = run(spec, Arc::new(One), &CancelToken::new());
    assert!(black_box(outcome).settled.is_ok());
}

/// deno_core alone: a thread, a runtime from the same snapshot, the same program as a script, the event loop.
fn bare_runtime() {
    let thread = std::thread::spawn(|| {
        let tokio = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .expect("a runtime");
        tokio.block_on(async {
            let mut runtime = JsRuntime::new(RuntimeOptions {
                extensions: vec![Extension {
                    name: EXTENSION,
                    ..Extension::default()
                }],
                startup_snapshot: Some(FRAME_SNAPSHOT),
                ..RuntimeOptions::default()
            });
            let promise = runtime
                .execute_script("cell", "(async () => { return 1 })()")
                .expect("it runs");
            let resolved = runtime.resolve(promise);
            let value = runtime
                .with_event_loop_promise(Box::pin(resolved), PollEventLoopOptions::default())
                .await;
            assert!(black_box(value).is_ok());
        });
    });
    thread.join().expect("it ends");
}

/// V8 alone: an isolate with one context, from V8's own snapshot.
fn bare_isolate() {
    let mut isolate = v8::Isolate::new(v8::CreateParams::default());
    v8::scope!(let scope, &mut isolate);
    black_box(v8::Context::new(scope, v8::ContextOptions::default()));
}

fn main() {
    let samples = std::env::var("ZEROSTACK_BENCH_SAMPLES")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(400);
    type Case<'a> = (&'a str, Option<usize>, &'a dyn Fn());
    // Name, the case it is compared with, and the work.
    let cases: [Case<'_>; 5] = [
        ("bare isolate and context", None, &bare_isolate),
        ("bare JsRuntime, own thread", None, &bare_runtime),
        ("no-op cell", Some(1), &|| frame("return 1")),
        ("no-op cell against an isolate", Some(0), &|| frame("return 1")),
        ("cell with 100 calls", Some(1), &|| {
            frame("for (let i = 0; i < 100; i++) await z.read('a'); return 1")
        }),
    ];
    // The frame initialises V8 as it wants it, so it goes first.
    for (_, _, work) in cases.iter().rev() {
        for _ in 0..20 {
            work();
        }
    }
    let mut times: Vec<Vec<Duration>> = vec![Vec::new(); cases.len()];
    for _ in 0..samples {
        for ((_, _, work), times) in cases.iter().zip(&mut times) {
            let start = Instant::now();
            work();
            times.push(start.elapsed());
        }
    }
    let quantile = |times: &mut Vec<Duration>, q: f64| {
        times.sort_unstable();
        times[((times.len() - 1) as f64 * q).round() as usize].as_secs_f64() * 1e3
    };
    let medians: Vec<f64> = times.iter_mut().map(|times| quantile(times, 0.5)).collect();
    for (index, (case, against, _)) in cases.iter().enumerate() {
        let row = serde_json::json!({
            "bench": "frame",
            "case": case,
            "median": medians[index],
            "p95": quantile(&mut times[index], 0.95),
            "unit": "ms",
            "against": against.map(|other| cases[other].0),
            "ratio": against.map(|other| medians[index] / medians[other]),
        });
        println!("{row}");
    }
}
