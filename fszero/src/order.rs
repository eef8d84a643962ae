//! What has to be durable before what, while effects of one batch are carried out or taken back.
//!
//! A loss of power may keep a later change of a directory and lose an earlier one. Where the batch uses each name once this
//! does no harm: each effect shows by itself whether it happened. But a rename takes whatever it finds: at a name that the
//! batch uses again it would take what was there earlier. So it is flushed apart from what came before it at its paths.
//! Everything else that meets a rename finds the one thing it may change, or nothing: a name that an earlier rename was to
//! free is still taken, and one that it was to fill is empty.

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
    created: Paths,
    renamed: bool,
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
            Effect::Rename { before, .. } => {
                self.renamed = true;
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
        self.directory_moved || (unmade && self.renamed) || back || self.entangles(effect)
    }

    /// Whether it is a rename that meets one of them at one of its paths.
    fn entangles(&self, effect: &Effect) -> bool {
        matches!(effect, Effect::Rename { .. }) && effect.paths().any(|path| self.all.has_related(path))
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
    fn a_rename_waits_for_what_it_meets() {
        for earlier in [
            create("d/a"),
            remove("d/a"),
            rename("d/a", "x", link()),
            rename("x", "d/a", link()),
        ] {
            let earlier = after(&[earlier]);
            for rename in [
                rename("d/a", "e", link()),
                rename("e", "d/a", link()),
                rename("d", "e", link()),
                rename("e", "d/a/b", link()),
            ] {
                assert!(earlier.before(&rename) && earlier.before_undo(&rename), "{rename:?}");
            }
        }
    }

    #[test]
    fn what_meets_a_rename_waits_only_where_it_comes_back_over_what_was_made() {
        let moved = after(&[rename("a", "d/b", link())]);
        for effect in [create("a"), remove("d/b"), create("d/b/x")] {
            assert!(!moved.before(&effect) && !moved.before_undo(&effect), "{effect:?}");
        }
        let made = after(&[create("d/a")]);
        assert!(made.before_undo(&remove("d")) && !made.before(&remove("d")));
    }

    #[test]
    fn after_a_directory_moved_everything_waits() {
        let moved = after(&[rename("a", "b", Node::Directory { mode: 0o755 })]);
        assert!(moved.before(&create("c")) && moved.before_undo(&create("c")));
    }
}
