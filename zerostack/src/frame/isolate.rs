//! Makes a sealed isolate: from the snapshot to the moment before the cell is compiled.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use deno_core::{Extension, JsRuntime, RuntimeOptions, v8};
use serde_json::{Map, Value};
use zero_contracts::{Error, ErrorKind};
use zero_frame_snapshot::{EXTENSION, FRAME_SNAPSHOT};

use super::convert::string;
use super::limits::{self, Shared};
use super::native::{Host, host};
use super::place;
use super::surface::{Surface, call, native_numbers};
use super::watch::FromFrame;

/// A sealed isolate.
pub(super) struct Sealed {
    pub runtime: JsRuntime,
    pub surface: Surface,
    pub host: Rc<Host>,
}

/// Makes the isolate and seals its context. A tokio runtime must have been entered.
///
/// # Errors
/// `internal` when the snapshot does not fit this build; `budget` when the heap is too small even for it.
pub(super) fn seal(
    shared: &Arc<Shared>,
    input: &Map<String, Value>,
    to_watcher: Sender<FromFrame>,
) -> Result<Sealed, Error> {
    let mut runtime = restore(limits::create_params(shared))?;
    let isolate = runtime.v8_isolate();
    limits::install(isolate, shared, to_watcher);
    let _ = shared.handle.set(isolate.thread_safe_handle());
    // A stop that came before the handle was there has terminated nothing.
    if let Some(why) = shared.tripped() {
        return Err(super::failure::trip_error(why));
    }
    let host_state = Host::new(shared.clone());
    isolate.set_slot(host_state.clone());
    isolate.set_prepare_stack_trace_callback(place::prepare_stack);
    isolate.set_promise_reject_callback(promise_rejected);
    isolate.set_host_import_module_dynamically_callback(refuse_import);
    isolate.set_host_import_module_with_phase_dynamically_callback(refuse_import_phase);
    isolate.set_allow_atomics_wait(false);

    let context = runtime.main_context();
    let surface = {
        v8::scope_with_context!(let scope, runtime.v8_isolate(), &context);
        v8::tc_scope!(let scope, scope);
        let local = v8::Local::new(scope, &context);
        let surface = Surface::take(scope, local).ok_or_else(|| internal("the snapshot has no surface"))?;
        *host_state.data_clone_error.borrow_mut() = Some(surface.data_clone_error.clone());
        let function = v8::Function::builder(host)
            .build(scope)
            .ok_or_else(|| internal("no host function"))?;
        let text = serde_json::to_string(input).map_err(|error| internal(&error.to_string()))?;
        let text = string(scope, &text);
        let Some(input) = v8::json::parse(scope, text) else {
            return Err(internal("the input is not JSON"));
        };
        let numbers = native_numbers(scope);
        if call(scope, &surface.install, &[function.into(), numbers.into(), input]).is_none() {
            let why = scope
                .exception()
                .map(|error| error.to_rust_string_lossy(scope))
                .unwrap_or_default();
            return Err(internal(&format!("sealing failed: {why}")));
        }
        surface
    };
    Ok(Sealed {
        runtime,
        surface,
        host: host_state,
    })
}

/// Makes a runtime from the snapshot, with every op of deno_core disabled. No op is on the allow-list: the frame uses none.
pub(super) fn restore(params: v8::CreateParams) -> Result<JsRuntime, Error> {
    let extension = Extension {
        name: EXTENSION,
        middleware_fn: Some(Box::new(|op| op.disable())),
        ..Extension::default()
    };
    JsRuntime::try_new(RuntimeOptions {
        extensions: vec![extension],
        startup_snapshot: Some(FRAME_SNAPSHOT),
        create_params: Some(params),
        ..RuntimeOptions::default()
    })
    .map_err(|error| internal(&error.to_string()))
}

pub(super) fn internal(why: &str) -> Error {
    Error::new(ErrorKind::Internal, format!("the frame could not be made: {why}"))
}

/// Keeps the rejected promises that nothing handles.
extern "C" fn promise_rejected(message: v8::PromiseRejectMessage<'_>) {
    // SAFETY: V8 calls this with the isolate entered and the promise's context as the current one.
    v8::callback_scope!(unsafe scope, &message);
    let Some(host) = Host::of(scope) else { return };
    let Ok(mut rejections) = host.rejections.try_borrow_mut() else {
        return;
    };
    let promise = v8::Global::new(scope, message.get_promise());
    match message.get_event() {
        v8::PromiseRejectEvent::PromiseRejectWithNoHandler => {
            let undefined = v8::undefined(scope).into();
            let value = v8::Global::new(scope, message.get_value().unwrap_or(undefined));
            rejections.push((promise, value));
        }
        v8::PromiseRejectEvent::PromiseHandlerAddedAfterReject => rejections.retain(|(kept, _)| *kept != promise),
        v8::PromiseRejectEvent::PromiseRejectAfterResolved | v8::PromiseRejectEvent::PromiseResolveAfterResolved => {}
    }
}

fn refuse_import<'s, 'i>(
    scope: &mut v8::PinScope<'s, 'i>,
    _options: v8::Local<'s, v8::Data>,
    _resource: v8::Local<'s, v8::Value>,
    _specifier: v8::Local<'s, v8::String>,
    _attributes: v8::Local<'s, v8::FixedArray>,
) -> Option<v8::Local<'s, v8::Promise>> {
    let resolver = v8::PromiseResolver::new(scope)?;
    let message = string(scope, "import() is not available in a cell");
    let error = v8::Exception::type_error(scope, message);
    resolver.reject(scope, error);
    Some(resolver.get_promise(scope))
}

fn refuse_import_phase<'s, 'i>(
    scope: &mut v8::PinScope<'s, 'i>,
    options: v8::Local<'s, v8::Data>,
    resource: v8::Local<'s, v8::Value>,
    specifier: v8::Local<'s, v8::String>,
    _phase: v8::ModuleImportPhase,
    attributes: v8::Local<'s, v8::FixedArray>,
) -> Option<v8::Local<'s, v8::Promise>> {
    refuse_import(scope, options, resource, specifier, attributes)
}
