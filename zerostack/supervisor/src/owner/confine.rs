//! Landlock: what the command may write, and whom it may signal.
//!
//! Everything that changes a file is handled and allowed beneath the given paths alone; reading and executing stay
//! free. Metadata calls (chmod, chown, utime, xattr) are outside what Landlock can see. Signals are scoped to the tree
//! where the kernel can (ABI 6, Linux 6.12), so that a command cannot reach its own supervisor or the host.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;

use landlock::{
    ABI, AccessFs, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetStatus, Scope,
};

use rustix::fs::FileType;

/// The newest interface this program was written for; an older kernel gives what it has.
const NEWEST: ABI = ABI::V6;

/// First interface that scopes signals.
pub(super) const SCOPES_SIGNALS: u32 = 6;

/// Confines the calling process and all its descendants for ever.
pub(super) fn restrict(writable: &[Vec<u8>]) -> io::Result<()> {
    let write = AccessFs::from_write(NEWEST);
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(write)
        .map_err(io::Error::other)?
        .scope(Scope::Signal)
        .map_err(io::Error::other)?
        .create()
        .map_err(io::Error::other)?;
    for path in writable {
        let Ok(fd) = PathFd::new(OsStr::from_bytes(path)) else {
            // What does not exist cannot be named to the kernel.
            continue;
        };
        let is_dir = rustix::fs::fstat(&fd).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_dir());
        let rights = if is_dir {
            write
        } else {
            write & AccessFs::from_file(NEWEST)
        };
        rules = rules.add_rule(PathBeneath::new(fd, rights)).map_err(io::Error::other)?;
    }
    match rules.restrict_self().map_err(io::Error::other)?.ruleset {
        RulesetStatus::NotEnforced => Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP)),
        RulesetStatus::PartiallyEnforced | RulesetStatus::FullyEnforced => Ok(()),
    }
}
