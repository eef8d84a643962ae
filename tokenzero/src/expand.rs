//! Brings parts of an object back: by bytes, lines, JSON pointer or literal text, as much as a budget allows.

use std::io::Read;

use zero_contracts::tokens::{Expansion, Selector};
use zero_contracts::{ByteRange, CancelToken, Content, Digest, Error, ErrorKind, LineRange, ObjectStore};

use crate::counter::LONGEST_TOKEN;
use crate::json::{Tree, pointer};
use crate::measure::Measure;
use crate::retained::boundary;

/// Bytes read at once.
const CHUNK: usize = 128 * 1024;

/// A part, found but not yet cut to the budget.
struct Part {
    bytes: ByteRange,
    /// The line its first byte lies on.
    first_line: u64,
    /// What the selector goes on with after this part, if it has more.
    next: Option<Selector>,
}

/// Expands a selector.
///
/// # Errors
/// `not_found` for the object, a pointer or a text that is not there, `invalid_input` for a range past the end or a budget
/// below one character; the store's errors; `cancelled` and `deadline`.
pub(crate) fn expand(
    measure: &Measure,
    object: &Digest,
    selector: &Selector,
    budget: Option<u64>,
    objects: &dyn ObjectStore,
    token: &CancelToken,
) -> Result<Expansion, Error> {
    token.check()?;
    let size = objects.size(object)?.ok_or_else(|| {
        Error::new(
            ErrorKind::NotFound,
            format!("there is no object {object} (collected, or never stored)"),
        )
    })?;
    let part = match selector {
        Selector::Bytes(range) => {
            let bytes = range.within(size)?;
            let first_line = 1 + feeds_before(object, bytes.start(), objects, token)?;
            Part {
                bytes,
                first_line,
                next: None,
            }
        }
        Selector::Lines(range) => lines(object, *range, objects, token)?,
        Selector::Pointer(text) => at_pointer(object, text, objects)?,
        Selector::Match(text) => matching(object, text, 0, objects, token)?,
        Selector::MatchFrom(text, from) => matching(object, text, *from, objects, token)?,
    };
    cut(measure, object, selector, part, budget, objects, token)
}

/// Reads the part and cuts it to the budget.
fn cut(
    measure: &Measure,
    object: &Digest,
    selector: &Selector,
    part: Part,
    budget: Option<u64>,
    objects: &dyn ObjectStore,
    token: &CancelToken,
) -> Result<Expansion, Error> {
    // No token is longer, so a budget never needs more than this.
    let wanted = budget.map_or(part.bytes.len(), |budget| {
        part.bytes
            .len()
            .min(budget.saturating_mul(LONGEST_TOKEN).saturating_add(LONGEST_TOKEN))
    });
    let range = ByteRange::new(part.bytes.start(), part.bytes.start() + wanted)?;
    let mut bytes = objects.get_range(object, range)?;
    token.check()?;
    let mut tokens = measure.count(&String::from_utf8_lossy(&bytes));
    if let Some(budget) = budget
        && (tokens > budget || wanted < part.bytes.len())
    {
        let (length, cost) = longest_prefix(measure, &bytes, budget);
        if length == 0 && !bytes.is_empty() {
            return Err(Error::invalid(format!(
                "a budget of {budget} tokens is below the next character; give at least 4"
            ))
            .with_path("budget"));
        }
        bytes.truncate(length);
        tokens = cost;
    }
    let end = range.start() + bytes.len() as u64;
    let feeds = memchr::memchr_iter(b'\n', &bytes).count() as u64;
    let on_line_start = bytes.last() == Some(&b'\n');
    let next = if end < part.bytes.end() {
        let next_line = part.first_line + feeds;
        match selector {
            Selector::Lines(lines) if on_line_start && next_line <= lines.last() => {
                Some(Selector::Lines(LineRange::new(next_line, lines.last())?))
            }
            Selector::Match(text) | Selector::MatchFrom(text, _) if on_line_start => {
                Some(Selector::MatchFrom(text.clone(), end))
            }
            _ => Some(Selector::Bytes(ByteRange::new(end, part.bytes.end())?)),
        }
    } else {
        part.next
    };
    let content = Content::from_bytes(bytes);
    let lines = match &content {
        Content::Text(_) => {
            let last = part.first_line + feeds - u64::from(on_line_start && feeds > 0);
            Some(LineRange::new(part.first_line, last.max(part.first_line))?)
        }
        Content::Bytes(_) => None,
    };
    Ok(Expansion {
        content,
        bytes: ByteRange::new(range.start(), end)?,
        lines,
        tokens: measure.label(tokens),
        next,
    })
}

/// Returns the longest prefix that fits the budget: whole lines where at least half of it fills with them, else whole
/// characters.
fn longest_prefix(measure: &Measure, bytes: &[u8], budget: u64) -> (usize, u64) {
    let cost = |length: usize| measure.count(&String::from_utf8_lossy(&bytes[..length]));
    let (mut low, mut high) = (0, bytes.len());
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        let text = String::from_utf8_lossy(&bytes[..boundary(bytes, 0, middle)]);
        if measure.count_within(&text, budget).is_some() {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    let whole = match boundary(bytes, 0, low) {
        // Bytes that are no text may have no boundary.
        0 if !bytes.is_empty() && bytes[0] & 0xc0 == 0x80 => low,
        place => place,
    };
    if let Some(feed) = memchr::memrchr(b'\n', &bytes[..whole])
        && feed + 1 >= whole / 2
    {
        let line_cost = cost(feed + 1);
        if line_cost <= budget {
            return (feed + 1, line_cost);
        }
    }
    (whole, cost(whole))
}

/// Reads an object in pieces: each with its offset, until the visitor is done or the end is reached.
fn pieces(
    object: &Digest,
    objects: &dyn ObjectStore,
    token: &CancelToken,
    mut visit: impl FnMut(u64, &[u8]) -> bool,
) -> Result<(), Error> {
    let mut reader = objects.open(object)?;
    let mut buffer = vec![0; CHUNK];
    let mut at = 0;
    loop {
        token.check()?;
        let read = match reader.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(read) => read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {
                return Err(Error::new(ErrorKind::Corrupt, format!("reading {object}: {error}")));
            }
            Err(error) => return Err(Error::from_io(&error, format!("reading {object}"))),
        };
        if !visit(at, &buffer[..read]) {
            return Ok(());
        }
        at += read as u64;
    }
}

fn feeds_before(object: &Digest, end: u64, objects: &dyn ObjectStore, token: &CancelToken) -> Result<u64, Error> {
    let mut feeds = 0;
    if end > 0 {
        pieces(object, objects, token, |at, bytes| {
            let wanted = usize::try_from(end.saturating_sub(at))
                .unwrap_or(usize::MAX)
                .min(bytes.len());
            feeds += memchr::memchr_iter(b'\n', &bytes[..wanted]).count() as u64;
            at + (bytes.len() as u64) < end
        })?;
    }
    Ok(feeds)
}

fn lines(object: &Digest, range: LineRange, objects: &dyn ObjectStore, token: &CancelToken) -> Result<Part, Error> {
    let (mut line, mut start, mut end, mut size) = (1, None, None, 0);
    if range.first() == 1 {
        start = Some(0);
    }
    let mut open_line = false;
    pieces(object, objects, token, |at, bytes| {
        size = at + bytes.len() as u64;
        open_line = bytes.last() != Some(&b'\n');
        for feed in memchr::memchr_iter(b'\n', bytes) {
            line += 1;
            let place = at + feed as u64 + 1;
            if line == range.first() {
                start = Some(place);
            }
            if line == range.last().saturating_add(1) {
                end = Some(place);
                return false;
            }
        }
        true
    })?;
    // A last line feed does not begin another line; an empty content has one empty line.
    let lines = if open_line { line } else { (line - 1).max(1) };
    if end.is_none() {
        range.within(lines)?;
    }
    Ok(Part {
        bytes: ByteRange::new(start.unwrap_or(size), end.unwrap_or(size))?,
        first_line: range.first(),
        next: None,
    })
}

fn at_pointer(object: &Digest, text: &str, objects: &dyn ObjectStore) -> Result<Part, Error> {
    let bytes = objects.get(object)?;
    let json = str::from_utf8(&bytes).ok().and_then(Tree::parse).ok_or_else(|| {
        Error::invalid("the object is no JSON text, so a pointer leads nowhere; use lines, bytes or match")
            .with_path("pointer")
    })?;
    let found = pointer(&json, text)?;
    Ok(Part {
        first_line: 1 + memchr::memchr_iter(b'\n', &bytes[..found.start]).count() as u64,
        bytes: ByteRange::new(found.start as u64, found.end as u64)?,
        next: None,
    })
}

/// Finds the first lines in a row, from an offset on, that hold the text.
fn matching(
    object: &Digest,
    text: &str,
    from: u64,
    objects: &dyn ObjectStore,
    token: &CancelToken,
) -> Result<Part, Error> {
    if text.is_empty() || text.contains('\n') {
        return Err(Error::invalid("a match is a text of at least one character, within one line").with_path("match"));
    }
    let finder = memchr::memmem::Finder::new(text);
    let mut search = Matching {
        finder: &finder,
        from,
        line: 1,
        carry: Vec::new(),
        carry_at: 0,
        found: None,
        more: None,
    };
    pieces(object, objects, token, |at, bytes| search.take(at, bytes))?;
    search.end();
    let (start, end, first_line) = search
        .found
        .ok_or_else(|| Error::new(ErrorKind::NotFound, format!("no line holds `{text}`")).with_path("match"))?;
    Ok(Part {
        bytes: ByteRange::new(start, end)?,
        first_line,
        next: search.more.map(|place| Selector::MatchFrom(text.to_owned(), place)),
    })
}

struct Matching<'a> {
    finder: &'a memchr::memmem::Finder<'a>,
    from: u64,
    line: u64,
    /// The line whose end was not read yet, and where it starts.
    carry: Vec<u8>,
    carry_at: u64,
    /// Start, end and first line of the lines found.
    found: Option<(u64, u64, u64)>,
    /// Start of the next line that holds the text.
    more: Option<u64>,
}

impl Matching<'_> {
    fn take(&mut self, at: u64, bytes: &[u8]) -> bool {
        let mut start = 0;
        while let Some(feed) = memchr::memchr(b'\n', &bytes[start..]) {
            let end = start + feed + 1;
            let goes_on = if self.carry.is_empty() {
                self.line(at + start as u64, &bytes[start..end])
            } else {
                let mut line = std::mem::take(&mut self.carry);
                line.extend_from_slice(&bytes[start..end]);
                self.line(self.carry_at, &line)
            };
            if !goes_on {
                return false;
            }
            start = end;
        }
        if self.carry.is_empty() {
            self.carry_at = at + start as u64;
        }
        self.carry.extend_from_slice(&bytes[start..]);
        true
    }

    fn end(&mut self) {
        let line = std::mem::take(&mut self.carry);
        if !line.is_empty() && self.more.is_none() {
            self.line(self.carry_at, &line);
        }
    }

    /// Looks at one line; tells whether to go on.
    fn line(&mut self, start: u64, bytes: &[u8]) -> bool {
        let end = start + bytes.len() as u64;
        let number = self.line;
        self.line += 1;
        if start < self.from || self.finder.find(bytes).is_none() {
            return true;
        }
        match &mut self.found {
            None => self.found = Some((start, end, number)),
            Some((_, last, _)) if *last == start => *last = end,
            Some(_) => {
                self.more = Some(start);
                return false;
            }
        }
        true
    }
}
