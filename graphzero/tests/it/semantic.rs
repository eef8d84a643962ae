//! Ranked search on real sources: recorded questions, and the rank of what answers them.
//!
//! The sources are those of the contracts, which stand beside this crate wherever it stands.

use std::collections::BTreeSet;

use graphzero::GraphZero;
use graphzero::testing::MemoryView;
use zero_contracts::find::{FindItem, FindMode, FindOptions, FindRequest};
use zero_contracts::{CancelToken, StructureEngine};

macro_rules! sources {
    ($($name:literal)*) => {
        &[$((concat!("src/", $name, ".rs"), include_str!(concat!("../../../contracts/src/", $name, ".rs"))),)*]
    };
}

const SOURCES: &[(&str, &str)] = sources!(
    "apply" "budget" "cancel" "content" "digest" "edit" "error" "event" "files" "find" "handle" "json" "ledger" "objects"
    "operation" "path" "range" "read" "response" "run" "source" "state" "structure" "tokens" "wire"
);

/// Questions as somebody who does not know the names would ask, and what answers them.
const QUESTIONS: &[(&str, &[&str])] = &[
    (
        "stop work early when the user gives up",
        &["CancelToken::cancel", "CancelToken"],
    ),
    ("how much time is left", &["CancelToken::remaining"]),
    ("has somebody cancelled this", &["CancelToken::is_cancelled"]),
    ("make a token with a timeout", &["CancelToken::with_timeout"]),
    ("token that ends with its parent", &["CancelToken::child"]),
    ("earliest deadline", &["CancelToken::deadline"]),
    ("hash of bytes", &["Digest::of", "Digest"]),
    ("digest as hexadecimal digits", &["Digest::to_hex"]),
    ("wrap a digest computed elsewhere", &["Digest::from_bytes"]),
    ("text or bytes of a file", &["Content", "Content::from_bytes"]),
    ("bytes without a copy", &["Content::into_bytes"]),
    ("set whether an error may be retried", &["Error::retryable"]),
    ("place of an error in the source", &["Error::with_location", "Location"]),
    ("wrap an operating system error", &["Error::from_io"]),
    ("error for malformed input", &["Error::invalid"]),
    (
        "list accepted values in an error",
        &["Error::with_accepted", "accepted"],
    ),
    ("attach a path to an error", &["Error::with_path"]),
    ("is this text a handle", &["Handle::is_handle"]),
    ("handle of a snapshot manifest", &["Handle::snapshot"]),
    ("handle that names exact bytes", &["Handle::blob"]),
    ("directory that holds an entry", &["WorkspacePath::parent"]),
    ("last component of a path", &["WorkspacePath::file_name"]),
    ("file extension", &["WorkspacePath::extension"]),
    ("is a path below another", &["WorkspacePath::is_within"]),
    ("escape bytes that are not UTF-8", &["escape"]),
    ("undo escaping of text", &["unescape"]),
    ("split a path into components", &["WorkspacePath::components"]),
    ("workspace root path", &["WorkspacePath::root"]),
    ("add a name to a path", &["WorkspacePath::join"]),
    ("number of bytes in a range", &["ByteRange::len"]),
    (
        "cut a range to the length of a file",
        &["ByteRange::within", "LineRange::within"],
    ),
    ("first line of a range", &["LineRange::first"]),
    ("parse a request from JSON", &["from_text", "from_value"]),
    ("encode a message in postcard", &["encode"]),
    ("decode a message of another version", &["decode"]),
    ("argument vector of a command", &["Command::argv"]),
    ("why did a process end", &["EndReason", "Termination"]),
    ("result of running a command", &["RunResult"]),
    ("which files were skipped and why", &["Skipped", "Coverage::skipped"]),
    ("how sure an edge is", &["Confidence"]),
    (
        "certified that nothing matches",
        &["Absence", "Absence::Certified", "FindResult::absence"],
    ),
    ("options of a search", &["FindOptions"]),
    ("case sensitivity of a search", &["CaseMode"]),
    ("store written objects", &["ObjectStore", "ObjectWriter"]),
    ("damaged part of the store", &["Damage"]),
    ("bytes freed by collection", &["Collected::freed_bytes", "Collected"]),
    ("what a cell last read of a file", &["ReadLog", "ReadLog::get"]),
    ("note that a file was read", &["ReadLog::note"]),
    (
        "commit a transaction",
        &["Transaction::commit", "CommitRecord", "CommitSeal"],
    ),
    (
        "restore after a failed commit",
        &["Restoration", "CommitFailure", "Transaction::restore"],
    ),
    ("cheap identity of file content", &["Stamp", "Entry::stamp"]),
    ("walk a tree of files", &["SourceView::walk", "WalkScope"]),
    ("read a symlink target", &["SourceView::read_link"]),
    (
        "outline of symbols in a file",
        &["StructureEngine::outline", "OutlineItem", "FileView::outline"],
    ),
    ("syntax errors of a file", &["StructureEngine::syntax_errors"]),
    ("count tokens of a text", &["TokenEngine::count", "TokenCount"]),
    ("confinement of processes", &["ConfinementTier"]),
    (
        "may an operation leave effects behind",
        &["Operation::may_have_effects"],
    ),
    ("response of a cell that never ran", &["ZeroKernelResponse::rejected"]),
    ("paths an operation depends on", &["FileOperation::paths"]),
];

fn ask(engine: &GraphZero, view: &MemoryView, mode: FindMode, query: &str) -> Vec<FindItem> {
    let options = FindOptions {
        mode,
        limit: Some(100_000),
        ..FindOptions::default()
    };
    let query = query.to_owned();
    let found = engine.find(view, &FindRequest { query, options }, &CancelToken::new());
    found.expect("the query is answered").items
}

/// Reciprocal rank of the first answer.
fn reciprocal(ranked: &[String], answers: &[&str]) -> f64 {
    let is_answer = |symbol: &String| {
        let tail = |answer: &&&str| symbol == **answer || symbol.ends_with(&format!("::{answer}"));
        answers.iter().any(|answer| tail(&answer))
    };
    ranked
        .iter()
        .position(is_answer)
        .map_or(0.0, |at| 1.0 / (at + 1) as f64)
}

/// Ranks definitions by how many of the question's words stand in the text from the documentation to the signature.
fn plain(question: &str, documents: &[(String, String)]) -> Vec<String> {
    let words: BTreeSet<String> = question.split_whitespace().map(str::to_lowercase).collect();
    let mut scored: Vec<(usize, &String)> = documents
        .iter()
        .map(|(symbol, text)| (words.iter().filter(|word| text.contains(word.as_str())).count(), symbol))
        .filter(|(score, _)| *score > 0)
        .collect();
    scored.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    scored.into_iter().map(|(_, symbol)| symbol.clone()).collect()
}

#[test]
fn recorded_questions_are_answered_near_the_top() {
    let view = MemoryView::new(SOURCES.iter().copied());
    let engine = GraphZero::new();
    let documents: Vec<(String, String)> = ask(&engine, &view, FindMode::Symbols, "")
        .into_iter()
        .map(|item| {
            let text = SOURCES
                .iter()
                .find(|(path, _)| *path == item.path)
                .map_or("", |(_, text)| text);
            let lines: Vec<&str> = text.lines().collect();
            let at = item.range.start.line as usize - 1;
            let mut from = at;
            while from > 0 && lines[from - 1].trim_start().starts_with("///") {
                from -= 1;
            }
            (
                item.symbol.unwrap_or_default(),
                lines[from..=at].join("\n").to_lowercase(),
            )
        })
        .collect();
    let (mut ours, mut theirs) = (0.0, 0.0);
    let mut missed = Vec::new();
    for (question, answers) in QUESTIONS {
        for answer in *answers {
            assert!(
                !answers[0].is_empty()
                    && documents
                        .iter()
                        .any(|(symbol, _)| reciprocal(std::slice::from_ref(symbol), &[answer]) > 0.0),
                "`{answer}` is there to be found"
            );
        }
        let ranked: Vec<String> = ask(&engine, &view, FindMode::Semantic, question)
            .into_iter()
            .filter_map(|item| item.symbol)
            .collect();
        let rank = reciprocal(&ranked, answers);
        ours += rank;
        theirs += reciprocal(&plain(question, &documents), answers);
        if rank < 0.5 {
            missed.push(format!("{rank:.2} {question}: {:?}", &ranked[..ranked.len().min(3)]));
        }
    }
    let count = QUESTIONS.len() as f64;
    assert!(count >= 50.0);
    println!(
        "mean reciprocal rank {:.3}, plain text {:.3}",
        ours / count,
        theirs / count
    );
    assert!(ours / count >= 0.7, "{:.3}\n{}", ours / count, missed.join("\n"));
    assert!(ours > theirs, "plain text ranks better: {:.3}", theirs / count);
}
