//! What one path holds: the facts that guards compare, journals record and restoration brings back.

use rustix::fs::{FileType, Stat};
use serde::{Deserialize, Serialize};
use zero_contracts::edit::PathState;
use zero_contracts::read::EntryKind;
use zero_contracts::source::Stamp;
use zero_contracts::{Digest, Handle};

/// What a path holds, complete but for the bytes that `digest` names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Node {
    /// A regular file.
    File { mode: u32, digest: Digest, bytes: u64 },
    /// A directory.
    Directory { mode: u32 },
    /// A symlink, with its raw target.
    Symlink { target: Vec<u8> },
    /// A FIFO, socket or device: never opened, moved or removed by us.
    Other,
}

impl Node {
    pub fn kind(&self) -> EntryKind {
        match self {
            Self::File { .. } => EntryKind::File,
            Self::Directory { .. } => EntryKind::Directory,
            Self::Symlink { .. } => EntryKind::Symlink,
            Self::Other => EntryKind::Other,
        }
    }

    pub fn mode(&self) -> u32 {
        match self {
            Self::File { mode, .. } | Self::Directory { mode } => *mode,
            _ => 0,
        }
    }

    pub fn is_directory(&self) -> bool {
        matches!(self, Self::Directory { .. })
    }

    /// Digest of a file's bytes or of a symlink's target.
    pub fn digest(&self) -> Option<Digest> {
        match self {
            Self::File { digest, .. } => Some(*digest),
            Self::Symlink { target } => Some(Digest::of(target)),
            _ => None,
        }
    }

    /// The handle of a file's bytes.
    pub fn handle(&self) -> Option<Handle> {
        match self {
            Self::File { digest, .. } => Some(Handle::blob(*digest)),
            _ => None,
        }
    }

    pub fn state(&self) -> PathState {
        let bytes = match self {
            Self::File { bytes, .. } => Some(*bytes),
            _ => None,
        };
        PathState {
            kind: self.kind(),
            mode: self.mode(),
            digest: self.digest(),
            bytes,
        }
    }

    /// A few words for messages.
    pub fn describe(node: Option<&Self>) -> String {
        match node {
            None => "nothing".into(),
            Some(Self::File { mode, digest, bytes }) => {
                format!(
                    "a file of {bytes} bytes, mode {mode:o}, digest {}…",
                    &digest.to_hex()[..12]
                )
            }
            Some(Self::Directory { .. }) => "a directory".into(),
            Some(Self::Symlink { target }) => format!("a symlink to `{}`", zero_contracts::path::escape(target)),
            Some(Self::Other) => "a FIFO, socket or device".into(),
        }
    }
}

/// What `lstat` tells about an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meta {
    pub kind: EntryKind,
    pub mode: u32,
    pub size: u64,
    pub device: u64,
    pub inode: u64,
    pub links: u64,
    pub uid: u32,
    pub gid: u32,
    /// Nanoseconds since 1970.
    pub mtime: i128,
    /// Nanoseconds since 1970.
    pub ctime: i128,
}

/// A change this long before an observation would have shown in the time stamps: kernel ticks are at most 10 ms.
const TICK_NS: i128 = 50_000_000;

impl Meta {
    pub fn new(stat: &Stat) -> Self {
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => EntryKind::File,
            FileType::Directory => EntryKind::Directory,
            FileType::Symlink => EntryKind::Symlink,
            _ => EntryKind::Other,
        };
        #[allow(clippy::unnecessary_cast, clippy::useless_conversion)] // the widths differ between architectures
        let ns = |s, n| i128::from(s as i64) * 1_000_000_000 + n as i128;
        Self {
            kind,
            mode: if kind == EntryKind::Symlink {
                0
            } else {
                stat.st_mode & 0o7777
            },
            size: if kind == EntryKind::File {
                stat.st_size.max(0) as u64
            } else {
                0
            },
            device: stat.st_dev,
            inode: stat.st_ino,
            links: u64::from(stat.st_nlink as u32),
            uid: stat.st_uid,
            gid: stat.st_gid,
            mtime: ns(stat.st_mtime, stat.st_mtime_nsec),
            ctime: ns(stat.st_ctime, stat.st_ctime_nsec),
        }
    }

    /// Stands for a file that may not be read: told apart by its inode, size and time, with a digest that no bytes have.
    pub fn unreadable(&self) -> Node {
        let known = format!("unreadable {} {} {} {}", self.device, self.inode, self.size, self.mtime);
        Node::File {
            mode: self.mode,
            digest: Digest::of(known.as_bytes()),
            bytes: self.size,
        }
    }

    /// Cheap identity of the content as of now.
    pub fn stamp(&self) -> Stamp {
        Stamp {
            value: self.stamp_value(),
            settled: self.settled_at(now()),
        }
    }

    /// Tells whether no change can hide behind equal time stamps.
    pub fn settled_at(&self, now: i128) -> bool {
        self.mtime.max(self.ctime) + TICK_NS < now
    }

    /// A hash of device, inode, size, mode, mtime and ctime.
    pub fn stamp_value(&self) -> u128 {
        // Two rounds of a 64-bit multiply-and-fold mix; accidental equality is what it has to avoid, not an attacker:
        // who can set mtime and ctime at will can do worse.
        let mut halves = [0x9e37_79b9_7f4a_7c15_u64, 0xc2b2_ae3d_27d4_eb4f_u64];
        let mtime = self.mtime as u128;
        let ctime = self.ctime as u128;
        let words = [
            self.device,
            self.inode,
            self.size,
            u64::from(self.mode),
            mtime as u64,
            ctime as u64,
            (mtime >> 64) as u64 ^ (ctime >> 64) as u64,
        ];
        for (i, half) in halves.iter_mut().enumerate() {
            for word in words {
                let wide = u128::from(*half ^ word) * u128::from(0xff51_afd7_ed55_8ccd_u64 - 2 * i as u64);
                *half = (wide as u64) ^ ((wide >> 64) as u64) ^ half.rotate_left(29);
            }
        }
        (u128::from(halves[0]) << 64) | u128::from(halves[1])
    }
}

/// Nanoseconds since 1970.
pub(crate) fn now() -> i128 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |d| d.as_nanos() as i128)
}
