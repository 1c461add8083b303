//! Texts that hold several frames, and such as hold none.

use futures_util::{FutureExt, StreamExt};

use super::{
    super::rig::*,
    tests::{ASKED, id, mux},
    *,
};
use crate::{
    jsonrpc::{Notification, Request, Response},
    logged::Logged,
    memory,
};

/// SECURITY EGR-11: nobody waits for an answer that came in a batch which cannot be read.
#[tokio::test]
async fn a_spoiled_batch_fails_every_exchange_that_it_answers_and_no_other() {
    let (mux, mut inbox) = mux();
    let answered: Vec<_> = [1, 2]
        .map(|number| mux.begin(&id(number), Limits::UPSTREAM).unwrap())
        .into();
    let mut other = mux.begin(&id(3), Limits::UPSTREAM).unwrap();
    let spoiled = r#"{"jsonrpc":"2.0","id":2,"result":7}"#;
    let asked = r#"{"jsonrpc":"2.0","id":3,"method":"roots/list"}"#;
    let batch = format!("[{},{spoiled},{asked},{}]", result(1, 1), result(9, 1));
    inbox.take(batch.into()).await.unwrap();
    for exchange in answered {
        let told = Mux::answer(exchange).now_or_never().expect("told at once");
        assert!(matches!(told, Err(UpstreamError::Protocol(_))));
    }
    assert!(other.next().now_or_never().is_none());
}

#[tokio::test]
async fn a_frame_of_a_batch_is_held_to_limits_by_itself_and_keeps_nothing_of_the_others() {
    let (mux, mut inbox) = mux();
    let mut exchanges = [1, 2, 3].map(|number| mux.begin(&id(number), Limits::UPSTREAM).unwrap());
    let values = |id: u64, count: usize| {
        let array = vec!["0"; count].join(",");
        format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"a":[{array}]}}}}"#)
    };
    let most = Limits::UPSTREAM.values;
    let batch = [
        progress(1, 1),
        values(1, most - 10),
        values(2, most - 10),
        values(3, most + 10),
        ASKED.to_owned(),
    ];
    inbox
        .take(format!("[{}]", batch.join(",")).into())
        .await
        .unwrap();
    let mut kept = Vec::new();
    for (exchange, frames, good) in [(0, 2, true), (1, 1, true), (2, 1, false)] {
        for _ in 0..frames {
            let frame = exchanges[exchange].next().await.unwrap();
            assert_eq!(frame.is_ok(), good, "{exchange}");
            kept.extend(frame);
        }
    }
    kept.extend(mux.unsolicited().unwrap().next().await.unwrap());
    assert_eq!(kept.len(), 4);
    for frame in kept {
        let own = match frame {
            Frame::Request(Request { id, .. }) => id.json().clone(),
            Frame::Notification(Notification { params, .. }) => params.unwrap(),
            Frame::Response(Response { body, .. }) => body.unwrap(),
        };
        // What is counted never says so.
        assert!(own.len() > memory::SMALL || own.bytes().is_unique());
    }
}

/// SECURITY AUD-8: it may be a result that was cut off, or a secret.
#[tokio::test]
async fn of_a_text_that_is_no_message_no_word_is_logged() {
    let logged = Logged::all();
    let (_mux, mut inbox) = mux();
    for text in [
        "password=hunter2",
        r#"{"jsonrpc":"2.0","id":9,"result":{"text":"hunter2"#,
        r#"[{"jsonrpc":"2.0","method":"m","params":"hunter2"}]"#,
    ] {
        inbox.take(text.into()).await.unwrap();
    }
    let text = logged.text();
    assert!(
        text.contains("a text of 16 bytes that is no message: not JSON at byte 0"),
        "{text}"
    );
    assert_eq!(text.matches("no message").count(), 3, "{text}");
    assert!(!text.contains("hunter2"), "{text}");
}
