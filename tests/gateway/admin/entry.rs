//! Who comes in, and as what; what pages of other sites get; what is told without a credential.

use std::time::Duration;

use http::Method;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use super::{AUDITOR, OPERATOR, Plane, filled, operations, plane, plane_with, problem, spec};
use crate::harness::{Gateway, PATIENCE, Revision, Upstream, parse, tool, within};

async fn simple() -> (Plane, Upstream) {
    let notes = Upstream::http(Revision::V2026_07_28).tools([tool("t")]);
    (plane(Gateway::of().upstream("notes", &notes)).await, notes)
}

/// What is open to everybody on a listener that only this machine reaches.
const OPEN: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

#[tokio::test]
async fn without_the_right_credential_nothing_is_told_and_nothing_done() {
    let (plane, _notes) = simple().await;
    let mut refused = 0;
    for (method, path, _) in operations() {
        if OPEN.contains(&path.as_str()) {
            continue;
        }
        let json = ("content-type", "application/json");
        let none = plane
            .raw(method.clone(), &filled(&path), &[json], "{}")
            .await;
        assert_eq!(problem(&none), (401, "credential_missing".into()), "{path}");
        assert_eq!(none.headers["www-authenticate"], "Bearer", "{path}");
        refused += 1;
    }
    assert!(refused > 20, "{refused}");
    // What is not there is not told apart from what is.
    let nowhere = plane.raw(Method::GET, "/api/nowhere", &[], "").await;
    assert_eq!(problem(&nowhere), (401, "credential_missing".into()));
    let half = &OPERATOR[..OPERATOR.len() - 1];
    for wrong in [
        format!("Bearer {half}"),
        format!("Bearer {OPERATOR}x"),
        format!("Basic {OPERATOR}"),
        OPERATOR.to_owned(),
        "Bearer".to_owned(),
        "Bearer ".to_owned(),
    ] {
        let headers = [("authorization", wrong.as_str())];
        let answer = plane.raw(Method::GET, "/api/status", &headers, "").await;
        assert_eq!(
            problem(&answer),
            (401, "credential_invalid".into()),
            "{wrong}"
        );
    }
    let state = plane.get("/api/upstreams/notes").await;
    assert_eq!(state["state"], "ready");
}

#[tokio::test]
async fn whoever_guesses_is_told_to_wait_and_whoever_knows_is_not() {
    let (plane, _notes) = simple().await;
    for _ in 0..10 {
        let answer = plane.seen("wrong", "/api/status").await;
        assert_eq!(problem(&answer).0, 401);
    }
    let answer = plane.seen("wrong", "/api/status").await;
    assert_eq!(problem(&answer), (429, "rate_limited".into()));
    let wait: u64 = answer.headers["retry-after"]
        .to_str()
        .unwrap()
        .parse()
        .unwrap();
    assert!((1..=60).contains(&wait));
    assert_eq!(plane.seen(OPERATOR, "/api/status").await.status, 200);
}

#[tokio::test]
async fn an_auditor_looks_at_everything_and_changes_nothing() {
    let (plane, _notes) = simple().await;
    let (mut looked, mut kept) = (0, 0);
    for (method, path, operators) in operations() {
        let path = filled(&path);
        if method == Method::POST && operators {
            let answer = plane.done(AUDITOR, &path, "{}").await;
            assert_eq!(problem(&answer), (403, "role_required".into()), "{path}");
            kept += 1;
        } else if method == Method::GET && !path.ends_with("/follow") {
            let answer = plane.seen(AUDITOR, &path).await;
            assert!(!matches!(answer.status, 401 | 403), "{path}: {answer:?}");
            looked += 1;
        }
    }
    assert!(looked >= 15 && kept >= 7, "{looked} {kept}");
    assert_eq!(plane.get("/api/upstreams/notes").await["state"], "ready");
    let question = r#"{"action":"call","name":"notes_t"}"#;
    let answer = plane.done(AUDITOR, "/api/policy/explain", question).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
}

#[tokio::test]
async fn what_a_page_of_another_site_sends_is_refused_whatever_it_knows() {
    let (plane, _notes) = simple().await;
    let path = "/api/upstreams/notes/disable";
    let bearer = format!("Bearer {OPERATOR}");
    let known = ("authorization", bearer.as_str());
    let json = ("content-type", "application/json");
    let other_port = format!("http://127.0.0.1:{}", plane.gateway.address.port());
    for (header, reason) in [
        (("sec-fetch-site", "cross-site"), "cross_site"),
        (("sec-fetch-site", "same-site"), "cross_site"),
        (("origin", other_port.as_str()), "cross_site"),
        (("origin", "http://localhost"), "cross_site"),
    ] {
        let answer = plane
            .raw(Method::POST, path, &[known, json, header], "{}")
            .await;
        assert_eq!(problem(&answer), (403, reason.into()), "{header:?}");
        let answer = plane.raw(Method::GET, "/readyz", &[header], "").await;
        assert_eq!(problem(&answer), (403, reason.into()), "{header:?}");
    }
    for origin in ["https://evil.example", "null"] {
        let origin = ("origin", origin);
        let answer = plane
            .raw(Method::POST, path, &[known, json, origin], "{}")
            .await;
        assert_eq!(answer.status, 403, "{origin:?}");
    }
    // What a form can send without being asked.
    for media in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
    ] {
        let answer = plane
            .raw(Method::POST, path, &[known, ("content-type", media)], "{}")
            .await;
        assert_eq!(problem(&answer), (415, "not_json".into()), "{media}");
    }
    let answer = plane.raw(Method::POST, path, &[known], "{}").await;
    assert_eq!(problem(&answer), (415, "not_json".into()));
    // SECURITY HTTP-6
    for coding in ["gzip", "identity"] {
        let coded = [known, json, ("content-encoding", coding)];
        let answer = plane.raw(Method::POST, path, &coded, "{}").await;
        assert_eq!(problem(&answer), (415, "not_json".into()), "{coding}");
    }
    for body in ["", "[]", "null", r#"{"x":1}"#, r#"{"#] {
        let answer = plane.raw(Method::POST, path, &[known, json], body).await;
        assert_eq!(problem(&answer), (400, "bad_body".into()), "{body}");
    }
    assert_eq!(plane.get("/api/upstreams/notes").await["state"], "ready");
    // Its own page may.
    let own = format!("http://127.0.0.1:{}", plane.address.port());
    let own = [
        known,
        json,
        ("origin", own.as_str()),
        ("sec-fetch-site", "same-origin"),
    ];
    assert_eq!(plane.raw(Method::POST, path, &own, "{}").await.status, 200);
}

#[tokio::test]
async fn a_name_that_was_bound_to_this_machine_is_refused() {
    let (plane, _notes) = simple().await;
    for host in [
        "evil.example",
        "127.0.0.1.evil.example:80",
        "localhost.evil",
    ] {
        let mut socket = TcpStream::connect(plane.address).await.unwrap();
        let request = format!(
            "GET /api/status HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {OPERATOR}\r\nconnection: close\r\n\r\n"
        );
        socket.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        let read = socket.read_to_string(&mut answer);
        within(PATIENCE, "an answer", read).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 403 "), "{host}: {answer}");
        assert!(!answer.contains("ready"), "{answer}");
    }
}

#[tokio::test]
async fn no_answer_is_kept_guessed_at_framed_or_shown_to_another_site() {
    let (plane, _notes) = simple().await;
    let answers = [
        plane.raw(Method::GET, "/healthz", &[], "").await,
        plane.raw(Method::GET, "/nowhere", &[], "").await,
        plane.seen(OPERATOR, "/api/status").await,
        plane.seen(OPERATOR, "/api/nowhere").await,
        plane.done(OPERATOR, "/api/status", "{}").await,
        plane
            .raw(
                Method::OPTIONS,
                "/api/status",
                &[("access-control-request-method", "POST")],
                "",
            )
            .await,
    ];
    for answer in &answers {
        let is = |name: &str| answer.headers[name].to_str().unwrap();
        assert_eq!(is("cache-control"), "no-store");
        assert_eq!(is("x-content-type-options"), "nosniff");
        assert!(is("content-security-policy").starts_with("default-src 'none'"));
        let names = answer.headers.keys();
        let told: Vec<_> = names.map(http::HeaderName::as_str).collect();
        assert!(
            !told.iter().any(|it| it.starts_with("access-control-")
                || *it == "server"
                || *it == "set-cookie"),
            "{told:?}"
        );
    }
    let [_, _, _, nowhere, wrong, _] = &answers;
    assert_eq!(problem(nowhere), (404, "not_found".into()));
    assert_eq!(problem(wrong), (405, "method_not_allowed".into()));
    assert_eq!(wrong.headers["allow"], "GET, HEAD");
}

// RFC 9110, section 9.3.2
#[tokio::test]
async fn head_is_answered_as_get_is_without_the_body() {
    let (plane, _notes) = simple().await;
    let bearer = format!("Bearer {OPERATOR}");
    let known = [("authorization", bearer.as_str())];
    for (path, headers) in [
        ("/healthz", &[][..]),
        ("/readyz", &[]),
        ("/api/status", &known),
        ("/api/status", &[]),
        ("/nowhere", &known),
    ] {
        let whole = plane.raw(Method::GET, path, headers, "").await;
        let head = plane.raw(Method::HEAD, path, headers, "").await;
        assert_eq!(
            (head.status, head.body.as_str()),
            (whole.status, ""),
            "{path}"
        );
        for name in ["content-type", "content-length", "cache-control"] {
            assert_eq!(
                head.headers.get(name),
                whole.headers.get(name),
                "{path} {name}"
            );
        }
    }
    let refused = plane.raw(Method::HEAD, "/reload", &known, "").await;
    assert_eq!(
        (refused.status, &refused.headers["allow"]),
        (405, &"POST".parse().unwrap())
    );
}

#[tokio::test]
async fn what_is_for_operators_is_never_where_clients_come_in() {
    let (plane, _notes) = simple().await;
    for path in [
        "/healthz",
        "/readyz",
        "/metrics",
        "/api/status",
        "/api/openapi.json",
        "/reload",
    ] {
        let bearer = format!("Bearer {OPERATOR}");
        let headers = [("authorization", bearer.as_str())];
        let clients = plane.gateway.address;
        let answer = crate::harness::exchange(clients, Method::GET, path, &headers, b"").await;
        assert_eq!(answer.status, 404, "{path}");
    }
}

#[tokio::test]
async fn health_is_a_word_and_readiness_tells_of_upstreams_until_the_end() {
    let gone = Upstream::http(Revision::V2026_07_28);
    gone.down();
    let notes = Upstream::http(Revision::V2026_07_28).tools([tool("t")]);
    let builder = Gateway::of()
        .upstream("notes", &notes)
        .upstream("gone", &gone);
    let plane = plane(builder).await;
    let health = plane.raw(Method::GET, "/healthz", &[], "").await;
    assert_eq!((health.status, health.body.as_str()), (200, "ok\n"));
    let ready = plane.raw(Method::GET, "/readyz", &[], "").await;
    assert_eq!(ready.status, 200);
    let told = parse(&ready.body);
    assert_eq!(told["status"], "serving");
    assert_eq!(told["upstreams"][0]["name"], "notes");
    assert_eq!(told["upstreams"][0]["state"], "ready");
    assert_eq!(told["upstreams"][1]["state"], "away");
    plane.gateway.app.drain();
    let ready = plane.raw(Method::GET, "/readyz", &[], "").await;
    assert_eq!(ready.status, 503);
    assert_eq!(parse(&ready.body)["status"], "draining");
    let health = plane.raw(Method::GET, "/healthz", &[], "").await;
    assert_eq!(health.status, 200);
    let address = plane.address;
    within(
        Duration::from_secs(20),
        "the end",
        plane.gateway.app.clone().shutdown(),
    )
    .await;
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn where_others_reach_it_metrics_and_upstreams_are_told_to_who_has_a_credential() {
    let notes = Upstream::http(Revision::V2026_07_28).tools([tool("t")]);
    let mut spec = spec();
    spec.listen.hosts = vec!["usher.example".to_owned()];
    let plane = plane_with(Gateway::of().upstream("notes", &notes), spec).await;
    assert_eq!(
        plane.raw(Method::GET, "/healthz", &[], "").await.status,
        200
    );
    let ready = plane.raw(Method::GET, "/readyz", &[], "").await;
    assert_eq!(ready.status, 200);
    assert!(parse(&ready.body)["upstreams"].is_null(), "{}", ready.body);
    let metrics = plane.raw(Method::GET, "/metrics", &[], "").await;
    assert_eq!(problem(&metrics), (401, "credential_missing".into()));
    let ready = plane.seen(AUDITOR, "/readyz").await;
    assert_eq!(parse(&ready.body)["upstreams"][0]["name"], "notes");
    assert_ne!(plane.seen(AUDITOR, "/metrics").await.status, 401);
}

#[tokio::test]
async fn a_token_is_made_where_none_is_configured() {
    let notes = Upstream::http(Revision::V2026_07_28).tools([tool("t")]);
    let mut spec = spec();
    (spec.token, spec.auditor_token) = (None, None);
    let plane = plane_with(Gateway::of().upstream("notes", &notes), spec).await;
    let made = plane.gateway.app.admin().unwrap().made.unwrap();
    let made = secrecy::ExposeSecret::expose_secret(&made);
    assert_eq!(plane.seen(made, "/api/status").await.status, 200);
    for wrong in [OPERATOR, AUDITOR, ""] {
        assert_eq!(plane.seen(wrong, "/api/status").await.status, 401);
    }
}
