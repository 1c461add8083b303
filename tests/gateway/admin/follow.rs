//! Records and calls as they come: searched, and followed as events.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, SystemTime},
};

use http::Method;
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use usher::{
    config,
    feed::{CallSeen, HELD},
};

use super::{AUDITOR, OPERATOR, Plane, plane, problem};
use crate::harness::{
    EventStream, Gateway, PATIENCE, Pairing, Revision, Upstream, eventually, parse, tool, within,
};

const MODERN: Revision = Revision::V2026_07_28;

async fn follow(plane: &Plane, path: &str) -> EventStream {
    let bearer = format!("Bearer {AUDITOR}");
    let headers = [("authorization", bearer.as_str())];
    let stream = EventStream::open(plane.address, Method::GET, path, &headers, "").await;
    assert_eq!(stream.status, 200);
    assert_eq!(stream.headers["content-type"], "text/event-stream");
    stream
}

#[tokio::test]
async fn records_are_searched_the_newest_first_and_followed_as_they_are_written() {
    let records = tempfile::tempdir().unwrap();
    let notes = Upstream::http(MODERN).tools([tool("t"), tool("u")]);
    let audit = format!("audit: {{ dir: '{}' }}", records.path().display());
    let plane = plane(Gateway::of().upstream("notes", &notes).setting(&audit)).await;
    let client = plane.gateway.client(MODERN).await;
    client.call("notes_t", "{}").await;
    let searched = eventually("both records", async || {
        let told = plane.get("/api/audit?name=notes_t&limit=1").await;
        let first = told["items"][0]["record"]["stage"] == "outcome";
        first.then_some(told)
    })
    .await;
    let cursor = searched["next_cursor"].as_str().unwrap();
    let next = plane
        .get(&format!("/api/audit?name=notes_t&limit=1&cursor={cursor}"))
        .await;
    assert_eq!(next["items"][0]["record"]["stage"], "decision");
    assert!(next["items"][0]["seq"].as_u64() < searched["items"][0]["seq"].as_u64());
    assert_eq!(
        plane.get("/api/audit?name=notes_u").await["items"],
        json!([])
    );

    let mut followed = follow(&plane, "/api/audit/follow?method=tools/call&name=notes_u").await;
    client.call("notes_t", "{}").await;
    client.call("notes_u", "{}").await;
    for stage in ["decision", "outcome"] {
        let event = followed.message().await;
        assert_eq!(event.name, "record");
        let told = parse(&event.data);
        assert_eq!(told["record"]["target"]["exposed"], "notes_u");
        assert_eq!(told["record"]["stage"], stage);
    }
}

#[tokio::test]
async fn what_an_operator_changes_and_what_an_auditor_tries_to_is_recorded() {
    let records = tempfile::tempdir().unwrap();
    let notes = Upstream::http(MODERN).tools([tool("t")]);
    let audit = format!("audit: {{ dir: '{}' }}", records.path().display());
    let plane = plane(Gateway::of().upstream("notes", &notes).setting(&audit)).await;
    plane
        .done(AUDITOR, "/api/upstreams/notes/disable", "{}")
        .await;
    plane.post("/api/upstreams/notes/restart", "{}").await;
    plane
        .done(OPERATOR, "/api/upstreams/none/restart", "{}")
        .await;
    // What is asked for in a wrong manner is asked for all the same.
    let restart = "/api/upstreams/notes/restart";
    plane.done(OPERATOR, restart, "[]").await;
    plane.done(OPERATOR, &format!("{restart}?x=1"), "{}").await;
    let bearer = format!("Bearer {OPERATOR}");
    let no_json = [("authorization", bearer.as_str())];
    plane.raw(Method::POST, restart, &no_json, "{}").await;
    plane.seen("wrong", "/api/status").await;
    let told = eventually("the records", async || {
        let told = plane.get("/api/audit?event=administration").await;
        (told["items"].as_array().unwrap().len() == 6).then_some(told)
    })
    .await;
    let kept: Vec<_> = told["items"]
        .as_array()
        .unwrap()
        .iter()
        .rev()
        .map(|item| {
            let detail = &item["record"]["detail"];
            let text = |name: &str| detail[name].as_str().unwrap_or("").to_owned();
            ["operation", "by", "subject", "outcome", "reason"].map(text)
        })
        .collect();
    assert_eq!(
        kept[0],
        [
            "disable_upstream",
            "auditor",
            "notes",
            "refused",
            "role_required"
        ]
    );
    assert_eq!(kept[1], ["restart_upstream", "operator", "notes", "ok", ""]);
    assert_eq!(
        kept[2],
        [
            "restart_upstream",
            "operator",
            "none",
            "refused",
            "not_found"
        ]
    );
    for (kept, reason) in kept[3..]
        .iter()
        .zip(["bad_body", "bad_parameter", "not_json"])
    {
        let expected = ["restart_upstream", "operator", "notes", "refused", reason];
        assert_eq!(kept, &expected);
    }
    let kept_out = eventually("the record", async || {
        let told = plane.get("/api/audit?event=authentication").await;
        told["items"].get(0).cloned()
    })
    .await;
    let detail = &kept_out["record"]["detail"];
    assert_eq!(detail["reasons"], json!(["credential_invalid"]));
    assert_eq!(detail["address"], "127.0.0.1");
}

#[tokio::test]
async fn a_change_is_done_to_its_end_and_recorded_though_whoever_wanted_it_has_left() {
    let records = tempfile::tempdir().unwrap();
    let notes = Upstream::http(MODERN).tools([tool("t")]);
    let audit = format!("audit: {{ dir: '{}' }}", records.path().display());
    let plane = plane(Gateway::of().upstream("notes", &notes).setting(&audit)).await;
    let text = format!("{audit}\nupstreams: {{ notes: {{ {} }} }}\n", notes.place());
    let (begun, begins) = std::sync::mpsc::channel();
    let (opened, gate) = std::sync::mpsc::channel::<()>();
    let gate = Mutex::new((begun, gate));
    plane.gateway.app.reloads_from(Arc::new(move || {
        let held = gate.lock().unwrap();
        held.0.send(()).unwrap();
        held.1.recv().unwrap();
        config::of_text(&text)
    }));
    let mut client = TcpStream::connect(plane.address).await.unwrap();
    let request = format!(
        "POST /reload HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {OPERATOR}\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{{}}",
        plane.address
    );
    client.write_all(request.as_bytes()).await.unwrap();
    eventually("it is read again", async || begins.try_recv().ok()).await;
    client.shutdown().await.unwrap();
    let mut rest = Vec::new();
    client.read_to_end(&mut rest).await.unwrap();
    assert!(rest.is_empty(), "nobody waits for an answer any more");
    opened.send(()).unwrap();
    for event in ["configuration", "administration"] {
        let told = eventually(event, async || {
            let told = plane.get(&format!("/api/audit?event={event}")).await;
            told["items"].get(0).cloned()
        })
        .await;
        assert_eq!(told["record"]["detail"]["outcome"], "ok", "{told:#}");
    }
}

#[tokio::test]
async fn calls_are_told_as_they_end_and_who_is_too_slow_is_told_how_many_were_missed() {
    let notes = Upstream::http(MODERN).tools([tool("t")]);
    let plane = plane(Gateway::of().upstream("notes", &notes)).await;
    let call = |millis: u64| CallSeen {
        time: SystemTime::UNIX_EPOCH + Duration::from_millis(1_500),
        method: "tools/call".to_owned(),
        target: Some("notes_t".to_owned()),
        upstream: None,
        principal: "ana".to_owned(),
        outcome: "ok",
        millis,
    };
    let feed = plane.gateway.app.feed().clone();
    let mut followed = follow(&plane, "/api/calls/follow").await;
    eventually("somebody looks", async || feed.is_watched().then_some(())).await;
    feed.note(call(7));
    let event = followed.message().await;
    assert_eq!(event.name, "call");
    let told = parse(&event.data);
    assert_eq!(
        (&told["time"], &told["millis"]),
        (&json!("1970-01-01T00:00:01.500Z"), &json!(7))
    );
    assert_eq!(
        (&told["upstream"], &told["outcome"]),
        (&json!(null), &json!("ok"))
    );
    // Nothing runs in between: whoever looks cannot keep up.
    for millis in 0..HELD as u64 * 2 {
        feed.note(call(millis));
    }
    let missed = loop {
        let event = followed.message().await;
        if event.name == "missed" {
            break parse(&event.data)["missed"].as_u64().unwrap();
        }
    };
    assert!(missed > 0);
    drop(followed);
    eventually("nobody looks", async || (!feed.is_watched()).then_some(())).await;
}

pairings! {
    async fn a_call_is_seen_by_whoever_looks_when_it_ends(pair: Pairing) {
        let notes = pair.upstream().tools([tool("t")]);
        let plane = plane(Gateway::of().upstream("notes", &notes).setting("audit: off")).await;
        let client = pair.client(&plane.gateway).await;
        let mut followed = follow(&plane, "/api/calls/follow").await;
        let feed = plane.gateway.app.feed().clone();
        eventually("somebody looks", async || feed.is_watched().then_some(())).await;
        client.call("notes_t", "{}").await;
        client.call("notes_none", "{}").await;
        let mut told = Vec::new();
        while told.len() < 2 {
            let call = parse(&followed.message().await.data);
            if call["method"] == "tools/call" {
                told.push(call);
            }
        }
        assert_eq!((&told[0]["target"], &told[0]["upstream"]), (&json!("notes_t"), &json!("notes")));
        assert_eq!((&told[0]["outcome"], &told[0]["principal"]), (&json!("ok"), &json!("anonymous")));
        assert_eq!((&told[1]["outcome"], &told[1]["upstream"]), (&json!("denied"), &json!(null)));
    }
}

#[tokio::test]
async fn who_leaves_in_the_midst_of_a_search_keeps_nobody_else_from_searching() {
    let records = tempfile::tempdir().unwrap();
    let notes = Upstream::http(MODERN).tools([tool("t")]);
    let audit = format!("audit: {{ dir: '{}' }}", records.path().display());
    let plane = plane(Gateway::of().upstream("notes", &notes).setting(&audit)).await;
    // A segment before all others that takes very long to read: a hole, which takes no room.
    let before = records.path().join(format!("{:020}-0000.jsonl", 0));
    let hole = std::fs::File::create(before).unwrap();
    hole.set_len(1 << 38).unwrap();
    let search = async || {
        let mut client = TcpStream::connect(plane.address).await.unwrap();
        let request = format!(
            "GET /api/audit?name=nowhere HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {AUDITOR}\r\n\r\n",
            plane.address
        );
        client.write_all(request.as_bytes()).await.unwrap();
        client
    };
    let mut searching = Vec::new();
    let refused = async {
        loop {
            searching.push(search().await);
            let answer = plane.seen(AUDITOR, "/api/audit?limit=1").await;
            if answer.status == 503 {
                break answer;
            }
        }
    };
    let refused = within(PATIENCE, "there are too many", refused).await;
    assert_eq!(problem(&refused), (503, "overloaded".into()));
    assert_eq!(refused.headers["retry-after"], "5");
    assert!(refused.body.contains("try again"), "{}", refused.body);
    // Operators have seats of their own.
    let found = plane.get("/api/audit?limit=1").await;
    assert_eq!(found["items"].as_array().unwrap().len(), 1);
    drop(searching);
    eventually("they may search again", async || {
        let answer = plane.seen(AUDITOR, "/api/audit?limit=1").await;
        (answer.status == 200).then_some(())
    })
    .await;
}
