//! Recorded output of tools: the fact that each is read for stays visible in a projection that is far smaller, and what
//! it saves is counted after a part was brought back.

use std::path::Path;

use tokenzero::{MemoryStore, TokenZero};
use zero_contracts::tokens::{ProjectText, TextKind};
use zero_contracts::{CancelToken, TokenEngine};

use crate::rebuild;

struct Fixture {
    file: &'static str,
    kind: TextKind,
    budget: u64,
    /// What must stay visible.
    facts: &'static [&'static str],
}

const fn fixture(file: &'static str, kind: TextKind, budget: u64, facts: &'static [&'static str]) -> Fixture {
    Fixture {
        file,
        kind,
        budget,
        facts,
    }
}

const FIXTURES: &[Fixture] = &[
    // A run of 5,000 tests, of which three in the middle failed: names and messages of all three.
    fixture(
        "cargo_test.txt",
        TextKind::Log,
        500,
        &[
            "cart_total_counts_every_item",
            "the total of a cart with three items",
            "epoch_only_grows",
            "lease epoch went backwards: 41 after 42",
            "frame_is_read_whole",
            "unexpected end of frame at byte 117",
            "4997 passed; 3 failed",
        ],
    ),
    fixture(
        "pytest.txt",
        TextKind::Log,
        600,
        &[
            "test_totals_are_sums[217]",
            "assert 434 == 435",
            "KeyError: 'price'",
            "2 failed, 699 passed",
        ],
    ),
    fixture(
        "go_test.txt",
        TextKind::Log,
        400,
        &[
            "--- FAIL: TestCase233",
            "cart_test.go:88: Discount(100, 0.15) = 84, want 85",
        ],
    ),
    fixture(
        "rustc.txt",
        TextKind::Log,
        1000,
        &[
            "error[E0308]: mismatched types",
            "error[E0594]: cannot assign to `lease.epoch`",
        ],
    ),
    fixture(
        "tsc.txt",
        TextKind::Log,
        600,
        &["error TS", "Property 'wieght' does not exist on type 'Order'"],
    ),
    fixture(
        "npm.txt",
        TextKind::Log,
        500,
        &[
            "Can't resolve './legacy/currency' in 'src/checkout'",
            "Build failed with 1 error",
        ],
    ),
    fixture(
        "docker.txt",
        TextKind::Log,
        500,
        &[
            "src/codec.c:412:9: error: implicit declaration of function 'crc32c_sse42'",
            "step-14",
            "exit code: 2",
        ],
    ),
    fixture(
        "apt.txt",
        TextKind::Text,
        400,
        &["postgresql is already the newest version", "Conf texlive-latex-base"],
    ),
    fixture(
        "java_log.txt",
        TextKind::Log,
        600,
        &[
            "currency table is empty for region EU-7",
            "Currency.java:71",
            "Connection refused: rates.internal:9042",
        ],
    ),
    fixture(
        "python_trace.txt",
        TextKind::Log,
        600,
        &[
            "Traceback (most recent call last)",
            "json.decoder.JSONDecodeError: Expecting property name",
        ],
    ),
    fixture(
        "git_diff.txt",
        TextKind::Diff,
        800,
        &["diff --git a/fszero/Cargo.toml", "@@"],
    ),
    fixture("git_log.txt", TextKind::Detect, 500, &["commit ", "tokenzero/"]),
    fixture(
        "git_status.txt",
        TextKind::Listing,
        500,
        &["both modified:   src/checkout/total.rs", "Untracked files:"],
    ),
    fixture("ls.txt", TextKind::Listing, 500, &["contracts/src:", "graphzero:"]),
    fixture(
        "grep.txt",
        TextKind::Listing,
        500,
        &["contracts/src/range.rs:20:", "pub fn new("],
    ),
    fixture(
        "api.json",
        TextKind::Json,
        800,
        &["\"total\": 640", "repository-0", "repository-639", "\"remaining\": 12"],
    ),
];

fn read(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn the_fact_of_every_fixture_stays_visible() {
    let (engine, store, token) = (TokenZero::default(), MemoryStore::new(), CancelToken::new());
    let mut missing = Vec::new();
    for fixture in FIXTURES {
        let text = read(fixture.file);
        let how = ProjectText {
            kind: TextKind::Detect,
            budget: fixture.budget,
            ..ProjectText::default()
        };
        let shown = engine.project_text(&text, &how, &store, &token).unwrap();
        assert!(
            shown.shown.tokens <= fixture.budget && shown.raw.tokens > 2 * fixture.budget,
            "{}",
            fixture.file
        );
        for fact in fixture.facts {
            if !shown.text.contains(fact) {
                missing.push(format!("{}: `{fact}` is not in\n{}", fixture.file, shown.text));
            }
        }
        // The kind that was found out gives what the kind itself gives.
        let how = ProjectText {
            kind: fixture.kind,
            ..how
        };
        let by_kind = engine.project_text(&text, &how, &store, &token).unwrap();
        if by_kind != shown {
            missing.push(format!("{} is taken for another kind", fixture.file));
        }
        if fixture.kind != TextKind::Json {
            assert!(
                rebuild::text(&engine, &store, &shown) == text.as_bytes(),
                "{}",
                fixture.file
            );
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n\n"));
}

/// Prints the table of the README: `cargo test -p tokenzero net_saving -- --nocapture`.
#[test]
fn net_saving_of_every_fixture_after_a_part_was_brought_back() {
    let (engine, store, token) = (TokenZero::default(), MemoryStore::new(), CancelToken::new());
    println!("| output | raw | shown | brought back | net saving |\n| --- | ---: | ---: | ---: | ---: |");
    for fixture in FIXTURES {
        let text = read(fixture.file);
        let how = ProjectText {
            kind: fixture.kind,
            budget: fixture.budget,
            ..ProjectText::default()
        };
        let shown = engine.project_text(&text, &how, &store, &token).unwrap();
        let mut account = engine.account();
        account.charge_text(&shown);
        // A reader asks for the largest cut, as much of it as the budget was.
        let largest = shown.cuts.iter().max_by_key(|cut| cut.bytes).unwrap();
        let digest = shown.handle.unwrap().digest;
        let part = engine
            .expand(&digest, &largest.selector, Some(fixture.budget), &store, &token)
            .unwrap();
        account.charge_expansion(&part);
        let percent = account.net() * 100 / account.raw as i64;
        println!(
            "| {} | {} | {} | {} | {percent} % |",
            fixture.file, account.raw, account.shown, account.expanded
        );
        assert!(account.net() > 0 && account.exact, "{}", fixture.file);
    }
}
