//! Keeps what all isolates of the process share.
//!
//! V8 has one read-only heap for the isolates that live at one time, a sixth of what a frame costs; it goes with the last of
//! them, so that frames one after another would each make it anew. One isolate that no cell ever sees keeps it from the second
//! frame of a process on. It has no thread: the one that makes it ends before the frame that wanted it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::ScopedJoinHandle;

use deno_core::v8;

use super::isolate::restore;

/// Heap of the isolate that is kept; it only ever holds what the snapshot does.
const HEAP: usize = 16 << 20;

/// Counts a frame. The second one of a process, and no other, gets a thread that makes the isolate to keep meanwhile; a process
/// that runs one cell has no use for it.
pub(super) fn count<'scope>(scope: &'scope std::thread::Scope<'scope, '_>) -> Option<ScopedJoinHandle<'scope, ()>> {
    static FRAMES: AtomicUsize = AtomicUsize::new(0);
    if FRAMES.fetch_add(1, Ordering::Relaxed) != 1 {
        return None;
    }
    // Without a thread, or without an isolate, frames are slower and that is all.
    std::thread::Builder::new()
        .name("zero-v8-keeper".into())
        .spawn_scoped(scope, keep)
        .ok()
}

fn keep() {
    let Ok(tokio) = tokio::runtime::Builder::new_current_thread().enable_time().build() else {
        return;
    };
    let _entered = tokio.enter();
    if let Ok(kept) = restore(v8::CreateParams::default().heap_limits(0, HEAP)) {
        // Never dropped: it must outlive every frame, and the process is its end.
        std::mem::forget(kept);
    }
}
