//! The members of what clients send: which objects are the protocol's, and what their members are called, in every revision.
//!
//! Serves one purpose, beside naming what a listen asks to hear: a name that a careless server would take for one of these is
//! refused before it gets there (SECURITY MSG-3). What belongs to tools, forms, extensions and vendors is data; its names may
//! be anything.

use super::{extensions, meta, methods, trace};
use crate::{
    json::{Kind, Node},
    jsonrpc::alike::alike,
};

/// An object of the protocol: its members and what each holds.
#[derive(Debug)]
struct Shape(&'static [(&'static str, Inside)]);

/// What a member holds, as far as names go.
#[derive(Debug, Clone, Copy)]
enum Inside {
    /// No names, or names that are nobody's business.
    Data,
    /// An object, or an array of them.
    Of(&'static Shape),
    /// An object whose names are data, and whose values are answers of a client.
    Answers,
}

use Inside::{Answers, Data, Of};

/// A name that is like this one of the protocol's without being it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a member's name only looks like the protocol's `{0}`")]
pub struct Alike(pub &'static str);

/// Params of requests and notifications of clients.
static PARAMS: Shape = Shape(&[
    ("name", Data),
    ("arguments", Data),
    (meta::META, Of(&REQUEST_META)),
    ("uri", Data),
    ("cursor", Data),
    ("ref", Of(&REFERENCE)),
    ("argument", Of(&ARGUMENT)),
    ("context", Of(&CONTEXT)),
    ("inputResponses", Answers),
    ("requestState", Data),
    ("taskId", Data),
    ("task", Of(&TASK)),
    ("level", Data),
    ("notifications", Of(&FILTER)),
    ("protocolVersion", Data),
    ("capabilities", Of(&CAPABILITIES)),
    ("clientInfo", Of(&IMPLEMENTATION)),
    ("requestId", Data),
    ("reason", Data),
    (meta::PROGRESS_TOKEN, Data),
    ("progress", Data),
    ("total", Data),
    ("message", Data),
    ("status", Data),
    ("statusMessage", Data),
    ("createdAt", Data),
    ("lastUpdatedAt", Data),
    ("ttl", Data),
    ("pollInterval", Data),
]);

/// `_meta` of whatever a client sends (PROTOCOL A7).
static REQUEST_META: Shape = Shape(&[
    (meta::PROGRESS_TOKEN, Data),
    (meta::PROTOCOL_VERSION, Data),
    (meta::CLIENT_CAPABILITIES, Of(&CAPABILITIES)),
    (meta::CLIENT_INFO, Of(&IMPLEMENTATION)),
    (meta::LOG_LEVEL, Data),
    (meta::RELATED_TASK, Of(&TASK)),
    (meta::SUBSCRIPTION_ID, Data),
    (meta::SERVER_INFO, Of(&IMPLEMENTATION)),
    (meta::IMMEDIATE_RESPONSE, Data),
    (trace::PARENT, Data),
    (trace::STATE, Data),
    (meta::BAGGAGE, Data),
]);

/// What a completion is for.
static REFERENCE: Shape = Shape(&[
    ("type", Data),
    ("name", Data),
    ("uri", Data),
    ("title", Data),
]);

/// The argument that is completed.
static ARGUMENT: Shape = Shape(&[("name", Data), ("value", Data)]);

/// What else is known of a completion.
static CONTEXT: Shape = Shape(&[("arguments", Data)]);

/// A task: what is asked of it, and what is told of it.
static TASK: Shape = Shape(&[
    ("taskId", Data),
    ("ttl", Data),
    ("status", Data),
    ("statusMessage", Data),
    ("createdAt", Data),
    ("lastUpdatedAt", Data),
    ("pollInterval", Data),
]);

/// In `notifications` of a listen: whether to hear that the list of tools changed.
pub const TOOLS_CHANGED: &str = "toolsListChanged";
/// In `notifications` of a listen: whether to hear that the list of prompts changed.
pub const PROMPTS_CHANGED: &str = "promptsListChanged";
/// In `notifications` of a listen: whether to hear that the list of resources changed.
pub const RESOURCES_CHANGED: &str = "resourcesListChanged";
/// In `notifications` of a listen: the URIs of the resources to hear of.
pub const SUBSCRIPTIONS: &str = "resourceSubscriptions";
/// In `notifications` of a listen: the tasks to hear of.
pub const TASK_IDS: &str = "taskIds";

/// What a listen asks to hear.
static FILTER: Shape = Shape(&[
    (TOOLS_CHANGED, Data),
    (PROMPTS_CHANGED, Data),
    (RESOURCES_CHANGED, Data),
    (SUBSCRIPTIONS, Data),
    (TASK_IDS, Data),
]);

static CAPABILITIES: Shape = Shape(&[
    ("roots", Of(&ROOTS_CAPABILITY)),
    ("sampling", Of(&SAMPLING_CAPABILITY)),
    ("elicitation", Of(&ELICITATION_CAPABILITY)),
    ("tasks", Of(&TASKS_CAPABILITY)),
    (extensions::MEMBER, Of(&EXTENSIONS)),
    ("experimental", Data),
]);
/// Those that mean something here; what each is told is its own.
static EXTENSIONS: Shape = Shape(&[
    (extensions::TASKS, Data),
    (extensions::APPS, Data),
    (extensions::SKILLS, Data),
]);
static ROOTS_CAPABILITY: Shape = Shape(&[("listChanged", Data)]);
static SAMPLING_CAPABILITY: Shape = Shape(&[("context", Data), ("tools", Data)]);
static ELICITATION_CAPABILITY: Shape = Shape(&[("form", Data), ("url", Data)]);
static TASKS_CAPABILITY: Shape = Shape(&[
    ("list", Data),
    ("cancel", Data),
    ("requests", Of(&TASK_REQUESTS)),
]);
static TASK_REQUESTS: Shape = Shape(&[
    ("sampling", Of(&TASK_SAMPLING)),
    ("elicitation", Of(&TASK_ELICITATION)),
]);
static TASK_SAMPLING: Shape = Shape(&[("createMessage", Data)]);
static TASK_ELICITATION: Shape = Shape(&[("create", Data)]);

static IMPLEMENTATION: Shape = Shape(&[
    ("name", Data),
    ("version", Data),
    ("title", Data),
    ("description", Data),
    ("websiteUrl", Data),
    ("icons", Of(&ICON)),
]);
static ICON: Shape = Shape(&[
    ("src", Data),
    ("mimeType", Data),
    ("sizes", Data),
    ("theme", Data),
]);

/// What a client answers to a question.
static ANSWER: Shape = Shape(&[
    ("role", Data),
    ("content", Of(&CONTENT)),
    ("model", Data),
    ("stopReason", Data),
    ("roots", Of(&ROOT)),
    ("action", Data),
    ("resultType", Data),
    ("task", Of(&TASK)),
    ("tasks", Of(&TASK)),
    (meta::META, Of(&REQUEST_META)),
]);
static ROOT: Shape = Shape(&[
    ("uri", Data),
    ("name", Data),
    (meta::META, Of(&REQUEST_META)),
]);
/// A content block of any type.
static CONTENT: Shape = Shape(&[
    ("type", Data),
    ("text", Data),
    ("data", Data),
    ("mimeType", Data),
    ("annotations", Of(&ANNOTATIONS)),
    ("resource", Of(&RESOURCE)),
    ("id", Data),
    ("name", Data),
    ("input", Data),
    ("toolUseId", Data),
    ("content", Of(&CONTENT)),
    ("structuredContent", Data),
    ("isError", Data),
    ("uri", Data),
    ("title", Data),
    ("description", Data),
    ("size", Data),
    ("icons", Of(&ICON)),
    (meta::META, Of(&REQUEST_META)),
]);
static ANNOTATIONS: Shape = Shape(&[
    ("audience", Data),
    ("priority", Data),
    ("lastModified", Data),
]);
static RESOURCE: Shape = Shape(&[
    ("uri", Data),
    ("mimeType", Data),
    ("text", Data),
    ("blob", Data),
    (meta::META, Of(&REQUEST_META)),
]);

impl Shape {
    /// Looks at the names of `object`, and of the protocol's objects in it. What is no object is somebody else's to refuse.
    fn check(&self, object: Node<'_>) -> Result<(), Alike> {
        for field in object.fields() {
            self.member(&field.name(), field.value)?;
        }
        Ok(())
    }

    /// The same for one member.
    fn member(&self, name: &[u8], value: Node<'_>) -> Result<(), Alike> {
        let known = self.0.iter().find(|(known, _)| known.as_bytes() == name);
        match known {
            Some((_, Data)) => Ok(()),
            Some((_, Of(shape))) => match value.kind() {
                Kind::Array => value.elements().try_for_each(|one| shape.check(one)),
                Kind::Object | Kind::String | Kind::Number | Kind::Bool | Kind::Null => {
                    shape.check(value)
                }
            },
            Some((_, Answers)) => value.members().try_for_each(|one| answer(one.value)),
            None => match alike(name, self.0.iter().map(|(known, _)| *known)) {
                Some(known) => Err(Alike(known)),
                None => Ok(()),
            },
        }
    }
}

/// Looks at one member of the params of `method`. Of methods that are not the protocol's all but `_meta` is data.
///
/// # Errors
/// For a name that only looks like one of the protocol's, here or in the protocol's objects inside.
pub fn param(method: &str, name: &[u8], value: Node<'_>) -> Result<(), Alike> {
    match PARAMS.member(name, value) {
        Err(alike) if methods::is_of_clients(method) || alike.0 == meta::META || name == META => {
            Err(alike)
        }
        Err(_) | Ok(()) => Ok(()),
    }
}

const META: &[u8] = meta::META.as_bytes();

/// Looks at all params of `method`.
///
/// # Errors
/// As [`param`].
pub fn params(method: &str, params: Node<'_>) -> Result<(), Alike> {
    params
        .fields()
        .try_for_each(|field| param(method, &field.name(), field.value))
}

/// Looks at what a client answers to a question. What a form was filled with is data.
///
/// # Errors
/// As [`param`].
pub fn answer(result: Node<'_>) -> Result<(), Alike> {
    let has = |name| result.member(name).is_some();
    let form = has("action") && !["role", "model", "roots"].into_iter().any(has);
    result
        .fields()
        .filter(|field| !(form && &*field.name() == b"content"))
        .try_for_each(|field| ANSWER.member(&field.name(), field.value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::{Json, Limits};

    fn json(text: &'static str) -> Json {
        Json::parse(text.into(), &Limits::CLIENT).unwrap()
    }

    #[test]
    fn names_are_looked_at_wherever_the_protocol_gives_them_a_meaning() {
        for (text, like) in [
            (r#"{"Name":1}"#, "name"),
            (r#"{"_META":{}}"#, "_meta"),
            (r#"{"_meta":{"ProgressToken":1}}"#, "progressToken"),
            (r#"{"_meta":{"progressTo\u212aen":1}}"#, "progressToken"),
            (
                r#"{"ref":{"type":"ref/prompt","name":"a","\uff4eame":"b"}}"#,
                "name",
            ),
            (r#"{"argument":{"Value":1}}"#, "value"),
            (r#"{"context":{"Arguments":{}}}"#, "arguments"),
            (r#"{"notifications":{"TaskIds":[]}}"#, "taskIds"),
            (
                r#"{"capabilities":{"tasks":{"requests":{"sampling":{"CreateMessage":{}}}}}}"#,
                "createMessage",
            ),
            (
                r#"{"clientInfo":{"icons":[{"src":"a"},{"Src":"b"}]}}"#,
                "src",
            ),
            (
                r#"{"inputResponses":{"a":{"action":"accept"},"b":{"Action":"accept"}}}"#,
                "action",
            ),
            (
                r#"{"inputResponses":{"a":{"role":"user","content":[{"type":"text","Text":"x"}]}}}"#,
                "text",
            ),
        ] {
            assert_eq!(
                params("tools/call", json(text).root()),
                Err(Alike(like)),
                "{text}"
            );
        }
    }

    #[test]
    fn every_object_of_the_protocol_has_names_that_are_looked_at() {
        for (text, like) in [
            (r#"{"task":{"Ttl":1}}"#, "ttl"),
            (r#"{"_meta":{"TraceState":1}}"#, "tracestate"),
            (
                r#"{"_meta":{"io.modelcontextprotocol/related-task":{"TaskId":1}}}"#,
                "taskId",
            ),
            (
                r#"{"_meta":{"io.modelcontextprotocol/SubscriptionId":1}}"#,
                "io.modelcontextprotocol/subscriptionId",
            ),
            (
                r#"{"capabilities":{"roots":{"ListChanged":1}}}"#,
                "listChanged",
            ),
            (r#"{"capabilities":{"sampling":{"Tools":1}}}"#, "tools"),
            (r#"{"capabilities":{"elicitation":{"URL":1}}}"#, "url"),
            (r#"{"capabilities":{"tasks":{"List":1}}}"#, "list"),
            (
                r#"{"capabilities":{"tasks":{"requests":{"elicitation":{"Create":1}}}}}"#,
                "create",
            ),
            (
                r#"{"capabilities":{"extensions":{"io.modelcontextprotocol/Tasks":{}}}}"#,
                "io.modelcontextprotocol/tasks",
            ),
            (
                r#"{"inputResponses":{"a":{"roots":[{"uri":"a","URI":"b"}]}}}"#,
                "uri",
            ),
            (
                r#"{"inputResponses":{"a":{"content":{"annotations":{"Audience":[]}}}}}"#,
                "audience",
            ),
            (
                r#"{"inputResponses":{"a":{"content":{"resource":{"Blob":""}}}}}"#,
                "blob",
            ),
            (
                r#"{"inputResponses":{"a":{"content":[{"type":"tool_result","content":[{"Type":"text"}]}]}}}"#,
                "type",
            ),
            // Who answers two questions at once has no form whose content could be data.
            (
                r#"{"inputResponses":{"a":{"action":"x","role":"user","content":{"Text":"b"}}}}"#,
                "text",
            ),
            (
                r#"{"inputResponses":{"a":{"action":"x","Role":"user"}}}"#,
                "role",
            ),
            (
                r#"{"inputResponses":{"a":{"action":1,"roots":[{"Uri":"b"}]}}}"#,
                "uri",
            ),
        ] {
            assert_eq!(
                params("tools/call", json(text).root()),
                Err(Alike(like)),
                "{text}"
            );
        }
    }

    #[test]
    fn of_a_method_that_is_not_the_protocols_only_meta_is() {
        let vendor = |text| params("com.example/x", json(text).root());
        assert_eq!(vendor(r#"{"Level":1,"Name":{},"ref":{"Name":1}}"#), Ok(()));
        assert_eq!(vendor(r#"{"_Meta":{}}"#), Err(Alike("_meta")));
        assert_eq!(
            vendor(r#"{"_meta":{"Traceparent":1}}"#),
            Err(Alike("traceparent"))
        );
        assert_eq!(
            params(
                "notifications/com.example/x",
                json(r#"{"Status":1}"#).root()
            ),
            Ok(())
        );
    }

    #[test]
    fn names_of_data_may_be_anything() {
        for text in [
            r#"{"name":1,"x":{"Name":1}}"#,
            r#"{"arguments":{"Name":1,"_META":{}}}"#,
            r#"{"context":{"arguments":{"Arguments":1}}}"#,
            r#"{"_meta":{"com.example/progressToken":1,"com.example/x":{"Name":1}}}"#,
            r#"{"capabilities":{"experimental":{"Roots":{}},"extensions":{"Tasks":{},"io.modelcontextprotocol/ui":{"MimeTypes":[]}}}}"#,
            r#"{"inputResponses":{"Action":{"action":"accept","content":{"Text":1,"Action":2}}}}"#,
            r#"{"inputResponses":{"a":{"content":{"type":"tool_use","input":{"Type":1}}}}}"#,
            r#"{"ref":7,"argument":[1],"_meta":"x"}"#,
        ] {
            assert_eq!(params("tools/call", json(text).root()), Ok(()), "{text}");
        }
    }
}
