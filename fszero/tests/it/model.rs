//! Random programs run on the engine and on a model of the tree in memory: every answer, every view and every tree after
//! every end must be the same. `FSZERO_PROGRAMS` sets how many (default 2,400 over all tests here).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fszero::FsZero;
use proptest::prelude::*;
use zero_contracts::files::ReadLog;
use zero_contracts::read::EntryKind;
use zero_contracts::source::WalkScope;
use zero_contracts::{CancelToken, CellId, Digest, Epoch, FileEngine, SourceView, Transaction, WorkspacePath};

use crate::gates::{Injector, Plan};
use crate::support::*;

/// Names that collide, nest, lead through symlinks and are not UTF-8.
const PATHS: [&str; 14] = [
    "a", "b", "d", "d/x", "d/y", "d/e", "d/e/z", "l", "l/x", "m", "\\xff", "d/e/n/n", "k", "b/no",
];

const TEXTS: [&str; 6] = [
    "one\n",
    "one\ntwo\nthree\n",
    "one\r\ntwo\r\n",
    "two",
    "",
    "\u{feff}one\ntwo",
];

/// One step of a program: a kind and three numbers that choose paths and texts.
type Step = (u8, u8, u8, u8);

#[derive(Clone, Debug)]
struct Model(Image);

type Key = Vec<u8>;

fn raw(path: &str) -> Key {
    path.parse::<WorkspacePath>().unwrap().as_bytes().to_vec()
}

fn parent(key: &[u8]) -> Key {
    key.iter()
        .rposition(|&b| b == b'/')
        .map_or(Vec::new(), |at| key[..at].to_vec())
}

fn join(dir: &[u8], name: &[u8]) -> Key {
    if dir.is_empty() {
        name.to_vec()
    } else {
        [dir, b"/", name].concat()
    }
}

/// Nothing more than that the engine must refuse, too.
struct Refused;

impl Model {
    fn get(&self, key: &[u8]) -> Option<Held> {
        if key.is_empty() {
            Some(Held::Directory(0o755))
        } else {
            self.0.get(key).cloned()
        }
    }

    fn canonical(&self, key: &[u8], follow: bool) -> Result<Key, Refused> {
        let mut todo: Vec<Key> = key.split(|&b| b == b'/').rev().map(<[u8]>::to_vec).collect();
        let mut at = Key::new();
        let mut hops = 0;
        while let Some(name) = todo.pop() {
            if name == b".." {
                if at.is_empty() {
                    return Err(Refused);
                }
                at = parent(&at);
                continue;
            }
            let next = join(&at, &name);
            match self.get(&next) {
                Some(Held::Symlink(target)) if follow || !todo.is_empty() => {
                    hops += 1;
                    if hops > 40 {
                        return Err(Refused);
                    }
                    todo.extend(target.split(|&b| b == b'/').rev().map(<[u8]>::to_vec));
                }
                _ => at = next,
            }
        }
        Ok(at)
    }

    fn parents(&mut self, key: &[u8]) -> Result<(), Refused> {
        let above = parent(key);
        match self.get(&above) {
            Some(Held::Directory(_)) => Ok(()),
            Some(_) => Err(Refused),
            None => {
                self.parents(&above)?;
                self.0.insert(above, Held::Directory(0o777 & !umask()));
                Ok(())
            }
        }
    }

    fn absent(&self, key: &[u8]) -> Result<(), Refused> {
        if self.get(key).is_none() { Ok(()) } else { Err(Refused) }
    }

    fn create(&mut self, path: &str, held: impl FnOnce() -> Held) -> Result<(), Refused> {
        let at = self.canonical(&raw(path), false)?;
        self.absent(&at)?;
        self.parents(&at)?;
        self.0.insert(at, held());
        Ok(())
    }

    fn edit(&mut self, path: &str, change: impl FnOnce(&[u8]) -> Result<Vec<u8>, Refused>) -> Result<(), Refused> {
        let at = self.canonical(&raw(path), true)?;
        match self.get(&at) {
            Some(Held::File(bytes, mode)) => {
                let new = change(&bytes)?;
                self.0.insert(at, Held::File(new, mode));
                Ok(())
            }
            _ => Err(Refused),
        }
    }

    fn remove(&mut self, path: &str) -> Result<(), Refused> {
        let at = self.canonical(&raw(path), false)?;
        match self.get(&at) {
            Some(Held::Directory(_)) if self.below(&at).next().is_some() => Err(Refused),
            Some(_) => {
                self.0.remove(&at);
                Ok(())
            }
            None => Err(Refused),
        }
    }

    fn below<'a>(&'a self, key: &[u8]) -> impl Iterator<Item = &'a Key> {
        let prefix = [key, b"/"].concat();
        self.0.keys().filter(move |k| k.starts_with(&prefix))
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<(), Refused> {
        let source = self.canonical(&raw(from), false)?;
        let target = self.canonical(&raw(to), false)?;
        let held = self.get(&source).ok_or(Refused)?;
        if target == source || target.starts_with(&[&source[..], b"/"].concat()) {
            return Err(Refused);
        }
        self.absent(&target)?;
        self.parents(&target)?;
        let below: Vec<Key> = self.below(&source).cloned().collect();
        for key in below {
            let held = self.0.remove(&key).unwrap();
            self.0.insert([&target[..], &key[source.len()..]].concat(), held);
        }
        self.0.remove(&source);
        self.0.insert(target, held);
        Ok(())
    }

    fn copy(&mut self, from: &str, to: &str) -> Result<(), Refused> {
        let source = self.canonical(&raw(from), false)?;
        match self.get(&source) {
            Some(held @ (Held::File(..) | Held::Symlink(_))) => self.create(to, || held),
            _ => Err(Refused),
        }
    }

    fn mkdir(&mut self, path: &str) -> Result<(), Refused> {
        let at = self.canonical(&raw(path), true)?;
        match self.get(&at) {
            Some(Held::Directory(_)) => Ok(()),
            Some(_) => Err(Refused),
            None => {
                self.parents(&at)?;
                self.0.insert(at, Held::Directory(0o777 & !umask()));
                Ok(())
            }
        }
    }

    fn chmod(&mut self, path: &str, mode: u32) -> Result<(), Refused> {
        let at = self.canonical(&raw(path), true)?;
        match self.0.get_mut(&at) {
            Some(Held::File(_, m) | Held::Directory(m)) => {
                *m = mode;
                Ok(())
            }
            _ => Err(Refused),
        }
    }
}

fn umask() -> u32 {
    static MASK: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
    *MASK.get_or_init(|| {
        use std::os::unix::fs::PermissionsExt;
        let dir = scratch();
        let probe = dir.path().join("probe");
        std::fs::create_dir(&probe).unwrap();
        0o777 & !std::fs::metadata(probe).unwrap().permissions().mode()
    })
}

fn replace_one(bytes: &[u8], find: &str, replacement: &str, all: bool) -> Result<Vec<u8>, Refused> {
    let text = String::from_utf8(bytes.to_vec()).map_err(|_| Refused)?;
    let count = text.matches(find).count();
    if count == 0 || (!all && count != 1) {
        return Err(Refused);
    }
    Ok(text.replace(find, replacement).into_bytes())
}

struct Run {
    f: Fixture,
    gate: Arc<Injector>,
    engine: FsZero,
    /// The live tree by the model.
    base: Model,
    /// The tree as the cell sees it.
    seen: Model,
    transaction: Option<Box<dyn Transaction>>,
    marks: Vec<(u64, Model)>,
    /// Whether effects are in the live tree already.
    landed: bool,
    /// Somebody else wrote meanwhile.
    dirty: bool,
    /// What they wrote and nobody may lose.
    foreign: Vec<Vec<u8>>,
    last: Option<(CellId, Model)>,
    cell: Option<CellId>,
    epoch: u64,
    counter: u64,
}

static KINDS: AtomicU64 = AtomicU64::new(0);

impl Run {
    fn new() -> Self {
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

    fn tx(&mut self) -> &mut dyn Transaction {
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
    fn stage(&mut self, operation: &serde_json::Value, model: impl FnOnce(&mut Model) -> Result<(), Refused>) {
        self.stage_all(std::slice::from_ref(operation), model);
    }

    fn stage_all(&mut self, operations: &[serde_json::Value], model: impl FnOnce(&mut Model) -> Result<(), Refused>) {
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

    fn compare_view(&mut self) {
        if self.dirty {
            return;
        }
        let view = self.tx().view();
        assert_eq!(view_image(&*view), self.seen.0, "the view is not what the model says");
    }

    fn over(&mut self) {
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

    fn commit(&mut self) {
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

    fn reopen(&mut self) {
        self.transaction = None;
        self.gate.arm(Plan::Nothing);
        self.engine = FsZero::open(config(self.f.dir.path()).gate(self.gate.clone())).unwrap();
        self.epoch += 1;
        self.engine.recover(Epoch(self.epoch), &CancelToken::new()).unwrap();
    }

    /// A commit that dies or fails at a step.
    fn disturbed_commit(&mut self, plan: Plan) {
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

    /// Somebody else writes, in place or by a rename, or removes.
    fn elsewhere(&mut self, path: &str, how: u8) {
        self.counter += 1;
        let at = {
            use std::os::unix::ffi::OsStrExt;
            self.f.root().join(std::ffi::OsStr::from_bytes(&raw(path)))
        };
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

    fn revert(&mut self) {
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

    fn over_after_drop(&mut self) {
        self.landed = false;
        self.over();
    }

    fn step(&mut self, (kind, p, q, n): Step) {
        let path = PATHS[p as usize % PATHS.len()];
        let other = PATHS[q as usize % PATHS.len()];
        let text = TEXTS[n as usize % TEXTS.len()];
        let any = "any";
        let kind = kind % 31;
        KINDS.fetch_or(1 << kind, Ordering::Relaxed);
        use serde_json::json;
        match kind {
            0 | 1 => self.stage(&json!({"path": path, "create": text}), |m| {
                m.create(path, || Held::File(text.into(), 0o666 & !umask()))
            }),
            2 => self.stage(&json!({"path": path, "find": "one", "replacement": "$1"}), |m| {
                m.edit(path, |b| replace_one(b, "one", "$1", false))
            }),
            3 => self.stage(
                &json!({"path": path, "find": "t", "replacement": "T", "count": "all"}),
                |m| m.edit(path, |b| replace_one(b, "t", "T", true)),
            ),
            4 => self.stage(&json!({"path": path, "content": text, "expect": any}), |m| {
                m.edit(path, |_| Ok(text.into()))
            }),
            5 => self.stage(
                &json!({"path": path, "content": {"base64": "/wD/"}, "expect": any}),
                |m| m.edit(path, |_| Ok(vec![0xff, 0, 0xff])),
            ),
            6 => {
                let digest = Digest::of(text.as_bytes());
                self.stage(&json!({"path": path, "content": "guarded\n", "expect": digest}), |m| {
                    m.edit(path, |b| {
                        if b == text.as_bytes() {
                            Ok(b"guarded\n".to_vec())
                        } else {
                            Err(Refused)
                        }
                    })
                });
            }
            7 => self.stage(
                &json!({"path": path, "insertBefore": 1, "content": "first\n", "expect": any}),
                |m| {
                    m.edit(path, |b| {
                        let bom = if b.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
                        let crlf = b.windows(2).any(|w| w == b"\r\n");
                        let line: &[u8] = if crlf { b"first\r\n" } else { b"first\n" };
                        Ok([&b[..bom], line, &b[bom..]].concat())
                    })
                },
            ),
            8 => self.stage(
                &json!({"path": path, "insertAfter": "two", "content": "2½", "expect": any}),
                |m| {
                    m.edit(path, |b| {
                        let t = String::from_utf8(b.to_vec()).map_err(|_| Refused)?;
                        if t.matches("two").count() != 1 {
                            return Err(Refused);
                        }
                        let at = t.find("two").unwrap();
                        let end = if t.contains("\r\n") { "\r\n" } else { "\n" };
                        Ok(match t[at..].find('\n') {
                            Some(next) => format!("{}2½{end}{}", &t[..at + next + 1], &t[at + next + 1..]),
                            None => format!("{t}{end}2½"),
                        }
                        .into_bytes())
                    })
                },
            ),
            9 => self.stage(
                &json!({"path": path, "lines": [1, 1], "content": "L", "expect": any}),
                |m| {
                    m.edit(path, |b| {
                        let bom = if b.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
                        let rest = b[bom..].iter().position(|&c| c == b'\n');
                        let end = rest.map_or(b.len(), |at| {
                            if at > 0 && b[bom + at - 1] == b'\r' {
                                bom + at - 1
                            } else {
                                bom + at
                            }
                        });
                        Ok([&b[..bom], b"L", &b[end..]].concat())
                    })
                },
            ),
            10 => self.stage(
                &json!({"path": path, "patch": "@@ -1 +1,2 @@\n-one\n+ONE\n+more\n"}),
                |m| {
                    m.edit(path, |b| {
                        let bom = if b.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
                        let lines: Vec<&[u8]> = b[bom..].split_inclusive(|&c| c == b'\n').collect();
                        let hits: Vec<usize> = (0..lines.len())
                            .filter(|&i| lines[i] == b"one\n" || lines[i] == b"one\r\n")
                            .collect();
                        let hit = if hits.first() == Some(&0) {
                            0
                        } else if hits.len() == 1 {
                            hits[0]
                        } else {
                            return Err(Refused);
                        };
                        let new: &[u8] = if lines[hit].ends_with(b"\r\n") {
                            b"ONE\r\nmore\r\n"
                        } else {
                            b"ONE\nmore\n"
                        };
                        Ok([&b[..bom], &lines[..hit].concat(), new, &lines[hit + 1..].concat()].concat())
                    })
                },
            ),
            11 | 12 => self.stage(&json!({"path": path, "remove": true, "expect": any}), |m| {
                m.remove(path)
            }),
            13 => {
                let mode = [0o600, 0o755, 0o644, 0o700][n as usize % 4];
                self.stage(&json!({"path": path, "mode": mode}), |m| m.chmod(path, mode));
            }
            14 | 15 => self.stage(&json!({"move": [path, other]}), |m| m.rename(path, other)),
            16 => self.stage(&json!({"copy": [path, other]}), |m| m.copy(path, other)),
            17 => self.stage(&json!({"mkdir": path}), |m| m.mkdir(path)),
            18 => {
                let target = ["a", "d", "e", "gone"][n as usize % 4];
                self.stage(&json!({"symlink": [target, path]}), |m| {
                    let at = m.canonical(&raw(path), false)?;
                    m.absent(&at)?;
                    m.create(path, || Held::Symlink(target.into()))
                });
            }
            19 => {
                // Atomic: the second fails, so the first is not staged either.
                let list = [
                    json!({"path": path, "create": "x"}),
                    json!({"path": "nowhere", "find": "x", "replacement": "y"}),
                ];
                self.stage_all(&list, |_| Err(Refused));
            }
            20 => self.stage_all(
                &[
                    json!({"path": path, "create": text}),
                    json!({"path": path, "content": "chained"}),
                    json!({"move": [path, other]}),
                ],
                |m| {
                    m.create(path, || Held::File(text.into(), 0o666 & !umask()))?;
                    m.edit(path, |_| Ok(b"chained".to_vec()))?;
                    m.rename(path, other)
                },
            ),
            21 => {
                let mark = self.tx().savepoint();
                let seen = self.seen.clone();
                self.marks.push((mark, seen));
            }
            22 => {
                if let Some((mark, seen)) = self.marks.pop() {
                    let result = self.tx().roll_back_to(mark, &CancelToken::new());
                    if !self.dirty {
                        result.unwrap();
                        self.seen = seen;
                        self.compare_view();
                    } else if result.is_err() {
                        self.transaction = None;
                        self.over();
                    }
                }
            }
            23 => {
                let epoch = Epoch(self.epoch);
                let result = self.tx().materialize(epoch, &CancelToken::new());
                if !self.dirty {
                    result.unwrap();
                    self.landed = true;
                    assert_eq!(
                        self.f
                            .image()
                            .into_iter()
                            .filter(|(k, _)| !k.starts_with(b".fszero"))
                            .collect::<Image>(),
                        self.seen.0
                    );
                }
            }
            24 => self.commit(),
            25 => {
                if self.transaction.is_some() {
                    let result = self.tx().restore();
                    result.unwrap();
                    self.over();
                }
            }
            26 => {
                self.transaction = None;
                self.over();
                self.reopen();
                self.over();
            }
            27 => self.elsewhere(path, q),
            28 => {
                let errno = [28, 5, 24][n as usize % 3];
                self.disturbed_commit(Plan::Fail(u64::from(p) % 24, errno));
            }
            29 => self.disturbed_commit(Plan::Die(u64::from(p) % 24)),
            _ => self.revert(),
        }
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

fn programs(share: u32) -> ProptestConfig {
    let all: u32 = std::env::var("FSZERO_PROGRAMS")
        .ok()
        .and_then(|v| v.parse().ok())
        .unwrap_or(2_400);
    ProptestConfig {
        cases: all.div_ceil(share),
        failure_persistence: None,
        max_shrink_iters: 4_000,
        ..ProptestConfig::default()
    }
}

fn run(steps: &[Step]) {
    let mut run = Run::new();
    for step in steps {
        run.step(*step);
    }
    run.commit();
    assert_eq!(run.engine.verify(&CancelToken::new()).unwrap(), []);
}

fn report(name: &str) {
    let kinds = KINDS.load(Ordering::Relaxed).count_ones();
    println!("{name}: {} programs, {kinds} kinds of step", programs(3).cases);
    assert!(kinds >= 20);
}

macro_rules! model_tests {
    ($($name:ident)*) => {$(
        #[test]
        fn $name() {
            proptest!(programs(3), |(steps in proptest::collection::vec(any::<Step>(), 1..16))| run(&steps));
            report(stringify!($name));
        }
    )*};
}

// Three tests of the same thing, so that they run on several processors.
model_tests! { random_programs_1 random_programs_2 random_programs_3 }
