//! Objects written in pieces of any size.

use std::io::Write;

use proptest::prelude::*;
use zero_contracts::{Digest, ErrorKind, FileEngine};

use crate::support::*;

/// Names of what lies in the store's directory of unfinished objects.
fn unfinished(f: &Fixture) -> usize {
    std::fs::read_dir(f.dir.path().join("store/tmp")).unwrap().count()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn an_object_is_the_same_in_whatever_pieces_it_comes(
        pieces in proptest::collection::vec((0_usize..300_000, any::<u8>()), 0..8),
        finished: bool,
    ) {
        let f = Fixture::new();
        let objects = f.engine.objects();
        let mut writer = objects.writer().unwrap();
        let mut whole = Vec::new();
        for (length, byte) in pieces {
            let piece = vec![byte; length];
            writer.write_all(&piece).unwrap();
            whole.extend(piece);
        }
        if finished {
            let (digest, size) = writer.finish().unwrap();
            prop_assert_eq!((digest, size), (Digest::of(&whole), whole.len() as u64));
            prop_assert_eq!(objects.get(&digest).unwrap(), whole);
        } else {
            drop(writer);
            prop_assert_eq!(objects.get(&Digest::of(&whole)).unwrap_err().kind, ErrorKind::NotFound);
        }
        prop_assert_eq!(unfinished(&f), 0);
    }
}

/// What is written and dropped, or was there before, leaves the quota as it was.
#[test]
fn the_quota_counts_what_is_kept() {
    let f = Fixture::with(scratch(), |mut config| {
        config.quota = 6 << 20;
        config
    });
    let objects = f.engine.objects();
    for round in 0..20 {
        for size in [10_usize, 200_000, 2_000_000] {
            let mut writer = objects.writer().unwrap();
            writer.write_all(&vec![1; size]).unwrap();
            if round % 2 == 0 {
                writer.finish().unwrap();
            }
        }
    }
    let mut writer = objects.writer().unwrap();
    let error = writer.write_all(&vec![2; 7 << 20]).unwrap_err();
    assert_eq!(
        error.downcast::<zero_contracts::Error>().unwrap().kind,
        ErrorKind::Budget
    );
}
