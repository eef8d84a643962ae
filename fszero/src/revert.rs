//! Undo: staging the reverse of a committed transaction in a new one.
//!
//! The effects are gone through backwards on the staged tree. Each is reversed only where that tree still is what the
//! effect had left; a path where it is not is reported with both texts' differences and left out from there on. One that is
//! back already, by an undo of a part or by somebody's hand, is left out as well, and is no conflict.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use zero_contracts::files::{BeginTransaction, ReadLog, Reversal};
use zero_contracts::response::PathConflict;
use zero_contracts::{CancelToken, CellId, Digest, Error, ErrorKind, Transaction, WorkspacePath};

use crate::engine::Shared;
use crate::node::Node;
use crate::overlay::Body;
use crate::record::{Batch, Effect};
use crate::stage::{Planned, Stager};
use crate::text::diff::unified;
use crate::transaction::Cell;
use crate::view::View;

/// Texts up to this size are compared in a conflict.
const DIFF_BYTES: u64 = 1 << 20;

pub(crate) fn revert(
    shared: &Arc<Shared>,
    cell: &CellId,
    paths: Option<&[WorkspacePath]>,
    begin: BeginTransaction,
    token: &CancelToken,
) -> Result<Reversal, Error> {
    let Some(batches) = shared.journal.find_commit(cell)? else {
        return Err(Error::new(
            ErrorKind::NotFound,
            format!("the journal holds no commit of cell {cell} (any more)"),
        ));
    };
    let mut transaction = Cell::begin(Arc::clone(shared), begin)?;
    let mut conflicts = Vec::new();
    let befores = befores(&batches);
    transaction.staging(&ReadLog::new(), token, |stager| {
        let mut left_out = HashSet::new();
        for batch in batches.iter().rev() {
            for effect in backwards(batch) {
                token.check()?;
                let touched = effect_paths(effect);
                let wanted = paths.is_none_or(|paths| touched.iter().any(|t| paths.iter().any(|p| t.is_within(p))));
                if !wanted {
                    continue;
                }
                if touched.iter().any(|path| left_out.contains(*path)) {
                    left_out.extend(touched.into_iter().cloned());
                    continue;
                }
                if let Some(conflict) = reverse(stager, effect)? {
                    if !are_back(stager, &touched, &befores)? {
                        conflicts.extend(conflict);
                    }
                    left_out.extend(touched.into_iter().cloned());
                }
            }
        }
        Ok(())
    })?;
    let receipts = transaction.receipts();
    Ok(Reversal {
        transaction: Box::new(transaction),
        receipts,
        conflicts,
    })
}

/// What each path of a transaction held before it; `None` where nothing was.
fn befores(batches: &[Batch]) -> HashMap<&WorkspacePath, Option<&Node>> {
    let mut befores = HashMap::new();
    for effect in batches.iter().flat_map(|batch| &batch.effects) {
        match effect {
            Effect::Create { path, .. } => drop(befores.entry(path).or_insert(None)),
            Effect::Replace { path, before, .. }
            | Effect::Remove { path, before, .. }
            | Effect::Chmod { path, before, .. } => {
                befores.entry(path).or_insert(Some(before));
            }
            Effect::Captured { path, before, .. } => drop(befores.entry(path).or_insert(before.as_ref())),
            Effect::Rename { from, to, before } => {
                befores.entry(from).or_insert(Some(before));
                befores.entry(to).or_insert(None);
            }
        }
    }
    befores
}

/// Whether paths hold what they held before the transaction, so that there is nothing to take back.
fn are_back(
    stager: &Stager<'_>,
    paths: &[&WorkspacePath],
    befores: &HashMap<&WorkspacePath, Option<&Node>>,
) -> Result<bool, Error> {
    for path in paths {
        let now = stager.holds(path)?;
        let back = match (befores.get(path), &now) {
            (None, _) => false,
            (Some(Some(before)), Some(now)) if before.is_directory() => now.is_directory(),
            (Some(before), now) => *before == now.as_ref(),
        };
        if !back {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The effects of a batch in the order in which they are reversed.
///
/// Those of a command are in the order of their paths. What it made goes first, from the depth up; then what it changed is
/// changed back, so that directories are directories again; then what it removed comes back, from the top down; and last
/// come directories that will be closed to their owner, for nothing can be put into those.
fn backwards(batch: &Batch) -> Vec<&Effect> {
    let mut effects: Vec<&Effect> = batch.effects.iter().rev().collect();
    if batch.is_captured() {
        let closed = |node: &Node| node.is_directory() && node.mode() & 0o300 != 0o300;
        let rank = |effect: &Effect| match effect {
            Effect::Captured { before: None, .. } => 0,
            Effect::Captured {
                before: Some(before),
                after: Some(after),
                ..
            } if closed(before) && after.is_directory() => 3,
            Effect::Captured { after: Some(_), .. } => 1,
            _ => 2,
        };
        effects.sort_by_key(|effect| rank(effect));
        let made = effects.iter().take_while(|effect| rank(effect) == 0).count();
        let kept = effects.iter().take_while(|effect| rank(effect) < 3).count();
        effects[made..kept].sort_by_key(|effect| (rank(effect), effect_paths(effect)));
    }
    effects
}

fn effect_paths(effect: &Effect) -> Vec<&WorkspacePath> {
    match effect {
        Effect::Create { path, .. }
        | Effect::Replace { path, .. }
        | Effect::Remove { path, .. }
        | Effect::Chmod { path, .. }
        | Effect::Captured { path, .. } => vec![path],
        Effect::Rename { from, to, .. } => vec![from, to],
    }
}

/// The bytes of a preimage.
fn body(shared: &Shared, node: &Node) -> Result<Option<Body>, Error> {
    let Node::File { digest, bytes, .. } = node else {
        return Ok(None);
    };
    if *bytes <= crate::store::INLINE_BYTES {
        return Ok(Some(Body::Memory(shared.store.get(digest)?.into())));
    }
    if !shared.store.has(digest)? {
        return Err(Error::new(
            ErrorKind::NotFound,
            format!("the bytes {digest} were not kept"),
        ));
    }
    Ok(Some(Body::Object))
}

/// Stages the reverse of one effect; returns a conflict (or an unreported one) if the path is left out.
fn reverse(stager: &mut Stager<'_>, effect: &Effect) -> Result<Option<Option<PathConflict>>, Error> {
    let (path, before, after) = match effect {
        Effect::Create { path, after, .. } => (path, None, Some(after)),
        Effect::Replace {
            path, before, after, ..
        } => (path, Some(before), Some(after)),
        Effect::Remove { path, before, .. } => (path, Some(before), None),
        Effect::Captured {
            path, before, after, ..
        } => (path, before.as_ref(), after.as_ref()),
        Effect::Chmod { path, before, after } => {
            let now = stager.holds(path)?;
            if now.as_ref().map(|now| (now.kind(), now.mode())) == Some((after.kind(), after.mode())) {
                stager.set_mode(path, before.mode())?;
                return Ok(None);
            }
            return Ok(Some(Some(differs(
                stager,
                path,
                Some(before),
                Some(after),
                now.as_ref(),
            ))));
        }
        Effect::Rename { from, to, before } => {
            let (there, here) = (stager.holds(to)?, stager.holds(from)?);
            let same = match (before, &there) {
                (Node::Directory { .. }, Some(now)) => now.is_directory(),
                (before, now) => now.as_ref() == Some(before),
            };
            if same && here.is_none() {
                stager.move_back(to, from)?;
                return Ok(None);
            }
            return Ok(Some(Some(differs(
                stager,
                to,
                Some(before),
                Some(before),
                there.as_ref(),
            ))));
        }
    };
    let now = stager.holds(path)?;
    if let (true, Some(before), Some(after), Some(now)) = (path.is_root(), before, after, &now) {
        // No operation changes the root's mode, but a command may have.
        if now.mode() != after.mode() {
            return Ok(Some(Some(differs(stager, path, Some(before), Some(after), Some(now)))));
        }
        stager.work.effects.push_back(Planned::Chmod {
            path: path.clone(),
            before: now.clone(),
            after: before.clone(),
        });
        return Ok(None);
    }
    let same = match (after, &now) {
        (Some(Node::Directory { .. }), Some(now)) => now.is_directory(),
        (after, now) => now.as_ref() == after,
    };
    if !same {
        return Ok(Some(Some(differs(stager, path, before, after, now.as_ref()))));
    }
    if after.is_some_and(Node::is_directory) && before.is_none_or(|before| !before.is_directory()) {
        let view = View {
            shared: Arc::clone(stager.shared),
            overlay: stager.work.overlay.clone(),
            live: false,
        };
        if !view.entries(path)?.is_empty() {
            // Something of somebody else's lies in it now: the directory stays, and that is no loss.
            return Ok(Some(None));
        }
    }
    match before {
        None => stager.take(path)?,
        Some(before) => {
            let body = match body(stager.shared, before) {
                Ok(body) => body,
                Err(e) => {
                    let detail = format!("what was there cannot be had any more: {}", e.detail);
                    return Ok(Some(Some(PathConflict {
                        path: path.to_string(),
                        detail,
                        ours: None,
                        theirs: None,
                    })));
                }
            };
            if now
                .as_ref()
                .is_some_and(|now| now.kind() == before.kind() && now.digest() == before.digest())
            {
                stager.set_mode(path, before.mode())?;
            } else {
                stager.put(path, before, body)?;
            }
        }
    }
    Ok(None)
}

/// A conflict with the three versions: before the transaction, as it left the path, and now.
fn differs(
    stager: &Stager<'_>,
    path: &WorkspacePath,
    before: Option<&Node>,
    after: Option<&Node>,
    now: Option<&Node>,
) -> PathConflict {
    let text = |node: Option<&Node>| -> Option<Vec<u8>> {
        match node {
            Some(Node::File { digest, bytes, .. }) if *bytes <= DIFF_BYTES => {
                let stored = stager.shared.store.get(digest).ok();
                stored.or_else(|| {
                    let mut bytes = Vec::new();
                    let mut file = stager.shared.tree.open_file(path).ok()?.0;
                    std::io::Read::read_to_end(&mut file, &mut bytes).ok()?;
                    (Digest::of(&bytes) == *digest).then_some(bytes)
                })
            }
            None => Some(Vec::new()),
            _ => None,
        }
    };
    let mut detail = format!(
        "`{path}` is {} now and was {} after the transaction: it was left as it is",
        Node::describe(now),
        Node::describe(after)
    );
    if let (Some(b), Some(a), Some(n)) = (text(before), text(after), text(now)) {
        let (transaction, since) = (unified(&b, &a), unified(&a, &n));
        if !transaction.is_empty() || !since.is_empty() {
            detail.push_str(&format!(
                "\n--- before\n+++ transaction\n{transaction}--- transaction\n+++ now\n{since}"
            ));
        }
    }
    let theirs = stager.shared.keep_live(path);
    PathConflict {
        path: path.to_string(),
        detail,
        ours: before.and_then(Node::handle),
        theirs,
    }
}
