//! Runs a cell on its own thread: compile, start, then turn the loop of microtasks, timers and calls until it settles.

use std::panic::AssertUnwindSafe;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::time::Instant;

use deno_core::futures::stream::FuturesUnordered;
use deno_core::futures::{FutureExt as _, StreamExt as _};
use deno_core::{JsRuntime, v8};
use zero_contracts::{CancelToken, Error, ErrorKind, Operation};

use super::convert::{new_bytes, string};
use super::failure::{Cell, trip_error};
use super::isolate::{Sealed, internal, seal};
use super::limits::{Shared, Trip};
use super::native::{Host, NewCall};
use super::spec::{CallHandler, CallReply, CallRequest, FrameSpec};
use super::surface::call;
use super::watch::{Ended, FromFrame, cpu};
use super::{keeper, place, platform, trap};
use crate::syntax::{later, with_fitting_stack, wrapped};
use crate::typescript;

/// Lines before the body in the source that the AsyncFunction constructor builds, with the directive.
const LINES_BEFORE_BODY: usize = 3;

type Settled = Result<Option<String>, Error>;

/// The whole life of a frame's thread.
pub(super) fn drive(
    spec: &FrameSpec,
    handler: Arc<dyn CallHandler>,
    shared: &Arc<Shared>,
    calls: &CancelToken,
    to_watcher: Sender<FromFrame>,
) {
    let _marked = trap::Marked::new(shared);
    platform::initialise();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .max_blocking_threads(spec.budgets.concurrent_calls.max(1))
        .thread_name("zero-frame-call")
        .build();
    let (settled, pending) = std::thread::scope(|scope| {
        keeper::count(scope);
        match &runtime {
            Ok(runtime) => runtime.block_on(live(spec, handler, shared, calls, to_watcher.clone())),
            Err(error) => (Err(internal(&error.to_string())), Vec::new()),
        }
    });
    let ended = Ended {
        settled,
        pending,
        cpu: cpu::of_this_thread(),
    };
    // The watcher goes on when the thread ends, whether or not it hears this.
    let _ = to_watcher.send(FromFrame::Ended(Box::new(ended)));
}

/// From the making of the isolate to its end.
async fn live(
    spec: &FrameSpec,
    handler: Arc<dyn CallHandler>,
    shared: &Arc<Shared>,
    calls: &CancelToken,
    to_watcher: Sender<FromFrame>,
) -> (Settled, Vec<Operation>) {
    let sealed = match seal(shared, &spec.input, to_watcher) {
        Ok(sealed) => sealed,
        // A stop may come at any step of it.
        Err(error) => return (Err(shared.tripped().map_or(error, trip_error)), Vec::new()),
    };
    let Sealed { runtime, surface, host } = sealed;
    let mut driver = Driver {
        runtime,
        host,
        cell: Cell {
            surface,
            shared,
            source: &spec.source,
        },
    };
    let mut running = Running {
        handler,
        calls,
        open: Vec::new(),
        futures: FuturesUnordered::new(),
    };
    let settled = driver.run(&mut running).await;
    // With the value in hand, the time and the heap are looked at once more.
    let used = driver.runtime.v8_isolate().get_heap_statistics().used_heap_size();
    let over_heap = shared.is_over_heap(used).then_some(Trip::Heap);
    let settled = settled.and_then(|value| match shared.too_late().or(over_heap) {
        Some(why) => Err(trip_error(why)),
        None => Ok(value),
    });
    shared.closed.store(true, Ordering::Release);
    calls.cancel();
    let mut pending: Vec<(u32, Operation)> = running.open;
    pending.extend(
        driver
            .host
            .new_calls
            .borrow_mut()
            .drain(..)
            .map(|new| (new.id, new.operation)),
    );
    pending.sort_unstable_by_key(|(id, _)| *id);
    drop(running.futures);
    let isolate = driver.runtime.v8_isolate();
    isolate.cancel_terminate_execution();
    shared.heap_peak.fetch_max(used, Ordering::AcqRel);
    (settled, pending.into_iter().map(|(_, operation)| operation).collect())
}

type Answered = (u32, usize, Result<CallReply, Error>);

/// Calls at work.
struct Running<'a> {
    handler: Arc<dyn CallHandler>,
    calls: &'a CancelToken,
    /// Started and not delivered yet.
    open: Vec<(u32, Operation)>,
    futures: FuturesUnordered<std::pin::Pin<Box<dyn Future<Output = Answered>>>>,
}

impl Running<'_> {
    fn start(&mut self, new: NewCall) {
        let bytes = new.arguments.len();
        self.open.push((new.id, new.operation));
        let request = CallRequest {
            operation: new.operation,
            name: new.name,
            arguments: new.arguments,
            cancel: self.calls.clone(),
        };
        let handler = self.handler.clone();
        let work = AssertUnwindSafe(async move { handler.call(request).await }).catch_unwind();
        self.futures.push(Box::pin(async move {
            let answer = work.await.unwrap_or_else(|_| {
                Err(Error::new(
                    ErrorKind::Internal,
                    format!("z.{} failed inside the kernel", new.name),
                ))
            });
            (new.id, bytes, answer)
        }));
    }
}

struct Driver<'a> {
    runtime: JsRuntime,
    host: Rc<Host>,
    cell: Cell<'a>,
}

/// Enters the isolate's context with a `TryCatch`.
macro_rules! enter {
    ($driver:expr, $scope:ident) => {
        let context = $driver.runtime.main_context();
        v8::scope_with_context!(let $scope, $driver.runtime.v8_isolate(), &context);
        v8::tc_scope!(let $scope, $scope);
    };
}

impl Driver<'_> {
    async fn run(&mut self, running: &mut Running<'_>) -> Settled {
        let promise = self.start()?;
        loop {
            self.runtime.v8_isolate().perform_microtask_checkpoint();
            if let Some(settled) = self.settled(&promise) {
                return settled;
            }
            while running.open.len() < self.cell.shared.budgets.concurrent_calls.max(1) {
                let Some(new) = self.host.new_calls.borrow_mut().pop_front() else {
                    break;
                };
                running.start(new);
            }
            let due = self.host.timers.borrow().next_due();
            if due.is_none() && running.futures.is_empty() {
                return Err(Error::new(
                    ErrorKind::Exception,
                    "the cell waits for a promise that nothing can settle: no call and no timer is pending",
                ));
            }
            let mut answered: Option<Answered> = None;
            tokio::select! {
                biased;
                () = self.cell.shared.stop.notified() => {}
                first = running.futures.next(), if !running.futures.is_empty() => answered = first,
                () = tokio::time::sleep_until(due.unwrap_or_else(Instant::now).into()), if due.is_some() => {}
            }
            while let Some(answer) = answered {
                if self.cell.shared.tripped().is_some() {
                    break;
                }
                running.open.retain(|(id, _)| *id != answer.0);
                self.deliver(answer)?;
                answered = running.futures.next().now_or_never().flatten();
            }
            self.fire_timers()?;
        }
    }

    /// Compiles the cell and calls it. Nothing of it runs before it is known to parse.
    fn start(&mut self) -> Result<v8::Global<v8::Promise>, Error> {
        let script = match self.compile(self.cell.source) {
            Ok(script) if !self.is_typescript()? => script,
            // Not what nests deeper than the stack of V8.
            Err(javascript) if !javascript.detail.starts_with("SyntaxError") => {
                return Err(javascript);
            }
            compiled => {
                let made = self.parse(typescript::to_javascript)?;
                match (made, compiled) {
                    (Ok(made), _) => {
                        let _ = self.host.mapped.set(made.places);
                        self.compile(&made.code)?
                    }
                    // The language that got further is the one that was meant.
                    (Err(typescript), Err(javascript)) => return Err(later(javascript, typescript)),
                    (Err(typescript), Ok(_)) => return Err(typescript),
                }
            }
        };
        enter!(self, scope);
        let script = v8::Local::new(scope, script).bind_to_current_context(scope);
        scope.get_current_context().set_allow_generation_from_strings(false);

        // A stop may come as early as this.
        let Some(value) = script.run(scope) else {
            return Err(self.cell.caught(scope));
        };
        let Ok(function) = v8::Local::<v8::Function>::try_from(value) else {
            return Err(internal("the cell is not a function"));
        };
        let receiver = v8::undefined(scope);
        // A terminated or stack-exhausted call gives nothing.
        match function
            .call(scope, receiver.into(), &[])
            .map(v8::Local::<v8::Promise>::try_from)
        {
            Some(Ok(promise)) => {
                promise.mark_as_handled();
                Ok(v8::Global::new(scope, promise))
            }
            Some(Err(_)) => Err(internal("the cell gave no promise")),
            None => Err(self.cell.caught(scope)),
        }
    }

    /// Compiles the text of a cell.
    ///
    /// # Errors
    /// `syntax`, also for what nests deeper than the stack of V8; that of a stop.
    fn compile(&mut self, text: &str) -> Result<v8::Global<v8::UnboundScript>, Error> {
        enter!(self, scope);
        let name = string(scope, place::CELL).into();
        let origin = v8::ScriptOrigin::new(scope, name, -1, 0, false, -1, None, false, false, false, None);
        let Some(code) = v8::String::new(scope, &wrapped(text)) else {
            return Err(Error::invalid("the source is too long").with_path("source"));
        };
        let mut code = v8::script_compiler::Source::new(code, Some(&origin));
        let script = v8::script_compiler::compile_unbound_script(
            scope,
            &mut code,
            v8::script_compiler::CompileOptions::NoCompileOptions,
            v8::script_compiler::NoCacheReason::NoReason,
        );
        let Some(script) = script else {
            return Err(self.cell.syntax_error(scope, 0));
        };
        // That text parses, but a body such as `}); f(); (async () => {` closes the wrapper. The AsyncFunction constructor
        // parses the body alone.
        let body = string(scope, &format!("\"use strict\";\n{text}"));
        if call(scope, &self.cell.surface.check, &[body.into()]).is_none() {
            return Err(self.cell.syntax_error(scope, LINES_BEFORE_BODY));
        }
        Ok(v8::Global::new(scope, script))
    }

    /// Whether a cell that is JavaScript means something else as TypeScript.
    fn is_typescript(&self) -> Result<bool, Error> {
        Ok(typescript::may_have_type_arguments(self.cell.source) && self.parse(typescript::has_type_arguments)?)
    }

    /// Does work on the source where the stack fits it.
    fn parse<T: Send + 'static>(&self, work: fn(&str) -> T) -> Result<T, Error> {
        let shared = self.cell.shared;
        with_fitting_stack(self.cell.source, || shared.tripped().is_some(), work)
            .map_err(|error| shared.tripped().map_or(error, trip_error))
    }

    /// Tells how the cell settled, if it has.
    fn settled(&mut self, promise: &v8::Global<v8::Promise>) -> Option<Settled> {
        if let Some(why) = self.cell.shared.tripped() {
            return Some(Err(trip_error(why)));
        }
        enter!(self, scope);
        let promise = v8::Local::new(scope, promise);
        let state = promise.state();
        if state == v8::PromiseState::Rejected {
            self.cell.shared.closed.store(true, Ordering::Release);
            let reason = promise.result(scope);
            return Some(Err(self.cell.error_of(scope, reason)));
        }
        let floating = self
            .host
            .rejections
            .borrow()
            .first()
            .map(|(_, reason)| v8::Local::new(scope, reason));
        if let Some(reason) = floating {
            self.cell.shared.closed.store(true, Ordering::Release);
            return Some(Err(self.cell.error_of(scope, reason)));
        }
        if state == v8::PromiseState::Pending {
            return None;
        }
        self.cell.shared.closed.store(true, Ordering::Release);
        let value = promise.result(scope);
        Some(match call(scope, &self.cell.surface.encode_value, &[value]) {
            Some(text) if text.is_string() => Ok(Some(text.to_rust_string_lossy(scope))),
            Some(_) => Ok(None),
            None => Err(self.cell.caught(scope)),
        })
    }

    /// Gives the outcome of a call to the cell.
    fn deliver(&mut self, (id, bytes, answer): Answered) -> Result<(), Error> {
        self.host
            .argument_bytes
            .set(self.host.argument_bytes.get().saturating_sub(bytes));
        enter!(self, scope);
        let answer = match answer {
            Ok(reply) => value_of(scope, self.cell.shared, &reply).map(|value| (true, value)),
            Err(error) => Err(error),
        };
        if self.cell.shared.tripped().is_some() {
            return Ok(()); // The loop ends with the reason.
        }
        let (ok, value) = match answer {
            Ok(answer) => answer,
            Err(error) => {
                let text = serde_json::to_string(&error).unwrap_or_else(|_| "null".into());
                let text = string(scope, &text);
                let parsed = v8::json::parse(scope, text).ok_or_else(|| internal("an error that is not JSON"))?;
                (false, parsed)
            }
        };
        let id = v8::Integer::new_from_unsigned(scope, id).into();
        let ok = v8::Boolean::new(scope, ok).into();
        match call(scope, &self.cell.surface.settle, &[id, ok, value]) {
            Some(_) => Ok(()),
            None => Err(self.cell.caught(scope)),
        }
    }

    /// Runs the callbacks of the timers that are due, each with its microtasks. Timers set meanwhile wait for the next turn.
    fn fire_timers(&mut self) -> Result<(), Error> {
        let now = Instant::now();
        loop {
            if self.cell.shared.tripped().is_some() {
                return Ok(());
            }
            let Some(id) = self.host.timers.borrow_mut().take_due(now) else {
                return Ok(());
            };
            {
                enter!(self, scope);
                let id = v8::Integer::new_from_unsigned(scope, id).into();
                if call(scope, &self.cell.surface.fire, &[id]).is_none() {
                    return Err(self.cell.caught(scope));
                }
            }
            self.runtime.v8_isolate().perform_microtask_checkpoint();
        }
    }
}

/// Makes the value that a reply describes.
fn value_of<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    shared: &Shared,
    reply: &CallReply,
) -> Result<v8::Local<'s, v8::Value>, Error> {
    let too_long = || Error::new(ErrorKind::Budget, "the answer is longer than a string of V8 can be");
    let text = v8::String::new(scope, &reply.json).ok_or_else(too_long)?;
    let mut value = v8::json::parse(scope, text)
        .ok_or_else(|| Error::new(ErrorKind::Internal, "the answer of the kernel is not JSON"))?;
    for (pointer, bytes) in &reply.bytes {
        let array = new_bytes(scope, shared, bytes).ok_or_else(|| {
            let limit = shared.budgets.array_buffer_bytes;
            Error::new(
                ErrorKind::Budget,
                format!("{} bytes do not fit the {limit} bytes of array buffers", bytes.len()),
            )
            .with_path("arrayBuffers")
        })?;
        if pointer.is_empty() {
            value = array.into();
        } else if !put(scope, value, pointer, array.into()) {
            return Err(Error::new(
                ErrorKind::Internal,
                format!("the answer has no {pointer} for its bytes"),
            ));
        }
    }
    Ok(value)
}

/// Replaces the member that an RFC 6901 pointer names.
fn put(
    scope: &v8::PinScope<'_, '_>,
    root: v8::Local<'_, v8::Value>,
    pointer: &str,
    value: v8::Local<'_, v8::Value>,
) -> bool {
    let mut keys: Vec<String> = pointer
        .split('/')
        .skip(1)
        .map(|key| key.replace("~1", "/").replace("~0", "~"))
        .collect();
    let Some(last) = keys.pop() else { return false };
    let own = |holder: v8::Local<'_, v8::Object>, key: &str| {
        let name = string(scope, key);
        holder
            .has_own_property(scope, name.into())
            .unwrap_or(false)
            .then_some(())
    };
    let Ok(mut holder) = v8::Local::<v8::Object>::try_from(root) else {
        return false;
    };
    for key in keys {
        let name = string(scope, &key);
        let next = own(holder, &key).and_then(|()| holder.get(scope, name.into()));
        let Some(Ok(next)) = next.map(v8::Local::<v8::Object>::try_from) else {
            return false;
        };
        holder = next;
    }
    let name = string(scope, &last);
    own(holder, &last).is_some() && holder.create_data_property(scope, name.into(), value).unwrap_or(false)
}
