//! Views in a projected JSON value: what stands for a long string that is not shown whole.
//!
//! A view is the object that `z.read` answers with for a large file: its `handle` names the string's exact bytes, and the
//! marks in its `preview` are selectors of that handle. So a long log inside a value reads like a long log, its failures
//! first, and comes back by lines. Short strings, and those that were given too little for a view, stay cut in place.

use std::ops::Range;

use zero_contracts::read::{Encoding, FileView, ViewTag};
use zero_contracts::tokens::{ProjectText, TextKind};
use zero_contracts::{CancelToken, Digest, Error, ErrorKind, Handle};

use super::TokenZero;
use crate::json::{self, Cut, Tree, What};
use crate::kinds::detect;
use crate::retained::count_lines;

/// Strings of fewer bytes are cut in place.
const LONG: usize = 2048;
/// Tokens that a preview has at least.
const LEAST_PREVIEW: u64 = 100;
/// How often the previews are measured anew, to fill the budget.
const ROUNDS: usize = 5;

/// A projection in which views stand for long strings.
pub(super) struct Viewed {
    /// What is left out of the whole text: a view leaves out its string.
    pub cuts: Vec<Cut>,
    pub text: String,
    pub tokens: u64,
    /// What the views show a part of.
    pub contents: Vec<String>,
}

/// A string that a view may stand for.
struct Long {
    /// Its cut among the projection's.
    cut: usize,
    /// The string's literal in the text.
    literal: Range<usize>,
    content: String,
    kind: TextKind,
    /// With an empty preview.
    view: FileView,
    /// Tokens that the string was given for its preview.
    room: u64,
}

impl TokenZero {
    /// Puts views in the place of the long strings that `cuts` cut. None if there are none, or if they cannot fit.
    ///
    /// # Errors
    /// `cancelled` and `deadline` from the token.
    pub(super) fn with_views(
        &self,
        tree: &Tree<'_>,
        cuts: &[Cut],
        budget: u64,
        cost: &impl Fn(&str) -> u64,
        token: &CancelToken,
    ) -> Result<Option<Viewed>, Error> {
        let long: Vec<Long> = (0..cuts.len()).filter_map(|cut| self.long(tree, cuts, cut)).collect();
        if long.is_empty() {
            return Ok(None);
        }
        let empty = long.iter().map(|long| literal(&long.view));
        let base = cost(&write(
            tree,
            cuts,
            &long,
            &empty.collect::<Option<Vec<_>>>().unwrap_or_default(),
        ));
        if base >= budget {
            return Ok(None);
        }
        let mut best: Option<Viewed> = None;
        let mut share = 1000;
        for _ in 0..ROUNDS {
            let mut literals = Vec::new();
            for long in &long {
                token.check()?;
                match self.preview(long, (long.room * share / 1000).max(LEAST_PREVIEW), token) {
                    Ok(view) => literals.extend(literal(&view)),
                    Err(error) if error.kind == ErrorKind::InvalidInput => return Ok(None),
                    Err(error) => return Err(error),
                }
            }
            let text = write(tree, cuts, &long, &literals);
            let tokens = cost(&text);
            if tokens <= budget && best.as_ref().is_none_or(|best| best.tokens < tokens) {
                best = Some(Viewed {
                    cuts: Vec::new(),
                    text,
                    tokens,
                    contents: Vec::new(),
                });
            }
            if tokens <= budget && tokens * 100 >= budget * 96 {
                break;
            }
            // What previews cost grows about as what they are given; one that was too dear gives way a little more.
            let spent = tokens.saturating_sub(base).max(1);
            let next = share * (budget - base) / spent;
            let next = if tokens > budget { next * 98 / 100 } else { next };
            if next == share {
                break;
            }
            share = next;
        }
        Ok(best.map(|best| {
            let mut cuts = cuts.to_vec();
            for long in &long {
                cuts[long.cut].bytes = long.literal.clone();
            }
            Viewed {
                cuts,
                contents: long.into_iter().map(|long| long.content).collect(),
                ..best
            }
        }))
    }

    /// The string that a cut is in, if a view may stand for it.
    fn long(&self, tree: &Tree<'_>, cuts: &[Cut], cut: usize) -> Option<Long> {
        let Cut { bytes, what, node } = &cuts[cut];
        let node = &tree.nodes[*node];
        if *what != What::Text || node.end - node.start < LONG {
            return None;
        }
        let content: String = serde_json::from_str(&tree.text[node.start..node.end]).ok()?;
        // What `z.read` says of the same bytes.
        let is_text = !content.contains('\0');
        let view = FileView {
            kind: ViewTag::View,
            handle: Handle::blob(Digest::of(content.as_bytes())),
            bytes: content.len() as u64,
            lines: is_text.then(|| count_lines(content.as_bytes())),
            encoding: if is_text { Encoding::Utf8 } else { Encoding::Binary },
            preview: String::new(),
            outline: Vec::new(),
            omitted: 0,
        };
        let shown = self.measure.count(&tree.text[node.start..bytes.start])
            + self.measure.count(&cuts[cut].text())
            + self.measure.count(&tree.text[bytes.end..node.end]);
        let room = shown.checked_sub(self.measure.count(&literal(&view)?))?;
        let kind = detect(content.as_bytes(), || Tree::parse(&content).is_some());
        (room >= LEAST_PREVIEW).then_some(Long {
            cut,
            literal: node.start..node.end,
            content,
            kind,
            view,
            room,
        })
    }

    fn preview(&self, long: &Long, budget: u64, token: &CancelToken) -> Result<FileView, Error> {
        // A preview of everything would leave nothing for the handle to bring back.
        let budget = budget.min(self.raw(&long.content).tokens.saturating_sub(1));
        let how = ProjectText {
            kind: long.kind,
            budget,
            ..ProjectText::default()
        };
        let shown = self.shown_text(long.content.as_bytes(), &how, token)?;
        Ok(FileView {
            preview: shown.text,
            omitted: shown.cuts.iter().map(|cut| cut.bytes).sum(),
            ..long.view.clone()
        })
    }
}

fn literal(view: &FileView) -> Option<String> {
    serde_json::to_string(view).ok()
}

/// Writes the text with its cuts and with these views.
fn write(tree: &Tree<'_>, cuts: &[Cut], long: &[Long], literals: &[String]) -> String {
    let mut views = long.iter().zip(literals).peekable();
    let parts = cuts
        .iter()
        .enumerate()
        .map(|(index, cut)| match views.next_if(|(long, _)| long.cut == index) {
            Some((long, literal)) => (long.literal.clone(), literal.clone()),
            None => (cut.bytes.clone(), cut.text()),
        });
    json::write(tree.text, parts)
}
