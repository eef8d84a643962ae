//! Benchmarks of running commands, each against a floor measured in the same minute.
//!
//! Prints one JSON object per line: `{bench, case, median, p95, unit, against, ratio}`, where `against` is the median of
//! the floor and `ratio` is `median / against` for times and for throughputs.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::process::{Command, Stdio};
use std::time::Instant;

use zero_supervisor::{Io, Processes, Spec, Tree, TreeTier, confinement};

/// Commands per case.
const RUNS: usize = 200;

/// Bytes per streaming run.
const STREAM: u64 = 100_000_000;

fn main() {
    // `cargo bench` passes its own options; there is nothing to choose here.
    let program = env!("CARGO_BIN_EXE_zero-supervisor");
    let processes = Processes::new(program);
    for (case, tier, confined) in [
        ("true, default tier", None, false),
        ("true, default tier, landlock", None, true),
        ("true, cgroup", Some(TreeTier::Cgroup), false),
        ("true, pid_namespace", Some(TreeTier::PidNamespace), false),
        ("true, rlimits", Some(TreeTier::Rlimits), false),
    ] {
        let spec = || {
            let mut spec = Spec::new(["true"], "/");
            if let Some(tier) = tier {
                spec.tree = Tree::required(tier);
            }
            if confined {
                spec.files = confinement::landlock("/tmp".as_ref(), &spec.env, &[], &[], true);
            }
            spec
        };
        match processes.spawn(spec()) {
            Ok(running) => drive(running),
            Err(error) => {
                eprintln!("{case}: not on this machine: {error}");
                continue;
            }
        }
        // In turns, so that both meet the same machine.
        let (mut floors, mut ours) = (Vec::new(), Vec::new());
        for _ in 0..RUNS {
            let begun = Instant::now();
            Command::new("true").stdin(Stdio::null()).status().expect("true");
            floors.push(begun.elapsed().as_secs_f64() * 1e3);
            let begun = Instant::now();
            drive(processes.spawn(spec()).expect("spawn"));
            ours.push(begun.elapsed().as_secs_f64() * 1e3);
        }
        row(case, spread(ours), "ms", spread(floors));
    }

    let dir = tempfile::tempdir().expect("tempdir");
    let source = dir.path().join("source");
    {
        let mut file = BufWriter::new(File::create(&source).expect("source"));
        let piece: Vec<u8> = (0..1_000_000_u32)
            .map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8)
            .collect();
        (0..STREAM / 1_000_000).for_each(|_| file.write_all(&piece).expect("source"));
    }
    let target = dir.path().join("target");
    let speed = |begun: Instant| {
        let taken = begun.elapsed().as_secs_f64();
        assert_eq!(fs::metadata(&target).expect("target").len(), STREAM);
        STREAM as f64 / 1e6 / taken
    };
    let (mut floors, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..11 {
        let into = File::create(&target).expect("target");
        let begun = Instant::now();
        Command::new("cat").arg(&source).stdout(into).status().expect("cat");
        floors.push(speed(begun));
        let mut into = File::create(&target).expect("target");
        let begun = Instant::now();
        let running = processes
            .spawn(Spec::new(["cat".as_ref(), source.as_os_str()], "/"))
            .expect("spawn");
        running.drive(Io::new(&mut into, &mut io::sink()));
        ours.push(speed(begun));
    }
    row(
        "100 MB of stdout to a file, against cat > file",
        spread(ours),
        "MB/s",
        spread(floors),
    );
}

fn drive(running: zero_supervisor::Running) {
    let outcome = running.drive(Io::new(&mut io::sink(), &mut io::sink()));
    assert!(outcome.cleanup.is_clean(), "{outcome:?}");
}

/// Median and 95th percentile.
fn spread(mut values: Vec<f64>) -> (f64, f64) {
    values.sort_by(f64::total_cmp);
    (
        values[values.len() / 2],
        values[(values.len() * 95 / 100).min(values.len() - 1)],
    )
}

fn row(case: &str, (median, p95): (f64, f64), unit: &str, (against, _): (f64, f64)) {
    let round = |value: f64| (value * 1e3).round() / 1e3;
    let row = serde_json::json!({
        "bench": "run",
        "case": case,
        "median": round(median),
        "p95": round(p95),
        "unit": unit,
        "against": round(against),
        "ratio": round(median / against),
    });
    println!("{row}");
}
