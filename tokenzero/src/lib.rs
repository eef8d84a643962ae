#![doc = include_str!("../README.md")]

pub mod counter;
pub mod encoding;
mod merge;
mod split;
mod unicode;
mod vocabulary;

pub use counter::Counter;
pub use encoding::Encoding;
