//! The promises of projected text: it fits, it is never dearer than the whole, it fills the budget, it comes back.

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use tokenzero::{MemoryStore, TokenConfig, TokenZero};
use zero_contracts::tokens::{ProjectText, ProjectedText, TextKind};
use zero_contracts::{CancelToken, Digest, Error, ErrorKind, ObjectStore, TokenEngine};

use crate::rebuild;

const KINDS: [TextKind; 6] = [
    TextKind::Detect,
    TextKind::Text,
    TextKind::Log,
    TextKind::Diff,
    TextKind::Listing,
    TextKind::Source,
];

fn how(kind: TextKind, budget: u64) -> ProjectText<'static> {
    ProjectText {
        kind,
        budget,
        ..ProjectText::default()
    }
}

fn project(store: &MemoryStore, text: &str, kind: TextKind, budget: u64) -> Result<ProjectedText, Error> {
    TokenZero::default().project_text(text, &how(kind, budget), store, &CancelToken::new())
}

/// Everything that is promised of a projected text.
fn check(text: &str, kind: TextKind, budget: u64) {
    let engine = TokenZero::default();
    let store = MemoryStore::new();
    let raw = engine.count(text).tokens;
    let shown = match project(&store, text, kind, budget) {
        Ok(shown) => shown,
        Err(error) => {
            assert_eq!(error.kind, ErrorKind::InvalidInput, "{error}");
            assert!(raw > budget && budget < 50, "{error} for a budget of {budget}");
            return;
        }
    };
    assert_eq!(shown.raw.tokens, raw);
    assert_eq!(shown.shown.tokens, engine.count(&shown.text).tokens);
    assert!(shown.shown.tokens <= budget, "{} over {budget}", shown.shown.tokens);
    assert!(shown.shown.tokens <= raw);
    assert_eq!(project(&store, text, kind, budget).unwrap(), shown, "the same again");
    if raw <= budget {
        assert_eq!((shown.text.as_str(), &shown.handle, shown.cuts.len()), (text, &None, 0));
        return;
    }
    assert!(!shown.cuts.is_empty());
    assert!(
        rebuild::text(&engine, &store, &shown) == text.as_bytes(),
        "of {shown:?}"
    );
    if shown.text.starts_with(['{', '"']) {
        return;
    }
    // The next character may cost several tokens, which matters to very small budgets only.
    assert!(
        budget < 60 || shown.shown.tokens * 100 >= budget * 85,
        "{} of {budget}: {}",
        shown.shown.tokens,
        shown.text
    );
    let content = engine.count(&rebuild::content(&shown)).tokens;
    if budget >= 300 {
        assert!(
            content * 100 >= budget * 85,
            "{content} content of {budget} in {kind:?}: {}",
            shown.text
        );
    }
}

/// Text as tools write it, with everything that is awkward.
fn text() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        4 => "[a-z ]{0,60}",
        2 => "(test [a-z_:]{3,20} \\.\\.\\. ok)",
        1 => "(error|warning|FAILED|panicked at|diff --git a/x b/x|@@ -1,2 \\+3,4 @@|src/lib\\.rs:[0-9]{1,3}:)[ a-z:]{0,30}",
        1 => "\\PC{0,40}",
        1 => "[0-9a-f]{0,80}",
        1 => Just(String::new()),
        1 => (any::<char>(), 1..800_usize).prop_map(|(c, n)| c.to_string().repeat(n)),
        1 => "[a-zA-Z0-9+/]{100,900}",
    ];
    let lines = prop::collection::vec((line, 1..12_usize), 0..60);
    (lines, prop::bool::ANY, prop::sample::select(vec!["\n", "\r\n"])).prop_map(|(lines, last, end)| {
        let lines: Vec<String> = lines
            .into_iter()
            .flat_map(|(line, times)| std::iter::repeat_n(line, times))
            .collect();
        lines.join(end) + if last { end } else { "" }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::cases(150), max_shrink_iters: 100, ..ProptestConfig::default() })]

    #[test]
    fn every_promise_over_random_texts_and_budgets(
        text in text(), kind in prop::sample::select(KINDS.to_vec()), budget in prop_oneof![1..60_u64, 60..1500_u64]
    ) {
        check(&text, kind, budget);
    }
}

#[test]
fn one_long_line_is_cut_inside() {
    check(&"a very long line ".repeat(4000), TextKind::Detect, 200);
    check(&"中文".repeat(9000), TextKind::Log, 333);
    check(&" ".repeat(50_000), TextKind::Text, 300);
    check(&"\n".repeat(50_000), TextKind::Text, 300);
}

/// Counted one by one, empty lines cost many times what they cost together.
#[test]
fn runs_of_empty_lines_leave_no_budget_unused() {
    let head = "words of a first line that stands there twice\n".repeat(2) + &"test one ... ok\n".repeat(9);
    let marks = "warning: of something\n\n\n\nerror: of something else\n\n\n\n\npanicked at a place\n\n";
    for lines in [200, 700, 5000] {
        let text = format!(
            "{head}{}{}{}",
            "\n".repeat(lines),
            marks.repeat(30),
            "\n".repeat(lines / 3)
        );
        for budget in (60..1500).step_by(37) {
            for kind in KINDS {
                check(&text, kind, budget);
            }
        }
    }
}

#[test]
fn a_budget_below_the_smallest_mark_is_invalid_and_says_what_would_do() {
    let text = "some words on a line\n".repeat(100);
    let store = MemoryStore::new();
    let error = project(&store, &text, TextKind::Detect, 3).unwrap_err();
    assert_eq!(
        (error.kind, error.path.as_deref()),
        (ErrorKind::InvalidInput, Some("budget"))
    );
    let least: u64 = error
        .detail
        .split("; ")
        .nth(1)
        .unwrap()
        .split(' ')
        .next()
        .unwrap()
        .parse()
        .unwrap();
    assert!(project(&store, &text, TextKind::Detect, least).is_ok());
    assert!(project(&store, &text, TextKind::Detect, least - 1).is_err());
}

/// A store that keeps nothing.
struct Full;

impl ObjectStore for Full {
    fn put(&self, _: &[u8]) -> Result<Digest, Error> {
        Err(Error::new(ErrorKind::Budget, "the store's quota is spent"))
    }
    fn writer(&self) -> Result<Box<dyn zero_contracts::objects::ObjectWriter>, Error> {
        Err(Error::new(ErrorKind::Budget, "the store's quota is spent"))
    }
    fn get(&self, _: &Digest) -> Result<Vec<u8>, Error> {
        Err(Error::new(ErrorKind::NotFound, "nothing is kept"))
    }
    fn open(&self, _: &Digest) -> Result<Box<dyn std::io::Read + Send>, Error> {
        Err(Error::new(ErrorKind::NotFound, "nothing is kept"))
    }
    fn get_range(&self, _: &Digest, _: zero_contracts::ByteRange) -> Result<Vec<u8>, Error> {
        Err(Error::new(ErrorKind::NotFound, "nothing is kept"))
    }
    fn size(&self, _: &Digest) -> Result<Option<u64>, Error> {
        Ok(None)
    }
}

#[test]
fn what_cannot_be_stored_is_shown_whole_or_refused_never_cut() {
    let engine = TokenZero::default();
    let token = CancelToken::new();
    let text = "line\n".repeat(100);
    assert_eq!(
        engine
            .project_text(&text, &how(TextKind::Text, 1000), &Full, &token)
            .unwrap()
            .text,
        text
    );
    let error = engine
        .project_text(&text, &how(TextKind::Text, 50), &Full, &token)
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::Budget);
    let value = serde_json::json!({ "text": text });
    assert!(engine.project_value(&value, 1000, &Full, &token).is_ok());
    assert_eq!(
        engine.project_value(&value, 50, &Full, &token).unwrap_err().kind,
        ErrorKind::Budget
    );
}

#[test]
fn a_cancelled_projection_says_so() {
    let token = CancelToken::new();
    token.cancel();
    let engine = TokenZero::default();
    let error = engine
        .project_text("x", &how(TextKind::Text, 9), &MemoryStore::new(), &token)
        .unwrap_err();
    assert_eq!(error.kind, ErrorKind::Cancelled);
}

#[test]
fn an_unknown_model_is_estimated_and_its_estimate_fits() {
    let engine = TokenZero::new(TokenConfig {
        model_or_encoding: "unheard-of-1".into(),
    });
    let text = "some words on a line\n".repeat(300);
    let shown = engine
        .project_text(
            &text,
            &how(TextKind::Text, 120),
            &MemoryStore::new(),
            &CancelToken::new(),
        )
        .unwrap();
    assert!(!shown.raw.exact && !shown.shown.exact && shown.shown.tokens <= 120);
    assert_eq!(shown.shown, engine.count(&shown.text));
}

/// A log too large to be held: failures in the middle, far from both ends.
fn large_log(lines: usize) -> String {
    use std::fmt::Write as _;
    let mut log = String::new();
    for line in 1..=lines {
        if line % (lines / 3) == lines / 7 {
            writeln!(
                log,
                "2024-05-01T10:00:00Z ERROR worker-{line}: lost connection to shard number {line}"
            )
            .unwrap();
        } else {
            writeln!(
                log,
                "2024-05-01T10:00:{:02}Z INFO request {line} took {} ms on host alpha",
                line % 60,
                line % 97
            )
            .unwrap();
        }
    }
    log
}

#[test]
fn a_large_object_is_projected_without_being_held() {
    let log = large_log(120_000);
    assert!(log.len() > 6 << 20);
    let engine = TokenZero::default();
    let store = MemoryStore::new();
    let object = store.put(log.as_bytes()).unwrap();
    let shown = engine
        .project_object(&object, &how(TextKind::Detect, 1000), &store, &CancelToken::new())
        .unwrap();
    assert!(
        shown.shown.tokens <= 1000 && shown.shown.tokens >= 850,
        "{}",
        shown.shown.tokens
    );
    assert!(!shown.raw.exact && shown.shown.exact);
    let raw = engine.count(&log).tokens;
    assert!(
        shown.raw.tokens.abs_diff(raw) * 20 < raw,
        "{} for {raw}",
        shown.raw.tokens
    );
    assert!(shown.text.starts_with("[120000 lines, "), "{}", shown.text);
    for line in [17_142, 57_142, 97_142] {
        assert!(shown.text.contains(&format!("worker-{line}: lost")), "{}", shown.text);
    }
    assert!(rebuild::text(&engine, &store, &shown) == log.as_bytes());
    // At hand in memory it is the same.
    let in_memory = project(&store, &log, TextKind::Detect, 1000).unwrap();
    assert_eq!((in_memory.text, in_memory.cuts), (shown.text, shown.cuts));
    assert!(in_memory.raw.tokens.abs_diff(raw) * 20 < raw);
}

#[test]
fn large_objects_of_awkward_shapes_come_back() {
    let engine = TokenZero::default();
    let store = MemoryStore::new();
    let shapes: [Vec<u8>; 5] = [
        vec![b'x'; 5 << 20],
        [vec![b'x'; 3 << 20], b"\n".to_vec(), vec![b'y'; 3 << 20]].concat(),
        b"\n".repeat(5 << 20),
        "ERROR é\n".repeat(700_000).into_bytes(),
        [
            b"a\n".repeat(2 << 20),
            b"error: in the middle\n".to_vec(),
            vec![b'z'; 1 << 20],
            b"\nb\n".repeat(1 << 20),
        ]
        .concat(),
    ];
    for bytes in shapes {
        let object = store.put(&bytes).unwrap();
        let shown = engine
            .project_object(&object, &how(TextKind::Log, 400), &store, &CancelToken::new())
            .unwrap();
        assert!(
            shown.shown.tokens <= 400 && shown.shown.tokens >= 340,
            "{}",
            shown.shown.tokens
        );
        assert!(rebuild::text(&engine, &store, &shown) == bytes, "{:.300}", shown.text);
        let read = engine
            .project_object(&object, &how(TextKind::Json, 400), &store, &CancelToken::new())
            .unwrap();
        // A prime and the size of a chunk: nothing falls on the same place twice, or everything does.
        for piece in [65_521, 256 << 10] {
            let shown = streamed(&engine, &store, &bytes, &how(TextKind::Json, 400), || piece);
            assert!(shown == read, "by {piece}: {:.300}", read.text);
        }
    }
}

/// Projects bytes that arrive in pieces of the sizes told.
fn streamed(
    engine: &TokenZero,
    store: &MemoryStore,
    mut bytes: &[u8],
    how: &ProjectText<'_>,
    mut piece: impl FnMut() -> usize,
) -> ProjectedText {
    let object = store.put(bytes).unwrap();
    let mut stream = engine.project_stream(how);
    while !bytes.is_empty() {
        let (now, later) = bytes.split_at(piece().clamp(1, bytes.len()));
        stream.take(now);
        bytes = later;
    }
    stream.finish(&object, store, &CancelToken::new()).unwrap()
}

#[test]
fn what_arrives_in_random_pieces_is_projected_like_the_object() {
    let engine = TokenZero::default();
    let store = MemoryStore::new();
    let log = large_log(120_000);
    let mut runner = TestRunner::deterministic();
    for round in 0..12 {
        // Around the size above which an object is not held whole, and beyond it.
        let size = [1_000, (4 << 20) - 1, 4 << 20, (4 << 20) + 1, 5 << 20, log.len()][round % 6];
        let how = how(
            [TextKind::Detect, TextKind::Text][round % 2],
            [1_000, 5 << 20][round / 6],
        );
        let bytes = &log.as_bytes()[..size];
        let object = store.put(bytes).unwrap();
        let read = engine
            .project_object(&object, &how, &store, &CancelToken::new())
            .unwrap();
        let rng = runner.rng();
        let piece = || 1 << (rng.next_u32() % 21) | (rng.next_u32() as usize & 0xfff);
        assert!(
            streamed(&engine, &store, bytes, &how, piece) == read,
            "{size} bytes: {:.300}",
            read.text
        );
    }
}

#[test]
fn bytes_outside_utf_8_are_shown_as_the_replacement_character() {
    let engine = TokenZero::default();
    let store = MemoryStore::new();
    let bytes = b"ok \xff line\n".repeat(400);
    let object = store.put(&bytes).unwrap();
    let shown = engine
        .project_object(&object, &how(TextKind::Text, 100), &store, &CancelToken::new())
        .unwrap();
    assert!(shown.text.contains("ok \u{fffd} line\n") && shown.shown.tokens <= 100);
    let missing = rebuild::expand(&engine, &store, &shown.handle.unwrap(), &shown.cuts[0]);
    assert!(bytes.windows(missing.len()).any(|part| part == missing));
}
