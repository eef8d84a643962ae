//! The language inside a frame, in the spirit of the language's own conformance suite: one table an area, one line a case.
//! A case is a cell's body, and what it must return.

mod asynchronous;
mod classes;
mod data;
mod functions;
mod grammar;
mod iteration;
mod objects;

use std::sync::Arc;

use zero_contracts::CancelToken;
use zerostack::frame::run;

use crate::frame_support::{Echo, spec};

/// Runs every case of a table and tells all that went wrong.
fn table(cases: &[(&str, &str)]) {
    let wrong: Vec<String> = cases
        .iter()
        .filter_map(|(source, wanted)| {
            let outcome = run(spec(source), Arc::new(Echo::default()), &CancelToken::new());
            let given = match outcome.settled {
                Ok(value) => value.unwrap_or_else(|| "undefined".into()),
                Err(error) => error.to_string(),
            };
            (given != *wanted).then(|| format!("{source}\n  gave   {given}\n  wanted {wanted}"))
        })
        .collect();
    assert!(
        wrong.is_empty(),
        "{} of {} cases:\n{}",
        wrong.len(),
        cases.len(),
        wrong.join("\n")
    );
}

/// Asserts that each body is refused before anything of it runs.
fn refused(sources: &[&str]) {
    for source in sources {
        let handler = Echo::default();
        let outcome = run(
            spec(&format!("z.read('ran');\n{source}")),
            Arc::new(handler.clone()),
            &CancelToken::new(),
        );
        let error = outcome.settled.expect_err(source);
        assert_eq!(error.kind, zero_contracts::ErrorKind::Syntax, "{source}: {error:?}");
        assert!(handler.0.lock().unwrap().is_empty(), "{source} ran");
    }
}
