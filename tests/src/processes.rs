//! Finding a command's supervisor from outside, as an administrator would.

use std::fs;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};

fn command_line(process: &Path) -> Option<String> {
    let raw = fs::read(process.join("cmdline")).ok()?;
    Some(String::from_utf8_lossy(&raw).trim_end_matches('\0').replace('\0', " "))
}

/// Parent's process id: the second field after the name, which ends with the last parenthesis.
fn parent(process: &Path) -> Option<i32> {
    let stat = fs::read_to_string(process.join("stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// Kills the outermost supervisor process above the one with this command line; tells whether there was one.
pub(crate) fn kill_supervisor_of(command: &str) -> bool {
    let proc = Path::new("/proc");
    let Ok(entries) = fs::read_dir(proc) else { return false };
    let running = entries
        .flatten()
        .map(|entry| entry.path())
        .find(|process| command_line(process).as_deref() == Some(command));
    let mut above = running.as_deref().and_then(parent);
    let mut supervisor = None;
    while let Some(id) = above.filter(|id| *id > 1) {
        let process = proc.join(id.to_string());
        if command_line(&process).is_some_and(|line| line.contains("zero-supervisor")) {
            supervisor = Pid::from_raw(id);
        }
        above = parent(&process);
    }
    supervisor.is_some_and(|pid| kill_process(pid, Signal::KILL).is_ok())
}
