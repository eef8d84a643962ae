//! The native halves of the web interfaces: encodings, base64, URL and form encoding.
//!
//! Everything here takes values that the scripts of the snapshot pass and answers with new values.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use deno_core::url::{self, Url, form_urlencoded, quirks};
use deno_core::v8;
use encoding_rs::Encoding;

use super::convert::{bytes_of, new_bytes, string};
use super::native::Host;

pub(super) type Scope<'a, 's, 'i> = &'a mut v8::PinScope<'s, 'i>;
pub(super) type Answer<'a, 's> = &'a mut v8::ReturnValue<'s, v8::Value>;

pub(super) fn throw_range(scope: Scope<'_, '_, '_>, why: &str) {
    let message = string(scope, why);
    let error = v8::Exception::range_error(scope, message);
    scope.throw_exception(error);
}

/// Answers with bytes, or throws as an allocation past the budget does.
fn answer_bytes(scope: Scope<'_, '_, '_>, host: &Host, bytes: &[u8], answer: Answer<'_, '_>) {
    match new_bytes(scope, &host.shared, bytes) {
        Some(array) => answer.set(array.into()),
        None => throw_range(scope, super::failure::BUFFERS_EXHAUSTED),
    }
}

fn answer_text(scope: Scope<'_, '_, '_>, text: &str, answer: Answer<'_, '_>) {
    match v8::String::new(scope, text) {
        Some(text) => answer.set(text.into()),
        None => throw_range(scope, "Invalid string length"),
    }
}

pub(super) fn base64(scope: Scope<'_, '_, '_>, value: v8::Local<'_, v8::Value>, answer: Answer<'_, '_>) {
    if let Some(bytes) = bytes_of(value) {
        answer_text(scope, &STANDARD.encode(bytes), answer);
    }
}

/// "Forgiving" base64 of the Infra standard: white space is dropped and padding is optional.
pub(super) fn unbase64(scope: Scope<'_, '_, '_>, host: &Host, value: v8::Local<'_, v8::Value>, answer: Answer<'_, '_>) {
    const FORGIVING: GeneralPurpose = GeneralPurpose::new(
        &base64::alphabet::STANDARD,
        GeneralPurposeConfig::new()
            .with_decode_padding_mode(DecodePaddingMode::Indifferent)
            .with_decode_allow_trailing_bits(true),
    );
    let mut text = value.to_rust_string_lossy(scope);
    text.retain(|c| !matches!(c, ' ' | '\t' | '\n' | '\r' | '\x0c'));
    // Padding is complete or absent.
    if text.ends_with('=') && !text.len().is_multiple_of(4) {
        return;
    }
    if let Ok(bytes) = FORGIVING.decode(text) {
        answer_bytes(scope, host, &bytes, answer);
    }
}

pub(super) fn encode(scope: Scope<'_, '_, '_>, host: &Host, value: v8::Local<'_, v8::Value>, answer: Answer<'_, '_>) {
    let text = value.to_rust_string_lossy(scope);
    answer_bytes(scope, host, text.as_bytes(), answer);
}

/// The encodings offered: those whose unfinished tail is easy to tell, so that streams are exact.
fn known(label: &str) -> Option<&'static Encoding> {
    let encoding = Encoding::for_label(label.as_bytes())?;
    [
        encoding_rs::UTF_8,
        encoding_rs::UTF_16LE,
        encoding_rs::UTF_16BE,
        encoding_rs::WINDOWS_1252,
    ]
    .into_iter()
    .find(|known| *known == encoding)
}

pub(super) fn encoding(scope: Scope<'_, '_, '_>, label: v8::Local<'_, v8::Value>, answer: Answer<'_, '_>) {
    if let Some(encoding) = known(&label.to_rust_string_lossy(scope)) {
        answer_text(scope, &encoding.name().to_ascii_lowercase(), answer);
    }
}

/// Length of the unfinished character at the end of `bytes`.
fn unfinished(encoding: &'static Encoding, bytes: &[u8]) -> usize {
    if encoding == encoding_rs::UTF_8 {
        let starts_unfinished = |last: &[u8]| {
            std::str::from_utf8(last).is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
        };
        return (1..=bytes.len().min(3))
            .rev()
            .find(|n| starts_unfinished(&bytes[bytes.len() - n..]))
            .unwrap_or(0);
    }
    if encoding == encoding_rs::UTF_16LE || encoding == encoding_rs::UTF_16BE {
        let odd = bytes.len() % 2;
        let whole = &bytes[..bytes.len() - odd];
        let Some(last) = whole.last_chunk::<2>() else {
            return odd;
        };
        let unit = if encoding == encoding_rs::UTF_16LE {
            u16::from_le_bytes(*last)
        } else {
            u16::from_be_bytes(*last)
        };
        return odd + if (0xd800..0xdc00).contains(&unit) { 2 } else { 0 };
    }
    0
}

pub(super) fn decode(
    scope: Scope<'_, '_, '_>,
    host: &Host,
    args: &v8::FunctionCallbackArguments<'_>,
    answer: Answer<'_, '_>,
) {
    let Some(encoding) = known(&args.get(1).to_rust_string_lossy(scope)) else {
        return;
    };
    let (Some(mut bytes), Some(more)) = (bytes_of(args.get(2)), bytes_of(args.get(3))) else {
        return;
    };
    bytes.extend(more);
    let (fatal, keep_bom, stream) = (args.get(4).is_true(), args.get(5).is_true(), args.get(6).is_true());
    let rest = if stream { unfinished(encoding, &bytes) } else { 0 };
    let (whole, rest) = bytes.split_at(bytes.len() - rest);
    let mut decoder = if keep_bom {
        encoding.new_decoder_without_bom_handling()
    } else {
        encoding.new_decoder_with_bom_removal()
    };
    let room = if fatal {
        decoder.max_utf8_buffer_length_without_replacement(whole.len())
    } else {
        decoder.max_utf8_buffer_length(whole.len())
    };
    let Some(room) = room else {
        return throw_range(scope, "Invalid string length");
    };
    let mut text = String::with_capacity(room);
    if fatal {
        let (result, _) = decoder.decode_to_string_without_replacement(whole, &mut text, true);
        if !matches!(result, encoding_rs::DecoderResult::InputEmpty) {
            return;
        }
    } else {
        let (_, _, _) = decoder.decode_to_string(whole, &mut text, true);
    }
    let consumed = !whole.is_empty();
    let Some(rest) = new_bytes(scope, &host.shared, rest) else {
        return throw_range(scope, super::failure::BUFFERS_EXHAUSTED);
    };
    let Some(text) = v8::String::new(scope, &text) else {
        return throw_range(scope, "Invalid string length");
    };
    let items = [text.into(), rest.into(), v8::Boolean::new(scope, consumed).into()];
    answer.set(v8::Array::new_with_elements(scope, &items).into());
}

pub(super) fn view(scope: Scope<'_, '_, '_>, value: v8::Local<'_, v8::Value>, answer: Answer<'_, '_>) {
    let made = if let Ok(view) = v8::Local::<v8::ArrayBufferView>::try_from(value) {
        let Some(buffer) = view.buffer(scope) else { return };
        v8::Uint8Array::new(scope, buffer, view.byte_offset(), view.byte_length())
    } else if let Ok(buffer) = v8::Local::<v8::ArrayBuffer>::try_from(value) {
        v8::Uint8Array::new(scope, buffer, 0, buffer.byte_length())
    } else {
        None
    };
    if let Some(made) = made {
        answer.set(made.into());
    }
}

pub(super) fn latin1_text(scope: Scope<'_, '_, '_>, value: v8::Local<'_, v8::Value>, answer: Answer<'_, '_>) {
    let Some(bytes) = bytes_of(value) else { return };
    match v8::String::new_from_one_byte(scope, &bytes, v8::NewStringType::Normal) {
        Some(text) => answer.set(text.into()),
        None => throw_range(scope, "Invalid string length"),
    }
}

pub(super) fn latin1_bytes(
    scope: Scope<'_, '_, '_>,
    host: &Host,
    value: v8::Local<'_, v8::Value>,
    answer: Answer<'_, '_>,
) {
    let text = value.to_rust_string_lossy(scope);
    let bytes: Option<Vec<u8>> = text.chars().map(|c| u8::try_from(u32::from(c)).ok()).collect();
    if let Some(bytes) = bytes {
        answer_bytes(scope, host, &bytes, answer);
    }
}

/// Answers with the parts of a URL in the order of the accessors of `41_url.js`.
fn answer_url(scope: Scope<'_, '_, '_>, url: &Url, answer: Answer<'_, '_>) {
    let origin = quirks::origin(url);
    let parts = [
        quirks::href(url),
        quirks::protocol(url),
        quirks::username(url),
        quirks::password(url),
        quirks::host(url),
        quirks::hostname(url),
        quirks::port(url),
        quirks::pathname(url),
        quirks::search(url),
        quirks::hash(url),
        &origin,
    ]
    .map(|part| string(scope, part).into());
    answer.set(v8::Array::new_with_elements(scope, &parts).into());
}

pub(super) fn url_parse(scope: Scope<'_, '_, '_>, args: &v8::FunctionCallbackArguments<'_>, answer: Answer<'_, '_>) {
    let text = args.get(1).to_rust_string_lossy(scope);
    let parsed = if args.get(2).is_undefined() {
        Url::parse(&text)
    } else {
        Url::parse(&args.get(2).to_rust_string_lossy(scope)).and_then(|base| base.join(&text))
    };
    if let Ok(url) = parsed {
        answer_url(scope, &url, answer);
    }
}

pub(super) fn url_set(scope: Scope<'_, '_, '_>, args: &v8::FunctionCallbackArguments<'_>, answer: Answer<'_, '_>) {
    let Ok(mut url) = Url::parse(&args.get(1).to_rust_string_lossy(scope)) else {
        return;
    };
    let value = args.get(3).to_rust_string_lossy(scope);
    let changed: Result<(), ()> = match args.get(2).uint32_value(scope) {
        Some(0) => quirks::set_href(&mut url, &value).map_err(|_: url::ParseError| ()),
        Some(1) => quirks::set_protocol(&mut url, &value),
        Some(2) => quirks::set_username(&mut url, &value),
        Some(3) => quirks::set_password(&mut url, &value),
        Some(4) => quirks::set_host(&mut url, &value),
        Some(5) => quirks::set_hostname(&mut url, &value),
        Some(6) => quirks::set_port(&mut url, &value),
        Some(7) => {
            quirks::set_pathname(&mut url, &value);
            Ok(())
        }
        Some(8) => {
            quirks::set_search(&mut url, &value);
            Ok(())
        }
        Some(9) => {
            quirks::set_hash(&mut url, &value);
            Ok(())
        }
        _ => Err(()),
    };
    if changed.is_ok() {
        answer_url(scope, &url, answer);
    }
}

pub(super) fn form_parse(scope: Scope<'_, '_, '_>, text: v8::Local<'_, v8::Value>, answer: Answer<'_, '_>) {
    let text = text.to_rust_string_lossy(scope);
    let mut items: Vec<v8::Local<'_, v8::Value>> = Vec::new();
    for (name, value) in form_urlencoded::parse(text.as_bytes()) {
        items.push(string(scope, &name).into());
        items.push(string(scope, &value).into());
    }
    answer.set(v8::Array::new_with_elements(scope, &items).into());
}

/// UTF-16 units of all names and values together at most.
const FORM_LENGTH: usize = 2 << 20;

pub(super) fn form_write(scope: Scope<'_, '_, '_>, list: v8::Local<'_, v8::Value>, answer: Answer<'_, '_>) {
    let Ok(list) = v8::Local::<v8::Array>::try_from(list) else {
        return;
    };
    let mut form = form_urlencoded::Serializer::new(String::new());
    let item = |index| {
        list.get_index(scope, index)
            .map(|item| item.to_rust_string_lossy(scope))
            .unwrap_or_default()
    };
    let mut room = FORM_LENGTH;
    for index in 0..list.length() {
        let item = list.get_index(scope, index).map(v8::Local::<v8::String>::try_from);
        let length = item.and_then(Result::ok).map_or(0, |text| text.length());
        match room.checked_sub(length) {
            Some(left) => room = left,
            None => return throw_range(scope, "The parameters are longer than 2097152 characters"),
        }
    }
    for index in (0..list.length()).step_by(2) {
        form.append_pair(&item(index), &item(index + 1));
    }
    let text = form.finish();
    answer_text(scope, &text, answer);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unfinished_tail_of_a_stream_is_told() {
        let utf8 = |bytes: &[u8]| unfinished(encoding_rs::UTF_8, bytes);
        let text = "aé€😀".as_bytes();
        // Byte positions inside each character: how many bytes are left over when the stream stops there.
        let expected = [0, 0, 1, 0, 1, 2, 0, 1, 2, 3, 0];
        for (end, left) in expected.into_iter().enumerate() {
            assert_eq!(utf8(&text[..end]), left, "after {end} bytes");
        }
        assert_eq!(
            (utf8(b"\xff"), utf8(b"\x80\x80"), utf8(b"\xc0"), utf8(b"\xe2\x28")),
            (0, 0, 0, 0)
        );
        let utf16 = |bytes: &[u8]| unfinished(encoding_rs::UTF_16LE, bytes);
        assert_eq!(
            (
                utf16(b"a\0"),
                utf16(b"a\0b"),
                utf16(b"\x3d\xd8"),
                utf16(b"\x3d\xd8\x00")
            ),
            (0, 1, 2, 3)
        );
    }
}
