//! TLS ended at the edge: chains, protocols, client certificates, and clients that do not finish the handshake.

use std::{io, sync::Arc, time::Duration};

use http::StatusCode;
use rcgen::{BasicConstraints, Certificate, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{PrivateKeyDer, ServerName, pem::PemObject as _},
};
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, client::TlsStream};
use usher::server::spec::TlsServerSpec;

use crate::{
    h2,
    harness::{Edge, Raw, call},
};

/// An authority of our own.
struct Authority {
    root: Certificate,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate it signed.
struct Signed {
    certificate: Certificate,
    key: KeyPair,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let root = params.self_signed(&key).unwrap();
        Self {
            root,
            issuer: Issuer::new(params, key),
        }
    }

    fn sign(&self, name: &str) -> Signed {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new([name.to_owned()])
            .unwrap()
            .signed_by(&key, &self.issuer)
            .unwrap();
        Signed { certificate, key }
    }

    fn edge(&self, client_ca: Option<&Self>) -> Edge {
        let own = self.sign("localhost");
        Edge::with(|spec| {
            spec.bounds.handshake = Duration::from_secs(3);
            spec.tls = Some(TlsServerSpec {
                cert: own.certificate.pem().into_bytes(),
                key: own.key.serialize_pem().into(),
                client_ca: client_ca.map(|ca| ca.root.pem().into_bytes()),
            });
        })
    }

    async fn connect(
        &self,
        edge: &Edge,
        own: Option<&Signed>,
        alpn: &[&[u8]],
    ) -> io::Result<TlsStream<TcpStream>> {
        let mut roots = RootCertStore::empty();
        roots.add(self.root.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let mut config = match own {
            None => builder.with_no_client_auth(),
            Some(own) => {
                let key = PrivateKeyDer::from_pem_slice(own.key.serialize_pem().as_bytes());
                builder
                    .with_client_auth_cert(vec![own.certificate.der().clone()], key.unwrap())
                    .unwrap()
            }
        };
        config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
        let stream = TcpStream::connect(edge.server.address()).await?;
        let name = ServerName::try_from("localhost").unwrap();
        TlsConnector::from(Arc::new(config))
            .connect(name, stream)
            .await
    }
}

#[tokio::test]
async fn both_protocols_are_served_over_tls() {
    let authority = Authority::new();
    let edge = authority.edge(None);
    for alpn in [&[][..], &[&b"http/1.1"[..]]] {
        let stream = authority.connect(&edge, None, alpn).await.unwrap();
        let mut raw = Raw::new(stream);
        for body in ["one", "two"] {
            raw.send(call(body)).await;
            assert_eq!(raw.answer().await.body, format!("echo:{body}"));
        }
    }
    let stream = authority
        .connect(&edge, None, &[b"h2", b"http/1.1"])
        .await
        .unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let mut client = h2::client(&edge, stream).await;
    let answer = h2::send(&mut client, h2::post("https://localhost/mcp"), "two").await;
    assert_eq!(answer, (StatusCode::OK, "echo:two".to_owned()));
}

#[tokio::test]
async fn http_7_a_preface_without_agreement_on_http_2_is_400() {
    let authority = Authority::new();
    let edge = authority.edge(None);
    let stream = authority
        .connect(&edge, None, &[b"http/1.1"])
        .await
        .unwrap();
    let mut raw = Raw::new(stream);
    raw.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
    assert_eq!(raw.answer().await.status, 400);
}

#[tokio::test]
async fn framing_is_guarded_under_tls_too() {
    let authority = Authority::new();
    let edge = authority.edge(None);
    let mut raw = Raw::new(authority.connect(&edge, None, &[]).await.unwrap());
    let bad =
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n";
    raw.send(format!("{bad}{}", call("smuggled"))).await;
    let said = raw.rest().await;
    assert!(said.starts_with("HTTP/1.1 400 "), "{said}");
    assert_eq!(edge.bodies(), [""; 0]);
}

#[tokio::test]
async fn without_the_client_certificate_that_is_asked_for_nothing_is_served() {
    let authority = Authority::new();
    let clients = Authority::new();
    let edge = authority.edge(Some(&clients));
    let stranger = Authority::new().sign("client");
    for own in [None, Some(&stranger)] {
        // In TLS 1.3 a client learns of the refusal when it reads.
        if let Ok(stream) = authority.connect(&edge, own, &[]).await {
            let mut raw = Raw::new(stream);
            raw.send(call("refused")).await;
            assert_eq!(raw.rest().await, "");
        }
    }
    assert_eq!(edge.bodies(), [""; 0]);
    let known = clients.sign("client");
    let stream = authority.connect(&edge, Some(&known), &[]).await.unwrap();
    let mut raw = Raw::new(stream);
    raw.send(call("known")).await;
    assert_eq!(raw.answer().await.body, "echo:known");
}

#[tokio::test]
async fn a_handshake_that_does_not_end_is_closed() {
    let authority = Authority::new();
    let edge = authority.edge(None);
    let before = crate::meter::reached("http.handshake_time");
    let mut raw = edge.connect().await;
    raw.send([0x16, 0x03, 0x01]).await;
    assert_eq!(raw.rest().await, "");
    crate::limits::until_counted("http.handshake_time", before).await;
}

#[tokio::test]
async fn plain_http_on_a_tls_port_gets_no_answer() {
    let authority = Authority::new();
    let edge = authority.edge(None);
    let said = edge.connect().await.say_bytes(call("plain")).await;
    assert!(!said.starts_with(b"HTTP"), "{}", said.escape_ascii());
    assert_eq!(edge.bodies(), [""; 0]);
}

#[test]
fn tls_settings_that_cannot_be_used_are_refused_at_bind() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let _inside = runtime.enter();
    let own = Authority::new().sign("localhost");
    let other = KeyPair::generate().unwrap();
    let cert = own.certificate.pem().into_bytes();
    let key = own.key.serialize_pem();
    for (cert, key, client_ca) in [
        (Vec::new(), key.clone(), None),
        (b"garbage".to_vec(), key.clone(), None),
        (cert.clone(), "garbage".to_owned(), None),
        (cert.clone(), other.serialize_pem(), None),
        (cert.clone(), key, Some(Vec::new())),
    ] {
        let error = Edge::try_with(|spec| {
            spec.tls = Some(TlsServerSpec {
                cert,
                key: key.into(),
                client_ca,
            });
        })
        .err()
        .expect("bound with TLS settings that cannot be used");
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{error:?}");
    }
}
