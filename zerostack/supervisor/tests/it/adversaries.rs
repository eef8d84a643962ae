//! Trees that do not want to end.

use std::process::Command;
use std::time::Duration;

use zero_supervisor::{CountTier, EndReason, Termination, TreeTier};

use crate::support::{
    Setting, adversary, gone_soon, is_root, rounds, run, run_until_up, shell, survivors, token, unavailable,
};

crate::scenarios! {
    background_process_of_an_exited_shell;
    background_process_that_holds_the_output;
    double_forked_daemon;
    cleared_environment_and_fast_exits;
    leapfrog_left_behind;
    leapfrog_at_a_timeout;
    stopped_tree;
    grandchild_that_ignores_term;
    timeout_kills;
    fork_bomb;
    fork_bomb_out_of_its_group;
    exit_status_of_the_root_is_kept;
}

fn background_process_of_an_exited_shell(setting: Setting) {
    for _ in 0..rounds() {
        let token = token();
        let ran = run(shell(setting, &format!("sleep 1000.{token} & exit 3")));
        assert_eq!(survivors(&token), [0_i32; 0]);
        assert_eq!(ran.outcome.termination, Termination::Exited { code: 3 });
        assert_eq!(ran.outcome.reason, EndReason::Natural);
        assert!(ran.outcome.cleanup.is_clean() && ran.outcome.complete, "{ran:?}");
    }
}

fn background_process_that_holds_the_output(setting: Setting) {
    let token = token();
    let ran = run(shell(setting, &format!("sleep 60.{token} & echo hi")));
    assert_eq!(survivors(&token), [0_i32; 0]);
    assert_eq!(ran.stdout, b"hi\n");
    assert!(ran.outcome.complete && ran.outcome.cleanup.is_clean(), "{ran:?}");
    assert!(
        ran.wall < Duration::from_secs(30),
        "answered when the shell ended, not the sleeper: {ran:?}"
    );
}

fn double_forked_daemon(setting: Setting) {
    for _ in 0..rounds() {
        let token = token();
        let ran = run(adversary(setting, &["daemon", &token]));
        assert_eq!(survivors(&token), [0_i32; 0]);
        assert_eq!(ran.outcome.termination, Termination::Exited { code: 0 });
        assert!(ran.outcome.cleanup.is_clean(), "{ran:?}");
        assert_eq!(ran.stdout, b"up\n");
    }
}

fn cleared_environment_and_fast_exits(setting: Setting) {
    for _ in 0..rounds() {
        let token = token();
        let ran = run(adversary(setting, &["cleared", &token]));
        assert_eq!(survivors(&token), [0_i32; 0]);
        assert_eq!(ran.outcome.reason, EndReason::Natural);
        assert!(ran.outcome.cleanup.is_clean(), "{ran:?}");
    }
}

fn leapfrog_left_behind(setting: Setting) {
    for _ in 0..rounds() {
        let token = token();
        let mut spec = adversary(setting, &["leapfrog", &token, "64", "leave"]);
        spec.grace = Duration::from_millis(50);
        let ran = run(spec);
        assert_eq!(survivors(&token), [0_i32; 0]);
        assert!(ran.outcome.cleanup.is_clean(), "{ran:?}");
        assert_eq!(ran.outcome.termination, Termination::Exited { code: 0 });
    }
}

fn leapfrog_at_a_timeout(setting: Setting) {
    for _ in 0..rounds() {
        let token = token();
        let mut spec = adversary(setting, &["leapfrog", &token, "64", "stay"]);
        spec.grace = Duration::from_millis(50);
        let ran = run_until_up(spec);
        assert_eq!(survivors(&token), [0_i32; 0]);
        assert!(ran.outcome.cleanup.is_clean(), "{ran:?}");
        assert_eq!(ran.outcome.reason, EndReason::Timeout);
    }
}

fn stopped_tree(setting: Setting) {
    for _ in 0..rounds() {
        let token = token();
        let ran = run_until_up(adversary(setting, &["stopped", &token]));
        assert_eq!(survivors(&token), [0_i32; 0]);
        assert_eq!(ran.outcome.reason, EndReason::Timeout);
        // CONT woke them, and they obeyed TERM.
        assert_eq!(
            ran.outcome.termination,
            Termination::Signalled { signal: libc::SIGTERM }
        );
        assert!(ran.outcome.cleanup.is_clean() && ran.stdout == b"up\n", "{ran:?}");
    }
}

fn grandchild_that_ignores_term(setting: Setting) {
    for _ in 0..rounds() {
        let token = token();
        let mut spec = adversary(setting, &["stubborn", &token]);
        spec.grace = Duration::from_millis(400);
        let ran = run_until_up(spec);
        assert_eq!(survivors(&token), [0_i32; 0]);
        assert_eq!(
            ran.outcome.termination,
            Termination::Signalled { signal: libc::SIGTERM }
        );
        assert_eq!(ran.outcome.reason, EndReason::Timeout);
        assert!(ran.outcome.cleanup.is_clean() && ran.stdout == b"up\n", "{ran:?}");
        assert!(
            ran.wall >= Duration::from_millis(400),
            "the whole grace was given: {ran:?}"
        );
    }
}

fn timeout_kills(setting: Setting) {
    let token = token();
    let mut spec = shell(setting, &format!("exec sleep 100.{token}"));
    spec.timeout = Some(Duration::from_millis(300));
    let ran = run(spec);
    assert_eq!(survivors(&token), [0_i32; 0], "dead at return");
    assert_eq!(ran.outcome.reason, EndReason::Timeout);
    assert!(
        ran.outcome.cleanup.is_clean() && ran.wall >= Duration::from_millis(300),
        "{ran:?}"
    );
}

fn bomb(setting: Setting, mode: &str) {
    // One at a time on this machine, whoever runs it, and fewer rounds: everybody else suffers.
    let path = std::env::temp_dir().join("zero-supervisor-tests.bomb");
    let turn = std::fs::File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path);
    if let Ok(turn) = &turn {
        use std::os::unix::fs::PermissionsExt;
        let _ = turn.set_permissions(std::fs::Permissions::from_mode(0o666));
        turn.lock().expect("locked");
    }
    for _ in 0..rounds().div_ceil(10) {
        let token = token();
        let mut spec = adversary(setting, &[mode, &token]);
        spec.limits.processes = 128;
        spec.cleanup = Duration::from_secs(20);
        let ran = run(spec);
        assert_eq!(gone_soon(&token, Duration::ZERO), [0_i32; 0]);
        // The bomb ends itself after a while; then the reason would be another.
        assert_eq!(ran.outcome.reason, EndReason::Limit, "{ran:?}");
        assert!(ran.outcome.cleanup.is_clean(), "{ran:?}");
    }
}

fn fork_bomb(setting: Setting) {
    bomb(setting, "bomb");
}

fn fork_bomb_out_of_its_group(setting: Setting) {
    bomb(setting, "scattered-bomb");
}

fn exit_status_of_the_root_is_kept(setting: Setting) {
    let ran = run(adversary(setting, &["work", &token()]));
    assert_eq!(ran.outcome.termination, Termination::Exited { code: 7 });
    assert!(ran.outcome.cpu >= Duration::from_millis(80), "{:?}", ran.outcome.cpu);
    assert!(ran.outcome.max_rss_bytes >= 64 << 20, "{}", ran.outcome.max_rss_bytes);
    let ran = run(shell(setting, "kill -9 $$"));
    assert_eq!(ran.outcome.termination, Termination::Signalled { signal: 9 });
    assert_eq!(ran.outcome.reason, EndReason::Natural);
}

/// A machine without a `pids` controller: this test starts itself again where that of cgroup v1 is not mounted.
#[test]
fn fork_bomb_in_a_cgroup_that_does_not_count() {
    const INSIDE: &str = "ZEROSTACK_TEST_NO_PIDS";
    let setting = Setting {
        tier: TreeTier::Cgroup,
        root: true,
    };
    if std::env::var_os(INSIDE).is_some() {
        let tiers = run(shell(setting, "true")).outcome.tiers;
        assert_eq!(tiers.count, CountTier::Sampled);
        return bomb(setting, "scattered-bomb");
    }
    if !is_root() || unavailable(TreeTier::Cgroup).is_some() {
        return eprintln!("SKIPPED: needs root and a cgroup");
    }
    if run(shell(setting, "true")).outcome.tiers.count == CountTier::Sampled {
        return bomb(setting, "scattered-bomb");
    }
    let mounts = std::fs::read_to_string("/proc/self/mounts").expect("mounts");
    let pids = mounts.lines().find_map(|line| {
        let mut fields = line.split(' ').skip(1);
        let (point, kind, options) = (fields.next()?, fields.next()?, fields.next()?);
        (kind == "cgroup" && options.split(',').any(|option| option == "pids")).then(|| point.to_owned())
    });
    let Some(pids) = pids else {
        return eprintln!("SKIPPED: cgroup v2 counts here, and cannot be kept from it");
    };
    let output = Command::new("unshare")
        .args([
            "--mount",
            "sh",
            "-c",
            "umount \"$1\" && exec \"$0\" --exact --nocapture \"$2\"",
        ])
        .arg(std::env::current_exe().expect("own program"))
        .args([&pids, "adversaries::fork_bomb_in_a_cgroup_that_does_not_count"])
        .env(INSIDE, "1")
        .output();
    let Ok(output) = output else {
        return eprintln!("SKIPPED: no unshare here");
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}
