//! `z.find` through the whole kernel.

use serde_json::json;
use zero_contracts::{CancelToken, ErrorKind};
use zerostack::GcOptions;

use crate::hub_support::Workspace;

fn sources() -> Workspace {
    Workspace::new(&[
        (
            "src/lib.rs",
            "pub mod shape;\n\npub fn area(side: u32) -> u32 {\n    shape::square(side)\n}\n",
        ),
        (
            "src/shape.rs",
            "pub fn square(side: u32) -> u32 {\n    side * side\n}\n\npub fn cube(side: u32) -> u32 {\n    square(side) * side\n}\n",
        ),
        ("notes.md", "square is not called here\n"),
    ])
}

#[test]
fn text_modes_say_where_and_how_much() {
    let ws = sources();
    let found = ws.value("return z.find('square')");
    assert_eq!(
        (&found["total"], &found["complete"], &found["freshness"]),
        (&json!(4), &json!(true), &json!("present"))
    );
    assert_eq!(found["items"][0]["path"], "notes.md");
    let found = ws.value(r"return z.find('s(qu)are\\(', {mode: 'regex', path: 'src/shape.rs'})");
    assert_eq!(found["total"], 2);
    let found = ws.value("return z.find('shape', {mode: 'paths'})");
    assert_eq!(found["items"][0]["path"], "src/shape.rs");
    let found = ws.value("return z.find('circle')");
    assert_eq!((&found["total"], &found["absence"]), (&json!(0), &json!("certified")));
}

#[test]
fn structure_knows_definitions_and_callers() {
    let ws = sources();
    let found = ws.value("return z.find('square', {mode: 'definitions'})");
    assert_eq!(found["total"], 1);
    assert_eq!(found["items"][0]["range"]["start"]["line"], 1);
    let callers = ws.value("return (await z.find('square', {mode: 'callers'})).items.map(i => i.symbol)");
    let callers: Vec<&str> = callers
        .as_array()
        .unwrap()
        .iter()
        .map(|symbol| symbol.as_str().unwrap())
        .collect();
    assert_eq!(callers.len(), 2, "{callers:?}");
    assert!(
        callers.iter().any(|c| c.ends_with("area")) && callers.iter().any(|c| c.ends_with("cube")),
        "{callers:?}"
    );
}

#[test]
fn staged_edits_answer_inside_the_cell_alone() {
    let ws = sources();
    let total = ws.value(
        "await z.edit('src/shape.rs', {find: 'pub fn cube', replacement: '// five\\n// lines\\n// more\\n// are\\n// here\\npub fn cube'});
         const [d] = (await z.find('cube', {mode: 'definitions'})).items;
         await z.edit('src/new.rs', {create: 'pub fn hexagon() {}'});
         await z.edit('notes.md', {remove: true}, {expect: 'any'});
         return [d.range.start.line, (await z.find('hexagon', {mode: 'definitions'})).total, (await z.find('not called')).total]",
    );
    assert_eq!(total, json!([10, 1, 0]));
}

#[test]
fn items_can_guard_an_edit() {
    let ws = sources();
    let cell = "const [item] = (await z.find('side * side')).items;
        await z.edit(item.path, {find: 'side * side', replacement: 'side.pow(2)'}, {expect: item.digest}); return item.path";
    assert_eq!(ws.value(cell), "src/shape.rs");
    assert!(ws.file("src/shape.rs").contains("side.pow(2)"));
}

/// "There is none" needs a scope that was looked at: through links, and never outside.
#[test]
fn absence_is_not_certified_where_nothing_was_looked_at() {
    let ws = sources();
    std::os::unix::fs::symlink("src", ws.root.path().join("link")).unwrap();
    assert!(
        std::process::Command::new("mkfifo")
            .arg(ws.root.path().join("fifo"))
            .status()
            .unwrap()
            .success()
    );
    assert_eq!(
        ws.value("return (await z.find('square', {mode: 'definitions', path: 'link'})).total"),
        1
    );
    assert_eq!(ws.value("return (await z.find('square', {path: 'link'})).total"), 3);
    for (path, kind) in [
        ("link/*", ErrorKind::InvalidInput),
        ("fifo", ErrorKind::InvalidInput),
        ("../*", ErrorKind::OutsideWorkspace),
        ("/etc/*", ErrorKind::OutsideWorkspace),
        ("src/../src/*.rs", ErrorKind::OutsideWorkspace),
    ] {
        assert_eq!(
            ws.error(&format!("return z.find('nothing', {{path: '{path}'}})")).kind,
            kind,
            "{path}"
        );
    }
    // Compiling a pattern cannot be cancelled: whatever comes of a monstrous one, it comes soon.
    let begun = std::time::Instant::now();
    for pattern in [r"\\w{200}{200}", "[^x]{1,1000}{1,100}y"] {
        ws.run(&format!("return z.find('{pattern}', {{mode: 'regex'}})"));
    }
    assert!(begun.elapsed() < std::time::Duration::from_secs(15));
}

/// Who mistyped a glob is not told that there certainly is nothing.
#[test]
fn a_glob_that_names_no_file_certifies_nothing() {
    let ws = sources();
    std::fs::create_dir(ws.root.path().join("empty")).unwrap();
    std::fs::write(ws.root.path().join("src/[id].rs"), "").unwrap();
    for (mode, path, unmatched) in [
        ("text", "'src/**/*.rss'", vec!["src/**/*.rss"]),
        ("definitions", "'source/**'", vec!["source/**"]),
        ("paths", "['src/*.rs', '*.tsx', 'empty/*']", vec!["*.tsx", "empty/*"]),
        ("text", "'src/*.rs'", vec![]),
        ("text", "'src'", vec![]),
        ("text", "'empty'", vec![]),
        ("text", "'src/[id].rs'", vec![]),
        ("references", "['**/*.rs', 'src']", vec![]),
    ] {
        let found = ws.value(&format!(
            "return z.find('absent_everywhere', {{mode: '{mode}', path: {path}}})"
        ));
        assert_eq!(found["total"], 0, "{path}");
        let told: Vec<&str> = found["coverage"]["skipped"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|skipped| skipped["why"] == "matches_no_file")
            .map(|skipped| skipped["path"].as_str().unwrap())
            .collect();
        assert_eq!(told, unmatched, "{mode} {path}");
        let absence = if unmatched.is_empty() {
            "certified"
        } else {
            "uncertified"
        };
        assert_eq!(found["absence"], absence, "{mode} {path}");
    }
    // What was found was found, whatever else was named.
    let found = ws.value("return z.find('square', {path: ['src/*.rs', '*.tsx']})");
    assert!(found["total"].as_u64().unwrap() > 0 && found.get("absence").is_none());
}

#[test]
fn a_handle_is_no_scope_and_the_way_to_search_it_is_told() {
    let ws = sources();
    let error = ws.error(
        "const {snapshot} = await z.read('notes.md', {snapshot: true}); return z.find('square', {path: snapshot})",
    );
    assert_eq!(
        (error.kind, error.path.as_deref()),
        (ErrorKind::InvalidInput, Some("options.path"))
    );
    assert!(error.detail.contains("match"), "{}", error.detail);
}

#[test]
fn malformed_queries_name_the_field() {
    let ws = sources();
    for cell in [
        "return z.find('[', {mode: 'regex'})",
        "return z.find('a', {mode: 'txt'})",
        "return z.find('a', {limt: 1})",
        "return z.find()",
        "return z.find('a', {}, 1)",
    ] {
        assert_eq!(ws.error(cell).kind, ErrorKind::InvalidInput, "{cell}");
    }
    assert_eq!(
        ws.error("return z.find('a', {path: 'nowhere'})").kind,
        ErrorKind::NotFound
    );
    let error = ws.error("return z.find('a', {mode: 'txt'})");
    assert!(error.accepted.contains(&"callPath".to_owned()), "{error:?}");
}

#[test]
fn the_index_of_a_workspace_that_is_written_again_and_again_stays_small() {
    let files: Vec<(String, String)> = (0..70)
        .map(|n| (format!("src/m{n}.rs"), format!("pub fn f{n}() -> u32 {{ 0 }}\n")))
        .collect();
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(path, text)| (path.as_str(), text.as_str()))
        .collect();
    let mut ws = Workspace::new(&files);
    let index = ws.store.path().join("graph");
    let size = || -> u64 {
        let files = std::fs::read_dir(&index).unwrap();
        files.map(|file| file.unwrap().metadata().unwrap().len()).sum()
    };
    let ask = "return (await z.find('f', {mode: 'symbols', limit: 100})).items.map(i => [i.path, i.range.start.line, i.text])";
    let mut sizes = Vec::new();
    ws.value(ask);
    for round in 1..5 {
        // What cells publish and stage is indexed, and left behind by the next round.
        ws.value(&format!(
            "for (let n = 0; n < 70; n++)
                 await z.edit(`src/m${{n}}.rs`, {{content: `pub fn f${{n}}() -> u32 {{ {round} }}\\n`}}, {{expect: 'any'}});
             return (await z.find('f1', {{mode: 'definitions'}})).total"
        ));
        let before = ws.value(ask);
        assert_eq!(before.as_array().map(Vec::len), Some(70), "{before}");
        // A kernel that ends leaves the rest of what it learnt on disk.
        let reopened =
            zerostack::ZeroKernel::open(crate::hub_support::config(ws.root.path(), ws.store.path())).unwrap();
        drop(std::mem::replace(&mut ws.kernel, reopened));
        let grown = size();
        let report = ws.kernel.gc(&GcOptions::default(), &CancelToken::new()).unwrap();
        assert!(report.index_freed_bytes > 0, "round {round}: {report:?}");
        assert_eq!(grown - size(), report.index_freed_bytes, "round {round}");
        assert_eq!(ws.value(ask), before, "round {round}");
        sizes.push(size());
    }
    assert!(sizes.iter().all(|&size| size <= 2 * sizes[0]), "{sizes:?}");
}
