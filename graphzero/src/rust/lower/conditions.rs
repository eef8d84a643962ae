//! Stretches under a `cfg`, wherever it may stand: items, statements, fields, arms, parameters.

use memchr::memmem;

use super::Lower;
use crate::facts::Span;
use crate::rust::nodes::K;
use crate::rust::syntax::Node;

impl Lower<'_, '_, '_> {
    /// Notes the stretches under a `cfg` below a node of the text that is being walked.
    pub fn conditions(&mut self, root: Node<'_>) {
        let places: Vec<usize> = memmem::find_iter(root.whole_text().as_bytes(), "[cfg(").collect();
        for at in places {
            let mut path = root.path_to(at);
            while let [.., _, node] = path[..]
                && !matches!(node.kind(), K::AttributeItem | K::InnerAttribute)
                && node.start_byte() + 2 > at
            {
                path.pop();
            }
            let [.., parent, node] = path[..] else { continue };
            let text = node.text();
            let Some(stretch) = stretch(parent, node) else { continue };
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

/// Returns what an attribute of a node applies to.
fn stretch<'n>(parent: Node<'n>, attribute: Node<'n>) -> Option<Node<'n>> {
    match attribute.kind() {
        // That of a file or of the body of a module.
        K::InnerAttribute => Some(parent),
        K::AttributeItem => match parent.kind() {
            K::MatchArm | K::FieldInitializer | K::ShorthandFieldInitializer => Some(parent),
            _ => parent
                .children()
                .skip_while(|child| child.start_byte() < attribute.end_byte())
                .find(|child| child.kind() != K::AttributeItem),
        },
        _ => None,
    }
}
