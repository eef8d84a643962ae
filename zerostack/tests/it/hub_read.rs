//! `z.read` through the whole kernel.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::json;
use zero_contracts::ErrorKind;
use zerostack::ExternalReads;

use crate::hub_support::Workspace;

const TEXT: &str = "one\ntwo\nthree\n";

#[test]
fn a_text_file_is_its_complete_content() {
    let ws = Workspace::new(&[("a/b.txt", TEXT), ("empty", "")]);
    assert_eq!(ws.value("return z.read('a/b.txt')"), TEXT);
    assert_eq!(ws.value("return z.read('./a//b.txt')"), TEXT);
}

#[test]
fn a_snapshot_says_what_guards_an_edit() {
    let ws = Workspace::new(&[("a", "\u{feff}x\r\ny\r\n")]);
    let read = ws.value("return z.read('a', {snapshot: true})");
    assert_eq!(read["bom"], true);
    assert_eq!(read["newline"], "crlf");
    assert_eq!(read["lines"], 2);
    assert_eq!(read["encoding"], "utf-8");
    assert_eq!(
        read["digest"],
        zero_contracts::Digest::of("\u{feff}x\r\ny\r\n".as_bytes()).to_hex()
    );
    assert!(read["snapshot"].as_str().unwrap().starts_with("z://snapshot/"));
}

#[test]
fn selectors_give_parts_that_say_where_they_lie() {
    let ws = Workspace::new(&[
        ("t", TEXT),
        ("j.json", r#"{"a": [1, {"b": "c"}]}"#),
        ("s.rs", "fn a() {}\n\nfn b() {\n    a();\n}\n"),
    ]);
    let part = ws.value("return z.read('t', {lines: [2, 9]})");
    assert_eq!(part["content"], "two\nthree\n");
    assert_eq!(part["range"], json!({"bytes": [4, 14], "lines": [2, 3]}));
    assert_eq!(part["of"], json!({"lines": 3, "bytes": 14}));
    assert_eq!(ws.value("return (await z.read('t', {bytes: [1, 3]})).content"), "ne");
    assert_eq!(
        ws.value("return (await z.read('j.json', {pointer: '/a/1/b'})).content"),
        "\"c\""
    );
    assert_eq!(
        ws.value("return (await z.read('t', {match: 'hre'})).range.lines"),
        json!([3, 3])
    );
    assert_eq!(
        ws.value("return (await z.read('s.rs', {symbol: 'b'})).content"),
        "fn b() {\n    a();\n}"
    );
    let paged = ws.value(
        "let text = '', next; do { const p = await z.read('t', {lines: [1, 3], limit: 4, next}); text += p.content; next = p.next } while (next); return text",
    );
    assert_eq!(paged, TEXT);
}

#[test]
fn parts_that_are_not_there_are_told_apart() {
    let ws = Workspace::new(&[("t", TEXT)]);
    for (cell, kind) in [
        ("return z.read('t', {lines: [4, 5]})", ErrorKind::InvalidInput),
        ("return z.read('t', {lines: [2, 1]})", ErrorKind::InvalidInput),
        ("return z.read('t', {bytes: [15, 16]})", ErrorKind::InvalidInput),
        ("return z.read('t', {match: 'four'})", ErrorKind::NotFound),
        (
            "return z.read('t', {lines: [1, 1], match: 'one'})",
            ErrorKind::InvalidInput,
        ),
        ("return z.read('t', {recursive: true})", ErrorKind::InvalidInput),
        ("return z.read('nothing')", ErrorKind::NotFound),
        ("return z.read('../t')", ErrorKind::OutsideWorkspace),
        ("return z.read('')", ErrorKind::InvalidInput),
        ("return z.read()", ErrorKind::InvalidInput),
        ("return z.read('t', {line: [1, 1]})", ErrorKind::InvalidInput),
        ("return z.read('z://blob/00')", ErrorKind::InvalidInput),
        ("return z.read('z://blob/' + '0'.repeat(64))", ErrorKind::NotFound),
    ] {
        assert_eq!(ws.error(cell).kind, kind, "{cell}");
    }
    let error = ws.error("return z.read('t', {line: [1, 1]})");
    assert!(error.accepted.contains(&"lines".to_owned()), "{error:?}");
}

#[test]
fn directories_are_listed_in_order_and_page_by_page() {
    let ws = Workspace::new(&[("d/b", "1"), ("d/a/x", "22"), ("d/c", ""), (".gitignore", "/d/c\n")]);
    fs::create_dir(ws.root.path().join(".git")).unwrap();
    symlink("b", ws.root.path().join("d/l")).unwrap();
    let paths = |cell: &str| {
        let listing = ws.value(cell);
        listing["entries"]
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| entry["path"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(paths("return z.read('d')"), ["d/a", "d/b", "d/l"]);
    assert_eq!(
        paths("return z.read('d', {ignored: true})"),
        ["d/a", "d/b", "d/c", "d/l"]
    );
    assert_eq!(
        paths("return z.read('d', {recursive: true})"),
        ["d/a", "d/a/x", "d/b", "d/l"]
    );
    assert_eq!(
        paths("const p = await z.read('d', {limit: 2}); return z.read('d', {limit: 2, next: p.next})"),
        ["d/l"]
    );
    let listing = ws.value("return z.read('d')");
    assert_eq!(listing["complete"], true);
    assert_eq!(listing["entries"][2]["target"], "b");
    assert_eq!(listing["entries"][1]["bytes"], 1);
}

#[test]
fn binary_and_large_files_are_views_whose_handle_gives_the_bytes() {
    let ws = Workspace::new(&[]);
    fs::write(ws.root.path().join("bin"), [0, 159, 146, 150]).unwrap();
    let large: String = (0..200_000).map(|n| format!("line {n}\n")).collect();
    fs::write(ws.root.path().join("large.txt"), &large).unwrap();
    let view = ws.value("return z.read('bin')");
    assert_eq!(
        (&view["kind"], &view["encoding"], &view["bytes"]),
        (&json!("view"), &json!("binary"), &json!(4))
    );
    assert_eq!(
        ws.value("return [...await z.read('bin', {full: true})]"),
        json!([0, 159, 146, 150])
    );
    assert_eq!(
        ws.value("const v = await z.read('bin'); return [...await z.read(v.handle, {full: true})]"),
        json!([0, 159, 146, 150])
    );
    let view = ws.value("return z.read('large.txt')");
    assert_eq!((&view["lines"], &view["bytes"]), (&json!(200_000), &json!(large.len())));
    assert_eq!(
        ws.value(
            "const v = await z.read('large.txt'); return (await z.read(v.handle, {lines: [77777, 77777]})).content"
        ),
        "line 77776\n"
    );
    assert_eq!(
        ws.value("return (await z.read('large.txt', {full: true})).length"),
        large.len()
    );
}

#[test]
fn files_outside_are_read_by_the_hosts_leave_and_recorded() {
    let outside = tempfile::tempdir().unwrap();
    let file = outside.path().join("f.txt");
    fs::write(&file, "out").unwrap();
    let cell = format!("return z.read({:?})", file.to_str().unwrap());
    let ws = Workspace::new(&[]);
    assert_eq!(ws.value(&cell), "out");
    let event = ws.kernel.log(1).unwrap()[0].handle;
    assert_eq!(
        ws.kernel.event(&event).unwrap().external_reads,
        [file.to_str().unwrap()]
    );
    assert_eq!(ws.error("return z.read('/proc/self/environ')").kind, ErrorKind::Denied);
    assert_eq!(
        ws.error(&format!("return z.read({:?})", ws.store.path().to_str().unwrap()))
            .kind,
        ErrorKind::OutsideWorkspace
    );

    let denying = Workspace::with(&[("in", "in")], |config| config.external_reads = ExternalReads::Deny);
    assert_eq!(denying.error(&cell).kind, ErrorKind::Denied);
    let inside = denying.root.path().join("in");
    assert_eq!(
        denying.value(&format!("return z.read({:?})", inside.to_str().unwrap())),
        "in"
    );

    let elsewhere = tempfile::tempdir().unwrap();
    let roots = vec![elsewhere.path().to_owned()];
    let narrow = Workspace::with(&[], |config| config.external_reads = ExternalReads::Roots(roots));
    assert_eq!(narrow.error(&cell).kind, ErrorKind::Denied);
    symlink(&file, elsewhere.path().join("link")).unwrap();
    let link = elsewhere.path().join("link");
    assert_eq!(
        narrow
            .error(&format!("return z.read({:?})", link.to_str().unwrap()))
            .kind,
        ErrorKind::Denied
    );
}

#[test]
fn symlinks_out_of_the_root_and_special_files_are_refused() {
    let ws = Workspace::new(&[("a", "x")]);
    symlink("/etc/passwd", ws.root.path().join("out")).unwrap();
    symlink("a", ws.root.path().join("in")).unwrap();
    assert_eq!(ws.error("return z.read('out')").kind, ErrorKind::OutsideWorkspace);
    assert_eq!(ws.value("return z.read('in')"), "x");
    let fifo = ws.root.path().join("fifo");
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .unwrap()
            .success()
    );
    assert_eq!(ws.error("return z.read('fifo')").kind, ErrorKind::InvalidInput);
}

#[test]
fn names_outside_utf8_have_one_text() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let ws = Workspace::new(&[]);
    fs::write(ws.root.path().join(OsStr::from_bytes(b"a\xff\\b")), "odd").unwrap();
    let path = ws.value("return (await z.read('.')).entries[0].path");
    assert_eq!(path, r"a\xff\\b");
    assert_eq!(ws.value(r"return z.read('a\\xff\\\\b')"), "odd");
}

/// Going through a content match by match reads it once: of a handle, of a file, and of several by turns.
#[test]
fn going_through_matches_reads_the_content_once() {
    let text: String = (0..20_000)
        .map(|n| format!("line {n} é {}\n", if n % 10 == 0 { "ERROR" } else { "ok" }))
        .collect();
    let ws = Workspace::with(&[("big.log", &text), ("other.log", &text)], |config| {
        config.budgets.calls = 100_000;
        config.budgets.inline_bytes = 100_000;
    });
    // A file that was written just now may change without showing it.
    std::thread::sleep(std::time::Duration::from_millis(50));
    let go = "const go = async (target) => {
        let next, lines = [];
        do {
            const part = await z.read(target, {match: 'ERROR', ...(next && {next})});
            lines.push([part.range.lines[0], part.content, part.of.lines]);
            next = part.next;
        } while (next);
        return lines;
    };";
    let check = |lines: &serde_json::Value| {
        let lines = lines.as_array().unwrap();
        assert_eq!(lines.len(), 2000);
        for (n, line) in lines.iter().enumerate() {
            assert_eq!(*line, json!([n * 10 + 1, format!("line {} é ERROR\n", n * 10), 20_000]));
        }
    };
    let size = text.len() as u64;
    let cell = |source: &str| {
        let options = zerostack::CellOptions {
            budgets: Some(zero_contracts::Budgets {
                value_tokens: 10_000_000,
                calls: 100_000,
                inline_bytes: 100_000,
                ..zero_contracts::Budgets::default()
            }),
            ..zerostack::CellOptions::default()
        };
        let response = ws.kernel.execute_cell_with(&format!("{go}\n{source}"), options);
        assert_eq!(response.error, None);
        (response.value.unwrap().0, response.ledger.bytes_read)
    };
    let (found, read) = cell("const {handle} = await z.read('big.log'); return go(handle)");
    check(&found);
    assert!(read < 4 * size, "{read} bytes of {size}");
    let (found, read) = cell("return go('big.log')");
    check(&found);
    assert!(read < 4 * size, "{read} bytes of {size}");
    let (found, read) =
        cell("const {handle} = await z.read('big.log'); return Promise.all([go(handle), go('other.log')])");
    check(&found[0]);
    check(&found[1]);
    assert!(read < 8 * size, "{read} bytes of {size}");
}

/// What is held of a file is not what is read of it when it is another.
#[test]
fn matches_of_a_file_that_changes_are_those_of_the_present_content() {
    let ws = Workspace::new(&[("a", "x 1\nx 2\nx 3\n")]);
    std::thread::sleep(std::time::Duration::from_millis(50));
    let value = ws.value(
        "const first = await z.read('a', {match: 'x'});
         await z.edit('a', {find: 'x 2', replacement: 'x two'});
         const second = await z.read('a', {match: 'x', next: first.next});
         await z.edit(second.snapshot, {find: 'x 3', replacement: 'x three'});
         return [second.content, (await z.read('a', {match: 'x th'})).content]",
    );
    assert_eq!(value, json!(["x two\n", "x three\n"]));
}
