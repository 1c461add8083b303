//! Secrets: only by reference, never shown.

use secrecy::ExposeSecret;

use super::*;

const MARKER: &str = "ghp_0123456789abcdefMARKER";

#[test]
fn secrets_in_the_file_itself_are_refused_wherever_secrets_stand() {
    let yaml = format!(
        "state: {{ key: {MARKER}{MARKER} }}\n\
         upstreams:\n\
         \x20 a: {{ url: \"https://a/\", auth: {{ bearer: {MARKER} }} }}\n\
         \x20 b: {{ url: \"https://b/\", auth: {{ basic: {{ user: {MARKER}, password: {MARKER} }} }} }}\n\
         \x20 c: {{ url: \"https://c/\", auth: {{ header: {{ name: x-key, value: {MARKER} }} }} }}\n\
         \x20 d: {{ url: \"https://d/\", headers: {{ x-key: {MARKER} }} }}\n"
    );
    let rejected = Files::with(&yaml).rejected();
    let paths: Vec<&str> = rejected
        .problems
        .iter()
        .map(|one| one.path.as_str())
        .collect();
    assert_eq!(
        paths,
        [
            "state.key",
            "upstreams.a.auth.bearer",
            "upstreams.b.auth.basic.user",
            "upstreams.b.auth.basic.password",
            "upstreams.c.auth.header.value",
            "upstreams.d.headers.x-key",
        ]
    );
    for text in [
        rejected.drawn(Colour::Plain),
        rejected.json().as_str().into(),
        format!("{rejected:?}"),
    ] {
        assert!(!text.contains("MARKER"), "{text}");
    }
}

#[test]
fn headers_that_are_no_secret_may_be_written_out_and_all_others_may_not() {
    let places = [
        (
            "upstreams: { a: { url: \"https://a/\", headers: {HEADERS} } }\n",
            "upstreams.a.headers",
        ),
        (
            "telemetry: { otlp: \"http://127.0.0.1:4318\", headers: {HEADERS} }\n",
            "telemetry.headers",
        ),
        (
            "audit: { sinks: { otlp: \"http://127.0.0.1:4318\", otlp_headers: {HEADERS} } }\n",
            "audit.sinks.otlp_headers",
        ),
    ];
    let plain = "{ Accept-Language: de, X-Debug: \"true\", X-MCP-Toolsets: \"repos,issues\", X-Tenant-Id: \"9f8e7d6c5b4a39281706f5e4d3c2b1a0\", X-Tenant: \"3f2504e0-4f89-41d3-9a0c-0305e82c3301\", X-Session-Mode: shared, X-Proxy: \"localhost:8080\", X-Scope: \"repo:read\", X-Model: \"qwen2.5:14b-instruct\", X-Region: \"env:eu-west-1\", X-Account: \"3f2504e0-4f89-41d3-9a0c-0305e82c3301\", X-Image: \"python:3.12-slim\", X-Empty-Token: \"\" }";
    let told = [
        ("Authorization", "Basic dXNlcjpwYXNz"),
        ("X-Api-Key", "letmein"),
        ("Cookie", "a=b"),
        ("X-Anything", MARKER),
        ("X-Anything", "9f8e7d6c5b4a39281706f5e4d3c2b1a0"),
        ("X-Place", "https://ana:hunter2@db.example.com/"),
        ("X-Session-Id", "9f8e7d6c5b4a39281706f5e4d3c2b1a0"),
        ("X-Session-Id", "3f2504e0-4f89-41d3-9a0c-0305e82c3301"),
        ("X-Access", "3f2504e0-4f89-41d3-9a0c-0305e82c3301"),
        ("X-Access", "Token 3f2504e0-4f89-41d3-9a0c-0305e82c3301"),
        ("X-Login", "ana:hunter2"),
        ("X-User", "ana:hunter2"),
    ];
    for (yaml, path) in places {
        drop(Files::with(&yaml.replace("{HEADERS}", plain)).plan());
        for (name, value) in told {
            let problem = only(&yaml.replace("{HEADERS}", &format!("{{ {name}: \"{value}\" }}")));
            assert_eq!(problem.path, format!("{path}.{name}"), "{value}");
            assert_eq!(problem.message, "a secret stands in the file itself");
        }
    }
}

#[test]
fn variables_of_programs_may_be_written_out() {
    drop(Files::with("upstreams: { a: { command: [x], env: { API_TOKEN: literal } } }\n").plan());
}

#[test]
fn what_may_be_a_secret_in_a_command_or_its_variables_is_told_by_its_place() {
    let plan = Files::with(
        "upstreams:\n\
         \x20 d:\n\
         \x20   command: [npx, x, --token, supersecretvalue123, --max-tokens, 5, --password, \"${env:TOKEN}\"]\n\
         \x20   env: { API_TOKEN: supersecretvalue123, DB: \"postgres://u:pw@h/d\", MAX_TOKENS: 5, A_TOKEN: \"${env:TOKEN}\" }\n\
         \x20 s: { command: [sh, -c, \"srv --token $TOKEN\"], env: { GOOGLE_CREDENTIALS: /etc/google.json } }\n",
    )
    .plan();
    assert_eq!(
        plan.loaded.in_clear(),
        [
            "upstreams.d.command[3]",
            "upstreams.d.env.API_TOKEN",
            "upstreams.d.env.DB",
        ]
    );
}

#[test]
fn what_is_called_a_secret_in_an_address_is_shown_to_nobody_and_may_not_come_back() {
    let plan = Files::with(
        "upstreams:\n\
         \x20 a: { url: \"https://a.example/mcp?token=0a1b2c3d4e5f&page=2&api%5Fkey=9f8e7d6c5b4a\" }\n\
         \x20 b: { url: \"https://b.example/mcp?token=${env:TOKEN}&key=5566778899aa\" }\n\
         \x20 c: { url: \"https://c.example/mcp?tenant=acme&token=\" }\n",
    )
    .plan();
    let shown = plan.loaded.json().root();
    let url = |key: &str| {
        let upstream = shown.member("upstreams").and_then(|all| all.member(key));
        let url = upstream.and_then(|upstream| upstream.member("url"));
        url.and_then(|url| url.as_str().map(|url| url.into_owned()))
    };
    for (key, expected) in [
        (
            "a",
            "https://a.example/mcp?token=(set)&page=2&api%5Fkey=(set)",
        ),
        ("b", "https://b.example/mcp?token=${env:TOKEN}&key=(set)"),
        ("c", "https://c.example/mcp?tenant=acme&token="),
    ] {
        assert_eq!(url(key).as_deref(), Some(expected));
    }
    assert_eq!(plan.loaded.in_clear(), ["upstreams.a.url"]);
    let confided: Vec<&str> = plan
        .confided
        .iter()
        .map(ExposeSecret::expose_secret)
        .collect();
    for secret in ["0a1b2c3d4e5f", "9f8e7d6c5b4a", "5566778899aa"] {
        assert!(confided.contains(&secret), "{confided:?}");
    }
    // Nor is one shown in an address that is refused.
    let refused = Files::with("upstreams: { a: { url: \"https://a/mcp#token=77665544\" } }\n");
    let drawn = refused.rejected().drawn(Colour::Plain);
    assert!(!drawn.contains("77665544"), "{drawn}");
}

/// A key is what it is by its place: somebody may call a server or a tool like one.
#[test]
fn what_is_shown_goes_by_its_place_and_not_by_its_name() {
    let plan = Files::with(
        "upstreams:\n\
         \x20 command: { command: [run, --fast], env: { MODE: quiet } }\n\
         \x20 env: { url: \"https://a.example/mcp\", headers: { x-team: red }, \
         tools: { describe: { command: Runs it., headers: Shows them. } } }\n\
         telemetry: { otlp: \"http://127.0.0.1:4318\", headers: { x-team: red } }\n\
         audit: { sinks: { otlp: \"http://127.0.0.1:4318\", otlp_headers: { x-team: red } } }\n",
    )
    .plan();
    let shown = plan.loaded.json().as_str();
    for there in [
        r#""command":{"command":["run","--fast"],"env":{"MODE":"(set)"}}"#,
        r#""url":"https://a.example/mcp","headers":{"x-team":"(set)"}"#,
        r#""describe":{"command":"Runs it.","headers":"Shows them."}"#,
        r#""otlp_headers":{"x-team":"(set)"}"#,
    ] {
        assert!(shown.contains(there), "{there} in {shown}");
    }
    assert!(!shown.contains("red"), "{shown}");
}

#[test]
fn a_resolved_secret_is_in_no_message_even_where_it_is_wrong() {
    let files = Files::with(
        "listen: { address: \"${env:TOKEN}\", tls: \"${env:TOKEN}\" }\n\
         endpoint: \"${env:TOKEN}\"\n\
         page_size: { items: \"${env:TOKEN}\", bytes: \"${env:TOKEN}\" }\n\
         state: { store: \"${env:TOKEN}\", key: \"${env:TOKEN}\" }\n\
         upstreams: { a: { url: \"${env:TOKEN}\", poll: \"${env:TOKEN}\", plain_http: \"${env:TOKEN}\" } }\n",
    );
    let rejected = files.rejected();
    assert!(
        rejected.problems.len() >= 8,
        "{}",
        rejected.drawn(Colour::Plain)
    );
    for text in [
        rejected.drawn(Colour::Plain),
        rejected.json().as_str().into(),
        format!("{rejected:?}"),
    ] {
        assert!(!text.contains("marker-9f"), "{text}");
    }
}

#[test]
fn a_plan_shows_no_secret() {
    let files = Files::with(
        "state: { key: \"${file:key}\" }\n\
         upstreams:\n\
         \x20 a: { url: \"https://a/\", auth: { basic: { user: \"${env:TOKEN}\", password: \"${env:TOKEN}\" } } }\n\
         \x20 b: { command: [x], env: { A: \"${env:TOKEN}\" } }\n",
    );
    files.add("key", &"t0ken-marker-9f".repeat(3));
    let plan = files.plan();
    assert_eq!(plan.state_keys.len(), 1);
    assert!(!format!("{plan:?}").contains("marker"));
}

#[test]
fn references_that_lead_nowhere_say_what_is_missing() {
    let message = |value: &str| only(&format!("endpoint: \"{value}\"\n")).message;
    assert_eq!(
        message("/${env:NOWHERE}"),
        "the environment variable `NOWHERE` is not set"
    );
    assert!(message("${file:none}").contains("cannot be read"));
    assert_eq!(message("${HOME}"), "`${HOME}` is no reference");
    assert_eq!(message("${env:TOKEN"), "`${` without `}`");
    for none in ["${cmd:id}", "${env:}", "${file:}"] {
        assert_eq!(message(none), format!("`{none}` is no reference"));
    }
}

#[test]
fn what_a_reference_brings_is_not_looked_into_again() {
    let files = Files::with("upstreams: { a: { command: [x, \"${file:a}\"] } }\n");
    files.add("a", "${env:TOKEN}: [yaml");
    let plan = files.plan();
    let crate::upstream::spec::Endpoint::Stdio(stdio) = &plan.upstreams[0].endpoint else {
        panic!("a program");
    };
    assert_eq!(stdio.command[1], "${env:TOKEN}: [yaml");
}

#[test]
fn a_secret_file_that_everybody_may_read_is_refused_and_a_public_one_is_not() {
    let yaml = "upstreams: { a: { url: \"https://a/\", auth: { bearer: \"${file:t}\" } } }\n";
    let files = Files::with(yaml);
    files.add_with_mode("t", "secret", 0o644);
    let problem = files.rejected().problems.remove(0);
    assert_eq!(problem.path, "upstreams.a.auth.bearer");
    assert!(
        problem
            .hint
            .is_some_and(|hint| hint.starts_with("chmod o-r"))
    );
    files.add_with_mode("t", "secret", 0o640);
    drop(files.plan());
    let public = Files::with("listen: { hosts: [\"${file:h}\"] }\n");
    public.add_with_mode("h", "mcp.example.com", 0o644);
    drop(public.plan());
}

#[test]
fn a_short_state_key_is_refused() {
    assert!(
        only("state: { key: \"${env:TOKEN}\" }\n")
            .message
            .contains("fewer than 32 bytes")
    );
    let former = Files::with("state: { former_keys: [\"${file:key}\"] }\n");
    former.add("key", &"t0ken-marker-9f".repeat(3));
    let problems = former.rejected().problems;
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert_eq!(problems[0].path, "state.key");
}

#[test]
fn headers_that_usher_writes_itself_are_refused() {
    for name in ["Host", "content-length", "Mcp-Session-Id", "Accept"] {
        let problem = only(&format!(
            "upstreams: {{ a: {{ url: \"https://a/\", headers: {{ {name}: \"${{env:TOKEN}}\" }} }} }}\n"
        ));
        assert!(problem.message.contains("usher itself"), "{name}");
    }
    let twice = only(
        "upstreams: { a: { url: \"https://a/\", headers: { Authorization: \"x ${env:TOKEN}\" }, auth: { bearer: \"${env:TOKEN}\" } } }\n",
    );
    assert!(twice.message.contains("both set"));
}
