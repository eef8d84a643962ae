//! What a [`FileEngine`] and its [`Transaction`]s promise.

mod history;
mod publication;
mod snapshots;
mod staging;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use zero_contracts::apply::FileOperation;
use zero_contracts::edit::{Change, Count, EditReceipt, Expect};
use zero_contracts::files::{BeginTransaction, CommitSeal, ReadLog};
use zero_contracts::{
    CancelToken, CellId, Content, Digest, Epoch, Error, FileEngine, SessionName, SourceView, Transaction, WorkspacePath,
};

use crate::report::{self, Report, Stop};
use crate::tree::Tree;

/// A workspace with an engine on it, and what somebody else may do there.
pub trait Files {
    /// The engine.
    fn engine(&self) -> Arc<dyn FileEngine>;

    /// Makes the live tree this one.
    fn set(&self, tree: &Tree);

    /// The live tree.
    fn tree(&self) -> Tree;

    /// Opens the workspace anew, as a process does after another one died.
    fn reopen(&self);

    /// Changes a byte of a stored object behind the engine's back.
    fn damage(&self, digest: &Digest);
}

/// Runs the suite against fresh workspaces.
pub fn run(fresh: &dyn Fn() -> Box<dyn Files>) -> Report {
    let checks: Vec<_> = [staging::CHECKS, publication::CHECKS, history::CHECKS, snapshots::CHECKS].concat();
    report::run("FileEngine", &checks, fresh)
}

fn sample() -> Tree {
    Tree::new()
        .file("a", "one\ntwo\n")
        .file("b", "b\n")
        .file("d/x", "x")
        .file("d/e/y", "y")
        .file("tool", "#!/bin/sh\n")
        .mode("tool", 0o755)
        .directory("empty")
        .symlink("to-a", "a")
}

fn path(text: &str) -> Result<WorkspacePath, Error> {
    WorkspacePath::from_raw(text.as_bytes())
}

fn edit(at: &str, change: Change) -> Result<FileOperation, Error> {
    Ok(FileOperation::Edit {
        path: path(at)?,
        change,
        expect: None,
    })
}

fn expecting(operation: FileOperation, expected: Expect) -> FileOperation {
    match operation {
        FileOperation::Edit { path, change, .. } => FileOperation::Edit {
            path,
            change,
            expect: Some(expected),
        },
        other => other,
    }
}

fn replace(at: &str, find: &str, replacement: &str) -> Result<FileOperation, Error> {
    edit(
        at,
        Change::Replace {
            find: find.into(),
            replacement: replacement.into(),
            count: Count::One,
        },
    )
}

fn create(at: &str, content: &str) -> Result<FileOperation, Error> {
    edit(
        at,
        Change::Create {
            create: Content::Text(content.into()),
        },
    )
}

fn remove(at: &str) -> Result<FileOperation, Error> {
    Ok(expecting(edit(at, Change::Remove)?, Expect::Any))
}

fn rename(from: &str, to: &str) -> Result<FileOperation, Error> {
    Ok(FileOperation::Move {
        from: path(from)?,
        to: path(to)?,
        expect: None,
    })
}

fn begin_with(staged_bytes: u64) -> Result<BeginTransaction, Error> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    Ok(BeginTransaction {
        cell: CellId::new(format!("cell-{}", NEXT.fetch_add(1, Ordering::Relaxed)))?,
        session: SessionName::new("main")?,
        staged_bytes,
    })
}

fn seal() -> Result<CommitSeal, Error> {
    Ok(CommitSeal {
        session: SessionName::new("main")?,
        state: Some(Digest::of(b"state")),
        event: Digest::of(b"event"),
        intents: vec![Digest::of(b"intent")],
    })
}

/// A workspace with a tree, and one transaction on it.
struct Bench<'a> {
    subject: &'a dyn Files,
    engine: Arc<dyn FileEngine>,
    transaction: Box<dyn Transaction>,
    cell: CellId,
}

impl<'a> Bench<'a> {
    fn new(subject: &'a dyn Files) -> Result<Self, Stop> {
        subject.set(&sample());
        Self::on(subject)
    }

    fn on(subject: &'a dyn Files) -> Result<Self, Stop> {
        let engine = subject.engine();
        let begin = begin_with(1 << 20)?;
        Ok(Self {
            subject,
            cell: begin.cell.clone(),
            transaction: engine.begin(begin)?,
            engine,
        })
    }

    fn stage(&mut self, operations: &[FileOperation]) -> Result<Vec<EditReceipt>, Error> {
        self.transaction.stage(operations, &ReadLog::new(), &CancelToken::new())
    }

    fn text(&self, at: &str) -> Result<String, Error> {
        let content = self.transaction.view().read(&path(at)?, &CancelToken::new())?;
        Ok(String::from_utf8_lossy(&content.bytes).into_owned())
    }

    fn materialize(&mut self, epoch: u64) -> Result<(), Error> {
        self.transaction.materialize(Epoch(epoch), &CancelToken::new())
    }

    fn commit(&mut self, epoch: u64) -> Result<zero_contracts::files::CommitRecord, Error> {
        self.try_commit(epoch).map_err(|failure| failure.error)
    }

    fn try_commit(
        &mut self,
        epoch: u64,
    ) -> Result<zero_contracts::files::CommitRecord, Box<zero_contracts::files::CommitFailure>> {
        let seal = seal().map_err(|error| zero_contracts::files::CommitFailure {
            error,
            restoration: zero_contracts::files::Restoration::default(),
        })?;
        self.transaction.commit(Epoch(epoch), seal, &CancelToken::new())
    }

    /// The process dies: nothing is dropped, and the workspace is opened anew.
    fn die(self) -> Arc<dyn FileEngine> {
        std::mem::forget(self.transaction);
        self.subject.reopen();
        self.subject.engine()
    }
}

fn read(view: &dyn SourceView, at: &str) -> Result<String, Error> {
    let content = view.read(&path(at)?, &CancelToken::new())?;
    Ok(String::from_utf8_lossy(&content.bytes).into_owned())
}

/// Ends a check as broken unless the live tree is the wanted one.
macro_rules! tree_is {
    ($subject:expr, $wanted:expr) => {
        if let Some(difference) = $subject.tree().difference(&$wanted) {
            return Err($crate::report::Stop::Broken(difference));
        }
    };
}
use tree_is;
