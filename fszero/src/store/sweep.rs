//! What collection needs: every object, the removal of one that was not stored again, and of what dead writers left.

use std::os::fd::AsFd;

use rustix::fs::{Dir, Mode, OFlags, openat};
use rustix::io::Errno;
use zero_contracts::{Digest, Error};

use super::{Store, fail, place};
use crate::seam::Rename;
use crate::tree::stat_at;

impl Store {
    /// Every object with its size and mtime.
    pub fn walk(&self) -> Result<Vec<(Digest, u64, i128)>, Error> {
        let fail = |e: Errno| fail("reading")(e.into());
        let mut found = Vec::new();
        for prefix in Dir::read_from(&self.objects).map_err(fail)? {
            let prefix = prefix.map_err(fail)?;
            let prefix = prefix.file_name().to_string_lossy().into_owned();
            if prefix.len() != 2 || prefix == ".." {
                continue;
            }
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let dir = openat(&self.objects, prefix.as_str(), flags, Mode::empty()).map_err(fail)?;
            for entry in Dir::read_from(&dir).map_err(fail)? {
                let entry = entry.map_err(fail)?;
                let name = entry.file_name().to_string_lossy();
                let Ok(digest) = format!("{prefix}{name}").parse() else {
                    continue;
                };
                if let Some(meta) = stat_at(dir.as_fd(), entry.file_name().to_bytes()).map_err(fail)? {
                    found.push((digest, meta.size, meta.mtime));
                }
            }
        }
        Ok(found)
    }

    /// Removes an object unless it was stored again meanwhile; tells whether it went.
    pub fn remove(&self, digest: &Digest, older_than: i128) -> Result<bool, Error> {
        let fail = fail("collecting in");
        let (dir, name) = place(digest);
        let target = format!("{dir}/{name}");
        let aside = self.temporary();
        let (objects, tmp) = (self.objects.as_fd(), self.tmp.as_fd());
        match self
            .seam
            .rename(objects, target.as_bytes(), tmp, aside.as_bytes(), Rename::NoReplace)
        {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(false),
            other => other.map_err(&fail)?,
        }
        let meta = stat_at(tmp, aside.as_bytes()).map_err(|e| fail(e.into()))?;
        if meta.is_some_and(|meta| meta.mtime > older_than) {
            self.seam
                .rename(tmp, aside.as_bytes(), objects, target.as_bytes(), Rename::Replace)
                .map_err(&fail)?;
            return Ok(false);
        }
        self.seam.unlink(tmp, aside.as_bytes()).map_err(&fail)?;
        Ok(true)
    }

    /// Removes files of `tmp/` that dead writers left.
    pub fn sweep_temporaries(&self, older_than: i128) -> Result<(), Error> {
        let fail = fail("collecting in");
        for entry in Dir::read_from(&self.tmp).map_err(|e| fail(e.into()))? {
            let entry = entry.map_err(|e| fail(e.into()))?;
            let name = entry.file_name().to_bytes();
            let meta = stat_at(self.tmp.as_fd(), name).map_err(|e| fail(e.into()))?;
            if meta.is_some_and(|m| m.kind == zero_contracts::read::EntryKind::File && m.mtime < older_than) {
                self.seam.unlink(self.tmp.as_fd(), name).map_err(&fail)?;
            }
        }
        Ok(())
    }
}
