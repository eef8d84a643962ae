//! Declarators: what stands between a type and the end of its declaration.

use tree_sitter::Node;

use crate::declared::build::children;

/// What a declarator says.
#[derive(Default)]
pub struct Declarator<'n> {
    /// The name, without what qualifies it.
    pub name: Option<Node<'n>>,
    /// What qualifies the name, outermost first: `a::B` in `a::B::f`.
    pub scopes: Vec<Node<'n>>,
    /// Parameters of a function; not those of a pointer to one.
    pub parameters: Option<Node<'n>>,
    /// A pointer to a function.
    pub function_pointer: bool,
    /// Holds many.
    pub array: bool,
    /// The type after `->`.
    pub trailing: Option<Node<'n>>,
    /// Written types and sizes inside, which hold uses.
    pub inside: Vec<Node<'n>>,
}

impl<'n> Declarator<'n> {
    /// Reads a declarator.
    pub fn read(node: Node<'n>) -> Self {
        let mut found = Self::default();
        let mut at = node;
        loop {
            match at.kind() {
                "identifier" | "field_identifier" | "type_identifier" | "operator_name" | "destructor_name"
                | "operator_cast" | "primitive_type" => {
                    found.name = Some(at);
                    return found;
                }
                "qualified_identifier" => {
                    if let Some(scope) = at.child_by_field_name("scope") {
                        found.scopes.push(scope);
                    }
                    let Some(name) = at.child_by_field_name("name") else {
                        return found;
                    };
                    at = name;
                    continue;
                }
                "template_function" | "template_method" | "template_type" => {
                    found.inside.extend(at.child_by_field_name("arguments"));
                    let Some(name) = at.child_by_field_name("name") else {
                        return found;
                    };
                    at = name;
                    continue;
                }
                "function_declarator" | "abstract_function_declarator" => {
                    let inner = at.child_by_field_name("declarator");
                    let pointer = inner.is_some_and(|inner| {
                        inner.kind() == "parenthesized_declarator"
                            && children(inner)
                                .iter()
                                .any(|c| matches!(c.kind(), "pointer_declarator" | "reference_declarator"))
                    });
                    let parameters = at.child_by_field_name("parameters");
                    if pointer || found.parameters.is_some() {
                        found.function_pointer = true;
                        found.inside.extend(parameters);
                    } else {
                        found.parameters = parameters;
                    }
                    found.trailing = found
                        .trailing
                        .or_else(|| children(at).into_iter().find(|c| c.kind() == "trailing_return_type"));
                }
                "array_declarator" | "abstract_array_declarator" => {
                    found.array = true;
                    found.inside.extend(at.child_by_field_name("size"));
                }
                _ => {}
            }
            let next = at.child_by_field_name("declarator").or_else(|| {
                children(at)
                    .into_iter()
                    .rfind(|c| c.kind().ends_with("declarator") || c.kind().ends_with("identifier"))
            });
            let Some(next) = next else { return found };
            at = next;
        }
    }
}
