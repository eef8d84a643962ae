//! The languages of this build, and what each has to supply.
//!
//! A language is one folder: a grammar crate, the walk from its tree to facts, and a resolver. This module is the only
//! list of them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use zero_contracts::{Error, WorkspacePath};

use crate::facts::FileFacts;
use crate::parse::Parsing;
use crate::program::{ProgramFile, Resolver};

macro_rules! languages {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
        /// The language of a file.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum Lang { $($(#[$doc])* $name,)* }

        impl Lang {
            /// Every language that has a name, known to this build or not.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Returns the lowercase name used in requests.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

languages! {
    /// Rust.
    Rust = "rust";
    /// TypeScript.
    TypeScript = "typescript";
    /// TypeScript with JSX.
    Tsx = "tsx";
    /// JavaScript, with JSX.
    JavaScript = "javascript";
    /// Python.
    Python = "python";
    /// Go.
    Go = "go";
    /// Java.
    Java = "java";
    /// C.
    C = "c";
    /// C++.
    Cpp = "cpp";
    /// A manifest that a resolver reads: no symbols of its own.
    Manifest = "manifest";
    /// No grammar.
    Unknown = "unknown";
}

/// What a language supplies.
pub trait Language: Send + Sync {
    /// The name of its folder.
    fn family(&self) -> &'static str;

    /// Returns the language of a file by its name, or none if it belongs to another folder. Manifests that the resolver
    /// reads are [`Lang::Manifest`].
    fn claims(&self, path: &WorkspacePath) -> Option<Lang>;

    /// Returns the grammar; none for a manifest.
    fn grammar(&self, lang: Lang) -> Option<tree_sitter::Language>;

    /// Computes the facts of one content.
    ///
    /// # Errors
    /// `cancelled` and `deadline` from the token of `parsing`.
    fn facts(&self, lang: Lang, text: &str, parsing: &mut Parsing<'_>) -> Result<FileFacts, Error>;

    /// Makes the resolver over all files of a tree that this folder claims, ordered by path.
    fn resolver(&self, files: Arc<[ProgramFile]>) -> Box<dyn Resolver>;
}

/// Returns the languages of this build.
pub fn languages() -> &'static [&'static dyn Language] {
    &[
        #[cfg(feature = "rust")]
        &crate::rust::RustLanguage,
        #[cfg(feature = "typescript")]
        &crate::typescript::TypeScriptLanguage,
        #[cfg(feature = "python")]
        &crate::python::PythonLanguage,
        #[cfg(feature = "go")]
        &crate::go::GoLanguage,
        #[cfg(feature = "java")]
        &crate::java::JavaLanguage,
        #[cfg(feature = "c")]
        &crate::c::CLanguage,
    ]
}

/// Returns the folder and the language of a file; none if no grammar of this build knows it.
pub fn of_path(path: &WorkspacePath) -> Option<(&'static dyn Language, Lang)> {
    languages()
        .iter()
        .find_map(|&language| language.claims(path).map(|lang| (language, lang)))
}

/// Returns the language with a name, if it is in this build.
///
/// # Errors
/// `invalid_input` with the accepted names.
pub fn by_name(name: &str) -> Result<Lang, Error> {
    let known: Vec<Lang> = Lang::ALL
        .iter()
        .copied()
        .filter(|&lang| {
            languages()
                .iter()
                .any(|l| lang != Lang::Manifest && l.grammar(lang).is_some())
        })
        .collect();
    known.iter().copied().find(|lang| lang.as_str() == name).ok_or_else(|| {
        Error::invalid(format!("this build has no language `{name}`"))
            .with_path("options.language")
            .with_accepted(known.iter().map(|lang| lang.as_str()))
    })
}
