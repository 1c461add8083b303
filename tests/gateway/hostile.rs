//! An upstream that is away, dies, hangs, babbles or floods harms its own callers only, who are told (acceptance 8).

use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::Instant;

use crate::harness::{
    Answer, Client, Gateway, GatewayBuilder, Pairing, Play, Revision, Upstream, call_result,
    eventually, tool, within,
};

/// Well over every deadline that these tests configure, however loaded the machine, and well under the default of a call.
const LIMIT: Duration = Duration::from_secs(20);
const SHORT: &str = "call: 3s, list: 3s, connect: 3s, silence: 3s";
/// Well under those: whoever waited for the hostile server took longer. Loaded machines are slow, too.
const PROMPT: Duration = Duration::from_millis(2_500);

/// A sound server beside the hostile one.
struct Pair {
    good: Upstream,
    gateway: Gateway,
    client: Client,
}

impl Pair {
    async fn of(revision: Revision, bad: &Upstream, builder: GatewayBuilder) -> Self {
        let good = Upstream::http(Revision::V2026_07_28).tools([tool("t")]);
        let start = if bad.is_piped() { ", start: 3s" } else { "" };
        let gateway = builder
            .upstream_with("bad", bad, &format!("timeout: {{ {SHORT}{start} }}"))
            .upstream("good", &good)
            .unsettled()
            .start()
            .await;
        let client = gateway.client(revision).await;
        let pair = Self {
            good,
            gateway,
            client,
        };
        eventually("the sound server is there", || async {
            pair.gateway.offers("good").then_some(())
        })
        .await;
        pair
    }

    /// The sound server answers at once, whatever the other does.
    async fn is_unharmed(&self) {
        self.answers_within(PROMPT).await;
    }

    async fn answers_within(&self, limit: Duration) {
        let before = self.good.heard("tools/call").len();
        let began = Instant::now();
        for _ in 0..5 {
            assert_eq!(self.client.call("good_t", "{}").await.text(), "called t");
        }
        assert!(
            began.elapsed() < limit,
            "slowed down: {:?}",
            began.elapsed()
        );
        assert_eq!(self.good.heard("tools/call").len(), before + 5);
    }

    async fn call_bad(&self) -> Answer {
        within(LIMIT, "a call of the hostile server", async {
            self.client.call("bad_t", "{}").await
        })
        .await
    }

    /// None of the hostile server's names was ever known, and whoever uses one learns at once that the server is away, when to
    /// try again, and that a name of nobody's is something else.
    async fn says_that_it_is_away(&self) {
        let call = self.call_bad().await;
        assert_eq!(told(&call), "upstream_unavailable");
        assert!(call.text().contains("is not available"), "{call:?}");
        let again = &call.value()["_meta"]["dev.usher/retryAfterMs"];
        assert!(again.as_u64().is_some(), "{call:?}");
        let get = self.client.ask("prompts/get", r#"{"name":"bad_p"}"#).await;
        assert_eq!(
            get.refusal(),
            (-31001, "upstream_unavailable".to_owned()),
            "{get:?}"
        );
        let told = get.error()["message"].as_str().unwrap().to_owned();
        assert!(
            told.starts_with("the server `bad` is not available"),
            "{told}"
        );
        for nobodys in ["other_t", "badt", "t"] {
            let unknown = self.client.call(nobodys, "{}").await;
            assert_eq!(unknown.refusal(), (-32602, "unknown_name".to_owned()));
        }
    }

    async fn ready(&self) {
        eventually("the hostile server is there", || async {
            self.gateway.offers("bad").then_some(())
        })
        .await;
    }

    /// The entry is listed, and the call goes through.
    async fn returns(&self) {
        eventually("the hostile server is back", || async {
            let listed = self.client.tools().await.contains(&"bad_t".to_owned());
            let answer = self.client.call("bad_t", "{}").await;
            let works = answer.frames.last()?.contains("called t");
            (listed && works).then_some(())
        })
        .await;
    }
}

/// What is no answer to an opening, in either era.
const BABBLE: [&str; 6] = [
    "nonsense",
    "{]",
    "[]",
    r#"{"jsonrpc":"2.0","id":$id,"result":{}}"#,
    r#"{"jsonrpc":"2.0","id":$id,"result":{"protocolVersion":7,"supportedVersions":"all","capabilities":[]}}"#,
    r#"{"jsonrpc":"2.0","id":424242,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}"#,
];

/// The reason of a tool error, and that its text names the server and no address.
fn told(answer: &Answer) -> String {
    assert_eq!(answer.status, 200, "{answer:?}");
    let reason = answer.tool_error();
    let text = answer.text();
    assert!(text.contains("`bad`"), "{text}");
    assert!(!text.contains("127.0.0.1"), "{text}");
    reason
}

/// Over HTTP and as a process, at the same time.
async fn both_ways(run: impl AsyncFn(bool)) {
    tokio::join!(run(false), run(true));
}

/// One upstream of this pairing's era, over HTTP or as a process.
fn server(pair: Pairing, piped: bool) -> Upstream {
    let server = if piped {
        Upstream::pipe(pair.upstream)
    } else {
        Upstream::http(pair.upstream)
    };
    server.tools([tool("t")])
}

pairings! {
    async fn a_server_that_is_down_at_start_joins_when_it_comes(pair: Pairing) {
        both_ways(async |piped| {
            let bad = server(pair, piped);
            bad.down();
            let scene = Pair::of(pair.client, &bad, Gateway::of()).await;
            assert_eq!(scene.client.tools().await, ["good_t"]);
            scene.says_that_it_is_away().await;
            scene.is_unharmed().await;
            bad.up();
            scene.returns().await;
        }).await;
    }
}

pairings! {
    async fn a_server_that_dies_in_a_call_tells_its_caller_and_comes_back(pair: Pairing) {
        both_ways(async |piped| {
            let bad = server(pair, piped).on("tools/call", |_| Play::Die);
            let scene = Pair::of(pair.client, &bad, Gateway::of()).await;
            scene.ready().await;
            assert_eq!(told(&scene.call_bad().await), "upstream_unavailable");
            assert_eq!(bad.heard("tools/call").len(), 1, "a tool call is sent at most once");
            scene.is_unharmed().await;
            bad.as_usual("tools/call");
            scene.returns().await;
        }).await;
    }
}

pairings! {
    async fn a_call_that_fails_after_it_told_of_progress_tells_its_caller(pair: Pairing) {
        let event = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$token,"progress":1}}"#;
        let garbage = Play::Events(vec![event.into()], Box::new(Play::Raw("nonsense".into())));
        let bad = server(pair, false).on("tools/call", move |_| garbage.clone());
        let scene = Pair::of(pair.client, &bad, Gateway::of()).await;
        scene.ready().await;
        let answer = within(LIMIT, "a call", async {
            scene.client.call("bad_t", "{}").meta(r#""progressToken":1"#).await
        })
        .await;
        assert_eq!(answer.events().len(), 1, "{answer:?}");
        assert_eq!(answer.tool_error(), "upstream_protocol_error");
        assert!(answer.text().contains("protocol"), "{answer:?}");
    }
}

pairings! {
    async fn a_call_that_is_never_answered_ends_at_its_deadline(pair: Pairing) {
        both_ways(async |piped| {
            let bad = server(pair, piped).on("tools/call", |_| Play::Hang);
            let scene = Pair::of(pair.client, &bad, Gateway::of()).await;
            scene.ready().await;
            let began = Instant::now();
            let (answer, ()) = tokio::join!(scene.call_bad(), scene.is_unharmed());
            assert_eq!(told(&answer), "upstream_timeout");
            assert!(began.elapsed() >= Duration::from_millis(2_900));
            let prompt = within(LIMIT, "a read", async { scene.client.read("bad+x://y").await });
            prompt.await.result();
        }).await;
    }
}

pairings! {
    async fn a_server_that_hangs_in_its_opening_holds_up_nobody(pair: Pairing) {
        let opening = if pair.upstream_is_modern() { "server/discover" } else { "initialize" };
        both_ways(async |piped| {
            let bad = server(pair, piped).on(opening, |_| Play::Hang);
            let scene = Pair::of(pair.client, &bad, Gateway::of()).await;
            scene.is_unharmed().await;
            assert_eq!(scene.client.tools().await, ["good_t"]);
            // Now that it is being reached for the first time, and when that was given up.
            scene.says_that_it_is_away().await;
            eventually("its opening takes too long", || async { (scene.gateway.state("bad") == "away").then_some(()) }).await;
            scene.says_that_it_is_away().await;
            scene.is_unharmed().await;
            bad.as_usual(opening);
            scene.returns().await;
        }).await;
    }
}

pairings! {
    async fn garbage_for_an_answer_is_the_servers_fault_and_the_next_call_works(pair: Pairing) {
        for garbage in [
            "nonsense",
            "{",
            "[]",
            "",
            r#"{"jsonrpc":"2.0","id":$id}"#,
            r#"{"jsonrpc":"2.0","id":424242,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":"$id","result":{}}"#,
            r#"{"jsonrpc":"2.0","id":$id,"result":[]}"#,
            r#"{"jsonrpc":"1.0","id":$id,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":$id,"result":{},"error":{"code":1,"message":"x"}}"#,
            r#"{"jsonrpc":"2.0","id":$id,"method":"ping"}"#,
        ] {
            let bad = server(pair, false).on("tools/call", move |_| Play::Raw(garbage.into()));
            let scene = Pair::of(pair.client, &bad, Gateway::of()).await;
            scene.ready().await;
            let reason = told(&scene.call_bad().await);
            assert!(["upstream_protocol_error", "upstream_timeout", "upstream_unavailable"].contains(&reason.as_str()), "{garbage}: {reason}");
            bad.as_usual("tools/call");
            scene.returns().await;
        }
    }
}

pairings! {
    async fn noise_on_a_pipe_does_not_hang_its_callers(pair: Pairing) {
        let bad = server(pair, true).on("tools/call", |_| Play::Raw("this is no message".into()));
        let scene = Pair::of(pair.client, &bad, Gateway::of()).await;
        scene.ready().await;
        told(&scene.call_bad().await);
        scene.is_unharmed().await;
        bad.as_usual("tools/call");
        scene.returns().await;
    }
}

pairings! {
    async fn a_flood_is_cut_off(pair: Pairing) {
        both_ways(async |piped| {
            let bad = server(pair, piped).on("tools/call", |_| Play::Flood);
            // Less than there is by default, so that it is over before the deadline of the call.
            let builder = Gateway::of().setting("bounds: { upstream: { message: 1MiB }, stdio: { line: 1MiB } }");
            let scene = Pair::of(pair.client, &bad, builder).await;
            scene.ready().await;
            let (answer, ()) = tokio::join!(scene.call_bad(), scene.answers_within(LIMIT));
            // A process goes on in the middle of a line that never ends: it is lost whole, and not this answer alone.
            let reason = if piped { "upstream_unavailable" } else { "upstream_too_large" };
            assert_eq!(told(&answer), reason);
            bad.as_usual("tools/call");
            scene.returns().await;
        }).await;
    }
}

pairings! {
    async fn a_server_that_babbles_in_its_opening_is_away_and_comes_when_it_speaks(pair: Pairing) {
        let opening = if pair.upstream_is_modern() { "server/discover" } else { "initialize" };
        join_all(BABBLE.map(|babble| both_ways(async move |piped| {
            let bad = server(pair, piped).on(opening, move |_| Play::Raw(babble.into()));
            let scene = Pair::of(pair.client, &bad, Gateway::of()).await;
            bad.until_heard(opening, 1).await;
            scene.answers_within(LIMIT).await;
            eventually("operators see that it is away", || async {
                (scene.gateway.state("bad") == "away").then_some(())
            })
            .await;
            assert_eq!(scene.client.tools().await, ["good_t"], "{babble}");
            scene.says_that_it_is_away().await;
            bad.as_usual(opening);
            scene.returns().await;
        })))
        .await;
    }
}

pairings! {
    async fn a_server_that_babbles_when_it_comes_back_keeps_its_entries_and_its_callers_are_told(pair: Pairing) {
        let opening = if pair.upstream_is_modern() { "server/discover" } else { "initialize" };
        both_ways(async |piped| {
            let bad = server(pair, piped);
            let scene = Pair::of(pair.client, &bad, Gateway::of()).await;
            scene.ready().await;
            bad.now_on(opening, |_| Play::Raw("{]".into()));
            bad.now_on("tools/call", |_| Play::Die);
            told(&scene.call_bad().await);
            bad.down();
            bad.up();
            scene.is_unharmed().await;
            told(&scene.call_bad().await);
            bad.as_usual("tools/call");
            bad.as_usual(opening);
            scene.returns().await;
        })
        .await;
    }
}

pairings! {
    async fn statuses_of_http_become_readable_answers(pair: Pairing) {
        let bad = server(pair, false);
        let scene = Pair::of(pair.client, &bad, Gateway::of()).await;
        scene.ready().await;
        for (status, reason) in [
            (401, "upstream_auth_failed"),
            (403, "upstream_auth_failed"),
            (413, "upstream_request_too_large"),
            (302, "upstream_redirect"),
            (500, "upstream_unavailable"),
            (503, "upstream_unavailable"),
            (418, "upstream_protocol_error"),
        ] {
            bad.now_on("tools/call", move |_| Play::Status(status));
            let answer = scene.call_bad().await;
            assert_eq!(told(&answer), reason, "{status}");
            assert!(answer.headers.get("www-authenticate").is_none());
        }
        bad.as_usual("tools/call");
        scene.returns().await;
    }
}

pairings! {
    async fn while_a_server_is_away_its_entries_stay_and_calls_fail_fast(pair: Pairing) {
        let bad = server(pair, true);
        let scene = Pair::of(pair.client, &bad, Gateway::of()).await;
        scene.ready().await;
        bad.down();
        eventually("the server is away", || async { (scene.gateway.state("bad") == "away").then_some(()) }).await;
        let listed = scene.client.ask("tools/list", "{}").await.value();
        let entry = &listed["tools"][0];
        assert_eq!(entry["name"], "bad_t");
        assert_eq!(entry["_meta"]["dev.usher/stale"], true);
        assert_eq!(listed["_meta"]["dev.usher/away"][0], "bad");
        if pair.client_is_modern() {
            assert_eq!(listed["ttlMs"], 0);
        }
        let began = Instant::now();
        let answer = scene.call_bad().await;
        assert_eq!(told(&answer), "upstream_unavailable");
        assert!(began.elapsed() < PROMPT);
        assert!(answer.value()["_meta"]["dev.usher/retryAfterMs"].as_u64().is_some(), "{answer:?}");
        let read = scene.client.read("bad+x://y").await;
        assert_eq!(read.refusal(), (-31001, "upstream_unavailable".to_owned()));
        bad.up();
        scene.returns().await;
    }
}

#[tokio::test]
async fn entries_of_a_server_that_stays_away_are_gone_after_their_time() {
    let bad = Upstream::pipe(Revision::V2025_11_25).tools([tool("t")]);
    let gateway = Gateway::of()
        .upstream_with("bad", &bad, "stale_for: 1s")
        .start()
        .await;
    let client = gateway.client(Revision::V2026_07_28).await;
    assert_eq!(client.tools().await, ["bad_t"]);
    bad.down();
    eventually("the entry is gone", || async {
        client.tools().await.is_empty().then_some(())
    })
    .await;
    bad.up();
    eventually("the entry is back", || async {
        (client.tools().await.len() == 1).then_some(())
    })
    .await;
}

pairings! {
    async fn one_call_that_hangs_does_not_hold_up_the_next_of_the_same_server(pair: Pairing) {
        both_ways(async |piped| {
            let bad = server(pair, piped).tools([tool("t"), tool("slow")]).on("tools/call", |heard| {
                if heard.text("name").unwrap() == "slow" { Play::Hang } else { Play::Result(call_result("t")) }
            });
            let scene = Pair::of(pair.client, &bad, Gateway::of()).await;
            scene.ready().await;
            let slow = async { scene.client.call("bad_slow", "{}").await };
            let quick = async {
                bad.until_heard("tools/call", 1).await;
                let began = Instant::now();
                assert_eq!(scene.call_bad().await.text(), "called t");
                assert!(began.elapsed() < PROMPT);
            };
            let (slow, ()) = tokio::join!(within(LIMIT, "the slow call", slow), quick);
            assert_eq!(told(&slow), "upstream_timeout");
        }).await;
    }
}
