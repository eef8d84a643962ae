//! Forgetting: what of the memory, and of the index on disk, is still wanted.

use std::collections::HashSet;
use std::sync::PoisonError;

use zero_contracts::{CancelToken, Digest, Error, ErrorKind, SourceView, WorkspacePath};

use super::{Known, Limits, Memory, walk};
use crate::language::{self, Lang};
use crate::persist::Keep;
use crate::pool;

/// What a tree holds now.
struct Present {
    paths: HashSet<WorkspacePath>,
    contents: HashSet<Digest>,
}

impl Memory {
    /// Forgets what is known of contents that no file of a view has, on disk, too; returns the bytes freed there. Of files
    /// that ignore rules exclude, those are kept that did not change since they were looked at.
    ///
    /// # Errors
    /// Errors of the view and of the file system; `cancelled` and `deadline` from the token.
    pub fn collect_absent(&self, view: &dyn SourceView, limits: Limits, token: &CancelToken) -> Result<u64, Error> {
        let present = self.present(view, limits, token)?;
        let keep = Keep {
            content: &|digest| present.contents.contains(digest),
            path: &|path| present.paths.contains(path),
        };
        self.collect(&keep, token)
    }

    /// Forgets what `keep` does not want, on disk, too; returns the bytes freed there.
    ///
    /// # Errors
    /// Errors of the file system; `cancelled` and `deadline` from the token.
    pub fn collect(&self, keep: &Keep<'_>, token: &CancelToken) -> Result<u64, Error> {
        self.facts
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|(digest, _), _| (keep.content)(digest));
        let mut stamps = self.stamps.write().unwrap_or_else(PoisonError::into_inner);
        stamps.retain(|path, list| {
            list.retain(|(_, known)| match known {
                Known::Facts(digest, _) => (keep.content)(digest),
                Known::Skipped(_) => true,
            });
            !list.is_empty() && (keep.path)(path)
        });
        drop(stamps);
        {
            let mut fresh = self.fresh.lock().unwrap_or_else(PoisonError::into_inner);
            fresh.facts.retain(|((digest, _), _)| (keep.content)(digest));
            fresh
                .stamps
                .retain(|(path, _, (digest, _))| (keep.content)(digest) && (keep.path)(path));
        }
        self.persisted
            .as_ref()
            .map_or(Ok(0), |persisted| persisted.collect(keep, token))
    }

    /// Tells what a tree holds now: contents under known stamps from memory, others by reading them.
    fn present(&self, view: &dyn SourceView, limits: Limits, token: &CancelToken) -> Result<Present, Error> {
        let (sources, _) = walk(view, &WorkspacePath::root(), false, token, |path| {
            language::of_path(path).is_some()
        })?;
        let digests = pool::map(
            sources.len(),
            limits.threads,
            token,
            || (),
            |(), at| {
                let entry = &sources[at];
                if let Some(digest) = self.settled(&entry.path, entry) {
                    return Ok(Some(digest));
                }
                if entry.bytes > limits.parse_bytes {
                    return Ok(None);
                }
                match view.read(&entry.path, token) {
                    Ok(content) => Ok(Some(content.digest)),
                    Err(error) if matches!(error.kind, ErrorKind::Cancelled | ErrorKind::Deadline) => Err(error),
                    // What cannot be read is not known, either.
                    Err(_) => Ok(None),
                }
            },
        )?;
        let mut present = Present {
            paths: HashSet::with_capacity(sources.len()),
            contents: digests.into_iter().flatten().collect(),
        };
        present.paths.extend(sources.into_iter().map(|entry| entry.path));
        let (all, _) = walk(view, &WorkspacePath::root(), true, token, |path| {
            language::of_path(path).is_some() && !present.paths.contains(path)
        })?;
        for entry in all {
            if let Some(digest) = self.settled(&entry.path, &entry) {
                present.contents.insert(digest);
                present.paths.insert(entry.path);
            }
        }
        Ok(present)
    }

    /// Returns the content of a path under a settled stamp, if it was looked at before.
    fn settled(&self, path: &WorkspacePath, entry: &zero_contracts::source::Entry) -> Option<Digest> {
        if !entry.stamp.settled {
            return None;
        }
        let stamps = self.stamps.read().unwrap_or_else(PoisonError::into_inner);
        let list = stamps.get(path).map_or(&[][..], Vec::as_slice);
        for (stamp, known) in list {
            if let (true, Known::Facts(digest, _)) = (*stamp == entry.stamp.value, known) {
                return Some(*digest);
            }
        }
        drop(stamps);
        let persisted = self.persisted.as_ref()?;
        persisted
            .stamp(path, entry.stamp.value)
            .map(|(digest, _): (Digest, Lang)| digest)
    }
}
