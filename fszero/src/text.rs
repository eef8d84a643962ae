//! Text edits as pure functions: a change and a source give splices, and splices and a source give the new bytes.
//!
//! Sources are read front to back in pieces, as often as needed, so a file of any size is edited in little memory. What
//! a change does not name is kept byte for byte: byte order mark, newline style, final newline, bytes outside UTF-8.
//!
//! * Line ends: in a file whose lines all end in `\r\n`, a lone `\n` in the text to find, to insert or in a patch stands
//!   for `\r\n`. In a file that mixes both, text is looked for as given first and with `\r\n` second, and inserted lines
//!   end as their neighbour does. Elsewhere text is taken as given. Bytes (rather than text) are always taken as given.
//! * The final newline: a file that lacks one still lacks it after `lines` or an insertion at its end, and the other way
//!   round; only an emptied file has none and an empty one takes what it gets.
//! * Whole content (`content`) that is text keeps the file's byte order mark and its newline style, if all lines have the
//!   same; its own end is the file's. `create` and bytes are taken as given.

pub(crate) mod diff;
pub(crate) mod patch;
pub(crate) mod scan;

use std::io::{Read, Write};
use std::sync::Arc;

use zero_contracts::edit::{Anchor, Change, Count};
use zero_contracts::{CancelToken, Content, Digest, Error, ErrorKind, Hasher, LineRange};

use scan::{Found, Lines, Style};

/// Opens the source anew, from its start.
pub(crate) type Open<'a> = &'a dyn Fn() -> Result<Box<dyn Read + Send>, Error>;

/// Bytes that stand in for a range of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Splice {
    pub start: u64,
    pub end: u64,
    pub bytes: Arc<[u8]>,
}

/// What a change comes to on one source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// In order, without overlap.
    pub splices: Vec<Splice>,
    /// Digest of the source that was planned on.
    pub base: Digest,
    pub size: u64,
    /// Number of replacements, for `find`.
    pub matches: Option<u64>,
}

/// A patch is applied in memory: up to this many bytes of source.
pub(crate) const PATCH_BYTES: u64 = 256 << 20;

/// Finds out what a change comes to. Only changes that edit text: not `create`, `content`, `remove`, `mode`.
///
/// # Errors
/// `conflict` with the places or the nearest text; `invalid_input` for a line past the end, an empty search text or a
/// malformed patch.
pub(crate) fn plan(change: &Change, open: Open<'_>, token: &CancelToken) -> Result<Plan, Error> {
    match change {
        Change::Replace {
            find,
            replacement,
            count,
        } => replace(find, replacement, *count, open, token),
        Change::Lines { lines, content } => replace_lines(*lines, content, open, token),
        Change::InsertBefore { anchor, content } => insert(anchor, content, true, open, token),
        Change::InsertAfter { anchor, content } => insert(anchor, content, false, open, token),
        Change::Patch { patch } => patch::plan(patch.as_bytes(), open, token),
        _ => Err(Error::new(ErrorKind::Internal, "not a change of text")),
    }
}

/// Copies the source with its splices applied; returns the digest of the source as it was copied.
pub(crate) fn splice(
    splices: &[Splice],
    source: &mut dyn Read,
    sink: &mut dyn Write,
    token: &CancelToken,
) -> Result<Digest, Error> {
    let mut hasher = Hasher::new();
    let mut buffer = vec![0; 256 * 1024];
    let mut at = 0_u64;
    let mut rest = splices.iter().peekable();
    let put = |sink: &mut dyn Write, bytes: &[u8]| sink.write_all(bytes).map_err(crate::store::from_writer);
    loop {
        token.check()?;
        let n = match source.read(&mut buffer) {
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => continue,
            other => other.map_err(|e| Error::from_io(&e, "reading what is copied"))?,
        };
        let end = at + n as u64;
        hasher.update(&buffer[..n]);
        let mut from = at;
        // A splice is written where it starts; the part it replaces may go on over several pieces.
        while let Some(splice) = rest.peek() {
            if splice.start > end || (splice.start == end && n > 0) {
                break;
            }
            if splice.start >= at {
                put(sink, &buffer[(from - at) as usize..(splice.start - at) as usize])?;
                put(sink, &splice.bytes)?;
            }
            from = splice.end.min(end);
            if splice.end > end {
                break;
            }
            rest.next();
        }
        if from < end {
            put(sink, &buffer[(from - at) as usize..n])?;
        }
        if n == 0 {
            return Ok(hasher.finish());
        }
        at = end;
    }
}

/// Writes `\r\n` for every lone `\n`.
pub(crate) fn with_crlf(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 8);
    let mut previous = 0;
    for &byte in text {
        if byte == b'\n' && previous != b'\r' {
            out.push(b'\r');
        }
        out.push(byte);
        previous = byte;
    }
    out
}

fn changed_meanwhile() -> Error {
    Error::new(ErrorKind::Conflict, "the file changed while it was edited; try again").retryable(true)
}

/// What text or bytes come to in a file of one newline style.
fn styled(content: &Content, crlf: bool) -> Vec<u8> {
    match content {
        Content::Text(text) if crlf => with_crlf(text.as_bytes()),
        other => other.as_bytes().to_vec(),
    }
}

/// What whole content comes to in place of a source.
///
/// # Errors
/// Those of reading the source.
pub(crate) fn whole(content: &Content, open: Open<'_>, token: &CancelToken) -> Result<Vec<u8>, Error> {
    let Content::Text(text) = content else {
        return Ok(content.as_bytes().to_vec());
    };
    let facts = scan::facts(&mut *open()?, token)?;
    let bytes = styled(content, facts.style() == Style::Crlf);
    if facts.bom && !text.is_empty() && !bytes.starts_with(scan::BOM) {
        return Ok([scan::BOM, &bytes].concat());
    }
    Ok(bytes)
}

fn blank(text: &Content) -> Result<(), Error> {
    if text.is_blank() {
        return Err(Error::invalid(
            "the text to look for is empty or white space only: it would match nearly anywhere",
        )
        .with_path("find"));
    }
    Ok(())
}

/// Looks for text as given, and as it would be in a file with `\r\n`; returns what counts, and whether it is the latter.
fn locate(
    text: &Content,
    keep: usize,
    open: Open<'_>,
    token: &CancelToken,
) -> Result<(Found, bool, scan::Facts), Error> {
    let other = Some(styled(text, true)).filter(|crlf| crlf != text.as_bytes());
    let mut needles = vec![text.as_bytes()];
    needles.extend(other.as_deref());
    let (mut found, facts) = scan::search(&needles, keep, &mut *open()?, token)?;
    let crlf = match found.get(1) {
        Some(second) => match facts.style() {
            Style::Crlf => true,
            Style::Mixed => found[0].count == 0 && second.count > 0,
            Style::None | Style::Lf => false,
        },
        None => false,
    };
    Ok((found.swap_remove(usize::from(crlf)), crlf, facts))
}

fn replace(
    find: &Content,
    replacement: &Content,
    count: Count,
    open: Open<'_>,
    token: &CancelToken,
) -> Result<Plan, Error> {
    blank(find)?;
    let keep = match count {
        Count::One => 1,
        Count::Exactly(n) => usize::try_from(n).unwrap_or(usize::MAX),
        Count::All => usize::MAX,
    };
    let (found, crlf, facts) = locate(find, keep, open, token)?;
    let wanted = match count {
        Count::One => 1,
        Count::Exactly(n) => n,
        Count::All => found.count.max(1),
    };
    if found.count != wanted {
        return Err(mismatch(find, &found, wanted, open));
    }
    let bytes: Arc<[u8]> = styled(replacement, crlf || facts.style() == Style::Crlf).into();
    let length = found.length;
    let splice = |&start: &u64| Splice {
        start,
        end: start + length,
        bytes: Arc::clone(&bytes),
    };
    Ok(Plan {
        splices: found.starts.iter().map(splice).collect(),
        base: facts.digest,
        size: facts.size,
        matches: Some(found.count),
    })
}

fn mismatch(text: &Content, found: &Found, wanted: u64, open: Open<'_>) -> Error {
    let detail = if found.count == 0 {
        let text = String::from_utf8_lossy(text.as_bytes());
        match open().ok().and_then(|mut source| scan::nearest(&text, &mut source)) {
            Some(near) => format!("the text does not occur; {near}"),
            None => "the text does not occur, nor anything near it; read the file again".into(),
        }
    } else {
        let places: Vec<String> = found.lines.iter().map(u64::to_string).collect();
        let more = if found.count > found.lines.len() as u64 {
            ", …"
        } else {
            ""
        };
        let (plural, verb) = if found.count == 1 { ("", "is") } else { ("es", "are") };
        format!(
            "there {verb} {} match{plural} (line{} {}{more}) where {wanted} {} expected; give more of the surrounding text, or `count`",
            found.count,
            if places.len() == 1 { "" } else { "s" },
            places.join(", "),
            if wanted == 1 { "was" } else { "were" },
        )
    };
    Error::new(ErrorKind::Conflict, detail)
}

fn strip_newline(bytes: &mut Vec<u8>) {
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
        if bytes.last() == Some(&b'\r') {
            bytes.pop();
        }
    }
}

/// A mark at the start of inserted text would end up inside the file, or double.
fn without_bom(bytes: Vec<u8>) -> Vec<u8> {
    bytes
        .strip_prefix(scan::BOM)
        .map_or_else(|| bytes.clone(), <[u8]>::to_vec)
}

fn replace_lines(range: LineRange, content: &Content, open: Open<'_>, token: &CancelToken) -> Result<Plan, Error> {
    let wanted = [range.first() - 1, range.first(), range.last()];
    let lines = scan::lines(&wanted, &mut *open()?, token)?;
    let range = range.within(lines.total)?;
    let empty = lines.facts.size == 0;
    let first = lines.get(range.first());
    let last = lines.get(range.last());
    let newline = neighbour(&lines, &[range.first(), range.first() - 1]);
    let mut bytes = styled(content, newline.is_some_and(|ending| ending == 2));
    if lines.facts.bom && range.first() == 1 {
        bytes = without_bom(bytes);
    }
    let mut start = first.start;
    if !bytes.is_empty() && !empty {
        match last.ending {
            // A single empty line cannot be the last one without a line end: then it gets one.
            0 if !matches!(&bytes[..], b"\n" | b"\r\n") => strip_newline(&mut bytes),
            0 => {}
            ending if bytes.last() != Some(&b'\n') => bytes.extend_from_slice(newline_of(ending)),
            _ => {}
        }
    }
    if bytes.is_empty() && last.ending == 0 && range.first() > 1 && !empty {
        // The file has no final newline: the line that becomes the last must not get one.
        start -= u64::from(lines.get(range.first() - 1).ending);
    }
    Ok(one_splice(start, last.next, bytes, &lines))
}

fn one_splice(start: u64, end: u64, bytes: Vec<u8>, lines: &Lines) -> Plan {
    let splices = if start == end && bytes.is_empty() {
        Vec::new()
    } else {
        vec![Splice {
            start,
            end,
            bytes: bytes.into(),
        }]
    };
    Plan {
        splices,
        base: lines.facts.digest,
        size: lines.facts.size,
        matches: None,
    }
}

fn newline_of(ending: u8) -> &'static [u8] {
    if ending == 2 { b"\r\n" } else { b"\n" }
}

/// The line end that the first of these lines with one has; else the file's.
fn neighbour(lines: &Lines, candidates: &[u64]) -> Option<u8> {
    let near = candidates
        .iter()
        .filter_map(|&n| lines.find(n))
        .map(|line| line.ending)
        .find(|&ending| ending > 0);
    near.or(match lines.facts.style() {
        Style::Crlf => Some(2),
        Style::None => None,
        Style::Lf | Style::Mixed => Some(1),
    })
}

fn insert(
    anchor: &Anchor,
    content: &Content,
    before: bool,
    open: Open<'_>,
    token: &CancelToken,
) -> Result<Plan, Error> {
    let line = match anchor {
        Anchor::Line(line) => *line,
        Anchor::Text(text) => {
            blank(text)?;
            let (found, crlf, _) = locate(text, 1, open, token)?;
            if found.count != 1 {
                return Err(mismatch(text, &found, 1, open));
            }
            let needle = styled(text, crlf);
            let within = memchr::memchr_iter(b'\n', &needle[..needle.len() - 1]).count() as u64;
            found.lines[0] + if before { 0 } else { within }
        }
    };
    let lines = scan::lines(&[line.saturating_sub(1), line], &mut *open()?, token)?;
    if line > lines.total || (before && line == 0) {
        return Err(Error::invalid(format!(
            "there is no line {line}: the file has {} lines",
            lines.total
        )));
    }
    let newline = neighbour(&lines, &[line, line.saturating_sub(1)]);
    let mut bytes = styled(content, newline == Some(2));
    let first = if line == 0 { 0 } else { lines.get(line).start };
    let at = match (before, line) {
        (_, 0) => lines.start_of_text(),
        (true, _) => first,
        (false, _) => lines.get(line).next,
    };
    if lines.facts.bom && at <= scan::BOM.len() as u64 {
        bytes = without_bom(bytes);
    }
    if bytes.is_empty() || lines.facts.size == lines.start_of_text() {
        return Ok(one_splice(at, at, bytes, &lines));
    }
    let at_end = at == lines.facts.size;
    if at_end && !lines.facts.final_newline {
        // After a last line that has no newline: that one gets one, and the new last line none.
        strip_newline(&mut bytes);
        let mut with = newline_of(newline.unwrap_or(1)).to_vec();
        with.extend_from_slice(&bytes);
        bytes = with;
    } else if bytes.last() != Some(&b'\n') {
        bytes.extend_from_slice(newline_of(newline.unwrap_or(1)));
    }
    Ok(one_splice(at, at, bytes, &lines))
}

/// Fails with a retryable `conflict` unless the bytes that were spliced are those that were planned on.
pub(crate) fn check_base(plan: &Plan, copied: &Digest) -> Result<(), Error> {
    if plan.base == *copied {
        Ok(())
    } else {
        Err(changed_meanwhile())
    }
}

#[cfg(test)]
mod tests;
