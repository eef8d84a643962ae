//! The index on disk, through the engine: warm starts, damage, and a writer that is killed.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use graphzero::testing::MemoryView;
use graphzero::{GraphConfig, GraphZero};
use zero_contracts::find::{FindMode, FindOptions, FindRequest, Freshness, Skipped};
use zero_contracts::source::{Entry, FileContent, WalkScope};
use zero_contracts::{CancelToken, Digest, Error, SourceView, StructureEngine, WorkspacePath};

/// Counts the reads of a view.
struct Counting<'v>(&'v MemoryView, AtomicUsize);

impl SourceView for Counting<'_> {
    fn entry(&self, path: &WorkspacePath) -> Result<Option<Entry>, Error> {
        self.0.entry(path)
    }
    fn resolve(&self, path: &WorkspacePath) -> Result<Option<Entry>, Error> {
        self.0.resolve(path)
    }
    fn list(&self, path: &WorkspacePath) -> Result<Vec<Entry>, Error> {
        self.0.list(path)
    }
    fn read_link(&self, path: &WorkspacePath) -> Result<Vec<u8>, Error> {
        self.0.read_link(path)
    }
    fn read(&self, path: &WorkspacePath, token: &CancelToken) -> Result<FileContent, Error> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.read(path, token)
    }
    fn open(&self, path: &WorkspacePath) -> Result<Box<dyn std::io::Read + Send>, Error> {
        self.0.open(path)
    }
    fn walk(
        &self,
        scope: &WalkScope,
        token: &CancelToken,
        visit: &(dyn Fn(Entry) -> ControlFlow<()> + Sync),
    ) -> Result<Vec<Skipped>, Error> {
        self.0.walk(scope, token, visit)
    }
    fn freshness(&self) -> Freshness {
        self.0.freshness()
    }
}

fn open(directory: &Path) -> GraphZero {
    GraphZero::open(GraphConfig::default().index(directory)).expect("the configuration is sound")
}

fn tree(files: usize) -> MemoryView {
    let view = MemoryView::default();
    for n in 0..files {
        view.write(
            &format!("src/m{n}.rs"),
            format!(
                "/// Number {n}.\npub struct S{n} {{ field: u32 }}\nimpl S{n} {{ pub fn f{n}(&self) -> u32 {{ self.field }} }}\nfn g{n}(s: &S{n}) -> u32 {{ assert!(s.f{n}() > 1); s.f{n}() }}\n"
            ),
        );
        view.write(
            &format!("py/p{n}.py"),
            format!("class P{n}:\n    def q{n}(self): return self.q{n}()\n"),
        );
        view.write(&format!("ts/t{n}.ts"), format!("export const t{n} = () => t{n}();\n"));
        view.write(&format!("go/g{n}.go"), format!("package g\nfunc G{n}() {{ G{n}() }}\n"));
        view.write(&format!("c/c{n}.c"), format!("int c{n}(void) {{ return c{n}(); }}\n"));
        view.write(
            &format!("j/J{n}.java"),
            format!("class J{n} {{ void j{n}() {{ j{n}(); }} }}\n"),
        );
    }
    view.write("Cargo.toml", "[package]\nname = \"one\"\n");
    view
}

fn answers(engine: &GraphZero, view: &dyn SourceView) -> Vec<String> {
    let mut all = Vec::new();
    for (mode, query) in [
        (FindMode::Symbols, ""),
        (FindMode::Callers, "f1"),
        (FindMode::References, "S1"),
        (FindMode::Callers, "q1"),
        (FindMode::Callers, "t1"),
    ] {
        let options = FindOptions {
            mode,
            limit: Some(5000),
            ..FindOptions::default()
        };
        let query = query.to_owned();
        let found = engine
            .find(view, &FindRequest { query, options }, &CancelToken::new())
            .expect("the query is answered");
        all.push(format!("{found:?}"));
    }
    all
}

#[test]
fn a_second_process_answers_the_same_without_reading() {
    let directory = tempfile::tempdir().unwrap();
    let view = tree(20);
    let from_scratch = answers(&GraphZero::new(), &view);
    {
        let engine = open(directory.path());
        assert_eq!(answers(&engine, &view), from_scratch);
    }
    let engine = open(directory.path());
    assert!(engine.persisted_bytes() > 0);
    let counting = Counting(&view, AtomicUsize::new(0));
    engine.refresh(&counting, &CancelToken::new()).unwrap();
    assert_eq!(
        counting.1.load(Ordering::Relaxed),
        0,
        "every content is known by its stamp"
    );
    assert_eq!(answers(&engine, &view), from_scratch);
    // One file changes: it alone is read.
    view.write("src/m3.rs", "pub fn other() {}");
    engine.refresh(&counting, &CancelToken::new()).unwrap();
    assert_eq!(counting.1.load(Ordering::Relaxed), 1);
    assert_eq!(answers(&engine, &view), answers(&GraphZero::new(), &view));
}

#[test]
fn a_damaged_index_is_rebuilt_without_a_word() {
    let directory = tempfile::tempdir().unwrap();
    let view = tree(5);
    let from_scratch = answers(&GraphZero::new(), &view);
    open(directory.path()).refresh(&view, &CancelToken::new()).unwrap();
    for damage in 0..12usize {
        for entry in std::fs::read_dir(directory.path()).unwrap() {
            let path = entry.unwrap().path();
            let mut bytes = std::fs::read(&path).unwrap();
            let at = bytes.len() * damage / 12;
            if damage % 2 == 0 {
                bytes[at] ^= 0x55;
            } else {
                bytes.truncate(at);
            }
            // Another file in its place: what is mapped stays as it is.
            std::fs::remove_file(&path).unwrap();
            std::fs::write(&path, bytes).unwrap();
        }
        let engine = open(directory.path());
        assert_eq!(answers(&engine, &view), from_scratch, "damage {damage}");
    }
}

#[test]
fn collection_keeps_what_is_wanted() {
    let directory = tempfile::tempdir().unwrap();
    let view = tree(30);
    let engine = open(directory.path());
    engine.refresh(&view, &CancelToken::new()).unwrap();
    let before = engine.persisted_bytes();
    assert!(engine.collect(&|_| true, &CancelToken::new()).unwrap() <= before);
    let token = CancelToken::new();
    let kept = view.read(&"src/m1.rs".parse().unwrap(), &token).unwrap().digest;
    assert!(engine.collect(&|digest| *digest == kept, &token).unwrap() > 0);
    assert_eq!(engine.indexed(), 1);
    let counting = Counting(&view, AtomicUsize::new(0));
    open(directory.path()).refresh(&counting, &token).unwrap();
    assert!(counting.1.load(Ordering::Relaxed) > 30, "the rest is parsed again");
}

#[test]
fn what_no_file_has_any_more_goes_and_answers_stay() {
    let directory = tempfile::tempdir().unwrap();
    let token = CancelToken::new();
    let (view, mut sizes) = (tree(100), Vec::new());
    for round in 0..12 {
        // Every file is another each round; one moves away, and one is a copy of another.
        for n in 0..100 {
            view.write(
                &format!("src/m{n}.rs"),
                format!("pub struct S{n};\nimpl S{n} {{ pub fn f{n}(&self) -> u32 {{ {round} }} }}\nfn g{n}(s: &S{n}) -> u32 {{ s.f{n}() }}\n"),
            );
        }
        view.write(&format!("src/moved{round}.rs"), "pub fn moved() {}\n");
        view.write("src/copy.rs", view.text("src/m3.rs").unwrap());
        if round > 0 {
            assert!(view.remove(&format!("src/moved{}.rs", round - 1)));
        }
        let engine = open(directory.path());
        let before = answers(&engine, &view);
        let grown = engine.persisted_bytes();
        let freed = engine.collect_absent(&view, &token).unwrap();
        assert_eq!(freed > 0, round > 0, "round {round}");
        assert_eq!(answers(&engine, &view), before, "round {round}");
        sizes.push((grown, engine.persisted_bytes()));
        drop(engine);
        // A later process answers the same, and parses nothing again.
        let counting = Counting(&view, AtomicUsize::new(0));
        let later = open(directory.path());
        later.refresh(&counting, &token).unwrap();
        assert_eq!(counting.1.load(Ordering::Relaxed), 0, "round {round}");
        assert_eq!(answers(&later, &view), before, "round {round}");
    }
    let (_, first) = sizes[0];
    for (round, (grown, kept)) in sizes.into_iter().enumerate() {
        assert!(
            kept <= first + first / 10,
            "round {round}: {first} bytes at first, now {kept}"
        );
        assert!(
            round == 0 || grown > kept,
            "round {round}: nothing was left over: {grown} bytes before, {kept} after, {first} at first"
        );
    }
}

#[test]
fn files_that_are_ignored_are_present_too() {
    let directory = tempfile::tempdir().unwrap();
    let root = tempfile::tempdir().unwrap();
    for (path, text) in [
        (".gitignore", "made.rs\n"),
        ("made.rs", "pub fn made() {}\n"),
        ("lib.rs", "pub fn kept() {}\n"),
    ] {
        std::fs::write(root.path().join(path), text).unwrap();
    }
    let view = graphzero::testing::DirectoryView::new(root.path());
    let token = CancelToken::new();
    let mut options = FindOptions::default();
    (options.mode, options.ignored) = (FindMode::Definitions, true);
    let request = FindRequest {
        query: "made".into(),
        options,
    };
    let engine = open(directory.path());
    assert_eq!(engine.find(&view, &request, &token).unwrap().total, 1);
    engine.collect_absent(&view, &token).unwrap();
    assert_eq!(engine.indexed(), 2);
    std::fs::remove_file(root.path().join("made.rs")).unwrap();
    engine.collect_absent(&view, &token).unwrap();
    assert_eq!(engine.indexed(), 1);
    assert_eq!(engine.find(&view, &request, &token).unwrap().total, 0);
}

/// Writes an index again and again; a child of the test below, which kills it.
#[test]
#[ignore = "ends only when it is killed"]
fn writer_to_be_killed() {
    let Some(directory) = std::env::var_os("GRAPHZERO_INDEX") else {
        return;
    };
    let view = tree(80);
    let engine = open(Path::new(&directory));
    for round in (0..8u8).cycle() {
        engine.refresh(&view, &CancelToken::new()).unwrap();
        // An eighth goes every time and is learnt again, so that every round writes.
        let keep = |digest: &Digest| digest.as_bytes()[0] % 8 != round;
        engine.collect(&keep, &CancelToken::new()).unwrap();
    }
}

#[test]
fn a_writer_that_is_killed_harms_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let view = tree(80);
    let from_scratch = answers(&GraphZero::new(), &view);
    for round in 0..6 {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "persisted::writer_to_be_killed", "--ignored", "--nocapture"])
            .env("GRAPHZERO_INDEX", directory.path())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(40 + 35 * round));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(answers(&open(directory.path()), &view), from_scratch, "kill {round}");
    }
}
