//! What the transports' tests share: local servers with a scripted answer, certificates, frames.

use std::{convert::Infallible, net::SocketAddr, sync::Arc};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{HeaderMap, Request, Response, Uri};
use http_body::Frame as Piece;
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::service::service_fn;
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair,
};
use rustls::{
    RootCertStore, ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::WebPkiClientVerifier,
};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::{Dial, Http, Outbound, Transport};
use crate::{
    call::Trail,
    json::Limits,
    jsonrpc::{Frame, RequestId},
    tasks::Tasks,
    upstream::{
        UpstreamError,
        spec::{HttpSpec, HttpTransport, Timeouts, TlsSpec},
    },
};

pub(super) type Body = UnsyncBoxBody<Bytes, Infallible>;

/// Serves HTTP on a free port until `tasks` stop; HTTP/2 where TLS offers it.
pub(super) async fn serve<F, A>(
    tasks: &Tasks,
    tls: Option<ServerConfig>,
    max_streams: Option<u32>,
    answer: F,
) -> SocketAddr
where
    F: Fn(Request<Bytes>) -> A + Clone + Send + Sync + 'static,
    A: Future<Output = Response<Body>> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let acceptor = tls.map(|config| TlsAcceptor::from(Arc::new(config)));
    let family = tasks.clone();
    tasks.spawn(async move {
        loop {
            let (socket, _peer) = listener.accept().await.unwrap();
            let (acceptor, answer) = (acceptor.clone(), answer.clone());
            family.spawn(async move {
                let service = service_fn(move |request: Request<hyper::body::Incoming>| {
                    let answer = answer.clone();
                    async move {
                        let (parts, body) = request.into_parts();
                        let body = body.collect().await?.to_bytes();
                        Ok::<_, hyper::Error>(answer(Request::from_parts(parts, body)).await)
                    }
                });
                let mut builder = auto::Builder::new(TokioExecutor::new());
                builder.http2().max_concurrent_streams(max_streams);
                // A connection that the client breaks is what some tests are about.
                match acceptor {
                    None => {
                        let served = builder
                            .serve_connection(TokioIo::new(socket), service)
                            .await;
                        drop(served);
                    }
                    Some(acceptor) => {
                        if let Ok(socket) = acceptor.accept(socket).await {
                            // What was agreed on is what is spoken.
                            if socket.get_ref().1.alpn_protocol() == Some(b"h2") {
                                builder = builder.http2_only();
                            }
                            let served = builder
                                .serve_connection(TokioIo::new(socket), service)
                                .await;
                            drop(served);
                        }
                    }
                }
            });
        }
    });
    address
}

/// A body in one piece.
pub(super) fn full(text: impl Into<Bytes>) -> Body {
    Full::new(text.into()).boxed_unsync()
}

/// A body of these pieces that then ends.
pub(super) fn pieces(pieces: Vec<Bytes>) -> Body {
    let pieces = pieces.into_iter().map(|piece| Ok(Piece::data(piece)));
    StreamBody::new(stream::iter(pieces)).boxed_unsync()
}

/// A body that is written from elsewhere and stays open as long as the sender.
pub(super) fn open(receiver: tokio::sync::mpsc::Receiver<Bytes>) -> Body {
    let pieces = stream::unfold(receiver, |mut receiver| async {
        let piece = receiver.recv().await?;
        Some((Ok(Piece::data(piece)), receiver))
    });
    StreamBody::new(pieces.boxed()).boxed_unsync()
}

/// An answer with a status, a content type and a body.
pub(super) fn answer(status: u16, kind: &str, body: Body) -> Response<Body> {
    Response::builder()
        .status(status)
        .header("content-type", kind)
        .body(body)
        .unwrap()
}

pub(super) fn spec(scheme: &str, host: &str, address: SocketAddr, path: &str) -> HttpSpec {
    let url = format!("{scheme}://{host}:{}{path}", address.port());
    HttpSpec {
        url: url.parse::<Uri>().unwrap(),
        headers: Vec::new(),
        grant: None,
        tls: TlsSpec::default(),
        transport: HttpTransport::Auto,
    }
}

pub(super) fn dial(spec: &HttpSpec) -> Dial {
    Dial::new(&spec.url, &spec.tls, timeouts().connect).unwrap()
}

/// A transport over Streamable HTTP that opens its connections by itself.
pub(super) fn streamable(
    spec: &HttpSpec,
    timeouts: Timeouts,
    tasks: &Tasks,
) -> Result<Http, UpstreamError> {
    let dial = Dial::new(&spec.url, &spec.tls, timeouts.connect)?;
    Http::new(spec, dial, timeouts, tasks)
}

pub(super) fn timeouts() -> Timeouts {
    Timeouts::default()
}

/// A request frame `{"id":ID,"method":"m"}`, with its headers.
pub(super) fn request(id: u64) -> Outbound {
    let frame = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m","params":{{}}}}"#);
    Outbound {
        frame: frame.into(),
        id: Some(RequestId::minted(id)),
        headers: HeaderMap::new(),
        limits: Limits::UPSTREAM,
        patience: None,
        payer: None,
        listens: false,
        resumes: false,
        credential: None,
        trail: Trail::NONE,
    }
}

/// A request to a scripted child, whose method is its stage direction.
pub(super) fn directed(id: u64, method: &str) -> Outbound {
    let frame = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}"}}"#);
    Outbound {
        frame: frame.into(),
        ..request(id)
    }
}

pub(super) fn notification() -> Outbound {
    Outbound {
        frame: Bytes::from_static(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#),
        id: None,
        ..request(0)
    }
}

/// A result frame whose result is `{"n":N}`.
pub(super) fn result(id: u64, n: u64) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"n":{n}}}}}"#)
}

pub(super) fn progress(token: u64, n: u64) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":{n}}}}}"#
    )
}

/// The result of a response, or the method of anything else: enough to tell frames apart.
pub(super) fn gist(frame: &Frame) -> String {
    match frame {
        Frame::Response(response) => match &response.body {
            Ok(result) => result.as_str().to_owned(),
            Err(error) => format!("error {}", error.code),
        },
        Frame::Request(request) => request.method.to_string(),
        Frame::Notification(notification) => notification.method.to_string(),
    }
}

/// Sends a request and reads its answer to the end.
pub(super) async fn ask(
    transport: &dyn Transport,
    out: Outbound,
) -> Result<Vec<String>, UpstreamError> {
    match transport.send(out).await? {
        super::Answer::Accepted(head) => Ok(vec![format!("accepted {}", head.status.as_u16())]),
        super::Answer::Status(head) => Ok(vec![format!("status {}", head.status.as_u16())]),
        super::Answer::One(_, frame) => Ok(vec![gist(&frame)]),
        super::Answer::Stream(_, mut frames) => {
            let mut all = Vec::new();
            while let Some(frame) = frames.next().await {
                all.push(gist(&frame?));
            }
            Ok(all)
        }
    }
}

/// A certificate authority, made for one test.
pub(super) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub(super) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub(super) fn pem(&self) -> Vec<u8> {
        self.0.pem().into_bytes()
    }

    /// Chain and key, as PEM.
    pub(super) fn issue(&self, name: &str) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        let certificate = params.signed_by(&key, &self.0).unwrap();
        (certificate.pem(), key.serialize_pem())
    }

    /// A server's side for `name`, offering `protocols` by ALPN; asks for a certificate of this authority if `clients`.
    pub(super) fn server(&self, name: &str, protocols: &[&str], clients: bool) -> ServerConfig {
        let (chain, key) = self.issue(name);
        let chain: Vec<_> = CertificateDer::pem_slice_iter(chain.as_bytes())
            .collect::<Result<_, _>>()
            .unwrap();
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .unwrap();
        let config = if clients {
            let mut roots = RootCertStore::empty();
            roots.add(self.0.der().clone()).unwrap();
            let verifier =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
            config.with_client_cert_verifier(verifier.unwrap())
        } else {
            config.with_no_client_auth()
        };
        let mut config = config.with_single_cert(chain, key).unwrap();
        config.alpn_protocols = protocols
            .iter()
            .map(|name| name.as_bytes().to_vec())
            .collect();
        config
    }
}
