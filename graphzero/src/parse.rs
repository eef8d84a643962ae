//! Parsing with tree-sitter: one parser per grammar and worker, cancellation inside a parse, syntax errors.
//!
//! Owns the parsers and nothing else. Walks over trees recurse, so callers run on the stacks of the `pool` module.

use std::collections::HashMap;
use std::ops::ControlFlow;

use tree_sitter::{ParseOptions, Parser, Point, Range, Tree};
use zero_contracts::{CancelToken, Error, ErrorKind};

use crate::facts::Span;
use crate::language::{Lang, Language};

/// Nodes nested deeper than this are not walked: their names count as opaque.
pub const MAX_DEPTH: usize = 1500;

/// The parsers of one worker and the token of its call.
pub struct Parsing<'c> {
    token: &'c CancelToken,
    parsers: HashMap<Lang, Parser>,
}

impl<'c> Parsing<'c> {
    /// Makes a set of parsers, empty at first.
    pub fn new(token: &'c CancelToken) -> Self {
        Self {
            token,
            parsers: HashMap::new(),
        }
    }

    /// Returns the token of the call.
    pub const fn token(&self) -> &'c CancelToken {
        self.token
    }

    /// Parses a text.
    ///
    /// # Errors
    /// `cancelled` and `deadline` from the token; `internal` if a grammar does not fit the library.
    pub fn parse(&mut self, language: &dyn Language, lang: Lang, text: &[u8]) -> Result<Tree, Error> {
        self.parse_ranges(language, lang, text, &[])
    }

    /// Parses only some ranges of a text, as if the rest were not there; all of it without ranges.
    ///
    /// # Errors
    /// As for [`parse`](Self::parse).
    pub fn parse_ranges(
        &mut self,
        language: &dyn Language,
        lang: Lang,
        text: &[u8],
        ranges: &[Range],
    ) -> Result<Tree, Error> {
        let tree = self.parse_until(language, lang, text, ranges, false)?;
        tree.ok_or_else(|| Error::new(ErrorKind::Internal, format!("the parser gave up for {}", lang.as_str())))
    }

    /// Parses a text that is wanted without a syntax error or not at all: the first one ends the parse.
    ///
    /// # Errors
    /// As for [`parse`](Self::parse).
    pub fn parse_clean(&mut self, language: &dyn Language, lang: Lang, text: &[u8]) -> Result<Option<Tree>, Error> {
        let tree = self.parse_until(language, lang, text, &[], true)?;
        Ok(tree.filter(|tree| !tree.root_node().has_error()))
    }

    /// Parses a text; none if the parser was told to stop at an error and met one, or gave up.
    fn parse_until(
        &mut self,
        language: &dyn Language,
        lang: Lang,
        text: &[u8],
        ranges: &[Range],
        clean: bool,
    ) -> Result<Option<Tree>, Error> {
        let internal = |what: &str| Error::new(ErrorKind::Internal, format!("{what} for {}", lang.as_str()));
        let token = self.token;
        let parser = match self.parsers.entry(lang) {
            std::collections::hash_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::hash_map::Entry::Vacant(entry) => {
                let grammar = language.grammar(lang).ok_or_else(|| internal("there is no grammar"))?;
                let mut parser = Parser::new();
                parser
                    .set_language(&grammar)
                    .map_err(|_| internal("the grammar's version does not fit"))?;
                entry.insert(parser)
            }
        };
        parser
            .set_included_ranges(ranges)
            .map_err(|_| internal("ranges are out of order"))?;
        let mut calls = 0u32;
        let mut progress = |state: &tree_sitter::ParseState| {
            calls = calls.wrapping_add(1);
            if clean && state.has_error() {
                return ControlFlow::Break(());
            }
            if calls.is_multiple_of(16) && token.check().is_err() {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        };
        let options = ParseOptions::new().progress_callback(&mut progress);
        let tree = parser.parse_with_options(
            &mut |at, _: Point| text.get(at..).unwrap_or_default(),
            None,
            Some(options),
        );
        if tree.is_none() {
            parser.reset();
            token.check()?;
        }
        Ok(tree)
    }
}

/// Lists the syntax errors of a tree: stretches that were skipped and tokens that are missing, at most 1,000.
pub fn errors(tree: &Tree) -> Vec<Span> {
    let mut found = Vec::new();
    if !tree.root_node().has_error() {
        return found;
    }
    let mut cursor = tree.walk();
    loop {
        let node = cursor.node();
        if node.is_error() || node.is_missing() {
            found.push(Span::from(node));
        }
        let enter = node.has_error() && !node.is_error() && found.len() < 1000;
        if enter && cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return found;
            }
        }
    }
}
