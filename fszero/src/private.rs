//! The capture tier `private`: the upper layer of an overlay of the kernel, in which a transaction's commands work.
//!
//! What is staged is laid into the upper layer ([`lay`]), commands run over it (the host mounts it), and what they left
//! in it is staged ([`collect`]): from there on it is like any other staged effect. The live tree is only read. What ignore
//! rules exclude is no effect: directories that are there are passed through to the live tree ([`through`]), the rest
//! waits in the upper layer and is carried over after the commit ([`carry`]), or dropped with it.
//!
//! Layers lie in the store's `private/`, one directory a transaction. Nothing in them is needed after a crash: whoever
//! recovers under the lease removes them.
//!
//! The kernel leaves open what a mounted overlay shows of later changes in the live tree. So a path that a command changed
//! and that also changed in the live tree since the view was opened is in doubt: nobody knows which version the command
//! saw, and the transaction cannot be committed.

mod carry;
mod collect;
mod deep;
mod give;
mod lay;
mod through;

use std::collections::{BTreeMap, HashMap};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::fs::{Dir, FileType, Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};
use zero_contracts::files::CommandView;
use zero_contracts::read::EntryKind;
use zero_contracts::response::PathConflict;
use zero_contracts::{CancelToken, Error, ErrorKind, WorkspacePath};

use self::deep::{clear, with_room};
pub(crate) use self::give::Giving;
use crate::engine::Shared;
use crate::node::{Meta, Node, now};
use crate::overlay::Overlay;
use crate::tree::{Tree, io, os, stat_at};

/// The store's directory of layers.
const PLACE: &[u8] = b"private";

/// The attribute of a directory that hides what the lower layer has at its path.
const OPAQUE: &[u8] = b"user.overlay.opaque";

/// Begins the names of the overlay's own attributes.
const OWN_ATTRIBUTES: &[u8] = b"user.overlay.";

/// What is at one name of the upper layer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Layer {
    /// The lower layer's entry is gone.
    Whiteout,
    Entry(Meta),
}

/// The layers of one transaction.
pub(crate) struct Private {
    shared: Arc<Shared>,
    name: Vec<u8>,
    /// This transaction's directory in [`PLACE`].
    directory: OwnedFd,
    upper: Arc<Tree>,
    work: Option<Vec<u8>>,
    views: u32,
    /// What was staged when the upper layer was last made equal to it.
    laid: Overlay,
    /// Mode of the workspace root in the view.
    root_mode: u32,
    /// Files of the upper layer by path, as they were last collected: a stamp, and what they hold.
    known: HashMap<WorkspacePath, (u128, Node)>,
    /// What the live tree holds was taken for known at this time, in nanoseconds since 1970: what changed later has a later
    /// time stamp.
    ready: i128,
    /// That time for the present view; none while no command runs.
    since: Option<i128>,
    /// Changed by a command, and in the live tree too.
    pub doubts: Vec<PathConflict>,
    /// What ignore rules exclude, by its topmost path: what is there, or that it was removed.
    carried: BTreeMap<WorkspacePath, Option<EntryKind>>,
}

/// Opens the directory of all layers, made if it is not there.
fn open_place(shared: &Shared) -> Result<OwnedFd, Error> {
    let store = shared.store.directory().as_fd();
    let fail = |e: std::io::Error| io(&e, "making room for private views of", &WorkspacePath::root());
    match shared.seam.make_directory(store, PLACE, 0o700) {
        Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists => return Err(fail(e)),
        _ => {}
    }
    open_at(store, PLACE).map_err(|e| fail(e.into()))
}

/// The path of the directory of all layers.
///
/// # Errors
/// `unsupported` where a view would keep commands from changing what they could change without it.
pub(crate) fn place(shared: &Shared) -> Result<PathBuf, Error> {
    refuse_strangers(shared)?;
    open_place(shared)?;
    Ok(shared.store_path.join("private"))
}

/// Removes the layers of transactions that are over. The caller holds the lease, so none is alive.
pub(crate) fn sweep(shared: &Shared) -> Result<(), Error> {
    let store = shared.store.directory().as_fd();
    if stat_at(store, PLACE).is_ok_and(|found| found.is_none()) {
        return Ok(());
    }
    let place = open_place(shared)?;
    for name in names(place.as_fd()).map_err(|e| os(e, "listing", &WorkspacePath::root()))? {
        // What cannot be removed only takes room.
        let _ = clear(shared, place.as_fd(), &name);
    }
    Ok(())
}

fn open_at(directory: BorrowedFd<'_>, name: &[u8]) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(directory, name, flags, Mode::empty())
}

/// The names in a directory, sorted.
fn names(directory: BorrowedFd<'_>) -> Result<Vec<Vec<u8>>, Errno> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if !matches!(name, b"." | b"..") {
            names.push(name.to_vec());
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// Looks at one name of an upper layer.
fn look(directory: BorrowedFd<'_>, name: &[u8]) -> Result<Option<Layer>, Errno> {
    match rustix::fs::statat(directory, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice && stat.st_rdev == 0 => {
            Ok(Some(Layer::Whiteout))
        }
        Ok(stat) => Ok(Some(Layer::Entry(Meta::new(&stat)))),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
        Err(e) => Err(e),
    }
}

/// Tells whether a directory of an upper layer hides what is below it.
fn is_opaque(directory: BorrowedFd<'_>) -> bool {
    let mut value = [0_u8; 4];
    matches!(rustix::fs::fgetxattr(directory, OPAQUE, &mut value[..]), Ok(1) if value[0] == b'y')
}

/// Gives the owner of a private entry the bits to read it; returns the mode to put back.
fn let_in(shared: &Shared, directory: BorrowedFd<'_>, name: &[u8], meta: &Meta) -> std::io::Result<Option<u32>> {
    let needed = if meta.kind == EntryKind::Directory {
        0o700
    } else {
        0o400
    };
    if meta.mode & needed == needed || rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    set_mode(shared, directory, name, meta.mode | needed)?;
    Ok(Some(meta.mode))
}

fn set_mode(shared: &Shared, directory: BorrowedFd<'_>, name: &[u8], mode: u32) -> std::io::Result<()> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let entry = openat(directory, name, flags, Mode::empty())?;
    shared.seam.chmod(entry.as_fd(), mode)
}

/// In an ordinary user's namespace a file of another owner or group cannot be changed, where outside of it the group's
/// right might do. The root and what lies directly in it stand for the rest.
fn refuse_strangers(shared: &Shared) -> Result<(), Error> {
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    if user.is_root() {
        return Ok(());
    }
    let root = WorkspacePath::root();
    let fail = |e| os(e, "looking at", &root);
    let again = open_at(shared.tree.root(), b".").map_err(fail)?;
    for name in names(again.as_fd())
        .map_err(fail)?
        .iter()
        .map(Vec::as_slice)
        .chain([&b"."[..]])
    {
        let Some(meta) = stat_at(again.as_fd(), name).map_err(fail)? else {
            continue;
        };
        if (meta.uid, meta.gid) != (user.as_raw(), group.as_raw()) {
            let path = root.join(name).unwrap_or_default();
            let why = format!("`{path}` belongs to another user or group, and could not be changed in a private view");
            return Err(Error::new(ErrorKind::Unsupported, why).with_path(&path));
        }
    }
    Ok(())
}

impl Private {
    /// Makes the layers of a transaction; nothing is laid yet.
    pub fn new(shared: &Arc<Shared>) -> Result<Self, Error> {
        let root = WorkspacePath::root();
        let fail = |e: std::io::Error| io(&e, "making a private view of", &root);
        refuse_strangers(shared)?;
        let place = open_place(shared)?;
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let (pid, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let name = format!("{:x}-{pid:x}-{count:x}", now()).into_bytes();
        shared.seam.make_directory(place.as_fd(), &name, 0o700).map_err(fail)?;
        let directory = open_at(place.as_fd(), &name).map_err(|e| fail(e.into()))?;
        shared
            .seam
            .make_directory(directory.as_fd(), b"upper", 0o700)
            .map_err(fail)?;
        let live = rustix::fs::fstat(shared.tree.root()).map_err(|e| os(e, "looking at", &root))?;
        let root_mode = live.st_mode & 0o7777;
        let path = shared
            .store_path
            .join("private")
            .join(String::from_utf8_lossy(&name).as_ref());
        let upper = Tree::open(&path.join("upper"))?;
        // The root of the view has the attributes of this directory.
        lay::give_owner(shared, upper.root(), live.st_uid, live.st_gid);
        shared.seam.chmod(upper.root(), root_mode).map_err(fail)?;
        Ok(Self {
            shared: Arc::clone(shared),
            name,
            directory,
            upper: Arc::new(upper),
            work: None,
            views: 0,
            laid: Overlay::default(),
            root_mode,
            known: HashMap::new(),
            ready: now(),
            since: None,
            doubts: Vec::new(),
            carried: BTreeMap::new(),
        })
    }

    /// Whether commands may run in it now.
    pub fn is_open(&self) -> bool {
        self.since.is_some()
    }

    /// Lays what is staged into the upper layer, and says what is to be mounted.
    pub fn open(&mut self, staged: &Overlay, token: &CancelToken) -> Result<CommandView, Error> {
        let since = self.ready;
        let through = through::through(&self.shared, staged, token)?;
        let fail = |e: std::io::Error| io(&e, "making a private view of", &WorkspacePath::root());
        with_room(|| self.lay(staged, token)).map_err(fail)??;
        if let Some(old) = self.work.take() {
            clear(&self.shared, self.directory.as_fd(), &old).map_err(fail)?;
        }
        self.views += 1;
        let work = format!("work-{}", self.views);
        self.shared
            .seam
            .make_directory(self.directory.as_fd(), work.as_bytes(), 0o700)
            .map_err(fail)?;
        self.work = Some(work.clone().into_bytes());
        // File systems stamp changes with a clock that ticks every few milliseconds: from here on a change has a later
        // time than `since`, and one before has not.
        while coarse_now() < since {
            std::thread::sleep(Duration::from_micros(300));
        }
        self.since = Some(since);
        let layers = self.upper.path().parent().map(PathBuf::from).unwrap_or_default();
        Ok(CommandView {
            root: self.shared.tree.path().to_owned(),
            upper: self.upper.path().to_owned(),
            work: layers.join(work),
            through,
        })
    }

    /// Removes the layers.
    pub fn discard(&self) {
        if let Ok(place) = open_place(&self.shared) {
            // What cannot be removed only takes room until the next recovery.
            let _ = clear(&self.shared, place.as_fd(), &self.name);
        }
    }

    /// Tells whether a directory of the upper layer above a path hides what the live tree has there.
    fn hidden(&self, path: &WorkspacePath) -> bool {
        let mut above = path.parent();
        while let Some(directory) = above {
            if self.upper.directory(&directory).is_ok_and(|fd| is_opaque(fd.as_fd())) {
                return true;
            }
            above = directory.parent();
        }
        false
    }
}

/// The time that file systems stamp changes with.
fn coarse_now() -> i128 {
    let time = clock_gettime(ClockId::RealtimeCoarse);
    i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec)
}
