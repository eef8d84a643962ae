//! What languages with classes, modules and dynamic members have in common: scopes, values and their resolution.
//!
//! A language of this family walks its tree with a [`build::Builder`] and says how an import finds its file; the rest is
//! here.

pub mod build;
pub mod code;
pub mod infer;
pub mod resolver;
pub mod ty;
