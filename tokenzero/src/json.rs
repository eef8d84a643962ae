//! Projects JSON text: what is shown is valid JSON of the same shape, with marks inside.
//!
//! Every kept byte is the original's, and every cut is one run of its bytes, so what is shown and the cuts together are
//! exactly the original. Objects stay objects, arrays stay arrays, strings stay strings:
//! * the inside of a string: `"begin[cut bytes 120-932]end"`;
//! * elements of an array: one string element, `"[cut 98 items, bytes 120-9320]"`;
//! * members of an object: one member, `"[cut 12 members]": "bytes 120-9320"`.
//!
//! Sizes are handed out in bytes, from the outside in: a container gives each part its size up to a common level that
//! just fills what the container was given. The whole is written and counted exactly, and the number of bytes to hand out
//! is searched until the budget is full.

mod allot;
mod spans;

use std::ops::Range;

use zero_contracts::{CancelToken, Error};

pub(crate) use spans::{Kind, Tree, pointer};

/// How many cuts are opened once more at the end.
const OPENED: usize = 12;

/// What a cut inside JSON left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    pub bytes: Range<usize>,
    pub what: What,
    /// The string that was cut, or the first of the elements or members.
    pub node: usize,
}

/// The kind of part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// Characters of a string.
    Text,
    /// Elements of an array.
    Items(usize),
    /// Members of an object. A key may already be taken, then the mark's key gets this many spaces.
    Members(usize, usize),
}

impl Cut {
    /// Returns what stands in its place.
    pub(crate) fn text(&self) -> String {
        let Range { start, end } = self.bytes;
        match self.what {
            What::Text => format!("[cut bytes {start}-{end}]"),
            What::Items(count) => format!("\"[cut {}, bytes {start}-{end}]\"", plural(count, "item")),
            What::Members(count, spaces) => {
                format!(
                    "\"[cut {}]{}\":\"bytes {start}-{end}\"",
                    plural(count, "member"),
                    " ".repeat(spaces)
                )
            }
        }
    }
}

fn plural(count: usize, word: &str) -> String {
    format!("{count} {word}{}", if count == 1 { "" } else { "s" })
}

/// Writes a text with cuts (in order, apart from each other) replaced by their marks.
fn marked(text: &str, cuts: &[Cut]) -> String {
    write(text, cuts.iter().map(|cut| (cut.bytes.clone(), cut.text())))
}

/// Writes a text with parts of it (in order, apart from each other) replaced.
pub(crate) fn write(text: &str, parts: impl Iterator<Item = (Range<usize>, String)>) -> String {
    let mut out = String::new();
    let mut at = 0;
    for (bytes, part) in parts {
        out.push_str(&text[at..bytes.start]);
        out.push_str(&part);
        at = bytes.end;
    }
    out.push_str(&text[at..]);
    out
}

/// A projection: its cuts, the text with their marks, and its tokens.
type Chosen = (Vec<Cut>, String, u64);

/// Chooses the cuts that fill a budget best. `cost` gives the tokens of a written projection, and may give any number above
/// the budget for one that is above it.
///
/// Returns none if even the smallest projection does not fit.
///
/// # Errors
/// `cancelled` and `deadline` from the token.
pub(crate) fn choose(
    tree: &Tree<'_>,
    budget: u64,
    cost: impl Fn(&str) -> u64,
    token: &CancelToken,
) -> Result<Option<Chosen>, Error> {
    let attempt = |bytes: usize| {
        let cuts = allot::cuts(tree, bytes);
        let text = marked(tree.text, &cuts);
        let tokens = cost(&text);
        (cuts, text, tokens)
    };
    let mut best: Option<Chosen> = None;
    let keep = |found: Chosen, best: &mut Option<Chosen>| {
        let fits = found.2 <= budget;
        if fits && best.as_ref().is_none_or(|known| known.2 < found.2) {
            *best = Some(found);
        }
        fits
    };
    // A token is at most 128 bytes; most are about four.
    let (mut low, mut high) = (0, tree.text.len().min((budget as usize).saturating_mul(128)));
    let mut guess = high.min((budget as usize).saturating_mul(4));
    while low < high {
        token.check()?;
        if keep(attempt(guess), &mut best) {
            low = guess + 1;
        } else {
            high = guess;
        }
        if best.as_ref().is_some_and(|(_, _, tokens)| tokens * 100 >= budget * 99) {
            break;
        }
        guess = if high > guess.saturating_mul(4) {
            guess * 2 + 1
        } else {
            low + (high - low) / 2
        };
        guess = guess.clamp(low, high);
    }
    if best.is_none() {
        keep(attempt(0), &mut best);
    }
    best.map(|found| fill(tree, found, budget, cost, token)).transpose()
}

/// Shows more of the first cuts, while the budget allows: what one part could not use is handed to the next.
fn fill(
    tree: &Tree<'_>,
    mut best: Chosen,
    budget: u64,
    cost: impl Fn(&str) -> u64,
    token: &CancelToken,
) -> Result<Chosen, Error> {
    let mut at = 0;
    for _ in 0..OPENED {
        if best.2 * 100 >= budget * 97 || at >= best.0.len() {
            break;
        }
        let cut = &best.0[at];
        let (mut low, mut high) = (
            0,
            (cut.bytes.end - cut.bytes.start).min((budget - best.2) as usize * 128),
        );
        let mut opened = None;
        while low < high {
            token.check()?;
            let bytes = low + (high - low).div_ceil(2);
            let inside = allot::open(tree, &best.0[at], bytes);
            // Another mark alone would show nothing more.
            let left: usize = inside.iter().map(|cut| cut.bytes.len()).sum();
            let shows = left + 16 <= best.0[at].bytes.len();
            let mut cuts = best.0[..at].to_vec();
            cuts.extend(inside);
            cuts.extend_from_slice(&best.0[at + 1..]);
            let text = marked(tree.text, &cuts);
            let tokens = cost(&text);
            if tokens <= budget {
                low = bytes;
                let most = opened.as_ref().map_or(best.2, |(_, _, most): &Chosen| *most);
                if tokens > most && shows {
                    opened = Some((cuts, text, tokens));
                }
            } else {
                high = bytes - 1;
            }
        }
        match opened {
            Some(more) => best = more,
            None => at += 1,
        }
    }
    Ok(best)
}

/// Tokens of the smallest projection.
pub(crate) fn least(tree: &Tree<'_>, cost: impl Fn(&str) -> u64) -> u64 {
    cost(&marked(tree.text, &allot::cuts(tree, 0)))
}
