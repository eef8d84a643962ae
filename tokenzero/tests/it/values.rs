//! The promises of projected JSON: valid, of the same shape, exact when it comes back.

use proptest::prelude::*;
use serde_json::{Value, json};
use tokenzero::{MemoryStore, TokenZero};
use zero_contracts::tokens::{ProjectText, TextKind};
use zero_contracts::{CancelToken, Digest, ErrorKind, Handle, ObjectStore, TokenEngine};

use crate::rebuild;

/// Tells whether what is shown has the shape of the whole: kinds agree, and every member shown is one of the whole's.
fn same_shape(shown: &Value, whole: &Value) -> bool {
    let is_mark = |text: &str| text.starts_with("[cut ");
    match (shown, whole) {
        (Value::Object(view), Value::String(whole)) => is_view_of(view, whole),
        (Value::String(shown), Value::String(whole)) => shown == whole || shown.contains("[cut bytes "),
        (Value::Array(shown), Value::Array(whole)) => {
            shown.len() <= whole.len()
                && match shown.iter().position(|item| {
                    item.as_str()
                        .is_some_and(|text| is_mark(text) && text.contains(" item"))
                }) {
                    None => shown.len() == whole.len() && shown.iter().zip(whole).all(|(a, b)| same_shape(a, b)),
                    Some(at) => {
                        let tail = shown.len() - at - 1;
                        shown[..at].iter().zip(whole).all(|(a, b)| same_shape(a, b))
                            && shown[at + 1..]
                                .iter()
                                .zip(&whole[whole.len() - tail..])
                                .all(|(a, b)| same_shape(a, b))
                    }
                }
        }
        (Value::Object(shown), Value::Object(whole)) => shown.iter().all(|(key, value)| match whole.get(key) {
            Some(inside) => same_shape(value, inside),
            None => is_mark(key) && value.as_str().is_some_and(|text| text.starts_with("bytes ")),
        }),
        (shown, whole) => shown == whole,
    }
}

/// Tells whether this is a view object for a string; what its handle brings back is checked elsewhere.
fn is_view_of(view: &serde_json::Map<String, Value>, whole: &str) -> bool {
    view["kind"] == "view"
        && view["handle"] == Handle::blob(Digest::of(whole.as_bytes())).to_string()
        && view["bytes"] == whole.len()
        && view["omitted"].as_u64().is_some_and(|omitted| omitted > 0)
}

/// Counts the views in a value, each of which must bring its string back.
fn views(value: &Value, store: &MemoryStore) -> usize {
    match value {
        Value::Object(members) if members.get("kind").is_some_and(|kind| kind == "view") => {
            let handle: Handle = members["handle"].as_str().unwrap().parse().unwrap();
            let content = store.get(&handle.digest).unwrap();
            assert_eq!(members["bytes"], content.len());
            1
        }
        Value::Object(members) => members.values().map(|value| views(value, store)).sum(),
        Value::Array(items) => items.iter().map(|item| views(item, store)).sum(),
        _ => 0,
    }
}

fn check(value: &Value, budget: u64) {
    let (engine, store, token) = (TokenZero::default(), MemoryStore::new(), CancelToken::new());
    let text = value.to_string();
    let raw = engine.count(&text).tokens;
    let shown = match engine.project_value(value, budget, &store, &token) {
        Ok(shown) => shown,
        Err(error) => {
            assert_eq!(error.kind, ErrorKind::InvalidInput);
            assert!(raw > budget && budget < 60, "{error}");
            return;
        }
    };
    if shown.raw.exact {
        assert_eq!(shown.raw.tokens, raw);
    } else {
        // The whole of a large value is extrapolated, and says so.
        assert!(text.len() > 4 << 20, "{} bytes", text.len());
        assert!(
            shown.raw.tokens.abs_diff(raw) * 20 < raw,
            "{} for {raw}",
            shown.raw.tokens
        );
    }
    assert_eq!(shown.shown.tokens, engine.count(&shown.value.0.to_string()).tokens);
    assert!(shown.shown.tokens <= budget && shown.shown.tokens <= raw);
    assert!(same_shape(&shown.value.0, value), "{}\n{value}", shown.value.0);
    views(&shown.value.0, &store);
    let handle = shown.handle.as_ref().map(|handle| handle.digest);
    for cut in &shown.cuts {
        let back = engine
            .expand(&handle.unwrap(), &cut.selector, None, &store, &token)
            .unwrap();
        assert_eq!(back.bytes.len(), cut.bytes);
    }
    assert_eq!(
        engine.project_value(value, budget, &store, &token).unwrap(),
        shown,
        "the same again"
    );
    if raw <= budget {
        assert_eq!(shown.value.0, *value);
        return;
    }
    assert!(!shown.cuts.is_empty());
    // One more mark and one more number may be all that is missing, which matters to small budgets only.
    if budget >= 200 {
        assert!(
            shown.shown.tokens * 100 >= budget * 85,
            "{} of {budget}: {}",
            shown.shown.tokens,
            shown.value.0
        );
    }
    // The same as text, which comes back to the byte.
    let how = ProjectText {
        kind: TextKind::Json,
        budget,
        ..ProjectText::default()
    };
    let shown = engine.project_text(&text, &how, &store, &token).unwrap();
    serde_json::from_str::<Value>(&shown.text).unwrap();
    let back = rebuild::json(
        &engine,
        &store,
        &shown.text,
        shown.handle.as_ref().unwrap(),
        &shown.cuts,
    );
    assert_eq!(String::from_utf8(back).unwrap(), text);
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e9..1e9).prop_map(Value::from),
        "[a-z ]{0,20}".prop_map(Value::from),
        "\\PC{0,60}".prop_map(Value::from),
        "[a-z \\n\"\\\\é😀]{100,6000}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 200, 20, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..20).prop_map(Value::from),
            (inner.clone(), 1..30_usize).prop_map(|(item, times)| Value::from(vec![item; times])),
            prop::collection::btree_map("[a-z]{1,8}|\\PC{1,4}", inner, 0..20)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::cases(150), max_shrink_iters: 100, ..ProptestConfig::default() })]

    #[test]
    fn every_promise_over_random_values_and_budgets(value in value(), budget in prop_oneof![1..100_u64, 100..2000_u64]) {
        check(&value, budget);
    }
}

#[test]
fn arrays_stay_arrays_and_tell_how_many_items_are_missing() {
    let value = json!({"items": (0..5000).map(|n| json!({"id": n, "name": format!("item {n}")})).collect::<Vec<_>>(), "ok": true});
    check(&value, 300);
    let shown = TokenZero::default()
        .project_value(&value, 300, &MemoryStore::new(), &CancelToken::new())
        .unwrap()
        .value
        .0;
    let items = shown["items"].as_array().unwrap();
    assert_eq!(items[0]["name"], "item 0");
    assert_eq!(items.last().unwrap()["name"], "item 4999");
    assert_eq!(shown["ok"], true);
    assert!(
        items
            .iter()
            .any(|item| item.as_str().is_some_and(|text| text.contains(" items, bytes ")))
    );
}

/// What is left of the budget is too much for a number alone and enough for the number and part of a text.
#[test]
fn a_member_that_cannot_be_cut_does_not_hide_those_behind_it() {
    let whole = json!({
        "?": -418_838_975.877_203_1, "J .": null, "aaa": "ଲ\u{113c9}i\\ꬢെ𞠔\\𖩕¥:&Nୈ^𮯾.\\🕴..ໃ/𐭭>\u{2df4}n𑁕୩¥𑈍{~*I",
        "cpoyzjt": -872_231_745.387_260_2, "erkjeo": false, "geer": -1_950_690_022_137_654_941_i64,
        "qslvbk": "qfgib apgnjn", "sjwswkx": null, "ufjez": null,
        "w": "?M⹀𐨧ׯuȺ5v᠊𐴚{𑀇{𑦸𖼪ÜP&.$>.𐕱᱉{𐪝 ෛ𝼪\u{16f90}L🕴ቓU.S🕴-kힼ𑌆!dແ/<$\u{1ac2}𞺦{ﬥ~zࢰ<<%",
        "Ѩ/﹨": ".¥M𐴉\u{11046}ঢ়Hﰑ;z?qᦦj)𐖔𐙄᧙&ᤶ\u{1928}f'𐊀:.𘴃𫠜𜸥ࡧ.t",
    });
    let items: Vec<_> = whole.as_object().unwrap().values().cloned().collect();
    for budget in 200..300 {
        check(&whole, budget);
        check(&json!(items), budget);
        check(&json!({"all": [whole, items]}), 2 * budget);
    }
}

#[test]
fn keys_that_look_like_marks_are_not_overwritten() {
    let mut members = serde_json::Map::new();
    for n in 0..300 {
        members.insert(format!("[cut {n} members]"), json!("x".repeat(40)));
        members.insert(format!("[cut {n} members] "), json!(n));
    }
    check(&Value::Object(members), 200);
}

#[test]
fn deep_values_stay_readable() {
    let mut value = json!("end ".repeat(100));
    for n in 0..120 {
        value = if n % 2 == 0 {
            json!([value, n])
        } else {
            json!({"in": value, "pad": "p".repeat(20)})
        };
    }
    let shown = TokenZero::default()
        .project_value(&value, 300, &MemoryStore::new(), &CancelToken::new())
        .unwrap();
    assert!(shown.shown.tokens <= 300);
}

#[test]
fn long_strings_become_views_that_show_what_matters() {
    let mut log: String = (0..4000).map(|n| format!("test case_{n} ... ok\n")).collect();
    log.insert_str(40_000, "test the_one ... FAILED\npanicked at 'left != right'\n");
    let other = "word ".repeat(3000);
    let value = json!({"exitCode": 101, "stdout": log, "nested": [{"other": other, "short": "s"}]});
    let (engine, store) = (TokenZero::default(), MemoryStore::new());
    for budget in [600, 2000, 8000] {
        check(&value, budget);
        let shown = engine
            .project_value(&value, budget, &store, &CancelToken::new())
            .unwrap()
            .value
            .0;
        assert_eq!(views(&shown, &store), 2, "{shown}");
        assert_eq!(
            (&shown["exitCode"], &shown["nested"][0]["short"]),
            (&json!(101), &json!("s"))
        );
        let (stdout, preview) = (&shown["stdout"], shown["stdout"]["preview"].as_str().unwrap());
        assert_eq!((&stdout["lines"], &stdout["encoding"]), (&json!(4002), &json!("utf-8")));
        assert!(
            preview.contains("the_one ... FAILED") && preview.contains("[cut lines "),
            "{preview}"
        );
    }
    // The marks of a preview are selectors of the view's own handle.
    let shown = engine
        .project_value(&value, 600, &store, &CancelToken::new())
        .unwrap()
        .value
        .0;
    let handle: Handle = shown["stdout"]["handle"].as_str().unwrap().parse().unwrap();
    let lines = zero_contracts::tokens::Selector::Lines(zero_contracts::LineRange::new(4002, 4002).unwrap());
    let back = engine
        .expand(&handle.digest, &lines, None, &store, &CancelToken::new())
        .unwrap();
    assert_eq!(back.content.into_bytes(), b"test case_3999 ... ok\n");
    // A value that is one long string is one view; what is not long, or not cut, stays a string.
    assert_eq!(
        views(
            &engine
                .project_value(&json!(log), 600, &store, &CancelToken::new())
                .unwrap()
                .value
                .0,
            &store
        ),
        1
    );
    let shown = engine
        .project_value(&json!(["x y ".repeat(400)]), 300, &store, &CancelToken::new())
        .unwrap()
        .value
        .0;
    assert!(shown[0].as_str().unwrap().contains("[cut bytes "), "{shown}");
}

/// Whatever part of a value is one enormous piece, what it costs to project it grows with the budget; and it can be stopped.
#[test]
fn enormous_pieces_anywhere_are_cut_unmerged() {
    let huge = "k".repeat(3 << 20);
    let member = |key: &str, value: Value| Value::Object([(key.to_owned(), value)].into_iter().collect());
    let values = [
        json!(huge),
        member(&huge, json!(1)),
        member(&huge, json!(huge)),
        json!([[huge, 1], huge]),
        json!([member(&huge, json!([])), {"short": 1}]),
    ];
    let engine = TokenZero::default();
    for value in values {
        for budget in [60, 2000] {
            let shown = engine
                .project_value(&value, budget, &MemoryStore::new(), &CancelToken::new())
                .unwrap();
            assert!(shown.shown.tokens <= budget && same_shape(&shown.value.0, &value));
            let cancelled = CancelToken::new();
            cancelled.cancel();
            let error = engine
                .project_value(&value, budget, &MemoryStore::new(), &cancelled)
                .unwrap_err();
            assert_eq!(error.kind, ErrorKind::Cancelled);
        }
    }
}
