//! What scripts say and tests ask, again and again: texts of frames, calls, specifications.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{
    call::{Affinity, Call, CallId, Caller, Identity, Op, Principal, Trail},
    catalog::{Route, rules::CatalogBounds},
    json::{Json, Limits},
    pins::Mode,
    protocol::{ClientCapabilities, Revision, UpstreamId, names::Scope},
    tasks::Tasks,
    upstream::{
        spec::{
            Endpoint, HttpSpec, HttpTransport, Isolation, PeerBounds, Pin, QueueBounds, StdioSpec,
            Timeouts, TlsSpec, UpstreamSpec, UrlElicitation,
        },
        terms::Terms,
    },
};

/// A result of `initialize`.
pub(in crate::upstream) fn greeting(revision: &str) -> String {
    format!(
        r#"{{"protocolVersion":"{revision}","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"s","version":"1"}},"instructions":"do"}}"#
    )
}

/// A result of `server/discover`.
pub(in crate::upstream) fn discovery(versions: &str) -> String {
    format!(
        r#"{{"resultType":"complete","supportedVersions":{versions},"capabilities":{{"tools":{{}}}},"ttlMs":0,"cacheScope":"public"}}"#
    )
}

/// The same of a server that has something else and gives other instructions.
pub(in crate::upstream) fn saying(result: &str, capabilities: &str, instructions: &str) -> String {
    let usual = [
        (
            r#""capabilities":{"tools":{}}"#,
            format!(r#""capabilities":{capabilities}"#),
        ),
        (r#","instructions":"do""#, String::new()),
        ("{", format!(r#"{{"instructions":"{instructions}","#)),
    ];
    let mut said = result.to_owned();
    for (what, other) in usual {
        said = said.replacen(what, &other, 1);
    }
    said
}

/// A notification's text.
pub(in crate::upstream) fn note(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#)
}

/// A result frame's text, for streams.
pub(in crate::upstream) fn last(result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":$id,"result":{result}}}"#)
}

/// A call with these params, by an anonymous client of 2026-07-28 with far deadlines.
pub(in crate::upstream) fn a_call(op: Op, params: &str) -> Call {
    Call {
        unasked: false,
        stake: None,
        id: CallId::new(),
        op,
        params: Json::parse(Bytes::copy_from_slice(params.as_bytes()), &Limits::CLIENT).unwrap(),
        caller: Arc::new(a_caller("anonymous")),
        identity: Identity::anonymous(),
        address: None,
        scope: Scope::All,
        resume: None,
        wants_progress: false,
        mirrored: None,
        deadline: Instant::now() + Duration::from_secs(3600),
        trail: Trail::NONE,
    }
}

/// A client whose session and principal both are `key`.
pub(in crate::upstream) fn a_caller(key: &str) -> Caller {
    Caller {
        principal: Principal::anonymous(),
        revision: Revision::V2026_07_28,
        capabilities: ClientCapabilities::NONE,
        log_level: None,
        visits: false,
        affinity: Affinity {
            key: key.into(),
            ended: Some(CancellationToken::new()),
        },
    }
}

/// A call of tool `t`, outwardly `u_t`.
pub(in crate::upstream) fn a_tool_call() -> Call {
    a_call(
        Op::CallTool("u_t".into()),
        r#"{"name":"u_t","arguments":{"a":1.0}}"#,
    )
}

/// The route of something that the upstream calls `local`.
pub(in crate::upstream) fn a_route(local: &str) -> Route {
    Route {
        upstream: UpstreamId::parse("u").unwrap(),
        local: local.into(),
        headers: Arc::new([]),
        task_only: false,
        terms: None,
    }
}

/// A child process upstream.
pub(in crate::upstream) fn a_pipe() -> UpstreamSpec {
    UpstreamSpec {
        id: UpstreamId::parse("u").unwrap(),
        endpoint: Endpoint::Stdio(StdioSpec {
            command: vec!["none".into()],
            told: Vec::new(),
            env: std::collections::BTreeMap::new(),
            cwd: None,
        }),
        protocol: Pin::Auto,
        isolation: Isolation::Shared,
        url_elicitation: UrlElicitation::Own,
        timeouts: Timeouts::default(),
        concurrency: 4,
        queue: QueueBounds::default(),
        bounds: PeerBounds::default(),
        poll: Duration::from_secs(300),
        stale_for: Duration::from_secs(300),
        definitions: Mode::Watch,
    }
}

/// An HTTP upstream.
pub(in crate::upstream) fn an_address() -> UpstreamSpec {
    UpstreamSpec {
        endpoint: Endpoint::Http(HttpSpec {
            url: http::Uri::from_static("http://127.0.0.1/mcp"),
            headers: Vec::new(),
            grant: None,
            tls: TlsSpec::default(),
            transport: HttpTransport::Auto,
        }),
        isolation: Isolation::Session,
        ..a_pipe()
    }
}

/// The terms of a specification.
pub(in crate::upstream) fn terms(spec: &UpstreamSpec) -> Arc<Terms> {
    Terms::new(spec, CatalogBounds::default(), Arc::default(), Tasks::new())
}
