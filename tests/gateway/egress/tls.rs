//! EGR-9: an upstream over https is who it says it is, or nothing is said to it.
//! Without https it must be this machine, or written down.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use super::*;

/// Answers nothing that is MCP, behind a certificate for `localhost`; counts the requests that reach it.
async fn server(tasks: &Tasks) -> (SocketAddr, String, Arc<AtomicUsize>) {
    let issued = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
    let key = rustls::pki_types::PrivateKeyDer::try_from(issued.signing_key.serialize_der());
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![issued.cert.der().clone()], key.unwrap())
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let requests = Arc::new(AtomicUsize::new(0));
    let (count, family) = (Arc::clone(&requests), tasks.clone());
    tasks.spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, count) = (acceptor.clone(), Arc::clone(&count));
            family.spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else {
                    return;
                };
                let mut part = [0; 4_096];
                if matches!(stream.read(&mut part).await, Ok(1..)) {
                    count.fetch_add(1, Ordering::SeqCst);
                }
                let answer = b"HTTP/1.1 503 X\r\ncontent-length: 0\r\n\r\n";
                drop(stream.write_all(answer).await);
            });
        }
    });
    (address, issued.cert.pem(), requests)
}

#[tokio::test]
async fn egr_9_an_upstream_whose_certificate_is_not_of_our_roots_or_not_its_own_hears_nothing() {
    let tasks = Tasks::new();
    let (address, ca, requests) = server(&tasks).await;
    let directory = tempfile::tempdir().unwrap();
    let roots = directory.path().join("ca.pem");
    std::fs::write(&roots, ca).unwrap();
    let trusted = format!("tls: {{ ca: \"${{file:{}}}\" }}", roots.display());
    for (host, tls, heard) in [
        ("localhost", "", false),
        ("127.0.0.1", trusted.as_str(), false),
        ("localhost", trusted.as_str(), true),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("usher.yaml");
        let url = format!("https://{host}:{}/mcp", address.port());
        let auth = "auth: { bearer: \"${env:TOKEN}\" }";
        let text = format!("upstreams: {{ notes: {{ url: \"{url}\", {auth}, {tls} }} }}\n");
        std::fs::write(&path, text).unwrap();
        let vars = |_: &str| Some("t0ken".to_owned());
        let mut plan = config::load(&path, &vars).unwrap_or_else(|no| panic!("{no:?}"));
        plan.listen.address = SocketAddr::from(([127, 0, 0, 1], 0));
        let before = requests.load(Ordering::SeqCst);
        let gateway = Secretive::of(plan, directory).await;
        let now = requests.load(Ordering::SeqCst);
        assert_eq!(now > before, heard, "{host} {tls}");
        assert_eq!(gateway.app.statuses()[0].state, "away");
    }
    tasks.stop();
}

#[test]
fn egr_9_plain_http_is_for_this_machine_or_written_down() {
    let with = |url: &str, more: &str| {
        config::of_text(&format!(
            "upstreams: {{ notes: {{ url: \"{url}\", {more} }} }}\n"
        ))
    };
    assert!(with("http://127.0.0.1:1/mcp", "").is_ok());
    assert!(with("http://notes.example/mcp", "plain_http: true").is_ok());
    assert!(with("http://notes.example/mcp", "").is_err());
    assert!(with("http://127.0.0.1.example/mcp", "").is_err());
}
