#![doc = include_str!("../README.md")]

pub mod seam;

mod capture;
mod collect;
mod config;
mod engine;
mod entry;
mod frame;
mod journal;
mod node;
mod order;
mod overlay;
mod parked;
mod private;
mod publish;
mod record;
mod recover;
mod restore;
mod retained;
mod revert;
mod round;
mod rules;
mod snapshot;
mod stage;
mod statcache;
mod store;
mod text;
mod transaction;
mod tree;
mod view;
mod walk;
mod widen;

pub use config::FsConfig;
pub use engine::FsZero;
