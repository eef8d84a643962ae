//! C and C++: facts from their grammars, files joined by includes.
//!
//! One folder, because they include one another's headers. A header is read as C++ if it looks like it.

mod declarations;
mod declarator;
mod expressions;
mod includes;
mod lower;
mod types;

use std::sync::Arc;

use zero_contracts::{Error, WorkspacePath};

use crate::declared::resolver::DeclaredResolver;
use crate::facts::FileFacts;
use crate::language::{Lang, Language};
use crate::parse::Parsing;
use crate::program::{ProgramFile, Resolver};

/// The folder of C and C++.
pub struct CLanguage;

impl Language for CLanguage {
    fn family(&self) -> &'static str {
        "c"
    }

    fn claims(&self, path: &WorkspacePath) -> Option<Lang> {
        match path.extension()? {
            b"c" | b"h" => Some(Lang::C),
            b"cc" | b"cpp" | b"cxx" | b"hh" | b"hpp" | b"hxx" | b"ipp" | b"inl" if cfg!(feature = "cpp") => {
                Some(Lang::Cpp)
            }
            _ => None,
        }
    }

    fn grammar(&self, lang: Lang) -> Option<tree_sitter::Language> {
        match lang {
            Lang::C => Some(tree_sitter_c::LANGUAGE.into()),
            #[cfg(feature = "cpp")]
            Lang::Cpp => Some(tree_sitter_cpp::LANGUAGE.into()),
            _ => None,
        }
    }

    fn facts(&self, lang: Lang, text: &str, parsing: &mut Parsing<'_>) -> Result<FileFacts, Error> {
        let lang = if lang == Lang::C && cfg!(feature = "cpp") && lower::looks_like_cpp(text) {
            Lang::Cpp
        } else {
            lang
        };
        lower::facts(lang, text, parsing)
    }

    fn resolver(&self, files: Arc<[ProgramFile]>) -> Box<dyn Resolver> {
        let includes = includes::Includes::new(&files);
        Box::new(DeclaredResolver::new(files, includes))
    }
}
