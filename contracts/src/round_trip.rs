//! Every message comes back from both of its forms: property tests over arbitrary messages.

use std::fmt::Debug;

use proptest::collection::vec;
use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::content::Bytes;
use crate::edit::{Anchor, Change, Count, Expect};
use crate::{
    ByteRange, CellId, Content, Digest, Handle, HandleKind, JsonValue, LineRange, SessionName, WorkspacePath, json,
    wire,
};

macro_rules! arbitrary {
    ($($type:ty: $strategy:expr;)*) => {
        $(impl Arbitrary for $type {
            type Parameters = ();
            type Strategy = BoxedStrategy<Self>;
            fn arbitrary_with((): ()) -> Self::Strategy {
                $strategy.boxed()
            }
        })*
    };
}

arbitrary! {
    Digest: any::<[u8; 32]>().prop_map(Digest::from_bytes);
    Handle: (0..HandleKind::ALL.len(), any::<Digest>()).prop_map(|(kind, digest)| Handle::new(HandleKind::ALL[kind], digest));
    WorkspacePath: vec(1_u8.., 0..20).prop_filter_map("inside", |raw| WorkspacePath::from_raw(&raw).ok());
    ByteRange: (any::<u64>(), any::<u64>()).prop_map(|(a, b)| ByteRange::new(a.min(b), a.max(b)).unwrap());
    LineRange: (1_u64.., 1_u64..).prop_map(|(a, b)| LineRange::new(a.min(b), a.max(b)).unwrap());
    CellId: "[A-Za-z0-9_-][A-Za-z0-9._-]{0,20}".prop_map(|name| CellId::new(name).unwrap());
    SessionName: "[A-Za-z0-9_-][A-Za-z0-9._-]{0,20}".prop_map(|name| SessionName::new(name).unwrap());
    Bytes: vec(any::<u8>(), 0..40).prop_map(Bytes);
    JsonValue: json_value().prop_map(JsonValue);
    Expect: prop_oneof![
        Just(Expect::Any),
        any::<Digest>().prop_map(Expect::Digest),
        any::<Digest>().prop_map(|digest| Expect::Snapshot(Handle::snapshot(digest))),
    ];
    Change: change();
}

fn json_value() -> impl Strategy<Value = serde_json::Value> {
    use serde_json::Value;
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((any::<String>(), inner), 0..4).prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn change() -> impl Strategy<Value = Change> {
    let content = any::<Content>;
    let visible = || {
        content().prop_map(|content| match content {
            Content::Text(text) => Content::Text(format!("x{text}")),
            Content::Bytes(bytes) => Content::Bytes(Bytes([b"x", &bytes.0[..]].concat())),
        })
    };
    let count = prop_oneof![Just(Count::One), Just(Count::All), (1_u64..).prop_map(Count::Exactly)];
    let anchor = || prop_oneof![(1_u64..).prop_map(Anchor::Line), visible().prop_map(Anchor::Text)];
    prop_oneof![
        (visible(), content(), count).prop_map(|(find, replacement, count)| Change::Replace {
            find,
            replacement,
            count
        }),
        (any::<LineRange>(), content()).prop_map(|(lines, content)| Change::Lines { lines, content }),
        (anchor(), content()).prop_map(|(anchor, content)| Change::InsertBefore { anchor, content }),
        (anchor(), content()).prop_map(|(anchor, content)| Change::InsertAfter { anchor, content }),
        content().prop_map(|patch| Change::Patch { patch }),
        content().prop_map(|content| Change::Content { content }),
        content().prop_map(|create| Change::Create { create }),
        Just(Change::Remove),
        (0..=0o7777_u32).prop_map(|mode| Change::Mode { mode }),
    ]
}

fn comes_back<T: Serialize + DeserializeOwned + PartialEq + Debug>(message: &T) -> Result<(), TestCaseError> {
    let text = serde_json::to_string(message).unwrap();
    let from_json: T = json::from_text(&text).map_err(|e| TestCaseError::fail(format!("{e} in {text}")))?;
    prop_assert_eq!(&from_json, message, "from {}", text);
    let compact = wire::encode(message).unwrap();
    let from_compact: T = wire::decode(&compact).map_err(|e| TestCaseError::fail(e.to_string()))?;
    prop_assert_eq!(&from_compact, message);
    Ok(())
}

macro_rules! round_trips {
    ($($name:ident: $type:ty;)*) => {
        proptest! {
            #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
            $(#[test]
            fn $name(message in any::<$type>()) {
                comes_back(&message)?;
            })*
        }
    };
}

/// Does something with every message: its name, and its type.
macro_rules! every_message {
    ($do:ident) => {
        $do! {
            read_request: crate::read::ReadRequest;
            file_view: crate::read::FileView;
            directory_listing: crate::read::DirectoryListing;
            partial_read: crate::read::PartialRead;
            snapshot_read: crate::read::SnapshotRead;
            find_request: crate::find::FindRequest;
            find_result: crate::find::FindResult;
            edit_request: crate::edit::EditRequest;
            edit_receipt: crate::edit::EditReceipt;
            file_operation: crate::apply::FileOperation;
            apply_request: crate::apply::ApplyRequest;
            apply_result: crate::apply::ApplyReceipts;
            run_request: crate::run::RunRequest;
            process_verdict: crate::event::ProcessVerdict;
            state_request: crate::state::StateRequest;
            state_entry: crate::state::StateEntry;
            budgets: crate::Budgets;
            ledger: crate::ResourceLedger;
            response: crate::ZeroKernelResponse;
            event: crate::ZeroKernelEvent;
            effect_intent: crate::EffectIntent;
            effect_record: crate::EffectRecord;
            undo_options: crate::UndoOptions;
            undo_report: crate::UndoReport;
            error: crate::Error;
            commit_record: crate::files::CommitRecord;
            restoration: crate::files::Restoration;
            captured: crate::files::Captured;
            path_change: crate::files::PathChange;
            projected_text: crate::tokens::ProjectedText;
            projected_value: crate::tokens::ProjectedValue;
            expansion: crate::tokens::Expansion;
            plan: crate::Plan;
            content: crate::Content;
            path: crate::WorkspacePath;
            handle: crate::Handle;
        }
    };
}
pub(crate) use every_message;

every_message!(round_trips);

/// Results that are unions are read by shape, so only shapes that differ can come back.
#[test]
fn unions_of_results_are_read_by_shape() {
    use crate::read::ReadResult;
    use crate::state::StateResult;
    let text = |result: &ReadResult| serde_json::to_string(result).unwrap();
    for result in [
        ReadResult::Whole(Content::Text("a".into())),
        ReadResult::Whole(Content::Bytes(Bytes(vec![0xff]))),
        ReadResult::Record(JsonValue(serde_json::json!({ "kind": "snapshot", "entries": [] }))),
    ] {
        assert_eq!(serde_json::from_str::<ReadResult>(&text(&result)).unwrap(), result);
        assert_eq!(
            wire::decode::<ReadResult>(&wire::encode(&result).unwrap()).unwrap(),
            result
        );
    }
    for result in [
        StateResult::Flag(true),
        StateResult::Entries(Vec::new()),
        StateResult::Value(JsonValue(7.into())),
    ] {
        assert_eq!(
            wire::decode::<StateResult>(&wire::encode(&result).unwrap()).unwrap(),
            result
        );
    }
}

/// Old readers live on: what a later version adds to a response is skipped, what it adds to a request is refused.
#[test]
fn responses_tolerate_unknown_fields_and_requests_do_not() {
    let listing = r#"{"kind": "directory", "entries": [], "complete": true, "later": 1}"#;
    assert!(json::from_text::<crate::read::DirectoryListing>(listing).is_ok());
    let error = json::from_text::<crate::read::ReadRequest>(r#"{"target": "a", "later": 1}"#).unwrap_err();
    assert_eq!(error.accepted, ["target", "options"]);
}
