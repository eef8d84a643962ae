//! Places in the cell's source: error locations and stack traces. V8 may run JavaScript that was made of the author's
//! TypeScript; what is told is the author's place always.
//!
//! A cell sees its own frames only, under the name `cell`; frames of the surface and of deno_core are left out, and
//! `Error.prepareStackTrace` of a cell is never called, so that no call-site object reaches it.

use std::cell::OnceCell;

use deno_core::v8;
use zero_contracts::Location;

use super::convert::string;
use super::native::Host;
use crate::syntax::at;
use crate::typescript::Places;

/// Whether V8 runs what was made of the author's TypeScript.
pub(super) fn is_mapped(scope: &v8::Isolate) -> bool {
    Host::of(scope).is_some_and(|host| host.mapped.get().is_some())
}

/// Name of the cell's script.
pub(super) const CELL: &str = "cell";

/// Frames shown in `error.stack`.
const FRAMES: u32 = 20;

/// The author's places, if V8 runs something else.
pub(super) type Mapped = OnceCell<Places>;

/// Formats `error.stack`.
pub(super) fn prepare_stack<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    error: v8::Local<'s, v8::Value>,
    sites: v8::Local<'s, v8::Array>,
) -> v8::Local<'s, v8::Value> {
    v8::tc_scope!(let scope, scope);
    let mut text = String::new();
    if let Ok(object) = v8::Local::<v8::Object>::try_from(error) {
        let read = |name: &str| -> Option<String> {
            let key = string(scope, name);
            let value = object.get(scope, key.into()).filter(|value| !value.is_undefined())?;
            value.to_string(scope).map(|text| text.to_rust_string_lossy(scope))
        };
        let name = read("name").unwrap_or_else(|| "Error".into());
        let message = read("message").unwrap_or_default();
        text = if message.is_empty() {
            name
        } else if name.is_empty() {
            message
        } else {
            format!("{name}: {message}")
        };
    }
    scope.reset();
    let to_string = string(scope, "toString");
    for index in 0..sites.length().min(FRAMES) {
        let Some(site) = sites
            .get_index(scope, index)
            .and_then(|site| v8::Local::<v8::Object>::try_from(site).ok())
        else {
            continue;
        };
        let shown = site
            .get(scope, to_string.into())
            .and_then(|function| v8::Local::<v8::Function>::try_from(function).ok())
            .and_then(|function| function.call(scope, site.into(), &[]))
            .map(|shown| shown.to_rust_string_lossy(scope));
        if let Some(shown) = shown.filter(|shown| !shown.starts_with("ext:") && !shown.contains("(ext:")) {
            text.push_str("\n    at ");
            match Host::of(scope).as_ref().and_then(|host| host.mapped.get()) {
                Some(places) => text.push_str(&authors(places, &shown)),
                None => text.push_str(&shown),
            }
        }
    }
    string(scope, &text).into()
}

/// Replaces the place in one line of a stack: `f (cell:3:5)`, `cell:3:5`.
fn authors(places: &Places, shown: &str) -> String {
    let replace = || {
        let at = shown.rfind(CELL)? + CELL.len();
        let (line, rest) = shown[at..].strip_prefix(':')?.split_once(':')?;
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (line, column): (u32, u32) = (line.parse().ok()?, rest[..digits].parse().ok()?);
        let (line, column) = places.original(line.checked_sub(1)?, column.checked_sub(1)?)?;
        Some(format!(
            "{}:{}:{}{}",
            &shown[..at],
            line + 1,
            column + 1,
            &rest[digits..]
        ))
    };
    replace().unwrap_or_else(|| shown.to_owned())
}

/// Tells where an exception came from: the innermost frame in the cell.
pub(super) fn of_exception(
    scope: &v8::PinScope<'_, '_>,
    exception: v8::Local<'_, v8::Value>,
    source: &str,
) -> Option<Location> {
    if let Some(stack) = v8::Exception::get_stack_trace(scope, exception) {
        for index in 0..stack.get_frame_count() {
            let frame = stack.get_frame(scope, index)?;
            let in_cell = frame
                .get_script_name(scope)
                .is_some_and(|name| name.to_rust_string_lossy(scope) == CELL);
            if in_cell {
                return authors_at(
                    scope,
                    source,
                    frame.get_line_number(),
                    frame.get_column().saturating_sub(1),
                );
            }
        }
    }
    of_message(scope, v8::Exception::create_message(scope, exception), source)
}

/// Tells where a message points, when it points into the cell.
pub(super) fn of_message(
    scope: &v8::PinScope<'_, '_>,
    message: v8::Local<'_, v8::Message>,
    source: &str,
) -> Option<Location> {
    let name = message.get_script_resource_name(scope)?;
    if name.to_rust_string_lossy(scope) != CELL {
        return None;
    }
    authors_at(
        scope,
        source,
        message.get_line_number(scope)?,
        message.get_start_column(),
    )
}

/// The contract's place of V8's line (1-based) and column (0-based, UTF-16 units), in the author's source.
pub(super) fn authors_at(scope: &v8::Isolate, source: &str, line: usize, column: usize) -> Option<Location> {
    let host = Host::of(scope);
    let Some(places) = host.as_ref().and_then(|host| host.mapped.get()) else {
        return at(source, line, column);
    };
    let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let (line, column) = places.original(number(line.saturating_sub(1)), number(column))?;
    at(source, line as usize + 1, column as usize)
}
