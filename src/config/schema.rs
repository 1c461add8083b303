//! JSON Schema of usher.yaml, made from the types that read it, so that the two cannot drift apart.

use schemars::{Schema, generate::SchemaSettings, transform::RecursiveTransform};

use super::raw::Raw;
use crate::json::Json;

/// The schema, draft 2020-12.
pub fn schema() -> Json {
    let schema = SchemaSettings::draft2020_12()
        .with_transform(RecursiveTransform(|schema: &mut Schema| {
            // What serde calls a default is "absent": the real defaults are module values, told in the descriptions.
            drop(schema.remove("default"));
        }))
        .into_generator()
        .into_root_schema_for::<Raw>();
    Json::of(&schema)
}
