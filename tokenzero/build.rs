//! Turns the reference implementation's vocabularies and Unicode tables into flat tables that the crate maps as they are:
//! nothing is parsed or built at run time, and a program that never counts never touches their pages.

use std::path::{Path, PathBuf};
use std::{env, fs};

use regex_syntax::hir::{Class, HirKind};
use tiktoken_rs::CoreBPE;

#[path = "src/vocabulary/hash.rs"]
mod hash;

/// Bits of a slot that hold the rank; the rest hold a part of the hash.
const RANK_BITS: u32 = 18;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/vocabulary/hash.rs");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    write_classes(&out);

    let o200k = tokens(
        &tiktoken_rs::o200k_base().expect("the reference carries o200k_base"),
        199_998,
    );
    write_vocabulary(&out, "o200k", &o200k);
    let cl100k = tokens(
        &tiktoken_rs::cl100k_base().expect("the reference carries cl100k_base"),
        100_256,
    );
    write_vocabulary(&out, "cl100k", &cl100k);
    let p50k = tokens(
        &tiktoken_rs::p50k_base().expect("the reference carries p50k_base"),
        50_281,
    );
    write_vocabulary(&out, "p50k", &p50k);
    // r50k_base is p50k_base without its last tokens (runs of spaces), so that one table serves both.
    let r50k = tokens(
        &tiktoken_rs::r50k_base().expect("the reference carries r50k_base"),
        50_256,
    );
    assert!(
        r50k.len() == 50_256 && p50k[..50_256] == r50k[..],
        "r50k_base is no prefix of p50k_base any more"
    );
}

/// Bytes of every rank below `end`; a rank that is special or unused gives none.
fn tokens(reference: &CoreBPE, end: u32) -> Vec<Option<Vec<u8>>> {
    let special = reference.special_tokens();
    (0..end)
        .map(|rank| {
            let bytes = reference.decode_bytes(&[rank]).ok()?;
            let is_special = str::from_utf8(&bytes).is_ok_and(|text| special.contains(text));
            (!is_special).then_some(bytes)
        })
        .collect()
}

/// Writes `NAME.slots` (open addressing; a slot is hash tag and rank), `NAME.ends` (where each token's bytes end) and
/// `NAME.bytes`.
fn write_vocabulary(out: &Path, name: &str, tokens: &[Option<Vec<u8>>]) {
    assert!(tokens.len() < (1 << RANK_BITS) - 1);
    let capacity = (tokens.len() * 2).next_power_of_two();
    let mut slots = vec![u32::MAX; capacity];
    let (mut ends, mut bytes) = (Vec::new(), Vec::new());
    for (rank, token) in tokens.iter().enumerate() {
        if let Some(token) = token {
            bytes.extend_from_slice(token);
            let hash = hash::hash(token);
            let mut at = hash as usize & (capacity - 1);
            while slots[at] != u32::MAX {
                at = (at + 1) & (capacity - 1);
            }
            slots[at] = ((hash >> 32) as u32) << RANK_BITS | rank as u32;
        }
        ends.push(bytes.len() as u32);
    }
    let flat = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    write(&out.join(format!("{name}.slots")), &flat(&slots));
    write(&out.join(format!("{name}.ends")), &flat(&ends));
    write(&out.join(format!("{name}.bytes")), &bytes);
}

/// Writes `classes.index` (a block number for each 256 code points) and `classes.blocks` (a byte for each code point of
/// a block): bit 0 upper or title case letter, 1 lower case letter, 2 other letter, 3 mark, 4 number, 5 white space.
fn write_classes(out: &Path) {
    const PATTERNS: [&str; 6] = [
        r"[\p{Lu}\p{Lt}]",
        r"\p{Ll}",
        r"[\p{Lm}\p{Lo}]",
        r"\p{M}",
        r"\p{N}",
        r"\s",
    ];
    let mut classes = vec![0_u8; 0x11_0000];
    for (bit, pattern) in PATTERNS.iter().enumerate() {
        let hir = regex_syntax::parse(pattern).expect("a well-formed class");
        let HirKind::Class(Class::Unicode(class)) = hir.kind() else {
            panic!("{pattern} is no Unicode class");
        };
        for range in class.ranges() {
            for class in &mut classes[range.start() as usize..=range.end() as usize] {
                *class |= 1 << bit;
            }
        }
    }
    let (mut index, mut blocks): (Vec<u8>, Vec<&[u8]>) = (Vec::new(), Vec::new());
    for block in classes.chunks(256) {
        let number = blocks.iter().position(|known| *known == block).unwrap_or_else(|| {
            blocks.push(block);
            blocks.len() - 1
        });
        index.push(u8::try_from(number).expect("fewer than 256 different blocks"));
    }
    write(&out.join("classes.index"), &index);
    write(&out.join("classes.blocks"), &blocks.concat());
}

fn write(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).unwrap_or_else(|error| panic!("writing {}: {error}", path.display()));
}
