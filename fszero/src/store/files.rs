//! Small files beside the objects: the format, the identity, hints.

use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;

use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;
use zero_contracts::Error;

use super::{Store, fail};
use crate::seam::Rename;
use crate::tree::stat_at;

impl Store {
    /// Reads a small file of the store; none if it is not there.
    pub fn read_file(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        match openat(
            &self.dir,
            name,
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            Mode::empty(),
        ) {
            Ok(file) => {
                let mut bytes = Vec::new();
                File::from(file).read_to_end(&mut bytes).map_err(fail("reading"))?;
                Ok(Some(bytes))
            }
            Err(Errno::NOENT) => Ok(None),
            Err(e) => Err(fail("reading")(e.into())),
        }
    }

    /// Tells whether a small file of the store is there.
    pub fn has_file(&self, name: &str) -> bool {
        matches!(stat_at(self.dir.as_fd(), name.as_bytes()), Ok(Some(_)))
    }

    /// Replaces a small file of the store.
    pub fn write_file(&self, name: &str, bytes: &[u8], sync: bool) -> Result<(), Error> {
        let sync = sync && self.journal.is_lasting();
        let fail = fail("writing to");
        let temporary = self.temporary();
        let file = self
            .seam
            .create(self.tmp.as_fd(), temporary.as_bytes(), 0o600)
            .map_err(&fail)?;
        let mut written = self.seam.write(file.as_fd(), bytes);
        if sync {
            written = written.and_then(|()| self.seam.sync(file.as_fd()));
        }
        let (tmp, dir) = (self.tmp.as_fd(), self.dir.as_fd());
        let placed = written.and_then(|()| {
            self.seam
                .rename(tmp, temporary.as_bytes(), dir, name.as_bytes(), Rename::Replace)
        });
        if placed.is_err() {
            let _ = self.seam.unlink(tmp, temporary.as_bytes());
        }
        placed.map_err(&fail)?;
        if sync {
            self.seam.sync_directory(dir).map_err(&fail)?;
        }
        Ok(())
    }

    /// Removes a small file of the store.
    pub fn remove_file(&self, name: &str) -> Result<(), Error> {
        match self.seam.unlink(self.dir.as_fd(), name.as_bytes()) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(fail("writing to")(e)),
            _ => Ok(()),
        }
    }
}
