//! Loss of power: programs stopped at every step, with what was not flushed lost, kept or torn on a model of the disk; and
//! the same again while the first recovery is under way.

use std::path::Path;

use fszero::{FsConfig, FsZero};
use proptest::prelude::*;
use proptest::test_runner::TestRng;
use tempfile::TempDir;
use zero_contracts::files::Durability;
use zero_contracts::{CancelToken, Epoch, FileEngine};

use crate::gates::{Disk, Injector, Plan, held};
use crate::support::*;
use crate::sweep::{OPERATIONS, Way, check, combinations, full, pick, rng, trial};

fn coin(rng: &mut TestRng) -> bool {
    rng.next_u32() & 1 == 1
}

fn power(dir: &Path) -> FsConfig {
    config(dir).durability(Durability::Power)
}

/// Writes what a loss of power leaves to a new place.
fn after_loss(disk: &Disk, keep: &mut dyn FnMut() -> bool) -> TempDir {
    let dir = scratch();
    disk.after_power_loss(keep, &[&dir.path().join("root"), &dir.path().join("store")]);
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
    after_loss(&held(disk), &mut || coin(rng))
}

/// Stops one program at every step and loses what was not flushed, in several ways. Returns how many it survived.
fn lose_power(program: &str, way: Way, ways: u64, rng: &mut TestRng) -> u64 {
    let clean = trial(Durability::Power, true);
    if clean.run(program, way, Plan::Nothing).is_none() {
        return 0;
    }
    let steps = clean.gate.steps();
    let new = clean.fixture.image();
    let mut losses = 0;
    for step in 0..=steps {
        let killed = trial(Durability::Power, true);
        let ok = killed.run(program, way, Plan::Die(step)).unwrap();
        for variant in 0..ways {
            let what = format!("{program} {way:?} lost power at step {step} of {steps}, variant {variant}");
            let mut keep = || match variant {
                0 => false,
                1 => true,
                _ => coin(rng),
            };
            let mut dir = after_loss(&held(killed.gate.disk.as_ref().unwrap()), &mut keep);
            if variant % 4 == 3 {
                dir = lose_again(dir.path(), rng);
            }
            let must = (ok && !way.restores()).then_some(true);
            check(dir.path(), Durability::Power, &killed.old, &new, must, None, &what);
            losses += 1;
        }
    }
    losses
}

#[test]
fn one_operation_with_unsynced_writes_lost_or_reordered() {
    let mut losses = 0;
    let mut rng = rng(3);
    let ways = if full() { 16 } else { 4 };
    for (i, operation) in OPERATIONS.iter().enumerate() {
        for way in Way::of(i) {
            losses += lose_power(&format!("[{operation}]"), way, ways, &mut rng);
        }
    }
    println!("power loss, one operation: {losses} losses, all survived");
    assert!(losses > 1000);
}

#[test]
fn combinations_with_unsynced_writes_lost_or_reordered() {
    let mut losses = 0;
    let mut rng = rng(5);
    // Of three operations there is always a sample: each takes about a hundred losses.
    let mut programs = combinations(&mut rng, 8, 2);
    programs.extend((0..if full() { 600 } else { 8 }).map(|_| pick(&mut rng, 3)));
    for (i, program) in programs.iter().enumerate() {
        losses += lose_power(program, Way::ALL[i % Way::ALL.len()], 4, &mut rng);
    }
    println!("power loss, two and three operations: {losses} losses, all survived");
    assert!(losses > 300);
}
