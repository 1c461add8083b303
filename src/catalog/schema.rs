//! Bounds on the schemas of tools, whether they are schemas at all (SECURITY CAT-5, section 6), and what calls are held to.
//!
//! Checks size, depth and patterns by walking the text once, then the shape against the meta-schema of its dialect, then lays
//! it out for checking calls, which shows where it refers to: once for each text, however many tools and catalogs have it. What cannot be
//! judged (a pattern that only other engines can run) is a doubt and no fault: the tool is offered, and everything else in
//! its schema is checked.

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock, Mutex, PoisonError, Weak},
};

use aws_lc_rs::digest::{SHA256, digest};

use super::rules::CatalogBounds;
use crate::{
    json::{Kind, Node},
    schema::{Faulty, Schema, is_ecma_pattern},
};

/// Why a schema is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaFault {
    /// Nests deeper than the bound.
    #[error("nests deeper than {0}")]
    TooDeep(usize),
    /// Has more subschemas than the bound.
    #[error("has more than {0} subschemas")]
    TooMany(usize),
    /// Refers to something outside itself.
    #[error("refers to something outside itself")]
    RemoteRef,
    /// Has a pattern longer than the bound.
    #[error("has a pattern of more than {0} characters")]
    PatternTooLong(usize),
    /// Is no schema: its dialect does not allow what stands at this place.
    #[error("is no JSON Schema: {0}")]
    NotASchema(Box<str>),
    /// Refers to nothing, or to itself without end.
    #[error("{0}")]
    Reference(Faulty),
}

/// A schema that there is nothing against.
#[derive(Debug, Clone)]
pub(super) struct Checked {
    /// Itself.
    pub(super) laid_out: Arc<Schema>,
    /// Whether the validator that clients on the TypeScript SDK have takes it, whose dialect is draft-07 whatever the schema names. In
    /// doubt it is said not to.
    pub(super) is_common: bool,
}

/// Checks schemas.
#[derive(Debug, Default)]
pub(super) struct SchemaCheck {
    /// Those checked before, by text.
    known: HashMap<Box<str>, Checked>,
}

/// Every schema that is in use, by the digest of its text: catalogs are built anew and by the dozen, and their tools stay.
static LAID_OUT: LazyLock<Mutex<HashMap<[u8; 32], Weak<Schema>>>> = LazyLock::new(Mutex::default);

impl SchemaCheck {
    /// Checks one schema, and lays it out.
    ///
    /// # Errors
    /// The first fault met.
    pub(super) fn check(
        &mut self,
        schema: Node<'_>,
        bounds: &CatalogBounds,
    ) -> Result<Checked, SchemaFault> {
        if let Some(known) = self.known.get(schema.raw()) {
            return Ok(known.clone());
        }
        let mut walk = Walk {
            bounds,
            subschemas: 0,
            is_common: true,
        };
        walk.schema(schema, 1)?;
        shape(schema)?;
        let checked = Checked {
            laid_out: laid_out(schema)?,
            is_common: walk.is_common,
        };
        self.known.insert(schema.raw().into(), checked.clone());
        Ok(checked)
    }
}

/// A schema that is fit to be laid out, laid out.
fn laid_out(schema: Node<'_>) -> Result<Arc<Schema>, SchemaFault> {
    let mut key = [0; 32];
    key.copy_from_slice(digest(&SHA256, schema.raw_bytes()).as_ref());
    let all = || LAID_OUT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = all().get(&key).and_then(Weak::upgrade) {
        return Ok(known);
    }
    let made = Schema::compile(schema).map_err(|fault| match fault {
        Faulty::Remote => SchemaFault::RemoteRef,
        Faulty::Dangling(_) | Faulty::Endless => SchemaFault::Reference(fault),
    })?;
    let made = Arc::new(made);
    let mut all = all();
    // No more of those that are gone than of those that are not.
    if all.len() >= 64 && all.len() == all.capacity() {
        all.retain(|_, schema| schema.strong_count() > 0);
    }
    all.insert(key, Arc::downgrade(&made));
    Ok(made)
}

struct Walk<'a> {
    bounds: &'a CatalogBounds,
    subschemas: usize,
    is_common: bool,
}

impl Walk<'_> {
    fn schema(&mut self, schema: Node<'_>, depth: usize) -> Result<(), SchemaFault> {
        if depth > self.bounds.schema_depth {
            return Err(SchemaFault::TooDeep(self.bounds.schema_depth));
        }
        self.subschemas += 1;
        if self.subschemas > self.bounds.subschemas {
            return Err(SchemaFault::TooMany(self.bounds.subschemas));
        }
        for member in schema.members() {
            self.is_common &= is_common(schema, &member.key, member.value);
            match (&*member.key, member.value.kind()) {
                ("pattern", Kind::String) => {
                    self.pattern(&member.value.as_str().unwrap_or_default())?;
                }
                ("patternProperties", Kind::Object) => {
                    for entry in member.value.members() {
                        self.pattern(&entry.key)?;
                        self.schema(entry.value, depth + 1)?;
                    }
                }
                (
                    "properties" | "$defs" | "definitions" | "dependentSchemas" | "dependencies",
                    Kind::Object,
                ) => {
                    for entry in member.value.members() {
                        self.schema(entry.value, depth + 1)?;
                    }
                }
                // Data, whatever it looks like.
                ("const" | "enum" | "default" | "example" | "examples", _) => {}
                // Schemas, and unknown members that a reference might use as such.
                (_, Kind::Object) => self.schema(member.value, depth + 1)?,
                (_, Kind::Array) => {
                    for element in member.value.elements() {
                        if matches!(element.kind(), Kind::Object | Kind::Array) {
                            self.schema(element, depth + 1)?;
                        }
                    }
                }
                (_, Kind::String | Kind::Number | Kind::Bool | Kind::Null) => {}
            }
        }
        for element in schema.elements() {
            if matches!(element.kind(), Kind::Object | Kind::Array) {
                self.schema(element, depth + 1)?;
            }
        }
        Ok(())
    }

    fn pattern(&mut self, pattern: &str) -> Result<(), SchemaFault> {
        let limit = self.bounds.pattern_chars;
        if pattern.len() > limit && pattern.chars().count() > limit {
            return Err(SchemaFault::PatternTooLong(limit));
        }
        self.is_common = self.is_common && is_ecma_pattern(pattern);
        Ok(())
    }
}

/// Whether the validator of [`Checked::is_common`] takes this member of a schema. It is without mercy in what it knows, and has no
/// other meta-schema than that of its own dialect.
fn is_common(schema: Node<'_>, key: &str, value: Node<'_>) -> bool {
    let kinds = || schema.member("type");
    match key {
        "enum" => value.elements().next().is_some(),
        "exclusiveMinimum" | "exclusiveMaximum" => value.kind() != Kind::Bool,
        "id" => false,
        // What OpenAPI says, and means of a type alone.
        "nullable" => match value.as_bool() {
            Some(true) => kinds().is_some(),
            Some(false) => kinds().is_some_and(|kinds| !kinds.raw().contains("null")),
            None => false,
        },
        "$ref" => value.as_str().is_none_or(|to| {
            let (to, _) = to.split_once('#').unwrap_or((&*to, ""));
            to == DRAFT_07 || !is_meta_schema(to)
        }),
        _ => true,
    }
}

/// The dialects that are known; schemas that name none are of the first.
const META_SCHEMAS: [&str; 5] = [
    "https://json-schema.org/draft/2020-12/schema",
    "https://json-schema.org/draft/2019-09/schema",
    DRAFT_07,
    "http://json-schema.org/draft-06/schema",
    "http://json-schema.org/draft-04/schema",
];
const DRAFT_07: &str = "http://json-schema.org/draft-07/schema";

/// Most characters of what is told of a schema that is none.
const TOLD: usize = 120;

/// Whether the dialect allows every keyword what it has; one that is not known allows anything. Bounded by the walk before.
fn shape(schema: Node<'_>) -> Result<(), SchemaFault> {
    if let Some(dialect) = schema.member("$schema").and_then(Node::as_str)
        && !is_meta_schema(&dialect)
    {
        return Ok(());
    }
    #[expect(
        clippy::disallowed_types,
        reason = "the validator reads trees; this is off the hot path and bounded"
    )]
    let Ok(tree) = serde_json::from_str::<serde_json::Value>(schema.raw()) else {
        // It holds a number beyond what a tree can hold, which is no fault of its shape.
        return Ok(());
    };
    jsonschema::meta::validate(&tree).map_err(|error| {
        let told = format!("`{}` {error}", error.instance_path());
        SchemaFault::NotASchema(told.chars().take(TOLD).collect())
    })
}

fn is_meta_schema(address: &str) -> bool {
    META_SCHEMAS.contains(&address.strip_suffix('#').unwrap_or(address))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::{
        json::{Json, Limits},
        schema::Gap,
    };

    fn check(schema: &str) -> Result<(), SchemaFault> {
        laid(schema).map(drop)
    }

    fn checked(schema: &str) -> Result<Option<Gap>, SchemaFault> {
        laid(schema).map(|schema| schema.gap())
    }

    fn laid(schema: &str) -> Result<Arc<Schema>, SchemaFault> {
        whole(schema).map(|checked| checked.laid_out)
    }

    fn whole(schema: &str) -> Result<Checked, SchemaFault> {
        let bounds = CatalogBounds {
            schema_depth: 4,
            subschemas: 6,
            pattern_chars: 8,
            ..CatalogBounds::default()
        };
        let schema =
            Json::parse(Bytes::copy_from_slice(schema.as_bytes()), &Limits::UPSTREAM).unwrap();
        SchemaCheck::default().check(schema.root(), &bounds)
    }

    fn nested(levels: usize) -> String {
        format!(
            "{}{{}}{}",
            r#"{"items":"#.repeat(levels - 1),
            "}".repeat(levels - 1)
        )
    }

    #[test]
    fn cat_5_depth_and_number_of_subschemas_are_bounded() {
        assert_eq!(check(&nested(3)), Ok(()));
        assert_eq!(check(&nested(4)), Ok(()));
        assert_eq!(check(&nested(5)), Err(SchemaFault::TooDeep(4)));
        let wide = |properties: usize| {
            let list: Vec<_> = (0..properties).map(|n| format!(r#""p{n}":{{}}"#)).collect();
            check(&format!(r#"{{"properties":{{{}}}}}"#, list.join(",")))
        };
        assert_eq!(wide(4), Ok(()));
        assert_eq!(wide(5), Ok(()));
        assert_eq!(wide(6), Err(SchemaFault::TooMany(6)));
    }

    #[test]
    fn cat_5_references_stay_inside_and_data_is_no_reference() {
        for fine in [
            r##"{"$ref":"#/$defs/a","$defs":{"a":true}}"##,
            r##"{"items":{"$ref":"#"}}"##,
            r#"{"$ref":"http://json-schema.org/draft-07/schema#"}"#,
            r#"{"default":{"$ref":"https://x"}}"#,
            r#"{"properties":{"$ref":{"type":"string"}}}"#,
            r#"{"$id":"https://e.com/a","items":{"$ref":"https://e.com/a"}}"#,
        ] {
            assert_eq!(check(fine), Ok(()), "{fine}");
        }
        for remote in [
            r#"{"$ref":"https://example.com/s"}"#,
            r#"{"$ref":"other.json"}"#,
            r#"{"properties":{"default":{"$ref":"file:///etc/passwd"}}}"#,
            r#"{"x-shared":{"a":{"$ref":"//host/s"}}}"#,
            r#"{"anyOf":[{"$dynamicRef":"urn:x"}]}"#,
            r#"{"$ref":"https://json-schema.org/draft/2020-12/schema/../x"}"#,
            r#"{"$id":"https://e.com/a","x-shared":{"$ref":"b"}}"#,
            r#"{"$schema":"https://example.com/mine","items":{"$ref":"b"}}"#,
        ] {
            assert_eq!(check(remote), Err(SchemaFault::RemoteRef), "{remote}");
        }
        for nowhere in [r##"{"$ref":"#/$defs/a"}"##, r##"{"$ref":"#"}"##] {
            assert!(
                matches!(check(nowhere), Err(SchemaFault::Reference(_))),
                "{nowhere}"
            );
        }
    }

    #[test]
    fn one_text_is_laid_out_once_for_all_who_have_it() {
        let text = r#"{"type":"object","title":"one text"}"#;
        let one = laid(text).unwrap();
        assert!(Arc::ptr_eq(&one, &laid(text).unwrap()));
        assert!(!Arc::ptr_eq(
            &one,
            &laid(r#"{"type":"object","title":"other"}"#).unwrap()
        ));
    }

    #[test]
    fn cat_5_patterns_are_short_and_linear() {
        for fine in [
            r#"{"pattern":"^a{2,3}$"}"#,
            r#"{"pattern":"\\d\\w"}"#,
            r#"{"pattern":"1234567"}"#,
            r#"{"pattern":"12345678"}"#,
        ] {
            assert_eq!(check(fine), Ok(()), "{fine}");
        }
        assert_eq!(
            check(r#"{"pattern":"123456789"}"#),
            Err(SchemaFault::PatternTooLong(8))
        );
        for wild in [
            r#"{"pattern":"(a)\\1"}"#,
            r#"{"pattern":"(?=a)b"}"#,
            r#"{"patternProperties":{"(":{}}}"#,
        ] {
            let doubt = Some(Gap::Pattern);
            assert_eq!(checked(wild), Ok(doubt), "{wild}");
        }
        assert_eq!(checked(r#"{"pattern":"a"}"#), Ok(None));
    }

    /// As that validator has said of each.
    #[test]
    fn what_the_validator_of_many_clients_takes_is_told_from_what_it_does_not() {
        let is_common = |schema: &str| whole(schema).unwrap().is_common;
        for common in [
            r#"{"pattern":"^\\w+$"}"#,
            r#"{"pattern":"(?=a)b"}"#,
            r#"{"properties":{"id":{"type":"string"},"nullable":{},"enum":{}}}"#,
            r#"{"type":"string","nullable":true}"#,
            r#"{"type":"string","nullable":false}"#,
            r#"{"enum":[1]}"#,
            r#"{"default":{"id":1},"const":{"pattern":"("}}"#,
            r#"{"$ref":"http://json-schema.org/draft-07/schema#"}"#,
            r##"{"items":{"$ref":"#"}}"##,
            r#"{"exclusiveMinimum":1}"#,
            r#"{"$schema":"https://json-schema.org/draft/2020-12/schema"}"#,
        ] {
            assert!(is_common(common), "{common}");
        }
        for not in [
            r#"{"pattern":"\\-"}"#,
            r#"{"items":{"pattern":"(?i)a"}}"#,
            r#"{"patternProperties":{"[\\w-.]":{"type":"string"}}}"#,
            r#"{"id":"a"}"#,
            r#"{"nullable":true}"#,
            r#"{"type":"string","nullable":"no"}"#,
            r#"{"type":["string","null"],"nullable":false}"#,
            r#"{"enum":[]}"#,
            r#"{"$ref":"https://json-schema.org/draft/2020-12/schema"}"#,
            r#"{"$ref":"http://json-schema.org/draft-04/schema#"}"#,
            r#"{"$schema":"http://json-schema.org/draft-04/schema#","minimum":1,"exclusiveMinimum":true}"#,
        ] {
            assert!(!is_common(not), "{not}");
        }
    }

    #[test]
    fn cat_5_what_its_dialect_does_not_allow_is_no_schema() {
        for (bad, at) in [
            (r#"{"type":7}"#, "/type"),
            (r#"{"type":"objekt"}"#, "/type"),
            (r#"{"required":"a"}"#, "/required"),
            (
                r#"{"properties":{"a":{"minLength":-1}}}"#,
                "/properties/a/minLength",
            ),
            (r#"{"properties":[]}"#, "/properties"),
            (
                r#"{"$schema":"http://json-schema.org/draft-07/schema#","items":7}"#,
                "/items",
            ),
        ] {
            let Err(SchemaFault::NotASchema(told)) = check(bad) else {
                panic!("{bad}");
            };
            assert!(told.contains(&format!("`{at}`")), "{told}");
            assert!(told.chars().count() <= TOLD);
        }
        for fine in [
            r#"{"$schema":"https://json-schema.org/draft/2020-12/schema","type":["string","null"]}"#,
            // Other words mean nothing to it, and other dialects are none of its business.
            r#"{"x":{"type":7},"default":{"type":7}}"#,
            r#"{"$schema":"https://example.com/mine","type":7}"#,
            r#"{"$schema":"http://json-schema.org/draft-04/schema#","minimum":1,"exclusiveMinimum":true}"#,
            r#"{"maximum":1e400}"#,
        ] {
            assert_eq!(check(fine), Ok(()), "{fine}");
        }
    }
}
