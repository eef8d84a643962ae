//! The shape of what serde writes in the compact form, by observation: values are serialised into a description, and the
//! descriptions of many values merge into that of their type.

use std::collections::BTreeMap;
use std::fmt;

use serde::ser::{self, Serialize, Serializer};

/// What was seen at one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Nothing yet: an empty sequence, an absent value, a field that was skipped.
    Unseen,
    /// `bool`, `u8` … `f64`, `str`, `bytes`, `unit`.
    Plain(&'static str),
    Option(Box<Self>),
    Sequence(Box<Self>),
    Tuple(Vec<Self>),
    Map(Box<Self>, Box<Self>),
    /// A struct or an enum, which stands in the registry.
    Named(&'static str),
}

/// A struct or an enum.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Definition {
    Unit,
    Newtype(Shape),
    Tuple(Vec<Shape>),
    Struct(Vec<(&'static str, Shape)>),
    Enum(BTreeMap<u32, (&'static str, Box<Self>)>),
}

/// The structs and enums that were seen, by name.
#[derive(Debug, Default)]
pub(crate) struct Registry(BTreeMap<&'static str, Definition>);

impl Registry {
    /// Looks at one value; returns what it is.
    pub fn observe<T: Serialize + ?Sized>(&mut self, value: &T) -> Shape {
        value.serialize(Observer(self)).expect("the observer takes every value")
    }

    /// Says what was never seen, so that more values must be looked at: places, and variants below the last one seen.
    pub fn unseen(&self) -> Vec<String> {
        let mut found = Vec::new();
        for (name, definition) in &self.0 {
            definition.unseen(name, &mut found);
        }
        found
    }

    fn note(&mut self, name: &'static str, seen: Definition) -> Shape {
        match self.0.get_mut(name) {
            None => {
                self.0.insert(name, seen);
            }
            Some(known) => {
                if let Err(why) = known.merge(seen) {
                    panic!("two types are called {name}, or one writes itself in two ways: {why}");
                }
            }
        }
        Shape::Named(name)
    }
}

impl Shape {
    fn merge(&mut self, seen: Self) -> Result<(), String> {
        match (&mut *self, seen) {
            (_, Self::Unseen) => Ok(()),
            (here @ Self::Unseen, seen) => {
                *here = seen;
                Ok(())
            }
            (Self::Option(a), Self::Option(b)) | (Self::Sequence(a), Self::Sequence(b)) => a.merge(*b),
            (Self::Tuple(a), Self::Tuple(b)) if a.len() == b.len() => merge_all(a, b),
            (Self::Map(a, b), Self::Map(c, d)) => a.merge(*c).and_then(|()| b.merge(*d)),
            (here, seen) if *here == seen => Ok(()),
            (here, seen) => Err(format!("{here} and {seen}")),
        }
    }

    fn unseen(&self, place: &str, found: &mut Vec<String>) {
        match self {
            Self::Unseen => found.push(place.to_owned()),
            Self::Plain(_) | Self::Named(_) => {}
            Self::Option(inner) | Self::Sequence(inner) => inner.unseen(place, found),
            Self::Tuple(parts) => parts.iter().for_each(|part| part.unseen(place, found)),
            Self::Map(key, value) => {
                key.unseen(place, found);
                value.unseen(place, found);
            }
        }
    }
}

fn merge_all(known: &mut [Shape], seen: Vec<Shape>) -> Result<(), String> {
    known
        .iter_mut()
        .zip(seen)
        .try_for_each(|(known, seen)| known.merge(seen))
}

impl Definition {
    fn merge(&mut self, seen: Self) -> Result<(), String> {
        match (self, seen) {
            (Self::Unit, Self::Unit) => Ok(()),
            (Self::Newtype(a), Self::Newtype(b)) => a.merge(b),
            (Self::Tuple(a), Self::Tuple(b)) if a.len() == b.len() => merge_all(a, b),
            (Self::Struct(a), Self::Struct(b)) => {
                let names = |fields: &[(&'static str, Shape)]| fields.iter().map(|field| field.0).collect::<Vec<_>>();
                if names(a) != names(&b) {
                    return Err(format!("fields {:?} and {:?}", names(a), names(&b)));
                }
                a.iter_mut().zip(b).try_for_each(|(a, b)| a.1.merge(b.1))
            }
            (Self::Enum(a), Self::Enum(b)) => {
                for (index, (name, seen)) in b {
                    match a.get_mut(&index) {
                        None => {
                            a.insert(index, (name, seen));
                        }
                        Some((known, definition)) if *known == name => definition.merge(*seen)?,
                        Some((known, _)) => return Err(format!("variant {index} is {known} and {name}")),
                    }
                }
                Ok(())
            }
            (known, seen) => Err(format!("{known:?} and {seen:?}")),
        }
    }

    fn unseen(&self, place: &str, found: &mut Vec<String>) {
        match self {
            Self::Unit => {}
            Self::Newtype(inner) => inner.unseen(place, found),
            Self::Tuple(parts) => parts.iter().for_each(|part| part.unseen(place, found)),
            Self::Struct(fields) => {
                for (name, shape) in fields {
                    shape.unseen(&format!("{place}.{name}"), found);
                }
            }
            Self::Enum(variants) => {
                for (expected, (index, (name, definition))) in (0..).zip(variants) {
                    if expected != *index {
                        found.push(format!("{place}, variant {expected}"));
                        break;
                    }
                    definition.unseen(&format!("{place}::{name}"), found);
                }
            }
        }
    }
}

fn listed<T: fmt::Display>(parts: &[T]) -> String {
    parts.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unseen => f.write_str("?"),
            Self::Plain(name) | Self::Named(name) => f.write_str(name),
            Self::Option(inner) => write!(f, "Option<{inner}>"),
            Self::Sequence(inner) => write!(f, "Vec<{inner}>"),
            Self::Tuple(parts) => match &parts[..] {
                [first, second, ..] if parts.len() > 3 && parts.iter().all(|part| part == second) => {
                    write!(f, "[{first}; {}]", parts.len())
                }
                parts => write!(f, "({})", listed(parts)),
            },
            Self::Map(key, value) => write!(f, "Map<{key}, {value}>"),
        }
    }
}

impl fmt::Display for Definition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unit => Ok(()),
            Self::Newtype(inner) => write!(f, "({inner})"),
            Self::Tuple(parts) => write!(f, "({})", listed(parts)),
            Self::Struct(fields) => {
                let fields = fields.iter().map(|(name, shape)| format!("{name}: {shape}"));
                write!(f, " {{ {} }}", fields.collect::<Vec<_>>().join(", "))
            }
            Self::Enum(_) => f.write_str(" { … }"),
        }
    }
}

/// One definition a line; the variants of an enum on lines of their own, with their numbers.
impl fmt::Display for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, definition) in &self.0 {
            match definition {
                Definition::Enum(variants) => {
                    writeln!(f, "enum {name}")?;
                    for (index, (variant, inner)) in variants {
                        writeln!(f, "  {index} {variant}{inner}")?;
                    }
                }
                Definition::Struct(fields) => {
                    writeln!(f, "struct {name}")?;
                    for (field, shape) in fields {
                        writeln!(f, "  {field}: {shape}")?;
                    }
                }
                other => writeln!(f, "struct {name}{other}")?,
            }
        }
        Ok(())
    }
}

/// What the observer can fail with: nothing but what a type's own code refuses.
#[derive(Debug)]
pub(crate) struct Refused(String);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refused {}

impl ser::Error for Refused {
    fn custom<T: fmt::Display>(why: T) -> Self {
        Self(why.to_string())
    }
}

struct Observer<'a>(&'a mut Registry);

type Seen = Result<Shape, Refused>;

macro_rules! plain {
    ($($method:ident($type:ty) = $name:literal;)*) => {
        $(fn $method(self, _: $type) -> Seen { Ok(Shape::Plain($name)) })*
    };
}

/// Parts of a compound value, on their way into its shape.
struct Parts<'a> {
    registry: &'a mut Registry,
    shapes: Vec<Shape>,
    fields: Vec<(&'static str, Shape)>,
    of: Of,
}

#[derive(Clone, Copy)]
enum Of {
    Sequence,
    Tuple,
    Map,
    TupleVariant(&'static str, u32, &'static str),
    Struct(&'static str),
    StructVariant(&'static str, u32, &'static str),
}

impl Parts<'_> {
    fn push<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Refused> {
        let seen = value.serialize(Observer(self.registry))?;
        self.shapes.push(seen);
        Ok(())
    }

    fn all_alike(shapes: impl Iterator<Item = Shape>) -> Seen {
        let mut alike = Shape::Unseen;
        for shape in shapes {
            alike.merge(shape).map_err(Refused)?;
        }
        Ok(alike)
    }

    fn done(self) -> Seen {
        let Self {
            registry,
            shapes,
            fields,
            of,
        } = self;
        let variant =
            |index, name, definition| Definition::Enum(BTreeMap::from([(index, (name, Box::new(definition)))]));
        Ok(match of {
            Of::Sequence => Shape::Sequence(Box::new(Self::all_alike(shapes.into_iter())?)),
            Of::Tuple => Shape::Tuple(shapes),
            Of::Map => {
                let keys = Self::all_alike(shapes.iter().step_by(2).cloned())?;
                let values = Self::all_alike(shapes.into_iter().skip(1).step_by(2))?;
                Shape::Map(Box::new(keys), Box::new(values))
            }
            Of::TupleVariant(name, index, of) => registry.note(name, variant(index, of, Definition::Tuple(shapes))),
            Of::Struct(name) => registry.note(name, Definition::Struct(fields)),
            Of::StructVariant(name, index, of) => registry.note(name, variant(index, of, Definition::Struct(fields))),
        })
    }
}

impl<'a> Observer<'a> {
    fn parts(self, of: Of) -> Result<Parts<'a>, Refused> {
        Ok(Parts {
            registry: self.0,
            shapes: Vec::new(),
            fields: Vec::new(),
            of,
        })
    }
}

impl<'a> Serializer for Observer<'a> {
    type Ok = Shape;
    type Error = Refused;
    type SerializeSeq = Parts<'a>;
    type SerializeTuple = Parts<'a>;
    type SerializeTupleStruct = Parts<'a>;
    type SerializeTupleVariant = Parts<'a>;
    type SerializeMap = Parts<'a>;
    type SerializeStruct = Parts<'a>;
    type SerializeStructVariant = Parts<'a>;

    plain! {
        serialize_bool(bool) = "bool";
        serialize_i8(i8) = "i8";
        serialize_i16(i16) = "i16";
        serialize_i32(i32) = "i32";
        serialize_i64(i64) = "i64";
        serialize_i128(i128) = "i128";
        serialize_u8(u8) = "u8";
        serialize_u16(u16) = "u16";
        serialize_u32(u32) = "u32";
        serialize_u64(u64) = "u64";
        serialize_u128(u128) = "u128";
        serialize_f32(f32) = "f32";
        serialize_f64(f64) = "f64";
        serialize_char(char) = "char";
        serialize_str(&str) = "str";
        serialize_bytes(&[u8]) = "bytes";
    }

    fn serialize_none(self) -> Seen {
        Ok(Shape::Option(Box::new(Shape::Unseen)))
    }
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Seen {
        Ok(Shape::Option(Box::new(value.serialize(self)?)))
    }
    fn serialize_unit(self) -> Seen {
        Ok(Shape::Plain("unit"))
    }
    fn serialize_unit_struct(self, name: &'static str) -> Seen {
        Ok(self.0.note(name, Definition::Unit))
    }
    fn serialize_unit_variant(self, name: &'static str, index: u32, variant: &'static str) -> Seen {
        let seen = BTreeMap::from([(index, (variant, Box::new(Definition::Unit)))]);
        Ok(self.0.note(name, Definition::Enum(seen)))
    }
    // Its name is in no byte.
    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Seen {
        value.serialize(self)
    }
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        value: &T,
    ) -> Seen {
        let inner = value.serialize(Observer(self.0))?;
        let seen = BTreeMap::from([(index, (variant, Box::new(Definition::Newtype(inner))))]);
        Ok(self.0.note(name, Definition::Enum(seen)))
    }
    fn serialize_seq(self, _: Option<usize>) -> Result<Parts<'a>, Refused> {
        self.parts(Of::Sequence)
    }
    fn serialize_tuple(self, _: usize) -> Result<Parts<'a>, Refused> {
        self.parts(Of::Tuple)
    }
    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Parts<'a>, Refused> {
        self.parts(Of::Tuple)
    }
    fn serialize_tuple_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Parts<'a>, Refused> {
        self.parts(Of::TupleVariant(name, index, variant))
    }
    fn serialize_map(self, _: Option<usize>) -> Result<Parts<'a>, Refused> {
        self.parts(Of::Map)
    }
    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Parts<'a>, Refused> {
        self.parts(Of::Struct(name))
    }
    fn serialize_struct_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Parts<'a>, Refused> {
        self.parts(Of::StructVariant(name, index, variant))
    }
    fn is_human_readable(&self) -> bool {
        false
    }
}

macro_rules! compound {
    ($($trait:ident $method:ident;)*) => {
        $(impl ser::$trait for Parts<'_> {
            type Ok = Shape;
            type Error = Refused;
            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Refused> {
                self.push(value)
            }
            fn end(self) -> Seen {
                self.done()
            }
        })*
    };
}

compound! {
    SerializeSeq serialize_element;
    SerializeTuple serialize_element;
    SerializeTupleStruct serialize_field;
    SerializeTupleVariant serialize_field;
}

impl ser::SerializeMap for Parts<'_> {
    type Ok = Shape;
    type Error = Refused;
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Refused> {
        self.push(key)
    }
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Refused> {
        self.push(value)
    }
    fn end(self) -> Seen {
        self.done()
    }
}

macro_rules! with_fields {
    ($($trait:ident)*) => {
        $(impl ser::$trait for Parts<'_> {
            type Ok = Shape;
            type Error = Refused;
            fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), Refused> {
                let seen = value.serialize(Observer(self.registry))?;
                self.fields.push((name, seen));
                Ok(())
            }
            // The compact form has a zero byte in its place.
            fn skip_field(&mut self, name: &'static str) -> Result<(), Refused> {
                self.fields.push((name, Shape::Unseen));
                Ok(())
            }
            fn end(self) -> Seen {
                self.done()
            }
        })*
    };
}

with_fields! { SerializeStruct SerializeStructVariant }
