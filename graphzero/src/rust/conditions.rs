//! Conditional compilation: what the default configuration of a package leaves out.
//!
//! Facts note every stretch under a `cfg` with its condition; whether it holds depends on the package's default features,
//! so it is decided here, for tests on the common platform. What cannot be decided counts as built.

use std::collections::HashSet;

use super::code::ItemKind;
use super::resolver::RustResolver;
use super::ty::Gid;
use crate::facts::{DefId, Kind, Span};

/// Evaluates a condition without spaces for tests on the common platform; none if features that are not known decide.
pub fn holds(condition: &str, features: Option<&HashSet<String>>) -> Option<bool> {
    let list = |rest: &str| -> Option<Vec<Option<bool>>> {
        let inner = rest.strip_suffix(')')?;
        let (mut parts, mut depth, mut start) = (Vec::new(), 0, 0);
        for (at, c) in inner.char_indices() {
            match c {
                '(' => depth += 1,
                ')' => depth -= 1,
                ',' if depth == 0 => {
                    parts.push(holds(&inner[start..at], features));
                    start = at + 1;
                }
                _ => {}
            }
        }
        if start < inner.len() {
            parts.push(holds(&inner[start..], features));
        }
        Some(parts)
    };
    if let Some(rest) = condition.strip_prefix("not(") {
        return holds(rest.strip_suffix(')')?, features).map(|holds| !holds);
    }
    if let Some(rest) = condition.strip_prefix("all(") {
        let parts = list(rest)?;
        return if parts.contains(&Some(false)) {
            Some(false)
        } else {
            parts.into_iter().collect::<Option<Vec<_>>>().map(|_| true)
        };
    }
    if let Some(rest) = condition.strip_prefix("any(") {
        let parts = list(rest)?;
        return if parts.contains(&Some(true)) {
            Some(true)
        } else {
            parts.into_iter().collect::<Option<Vec<_>>>().map(|_| false)
        };
    }
    match condition.split_once('=') {
        Some(("feature", value)) => Some(features?.contains(value.trim_matches('"'))),
        Some(("target_os", value)) => Some(value == "\"linux\""),
        Some(("target_family", value)) => Some(value == "\"unix\""),
        Some(("target_pointer_width", value)) => Some(value == "\"64\""),
        Some(("target_endian", value)) => Some(value == "\"little\""),
        Some(("target_has_atomic", _)) => Some(true),
        Some(("target_arch", value)) => Some(value == "\"x86_64\""),
        Some(_) => Some(false),
        None => Some(matches!(
            condition,
            "test" | "unix" | "debug_assertions" | "panic_unwind" | "target_has_atomic" | "true"
        )),
    }
}

/// Returns the features that a manifest turns on by default, with those that these turn on.
pub fn default_features(manifest: &toml::Table) -> HashSet<String> {
    let table = manifest.get("features").and_then(|f| f.as_table());
    let (mut on, mut waiting) = (HashSet::new(), vec!["default".to_owned()]);
    while let Some(name) = waiting.pop() {
        if !on.insert(name.clone()) {
            continue;
        }
        let more = table.and_then(|t| t.get(&name)).and_then(|v| v.as_array());
        for value in more.into_iter().flatten().filter_map(|v| v.as_str()) {
            // `dep:name` names no feature; `name/feature` turns on the dependency, `name?/feature` does not.
            match value.split_once('/') {
                _ if value.starts_with("dep:") => {}
                Some((name, _)) if name.ends_with('?') => {}
                Some((name, _)) => waiting.push(name.to_owned()),
                None => waiting.push(value.to_owned()),
            }
        }
    }
    on
}

impl RustResolver {
    /// Returns the stretches of a file that the default configuration leaves out, in order and apart from one another.
    fn left_out(&self, file: u32) -> &[Span] {
        let all = self.left_out.get_or_init(|| {
            let mut all: Vec<Option<Vec<Span>>> = vec![None; self.files.len()];
            for file in 0..self.files.len() as u32 {
                self.fill_left_out(file, &mut all, 0);
            }
            all.into_iter().map(Option::unwrap_or_default).collect()
        });
        all.get(file as usize).map_or(&[], Vec::as_slice)
    }

    fn fill_left_out(&self, file: u32, all: &mut Vec<Option<Vec<Span>>>, depth: usize) {
        if all[file as usize].is_some() {
            return;
        }
        let features = self.modules.features_of(file);
        let facts = self.facts(file);
        let mut spans: Vec<Span> = self
            .code(file)
            .conditions
            .iter()
            .filter(|(_, condition)| holds(facts.name(*condition), features) == Some(false))
            .map(|(span, _)| *span)
            .collect();
        // A file is built only where a `mod` declaration of it is.
        let declared = self.modules.declared.get(&file).filter(|_| depth < 64);
        let outside = declared.is_some_and(|all_of_it| {
            all_of_it.iter().all(|&(parent, def)| {
                if parent == file {
                    return false;
                }
                self.fill_left_out(parent, all, depth + 1);
                let at = self.facts(parent).defs[def as usize].at.start;
                let spans = all[parent as usize].as_deref().unwrap_or_default();
                spans.iter().any(|span| span.contains(at))
            })
        });
        if outside {
            spans.push(Span {
                start: 0,
                end: u32::MAX,
            });
        }
        spans.sort_unstable();
        let mut apart: Vec<Span> = Vec::with_capacity(spans.len());
        for span in spans {
            match apart.last_mut() {
                Some(last) if span.start <= last.end => last.end = last.end.max(span.end),
                _ => apart.push(span),
            }
        }
        all[file as usize] = Some(apart);
    }

    /// Tells whether the default configuration leaves out what stands at a place.
    pub fn is_left_out(&self, file: u32, at: u32) -> bool {
        let spans = self.left_out(file);
        let until = spans.partition_point(|span| span.start <= at);
        spans[..until].last().is_some_and(|span| span.contains(at))
    }

    /// Tells whether the default configuration leaves out a definition.
    pub fn is_inactive(&self, gid: Gid) -> bool {
        let def = self.def(gid);
        def.inactive || self.is_left_out(gid.file, def.at.start)
    }

    /// Tells whether a definition that is left out stands beside one that is built: copies of one symbol.
    pub fn is_copy(&self, gid: Gid) -> bool {
        let def = self.def(gid);
        if !def.conditional || !self.is_inactive(gid) {
            return false;
        }
        let defs = &self.facts(gid.file).defs;
        (0..defs.len() as DefId).any(|other| {
            let found = &defs[other as usize];
            other != gid.def
                && found.name == def.name
                && found.kind == def.kind
                && self.same_place(gid.file, found.container, def.container, 0)
                && !self.is_inactive(Gid {
                    file: gid.file,
                    def: other,
                })
        })
    }

    /// Tells whether two holders of one file are one, or copies of one another.
    fn same_place(&self, file: u32, a: DefId, b: DefId, depth: usize) -> bool {
        if a == b {
            return true;
        }
        let facts = self.facts(file);
        let (Some(one), Some(other)) = (facts.defs.get(a as usize), facts.defs.get(b as usize)) else {
            return false;
        };
        let traits = |def: DefId| match self.code(file).items[def as usize].kind {
            ItemKind::Impl { of, .. } => self.written_name(file, of),
            _ => None,
        };
        one.name == other.name
            && one.kind == other.kind
            && (one.kind != Kind::Impl || traits(a) == traits(b))
            && depth < 64
            && self.same_place(file, one.container, other.container, depth + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_decided_by_features_and_platform() {
        let features: HashSet<String> = ["std".to_owned()].into();
        let cases = [
            ("feature=\"std\"", Some(true)),
            ("feature=\"extra\"", Some(false)),
            ("not(feature=\"std\")", Some(false)),
            ("all(unix,feature=\"std\")", Some(true)),
            ("any(windows,feature=\"extra\")", Some(false)),
            ("all(test,loom)", Some(false)),
            ("not(any(unix,windows))", Some(false)),
        ];
        for (condition, expected) in cases {
            assert_eq!(holds(condition, Some(&features)), expected, "{condition}");
        }
        assert_eq!(holds("feature=\"std\"", None), None);
        assert_eq!(holds("all(feature=\"std\",windows)", None), Some(false));
    }

    #[test]
    fn default_features_turn_on_others() {
        let manifest = "[features]\ndefault = [\"a\", \"dep:x\"]\na = [\"b/c\", \"d?/e\"]\nf = []\n";
        let on = default_features(&manifest.parse().unwrap());
        for (name, expected) in [("a", true), ("b", true), ("x", false), ("d", false), ("f", false)] {
            assert_eq!(on.contains(name), expected, "{name}");
        }
    }
}
