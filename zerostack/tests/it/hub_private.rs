//! The capture tier `private`: commands see the cell's tree, and nobody else sees what they do before the commit. Where
//! the machine allows no private view each test says so and ends.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use zero_contracts::response::{CaptureTier, Disposition, Outcome};
use zero_contracts::{CancelToken, ErrorKind};
use zerostack::{Capture, CellOptions, KernelConfig, StoreLocation, ZeroKernel};

use crate::hub_support::{Workspace, config, differences, has_private_view, isolated, tree};

const ROOT: &str = "ZEROSTACK_TEST_ROOT";
const STORE: &str = "ZEROSTACK_TEST_STORE";
const SIGNS: &str = "ZEROSTACK_TEST_SIGNS";

fn private(files: &[(&str, &str)]) -> Workspace {
    Workspace::with(files, |config| config.capture = Capture::RequirePrivate)
}

/// A directory beside the workspace in which a command and the test leave each other signs.
struct Signs(tempfile::TempDir);

impl Signs {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> &str {
        self.0.path().to_str().unwrap()
    }

    fn wait_for(&self, sign: &str) {
        wait_for(&self.0.path().join(sign));
    }

    fn give(&self, sign: &str) {
        std::fs::write(self.0.path().join(sign), "").unwrap();
    }
}

fn wait_for(path: &Path) {
    let begun = Instant::now();
    while !path.exists() {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "{} never came",
            path.display()
        );
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn the_tier_is_what_the_response_says_and_the_host_chooses() {
    let tier = |capture| {
        let ws = Workspace::with(&[("a", "1\n")], |config| config.capture = capture);
        // Whoever looks from outside tells the truth: is the command's work in the live tree while the cell runs?
        let signs = Signs::new();
        let line = format!(
            "echo 2 > a; touch {0}/ready; while [ ! -e {0}/go ]; do sleep 0.01; done",
            signs.path()
        );
        let (response, seen) = std::thread::scope(|scope| {
            let cell = scope.spawn(|| ws.run(&format!("await z.run({})", json!(line))));
            signs.wait_for("ready");
            let seen = ws.file("a");
            signs.give("go");
            (cell.join().unwrap(), seen)
        });
        assert_eq!(response.error, None);
        assert_eq!(ws.file("a"), "2\n");
        let private = response.effects.capture == CaptureTier::Private;
        assert_eq!(seen == "1\n", private, "the tier that was said is the truth");
        private
    };
    let possible = has_private_view();
    assert!(!tier(Capture::Baseline));
    assert_eq!(tier(Capture::PreferPrivate), possible);
    if possible {
        assert!(tier(Capture::RequirePrivate));
    }
}

#[test]
fn a_tier_that_cannot_be_had_is_refused_with_its_reason() {
    let ws = Workspace::new(&[("a", "1\n")]);
    let Some(why) = ws.kernel.why_no_private_view().unwrap() else {
        return; // It can be had here: the other tests show what it does.
    };
    let required = private(&[("a", "1\n")]);
    let error = required.error("await z.run(['true'])");
    assert_eq!(error.kind, ErrorKind::Unsupported);
    assert!(error.detail.contains(&why), "{} / {why}", error.detail);
    assert_eq!(ws.run("await z.run(['true'])").effects.capture, CaptureTier::Baseline);
}

#[test]
fn reads_and_finds_see_the_merged_tree_and_later_commands_see_edits() {
    if !has_private_view() {
        return;
    }
    let ws = private(&[
        ("a", "1\n"),
        ("d/x", "x\n"),
        ("d/e/y", "y\n"),
        ("gone", "g\n"),
        (".gitignore", "/out\n*.log\n"),
    ]);
    let before = ws.tree();
    let cell = "
        await z.edit('a', {find: '1', replacement: '2'});
        await z.apply([{path: 'gone', remove: true, expect: 'any'}, {move: ['d', 'moved']}], {});
        const first = await z.run('cat a moved/x moved/e/y; ls; echo 3 >> a; rm -r moved/e; mkdir -p fresh/deep; echo needle > fresh/deep/f; ln -s a link; mkdir out; echo built > out/o; echo l > x.log; chmod 700 moved');
        const seen = [await z.read('a'), await z.read('fresh/deep/f'), (await z.find('needle')).items.map(i => i.path),
            (await z.find('fresh', {mode: 'paths'})).total, await z.read('out/o'), await z.read('x.log'), (await z.read('out')).entries.length,
            await z.read('link')];
        await z.edit('a', {find: '3', replacement: '4'});
        await z.edit('fresh/deep/f', {remove: true}, {expect: 'any'});
        await z.edit('out2/p', {create: 'p'});
        const second = await z.run('cat a out/o x.log; ls fresh/deep; cat out2/p; rm -r fresh; mkdir fresh; echo again > fresh/g');
        let absent; try { await z.read('moved/e/y') } catch (e) { absent = e.kind }
        let carried; try { await z.edit('out/o', {content: 'x'}, {expect: 'any'}) } catch (e) { carried = e.kind }
        return [first.stdout, seen, second.stdout, second.stderr, absent, carried, await z.read('fresh/g')]";
    let wanted = json!([
        "2\nx\ny\na\nmoved\n",
        ["2\n3\n", "needle\n", ["fresh/deep/f"], 1, "built\n", "l\n", 1, "2\n3\n"],
        "2\n4\nbuilt\nl\np",
        "",
        "not_found",
        "unsupported",
        "again\n"
    ]);
    let response = ws.run(cell);
    assert_eq!(response.error, None);
    assert_eq!(response.value.unwrap().0, wanted);
    assert_eq!(response.effects.capture, CaptureTier::Private);
    assert_eq!(response.effects.ignored_paths, 2);
    for (path, content) in [
        ("a", "2\n4\n"),
        ("moved/x", "x\n"),
        ("out/o", "built\n"),
        ("x.log", "l\n"),
        ("fresh/g", "again\n"),
    ] {
        assert_eq!(ws.file(path), content, "{path}");
    }
    assert!(!ws.has("moved/e") && !ws.has("d") && !ws.has("gone") && !ws.has("fresh/deep"));
    // The same, failing: no trace, not even of what ignore rules exclude.
    let ws = private(&[
        ("a", "1\n"),
        ("d/x", "x\n"),
        ("d/e/y", "y\n"),
        ("gone", "g\n"),
        (".gitignore", "/out\n*.log\n"),
    ]);
    let response = ws.run(&cell.replace("return [", "throw ["));
    assert_eq!(response.effects.disposition, Disposition::Restored);
    assert_eq!(differences(&ws.tree(), &before), Vec::<String>::new());
    assert_eq!(std::fs::read_dir(ws.store.path().join("private")).unwrap().count(), 0);
}

#[test]
fn ignored_directories_that_are_there_are_the_live_ones() {
    if !has_private_view() {
        return;
    }
    let ws = private(&[
        (".gitignore", "target/\n"),
        ("target/old", "o"),
        ("sub/target/old", "o"),
        ("a", "1\n"),
    ]);
    let response = ws.run("await z.run('echo n > target/new; echo n > sub/target/new; echo 2 > a; cat target/old'); throw new Error('no')");
    assert_eq!(response.outcome, Outcome::Failed);
    assert!(ws.has("target/new") && ws.has("sub/target/new"));
    assert_eq!(ws.file("a"), "1\n");
}

/// Runs a cell whose one command changes something, waits, and goes on once somebody else has saved.
fn with_a_save(ws: &Workspace, line: &str, save: impl FnOnce()) -> zero_contracts::ZeroKernelResponse {
    let signs = Signs::new();
    let line = format!(
        "{line}; touch {0}/ready; while [ ! -e {0}/go ]; do sleep 0.01; done",
        signs.path()
    );
    std::thread::scope(|scope| {
        let cell = scope.spawn(|| ws.run(&format!("return (await z.run({})).stderr", json!(line))));
        signs.wait_for("ready");
        save();
        signs.give("go");
        cell.join().unwrap()
    })
}

/// A FIFO is never published; what it took the place of is gone all the same.
#[test]
fn what_a_special_file_took_the_place_of_is_removed() {
    if !has_private_view() {
        return;
    }
    for line in [
        "rm a; mkfifo a; rm -r d; mkfifo d",
        "mkfifo n; mv n a; rm -r d; mknod d p",
        "rm -r a d; mkfifo d; rm d",
    ] {
        let ws = private(&[("a", "1\n"), ("d/x", "x\n"), ("d/e/y", "y\n"), ("b", "2\n")]);
        let cell = format!(
            "const run = await z.run({}); if (run.exitCode) throw run.stderr;\
             const seen = await z.read('.', {{recursive: true}}); await z.run('echo 3 > b');\
             return seen.entries.map((entry) => entry.path)",
            json!(line)
        );
        let failed = ws.run(&format!("{}; throw 1", cell.replace("return", "void")));
        assert_eq!(failed.outcome, Outcome::Failed);
        assert_eq!(
            (ws.file("a"), ws.file("d/e/y"), ws.file("b")),
            ("1\n".into(), "y\n".into(), "2\n".into())
        );
        let response = ws.run(&cell);
        assert_eq!(
            (response.outcome, &response.error),
            (Outcome::Completed, &None),
            "{line}"
        );
        assert_eq!(response.value.unwrap().0, json!(["b"]), "{line}");
        assert_eq!(std::fs::read_dir(ws.root.path()).unwrap().count(), 1, "{line}");
        assert_eq!(ws.file("b"), "3\n");
    }
}

/// Directories in each other by the hundred and by the thousand: what a path can name is published, what none can fails the
/// cell, and the layers go in any case.
#[test]
fn trees_of_any_depth_end_no_host() {
    if !has_private_view() {
        return;
    }
    let nest = |names: usize, times: usize| {
        format!(
            "p=$(printf 'd/%.0s' $(seq {names})); for i in $(seq {times}); do mkdir -p $p; cd $p; done; echo leaf > leaf"
        )
    };
    let left = |ws: &Workspace| std::fs::read_dir(ws.store.path().join("private")).map_or(0, Iterator::count);
    let leaf = |depth: usize| format!("{}leaf", "d/".repeat(depth));
    let run = |line: &str| {
        format!(
            "const run = await z.run({}); if (run.exitCode) throw run.stderr",
            json!(line)
        )
    };
    // Deep, and taken away again.
    let ws = private(&[("a", "1\n")]);
    let failed = ws.run(&format!("{}; throw 'enough'", run(&nest(1000, 1))));
    assert!(failed.error.unwrap().detail.contains("enough"));
    assert_eq!((ws.has("d"), left(&ws)), (false, 0));
    let done = ws.run(&run(&nest(1000, 1)));
    assert_eq!((done.outcome, &done.error), (Outcome::Completed, &None));
    assert_eq!((ws.file(&leaf(1000)).as_str(), left(&ws)), ("leaf\n", 0));
    // Moved as it stands into the next command's view, and removed by a command.
    let moved = ws.run(&format!(
        "await z.apply([{{move: ['d', 'e']}}]); {}",
        run("rm -r e; echo 2 > a")
    ));
    assert_eq!((moved.outcome, &moved.error), (Outcome::Completed, &None));
    assert_eq!(
        (ws.file("a").as_str(), ws.has("d"), ws.has("e"), left(&ws)),
        ("2\n", false, false, 0)
    );
    // Deeper than any path.
    let failed = ws.run(&format!("{}; echo 3 > a", run(&nest(1000, 6))));
    assert_eq!(failed.outcome, Outcome::Failed, "{:?}", failed.error);
    assert_eq!((ws.file("a").as_str(), ws.has("d"), left(&ws)), ("2\n", false, 0));
    // The same where nobody looks, because it is ignored.
    let ws = private(&[("a", "1\n"), (".gitignore", "d\n")]);
    let done = ws.run(&run(&format!("echo 2 > a; {}", nest(1000, 6))));
    assert_eq!((done.outcome, &done.error), (Outcome::Completed, &None));
    assert_eq!((ws.file("a").as_str(), left(&ws)), ("2\n", 0));
}

/// What a command leaves behind may be larger than every disk: looking at it heeds the cell's time and the host's cancellation.
#[test]
fn looking_at_what_a_command_left_ends_with_the_cell() {
    if !has_private_view() {
        return;
    }
    let ws = private(&[("a", "1\n")]);
    let cell = "await z.run('truncate -s 1T huge; echo 2 > a'); return 1";
    let options = CellOptions {
        timeout: Some(Duration::from_secs(2)),
        ..CellOptions::default()
    };
    let response = ws.kernel.execute_cell_with(cell, options);
    let error = response.error.expect("it is late");
    assert_eq!(
        (response.outcome, error.kind),
        (Outcome::Failed, ErrorKind::Deadline),
        "{error:?}"
    );
    let cancel = CancelToken::new();
    let options = CellOptions {
        cancel: Some(cancel.clone()),
        ..CellOptions::default()
    };
    let response = std::thread::scope(|scope| {
        let cell = scope.spawn(|| ws.kernel.execute_cell_with(cell, options));
        std::thread::sleep(Duration::from_secs(1));
        cancel.cancel();
        cell.join().unwrap()
    });
    assert_eq!(response.outcome, Outcome::Cancelled, "{:?}", response.error);
    assert!(!ws.has("huge"));
    assert_eq!(ws.file("a"), "1\n");
    // The file itself, when it is there, ends no search.
    std::fs::File::create(ws.root.path().join("huge"))
        .unwrap()
        .set_len(1 << 40)
        .unwrap();
    let response = ws.run("const found = await z.find('nowhere'); return [found.total, found.absence]");
    assert_eq!(
        response.value.unwrap().0,
        json!([0, "uncertified"]),
        "{:?}",
        response.error
    );
}

#[test]
fn what_somebody_saves_meanwhile_is_kept() {
    if !has_private_view() {
        return;
    }
    let files = [("a", "1\n"), ("b", "1\n"), ("d/x", "x\n")];
    {
        let ws = private(&files);
        let response = with_a_save(&ws, "echo mine > a; echo mine > d/y", || {
            std::fs::write(ws.root.path().join("b"), "theirs\n").unwrap();
            std::fs::write(ws.root.path().join("d/z"), "theirs\n").unwrap();
            // As editors save: a new file in the place of the old one.
            std::fs::write(ws.root.path().join("d/x~"), "theirs\n").unwrap();
            std::fs::rename(ws.root.path().join("d/x~"), ws.root.path().join("d/x")).unwrap();
        });
        assert_eq!((response.outcome, &response.error), (Outcome::Completed, &None));
        assert_eq!((ws.file("a").as_str(), ws.file("b").as_str()), ("mine\n", "theirs\n"));
        assert_eq!(
            (
                ws.file("d/x").as_str(),
                ws.file("d/y").as_str(),
                ws.file("d/z").as_str()
            ),
            ("theirs\n", "mine\n", "theirs\n")
        );
    }
    // In the same file: theirs stays, the cell conflicts, and both versions can be read.
    for (mine, ours) in [
        ("echo mine > a", Some("mine\n")),
        ("sed -i s/1/mine/ a", Some("mine\n")),
        ("echo mine > n && mv n a", Some("mine\n")),
        ("rm a", None),
        ("rm a; mkdir a; echo mine > a/b", None),
        ("chmod 600 a", None),
    ] {
        let ws = private(&files);
        let response = with_a_save(&ws, mine, || {
            std::fs::write(ws.root.path().join("a"), "theirs\n").unwrap()
        });
        let error = response.error.expect("a conflict");
        assert_eq!(
            (response.outcome, error.kind),
            (Outcome::Failed, ErrorKind::Conflict),
            "{mine}"
        );
        assert_eq!(error.path.as_deref(), Some("a"));
        let conflict = response
            .effects
            .conflicts
            .iter()
            .find(|c| c.path == "a")
            .expect("it is listed");
        let read = |handle: Option<zero_contracts::Handle>| {
            handle.map(|handle| String::from_utf8(ws.kernel.objects().get(&handle.digest).unwrap()).unwrap())
        };
        if ours.is_some() {
            assert_eq!(read(conflict.ours).as_deref(), ours, "{mine}");
        }
        assert_eq!(read(conflict.theirs).as_deref(), Some("theirs\n"), "{mine}");
        assert_eq!(ws.file("a"), "theirs\n");
        assert!(!ws.has("n"));
    }
    // A name that both make.
    let ws = private(&files);
    let response = with_a_save(&ws, "echo mine > new", || {
        std::fs::write(ws.root.path().join("new"), "theirs\n").unwrap()
    });
    assert_eq!(response.error.expect("a conflict").kind, ErrorKind::Conflict);
    assert_eq!(ws.file("new"), "theirs\n");
    // A directory that goes here and gets something there.
    let ws = private(&files);
    let response = with_a_save(&ws, "rm -r d", || {
        std::fs::write(ws.root.path().join("d/z"), "theirs\n").unwrap()
    });
    assert_eq!(response.error.expect("a conflict").kind, ErrorKind::Conflict);
    assert_eq!((ws.file("d/z").as_str(), ws.file("d/x").as_str()), ("theirs\n", "x\n"));
}

#[test]
fn an_edit_while_a_command_runs_is_the_cells_own() {
    if !has_private_view() {
        return;
    }
    let signs = Signs::new();
    let wait = format!("touch {0}/$0; while [ ! -e {0}/go ]; do sleep 0.01; done", signs.path());
    let cell = |line: &str| {
        format!(
            "const run = z.run(['sh', '-c', {}, 'ready']);
             await z.run({});
             await z.edit('b', {{content: 'edited'}}, {{expect: 'any'}});
             await z.run(['touch', {}]);
             await run; return [await z.read('a'), await z.read('b')]",
            json!(format!("{line}; {wait}")),
            json!(format!("while [ ! -e {}/ready ]; do sleep 0.01; done", signs.path())),
            json!(format!("{}/go", signs.path()))
        )
    };
    // Another file than the command's: both stand.
    let ws = private(&[("a", "1"), ("b", "1")]);
    assert_eq!(ws.value(&cell("printf 2 > a")), json!(["2", "edited"]));
    assert_eq!(ws.file("b"), "edited");
    // The command's own file: nobody knows which is meant.
    for sign in ["go", "ready"] {
        std::fs::remove_file(signs.0.path().join(sign)).unwrap();
    }
    let ws = private(&[("a", "1"), ("b", "1")]);
    let error = ws.error(&cell("printf 2 > b"));
    assert_eq!((error.kind, ws.file("b").as_str()), (ErrorKind::Conflict, "1"));
}

#[test]
fn a_watcher_sees_nothing_before_the_commit() {
    if !has_private_view() {
        return;
    }
    let ws = private(&[("a", "1\n"), ("d/x", "x\n"), (".gitignore", "/out\n")]);
    let before = ws.tree();
    let signs = Signs::new();
    let done = signs.0.path().join("done");
    let over = AtomicBool::new(false);
    let looks = std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut looks = 0_u32;
            while !over.load(Ordering::Relaxed) {
                let seen = tree(ws.root.path());
                if done.exists() {
                    break; // The commit may have begun.
                }
                assert_eq!(differences(&seen, &before), Vec::<String>::new());
                looks += 1;
            }
            looks
        });
        let response = ws.run(&format!(
            "await z.edit('a', {{find: '1', replacement: '2'}});
             await Promise.all(['p', 'q', 'r'].map(n => z.run(`echo ${{n}} > ${{n}}; sleep 0.1; mkdir -p out/${{n}}; echo ${{n}} > out/${{n}}/f; rm -rf d; sleep 0.1`)));
             await z.edit('p', {{find: 'p', replacement: 'P'}});
             await z.run('cat p q r > all; chmod 600 all; sleep 0.1; git init -q . ; touch {}')",
            done.display()
        ));
        over.store(true, Ordering::Relaxed);
        assert_eq!(response.error, None);
        watcher.join().unwrap()
    });
    assert!(looks > 10, "it looked {looks} times");
    assert_eq!(ws.file("all"), "P\nq\nr\n");
    assert!(!ws.has("d") && ws.has(".git/HEAD") && ws.has("out/q/f"));
}

/// The host that is killed: its command waits for the end, or its many effects are being published.
#[test]
#[ignore = "started by the test below"]
fn child_that_is_killed() {
    let place = |name: &str| std::path::PathBuf::from(std::env::var_os(name).unwrap_or_default());
    let signs = place(SIGNS);
    if signs.as_os_str().is_empty() {
        return;
    }
    let mut config = config(&place(ROOT), &place(STORE));
    config.capture = Capture::RequirePrivate;
    let line = if signs.join("publish").exists() {
        format!(
            "for i in *; do echo more >> $i; done; rm 0*; mkdir made; echo x > made/y; touch {}/ready",
            signs.display()
        )
    } else {
        format!(
            "echo more >> 01; rm 02; setsid sh -c 'touch {}/ready; sleep 1000' & wait",
            signs.display()
        )
    };
    ZeroKernel::open(config)
        .unwrap()
        .execute_cell(&format!("await z.run({})", json!(line)));
}

#[test]
fn sigkill_of_the_host_leaves_no_mount_no_process_and_no_half_tree() {
    if !has_private_view() {
        return;
    }
    let names: Vec<String> = (0..60).map(|n| format!("{n:02}")).collect();
    let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "1\n")).collect();
    let rounds: u64 = std::env::var("ZEROSTACK_KILLS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(6);
    for round in 0..rounds {
        let ws = private(&files);
        let signs = Signs::new();
        let publishing = round > 0;
        if publishing {
            signs.give("publish");
        }
        let before = ws.tree();
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        let mut child = isolated(
            "hub_private::child_that_is_killed",
            &[
                (ROOT, &text(ws.root.path())),
                (STORE, &text(ws.store.path())),
                (SIGNS, signs.path()),
            ],
        );
        signs.wait_for("ready");
        if publishing {
            // Somewhere between the end of the command and some time after the commit.
            std::thread::sleep(Duration::from_micros(round * 7919 % 40_000));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        // Whoever comes next waits for the supervisor, and recovers.
        let response = ws.run("await z.edit('after', {create: 'x'}); await z.edit('after', {remove: true})");
        assert_eq!(response.error, None);
        let after = ws.tree();
        if differences(&after, &before).is_empty() {
            assert!(!ws.has("made"));
        } else {
            assert!(publishing);
            assert_eq!(
                (ws.file("made/y").as_str(), ws.file("59").as_str()),
                ("x\n", "1\nmore\n"),
                "{round}"
            );
            assert_eq!(after.len(), 52, "{round}: {:?}", after.keys());
            assert!(!ws.has("00"));
        }
        assert_eq!(std::fs::read_dir(ws.store.path().join("private")).unwrap().count(), 0);
        let (mounts, root) = (
            std::fs::read_to_string("/proc/self/mountinfo").unwrap(),
            text(ws.root.path()),
        );
        assert!(!mounts.contains(&root), "{mounts}");
        for process in std::fs::read_dir("/proc").unwrap().flatten() {
            let file = |name: &str| std::fs::read(process.path().join(name)).unwrap_or_default();
            let line = String::from_utf8_lossy(&file("cmdline")).into_owned();
            assert!(!line.contains(&format!("{}/ready", signs.path())), "{line} lives");
            assert!(
                !String::from_utf8_lossy(&file("mountinfo")).contains(&root),
                "{line} keeps the mount"
            );
        }
    }
}

#[test]
fn tool_chains_work_unchanged_in_the_view() {
    if !has_private_view() {
        return;
    }
    let run = |ws: &Workspace, line: &str| {
        let value = ws.value(&format!("return z.run({}, {{timeoutMs: 25000}})", json!(line)));
        assert_eq!(value["exitCode"], 0, "{line}\n{value:#}");
        value["stdout"].as_str().unwrap().to_owned()
    };
    let has = |program: &str| {
        let found = Command::new(program)
            .arg("--version")
            .output()
            .is_ok_and(|done| done.status.success());
        if !found {
            eprintln!("SKIPPED: no {program} here");
        }
        found
    };
    let cargo = || {
        Workspace::with(
            &[
                (
                    "Cargo.toml",
                    "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n",
                ),
                (
                    "src/lib.rs",
                    "pub fn two() -> u32 { 2 }\n#[test]\nfn t() { assert_eq!(two(), 2) }\n",
                ),
                (".gitignore", "/target\n"),
            ],
            |config| config.capture = Capture::RequirePrivate,
        )
    };
    if has("cargo") {
        let ws = cargo();
        run(&ws, "cargo build --offline --quiet && ls target/debug/libsmall.rlib");
        assert!(ws.has("target/debug/libsmall.rlib") && ws.has("Cargo.lock"));
        // The second time the build directory is there, and the live one.
        run(&ws, "touch src/lib.rs; cargo test --offline --quiet 2>&1");
    }
    if has("git") {
        let ws = private(&[("a", "1\n")]);
        run(
            &ws,
            "git init -q -b main . && git add -A && git -c user.name=n -c user.email=e commit -qm one",
        );
        run(
            &ws,
            "echo 2 > a && git -c user.name=n -c user.email=e commit -qam two && git gc -q --prune=now",
        );
        let log = Command::new("git")
            .args(["log", "--format=%s"])
            .current_dir(ws.root.path())
            .output()
            .unwrap();
        assert_eq!(log.stdout, b"two\none\n");
        let fsck = Command::new("git")
            .args(["fsck", "--strict"])
            .current_dir(ws.root.path())
            .output()
            .unwrap();
        assert!(fsck.status.success());
    }
    if has("npm") {
        let ws = private(&[
            (
                "package.json",
                "{\"name\": \"app\", \"version\": \"1.0.0\", \"dependencies\": {\"dep\": \"file:./dep\"}}",
            ),
            (
                "dep/package.json",
                "{\"name\": \"dep\", \"version\": \"1.0.0\", \"main\": \"i.js\"}",
            ),
            ("dep/i.js", "module.exports = 7"),
            (".gitignore", "node_modules\n"),
        ]);
        run(&ws, "npm install --offline --no-audit --no-fund");
        assert!(ws.has("package-lock.json") && ws.has("node_modules/dep/i.js"));
        assert_eq!(run(&ws, "node -e 'console.log(require(\"dep\"))'"), "7\n");
        run(&ws, "npm install --offline --no-audit --no-fund && npm ls");
    }
}

#[test]
fn a_store_on_another_file_system_serves_too() {
    let memory = Path::new("/dev/shm");
    let Ok(store) = tempfile::tempdir_in(memory) else {
        eprintln!("SKIPPED: no memory file system here");
        return;
    };
    let root = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    std::fs::write(root.path().join(".gitignore"), "/out\n").unwrap();
    let kernel = ZeroKernel::open(KernelConfig {
        store: StoreLocation::At(store.path().to_owned()),
        capture: Capture::PreferPrivate,
        ..KernelConfig::new(root.path())
    })
    .unwrap();
    let response = kernel.execute_cell(
        "await z.run('mkdir -p out/d; echo o > out/d/f; ln -s f out/d/l; echo a > a'); return z.read('out/d/l')",
    );
    assert_eq!(response.error, None);
    assert_eq!(response.value.unwrap().0, "o\n");
    let read = |path: &str| std::fs::read_to_string(root.path().join(path)).unwrap();
    assert_eq!((read("a").as_str(), read("out/d/l").as_str()), ("a\n", "o\n"));
}
