//! Projecting bytes as they arrive: they are held up to the size at which an object would be read whole, and scanned from
//! there on. The result is that of the object read afterwards.

use zero_contracts::tokens::{ProjectText, ProjectedText, TextKind, TextStream};
use zero_contracts::{CancelToken, Digest, Error, ObjectStore};

use super::{TokenZero, kind_of, limits, most_held};
use crate::scan::Scan;

/// What arrived so far.
pub(super) struct Stream<'a> {
    engine: &'a TokenZero,
    how: ProjectText<'a>,
    taken: Taken,
}

enum Taken {
    Held(Vec<u8>),
    Scanned(TextKind, Box<Scan>),
}

impl<'a> Stream<'a> {
    pub(super) fn new(engine: &'a TokenZero, how: ProjectText<'a>) -> Self {
        Self {
            engine,
            how,
            taken: Taken::Held(Vec::new()),
        }
    }
}

impl TextStream for Stream<'_> {
    fn take(&mut self, bytes: &[u8]) {
        match &mut self.taken {
            Taken::Held(held) => {
                held.extend_from_slice(bytes);
                let size = held.len() as u64;
                if size > most_held(&self.how, size) {
                    let kind = kind_of(&self.how, held);
                    let mut scan = Scan::new(limits(kind, self.how.budget));
                    scan.take(held);
                    self.taken = Taken::Scanned(kind, Box::new(scan));
                }
            }
            Taken::Scanned(_, scan) => scan.take(bytes),
        }
    }

    fn finish(
        self: Box<Self>,
        object: &Digest,
        _: &dyn ObjectStore,
        token: &CancelToken,
    ) -> Result<ProjectedText, Error> {
        token.check()?;
        match self.taken {
            Taken::Held(held) => self.engine.held(&held, object, &self.how, token),
            Taken::Scanned(kind, scan) => self.engine.scanned(&scan.finish(), kind, object, &self.how),
        }
    }
}
