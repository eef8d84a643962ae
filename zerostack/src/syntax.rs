//! Parsing of cells outside of V8: for TypeScript, and for plans.
//!
//! The parser, the transformer and the printer call themselves once for each level that a cell nests, and one byte can be
//! a level. A stack that overflows ends the process, so all of it happens on a thread whose stack fits the source: its pages
//! cost nothing until something nests that deep.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use oxc::allocator::Allocator;
use oxc::ast::ast::{Expression, Program, Statement};
use oxc::diagnostics::{Diagnostics, OxcDiagnostic};
use oxc::parser::{ParseOptions, Parser};
use oxc::span::{GetSpan as _, SourceType};
use zero_contracts::{Error, ErrorKind, Location, Result};

/// Stack that a byte of source can need. Over every form that nests the most that was measured is 1.6 KiB, for brackets that are
/// never closed (`what_a_byte_of_source_needs`); a test holds it to twice that. Parsers that were built without optimisation
/// need more.
const STACK_PER_BYTE: usize = if cfg!(debug_assertions) { 16 << 10 } else { 4 << 10 };
/// Stack for everything but nesting.
const STACK: usize = 1 << 20;
/// Sources longer than this are parsed one at a time: what nests deeply then fills its stack alone.
const LONG: usize = 64 << 10;
/// How often the caller looks whether it still wants the answer.
const POLL: Duration = Duration::from_millis(2);

/// Parsers that nobody waits for any more and that had not ended yet. A parser cannot be interrupted: it ends when it has read
/// its source, which takes a second or two for the worst nesting of the largest cell (some forms cost the square of their
/// depth).
static LATE: Mutex<Vec<JoinHandle<()>>> = Mutex::new(Vec::new());

/// Waits for the parsers that nobody waited for, until a deadline; returns how many still run then.
pub(crate) fn join_late(until: Instant) -> usize {
    loop {
        let mut late = LATE.lock().unwrap_or_else(PoisonError::into_inner);
        let ended: Vec<_> = late.extract_if(.., |parser| parser.is_finished()).collect();
        let left = late.len();
        drop(late);
        for parser in ended {
            // Its panics are caught.
            let _ = parser.join();
        }
        let now = Instant::now();
        if left == 0 || now >= until {
            return left;
        }
        std::thread::sleep(POLL.min(until - now));
    }
}

/// Does work on a source on a thread whose stack fits it, unless `stop` says that nobody waits for it any more.
///
/// # Errors
/// `cancelled` if stopped (the work goes on alone and its result is dropped; see [`join_late`]), `busy` if there is no room for
/// the thread, `internal` if the work panicked.
pub(crate) fn with_fitting_stack<T: Send + 'static>(
    source: &str,
    stop: impl Fn() -> bool,
    work: impl FnOnce(&str) -> T + Send + 'static,
) -> Result<T> {
    static LONG_SOURCES: Mutex<()> = Mutex::new(());
    let source = source.to_owned();
    let stack = STACK + source.len() * STACK_PER_BYTE;
    let (send, receive) = channel();
    let wanted = Arc::new(AtomicBool::new(true));
    let parse = {
        let wanted = Arc::clone(&wanted);
        move || {
            let _one_at_a_time =
                (source.len() > LONG).then(|| LONG_SOURCES.lock().unwrap_or_else(PoisonError::into_inner));
            // Who waited for another's long source need not begin.
            if wanted.load(Ordering::Acquire) {
                let _ = send.send(catch_unwind(AssertUnwindSafe(|| work(&source))));
            }
        }
    };
    let parser = std::thread::Builder::new()
        .name("zero-parse".into())
        .stack_size(stack)
        .spawn(parse)
        .map_err(|e| {
            Error::new(
                ErrorKind::Busy,
                format!("the system gave no thread with {stack} bytes of stack to parse the cell: {e}"),
            )
        })?;
    loop {
        match receive.recv_timeout(POLL) {
            Ok(Ok(done)) => return Ok(done),
            Ok(Err(_)) | Err(RecvTimeoutError::Disconnected) => {
                return Err(Error::new(ErrorKind::Internal, "the parser failed on this cell"));
            }
            Err(RecvTimeoutError::Timeout) if stop() => {
                wanted.store(false, Ordering::Release);
                join_late(Instant::now());
                LATE.lock().unwrap_or_else(PoisonError::into_inner).push(parser);
                return Err(Error::new(ErrorKind::Cancelled, "stopped while the cell was parsed"));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// Parses a TypeScript cell: strict, with `await` and `return`.
///
/// # Errors
/// `syntax` with the first place.
pub(crate) fn parse_typescript<'a>(allocator: &'a Allocator, source: &'a str) -> Result<Program<'a>> {
    let options = ParseOptions {
        allow_return_outside_function: true,
        ..ParseOptions::default()
    };
    let language = SourceType::mjs().with_typescript(true);
    let parsed = Parser::new(allocator, source, language).with_options(options).parse();
    check(source, 0, &parsed.diagnostics)?;
    Ok(parsed.program)
}

/// What stands before and after the text of a cell when V8 compiles it.
const WRAPPER: (&str, &str) = ("(async function () {\"use strict\";\n", "\n})");

/// The text that V8 compiles for a cell: its body is strict and may `await` and `return`.
pub(crate) fn wrapped(source: &str) -> String {
    format!("{}{source}{}", WRAPPER.0, WRAPPER.1)
}

/// Bytes before the cell in that text.
pub(crate) const BEFORE: usize = WRAPPER.0.len();

/// Parses what [`wrapped`] made of `source`, as V8 does.
///
/// # Errors
/// `syntax` with the first place, also for a source that ends the function around it.
pub(crate) fn parse_wrapped<'a>(allocator: &'a Allocator, wrapped: &'a str, source: &str) -> Result<Program<'a>> {
    let parsed = Parser::new(allocator, wrapped, SourceType::script()).parse();
    check(source, BEFORE, &parsed.diagnostics)?;
    let is_one_function = match &parsed.program.body[..] {
        [Statement::ExpressionStatement(statement)] => match &statement.expression {
            Expression::ParenthesizedExpression(inside) => {
                matches!(inside.expression, Expression::FunctionExpression(_))
            }
            _ => false,
        },
        _ => false,
    };
    if is_one_function {
        return Ok(parsed.program);
    }
    let end = parsed.program.body.first().map_or(0, |first| first.span().end as usize);
    Err(Error::new(ErrorKind::Syntax, "SyntaxError: Unexpected token '}'")
        .with_location(location(source, end.saturating_sub(BEFORE))))
}

/// Fails with the first error among diagnostics, whose places count from `before` bytes before the source.
///
/// # Errors
/// `syntax`.
pub(crate) fn check(source: &str, before: usize, diagnostics: &Diagnostics) -> Result<()> {
    match diagnostics.errors().next() {
        None => Ok(()),
        Some(first) => Err(syntax_error(source, before, first)),
    }
}

/// What a diagnostic says, with its first place.
pub(crate) fn syntax_error(source: &str, before: usize, diagnostic: &OxcDiagnostic) -> Error {
    let error = Error::new(ErrorKind::Syntax, format!("SyntaxError: {}", diagnostic.message));
    match diagnostic.labels.first() {
        Some(label) => error.with_location(location(source, (label.offset() as usize).saturating_sub(before))),
        None => error,
    }
}

/// Of two errors the one whose place is later; the first if neither is.
pub(crate) fn later(one: Error, other: Error) -> Error {
    let place = |error: &Error| error.location.map(|location| (location.line, location.column));
    if place(&other) > place(&one) { other } else { one }
}

/// The place of a byte of a source, in the contract's terms.
pub(crate) fn location(source: &str, byte: usize) -> Location {
    let (line, column) = utf16_place(source, byte);
    at(source, line as usize + 1, column as usize).unwrap_or(Location { line: 1, column: 1 })
}

/// The line and the column of a byte as V8 and source maps count them: from 0, columns in UTF-16 units.
pub(crate) fn utf16_place(source: &str, byte: usize) -> (u32, u32) {
    let (mut line, mut column, mut after_return) = (0, 0, false);
    for c in source[..source.floor_char_boundary(byte.min(source.len()))].chars() {
        if matches!(c, '\n' | '\r' | '\u{2028}' | '\u{2029}') {
            line += u32::from(!(c == '\n' && after_return));
            column = 0;
        } else {
            column += c.len_utf16() as u32;
        }
        after_return = c == '\r';
    }
    (line, column)
}

/// Turns a line (1-based) and a column (0-based, UTF-16 units) into the contract's. A place past the end of the source, as
/// of an unclosed brace, is the end.
pub(crate) fn at(source: &str, line: usize, column: usize) -> Option<Location> {
    let count = lines(source).count();
    let (line, column) = if line > count {
        (count, usize::MAX)
    } else {
        (line.max(1), column)
    };
    let text = lines(source).nth(line - 1)?;
    let mut units = 0;
    let before = text.chars().take_while(|c| {
        units += c.len_utf16();
        units <= column
    });
    Some(Location {
        line: line as u64,
        column: before.count() as u64 + 1,
    })
}

/// Whether V8's line (1-based) is one after the source: what it complains about is then of the wrapper.
pub(crate) fn is_after(source: &str, line: usize) -> bool {
    line > lines(source).count()
}

/// The lines of a source as ECMAScript ends them.
fn lines(source: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(source);
    std::iter::from_fn(move || {
        let text = rest?;
        let Some(end) = text.find(['\n', '\r', '\u{2028}', '\u{2029}']) else {
            rest = None;
            return Some(text);
        };
        let after = &text[end..];
        let skip = if after.starts_with("\r\n") {
            2
        } else {
            after.chars().next().map_or(0, char::len_utf8)
        };
        rest = Some(&after[skip..]);
        Some(&text[..end])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_lines_as_the_language_does() {
        let source = "a\r\n😀b\u{2028}c";
        let place = |text: &str| {
            let place = location(source, source.find(text).unwrap());
            (place.line, place.column)
        };
        assert_eq!((place("a"), place("b"), place("c")), ((1, 1), (2, 2), (3, 1)));
        assert_eq!(utf16_place(source, source.find('b').unwrap()), (1, 2));
        assert_eq!(location("", 5).line, 1);
        let place = |line, column| at(source, line, column).map(|l| (l.line, l.column));
        assert_eq!(place(1, 0), Some((1, 1)));
        assert_eq!(place(2, 2), Some((2, 2)), "after the surrogate pair");
        assert_eq!(place(3, 0), Some((3, 1)));
        assert_eq!(place(9, 4), Some((3, 2)), "past the end");
        assert_eq!(at("", 1, 0).map(|l| (l.line, l.column)), Some((1, 1)));
    }

    #[test]
    fn work_that_panics_or_that_nobody_wants_is_an_error() {
        let panics = with_fitting_stack("x", || false, |_| panic!("no"));
        assert_eq!(panics.unwrap_err().kind, ErrorKind::Internal);
        let slow = with_fitting_stack("x", || true, |_| std::thread::sleep(Duration::from_millis(200)));
        assert_eq!(slow.unwrap_err().kind, ErrorKind::Cancelled);
        assert_eq!(with_fitting_stack("xy", || false, str::len).unwrap(), 2);
    }

    /// Leaves a parser behind that has begun, and goes on when it is told to.
    fn left_behind(source: &str) -> std::sync::mpsc::Sender<()> {
        let (go, held) = channel::<()>();
        let begun = Arc::new(AtomicBool::new(false));
        let mark = Arc::clone(&begun);
        let work = move |_: &str| {
            mark.store(true, Ordering::SeqCst);
            held.recv()
        };
        let left = with_fitting_stack(source, || begun.load(Ordering::SeqCst), work);
        assert_eq!(left.unwrap_err().kind, ErrorKind::Cancelled);
        go
    }

    #[test]
    fn a_parser_that_nobody_waits_for_is_counted_until_it_has_ended() {
        let go = left_behind("x");
        assert!(join_late(Instant::now() + Duration::from_millis(20)) > 0);
        go.send(()).unwrap();
        assert_eq!(join_late(Instant::now() + Duration::from_secs(60)), 0);
    }

    #[test]
    fn a_long_source_that_waited_for_another_and_is_not_wanted_is_not_begun() {
        let long = "x".repeat(LONG + 1);
        let go = left_behind(&long);
        let begun = Arc::new(AtomicBool::new(false));
        let mark = Arc::clone(&begun);
        assert!(with_fitting_stack(&long, || true, move |_| mark.store(true, Ordering::SeqCst)).is_err());
        go.send(()).unwrap();
        assert_eq!(join_late(Instant::now() + Duration::from_secs(60)), 0);
        assert!(!begun.load(Ordering::SeqCst));
    }
}

#[cfg(test)]
#[path = "../tests/it/nestings.rs"]
mod nestings;

#[cfg(test)]
mod needs {
    use super::nestings::{NESTINGS, TYPE_NESTINGS, nested};
    use crate::typescript;

    /// Bytes of the calling thread's stack that were ever touched.
    fn touched() -> usize {
        let local = 0u8;
        let here = std::ptr::from_ref(&local) as usize;
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let mut inside = false;
        for line in maps.lines() {
            if let Some((from, to)) = line.split(' ').next().and_then(|range| range.split_once('-')) {
                let (from, to) = (usize::from_str_radix(from, 16), usize::from_str_radix(to, 16));
                if let (Ok(from), Ok(to)) = (from, to) {
                    inside = (from..to).contains(&here);
                }
            }
            if let Some(size) = line.strip_prefix("Rss:").filter(|_| inside) {
                return size.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10;
            }
        }
        0
    }

    /// Every form that nests, and those of one byte in turns: what opens a level, what is innermost, what closes it, and
    /// what stands before.
    fn forms() -> Vec<(String, String, String, &'static str)> {
        let owned = |(open, middle, close): (&str, &str, &str), before| {
            (open.to_owned(), middle.to_owned(), close.to_owned(), before)
        };
        let mut forms: Vec<_> = NESTINGS.iter().map(|form| owned(*form, "")).collect();
        forms.extend(TYPE_NESTINGS.iter().map(|form| owned(*form, "type T=")));
        for (all, before) in [(NESTINGS, ""), (TYPE_NESTINGS, "type T=")] {
            let short: Vec<_> = all
                .iter()
                .filter(|(open, _, close)| open.len() + close.len() <= 4)
                .collect();
            for (open, middle, close) in &short {
                for (also, _, too) in &short {
                    forms.push((
                        format!("{open}{also}"),
                        (*middle).to_owned(),
                        format!("{too}{close}"),
                        before,
                    ));
                }
            }
        }
        forms
    }

    /// Stack a byte of source that making JavaScript of it touches, how long that takes, and what comes of it.
    fn measure(source: String) -> (usize, std::time::Duration, String) {
        let start = std::time::Instant::now();
        let bytes = source.len();
        let work = move || {
            let before = touched();
            let made = typescript::to_javascript(&source).map(|made| made.code.len());
            (touched() - before, made.map_err(|error| error.detail))
        };
        let thread = std::thread::Builder::new().stack_size(super::STACK + bytes * (64 << 10));
        let (stack, made) = thread.spawn(work).unwrap().join().unwrap();
        (stack / bytes, start.elapsed(), format!("{made:?}"))
    }

    /// If a new version of the parser needs more, the constant has to grow.
    #[test]
    #[cfg_attr(
        debug_assertions,
        ignore = "measured where it is optimised, by `cargo xtask soak cell`"
    )]
    fn a_byte_of_source_has_twice_the_stack_that_it_needs() {
        let worst = forms().into_iter().map(|(open, middle, close, before)| {
            let source = nested((&open, &middle, &close), before, 4 << 10);
            (measure(source).0, format!("{before}{open}{middle}{close}"))
        });
        let (bytes, form) = worst.max().unwrap();
        println!("{bytes} bytes of stack for one of {form}");
        assert!(bytes > 100, "nothing was measured");
        assert!(bytes * 2 <= super::STACK_PER_BYTE, "{form} needs {bytes} a byte");
    }

    /// `cargo test -p zerostack --lib what_a_byte -- --ignored --nocapture`, also with `--release`; `ZEROSTACK_SOURCE_BYTES`
    /// says how long the sources are.
    #[test]
    #[ignore = "measures"]
    fn what_a_byte_of_source_needs() {
        let size = std::env::var("ZEROSTACK_SOURCE_BYTES").map_or(32 << 10, |size| size.parse().unwrap());
        for (open, middle, close, before) in forms() {
            let source = nested((&open, &middle, &close), before, size);
            let (stack, time, mut made) = measure(source);
            made.truncate(70);
            println!(
                "{stack:>6} a byte, {:>9.1} ms {before}{open:?} {middle:?} {close:?}: {made}",
                time.as_secs_f64() * 1e3
            );
        }
    }
}
