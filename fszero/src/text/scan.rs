//! One pass over a source in pieces: facts, places of literal text, places of lines.

use std::io::Read;

use memchr::{memchr_iter, memmem};
use zero_contracts::{CancelToken, Digest, Error, Hasher};

/// The byte order mark of UTF-8.
pub(crate) const BOM: &[u8] = b"\xef\xbb\xbf";

/// At most this many places are named in a message.
const PLACES: usize = 10;

/// How the lines of a file end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    None,
    Lf,
    Crlf,
    Mixed,
}

/// What a pass learns about the whole source.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    pub digest: Digest,
    pub size: u64,
    pub bom: bool,
    pub final_newline: bool,
    newlines: u64,
    crlf: u64,
}

impl Facts {
    pub fn style(&self) -> Style {
        match (self.newlines, self.crlf) {
            (0, _) => Style::None,
            (_, 0) => Style::Lf,
            (all, crlf) if all == crlf => Style::Crlf,
            _ => Style::Mixed,
        }
    }
}

/// Gives the pieces of a source to `each` (with their offset) and gathers the facts.
fn pass(source: &mut dyn Read, token: &CancelToken, mut each: impl FnMut(u64, &[u8])) -> Result<Facts, Error> {
    let mut hasher = Hasher::new();
    let mut buffer = vec![0; 256 * 1024];
    let mut facts = Facts {
        digest: Digest::from_bytes([0; 32]),
        size: 0,
        bom: false,
        final_newline: false,
        newlines: 0,
        crlf: 0,
    };
    let mut head = Vec::new();
    let mut last = 0;
    loop {
        token.check()?;
        let n = match source.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => n,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(Error::from_io(&e, "reading the file that is edited")),
        };
        let piece = &buffer[..n];
        hasher.update(piece);
        if head.len() < BOM.len() {
            head.extend_from_slice(&piece[..n.min(BOM.len() - head.len())]);
        }
        for at in memchr_iter(b'\n', piece) {
            facts.newlines += 1;
            facts.crlf += u64::from(b'\r' == if at == 0 { last } else { piece[at - 1] });
        }
        last = piece[n - 1];
        each(facts.size, piece);
        facts.size += n as u64;
    }
    facts.digest = hasher.finish();
    facts.bom = head == BOM;
    facts.final_newline = last == b'\n' && facts.size > 0;
    Ok(facts)
}

/// Learns about the whole source, and nothing else.
pub(crate) fn facts(source: &mut dyn Read, token: &CancelToken) -> Result<Facts, Error> {
    pass(source, token, |_, _| {})
}

/// Where a text occurs, without overlaps, from the start.
#[derive(Clone, Debug, Default)]
pub(crate) struct Found {
    /// How often.
    pub count: u64,
    /// Offsets of the first ones.
    pub starts: Vec<u64>,
    /// Lines of the very first ones.
    pub lines: Vec<u64>,
    /// Bytes of each.
    pub length: u64,
    next: u64,
}

/// Looks for several texts at once; keeps at most `keep` offsets of each.
pub(crate) fn search(
    needles: &[&[u8]],
    keep: usize,
    source: &mut dyn Read,
    token: &CancelToken,
) -> Result<(Vec<Found>, Facts), Error> {
    let finders: Vec<_> = needles.iter().map(memmem::Finder::new).collect();
    let mut found: Vec<Found> = needles
        .iter()
        .map(|n| Found {
            length: n.len() as u64,
            ..Found::default()
        })
        .collect();
    let overlap = needles.iter().map(|n| n.len()).max().unwrap_or(1) - 1;
    let mut window: Vec<u8> = Vec::new();
    let mut base = 0_u64;
    let mut line = 1_u64; // of the window's first byte
    let facts = pass(source, token, |_, piece| {
        window.extend_from_slice(piece);
        for (finder, found) in finders.iter().zip(&mut found) {
            let mut at = found.next.saturating_sub(base) as usize;
            while let Some(offset) = window.get(at..).and_then(|rest| finder.find(rest)) {
                let start = at + offset;
                found.count += 1;
                if found.starts.len() < keep {
                    found.starts.push(base + start as u64);
                }
                if found.lines.len() < PLACES {
                    found
                        .lines
                        .push(line + memchr_iter(b'\n', &window[..start]).count() as u64);
                }
                at = start + found.length as usize;
                found.next = base + at as u64;
            }
        }
        let drop = window.len().saturating_sub(overlap);
        line += memchr_iter(b'\n', &window[..drop]).count() as u64;
        base += drop as u64;
        window.drain(..drop);
    })?;
    Ok((found, facts))
}

/// One line: its first byte, the first byte of the next, and the length of its line end (0, 1 or 2).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Line {
    pub number: u64,
    pub start: u64,
    pub next: u64,
    pub ending: u8,
}

/// The lines that were asked for.
#[derive(Debug)]
pub(crate) struct Lines {
    /// Number of lines; an empty source has one, empty.
    pub total: u64,
    pub facts: Facts,
    kept: Vec<Line>,
}

impl Lines {
    pub fn find(&self, number: u64) -> Option<Line> {
        self.kept.iter().find(|line| line.number == number).copied()
    }

    /// A line that is known to have been asked for and to exist; the last one if its number was cut to the end.
    pub fn get(&self, number: u64) -> Line {
        self.find(number)
            .or_else(|| self.kept.last().copied())
            .unwrap_or_default()
    }

    /// Offset behind the byte order mark.
    pub fn start_of_text(&self) -> u64 {
        if self.facts.bom { BOM.len() as u64 } else { 0 }
    }
}

/// Finds lines by number; the last line is always among them. Line 1 starts behind the byte order mark.
pub(crate) fn lines(wanted: &[u64], source: &mut dyn Read, token: &CancelToken) -> Result<Lines, Error> {
    let mut kept: Vec<Line> = Vec::new();
    let mut current = Line {
        number: 1,
        ..Line::default()
    };
    let mut last_full = Line::default();
    let mut before = 0_u8;
    let facts = pass(source, token, |base, piece| {
        for at in memchr_iter(b'\n', piece) {
            let previous = if at == 0 { before } else { piece[at - 1] };
            let next = base + at as u64 + 1;
            let ending = if previous == b'\r' && next - current.start >= 2 {
                2
            } else {
                1
            };
            let line = Line {
                next,
                ending,
                ..current
            };
            if wanted.contains(&line.number) {
                kept.push(line);
            }
            last_full = line;
            current = Line {
                number: line.number + 1,
                start: next,
                next,
                ending: 0,
            };
        }
        before = piece[piece.len() - 1];
    })?;
    let mut total = current.number;
    if current.start < facts.size || facts.size == 0 {
        current.next = facts.size;
        kept.push(current);
    } else {
        total -= 1;
        if kept.last().map(|line| line.number) != Some(last_full.number) {
            kept.push(last_full);
        }
    }
    if facts.bom {
        for line in kept.iter_mut().filter(|line| line.number == 1) {
            line.start = BOM.len() as u64;
        }
    }
    Ok(Lines { total, facts, kept })
}

/// Says what in the first mebibyte is nearest to a text that does not occur.
pub(crate) fn nearest(text: &str, source: &mut dyn Read) -> Option<String> {
    let mut head = Vec::new();
    source.take(1 << 20).read_to_end(&mut head).ok()?;
    let head = String::from_utf8_lossy(&head);
    let wanted = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    let squeezed = |s: &str| s.split_whitespace().collect::<Vec<_>>().join(" ");
    let wanted = squeezed(wanted);
    let pairs = |s: &str| -> Vec<(char, char)> {
        let mut all: Vec<_> = s.chars().zip(s.chars().skip(1)).take(400).collect();
        all.sort_unstable();
        all
    };
    let own = pairs(&wanted);
    let mut best: Option<(f64, u64, String)> = None;
    for (number, line) in (1..).zip(head.lines()).take(20_000) {
        let squeezed = squeezed(line);
        if squeezed.is_empty() {
            continue;
        }
        // Sørensen–Dice over pairs of characters.
        let score = if squeezed == wanted {
            1.0
        } else {
            let theirs = pairs(&squeezed);
            if own.is_empty() || theirs.len() > own.len() * 4 || own.len() > theirs.len() * 4 {
                continue;
            }
            2.0 * common(&own, &theirs) as f64 / (own.len() + theirs.len()) as f64
        };
        if score > 0.5 && best.as_ref().is_none_or(|(most, ..)| score > *most) {
            best = Some((score, number, line.trim().chars().take(200).collect()));
        }
    }
    best.map(|(score, number, line)| {
        if score == 1.0 {
            format!("line {number} is the same but for white space or what follows it: `{line}`")
        } else {
            format!("nearest is line {number}: `{line}`")
        }
    })
}

fn common<T: Ord>(a: &[T], b: &[T]) -> usize {
    let (mut i, mut j, mut n) = (0, 0, 0);
    while i < a.len() && j < b.len() {
        match a[i].cmp(&b[j]) {
            std::cmp::Ordering::Less => i += 1,
            std::cmp::Ordering::Greater => j += 1,
            std::cmp::Ordering::Equal => (i, j, n) = (i + 1, j + 1, n + 1),
        }
    }
    n
}
