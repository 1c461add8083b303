//! Tasks in the words of 2025-11-25, made of the canonical ones (PROTOCOL D3).

use crate::{
    json::{Edits, Fate, Json, Kind, Node},
    protocol::meta,
};

/// A task just made: `CreateTaskResult`.
pub(super) fn created(task: &Json) -> Json {
    let mut members = vec![("task", state(task.root()))];
    let about = task
        .root()
        .member(meta::META)
        .filter(|about| about.kind() == Kind::Object);
    if let Some(about) = about {
        let kept: Vec<_> = about
            .members()
            .filter(|member| meta::goes_out(&member.key) || member.key == meta::IMMEDIATE_RESPONSE)
            .map(|member| (member.key, task.slice(member.value)))
            .collect();
        let kept: Vec<_> = kept
            .iter()
            .map(|(key, value)| (&**key, value.clone()))
            .collect();
        if !kept.is_empty() {
            members.push((meta::META, meta::object_of(&kept)));
        }
    }
    meta::object_of(&members)
}

/// A task's state: of `tasks/get` and `tasks/cancel`.
pub(super) fn state(task: Node<'_>) -> Json {
    let raw = Json::composed(task.raw().to_owned().into());
    let mut edits = Edits::new();
    let mut more = Vec::new();
    let fate = |key: &str, _: Node<'_>| match key {
        "ttlMs"
        | "pollIntervalMs"
        | "resultType"
        | "result"
        | "error"
        | "inputRequests"
        | meta::META => Fate::Remove,
        _ => Fate::Keep,
    };
    let value = |key| raw.root().member(key).map(|value| raw.slice(value));
    more.extend(value("ttlMs").map(|ttl| ("ttl", ttl)));
    more.extend(value("pollIntervalMs").map(|pause| ("pollInterval", pause)));
    edits.members(raw.root(), fate, &more);
    raw.splice(&edits)
}

/// The answer to `tasks/list`.
pub(super) fn listed(result: &Json) -> Json {
    let tasks = result.root().member("tasks");
    let states: Vec<_> = tasks
        .into_iter()
        .flat_map(Node::elements)
        .map(state)
        .collect();
    let mut edits = Edits::new();
    if let Some(tasks) = tasks {
        edits.replace(tasks, Json::array(&states));
    }
    result.splice(&edits)
}

/// A task's result, and the params of what it asks, say which task's they are.
pub(super) fn related(object: &Json, handle: &str) -> Json {
    let related = meta::object_of(&[("taskId", Json::string(handle))]);
    let mut edits = Edits::new();
    meta::stamp(&mut edits, object.root(), &[(meta::RELATED_TASK, related)]);
    object.splice(&edits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Limits;

    fn json(text: &'static str) -> Json {
        Json::parse(text.into(), &Limits::CLIENT).unwrap()
    }

    #[test]
    fn states_are_told_in_the_words_of_the_core() {
        let task = json(
            r#"{"taskId":"h","status":"working","ttlMs":null,"createdAt":"c","pollIntervalMs":5,"resultType":"complete","x":1}"#,
        );
        assert_eq!(
            state(task.root()).as_str(),
            r#"{"taskId":"h","status":"working","createdAt":"c","x":1,"ttl":null,"pollInterval":5}"#
        );
        let task = json(
            r#"{"taskId":"h","ttlMs":7,"_meta":{"io.modelcontextprotocol/model-immediate-response":"wait","io.modelcontextprotocol/serverInfo":{},"v":1}}"#,
        );
        assert_eq!(
            created(&task).as_str(),
            r#"{"task":{"taskId":"h","ttl":7},"_meta":{"io.modelcontextprotocol/model-immediate-response":"wait","v":1}}"#
        );
        let list = json(r#"{"tasks":[{"taskId":"h","ttlMs":7}],"nextCursor":"n"}"#);
        assert_eq!(
            listed(&list).as_str(),
            r#"{"tasks":[{"taskId":"h","ttl":7}],"nextCursor":"n"}"#
        );
    }
}
