//! The JavaScript half of the frame as the driver calls it: functions that `60_install.js` exports.

use deno_core::v8;

use super::convert::{member, string};

/// Functions of the surface. All run with the intrinsics taken when the snapshot was made.
pub(super) struct Surface {
    /// `(host, native numbers, input)`: seals the global object and installs the surface.
    pub install: v8::Global<v8::Function>,
    /// `(body)`: throws a SyntaxError unless the text is the body of an async function and nothing more.
    pub check: v8::Global<v8::Function>,
    /// `(id, ok, value)`: settles the promise of a call.
    pub settle: v8::Global<v8::Function>,
    /// `(id)`: runs the callback of a timer.
    pub fire: v8::Global<v8::Function>,
    /// `(value)`: its JSON text, or undefined.
    pub encode_value: v8::Global<v8::Function>,
    /// `(value)`: `[kind, detail, retryable, path, accepted]` of a ZeroError, or `[text, is a stack overflow or the like]`.
    pub describe: v8::Global<v8::Function>,
    /// `(message)`: a DOMException.
    pub data_clone_error: v8::Global<v8::Function>,
}

impl Surface {
    /// Takes the exports from the global object of a context fresh from the snapshot; none when it is another snapshot.
    pub(super) fn take(scope: &v8::PinScope<'_, '_>, context: v8::Local<'_, v8::Context>) -> Option<Self> {
        let global = context.global(scope);
        let bag = v8::Local::<v8::Object>::try_from(member(scope, global, "__zero")?).ok()?;
        let exports = v8::Local::<v8::Object>::try_from(member(scope, bag, "exports")?).ok()?;
        let function = |name| {
            let value = member(scope, exports, name)?;
            v8::Local::<v8::Function>::try_from(value)
                .ok()
                .map(|function| v8::Global::new(scope, function))
        };
        Some(Self {
            install: function("install")?,
            check: function("check")?,
            settle: function("settle")?,
            fire: function("fire")?,
            encode_value: function("encodeValue")?,
            describe: function("describe")?,
            data_clone_error: function("dataCloneError")?,
        })
    }
}

/// Calls a function of the surface; none when it threw or was terminated, which the caller's `TryCatch` tells.
pub(super) fn call<'s>(
    scope: &v8::PinScope<'s, '_>,
    function: &v8::Global<v8::Function>,
    args: &[v8::Local<'_, v8::Value>],
) -> Option<v8::Local<'s, v8::Value>> {
    let receiver = v8::undefined(scope);
    v8::Local::new(scope, function).call(scope, receiver.into(), args)
}

/// The numbers of the host's protocol as an object.
pub(super) fn native_numbers<'s>(scope: &v8::PinScope<'s, '_>) -> v8::Local<'s, v8::Object> {
    let object = v8::Object::new(scope);
    for (native, name) in super::native::Native::ALL {
        let (key, number) = (
            string(scope, name),
            v8::Integer::new_from_unsigned(scope, *native as u32),
        );
        object.create_data_property(scope, key.into(), number.into());
    }
    object
}
