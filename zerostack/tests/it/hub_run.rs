//! `z.run` through the whole kernel.

use std::time::{Duration, Instant};

use serde_json::json;
use zero_contracts::response::Disposition;
use zero_contracts::{Digest, ErrorKind, Handle};
use zerostack::Commands;

use crate::hub_support::Workspace;

#[test]
fn a_command_is_a_result_whatever_its_exit_code() {
    let ws = Workspace::new(&[("d/a", "in a\n")]);
    let run = ws.value("return z.run(['cat', 'd/a'])");
    assert_eq!(
        (&run["termination"], &run["exitCode"], &run["stdout"]),
        (&json!("exited"), &json!(0), &json!("in a\n"))
    );
    assert_eq!(
        (&run["cleanup"], &run["complete"], &run["bytes"]["stdout"]),
        (&json!("clean"), &json!(true), &json!(5))
    );
    let run = ws.value("return z.run('echo bad >&2; exit 3')");
    assert_eq!((&run["exitCode"], &run["stderr"]), (&json!(3), &json!("bad\n")));
    let run = ws.value("return z.run('kill -9 $$')");
    assert_eq!(
        (&run["termination"], &run["signal"]),
        (&json!("signalled"), &json!("SIGKILL"))
    );
    let run = ws.value("return z.run(['no-such-program'])");
    assert_eq!(run["termination"], "spawn_failed");
    assert_eq!(ws.error("return z.run([])").kind, ErrorKind::InvalidInput);
    assert_eq!(
        ws.error("return z.run(['true'], {cwd: 'nowhere'})").kind,
        ErrorKind::NotFound
    );
}

#[test]
fn options_reach_the_command() {
    let ws = Workspace::new(&[("d/a", "x")]);
    let cell = "return (await z.run('pwd; echo $WORD; cat', {cwd: 'd', env: {WORD: 'w'}, stdin: 'from stdin'})).stdout";
    let out = ws.value(cell);
    assert!(out.as_str().unwrap().ends_with("/d\nw\nfrom stdin"), "{out}");
    let cell =
        "const {handles} = await z.run('printf abc'); return (await z.run('cat', {stdin: handles.stdout})).stdout";
    assert_eq!(ws.value(cell), "abc");
    assert_eq!(ws.value("return (await z.run('cat')).stdout"), "");
}

#[test]
fn a_timeout_ends_the_tree_and_keeps_the_output() {
    let ws = Workspace::new(&[]);
    let begun = Instant::now();
    let run = ws.value("return z.run('echo begun; sleep 100', {timeoutMs: 300})");
    assert!(begun.elapsed() < Duration::from_secs(20));
    assert_eq!(
        (&run["reason"], &run["stdout"], &run["cleanup"]),
        (&json!("timeout"), &json!("begun\n"), &json!("clean"))
    );
}

#[test]
fn a_background_child_neither_hangs_nor_leaks() {
    let ws = Workspace::new(&[]);
    let begun = Instant::now();
    let response = ws.run("return (await z.run('sleep 60 & echo hi')).stdout");
    assert_eq!(response.value.unwrap().0, "hi\n");
    assert!(begun.elapsed() < Duration::from_secs(20));
    let processes = response.ledger.processes;
    assert_eq!((processes.started, processes.reaped, processes.unproven), (1, 1, 0));
}

#[test]
fn commands_see_staged_edits_and_their_changes_are_the_cells() {
    let ws = Workspace::new(&[("a", "1\n"), ("gone", "x")]);
    let response = ws.run(
        "await z.edit('a', {find: '1', replacement: '2'});
         const seen = (await z.run('cat a; echo 3 >> a; echo new > made; rm gone; chmod 755 a')).stdout;
         return [seen, await z.read('a'), await z.read('made')]",
    );
    assert_eq!(response.error, None);
    assert_eq!(response.value.unwrap().0, json!(["2\n", "2\n3\n", "new\n"]));
    assert_eq!(
        (response.effects.disposition, response.effects.receipts),
        (Disposition::Committed, 3)
    );
    assert_eq!(ws.file("a"), "2\n3\n");
    assert!(!ws.has("gone") && ws.has("made"));
}

#[test]
fn runs_in_one_promise_all_overlap() {
    let ws = Workspace::new(&[]);
    // Each waits for the other's file: neither could end alone.
    let cell = "const wait = (mine, other) => z.run(`touch ${mine}; for i in $(seq 200); do [ -e ${other} ] && exit 0; sleep 0.05; done; exit 1`);
        return (await Promise.all([wait('x', 'y'), wait('y', 'x')])).map(r => r.exitCode)";
    assert_eq!(ws.value(cell), json!([0, 0]));
}

#[test]
fn much_output_is_shown_in_part_and_kept_whole() {
    let ws = Workspace::new(&[]);
    let run = ws.value("return z.run('seq 100000')");
    assert_eq!(run["complete"], false);
    assert_eq!(run["bytes"]["stdout"], 588_895);
    let shown = run["stdout"].as_str().unwrap();
    assert!(shown.len() < 40_000 && shown.contains("99999"), "{}", shown.len());
    let cell = format!(
        "return (await z.read('{}', {{lines: [54321, 54321]}})).content",
        run["handles"]["stdout"].as_str().unwrap()
    );
    assert_eq!(ws.value(&cell), "54321\n");
}

/// Whatever of a command or the console is not shown whole is named by the response, however little of it the cell returned.
#[test]
fn what_is_cut_is_named_by_the_response() {
    let ws = Workspace::new(&[]);
    let whole = |text: String| Handle::blob(Digest::of(text.as_bytes()));
    let lines = |range: std::ops::RangeInclusive<u32>| range.map(|n| format!("{n}\n")).collect::<String>();
    let (out, err) = (whole(lines(1..=9_000)), whole(lines(10_000..=19_000)));
    for (cell, wanted) in [
        ("return (await z.run('seq 9000')).stdout", vec![out]),
        (
            "await z.run('seq 9000; seq 10000 19000 >&2'); await z.run('seq 9000')",
            vec![out, err],
        ),
        (
            "const { stderr } = await z.run('seq 10000 19000 >&2'); throw new Error(stderr)",
            vec![err],
        ),
        ("return (await z.run('seq 9000')).handles.stdout", vec![out]),
        ("return (await z.run('seq 9')).stdout", vec![]),
    ] {
        let response = ws.run(cell);
        assert_eq!(response.handles, wanted, "{cell}: {:?}", response.error);
        for handle in response.handles {
            ws.value(&format!(
                "return (await z.read('{handle}', {{ bytes: [0, 1] }})).content"
            ));
        }
    }
    let said = ws.run("console.log(Array.from({ length: 9000 }, (_, n) => `said ${n}`).join('\\n'))");
    assert_eq!(said.handles.len(), 1);
    let read = format!(
        "return (await z.read('{}', {{ match: 'said 1234' }})).content",
        said.handles[0]
    );
    assert!(ws.value(&read).as_str().unwrap().contains("said 1234"));
    let many = "for (let n = 0; n < 40; n += 1) await z.run(`seq ${n} 9000`)";
    assert_eq!(ws.run(many).handles.len(), 32);
}

/// Around the sizes from which on a stream is spilled to the disk, has a thread of its own and is no longer held whole.
#[test]
fn streams_of_every_size_are_kept_whole_and_shown_like_their_objects() {
    let ws = Workspace::new(&[]);
    let line = |n: usize| format!("{n:07} an ordinary line, told to fill a stream\n");
    for size in [
        0, 1, 60_000, 262_144, 1_048_575, 1_048_576, 1_048_577, 1_400_000, 4_194_305, 9_000_000,
    ] {
        let bytes: Vec<u8> = (0..).flat_map(|n| line(n).into_bytes()).take(size).collect();
        std::fs::write(ws.root.path().join("out"), &bytes).unwrap();
        let run = ws.value("return z.run('cat out; cat out out >&2')");
        for (stream, times) in [("stdout", 1), ("stderr", 2)] {
            let whole = bytes.repeat(times);
            assert_eq!(run["bytes"][stream], whole.len(), "{stream} of {size} bytes");
            let handle = Handle::blob(Digest::of(&whole)).to_string();
            assert_eq!(run["handles"][stream], handle.as_str(), "{stream} of {size} bytes");
            let shown = run[stream].as_str().unwrap();
            assert_eq!(shown.as_bytes() == whole, size < 2, "{stream} of {size} bytes");
            let end = &whole[whole.len().saturating_sub(30)..];
            assert!(shown.as_bytes().ends_with(end), "{stream} of {size} bytes: {shown}");
        }
    }
}

#[test]
fn a_kernel_inside_a_command_is_busy_at_once() {
    let ws = Workspace::new(&[("a", "1\n")]);
    let (root, store) = (ws.root.path().to_str().unwrap(), ws.store.path().to_str().unwrap());
    let this = std::env::current_exe().unwrap();
    let nested = format!(
        "ZEROSTACK_TEST_ROOT={root} ZEROSTACK_TEST_STORE={store} {} hub_run::child_that_is_nested --exact --ignored --nocapture",
        this.display()
    );
    let begun = Instant::now();
    let out = ws.value(&format!("return (await z.run({})).stdout", json!(nested)));
    assert!(out.as_str().unwrap().contains("nested: Busy"), "{out}");
    assert!(begun.elapsed() < Duration::from_secs(15));
}

/// A kernel that a command starts on its own cell's workspace.
#[test]
#[ignore = "started by the test above"]
fn child_that_is_nested() {
    let place = |name: &str| std::path::PathBuf::from(std::env::var_os(name).unwrap_or_default());
    let config = crate::hub_support::config(&place("ZEROSTACK_TEST_ROOT"), &place("ZEROSTACK_TEST_STORE"));
    println!("nested: {:?}", zerostack::ZeroKernel::open(config).err().unwrap().kind);
}

#[test]
fn the_host_can_forbid_commands() {
    let ws = Workspace::with(&[], |config| config.commands = Commands::Deny);
    assert_eq!(ws.error("return z.run(['true'])").kind, ErrorKind::Denied);
}

#[test]
fn the_store_is_out_of_a_commands_reach() {
    let ws = Workspace::new(&[("a", "1\n")]);
    ws.value("await z.edit('a', {find: '1', replacement: '2'})");
    let store = ws.store.path().to_str().unwrap().to_owned();
    let response = ws.run(&format!(
        "return (await z.run('touch {store}/x 2>&1; rm -rf {store}/* 2>&1; ls {store} | wc -l')).stdout"
    ));
    assert_eq!(response.error, None);
    if response.ledger.confinement.files.as_deref() == Some("landlock") {
        assert!(ws.store.path().join("objects").exists() && !ws.store.path().join("x").exists());
    }
}

/// What a command did and said is not lost because little of it is to be shown.
#[test]
fn however_little_is_to_be_shown_a_run_that_was_made_is_answered() {
    let ws = Workspace::new(&[]);
    let outputs = [
        "printf '{'; i=0; while [ $i -lt 3000 ]; do printf '\"key %s\": %s, ' $i $i; i=$((i + 1)); done; printf '\"z\": 0}'",
        "i=0; while [ $i -lt 3000 ]; do printf '[1,'; i=$((i + 1)); done",
        "head -c 100000 /dev/zero",
        "head -c 100000 /dev/zero | tr '\\0' '\\377'",
        "yes '' | head -n 100000",
        "yes 'error: it failed' | head -n 10000",
        "printf 'diff --git a/f b/f\\n--- a/f\\n+++ b/f\\n@@ -1,9000 +1,9000 @@\\n'; yes -- '-old' | head -n 9000",
        "printf '%090000d' 1",
        "true",
    ];
    for (at, output) in outputs.iter().enumerate() {
        for visible in [0, 1, 2, 20, 32, 33] {
            let made = format!("made-{at}-{visible}");
            let command = serde_json::to_string(&format!("touch {made}; {output}")).unwrap();
            let value = ws.value(&format!(
                "const r = await z.run({command}, {{visible: {visible}}}); return [r.exitCode, r.bytes.stdout]"
            ));
            assert_eq!(value[0], 0, "{output}");
            assert_eq!(value[1].as_u64() >= Some(9_000), *output != "true", "{output}: {value}");
            assert!(ws.root.path().join(made).exists(), "{output}");
        }
    }
}
