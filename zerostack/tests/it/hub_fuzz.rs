//! Random programs over `z` on a whole kernel. `cargo xtask soak cell` runs them for ten minutes; `fuzz/` has the same as a
//! target of cargo-fuzz.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestError, TestRunner};

use crate::fuzz_cell::Target;
use crate::hub_support;
use crate::program::program;

#[test]
fn whatever_a_program_does_its_response_is_true() {
    let seconds = std::env::var("ZEROSTACK_FUZZ_SECONDS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(2);
    let until = Instant::now() + Duration::from_secs(seconds);
    let target = Target::new(|config| config.supervisor = hub_support::config(&config.root, &config.root).supervisor);
    let (mut ran, mut completed, mut with_calls) = (0_u64, 0_u64, 0_u64);
    while Instant::now() < until {
        // A runner of its own seed each time; one that fails shrinks its program.
        let mut runner = TestRunner::new(Config {
            cases: 50,
            failure_persistence: None,
            ..Config::default()
        });
        let counts = std::cell::RefCell::new((0, 0, 0));
        let outcome = runner.run(&prop::collection::vec(any::<u8>(), 0..400), |bytes| {
            let response = target.check(&program(&bytes)).map_err(TestCaseError::fail)?;
            let mut counts = counts.borrow_mut();
            counts.0 += 1;
            counts.1 += u64::from(response.error.is_none());
            counts.2 += u64::from(!response.ledger.calls.is_empty());
            Ok(())
        });
        let counts = counts.into_inner();
        (ran, completed, with_calls) = (ran + counts.0, completed + counts.1, with_calls + counts.2);
        if let Err(TestError::Fail(why, bytes)) = outcome {
            panic!("{why}\nfrom {bytes:?}");
        }
    }
    // Other tests of this process may give frames up (not under nextest).
    if std::env::var_os("NEXTEST").is_some() {
        assert_eq!(zerostack::frame::frames_given_up(), 0);
    }
    println!("{ran} programs, {completed} completed, {with_calls} called z");
    assert!(
        completed * 10 > ran && with_calls * 4 > ran,
        "{ran} programs, {completed} completed, {with_calls} called z"
    );
}
