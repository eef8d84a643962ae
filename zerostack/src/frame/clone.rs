//! The native half of `structuredClone`: V8's serialiser and back.
//!
//! V8 writes a text as often as it is referred to, into memory that no budget counts, and cannot be interrupted. So the value
//! is weighed first, and no code of the cell runs from then until it is written: what was weighed is what is written. A
//! property with a getter is refused for that reason.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use deno_core::v8::{self, ValueDeserializerHelper as _, ValueSerializerHelper as _};

use super::convert::string;
use super::native::Host;
use super::web::{Answer, Scope, throw_range};

/// Bytes of texts, names and large integers in one clone at most, each counted as often as it is referred to.
const MAX_CLONED: usize = 64 << 20;

/// How many values are weighed between two looks at a stop.
const TURN: usize = 1024;

/// Throws what V8 says of a value that cannot be cloned, as the class that the scripts make.
struct CloneErrors;

impl v8::ValueSerializerImpl for CloneErrors {
    fn throw_data_clone_error<'s>(&self, scope: &mut v8::PinScope<'s, '_>, message: v8::Local<'s, v8::String>) {
        let maker = Host::of(scope).and_then(|host| host.data_clone_error.borrow().clone());
        let error = maker.and_then(|maker| {
            // The surface's own code.
            v8::allow_javascript_execution_scope!(scope, scope);
            let receiver = v8::undefined(scope);
            v8::Local::new(scope, maker).call(scope, receiver.into(), &[message.into()])
        });
        let error = error.unwrap_or_else(|| v8::Exception::error(scope, message));
        scope.throw_exception(error);
    }
}

impl v8::ValueDeserializerImpl for CloneErrors {}

pub(super) fn clone(scope: Scope<'_, '_, '_>, host: &Host, value: v8::Local<'_, v8::Value>, answer: Answer<'_, '_>) {
    match weigh(scope, host, value) {
        Weight::Fits => {}
        Weight::Stopped => return,
        Weight::TooMuch => {
            return throw_range(
                scope,
                &format!("A value with more than {MAX_CLONED} bytes of text cannot be cloned"),
            );
        }
        Weight::Code => {
            let message = string(
                scope,
                "a property with a getter, or a boxed BigInt, could not be cloned.",
            );
            return v8::ValueSerializerImpl::throw_data_clone_error(&CloneErrors, scope, message);
        }
    }
    let context = scope.get_current_context();
    let bytes = {
        v8::disallow_javascript_execution_scope!(scope, scope, v8::OnFailure::ThrowOnFailure);
        let serializer = v8::ValueSerializer::new(scope, Box::new(CloneErrors));
        serializer.write_header();
        if serializer.write_value(context, value) != Some(true) {
            return; // Thrown.
        }
        serializer.release()
    };
    let refused = || host.shared.buffers_refused.load(Ordering::Acquire);
    let before = refused();
    v8::tc_scope!(let scope, scope);
    let deserializer = v8::ValueDeserializer::new(scope, Box::new(CloneErrors), &bytes);
    let copy = if deserializer.read_header(context) == Some(true) {
        deserializer.read_value(context)
    } else {
        None
    };
    match copy {
        Some(copy) => answer.set(copy),
        // V8 says no more than that it failed.
        None if refused() > before && !scope.has_terminated() => {
            scope.reset();
            let message = string(scope, super::failure::BUFFERS_EXHAUSTED);
            let error = v8::Exception::range_error(scope, message);
            scope.throw_exception(error);
            scope.rethrow();
        }
        None => {
            scope.rethrow();
        }
    }
}

enum Weight {
    Fits,
    TooMuch,
    /// Writing it would run code of the cell.
    Code,
    /// The frame is being stopped.
    Stopped,
}

/// Adds up what V8 would write for the value, without running any code of the cell. Array buffers have their own budget, and
/// V8 writes each object once.
fn weigh(scope: Scope<'_, '_, '_>, host: &Host, value: v8::Local<'_, v8::Value>) -> Weight {
    if !value.is_object() {
        return Weight::Fits; // Once, and bounded like every text that the host takes.
    }
    v8::tc_scope!(let scope, scope);
    v8::disallow_javascript_execution_scope!(scope, scope, v8::OnFailure::ThrowOnFailure);
    let names = || {
        v8::GetPropertyNamesArgsBuilder::new()
            .mode(v8::KeyCollectionMode::OwnOnly)
            .property_filter(v8::PropertyFilter::ONLY_ENUMERABLE | v8::PropertyFilter::SKIP_SYMBOLS)
            .index_filter(v8::IndexFilter::IncludeIndices)
            .key_conversion(v8::KeyConversionMode::KeepNumbers)
            .build()
    };
    let mut seen: HashMap<_, Vec<v8::Local<'_, v8::Object>>> = HashMap::new();
    let mut todo = vec![value];
    let (mut total, mut turns) = (0_usize, 0_usize);
    while let Some(value) = todo.pop() {
        turns += 1;
        if turns.is_multiple_of(TURN) && host.shared.tripped().is_some() {
            return Weight::Stopped;
        }
        if let Ok(text) = v8::Local::<v8::String>::try_from(value) {
            total = total.saturating_add(if text.is_onebyte() {
                text.length()
            } else {
                2 * text.length()
            });
        } else if let Ok(number) = v8::Local::<v8::BigInt>::try_from(value) {
            total = total.saturating_add(8 * number.word_count());
        }
        if total > MAX_CLONED {
            return Weight::TooMuch;
        }
        let Ok(object) = v8::Local::<v8::Object>::try_from(value) else {
            continue;
        };
        // V8 refuses proxies and functions itself.
        let opaque = value.is_proxy() || value.is_function() || value.is_array_buffer() || value.is_array_buffer_view();
        if opaque {
            continue;
        }
        // A set of V8's would run code of V8's, which is code as well.
        let alike = seen.entry(object.get_identity_hash()).or_default();
        if alike.contains(&object) {
            continue;
        }
        alike.push(object);
        if let Ok(expression) = v8::Local::<v8::RegExp>::try_from(value) {
            todo.push(expression.get_source(scope).into());
            continue;
        }
        if value.is_string_object() {
            let name = string(scope, "length");
            let length = object
                .get(scope, name.into())
                .and_then(|length| length.uint32_value(scope));
            total = total.saturating_add(2 * length.unwrap_or(0) as usize);
            continue;
        }
        // Its number cannot be had without running code.
        if value.is_big_int_object() {
            return Weight::Code;
        }
        let members = if let Ok(map) = v8::Local::<v8::Map>::try_from(value) {
            Some(map.as_array(scope))
        } else if let Ok(set) = v8::Local::<v8::Set>::try_from(value) {
            Some(set.as_array(scope))
        } else {
            None
        };
        if let Some(members) = members {
            for index in 0..members.length() {
                todo.extend(members.get_index(scope, index));
            }
            continue;
        }
        if value.is_native_error() {
            for name in ["name", "message", "stack", "cause"] {
                let name = string(scope, name);
                match object.get(scope, name.into()) {
                    // Text is made of these by `toString`.
                    Some(found) if found.is_object() && name.to_rust_string_lossy(scope) != "cause" => {
                        return Weight::Code;
                    }
                    Some(found) => todo.push(found),
                    None => return Weight::Code,
                }
            }
            continue;
        }
        let Some(keys) = object.get_own_property_names(scope, names()) else {
            return Weight::Code;
        };
        for index in 0..keys.length() {
            let Some(key) = keys.get_index(scope, index) else {
                return Weight::Code;
            };
            if let Ok(name) = v8::Local::<v8::String>::try_from(key) {
                total = total.saturating_add(2 * name.length());
            }
            match object.get(scope, key) {
                Some(found) if found.is_object() || found.is_string() || found.is_big_int() => todo.push(found),
                Some(_) => {}
                None => return Weight::Code,
            }
        }
    }
    Weight::Fits
}
