//! The crash sweep: every program of one operation, and many of two and three, killed and failed at every step. What a
//! loss of power leaves is in `losses`.
//!
//! After each, a new engine recovers; the tree must be all old or all new, nothing may be left over, and the workspace
//! must still work. `FSZERO_SWEEP=full` makes it exhaustive to three operations; the numbers tried are printed, and
//! `FSZERO_SEED` (0 to 255) gives other samples.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use fszero::FsZero;
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng};
use zero_contracts::files::Durability;
use zero_contracts::{CancelToken, Epoch, FileEngine};

use crate::gates::{Injector, Plan, held};
use crate::support::*;

/// Operations that work on [`prepare`]'s tree, alone and mostly in combination.
pub const OPERATIONS: &[&str] = &[
    r#"{"path": "new", "create": "new\n"}"#,
    r#"{"path": "p/q/new", "create": "deep\n"}"#,
    r#"{"path": "a", "find": "alpha", "replacement": "ALPHA"}"#,
    r#"{"path": "d/x", "content": "replaced", "expect": "any"}"#,
    r#"{"path": "private", "insertAfter": 1, "content": "more", "expect": "any"}"#,
    r#"{"path": "d/y", "remove": true, "expect": "any"}"#,
    r#"{"path": "l", "remove": true}"#,
    r#"{"path": "empty", "remove": true}"#,
    r#"{"path": "a", "mode": 493}"#,
    r#"{"path": "d", "mode": 448}"#,
    r#"{"move": ["b", "c"]}"#,
    r#"{"move": ["d", "moved/d"]}"#,
    r#"{"move": ["l", "l2"]}"#,
    r#"{"copy": ["a", "copy"]}"#,
    r#"{"mkdir": "m/n"}"#,
    r#"{"symlink": ["a", "s"]}"#,
    r#"{"path": "large", "find": "needle", "replacement": "thread"}"#,
    r#"{"path": "\\xff", "find": "raw", "replacement": "cooked"}"#,
    // These leave at old places what looks like what was there: a temporary that is missing tells nothing by itself.
    r#"{"move": ["d", "was"]}, {"mkdir": "d/sub"}, {"path": "d/x", "create": "x\r\n"}, {"path": "d/y", "create": "y"}"#,
    r#"{"move": ["empty", "full"]}, {"mkdir": "empty"}"#,
    r#"{"move": ["b", "bb"]}, {"path": "b", "create": "b"}"#,
    r#"{"path": "a", "remove": true, "expect": "any"}, {"path": "a", "create": "alpha\nbeta\n"}"#,
    // And these give names away and take them back.
    r#"{"mkdir": "p/q"}, {"move": ["d", "t"]}, {"move": ["empty", "d"]}, {"move": ["t", "empty"]}"#,
    r#"{"move": ["d", "t"]}, {"move": ["empty", "d"]}, {"path": "d", "mode": 448}, {"path": "empty", "create": ""}"#,
];

/// More that work by themselves: names are used again after a rename, and what comes to them looks like what was there. A
/// rename that is kept while what came before it is lost would move the wrong one.
const ENTANGLED: &[&str] = &[
    r#"{"move": ["b", "bb"]}, {"path": "b", "create": "b"}, {"move": ["b", "c"]}"#,
    r#"{"move": ["b", "bb"]}, {"path": "b", "create": "b"}, {"move": ["b", "c"]}, {"move": ["bb", "b"]}"#,
    r#"{"move": ["d", "t"]}, {"move": ["empty", "d"]}, {"path": "d", "mode": 448}, {"path": "empty", "create": ""}, {"move": ["empty", "full"]}, {"mkdir": "empty"}"#,
    r#"{"move": ["a", "c"]}, {"path": "c", "find": "alpha", "replacement": "ALPHA"}, {"move": ["c", "e"]}, {"path": "e", "mode": 493}, {"move": ["b", "a"]}"#,
    r#"{"move": ["a", "t"]}, {"move": ["b", "a"]}, {"move": ["t", "b"]}, {"path": "a", "find": "b", "replacement": "B"}, {"path": "b", "find": "beta", "replacement": "b"}"#,
    r#"{"path": "a", "remove": true, "expect": "any"}, {"move": ["b", "a"]}, {"path": "a", "remove": true, "expect": "any"}, {"path": "b", "create": "b"}"#,
    r#"{"path": "a", "find": "alpha", "replacement": "b"}, {"move": ["a", "c"]}, {"path": "a", "create": "b"}, {"move": ["b", "e"]}, {"move": ["a", "b"]}"#,
];

fn prepare(root: &Path) {
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::PermissionsExt;
    std::fs::create_dir_all(root.join("d/sub")).unwrap();
    std::fs::create_dir_all(root.join("empty")).unwrap();
    for (path, bytes) in [
        ("a", "alpha\nbeta\n"),
        ("b", "b"),
        ("d/x", "x\r\n"),
        ("d/y", "y"),
        ("d/sub/z", "z"),
        ("private", "secret\n"),
    ] {
        std::fs::write(root.join(path), bytes).unwrap();
    }
    let mut large = "0123456789abcdef\n".repeat(2000);
    large.push_str("needle\n");
    std::fs::write(root.join("large"), large).unwrap();
    std::fs::write(root.join(std::ffi::OsStr::from_bytes(b"\xff")), "raw").unwrap();
    std::fs::set_permissions(root.join("private"), std::fs::Permissions::from_mode(0o600)).unwrap();
    std::os::unix::fs::symlink("a", root.join("l")).unwrap();
}

/// Between the parts of a program that are published one after the other.
pub const THEN: &str = " then ";

/// Programs of several batches: what the later ones moved from is told from the tree, where the earlier ones were at work.
const BATCHES: &[&str] = &[
    r#"[{"move": ["d", "m"]}, {"path": "large", "mode": 448}] then [{"move": ["b", "d/sub/z"]}, {"move": ["m", "d/y"]}]"#,
    r#"[{"path": "d/y", "remove": true, "expect": "any"}, {"path": "large", "mode": 448}, {"move": ["d/sub", "d/y"]}] then [{"move": ["d/y", "d/sub/z"]}, {"symlink": ["a", "t/x"]}]"#,
    r#"[{"symlink": ["a", "t/x"]}, {"path": "l", "mode": 448}, {"move": ["d", "m"]}] then [{"move": ["t/x", "d"]}, {"path": "empty/b", "create": "b"}]"#,
    r#"[{"move": ["b", "c"]}] then [{"path": "b", "create": "b"}, {"move": ["c", "e"]}] then [{"move": ["b", "c"]}]"#,
];

/// How the transaction goes on after staging.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Way {
    Commit,
    /// Materialised, then committed.
    Materialized,
    /// Materialised, then restored.
    Restored,
    /// A command runs after it, then all is committed.
    Command,
    /// A command runs after it, then all is restored.
    CommandRestored,
    /// A command runs after it in a private view, then all is committed.
    Private,
}

impl Way {
    pub const ALL: [Self; 6] = [
        Self::Commit,
        Self::Materialized,
        Self::Restored,
        Self::Command,
        Self::CommandRestored,
        Self::Private,
    ];

    /// Those that a program of one operation goes through: without a command, and some with one.
    pub fn of(program: usize) -> Vec<Self> {
        match program % 6 {
            _ if full() => Self::ALL.to_vec(),
            0 => vec![Self::Commit, Self::CommandRestored],
            3 => vec![Self::Restored, Self::Command],
            4 => vec![Self::Restored, Self::Private],
            _ => vec![Self::Commit, Self::Restored],
        }
    }

    pub fn restores(self) -> bool {
        matches!(self, Self::Restored | Self::CommandRestored)
    }
}

/// What the command does, to what the operations did and to what they did not touch.
fn command(root: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let at = |path: &str| root.join(path);
    let _ = std::fs::write(at("d/x"), "by a command\n");
    let _ = std::fs::remove_file(at("new"));
    let _ = std::fs::rename(at("a"), at("elsewhere"));
    let _ = std::fs::rename(at("empty"), at("d/full"));
    let _ = std::fs::create_dir_all(at("made/deep")).and_then(|()| std::fs::write(at("made/deep/file"), "x\r\n"));
    let _ = std::os::unix::fs::symlink("a", at("made/link"));
    let _ = std::fs::set_permissions(at("private"), std::fs::Permissions::from_mode(0o644));
    let _ = std::fs::remove_dir_all(at("moved"));
}

/// What the command leaves in the upper layer of its view, where the operations left no directory in the way.
fn private_command(upper: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let large = "large\n".repeat(60_000);
    for (path, bytes, mode) in [
        ("a", "by a command\n", 0o644),
        ("b", "", 0o755),
        ("private", "secret\n", 0o644),
        ("l", "no link\n", 0o644),
        ("made", "x\r\n", 0o600),
        ("made large", &large, 0o644),
    ] {
        let at = upper.join(path);
        // What was laid there, or that something is gone.
        let _ = std::fs::remove_file(&at);
        if std::fs::write(&at, bytes).is_ok() {
            std::fs::set_permissions(&at, std::fs::Permissions::from_mode(mode)).unwrap();
        }
    }
}

pub struct Trial {
    pub fixture: Fixture,
    pub gate: Arc<Injector>,
    pub old: Image,
}

pub fn trial(durability: Durability, disk: bool) -> Trial {
    let dir = scratch();
    prepare(&dir.path().join("root"));
    let gate = if disk { Injector::with_disk() } else { Injector::new() };
    let fixture = Fixture::with(dir, |config| config.durability(durability).gate(gate.clone()));
    // The same every time.
    static OLD: OnceLock<Image> = OnceLock::new();
    let old = OLD.get_or_init(|| fixture.image()).clone();
    Trial { fixture, gate, old }
}

impl Trial {
    /// Runs a program; tells whether it committed. None if the operations do not fit together.
    pub fn run(&self, program: &str, way: Way, plan: Plan) -> Option<bool> {
        let token = CancelToken::new();
        let mut transaction = self.fixture.engine.begin(fresh()).unwrap();
        let mut parts = program.split(THEN);
        stage(&mut *transaction, parts.next()?).ok()?;
        if matches!(way, Way::Command | Way::CommandRestored) {
            transaction.begin_capture(Epoch(1), &token).unwrap();
            command(&self.fixture.root());
        }
        if way == Way::Private {
            private_command(&transaction.open_view(&token).ok()?.upper);
        }
        if let Some(disk) = &self.gate.disk {
            let store = self.fixture.dir.path().join("store");
            held(disk).load(&[&self.fixture.root(), &store]);
            if way == Way::Private {
                held(disk).unflushed(&store.join("private"));
            }
        }
        self.gate.arm(plan);
        for part in parts {
            if transaction.materialize(Epoch(1), &token).is_err() || stage(&mut *transaction, part).is_err() {
                return Some(false);
            }
        }
        let before = match way {
            Way::Commit => Ok(()),
            Way::Materialized | Way::Restored => transaction.materialize(Epoch(1), &token),
            Way::Command | Way::CommandRestored | Way::Private => transaction.end_capture(&token).map(drop),
        };
        if before.is_err() {
            return Some(false);
        }
        Some(if way.restores() {
            let _ = transaction.restore();
            false
        } else {
            finish(&mut *transaction).is_ok()
        })
    }
}

/// Recovers, perhaps dying once on the way, and checks that the tree is one of two and the workspace sound.
pub fn check(
    dir: &Path,
    durability: Durability,
    old: &Image,
    new: &Image,
    must: Option<bool>,
    die: Option<u64>,
    what: &str,
) {
    let root = dir.join("root");
    if let Some(step) = die {
        let gate = Injector::new();
        let engine = FsZero::open(config(dir).durability(durability).gate(gate.clone())).unwrap();
        gate.arm(Plan::Die(step));
        let _ = engine.recover(Epoch(2), &CancelToken::new());
    }
    let engine = FsZero::open(config(dir).durability(durability)).unwrap();
    engine
        .recover(Epoch(3), &CancelToken::new())
        .unwrap_or_else(|e| panic!("{what}: recovery: {e}"));
    let image = image(&root);
    match must {
        Some(true) => assert!(
            image == *new,
            "{what}: committed, and the tree is not new:\n{}",
            difference(&image, new)
        ),
        Some(false) => assert!(
            image == *old,
            "{what}: not committed, and the tree is not old:\n{}",
            difference(&image, old)
        ),
        None => assert!(
            image == *old || image == *new,
            "{what}: neither old nor new:\nold {}\nnew {}",
            difference(&image, old),
            difference(&image, new)
        ),
    }
    assert!(!engine.has_open_transaction().unwrap(), "{what}");
    let committed = !engine.commits_after(0).unwrap().is_empty();
    assert!(image == *old || committed, "{what}: new without a commit record");
    assert!(
        old == new || image == *new || !committed,
        "{what}: old in spite of a commit record"
    );
    let mut damage = engine.verify(&CancelToken::new()).unwrap();
    if durability == Durability::Power {
        // An object that nobody committed may be torn; it is written anew when it is stored again.
        damage.retain(|damage| !damage.what.starts_with("z://blob/"));
    }
    assert_eq!(damage, [], "{what}");
    let mut transaction = engine.begin(fresh()).unwrap();
    stage(&mut *transaction, r#"[{"path": "after", "create": "works"}]"#).unwrap();
    transaction
        .commit(Epoch(4), seal(), &CancelToken::new())
        .unwrap_or_else(|e| panic!("{what}: afterwards: {e}"));
}

fn difference(have: &Image, want: &Image) -> String {
    let show = |held: Option<&Held>| match held {
        Some(Held::File(bytes, mode)) => format!("{} bytes, mode {mode:o}", bytes.len()),
        other => format!("{other:?}"),
    };
    let keys: std::collections::BTreeSet<_> = have.keys().chain(want.keys()).collect();
    keys.into_iter()
        .filter(|key| have.get(*key) != want.get(*key))
        .map(|key| {
            format!(
                "  {}: {} instead of {}\n",
                String::from_utf8_lossy(key),
                show(have.get(key)),
                show(want.get(key))
            )
        })
        .collect()
}

#[derive(Default, Debug)]
struct Points {
    kills: u64,
    failures: u64,
    programs: u64,
}

impl std::iter::Sum for Points {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, points| Self {
            kills: sum.kills + points.kills,
            failures: sum.failures + points.failures,
            programs: sum.programs + points.programs,
        })
    }
}

/// Does something with each program, as many at a time as there are processors, and adds up what it gives.
pub fn each<P: Sync, T: Send + std::iter::Sum>(programs: &[P], work: impl Fn(usize, &P) -> T + Sync) -> T {
    let next = AtomicUsize::new(0);
    let some = || {
        std::iter::from_fn(|| {
            let at = next.fetch_add(1, Ordering::Relaxed);
            // Somebody who waits for hours wants to see that it goes on.
            if full() && at > 0 && at.is_multiple_of(500) {
                println!("{at} of {} programs", programs.len());
            }
            Some(work(at, programs.get(at)?))
        })
        .sum::<T>()
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(some)).collect();
        let sums = workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        sums.sum()
    })
}

/// Kills and fails one program at every step.
fn sweep(program: &str, way: Way) -> Points {
    let mut points = Points::default();
    let clean = trial(Durability::Process, false);
    let Some(committed) = clean.run(program, way, Plan::Nothing) else {
        return points;
    };
    let steps = clean.gate.steps();
    let new = clean.fixture.image();
    assert_eq!(committed, !way.restores(), "{program} {way:?}");
    if way.restores() {
        assert!(
            new == clean.old,
            "{program}: not restored:\n{}",
            difference(&new, &clean.old)
        );
    }
    points.programs += 1;
    for step in 0..steps {
        let what = format!("{program} {way:?} killed at step {step} of {steps}");
        let killed = trial(Durability::Process, false);
        let ok = killed.run(program, way, Plan::Die(step)).unwrap();
        let Trial {
            fixture: Fixture { dir, engine },
            old,
            ..
        } = killed;
        drop(engine);
        let die = (step % 3 == 1).then_some(step % 7);
        check(
            dir.path(),
            Durability::Process,
            &old,
            &new,
            ok.then_some(true),
            die,
            &what,
        );
        points.kills += 1;
        let errno = [28, 5, 24][step as usize % 3]; // ENOSPC, EIO, EMFILE
        let what = format!("{program} {way:?} failed with {errno} at step {step} of {steps}");
        let failed = trial(Durability::Process, false);
        let ok = failed.run(program, way, Plan::Fail(step, errno)).unwrap();
        let Trial {
            fixture: Fixture { dir, engine },
            old,
            ..
        } = failed;
        drop(engine);
        check(dir.path(), Durability::Process, &old, &new, Some(ok), None, &what);
        points.failures += 1;
    }
    points
}

pub fn full() -> bool {
    std::env::var("FSZERO_SWEEP").is_ok_and(|v| v == "full")
}

/// Random numbers, the same in every run; `FSZERO_SEED` gives others.
pub fn rng(stream: u8) -> TestRng {
    rng_of(stream, 0)
}

/// Those for one program of many, whoever comes to do it.
pub fn rng_of(stream: u8, program: usize) -> TestRng {
    let seed: u8 = std::env::var("FSZERO_SEED").map_or(0, |seed| seed.parse().unwrap());
    let mut bytes = [stream; 32];
    bytes[0] = seed;
    for (byte, part) in bytes[1..].iter_mut().zip(program.to_le_bytes()) {
        *byte ^= part;
    }
    TestRng::from_seed(RngAlgorithm::ChaCha, &bytes)
}

fn pick(rng: &mut TestRng, count: usize) -> String {
    let chosen: Vec<&str> = (0..count)
        .map(|_| OPERATIONS[rng.next_u32() as usize % OPERATIONS.len()])
        .collect();
    format!("[{}]", chosen.join(","))
}

/// Programs of one operation, and those that are one of their kind, each with its ways.
pub fn singles() -> Vec<(String, Way)> {
    let operations = OPERATIONS.iter().enumerate();
    let alone = operations.flat_map(|(i, operation)| Way::of(i).into_iter().map(move |way| (*operation, way)));
    let ways = [Way::Commit, Way::Restored, Way::CommandRestored];
    let entangled = ENTANGLED
        .iter()
        .flat_map(|operations| ways.map(|way| (*operations, way)));
    let batches = BATCHES
        .iter()
        .flat_map(|parts| [Way::Commit, Way::Restored].map(|way| ((*parts).to_owned(), way)));
    alone
        .chain(entangled)
        .map(|(operations, way)| (format!("[{operations}]"), way))
        .chain(batches)
        .collect()
}

/// Programs of two and three operations: a sample, or all.
pub fn combinations(rng: &mut TestRng, sample: usize) -> Vec<String> {
    if !full() {
        return (0..sample).map(|i| pick(rng, 2 + i % 2)).collect();
    }
    let mut all = Vec::new();
    for a in OPERATIONS {
        for b in OPERATIONS {
            all.push(format!("[{a},{b}]"));
            all.extend(OPERATIONS.iter().map(|c| format!("[{a},{b},{c}]")));
        }
    }
    all
}

#[test]
fn one_operation_killed_and_failed_at_every_step() {
    let points: Points = each(&singles(), |_, (program, way)| sweep(program, *way));
    println!("crash sweep, one operation: {points:?}, all survived");
    assert!(points.kills > 300 && points.failures > 300);
}

#[test]
fn combinations_killed_and_failed_at_every_step() {
    let programs = combinations(&mut rng(7), 20);
    let points: Points = each(&programs, |i, program| sweep(program, Way::ALL[i % Way::ALL.len()]));
    println!("crash sweep, two and three operations: {points:?}, all survived");
    assert!(points.kills > 100);
}

/// An external editor acts between any two steps: its bytes are never lost.
#[test]
fn somebody_else_writes_between_any_two_steps() {
    let program = r#"[{"path": "a", "find": "alpha", "replacement": "ALPHA"}, {"move": ["b", "c"]}, {"path": "d/y", "remove": true, "expect": "any"}, {"path": "new", "create": "n"}]"#;
    let clean = trial(Durability::Process, false);
    clean.run(program, Way::Commit, Plan::Nothing).unwrap();
    let new = clean.fixture.image();
    let mut points = 0;
    for target in ["a", "b", "c", "d/y", "new"] {
        for renames in [false, true] {
            for step in 0..clean.gate.steps() {
                let t = trial(Durability::Process, false);
                let (at, aside) = (t.fixture.at(target), t.fixture.at("editor-temp"));
                let mut transaction = t.fixture.engine.begin(fresh()).unwrap();
                stage(&mut *transaction, program).unwrap();
                t.gate.arm(Plan::Nothing);
                t.gate.before_step(
                    step,
                    Box::new(move || {
                        if renames {
                            std::fs::write(&aside, "theirs").unwrap();
                            std::fs::rename(&aside, &at).unwrap();
                        } else {
                            std::fs::write(&at, "theirs").unwrap();
                        }
                    }),
                );
                let result = finish(&mut *transaction);
                let image = t.fixture.image();
                let what = format!(
                    "{target}, step {step}, rename {renames}: {}",
                    if result.is_ok() { "committed" } else { "refused" }
                );
                let kept = image
                    .values()
                    .any(|held| matches!(held, Held::File(bytes, _) if bytes == b"theirs"));
                assert!(kept, "{what}: their bytes are gone");
                assert!(
                    !image.keys().any(|k| k.starts_with(b".fszero")),
                    "{what}: something is left over"
                );
                let mut expected = if result.is_ok() { new.clone() } else { t.old.clone() };
                let mut found = image.clone();
                // Where they wrote is theirs; a moved file may carry their change along, or back.
                for path in [target, "b", "c"] {
                    expected.remove(path.as_bytes());
                    found.remove(path.as_bytes());
                }
                assert_eq!(found, expected, "{what}");
                points += 1;
            }
        }
    }
    println!("external writes between steps: {points} points");
}

/// The same by real death: a child process is killed in the middle of its commits.
#[test]
fn a_real_sigkill() {
    use std::process::{Command, Stdio};
    const DIR: &str = "FSZERO_TEST_VICTIM";
    if let Ok(dir) = std::env::var(DIR) {
        let dir = Path::new(&dir);
        let engine = FsZero::open(config(dir)).unwrap();
        for n in 0.. {
            let mut transaction = engine.begin(fresh()).unwrap();
            let text = format!("{n}\n").repeat(20);
            let operations: Vec<String> = (0..40)
                .map(|i| serde_json::json!({"path": format!("f{i}"), "content": text, "expect": "any"}).to_string())
                .collect();
            stage(&mut *transaction, &format!("[{}]", operations.join(","))).unwrap();
            finish(&mut *transaction).unwrap();
        }
    }
    let dir = scratch();
    let root = dir.path().join("root");
    std::fs::create_dir_all(&root).unwrap();
    for i in 0..40 {
        std::fs::write(root.join(format!("f{i}")), "start").unwrap();
    }
    let rounds = if full() { 200 } else { 12 };
    for round in 0..rounds {
        let name = std::thread::current()
            .name()
            .unwrap_or("sweep::a_real_sigkill")
            .to_owned();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", &name, "--nocapture"])
            .env(DIR, dir.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_millis(40 + (round * 37) % 60));
        child.kill().unwrap();
        child.wait().unwrap();
        let engine = FsZero::open(config(dir.path())).unwrap();
        let epoch = engine.last_epoch().unwrap();
        engine.recover(epoch, &CancelToken::new()).unwrap();
        let image = image(&root);
        assert_eq!(
            image.len(),
            40,
            "round {round}: {:?}",
            image.keys().map(|k| String::from_utf8_lossy(k)).collect::<Vec<_>>()
        );
        let first = image.values().next().unwrap();
        assert!(
            image.values().all(|held| held == first),
            "round {round}: neither all old nor all new"
        );
    }
    println!("real SIGKILL: {rounds} rounds, all survived");
}
