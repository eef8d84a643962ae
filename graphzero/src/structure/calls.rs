//! Callers, callees, impact and call paths: walks over the graph of uses between definitions.
//!
//! An edge goes from a definition to the innermost function around a use of it; imports are no edges. A function that
//! is passed as a value counts as called by whoever passes it.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use zero_contracts::find::Confidence;
use zero_contracts::{Error, ErrorKind};

use super::references::{Site, sites};
use super::{Context, Found};
use crate::answer::Hit;
use crate::facts::{DefId, UseId, UseKind};
use crate::program::Target;
use crate::structure::imports::named_files;
use crate::world::{Symbol, WorldFileId};

/// The function a use lies in, or the definition if it lies in none.
fn owner(context: &Context<'_>, file: WorldFileId, use_id: UseId) -> Option<Symbol> {
    let facts = &context.world.file(file).facts;
    let owner = facts.uses[use_id as usize].owner;
    let def = facts
        .enclosing_callable(owner)
        .or_else(|| facts.defs.get(owner as usize).map(|_| owner))?;
    Some(Symbol { file, def })
}

/// Returns the uses of symbols that are calls in the sense of this module.
fn call_sites(context: &Context<'_>, symbols: &[Symbol]) -> Result<Vec<Site>, Error> {
    let mut names: Vec<String> = Vec::new();
    let mut own: Vec<&str> = symbols.iter().map(|&s| context.world.name(s)).collect();
    own.sort_unstable();
    own.dedup();
    for name in own {
        names.extend(context.world.spellings(name));
    }
    let mut found = sites(context, context.world, symbols, &names, |_| true)?;
    found.retain(|site| context.world.file(site.file).facts.uses[site.use_id as usize].kind != UseKind::Import);
    Ok(found)
}

fn require(context: &Context<'_>, text: &str, field: &str) -> Result<Vec<Symbol>, Error> {
    Ok(context.world.definitions(&context.query(text, field)?))
}

/// Lists the calls of a function, one item per site; with `depth` also the calls of the functions that call it.
pub fn callers(context: &Context<'_>) -> Result<Found, Error> {
    let query = context.query(&context.request.query, "query")?;
    let symbols = context.world.definitions(&query);
    let depth = context.request.options.depth.unwrap_or(1).max(1);
    let mut hits = Vec::new();
    let mut seen: HashSet<Symbol> = symbols.iter().copied().collect();
    let mut level = symbols;
    let mut via: HashMap<Symbol, Vec<String>> = HashMap::new();
    for _ in 0..depth {
        let mut next = Vec::new();
        for site in call_sites(context, &level)? {
            let mut hit = context.use_hit(site.file, site.use_id, &site.targets);
            let callee = site.targets.first().map(|t| Symbol {
                file: t.file,
                def: t.def,
            });
            let chain = callee.and_then(|c| via.get(&c).cloned()).unwrap_or_default();
            hit.via = chain.clone();
            if let Some(caller) = owner(context, site.file, site.use_id)
                && seen.insert(caller)
            {
                let mut chain = chain;
                chain.insert(0, context.world.qualified(caller));
                via.insert(caller, chain);
                next.push(caller);
            }
            if context.scope.contains(&hit.path) {
                hits.push(hit);
            }
        }
        if next.is_empty() {
            break;
        }
        context.world.order(&mut next);
        level = next;
    }
    hits.sort_by(|a, b| (&a.path, a.span).cmp(&(&b.path, b.span)));
    Ok(Found {
        hits,
        names: context.world.spellings(query.name()),
    })
}

/// Returns the uses inside a definition that are calls, with what they refer to.
fn calls_inside(context: &Context<'_>, symbol: Symbol) -> Vec<(UseId, Vec<Target>)> {
    let facts = &context.world.file(symbol.file).facts;
    let mut uses: Vec<UseId> = (0..facts.uses.len() as UseId)
        .filter(|&id| {
            let site = facts.uses[id as usize];
            site.kind != UseKind::Import && owner(context, symbol.file, id) == Some(symbol)
        })
        .collect();
    uses.sort_by_key(|&id| facts.uses[id as usize].at);
    uses.into_iter()
        .map(|id| (id, context.world.resolve(symbol.file, id)))
        .filter_map(|(id, targets)| {
            let callable = |t: &&Target| {
                context
                    .world
                    .def(Symbol {
                        file: t.file,
                        def: t.def,
                    })
                    .kind
                    .is_callable()
            };
            let called: Vec<Target> = targets.iter().filter(callable).copied().collect();
            (!called.is_empty()).then_some((id, called))
        })
        .collect()
}

/// Lists what a function calls inside the tree, one item per site.
pub fn callees(context: &Context<'_>) -> Result<Found, Error> {
    let query = context.query(&context.request.query, "query")?;
    let symbols = context.world.definitions(&query);
    let depth = context.request.options.depth.unwrap_or(1).max(1);
    let found = crate::pool::on_large_stack(context.token, || {
        let mut hits = Vec::new();
        let mut seen: HashSet<Symbol> = symbols.iter().copied().collect();
        let mut level: Vec<(Symbol, Vec<String>)> = symbols.iter().map(|&s| (s, Vec::new())).collect();
        for _ in 0..depth {
            let mut next = Vec::new();
            for (symbol, via) in &level {
                context.token.check()?;
                for (use_id, targets) in calls_inside(context, *symbol) {
                    let mut hit = context.use_hit(symbol.file, use_id, &targets);
                    hit.container = hit.symbol.take();
                    let callee = Symbol {
                        file: targets[0].file,
                        def: targets[0].def,
                    };
                    hit.symbol = Some(context.world.qualified(callee));
                    hit.via.clone_from(via);
                    if context.scope.contains(&hit.path) {
                        hits.push(hit);
                    }
                    for target in targets {
                        let callee = Symbol {
                            file: target.file,
                            def: target.def,
                        };
                        if seen.insert(callee) {
                            let mut chain = via.clone();
                            chain.push(context.world.qualified(callee));
                            next.push((callee, chain));
                        }
                    }
                }
            }
            level = next;
        }
        Ok(hits)
    })?;
    let mut hits = found;
    hits.sort_by(|a, b| (&a.path, a.span).cmp(&(&b.path, b.span)));
    // Without its definition there is no body to look into: any stretch that was not understood may hold it.
    let names = if symbols.is_empty() {
        vec![query.name().to_owned()]
    } else {
        Vec::new()
    };
    Ok(Found { hits, names })
}

/// Lists everything that depends on a symbol or on what a file defines, transitively, each with the shortest chain of
/// evidence. Code of a file that lies in no definition (a script's, or what a module exports without a name) depends as well: it
/// is one item a file, at its nearest use.
pub fn impact(context: &Context<'_>) -> Result<Found, Error> {
    let text = context.request.query.trim();
    let mut start = Query::of(context, text)?;
    let names = if start.is_empty() {
        vec![text.to_owned()]
    } else {
        Vec::new()
    };
    context.world.order(&mut start);
    let depth = context.request.options.depth.unwrap_or(u32::MAX);
    let mut seen: HashSet<Symbol> = start.iter().copied().collect();
    let mut via: HashMap<Symbol, (Vec<String>, Confidence)> = HashMap::new();
    let mut outside: BTreeMap<WorldFileId, Hit> = BTreeMap::new();
    let mut level = start;
    let mut step = 0;
    while !level.is_empty() && step < depth {
        step += 1;
        let mut next: BTreeMap<Symbol, (Vec<String>, Confidence)> = BTreeMap::new();
        for site in call_sites(context, &level)? {
            let caller = owner(context, site.file, site.use_id);
            if caller.is_some_and(|caller| seen.contains(&caller)) {
                continue;
            }
            let Some(target) = site.targets.first() else { continue };
            let callee = Symbol {
                file: target.file,
                def: target.def,
            };
            let (chain, confidence) = via.get(&callee).cloned().unwrap_or((Vec::new(), Confidence::Exact));
            let mut chain = chain;
            chain.insert(0, context.world.qualified(callee));
            let confidence = confidence.max(target.confidence);
            if let Some(caller) = caller {
                next.entry(caller).or_insert((chain, confidence));
            } else if let Entry::Vacant(free) = outside.entry(site.file) {
                let mut hit = context.use_hit(site.file, site.use_id, &site.targets);
                (hit.via, hit.confidence) = (chain, Some(confidence));
                free.insert(hit);
            }
        }
        level = next.keys().copied().collect();
        seen.extend(level.iter().copied());
        via.extend(next);
        context.world.order(&mut level);
    }
    let mut found: Vec<Symbol> = via.keys().copied().collect();
    context.world.order(&mut found);
    let mut hits: Vec<Hit> = found
        .into_iter()
        .filter(|symbol| context.scope.contains(&context.world.file(symbol.file).path))
        .map(|symbol| {
            let mut hit = context.definition_hit(symbol);
            if let Some((chain, confidence)) = via.get(&symbol) {
                hit.via.clone_from(chain);
                hit.confidence = Some(*confidence);
            }
            hit
        })
        .chain(outside.into_values().filter(|hit| context.scope.contains(&hit.path)))
        .collect();
    hits.sort_by(|a, b| (&a.path, a.span).cmp(&(&b.path, b.span)));
    Ok(Found { hits, names })
}

/// Where impact starts.
struct Query;

impl Query {
    /// Returns the symbols that a text names: definitions of the name, or all definitions of the file.
    fn of(context: &Context<'_>, text: &str) -> Result<Vec<Symbol>, Error> {
        let is_path = text.contains('/')
            || (0..context.world.files.len()).any(|id| context.world.files[id].path.to_string() == text);
        if is_path {
            let files = named_files(context, text);
            return Ok(files
                .into_iter()
                .flat_map(|file| {
                    let count = context.world.file(file).facts.defs.len() as DefId;
                    (0..count).map(move |def| Symbol { file, def })
                })
                .collect());
        }
        require(context, text, "query")
    }
}

/// Finds a shortest chain of calls from one symbol to another: one item per function on the way.
pub fn call_path(context: &Context<'_>) -> Result<Found, Error> {
    let to = context.request.options.to.as_deref().ok_or_else(|| {
        Error::new(ErrorKind::InvalidInput, "callPath needs `to`: the symbol to reach").with_path("options.to")
    })?;
    let from = require(context, &context.request.query, "query")?;
    let goal: HashSet<Symbol> = require(context, to, "options.to")?.into_iter().collect();
    let names = if from.is_empty() {
        vec![context.query(&context.request.query, "query")?.name().to_owned()]
    } else {
        Vec::new()
    };
    let depth = context.request.options.depth.unwrap_or(u32::MAX);
    let chain = crate::pool::on_large_stack(context.token, || {
        let mut before: HashMap<Symbol, (Symbol, UseId, Confidence)> = HashMap::new();
        let mut queue: VecDeque<(Symbol, u32)> = from.iter().map(|&s| (s, 0)).collect();
        let mut seen: HashSet<Symbol> = from.iter().copied().collect();
        let mut reached = from.iter().find(|s| goal.contains(s)).copied();
        while let (None, Some((symbol, steps))) = (reached, queue.pop_front()) {
            context.token.check()?;
            if steps >= depth {
                continue;
            }
            for (use_id, targets) in calls_inside(context, symbol) {
                for target in targets {
                    let callee = Symbol {
                        file: target.file,
                        def: target.def,
                    };
                    if seen.insert(callee) {
                        before.insert(callee, (symbol, use_id, target.confidence));
                        queue.push_back((callee, steps + 1));
                        if goal.contains(&callee) && reached.is_none() {
                            reached = Some(callee);
                        }
                    }
                }
            }
        }
        let mut chain = Vec::new();
        let mut at = reached;
        while let Some(symbol) = at {
            let step = before.get(&symbol).copied();
            chain.push((symbol, step.map(|(_, use_id, confidence)| (use_id, confidence))));
            at = step.map(|(caller, _, _)| caller);
        }
        chain.reverse();
        Ok(chain)
    })?;
    let names_on_way: Vec<String> = chain
        .iter()
        .map(|(symbol, _)| context.world.qualified(*symbol))
        .collect();
    let hits = chain
        .iter()
        .enumerate()
        .map(|(at, (symbol, step))| {
            let mut hit = context.definition_hit(*symbol);
            hit.via = names_on_way[..at].to_vec();
            hit.confidence = Some(step.map_or(Confidence::Exact, |(_, confidence)| confidence));
            hit
        })
        .collect();
    Ok(Found { hits, names })
}
