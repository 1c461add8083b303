//! Do lanes help? The same work on one lane, and on two at once, each with calls of its own.
//!
//! Budget: on two processors with nothing else to do, two lanes answer at least 1.8 times as many lists as one. What two lanes both
//! write, be it no more than a count of holders, is what keeps them from it.
//!
//! Measured on 2026-11-23, two shared processors, 35 rounds each, medians: of lists 1.78 times as many (3.3 µs on each of two
//! lanes), and 1.64 (3.6 µs) before each lane counted its own holders; of calls 1.77 and 1.79. Rounds differ by a fifth.
#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "what is put together here is well-formed, and told to whoever runs it"
)]

#[path = "gateway/mod.rs"]
mod gateway;

use std::{hint::black_box, sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::{sync::mpsc, time::Instant};
use usher::tasks::{Lanes, Tasks};

use gateway::{Gateway, META, stateless, tool};

/// Calls of each lane in a round, after some that are not counted.
const CALLS: u32 = 60_000;
const ROUNDS: usize = 5;

/// What is asked: the method, the name that goes into a header, and the params before `_meta`.
type Asked = (&'static str, Option<&'static str>, &'static str);

const ALL: [Asked; 2] = [
    ("tools/list", None, ""),
    (
        "tools/call",
        Some("up_tool_1"),
        r#""name":"up_tool_1","arguments":{"query":"q"},"#,
    ),
];

/// How long a call takes on each of so many lanes.
async fn took(gateway: &Arc<Gateway>, lanes: usize, asked: Asked) -> Duration {
    let (method, name, params) = asked;
    let tasks = Tasks::over(Lanes::of(lanes).expect("threads"));
    let (told, mut heard) = mpsc::channel(lanes);
    for _ in 0..lanes {
        let (gateway, told) = (gateway.clone(), told.clone());
        tasks.spread(async move {
            let body = format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params}{META}}}}}"#
            );
            let (headers, body) = (stateless(method, name), Bytes::from(body));
            for _ in 0..CALLS / 20 {
                gateway.ask(&headers, &body).await;
            }
            let began = Instant::now();
            for _ in 0..CALLS {
                black_box(gateway.ask(&headers, &body).await);
            }
            told.send(began.elapsed()).await.expect("somebody hears");
        });
    }
    let mut longest = Duration::ZERO;
    for _ in 0..lanes {
        longest = longest.max(heard.recv().await.expect("a lane's time"));
    }
    tasks.finish().await;
    longest / CALLS
}

#[tokio::main]
async fn main() {
    let gateway = Gateway::new((0..20).map(tool), r#"{"content":[]}"#);
    let gateway = Arc::new(gateway);
    for asked in ALL {
        for _ in 0..ROUNDS {
            let one = took(&gateway, 1, asked).await;
            let two = took(&gateway, 2, asked).await;
            let ratio = 2.0 * one.as_secs_f64() / two.as_secs_f64();
            println!(
                "{}: {one:.2?} on one lane, {two:.2?} on each of two: {ratio:.2} times as many",
                asked.0
            );
        }
    }
}
