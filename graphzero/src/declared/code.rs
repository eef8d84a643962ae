//! Scopes, values and imports of one file.

use serde::{Deserialize, Serialize};

use crate::facts::{DefId, NameId};

/// Index into [`DeclaredCode::scopes`].
pub type ScopeId = u32;
/// Index into [`DeclaredCode::exprs`].
pub type ExprId = u32;

/// What the resolver needs of one file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeclaredCode {
    /// The package the file says it belongs to, part by part.
    pub package: Vec<NameId>,
    /// Lexical scopes; the first is the file's.
    pub scopes: Vec<Scope>,
    /// Values and written types; the first is the unknown one.
    pub exprs: Vec<Expr>,
    /// How each use is to be resolved, parallel to the facts' uses.
    pub links: Vec<Link>,
    /// What each definition is, parallel to the facts' definitions.
    pub items: Vec<Item>,
    /// Imports.
    pub imports: Vec<Import>,
}

/// A lexical scope.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scope {
    /// The scope around it, or none.
    pub parent: ScopeId,
    /// The definition whose members are seen here by their plain names, or none.
    pub of: DefId,
    /// Local variables.
    pub locals: Vec<Local>,
    /// Names brought in from elsewhere, with what they stand for.
    pub brought: Vec<(NameId, ExprId)>,
    /// Types and namespaces whose members are seen here.
    pub opened: Vec<ExprId>,
}

/// A local variable, parameter or type parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Local {
    /// Its name.
    pub name: NameId,
    /// The byte from which it is known.
    pub from: u32,
    /// Its value; of a type parameter its bound.
    pub value: ExprId,
    /// A type parameter.
    pub ty: bool,
}

/// What a definition is to the resolver.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Item {
    /// Base classes, interfaces and embedded types.
    pub bases: Vec<ExprId>,
    /// What a variable or field holds, what a function returns, what an alias stands for.
    pub value: ExprId,
    /// The types of the parameters as they are written, or none: equal signatures are one function.
    pub signature: NameId,
    /// Fewest arguments of a call.
    pub least: u8,
    /// Most arguments of a call; [`MANY`] if there is no limit.
    pub most: u8,
    /// Has a body, and is not only declared.
    pub body: bool,
    /// Also a name of the place around its holder: a constant of an unscoped enumeration.
    pub outer: bool,
    /// Seen in this file alone and in those that include it.
    pub local: bool,
}

/// No limit on arguments.
pub const MANY: u8 = u8::MAX;

/// An import, include or using of another file's names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Import {
    /// What is imported, as it is written.
    pub what: NameId,
    /// The name it has here, or none.
    pub bound: NameId,
    /// Its members are seen by their plain names.
    pub opened: bool,
    /// First byte.
    pub at: u32,
    /// The byte after it.
    pub end: u32,
}

/// What a use looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Want {
    /// Something to call with so many arguments.
    Call(u8),
    /// A type.
    Type,
    /// Any value.
    Value,
}

/// How a use is resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Link {
    /// A name in its scope.
    Name {
        /// The scope.
        scope: ScopeId,
        /// What it looks for.
        want: Want,
    },
    /// A member of a value or type.
    Member {
        /// The value.
        of: ExprId,
        /// What it looks for.
        want: Want,
    },
    /// The end of an import.
    Import(u32),
}

/// A value or a written type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Expr {
    /// Nothing is known.
    Unknown,
    /// Something of the language's own or of a library: none of the tree's names belong to it.
    External,
    /// A name.
    Name {
        /// The scope.
        scope: ScopeId,
        /// The name.
        name: NameId,
        /// Where it stands.
        at: u32,
        /// A type is meant, which no variable hides.
        ty: bool,
    },
    /// The outermost namespace.
    Root,
    /// A member.
    Member {
        /// The value or type.
        of: ExprId,
        /// The name.
        name: NameId,
    },
    /// The result of a call with so many arguments.
    Call(ExprId, u8),
    /// Something of a written type.
    Instance(ExprId),
    /// A generic type with its arguments.
    Generic(ExprId, Box<[ExprId]>),
    /// The object a method belongs to.
    This(DefId),
    /// The bases of a class, seen from an object of it.
    Super(DefId),
    /// An element of a collection, or what a pointer leads to.
    Element(ExprId),
    /// A collection of such elements.
    List(ExprId),
    /// Several results at once.
    Tuple(Box<[ExprId]>),
    /// One of several results.
    Part(ExprId, u8),
}
