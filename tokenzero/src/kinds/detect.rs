//! Finds out what kind of text it is, from a sample of its lines.

use zero_contracts::tokens::TextKind;

use crate::notable::{Weight, weigh, words};

/// Lines that are looked at.
const SAMPLE: usize = 400;

/// Detects the kind of a text that starts with `head`; JSON only if `is_json` says that the whole is.
pub(crate) fn detect(head: &[u8], is_json: impl FnOnce() -> bool) -> TextKind {
    if matches!(head.trim_ascii_start().first(), Some(b'{' | b'[')) && is_json() {
        return TextKind::Json;
    }
    let lines: Vec<&[u8]> = head
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.trim_ascii().is_empty())
        .take(SAMPLE)
        .collect();
    if lines.is_empty() {
        return TextKind::Text;
    }
    let share = |is: &dyn Fn(&[u8]) -> bool| lines.iter().filter(|line| is(line)).count() * 100 / lines.len();
    let is_diff = |line: &[u8]| line.starts_with(b"diff --git ") || line.starts_with(b"@@ -");
    if lines.iter().filter(|line| is_diff(line)).count() >= 1
        && share(&|line| matches!(line[0], b'+' | b'-' | b' ' | b'@' | b'd' | b'i')) >= 60
    {
        return TextKind::Diff;
    }
    if share(&is_entry) >= 70 {
        return TextKind::Listing;
    }
    let notable = lines.iter().filter(|line| weigh(line) != Weight::Plain).count();
    if share(&is_logged) >= 30 || notable * 20 >= lines.len() {
        return TextKind::Log;
    }
    if share(&is_code) >= 35 {
        return TextKind::Source;
    }
    if has_failure(head) {
        return TextKind::Log;
    }
    TextKind::Text
}

fn has_failure(text: &[u8]) -> bool {
    words().find_iter(text).take(10_000).any(|found| {
        let start = memchr::memrchr(b'\n', &text[..found.start()]).map_or(0, |feed| feed + 1);
        let end = memchr::memchr(b'\n', &text[found.end()..]).map_or(text.len(), |feed| found.end() + feed);
        end - start < 4096 && weigh(&text[start..end]) >= Weight::Result
    })
}

/// A path, a directory's entry, or a match with its place.
fn is_entry(line: &[u8]) -> bool {
    let line = line.trim_ascii_end();
    let matched = line.iter().position(|byte| *byte == b':').is_some_and(|colon| {
        let path = &line[..colon];
        let number = line[colon + 1..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        number > 0 && line.get(colon + 1 + number) == Some(&b':') && path.contains(&b'.') && !path.contains(&b' ')
    });
    if matched {
        return weigh(line) == Weight::Plain || !line.contains(&b' ');
    }
    let mode = line.len() > 10
        && matches!(line[0], b'-' | b'd' | b'l')
        && line[1..10].iter().all(|byte| b"rwxsStT-".contains(byte));
    let status = line.len() > 3 && line[2] == b' ' && line[..2].iter().all(|byte| b" MADRCU?!".contains(byte));
    let changes: [&[u8]; 6] = [
        b"modified:",
        b"new file:",
        b"deleted:",
        b"renamed:",
        b"both modified:",
        b"both added:",
    ];
    let change = changes.iter().any(|change| line.trim_ascii_start().starts_with(change));
    let path = !line.contains(&b' ')
        && line.len() < 300
        && !line.ends_with(b";")
        && !line.ends_with(b"{")
        && !line.ends_with(b",");
    mode || status || change || path
}

/// A time, a level or the name of a test with its result.
fn is_logged(line: &[u8]) -> bool {
    let digits = line.iter().take(24).filter(|byte| byte.is_ascii_digit()).count();
    let stamped = digits >= 6
        && line
            .iter()
            .take(24)
            .filter(|byte| matches!(byte, b':' | b'-' | b'/' | b'.'))
            .count()
            >= 2;
    let words: [&[u8]; 10] = [
        b"INFO",
        b"DEBUG",
        b"WARN",
        b"ERROR",
        b" ... ok",
        b" PASSED",
        b"--- PASS",
        b"=== RUN",
        b"Compiling ",
        b"Get:",
    ];
    stamped
        || words
            .iter()
            .any(|word| memchr::memmem::find(&line[..line.len().min(200)], word).is_some())
}

fn is_code(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    line.ends_with(b";")
        || line.ends_with(b"{")
        || line.ends_with(b"}")
        || line.ends_with(b"):")
        || line.ends_with(b"(")
        || [
            &b"fn "[..],
            b"pub ",
            b"use ",
            b"import ",
            b"from ",
            b"def ",
            b"class ",
            b"func ",
            b"const ",
            b"let ",
            b"//",
            b"#include",
        ]
        .iter()
        .any(|word| line.starts_with(word))
}
