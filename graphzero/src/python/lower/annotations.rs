//! Annotations: what something of a written type is.

use super::*;

impl Lower<'_, '_, '_> {
    /// Walks an annotation and returns what something of that type is.
    pub(super) fn annotation(&mut self, node: Node<'_>) -> ExprId {
        match node.kind() {
            "type" => children(node).first().map_or(UNKNOWN, |inner| self.annotation(*inner)),
            "string" => {
                let inner = node.named_child(1).filter(|c| c.kind() == "string_content");
                inner.map_or(UNKNOWN, |inner| self.quoted(inner))
            }
            "identifier" | "attribute" => {
                let class = self.expr(node);
                self.b.expr(Expr::Instance(class))
            }
            "subscript" | "generic_type" => self.generic(node),
            "binary_operator" | "union_type" => {
                let all = children(node).into_iter().map(|side| self.annotation(side)).collect();
                self.b.choice(all)
            }
            "parenthesized_expression" => children(node).first().map_or(UNKNOWN, |inner| self.annotation(*inner)),
            _ => {
                for child in children(node) {
                    self.annotation(child);
                }
                UNKNOWN
            }
        }
    }

    /// Walks an annotation in quotes: an expression of its own, where it stands.
    pub(super) fn quoted(&mut self, node: Node<'_>) -> ExprId {
        let text = self.b.text;
        match self
            .parsing
            .parse_ranges(&PythonLanguage, Lang::Python, text.as_bytes(), &[node.range()])
        {
            Ok(tree) if !tree.root_node().has_error() => {
                let statement = tree.root_node().named_child(0);
                statement
                    .filter(|statement| statement.kind() == "expression_statement")
                    .and_then(|statement| statement.named_child(0))
                    .map_or(UNKNOWN, |inner| self.annotation(inner))
            }
            Ok(_) => UNKNOWN,
            Err(error) => {
                self.failed.get_or_insert(error);
                UNKNOWN
            }
        }
    }

    /// `List[X]`, `Optional[X]`, `Type[X]` and the like.
    pub(super) fn generic(&mut self, node: Node<'_>) -> ExprId {
        let parts = children(node);
        let Some((head, rest)) = parts.split_first() else {
            return UNKNOWN;
        };
        let class = self.expr(*head);
        if matches!(self.b.text(*head).rsplit('.').next(), Some("Literal")) {
            return UNKNOWN;
        }
        let mut args = Vec::new();
        for part in rest {
            let inner = if part.kind() == "type_parameter" {
                children(*part)
            } else {
                vec![*part]
            };
            for arg in inner {
                args.push(self.annotation(arg));
            }
        }
        let name = self.b.text(*head);
        let first = args.first().copied().unwrap_or(UNKNOWN);
        match name.rsplit('.').next().unwrap_or_default() {
            "Optional" | "Union" => self.b.choice(args),
            "List" | "list" | "Sequence" | "Iterable" | "Iterator" | "Set" | "set" | "FrozenSet" | "frozenset"
            | "Collection" | "Generator" | "MutableSequence" | "Deque" | "deque" | "AsyncIterator" => {
                self.b.expr(Expr::List(first))
            }
            "Tuple" | "tuple" => {
                let all = self.b.choice(args);
                self.b.expr(Expr::List(all))
            }
            "Dict" | "dict" | "Mapping" | "MutableMapping" | "DefaultDict" | "OrderedDict" => {
                let value = args.get(1).copied().unwrap_or(UNKNOWN);
                self.b.expr(Expr::List(value))
            }
            "Type" | "type" => match self.b.code.exprs[first as usize] {
                Expr::Instance(class) => class,
                _ => UNKNOWN,
            },
            "Awaitable" | "Coroutine" | "ClassVar" | "Final" | "Annotated" | "ContextManager" => {
                args.last().copied().unwrap_or(UNKNOWN)
            }
            _ => self.b.expr(Expr::Instance(class)),
        }
    }
}
