//! Who calls: what is let in, what is refused and how, and that nothing of one somebody is another's.
//! See SECURITY AUTHN-1 to AUTHN-9, PROTOCOL F.

mod certificates;
mod hijack;
mod hops;
mod keys;
mod providers;
mod proxies;
mod refusals;
mod step_up;
mod streams;
mod two;

use http::Method;
use usher::auth::spec::AuthSpec;

use crate::harness::{
    Answer, Authority, Client, Gateway, Revision, Upstream, exchange, resource, tool,
};

/// An upstream, an authority, and a gateway that asks for the authority's tokens.
async fn scene() -> (Upstream, Authority, Gateway) {
    scene_with(|_| {}).await
}

async fn scene_with(alter: impl FnOnce(&mut AuthSpec)) -> (Upstream, Authority, Gateway) {
    let notes = Upstream::http(Revision::V2026_07_28)
        .tools([tool("t")])
        .resources([resource("note://1")])
        .telling();
    let authority = Authority::start().await;
    let gateway = before(&notes, &authority, alter).await;
    (notes, authority, gateway)
}

async fn before(
    notes: &Upstream,
    authority: &Authority,
    alter: impl FnOnce(&mut AuthSpec),
) -> Gateway {
    let mut spec = authority.spec();
    alter(&mut spec);
    Gateway::of()
        .setting("listen: { legacy_sse: true }")
        .toolset("one", "upstreams: [notes]")
        .upstream("notes", notes)
        .auth(spec)
        .start()
        .await
}

/// One call of the stateless era with these headers.
async fn call_with(gateway: &Gateway, headers: &[(&'static str, String)]) -> Answer {
    call_at(gateway, "/mcp", headers).await
}

async fn call_at(gateway: &Gateway, path: &str, headers: &[(&'static str, String)]) -> Answer {
    let revision = Revision::V2026_07_28;
    let client = Client::connect_with(gateway.address, path, revision, "{}", headers).await;
    client.unwrap().call("notes_t", "{}").await
}

/// One call with this bearer token.
async fn call(gateway: &Gateway, token: &str) -> Answer {
    call_with(gateway, &[("authorization", format!("Bearer {token}"))]).await
}

async fn get(gateway: &Gateway, path: &str) -> Answer {
    exchange(gateway.address, Method::GET, path, &[], b"").await
}

/// The challenge of a refusal.
fn challenge(answer: &Answer) -> &str {
    answer.headers["www-authenticate"].to_str().unwrap()
}
