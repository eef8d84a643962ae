//! Trees written as text, with places marked inside.
//!
//! `//- path` begins a file. `/*name*/` marks the place after it; marks are removed before the text is used.

use std::collections::BTreeMap;

use graphzero::GraphZero;
use graphzero::testing::MemoryView;
use zero_contracts::find::{FindItem, FindMode, FindOptions, FindRequest, FindResult};
use zero_contracts::{CancelToken, StructureEngine};

/// A tree and its marks: name to `path:line:column`.
pub struct Fixture {
    pub view: MemoryView,
    pub engine: GraphZero,
    marks: BTreeMap<String, String>,
}

impl Fixture {
    pub fn new(text: &str) -> Self {
        let (mut files, mut marks): (Vec<(String, String)>, BTreeMap<String, String>) = Default::default();
        for line in text.lines() {
            if let Some(path) = line.trim_start().strip_prefix("//- ") {
                files.push((path.trim().to_owned(), String::new()));
                continue;
            }
            let Some((path, content)) = files.last_mut() else {
                continue;
            };
            let number = content.lines().count() + 1;
            let mut rest = line;
            let mut plain = String::new();
            while let Some((before, after)) = rest.split_once("/*") {
                let (name, after) = after.split_once("*/").expect("a mark ends");
                plain.push_str(before);
                marks.insert(
                    name.to_owned(),
                    format!("{path}:{number}:{}", plain.chars().count() + 1),
                );
                rest = after;
            }
            plain.push_str(rest);
            content.push_str(&plain);
            content.push('\n');
        }
        let view = MemoryView::new(files.iter().map(|(path, text)| (path.as_str(), text.as_str())));
        Self {
            view,
            engine: GraphZero::new(),
            marks,
        }
    }

    pub fn ask(&self, mode: FindMode, query: &str) -> FindResult {
        self.ask_with(
            query,
            FindOptions {
                mode,
                ..FindOptions::default()
            },
        )
    }

    pub fn ask_with(&self, query: &str, options: FindOptions) -> FindResult {
        let request = FindRequest {
            query: query.into(),
            options,
        };
        self.engine
            .find(&self.view, &request, &CancelToken::new())
            .expect("the query is answered")
    }

    fn name(&self, place: String) -> String {
        self.marks
            .iter()
            .find(|(_, at)| **at == place)
            .map_or(place, |(name, _)| name.clone())
    }

    fn at(&self, item: &FindItem) -> String {
        self.name(format!(
            "{}:{}:{}",
            item.path, item.range.start.line, item.range.start.column
        ))
    }

    /// Marks of the definitions of a query.
    pub fn definitions(&self, query: &str) -> Vec<String> {
        self.ask(FindMode::Definitions, query)
            .items
            .iter()
            .map(|item| self.at(item))
            .collect()
    }

    /// Items of a query with their marks.
    pub fn items(&self, mode: FindMode, query: &str) -> Vec<(String, FindItem)> {
        let items = self.ask(mode, query).items;
        items.into_iter().map(|item| (self.at(&item), item)).collect()
    }

    /// Marks of the symbols of a name, as a list of symbols has them.
    pub fn symbols(&self, name: &str) -> Vec<String> {
        let own = |item: &FindItem| item.symbol.as_deref().and_then(|s| s.rsplit(['.', ':']).next()) == Some(name);
        let items = self.items(FindMode::Symbols, name).into_iter();
        items.filter(|(_, item)| own(item)).map(|(mark, _)| mark).collect()
    }

    /// `use > definition` for each reference to what a query names.
    pub fn references(&self, query: &str) -> Vec<String> {
        let result = self.ask(FindMode::References, query);
        result
            .items
            .iter()
            .map(|item| {
                let site = item.definition.as_ref().expect("a definition");
                let definition = self.name(format!("{}:{}:{}", site.path, site.line, site.column));
                format!("{} > {definition}", self.at(item))
            })
            .collect()
    }

    /// `use > definition` for each candidate of each reference to what a query names.
    pub fn all_targets(&self, query: &str) -> Vec<String> {
        let items = self.ask(FindMode::References, query).items;
        let mut found = Vec::new();
        for item in &items {
            for site in item.definition.iter().chain(&item.alternatives) {
                let definition = self.name(format!("{}:{}:{}", site.path, site.line, site.column));
                found.push(format!("{} > {definition}", self.at(item)));
            }
        }
        found
    }

    /// The calling functions of what a query names.
    pub fn callers(&self, query: &str) -> Vec<String> {
        let items = self.ask(FindMode::Callers, query).items;
        items
            .iter()
            .map(|item| item.symbol.clone().unwrap_or_default())
            .collect()
    }

    /// Compares answers with what is expected of them, one row a query: definitions as `mark kind symbol`, references as
    /// `use > definition`, callers as qualified names, imports and importers as `path: import`.
    #[allow(dead_code)] // a build without the languages that use it
    pub fn check(&self, rows: &[(FindMode, &str, &[&str])]) {
        for (mode, query, expected) in rows {
            let found: Vec<String> = match mode {
                FindMode::References => self.references(query),
                FindMode::Callers => self.callers(query),
                FindMode::Definitions => self
                    .ask(*mode, query)
                    .items
                    .iter()
                    .map(|item| {
                        let (kind, symbol) = (item.kind.as_deref().unwrap_or(""), item.symbol.as_deref().unwrap_or(""));
                        format!("{} {kind} {symbol}", self.at(item))
                    })
                    .collect(),
                _ => self
                    .ask(*mode, query)
                    .items
                    .iter()
                    .map(|item| format!("{}: {}", item.path, item.symbol.as_deref().unwrap_or("")))
                    .collect(),
            };
            assert_eq!(found, *expected, "{mode:?} {query}");
        }
    }
}
