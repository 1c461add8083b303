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
    protocol::{UpstreamId, methods::ListKind},
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
    values.extend(&plan.state_keys);
    values.extend(&plan.confided);
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
            // What of the environment and the command of a program is one is told by how it is written, among the confided.
            Endpoint::Stdio(_) => {}
            Endpoint::Http(http) => {
                values.extend(of_headers(&http.headers));
                let servers = http.grant.iter().flat_map(|grant| grant.servers());
                values.extend(servers.map(|server| &server.client_secret));
            }
        }
    }
    values
        .into_iter()
        .map(ExposeSecret::expose_secret)
        .collect()
}

fn of_headers(headers: &[(HeaderName, SecretString)]) -> impl Iterator<Item = &SecretString> {
    let held = headers.iter().filter(|(name, value)| {
        OwnCredentials::is_one_in_header(name.as_str(), value.expose_secret())
    });
    held.map(|(_, value)| value)
}

/// Judges definitions as they enter the catalog (SECURITY CAT-4).
pub(super) fn screen(sanitizer: &Arc<Sanitizer>) -> Screen {
    let sanitizer = sanitizer.clone();
    Screen::new(move |upstream, kind, definition, look| {
        judged(&sanitizer, upstream, kind, definition, look)
    })
}

fn judged(
    sanitizer: &Sanitizer,
    upstream: &UpstreamId,
    kind: Option<ListKind>,
    definition: &Json,
    look: Look,
) -> Screened {
    let root = definition.root();
    let key = ["name", "uri", "uriTemplate"];
    let item = key
        .iter()
        .find_map(|key| root.member(key).and_then(Node::as_str))
        .unwrap_or_default();
    let item = Arc::from(&*item);
    let found = match look {
        Look::First => sanitizer.definition(definition, upstream, kind, &item),
        Look::Again => sanitizer.definition_again(definition, upstream, kind, &item),
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
            "PASSED",
            "NAMED",
            "SCHEME",
            "TEAM",
            "VARIABLE",
            "ASSERTS",
            "REDEEMS",
            "STORED",
            "STORED_BEFORE",
            "LOGS_IN",
            "PARAMETER",
            "FLAG",
            "WORD",
            "ALONE",
            "ADDRESSED",
            "SENT",
            "SCRIPTED",
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
  c: { command: [sh], env: { API_TOKEN: "${env:PROGRAM}", SECRETX: "${env:VARIABLE}" } }
  d: { url: "https://d.example/mcp", auth: { basic: { user: "${env:USER_NAME}", password: "${env:PASSED}" } } }
  e: { url: "https://e.example/mcp", auth: { header: { name: X-Client, value: "${env:NAMED}" } } }
  f: { url: "https://f.example/mcp", auth: { header: { name: X-Vault, value: "Token ${env:SCHEME}" } }, headers: { X-Team: "${env:TEAM}" } }
  g: { url: "https://g.example/mcp", auth: { id_jag: { issuer: "https://g.example", client_id: usher, client_secret: "${env:REDEEMS}", idp: { issuer: "https://id.example", client_id: usher, client_secret: "${env:ASSERTS}" } } } }
  h: { url: "https://h.example/mcp", auth: { authorization_code: { client_id: usher, client_secret: "${env:LOGS_IN}" } } }
  i: { url: "https://i.example/mcp?token=${env:PARAMETER}" }
  j: { command: [x-mcp, --api-key, "${env:FLAG}", "--password=${env:WORD}", "${env:ALONE}", "--server=https://j.example/mcp?token=${env:ADDRESSED}", -H, "Authorization: Bearer ${env:SENT}"] }
  k: { command: [sh, -c, "API_KEY='${env:SCRIPTED}' exec x-mcp --user $USER"] }
connections: { store: store, keys: ["${env:STORED}", "${env:STORED_BEFORE}"] }
"#;
        std::fs::write(&path, text).unwrap();
        let value =
            |name: &str| format!("value-of-{name}-0a1b2c3d4e5f6a7b8c9d0e1f-and-of-nothing-else");
        let vars = |name: &str| match name {
            "USER_NAME" => Some("joe-user-name".to_owned()),
            name => names.contains(&name).then(|| value(name)),
        };
        let plan = config::load(&path, &vars).unwrap_or_else(|rejected| panic!("{rejected:?}"));
        let own = OwnCredentials::new();
        own.hold(credentials(&plan));
        for name in names {
            let told = own.without(&value(name)).into_owned();
            assert_eq!(told, "[redacted:own_credential]", "{name}");
        }
        assert_eq!(own.without("joe-user-name"), "joe-user-name");
    }

    #[test]
    fn an_api_key_of_ours_is_told_wherever_it_stands() {
        use crate::{
            auth::keys::{KeyWish, create},
            sanitize::without_secrets,
        };
        let secret = SecretString::from("0123456789abcdef0123456789abcdef");
        for _ in 0..200 {
            let key = create(KeyWish::default(), &secret, 1_000).text;
            let key = key.expose_secret();
            for (text, told) in [
                (key.to_owned(), "[redacted:usher_key]"),
                (format!("a {key}."), "a [redacted:usher_key]."),
                (
                    format!("x-api-key: {key}"),
                    "x-api-key: [redacted:usher_key]",
                ),
                (
                    format!("file:///pub/{key}"),
                    "file:///pub/[redacted:usher_key]",
                ),
            ] {
                assert_eq!(without_secrets(&text), told, "{text}");
            }
        }
        for text in [
            "usher_catalog_entries_total",
            "usher_0a1b2c3d4e5f",
            "usher_0a1b2c3d4e5f_short",
        ] {
            assert_eq!(without_secrets(text), text);
        }
    }

    fn told(upstreams: &str, text: &str) -> String {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("usher.yaml");
        std::fs::write(&path, format!("upstreams:\n{upstreams}\n")).unwrap();
        let vars = |name: &str| {
            let value = match name {
                "MODE" => "production",
                "PLACE" => "https://db-1.x7f3a9c2.example.com:5432/app",
                "TYPE" => "application/json",
                "WORDS" => "qwertz-uiop",
                _ => return None,
            };
            Some(value.to_owned())
        };
        let plan = config::load(&path, &vars).unwrap_or_else(|rejected| panic!("{rejected:?}"));
        let own = OwnCredentials::new();
        own.hold(credentials(&plan));
        own.without(text).into_owned()
    }

    #[test]
    fn what_any_text_may_hold_is_no_credential_unless_it_is_said_to_be_one() {
        let plain = "production at https://db-1.x7f3a9c2.example.com:5432/app in application/json";
        let beside = r#"
  a: { command: [sh], env: { MODE: "${env:MODE}", PLACE: "${env:PLACE}", LITERAL: claude-3-5-sonnet, BUILD: 0a1b2c3d4e5f6a7b } }
  b: { url: "https://b.example/mcp", headers: { x-format: "${env:TYPE}", x-mode: "${env:MODE}" } }
  c: { command: [x-mcp, --mode, "${env:MODE}", "--place=${env:PLACE}", -H, "X-Format: ${env:TYPE}", --client-id, 0a1b2c3d4e5f6a7b, "${env:MODE}"] }
  d: { command: [x-mcp, --token-store, keychain, --credential-provider=environment, --token-endpoint-auth-method, client_secret_post] }
  e: { command: [sh, -c, "x-mcp --secret-backend localhost --password-manager=bitwarden"] }"#;
        assert_eq!(told(beside, plain), plain);
        // How a secret is got and where it is kept is none.
        let how = "client_secret_post from the environment, keychain or bitwarden at localhost";
        assert_eq!(told(beside, how), how);
        // What is written out, under a name that says nothing, is what a reader of the file may see.
        assert_eq!(told(beside, "0a1b2c3d4e5f6a7b"), "0a1b2c3d4e5f6a7b");
        for upstream in [
            r#"  a: { url: "https://a.example/mcp", auth: { header: { name: X-Client, value: "${env:WORDS}" } } }"#,
            r#"  a: { url: "https://a.example/mcp", auth: { basic: { user: "${env:MODE}", password: "${env:WORDS}" } } }"#,
            r#"  a: { url: "https://a.example/mcp", headers: { x-api-key: "${env:WORDS}" } }"#,
            r#"  a: { command: [sh], env: { API_KEY: qwertz-uiop } }"#,
            r#"  a: { command: [x-mcp, --api-key, "${env:WORDS}"] }"#,
            r#"  a: { command: [x-mcp, "--api-key=qwertz-uiop"] }"#,
            r#"  a: { command: [sh], env: { DATABASE_URL: "postgres://app:qwertz-uiop-1x9@h.example/app", API_KEY: "${env:WORDS}" } }"#,
        ] {
            assert_eq!(
                told(upstream, "qwertz-uiop"),
                "[redacted:own_credential]",
                "{upstream}"
            );
        }
        let address = r#"  a: { command: [sh], env: { DATABASE_URL: "postgres://app:0a1b2c3d4e5f6a7b@h.example/app" } }"#;
        assert_eq!(
            told(address, "0a1b2c3d4e5f6a7b"),
            "[redacted:own_credential]"
        );
    }
}
