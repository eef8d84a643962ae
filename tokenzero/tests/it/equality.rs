//! Counts and ranks equal the reference tokenizer's.
//!
//! `TOKENZERO_CORPUS` (directories, separated by `:`) and `TOKENZERO_CORPUS_MIB` (64) scale the ignored sweep over real text.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use tiktoken_rs::CoreBPE;
use tokenzero::{Counter, Encoding};

fn reference(encoding: Encoding) -> &'static CoreBPE {
    match encoding {
        Encoding::O200kBase => tiktoken_rs::o200k_base_singleton(),
        Encoding::O200kHarmony => tiktoken_rs::o200k_harmony_singleton(),
        Encoding::Cl100kBase => tiktoken_rs::cl100k_base_singleton(),
        Encoding::P50kBase => tiktoken_rs::p50k_base_singleton(),
        Encoding::R50kBase => tiktoken_rs::r50k_base_singleton(),
    }
}

/// Encodings that differ as text.
const DIFFERENT: [Encoding; 4] = [
    Encoding::O200kBase,
    Encoding::Cl100kBase,
    Encoding::P50kBase,
    Encoding::R50kBase,
];

/// Compares ranks, and with them counts.
fn compare(encodings: &[Encoding], text: &str) {
    for &encoding in encodings {
        let counter = Counter::new(encoding);
        let expected = reference(encoding).encode_ordinary(text);
        let found = counter.encode(text);
        if found != expected {
            let at = found.iter().zip(&expected).position(|(a, b)| a != b).unwrap_or(0);
            let before: usize = expected[..at]
                .iter()
                .filter_map(|rank| counter.token_bytes(*rank))
                .map(<[u8]>::len)
                .sum();
            let near =
                String::from_utf8_lossy(&text.as_bytes()[before.saturating_sub(20)..text.len().min(before + 40)]);
            panic!("{encoding} differs at byte {before}: {near:?}");
        }
        let count = expected.len() as u64;
        assert_eq!(counter.count(text), count, "{encoding}");
        assert_eq!(counter.count_within(text, count), Some(count), "{encoding}");
        if count > 0 {
            assert_eq!(counter.count_within(text, count - 1), None, "{encoding}");
        }
    }
}

/// Deterministic numbers without a dependency (splitmix64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

/// A character of any plane, or one that the patterns treat apart.
fn any_character(numbers: &mut Numbers) -> char {
    const SPECIAL: &[char] = &[
        ' ', ' ', ' ', '\n', '\r', '\t', '\'', '\'', 's', 'S', 'ſ', 't', 'R', 'e', 'V', 'l', 'L', 'm', 'd', '/', '1',
        '²', '½', 'Ⅷ', 'ǅ', 'ʰ', '中', 'ª', '\u{301}', '\u{903}', '\u{20dd}', '\u{a0}', '\u{2028}', '\u{3000}',
        '\u{85}', '\u{1680}', 'É', 'é', '😀', '\u{200d}', '\u{fe0f}', '\u{fffd}', '\0', 'K', 'İ', 'ı', 'ß', '^', 'A',
    ];
    loop {
        let code = match numbers.below(10) {
            0..=4 => return SPECIAL[numbers.below(SPECIAL.len() as u64) as usize],
            5 => numbers.below(0x80),
            6 => numbers.below(0x3000),
            7 => numbers.below(0x1_0000),
            8 => numbers.below(0x2_0000),
            _ => numbers.below(0x11_0000),
        };
        if let Some(c) = char::from_u32(code as u32) {
            return c;
        }
    }
}

#[test]
fn every_character_of_every_plane_beside_every_kind_of_neighbour() {
    // Characters between a letter, a space, a digit and a quote: those of the Basic Latin to Greek blocks all, of the others
    // some; the ignored sweep below takes all.
    characters(|code| if code < 0x400 { 1 } else { 61 });
}

/// Soak: every character there is.
#[test]
#[ignore = "takes a minute"]
fn all_characters() {
    characters(|code| {
        if code < 0x3_4000 || (0xe_0000..0xe_0200).contains(&code) {
            1
        } else {
            7
        }
    });
}

fn characters(step: impl Fn(u32) -> u32) {
    let counters = DIFFERENT.map(|encoding| (Counter::new(encoding), reference(encoding)));
    let mut text = String::new();
    let mut code = 0;
    let mut numbers = Numbers(1);
    while code < 0x11_0000 {
        if let Some(c) = char::from_u32(code) {
            let other = any_character(&mut numbers);
            writeln!(text, "a{c} {c}B{c}{c}1{c}'{c}{other}").unwrap();
        }
        code += step(code);
        if text.len() > 1 << 16 || code >= 0x11_0000 {
            for (counter, reference) in &counters {
                assert_eq!(
                    counter.encode(&text),
                    reference.encode_ordinary(&text),
                    "{:?} before {code:x}",
                    counter
                );
            }
            text.clear();
        }
    }
}

#[test]
fn random_strings_of_special_characters() {
    let mut numbers = Numbers(7);
    for _ in 0..crate::cases(1500) {
        let length = 1 + numbers.below(40);
        let text: String = (0..length).map(|_| any_character(&mut numbers)).collect();
        compare(&DIFFERENT, &text);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::cases(200), ..ProptestConfig::default() })]

    #[test]
    fn words_spaces_and_contractions(
        text in r"(([A-Za-zÀ-ÿ]{1,8}|[ \t\r\n]{1,4}|'(s|T|re|LL|ſ|x)|[0-9]{1,5}|[!-/:-@^]{1,4}|\p{Lo}{1,3}|\p{M}|\p{Lu}{1,3})){1,30}"
    ) {
        compare(&DIFFERENT, &text);
    }
}

#[test]
fn names_of_special_tokens_are_plain_text() {
    for text in [
        "<|endoftext|>",
        "a<|endoftext|>b <|fim_prefix|><|start|>",
        "<|endofprompt|>\n",
    ] {
        compare(&Encoding::ALL, text);
        assert!(Counter::default_encoding().count(text) > 3);
    }
}

trait DefaultEncoding {
    fn default_encoding() -> Counter;
}

impl DefaultEncoding for Counter {
    fn default_encoding() -> Counter {
        Counter::new(Encoding::default())
    }
}

#[test]
fn long_runs_of_one_character() {
    // Lengths around the bounds of the two merging rules, and long ones.
    for c in ["A", "^", " ", "中", "😀", "\n", "a", "ab", "=-", "1", "\u{301}", "ä"] {
        for repeat in [99, 100, 101, 257, 2_000] {
            compare(&DIFFERENT, &c.repeat(repeat));
        }
    }
}

#[test]
fn bytes_that_are_not_utf8_count_as_the_replacement_character() {
    let counter = Counter::default_encoding();
    assert_eq!(counter.count_bytes(b"a\xff\xfeb"), counter.count("a\u{fffd}\u{fffd}b"));
    assert_eq!(counter.count_bytes(b"\xe4\xb8"), counter.count("\u{fffd}"));
}

#[test]
fn a_limit_stops_the_count() {
    let counter = Counter::default_encoding();
    assert_eq!(counter.count_within("one two three", 3), Some(3));
    assert_eq!(counter.count_within("one two three", 2), None);
    assert_eq!(counter.count_within("", 0), Some(0));
    // A limit may be met by the longest tokens there are.
    for encoding in DIFFERENT {
        let counter = Counter::new(encoding);
        let tokens = (0..210_000).filter_map(|rank| counter.token_bytes(rank));
        let longest = tokens
            .max_by_key(|bytes| bytes.len())
            .and_then(|bytes| str::from_utf8(bytes).ok());
        compare(&[encoding], longest.unwrap());
        compare(&[encoding], &longest.unwrap().repeat(50));
    }
}

#[test]
fn the_sources_of_this_crate() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut bytes, mut left) = (0, 4 << 20);
    sweep(root, &mut left, &mut |text| {
        bytes += text.len();
        compare(&DIFFERENT, text);
    });
    assert!(bytes > 50_000, "{bytes}");
}

/// Gives every UTF-8 file below `path` to `visit`, in order, until `left` bytes were given.
fn sweep(path: &Path, left: &mut usize, visit: &mut dyn FnMut(&str)) {
    let Ok(entries) = std::fs::read_dir(path) else { return };
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    for path in paths {
        if *left == 0 {
            return;
        }
        let Ok(kind) = path.symlink_metadata() else { continue };
        if kind.is_dir() {
            sweep(&path, left, visit);
        } else if kind.is_file()
            && let Ok(text) = std::fs::read_to_string(&path)
        {
            *left = left.saturating_sub(text.len());
            visit(&text);
        }
    }
}

/// Soak: equality over real text.
#[test]
#[ignore = "a sweep over real text; scaled by TOKENZERO_CORPUS and TOKENZERO_CORPUS_MIB"]
fn real_text() {
    let directories = std::env::var("TOKENZERO_CORPUS").expect("TOKENZERO_CORPUS names directories with text");
    let mebibytes: usize = std::env::var("TOKENZERO_CORPUS_MIB").map_or(64, |text| text.parse().unwrap());
    let (mut bytes, mut files, mut left) = (0, 0, mebibytes << 20);
    for directory in directories.split(':') {
        sweep(Path::new(directory), &mut left, &mut |text| {
            bytes += text.len();
            files += 1;
            compare(&DIFFERENT, text);
        });
    }
    println!("{files} files, {bytes} bytes equal in {} encodings", DIFFERENT.len());
    assert!(files > 0, "no text below {directories}");
}
