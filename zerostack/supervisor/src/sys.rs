//! The few system calls that need `unsafe`, each behind a safe function.
//!
//! Owns nothing and decides nothing. `fork` here is only for the supervisor's own binary, which has one thread: the
//! child may then allocate and call anything, since no other thread can have held a lock.

use std::ffi::{CString, c_char, c_int};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// Who returned from [`fork`].
pub(crate) enum Fork {
    /// The new process.
    Child,
    /// The old one, with the number of the new.
    Parent(i32),
}

/// What [`reap`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reaped {
    /// There are children, none of which changed.
    Nothing,
    /// The kernel says that there is no child at all.
    NoChild,
    /// A child exited with a code.
    Exited(i32, i32),
    /// A signal ended a child.
    Signalled(i32, i32),
    /// A child was stopped by a signal.
    Stopped(i32),
}

fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// Forks the calling, single-threaded process.
pub(crate) fn fork() -> io::Result<Fork> {
    // SAFETY: callers run in the supervisor's binary, which has one thread, so the child finds every lock free.
    match check(unsafe { libc::fork() })? {
        0 => Ok(Fork::Child),
        pid => Ok(Fork::Parent(pid)),
    }
}

/// Forks into new namespaces (`CLONE_NEW*` flags).
pub(crate) fn fork_into(namespaces: c_int) -> io::Result<Fork> {
    let flags = libc::c_long::from(namespaces | libc::SIGCHLD);
    let none: libc::c_long = 0;
    // SAFETY: a null stack makes clone behave as fork; single thread as in `fork`. The argument order of the last two
    // differs between architectures, but all are zero. glibc keeps no cached pid (since 2.25).
    match unsafe { libc::syscall(libc::SYS_clone, flags, none, none, none, none) } {
        0 => Ok(Fork::Child),
        pid if pid > 0 => Ok(Fork::Parent(i32::try_from(pid).unwrap_or(i32::MAX))),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Forks into a cgroup (v2), given as a descriptor of its directory.
///
/// Moving a process in afterwards makes the kernel wait for every processor to pass by, up to some tens of milliseconds on
/// a quiet machine; a process born there costs nothing.
pub(crate) fn fork_into_cgroup(dir: std::os::fd::BorrowedFd<'_>) -> io::Result<Fork> {
    const INTO_CGROUP: u64 = 0x2_0000_0000;
    // SAFETY: all-zero bytes are a valid `clone_args`, which holds integers only; a zero is "none" for each.
    let mut arguments: libc::clone_args = unsafe { std::mem::zeroed() };
    arguments.flags = INTO_CGROUP;
    arguments.exit_signal = u64::try_from(libc::SIGCHLD).unwrap_or_default();
    arguments.cgroup = u64::try_from(dir.as_raw_fd()).unwrap_or_default();
    // SAFETY: the arguments are valid for the call and of the size given; without a stack it behaves as fork. Callers have
    // one thread, as in `fork`.
    match unsafe { libc::syscall(libc::SYS_clone3, &raw const arguments, size_of::<libc::clone_args>()) } {
        0 => Ok(Fork::Child),
        pid if pid > 0 => Ok(Fork::Parent(i32::try_from(pid).unwrap_or(i32::MAX))),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Ends the calling process at once, without destructors or exit handlers.
pub(crate) fn exit(code: i32) -> ! {
    // SAFETY: _exit takes any integer and does not return.
    unsafe { libc::_exit(code) }
}

/// Reaps one child (`-1`: any); with `wait` it blocks until one changes, stops included.
pub(crate) fn reap(pid: i32, wait: bool) -> io::Result<Reaped> {
    let mut status = 0;
    let options = if wait { libc::WUNTRACED } else { libc::WNOHANG };
    loop {
        // SAFETY: the status pointer is valid for the call; no usage is asked for.
        match check(unsafe { libc::wait4(pid, &raw mut status, options | libc::__WALL, std::ptr::null_mut()) }) {
            Ok(0) => return Ok(Reaped::Nothing),
            Ok(pid) if libc::WIFEXITED(status) => return Ok(Reaped::Exited(pid, libc::WEXITSTATUS(status))),
            Ok(pid) if libc::WIFSIGNALED(status) => return Ok(Reaped::Signalled(pid, libc::WTERMSIG(status))),
            Ok(pid) => return Ok(Reaped::Stopped(pid)),
            Err(error) if error.raw_os_error() == Some(libc::ECHILD) => return Ok(Reaped::NoChild),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// CPU microseconds and largest resident bytes of all children reaped so far, and of those they reaped.
pub(crate) fn children_usage() -> (u64, u64) {
    // SAFETY: all-zero bytes are a valid `rusage`, which holds integers only.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is valid for the call; on failure the zeroes stay.
    unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) };
    let micros = |time: libc::timeval| {
        u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000 + u64::try_from(time.tv_usec).unwrap_or(0)
    };
    // Linux gives the resident set in KiB.
    (
        micros(usage.ru_utime) + micros(usage.ru_stime),
        u64::try_from(usage.ru_maxrss).unwrap_or(0) * 1024,
    )
}

/// Makes the calling process the reaper of its orphaned descendants, and verifies that it is.
pub(crate) fn become_subreaper() -> io::Result<()> {
    // SAFETY: this prctl takes an integer.
    check(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1_u64, 0_u64, 0_u64, 0_u64) })?;
    let mut is: c_int = 0;
    // SAFETY: this prctl writes one int through a valid pointer.
    check(unsafe { libc::prctl(libc::PR_GET_CHILD_SUBREAPER, &raw mut is, 0_u64, 0_u64, 0_u64) })?;
    if is == 1 {
        Ok(())
    } else {
        Err(io::Error::other("the kernel did not make this process a subreaper"))
    }
}

/// Asks for a signal when the (single-threaded) parent ends; 0 takes it back.
pub(crate) fn die_with_parent(signal: c_int) -> io::Result<()> {
    // SAFETY: this prctl takes an integer.
    check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::c_long::from(signal), 0_u64, 0_u64, 0_u64) }).map(drop)
}

/// Lets (or does not let) processes of the same user trace this one and open its `/proc` files.
pub(crate) fn set_dumpable(dumpable: bool) {
    // SAFETY: this prctl takes an integer; failure leaves the default, which is only less strict.
    unsafe { libc::prctl(libc::PR_SET_DUMPABLE, libc::c_long::from(dumpable), 0_u64, 0_u64, 0_u64) };
}

/// Names the calling process for `ps`.
pub(crate) fn set_name(name: &std::ffi::CStr) {
    // SAFETY: the pointer is a NUL-terminated string; the kernel copies at most 16 bytes.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr(), 0_u64, 0_u64, 0_u64) };
}

/// Blocks every signal that can be blocked.
pub(crate) fn block_signals() -> io::Result<()> {
    // SAFETY: the set is initialised by sigfillset before it is read.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        check(libc::sigprocmask(
            libc::SIG_SETMASK,
            &raw const all,
            std::ptr::null_mut(),
        ))?;
    }
    Ok(())
}

/// Gives every signal its default action and unblocks all: what a command may expect.
pub(crate) fn default_signals() {
    // SAFETY: SIG_DFL is valid for every signal; the kernel refuses KILL, STOP and the C library its own two, which are
    // default anyway. The set is initialised before it is read.
    unsafe {
        for signal in 1..=64 {
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
    }
}

/// A descriptor that becomes readable when a child changes (the signal must be blocked).
pub(crate) fn child_signal_fd() -> io::Result<OwnedFd> {
    // SAFETY: the set is initialised before it is read; the returned descriptor is new and owned by nobody else.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        let fd = check(libc::signalfd(
            -1,
            &raw const set,
            libc::SFD_CLOEXEC | libc::SFD_NONBLOCK,
        ))?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// Takes ownership of an inherited descriptor.
///
/// # Safety
/// `fd` must be open and owned by nobody else in this process.
pub(crate) unsafe fn adopt(fd: RawFd) -> OwnedFd {
    // SAFETY: the caller's promise.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

/// Closes every descriptor from `first` on.
///
/// # Safety
/// No value of this process may own a descriptor from `first` on.
pub(crate) unsafe fn close_from(first: u32) {
    // SAFETY: the caller's promise; an old kernel without the call leaves them open, close-on-exec or not.
    unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, 0_u32) };
}

/// Makes every descriptor from `first` on close at exec.
pub(crate) fn cloexec_from(first: u32) {
    // SAFETY: only a flag of descriptors is set.
    unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
}

/// Duplicates `from` onto the number `to`, which then survives exec.
pub(crate) fn duplicate_onto(from: RawFd, to: RawFd) -> io::Result<()> {
    // SAFETY: dup2 takes integers; replacing a standard stream before exec is what the caller wants.
    check(unsafe { libc::dup2(from, to) }).map(drop)
}

/// Moves the calling process, which has one thread, into new namespaces (`CLONE_NEW*` flags).
pub(crate) fn unshare(namespaces: c_int) -> io::Result<()> {
    // SAFETY: takes an integer; only namespaces are changed.
    check(unsafe { libc::unshare(namespaces) }).map(drop)
}

/// Moves the calling process, which has one thread, into the namespace of a descriptor.
pub(crate) fn join_namespace(fd: std::os::fd::BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: takes an open descriptor and an integer; only namespaces are changed.
    check(unsafe { libc::setns(fd.as_raw_fd(), 0) }).map(drop)
}

/// A new session, without a terminal.
pub(crate) fn new_session() -> io::Result<()> {
    // SAFETY: takes nothing.
    check(unsafe { libc::setsid() }).map(drop)
}

/// Replaces the process, looking `argv[0]` up in the `PATH` of `env`; returns only the error.
pub(crate) fn exec(argv: &[CString], env: &[CString]) -> io::Error {
    let pointers = |strings: &[CString]| -> Vec<*const c_char> {
        strings
            .iter()
            .map(|string| string.as_ptr())
            .chain([std::ptr::null()])
            .collect()
    };
    let (arguments, environment) = (pointers(argv), pointers(env));
    // SAFETY: both arrays end with a null pointer and their strings outlive the call. `environ` is replaced so that the
    // lookup uses the command's own PATH; this process has one thread and reads the environment no more.
    unsafe {
        environ = environment.as_ptr();
        libc::execvp(arguments[0], arguments.as_ptr());
    }
    io::Error::last_os_error()
}

/// Sends a signal to a child that was not reaped yet, whose number therefore cannot have been reused.
pub(crate) fn signal_child(pid: i32, signal: c_int) {
    // SAFETY: takes integers.
    unsafe { libc::kill(pid, signal) };
}

unsafe extern "C" {
    /// The C library's environment; the libc crate does not name it.
    static mut environ: *const *const c_char;
}

/// Signals the whole process group of the process behind a pidfd, atomically against forks (Linux 6.9; nothing happens
/// before). The group may have lost its leader: the descriptor still means that group and no other.
pub(crate) fn signal_group(pidfd: std::os::fd::BorrowedFd<'_>, signal: c_int) {
    use std::os::fd::AsRawFd;
    const PROCESS_GROUP: libc::c_uint = 1 << 2;
    let none: *const libc::siginfo_t = std::ptr::null();
    // SAFETY: takes integers and a null pointer. A refusal leaves the work to the caller's other ways.
    unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            pidfd.as_raw_fd(),
            signal,
            none,
            PROCESS_GROUP,
        )
    };
}

/// Lets the calling process run before all ordinary ones, its children excepted; only root may.
pub(crate) fn run_first() {
    // SAFETY: all-zero bytes are a valid `sched_param`, which holds integers only.
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    parameters.sched_priority = 1;
    // SAFETY: the pointer is valid for the call; failure leaves the ordinary order.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &raw const parameters) };
}

/// The version of the kernel's Landlock interface; 0 where there is none.
pub(crate) fn landlock_abi() -> u32 {
    const VERSION: libc::c_uint = 1;
    // SAFETY: with a null attribute and this flag the call only returns a number.
    let abi = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<u8>(),
            0_usize,
            VERSION,
        )
    };
    u32::try_from(abi).unwrap_or(0)
}
