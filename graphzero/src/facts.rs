//! What is known of one file from its bytes alone.
//!
//! Facts are a pure function of path extension and content, so they are computed once per content digest and kept across
//! branches and sessions. They hold no answer that depends on another file: resolution ([`crate::program`]) works on
//! them later. All places are byte offsets into the content; a name is an index into the file's own name table, which has an
//! index sorted by hash so that "does this file know the name" costs a binary search over integers.

use serde::{Deserialize, Serialize};

use crate::code::Code;
use crate::language::Lang;

/// Index of a name in [`FileFacts::names`].
pub type NameId = u32;
/// Index of a definition in [`FileFacts::defs`].
pub type DefId = u32;
/// Index of a use in [`FileFacts::uses`].
pub type UseId = u32;
/// The absence of an index.
pub const NONE: u32 = u32::MAX;

/// A half-open range of bytes of one file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// The byte after the last.
    pub end: u32,
}

impl Span {
    /// Tells whether a byte lies inside.
    pub const fn contains(self, at: u32) -> bool {
        self.start <= at && at < self.end
    }

    /// Tells whether there is nothing inside.
    pub const fn is_empty(self) -> bool {
        self.start == self.end
    }
}

impl From<tree_sitter::Node<'_>> for Span {
    fn from(node: tree_sitter::Node<'_>) -> Self {
        Self {
            start: node.start_byte() as u32,
            end: node.end_byte() as u32,
        }
    }
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
        /// What a definition is.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum Kind { $($(#[$doc])* $name,)* }

        impl Kind {
            /// Returns the word used in answers.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

kinds! {
    /// A module, namespace or package declared in the file.
    Module = "module";
    /// A record.
    Struct = "struct";
    /// A sum type or enumeration.
    Enum = "enum";
    /// A case of an enumeration.
    EnumMember = "enum_member";
    /// An untagged union of C or Rust.
    Union = "union";
    /// A trait.
    Trait = "trait";
    /// An interface.
    Interface = "interface";
    /// A class.
    Class = "class";
    /// A free function.
    Function = "function";
    /// A function with a receiver.
    Method = "method";
    /// A function of a type without a receiver.
    StaticMethod = "static_method";
    /// A function declared by a trait or interface.
    TraitMethod = "trait_method";
    /// A constructor.
    Constructor = "constructor";
    /// A constant.
    Constant = "constant";
    /// A static or global variable.
    StaticVariable = "static_variable";
    /// A variable at module level.
    Variable = "variable";
    /// A type alias.
    TypeAlias = "type_alias";
    /// A type that belongs to a trait.
    AssociatedType = "associated_type";
    /// A field or property.
    Field = "field";
    /// A macro.
    Macro = "macro";
    /// An implementation block: part of outlines, not a symbol.
    Impl = "impl";
}

impl Kind {
    /// Tells whether calls can be inside.
    pub const fn is_callable(self) -> bool {
        matches!(
            self,
            Self::Function | Self::Method | Self::StaticMethod | Self::TraitMethod | Self::Constructor | Self::Macro
        )
    }

    /// Tells whether it names a type.
    pub const fn is_type(self) -> bool {
        matches!(
            self,
            Self::Struct
                | Self::Enum
                | Self::Union
                | Self::Trait
                | Self::Interface
                | Self::Class
                | Self::TypeAlias
                | Self::AssociatedType
        )
    }
}

/// One definition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Def {
    /// Its name.
    pub name: NameId,
    /// What it is.
    pub kind: Kind,
    /// Where the name stands.
    pub at: Span,
    /// Line of the name, 1-based.
    pub line: u32,
    /// Column of the name in Unicode scalar values, 1-based.
    pub column: u32,
    /// The whole definition, without what documents or decorates it.
    pub full: Span,
    /// End of the signature: where the body begins, or the end.
    pub head: u32,
    /// The definition it lies in, or [`NONE`].
    pub container: DefId,
    /// Documentation that belongs to it; empty if none.
    pub doc: Span,
    /// Visible outside its module, as far as the declaration says.
    pub public: bool,
    /// A test, or inside one.
    pub test: bool,
    /// Compiled only under a condition on the platform or on features, itself or what it lies in.
    pub conditional: bool,
    /// Left out by the default configuration, as far as that can be told.
    pub inactive: bool,
    /// One more site of a symbol that another definition stands for: uses refer to that one.
    pub further: bool,
}

/// How a name is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum UseKind {
    /// Called.
    Call,
    /// Imported or re-exported.
    Import,
    /// Named as a type.
    Type,
    /// Any other mention.
    Value,
    /// A macro is invoked.
    Macro,
}

impl UseKind {
    /// Returns the word used in answers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Import => "import",
            Self::Type => "type",
            Self::Value => "value",
            Self::Macro => "macro",
        }
    }
}

/// One mention of a name that is not its definition, nor a local variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Use {
    /// The name.
    pub name: NameId,
    /// Its first byte.
    pub at: u32,
    /// The innermost definition it lies in, or [`NONE`].
    pub owner: DefId,
    /// How it is used.
    pub kind: UseKind,
}

/// Everything known of one file from its bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FileFacts {
    /// Its language.
    pub lang: Lang,
    /// Names in order of their first mention.
    pub names: Vec<Box<str>>,
    /// [`name_hash`] of each name with its id, sorted.
    pub index: Vec<(u32, NameId)>,
    /// Definitions in order of their places.
    pub defs: Vec<Def>,
    /// Uses in order of their places.
    pub uses: Vec<Use>,
    /// Syntax errors.
    pub errors: Vec<Span>,
    /// Names that stand in stretches which could not be parsed (token trees, errors, nesting that is too deep): a
    /// definition or use of them may be hidden there. Sorted.
    pub opaque: Vec<NameId>,
    /// What the language's resolver needs.
    pub code: Code,
}

impl FileFacts {
    /// Makes facts without content.
    pub fn empty(lang: Lang) -> Self {
        Self {
            lang,
            names: Vec::new(),
            index: Vec::new(),
            defs: Vec::new(),
            uses: Vec::new(),
            errors: Vec::new(),
            opaque: Vec::new(),
            code: Code::None,
        }
    }

    /// Returns the id of a name if the file mentions it.
    pub fn name_id(&self, name: &str) -> Option<NameId> {
        let hash = name_hash(name);
        let from = self.index.partition_point(|&(h, _)| h < hash);
        self.index[from..]
            .iter()
            .take_while(|(h, _)| *h == hash)
            .map(|&(_, id)| id)
            .find(|&id| self.name(id) == name)
    }

    /// Returns the text of a name.
    pub fn name(&self, id: NameId) -> &str {
        self.names.get(id as usize).map_or("", |name| name)
    }

    /// Returns the text of a definition's name.
    pub fn def_name(&self, def: DefId) -> &str {
        self.defs.get(def as usize).map_or("", |def| self.name(def.name))
    }

    /// Returns the ids of the uses of a name, in order.
    pub fn uses_of(&self, name: NameId) -> impl Iterator<Item = UseId> + '_ {
        self.uses
            .iter()
            .enumerate()
            .filter(move |(_, u)| u.name == name)
            .map(|(i, _)| i as UseId)
    }

    /// Returns the innermost callable definition around another definition or use owner.
    pub fn enclosing_callable(&self, mut def: DefId) -> Option<DefId> {
        while let Some(found) = self.defs.get(def as usize) {
            if found.kind.is_callable() {
                return Some(def);
            }
            def = found.container;
        }
        None
    }

    /// Returns the names of a definition and what holds it, outermost first.
    pub fn chain(&self, def: DefId) -> Vec<&str> {
        let (mut chain, mut at) = (Vec::new(), def);
        while let Some(found) = self.defs.get(at as usize) {
            chain.push(self.name(found.name));
            at = found.container;
        }
        chain.reverse();
        chain
    }
}

/// Hashes a name (FNV-1a folded to 32 bits, <http://www.isthe.com/chongo/tech/comp/fnv/>): stable across runs.
pub fn name_hash(name: &str) -> u32 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in name.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    (hash ^ (hash >> 32)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts_builder::FactsBuilder;

    #[test]
    fn names_are_found_by_text_whatever_their_order() {
        let mut builder = FactsBuilder::new(Lang::Rust, b"");
        let ids: Vec<NameId> = ["zeta", "alpha", "beta", "alpha"]
            .iter()
            .map(|n| builder.name(n))
            .collect();
        assert_eq!(ids[1], ids[3]);
        let facts = builder.finish(Code::None);
        for name in ["zeta", "alpha", "beta"] {
            assert_eq!(facts.name(facts.name_id(name).unwrap()), name);
        }
        assert_eq!(facts.name_id("gamma"), None);
    }
}
