//! The audience: one change reaches all of many who listen, and one who does not read holds up nobody (acceptance 4).

use std::time::Duration;

use futures_util::{StreamExt as _, future::join_all, stream};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::Instant,
};

use crate::harness::{
    Gateway, PATIENCE, Revision, Upstream, Watch, eventually, resource, tool, within,
};

/// Sessions with a stream, and as many listens.
const MANY: usize = 1_000;

/// Feature: A thousand sessions and a thousand listens (LM, MM)
#[tokio::test]
async fn one_change_reaches_a_thousand_sessions_and_a_thousand_listens() {
    let notes = Upstream::http(Revision::V2026_07_28)
        .tools([tool("a")])
        .telling();
    let gateway = Gateway::of().upstream("notes", &notes).start().await;
    let open = |revision| {
        let gateway = &gateway;
        stream::iter(0..MANY)
            .map(move |_| async move {
                let client = gateway.client(revision).await;
                let watch = client.watch(&["tools"], &[]).await;
                (client, watch)
            })
            .buffer_unordered(16)
            .collect::<Vec<_>>()
    };
    let mut sessions = open(Revision::V2025_11_25).await;
    let mut listens = open(Revision::V2026_07_28).await;
    let upstream_listens = notes.heard("subscriptions/listen").len();
    assert!(
        upstream_listens < 10,
        "shared, not one each: {upstream_listens}"
    );
    notes.offer(0, [tool("b")]);
    notes.announce("tools").await;
    let began = Instant::now();
    let all = join_all(
        sessions
            .iter_mut()
            .chain(&mut listens)
            .map(|(_, watch)| watch.change()),
    );
    let told = within(PATIENCE, "everybody is told", all).await;
    assert_eq!(told.len(), 2 * MANY);
    assert!(
        told.iter()
            .all(|(method, _)| method == "tools/list_changed")
    );
    assert!(
        began.elapsed() < Duration::from_secs(20),
        "{:?}",
        began.elapsed()
    );
    for (client, _) in [&sessions[0], &listens[0]] {
        assert_eq!(client.tools().await, ["notes_b"]);
    }
}

/// Feature: A reader that does not read (ML, MM)
#[tokio::test]
async fn a_reader_that_does_not_read_is_cut_off_with_its_reason_and_the_others_are_on_time() {
    let one = "note://one";
    let notes = Upstream::http(Revision::V2026_07_28)
        .resources([resource(one)])
        .telling();
    let gateway = Gateway::of()
        .upstream("notes", &notes)
        .setting("bounds: { http: { write_stall: 2m } }")
        .start()
        .await;
    let client = gateway.client(Revision::V2026_07_28).await;
    let mut other = client.watch(&[], &["notes+note://one"]).await;
    // A reader that asks and then looks away.
    let params = r#"{"notifications":{"resourceSubscriptions":["notes+note://one"]}}"#;
    let (body, headers) = client.spelled("subscriptions/listen", params);
    let mut slow = TcpStream::connect(gateway.address).await.unwrap();
    let mut request = format!(
        "POST /mcp HTTP/1.1\r\nhost: 127.0.0.1:{}\r\nconnection: close\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\ncontent-length: {}\r\n",
        gateway.address.port(),
        body.len()
    );
    for (name, value) in &headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    slow.write_all(format!("{request}\r\n{body}").as_bytes())
        .await
        .unwrap();
    let mut said = vec![0; 1_024];
    let read = slow.read(&mut said).await.unwrap();
    assert!(String::from_utf8_lossy(&said[..read]).starts_with("HTTP/1.1 200"));
    // News enough to fill every buffer on the way, and one more after the time that a reader has.
    let tell = async |n: usize, other: &mut Watch| {
        let told = format!("{one}/{n}/{}", "x".repeat(7_000));
        let sent = Instant::now();
        notes.updated(one, &told).await;
        assert!(
            other
                .resource()
                .await
                .starts_with(&format!("notes+{one}/{n}/"))
        );
        assert!(
            sent.elapsed() < Duration::from_secs(10),
            "held up for {:?}",
            sent.elapsed()
        );
    };
    for n in 0..2_000 {
        tell(n, &mut other).await;
    }
    // Time passes; the others hear what there is to hear.
    for n in 2_000..2_005 {
        let began = Instant::now();
        eventually("time has passed", || async {
            (began.elapsed() > Duration::from_secs(8)).then_some(())
        })
        .await;
        tell(n, &mut other).await;
    }
    let mut rest = Vec::new();
    let end = within(
        PATIENCE,
        "the end of the slow stream",
        slow.read_to_end(&mut rest),
    )
    .await;
    assert!(end.is_ok(), "{end:?}");
    let rest = String::from_utf8_lossy(&rest);
    assert!(
        rest.contains("slow_consumer"),
        "…{}",
        &rest[rest.len().saturating_sub(600)..]
    );
}
