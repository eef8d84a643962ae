//! The command line as a shell sees it: exit codes, and one JSON document on standard output.
#![allow(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

fn kernel(arguments: &[&str], stdin: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_zero-kernel"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(stdin.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {output:?}"))
}

fn workspace() -> (TempDir, TempDir) {
    let (root, store) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::write(root.path().join("a"), "1\n").unwrap();
    (root, store)
}

fn exec(root: &Path, store: &Path, more: &[&str], cell: &str) -> Output {
    let (root, store) = (root.to_str().unwrap(), store.to_str().unwrap());
    kernel(&[&["exec", "--root", root, "--store", store], more].concat(), cell)
}

#[test]
fn exec_prints_one_response_and_its_exit_code_says_how_it_went() {
    let (root, store) = workspace();
    let (root, store) = (root.path(), store.path());
    let completed = exec(root, store, &["--input", r#"{"n": 2}"#], "return input.n * 21");
    assert_eq!(
        (completed.status.code(), json(&completed)["value"].clone()),
        (Some(0), 42.into())
    );
    let failed = exec(root, store, &[], "throw new Error('no')");
    assert_eq!(
        (failed.status.code(), json(&failed)["error"]["kind"].clone()),
        (Some(1), "exception".into())
    );
    let rejected = exec(root, store, &[], "return (");
    assert_eq!(
        (rejected.status.code(), json(&rejected)["error"]["kind"].clone()),
        (Some(1), "syntax".into())
    );
    let late = exec(root, store, &["--timeout-ms", "200"], "for (;;) {}");
    assert_eq!(
        (late.status.code(), json(&late)["error"]["kind"].clone()),
        (Some(1), "deadline".into())
    );
    assert_eq!(exec(root, store, &["--input", "7"], "").status.code(), Some(2));
    assert_eq!(exec(root, store, &["--file", "/nowhere"], "").status.code(), Some(2));
    assert_eq!(kernel(&["exec", "--rot", "."], "").status.code(), Some(2));
}

/// For a person: the console, the value, and how it ended. On a terminal this is the default, and `--json` is not.
#[test]
fn a_short_answer_says_what_came_of_the_cell() {
    let (root, store) = workspace();
    let short = |more: &[&str], cell: &str| {
        let output = exec(root.path(), store.path(), &[&["--short"], more].concat(), cell);
        String::from_utf8(output.stdout).unwrap()
    };
    let one = short(&[], "return 1");
    let lines: Vec<&str> = one.lines().collect();
    assert_eq!((lines.len(), lines[0]), (2, "1"), "{one}");
    assert!(
        lines[1].starts_with("-- Completed in ") && lines[1].contains("ms, nothing changed; z://event/"),
        "{one}"
    );
    let text = short(&[], "console.log('said'); return 'two\\nlines'");
    assert!(text.starts_with("said\ntwo\nlines\n-- Completed"), "{text}");
    // What steers a terminal is shown, wherever it comes from.
    for cell in [
        "return 'a\\u001b[2J\\u0007\\u009b\\tb\\r\\nc'",
        "console.log('a\\u001b[2J\\u0007\\u009b\\tb\\r\\nc')",
        "throw new Error('a\\u001b[2J\\u0007\\u009b\\tb\\r\\nc')",
    ] {
        let text = short(&[], cell);
        assert!(text.contains("a\\u001b[2J\\u0007\\u009b\tb\nc\n"), "{text:?}");
    }
    assert!(short(&[], "return {a: [1]}").starts_with("{\n  \"a\": [\n    1\n  ]\n}\n-- "));
    assert!(short(&[], "await z.edit('a', {find: '1', replacement: '2'})").contains("ms, 1 path changed; "));
    assert!(short(&[], "await z.state.set('k', 1)").contains("facts of the session changed"));
    let failed = short(
        &[],
        "await z.edit('a', {find: '2', replacement: '3'});\nthrow new Error('no')",
    );
    assert!(
        failed.starts_with("exception at line 2, column ") && failed.contains("no\n-- Failed in "),
        "{failed}"
    );
    assert!(failed.contains("1 path restored"), "{failed}");
    let refused = short(&[], "return z.read('a', {line: [1, 1]})");
    assert!(
        refused.starts_with("invalid_input at line 1") && refused.contains("\n  accepted: "),
        "{refused}"
    );
    assert!(short(&[], "return (").contains("-- Failed before it ran, nothing was done"));
    // Machines get what they always got.
    assert_eq!(
        json(&exec(root.path(), store.path(), &["--json"], "return 1"))["value"],
        1
    );
    assert_eq!(
        exec(root.path(), store.path(), &["--json", "--short"], "return 1")
            .status
            .code(),
        Some(2)
    );
}

#[test]
fn a_terminal_gets_the_short_answer_unless_it_wants_json() {
    let (root, store) = workspace();
    let cell = store.path().join("cell.js");
    std::fs::write(&cell, "return 1").unwrap();
    // `script` of util-linux gives its command a terminal.
    let on_a_terminal = |more: &str| {
        let line = format!(
            "{} exec --root {} --store {} --file {} {more}",
            env!("CARGO_BIN_EXE_zero-kernel"),
            root.path().display(),
            store.path().display(),
            cell.display()
        );
        let output = Command::new("script")
            .args(["-qec", &line, "/dev/null"])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap().replace('\r', "")
    };
    let short = on_a_terminal("");
    assert!(short.starts_with("1\n-- Completed"), "{short}");
    let whole = on_a_terminal("--json");
    assert!(
        serde_json::from_str::<Value>(&whole).is_ok_and(|response| response["value"] == 1),
        "{whole}"
    );
}

#[test]
fn a_cell_comes_from_a_file_too() {
    let (root, store) = workspace();
    let cell = store.path().join("cell.js");
    std::fs::write(&cell, "return z.read('a')").unwrap();
    let output = exec(root.path(), store.path(), &["--file", cell.to_str().unwrap()], "");
    assert_eq!(json(&output)["value"], "1\n");
}

#[test]
fn an_interrupt_cancels_the_cell() {
    let (root, store) = workspace();
    let mut child = Command::new(env!("CARGO_BIN_EXE_zero-kernel"))
        .args(["exec", "--root"])
        .arg(root.path())
        .arg("--store")
        .arg(store.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(b"await z.edit('a', {find: '1', replacement: '2'}); for (;;) {}")
        .unwrap();
    std::thread::sleep(std::time::Duration::from_millis(1500));
    assert!(
        Command::new("kill")
            .args(["-INT", &child.id().to_string()])
            .status()
            .unwrap()
            .success()
    );
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        (output.status.code(), json(&output)["outcome"].clone()),
        (Some(130), "Cancelled".into())
    );
    assert_eq!(std::fs::read_to_string(root.path().join("a")).unwrap(), "1\n");
}

#[test]
fn log_and_verify_look_at_what_exec_left() {
    let (root, store) = workspace();
    exec(
        root.path(),
        store.path(),
        &[],
        "await z.edit('a', {find: '1', replacement: '2'})",
    );
    exec(root.path(), store.path(), &["--session", "other"], "return 1");
    let (root, store) = (root.path().to_str().unwrap(), store.path().to_str().unwrap());
    let log = kernel(&["log", "--json", "--root", root, "--store", store], "");
    let events = json(&log);
    assert_eq!((log.status.code(), events.as_array().unwrap().len()), (Some(0), 1));
    assert_eq!(events[0]["event"]["receipts"][0]["path"], "a");
    let verify = kernel(&["verify", "--root", root, "--store", store], "");
    assert_eq!(
        (verify.status.code(), json(&verify)["valid"].clone()),
        (Some(0), true.into())
    );
}

#[test]
fn the_readmes_channels_are_registered() {
    let readme = include_str!("../../../../README.md");
    let (_, after) = readme.split_once("exec --channels FILE").unwrap();
    let (channels, _) = after.split_once("```json\n").unwrap().1.split_once("```").unwrap();
    let (root, store) = workspace();
    let file = store.path().join("channels.json");
    std::fs::write(&file, channels).unwrap();
    let given = ["--channels", file.to_str().unwrap()];
    let other = exec(
        root.path(),
        store.path(),
        &given,
        "return z.apply({effect: 'other', key: 'k', payload: {}})",
    );
    assert_eq!(json(&other)["error"]["accepted"], serde_json::json!(["mail", "orders"]));
}

#[test]
fn what_is_logged_to_a_pipe_has_no_colours() {
    let (root, store) = workspace();
    let output = Command::new(env!("CARGO_BIN_EXE_zero-kernel"))
        .args(["exec", "--root", root.path().to_str().unwrap()])
        .args(["--store", store.path().to_str().unwrap()])
        .env("ZERO_KERNEL_LOG", "trace")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let logged = String::from_utf8(output.stderr).unwrap();
    assert!(!logged.is_empty() && !logged.contains('\u{1b}'), "{logged}");
}

#[test]
fn doctor_tries_what_the_machine_allows() {
    let doctor = kernel(&["doctor"], "");
    let report = json(&doctor);
    assert_eq!(
        (doctor.status.code(), report["healthy"].clone()),
        (Some(0), true.into()),
        "{report:#}"
    );
    let checks = report["checks"].as_array().unwrap();
    assert_eq!(checks.len(), 5);
    let contract: Value = serde_json::from_str(zerostack::contracts::contract::CONTRACT).unwrap();
    assert_eq!(report["contract"]["version"], contract["version"]);
    assert_eq!(report["contract"]["digest"], contract["digest"]);
    // What it says of private views is what a cell then gets.
    let detail = |name: &str| {
        let check = checks.iter().find(|check| check["name"] == name);
        check.unwrap()["detail"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        detail("privateView").starts_with("not available"),
        detail("commands").ends_with("capture: baseline"),
        "{report:#}"
    );
}

/// Runs a command that must succeed, and returns its standard output.
#[track_caller]
fn succeeds(arguments: &[&str], stdin: &str) -> String {
    let output = kernel(arguments, stdin);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn undo_takes_back_what_exec_did() {
    let (root, store) = workspace();
    let done = exec(
        root.path(),
        store.path(),
        &[],
        "await z.edit('a', {find: '1', replacement: '2'}); await z.edit('b', {create: 'x'})",
    );
    let event = json(&done)["event"].as_str().unwrap().to_owned();
    let at = [
        "--root",
        root.path().to_str().unwrap(),
        "--store",
        store.path().to_str().unwrap(),
    ];
    let a = || std::fs::read_to_string(root.path().join("a")).unwrap();
    let dry = succeeds(&[&["undo", &event, "--dry-run"], &at[..]].concat(), "");
    assert!(dry.contains("-2\\n") && a() == "2\n", "{dry}");
    succeeds(&[&["undo", &event, "--path", "a"], &at[..]].concat(), "");
    assert!(a() == "1\n" && root.path().join("b").exists());
    // What somebody changed since is left, and told by the exit code; what is back already is no conflict.
    std::fs::write(root.path().join("b"), "mine").unwrap();
    let rest = kernel(&[&["undo", &event], &at[..]].concat(), "");
    assert_eq!(rest.status.code(), Some(1));
    assert_eq!(json(&rest)["conflicts"][0]["path"], "b");
    std::fs::write(root.path().join("b"), "x").unwrap();
    succeeds(&[&["undo", &event], &at[..]].concat(), "");
    assert!(a() == "1\n" && !root.path().join("b").exists());
    assert_eq!(
        kernel(&[&["undo", "nonsense"], &at[..]].concat(), "").status.code(),
        Some(1)
    );
}

#[test]
fn a_log_is_read_by_people_and_its_exports_by_verify() {
    let (root, store) = workspace();
    exec(
        root.path(),
        store.path(),
        &[],
        "await z.edit('a', {find: '1', replacement: '2'}); await z.run('exit 3')",
    );
    let failed = "await z.edit('a', {find: '2', replacement: '3'}); throw new Error('so it goes')";
    exec(root.path(), store.path(), &[], failed);
    let at = [
        "--root",
        root.path().to_str().unwrap(),
        "--store",
        store.path().to_str().unwrap(),
    ];
    let log = succeeds(&[&["log"], &at[..]].concat(), "");
    for part in [
        "z://event/",
        "Completed in",
        "changed a",
        "ran sh -c exit 3: exit code 3",
        "exception: Error: so it goes",
        "restored 1 path\n",
        "T",
    ] {
        assert!(log.contains(part), "{part}: {log}");
    }
    let chain = succeeds(&[&["log", "--chain"], &at[..]].concat(), "");
    let verification: Value = serde_json::from_str(&succeeds(&["verify", "-"], &chain)).unwrap();
    assert_eq!(
        (&verification["valid"], &verification["scope"]),
        (&true.into(), &"integrity only".into())
    );
    let event = log.lines().next().unwrap();
    let event = succeeds(&[&["log", "--event", event], &at[..]].concat(), "");
    succeeds(&["verify", "-"], &event);
    let broken = kernel(&["verify", "-"], &event.replace("so it goes", "so it went"));
    assert_eq!(
        (broken.status.code(), &json(&broken)["valid"]),
        (Some(1), &false.into())
    );
    let nothing = kernel(&["verify"], "");
    assert_eq!(nothing.status.code(), Some(2));
    assert!(
        String::from_utf8_lossy(&nothing.stderr).contains("--root"),
        "{nothing:?}"
    );
}

#[test]
fn gc_and_migrate_keep_a_store() {
    let (root, store) = workspace();
    for n in 0..4 {
        exec(root.path(), store.path(), &[], &format!("return {n}"));
    }
    let at = [
        "--root",
        root.path().to_str().unwrap(),
        "--store",
        store.path().to_str().unwrap(),
    ];
    let report: Value =
        serde_json::from_str(&succeeds(&[&["gc", "--keep-events", "1"], &at[..]].concat(), "")).unwrap();
    assert_eq!(
        (&report["eventsPruned"], &report["lockFilesRemoved"]),
        (&3.into(), &1.into())
    );
    succeeds(&[&["verify"], &at[..]].concat(), "");
    let migrated: Value = serde_json::from_str(&succeeds(&[&["migrate"], &at[..]].concat(), "")).unwrap();
    assert_eq!(migrated["from"], migrated["to"]);
    let nothing = tempfile::tempdir().unwrap();
    let at = [
        "--root",
        root.path().to_str().unwrap(),
        "--store",
        nothing.path().to_str().unwrap(),
    ];
    assert_eq!(kernel(&[&["migrate"], &at[..]].concat(), "").status.code(), Some(1));
}

#[test]
fn doctor_says_of_a_damaged_store_what_is_lost_and_what_can_be_read() {
    let (root, store) = workspace();
    exec(
        root.path(),
        store.path(),
        &[],
        "await z.edit('a', {find: '1', replacement: '2'})",
    );
    // What is in the journal, too, is had from there: this event is in an object alone.
    let done = exec(
        root.path(),
        store.path(),
        &[],
        "await z.state.set('k', 1); return 'two'",
    );
    let at = [
        "--root",
        root.path().to_str().unwrap(),
        "--store",
        store.path().to_str().unwrap(),
    ];
    let doctor = || {
        let output = kernel(&[&["doctor"], &at[..]].concat(), "");
        (output.status.code(), json(&output)["store"].clone())
    };
    let (code, report) = doctor();
    assert_eq!(
        (code, &report["healthy"], &report["lost"]),
        (Some(0), &true.into(), &serde_json::json!([])),
        "{report:#}"
    );
    assert_eq!(
        report["readable"],
        serde_json::json!({"sessions": 1, "events": 2, "commits": 1})
    );

    // An event's object is overwritten.
    let hex = json(&done)["event"]
        .as_str()
        .unwrap()
        .trim_start_matches("z://event/")
        .to_owned();
    let object = store.path().join("objects").join(&hex[..2]).join(&hex[2..]);
    std::fs::write(&object, "{}").unwrap();
    let (code, report) = doctor();
    assert_eq!((code, &report["healthy"]), (Some(1), &false.into()));
    assert!(
        report["lost"][0].as_str().unwrap().contains(&hex) && report["readable"]["events"] == 1,
        "{report:#}"
    );
    assert!(
        report["damage"][0]["what"].as_str().unwrap().contains(&hex),
        "{report:#}"
    );
    // Life goes on beside it.
    assert_eq!(
        exec(root.path(), store.path(), &[], "return z.state.get('k')")
            .status
            .code(),
        Some(0)
    );

    // The database is no database any more: what the journal holds can still be read.
    for file in ["sessions.sqlite", "sessions.sqlite-wal", "sessions.sqlite-shm"] {
        let path = store.path().join(file);
        if path.exists() {
            std::fs::write(path, "not a database, and long enough to be looked at ".repeat(50)).unwrap();
        }
    }
    let (code, report) = doctor();
    assert_eq!(code, Some(1));
    let lost = report["lost"].to_string();
    assert!(lost.contains("the names of the sessions"), "{report:#}");
    assert_eq!(report["readable"]["commits"], 1);
    let verify = kernel(&[&["verify"], &at[..]].concat(), "");
    assert_eq!(
        (verify.status.code(), json(&verify)["error"]["kind"].clone()),
        (Some(1), "corrupt".into())
    );

    // A store of a newer format is told as such.
    std::fs::write(store.path().join("format"), "zerostack store 999\n").unwrap();
    let (code, report) = doctor();
    assert!(
        code == Some(1) && report["lost"][0].as_str().unwrap().contains("the whole store"),
        "{report:#}"
    );
}

#[test]
fn effects_are_listed_reconciled_abandoned_and_retried() {
    let (root, store) = workspace();
    let (root, store) = (root.path(), store.path());
    let outside = tempfile::tempdir().unwrap();
    let notes = outside.path().join("notes.jsonl");
    let channels = |command: &str| {
        let file = outside.path().join("channels.json");
        let text = serde_json::json!({
            "notes": { "appendFile": { "path": notes } },
            "mail": { "command": { "argv": ["/bin/sh", "-c", command] } },
        });
        std::fs::write(&file, text.to_string()).unwrap();
        file
    };
    let refuses = channels("exit 75");
    let with = ["--channels", refuses.to_str().unwrap()];
    let cell = "const notes = await z.apply({effect: 'notes', key: 'a', payload: {n: 1}});
                const mail = await z.apply({effect: 'mail', key: 'b', payload: 2});
                return [notes.handle, mail.handle]";
    let response = exec(root, store, &with, cell);
    assert_eq!(response.status.code(), Some(0), "{response:?}");
    let line: Value = serde_json::from_str(&std::fs::read_to_string(&notes).unwrap()).unwrap();
    assert_eq!((&line["key"], &line["payload"]["n"]), (&"a".into(), &1.into()));
    let mail = json(&response)["value"][1].as_str().unwrap().to_owned();

    let (root, store) = (root.to_str().unwrap(), store.to_str().unwrap());
    let effects = |action: &str, more: &[&str]| {
        let output = kernel(
            &[&["effects", action, "--root", root, "--store", store], more].concat(),
            "",
        );
        (output.status.code(), json(&output))
    };
    let (code, listed) = effects("list", &[]);
    assert_eq!(code, Some(0));
    let states: Vec<_> = listed["effects"]
        .as_array()
        .unwrap()
        .iter()
        .map(|effect| &effect["state"])
        .collect();
    assert_eq!(states, ["committed", "prepared"]);
    assert_eq!(listed["leases"].as_array().unwrap().len(), 2);
    assert_eq!(effects("reconcile", &[]).1["unregistered"], serde_json::json!(["mail"]));
    for _ in 0..4 {
        assert_eq!(effects("reconcile", &with).0, Some(0));
    }
    let (_, listed) = effects("list", &["--state", "quarantined", "--effect", "mail"]);
    assert_eq!(listed["effects"][0]["attempts"], 5, "{listed:#}");

    assert_eq!(effects("retry", &[&mail]).1["state"], "prepared");
    let works = channels("cat");
    let (_, report) = effects("reconcile", &["--channels", works.to_str().unwrap()]);
    assert_eq!(report["committed"], serde_json::json!([mail]));
    let (code, refused) = effects("abandon", &[&mail, "--reason", "no"]);
    assert_eq!((code, &refused["error"]["kind"]), (Some(1), &"conflict".into()));

    let refuses = channels("exit 75");
    let more = exec(
        Path::new(root),
        Path::new(store),
        &["--channels", refuses.to_str().unwrap()],
        "return (await z.apply({effect: 'mail', key: 'c', payload: 3})).handle",
    );
    let handle = json(&more)["value"].as_str().unwrap().to_owned();
    let (_, abandoned) = effects("abandon", &[&handle, "--reason", "nobody wants it"]);
    assert_eq!(
        (&abandoned["state"], &abandoned["detail"]),
        (&"abandoned".into(), &"nobody wants it".into())
    );

    // Usage and configuration say what is wrong.
    assert_eq!(
        kernel(&["effects", "list", "--root", root, "--state", "lost"], "")
            .status
            .code(),
        Some(2)
    );
    std::fs::write(&refuses, r#"{"x": {"append_file": {"path": "/x"}}}"#).unwrap();
    let (code, refused) = effects("reconcile", &["--channels", refuses.to_str().unwrap()]);
    assert_eq!((code, &refused["error"]["kind"]), (Some(1), &"invalid_input".into()));
    assert!(
        refused["error"]["accepted"].to_string().contains("appendFile"),
        "{refused:#}"
    );
}

#[test]
fn plan_says_what_a_cell_can_do_and_runs_nothing() {
    let planned = kernel(
        &["plan"],
        "const p: string = 'a'; await z.read('a'); await z.edit(p, {remove: true})",
    );
    assert_eq!(planned.status.code(), Some(0));
    let operations = json(&planned)["operations"].clone();
    assert_eq!(operations[0]["arguments"]["listed"][0]["literal"], "a");
    assert_eq!(
        (&operations[1]["operation"], &operations[1]["arguments"]["listed"][0]),
        (&"edit".into(), &"dynamic".into())
    );
    let refused = kernel(&["plan"], "return (");
    assert_eq!(
        (refused.status.code(), json(&refused)["error"]["kind"].clone()),
        (Some(1), "syntax".into())
    );
}

/// Nobody waits for ever for the answer to what could not be read, before or after the protocol's greeting.
#[test]
fn mcp_answers_what_it_cannot_read_and_goes_on() {
    use std::io::{BufRead, BufReader};
    let (root, store) = workspace();
    let mut child = Command::new(env!("CARGO_BIN_EXE_zero-kernel"))
        .args(["mcp", "--root"])
        .arg(root.path())
        .arg("--store")
        .arg(store.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut ask = |line: &str| -> Value {
        input.write_all(line.as_bytes()).unwrap();
        input.write_all(b"\n").unwrap();
        serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap()
    };
    let unreadable = [
        ("{".to_owned(), -32700),
        ("[".repeat(200_000) + &"]".repeat(200_000), -32700),
        (format!("\"{}\"", "x".repeat(17 << 20)), -32600),
    ];
    for (line, code) in &unreadable {
        let answer = ask(line);
        assert_eq!(
            (&answer["id"], &answer["error"]["code"]),
            (&Value::Null, &(*code).into()),
            "{answer}"
        );
    }
    let greeting = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
    assert_eq!(ask(greeting)["result"]["serverInfo"]["name"], "zero-kernel");
    let (line, _) = &unreadable[1];
    let call = |id: u32| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"execute_cell","arguments":{{"source":"return 6 * 7"}}}}}}"#
        )
    };
    let answer = ask(&format!(
        "{}\n{line}",
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#
    ));
    assert_eq!(answer["error"]["code"], -32700);
    let answer = ask(&call(2));
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(text).unwrap()["value"], 42);
    drop(input);
    assert!(child.wait().unwrap().success());
}
