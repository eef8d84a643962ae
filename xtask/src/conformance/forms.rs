//! The three forms of the contract: made from the types, compared with those that are kept, and digested.
//!
//! JSON Schema comes from the contracts' document, which their property tests hold against the types; the shape of the compact
//! form from values that the types serialise; TypeScript from their source. Prose is left out, so that a better sentence is no
//! other contract. `contract.json` keeps the digest of every version: one version has one contract.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value, json};

use crate::cargo::{cargo, run, workspace};
use crate::node::types;

/// The files that are digested, in this order.
const FORMS: [&str; 3] = ["schema.json", "postcard.txt", "messages.d.ts"];

/// Made with them: values with their bytes, to which conformance only ever adds.
const VECTORS: &str = "vectors.json";

/// What the digests are kept in.
const CONTRACT: &str = "contract.json";

/// Messages that hosts get or give, and what they refer to.
const MESSAGES: [&str; 11] = [
    "ZeroKernelResponse",
    "ZeroKernelEvent",
    "Error",
    "ErrorKind",
    "Operation",
    "Plan",
    "StateEntry",
    "EffectRecord",
    "Budgets",
    "UndoOptions",
    "UndoReport",
];

/// Members of a schema that say something to people alone.
const PROSE: [&str; 4] = ["description", "title", "examples", "$comment"];

fn kept() -> PathBuf {
    workspace().join("contracts/forms")
}

/// Compares the forms with those that are kept; returns what is wrong.
pub fn check() -> Result<Vec<String>> {
    let made = make()?;
    let mut wrong = Vec::new();
    for name in FORMS.into_iter().chain([VECTORS]) {
        let new = fs_err::read_to_string(made.join(name))?;
        match fs_err::read_to_string(kept().join(name)) {
            Ok(old) if old == new => {}
            Ok(old) => wrong.push(format!("contracts/forms/{name} {}", first_difference(&old, &new))),
            Err(_) => wrong.push(format!("contracts/forms/{name} is not there")),
        }
    }
    let contract = contract()?;
    let (version, digest) = (version()?, digest(&made)?);
    match contract["versions"][version.to_string()].as_str() {
        Some(known) if known == digest => {}
        Some(known) => wrong.push(format!(
            "version {version} is the contract of digest {known}, the types make {digest}: raise CONTRACT_VERSION in \
             contracts/src/contract.rs"
        )),
        None => wrong.push(format!("version {version} has no digest yet")),
    }
    if contract["version"] != version || contract["digest"] != digest {
        wrong.push(format!(
            "contracts/forms/{CONTRACT} names another contract than version {version}, {digest}"
        ));
    }
    if !wrong.is_empty() {
        wrong.push("`cargo xtask conformance --bless` writes the forms of a new version".to_owned());
    }
    Ok(wrong)
}

/// Writes the forms and their digest. A version whose digest is known keeps it.
pub fn bless() -> Result<()> {
    let made = make()?;
    let (version, digest) = (version()?, digest(&made)?);
    let mut contract = contract()?;
    match contract["versions"][version.to_string()].as_str() {
        Some(known) if known != digest => bail!(
            "version {version} is the contract of digest {known}, and another one now: raise CONTRACT_VERSION in \
             contracts/src/contract.rs first"
        ),
        Some(_) => {}
        None => contract["versions"][version.to_string()] = json!(digest),
    }
    contract["version"] = json!(version);
    contract["digest"] = json!(digest);
    for name in FORMS.into_iter().chain([VECTORS]) {
        fs_err::copy(made.join(name), kept().join(name))?;
    }
    fs_err::write(kept().join(CONTRACT), serde_json::to_string_pretty(&contract)? + "\n")?;
    println!("version {version} of the contract: {digest}");
    Ok(())
}

/// Makes all forms in a directory of its own and returns it.
fn make() -> Result<PathBuf> {
    let metadata = cargo_metadata::MetadataCommand::new()
        .current_dir(workspace())
        .no_deps()
        .exec()
        .context("asking cargo for its target directory")?;
    let made = metadata.target_directory.into_std_path_buf().join("forms");
    if made.exists() {
        fs_err::remove_dir_all(&made)?;
    }
    fs_err::create_dir_all(&made)?;
    let schemas: Value = serde_json::from_str(&fs_err::read_to_string(workspace().join("contracts/schemas.json"))?)?;
    fs_err::write(
        made.join("schema.json"),
        serde_json::to_string_pretty(&bare(&schemas, false))? + "\n",
    )?;
    fs_err::write(
        made.join("messages.d.ts"),
        types::declarations(&MESSAGES, &["contracts/src"], false)?,
    )?;
    run(
        cargo(&["test", "--quiet", "--package", "zero-contracts", "--lib", "contract::"])
            .env("ZEROSTACK_FORMS_TO", &made),
    )
    .context("the types cannot tell their compact form")?;
    Ok(made)
}

/// A schema without prose, its members in order of their names. The members of `properties` and `$defs` are names of things.
fn bare(schema: &Value, names: bool) -> Value {
    match schema {
        Value::Object(members) => {
            let mut sorted: Vec<_> = members
                .iter()
                .filter(|(name, _)| names || !PROSE.contains(&name.as_str()))
                .collect();
            sorted.sort_by_key(|(name, _)| *name);
            let of_names = |name: &str| !names && matches!(name, "properties" | "$defs" | "patternProperties");
            let members = sorted
                .into_iter()
                .map(|(name, member)| (name.clone(), bare(member, of_names(name))));
            Value::Object(members.collect::<Map<_, _>>())
        }
        Value::Array(elements) => elements.iter().map(|element| bare(element, false)).collect(),
        other => other.clone(),
    }
}

fn contract() -> Result<Value> {
    let text = fs_err::read_to_string(kept().join(CONTRACT))?;
    serde_json::from_str(&text).context(CONTRACT)
}

/// The version that the contracts' source names.
fn version() -> Result<u32> {
    let source = fs_err::read_to_string(workspace().join("contracts/src/contract.rs"))?;
    let file = syn::parse_file(&source)?;
    let value = file.items.into_iter().find_map(|item| match item {
        syn::Item::Const(item) if item.ident == "CONTRACT_VERSION" => Some(item.expr),
        _ => None,
    });
    match value.map(|value| *value) {
        Some(syn::Expr::Lit(syn::ExprLit {
            lit: syn::Lit::Int(number),
            ..
        })) => Ok(number.base10_parse()?),
        _ => bail!("contracts/src/contract.rs has no CONTRACT_VERSION that is a number"),
    }
}

/// BLAKE3 over the forms: of each its name, its length and its bytes.
fn digest(forms: &Path) -> Result<String> {
    let mut hasher = blake3::Hasher::new();
    for name in FORMS {
        let bytes = fs_err::read(forms.join(name))?;
        hasher.update(name.as_bytes());
        hasher.update(&[0]);
        hasher.update(&(bytes.len() as u64).to_le_bytes());
        hasher.update(&bytes);
    }
    Ok(hasher.finalize().to_hex().to_string())
}

fn first_difference(old: &str, new: &str) -> String {
    let (mut a, mut b) = (old.lines(), new.lines());
    let mut number = 0;
    loop {
        number += 1;
        match (a.next(), b.next()) {
            (Some(old), Some(new)) if old == new => {}
            (None, None) => return "differs in its line ends".to_owned(),
            (old, new) => {
                let shown = |line: Option<&str>| line.map_or("nothing".to_owned(), |line| format!("`{}`", line.trim()));
                return format!(
                    "differs at line {number}: {} is kept, the types make {}",
                    shown(old),
                    shown(new)
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_is_no_part_of_a_schema_and_names_are() {
        let schema = json!({
            "title": "A thing",
            "properties": { "title": { "type": "string", "description": "Shown." }, "a": { "examples": [1], "const": 1 } },
            "anyOf": [{ "description": "one" }],
            "$defs": { "description": { "$comment": "x" } },
        });
        let expected = json!({
            "$defs": { "description": {} },
            "anyOf": [{}],
            "properties": { "a": { "const": 1 }, "title": { "type": "string" } },
        });
        assert_eq!(bare(&schema, false), expected);
    }

    #[test]
    fn the_digest_is_that_of_every_form_and_of_their_borders() {
        let directory = |forms: [&str; 3]| {
            let dir = tempfile::tempdir().unwrap();
            for (name, text) in FORMS.iter().zip(forms) {
                std::fs::write(dir.path().join(name), text).unwrap();
            }
            digest(dir.path()).unwrap()
        };
        let all = [
            ["a", "b", "c"],
            ["ab", "", "c"],
            ["a", "", "bc"],
            ["a", "c", "b"],
            ["", "", ""],
        ]
        .map(directory);
        for (at, one) in all.iter().enumerate() {
            assert!(all[at + 1..].iter().all(|other| other != one));
        }
    }

    #[test]
    fn a_difference_is_told_by_its_line() {
        assert_eq!(
            first_difference("a\nb\n", "a\n c\n"),
            "differs at line 2: `b` is kept, the types make `c`"
        );
        assert_eq!(
            first_difference("a\n", "a\nb\n"),
            "differs at line 2: nothing is kept, the types make `b`"
        );
        assert_eq!(first_difference("a", "a\n"), "differs in its line ends");
    }
}
