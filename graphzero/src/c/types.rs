//! Written types of C and C++, and the types they define.

use tree_sitter::Node;

use super::lower::Lower;
use crate::declared::build::{UNKNOWN, children};
use crate::declared::code::{Expr, ExprId, Want};
use crate::facts::{DefId, Kind, NONE, UseKind};

impl Lower<'_> {
    /// Walks a written type.
    pub(super) fn ty(&mut self, node: Node<'_>) -> ExprId {
        if !self.b.enter(node) {
            return UNKNOWN;
        }
        let ty = match node.kind() {
            "type_identifier" | "namespace_identifier" | "identifier" => {
                self.b.name_use(node, UseKind::Type, Want::Type)
            }
            "primitive_type" | "sized_type_specifier" => self.b.expr(Expr::External),
            "qualified_identifier" => self.qualified(node, None, UseKind::Type, Want::Type),
            "template_type" => {
                let of = node.child_by_field_name("name").map_or(UNKNOWN, |name| self.ty(name));
                let arguments = self.template_arguments(node);
                self.b.expr(Expr::Generic(of, arguments.into()))
            }
            "struct_specifier" | "class_specifier" => self.composite(node, None),
            "union_specifier" => self.composite(node, None),
            "enum_specifier" => self.enumeration(node, None),
            "placeholder_type_specifier" | "auto" | "decltype" => {
                self.all(node);
                UNKNOWN
            }
            "type_descriptor" => {
                let ty = node.child_by_field_name("type").map_or(UNKNOWN, |ty| self.ty(ty));
                self.field(node, "declarator");
                ty
            }
            "dependent_type" => children(node).first().map_or(UNKNOWN, |&ty| self.ty(ty)),
            _ => {
                self.all(node);
                UNKNOWN
            }
        };
        self.b.leave();
        ty
    }

    pub(super) fn template_arguments(&mut self, node: Node<'_>) -> Vec<ExprId> {
        let arguments = node.child_by_field_name("arguments").map(children).unwrap_or_default();
        arguments
            .into_iter()
            .map(|argument| match argument.kind() {
                "type_descriptor" => self.ty(argument),
                _ => self.node(argument),
            })
            .collect()
    }

    /// Walks `a::b::c`; the last part is used as `kind`.
    pub(super) fn qualified(&mut self, node: Node<'_>, of: Option<ExprId>, kind: UseKind, want: Want) -> ExprId {
        let scope = node.child_by_field_name("scope");
        let of = match (of, scope) {
            (None, None) => self.b.expr(Expr::Root),
            (None, Some(scope)) => self.ty(scope),
            (Some(of), Some(scope)) => match scope.kind() {
                "template_type" => {
                    self.template_arguments(scope);
                    let name = scope.child_by_field_name("name");
                    name.map_or(UNKNOWN, |name| self.b.member_use(of, name, UseKind::Type, Want::Type))
                }
                _ => self.b.member_use(of, scope, UseKind::Type, Want::Type),
            },
            (Some(of), None) => of,
        };
        let Some(name) = node.child_by_field_name("name") else {
            return of;
        };
        match name.kind() {
            "qualified_identifier" => self.qualified(name, Some(of), kind, want),
            "template_type" | "template_function" | "template_method" => {
                let arguments = self.template_arguments(name);
                let Some(inner) = name.child_by_field_name("name") else {
                    return UNKNOWN;
                };
                let found = self.b.member_use(of, inner, kind, want);
                self.b.expr(Expr::Generic(found, arguments.into()))
            }
            "pointer_type_declarator" | "dependent_name" => {
                self.all(name);
                UNKNOWN
            }
            _ => self.b.member_use(of, name, kind, want),
        }
    }

    /// Walks a struct, class or union: a definition if it has a body, else a mention. `named` is the name that a typedef
    /// gives to one that has none.
    pub(super) fn composite(&mut self, node: Node<'_>, named: Option<Node<'_>>) -> ExprId {
        let body = node.child_by_field_name("body");
        let name = node.child_by_field_name("name");
        let kind = match node.kind() {
            "union_specifier" => Kind::Union,
            "class_specifier" => Kind::Class,
            _ => Kind::Struct,
        };
        let Some(body) = body else {
            return name.map_or(UNKNOWN, |name| self.ty(name));
        };
        let own = name.map(super::declarator::Declarator::read);
        let Some(name) = own.as_ref().and_then(|own| own.name).or(named) else {
            // Without a name its members belong to what is around.
            self.all(body);
            return UNKNOWN;
        };
        let outer = self.b.owner;
        for scope in own.map(|own| own.scopes).unwrap_or_default() {
            self.holder(scope, node);
        }
        let def = self.define(name, node, kind, Some(body));
        self.b.owner = def;
        for clause in children(node).into_iter().filter(|c| c.kind() == "base_class_clause") {
            for base in children(clause) {
                if base.kind() != "access_specifier" && base.kind() != "virtual" {
                    let base = self.ty(base);
                    self.b.item(def).bases.push(base);
                }
            }
        }
        let public = std::mem::replace(&mut self.public, kind != Kind::Class);
        let class = self.b.class.replace(def);
        let scope = self.b.open_scope(def);
        self.all(body);
        self.b.scope = scope;
        self.b.class = class;
        self.public = public;
        self.b.owner = outer;
        self.b.expr(Expr::This(def))
    }

    /// Walks an enumeration.
    pub(super) fn enumeration(&mut self, node: Node<'_>, named: Option<Node<'_>>) -> ExprId {
        let body = node.child_by_field_name("body");
        let name = node.child_by_field_name("name");
        let Some(body) = body else {
            return name.map_or(UNKNOWN, |name| self.ty(name));
        };
        self.field(node, "underlying_type");
        let scoped = node
            .child(1)
            .is_some_and(|word| matches!(word.kind(), "class" | "struct"));
        let outer = self.b.owner;
        let def = name
            .or(named)
            .map(|name| self.define(name, node, Kind::Enum, Some(body)));
        self.b.owner = def.unwrap_or(outer);
        for member in children(body) {
            let Some(name) = member.child_by_field_name("name") else {
                self.node(member);
                continue;
            };
            let constant = self.define(name, member, Kind::EnumMember, None);
            let value = def.map_or(UNKNOWN, |def| self.b.expr(Expr::This(def)));
            let item = self.b.item(constant);
            item.value = value;
            item.outer = !scoped && def.is_some();
            let owner = std::mem::replace(&mut self.b.owner, constant);
            self.field(member, "value");
            self.b.owner = owner;
        }
        self.b.owner = outer;
        def.map_or(UNKNOWN, |def| self.b.expr(Expr::This(def)))
    }

    /// Enters what a qualified name stands in.
    pub(super) fn holder(&mut self, scope: Node<'_>, full: Node<'_>) -> DefId {
        let name = scope.child_by_field_name("name").unwrap_or(scope);
        if scope.child_by_field_name("arguments").is_some() {
            self.template_arguments(scope);
        }
        self.b.name_use(name, UseKind::Type, Want::Type);
        let holder = self.b.define(name, full, Kind::Impl, None);
        self.b.owner = holder;
        holder
    }

    /// Defines a name with what the walk knows of its surroundings.
    pub(super) fn define(&mut self, name: Node<'_>, full: Node<'_>, kind: Kind, body: Option<Node<'_>>) -> DefId {
        let template = self.template.take();
        let def = self.b.define(name, full, kind, body);
        if let (Some(template), Some(entry)) = (template, self.b.facts.def_mut(def)) {
            entry.full.start = template.start;
            entry.doc = template_doc(full).unwrap_or(entry.doc);
        }
        let (public, hidden) = (self.public, self.hidden);
        self.b.public(def, public && !hidden);
        self.b.item(def).local = hidden;
        self.conditional(def);
        def
    }

    /// Tells whether the walk is inside a function.
    pub(super) fn in_function(&self) -> bool {
        let mut at = self.b.owner;
        while let Some(def) = (at != NONE).then(|| self.b.facts.def_ref(at)).flatten() {
            if def.kind.is_callable() {
                return true;
            }
            if def.kind.is_type() {
                return false;
            }
            at = def.container;
        }
        false
    }
}

/// Returns the comment above a template.
fn template_doc(node: Node<'_>) -> Option<crate::facts::Span> {
    let template = node.parent().filter(|parent| parent.kind() == "template_declaration")?;
    let above = template.prev_sibling().filter(|above| above.kind() == "comment")?;
    (above.end_position().row + 1 >= template.start_position().row).then(|| above.into())
}
