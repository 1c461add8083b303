//! The only shared code of these tests: scripted upstreams, raw clients, a gateway between them, and the four pairings.
//!
//! Guarantees: everything goes over real sockets and pipes; upstreams note whatever the gateway says wrongly on its hop, and
//! a test in which one noted something fails; waiting has a deadline. Deliberately absent: any code of the gateway's own that
//! reads or writes messages, so that a fault there cannot hide itself.

#[macro_use]
mod pairings;

mod authority;
mod client;
mod events;
mod gateway;
mod json;
mod meter;
mod piped;
mod script;
mod served;
mod stage;
mod talk;
mod telling;
mod turn;
mod upstream;
mod watch;
mod wire;

use std::{future::Future, time::Duration};

use tokio::time::{Instant, timeout};

pub(crate) use authority::{Authority, RESOURCE, now};
pub(crate) use client::{Answer, Client, exchange, open};
pub(crate) use events::{Event, EventStream};
pub(crate) use gateway::{EVERYTHING, Gateway, GatewayBuilder};
pub(crate) use json::{member, members, names, parse, quote};
pub(crate) use meter::{counted, metered, reached};
pub(crate) use pairings::{Pairing, Revision};
pub(crate) use piped::Piped;
pub(crate) use script::{Gate, Heard, Play, call_result, resource, template, text_result, tool};
pub(crate) use served::Served;
pub(crate) use talk::{Says, Talk, again};
pub(crate) use turn::Turn;
pub(crate) use upstream::Upstream;
pub(crate) use watch::Watch;
pub(crate) use wire::MEDDLING;

/// Nothing in these tests takes this long unless it hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(10);

/// Asks again and again until there is an answer; fails, saying `what`, when that takes too long.
pub(crate) async fn eventually<T, F>(what: &str, mut ask: impl FnMut() -> F) -> T
where
    F: Future<Output = Option<T>>,
{
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(Instant::now() < deadline, "never happened: {what}");
        pause().await;
    }
}

/// Waits a moment between two questions of [`eventually`].
async fn pause() {
    tokio::time::sleep(PAUSE).await;
}

/// The outcome of `work`, which must not hang.
pub(crate) async fn within<T>(limit: Duration, what: &str, work: impl Future<Output = T>) -> T {
    timeout(limit, work)
        .await
        .unwrap_or_else(|_| panic!("took more than {limit:?}: {what}"))
}
