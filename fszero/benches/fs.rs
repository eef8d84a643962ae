//! What the engine costs, beside what a plain program pays for the same on the same disk in the same run.
//!
//! Prints one JSON object a line: `{bench, case, median, p95, unit, against, ratio}`; `against` is the plain program's
//! median. `FSZERO_BENCH_DIR` names a directory on the disk to measure (default: the system's temporary directory), and
//! words given as arguments choose cases.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use fszero::{FsConfig, FsZero};
use zero_contracts::apply::FileOperation;
use zero_contracts::files::{BeginTransaction, CommitSeal, ReadLog};
use zero_contracts::{CancelToken, CellId, Digest, Epoch, FileEngine, SessionName, Transaction};

type Fallible<T> = Result<T, Box<dyn std::error::Error>>;

struct Bench {
    dir: tempfile::TempDir,
    setting: String,
    count: u64,
}

impl Bench {
    fn engine(&mut self, files: usize) -> Fallible<(FsZero, PathBuf)> {
        self.count += 1;
        let base = self.dir.path().join(format!("w{}", self.count));
        let root = base.join("root");
        fs::create_dir_all(&root)?;
        for i in 0..files {
            fs::write(root.join(format!("f{i}")), body(i, 0))?;
        }
        Command::new("sync").arg("-f").arg(&root).status()?;
        Ok((FsZero::open(FsConfig::new(&root, base.join("store")))?, root))
    }

    fn begin(&mut self, engine: &FsZero) -> Fallible<Box<dyn Transaction>> {
        self.count += 1;
        let cell = CellId::new(format!("bench-{}", self.count))?;
        Ok(engine.begin(BeginTransaction {
            cell,
            session: SessionName::default(),
            staged_bytes: 4 << 30,
        })?)
    }

    fn row(&self, case: &str, unit: &str, ours: &mut [f64], plain: &mut [f64]) {
        let (median, p95) = (at(ours, 0.5), at(ours, 0.95));
        let against = at(plain, 0.5);
        let row = serde_json::json!({
            "bench": "fs", "case": format!("{case} ({})", self.setting), "median": round(median), "p95": round(p95),
            "unit": unit, "against": round(against), "ratio": round(median / against),
        });
        println!("{row}");
    }
}

fn at(samples: &mut [f64], share: f64) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[((samples.len() - 1) as f64 * share).round() as usize]
}

fn round(x: f64) -> f64 {
    (x * 1000.0).round() / 1000.0
}

fn ms(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

fn body(file: usize, version: usize) -> String {
    format!("file {file} version {version}\n").repeat(20)
}

fn edits(files: usize, version: usize) -> Fallible<Vec<FileOperation>> {
    let list: Vec<_> = (0..files)
        .map(|i| serde_json::json!({"path": format!("f{i}"), "content": body(i, version), "expect": "any"}))
        .collect();
    Ok(serde_json::from_value(serde_json::Value::Array(list))?)
}

fn seal() -> CommitSeal {
    CommitSeal {
        session: SessionName::default(),
        state: None,
        event: Digest::of(b"event"),
        intents: Vec::new(),
    }
}

/// The same files by a plain loop: write, fsync, rename, fsync of the directory.
fn plain(root: &Path, files: usize, version: usize) -> Fallible<()> {
    use std::io::Write;
    let directory = File::open(root)?;
    for i in 0..files {
        let temporary = root.join("temporary");
        let mut file = File::create(&temporary)?;
        file.write_all(body(i, version).as_bytes())?;
        file.sync_all()?;
        fs::rename(&temporary, root.join(format!("f{i}")))?;
        directory.sync_all()?;
    }
    Ok(())
}

fn commits(bench: &mut Bench, files: usize, rounds: usize) -> Fallible<()> {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let token = CancelToken::new();
    for _ in 0..rounds {
        let (engine, root) = bench.engine(files)?;
        let operations = edits(files, 1)?;
        let start = Instant::now();
        let mut transaction = bench.begin(&engine)?;
        transaction.stage(&operations, &ReadLog::new(), &token)?;
        transaction.commit(Epoch(1), seal(), &token)?;
        ours.push(ms(start));
        assert_eq!(fs::read_to_string(root.join("f0"))?, body(0, 1));
        let (_, root) = bench.engine(files)?;
        let start = Instant::now();
        plain(&root, files, 1)?;
        theirs.push(ms(start));
    }
    let plural = if files == 1 { "" } else { "s" };
    bench.row(
        &format!("commit of {files} small file{plural}, cold store, against a plain loop"),
        "ms",
        &mut ours,
        &mut theirs,
    );
    Ok(())
}

fn restoration(bench: &mut Bench) -> Fallible<()> {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let token = CancelToken::new();
    for _ in 0..5 {
        let (engine, root) = bench.engine(1000)?;
        let mut transaction = bench.begin(&engine)?;
        transaction.stage(&edits(1000, 1)?, &ReadLog::new(), &token)?;
        transaction.materialize(Epoch(1), &token)?;
        let start = Instant::now();
        transaction.restore()?;
        ours.push(ms(start));
        let copy = root.with_extension("copy");
        let start = Instant::now();
        Command::new("cp").arg("-a").arg(&root).arg(&copy).status()?;
        Command::new("sync").arg("-f").arg(&copy).status()?;
        theirs.push(ms(start));
    }
    bench.row(
        "restoration of 1,000 files, against cp -a and sync",
        "ms",
        &mut ours,
        &mut theirs,
    );
    Ok(())
}

fn snapshots(bench: &mut Bench) -> Fallible<()> {
    let (engine, root) = bench.engine(0)?;
    for i in 0..10_000 {
        let directory = root.join(format!("d{}", i / 100));
        fs::create_dir_all(&directory)?;
        fs::write(directory.join(format!("f{i}")), body(i, 0))?;
    }
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command
            .current_dir(&root)
            .args(["-c", "user.email=a@b", "-c", "user.name=n"])
            .args(arguments)
            .output()
    };
    git(&["init", "-q"])?;
    git(&["add", "."])?;
    git(&["commit", "-qm", "all"])?;
    std::thread::sleep(Duration::from_millis(1500));
    git(&["status", "--porcelain"])?;
    let token = CancelToken::new();
    let first = engine.snapshot(&token)?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..15 {
        let start = Instant::now();
        assert_eq!(engine.snapshot(&token)?, first);
        ours.push(ms(start));
        let start = Instant::now();
        git(&["status", "--porcelain"])?;
        theirs.push(ms(start));
    }
    bench.row(
        "second snapshot of 10,000 files, against git status",
        "ms",
        &mut ours,
        &mut theirs,
    );
    Ok(())
}

/// Peak of resident memory, in MiB.
fn peak() -> Fallible<f64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .ok_or("no VmHWM")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<f64>()? / 1024.0)
}

fn large(bench: &mut Bench) -> Fallible<()> {
    use std::io::Write;
    let (engine, root) = bench.engine(0)?;
    let mut file = std::io::BufWriter::with_capacity(1 << 20, File::create(root.join("large"))?);
    let line = b"a line of text that fills a large file, sixty-four bytes a line\n";
    for i in 0..(1_u64 << 30) / 64 {
        file.write_all(if i == 1000 {
            b"a line with a needle that fills a large file; sixty-four bytes.\n"
        } else {
            line
        })?;
    }
    file.flush()?;
    drop(file);
    let token = CancelToken::new();
    let operations: Vec<FileOperation> =
        serde_json::from_str(r#"[{"path": "large", "find": "needle", "replacement": "thread"}]"#)?;
    fs::write("/proc/self/clear_refs", "5")?;
    let before = peak()?;
    let start = Instant::now();
    let mut transaction = bench.begin(&engine)?;
    transaction.stage(&operations, &ReadLog::new(), &token)?;
    transaction.commit(Epoch(1), seal(), &token)?;
    let took = start.elapsed().as_secs_f64();
    bench.row(
        &format!("edit of a 1 GiB file, growth of resident memory, in {took:.1} s"),
        "MiB",
        &mut [peak()? - before],
        &mut [64.0],
    );
    Ok(())
}

fn main() -> Fallible<()> {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let wanted = |name: &str| words.is_empty() || words.iter().any(|word| name.contains(word.as_str()));
    let base = std::env::var_os("FSZERO_BENCH_DIR").map_or_else(std::env::temp_dir, PathBuf::from);
    let dir = tempfile::tempdir_in(&base)?;
    let kind = Command::new("stat").args(["-f", "-c", "%T"]).arg(dir.path()).output()?;
    let kind = String::from_utf8_lossy(&kind.stdout).trim().to_owned();
    let mut bench = Bench {
        dir,
        setting: format!("{kind}, durability power"),
        count: 0,
    };
    if wanted("commit-one") {
        commits(&mut bench, 1, 60)?;
    }
    if wanted("commit-many") {
        commits(&mut bench, 1000, 5)?;
    }
    if wanted("restoration") {
        restoration(&mut bench)?;
    }
    if wanted("snapshot") {
        snapshots(&mut bench)?;
    }
    if wanted("large") {
        large(&mut bench)?;
    }
    Ok(())
}
