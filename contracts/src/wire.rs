//! The compact form: postcard behind a version header.
//!
//! A message is `ZC`, the form's version (one byte), then postcard (<https://postcard.jamesmunns.com/wire-format>).
//! The JSON form leaves absent fields out; postcard has no field names, so there they must be present. [`encode`]
//! therefore writes a skipped field as one zero byte, which is what postcard writes for `None`, for an empty sequence,
//! map or string, for `false` and for 0: the only values that the contracts skip.

use serde::de::DeserializeOwned;
use serde::{Serialize, Serializer, ser};

use crate::{Error, ErrorKind};

/// Version of the compact form. It grows when a message changes in a way that an old reader cannot read.
pub const COMPACT_VERSION: u8 = 1;

const MAGIC: [u8; 2] = *b"ZC";

/// Encodes a message with its header.
///
/// # Errors
/// `internal` if the type cannot be encoded (none of this crate).
pub fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, Error> {
    let body = postcard::to_stdvec(&Dense(value))
        .map_err(|e| Error::new(ErrorKind::Internal, format!("cannot encode a message: {e}")))?;
    let mut bytes = Vec::with_capacity(3 + body.len());
    bytes.extend_from_slice(&MAGIC);
    bytes.push(COMPACT_VERSION);
    bytes.extend_from_slice(&body);
    Ok(bytes)
}

/// Decodes what [`encode`] wrote.
///
/// # Errors
/// `unsupported` for another version, `corrupt` for anything else that is not exactly one message.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Error> {
    let corrupt = |why: String| Error::new(ErrorKind::Corrupt, format!("not a message: {why}"));
    let Some(([a, b, version], body)) = bytes.split_first_chunk::<3>() else {
        return Err(corrupt("it is shorter than its header".into()));
    };
    if [*a, *b] != MAGIC {
        return Err(corrupt("its header is missing".into()));
    }
    if *version != COMPACT_VERSION {
        return Err(Error::new(
            ErrorKind::Unsupported,
            format!(
                "the message has version {version} of the compact form; this build reads version {COMPACT_VERSION}"
            ),
        ));
    }
    let (value, rest) = postcard::take_from_bytes(body).map_err(|e| corrupt(e.to_string()))?;
    if rest.is_empty() {
        Ok(value)
    } else {
        Err(corrupt(format!("{} bytes follow it", rest.len())))
    }
}

/// Serialises `T` so that a skipped field is written as a zero byte.
struct Dense<T>(T);

impl<T: Serialize> Serialize for Dense<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(Dense(serializer))
    }
}

macro_rules! forward {
    ($($method:ident($($arg:ident: $type:ty),*);)*) => {
        $(fn $method(self, $($arg: $type),*) -> Result<Self::Ok, Self::Error> { self.0.$method($($arg),*) })*
    };
}

impl<S: Serializer> Serializer for Dense<S> {
    type Ok = S::Ok;
    type Error = S::Error;
    type SerializeSeq = Dense<S::SerializeSeq>;
    type SerializeTuple = Dense<S::SerializeTuple>;
    type SerializeTupleStruct = Dense<S::SerializeTupleStruct>;
    type SerializeTupleVariant = Dense<S::SerializeTupleVariant>;
    type SerializeMap = Dense<S::SerializeMap>;
    type SerializeStruct = Dense<S::SerializeStruct>;
    type SerializeStructVariant = Dense<S::SerializeStructVariant>;

    forward! {
        serialize_bool(v: bool);
        serialize_i8(v: i8);
        serialize_i16(v: i16);
        serialize_i32(v: i32);
        serialize_i64(v: i64);
        serialize_i128(v: i128);
        serialize_u8(v: u8);
        serialize_u16(v: u16);
        serialize_u32(v: u32);
        serialize_u64(v: u64);
        serialize_u128(v: u128);
        serialize_f32(v: f32);
        serialize_f64(v: f64);
        serialize_char(v: char);
        serialize_str(v: &str);
        serialize_bytes(v: &[u8]);
        serialize_none();
        serialize_unit();
        serialize_unit_struct(name: &'static str);
        serialize_unit_variant(name: &'static str, index: u32, variant: &'static str);
    }

    fn serialize_some<T: ?Sized + Serialize>(self, value: &T) -> Result<S::Ok, S::Error> {
        self.0.serialize_some(&Dense(value))
    }
    fn serialize_newtype_struct<T: ?Sized + Serialize>(self, name: &'static str, value: &T) -> Result<S::Ok, S::Error> {
        self.0.serialize_newtype_struct(name, &Dense(value))
    }
    fn serialize_newtype_variant<T: ?Sized + Serialize>(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        self.0.serialize_newtype_variant(name, index, variant, &Dense(value))
    }
    fn serialize_seq(self, len: Option<usize>) -> Result<Self::SerializeSeq, S::Error> {
        self.0.serialize_seq(len).map(Dense)
    }
    fn serialize_tuple(self, len: usize) -> Result<Self::SerializeTuple, S::Error> {
        self.0.serialize_tuple(len).map(Dense)
    }
    fn serialize_tuple_struct(self, name: &'static str, len: usize) -> Result<Self::SerializeTupleStruct, S::Error> {
        self.0.serialize_tuple_struct(name, len).map(Dense)
    }
    fn serialize_tuple_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Self::SerializeTupleVariant, S::Error> {
        self.0.serialize_tuple_variant(name, index, variant, len).map(Dense)
    }
    fn serialize_map(self, len: Option<usize>) -> Result<Self::SerializeMap, S::Error> {
        self.0.serialize_map(len).map(Dense)
    }
    fn serialize_struct(self, name: &'static str, len: usize) -> Result<Self::SerializeStruct, S::Error> {
        self.0.serialize_struct(name, len).map(Dense)
    }
    fn serialize_struct_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Self::SerializeStructVariant, S::Error> {
        self.0.serialize_struct_variant(name, index, variant, len).map(Dense)
    }
    fn is_human_readable(&self) -> bool {
        self.0.is_human_readable()
    }
}

macro_rules! forward_elements {
    ($($trait:ident::$method:ident;)*) => {
        $(impl<S: ser::$trait> ser::$trait for Dense<S> {
            type Ok = S::Ok;
            type Error = S::Error;
            fn $method<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), S::Error> {
                self.0.$method(&Dense(value))
            }
            fn end(self) -> Result<S::Ok, S::Error> {
                self.0.end()
            }
        })*
    };
}

forward_elements! {
    SerializeSeq::serialize_element;
    SerializeTuple::serialize_element;
    SerializeTupleStruct::serialize_field;
    SerializeTupleVariant::serialize_field;
}

impl<S: ser::SerializeMap> ser::SerializeMap for Dense<S> {
    type Ok = S::Ok;
    type Error = S::Error;
    fn serialize_key<T: ?Sized + Serialize>(&mut self, key: &T) -> Result<(), S::Error> {
        self.0.serialize_key(&Dense(key))
    }
    fn serialize_value<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), S::Error> {
        self.0.serialize_value(&Dense(value))
    }
    fn end(self) -> Result<S::Ok, S::Error> {
        self.0.end()
    }
}

macro_rules! forward_fields {
    ($($trait:ident;)*) => {
        $(impl<S: ser::$trait> ser::$trait for Dense<S> {
            type Ok = S::Ok;
            type Error = S::Error;
            fn serialize_field<T: ?Sized + Serialize>(&mut self, key: &'static str, value: &T) -> Result<(), S::Error> {
                self.0.serialize_field(key, &Dense(value))
            }
            fn skip_field(&mut self, key: &'static str) -> Result<(), S::Error> {
                self.0.serialize_field(key, &false) // one zero byte; see the module's first paragraph
            }
            fn end(self) -> Result<S::Ok, S::Error> {
                self.0.end()
            }
        })*
    };
}

forward_fields! {
    SerializeStruct;
    SerializeStructVariant;
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, PartialEq, Serialize, Deserialize, Default)]
    struct Sparse {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        a: Option<u32>,
        b: u8,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        c: Vec<Sparse>,
    }

    #[test]
    fn skipped_fields_come_back_at_every_depth() {
        let value = Sparse {
            a: None,
            b: 7,
            c: vec![
                Sparse {
                    a: Some(1),
                    ..Sparse::default()
                },
                Sparse::default(),
            ],
        };
        assert_eq!(decode::<Sparse>(&encode(&value).unwrap()).unwrap(), value);
    }

    #[test]
    fn damage_and_other_versions_are_told_apart() {
        let good = encode(&Sparse::default()).unwrap();
        let kind = |bytes: &[u8]| decode::<Sparse>(bytes).unwrap_err().kind;
        assert_eq!(kind(&good[..2]), ErrorKind::Corrupt);
        assert_eq!(kind(&good[..good.len() - 1]), ErrorKind::Corrupt);
        assert_eq!(kind(&[&good[..], b"\0"].concat()), ErrorKind::Corrupt);
        assert_eq!(kind(&[b"ZC\xff", &good[3..]].concat()), ErrorKind::Unsupported);
        assert_eq!(kind(&[b"zc\x01", &good[3..]].concat()), ErrorKind::Corrupt);
    }
}
