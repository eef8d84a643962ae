//! Functions and methods: receivers, parameters, results.

use tree_sitter::Node;

use super::Lower;
use crate::declared::build::{UNKNOWN, children, fields, written};
use crate::declared::code::{Expr, ExprId};
use crate::facts::{DefId, Kind, NONE};

impl Lower<'_> {
    pub fn method(&mut self, node: Node<'_>) {
        let receiver = node.child_by_field_name("receiver").map(children).unwrap_or_default();
        let mut ty = receiver
            .first()
            .and_then(|receiver| receiver.child_by_field_name("type"));
        while let Some(inner) =
            ty.filter(|ty| matches!(ty.kind(), "pointer_type" | "generic_type" | "parenthesized_type"))
        {
            ty = inner.child_by_field_name("type").or_else(|| inner.named_child(0));
        }
        let Some(ty) = ty.filter(|ty| ty.kind() == "type_identifier") else {
            return self.function(node, Kind::Function, NONE);
        };
        let holder = self.b.define(ty, node, Kind::Impl, None);
        let owner = std::mem::replace(&mut self.b.owner, holder);
        self.function(node, Kind::Method, holder);
        self.b.owner = owner;
    }

    /// Walks a function, method or method of an interface.
    pub fn function(&mut self, node: Node<'_>, kind: Kind, holder: DefId) {
        let Some(name) = node.child_by_field_name("name") else {
            return;
        };
        let body = node.child_by_field_name("body");
        let def = self.define(name, node, kind, body);
        let text = self.b.text(name);
        let receiver = node.child_by_field_name("receiver");
        let parameters = node.child_by_field_name("parameters");
        let tests = ["Test", "Benchmark", "Fuzz", "Example"]
            .iter()
            .any(|t| text.starts_with(t));
        if tests && kind == Kind::Function && parameters.is_some_and(|p| self.b.text(p).contains("testing.")) {
            self.b.test(def);
        }
        let owner = std::mem::replace(&mut self.b.owner, def);
        let scope = self.b.open_scope(def);
        if let Some(receiver) = receiver {
            for parameter in children(receiver) {
                let generic = parameter
                    .child_by_field_name("type")
                    .map(|ty| {
                        if ty.kind() == "pointer_type" {
                            ty.named_child(0).unwrap_or(ty)
                        } else {
                            ty
                        }
                    })
                    .filter(|ty| ty.kind() == "generic_type");
                // `func (s *Set[T])` declares T.
                let arguments = generic.and_then(|ty| ty.child_by_field_name("type_arguments"));
                for argument in arguments.map(children).unwrap_or_default() {
                    self.b.type_parameter(argument, UNKNOWN);
                }
                self.field(parameter, "type");
                let value = self.b.expr(Expr::This(holder));
                for name in fields(parameter, "name") {
                    let (text, from) = (self.b.text(name), name.start_byte());
                    self.b.local(text, from, value);
                }
            }
        }
        self.type_parameters(node);
        let (types, variadic) = self.parameters(node);
        self.b.parameters(def, &types, 0, variadic);
        // `f(g())` passes all results of g.
        self.b.item(def).least = types.len().min(1) as u8;
        if let Some(result) = node.child_by_field_name("result") {
            let value = self.results(result);
            self.b.item(def).value = value;
        }
        if let Some(body) = body {
            self.all(body);
        }
        self.b.scope = scope;
        self.b.owner = owner;
    }

    /// Walks the parameters of a function; returns their types and whether the last takes any number.
    pub fn parameters(&mut self, node: Node<'_>) -> (Vec<String>, bool) {
        let (mut types, mut variadic) = (Vec::new(), false);
        let parameters = node.child_by_field_name("parameters").map(children);
        for parameter in parameters.unwrap_or_default() {
            let ty = self.field(parameter, "type");
            let mut value = self.b.instance(ty);
            if parameter.kind() == "variadic_parameter_declaration" {
                variadic = true;
                value = self.b.expr(Expr::List(ty));
            }
            let text = parameter.child_by_field_name("type").map_or("", |ty| self.b.text(ty));
            let names = fields(parameter, "name");
            for _ in 0..names.len().max(1) {
                types.push(written(text));
            }
            for name in names {
                let (text, from) = (self.b.text(name), name.start_byte());
                self.b.local(text, from, value);
            }
        }
        (types, variadic)
    }

    pub fn results(&mut self, node: Node<'_>) -> ExprId {
        if node.kind() != "parameter_list" {
            let ty = self.ty(node);
            return self.b.instance(ty);
        }
        let mut all = Vec::new();
        for part in children(node) {
            let ty = self.field(part, "type");
            let value = self.b.instance(ty);
            let names = fields(part, "name");
            for _ in 0..names.len().max(1) {
                all.push(value);
            }
            for name in names {
                let (text, from) = (self.b.text(name), name.start_byte());
                self.b.local(text, from, value);
            }
        }
        match all[..] {
            [one] => one,
            _ => self.b.expr(Expr::Tuple(all.into())),
        }
    }
}
