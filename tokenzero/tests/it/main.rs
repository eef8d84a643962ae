//! The crate's promises, held against the reference tokenizer and against simple models.

// The helpers of tests are tests, too: a value that is not there fails the test.
#![allow(clippy::unwrap_used)]

mod equality;
mod expansion;
mod fixtures;
mod projection;
mod rebuild;
mod values;

/// Number of cases of a random test: a quarter where nothing is optimised; `TOKENZERO_CASES` multiplies it.
fn cases(default: u32) -> u32 {
    let cases = if cfg!(debug_assertions) { default / 4 } else { default };
    std::env::var("TOKENZERO_CASES").map_or(cases, |times| cases * times.parse::<u32>().unwrap())
}
