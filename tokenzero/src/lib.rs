#![doc = include_str!("../README.md")]

pub mod account;
pub mod counter;
pub mod encoding;
pub mod engine;
mod excerpt;
mod expand;
mod json;
mod kinds;
mod mark;
mod measure;
pub mod memory;
mod merge;
mod notable;
mod retained;
mod scan;
mod select;
mod split;
mod text;
mod unicode;
mod vocabulary;

pub use account::Account;
pub use counter::Counter;
pub use encoding::Encoding;
pub use engine::{TokenConfig, TokenZero};
pub use memory::MemoryStore;
