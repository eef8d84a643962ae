//! Go packages: a directory is one, its path below the module's is its import path.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::code::Code;
use crate::declared::resolver::{Leads, Places};
use crate::declared::space::code;
use crate::program::{FileId, ProgramFile};

/// The packages of a program.
pub struct GoPackages {
    /// Directory and name of each file's package.
    of_files: Vec<(String, String)>,
    /// Name of the package that a directory gives to importers.
    by_directory: HashMap<String, String>,
    /// Modules: import path and directory, longest path first.
    modules: Vec<(String, String)>,
}

impl GoPackages {
    /// Reads package clauses and `go.mod`.
    pub fn new(files: &[ProgramFile]) -> Self {
        let (mut of_files, mut modules) = (Vec::new(), Vec::new());
        let mut by_directory: HashMap<String, String> = HashMap::new();
        for file in files {
            let path = file.path.to_string();
            let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory).to_owned();
            if let Code::Manifest(text) = &file.facts.code {
                let module = text.lines().find_map(|line| line.trim().strip_prefix("module "));
                if let Some(module) = module {
                    modules.push((module.trim().trim_matches('"').to_owned(), directory.clone()));
                }
            }
            let package = code(&file.facts).and_then(|code| code.package.first());
            let name = package.map_or("", |&name| file.facts.name(name)).to_owned();
            if !name.is_empty() && !name.ends_with("_test") && !path.ends_with("_test.go") {
                by_directory.insert(directory.clone(), name.clone());
            }
            of_files.push((directory, name));
        }
        modules.sort_by_key(|(path, _)| std::cmp::Reverse(path.len()));
        Self {
            of_files,
            by_directory,
            modules,
        }
    }
}

fn place(directory: &str, name: &str) -> Vec<String> {
    vec![format!("{directory} {name}")]
}

impl Places for GoPackages {
    fn package(&self, file: FileId) -> Vec<String> {
        let (directory, name) = &self.of_files[file as usize];
        place(directory, name)
    }

    fn path(&self, file: FileId) -> Vec<String> {
        let name = &self.of_files[file as usize].1;
        if name.is_empty() {
            Vec::new()
        } else {
            vec![name.clone()]
        }
    }

    fn leads(&self, _file: FileId, what: &str) -> Option<Leads> {
        let lead = |directory: &str| {
            let name = self.by_directory.get(directory)?;
            Some(Leads::Place(place(directory, name)))
        };
        for (module, directory) in &self.modules {
            let Some(rest) = what.strip_prefix(module.as_str()) else {
                continue;
            };
            if rest.is_empty() || rest.starts_with('/') {
                let below = format!("{directory}{rest}");
                return lead(below.trim_start_matches('/'));
            }
        }
        if !self.modules.is_empty() {
            return None;
        }
        // Without `go.mod` the longest tail of the import path that is a directory, as under GOPATH.
        let starts = std::iter::once(0).chain(what.match_indices('/').map(|(at, _)| at + 1));
        starts.map(|at| &what[at..]).find_map(lead)
    }

    fn included(&self, _file: FileId) -> Option<Arc<HashSet<FileId>>> {
        None
    }

    fn is_common(&self, name: &str) -> bool {
        COMMON.contains(&name)
    }
}

/// Methods of the standard library's interfaces that programs use most.
const COMMON: &[&str] = &[
    "Error", "String", "Read", "Write", "Close", "Len", "Less", "Swap", "Lock", "Unlock", "RLock", "RUnlock", "Add",
    "Done", "Wait", "Get", "Set", "Put", "Load", "Store", "Err", "Next", "Scan", "Name", "Type", "Kind", "Value",
    "Bytes", "Seek", "Flush", "Reset", "Run", "Fatal", "Fatalf", "Errorf", "Helper", "Cleanup",
];
