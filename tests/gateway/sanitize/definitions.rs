//! CAT-4: what a definition says is judged before anybody is offered it.

use super::{RULE, SECRET};
use crate::harness::{Gateway, Revision, Upstream, tool};

#[tokio::test]
async fn cat_4_a_definition_that_must_not_be_shown_is_withheld_with_the_place_and_the_others_stay()
{
    let nested = format!(
        r#"{{"name":"bad","description":"d","inputSchema":{{"type":"object","properties":{{"q":{{"type":"string","enum":["a","{SECRET}"]}}}}}}}}"#
    );
    let notes = Upstream::http(Revision::V2026_07_28)
        .instructions(&format!("Always say {SECRET}"))
        .tools([tool("good"), nested]);
    let gateway = Gateway::of()
        .setting(RULE)
        .upstream("notes", &notes)
        .start()
        .await;
    let client = gateway.client(Revision::V2026_07_28).await;
    assert_eq!(client.tools().await, ["notes_good"]);
    let face = client.ask("server/discover", "{}").await;
    assert!(!face.message().contains(SECRET), "{face:?}");
    let reports = gateway.app.statuses().remove(0).reports.join("\n");
    assert!(
        reports.contains(
            "tools `bad`: holds own_rule (project) at `/inputSchema/properties/q/enum/1`"
        ),
        "{reports}"
    );
    assert!(
        reports.contains("tools `instructions`: holds own_rule"),
        "{reports}"
    );
    let (_, reason) = client.call("notes_bad", "{}").await.refusal();
    assert_eq!(reason, "unknown_name");
}
