//! The engine behind the border: measures, projects, stores what it cuts, and brings it back.

mod stream;
mod views;

use zero_contracts::tokens::{
    Cut, Expansion, ProjectText, ProjectedText, ProjectedValue, Selector, TextKind, TextStream, TokenCount,
};
use zero_contracts::{ByteRange, CancelToken, Digest, Error, ErrorKind, Handle, ObjectStore, TokenEngine};

use self::stream::Stream;
use crate::json::{self, Tree};
use crate::kinds::detect;
use crate::measure::Measure;
use crate::retained::Retained;
use crate::scan::{Limits, scan};
use crate::text::{Shown, project, too_small};
use crate::{Account, Counter};

/// Texts up to this many bytes are held and counted whole; of larger ones head, tail and failures are kept, and their
/// raw count is extrapolated.
const WHOLE: u64 = 4 << 20;
/// Of the head and the tail of larger texts at most so many bytes are kept.
const MOST_KEPT: u64 = 8 << 20;
/// Objects up to this many bytes may be projected as JSON; larger ones are text.
const MOST_JSON: u64 = 32 << 20;
/// Bytes of the start of an object by which its kind is found out.
const HEAD: usize = 64 << 10;
/// Bytes at each end whose tokens are counted to extrapolate.
const SAMPLE: usize = 32 << 10;

/// What an engine counts in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenConfig {
    /// An encoding (`o200k_base`, `o200k_harmony`, `cl100k_base`, `p50k_base`, `r50k_base`) or the name of a model. Any
    /// other name is estimated, and every count then says `exact: false` and `encoding: "estimate"`.
    pub model_or_encoding: String,
}

impl Default for TokenConfig {
    /// `o200k_base`.
    fn default() -> Self {
        Self {
            model_or_encoding: crate::Encoding::default().as_str().to_owned(),
        }
    }
}

/// The engine: counts, projects and expands. Making one costs nothing: vocabularies are read-only data of the program.
#[derive(Debug)]
pub struct TokenZero {
    measure: Measure,
}

impl Default for TokenZero {
    fn default() -> Self {
        Self::new(TokenConfig::default())
    }
}

impl TokenZero {
    /// Makes an engine.
    pub fn new(config: TokenConfig) -> Self {
        Self {
            measure: Measure::new(&config.model_or_encoding),
        }
    }

    /// Returns the counter it measures with.
    pub fn counter(&self) -> &Counter {
        self.measure.counter()
    }

    /// Starts an account of what projections save.
    pub fn account(&self) -> Account {
        Account::new()
    }

    /// Tokens of a text if they are at most `budget`.
    fn fits(&self, text: &str, budget: u64) -> Option<u64> {
        self.measure.count_within(text, budget)
    }

    /// Tokens of a whole text: counted up to a few megabytes, above extrapolated from both ends.
    fn raw(&self, text: &str) -> TokenCount {
        if text.len() as u64 <= WHOLE {
            self.measure.label(self.measure.count(text))
        } else {
            self.extrapolate(text.as_bytes(), text.as_bytes(), text.len() as u64)
        }
    }

    /// Tokens of `bytes` bytes that begin with `head` and end with `tail`, if all cost what those cost.
    fn extrapolate(&self, head: &[u8], tail: &[u8], bytes: u64) -> TokenCount {
        let head = &head[..SAMPLE.min(head.len())];
        let tail = &tail[tail.len() - SAMPLE.min(tail.len())..];
        let counted: u64 = [head, tail]
            .map(|part| self.measure.count(&String::from_utf8_lossy(part)))
            .iter()
            .sum();
        let seen = (head.len() + tail.len()).max(1) as u128;
        let tokens = u128::from(counted) * u128::from(bytes) / seen;
        self.measure.label_estimate(u64::try_from(tokens).unwrap_or(u64::MAX))
    }

    fn whole(&self, text: String, tokens: u64) -> ProjectedText {
        let count = self.measure.label(tokens);
        ProjectedText {
            text,
            handle: None,
            raw: count.clone(),
            shown: count,
            cuts: Vec::new(),
        }
    }

    fn cut(&self, shown: Shown, object: Digest, raw: TokenCount) -> ProjectedText {
        ProjectedText {
            text: shown.text,
            handle: Some(Handle::blob(object)),
            raw,
            shown: self.measure.label(shown.tokens),
            cuts: shown.cuts,
        }
    }

    /// Projects JSON text that does not fit.
    fn shown_json(&self, tree: &Tree<'_>, budget: u64, token: &CancelToken) -> Result<Shown, Error> {
        let cost = |text: &str| self.fits(text, budget).unwrap_or(u64::MAX);
        let Some((cuts, text, tokens)) = json::choose(tree, budget, cost, token)? else {
            return Err(too_small(budget, json::least(tree, |text| self.measure.count(text))));
        };
        Ok(Shown {
            text,
            tokens,
            cuts: contract_cuts(&cuts)?,
        })
    }

    /// Projects a text that does not fit and is at hand whole.
    fn shown_text(&self, text: &[u8], how: &ProjectText<'_>, token: &CancelToken) -> Result<Shown, Error> {
        let tree = || {
            str::from_utf8(text)
                .ok()
                .filter(|text| text.len() as u64 <= MOST_JSON)
                .and_then(Tree::parse)
        };
        let kind = match how.kind {
            TextKind::Detect => detect(text, || tree().is_some()),
            kind => kind,
        };
        if kind == TextKind::Json
            && let Some(tree) = tree()
        {
            return self.shown_json(&tree, how.budget, token);
        }
        token.check()?;
        if text.len() as u64 <= WHOLE {
            return project(&self.measure, &Retained::whole(text), kind, how);
        }
        let retained = scan(&mut &text[..], limits(kind, how.budget), token)?;
        project(&self.measure, &retained, kind, how)
    }

    /// Projects an object whose bytes are at hand.
    fn held(
        &self,
        bytes: &[u8],
        object: &Digest,
        how: &ProjectText<'_>,
        token: &CancelToken,
    ) -> Result<ProjectedText, Error> {
        let text = String::from_utf8_lossy(bytes);
        if let Some(tokens) = self.fits(&text, how.budget) {
            return Ok(self.whole(text.into_owned(), tokens));
        }
        let shown = self.shown_text(bytes, how, token)?;
        Ok(self.cut(shown, *object, self.raw(&text)))
    }

    /// Projects an object of which parts were kept.
    fn scanned(
        &self,
        retained: &Retained<'_>,
        kind: TextKind,
        object: &Digest,
        how: &ProjectText<'_>,
    ) -> Result<ProjectedText, Error> {
        if let [all] = &retained.regions[..]
            && all.bytes.len() as u64 == retained.bytes
        {
            // Everything was kept after all; it may even fit.
            let text = String::from_utf8_lossy(&all.bytes);
            if let Some(tokens) = self.fits(&text, how.budget) {
                return Ok(self.whole(text.into_owned(), tokens));
            }
        }
        let shown = project(&self.measure, retained, kind, how)?;
        let (head, tail) = match &retained.regions[..] {
            [] => (&[][..], &[][..]),
            [only] => (&only.bytes[..], &only.bytes[..]),
            [first, .., last] => (&first.bytes[..], &last.bytes[..]),
        };
        Ok(self.cut(shown, *object, self.extrapolate(head, tail, retained.bytes)))
    }
}

/// Up to how many bytes an object is held whole, if it has at least `size`: a budget that covers every byte covers the text.
fn most_held(how: &ProjectText<'_>, size: u64) -> u64 {
    let as_json = if how.kind == TextKind::Json && size <= MOST_JSON {
        MOST_JSON
    } else {
        0
    };
    WHOLE.max(how.budget).max(as_json)
}

/// The kind of an object that is not held whole, by how it starts.
fn kind_of(how: &ProjectText<'_>, head: &[u8]) -> TextKind {
    match how.kind {
        TextKind::Detect => detect(&head[..HEAD.min(head.len())], || false),
        TextKind::Json => TextKind::Text,
        kind => kind,
    }
}

/// How much of a text of this kind is kept.
fn limits(kind: TextKind, budget: u64) -> Limits {
    // No token is longer than 128 bytes.
    let end = budget.saturating_mul(130).clamp(2 * SAMPLE as u64, MOST_KEPT);
    Limits {
        end: end as usize,
        failures: matches!(kind, TextKind::Log | TextKind::Text),
    }
}

fn contract_cuts(cuts: &[json::Cut]) -> Result<Vec<Cut>, Error> {
    let cut = |cut: &json::Cut| {
        let (start, end) = (cut.bytes.start as u64, cut.bytes.end as u64);
        Ok(Cut {
            selector: Selector::Bytes(ByteRange::new(start, end)?),
            bytes: end - start,
        })
    };
    cuts.iter().map(cut).collect()
}

impl TokenEngine for TokenZero {
    fn count(&self, text: &str) -> TokenCount {
        self.measure.label(self.measure.count(text))
    }

    fn project_text(
        &self,
        text: &str,
        how: &ProjectText<'_>,
        objects: &dyn ObjectStore,
        token: &CancelToken,
    ) -> Result<ProjectedText, Error> {
        token.check()?;
        if let Some(tokens) = self.fits(text, how.budget) {
            return Ok(self.whole(text.to_owned(), tokens));
        }
        let shown = self.shown_text(text.as_bytes(), how, token)?;
        let object = objects.put(text.as_bytes())?;
        Ok(self.cut(shown, object, self.raw(text)))
    }

    fn project_object(
        &self,
        object: &Digest,
        how: &ProjectText<'_>,
        objects: &dyn ObjectStore,
        token: &CancelToken,
    ) -> Result<ProjectedText, Error> {
        token.check()?;
        let size = objects
            .size(object)?
            .ok_or_else(|| Error::new(ErrorKind::NotFound, format!("there is no object {object}")))?;
        if size <= most_held(how, size) {
            return self.held(&objects.get(object)?, object, how, token);
        }
        let kind = kind_of(how, &objects.get_range(object, ByteRange::new(0, HEAD as u64)?)?);
        let retained = scan(&mut objects.open(object)?, limits(kind, how.budget), token)?;
        self.scanned(&retained, kind, object, how)
    }

    fn project_stream<'a>(&'a self, how: &ProjectText<'a>) -> Box<dyn TextStream + 'a> {
        Box::new(Stream::new(self, how.clone()))
    }

    fn project_value(
        &self,
        value: &serde_json::Value,
        budget: u64,
        objects: &dyn ObjectStore,
        token: &CancelToken,
    ) -> Result<ProjectedValue, Error> {
        token.check()?;
        let internal =
            |error: serde_json::Error| Error::new(ErrorKind::Internal, format!("writing a JSON value: {error}"));
        let text = serde_json::to_string(value).map_err(internal)?;
        if let Some(tokens) = self.fits(&text, budget) {
            let count = self.measure.label(tokens);
            return Ok(ProjectedValue {
                value: value.clone().into(),
                handle: None,
                raw: count.clone(),
                shown: count,
                cuts: Vec::new(),
            });
        }
        let tree = Tree::of_valid(&text);
        // What the caller will see is the value read back: its members may come in another order than in the text.
        let read_back = |text: &str| serde_json::from_str::<serde_json::Value>(text);
        let as_seen = |text: &str| read_back(text).and_then(|value| serde_json::to_string(&value));
        let cost = |text: &str| as_seen(text).map_or(u64::MAX, |text| self.measure.count(&text));
        let within = |text: &str| {
            as_seen(text)
                .ok()
                .and_then(|text| self.fits(&text, budget))
                .unwrap_or(u64::MAX)
        };
        let Some((cuts, shown, tokens)) = json::choose(&tree, budget, within, token)? else {
            return Err(too_small(budget, json::least(&tree, cost)));
        };
        let (cuts, shown, tokens) = match self.with_views(&tree, &cuts, budget, &cost, token)? {
            None => (cuts, shown, tokens),
            Some(viewed) => {
                for content in &viewed.contents {
                    objects.put(content.as_bytes())?;
                }
                (viewed.cuts, viewed.text, viewed.tokens)
            }
        };
        token.check()?;
        let object = objects.put(text.as_bytes())?;
        Ok(ProjectedValue {
            value: read_back(&shown).map_err(internal)?.into(),
            handle: Some(Handle::blob(object)),
            raw: self.raw(&text),
            shown: self.measure.label(tokens),
            cuts: contract_cuts(&cuts)?,
        })
    }

    fn expand(
        &self,
        object: &Digest,
        selector: &Selector,
        budget: Option<u64>,
        objects: &dyn ObjectStore,
        token: &CancelToken,
    ) -> Result<Expansion, Error> {
        crate::expand::expand(&self.measure, object, selector, budget, objects, token)
    }
}
