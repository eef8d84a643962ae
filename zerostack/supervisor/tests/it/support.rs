//! Running a scenario under each tier, as root and as an ordinary user, and looking for survivors.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::programs;
use zero_supervisor::{Canceller, EndReason, Io, Outcome, Processes, Spec, Stream, Tree, TreeTier};

/// The user ordinary scenarios run as.
const NOBODY: u32 = 65534;

/// Says in the environment that this process was already started as the ordinary user.
const AGAIN: &str = "ZEROSTACK_TEST_USER";

/// Where and as whom a scenario runs.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    pub tier: TreeTier,
    pub root: bool,
}

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Runs `scenario` in this process when the user is right, else in a fresh one of the right user; skips, loudly, what this
/// machine cannot do.
pub fn in_setting(name: &str, setting: Setting, scenario: impl FnOnce(Setting)) {
    in_setting_of_any_tier(name, setting, |setting| match unavailable(setting.tier) {
        Some(why) => eprintln!("SKIPPED {name}: {why}"),
        None => scenario(setting),
    });
}

/// [`in_setting`] without asking whether the tier is there.
pub fn in_setting_of_any_tier(name: &str, setting: Setting, scenario: impl FnOnce(Setting)) {
    match (setting.root, is_root()) {
        (true, true) | (false, false) => scenario(setting),
        (true, false) => eprintln!("SKIPPED {name}: needs root"),
        (false, true) => {
            assert!(std::env::var_os(AGAIN).is_none(), "still root after changing the user");
            let name = name.split_once("::").expect("a module path").1;
            let output = programs::as_ordinary_user()
                .args([name, "--exact", "--nocapture", "--include-ignored"])
                .env(AGAIN, "1")
                .env("HOME", "/nonexistent")
                .env_remove("TMPDIR")
                .uid(NOBODY)
                .gid(NOBODY)
                .current_dir("/")
                .output()
                .expect("starting as an ordinary user");
            let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
            assert!(
                output.status.success() && text.contains("1 passed"),
                "as an ordinary user:\n{text}"
            );
            if text.contains("SKIPPED") {
                eprint!("{text}");
            }
        }
    }
}

/// Why a tier is not to be had by this user on this machine.
pub fn unavailable(tier: TreeTier) -> Option<String> {
    let mut spec = Spec::new(["true"], "/");
    spec.tree = Tree::required(tier);
    match Processes::new(programs::supervisor()).spawn(spec) {
        Ok(running) => {
            running.drive(Io::new(&mut std::io::sink(), &mut std::io::sink()));
            None
        }
        Err(zero_supervisor::Error::Unsupported(why)) => Some(why),
        Err(other) => panic!("{other}"),
    }
}

/// One test per tier and user for each scenario.
#[macro_export]
macro_rules! scenarios {
    ($($(#[$attribute:meta])* $scenario:ident;)*) => {$(
        mod $scenario {
            use $crate::support::{Setting, in_setting};
            use zero_supervisor::TreeTier;
            $crate::scenarios!(@one $(#[$attribute])* $scenario, root_cgroup, TreeTier::Cgroup, true);
            $crate::scenarios!(@one $(#[$attribute])* $scenario, root_namespace, TreeTier::PidNamespace, true);
            $crate::scenarios!(@one $(#[$attribute])* $scenario, root_rlimits, TreeTier::Rlimits, true);
            $crate::scenarios!(@one $(#[$attribute])* $scenario, user_namespace, TreeTier::PidNamespace, false);
            $crate::scenarios!(@one $(#[$attribute])* $scenario, user_rlimits, TreeTier::Rlimits, false);
        }
    )*};
    (@one $(#[$attribute:meta])* $scenario:ident, $name:ident, $tier:expr, $root:expr) => {
        #[test]
        $(#[$attribute])*
        fn $name() {
            let name = concat!(module_path!(), "::", stringify!($name));
            in_setting(name, Setting { tier: $tier, root: $root }, super::$scenario);
        }
    };
}

/// A word no other process of this machine has in its command line.
pub fn token() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .expect("after 1970");
    // All digits, so that `sleep 1000.TOKEN` can carry it.
    format!(
        "{}{:09}{:04}",
        std::process::id(),
        now.subsec_nanos(),
        COUNT.fetch_add(1, Ordering::Relaxed)
    )
}

/// Processes other than this one whose command line holds the token.
pub fn survivors(token: &str) -> Vec<i32> {
    let me = std::process::id().cast_signed();
    std::fs::read_dir("/proc")
        .expect("/proc")
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok())
        .filter(|pid| *pid != me)
        .filter(|pid| {
            std::fs::read(format!("/proc/{pid}/cmdline"))
                .is_ok_and(|line| line.windows(token.len()).any(|part| part == token.as_bytes()))
        })
        .collect()
}

/// Waits until there are no survivors.
pub fn gone_soon(token: &str, patience: Duration) -> Vec<i32> {
    let until = Instant::now() + patience;
    loop {
        let left = survivors(token);
        if left.is_empty() || Instant::now() > until {
            return left;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Children of this process, zombies included.
pub fn children() -> usize {
    let me = std::process::id().to_string();
    std::fs::read_dir("/proc")
        .expect("/proc")
        .filter_map(|entry| std::fs::read_to_string(entry.ok()?.path().join("stat")).ok())
        .filter(|stat| {
            stat.rsplit_once(')')
                .and_then(|(_, rest)| rest.split_ascii_whitespace().nth(1))
                == Some(me.as_str())
        })
        .count()
}

pub fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("/proc/self/fd").count()
}

/// An adversary's command under a tier.
pub fn adversary(setting: Setting, arguments: &[&str]) -> Spec {
    let program = programs::adversary().into_os_string();
    let arguments = arguments.iter().map(std::ffi::OsString::from);
    let mut spec = Spec::new(std::iter::once(program).chain(arguments), "/");
    spec.tree = Tree::required(setting.tier);
    spec
}

/// A shell line under a tier.
pub fn shell(setting: Setting, line: &str) -> Spec {
    let mut spec = Spec::shell(line, "/");
    spec.tree = Tree::required(setting.tier);
    spec
}

/// What one command came to, with what it printed.
#[derive(Debug)]
pub struct Ran {
    pub outcome: Outcome,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    pub wall: Duration,
}

pub fn run(spec: Spec) -> Ran {
    run_and(spec, |_| {})
}

/// Runs a command until it has printed something, then ends it as a timeout would.
pub fn run_until_up(spec: Spec) -> Ran {
    run_and(spec, |canceller| canceller.cancel(EndReason::Timeout))
}

fn run_and(spec: Spec, up: impl Fn(&Canceller)) -> Ran {
    let processes = Processes::new(programs::supervisor());
    let begun = Instant::now();
    let running = processes.spawn(spec).expect("spawn");
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let canceller = running.canceller();
    let mut tell = |_: Stream, _: &[u8]| up(&canceller);
    let outcome = running.drive(Io {
        on_output: Some(&mut tell),
        ..Io::new(&mut stdout, &mut stderr)
    });
    let wall = begun.elapsed();
    if outcome.cleanup.is_clean() {
        let counts = processes.counts();
        assert_eq!(
            (counts.started, counts.reaped, counts.unproven, counts.live),
            (1, 1, 0, 0),
            "{outcome:?}"
        );
    }
    assert_eq!(children(), 0, "a child of the host is left: {outcome:?}");
    Ran {
        outcome,
        stdout,
        stderr,
        wall,
    }
}

/// A directory for markers and leases of one test.
pub fn store() -> tempfile::TempDir {
    tempfile::tempdir().expect("tempdir")
}

pub fn markers(dir: &Path) -> Vec<PathBuf> {
    let mut found: Vec<_> = std::fs::read_dir(dir)
        .expect("store")
        .map(|entry| entry.expect("entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "run"))
        .collect();
    found.sort();
    found
}

/// How often a racy scenario is repeated: once by default, `ZEROSTACK_SOAK` times in a soak.
pub fn rounds() -> u32 {
    std::env::var("ZEROSTACK_SOAK")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(1)
}
