//! Unified diffs, applied exactly: every context and removed line must be there, byte for byte.
//!
//! A hunk goes where its header says (corrected by what earlier hunks added or removed); if its old lines are not
//! there, it goes to the one other place after the previous hunk where they are, and is a conflict where there is none
//! or more than one. In a file with `\r\n` the lines of the patch match without regard to the line end, and added lines
//! get the line end of the line they follow. Format: POSIX diff -u, with git's `\ No newline at end of file`.

use std::io::Read;
use std::sync::Arc;

use zero_contracts::{CancelToken, Digest, Error, ErrorKind};

use super::{Open, PATCH_BYTES, Plan, Splice};

struct Hunk<'a> {
    /// First old line, 1-based; 0 with no old lines means before the first.
    old_start: usize,
    lines: Vec<Line<'a>>,
}

#[derive(Clone, Copy, PartialEq)]
enum Sign {
    Context,
    Remove,
    Add,
}

struct Line<'a> {
    sign: Sign,
    /// Without its line end.
    text: &'a [u8],
    newline: bool,
}

fn malformed(number: usize, why: &str) -> Error {
    Error::invalid(format!(
        "line {number} of the patch: {why}; a unified diff with exact context is needed"
    ))
    .with_path("patch")
}

/// `12,3` or `12`.
fn span(text: &str) -> Option<(usize, usize)> {
    let (start, count) = text.split_once(',').unwrap_or((text, "1"));
    Some((start.parse().ok()?, count.parse().ok()?))
}

fn parse(patch: &[u8]) -> Result<Vec<Hunk<'_>>, Error> {
    let mut hunks: Vec<Hunk<'_>> = Vec::new();
    let mut left = (0_usize, 0_usize); // old and new lines that the present hunk still needs
    let mut files = 0;
    let mut total = 0;
    for (number, raw) in (1..).zip(split(patch)) {
        total = number;
        let line = raw.strip_suffix(b"\n").unwrap_or(raw);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.starts_with(b"\\") {
            let last = hunks.last_mut().and_then(|hunk| hunk.lines.last_mut());
            last.ok_or_else(|| malformed(number, "it follows no line"))?.newline = false;
        } else if left != (0, 0) {
            let (sign, text) = match line.first() {
                Some(b' ') => (Sign::Context, &line[1..]),
                // Editors and models drop the blank of an empty context line.
                None => (Sign::Context, line),
                Some(b'-') => (Sign::Remove, &line[1..]),
                Some(b'+') => (Sign::Add, &line[1..]),
                _ => return Err(malformed(number, "it begins with none of ` `, `-`, `+`, `\\`")),
            };
            let old = usize::from(sign != Sign::Add);
            let new = usize::from(sign != Sign::Remove);
            if old > left.0 || new > left.1 {
                return Err(malformed(number, "the hunk has more lines than its header says"));
            }
            left = (left.0 - old, left.1 - new);
            if let Some(hunk) = hunks.last_mut() {
                hunk.lines.push(Line {
                    sign,
                    text,
                    newline: true,
                });
            }
        } else if let Some(rest) = line.strip_prefix(b"@@ -") {
            // A name of a function may follow in any encoding; what counts is ASCII.
            let rest = String::from_utf8_lossy(rest);
            let header = rest.split_once(" @@").and_then(|(spans, _)| spans.split_once(" +"));
            let header = header.and_then(|(old, new)| Some((span(old)?, span(new)?)));
            let Some(((old_start, old), (_, new))) = header else {
                return Err(malformed(number, "the header is not `@@ -start,count +start,count @@`"));
            };
            left = (old, new);
            hunks.push(Hunk {
                old_start,
                lines: Vec::new(),
            });
        } else if line.starts_with(b"+++ ") {
            files += 1;
            if files > 1 {
                return Err(malformed(number, "it begins a second file; patch one file at a time"));
            }
        } else if !hunks.is_empty() && matches!(line.first(), Some(b'+' | b'-' | b' ')) && !line.starts_with(b"--") {
            return Err(malformed(number, "the hunk has more lines than its header says"));
        }
    }
    if left != (0, 0) {
        return Err(malformed(total, "the last hunk has fewer lines than its header says"));
    }
    if hunks.is_empty() {
        return Err(malformed(1, "there is no hunk"));
    }
    Ok(hunks)
}

/// The lines of a source, each with its line end.
fn split(bytes: &[u8]) -> Vec<&[u8]> {
    let mut lines = Vec::new();
    let mut start = 0;
    for at in memchr::memchr_iter(b'\n', bytes) {
        lines.push(&bytes[start..=at]);
        start = at + 1;
    }
    if start < bytes.len() {
        lines.push(&bytes[start..]);
    }
    lines
}

fn same(have: &[u8], want: &Line<'_>) -> bool {
    match have.strip_suffix(b"\n") {
        Some(line) => want.newline && (line == want.text || line.strip_suffix(b"\r") == Some(want.text)),
        None => !want.newline && have == want.text,
    }
}

fn fits(lines: &[&[u8]], at: usize, old: &[&Line<'_>]) -> bool {
    lines
        .get(at..at + old.len())
        .is_some_and(|have| have.iter().zip(old).all(|(have, want)| same(have, want)))
}

pub(super) fn plan(patch: &[u8], open: Open<'_>, token: &CancelToken) -> Result<Plan, Error> {
    let hunks = parse(patch)?;
    let mut bytes = Vec::new();
    let read = open()?.take(PATCH_BYTES + 1).read_to_end(&mut bytes);
    read.map_err(|e| Error::from_io(&e, "reading the file that is edited"))?;
    if bytes.len() as u64 > PATCH_BYTES {
        return Err(Error::new(
            ErrorKind::Unsupported,
            format!("a patch needs a file of at most {PATCH_BYTES} bytes; use find and replacement, or lines"),
        ));
    }
    let base = Digest::of(&bytes);
    let text = bytes.strip_prefix(super::scan::BOM).unwrap_or(&bytes);
    let bom = (bytes.len() - text.len()) as u64;
    let lines = split(text);
    let mut starts = Vec::with_capacity(lines.len() + 1);
    let mut at = bom;
    for line in &lines {
        starts.push(at);
        at += line.len() as u64;
    }
    starts.push(at);
    let mut splices = Vec::new();
    let mut free = 0; // first line that no hunk has used
    let mut shift = 0_isize; // how far off the numbers of the headers are
    for (number, hunk) in (1..).zip(&hunks) {
        token.check()?;
        let old: Vec<&Line<'_>> = hunk.lines.iter().filter(|line| line.sign != Sign::Add).collect();
        let stated = if old.is_empty() {
            hunk.old_start
        } else {
            hunk.old_start.saturating_sub(1)
        };
        let stated = stated.saturating_add_signed(shift);
        let place = if stated >= free && fits(&lines, stated, &old) && (!old.is_empty() || stated <= lines.len()) {
            stated
        } else {
            elsewhere(&lines, free, &old, number)?
        };
        shift += place as isize - stated as isize;
        apply(hunk, place, &lines, &starts, &mut splices);
        free = place + old.len();
    }
    Ok(Plan {
        splices,
        base,
        size: bytes.len() as u64,
        matches: None,
    })
}

fn elsewhere(lines: &[&[u8]], free: usize, old: &[&Line<'_>], number: usize) -> Result<usize, Error> {
    let Some(first) = old.first() else {
        return Err(Error::new(
            ErrorKind::Conflict,
            format!("hunk {number} adds lines past the end of the file"),
        ));
    };
    let mut places = (free..lines.len()).filter(|&at| fits(lines, at, old));
    match (places.next(), places.next()) {
        (Some(place), None) => Ok(place),
        (Some(one), Some(two)) => Err(Error::new(
            ErrorKind::Conflict,
            format!(
                "hunk {number} is not where it says and fits at lines {} and {}; give more context",
                one + 1,
                two + 1
            ),
        )),
        (None, _) => {
            let near = (free..lines.len()).find(|&at| same(lines[at], first)).map(|at| {
                let bad = old
                    .iter()
                    .enumerate()
                    .find(|(i, want)| !lines.get(at + i).is_some_and(|have| same(have, want)));
                let (i, want) = bad.unwrap_or((0, first));
                let have = lines.get(at + i).map_or_else(
                    || "the end of the file".into(),
                    |l| format!("`{}`", String::from_utf8_lossy(l).trim_end()),
                );
                format!(
                    "; nearest is line {}, where `{}` is expected and {have} found",
                    at + i + 1,
                    String::from_utf8_lossy(want.text)
                )
            });
            Err(Error::new(
                ErrorKind::Conflict,
                format!(
                    "hunk {number} does not fit anywhere: context and removed lines must be exact{}",
                    near.unwrap_or_default()
                ),
            ))
        }
    }
}

/// Turns a hunk into splices, one for each run of removed and added lines, so that context keeps its own bytes.
fn apply(hunk: &Hunk<'_>, place: usize, lines: &[&[u8]], starts: &[u64], splices: &mut Vec<Splice>) {
    let mut at = place;
    let mut run: Option<(usize, usize, Vec<u8>)> = None; // first line, lines removed, bytes added
    let flush = |run: &mut Option<(usize, usize, Vec<u8>)>, splices: &mut Vec<Splice>| {
        if let Some((first, removed, bytes)) = run.take() {
            splices.push(Splice {
                start: starts[first],
                end: starts[first + removed],
                bytes: Arc::from(bytes),
            });
        }
    };
    for line in &hunk.lines {
        match line.sign {
            Sign::Context => {
                flush(&mut run, splices);
                at += 1;
            }
            Sign::Remove => {
                run.get_or_insert((at, 0, Vec::new())).1 += 1;
                at += 1;
            }
            Sign::Add => {
                let (first, _, bytes) = run.get_or_insert((at, 0, Vec::new()));
                // The line it replaces or follows, else the file's first, tells the line end.
                let like = lines
                    .get(*first)
                    .filter(|l| l.ends_with(b"\n"))
                    .or_else(|| lines.get(first.checked_sub(1)?));
                bytes.extend_from_slice(line.text);
                if line.newline {
                    let crlf = like.or(lines.first()).is_some_and(|l| l.ends_with(b"\r\n"));
                    bytes.extend_from_slice(if crlf { b"\r\n" } else { b"\n" });
                }
            }
        }
    }
    flush(&mut run, splices);
}
