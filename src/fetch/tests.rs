//! Fetching over real sockets of this machine, with lookups of the tests' own.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpSocket, TcpStream},
    time::timeout,
};

use super::{
    answering::{Answering, Stopped, ok},
    *,
};
use crate::tasks::Tasks;

/// A fetcher whose lookup finds these, one after the other, and counts how often it was asked.
fn finding(answers: Vec<Vec<SocketAddr>>) -> (Fetcher, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let lookup: Lookup = Box::new(move |_, _| {
        let at = count.fetch_add(1, Ordering::Relaxed).min(answers.len() - 1);
        let found = answers[at].clone();
        Box::pin(async move { Ok(found) })
    });
    (Fetcher::over(None, lookup).unwrap(), asked)
}

fn configured(text: &str) -> Address {
    Address::configured(text, true).unwrap()
}

#[tokio::test]
async fn a_document_is_fetched_and_nothing_but_its_bytes_and_status_is_kept() {
    let server = Answering::with(ok(r#"{"a":1}"#)).await;
    let fetcher = Fetcher::new(None).unwrap();
    let at = configured(&format!("http://{}/.well-known/x?y=z", server.at));
    let document = fetcher.document(&at, Fetcher::METADATA).await.unwrap();
    assert_eq!(document.status, 200);
    assert_eq!(document.json().unwrap().as_str(), r#"{"a":1}"#);
    assert_eq!(format!("{document:?}"), "Document(200 OK, 7 bytes)");
    let seen = server.seen();
    assert!(
        seen[0].starts_with("GET /.well-known/x?y=z HTTP/1.1\r\n"),
        "{seen:?}"
    );
    for header in ["cookie", "authorization", "content-type"] {
        assert!(!seen[0].to_ascii_lowercase().contains(header), "{seen:?}");
    }
}

#[tokio::test]
async fn a_form_is_encoded_and_sent_with_its_authorization() {
    let server = Answering::with(ok("{}")).await;
    let fetcher = Fetcher::new(None).unwrap();
    let at = configured(&format!("http://{}/token", server.at));
    let basic = HeaderValue::from_static("Basic eDp5");
    let fields = [("grant_type", "a b"), ("scope", "ä&=+")];
    fetcher
        .form(&at, Some(basic), &fields, Fetcher::ANSWER)
        .await
        .unwrap();
    let seen = server.seen();
    assert!(seen[0].starts_with("POST /token HTTP/1.1\r\n"), "{seen:?}");
    assert!(
        seen[0].contains("authorization: Basic eDp5\r\n"),
        "{seen:?}"
    );
    assert!(
        seen[0].ends_with("\r\n\r\ngrant_type=a+b&scope=%C3%A4%26%3D%2B"),
        "{seen:?}"
    );
}

#[tokio::test]
async fn egr_3_a_redirect_is_refused_and_nobody_is_asked_again() {
    let elsewhere = Answering::with(ok("{}")).await;
    for status in [301, 302, 303, 307, 308] {
        let location = format!("http://{}/", elsewhere.at);
        let server = Answering::with(
            format!("HTTP/1.1 {status} Away\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n")
                .into(),
        )
        .await;
        let fetcher = Fetcher::new(None).unwrap();
        let at = configured(&format!("http://{}/token", server.at));
        let fetched = fetcher.form(&at, None, &[("a", "b")], 100).await;
        assert_eq!(fetched.unwrap_err(), FetchError::Redirect);
        assert_eq!(server.seen().len(), 1);
    }
    assert_eq!(elsewhere.seen().len(), 0);
}

#[tokio::test]
async fn egr_4_a_peers_address_that_leads_to_this_machine_is_not_dialled_in_any_spelling() {
    let server = Answering::with(ok("{}")).await;
    let fetcher = Fetcher::new(None).unwrap();
    let port = server.at.port();
    for host in [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "localhost",
        "LOCALHOST",
        "localhost.",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[0:0:0:0:0:0:0:1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "0.0.0.0",
        "0",
        "[::]",
    ] {
        let Ok(at) = Address::discovered(&format!("https://{host}:{port}/keys")) else {
            continue;
        };
        let fetched = fetcher.document(&at, 100).await;
        assert!(
            matches!(
                fetched,
                Err(FetchError::NotPublic | FetchError::Unavailable(_))
            ),
            "{host}: {fetched:?}"
        );
    }
    assert_eq!(server.seen().len(), 0);
    let at = Address::discovered(&format!("https://127.0.0.1:{port}/keys")).unwrap();
    let fetched = fetcher.document(&at, 100).await;
    assert_eq!(fetched.unwrap_err(), FetchError::NotPublic);
}

#[tokio::test]
async fn egr_4_every_address_of_a_name_must_be_public() {
    let private: SocketAddr = "10.0.0.1:443".parse().unwrap();
    let public: SocketAddr = "1.1.1.1:443".parse().unwrap();
    let (fetcher, _) = finding(vec![vec![public, private]]);
    let at = Address::discovered("https://both.example/").unwrap();
    let fetched = fetcher.document(&at, 100).await;
    assert_eq!(fetched.unwrap_err(), FetchError::NotPublic);
}

#[tokio::test]
async fn egr_4_the_address_that_was_checked_is_the_one_that_is_dialled() {
    let server = Answering::with(ok("{}")).await;
    let trap = Answering::with(ok("{}")).await;
    // A name that leads elsewhere the second time it is asked for.
    let (fetcher, asked) = finding(vec![vec![server.at], vec![trap.at]]);
    let at = configured("http://rebinding.example:1/");
    fetcher.document(&at, 100).await.unwrap();
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    assert_eq!((server.seen().len(), trap.seen().len()), (1, 0));
    assert!(server.seen()[0].contains("host: rebinding.example:1\r\n"));
}

#[tokio::test]
async fn an_answer_is_read_up_to_its_bound_and_not_beyond() {
    let exact = Answering::with(ok(r#"{"a":12345}"#)).await;
    let at = configured(&format!("http://{}/", exact.at));
    let fetcher = Fetcher::new(None).unwrap();
    assert!(fetcher.document(&at, 12).await.is_ok());
    assert!(fetcher.document(&at, 11).await.is_ok());
    let fetched = fetcher.document(&at, 10).await;
    assert_eq!(fetched.unwrap_err(), FetchError::TooLarge(10));
    // And where no length is promised.
    let endless =
        Answering::with([b"HTTP/1.1 200 OK\r\n\r\n".as_slice(), &[b' '; 100_000]].concat()).await;
    let at = configured(&format!("http://{}/", endless.at));
    let fetched = fetcher.document(&at, 1_000).await;
    assert_eq!(fetched.unwrap_err(), FetchError::TooLarge(1_000));
}

#[tokio::test]
async fn who_never_answers_is_waited_for_no_longer_than_the_limit() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = configured(&format!("http://{}/", listener.local_addr().unwrap()));
    let fetcher = Fetcher::new(None).unwrap();
    let fetching = fetcher.document(&at, 100);
    let accepted = async {
        let held = listener.accept().await.unwrap();
        tokio::time::pause();
        std::future::pending::<()>().await;
        drop(held);
    };
    let fetched = tokio::select! {
        fetched = fetching => fetched,
        () = accepted => unreachable!(),
    };
    assert_eq!(fetched.unwrap_err(), FetchError::Timeout("answer"));
}

/// What stands before a server shows a page beside its challenge, as long as it likes and packed for browsers.
#[tokio::test]
async fn a_challenge_is_read_whatever_page_comes_beside_it() {
    const BEARER: &str = "www-authenticate: Bearer scope=\"a b\"";
    let page = " ".repeat(Fetcher::METADATA + 1);
    for (head, page, asked) in [
        ("401 X", "", true),
        ("401 X", &*page, true),
        ("401 X\r\ncontent-encoding: gzip", "{}", true),
        ("200 OK", "", false),
        ("403 X", "", false),
    ] {
        let length = page.len();
        let answer =
            format!("HTTP/1.1 {head}\r\n{BEARER}\r\ncontent-length: {length}\r\n\r\n{page}");
        let server = Answering::with(answer.into()).await;
        let at = configured(&format!("http://{}/", server.at));
        let challenge = Fetcher::new(None).unwrap().challenge(&at).await.unwrap();
        let scopes = challenge.map(|challenge| challenge.scopes.join(" "));
        assert_eq!(scopes.as_deref(), asked.then_some("a b"), "{head}");
    }
}

/// Servers of the older era may begin one for whatever comes without.
#[tokio::test]
async fn a_session_that_a_server_begins_for_who_asks_for_its_challenge_is_ended() {
    for (name, methods) in [
        ("mcp-session-id", &["POST", "DELETE"][..]),
        ("x", &["POST"]),
    ] {
        let answer = format!("HTTP/1.1 400 X\r\n{name}: asked\r\ncontent-length: 0\r\n\r\n");
        let server = Answering::with(answer.into()).await;
        let at = configured(&format!("http://{}/mcp", server.at));
        let challenge = Fetcher::new(None).unwrap().challenge(&at).await;
        assert_eq!(challenge.unwrap(), None);
        let seen = server.seen();
        let sent = seen.iter().map(|seen| seen.split(' ').next().unwrap());
        assert_eq!(sent.collect::<Vec<_>>(), methods);
        if let Some(left) = seen.get(1) {
            assert!(left.starts_with("DELETE /mcp HTTP"), "{left}");
            assert!(left.contains("mcp-session-id: asked\r\n"), "{left}");
        }
    }
}

#[tokio::test]
async fn what_is_not_strict_json_or_no_success_is_told_apart() {
    let server = Answering::with(ok(r#"{"a":1,"a":2}"#)).await;
    let fetcher = Fetcher::new(None).unwrap();
    let at = configured(&format!("http://{}/", server.at));
    let document = fetcher.document(&at, 100).await.unwrap();
    assert_eq!(document.json().unwrap_err(), FetchError::NotJson);

    let refusing = b"HTTP/1.1 400 No\r\ncontent-length: 2\r\n\r\n{}".to_vec();
    let server = Answering::with(refusing).await;
    let at = configured(&format!("http://{}/", server.at));
    let document = fetcher.document(&at, 100).await.unwrap();
    assert_eq!(document.json().unwrap_err(), FetchError::Status(400));
    assert_eq!(document.any_json().unwrap().as_str(), "{}");

    let packed = b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 2\r\n\r\n{}";
    let server = Answering::with(packed.to_vec()).await;
    let at = configured(&format!("http://{}/", server.at));
    let fetched = fetcher.document(&at, 100).await;
    assert_eq!(fetched.unwrap_err(), FetchError::NotJson);
}

#[tokio::test]
async fn egr_9_a_certificate_must_chain_to_the_roots_and_name_the_host() {
    let issued = rcgen::generate_simple_self_signed(vec!["idp.example".into()]).unwrap();
    let pem = issued.cert.pem();
    let key =
        rustls::pki_types::PrivateKeyDer::try_from(issued.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![issued.cert.der().clone()], key)
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let found = listener.local_addr().unwrap();
    let tasks = Tasks::new();
    let _stopped = Stopped(tasks.clone());
    tasks.spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            if let Ok(mut stream) = acceptor.accept(stream).await {
                let mut part = [0; 4_096];
                drop(stream.read(&mut part).await);
                drop(stream.write_all(&ok("{}")).await);
                drop(stream.shutdown().await);
            }
        }
    });
    let fetcher = |ca: Option<&[u8]>| {
        let lookup: Lookup = Box::new(move |_, _| Box::pin(async move { Ok(vec![found]) }));
        Fetcher::over(ca, lookup).unwrap()
    };
    let fetch = async |fetcher: Fetcher, host: &str| {
        let at = configured(&format!("https://{host}/"));
        fetcher
            .document(&at, 100)
            .await
            .map(|document| document.status.as_u16())
    };
    assert_eq!(
        fetch(fetcher(Some(pem.as_bytes())), "idp.example").await,
        Ok(200)
    );
    for (ca, host) in [
        (Some(pem.as_bytes()), "other.example"),
        (None, "idp.example"),
    ] {
        let fetched = fetch(fetcher(ca), host).await;
        assert!(
            matches!(&fetched, Err(error @ FetchError::Untrusted(_)) if !error.is_passing()),
            "{fetched:?}"
        );
    }
}

#[tokio::test]
async fn egr_9_what_is_for_one_origin_is_trusted_and_shown_there_by_the_operators_word_alone() {
    let (server, tls) = Answering::for_one(|_| ok("{}")).await;
    let (others, _) = Answering::for_one(|_| ok("{}")).await;
    let origin = |port: u16| format!("https://localhost:{port}/");
    let here = configured(&origin(server.at.port()));
    let nowhere = Fetcher::new(None).unwrap();
    let fetcher = nowhere.with(&here, &tls).unwrap();
    let fetched = async |fetcher: &Fetcher, at: &Address| {
        let fetched = fetcher.document(at, 100).await;
        fetched.map(|document| document.status.as_u16())
    };
    let other_path = here.at_path("/.well-known/x").unwrap();
    for at in [&here, &other_path] {
        assert_eq!(fetched(&fetcher, at).await, Ok(200));
    }
    // Nor is it enough to be trusted.
    let nobody = TlsSpec {
        identity: None,
        ..tls.clone()
    };
    assert!(fetched(&nowhere, &here).await.is_err());
    let nobody = nowhere.with(&here, &nobody).unwrap();
    assert!(fetched(&nobody, &here).await.is_err());
    assert_eq!(server.seen().len(), 2);
    let elsewhere = configured(&origin(others.at.port()));
    let strange = fetched(&fetcher, &elsewhere).await;
    assert!(
        matches!(strange, Err(FetchError::Untrusted(_))),
        "{strange:?}"
    );
    // A peer's word, whoever's it is.
    let named = Address::discovered(&origin(server.at.port())).unwrap();
    assert!(Arc::ptr_eq(fetcher.tls(&named), nowhere.tls(&named)));
    let trusted = here.named_here(&origin(server.at.port())).unwrap();
    assert!(!Arc::ptr_eq(fetcher.tls(&trusted), nowhere.tls(&trusted)));
    let broken = TlsSpec {
        ca: Some(b"no PEM".to_vec()),
        identity: None,
    };
    assert!(matches!(
        nowhere.with(&here, &broken),
        Err(FetchError::Unusable(_))
    ));
}

#[tokio::test]
async fn a_handshake_that_breaks_may_pass_and_what_speaks_no_tls_does_not() {
    for (says, passes) in [
        (&b""[..], true),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", false),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = configured(&format!("https://{}/", listener.local_addr().unwrap()));
        let answering = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut part = [0; 4_096];
            drop(stream.read(&mut part).await);
            drop(stream.write_all(says).await);
            drop(stream.shutdown().await);
        };
        let fetcher = Fetcher::new(None).unwrap();
        let (fetched, ()) = tokio::join!(fetcher.document(&at, 100), answering);
        let error = fetched.unwrap_err();
        assert_eq!(error.is_passing(), passes, "{error}");
    }
}

#[test]
fn addresses_are_refused_for_what_is_wrong_with_them() {
    for text in [
        "",
        "idp.example",
        "/path",
        "ftp://idp.example/",
        "file:///etc/passwd",
        "https://user@idp.example/",
        "https://user:pass@idp.example/",
        "https://idp.example/#a",
        "https://[fe80::1%25eth0]/",
        "https:///path",
        "https://idp.example:99999/",
    ] {
        assert!(Address::configured(text, true).is_err(), "{text}");
        assert!(Address::discovered(text).is_err(), "{text}");
    }
    assert!(Address::discovered("http://idp.example/").is_err());
    assert!(Address::configured("http://idp.example/", false).is_err());
    for text in [
        "http://localhost:1/",
        "http://127.0.0.1/",
        "http://[::1]:1/",
        "https://10.0.0.1/",
    ] {
        assert!(Address::configured(text, false).is_ok(), "{text}");
    }
}

#[test]
fn a_document_may_name_its_own_origin_and_otherwise_counts_as_a_peer() {
    let metadata = Address::configured("http://127.0.0.1:9000/.well-known/x", false).unwrap();
    let trust = |text: &str| metadata.named_here(text).map(|address| address.trust());
    assert_eq!(trust("http://127.0.0.1:9000/token"), Ok(Trust::Configured));
    assert_eq!(trust("https://idp.example/token"), Ok(Trust::Discovered));
    assert_eq!(trust("https://127.0.0.1:9000/token"), Ok(Trust::Discovered));
    for other in ["http://127.0.0.1:9001/token", "http://localhost:9000/token"] {
        assert!(trust(other).is_err(), "{other}");
    }
    // A peer's document vouches for nothing.
    let theirs = Address::discovered("https://idp.example/x").unwrap();
    let named = theirs.named_here("https://idp.example/token").unwrap();
    assert_eq!(named.trust(), Trust::Discovered);
}

/// A family of addresses that leads nowhere and says nothing keeps nobody from the other.
#[tokio::test]
async fn an_address_that_says_nothing_keeps_nobody_from_the_next() {
    let silent = TcpSocket::new_v4().unwrap();
    silent.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let silent = silent.listen(1).unwrap();
    let nowhere = silent.local_addr().unwrap();
    // Nobody takes what waits there, and once that is all it holds it says nothing any more.
    let mut waiting = Vec::new();
    while let Ok(stream) = timeout(Duration::from_millis(500), TcpStream::connect(nowhere)).await {
        waiting.push(stream.unwrap());
        assert!(waiting.len() < 64, "it goes on answering");
    }
    let there = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let there = (there.local_addr().unwrap(), there);
    let all = [nowhere, nowhere, there.0];
    let dialled = timeout(Fetcher::CONNECT, wire::dial(&all));
    let stream = dialled.await.expect("in time").unwrap();
    assert_eq!(stream.peer_addr().unwrap(), there.0);
    // What refuses is told, and nothing is waited for.
    let closed = there.0;
    drop((stream, there.1));
    assert!(wire::dial(&[closed]).await.is_err());
    assert!(wire::dial(&[]).await.is_err());
}
