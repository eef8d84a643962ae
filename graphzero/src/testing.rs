//! Source views for tests, benches and programs without FSZero: files in memory, and a plain directory.

use std::collections::BTreeMap;
use std::io::Read;
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use zero_contracts::find::{Freshness, Skipped};
use zero_contracts::read::EntryKind;
use zero_contracts::source::{Entry, FileContent, Stamp, WalkScope};
use zero_contracts::{CancelToken, Digest, Error, ErrorKind, SourceView, WorkspacePath};

/// Files in memory. Directories exist as far as files lie in them.
#[derive(Debug, Default)]
pub struct MemoryView {
    files: RwLock<BTreeMap<WorkspacePath, Arc<[u8]>>>,
}

impl MemoryView {
    /// Makes a view of files given as pairs of path and text.
    ///
    /// # Panics
    /// If a path is malformed: this is for tests.
    pub fn new<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let view = Self::default();
        for (path, text) in files {
            view.write(path, text);
        }
        view
    }

    /// Creates or replaces a file.
    ///
    /// # Panics
    /// If the path is malformed.
    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path: WorkspacePath = path.parse().unwrap_or_else(|e| panic!("{e}"));
        self.files
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(path, content.as_ref().into());
    }

    /// Removes a file; returns whether there was one.
    pub fn remove(&self, path: &str) -> bool {
        let Ok(path) = path.parse() else { return false };
        self.files
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&path)
            .is_some()
    }

    /// Returns a file's content as text.
    pub fn text(&self, path: &str) -> Option<String> {
        let files = self.files.read().unwrap_or_else(PoisonError::into_inner);
        files
            .get(&path.parse().ok()?)
            .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }

    fn file_entry(path: &WorkspacePath, bytes: &[u8]) -> Entry {
        let digest = Digest::of(bytes);
        let mut half = [0; 16];
        half.copy_from_slice(&digest.as_bytes()[..16]);
        Entry {
            path: path.clone(),
            kind: EntryKind::File,
            bytes: bytes.len() as u64,
            mode: 0o644,
            stamp: Stamp {
                value: u128::from_le_bytes(half),
                settled: true,
            },
        }
    }

    fn directory(path: &WorkspacePath) -> Entry {
        Entry {
            path: path.clone(),
            kind: EntryKind::Directory,
            bytes: 0,
            mode: 0o755,
            stamp: Stamp {
                value: 0,
                settled: true,
            },
        }
    }
}

fn not_found(path: &WorkspacePath) -> Error {
    Error::new(ErrorKind::NotFound, format!("`{path}` does not exist")).with_path(path)
}

impl SourceView for MemoryView {
    fn entry(&self, path: &WorkspacePath) -> Result<Option<Entry>, Error> {
        let files = self.files.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(bytes) = files.get(path) {
            return Ok(Some(Self::file_entry(path, bytes)));
        }
        let holds = path.is_root() || files.keys().any(|file| file.is_within(path));
        Ok(holds.then(|| Self::directory(path)))
    }

    fn resolve(&self, path: &WorkspacePath) -> Result<Option<Entry>, Error> {
        self.entry(path)
    }

    fn list(&self, path: &WorkspacePath) -> Result<Vec<Entry>, Error> {
        let files = self.files.read().unwrap_or_else(PoisonError::into_inner);
        let mut found: BTreeMap<WorkspacePath, Entry> = BTreeMap::new();
        let depth = path.components().count();
        for (file, bytes) in files.iter().filter(|(file, _)| file.is_within(path)) {
            let Some(name) = file.components().nth(depth) else {
                continue;
            };
            let child = path.join(name)?;
            let entry = if child == *file {
                Self::file_entry(file, bytes)
            } else {
                Self::directory(&child)
            };
            found.insert(child, entry);
        }
        if found.is_empty() && !path.is_root() {
            Err(not_found(path))
        } else {
            Ok(found.into_values().collect())
        }
    }

    fn read_link(&self, path: &WorkspacePath) -> Result<Vec<u8>, Error> {
        Err(Error::invalid("there are no symlinks here").with_path(path))
    }

    fn read(&self, path: &WorkspacePath, token: &CancelToken) -> Result<FileContent, Error> {
        token.check()?;
        let files = self.files.read().unwrap_or_else(PoisonError::into_inner);
        let bytes = files.get(path).ok_or_else(|| not_found(path))?;
        Ok(FileContent {
            entry: Self::file_entry(path, bytes),
            bytes: Arc::clone(bytes),
            digest: Digest::of(bytes),
        })
    }

    fn open(&self, path: &WorkspacePath) -> Result<Box<dyn Read + Send>, Error> {
        let files = self.files.read().unwrap_or_else(PoisonError::into_inner);
        let bytes = files.get(path).ok_or_else(|| not_found(path))?;
        Ok(Box::new(std::io::Cursor::new(Arc::clone(bytes))))
    }

    fn walk(
        &self,
        scope: &WalkScope,
        token: &CancelToken,
        visit: &(dyn Fn(Entry) -> ControlFlow<()> + Sync),
    ) -> Result<Vec<Skipped>, Error> {
        if self.entry(&scope.start)?.is_none() {
            return Err(not_found(&scope.start));
        }
        let files = self.files.read().unwrap_or_else(PoisonError::into_inner).clone();
        for (path, bytes) in files.iter().filter(|(path, _)| path.is_within(&scope.start)) {
            token.check()?;
            let below = path.components().count() - scope.start.components().count();
            if scope.depth.is_some_and(|depth| below > depth) {
                continue;
            }
            if visit(Self::file_entry(path, bytes)).is_break() {
                break;
            }
        }
        Ok(Vec::new())
    }

    fn freshness(&self) -> Freshness {
        Freshness::Present
    }
}

/// A plain directory, read with the standard library. Symlinks are listed and not followed. Unlike FSZero's views it
/// does not guard against a tree that changes while it is read.
#[derive(Clone, Debug)]
pub struct DirectoryView {
    root: PathBuf,
    threads: usize,
}

impl DirectoryView {
    /// Makes a view of a directory.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            threads: std::thread::available_parallelism().map_or(1, usize::from),
        }
    }

    fn absolute(&self, path: &WorkspacePath) -> PathBuf {
        if path.is_root() {
            self.root.clone()
        } else {
            self.root.join(path.as_os_str())
        }
    }

    fn made(path: WorkspacePath, meta: &std::fs::Metadata) -> Entry {
        let kind = match meta.file_type() {
            t if t.is_file() => EntryKind::File,
            t if t.is_dir() => EntryKind::Directory,
            t if t.is_symlink() => EntryKind::Symlink,
            _ => EntryKind::Other,
        };
        let time = (meta.mtime() as u128) << 32 ^ meta.mtime_nsec() as u128;
        let value = time << 48 ^ (meta.ino() as u128) << 20 ^ meta.size() as u128 ^ (meta.ctime_nsec() as u128) << 90;
        Entry {
            path,
            kind,
            bytes: if kind == EntryKind::File { meta.len() } else { 0 },
            mode: meta.mode() & 0o7777,
            stamp: Stamp { value, settled: true },
        }
    }
}

fn io(error: &std::io::Error, path: &WorkspacePath) -> Error {
    Error::from_io(error, format!("reading `{path}`")).with_path(path)
}

impl SourceView for DirectoryView {
    fn entry(&self, path: &WorkspacePath) -> Result<Option<Entry>, Error> {
        match std::fs::symlink_metadata(self.absolute(path)) {
            Ok(meta) => Ok(Some(Self::made(path.clone(), &meta))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(io(&error, path)),
        }
    }

    fn resolve(&self, path: &WorkspacePath) -> Result<Option<Entry>, Error> {
        let io = |e: std::io::Error| io(&e, path);
        let root = self.root.canonicalize().map_err(io)?;
        let target = match self.absolute(path).canonicalize() {
            Ok(target) => target,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(io(error)),
        };
        match relative(&root, &target) {
            Some(target) => self.entry(&target),
            None => {
                Err(Error::new(ErrorKind::OutsideWorkspace, format!("`{path}` leads out of the root")).with_path(path))
            }
        }
    }

    fn list(&self, path: &WorkspacePath) -> Result<Vec<Entry>, Error> {
        let mut entries = Vec::new();
        for entry in std::fs::read_dir(self.absolute(path)).map_err(|e| io(&e, path))? {
            let entry = entry.map_err(|e| io(&e, path))?;
            let child = path.join(std::os::unix::ffi::OsStrExt::as_bytes(entry.file_name().as_os_str()))?;
            entries.push(Self::made(
                child.clone(),
                &entry.metadata().map_err(|e| io(&e, &child))?,
            ));
        }
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(entries)
    }

    fn read_link(&self, path: &WorkspacePath) -> Result<Vec<u8>, Error> {
        let target = std::fs::read_link(self.absolute(path)).map_err(|e| io(&e, path))?;
        Ok(std::os::unix::ffi::OsStrExt::as_bytes(target.as_os_str()).to_vec())
    }

    fn read(&self, path: &WorkspacePath, token: &CancelToken) -> Result<FileContent, Error> {
        token.check()?;
        let absolute = self.absolute(path);
        let bytes = std::fs::read(&absolute).map_err(|e| io(&e, path))?;
        let meta = std::fs::metadata(&absolute).map_err(|e| io(&e, path))?;
        let digest = Digest::of(&bytes);
        Ok(FileContent {
            entry: Self::made(path.clone(), &meta),
            bytes: bytes.into(),
            digest,
        })
    }

    fn open(&self, path: &WorkspacePath) -> Result<Box<dyn Read + Send>, Error> {
        Ok(Box::new(
            std::fs::File::open(self.absolute(path)).map_err(|e| io(&e, path))?,
        ))
    }

    fn walk(
        &self,
        scope: &WalkScope,
        token: &CancelToken,
        visit: &(dyn Fn(Entry) -> ControlFlow<()> + Sync),
    ) -> Result<Vec<Skipped>, Error> {
        let skipped = RwLock::new(Vec::new());
        let mut walk = ignore::WalkBuilder::new(self.absolute(&scope.start));
        walk.follow_links(false)
            .threads(self.threads)
            .standard_filters(!scope.ignored)
            .max_depth(scope.depth);
        walk.hidden(false).require_git(false).parents(false);
        walk.build_parallel().run(|| {
            Box::new(|found| {
                if token.check().is_err() {
                    return ignore::WalkState::Quit;
                }
                let entry = match found {
                    Ok(entry) => entry,
                    Err(error) => {
                        skipped.write().unwrap_or_else(PoisonError::into_inner).push(Skipped {
                            path: ".".into(),
                            why: format!("unreadable: {error}"),
                        });
                        return ignore::WalkState::Continue;
                    }
                };
                if entry.file_name() == ".git" {
                    return ignore::WalkState::Skip;
                }
                let Some(path) = relative(&self.root, entry.path()) else {
                    return ignore::WalkState::Continue;
                };
                let Ok(meta) = entry.metadata() else {
                    return ignore::WalkState::Continue;
                };
                let entry = Self::made(path, &meta);
                if entry.kind == EntryKind::Directory && !scope.directories {
                    return ignore::WalkState::Continue;
                }
                if visit(entry).is_break() {
                    ignore::WalkState::Quit
                } else {
                    ignore::WalkState::Continue
                }
            })
        });
        token.check()?;
        Ok(skipped.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    fn freshness(&self) -> Freshness {
        Freshness::Present
    }
}

fn relative(root: &Path, path: &Path) -> Option<WorkspacePath> {
    let rest = path.strip_prefix(root).ok()?;
    WorkspacePath::from_raw(std::os::unix::ffi::OsStrExt::as_bytes(rest.as_os_str())).ok()
}
