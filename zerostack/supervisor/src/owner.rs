//! The program side: guard, supervisor and the child that becomes the command.
//!
//! ```text
//! host ── guard ── supervisor ── root ── …             (tiers cgroup, rlimits)
//!                             └─ init ── root ── …     (tier pid_namespace)
//! ```
//!
//! The *guard* is the process the host starts. It reads the start message, forks the supervisor and waits for it; it is a
//! subreaper, so that a tree whose supervisor was killed falls to it, and it ends that tree. The *supervisor* is a
//! subreaper too, talks to the host and runs the ladder. Each sees the other's death as end-of-file or as a child's
//! end, and the host's death as end-of-file on the socket. Whoever is left ends the tree; the lease's descriptor is held
//! by both.
//!
//! Nothing here is for a host: it assumes a process of one thread that may fork.

mod confine;
mod hold;
mod kill;
mod launch;
mod namespace;
mod overlay;
mod supervise;

use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;

use crate::cgroup;
use crate::identity::Identity;
use crate::marker::{self, Marker};
use crate::protocol::{self, Start, ToHost};
use crate::sys::{self, Fork, Reaped};

/// Exit code of the guard: the tree is empty and the supervisor reported it.
pub(crate) const EXIT_EMPTY: i32 = 0;
/// Exit code of the guard: the supervisor died; the guard itself emptied the tree.
pub(crate) const EXIT_GUARDED: i32 = 3;
/// Exit code of the guard: nothing was started (no start message, another version, or no fork).
pub(crate) const EXIT_UNUSED: i32 = 4;

/// What guard and supervisor share after the start message.
struct Run {
    guard: Identity,
    start: Start,
    lease: Option<OwnedFd>,
    /// The namespaces of a view that is mounted already: mount, then user.
    view: Vec<OwnedFd>,
}

impl Run {
    fn marker_dir(&self) -> Option<PathBuf> {
        use std::os::unix::ffi::OsStringExt;
        self.start
            .marker_dir
            .clone()
            .map(|dir| PathBuf::from(std::ffi::OsString::from_vec(dir)))
    }
}

/// Runs the supervisor program on the socket at standard input; never returns.
pub fn run() -> ! {
    // The host may have leaked descriptors that are not close-on-exec.
    // SAFETY: nothing in this process owns a descriptor yet.
    unsafe { sys::close_from(3) };
    // SAFETY: standard input is open (the library passes the socket there) and nothing else owns it.
    let socket = unsafe { sys::adopt(0) };
    match prepare(&socket) {
        Some((run, streams)) => guard(run, streams, socket),
        None => sys::exit(EXIT_UNUSED),
    }
}

fn prepare(socket: &OwnedFd) -> Option<(Run, Vec<OwnedFd>)> {
    sys::block_signals().ok()?;
    // A terminal's interrupt is the host's business. Fails only for a group leader, which then has no terminal to lose.
    let _ = sys::new_session();
    let _ = std::env::set_current_dir("/");
    sys::set_dumpable(false);
    sys::set_name(c"zero-guard");
    let guard = Identity::current().ok()?;
    let refuse = |detail: String| {
        // A host that is gone needs no answer.
        let _ = protocol::send(
            socket.as_fd(),
            &ToHost::Refused {
                detail,
                unsupported: true,
            },
            &[],
        );
    };
    protocol::send(socket.as_fd(), &ToHost::Hello { guard }, &[]).ok()?;
    if let Err(error) = sys::become_subreaper() {
        refuse(format!("cannot become a subreaper: {error}"));
        return None;
    }
    let (start, mut fds) = match protocol::receive::<Start>(socket.as_fd()) {
        Ok(received) => received,
        // The host knows: it compares the version of the hello.
        Err(_) => return None,
    };
    let namespaces = match start.view {
        protocol::View::Mounted { user } => 1 + usize::from(user),
        _ => 0,
    };
    if start.argv.is_empty() || fds.len() != 3 + usize::from(start.lease) + namespaces {
        refuse("the start message lacks a program or descriptors".into());
        return None;
    }
    let view = fds.split_off(fds.len() - namespaces);
    let lease = if start.lease { fds.pop() } else { None };
    let run = Run {
        guard,
        start,
        lease,
        view,
    };
    Some((run, fds))
}

/// Forks the supervisor and outlives it.
fn guard(mut run: Run, streams: Vec<OwnedFd>, socket: OwnedFd) -> ! {
    let Ok((life, own_life)) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC) else {
        sys::exit(EXIT_UNUSED)
    };
    let supervisor = match sys::fork() {
        Ok(Fork::Child) => {
            drop(own_life);
            supervise::run(run, streams, socket, life)
        }
        Ok(Fork::Parent(pid)) => pid,
        Err(error) => {
            let detail = format!("cannot fork the supervisor: {error}");
            let _ = protocol::send(
                socket.as_fd(),
                &ToHost::Refused {
                    detail,
                    unsupported: false,
                },
                &[],
            );
            sys::exit(EXIT_UNUSED)
        }
    };
    // The command's pipes and the socket are the supervisor's now; a copy here would keep them from ending.
    drop((streams, socket, life, std::mem::take(&mut run.view)));
    let identity = Identity::of(supervisor);
    loop {
        match sys::reap(supervisor, true) {
            // A command may stop its supervisor; it is an unreaped child, so its number is its own.
            Ok(Reaped::Stopped(_)) => sys::signal_child(supervisor, libc::SIGCONT),
            Ok(Reaped::Exited(_, EXIT_EMPTY)) => sys::exit(EXIT_EMPTY),
            Ok(Reaped::Nothing) => {}
            Ok(Reaped::Exited(..) | Reaped::Signalled(..) | Reaped::NoChild) | Err(_) => break,
        }
    }
    kill::exterminate();
    if let Some(identity) = identity {
        cgroup::remove_named(&cgroup::name_of(identity));
    }
    if let Some(dir) = run.marker_dir() {
        let file = Marker::file(&dir, run.guard);
        marker::forget(&file);
    }
    sys::exit(EXIT_GUARDED)
}
