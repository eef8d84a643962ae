//! The simple engines keep every promise, the shipped ones do, and every seeded defect is caught.

mod shipped;

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
use zero_conformance::{Report, suites};

fn kept(report: &Report) {
    println!("{report}");
    assert!(report.failures().is_empty(), "{report}");
}

/// Every one of at least twenty defects breaks a check.
fn caught<F: std::fmt::Debug>(faults: &[F], run: impl Fn(&F) -> Report) {
    let missed: Vec<String> = faults
        .iter()
        .filter(|fault| run(fault).failures().is_empty())
        .map(|fault| format!("{fault:?}"))
        .collect();
    assert!(missed.is_empty(), "not caught: {missed:?}");
    assert!(faults.len() >= 20, "{} defects", faults.len());
    println!("{} defects, all caught", faults.len());
}

#[test]
fn simple_objects_keep_their_contract() {
    kept(&suites::objects::run(&|| Box::new(MemoryObjects::default())));
}

#[test]
fn defects_of_objects_are_caught() {
    caught(ObjectFault::ALL, |fault| {
        suites::objects::run(&|| Box::new(FaultyObjects::new(*fault)))
    });
}

#[test]
fn simple_views_keep_their_contract() {
    kept(&suites::source::run(&|| Box::new(MemoryViews)));
}

#[test]
fn defects_of_views_are_caught() {
    caught(SourceFault::ALL, |fault| {
        suites::source::run(&|| Box::new(FaultyViews(*fault)))
    });
}

#[test]
fn fszero_objects_keep_their_contract() {
    kept(&suites::objects::run(&|| Box::new(shipped::Shipped::new())));
}

#[test]
fn fszero_live_views_keep_their_contract() {
    kept(&suites::source::run(&|| Box::new(shipped::LiveViews::default())));
}

#[test]
fn fszero_staged_views_keep_their_contract() {
    kept(&suites::source::run(&|| Box::new(shipped::StagedViews::default())));
}

#[test]
fn simple_structure_keeps_its_contract() {
    kept(&suites::structure::run(&|| Box::new(PlainStructure)));
}

#[test]
fn defects_of_structure_are_caught() {
    caught(StructureFault::ALL, |fault| {
        suites::structure::run(&|| Box::new(FaultyStructure::new(*fault)))
    });
}

#[test]
fn graphzero_keeps_its_contract() {
    kept(&suites::structure::run(&|| Box::new(shipped::Graph)));
}

#[test]
fn simple_tokens_keep_their_contract() {
    kept(&suites::tokens::run(&|| Box::new(PlainTokens)));
}

#[test]
fn defects_of_tokens_are_caught() {
    caught(TokenFault::ALL, |fault| {
        suites::tokens::run(&|| Box::new(FaultyTokens::new(*fault)))
    });
}

#[test]
fn tokenzero_keeps_its_contract() {
    kept(&suites::tokens::run(&|| Box::new(shipped::TokensShipped)));
}

#[test]
fn simple_files_keep_their_contract() {
    kept(&suites::files::run(&|| Box::new(MemoryFiles::default())));
}

#[test]
fn defects_of_files_are_caught() {
    caught(FileFault::ALL, |fault| {
        suites::files::run(&|| Box::new(MemoryFiles::with_fault(*fault)))
    });
}

#[test]
fn fszero_keeps_its_contract() {
    kept(&suites::files::run(&|| Box::new(shipped::Workspace::default())));
}

/// The page of this crate says how many checks and defects there are.
#[test]
fn the_page_counts_what_there_is() {
    let page = include_str!("../../README.md");
    let counted = [
        (
            "objects",
            suites::objects::run(&|| Box::new(MemoryObjects::default())),
            ObjectFault::ALL.len(),
        ),
        (
            "source",
            suites::source::run(&|| Box::new(MemoryViews)),
            SourceFault::ALL.len(),
        ),
        (
            "files",
            suites::files::run(&|| Box::new(MemoryFiles::default())),
            FileFault::ALL.len(),
        ),
        (
            "structure",
            suites::structure::run(&|| Box::new(PlainStructure)),
            StructureFault::ALL.len(),
        ),
        (
            "tokens",
            suites::tokens::run(&|| Box::new(PlainTokens)),
            TokenFault::ALL.len(),
        ),
    ];
    for (suite, report, defects) in counted {
        let row = page
            .lines()
            .find(|line| line.starts_with(&format!("| `suites::{suite}` |")));
        let end = format!("| {} | {defects} |", report.checks.len());
        assert!(
            row.is_some_and(|row| row.ends_with(&end)),
            "{suite}: {row:?} should end with {end}"
        );
    }
}
