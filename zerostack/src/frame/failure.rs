//! How failures of a cell become errors of the contract.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use deno_core::v8;
use zero_contracts::{Error, ErrorKind};

use super::convert::text_at;
use super::isolate::internal;
use super::limits::{Shared, Trip};
use super::place;
use super::surface::{Surface, call};
use crate::syntax::is_after;

/// Told where the parser got past the end of the cell. It begins as V8's own messages do.
const ENDS_EARLY: &str =
    "SyntaxError: the end of the cell was not expected here: something is not closed, or is closed twice";
/// Added where a cell was written as a module.
const NO_MODULES: &str = ": a cell has no imports and no exports: what it needs is in `z` and in the language";

/// What V8 says of a buffer it could not allocate, and what the frame says of one.
pub(super) const BUFFERS_EXHAUSTED: &str = "Array buffer allocation failed";

/// Longest text of an exception that is reported, in bytes.
const DETAIL: usize = 4 << 10;

/// What a stopped frame reports.
pub(super) fn trip_error(why: Trip) -> Error {
    match why {
        Trip::None => internal("stopped without a reason"),
        Trip::Cancelled => Error::new(ErrorKind::Cancelled, "the host cancelled the cell"),
        Trip::Deadline => {
            Error::new(ErrorKind::Deadline, "the cell did not end within its wall-clock budget: do less in one cell, or have its host give it more time").with_path("wall")
        }
        Trip::Cpu => Error::new(ErrorKind::Budget, "the cell used up its CPU time: compute less in one cell").with_path("cpu"),
        Trip::Heap => Error::new(
            ErrorKind::Budget,
            "the cell used up its heap: keep less in memory at once",
        )
        .with_path("heap"),
        Trip::Crash => Error::new(
            ErrorKind::Budget,
            "V8 gave up on the cell: it asked for an array or a string larger than V8 can make",
        )
        .with_path("heap"),
    }
}

/// Cuts a text at a character boundary.
fn bounded(mut text: String) -> String {
    if text.len() > DETAIL {
        text.truncate(text.floor_char_boundary(DETAIL));
        text.push('…');
    }
    text
}

/// The cell as its errors need it.
pub(super) struct Cell<'a> {
    pub surface: Surface,
    pub shared: &'a Arc<Shared>,
    pub source: &'a str,
}

/// A scope that catches what the cell throws.
pub(super) type Catch<'a, 'b, 's, 'i> = v8::PinnedRef<'a, v8::TryCatch<'b, 's, v8::HandleScope<'i>>>;

impl Cell<'_> {
    pub(super) fn syntax_error(&self, scope: &Catch<'_, '_, '_, '_>, shift: usize) -> Error {
        if let Some(why) = self.shared.tripped() {
            return trip_error(why);
        }
        let mut detail = scope
            .exception()
            .map(|error| error.to_rust_string_lossy(scope))
            .unwrap_or_default();
        let line = scope
            .message()
            .and_then(|message| Some(message.get_line_number(scope)?.saturating_sub(shift)));
        // V8 names a token of the wrapper, which the author has never seen.
        if line.is_some_and(|line| is_after(self.source, line)) && !place::is_mapped(scope) {
            detail = ENDS_EARLY.into();
        } else if detail.contains("outside a module") || detail.contains("'export'") {
            detail += NO_MODULES;
        }
        let error = Error::new(ErrorKind::Syntax, bounded(detail));
        let location = scope
            .message()
            .and_then(|message| place::authors_at(scope, self.source, line?, message.get_start_column()));
        match location {
            Some(location) => error.with_location(location),
            None => error,
        }
    }

    /// The error that a `TryCatch` holds.
    pub(super) fn caught(&self, scope: &mut Catch<'_, '_, '_, '_>) -> Error {
        if let Some(why) = self.shared.tripped() {
            return trip_error(why);
        }
        match scope.exception() {
            Some(exception) => {
                scope.reset();
                self.error_of(scope, exception)
            }
            None => internal("V8 stopped without a reason"),
        }
    }

    /// What a thrown value says. May run code of the cell (an error's `name` and `message`), within its budgets.
    pub(super) fn error_of(&self, scope: &mut Catch<'_, '_, '_, '_>, exception: v8::Local<'_, v8::Value>) -> Error {
        let facts = call(scope, &self.surface.describe, &[exception])
            .and_then(|facts| v8::Local::<v8::Array>::try_from(facts).ok());
        if let Some(why) = self.shared.tripped() {
            return trip_error(why);
        }
        let location = place::of_exception(scope, exception, self.source);
        let mut error = match facts {
            Some(facts) if facts.length() > 1 => {
                let kind = text_at(scope, facts.into(), 0).unwrap_or_default();
                let kind = ErrorKind::ALL
                    .iter()
                    .copied()
                    .find(|known| known.as_str() == kind)
                    .unwrap_or(ErrorKind::Exception);
                let mut error = Error::new(kind, bounded(text_at(scope, facts.into(), 1).unwrap_or_default()));
                error.retryable = facts.get_index(scope, 2).is_some_and(|retryable| retryable.is_true());
                error.path = text_at(scope, facts.into(), 3);
                if let Some(accepted) = facts
                    .get_index(scope, 4)
                    .and_then(|list| v8::Local::<v8::Array>::try_from(list).ok())
                {
                    error.accepted = (0..accepted.length())
                        .filter_map(|i| text_at(scope, accepted.into(), i))
                        .collect();
                }
                error
            }
            facts => {
                let text = facts
                    .and_then(|facts| text_at(scope, facts.into(), 0))
                    .unwrap_or_else(|| "[not printable]".into());
                if self.shared.buffers_refused.load(Ordering::Acquire) > 0 && text.contains(BUFFERS_EXHAUSTED) {
                    let limit = self.shared.budgets.array_buffer_bytes;
                    Error::new(
                        ErrorKind::Budget,
                        format!("the cell's array buffers would exceed {limit} bytes"),
                    )
                    .with_path("arrayBuffers")
                } else {
                    Error::new(ErrorKind::Exception, bounded(text))
                }
            }
        };
        error.location = location;
        if error.kind == ErrorKind::Exception {
            name_what_there_is(&mut error);
        }
        error
    }
}

/// What `z` has, and its state.
const MEMBERS: [(&str, &[&str]); 2] = [
    ("z.state", &["get", "set", "test", "delete", "list"]),
    ("z", &["read", "find", "edit", "apply", "run", "state"]),
];

/// Adds to the error of a call of what `z` does not have what it does.
fn name_what_there_is(error: &mut Error) {
    let called = error.detail.strip_prefix("TypeError: ");
    let Some(called) = called.and_then(|rest| rest.strip_suffix(" is not a function")) else {
        return;
    };
    for (object, members) in MEMBERS {
        let member = called.strip_prefix(object).and_then(|rest| rest.strip_prefix('.'));
        if member.is_some_and(|member| member.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')) {
            error.path = Some(object.into());
            error.accepted = members.iter().map(|&member| member.into()).collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_of_what_z_does_not_have_says_what_it_has() {
        let told = |detail: &str| {
            let mut error = Error::new(ErrorKind::Exception, detail);
            name_what_there_is(&mut error);
            (error.path, error.accepted.len())
        };
        assert_eq!(told("TypeError: z.write is not a function"), (Some("z".into()), 6));
        assert_eq!(
            told("TypeError: z.state.put is not a function"),
            (Some("z.state".into()), 5)
        );
        for other in [
            "TypeError: zz.write is not a function",
            "TypeError: z.read(...).map is not a function",
            "Error: z.write is not a function",
            "TypeError: z.write is not a function or so",
        ] {
            assert_eq!(told(other), (None, 0), "{other}");
        }
    }
}
