//! A server of HTTP for tests: it answers each connection once, and remembers what it was sent.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use rustls::{
    RootCertStore, ServerConfig,
    pki_types::PrivateKeyDer,
    server::{WebPkiClientVerifier, danger::ClientCertVerifier},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};
use tokio_rustls::TlsAcceptor;

use super::{TlsSpec, wire::Io};
use crate::tasks::Tasks;

/// A server on a free port of this machine.
pub(crate) struct Answering {
    pub(crate) at: SocketAddr,
    seen: Arc<Mutex<Vec<String>>>,
    _tasks: Stopped,
}

/// Stops tasks when it is dropped.
pub(crate) struct Stopped(pub(crate) Tasks);

impl Drop for Stopped {
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl Answering {
    /// Always the same bytes.
    pub(crate) async fn with(answer: Vec<u8>) -> Self {
        Self::by(move |_| answer.clone()).await
    }

    /// What `answer` makes of the whole request.
    pub(crate) async fn by(answer: impl Fn(&str) -> Vec<u8> + Send + 'static) -> Self {
        Self::behind(None, answer).await
    }

    /// The same over TLS, as `localhost`, for nobody but who has the TLS that comes with it.
    pub(crate) async fn for_one(
        answer: impl Fn(&str) -> Vec<u8> + Send + 'static,
    ) -> (Self, TlsSpec) {
        let issued = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
        let own = issued.cert.der().clone();
        let mut roots = RootCertStore::empty();
        roots.add(own.clone()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let verifier: Arc<dyn ClientCertVerifier> =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
                .build()
                .unwrap();
        let key = PrivateKeyDer::try_from(issued.signing_key.serialize_der()).unwrap();
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(verifier)
            .with_single_cert(vec![own], key)
            .unwrap();
        let pem = issued.cert.pem().into_bytes();
        let tls = TlsSpec {
            ca: Some(pem.clone()),
            identity: Some((pem, issued.signing_key.serialize_pem().into())),
        };
        let acceptor = TlsAcceptor::from(Arc::new(config));
        (Self::behind(Some(acceptor), answer).await, tls)
    }

    async fn behind(
        acceptor: Option<TlsAcceptor>,
        answer: impl Fn(&str) -> Vec<u8> + Send + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let tasks = Tasks::new();
        let heard = Arc::clone(&seen);
        tasks.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let mut stream: Box<dyn Io> = match &acceptor {
                    None => Box::new(stream),
                    Some(acceptor) => match acceptor.accept(stream).await {
                        Ok(stream) => Box::new(stream),
                        Err(_refused) => continue,
                    },
                };
                let mut sent = Vec::new();
                let mut part = [0; 4_096];
                while !is_whole(&sent) {
                    match stream.read(&mut part).await {
                        Ok(0) | Err(_) => break,
                        Ok(read) => sent.extend_from_slice(&part[..read]),
                    }
                }
                let sent = String::from_utf8(sent).unwrap();
                let answer = answer(&sent);
                heard.lock().unwrap().push(sent);
                drop(stream.write_all(&answer).await);
                drop(stream.shutdown().await);
            }
        });
        Self {
            at,
            seen,
            _tasks: Stopped(tasks),
        }
    }

    /// Every request, head and body.
    pub(crate) fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

fn is_whole(sent: &[u8]) -> bool {
    let text = String::from_utf8_lossy(sent).to_ascii_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "))
        .map_or(0, |length| length.parse().unwrap());
    body.len() >= length
}

/// An answer with this body.
pub(crate) fn ok(body: &str) -> Vec<u8> {
    answer(200, body)
}

/// The same with any status.
pub(crate) fn answer(status: u16, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status} X\r\ncontent-length: {length}\r\nset-cookie: a=b\r\n\r\n{body}")
        .into()
}
