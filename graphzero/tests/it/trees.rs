//! Scopes, pages, text search, patterns, ranking, and the agreement of incremental and fresh engines.

use graphzero::GraphZero;
use graphzero::testing::{DirectoryView, MemoryView};
use proptest::prelude::*;
use zero_contracts::find::{Absence, CaseMode, FindMode, FindOptions, FindRequest, OneOrMany};
use zero_contracts::{CancelToken, ErrorKind, Hasher, SourceView, StructureEngine};

use crate::fixtures::Fixture;

#[test]
fn text_search_has_places_context_and_binary_files() {
    let f = Fixture::new("//- a.txt\none\ntwo é needle\nthree\n//- b.txt\nnothing\n");
    f.view.write("c.bin", b"needle\0\xff");
    let options = FindOptions {
        context: Some(1),
        ..FindOptions::default()
    };
    let answer = f.ask_with("needle", options);
    assert_eq!(answer.total, 1);
    let item = &answer.items[0];
    assert_eq!(
        (item.range.start.line, item.range.start.column, item.range.end.column),
        (2, 7, 12)
    );
    assert_eq!(item.text, "two é needle");
    let context = item.context.as_ref().unwrap();
    assert_eq!(
        (context.before.as_slice(), context.after.as_slice()),
        (&["one".to_owned()][..], &["three".to_owned()][..])
    );
    assert_eq!(answer.coverage.skipped[0].why, "binary");
    let scoped = FindOptions {
        path: Some(OneOrMany::One("*.txt".into())),
        ..FindOptions::default()
    };
    assert_eq!(f.ask_with("absent", scoped).absence, Some(Absence::Certified));
    let insensitive = FindOptions {
        mode: FindMode::Regex,
        case_mode: Some(CaseMode::Insensitive),
        ..FindOptions::default()
    };
    assert_eq!(f.ask_with("^T(wo|hree)", insensitive).total, 2);
}

/// Files that no memory holds, in every mode: they are left out, and what was not read is not certified to be absent.
#[test]
fn files_larger_than_memory_are_skipped_and_told() {
    let directory = tempfile::tempdir().unwrap();
    let make = |name: &str, bytes: u64| {
        let file = std::fs::File::create(directory.path().join(name)).unwrap();
        file.set_len(bytes).unwrap();
    };
    std::fs::write(directory.path().join("small.rs"), "fn small() {}\n").unwrap();
    for name in ["huge.rs", "huge.txt", "huge.unknown", "huge"] {
        make(name, 1 << 40);
    }
    let view = DirectoryView::new(directory.path());
    let engine = GraphZero::default();
    let ask = |query: &str, mode: FindMode| {
        let request = FindRequest {
            query: query.into(),
            options: FindOptions {
                mode,
                ..FindOptions::default()
            },
        };
        engine
            .find(&view, &request, &CancelToken::new())
            .unwrap_or_else(|e| panic!("{mode:?}: {e}"))
    };
    use FindMode::*;
    for mode in [
        Text,
        Word,
        Regex,
        Pattern,
        Symbols,
        Definitions,
        References,
        Callers,
        Callees,
        Imports,
        Importers,
        Impact,
        Semantic,
    ] {
        let answer = ask("nowhere", mode);
        assert_eq!(answer.total, 0, "{mode:?}");
        assert_ne!(answer.absence, Some(Absence::Certified), "{mode:?}");
        let skipped = &answer.coverage.skipped;
        assert!(
            skipped
                .iter()
                .any(|skip| skip.path == "huge.rs" && skip.why == "too_large"),
            "{mode:?}: {skipped:?}"
        );
    }
    assert_eq!(ask("small", Definitions).total, 1);
    assert_eq!(ask("small", Text).total, 1);
    // A path needs no memory, whatever lies there.
    for name in ["huge.rs", "huge.txt", "huge.unknown", "huge"] {
        std::fs::remove_file(directory.path().join(name)).unwrap();
    }
    make("large", (256 << 20) + 1);
    let mut hasher = Hasher::new();
    (0..=256).for_each(|n| {
        hasher.update(&vec![0; if n < 256 { 1 << 20 } else { 1 }]);
    });
    assert_eq!(ask("large", Paths).items[0].digest, hasher.finish());
}

/// A mention in a file that is not UTF-8 is a mention.
#[test]
fn absence_is_not_certified_past_a_mention_in_any_encoding() {
    let text = "caf\u{e9} = nowhere()\n";
    let latin: Vec<u8> = text.chars().map(|c| c as u8).collect();
    let little: Vec<u8> = "\u{feff}"
        .encode_utf16()
        .chain(text.encode_utf16())
        .flat_map(u16::to_le_bytes)
        .collect();
    let big: Vec<u8> = "\u{feff}"
        .encode_utf16()
        .chain(text.encode_utf16())
        .flat_map(u16::to_be_bytes)
        .collect();
    let definitions = |f: &Fixture, query: &str| {
        let options = FindOptions {
            mode: FindMode::Definitions,
            ..FindOptions::default()
        };
        f.ask_with(query, options).absence
    };
    for bytes in [text.as_bytes(), &latin, &little, &big] {
        let f = Fixture::new("//- a.rs\nfn a() {}\n");
        f.view.write("x.unknown", bytes);
        assert_eq!(definitions(&f, "nowhere"), Some(Absence::Uncertified), "{bytes:?}");
        assert_eq!(definitions(&f, "elsewhere"), Some(Absence::Certified), "{bytes:?}");
    }
    let f = Fixture::new("//- a.rs\nfn a() {}\n");
    f.view.write("program", b"\x7fELF\0nowhere\0");
    assert_eq!(definitions(&f, "nowhere"), Some(Absence::Certified));
}

#[test]
fn matches_without_end_are_refused() {
    let f = Fixture::new("//- a.txt\none\n");
    let line = b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n".repeat(1 << 15);
    for n in 0..2 {
        f.view.write(&format!("many{n}"), &line);
    }
    let request = FindRequest {
        query: "a".into(),
        options: FindOptions::default(),
    };
    let error = f.engine.find(&f.view, &request, &CancelToken::new()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Budget, "{error}");
    let scoped = FindOptions {
        path: Some(OneOrMany::One("many1".into())),
        limit: Some(1),
        ..FindOptions::default()
    };
    assert_eq!(f.ask_with("a", scoped).total, 63 << 15);
}

#[test]
fn scopes_are_checked() {
    let f = Fixture::new("//- src/a.rs\nfn a() {}\n");
    let ask = |path: &str| {
        let options = FindOptions {
            path: Some(OneOrMany::One(path.into())),
            mode: FindMode::Symbols,
            ..FindOptions::default()
        };
        f.engine.find(
            &f.view,
            &FindRequest {
                query: String::new(),
                options,
            },
            &CancelToken::new(),
        )
    };
    assert_eq!(ask("nowhere").unwrap_err().kind, ErrorKind::NotFound);
    assert_eq!(ask("**/*.py").unwrap().total, 0);
    assert_eq!(ask("src").unwrap().total, 1);
    let options = FindOptions {
        language: Some("cobol".into()),
        ..FindOptions::default()
    };
    let error = f
        .engine
        .find(
            &f.view,
            &FindRequest {
                query: "x".into(),
                options,
            },
            &CancelToken::new(),
        )
        .unwrap_err();
    assert!(error.accepted.contains(&"rust".to_owned()));
}

#[test]
fn pages_join_to_the_whole_and_notice_changes() {
    let text: String = (0..25).map(|n| format!("fn f{n}() {{}}\n")).collect();
    let view = MemoryView::new([("src/lib.rs", text.as_str())]);
    let engine = GraphZero::new();
    let ask = |next: Option<String>| {
        let options = FindOptions {
            mode: FindMode::Symbols,
            limit: Some(10),
            next,
            ..FindOptions::default()
        };
        engine.find(
            &view,
            &FindRequest {
                query: "f".into(),
                options,
            },
            &CancelToken::new(),
        )
    };
    let (mut names, mut next) = (Vec::new(), None);
    loop {
        let page = ask(next).unwrap();
        assert_eq!(page.total, 25);
        assert_eq!(page.complete, page.next.is_none());
        names.extend(page.items.into_iter().map(|item| item.symbol.unwrap()));
        next = page.next;
        if next.is_none() {
            break;
        }
    }
    assert_eq!(names, (0..25).map(|n| format!("f{n}")).collect::<Vec<_>>());
    let cursor = ask(None).unwrap().next;
    view.write("src/more.rs", "fn f99() {}");
    let error = ask(cursor).unwrap_err();
    assert!(error.kind == ErrorKind::Conflict && error.retryable);
    assert_eq!(ask(Some("nonsense".into())).unwrap_err().kind, ErrorKind::InvalidInput);
}

#[test]
fn patterns_capture() {
    let f = Fixture::new(
        "//- src/lib.rs\nfn run() { foo(1, bar(2)); foo(3, 3); let x = a.unwrap(); }\n//- a.py\nfoo(1, 2)\n",
    );
    let of = |pattern: &str| {
        f.ask(FindMode::Pattern, pattern)
            .items
            .into_iter()
            .map(|i| (i.path, i.captures))
            .collect::<Vec<_>>()
    };
    assert_eq!(of("foo($A, $B)").len(), 3);
    let same = of("foo($A, $A)");
    assert_eq!((same.len(), same[0].1["A"].as_str()), (1, "3"));
    assert_eq!(of("foo($$$ARGS)").len(), 3);
    assert_eq!(of("$X.unwrap()")[0].1["X"], "a");
    assert!(of("baz($A)").is_empty());
}

#[test]
fn semantic_ranks_what_the_words_mean() {
    let f = Fixture::new(
        "//- src/lib.rs
/// Reads the header of an HTTP request.
pub fn parse_http_headers() {}
/// Draws a circle.
pub fn draw() {}
pub fn header_count() {}
",
    );
    let names: Vec<_> = f
        .ask(FindMode::Semantic, "parsing http header")
        .items
        .into_iter()
        .map(|i| i.symbol.unwrap())
        .collect();
    assert_eq!(names, ["parse_http_headers", "header_count"]);
}

#[test]
fn outlines_symbols_and_errors_of_one_content() {
    let engine = GraphZero::new();
    let token = CancelToken::new();
    let path = "src/x.rs".parse().unwrap();
    let text = b"struct A;\nimpl A {\n    fn go(&self) {\n        1;\n    }\n}\n";
    let outline = engine.outline(&path, text, &token).unwrap().unwrap();
    let names: Vec<&str> = outline.iter().map(|item| item.symbol.as_str()).collect();
    assert_eq!(names, ["A", "A", "A::go"]);
    assert_eq!(outline[2].signature.as_deref(), Some("fn go(&self)"));
    let found = engine.symbol(&path, text, "A::go", &token).unwrap();
    assert_eq!((found.len(), found[0].start.line, found[0].end.line), (1, 3, 5));
    assert!(
        engine
            .syntax_errors(&path, b"fn (", &token)
            .unwrap()
            .is_some_and(|e| !e.is_empty())
    );
    assert!(
        engine
            .syntax_errors(&path, text, &token)
            .unwrap()
            .is_some_and(|e| e.is_empty())
    );
    assert!(
        engine
            .outline(&"x.unknown".parse().unwrap(), text, &token)
            .unwrap()
            .is_none()
    );
}

#[test]
fn a_cancelled_token_ends_a_query() {
    let f = Fixture::new("//- src/lib.rs\nfn a() {}\n");
    let token = CancelToken::new();
    token.cancel();
    let request = FindRequest {
        query: "a".into(),
        options: FindOptions {
            mode: FindMode::Symbols,
            ..FindOptions::default()
        },
    };
    assert_eq!(
        f.engine.find(&f.view, &request, &token).unwrap_err().kind,
        ErrorKind::Cancelled
    );
}

const BODIES: &[&str] = &[
    "pub fn alpha() { beta() }\n",
    "use crate::m1::*;\npub fn beta() { alpha(); }\n",
    "pub struct S;\nimpl S { pub fn alpha(&self) { self.beta() } fn beta(&self) {} }\n",
    "pub fn user(s: crate::m0::S) { s.alpha(); crate::m1::beta(); }\n",
    "pub use crate::m2::S as T;\nfn broken( {\n",
    "macro_rules! make { ($n:ident) => { fn $n() { beta() } } }\nmake!(gamma);\npub fn beta() {}\n",
    "",
];

fn snapshot(engine: &GraphZero, view: &dyn SourceView) -> String {
    let mut all = String::new();
    for mode in [
        FindMode::Definitions,
        FindMode::References,
        FindMode::Callers,
        FindMode::Impact,
        FindMode::Imports,
    ] {
        for query in ["alpha", "beta", "S", "gamma", "src/m1.rs"] {
            let options = FindOptions {
                mode,
                limit: Some(1000),
                ..FindOptions::default()
            };
            let answer = engine.find(
                view,
                &FindRequest {
                    query: query.into(),
                    options,
                },
                &CancelToken::new(),
            );
            all.push_str(&format!("{mode:?} {query}: {answer:?}\n"));
        }
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(12), ..ProptestConfig::default() })]

    #[test]
    fn incremental_equals_from_scratch(edits in prop::collection::vec((0usize..4, 0usize..BODIES.len(), any::<bool>()), 1..8)) {
        let view = MemoryView::new([("src/lib.rs", "mod m0; mod m1; mod m2; mod m3;\n")]);
        let engine = GraphZero::new();
        for (file, body, remove) in edits {
            let path = format!("src/m{file}.rs");
            if remove { view.remove(&path); } else { view.write(&path, BODIES[body]); }
            prop_assert_eq!(snapshot(&engine, &view), snapshot(&GraphZero::new(), &view));
        }
    }

    #[test]
    fn absence_is_never_certified_wrongly(bodies in prop::collection::vec((0usize..BODIES.len(), any::<bool>()), 1..5)) {
        let engine = GraphZero::new();
        let view = MemoryView::new([("src/lib.rs", "mod m0; mod m1;\n")]);
        let mut defined = false;
        let mut whole = true;
        for (at, (body, wanted)) in bodies.iter().enumerate() {
            let mut text = BODIES[*body].to_owned();
            if *wanted {
                text.push_str("pub fn wanted() {}\n");
            }
            defined |= wanted;
            whole &= !text.contains("broken") ;
            view.write(&format!("src/m{at}.rs"), text);
        }
        let options = FindOptions { mode: FindMode::Definitions, ..FindOptions::default() };
        let answer = engine.find(&view, &FindRequest { query: "wanted".into(), options }, &CancelToken::new()).unwrap();
        if answer.absence == Some(Absence::Certified) {
            prop_assert!(!defined);
        }
        if whole && !defined {
            prop_assert_eq!(answer.absence, Some(Absence::Certified));
        }
    }
}

/// Cases of a property: `GRAPHZERO_CASES` scales them for long runs.
fn cases(usual: u32) -> u32 {
    std::env::var("GRAPHZERO_CASES")
        .ok()
        .and_then(|n| n.parse::<u32>().ok())
        .map_or(usual, |all| all / 20)
}
