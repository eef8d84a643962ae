//! Statements and expressions.

use super::types::PathEnd;
use super::{Lower, UNKNOWN};
use crate::facts::{NONE, UseKind};
use crate::rust::code::{Base, Expr, ExprId, Link, Ns, Prim, ScopeKind, TypeId, TypeRef};
use crate::rust::nodes::{F, K};
use crate::rust::syntax::Node;

/// Methods that put their arguments into a collection: they help to tell what it holds.
const FILLING: &[&str] = &[
    "push",
    "push_back",
    "push_front",
    "insert",
    "extend",
    "entry",
    "add",
    "send",
    "set",
    "append",
];

impl Lower<'_, '_, '_> {
    /// Walks a statement; returns its value if it is an expression without a semicolon.
    pub fn statement(&mut self, node: Node<'_>) -> Option<ExprId> {
        match node.kind() {
            K::LetDeclaration => {
                self.let_declaration(node);
                None
            }
            K::ExpressionStatement => {
                let inner = node.first_child()?;
                let value = self.expr(inner);
                // `if … {}` and the like at the end of a block are its value, unless a semicolon follows.
                (!node.text().ends_with(';')).then_some(value)
            }
            K::EmptyStatement => None,
            _ => Some(self.expr(node)),
        }
    }

    fn let_declaration(&mut self, node: Node<'_>) {
        let ty = node.field(F::Type).map(|ty| self.ty(ty));
        let value = node.field(F::Value).map(|value| self.expr(value));
        if let Some(otherwise) = node.field(F::Alternative) {
            self.block(otherwise);
        }
        let value = match (ty, value) {
            (Some(ty), Some(value)) if self.is_vague(ty) => self.local_value(value),
            (Some(ty), _) => self.push_expr(Expr::Typed(ty)),
            (None, Some(value)) => self.local_value(value),
            (None, None) => self.local_value(UNKNOWN),
        };
        if let Some(pattern) = node.field(F::Pattern) {
            self.pattern(pattern, value);
        }
    }

    /// Wraps the first value of a local whose uses may tell more of its type.
    fn local_value(&mut self, init: ExprId) -> ExprId {
        match self.code.exprs[init as usize] {
            Expr::Unknown | Expr::Call { .. } | Expr::Path(_) | Expr::Vec(_) | Expr::Array(_) | Expr::Method { .. } => {
                self.push_expr(Expr::Local {
                    init,
                    hints: Vec::new(),
                })
            }
            _ => init,
        }
    }

    /// Tells whether a written type leaves something open (`Vec<_>`).
    fn is_vague(&self, ty: TypeId) -> bool {
        match &self.code.types[ty as usize] {
            TypeRef::Unknown => true,
            TypeRef::Path(id) => self
                .code
                .args
                .iter()
                .rev()
                .take(8)
                .any(|(at, args)| at == id && args.iter().any(|&a| self.is_vague(a))),
            TypeRef::Ref(inner) | TypeRef::RefMut(inner) => self.is_vague(*inner),
            _ => false,
        }
    }

    /// Walks a block in a scope of its own, if it declares items.
    pub fn block(&mut self, node: Node<'_>) -> ExprId {
        self.deeper(node, UNKNOWN, |s| {
            let declares = node.children().any(|child| {
                matches!(
                    child.kind(),
                    K::UseDeclaration
                        | K::FunctionItem
                        | K::StructItem
                        | K::EnumItem
                        | K::UnionItem
                        | K::ImplItem
                        | K::TraitItem
                        | K::ConstItem
                        | K::StaticItem
                        | K::TypeItem
                        | K::ModItem
                        | K::MacroDefinition
                        | K::ExternCrate
                )
            });
            let scope = if declares {
                s.push_scope(ScopeKind::Block)
            } else {
                s.scope
            };
            s.within(scope, |s| s.bound(|s| s.list(node))).unwrap_or(UNKNOWN)
        })
    }

    /// Walks an expression.
    pub fn expr(&mut self, node: Node<'_>) -> ExprId {
        self.deeper(node, UNKNOWN, |s| s.expr_inner(node))
    }

    fn optional(&mut self, node: Option<Node<'_>>) -> ExprId {
        node.map_or(UNKNOWN, |node| self.expr(node))
    }

    fn first(&mut self, node: Node<'_>) -> ExprId {
        let child = node.first_child();
        self.optional(child)
    }

    fn expr_inner(&mut self, node: Node<'_>) -> ExprId {
        match node.kind() {
            // A name that a macro gives to an item.
            K::Identifier if !self.macro_names.is_empty() && self.macro_names.contains(&self.span(node).start) => {
                UNKNOWN
            }
            K::Identifier => {
                let text = node.text();
                match self.local(text.trim_start_matches("r#")) {
                    Some(value) => value,
                    None => self.path_expr(node, UseKind::Value),
                }
            }
            K::SelfKeyword => self.local("self").unwrap_or(UNKNOWN),
            K::ScopedIdentifier
            | K::GenericFunction
            | K::TypeIdentifier
            | K::ScopedTypeIdentifier
            | K::GenericType
            | K::GenericTypeTurbofish => self.path_expr(node, UseKind::Value),
            K::CallExpression => self.call(node),
            K::FieldExpression => self.field_access(node),
            K::IndexExpression => {
                let mut children = node.children();
                let recv = self.optional(children.next());
                let index = self.optional(children.next());
                self.push_expr(Expr::Index { recv, index })
            }
            K::UnaryExpression => {
                let inner = self.first(node);
                let operator = node.first_byte();
                self.push_expr(if operator == b'*' {
                    Expr::Deref(inner)
                } else {
                    Expr::Negate(inner)
                })
            }
            K::ReferenceExpression => {
                let inner = self.optional(node.field(F::Value));
                self.push_expr(Expr::Ref(inner))
            }
            K::BinaryExpression => {
                let left = self.optional(node.field(F::Left));
                let right = self.optional(node.field(F::Right));
                let operator = node.field(F::Operator).map(|op| op.text()).unwrap_or_default();
                match operator {
                    "==" | "!=" | "<" | ">" | "<=" | ">=" | "&&" | "||" => self.push_expr(Expr::Prim(Prim::Bool)),
                    _ => self.push_expr(Expr::Binary { left, right }),
                }
            }
            K::AssignmentExpression => {
                let left = self.optional(node.field(F::Left));
                let right = self.optional(node.field(F::Right));
                if let Expr::Local { hints, .. } = &mut self.code.exprs[left as usize]
                    && hints.len() < 8
                {
                    hints.push(right);
                }
                self.push_expr(Expr::Tuple(Box::default()))
            }
            K::CompoundAssignment => {
                self.optional(node.field(F::Left));
                self.optional(node.field(F::Right));
                self.push_expr(Expr::Tuple(Box::default()))
            }
            K::TryExpression => {
                let inner = self.first(node);
                self.push_expr(Expr::Try(inner))
            }
            K::AwaitExpression => {
                let inner = self.first(node);
                self.push_expr(Expr::Await(inner))
            }
            K::ParenthesizedExpression => self.first(node),
            K::TupleExpression => {
                let all = self.exprs(node);
                self.push_expr(Expr::Tuple(all))
            }
            K::ArrayExpression => {
                let mut all = self.exprs(node).into_vec();
                if node.field(F::Length).is_some() {
                    all.truncate(1);
                }
                self.push_expr(Expr::Array(all.into()))
            }
            K::RangeExpression => {
                let all = self.exprs(node);
                self.push_expr(Expr::Range(all.first().copied().unwrap_or(UNKNOWN)))
            }
            K::TypeCast => {
                self.optional(node.field(F::Value));
                let ty = node.field(F::Type).map_or(UNKNOWN, |ty| self.ty(ty));
                self.push_expr(Expr::Typed(ty))
            }
            K::Block => self.block(node),
            K::UnsafeBlock | K::AsyncBlock | K::TryBlock | K::GenBlock | K::ConstBlock => {
                let mut value = UNKNOWN;
                for child in node.children() {
                    value = self.expr(child);
                }
                value
            }
            K::IfExpression => self.bound(|s| {
                s.optional(node.field(F::Condition));
                let then = s.optional(node.field(F::Consequence));
                match node.field(F::Alternative) {
                    Some(otherwise) => {
                        let otherwise = s.first(otherwise);
                        s.push_expr(Expr::Choice([then, otherwise].into()))
                    }
                    None => s.push_expr(Expr::Tuple(Box::default())),
                }
            }),
            K::LetCondition => {
                let value = self.optional(node.field(F::Value));
                if let Some(pattern) = node.field(F::Pattern) {
                    self.pattern(pattern, value);
                }
                self.push_expr(Expr::Prim(Prim::Bool))
            }
            K::LetChain => {
                self.exprs(node);
                self.push_expr(Expr::Prim(Prim::Bool))
            }
            K::MatchExpression => self.match_expression(node),
            K::WhileExpression => self.bound(|s| {
                s.optional(node.field(F::Condition));
                s.optional(node.field(F::Body));
                s.push_expr(Expr::Tuple(Box::default()))
            }),
            K::LoopExpression => {
                self.optional(node.field(F::Body));
                UNKNOWN
            }
            K::ForExpression => {
                let value = self.optional(node.field(F::Value));
                self.bound(|s| {
                    let item = s.push_expr(Expr::Item(value));
                    if let Some(pattern) = node.field(F::Pattern) {
                        s.pattern(pattern, item);
                    }
                    s.optional(node.field(F::Body));
                    s.push_expr(Expr::Tuple(Box::default()))
                })
            }
            K::ClosureExpression => self.closure(node),
            K::StructExpression => self.struct_expression(node),
            K::MacroInvocation => self.macro_call(node, false),
            K::StringLiteral | K::RawStringLiteral => {
                let bytes = node.first_byte() == b'b';
                if bytes {
                    let byte = self.push_expr(Expr::Prim(Prim::U8));
                    let array = self.push_expr(Expr::Array([byte].into()));
                    return self.push_expr(Expr::Ref(array));
                }
                let text = self.push_expr(Expr::Prim(Prim::Str));
                self.push_expr(Expr::Ref(text))
            }
            K::CharLiteral => {
                let byte = node.first_byte() == b'b';
                self.push_expr(Expr::Prim(if byte { Prim::U8 } else { Prim::Char }))
            }
            K::BooleanLiteral => self.push_expr(Expr::Prim(Prim::Bool)),
            K::IntegerLiteral | K::FloatLiteral => {
                let text = node.text();
                let suffix = Prim::NAMED
                    .iter()
                    .find(|(name, _)| text.ends_with(name))
                    .map(|(_, prim)| *prim);
                let plain = if node.kind() == K::FloatLiteral {
                    Prim::Float
                } else {
                    Prim::Int
                };
                self.push_expr(Expr::Prim(suffix.unwrap_or(plain)))
            }
            K::NegativeLiteral => self.first(node),
            K::UnitExpression => self.push_expr(Expr::Tuple(Box::default())),
            K::ReturnExpression | K::BreakExpression | K::YieldExpression => {
                self.exprs(node);
                UNKNOWN
            }
            K::Lifetime => UNKNOWN,
            K::LetDeclaration | K::ExpressionStatement | K::EmptyStatement => self.statement(node).unwrap_or(UNKNOWN),
            _ => {
                self.exprs(node);
                UNKNOWN
            }
        }
    }

    fn exprs(&mut self, node: Node<'_>) -> Box<[ExprId]> {
        let children = node.children();
        children
            .into_iter()
            .filter(|child| !matches!(child.kind(), K::AttributeItem | K::Lifetime))
            .map(|child| self.expr(child))
            .collect()
    }

    fn path_expr(&mut self, node: Node<'_>, use_kind: UseKind) -> ExprId {
        match self.path(node, Ns::Value, use_kind) {
            PathEnd::Use(id) => self.push_expr(Expr::Path(id)),
            PathEnd::Base(Base::SelfType) => {
                // `Self(…)`: the constructor of the type itself.
                let ty = self.self_type();
                self.push_expr(Expr::Typed(ty))
            }
            PathEnd::Base(_) => UNKNOWN,
        }
    }

    fn call(&mut self, node: Node<'_>) -> ExprId {
        let Some(function) = node.field(F::Function) else {
            return UNKNOWN;
        };
        let arguments = node.field(F::Arguments);
        let (callee, turbofish) = match function.kind() {
            K::GenericFunction => match function.field(F::Function) {
                Some(inner) if inner.kind() == K::FieldExpression => (inner, function.field(F::TypeArguments)),
                _ => (function, None),
            },
            _ => (function, None),
        };
        if callee.kind() == K::FieldExpression
            && let Some(name) = callee.field(F::Field)
            && name.kind() == K::FieldIdentifier
        {
            let recv = self.optional(callee.field(F::Value));
            return self.method_of(recv, name, turbofish, |s| s.arguments(arguments));
        }
        let callee = self.callee(function);
        self.call_of(callee, |s| s.arguments(arguments))
    }

    /// Walks what is called.
    pub fn callee(&mut self, function: Node<'_>) -> ExprId {
        match function.kind() {
            K::Identifier => match function.text() {
                text if self.local(text).is_some() => self.expr(function),
                _ => self.path_expr(function, UseKind::Call),
            },
            K::ScopedIdentifier | K::GenericFunction => self.path_expr(function, UseKind::Call),
            _ => self.expr(function),
        }
    }

    /// Adds the call of a value; `args` walks its arguments.
    pub fn call_of(&mut self, callee: ExprId, args: impl FnOnce(&mut Self) -> Box<[ExprId]>) -> ExprId {
        let call = self.push_expr(Expr::Unknown);
        let args = args(self);
        self.hand_over(&args, call);
        self.code.exprs[call as usize] = Expr::Call { callee, args };
        if let Expr::Path(id) = self.code.exprs[callee as usize] {
            self.code.calls.push((id, call));
        }
        call
    }

    fn arguments(&mut self, node: Option<Node<'_>>) -> Box<[ExprId]> {
        node.map(|node| self.exprs(node)).unwrap_or_default()
    }

    /// Tells the closures among the arguments of a call which call they are handed to.
    fn hand_over(&mut self, args: &[ExprId], call: ExprId) {
        for (at, &arg) in args.iter().enumerate() {
            if let Expr::Closure {
                call: of,
                arg: position,
                ..
            } = &mut self.code.exprs[arg as usize]
                && *of == NONE
            {
                *of = call;
                *position = at as u32;
            }
        }
    }

    /// Adds the call of a method; `args` walks its arguments.
    pub fn method_of(
        &mut self,
        recv: ExprId,
        name: Node<'_>,
        turbofish: Option<Node<'_>>,
        args: impl FnOnce(&mut Self) -> Box<[ExprId]>,
    ) -> ExprId {
        let (text, at) = (name.text(), self.span(name).start);
        let id = self.use_name(
            text,
            at,
            UseKind::Call,
            Link::Method {
                recv,
                scope: self.scope,
            },
        );
        if let Some(list) = turbofish {
            let args = self.type_arguments(list, None);
            self.code.args.push((id, args));
        }
        let call = self.push_expr(Expr::Unknown);
        let args = args(self);
        self.hand_over(&args, call);
        self.code.exprs[call as usize] = Expr::Method { recv, name: id, args };
        self.code.calls.push((id, call));
        if FILLING.contains(&text)
            && let Expr::Local { hints, .. } = &mut self.code.exprs[recv as usize]
            && hints.len() < 8
        {
            hints.push(call);
        }
        call
    }

    fn field_access(&mut self, node: Node<'_>) -> ExprId {
        let recv = self.optional(node.field(F::Value));
        match node.field(F::Field) {
            Some(name) => self.field_of(recv, name),
            None => UNKNOWN,
        }
    }

    /// Adds the mention of a field.
    pub fn field_of(&mut self, recv: ExprId, name: Node<'_>) -> ExprId {
        let text = name.text();
        if name.kind() == K::IntegerLiteral {
            let index = text.parse().unwrap_or(u32::MAX);
            return self.push_expr(Expr::TupleField { recv, index });
        }
        let at = self.span(name).start;
        self.use_name(text, at, UseKind::Value, Link::Field { recv });
        let name = self.facts.name(text.trim_start_matches("r#"));
        self.push_expr(Expr::Field { recv, name })
    }

    fn match_expression(&mut self, node: Node<'_>) -> ExprId {
        let value = self.optional(node.field(F::Value));
        let mut arms = Vec::new();
        for arm in node.children_in(F::Body) {
            if arm.kind() != K::MatchArm {
                continue;
            }
            let result = self.bound(|s| {
                if let Some(pattern) = arm.field(F::Pattern) {
                    s.match_pattern(pattern, value);
                }
                s.optional(arm.field(F::Value))
            });
            arms.push(result);
        }
        self.push_expr(Expr::Choice(arms.into()))
    }

    /// Walks the pattern of a match arm with its guard.
    pub fn match_pattern(&mut self, node: Node<'_>, value: ExprId) {
        let condition = node.field(F::Condition);
        for pattern in node.named_children() {
            if Some(pattern.id()) == condition.map(Node::id) {
                continue;
            }
            self.pattern(pattern, value);
        }
        self.optional(condition);
    }

    fn closure(&mut self, node: Node<'_>) -> ExprId {
        let closure = self.push_expr(Expr::Unknown);
        self.bound(|s| {
            let mut params = Vec::new();
            let parameters = node.children_in(F::Parameters);
            for (index, parameter) in parameters.into_iter().enumerate() {
                let (pattern, ty) = if parameter.kind() == K::Parameter {
                    (parameter.field(F::Pattern), parameter.field(F::Type))
                } else {
                    (Some(parameter), None)
                };
                let value = match ty.map(|ty| s.ty(ty)) {
                    Some(ty) if !s.is_vague(ty) => s.push_expr(Expr::Typed(ty)),
                    _ => s.push_expr(Expr::ClosureParam {
                        closure,
                        index: index as u32,
                    }),
                };
                if let Some(pattern) = pattern {
                    s.pattern(pattern, value);
                }
                params.push(value);
            }
            let ret = node.field(F::ReturnType).map_or(NONE, |ty| s.ty(ty));
            let body = s.optional(node.field(F::Body));
            s.code.exprs[closure as usize] = Expr::Closure {
                params: params.into(),
                body,
                ret,
                call: NONE,
                arg: 0,
            };
        });
        closure
    }

    fn struct_expression(&mut self, node: Node<'_>) -> ExprId {
        let ty = node.field(F::Name).map_or(UNKNOWN, |name| self.ty(name));
        for child in node.children_in(F::Body) {
            match child.kind() {
                K::FieldInitializer => {
                    if let Some(name) = child.field(F::Field).filter(|name| name.kind() == K::FieldIdentifier) {
                        let (text, at) = (name.text(), self.span(name).start);
                        self.use_name(text, at, UseKind::Value, Link::FieldOf { of: ty });
                    }
                    self.optional(child.field(F::Value));
                }
                K::ShorthandFieldInitializer => {
                    for name in child.children() {
                        if name.kind() == K::Identifier {
                            let (text, at) = (name.text(), self.span(name).start);
                            self.use_name(text, at, UseKind::Value, Link::FieldOf { of: ty });
                            self.expr(name);
                        }
                    }
                }
                K::BaseFieldInitializer => {
                    self.exprs(child);
                }
                _ => {}
            }
        }
        self.push_expr(Expr::Typed(ty))
    }
}
