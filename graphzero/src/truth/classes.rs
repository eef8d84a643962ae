//! Sorts what is missed and what is wrong into classes, so that the largest can be mended first.

use std::collections::{HashMap, HashSet};

use zero_contracts::{CancelToken, Error, SourceView};

use super::{Pair, Place, Truth};
use crate::testing::DirectoryView;

/// Knows the texts and the kinds of definitions.
#[derive(Debug, Default)]
pub struct Classifier {
    lines: HashMap<String, Vec<String>>,
    kinds: HashMap<Place, String>,
}

impl Classifier {
    /// Reads the files of a truth.
    ///
    /// # Errors
    /// Errors of reading.
    pub fn new(truth: &Truth, view: &DirectoryView) -> Result<Self, Error> {
        let mut lines = HashMap::new();
        for path in &truth.files {
            let content = view.read(&path.parse()?, &CancelToken::new())?;
            let text = String::from_utf8_lossy(&content.bytes).into_owned();
            lines.insert(path.clone(), text.lines().map(str::to_owned).collect());
        }
        let kinds = truth
            .definitions
            .iter()
            .map(|d| ((d.path.clone(), d.line, d.column), d.kind.clone()))
            .collect();
        Ok(Self { lines, kinds })
    }

    /// Names the class of a pair that only the truth has.
    pub fn missed(&self, relation: &str, (from, to): &Pair, answer: &HashSet<Pair>) -> String {
        let kind = self.kind(to);
        match relation {
            "definitions" => format!("missed: {kind}"),
            "callers" => format!("missed: call of a {kind}"),
            _ => {
                let other = answer.iter().any(|(use_, _)| use_ == from);
                let got = if other { "another answered" } else { "nothing answered" };
                format!("missed: {kind} {}, {got}", self.form(from))
            }
        }
    }

    /// Names the class of a pair that only the answer has.
    pub fn wrong(&self, relation: &str, (from, to): &Pair, known: &HashSet<Pair>, answer: &HashSet<Pair>) -> String {
        let kind = self.kind(to);
        match relation {
            "definitions" => "wrong: not listed".to_owned(),
            "callers" => format!("wrong: call of a {kind}"),
            _ => {
                let truth = known.iter().find(|(use_, _)| use_ == from);
                let got = match truth {
                    Some(pair) if answer.contains(pair) => "beside the right one",
                    Some(_) => "instead of the right one",
                    None => "where the truth has nothing",
                };
                format!("wrong: {kind} {}, {got}", self.form(from))
            }
        }
    }

    /// Returns a line's text without its indentation.
    pub fn line(&self, path: &str, line: u64) -> &str {
        let lines = self.lines.get(path).map_or(&[][..], Vec::as_slice);
        lines
            .get((line as usize).wrapping_sub(1))
            .map_or("", |text| text.trim())
    }

    fn kind(&self, place: &Place) -> &str {
        self.kinds.get(place).map_or("unlisted definition", String::as_str)
    }

    /// Tells how a use is written.
    fn form(&self, (path, line, column): &Place) -> &'static str {
        let Some(text) = self.lines.get(path).and_then(|lines| lines.get(*line as usize - 1)) else {
            return "elsewhere";
        };
        let chars: Vec<char> = text.chars().collect();
        let at = (*column as usize - 1).min(chars.len());
        let before: String = chars[..at].iter().collect::<String>().trim_end().to_owned();
        let after: String = chars[at..]
            .iter()
            .skip_while(|c| c.is_alphanumeric() || matches!(c, '_' | '$'))
            .collect::<String>()
            .trim_start()
            .to_owned();
        if before.ends_with("::") {
            "in a path"
        } else if before.ends_with('.') {
            "after a dot"
        } else if after.starts_with(':')
            && !after.starts_with("::")
            && (before.is_empty() || before.ends_with(['{', ',']))
        {
            "as a key"
        } else if after.starts_with('!') && !after.starts_with("!=") {
            "as a macro"
        } else {
            "by its name"
        }
    }
}
