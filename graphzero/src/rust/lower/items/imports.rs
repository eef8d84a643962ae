//! `use` trees and `extern crate`.

use super::*;

impl Lower<'_, '_, '_> {
    pub(super) fn extern_crate(&mut self, node: Node<'_>) {
        let Some(name) = node.field(F::Name) else { return };
        let base = if name.text() == "self" {
            Base::Crate
        } else {
            Base::Use(self.use_path(name, Base::Root, Ns::Type, UseKind::Import))
        };
        let alias = node.field(F::Alias).unwrap_or(name);
        let (alias, public) = (alias.text(), false);
        let alias = self.facts.name(alias);
        self.import(node, base, alias, false, public);
    }

    pub(super) fn use_declaration(&mut self, node: Node<'_>) {
        let public = node
            .first_child()
            .is_some_and(|child| child.kind() == K::VisibilityModifier);
        if let Some(argument) = node.field(F::Argument) {
            self.use_tree(argument, Base::Lexical, public);
        }
    }

    pub(super) fn import(&mut self, node: Node<'_>, base: Base, alias: u32, glob: bool, public: bool) {
        let span = self.span(node);
        let text = node.text();
        let text = self.facts.name(text);
        let import = Import {
            base,
            alias,
            glob,
            public,
            at: span.start,
            end: span.end,
            text,
        };
        self.code.scopes[self.scope as usize].imports.push(import);
    }

    /// Walks a use tree below `base`.
    pub(super) fn use_tree(&mut self, node: Node<'_>, base: Base, public: bool) {
        match node.kind() {
            K::UseList => {
                for child in node.children() {
                    self.use_tree(child, base, public);
                }
            }
            K::ScopedUseList => {
                let base = match node.field(F::Path) {
                    Some(path) => self.use_segment(path, base, Ns::Type),
                    None => Base::Root,
                };
                if let Some(list) = node.field(F::List) {
                    self.use_tree(list, base, public);
                }
            }
            K::UseWildcard => {
                let base = match node.first_child() {
                    Some(path) => self.use_segment(path, base, Ns::Type),
                    None => base,
                };
                self.import(node, base, NONE, true, public);
            }
            K::UseAsClause => {
                let (Some(path), Some(alias)) = (node.field(F::Path), node.field(F::Alias)) else {
                    return;
                };
                let base = self.use_segment(path, base, Ns::Any);
                let text = alias.text();
                let alias = if text == "_" {
                    NONE
                } else {
                    self.facts.name(text.trim_start_matches("r#"))
                };
                self.import(node, base, alias, false, public);
            }
            K::SelfKeyword if base != Base::Lexical => {
                // `a::{self}` binds the last name of what is around.
                let alias = match base {
                    Base::Use(id) => self.facts.use_mut(id).map_or(NONE, |u| u.name),
                    _ => NONE,
                };
                self.import(node, base, alias, false, public);
            }
            _ => {
                let base = self.use_segment(node, base, Ns::Any);
                let alias = match base {
                    Base::Use(id) => self.facts.use_mut(id).map_or(NONE, |u| u.name),
                    _ => NONE,
                };
                self.import(node, base, alias, false, public);
            }
        }
    }

    /// Walks a path inside a use tree and returns it as a base.
    pub(super) fn use_segment(&mut self, node: Node<'_>, base: Base, ns: Ns) -> Base {
        match node.kind() {
            K::Crate => Base::Crate,
            K::SelfKeyword if base == Base::Lexical => Base::Module(0),
            K::SelfKeyword => base,
            K::Super => match base {
                Base::Module(up) => Base::Module(up + 1),
                _ => Base::Module(1),
            },
            K::Metavariable => Base::Crate,
            K::ScopedIdentifier => {
                let inner = match node.field(F::Path) {
                    Some(path) => self.use_segment(path, base, Ns::Type),
                    None => Base::Root,
                };
                match node.field(F::Name) {
                    Some(name) if name.kind() == K::Super => self.use_segment(name, inner, ns),
                    Some(name) => Base::Use(self.use_path(name, inner, ns, UseKind::Import)),
                    None => inner,
                }
            }
            _ => Base::Use(self.use_path(node, base, ns, UseKind::Import)),
        }
    }
}
