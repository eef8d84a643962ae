//! What a [`StructureEngine`] promises, whatever languages it knows beyond Rust.
//!
//! A mode that an engine answers with `unsupported` is not offered; text search is.

use std::sync::Arc;

use zero_contracts::find::{Absence, CaseMode, FindItem, FindMode, FindOptions, FindRequest, FindResult, OneOrMany};
use zero_contracts::{CancelToken, Digest, ErrorKind, SourceView, StructureEngine, WorkspacePath};

use crate::models::tree::MemoryView;
use crate::report::{self, Checked, Checks, Report, Stop, ensure, refused, same};
use crate::tree::Tree;

/// A structure engine.
pub trait Structures {
    /// The engine.
    fn engine(&self) -> Arc<dyn StructureEngine>;
}

/// Runs the suite against fresh engines.
pub fn run(fresh: &dyn Fn() -> Box<dyn Structures>) -> Report {
    report::run("StructureEngine", CHECKS, fresh)
}

const CHECKS: &Checks<dyn Structures> = &[
    ("a match tells its place", place),
    ("columns count characters, bytes count bytes", columns),
    ("every match of a line is an item", several_a_line),
    ("an item shows its line without the line end", line_text),
    ("an item's digest is that of the file", digest),
    ("items come in order of path and place", order),
    ("an answer of several pages is the whole answer", pages),
    ("the last page alone is complete", complete),
    ("a limit is kept", limit),
    ("letters compare as asked", case),
    ("a word stands between word boundaries", word),
    ("a regular expression is one", regex),
    ("a malformed regular expression is invalid", malformed),
    ("an empty query is invalid", empty),
    ("paths are found by glob", paths),
    ("context is the lines around", context),
    ("a scope limits what is searched", scope),
    ("a scope of nothing is not found", scope_of_nothing),
    ("a language limits what is searched", language),
    ("what is ignored is searched only when asked", ignored),
    ("an answer is of the present content", present),
    ("coverage counts the files in scope", coverage),
    ("absence is certified where everything was read", certified),
    ("absence is not certified where a file was left out", uncertified),
    ("absence is not said of something that is there", no_absence),
    ("a search can be cancelled", cancelled),
    ("definitions are definitions alone", definitions),
    ("a definition that is removed is gone", removed_definition),
    ("references say their confidence", references),
    ("an outline lists the symbols in order", outline),
    ("an unknown language has no outline", unknown_outline),
    ("a symbol's range is its definition", symbol),
    ("a symbol of an unknown language is unsupported", unknown_symbol),
    ("a symbol that is not there has no range", absent_symbol),
    ("syntax errors are seen, and only where there are some", syntax_errors),
    ("an unknown language has no syntax errors", unknown_errors),
];

fn request(query: &str, options: FindOptions) -> FindRequest {
    FindRequest {
        query: query.to_owned(),
        options,
    }
}

fn mode(mode: FindMode) -> FindOptions {
    FindOptions {
        mode,
        ..FindOptions::default()
    }
}

fn find(subject: &dyn Structures, tree: &Tree, query: &str, options: FindOptions) -> Result<FindResult, Stop> {
    let view: Arc<dyn SourceView> = Arc::new(MemoryView(tree.clone()));
    match subject
        .engine()
        .find(&*view, &request(query, options), &CancelToken::new())
    {
        Err(e) if e.kind == ErrorKind::Unsupported => Err(Stop::NotOffered),
        found => Ok(found?),
    }
}

fn places(items: &[FindItem]) -> Vec<(String, u64)> {
    items
        .iter()
        .map(|item| (item.path.clone(), item.range.start.line))
        .collect()
}

fn wanted(places: &[(&str, u64)]) -> Vec<(String, u64)> {
    places.iter().map(|(path, line)| ((*path).to_owned(), *line)).collect()
}

fn only<'a>(items: &'a [FindItem], what: &str) -> Result<&'a FindItem, Stop> {
    match items {
        [item] => Ok(item),
        _ => Err(Stop::Broken(format!("{what}: {} items, not 1", items.len()))),
    }
}

fn place(subject: &dyn Structures) -> Checked {
    let tree = Tree::new().file("d/a", "one\n  two three\n");
    let found = find(subject, &tree, "two", FindOptions::default())?;
    let item = only(&found.items, "two")?;
    let (start, end) = (item.range.start, item.range.end);
    same!(item.path, "d/a", "the path");
    same!((start.line, start.column, start.byte), (2, 3, 6), "the start");
    same!((end.line, end.column, end.byte), (2, 5, 9), "the end");
    same!(found.total, 1, "the total");
    Ok(())
}

fn columns(subject: &dyn Structures) -> Checked {
    let tree = Tree::new().file("a", "äß€😀needle\n");
    let found = find(subject, &tree, "needle", FindOptions::default())?;
    let start = only(&found.items, "needle")?.range.start;
    same!((start.line, start.column, start.byte), (1, 5, 11), "the start");
    Ok(())
}

fn several_a_line(subject: &dyn Structures) -> Checked {
    let found = find(
        subject,
        &Tree::new().file("a", "x y x\nx\n"),
        "x",
        FindOptions::default(),
    )?;
    let starts: Vec<u64> = found.items.iter().map(|item| item.range.start.byte).collect();
    same!(starts, vec![0, 4, 6], "the bytes they start at");
    Ok(())
}

fn line_text(subject: &dyn Structures) -> Checked {
    for (content, line) in [
        ("first\nthe line\nlast\n", "the line"),
        ("the line\r\n", "the line"),
        ("the line", "the line"),
    ] {
        let found = find(subject, &Tree::new().file("a", content), "the", FindOptions::default())?;
        same!(only(&found.items, "the")?.text, line, format!("in {content:?}"));
    }
    Ok(())
}

fn digest(subject: &dyn Structures) -> Checked {
    let found = find(
        subject,
        &Tree::new().file("a", "some text\n"),
        "text",
        FindOptions::default(),
    )?;
    same!(
        only(&found.items, "text")?.digest,
        Digest::of(b"some text\n"),
        "the digest"
    );
    Ok(())
}

fn many() -> Tree {
    ["b/2", "a", "c", "b/1"]
        .iter()
        .fold(Tree::new(), |tree, path| tree.file(path, "hit\nmiss\nhit\n"))
}

fn order(subject: &dyn Structures) -> Checked {
    let found = find(subject, &many(), "hit", FindOptions::default())?;
    let order = [
        ("a", 1),
        ("a", 3),
        ("b/1", 1),
        ("b/1", 3),
        ("b/2", 1),
        ("b/2", 3),
        ("c", 1),
        ("c", 3),
    ];
    same!(places(&found.items), wanted(&order), "the places");
    Ok(())
}

fn all_pages(subject: &dyn Structures, tree: &Tree, query: &str, limit: u64) -> Result<Vec<FindResult>, Stop> {
    let mut pages: Vec<FindResult> = Vec::new();
    loop {
        let next = pages.last().and_then(|page| page.next.clone());
        if !pages.is_empty() && next.is_none() {
            return Ok(pages);
        }
        ensure!(pages.len() < 50, "it never comes to an end");
        let options = FindOptions {
            limit: Some(limit),
            next,
            ..FindOptions::default()
        };
        pages.push(find(subject, tree, query, options)?);
    }
}

fn pages(subject: &dyn Structures) -> Checked {
    let whole = find(subject, &many(), "hit", FindOptions::default())?;
    let pages = all_pages(subject, &many(), "hit", 3)?;
    let together: Vec<FindItem> = pages.iter().flat_map(|page| page.items.clone()).collect();
    same!(places(&together), places(&whole.items), "the places of all pages");
    ensure!(
        pages.iter().all(|page| page.total == 8),
        "a page does not tell the total"
    );
    Ok(())
}

fn complete(subject: &dyn Structures) -> Checked {
    let pages = all_pages(subject, &many(), "hit", 3)?;
    let complete: Vec<bool> = pages.iter().map(|page| page.complete).collect();
    same!(complete, vec![false, false, true], "complete");
    Ok(())
}

fn limit(subject: &dyn Structures) -> Checked {
    let sizes: Vec<usize> = all_pages(subject, &many(), "hit", 3)?
        .iter()
        .map(|page| page.items.len())
        .collect();
    same!(sizes, vec![3, 3, 2], "items a page");
    Ok(())
}

fn case(subject: &dyn Structures) -> Checked {
    let tree = Tree::new().file("a", "Name\nname\nNAME\n");
    for (query, how, lines) in [
        ("name", CaseMode::Sensitive, vec![2]),
        ("name", CaseMode::Insensitive, vec![1, 2, 3]),
        ("name", CaseMode::Smart, vec![1, 2, 3]),
        ("Name", CaseMode::Smart, vec![1]),
    ] {
        let options = FindOptions {
            case_mode: Some(how),
            ..FindOptions::default()
        };
        let found = find(subject, &tree, query, options)?;
        let given: Vec<u64> = found.items.iter().map(|item| item.range.start.line).collect();
        same!(given, lines, format!("{query} {how:?}"));
    }
    Ok(())
}

fn word(subject: &dyn Structures) -> Checked {
    let tree = Tree::new().file("a", "cat\nconcat\ncat_food\n(cat)\n");
    let found = find(subject, &tree, "cat", mode(FindMode::Word))?;
    same!(places(&found.items), wanted(&[("a", 1), ("a", 4)]), "the places");
    Ok(())
}

fn regex(subject: &dyn Structures) -> Checked {
    let tree = Tree::new().file("a", "v1.2\nv1\nxv10.20\n");
    let found = find(subject, &tree, r"^v\d+\.\d+$", mode(FindMode::Regex))?;
    same!(places(&found.items), wanted(&[("a", 1)]), "the places");
    Ok(())
}

fn refuses(subject: &dyn Structures, tree: &Tree, query: &str, options: FindOptions, kind: ErrorKind) -> Checked {
    let view = MemoryView(tree.clone());
    let found = subject
        .engine()
        .find(&view, &request(query, options), &CancelToken::new());
    refused(found, &[kind], "it")
}

fn malformed(subject: &dyn Structures) -> Checked {
    let tree = Tree::new().file("a", "x");
    refuses(subject, &tree, "(", mode(FindMode::Regex), ErrorKind::InvalidInput)
}

fn empty(subject: &dyn Structures) -> Checked {
    let tree = Tree::new().file("a", "x");
    refuses(subject, &tree, "", FindOptions::default(), ErrorKind::InvalidInput)
}

fn paths(subject: &dyn Structures) -> Checked {
    let tree = Tree::new().file("src/a.rs", "").file("src/b.txt", "").file("c.rs", "");
    let found = find(subject, &tree, "src/*.rs", mode(FindMode::Paths))?;
    let given: Vec<&str> = found.items.iter().map(|item| item.path.as_str()).collect();
    same!(given, vec!["src/a.rs"], "the paths");
    Ok(())
}

fn context(subject: &dyn Structures) -> Checked {
    let options = FindOptions {
        context: Some(2),
        ..FindOptions::default()
    };
    let found = find(subject, &Tree::new().file("a", "1\n2\n3\nhit\n5\n"), "hit", options)?;
    let around = only(&found.items, "hit")?.context.clone();
    let around = around.map(|lines| (lines.before, lines.after));
    same!(
        around,
        Some((vec!["2".to_owned(), "3".into()], vec!["5".to_owned()])),
        "the lines"
    );
    Ok(())
}

fn scope(subject: &dyn Structures) -> Checked {
    for (path, places) in [
        ("b", vec![("b/1", 1), ("b/1", 3), ("b/2", 1), ("b/2", 3)]),
        ("b/1", vec![("b/1", 1), ("b/1", 3)]),
        ("b/*2", vec![("b/2", 1), ("b/2", 3)]),
    ] {
        let options = FindOptions {
            path: Some(OneOrMany::One(path.into())),
            ..FindOptions::default()
        };
        same!(places_of(subject, &many(), "hit", options)?, wanted(&places), path);
    }
    Ok(())
}

fn places_of(
    subject: &dyn Structures,
    tree: &Tree,
    query: &str,
    options: FindOptions,
) -> Result<Vec<(String, u64)>, Stop> {
    Ok(places(&find(subject, tree, query, options)?.items))
}

fn scope_of_nothing(subject: &dyn Structures) -> Checked {
    let options = FindOptions {
        path: Some(OneOrMany::One("nowhere".into())),
        ..FindOptions::default()
    };
    refuses(subject, &many(), "hit", options, ErrorKind::NotFound)
}

fn language(subject: &dyn Structures) -> Checked {
    let tree = Tree::new().file("a.rs", "// hit\n").file("a.txt", "hit\n");
    let options = |language: &str| FindOptions {
        language: Some(language.into()),
        ..FindOptions::default()
    };
    same!(
        places_of(subject, &tree, "hit", options("rust"))?,
        wanted(&[("a.rs", 1)]),
        "rust"
    );
    refuses(
        subject,
        &tree,
        "hit",
        options("no such language"),
        ErrorKind::InvalidInput,
    )
}

fn ignored(subject: &dyn Structures) -> Checked {
    let tree = Tree::new()
        .file(".gitignore", "out/\n")
        .file("out/a", "hit\n")
        .file("b", "hit\n");
    let all = FindOptions {
        ignored: true,
        ..FindOptions::default()
    };
    same!(
        places_of(subject, &tree, "hit", FindOptions::default())?,
        wanted(&[("b", 1)]),
        "plain"
    );
    same!(
        places_of(subject, &tree, "hit", all)?,
        wanted(&[("b", 1), ("out/a", 1)]),
        "asked"
    );
    Ok(())
}

fn present(subject: &dyn Structures) -> Checked {
    let engine = subject.engine();
    let ask = |content: &str| {
        let view = MemoryView(Tree::new().file("a.rs", content));
        engine.find(&view, &request("hit", FindOptions::default()), &CancelToken::new())
    };
    same!(places(&ask("fn hit() {}\n")?.items), wanted(&[("a.rs", 1)]), "at first");
    same!(
        places(&ask("\n\nfn hit() {}\n")?.items),
        wanted(&[("a.rs", 3)]),
        "after lines were inserted"
    );
    same!(places(&ask("fn mit() {}\n")?.items), wanted(&[]), "after it went");
    Ok(())
}

fn coverage(subject: &dyn Structures) -> Checked {
    let found = find(subject, &many(), "hit", FindOptions::default())?;
    same!(
        (found.coverage.files, found.coverage.read),
        (4, 4),
        "files in scope and read"
    );
    Ok(())
}

fn certified(subject: &dyn Structures) -> Checked {
    let found = find(subject, &many(), "nothing like this", FindOptions::default())?;
    same!(
        (found.total, found.absence),
        (0, Some(Absence::Certified)),
        "total and absence"
    );
    ensure!(found.complete, "the answer is not complete");
    Ok(())
}

fn uncertified(subject: &dyn Structures) -> Checked {
    let tree = many().file("binary", b"\x00\x01hidden in binary\x00");
    let found = find(subject, &tree, "nothing like this", FindOptions::default())?;
    same!(
        (found.total, found.absence),
        (0, Some(Absence::Uncertified)),
        "total and absence"
    );
    let skipped: Vec<&str> = found
        .coverage
        .skipped
        .iter()
        .map(|skipped| skipped.path.as_str())
        .collect();
    same!(skipped, vec!["binary"], "what was left out");
    Ok(())
}

fn no_absence(subject: &dyn Structures) -> Checked {
    same!(
        find(subject, &many(), "hit", FindOptions::default())?.absence,
        None,
        "absence"
    );
    Ok(())
}

fn cancelled(subject: &dyn Structures) -> Checked {
    let token = CancelToken::new();
    token.cancel();
    let found = subject
        .engine()
        .find(&MemoryView(many()), &request("hit", FindOptions::default()), &token);
    refused(found, &[ErrorKind::Cancelled], "it")
}

const SOURCE: &str = "fn first() {\n    second();\n}\n\nfn second() {\n    first();\n}\n";

fn definitions(subject: &dyn Structures) -> Checked {
    let tree = Tree::new().file("a.rs", SOURCE);
    let found = find(subject, &tree, "second", mode(FindMode::Definitions))?;
    same!(places(&found.items), wanted(&[("a.rs", 5)]), "the places");
    ensure!(
        only(&found.items, "second")?
            .symbol
            .as_deref()
            .is_some_and(|symbol| symbol.ends_with("second")),
        "it does not name its symbol"
    );
    Ok(())
}

fn removed_definition(subject: &dyn Structures) -> Checked {
    let engine = subject.engine();
    let ask = |tree: Tree| {
        let request = request("second", mode(FindMode::Definitions));
        engine.find(&MemoryView(tree), &request, &CancelToken::new())
    };
    let tree = Tree::new().file("a.rs", SOURCE).file("b.rs", "fn other() {}\n");
    match ask(tree.clone()) {
        Err(e) if e.kind == ErrorKind::Unsupported => return Err(Stop::NotOffered),
        found => same!(found?.total, 1, "before"),
    }
    same!(ask(tree.without("a.rs"))?.total, 0, "after its file went");
    Ok(())
}

fn references(subject: &dyn Structures) -> Checked {
    let tree = Tree::new().file("a.rs", SOURCE);
    let found = find(subject, &tree, "second", mode(FindMode::References))?;
    same!(places(&found.items), wanted(&[("a.rs", 2)]), "the places");
    ensure!(
        only(&found.items, "second")?.confidence.is_some(),
        "it does not say its confidence"
    );
    Ok(())
}

fn a_path(text: &str) -> Result<WorkspacePath, Stop> {
    Ok(WorkspacePath::from_raw(text.as_bytes())?)
}

fn outline(subject: &dyn Structures) -> Checked {
    let listed = subject
        .engine()
        .outline(&a_path("a.rs")?, SOURCE.as_bytes(), &CancelToken::new())?;
    let listed: Option<Vec<_>> = listed.map(|items| {
        let last = |symbol: &str| symbol.rsplit("::").next().unwrap_or_default().to_owned();
        items
            .iter()
            .map(|item| (last(&item.symbol), item.lines.first()))
            .collect()
    });
    same!(
        listed,
        Some(vec![("first".to_owned(), 1), ("second".to_owned(), 5)]),
        "the outline"
    );
    Ok(())
}

fn unknown_outline(subject: &dyn Structures) -> Checked {
    let listed = subject
        .engine()
        .outline(&a_path("a.unknown")?, b"fn x() {}", &CancelToken::new())?;
    ensure!(listed.is_none(), "it has {listed:?}");
    Ok(())
}

fn symbol(subject: &dyn Structures) -> Checked {
    let ranges = subject
        .engine()
        .symbol(&a_path("a.rs")?, SOURCE.as_bytes(), "second", &CancelToken::new())?;
    let [range] = &ranges[..] else {
        return Err(Stop::Broken(format!("{} ranges, not 1", ranges.len())));
    };
    let text = SOURCE.get(range.start.byte as usize..range.end.byte as usize);
    same!(text, Some("fn second() {\n    first();\n}"), "the text");
    same!((range.start.line, range.end.line), (5, 7), "the lines");
    Ok(())
}

fn unknown_symbol(subject: &dyn Structures) -> Checked {
    let ranges = subject
        .engine()
        .symbol(&a_path("a.unknown")?, b"fn x() {}", "x", &CancelToken::new());
    refused(ranges, &[ErrorKind::Unsupported], "it")
}

fn absent_symbol(subject: &dyn Structures) -> Checked {
    let ranges = subject
        .engine()
        .symbol(&a_path("a.rs")?, SOURCE.as_bytes(), "third", &CancelToken::new())?;
    ensure!(ranges.is_empty(), "it has {ranges:?}");
    Ok(())
}

fn syntax_errors(subject: &dyn Structures) -> Checked {
    let engine = subject.engine();
    let token = CancelToken::new();
    let sound = engine.syntax_errors(&a_path("a.rs")?, SOURCE.as_bytes(), &token)?;
    ensure!(sound.as_ref().is_some_and(Vec::is_empty), "sound code has {sound:?}");
    let broken = engine.syntax_errors(&a_path("a.rs")?, b"fn broken( {\n", &token)?;
    ensure!(
        broken.as_ref().is_some_and(|errors| !errors.is_empty()),
        "broken code has {broken:?}"
    );
    Ok(())
}

fn unknown_errors(subject: &dyn Structures) -> Checked {
    let errors = subject
        .engine()
        .syntax_errors(&a_path("a.unknown")?, b"fn broken( {\n", &CancelToken::new())?;
    ensure!(errors.is_none(), "it has {errors:?}");
    Ok(())
}
