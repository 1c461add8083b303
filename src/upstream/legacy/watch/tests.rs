//! Watching a legacy upstream in paused time, against transports that play its part.

use super::*;
use crate::{
    call::{Call, Op},
    catalog::rules::CatalogBounds,
    events::{Bounds, Hub, Listener, Lists, News},
    protocol::{Revision, UpstreamId, methods::ListKind, names::Scope},
    tasks::Tasks,
    upstream::{
        Peer,
        asking::Offer,
        legacy::{Opener, Proposal},
        line::Wire,
        scripted::{
            Play, Scripted, Sent, a_caller, a_pipe, a_route, a_tool_call, an_address, last, note,
            result,
        },
        spec::Isolation,
        terms::Terms,
    },
};

/// A watch at work, and everything around it.
struct Rig {
    transport: Arc<Scripted>,
    peer: Arc<Legacy>,
    hub: Arc<Hub>,
    tasks: Tasks,
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.tasks.stop();
    }
}

const BOTH: &str = r#"{"tools":{"listChanged":true},"resources":{"subscribe":true}}"#;
const SUBSCRIBE: &str = "resources/subscribe";
const UNSUBSCRIBE: &str = "resources/unsubscribe";
const TOOLS: Lists = Lists::of(ListKind::Tools);

fn up() -> UpstreamId {
    UpstreamId::parse("u").unwrap()
}

/// A peer whose sessions are `s0`, `s1`, … over HTTP, being watched.
async fn watching(
    capabilities: &'static str,
    streamable: bool,
    mut script: impl FnMut(&Sent) -> Play + Send + 'static,
) -> Rig {
    let mut sessions = ["s0", "s1", "s2", "s3"].into_iter();
    let transport = Scripted::new(move |sent| match sent.method.as_str() {
        "initialize" => Play::Session(
            sessions.next().unwrap(),
            format!(r#"{{"protocolVersion":"2025-11-25","capabilities":{capabilities}}}"#),
        ),
        "notifications/initialized" | "notifications/cancelled" => Play::Status(202),
        _ => script(sent),
    });
    let hub = Hub::new(Bounds::default());
    let spec = if streamable { an_address() } else { a_pipe() };
    let tasks = Tasks::new();
    let terms = Terms::new(
        &spec,
        CatalogBounds::default(),
        hub.interest(&up()),
        tasks.clone(),
    );
    let wire = Wire::new(Arc::<Scripted>::clone(&transport), streamable);
    let proposal = Proposal {
        revision: Revision::LATEST_LEGACY,
        exact: false,
        service: true,
        of_one: false,
    };
    let deadline = Instant::now() + Duration::from_secs(5);
    let first = Session::open(&wire, proposal, Offer::NONE, &terms, deadline)
        .await
        .unwrap();
    let opener = Opener::Shared(wire);
    let peer = Arc::new(Legacy::new(
        first,
        opener,
        proposal,
        Isolation::Session,
        &terms,
    ));
    terms.interest.begin();
    let watched = Arc::clone(&peer);
    tasks.spawn(async move { watched.watch().await });
    // The watch has begun when it has had its turn.
    sleep(Duration::from_millis(1)).await;
    Rig {
        transport,
        peer,
        hub,
        tasks,
    }
}

impl Rig {
    async fn listener(&self, uris: &[&str]) -> (Listener, Vec<bool>) {
        let watched = uris
            .iter()
            .map(|uri| (self.hub.interest(&up()), Arc::from(*uri)));
        let mut listener = self
            .hub
            .listen(&Scope::All, Lists::NONE, watched, None)
            .unwrap();
        let in_force = listener
            .settle(Instant::now() + Duration::from_secs(1))
            .await;
        (listener, in_force)
    }

    fn asked(&self, method: &str) -> Vec<String> {
        let sent = self.transport.sent_of(method).into_iter();
        sent.map(|sent| sent.params).collect()
    }

    async fn rung(&self) -> Lists {
        self.peer
            .terms
            .refresh
            .rung(&crate::upstream::refresh_signal::Spacing::new(
                Instant::now(),
            ))
            .await
            .lists
    }

    async fn is_silent(&self) -> bool {
        let rung = tokio::time::timeout(Duration::from_secs(1), self.rung());
        rung.await.is_err()
    }
}

/// The next news, which must not be long in coming.
async fn next(listener: &mut Listener) -> News {
    let news = tokio::time::timeout(Duration::from_secs(300), listener.next()).await;
    news.expect("news in time").unwrap().unwrap()
}

const fn exactly(watched: usize) -> News {
    News::Resource {
        watched,
        below: None,
    }
}

fn updated(uri: &str) -> String {
    note(
        "notifications/resources/updated",
        &format!(r#"{{"uri":"{uri}"}}"#),
    )
}

#[tokio::test(start_paused = true)]
async fn changes_of_lists_are_heard_on_the_sessions_stream_and_on_pipes() {
    for streamable in [true, false] {
        let rig = watching(BOTH, streamable, |_| result("{}")).await;
        assert_eq!(rig.transport.opened(), 1);
        if streamable {
            // What happened before the stream was open is read once more.
            assert_eq!(rig.rung().await, TOOLS);
        }
        assert!(rig.is_silent().await);
        rig.transport
            .say(&note("notifications/prompts/list_changed", "{}"));
        assert_eq!(rig.rung().await, Lists::of(ListKind::Prompts));
        // Pings are answered there, too.
        rig.transport
            .say(r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#);
        rig.transport
            .until(|sent| sent.text.contains(r#""id":"p","result""#))
            .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_resource_is_subscribed_to_once_and_given_up_after_the_last() {
    for streamable in [true, false] {
        let rig = watching(BOTH, streamable, |_| result("{}")).await;
        let (mut first, in_force) = rig.listener(&["a:1"]).await;
        assert_eq!(in_force, [true]);
        let (second, in_force) = rig.listener(&["a:1"]).await;
        assert_eq!(in_force, [true]);
        assert_eq!(rig.asked(SUBSCRIBE), [r#"{"uri":"a:1"}"#]);
        let sent = rig.transport.sent_of(SUBSCRIBE).remove(0);
        assert_eq!(sent.header("mcp-session-id"), streamable.then_some("s0"));
        rig.transport.say(&updated("a:1/below"));
        let below = News::Resource {
            watched: 0,
            below: Some("a:1/below".into()),
        };
        assert_eq!(next(&mut first).await, below);
        drop(second);
        assert_eq!(rig.asked(UNSUBSCRIBE).len(), 0);
        drop(first);
        rig.transport.until_count(UNSUBSCRIBE, 1).await;
        assert_eq!(rig.asked(UNSUBSCRIBE), [r#"{"uri":"a:1"}"#]);
        let (_third, in_force) = rig.listener(&["a:1"]).await;
        assert_eq!(in_force, [true]);
        assert_eq!(rig.asked(SUBSCRIBE).len(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_refused_or_not_promised_or_too_late_is_not_in_force() {
    let rig = watching(BOTH, true, |sent| match sent.params.as_str() {
        r#"{"uri":"bad:1"}"# => Play::Error(200, -32602, ""),
        r#"{"uri":"slow:1"}"# => Play::After(5, Box::new(result("{}"))),
        _ => result("{}"),
    })
    .await;
    let began = Instant::now();
    let (_some, in_force) = rig.listener(&["bad:1", "good:1"]).await;
    assert_eq!(
        (in_force, began.elapsed()),
        (vec![false, true], Duration::ZERO)
    );
    let (_late, in_force) = rig.listener(&["slow:1"]).await;
    assert_eq!(in_force, [false]);
    // It is subscribed to when nobody wants it any more, and given up.
    rig.transport.until_count(UNSUBSCRIBE, 1).await;
    assert_eq!(rig.asked(UNSUBSCRIBE), [r#"{"uri":"slow:1"}"#]);

    let rig = watching(r#"{"resources":{}}"#, true, |_| result("{}")).await;
    let (_none, in_force) = rig.listener(&["a:1"]).await;
    assert_eq!(in_force, [false]);
    assert_eq!(rig.asked(SUBSCRIBE).len(), 0);
}

#[tokio::test(start_paused = true)]
async fn hundreds_of_subscriptions_are_asked_for_a_few_at_once() {
    let rig = watching(BOTH, true, |_| Play::Hang).await;
    let uris: Vec<_> = (0..200).map(|n| format!("a:{n}")).collect();
    let uris: Vec<_> = uris.iter().map(String::as_str).collect();
    let (_listener, in_force) = rig.listener(&uris).await;
    assert!(in_force.iter().all(|kept| !kept));
    assert_eq!(rig.asked(SUBSCRIBE).len(), AT_ONCE);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_ends_is_opened_again_and_those_who_relied_on_it_look_again() {
    let rig = watching(BOTH, true, |_| result("{}")).await;
    let (mut listener, _) = rig.listener(&["a:1"]).await;
    assert_eq!(rig.rung().await, TOOLS);
    rig.transport.cut();
    assert_eq!(next(&mut listener).await, exactly(0));
    assert_eq!(rig.rung().await, TOOLS);
    assert_eq!(rig.transport.opened(), 2);
    assert_eq!(rig.asked(SUBSCRIBE).len(), 1, "the session still has it");
    rig.transport.say(&updated("a:1"));
    assert_eq!(next(&mut listener).await, exactly(0));
}

#[tokio::test(start_paused = true)]
async fn a_session_that_was_forgotten_is_followed_by_one_with_the_same_subscriptions() {
    let rig = watching(BOTH, true, |sent| match sent.header("mcp-session-id") {
        Some("s0") if sent.params.contains("a:2") => Play::Status(404),
        _ => result("{}"),
    })
    .await;
    let (mut first, _) = rig.listener(&["a:1"]).await;
    // Only this finds out that the session is gone.
    let (_second, _) = rig.listener(&["a:2"]).await;
    assert_eq!(next(&mut first).await, exactly(0));
    let sessions: Vec<_> = rig
        .transport
        .sent_of(SUBSCRIBE)
        .iter()
        .map(|sent| {
            (
                sent.params.clone(),
                sent.header("mcp-session-id").unwrap().to_owned(),
            )
        })
        .collect();
    assert!(
        sessions.contains(&(r#"{"uri":"a:1"}"#.into(), "s1".into())),
        "{sessions:?}"
    );
    assert_eq!(rig.transport.opened(), 2);
    rig.transport.say(&updated("a:1"));
    assert_eq!(next(&mut first).await, exactly(0));
}

fn no_stream(status: u16) -> UpstreamError {
    match status {
        404 => UpstreamError::Refused(crate::jsonrpc::RpcError::new(codes::SESSION_NOT_FOUND, "")),
        status => UpstreamError::away("", http::StatusCode::from_u16(status).unwrap()),
    }
}

/// PROTOCOL B4, and servers that say 400 instead.
#[tokio::test(start_paused = true)]
async fn a_stream_that_is_refused_for_its_session_is_followed_by_another_session() {
    for status in [404, 400] {
        let rig = watching(BOTH, true, |_| result("{}")).await;
        let (mut listener, _) = rig.listener(&["a:1"]).await;
        rig.transport.shut(&["s0"], &no_stream(status));
        rig.transport.cut();
        rig.transport.until_count(SUBSCRIBE, 2).await;
        let again = rig.transport.sent_of(SUBSCRIBE).remove(1);
        assert_eq!(again.header("mcp-session-id"), Some("s1"), "{status}");
        assert_eq!(next(&mut listener).await, exactly(0));
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_refuses_every_stream_keeps_its_session() {
    for status in [400, 503] {
        let rig = watching(BOTH, true, |_| result("{}")).await;
        rig.transport.shut(&["s1"], &no_stream(status));
        rig.transport.shut(&["s0"], &no_stream(404));
        rig.transport.cut();
        sleep(Duration::from_secs(600)).await;
        assert_eq!(rig.asked("initialize").len(), 2, "{status}");
        let (_listener, in_force) = rig.listener(&["a:1"]).await;
        assert_eq!(in_force, [true]);
    }
}

#[tokio::test(start_paused = true)]
async fn any_session_may_say_that_a_list_changed_and_only_the_gateways_own_that_a_resource_did() {
    let rig = watching(BOTH, true, |sent| match sent.method.as_str() {
        "tools/call" => Play::Stream(
            vec![
                (0, note("notifications/tools/list_changed", "{}")),
                (0, updated("a:1")),
                (0, last("{}")),
            ],
            false,
        ),
        _ => result("{}"),
    })
    .await;
    let (mut listener, _) = rig.listener(&["a:1"]).await;
    assert_eq!(rig.rung().await, TOOLS);
    let call = Call {
        caller: Arc::new(a_caller("k")),
        ..a_tool_call()
    };
    assert!(matches!(call.op, Op::CallTool(_)));
    assert!(rig.peer.call(call, a_route("t")).await.is_ok());
    let called = rig.transport.sent_of("tools/call").remove(0);
    assert_eq!(called.header("mcp-session-id"), Some("s1"));
    assert_eq!(rig.rung().await, TOOLS);
    assert!(futures_util::poll!(listener.next()).is_pending());
}
