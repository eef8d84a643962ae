//! Small conversions between Rust and V8 values, none of which can run code of the cell.

use std::ptr;
use std::sync::atomic::Ordering;

use deno_core::v8;

use super::limits::Shared;

/// Makes a V8 string. V8 has a length limit (about 512 MiB); past it the empty string stands in, so callers bound what they
/// pass.
pub(super) fn string<'s>(scope: &v8::PinScope<'s, '_>, text: &str) -> v8::Local<'s, v8::String> {
    v8::String::new(scope, text).unwrap_or_else(|| v8::String::empty(scope))
}

/// Reads an own data property of an object that the cell cannot have touched.
pub(super) fn member<'s>(
    scope: &v8::PinScope<'s, '_>,
    object: v8::Local<'s, v8::Object>,
    name: &str,
) -> Option<v8::Local<'s, v8::Value>> {
    let key = string(scope, name);
    object.get(scope, key.into())
}

/// Reads an item of an array that the cell cannot have touched, as text; none for undefined.
pub(super) fn text_at(scope: &v8::PinScope<'_, '_>, list: v8::Local<'_, v8::Object>, index: u32) -> Option<String> {
    let item = list.get_index(scope, index)?;
    item.is_string().then(|| item.to_rust_string_lossy(scope))
}

/// The bytes of a buffer or of a view of one.
pub(super) fn bytes_of(value: v8::Local<'_, v8::Value>) -> Option<Vec<u8>> {
    if let Ok(view) = v8::Local::<v8::ArrayBufferView>::try_from(value) {
        let mut bytes = vec![0; view.byte_length()];
        let copied = view.copy_contents(&mut bytes);
        bytes.truncate(copied);
        return Some(bytes);
    }
    let buffer = v8::Local::<v8::ArrayBuffer>::try_from(value).ok()?;
    let mut bytes = vec![0; buffer.byte_length()];
    if let Some(data) = buffer.data() {
        // SAFETY: V8 owns `byte_length` bytes there as long as the buffer is neither detached nor collected, and no JavaScript
        // runs in between; `bytes` is a fresh allocation of that length.
        unsafe { ptr::copy_nonoverlapping(data.as_ptr().cast::<u8>(), bytes.as_mut_ptr(), bytes.len()) };
    }
    Some(bytes)
}

/// Makes a `Uint8Array` within the buffer budget: none past it. (V8 ends the process when its own allocation fails here, so
/// the budget is asked first, after a collection if need be.)
pub(super) fn new_bytes<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    shared: &Shared,
    bytes: &[u8],
) -> Option<v8::Local<'s, v8::Uint8Array>> {
    let fits = || {
        let limit = shared.budgets.array_buffer_bytes;
        shared
            .buffers
            .load(Ordering::Acquire)
            .checked_add(bytes.len())
            .is_some_and(|sum| sum <= limit)
    };
    if !fits() {
        scope.low_memory_notification();
        if !fits() {
            shared.buffers_refused.fetch_add(1, Ordering::AcqRel);
            return None;
        }
    }
    let buffer = v8::ArrayBuffer::new(scope, bytes.len());
    if let Some(data) = buffer.data() {
        // SAFETY: the buffer was made just now with this length, and nothing else knows of it.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), data.as_ptr().cast::<u8>(), bytes.len()) };
    }
    v8::Uint8Array::new(scope, buffer, 0, bytes.len())
}
