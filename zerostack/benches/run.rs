//! What a command costs inside a cell, from the call to its answer, beside a bare spawn and wait of the same run.
//!
//! Prints one JSON row a line: `{bench, case, median, p95, unit, against, ratio}`; `against` is the median of the floor.
//! Words given as arguments choose: `private`, `baseline`, `empty`, `large`, `codemod`, `stream`.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use serde_json::Value;
use zero_contracts::response::Outcome;
use zero_contracts::{CancelToken, FileEngine, Operation, SourceView};
use zerostack::{Capture, KernelConfig, Policy, StoreLocation, ZeroKernel};

/// Cells per case.
const CELLS: usize = 15;
/// Commands per cell.
const RUNS: usize = 5;
/// Files of the large workspace.
const FILES: usize = 10_000;

/// A policy that denies nothing and notes when each call arrived.
#[derive(Default)]
struct Clock(Mutex<Vec<Instant>>);

impl Policy for Clock {
    fn check(&self, _: Operation, _: &[Value], _: &CancelToken) -> Result<(), String> {
        self.0.lock().expect("nothing panics here").push(Instant::now());
        Ok(())
    }
}

/// Bytes of the streaming row.
const STREAM: u64 = 100_000_000;

/// Whether a part is to be measured: all its words were given, or none at all.
fn chosen(words: &[&str]) -> bool {
    let given: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    given.is_empty() || given.iter().all(|given| words.contains(&given.as_str()))
}

fn main() {
    for (capture, files) in [
        (Capture::PreferPrivate, 0),
        (Capture::PreferPrivate, FILES),
        (Capture::Baseline, 0),
        (Capture::Baseline, FILES),
    ] {
        if !chosen(&[word(capture), if files == 0 { "empty" } else { "large" }]) {
            continue;
        }
        let root = tempfile::tempdir().expect("a temporary directory");
        fill(root.path(), files);
        let clock = Arc::new(Clock::default());
        let config = KernelConfig {
            store: StoreLocation::Transient,
            policy: Some(Arc::clone(&clock) as Arc<dyn Policy>),
            capture,
            ..KernelConfig::new(root.path())
        };
        let kernel = ZeroKernel::open(config).expect("the kernel opens");
        let cell = || {
            clock.0.lock().expect("nothing panics here").clear();
            let response = kernel.execute_cell(&format!(
                "for (let n = 0; n < {RUNS}; n += 1) {{ await z.run(['true']); await z.state.get('x') }}"
            ));
            assert_eq!(response.outcome, Outcome::Completed, "{:?}", response.error);
            let times = clock.0.lock().expect("nothing panics here");
            // The call that follows arrives when the answer has reached the cell.
            times
                .chunks_exact(2)
                .map(|pair| (pair[1] - pair[0]).as_secs_f64() * 1e3)
                .collect::<Vec<_>>()
        };
        let cold = cell();
        let name = format!(
            "{}, {}",
            if files == 0 { "empty workspace" } else { "10,000 files" },
            tier(&kernel)
        );
        let (mut firsts, mut laters, mut floors, mut walks) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let live = fszero::FsZero::open(fszero::FsConfig::new(root.path(), root.path().with_extension("walks")))
            .expect("the engine opens")
            .live();
        for _ in 0..CELLS {
            // In turns, so that all meet the same machine.
            for _ in 0..RUNS {
                floors.push(time(|| {
                    Command::new("true")
                        .stdin(Stdio::null())
                        .stdout(Stdio::null())
                        .status()
                        .expect("true");
                }));
            }
            walks.push(time(|| (0..2).for_each(|_| walk(&*live))));
            let times = cell();
            firsts.push(times[0]);
            laters.extend(&times[1..]);
        }
        let floor = median(&floors);
        row(&format!("z.run true, {name}, very first"), &cold[..1], floor);
        row(&format!("z.run true, {name}, first of a cell"), &firsts, floor);
        row(&format!("z.run true, {name}, later"), &laters, floor);
        if files > 0 {
            row(
                &format!("z.run true, {name}, later, against two stat walks"),
                &laters,
                median(&walks),
            );
        }
        let _ = std::fs::remove_dir_all(root.path().with_extension("walks"));
    }
    codemod();
    if chosen(&["stream"]) {
        stream();
    }
}

fn word(capture: Capture) -> &'static str {
    match capture {
        Capture::Baseline => "baseline",
        _ => "private",
    }
}

/// A hundred megabytes of output, counted, hashed and kept in the store, against `cat` into a file beside the store.
fn stream() {
    let root = tempfile::tempdir().expect("a temporary directory");
    let clock = Arc::new(Clock::default());
    let kernel = ZeroKernel::open(KernelConfig {
        store: StoreLocation::Transient,
        policy: Some(Arc::clone(&clock) as Arc<dyn Policy>),
        capture: Capture::Baseline,
        ..KernelConfig::new(root.path())
    })
    .expect("the kernel opens");
    let aside = tempfile::tempdir().expect("a temporary directory");
    let source = aside.path().join("source");
    let (mut ours, mut floors) = (Vec::new(), Vec::new());
    for n in 0..9_u64 {
        // Another content each time: what the store has already is not written again.
        let bytes: Vec<u8> = (0..STREAM / 8)
            .flat_map(|at| (at ^ (n << 40)).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes())
            .collect();
        std::fs::write(&source, &bytes).expect("writable");
        drop(bytes);
        // A new file each time, as the object is one: pages that were just given back are cheaper to get.
        let into = std::fs::File::create(aside.path().join(format!("target-{n}"))).expect("writable");
        floors.push(speed(time(|| {
            let done = Command::new("cat").arg(&source).stdout(into).status();
            assert!(done.expect("cat").success());
        })));
        let line = Value::from(source.to_str().expect("a path of text"));
        let program = format!("await z.run(['cat', {line}], {{ visible: 100 }}); await z.state.get('x')");
        clock.0.lock().expect("nothing panics here").clear();
        let response = kernel.execute_cell(&program);
        assert_eq!(response.outcome, Outcome::Completed, "{:?}", response.error);
        let times = clock.0.lock().expect("nothing panics here");
        ours.push(speed((times[1] - times[0]).as_secs_f64() * 1e3));
    }
    throughput(
        "100 MB of stdout of z.run to the store, against cat > file",
        &ours,
        median(&floors),
    );
}

/// Megabytes a second.
fn speed(milliseconds: f64) -> f64 {
    STREAM as f64 / 1e3 / milliseconds
}

/// The tier that commands of this kernel get, in words.
fn tier(kernel: &ZeroKernel) -> String {
    let response = kernel.execute_cell("await z.run(['true'])");
    let tier = serde_json::to_value(response.effects.capture).expect("a word");
    format!("tier {}", tier.as_str().unwrap_or_default())
}

/// A thousand files changed by `sed -i`, with the commit, against the same without a kernel.
fn codemod() {
    const CHANGED: usize = 1_000;
    const SAMPLES: usize = 7;
    for capture in [Capture::PreferPrivate, Capture::Baseline] {
        if !chosen(&[word(capture), "codemod"]) {
            continue;
        }
        let (root, plain) = (
            tempfile::tempdir().expect("a temporary directory"),
            tempfile::tempdir().expect("a temporary directory"),
        );
        fill(root.path(), CHANGED);
        fill(plain.path(), CHANGED);
        let kernel = ZeroKernel::open(KernelConfig {
            store: StoreLocation::Transient,
            capture,
            ..KernelConfig::new(root.path())
        })
        .expect("the kernel opens");
        let name = tier(&kernel);
        let (mut ours, mut floors, mut durable) = (Vec::new(), Vec::new(), Vec::new());
        for n in 0..SAMPLES {
            let line = format!("sed -i 's/content.*of/content {n} of/' d*/*.txt");
            floors.push(time(|| {
                let done = Command::new("sh")
                    .args(["-c", &line])
                    .current_dir(plain.path())
                    .status();
                assert!(done.expect("sh").success());
            }));
            // What a program pays that wants to be as sure of its files as a commit is.
            durable.push(floors[n] + time(|| flush(plain.path())));
            ours.push(time(|| {
                let response = kernel.execute_cell(&format!("await z.run({})", Value::from(line.as_str())));
                assert_eq!(response.outcome, Outcome::Completed, "{:?}", response.error);
                assert_eq!(response.effects.receipts, CHANGED as u64);
            }));
        }
        row(
            &format!("1,000 files by sed -i and their commit, {name}, against sed -i"),
            &ours,
            median(&floors),
        );
        row(
            &format!("1,000 files by sed -i and their commit, {name}, against sed -i and a flush of each file"),
            &ours,
            median(&durable),
        );
    }
}

/// Flushes every file below a directory, and every directory.
fn flush(root: &Path) {
    for entry in std::fs::read_dir(root).expect("readable") {
        let path = entry.expect("readable").path();
        if path.is_dir() {
            flush(&path);
        } else {
            std::fs::File::open(&path)
                .and_then(|file| file.sync_all())
                .expect("flushed");
        }
    }
    std::fs::File::open(root)
        .and_then(|directory| directory.sync_all())
        .expect("flushed");
}

/// Makes that many small files, a hundred in each directory.
fn fill(root: &Path, files: usize) {
    for n in 0..files {
        let directory = root.join(format!("d{:03}", n / 100));
        if n % 100 == 0 {
            std::fs::create_dir(&directory).expect("writable");
        }
        std::fs::write(directory.join(format!("f{n:05}.txt")), format!("content of {n}\n")).expect("writable");
    }
}

/// Looks at every file once.
fn walk(live: &dyn SourceView) {
    let scope = zero_contracts::source::WalkScope::default();
    live.walk(&scope, &CancelToken::new(), &|_| std::ops::ControlFlow::Continue(()))
        .expect("walked");
}

fn time(work: impl FnOnce()) -> f64 {
    let begun = Instant::now();
    work();
    begun.elapsed().as_secs_f64() * 1e3
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values
}

fn median(values: &[f64]) -> f64 {
    sorted(values)[values.len() / 2]
}

fn row(case: &str, values: &[f64], against: f64) {
    print(case, values, "ms", against);
}

fn throughput(case: &str, values: &[f64], against: f64) {
    print(case, values, "MB/s", against);
}

fn print(case: &str, values: &[f64], unit: &str, against: f64) {
    let round = |value: f64| (value * 1e3).round() / 1e3;
    let p95 = sorted(values)[(values.len() * 95 / 100).min(values.len() - 1)];
    let row = serde_json::json!({
        "bench": "run",
        "case": case,
        "median": round(median(values)),
        "p95": round(p95),
        "unit": unit,
        "against": round(against),
        "ratio": round(median(values) / against),
    });
    println!("{row}");
}
