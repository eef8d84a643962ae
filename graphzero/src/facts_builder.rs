//! Gathers the facts of one file while its tree is walked: interning of names, lines and columns, final ordering.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::code::Code;
use crate::facts::{Def, DefId, FileFacts, Kind, NameId, Span, Use, UseId, UseKind, name_hash};
use crate::language::Lang;

/// Passes on keys that are hashes already.
#[derive(Default)]
struct Mixed(u64);

impl Hasher for Mixed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, key: u64) {
        // The table takes its place from the low bits and its mark from the high ones.
        self.0 = (self.0 ^ key).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(26);
    }
}

/// Facts in the making.
pub struct FactsBuilder<'t> {
    text: &'t [u8],
    line_starts: Vec<u32>,
    ids: HashMap<u64, NameId, BuildHasherDefault<Mixed>>,
    facts: FileFacts,
}

impl<'t> FactsBuilder<'t> {
    /// Begins the facts of one content.
    pub fn new(lang: Lang, text: &'t [u8]) -> Self {
        let mut line_starts = vec![0];
        line_starts.extend(memchr::memchr_iter(b'\n', text).map(|at| at as u32 + 1));
        Self {
            text,
            line_starts,
            ids: HashMap::default(),
            facts: FileFacts::empty(lang),
        }
    }

    /// Makes room for so many uses, and for the names that they come with.
    pub fn reserve(&mut self, uses: usize) {
        self.facts.uses.reserve(uses);
        self.ids.reserve(uses / 4);
    }

    /// Returns the text of a range; empty where it is not UTF-8.
    pub fn slice(&self, span: Span) -> &'t str {
        let bytes = self
            .text
            .get(span.start as usize..span.end as usize)
            .unwrap_or_default();
        std::str::from_utf8(bytes).unwrap_or_default()
    }

    /// Interns a name.
    pub fn name(&mut self, name: &str) -> NameId {
        // Keyed by hash, so that a known name costs no copy; names that share one take the next free key.
        let mut key = u64::from(name_hash(name)) << 16;
        loop {
            match self.ids.get(&key) {
                Some(&id) if self.facts.name(id) == name => return id,
                Some(_) => key += 1,
                None => break,
            }
        }
        let id = self.facts.names.len() as NameId;
        self.facts.names.push(name.into());
        self.ids.insert(key, id);
        id
    }

    /// Returns line and column (1-based, in Unicode scalar values) of a byte.
    pub fn position(&self, at: u32) -> (u32, u32) {
        let line = self.line_starts.partition_point(|&start| start <= at) - 1;
        let from = self.line_starts[line] as usize;
        (
            line as u32 + 1,
            chars(&self.text[from..(at as usize).min(self.text.len())]) as u32 + 1,
        )
    }

    /// Adds a definition. The caller sets what is not given by assigning to the entry that [`def_mut`](Self::def_mut)
    /// returns.
    pub fn def(&mut self, name: &str, kind: Kind, at: Span, full: Span, container: DefId) -> DefId {
        let (line, column) = self.position(at.start);
        let name = self.name(name);
        let outer = self.facts.defs.get(container as usize);
        let (test, conditional, inactive) =
            outer.map_or((false, false, false), |c| (c.test, c.conditional, c.inactive));
        self.facts.defs.push(Def {
            name,
            kind,
            at,
            line,
            column,
            full,
            head: full.end,
            container,
            doc: Span {
                start: full.start,
                end: full.start,
            },
            public: false,
            test,
            conditional,
            inactive,
            further: false,
        });
        self.facts.defs.len() as DefId - 1
    }

    /// Returns a definition that was added.
    pub fn def_ref(&self, def: DefId) -> Option<&Def> {
        self.facts.defs.get(def as usize)
    }

    /// Returns a definition that was added, to be completed.
    pub fn def_mut(&mut self, def: DefId) -> Option<&mut Def> {
        self.facts.defs.get_mut(def as usize)
    }

    /// Returns how many definitions there are.
    pub fn def_count(&self) -> usize {
        self.facts.defs.len()
    }

    /// Adds a use. Uses may be added in any order; their ids stay what they are.
    pub fn add_use(&mut self, name: &str, at: u32, owner: DefId, kind: UseKind) -> UseId {
        let name = self.name(name);
        self.facts.uses.push(Use { name, at, owner, kind });
        self.facts.uses.len() as UseId - 1
    }

    /// Returns a use that was added, to be corrected.
    pub fn use_mut(&mut self, id: UseId) -> Option<&mut Use> {
        self.facts.uses.get_mut(id as usize)
    }

    /// Notes a syntax error.
    pub fn error(&mut self, span: Span) {
        self.facts.errors.push(span);
    }

    /// Notes that every identifier of a range may hide a definition or a use.
    pub fn opaque(&mut self, span: Span) {
        for word in words(self.slice(span)) {
            let id = self.name(word);
            self.facts.opaque.push(id);
        }
    }

    /// Ends the facts.
    pub fn finish(mut self, code: Code) -> FileFacts {
        let mut facts = std::mem::replace(&mut self.facts, FileFacts::empty(Lang::Unknown));
        facts.index = facts
            .names
            .iter()
            .enumerate()
            .map(|(id, name)| (name_hash(name), id as NameId))
            .collect();
        facts.index.sort_unstable();
        facts.opaque.sort_unstable();
        facts.opaque.dedup();
        facts.errors.sort_unstable();
        facts.errors.dedup();
        facts.code = code;
        facts.names.shrink_to_fit();
        facts.defs.shrink_to_fit();
        facts.uses.shrink_to_fit();
        facts.opaque.shrink_to_fit();
        facts
    }
}

/// Counts the Unicode scalar values of a text; each byte that is not UTF-8 counts as part of one.
pub fn chars(bytes: &[u8]) -> usize {
    bytes.iter().filter(|&&b| (b & 0xc0) != 0x80).count()
}

/// Yields the identifier-like words of a text.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .filter(|word| word.chars().next().is_some_and(|c| !c.is_numeric()))
}
