//! What values are: types, and what type parameters stand for.

use std::sync::Arc;

use super::code::ExprId;
use crate::facts::DefId;
use crate::program::FileId;

/// A definition of the program.
pub type Gid = (FileId, DefId);

/// What a value is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Ty {
    /// An object of a class or interface.
    Instance(Gid, Env),
    /// A class itself.
    Class(Gid, Env),
    /// A function with a name.
    Function(Gid, Env),
    /// A function without a name, or something of a function type: an index into the file's functions.
    Lambda(FileId, u32, Env),
    /// Something of a type that is written as a list of members: an index into the file's shapes.
    Shape(FileId, u32, Env),
    /// An object with values under names: an expression.
    Record(FileId, ExprId, Env),
    /// All of several at once.
    Both(Arc<[Ty]>),
    /// A module.
    Module(FileId),
    /// A collection.
    List(Arc<[Ty]>),
    /// A text that is a type of its own.
    Literal(Arc<str>),
    /// A value without members of the tree.
    Primitive,
    /// A type with a member for each of some names: an expression.
    Mapped(FileId, ExprId, Env),
    /// A function of the language's own that is known by what it gives its own function.
    Callback(Arc<[Arc<[Ty]>]>),
}

impl Ty {
    fn depth(&self) -> u8 {
        match self {
            Self::Instance(_, env)
            | Self::Class(_, env)
            | Self::Function(_, env)
            | Self::Lambda(_, _, env)
            | Self::Shape(_, _, env)
            | Self::Record(_, _, env)
            | Self::Mapped(_, _, env) => env.0.as_ref().map_or(0, |env| env.depth),
            Self::Both(all) | Self::List(all) => all.iter().map(Self::depth).max().unwrap_or(0) + 1,
            Self::Callback(all) => all.iter().flat_map(|of| of.iter()).map(Self::depth).max().unwrap_or(0) + 1,
            Self::Module(_) | Self::Literal(_) | Self::Primitive => 0,
        }
    }
}

/// A type parameter: its file and the expression that declares it.
pub type Parameter = (FileId, ExprId);

/// The object that `this` means, as if it were a type parameter.
pub const THIS: Parameter = (FileId::MAX, ExprId::MAX);

/// Types nested deeper than this are not followed: a recursive type would grow without end.
const MAX_NESTING: u8 = 9;

/// What a type parameter stands for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Given {
    /// Types.
    Types(Arc<[Ty]>),
    /// A written type, not looked at before it is needed: a file, an expression, and its own environment.
    Written(FileId, ExprId, Env),
}

/// What type parameters stand for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Env(Option<Arc<Bindings>>);

#[derive(Debug, PartialEq, Eq, Hash)]
struct Bindings {
    /// In order of parameters.
    all: Vec<(Parameter, Given)>,
    depth: u8,
}

impl Env {
    /// Returns what a parameter stands for.
    pub fn get(&self, parameter: Parameter) -> Option<&Given> {
        let all = &self.0.as_ref()?.all;
        all.binary_search_by_key(&parameter, |(p, _)| *p)
            .ok()
            .map(|at| &all[at].1)
    }

    /// Adds what a parameter stands for; too deep a type is left out.
    #[must_use]
    pub fn with(&self, parameter: Parameter, given: Given) -> Self {
        let nested = 1 + match &given {
            Given::Types(types) => types.iter().map(Ty::depth).max().unwrap_or(0),
            Given::Written(_, _, env) => env.0.as_ref().map_or(0, |env| env.depth),
        };
        if nested > MAX_NESTING {
            return self.clone();
        }
        let (mut all, depth) = self
            .0
            .as_ref()
            .map_or((Vec::new(), 0), |env| (env.all.clone(), env.depth));
        let entry = (parameter, given);
        match all.binary_search_by_key(&parameter, |(p, _)| *p) {
            Ok(at) => all[at] = entry,
            Err(at) => all.insert(at, entry),
        }
        Self(Some(Arc::new(Bindings {
            all,
            depth: depth.max(nested),
        })))
    }
}
