//! Go: facts from its grammar, packages by directory.

mod lower;
mod packages;

use std::sync::Arc;

use zero_contracts::{Error, WorkspacePath};

use crate::code::Code;
use crate::declared::resolver::DeclaredResolver;
use crate::facts::FileFacts;
use crate::language::{Lang, Language};
use crate::parse::Parsing;
use crate::program::{ProgramFile, Resolver};

/// The Go folder.
pub struct GoLanguage;

impl Language for GoLanguage {
    fn family(&self) -> &'static str {
        "go"
    }

    fn claims(&self, path: &WorkspacePath) -> Option<Lang> {
        match (path.file_name()?, path.extension()) {
            (b"go.mod", _) => Some(Lang::Manifest),
            (_, Some(b"go")) => Some(Lang::Go),
            _ => None,
        }
    }

    fn grammar(&self, lang: Lang) -> Option<tree_sitter::Language> {
        (lang == Lang::Go).then(|| tree_sitter_go::LANGUAGE.into())
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
        let packages = packages::GoPackages::new(&files);
        Box::new(DeclaredResolver::new(files, packages))
    }
}
