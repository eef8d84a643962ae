//! Speed of counting and of projection, each beside its floor. Prints one JSON object a line:
//! `{bench, case, median, p95, unit, against, ratio}`; a ratio above 1 means faster than what it is measured against.
//!
//! `TOKENZERO_CORPUS` names directories (separated by `:`) with Rust sources; the default is cargo's registry.

use std::fmt::Write as _;
use std::io::{Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use tokenzero::{Counter, Encoding, TokenZero};
use zero_contracts::objects::ObjectWriter;
use zero_contracts::tokens::{ProjectText, TextKind};
use zero_contracts::{ByteRange, CancelToken, Digest, Error, Hasher, ObjectStore, TokenEngine};

const MIB: f64 = 1024.0 * 1024.0;

fn main() {
    // `cargo test --benches` runs this with `--test`: then once is enough and the sizes are small.
    let quick = std::env::args().any(|argument| argument == "--test");
    let (rounds, corpus_bytes, lines) = if quick {
        (1, 200_000, 20_000)
    } else {
        (7, 20 << 20, 1_000_000)
    };
    counting(rounds, corpus_bytes);
    runs(rounds, if quick { 20_000 } else { 1_000_000 });
    first_count();
    projecting(rounds, lines);
}

/// Seconds of each round, sorted.
fn time(rounds: usize, mut work: impl FnMut()) -> Vec<f64> {
    let mut times: Vec<f64> = (0..rounds)
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed().as_secs_f64()
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times
}

/// Seconds of each round of two works, sorted: in turns, so that what else the machine does hits both.
fn time_in_turns(rounds: usize, mut one: impl FnMut(), mut other: impl FnMut()) -> (Vec<f64>, Vec<f64>) {
    let (mut ones, mut others) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        ones.extend(time(1, &mut one));
        others.extend(time(1, &mut other));
    }
    ones.sort_by(f64::total_cmp);
    others.sort_by(f64::total_cmp);
    (ones, others)
}

fn median(times: &[f64]) -> f64 {
    times[times.len() / 2]
}

fn p95(times: &[f64]) -> f64 {
    times[(times.len() * 95 / 100).min(times.len() - 1)]
}

fn row(case: &str, median: f64, p95: f64, unit: &str, against: &str, ratio: f64) {
    println!(
        r#"{{"bench":"tokens","case":"{case}","median":{median:.3},"p95":{p95:.3},"unit":"{unit}","against":"{against}","ratio":{ratio:.2}}}"#
    );
}

/// Rows of a throughput in MiB/s.
fn throughput(case: &str, bytes: usize, times: &[f64], against: &str, floor: f64) {
    let speed = |seconds: f64| bytes as f64 / MIB / seconds;
    row(
        case,
        speed(median(times)),
        speed(p95(times)),
        "MiB/s",
        against,
        floor / median(times),
    );
}

fn counting(rounds: usize, bytes: usize) {
    let text = corpus(bytes);
    for (encoding, reference) in [
        (Encoding::O200kBase, tiktoken_rs::o200k_base_singleton()),
        (Encoding::Cl100kBase, tiktoken_rs::cl100k_base_singleton()),
    ] {
        let floor = time(rounds.min(3), || {
            std::hint::black_box(reference.encode_ordinary(&text).len());
        });
        let counter = Counter::new(encoding);
        let times = time(rounds, || {
            std::hint::black_box(counter.count(&text));
        });
        assert_eq!(counter.count(&text), reference.encode_ordinary(&text).len() as u64);
        let case = format!("count {} MiB of Rust source, {encoding}", text.len() >> 20);
        throughput(&case, text.len(), &times, "tiktoken-rs, one thread", median(&floor));
        if let Some(seconds) = python(&counter, encoding, &text) {
            throughput(&case, text.len(), &times, "Python tiktoken, one thread", seconds);
        }
    }
}

/// Seconds that Python's tiktoken takes, given the same vocabulary; none where it is not installed.
fn python(counter: &Counter, encoding: Encoding, text: &str) -> Option<f64> {
    const PROGRAM: &str = "
import sys, time, tiktoken, tiktoken_ext.openai_public as public
directory, name = sys.argv[1:]
ranks = {bytes.fromhex(a): int(b) for a, b in (line.split() for line in open(directory + '/ranks'))}
public.load_tiktoken_bpe = lambda *a, **k: ranks
made = getattr(public, name)()
encoding = tiktoken.Encoding(**made)
text = open(directory + '/text', encoding='utf-8', newline='').read()
times = []
for _ in range(3):
    start = time.perf_counter()
    encoding.encode_ordinary(text)
    times.append(time.perf_counter() - start)
print(sorted(times)[1])
";
    let directory = std::env::temp_dir().join(format!("tokenzero-bench-{}", std::process::id()));
    std::fs::create_dir_all(&directory).ok()?;
    let mut ranks = String::new();
    for rank in 0..200_000 {
        if let Some(token) = counter.token_bytes(rank) {
            token
                .iter()
                .for_each(|byte| write!(ranks, "{byte:02x}").expect("a String takes everything"));
            writeln!(ranks, " {rank}").expect("a String takes everything");
        }
    }
    let seconds = std::fs::write(directory.join("ranks"), ranks)
        .and_then(|()| std::fs::write(directory.join("text"), text))
        .and_then(|()| {
            Command::new("python3")
                .args(["-c", PROGRAM])
                .arg(&directory)
                .arg(encoding.as_str())
                .output()
        })
        .ok()
        .and_then(|output| String::from_utf8(output.stdout).ok()?.trim().parse().ok());
    let _ = std::fs::remove_dir_all(&directory);
    seconds
}

/// Long runs of one character: the time per byte of ten times the length against that of one length.
fn runs(rounds: usize, long: usize) {
    let counter = Counter::new(Encoding::O200kBase);
    for (name, text) in [("A", "A"), ("^", "^"), ("space", " "), ("CJK", "中"), ("emoji", "😀")] {
        let (short_text, long_text) = (text.repeat(long / 10 / text.len()), text.repeat(long / text.len()));
        let short = time(rounds, || {
            std::hint::black_box(counter.count(&short_text));
        });
        let long = time(rounds, || {
            std::hint::black_box(counter.count(&long_text));
        });
        let case = format!("count {} KB of {name}", long_text.len() / 1000);
        throughput(
            &case,
            long_text.len(),
            &long,
            "ten times a tenth of it",
            median(&short) * 10.0,
        );
    }
}

/// What a first count costs a program that has never counted.
fn first_count() {
    let start = Instant::now();
    let engine = TokenZero::default();
    let count = engine.count(r#"{"ok":true,"files":3}"#).tokens;
    let first = start.elapsed().as_secs_f64() * 1e6;
    let times = time(1001, || {
        std::hint::black_box(engine.count(r#"{"ok":true,"files":3}"#));
    });
    let again = median(&times) * 1e6;
    row(
        &format!("count a value of {count} tokens"),
        again,
        p95(&times) * 1e6,
        "us",
        "the engine's making and first count",
        first / again,
    );
}

fn projecting(rounds: usize, lines: usize) {
    let directory = std::env::temp_dir().join(format!("tokenzero-bench-log-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a temporary directory can be made");
    let path = directory.join("log");
    let mut file = std::io::BufWriter::new(std::fs::File::create(&path).expect("a temporary file can be made"));
    let mut hasher = Hasher::new();
    let mut line = String::new();
    for number in 0..lines {
        line.clear();
        let level = if number % 50_021 == 777 { "ERROR" } else { "INFO" };
        writeln!(
            line,
            "2024-05-01T10:{:02}:{:02}Z {level} worker-{} handled request {number:08x} in {} ms",
            number / 60 % 60,
            number % 60,
            number % 16,
            number % 977
        )
        .expect("a String takes everything");
        hasher.update(line.as_bytes());
        file.write_all(line.as_bytes())
            .expect("a temporary file can be written");
    }
    file.flush().expect("a temporary file can be written");
    drop(file);
    let object = hasher.finish();
    let store = FileStore { object, path };
    let bytes = store.size(&object).expect("the file is there").unwrap_or(0) as usize;

    let engine = TokenZero::default();
    let how = ProjectText {
        kind: TextKind::Detect,
        budget: 2000,
        ..ProjectText::default()
    };
    let read = || {
        let mut reader = store.open(&object).expect("the file is there");
        let mut buffer = vec![0; 128 * 1024];
        while reader.read(&mut buffer).expect("the file can be read") > 0 {}
    };
    let project = || {
        let shown = engine
            .project_object(&object, &how, &store, &CancelToken::new())
            .expect("the log can be projected");
        assert!(shown.shown.tokens <= 2000 && shown.text.contains("ERROR"));
    };
    let (floor, times) = time_in_turns(5 * rounds, read, project);
    let case = format!("project a log of {lines} lines to 2000 tokens");
    throughput(&case, bytes, &times, "reading it, verified", median(&floor));
    let _ = std::fs::remove_dir_all(&directory);
}

/// One object in a file, verified as it is read.
struct FileStore {
    object: Digest,
    path: PathBuf,
}

impl ObjectStore for FileStore {
    fn put(&self, _: &[u8]) -> Result<Digest, Error> {
        Ok(self.object)
    }
    fn writer(&self) -> Result<Box<dyn ObjectWriter>, Error> {
        Err(Error::invalid("this store is read only"))
    }
    fn get(&self, _: &Digest) -> Result<Vec<u8>, Error> {
        std::fs::read(&self.path).map_err(|error| Error::from_io(&error, "reading the log"))
    }
    fn open(&self, _: &Digest) -> Result<Box<dyn Read + Send>, Error> {
        let file = std::fs::File::open(&self.path).map_err(|error| Error::from_io(&error, "opening the log"))?;
        Ok(Box::new(Verified {
            file,
            hasher: Hasher::new(),
            expected: self.object,
        }))
    }
    fn get_range(&self, digest: &Digest, range: ByteRange) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        self.open(digest)?
            .take(range.end())
            .read_to_end(&mut bytes)
            .map_err(|error| Error::from_io(&error, "reading the log"))?;
        Ok(bytes.split_off(range.start() as usize))
    }
    fn size(&self, _: &Digest) -> Result<Option<u64>, Error> {
        Ok(std::fs::metadata(&self.path).ok().map(|data| data.len()))
    }
}

struct Verified {
    file: std::fs::File,
    hasher: Hasher,
    expected: Digest,
}

impl Read for Verified {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.hasher.update(&buffer[..read]);
        if read == 0 && self.hasher.finish() != self.expected {
            return Err(std::io::Error::from(std::io::ErrorKind::InvalidData));
        }
        Ok(read)
    }
}

/// Rust sources, at least `bytes` bytes of them; those of this crate again and again where there are no others.
fn corpus(bytes: usize) -> String {
    let directories = std::env::var("TOKENZERO_CORPUS").ok().or_else(|| {
        let home = std::env::var("CARGO_HOME")
            .ok()
            .or_else(|| std::env::var("HOME").ok().map(|home| home + "/.cargo"))?;
        Some(home + "/registry/src")
    });
    let mut text = String::new();
    for directory in directories.iter().flat_map(|list| list.split(':')) {
        gather(Path::new(directory), bytes, &mut text);
    }
    while text.len() < bytes {
        gather(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src")), bytes, &mut text);
    }
    text
}

fn gather(path: &Path, bytes: usize, text: &mut String) {
    let Ok(entries) = std::fs::read_dir(path) else { return };
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    for path in paths {
        if text.len() >= bytes {
            return;
        }
        if path.is_dir() {
            gather(&path, bytes, text);
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && let Ok(source) = std::fs::read_to_string(&path)
            && source.len() < 1 << 20
        {
            text.push_str(&source);
        }
    }
}
