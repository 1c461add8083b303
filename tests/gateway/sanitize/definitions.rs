//! CAT-4: what a definition says is judged before anybody is offered it.

use super::{RULE, SECRET};
use crate::harness::{Gateway, Revision, Upstream, resource, tool};

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

/// Definitions with a text in each place where one may stand, by what the place is called.
fn everywhere(text: &str) -> Vec<(&'static str, String)> {
    let text = crate::harness::quote(text);
    let tool = |more: &str| format!(r#"{{"name":"bad","inputSchema":{{"type":"object"}},{more}}}"#);
    let of_schema = |inner: &str| {
        format!(
            r#"{{"name":"bad","inputSchema":{{"type":"object","properties":{{"q":{inner}}}}}}}"#
        )
    };
    vec![
        ("/description", tool(&format!(r#""description":{text}"#))),
        ("/title", tool(&format!(r#""title":{text}"#))),
        (
            "/annotations/title",
            tool(&format!(r#""annotations":{{"title":{text}}}"#)),
        ),
        (
            "/_meta/com.example~1note",
            tool(&format!(r#""_meta":{{"com.example/note":{text}}}"#)),
        ),
        (
            "/inputSchema/properties/q/description",
            of_schema(&format!(r#"{{"type":"string","description":{text}}}"#)),
        ),
        (
            "/inputSchema/properties/q/enum/1",
            of_schema(&format!(r#"{{"enum":["a",{text}]}}"#)),
        ),
        (
            "/inputSchema/properties/q/default/0",
            of_schema(&format!(r#"{{"default":[{text}]}}"#)),
        ),
        (
            "/inputSchema/properties/q/examples/0/deep",
            of_schema(&format!(r#"{{"examples":[{{"deep":{text}}}]}}"#)),
        ),
        (
            "/outputSchema/properties/r/const",
            tool(&format!(
                r#""outputSchema":{{"type":"object","properties":{{"r":{{"const":{text}}}}}}}"#
            )),
        ),
    ]
}

/// CAT-4
#[tokio::test]
async fn cat_4_hidden_characters_and_escapes_withhold_a_definition_wherever_they_stand_and_however_it_is_pinned()
 {
    for (text, kind) in [
        ("fine\u{E0041}\u{E0042}", "hidden_unicode"),
        ("fi\u{200B}ne", "hidden_unicode"),
        ("fine\u{1B}[8mhidden", "terminal_control"),
        ("fine\u{9B}8mhidden", "terminal_control"),
    ] {
        for (number, (place, bad)) in everywhere(text).into_iter().enumerate() {
            // Every place once under each, over the four texts.
            let pin = ["watch", "off", "quarantine"][number % 3];
            let state = tempfile::tempdir().unwrap();
            let notes = Upstream::http(Revision::V2026_07_28)
                .instructions(text)
                .tools([tool("good"), bad]);
            let gateway = Gateway::of()
                .setting(&format!("state: {{ dir: {} }}", state.path().display()))
                .upstream_with("notes", &notes, &format!("definitions: {{ pin: {pin} }}"))
                .start()
                .await;
            let client = gateway.client(Revision::V2026_07_28).await;
            assert_eq!(client.tools().await, ["notes_good"], "{pin} {place}");
            let face = client.ask("server/discover", "{}").await;
            assert!(!face.message().contains("fi"), "{face:?}");
            let reports = gateway.reports("notes").join("\n");
            assert!(
                reports.contains(&format!("tools `bad`: holds {kind}")) && reports.contains(place),
                "{place}: {reports}"
            );
            let (_, reason) = client.call("notes_bad", "{}").await.refusal();
            assert_eq!(reason, "unknown_name");
        }
    }
}

/// CAT-4
#[tokio::test]
async fn cat_4_prompts_and_resources_are_judged_like_tools() {
    let text = "fine\u{E0041}";
    let notes = Upstream::http(Revision::V2025_11_25)
        .tools([tool("good")])
        .resources([
            resource("note://good"),
            format!(r#"{{"uri":"note://bad","name":"x","description":"{text}"}}"#),
        ])
        .templates([format!(
            r#"{{"uriTemplate":"memo://{{id}}","name":"{text}"}}"#
        )]);
    notes.offer(
        1,
        [
            r#"{"name":"good"}"#.to_owned(),
            format!(r#"{{"name":"bad","arguments":[{{"name":"a","description":"{text}"}}]}}"#),
        ],
    );
    let gateway = Gateway::of().upstream("notes", &notes).start().await;
    let client = gateway.client(Revision::V2026_07_28).await;
    assert_eq!(client.all("prompts/list", "name").await, ["notes_good"]);
    assert_eq!(
        client.all("resources/list", "uri").await,
        ["notes+note://good"]
    );
    let templates = client.all("resources/templates/list", "uriTemplate").await;
    assert!(templates.is_empty());
    let reports = gateway.reports("notes").join("\n");
    for place in ["/arguments/0/description", "/description", "/name"] {
        assert!(reports.contains(&format!("at `{place}`")), "{reports}");
    }
}
