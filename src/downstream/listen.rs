//! `subscriptions/listen`: what a client asks to hear, and how it is told (PROTOCOL B7, H1).
//!
//! Guarantees: every message of a listen, its closing result included, names the listen by the client's own id as spelled;
//! what is acknowledged is what is in force. Deliberately absent: whether anything changes, which is the hub's to know.

use std::{collections::HashSet, sync::Arc};

use bytes::Bytes;
use http::StatusCode;

use super::problem::Problem;
use crate::{
    call::{Change, Filter},
    json::{Edits, Fate, Json, Kind, Node},
    jsonrpc::{Request, RequestId, RpcError, encode},
    protocol::{ClientCapabilities, codes, extensions, members, meta, methods},
};

/// Reads what a listen asks for. Members that are not known are not looked at.
///
/// # Errors
/// In-band for params of the wrong shape; HTTP 400 and `-32021` for tasks without their extension (PROTOCOL B7).
pub(super) fn read(
    request: &Request,
    params: &Json,
    capabilities: &ClientCapabilities,
) -> Result<Filter, Problem> {
    let invalid = |text: String| {
        let error = RpcError::new(codes::INVALID_PARAMS, text);
        Problem::new(
            StatusCode::OK,
            Some(request.id.clone()),
            error,
            "invalid_params",
        )
    };
    let asked = params
        .root()
        .member("notifications")
        .filter(|asked| asked.kind() == Kind::Object)
        .ok_or_else(|| invalid("`params.notifications` is missing or not an object".into()))?;
    let mut filter = Filter::default();
    for member in asked.members() {
        let flag = || {
            let value = member.value.as_bool();
            value.ok_or_else(|| invalid(format!("`notifications.{}` is not a boolean", member.key)))
        };
        let texts = || {
            let texts = texts(member.value);
            texts.ok_or_else(|| {
                invalid(format!(
                    "`notifications.{}` is not an array of strings",
                    member.key
                ))
            })
        };
        match member.key.as_ref() {
            members::TOOLS_CHANGED => filter.tools = flag()?,
            members::PROMPTS_CHANGED => filter.prompts = flag()?,
            members::RESOURCES_CHANGED => filter.resources = flag()?,
            members::SUBSCRIPTIONS => filter.subscriptions = texts()?,
            members::TASK_IDS => {
                filter.tasks = texts()?;
                tasks_declared(request, capabilities)?;
            }
            _ => {}
        }
    }
    Ok(filter)
}

/// The strings of an array, each once.
fn texts(array: Node<'_>) -> Option<Vec<Arc<str>>> {
    if array.kind() != Kind::Array {
        return None;
    }
    let mut seen = HashSet::new();
    let mut texts = Vec::new();
    for element in array.elements() {
        let text: Arc<str> = element.as_str()?.as_ref().into();
        if seen.insert(text.clone()) {
            texts.push(text);
        }
    }
    Some(texts)
}

fn tasks_declared(request: &Request, capabilities: &ClientCapabilities) -> Result<(), Problem> {
    let tasks = meta::object_of(&[(extensions::TASKS, Json::empty_object())]);
    let needed = meta::object_of(&[(extensions::MEMBER, tasks)]);
    if capabilities.cover(&needed) {
        return Ok(());
    }
    let data = meta::object_of(&[("requiredCapabilities", needed)]);
    let error = RpcError {
        data: Some(data),
        ..RpcError::new(
            codes::MISSING_CAPABILITY,
            "`taskIds` needs the tasks extension, which the request does not declare",
        )
    };
    let id = Some(request.id.clone());
    Err(Problem::new(
        StatusCode::BAD_REQUEST,
        id,
        error,
        "capability_missing",
    ))
}

/// A client that takes no stream cannot listen: there is no other form of answer.
pub(super) fn needs_stream(request: &Request) -> Problem {
    let error = RpcError::new(
        codes::INVALID_REQUEST,
        "the answer is an event stream: send `accept: application/json, text/event-stream`",
    );
    let id = Some(request.id.clone());
    Problem::new(StatusCode::NOT_ACCEPTABLE, id, error, "invalid_params")
}

/// The frame that says what of the listen `id` is in force.
pub(super) fn acknowledged(id: &RequestId, filter: &Filter) -> Bytes {
    let flags = [
        (members::TOOLS_CHANGED, filter.tools),
        (members::PROMPTS_CHANGED, filter.prompts),
        (members::RESOURCES_CHANGED, filter.resources),
    ];
    let lists = [
        (members::SUBSCRIPTIONS, &filter.subscriptions),
        (members::TASK_IDS, &filter.tasks),
    ];
    let flags = flags
        .into_iter()
        .filter(|(_, honoured)| *honoured)
        .map(|(name, _)| (name, Json::of(&true)));
    let lists = lists
        .into_iter()
        .filter(|(_, texts)| !texts.is_empty())
        .map(|(name, texts)| {
            let texts: Vec<_> = texts.iter().map(|text| Json::string(text)).collect();
            (name, Json::array(&texts))
        });
    let honoured: Vec<_> = flags.chain(lists).collect();
    let params = meta::object_of(&[
        (meta::META, of_listen(id)),
        ("notifications", meta::object_of(&honoured)),
    ]);
    encode::notification(methods::ACKNOWLEDGED, Some(&params))
}

/// The frame that tells the listen `id` of a change.
pub(super) fn changed(id: &RequestId, change: &Change) -> Bytes {
    let mut members = vec![(meta::META, of_listen(id))];
    let method = match change {
        Change::List(kind) => kind.changed(),
        Change::Resource(uri) => {
            members.push(("uri", Json::string(uri)));
            methods::RESOURCE_UPDATED
        }
        Change::Task(state) => return task(id, state),
    };
    encode::notification(method, Some(&meta::object_of(&members)))
}

/// The frame that tells the listen `id` of a task's state: what `tasks/get` would have answered, without what makes it an
/// answer.
fn task(id: &RequestId, state: &Json) -> Bytes {
    let mut edits = Edits::new();
    let fate = |key: &str, value: Node<'_>| match key {
        "resultType" | meta::META => Fate::Remove,
        // What stands in it came over another hop.
        "result" => {
            let result = state.slice(value);
            let mut edits = Edits::new();
            meta::rewrite(&mut edits, result.root(), &[]);
            Fate::Replace(result.splice(&edits))
        }
        _ => Fate::Keep,
    };
    let mut own = vec![(meta::SUBSCRIPTION_ID, id.json().clone())];
    // What was done to it here, as the answer would have told it.
    let marks = state.root().member(meta::META);
    let marks = marks.and_then(|all| all.member(meta::CONTENT));
    own.extend(marks.map(|marks| (meta::CONTENT, state.slice(marks))));
    edits.members(state.root(), fate, &[(meta::META, meta::object_of(&own))]);
    encode::notification(methods::TASK, Some(&state.splice(&edits)))
}

/// The closing result of the listen `id`, with its name in it.
pub(super) fn closing(id: &RequestId, result: &Json) -> Json {
    let mut edits = Edits::new();
    let own = [(meta::SUBSCRIPTION_ID, id.json().clone())];
    meta::stamp(&mut edits, result.root(), &own);
    result.splice(&edits)
}

/// What follows the closing result on a pipe: the word that the listen `id` is over (PROTOCOL H1).
pub(super) fn ended(id: &RequestId) -> Bytes {
    let params = meta::object_of(&[
        ("requestId", id.json().clone()),
        ("reason", Json::string("the gateway ends this subscription")),
    ]);
    encode::notification(methods::CANCELLED, Some(&params))
}

fn of_listen(id: &RequestId) -> Json {
    meta::object_of(&[(meta::SUBSCRIPTION_ID, id.json().clone())])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        json::Limits,
        jsonrpc::{Frame, Message, decode},
        protocol::methods::ListKind,
    };

    fn request(id: &str, notifications: &str, capabilities: &str) -> Result<Filter, Problem> {
        let text = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"subscriptions/listen","params":{{{notifications}}}}}"#
        );
        let Ok(Message::One(Frame::Request(request))) = decode(text.into(), &Limits::CLIENT) else {
            panic!()
        };
        let capabilities =
            Json::parse(Bytes::from(capabilities.to_owned()), &Limits::CLIENT).unwrap();
        let capabilities = ClientCapabilities::read(capabilities).unwrap();
        let params = request.params.clone().unwrap();
        read(&request, &params, &capabilities)
    }

    fn id(text: &str) -> RequestId {
        let text = format!(r#"{{"jsonrpc":"2.0","id":{text},"method":"m"}}"#);
        match decode(text.into(), &Limits::CLIENT) {
            Ok(Message::One(Frame::Request(request))) => request.id,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_filter_is_read_once_each_and_unknown_members_are_not_looked_at() {
        let filter = request(
            "1",
            r#""notifications":{"toolsListChanged":true,"promptsListChanged":false,"resourceSubscriptions":["a:1","a:2","a:1"],"x":[{}]}"#,
            "{}",
        )
        .unwrap();
        assert_eq!(
            (filter.tools, filter.prompts, filter.resources),
            (true, false, false)
        );
        let uris: Vec<_> = filter.subscriptions.iter().map(|uri| &**uri).collect();
        assert_eq!(uris, ["a:1", "a:2"]);
        assert!(filter.tasks.is_empty());
    }

    #[test]
    fn params_of_another_shape_are_refused_in_band() {
        for bad in [
            "",
            r#""notifications":[]"#,
            r#""notifications":{"toolsListChanged":1}"#,
            r#""notifications":{"resourceSubscriptions":"a:1"}"#,
            r#""notifications":{"resourceSubscriptions":[1]}"#,
        ] {
            let problem = request("1", bad, "{}").unwrap_err();
            assert_eq!(
                (problem.status, problem.error.code),
                (StatusCode::OK, -32602),
                "{bad}"
            );
        }
    }

    #[test]
    fn task_ids_need_the_tasks_extension() {
        let asked = r#""notifications":{"taskIds":["t"]}"#;
        let problem = request("1", asked, r#"{"extensions":{}}"#).unwrap_err();
        assert_eq!((problem.status.as_u16(), problem.error.code), (400, -32021));
        let data = problem.error.data.unwrap();
        assert_eq!(
            data.root().member("requiredCapabilities").unwrap().raw(),
            r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#
        );
        let declared = r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;
        assert_eq!(request("1", asked, declared).unwrap().tasks.len(), 1);
    }

    #[test]
    fn every_message_names_the_listen_by_the_clients_own_id() {
        let filter = Filter {
            prompts: true,
            subscriptions: vec!["a:1".into()],
            ..Filter::default()
        };
        assert_eq!(
            &acknowledged(&id("\"7\""), &filter)[..],
            br#"{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"7"},"notifications":{"promptsListChanged":true,"resourceSubscriptions":["a:1"]}}}"#
        );
        assert_eq!(
            &changed(&id("7"), &Change::Resource("a:1".into()))[..],
            br#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":7},"uri":"a:1"}}"#
        );
        assert_eq!(
            &changed(&id("7"), &Change::List(ListKind::Templates))[..],
            br#"{"jsonrpc":"2.0","method":"notifications/resources/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":7}}}"#
        );
        let result =
            Json::parse(Bytes::from_static(br#"{"_meta":{"a":1}}"#), &Limits::CLIENT).unwrap();
        assert_eq!(
            closing(&id("7"), &result).as_str(),
            r#"{"_meta":{"a":1,"io.modelcontextprotocol/subscriptionId":7}}"#
        );
        assert!(ended(&id("7")).starts_with(
            br#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7,"#
        ));
    }
}
