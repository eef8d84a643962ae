//! Structural patterns against what ast-grep finds: recorded, and live where it is installed.
//!
//! `pattern/recorded.json` was written by ast-grep 0.51.1 (PyPI `ast-grep-cli`) over `pattern/sample.*.txt`.

use std::collections::BTreeMap;
use std::process::Command;

use graphzero::GraphZero;
use graphzero::testing::MemoryView;
use serde::Deserialize;
use zero_contracts::find::{FindMode, FindOptions, FindRequest};
use zero_contracts::{CancelToken, StructureEngine};

#[derive(Debug, Deserialize)]
struct Case {
    language: String,
    pattern: String,
    matches: Vec<Match>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
struct Match {
    start: u64,
    end: u64,
    captures: BTreeMap<String, String>,
}

fn sample(language: &str) -> &'static str {
    match language {
        "rs" => include_str!("pattern/sample.rs.txt"),
        "ts" => include_str!("pattern/sample.ts.txt"),
        "py" => include_str!("pattern/sample.py.txt"),
        other => panic!("no sample for {other}"),
    }
}

fn cases() -> Vec<Case> {
    serde_json::from_str(include_str!("pattern/recorded.json")).expect("the record is JSON")
}

fn ours(case: &Case) -> Vec<Match> {
    let path = format!("sample.{}", case.language);
    let view = MemoryView::new([(path.as_str(), sample(&case.language))]);
    let options = FindOptions {
        mode: FindMode::Pattern,
        limit: Some(1000),
        ..FindOptions::default()
    };
    let query = case.pattern.clone();
    let found = GraphZero::new().find(&view, &FindRequest { query, options }, &CancelToken::new());
    // A pattern that cannot be read finds nothing.
    let items = found.map(|found| found.items).unwrap_or_default();
    let mut matches: Vec<Match> = items
        .into_iter()
        .map(|item| Match {
            start: item.range.start.byte,
            end: item.range.end.byte,
            captures: item.captures,
        })
        .collect();
    matches.sort();
    matches
}

/// Compares matches; of ours, captures that ast-grep does not give (those of several nodes) do not count.
fn differs(case: &Case, theirs: &[Match]) -> Option<String> {
    let mut ours = ours(case);
    for own in &mut ours {
        if let Some(their) = theirs
            .iter()
            .find(|their| (their.start, their.end) == (own.start, own.end))
        {
            own.captures.retain(|name, _| their.captures.contains_key(name));
        }
    }
    let mut theirs = theirs.to_vec();
    theirs.sort();
    (ours != theirs).then(|| {
        format!(
            "{} `{}`\n  ours   {ours:?}\n  theirs {theirs:?}",
            case.language, case.pattern
        )
    })
}

#[test]
fn patterns_find_what_ast_grep_recorded() {
    let cases = cases();
    assert!(cases.len() >= 60);
    let wrong: Vec<String> = cases.iter().filter_map(|case| differs(case, &case.matches)).collect();
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        cases.len(),
        wrong.join("\n")
    );
}

#[test]
fn patterns_find_what_an_installed_ast_grep_finds() {
    if Command::new("ast-grep").arg("--version").output().is_err() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let mut wrong = Vec::new();
    for case in cases() {
        let file = directory.path().join(format!("sample.{}", case.language));
        std::fs::write(&file, sample(&case.language)).unwrap();
        let language = match case.language.as_str() {
            "rs" => "rust",
            "py" => "python",
            other => other,
        };
        let output = Command::new("ast-grep")
            .args(["run", "--json=compact", "-l", language, "-p", &case.pattern])
            .arg(&file)
            .output()
            .unwrap();
        let found: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap();
        let theirs: Vec<Match> = found
            .iter()
            .map(|found| {
                let single = found["metaVariables"]["single"].as_object();
                Match {
                    start: found["range"]["byteOffset"]["start"].as_u64().unwrap(),
                    end: found["range"]["byteOffset"]["end"].as_u64().unwrap(),
                    captures: single
                        .into_iter()
                        .flatten()
                        .map(|(name, node)| (name.clone(), node["text"].as_str().unwrap().to_owned()))
                        .collect(),
                }
            })
            .collect();
        wrong.extend(differs(&case, &theirs));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
