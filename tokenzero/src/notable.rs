//! Which lines of a tool's output matter: failures first, then warnings and summaries.
//!
//! The words are those of compilers, test runners, package managers, interpreters and servers. A word counts only where it
//! stands for itself (`error: …`, not `error_kind` or `0 errors`).

use aho_corasick::{AhoCorasick, MatchKind};
use std::sync::OnceLock;

/// How much a line matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Weight {
    /// Nothing was seen.
    Plain,
    /// A warning.
    Warning,
    /// The result of something that failed: it has a name, but says nothing of why.
    Result,
    /// A failure, an error, a crash.
    Failure,
}

/// Words of failures; those before [`WARNINGS`] in [`WORDS`].
const FAILURES: usize = 31;

/// Every word that is looked for. Three spellings instead of ignoring case keep the search in its fast form.
const WORDS: &[&str] = &[
    "error",
    "Error",
    "ERROR",
    "FAIL",
    "Fail",
    "fail",
    "panic",
    "PANIC",
    "Panic",
    "fatal",
    "Fatal",
    "FATAL",
    "exception",
    "Exception",
    "EXCEPTION",
    "Traceback",
    "npm ERR!",
    "Segmentation fault",
    "core dumped",
    "not ok ",
    "CRITICAL",
    "critical",
    "ERR!",
    "killed",
    "Killed",
    "denied",
    "unresolved",
    "undefined reference",
    "Caused by",
    "✗",
    "✕",
    // Warnings.
    "warning",
    "Warning",
    "WARN",
    "deprecated",
    "WRN",
];

/// Finds notable words.
pub(crate) fn words() -> &'static AhoCorasick {
    static WORDS_SEARCH: OnceLock<AhoCorasick> = OnceLock::new();
    WORDS_SEARCH.get_or_init(|| search(WORDS))
}

/// Finds the words of failures: at most 32 of them, which the search takes twice as many bytes at a time for.
pub(crate) fn failure_words() -> &'static AhoCorasick {
    static FAILURES_SEARCH: OnceLock<AhoCorasick> = OnceLock::new();
    FAILURES_SEARCH.get_or_init(|| search(&WORDS[..FAILURES]))
}

fn search(words: &[&str]) -> AhoCorasick {
    AhoCorasick::builder()
        .match_kind(MatchKind::LeftmostFirst)
        .build(words)
        // Fails only for more than 2^31 states; the words are fixed and tested.
        .unwrap_or_else(|error| unreachable!("{error}"))
}

/// Weighs a line.
pub(crate) fn weigh(line: &[u8]) -> Weight {
    let mut weight = Weight::Plain;
    for found in words().find_iter(line) {
        let is_failure = found.pattern().as_usize() < FAILURES;
        if weight != Weight::Plain && !is_failure {
            continue;
        }
        if !stands_alone(line, found.start(), found.end()) || is_counted_none(line, found.start(), found.end()) {
            continue;
        }
        if is_failure && !line[found.start()..].starts_with(b"FAIL") {
            return Weight::Failure;
        }
        weight = weight.max(if is_failure { Weight::Result } else { Weight::Warning });
    }
    weight
}

/// A word is no part of a longer name: `ValueError:` and `failed` count, `error_kind`, `errors.rs` and `failover` do not.
fn stands_alone(line: &[u8], start: usize, end: usize) -> bool {
    let word = &line[start..end];
    if !word.iter().all(u8::is_ascii_alphabetic) {
        return true;
    }
    let before = start
        .checked_sub(1)
        .and_then(|at| line.get(at))
        .copied()
        .unwrap_or(b' ');
    // A name in capitals and small letters may end in the word: ValueError, IOException.
    let begins = !before.is_ascii_alphabetic() && before != b'_' && before != b'/'
        || word[0].is_ascii_uppercase() && (before.is_ascii_lowercase() || word[1].is_ascii_lowercase());
    let rest = &line[end..];
    let rest = ["ures", "ure", "ing", "ed", "s", "ked", "ged"]
        .iter()
        .find_map(|ending| rest.strip_prefix(ending.as_bytes()))
        .or_else(|| {
            ["URES", "URE", "ING", "ED", "S"]
                .iter()
                .find_map(|ending| rest.strip_prefix(ending.as_bytes()))
        })
        .unwrap_or(rest);
    let ends = match rest {
        [] => true,
        // A path or a name goes on.
        [b'_', ..] => false,
        [b'-' | b'.', next, ..] => !next.is_ascii_alphanumeric(),
        [next, ..] => !next.is_ascii_alphanumeric(),
    };
    begins && ends
}

/// `0 errors`, `no failures`, `failed: 0` tell of none.
fn is_counted_none(line: &[u8], start: usize, end: usize) -> bool {
    let before = line[..start].trim_ascii_end();
    let is_word = |at: usize| before.get(at).is_some_and(u8::is_ascii_alphanumeric);
    let none_before = [&b"0"[..], b"no", b"No", b"without"]
        .iter()
        .any(|none| before.ends_with(none) && before.len().checked_sub(none.len() + 1).is_none_or(|at| !is_word(at)))
        && start > before.len();
    let after = line[end..].trim_ascii_start();
    let after = ["ures", "ed", "s"]
        .iter()
        .find_map(|ending| after.strip_prefix(ending.as_bytes()))
        .unwrap_or(after);
    let after = after
        .strip_prefix(b":")
        .or_else(|| after.strip_prefix(b"="))
        .map(<[u8]>::trim_ascii_start);
    let none_after = after
        .is_some_and(|rest| rest.first() == Some(&b'0') && !rest.get(1).is_some_and(|c| c.is_ascii_alphanumeric()));
    none_before || none_after
}

/// Tells lines apart that differ in more than numbers: a hash of the line without its digits.
pub(crate) fn shape(line: &[u8]) -> u64 {
    let mut state: u64 = 0xcbf2_9ce4_8422_2325;
    for &byte in line {
        if !byte.is_ascii_digit() {
            state = (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    state
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_before_the_warnings_are_failures() {
        assert_eq!(WORDS[FAILURES], "warning");
        const { assert!(FAILURES <= 32, "the search for failures loses its fast form") };
    }

    #[test]
    fn failures_warnings_and_what_only_looks_like_them() {
        for line in [
            "error[E0308]: mismatched types",
            "test a::b ... FAILED",
            "thread 'main' panicked at src/main.rs:1:1:",
            "Traceback (most recent call last):",
            "ValueError: bad",
            "java.io.IOException: x",
            "--- FAIL: TestX (0.00s)",
            "npm ERR! code 1",
            "E: Permission denied",
            "3 failures",
            "2024 ERROR db: lost",
            "make: *** [all] Error 2",
            "FAILED tests/a.py::b",
            "not ok 3 - x",
            "src/a.ts(1,2): error TS2322: no",
            "Process was killed",
        ] {
            assert!(weigh(line.as_bytes()) >= Weight::Result, "{line}");
        }
        for line in [
            "warning: unused",
            "WARN x",
            "DeprecationWarning: old",
            "npm warn deprecated a@1",
        ] {
            assert_eq!(weigh(line.as_bytes()), Weight::Warning, "{line}");
        }
        for line in [
            "test error_kinds ... ok",
            "Compiling thiserror v2",
            "0 errors, 0 failures",
            "5 passed; 0 failed; 0 ignored",
            "failed: 0",
            "no errors",
            "src/error.rs",
            "terror",
            "Downloading error-chain v1",
            "failover done",
        ] {
            assert_eq!(weigh(line.as_bytes()), Weight::Plain, "{line}");
        }
    }

    #[test]
    fn lines_of_one_shape_differ_in_numbers_only() {
        assert_eq!(shape(b"took 12 ms"), shape(b"took 7 ms"));
        assert_ne!(shape(b"took 12 ms"), shape(b"took 12 s"));
    }
}
