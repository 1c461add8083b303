//! Client certificates: whose name is in one is who calls, over TLS that asks for it.

use std::sync::Arc;

use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DnType, IsCa, Issuer, KeyPair, SanType,
};
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{PrivateKeyDer, ServerName, pem::PemObject as _},
};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use usher::{
    auth::spec::{CertificateName, CertificateSpec},
    server::spec::TlsServerSpec,
    tasks::Tasks,
};

use crate::{
    audit::{recording, records},
    harness::{Authority, Gateway, Revision, Upstream, parse, tool},
};

/// Signs certificates.
struct Root {
    root: Certificate,
    issuer: Issuer<'static, KeyPair>,
}

impl Root {
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

    /// A certificate of these names, and its key, in PEM.
    fn sign(&self, common: &str, names: Vec<SanType>) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, common);
        params.subject_alt_names = names;
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        (certificate.pem(), key.serialize_pem())
    }
}

/// What a call answers over a connection with this certificate.
async fn call(gateway: &Gateway, root: &Root, own: &(String, String)) -> (u16, serde_json::Value) {
    let mut roots = RootCertStore::empty();
    roots.add(root.root.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let chain = rustls::pki_types::CertificateDer::from_pem_slice(own.0.as_bytes()).unwrap();
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_client_auth_cert(
            vec![chain],
            PrivateKeyDer::from_pem_slice(own.1.as_bytes()).unwrap(),
        )
        .unwrap();
    let socket = TcpStream::connect(gateway.address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let stream = TlsConnector::from(Arc::new(config))
        .connect(name, socket)
        .await
        .unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .unwrap();
    let tasks = Tasks::new();
    tasks.spawn(async move { drop(connection.await) });
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"notes_t","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let request = http::Request::post("/mcp")
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", "notes_t")
        .body(Full::new(bytes::Bytes::from_static(body.as_bytes())))
        .unwrap();
    let answer = sender.send_request(request).await.unwrap();
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    tasks.stop();
    (status, parse(std::str::from_utf8(&body).unwrap()))
}

#[tokio::test]
async fn a_certificate_with_the_one_name_that_is_looked_for_is_let_in_and_any_other_is_not() {
    let root = Root::new();
    let notes = Upstream::http(Revision::V2026_07_28).tools([tool("t")]);
    let mut spec = Authority::start().await.spec();
    spec.issuers.clear();
    spec.certificates = Some(CertificateSpec {
        user: vec![CertificateName::SanUri],
        groups: vec!["services".into()],
        tenant: None,
    });
    let dns = |name: &str| SanType::DnsName(name.try_into().unwrap());
    let uri = |name: &str| SanType::URI(name.try_into().unwrap());
    let own = root.sign("gateway", vec![dns("localhost")]);
    let tls = TlsServerSpec {
        cert: own.0.into_bytes(),
        key: own.1.into(),
        client_ca: Some(root.root.pem().into_bytes()),
    };
    let directory = tempfile::tempdir().unwrap();
    let gateway = recording(directory.path(), &notes);
    let gateway = gateway.auth(spec).tls(tls).start().await;
    let ci = root.sign("ci", vec![uri("spiffe://example.com/ci")]);
    let (status, answer) = call(&gateway, &root, &ci).await;
    assert_eq!(
        (status, answer["result"]["content"][0]["text"].as_str()),
        (200, Some("called t"))
    );
    for names in [
        vec![],
        vec![dns("ci.example.com")],
        vec![
            uri("spiffe://example.com/ci"),
            uri("spiffe://example.com/root"),
        ],
    ] {
        let other = root.sign("spiffe://example.com/ci", names);
        let (status, answer) = call(&gateway, &root, &other).await;
        assert_eq!(status, 401, "{answer}");
        assert_eq!(answer["error"]["data"]["reason"], "credential_invalid");
    }
    assert_eq!(notes.heard("tools/call").len(), 1);
    gateway.app.clone().shutdown().await;
    let told = records(directory.path(), "tools/call");
    let principal = &told[0]["principal"];
    assert_eq!(principal["name"], "spiffe://example.com/ci");
    assert_eq!(principal["auth_method"], "certificate");
}
