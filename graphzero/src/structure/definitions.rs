//! Definitions by name, and symbols by a part of their name.

use zero_contracts::Error;
use zero_contracts::find::CaseMode;

use super::{Context, Found};
use crate::facts::{DefId, Kind};
use crate::world::{Symbol, WorldFileId};

/// Lists the definitions of a name or qualified tail.
pub fn definitions(context: &Context<'_>) -> Result<Found, Error> {
    let query = context.query(&context.request.query, "query")?;
    let hits = context
        .world
        .definitions(&query)
        .into_iter()
        .filter(|symbol| context.scope.contains(&context.world.file(symbol.file).path))
        .map(|symbol| context.definition_hit(symbol))
        .collect();
    Ok(Found {
        hits,
        names: vec![query.name().to_owned()],
    })
}

/// Lists the symbols whose name, or whose qualified name if the query is qualified, contains the query. An empty query
/// lists all. A symbol of several sites is listed once, at the one that its uses refer to or that the
/// default configuration builds; [`definitions`] lists them all.
pub fn symbols(context: &Context<'_>) -> Result<Found, Error> {
    let query = context.request.query.trim();
    let insensitive = match context.request.options.case_mode.unwrap_or_default() {
        CaseMode::Sensitive => false,
        CaseMode::Insensitive => true,
        CaseMode::Smart => !query.chars().any(char::is_uppercase),
    };
    let fold = |text: &str| {
        if insensitive {
            text.to_lowercase()
        } else {
            text.to_owned()
        }
    };
    let wanted = fold(query);
    let qualified = query.contains("::") || query.contains('.');
    let mut found = Vec::new();
    for (id, file) in context.world.files.iter().enumerate() {
        context.token.check()?;
        if !context.scope.contains(&file.path) {
            continue;
        }
        for (def, entry) in file.facts.defs.iter().enumerate() {
            let symbol = Symbol {
                file: id as WorldFileId,
                def: def as DefId,
            };
            let matches = if qualified {
                fold(&context.world.qualified(symbol)).contains(&wanted)
            } else if insensitive {
                fold(file.facts.name(entry.name)).contains(&wanted)
            } else {
                file.facts.name(entry.name).contains(&wanted)
            };
            let further = || entry.further || (entry.conditional && context.world.is_copy(symbol));
            if matches && entry.kind != Kind::Impl && !further() {
                found.push(symbol);
            }
        }
    }
    context.world.order(&mut found);
    let hits = found.into_iter().map(|symbol| context.definition_hit(symbol)).collect();
    // A part of a name can be anywhere, so every stretch that was not understood counts.
    Ok(Found {
        hits,
        names: Vec::new(),
    })
}
