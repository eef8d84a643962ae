//! Types: annotations, interfaces and type literals.

use tree_sitter::Node;

use super::lower::Lower;
use crate::facts::{Kind, NONE, UseKind};
use crate::objects::build::{UNKNOWN, children};
use crate::objects::code::{Binding, Expr, ExprId, Function, Shape};

impl Lower<'_> {
    /// Walks a type and returns what something of that type is.
    pub fn ty(&mut self, node: Node<'_>) -> ExprId {
        if !self.b.enter(node) {
            return UNKNOWN;
        }
        let value = self.ty_inner(node);
        self.b.leave();
        value
    }

    /// Walks the type that a value is said to have. One that is said to be anything has no members, whatever it is
    /// given; of a type that cannot be followed, the value may still tell.
    pub fn written(&mut self, node: Node<'_>) -> ExprId {
        let mut inner = node;
        while matches!(inner.kind(), "type_annotation" | "parenthesized_type") {
            match inner.named_child(0) {
                Some(child) => inner = child,
                None => break,
            }
        }
        let anything = inner.kind() == "predefined_type" && matches!(self.b.text(inner), "any" | "unknown");
        match self.ty(node) {
            UNKNOWN if anything => self.b.expr(Expr::Unknown),
            ty => ty,
        }
    }

    fn ty_inner(&mut self, node: Node<'_>) -> ExprId {
        match node.kind() {
            "type_annotation"
            | "parenthesized_type"
            | "readonly_type"
            | "opting_type_annotation"
            | "omitting_type_annotation"
            | "constraint"
            | "default_type"
            | "asserts_annotation" => {
                let mut value = UNKNOWN;
                for child in children(node) {
                    value = self.ty(child);
                }
                value
            }
            "type_identifier" | "identifier" | "nested_type_identifier" | "nested_identifier" => {
                let of = self.type_name(node);
                let args = Box::default();
                self.b.expr(Expr::Apply { of, args })
            }
            "generic_type" => self.generic(node),
            "array_type" => {
                let inner = children(node).first().map_or(UNKNOWN, |inner| self.ty(*inner));
                self.b.expr(Expr::List(inner))
            }
            "tuple_type" => {
                let all = children(node).into_iter().map(|part| self.ty(part)).collect();
                let element = self.b.choice(all);
                self.b.expr(Expr::List(element))
            }
            "union_type" => {
                let all = children(node).into_iter().map(|part| self.ty(part)).collect();
                self.b.choice(all)
            }
            "intersection_type" => {
                let mut all: Vec<ExprId> = children(node).into_iter().map(|part| self.ty(part)).collect();
                all.retain(|&part| part != UNKNOWN);
                match all[..] {
                    [] => UNKNOWN,
                    [one] => one,
                    _ => self.b.expr(Expr::Both(all.into())),
                }
            }
            "type_query" => children(node).first().map_or(UNKNOWN, |inner| self.expr(*inner)),
            "object_type" | "interface_body" => {
                let (shape, mapped) = self.type_body(node);
                if mapped != UNKNOWN && shape == Shape::default() {
                    return mapped;
                }
                let shape = self.b.shape(shape);
                self.b.expr(Expr::Shape(shape))
            }
            "function_type" => {
                let function = self.signature(node);
                self.b.expr(Expr::Function(function))
            }
            "constructor_type" => {
                let function = self.signature(node);
                let shape = self.b.shape(Shape {
                    constructs: vec![function],
                    ..Shape::default()
                });
                self.b.expr(Expr::Shape(shape))
            }
            "lookup_type" => self.lookup(node),
            "literal_type" => {
                let text = node.named_child(0).filter(|inner| inner.kind() == "string");
                text.map_or(UNKNOWN, |text| self.literal(text))
            }
            "this_type" => self.this.map_or(UNKNOWN, |def| self.b.expr(Expr::This(def))),
            "type_predicate_annotation" | "asserts" | "type_predicate" => {
                self.guard(node);
                UNKNOWN
            }
            "conditional_type" => {
                let scope = self.open_scope();
                let mut all = Vec::new();
                let mut parameter = UNKNOWN;
                for name in ["left", "right", "consequence", "alternative"] {
                    let part = node.child_by_field_name(name);
                    let value = part.map_or(UNKNOWN, |part| self.ty(part));
                    match name {
                        // The language makes a type of this form for each part of a union by itself.
                        "left" if part.is_some_and(|part| part.kind() == "type_identifier") => parameter = value,
                        "consequence" | "alternative" => all.push(value),
                        _ => {}
                    }
                }
                self.b.scope = scope;
                let of = self.b.choice(all);
                match (parameter, of) {
                    (UNKNOWN, _) | (_, UNKNOWN) => of,
                    _ => self.b.expr(Expr::Each { parameter, of }),
                }
            }
            "infer_type" => {
                for child in children(node) {
                    if child.kind() == "type_identifier" {
                        let text = self.b.text(child);
                        self.b.bind(text, Binding::Value(UNKNOWN));
                    } else {
                        self.ty(child);
                    }
                }
                UNKNOWN
            }
            "mapped_type_clause" | "type_parameter" => {
                self.type_parameter(node);
                UNKNOWN
            }
            "predefined_type" if matches!(self.b.text(node), "string" | "number" | "boolean" | "bigint" | "symbol") => {
                self.b.expr(Expr::Primitive)
            }
            "predefined_type" | "existential_type" | "string" | "number" => UNKNOWN,
            "template_literal_type" | "template_type" => {
                for child in children(node) {
                    self.ty(child);
                }
                UNKNOWN
            }
            _ => {
                for child in children(node) {
                    self.ty(child);
                }
                UNKNOWN
            }
        }
    }

    fn type_name(&mut self, node: Node<'_>) -> ExprId {
        match node.kind() {
            "type_identifier" | "identifier" => self.b.name_use(node, UseKind::Type, true),
            _ => self.nested(node),
        }
    }

    fn nested(&mut self, node: Node<'_>) -> ExprId {
        let module = node
            .child_by_field_name("module")
            .or_else(|| node.child_by_field_name("object"));
        let of = match module {
            Some(module) if module.kind() == "nested_identifier" => self.nested(module),
            Some(module) => self.b.name_use(module, UseKind::Value, false),
            None => UNKNOWN,
        };
        let name = node
            .child_by_field_name("name")
            .or_else(|| node.child_by_field_name("property"));
        name.map_or(of, |name| self.b.member_use(of, name, UseKind::Type))
    }

    fn generic(&mut self, node: Node<'_>) -> ExprId {
        let Some(name) = node.child_by_field_name("name") else {
            return UNKNOWN;
        };
        let value = self.type_name(name);
        let mut args = Vec::new();
        for arg in node
            .child_by_field_name("type_arguments")
            .map(children)
            .unwrap_or_default()
        {
            args.push(self.ty(arg));
        }
        let first = args.first().copied().unwrap_or(UNKNOWN);
        match self.b.text(name) {
            "Array" | "ReadonlyArray" | "Set" | "Iterable" | "Iterator" | "Generator" | "ReadonlySet" => {
                self.b.expr(Expr::List(first))
            }
            "Map" | "Record" | "ReadonlyMap" => {
                let inner = args.get(1).copied().unwrap_or(UNKNOWN);
                self.b.expr(Expr::List(inner))
            }
            "Promise" | "Partial" | "Readonly" | "Required" | "NonNullable" | "PromiseLike" | "Pick" | "Omit"
            | "Awaited" => first,
            text @ ("Exclude" | "Extract") => self.b.expr(Expr::Narrow {
                of: first,
                member: NONE,
                equal: args.get(1).copied().into_iter().collect(),
                not: text == "Exclude",
            }),
            "ReturnType" => self.b.expr(Expr::Result(first)),
            "InstanceType" => self.b.expr(Expr::New(first)),
            _ => self.b.expr(Expr::Apply {
                of: value,
                args: args.into(),
            }),
        }
    }

    /// `T["key"]` and `T[number]`.
    fn lookup(&mut self, node: Node<'_>) -> ExprId {
        let parts = children(node);
        let (Some(of), Some(index)) = (parts.first(), parts.get(1)) else {
            return UNKNOWN;
        };
        let of = self.ty(*of);
        let text = index
            .named_child(0)
            .filter(|inner| index.kind() == "literal_type" && inner.kind() == "string");
        match text {
            Some(text) => {
                let text = unquoted(self.b.text(text));
                let name = self.b.facts.name(text);
                self.b.expr(Expr::Member { of, name, ty: false })
            }
            None => {
                let index = self.ty(*index);
                self.b.expr(Expr::Lookup { of, index })
            }
        }
    }

    /// Adds a text as a type of its own.
    pub fn literal(&mut self, node: Node<'_>) -> ExprId {
        let name = self.b.facts.name(unquoted(self.b.text(node)));
        self.b.expr(Expr::Literal(name))
    }

    /// Walks `x is T`; returns `T`.
    fn guard(&mut self, node: Node<'_>) -> ExprId {
        if let Some(ty) = node.child_by_field_name("type") {
            return self.ty(ty);
        }
        children(node)
            .into_iter()
            .find(|child| matches!(child.kind(), "type_predicate" | "asserts"))
            .map_or(UNKNOWN, |inner| self.guard(inner))
    }

    /// Walks a type parameter and other places that bind a type's name; returns the parameter.
    pub fn type_parameter(&mut self, node: Node<'_>) -> ExprId {
        let Some(name) = node.child_by_field_name("name") else {
            for child in children(node) {
                self.ty(child);
            }
            return UNKNOWN;
        };
        let parameter = self.b.expr(Expr::TypeParam {
            constraint: UNKNOWN,
            default: UNKNOWN,
        });
        let text = self.b.text(name);
        self.b.bind(text, Binding::Value(parameter));
        let (mut constraint, mut default) = (UNKNOWN, UNKNOWN);
        for child in children(node) {
            match child.kind() {
                _ if child.id() == name.id() => {}
                "constraint" => constraint = self.ty(child),
                "default_type" => default = self.ty(child),
                _ => {
                    self.ty(child);
                }
            }
        }
        self.b.code.exprs[parameter as usize] = Expr::TypeParam { constraint, default };
        parameter
    }

    /// Walks the type parameters of a declaration, in the current scope.
    pub fn type_parameters(&mut self, node: Node<'_>) -> Vec<ExprId> {
        let list = node.child_by_field_name("type_parameters").map(children);
        list.unwrap_or_default()
            .into_iter()
            .map(|parameter| self.type_parameter(parameter))
            .collect()
    }

    /// Walks a signature without a body, in a scope of its own.
    pub fn signature(&mut self, node: Node<'_>) -> u32 {
        let scope = self.open_scope();
        let generics = self.type_parameters(node).into();
        let (params, rest) = self.parameters(node, None, UNKNOWN);
        let (result, guard) = self.return_type(node);
        self.b.scope = scope;
        self.b.function(Function {
            generics,
            params: params.into(),
            rest,
            results: if result == UNKNOWN {
                Box::default()
            } else {
                [result].into()
            },
            guard,
        })
    }

    /// Walks what a function is written to give: its type, and the type its first argument has if it gives true.
    pub fn return_type(&mut self, node: Node<'_>) -> (ExprId, ExprId) {
        let written = node
            .child_by_field_name("return_type")
            .or_else(|| node.child_by_field_name("type"));
        match written.map(|written| (written, written.kind())) {
            Some((written, "type_predicate_annotation" | "type_predicate")) => (UNKNOWN, self.guard(written)),
            Some((written, _)) => (self.ty(written), UNKNOWN),
            None => (UNKNOWN, UNKNOWN),
        }
    }

    /// Walks the members of an interface or type literal; returns them, and of a mapped type what it maps.
    pub fn type_body(&mut self, node: Node<'_>) -> (Shape, ExprId) {
        let (mut shape, mut mapped) = (Shape::default(), UNKNOWN);
        for member in children(node) {
            match member.kind() {
                "property_signature" => {
                    let ty = |s: &mut Self| member.child_by_field_name("type").map_or(UNKNOWN, |ty| s.ty(ty));
                    let Some(name) = member
                        .child_by_field_name("name")
                        .filter(|n| n.kind() == "property_identifier")
                    else {
                        ty(self);
                        continue;
                    };
                    let def = self.b.define(name, member, Kind::Field, None);
                    shape.members.push(def);
                    let owner = std::mem::replace(&mut self.b.owner, def);
                    let value = ty(self);
                    self.b.owner = owner;
                    self.b.item(def).values.push(value);
                }
                "method_signature" => {
                    let Some(name) = member
                        .child_by_field_name("name")
                        .filter(|n| n.kind() == "property_identifier")
                    else {
                        self.signature(member);
                        continue;
                    };
                    let def = self.b.define(name, member, Kind::TraitMethod, None);
                    shape.members.push(def);
                    let owner = std::mem::replace(&mut self.b.owner, def);
                    let function = self.signature(member);
                    self.b.owner = owner;
                    self.b.item(def).function = Some(function);
                    let head = self.b.text(member);
                    self.b.item(def).property = head.starts_with("get ");
                    if head.starts_with("get ") {
                        let values = self.b.code.functions[function as usize].results.to_vec();
                        self.b.item(def).values = values;
                    }
                }
                "call_signature" => {
                    let function = self.signature(member);
                    shape.calls.push(function);
                }
                "construct_signature" => {
                    let function = self.signature(member);
                    shape.constructs.push(function);
                }
                "index_signature" => {
                    let scope = self.open_scope();
                    let clause = children(member).into_iter().find(|c| c.kind() == "mapped_type_clause");
                    match clause {
                        Some(clause) => mapped = self.mapped(clause, member.child_by_field_name("type")),
                        None => {
                            if let Some(name) = member.child_by_field_name("name") {
                                let text = self.b.text(name);
                                self.b.bind(text, Binding::Value(UNKNOWN));
                            }
                            if let Some(ty) = member.child_by_field_name("index_type") {
                                self.ty(ty);
                            }
                            if let Some(ty) = member.child_by_field_name("type") {
                                shape.index = self.ty(ty);
                            }
                        }
                    }
                    self.b.scope = scope;
                }
                _ => {
                    self.ty(member);
                }
            }
        }
        (shape, mapped)
    }

    /// Walks `[K in keyof T]: value`.
    fn mapped(&mut self, node: Node<'_>, value: Option<Node<'_>>) -> ExprId {
        let (mut of, mut keys, mut parameter) = (UNKNOWN, UNKNOWN, UNKNOWN);
        let name = node.child_by_field_name("name");
        for child in children(node) {
            if name.map(|n| n.id()) == Some(child.id()) {
                parameter = self.b.expr(Expr::TypeParam {
                    constraint: UNKNOWN,
                    default: UNKNOWN,
                });
                let text = self.b.text(child);
                self.b.bind(text, Binding::Value(parameter));
            } else if child.kind() == "index_type_query" {
                of = children(child).first().map_or(UNKNOWN, |inner| self.ty(*inner));
            } else {
                let ty = self.ty(child);
                keys = if keys == UNKNOWN { ty } else { keys };
            }
        }
        let value = value.map_or(UNKNOWN, |value| self.ty(value));
        self.b.expr(Expr::Mapped {
            of,
            keys,
            parameter,
            value,
        })
    }
}

/// Returns the text of a string without its quotes.
fn unquoted(text: &str) -> &str {
    text.trim_matches(|c| matches!(c, '"' | '\'' | '`'))
}
