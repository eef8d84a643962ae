//! Random programs run on the engine and on a model of the tree in memory: every answer, every view and every tree after
//! every end must be the same. `FSZERO_PROGRAMS` sets how many (default 2,400 over all tests here).

mod run;
mod steps;
mod tree;

use std::sync::atomic::Ordering;

use proptest::prelude::*;
use zero_contracts::{CancelToken, FileEngine};

use run::Run;
use steps::{KINDS, Step};

fn programs(share: u32) -> ProptestConfig {
    let all: u32 = std::env::var("FSZERO_PROGRAMS")
        .ok()
        .and_then(|v| v.parse().ok())
        .unwrap_or(2_400);
    ProptestConfig {
        cases: all.div_ceil(share),
        failure_persistence: None,
        max_shrink_iters: 4_000,
        ..ProptestConfig::default()
    }
}

fn run(steps: &[Step]) {
    let mut run = Run::new();
    for step in steps {
        run.step(*step);
    }
    run.commit();
    assert_eq!(run.engine.verify(&CancelToken::new()).unwrap(), []);
}

fn report(name: &str) {
    let kinds = KINDS.load(Ordering::Relaxed).count_ones();
    println!("{name}: {} programs, {kinds} kinds of step", programs(3).cases);
    assert!(kinds >= 20);
}

macro_rules! model_tests {
    ($($name:ident)*) => {$(
        #[test]
        fn $name() {
            proptest!(programs(3), |(steps in proptest::collection::vec(any::<Step>(), 1..16))| run(&steps));
            report(stringify!($name));
        }
    )*};
}

// Three tests of the same thing, so that they run on several processors.
model_tests! { random_programs_1 random_programs_2 random_programs_3 }
