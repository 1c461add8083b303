//! Tests: answers by which a server is found to be of another era than it was reached in.

use super::{tests::over_http, *};
use crate::{
    call::Outcome,
    upstream::scripted::{Play, a_route, a_tool_call},
};

#[tokio::test]
async fn an_answer_of_another_era_casts_doubt() {
    for play in [
        Play::Error(
            400,
            -32022,
            r#"{"supported":["2025-11-25"],"requested":"2026-07-28"}"#,
        ),
        Play::Error(400, -32000, ""),
        Play::Error(404, -32001, ""),
        Play::Status(404),
        Play::Status(405),
    ] {
        let (_, peer) = over_http(move |_| play.clone());
        assert!(peer.call(a_tool_call(), a_route("t")).await.is_err());
        assert!(peer.line.wire.doubt.take());
        assert!(peer.list(ListKind::Tools).await.is_err());
        assert!(
            peer.line.wire.doubt.take(),
            "where a list is asked for, too"
        );
        let own = peer
            .offer_to(&Identity::anonymous(), &peer.line.terms.lists)
            .await;
        assert!(
            own.is_err() && peer.line.wire.doubt.take(),
            "one's own, too"
        );
    }
    for play in [Play::Error(400, -32600, ""), Play::Error(404, -32600, "")] {
        let (_, peer) = over_http(move |_| play.clone());
        let reply = peer.call(a_tool_call(), a_route("t")).await;
        let Ok(Reply::Done(Outcome::Failed(error))) = reply else {
            panic!("its words are what a tool's own error may be: {reply:?}")
        };
        assert_eq!((error.code, &*error.message), (-32600, "no"));
        assert!(peer.line.wire.doubt.take());
        assert!(peer.list(ListKind::Tools).await.is_err());
        assert!(peer.line.wire.doubt.take());
    }
    for play in [
        Play::Error(200, -32000, ""),
        Play::Error(200, -32600, ""),
        Play::Error(400, -32602, ""),
        Play::Error(400, -32002, ""),
        Play::Error(404, -32601, ""),
        Play::Error(400, -31999, ""),
        Play::Error(500, -32000, ""),
        Play::Status(500),
        Play::Status(429),
    ] {
        let (_, peer) = over_http(move |_| play.clone());
        drop(peer.call(a_tool_call(), a_route("t")).await);
        drop(peer.list(ListKind::Tools).await);
        assert!(!peer.line.wire.doubt.take());
    }
}
