//! What browsers want to hear before a page may use an endpoint: the answers of cross-origin resource sharing.
//!
//! Guarantees: an origin is named only where it was sent, alone, and only behind the gate, which lets in none but those that are
//! allowed (SECURITY HTTP-3); never `*`, and never with credentials that a browser adds by itself; of our headers those are
//! readable that clients need (PROTOCOL F12). A request without `Origin` pays for one look-up. Deliberately absent: which
//! origins are allowed (that is `gate`), and who is let in.

use futures_util::{FutureExt as _, future::BoxFuture};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::body::Incoming;

use super::{Body, Endpoint, RemoteEnd, body::empty};

/// Methods of the endpoints.
const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, DELETE");
/// Headers that clients send, beside what is mirrored of arguments.
const SENT: &str = "accept, authorization, content-type, last-event-id, mcp-method, mcp-name, mcp-protocol-version, mcp-session-id, x-api-key";
/// How the names begin that arguments are mirrored under.
const MIRRORED: &str = "mcp-param-";
/// Headers of answers that pages may read, beside those that all may.
const READ: HeaderValue = HeaderValue::from_static("mcp-session-id, retry-after, www-authenticate");
/// For how many seconds a browser need not ask again. What is no longer allowed is refused all the same.
const MAX_AGE: HeaderValue = HeaderValue::from_static("7200");

/// An endpoint that pages of allowed origins may use, whoever else does.
pub struct ForPages<E>(pub E);

impl<E: Endpoint> Endpoint for ForPages<E> {
    fn serve(
        &self,
        request: Request<Incoming>,
        peer: RemoteEnd,
    ) -> BoxFuture<'static, Response<Body>> {
        let Some(origin) = request.headers().get(header::ORIGIN).cloned() else {
            return self.0.serve(request, peer);
        };
        // A browser asks without credentials, so this comes before whoever wants some.
        if let Some(mut answer) = asked(request.method(), request.headers()) {
            name(answer.headers_mut(), origin);
            return std::future::ready(answer).boxed();
        }
        let answer = self.0.serve(request, peer);
        async move {
            let mut answer = answer.await;
            let headers = answer.headers_mut();
            headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, READ);
            name(headers, origin);
            answer
        }
        .boxed()
    }
}

/// The answer to a browser that asks what it may send, if this is one.
fn asked(method: &Method, headers: &HeaderMap) -> Option<Response<Body>> {
    let asks = headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    if *method != Method::OPTIONS || !asks {
        return None;
    }
    let mut answer = empty(StatusCode::NO_CONTENT);
    let said = answer.headers_mut();
    said.insert(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    said.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, may_be_sent(headers));
    said.insert(header::ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    Some(answer)
}

/// The headers that may be sent: those that are known, and of those that are asked for what may mirror an argument.
fn may_be_sent(headers: &HeaderMap) -> HeaderValue {
    let mut names = SENT.to_owned();
    let asked = headers.get_all(header::ACCESS_CONTROL_REQUEST_HEADERS);
    let asked = asked.iter().filter_map(|value| value.to_str().ok());
    for asked in asked.flat_map(|list| list.split(',')) {
        // Read as a name, it is in lower case and can be written into a header.
        let Ok(asked) = HeaderName::from_bytes(asked.trim().as_bytes()) else {
            continue;
        };
        if asked.as_str().starts_with(MIRRORED) {
            names.push_str(", ");
            names.push_str(asked.as_str());
        }
    }
    HeaderValue::try_from(names).unwrap_or(HeaderValue::from_static(SENT))
}

/// Says that this origin may have the answer, and that another's would be another.
fn name(headers: &mut HeaderMap, origin: HeaderValue) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(header::VARY, HeaderValue::from_static("origin"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(asked: &[(&'static str, &'static str)]) -> HeaderMap {
        let value = HeaderValue::from_static;
        let name = HeaderName::from_static;
        asked
            .iter()
            .map(|(key, it)| (name(key), value(it)))
            .collect()
    }

    #[test]
    fn a_browser_is_answered_where_it_asks_and_nowhere_else() {
        let asks = headers(&[("access-control-request-method", "POST")]);
        let answer = asked(&Method::OPTIONS, &asks).unwrap();
        assert_eq!(answer.status(), StatusCode::NO_CONTENT);
        assert_eq!(answer.headers()["access-control-allow-methods"], METHODS);
        assert_eq!(answer.headers()["access-control-allow-headers"], SENT);
        assert_eq!(answer.headers()["access-control-max-age"], MAX_AGE);
        assert!(
            !answer
                .headers()
                .contains_key("access-control-allow-credentials")
        );
        assert!(asked(&Method::OPTIONS, &headers(&[])).is_none());
        assert!(asked(&Method::POST, &asks).is_none());
    }

    #[test]
    fn of_what_is_asked_for_only_mirrored_arguments_are_let_through() {
        for (wants, more) in [
            ("mcp-session-id", ""),
            ("content-type,Mcp-Param-City", ", mcp-param-city"),
            ("mcp-param-a , mcp-param-b", ", mcp-param-a, mcp-param-b"),
            ("cookie, x-forwarded-for, mcp-params, *", ""),
            ("mcp-param-a b, mcp-param-(, ,", ""),
        ] {
            let wanted = headers(&[("access-control-request-headers", wants)]);
            assert_eq!(may_be_sent(&wanted), format!("{SENT}{more}"), "{wants:?}");
        }
    }
}
