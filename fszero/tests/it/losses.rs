//! Loss of power: programs stopped at every step, with what was not flushed lost, kept or torn on a model of the disk; and
//! the same again while the first recovery is under way.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::Path;
use std::sync::{Arc, Mutex};

use fszero::{FsConfig, FsZero};
use proptest::prelude::*;
use proptest::test_runner::TestRng;
use tempfile::TempDir;
use zero_contracts::files::Durability;
use zero_contracts::{CancelToken, Epoch, FileEngine};

use crate::gates::{Disk, Injector, Plan, Survivor, held};
use crate::support::*;
use crate::sweep::{THEN, Way, check, combinations, each, full, rng, rng_of, singles, trial};

fn coin(rng: &mut TestRng) -> bool {
    rng.next_u32() & 1 == 1
}

fn power(dir: &Path) -> FsConfig {
    config(dir).durability(Durability::Power)
}

/// Writes what a loss of power leaves to a new place.
pub fn written(left: &[Survivor]) -> TempDir {
    let dir = scratch();
    for (root, name) in left.iter().zip(["root", "store"]) {
        root.write(&dir.path().join(name));
    }
    // The copy is another root to the engine.
    let _ = std::fs::remove_file(dir.path().join("store/root"));
    dir
}

/// Recovers, stops at a step, and loses power again.
fn lose_again(dir: &Path, rng: &mut TestRng) -> TempDir {
    let gate = Injector::with_disk();
    let engine = FsZero::open(power(dir).gate(gate.clone())).unwrap();
    let disk = gate.disk.as_ref().unwrap();
    held(disk).load(&[&dir.join("root"), &dir.join("store")]);
    gate.arm(Plan::Die(u64::from(rng.next_u32()) % 16));
    let _ = engine.recover(Epoch(2), &CancelToken::new());
    written(&held(disk).after_power_loss(&mut || coin(rng)))
}

fn fingerprint(roots: &[Survivor]) -> u64 {
    let mut hasher = DefaultHasher::new();
    roots.hash(&mut hasher);
    hasher.finish()
}

/// How many losses of power were survived, of how many programs.
#[derive(Default, Debug)]
struct Losses {
    losses: u64,
    /// Those that left the same as an earlier one of the same program.
    same: u64,
    programs: u64,
    /// Programs that committed, of which it was not found out from where on they say so.
    untold: u64,
}

impl std::iter::Sum for Losses {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            losses: sum.losses + one.losses,
            same: sum.same + one.same,
            programs: sum.programs + one.programs,
            untold: sum.untold + one.untold,
        })
    }
}

/// The first step of a run of these calls that a program can die at and still be told that it committed. From there on it
/// always is: `sweep` dies at every single one. None if it does not make the same calls again (the stat cache is written
/// if some file was old enough to be cached).
fn first_told(program: &str, way: Way, kinds: &[u64]) -> Option<u64> {
    let told = |step: usize| {
        (0..20).find_map(|_| {
            let dies = trial(Durability::Power, false);
            let told = dies.run(program, way, Plan::Die(step as u64))?;
            dies.gate.kinds().starts_with(&kinds[..step]).then_some(told)
        })
    };
    let (mut from, mut to) = (0, kinds.len());
    while from < to {
        let step = from.midpoint(to);
        (from, to) = if told(step)? { (from, step) } else { (step + 1, to) };
    }
    Some(from as u64)
}

/// What a loss of power at some step left, before anybody recovers.
struct Left {
    step: u64,
    variant: u64,
    roots: Vec<Survivor>,
}

/// Loses power before one step after the other of a program that goes on.
struct Losing {
    ways: u64,
    rng: TestRng,
    flushes: Option<u64>,
    left: Vec<Left>,
}

impl Losing {
    fn lose(&mut self, step: u64, disk: &Disk) {
        // What loses everything that was not flushed leaves the same until something is.
        let same = self.flushes.replace(disk.flushes) == Some(disk.flushes);
        for variant in u64::from(same)..self.ways {
            let roots = disk.after_power_loss(&mut || match variant {
                0 => false,
                1 => true,
                _ => coin(&mut self.rng),
            });
            self.left.push(Left { step, variant, roots });
        }
    }
}

/// Loses power before every step of one program, in several ways. It runs once: what is on the disk before a step is what
/// dying at that step leaves.
fn lose_power(program: &str, way: Way, ways: u64, rng: TestRng) -> Losses {
    let whole = trial(Durability::Power, true);
    let losing = Arc::new(Mutex::new(Losing {
        ways,
        rng,
        flushes: None,
        left: Vec::new(),
    }));
    whole.gate.at_each_step({
        let losing = losing.clone();
        Box::new(move |step, disk| held(&losing).lose(step, disk))
    });
    if whole.run(program, way, Plan::Nothing).is_none() {
        return Losses::default();
    }
    whole.gate.at_each_step(Box::new(|_, _| {}));
    let kinds = whole.gate.kinds();
    let steps = kinds.len() as u64;
    let new = whole.fixture.image();
    let mut losing = held(&losing);
    losing.lose(steps, &held(whole.gate.disk.as_ref().unwrap()));
    let told = if way.restores() {
        None
    } else {
        first_told(program, way, &kinds)
    };
    let left = std::mem::take(&mut losing.left);
    let losses = left.len() as u64;
    let (mut seen, mut same) = (HashSet::new(), 0);
    for Left { step, variant, roots } in left {
        let what = format!("{program} {way:?} lost power at step {step} of {steps}, variant {variant}");
        let must = told.is_some_and(|told| step >= told).then_some(true);
        let twice = variant % 4 == 3;
        if !twice && !seen.insert((fingerprint(&roots), must)) {
            same += 1;
            continue;
        }
        let mut dir = written(&roots);
        if twice {
            dir = lose_again(dir.path(), &mut losing.rng);
        }
        check(dir.path(), Durability::Power, &whole.old, &new, must, None, &what);
    }
    Losses {
        losses,
        same,
        programs: 1,
        untold: u64::from(told.is_none() && !way.restores()),
    }
}

#[test]
fn one_operation_with_unsynced_writes_lost_or_reordered() {
    let ways = if full() { 16 } else { 4 };
    let losses: Losses = each(&singles(), |i, (program, way)| {
        lose_power(program, *way, ways, rng_of(3, i))
    });
    println!("power loss, one operation: {losses:?}, all survived");
    assert!(losses.losses > 1000);
}

#[test]
fn combinations_with_unsynced_writes_lost_or_reordered() {
    let programs = combinations(&mut rng(5), 16);
    let losses: Losses = each(&programs, |i, program| {
        lose_power(program, Way::ALL[i % Way::ALL.len()], 4, rng_of(5, i))
    });
    println!("power loss, two and three operations: {losses:?}, all survived");
    assert!(losses.losses > 300);
}

/// Kills a process at some step of a program, perhaps also the first recovery, and loses power before every step of the
/// recovery after that: what the dead had not flushed may go then.
fn die_then_lose_power(program: &str, way: Way, times: u64, rng: &mut TestRng) -> Losses {
    let clean = trial(Durability::Power, false);
    if clean.run(program, way, Plan::Nothing).is_none() {
        return Losses::default();
    }
    let (steps, new) = (clean.gate.steps(), clean.fixture.image());
    let mut sum = Losses {
        programs: 1,
        ..Losses::default()
    };
    for time in 0..times {
        let step = u64::from(rng.next_u32()) % (steps + 1);
        let again = (time % 2 == 1).then(|| u64::from(rng.next_u32()) % 20);
        let whole = trial(Durability::Power, true);
        let _ = whole.run(program, way, Plan::Die(step));
        let recover = |plan| {
            whole.gate.arm(Plan::Nothing);
            let engine = FsZero::open(power(whole.fixture.dir.path()).gate(whole.gate.clone())).unwrap();
            whole.gate.arm(plan);
            let _ = engine.recover(Epoch(2), &CancelToken::new());
        };
        if let Some(step) = again {
            recover(Plan::Die(step));
        }
        let losing = Arc::new(Mutex::new(Losing {
            ways: 4,
            rng: rng_of(9, rng.next_u32() as usize),
            flushes: None,
            left: Vec::new(),
        }));
        whole.gate.at_each_step({
            let losing = losing.clone();
            Box::new(move |step, disk| held(&losing).lose(step, disk))
        });
        recover(Plan::Nothing);
        whole.gate.at_each_step(Box::new(|_, _| {}));
        let mut seen = HashSet::new();
        for Left {
            step: at,
            variant,
            roots,
        } in std::mem::take(&mut held(&losing).left)
        {
            sum.losses += 1;
            if !seen.insert(fingerprint(&roots)) {
                sum.same += 1;
                continue;
            }
            let what = format!(
                "{program} {way:?} killed at step {step} of {steps}, its recovery at {again:?}, \
                 lost power at step {at} of the next, variant {variant}"
            );
            let dir = written(&roots);
            check(dir.path(), Durability::Power, &whole.old, &new, None, None, &what);
        }
    }
    sum
}

#[test]
fn a_recovery_does_not_build_on_what_the_dead_left_unflushed() {
    let times = if full() { 60 } else { 3 };
    let losses: Losses = each(&singles(), |i, (program, way)| {
        die_then_lose_power(program, *way, times, &mut rng_of(6, i))
    });
    println!("deaths, then losses of power: {losses:?}, all survived");
    assert!(losses.losses > 300);
}

/// A program of three to seven operations on few names, so that they meet; in two batches every other time.
fn entangled(rng: &mut TestRng) -> String {
    const NAMES: [&str; 14] = [
        "a", "b", "c", "d", "empty", "d/x", "d/y", "d/sub", "d/sub/z", "t", "l", "large", "empty/b", "t/x",
    ];
    let staged = trial(Durability::Process, false);
    let mut any = |of: usize| rng.next_u32() as usize % of;
    let (wanted, cut) = (3 + any(5), any(2) == 1);
    let mut operations: Vec<String> = Vec::new();
    for _ in 0..60 {
        let (x, y) = (NAMES[any(NAMES.len())], NAMES[any(NAMES.len())]);
        operations.push(match any(12) {
            0..=4 => format!(r#"{{"move": ["{x}", "{y}"]}}"#),
            5 => format!(r#"{{"path": "{x}", "content": "b", "expect": "any"}}"#),
            6 => format!(r#"{{"path": "{x}", "remove": true, "expect": "any"}}"#),
            7 => format!(r#"{{"path": "{x}", "mode": 448}}"#),
            8 => format!(r#"{{"mkdir": "{x}"}}"#),
            9 => format!(r#"{{"symlink": ["a", "{x}"]}}"#),
            10 => format!(r#"{{"copy": ["{x}", "{y}"]}}"#),
            _ => format!(r#"{{"path": "{x}", "create": "b"}}"#),
        });
        let mut transaction = staged.fixture.engine.begin(fresh()).unwrap();
        if stage(&mut *transaction, &format!("[{}]", operations.join(","))).is_err() {
            operations.pop();
        }
        if operations.len() == wanted {
            break;
        }
    }
    let (first, second) = operations.split_at(if cut { operations.len() / 2 } else { operations.len() });
    if second.is_empty() {
        return format!("[{}]", first.join(","));
    }
    format!("[{}]{THEN}[{}]", first.join(","), second.join(","))
}

#[test]
fn names_that_are_used_again_with_unsynced_writes_lost_or_reordered() {
    let mut rng = rng(8);
    let ways = [Way::Commit, Way::Restored, Way::Private];
    let programs: Vec<(String, Way)> = (0..if full() { 2000 } else { 12 })
        .map(|i| (entangled(&mut rng), ways[i % ways.len()]))
        .collect();
    let losses: Losses = each(&programs, |i, (program, way)| {
        let lost = lose_power(program, *way, 4, rng_of(8, i));
        [lost, die_then_lose_power(program, *way, 3, &mut rng_of(10, i))]
            .into_iter()
            .sum()
    });
    println!("power loss, names used again: {losses:?}, all survived");
    assert!(losses.losses > 300);
}
