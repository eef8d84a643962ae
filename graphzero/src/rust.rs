//! Rust: facts from its grammar, crates and modules, name resolution and type inference as far as syntax tells.

pub mod code;
mod conditions;
mod infer;
mod lookup;
mod lower;
mod members;
mod modules;
mod nodes;
mod resolver;
mod syntax;
mod ty;

use std::sync::Arc;

use zero_contracts::{Error, WorkspacePath};

use crate::code::Code;
use crate::facts::FileFacts;
use crate::language::{Lang, Language};
use crate::parse::Parsing;
use crate::program::{ProgramFile, Resolver};

/// The Rust folder.
pub struct RustLanguage;

impl Language for RustLanguage {
    fn family(&self) -> &'static str {
        "rust"
    }

    fn claims(&self, path: &WorkspacePath) -> Option<Lang> {
        match (path.file_name()?, path.extension()) {
            (b"Cargo.toml", _) => Some(Lang::Manifest),
            (_, Some(b"rs")) => Some(Lang::Rust),
            _ => None,
        }
    }

    fn grammar(&self, lang: Lang) -> Option<tree_sitter::Language> {
        (lang == Lang::Rust).then(|| tree_sitter_rust::LANGUAGE.into())
    }

    fn facts(&self, lang: Lang, text: &str, parsing: &mut Parsing<'_>) -> Result<FileFacts, Error> {
        if lang == Lang::Manifest {
            let mut facts = FileFacts::empty(lang);
            facts.code = Code::Manifest(text.into());
            return Ok(facts);
        }
        lower::facts(text, parsing)
    }

    fn resolver(&self, files: Arc<[ProgramFile]>) -> Box<dyn Resolver> {
        Box::new(resolver::RustResolver::new(&files))
    }
}
