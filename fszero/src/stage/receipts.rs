//! What a transaction's paths were and became.

use std::io::Read;

use imbl::{OrdMap, Vector};
use zero_contracts::edit::EditReceipt;
use zero_contracts::{Digest, WorkspacePath};

use super::{EDIT_IN_MEMORY, First, Work, receipt};
use crate::engine::Shared;
use crate::node::Node;
use crate::overlay::{Body, Overlay, Slot};
use crate::text;

impl Work {
    /// What is staged is in the live tree now.
    pub fn land(&mut self) {
        for path in self.first.keys() {
            if let Some(slot) = self.overlay.get(path) {
                self.landed.insert(path.clone(), slot.node());
            }
        }
        self.overlay = Overlay::default();
        self.effects = Vector::new();
        self.tips = OrdMap::new();
    }

    /// A command changed a path.
    pub fn captured(&mut self, path: &WorkspacePath, before: Option<&Node>, after: Option<&Node>) {
        if !self.first.contains_key(path) {
            let body = before.map(|_| Body::Object);
            self.first.insert(
                path.clone(),
                First {
                    node: before.cloned(),
                    body,
                },
            );
        }
        self.landed.insert(path.clone(), after.cloned());
        self.known.remove(path);
    }

    /// One receipt for each path that differs from what it was before the transaction.
    pub fn receipts(&self, shared: &Shared) -> Vec<EditReceipt> {
        let bytes = |node: &Option<Node>, body: &Option<Body>| -> Option<Vec<u8>> {
            let (Some(Node::File { digest, bytes, .. }), Some(body)) = (node, body) else {
                return Some(Vec::new());
            };
            if *bytes > EDIT_IN_MEMORY {
                return None;
            }
            let mut content = Vec::new();
            let read = shared.open_body(body, digest).ok()?.read_to_end(&mut content).is_ok();
            let content = if read && Digest::of(&content) == *digest {
                content
            } else {
                shared.store.get(digest).ok()?
            };
            Some(content)
        };
        let mut receipts = Vec::new();
        for (path, first) in &self.first {
            let slot = self.overlay.get(path);
            let after = match slot {
                Some(slot) => slot.node(),
                None => self.landed.get(path).cloned().flatten(),
            };
            if first.node == after {
                continue;
            }
            let mut receipt = receipt(path, first.node.as_ref(), after.as_ref());
            let body = match slot {
                Some(Slot::File { body, .. }) => Some(body.clone()),
                Some(_) => None,
                None => Some(Body::Live(path.clone())),
            };
            if matches!(after, Some(Node::File { .. }))
                && let (Some(old), Some(new)) = (bytes(&first.node, &first.body), bytes(&after, &body))
            {
                receipt.diff = text::diff::unified(&old, &new);
            }
            if let Some(matches) = self.matches.get(path).filter(|&&matches| matches > 0) {
                receipt.notes.insert("matches".to_owned(), *matches);
            }
            receipts.push(receipt);
        }
        receipts
    }
}
