//! The shipped engines as subjects.
#![allow(clippy::unwrap_used, reason = "a subject that cannot be set up fails its test")]

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use fszero::{FsConfig, FsZero};
use graphzero::GraphZero;
use tempfile::TempDir;
use tokenzero::{TokenConfig, TokenZero};
use zero_conformance::suites::files::Files;
use zero_conformance::suites::objects::Objects;
use zero_conformance::suites::source::Views;
use zero_conformance::suites::structure::Structures;
use zero_conformance::suites::tokens::Tokens;
use zero_conformance::tree::{Node, Tree};
use zero_contracts::apply::FileOperation;
use zero_contracts::edit::{Change, Expect};
use zero_contracts::files::{BeginTransaction, ReadLog};
use zero_contracts::{
    CancelToken, CellId, Content, Digest, FileEngine, ObjectStore, SourceView, StructureEngine, TokenEngine,
    WorkspacePath,
};

/// FSZero over a temporary directory.
pub struct Shipped {
    home: TempDir,
    pub engine: FsZero,
}

impl Shipped {
    pub fn new() -> Self {
        let home = TempDir::new().unwrap();
        std::fs::create_dir(home.path().join("root")).unwrap();
        let engine = open(home.path());
        Self { home, engine }
    }

    pub fn root(&self) -> PathBuf {
        self.home.path().join("root")
    }

    pub fn reopen(&mut self) {
        self.engine = open(self.home.path());
    }

    pub fn object(&self, digest: &Digest) -> PathBuf {
        let hex = digest.to_hex();
        self.home.path().join("store/objects").join(&hex[..2]).join(&hex[2..])
    }
}

fn open(home: &Path) -> FsZero {
    FsZero::open(FsConfig::new(home.join("root"), home.join("store"))).unwrap()
}

pub fn damage(path: &Path) {
    let mut bytes = std::fs::read(path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::fs::write(path, bytes).unwrap();
}

impl Objects for Shipped {
    fn store(&self) -> Arc<dyn ObjectStore> {
        self.engine.objects()
    }

    fn damage(&self, digest: &Digest) {
        damage(&self.object(digest));
    }
}

pub fn on_disk(root: &Path, raw: &[u8]) -> PathBuf {
    root.join(OsStr::from_bytes(raw))
}

/// Writes a node of a tree; the directories above it are there.
pub fn write(root: &Path, raw: &[u8], node: &Node) {
    let path = on_disk(root, raw);
    let set = |mode| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    match node {
        Node::File { bytes, mode } => {
            std::fs::write(&path, bytes).unwrap();
            set(*mode);
        }
        Node::Directory(mode) => {
            if !path.is_dir() {
                std::fs::create_dir(&path).unwrap();
            }
            set(*mode);
        }
        Node::Symlink(target) => std::os::unix::fs::symlink(OsStr::from_bytes(target), &path).unwrap(),
    }
}

/// Reads a whole tree back.
pub fn read(root: &Path) -> Tree {
    fn visit(directory: &Path, root: &Path, found: &mut BTreeMap<Vec<u8>, Node>) {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let meta = std::fs::symlink_metadata(&path).unwrap();
            let mode = meta.permissions().mode() & 0o7777;
            let node = if meta.is_symlink() {
                Node::Symlink(std::fs::read_link(&path).unwrap().as_os_str().as_bytes().to_vec())
            } else if meta.is_dir() {
                visit(&path, root, found);
                Node::Directory(mode)
            } else {
                let bytes = std::fs::read(&path).unwrap();
                Node::File { bytes, mode }
            };
            let below = path.strip_prefix(root).unwrap();
            found.insert(below.as_os_str().as_bytes().to_vec(), node);
        }
    }
    let mut found = BTreeMap::new();
    visit(root, root, &mut found);
    Tree(found)
}

pub fn begin() -> BeginTransaction {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    let n = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    BeginTransaction {
        cell: CellId::new(format!("cell-{n}")).unwrap(),
        session: "main".parse().unwrap(),
        staged_bytes: 1 << 30,
    }
}

/// Views of the live tree.
#[derive(Default)]
pub struct LiveViews(Mutex<Vec<Shipped>>);

impl Views for LiveViews {
    fn view(&self, tree: &Tree) -> Arc<dyn SourceView> {
        let shipped = Shipped::new();
        for (raw, node) in &tree.0 {
            write(&shipped.root(), raw, node);
        }
        let view = shipped.engine.live();
        self.0.lock().unwrap().push(shipped);
        view
    }
}

/// Views of a tree of which a part is live and the rest staged.
#[derive(Default)]
pub struct StagedViews(Mutex<Vec<(Shipped, Box<dyn zero_contracts::Transaction>)>>);

impl Views for StagedViews {
    fn view(&self, tree: &Tree) -> Arc<dyn SourceView> {
        let shipped = Shipped::new();
        let mut operations = Vec::new();
        for (n, (raw, node)) in tree.0.iter().enumerate() {
            let path = WorkspacePath::from_raw(raw).unwrap();
            let edit = |change| FileOperation::Edit {
                path: path.clone(),
                change,
                expect: Some(Expect::Any),
            };
            let parent_is_live = on_disk(&shipped.root(), raw).parent().is_some_and(Path::is_dir);
            match node {
                Node::File { bytes, mode } if n % 2 == 0 || !parent_is_live => {
                    let create = Content::from_bytes(bytes.clone());
                    operations.push(edit(Change::Create { create }));
                    operations.push(edit(Change::Mode { mode: *mode }));
                }
                Node::Directory(_) if n % 2 == 0 || !parent_is_live => operations.push(FileOperation::Mkdir { path }),
                Node::Symlink(target) if !parent_is_live => operations.push(FileOperation::Symlink {
                    target: String::from_utf8(target.clone()).unwrap(),
                    path,
                }),
                _ => write(&shipped.root(), raw, node),
            }
        }
        let mut transaction = shipped.engine.begin(begin()).unwrap();
        transaction
            .stage(&operations, &ReadLog::new(), &CancelToken::new())
            .unwrap();
        let view = transaction.view();
        self.0.lock().unwrap().push((shipped, transaction));
        view
    }
}

/// GraphZero.
pub struct Graph;

impl Structures for Graph {
    fn engine(&self) -> Arc<dyn StructureEngine> {
        Arc::new(GraphZero::new())
    }
}

/// TokenZero.
pub struct TokensShipped;

impl Tokens for TokensShipped {
    fn engine(&self) -> Arc<dyn TokenEngine> {
        Arc::new(TokenZero::new(TokenConfig::default()))
    }
}

/// A workspace of FSZero.
pub struct Workspace(Mutex<Shipped>);

impl Default for Workspace {
    fn default() -> Self {
        Self(Mutex::new(Shipped::new()))
    }
}

impl Files for Workspace {
    fn engine(&self) -> Arc<dyn FileEngine> {
        Arc::new(self.0.lock().unwrap().engine.clone())
    }

    fn set(&self, tree: &Tree) {
        let root = self.0.lock().unwrap().root();
        let live = read(&root);
        for (raw, node) in live.0.iter().rev() {
            let kept = tree.0.get(raw).is_some_and(|wanted| {
                wanted == node || matches!((wanted, node), (Node::Directory(_), Node::Directory(_)))
            });
            let path = on_disk(&root, raw);
            match node {
                _ if kept => {}
                Node::Directory(_) => std::fs::remove_dir(path).unwrap(),
                _ => std::fs::remove_file(path).unwrap(),
            }
        }
        for (raw, node) in tree.0.iter().filter(|(raw, node)| live.0.get(*raw) != Some(node)) {
            write(&root, raw, node);
        }
    }

    fn tree(&self) -> Tree {
        read(&self.0.lock().unwrap().root())
    }

    fn reopen(&self) {
        self.0.lock().unwrap().reopen();
    }

    fn damage(&self, digest: &Digest) {
        damage(&self.0.lock().unwrap().object(digest));
    }
}
