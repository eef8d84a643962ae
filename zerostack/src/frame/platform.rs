//! V8's process-wide state: initialised once, with one helper thread.
//!
//! V8's foreground tasks (garbage-collection steps and finalisation) are optional work: a frame lives for one cell, and
//! allocation drives the collector without them. They are dropped, not queued, so that nothing outlives a frame; V8 runs
//! background tasks on its helper.

use std::ffi::c_void;
use std::sync::Once;

use deno_core::{JsRuntime, v8};

/// V8 would call the heap exhausted when several collections in a row freed little, as they do when the array-buffer budget
/// is spent; the heap's own limit decides instead.
const FLAGS: &str = "--no-detect-ineffective-gcs-near-heap-limit";

struct DropTasks;

impl v8::PlatformImpl for DropTasks {
    fn post_task(&self, _isolate: *mut c_void, _task: v8::Task) {}
    fn post_non_nestable_task(&self, _isolate: *mut c_void, _task: v8::Task) {}
    fn post_delayed_task(&self, _isolate: *mut c_void, _task: v8::Task, _delay_in_seconds: f64) {}
    fn post_non_nestable_delayed_task(&self, _isolate: *mut c_void, _task: v8::Task, _delay_in_seconds: f64) {}
    fn post_idle_task(&self, _isolate: *mut c_void, _task: v8::IdleTask) {}
}

/// Initialises V8. Frames are made on many threads, so the platform must not bind its memory to the first one
/// ("unprotected" in V8's words).
pub(super) fn initialise() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        super::trap::install();
        v8::V8::set_flags_from_string(FLAGS);
        let platform = v8::new_custom_platform(1, false, true, DropTasks).make_shared();
        JsRuntime::init_platform(Some(platform));
    });
}
