//! Two people at a server that people log in to: what one was shown there the other never sees.
//! See SECURITY STATE-5, PROTOCOL F9, F11.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::SeqCst},
};

use super::*;
use crate::harness::{Authority, Heard};

/// A server that lists nothing without a login, and what it lists says whose token it was read with.
fn private(server: &LoginServer) -> Upstream {
    let tokens = server.teller();
    Upstream::http(MODERN)
        .closed()
        .on("tools/list", move |heard| {
            let tokens = tokens();
            let shown = heard.header("authorization").unwrap_or_default();
            let number = tokens
                .iter()
                .position(|token| shown == format!("Bearer {token}"));
            match number {
                Some(number) => {
                    let own = tool(&format!("of-login-{number}"));
                    Play::Result(format!(r#"{{"tools":[{own}]}}"#))
                }
                None => Play::Status(401),
            }
        })
        .on("tools/call", |heard| match heard.header("authorization") {
            Some(value) => Play::Result(text_result(value)),
            None => Play::Status(401),
        })
}

#[tokio::test]
async fn state_5_what_one_connection_shows_is_nobody_elses() {
    let (server, authority) = (LoginServer::start(), Authority::start().await);
    let github = private(&server);
    let gateway = gateway(&github, &server)
        .auth(authority.spec())
        .start()
        .await;
    let ana = gateway
        .client_with(MODERN, &authority.token("ana", ""))
        .await;
    let ben = gateway
        .client_with(MODERN, &authority.token("ben", ""))
        .await;
    assert_eq!(ana.tools().await, ["github_login"]);
    let log_in = async |client: &Client| {
        let told = client.call("github_login", "{}").await;
        assert_eq!(told.tool_error(), "login_required");
        let link = link_in(words(&told.value()));
        assert_eq!(Browser::default().log_in(&link).await.status, 200);
        let done = client.call("github_login", "{}").await.text();
        assert!(done.starts_with("Logged in to github"), "{done}");
    };
    log_in(&ana).await;
    assert_eq!(ana.tools().await, ["github_of-login-0", "github_login"]);
    // Of that nothing is seen, called or told by Ben, who is asked to log in himself.
    assert_eq!(ben.tools().await, ["github_login"]);
    let refused = ben.call("github_of-login-0", "{}").await;
    assert_eq!(
        refused.refusal(),
        ben.call("github_of-login-9", "{}").await.refusal()
    );
    log_in(&ben).await;
    assert_eq!(ben.tools().await, ["github_of-login-1", "github_login"]);
    assert_eq!(ana.tools().await, ["github_of-login-0", "github_login"]);
    let own = ana.call("github_of-login-0", "{}").await.text();
    assert_eq!(own, format!("Bearer {}", server.tokens()[0]));
}

/// A server that lists and answers nothing without a token, nor with one of the first so many.
fn ending(server: &LoginServer, ended: &Arc<AtomicUsize>) -> Upstream {
    let (tokens, ended) = (server.teller(), Arc::clone(ended));
    let takes = Arc::new(move |heard: &Heard| {
        let shown = heard.header("authorization").unwrap_or_default();
        let tokens = tokens();
        let mut good = tokens.iter().skip(ended.load(SeqCst));
        good.any(|token| shown == format!("Bearer {token}"))
    });
    let lists = Arc::clone(&takes);
    Upstream::http(MODERN)
        .closed()
        .on("tools/list", move |heard| {
            if lists(heard) {
                Play::Result(format!(r#"{{"tools":[{},{}]}}"#, tool("t"), tool("u")))
            } else {
                Play::Status(401)
            }
        })
        .on("tools/call", move |heard| {
            if takes(heard) {
                Play::Result(text_result(heard.header("authorization").unwrap()))
            } else {
                Play::Status(401)
            }
        })
}

pairings! {
    only [modern_client = MODERN_MODERN, legacy_client = LEGACY_MODERN]
        because "who is asked, and how, depends on the client alone";
    /// PRODUCT 7: whose login has ended is asked to log in again by a call, and that goes on when they have, though the server
    /// lists nothing without a login.
    async fn a_call_goes_on_when_its_person_has_logged_in_again(pair: Pairing) {
        let (server, ended) = (LoginServer::start(), Arc::default());
        let github = ending(&server, &ended);
        let gateway = gateway(&github, &server).start().await;
        let first = gateway.client(MODERN).await;
        let link = link_in(words(&first.call("github_login", "{}").await.value()));
        assert_eq!(Browser::default().log_in(&link).await.status, 200);
        let client = gateway.client_able(pair.client, URLS).await;
        // At once: the call waits until what is offered to its caller was read.
        let text = client.call("github_t", "{}").await.text();
        assert_eq!(text, format!("Bearer {}", server.tokens()[0]));

        for again in 1..3 {
            server.forget();
            ended.store(again, SeqCst);
            let mut browser = Browser::default();
            if pair.client_is_modern() {
                let (link, state) = asked(&client.call("github_t", "{}").await);
                assert!(client.tools().await.contains(&"github_t".to_owned()), "listed all the same");
                // It is agreed to before the page is done with.
                let went_on = go_on(&client, &state, Some("accept"));
                let logs_in = async {
                    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
                    browser.log_in(&link).await.status
                };
                let (went_on, status) = tokio::join!(went_on, logs_in);
                assert_eq!(status, 200);
                assert_eq!(went_on.text(), format!("Bearer {}", server.tokens()[again]));
            } else {
                let mut talk = client.call("github_t", "{}").begin().await;
                let (link, asked) = question(&mut talk).await;
                client.reply(&asked, ("result", r#"{"action":"accept"}"#)).await;
                tokio::time::sleep(std::time::Duration::from_millis(300)).await;
                assert_eq!(browser.log_in(&link).await.status, 200);
                drop(talk.hear().await);
                let last = parse(&talk.hear().await);
                assert_eq!(words(&last["result"]), format!("Bearer {}", server.tokens()[again]));
            }
            let text = client.call("github_u", "{}").await.text();
            assert_eq!(text, format!("Bearer {}", server.tokens()[again]));
        }
    }
}
