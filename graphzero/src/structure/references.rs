//! Uses of a symbol.

use std::collections::HashSet;

use zero_contracts::{Error, WorkspacePath};

use super::{Context, Found};
use crate::answer::Hit;
use crate::facts::UseId;
use crate::pool;
use crate::program::Target;
use crate::world::{Symbol, World, WorldFileId};

/// One use that refers to one of the wanted symbols.
pub struct Site {
    /// The file.
    pub file: WorldFileId,
    /// The use in its facts.
    pub use_id: UseId,
    /// What it refers to, the wanted symbols first.
    pub targets: Vec<Target>,
}

/// Lists the uses of the symbols that a query names, one item per site.
pub fn references(context: &Context<'_>) -> Result<Found, Error> {
    let query = context.query(&context.request.query, "query")?;
    let symbols = context.world.definitions(&query);
    let names = context.world.spellings(query.name());
    let hits = if symbols.is_empty() {
        by_name(context, query.name())
    } else {
        let sites = sites(context, context.world, &symbols, &names, |file| {
            context.scope.contains(&context.world.file(file).path)
        })?;
        sites
            .iter()
            .map(|site| context.use_hit(site.file, site.use_id, &site.targets))
            .collect()
    };
    Ok(Found { hits, names })
}

/// Lists the uses of a name that is defined nowhere in the tree: names of libraries.
fn by_name(context: &Context<'_>, name: &str) -> Vec<Hit> {
    let mut hits = Vec::new();
    for (id, file) in context.world.files.iter().enumerate() {
        let Some(name) = file.facts.name_id(name).filter(|_| context.scope.contains(&file.path)) else {
            continue;
        };
        let mut uses: Vec<UseId> = file.facts.uses_of(name).collect();
        uses.sort_by_key(|&id| file.facts.uses[id as usize].at);
        hits.extend(
            uses.into_iter()
                .map(|use_id| context.use_hit(id as WorldFileId, use_id, &[])),
        );
    }
    hits
}

/// Returns the files in scope that mention what the query names and do not tell what they mean by it: something of a
/// library most often, but that is not known.
pub fn unresolved(context: &Context<'_>) -> Result<HashSet<WorkspacePath>, Error> {
    let Ok(query) = context.query(&context.request.query, "query") else {
        return Ok(HashSet::new());
    };
    let names = context.world.spellings(query.name());
    let files: Vec<(WorldFileId, Vec<UseId>)> = mentions(context.world, &names, |file| {
        context.scope.contains(&context.world.file(file).path)
    });
    let unknown = pool::map(
        files.len(),
        context.threads,
        context.token,
        || (),
        |(), index| {
            let (file, uses) = &files[index];
            Ok(uses
                .iter()
                .any(|&use_id| context.world.resolve(*file, use_id).is_empty()))
        },
    )?;
    let unsure = files.iter().zip(unknown).filter(|(_, unknown)| *unknown);
    Ok(unsure
        .map(|((file, _), _)| context.world.file(*file).path.clone())
        .collect())
}

/// Returns the uses of names, file by file, in files that `keep` accepts.
fn mentions(world: &World, names: &[String], keep: impl Fn(WorldFileId) -> bool) -> Vec<(WorldFileId, Vec<UseId>)> {
    let mut files = Vec::new();
    for (id, file) in world.files.iter().enumerate() {
        let id = id as WorldFileId;
        let ids: Vec<u32> = names.iter().filter_map(|name| file.facts.name_id(name)).collect();
        if ids.is_empty() || !keep(id) {
            continue;
        }
        let mut uses: Vec<UseId> = (0..file.facts.uses.len() as UseId)
            .filter(|&use_id| ids.contains(&file.facts.uses[use_id as usize].name))
            .collect();
        if !uses.is_empty() {
            uses.sort_by_key(|&use_id| (file.facts.uses[use_id as usize].at, use_id));
            files.push((id, uses));
        }
    }
    files
}

/// Returns the uses, in files that `keep` accepts, of any of `symbols`, which are mentioned under `names`; in order of
/// path and place.
pub fn sites(
    context: &Context<'_>,
    world: &World,
    symbols: &[Symbol],
    names: &[String],
    keep: impl Fn(WorldFileId) -> bool + Sync,
) -> Result<Vec<Site>, Error> {
    let wanted: HashSet<(u32, u32)> = symbols.iter().map(|s| (s.file, s.def)).collect();
    let files = mentions(world, names, keep);
    let parts = pool::map(
        files.len(),
        context.threads,
        context.token,
        || (),
        |(), index| {
            let (file, uses) = &files[index];
            let mut found = Vec::new();
            for &use_id in uses {
                context.token.check()?;
                let all = world.resolve(*file, use_id);
                let is_wanted = |t: &&Target| wanted.contains(&(t.file, t.def));
                let mut targets: Vec<Target> = all.iter().filter(is_wanted).copied().collect();
                if !targets.is_empty() {
                    targets.extend(all.iter().filter(|t| !is_wanted(t)).copied());
                    found.push(Site {
                        file: *file,
                        use_id,
                        targets,
                    });
                }
            }
            // One place can mention two things: `{name}` gives a variable's value to a key.
            found.dedup_by(|more, site| {
                let at = |site: &Site| world.file(site.file).facts.uses[site.use_id as usize].at;
                let same = at(more) == at(site);
                if same {
                    let new = more.targets.iter().filter(|t| !site.targets.contains(t));
                    let new: Vec<Target> = new.copied().collect();
                    site.targets.extend(new);
                }
                same
            });
            Ok(found)
        },
    )?;
    Ok(parts.into_iter().flatten().collect())
}
