//! Servers that refuse a handshake for what it declares, for tests alone.

use std::time::Duration;

use super::{tests::NEWEST, *};
use crate::upstream::{
    asking::Offer,
    scripted::{Play, Scripted, an_address, greeting, result, terms},
};

/// A server that refuses the whole handshake for a mode of a capability, as those of the Java SDK before 2.0.0 do.
#[tokio::test]
async fn a_server_that_balks_at_modes_of_capabilities_is_asked_again_without_them() {
    const PLAIN: &str = r#""elicitation":{},"sampling":{},"roots":{}"#;
    let terms = terms(&an_address());
    let open = async |wire: &Arc<Wire>| {
        let deadline = Instant::now() + Duration::from_secs(5);
        Session::open(wire, NEWEST, Offer::LISTING, &terms, deadline).await
    };
    for (refusal, again) in [
        (Play::Status(400), 1),
        (Play::Error(400, -32700, ""), 1),
        (Play::Error(200, -32603, ""), 1),
        (Play::Error(200, -32602, ""), 1),
        // Which may have been for a moment.
        (Play::Status(500), 2),
        (Play::Error(500, -32603, ""), 2),
    ] {
        let transport = Scripted::new(move |sent| match sent.method.as_str() {
            "initialize" if sent.params.contains(PLAIN) => result(greeting("2025-06-18")),
            "initialize" => refusal.clone(),
            _ => Play::Status(202),
        });
        let wire = Wire::new(Arc::<Scripted>::clone(&transport), true);
        let session = open(&wire).await.unwrap();
        assert!(session.line.offer.json().as_str().contains(PLAIN));
        let first = transport.sent_of("initialize").len();
        assert_eq!(first, 2);
        assert!(open(&wire).await.is_ok());
        let second = transport.sent_of("initialize").len();
        assert_eq!(second - first, again);
    }
    // Refused for something else, it is refused as it was first; and what says that it was is not asked again.
    for (refusal, times) in [
        (Play::Status(400), 2),
        (Play::Error(200, -32602, ""), 2),
        (Play::Error(400, -32000, ""), 1),
        (Play::Error(200, -32601, ""), 1),
        (Play::Error(503, -32603, ""), 1),
        (Play::Status(404), 1),
        (Play::Status(503), 1),
    ] {
        let transport = Scripted::new(move |sent| {
            if sent.params.contains(PLAIN) {
                Play::Error(200, -1, "")
            } else {
                refusal.clone()
            }
        });
        let wire = Wire::new(Arc::<Scripted>::clone(&transport), true);
        let refused = open(&wire).await;
        assert!(!matches!(refused, Err(NotOpened::Refused(_, error)) if error.code == -1));
        assert_eq!(transport.sent().len(), times);
    }
}
