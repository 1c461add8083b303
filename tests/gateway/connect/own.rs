//! Two people at a server that people log in to: what one was shown there the other never sees.
//! See SECURITY STATE-5, PROTOCOL F9, F11.

use super::*;
use crate::harness::Authority;

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
