//! One suite for each trait at a border.

pub mod files;
pub mod objects;
pub mod source;
pub mod structure;
pub mod tokens;
