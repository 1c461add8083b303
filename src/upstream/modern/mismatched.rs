//! Tests: calls that are refused for their headers: what is read anew, and whether they are made once more (PROTOCOL B3, D6).

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use futures_util::future::join_all;
use tokio::time::{advance, sleep};

use super::{
    tests::{done, over_http, peer_of, text},
    *,
};
use crate::{
    call::{IdentityKind, Origin, Trail},
    catalog::rules::CatalogBounds,
    tasks::Tasks,
    upstream::{
        refresh_signal::Spacing,
        scripted::{Play, Scripted, Sent, a_call, a_route, an_address, result},
        spec::UpstreamSpec,
        supervisor::COALESCE,
    },
};

const ASKING: &str = r#"{"tools":[{"name":"t","inputSchema":{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A"}}}}]}"#;

fn calling() -> Call {
    a_call(
        Op::CallTool("u_t".into()),
        r#"{"name":"u_t","arguments":{"a":"x"}}"#,
    )
}

/// It was not carried out, and so is made no second time where that counts (SECURITY REL-6).
#[tokio::test]
async fn a_call_is_made_once_more_with_the_headers_that_its_tool_asks_for_now() {
    let (transport, peer) = over_http(|sent: &Sent| match sent.method.as_str() {
        "tools/list" => result(ASKING),
        _ if sent.header("mcp-param-a") == Some("x") => result("{}"),
        _ => Play::Error(400, -32020, ""),
    });
    let reply = peer.call(calling(), a_route("t")).await;
    assert_eq!(text(&done(reply)), "{}");
    assert_eq!(transport.sent_of("tools/call").len(), 2);
    assert_eq!(transport.sent_of("tools/list").len(), 1);
}

#[tokio::test]
async fn a_call_is_refused_where_its_tool_asks_for_nothing_else_and_where_it_is_refused_again() {
    let same = r#"{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}"#;
    let another = r#"{"tools":[{"name":"x","inputSchema":{"type":"object"}}]}"#;
    for (tools, status, calls) in [
        (ASKING, 400, 2),
        (same, 400, 1),
        (another, 400, 1),
        // Whoever says so with a result's status may have looked at more than headers.
        (ASKING, 200, 1),
    ] {
        let (transport, peer) = over_http(move |sent: &Sent| match sent.method.as_str() {
            "tools/list" => result(tools),
            _ => Play::Error(status, -32020, ""),
        });
        let reply = peer.call(calling(), a_route("t")).await;
        assert!(
            matches!(reply, Err(UpstreamError::Protocol(_))),
            "{reply:?}"
        );
        assert_eq!(transport.sent_of("tools/call").len(), calls, "{tools}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_comes_to_be_sent_once_more_is_an_attempt_and_what_does_not_is_none() {
    for (again, attempts) in [
        (result("{}"), 2),
        (Play::Error(400, -32020, ""), 2),
        (Play::Fail(UpstreamError::unconnected("refused")), 0),
    ] {
        let (transport, peer) = over_http(move |sent: &Sent| match sent.method.as_str() {
            "tools/list" => result(ASKING),
            _ if sent.header("mcp-param-a") == Some("x") => again.clone(),
            _ => Play::Error(400, -32020, ""),
        });
        let trail = Trail::of(Origin::default());
        let call = Call {
            trail: trail.clone(),
            ..calling()
        };
        drop(peer.call(call, a_route("t")).await);
        assert_eq!(transport.sent_of("tools/call").len(), 2);
        assert_eq!(trail.read(|facts| facts.attempts), attempts);
    }
    // A place in the queue is none: what is to be sent once more may find no room.
    let transport = Scripted::new(|_: &Sent| Play::Hang);
    let spec = UpstreamSpec {
        concurrency: 1,
        ..an_address()
    };
    let peer = peer_of(&spec, &transport, true);
    let mut under_way = Box::pin(peer.call(calling(), a_route("t")));
    assert!(futures_util::poll!(under_way.as_mut()).is_pending());
    let trail = Trail::of(Origin::default());
    trail.goes_again();
    let call = Call {
        trail: trail.clone(),
        ..calling()
    };
    let refused = peer.call(call, a_route("t")).await;
    assert!(matches!(refused, Err(UpstreamError::Overloaded)));
    assert_eq!(trail.read(|facts| facts.attempts), 0);
}

fn refusing_whoever_lacks_a_header(list: Play) -> impl FnMut(&Sent) -> Play + Send + 'static {
    let mut lists = vec![list];
    move |sent| match sent.method.as_str() {
        "tools/list" => lists.pop().unwrap_or_else(|| result(ASKING)),
        _ if sent.header("mcp-param-a") == Some("x") => result("{}"),
        _ => Play::Error(400, -32020, ""),
    }
}

/// SECURITY 6
#[tokio::test(start_paused = true)]
async fn of_calls_that_are_refused_at_once_one_reads_for_all_and_each_keeps_its_share() {
    let slow = Play::After(5, Box::new(result(ASKING)));
    let transport = Scripted::new(refusing_whoever_lacks_a_header(slow));
    let spec = UpstreamSpec {
        concurrency: 100,
        ..an_address()
    };
    let peer = peer_of(&spec, &transport, true);
    let calls = join_all((0..100).map(|_| peer.call(calling(), a_route("t"))));
    let looking = async {
        sleep(Duration::from_secs(3)).await;
        assert_eq!(transport.sent_of("tools/call").len(), 100);
        assert_eq!(peer.line.terms.queue.taken(), 100);
    };
    let (replies, ()) = tokio::join!(calls, looking);
    for reply in replies {
        assert_eq!(text(&done(reply)), "{}");
    }
    assert_eq!(transport.sent_of("tools/list").len(), 1);
    assert_eq!(transport.sent_of("tools/call").len(), 200);
    assert_eq!(peer.line.terms.queue.taken(), 0);
    // As changes are spaced, so is this.
    for (later, lists) in [(COALESCE - Duration::from_millis(1), 1), (COALESCE, 2)] {
        advance(later).await;
        done(peer.call(calling(), a_route("t")).await);
        assert_eq!(transport.sent_of("tools/list").len(), lists);
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_that_cannot_be_read_is_not_asked_for_by_each_call_that_was_refused() {
    let failing = Play::After(1, Box::new(Play::Status(500)));
    let transport = Scripted::new(refusing_whoever_lacks_a_header(failing));
    let peer = peer_of(&an_address(), &transport, true);
    let replies = join_all((0..4).map(|_| peer.call(calling(), a_route("t")))).await;
    for reply in replies {
        assert!(
            matches!(reply, Err(UpstreamError::Protocol(_))),
            "{reply:?}"
        );
    }
    assert_eq!(transport.sent_of("tools/list").len(), 1);
    advance(COALESCE).await;
    done(peer.call(calling(), a_route("t")).await);
    assert_eq!(transport.sent_of("tools/list").len(), 2);
}

/// SECURITY 6
#[tokio::test]
async fn there_is_room_for_what_is_read_anew_whatever_else_is_held() {
    let transport = Scripted::new(refusing_whoever_lacks_a_header(result(ASKING)));
    let (_, other) = over_http(|_| Play::Hang);
    let card = other.card_cache.card();
    let bounds = CatalogBounds {
        total_bytes: ASKING.len(),
        ..CatalogBounds::default()
    };
    let terms = Terms::new(&an_address(), bounds, Arc::default(), Tasks::new());
    let wire = Wire::new(Arc::<Scripted>::clone(&transport), true);
    let peer = Modern::new(
        ServerCard::clone(&card),
        line(wire, card.revision, Arc::clone(&terms)),
    );
    let mut held = terms.lists.reading(ListKind::Tools);
    let all = Json::string(&"x".repeat(ASKING.len() - 2));
    assert!(held.take(all, true).is_some());
    let reply = peer.call(calling(), a_route("t")).await;
    assert_eq!(text(&done(reply)), "{}");
    assert_eq!(transport.sent_of("tools/call").len(), 2);
}

/// SECURITY CAT-2
#[tokio::test]
async fn what_nobody_approved_says_of_no_argument_that_it_goes_into_a_header() {
    for definitions in [Mode::Watch, Mode::Off, Mode::Quarantine] {
        let transport = Scripted::new(refusing_whoever_lacks_a_header(result(ASKING)));
        let spec = UpstreamSpec {
            definitions,
            ..an_address()
        };
        let peer = peer_of(&spec, &transport, true);
        let reply = peer.call(calling(), a_route("t")).await;
        let withheld = definitions == Mode::Quarantine;
        assert_eq!(reply.is_err(), withheld, "{reply:?}");
        let lists = transport.sent_of("tools/list").len();
        assert_eq!(lists, usize::from(!withheld));
        // Under any it is read, and judged, in the background.
        let rung = peer
            .line
            .terms
            .refresh
            .rung(&Spacing::new(Instant::now()))
            .await;
        assert_eq!(rung.changed, Lists::of(ListKind::Tools));
    }
}

/// SECURITY STATE-5
#[tokio::test(start_paused = true)]
async fn what_was_read_for_one_principal_is_no_others() {
    let header_cache = HeaderCache::default();
    let read = AtomicUsize::new(0);
    let somebody = |name: &str| {
        let identity = Identity::named(IdentityKind::User, name);
        Some(identity.grantee())
    };
    for (whose, readings) in [
        (somebody("ana"), 1),
        (somebody("ana"), 1),
        (somebody("ben"), 2),
        // Nor is it read again because somebody else came in between.
        (somebody("ana"), 2),
        (somebody("ben"), 2),
        (None, 3),
        (somebody("ana"), 3),
    ] {
        let reading = async {
            read.fetch_add(1, Ordering::Relaxed);
            let tool = r#"{"name":"t","inputSchema":{"type":"object"}}"#;
            Ok(Listing {
                items: [Json::literal(tool)].into(),
                ..Listing::default()
            })
        };
        let asked = header_cache.headers(whose, "t", reading).await;
        assert_eq!(asked.as_deref(), Some(&[][..]));
        assert_eq!(read.load(Ordering::Relaxed), readings);
    }
}
