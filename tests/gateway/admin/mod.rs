//! The admin plane as operators, auditors and everybody else meet it (PRODUCT 13, SECURITY OPS-4).

mod contract;
mod entry;
mod follow;
mod policies;
mod slow;
mod tried;
mod views;

use std::net::SocketAddr;

use http::Method;
use serde_json::Value;
use usher::{
    admin::{AdminSpec, document},
    server::spec::ListenSpec,
};

use crate::harness::{Answer, Gateway, GatewayBuilder, exchange, parse};

pub(crate) const OPERATOR: &str = "the-operator-has-this-token-and-nobody-else";
const AUDITOR: &str = "the-auditor-has-this-token-and-nobody-else";

/// A gateway that lets operators in.
struct Plane {
    gateway: Gateway,
    address: SocketAddr,
}

/// How operators are let in, on a free port.
pub(crate) fn spec() -> AdminSpec {
    AdminSpec {
        listen: ListenSpec {
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
            hosts: Vec::new(),
            trusted_proxies: Vec::new(),
            tls: None,
            bounds: AdminSpec::bounds(),
        },
        token: Some(OPERATOR.into()),
        auditor_token: Some(AUDITOR.into()),
    }
}

async fn plane(builder: GatewayBuilder) -> Plane {
    plane_with(builder, spec()).await
}

async fn plane_with(builder: GatewayBuilder, spec: AdminSpec) -> Plane {
    let gateway = builder.admin(spec).start().await;
    let address = gateway.app.admin().unwrap().address;
    Plane { gateway, address }
}

impl Plane {
    /// A request with these headers and nothing else.
    async fn raw(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        exchange(self.address, method, path, headers, body.as_bytes()).await
    }

    /// What somebody with this token gets.
    async fn seen(&self, token: &str, path: &str) -> Answer {
        let bearer = format!("Bearer {token}");
        let headers = [("authorization", bearer.as_str())];
        self.raw(Method::GET, path, &headers, "").await
    }

    /// What comes of what somebody with this token does.
    async fn done(&self, token: &str, path: &str, body: &str) -> Answer {
        let bearer = format!("Bearer {token}");
        let headers = [
            ("authorization", bearer.as_str()),
            ("content-type", "application/json"),
        ];
        self.raw(Method::POST, path, &headers, body).await
    }

    /// What an operator is told at `path`.
    async fn get(&self, path: &str) -> Value {
        told(&self.seen(OPERATOR, path).await, path)
    }

    /// What an operator is told of what they do.
    async fn post(&self, path: &str, body: &str) -> Value {
        told(&self.done(OPERATOR, path, body).await, path)
    }
}

fn told(answer: &Answer, path: &str) -> Value {
    assert_eq!(answer.status, 200, "{path}: {}", answer.body);
    parse(&answer.body)
}

/// The status and the reason of a problem, which has to be one.
fn problem(answer: &Answer) -> (u16, String) {
    assert_eq!(
        answer.headers["content-type"], "application/problem+json",
        "{answer:?}"
    );
    let told = parse(&answer.body);
    assert_eq!(told["status"], answer.status);
    assert_eq!(told["type"], "about:blank");
    assert!(!told["detail"].as_str().unwrap().is_empty());
    (answer.status, told["reason"].as_str().unwrap().to_owned())
}

/// Method, path, and whether it is for operators, of every operation in the document.
fn operations() -> Vec<(Method, String, bool)> {
    let document = parse(document().as_str());
    let mut all = Vec::new();
    for (path, verbs) in document["paths"].as_object().unwrap() {
        for (verb, operation) in verbs.as_object().unwrap() {
            let method = verb.to_uppercase().parse().unwrap();
            let about = operation["description"].as_str().unwrap();
            all.push((method, path.clone(), about.ends_with("For operators.")));
        }
    }
    assert!(all.len() > 20);
    all
}

/// The path with something in the place of its names.
fn filled(path: &str) -> String {
    path.replace("{upstream}", "notes")
        .replace("{session}", "0123456789abcdef")
        .replace("{stream}", "1")
}
