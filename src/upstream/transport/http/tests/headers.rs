//! What requests carry beside their frame.

use super::*;

#[tokio::test]
async fn a_post_carries_the_peers_and_the_configured_headers_and_nothing_else() {
    let tasks = Tasks::new();
    let seen = Arc::new(Mutex::new(None));
    let keep = Arc::clone(&seen);
    let address = serve(&tasks, None, None, move |request| {
        *keep.lock().unwrap() = Some(request);
        std::future::ready(answer(200, TYPE, full(result(1, 5))))
    })
    .await;
    let mut spec = spec("http", "127.0.0.1", address, "/mcp?x=1");
    let credential = (header::AUTHORIZATION, "Bearer s3cret".to_owned().into());
    spec.headers.push(credential);
    let http = streamable(&spec, timeouts(), &tasks).unwrap();
    let mut out = request(1);
    out.headers
        .insert("mcp-session-id", HeaderValue::from_static("s"));
    let sent = out.frame.clone();
    assert_eq!(ask(&http, out).await.unwrap(), ["{\"n\":5}"]);

    let request = seen.lock().unwrap().take().unwrap();
    assert_eq!(request.method(), Method::POST);
    assert_eq!(request.uri().to_string(), "/mcp?x=1");
    assert_eq!(request.body(), &sent);
    let expected = [
        ("accept", "application/json, text/event-stream".to_owned()),
        ("accept-encoding", "identity".to_owned()),
        ("authorization", "Bearer s3cret".to_owned()),
        ("content-length", sent.len().to_string()),
        ("content-type", "application/json".to_owned()),
        ("host", format!("127.0.0.1:{}", address.port())),
        ("mcp-session-id", "s".to_owned()),
        (
            "user-agent",
            concat!("usher/", env!("CARGO_PKG_VERSION")).to_owned(),
        ),
    ];
    let mut headers: Vec<_> = request
        .headers()
        .iter()
        .map(|(name, value)| (name.as_str(), value.to_str().unwrap().to_owned()))
        .collect();
    headers.sort();
    assert_eq!(headers, expected);
}

/// Firewalls of large hosts refuse requests without one.
#[test]
fn who_asks_is_told_unless_the_configuration_says_otherwise() {
    let mut spec = spec("http", "127.0.0.1", ([127, 0, 0, 1], 80).into(), "/mcp");
    let told = |spec: &HttpSpec| {
        let headers = configured(spec).unwrap();
        let values = headers.get_all(USER_AGENT).iter();
        values
            .map(|value| value.to_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let ours = told(&spec);
    assert!(ours.len() == 1 && ours[0].starts_with("usher/"), "{ours:?}");
    let theirs = (USER_AGENT, "mozilla".to_owned().into());
    spec.headers.push(theirs);
    assert_eq!(told(&spec), ["mozilla"]);
}
