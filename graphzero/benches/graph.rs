//! Ratios to floors, one JSON line each: cold index against a bare parallel parse, refresh against a bare walk, a warm
//! query, the index on disk, growth with the tree, cancellation, and text search against the `rg` binary where there is one.
//!
//! The tree is `GRAPH_BENCH_DIR`, or else made of `GRAPH_BENCH_FILES` (2,500) Rust files of cargo's own sources; where those
//! are not enough they are repeated with a line that makes each its own. A floor and what is compared with it take turns, so
//! that both see the same machine. `GRAPH_BENCH_LARGE` (20,000) files is the largest tree of the growth rows. Rows of
//! processor time say the same as those of wall time on a machine that does nothing else, and still hold on one that does.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use graphzero::testing::DirectoryView;
use graphzero::{GraphConfig, GraphZero};
use zero_contracts::find::{FindMode, FindOptions, FindRequest};
use zero_contracts::source::WalkScope;
use zero_contracts::{CancelToken, SourceView, StructureEngine};

type Times = Vec<f64>;

fn timed<R>(times: &mut Times, run: impl FnOnce() -> R) -> R {
    let start = Instant::now();
    let result = std::hint::black_box(run());
    times.push(start.elapsed().as_secs_f64() * 1000.0);
    result
}

/// Returns the processor time of this process and of the children it waited for, in milliseconds.
fn processor() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    // User, system, and both again for children, in hundredths of a second.
    let ticks = after_name.split_whitespace().skip(11).take(4);
    ticks.filter_map(|n| n.parse::<f64>().ok()).sum::<f64>() * 10.0
}

fn spent<R>(times: &mut Times, run: impl FnOnce() -> R) -> R {
    let before = processor();
    let result = std::hint::black_box(run());
    times.push(processor() - before);
    result
}

fn summary(times: &Times) -> (f64, f64) {
    let mut times = times.clone();
    times.sort_by(f64::total_cmp);
    let p95 = (times.len() * 95).div_ceil(100).clamp(1, times.len()) - 1;
    (times[times.len() / 2], times[p95])
}

fn row(case: &str, times: &Times, unit: &str, floor: Option<(&str, f64)>) {
    let (median, p95) = summary(times);
    let against = floor.map(|(name, _)| name);
    let ratio = floor.map(|(_, floor)| median / floor);
    println!(
        "{}",
        serde_json::json!({"bench": "graph", "case": case, "median": median, "p95": p95, "unit": unit, "against": against, "ratio": ratio})
    );
}

/// Returns files of cargo's own sources, smallest paths first; generated giants are left out.
fn sources() -> Vec<PathBuf> {
    let cargo = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let cargo = cargo.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    let mut found = Vec::new();
    for entry in ignore::WalkBuilder::new(cargo.unwrap_or_default().join("registry/src"))
        .standard_filters(false)
        .build()
        .flatten()
    {
        let small = entry
            .metadata()
            .is_ok_and(|meta| meta.is_file() && meta.len() < 150_000);
        if small && entry.path().extension().is_some_and(|extension| extension == "rs") {
            found.push(entry.into_path());
        }
    }
    found.sort();
    found
}

/// Makes a tree of so many files.
fn made(directory: &Path, sources: &[PathBuf], count: usize) -> u64 {
    let mut bytes = 0;
    for n in 0..count {
        let (mut text, name) = match sources.get(n % sources.len().max(1)) {
            Some(source) => {
                let parts: Vec<_> = source.iter().rev().take(4).collect();
                (
                    std::fs::read(source).expect("a source"),
                    parts.into_iter().rev().collect::<PathBuf>(),
                )
            }
            None => (
                include_bytes!("../src/rust/members.rs").to_vec(),
                PathBuf::from(format!("m{n}.rs")),
            ),
        };
        text.extend_from_slice(format!("\npub fn only_{n}() {{}}\n").as_bytes());
        let path = directory
            .join(format!("t{}/{}", n / sources.len().max(count), n / 50))
            .join(name);
        std::fs::create_dir_all(path.parent().expect("a directory")).expect("a directory for the tree");
        bytes += text.len() as u64;
        std::fs::write(path, text).expect("a file of the tree");
    }
    bytes
}

/// Parses every file on all processors, and does nothing with the trees.
fn bare_parse(files: &[PathBuf]) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                let mut parser = tree_sitter::Parser::new();
                parser
                    .set_language(&tree_sitter_rust::LANGUAGE.into())
                    .expect("the grammar fits");
                while let Some(path) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let text = std::fs::read(path).expect("a file of the tree");
                    std::hint::black_box(parser.parse(&text, None));
                }
            });
        }
    });
}

fn walk(view: &DirectoryView, root: &Path) -> Vec<PathBuf> {
    let found = Mutex::new(Vec::new());
    view.walk(&WalkScope::default(), &CancelToken::new(), &|entry| {
        if entry.path.extension() == Some(b"rs") {
            found
                .lock()
                .expect("no walker panics")
                .push(root.join(entry.path.as_os_str()));
        }
        std::ops::ControlFlow::Continue(())
    })
    .expect("the tree is walked");
    let mut files = found.into_inner().expect("no walker panics");
    files.sort();
    files
}

fn ask(engine: &GraphZero, view: &DirectoryView, mode: FindMode, query: &str) {
    let options = FindOptions {
        mode,
        ..FindOptions::default()
    };
    let query = query.to_owned();
    engine
        .find(view, &FindRequest { query, options }, &CancelToken::new())
        .expect("the query is answered");
}

/// Reads a line of `/proc/self/status` in MiB.
fn memory(line: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let found = status.lines().find_map(|l| l.strip_prefix(line)).unwrap_or_default();
    let kib = found.split_whitespace().next().and_then(|n| n.parse::<f64>().ok());
    kib.unwrap_or(0.0) / 1024.0
}

fn cold_and_disk(root: &Path, view: &DirectoryView, files: &[PathBuf], bytes: u64) {
    let token = CancelToken::new();
    let (mut parse, mut cold) = (Times::new(), Times::new());
    // Peak memory first: later runs find an allocator that holds more.
    let before = memory("VmRSS:");
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    let engine = GraphZero::new();
    engine.refresh(view, &token).expect("the tree is indexed");
    let peak = memory("VmHWM:") - before;
    row(
        "peak memory of a cold index",
        &vec![peak],
        "MiB",
        Some(("source", bytes as f64 / 1048576.0)),
    );
    drop(engine);
    let (mut parse_spent, mut cold_spent) = (Times::new(), Times::new());
    for _ in 0..5 {
        spent(&mut parse_spent, || timed(&mut parse, || bare_parse(files)));
        spent(&mut cold_spent, || {
            timed(&mut cold, || {
                GraphZero::new().refresh(view, &token).expect("the tree is indexed")
            })
        });
    }
    let parse = summary(&parse).0;
    row("cold index", &cold, "ms", Some(("bare parse", parse)));
    let floor = summary(&parse_spent).0;
    row(
        "cold index, processor time",
        &cold_spent,
        "ms",
        Some(("bare parse", floor)),
    );
    let directory = tempfile::tempdir().expect("a temporary directory");
    let open = || GraphZero::open(GraphConfig::default().index(directory.path())).expect("an engine");
    let (mut save, mut warm) = (Times::new(), Times::new());
    timed(&mut save, || {
        let engine = open();
        engine.refresh(view, &token).expect("the tree is indexed");
    });
    row("cold index, written to disk", &save, "ms", Some(("bare parse", parse)));
    let size = open().persisted_bytes();
    row(
        "index on disk",
        &vec![size as f64 / 1048576.0],
        "MiB",
        Some(("source", bytes as f64 / 1048576.0)),
    );
    for _ in 0..3 {
        timed(&mut warm, || open().refresh(view, &token).expect("the tree is indexed"));
    }
    row(
        "first refresh of a new process",
        &warm,
        "ms",
        Some(("bare parse", parse)),
    );
    let _ = root;
}

fn refresh_and_queries(root: &Path, view: &DirectoryView, files: &[PathBuf]) {
    let token = CancelToken::new();
    let engine = GraphZero::new();
    engine.refresh(view, &token).expect("the tree is indexed");
    let (mut bare, mut same, mut changed) = (Times::new(), Times::new(), Times::new());
    for n in 0..15 {
        timed(&mut bare, || walk(view, root));
        timed(&mut same, || engine.refresh(view, &token).expect("the tree is indexed"));
        let path = &files[files.len() / 2];
        let mut text = std::fs::read(path).expect("a file of the tree");
        text.extend_from_slice(format!("\nfn changed_{n}() {{}}\n").as_bytes());
        std::fs::write(path, text).expect("a file of the tree");
        timed(&mut changed, || {
            engine.refresh(view, &token).expect("the tree is indexed")
        });
    }
    let bare = summary(&bare).0;
    row("refresh, nothing changed", &same, "ms", Some(("bare walk", bare)));
    row(
        "refresh after one changed file",
        &changed,
        "ms",
        Some(("bare walk", bare)),
    );
    ask(&engine, view, FindMode::Definitions, "only_7");
    let (mut walks, mut warm) = (Times::new(), Times::new());
    for _ in 0..25 {
        timed(&mut walks, || {
            engine.refresh(view, &token).expect("the tree is indexed")
        });
        timed(&mut warm, || ask(&engine, view, FindMode::Definitions, "only_7"));
    }
    // What a query costs beyond looking at the tree.
    let alone: Times = warm.iter().zip(&walks).map(|(whole, walk)| whole - walk).collect();
    row("warm definitions beyond the refresh", &alone, "ms", Some(("1 ms", 1.0)));
    let (mut walks, mut warm) = (Times::new(), Times::new());
    for _ in 0..3 {
        spent(&mut walks, || {
            (0..50).for_each(|_| engine.refresh(view, &token).expect("the tree is indexed"))
        });
        spent(&mut warm, || {
            (0..50).for_each(|_| ask(&engine, view, FindMode::Definitions, "only_7"))
        });
    }
    let alone: Times = warm
        .iter()
        .zip(&walks)
        .map(|(whole, walk)| (whole - walk) / 50.0)
        .collect();
    row(
        "warm definitions beyond the refresh, processor time",
        &alone,
        "ms",
        Some(("1 ms", 1.0)),
    );
    let mut callers = Times::new();
    for _ in 0..3 {
        timed(&mut callers, || ask(&engine, view, FindMode::Callers, "new"));
    }
    row("callers of `new`", &callers, "ms", None);
}

fn cancellation(view: &DirectoryView, cold: f64) {
    let mut late = Times::new();
    for n in 1..8u32 {
        let cancel = CancelToken::new();
        std::thread::scope(|scope| {
            let other = cancel.clone();
            let worker = scope.spawn(|| GraphZero::new().refresh(view, &cancel).is_err().then(Instant::now));
            std::thread::sleep(Duration::from_secs_f64(cold / 1000.0 * f64::from(n) / 10.0));
            let asked = Instant::now();
            other.cancel();
            if let Ok(Some(ended)) = worker.join() {
                late.push((ended - asked).as_secs_f64() * 1000.0);
            }
        });
    }
    if !late.is_empty() {
        row("cancellation of a cold index", &late, "ms", Some(("50 ms", 50.0)));
    }
}

fn text_search(root: &Path, view: &DirectoryView) {
    let engine = GraphZero::new();
    for (case, query) in [("text search, rare", "only_7("), ("text search, common", "unwrap()")] {
        let (mut floor, mut own) = (Times::new(), Times::new());
        let (mut floor_spent, mut own_spent) = (Times::new(), Times::new());
        for _ in 0..11 {
            let rg = timed(&mut floor, || {
                Command::new("rg").args(["-n", "-F", query]).arg(root).output()
            });
            timed(&mut own, || ask(&engine, view, FindMode::Text, query));
            if rg.is_err() {
                floor.clear();
            }
        }
        // Ticks are coarse: many searches make one figure.
        for _ in 0..5 {
            let many = |run: &dyn Fn()| (0..10).for_each(|_| run());
            spent(&mut floor_spent, || {
                many(&|| drop(Command::new("rg").args(["-n", "-F", query]).arg(root).output()))
            });
            spent(&mut own_spent, || many(&|| ask(&engine, view, FindMode::Text, query)));
        }
        if floor.is_empty() {
            row(case, &own, "ms", None);
        } else {
            row(case, &own, "ms", Some(("rg", summary(&floor).0)));
            let spent = summary(&floor_spent).0;
            row(
                &format!("{case}, ten times, processor time"),
                &own_spent,
                "ms",
                Some(("rg", spent)),
            );
        }
    }
}

/// Names the tree that a process of its own indexes for the growth rows.
const ALONE: &str = "GRAPH_BENCH_ALONE";

/// Indexes a tree and prints wall time, processor time and peak memory: in a process that held nothing before.
fn alone(root: &Path) {
    let view = DirectoryView::new(root);
    let (mut times, mut processor) = (Times::new(), Times::new());
    spent(&mut processor, || {
        timed(&mut times, || {
            GraphZero::new()
                .refresh(&view, &CancelToken::new())
                .expect("the tree is indexed")
        })
    });
    println!("{} {} {}", times[0], processor[0], memory("VmHWM:"));
}

fn growth(sources: &[PathBuf], largest: usize) {
    let program = std::env::current_exe().expect("this program");
    let mut first = None;
    for count in [largest / 20, largest / 4, largest] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mib = made(directory.path(), sources, count) as f64 / 1048576.0;
        let printed = Command::new(&program).env(ALONE, directory.path()).output();
        let printed = printed.expect("this program runs").stdout;
        let measured: Vec<f64> = String::from_utf8_lossy(&printed)
            .split_whitespace()
            .filter_map(|number| number.parse::<f64>().ok())
            .map(|number| number / mib)
            .collect();
        let floors: &Vec<f64> = first.get_or_insert_with(|| measured.clone());
        let rows = [
            ("cold index", "ms"),
            ("processor time of a cold index", "ms"),
            ("peak memory of a cold index", "MiB"),
        ];
        for (((what, unit), value), floor) in rows.into_iter().zip(&measured).zip(floors) {
            row(
                &format!("{what} of {count} files, per MiB"),
                &vec![*value],
                unit,
                Some(("the smallest tree", *floor)),
            );
        }
    }
}

fn main() {
    if let Some(root) = std::env::var_os(ALONE) {
        return alone(Path::new(&root));
    }
    let number = |name: &str, usual: usize| {
        let given = std::env::var(name).ok().and_then(|n| n.parse().ok());
        given.unwrap_or(usual)
    };
    let only = std::env::var("GRAPH_BENCH_ONLY").unwrap_or_default();
    let wanted = |name: &str| only.is_empty() || only.split(',').any(|part| part == name);
    let temporary = tempfile::tempdir().expect("a temporary directory");
    let sources = sources();
    let root = std::env::var_os("GRAPH_BENCH_DIR").map_or_else(
        || {
            made(temporary.path(), &sources, number("GRAPH_BENCH_FILES", 2500));
            temporary.path().to_owned()
        },
        PathBuf::from,
    );
    let view = DirectoryView::new(&root);
    let files = walk(&view, &root);
    let bytes = files
        .iter()
        .filter_map(|file| std::fs::metadata(file).ok())
        .map(|meta| meta.len())
        .sum();
    if wanted("cold") {
        cold_and_disk(&root, &view, &files, bytes);
    }
    if wanted("refresh") {
        refresh_and_queries(&root, &view, &files);
    }
    if wanted("cancel") {
        let mut cold = Times::new();
        timed(&mut cold, || {
            GraphZero::new()
                .refresh(&view, &CancelToken::new())
                .expect("the tree is indexed")
        });
        cancellation(&view, cold[0]);
    }
    if wanted("text") {
        text_search(&root, &view);
    }
    if wanted("growth") {
        growth(&sources, number("GRAPH_BENCH_LARGE", 20_000));
    }
}
