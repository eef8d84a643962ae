//! What is to be run, under which rules: plain data that a host fills in.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::lease::Lease;
use crate::protocol::TreeTier;

/// One command. Made by [`Spec::new`] or [`Spec::shell`], then changed field by field.
#[derive(Debug)]
pub struct Spec {
    /// Program and arguments; the program is looked up in the `PATH` of `env`, never in the host's.
    pub argv: Vec<OsString>,
    /// Absolute working directory.
    pub cwd: PathBuf,
    /// The whole environment; [`crate::environment::inherited`] gives the default. Later entries win.
    pub env: Vec<(OsString, OsString)>,
    /// Standard input.
    pub stdin: Stdin,
    /// Time after which the tree is ended with reason `timeout`; measured by the supervisor.
    pub timeout: Option<Duration>,
    /// Time between TERM and KILL; 500 ms by default.
    pub grace: Duration,
    /// Time after the grace within which the tree must be gone, else the verdict is `uncertain`; 5 s by default.
    pub cleanup: Duration,
    /// Limits.
    pub limits: Limits,
    /// What it sees of the workspace.
    pub view: View,
    /// Where it may write.
    pub files: Files,
    /// What holds its tree together.
    pub tree: Tree,
    /// Directory (of the store) for the marker of the live tree; without one nobody can tell after the death of host
    /// and supervisor whether the tree lives.
    pub marker_dir: Option<PathBuf>,
    /// The workspace lease, held by the supervisor too until the tree is gone.
    pub lease: Option<Arc<Lease>>,
}

impl Spec {
    /// A command without a shell, with the host's allow-listed environment and all defaults.
    pub fn new<A: Into<OsString>>(argv: impl IntoIterator<Item = A>, cwd: impl Into<PathBuf>) -> Self {
        Self {
            argv: argv.into_iter().map(Into::into).collect(),
            cwd: cwd.into(),
            env: crate::environment::inherited(),
            stdin: Stdin::Null,
            timeout: None,
            grace: Duration::from_millis(500),
            cleanup: Duration::from_secs(5),
            limits: Limits::default(),
            view: View::Live,
            files: Files::Open,
            tree: Tree::default(),
            marker_dir: None,
            lease: None,
        }
    }

    /// A line for `sh -c`.
    pub fn shell(line: impl AsRef<OsStr>, cwd: impl Into<PathBuf>) -> Self {
        Self::new([OsStr::new("sh"), OsStr::new("-c"), line.as_ref()], cwd)
    }
}

/// Where standard input comes from.
pub enum Stdin {
    /// `/dev/null`: a reader sees the end at once.
    Null,
    /// These bytes, then the end.
    Bytes(Vec<u8>),
    /// Whatever this gives, then the end; read as fast as the command reads. It must not block for long.
    Reader(Box<dyn Read + Send>),
}

impl fmt::Debug for Stdin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => formatter.write_str("Null"),
            Self::Bytes(bytes) => write!(formatter, "Bytes({})", bytes.len()),
            Self::Reader(_) => formatter.write_str("Reader"),
        }
    }
}

/// Limits of one command; reaching one ends the tree with reason `limit`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Tasks (processes and threads) of the tree at one time; 512 by default.
    pub processes: u32,
    /// Bytes of standard output and error together that are kept; 256 MiB by default. More is counted, not kept.
    pub output: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            processes: 512,
            output: 256 << 20,
        }
    }
}

/// What a command sees of the workspace.
#[derive(Debug, Clone, Default)]
pub enum View {
    /// The live tree.
    #[default]
    Live,
    /// A private overlay over the workspace: the live tree does not change, what the command writes lands in `upper`.
    ///
    /// Where it cannot be mounted the command does not run and starting it is [`crate::Error::Unsupported`]. Ask
    /// [`crate::Processes::why_no_overlay`] first. In a user namespace (an ordinary user's) a file whose owner or group is
    /// not the user's own cannot be changed.
    Overlay(Overlay),
    /// The overlay that another command mounted ([`crate::Running::mounted`]): two mounts over one upper directory at the
    /// same time would not see each other's writes.
    Mounted(Arc<Mounted>),
}

/// The namespaces of a mounted overlay. It stays mounted until the last command in it and the last holder of this are
/// gone; a dead host holds nothing.
#[derive(Debug)]
pub struct Mounted {
    pub(crate) mount: OwnedFd,
    /// Of an ordinary user.
    pub(crate) user: Option<OwnedFd>,
}

/// A private overlay; all paths absolute but those of `through`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overlay {
    /// The workspace: what is seen, and where.
    pub root: PathBuf,
    /// Where writes land, in the form the kernel's overlay gives them: whiteouts are character devices 0/0, replaced
    /// directories have the attribute `user.overlay.opaque`. Kept from run to run, it carries the effects along.
    pub upper: PathBuf,
    /// An empty directory for the kernel, on the same file system as `upper`: a new one for each mount.
    pub work: PathBuf,
    /// Paths beneath the workspace that stay the live ones (ignored directories, such as build output).
    pub through: Vec<PathBuf>,
}

/// Where a command may write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Files {
    /// Anywhere the user may.
    Open,
    /// Beneath these paths alone, by Landlock; [`crate::confinement`] makes the list.
    Landlock {
        /// Absolute files and directories.
        writable: Vec<PathBuf>,
        /// Refuse to run without Landlock, instead of running unconfined under the tier `none`.
        required: bool,
    },
}

/// What may hold the tree together, best first; the first that this machine allows is taken and named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    /// Tiers to try. Naming some only *requires* one of those: the command is refused where none can be had.
    pub wanted: Vec<TreeTier>,
}

impl Default for Tree {
    fn default() -> Self {
        Self {
            wanted: vec![TreeTier::Cgroup, TreeTier::PidNamespace, TreeTier::Rlimits],
        }
    }
}

impl Tree {
    /// This tier or nothing.
    #[must_use]
    pub fn required(tier: TreeTier) -> Self {
        Self { wanted: vec![tier] }
    }
}
