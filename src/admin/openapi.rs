//! The document of the API, OpenAPI 3.1, made from the table of operations and from the types that are served.
//! So it cannot say anything else.

use std::collections::BTreeMap;

use schemars::{Schema, SchemaGenerator, generate::SchemaSettings, json_schema};
use serde::Serialize;

use super::{
    Role, follow,
    operation::{Operation, ResponseKind, Verb, Who},
    paging::{Parameter, Shape},
    problem,
};
use crate::json::Json;

#[derive(Serialize)]
struct Document<D> {
    openapi: &'static str,
    info: Info,
    paths: BTreeMap<&'static str, BTreeMap<&'static str, Described>>,
    components: Components<D>,
}

#[derive(Serialize)]
struct Info {
    title: &'static str,
    version: &'static str,
    description: &'static str,
}

#[derive(Serialize)]
struct Components<D> {
    schemas: D,
    #[serde(rename = "securitySchemes")]
    schemes: BTreeMap<&'static str, Scheme>,
}

#[derive(Serialize)]
struct Scheme {
    #[serde(rename = "type")]
    kind: &'static str,
    scheme: &'static str,
    description: &'static str,
}

#[derive(Serialize)]
struct Described {
    #[serde(rename = "operationId")]
    id: &'static str,
    tags: [&'static str; 1],
    description: String,
    /// For each way in, the role that it needs, where any credential will not do.
    security: Vec<BTreeMap<&'static str, Vec<&'static str>>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parameters: Vec<Place>,
    #[serde(rename = "requestBody", skip_serializing_if = "Option::is_none")]
    body: Option<Sent>,
    responses: BTreeMap<String, Answered>,
}

#[derive(Serialize)]
struct Place {
    name: String,
    #[serde(rename = "in")]
    place: &'static str,
    description: String,
    required: bool,
    schema: Schema,
}

#[derive(Serialize)]
struct Sent {
    required: bool,
    content: BTreeMap<&'static str, Media>,
}

#[derive(Serialize)]
struct Answered {
    description: &'static str,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    headers: BTreeMap<&'static str, Header>,
    content: BTreeMap<&'static str, Media>,
}

#[derive(Serialize)]
struct Header {
    description: &'static str,
    required: bool,
    schema: Schema,
}

#[derive(Serialize)]
struct Media {
    schema: Schema,
}

const DESCRIPTION: &str = "What Usher's admin listener serves. Problems are told as RFC 9457 has it, with a `reason` \
    that stays the same. What HTTP itself refuses, such as a foreign `Host`, is refused in plain text before anything here is \
    looked at. Requests that a page of another origin sends are refused. Lists are told in pages: `next_cursor` of one is \
    `cursor` of the next.";

/// The document of these operations.
pub(super) fn of(operations: &[Operation]) -> Json {
    let mut generator = SchemaSettings::draft2020_12()
        .with(|settings| {
            settings.definitions_path = "/components/schemas".into();
            settings.meta_schema = None;
        })
        .for_serialize()
        .into_generator();
    let mut paths: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
    for operation in operations {
        let verb = match operation.verb {
            Verb::Get => "get",
            Verb::Post => "post",
        };
        let described = described(operation, &mut generator);
        paths
            .entry(operation.path)
            .or_default()
            .insert(verb, described);
    }
    let bearer = Scheme {
        kind: "http",
        scheme: "bearer",
        description: "`admin.token` for operators, `admin.auditor_token` for auditors, who change nothing.",
    };
    Json::of(&Document {
        openapi: "3.1.0",
        info: Info {
            title: "Usher admin API",
            version: env!("CARGO_PKG_VERSION"),
            description: DESCRIPTION,
        },
        paths,
        components: Components {
            schemas: generator.take_definitions(true),
            schemes: BTreeMap::from([("bearer", bearer)]),
        },
    })
}

fn described(operation: &Operation, generator: &mut SchemaGenerator) -> Described {
    let named = operation.path.split('/').filter_map(|part| {
        let name = part.strip_prefix('{')?.strip_suffix('}')?;
        Some(in_path(name))
    });
    let asked = operation.query.iter().map(in_query);
    let body = (operation.verb == Verb::Post).then(|| Sent {
        required: true,
        content: BTreeMap::from([(
            "application/json",
            Media {
                schema: match operation.body {
                    Some(describe) => describe(generator),
                    None => json_schema!({ "type": "object", "additionalProperties": false }),
                },
            },
        )]),
    });
    let mut tag = operation.path.split('/').skip(1);
    let tag = match tag.next() {
        Some("api") => tag.next().unwrap_or("api"),
        _ => "gateway",
    };
    let tag = if tag.contains('.') { "gateway" } else { tag };
    let role = match operation.who {
        Who::Having(Role::Operator) => " For operators.",
        Who::Having(Role::Auditor) | Who::Anybody | Who::Neighbours => "",
    };
    let needed = match operation.who {
        Who::Having(Role::Operator) => vec![Role::Operator.word()],
        Who::Having(Role::Auditor) | Who::Anybody | Who::Neighbours => Vec::new(),
    };
    let credential = BTreeMap::from([("bearer", needed)]);
    Described {
        id: operation.id,
        tags: [tag],
        description: format!("{}{role}", operation.about),
        security: match operation.who {
            Who::Having(_) => vec![credential],
            Who::Anybody | Who::Neighbours => vec![BTreeMap::new(), credential],
        },
        parameters: named.chain(asked).collect(),
        body,
        responses: responses(operation, generator),
    }
}

fn responses(operation: &Operation, generator: &mut SchemaGenerator) -> BTreeMap<String, Answered> {
    let (media, schema) = match operation.answer {
        ResponseKind::Json(describe) | ResponseKind::Verdict(describe) => {
            ("application/json", describe(generator))
        }
        ResponseKind::Document => ("application/json", json_schema!({ "type": "object" })),
        ResponseKind::Text(media) => (media, json_schema!({ "type": "string" })),
        ResponseKind::Events(name, describe) => {
            // The data of each event is described, by its name; the stream of them is text.
            let data = describe(generator);
            let missed = generator.subschema_for::<follow::Missed>();
            let stream = json_schema!({
                "type": "string",
                "x-events": { name: data, (follow::MISSED): missed },
            });
            ("text/event-stream", stream)
        }
    };
    let answered = |description, media, schema| Answered {
        description,
        headers: BTreeMap::new(),
        content: BTreeMap::from([(media, Media { schema })]),
    };
    let mut all = BTreeMap::new();
    if matches!(operation.answer, ResponseKind::Verdict(_)) {
        let not_so = answered("It is not so.", media, schema.clone());
        all.insert("503".to_owned(), not_so);
    }
    all.insert("200".to_owned(), answered("As asked.", media, schema));
    let credential: &[u16] = match operation.who {
        Who::Having(_) | Who::Neighbours => &[401, 429],
        Who::Anybody => &[],
    };
    let body: &[u16] = match operation.verb {
        Verb::Get => &[],
        Verb::Post => &[408, 413, 415],
    };
    if !operation.query.is_empty() {
        let text = json_schema!({ "type": "string" });
        let told = answered("The target is too long.", "text/plain; charset=utf-8", text);
        all.insert("414".to_owned(), told);
    }
    for status in [400, 403]
        .iter()
        .chain(credential)
        .chain(body)
        .chain(operation.problems)
    {
        let schema = generator.subschema_for::<problem::ProblemBody<'_>>();
        let mut told = Answered {
            headers: headers(*status),
            ..answered(went_wrong(*status), "application/problem+json", schema)
        };
        if *status == 403 {
            // What HTTP itself refuses: an origin or a host that is none of ours.
            let schema = json_schema!({ "type": "string" });
            told.content
                .insert("text/plain; charset=utf-8", Media { schema });
        }
        all.insert(status.to_string(), told);
    }
    all
}

/// What a problem with this status is, as far as the status says.
const fn went_wrong(status: u16) -> &'static str {
    match status {
        401 => "The credential is missing, or none of this listener.",
        403 => {
            "A page of another origin sent this, or it is for operators and the credential is an auditor's."
        }
        429 => "Too many wrong credentials came from this address.",
        503 => "Too many do this at once, or what it takes cannot be had now.",
        _ => "What went wrong.",
    }
}

/// What the head of a problem with this status says beside.
fn headers(status: u16) -> BTreeMap<&'static str, Header> {
    let wait = |required| Header {
        description: "After how many seconds to try again.",
        required,
        schema: json_schema!({ "type": "integer", "minimum": 1 }),
    };
    match status {
        401 => BTreeMap::from([(
            "WWW-Authenticate",
            Header {
                description: "What to come with.",
                required: true,
                schema: json_schema!({ "type": "string", "const": "Bearer" }),
            },
        )]),
        429 => BTreeMap::from([("Retry-After", wait(true))]),
        // Not where nobody knows when it can be had again.
        503 => BTreeMap::from([("Retry-After", wait(false))]),
        _ => BTreeMap::new(),
    }
}

fn in_path(name: &str) -> Place {
    let pattern = match name {
        "upstream" => "^[a-z][a-z0-9-]{0,31}$",
        "session" => "^[0-9a-f]{16}$",
        _ => "^[1-9][0-9]{0,18}$",
    };
    Place {
        name: name.to_owned(),
        place: "path",
        description: format!("Which {name}."),
        required: true,
        schema: json_schema!({ "type": "string", "pattern": pattern }),
    }
}

fn in_query(parameter: &Parameter) -> Place {
    Place {
        name: parameter.name.to_owned(),
        place: "query",
        description: parameter.about.to_owned(),
        required: parameter.needed,
        schema: match parameter.shape {
            Shape::Text(most) => {
                json_schema!({ "type": "string", "minLength": 1, "maxLength": most })
            }
            Shape::Number(least, most) => {
                json_schema!({ "type": "integer", "minimum": least, "maximum": most })
            }
            Shape::Word(words) => json_schema!({ "type": "string", "enum": words }),
            Shape::Time => json_schema!({ "type": "string", "format": "date-time" }),
        },
    }
}
