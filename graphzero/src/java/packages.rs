//! Java packages: every file names its own, and an import is a path from the root.

use std::collections::HashSet;
use std::sync::Arc;

use crate::declared::resolver::{Leads, Places};
use crate::declared::space::code;
use crate::program::{FileId, ProgramFile};

/// The packages of a program.
pub struct JavaPackages {
    of_files: Vec<Vec<String>>,
}

impl JavaPackages {
    /// Reads the package clauses.
    pub fn new(files: &[ProgramFile]) -> Self {
        let package = |file: &ProgramFile| {
            let parts = code(&file.facts).map_or(&[][..], |code| &code.package);
            parts.iter().map(|&part| file.facts.name(part).to_owned()).collect()
        };
        Self {
            of_files: files.iter().map(package).collect(),
        }
    }
}

impl Places for JavaPackages {
    fn package(&self, file: FileId) -> Vec<String> {
        self.of_files[file as usize].clone()
    }

    fn path(&self, file: FileId) -> Vec<String> {
        self.of_files[file as usize].clone()
    }

    fn leads(&self, _file: FileId, what: &str) -> Option<Leads> {
        let parts = what.trim_end_matches(".*").split('.').map(str::to_owned);
        Some(Leads::Place(parts.collect()))
    }

    fn included(&self, _file: FileId) -> Option<Arc<HashSet<FileId>>> {
        None
    }

    fn is_common(&self, name: &str) -> bool {
        COMMON.contains(&name)
    }
}

/// Members of the standard library that programs use most.
const COMMON: &[&str] = &[
    "equals",
    "hashCode",
    "toString",
    "compareTo",
    "compare",
    "clone",
    "getClass",
    "length",
    "size",
    "isEmpty",
    "get",
    "set",
    "put",
    "add",
    "remove",
    "contains",
    "containsKey",
    "clear",
    "iterator",
    "next",
    "hasNext",
    "stream",
    "map",
    "filter",
    "collect",
    "forEach",
    "of",
    "values",
    "keySet",
    "entrySet",
    "getKey",
    "getValue",
    "close",
    "read",
    "write",
    "flush",
    "run",
    "call",
    "apply",
    "accept",
    "test",
    "append",
    "substring",
    "indexOf",
    "split",
    "trim",
    "format",
    "valueOf",
    "name",
    "ordinal",
    "getName",
    "getMessage",
    "start",
    "stop",
    "join",
    "orElse",
    "isPresent",
    "println",
    "print",
    "printf",
];
