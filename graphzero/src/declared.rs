//! What languages whose declarations carry types have in common: Go, Java, C and C++.
//!
//! Every name has one qualified place (package or namespace, type, member), which may hold several definitions: overloads,
//! a prototype and its body, methods written outside their type. [`space`] is the tree of those places over all files;
//! [`resolver`] looks names up in it, through scopes, imports and the written types of values (`types`). A language
//! of this family walks its syntax tree with a [`build::Builder`] and says through [`resolver::Places`] which package a file
//! belongs to and where an import leads.

pub mod build;
pub mod code;
pub mod resolver;
pub mod space;
mod types;
