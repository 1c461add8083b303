//! What differs between the dialects of JSON Schema.

use crate::json::Node;

/// A dialect; later ones are greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Dialect {
    Draft4,
    Draft6,
    Draft7,
    Draft2019,
    Draft2020,
}

/// The dialects by the address of their meta-schema.
const KNOWN: [(&str, Dialect); 5] = [
    (
        "https://json-schema.org/draft/2020-12/schema",
        Dialect::Draft2020,
    ),
    (
        "https://json-schema.org/draft/2019-09/schema",
        Dialect::Draft2019,
    ),
    ("http://json-schema.org/draft-07/schema", Dialect::Draft7),
    ("http://json-schema.org/draft-06/schema", Dialect::Draft6),
    ("http://json-schema.org/draft-04/schema", Dialect::Draft4),
];

impl Dialect {
    /// That of a schema: what it names, else the newest (PROTOCOL A4); `None` when it names one that is not known.
    pub(super) fn of(schema: Node<'_>) -> Option<Self> {
        match schema.member("$schema").and_then(Node::as_str) {
            Some(address) => Self::at(&address),
            None => Some(Self::Draft2020),
        }
    }

    /// That of a meta-schema's address.
    pub(super) fn at(address: &str) -> Option<Self> {
        let address = address.strip_suffix('#').unwrap_or(address);
        let known = KNOWN.iter().find(|(known, _)| *known == address);
        known.map(|(_, dialect)| *dialect)
    }

    /// Whether `$ref` hides whatever stands beside it.
    pub(super) fn lone_reference(self) -> bool {
        self <= Self::Draft7
    }

    /// Whether `items` may be an array, with `additionalItems` for the rest.
    pub(super) fn items_in_order(self) -> bool {
        self <= Self::Draft2019
    }

    /// Whether the bounds that are not reached are marks on those that are.
    pub(super) fn exclusive_marks(self) -> bool {
        self == Self::Draft4
    }

    /// The name of the member that gives a subschema an address.
    pub(super) fn id(self) -> &'static str {
        if self == Self::Draft4 { "id" } else { "$id" }
    }
}
