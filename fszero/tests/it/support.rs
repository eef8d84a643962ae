//! A workspace with its store in a temporary directory, and short words for what tests do.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use fszero::{FsConfig, FsZero};
use tempfile::TempDir;
use zero_contracts::apply::FileOperation;
use zero_contracts::edit::EditReceipt;
use zero_contracts::files::{BeginTransaction, CommitFailure, CommitRecord, CommitSeal, Durability, ReadLog};
use zero_contracts::{CancelToken, CellId, Digest, Epoch, Error, FileEngine, SessionName, Transaction, WorkspacePath};

/// What one path holds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Held {
    File(Vec<u8>, u32),
    Directory(u32),
    Symlink(Vec<u8>),
    Other,
}

/// A whole tree by raw relative path.
pub type Image = BTreeMap<Vec<u8>, Held>;

pub struct Fixture {
    pub dir: TempDir,
    pub engine: FsZero,
}

/// A directory on a memory file system where there is one: tests of durability `process` need no disk.
pub fn scratch() -> TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir()
        && let Ok(dir) = tempfile::tempdir_in(memory)
    {
        return dir;
    }
    tempfile::tempdir().unwrap()
}

pub fn config(dir: &Path) -> FsConfig {
    FsConfig::new(dir.join("root"), dir.join("store")).durability(Durability::Process)
}

impl Fixture {
    pub fn new() -> Self {
        Self::with(scratch(), |config| config)
    }

    pub fn with(dir: TempDir, adjust: impl FnOnce(FsConfig) -> FsConfig) -> Self {
        std::fs::create_dir_all(dir.path().join("root")).unwrap();
        let engine = FsZero::open(adjust(config(dir.path()))).unwrap();
        Self { dir, engine }
    }

    pub fn root(&self) -> PathBuf {
        self.dir.path().join("root")
    }

    pub fn at(&self, path: &str) -> PathBuf {
        self.root().join(path)
    }

    pub fn write(&self, path: &str, bytes: impl AsRef<[u8]>) -> &Self {
        let at = self.at(path);
        std::fs::create_dir_all(at.parent().unwrap()).unwrap();
        std::fs::write(at, bytes).unwrap();
        self
    }

    pub fn chmod(&self, path: &str, mode: u32) -> &Self {
        std::fs::set_permissions(self.at(path), std::fs::Permissions::from_mode(mode)).unwrap();
        self
    }

    pub fn link(&self, target: &str, path: &str) -> &Self {
        std::os::unix::fs::symlink(target, self.at(path)).unwrap();
        self
    }

    pub fn bytes(&self, path: &str) -> Vec<u8> {
        std::fs::read(self.at(path)).unwrap()
    }

    pub fn image(&self) -> Image {
        image(&self.root())
    }

    pub fn begin(&self) -> Box<dyn Transaction> {
        self.engine.begin(fresh()).unwrap()
    }

    /// Stages and commits in one transaction.
    pub fn commit(&self, operations: &str) -> Result<(Vec<EditReceipt>, CommitRecord), Error> {
        let mut transaction = self.begin();
        let receipts = stage(&mut *transaction, operations)?;
        let record = finish(&mut *transaction).map_err(|failure| failure.error)?;
        Ok((receipts, record))
    }

    /// Stages and drops, expecting an error.
    pub fn refuse(&self, operations: &str) -> Error {
        let before = self.image();
        let error = self.commit(operations).expect_err("this was to be refused");
        assert_eq!(self.image(), before, "a refused change left a trace");
        error
    }

    /// Opens the same workspace again.
    pub fn reopen(&self) -> FsZero {
        FsZero::open(config(self.dir.path())).unwrap()
    }
}

/// A transaction of a new cell.
pub fn fresh() -> BeginTransaction {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let cell = format!("cell-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    BeginTransaction {
        cell: CellId::new(cell).unwrap(),
        session: SessionName::default(),
        staged_bytes: 4 << 30,
    }
}

pub fn operations(json: &str) -> Vec<FileOperation> {
    zero_contracts::json::from_text(json).unwrap_or_else(|e| panic!("{e}: {json}"))
}

pub fn stage(transaction: &mut dyn Transaction, json: &str) -> Result<Vec<EditReceipt>, Error> {
    transaction.stage(&operations(json), &ReadLog::new(), &CancelToken::new())
}

pub fn seal() -> CommitSeal {
    CommitSeal {
        session: SessionName::default(),
        state: None,
        event: Digest::of(b"event"),
        intents: Vec::new(),
    }
}

pub fn finish(transaction: &mut dyn Transaction) -> Result<CommitRecord, Box<CommitFailure>> {
    transaction.commit(Epoch(1), seal(), &CancelToken::new())
}

pub fn path(text: &str) -> WorkspacePath {
    text.parse().unwrap()
}

/// Everything below a directory; staging directories are not left out, for there must be none.
pub fn image(root: &Path) -> Image {
    let mut image = Image::new();
    let mut todo = vec![root.to_owned()];
    while let Some(directory) = todo.pop() {
        for entry in std::fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let key = path.strip_prefix(root).unwrap().as_os_str().as_bytes().to_vec();
            let meta = std::fs::symlink_metadata(&path).unwrap();
            let mode = meta.permissions().mode() & 0o7777;
            let held = if meta.is_dir() {
                todo.push(path.clone());
                Held::Directory(mode)
            } else if meta.is_symlink() {
                Held::Symlink(std::fs::read_link(&path).unwrap().as_os_str().as_bytes().to_vec())
            } else if meta.is_file() {
                Held::File(std::fs::read(&path).unwrap(), mode)
            } else {
                Held::Other
            };
            image.insert(key, held);
        }
    }
    image
}
