//! What is told of an answer that refuses a request and asks for no credential.

use super::*;

const BARE: &str = "refused the request with HTTP 403";

/// What is told of a POST and of a GET that a server with these headers of ours answers so.
async fn told<F>(make: F) -> [String; 2]
where
    F: Fn() -> Response<Body> + Clone + Send + Sync + 'static,
{
    let tasks = Tasks::new();
    let made = move |_request| std::future::ready(make());
    let address = serve(&tasks, None, None, made).await;
    let mut spec = spec("http", "127.0.0.1", address, "/mcp");
    let key = header::HeaderName::from_static("x-api-key");
    spec.headers
        .push((key, "configured-0a1b2c".to_owned().into()));
    let http = streamable(&spec, timeouts(), &tasks).unwrap();
    let mut out = request(1);
    let headers = [
        ("mcp-session-id", "session-3d4e5f"),
        ("authorization", "Bearer of-ana-6a7b8c"),
    ];
    for (name, value) in headers {
        out.headers.insert(name, HeaderValue::from_static(value));
    }
    let streamed = http.unsolicited(out.headers.clone()).await.err().unwrap();
    let posted = ask(&http, out).await.unwrap_err();
    for error in [&posted, &streamed] {
        assert_eq!(error.reason(), "upstream_auth_failed", "{error}");
        assert_eq!(error.status(), Some(403), "{error}");
    }
    [posted.to_string(), streamed.to_string()]
}

/// SECURITY EGR-6, AUD-8: so `@playwright/mcp` refuses a host that it does not know.
#[tokio::test]
async fn a_403_without_a_challenge_is_told_in_its_own_words_and_without_secrets() {
    for (said, words) in [
        (
            "Access is only allowed at\r\n  localhost:8931\n",
            ": Access is only allowed at localhost:8931",
        ),
        (r#"{"error":"no"}"#, r#": {"error":"no"}"#),
        ("a\u{1b}[2J\u{202e}b", r": a\u{1b}[2J\u{202e}b"),
        (" \r\n", ""),
        (
            "not configured-0a1b2c, of-ana-6a7b8c, session-3d4e5f",
            ": not [redacted:own_credential], [redacted:own_credential], [redacted:own_credential]",
        ),
    ] {
        let all = told(move || answer(403, "text/plain", full(said))).await;
        assert_eq!(all, [(); 2].map(|()| format!("{BARE}{words}")), "{said}");
    }
    let long = || answer(403, "text/plain", full("x".repeat(1 << 20)));
    for told in told(long).await {
        assert_eq!(told, format!("{BARE}: {}", "x".repeat(200)));
    }
}

#[tokio::test]
async fn what_asks_for_a_credential_is_compressed_or_never_comes_is_not_told() {
    let asking = || {
        let mut answer = answer(403, "text/plain", full("words"));
        let bearer = HeaderValue::from_static("Bearer");
        answer
            .headers_mut()
            .insert(header::WWW_AUTHENTICATE, bearer);
        answer
    };
    for told in told(asking).await {
        assert_eq!(told, "refused our credential with HTTP 403");
    }
    let compressed = || {
        let mut answer = answer(403, "text/plain", full("words"));
        let gzip = HeaderValue::from_static("gzip");
        answer.headers_mut().insert(CONTENT_ENCODING, gzip);
        answer
    };
    assert_eq!(told(compressed).await, [BARE; 2]);
    let kept = Arc::new(Mutex::new(Vec::new()));
    let silent = move || {
        let (data, body) = mpsc::channel(1);
        kept.lock().unwrap().push(data);
        answer(403, "text/plain", open(body))
    };
    assert_eq!(told(silent).await, [BARE; 2]);
}
