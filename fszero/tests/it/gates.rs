//! Gates for the seam: failing a step, dying at a step, letting somebody else act between two steps, and a model of a
//! disk that loses or reorders what was not flushed.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirEntryExt, MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use fszero::seam::{Call, Gate, Rename};

/// What an injector does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    Nothing,
    /// That step fails with an error number.
    Fail(u64, i32),
    /// That step and all later ones fail: the process is dead.
    Die(u64),
}

type Between = Box<dyn FnMut() + Send>;
type EachStep = Box<dyn FnMut(u64, &Disk) + Send>;

/// Counts steps and interferes with one.
pub struct Injector {
    state: Mutex<(Plan, u64)>,
    between: Mutex<Option<(u64, Between)>>,
    each_step: Mutex<Option<EachStep>>,
    /// The kinds of the calls since it was armed.
    kinds: Mutex<Vec<u64>>,
    pub disk: Option<Mutex<Disk>>,
}

pub fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl Injector {
    pub fn new() -> Arc<Self> {
        Self::over(None)
    }

    pub fn with_disk() -> Arc<Self> {
        Self::over(Some(Mutex::new(Disk::default())))
    }

    fn over(disk: Option<Mutex<Disk>>) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new((Plan::Nothing, 0)),
            between: Mutex::new(None),
            each_step: Mutex::new(None),
            kinds: Mutex::new(Vec::new()),
            disk,
        })
    }

    /// Starts counting at 0 with a plan.
    pub fn arm(&self, plan: Plan) {
        *held(&self.state) = (plan, 0);
        held(&self.kinds).clear();
    }

    /// Runs something before a step, once.
    pub fn before_step(&self, step: u64, act: Between) {
        *held(&self.between) = Some((step, act));
    }

    /// Shows the disk, once it is loaded, as it is before each step: what a process that dies at the step leaves.
    pub fn at_each_step(&self, look: EachStep) {
        *held(&self.each_step) = Some(look);
    }

    /// What kinds of calls there were since it was armed.
    pub fn kinds(&self) -> Vec<u64> {
        held(&self.kinds).clone()
    }

    /// Steps since it was armed.
    pub fn steps(&self) -> u64 {
        held(&self.state).1
    }
}

/// A number for the kind of a call.
fn kind(call: &Call<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    std::mem::discriminant(call).hash(&mut hasher);
    hasher.finish()
}

impl Gate for Injector {
    fn before(&self, call: &Call<'_>) -> io::Result<()> {
        held(&self.kinds).push(kind(call));
        let (plan, step) = {
            let mut state = held(&self.state);
            state.1 += 1;
            (state.0, state.1 - 1)
        };
        let act = held(&self.between).take_if(|between| between.0 == step);
        if let Some((_, mut act)) = act {
            act();
        }
        if let (Some(look), Some(disk)) = (&mut *held(&self.each_step), &self.disk) {
            let disk = held(disk);
            if !disk.roots.is_empty() {
                look(step, &disk);
            }
        }
        match plan {
            Plan::Fail(at, errno) if at == step => Err(io::Error::from_raw_os_error(errno)),
            Plan::Die(at) if step >= at => Err(io::Error::from_raw_os_error(5)),
            _ => Ok(()),
        }
    }

    fn after(&self, call: &Call<'_>, made: Option<BorrowedFd<'_>>) {
        if let Some(disk) = &self.disk {
            held(disk).after(call, made);
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    /// Content and mode that survive, and those that may.
    File {
        durable: Option<(Vec<u8>, u32)>,
        current: (Vec<u8>, u32),
    },
    Directory {
        durable: u32,
        current: u32,
    },
    Symlink(Vec<u8>),
}

#[derive(Clone, Debug)]
enum Change {
    Link(u64, Vec<u8>, u64),
    Unlink(u64, Vec<u8>),
    Rename(u64, Vec<u8>, u64, Vec<u8>, Rename),
}

struct Pending {
    change: Change,
    unsynced: HashSet<u64>,
}

/// A model of the disk, fed by the seam: inodes by number, and changes of directories in their order, each durable once
/// every directory it concerns was flushed. A rename is atomic, as journalling file systems make it; anything else not
/// flushed may be lost on its own.
#[derive(Default)]
pub struct Disk {
    nodes: HashMap<u64, Kind>,
    entries: HashMap<u64, BTreeMap<Vec<u8>, u64>>,
    pending: Vec<Pending>,
    roots: Vec<u64>,
    /// How often something was flushed.
    pub flushes: u64,
}

fn inode(fd: BorrowedFd<'_>) -> u64 {
    std::fs::metadata(format!("/proc/self/fd/{}", fd.as_raw_fd()))
        .unwrap()
        .ino()
}

fn path_of(dir: BorrowedFd<'_>, name: &[u8]) -> std::path::PathBuf {
    Path::new(&format!("/proc/self/fd/{}", dir.as_raw_fd())).join(std::ffi::OsStr::from_bytes(name))
}

/// Splits `ab/cdef` as the store gives it.
fn place(dir: BorrowedFd<'_>, name: &[u8]) -> (u64, Vec<u8>) {
    match name.iter().rposition(|&b| b == b'/') {
        None => (inode(dir), name.to_vec()),
        Some(at) => (
            std::fs::metadata(path_of(dir, &name[..at])).unwrap().ino(),
            name[at + 1..].to_vec(),
        ),
    }
}

impl Disk {
    /// Takes directories as they are for durable.
    pub fn load(&mut self, roots: &[&Path]) {
        *self = Self::default();
        for root in roots {
            let id = self.scan(root);
            self.roots.push(id);
        }
    }

    /// Takes the bytes of all files below a directory for not flushed yet, as a command leaves them.
    pub fn unflushed(&mut self, path: &Path) {
        for entry in std::fs::read_dir(path).unwrap() {
            let entry = entry.unwrap();
            match self.nodes.get_mut(&entry.ino()) {
                Some(Kind::File { durable, .. }) => *durable = None,
                Some(Kind::Directory { .. }) => self.unflushed(&entry.path()),
                _ => {}
            }
        }
    }

    fn scan(&mut self, path: &Path) -> u64 {
        let meta = std::fs::symlink_metadata(path).unwrap();
        let mode = meta.permissions().mode() & 0o7777;
        let kind = if meta.is_dir() {
            let mut entries = BTreeMap::new();
            for entry in std::fs::read_dir(path).unwrap() {
                let entry = entry.unwrap();
                entries.insert(entry.file_name().as_bytes().to_vec(), self.scan(&entry.path()));
            }
            self.entries.insert(meta.ino(), entries);
            Kind::Directory {
                durable: mode,
                current: mode,
            }
        } else if meta.is_symlink() {
            Kind::Symlink(std::fs::read_link(path).unwrap().as_os_str().as_bytes().to_vec())
        } else {
            // A whiteout of an upper layer has no content; nothing depends on what becomes of it.
            let bytes = if meta.is_file() {
                std::fs::read(path).unwrap()
            } else {
                Vec::new()
            };
            let content = (bytes, mode);
            Kind::File {
                durable: Some(content.clone()),
                current: content,
            }
        };
        self.nodes.insert(meta.ino(), kind);
        meta.ino()
    }

    fn change(&mut self, change: Change) {
        let unsynced = match &change {
            Change::Link(dir, ..) | Change::Unlink(dir, _) => HashSet::from([*dir]),
            Change::Rename(from, _, to, _, _) => HashSet::from([*from, *to]),
        };
        self.pending.push(Pending { change, unsynced });
    }

    fn file(&mut self, fd: BorrowedFd<'_>, synced: bool) {
        let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
        let meta = std::fs::metadata(&path).unwrap();
        let mode = meta.permissions().mode() & 0o7777;
        match self.nodes.get_mut(&meta.ino()) {
            Some(Kind::File { durable, current }) => {
                // Opened anew: the descriptor's own position stays.
                *current = (std::fs::read(&path).unwrap_or_else(|_| current.0.clone()), mode);
                if synced {
                    *durable = Some(current.clone());
                }
            }
            Some(Kind::Directory { durable, current }) => {
                *current = mode;
                if synced {
                    *durable = mode;
                }
            }
            _ => {}
        }
    }

    fn after(&mut self, call: &Call<'_>, made: Option<BorrowedFd<'_>>) {
        if matches!(
            call,
            Call::Sync { .. } | Call::SyncDirectory { .. } | Call::SyncAll { .. }
        ) {
            self.flushes += 1;
        }
        match *call {
            Call::Create { dir, name, mode } => {
                let id = inode(made.unwrap());
                self.nodes.insert(
                    id,
                    Kind::File {
                        durable: None,
                        current: (Vec::new(), mode),
                    },
                );
                let (dir, name) = place(dir, name);
                self.change(Change::Link(dir, name, id));
            }
            Call::MakeDirectory { dir, name, mode } => {
                let meta = std::fs::symlink_metadata(path_of(dir, name)).unwrap();
                let _ = mode;
                let mode = meta.permissions().mode() & 0o7777;
                self.nodes.insert(
                    meta.ino(),
                    Kind::Directory {
                        durable: mode,
                        current: mode,
                    },
                );
                self.entries.insert(meta.ino(), BTreeMap::new());
                let (dir, name) = place(dir, name);
                self.change(Change::Link(dir, name, meta.ino()));
            }
            Call::Symlink { target, dir, name } => {
                let meta = std::fs::symlink_metadata(path_of(dir, name)).unwrap();
                self.nodes.insert(meta.ino(), Kind::Symlink(target.to_vec()));
                let (dir, name) = place(dir, name);
                self.change(Change::Link(dir, name, meta.ino()));
            }
            Call::Link { to, new, .. } => {
                let meta = std::fs::symlink_metadata(path_of(to, new)).unwrap();
                let (to, new) = place(to, new);
                self.change(Change::Link(to, new, meta.ino()));
            }
            Call::Unlink { dir, name } | Call::RemoveDirectory { dir, name } => {
                let (dir, name) = place(dir, name);
                self.change(Change::Unlink(dir, name));
            }
            Call::Rename {
                from,
                old,
                to,
                new,
                how,
            } => {
                let ((from, old), (to, new)) = (place(from, old), place(to, new));
                self.change(Change::Rename(from, old, to, new, how));
            }
            Call::Write { file, .. } | Call::Truncate { file, .. } | Call::Chmod { file, .. } => self.file(file, false),
            Call::Sync { file } => self.file(file, true),
            Call::SyncDirectory { dir } => {
                self.file(dir, true);
                let id = inode(dir);
                for pending in &mut self.pending {
                    pending.unsynced.remove(&id);
                }
            }
            Call::SyncAll { .. } => {
                for pending in &mut self.pending {
                    pending.unsynced.clear();
                }
                for node in self.nodes.values_mut() {
                    match node {
                        Kind::File { durable, current } => *durable = Some(current.clone()),
                        Kind::Directory { durable, current } => *durable = *current,
                        Kind::Symlink(_) => {}
                    }
                }
            }
            Call::OpenLock { .. }
            | Call::Whiteout { .. }
            | Call::Touch { .. }
            | Call::Chown { .. }
            | Call::SetXattr { .. }
            | Call::RemoveXattr { .. } => {}
        }
    }

    /// What a loss of power now would leave of each root: of what is not flushed, `keep` decides bit by bit.
    pub fn after_power_loss(&self, keep: &mut dyn FnMut() -> bool) -> Vec<Survivor> {
        let mut entries = self.entries.clone();
        for dir in entries.values_mut() {
            dir.retain(|_, id| self.nodes.contains_key(id));
        }
        for pending in &self.pending {
            if !pending.unsynced.is_empty() && !keep() {
                continue;
            }
            apply(&mut entries, &pending.change);
        }
        let roots = self.roots.iter();
        roots.map(|root| self.survivor(*root, &entries, keep)).collect()
    }

    fn survivor(
        &self,
        id: u64,
        entries: &HashMap<u64, BTreeMap<Vec<u8>, u64>>,
        keep: &mut dyn FnMut() -> bool,
    ) -> Survivor {
        match &self.nodes[&id] {
            Kind::Symlink(target) => Survivor::Symlink(target.clone()),
            Kind::Directory { durable, current } => {
                let children = entries.get(&id).into_iter().flatten();
                let children = children.map(|(name, child)| (name.clone(), self.survivor(*child, entries, keep)));
                Survivor::Directory(
                    children.collect(),
                    if durable != current && keep() {
                        *current
                    } else {
                        *durable
                    },
                )
            }
            Kind::File { durable, current } => {
                let (bytes, mode) = match durable {
                    Some(durable) if durable == current => current.clone(),
                    _ if keep() => current.clone(),
                    Some(durable) if keep() => {
                        // Part of an append reached the disk.
                        let half = durable.0.len() + current.0.len().saturating_sub(durable.0.len()) / 2;
                        (current.0[..half.min(current.0.len())].to_vec(), durable.1)
                    }
                    Some(durable) => durable.clone(),
                    None if keep() => (current.0[..current.0.len() / 2].to_vec(), current.1),
                    None => (Vec::new(), 0o600),
                };
                Survivor::File(bytes, mode)
            }
        }
    }
}

/// What is left of a path after a loss of power, with its mode.
#[derive(Hash)]
pub enum Survivor {
    File(Vec<u8>, u32),
    Directory(BTreeMap<Vec<u8>, Survivor>, u32),
    Symlink(Vec<u8>),
}

impl Survivor {
    /// Makes it anew at a place where nothing is.
    pub fn write(&self, at: &Path) {
        let (mode, usual) = match self {
            Self::Symlink(target) => {
                std::os::unix::fs::symlink(std::ffi::OsStr::from_bytes(target), at).unwrap();
                return;
            }
            Self::Directory(children, mode) => {
                std::fs::create_dir(at).unwrap();
                for (name, child) in children {
                    child.write(&at.join(std::ffi::OsStr::from_bytes(name)));
                }
                (*mode, 0o777)
            }
            Self::File(bytes, mode) => {
                std::fs::write(at, bytes).unwrap();
                (*mode, 0o666)
            }
        };
        // Most have the mode that they are made with.
        if mode != usual & !umask() {
            std::fs::set_permissions(at, std::fs::Permissions::from_mode(mode)).unwrap();
        }
    }
}

/// The process's file mode creation mask.
fn umask() -> u32 {
    static MASK: OnceLock<u32> = OnceLock::new();
    *MASK.get_or_init(|| {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let mask = status.lines().find_map(|line| line.strip_prefix("Umask:")).unwrap();
        u32::from_str_radix(mask.trim(), 8).unwrap()
    })
}

/// Makes a change if it is possible: what it builds on may have been lost.
fn apply(entries: &mut HashMap<u64, BTreeMap<Vec<u8>, u64>>, change: &Change) {
    let get = |entries: &HashMap<u64, BTreeMap<Vec<u8>, u64>>, dir: &u64, name: &Vec<u8>| {
        entries.get(dir).and_then(|d| d.get(name)).copied()
    };
    match change {
        Change::Link(dir, name, id) => {
            if let Some(dir) = entries.get_mut(dir) {
                dir.insert(name.clone(), *id);
            }
        }
        Change::Unlink(dir, name) => {
            let id = get(entries, dir, name);
            let full = id.is_some_and(|id| entries.get(&id).is_some_and(|d| !d.is_empty()));
            if !full && let Some(dir) = entries.get_mut(dir) {
                dir.remove(name);
            }
        }
        Change::Rename(from, old, to, new, how) => {
            let Some(id) = get(entries, from, old) else { return };
            let there = get(entries, to, new);
            match (how, there) {
                (Rename::NoReplace, Some(_)) | (Rename::Exchange, None) => return,
                _ => {}
            }
            if !entries.contains_key(to) {
                return;
            }
            entries.get_mut(from).unwrap().remove(old);
            entries.get_mut(to).unwrap().insert(new.clone(), id);
            if let (Rename::Exchange, Some(there)) = (how, there) {
                entries.get_mut(from).unwrap().insert(old.clone(), there);
            }
        }
    }
}
