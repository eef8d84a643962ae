//! What a file imports, and who imports a file, module or symbol.

use std::collections::HashSet;

use zero_contracts::Error;
use zero_contracts::find::Confidence;

use super::{Context, Found};
use crate::answer::Hit;
use crate::facts::Span;
use crate::program::ImportEdge;
use crate::world::{Symbol, WorldFileId, separator};

fn hit(context: &Context<'_>, file_id: WorldFileId, edge: &ImportEdge) -> Hit {
    let file = context.world.file(file_id);
    let mut hit = Hit::at(
        &file.path,
        file.digest,
        Span {
            start: edge.at,
            end: edge.end,
        },
    );
    hit.symbol = Some(edge.text.clone());
    hit.kind = Some("import");
    let module = context.world.module(file_id).join(separator(file.facts.lang));
    hit.container = (!module.is_empty()).then_some(module);
    hit.confidence = Some(edge.targets.first().map_or(
        if edge.files.is_empty() {
            Confidence::Name
        } else {
            Confidence::Exact
        },
        |target| target.confidence,
    ));
    hit.definitions = edge
        .targets
        .iter()
        .map(|t| {
            context.world.site(Symbol {
                file: t.file,
                def: t.def,
            })
        })
        .collect();
    if hit.definitions.is_empty() {
        hit.definitions
            .extend(edge.files.iter().map(|&file| zero_contracts::find::DefinitionSite {
                path: context.world.file(file).path.to_string(),
                line: 1,
                column: 1,
            }));
    }
    hit
}

/// Returns the files that a query names: by path, by the tail of a path, or by module path.
pub fn named_files(context: &Context<'_>, query: &str) -> Vec<WorldFileId> {
    let parts: Vec<&str> = query
        .split("::")
        .flat_map(|part| part.split('.'))
        .filter(|p| !p.is_empty())
        .collect();
    let parts: Vec<&str> = if parts.first() == Some(&"crate") {
        parts[1..].to_vec()
    } else {
        parts
    };
    let by_path = |path: &str| path == query || path.ends_with(&format!("/{query}"));
    (0..context.world.files.len() as WorldFileId)
        .filter(|&id| {
            let module = context.world.module(id);
            by_path(&context.world.file(id).path.to_string())
                || (!parts.is_empty()
                    && module.len() >= parts.len()
                    && module[module.len() - parts.len()..] == parts[..])
        })
        .collect()
}

/// Lists the imports of the files that the query names (path or module); an empty query means every file in scope.
pub fn imports(context: &Context<'_>) -> Result<Found, Error> {
    let query = context.request.query.trim();
    let files = if query.is_empty() {
        (0..context.world.files.len() as WorldFileId).collect()
    } else {
        named_files(context, query)
    };
    let mut hits = Vec::new();
    for file in files {
        context.token.check()?;
        if context.scope.contains(&context.world.file(file).path) {
            hits.extend(context.world.imports(file).iter().map(|edge| hit(context, file, edge)));
        }
    }
    Ok(Found {
        hits,
        names: Vec::new(),
    })
}

/// Lists the imports that lead to the file, module or symbol that the query names.
pub fn importers(context: &Context<'_>) -> Result<Found, Error> {
    let text = context.request.query.trim();
    let files: HashSet<WorldFileId> = named_files(context, text).into_iter().collect();
    let query = context.query(text, "query")?;
    let symbols: HashSet<(u32, u32)> = context
        .world
        .definitions(&query)
        .into_iter()
        .map(|s| (s.file, s.def))
        .collect();
    let external = files.is_empty() && symbols.is_empty();
    let (mut hits, mut names) = (Vec::new(), context.world.spellings(query.name()));
    names.sort();
    for id in 0..context.world.files.len() as WorldFileId {
        context.token.check()?;
        if !context.scope.contains(&context.world.file(id).path) {
            continue;
        }
        for edge in context.world.imports(id) {
            let leads = edge.files.iter().any(|file| files.contains(file) && *file != id)
                || edge.targets.iter().any(|t| symbols.contains(&(t.file, t.def)))
                // A name of a library: the words of the import are all there is to go by.
                || (external && edge.targets.is_empty() && mentions(&edge.text, text));
            if leads {
                hits.push(hit(context, id, &edge));
            }
        }
    }
    Ok(Found { hits, names })
}

fn mentions(import: &str, query: &str) -> bool {
    let split = |text: &str| -> Vec<String> {
        text.split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '@' | '/')))
            .filter(|part| !part.is_empty())
            .map(str::to_owned)
            .collect()
    };
    let (import, query) = (split(import), split(query));
    !query.is_empty() && import.windows(query.len()).any(|window| window == query)
}
