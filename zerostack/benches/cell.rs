//! What a cell costs through the whole kernel, beside the frame alone, a bare process and a bare write of the same run; what
//! many cells at once, many cells before it and a long history change of that; and how soon a cancelled cell answers.
//!
//! Prints one JSON row a line: `{bench, case, median, p95, unit, against, ratio}`.

use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use zero_contracts::response::Outcome;
use zero_contracts::{CancelToken, Error, ErrorKind};
use zerostack::frame::{self, CallHandler, CallReply, CallRequest, FrameSpec};
use zerostack::{CellOptions, KernelConfig, StoreLocation, ZeroKernel};

/// Samples of each case; the cases of a group take turns, so that drift of the machine hits all alike.
const SAMPLES: usize = 60;

/// Cells of the growth case, and how many make one of its samples.
const GROWTH: usize = 10_000;
const WINDOW: usize = 500;

/// Events of the long history.
const HISTORY: usize = 100_000;

struct NoCalls;

impl CallHandler for NoCalls {
    fn call(&self, _: CallRequest) -> std::pin::Pin<Box<dyn Future<Output = Result<CallReply, Error>> + Send>> {
        Box::pin(async { Err(Error::new(ErrorKind::Unsupported, "no calls here")) })
    }
}

/// One of the cells that are measured.
const NO_OP: &str = "return 1";
const READ: &str = "return (await z.read('three.txt')).length";
const FIND: &str = "return (await z.find('thirty')).total";
const STATE: &str = "await z.state.set('a', Math.random())";

fn main() {
    let root = tempfile::tempdir().expect("a temporary directory is needed");
    std::fs::write(
        root.path().join("three.txt"),
        "a line of text, thirty bytes.\n".repeat(100),
    )
    .expect("writable");
    std::fs::write(root.path().join("edited.txt"), "0\n").expect("writable");
    let kernel = open(root.path(), StoreLocation::Transient);
    one_at_a_time(&kernel, root.path());
    several_at_once(&kernel);
    cancelled();
    drop(kernel);
    history();
    growth();
}

fn open(root: &Path, store: StoreLocation) -> ZeroKernel {
    let config = KernelConfig {
        store,
        ..KernelConfig::new(root)
    };
    ZeroKernel::open(config).expect("the kernel opens")
}

fn completes(kernel: &ZeroKernel, source: &str) {
    let response = kernel.execute_cell(source);
    assert_eq!(response.outcome, Outcome::Completed, "{source}: {:?}", response.error);
}

fn one_at_a_time(kernel: &ZeroKernel, root: &Path) {
    let floor = || {
        let spec = FrameSpec {
            source: NO_OP.into(),
            ..FrameSpec::default()
        };
        frame::run(spec, Arc::new(NoCalls), &CancelToken::new())
            .settled
            .expect("a no-op frame settles");
    };
    let cell = |source: &str| completes(kernel, source);
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
            ("no-op", &mut || cell(NO_OP)),
            ("read of 3 KB", &mut || cell(READ)),
            ("text search of 2 files", &mut || cell(FIND)),
            ("state set, durability power", &mut || cell(STATE)),
        ],
    );
    let bare = root.join("bare.txt");
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

/// Cells that run at the same time: how long each takes, against one alone.
fn several_at_once(kernel: &ZeroKernel) {
    for (name, source) in [("no-op", NO_OP), ("read of 3 KB", READ), ("text search", FIND)] {
        let mut alone = None;
        for at_once in [1, 2, 4] {
            let times: Vec<f64> = std::thread::scope(|scope| {
                let workers: Vec<_> = (0..at_once)
                    .map(|_| {
                        scope.spawn(|| {
                            (0..SAMPLES)
                                .map(|_| timed(|| completes(kernel, source)))
                                .collect::<Vec<_>>()
                        })
                    })
                    .collect();
                let ended = workers.into_iter();
                ended
                    .flat_map(|worker| worker.join().expect("no cell panics"))
                    .collect()
            });
            let median = row(&format!("{name}, {at_once} at once"), times, "ms", alone.as_ref());
            alone.get_or_insert((format!("{name}, 1 at once"), median));
        }
    }
}

/// From the cancellation to the response, whatever the cell does; against the promise of 200 ms, and of 500 ms of grace
/// more where a command has to go.
fn cancelled() {
    let root = tempfile::tempdir().expect("a temporary directory is needed");
    let source: String = (0..400)
        .map(|n| format!("pub fn function_{n}() {{ function_{}(); }}\n", n / 2))
        .collect();
    std::fs::create_dir(root.path().join("src")).expect("writable");
    for n in 0..400 {
        // What is the same is indexed once.
        let own = format!("// file {n}\n{source}");
        std::fs::write(root.path().join(format!("src/m{n}.rs")), own).expect("writable");
    }
    for (case, source, promise) in [
        (
            "cancel during a cold index",
            "await z.find('function_3', {mode: 'callers'})",
            200.0,
        ),
        ("cancel during a large snapshot", "await z.run('sleep 9')", 700.0),
        ("cancel during a loop", "for (;;) {}", 200.0),
        ("cancel during a command that obeys", "await z.run('sleep 9')", 700.0),
        (
            "cancel during a command that does not obey",
            "await z.run(`trap '' TERM; sleep 9; sleep 9`)",
            700.0,
        ),
    ] {
        let times: Vec<f64> = (0..20)
            .filter_map(|n| {
                // A kernel of its own each time: what the last one indexed or hashed does not help.
                let kernel = open(root.path(), StoreLocation::Transient);
                let token = CancelToken::new();
                // A snapshot is under way in the first moments; a command runs by then.
                let wait = match case {
                    "cancel during a cold index" | "cancel during a large snapshot" => 15 + 3 * n,
                    _ => 300,
                };
                let options = CellOptions {
                    cancel: Some(token.clone()),
                    ..CellOptions::default()
                };
                let canceller = std::thread::spawn(move || {
                    std::thread::sleep(Duration::from_millis(wait));
                    token.cancel();
                    Instant::now()
                });
                let response = kernel.execute_cell_with(source, options);
                let ended = Instant::now();
                let at = canceller.join().expect("it only sleeps");
                assert_ne!(response.outcome, Outcome::Failed, "{case}: {:?}", response.error);
                // What ended before it was cancelled tells nothing.
                let cancelled = response.outcome == Outcome::Cancelled;
                cancelled.then(|| ended.saturating_duration_since(at).as_secs_f64() * 1e3)
            })
            .collect();
        assert!(
            times.len() >= 10,
            "{case}: {} of 20 cells were still at work",
            times.len()
        );
        row(case, times, "ms", Some(&("the promise, in ms".into(), promise)));
    }
}

/// How long a store with a long history takes to open and to run a cell, against an empty one.
fn history() {
    let root = tempfile::tempdir().expect("a temporary directory is needed");
    let (empty, long) = (
        tempfile::tempdir().expect("a temporary directory is needed"),
        tempfile::tempdir().expect("a temporary directory is needed"),
    );
    let at = |store: &tempfile::TempDir| StoreLocation::At(store.path().to_owned());
    {
        let config = KernelConfig {
            store: at(&long),
            durability: zero_contracts::files::Durability::Process,
            ..KernelConfig::new(root.path())
        };
        let session = ZeroKernel::open(config).expect("the kernel opens").session();
        for n in 0..HISTORY {
            session.set("n", n.into(), None).expect("a fact is set");
        }
    }
    drop(open(root.path(), at(&empty)));
    let fresh = || drop(open(root.path(), at(&empty)));
    let old = || drop(open(root.path(), at(&long)));
    group(
        "open an empty store",
        &mut [
            ("open an empty store", &mut || fresh()),
            ("open a store with 100,000 events", &mut || old()),
        ],
    );
    let (fresh, old) = (open(root.path(), at(&empty)), open(root.path(), at(&long)));
    group(
        "no-op in an empty store",
        &mut [
            ("no-op in an empty store", &mut || completes(&fresh, NO_OP)),
            ("no-op in a store with 100,000 events", &mut || completes(&old, NO_OP)),
        ],
    );
}

/// What 10,000 cells leave behind: time a cell, memory and threads at the end against the beginning.
fn growth() {
    let root = tempfile::tempdir().expect("a temporary directory is needed");
    std::fs::write(root.path().join("a"), "text\n").expect("writable");
    let kernel = open(root.path(), StoreLocation::Transient);
    let cells = [
        NO_OP,
        "return z.read('a')",
        "return (await z.find('text')).total",
        "await z.edit('a', {content: 'text\\n'}, {expect: 'any'})",
        STATE,
    ];
    let mut begun = (0.0, 0.0);
    for n in 0..GROWTH {
        completes(&kernel, cells[n % cells.len()]);
        if n + 1 == 2 * WINDOW {
            begun = held();
        }
    }
    let ended = held();
    // In turns with a kernel that has run a few: drift of the machine hits both alike.
    let other = tempfile::tempdir().expect("a temporary directory is needed");
    std::fs::write(other.path().join("a"), "text\n").expect("writable");
    let fresh = open(other.path(), StoreLocation::Transient);
    let (mut first, mut last) = (Vec::new(), Vec::new());
    for n in 0..2 * WINDOW {
        let (new, old) = (
            timed(|| completes(&fresh, cells[n % cells.len()])),
            timed(|| completes(&kernel, cells[n % cells.len()])),
        );
        if n >= WINDOW {
            first.push(new);
            last.push(old);
        }
    }
    let name = format!("a cell of a kernel that has run {WINDOW}");
    let median = row(&name, first, "ms", None);
    row(
        &format!("a cell of one that has run {GROWTH}, in turns"),
        last,
        "ms",
        Some(&(name, median)),
    );
    let name = format!("memory after {} cells", 2 * WINDOW);
    row(&name, vec![begun.0], "MiB", None);
    row(
        &format!("memory after {GROWTH} cells"),
        vec![ended.0],
        "MiB",
        Some(&(name, begun.0)),
    );
    let name = format!("threads after {} cells", 2 * WINDOW);
    row(&name, vec![begun.1], "", None);
    row(
        &format!("threads after {GROWTH} cells"),
        vec![ended.1],
        "",
        Some(&(name, begun.1)),
    );
}

/// Resident memory in MiB, and threads.
fn held() -> (f64, f64) {
    // What a thread held is given back a moment after it ended.
    std::thread::sleep(Duration::from_millis(300));
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let number = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name));
        let number = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok());
        number.unwrap_or(f64::NAN)
    };
    (number("VmRSS:") / 1024.0, number("Threads:"))
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

/// Milliseconds that something takes.
fn timed(work: impl FnOnce()) -> f64 {
    let begun = Instant::now();
    work();
    begun.elapsed().as_secs_f64() * 1e3
}

/// Measures the cases in turns and prints their rows; the first is the floor of the others.
fn group(floor: &str, cases: &mut [(&str, &mut dyn FnMut())]) {
    let mut samples = vec![Vec::with_capacity(SAMPLES); cases.len()];
    for round in 0..=SAMPLES {
        for ((_, case), samples) in cases.iter_mut().zip(&mut samples) {
            let time = timed(&mut *case);
            // The first round warms up.
            if round > 0 {
                samples.push(time);
            }
        }
    }
    let mut against: Option<(String, f64)> = None;
    for ((case, _), samples) in cases.iter().zip(samples) {
        let median = row(case, samples, "ms", against.as_ref().filter(|_| *case != floor));
        against.get_or_insert(((*floor).to_owned(), median));
    }
}

/// Prints one row; returns the median.
fn row(case: &str, mut samples: Vec<f64>, unit: &str, against: Option<&(String, f64)>) -> f64 {
    samples.sort_by(f64::total_cmp);
    let (median, p95) = (samples[samples.len() / 2], samples[samples.len() * 95 / 100]);
    let mut row = serde_json::json!({ "bench": "cell", "case": case, "median": median, "p95": p95, "unit": unit });
    if let Some((name, floor)) = against {
        row["against"] = name.as_str().into();
        row["ratio"] = (median / floor).into();
    }
    println!("{row}");
    median
}
