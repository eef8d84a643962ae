//! Stretches under a `cfg`, wherever it may stand: items, statements, fields, arms, parameters.

use memchr::memmem;
use tree_sitter::Node;

use super::Lower;
use crate::facts::Span;
use crate::rust::nodes::{K, kind};

impl Lower<'_, '_, '_> {
    /// Notes the stretches under a `cfg` below a node of the text that is being walked.
    pub fn conditions(&mut self, root: Node<'_>) {
        let places: Vec<usize> = memmem::find_iter(self.source.as_bytes(), "[cfg(").collect();
        for at in places {
            let Some(mut node) = root.descendant_for_byte_range(at, at + 1) else {
                continue;
            };
            while !matches!(kind(node), K::AttributeItem | K::InnerAttribute) {
                match node.parent() {
                    Some(parent) if node.start_byte() + 2 > at => node = parent,
                    _ => break,
                }
            }
            let text = self.text(node);
            let Some(stretch) = stretch(node) else { continue };
            let inner: String = text.split_whitespace().collect();
            let Some(condition) = inner
                .trim_start_matches(['#', '!', '['])
                .strip_prefix("cfg(")
                .and_then(|rest| rest.strip_suffix(")]"))
            else {
                continue;
            };
            let condition = self.facts.name(condition);
            let span: Span = self.span(stretch);
            self.code.conditions.push((span, condition));
        }
    }
}

/// Returns what an attribute applies to.
fn stretch(attribute: Node<'_>) -> Option<Node<'_>> {
    let parent = attribute.parent()?;
    match kind(attribute) {
        // That of a file or of the body of a module.
        K::InnerAttribute => Some(parent),
        K::AttributeItem => match kind(parent) {
            K::MatchArm | K::FieldInitializer | K::ShorthandFieldInitializer => Some(parent),
            _ => {
                let mut next = attribute.next_named_sibling();
                while let Some(node) = next {
                    if !matches!(kind(node), K::AttributeItem | K::LineComment | K::BlockComment) {
                        return Some(node);
                    }
                    next = node.next_named_sibling();
                }
                None
            }
        },
        _ => None,
    }
}
