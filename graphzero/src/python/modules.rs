//! Packages: which dotted name is which file.

use std::collections::{BTreeSet, HashMap};

use crate::objects::resolver::Modules;
use crate::program::{FileId, ProgramFile};

/// The modules of a program.
pub struct PythonModules {
    /// Dotted paths of files, from the top package down.
    names: Vec<Vec<String>>,
    by_name: HashMap<String, FileId>,
    packages: Vec<bool>,
}

impl PythonModules {
    /// Names the files: a directory with an `__init__.py` is a package, and the top package's name begins the path.
    pub fn new(files: &[ProgramFile]) -> Self {
        let paths: Vec<String> = files.iter().map(|file| file.path.to_string()).collect();
        let packages: BTreeSet<&str> = paths
            .iter()
            .filter_map(|path| {
                path.strip_suffix("/__init__.py")
                    .or_else(|| path.strip_suffix("/__init__.pyi"))
            })
            .collect();
        let (mut names, mut by_name, mut is_package) = (Vec::new(), HashMap::new(), Vec::new());
        for (id, path) in paths.iter().enumerate() {
            let stem = path
                .strip_suffix(".pyi")
                .or_else(|| path.strip_suffix(".py"))
                .unwrap_or(path);
            let (mut directory, last) = stem.rsplit_once('/').unwrap_or(("", stem));
            let package = last == "__init__";
            let mut parts = if package { Vec::new() } else { vec![last.to_owned()] };
            while packages.contains(directory) {
                let (above, name) = directory.rsplit_once('/').unwrap_or(("", directory));
                parts.push(name.to_owned());
                directory = above;
            }
            parts.reverse();
            by_name.entry(parts.join(".")).or_insert(id as FileId);
            // A tree without packages, or one that is itself the search path.
            by_name
                .entry(stem.trim_end_matches("/__init__").replace('/', "."))
                .or_insert(id as FileId);
            names.push(parts);
            is_package.push(package);
        }
        Self {
            names,
            by_name,
            packages: is_package,
        }
    }
}

impl Modules for PythonModules {
    fn module(&self, from: FileId, module: &str) -> Option<FileId> {
        let level = module.bytes().take_while(|&b| b == b'.').count();
        if level == 0 {
            return self.by_name.get(module).copied();
        }
        let mut parts = self.names[from as usize].clone();
        let up = if self.packages[from as usize] { level - 1 } else { level };
        parts.truncate(parts.len().checked_sub(up)?);
        parts.extend(module[level..].split('.').filter(|p| !p.is_empty()).map(str::to_owned));
        self.by_name.get(&parts.join(".")).copied()
    }

    fn submodule(&self, of: FileId, name: &str) -> Option<FileId> {
        let mut parts = self.names[of as usize].clone();
        parts.push(name.to_owned());
        self.by_name.get(&parts.join(".")).copied()
    }

    fn path(&self, file: FileId) -> Vec<String> {
        self.names[file as usize].clone()
    }

    fn is_common(&self, name: &str) -> bool {
        COMMON.contains(&name) || (name.starts_with("__") && name.ends_with("__"))
    }
}

/// Methods of built-in types and of the standard library that programs call most.
const COMMON: &[&str] = &[
    "append",
    "extend",
    "insert",
    "remove",
    "pop",
    "clear",
    "index",
    "count",
    "sort",
    "reverse",
    "copy",
    "get",
    "items",
    "keys",
    "values",
    "update",
    "setdefault",
    "add",
    "discard",
    "union",
    "join",
    "split",
    "rsplit",
    "strip",
    "lstrip",
    "rstrip",
    "replace",
    "format",
    "encode",
    "decode",
    "startswith",
    "endswith",
    "lower",
    "upper",
    "title",
    "find",
    "rfind",
    "read",
    "readline",
    "readlines",
    "write",
    "writelines",
    "close",
    "flush",
    "seek",
    "tell",
    "open",
    "name",
    "match",
    "search",
    "group",
    "groups",
    "sub",
    "fileno",
    "isatty",
    "next",
    "send",
    "throw",
    "start",
    "stop",
    "run",
    "wait",
    "put",
    "done",
    "result",
    "cancel",
    "args",
    "kwargs",
    "value",
    "type",
    "mode",
    "buffer",
    "encoding",
    "errors",
    "newlines",
    "isdigit",
    "isalpha",
    "isidentifier",
    "partition",
    "splitlines",
    "zfill",
    "ljust",
    "center",
    "expandtabs",
    "hexdigest",
    "digest",
    "total_seconds",
    "year",
    "month",
    "day",
    "status",
    "reason",
    "headers",
    "url",
    "method",
];
