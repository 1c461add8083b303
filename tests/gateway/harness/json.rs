//! Looking at JSON text without rebuilding it, and quoting.

use serde_json::{Value, value::RawValue};

/// A tree, for assertions on single values.
pub(crate) fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in {text}"))
}

/// The members of an object in their order, their values as written.
pub(crate) fn members(text: &str) -> Vec<(String, String)> {
    struct InOrder(Vec<(String, String)>);

    impl<'de> serde::Deserialize<'de> for InOrder {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            struct Visit;
            impl<'de> serde::de::Visitor<'de> for Visit {
                type Value = InOrder;

                fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    f.write_str("an object")
                }

                fn visit_map<A: serde::de::MapAccess<'de>>(
                    self,
                    mut map: A,
                ) -> Result<InOrder, A::Error> {
                    let mut members = Vec::new();
                    while let Some((key, value)) = map.next_entry::<String, Box<RawValue>>()? {
                        members.push((key, value.get().to_owned()));
                    }
                    Ok(InOrder(members))
                }
            }
            deserializer.deserialize_map(Visit)
        }
    }

    serde_json::from_str::<InOrder>(text)
        .unwrap_or_else(|error| panic!("{error} in {text}"))
        .0
}

/// The text of one member, if the text is an object that has it.
pub(crate) fn member(text: &str, key: &str) -> Option<String> {
    if !text.trim_start().starts_with('{') {
        return None;
    }
    let found = members(text).into_iter().find(|(name, _)| name == key);
    found.map(|(_, value)| value)
}

/// `text` as a JSON string.
pub(crate) fn quote(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}

/// What `key` holds in each element of the array `list` in an object.
pub(crate) fn names(result: &Value, list: &str, key: &str) -> Vec<String> {
    let items = result[list]
        .as_array()
        .unwrap_or_else(|| panic!("no `{list}` in {result}"));
    items
        .iter()
        .map(|item| item[key].as_str().unwrap().to_owned())
        .collect()
}
