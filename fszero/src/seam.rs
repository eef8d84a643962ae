//! The one seam: every mutating system call of the crate is a method of `Seam`, and of nothing else.
//!
//! A [`Gate`] sits in front of each call. It can record it, fail it (`ENOSPC`, `EIO`, `EMFILE`), run something between
//! two steps, or fail this call and every later one, which is how the death of the process looks from the disk. It sees
//! descriptors and single names, never paths, because no path is ever opened. Without a gate a call costs nothing more.
//!
//! [`mutating_calls_elsewhere`] is the check that nothing goes around the seam; conformance runs it on the sources.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::fs::{self, AtFlags, FlockOperation, Gid, Mode, OFlags, RenameFlags, Timestamps, Uid};

/// One mutating system call that is about to be made.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)] // the fields are the arguments of the calls that the variants name
pub enum Call<'a> {
    /// `openat(O_CREAT | O_EXCL)` of a new file.
    Create {
        dir: BorrowedFd<'a>,
        name: &'a [u8],
        mode: u32,
    },
    /// `openat(O_CREAT)` of a file that may be there: a lock.
    OpenLock { dir: BorrowedFd<'a>, name: &'a [u8] },
    /// `write` of all bytes at the file's position.
    Write { file: BorrowedFd<'a>, bytes: &'a [u8] },
    /// `ftruncate`.
    Truncate { file: BorrowedFd<'a>, length: u64 },
    /// `fsync` of a file.
    Sync { file: BorrowedFd<'a> },
    /// `fsync` of a directory.
    SyncDirectory { dir: BorrowedFd<'a> },
    /// `syncfs`: everything on the file system of a descriptor.
    SyncAll { on: BorrowedFd<'a> },
    /// `fchmod`.
    Chmod { file: BorrowedFd<'a>, mode: u32 },
    /// `fchown`.
    Chown { file: BorrowedFd<'a>, uid: u32, gid: u32 },
    /// `fsetxattr`.
    SetXattr {
        file: BorrowedFd<'a>,
        name: &'a [u8],
        value: &'a [u8],
    },
    /// `fremovexattr`.
    RemoveXattr { file: BorrowedFd<'a>, name: &'a [u8] },
    /// `utimensat`: the present time.
    Touch { dir: BorrowedFd<'a>, name: &'a [u8] },
    /// `mkdirat`.
    MakeDirectory {
        dir: BorrowedFd<'a>,
        name: &'a [u8],
        mode: u32,
    },
    /// `symlinkat`.
    Symlink {
        target: &'a [u8],
        dir: BorrowedFd<'a>,
        name: &'a [u8],
    },
    /// `linkat`: a second name of a file.
    Link {
        from: BorrowedFd<'a>,
        old: &'a [u8],
        to: BorrowedFd<'a>,
        new: &'a [u8],
    },
    /// `unlinkat`.
    Unlink { dir: BorrowedFd<'a>, name: &'a [u8] },
    /// `unlinkat(AT_REMOVEDIR)`.
    RemoveDirectory { dir: BorrowedFd<'a>, name: &'a [u8] },
    /// `mknodat` of a character device 0/0: how an overlay of the kernel says that a name is gone.
    Whiteout { dir: BorrowedFd<'a>, name: &'a [u8] },
    /// `renameat2`.
    Rename {
        from: BorrowedFd<'a>,
        old: &'a [u8],
        to: BorrowedFd<'a>,
        new: &'a [u8],
        how: Rename,
    },
}

/// How a rename treats what is at the new name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rename {
    /// It goes.
    Replace,
    /// It is an error.
    NoReplace,
    /// The two change places.
    Exchange,
}

/// What is to become durable: a file's bytes, or a directory's entries.
#[derive(Clone, Copy)]
pub(crate) enum Flush<'a> {
    File(BorrowedFd<'a>),
    Directory(BorrowedFd<'a>),
}

/// Threads that wait for the disk at the same time, at most.
const WAITERS: usize = 16;

/// Sits before every mutating call.
pub trait Gate: Send + Sync {
    /// Lets the call through, or makes it fail with an error instead of happening.
    ///
    /// # Errors
    /// Whatever error the call shall seem to have met.
    fn before(&self, call: &Call<'_>) -> io::Result<()>;

    /// Told after a call that succeeded; `made` is the file that [`Call::Create`] opened.
    fn after(&self, call: &Call<'_>, made: Option<BorrowedFd<'_>>) {
        let _ = (call, made);
    }
}

/// The mutating system calls.
#[derive(Clone, Default)]
pub(crate) struct Seam(Option<Arc<dyn Gate>>);

type Io<T> = io::Result<T>;

impl Seam {
    pub fn new(gate: Option<Arc<dyn Gate>>) -> Self {
        Self(gate)
    }

    fn pass<T>(&self, call: Call<'_>, run: impl FnOnce() -> rustix::io::Result<T>) -> Io<T> {
        if let Some(gate) = &self.0 {
            gate.before(&call)?;
        }
        let done = run()?;
        if let Some(gate) = &self.0 {
            gate.after(&call, None);
        }
        Ok(done)
    }

    /// Makes a file that must be new, for reading and writing.
    pub fn create(&self, dir: BorrowedFd<'_>, name: &[u8], mode: u32) -> Io<OwnedFd> {
        let call = Call::Create { dir, name, mode };
        if let Some(gate) = &self.0 {
            gate.before(&call)?;
        }
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let made = fs::openat(dir, name, flags, Mode::from_raw_mode(mode))?;
        if let Some(gate) = &self.0 {
            gate.after(&call, Some(made.as_fd()));
        }
        Ok(made)
    }

    /// Opens a lock file, making it if need be.
    pub fn open_lock(&self, dir: BorrowedFd<'_>, name: &[u8]) -> Io<OwnedFd> {
        let flags = OFlags::CREATE | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        self.pass(Call::OpenLock { dir, name }, || {
            fs::openat(dir, name, flags, Mode::from_raw_mode(0o600))
        })
    }

    /// Opens a file that is there for writing; changes nothing by itself, so it is no step.
    pub fn open_existing(&self, dir: BorrowedFd<'_>, name: &[u8]) -> Io<OwnedFd> {
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(fs::openat(dir, name, flags, Mode::empty())?)
    }

    /// Writes all bytes: one step.
    pub fn write(&self, file: BorrowedFd<'_>, bytes: &[u8]) -> Io<()> {
        self.pass(Call::Write { file, bytes }, || {
            let mut rest = bytes;
            while !rest.is_empty() {
                match rustix::io::write(file, rest) {
                    Ok(0) => return Err(rustix::io::Errno::IO),
                    Ok(n) => rest = &rest[n..],
                    Err(rustix::io::Errno::INTR) => {}
                    Err(e) => return Err(e),
                }
            }
            Ok(())
        })
    }

    pub fn truncate(&self, file: BorrowedFd<'_>, length: u64) -> Io<()> {
        self.pass(Call::Truncate { file, length }, || fs::ftruncate(file, length))
    }

    pub fn sync(&self, file: BorrowedFd<'_>) -> Io<()> {
        self.pass(Call::Sync { file }, || fs::fsync(file))
    }

    pub fn sync_directory(&self, dir: BorrowedFd<'_>) -> Io<()> {
        self.pass(Call::SyncDirectory { dir }, || fs::fsync(dir))
    }

    fn flush(&self, flush: Flush<'_>) -> Io<()> {
        match flush {
            Flush::File(file) => self.sync(file),
            Flush::Directory(directory) => self.sync_directory(directory),
        }
    }

    /// Flushes what does not depend on one another, at the same time.
    pub fn sync_together(&self, flushes: &[Flush<'_>]) -> Io<()> {
        self.together(flushes, |flush| self.flush(*flush))
    }

    /// Removes entries of a directory, at the same time: on some file systems a removal waits for the disk.
    pub fn unlink_together(&self, dir: BorrowedFd<'_>, names: &[Vec<u8>]) -> Io<()> {
        self.together(names, |name| self.unlink(dir, name))
    }

    /// Makes calls that mostly wait, and do not depend on one another, at the same time; with a gate one after another, so
    /// that it sees the same steps every time. All are made; the first error is returned.
    fn together<T: Sync>(&self, calls: &[T], call: impl Fn(&T) -> Io<()> + Sync) -> Io<()> {
        let next = AtomicUsize::new(0);
        let work = || {
            let mut result = Ok(());
            while let Some(one) = calls.get(next.fetch_add(1, Ordering::Relaxed)) {
                result = result.and(call(one));
            }
            result
        };
        let helpers = match self.0 {
            Some(_) => 0,
            None => calls.len().min(WAITERS).saturating_sub(1),
        };
        std::thread::scope(|scope| {
            // Who cannot have a thread does the work alone.
            let spawn = || std::thread::Builder::new().spawn_scoped(scope, work).ok();
            let helping: Vec<_> = (0..helpers).map_while(|_| spawn()).collect();
            helping.into_iter().fold(work(), |result, helper| {
                let other = helper.join();
                result.and(other.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            })
        })
    }

    pub fn sync_all(&self, on: BorrowedFd<'_>) -> Io<()> {
        self.pass(Call::SyncAll { on }, || fs::syncfs(on))
    }

    /// Sets the permission bits. `file` may be opened with `O_PATH`: then the descriptor's link under `/proc` is used,
    /// which leads to the very inode.
    pub fn chmod(&self, file: BorrowedFd<'_>, mode: u32) -> Io<()> {
        self.pass(Call::Chmod { file, mode }, || {
            match fs::fchmod(file, Mode::from_raw_mode(mode)) {
                Err(rustix::io::Errno::BADF) => {
                    use std::os::fd::AsRawFd;
                    let link = format!("/proc/self/fd/{}", file.as_raw_fd());
                    fs::chmodat(fs::CWD, link, Mode::from_raw_mode(mode), AtFlags::empty())
                }
                other => other,
            }
        })
    }

    pub fn chown(&self, file: BorrowedFd<'_>, uid: u32, gid: u32) -> Io<()> {
        self.pass(Call::Chown { file, uid, gid }, || {
            fs::fchown(file, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)))
        })
    }

    pub fn set_xattr(&self, file: BorrowedFd<'_>, name: &[u8], value: &[u8]) -> Io<()> {
        self.pass(Call::SetXattr { file, name, value }, || {
            fs::fsetxattr(file, name, value, fs::XattrFlags::empty())
        })
    }

    pub fn remove_xattr(&self, file: BorrowedFd<'_>, name: &[u8]) -> Io<()> {
        self.pass(Call::RemoveXattr { file, name }, || fs::fremovexattr(file, name))
    }

    /// Gives an entry the present time; a symlink itself, not its target.
    pub fn touch(&self, dir: BorrowedFd<'_>, name: &[u8]) -> Io<()> {
        let now = fs::Timespec {
            tv_sec: 0,
            tv_nsec: fs::UTIME_NOW,
        };
        let times = Timestamps {
            last_access: now,
            last_modification: now,
        };
        self.pass(Call::Touch { dir, name }, || {
            fs::utimensat(dir, name, &times, AtFlags::SYMLINK_NOFOLLOW)
        })
    }

    pub fn make_directory(&self, dir: BorrowedFd<'_>, name: &[u8], mode: u32) -> Io<()> {
        self.pass(Call::MakeDirectory { dir, name, mode }, || {
            fs::mkdirat(dir, name, Mode::from_raw_mode(mode))
        })
    }

    pub fn symlink(&self, target: &[u8], dir: BorrowedFd<'_>, name: &[u8]) -> Io<()> {
        self.pass(Call::Symlink { target, dir, name }, || fs::symlinkat(target, dir, name))
    }

    pub fn link(&self, from: BorrowedFd<'_>, old: &[u8], to: BorrowedFd<'_>, new: &[u8]) -> Io<()> {
        self.pass(Call::Link { from, old, to, new }, || {
            fs::linkat(from, old, to, new, AtFlags::empty())
        })
    }

    pub fn whiteout(&self, dir: BorrowedFd<'_>, name: &[u8]) -> Io<()> {
        self.pass(Call::Whiteout { dir, name }, || {
            fs::mknodat(dir, name, fs::FileType::CharacterDevice, Mode::empty(), 0)
        })
    }

    pub fn unlink(&self, dir: BorrowedFd<'_>, name: &[u8]) -> Io<()> {
        self.pass(Call::Unlink { dir, name }, || fs::unlinkat(dir, name, AtFlags::empty()))
    }

    pub fn remove_directory(&self, dir: BorrowedFd<'_>, name: &[u8]) -> Io<()> {
        self.pass(Call::RemoveDirectory { dir, name }, || {
            fs::unlinkat(dir, name, AtFlags::REMOVEDIR)
        })
    }

    pub fn rename(&self, from: BorrowedFd<'_>, old: &[u8], to: BorrowedFd<'_>, new: &[u8], how: Rename) -> Io<()> {
        self.pass(
            Call::Rename {
                from,
                old,
                to,
                new,
                how,
            },
            || {
                let flags = match how {
                    Rename::Replace => RenameFlags::empty(),
                    Rename::NoReplace => RenameFlags::NOREPLACE,
                    Rename::Exchange => RenameFlags::EXCHANGE,
                };
                fs::renameat_with(from, old, to, new, flags)
            },
        )
    }
}

/// Waits for, or tries, a lock on an open description; released by closing it. It leaves no trace on disk, so it is no
/// step of the seam.
pub(crate) fn lock(file: BorrowedFd<'_>, exclusive: bool, wait: bool) -> Io<bool> {
    let operation = match (exclusive, wait) {
        (true, true) => FlockOperation::LockExclusive,
        (true, false) => FlockOperation::NonBlockingLockExclusive,
        (false, true) => FlockOperation::LockShared,
        (false, false) => FlockOperation::NonBlockingLockShared,
    };
    loop {
        match fs::flock(file, operation) {
            Ok(()) => return Ok(true),
            Err(rustix::io::Errno::WOULDBLOCK) => return Ok(false),
            Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
}

/// Names of functions that change a file system, as they would be written to go around the seam.
const MUTATING: &[&str] = &[
    "::fsync(",
    "::fdatasync(",
    "::syncfs(",
    "::ftruncate(",
    "::fallocate(",
    "::fchmod(",
    "::chmodat(",
    "::fchown(",
    "::chownat(",
    "::fsetxattr(",
    "::fremovexattr(",
    "::setxattr(",
    "::lsetxattr(",
    "::removexattr(",
    "::futimens(",
    "::utimensat(",
    "::mkdirat(",
    "::mknodat(",
    "::mkfifoat(",
    "::symlinkat(",
    "::linkat(",
    "::unlinkat(",
    "::renameat(",
    "::renameat_with(",
    "io::write(",
    "io::pwrite(",
    "OFlags::CREATE",
    "OFlags::TMPFILE",
    "OFlags::TRUNC",
    "OFlags::WRONLY",
    "OFlags::RDWR",
    "OFlags::APPEND",
    "fs::write(",
    "File::create",
    "OpenOptions",
    "fs::rename(",
    "fs::remove_",
    "fs::create_dir",
    "fs::copy(",
    "fs::hard_link(",
    "fs::set_permissions(",
    "os::unix::fs::symlink(",
    "set_len(",
    "sync_data(",
    "copy_file_range(",
    "sendfile(",
    "fs_err",
];

/// Finds mutating calls in a source text of this crate other than the seam's own. A text that ends in a test module is
/// searched up to that. Returns line numbers (1-based) and what stands there.
pub fn mutating_calls_elsewhere(source: &str) -> Vec<(usize, String)> {
    let end = source.find("\n#[cfg(test)]\nmod ").unwrap_or(source.len());
    let code = source[..end].lines().enumerate();
    code.filter(|(_, line)| !line.trim_start().starts_with("//"))
        .filter(|(_, line)| MUTATING.iter().any(|word| line.contains(word)))
        .map(|(at, line)| (at + 1, line.trim().to_owned()))
        .collect()
}
