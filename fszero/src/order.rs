//! What has to be durable before what, while effects of one batch are carried out or taken back.
//!
//! A loss of power may keep a later change of a directory and lose an earlier one. Where the batch uses each name once this
//! does no harm: each effect shows by itself whether it happened. But what a rename finds under a name that the batch uses
//! again depends on what came before, and so does what the tree then seems to say. Such changes are flushed apart.

use std::collections::BTreeSet;

use zero_contracts::WorkspacePath;

use crate::record::Effect;

/// Paths that changes not flushed yet are about.
#[derive(Default)]
struct Paths(BTreeSet<Vec<u8>>);

impl Paths {
    fn add(&mut self, path: &WorkspacePath) {
        self.0.insert(path.as_bytes().to_vec());
    }

    fn has_below(&self, path: &WorkspacePath) -> bool {
        let below = [path.as_bytes(), b"/"].concat();
        let next = self.0.range(below.clone()..).next();
        next.is_some_and(|next| next.starts_with(&below))
    }

    /// Whether one of them is this path, or above or below it.
    fn has_related(&self, path: &WorkspacePath) -> bool {
        let mut at = Some(path.clone());
        while let Some(path) = at {
            if self.0.contains(path.as_bytes()) {
                return true;
            }
            at = path.parent();
        }
        self.has_below(path)
    }
}

/// The effects since the last flush.
#[derive(Default)]
pub(crate) struct Unflushed {
    all: Paths,
    renamed: Paths,
    created: Paths,
    directory_made: bool,
    directory_moved: bool,
}

impl Unflushed {
    /// Notes that an effect was carried out, or taken back.
    pub fn note(&mut self, effect: &Effect) {
        for path in effect.paths() {
            self.all.add(path);
        }
        match effect {
            Effect::Create { path, after, .. } => {
                self.created.add(path);
                self.directory_made |= after.is_directory();
            }
            Effect::Rename { from, to, before } => {
                self.renamed.add(from);
                self.renamed.add(to);
                self.directory_moved |= before.is_directory();
            }
            _ => {}
        }
    }

    /// Whether they have to be durable before an effect is carried out.
    ///
    /// What is moved into a new directory goes wherever that one went, and a path means another directory once one moved.
    pub fn before(&self, effect: &Effect) -> bool {
        self.directory_moved
            || (self.directory_made && matches!(effect, Effect::Rename { .. }))
            || self.entangles(effect)
    }

    /// Whether they have to be durable before an effect is taken back.
    ///
    /// What was moved out of a directory must not be lost while that directory's removal is kept, and what comes back must
    /// not be taken for what is on its way out below it.
    pub fn before_undo(&self, effect: &Effect) -> bool {
        let back = match effect {
            Effect::Rename { from: path, .. } | Effect::Remove { path, .. } => self.created.has_below(path),
            _ => false,
        };
        let unmade = matches!(effect, Effect::Create { after, .. } if after.is_directory());
        self.directory_moved || (unmade && !self.renamed.0.is_empty()) || back || self.entangles(effect)
    }

    /// Whether a rename, this one or one of them, meets another effect at one of its paths.
    fn entangles(&self, effect: &Effect) -> bool {
        let others = if matches!(effect, Effect::Rename { .. }) {
            &self.all
        } else {
            &self.renamed
        };
        effect.paths().any(|path| others.has_related(path))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::node::Node;

    fn path(path: &str) -> WorkspacePath {
        WorkspacePath::from_raw(path.as_bytes()).unwrap()
    }

    fn link() -> Node {
        Node::Symlink { target: b"t".to_vec() }
    }

    fn create(at: &str) -> Effect {
        Effect::Create {
            path: path(at),
            temp: 0,
            after: link(),
        }
    }

    fn remove(at: &str) -> Effect {
        Effect::Remove {
            path: path(at),
            temp: 0,
            before: link(),
        }
    }

    fn rename(from: &str, to: &str, before: Node) -> Effect {
        Effect::Rename {
            from: path(from),
            to: path(to),
            before,
        }
    }

    fn after(effects: &[Effect]) -> Unflushed {
        let mut unflushed = Unflushed::default();
        effects.iter().for_each(|effect| unflushed.note(effect));
        unflushed
    }

    #[test]
    fn effects_at_names_of_their_own_wait_for_nothing() {
        let files = after(&[
            rename("a", "b", link()),
            create("d/x"),
            remove("dd"),
            rename("e/f", "g", link()),
        ]);
        for effect in [
            create("h"),
            remove("e/g"),
            rename("da", "e/ff", link()),
            rename("d/y", "i", link()),
        ] {
            assert!(!files.before(&effect) && !files.before_undo(&effect), "{effect:?}");
        }
        let made = after(&[remove("a"), create("a")]);
        assert!(!made.before(&create("a")) && !made.before_undo(&remove("a")));
    }

    #[test]
    fn a_rename_and_what_meets_it_are_flushed_apart() {
        let moved = after(&[rename("a", "d/b", link())]);
        for effect in [
            create("a"),
            remove("d/b"),
            create("a/x"),
            rename("d", "e", link()),
            rename("f", "a", link()),
        ] {
            assert!(moved.before(&effect) && moved.before_undo(&effect), "{effect:?}");
        }
        let made = after(&[create("d/a")]);
        for effect in [
            rename("d/a", "e", link()),
            rename("e", "d/a", link()),
            rename("d", "e", link()),
        ] {
            assert!(made.before(&effect) && made.before_undo(&effect), "{effect:?}");
        }
        assert!(made.before_undo(&remove("d")) && !made.before(&remove("d")));
    }

    #[test]
    fn after_a_directory_moved_everything_waits() {
        let moved = after(&[rename("a", "b", Node::Directory { mode: 0o755 })]);
        assert!(moved.before(&create("c")) && moved.before_undo(&create("c")));
    }
}
