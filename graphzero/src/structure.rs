//! Structural queries: what all modes share, and the routes to them.

mod calls;
mod definitions;
mod imports;
mod pattern;
mod references;
mod semantic;

use std::collections::HashSet;

use zero_contracts::find::{Confidence, Coverage, FindMode, FindRequest, FindResult};
use zero_contracts::{CancelToken, Error, ErrorKind, SourceView, WorkspacePath};

use crate::answer::{self, Hit, Page};
use crate::cursor::Binding;
use crate::facts::{DefId, Span, UseId};
use crate::facts_builder::words;
use crate::program::Target;
use crate::scope::Scope;
use crate::tree::{HELD_BYTES, Status, TOO_LARGE, Tree};
use crate::world::{Query, Symbol, World, WorldFileId, separator};

/// One structural query.
pub struct Context<'q> {
    /// The tree as it is seen.
    pub view: &'q dyn SourceView,
    /// What was asked.
    pub request: &'q FindRequest,
    /// Where.
    pub scope: &'q Scope,
    /// The files.
    pub tree: &'q Tree,
    /// Their facts, joined.
    pub world: &'q World,
    /// Threads of this call.
    pub threads: usize,
    /// Cancellation and deadline.
    pub token: &'q CancelToken,
}

/// What a mode found.
pub struct Found {
    /// In order.
    pub hits: Vec<Hit>,
    /// The names that would have to be mentioned wherever something was missed; empty if anything could be.
    pub names: Vec<String>,
}

/// Answers a structural query.
///
/// # Errors
/// `invalid_input` for a query without a name; errors of cursor, view and token.
pub fn find(context: &Context<'_>) -> Result<FindResult, Error> {
    let found = match context.request.options.mode {
        FindMode::Symbols => definitions::symbols(context)?,
        FindMode::Definitions => definitions::definitions(context)?,
        FindMode::References => references::references(context)?,
        FindMode::Callers => calls::callers(context)?,
        FindMode::Callees => calls::callees(context)?,
        FindMode::Impact => calls::impact(context)?,
        FindMode::CallPath => calls::call_path(context)?,
        FindMode::Imports => imports::imports(context)?,
        FindMode::Importers => imports::importers(context)?,
        FindMode::Pattern => pattern::pattern(context)?,
        FindMode::Semantic => semantic::semantic(context)?,
        FindMode::Text | FindMode::Word | FindMode::Regex | FindMode::Paths => {
            return Err(Error::new(
                ErrorKind::Internal,
                "a text mode came to the structural queries",
            ));
        }
    };
    let binding = Binding::new(context.request, context.world.fingerprint);
    let page = Page::cut(context.request, binding, found.hits.len())?;
    let items = answer::items(context.view, &found.hits[page.from..page.to], context.token)?;
    let unsure = match context.request.options.mode {
        FindMode::References | FindMode::Callers | FindMode::Impact if found.hits.is_empty() => {
            references::unresolved(context)?
        }
        _ => HashSet::new(),
    };
    let (coverage, certain) = context.coverage(&found, &unsure)?;
    Ok(page.result(context.view, items, coverage, certain))
}

impl Context<'_> {
    /// Reads the query as a name or qualified tail.
    pub fn query(&self, text: &str, field: &str) -> Result<Query, Error> {
        Query::new(text)
            .ok_or_else(|| Error::invalid("a name or qualified tail such as `Type::method` is needed").with_path(field))
    }

    /// Makes the hit of a definition.
    pub fn definition_hit(&self, symbol: Symbol) -> Hit {
        let (file, def) = (self.world.file(symbol.file), self.world.def(symbol));
        let mut hit = Hit::at(&file.path, file.digest, def.at);
        let mut parts = self.world.parts(symbol);
        let dots = separator(file.facts.lang);
        hit.symbol = Some(parts.join(dots));
        parts.pop();
        hit.container = (!parts.is_empty()).then(|| parts.join(dots));
        hit.kind = Some(def.kind.as_str());
        hit.confidence = Some(Confidence::Exact);
        hit.definitions = vec![self.world.site(symbol)];
        hit.test = def.test;
        hit
    }

    /// Makes the hit of a use that refers to `targets`, best first.
    pub fn use_hit(&self, file_id: WorldFileId, use_id: UseId, targets: &[Target]) -> Hit {
        let file = self.world.file(file_id);
        let facts = &file.facts;
        let site = facts.uses[use_id as usize];
        let end = site.at + facts.name(site.name).len() as u32;
        let mut hit = Hit::at(&file.path, file.digest, Span { start: site.at, end });
        hit.symbol = Some(self.owner_name(file_id, site.owner));
        hit.kind = Some(site.kind.as_str());
        hit.confidence = targets.first().map(|t| t.confidence).or(Some(Confidence::Name));
        hit.definitions = targets
            .iter()
            .map(|t| {
                self.world.site(Symbol {
                    file: t.file,
                    def: t.def,
                })
            })
            .collect();
        hit.test = facts.defs.get(site.owner as usize).is_some_and(|def| def.test);
        hit
    }

    /// Returns the qualified name of the innermost callable around an owner, else of the owner, else of the module.
    pub fn owner_name(&self, file: WorldFileId, owner: DefId) -> String {
        let facts = &self.world.file(file).facts;
        let def = facts.enclosing_callable(owner).unwrap_or(owner);
        if facts.defs.get(def as usize).is_some() {
            self.world.qualified(Symbol { file, def })
        } else {
            self.world.module(file).join(separator(facts.lang))
        }
    }

    /// Says what was looked at, and whether nothing that was asked for can have been missed; `unsure` are files that mention
    /// it without telling what they mean.
    fn coverage(&self, found: &Found, unsure: &HashSet<WorkspacePath>) -> Result<(Coverage, bool), Error> {
        let mut coverage = Coverage::default();
        let mut certain = true;
        for file in self
            .tree
            .sources
            .iter()
            .filter(|file| self.scope.contains(&file.entry.path))
        {
            coverage.files += 1;
            match &file.status {
                Status::Parsed(_, facts) => {
                    coverage.read += 1;
                    coverage.parsed += 1;
                    coverage.with_errors += u64::from(!facts.errors.is_empty());
                    let hidden = |name: &String| {
                        facts
                            .name_id(name)
                            .is_some_and(|id| facts.opaque.binary_search(&id).is_ok())
                    };
                    // Asked only where nothing was found: it looks into the names of every file.
                    let fell_short = || {
                        found.names.iter().any(hidden)
                            || (found.names.is_empty() && !(facts.errors.is_empty() && facts.opaque.is_empty()))
                    };
                    if found.hits.is_empty() && fell_short() {
                        coverage.skipped.push(answer::skip(&file.entry.path, "syntax_errors"));
                        certain = false;
                    } else if unsure.contains(&file.entry.path) {
                        coverage
                            .skipped
                            .push(answer::skip(&file.entry.path, "unresolved_mention"));
                        certain = false;
                    }
                }
                Status::Skipped(why) => {
                    coverage.skipped.push(answer::skip(&file.entry.path, why.clone()));
                    certain = false;
                }
            }
        }
        for entry in self.tree.others.iter().filter(|entry| self.scope.contains(&entry.path)) {
            coverage.files += 1;
            coverage.unknown_language += 1;
            if found.hits.is_empty() && !is_prose(entry.path.extension()) && !found.names.is_empty() {
                self.token.check()?;
                if entry.bytes > HELD_BYTES {
                    coverage.skipped.push(answer::skip(&entry.path, TOO_LARGE));
                    certain = false;
                    continue;
                }
                match self.view.read(&entry.path, self.token) {
                    Ok(content) => {
                        coverage.read += 1;
                        let names = |text: &str| words(text).any(|word| found.names.iter().any(|name| name == word));
                        if mentions(&content.bytes, names) {
                            coverage.skipped.push(answer::skip(&entry.path, "unknown_language"));
                            certain = false;
                        }
                    }
                    Err(error) if matches!(error.kind, ErrorKind::Cancelled | ErrorKind::Deadline) => {
                        return Err(error);
                    }
                    Err(error) if error.kind == ErrorKind::NotFound => {}
                    Err(error) => {
                        coverage
                            .skipped
                            .push(answer::skip(&entry.path, format!("unreadable: {}", error.detail)));
                        certain = false;
                    }
                }
            }
        }
        certain &= self.tree.skipped.is_empty();
        coverage.skipped.extend(self.tree.skipped.iter().cloned());
        coverage.skipped.sort_by(|a, b| a.path.cmp(&b.path));
        coverage.skipped.dedup();
        Ok((coverage, certain))
    }
}

/// Tells whether bytes of an unknown language, in whatever encoding, are text in which `names` finds something. What is no
/// text, such as a program, defines nothing.
fn mentions(bytes: &[u8], names: impl Fn(&str) -> bool) -> bool {
    let wide = match bytes {
        [0xff, 0xfe, rest @ ..] => Some((rest, u16::from_le_bytes as fn([u8; 2]) -> u16)),
        [0xfe, 0xff, rest @ ..] => Some((rest, u16::from_be_bytes as fn([u8; 2]) -> u16)),
        _ => None,
    };
    if let Some((rest, unit)) = wide {
        let units: Vec<u16> = rest.as_chunks::<2>().0.iter().map(|pair| unit(*pair)).collect();
        return names(&String::from_utf16_lossy(&units));
    }
    memchr::memchr(0, bytes).is_none() && names(&String::from_utf8_lossy(bytes))
}

/// Tells whether files with this extension hold prose or data, which can mention a symbol but not define or use it.
fn is_prose(extension: Option<&[u8]>) -> bool {
    const PROSE: &[&[u8]] = &[
        b"md", b"txt", b"rst", b"adoc", b"toml", b"json", b"yaml", b"yml", b"lock", b"csv", b"tsv", b"xml", b"css",
        b"svg", b"png", b"jpg", b"jpeg", b"gif", b"ico", b"pdf", b"zip", b"gz", b"log", b"ini", b"cfg",
    ];
    extension.is_some_and(|extension| PROSE.iter().any(|prose| extension.eq_ignore_ascii_case(prose)))
}
