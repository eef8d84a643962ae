//! What outlives a transaction: commits, recovery, undo.

use zero_contracts::files::RecoveredOutcome;
use zero_contracts::{CancelToken, CellId, Epoch, ErrorKind};

use super::{Bench, Files, begin_with, create, path, remove, replace, sample, seal, tree_is};
use crate::report::{Checked, Checks, Stop, ensure, refused, same};
use crate::tree::Tree;

pub(super) const CHECKS: &Checks<dyn Files> = &[
    ("what a dead process made live is taken back", recover_materialized),
    ("what a dead process only staged needs no recovery", recover_staged),
    ("a commit outlives the process", survives),
    ("commits are told in order, after a number", commits_after),
    ("numbers go on after one that was seen", numbers_go_on),
    ("the greatest epoch is remembered", last_epoch),
    ("an undo takes a whole commit back", revert),
    ("an undo takes single paths back", revert_paths),
    ("an undo leaves what was changed since", revert_changed),
    ("an undo has no conflict where all is back already", revert_rest),
    ("an undo can be undone", revert_revert),
    ("an undo of what there is not is not found", revert_nothing),
];

fn recover_materialized(subject: &dyn Files) -> Checked {
    let mut bench = Bench::new(subject)?;
    bench.stage(&[replace("a", "two", "2")?, create("p/n", "n")?, remove("b")?])?;
    bench.materialize(1)?;
    let cell = bench.cell.clone();
    let engine = bench.die();
    ensure!(engine.has_open_transaction()?, "nothing is told to be open");
    let open = engine.open_transactions()?;
    let [open] = &open[..] else {
        return Err(Stop::Broken(format!("{} transactions are listed, not 1", open.len())));
    };
    same!(
        (&open.cell, open.session.as_str(), open.committed),
        (&cell, "main", false),
        "the open transaction that is listed"
    );
    let recovered = engine.recover(Epoch(2), &CancelToken::new())?;
    tree_is!(subject, sample());
    let [one] = &recovered[..] else {
        return Err(Stop::Broken(format!(
            "{} transactions were recovered, not 1",
            recovered.len()
        )));
    };
    same!((&one.cell, one.session.as_str()), (&cell, "main"), "whose it was");
    ensure!(
        matches!(one.outcome, RecoveredOutcome::Restored(_)),
        "it is told to be committed"
    );
    ensure!(!engine.has_open_transaction()?, "something is told to be open still");
    ensure!(
        engine.recover(Epoch(3), &CancelToken::new())?.is_empty(),
        "it is recovered twice"
    );
    Ok(())
}

fn recover_staged(subject: &dyn Files) -> Checked {
    let mut bench = Bench::new(subject)?;
    bench.stage(&[replace("a", "two", "2")?])?;
    let engine = bench.die();
    ensure!(!engine.has_open_transaction()?, "something is told to be open");
    ensure!(
        engine.recover(Epoch(2), &CancelToken::new())?.is_empty(),
        "something is recovered"
    );
    tree_is!(subject, sample());
    Ok(())
}

fn survives(subject: &dyn Files) -> Checked {
    let mut bench = Bench::new(subject)?;
    bench.stage(&[replace("a", "two", "2")?, remove("b")?])?;
    let record = bench.commit(1)?;
    let engine = bench.die();
    engine.recover(Epoch(2), &CancelToken::new())?;
    tree_is!(subject, sample().file("a", "one\n2\n").without("b"));
    same!(engine.commits_after(0)?, vec![record], "the commits");
    Ok(())
}

fn commits_after(subject: &dyn Files) -> Checked {
    subject.set(&sample());
    let mut records = Vec::new();
    for n in 0..3 {
        let mut bench = Bench::on(subject)?;
        bench.stage(&[create(&format!("n{n}"), "n")?])?;
        records.push(bench.commit(1)?);
    }
    ensure!(
        records.windows(2).all(|pair| pair[0].sequence < pair[1].sequence),
        "{records:?}"
    );
    let engine = subject.engine();
    same!(engine.commits_after(0)?, records, "all commits");
    same!(
        engine.commits_after(records[0].sequence)?,
        records[1..].to_vec(),
        "those after the first"
    );
    same!(
        engine.commits_after(records[2].sequence)?.len(),
        0,
        "those after the last"
    );
    Ok(())
}

/// As after the loss of a journal: somebody has seen a number that this one never gave out.
fn numbers_go_on(subject: &dyn Files) -> Checked {
    subject.set(&sample());
    let mut last = 0;
    for (seen, n) in [(0, 0), (1_000, 1), (1_000, 2), (10, 3), (5_000, 4)] {
        let mut bench = Bench::on(subject)?;
        let engine = subject.engine();
        same!(engine.commits_after(seen.max(last))?.len(), 0, "those after the last");
        bench.stage(&[create(&format!("n{n}"), "n")?])?;
        let record = bench.commit(1)?;
        ensure!(
            record.sequence > seen.max(last),
            "{} was given out after {} was seen",
            record.sequence,
            seen.max(last)
        );
        same!(
            engine.commits_after(seen.max(last))?,
            vec![record.clone()],
            "the commit"
        );
        last = record.sequence;
    }
    same!(subject.engine().commits_after(0)?.len(), 5, "all commits");
    Ok(())
}

fn last_epoch(subject: &dyn Files) -> Checked {
    let mut bench = Bench::new(subject)?;
    bench.stage(&[create("n", "n")?])?;
    bench.commit(7)?;
    let engine = bench.die();
    ensure!(engine.last_epoch()? >= Epoch(7), "{} is told", engine.last_epoch()?);
    Ok(())
}

fn committed(subject: &dyn Files) -> Result<(CellId, Tree), Stop> {
    let mut bench = Bench::new(subject)?;
    bench.stage(&[replace("a", "two", "2")?, create("p/n", "n")?, remove("b")?])?;
    bench.commit(1)?;
    Ok((
        bench.cell.clone(),
        sample().file("a", "one\n2\n").file("p/n", "n").without("b"),
    ))
}

fn undo(subject: &dyn Files, cell: &CellId, paths: Option<&[&str]>) -> Result<(CellId, Vec<String>), Stop> {
    let paths: Option<Vec<_>> = paths
        .map(|paths| paths.iter().map(|at| path(at)).collect::<Result<_, _>>())
        .transpose()?;
    let begin = begin_with(1 << 20)?;
    let own = begin.cell.clone();
    let mut reversal = subject
        .engine()
        .revert(cell, paths.as_deref(), begin, &CancelToken::new())?;
    let committed = reversal.transaction.commit(Epoch(1), seal()?, &CancelToken::new());
    committed.map_err(|failure| failure.error)?;
    Ok((
        own,
        reversal.conflicts.into_iter().map(|conflict| conflict.path).collect(),
    ))
}

fn revert(subject: &dyn Files) -> Checked {
    let (cell, _) = committed(subject)?;
    let (_, conflicts) = undo(subject, &cell, None)?;
    same!(conflicts.len(), 0, "the conflicts");
    tree_is!(subject, sample());
    Ok(())
}

fn revert_paths(subject: &dyn Files) -> Checked {
    let (cell, after) = committed(subject)?;
    undo(subject, &cell, Some(&["a", "b"]))?;
    tree_is!(subject, after.file("a", "one\ntwo\n").file("b", "b\n"));
    Ok(())
}

fn revert_changed(subject: &dyn Files) -> Checked {
    let (cell, after) = committed(subject)?;
    subject.set(&after.file("a", "changed since"));
    let (_, conflicts) = undo(subject, &cell, None)?;
    same!(conflicts, vec!["a".to_owned()], "the conflicts");
    tree_is!(subject, sample().file("a", "changed since"));
    Ok(())
}

fn revert_rest(subject: &dyn Files) -> Checked {
    let (cell, _) = committed(subject)?;
    undo(subject, &cell, Some(&["a"]))?;
    for what in ["the rest", "once more"] {
        let (_, conflicts) = undo(subject, &cell, None)?;
        same!(conflicts, Vec::<String>::new(), format!("the conflicts of {what}"));
        tree_is!(subject, sample());
    }
    Ok(())
}

fn revert_revert(subject: &dyn Files) -> Checked {
    let (cell, after) = committed(subject)?;
    let (reversal, _) = undo(subject, &cell, None)?;
    undo(subject, &reversal, None)?;
    tree_is!(subject, after);
    Ok(())
}

fn revert_nothing(subject: &dyn Files) -> Checked {
    subject.set(&sample());
    let begin = begin_with(100)?;
    let cell = CellId::new("never-committed")?;
    let reversal = subject.engine().revert(&cell, None, begin, &CancelToken::new());
    refused(reversal.map(drop), &[ErrorKind::NotFound], "it")
}
