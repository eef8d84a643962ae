//! Heap and buffer limits, and what happens when V8 is out of memory for good.
//!
//! The callbacks here run inside V8, on the frame's thread, at moments when nothing may be allocated on its heap: they
//! touch atomics and locks of [`Shared`] only.

use std::alloc::{Layout, alloc, alloc_zeroed, dealloc};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::ffi::{c_char, c_void};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use deno_core::v8;
use zero_contracts::Operation;

use super::spec::{ConsoleLevel, ConsoleLine, FrameBudgets};
use super::watch::FromFrame;

/// The threads of frames that were given up.
static GIVEN_UP: Mutex<Vec<JoinHandle<()>>> = Mutex::new(Vec::new());

/// Returns how many frames of this process were given up and have not ended. The threads of those that ran out of memory for
/// good are parked for ever, and their memory is lost until the process ends; one that was late ends when the native function
/// of V8 that made it late returns.
pub fn frames_given_up() -> usize {
    let mut given_up = GIVEN_UP.lock().unwrap_or_else(PoisonError::into_inner);
    let ended: Vec<_> = given_up.extract_if(.., |frame| frame.is_finished()).collect();
    let left = given_up.len();
    drop(given_up);
    for frame in ended {
        // Whether it panicked at last matters to nobody: its cell has been answered for.
        let _ = frame.join();
    }
    left
}

pub(super) fn leave_behind(frame: JoinHandle<()>) {
    GIVEN_UP.lock().unwrap_or_else(PoisonError::into_inner).push(frame);
}

/// Why a frame was stopped from outside of its own program. The first reason stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Trip {
    None = 0,
    Cancelled = 1,
    Deadline = 2,
    Cpu = 3,
    Heap = 4,
    /// V8 ended itself: see `trap`.
    Crash = 5,
}

/// What the frame's thread and its watcher share.
pub(super) struct Shared {
    pub budgets: FrameBudgets,
    /// When the cell must have settled.
    pub deadline: Option<Instant>,
    trip: AtomicU8,
    /// Set when the cell has settled: no call is admitted after it.
    pub closed: AtomicBool,
    /// Set by the handler of `trap` when the thread is parked for ever.
    pub crashed: AtomicBool,
    pub handle: OnceLock<v8::IsolateHandle>,
    pub stop: tokio::sync::Notify,
    pub heap_peak: AtomicUsize,
    pub buffers: AtomicUsize,
    pub buffers_peak: AtomicUsize,
    /// Buffer allocations refused so far, and how many of them the heap's limit callback has seen.
    pub buffers_refused: AtomicUsize,
    buffers_refused_seen: AtomicUsize,
    /// Heap in use before the latest collection.
    heap_last: AtomicUsize,
    heap_granted: AtomicBool,
    pub calls: [AtomicU64; Operation::ALL.len()],
    pub console: Mutex<Console>,
}

impl Shared {
    pub(super) fn new(budgets: FrameBudgets, deadline: Option<Instant>) -> Self {
        let console = Mutex::new(Console {
            half: budgets.console_bytes / 2,
            ..Console::default()
        });
        Self {
            budgets,
            deadline,
            trip: AtomicU8::new(Trip::None as u8),
            closed: AtomicBool::new(false),
            crashed: AtomicBool::new(false),
            handle: OnceLock::new(),
            stop: tokio::sync::Notify::new(),
            heap_peak: AtomicUsize::new(0),
            buffers: AtomicUsize::new(0),
            buffers_peak: AtomicUsize::new(0),
            buffers_refused: AtomicUsize::new(0),
            buffers_refused_seen: AtomicUsize::new(0),
            heap_last: AtomicUsize::new(0),
            heap_granted: AtomicBool::new(false),
            calls: Default::default(),
            console,
        }
    }

    /// Stops the frame for a reason; later reasons are ignored.
    pub(super) fn trip(&self, why: Trip) {
        let _ = self
            .trip
            .compare_exchange(Trip::None as u8, why as u8, Ordering::SeqCst, Ordering::SeqCst);
        if let Some(handle) = self.handle.get() {
            handle.terminate_execution();
        }
        self.stop.notify_one();
    }

    /// Why the frame must not succeed although its program has ended: a long native call may not have noticed its stop, and
    /// the watcher may be late.
    pub(super) fn too_late(&self) -> Option<Trip> {
        let late = || self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        self.tripped().or_else(|| late().then_some(Trip::Deadline))
    }

    /// Whether so many bytes of heap in use are too many. One large young object passes V8's own limit.
    pub(super) fn is_over_heap(&self, used: usize) -> bool {
        used > self.budgets.heap_bytes.max(8 << 20).saturating_add(YOUNG)
    }

    /// Asks the frame's thread to look at its heap, at the next place where its JavaScript can be interrupted.
    pub(super) fn ask_for_heap(self: &Arc<Self>) {
        if let Some(handle) = self.handle.get() {
            // The watcher keeps `self` beyond the thread, so beyond its isolate; a destroyed isolate is asked nothing.
            handle.request_interrupt(look_at_heap, Arc::as_ptr(self).cast_mut().cast());
        }
    }

    pub(super) fn tripped(&self) -> Option<Trip> {
        match self.trip.load(Ordering::SeqCst) {
            1 => Some(Trip::Cancelled),
            2 => Some(Trip::Deadline),
            3 => Some(Trip::Cpu),
            4 => Some(Trip::Heap),
            5 => Some(Trip::Crash),
            _ => None,
        }
    }

    pub(super) fn calls(&self) -> BTreeMap<Operation, u64> {
        let counts = self.calls.iter().map(|count| count.load(Ordering::Acquire));
        Operation::ALL
            .into_iter()
            .zip(counts)
            .filter(|(_, count)| *count > 0)
            .collect()
    }

    pub(super) fn write_console(&self, level: ConsoleLevel, text: String) {
        self.console
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(ConsoleLine { level, text });
    }
}

/// Console lines within a budget: the first ones and the last ones.
#[derive(Default)]
pub(super) struct Console {
    half: usize,
    head: Vec<ConsoleLine>,
    head_bytes: usize,
    tail: VecDeque<ConsoleLine>,
    tail_bytes: usize,
    omitted: u64,
}

impl Console {
    fn push(&mut self, line: ConsoleLine) {
        // A line costs something even when it is empty.
        let cost = line.text.len() + 16;
        if self.tail.is_empty() && self.omitted == 0 && self.head_bytes + cost <= self.half {
            self.head_bytes += cost;
            self.head.push(line);
            return;
        }
        self.tail_bytes += cost;
        self.tail.push_back(line);
        while self.tail_bytes > self.half {
            let Some(first) = self.tail.pop_front() else { break };
            self.tail_bytes -= first.text.len() + 16;
            self.omitted += 1;
        }
    }

    pub(super) fn take(&mut self) -> (Vec<ConsoleLine>, u64) {
        let mut lines = std::mem::take(&mut self.head);
        lines.extend(std::mem::take(&mut self.tail));
        (lines, self.omitted)
    }
}

/// The most that V8 keeps beyond the old generation's limit in the ordinary course: the young generation.
const YOUNG: usize = 64 << 20;

/// Extra heap that a frame gets once, at its limit, so that it can unwind. A native that is growing something (a table
/// doubles) does not see the termination before it has what it asked for, so the grant is as much again, within bounds; a
/// native that never looks spends it and is given up.
fn heap_grant(limit: usize) -> usize {
    limit.clamp(32 << 20, 256 << 20)
}

/// Makes the isolate's parameters: heap limits and the counting allocator.
pub(super) fn create_params(shared: &Arc<Shared>) -> v8::CreateParams {
    let heap = shared.budgets.heap_bytes.max(8 << 20);
    // SAFETY: the handle is a reference count owned by the allocator and given back in `drop_handle`; the table's functions
    // take exactly this type.
    let allocator = unsafe { v8::new_rust_allocator(Arc::into_raw(shared.clone()), &ALLOCATOR) };
    v8::CreateParams::default()
        .heap_limits(0, heap)
        .array_buffer_allocator(allocator.make_shared())
}

/// Installs the heap callbacks. `shared` must outlive the isolate: the driver keeps it in the same thread.
pub(super) fn install(isolate: &mut v8::Isolate, shared: &Arc<Shared>, to_watcher: Sender<FromFrame>) {
    let data = Arc::as_ptr(shared).cast_mut().cast::<c_void>();
    isolate.add_near_heap_limit_callback(near_heap_limit, data);
    isolate.add_gc_prologue_callback(before_collection, data, v8::GCType::kGCTypeAll);
    isolate.set_oom_error_handler(out_of_memory);
    PARK.with(|park| *park.borrow_mut() = Some(to_watcher));
}

unsafe extern "C" fn near_heap_limit(data: *mut c_void, current: usize, _initial: usize) -> usize {
    // SAFETY: `data` is the `Shared` that `install` was given; the frame's thread keeps it alive beyond the isolate.
    let shared = unsafe { &*data.cast::<Shared>() };
    // V8 also asks on the last try to make room for an array buffer; that allocation then fails in an ordinary way.
    let refused = shared.buffers_refused.load(Ordering::Acquire);
    let seen = shared.buffers_refused_seen.swap(refused, Ordering::AcqRel);
    if refused > seen && shared.heap_last.load(Ordering::Acquire) < current / 2 {
        return current;
    }
    shared.trip(Trip::Heap);
    if shared.heap_granted.swap(true, Ordering::AcqRel) {
        current
    } else {
        // One large young object may be past the limit already. It has its memory: with room to keep it the cell ends in the
        // ordinary way, and gives it back.
        let excess = shared.heap_last.load(Ordering::Acquire).saturating_sub(current);
        current + heap_grant(current).max(excess.saturating_add(32 << 20))
    }
}

unsafe extern "C" fn before_collection(
    isolate: v8::UnsafeRawIsolatePtr,
    _kind: v8::GCType,
    _flags: v8::GCCallbackFlags,
    data: *mut c_void,
) {
    // SAFETY: as in `near_heap_limit`; the isolate is the live one that calls. Reading statistics allocates nothing.
    let (shared, mut isolate) = unsafe { (&*data.cast::<Shared>(), v8::Isolate::from_raw_isolate_ptr(isolate)) };
    let used = isolate.get_heap_statistics().used_heap_size();
    shared.heap_peak.fetch_max(used, Ordering::AcqRel);
    shared.heap_last.store(used, Ordering::Release);
    // V8 makes one large young object past any limit. It ends the cell as soon as somebody sees it.
    if shared.is_over_heap(used) {
        shared.trip(Trip::Heap);
    }
}

unsafe extern "C" fn look_at_heap(isolate: v8::UnsafeRawIsolatePtr, data: *mut c_void) {
    // SAFETY: as in `before_collection`: the isolate is the live one that calls, and `ask_for_heap` gave its `Shared`.
    let (shared, mut isolate) = unsafe { (&*data.cast::<Shared>(), v8::Isolate::from_raw_isolate_ptr(isolate)) };
    if shared.is_over_heap(isolate.get_heap_statistics().used_heap_size()) {
        shared.trip(Trip::Heap);
    }
}

thread_local! {
    /// How the frame of this thread tells its watcher that it is lost.
    static PARK: RefCell<Option<Sender<FromFrame>>> = const { RefCell::new(None) };
}

/// V8 aborts the process when this returns, so it does not: the thread sleeps for ever and the frame is given up.
unsafe extern "C" fn out_of_memory(_location: *const c_char, _details: &v8::OomDetails) {
    // A second failure while the watcher is told must not recurse.
    if let Some(to_watcher) = PARK.with(|park| park.try_borrow_mut().ok().and_then(|mut park| park.take())) {
        let _ = to_watcher.send(FromFrame::OutOfMemory);
    }
    loop {
        std::thread::park();
    }
}

static ALLOCATOR: v8::RustAllocatorVtable<Shared> = v8::RustAllocatorVtable {
    allocate,
    allocate_uninitialized,
    free,
    drop: drop_handle,
};

/// Array buffers are aligned as `malloc` would.
const ALIGN: usize = 16;

fn charge(shared: &Shared, bytes: usize) -> bool {
    let limit = shared.budgets.array_buffer_bytes;
    let charged = shared.buffers.fetch_update(Ordering::AcqRel, Ordering::Acquire, |now| {
        now.checked_add(bytes).filter(|sum| *sum <= limit)
    });
    match charged {
        Ok(before) => {
            shared.buffers_peak.fetch_max(before + bytes, Ordering::AcqRel);
            true
        }
        Err(_) => {
            shared.buffers_refused.fetch_add(1, Ordering::AcqRel);
            false
        }
    }
}

unsafe extern "C" fn allocate(shared: &Shared, bytes: usize) -> *mut c_void {
    // SAFETY: the layout has a size above zero.
    obtain(shared, bytes, |layout| unsafe { alloc_zeroed(layout) })
}

unsafe extern "C" fn allocate_uninitialized(shared: &Shared, bytes: usize) -> *mut c_void {
    // SAFETY: the layout has a size above zero.
    obtain(shared, bytes, |layout| unsafe { alloc(layout) })
}

fn obtain(shared: &Shared, bytes: usize, how: impl Fn(Layout) -> *mut u8) -> *mut c_void {
    let Ok(layout) = Layout::from_size_align(bytes.max(1), ALIGN) else {
        return ptr::null_mut();
    };
    if !charge(shared, bytes) {
        return ptr::null_mut();
    }
    let memory = how(layout);
    if memory.is_null() {
        shared.buffers.fetch_sub(bytes, Ordering::AcqRel);
    }
    memory.cast()
}

unsafe extern "C" fn free(shared: &Shared, data: *mut c_void, bytes: usize) {
    let Ok(layout) = Layout::from_size_align(bytes.max(1), ALIGN) else {
        return;
    };
    // SAFETY: V8 gives back what `allocate` gave it, with the size it asked for.
    unsafe { dealloc(data.cast(), layout) };
    shared.buffers.fetch_sub(bytes, Ordering::AcqRel);
}

unsafe extern "C" fn drop_handle(shared: *const Shared) {
    // SAFETY: the count that `create_params` gave away.
    drop(unsafe { Arc::from_raw(shared) });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_console_keeps_the_first_and_the_last_lines() {
        let mut console = Console {
            half: 100,
            ..Console::default()
        };
        for n in 0..50 {
            console.push(ConsoleLine {
                level: ConsoleLevel::Log,
                text: format!("{n:04}"),
            });
        }
        let (lines, omitted) = console.take();
        let texts: Vec<_> = lines.iter().map(|line| line.text.as_str()).collect();
        assert_eq!(
            texts,
            [
                "0000", "0001", "0002", "0003", "0004", "0045", "0046", "0047", "0048", "0049"
            ]
        );
        assert_eq!(omitted, 40);
    }

    #[test]
    fn buffers_are_counted_and_refused() {
        let budgets = FrameBudgets {
            array_buffer_bytes: 1000,
            ..FrameBudgets::default()
        };
        let shared = Shared::new(budgets, None);
        assert!(charge(&shared, 600) && !charge(&shared, 401) && charge(&shared, 400));
        assert_eq!(shared.buffers_peak.load(Ordering::Acquire), 1000);
        assert!(!charge(&shared, usize::MAX));
    }
}
