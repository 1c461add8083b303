//! The one way in: what a request means, whether it may come from there, who it is from, and what it says, in this order.
//! Only then something is done.
//!
//! Guarantees: what a page of another site sends is refused before anything else is looked at; what is under `/api` is refused
//! without a credential whether or not it is there; too many wrong credentials of one address are answered `429`; every
//! change, done or refused to somebody with a credential, is told to the app, and one that was begun is done to its end,
//! whether or not whoever wanted it waits for that.

use std::{net::IpAddr, sync::Arc};

use bytes::Bytes;
use futures_util::{FutureExt as _, future::BoxFuture};
use http::{HeaderMap, Method, Request, Response, StatusCode, header, request::Parts};
use hyper::body::Incoming;
use tokio::sync::oneshot;

use super::{
    Change, Gateway, Role,
    asked::{Asked, Bench},
    credential::Credentials,
    follow::Seats,
    operation::{Operation, Verb, Who},
    operations::OPERATIONS,
    paging::Query,
    problem::Problem,
    reply,
    search::Searches,
};
use crate::{
    json::{Json, Kind, Limits},
    server::{Body, Endpoint, RemoteEnd, body::read_body, guard::Failures, spec::ServerBounds},
    tasks::Tasks,
};

/// Wrong credentials of one address in a minute (SECURITY 6).
const FAILURES: u32 = 10;

/// See the module.
pub(super) struct Entry {
    gateway: Arc<Gateway>,
    credentials: Credentials,
    failures: Failures,
    private: bool,
    bounds: ServerBounds,
    bench: Arc<Bench>,
}

impl Entry {
    pub(super) fn new(
        gateway: Arc<Gateway>,
        credentials: Credentials,
        private: bool,
        bounds: ServerBounds,
        tasks: Tasks,
    ) -> Self {
        Self {
            gateway,
            credentials,
            failures: Failures::new(FAILURES),
            private,
            bounds,
            bench: Arc::new(Bench {
                searches: Searches::new(tasks.token().clone()),
                tasks,
                streams: Seats::default(),
            }),
        }
    }

    /// What a request means, and whether it may be.
    fn admitted(&self, head: &Parts, peer: RemoteEnd) -> Result<Admitted, Problem> {
        let authority = head.uri.authority().map(http::uri::Authority::as_str);
        not_from_elsewhere(&head.headers, authority)?;
        let path = head.uri.path();
        let found = || {
            let mut all = OPERATIONS.iter();
            all.find_map(|operation| Some((operation, operation.names(path)?)))
        };
        // Who has no credential is not told what is there.
        let open =
            |who| matches!(who, Who::Anybody) || matches!(who, Who::Neighbours) && self.private;
        let role = match found() {
            Some((operation, _)) if open(operation.who) => self.role(&head.headers, peer).ok(),
            Some(_) | None => Some(self.role(&head.headers, peer)?),
        };
        if found().is_none() {
            return Err(Problem::not_found("path"));
        }
        let Some((operation, names)) = of(&head.method, path) else {
            return Err(not_allowed(path));
        };
        if let (Who::Having(needed), Some(role)) = (operation.who, role)
            && role < needed
        {
            self.tell(operation, names.first(), role, peer.client, "role_required");
            return Err(Problem::new(
                StatusCode::FORBIDDEN,
                "role_required",
                "this is for operators; the token is an auditor's",
            ));
        }
        Ok(Admitted {
            operation,
            names,
            role,
        })
    }

    /// As what somebody comes.
    fn role(&self, headers: &HeaderMap, peer: RemoteEnd) -> Result<Role, Problem> {
        let brought = headers.get(header::AUTHORIZATION);
        let Some(brought) = brought else {
            return Err(Problem::new(
                StatusCode::UNAUTHORIZED,
                "credential_missing",
                "send `Authorization: Bearer TOKEN`",
            ));
        };
        let token = brought.to_str().ok().and_then(bearer);
        if let Some(role) = token.and_then(|token| self.credentials.role(token)) {
            return Ok(role);
        }
        let problem = match self.failures.note(peer.client) {
            None => Problem::new(
                StatusCode::UNAUTHORIZED,
                "credential_invalid",
                "the token is not one of this listener",
            ),
            Some(wait) => Problem {
                retry: Some(wait.as_secs() + 1),
                ..Problem::new(
                    StatusCode::TOO_MANY_REQUESTS,
                    "rate_limited",
                    "too many wrong credentials from this address",
                )
            },
        };
        self.gateway.controls.refused(peer.client, problem.reason);
        Err(problem)
    }

    fn tell(
        &self,
        operation: &Operation,
        subject: Option<&String>,
        by: Role,
        address: IpAddr,
        outcome: &'static str,
    ) {
        self.gateway.controls.changed(&Change {
            kind: operation.id,
            subject: subject.map(String::as_str),
            by,
            address,
            outcome,
        });
    }

    async fn answer(
        self: &Arc<Self>,
        head: Parts,
        body: Incoming,
        peer: RemoteEnd,
    ) -> Result<Response<Body>, Problem> {
        let admitted = self.admitted(&head, peer)?;
        let (operation, role) = (admitted.operation, admitted.role);
        let subject = admitted.names.first().cloned();
        let asked = self.asked(admitted, &head, body).await;
        let (Who::Having(Role::Operator), Some(by)) = (operation.who, role) else {
            return (operation.run)(asked?).await;
        };
        // Whoever wants a change may leave in the middle of it: it is not left half done, nor untold.
        let (done, outcome) = oneshot::channel();
        let entry = self.clone();
        self.bench.tasks.spawn_orderly(async move {
            let answer = match asked {
                Ok(asked) => (operation.run)(asked).await,
                Err(problem) => Err(problem),
            };
            let word = answer
                .as_ref()
                .map_or_else(|problem| problem.reason, |_| "ok");
            entry.tell(operation, subject.as_ref(), by, peer.client, word);
            drop(done.send(answer));
        });
        outcome.await.unwrap_or_else(|_| Err(Problem::internal()))
    }

    /// What is asked for, once all of it is there and of the form that it has to have.
    async fn asked(
        &self,
        admitted: Admitted,
        head: &Parts,
        body: Incoming,
    ) -> Result<Asked, Problem> {
        let Admitted {
            operation,
            names,
            role,
        } = admitted;
        let query = Query::parse(head.uri.query(), operation.query)?;
        let body = match operation.verb {
            Verb::Get => Json::empty_object(),
            Verb::Post if head.headers.contains_key(header::CONTENT_ENCODING) => {
                return Err(Problem::new(
                    StatusCode::UNSUPPORTED_MEDIA_TYPE,
                    "not_json",
                    "send the body as it is, without `Content-Encoding`",
                ));
            }
            Verb::Post if is_json(&head.headers) => self.body(body, operation).await?,
            Verb::Post => {
                return Err(Problem::new(
                    StatusCode::UNSUPPORTED_MEDIA_TYPE,
                    "not_json",
                    "send a JSON body, and `Content-Type: application/json` with it",
                ));
            }
        };
        Ok(Asked {
            gateway: self.gateway.clone(),
            bench: self.bench.clone(),
            role,
            private: self.private,
            names,
            query,
            body,
        })
    }

    /// The body of a request: an object, and an empty one where the operation has no use for it.
    async fn body(&self, body: Incoming, operation: &Operation) -> Result<Json, Problem> {
        let bytes: Bytes = read_body(body, &self.bounds)
            .await
            .map_err(|error| Problem::new(error.status(), "bad_body", error.to_string()))?;
        let json = Json::parse(bytes, &Limits::CLIENT)
            .map_err(|error| Problem::bad_request("bad_body", error.to_string()))?;
        let root = json.root();
        let empty = root.kind() == Kind::Object && root.members().next().is_none();
        if root.kind() != Kind::Object || operation.body.is_none() && !empty {
            let wanted = match operation.body {
                Some(_) => "the body has to be a JSON object",
                None => "the body has to be `{}`",
            };
            return Err(Problem::bad_request("bad_body", wanted));
        }
        Ok(json)
    }
}

struct Admitted {
    operation: &'static Operation,
    names: Vec<String>,
    role: Option<Role>,
}

/// The entry behind every path; held by the listener.
impl Endpoint for Arc<Entry> {
    fn serve(
        &self,
        request: Request<Incoming>,
        peer: RemoteEnd,
    ) -> BoxFuture<'static, Response<Body>> {
        let entry = Self::clone(self);
        async move {
            let (head, body) = request.into_parts();
            let bare = head.method == Method::HEAD;
            let answer = match entry.answer(head, body, peer).await {
                Ok(answer) => answer,
                Err(problem) => problem.answer(),
            };
            if bare { reply::bare(answer) } else { answer }
        }
        .boxed()
    }
}

/// What a browser sends on behalf of another site (SECURITY 2): it says so itself, or names an origin that is not this one.
/// `authority` is that of the target, where it has one, which is that of `Host` by now.
fn not_from_elsewhere(headers: &HeaderMap, authority: Option<&str>) -> Result<(), Problem> {
    let elsewhere = || {
        Problem::new(
            StatusCode::FORBIDDEN,
            "cross_site",
            "a page of another origin has sent this",
        )
    };
    // Twice is once more than any browser says it.
    for value in headers.get_all("sec-fetch-site") {
        if !matches!(value.as_bytes(), b"same-origin" | b"none") {
            return Err(elsewhere());
        }
    }
    let host = headers.get(header::HOST).and_then(|it| it.to_str().ok());
    let host = host.or(authority);
    for origin in headers.get_all(header::ORIGIN) {
        let origin = origin.to_str().ok();
        let authority = origin.and_then(|origin| {
            let plain = origin.strip_prefix("http://");
            plain.or_else(|| origin.strip_prefix("https://"))
        });
        let same = match (authority, host) {
            (Some(authority), Some(host)) => authority.eq_ignore_ascii_case(host),
            (_, _) => false,
        };
        if !same {
            return Err(elsewhere());
        }
    }
    Ok(())
}

fn of(method: &Method, path: &str) -> Option<(&'static Operation, Vec<String>)> {
    let same = OPERATIONS
        .iter()
        .filter(|operation| operation.verb.methods().contains(method));
    same.filter_map(|operation| Some((operation, operation.names(path)?)))
        .next()
}

fn not_allowed(path: &str) -> Problem {
    let there = OPERATIONS.iter().filter(|it| it.names(path).is_some());
    let methods = there.flat_map(|it| it.verb.methods());
    let methods: Vec<_> = methods.map(Method::as_str).collect();
    Problem {
        allow: Some(methods.join(", ")),
        ..Problem::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "method_not_allowed",
            "there is something here, but not for this method",
        )
    }
}

/// The token of a bearer credential; the scheme is spelled anyhow (RFC 9110, section 11.1).
fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    scheme
        .eq_ignore_ascii_case("bearer")
        .then_some(token.trim())
}

fn is_json(headers: &HeaderMap) -> bool {
    let media = headers
        .get(header::CONTENT_TYPE)
        .and_then(|it| it.to_str().ok());
    let media = media.and_then(|media| media.split(';').next());
    media.is_some_and(|media| media.trim().eq_ignore_ascii_case("application/json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(headers: &[(&'static str, &str)]) -> Result<(), &'static str> {
        let mut map = HeaderMap::new();
        map.insert(header::HOST, "127.0.0.1:8809".parse().unwrap());
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        not_from_elsewhere(&map, None).map_err(|problem| problem.reason)
    }

    #[test]
    fn what_a_page_of_another_origin_sends_is_known_by_what_its_browser_says() {
        for headers in [
            &[][..],
            &[("origin", "http://127.0.0.1:8809")],
            &[
                ("sec-fetch-site", "same-origin"),
                ("origin", "http://127.0.0.1:8809"),
            ],
            &[("sec-fetch-site", "none")],
        ] {
            assert_eq!(from(headers), Ok(()), "{headers:?}");
        }
        for headers in [
            &[("origin", "null")][..],
            &[("origin", "http://127.0.0.1:3000")],
            &[("origin", "http://localhost:8809")],
            &[("origin", "https://evil.example")],
            &[("origin", "http://127.0.0.1:8809"), ("origin", "http://a")],
            &[("sec-fetch-site", "cross-site")],
            &[("sec-fetch-site", "same-site")],
            &[("sec-fetch-site", "none"), ("sec-fetch-site", "cross-site")],
        ] {
            assert_eq!(from(headers), Err("cross_site"), "{headers:?}");
        }
    }
}
