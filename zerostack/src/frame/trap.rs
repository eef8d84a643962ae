//! Keeps the process alive when V8 crashes on purpose.
//!
//! V8 ends the process with a breakpoint instruction (`SIGTRAP`) when it meets what it cannot go on with: an array longer than
//! it can make (`"x".padEnd(1.4e8).split("")`), a broken invariant. No hook of V8 comes before it. A frame's thread is parked
//! instead, as when V8 is out of memory for good: the handler says so in an atomic that the watcher polls, and never returns.
//! Breakpoints of any other thread go to the handler that was there before.
//!
//! Owns the disposition of `SIGTRAP`, and nothing else of signals.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use super::limits::Shared;

thread_local! {
    /// The frame of this thread. Without a destructor and with a constant start: reading it in a handler runs no code.
    static FRAME: Cell<*const Shared> = const { Cell::new(ptr::null()) };
}

/// The disposition from before, leaked once.
static BEFORE: AtomicPtr<libc::sigaction> = AtomicPtr::new(ptr::null_mut());

/// Marks the calling thread as a frame's while it lives.
pub(super) struct Marked<'a> {
    frame: PhantomData<&'a Shared>,
    /// Belongs to its thread.
    thread: PhantomData<*const ()>,
}

impl<'a> Marked<'a> {
    /// `shared` learns of a crash of this thread from now on. [`install`] must have been called for it to matter.
    pub(super) fn new(shared: &'a Shared) -> Self {
        FRAME.set(ptr::from_ref(shared));
        // A blocked signal of a thread's own instruction ends the process without asking anybody.
        let mut set = MaybeUninit::uninit();
        // SAFETY: `sigemptyset` initialises the set, which outlives the calls; the mask is this thread's own.
        unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            libc::sigaddset(set.as_mut_ptr(), libc::SIGTRAP);
            libc::pthread_sigmask(libc::SIG_UNBLOCK, set.as_ptr(), ptr::null_mut());
        }
        Self {
            frame: PhantomData,
            thread: PhantomData,
        }
    }
}

impl Drop for Marked<'_> {
    fn drop(&mut self) {
        FRAME.set(ptr::null());
    }
}

/// Installs the handler for the process. Called once.
pub(super) fn install() {
    let mut before = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: a null action asks only; `before` is written when the call succeeds.
    let known = unsafe { libc::sigaction(libc::SIGTRAP, ptr::null(), before.as_mut_ptr()) } == 0;
    if !known {
        return;
    }
    // SAFETY: the call above has written it.
    let before = Box::new(unsafe { before.assume_init() });
    // Published first: the handler may run at once.
    BEFORE.store(Box::into_raw(before), Ordering::Release);
    // SAFETY: an all-zero action is a valid one to fill in. The handler has the signature that SA_SIGINFO asks for and uses
    // async-signal-safe functions only. With every signal masked, a parked thread serves no handler of the host.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = trapped as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        libc::sigfillset(&raw mut action.sa_mask);
        libc::sigaction(libc::SIGTRAP, &raw const action, ptr::null_mut());
    }
}

/// The handler: atomics, a plain thread-local and system calls.
extern "C" fn trapped(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the system gives a valid `siginfo_t`. Codes above zero are the kernel's own: an instruction, not `kill`.
    let by_instruction = unsafe { (*info).si_code } > 0;
    let frame = FRAME.get();
    if by_instruction && !frame.is_null() {
        // SAFETY: `Marked` borrows the frame's `Shared` for as long as the pointer stands, and this thread never goes on.
        unsafe { (*frame).crashed.store(true, Ordering::Release) };
        park();
    }
    if by_instruction && is_helper_of_v8() {
        park();
    }
    chain(signal, info, context);
}

fn park() -> ! {
    loop {
        // SAFETY: `pause` has no conditions. All signals are masked, so it does not return.
        unsafe { libc::pause() };
    }
}

/// V8 names its threads "V8 DefaultWorkerThreads…"; the system keeps fifteen bytes.
fn is_helper_of_v8() -> bool {
    let mut name = [0_u8; 16];
    // SAFETY: the call writes at most sixteen bytes.
    let failed = unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    failed == 0 && name.starts_with(b"V8 DefaultWorke")
}

/// Does what would have been done without this handler.
fn chain(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let before = BEFORE.load(Ordering::Acquire);
    if before.is_null() {
        return;
    }
    // SAFETY: leaked by `install`, never written again. A disposition that is neither of the two constants is a function of
    // the signature that its flags tell.
    unsafe {
        let handler = (*before).sa_sigaction;
        if handler == libc::SIG_DFL || handler == libc::SIG_IGN {
            // Delivered as soon as this handler returns, and then by the old rule.
            libc::sigaction(signal, before, ptr::null_mut());
            libc::raise(signal);
        } else if (*before).sa_flags & libc::SA_SIGINFO != 0 {
            let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) =
                std::mem::transmute::<usize, _>(handler);
            handler(signal, info, context);
        } else {
            let handler: extern "C" fn(c_int) = std::mem::transmute::<usize, _>(handler);
            handler(signal);
        }
    }
}
