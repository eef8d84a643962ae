//! What was stored and is not durable yet: the duty of the next commit.

use std::collections::HashSet;
use std::os::fd::AsFd;
use std::sync::PoisonError;

use rustix::fs::{Mode, OFlags, openat};
use zero_contracts::{Digest, Error};

use super::{INLINE_BYTES, Store, fail, place};
use crate::round::Round;

/// With more objects than this to make durable, the whole file system is flushed instead of each.
const SYNC_EACH: usize = 64;

/// The pending list is not kept longer than this: then the next commit flushes the whole file system.
const PENDING: usize = 20_000;

#[derive(Default)]
pub(super) struct Pending {
    list: Vec<(Digest, u64)>,
    all: bool,
}

/// Objects that a commit has to make durable.
#[derive(Default)]
pub(crate) struct Unsynced {
    pub list: Vec<(Digest, u64)>,
    /// More than were counted.
    pub all: bool,
}

impl Store {
    pub(super) fn remember(&self, digest: Digest, size: u64) {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        if pending.list.len() < PENDING {
            pending.list.push((digest, size));
        } else {
            pending.all = true;
        }
    }

    /// Takes over the duty to make everything stored so far durable.
    pub fn take_pending(&self) -> Unsynced {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        let Pending { mut list, all } = std::mem::take(&mut *pending);
        let mut seen = HashSet::new();
        list.retain(|(digest, _)| seen.insert(*digest));
        Unsynced { list, all }
    }

    /// Gives the duty back.
    pub fn put_back(&self, unsynced: Unsynced) {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        pending.all |= unsynced.all;
        pending.list.extend(unsynced.list);
    }

    /// Takes over the duty for what does not travel inside the journal.
    pub fn take_pending_large(&self) -> Unsynced {
        let all = self.take_pending();
        let (small, large) = all.list.into_iter().partition(|(_, size)| *size <= INLINE_BYTES);
        self.put_back(Unsynced {
            list: small,
            all: false,
        });
        Unsynced {
            list: large,
            all: all.all,
        }
    }

    /// Makes objects durable by themselves.
    pub fn make_durable(&self, unsynced: &Unsynced) -> Result<(), Error> {
        let mut round = Round::default();
        self.to_flush(unsynced, &mut round)?;
        round.flush(&self.seam).map_err(fail("flushing"))
    }

    /// Adds what makes objects durable to a round of flushes. The whole file system is flushed at once if there are many.
    pub fn to_flush(&self, unsynced: &Unsynced, round: &mut Round) -> Result<(), Error> {
        let fail = fail("flushing");
        if !self.journal.is_lasting() {
            return Ok(());
        }
        if unsynced.all || unsynced.list.len() > SYNC_EACH {
            return self.seam.sync_all(self.objects.as_fd()).map_err(fail);
        }
        let mut directories = HashSet::new();
        for (digest, _) in &unsynced.list {
            let Some(file) = self.open_object(digest)? else {
                continue;
            };
            round.file(file.into());
            directories.insert(place(digest).0);
        }
        for name in &directories {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let dir = openat(&self.objects, name.as_str(), flags, Mode::empty()).map_err(|e| fail(e.into()))?;
            round.directory(dir);
        }
        if !directories.is_empty() {
            round.directory(self.objects.try_clone().map_err(&fail)?);
        }
        Ok(())
    }
}
