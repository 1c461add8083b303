//! The table of what the admin listener serves: one row an operation, from which requests are routed and the document is made.

use std::sync::LazyLock;

use futures_util::{FutureExt as _, future::BoxFuture};
use http::Response;
use schemars::{Schema, SchemaGenerator};

use super::{
    Role,
    api::{audit, catalog, configuration, findings, limits, live, policy, sessions, upstreams},
    asked::Asked,
    openapi,
    operation::{Operation, ResponseKind, Who},
    probes,
    problem::Problem,
    reply,
};
use crate::{json::Json, server::Body};

/// Every operation, in the order of the document.
pub(super) const OPERATIONS: &[Operation] = &[
    Operation::get("healthz", "/healthz", ResponseKind::Text("text/plain; charset=utf-8"), probes::healthz, "Whether the process is alive: a word.")
        .by(Who::Anybody),
    Operation::get("readyz", "/readyz", ResponseKind::Verdict(describe::<probes::Ready>), probes::readyz, "Whether calls are served, with the states of the upstreams. Off loopback those are told only with a credential.")
        .by(Who::Anybody),
    Operation::get("metrics", "/metrics", ResponseKind::Text("text/plain; version=0.0.4; charset=utf-8"), probes::metrics, "Every metric in the text format of Prometheus. Off loopback with a credential only.")
        .by(Who::Neighbours)
        .failing(&[404]),
    Operation::get("document", "/api/openapi.json", ResponseKind::Document, serve_document, "This document."),
    Operation::get("status", "/api/status", ResponseKind::Json(describe::<probes::Status>), probes::status, "The gateway at a glance."),
    Operation::get("list_upstreams", "/api/upstreams", ResponseKind::Json(describe::<upstreams::List>), upstreams::list, "The upstreams, by name.")
        .with(upstreams::LIST),
    Operation::get("show_upstream", "/api/upstreams/{upstream}", ResponseKind::Json(describe::<upstreams::Whole>), upstreams::show, "One upstream, with what of it is not offered and why.")
        .failing(&[404]),
    Operation::post("refresh_upstream", "/api/upstreams/{upstream}/refresh", ResponseKind::Json(describe::<upstreams::Brief>), upstreams::refresh, "Reads its lists again: at once, or when 2 s have passed since they were last read because of a change.")
        .failing(&[404]),
    Operation::post("restart_upstream", "/api/upstreams/{upstream}/restart", ResponseKind::Json(describe::<upstreams::Brief>), upstreams::restart, "Closes what is connected and begins anew; calls in flight to it may be lost; those of a program are, which is started again. A disabled one stays so.")
        .failing(&[404]),
    Operation::post("disable_upstream", "/api/upstreams/{upstream}/disable", ResponseKind::Json(describe::<upstreams::Brief>), upstreams::disable, "Uses it no more, until it is enabled or the process ends: what it offers goes from the lists, calls to it fail.")
        .failing(&[404]),
    Operation::post("enable_upstream", "/api/upstreams/{upstream}/enable", ResponseKind::Json(describe::<upstreams::Brief>), upstreams::enable, "Uses it again.")
        .failing(&[404]),
    Operation::get("search_catalog", "/api/catalog", ResponseKind::Json(describe::<catalog::List>), catalog::search, "What is offered, by sort and name, whoever may use it.")
        .with(catalog::SEARCH),
    Operation::get("show_item", "/api/catalog/item", ResponseKind::Json(describe::<catalog::Whole>), catalog::show, "One item: its definition as its upstream gave it, how it stands to what was approved, what was found in it.")
        .with(catalog::SHOW)
        .failing(&[404]),
    Operation::get("list_findings", "/api/findings", ResponseKind::Json(describe::<findings::List>), findings::list, "What was found in content and definitions, the newest first: the last 1024. Never the text that was found.")
        .with(findings::LIST),
    Operation::get("list_sessions", "/api/sessions", ResponseKind::Json(describe::<sessions::List>), sessions::list, "Sessions of clients of the handshake era.")
        .with(sessions::LIST),
    Operation::post("end_session", "/api/sessions/{session}/end", ResponseKind::Json(describe::<sessions::Ended>), sessions::end, "Ends a session: its streams, its running requests, and the sessions of upstreams that were opened for it.")
        .failing(&[404]),
    Operation::get("list_streams", "/api/streams", ResponseKind::Json(describe::<sessions::Streams>), sessions::streams, "Who listens for changes without a session, the oldest first.")
        .with(sessions::STREAMS),
    Operation::post("end_stream", "/api/streams/{stream}/end", ResponseKind::Json(describe::<sessions::Ended>), sessions::end_stream, "Ends such a stream, as if it had run its time: its client may open another.")
        .failing(&[404]),
    Operation::get("list_limits", "/api/limits", ResponseKind::Json(describe::<limits::Limits>), limits::list, "The rules of the limits, what each has let through and refused, and for how many keys it keeps meters.")
        .with(limits::LIST),
    Operation::get("show_policy", "/api/policy", ResponseKind::Json(describe::<policy::Standing>), policy::show, "Which policies are in force, and what is wrong with those that were read last."),
    Operation::get("list_policies", "/api/policy/policies", ResponseKind::Json(describe::<policy::List>), policy::list, "The policies in force, in the order of their files.")
        .with(policy::LIST),
    Operation::post("explain_decision", "/api/policy/explain", ResponseKind::Json(describe::<crate::policy::Explanation>), policy::explain, "Why somebody may do a thing or not, which policies decide, and what would change it; as `usher policy explain --connect` says it. Changes nothing.")
        .by(Who::Having(Role::Auditor))
        .of(describe::<policy::Question>)
        .failing(&[404]),
    Operation::get("search_audit", "/api/audit", ResponseKind::Json(describe::<audit::List>), audit::search, "Records of the audit log, the newest first. Two searches at once for each role; one that takes longer than 10 s says how far it came.")
        .with(audit::SEARCH)
        .failing(&[404, 503]),
    Operation::get("follow_audit", "/api/audit/follow", ResponseKind::Events(audit::RECORD, describe::<audit::Record>), audit::follow, "Records of the audit log as they are written, as events named `record`; `missed` where retention was faster than whoever looks.")
        .with(audit::FOLLOW)
        .failing(&[404, 503]),
    Operation::get("follow_calls", "/api/calls/follow", ResponseKind::Events(live::CALL, describe::<live::Call>), live::follow, "Calls as they end, as events named `call`; `missed` where whoever looks was too slow.")
        .failing(&[503]),
    Operation::get("show_configuration", "/api/configuration", ResponseKind::Json(describe::<configuration::Shown>), configuration::show, "The configuration in force as its file says it: with references where references stand, and no secrets."),
    Operation::post("reload", "/reload", ResponseKind::Json(describe::<super::Reloaded>), configuration::reload, "Reads policies and the limits of the configuration again: all or nothing.")
        .failing(&[409]),
];

/// Their document.
pub fn document() -> Json {
    static DOCUMENT: LazyLock<Json> = LazyLock::new(|| openapi::of(OPERATIONS));
    DOCUMENT.clone()
}

fn serve_document(_: Asked) -> BoxFuture<'static, Result<Response<Body>, Problem>> {
    std::future::ready(Ok(reply::json(&document()))).boxed()
}

fn describe<T: schemars::JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::admin::operation::Verb;

    #[test]
    fn operations_have_names_and_places_of_their_own() {
        let ids: HashSet<_> = OPERATIONS.iter().map(|it| it.id).collect();
        let places: HashSet<_> = OPERATIONS
            .iter()
            .map(|it| (it.verb.methods(), it.path))
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

    #[test]
    fn the_document_tells_of_every_operation_and_refers_to_nothing_that_is_not_there() {
        let document = document();
        let root = document.root();
        let paths = root.member("paths").unwrap();
        for operation in OPERATIONS {
            let verb = if operation.verb == Verb::Get {
                "get"
            } else {
                "post"
            };
            let one = paths.member(operation.path).unwrap().member(verb).unwrap();
            assert_eq!(
                one.member("operationId").unwrap().as_str().unwrap(),
                operation.id
            );
            assert_eq!(
                one.member("requestBody").is_some(),
                operation.verb == Verb::Post
            );
        }
        let schemas = root
            .member("components")
            .unwrap()
            .member("schemas")
            .unwrap();
        let mut referred = 0;
        for part in document.as_str().split(r##""$ref":"##).skip(1) {
            let name = part.trim_start_matches('"').split('"').next().unwrap();
            let name = name
                .strip_prefix("#/components/schemas/")
                .unwrap_or_else(|| panic!("{name}"));
            assert!(schemas.member(name).is_some(), "{name}");
            referred += 1;
        }
        assert!(referred > 40, "{referred}");
        assert!(!document.as_str().contains("$defs"));
    }
}
