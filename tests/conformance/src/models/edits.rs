//! Changes of one file's bytes, the simple way.

use zero_contracts::edit::{Anchor, Change, Count};
use zero_contracts::{Content, Error, ErrorKind};

fn conflict(why: impl Into<String>) -> Error {
    Error::new(ErrorKind::Conflict, why)
}

/// This engine is simple: it looks for text alone.
fn as_text(content: &Content) -> Result<&str, Error> {
    std::str::from_utf8(content.as_bytes())
        .map_err(|_| Error::new(ErrorKind::Unsupported, "bytes that are no text are not looked for"))
}

/// The lines of a content with their ends; a byte order mark stands before them.
struct Lines {
    bom: bool,
    lines: Vec<Vec<u8>>,
    crlf: bool,
}

const BOM: &[u8] = b"\xef\xbb\xbf";

impl Lines {
    fn of(bytes: &[u8]) -> Self {
        let rest = bytes.strip_prefix(BOM);
        let text = rest.unwrap_or(bytes);
        Self {
            bom: rest.is_some(),
            lines: text
                .split_inclusive(|byte| *byte == b'\n')
                .map(<[u8]>::to_vec)
                .collect(),
            crlf: text.windows(2).any(|pair| pair == b"\r\n"),
        }
    }

    fn end(&self) -> &'static [u8] {
        if self.crlf { b"\r\n" } else { b"\n" }
    }

    /// Content in the file's own newline style.
    fn styled(&self, content: &[u8]) -> Vec<u8> {
        let plain: Vec<u8> = content.iter().copied().filter(|byte| *byte != b'\r').collect();
        let lines: Vec<&[u8]> = plain.split(|byte| *byte == b'\n').collect();
        lines.join(self.end())
    }

    fn insert(&mut self, at: usize, content: &[u8]) {
        let mut new = self.styled(content);
        if at == self.lines.len()
            && let Some(last) = self.lines.last_mut().filter(|last| !last.ends_with(b"\n"))
        {
            last.extend_from_slice(if self.crlf { b"\r\n" } else { b"\n" });
        } else if !new.ends_with(b"\n") {
            new.extend_from_slice(self.end());
        }
        self.lines.insert(at, new);
    }

    fn line_of(&self, anchor: &Anchor) -> Result<usize, Error> {
        match anchor {
            Anchor::Line(line) if *line as usize <= self.lines.len() => Ok(*line as usize),
            Anchor::Line(line) => Err(Error::invalid(format!("there is no line {line}"))),
            Anchor::Text(text) => {
                let text = as_text(text)?;
                let holds = |line: &Vec<u8>| String::from_utf8_lossy(line).matches(text).count();
                let hits: Vec<usize> = (0..self.lines.len()).filter(|n| holds(&self.lines[*n]) > 0).collect();
                match hits[..] {
                    [hit] if holds(&self.lines[hit]) == 1 => Ok(hit + 1),
                    _ => Err(conflict(format!("{text:?} occurs in {} lines, not once", hits.len()))),
                }
            }
        }
    }

    fn into_bytes(self) -> Vec<u8> {
        let mut bytes = if self.bom { BOM.to_vec() } else { Vec::new() };
        bytes.extend(self.lines.concat());
        bytes
    }
}

fn replace(bytes: &[u8], find: &str, replacement: &str, count: Count) -> Result<Vec<u8>, Error> {
    let text = std::str::from_utf8(bytes).map_err(|_| Error::invalid("the file is not text"))?;
    let hits = text.matches(find).count();
    let wanted = match count {
        Count::One => 1,
        Count::Exactly(n) => n as usize,
        Count::All => hits.max(1),
    };
    if hits != wanted {
        return Err(conflict(format!("{find:?} occurs {hits} times, not {wanted}")));
    }
    Ok(text.replace(find, replacement).into_bytes())
}

/// One hunk after another, each exactly where it says.
fn patch(bytes: &[u8], patch: &str) -> Result<Vec<u8>, Error> {
    let mut lines = Lines::of(bytes);
    let mut moved = 0_i64;
    let mut at: Option<usize> = None;
    for line in patch.lines() {
        if let Some(head) = line.strip_prefix("@@ -") {
            let first: i64 = head
                .split([',', ' '])
                .next()
                .and_then(|first| first.parse().ok())
                .ok_or_else(|| Error::invalid("a hunk does not say where it stands"))?;
            at = usize::try_from(first - 1 + moved).ok();
            continue;
        }
        let Some(here) = at else { continue };
        let (sign, text) = line.split_at(line.len().min(1));
        let found = lines
            .lines
            .get(here)
            .map(|line| String::from_utf8_lossy(line).trim_end().to_owned());
        match sign {
            "+" => {
                lines.insert(here, text.as_bytes());
                moved += 1;
                at = Some(here + 1);
            }
            _ if found.as_deref() != Some(text.trim_end()) => {
                return Err(conflict(format!("line {} is not {text:?}", here + 1)));
            }
            "-" => {
                lines.lines.remove(here);
                moved -= 1;
            }
            _ => at = Some(here + 1),
        }
    }
    match at {
        Some(_) => Ok(lines.into_bytes()),
        None => Err(Error::invalid("the patch has no hunk")),
    }
}

/// The new content of a file that is there; none for a change that is not one of content.
pub(crate) fn changed(bytes: &[u8], change: &Change) -> Result<Option<Vec<u8>>, Error> {
    let mut lines = Lines::of(bytes);
    Ok(Some(match change {
        Change::Replace {
            find,
            replacement,
            count,
        } => replace(bytes, as_text(find)?, as_text(replacement)?, *count)?,
        Change::Lines { lines: range, content } => {
            let range = range.within(lines.lines.len() as u64)?;
            let (first, last) = (range.first() as usize - 1, range.last() as usize);
            let mut new = lines.styled(content.as_bytes());
            let open_end = last == lines.lines.len() && !lines.lines[last - 1].ends_with(b"\n");
            if !new.is_empty() && !new.ends_with(b"\n") && !open_end {
                new.extend_from_slice(lines.end());
            }
            lines.lines.splice(first..last, [new]);
            lines.into_bytes()
        }
        Change::InsertBefore { anchor, content } => {
            let line = lines.line_of(anchor)?;
            lines.insert(line - 1, content.as_bytes());
            lines.into_bytes()
        }
        Change::InsertAfter { anchor, content } => {
            let line = lines.line_of(anchor)?;
            lines.insert(line, content.as_bytes());
            lines.into_bytes()
        }
        Change::Patch { patch: hunks } => patch(bytes, as_text(hunks)?)?,
        Change::Content { content } => content.as_bytes().to_vec(),
        Change::Create { .. } | Change::Remove | Change::Mode { .. } => return Ok(None),
    }))
}
