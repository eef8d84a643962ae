//! Which file an `#include` means, and what a file includes through others.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use crate::declared::resolver::{Leads, Places};
use crate::declared::space::code;
use crate::program::{FileId, ProgramFile};

/// The includes of a program.
pub struct Includes {
    paths: Vec<String>,
    by_name: HashMap<String, Vec<FileId>>,
    /// What each file includes itself.
    direct: Vec<Vec<FileId>>,
    closures: Vec<OnceLock<Arc<HashSet<FileId>>>>,
}

impl Includes {
    /// Reads the paths and the includes.
    pub fn new(files: &[ProgramFile]) -> Self {
        let paths: Vec<String> = files.iter().map(|file| file.path.to_string()).collect();
        let mut by_name: HashMap<String, Vec<FileId>> = HashMap::new();
        for (id, path) in paths.iter().enumerate() {
            let name = path.rsplit('/').next().unwrap_or_default();
            by_name.entry(name.to_owned()).or_default().push(id as FileId);
        }
        let mut includes = Self {
            paths,
            by_name,
            direct: Vec::new(),
            closures: files.iter().map(|_| OnceLock::new()).collect(),
        };
        includes.direct = files
            .iter()
            .enumerate()
            .map(|(id, file)| {
                let imports = code(&file.facts).map_or(&[][..], |code| &code.imports);
                let what = imports.iter().map(|import| file.facts.name(import.what));
                what.filter_map(|what| includes.file(id as FileId, what)).collect()
            })
            .collect();
        includes
    }

    /// Finds an included file: beside the one that includes it, else the nearest whose path ends that way.
    fn file(&self, from: FileId, what: &str) -> Option<FileId> {
        let what = what.trim_matches(['"', '<', '>']);
        let name = what.rsplit('/').next()?;
        let candidates = self.by_name.get(name)?;
        let directory = self.paths[from as usize]
            .rsplit_once('/')
            .map_or("", |(directory, _)| directory);
        let beside = join(directory, what);
        let path = |id: &FileId| self.paths[*id as usize].as_str();
        if let Some(found) = candidates.iter().find(|id| path(id) == beside) {
            return Some(*found);
        }
        let plain = join("", what);
        let ends = |id: &&FileId| path(id) == plain || path(id).ends_with(&format!("/{plain}"));
        let shared = |id: &FileId| {
            let own = self.paths[from as usize].split('/');
            path(id).split('/').zip(own).take_while(|(a, b)| a == b).count()
        };
        let best = candidates
            .iter()
            .filter(ends)
            .max_by_key(|id| (shared(id), std::cmp::Reverse(**id)));
        best.copied()
    }
}

/// Joins a directory and a relative path; `..` goes up.
fn join(directory: &str, path: &str) -> String {
    let mut parts: Vec<&str> = directory.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    parts.join("/")
}

impl Places for Includes {
    fn package(&self, _file: FileId) -> Vec<String> {
        Vec::new()
    }

    fn path(&self, _file: FileId) -> Vec<String> {
        Vec::new()
    }

    fn leads(&self, file: FileId, what: &str) -> Option<Leads> {
        Some(Leads::Files(vec![self.file(file, what)?]))
    }

    fn included(&self, file: FileId) -> Option<Arc<HashSet<FileId>>> {
        let closure = self.closures[file as usize].get_or_init(|| {
            let (mut found, mut next) = (HashSet::new(), self.direct[file as usize].clone());
            while let Some(other) = next.pop() {
                if found.insert(other) {
                    next.extend(&self.direct[other as usize]);
                }
            }
            Arc::new(found)
        });
        Some(Arc::clone(closure))
    }

    fn is_common(&self, name: &str) -> bool {
        COMMON.contains(&name)
    }
}

/// Members of the standard library that programs use most.
const COMMON: &[&str] = &[
    "size",
    "length",
    "empty",
    "begin",
    "end",
    "cbegin",
    "cend",
    "rbegin",
    "rend",
    "front",
    "back",
    "at",
    "data",
    "insert",
    "erase",
    "clear",
    "push_back",
    "emplace_back",
    "emplace",
    "pop_back",
    "push",
    "pop",
    "top",
    "find",
    "count",
    "reserve",
    "resize",
    "get",
    "reset",
    "release",
    "swap",
    "first",
    "second",
    "str",
    "c_str",
    "substr",
    "append",
    "what",
    "lock",
    "unlock",
    "wait",
    "notify_one",
    "notify_all",
    "join",
    "load",
    "store",
    "value",
    "has_value",
    "name",
    "open",
    "close",
    "read",
    "write",
    "flush",
];
