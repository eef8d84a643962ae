//! What a [`TokenEngine`] promises, whatever a token is to it.

use std::io::Read;
use std::sync::Arc;

use serde_json::{Value, json};
use zero_contracts::objects::ObjectWriter;
use zero_contracts::tokens::{Expansion, ProjectText, ProjectedText, Selector, TextKind};
use zero_contracts::{
    ByteRange, CancelToken, Digest, Error, ErrorKind, Handle, HandleKind, LineRange, ObjectStore, TokenEngine,
};

use crate::models::objects::MemoryObjects;
use crate::report::{self, Checked, Checks, Report, Stop, ensure, refused, same};

/// A token engine.
pub trait Tokens {
    /// The engine.
    fn engine(&self) -> Arc<dyn TokenEngine>;
}

/// Runs the suite against fresh engines.
pub fn run(fresh: &dyn Fn() -> Box<dyn Tokens>) -> Report {
    report::run("TokenEngine", CHECKS, fresh)
}

const CHECKS: &Checks<dyn Tokens> = &[
    ("nothing is no token", count_nothing),
    (
        "a longer text has more tokens, and no fewer than its parts need",
        count_grows,
    ),
    ("the same text counts the same", count_again),
    ("what fits is shown whole", fits_whole),
    ("what is shown fits", fits),
    ("what is shown is never dearer than the whole", never_dearer),
    ("the tokens told are those of the text shown", told),
    ("most of the budget is content", content),
    ("a cut is marked, and names its selector", marked),
    ("every cut comes back exactly", cuts_come_back),
    ("cuts are in order and apart", cuts_in_order),
    ("what is not cut is shown", rest_is_shown),
    ("the whole is behind the handle", whole_is_stored),
    ("nothing is stored for what is shown whole", nothing_stored),
    ("the same text and budget give the same", again),
    ("a budget below the smallest mark is invalid", tiny_budget),
    ("what cannot be stored is not cut", failing_store),
    ("a failure in the middle of a log stays visible", log),
    ("projecting can be cancelled", cancelled),
    ("a stored object is projected like its text", object),
    ("bytes outside UTF-8 are replaced", object_outside_utf8),
    ("an object that is not there is not found", object_of_nothing),
    ("bytes that arrive in pieces are projected like their object", stream),
    ("a value that fits is shown as it is", value_whole),
    ("a value keeps its shape", value_shape),
    ("a value fits, and its whole is behind the handle", value_fits),
    ("bytes expand exactly", expand_bytes),
    ("lines expand exactly", expand_lines),
    ("a pointer expands to its value", expand_pointer),
    ("a match expands to its lines", expand_match),
    ("an expansion goes on where its budget cut it", expand_next),
    ("a range past the end is invalid", expand_past_the_end),
    ("a pointer to nothing is not found", expand_no_pointer),
    ("an object that is not there does not expand", expand_nothing),
];

fn numbered(lines: usize) -> String {
    (1..=lines)
        .map(|n| format!("line {n} tells of item {}\n", n * 37))
        .collect()
}

fn plain(budget: u64) -> ProjectText<'static> {
    ProjectText {
        kind: TextKind::Text,
        budget,
        ..ProjectText::default()
    }
}

const BUDGET: u64 = 300;

struct Projected {
    text: String,
    shown: ProjectedText,
    store: MemoryObjects,
}

fn project(subject: &dyn Tokens, lines: usize) -> Result<Projected, Stop> {
    let (text, store) = (numbered(lines), MemoryObjects::default());
    let shown = subject
        .engine()
        .project_text(&text, &plain(BUDGET), &store, &CancelToken::new())?;
    Ok(Projected { text, shown, store })
}

impl Projected {
    fn digest(&self) -> Result<Digest, Stop> {
        match self.shown.handle {
            Some(handle) => Ok(handle.digest),
            None => Err(Stop::Broken("something is cut and there is no handle".into())),
        }
    }

    fn expand(&self, engine: &dyn TokenEngine, selector: &Selector) -> Result<Expansion, Stop> {
        Ok(engine.expand(&self.digest()?, selector, None, &self.store, &CancelToken::new())?)
    }
}

fn count_nothing(subject: &dyn Tokens) -> Checked {
    same!(subject.engine().count("").tokens, 0, "its tokens");
    Ok(())
}

fn count_grows(subject: &dyn Tokens) -> Checked {
    let engine = subject.engine();
    let (short, long) = (engine.count(&numbered(10)).tokens, engine.count(&numbered(20)).tokens);
    ensure!(short > 0 && long > short, "{short} and {long} tokens");
    ensure!(long <= numbered(20).len() as u64, "{long} tokens of fewer bytes");
    Ok(())
}

fn count_again(subject: &dyn Tokens) -> Checked {
    let engine = subject.engine();
    same!(engine.count(&numbered(30)), engine.count(&numbered(30)), "the count");
    Ok(())
}

fn fits_whole(subject: &dyn Tokens) -> Checked {
    let projected = project(subject, 3)?;
    same!(projected.shown.text, projected.text, "the text shown");
    ensure!(
        projected.shown.handle.is_none() && projected.shown.cuts.is_empty(),
        "something is cut"
    );
    Ok(())
}

fn fits(subject: &dyn Tokens) -> Checked {
    let engine = subject.engine();
    for lines in [50, 400, 3_000] {
        let tokens = engine.count(&project(subject, lines)?.shown.text).tokens;
        ensure!(tokens <= BUDGET, "{lines} lines are shown by {tokens} tokens");
    }
    Ok(())
}

fn never_dearer(subject: &dyn Tokens) -> Checked {
    let engine = subject.engine();
    for lines in [1, 10, 28, 40, 60] {
        let projected = project(subject, lines)?;
        let (raw, shown) = (
            engine.count(&projected.text).tokens,
            engine.count(&projected.shown.text).tokens,
        );
        ensure!(shown <= raw, "{lines} lines of {raw} tokens are shown by {shown}");
    }
    Ok(())
}

fn told(subject: &dyn Tokens) -> Checked {
    let engine = subject.engine();
    let projected = project(subject, 400)?;
    same!(
        projected.shown.shown.tokens,
        engine.count(&projected.shown.text).tokens,
        "tokens shown"
    );
    let raw = &projected.shown.raw;
    ensure!(
        !raw.exact || raw.tokens == engine.count(&projected.text).tokens,
        "{} tokens raw",
        raw.tokens
    );
    Ok(())
}

fn content(subject: &dyn Tokens) -> Checked {
    let tokens = subject.engine().count(&project(subject, 400)?.shown.text).tokens;
    ensure!(tokens * 2 > BUDGET, "{tokens} of {BUDGET} tokens are used");
    Ok(())
}

fn marked(subject: &dyn Tokens) -> Checked {
    let projected = project(subject, 400)?;
    ensure!(!projected.shown.cuts.is_empty(), "nothing is cut");
    let strange = projected
        .shown
        .text
        .lines()
        .filter(|line| !projected.text.contains(line))
        .count();
    ensure!(
        strange >= projected.shown.cuts.len(),
        "{} cuts, {strange} lines that say so",
        projected.shown.cuts.len()
    );
    let named = projected.shown.cuts.iter().all(|cut| match &cut.selector {
        Selector::Lines(lines) => projected.shown.text.contains(&lines.first().to_string()),
        Selector::Bytes(bytes) => projected.shown.text.contains(&bytes.start().to_string()),
        _ => true,
    });
    ensure!(named, "a mark does not name where its cut begins");
    Ok(())
}

fn cuts_come_back(subject: &dyn Tokens) -> Checked {
    let engine = subject.engine();
    let projected = project(subject, 400)?;
    for cut in &projected.shown.cuts {
        let expansion = projected.expand(&*engine, &cut.selector)?;
        let range = expansion.bytes.start() as usize..expansion.bytes.end() as usize;
        let original = projected.text.get(range).unwrap_or_default();
        same!(String::from_utf8_lossy(expansion.content.as_bytes()), original, "a cut");
        same!(expansion.bytes.len(), cut.bytes, "its size");
    }
    Ok(())
}

fn cut_ranges(subject: &dyn Tokens, projected: &Projected) -> Result<Vec<ByteRange>, Stop> {
    let engine = subject.engine();
    let cuts = projected.shown.cuts.iter();
    cuts.map(|cut| Ok(projected.expand(&*engine, &cut.selector)?.bytes))
        .collect()
}

fn cuts_in_order(subject: &dyn Tokens) -> Checked {
    let projected = project(subject, 400)?;
    let ranges = cut_ranges(subject, &projected)?;
    ensure!(
        ranges.windows(2).all(|pair| pair[0].end() <= pair[1].start()),
        "{ranges:?}"
    );
    Ok(())
}

fn rest_is_shown(subject: &dyn Tokens) -> Checked {
    let projected = project(subject, 400)?;
    let mut at = 0;
    let mut rest = String::new();
    for range in cut_ranges(subject, &projected)? {
        rest.push_str(&projected.text[at..range.start() as usize]);
        at = range.end() as usize;
    }
    rest.push_str(&projected.text[at..]);
    ensure!(!rest.trim().is_empty(), "nothing is shown");
    let mut shown = projected.shown.text.lines();
    for line in rest.lines().filter(|line| !line.trim().is_empty()) {
        ensure!(
            shown.any(|shown| shown.contains(line)),
            "{line:?} is neither shown nor cut"
        );
    }
    Ok(())
}

fn whole_is_stored(subject: &dyn Tokens) -> Checked {
    let projected = project(subject, 400)?;
    same!(
        projected.shown.handle.map(|handle| handle.kind),
        Some(HandleKind::Blob),
        "the handle's kind"
    );
    let stored = projected.store.get(&projected.digest()?)?;
    ensure!(stored == projected.text.as_bytes(), "the handle names something else");
    Ok(())
}

fn nothing_stored(subject: &dyn Tokens) -> Checked {
    let stored = project(subject, 3)?.store.digests().len();
    same!(stored, 0, "objects stored");
    Ok(())
}

fn again(subject: &dyn Tokens) -> Checked {
    same!(
        project(subject, 400)?.shown,
        project(subject, 400)?.shown,
        "the second projection"
    );
    Ok(())
}

fn tiny_budget(subject: &dyn Tokens) -> Checked {
    let store = MemoryObjects::default();
    let shown = subject
        .engine()
        .project_text(&numbered(400), &plain(1), &store, &CancelToken::new());
    refused(shown, &[ErrorKind::InvalidInput], "it")
}

struct FullStore;

fn full<T>() -> Result<T, Error> {
    Err(Error::new(ErrorKind::Budget, "the store is full"))
}

impl ObjectStore for FullStore {
    fn put(&self, _: &[u8]) -> Result<Digest, Error> {
        full()
    }

    fn writer(&self) -> Result<Box<dyn ObjectWriter>, Error> {
        full()
    }

    fn get(&self, digest: &Digest) -> Result<Vec<u8>, Error> {
        Err(Error::new(ErrorKind::NotFound, format!("there is no object {digest}")))
    }

    fn open(&self, digest: &Digest) -> Result<Box<dyn Read + Send>, Error> {
        Err(Error::new(ErrorKind::NotFound, format!("there is no object {digest}")))
    }

    fn get_range(&self, digest: &Digest, _: ByteRange) -> Result<Vec<u8>, Error> {
        self.get(digest)
    }

    fn size(&self, _: &Digest) -> Result<Option<u64>, Error> {
        Ok(None)
    }
}

fn failing_store(subject: &dyn Tokens) -> Checked {
    let text = numbered(400);
    match subject
        .engine()
        .project_text(&text, &plain(BUDGET), &FullStore, &CancelToken::new())
    {
        Ok(shown) => same!(shown.text, text, "what is shown"),
        Err(e) => same!(e.kind, ErrorKind::Budget, "the error"),
    }
    Ok(())
}

fn log(subject: &dyn Tokens) -> Checked {
    let mut lines: Vec<String> = (0..2_000).map(|n| format!("test case_{n} ... ok")).collect();
    lines[1_000] = "test the_needle ... FAILED".into();
    lines.insert(1_001, "error: assertion failed: left == right".into());
    let how = ProjectText {
        kind: TextKind::Log,
        ..plain(BUDGET)
    };
    let store = MemoryObjects::default();
    let shown = subject
        .engine()
        .project_text(&lines.join("\n"), &how, &store, &CancelToken::new())?;
    ensure!(shown.text.contains("the_needle"), "its name is not shown");
    ensure!(shown.text.contains("left == right"), "its message is not shown");
    Ok(())
}

fn cancelled(subject: &dyn Tokens) -> Checked {
    let token = CancelToken::new();
    token.cancel();
    let store = MemoryObjects::default();
    let shown = subject
        .engine()
        .project_text(&numbered(3_000), &plain(BUDGET), &store, &token);
    refused(shown, &[ErrorKind::Cancelled], "it")
}

fn object(subject: &dyn Tokens) -> Checked {
    let projected = project(subject, 400)?;
    let store = MemoryObjects::default();
    let digest = store.put(projected.text.as_bytes())?;
    let shown = subject
        .engine()
        .project_object(&digest, &plain(BUDGET), &store, &CancelToken::new())?;
    same!(shown.text, projected.shown.text, "the text shown");
    same!(shown.handle, Some(Handle::blob(digest)), "the handle");
    Ok(())
}

fn object_outside_utf8(subject: &dyn Tokens) -> Checked {
    let store = MemoryObjects::default();
    let digest = store.put(b"before \xff after\n")?;
    let shown = subject
        .engine()
        .project_object(&digest, &plain(BUDGET), &store, &CancelToken::new())?;
    ensure!(
        shown.text.contains("before \u{fffd} after"),
        "{:?} is shown",
        shown.text
    );
    Ok(())
}

fn stream(subject: &dyn Tokens) -> Checked {
    let store = MemoryObjects::default();
    let texts = [
        numbered(400).into_bytes(),
        numbered(3).into_bytes(),
        b"a \xff b\n".repeat(300),
        Vec::new(),
    ];
    for bytes in texts {
        let digest = store.put(&bytes)?;
        let engine = subject.engine();
        let whole = engine.project_object(&digest, &plain(BUDGET), &store, &CancelToken::new())?;
        for piece in [7, usize::MAX] {
            let mut stream = engine.project_stream(&plain(BUDGET));
            bytes.chunks(piece).for_each(|piece| stream.take(piece));
            let shown = stream.finish(&digest, &store, &CancelToken::new())?;
            same!(
                shown,
                whole,
                format!("what is shown of {} bytes by {piece}", bytes.len())
            );
        }
    }
    Ok(())
}

fn object_of_nothing(subject: &dyn Tokens) -> Checked {
    let shown = subject.engine().project_object(
        &Digest::of(b"never stored"),
        &plain(BUDGET),
        &MemoryObjects::default(),
        &CancelToken::new(),
    );
    refused(shown, &[ErrorKind::NotFound], "it")
}

fn large() -> Value {
    json!({
        "name": "a value",
        "rows": (0..500).map(|n| json!({"n": n, "text": format!("row number {n}")})).collect::<Vec<_>>(),
        "log": numbered(200),
        "ok": true,
    })
}

fn value_whole(subject: &dyn Tokens) -> Checked {
    let value = json!({"a": [1, 2, {"b": null}], "c": "text"});
    let store = MemoryObjects::default();
    let shown = subject
        .engine()
        .project_value(&value, BUDGET, &store, &CancelToken::new())?;
    same!(shown.value.0, value, "the value shown");
    ensure!(shown.handle.is_none() && shown.cuts.is_empty(), "something is cut");
    Ok(())
}

fn value_shape(subject: &dyn Tokens) -> Checked {
    let store = MemoryObjects::default();
    let shown = subject
        .engine()
        .project_value(&large(), 600, &store, &CancelToken::new())?
        .value
        .0;
    same!(
        (&shown["name"], &shown["ok"]),
        (&json!("a value"), &json!(true)),
        "the small members"
    );
    let rows = shown["rows"].as_array();
    ensure!(
        rows.is_some_and(|rows| rows.len() < 500),
        "the rows are not an array that was cut"
    );
    same!(
        rows.and_then(|rows| rows.first()),
        Some(&json!({"n": 0, "text": "row number 0"})),
        "the first row"
    );
    ensure!(!shown["log"].is_null(), "a member is gone");
    Ok(())
}

fn value_fits(subject: &dyn Tokens) -> Checked {
    let engine = subject.engine();
    let store = MemoryObjects::default();
    let shown = engine.project_value(&large(), 600, &store, &CancelToken::new())?;
    let tokens = engine.count(&shown.value.0.to_string()).tokens;
    ensure!(tokens <= 600, "it is shown by {tokens} tokens");
    let Some(handle) = shown.handle else {
        return Err(Stop::Broken("there is no handle".into()));
    };
    let stored = store.get(&handle.digest)?;
    same!(
        serde_json::from_slice::<Value>(&stored).ok(),
        Some(large()),
        "what is stored"
    );
    Ok(())
}

fn expand(subject: &dyn Tokens, bytes: &[u8], selector: &Selector, budget: Option<u64>) -> Result<Expansion, Error> {
    let store = MemoryObjects::default();
    let digest = store.put(bytes)?;
    subject
        .engine()
        .expand(&digest, selector, budget, &store, &CancelToken::new())
}

fn expand_bytes(subject: &dyn Tokens) -> Checked {
    let part = expand(subject, b"0123456789", &Selector::Bytes(ByteRange::new(2, 5)?), None)?;
    same!(part.content.as_bytes(), b"234", "the bytes");
    let part = expand(subject, b"0123456789", &Selector::Bytes(ByteRange::new(8, 50)?), None)?;
    same!(part.content.as_bytes(), b"89", "the bytes up to the end");
    Ok(())
}

fn expand_lines(subject: &dyn Tokens) -> Checked {
    let part = expand(
        subject,
        b"one\ntwo\nthree\nfour",
        &Selector::Lines(LineRange::new(2, 3)?),
        None,
    )?;
    same!(part.content.as_bytes(), b"two\nthree\n", "the lines");
    same!((part.bytes.start(), part.bytes.end()), (4, 14), "their bytes");
    same!(part.lines, Some(LineRange::new(2, 3)?), "their numbers");
    Ok(())
}

fn expand_pointer(subject: &dyn Tokens) -> Checked {
    let text = br#"{"a": [10, {"b/c": "found"}]}"#;
    let part = expand(subject, text, &Selector::Pointer("/a/1/b~1c".into()), None)?;
    same!(
        String::from_utf8_lossy(part.content.as_bytes()),
        "\"found\"",
        "the value"
    );
    Ok(())
}

fn expand_match(subject: &dyn Tokens) -> Checked {
    let part = expand(
        subject,
        b"one\nthe needle\nthree\n",
        &Selector::Match("needle".into()),
        None,
    )?;
    same!(part.content.as_bytes(), b"the needle\n", "the line");
    same!(part.lines, Some(LineRange::new(2, 2)?), "its number");
    Ok(())
}

fn expand_next(subject: &dyn Tokens) -> Checked {
    let text = numbered(100);
    let mut selector = Selector::Lines(LineRange::new(1, 100)?);
    let mut together = Vec::new();
    for _ in 0..200 {
        let part = expand(subject, text.as_bytes(), &selector, Some(100))?;
        ensure!(part.tokens.tokens <= 100, "a part has {} tokens", part.tokens.tokens);
        together.extend_from_slice(part.content.as_bytes());
        match part.next {
            Some(next) => selector = next,
            None => {
                ensure!(together == text.as_bytes(), "the parts are not the whole");
                return Ok(());
            }
        }
    }
    Err(Stop::Broken("it never comes to an end".into()))
}

fn expand_past_the_end(subject: &dyn Tokens) -> Checked {
    let kinds = &[ErrorKind::InvalidInput];
    refused(
        expand(subject, b"one\n", &Selector::Lines(LineRange::new(9, 9)?), None),
        kinds,
        "a line",
    )?;
    refused(
        expand(subject, b"one\n", &Selector::Bytes(ByteRange::new(9, 10)?), None),
        kinds,
        "a byte",
    )
}

fn expand_no_pointer(subject: &dyn Tokens) -> Checked {
    let part = expand(subject, br#"{"a": 1}"#, &Selector::Pointer("/b".into()), None);
    refused(part, &[ErrorKind::NotFound], "it")
}

fn expand_nothing(subject: &dyn Tokens) -> Checked {
    let part = subject.engine().expand(
        &Digest::of(b"never stored"),
        &Selector::Lines(LineRange::new(1, 1)?),
        None,
        &MemoryObjects::default(),
        &CancelToken::new(),
    );
    refused(part, &[ErrorKind::NotFound], "it")
}
