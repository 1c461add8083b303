//! Tests: what a server says of itself to principals, and whether calls go by it (PROTOCOL C4).

use tokio::time::advance;

use super::{tests::over_http, *};
use crate::upstream::scripted::{Sent, result};

/// What is believed after somebody's own lists were read.
async fn believed(peer: &Modern) -> Option<Arc<str>> {
    let who = Identity::anonymous();
    let lists = &peer.line.terms.lists;
    peer.offer_to(&who, lists).await.unwrap();
    peer.card_cache.card().instructions.clone()
}

#[tokio::test(start_paused = true)]
async fn calls_go_by_what_it_says_to_principals_where_that_is_old_and_nobody_else_asks() {
    for (watched, later) in [(false, "now"), (true, "do")] {
        let (_transport, peer) = over_http(|sent: &Sent| match sent.method.as_str() {
            methods::DISCOVER => result(r#"{"capabilities":{},"instructions":"now"}"#),
            _ => result("{}"),
        });
        let mut watch = peer.watch();
        if watched {
            assert!(futures_util::poll!(watch.as_mut()).is_pending());
        }
        assert_eq!(believed(&peer).await.as_deref(), Some("do"));
        advance(peer.line.terms.poll).await;
        assert_eq!(believed(&peer).await.as_deref(), Some(later));
    }
}
