//! Words for why a private view of a workspace cannot be mounted: the kernel's error alone says little.

use std::fs;
use std::path::Path;

/// `statfs` type of an overlay, as containers have as their root.
const OVERLAY: rustix::fs::FsWord = 0x794c_7630;

/// What of this machine is known to stand in the way of an overlay whose upper layer lies in `scratch`.
pub(crate) fn obstacles(scratch: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let setting = |file: &str| fs::read_to_string(format!("/proc/sys/{file}")).map(|text| text.trim().to_owned());
    if !rustix::process::geteuid().is_root() {
        for (file, forbids) in [
            ("user/max_user_namespaces", "0"),
            ("kernel/unprivileged_userns_clone", "0"),
            ("kernel/apparmor_restrict_unprivileged_userns", "1"),
        ] {
            if setting(file).is_ok_and(|value| value == forbids) {
                found.push(format!(
                    "{} is {forbids}: users may not make namespaces",
                    file.replace('/', ".")
                ));
            }
        }
    }
    if setting("user/max_mnt_namespaces").is_ok_and(|value| value == "0") {
        found.push("user.max_mnt_namespaces is 0".into());
    }
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    if status
        .lines()
        .any(|line| line.strip_prefix("Seccomp:").is_some_and(|mode| mode.trim() == "2"))
    {
        found.push("a seccomp filter is in force, as in containers, and may forbid mounts".into());
    }
    if rustix::fs::statfs(scratch).is_ok_and(|kind| kind.f_type == OVERLAY) {
        found.push("the store lies on an overlay itself: put it on another file system".into());
    } else if let Ok(directory) = fs::File::open(scratch)
        && rustix::fs::fgetxattr(&directory, "user.overlay.probe", &mut [0_u8; 1]) == Err(rustix::io::Errno::NOTSUP)
    {
        found.push("the store's file system has no extended attributes of users".into());
    }
    found
}
