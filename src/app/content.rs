//! Content: what may go through, built from the plan; the credentials that the plan holds; and how definitions are judged.

use std::sync::Arc;

use http::HeaderName;
use secrecy::{ExposeSecret, SecretString};

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
    own.hold(credentials(plan));
    let rules = plan.sanitize.clone();
    Arc::new(Sanitizer::standard(rules, findings, own))
}

/// Every credential that stands in a plan, but for private keys: none of them is for anybody to see.
pub fn credentials(plan: &Plan) -> Vec<&str> {
    let mut values: Vec<&SecretString> = Vec::new();
    values.extend(&plan.state_key);
    if let Some(admin) = &plan.admin {
        values.extend([&admin.token, &admin.auditor_token].into_iter().flatten());
    }
    if let Some(auth) = &plan.auth {
        values.extend(auth.keys.as_ref().map(|keys| &keys.secret));
        let introspection = auth.introspection.as_ref();
        values.extend(introspection.map(|asks| &asks.client_secret));
    }
    if let Some(otlp) = &plan.telemetry.otlp {
        values.extend(of_headers(&otlp.headers));
    }
    if let Some(otlp) = plan.audit.as_ref().and_then(|it| it.sinks.otlp.as_ref()) {
        values.extend(of_headers(&otlp.headers));
    }
    values.extend(plan.connect.store.iter().flat_map(|store| &store.keys));
    for account in plan.connect.accounts.values() {
        if let ClientSpec::Given { secret, .. } = &account.client {
            values.extend(secret);
        }
    }
    for upstream in &plan.upstreams {
        match &upstream.endpoint {
            Endpoint::Stdio(stdio) => {
                // A program is told many things that are no secret.
                let named = stdio.env.iter();
                let named = named.filter(|(name, _)| OwnCredentials::is_named_so(name));
                values.extend(named.map(|(_, value)| value));
            }
            Endpoint::Http(http) => {
                values.extend(of_headers(&http.headers));
                let grant = http.grant.as_ref();
                values.extend(grant.map(|grant| &grant.server.client_secret));
            }
        }
    }
    values
        .into_iter()
        .map(ExposeSecret::expose_secret)
        .collect()
}

fn of_headers(headers: &[(HeaderName, SecretString)]) -> impl Iterator<Item = &SecretString> {
    let named = headers
        .iter()
        .filter(|(name, _)| OwnCredentials::is_named_so(name.as_str()));
    named.map(|(_, value)| value)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;

    #[test]
    fn every_credential_of_a_configuration_is_known() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("usher.yaml");
        let names = [
            "OPERATOR",
            "AUDITOR",
            "STATE",
            "HASHED",
            "ASKS",
            "TELEMETRY",
            "RECORDS",
            "BEARER",
            "HEADER",
            "PROGRAM",
            "CLIENT",
        ];
        let text = r#"
admin: { token: "${env:OPERATOR}", auditor_token: "${env:AUDITOR}" }
telemetry: { otlp: "http://127.0.0.1:4318", headers: { authorization: "Bearer ${env:TELEMETRY}" } }
audit: { sinks: { otlp: "http://127.0.0.1:4318", otlp_headers: { x-api-key: "${env:RECORDS}" } } }
state: { key: "${env:STATE}" }
auth:
  keys: { file: keys.json, secret: "${env:HASHED}" }
  introspection: { url: "https://id.example/introspect", client_id: usher, client_secret: "${env:ASKS}", issuer: "https://id.example", audience: [usher] }
upstreams:
  a: { url: "https://a.example/mcp", auth: { bearer: "${env:BEARER}" }, headers: { x-team-key: "${env:HEADER}" } }
  b: { url: "https://b.example/mcp", auth: { client_credentials: { token_url: "https://id.example/token", client_id: usher, client_secret: "${env:CLIENT}" } } }
  c: { command: [sh], env: { API_TOKEN: "${env:PROGRAM}" } }
"#;
        std::fs::write(&path, text).unwrap();
        let value = |name: &str| format!("value-of-{name}-{name}-and-of-nothing-else");
        let vars = |name: &str| names.contains(&name).then(|| value(name));
        let plan = config::load(&path, &vars).unwrap_or_else(|rejected| panic!("{rejected:?}"));
        let own = OwnCredentials::new();
        own.hold(credentials(&plan));
        for name in names {
            let told = own.without(&value(name)).into_owned();
            assert_eq!(told, "[redacted:own_credential]", "{name}");
        }
    }
}
