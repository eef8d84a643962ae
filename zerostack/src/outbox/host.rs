//! Which process holds a lease, and whether it is dead for certain.

use serde::{Deserialize, Serialize};
use zero_supervisor::Identity;

/// A process, as far as others can tell whether it lives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HostIdentity {
    /// The boot of its machine and its PID namespace: what numbers of processes mean something in.
    pub place: String,
    /// The process.
    pub process: Identity,
}

impl HostIdentity {
    /// The calling process.
    pub fn current() -> std::io::Result<Self> {
        Ok(Self {
            place: place(),
            process: Identity::current()?,
        })
    }

    /// Whether the process has certainly ended. A process elsewhere is never known to have: its lease must lapse.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        !self.place.is_empty() && self.place == place() && !self.process.is_alive()
    }
}

fn place() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let namespace = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    match boot.trim() {
        // Without it two machines could look like one.
        "" => String::new(),
        boot => format!("{boot}/{}", namespace.display()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_process_of_the_same_place_is_known_to_be_dead() {
        let me = HostIdentity::current().unwrap();
        assert!(!me.is_dead());
        let mut child = std::process::Command::new("sleep").arg("100").spawn().unwrap();
        let process = Identity::of(child.id().cast_signed()).unwrap();
        let it = HostIdentity { process, ..me };
        assert!(!it.is_dead());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(it.is_dead());
        let elsewhere = HostIdentity {
            place: "another machine".into(),
            ..it
        };
        assert!(!elsewhere.is_dead());
    }
}
