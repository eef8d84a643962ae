//! Defects of a view.

use std::collections::HashSet;
use std::io::{Cursor, Read};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};

use zero_contracts::find::{Freshness, Skipped};
use zero_contracts::read::EntryKind;
use zero_contracts::source::{Entry, FileContent, Stamp, WalkScope};
use zero_contracts::{CancelToken, Digest, Error, ErrorKind, SourceView, WorkspacePath};

use crate::models::tree::MemoryView;
use crate::suites::source::Views;
use crate::tree::Tree;

super::faults! {
    /// One defect of a view.
    pub enum SourceFault {
        EntryFollows, EntryOfNothingFails, SizeOffByOne, ModeUnmasked, SymlinkHasASize, OneStampForAll,
        ResolveStays, ResolveKeepsTheName, DanglingFails, OutsideIsNothing, OutsideOpens,
        ListUnsorted, ListWithoutHidden, ListOfAFileIsEmpty, ListOfNothingIsEmpty, ListStaysAtSymlinks,
        LinkResolved, LinkOfAFileIsEmpty, ReadShort, ReadOtherDigest, ReadNamesTheSymlink, ReadOfADirectoryIsEmpty,
        ReadOfNothingIsIo, ReadLossyNames, ReadUncancellable, OpenShort, WalkWithoutHidden, WalkDirectoriesUnasked,
        WalkNeverDirectories, WalkEntersIgnored, WalkNeverIgnored, WalkEntersGit, WalkOneLevelTooDeep,
        WalkFromTheRoot, WalkOfNothingIsEmpty, WalkFollows, WalkTwice, WalkUnstoppable, WalkUncancellable,
    }
}

/// Makes views with one defect.
pub struct FaultyViews(pub SourceFault);

impl Views for FaultyViews {
    fn view(&self, tree: &Tree) -> Arc<dyn SourceView> {
        Arc::new(FaultyView {
            inner: MemoryView(tree.clone()),
            fault: self.0,
        })
    }
}

struct FaultyView {
    inner: MemoryView,
    fault: SourceFault,
}

impl FaultyView {
    fn seeded(&self, fault: SourceFault) -> bool {
        self.fault == fault
    }

    fn spoil(&self, mut entry: Entry) -> Entry {
        match self.fault {
            SourceFault::SizeOffByOne if entry.kind == EntryKind::File => entry.bytes += 1,
            SourceFault::ModeUnmasked => entry.mode |= 0o100_000,
            SourceFault::SymlinkHasASize if entry.kind == EntryKind::Symlink => entry.bytes = 1,
            SourceFault::OneStampForAll => {
                entry.stamp = Stamp {
                    value: 0,
                    settled: true,
                }
            }
            _ => {}
        }
        entry
    }
}

impl SourceView for FaultyView {
    fn entry(&self, path: &WorkspacePath) -> Result<Option<Entry>, Error> {
        let found = if self.seeded(SourceFault::EntryFollows) {
            self.inner.resolve(path)?
        } else {
            self.inner.entry(path)?
        };
        if found.is_none() && self.seeded(SourceFault::EntryOfNothingFails) {
            return Err(Error::new(ErrorKind::NotFound, "there is nothing"));
        }
        Ok(found.map(|entry| self.spoil(entry)))
    }

    fn resolve(&self, path: &WorkspacePath) -> Result<Option<Entry>, Error> {
        match (self.fault, self.inner.resolve(path)) {
            (SourceFault::ResolveStays, _) => self.inner.entry(path),
            (SourceFault::ResolveKeepsTheName, Ok(Some(mut entry))) => {
                entry.path = path.clone();
                Ok(Some(entry))
            }
            (SourceFault::DanglingFails, Ok(None)) => Err(Error::new(ErrorKind::NotFound, "it leads nowhere")),
            (SourceFault::OutsideIsNothing, Err(_)) => Ok(None),
            (_, found) => Ok(found?.map(|entry| self.spoil(entry))),
        }
    }

    fn list(&self, path: &WorkspacePath) -> Result<Vec<Entry>, Error> {
        if self.seeded(SourceFault::ListStaysAtSymlinks)
            && self.inner.entry(path)?.is_some_and(|e| e.kind == EntryKind::Symlink)
        {
            return Err(Error::invalid("a symlink is not a directory"));
        }
        let mut entries = match (self.fault, self.inner.list(path)) {
            (SourceFault::ListOfAFileIsEmpty, Err(e)) if e.kind == ErrorKind::InvalidInput => Vec::new(),
            (SourceFault::ListOfNothingIsEmpty, Err(e)) if e.kind == ErrorKind::NotFound => Vec::new(),
            (_, listed) => listed?,
        };
        match self.fault {
            SourceFault::ListUnsorted => entries.reverse(),
            SourceFault::ListWithoutHidden => {
                entries.retain(|e| !e.path.file_name().is_some_and(|name| name.starts_with(b".")));
            }
            _ => {}
        }
        Ok(entries)
    }

    fn read_link(&self, path: &WorkspacePath) -> Result<Vec<u8>, Error> {
        match (self.fault, self.inner.read_link(path)) {
            (SourceFault::LinkResolved, Ok(target)) => {
                let real = self.inner.resolve(path).ok().flatten();
                Ok(real.map_or(target, |entry| entry.path.as_bytes().to_vec()))
            }
            (SourceFault::LinkOfAFileIsEmpty, Err(e)) if e.kind == ErrorKind::InvalidInput => Ok(Vec::new()),
            (_, target) => target,
        }
    }

    fn read(&self, path: &WorkspacePath, token: &CancelToken) -> Result<FileContent, Error> {
        let fresh = CancelToken::new();
        let token = if self.seeded(SourceFault::ReadUncancellable) {
            &fresh
        } else {
            token
        };
        if self.seeded(SourceFault::ReadLossyNames) && std::str::from_utf8(path.as_bytes()).is_err() {
            return Err(Error::new(ErrorKind::NotFound, "there is no such name"));
        }
        let mut content = match (self.fault, self.inner.read(path, token)) {
            (SourceFault::ReadOfADirectoryIsEmpty, Err(e)) if e.kind == ErrorKind::InvalidInput => {
                let entry = self.inner.resolve(path)?.ok_or(e)?;
                FileContent {
                    entry,
                    bytes: Arc::new([]),
                    digest: Digest::of(b""),
                }
            }
            (SourceFault::ReadOfNothingIsIo, Err(e)) if e.kind == ErrorKind::NotFound => {
                return Err(Error::new(ErrorKind::Io, e.detail));
            }
            (_, content) => content?,
        };
        match self.fault {
            SourceFault::ReadShort => content.bytes = content.bytes[..content.bytes.len() / 2].into(),
            SourceFault::ReadOtherDigest => content.digest = Digest::of(b"something else"),
            SourceFault::ReadNamesTheSymlink => content.entry.path = path.clone(),
            _ => {}
        }
        Ok(content)
    }

    fn open(&self, path: &WorkspacePath) -> Result<Box<dyn Read + Send>, Error> {
        match (self.fault, self.inner.open(path)) {
            (SourceFault::OpenShort, Ok(file)) => Ok(Box::new(file.take(65_536))),
            (SourceFault::OutsideOpens, Err(e)) if e.kind == ErrorKind::OutsideWorkspace => {
                Ok(Box::new(Cursor::new(b"root:x:0:0".to_vec())))
            }
            (_, file) => file,
        }
    }

    fn walk(
        &self,
        scope: &WalkScope,
        token: &CancelToken,
        visit: &(dyn Fn(Entry) -> ControlFlow<()> + Sync),
    ) -> Result<Vec<Skipped>, Error> {
        let mut scope = scope.clone();
        let fresh = CancelToken::new();
        let token = if self.seeded(SourceFault::WalkUncancellable) {
            &fresh
        } else {
            token
        };
        match self.fault {
            SourceFault::WalkDirectoriesUnasked => scope.directories = true,
            SourceFault::WalkNeverDirectories => scope.directories = false,
            SourceFault::WalkEntersIgnored => scope.ignored = true,
            SourceFault::WalkNeverIgnored => scope.ignored = false,
            SourceFault::WalkOneLevelTooDeep => scope.depth = scope.depth.map(|depth| depth + 1),
            SourceFault::WalkFromTheRoot => scope.start = WorkspacePath::root(),
            _ => {}
        }
        let seen = Mutex::new(HashSet::new());
        let visit = |entry: Entry| {
            let hidden = entry.path.file_name().is_some_and(|name| name.starts_with(b"."));
            if hidden && self.seeded(SourceFault::WalkWithoutHidden) {
                return ControlFlow::Continue(());
            }
            seen.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .insert(entry.path.clone());
            if entry.kind == EntryKind::Symlink
                && self.seeded(SourceFault::WalkFollows)
                && let Ok(Some(real)) = self.inner.resolve(&entry.path)
            {
                return visit(real);
            }
            if self.seeded(SourceFault::WalkTwice) {
                // The second visit of the same entry is the defect.
                let _ = visit(entry.clone());
            }
            match visit(entry) {
                ControlFlow::Break(()) if self.seeded(SourceFault::WalkUnstoppable) => ControlFlow::Continue(()),
                flow => flow,
            }
        };
        let skipped = match self.inner.walk(&scope, token, &visit) {
            Err(e) if e.kind == ErrorKind::NotFound && self.seeded(SourceFault::WalkOfNothingIsEmpty) => Vec::new(),
            skipped => skipped?,
        };
        if self.seeded(SourceFault::WalkEntersGit)
            && scope.start.is_root()
            && let Some(head) = self.inner.entry(&WorkspacePath::from_raw(b".git/HEAD")?)?
        {
            // One entry more is the defect.
            let _ = visit(head);
        }
        Ok(skipped)
    }

    fn freshness(&self) -> Freshness {
        self.inner.freshness()
    }
}
