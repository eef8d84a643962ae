//! Ratios to floors, one JSON line each: cold index against a bare parallel parse, refresh against a bare walk, a warm
//! query, and text search against the `rg` binary where there is one.
//!
//! `GRAPH_BENCH_DIR` names a tree to measure; without it a tree of `GRAPH_BENCH_FILES` (2,000) Rust files is made.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use graphzero::GraphZero;
use graphzero::testing::DirectoryView;
use zero_contracts::find::{FindMode, FindOptions, FindRequest};
use zero_contracts::source::WalkScope;
use zero_contracts::{CancelToken, SourceView, StructureEngine};

fn timed<R>(runs: usize, mut run: impl FnMut() -> R) -> (f64, f64) {
    let mut times: Vec<f64> = (0..runs)
        .map(|_| {
            let start = Instant::now();
            std::hint::black_box(run());
            start.elapsed().as_secs_f64() * 1000.0
        })
        .collect();
    times.sort_by(f64::total_cmp);
    (
        times[times.len() / 2],
        times[(times.len() * 95).div_ceil(100).min(times.len()) - 1],
    )
}

fn row(case: &str, (median, p95): (f64, f64), against: &str, floor: f64) {
    let ratio = if floor > 0.0 { median / floor } else { 0.0 };
    println!(
        "{}",
        serde_json::json!({"bench": "graph", "case": case, "median": median, "p95": p95, "unit": "ms", "against": against, "ratio": ratio})
    );
}

fn made(directory: &Path) -> PathBuf {
    let count: usize = std::env::var("GRAPH_BENCH_FILES")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(2000);
    let source = include_str!("../src/rust/members.rs");
    std::fs::create_dir_all(directory.join("src")).expect("a directory for the tree");
    let modules: String = (0..count).map(|n| format!("mod m{n};\n")).collect();
    std::fs::write(directory.join("src/lib.rs"), modules).expect("a file of the tree");
    for n in 0..count {
        let text = format!(
            "pub fn only_{n}() {{}}\n{}",
            source.replace("fn at_step", &format!("fn at_step_{n}"))
        );
        std::fs::write(directory.join(format!("src/m{n}.rs")), text).expect("a file of the tree");
    }
    directory.to_owned()
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

fn main() {
    let temporary = tempfile::tempdir().expect("a temporary directory");
    let root = std::env::var_os("GRAPH_BENCH_DIR").map_or_else(|| made(temporary.path()), PathBuf::from);
    let view = DirectoryView::new(&root);
    let token = CancelToken::new();
    let found = Mutex::new(Vec::new());
    let walk = |keep: bool| {
        view.walk(&WalkScope::default(), &token, &|entry| {
            if keep && entry.path.extension() == Some(b"rs") {
                found
                    .lock()
                    .expect("no walker panics")
                    .push(root.join(entry.path.as_os_str()));
            }
            std::ops::ControlFlow::Continue(())
        })
        .expect("the tree is walked")
    };
    walk(true);
    let files = found.lock().expect("no walker panics").clone();
    let parse = timed(3, || bare_parse(&files));
    row("bare parse", parse, "", 0.0);
    let cold = timed(3, || {
        GraphZero::new().refresh(&view, &token).expect("the tree is indexed")
    });
    row("cold index", cold, "bare parse", parse.0);
    let stat = timed(9, || walk(false));
    row("bare walk", stat, "", 0.0);
    let engine = GraphZero::new();
    engine.refresh(&view, &token).expect("the tree is indexed");
    let refresh = timed(9, || engine.refresh(&view, &token).expect("the tree is indexed"));
    row("refresh", refresh, "bare walk", stat.0);
    let ask = |mode: FindMode, query: &str| {
        let options = FindOptions {
            mode,
            ..FindOptions::default()
        };
        engine
            .find(
                &view,
                &FindRequest {
                    query: query.into(),
                    options,
                },
                &token,
            )
            .expect("the query is answered")
    };
    ask(FindMode::Definitions, "only_7");
    let warm = timed(15, || ask(FindMode::Definitions, "only_7"));
    row("warm definitions with refresh", warm, "refresh", refresh.0);
    row(
        "warm definitions alone",
        (warm.0 - refresh.0, warm.1 - refresh.0),
        "1 ms",
        1.0,
    );
    row("callers", timed(3, || ask(FindMode::Callers, "only_7")), "", 0.0);
    let start = Instant::now();
    let cancel = CancelToken::new();
    let late = std::thread::scope(|scope| {
        let other = cancel.clone();
        let worker = scope.spawn(|| GraphZero::new().refresh(&view, &cancel).is_err().then(Instant::now));
        std::thread::sleep(std::time::Duration::from_millis((parse.0 / 3.0) as u64));
        let asked = Instant::now();
        other.cancel();
        worker
            .join()
            .ok()
            .flatten()
            .map_or(0.0, |ended| (ended - asked).as_secs_f64() * 1000.0)
    });
    std::hint::black_box(start);
    row("cancellation of a cold index", (late, late), "50 ms", 50.0);
    let text = timed(7, || ask(FindMode::Text, "bounds_hold"));
    let rg = Command::new("rg")
        .args(["--no-heading", "-n", "-F", "bounds_hold"])
        .arg(&root)
        .output();
    match rg {
        Ok(output) if output.status.success() => {
            let floor = timed(7, || {
                Command::new("rg").args(["-n", "-F", "bounds_hold"]).arg(&root).output()
            });
            row("text search", text, "rg", floor.0);
        }
        _ => row("text search", text, "rg is not installed", 0.0),
    }
}
