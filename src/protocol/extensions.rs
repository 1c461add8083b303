//! Extensions: which there are, what each side says of them, and what of it goes over to the other hop (PROTOCOL D4, D0.2).
//!
//! An extension that is not named here is not understood, so it is never forwarded and never advertised (PROTOCOL D0.6).

use super::{ClientCapabilities, Features, meta};
use crate::json::{Json, Kind, Node};

/// The member of capabilities that holds them, on both sides.
pub const MEMBER: &str = "extensions";
/// Tasks that the server decides on: modern revisions only.
pub const TASKS: &str = "io.modelcontextprotocol/tasks";
/// Apps. Only clients declare it: what they can show.
pub const APPS: &str = "io.modelcontextprotocol/ui";
/// Skills. Only servers declare it.
pub const SKILLS: &str = "io.modelcontextprotocol/skills";

/// The two ways of having tasks; their words and shapes differ (PROTOCOL D3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskDesign {
    /// Core of 2025-11-25: the client asks for a task.
    Core,
    /// The extension: the server decides.
    Extension,
}

/// What a server has of what we understand.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Offers {
    /// Tool calls may become tasks.
    pub tasks: Option<TaskDesign>,
    /// Core tasks can be cancelled. Tasks of the extension always can be.
    pub cancels: bool,
    /// Declares Apps, with these settings.
    pub apps: Option<Json>,
    /// Lists skills.
    pub skills: bool,
    /// Reads directories.
    pub directories: bool,
}

impl Offers {
    /// What is in a server's `capabilities`, at a revision with these `features`.
    pub fn of(capabilities: &Json, features: &Features) -> Self {
        let root = capabilities.root();
        let extension = |id| {
            root.member(MEMBER)
                .and_then(|all| all.member(id))
                .filter(|settings| settings.kind() == Kind::Object)
        };
        let core = root.member("tasks").filter(|_| features.core_tasks);
        let augments = core
            .and_then(|tasks| tasks.member("requests"))
            .and_then(|requests| requests.member("tools"))
            .and_then(|tools| tools.member("call"))
            .is_some();
        let skills = extension(SKILLS);
        Self {
            tasks: if augments {
                Some(TaskDesign::Core)
            } else {
                extension(TASKS)
                    .filter(|_| features.task_extension)
                    .map(|_| TaskDesign::Extension)
            },
            cancels: core.and_then(|tasks| tasks.member("cancel")).is_some(),
            apps: extension(APPS).map(|settings| capabilities.slice(settings)),
            skills: skills.is_some(),
            directories: skills
                .and_then(|settings| settings.member("directoryRead"))
                .and_then(Node::as_bool)
                .unwrap_or(false),
        }
    }
}

/// Whether a client declared the tasks extension, at a revision with these `features`. Before 2026-07-28 it is undefined,
/// and a client that declares it all the same is not heard (PROTOCOL G27).
pub fn declares_tasks(client: &ClientCapabilities, features: &Features) -> bool {
    features.task_extension && settings(client, TASKS).is_some()
}

/// Whether a client can show apps.
pub fn declares_apps(client: &ClientCapabilities) -> bool {
    // The empty object, which is by far the most common.
    client.json().len() > 2 && settings(client, APPS).is_some()
}

/// The `extensions` to declare upstream for a call of this client: what it declared, as far as we understand it and the
/// server has it; `None` when that is nothing. `features` are those of the client's revision. Costs nothing for a client
/// that declares nothing.
pub fn forwarded(
    client: &ClientCapabilities,
    features: &Features,
    server: &Offers,
) -> Option<Json> {
    if client.json().len() <= 2 {
        return None;
    }
    let mut out = Vec::new();
    if server.tasks == Some(TaskDesign::Extension) && declares_tasks(client, features) {
        out.push((TASKS, Json::empty_object()));
    }
    // Servers do not declare it (Apps, capability negotiation), so it goes to every one.
    if let Some(settings) = settings(client, APPS) {
        out.push((APPS, settings));
    }
    (!out.is_empty()).then(|| meta::object_of(&out))
}

/// The `extensions` to declare where lists are read for everybody: apps are shown by some clients, and pass by the others.
pub fn shown() -> Json {
    let types = Json::array(&[Json::string("text/html;profile=mcp-app")]);
    let settings = meta::object_of(&[("mimeTypes", types)]);
    meta::object_of(&[(APPS, settings)])
}

fn settings(client: &ClientCapabilities, id: &str) -> Option<Json> {
    let json = client.json();
    let settings = json.root().member(MEMBER)?.member(id)?;
    (settings.kind() == Kind::Object).then(|| json.slice(settings))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{json::Limits, protocol::Revision};

    fn json(text: &'static str) -> Json {
        Json::parse(text.into(), &Limits::CLIENT).unwrap()
    }

    const CORE: &str =
        r#"{"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}},"extensions":{}}"#;
    const MODERN: &str = r#"{"extensions":{"io.modelcontextprotocol/tasks":{},"io.modelcontextprotocol/skills":{"directoryRead":true},"com.example/x":{}}}"#;

    #[test]
    fn each_design_of_tasks_counts_only_in_its_own_revision() {
        let of = |text, revision: Revision| Offers::of(&json(text), revision.features()).tasks;
        assert_eq!(of(CORE, Revision::V2025_11_25), Some(TaskDesign::Core));
        assert_eq!(of(CORE, Revision::V2025_06_18), None);
        assert_eq!(of(CORE, Revision::V2026_07_28), None);
        assert_eq!(
            of(MODERN, Revision::V2026_07_28),
            Some(TaskDesign::Extension)
        );
        assert_eq!(of(MODERN, Revision::V2025_11_25), None);
        let unasked = r#"{"tasks":{"list":{},"cancel":{}}}"#;
        assert_eq!(of(unasked, Revision::V2025_11_25), None);
    }

    #[test]
    fn what_is_forwarded_is_declared_understood_and_known_to_the_server() {
        let client = r#"{"extensions":{"com.example/x":{},"io.modelcontextprotocol/tasks":{"odd":1},"io.modelcontextprotocol/ui":{"mimeTypes":["a/b"]}}}"#;
        let client = ClientCapabilities::read(json(client)).unwrap();
        let modern = Offers::of(&json(MODERN), Revision::V2026_07_28.features());
        assert!(modern.skills && modern.directories);
        let now = Revision::V2026_07_28.features();
        let before = Revision::V2025_11_25.features();
        assert_eq!(
            forwarded(&client, before, &modern).unwrap().as_str(),
            r#"{"io.modelcontextprotocol/ui":{"mimeTypes":["a/b"]}}"#
        );
        assert_eq!(
            forwarded(&client, now, &modern).unwrap().as_str(),
            r#"{"io.modelcontextprotocol/tasks":{},"io.modelcontextprotocol/ui":{"mimeTypes":["a/b"]}}"#
        );
        assert_eq!(
            forwarded(&client, now, &Offers::default())
                .unwrap()
                .as_str(),
            r#"{"io.modelcontextprotocol/ui":{"mimeTypes":["a/b"]}}"#
        );
        assert_eq!(forwarded(&ClientCapabilities::NONE, now, &modern), None);
        let other = json(r#"{"sampling":{},"extensions":{"com.example/x":{}}}"#);
        assert_eq!(
            forwarded(&ClientCapabilities::read(other).unwrap(), now, &modern),
            None
        );
    }
}
