//! Streams: nothing lost, nothing waited for, nothing held in memory.

use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

use zero_supervisor::{EndReason, Error, Io, Processes, Spec, Stdin, Stream, Termination, Tree, TreeTier};

use crate::programs;
use crate::support::{Setting, adversary, children, descriptors, rounds, run, shell, survivors, token, unavailable};

crate::scenarios! {
    an_endless_printer_is_counted_to_its_timeout;
    both_streams_arrive_whole;
    much_stdin_to_a_slow_reader;
    no_stdin_ends_at_once;
}

/// Counts and forgets.
#[derive(Default)]
struct Counter(u64);

impl Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").expect("statm");
    text.split(' ')
        .nth(1)
        .expect("resident")
        .parse::<u64>()
        .expect("number")
        * 4096
}

fn an_endless_printer_is_counted_to_its_timeout(setting: Setting) {
    let token = token();
    let mut spec = shell(setting, &format!("exec yes {token}"));
    spec.timeout = Some(Duration::from_millis(500));
    spec.limits.output = u64::MAX;
    let processes = Processes::new(programs::supervisor());
    let (mut stdout, mut stderr) = (Counter::default(), Counter::default());
    let before = resident();
    let outcome = processes
        .spawn(spec)
        .expect("spawn")
        .drive(Io::new(&mut stdout, &mut stderr));
    assert!(resident() < before + (16 << 20), "memory is bounded");
    assert_eq!(survivors(&token), [0_i32; 0]);
    assert_eq!(outcome.reason, EndReason::Timeout);
    assert!(outcome.cleanup.is_clean() && outcome.complete, "{outcome:?}");
    assert!(stdout.0 > 1 << 20, "{}", stdout.0);
    assert_eq!((outcome.bytes.stdout, outcome.kept.stdout), (stdout.0, stdout.0));
}

fn both_streams_arrive_whole(setting: Setting) {
    // Far more than two pipes hold, in turns, and the last bytes just before the end.
    let line = "i=0; while [ $i -lt 40 ]; do head -c 100000 /dev/zero; head -c 70000 /dev/zero >&2; i=$((i+1)); done; \
                printf end; printf fin >&2";
    let ran = run(shell(setting, line));
    assert_eq!(ran.stdout.len(), 4_000_003);
    assert_eq!(ran.stderr.len(), 2_800_003);
    assert!(ran.stdout.ends_with(b"\0end") && ran.stderr.ends_with(b"\0fin"));
    assert_eq!(
        (ran.outcome.bytes.stdout, ran.outcome.bytes.stderr),
        (4_000_003, 2_800_003)
    );
    assert!(ran.outcome.complete);
}

fn much_stdin_to_a_slow_reader(setting: Setting) {
    let mut spec = adversary(setting, &["slow", &token()]);
    spec.stdin = Stdin::Bytes(vec![b'x'; 8 << 20]);
    let ran = run(spec);
    assert_eq!(ran.stdout, b"8388608\n");
    let mut spec = adversary(setting, &["slow", &token()]);
    spec.stdin = Stdin::Reader(Box::new(io::repeat(b'y').take(3_000_001)));
    assert_eq!(run(spec).stdout, b"3000001\n");
    // Echoed while it is written: neither side may wait for the other.
    let mut spec = shell(setting, "cat");
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|at| (at % 251) as u8).collect();
    spec.stdin = Stdin::Bytes(bytes.clone());
    assert!(run(spec).stdout == bytes, "every byte came back in order");
    // A command that does not read its input is no error.
    let mut spec = shell(setting, "exit 4");
    spec.stdin = Stdin::Bytes(vec![0; 1 << 20]);
    assert_eq!(run(spec).outcome.termination, Termination::Exited { code: 4 });
}

fn no_stdin_ends_at_once(setting: Setting) {
    let ran = run(shell(setting, "cat; read line; echo $?"));
    assert_eq!(ran.stdout, b"1\n");
    let mut spec = shell(setting, "wc -c");
    spec.stdin = Stdin::Bytes(Vec::new());
    assert_eq!(String::from_utf8_lossy(&run(spec).stdout).trim(), "0");
}

#[test]
fn beyond_the_output_limit_the_tree_ends_and_bytes_are_still_counted() {
    let token = token();
    let mut spec = Spec::shell(format!("yes {token} & exec yes {token} >&2"), "/");
    spec.limits.output = 300_001;
    let ran = run(spec);
    assert_eq!(survivors(&token), [0_i32; 0]);
    assert_eq!(ran.outcome.reason, EndReason::Limit);
    assert_eq!(
        ran.stdout.len() + ran.stderr.len(),
        300_001,
        "exactly the limit is kept"
    );
    assert!(ran.outcome.bytes.stdout + ran.outcome.bytes.stderr > 300_001);
    assert!(!ran.outcome.complete && ran.outcome.cleanup.is_clean());
}

#[test]
fn a_failing_sink_ends_the_command_and_is_reported() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::Error::from(io::ErrorKind::StorageFull))
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let processes = Processes::new(programs::supervisor());
    let running = processes.spawn(Spec::new(["yes"], "/")).expect("spawn");
    let outcome = running.drive(Io::new(&mut Full, &mut io::sink()));
    assert_eq!(
        outcome.sink_error.as_ref().map(io::Error::kind),
        Some(io::ErrorKind::StorageFull)
    );
    assert!(
        !outcome.complete && outcome.cleanup.is_clean() && outcome.reason == EndReason::Cancelled,
        "{outcome:?}"
    );
}

#[test]
fn output_is_passed_on_as_it_comes() {
    let processes = Processes::new(programs::supervisor());
    let running = processes
        .spawn(Spec::shell("echo out; sleep 1000", "/"))
        .expect("spawn");
    let canceller = running.canceller();
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let mut seen = Vec::new();
    let mut tell = |stream: Stream, bytes: &[u8]| {
        seen.push((stream, bytes.to_vec()));
        // Only possible while the command still runs.
        canceller.cancel(EndReason::Cancelled);
    };
    let outcome = running.drive(Io {
        on_output: Some(&mut tell),
        ..Io::new(&mut stdout, &mut stderr)
    });
    assert_eq!(outcome.reason, EndReason::Cancelled);
    assert_eq!(seen, [(Stream::Stdout, b"out\n".to_vec())]);
}

#[test]
fn programs_that_cannot_run_are_results() {
    let dir = tempfile::tempdir().expect("tempdir");
    std::fs::write(dir.path().join("plain"), "no program").expect("write");
    let cases: [(Spec, i32, &str); 4] = [
        (
            Spec::new(["no-such-program-anywhere"], "/"),
            libc::ENOENT,
            "no-such-program-anywhere",
        ),
        (Spec::new([dir.path().join("plain")], "/"), libc::EACCES, "plain"),
        (Spec::new([dir.path().to_owned()], "/"), libc::EACCES, "executing"),
        (
            Spec::new(["true"], dir.path().join("absent")),
            libc::ENOENT,
            "working directory",
        ),
    ];
    for (spec, expected, word) in cases {
        let ran = run(spec);
        let Termination::SpawnFailed { errno, detail, .. } = &ran.outcome.termination else {
            panic!("{ran:?}")
        };
        assert_eq!(*errno, expected, "{detail}");
        assert!(detail.contains(word), "{detail}");
        assert!(
            ran.outcome.cleanup.is_clean() && ran.outcome.reason == EndReason::Natural,
            "{ran:?}"
        );
    }
}

#[test]
fn impossible_specs_are_named_by_field() {
    let processes = Processes::new(programs::supervisor());
    let cases: [(Spec, &str); 6] = [
        (Spec::new([""], "/"), "argv"),
        (Spec::new(Vec::<String>::new(), "/"), "argv"),
        (Spec::new(["a\0b"], "/"), "argv"),
        (Spec::new(["true"], "relative"), "cwd"),
        (
            Spec {
                env: vec![("A=B".into(), "c".into())],
                ..Spec::new(["true"], "/")
            },
            "env",
        ),
        (
            Spec {
                tree: Tree { wanted: Vec::new() },
                ..Spec::new(["true"], "/")
            },
            "tree.wanted",
        ),
    ];
    for (spec, expected) in cases {
        match processes.spawn(spec) {
            Err(Error::Invalid { field, .. }) => assert_eq!(field, expected),
            other => panic!("{expected}: {other:?}"),
        }
    }
    assert_eq!(processes.counts(), zero_supervisor::Counts::default());
    match Processes::new("/nonexistent/zero-supervisor").spawn(Spec::new(["true"], "/")) {
        Err(Error::Io { what, .. }) => assert!(what.contains("/nonexistent/zero-supervisor"), "{what}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_environment_and_the_descriptors_are_exactly_what_was_given() {
    let mut spec = Spec::new(["env"], "/tmp");
    spec.env = vec![
        ("PATH".into(), "/usr/bin:/bin".into()),
        ("A".into(), "1".into()),
        ("A".into(), "2".into()),
    ];
    let ran = run(spec);
    let text = String::from_utf8(ran.stdout).expect("utf-8");
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.starts_with("ZEROSTACK_RUN="))
        .collect();
    assert_eq!(lines, ["PATH=/usr/bin:/bin", "A=2"]);

    for tier in [TreeTier::Cgroup, TreeTier::PidNamespace, TreeTier::Rlimits] {
        let setting = Setting { tier, root: true };
        if let Some(why) = unavailable(tier) {
            eprintln!("SKIPPED {tier:?}: {why}");
            continue;
        }
        let ran = run(adversary(setting, &["descriptors", &token()]));
        let text = String::from_utf8(ran.stdout).expect("utf-8");
        // The three streams and the directory that is being read.
        assert_eq!(text.lines().count(), 4, "{tier:?}: {text}");
        assert!(text.starts_with("0 /dev/null\n1 pipe:"), "{text}");
    }
    let ran = run(Spec::shell("ps -o sid= -p $$; echo $$; tty", "/"));
    let text = String::from_utf8(ran.stdout).expect("utf-8");
    let words: Vec<&str> = text.split_whitespace().collect();
    assert_eq!(words[0], words[1], "its own session: {text}");
}

/// Neither zombies nor descriptors are left, however many commands there were: 100 by default, 1,000 in a soak.
#[test]
fn many_short_commands_leave_nothing() {
    let processes = Processes::new(programs::supervisor());
    let quiet = || {
        let spec = Spec::new(["true"], "/");
        processes
            .spawn(spec)
            .expect("spawn")
            .drive(Io::new(&mut io::sink(), &mut io::sink()))
    };
    quiet();
    let before = descriptors();
    let many = if rounds() > 1 { 1000 } else { 100 };
    for _ in 0..many {
        assert!(quiet().cleanup.is_clean());
    }
    assert_eq!(descriptors(), before);
    assert_eq!(children(), 0);
    let counts = processes.wait_empty(Instant::now() + Duration::from_secs(5));
    assert_eq!(
        (counts.started, counts.reaped, counts.unproven, counts.live),
        (many + 1, many + 1, 0, 0)
    );
}

#[test]
fn commands_run_in_parallel() {
    // Each waits for the other to have started; run one after the other they would wait for ever.
    let dir = tempfile::tempdir().expect("tempdir");
    let processes = Processes::new(programs::supervisor());
    let line = |own: &str, other: &str| format!("touch {own}; while [ ! -e {other} ]; do sleep 0.01; done");
    std::thread::scope(|scope| {
        for (own, other) in [("a", "b"), ("b", "a")] {
            let mut spec = Spec::shell(line(own, other), dir.path());
            spec.timeout = Some(Duration::from_secs(30));
            let processes = processes.clone();
            scope.spawn(move || {
                let running = processes.spawn(spec).expect("spawn");
                let outcome = running.drive(Io::new(&mut io::sink(), &mut io::sink()));
                assert_eq!(outcome.reason, EndReason::Natural);
            });
        }
    });
}

#[test]
fn the_adversary_is_there() {
    assert!(programs::adversary().exists());
}
