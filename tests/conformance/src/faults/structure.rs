//! Defects of a structure engine.

use std::sync::{Arc, Mutex, PoisonError};

use zero_contracts::find::{Absence, CaseMode, FindMode, FindRequest, FindResult};
use zero_contracts::read::OutlineItem;
use zero_contracts::{CancelToken, Digest, Error, ErrorKind, SourceView, StructureEngine, TextRange, WorkspacePath};

use crate::models::structure::PlainStructure;
use crate::suites::structure::Structures;

super::faults! {
    /// One defect of a structure engine.
    pub enum StructureFault {
        LineFromZero, ColumnInBytes, ByteOfTheLine, EndIsExclusive, OneMatchALine, TextWithLineEnd, DigestOfTheLine,
        OrderReversed, TotalOfThePage, PageRepeatsItsLast, PageEndsEarly, LimitIgnored, AlwaysComplete, CaseIgnored,
        SmartIsSensitive, WordIsText, RegexIsText, MalformedIsInternal, EmptyMatchesEverything, ContextIsEmpty,
        ScopeIgnored, ScopeOfNothingIsEmpty, LanguageIgnored, IgnoredIsSearched, IgnoredNeverSearched, StaleAnswer,
        CoverageCountsMatches, AlwaysCertified, NeverCertified, AbsenceOfWhatIsThere, Uncancellable,
        DefinitionsAreReferences, DefinitionUnnamed, ReferencesWithoutConfidence, OutlineUnsorted, OutlineOfAnything,
        SymbolIsItsLine, SymbolOfUnknownIsEmpty, AbsentSymbolIsTheFile, NothingIsBroken, EverythingIsBroken,
        UnknownIsSound,
    }
}

/// An engine with one defect.
#[derive(Clone)]
pub struct FaultyStructure {
    fault: StructureFault,
    cached: Arc<Mutex<Option<FindResult>>>,
}

impl FaultyStructure {
    /// Makes one.
    pub fn new(fault: StructureFault) -> Self {
        let cached = Arc::default();
        Self { fault, cached }
    }

    fn seeded(&self, fault: StructureFault) -> bool {
        self.fault == fault
    }

    fn spoil_request(&self, mut request: FindRequest) -> FindRequest {
        let options = &mut request.options;
        match self.fault {
            StructureFault::CaseIgnored => options.case_mode = Some(CaseMode::Insensitive),
            StructureFault::SmartIsSensitive if options.case_mode == Some(CaseMode::Smart) => options.case_mode = None,
            StructureFault::WordIsText if options.mode == FindMode::Word => options.mode = FindMode::Text,
            StructureFault::RegexIsText if options.mode == FindMode::Regex => options.mode = FindMode::Text,
            StructureFault::EmptyMatchesEverything if request.query.is_empty() => {
                options.mode = FindMode::Regex;
                request.query = ".*".into();
            }
            StructureFault::ScopeIgnored => options.path = None,
            StructureFault::LanguageIgnored => options.language = None,
            StructureFault::IgnoredIsSearched => options.ignored = true,
            StructureFault::IgnoredNeverSearched => options.ignored = false,
            StructureFault::LimitIgnored => options.limit = None,
            StructureFault::DefinitionsAreReferences if options.mode == FindMode::Definitions => {
                options.mode = FindMode::Word;
            }
            StructureFault::PageRepeatsItsLast => {
                let earlier = options.next.as_deref().and_then(|next| next.parse::<u64>().ok());
                options.next = earlier.map(|at| at.saturating_sub(1).to_string());
            }
            _ => {}
        }
        request
    }

    fn spoil(&self, mut found: FindResult) -> FindResult {
        for item in &mut found.items {
            match self.fault {
                StructureFault::LineFromZero => item.range.start.line -= 1,
                StructureFault::ColumnInBytes => {
                    let before = item.text.chars().take(item.range.start.column as usize - 1);
                    item.range.start.column = before.map(char::len_utf8).sum::<usize>() as u64 + 1;
                }
                StructureFault::ByteOfTheLine => item.range.start.byte = item.range.start.column - 1,
                StructureFault::EndIsExclusive => item.range.end.column += 1,
                StructureFault::TextWithLineEnd => item.text.push('\n'),
                StructureFault::DigestOfTheLine => item.digest = Digest::of(item.text.as_bytes()),
                StructureFault::ContextIsEmpty => item.context = None,
                StructureFault::DefinitionUnnamed => item.symbol = None,
                StructureFault::ReferencesWithoutConfidence => item.confidence = None,
                _ => {}
            }
        }
        match self.fault {
            StructureFault::OneMatchALine => {
                found
                    .items
                    .dedup_by_key(|item| (item.path.clone(), item.range.start.line));
            }
            StructureFault::OrderReversed => found.items.reverse(),
            StructureFault::TotalOfThePage => found.total = found.items.len() as u64,
            StructureFault::PageEndsEarly => found.next = None,
            StructureFault::AlwaysComplete => found.complete = true,
            StructureFault::CoverageCountsMatches => found.coverage.files = found.total,
            StructureFault::AlwaysCertified => {
                found.absence = found.absence.map(|_| Absence::Certified);
                found.coverage.skipped.clear();
            }
            StructureFault::NeverCertified => found.absence = found.absence.map(|_| Absence::Uncertified),
            StructureFault::AbsenceOfWhatIsThere => found.absence = Some(Absence::Uncertified),
            _ => {}
        }
        found
    }
}

impl Structures for FaultyStructure {
    fn engine(&self) -> Arc<dyn StructureEngine> {
        Arc::new(self.clone())
    }
}

impl StructureEngine for FaultyStructure {
    fn find(&self, view: &dyn SourceView, request: &FindRequest, token: &CancelToken) -> Result<FindResult, Error> {
        let fresh = CancelToken::new();
        let token = if self.seeded(StructureFault::Uncancellable) {
            &fresh
        } else {
            token
        };
        let mut cached = self.cached.lock().unwrap_or_else(PoisonError::into_inner);
        if self.seeded(StructureFault::StaleAnswer)
            && let Some(found) = &*cached
        {
            return Ok(found.clone());
        }
        let request = self.spoil_request(request.clone());
        let found = match (self.fault, PlainStructure.find(view, &request, token)) {
            (StructureFault::MalformedIsInternal, Err(e)) if e.kind == ErrorKind::InvalidInput => {
                return Err(Error::new(ErrorKind::Internal, e.detail));
            }
            (StructureFault::ScopeOfNothingIsEmpty, Err(e)) if e.kind == ErrorKind::NotFound => FindResult {
                items: Vec::new(),
                total: 0,
                complete: true,
                coverage: zero_contracts::find::Coverage::default(),
                freshness: view.freshness(),
                absence: Some(Absence::Certified),
                next: None,
            },
            (_, found) => found?,
        };
        let found = self.spoil(found);
        *cached = Some(found.clone());
        Ok(found)
    }

    fn outline(
        &self,
        path: &WorkspacePath,
        bytes: &[u8],
        token: &CancelToken,
    ) -> Result<Option<Vec<OutlineItem>>, Error> {
        let mut items = PlainStructure.outline(path, bytes, token)?;
        match self.fault {
            StructureFault::OutlineUnsorted => {
                if let Some(items) = &mut items {
                    items.reverse();
                }
            }
            StructureFault::OutlineOfAnything => items = items.or(Some(Vec::new())),
            _ => {}
        }
        Ok(items)
    }

    fn symbol(
        &self,
        path: &WorkspacePath,
        bytes: &[u8],
        symbol: &str,
        token: &CancelToken,
    ) -> Result<Vec<TextRange>, Error> {
        let mut ranges = match (self.fault, PlainStructure.symbol(path, bytes, symbol, token)) {
            (StructureFault::SymbolOfUnknownIsEmpty, Err(_)) => Vec::new(),
            (_, ranges) => ranges?,
        };
        match self.fault {
            StructureFault::SymbolIsItsLine => {
                for range in &mut ranges {
                    range.end = range.start;
                }
            }
            StructureFault::AbsentSymbolIsTheFile if ranges.is_empty() => {
                let source = String::from_utf8_lossy(bytes);
                ranges.push(crate::models::text::range(&source, 0, source.len()));
            }
            _ => {}
        }
        Ok(ranges)
    }

    fn syntax_errors(
        &self,
        path: &WorkspacePath,
        bytes: &[u8],
        token: &CancelToken,
    ) -> Result<Option<Vec<TextRange>>, Error> {
        let errors = PlainStructure.syntax_errors(path, bytes, token)?;
        let source = String::from_utf8_lossy(bytes);
        Ok(match (self.fault, errors) {
            (StructureFault::NothingIsBroken, Some(_)) => Some(Vec::new()),
            (StructureFault::EverythingIsBroken, Some(_)) => {
                Some(vec![crate::models::text::range(&source, 0, source.len())])
            }
            (StructureFault::UnknownIsSound, None) => Some(Vec::new()),
            (_, errors) => errors,
        })
    }
}
