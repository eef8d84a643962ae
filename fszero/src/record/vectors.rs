//! Journals that were written once are read for ever: every kind of record, with the bytes it had when this file was made.

use zero_contracts::files::CommitSeal;
use zero_contracts::{CellId, Digest, Epoch, SessionName, WorkspacePath, wire};

use super::{Batch, Effect, Inline, JOURNAL_VERSION, Record};
use crate::node::Node;

/// One record a line, in the order of [`records`]: its bytes in hexadecimal. A line is never changed while the versions of
/// journal and compact form stay; a kind that is new gets one at the end.
const KEPT: &str = include_str!("vectors.txt");

fn records() -> Vec<Record> {
    let cell = || CellId::new("cell-1").unwrap();
    let session = SessionName::default;
    let path = |text: &str| text.parse::<WorkspacePath>().unwrap();
    let file = |text: &[u8], mode| Node::File {
        mode,
        digest: Digest::of(text),
        bytes: text.len() as u64,
    };
    let effects = vec![
        Effect::Create {
            path: path("new"),
            temp: 0,
            after: file(b"a", 0o644),
        },
        Effect::Replace {
            path: path("d/old"),
            temp: 1,
            before: file(b"a", 0o755),
            after: Node::Symlink {
                target: b"../\xff".to_vec(),
            },
        },
        Effect::Remove {
            path: WorkspacePath::from_raw(b"raw\xfe").unwrap(),
            temp: 300,
            before: Node::Directory { mode: 0o1777 },
        },
        Effect::Rename {
            from: path("a"),
            to: path("b"),
            before: Node::Other,
        },
        Effect::Chmod {
            path: path("x"),
            before: file(b"", 0o600),
            after: file(b"", 0o700),
        },
        Effect::Captured {
            path: path("made"),
            temp: 2,
            before: None,
            after: Some(Node::Directory { mode: 0o755 }),
        },
    ];
    let objects = || {
        vec![Inline {
            digest: Digest::of(b"\0small"),
            bytes: b"\0small".to_vec(),
        }]
    };
    let seal = |state, intents| CommitSeal {
        session: session(),
        state,
        event: Digest::of(b"event"),
        intents,
    };
    vec![
        Record::Header {
            version: JOURNAL_VERSION,
            epoch: Epoch(0),
        },
        Record::Intents {
            cell: cell(),
            session: session(),
            epoch: Epoch(300),
            batch: Batch { tag: 1 << 40, effects },
            objects: objects(),
        },
        Record::CaptureBegun {
            cell: cell(),
            session: session(),
            epoch: Epoch(7),
            baseline: Digest::of(b"baseline"),
        },
        Record::CaptureEnded {
            cell: cell(),
            batch: Batch {
                tag: 2,
                effects: Vec::new(),
            },
        },
        Record::Withdrawn { cell: cell(), tag: 3 },
        Record::Commit {
            cell: cell(),
            epoch: Epoch(u64::MAX),
            seal: seal(None, Vec::new()),
            objects: Vec::new(),
        },
        Record::Commit {
            cell: cell(),
            epoch: Epoch(1),
            seal: seal(Some(Digest::of(b"state")), vec![Digest::of(b"intent")]),
            objects: objects(),
        },
        Record::Settled { cell: cell() },
        Record::Restored { cell: cell() },
    ]
}

/// The place of a record's kind, so that no kind is without a vector: a new one does not compile before it has one.
fn kind(record: &Record) -> usize {
    match record {
        Record::Header { .. } => 0,
        Record::Intents { .. } => 1,
        Record::CaptureBegun { .. } => 2,
        Record::CaptureEnded { .. } => 3,
        Record::Withdrawn { .. } => 4,
        Record::Commit { .. } => 5,
        Record::Settled { .. } => 6,
        Record::Restored { .. } => 7,
    }
}

#[test]
fn records_are_read_and_written_in_the_bytes_that_they_had() {
    let records = records();
    let hex = |record: &Record| -> String {
        let bytes = wire::encode(record).unwrap();
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    };
    let made: Vec<String> = records.iter().map(hex).collect();
    let kept: Vec<&str> = KEPT.lines().collect();
    assert_eq!(
        kept,
        made,
        "a journal of before could not be read:\n{}",
        made.join("\n")
    );
    for (line, record) in kept.iter().zip(&records) {
        let bytes: Vec<u8> = (0..line.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&line[at..at + 2], 16).unwrap())
            .collect();
        assert_eq!(&wire::decode::<Record>(&bytes).unwrap(), record);
    }
    let mut kinds: Vec<usize> = records.iter().map(kind).collect();
    kinds.dedup();
    assert_eq!(kinds, [0, 1, 2, 3, 4, 5, 6, 7]);
}
