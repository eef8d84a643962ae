//! The workspace lease: who may change a workspace, numbered by an epoch that only grows.
//!
//! It is an flock on one file of the store's directory. Every acquisition has an open file description of its own,
//! close-on-exec, so two cells of one process exclude each other as two processes do. It is released by closing, never
//! by unlocking: the descriptor is also handed to the supervisors of the holder's commands, and the lock stays until the
//! last of them has emptied its tree, even when the host is dead.
//!
//! Each acquisition writes its epoch (one more than the greater of the file's and the caller's floor) and its holder before
//! it is granted. That survives the death of every process; a loss of power may lose it, and with it every holder: the
//! floor, the greatest epoch under which anything was made durable, still makes the next one greater than all that count. Markers of trees whose supervisors died (see [`crate::marker`]) block it too.

use std::fmt;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::identity::{self, Identity, Stat};
use crate::marker;

/// Environment variable of commands: the leases (`device:inode:epoch`, separated by commas) they run under.
pub const VARIABLE: &str = "ZEROSTACK_LEASE";

/// Name of the file in the store's directory.
pub const FILE: &str = "workspace.lease";

/// Size of the one record, in bytes: within a sector, so that a write of it is not torn.
const RECORD: usize = 512;

const FIRST_LINE: &str = "zerostack-lease 1";

/// Who holds a lease, as its file says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Holder {
    /// The host's process.
    pub process: Identity,
    /// What it does: the cell's id. At most 200 bytes, of one line.
    pub cell: String,
    /// Epoch of the acquisition.
    pub epoch: u64,
    /// Whether the process lives; if not, its commands are still being ended.
    pub alive: bool,
}

/// Why a lease was not granted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Busy {
    /// The holder; `None` when the lock is free but trees of a dead holder may live, or the file says nothing.
    pub holder: Option<Holder>,
    /// The caller itself was started by a command of the holder: waiting would be for ever.
    pub nested: bool,
    /// Marker files of trees that may still live though nobody owns them.
    pub trees: Vec<PathBuf>,
}

impl fmt::Display for Busy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.holder {
            Some(holder) => {
                write!(
                    formatter,
                    "process {} (cell {}, epoch {})",
                    holder.process.pid, holder.cell, holder.epoch
                )?;
                if !holder.alive {
                    formatter.write_str(", which has died; its commands are being ended")?;
                }
                if self.nested {
                    formatter.write_str(", which started this process: commands cannot wait for their own cell")?;
                }
                Ok(())
            }
            None if self.trees.is_empty() => formatter.write_str("an unknown holder"),
            None => {
                formatter.write_str("processes left by a killed supervisor (end them, then retry): ")?;
                let names: Vec<_> = self.trees.iter().map(|file| file.display().to_string()).collect();
                formatter.write_str(&names.join(", "))
            }
        }
    }
}

/// What a caller of [`acquire`] wants.
pub struct Request<'a> {
    /// The store's directory of this workspace; also the directory of its markers. Must exist.
    pub dir: &'a Path,
    /// Greatest epoch the journal knows.
    pub floor: u64,
    /// The cell's id, shown to others that wait.
    pub cell: &'a str,
    /// When to give up; `None` means to try once.
    pub deadline: Option<Instant>,
    /// Asked every few milliseconds whether to give up.
    pub cancelled: Option<&'a dyn Fn() -> bool>,
}

/// A granted lease. Dropping it closes this holder's descriptor; the supervisors' copies keep the lock.
#[derive(Debug)]
pub struct Lease {
    fd: OwnedFd,
    file: PathBuf,
    device: u64,
    inode: u64,
    epoch: u64,
}

impl Lease {
    /// The fencing token: greater than that of every earlier acquisition.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Whether the file at the lease's path is still the one that is locked; when not, somebody removed or replaced it
    /// and exclusion is lost: publish nothing.
    #[must_use]
    pub fn is_intact(&self) -> bool {
        fs::metadata(&self.file).is_ok_and(|data| data.dev() == self.device && data.ino() == self.inode)
    }

    /// A name of the locked file that no other file has while it exists.
    fn id(&self) -> String {
        format!("{}:{}", self.device, self.inode)
    }
}

impl AsFd for Lease {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Takes the lease, waiting until the deadline.
///
/// Trees left by dead supervisors are killed on the way, as far as they can be identified.
///
/// # Errors
/// [`Error::Busy`] with the holder when the deadline passes, and at once when the caller was started by a command of the
/// holder; [`Error::Cancelled`]; [`Error::Io`].
pub fn acquire(request: &Request<'_>) -> Result<Lease, Error> {
    let path = request.dir.join(FILE);
    let failed = |what: &str| Error::io(format!("{what} {}", path.display()));
    let mut pause = Duration::from_millis(1);
    let mut file = None;
    loop {
        let fd = match file.take() {
            Some(fd) => fd,
            None => {
                let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
                let fd =
                    open(&path, flags, Mode::RUSR | Mode::WUSR).map_err(|error| failed("opening")(error.into()))?;
                fs::File::from(fd)
            }
        };
        let locked = match flock(&fd, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => true,
            Err(rustix::io::Errno::WOULDBLOCK) => false,
            Err(rustix::io::Errno::INTR) => {
                file = Some(fd);
                continue;
            }
            Err(error) => return Err(failed("locking")(error.into())),
        };
        let own = fd.metadata().map_err(failed("looking at"))?;
        let same = fs::metadata(&path).is_ok_and(|data| data.dev() == own.dev() && data.ino() == own.ino());
        if !same {
            // Replaced between opening and locking: what is locked is nobody's lease.
            continue;
        }
        let record = Record::read(&fd).map_err(failed("reading"))?;
        let busy = if locked {
            let trees = marker::blocking(request.dir).map_err(Error::io("reading the markers of live trees"))?;
            if trees.is_empty() {
                return grant(request, fd, path, (own.dev(), own.ino()), record);
            }
            trees.iter().for_each(marker::LiveTree::kill);
            Busy {
                holder: None,
                nested: false,
                trees: trees.into_iter().map(|tree| tree.file).collect(),
            }
        } else {
            let nested = is_nested(request.dir, &own, record.as_ref());
            Busy {
                holder: record.map(Record::into_holder),
                nested,
                trees: Vec::new(),
            }
        };
        let now = Instant::now();
        if busy.nested || request.deadline.is_none_or(|deadline| now >= deadline) {
            return Err(Error::Busy(Box::new(busy)));
        }
        if request.cancelled.is_some_and(|cancelled| cancelled()) {
            return Err(Error::Cancelled);
        }
        let left = request
            .deadline
            .map_or(Duration::ZERO, |deadline| deadline.saturating_duration_since(now));
        std::thread::sleep(pause.min(left));
        pause = (pause * 2).min(Duration::from_millis(20));
        // Kept when locked only: the next in line, once the trees are gone.
        file = Some(fd);
    }
}

/// The holder as the lease's file says; `None` when nobody holds it. Does not disturb the holder.
///
/// # Errors
/// [`Error::Io`].
pub fn holder(dir: &Path) -> Result<Option<Holder>, Error> {
    let path = dir.join(FILE);
    let failed = |what: &str| Error::io(format!("{what} {}", path.display()));
    let fd = match open(
        &path,
        OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW,
        Mode::empty(),
    ) {
        Ok(fd) => fs::File::from(fd),
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        Err(error) => return Err(failed("opening")(error.into())),
    };
    // A shared try: free or not, this description is closed at once.
    match flock(&fd, FlockOperation::NonBlockingLockShared) {
        Ok(()) => Ok(None),
        Err(rustix::io::Errno::WOULDBLOCK) => {
            Ok(Record::read(&fd).map_err(failed("reading"))?.map(Record::into_holder))
        }
        Err(error) => Err(failed("locking")(error.into())),
    }
}

fn grant(
    request: &Request<'_>,
    file: fs::File,
    path: PathBuf,
    (device, inode): (u64, u64),
    before: Option<Record>,
) -> Result<Lease, Error> {
    let epoch = before.map_or(0, |record| record.epoch).max(request.floor) + 1;
    let me = Identity::current().map_err(Error::io("reading /proc/self"))?;
    let record = Record {
        epoch,
        process: me,
        boot: identity::boot_id(),
        cell: one_line(request.cell),
    };
    let failed = || Error::io(format!("writing {}", path.display()));
    file.write_all_at(&record.bytes(), 0).map_err(failed())?;
    Ok(Lease {
        fd: file.into(),
        file: path,
        device,
        inode,
        epoch,
    })
}

/// The value of [`VARIABLE`] for commands under this lease: that of this process, should it be a command itself, and
/// this lease.
pub(crate) fn variable(lease: &Lease) -> String {
    let own = format!("{}:{}", lease.id(), lease.epoch);
    match std::env::var(VARIABLE) {
        Ok(outer) if !outer.is_empty() => format!("{outer},{own}"),
        _ => own,
    }
}

/// Whether this process was started by a command that runs under the lease: by the variable it inherited, or because an
/// ancestor is the root (or an owner) of a live tree. In a PID namespace the ancestors cannot be seen and a command that
/// cleared its environment is not recognised: it waits for its deadline, then gets `busy` all the same.
/// Whether this process was started by a command whose cell holds the lease of the store in `dir`: it would wait for itself.
#[must_use]
pub fn is_held_by_ancestor(dir: &Path) -> bool {
    let Ok(file) = fs::File::open(dir.join(FILE)) else {
        return false;
    };
    let (Ok(metadata), Ok(record)) = (file.metadata(), Record::read(&file)) else {
        return false;
    };
    // A shared try tells whether anybody holds it; this description is closed at once.
    let free = flock(&file, FlockOperation::NonBlockingLockShared).is_ok();
    !free && is_nested(dir, &metadata, record.as_ref())
}

fn is_nested(dir: &Path, file: &fs::Metadata, record: Option<&Record>) -> bool {
    let Some(record) = record else { return false };
    let own = format!("{}:{}:{}", file.dev(), file.ino(), record.epoch);
    if std::env::var(VARIABLE).is_ok_and(|value| value.split(',').any(|part| part == own)) {
        return true;
    }
    let trees = marker::blocking(dir).unwrap_or_default();
    let owners: Vec<Identity> = trees
        .iter()
        .filter_map(|tree| tree.marker.as_ref())
        .flat_map(|marker| [marker.root, marker.supervisor, marker.guard])
        .collect();
    let mut at = Stat::of(std::process::id().cast_signed());
    while let Some(stat) = at {
        at = Stat::of(stat.parent);
        if at.is_some_and(|parent| owners.contains(&parent.identity)) {
            return true;
        }
    }
    false
}

/// At most 200 bytes without control characters, so that the record stays readable line by line.
fn one_line(text: &str) -> String {
    let mut line: String = text.chars().filter(|character| !character.is_control()).collect();
    let cut = (0..=line.len().min(200))
        .rev()
        .find(|at| line.is_char_boundary(*at))
        .unwrap_or(0);
    line.truncate(cut);
    line
}

/// The content of the lease's file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Record {
    epoch: u64,
    process: Identity,
    boot: String,
    cell: String,
}

impl Record {
    fn bytes(&self) -> Vec<u8> {
        let Identity { pid, start } = self.process;
        let mut bytes = format!(
            "{FIRST_LINE}\nepoch {}\nprocess {pid} {start}\nboot {}\ncell {}\nend\n",
            self.epoch, self.boot, self.cell
        )
        .into_bytes();
        bytes.resize(RECORD, b' ');
        bytes
    }

    /// `None` for an empty or damaged file: the caller's floor counts alone then.
    fn read(file: &fs::File) -> io::Result<Option<Self>> {
        let mut bytes = vec![0; RECORD];
        let mut filled = 0;
        loop {
            match file.read_at(&mut bytes[filled..], filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(std::str::from_utf8(&bytes[..filled]).ok().and_then(Self::parse))
    }

    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        (lines.next()? == FIRST_LINE).then_some(())?;
        let epoch = lines.next()?.strip_prefix("epoch ")?.parse().ok()?;
        let (pid, start) = lines.next()?.strip_prefix("process ")?.split_once(' ')?;
        let process = Identity {
            pid: pid.parse().ok()?,
            start: start.parse().ok()?,
        };
        let boot = lines.next()?.strip_prefix("boot ")?.to_owned();
        let cell = lines.next()?.strip_prefix("cell ")?.to_owned();
        (lines.next()? == "end").then_some(Self {
            epoch,
            process,
            boot,
            cell,
        })
    }

    fn into_holder(self) -> Holder {
        let alive = self.boot == identity::boot_id() && self.process.is_alive();
        Holder {
            process: self.process,
            cell: self.cell,
            epoch: self.epoch,
            alive,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(dir: &Path) -> Request<'_> {
        Request {
            dir,
            floor: 0,
            cell: "cell-1",
            deadline: None,
            cancelled: None,
        }
    }

    #[test]
    fn epochs_grow_past_file_and_floor() {
        let dir = tempfile::tempdir().expect("tempdir");
        assert_eq!(acquire(&request(dir.path())).expect("first").epoch(), 1);
        assert_eq!(
            acquire(&Request {
                floor: 41,
                ..request(dir.path())
            })
            .expect("floor")
            .epoch(),
            42
        );
        assert_eq!(
            acquire(&Request {
                floor: 7,
                ..request(dir.path())
            })
            .expect("file")
            .epoch(),
            43
        );
        fs::write(dir.path().join(FILE), "damaged").expect("write");
        assert_eq!(
            acquire(&Request {
                floor: 43,
                ..request(dir.path())
            })
            .expect("damaged")
            .epoch(),
            44
        );
    }

    #[test]
    fn a_second_acquisition_of_the_same_process_is_busy_and_names_the_holder() {
        let dir = tempfile::tempdir().expect("tempdir");
        let lease = acquire(&request(dir.path())).expect("first");
        let Err(Error::Busy(busy)) = acquire(&request(dir.path())) else {
            panic!("must be busy")
        };
        let expected = Holder {
            process: Identity::current().expect("identity"),
            cell: "cell-1".into(),
            epoch: 1,
            alive: true,
        };
        assert_eq!(
            *busy,
            Busy {
                holder: Some(expected.clone()),
                nested: false,
                trees: Vec::new()
            }
        );
        assert_eq!(holder(dir.path()).expect("holder"), Some(expected));
        // A copy of the descriptor, as a supervisor has, keeps the lock beyond the holder.
        let copy = rustix::io::fcntl_dupfd_cloexec(&lease, 3).expect("dup");
        drop(lease);
        assert!(matches!(acquire(&request(dir.path())), Err(Error::Busy(_))));
        drop(copy);
        assert_eq!(holder(dir.path()).expect("holder"), None);
        assert_eq!(acquire(&request(dir.path())).expect("free").epoch(), 2);
    }

    #[test]
    fn waiting_ends_with_the_release_the_deadline_or_a_cancellation() {
        let dir = tempfile::tempdir().expect("tempdir");
        let lease = acquire(&request(dir.path())).expect("first");
        let soon = Some(Instant::now() + Duration::from_millis(30));
        assert!(matches!(
            acquire(&Request {
                deadline: soon,
                ..request(dir.path())
            }),
            Err(Error::Busy(_))
        ));
        let late = Some(Instant::now() + Duration::from_secs(60));
        let yes = || true;
        let cancelled = Request {
            deadline: late,
            cancelled: Some(&yes),
            ..request(dir.path())
        };
        assert!(matches!(acquire(&cancelled), Err(Error::Cancelled)));
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| {
                acquire(&Request {
                    deadline: late,
                    ..request(dir.path())
                })
            });
            std::thread::sleep(Duration::from_millis(20));
            drop(lease);
            assert_eq!(waiter.join().expect("thread").expect("granted").epoch(), 2);
        });
    }

    #[test]
    fn a_replaced_file_is_noticed() {
        let dir = tempfile::tempdir().expect("tempdir");
        let lease = acquire(&request(dir.path())).expect("first");
        assert!(lease.is_intact());
        fs::rename(dir.path().join(FILE), dir.path().join("other")).expect("rename");
        assert!(!lease.is_intact());
        fs::write(dir.path().join(FILE), "").expect("write");
        assert!(!lease.is_intact());
    }

    #[test]
    fn a_long_name_with_newlines_fits_the_record() {
        let cell = "é\n".repeat(400);
        let record = Record {
            epoch: u64::MAX,
            process: Identity {
                pid: i32::MAX,
                start: u64::MAX,
            },
            boot: "b".repeat(36),
            cell: one_line(&cell),
        };
        let bytes = record.bytes();
        assert_eq!(bytes.len(), RECORD);
        assert_eq!(Record::parse(std::str::from_utf8(&bytes).expect("utf-8")), Some(record));
    }
}
