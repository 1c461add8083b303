//! Content: what may go through, built from the plan; the credentials that the plan holds; and how definitions are judged.

use std::sync::Arc;

use secrecy::ExposeSecret;

use crate::{
    catalog::{Content, Look, Screen, Screened},
    config::Plan,
    connect::spec::ClientSpec,
    findings::{Action, Findings},
    json::{Json, Node},
    protocol::UpstreamId,
    sanitize::{Found, OwnCredentials, Sanitizer},
    upstream::spec::Endpoint,
};

/// What may go through under this plan.
pub(super) fn sanitizer(plan: &Plan, findings: Findings) -> Arc<Sanitizer> {
    let own = OwnCredentials::new();
    hold(plan, &own);
    let rules = plan.sanitize.clone();
    Arc::new(Sanitizer::standard(rules, findings, own))
}

/// Looks for every credential that stands in the plan.
fn hold(plan: &Plan, own: &OwnCredentials) {
    let mut values: Vec<&str> = Vec::new();
    values.extend(plan.state_key.as_ref().map(ExposeSecret::expose_secret));
    if let Some(admin) = &plan.admin {
        let tokens = [&admin.token, &admin.auditor_token].into_iter().flatten();
        values.extend(tokens.map(ExposeSecret::expose_secret));
    }
    let store = plan.connect.store.iter();
    let keys = store.flat_map(|store| &store.keys);
    values.extend(keys.map(ExposeSecret::expose_secret));
    for account in plan.connect.accounts.values() {
        if let ClientSpec::Given { secret, .. } = &account.client {
            values.extend(secret.as_ref().map(ExposeSecret::expose_secret));
        }
    }
    for upstream in &plan.upstreams {
        match &upstream.endpoint {
            Endpoint::Stdio(stdio) => {
                // A program is told many things that are no secret.
                let named = stdio.env.iter();
                let named = named.filter(|(name, _)| OwnCredentials::is_named_so(name));
                values.extend(named.map(|(_, value)| value.expose_secret()));
            }
            Endpoint::Http(http) => {
                let named = http.headers.iter();
                let named = named.filter(|(name, _)| OwnCredentials::is_named_so(name.as_str()));
                values.extend(named.map(|(_, value)| value.expose_secret()));
                values.extend(
                    http.grant
                        .as_ref()
                        .map(|grant| grant.server.client_secret.expose_secret()),
                );
            }
        }
    }
    own.hold(values);
}

/// Judges definitions as they enter the catalog (SECURITY CAT-4).
pub(super) fn screen(sanitizer: &Arc<Sanitizer>) -> Screen {
    let sanitizer = sanitizer.clone();
    Screen::new(move |upstream, definition, look| judged(&sanitizer, upstream, definition, look))
}

fn judged(sanitizer: &Sanitizer, upstream: &UpstreamId, definition: &Json, look: Look) -> Screened {
    let root = definition.root();
    let key = ["name", "uri", "uriTemplate"];
    let item = key
        .iter()
        .find_map(|key| root.member(key).and_then(Node::as_str))
        .unwrap_or_default();
    let item = Arc::from(&*item);
    let found = match look {
        Look::First => sanitizer.definition(definition, upstream, &item),
        Look::Again => sanitizer.definition_again(definition, upstream, &item),
    };
    let first = |is: fn(&Found) -> bool| {
        let found = found.iter().find(|found| is(found))?;
        Some(Content {
            kind: found.kind,
            rule: found.rule.clone(),
            place: found.place.clone(),
        })
    };
    Screened {
        withheld: first(|found| found.action != Action::Flag),
        flagged: first(|found| found.action == Action::Flag),
        doubt: first(|found| found.doubt),
    }
}
