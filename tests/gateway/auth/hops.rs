//! No credential of a client crosses the gateway (SECURITY EGR-1), whatever hop it came by.

use base64::Engine as _;

use super::before;
use crate::harness::{Authority, Client, Revision, Upstream, resource, tool};

/// A word in the token that is nowhere else.
const MARK: &str = "planted-marker-7f3a";

/// What text may hold a credential as: itself, base64, hexadecimal, percent-coded.
fn spellings(credential: &str) -> Vec<String> {
    let base64 = base64::engine::general_purpose::STANDARD_NO_PAD.encode(credential);
    let hex: String = credential
        .bytes()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let percent: String = credential
        .bytes()
        .map(|byte| format!("%{byte:02X}"))
        .collect();
    vec![credential.to_owned(), base64, hex, percent]
}

#[tokio::test]
async fn egr_1_no_credential_of_a_client_reaches_an_upstream_in_any_revision() {
    let authority = Authority::start().await;
    for upstream in [Revision::V2026_07_28, Revision::V2025_11_25] {
        let notes = Upstream::http(upstream)
            .tools([tool("t")])
            .resources([resource("note://1")]);
        let gateway = before(&notes, &authority, |_| {}).await;
        for revision in Revision::ALL {
            let token = authority.token("ana", &format!(r#","jti":"{MARK}""#));
            let headers = [
                ("authorization", format!("Bearer {token}")),
                ("cookie", format!("theme={MARK}")),
                ("proxy-authorization", format!("Basic {MARK}")),
                ("x-forwarded-authorization", MARK.to_owned()),
                ("x-anything", MARK.to_owned()),
            ];
            let client = Client::connect_with(gateway.address, "/mcp", revision, "{}", &headers);
            let client = client.await.unwrap();
            assert_eq!(client.call("notes_t", "{}").await.text(), "called t");
            client.all("resources/list", "uri").await;
            let signature = token.rsplit_once('.').unwrap().1;
            for method in [
                "initialize",
                "server/discover",
                "tools/list",
                "tools/call",
                "resources/list",
                "notifications/initialized",
            ] {
                for heard in notes.heard(method) {
                    let all = format!("{:?} {}", heard.headers, heard.params);
                    for credential in [MARK, token.as_str(), signature] {
                        for spelling in spellings(credential) {
                            assert!(!all.contains(&spelling), "{revision} {method}: {all}");
                        }
                    }
                    assert!(!heard.headers.contains_key("authorization"), "{method}");
                }
            }
        }
        assert!(notes.heard("tools/call").len() >= Revision::ALL.len());
    }
}
