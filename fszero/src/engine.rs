//! The engine: what is shared by views and transactions, and the border to the hub.

use std::collections::HashSet;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;
use zero_contracts::edit::PathState;
use zero_contracts::files::{
    BeginTransaction, Collected, CommitRecord, Damage, Durability, OpenTransaction, PathChange, Recovered, Reversal,
};
use zero_contracts::{
    CancelToken, CellId, Digest, Epoch, Error, ErrorKind, FileEngine, Handle, ObjectStore, SourceView, Transaction,
    WorkspacePath,
};

use crate::config::FsConfig;
use crate::journal::Journal;
use crate::node::{Meta, Node};
use crate::overlay::Overlay;
use crate::record::Inline;
use crate::seam::{self, Seam};
use crate::snapshot::SnapshotView;
use crate::statcache::StatCache;
use crate::store::{INLINE_BYTES, Objects, Store, Unsynced};
use crate::transaction::Cell;
use crate::tree::{Tree, staging_tag};
use crate::view::View;

/// First words of the store's `format` file.
const FORMAT: &str = "fszero store ";
/// Version of the store's layout.
const FORMAT_VERSION: u32 = 1;

/// Small objects that travel with one record take at most this much; the rest are flushed by themselves.
const INLINE_PENDING: u64 = 4 << 20;

/// What views, transactions and the engine share.
pub(crate) struct Shared {
    pub tree: Tree,
    pub store: Arc<Store>,
    pub journal: Arc<Journal>,
    pub seam: Seam,
    /// The store's directory for staging directories that are out of the tree.
    pub parked: OwnedFd,
    pub config: FsConfig,
    pub cache: StatCache,
    /// Where the store is, for telling that a path leads into it.
    pub store_path: PathBuf,
    /// The process's file mode creation mask.
    pub umask: u32,
    /// Tells this store's staging directories from those of others.
    pub id: u32,
}

/// Objects that travel inside a record, and those that have to be flushed by themselves.
pub(crate) struct Pending {
    small: Unsynced,
    pub large: Unsynced,
}

impl Pending {
    pub fn give_back(self, store: &Store) {
        store.put_back(self.small);
        store.put_back(self.large);
    }
}

impl Shared {
    /// Whether a loss of power has to be survived.
    pub fn power(&self) -> bool {
        self.config.durability == Durability::Power
    }

    /// Names the staging directory of a batch by the store and by the number of the journal's frame that tells of it. So
    /// one that the journal does not know can be told to be left from a frame that a loss of power took (see `recover`).
    pub fn tag(&self, number: u64) -> u64 {
        u64::from(self.id) << 32 | u64::from(number as u32)
    }

    /// Takes what was stored so far and is not durable: small objects go to `inline`, large ones are returned.
    pub fn pending_inline(&self, inline: &mut Vec<Inline>) -> Result<Pending, Error> {
        let mut pending = Pending {
            small: Unsynced::default(),
            large: Unsynced::default(),
        };
        if !self.power() || !self.config.lasting {
            return Ok(pending);
        }
        let all = self.store.take_pending();
        pending.large.all = all.all;
        let mut room = INLINE_PENDING;
        let mut have: HashSet<Digest> = inline.iter().map(|object| object.digest).collect();
        for (digest, size) in all.list {
            if size > INLINE_BYTES || size > room {
                pending.large.list.push((digest, size));
            } else if have.insert(digest)
                && let Ok(bytes) = self.store.get(&digest)
            {
                room -= size;
                inline.push(Inline { digest, bytes });
                pending.small.list.push((digest, size));
            }
        }
        Ok(pending)
    }

    /// Makes durable whatever a process that died, or an attempt that failed, left unflushed on the file systems of tree and
    /// store. What is told from them must not be lost once something was done because of it: a commit record whose
    /// temporaries were removed, or a file that came back whose other copy was.
    pub fn flush_everything(&self) -> Result<(), Error> {
        if self.power() {
            for on in [self.tree.root(), self.parked.as_fd()] {
                let flushed = self.seam.sync_all(on);
                flushed.map_err(|e| Error::from_io(&e, "flushing what was left unfinished"))?;
            }
        }
        Ok(())
    }

    /// Tells whether a name directly under the root is the staging directory of a transaction that is not over: it
    /// belongs to no view. Anybody else's name that only looks so is like any other.
    pub fn is_own(&self, name: &[u8]) -> bool {
        staging_tag(name).is_some_and(|tag| self.journal.knows(tag).unwrap_or(true))
    }

    /// The same for a path at or below such a name.
    pub fn is_own_path(&self, path: &WorkspacePath) -> bool {
        path.components().next().is_some_and(|name| self.is_own(name))
    }

    /// The lock that live cells share and collection needs alone.
    pub fn live_lock(&self, exclusive: bool, wait: bool) -> Result<Option<OwnedFd>, Error> {
        let fail = |e: std::io::Error| Error::from_io(&e, "locking the store");
        let file = self
            .seam
            .open_lock(self.store.directory().as_fd(), b"live.lock")
            .map_err(fail)?;
        Ok(seam::lock(file.as_fd(), exclusive, wait).map_err(fail)?.then_some(file))
    }

    /// Refuses an epoch that is older than one the journal has seen.
    pub fn fence(&self, epoch: Epoch) -> Result<(), Error> {
        let seen = self.journal.epoch()?;
        if epoch < seen {
            return Err(Error::new(
                ErrorKind::Busy,
                format!("the lease's epoch {epoch} is over: epoch {seen} has published; acquire the lease anew"),
            ));
        }
        Ok(())
    }
}

/// The engine that owns bytes: one workspace root with its store.
///
/// Cheap to clone; all clones are one engine. Several engines, also in several processes, may serve one root and store,
/// as long as publication happens under one lease.
#[derive(Clone)]
pub struct FsZero {
    pub(crate) shared: Arc<Shared>,
}

fn umask() -> u32 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    mask.and_then(|octal| u32::from_str_radix(octal.trim(), 8).ok())
        .unwrap_or(0o022)
}

/// The canonical form of a path whose end need not exist.
fn canonical(path: &Path) -> std::io::Result<PathBuf> {
    let absolute = std::path::absolute(path)?;
    let mut rest = Vec::new();
    let mut at = absolute.as_path();
    loop {
        match std::fs::canonicalize(at) {
            Ok(mut found) => {
                found.extend(rest.iter().rev());
                return Ok(found);
            }
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => match (at.parent(), at.file_name()) {
                (Some(parent), Some(name)) => {
                    rest.push(name);
                    at = parent;
                }
                _ => return Err(e),
            },
            Err(e) => return Err(e),
        }
    }
}

impl FsZero {
    /// Opens a workspace. The root must exist; the store is made if it does not.
    ///
    /// This neither recovers nor locks anything: [`FileEngine::recover`] belongs to whoever acquires the lease.
    ///
    /// # Errors
    /// `not_found` for the root; `invalid_input` if store and root lie within one another or the store belongs to another
    /// root with work left open; `unsupported` for a store of a newer version, or a kernel without `openat2`; `io`.
    pub fn open(config: FsConfig) -> Result<Self, Error> {
        let seam = Seam::new(config.gate.clone());
        crate::widen::let_in(&config.root, &config.store, &seam)?;
        let tree = Tree::open(&config.root)?;
        let fail = |what: &'static str, path: &Path| {
            let path = path.display().to_string();
            move |e: std::io::Error| Error::from_io(&e, format!("{what} {path}"))
        };
        let store_path = canonical(&config.store).map_err(fail("resolving the store", &config.store))?;
        if store_path.starts_with(tree.path()) || tree.path().starts_with(&store_path) {
            return Err(Error::invalid(format!(
                "the store {} and the root {} lie within one another: a command could destroy the store; put it elsewhere",
                store_path.display(),
                tree.path().display()
            ))
            .with_path("store"));
        }
        match tree.directory(&WorkspacePath::root()) {
            Err(Errno::NOSYS) => {
                return Err(Error::new(
                    ErrorKind::Unsupported,
                    "this kernel has no openat2 (Linux 5.6), which confinement needs",
                ));
            }
            other => drop(other.map_err(|e| crate::tree::os(e, "opening", &WorkspacePath::root()))?),
        }
        let making = fail("making the store", &store_path);
        let mut above: Vec<&Path> = store_path.ancestors().take_while(|path| !path.exists()).collect();
        above.reverse();
        for directory in above {
            use std::os::unix::ffi::OsStrExt;
            match seam.make_directory(CWD, directory.as_os_str().as_bytes(), 0o700) {
                Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists => return Err(making(e)),
                _ => {}
            }
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = rustix::fs::open(&store_path, flags, Mode::empty()).map_err(|e| making(e.into()))?;
        let sub = |name: &str| -> std::io::Result<OwnedFd> {
            match openat(&dir, name, flags, Mode::empty()) {
                Err(Errno::NOENT) => match seam.make_directory(dir.as_fd(), name.as_bytes(), 0o700) {
                    Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists => Err(e),
                    _ => Ok(openat(&dir, name, flags, Mode::empty())?),
                },
                other => Ok(other?),
            }
        };
        let (objects, tmp, journal) = (sub("objects"), sub("tmp"), sub("journal"));
        let parked = sub("parked").map_err(&making)?;
        let journal = Arc::new(Journal::new(journal.map_err(&making)?, seam.clone(), config.lasting));
        let power = config.durability == Durability::Power;
        let store = Store::new(
            dir,
            objects.map_err(&making)?,
            tmp.map_err(&making)?,
            seam.clone(),
            Arc::clone(&journal),
            config.quota,
            config.young,
        );
        check_format(&store, &journal, power)?;
        let id = identity(&store, power)?;
        check_root(&store, &journal, &tree, power)?;
        let shared = Shared {
            tree,
            store: Arc::new(store),
            journal,
            seam,
            parked,
            config,
            cache: StatCache::default(),
            store_path,
            umask: umask(),
            id,
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    fn view(&self) -> View {
        View {
            shared: Arc::clone(&self.shared),
            overlay: Overlay::default(),
            live: true,
        }
    }

    /// Stages in a new transaction what makes the tracked tree equal to a snapshot: files, symlinks and directories that
    /// the snapshot holds and ignore rules do not exclude now.
    ///
    /// # Errors
    /// As for [`FileEngine::snapshot`] and [`FileEngine::manifest`].
    pub fn restore_snapshot(
        &self,
        snapshot: &Handle,
        begin: BeginTransaction,
        token: &CancelToken,
    ) -> Result<Box<dyn Transaction>, Error> {
        let target = crate::snapshot::manifest(&self.shared.store, snapshot)?;
        let present = self.take_snapshot(token)?;
        let mut cell = Cell::begin(Arc::clone(&self.shared), begin)?;
        cell.stage_tree(&present, &target, token)?;
        Ok(Box::new(cell))
    }
}

/// Checks the store's version; completes a new store.
fn check_format(store: &Store, journal: &Journal, sync: bool) -> Result<(), Error> {
    match store.read_file("format")? {
        None => {
            // The first segment is there before the store counts as one: a journal without a record was emptied. Whoever
            // is faster makes it; its header is the same.
            if let Err(e) = journal.append(Vec::new(), sync)
                && journal.next()? <= 1
            {
                return Err(e);
            }
            let text = format!("{FORMAT}{FORMAT_VERSION}\n");
            store.write_file("format", text.as_bytes(), sync)
        }
        Some(bytes) => {
            let text = String::from_utf8_lossy(&bytes);
            match text
                .strip_prefix(FORMAT)
                .and_then(|rest| rest.trim().parse::<u32>().ok())
            {
                Some(FORMAT_VERSION) => Ok(()),
                Some(version) => Err(Error::new(
                    ErrorKind::Unsupported,
                    format!("the store has format {version}; this build reads format {FORMAT_VERSION}"),
                )),
                None => Err(Error::new(ErrorKind::Corrupt, "the store's `format` file is damaged")),
            }
        }
    }
}

/// The number that tells this store's staging directories from those of others, made when the store is.
fn identity(store: &Store, sync: bool) -> Result<u32, Error> {
    let known = store.read_file("id")?;
    let known = known.and_then(|bytes| u32::from_str_radix(String::from_utf8(bytes).ok()?.trim(), 16).ok());
    match known {
        Some(id) => Ok(id),
        None => {
            let seed = Digest::of(store.temporary().as_bytes());
            let id = seed.as_bytes()[..4].iter().fold(0, |id, &b| id << 8 | u32::from(b));
            store.write_file("id", format!("{id:08x}\n").as_bytes(), sync)?;
            Ok(id)
        }
    }
}

/// One store serves one root: another root's open transaction would be taken back in the wrong tree.
fn check_root(store: &Store, journal: &Journal, tree: &Tree, sync: bool) -> Result<(), Error> {
    let meta = tree
        .stat(&WorkspacePath::root())
        .map_err(|e| crate::tree::os(e, "looking at", &WorkspacePath::root()))?;
    let identity = meta
        .map(|meta: Meta| format!("{} {}\n", meta.device, meta.inode))
        .unwrap_or_default();
    match store.read_file("root")? {
        Some(known) if known == identity.as_bytes() => Ok(()),
        Some(_) if !journal.open()?.is_empty() => Err(Error::invalid(
            "the store belongs to another root, and holds an open transaction of it; recover that root first, or give each root its own store",
        )
        .with_path("store")),
        _ => store.write_file("root", identity.as_bytes(), sync),
    }
}

fn change(path: &WorkspacePath, before: Option<&Node>, after: Option<&Node>) -> PathChange {
    PathChange {
        path: path.clone(),
        before: before.map(Node::state),
        after: after.map(Node::state),
    }
}

impl FileEngine for FsZero {
    fn objects(&self) -> Arc<dyn ObjectStore> {
        Arc::new(Objects(Arc::clone(&self.shared.store)))
    }

    fn live(&self) -> Arc<dyn SourceView> {
        Arc::new(self.view())
    }

    fn open_external(&self, path: &Path) -> Result<Box<dyn Read + Send>, Error> {
        let shown = &path.display().to_string();
        if !path.is_absolute() {
            return Err(Error::invalid(format!("`{shown}` is not absolute")).with_path(shown));
        }
        let fail = &|e: Errno| match e {
            Errno::LOOP => {
                Error::new(ErrorKind::Denied, format!("`{shown}` leads through a magic link")).with_path(shown)
            }
            e => Error::from_io(&e.into(), format!("opening `{shown}`")).with_path(shown),
        };
        // Found without being opened, then looked at, then opened where it really is.
        let found = openat2(
            CWD,
            path,
            OFlags::PATH | OFlags::CLOEXEC,
            Mode::empty(),
            ResolveFlags::NO_MAGICLINKS,
        )
        .map_err(fail)?;
        let meta = Meta::new(&rustix::fs::fstat(&found).map_err(fail)?);
        let real = {
            use std::os::fd::AsRawFd;
            let link = format!("/proc/self/fd/{}", found.as_raw_fd());
            std::fs::read_link(link).map_err(|e| Error::from_io(&e, format!("resolving `{shown}`")).with_path(shown))?
        };
        if ["/proc", "/sys", "/dev"].iter().any(|system| real.starts_with(system)) {
            return Err(Error::new(
                ErrorKind::Denied,
                format!("`{shown}` lies in a directory of the system that is never read"),
            )
            .with_path(shown));
        }
        if real.starts_with(&self.shared.store_path) {
            return Err(Error::new(
                ErrorKind::OutsideWorkspace,
                format!("`{shown}` lies in the store; read it by its handle"),
            )
            .with_path(shown));
        }
        if meta.kind != zero_contracts::read::EntryKind::File {
            return Err(Error::invalid(format!("`{shown}` is no regular file")).with_path(shown));
        }
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let resolve = ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_SYMLINKS;
        let file = openat2(CWD, &real, flags, Mode::empty(), resolve).map_err(fail)?;
        if Meta::new(&rustix::fs::fstat(&file).map_err(fail)?).kind != zero_contracts::read::EntryKind::File {
            return Err(Error::invalid(format!("`{shown}` is no regular file")).with_path(shown));
        }
        Ok(Box::new(File::from(file)))
    }

    fn snapshot(&self, token: &CancelToken) -> Result<Handle, Error> {
        let entries = self.take_snapshot(token)?;
        Ok(Handle::snapshot(
            self.shared.store.put(&crate::snapshot::encode(&entries)?)?,
        ))
    }

    fn snapshot_file(&self, path: &WorkspacePath, mode: u32, digest: Digest, bytes: u64) -> Result<Handle, Error> {
        let entry = (path.clone(), Node::File { mode, digest, bytes });
        Ok(Handle::snapshot(
            self.shared.store.put(&crate::snapshot::encode(&vec![entry])?)?,
        ))
    }

    fn manifest(&self, snapshot: &Handle) -> Result<Vec<(WorkspacePath, PathState)>, Error> {
        let entries = crate::snapshot::manifest(&self.shared.store, snapshot)?;
        Ok(entries.into_iter().map(|(path, node)| (path, node.state())).collect())
    }

    fn snapshot_view(&self, snapshot: &Handle) -> Result<Arc<dyn SourceView>, Error> {
        let entries = crate::snapshot::manifest(&self.shared.store, snapshot)?;
        Ok(Arc::new(SnapshotView::new(Arc::clone(&self.shared.store), entries)))
    }

    fn diff(&self, before: &Handle, after: &Handle, token: &CancelToken) -> Result<Vec<PathChange>, Error> {
        if before == after {
            return Ok(Vec::new());
        }
        let (before, after) = (
            crate::snapshot::manifest(&self.shared.store, before)?,
            crate::snapshot::manifest(&self.shared.store, after)?,
        );
        let mut changes = Vec::new();
        let (mut old, mut new) = (before.iter().peekable(), after.iter().peekable());
        loop {
            token.check()?;
            let order = match (old.peek(), new.peek()) {
                (None, None) => return Ok(changes),
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
                (Some(a), Some(b)) => a.0.cmp(&b.0),
            };
            let was = if order.is_le() { old.next() } else { None };
            let is = if order.is_ge() { new.next() } else { None };
            if let Some((path, _)) = was.or(is)
                && was.map(|e| &e.1) != is.map(|e| &e.1)
            {
                changes.push(change(path, was.map(|e| &e.1), is.map(|e| &e.1)));
            }
        }
    }

    fn private_place(&self) -> Result<Option<PathBuf>, Error> {
        crate::private::place(&self.shared).map(Some)
    }

    fn flush(&self) -> Result<(), Error> {
        if !self.shared.power() {
            return Ok(());
        }
        let pending = self.shared.store.take_pending();
        let flushed = self.shared.store.make_durable(&pending);
        if flushed.is_err() {
            self.shared.store.put_back(pending);
        }
        flushed
    }

    fn begin(&self, begin: BeginTransaction) -> Result<Box<dyn Transaction>, Error> {
        Ok(Box::new(Cell::begin(Arc::clone(&self.shared), begin)?))
    }

    fn recover(&self, epoch: Epoch, token: &CancelToken) -> Result<Vec<Recovered>, Error> {
        crate::recover::recover(&self.shared, epoch, token)
    }

    fn has_open_transaction(&self) -> Result<bool, Error> {
        self.shared.journal.has_unsettled()
    }

    fn open_transactions(&self) -> Result<Vec<OpenTransaction>, Error> {
        let open = self.shared.journal.open()?;
        Ok(open
            .into_iter()
            .map(|open| OpenTransaction {
                cell: open.cell,
                session: open.session,
                committed: open.commit.is_some(),
                capturing: open.baseline.is_some(),
            })
            .collect())
    }

    fn commits_after(&self, sequence: u64) -> Result<Vec<CommitRecord>, Error> {
        self.shared.journal.commits_after(sequence)
    }

    fn last_epoch(&self) -> Result<Epoch, Error> {
        self.shared.journal.epoch()
    }

    fn prune(&self, sequence: u64) -> Result<(), Error> {
        crate::collect::prune(&self.shared, sequence)
    }

    fn revert(
        &self,
        cell: &CellId,
        paths: Option<&[WorkspacePath]>,
        begin: BeginTransaction,
        token: &CancelToken,
    ) -> Result<Reversal, Error> {
        crate::revert::revert(&self.shared, cell, paths, begin, token)
    }

    fn collect_around(&self, roots: &[Digest], opaque: &[Digest], token: &CancelToken) -> Result<Collected, Error> {
        crate::collect::collect(&self.shared, roots, opaque, token)
    }

    fn verify(&self, token: &CancelToken) -> Result<Vec<Damage>, Error> {
        crate::collect::verify(&self.shared, token)
    }
}
