//! JSON Schema of usher.yaml, made from the types that read it, so that the two cannot drift apart.

use schemars::{Schema, generate::SchemaSettings, json_schema, transform::RecursiveTransform};

use super::raw::Raw;
use crate::json::Json;

/// The schema, draft 2020-12.
pub fn schema() -> Json {
    let schema = SchemaSettings::draft2020_12()
        .with_transform(RecursiveTransform(|schema: &mut Schema| {
            // What serde calls a default is "absent": the real defaults are module values, told in the descriptions.
            drop(schema.remove("default"));
            allow_nothing(schema);
        }))
        .into_generator()
        .into_root_schema_for::<Raw>();
    Json::of(&schema)
}

/// A key with nothing behind it is read as if it were not there: so a block looks whose keys are all commented out.
fn allow_nothing(schema: &mut Schema) {
    let required = schema.get("required").cloned().unwrap_or_default();
    let is_required = |name: &str| {
        let mut names = required.as_array().into_iter().flatten();
        names.any(|required| required == name)
    };
    let members = schema.get_mut("properties");
    let members = members.and_then(|members| members.as_object_mut());
    for (name, member) in members.into_iter().flatten() {
        let Some(described) = member.as_object_mut().filter(|_| !is_required(name)) else {
            continue;
        };
        let description = described.remove("description");
        let mut either = json_schema!({ "anyOf": [member.take(), { "type": "null" }] });
        if let Some(description) = description {
            either.insert("description".to_owned(), description);
        }
        *member = either.to_value();
    }
}
