//! Outlines and symbol selectors of one file.

use zero_contracts::read::OutlineItem;
use zero_contracts::{LineRange, TextRange};

use crate::answer;
use crate::facts::{DefId, FileFacts, Kind};
use crate::language::Lang;
use crate::world::{Query, separator};

/// Longest signature in an outline, in characters.
const MAX_SIGNATURE: usize = 160;

/// Lists the definitions of one content in order of their places.
pub fn outline(facts: &FileFacts, bytes: &[u8]) -> Vec<OutlineItem> {
    let starts: Vec<usize> = std::iter::once(0)
        .chain(memchr::memchr_iter(b'\n', bytes).map(|at| at + 1))
        .collect();
    let line = |byte: u32| starts.partition_point(|&start| start <= byte as usize) as u64;
    let mut defs: Vec<DefId> = (0..facts.defs.len() as DefId).collect();
    defs.sort_by_key(|&def| (facts.defs[def as usize].full.start, facts.defs[def as usize].at.start));
    defs.into_iter()
        // Only Rust writes blocks for implementations; elsewhere one method outside its type is all there is in it.
        .filter(|&id| facts.lang == Lang::Rust || facts.defs[id as usize].kind != Kind::Impl)
        .filter_map(|id| {
            let def = &facts.defs[id as usize];
            let last = def.full.end.saturating_sub(1).max(def.full.start);
            Some(OutlineItem {
                symbol: facts.chain(id).join(separator(facts.lang)),
                kind: def.kind.as_str().to_owned(),
                lines: LineRange::new(line(def.full.start), line(last)).ok()?,
                signature: signature(bytes, def.full.start, def.head),
            })
        })
        .collect()
}

/// Returns a definition's head on one line.
pub fn signature(bytes: &[u8], start: u32, head: u32) -> Option<String> {
    let text = std::str::from_utf8(bytes.get(start as usize..head as usize)?).ok()?;
    let mut line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((cut, _)) = line.char_indices().nth(MAX_SIGNATURE) {
        line.truncate(cut);
        line.push('…');
    }
    (!line.is_empty()).then_some(line)
}

/// Returns where a name or qualified tail is defined in one content: whole definitions, in order.
pub fn symbol(facts: &FileFacts, bytes: &[u8], symbol: &str) -> Vec<TextRange> {
    let Some(query) = Query::new(symbol) else {
        return Vec::new();
    };
    let Some(name) = facts.name_id(query.name()) else {
        return Vec::new();
    };
    let mut found: Vec<_> = facts
        .defs
        .iter()
        .enumerate()
        .filter(|(_, def)| def.name == name && def.kind != Kind::Impl)
        .filter(|(id, _)| {
            let chain: Vec<String> = facts.chain(*id as DefId).into_iter().map(str::to_owned).collect();
            // The content alone does not tell its module path: a longer query agrees if the chain is its tail.
            query.matches(&chain) || query.is_longer_than(&chain)
        })
        .map(|(_, def)| def.full)
        .collect();
    found.sort_unstable();
    found.into_iter().map(|span| answer::range(bytes, span)).collect()
}
