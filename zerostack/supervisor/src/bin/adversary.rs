//! Hostile commands for the tests of `zero-supervisor`: `zero-adversary MODE TOKEN [ARGUMENT]`.
//!
//! TOKEN stands in the command line of every process so that a test can look for survivors. Not installed anywhere.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

/// The few raw calls a hostile program makes.
mod raw {
    pub(crate) fn fork() -> Option<bool> {
        // SAFETY: this program has one thread.
        match unsafe { libc::fork() } {
            0 => Some(true),
            pid if pid > 0 => Some(false),
            _ => None,
        }
    }

    /// A counter that all later forks share, or none if there is no memory for it.
    pub(crate) fn shared_counter() -> Option<&'static std::sync::atomic::AtomicU32> {
        let (protection, flags) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_ANONYMOUS,
        );
        // SAFETY: a fresh mapping of one page; nothing else refers to it.
        let page = unsafe { libc::mmap(std::ptr::null_mut(), 4096, protection, flags, -1, 0) };
        if page == libc::MAP_FAILED {
            return None;
        }
        // SAFETY: the page is zeroed, aligned, shared by all forks, and never unmapped.
        Some(unsafe { &*page.cast::<std::sync::atomic::AtomicU32>() })
    }

    pub(crate) fn new_session() {
        // SAFETY: takes nothing; failure (already a leader) is of no interest.
        unsafe { libc::setsid() };
    }

    pub(crate) fn ignore(signal: i32) {
        // SAFETY: ignoring is valid for any signal.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }

    pub(crate) fn exit() -> ! {
        // SAFETY: does not return.
        unsafe { libc::_exit(0) }
    }

    pub(crate) fn kill(pid: i32, signal: i32) -> bool {
        // SAFETY: takes integers.
        unsafe { libc::kill(pid, signal) == 0 }
    }

    pub(crate) fn stop_self() {
        // SAFETY: takes an integer.
        unsafe { libc::raise(libc::SIGSTOP) };
    }

    pub(crate) fn await_stop() {
        // SAFETY: the status is not asked for.
        unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WUNTRACED) };
    }

    pub(crate) fn nap() {
        // SAFETY: takes an integer.
        unsafe { libc::usleep(1000) };
    }
}

/// Forks of one bomb in all: several times the limit of its test, and little enough for the machine to bear if that fails.
const BOMB: u32 = 600;

/// Forks as long as the bomb has forks left.
fn bomb_fork(left: Option<&std::sync::atomic::AtomicU32>) -> Option<bool> {
    use std::sync::atomic::Ordering;
    let taken = left?.fetch_add(1, Ordering::Relaxed);
    if taken < BOMB { raw::fork() } else { None }
}

fn forever() -> ! {
    loop {
        std::thread::sleep(Duration::from_secs(1000));
    }
}

/// Whether a fork happened and this is the child.
fn child() -> bool {
    raw::fork() == Some(true)
}

fn say(text: &str) {
    let mut out = std::io::stdout();
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

fn parent_of(pid: i32) -> Option<i32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    text.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()
}

fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let argument = |at: usize| arguments.get(at).map_or("", String::as_str);
    match argument(1) {
        "sleep" => forever(),
        // A daemon by the book: fork, setsid, fork.
        "daemon" => {
            let Ok((reader, writer)) = rustix::pipe::pipe() else {
                std::process::exit(2)
            };
            if child() {
                raw::new_session();
                if child() {
                    say("up");
                    drop(writer);
                    forever();
                }
                raw::exit();
            }
            // Until the daemon is up.
            drop(writer);
            let _ = rustix::io::read(&reader, &mut [0_u8; 1]);
        }
        // Each intermediate ends at once; the last one executes itself with an empty environment, in its own session.
        "cleared" => {
            for _ in 0..5 {
                if !child() {
                    raw::exit();
                }
                raw::new_session();
            }
            let error = Command::new(argument(0))
                .args(["sleep", argument(2)])
                .env_clear()
                .exec();
            say(&error.to_string());
        }
        // Lanes that never stand still: fork, setsid, exit, and again from the child.
        "leapfrog" => {
            let lanes = argument(3).parse().unwrap_or(64);
            let begun = std::time::Instant::now();
            for _ in 0..lanes {
                if child() {
                    // Ends by itself should nobody end it.
                    while begun.elapsed() < Duration::from_secs(20) {
                        match raw::fork() {
                            Some(true) => raw::new_session(),
                            Some(false) => raw::exit(),
                            None => raw::nap(),
                        }
                    }
                    raw::exit();
                }
            }
            say("up");
            if argument(4) == "stay" {
                forever();
            }
        }
        // A leader that obeys TERM, with a grandchild that ignores it.
        "stubborn" => {
            if child() {
                if child() {
                    for signal in [libc::SIGTERM, libc::SIGHUP, libc::SIGINT] {
                        raw::ignore(signal);
                    }
                    say("up");
                    forever();
                }
                forever();
            }
            forever();
        }
        // A tree of stopped processes.
        "stopped" => {
            for _ in 0..4 {
                if child() {
                    raw::stop_self();
                    forever();
                }
                raw::await_stop();
            }
            say("up");
            raw::stop_self();
            forever();
        }
        // Everybody forks; after three seconds, should nobody have ended it, it ends itself and spares the machine.
        "bomb" => {
            let begun = std::time::Instant::now();
            let forks = raw::shared_counter();
            while begun.elapsed() < Duration::from_secs(3) {
                if bomb_fork(forks).is_none() {
                    raw::nap();
                }
            }
        }
        // The same, but every process leaves the process group first.
        "scattered-bomb" => {
            let begun = std::time::Instant::now();
            let forks = raw::shared_counter();
            while begun.elapsed() < Duration::from_secs(3) {
                match bomb_fork(forks) {
                    Some(true) => raw::new_session(),
                    Some(false) => {}
                    None => raw::nap(),
                }
            }
        }
        // Signals its supervisor, and the guard above it, then starts a daemon and goes on.
        "attack" => {
            let signal = argument(3).parse().unwrap_or(libc::SIGKILL);
            let supervisor = parent_of(std::process::id().cast_signed()).unwrap_or(0);
            let guard = parent_of(supervisor).unwrap_or(0);
            if child() {
                raw::new_session();
                forever();
            }
            let mut hit = Vec::new();
            for (name, pid) in [("guard", guard), ("supervisor", supervisor)] {
                let wanted = argument(4) == "both" || argument(4) == name;
                if wanted && pid > 0 && raw::kill(pid, signal) {
                    hit.push(name);
                }
            }
            say(&format!("hit {}", hit.join(",")));
            forever();
        }
        // Memory and processor time, then a code.
        "work" => {
            let memory = vec![1_u8; 64 << 20];
            let mut sum = 0_u64;
            while processor_time() < Duration::from_millis(100) {
                sum = sum.wrapping_add(u64::from(memory[(sum as usize) % memory.len()]));
            }
            std::process::exit(if sum == 0 { 1 } else { 7 });
        }
        // Reads standard input slowly and says how much there was.
        "slow" => {
            let mut total = 0_u64;
            let mut buffer = vec![0; 64 << 10];
            loop {
                match std::io::Read::read(&mut std::io::stdin(), &mut buffer) {
                    Ok(0) | Err(_) => break,
                    Ok(count) => total += count as u64,
                }
                raw::nap();
            }
            say(&total.to_string());
        }
        // Which descriptors are open, and is the lease among them.
        "descriptors" => {
            for entry in std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten() {
                let target = std::fs::read_link(entry.path()).unwrap_or_default();
                say(&format!("{} {}", entry.file_name().display(), target.display()));
            }
        }
        other => {
            let _ = writeln!(std::io::stderr(), "unknown mode {other}");
            std::process::exit(2);
        }
    }
}
