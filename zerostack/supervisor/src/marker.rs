//! The marker of a live tree: what a supervisor leaves in the store's directory so that nobody takes the workspace
//! while its tree may still live, even when the supervisor itself was killed.
//!
//! A marker is a small text file, written (by rename) before the command's program runs and removed when the tree is
//! proven empty. [`blocking`] is for whoever wants the lease: it drops markers whose tree is proven empty and returns
//! the others; [`LiveTree::kill`] ends what can be identified.
//!
//! How emptiness is proven depends on the tier, best first:
//! - `cgroup`: the kernel says the cgroup is not populated (or it is gone). Exact.
//! - `pid_namespace`: the first process of the namespace is gone; the kernel ends all others before it. Exact.
//! - `rlimits`: guard, supervisor and root are gone, and no process carries the run's environment variable, its
//!   session, or descends from one that does. A daemon that changed its session *and* cleared its environment, whose guard
//!   and supervisor were killed together, cannot be told from an unrelated process: this tier does not see it.
//! - any tier: the machine was started again since.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::process::Signal;

use crate::cgroup;
use crate::identity::{self, Identity};
use crate::protocol::TreeTier;

/// Environment variable every process of a run inherits; its value tells the run (best effort: it can be cleared).
pub const RUN_VARIABLE: &str = "ZEROSTACK_RUN";

const FIRST_LINE: &str = "zerostack-run 1";
const SUFFIX: &str = ".run";

/// What is known of a tree, as its marker says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marker {
    /// Boot in which the tree was started.
    pub boot: String,
    /// The guard: the process the host started.
    pub guard: Identity,
    /// The supervisor proper.
    pub supervisor: Identity,
    /// The root process of the command.
    pub root: Identity,
    /// First process of the PID namespace, when there is one.
    pub init: Option<Identity>,
    /// Directories of the cgroups of the tree.
    pub cgroups: Vec<PathBuf>,
    /// What held the tree together.
    pub tree: TreeTier,
    /// Value of [`RUN_VARIABLE`] in the tree.
    pub run: String,
}

impl Marker {
    /// The name of the marker of a guard, the same for writer and remover.
    pub(crate) fn file(dir: &Path, guard: Identity) -> PathBuf {
        dir.join(format!("{}-{}{SUFFIX}", guard.pid, guard.start))
    }

    /// Writes the marker under its final name; atomic against readers and against the death of the writer.
    pub(crate) fn write(&self, dir: &Path) -> io::Result<()> {
        let file = Self::file(dir, self.guard);
        let young = file.with_extension("new");
        fs::write(&young, self.text())?;
        fs::rename(&young, &file)
    }

    fn text(&self) -> Vec<u8> {
        use std::os::unix::ffi::OsStrExt;
        let mut text = format!("{FIRST_LINE}\nboot {}\nrun {}\n", self.boot, self.run).into_bytes();
        let mut line = |name: &str, who: Identity| {
            text.extend_from_slice(format!("{name} {} {}\n", who.pid, who.start).as_bytes());
        };
        line("guard", self.guard);
        line("supervisor", self.supervisor);
        line("root", self.root);
        if let Some(init) = self.init {
            line("init", init);
        }
        for cgroup in &self.cgroups {
            text.extend_from_slice(b"cgroup ");
            text.extend(escape(cgroup.as_os_str().as_bytes()));
            text.push(b'\n');
        }
        let tree = match self.tree {
            TreeTier::Cgroup => "cgroup",
            TreeTier::PidNamespace => "pid_namespace",
            TreeTier::Rlimits => "rlimits",
        };
        text.extend_from_slice(format!("tree {tree}\nend\n").as_bytes());
        text
    }

    fn parse(text: &[u8]) -> Option<Self> {
        use std::os::unix::ffi::OsStringExt;
        let mut lines = text.split(|byte| *byte == b'\n');
        if lines.next()? != FIRST_LINE.as_bytes() {
            return None;
        }
        let (mut boot, mut run, mut tree, mut init, mut cgroups) = (None, None, None, None, Vec::new());
        let (mut guard, mut supervisor, mut root, mut whole) = (None, None, None, false);
        for line in lines {
            let space = line.iter().position(|byte| *byte == b' ').unwrap_or(line.len());
            let (name, value) = (&line[..space], line.get(space + 1..).unwrap_or_default());
            let word = || std::str::from_utf8(value).ok().map(str::to_owned);
            let who = || {
                let text = std::str::from_utf8(value).ok()?;
                let (pid, start) = text.split_once(' ')?;
                Some(Identity {
                    pid: pid.parse().ok()?,
                    start: start.parse().ok()?,
                })
            };
            match name {
                b"boot" => boot = word(),
                b"run" => run = word(),
                b"guard" => guard = who(),
                b"supervisor" => supervisor = who(),
                b"root" => root = who(),
                b"init" => init = Some(who()?),
                b"cgroup" => cgroups.push(PathBuf::from(std::ffi::OsString::from_vec(unescape(value)))),
                b"tree" => {
                    tree = match value {
                        b"cgroup" => Some(TreeTier::Cgroup),
                        b"pid_namespace" => Some(TreeTier::PidNamespace),
                        b"rlimits" => Some(TreeTier::Rlimits),
                        _ => None,
                    }
                }
                b"end" => whole = true,
                _ => {}
            }
        }
        whole.then_some(())?;
        Some(Self {
            boot: boot?,
            guard: guard?,
            supervisor: supervisor?,
            root: root?,
            init,
            cgroups,
            tree: tree?,
            run: run?,
        })
    }

    /// Whether no process of the tree, nor its supervisor, can be found any more, as well as the tier lets one know.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        if self.boot != identity::boot_id() {
            return true;
        }
        if self.supervisor.is_alive() || self.guard.is_alive() || self.root.is_alive() {
            return false;
        }
        match self.tree {
            TreeTier::Cgroup => !self.cgroups.iter().any(|dir| cgroup::is_populated(dir)),
            // Init becomes a zombie only after the kernel has ended and reaped all others.
            TreeTier::PidNamespace => !self.init.is_some_and(Identity::is_alive),
            TreeTier::Rlimits => self.members().is_empty(),
        }
    }

    /// The processes that can be identified as members of the tree, by what they inherited.
    #[must_use]
    pub fn members(&self) -> Vec<Identity> {
        let cookie = format!("{RUN_VARIABLE}={}", self.run);
        let all = identity::all();
        let mut found: Vec<Identity> = all
            .iter()
            .filter(|stat| !stat.is_dead() && stat.identity != self.supervisor && stat.identity != self.guard)
            // A member is never older than the root.
            .filter(|stat| stat.identity.start >= self.root.start)
            .filter(|stat| {
                stat.identity == self.root
                    || stat.session == self.root.pid
                    || fs::read(format!("/proc/{}/environ", stat.identity.pid))
                        .is_ok_and(|env| env.split(|byte| *byte == 0).any(|entry| entry == cookie.as_bytes()))
            })
            .map(|stat| stat.identity)
            .collect();
        let mut next = 0;
        while let Some(parent) = found.get(next).copied() {
            next += 1;
            let children: Vec<Identity> = all
                .iter()
                .filter(|stat| stat.parent == parent.pid && !stat.is_dead() && !found.contains(&stat.identity))
                .map(|stat| stat.identity)
                .collect();
            found.extend(children);
        }
        found
    }

    /// Kills what can be identified of the tree; call [`Self::is_empty`] afterwards.
    pub fn kill(&self) {
        if self.boot != identity::boot_id() {
            return;
        }
        match self.tree {
            TreeTier::Cgroup => {
                for dir in &self.cgroups {
                    cgroup::kill(dir);
                }
            }
            TreeTier::PidNamespace => {
                if let Some(init) = self.init {
                    init.signal(Signal::KILL);
                }
            }
            TreeTier::Rlimits => {
                for member in self.members() {
                    member.signal(Signal::KILL);
                }
            }
        }
    }
}

/// A tree that may still live, or a marker nobody can read.
#[derive(Debug)]
pub struct LiveTree {
    /// The marker's file.
    pub file: PathBuf,
    /// What it says; `None` when it is damaged, and then it blocks until a person removes it or the machine restarts.
    pub marker: Option<Marker>,
}

impl LiveTree {
    /// Kills what can be identified, but only when the tree's own guard and supervisor are gone (they do it better).
    pub fn kill(&self) {
        if let Some(marker) = &self.marker
            && !marker.guard.is_alive()
            && !marker.supervisor.is_alive()
        {
            marker.kill();
        }
    }
}

/// Returns the trees that may still live according to the markers in `dir`; markers of empty trees are removed.
///
/// A directory that does not exist holds no marker.
///
/// # Errors
/// When the directory cannot be read: then nothing is known, and the lease must not be taken.
pub fn blocking(dir: &Path) -> io::Result<Vec<LiveTree>> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut live = Vec::new();
    for entry in entries {
        let file = entry?.path();
        if !file.to_string_lossy().ends_with(SUFFIX) {
            continue;
        }
        let text = match fs::read(&file) {
            Ok(text) => text,
            // Removed by its supervisor meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        let marker = Marker::parse(&text);
        let empty = match &marker {
            Some(marker) => marker.is_empty(),
            None => written_before_this_boot(&file),
        };
        if empty {
            if let Some(marker) = &marker {
                for dir in &marker.cgroups {
                    cgroup::remove(dir);
                }
            }
            match fs::remove_file(&file) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        } else {
            live.push(LiveTree { file, marker });
        }
    }
    Ok(live)
}

/// Keeps a path on one line.
fn escape(bytes: &[u8]) -> Vec<u8> {
    let escaped = bytes.iter().flat_map(|byte| match byte {
        b'\n' => &b"\\n"[..],
        b'\\' => b"\\\\",
        other => std::slice::from_ref(other),
    });
    escaped.copied().collect()
}

fn unescape(bytes: &[u8]) -> Vec<u8> {
    let mut rest = bytes.iter();
    let mut plain = Vec::with_capacity(bytes.len());
    while let Some(byte) = rest.next() {
        plain.push(match byte {
            b'\\' if rest.next() == Some(&b'n') => b'\n',
            other => *other,
        });
    }
    plain
}

/// Removes the marker of a tree proven empty, with its cgroups.
pub(crate) fn forget(file: &Path) {
    if let Some(marker) = fs::read(file).ok().and_then(|text| Marker::parse(&text)) {
        for dir in &marker.cgroups {
            cgroup::remove(dir);
        }
    }
    // Whoever wants the lease removes what is left: it finds the tree empty.
    let _ = fs::remove_file(file);
}

/// A marker torn by a power failure speaks of a boot that is over.
fn written_before_this_boot(file: &Path) -> bool {
    let boot = fs::read_to_string("/proc/stat").ok().and_then(|text| {
        text.lines()
            .find_map(|line| line.strip_prefix("btime ")?.trim().parse::<u64>().ok())
    });
    let written = fs::metadata(file)
        .and_then(|data| data.modified())
        .ok()
        .and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
    matches!((boot, written), (Some(boot), Some(written)) if written.as_secs() < boot)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marker(root: Identity) -> Marker {
        let gone = Identity {
            pid: 1,
            start: 1_234_567_890_123,
        };
        Marker {
            boot: identity::boot_id(),
            guard: gone,
            supervisor: gone,
            root,
            init: None,
            cgroups: vec![PathBuf::from("/sys/fs/cgroup/with space\u{e9}")],
            tree: TreeTier::Rlimits,
            run: format!("test-{}", std::process::id()),
        }
    }

    #[test]
    fn text_round_trips_and_a_torn_marker_is_unreadable() {
        let mut whole = marker(Identity { pid: 5, start: 6 });
        whole.init = Some(Identity { pid: 8, start: 9 });
        let text = whole.text();
        assert_eq!(Marker::parse(&text), Some(whole));
        for cut in 0..text.len() - 1 {
            assert_eq!(Marker::parse(&text[..cut]), None, "cut at {cut}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_marker_round_trips(
            numbers in proptest::array::uniform8(0_i32..i32::MAX),
            start in 0_u64..,
            has_init: bool,
            paths in proptest::collection::vec(proptest::collection::vec(1_u8.., 0..40), 0..3),
            tier in 0..3_usize,
        ) {
            use std::os::unix::ffi::OsStringExt;
            let who = |at: usize| Identity { pid: numbers[at], start: start.wrapping_add(at as u64) };
            let whole = Marker {
                boot: format!("boot-{}", numbers[0]),
                guard: who(1),
                supervisor: who(2),
                root: who(3),
                init: has_init.then(|| who(4)),
                cgroups: paths.into_iter().map(|path| std::ffi::OsString::from_vec(path).into()).collect(),
                tree: [TreeTier::Cgroup, TreeTier::PidNamespace, TreeTier::Rlimits][tier],
                run: format!("{:x}-{:x}", numbers[5], start),
            };
            proptest::prop_assert_eq!(Marker::parse(&whole.text()), Some(whole));
        }

        #[test]
        fn rubbish_never_panics(text in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..300)) {
            let mut first = FIRST_LINE.as_bytes().to_vec();
            first.push(b'\n');
            first.extend(&text);
            let _ = (Marker::parse(&text), Marker::parse(&first));
        }
    }

    #[test]
    fn a_live_root_blocks_until_it_is_gone() {
        let dir = tempfile::tempdir().expect("tempdir");
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("spawn");
        let root = Identity::of(child.id().cast_signed()).expect("identity");
        marker(root).write(dir.path()).expect("write");
        let live = blocking(dir.path()).expect("read");
        assert_eq!(live.len(), 1);
        live[0].kill();
        child.wait().expect("wait");
        assert!(blocking(dir.path()).expect("read").is_empty());
        assert_eq!(
            fs::read_dir(dir.path()).expect("dir").count(),
            0,
            "the marker of an empty tree is removed"
        );
    }

    #[test]
    fn a_descendant_that_only_kept_the_variable_blocks() {
        let dir = tempfile::tempdir().expect("tempdir");
        let marker = marker(Identity { pid: 1, start: 0 });
        marker.write(dir.path()).expect("write");
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .env(RUN_VARIABLE, &marker.run)
            .spawn()
            .expect("spawn");
        // Between fork and exec the child still shows this process's environment.
        while marker.members().is_empty() {
            std::thread::yield_now();
        }
        assert_eq!(blocking(dir.path()).expect("read").len(), 1);
        child.kill().expect("kill");
        child.wait().expect("wait");
        assert!(blocking(dir.path()).expect("read").is_empty());
    }

    #[test]
    fn another_boot_or_rubbish() {
        let dir = tempfile::tempdir().expect("tempdir");
        let mut old = marker(Identity::current().expect("identity"));
        old.boot = "another".into();
        old.write(dir.path()).expect("write");
        assert!(
            blocking(dir.path()).expect("read").is_empty(),
            "another boot's tree is gone"
        );
        fs::write(dir.path().join("1-1.run"), "rubbish").expect("write");
        assert_eq!(
            blocking(dir.path()).expect("read").len(),
            1,
            "a damaged marker of this boot blocks"
        );
        assert!(blocking(&dir.path().join("absent")).expect("absent").is_empty());
    }
}
