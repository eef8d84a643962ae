//! Staging: guards, text fidelity, views, savepoints.

use zero_contracts::apply::FileOperation;
use zero_contracts::edit::{Anchor, Change, Count, Expect};
use zero_contracts::files::ReadLog;
use zero_contracts::{CancelToken, Content, Digest, ErrorKind, LineRange, WorkspacePath};

use super::{Bench, Files, begin_with, create, edit, expecting, path, read, remove, rename, replace, sample, tree_is};
use crate::report::{Checked, Checks, ensure, refused, same};
use crate::tree::{Node, Tree};

pub(super) const CHECKS: &Checks<dyn Files> = &[
    ("staging changes nothing in the live tree", changes_nothing),
    ("a cell sees what it staged, and nobody else does", seen_by_the_cell),
    ("operations on one path chain in order", chain),
    ("if one operation fails, none is staged", all_or_none),
    ("a replacement is literal", literal),
    ("several matches without a count are a conflict", ambiguous),
    ("a count is exact, and all means all", counts),
    ("newline style and byte order mark are kept", fidelity),
    ("lines are replaced and inserted as lines", lines),
    ("a patch applies exactly or not at all", patch),
    ("an edit keeps the mode", keeps_mode),
    ("an edit goes through a symlink and keeps it", through_symlink),
    ("what is there is not created", create_refuses),
    ("creating makes the directories above", create_parents),
    ("a directory that holds something is not removed", remove_full),
    ("a directory moves with all it holds", move_directory),
    ("nothing moves onto something", move_onto),
    ("a copy has content and mode", copy),
    ("making a directory that is there changes nothing", mkdir),
    ("a symlink that leads out is refused", symlink_out),
    ("what is not there is not found", absent),
    ("a digest guards an edit", digest_guard),
    ("a snapshot guards an edit", snapshot_guard),
    ("what was last read guards an edit", read_guard),
    ("what was never read is not replaced unseen", unread),
    ("names outside UTF-8 are changed like others", raw_names),
    ("the budget of staged bytes is kept", budget),
    ("a transaction says whether it is empty, and how much is staged", weight),
    ("a receipt a path tells before and after", receipts),
    ("a savepoint takes back what came after it", savepoint),
    ("a savepoint of another transaction is refused", foreign_savepoint),
    ("staging can be cancelled", cancelled),
];

fn changes_nothing(subject: &dyn Files) -> Checked {
    let mut bench = Bench::new(subject)?;
    bench.stage(&[
        replace("a", "two", "2")?,
        create("new", "n")?,
        remove("b")?,
        rename("d", "moved")?,
    ])?;
    tree_is!(subject, sample());
    Ok(())
}

fn seen_by_the_cell(subject: &dyn Files) -> Checked {
    let mut bench = Bench::new(subject)?;
    bench.stage(&[replace("a", "two", "2")?, remove("b")?, rename("d", "moved")?])?;
    same!(bench.text("a")?, "one\n2\n", "what the cell reads");
    same!(bench.text("moved/e/y")?, "y", "what it moved");
    let view = bench.transaction.view();
    ensure!(view.entry(&path("b")?)?.is_none(), "it sees what it removed");
    ensure!(
        view.entry(&path("d")?)?.is_none(),
        "it sees what it moved where that was"
    );
    same!(read(&*bench.engine.live(), "a")?, "one\ntwo\n", "what others read");
    Ok(())
}

fn chain(subject: &dyn Files) -> Checked {
    let mut bench = Bench::new(subject)?;
    bench.stage(&[
        create("n", "first")?,
        replace("n", "first", "second")?,
        rename("n", "m")?,
    ])?;
    same!(bench.text("m")?, "second", "the content");
    Ok(())
}

fn all_or_none(subject: &dyn Files) -> Checked {
    let mut bench = Bench::new(subject)?;
    let staged = bench.stage(&[replace("a", "two", "2")?, replace("b", "not there", "x")?]);
    refused(staged, &[ErrorKind::Conflict], "a match that is not there")?;
    same!(bench.text("a")?, "one\ntwo\n", "the other file");
    ensure!(bench.transaction.is_empty(), "something is staged");
    Ok(())
}

fn literal(subject: &dyn Files) -> Checked {
    let mut bench = Bench::new(subject)?;
    bench.stage(&[replace("b", "b", r"$&$1\n")?])?;
    same!(bench.text("b")?, "$&$1\\n\n", "the content");
    Ok(())
}

fn counted(at: &str, find: &str, replacement: &str, count: Count) -> Result<FileOperation, zero_contracts::Error> {
    let (find, replacement) = (find.into(), replacement.into());
    edit(
        at,
        Change::Replace {
            find,
            replacement,
            count,
        },
    )
}

fn ambiguous(subject: &dyn Files) -> Checked {
    subject.set(&Tree::new().file("x", "x\nx\n"));
    let mut bench = Bench::on(subject)?;
    match bench.stage(&[replace("x", "x", "y")?]) {
        Ok(_) => Err(crate::report::Stop::Broken("it was not refused".into())),
        Err(e) => {
            same!(e.kind, ErrorKind::Conflict, "the error");
            ensure!(e.detail.contains('2'), "it does not say how many: {}", e.detail);
            Ok(())
        }
    }
}

fn counts(subject: &dyn Files) -> Checked {
    subject.set(&Tree::new().file("x", "x x x").file("y", "x x"));
    let mut bench = Bench::on(subject)?;
    let wrong = bench.stage(&[counted("x", "x", "z", Count::Exactly(2))?]);
    refused(wrong, &[ErrorKind::Conflict], "another number")?;
    let none = bench.stage(&[counted("x", "none", "z", Count::All)?]);
    refused(none, &[ErrorKind::Conflict], "all of nothing")?;
    bench.stage(&[
        counted("x", "x", "z", Count::Exactly(3))?,
        counted("y", "x", "z", Count::All)?,
    ])?;
    same!(
        (bench.text("x")?, bench.text("y")?),
        ("z z z".into(), "z z".into()),
        "the contents"
    );
    Ok(())
}

fn at_line(line: u64) -> Anchor {
    Anchor::Line(line)
}

fn fidelity(subject: &dyn Files) -> Checked {
    subject.set(
        &Tree::new()
            .file("crlf", "a\r\nb\r\n")
            .file("bom", "\u{feff}a\nb")
            .file("open", "a\nb"),
    );
    let mut bench = Bench::on(subject)?;
    let content = |text: &str| Content::Text(text.into());
    let one = LineRange::new(1, 1)?;
    bench.stage(&[
        replace("crlf", "a", "x")?,
        edit(
            "crlf",
            Change::InsertAfter {
                anchor: Anchor::Text("x".into()),
                content: content("y\nz"),
            },
        )?,
        expecting(
            edit(
                "bom",
                Change::Lines {
                    lines: one,
                    content: content("x"),
                },
            )?,
            Expect::Any,
        ),
        replace("open", "b", "c")?,
    ])?;
    same!(bench.text("crlf")?, "x\r\ny\r\nz\r\nb\r\n", "CRLF");
    same!(bench.text("bom")?, "\u{feff}x\nb", "a byte order mark");
    same!(bench.text("open")?, "a\nc", "a missing final newline");
    Ok(())
}

fn lines(subject: &dyn Files) -> Checked {
    subject.set(&Tree::new().file("n", "1\n2\n3\n4\n"));
    let mut bench = Bench::on(subject)?;
    let content = |text: &str| Content::Text(text.into());
    let two_three = LineRange::new(2, 3)?;
    let any = |change| -> Result<_, zero_contracts::Error> { Ok(expecting(edit("n", change)?, Expect::Any)) };
    bench.stage(&[
        any(Change::Lines {
            lines: two_three,
            content: content("two to three"),
        })?,
        any(Change::InsertBefore {
            anchor: at_line(1),
            content: content("0"),
        })?,
        any(Change::InsertAfter {
            anchor: at_line(4),
            content: content("5"),
        })?,
    ])?;
    same!(bench.text("n")?, "0\n1\ntwo to three\n4\n5\n", "the content");
    let past = any(Change::Lines {
        lines: LineRange::new(50, 51)?,
        content: content("x"),
    })?;
    refused(
        bench.stage(&[past]),
        &[ErrorKind::InvalidInput, ErrorKind::Conflict],
        "lines past the end",
    )
}

fn patch(subject: &dyn Files) -> Checked {
    let mut bench = Bench::new(subject)?;
    let patch = |text: &str| edit("a", Change::Patch { patch: text.into() });
    let wrong = bench.stage(&[patch("@@ -1,2 +1,2 @@\n one\n-three\n+3\n")?]);
    refused(wrong, &[ErrorKind::Conflict], "context that is not there")?;
    bench.stage(&[patch("@@ -1,2 +1,3 @@\n one\n-two\n+2\n+3\n")?])?;
    same!(bench.text("a")?, "one\n2\n3\n", "the content");
    Ok(())
}

fn keeps_mode(subject: &dyn Files) -> Checked {
    let mut bench = Bench::new(subject)?;
    bench.stage(&[replace("tool", "sh", "bash")?])?;
    let mode = bench.transaction.view().entry(&path("tool")?)?.map(|entry| entry.mode);
    same!(mode, Some(0o755), "the mode");
    bench.stage(&[edit("tool", Change::Mode { mode: 0o700 })?])?;
    let mode = bench.transaction.view().entry(&path("tool")?)?.map(|entry| entry.mode);
    same!(mode, Some(0o700), "the mode that was set");
    Ok(())
}

fn through_symlink(subject: &dyn Files) -> Checked {
    let mut bench = Bench::new(subject)?;
    bench.stage(&[replace("to-a", "two", "2")?])?;
    same!(bench.text("a")?, "one\n2\n", "the file");
    let kind = bench.transaction.view().entry(&path("to-a")?)?.map(|entry| entry.kind);
    same!(
        kind,
        Some(zero_contracts::read::EntryKind::Symlink),
        "what the symlink is"
    );
    Ok(())
}

fn create_refuses(subject: &dyn Files) -> Checked {
    let mut bench = Bench::new(subject)?;
    refused(
        bench.stage(&[create("a", "x")?]),
        &[ErrorKind::Conflict],
        "a file that is there",
    )?;
    refused(
        bench.stage(&[create("empty", "x")?]),
        &[ErrorKind::Conflict],
        "a directory that is there",
    )
}

fn create_parents(subject: &dyn Files) -> Checked {
    let mut bench = Bench::new(subject)?;
    bench.stage(&[create("p/q/r", "deep")?])?;
    same!(bench.text("p/q/r")?, "deep", "the content");
    Ok(())
}

fn remove_full(subject: &dyn Files) -> Checked {
    let mut bench = Bench::new(subject)?;
    refused(bench.stage(&[remove("d")?]), &[ErrorKind::Conflict], "a full one")?;
    bench.stage(&[remove("empty")?])?;
    Ok(())
}

fn move_directory(subject: &dyn Files) -> Checked {
    let mut bench = Bench::new(subject)?;
    bench.stage(&[rename("d", "to/here")?])?;
    same!(bench.text("to/here/e/y")?, "y", "what it holds");
    refused(
        bench.stage(&[rename("to", "to/self")?]),
        &[ErrorKind::InvalidInput, ErrorKind::Conflict],
        "into itself",
    )
}

fn move_onto(subject: &dyn Files) -> Checked {
    let mut bench = Bench::new(subject)?;
    refused(bench.stage(&[rename("a", "b")?]), &[ErrorKind::Conflict], "it")
}

fn copy(subject: &dyn Files) -> Checked {
    let mut bench = Bench::new(subject)?;
    bench.stage(&[FileOperation::Copy {
        from: path("tool")?,
        to: path("copy")?,
        expect: None,
    }])?;
    let mode = bench.transaction.view().entry(&path("copy")?)?.map(|entry| entry.mode);
    same!(
        (bench.text("copy")?, mode),
        ("#!/bin/sh\n".to_owned(), Some(0o755)),
        "the copy"
    );
    Ok(())
}

fn mkdir(subject: &dyn Files) -> Checked {
    let mut bench = Bench::new(subject)?;
    bench.stage(&[
        FileOperation::Mkdir { path: path("d")? },
        FileOperation::Mkdir { path: path("n/m")? },
    ])?;
    same!(bench.text("d/x")?, "x", "what is in the one that was there");
    let made = bench.transaction.view().entry(&path("n/m")?)?.map(|entry| entry.kind);
    same!(made, Some(zero_contracts::read::EntryKind::Directory), "the new one");
    Ok(())
}

fn symlink_out(subject: &dyn Files) -> Checked {
    let mut bench = Bench::new(subject)?;
    for target in ["../out", "d/../../out", "/etc/passwd"] {
        let staged = bench.stage(&[FileOperation::Symlink {
            target: target.into(),
            path: path("l")?,
        }]);
        refused(staged, &[ErrorKind::OutsideWorkspace], target)?;
    }
    bench.stage(&[FileOperation::Symlink {
        target: "../a".into(),
        path: path("d/l")?,
    }])?;
    same!(bench.text("d/l")?, "one\ntwo\n", "one that does not");
    Ok(())
}

fn absent(subject: &dyn Files) -> Checked {
    let mut bench = Bench::new(subject)?;
    for operation in [replace("none", "a", "b")?, remove("none")?, rename("none", "x")?] {
        refused(bench.stage(&[operation]), &[ErrorKind::NotFound], "it")?;
    }
    Ok(())
}

fn digest_guard(subject: &dyn Files) -> Checked {
    let mut bench = Bench::new(subject)?;
    let guarded = |digest| -> Result<_, zero_contracts::Error> {
        Ok(expecting(replace("a", "two", "2")?, Expect::Digest(digest)))
    };
    let wrong = bench.stage(&[guarded(Digest::of(b"another"))?]);
    refused(wrong, &[ErrorKind::Conflict], "another digest")?;
    bench.stage(&[guarded(Digest::of(b"one\ntwo\n"))?])?;
    Ok(())
}

fn snapshot_guard(subject: &dyn Files) -> Checked {
    let mut bench = Bench::new(subject)?;
    let bytes = b"one\ntwo\n";
    bench.engine.objects().put(bytes)?;
    let snapshot = bench
        .engine
        .snapshot_file(&path("a")?, 0o644, Digest::of(bytes), bytes.len() as u64)?;
    let guarded = |find: &str| -> Result<_, zero_contracts::Error> {
        Ok(expecting(replace("a", find, "new")?, Expect::Snapshot(snapshot)))
    };
    bench.stage(&[guarded("one")?])?;
    refused(
        bench.stage(&[guarded("two")?]),
        &[ErrorKind::Conflict],
        "what changed since",
    )
}

fn read_guard(subject: &dyn Files) -> Checked {
    let mut bench = Bench::new(subject)?;
    let mut reads = ReadLog::new();
    reads.note(path("a")?, Digest::of(b"what it was long ago"));
    let staged = bench
        .transaction
        .stage(&[replace("a", "two", "2")?], &reads, &CancelToken::new());
    refused(staged, &[ErrorKind::Conflict], "what is no longer what was read")?;
    reads.note(path("a")?, Digest::of(b"one\ntwo\n"));
    bench
        .transaction
        .stage(&[replace("a", "two", "2")?], &reads, &CancelToken::new())?;
    Ok(())
}

fn unread(subject: &dyn Files) -> Checked {
    let mut bench = Bench::new(subject)?;
    let content = || Content::Text("x".into());
    for change in [
        Change::Content { content: content() },
        Change::Remove,
        Change::Lines {
            lines: LineRange::new(1, 1)?,
            content: content(),
        },
    ] {
        let unguarded = edit("a", change)?;
        refused(
            bench.stage(&[unguarded]),
            &[ErrorKind::Conflict, ErrorKind::InvalidInput],
            "an unguarded change",
        )?;
    }
    bench.stage(&[expecting(
        edit("a", Change::Content { content: content() })?,
        Expect::Any,
    )])?;
    Ok(())
}

fn raw_names(subject: &dyn Files) -> Checked {
    let node = Node::File {
        bytes: b"raw".to_vec(),
        mode: 0o644,
    };
    subject.set(&Tree::new().with(b"\xff", node));
    let mut bench = Bench::on(subject)?;
    bench.stage(&[FileOperation::Move {
        from: WorkspacePath::from_raw(b"\xff")?,
        to: WorkspacePath::from_raw(b"\xfe")?,
        expect: None,
    }])?;
    let content = bench
        .transaction
        .view()
        .read(&WorkspacePath::from_raw(b"\xfe")?, &CancelToken::new())?;
    same!(content.bytes.to_vec(), b"raw".to_vec(), "the content");
    Ok(())
}

fn budget(subject: &dyn Files) -> Checked {
    subject.set(&sample());
    let mut transaction = subject.engine().begin(begin_with(100)?)?;
    let large = "x".repeat(200);
    let staged = transaction.stage(&[create("large", &large)?], &ReadLog::new(), &CancelToken::new());
    refused(staged, &[ErrorKind::Budget], "more than the budget")?;
    ensure!(transaction.is_empty(), "something is staged");
    Ok(())
}

fn weight(subject: &dyn Files) -> Checked {
    let mut bench = Bench::new(subject)?;
    ensure!(bench.transaction.is_empty(), "a new one is not empty");
    bench.stage(&[create("n", "12345")?])?;
    ensure!(!bench.transaction.is_empty(), "it is empty with something staged");
    ensure!(
        bench.transaction.staged_bytes() >= 5,
        "{} bytes are staged",
        bench.transaction.staged_bytes()
    );
    Ok(())
}

fn receipts(subject: &dyn Files) -> Checked {
    let mut bench = Bench::new(subject)?;
    bench.stage(&[replace("a", "one", "1")?])?;
    bench.stage(&[replace("a", "two", "2")?, remove("b")?, create("n", "n")?])?;
    let told: Vec<_> = bench
        .transaction
        .receipts()
        .into_iter()
        .map(|receipt| {
            let digest = |state: Option<zero_contracts::edit::PathState>| state.and_then(|state| state.digest);
            (receipt.path.to_string(), digest(receipt.before), digest(receipt.after))
        })
        .collect();
    let of = |text: &str| Some(Digest::of(text.as_bytes()));
    for wanted in [
        ("a".to_owned(), of("one\ntwo\n"), of("1\n2\n")),
        ("b".to_owned(), of("b\n"), None),
        ("n".to_owned(), None, of("n")),
    ] {
        ensure!(told.contains(&wanted), "{wanted:?} is not among {told:?}");
    }
    same!(told.len(), 3, "the number of receipts");
    Ok(())
}

fn savepoint(subject: &dyn Files) -> Checked {
    let mut bench = Bench::new(subject)?;
    bench.stage(&[replace("a", "one", "1")?])?;
    let mark = bench.transaction.savepoint();
    bench.stage(&[replace("a", "two", "2")?, create("n", "n")?])?;
    bench.transaction.roll_back_to(mark, &CancelToken::new())?;
    same!(bench.text("a")?, "1\ntwo\n", "what was staged before it");
    let made = bench.transaction.view().entry(&path("n")?)?;
    ensure!(made.is_none(), "what was staged after it is still there");
    Ok(())
}

fn foreign_savepoint(subject: &dyn Files) -> Checked {
    let mut bench = Bench::new(subject)?;
    let rolled = bench.transaction.roll_back_to(99, &CancelToken::new());
    refused(rolled, &[ErrorKind::InvalidInput], "it")
}

fn cancelled(subject: &dyn Files) -> Checked {
    let mut bench = Bench::new(subject)?;
    let token = CancelToken::new();
    token.cancel();
    let staged = bench
        .transaction
        .stage(&[replace("a", "two", "2")?], &ReadLog::new(), &token);
    refused(staged, &[ErrorKind::Cancelled], "it")
}
