//! Bounds on the schemas of tools, and whether they are schemas at all (SECURITY CAT-5, section 6).
//!
//! Checks size, depth, references and patterns by walking the text once, then the shape against the meta-schema of its
//! dialect. A pattern that only other engines can run is a doubt and no fault: nothing here runs it, and servers and clients
//! do. Deliberately absent: whether inner references lead somewhere, which only compiling would tell.

use std::collections::HashMap;

use super::rules::CatalogBounds;
use crate::json::{Json, Kind, Node};

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
}

/// What makes a schema one that cannot be checked here to the end. Its tool is offered all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SchemaDoubt {
    /// Has a pattern that no engine of linear time takes, such as one that looks ahead.
    #[error("has a pattern that cannot be matched in linear time")]
    PatternNotLinear,
}

/// Checks schemas, and remembers which patterns it has tried.
#[derive(Debug, Default)]
pub(super) struct SchemaCheck {
    patterns: HashMap<String, bool>,
}

impl SchemaCheck {
    /// Checks one schema; says what is doubtful of it, if anything is.
    ///
    /// # Errors
    /// The first fault met.
    pub(super) fn check(
        &mut self,
        schema: Node<'_>,
        bounds: &CatalogBounds,
    ) -> Result<Option<SchemaDoubt>, SchemaFault> {
        let mut walk = Walk {
            check: self,
            bounds,
            subschemas: 0,
            doubt: None,
        };
        walk.schema(schema, 1)?;
        let doubt = walk.doubt;
        shape(schema)?;
        Ok(doubt)
    }

    fn is_linear(&mut self, pattern: &str) -> bool {
        if let Some(known) = self.patterns.get(pattern) {
            return *known;
        }
        let linear = compiles(pattern);
        self.patterns.insert(pattern.to_owned(), linear);
        linear
    }
}

struct Walk<'a> {
    check: &'a mut SchemaCheck,
    bounds: &'a CatalogBounds,
    subschemas: usize,
    doubt: Option<SchemaDoubt>,
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
            match (&*member.key, member.value.kind()) {
                ("$ref" | "$dynamicRef" | "$recursiveRef", Kind::String) => {
                    reference(member.value)?;
                }
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
        if !self.check.is_linear(pattern) {
            self.doubt = Some(SchemaDoubt::PatternNotLinear);
        }
        Ok(())
    }
}

/// The dialects that are known; schemas that name none are of the first.
const META_SCHEMAS: [&str; 5] = [
    "https://json-schema.org/draft/2020-12/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "http://json-schema.org/draft-07/schema",
    "http://json-schema.org/draft-06/schema",
    "http://json-schema.org/draft-04/schema",
];

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

/// References lead into the schema itself or to a published meta-schema, which validators carry with them.
fn reference(target: Node<'_>) -> Result<(), SchemaFault> {
    let target = target.as_str().unwrap_or_default();
    if target.starts_with('#') || is_meta_schema(&target) {
        Ok(())
    } else {
        Err(SchemaFault::RemoteRef)
    }
}

/// Most bytes of one compiled pattern.
const COMPILED_BYTES: usize = 1 << 20;

/// Whether the validator's linear engine takes `pattern`.
fn compiles(pattern: &str) -> bool {
    #[expect(
        clippy::disallowed_types,
        reason = "the validator is made from a tree; this one holds a single string"
    )]
    let Ok(schema) = Json::of(
        &[("pattern", pattern)]
            .into_iter()
            .collect::<HashMap<_, _>>(),
    )
    .read::<serde_json::Value>() else {
        return false;
    };
    jsonschema::options()
        .with_pattern_options(jsonschema::PatternOptions::regex().size_limit(COMPILED_BYTES))
        .build(&schema)
        .is_ok()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::json::Limits;

    fn check(schema: &str) -> Result<(), SchemaFault> {
        checked(schema).map(drop)
    }

    fn checked(schema: &str) -> Result<Option<SchemaDoubt>, SchemaFault> {
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
            r##"{"$ref":"#/$defs/a"}"##,
            r##"{"$ref":"#"}"##,
            r#"{"$ref":"http://json-schema.org/draft-07/schema#"}"#,
            r#"{"default":{"$ref":"https://x"}}"#,
            r#"{"properties":{"$ref":{"type":"string"}}}"#,
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
        ] {
            assert_eq!(check(remote), Err(SchemaFault::RemoteRef), "{remote}");
        }
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
            let doubt = Some(SchemaDoubt::PatternNotLinear);
            assert_eq!(checked(wild), Ok(doubt), "{wild}");
        }
        assert_eq!(checked(r#"{"pattern":"a"}"#), Ok(None));
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
