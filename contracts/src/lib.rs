//! What the ZeroStack engines, the hub and its hosts say to one another.
//!
//! This crate owns plain data and the traits at the borders: no I/O, no async, no JavaScript. It may depend on no other
//! crate of the workspace, and every other crate of the workspace depends on it.
//!
//! * Values: [`WorkspacePath`], [`Digest`], [`Handle`], the ranges, [`Error`], [`CancelToken`].
//! * Messages: the requests and results of the six operations ([`read`], [`find`], [`edit`], [`apply`], [`run`],
//!   [`state`]), the terminal [`ZeroKernelResponse`], the [`ZeroKernelEvent`] and the [`ResourceLedger`].
//! * Borders: [`ObjectStore`], [`SourceView`], [`FileEngine`] with its [`Transaction`], [`StructureEngine`],
//!   [`TokenEngine`].
//!
//! Every message has two forms. The JSON form (camelCase) is what cells and hosts see. The compact form is postcard
//! behind a version header ([`wire`]). Requests reject fields they do not know and list those they do; responses and
//! events tolerate them, so that old readers live on.
//!
//! ```
//! use zero_contracts::{Digest, Handle, WorkspacePath};
//!
//! let path: WorkspacePath = "src/lib.rs".parse()?;
//! let handle = Handle::blob(Digest::of(b"fn main() {}"));
//! assert_eq!(path.to_string(), "src/lib.rs");
//! assert_eq!(handle.to_string().parse::<Handle>()?, handle);
//! # Ok::<(), zero_contracts::Error>(())
//! ```

pub mod apply;
pub mod budget;
pub mod cancel;
pub mod content;
pub mod contract;
pub mod digest;
pub mod edit;
pub mod effect;
pub mod error;
pub mod event;
pub mod files;
pub mod find;
pub mod handle;
pub mod id;
pub mod json;
pub mod ledger;
pub mod objects;
pub mod operation;
pub mod path;
pub mod plan;
pub mod range;
pub mod read;
pub mod response;
pub mod run;
pub mod schema;
pub mod source;
pub mod state;
pub mod structure;
pub mod tokens;
pub mod undo;
pub mod wire;

#[cfg(test)]
mod round_trip;
#[cfg(test)]
mod shape;

pub use budget::Budgets;
pub use cancel::CancelToken;
pub use content::Content;
pub use contract::{CONTRACT_VERSION, contract_digest};
pub use digest::{Digest, Hasher};
pub use effect::{EffectIntent, EffectRecord, EffectState};
pub use error::{Error, ErrorKind, Result};
pub use event::ZeroKernelEvent;
pub use files::{FileEngine, Transaction};
pub use handle::{Handle, HandleKind};
pub use id::{CellId, Epoch, SessionName};
pub use json::JsonValue;
pub use ledger::ResourceLedger;
pub use objects::ObjectStore;
pub use operation::Operation;
pub use path::WorkspacePath;
pub use plan::Plan;
pub use range::{ByteRange, LineRange, Location, Position, TextRange};
pub use response::ZeroKernelResponse;
pub use source::SourceView;
pub use structure::StructureEngine;
pub use tokens::TokenEngine;
pub use undo::{UndoOptions, UndoReport};
