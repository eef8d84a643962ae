//! Runs every suite against the shipped engines and the simple ones, and every seeded defect; prints a table in Markdown.
//!
//! `--json FILE` writes every check as well. It ends with an error if a promise is broken or a defect is not caught.

#[allow(dead_code, reason = "the tests use more of it")]
#[path = "../tests/it/shipped.rs"]
mod shipped;

use std::fmt::Debug;

use serde_json::{Value, json};
use zero_conformance::faults::files::FileFault;
use zero_conformance::faults::objects::{FaultyObjects, ObjectFault};
use zero_conformance::faults::source::{FaultyViews, SourceFault};
use zero_conformance::faults::structure::{FaultyStructure, StructureFault};
use zero_conformance::faults::tokens::{FaultyTokens, TokenFault};
use zero_conformance::models::files::MemoryFiles;
use zero_conformance::models::objects::MemoryObjects;
use zero_conformance::models::structure::PlainStructure;
use zero_conformance::models::tokens::PlainTokens;
use zero_conformance::models::tree::MemoryViews;
use zero_conformance::{Outcome, Report, suites};

fn caught<F: Debug>(faults: &[F], run: impl Fn(&F) -> Report) -> (usize, Vec<String>) {
    let missed = faults.iter().filter(|fault| run(fault).failures().is_empty());
    let missed: Vec<String> = missed.map(|fault| format!("{fault:?}")).collect();
    (faults.len(), missed)
}

struct Row {
    simple: Report,
    shipped: Vec<(&'static str, Report)>,
    faults: (usize, Vec<String>),
}

fn rows() -> Vec<Row> {
    vec![
        Row {
            simple: suites::objects::run(&|| Box::new(MemoryObjects::default())),
            shipped: vec![("fszero", suites::objects::run(&|| Box::new(shipped::Shipped::new())))],
            faults: caught(ObjectFault::ALL, |fault| {
                suites::objects::run(&|| Box::new(FaultyObjects::new(*fault)))
            }),
        },
        Row {
            simple: suites::source::run(&|| Box::new(MemoryViews)),
            shipped: vec![
                (
                    "fszero, live",
                    suites::source::run(&|| Box::new(shipped::LiveViews::default())),
                ),
                (
                    "fszero, staged",
                    suites::source::run(&|| Box::new(shipped::StagedViews::default())),
                ),
            ],
            faults: caught(SourceFault::ALL, |fault| {
                suites::source::run(&|| Box::new(FaultyViews(*fault)))
            }),
        },
        Row {
            simple: suites::files::run(&|| Box::new(MemoryFiles::default())),
            shipped: vec![(
                "fszero",
                suites::files::run(&|| Box::new(shipped::Workspace::default())),
            )],
            faults: caught(FileFault::ALL, |fault| {
                suites::files::run(&|| Box::new(MemoryFiles::with_fault(*fault)))
            }),
        },
        Row {
            simple: suites::structure::run(&|| Box::new(PlainStructure)),
            shipped: vec![("graphzero", suites::structure::run(&|| Box::new(shipped::Graph)))],
            faults: caught(StructureFault::ALL, |fault| {
                suites::structure::run(&|| Box::new(FaultyStructure::new(*fault)))
            }),
        },
        Row {
            simple: suites::tokens::run(&|| Box::new(PlainTokens)),
            shipped: vec![("tokenzero", suites::tokens::run(&|| Box::new(shipped::TokensShipped)))],
            faults: caught(TokenFault::ALL, |fault| {
                suites::tokens::run(&|| Box::new(FaultyTokens::new(*fault)))
            }),
        },
    ]
}

fn kept(report: &Report) -> String {
    let kept = report
        .checks
        .iter()
        .filter(|check| check.outcome == Outcome::Kept)
        .count();
    format!("{kept} of {}", report.checks.len())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let file = match &arguments[..] {
        [] => None,
        [option, file] if option == "--json" => Some(file),
        _ => return Err("usage: table [--json FILE]".into()),
    };
    // A defect may well panic; its check says so.
    std::panic::set_hook(Box::new(|_| {}));
    let rows = rows();
    println!("| trait | simple engine | shipped engine | defects caught |");
    println!("| --- | --- | --- | --- |");
    let mut broken = Vec::new();
    for row in &rows {
        let (total, missed) = &row.faults;
        let shipped: Vec<String> = row
            .shipped
            .iter()
            .map(|(name, report)| format!("{name}: {}", kept(report)))
            .collect();
        println!(
            "| `{}` | {} | {} | {} of {total} |",
            row.simple.suite,
            kept(&row.simple),
            shipped.join("; "),
            total - missed.len()
        );
        for report in std::iter::once(&row.simple).chain(row.shipped.iter().map(|(_, report)| report)) {
            broken.extend(
                report
                    .failures()
                    .iter()
                    .map(|check| format!("{}: {}: {:?}", report.suite, check.name, check.outcome)),
            );
        }
        broken.extend(
            missed
                .iter()
                .map(|fault| format!("{}: the defect {fault} is not caught", row.simple.suite)),
        );
    }
    if let Some(file) = file {
        let rows: Vec<Value> = rows
            .iter()
            .map(|row| {
                let shipped: serde_json::Map<_, _> = row
                    .shipped
                    .iter()
                    .map(|(name, report)| Ok(((*name).to_owned(), serde_json::to_value(&report.checks)?)))
                    .collect::<Result<_, serde_json::Error>>()?;
                Ok(json!({
                    "trait": row.simple.suite,
                    "simple": row.simple.checks,
                    "shipped": shipped,
                    "defects": {"seeded": row.faults.0, "missed": row.faults.1},
                }))
            })
            .collect::<Result<_, serde_json::Error>>()?;
        std::fs::write(file, serde_json::to_string_pretty(&rows)?)?;
    }
    if broken.is_empty() {
        return Ok(());
    }
    Err(broken.join("\n").into())
}
