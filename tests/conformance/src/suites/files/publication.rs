//! Publication and restoration.

use zero_contracts::response::CaptureTier;
use zero_contracts::{CancelToken, Epoch, ErrorKind};

use super::{Bench, Files, create, edit, read, remove, rename, replace, sample, seal, tree_is};
use crate::report::{Checked, Checks, ensure, refused, same};
use crate::tree::{Node, Tree};

pub(super) const CHECKS: &Checks<dyn Files> = &[
    ("a commit publishes everything", commit),
    ("a commit record says what it made durable", record),
    ("a transaction that is dropped leaves no trace", dropped),
    ("a transaction that is over does nothing more", over),
    ("a file that somebody changed meanwhile is a conflict", foreign_change),
    ("a file that somebody made meanwhile is a conflict", foreign_creation),
    ("a refused commit leaves no trace", refused_commit),
    ("a commit under an old epoch is refused", fenced),
    ("a cancelled commit is taken back", cancelled),
    ("what is materialised is live, and can be taken back", materialize),
    ("what is materialised can be committed", materialize_commit),
    ("a savepoint takes back what is live", roll_back_live),
    ("restoration keeps what somebody else changed", restore_foreign),
    ("restoration brings modes and symlinks back", restore_modes),
    ("what a command changes is captured and committed", capture_commit),
    ("what a command changes is captured and taken back", capture_restore),
];

fn commit(subject: &dyn Files) -> Checked {
    let mut bench = Bench::new(subject)?;
    bench.stage(&[
        replace("a", "two", "2")?,
        create("p/new", "new")?,
        remove("b")?,
        remove("empty")?,
        rename("d", "moved")?,
        edit("tool", zero_contracts::edit::Change::Mode { mode: 0o700 })?,
    ])?;
    bench.commit(1)?;
    let wanted = Tree::new()
        .file("a", "one\n2\n")
        .file("p/new", "new")
        .file("moved/x", "x")
        .file("moved/e/y", "y")
        .file("tool", "#!/bin/sh\n")
        .mode("tool", 0o700)
        .symlink("to-a", "a");
    tree_is!(subject, wanted);
    Ok(())
}

fn record(subject: &dyn Files) -> Checked {
    let mut bench = Bench::new(subject)?;
    bench.stage(&[replace("a", "two", "2")?])?;
    let cell = bench.cell.clone();
    let record = bench.commit(3)?;
    same!(
        (record.cell, record.epoch, record.seal),
        (cell, Epoch(3), seal()?),
        "the record"
    );
    Ok(())
}

fn dropped(subject: &dyn Files) -> Checked {
    let mut bench = Bench::new(subject)?;
    bench.stage(&[replace("a", "two", "2")?, create("n", "n")?])?;
    bench.materialize(1)?;
    drop(bench);
    tree_is!(subject, sample());
    Ok(())
}

fn over(subject: &dyn Files) -> Checked {
    let mut bench = Bench::new(subject)?;
    bench.stage(&[replace("a", "two", "2")?])?;
    bench.commit(1)?;
    ensure!(bench.stage(&[replace("a", "one", "1")?]).is_err(), "it stages");
    ensure!(bench.commit(1).is_err(), "it commits again");
    Ok(())
}

fn foreign_change(subject: &dyn Files) -> Checked {
    let mut bench = Bench::new(subject)?;
    bench.stage(&[replace("a", "two", "2")?])?;
    let theirs = sample().file("a", "theirs\n");
    subject.set(&theirs);
    refused(bench.commit(1), &[ErrorKind::Conflict], "it")?;
    tree_is!(subject, theirs);
    Ok(())
}

fn foreign_creation(subject: &dyn Files) -> Checked {
    let mut bench = Bench::new(subject)?;
    bench.stage(&[create("n", "ours")?])?;
    let theirs = sample().file("n", "theirs");
    subject.set(&theirs);
    refused(bench.commit(1), &[ErrorKind::Conflict], "it")?;
    tree_is!(subject, theirs);
    Ok(())
}

fn refused_commit(subject: &dyn Files) -> Checked {
    let mut bench = Bench::new(subject)?;
    bench.stage(&[
        replace("a", "two", "2")?,
        create("n", "n")?,
        replace("tool", "sh", "bash")?,
    ])?;
    let theirs = sample().file("tool", "theirs").mode("tool", 0o755);
    subject.set(&theirs);
    refused(bench.commit(1), &[ErrorKind::Conflict], "it")?;
    tree_is!(subject, theirs);
    Ok(())
}

fn fenced(subject: &dyn Files) -> Checked {
    let mut bench = Bench::new(subject)?;
    bench.stage(&[replace("a", "two", "2")?])?;
    bench.commit(5)?;
    let mut late = Bench::on(subject)?;
    late.stage(&[create("n", "n")?])?;
    ensure!(late.commit(4).is_err(), "it was not refused");
    tree_is!(subject, sample().file("a", "one\n2\n"));
    Ok(())
}

fn cancelled(subject: &dyn Files) -> Checked {
    let mut bench = Bench::new(subject)?;
    bench.stage(&[replace("a", "two", "2")?])?;
    let token = CancelToken::new();
    token.cancel();
    let committed = bench.transaction.commit(Epoch(1), seal()?, &token);
    refused(
        committed.map_err(|failure| failure.error),
        &[ErrorKind::Cancelled],
        "it",
    )?;
    tree_is!(subject, sample());
    Ok(())
}

fn materialize(subject: &dyn Files) -> Checked {
    let mut bench = Bench::new(subject)?;
    bench.stage(&[replace("a", "two", "2")?, create("p/n", "n")?, remove("b")?])?;
    bench.materialize(1)?;
    tree_is!(subject, sample().file("a", "one\n2\n").file("p/n", "n").without("b"));
    bench.transaction.restore()?;
    tree_is!(subject, sample());
    Ok(())
}

fn materialize_commit(subject: &dyn Files) -> Checked {
    let mut bench = Bench::new(subject)?;
    bench.stage(&[replace("a", "two", "2")?])?;
    bench.materialize(1)?;
    bench.stage(&[replace("a", "one", "1")?])?;
    bench.commit(1)?;
    tree_is!(subject, sample().file("a", "1\n2\n"));
    Ok(())
}

fn roll_back_live(subject: &dyn Files) -> Checked {
    let mut bench = Bench::new(subject)?;
    let mark = bench.transaction.savepoint();
    bench.stage(&[create("n", "n")?])?;
    bench.materialize(1)?;
    bench.transaction.roll_back_to(mark, &CancelToken::new())?;
    tree_is!(subject, sample());
    bench
        .commit(1)
        .map_err(|_| crate::report::Stop::Broken("nothing cannot be committed".into()))?;
    tree_is!(subject, sample());
    Ok(())
}

fn restore_foreign(subject: &dyn Files) -> Checked {
    let mut bench = Bench::new(subject)?;
    bench.stage(&[replace("a", "two", "2")?, replace("b", "b", "c")?])?;
    bench.materialize(1)?;
    subject.set(&sample().file("a", "theirs").file("b", "c\n"));
    let restoration = bench.transaction.restore()?;
    tree_is!(subject, sample().file("a", "theirs"));
    let conflicts: Vec<&str> = restoration
        .conflicts
        .iter()
        .map(|conflict| conflict.path.as_str())
        .collect();
    same!(conflicts, vec!["a"], "the conflicts");
    Ok(())
}

fn restore_modes(subject: &dyn Files) -> Checked {
    let mut bench = Bench::new(subject)?;
    bench.stage(&[remove("tool")?, remove("to-a")?])?;
    bench.materialize(1)?;
    bench.transaction.restore()?;
    tree_is!(subject, sample());
    Ok(())
}

/// A command changes, makes and removes something.
fn command(subject: &dyn Files, before: &Tree) -> Tree {
    let after = before
        .clone()
        .file("a", "by a command")
        .file("made", "made")
        .without("d/x");
    subject.set(&after);
    after
}

fn capture_commit(subject: &dyn Files) -> Checked {
    let mut bench = Bench::new(subject)?;
    bench.stage(&[replace("b", "b", "c")?])?;
    let tier = bench.transaction.begin_capture(Epoch(1), &CancelToken::new())?;
    same!(tier, CaptureTier::Baseline, "the tier");
    let before = sample().file("b", "c\n");
    tree_is!(subject, before);
    let after = command(subject, &before);
    let captured = bench.transaction.end_capture(&CancelToken::new())?;
    let mut paths: Vec<String> = captured
        .receipts
        .iter()
        .map(|receipt| receipt.path.to_string())
        .collect();
    paths.sort();
    same!(
        paths,
        vec!["a".to_owned(), "d/x".into(), "made".into()],
        "what was captured"
    );
    same!(bench.text("made")?, "made", "what the cell sees");
    bench.commit(1)?;
    tree_is!(subject, after);
    same!(read(&*subject.engine().live(), "a")?, "by a command", "what others see");
    Ok(())
}

fn capture_restore(subject: &dyn Files) -> Checked {
    let mut bench = Bench::new(subject)?;
    bench.transaction.begin_capture(Epoch(1), &CancelToken::new())?;
    command(subject, &sample());
    bench.transaction.end_capture(&CancelToken::new())?;
    bench.transaction.restore()?;
    tree_is!(subject, sample());
    let kept = matches!(subject.tree().0.get(&b"to-a"[..]), Some(Node::Symlink(_)));
    ensure!(kept, "the symlink is gone");
    Ok(())
}
