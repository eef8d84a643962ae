//! Defects of a token engine.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};
use zero_contracts::tokens::{
    Expansion, ProjectText, ProjectedText, ProjectedValue, Selector, TextKind, TextStream, TokenCount,
};
use zero_contracts::{CancelToken, Content, Digest, Error, ErrorKind, Handle, LineRange, ObjectStore, TokenEngine};

use crate::models::tokens::PlainTokens;
use crate::suites::tokens::Tokens;

super::faults! {
    /// One defect of a token engine.
    pub enum TokenFault {
        NothingIsAToken, EverythingIsAToken, BytesAreTwoTokens, CountDrifts, SmallIsCutToo, BudgetDoubled, BudgetHalved,
        TokensToldAreRaw, CutsAreNotTold, MarksAreGone, MarksNameNothing, CutsOffByALine, CutSizesAreWrong, CutsReversed, CutsOverlap,
        RestIsReworded, HandleOfTheShown, NoHandle, StoresAlways, OtherEveryTime, TinyBudgetIsEmpty, CutsWithoutAStore,
        LogsAreText, Uncancellable, ObjectIsWhole, LossyBytesAreDropped, ObjectOfNothingIsEmpty,
        StreamForgetsItsEnd, StreamNamesNothing, ValueIsQuoted,
        ValueLosesMembers, ValueArraysAreText, ValueTooLarge, ValueIsNotStored, ExpandInclusive, ExpandFromTheStart,
        ExpandUnnumbered, PointerUnescaped, MatchAlone, NextIsLost, NextRepeats, PastTheEndIsEmpty, NoPointerIsNull,
        NothingExpandsToNothing,
    }
}

/// An engine with one defect.
#[derive(Clone)]
pub struct FaultyTokens {
    fault: TokenFault,
    calls: Arc<AtomicU64>,
}

impl FaultyTokens {
    /// Makes one.
    pub fn new(fault: TokenFault) -> Self {
        let calls = Arc::default();
        Self { fault, calls }
    }

    fn seeded(&self, fault: TokenFault) -> bool {
        self.fault == fault
    }

    fn recount(&self, shown: &mut ProjectedText) {
        shown.shown = PlainTokens.count(&shown.text);
    }

    fn spoil(&self, mut shown: ProjectedText, text: &str) -> Result<ProjectedText, Error> {
        let is_mark = |line: &&str| line.contains("… cut");
        match self.fault {
            TokenFault::TokensToldAreRaw => shown.shown = shown.raw.clone(),
            TokenFault::CutsAreNotTold => shown.cuts.clear(),
            TokenFault::MarksAreGone => {
                shown.text = shown.text.split_inclusive('\n').filter(|line| !is_mark(line)).collect();
                self.recount(&mut shown);
            }
            TokenFault::MarksNameNothing => {
                let marks = |line| if is_mark(&line) { "… cut …\n" } else { line };
                shown.text = shown.text.split_inclusive('\n').map(marks).collect();
                self.recount(&mut shown);
            }
            TokenFault::CutsOffByALine => {
                for cut in &mut shown.cuts {
                    if let Selector::Lines(lines) = cut.selector {
                        cut.selector = Selector::Lines(LineRange::new(lines.first() + 1, lines.last() + 1)?);
                    }
                }
            }
            TokenFault::CutSizesAreWrong => shown.cuts.iter_mut().for_each(|cut| cut.bytes += 1),
            TokenFault::CutsReversed if !shown.cuts.is_empty() => {
                let (head, tail) = (LineRange::new(20, 20)?, LineRange::new(10, 10)?);
                let bytes = |n: usize| text.split_inclusive('\n').nth(n - 1).map_or(0, str::len) as u64;
                for (lines, n) in [(head, 20), (tail, 10)] {
                    shown.cuts.insert(
                        if n == 20 { 0 } else { 1 },
                        zero_contracts::tokens::Cut {
                            selector: Selector::Lines(lines),
                            bytes: bytes(n),
                        },
                    );
                }
            }
            TokenFault::CutsOverlap => shown.cuts.extend(shown.cuts.clone()),
            TokenFault::RestIsReworded => {
                shown.text = shown.text.replacen("line 1 ", "Line 1 ", 1);
                self.recount(&mut shown);
            }
            TokenFault::NoHandle => shown.handle = None,
            TokenFault::OtherEveryTime if !shown.cuts.is_empty() => {
                let call = self.calls.fetch_add(1, Ordering::Relaxed);
                shown.text.push_str(&call.to_string());
                self.recount(&mut shown);
            }
            _ => {}
        }
        Ok(shown)
    }
}

impl Tokens for FaultyTokens {
    fn engine(&self) -> Arc<dyn TokenEngine> {
        Arc::new(self.clone())
    }
}

impl TokenEngine for FaultyTokens {
    fn count(&self, text: &str) -> TokenCount {
        let mut count = PlainTokens.count(text);
        match self.fault {
            TokenFault::NothingIsAToken => count.tokens += 1,
            TokenFault::EverythingIsAToken => count.tokens = 1,
            TokenFault::BytesAreTwoTokens => count.tokens = text.len() as u64 * 2,
            TokenFault::CountDrifts => count.tokens += self.calls.fetch_add(1, Ordering::Relaxed),
            _ => {}
        }
        count
    }

    fn project_text(
        &self,
        text: &str,
        how: &ProjectText<'_>,
        objects: &dyn ObjectStore,
        token: &CancelToken,
    ) -> Result<ProjectedText, Error> {
        let mut how = how.clone();
        let fresh = CancelToken::new();
        let token = if self.seeded(TokenFault::Uncancellable) {
            &fresh
        } else {
            token
        };
        match self.fault {
            TokenFault::SmallIsCutToo => how.budget = how.budget.min(PlainTokens.count(text).tokens.max(2) - 1),
            TokenFault::BudgetDoubled => how.budget *= 2,
            TokenFault::BudgetHalved => how.budget = how.budget * 2 / 5,
            TokenFault::LogsAreText => how.kind = TextKind::Text,
            TokenFault::TinyBudgetIsEmpty if how.budget < 5 => {
                return Ok(ProjectedText {
                    text: String::new(),
                    handle: Some(Handle::blob(objects.put(text.as_bytes())?)),
                    raw: self.count(text),
                    shown: self.count(""),
                    cuts: Vec::new(),
                });
            }
            _ => {}
        }
        let memory = crate::models::objects::MemoryObjects::default();
        let mut shown = match (self.fault, PlainTokens.project_text(text, &how, objects, token)) {
            (TokenFault::CutsWithoutAStore, Err(e)) if e.kind == ErrorKind::Budget => {
                PlainTokens.project_text(text, &how, &memory, token)?
            }
            (_, shown) => shown?,
        };
        match self.fault {
            TokenFault::HandleOfTheShown if shown.handle.is_some() => {
                shown.handle = Some(Handle::blob(objects.put(shown.text.as_bytes())?));
            }
            TokenFault::StoresAlways => {
                objects.put(text.as_bytes())?;
            }
            _ => {}
        }
        self.spoil(shown, text)
    }

    fn project_object(
        &self,
        object: &Digest,
        how: &ProjectText<'_>,
        objects: &dyn ObjectStore,
        token: &CancelToken,
    ) -> Result<ProjectedText, Error> {
        let mut how = how.clone();
        if self.seeded(TokenFault::ObjectIsWhole) {
            how.budget = u64::MAX;
        }
        let mut shown = match (self.fault, PlainTokens.project_object(object, &how, objects, token)) {
            (TokenFault::ObjectOfNothingIsEmpty, Err(e)) if e.kind == ErrorKind::NotFound => {
                PlainTokens.project_text("", &how, objects, token)?
            }
            (_, shown) => shown?,
        };
        if self.seeded(TokenFault::LossyBytesAreDropped) {
            shown.text = shown.text.replace('\u{fffd}', "");
        }
        Ok(shown)
    }

    fn project_stream<'a>(&'a self, how: &ProjectText<'a>) -> Box<dyn TextStream + 'a> {
        Box::new(FaultyStream {
            engine: self,
            how: how.clone(),
            last: Vec::new(),
        })
    }

    fn project_value(
        &self,
        value: &Value,
        budget: u64,
        objects: &dyn ObjectStore,
        token: &CancelToken,
    ) -> Result<ProjectedValue, Error> {
        let budget = if self.seeded(TokenFault::ValueTooLarge) {
            budget * 3
        } else {
            budget
        };
        let mut shown = PlainTokens.project_value(value, budget, objects, token)?;
        match self.fault {
            TokenFault::ValueIsQuoted => shown.value = Value::String(shown.value.0.to_string()).into(),
            TokenFault::ValueLosesMembers => {
                if let Value::Object(members) = &mut shown.value.0 {
                    members.remove("log");
                }
            }
            TokenFault::ValueArraysAreText => {
                if let Some(rows) = shown.value.0.get_mut("rows") {
                    *rows = json!(rows.to_string());
                }
            }
            TokenFault::ValueIsNotStored => shown.handle = shown.handle.map(|_| Handle::blob(Digest::of(b"elsewhere"))),
            _ => {}
        }
        Ok(shown)
    }

    fn expand(
        &self,
        object: &Digest,
        selector: &Selector,
        budget: Option<u64>,
        objects: &dyn ObjectStore,
        token: &CancelToken,
    ) -> Result<Expansion, Error> {
        let selector = match (self.fault, selector) {
            (TokenFault::ExpandInclusive, Selector::Bytes(range)) => {
                Selector::Bytes(zero_contracts::ByteRange::new(range.start(), range.end() + 1)?)
            }
            (TokenFault::ExpandFromTheStart, Selector::Lines(lines)) => {
                Selector::Lines(LineRange::new(1, lines.last())?)
            }
            (TokenFault::PointerUnescaped, Selector::Pointer(pointer)) => Selector::Pointer(pointer.replace('~', "")),
            (_, selector) => selector.clone(),
        };
        let empty = |content: &str| -> Result<Expansion, Error> {
            Ok(Expansion {
                content: Content::Text(content.to_owned()),
                bytes: zero_contracts::ByteRange::new(0, 0)?,
                lines: None,
                tokens: PlainTokens.count(content),
                next: None,
            })
        };
        let mut part = match (
            self.fault,
            PlainTokens.expand(object, &selector, budget, objects, token),
        ) {
            (TokenFault::PastTheEndIsEmpty, Err(e)) if e.kind == ErrorKind::InvalidInput => empty("")?,
            (TokenFault::NoPointerIsNull, Err(e))
                if matches!(selector, Selector::Pointer(_)) && e.kind == ErrorKind::NotFound =>
            {
                empty("null")?
            }
            (TokenFault::NothingExpandsToNothing, Err(e)) if e.kind == ErrorKind::NotFound => empty("")?,
            (_, part) => part?,
        };
        match self.fault {
            TokenFault::ExpandUnnumbered => part.lines = None,
            TokenFault::MatchAlone => {
                if let Selector::Match(text) = &selector {
                    part.content = Content::Text(text.clone());
                }
            }
            TokenFault::NextIsLost => part.next = None,
            TokenFault::NextRepeats => part.next = part.next.map(|_| selector),
            _ => {}
        }
        Ok(part)
    }
}

struct FaultyStream<'a> {
    engine: &'a FaultyTokens,
    how: ProjectText<'a>,
    last: Vec<u8>,
}

impl TextStream for FaultyStream<'_> {
    fn take(&mut self, bytes: &[u8]) {
        self.last = bytes.to_vec();
    }

    fn finish(
        self: Box<Self>,
        object: &Digest,
        objects: &dyn ObjectStore,
        token: &CancelToken,
    ) -> Result<ProjectedText, Error> {
        let engine = self.engine;
        if engine.seeded(TokenFault::StreamForgetsItsEnd) {
            let mut bytes = objects.get(object)?;
            bytes.truncate(bytes.len() - self.last.len());
            let text = String::from_utf8_lossy(&bytes);
            let mut shown = engine.project_text(&text, &self.how, objects, token)?;
            shown.handle = shown.handle.map(|_| Handle::blob(*object));
            return Ok(shown);
        }
        let mut shown = engine.project_object(object, &self.how, objects, token)?;
        if engine.seeded(TokenFault::StreamNamesNothing) {
            shown.handle = None;
        }
        Ok(shown)
    }
}
