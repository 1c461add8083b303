//! The listen of a modern upstream in paused time, against a transport that plays its part.

use std::sync::{Mutex, OnceLock};

use super::*;
use crate::{
    events::{Bounds, Hub, Listener, News},
    json::Limits,
    logged::Logged,
    protocol::{Era, UpstreamId, names::Scope},
    tasks::Tasks,
    upstream::{
        line::Wire,
        scripted::{Play, Scripted, Sent, a_pipe, note},
        terms::Terms,
    },
};

/// A watch at work, and everything around it.
struct Rig {
    transport: Arc<Scripted>,
    hub: Arc<Hub>,
    terms: Arc<Terms>,
    tasks: Tasks,
    watching: Mutex<Tasks>,
    line: Arc<Line>,
    card: ServerCard,
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.tasks.stop();
    }
}

const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
const CLOSING: &str = r#"{"jsonrpc":"2.0","id":$id,"result":{"resultType":"complete"}}"#;
const BOTH: &str = r#"{"tools":{"listChanged":true},"prompts":{},"resources":{"subscribe":true}}"#;

fn up() -> UpstreamId {
    UpstreamId::parse("u").unwrap()
}

/// Acknowledges whatever was asked.
fn acknowledge(sent: &Sent) -> Play {
    let asked = sent.params.split_once(r#""notifications":"#).unwrap().1;
    let asked = asked.split_once(r#","_meta""#).unwrap().0;
    Play::Live(vec![acknowledgement(asked)])
}

fn acknowledgement(honoured: &str) -> String {
    let meta = r#""_meta":{"io.modelcontextprotocol/subscriptionId":$id}"#;
    note(
        ACKNOWLEDGED,
        &format!(r#"{{{meta},"notifications":{honoured}}}"#),
    )
}

fn updated(uri: &str) -> String {
    note(
        "notifications/resources/updated",
        &format!(r#"{{"uri":"{uri}"}}"#),
    )
}

fn watching(
    capabilities: &'static str,
    streamable: bool,
    mut script: impl FnMut(&Sent) -> Play + Send + 'static,
) -> Rig {
    let transport = Scripted::new(move |sent| match sent.method.as_str() {
        "subscriptions/listen" => script(sent),
        _ => Play::Status(202),
    });
    let hub = Hub::new(Bounds::default());
    let spec = a_pipe();
    let tasks = Tasks::new();
    let terms = Terms::new(
        &spec,
        crate::catalog::rules::CatalogBounds::default(),
        hub.interest(&up()),
        tasks.clone(),
    );
    let wire = Wire::new(Arc::<Scripted>::clone(&transport), streamable);
    let line = super::super::line(wire, Revision::V2026_07_28, Arc::clone(&terms));
    assert_eq!(line.era, Era::Modern);
    let card = ServerCard {
        revision: Revision::V2026_07_28,
        capabilities: Json::parse(capabilities.into(), &Limits::LIST).unwrap(),
        instructions: None,
        server_info: None,
        ttl_millis: 0,
    };
    terms.interest.begin();
    let rig = Rig {
        transport,
        hub,
        terms,
        watching: Mutex::new(tasks.child()),
        tasks,
        line,
        card,
    };
    rig.begin();
    rig
}

impl Rig {
    fn begin(&self) {
        let (line, card) = (Arc::clone(&self.line), self.card.clone());
        let watching = self.tasks.child();
        watching.spawn(async move {
            watch(&line, &card, &line.terms.refresh, &line.terms.interest).await
        });
        *self.watching.lock().unwrap() = watching;
    }

    async fn end(&self) {
        self.watching.lock().unwrap().stop();
        while !self.transport.live().is_empty() {
            tokio::task::yield_now().await;
        }
    }

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

    async fn heard(&self, number: usize) -> String {
        self.transport
            .until_count("subscriptions/listen", number)
            .await;
        let sent = self.transport.sent_of("subscriptions/listen");
        let params = &sent[number - 1].params;
        let asked = params.split_once(r#""notifications":"#).unwrap().1;
        asked.split_once(r#","_meta""#).unwrap().0.to_owned()
    }

    /// The lists that are to be read again.
    async fn rung(&self) -> Lists {
        self.terms
            .refresh
            .rung(&crate::upstream::refresh_signal::Spacing::new(
                Instant::now(),
            ))
            .await
            .lists
    }
}

/// The next news, which must not be long in coming.
async fn next(listener: &mut Listener) -> News {
    let news = timeout(Duration::from_secs(300), listener.next()).await;
    news.expect("news in time").unwrap().unwrap()
}

const fn exactly(watched: usize) -> News {
    News::Resource {
        watched,
        below: None,
    }
}

const TOOLS: Lists = Lists::of(ListKind::Tools);

#[tokio::test(start_paused = true)]
async fn the_lists_that_a_server_promises_are_listened_for_with_the_headers_of_the_era() {
    let rig = watching(BOTH, true, acknowledge);
    assert_eq!(rig.heard(1).await, r#"{"toolsListChanged":true}"#);
    let sent = rig.transport.sent_of("subscriptions/listen").remove(0);
    assert_eq!(sent.header("mcp-method"), Some("subscriptions/listen"));
    assert_eq!(sent.header("mcp-protocol-version"), Some("2026-07-28"));
    assert!(
        sent.params
            .contains(r#""io.modelcontextprotocol/clientCapabilities":{}"#)
    );
    // What happened before it was acknowledged is read once more.
    assert_eq!(rig.rung().await, TOOLS);
    rig.transport
        .tell_last(&note("notifications/tools/list_changed", "{}"));
    assert_eq!(rig.rung().await, TOOLS);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_promises_nothing_is_not_asked() {
    let rig = watching(r#"{"tools":{}}"#, true, acknowledge);
    let (_listener, in_force) = rig.listener(&["a:1"]).await;
    assert_eq!(in_force, [false]);
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(rig.transport.sent().len(), 0);
}

/// PROTOCOL B1: it may be for good, or for now.
#[tokio::test(start_paused = true)]
async fn where_a_listen_is_answered_with_a_bare_404_nobody_waits_and_it_is_tried_again() {
    let mut left = 3_u32;
    let rig = watching(BOTH, true, move |sent| match left.checked_sub(1) {
        Some(less) => {
            left = less;
            Play::Status(404)
        }
        None => acknowledge(sent),
    });
    let before = Instant::now();
    for uri in ["a:1", "a:2"] {
        let (_listener, in_force) = rig.listener(&[uri]).await;
        assert_eq!(in_force, [false]);
    }
    assert_eq!(before.elapsed(), Duration::ZERO);
    rig.transport.until_count("subscriptions/listen", 4).await;
    let (_listener, in_force) = rig.listener(&["a:1"]).await;
    assert_eq!(in_force, [true]);
}

#[tokio::test(start_paused = true)]
async fn other_resources_make_another_listen_that_is_acknowledged_before_the_old_one_goes() {
    for streamable in [true, false] {
        let rig = watching(BOTH, streamable, acknowledge);
        rig.heard(1).await;
        let (mut first, in_force) = rig.listener(&["a:2", "a:1"]).await;
        assert_eq!(in_force, [true, true]);
        assert_eq!(
            rig.heard(2).await,
            r#"{"toolsListChanged":true,"resourceSubscriptions":["a:1","a:2"]}"#
        );
        tokio::time::sleep(2 * PARTING).await;
        assert_eq!(rig.transport.live().len(), 1);
        let told = rig.transport.sent_of("notifications/cancelled").len();
        assert_eq!(told, usize::from(!streamable));
        rig.transport
            .tell_last(&note("notifications/resources/updated", r#"{"uri":"a:1"}"#));
        assert_eq!(next(&mut first).await, exactly(1));
        // Nobody else's coming and going asks anything as long as the union is the same.
        let (second, in_force) = rig.listener(&["a:1"]).await;
        assert_eq!(in_force, [true]);
        drop(second);
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(rig.transport.sent_of("subscriptions/listen").len(), 2);
        drop(first);
        assert_eq!(rig.heard(3).await, r#"{"toolsListChanged":true}"#);
    }
}

#[tokio::test(start_paused = true)]
async fn the_old_listen_is_heard_until_the_new_one_is_acknowledged() {
    let rig = watching(BOTH, true, |sent| {
        let slow = sent.params.contains("a:2");
        match acknowledge(sent) {
            play if slow => Play::After(3, Box::new(play)),
            play => play,
        }
    });
    let (mut first, _) = rig.listener(&["a:1"]).await;
    let (_second, in_force) = rig.listener(&["a:2"]).await;
    assert_eq!(
        in_force,
        [false],
        "not acknowledged in time, so not in force"
    );
    assert_eq!(rig.transport.live().len(), 1);
    rig.transport
        .tell_last(&note("notifications/resources/updated", r#"{"uri":"a:1"}"#));
    assert_eq!(next(&mut first).await, exactly(0));
}

/// Where one read finds both, too.
#[tokio::test(start_paused = true)]
async fn what_the_old_listen_was_told_before_the_acknowledgement_is_told_on() {
    for streamable in [true, false] {
        let transport: Arc<OnceLock<Arc<Scripted>>> = Arc::default();
        let server = Arc::clone(&transport);
        let rig = watching(BOTH, streamable, move |sent| {
            if sent.params.contains("a:2") {
                server.get().unwrap().tell_last(&updated("a:1"));
            }
            acknowledge(sent)
        });
        assert!(transport.set(Arc::clone(&rig.transport)).is_ok());
        let (mut first, _) = rig.listener(&["a:1"]).await;
        let (_second, in_force) = rig.listener(&["a:2"]).await;
        assert_eq!(in_force, [true]);
        assert_eq!(next(&mut first).await, exactly(0));
    }
}

#[tokio::test(start_paused = true)]
async fn the_old_listen_is_heard_for_a_moment_more_and_if_it_breaks_off_all_look_again() {
    for last in [updated("a:1"), CLOSING.to_owned()] {
        let rig = watching(BOTH, true, acknowledge);
        let (mut first, _) = rig.listener(&["a:1"]).await;
        let (_second, in_force) = rig.listener(&["a:2"]).await;
        assert_eq!((in_force, rig.transport.live().len()), (vec![true], 2));
        rig.transport.tell_before(1, &last);
        assert_eq!(next(&mut first).await, exactly(0));
        tokio::time::sleep(2 * PARTING).await;
        assert_eq!(rig.transport.live().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn old_listens_are_few_and_whoever_relied_on_one_too_many_looks_again() {
    let rig = watching(BOTH, true, acknowledge);
    let (mut first, _) = rig.listener(&["a:0"]).await;
    let mut others = Vec::new();
    for number in 1..=PARTING_AT_ONCE {
        others.push(rig.listener(&[&format!("a:{number}")]).await);
    }
    assert_eq!(rig.transport.live().len(), PARTING_AT_ONCE + 1);
    assert!(futures_util::poll!(first.next()).is_pending());
    others.push(rig.listener(&["b:1"]).await);
    assert_eq!(next(&mut first).await, exactly(0));
    assert_eq!(rig.transport.live().len(), PARTING_AT_ONCE + 1);
    assert!(others.iter().all(|(_, in_force)| *in_force == [true]));
}

#[tokio::test(start_paused = true)]
async fn where_a_watch_is_begun_anew_those_who_watch_look_again() {
    let rig = watching(BOTH, true, acknowledge);
    let (mut first, in_force) = rig.listener(&["a:1"]).await;
    assert_eq!(in_force, [true]);
    rig.end().await;
    assert!(futures_util::poll!(first.next()).is_pending());
    rig.begin();
    assert_eq!(next(&mut first).await, exactly(0));
}

#[tokio::test(start_paused = true)]
async fn only_what_was_acknowledged_is_in_force() {
    let rig = watching(BOTH, true, |_| {
        Play::Live(vec![acknowledgement(
            r#"{"resourceSubscriptions":["a:2"]}"#,
        )])
    });
    let began = Instant::now();
    let (_listener, in_force) = rig.listener(&["a:1", "a:2"]).await;
    assert_eq!(in_force, [false, true]);
    assert_eq!(
        began.elapsed(),
        Duration::ZERO,
        "a refusal is not waited for"
    );
}

#[tokio::test(start_paused = true)]
async fn however_a_listen_ends_it_is_begun_again_and_those_who_relied_on_it_look_again() {
    let cancelled = note("notifications/cancelled", r#"{"requestId":$id}"#);
    for (streamable, last) in [
        (true, Some(CLOSING)),
        (true, None),
        (false, Some(CLOSING)),
        (false, Some(&*cancelled)),
    ] {
        let rig = watching(BOTH, streamable, acknowledge);
        let (mut listener, _) = rig.listener(&["a:1"]).await;
        let before = rig.transport.sent_of("subscriptions/listen").len();
        assert_eq!(rig.rung().await, TOOLS);
        match last {
            Some(last) => rig.transport.tell_last(last),
            None => rig.transport.hang_up(),
        }
        let began = Instant::now();
        assert_eq!(next(&mut listener).await, exactly(0));
        assert!(began.elapsed() <= Duration::from_millis(1_200));
        assert_eq!(rig.rung().await, TOOLS);
        assert_eq!(
            rig.transport.sent_of("subscriptions/listen").len(),
            before + 1
        );
        let told = rig.transport.sent_of("notifications/cancelled").len();
        assert_eq!(
            told,
            usize::from(!streamable) * (before - 1),
            "it ended by itself"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_listen_that_keeps_ending_is_begun_ever_more_slowly() {
    let rig = watching(BOTH, true, |_| {
        let end = r#"{"jsonrpc":"2.0","id":$id,"result":{}}"#;
        Play::Live(vec![acknowledgement("{}"), end.into()])
    });
    tokio::time::sleep(Duration::from_secs(300)).await;
    let listens = rig.transport.sent_of("subscriptions/listen").len();
    assert!((10..=20).contains(&listens), "{listens}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_knows_no_listens_is_asked_once_and_one_that_refuses_a_resource_keeps_the_rest()
 {
    let rig = watching(BOTH, true, |_| Play::Error(404, -32601, ""));
    let (_listener, in_force) = rig.listener(&["a:1"]).await;
    assert_eq!(in_force, [false]);
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(rig.transport.sent_of("subscriptions/listen").len(), 1);

    let rig = watching(BOTH, true, |sent| {
        if sent.params.contains("bad:") {
            Play::Error(200, -32602, "")
        } else {
            acknowledge(sent)
        }
    });
    let (mut good, _) = rig.listener(&["a:1"]).await;
    let began = Instant::now();
    let (_bad, in_force) = rig.listener(&["bad:1"]).await;
    assert_eq!((in_force, began.elapsed()), (vec![false], Duration::ZERO));
    rig.transport
        .tell_last(&note("notifications/resources/updated", r#"{"uri":"a:1"}"#));
    assert_eq!(next(&mut good).await, exactly(0));
}

/// PROTOCOL B1: a status without a message may come of what stands in front of the server, and only for now.
#[tokio::test(start_paused = true)]
async fn a_listen_that_is_refused_without_a_message_casts_doubt_and_is_begun_again() {
    for status in [404, 405] {
        let mut asked = 0;
        let rig = watching(BOTH, true, move |sent| {
            asked += 1;
            match asked {
                1 => Play::Status(status),
                _ => acknowledge(sent),
            }
        });
        let doubted = timeout(Duration::from_secs(1), rig.line.wire.doubt.arisen());
        assert!(doubted.await.is_ok(), "{status}");
        rig.heard(2).await;
        let (_listener, in_force) = rig.listener(&["a:1"]).await;
        assert_eq!(in_force, [true], "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_listen_is_logged_with_whose_it_is_and_what_was_said() {
    let logged = Logged::new();
    let rig = watching(BOTH, true, |_| Play::Error(200, -32602, ""));
    let (_listener, _) = rig.listener(&["a:1"]).await;
    let text = logged.text();
    let told = "refuses to be listened to upstream=u error=answered with error -32602: no";
    assert!(text.contains(told), "{text}");
}

#[tokio::test(start_paused = true)]
async fn after_a_break_one_that_is_refused_costs_the_others_nothing_and_what_is_taken_no_more_is_told()
 {
    let taken = Arc::new(std::sync::atomic::AtomicBool::new(true));
    let takes = Arc::clone(&taken);
    let rig = watching(BOTH, true, move |sent| {
        let takes = takes.load(std::sync::atomic::Ordering::SeqCst);
        if sent.params.contains("bad:") || (sent.params.contains("a:1") && !takes) {
            Play::Error(200, -32602, "")
        } else {
            acknowledge(sent)
        }
    });
    let (mut good, _) = rig.listener(&["a:1"]).await;
    rig.transport.hang_up();
    // Whoever asks for what is refused is there when another listen is begun.
    for _ in 0..3 {
        let (_bad, in_force) = rig.listener(&["bad:1"]).await;
        assert_eq!(in_force, [false]);
    }
    assert_eq!(
        next(&mut good).await,
        exactly(0),
        "something may have been missed"
    );
    tokio::time::sleep(Duration::from_secs(2)).await;
    let (_also, in_force) = rig.listener(&["a:1"]).await;
    assert_eq!(in_force, [true]);
    rig.transport.tell_last(&updated("a:1"));
    assert_eq!(next(&mut good).await, exactly(0));
    // And where it is that one that is refused now, that is believed as well.
    taken.store(false, std::sync::atomic::Ordering::SeqCst);
    rig.transport.hang_up();
    tokio::time::sleep(Duration::from_secs(30)).await;
    let looks = rig.transport.sent_of("subscriptions/listen").len();
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(rig.transport.sent_of("subscriptions/listen").len(), looks);
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_acknowledgements_and_strangers_changes_nothing() {
    let rig = watching(BOTH, true, acknowledge);
    let (listener, _) = rig.listener(&["a:1"]).await;
    let listener = Mutex::new(listener);
    assert_eq!(rig.rung().await, TOOLS);
    for text in [
        acknowledgement("{}"),
        note("notifications/resources/updated", r#"{"uri":"b:1"}"#),
        note("notifications/resources/updated", "{}"),
        note("notifications/x", "{}"),
        r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#.to_owned(),
    ] {
        rig.transport.tell_last(&text);
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let mut listener = listener.into_inner().unwrap();
    assert!(futures_util::poll!(listener.next()).is_pending());
    assert_eq!(
        rig.terms.dropped.load(std::sync::atomic::Ordering::Relaxed),
        5
    );
}
