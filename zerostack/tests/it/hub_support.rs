//! A workspace with a kernel in a test.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;
use zero_contracts::ZeroKernelResponse;
use zero_contracts::files::Durability;
use zero_contracts::response::{Outcome, ResponseError};
use zerostack::{CellOptions, KernelConfig, StoreLocation, ZeroKernel};

/// Mode and content of everything in a tree, by path.
pub type Tree = BTreeMap<PathBuf, (u32, Vec<u8>)>;

/// A workspace and its kernel; both go when it is dropped.
pub struct Workspace {
    pub root: TempDir,
    pub store: TempDir,
    pub kernel: ZeroKernel,
}

impl Workspace {
    /// Makes a workspace of these files.
    pub fn new(files: &[(&str, &str)]) -> Self {
        Self::with(files, |_| {})
    }

    /// Makes a workspace whose kernel is configured further.
    pub fn with(files: &[(&str, &str)], configure: impl FnOnce(&mut KernelConfig)) -> Self {
        let (root, store) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for (path, content) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let mut config = config(root.path(), store.path());
        configure(&mut config);
        let kernel = ZeroKernel::open(config).unwrap();
        Self { root, store, kernel }
    }

    /// Runs a cell.
    pub fn run(&self, source: &str) -> ZeroKernelResponse {
        self.kernel.execute_cell(source)
    }

    /// Runs a cell that must complete, and returns its value.
    #[track_caller]
    pub fn value(&self, source: &str) -> Value {
        let response = self.run(source);
        assert_eq!(response.outcome, Outcome::Completed, "{source}\n{:#?}", response.error);
        response.value.map_or(Value::Null, |value| value.0)
    }

    /// Runs a cell that must fail, and returns why.
    #[track_caller]
    pub fn error(&self, source: &str) -> ResponseError {
        let response = self.run(source);
        assert_eq!(response.outcome, Outcome::Failed, "{source}\n{:#?}", response.value);
        response.error.unwrap()
    }

    /// Reads a file of the live tree.
    pub fn file(&self, path: &str) -> String {
        fs::read_to_string(self.root.path().join(path)).unwrap()
    }

    /// Tells whether something lies in the live tree.
    pub fn has(&self, path: &str) -> bool {
        fs::symlink_metadata(self.root.path().join(path)).is_ok()
    }

    /// Reads the whole live tree.
    pub fn tree(&self) -> Tree {
        tree(self.root.path())
    }
}

/// The configuration of test kernels: nothing outlives the test, and no fsync slows it.
pub fn config(root: &Path, store: &Path) -> KernelConfig {
    KernelConfig {
        store: StoreLocation::At(store.to_owned()),
        durability: Durability::Process,
        ..KernelConfig::new(root)
    }
}

/// Whether this machine gives commands a private view; prints why not.
pub fn has_private_view() -> bool {
    let ws = Workspace::new(&[]);
    let why = ws.kernel.why_no_private_view().unwrap();
    if let Some(why) = &why {
        eprintln!("SKIPPED: no private view here: {why}");
    }
    why.is_none()
}

/// Options with these values as `input`.
pub fn with_input(input: Value) -> CellOptions {
    let Value::Object(input) = input else {
        panic!("an object")
    };
    CellOptions {
        input: Some(input.into_iter().collect()),
        ..CellOptions::default()
    }
}

/// Reads everything below a directory, following no symlink.
pub fn tree(root: &Path) -> Tree {
    fn visit(directory: &Path, root: &Path, found: &mut Tree) {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let metadata = fs::symlink_metadata(&path).unwrap();
            let content = if metadata.is_symlink() {
                fs::read_link(&path).unwrap().as_os_str().as_bytes().to_vec()
            } else if metadata.is_file() {
                fs::read(&path).unwrap()
            } else {
                Vec::new()
            };
            found.insert(
                path.strip_prefix(root).unwrap().to_owned(),
                (metadata.permissions().mode(), content),
            );
            if metadata.is_dir() {
                visit(&path, root, found);
            }
        }
    }
    let mut found = Tree::new();
    visit(root, root, &mut found);
    found
}

/// What differs between two trees: path, and what each has there.
pub fn differences(given: &Tree, wanted: &Tree) -> Vec<String> {
    let show = |entry: Option<&(u32, Vec<u8>)>| match entry {
        None => "nothing".to_owned(),
        Some((mode, content)) => format!("{mode:o} {:.60}", String::from_utf8_lossy(content)),
    };
    let paths: std::collections::BTreeSet<_> = given.keys().chain(wanted.keys()).collect();
    paths
        .into_iter()
        .filter(|path| given.get(*path) != wanted.get(*path))
        .map(|path| {
            format!(
                "{}: {}, not {}",
                path.display(),
                show(given.get(path)),
                show(wanted.get(path))
            )
        })
        .collect()
}

/// Runs one ignored test of this binary in a process of its own, and returns that process.
pub fn isolated(test: &str, environment: &[(&str, &str)]) -> std::process::Child {
    std::process::Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--ignored", "--nocapture"])
        .envs(environment.iter().copied())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap()
}
