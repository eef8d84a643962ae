//! The child between fork and exec: gets ready, waits until it is owned, then becomes the command.

use std::ffi::CString;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::process::{Resource, Rlimit, setrlimit};

use super::confine;
use crate::cgroup;
use crate::protocol::{FilePolicy, Start, Step};
use crate::sys;

/// Both ends of the two pipes between the supervisor and the child.
pub(super) struct Gate {
    /// The child reads a byte here before it executes its program; end-of-file tells it to give up.
    pub(super) go: (OwnedFd, OwnedFd),
    /// The child writes `[step, errno…]` here when a step fails; exec closes it.
    pub(super) status: (OwnedFd, OwnedFd),
}

impl Gate {
    pub(super) fn new() -> std::io::Result<Self> {
        let pipe = || rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC);
        Ok(Self {
            go: pipe()?,
            status: pipe()?,
        })
    }
}

/// What the child needs.
pub(super) struct Child<'a> {
    pub(super) start: &'a Start,
    pub(super) streams: &'a [OwnedFd],
    pub(super) lease: Option<&'a OwnedFd>,
    /// Most tasks of this user (in this user namespace), as a resource limit.
    pub(super) tasks: Option<u64>,
    /// Where it has itself counted, by a cgroup of v1.
    pub(super) counter: Option<&'a OwnedFd>,
    pub(super) landlock: bool,
}

/// Sets itself up, waits for the word of the supervisor and executes the program. Never returns.
///
/// What needs no word is done before it: meanwhile the supervisor writes its marker.
pub(super) fn become_command(child: &Child<'_>, gate: Gate) -> ! {
    let Gate {
        go: (go, opener),
        status: (reader, status),
    } = gate;
    // The lease must not outlive the supervisor in here, and the gate must show the supervisor's end.
    drop((opener, reader));
    if let Some(lease) = child.lease {
        // SAFETY: this process never drops the owner: it ends in exec or exit.
        unsafe { rustix::io::close(lease.as_raw_fd()) };
    }
    let prepared = prepare(child);
    let mut byte = [0_u8; 1];
    loop {
        match rustix::io::read(&go, &mut byte) {
            Ok(1) => break,
            Err(rustix::io::Errno::INTR) => {}
            _ => sys::exit(127),
        }
    }
    let (step, error) = match prepared {
        Ok(ready) => (Step::Exec, ready.execute()),
        Err(failed) => failed,
    };
    let position = Step::ALL
        .iter()
        .position(|is| *is == step)
        .unwrap_or(Step::ALL.len() - 1);
    let mut report = [0_u8; 5];
    report[0] = u8::try_from(position).unwrap_or(u8::MAX);
    report[1..].copy_from_slice(&error.raw_os_error().unwrap_or(libc::EIO).to_le_bytes());
    // If this fails the supervisor sees a child that exited with 127.
    let _ = rustix::io::write(&status, &report);
    sys::exit(127)
}

/// A child with nothing left to do but to execute its program.
struct Prepared {
    argv: Vec<CString>,
    env: Vec<CString>,
}

impl Prepared {
    /// Becomes the program; returns only the error.
    fn execute(&self) -> std::io::Error {
        sys::set_dumpable(true);
        sys::default_signals();
        sys::exec(&self.argv, &self.env)
    }
}

fn prepare(child: &Child<'_>) -> Result<Prepared, (Step, std::io::Error)> {
    let start = child.start;
    sys::new_session().map_err(|error| (Step::Session, error))?;
    for (number, stream) in child.streams.iter().enumerate() {
        let number = i32::try_from(number).unwrap_or(i32::MAX);
        sys::duplicate_onto(stream.as_raw_fd(), number).map_err(|error| (Step::Streams, error))?;
    }
    sys::cloexec_from(3);
    if let Some(counter) = child.counter {
        rustix::io::write(counter, cgroup::SELF).map_err(|error| (Step::Limits, error.into()))?;
    }
    if let Some(tasks) = child.tasks {
        let limit = Rlimit {
            current: Some(tasks),
            maximum: Some(tasks),
        };
        setrlimit(Resource::Nproc, limit).map_err(|error| (Step::Limits, error.into()))?;
    }
    let string = |bytes: &Vec<u8>| {
        CString::new(bytes.as_slice()).map_err(|_| (Step::Exec, std::io::Error::from_raw_os_error(libc::EINVAL)))
    };
    let argv = start.argv.iter().map(string).collect::<Result<Vec<_>, _>>()?;
    let env = start
        .env
        .iter()
        .map(|(name, value)| string(&[name.as_slice(), b"=", value.as_slice()].concat()))
        .collect::<Result<Vec<_>, _>>()?;
    rustix::process::chdir(start.cwd.as_slice()).map_err(|error| (Step::Directory, error.into()))?;
    if let (true, FilePolicy::Landlock { writable, .. }) = (child.landlock, &start.files) {
        confine::restrict(writable).map_err(|error| (Step::Confinement, error))?;
    }
    Ok(Prepared { argv, env })
}
