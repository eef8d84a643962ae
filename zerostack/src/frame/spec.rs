//! What goes into a frame and what comes out. Plain data; no V8.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use serde_json::{Map, Value};
use zero_contracts::{CancelToken, Error, Operation};

/// Answers the `z` calls of a cell.
pub trait CallHandler: Send + Sync + 'static {
    /// Performs one call. The future runs on the frame's own thread: work that blocks belongs on `spawn_blocking` (the
    /// frame's runtime has a pool that ends with the frame) or on a thread of the handler. It is dropped when the cell
    /// settles first; [`CallRequest::cancel`] is cancelled then.
    fn call(&self, request: CallRequest) -> Pin<Box<dyn Future<Output = Result<CallReply, Error>> + Send>>;
}

/// One `z` call.
#[derive(Debug)]
pub struct CallRequest {
    /// Which of the six.
    pub operation: Operation,
    /// What the cell called, after `z.`: `read`, `state.get` and so on.
    pub name: &'static str,
    /// The arguments as the text of a JSON array. Bytes are `{"base64": "…"}`.
    pub arguments: String,
    /// Ends with the cell, its deadline and the host's token.
    pub cancel: CancelToken,
}

/// The answer to a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallReply {
    /// JSON text of what the promise resolves to.
    pub json: String,
    /// Bytes that stand in that value as `Uint8Array`s: RFC 6901 pointers of the places they replace, and the bytes.
    pub bytes: Vec<(String, Vec<u8>)>,
}

impl CallReply {
    /// Answers with a JSON text.
    pub fn json(json: impl Into<String>) -> Self {
        Self {
            json: json.into(),
            bytes: Vec::new(),
        }
    }

    /// Answers with a `Uint8Array`.
    pub fn bytes(bytes: Vec<u8>) -> Self {
        Self {
            json: "null".into(),
            bytes: vec![(String::new(), bytes)],
        }
    }

    /// Puts a `Uint8Array` in the place of the member that `pointer` names, which must be there.
    #[must_use]
    pub fn with_bytes(mut self, pointer: impl Into<String>, bytes: Vec<u8>) -> Self {
        self.bytes.push((pointer.into(), bytes));
        self
    }
}

/// Limits of one frame. Each is a hard limit; the defaults are those of the kernel contract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameBudgets {
    /// Wall-clock time from the start of [`super::run`]; `deadline` when it is spent.
    pub wall: Duration,
    /// CPU time of the frame's thread; `budget` when it is spent.
    pub cpu: Duration,
    /// V8 heap, in bytes. At least 8 MiB are granted.
    pub heap_bytes: usize,
    /// Bytes of all array buffers together. An allocation past it throws a `RangeError`.
    pub array_buffer_bytes: usize,
    /// `z` calls in all; the call past it is rejected with `budget`.
    pub calls: u64,
    /// Calls at work at once; more wait their turn.
    pub concurrent_calls: usize,
    /// Bytes of the arguments of all calls that are pending; the call past it is rejected with `budget`.
    pub pending_argument_bytes: usize,
    /// Pending timers; one more throws `budget`.
    pub timers: usize,
    /// Console text kept, in bytes: half from the beginning, half from the end.
    pub console_bytes: usize,
}

impl Default for FrameBudgets {
    fn default() -> Self {
        Self {
            wall: Duration::from_secs(30),
            cpu: Duration::from_secs(30),
            heap_bytes: 128 << 20,
            array_buffer_bytes: 128 << 20,
            calls: 10_000,
            concurrent_calls: 64,
            pending_argument_bytes: 64 << 20,
            timers: 1_000,
            console_bytes: 256 << 10,
        }
    }
}

/// One cell to run.
#[derive(Clone, Debug, Default)]
pub struct FrameSpec {
    /// Body of the cell, in JavaScript.
    pub source: String,
    /// What the cell sees as `input`.
    pub input: Map<String, Value>,
    /// Its limits.
    pub budgets: FrameBudgets,
}

/// Severity of a console line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConsoleLevel {
    /// `console.debug`
    Debug,
    /// `console.log`
    Log,
    /// `console.info`
    Info,
    /// `console.warn`
    Warn,
    /// `console.error`
    Error,
}

impl ConsoleLevel {
    pub(super) const ALL: [Self; 5] = [Self::Debug, Self::Log, Self::Info, Self::Warn, Self::Error];

    /// Returns the name of the method that wrote it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Log => "log",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }
}

/// What one console call wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsoleLine {
    /// Severity.
    pub level: ConsoleLevel,
    /// The arguments as text, without a line end; bounded to 16 KiB.
    pub text: String,
}

/// What a frame used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrameUsage {
    /// Wall-clock time from the start of [`super::run`] to its end.
    pub wall: Duration,
    /// CPU time of the frame's thread, the making of the isolate included.
    pub cpu: Duration,
    /// Largest V8 heap seen, in bytes: before each garbage collection and at the end.
    pub heap_peak: usize,
    /// Largest sum of array-buffer bytes.
    pub array_buffer_peak: usize,
    /// Calls that were admitted, by operation.
    pub calls: BTreeMap<Operation, u64>,
}

/// How a frame ended.
#[derive(Clone, Debug)]
pub struct FrameOutcome {
    /// JSON text of the value the cell returned (none for `undefined`), or why there is none.
    ///
    /// `exception` is what the cell threw; a `ZeroError` that the cell did not catch keeps its own kind.
    pub settled: Result<Option<String>, Error>,
    /// What the cell wrote to the console.
    pub console: Vec<ConsoleLine>,
    /// Lines left out between the first and the last ones kept.
    pub console_omitted: u64,
    /// What it used.
    pub usage: FrameUsage,
    /// Calls that were pending when the cell settled, in the order they were made. They were cancelled.
    pub pending: Vec<Operation>,
    /// The thread could not be ended: V8 was out of memory for good, or stayed in one native call.
    pub given_up: bool,
}
