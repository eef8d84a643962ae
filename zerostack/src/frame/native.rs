//! The one host function of a frame: its protocol and its state.
//!
//! The scripts of the snapshot hold the only reference to it. They pass a number of [`Native`] and arguments they have
//! checked; still nothing here trusts them further than a type check, and nothing here runs code of the cell except where a
//! member says so.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use deno_core::v8;
use zero_contracts::{ErrorKind, Operation};

use super::convert::string;
use super::limits::Shared;
use super::place::Mapped;
use super::spec::ConsoleLevel;
use super::{clone, web};

macro_rules! natives {
    ($($(#[$doc:meta])* $name:ident = $js:literal,)*) => {
        /// Numbers of the host function's protocol; the scripts know them by name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u32)]
        pub(super) enum Native {
            $($(#[$doc])* $name,)*
        }

        impl Native {
            pub(super) const ALL: &'static [(Self, &'static str)] = &[$((Self::$name, $js),)*];

            fn from_number(number: u32) -> Option<Self> {
                Self::ALL.get(number as usize).map(|(native, _)| *native)
            }
        }
    };
}

natives! {
    /// `(operation, name, id, arguments)`: starts a call; answers undefined or `[kind, detail, path]`.
    Call = "CALL",
    /// `(id, milliseconds)`: answers whether there was room for the timer.
    TimerSet = "TIMER_SET",
    /// `(id)`
    TimerClear = "TIMER_CLEAR",
    /// `(level, text)`
    Console = "CONSOLE",
    /// `(value)`: a number of [`value_class`].
    Classify = "CLASSIFY",
    /// `(view or buffer)`: its base64.
    Base64 = "BASE64",
    /// `(text)`: a Uint8Array, or undefined for what is not base64.
    Unbase64 = "UNBASE64",
    /// `(text)`: its UTF-8.
    Encode = "ENCODE",
    /// `(label)`: the name of a known encoding, or undefined.
    Encoding = "ENCODING",
    /// `(encoding, pending, bytes, fatal, keep BOM, stream)`: `[text, rest, consumed]`, or undefined for invalid input.
    Decode = "DECODE",
    /// `(view or buffer)`: a Uint8Array over the same memory.
    View = "VIEW",
    /// `(bytes)`: a string with a character per byte.
    Latin1Text = "LATIN1_TEXT",
    /// `(text)`: a byte per character, or undefined.
    Latin1Bytes = "LATIN1_BYTES",
    /// `(value)`: a structured clone.
    Clone = "CLONE",
    /// `(text, base?)`: the parts of a URL, or undefined.
    UrlParse = "URL_PARSE",
    /// `(url, part, value)`: the parts of the changed URL, or undefined.
    UrlSet = "URL_SET",
    /// `(text)`: names and values in turn.
    FormParse = "FORM_PARSE",
    /// `(names and values in turn)`: text.
    FormWrite = "FORM_WRITE",
}

impl Native {
    /// UTF-16 units in one text at most. What is done with it outside of V8 is neither counted nor interrupted.
    fn longest_text(self) -> usize {
        match self {
            Self::UrlParse | Self::UrlSet | Self::FormParse => 2 << 20,
            _ => 64 << 20,
        }
    }
}

/// A call that the cell has made and that has not been started.
pub(super) struct NewCall {
    pub id: u32,
    pub operation: Operation,
    pub name: &'static str,
    pub arguments: String,
}

/// What the host function works on. One per isolate, in a slot of it.
pub(super) struct Host {
    pub shared: Arc<Shared>,
    pub new_calls: RefCell<VecDeque<NewCall>>,
    /// Bytes of the arguments of all calls that have not been answered.
    pub argument_bytes: Cell<usize>,
    pub timers: RefCell<Timers>,
    /// Promises that were rejected and that nothing handles yet.
    pub rejections: RefCell<Vec<(v8::Global<v8::Promise>, v8::Global<v8::Value>)>>,
    /// The cell's own promise, whose rejection the driver handles.
    pub data_clone_error: RefCell<Option<v8::Global<v8::Function>>>,
    /// Where the author wrote what V8 runs, if the cell is TypeScript.
    pub mapped: Mapped,
}

impl Host {
    pub(super) fn new(shared: Arc<Shared>) -> Rc<Self> {
        Rc::new(Self {
            shared,
            new_calls: RefCell::default(),
            argument_bytes: Cell::new(0),
            timers: RefCell::default(),
            rejections: RefCell::default(),
            data_clone_error: RefCell::default(),
            mapped: Mapped::new(),
        })
    }

    /// The host of the isolate that `scope` is in.
    pub(super) fn of(scope: &v8::Isolate) -> Option<Rc<Self>> {
        scope.get_slot::<Rc<Self>>().cloned()
    }
}

/// Pending timers in the order they are due; equal times in the order they were set.
#[derive(Default)]
pub(super) struct Timers {
    due: BTreeMap<(Instant, u64), u32>,
    by_id: HashMap<u32, (Instant, u64)>,
    sequence: u64,
}

impl Timers {
    fn set(&mut self, id: u32, after: Duration, limit: usize) -> bool {
        self.clear(id);
        if self.by_id.len() >= limit {
            return false;
        }
        let Some(at) = Instant::now().checked_add(after) else {
            return false;
        };
        self.sequence += 1;
        self.due.insert((at, self.sequence), id);
        self.by_id.insert(id, (at, self.sequence));
        true
    }

    fn clear(&mut self, id: u32) {
        if let Some(key) = self.by_id.remove(&id) {
            self.due.remove(&key);
        }
    }

    pub(super) fn next_due(&self) -> Option<Instant> {
        self.due.keys().next().map(|(at, _)| *at)
    }

    /// Takes the first timer that is due.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<u32> {
        let (&key, &id) = self.due.first_key_value()?;
        if key.0 > now {
            return None;
        }
        self.clear(id);
        Some(id)
    }
}

/// What the cell calls, as the contract names it.
const NAMES: [&str; 10] = [
    "read",
    "find",
    "edit",
    "apply",
    "run",
    "state.get",
    "state.set",
    "state.test",
    "state.delete",
    "state.list",
];

/// The host function.
pub(super) fn host(
    scope: &mut v8::PinScope<'_, '_>,
    args: v8::FunctionCallbackArguments<'_>,
    mut answer: v8::ReturnValue<'_, v8::Value>,
) {
    let Some(host) = Host::of(scope) else { return };
    let Some(native) = args.get(0).uint32_value(scope).and_then(Native::from_number) else {
        return;
    };
    let longest = native.longest_text();
    for index in 1..args.length() {
        let text = v8::Local::<v8::String>::try_from(args.get(index));
        if text.is_ok_and(|text| text.length() > longest) {
            return web::throw_range(
                scope,
                &format!("A text of more than {longest} characters is not accepted here"),
            );
        }
    }
    match native {
        Native::Call => {
            if let Some((kind, detail, path)) = start_call(scope, &host, &args) {
                let items = [kind.as_str(), detail.as_str(), path].map(|text| string(scope, text).into());
                answer.set(v8::Array::new_with_elements(scope, &items).into());
            }
        }
        Native::TimerSet => {
            let id = args.get(1).uint32_value(scope).unwrap_or(0);
            let after = Duration::from_millis(args.get(2).uint32_value(scope).unwrap_or(0).into());
            answer.set_bool(host.timers.borrow_mut().set(id, after, host.shared.budgets.timers));
        }
        Native::TimerClear => host
            .timers
            .borrow_mut()
            .clear(args.get(1).uint32_value(scope).unwrap_or(0)),
        Native::Console => {
            let level = args.get(1).uint32_value(scope).unwrap_or(0) as usize;
            let level = ConsoleLevel::ALL.get(level).copied().unwrap_or(ConsoleLevel::Log);
            host.shared
                .write_console(level, args.get(2).to_rust_string_lossy(scope));
        }
        Native::Classify => answer.set_uint32(value_class(args.get(1))),
        Native::Base64 => web::base64(scope, args.get(1), &mut answer),
        Native::Unbase64 => web::unbase64(scope, &host, args.get(1), &mut answer),
        Native::Encode => web::encode(scope, &host, args.get(1), &mut answer),
        Native::Encoding => web::encoding(scope, args.get(1), &mut answer),
        Native::Decode => web::decode(scope, &host, &args, &mut answer),
        Native::View => web::view(scope, args.get(1), &mut answer),
        Native::Latin1Text => web::latin1_text(scope, args.get(1), &mut answer),
        Native::Latin1Bytes => web::latin1_bytes(scope, &host, args.get(1), &mut answer),
        Native::Clone => clone::clone(scope, &host, args.get(1), &mut answer),
        Native::UrlParse => web::url_parse(scope, &args, &mut answer),
        Native::UrlSet => web::url_set(scope, &args, &mut answer),
        Native::FormParse => web::form_parse(scope, args.get(1), &mut answer),
        Native::FormWrite => web::form_write(scope, args.get(1), &mut answer),
    }
}

/// Admits a call, or says why not.
fn start_call(
    scope: &v8::PinScope<'_, '_>,
    host: &Host,
    args: &v8::FunctionCallbackArguments<'_>,
) -> Option<(ErrorKind, String, &'static str)> {
    let shared = &host.shared;
    let refuse = |kind, detail: String, path| Some((kind, detail, path));
    if shared.closed.load(Ordering::Acquire) {
        return refuse(
            ErrorKind::Cancelled,
            "the cell has settled: no further call is admitted".into(),
            "z",
        );
    }
    let index = args.get(1).uint32_value(scope).unwrap_or(u32::MAX) as usize;
    let called = args.get(2).to_rust_string_lossy(scope);
    let (Some(operation), Some(name)) = (
        Operation::ALL.get(index).copied(),
        NAMES.into_iter().find(|name| *name == called),
    ) else {
        return refuse(ErrorKind::Internal, format!("z.{called} is not an operation"), "z");
    };
    let limit = shared.budgets.calls;
    if shared
        .calls
        .iter()
        .map(|count| count.load(Ordering::Acquire))
        .sum::<u64>()
        >= limit
    {
        return refuse(
            ErrorKind::Budget,
            format!("the cell has made all of its {limit} calls"),
            "calls",
        );
    }
    let Ok(arguments) = v8::Local::<v8::String>::try_from(args.get(4)) else {
        return refuse(ErrorKind::Internal, "a call without arguments".into(), "z");
    };
    let bytes = arguments.utf8_length(scope);
    let limit = shared.budgets.pending_argument_bytes;
    if host.argument_bytes.get().saturating_add(bytes) > limit {
        let detail = format!("the arguments of pending calls would exceed {limit} bytes: await earlier calls first");
        return refuse(ErrorKind::Budget, detail, "pendingArgumentBytes");
    }
    host.argument_bytes.set(host.argument_bytes.get() + bytes);
    shared.calls[index].fetch_add(1, Ordering::AcqRel);
    let id = args.get(3).uint32_value(scope).unwrap_or(0);
    let arguments = arguments.to_rust_string_lossy(scope);
    host.new_calls.borrow_mut().push_back(NewCall {
        id,
        operation,
        name,
        arguments,
    });
    None
}

/// What a value is by its internal slots, whatever its prototype says. The numbers are those of `20_json.js`.
fn value_class(value: v8::Local<'_, v8::Value>) -> u32 {
    if value.is_uint8_array() || value.is_uint8_clamped_array() {
        1
    } else if value.is_map() {
        2
    } else if value.is_set() {
        3
    } else if value.is_promise() {
        4
    } else if value.is_reg_exp() {
        5
    } else if value.is_native_error() {
        6
    } else if value.is_weak_map() || value.is_weak_set() {
        7
    } else if value.is_number_object()
        || value.is_string_object()
        || value.is_boolean_object()
        || value.is_big_int_object()
        || value.is_symbol_object()
    {
        8
    } else if value.is_typed_array() {
        9
    } else if value.is_generator_object() || value.is_map_iterator() || value.is_set_iterator() {
        10
    } else if value.is_array_buffer() {
        11
    } else if value.is_data_view() {
        12
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_come_in_order_and_within_their_limit() {
        let mut timers = Timers::default();
        assert!(timers.set(1, Duration::from_secs(2), 2) && timers.set(2, Duration::from_secs(1), 2));
        assert!(!timers.set(3, Duration::ZERO, 2), "the limit holds");
        assert!(timers.set(2, Duration::ZERO, 2), "setting again takes no further room");
        let later = Instant::now() + Duration::from_secs(5);
        assert_eq!(
            (timers.take_due(Instant::now()), timers.take_due(Instant::now())),
            (Some(2), None)
        );
        assert_eq!((timers.take_due(later), timers.take_due(later)), (Some(1), None));
    }
}
