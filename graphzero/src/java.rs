//! Java: facts from its grammar, packages by their clauses.

mod lower;
mod packages;
mod statements;

use std::sync::Arc;

use zero_contracts::{Error, WorkspacePath};

use crate::declared::resolver::DeclaredResolver;
use crate::facts::FileFacts;
use crate::language::{Lang, Language};
use crate::parse::Parsing;
use crate::program::{ProgramFile, Resolver};

/// The Java folder.
pub struct JavaLanguage;

impl Language for JavaLanguage {
    fn family(&self) -> &'static str {
        "java"
    }

    fn claims(&self, path: &WorkspacePath) -> Option<Lang> {
        (path.extension()? == b"java").then_some(Lang::Java)
    }

    fn grammar(&self, lang: Lang) -> Option<tree_sitter::Language> {
        (lang == Lang::Java).then(|| tree_sitter_java::LANGUAGE.into())
    }

    fn facts(&self, _lang: Lang, text: &str, parsing: &mut Parsing<'_>) -> Result<FileFacts, Error> {
        lower::facts(text, parsing)
    }

    fn resolver(&self, files: Arc<[ProgramFile]>) -> Box<dyn Resolver> {
        let packages = packages::JavaPackages::new(&files);
        Box::new(DeclaredResolver::new(files, packages))
    }
}
