//! Canonical JSON and the durable record of a cell.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;
use serde_json::Value;
use zero_contracts::files::Durability;
use zero_contracts::{CellId, Digest, Error, ErrorKind, Handle, SessionName, ZeroKernelEvent};

use crate::config::Result;
use crate::kernel::Kernel;
use crate::sessions::Head;

/// Writes the canonical JSON form of RFC 8785: keys in UTF-16 order, ECMAScript numbers, no white space.
///
/// # Errors
/// `internal` for a value that JSON cannot hold.
pub fn canonical_json<T: Serialize>(value: &T) -> Result<Vec<u8>> {
    serde_jcs::to_vec(value).map_err(|e| Error::new(ErrorKind::Internal, format!("cannot write canonical JSON: {e}")))
}

/// Signs an event if the host has a key, and stores it in its canonical form; its digest is its integrity digest.
///
/// # Errors
/// `budget`, `io`.
pub(crate) fn store_event(kernel: &Kernel, event: &mut ZeroKernelEvent) -> Result<Digest> {
    if let Some(key) = &kernel.config.signing_key {
        key.sign(event)?;
    }
    kernel.objects.put(&canonical_json(event)?)
}

impl Kernel {
    /// Moves a session's head by a cell without file effects; the caller holds the head lock. What changes the state
    /// survives what the configured durability says; what only adds an event is not flushed.
    ///
    /// # Errors
    /// `io`, `busy`.
    pub(crate) fn append(&self, session: &SessionName, cell: &CellId, head: Head, changes_state: bool) -> Result<()> {
        let flush = changes_state && self.config.durability == Durability::Power;
        if flush {
            self.files.flush()?;
        }
        self.sessions.append(session, cell, head, flush)
    }
}

/// Milliseconds since 1970.
pub fn now_ms() -> u64 {
    // A clock before 1970 counts as 1970; u64 holds 584 million years of milliseconds.
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_millis() as u64)
}

/// Collects every handle that a value refers to, in order of appearance, each once.
pub fn handles_in(value: &Value) -> Vec<Handle> {
    fn visit(value: &Value, found: &mut Vec<Handle>) {
        match value {
            Value::String(text) => {
                for (at, _) in text.match_indices("z://") {
                    let end = text[at..].find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, ':' | '/')));
                    let word = &text[at..end.map_or(text.len(), |end| at + end)];
                    if let Ok(handle) = word.parse()
                        && !found.contains(&handle)
                    {
                        found.push(handle);
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| visit(item, found)),
            Value::Object(fields) => fields.values().for_each(|field| visit(field, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    visit(value, &mut found);
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use zero_contracts::Digest;

    fn canonical(text: &str) -> String {
        let value: Value = serde_json::from_str(text).unwrap();
        String::from_utf8(canonical_json(&value).unwrap()).unwrap()
    }

    /// The examples that RFC 8785 publishes: sections 3.2.2 to 3.2.4 (one object through each stage) and 3.2.3 (sorting).
    #[test]
    fn the_examples_of_rfc_8785() {
        let input = r#"{
            "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
            "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
            "literals": [null, true, false]
        }"#;
        let wanted = r#"{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}"#;
        assert_eq!(canonical(input), wanted);
        // Section 3.2.4 gives the bytes.
        assert!(
            canonical(input)
                .as_bytes()
                .starts_with(&[0x7b, 0x22, 0x6c, 0x69, 0x74, 0x65, 0x72, 0x61, 0x6c, 0x73])
        );

        let input = r#"{
            "\u20ac": "Euro Sign", "\r": "Carriage Return", "\ufb33": "Hebrew Letter Dalet With Dagesh", "1": "One",
            "\ud83d\ude00": "Emoji: Grinning Face", "\u0080": "Control", "\u00f6": "Latin Small Letter O With Diaeresis"
        }"#;
        let text = canonical(input);
        let order: Vec<_> = [
            "Carriage Return",
            "One",
            "Control",
            "Latin Small Letter O With Diaeresis",
            "Euro Sign",
            "Emoji: Grinning Face",
            "Hebrew Letter Dalet With Dagesh",
        ]
        .iter()
        .map(|value| text.find(value).unwrap())
        .collect();
        assert!(order.is_sorted(), "{text}");
    }

    /// Appendix B of RFC 8785: IEEE 754 bits, and how ECMAScript writes the number.
    #[test]
    fn the_numbers_of_rfc_8785() {
        for (bits, wanted) in [
            (0x0000_0000_0000_0000_u64, "0"),
            (0x8000_0000_0000_0000, "0"),
            (0x0000_0000_0000_0001, "5e-324"),
            (0x8000_0000_0000_0001, "-5e-324"),
            (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
            (0xffef_ffff_ffff_ffff, "-1.7976931348623157e+308"),
            (0x4340_0000_0000_0000, "9007199254740992"),
            (0xc340_0000_0000_0000, "-9007199254740992"),
            (0x4430_0000_0000_0000, "295147905179352830000"),
            (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
            (0x44b5_2d02_c7e1_4af6, "1e+23"),
            (0x44b5_2d02_c7e1_4af7, "1.0000000000000001e+23"),
            (0x444b_1ae4_d6e2_ef4e, "999999999999999700000"),
            (0x444b_1ae4_d6e2_ef4f, "999999999999999900000"),
            (0x444b_1ae4_d6e2_ef50, "1e+21"),
            (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"),
            (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
            (0x41b3_de43_5555_5553, "333333333.3333332"),
            (0x41b3_de43_5555_5554, "333333333.33333325"),
            (0x41b3_de43_5555_5555, "333333333.3333333"),
            (0x41b3_de43_5555_5556, "333333333.3333334"),
            (0x41b3_de43_5555_5557, "333333333.33333343"),
            (0xbecb_f647_612f_3696, "-0.0000033333333333333333"),
            (0x4314_3ff3_c1cb_0959, "1424953923781206.2"),
        ] {
            let text = canonical_json(&f64::from_bits(bits)).unwrap();
            assert_eq!(String::from_utf8(text).unwrap(), wanted, "{bits:016x}");
        }
        for unwritable in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert!(canonical_json(&unwritable).is_err());
        }
    }

    #[test]
    fn handles_are_found_inside_texts_once() {
        let handle = Handle::blob(Digest::of(b"x"));
        let value = json!({"a": [format!("see {handle}, {handle}."), "z://blob/zz"], "b": handle});
        assert_eq!(handles_in(&value), [handle]);
    }
}
