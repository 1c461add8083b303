//! C11: what people must not be asked, they are not asked.

use crate::harness::{Gateway, Heard, Play, Revision, Upstream, tool};

const ALL: &str = r#"{"elicitation":{"form":{},"url":{}}}"#;

async fn asked(params: &str) -> crate::harness::Answer {
    let question = format!(
        r#"{{"resultType":"input_required","inputRequests":{{"k":{{"method":"elicitation/create","params":{params}}}}},"requestState":"s"}}"#
    );
    let notes = Upstream::http(Revision::V2026_07_28)
        .tools([tool("t")])
        .on("tools/call", move |_: &Heard| {
            Play::Result(question.clone())
        });
    let gateway = Gateway::of().upstream("notes", &notes).start().await;
    let client = gateway.client_able(Revision::V2026_07_28, ALL).await;
    client.call("notes_t", "{}").await
}

#[tokio::test]
async fn nobody_is_sent_to_an_address_that_hides_where_it_leads() {
    let url = |url: &str| {
        format!(r#"{{"mode":"url","elicitationId":"e","message":"Go on","url":"{url}"}}"#)
    };
    for bad in [
        "http://a.example/",
        "https://a.example@b.example/",
        "javascript:x",
    ] {
        assert_eq!(
            asked(&url(bad)).await.tool_error(),
            "content_blocked",
            "{bad}"
        );
    }
    let good = asked(&url("https://a.example/x?token=eyJhbGciOiJIUzI1NiJ9.e30.ZRrHA1JJJW8opsbCGfG_HACGpVUMN_a9IV7pAx_Zmeo")).await.value();
    let params = &good["inputRequests"]["k"]["params"];
    assert!(params["url"].as_str().unwrap().ends_with("_Zmeo"), "{good}");
    assert_eq!(params["message"], "[notes] Go on (a.example)");
}

#[tokio::test]
async fn no_form_asks_for_a_secret() {
    let form = |name: &str| {
        format!(
            r#"{{"message":"Fill in","requestedSchema":{{"type":"object","properties":{{"{name}":{{"type":"string"}}}}}}}}"#
        )
    };
    assert_eq!(
        asked(&form("api_key")).await.tool_error(),
        "content_blocked"
    );
    let fine = asked(&form("city")).await.value();
    assert_eq!(fine["resultType"], "input_required");
}
