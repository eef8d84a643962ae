//! TypeScript, TSX and JavaScript: facts from their grammars, ES modules.

mod lower;
mod modules;
mod types;

use std::sync::Arc;

use zero_contracts::{Error, WorkspacePath};

use crate::code::Code;
use crate::facts::FileFacts;
use crate::language::{Lang, Language};
use crate::objects::resolver::ObjectResolver;
use crate::parse::Parsing;
use crate::program::{ProgramFile, Resolver};

/// The folder of TypeScript and JavaScript: they import one another.
pub struct TypeScriptLanguage;

impl Language for TypeScriptLanguage {
    fn family(&self) -> &'static str {
        "typescript"
    }

    fn claims(&self, path: &WorkspacePath) -> Option<Lang> {
        if path.file_name() == Some(b"package.json") {
            return Some(Lang::Manifest);
        }
        match path.extension()? {
            b"ts" | b"mts" | b"cts" => Some(Lang::TypeScript),
            b"tsx" => Some(Lang::Tsx),
            b"js" | b"jsx" | b"mjs" | b"cjs" => Some(Lang::JavaScript),
            _ => None,
        }
    }

    fn grammar(&self, lang: Lang) -> Option<tree_sitter::Language> {
        match lang {
            Lang::TypeScript => Some(tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into()),
            Lang::Tsx => Some(tree_sitter_typescript::LANGUAGE_TSX.into()),
            Lang::JavaScript => Some(tree_sitter_javascript::LANGUAGE.into()),
            _ => None,
        }
    }

    fn facts(&self, lang: Lang, text: &str, parsing: &mut Parsing<'_>) -> Result<FileFacts, Error> {
        if lang == Lang::Manifest {
            let mut facts = FileFacts::empty(lang);
            facts.code = Code::Manifest(text.into());
            return Ok(facts);
        }
        lower::facts(lang, text, parsing)
    }

    fn resolver(&self, files: Arc<[ProgramFile]>) -> Box<dyn Resolver> {
        let modules = modules::EsModules::new(&files);
        Box::new(ObjectResolver::new(files, modules))
    }
}
