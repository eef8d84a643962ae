//! Random programs in every language of the build, against simple models.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use graphzero::GraphZero;
use graphzero::testing::MemoryView;
use proptest::prelude::*;
use zero_contracts::find::{Absence, FindMode, FindOptions, FindRequest, FindResult};
use zero_contracts::{CancelToken, SourceView, StructureEngine};

/// How one language writes what these tests need.
struct Writes {
    extension: &'static str,
    /// What begins a file.
    head: &'static str,
    /// A function with a name and calls.
    function: fn(&str, &[String]) -> String,
    /// What ends a file.
    tail: &'static str,
    /// Something that no parser takes, which mentions a name.
    broken: &'static str,
}

fn calls(names: &[String]) -> String {
    names.iter().map(|name| format!("{name}(); ")).collect()
}

const LANGUAGES: &[Writes] = &[
    Writes {
        extension: "rs",
        head: "#[allow(unused_imports)] use crate::*;\n",
        function: |name, to| format!("pub fn {name}() {{ {}}}\n", calls(to)),
        tail: "",
        broken: "fn broken( { wanted(\n",
    },
    Writes {
        extension: "ts",
        head: "",
        function: |name, to| format!("export function {name}() {{ {}}}\n", calls(to)),
        tail: "",
        broken: "function ( { wanted(\n",
    },
    Writes {
        extension: "py",
        head: "",
        function: |name, to| format!("def {name}():\n    pass; {}\n", calls(to)),
        tail: "",
        broken: "def (wanted:\n",
    },
    #[cfg(feature = "go")]
    Writes {
        extension: "go",
        head: "package p\n",
        function: |name, to| format!("func {name}() {{ {}}}\n", calls(to)),
        tail: "",
        broken: "func ( { wanted(\n",
    },
    #[cfg(feature = "java")]
    Writes {
        extension: "java",
        head: "package p;\nclass C {\n",
        function: |name, to| format!("static void {name}() {{ {}}}\n", calls(to)),
        tail: "}\n",
        broken: "void ( { wanted(\n",
    },
    #[cfg(feature = "c")]
    Writes {
        extension: "c",
        head: "",
        function: |name, to| format!("void {name}(void) {{ {}}}\n", calls(to)),
        tail: "",
        broken: "void ( { wanted(\n",
    },
    #[cfg(feature = "cpp")]
    Writes {
        extension: "cpp",
        head: "namespace n {\n",
        function: |name, to| format!("inline void {name}() {{ {}}}\n", calls(to)),
        tail: "}\n",
        broken: "void ( { wanted(\n",
    },
];

fn ask(engine: &GraphZero, view: &dyn SourceView, mode: FindMode, query: &str, to: Option<String>) -> FindResult {
    let options = FindOptions {
        mode,
        to,
        limit: Some(100_000),
        ..FindOptions::default()
    };
    let query = query.to_owned();
    let found = engine.find(view, &FindRequest { query, options }, &CancelToken::new());
    found.expect("the query is answered")
}

fn last(symbol: &str) -> String {
    symbol.rsplit(['.', ':']).next().unwrap_or_default().to_owned()
}

/// Distances of everything that reaches `from` over the edges given, without itself.
fn distances(edges: &BTreeMap<usize, BTreeSet<usize>>, from: usize) -> BTreeMap<usize, usize> {
    let (mut found, mut queue) = (BTreeMap::from([(from, 0)]), VecDeque::from([from]));
    while let Some(at) = queue.pop_front() {
        for &next in edges.get(&at).into_iter().flatten() {
            if !found.contains_key(&next) {
                found.insert(next, found[&at] + 1);
                queue.push_back(next);
            }
        }
    }
    found.remove(&from);
    found
}

fn check_graph(language: usize, edges: &[(usize, usize)]) -> Result<(), TestCaseError> {
    const FUNCTIONS: usize = 9;
    let writes = &LANGUAGES[language % LANGUAGES.len()];
    let name = |n: usize| format!("f{n}");
    let (mut calls, mut callers): (BTreeMap<usize, BTreeSet<usize>>, BTreeMap<usize, BTreeSet<usize>>) =
        Default::default();
    for &(from, to) in edges {
        calls.entry(from).or_default().insert(to);
        callers.entry(to).or_default().insert(from);
    }
    let functions: String = (0..FUNCTIONS)
        .map(|n| {
            let to: Vec<String> = calls.get(&n).into_iter().flatten().map(|&to| name(to)).collect();
            (writes.function)(&name(n), &to)
        })
        .collect();
    let path = format!("src/lib.{}", writes.extension);
    let text = format!("{}{functions}{}", writes.head, writes.tail);
    let (view, engine) = (MemoryView::new([(path.as_str(), text.as_str())]), GraphZero::new());
    for start in 0..FUNCTIONS {
        let expected = distances(&callers, start);
        let found = ask(&engine, &view, FindMode::Impact, &name(start), None).items;
        let names: BTreeSet<String> = found
            .iter()
            .map(|item| last(item.symbol.as_deref().unwrap_or("")))
            .collect();
        let wanted: BTreeSet<String> = expected.keys().map(|&n| name(n)).collect();
        prop_assert_eq!(&names, &wanted, "impact of {} in {}", name(start), text);
        for item in &found {
            // The evidence is a shortest chain of real calls from the item to the start.
            let mut chain: Vec<String> = vec![last(item.symbol.as_deref().unwrap_or(""))];
            chain.extend(item.via.iter().map(|step| last(step)));
            let numbers: Vec<usize> = chain.iter().map(|f| f[1..].parse().expect("a function")).collect();
            prop_assert_eq!(numbers.len(), expected[&numbers[0]] + 1);
            prop_assert_eq!(*numbers.last().expect("the start"), start);
            for step in numbers.windows(2) {
                prop_assert!(calls[&step[0]].contains(&step[1]), "{chain:?} in {text}");
            }
        }
        let reach = distances(&calls, start);
        for goal in (0..FUNCTIONS).filter(|&goal| goal != start) {
            let path = ask(&engine, &view, FindMode::CallPath, &name(start), Some(name(goal))).items;
            prop_assert_eq!(path.len(), reach.get(&goal).map_or(0, |distance| distance + 1));
            let numbers: Vec<usize> = path
                .iter()
                .map(|item| {
                    last(item.symbol.as_deref().unwrap_or(""))[1..]
                        .parse()
                        .expect("a function")
                })
                .collect();
            for step in numbers.windows(2) {
                prop_assert!(calls[&step[0]].contains(&step[1]));
            }
            if !numbers.is_empty() {
                prop_assert_eq!((numbers[0], numbers[numbers.len() - 1]), (start, goal));
            }
        }
    }
    Ok(())
}

/// One file: language, functions, what they call, whether it is broken, whether a file of no language mentions the name.
type FileSeed = (usize, Vec<(bool, bool)>, bool);

fn check_absence(files: &[FileSeed], data: bool, mode: usize) -> Result<(), TestCaseError> {
    let view = MemoryView::default();
    let (mut defined, mut used, mut broken) = (false, false, false);
    for (at, (language, functions, breaks)) in files.iter().enumerate() {
        let writes = &LANGUAGES[language % LANGUAGES.len()];
        let mut text = writes.head.to_owned();
        // A second definition of one name would count as a use of the first in Python.
        let first = functions.iter().position(|(define, _)| *define);
        for (n, (_, call)) in functions.iter().enumerate() {
            let define = first == Some(n);
            let name = if define {
                "wanted".to_owned()
            } else {
                format!("other_{at}_{n}")
            };
            let to = if *call {
                vec!["wanted".to_owned()]
            } else {
                vec![format!("helper_{n}")]
            };
            text.push_str(&(writes.function)(&name, &to));
            defined |= define;
            used |= call;
        }
        text.push_str(writes.tail);
        if *breaks {
            text.push_str(writes.broken);
            broken = true;
        }
        view.write(&format!("src/m{at}.{}", writes.extension), text);
    }
    // Prose cannot define anything; a file of an unknown language can.
    view.write("notes.md", "wanted");
    if data {
        view.write("script.unknown", "wanted");
    }
    let (mode, there) = [
        (FindMode::Definitions, defined),
        (FindMode::References, used),
        (FindMode::Symbols, defined),
    ][mode % 3];
    let engine = GraphZero::new();
    let answer = ask(&engine, &view, mode, "wanted", None);
    if answer.absence == Some(Absence::Certified) {
        prop_assert!(answer.items.is_empty());
        prop_assert!(!there, "certified wrongly: {mode:?}");
    }
    if !there && !broken && !data {
        prop_assert_eq!(answer.absence, Some(Absence::Certified), "{:?}", mode);
    }
    // Text is always certain: everything was read.
    let text = ask(&engine, &view, FindMode::Text, "nowhere to be found", None);
    prop_assert_eq!(text.absence, Some(Absence::Certified));
    Ok(())
}

/// Bodies of one file in each language, by extension: what edits put there.
fn body(language: usize, which: usize) -> String {
    let writes = &LANGUAGES[language % LANGUAGES.len()];
    let functions = match which % 5 {
        0 => (writes.function)("alpha", &["beta".to_owned()]),
        1 => (writes.function)("beta", &["alpha".to_owned(), "gamma".to_owned()]),
        2 => (writes.function)("gamma", &[]) + &(writes.function)("alpha", &["gamma".to_owned()]),
        3 => return writes.broken.to_owned(),
        _ => String::new(),
    };
    format!("{}{functions}{}", writes.head, writes.tail)
}

fn snapshot(engine: &GraphZero, view: &dyn SourceView) -> String {
    let mut all = String::new();
    for mode in [FindMode::Definitions, FindMode::References, FindMode::Impact] {
        for query in ["alpha", "beta", "gamma"] {
            all.push_str(&format!("{:?}\n", ask(engine, view, mode, query, None)));
        }
    }
    all
}

/// Cases of a property: `GRAPHZERO_CASES` scales them for long runs.
fn cases(usual: u32, share: u32) -> u32 {
    let given = std::env::var("GRAPHZERO_CASES")
        .ok()
        .and_then(|n| n.parse::<u32>().ok());
    given.map_or(usual, |all| all / share)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(8, 10), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn impact_is_the_closure_of_callers_and_call_paths_are_shortest(
        language in 0usize..64,
        edges in prop::collection::vec((0usize..9, 0usize..9), 0..18),
    ) {
        check_graph(language, &edges)?;
    }

    #[test]
    fn incremental_equals_from_scratch_in_every_language(
        edits in prop::collection::vec((0usize..6, 0usize..64, 0usize..5, any::<bool>()), 1..7),
    ) {
        let (view, engine) = (MemoryView::default(), GraphZero::new());
        let index = tempfile::tempdir().expect("a directory");
        for (file, language, which, remove) in edits {
            let path = format!("src/m{file}.{}", LANGUAGES[language % LANGUAGES.len()].extension);
            if remove { view.remove(&path); } else { view.write(&path, body(language, which)); }
            let scratch = snapshot(&GraphZero::new(), &view);
            prop_assert_eq!(&snapshot(&engine, &view), &scratch);
            // So does an engine that knows only what the disk kept of the earlier ones.
            let config = graphzero::GraphConfig::default().index(index.path());
            let kept = GraphZero::open(config).expect("an engine");
            prop_assert_eq!(&snapshot(&kept, &view), &scratch);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(64, 1), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn absence_is_certified_where_it_must_be_and_never_wrongly(
        files in prop::collection::vec(
            (0usize..64, prop::collection::vec((prop::bool::weighted(0.08), prop::bool::weighted(0.08)), 0..4), prop::bool::weighted(0.1)),
            0..5,
        ),
        data in prop::bool::weighted(0.1),
        mode in 0usize..3,
    ) {
        check_absence(&files, data, mode)?;
    }
}
