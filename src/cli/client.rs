//! The smallest client of the stateless era: one request at a time to a running gateway.
//!
//! Takes JSON and event streams, prints progress and log messages to stderr, and follows no redirect. It answers no input
//! request: what asks a question is shown as it came.

use std::{
    error::Error,
    io,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use http::{HeaderValue, Method, Request, Uri, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client as Pool, connect::HttpConnector},
    rt::TokioExecutor,
};

use super::{refused::Refused, shown};
use crate::{
    fetch::misnames_port,
    json::{Json, Limits},
    jsonrpc::{Frame, Message, RequestId, Response, decode, encode, sse},
    protocol::{Revision, codes, meta, methods, mirror},
};

/// The variable whose value is sent as the bearer token: a token or an API key. Never an argument, which others can see.
pub(super) const TOKEN: &str = "USHER_TOKEN";
/// Bytes of one answer.
const MAX_BYTES: usize = 64 << 20;
/// The whole exchange, also with a person in it.
const DEADLINE: Duration = Duration::from_secs(330);

/// A running gateway.
pub(super) struct Client {
    url: Uri,
    /// `Authorization`, where there is something to prove.
    proof: Option<HeaderValue>,
    pool: Pool<HttpsConnector<HttpConnector>, Full<Bytes>>,
    next_id: AtomicU64,
}

impl Client {
    /// A client of this endpoint that brings this token; nothing is connected yet.
    pub(super) fn new(url: &str, token: Option<&str>) -> Result<Self, String> {
        let begins = |scheme: &str| {
            let start = url.get(..scheme.len());
            start.is_some_and(|start| start.eq_ignore_ascii_case(scheme))
        };
        if !begins("http://") && !begins("https://") {
            return Err(format!(
                "`{url}` does not begin with `http://` or `https://`"
            ));
        }
        let parsed: Uri = url
            .parse()
            .ok()
            .filter(|parsed: &Uri| parsed.host().is_some_and(|host| !host.is_empty()))
            .ok_or_else(|| format!("`{url}` is not an address"))?;
        // The token would go to another program.
        if parsed.authority().is_some_and(misnames_port) {
            return Err(format!("`{url}` has a port that is none"));
        }
        let here = |host: &str| {
            let host = host.trim_matches(['[', ']']);
            let address: Option<std::net::IpAddr> = host.parse().ok();
            host == "localhost" || address.is_some_and(|it| it.is_loopback())
        };
        if token.is_some()
            && parsed.scheme_str() == Some("http")
            && !parsed.host().is_some_and(here)
        {
            return Err(format!(
                "`{url}` is not https, and {TOKEN} would be read on the way"
            ));
        }
        let proof = token.map(|token| {
            let mut value = HeaderValue::try_from(format!("Bearer {token}"))
                .map_err(|_| format!("{TOKEN} holds no token"))?;
            value.set_sensitive(true);
            Ok::<_, String>(value)
        });
        let proof = proof.transpose()?;
        let mut roots = rustls::RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() {
            roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        }
        let provider = rustls::crypto::aws_lc_rs::default_provider();
        let tls = rustls::ClientConfig::builder_with_provider(provider.into())
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_all_versions()
            .build();
        Ok(Self {
            url: parsed,
            proof,
            pool: Pool::builder(TokioExecutor::new()).build(connector),
            next_id: AtomicU64::new(1),
        })
    }

    /// One request of the newest revision. If the gateway misses headers that mirror arguments, they are looked up in the
    /// tool's definition and the request is made once more (PROTOCOL B3).
    pub(super) async fn request(&self, method: &str, params: Json) -> Result<Json, Refused> {
        let first = self.exchange(method, &params, &[]).await;
        match first {
            Err(Refused::Answer(error))
                if error.code == codes::HEADER_MISMATCH && method == methods::TOOLS_CALL =>
            {
                let mirrored = Box::pin(self.mirrored(&params)).await?;
                self.exchange(method, &params, &mirrored).await
            }
            other => other,
        }
    }

    /// The headers that mirror the arguments of a call.
    async fn mirrored(&self, params: &Json) -> Result<Vec<(String, String)>, Refused> {
        let name = params.root().member("name").and_then(|node| node.as_str());
        let mut cursor = Json::empty_object();
        loop {
            let page = self.exchange(methods::TOOLS_LIST, &cursor, &[]).await?;
            let tools = page.root().member("tools");
            let tool = tools.and_then(|tools| {
                tools
                    .elements()
                    .find(|tool| tool.member("name").and_then(|node| node.as_str()) == name)
            });
            if let Some(tool) = tool {
                let headers = mirror::of_tool(&page.slice(tool)).unwrap_or_default();
                let Some(arguments) = params.root().member("arguments") else {
                    return Ok(Vec::new());
                };
                return Ok(headers
                    .iter()
                    .filter_map(|param| {
                        let value = mirror::rendered(arguments, param)?;
                        Some((param.header.clone(), mirror::encode(&value)))
                    })
                    .collect());
            }
            match page.root().member("nextCursor") {
                Some(next) => cursor = meta::object_of(&[("cursor", page.slice(next))]),
                None => return Ok(Vec::new()),
            }
        }
    }

    async fn exchange(
        &self,
        method: &str,
        params: &Json,
        mirrored: &[(String, String)],
    ) -> Result<Json, Refused> {
        let id = RequestId::minted(self.next_id.fetch_add(1, Ordering::Relaxed));
        let request = self.build(&id, method, params, mirrored)?;
        let answered = tokio::time::timeout(DEADLINE, async {
            let response = self
                .pool
                .request(request)
                .await
                .map_err(|error| silence(format!("{}: {}", self.url, unreached(&error))))?;
            self.answer(response, &id).await
        });
        match answered.await {
            Ok(answer) => answer,
            Err(_) => Err(silence(format!(
                "no answer within {} s",
                DEADLINE.as_secs()
            ))),
        }
    }

    fn build(
        &self,
        id: &RequestId,
        method: &str,
        params: &Json,
        mirrored: &[(String, String)],
    ) -> Result<Request<Full<Bytes>>, Refused> {
        let own = [
            (
                meta::PROTOCOL_VERSION,
                Json::string(Revision::LATEST_MODERN.as_str()),
            ),
            (meta::CLIENT_CAPABILITIES, Json::empty_object()),
            (
                meta::CLIENT_INFO,
                meta::object_of(&[
                    ("name", Json::string("usher")),
                    ("version", Json::string(env!("CARGO_PKG_VERSION"))),
                ]),
            ),
            (meta::PROGRESS_TOKEN, id.json().clone()),
        ];
        let mut edits = crate::json::Edits::new();
        edits.set(params.root(), meta::META, meta::object_of(&own));
        let params = params.splice(&edits);
        let mut request = Request::builder()
            .method(Method::POST)
            .uri(self.url.clone())
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "application/json, text/event-stream")
            .header(mirror::PROTOCOL_VERSION, Revision::LATEST_MODERN.as_str())
            .header(mirror::METHOD, method);
        let name = methods::mirrored_member(method)
            .and_then(|member| params.root().member(member))
            .and_then(|node| node.as_str());
        if let Some(name) = name {
            request = request.header(mirror::NAME, mirror::encode(&name));
        }
        if let Some(proof) = &self.proof {
            request = request.header(header::AUTHORIZATION, proof);
        }
        for (header, value) in mirrored {
            request = request.header(header, value);
        }
        request
            .body(Full::new(encode::request(id, method, &params)))
            .map_err(|error| silence(error.to_string()))
    }

    async fn answer(
        &self,
        response: http::Response<Incoming>,
        id: &RequestId,
    ) -> Result<Json, Refused> {
        let status = response.status();
        let streams = response
            .headers()
            .get(header::CONTENT_TYPE)
            .map(HeaderValue::as_bytes)
            .is_some_and(|kind| kind.starts_with(b"text/event-stream"));
        if streams {
            return stream(response.into_body(), id).await;
        }
        let body = Limited::new(response.into_body(), MAX_BYTES)
            .collect()
            .await
            .map_err(|error| silence(format!("the answer broke off: {error}")))?
            .to_bytes();
        match decode(body, &Limits::LIST) {
            Ok(Message::One(Frame::Response(response))) => outcome(response),
            Ok(_) | Err(_) => Err(silence(format!(
                "{} answered {status} and no MCP message",
                self.url
            ))),
        }
    }
}

async fn stream(mut body: Incoming, id: &RequestId) -> Result<Json, Refused> {
    let mut decoder = sse::Decoder::new(MAX_BYTES);
    let mut taken = 0;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| silence(format!("the answer broke off: {error}")))?;
        let Ok(piece) = frame.into_data() else {
            continue;
        };
        taken += piece.len();
        if taken > 4 * MAX_BYTES {
            return Err(silence("an answer of too many bytes".into()));
        }
        let mut answer = None;
        decoder
            .push(&piece, |event| {
                if answer.is_none() {
                    answer = message(event.data, id);
                }
            })
            .map_err(|error| silence(error.to_string()))?;
        if let Some(response) = answer {
            return outcome(response);
        }
    }
    Err(silence("the stream ended without an answer".into()))
}

/// The answer, if this event is it; whatever else it says is shown.
fn message(data: Bytes, id: &RequestId) -> Option<Response> {
    let data = BytesMut::from(data).freeze();
    match decode(data, &Limits::LIST).ok()? {
        Message::One(Frame::Response(response)) => {
            let mine = response
                .id
                .as_ref()
                .is_none_or(|answered| answered.same(id));
            mine.then_some(response)
        }
        Message::One(Frame::Notification(notification)) => {
            shown::notification(&notification.method, notification.params.as_ref());
            None
        }
        Message::One(Frame::Request(_)) | Message::Batch(_) => None,
    }
}

/// Why nothing came of a request: the innermost cause, and what to look at where nobody listens.
fn unreached(error: &(dyn Error + 'static)) -> String {
    let mut root = error;
    while let Some(cause) = root.source() {
        root = cause;
    }
    let refused = root
        .downcast_ref::<io::Error>()
        .is_some_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
    if refused {
        format!("{root}; is `usher serve` running there?")
    } else {
        root.to_string()
    }
}

fn outcome(response: Response) -> Result<Json, Refused> {
    response.body.map_err(Refused::Answer)
}

fn silence(reason: String) -> Refused {
    Refused::Silence(reason)
}
