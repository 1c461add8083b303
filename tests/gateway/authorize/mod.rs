//! Who may do what, as clients see it (SECURITY 5.4, PRODUCT 9).
//! Lists and calls under policies, what is hidden, what changes, what a person must agree to.

mod approvals;
mod asking_back;
mod changing;
mod denied;
mod hidden;
mod lists;
mod recorded;
mod triples;

use crate::harness::{Gateway, Revision, Upstream, resource, template, tool};

const MODERN: Revision = Revision::V2026_07_28;
const LEGACY: Revision = Revision::V2025_11_25;

/// Ana may use everything of `notes`, bob what is named `b`.
const ANA_AND_BOB: &str = r#"
@id("ana") permit(principal == User::"ana", action, resource in Upstream::"notes");
@id("bob tools") permit(principal == User::"bob", action, resource == Tool::"notes_b");
@id("bob prompts") permit(principal == User::"bob", action, resource == Prompt::"notes_b");
@id("bob resources") permit(principal == User::"bob", action, resource is Resource)
    when { resource.uri like "note://b*" };
"#;

/// A server with two of each.
fn notes(revision: Revision) -> Upstream {
    Upstream::http(revision)
        .telling()
        .tools([tool("a"), tool("b")])
        .prompts(&["a", "b"])
        .resources([resource("note://a"), resource("note://b")])
        .templates([template("note://a/{x}"), template("note://b/{x}")])
        .instructions("how to take notes")
}

/// That server behind a gateway under these policies.
async fn governed(notes: &Upstream, cedar: &str) -> Gateway {
    let gateway = Gateway::of()
        .upstream("notes", notes)
        .policies(cedar)
        .start()
        .await;
    assert_eq!(gateway.app.policy_problems(), []);
    gateway
}
