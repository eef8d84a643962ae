//! The crate's promises, held against the reference tokenizer and against simple models.

mod equality;
mod expansion;
mod projection;
mod rebuild;
mod values;
