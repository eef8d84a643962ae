//! Which contract this build speaks: a version, and the digest of the contract's three forms.
//!
//! The forms lie in `contracts/forms`: JSON Schemas of the messages, the shape of the compact form, and TypeScript of what a
//! host gets back; prose is left out of all three. `cargo xtask conformance` makes them anew from the types and compares. A
//! form that has changed needs a new [`CONTRACT_VERSION`]: two builds that name one version have one contract.

use serde::Deserialize;

use crate::Digest;

/// Version of the contract: raised with every change of one of its forms, whoever can still read it. What old readers cannot
/// read any more raises [`wire::COMPACT_VERSION`](crate::wire::COMPACT_VERSION), too.
pub const CONTRACT_VERSION: u32 = 2;

/// The contract's digest under each version, as conformance keeps it.
pub const CONTRACT: &str = include_str!("../forms/contract.json");

/// What [`CONTRACT`] says.
#[derive(Deserialize)]
struct Contract {
    digest: Digest,
}

/// Returns the digest of the contract's forms: BLAKE3 over the three of them. Builds with equal digests understand one
/// another in every message.
pub fn contract_digest() -> Digest {
    // A test reads the document, which is part of the program.
    serde_json::from_str::<Contract>(CONTRACT).map_or(Digest::from_bytes([0; 32]), |contract| contract.digest)
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use proptest::prelude::*;
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    use serde::Serialize;
    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};

    use super::*;
    use crate::round_trip::every_message;
    use crate::shape::Registry;
    use crate::wire::{self, COMPACT_VERSION};

    /// Values looked at of each type: every variant comes up.
    const OBSERVED: usize = 300;

    /// Vectors kept of each type: the shortest out of so many.
    const VECTORS: usize = 3;
    const OUT_OF: usize = 30;

    fn forms() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("forms")
    }

    /// Where a form is to be written instead of being compared, for `cargo xtask conformance`.
    fn elsewhere() -> Option<PathBuf> {
        std::env::var_os("ZEROSTACK_FORMS_TO").map(PathBuf::from)
    }

    /// Compares a form with the one that is kept, or writes it where conformance wants it.
    fn compare(name: &str, made: &str) {
        if let Some(to) = elsewhere() {
            std::fs::write(to.join(name), made).unwrap();
            return;
        }
        let kept = std::fs::read_to_string(forms().join(name)).unwrap_or_default();
        assert!(
            kept == made,
            "{name} has changed: raise CONTRACT_VERSION and run `cargo xtask conformance --bless`"
        );
    }

    #[test]
    fn the_contract_that_is_kept_is_that_of_this_version() {
        if elsewhere().is_some() {
            return; // It is about to be written.
        }
        let kept: Value = serde_json::from_str(CONTRACT).unwrap();
        let digest = contract_digest().to_string();
        assert_eq!(kept["version"], json!(CONTRACT_VERSION));
        assert_eq!(kept["versions"][CONTRACT_VERSION.to_string()], json!(digest));
    }

    #[test]
    fn the_shape_of_the_compact_form_is_the_one_that_is_kept() {
        let mut registry = Registry::default();
        let mut roots = String::new();
        macro_rules! observe {
            ($($name:ident: $type:ty;)*) => {
                $(
                    let mut runner = TestRunner::deterministic();
                    let strategy = any::<$type>();
                    let mut shape = None;
                    for _ in 0..OBSERVED {
                        shape = Some(registry.observe(&strategy.new_tree(&mut runner).unwrap().current()));
                    }
                    roots += &format!("{}: {}\n", stringify!($name), shape.unwrap());
                )*
            };
        }
        every_message!(observe);
        assert_eq!(registry.unseen(), Vec::<String>::new(), "look at more values");
        compare("postcard.txt", &format!("{registry}\n{roots}"));
    }

    /// One value with its bytes, as it is kept.
    fn vector<T: Serialize>(value: &T) -> Value {
        let bytes = wire::encode(value).unwrap();
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        json!({ "value": value, "bytes": hex })
    }

    fn holds<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(name: &str, kept: &Value) {
        let hex = kept["bytes"].as_str().unwrap();
        let bytes: Vec<u8> = (0..hex.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
            .collect();
        let value: T = crate::json::from_value(kept["value"].clone()).unwrap();
        let decoded: T = wire::decode(&bytes).unwrap_or_else(|e| panic!("{name}: {e}: {hex}"));
        assert_eq!(decoded, value, "{name} is read otherwise than it was written");
        assert_eq!(
            wire::encode(&decoded).unwrap(),
            bytes,
            "{name} is written otherwise than it was"
        );
    }

    fn made<T: Arbitrary + Serialize>() -> Vec<Value> {
        let mut runner = TestRunner::deterministic();
        let strategy = any::<T>();
        let values = std::iter::repeat_with(|| strategy.new_tree(&mut runner).unwrap().current());
        let mut vectors: Vec<Value> = values.take(OUT_OF).map(|value| vector(&value)).collect();
        vectors.sort_by_key(|vector| vector["bytes"].as_str().map(str::len));
        vectors.dedup();
        vectors.truncate(VECTORS);
        vectors
    }

    /// What was written under this version of the compact form is read for ever, and written in the same bytes.
    #[test]
    fn the_vectors_that_are_kept_are_read_and_written_again() {
        let text = std::fs::read_to_string(forms().join("vectors.json")).unwrap_or_else(|_| "{}".to_owned());
        let mut kept: Value = serde_json::from_str(&text).unwrap();
        if kept["compactVersion"] != json!(COMPACT_VERSION) {
            kept = json!({ "compactVersion": COMPACT_VERSION });
        }
        let mut missing = Vec::new();
        macro_rules! check {
            ($($name:ident: $type:ty;)*) => {
                $(
                    let name = stringify!($name);
                    match kept[name].as_array() {
                        Some(vectors) => vectors.iter().for_each(|vector| holds::<$type>(name, vector)),
                        None => {
                            missing.push(name);
                            kept[name] = made::<$type>().into();
                        }
                    }
                )*
            };
        }
        every_message!(check);
        if let Some(to) = elsewhere() {
            let text = serde_json::to_string_pretty(&kept).unwrap() + "\n";
            std::fs::write(to.join("vectors.json"), text).unwrap();
        } else {
            assert_eq!(missing, Vec::<&str>::new(), "run `cargo xtask conformance --bless`");
        }
    }
}
