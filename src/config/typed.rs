//! Tree to types, through serde, without stopping at the first mistake.
//!
//! A type is read; if that fails, the mistake is reported where it stands, the offending part is struck out of the tree
//! and the type is read again, until it succeeds. So the derived types stay the only description of the keys there are.
//! Messages name kinds of values, never values: a value may be a resolved secret.

use std::fmt;

use serde::de::{
    self, Deserialize, DeserializeSeed, EnumAccess, Expected, IntoDeserializer, MapAccess,
    SeqAccess, Unexpected, VariantAccess, Visitor, value::StrDeserializer,
};

use super::{
    hint,
    problem::Findings,
    tree::{Entry, Node, Scalar, Value, written},
};

/// Mistakes reported before giving up on a file.
const MAX_MISTAKES: usize = 100;
/// Stands between message and hint in errors that pass through serde as one text.
const SEPARATOR: char = '\u{1F}';

/// Reads `tree` as a `T`, reporting every mistake and striking what is mistaken. The struck paths come back too, as they were
/// written: what is missing there is not missing for want of trying.
pub(super) fn read<T: for<'de> Deserialize<'de> + Default>(
    tree: &mut Node,
    findings: &mut Findings,
) -> (T, Vec<Vec<String>>) {
    let mut struck = Vec::new();
    while struck.len() < MAX_MISTAKES {
        let fault = match T::deserialize(Reader(tree)) {
            Ok(value) => return (value, struck),
            Err(fault) => fault,
        };
        let mut path: Vec<String> = fault.path.into_iter().rev().collect();
        let place = if fault.on_key {
            tree.key_place_of(&path)
        } else {
            tree.at(&path).map_or(tree.place, |node| node.place)
        };
        let message = tree.redacted(&path, fault.message);
        let mut as_written = tree.as_written(&path, &struck);
        findings.report(place, written(&as_written), message, fault.hint);
        if fault.around {
            drop((path.pop(), as_written.pop()));
            findings.left_out.push(written(&as_written));
        }
        tree.strike(&path);
        struck.push(as_written);
    }
    (T::default(), struck)
}

/// A mistake with a hint, for `Deserialize` impls: goes through `serde::de::Error::custom`.
pub(super) fn mistake<E: de::Error>(message: impl fmt::Display, hint: impl fmt::Display) -> E {
    E::custom(format!("{message}{SEPARATOR}{hint}"))
}

/// A mistake, and the way to it from the inside out.
#[derive(Debug)]
struct Fault {
    path: Vec<String>,
    on_key: bool,
    /// What the key stands in is useless without it.
    around: bool,
    message: String,
    hint: String,
}

impl Fault {
    fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            path: Vec::new(),
            on_key: false,
            around: false,
            message: message.into(),
            hint: hint.into(),
        }
    }

    fn inside(mut self, step: &str) -> Self {
        self.path.push(step.to_owned());
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Fault {}

impl de::Error for Fault {
    fn custom<T: fmt::Display>(message: T) -> Self {
        let text = message.to_string();
        match text.split_once(SEPARATOR) {
            Some((message, hint)) => Self::new(message, hint),
            None => Self::new(text, ""),
        }
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let found = match found {
            Unexpected::Map => "a mapping",
            Unexpected::Seq => "a list",
            Unexpected::Unit | Unexpected::Option => "nothing",
            Unexpected::Bool(_) => "true or false",
            Unexpected::Unsigned(_) | Unexpected::Signed(_) | Unexpected::Float(_) => "a number",
            Unexpected::Char(_)
            | Unexpected::Str(_)
            | Unexpected::Bytes(_)
            | Unexpected::NewtypeStruct
            | Unexpected::Enum
            | Unexpected::UnitVariant
            | Unexpected::NewtypeVariant
            | Unexpected::TupleVariant
            | Unexpected::StructVariant
            | Unexpected::Other(_) => "text",
        };
        let expected = in_words(expected);
        Self::new(format!("expected {expected}, found {found}"), "")
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let expected = in_words(expected);
        match found {
            Unexpected::Signed(number) if number < 0 => {
                Self::new(format!("expected {expected} that is not negative"), "")
            }
            Unexpected::Unsigned(_) | Unexpected::Signed(_) => {
                Self::new(format!("expected {expected} that is not so large"), "")
            }
            Unexpected::Bool(_)
            | Unexpected::Float(_)
            | Unexpected::Char(_)
            | Unexpected::Str(_)
            | Unexpected::Bytes(_)
            | Unexpected::Unit
            | Unexpected::Option
            | Unexpected::NewtypeStruct
            | Unexpected::Seq
            | Unexpected::Map
            | Unexpected::Enum
            | Unexpected::UnitVariant
            | Unexpected::NewtypeVariant
            | Unexpected::TupleVariant
            | Unexpected::StructVariant
            | Unexpected::Other(_) => Self::new(format!("expected {expected}"), ""),
        }
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        Self::new(
            format!("unknown key `{field}`"),
            hint::unknown("key", field, expected),
        )
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        Self::new(
            format!("`{variant}` is none of the choices here"),
            hint::unknown("choice", variant, expected),
        )
    }

    fn missing_field(field: &'static str) -> Self {
        Self::new(format!("`{field}` is missing"), format!("add `{field}:`"))
    }
}

/// What is expected, for people: readers of numbers call themselves by the type that they fill.
fn in_words(expected: &dyn Expected) -> String {
    let said = expected.to_string();
    match said.as_str() {
        "u8" | "u16" | "u32" | "u64" | "usize" | "i64" => "a whole number".to_owned(),
        _ => said,
    }
}

#[derive(Clone, Copy)]
struct Reader<'t>(&'t Node);

impl<'t> Reader<'t> {
    fn scalar(self, expected: &dyn Expected) -> Result<&'t Scalar, Fault> {
        match &self.0.value {
            Value::Scalar(scalar) if scalar.is_null() => {
                Err(de::Error::invalid_type(Unexpected::Unit, expected))
            }
            Value::Scalar(scalar) => Ok(scalar),
            Value::List(_) => Err(de::Error::invalid_type(Unexpected::Seq, expected)),
            Value::Map(_) => Err(de::Error::invalid_type(Unexpected::Map, expected)),
        }
    }

    /// A number: also from quotes, because that is where a reference may have to stand.
    fn number<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let text = &self.scalar(&visitor)?.text;
        if let Ok(number) = text.parse::<u64>() {
            visitor.visit_u64(number)
        } else if let Ok(number) = text.parse::<i64>() {
            visitor.visit_i64(number)
        } else {
            Err(Fault::new("expected a whole number", ""))
        }
    }

    fn entries(self, expected: &dyn Expected) -> Result<&'t [Entry], Fault> {
        match &self.0.value {
            Value::Map(entries) => Ok(entries),
            Value::Scalar(scalar) if scalar.is_null() => Ok(&[]),
            Value::Scalar(_) => Err(de::Error::invalid_type(Unexpected::Str(""), expected)),
            Value::List(_) => Err(de::Error::invalid_type(Unexpected::Seq, expected)),
        }
    }

    fn map<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let entries = self.entries(&"a mapping")?;
        visitor.visit_map(Members {
            entries: entries.iter(),
            value: None,
        })
    }
}

impl<'de> de::Deserializer<'de> for Reader<'_> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match &self.0.value {
            Value::Map(_) => self.map(visitor),
            Value::List(_) => self.deserialize_seq(visitor),
            Value::Scalar(scalar) if scalar.is_null() => visitor.visit_unit(),
            Value::Scalar(scalar) => match scalar.text.as_str() {
                "true" if scalar.plain => visitor.visit_bool(true),
                "false" if scalar.plain => visitor.visit_bool(false),
                // Where several kinds may stand no number is one of them, and a text may look like one.
                text => visitor.visit_str(text),
            },
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.scalar(&visitor)?.text.as_str() {
            "true" => visitor.visit_bool(true),
            "false" => visitor.visit_bool(false),
            _ => Err(Fault::new("expected `true` or `false`", "")),
        }
    }

    fn deserialize_u8<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.number(visitor)
    }

    fn deserialize_u16<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.number(visitor)
    }

    fn deserialize_u32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.number(visitor)
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.number(visitor)
    }

    fn deserialize_i64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.number(visitor)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_str(&self.scalar(&"text")?.text)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_str(visitor)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        if self.0.scalar().is_some_and(Scalar::is_null) {
            visitor.visit_none()
        } else {
            visitor.visit_some(self)
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        let items = match &self.0.value {
            Value::List(items) => items.as_slice(),
            Value::Scalar(scalar) if scalar.is_null() => &[],
            Value::Scalar(_) => {
                return Err(Fault::new("expected a list, found text", "write `[…]`"));
            }
            Value::Map(_) => return Err(Fault::new("expected a list, found a mapping", "")),
        };
        visitor.visit_seq(Elements {
            items: items.iter().enumerate(),
        })
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.map(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        match &self.0.value {
            Value::Map(entries) => match entries.as_slice() {
                [entry] => visitor.visit_enum(Variant {
                    name: &entry.key,
                    entry: Some(entry),
                }),
                [] => Err(Fault::new("expected one key, found none", "")),
                [_, second, ..] => {
                    let mut fault = Fault::new(
                        "only one of these keys can stand here",
                        "choose one and remove the others",
                    );
                    fault.on_key = true;
                    Err(fault.inside(&second.key))
                }
            },
            Value::List(_) => Err(Fault::new("expected a word or one key, found a list", "")),
            Value::Scalar(_) => visitor.visit_enum(Variant {
                name: &self.scalar(&"a word")?.text,
                entry: None,
            }),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_unit()
    }

    serde::forward_to_deserialize_any! {
        i8 i16 i32 i128 u128 f32 f64 char bytes byte_buf unit unit_struct tuple tuple_struct
    }
}

struct Members<'t> {
    entries: std::slice::Iter<'t, Entry>,
    value: Option<&'t Entry>,
}

impl<'de> MapAccess<'de> for Members<'_> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Fault> {
        let Some(entry) = self.entries.next() else {
            return Ok(None);
        };
        self.value = Some(entry);
        let key: StrDeserializer<'_, Fault> = entry.key.as_str().into_deserializer();
        seed.deserialize(key).map(Some).map_err(|mut fault| {
            fault.on_key = true;
            fault.inside(&entry.key)
        })
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        let Some(entry) = self.value.take() else {
            return Err(Fault::new("a value without a key", ""));
        };
        seed.deserialize(Reader(&entry.node))
            .map_err(|fault| fault.inside(&entry.key))
    }
}

struct Elements<'t> {
    items: std::iter::Enumerate<std::slice::Iter<'t, Node>>,
}

impl<'de> SeqAccess<'de> for Elements<'_> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Fault> {
        let Some((index, node)) = self.items.next() else {
            return Ok(None);
        };
        seed.deserialize(Reader(node))
            .map(Some)
            .map_err(|fault| fault.inside(&index.to_string()))
    }
}

struct Variant<'t> {
    name: &'t str,
    entry: Option<&'t Entry>,
}

impl<'de, 't> EnumAccess<'de> for Variant<'t> {
    type Error = Fault;
    type Variant = Content<'t>;

    fn variant_seed<V: DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, Self::Variant), Fault> {
        let name: StrDeserializer<'_, Fault> = self.name.into_deserializer();
        let value = seed.deserialize(name).map_err(|fault| match self.entry {
            Some(entry) => {
                let fault = Fault {
                    on_key: true,
                    around: true,
                    ..fault
                };
                fault.inside(&entry.key)
            }
            None => fault,
        })?;
        Ok((value, Content(self.entry)))
    }
}

struct Content<'t>(Option<&'t Entry>);

impl<'de> VariantAccess<'de> for Content<'_> {
    type Error = Fault;

    fn unit_variant(self) -> Result<(), Fault> {
        match self.0 {
            None => Ok(()),
            Some(entry) => {
                Err(Fault::new("expected a word, found a mapping", "").inside(&entry.key))
            }
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Fault> {
        match self.0 {
            Some(entry) => seed
                .deserialize(Reader(&entry.node))
                .map_err(|fault| fault.inside(&entry.key)),
            None => Err(Fault::new(
                "expected a mapping with one key, found text",
                "",
            )),
        }
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, Fault> {
        Err(Fault::new("expected a word or a mapping", ""))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Fault> {
        Err(Fault::new("expected a word or a mapping", ""))
    }
}
