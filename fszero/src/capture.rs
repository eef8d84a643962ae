//! The capture tier `baseline`: what a command changed, found by comparing the tracked tree before and after it.
//!
//! Before: a manifest of everything that ignore rules do not exclude, and of `.git`, with the bytes of every file in the
//! store (a copy, because a command may write into the very inode; the stat cache makes it a stat per file the second
//! time). After: the same by the *same* rules. What differs becomes effects of the transaction. Objects of git are
//! recorded by name and size, since they never change, and retained by a link ([`crate::retained`]). If one that vanished
//! (a repack) could not be retained, its loss is reported on restoration, and the objects that the command made stay,
//! because they may hold the same content. Owner and extended attributes are not recorded: a file that is put back keeps
//! those of the one it displaces.

use std::collections::HashMap;
use std::sync::Arc;

use zero_contracts::edit::EditReceipt;
use zero_contracts::files::Captured;
use zero_contracts::{CancelToken, CellId, Digest, Epoch, Error, ErrorKind, SessionName, WorkspacePath};

use crate::engine::Shared;
use crate::node::Node;
use crate::record::{Batch, Effect, Record};
use crate::retained::{self, is_git_object};
use crate::rules::{Overrides, RULE_BYTES, is_rules};
use crate::snapshot::{Manifest, SnapshotView, decode, encode};
use crate::stage::receipt;
use crate::statcache::{Scope, survey};
use crate::text::diff::unified;
use crate::widen::Widened;

/// Texts up to this size are compared line by line in receipts.
const DIFF_BYTES: u64 = 1 << 20;

/// A tree as it was before a command.
#[derive(Clone)]
pub(crate) struct Capture {
    before: Baseline,
    /// What rule files said before the transaction, where it changed them: it cannot take protection away by that.
    overrides: Arc<Overrides>,
    /// Stamps of ignored files; none after a crash.
    ignored: Option<Arc<HashMap<WorkspacePath, u128>>>,
}

/// A manifest that is an object, durable with everything it names.
#[derive(Clone)]
pub(crate) struct Baseline {
    tree: Arc<Manifest>,
    digest: Digest,
}

/// What a command did.
pub(crate) struct Finished {
    pub batch: Batch,
    pub changes: Vec<(WorkspacePath, Option<Node>, Option<Node>)>,
    pub captured: Captured,
}

impl Capture {
    /// Records the tree durably; none if it is above the limits. `last` is what this transaction recorded last: where the
    /// tree is still that, it is durable already.
    pub fn begin(
        shared: &Arc<Shared>,
        cell: &CellId,
        session: &SessionName,
        epoch: Epoch,
        batches: &[Batch],
        last: Option<&Baseline>,
        token: &CancelToken,
    ) -> Result<Option<Self>, Error> {
        let overrides = overrides(shared, batches)?;
        let (files, bytes) = (shared.config.capture_files, shared.config.capture_bytes);
        let found = survey(
            shared,
            Scope {
                git: true,
                ignored: true,
                files,
                bytes,
                rules: None,
                overrides: Some(&overrides),
            },
            token,
        )
        .map_err(closed)?;
        if found.too_large {
            return Ok(None);
        }
        // Restoration may still need what earlier captures of this transaction, or an unfinished one, retained.
        let captured = batches.iter().any(Batch::is_captured);
        let tidy = !captured && shared.journal.open()?.iter().all(|open| open.cell == *cell);
        retained::retain(shared, &found.tracked, tidy, token)?;
        let before = match last {
            Some(last) if *last.tree == found.tracked => last.clone(),
            _ => Baseline::store(shared, found.tracked)?,
        };
        let begun = Record::CaptureBegun {
            cell: cell.clone(),
            session: session.clone(),
            epoch,
            baseline: before.digest,
        };
        shared.journal.append(vec![begun], shared.power())?;
        Ok(Some(Self {
            before,
            overrides: Arc::new(overrides),
            ignored: Some(Arc::new(found.ignored)),
        }))
    }

    /// What the tree was before.
    pub fn baseline(&self) -> &Baseline {
        &self.before
    }

    /// Goes on with what a dead cell had begun.
    pub fn resume(shared: &Shared, baseline: &Digest, batches: &[Batch]) -> Result<Self, Error> {
        let bytes = shared.store.get(baseline)?;
        let before = decode(&bytes).ok_or_else(|| {
            Error::new(
                ErrorKind::Corrupt,
                "the manifest that a command's effects are told by is damaged",
            )
        })?;
        Ok(Self {
            before: Baseline {
                tree: Arc::new(before),
                digest: *baseline,
            },
            overrides: Arc::new(overrides(shared, batches)?),
            ignored: None,
        })
    }

    /// Compares, and journals what was found.
    pub fn finish(self, shared: &Arc<Shared>, cell: &CellId, token: &CancelToken) -> Result<Finished, Error> {
        // Nothing but rules is read from it.
        let texts = self.before.tree.iter().filter(|(path, _)| is_rules(path));
        let rules = SnapshotView::new(Arc::clone(&shared.store), texts.cloned().collect());
        let scope = Scope {
            git: true,
            ignored: true,
            files: u64::MAX,
            bytes: u64::MAX,
            rules: Some(&rules),
            overrides: Some(&self.overrides),
        };
        let after = match survey(shared, scope, token) {
            Err(e) if e.kind == ErrorKind::Denied => {
                // The command left directories that may not be read. They are as it left them again before anything is
                // journalled: who dies in between has them found changed, and put back.
                let mut widened = Widened::default();
                widened.enter_all(shared)?;
                let modes = widened.modes.clone();
                let found = survey(shared, scope, token);
                widened.put_back(shared)?;
                let mut found = found?;
                for (path, node) in &mut found.tracked {
                    if let (Node::Directory { mode }, Some((was, _))) = (node, modes.get(path)) {
                        *mode = *was;
                    }
                }
                found
            }
            other => other?,
        };
        let mut changes = Vec::new();
        let (mut old, mut new) = (self.before.tree.iter().peekable(), after.tracked.into_iter().peekable());
        loop {
            let order = match (old.peek(), new.peek()) {
                (None, None) => break,
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
                (Some(a), Some(b)) => a.0.cmp(&b.0),
            };
            let was = if order.is_le() { old.next() } else { None };
            let is = if order.is_ge() { new.next() } else { None };
            match (was, is) {
                (Some((_, was)), Some((_, is))) if *was == is => {}
                (Some((_, was)), Some((path, is))) => changes.push((path, Some(was.clone()), Some(is))),
                (Some((path, was)), None) => changes.push((path.clone(), Some(was.clone()), None)),
                (None, Some((path, is))) => changes.push((path, None, Some(is))),
                (None, None) => break,
            }
        }
        let lost = changes.iter().any(|(path, was, is)| {
            matches!((was, is), (Some(Node::File { bytes, .. }), None)
                if is_git_object(path) && !retained::holds(shared, path, *bytes))
        });
        let kept = |path: &WorkspacePath, was: &Option<Node>| lost && was.is_none() && in_git_objects(path);
        let mut effects = Vec::new();
        for (path, before, after) in changes.iter().filter(|(path, was, _)| !kept(path, was)) {
            let temp = effects.len() as u32;
            effects.push(Effect::Captured {
                path: path.clone(),
                temp,
                before: before.clone(),
                after: after.clone(),
            });
        }
        let mut batch = Batch { tag: 0, effects };
        shared.journal.write(|number| {
            batch.tag = shared.tag(number);
            vec![Record::CaptureEnded {
                cell: cell.clone(),
                batch: batch.clone(),
            }]
        })?;
        let ignored_paths = self.ignored.map_or(0, |before| differing(&before, &after.ignored));
        let receipts = changes
            .iter()
            .map(|(path, was, is)| describe(shared, path, was.as_ref(), is.as_ref()))
            .collect();
        Ok(Finished {
            batch,
            changes,
            captured: Captured {
                receipts,
                ignored_paths,
            },
        })
    }
}

impl Baseline {
    /// Makes a manifest an object, and durable with the bytes that it names.
    fn store(shared: &Shared, tree: Manifest) -> Result<Self, Error> {
        let digest = shared.store.put(&encode(&tree)?)?;
        if shared.power() {
            let pending = shared.store.take_pending();
            if let Err(e) = shared.store.make_durable(&pending) {
                shared.store.put_back(pending);
                return Err(e);
            }
        }
        Ok(Self {
            tree: Arc::new(tree),
            digest,
        })
    }
}

/// Says what to do about a directory that may not be listed.
fn closed(mut error: Error) -> Error {
    if error.kind == ErrorKind::Denied {
        error.detail.push_str(
            "; what a command changes can be told only where all can be listed: let its owner list it before the command runs, or ignore it",
        );
    }
    error
}

/// What rule files said before batches of a transaction were published.
fn overrides(shared: &Shared, batches: &[Batch]) -> Result<Overrides, Error> {
    let mut overrides = Overrides::new();
    for effect in batches.iter().flat_map(|batch| &batch.effects) {
        let changes: [Option<(&WorkspacePath, Option<&Node>)>; 2] = match effect {
            Effect::Create { path, .. } => [Some((path, None)), None],
            Effect::Replace { path, before, .. } | Effect::Remove { path, before, .. } => {
                [Some((path, Some(before))), None]
            }
            Effect::Captured { path, before, .. } => [Some((path, before.as_ref())), None],
            Effect::Rename { from, to, before } => [Some((from, Some(before))), Some((to, None))],
            Effect::Chmod { .. } => continue,
        };
        for (path, before) in changes.into_iter().flatten() {
            if is_rules(path) && !overrides.contains_key(path) {
                let text = match before {
                    Some(Node::File { digest, bytes, .. }) if *bytes <= RULE_BYTES => {
                        if let (Effect::Rename { to, .. }, false) = (effect, shared.store.has(digest)?) {
                            // It was only moved, so nobody had to keep its bytes.
                            let _ = shared.keep_live(to);
                        }
                        Some(shared.store.get(digest)?)
                    }
                    _ => None,
                };
                overrides.insert(path.clone(), text);
            }
        }
    }
    Ok(overrides)
}

/// Tells whether a path is `.git/objects` or below it.
fn in_git_objects(path: &WorkspacePath) -> bool {
    let names: Vec<&[u8]> = path.components().collect();
    names.windows(2).any(|pair| pair == [&b".git"[..], &b"objects"[..]])
}

fn differing(before: &HashMap<WorkspacePath, u128>, after: &HashMap<WorkspacePath, u128>) -> u64 {
    let changed = after
        .iter()
        .filter(|(path, stamp)| before.get(*path) != Some(stamp))
        .count();
    let gone = before.keys().filter(|path| !after.contains_key(*path)).count();
    (changed + gone) as u64
}

fn describe(shared: &Shared, path: &WorkspacePath, before: Option<&Node>, after: Option<&Node>) -> EditReceipt {
    let mut receipt = receipt(path, before, after);
    let bytes = |node: Option<&Node>| match node {
        Some(Node::File { digest, bytes, .. }) if *bytes <= DIFF_BYTES && !in_git_objects(path) => {
            shared.store.get(digest).ok()
        }
        Some(_) => None,
        None => Some(Vec::new()),
    };
    if let (Some(old), Some(new)) = (bytes(before), bytes(after)) {
        receipt.diff = unified(&old, &new);
    }
    receipt
}
