//! The part of a file's facts that only its language's resolver reads.

use serde::{Deserialize, Serialize};

/// What a language's resolver needs beyond definitions and uses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Code {
    /// Nothing.
    None,
    /// A manifest such as `Cargo.toml`, as it is.
    Manifest(Box<str>),
    /// Scopes, expressions and types of Rust.
    #[cfg(feature = "rust")]
    Rust(Box<crate::rust::code::RustCode>),
    /// Scopes, values and imports of a language with classes and modules.
    Objects(Box<crate::objects::code::ObjectCode>),
    /// Scopes, written types and imports of a language whose declarations carry types.
    Declared(Box<crate::declared::code::DeclaredCode>),
}
