//! The versioned wire protocol between a host and the supervisor of one command.
//!
//! Owns the messages and their framing over a stream socket; knows nothing of processes. A frame is a fixed header
//! (`magic`, version, length; it never changes between versions, so that a mismatch is always understood) and a
//! postcard body. Descriptors travel beside the header of [`Start`], in the order stdin, stdout, stderr, lease.

use std::io::{self, IoSlice, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::identity::Identity;

/// The version both sides must speak; raised on every change of a message.
pub const VERSION: u16 = 2;

/// First bytes of every frame.
const MAGIC: [u8; 4] = *b"ZSUP";

/// Bytes of a frame header: magic (4), version (2), body length (4), all little-endian.
const HEADER: usize = 10;

/// Largest body accepted, in bytes: far above the kernel's own limit on arguments and environment.
const MAX_BODY: usize = 16 << 20;

/// Most descriptors one message may carry.
const MAX_FDS: usize = 6;

/// What is to be run and under which rules: the first message of the host, with the descriptors beside it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// Program and arguments; the program is looked up in the `PATH` of `env`. Never empty.
    pub argv: Vec<Vec<u8>>,
    /// The whole environment of the command, in order.
    pub env: Vec<(Vec<u8>, Vec<u8>)>,
    /// Absolute working directory.
    pub cwd: Vec<u8>,
    /// What the command sees of the workspace.
    pub view: View,
    /// Where the command may write.
    pub files: FilePolicy,
    /// What holds the tree together.
    pub tree: TreePolicy,
    /// Most tasks (processes and threads) of the tree at one time; at least 1.
    pub processes: u32,
    /// Milliseconds after which the tree is ended with reason `timeout`.
    pub timeout_ms: Option<u64>,
    /// Milliseconds between TERM and KILL.
    pub grace_ms: u64,
    /// Milliseconds after the grace in which the tree must be gone, else the verdict is `uncertain`.
    pub cleanup_ms: u64,
    /// Directory in which the marker of a live tree is kept.
    pub marker_dir: Option<Vec<u8>>,
    /// Whether the fourth descriptor, the workspace lease, is there.
    pub lease: bool,
}

/// What the command sees of the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum View {
    /// The live tree.
    Live,
    /// A private overlay, mounted over the workspace. Its namespaces go to the host beside [`ToHost::Started`] or
    /// [`ToHost::SpawnFailed`]: the mount namespace, and the user namespace if one was made.
    Overlay {
        /// The workspace: lower layer, and where the overlay is mounted.
        root: Vec<u8>,
        /// Where its writes land, as the kernel's overlay keeps them (with `user.overlay.*` attributes).
        upper: Vec<u8>,
        /// An empty directory of the kernel's, on the same file system as `upper`: a new one for each mount.
        work: Vec<u8>,
        /// Paths beneath the workspace that stay the live ones.
        through: Vec<Vec<u8>>,
    },
    /// The overlay that another command of the same cell has mounted: its namespaces come as the last descriptors.
    Mounted {
        /// Whether a user namespace comes after the mount namespace.
        user: bool,
    },
}

/// Where the command may write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FilePolicy {
    /// Anywhere the user may.
    Open,
    /// Beneath these absolute paths alone, where the kernel has Landlock; where one does not exist it is left out.
    Landlock {
        /// Files and directories.
        writable: Vec<Vec<u8>>,
        /// Without Landlock: refuse to run (true) or run unconfined and say so in the tier (false).
        required: bool,
    },
}

/// What may hold the tree together, best first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreePolicy {
    /// Tiers to try, in order; the first that can be set up is taken.
    pub wanted: Vec<TreeTier>,
}

/// What holds a command's tree together, named in the verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TreeTier {
    /// A cgroup of its own: frozen, killed and counted by the kernel.
    Cgroup,
    /// A PID namespace of its own: killed by the kernel together with its first process.
    PidNamespace,
    /// Subreaper, resource limits and the supervisor's own count.
    Rlimits,
}

/// What keeps the command's writes inside, named in the verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileTier {
    /// Landlock.
    Landlock,
    /// Nothing.
    None,
}

/// What counts the tasks of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CountTier {
    /// The kernel refuses the task above the limit.
    Kernel,
    /// The supervisor counts, many times a second.
    Sampled,
}

/// The tiers a command really ran under.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tiers {
    /// What holds the tree together.
    pub tree: TreeTier,
    /// What keeps writes inside.
    pub files: FileTier,
    /// Whether the command cannot signal processes outside its tree (Landlock scope or PID namespace).
    pub signals_scoped: bool,
    /// What counts the tasks.
    pub count: CountTier,
}

/// Why the tree was ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// The root process ended by itself.
    Natural,
    /// The command's time was over.
    Timeout,
    /// The host or the cell cancelled it, or the host is gone.
    Cancelled,
    /// A limit on processes or output was reached.
    Limit,
}

/// How the root process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum RootStatus {
    /// It exited with this code.
    Exited(i32),
    /// This signal ended it.
    Signalled(i32),
    /// The supervisor could not learn it.
    Unknown,
}

/// What the host says after [`Start`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum ToSupervisor {
    /// End the tree for this reason; what has been decided before stays.
    End(EndReason),
}

/// What the supervisor says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum ToHost {
    /// First message: who speaks.
    Hello {
        /// The process the host started: the guard, parent of the supervisor.
        guard: Identity,
    },
    /// The command's own program runs.
    Started {
        /// The root process, in the host's numbering.
        root: Identity,
        /// The supervisor proper.
        supervisor: Identity,
        /// What it runs under.
        tiers: Tiers,
    },
    /// The program could not be started; nothing of it ran.
    SpawnFailed {
        /// The step that failed.
        step: Step,
        /// The system's error number.
        errno: i32,
        /// The tiers it would have run under.
        tiers: Tiers,
    },
    /// The supervisor would not start the command.
    Refused {
        /// What could not be had.
        detail: String,
        /// Whether a demanded tier is missing, rather than an operation having failed.
        unsupported: bool,
    },
    /// Last message. `clean` means: no process of the tree exists.
    Verdict {
        /// How the root ended.
        root: RootStatus,
        /// Why the tree was ended.
        reason: EndReason,
        /// Whether the kernel said that no child is left.
        clean: bool,
        /// CPU time of all reaped processes of the tree, in microseconds.
        cpu_us: u64,
        /// Largest resident set of any one reaped process, in bytes.
        max_rss_bytes: u64,
        /// Monotonic microseconds between start and the end of the tree.
        duration_us: u64,
        /// Why the verdict is uncertain.
        detail: Option<String>,
    },
}

/// A step between fork and exec.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// A new session.
    Session,
    /// Standard streams.
    Streams,
    /// Resource limits.
    Limits,
    /// The working directory.
    Directory,
    /// Confinement.
    Confinement,
    /// Looking up and executing the program.
    Exec,
}

impl Step {
    /// All steps, in order; the position is the number on the wire between the forked child and the supervisor.
    pub(crate) const ALL: [Self; 6] = [
        Self::Session,
        Self::Streams,
        Self::Limits,
        Self::Directory,
        Self::Confinement,
        Self::Exec,
    ];

    /// What the step does, in words.
    #[must_use]
    pub fn describe(self) -> &'static str {
        match self {
            Self::Session => "making a new session",
            Self::Streams => "setting up the standard streams",
            Self::Limits => "setting resource limits",
            Self::Directory => "entering the working directory",
            Self::Confinement => "confining the command",
            Self::Exec => "executing the program",
        }
    }
}

/// A frame that could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// The other side closed the socket before a whole frame.
    #[error("the other side closed the socket")]
    Closed,
    /// The other side speaks another version.
    #[error(
        "supervisor protocol version {theirs}, this side speaks {ours}: install host and zero-supervisor of one release"
    )]
    Version {
        /// Version in the frame.
        theirs: u16,
        /// [`VERSION`].
        ours: u16,
    },
    /// What came is not a frame of this protocol, or its body does not decode.
    #[error("malformed frame: {0}")]
    Malformed(&'static str),
    /// The socket failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Writes one frame; `fds` travel with its first byte.
///
/// # Errors
/// [`WireError::Io`] (a closed peer is `EPIPE`, never a signal), [`WireError::Malformed`] for a body above 16 MiB.
pub fn send<T: Serialize>(socket: BorrowedFd<'_>, message: &T, fds: &[BorrowedFd<'_>]) -> Result<(), WireError> {
    let body = postcard::to_stdvec(message).map_err(|_| WireError::Malformed("message does not encode"))?;
    if body.len() > MAX_BODY {
        return Err(WireError::Malformed("message above 16 MiB"));
    }
    let mut frame = Vec::with_capacity(HEADER + body.len());
    frame.extend_from_slice(&MAGIC);
    frame.extend_from_slice(&VERSION.to_le_bytes());
    frame.extend_from_slice(&u32::try_from(body.len()).unwrap_or(u32::MAX).to_le_bytes());
    frame.extend_from_slice(&body);

    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(WireError::Malformed("too many descriptors"));
    }
    let mut sent = 0;
    while sent < frame.len() {
        let mut nothing = SendAncillaryBuffer::default();
        let beside = if sent == 0 { &mut control } else { &mut nothing };
        match rustix::net::sendmsg(socket, &[IoSlice::new(&frame[sent..])], beside, SendFlags::NOSIGNAL) {
            Ok(count) => sent += count,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(WireError::Io(error.into())),
        }
    }
    Ok(())
}

/// Reads one frame and the descriptors beside its header; blocks until it is whole.
///
/// # Errors
/// [`WireError::Closed`] at end of file, [`WireError::Version`], [`WireError::Malformed`], [`WireError::Io`].
pub fn receive<T: DeserializeOwned>(socket: BorrowedFd<'_>) -> Result<(T, Vec<OwnedFd>), WireError> {
    let mut header = [0_u8; HEADER];
    let mut fds = Vec::new();
    let mut got = 0;
    while got < HEADER {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut into = [IoSliceMut::new(&mut header[got..])];
        match rustix::net::recvmsg(socket, &mut into, &mut control, RecvFlags::CMSG_CLOEXEC) {
            Ok(message) if message.bytes == 0 => return Err(WireError::Closed),
            Ok(message) => got += message.bytes,
            Err(rustix::io::Errno::INTR) => continue,
            Err(rustix::io::Errno::CONNRESET) => return Err(WireError::Closed),
            Err(error) => return Err(WireError::Io(error.into())),
        }
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(passed) = message {
                fds.extend(passed);
            }
        }
    }
    if header[..4] != MAGIC {
        return Err(WireError::Malformed("not a supervisor frame"));
    }
    let theirs = u16::from_le_bytes([header[4], header[5]]);
    if theirs != VERSION {
        return Err(WireError::Version { theirs, ours: VERSION });
    }
    let length = u32::from_le_bytes([header[6], header[7], header[8], header[9]]) as usize;
    if length > MAX_BODY {
        return Err(WireError::Malformed("frame above 16 MiB"));
    }
    let mut body = vec![0_u8; length];
    Plain(socket)
        .read_exact(&mut body)
        .map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => WireError::Closed,
            _ => WireError::Io(error),
        })?;
    let message = postcard::from_bytes(&body).map_err(|_| WireError::Malformed("body does not decode"))?;
    Ok((message, fds))
}

/// A borrowed descriptor as a reader.
struct Plain<'a>(BorrowedFd<'a>);

impl Read for Plain<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(rustix::io::read(self.0.as_fd(), buffer)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    fn pair() -> (OwnedFd, OwnedFd) {
        socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).expect("socketpair")
    }

    #[test]
    fn a_message_and_its_descriptors_come_through() {
        let (a, b) = pair();
        let (read, write) = rustix::pipe::pipe().expect("pipe");
        send(a.as_fd(), &ToSupervisor::End(EndReason::Limit), &[write.as_fd()]).expect("send");
        let (message, fds) = receive::<ToSupervisor>(b.as_fd()).expect("receive");
        assert_eq!(message, ToSupervisor::End(EndReason::Limit));
        drop(write);
        rustix::io::write(&fds[0], b"x").expect("the passed descriptor writes");
        let mut byte = [0];
        assert_eq!(rustix::io::read(&read, &mut byte).expect("read"), 1);
        let flags = rustix::io::fcntl_getfd(&fds[0]).expect("flags");
        assert!(
            flags.contains(rustix::io::FdFlags::CLOEXEC),
            "a passed descriptor is close-on-exec"
        );
    }

    #[test]
    fn a_large_message_needs_many_writes_and_still_arrives() {
        let (a, b) = pair();
        let big = ToHost::Refused {
            detail: "x".repeat(3 << 20),
            unsupported: true,
        };
        let expected = big.clone();
        let writer = std::thread::spawn(move || send(a.as_fd(), &big, &[]));
        let (message, _) = receive::<ToHost>(b.as_fd()).expect("receive");
        writer.join().expect("thread").expect("send");
        assert_eq!(message, expected);
    }

    #[test]
    fn another_version_is_named_and_a_short_frame_is_closed() {
        let (a, b) = pair();
        rustix::io::write(&a, b"ZSUP\x09\x00\x00\x00\x00\x00").expect("write");
        match receive::<ToHost>(b.as_fd()) {
            Err(WireError::Version {
                theirs: 9,
                ours: VERSION,
            }) => {}
            other => panic!("{other:?}"),
        }
        rustix::io::write(&a, b"ZSUP").expect("write");
        drop(a);
        assert!(matches!(receive::<ToHost>(b.as_fd()), Err(WireError::Closed)));
    }

    proptest::proptest! {
        #[test]
        fn any_start_message_round_trips_and_no_damage_panics(
            argv in proptest::collection::vec(proptest::collection::vec(proptest::prelude::any::<u8>(), 0..20), 0..4),
            timeout_ms in proptest::option::of(0_u64..),
            processes in 1_u32..,
            damage in (0_usize.., proptest::prelude::any::<u8>()),
        ) {
            let start = Start {
                env: argv.iter().map(|word| (word.clone(), b"value".to_vec())).collect(),
                cwd: b"/".to_vec(),
                view: View::Live,
                files: FilePolicy::Landlock { writable: argv.clone(), required: true },
                tree: TreePolicy { wanted: vec![TreeTier::Rlimits, TreeTier::Cgroup] },
                argv,
                processes,
                timeout_ms,
                grace_ms: 1,
                cleanup_ms: 2,
                marker_dir: None,
                lease: false,
            };
            let (a, b) = pair();
            send(a.as_fd(), &start, &[]).expect("send");
            proptest::prop_assert_eq!(&receive::<Start>(b.as_fd()).expect("receive").0, &start);
            let mut body = postcard::to_stdvec(&start).expect("encode");
            let at = damage.0 % body.len();
            body[at] = damage.1;
            let _ = postcard::from_bytes::<Start>(&body);
        }
    }

    #[test]
    fn rubbish_is_malformed() {
        let (a, b) = pair();
        rustix::io::write(&a, b"HTTP/1.1 200 OK").expect("write");
        assert!(matches!(receive::<ToHost>(b.as_fd()), Err(WireError::Malformed(_))));
    }
}
