//! Cgroups: making, filling, killing and removing the one of a tree.
//!
//! Owns only directories it made itself, directly beneath the cgroup the host runs in: a command stays under whatever
//! limits its host is under. Killing needs cgroup v2 (`cgroup.kill`, Linux 5.14). Tasks are counted by the `pids` controller
//! of v2 where the host's cgroup hands it down, or of v1 where a machine mounts both; without either the supervisor counts.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

/// What a process writes to a cgroup's file to move itself.
pub(crate) const SELF: &[u8] = b"0";

/// The cgroups of one tree.
#[derive(Debug)]
pub(crate) struct Cgroups {
    /// Directory in the v2 hierarchy.
    unified: PathBuf,
    /// Directory in the v1 `pids` hierarchy, where v2 does not count.
    pids: Option<PathBuf>,
    /// Whether the kernel enforces the number of tasks.
    pub(crate) counted: bool,
}

impl Cgroups {
    /// Makes the cgroup of a tree; `name` must be unique on this machine.
    ///
    /// # Errors
    /// When there is no writable cgroup v2 hierarchy with `cgroup.kill`: the tier is not to be had here.
    pub(crate) fn create(name: &str, tasks: u32) -> io::Result<Self> {
        let places = Places::find()?;
        let unified = places.unified?.join(name);
        fs::create_dir(&unified)?;
        let mut made = Self {
            unified,
            pids: None,
            counted: false,
        };
        if !made.unified.join("cgroup.kill").exists() {
            made.remove();
            return Err(missing("this kernel has no cgroup.kill"));
        }
        made.counted = fs::write(made.unified.join("pids.max"), tasks.to_string()).is_ok();
        if !made.counted
            && let Some(dir) = places.pids.map(|dir| dir.join(name))
            && fs::create_dir(&dir).is_ok()
        {
            made.counted = fs::write(dir.join("pids.max"), tasks.to_string()).is_ok();
            made.pids = Some(dir);
        }
        Ok(made)
    }

    /// The directory, for a child to be born in it.
    pub(crate) fn open(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(rustix::fs::open(&self.unified, flags, Mode::empty())?)
    }

    /// Moves a process in; its later children follow. Slow, and only for kernels that bear no child in it.
    pub(crate) fn add(&self, pid: i32) -> io::Result<()> {
        fs::write(self.unified.join("cgroup.procs"), pid.to_string())
    }

    /// Where a process of one thread has itself counted by v1, by writing [`SELF`]: that needs no wait, as moving another
    /// one would. None where v2 counts.
    pub(crate) fn counter(&self) -> io::Result<Option<OwnedFd>> {
        let Some(dir) = &self.pids else { return Ok(None) };
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        Ok(Some(rustix::fs::open(dir.join("tasks"), flags, Mode::empty())?))
    }

    /// The directories made.
    pub(crate) fn dirs(&self) -> impl Iterator<Item = &PathBuf> {
        [&self.unified].into_iter().chain(&self.pids)
    }

    /// Kills every process in it, atomically against forks.
    pub(crate) fn kill(&self) {
        kill(&self.unified);
    }

    /// Whether a process is in it.
    pub(crate) fn is_populated(&self) -> bool {
        is_populated(&self.unified)
    }

    /// How many times the kernel refused a task (0 without the controller).
    pub(crate) fn refusals(&self) -> u64 {
        let dir = self.pids.as_ref().unwrap_or(&self.unified);
        fs::read_to_string(dir.join("pids.events"))
            .ok()
            .and_then(|text| {
                text.lines()
                    .find_map(|line| line.strip_prefix("max ")?.trim().parse().ok())
            })
            .unwrap_or(0)
    }

    /// How many tasks are in it.
    pub(crate) fn tasks(&self) -> usize {
        fs::read(self.unified.join("cgroup.threads"))
            .map(|text| text.iter().filter(|byte| **byte == b'\n').count())
            .unwrap_or(0)
    }

    /// Removes the directories; they must be empty.
    pub(crate) fn remove(&self) {
        self.dirs().for_each(|dir| remove(dir));
    }
}

/// Where the cgroups of trees are made.
struct Places {
    unified: io::Result<PathBuf>,
    pids: Option<PathBuf>,
}

impl Places {
    fn find() -> io::Result<Self> {
        let mounts = fs::read("/proc/self/mountinfo")?;
        let own = fs::read("/proc/self/cgroup")?;
        let unified = mount_of(&mounts, "cgroup2", None)
            .zip(membership(&own, b""))
            .map(|(root, place)| beneath(&root, &place))
            .ok_or_else(|| missing("no cgroup v2 hierarchy is mounted"));
        let pids = mount_of(&mounts, "cgroup", Some("pids"))
            .zip(membership(&own, b"pids"))
            .map(|(root, place)| beneath(&root, &place));
        Ok(Self { unified, pids })
    }
}

/// The name of the cgroups of a supervisor's tree.
pub(crate) fn name_of(supervisor: crate::identity::Identity) -> String {
    format!("zero-{}-{}", supervisor.pid, supervisor.start)
}

/// Removes the empty cgroups a dead supervisor left, if it made any.
pub(crate) fn remove_named(name: &str) {
    if let Ok(places) = Places::find() {
        for dir in [places.unified.ok(), places.pids].into_iter().flatten() {
            remove(&dir.join(name));
        }
    }
}

/// Kills every process in a cgroup and beneath it.
pub(crate) fn kill(dir: &Path) {
    // Fails for a v1 directory, which has no such file, and for one that is gone: nothing to kill there.
    let _ = fs::OpenOptions::new()
        .write(true)
        .open(dir.join("cgroup.kill"))
        .and_then(|mut file| {
            use io::Write;
            file.write_all(b"1")
        });
}

/// Whether a process is in a cgroup or beneath it; a directory that is gone, or is of v1, is not populated.
pub(crate) fn is_populated(dir: &Path) -> bool {
    fs::read_to_string(dir.join("cgroup.events")).is_ok_and(|text| text.lines().any(|line| line == "populated 1"))
}

/// Removes an empty cgroup with the empty ones beneath it.
pub(crate) fn remove(dir: &Path) {
    if let Ok(entries) = fs::read_dir(dir) {
        for entry in entries.flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                remove(&entry.path());
            }
        }
    }
    // What is left over (a process still in it) is retried by whoever reads the marker.
    let _ = fs::remove_dir(dir);
}

fn missing(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, why)
}

fn beneath(root: &Path, place: &Path) -> PathBuf {
    root.join(place.strip_prefix("/").unwrap_or(place))
}

/// The path of a process in a hierarchy, from the text of `/proc/PID/cgroup`; an empty controller means v2.
fn membership(text: &[u8], controller: &[u8]) -> Option<PathBuf> {
    text.split(|byte| *byte == b'\n').find_map(|line| {
        let mut fields = line.splitn(3, |byte| *byte == b':');
        let (_, names, path) = (fields.next()?, fields.next()?, fields.next()?);
        names
            .split(|byte| *byte == b',')
            .any(|name| name == controller)
            .then(|| PathBuf::from(std::ffi::OsStr::from_bytes(path)))
    })
}

/// The first mount point of a type (and super option) in the text of `/proc/self/mountinfo`, whose root is `/`.
fn mount_of(text: &[u8], kind: &str, option: Option<&str>) -> Option<PathBuf> {
    text.split(|byte| *byte == b'\n').find_map(|line| {
        let line = String::from_utf8(line.to_vec()).ok()?;
        // proc(5): id parent major:minor root mount-point options [optional…] - type source super-options
        let (before, after) = line.split_once(" - ")?;
        let (mut before, mut after) = (before.split(' ').skip(3), after.split(' '));
        let (root, point) = (before.next()?, before.next()?);
        let (is, options) = (after.next()?, after.nth(1)?);
        let right = is == kind && root == "/" && option.is_none_or(|option| options.split(',').any(|is| is == option));
        right.then(|| unescape(point))
    })
}

/// Mount points have blanks as octal escapes.
fn unescape(text: &str) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let octal = tail
            .get(..3)
            .and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        match (first, octal) {
            (b'\\', Some(byte)) => {
                bytes.push(byte);
                rest = &tail[3..];
            }
            _ => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    PathBuf::from(std::ffi::OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &[u8] = b"25 1 0:22 / /proc rw - proc proc rw\n\
        30 28 0:26 / /sys/fs/cgroup/pids rw,relatime shared:9 - cgroup cgroup rw,pids\n\
        31 28 0:27 /sub /mnt/part rw - cgroup2 cgroup2 rw\n\
        32 28 0:27 / /sys/fs/cg\\040two rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";

    #[test]
    fn hierarchies_are_found_by_type_and_controller() {
        assert_eq!(mount_of(MOUNTS, "cgroup2", None), Some(PathBuf::from("/sys/fs/cg two")));
        assert_eq!(
            mount_of(MOUNTS, "cgroup", Some("pids")),
            Some(PathBuf::from("/sys/fs/cgroup/pids"))
        );
        assert_eq!(mount_of(MOUNTS, "cgroup", Some("freezer")), None);
    }

    #[test]
    fn membership_is_by_controller_and_empty_for_v2() {
        let text = b"8:pids,cpu:/a\n4:memory:/x:y\n0::/user.slice/z\n";
        assert_eq!(membership(text, b"pids"), Some(PathBuf::from("/a")));
        assert_eq!(membership(text, b"memory"), Some(PathBuf::from("/x:y")));
        assert_eq!(membership(text, b""), Some(PathBuf::from("/user.slice/z")));
        assert_eq!(membership(text, b"io"), None);
    }
}
