//! What a command costs inside a cell, from the call to its answer, beside a bare spawn and wait of the same run.
//!
//! Prints one JSON row a line: `{bench, case, median, p95, unit, against, ratio}`; `against` is the median of the floor.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use serde_json::Value;
use zero_contracts::response::Outcome;
use zero_contracts::{CancelToken, FileEngine, Operation, SourceView};
use zerostack::{KernelConfig, Policy, StoreLocation, ZeroKernel};

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

fn main() {
    for (name, files) in [("empty workspace", 0), ("10,000 files", FILES)] {
        let root = tempfile::tempdir().expect("a temporary directory");
        fill(root.path(), files);
        let clock = Arc::new(Clock::default());
        let config = KernelConfig {
            store: StoreLocation::Transient,
            policy: Some(Arc::clone(&clock) as Arc<dyn Policy>),
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
    let round = |value: f64| (value * 1e3).round() / 1e3;
    let p95 = sorted(values)[(values.len() * 95 / 100).min(values.len() - 1)];
    let row = serde_json::json!({
        "bench": "run",
        "case": case,
        "median": round(median(values)),
        "p95": round(p95),
        "unit": "ms",
        "against": round(against),
        "ratio": round(median(values) / against),
    });
    println!("{row}");
}
