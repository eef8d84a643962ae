//! What a cell costs through the whole kernel, beside the frame alone, a bare process and a bare write of the same run.
//!
//! Prints one JSON row a line: `{bench, case, median, p95, unit, against, ratio}`.

use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use zero_contracts::response::Outcome;
use zero_contracts::{CancelToken, Error, ErrorKind};
use zerostack::frame::{self, CallHandler, CallReply, CallRequest, FrameSpec};
use zerostack::{KernelConfig, StoreLocation, ZeroKernel};

/// Samples of each case; the cases of a group take turns, so that drift of the machine hits all alike.
const SAMPLES: usize = 60;

struct NoCalls;

impl CallHandler for NoCalls {
    fn call(&self, _: CallRequest) -> std::pin::Pin<Box<dyn Future<Output = Result<CallReply, Error>> + Send>> {
        Box::pin(async { Err(Error::new(ErrorKind::Unsupported, "no calls here")) })
    }
}

fn main() {
    let root = tempfile::tempdir().expect("a temporary directory is needed");
    std::fs::write(
        root.path().join("three.txt"),
        "a line of text, thirty bytes.\n".repeat(100),
    )
    .expect("writable");
    std::fs::write(root.path().join("edited.txt"), "0\n").expect("writable");
    let config = KernelConfig {
        store: StoreLocation::Transient,
        ..KernelConfig::new(root.path())
    };
    let kernel = ZeroKernel::open(config).expect("the kernel opens");
    let cell = |source: &str| {
        let response = kernel.execute_cell(source);
        assert_eq!(response.outcome, Outcome::Completed, "{source}: {:?}", response.error);
    };
    let floor = || {
        let spec = FrameSpec {
            source: "return 1".into(),
            ..FrameSpec::default()
        };
        frame::run(spec, Arc::new(NoCalls), &CancelToken::new())
            .settled
            .expect("a no-op frame settles");
    };

    let mut n = 0_u64;
    let mut edit = || {
        n += 1;
        cell(&format!(
            "await z.edit('edited.txt', {{content: '{n}\\n'}}, {{expect: 'any'}})"
        ));
    };
    group(
        "frame alone, no-op",
        &mut [
            ("frame alone, no-op", &mut || floor()),
            ("no-op", &mut || cell("return 1")),
            ("read of 3 KB", &mut || {
                cell("return (await z.read('three.txt')).length")
            }),
            ("text search of 2 files", &mut || {
                cell("return (await z.find('thirty')).total")
            }),
            ("state set", &mut || cell("await z.state.set('a', Math.random())")),
        ],
    );
    let bare = root.path().join("bare.txt");
    group(
        "write, fsync, rename, fsync of the directory",
        &mut [
            ("write, fsync, rename, fsync of the directory", &mut || {
                durable_write(&bare)
            }),
            ("one edit, durability power", &mut edit),
        ],
    );
    group(
        "std::process spawn and wait",
        &mut [
            ("std::process spawn and wait", &mut || {
                assert!(Command::new("true").status().expect("true runs").success())
            }),
            ("z.run(['true'])", &mut || {
                cell("return (await z.run(['true'])).exitCode")
            }),
        ],
    );
}

/// What any program must do to replace a file durably.
fn durable_write(path: &Path) {
    let temporary = path.with_extension("tmp");
    let mut file = std::fs::File::create(&temporary).expect("writable");
    file.write_all(b"1\n").expect("writable");
    file.sync_all().expect("syncable");
    std::fs::rename(&temporary, path).expect("writable");
    std::fs::File::open(path.parent().expect("a file lies in a directory"))
        .and_then(|d| d.sync_all())
        .expect("syncable");
}

/// Measures the cases in turns and prints their rows; the first is the floor of the others.
fn group(floor: &str, cases: &mut [(&str, &mut dyn FnMut())]) {
    let mut samples = vec![Vec::with_capacity(SAMPLES); cases.len()];
    for round in 0..=SAMPLES {
        for ((_, case), samples) in cases.iter_mut().zip(&mut samples) {
            let begun = Instant::now();
            case();
            // The first round warms up.
            if round > 0 {
                samples.push(begun.elapsed().as_secs_f64() * 1e3);
            }
        }
    }
    let mut medians = Vec::new();
    for ((case, _), samples) in cases.iter().zip(&mut samples) {
        samples.sort_by(f64::total_cmp);
        let (median, p95) = (samples[samples.len() / 2], samples[samples.len() * 95 / 100]);
        medians.push(median);
        let mut row = serde_json::json!({ "bench": "cell", "case": case, "median": median, "p95": p95, "unit": "ms" });
        if *case != floor {
            row["against"] = floor.into();
            row["ratio"] = (median / medians[0]).into();
        }
        println!("{row}");
    }
}
