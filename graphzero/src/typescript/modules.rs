//! ES modules: which import specifier is which file.

use std::collections::HashMap;

use crate::code::Code;
use crate::objects::resolver::{Builtin, Modules};
use crate::program::{FileId, ProgramFile};

/// The modules of a program.
pub struct EsModules {
    paths: Vec<String>,
    by_path: HashMap<String, FileId>,
    /// Directories of packages of this tree by their names.
    packages: HashMap<String, String>,
}

const EXTENSIONS: &[&str] = &["ts", "tsx", "d.ts", "mts", "cts", "js", "jsx", "mjs", "cjs"];

impl EsModules {
    /// Reads the paths and the manifests.
    pub fn new(files: &[ProgramFile]) -> Self {
        let paths: Vec<String> = files.iter().map(|file| file.path.to_string()).collect();
        let by_path = paths
            .iter()
            .enumerate()
            .map(|(id, path)| (path.clone(), id as FileId))
            .collect();
        let mut packages = HashMap::new();
        for (file, path) in files.iter().zip(&paths) {
            let Code::Manifest(text) = &file.facts.code else {
                continue;
            };
            let Ok(manifest) = serde_json::from_str::<serde_json::Value>(text) else {
                continue;
            };
            if let Some(name) = manifest.get("name").and_then(|name| name.as_str()) {
                let directory = path
                    .strip_suffix("package.json")
                    .unwrap_or_default()
                    .trim_end_matches('/');
                packages.insert(name.to_owned(), directory.to_owned());
            }
        }
        Self {
            paths,
            by_path,
            packages,
        }
    }

    fn file(&self, path: &str) -> Option<FileId> {
        let get = |path: &str| self.by_path.get(path).copied();
        if let Some(found) = get(path) {
            return Some(found);
        }
        // `./a.js` is written where `a.ts` is meant.
        let stem = ["js", "jsx", "mjs", "cjs"]
            .iter()
            .find_map(|ext| path.strip_suffix(ext)?.strip_suffix('.'));
        for base in [Some(path), stem].into_iter().flatten() {
            for extension in EXTENSIONS {
                let found = get(&format!("{base}.{extension}")).or_else(|| {
                    let index = if base.is_empty() {
                        "index".to_owned()
                    } else {
                        format!("{base}/index")
                    };
                    get(&format!("{index}.{extension}"))
                });
                if found.is_some() {
                    return found;
                }
            }
        }
        None
    }
}

impl Modules for EsModules {
    fn module(&self, from: FileId, module: &str) -> Option<FileId> {
        if module.starts_with('.') {
            let directory = self.paths[from as usize]
                .rsplit_once('/')
                .map_or("", |(directory, _)| directory);
            let mut parts: Vec<&str> = directory.split('/').filter(|part| !part.is_empty()).collect();
            for part in module.split('/') {
                match part {
                    "" | "." => {}
                    ".." => {
                        parts.pop()?;
                    }
                    name => parts.push(name),
                }
            }
            return self.file(&parts.join("/"));
        }
        let (name, directory) = self
            .packages
            .iter()
            .filter(|(name, _)| {
                module == name.as_str() || module.strip_prefix(name.as_str()).is_some_and(|r| r.starts_with('/'))
            })
            .max_by_key(|(name, _)| name.len())?;
        let rest = module[name.len()..].trim_start_matches('/');
        let join = |part: &str| {
            [directory.as_str(), part, rest]
                .iter()
                .filter(|p| !p.is_empty())
                .copied()
                .collect::<Vec<_>>()
                .join("/")
        };
        self.file(&join("src")).or_else(|| self.file(&join("")))
    }

    fn submodule(&self, _of: FileId, _name: &str) -> Option<FileId> {
        None
    }

    fn path(&self, file: FileId) -> Vec<String> {
        let path = &self.paths[file as usize];
        let stem = path.rsplit_once('.').map_or(path.as_str(), |(stem, _)| stem);
        let stem = stem.strip_suffix("/index").unwrap_or(stem);
        vec![stem.rsplit('/').next().unwrap_or_default().to_owned()]
    }

    fn builtin(&self, name: &str) -> Option<Builtin> {
        Some(match name {
            "push" | "unshift" | "add" | "fill" => Builtin::Takes,
            "pop" | "shift" | "at" | "get" => Builtin::Gives,
            "slice" | "splice" | "concat" | "reverse" | "values" | "toSorted" | "flat" => Builtin::Same,
            "filter" | "forEach" => Builtin::Filter(1),
            "sort" => Builtin::Filter(2),
            "find" | "findLast" | "some" | "every" | "findIndex" | "findLastIndex" => Builtin::Find,
            "map" | "flatMap" => Builtin::Map,
            "reduce" | "reduceRight" => Builtin::Reduce,
            "then" => Builtin::Then,
            _ => return None,
        })
    }

    fn is_common(&self, name: &str) -> bool {
        COMMON.contains(&name)
    }
}

/// Members of the language's own objects that programs use most.
const COMMON: &[&str] = &[
    "length",
    "push",
    "pop",
    "shift",
    "unshift",
    "slice",
    "splice",
    "concat",
    "join",
    "map",
    "filter",
    "reduce",
    "forEach",
    "find",
    "findIndex",
    "some",
    "every",
    "includes",
    "indexOf",
    "lastIndexOf",
    "sort",
    "reverse",
    "flat",
    "flatMap",
    "keys",
    "values",
    "entries",
    "get",
    "set",
    "has",
    "delete",
    "add",
    "clear",
    "size",
    "then",
    "catch",
    "finally",
    "toString",
    "valueOf",
    "hasOwnProperty",
    "call",
    "apply",
    "bind",
    "name",
    "message",
    "stack",
    "test",
    "exec",
    "match",
    "replace",
    "split",
    "trim",
    "startsWith",
    "endsWith",
    "charAt",
    "charCodeAt",
    "substring",
    "substr",
    "toLowerCase",
    "toUpperCase",
    "padStart",
    "padEnd",
    "repeat",
    "next",
    "value",
    "done",
    "return",
    "throw",
    "prototype",
    "constructor",
    "log",
    "error",
    "warn",
    "info",
    "assign",
    "freeze",
    "create",
    "defineProperty",
    "getPrototypeOf",
    "isArray",
    "from",
    "of",
    "stringify",
    "parse",
    "now",
    "getTime",
    "toISOString",
    "resolve",
    "reject",
    "all",
    "race",
    "addEventListener",
    "on",
    "emit",
    "once",
    "off",
    "at",
    "fill",
    "input",
    "type",
    "data",
    "code",
    "path",
    "key",
];
