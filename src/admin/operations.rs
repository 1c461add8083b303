//! The table of what the admin listener serves: one row an operation, from which requests are routed and the document is made.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use http::{Method, Response};
use schemars::{Schema, SchemaGenerator};

use super::{
    Gateway, Role,
    api::{audit, catalog, configuration, findings, limits, live, policy, sessions, upstreams},
    openapi,
    paging::{Parameter, Query, Shape},
    probes,
    problem::Problem,
};
use crate::{json::Json, server::Body, tasks::Tasks};

/// One operation.
pub(super) struct Operation {
    /// Its identifier, which stays the same.
    pub(super) id: &'static str,
    pub(super) verb: Verb,
    /// Its path; `{name}` stands for one segment.
    pub(super) path: &'static str,
    pub(super) about: &'static str,
    /// Who may do it.
    pub(super) who: Who,
    /// What may be in the query.
    pub(super) query: &'static [Parameter],
    /// What the body is; without one it is an empty object where the verb has any.
    pub(super) body: Option<Describe>,
    /// What is answered.
    pub(super) answer: Told,
    /// Beside those of every operation, the statuses of its problems.
    pub(super) problems: &'static [u16],
    pub(super) run: Run,
}

/// Reads or changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Get,
    /// Has a body, which is JSON.
    Post,
}

/// Who may do something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Who {
    /// Whoever reaches the listener.
    Anybody,
    /// Whoever reaches a listener that only this machine reaches; else whoever has a credential.
    Neighbours,
    /// Whoever has a credential of this role, or a greater one.
    Having(Role),
}

/// Makes the schema of a type.
pub(super) type Describe = fn(&mut SchemaGenerator) -> Schema;
/// Does an operation.
pub(super) type Run = fn(Asked) -> BoxFuture<'static, Result<Response<Body>, Problem>>;

/// What an operation answers.
pub(super) enum Told {
    Json(Describe),
    /// The document itself.
    Document,
    /// Text of this sort.
    Text(&'static str),
    /// Events, each with data of this type.
    Events(Describe),
    /// Whether it is so in the status too: `503` where it is not.
    Verdict(Describe),
}

/// One request, as operations see it.
pub(super) struct Asked {
    pub(super) gateway: Arc<Gateway>,
    pub(super) bench: Arc<Bench>,
    /// As what they come; `None`: without a credential.
    pub(super) role: Option<Role>,
    /// Whether only this machine reaches the listener.
    pub(super) private: bool,
    /// The segments that names in the path stand for.
    pub(super) names: Vec<String>,
    pub(super) query: Query,
    /// The body; an empty object where there is none.
    pub(super) body: Json,
}

/// What is shared by requests that take long.
pub(super) struct Bench {
    pub(super) tasks: Tasks,
    /// Searches of the audit log at once.
    pub(super) searches: Arc<tokio::sync::Semaphore>,
    /// Event streams at once.
    pub(super) streams: Arc<tokio::sync::Semaphore>,
}

impl Asked {
    /// The segment that the first name in the path stands for.
    pub(super) fn name(&self) -> &str {
        self.names.first().map_or("", String::as_str)
    }
}

impl Verb {
    pub(super) const fn method(self) -> Method {
        match self {
            Self::Get => Method::GET,
            Self::Post => Method::POST,
        }
    }
}

impl Operation {
    /// The segments that its names stand for, if this is its path.
    pub(super) fn names(&self, path: &str) -> Option<Vec<String>> {
        let mut names = Vec::new();
        let (mut pattern, mut given) = (self.path.split('/'), path.split('/'));
        loop {
            match (pattern.next(), given.next()) {
                (None, None) => return Some(names),
                (Some(part), Some(text)) if part.starts_with('{') => {
                    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
                    if text.is_empty() || text.len() > 64 || !text.bytes().all(plain) {
                        return None;
                    }
                    names.push(text.to_owned());
                }
                (Some(part), Some(text)) if part == text => {}
                (_, _) => return None,
            }
        }
    }

    /// The same without a body and with no problems of its own.
    const fn get(
        id: &'static str,
        path: &'static str,
        answer: Told,
        run: Run,
        about: &'static str,
    ) -> Self {
        Self {
            id,
            verb: Verb::Get,
            path,
            about,
            who: Who::Having(Role::Auditor),
            query: &[],
            body: None,
            answer,
            problems: &[],
            run,
        }
    }

    /// A change.
    const fn post(
        id: &'static str,
        path: &'static str,
        answer: Told,
        run: Run,
        about: &'static str,
    ) -> Self {
        Self {
            verb: Verb::Post,
            who: Who::Having(Role::Operator),
            ..Self::get(id, path, answer, run, about)
        }
    }

    const fn by(self, who: Who) -> Self {
        Self { who, ..self }
    }

    const fn with(self, query: &'static [Parameter]) -> Self {
        Self { query, ..self }
    }

    const fn of(self, body: Describe) -> Self {
        Self {
            body: Some(body),
            ..self
        }
    }

    const fn failing(self, problems: &'static [u16]) -> Self {
        Self { problems, ..self }
    }
}

/// A text of at most so many characters.
const NAME: Shape = Shape::Text(1_024);

/// Every operation, in the order of the document.
pub(super) const OPERATIONS: &[Operation] = &[
    Operation::get("healthz", "/healthz", Told::Text("text/plain; charset=utf-8"), probes::healthz, "Whether the process is alive: a word.")
        .by(Who::Anybody),
    Operation::get("readyz", "/readyz", Told::Verdict(describe::<probes::Ready>), probes::readyz, "Whether calls are served, with the states of the upstreams. Off loopback those are told only with a credential.")
        .by(Who::Anybody),
    Operation::get("metrics", "/metrics", Told::Text("text/plain; version=0.0.4; charset=utf-8"), probes::metrics, "Every metric in the text format of Prometheus. Off loopback with a credential only.")
        .by(Who::Neighbours)
        .failing(&[404]),
    Operation::get("document", "/api/openapi.json", Told::Document, openapi::serve, "This document."),
    Operation::get("status", "/api/status", Told::Json(describe::<probes::Status>), probes::status, "The gateway at a glance."),
    Operation::get("list_upstreams", "/api/upstreams", Told::Json(describe::<upstreams::List>), upstreams::list, "The upstreams, by name.")
        .with(upstreams::LIST),
    Operation::get("show_upstream", "/api/upstreams/{upstream}", Told::Json(describe::<upstreams::Whole>), upstreams::show, "One upstream, with what of it is not offered and why.")
        .failing(&[404]),
    Operation::post("refresh_upstream", "/api/upstreams/{upstream}/refresh", Told::Json(describe::<upstreams::Brief>), upstreams::refresh, "Reads its lists again: at once, or when 2 s have passed since they were last read because of a change.")
        .failing(&[404]),
    Operation::post("restart_upstream", "/api/upstreams/{upstream}/restart", Told::Json(describe::<upstreams::Brief>), upstreams::restart, "Closes what is connected and begins anew; calls in flight to it are lost, a program is started again. A disabled one stays so.")
        .failing(&[404]),
    Operation::post("disable_upstream", "/api/upstreams/{upstream}/disable", Told::Json(describe::<upstreams::Brief>), upstreams::disable, "Uses it no more, until it is enabled or the process ends: what it offers goes from the lists, calls to it fail.")
        .failing(&[404]),
    Operation::post("enable_upstream", "/api/upstreams/{upstream}/enable", Told::Json(describe::<upstreams::Brief>), upstreams::enable, "Uses it again.")
        .failing(&[404]),
    Operation::get("search_catalog", "/api/catalog", Told::Json(describe::<catalog::List>), catalog::search, "What is offered, by sort and name, whoever may use it.")
        .with(catalog::SEARCH),
    Operation::get("show_item", "/api/catalog/item", Told::Json(describe::<catalog::Whole>), catalog::show, "One item: its definition as its upstream gave it, how it stands to what was approved, what was found in it.")
        .with(catalog::SHOW)
        .failing(&[404]),
    Operation::get("list_findings", "/api/findings", Told::Json(describe::<findings::List>), findings::list, "What was found in content and definitions, the newest first: the last 1024. Never the text that was found.")
        .with(findings::LIST),
    Operation::get("list_sessions", "/api/sessions", Told::Json(describe::<sessions::List>), sessions::list, "Sessions of clients of the handshake era.")
        .with(sessions::LIST),
    Operation::post("end_session", "/api/sessions/{session}/end", Told::Json(describe::<sessions::Ended>), sessions::end, "Ends a session: its streams, its running requests, and the sessions of upstreams that were opened for it.")
        .failing(&[404]),
    Operation::get("list_streams", "/api/streams", Told::Json(describe::<sessions::Streams>), sessions::streams, "Who listens for changes without a session, the oldest first.")
        .with(sessions::STREAMS),
    Operation::post("end_stream", "/api/streams/{stream}/end", Told::Json(describe::<sessions::Ended>), sessions::end_stream, "Ends such a stream, as if it had run its time: its client may open another.")
        .failing(&[404]),
    Operation::get("list_limits", "/api/limits", Told::Json(describe::<limits::Limits>), limits::list, "The rules of the limits, what each has let through and refused, and for how many keys it keeps meters.")
        .with(limits::LIST),
    Operation::get("show_policy", "/api/policy", Told::Json(describe::<policy::Standing>), policy::show, "Which policies are in force, and what is wrong with those that were read last."),
    Operation::get("list_policies", "/api/policy/policies", Told::Json(describe::<policy::List>), policy::list, "The policies in force, in the order of their files.")
        .with(policy::LIST),
    Operation::post("explain_decision", "/api/policy/explain", Told::Json(describe::<crate::policy::Explanation>), policy::explain, "Why somebody may do a thing or not, which policies decide, and what would change it; as `usher policy explain --connect` says it. Changes nothing.")
        .by(Who::Having(Role::Auditor))
        .of(describe::<policy::Question>)
        .failing(&[404]),
    Operation::get("search_audit", "/api/audit", Told::Json(describe::<audit::List>), audit::search, "Records of the audit log, the newest first.")
        .with(audit::SEARCH)
        .failing(&[404, 503]),
    Operation::get("follow_audit", "/api/audit/follow", Told::Events(describe::<audit::Record>), audit::follow, "Records of the audit log as they are written, as events named `record`.")
        .with(audit::FOLLOW)
        .failing(&[404, 503]),
    Operation::get("follow_calls", "/api/calls/follow", Told::Events(describe::<live::Call>), live::follow, "Calls as they end, as events named `call`; `missed` where whoever looks was too slow.")
        .failing(&[503]),
    Operation::get("show_configuration", "/api/configuration", Told::Json(describe::<configuration::Shown>), configuration::show, "The configuration in force as its file says it: with references where references stand, and no secrets."),
    Operation::post("reload", "/reload", Told::Json(describe::<super::Reloaded>), configuration::reload, "Reads policies and the limits of the configuration again: all or nothing.")
        .failing(&[409]),
];

/// The name filters of catalogs and logs.
pub(super) const fn named(name: &'static str, about: &'static str) -> Parameter {
    Parameter::maybe(name, NAME, about)
}

fn describe<T: schemars::JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn operations_have_names_and_places_of_their_own() {
        let ids: HashSet<_> = OPERATIONS.iter().map(|it| it.id).collect();
        let places: HashSet<_> = OPERATIONS
            .iter()
            .map(|it| (it.verb.method(), it.path))
            .collect();
        assert_eq!(
            (ids.len(), places.len()),
            (OPERATIONS.len(), OPERATIONS.len())
        );
    }

    #[test]
    fn whatever_changes_something_is_for_operators_alone() {
        for operation in OPERATIONS {
            let changes = operation.verb == Verb::Post && operation.id != "explain_decision";
            let operators = operation.who == Who::Having(Role::Operator);
            assert_eq!(changes, operators, "{}", operation.id);
        }
    }

    #[test]
    fn a_path_is_matched_as_it_is_spelled() {
        let one = OPERATIONS
            .iter()
            .find(|it| it.id == "show_upstream")
            .unwrap();
        let names = |path| one.names(path);
        assert_eq!(names("/api/upstreams/a-1"), Some(vec!["a-1".to_owned()]));
        for path in [
            "/api/upstreams/",
            "/api/upstreams",
            "/api/upstreams/a/b",
            "/api/upstreams/%61",
            "/api/Upstreams/a",
            "//api/upstreams/a",
            "/api/upstreams/a/",
            "/api/upstreams/..",
        ] {
            assert_eq!(names(path), None, "{path}");
        }
    }
}
