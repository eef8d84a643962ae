//! All files of one tree that belong to one language folder, and what resolves names among them.

use std::sync::Arc;

use zero_contracts::WorkspacePath;
use zero_contracts::find::Confidence;

use crate::facts::{DefId, FileFacts, UseId};

/// Index of a file in a program, in order of paths.
pub type FileId = u32;

/// One file of a program.
#[derive(Clone, Debug)]
pub struct ProgramFile {
    /// Where it lies.
    pub path: WorkspacePath,
    /// What is known of its content.
    pub facts: Arc<FileFacts>,
}

/// A definition a use may refer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Target {
    /// The file of the definition.
    pub file: FileId,
    /// The definition.
    pub def: DefId,
    /// How sure that is.
    pub confidence: Confidence,
}

/// What one import statement names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportEdge {
    /// The import as it is written, without the keyword.
    pub text: String,
    /// First byte of the import's own path in the file.
    pub at: u32,
    /// The byte after it.
    pub end: u32,
    /// The files it leads to.
    pub files: Vec<FileId>,
    /// The definitions it leads to.
    pub targets: Vec<Target>,
}

/// Resolves names among the files of one program. Answers are a pure function of the files.
pub trait Resolver: Send + Sync {
    /// Returns what a use may refer to inside the program, best first; nothing if it refers to something outside.
    fn resolve(&self, file: FileId, use_id: UseId) -> Vec<Target>;

    /// Returns the module path of a file, which begins every qualified name in it: `crate::module` in Rust without the
    /// crate. Empty at a root.
    fn module_path(&self, file: FileId) -> Vec<String>;

    /// Returns what a file imports.
    fn imports(&self, file: FileId) -> Vec<ImportEdge>;

    /// Returns other names under which a file may mention one (`use a as b`), so that candidates are not missed.
    fn aliases(&self, name: &str) -> Vec<String>;

    /// Tells whether a definition is a copy, for another configuration, of one that the default configuration builds.
    fn is_copy(&self, _file: FileId, _def: DefId) -> bool {
        false
    }

    /// Returns the definitions that a definition implements or overrides: callers of those may reach it.
    fn overridden(&self, _file: FileId, _def: DefId) -> Vec<Target> {
        Vec::new()
    }
}
