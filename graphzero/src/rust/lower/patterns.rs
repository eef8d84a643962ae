//! Patterns: what they bind, and the names they mention.

use super::{Lower, UNKNOWN};
use crate::facts::UseKind;
use crate::rust::code::{Expr, ExprId, Link, Ns, Part};
use crate::rust::nodes::{F, K};
use crate::rust::syntax::Node;

impl Lower<'_, '_, '_> {
    /// Walks a pattern that is matched against a value.
    pub fn pattern(&mut self, node: Node<'_>, value: ExprId) {
        self.deeper(node, (), |s| s.pattern_inner(node, value));
    }

    fn pattern_inner(&mut self, node: Node<'_>, value: ExprId) {
        match node.kind() {
            K::Identifier => {
                let text = node.text();
                // Constants, unit structs and variants begin with a capital letter; bindings do not.
                if text.chars().next().is_some_and(char::is_uppercase) {
                    self.path(node, Ns::Value, UseKind::Value);
                } else {
                    self.bind(text.trim_start_matches("r#"), value);
                }
            }
            K::ScopedIdentifier | K::GenericPattern => {
                self.path(node, Ns::Value, UseKind::Value);
            }
            K::TuplePattern => {
                let mut known = true;
                for (index, child) in node.children().enumerate() {
                    if child.kind() == K::RemainingField {
                        known = false;
                        continue;
                    }
                    let part = if known {
                        self.push_expr(Expr::TupleField {
                            recv: value,
                            index: index as u32,
                        })
                    } else {
                        UNKNOWN
                    };
                    self.pattern(child, part);
                }
            }
            K::TupleStructPattern => self.tuple_struct(node, value),
            K::StructPattern => self.struct_pattern(node, value),
            K::RefPattern | K::MutPattern => {
                for child in node.children() {
                    if child.kind() != K::MutableSpecifier {
                        self.pattern(child, value);
                    }
                }
            }
            K::ReferencePattern => {
                let inner = self.push_expr(Expr::Deref(value));
                for child in node.children() {
                    if child.kind() != K::MutableSpecifier {
                        self.pattern(child, inner);
                    }
                }
            }
            K::CapturedPattern | K::OrPattern => {
                for child in node.children() {
                    self.pattern(child, value);
                }
            }
            K::SlicePattern => {
                let element = self.push_expr(Expr::Elem(value));
                for child in node.children() {
                    // `rest @ ..` is a slice of the same elements.
                    let rest = child.kind() == K::CapturedPattern
                        && child.children().any(|inner| inner.kind() == K::RemainingField);
                    self.pattern(child, if rest { value } else { element });
                }
            }
            K::RangePattern => {
                for child in node.children() {
                    if matches!(child.kind(), K::Identifier | K::ScopedIdentifier) {
                        self.path(child, Ns::Value, UseKind::Value);
                    }
                }
            }
            K::MacroInvocation => {
                self.macro_call(node, false);
            }
            K::ConstBlock => {
                self.expr(node);
            }
            K::MatchPattern => self.match_pattern(node, value),
            _ => {}
        }
    }

    fn tuple_struct(&mut self, node: Node<'_>, value: ExprId) {
        let Some(head) = node.field(F::Type) else { return };
        let ty = self.value_type(head);
        let mut known = true;
        let mut index = 0;
        for child in node.children() {
            if child.id() == head.id() {
                continue;
            }
            if child.kind() == K::RemainingField {
                known = false;
                continue;
            }
            let part = if known {
                self.push_expr(Expr::Part {
                    of: value,
                    ty,
                    part: Part::Index(index),
                })
            } else {
                UNKNOWN
            };
            index += 1;
            self.pattern(child, part);
        }
    }

    /// Walks the path of a constructor and returns it as a type.
    fn value_type(&mut self, node: Node<'_>) -> u32 {
        use super::types::PathEnd;
        use crate::rust::code::{Base, TypeRef};
        match self.path(node, Ns::Value, UseKind::Value) {
            PathEnd::Use(id) => self.push_type(TypeRef::Path(id)),
            PathEnd::Base(Base::SelfType) => self.self_type(),
            PathEnd::Base(_) => UNKNOWN,
        }
    }

    fn struct_pattern(&mut self, node: Node<'_>, value: ExprId) {
        let ty = node.field(F::Type).map_or(UNKNOWN, |ty| self.ty(ty));
        for child in node.children() {
            if child.kind() != K::FieldPattern {
                continue;
            }
            let Some(name) = child.field(F::Name) else { continue };
            let (text, at) = (name.text(), self.span(name).start);
            if name.kind() == K::IntegerLiteral {
                let index = text.parse().unwrap_or(u32::MAX);
                let part = self.push_expr(Expr::Part {
                    of: value,
                    ty,
                    part: Part::Index(index),
                });
                if let Some(pattern) = child.field(F::Pattern) {
                    self.pattern(pattern, part);
                }
                continue;
            }
            self.use_name(text, at, UseKind::Value, Link::FieldOf { of: ty });
            let id = self.facts.name(text.trim_start_matches("r#"));
            let part = self.push_expr(Expr::Part {
                of: value,
                ty,
                part: Part::Name(id),
            });
            match child.field(F::Pattern) {
                Some(pattern) => self.pattern(pattern, part),
                None => self.bind(text.trim_start_matches("r#"), part),
            }
        }
    }
}
