//! One program's life on the engine and on the model: staging, ends good and bad, other people's writes, commands.

use std::collections::BTreeMap;
use std::sync::Arc;

use fszero::FsZero;
use zero_contracts::files::ReadLog;
use zero_contracts::read::EntryKind;
use zero_contracts::source::WalkScope;
use zero_contracts::{CancelToken, CellId, Digest, Epoch, FileEngine, SourceView, Transaction, WorkspacePath};

use super::tree::{Key, Model, Refused, parent, raw};
use crate::gates::{Injector, Plan};
use crate::support::*;

pub struct Run {
    pub f: Fixture,
    pub gate: Arc<Injector>,
    pub engine: FsZero,
    /// The live tree by the model.
    pub base: Model,
    /// The tree as the cell sees it.
    pub seen: Model,
    pub transaction: Option<Box<dyn Transaction>>,
    pub marks: Vec<(u64, Model)>,
    /// Whether effects are in the live tree already.
    pub landed: bool,
    /// Somebody else wrote meanwhile.
    pub dirty: bool,
    /// What they wrote and nobody may lose.
    pub foreign: Vec<Vec<u8>>,
    pub last: Option<(CellId, Model)>,
    pub cell: Option<CellId>,
    pub epoch: u64,
    pub counter: u64,
}

impl Run {
    pub fn new() -> Self {
        let gate = Injector::new();
        let dir = scratch();
        let root = dir.path().join("root");
        std::fs::create_dir_all(root.join("d/e")).unwrap();
        std::fs::write(root.join("a"), "one\ntwo\n").unwrap();
        std::fs::write(root.join("d/x"), "x\n").unwrap();
        std::os::unix::fs::symlink("d", root.join("l")).unwrap();
        let f = Fixture::with(dir, |config| config.gate(gate.clone()));
        let base = Model(f.image());
        let engine = f.engine.clone();
        let (transaction, marks, foreign) = (None, Vec::new(), Vec::new());
        Self {
            f,
            gate,
            engine,
            seen: base.clone(),
            base,
            transaction,
            marks,
            landed: false,
            dirty: false,
            foreign,
            last: None,
            cell: None,
            epoch: 1,
            counter: 0,
        }
    }

    pub fn tx(&mut self) -> &mut dyn Transaction {
        if self.transaction.is_none() {
            let begin = fresh();
            self.cell = Some(begin.cell.clone());
            self.transaction = Some(self.engine.begin(begin).unwrap());
            self.marks.clear();
            self.foreign.clear();
            self.dirty = false;
            self.landed = false;
            self.seen = self.base.clone();
        }
        &mut **self.transaction.as_mut().unwrap()
    }

    /// Stages one operation on both and compares the verdicts.
    pub fn stage(&mut self, operation: &serde_json::Value, model: impl FnOnce(&mut Model) -> Result<(), Refused>) {
        self.stage_all(std::slice::from_ref(operation), model);
    }

    pub fn stage_all(
        &mut self,
        operations: &[serde_json::Value],
        model: impl FnOnce(&mut Model) -> Result<(), Refused>,
    ) {
        let text = serde_json::to_string(operations).unwrap();
        let list = self::operations(&text);
        let got = self.tx().stage(&list, &ReadLog::new(), &CancelToken::new());
        let mut next = self.seen.clone();
        let expected = model(&mut next);
        if self.dirty {
            // The live tree below is not what the model thinks. What the cell does after it could see what they wrote
            // may replace that.
            self.foreign.clear();
            return;
        }
        assert_eq!(got.is_ok(), expected.is_ok(), "{text}: {:?}", got.map(|_| ()));
        if expected.is_ok() {
            self.seen = next;
        }
        self.compare_view();
    }

    pub fn compare_view(&mut self) {
        if self.dirty {
            return;
        }
        let view = self.tx().view();
        assert_eq!(view_image(&*view), self.seen.0, "the view is not what the model says");
    }

    pub fn over(&mut self) {
        self.transaction = None;
        self.marks.clear();
        let image = self.f.image();
        assert!(
            !image.keys().any(|key| key.starts_with(b".fszero")),
            "something is left over"
        );
        for bytes in std::mem::take(&mut self.foreign) {
            let kept = image
                .values()
                .any(|held| matches!(held, Held::File(b, _) if *b == bytes));
            assert!(kept, "what somebody else wrote is gone");
        }
        if std::mem::take(&mut self.dirty) {
            self.last = None;
            self.base = Model(image.clone());
        }
        assert_eq!(image, self.base.0, "the tree is not what the model says");
        self.seen = self.base.clone();
    }

    pub fn commit(&mut self) {
        self.tx();
        let epoch = Epoch(self.epoch);
        let before = self.base.clone();
        let result = self.tx().commit(epoch, seal(), &CancelToken::new());
        match result {
            Ok(_) => {
                if !self.dirty {
                    self.base = self.seen.clone();
                    self.last = self.cell.clone().map(|cell| (cell, before));
                } else {
                    self.last = None;
                }
            }
            Err(failure) => assert!(self.dirty, "a commit failed: {}", failure.error),
        }
        self.over();
    }

    pub fn reopen(&mut self) {
        self.transaction = None;
        self.gate.arm(Plan::Nothing);
        self.engine = FsZero::open(config(self.f.dir.path()).gate(self.gate.clone())).unwrap();
        self.epoch += 1;
        self.engine.recover(Epoch(self.epoch), &CancelToken::new()).unwrap();
    }

    /// A commit that dies or fails at a step.
    pub fn disturbed_commit(&mut self, plan: Plan) {
        self.tx();
        if self.dirty {
            return self.commit();
        }
        let (old, new) = (self.base.clone(), self.seen.clone());
        let epoch = Epoch(self.epoch);
        self.gate.arm(plan);
        let ok = self.tx().commit(epoch, seal(), &CancelToken::new()).is_ok();
        self.reopen();
        let image = self.f.image();
        assert!(
            image == new.0 || (!ok && image == old.0),
            "neither old nor new after {plan:?}, ok: {ok}"
        );
        if matches!(plan, Plan::Fail(..)) && !ok {
            assert_eq!(image, old.0, "a failed commit left a trace");
        }
        self.base = Model(image);
        self.last = None;
        self.over();
    }

    /// A restoration that dies or fails at a step.
    pub fn disturbed_restore(&mut self, plan: Plan) {
        if self.transaction.is_none() || self.dirty {
            return;
        }
        self.gate.arm(plan);
        let _ = self.tx().restore();
        self.reopen();
        self.over();
    }

    /// A commit that dies at a step, and a recovery that dies at another.
    pub fn disturbed_recovery(&mut self, step: u64, again: u64) {
        self.tx();
        if self.dirty {
            return self.commit();
        }
        let (old, new) = (self.base.clone(), self.seen.clone());
        let epoch = Epoch(self.epoch);
        self.gate.arm(Plan::Die(step));
        let ok = self.tx().commit(epoch, seal(), &CancelToken::new()).is_ok();
        self.transaction = None;
        self.gate.arm(Plan::Die(again));
        if let Ok(engine) = FsZero::open(config(self.f.dir.path()).gate(self.gate.clone())) {
            let _ = engine.recover(Epoch(self.epoch + 1), &CancelToken::new());
        }
        self.reopen();
        let image = self.f.image();
        assert!(
            image == new.0 || (!ok && image == old.0),
            "neither old nor new after deaths at {step} and {again}, ok: {ok}"
        );
        self.base = Model(image);
        self.last = None;
        self.over();
    }

    /// A command changes the tree by itself; with `die` the cell dies while taking that back.
    pub fn command(&mut self, acts: &[(u8, &str, &str)], die: Option<u64>) {
        let epoch = Epoch(self.epoch);
        self.tx();
        if self.dirty {
            return;
        }
        self.tx().begin_capture(epoch, &CancelToken::new()).unwrap();
        assert_eq!(self.f.image(), self.seen.0, "what is staged is not what a command sees");
        for (how, path, other) in acts {
            self.act(*how, path, other);
        }
        if let Some(step) = die {
            self.gate.arm(Plan::Die(step));
            let _ = self.tx().restore();
            self.reopen();
            return self.over();
        }
        self.tx().end_capture(&CancelToken::new()).unwrap();
        self.landed = true;
        self.seen = Model(self.f.image());
        self.compare_view();
    }

    fn place(&self, path: &str) -> std::path::PathBuf {
        use std::os::unix::ffi::OsStrExt;
        self.f.root().join(std::ffi::OsStr::from_bytes(&raw(path)))
    }

    /// One thing that a command may do; whether it succeeds is the command's own affair.
    fn act(&self, how: u8, path: &str, other: &str) {
        use std::os::unix::fs::PermissionsExt;
        let (at, to) = (self.place(path), self.place(other));
        let is_link = std::fs::symlink_metadata(&at).is_ok_and(|meta| meta.is_symlink());
        let _ = match how % 9 {
            0 => std::fs::write(at, "one\n"),
            1 => std::fs::write(at, format!("by command {how}\n")),
            2 => std::fs::remove_file(at),
            3 => std::fs::rename(at, to),
            4 => std::fs::create_dir_all(at),
            5 => std::fs::remove_dir_all(at),
            6 if !is_link => std::fs::set_permissions(at, std::fs::Permissions::from_mode(0o700)),
            7 => std::os::unix::fs::symlink("a", at),
            _ => std::fs::copy(at, to).map(drop),
        };
    }

    /// Somebody else writes, in place or by a rename, or removes.
    pub fn elsewhere(&mut self, path: &str, how: u8) {
        self.counter += 1;
        let at = self.place(path);
        let bytes = format!("theirs {}", self.counter).into_bytes();
        let is_file = std::fs::symlink_metadata(&at).is_ok_and(|meta| meta.is_file());
        let missing = std::fs::symlink_metadata(&at).is_err() && at.parent().is_some_and(|p| p.is_dir());
        if !(is_file || missing) {
            return;
        }
        let done = if how.is_multiple_of(2) || missing {
            std::fs::write(&at, &bytes)
        } else {
            std::fs::write(self.f.root().join("aside"), &bytes)
                .and_then(|()| std::fs::rename(self.f.root().join("aside"), &at))
        };
        if done.is_ok() {
            // One place holds one writer's bytes.
            self.foreign.retain(|old| {
                self.f
                    .image()
                    .values()
                    .any(|held| matches!(held, Held::File(b, _) if b == old))
            });
            self.foreign.push(bytes);
            self.dirty = true;
            if self.transaction.is_none() {
                self.base = Model(self.f.image());
                self.seen = self.base.clone();
                self.foreign.clear();
                self.dirty = false;
                self.last = None;
            }
        }
    }

    pub fn revert(&mut self) {
        self.transaction = None;
        if self.dirty || self.landed {
            return self.over_after_drop();
        }
        self.over_after_drop();
        let Some((cell, before)) = self.last.take() else { return };
        let mut reversal = self.engine.revert(&cell, None, fresh(), &CancelToken::new()).unwrap();
        assert_eq!(reversal.conflicts, [], "an undo at once has no conflicts");
        assert_eq!(
            view_image(&*reversal.transaction.view()),
            before.0,
            "the undo stages something else"
        );
        reversal
            .transaction
            .commit(Epoch(self.epoch), seal(), &CancelToken::new())
            .unwrap();
        self.base = before;
        self.over();
    }

    pub fn over_after_drop(&mut self) {
        self.landed = false;
        self.over();
    }
}

/// A view's whole tree.
fn view_image(view: &dyn SourceView) -> Image {
    let found = std::sync::Mutex::new(BTreeMap::new());
    let scope = WalkScope {
        ignored: true,
        directories: true,
        ..WalkScope::default()
    };
    let skipped = view
        .walk(&scope, &CancelToken::new(), &|entry| {
            let held = match entry.kind {
                EntryKind::File => {
                    let content = view.read(&entry.path, &CancelToken::new()).unwrap();
                    assert_eq!(content.digest, Digest::of(&content.bytes));
                    Held::File(content.bytes.to_vec(), entry.mode)
                }
                EntryKind::Directory => Held::Directory(entry.mode),
                EntryKind::Symlink => Held::Symlink(view.read_link(&entry.path).unwrap()),
                EntryKind::Other => Held::Other,
            };
            found.lock().unwrap().insert(entry.path.as_bytes().to_vec(), held);
            std::ops::ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!(skipped, []);
    let found = found.into_inner().unwrap();
    // Listing tells the same as walking.
    for (key, held) in &found {
        if let Held::Directory(_) = held {
            let path = WorkspacePath::from_raw(key).unwrap();
            let listed: Vec<Key> = view
                .list(&path)
                .unwrap()
                .iter()
                .map(|e| e.path.as_bytes().to_vec())
                .collect();
            let expected: Vec<Key> = found.keys().filter(|k| parent(k) == *key).cloned().collect();
            assert_eq!(listed, expected);
        }
    }
    found
}
