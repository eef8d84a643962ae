//! A PostgreSQL server of the test's own: in a temporary directory, on a socket there, gone with the test.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A running server.
pub struct Server {
    directory: tempfile::TempDir,
    child: Option<Child>,
}

/// Finds a program of PostgreSQL: beside Debian's, or on the path.
fn program(name: &str) -> PathBuf {
    let debian = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut found: Vec<_> = debian.map(|entry| entry.path().join("bin").join(name)).collect();
    let path = std::env::var_os("PATH").unwrap_or_default();
    found.extend(std::env::split_paths(&path).map(|directory| directory.join(name)));
    found
        .into_iter()
        .find(|program| program.is_file())
        .unwrap_or_else(|| panic!("`{name}` of PostgreSQL is needed: apt-get install postgresql"))
}

/// The server refuses to run as root: it then runs as `postgres`, or as `nobody`.
fn ordinary_user() -> Option<(u32, u32)> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let uid = status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap();
    if uid.split_whitespace().next() != Some("0") {
        return None;
    }
    let users = std::fs::read_to_string("/etc/passwd").unwrap();
    let of = |name: &str| {
        users.lines().find_map(|line| {
            let fields: Vec<_> = line.split(':').collect();
            (fields[0] == name).then(|| (fields[2].parse().unwrap(), fields[3].parse().unwrap()))
        })
    };
    Some(of("postgres").or_else(|| of("nobody")).unwrap())
}

fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir("/").env("LC_ALL", "C");
    if let Some((uid, gid)) = ordinary_user() {
        command.gid(gid).uid(uid);
    }
    command
}

impl Server {
    /// Makes a cluster and starts its server.
    pub fn start() -> Self {
        let directory = tempfile::Builder::new()
            .prefix("zerostack-pg-")
            .tempdir_in("/tmp")
            .unwrap();
        if let Some((uid, gid)) = ordinary_user() {
            std::os::unix::fs::chown(directory.path(), Some(uid), Some(gid)).unwrap();
        }
        let made = command(&program("initdb"))
            .args([
                "--no-sync",
                "--auth=trust",
                "--username=zero",
                "--encoding=UTF8",
                "--no-instructions",
                "-D",
            ])
            .arg(directory.path().join("data"))
            .output()
            .unwrap();
        assert!(made.status.success(), "{made:?}");
        let mut server = Self { directory, child: None };
        server.restart();
        server
    }

    /// Starts the server again.
    pub fn restart(&mut self) {
        // The shell ends the server when this process ends, however it ends.
        let script = "\"$@\" >\"$LOG\" 2>&1 & pid=$!; read wait; kill -QUIT $pid; wait $pid";
        let child = command(Path::new("/bin/sh"))
            .args(["-c", script, "sh"])
            .arg(program("postgres"))
            .arg("-D")
            .arg(self.directory.path().join("data"))
            .arg("-k")
            .arg(self.directory.path())
            .args([
                "-c",
                "listen_addresses=",
                "-c",
                "fsync=off",
                "-c",
                "shared_buffers=16MB",
            ])
            .env("LOG", self.directory.path().join("log"))
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        self.child = Some(child);
        let begun = Instant::now();
        loop {
            let ready = command(&program("pg_isready"))
                .args(["-q", "-h"])
                .arg(self.directory.path())
                .status()
                .unwrap();
            if ready.success() {
                return;
            }
            let log = || std::fs::read_to_string(self.directory.path().join("log")).unwrap_or_default();
            assert!(begun.elapsed() < Duration::from_secs(60), "{}", log());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Stops the server at once, as a crash would.
    pub fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // The line that the shell waits for.
            let _ = child.stdin.take().unwrap().write_all(b"\n");
            child.wait().unwrap();
        }
    }

    /// Where clients find it.
    pub fn address(&self) -> String {
        format!("host={} user=zero dbname=postgres", self.directory.path().display())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}
