//! Ranked search over the words of names, documentation and signatures.
//!
//! BM25F (Robertson and Zaragoza, "The Probabilistic Relevance Framework", 2009, section 3.4): word counts of the fields
//! are weighted and normalised by field length before they saturate. Words are the parts of identifiers, in lower case,
//! cut to a simple stem, so that `parse_headers` and "parsing a header" meet. The order of equal scores is that of path
//! and place, so answers are deterministic.

use std::collections::HashMap;

use zero_contracts::Error;

use super::{Context, Found};
use crate::facts::{DefId, Kind, Span};
use crate::pool;
use crate::world::{Symbol, WorldFileId};

/// Weight of each field: name, what holds it, signature, documentation.
const WEIGHT: [f64; 4] = [5.0, 2.0, 1.2, 1.6];
/// How much a field's length counts.
const LENGTH: [f64; 4] = [0.4, 0.3, 0.6, 0.6];
/// Saturation.
const K1: f64 = 1.4;

/// The words of one definition.
struct Document {
    symbol: Symbol,
    counts: HashMap<String, [f64; 4]>,
    lengths: [f64; 4],
}

/// Ranks definitions by the words of the query.
pub fn semantic(context: &Context<'_>) -> Result<Found, Error> {
    let mut wanted = words(&context.request.query);
    wanted.sort();
    wanted.dedup();
    if wanted.is_empty() {
        return Err(Error::invalid("the query holds no word").with_path("query"));
    }
    let files: Vec<WorldFileId> = (0..context.world.files.len() as WorldFileId)
        .filter(|&id| context.scope.contains(&context.world.file(id).path))
        .collect();
    let parts = pool::map(
        files.len(),
        context.threads,
        context.token,
        || (),
        |(), index| documents(context, files[index]),
    )?;
    let documents: Vec<Document> = parts.into_iter().flatten().collect();
    let count = documents.len().max(1) as f64;
    let mut average = [0.0f64; 4];
    for document in &documents {
        for (sum, length) in average.iter_mut().zip(document.lengths) {
            *sum += length / count;
        }
    }
    let mut scored: Vec<(f64, Symbol)> = Vec::new();
    let rarity: Vec<f64> = wanted
        .iter()
        .map(|word| {
            let with = documents.iter().filter(|d| d.counts.contains_key(word)).count() as f64;
            (1.0 + (count - with + 0.5) / (with + 0.5)).ln()
        })
        .collect();
    for document in &documents {
        let mut score = 0.0;
        for (word, rarity) in wanted.iter().zip(&rarity) {
            let Some(counts) = document.counts.get(word) else {
                continue;
            };
            let mut weighted = 0.0;
            for field in 0..4 {
                let length = document.lengths[field] / average[field].max(1e-9);
                weighted += WEIGHT[field] * counts[field] / (1.0 - LENGTH[field] + LENGTH[field] * length);
            }
            score += rarity * weighted / (K1 + weighted);
        }
        if score > 0.0 {
            // A test is seldom what is looked for.
            let test = context.world.def(document.symbol).test;
            scored.push((if test { score * 0.7 } else { score }, document.symbol));
        }
    }
    scored.sort_by(|a, b| {
        let place = |s: Symbol| (s.file, context.world.def(s).at.start);
        b.0.total_cmp(&a.0).then_with(|| place(a.1).cmp(&place(b.1)))
    });
    let hits = scored
        .into_iter()
        .map(|(score, symbol)| {
            let mut hit = context.definition_hit(symbol);
            hit.score = Some((score * 1000.0).round() / 1000.0);
            hit
        })
        .collect();
    Ok(Found {
        hits,
        names: Vec::new(),
    })
}

fn documents(context: &Context<'_>, id: WorldFileId) -> Result<Vec<Document>, Error> {
    let file = context.world.file(id);
    let content = context.view.read(&file.path, context.token)?;
    if content.digest != file.digest {
        return Err(crate::answer::changed(&file.path));
    }
    let text = |span: Span| {
        let bytes = content
            .bytes
            .get(span.start as usize..span.end as usize)
            .unwrap_or_default();
        String::from_utf8_lossy(bytes).into_owned()
    };
    let module = context.world.module(id).join(" ");
    let mut found = Vec::new();
    for (def, entry) in file.facts.defs.iter().enumerate() {
        if entry.kind == Kind::Impl {
            continue;
        }
        let mut holders = file.facts.chain(def as DefId);
        let name = holders.pop().unwrap_or_default();
        let holder = format!("{module} {}", holders.join(" "));
        let signature = text(Span {
            start: entry.full.start,
            end: entry.head.max(entry.full.start),
        });
        let fields = [name.to_owned(), holder, signature, text(entry.doc)];
        let mut document = Document {
            symbol: Symbol {
                file: id,
                def: def as DefId,
            },
            counts: HashMap::new(),
            lengths: [0.0; 4],
        };
        for (field, text) in fields.iter().enumerate() {
            for word in words(text) {
                document.lengths[field] += 1.0;
                document.counts.entry(word).or_default()[field] += 1.0;
            }
        }
        found.push(document);
    }
    Ok(found)
}

/// Splits a text into stemmed words: at anything but letters and digits, at `_`, and before capitals.
pub fn words(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for part in text.split(|c: char| !c.is_alphanumeric()) {
        let chars: Vec<char> = part.chars().collect();
        let mut word = String::new();
        for (at, &c) in chars.iter().enumerate() {
            let before = at.checked_sub(1).map(|i| chars[i]);
            let after = chars.get(at + 1);
            let starts = c.is_uppercase()
                && before
                    .is_some_and(|b| b.is_lowercase() || b.is_numeric() || after.is_some_and(|a| a.is_lowercase()));
            if starts && !word.is_empty() {
                found.push(std::mem::take(&mut word));
            }
            word.extend(c.to_lowercase());
        }
        if !word.is_empty() {
            found.push(word);
        }
    }
    found
        .into_iter()
        .filter(|word| !STOP.contains(&word.as_str()))
        .map(|word| stem(&word))
        .collect()
}

/// Words that say nothing.
const STOP: &[&str] = &[
    "a", "an", "the", "of", "to", "in", "is", "it", "for", "and", "or", "as", "on", "by", "with", "be", "that", "this",
    "from", "at", "are", "if", "fn", "pub", "let", "mut", "self", "def", "function", "const", "how", "does", "do",
    "where", "what", "which", "when",
];

/// Cuts common endings.
fn stem(word: &str) -> String {
    for ending in [
        "ations", "ation", "ings", "ing", "ers", "ies", "ied", "er", "ed", "es", "s", "e",
    ] {
        if let Some(rest) = word.strip_suffix(ending)
            && rest.len() >= 3
        {
            let mut rest = if ending.starts_with("ie") {
                format!("{rest}y")
            } else {
                rest.to_owned()
            };
            // `running` and `run`.
            let bytes = rest.as_bytes();
            if bytes.len() > 3 && bytes[bytes.len() - 1] == bytes[bytes.len() - 2] && ending != "s" && ending != "e" {
                rest.pop();
            }
            return rest;
        }
    }
    word.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_and_prose_share_words() {
        assert_eq!(words("parseHTTPHeaders"), words("parsing of HTTP header"));
        assert_eq!(words("snake_caseName"), ["snak", "cas", "nam"]);
        assert_eq!(words("running the runner"), ["run", "run"]);
    }
}
