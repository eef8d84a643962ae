//! Scopes, values and imports of one file.

use serde::{Deserialize, Serialize};

use crate::facts::{DefId, NameId};

/// Index into [`ObjectCode::scopes`].
pub type ScopeId = u32;
/// Index into [`ObjectCode::exprs`].
pub type ExprId = u32;

/// What the resolver needs of one file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ObjectCode {
    /// Lexical scopes; the first is the module's.
    pub scopes: Vec<Scope>,
    /// Values.
    pub exprs: Vec<Expr>,
    /// How each use is to be resolved, parallel to the facts' uses.
    pub links: Vec<Link>,
    /// What each definition is, parallel to the facts' definitions.
    pub items: Vec<Item>,
    /// Imports.
    pub imports: Vec<Import>,
    /// Names that the module gives out under `export`.
    pub exports: Vec<Export>,
    /// Calls.
    pub calls: Vec<Call>,
    /// What functions take and give.
    pub functions: Vec<Function>,
    /// Types that are written as lists of members.
    pub shapes: Vec<Shape>,
}

/// A call, or the making of an object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// What is called.
    pub callee: ExprId,
    /// Arguments.
    pub args: Box<[ExprId]>,
    /// Type arguments.
    pub types: Box<[ExprId]>,
    /// What the place of the call expects.
    pub expected: ExprId,
    /// `new`.
    pub new: bool,
}

/// What a function takes and gives.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Function {
    /// Type parameters.
    pub generics: Box<[ExprId]>,
    /// What each parameter is.
    pub params: Box<[ExprId]>,
    /// The last parameter takes all that is left.
    pub rest: bool,
    /// What it may give.
    pub results: Box<[ExprId]>,
    /// What its first argument is if it gives true.
    pub guard: ExprId,
}

/// A type that is written as a list of members.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Shape {
    /// Members.
    pub members: Vec<DefId>,
    /// What can be done by calling it: indices of functions.
    pub calls: Vec<u32>,
    /// What can be done by `new`.
    pub constructs: Vec<u32>,
    /// What an index gives.
    pub index: ExprId,
}

/// A lexical scope.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scope {
    /// The scope around it, or none.
    pub parent: ScopeId,
    /// The body of a class: its names are not visible from functions inside.
    pub class: bool,
    /// Names and what they are bound to.
    pub names: Vec<(NameId, Binding)>,
}

/// What a name is bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Binding {
    /// A definition.
    Def(DefId),
    /// An import.
    Import(u32),
    /// A local variable with its value.
    Value(ExprId),
}

/// What a definition is to the resolver.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Item {
    /// Base classes and interfaces.
    pub bases: Vec<ExprId>,
    /// Its value: of a variable or field what is assigned, of a function what it returns.
    pub values: Vec<ExprId>,
    /// Reading the member calls it.
    pub property: bool,
    /// Type parameters.
    pub generics: Vec<ExprId>,
    /// What a function takes and gives, if that is known: an index.
    pub function: Option<u32>,
    /// What an interface offers beside its members: an index.
    pub shape: Option<u32>,
}

/// An import of a module, or of a name from it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Import {
    /// The module as it is written.
    pub module: NameId,
    /// The name, or none for the module itself.
    pub name: NameId,
    /// Everything is imported.
    pub star: bool,
    /// Place of the import.
    pub at: u32,
    /// The byte after it.
    pub end: u32,
}

/// A name given out by a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Export {
    /// The name for others; none for everything of an import.
    pub name: NameId,
    /// What it is.
    pub of: Exported,
}

/// What is given out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Exported {
    /// A name of the module's scope.
    Local(NameId),
    /// An import.
    Import(u32),
    /// A value.
    Value(ExprId),
}

/// How a use is resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Link {
    /// A name in its scope.
    Name {
        /// The scope.
        scope: ScopeId,
        /// Only types are meant.
        ty: bool,
    },
    /// A member of a value.
    Member {
        /// The value.
        of: ExprId,
    },
    /// A key of an object that something of a type is expected to be.
    Key {
        /// Something of that type.
        of: ExprId,
    },
    /// A name in an import.
    Import(u32),
    /// Nothing to go by.
    Unknown,
}

/// A value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Expr {
    /// Nothing is known.
    Unknown,
    /// A name.
    Name {
        /// The scope.
        scope: ScopeId,
        /// The name.
        name: NameId,
        /// Only types are meant.
        ty: bool,
    },
    /// A member.
    Member {
        /// The value.
        of: ExprId,
        /// The name.
        name: NameId,
        /// Only types are meant.
        ty: bool,
    },
    /// The result of a call.
    Call(u32),
    /// A new object of a class.
    New(ExprId),
    /// Something of a written type.
    Instance(ExprId),
    /// The object a method belongs to.
    This(DefId),
    /// The class a method belongs to.
    Class(DefId),
    /// The bases of a class, seen from an object of it.
    Super(DefId),
    /// An object with members of its own: a definition that holds them.
    Object(DefId),
    /// An element of a collection.
    Element(ExprId),
    /// A collection.
    List(ExprId),
    /// One of several.
    Choice(Box<[ExprId]>),
    /// All of several at once.
    Both(Box<[ExprId]>),
    /// A type parameter.
    TypeParam {
        /// What it must be.
        constraint: ExprId,
        /// What it is when nothing is given.
        default: ExprId,
    },
    /// Something of a generic type with arguments.
    Apply {
        /// The type.
        of: ExprId,
        /// Its arguments.
        args: Box<[ExprId]>,
    },
    /// A function without a name, or a function type.
    Function(u32),
    /// A type that is written as a list of members.
    Shape(u32),
    /// An object with values under names.
    Record(Box<[(NameId, ExprId)]>),
    /// What a call expects as an argument.
    Expected {
        /// The call.
        call: u32,
        /// Which argument.
        index: u32,
    },
    /// What a function is given.
    Argument {
        /// The function.
        of: ExprId,
        /// Which parameter.
        index: u32,
    },
    /// What a function gives.
    Result(ExprId),
    /// A text that is a type of its own.
    Literal(NameId),
    /// A value without members of the tree: numbers, texts, truth values.
    Primitive,
    /// What a type holds under a name that is a type itself (`T[K]`).
    Lookup {
        /// The type.
        of: ExprId,
        /// The name.
        index: ExprId,
    },
    /// Something of a type that is made for each of the types that a parameter stands for.
    Each {
        /// The mention of the parameter.
        parameter: ExprId,
        /// What is made.
        of: ExprId,
    },
    /// A type with a member for each of some names.
    Mapped {
        /// The type whose names are taken, or none.
        of: ExprId,
        /// The names, if they are written.
        keys: ExprId,
        /// The type parameter that stands for the name.
        parameter: ExprId,
        /// What each is.
        value: ExprId,
    },
    /// A value that was compared, or a member of it.
    Narrow {
        /// The value.
        of: ExprId,
        /// The member, or none for the value itself.
        member: NameId,
        /// What it was compared with.
        equal: Box<[ExprId]>,
        /// It was none of these.
        not: bool,
    },
    /// A value that a function has tested.
    Guarded {
        /// The value.
        of: ExprId,
        /// The function.
        guard: ExprId,
    },
}
