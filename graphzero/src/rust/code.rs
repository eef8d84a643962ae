//! Scopes, expressions and types of one Rust file, as far as resolution needs them.
//!
//! Everything is an index into an arena of the same file. Local variables are already resolved: a mention of a local is
//! the expression that gave it its value, so the resolver never looks up locals.

use serde::{Deserialize, Serialize};

use crate::facts::{DefId, NONE, NameId, Span, UseId};

/// Index into [`RustCode::scopes`].
pub type ScopeId = u32;
/// Index into [`RustCode::exprs`].
pub type ExprId = u32;
/// Index into [`RustCode::types`].
pub type TypeId = u32;

/// What the Rust resolver needs of one file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RustCode {
    /// Lexical scopes; the first is the file's.
    pub scopes: Vec<Scope>,
    /// Expressions.
    pub exprs: Vec<Expr>,
    /// Types as they are written.
    pub types: Vec<TypeRef>,
    /// What each definition is to the resolver, parallel to the facts' definitions.
    pub items: Vec<Item>,
    /// How each use is to be resolved, parallel to the facts' uses.
    pub links: Vec<Link>,
    /// Generic arguments written after a use, sorted by use.
    pub args: Vec<(UseId, Box<[TypeId]>)>,
    /// The calls whose callee ends in a use, sorted by use.
    pub calls: Vec<(UseId, ExprId)>,
    /// Stretches under a `cfg`, with its condition without spaces.
    pub conditions: Vec<(Span, NameId)>,
}

impl RustCode {
    /// Returns the generic arguments written after a use.
    pub fn args(&self, id: UseId) -> &[TypeId] {
        self.args
            .binary_search_by_key(&id, |(at, _)| *at)
            .map_or(&[], |at| &self.args[at].1)
    }

    /// Returns the call whose callee ends in a use, or none.
    pub fn call_of(&self, id: UseId) -> ExprId {
        self.calls
            .binary_search_by_key(&id, |(at, _)| *at)
            .map_or(NONE, |at| self.calls[at].1)
    }
}

/// A lexical scope.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scope {
    /// The scope around it, or none for a file.
    pub parent: ScopeId,
    /// What it is.
    pub kind: ScopeKind,
    /// Items declared in it.
    pub items: Vec<DefId>,
    /// Imports declared in it.
    pub imports: Vec<Import>,
}

/// What a scope is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ScopeKind {
    /// The file's own.
    File,
    /// The body of an inline module.
    Module(DefId),
    /// A block with items or imports.
    Block,
    /// The generics of an item and, for traits and implementations, `Self`.
    Item(DefId),
}

/// One name or glob brought into a scope.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Import {
    /// What is imported.
    pub base: Base,
    /// The name it is bound to; none for a glob or `_`.
    pub alias: NameId,
    /// Everything inside is imported.
    pub glob: bool,
    /// Visible outside the module.
    pub public: bool,
    /// Place of the import's own part of the tree.
    pub at: u32,
    /// The byte after it.
    pub end: u32,
    /// The whole path as it is written.
    pub text: NameId,
}

/// Where a path segment is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Base {
    /// In the scopes around.
    Lexical,
    /// In what another use refers to.
    Use(UseId),
    /// In the crate's root.
    Crate,
    /// In the module, so many levels up.
    Module(u32),
    /// In `Self`.
    SelfType,
    /// Among the crates (`::a`).
    Root,
    /// In a type.
    Type(TypeId),
}

/// Namespace of a path segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Ns {
    /// Types and modules.
    Type,
    /// Values.
    Value,
    /// Macros.
    Macro,
    /// All: imports.
    Any,
    /// An argument of a macro: a value, else a type, else a macro.
    Argument,
}

/// How a use is to be resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Link {
    /// A segment of a path.
    Path {
        /// Where it is looked up.
        base: Base,
        /// The scope it stands in.
        scope: ScopeId,
        /// What is looked up.
        ns: Ns,
    },
    /// A method of a value.
    Method {
        /// The value.
        recv: ExprId,
        /// The scope it stands in.
        scope: ScopeId,
    },
    /// A field of a value.
    Field {
        /// The value.
        recv: ExprId,
    },
    /// A field in a literal or pattern of a type or variant.
    FieldOf {
        /// The type.
        of: TypeId,
    },
}

/// Which part of a variant or record a pattern binds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Part {
    /// By position.
    Index(u32),
    /// By name.
    Name(NameId),
}

/// An expression, reduced to what its type depends on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Expr {
    /// Nothing is known.
    Unknown,
    /// A value of a primitive type.
    Prim(Prim),
    /// A value of a written type.
    Typed(TypeId),
    /// `self` of a method, in its scope.
    SelfValue(ScopeId),
    /// A path.
    Path(UseId),
    /// A call.
    Call {
        /// What is called.
        callee: ExprId,
        /// Arguments.
        args: Box<[ExprId]>,
    },
    /// A method call.
    Method {
        /// The receiver.
        recv: ExprId,
        /// The use of the method's name.
        name: UseId,
        /// Arguments without the receiver.
        args: Box<[ExprId]>,
    },
    /// A field.
    Field {
        /// The value.
        recv: ExprId,
        /// Its name.
        name: NameId,
    },
    /// A field of a tuple or tuple struct.
    TupleField {
        /// The value.
        recv: ExprId,
        /// Its position.
        index: u32,
    },
    /// An element by index.
    Index {
        /// The value.
        recv: ExprId,
        /// The index.
        index: ExprId,
    },
    /// `*e`.
    Deref(ExprId),
    /// `&e`.
    Ref(ExprId),
    /// An arithmetic operation.
    Binary {
        /// Left operand.
        left: ExprId,
        /// Right operand.
        right: ExprId,
    },
    /// A negation.
    Negate(ExprId),
    /// `e?`.
    Try(ExprId),
    /// `e.await`.
    Await(ExprId),
    /// One of several branches.
    Choice(Box<[ExprId]>),
    /// A closure.
    Closure {
        /// The values of its parameters.
        params: Box<[ExprId]>,
        /// Its body.
        body: ExprId,
        /// The written return type, or none.
        ret: TypeId,
        /// The call it is an argument of, or none.
        call: ExprId,
        /// Its position among the arguments.
        arg: u32,
    },
    /// A parameter of a closure without a written type.
    ClosureParam {
        /// The closure.
        closure: ExprId,
        /// Its position.
        index: u32,
    },
    /// A tuple.
    Tuple(Box<[ExprId]>),
    /// An array.
    Array(Box<[ExprId]>),
    /// A `Vec` of these.
    Vec(Box<[ExprId]>),
    /// A range.
    Range(ExprId),
    /// What a pattern binds of a record or variant.
    Part {
        /// The value that is matched.
        of: ExprId,
        /// The type or variant of the pattern.
        ty: TypeId,
        /// Which part.
        part: Part,
    },
    /// An element of an array or slice.
    Elem(ExprId),
    /// An element of an iteration.
    Item(ExprId),
    /// A local variable whose type its uses help to tell.
    Local {
        /// Its first value, or none.
        init: ExprId,
        /// What is assigned to it, and calls of its methods that put something in.
        hints: Vec<ExprId>,
    },
}

/// A type as it is written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum TypeRef {
    /// Nothing is known, or `_`.
    Unknown,
    /// A path; its generic arguments are those of the use.
    Path(UseId),
    /// `Self` in a scope.
    SelfType(ScopeId),
    /// A primitive type.
    Prim(Prim),
    /// `&T`.
    Ref(TypeId),
    /// `&mut T`.
    RefMut(TypeId),
    /// `*T`.
    Ptr(TypeId),
    /// `[T]`.
    Slice(TypeId),
    /// `[T; n]`.
    Array(TypeId),
    /// `(A, B)`.
    Tuple(Box<[TypeId]>),
    /// `!`.
    Never,
    /// `fn(A) -> B`.
    Fn {
        /// Parameters.
        params: Box<[TypeId]>,
        /// Result, or none.
        ret: TypeId,
    },
    /// `Fn(A) -> B` as a bound.
    FnTrait {
        /// Parameters.
        params: Box<[TypeId]>,
        /// Result, or none.
        ret: TypeId,
    },
    /// `impl A + B`, `dyn A + B`.
    Bounds(Box<[TypeId]>),
    /// `<T as Trait>`.
    Qualified {
        /// The type.
        ty: TypeId,
        /// The trait, or none.
        of: TypeId,
    },
    /// `Name = T` among generic arguments.
    Binding {
        /// The associated type.
        name: NameId,
        /// What it is.
        ty: TypeId,
    },
}

/// What a definition is to the resolver.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Item {
    /// The scope inside it.
    pub inner: ScopeId,
    /// The scope it is declared in.
    pub outer: ScopeId,
    /// What it is.
    pub kind: ItemKind,
    /// Its generic parameters.
    pub generics: Option<Box<Generics>>,
}

/// Generic parameters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Generics {
    /// Type and const parameters; lifetimes are left out.
    pub params: Vec<GenericParam>,
    /// `where T: Bounds`.
    pub wheres: Vec<(TypeId, Box<[TypeId]>)>,
}

/// One generic parameter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GenericParam {
    /// Its name.
    pub name: NameId,
    /// A constant, not a type.
    pub constant: bool,
    /// Bounds written with it.
    pub bounds: Box<[TypeId]>,
    /// Default, or none.
    pub default: TypeId,
}

/// How a function takes its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Receiver {
    /// Not at all.
    None,
    /// By value, or by a written type.
    Value,
    /// `&self`.
    Shared,
    /// `&mut self`.
    Mutable,
}

/// The particulars of an item.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ItemKind {
    /// Nothing more is needed.
    Other,
    /// A module.
    Module {
        /// Its body is in this file.
        inline: bool,
        /// The `#[path]`, or none.
        path: NameId,
    },
    /// A function.
    Fn {
        /// Types of the parameters without the receiver.
        params: Box<[TypeId]>,
        /// How it takes its receiver.
        receiver: Receiver,
        /// Result, or none for unit.
        ret: TypeId,
        /// Body, or none.
        body: ExprId,
    },
    /// A struct, union or variant: the types of its positional fields.
    Record {
        /// Positional fields.
        tuple: Box<[TypeId]>,
    },
    /// A field, constant or static.
    Typed {
        /// Its type, or none.
        ty: TypeId,
    },
    /// A type alias or associated type.
    Alias {
        /// What it stands for, or none.
        ty: TypeId,
        /// Bounds of an associated type.
        bounds: Box<[TypeId]>,
    },
    /// A trait.
    Trait {
        /// Supertraits.
        supers: Box<[TypeId]>,
    },
    /// An implementation.
    Impl {
        /// The type.
        ty: TypeId,
        /// The trait, or none.
        of: TypeId,
    },
}

/// A primitive type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[allow(missing_docs)] // their names say it
pub enum Prim {
    Bool,
    Char,
    Str,
    I8,
    I16,
    I32,
    I64,
    I128,
    Isize,
    U8,
    U16,
    U32,
    U64,
    U128,
    Usize,
    F32,
    F64,
    /// An integer literal without a suffix.
    Int,
    /// A float literal without a suffix.
    Float,
}

impl Prim {
    /// Every primitive type that has a name.
    pub const NAMED: &'static [(&'static str, Self)] = &[
        ("bool", Self::Bool),
        ("char", Self::Char),
        ("str", Self::Str),
        ("i8", Self::I8),
        ("i16", Self::I16),
        ("i32", Self::I32),
        ("i64", Self::I64),
        ("i128", Self::I128),
        ("isize", Self::Isize),
        ("u8", Self::U8),
        ("u16", Self::U16),
        ("u32", Self::U32),
        ("u64", Self::U64),
        ("u128", Self::U128),
        ("usize", Self::Usize),
        ("f32", Self::F32),
        ("f64", Self::F64),
    ];

    /// Returns the primitive type with a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMED.iter().find(|(n, _)| *n == name).map(|(_, prim)| *prim)
    }

    /// Tells whether it is an integer.
    pub const fn is_integer(self) -> bool {
        !matches!(
            self,
            Self::Bool | Self::Char | Self::Str | Self::F32 | Self::F64 | Self::Float
        )
    }
}
