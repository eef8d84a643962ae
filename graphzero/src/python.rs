//! Python: facts from its grammar, packages and modules.

mod lower;
mod modules;

use std::sync::Arc;

use zero_contracts::{Error, WorkspacePath};

use crate::facts::FileFacts;
use crate::language::{Lang, Language};
use crate::objects::resolver::ObjectResolver;
use crate::parse::Parsing;
use crate::program::{ProgramFile, Resolver};

/// The Python folder.
pub struct PythonLanguage;

impl Language for PythonLanguage {
    fn family(&self) -> &'static str {
        "python"
    }

    fn claims(&self, path: &WorkspacePath) -> Option<Lang> {
        matches!(path.extension()?, b"py" | b"pyi").then_some(Lang::Python)
    }

    fn grammar(&self, lang: Lang) -> Option<tree_sitter::Language> {
        (lang == Lang::Python).then(|| tree_sitter_python::LANGUAGE.into())
    }

    fn facts(&self, _lang: Lang, text: &str, parsing: &mut Parsing<'_>) -> Result<FileFacts, Error> {
        lower::facts(text, parsing)
    }

    fn resolver(&self, files: Arc<[ProgramFile]>) -> Box<dyn Resolver> {
        let modules = modules::PythonModules::new(&files);
        Box::new(ObjectResolver::new(files, modules))
    }
}
