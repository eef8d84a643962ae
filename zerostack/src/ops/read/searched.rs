//! Contents that a cell goes through match by match: read once, and their lines counted once.

use std::collections::VecDeque;
use std::sync::Arc;

use zero_contracts::read::Extent;
use zero_contracts::{Digest, Handle, WorkspacePath};

use super::extent;

/// How many contents are held at once: a cell that goes through more of them in turns reads them again.
const HELD: usize = 4;

/// Bytes between two counts of lines.
const STEP: usize = 64 * 1024;

/// How large a content is, and on which line each of its bytes lies.
pub(super) struct Measured {
    pub(super) of: Extent,
    /// Line ends before each step.
    ends: Vec<u64>,
}

impl Measured {
    /// Measures a content.
    pub(super) fn new(bytes: &[u8]) -> Self {
        let mut ends = Vec::new();
        let mut before = 0;
        for step in bytes.chunks(STEP) {
            ends.push(before);
            before += count(step);
        }
        Self {
            of: extent(bytes),
            ends,
        }
    }

    /// The line of a byte, or of the end, counted from 1.
    pub(super) fn line(&self, bytes: &[u8], at: usize) -> u64 {
        let step = (at / STEP).min(self.ends.len().saturating_sub(1));
        1 + self.ends.get(step).copied().unwrap_or(0) + count(&bytes[step * STEP..at])
    }
}

fn count(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}

/// A content that is held.
pub(crate) struct Searched {
    pub(super) digest: Digest,
    pub(super) bytes: Arc<[u8]>,
    pub(super) measured: Measured,
    /// Of a file: its name, the stamp that it had, and what guards an edit of it.
    pub(super) file: Option<(WorkspacePath, u128, Handle)>,
}

impl Searched {
    /// What guards an edit of the file that it is the content of.
    pub(super) fn snapshot(&self) -> Option<Handle> {
        self.file.as_ref().map(|(_, _, snapshot)| *snapshot)
    }
}

/// The contents that a cell holds.
#[derive(Default)]
pub(crate) struct Held(VecDeque<Arc<Searched>>);

impl Held {
    /// Finds a content by its digest.
    pub(super) fn content(&self, digest: &Digest) -> Option<Arc<Searched>> {
        self.0.iter().find(|held| held.digest == *digest).cloned()
    }

    /// Finds the content of a file that has the same stamp as then.
    pub(super) fn file(&self, path: &WorkspacePath, stamp: u128) -> Option<Arc<Searched>> {
        let same = |held: &&Arc<Searched>| matches!(&held.file, Some((at, then, _)) if at == path && *then == stamp);
        self.0.iter().find(same).cloned()
    }

    /// Holds a content as the latest one, within a budget of bytes; or lets go of it.
    pub(super) fn keep(&mut self, searched: &Arc<Searched>, goes_on: bool, budget: u64) {
        self.0.retain(|held| !Arc::ptr_eq(held, searched));
        if !goes_on {
            return;
        }
        self.0.push_back(Arc::clone(searched));
        let bytes = |held: &VecDeque<Arc<Searched>>| held.iter().map(|held| held.bytes.len() as u64).sum::<u64>();
        while self.0.len() > HELD || bytes(&self.0) > budget {
            self.0.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn lines_are_those_that_are_counted_from_the_start(
            sizes in prop::collection::vec(0_usize..40_000, 0..12),
            at in any::<prop::sample::Index>(),
        ) {
            let bytes: Vec<u8> = sizes.iter().flat_map(|size| [vec![b'x'; *size], vec![b'\n']].concat()).collect();
            let at = at.index(bytes.len() + 1);
            prop_assert_eq!(Measured::new(&bytes).line(&bytes, at), 1 + count(&bytes[..at]));
        }
    }

    #[test]
    fn what_is_held_stays_within_its_budget() {
        let mut held = Held::default();
        let content = |size: usize| {
            let bytes: Arc<[u8]> = vec![b'x'; size].into();
            Arc::new(Searched {
                digest: Digest::of(&bytes),
                measured: Measured::new(&bytes),
                bytes,
                file: None,
            })
        };
        let contents: Vec<_> = (1..=6).map(|size| content(size * 10)).collect();
        for one in &contents {
            held.keep(one, true, 100);
        }
        let kept = |held: &Held| {
            contents
                .iter()
                .map(|one| held.content(&one.digest).is_some())
                .collect::<Vec<_>>()
        };
        assert_eq!(kept(&held), [false, false, false, false, false, true]);
        held.keep(&contents[0], true, 100);
        assert_eq!(kept(&held), [true, false, false, false, false, true]);
        held.keep(&contents[5], false, 100);
        assert_eq!(kept(&held), [true, false, false, false, false, false]);
    }
}
