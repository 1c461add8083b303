//! What becomes of a grant: renewed once for all who need it, ended when its server says so, taken back, kept over restarts.

use std::{fs, path::Path};

use futures_util::future::join_all;

use super::{Browser, LoginServer, MODERN, Pairing, URLS, asked, gateway, github, words};
use crate::harness::{Client, Gateway, PATIENCE, Play, Upstream, eventually, text_result, within};

/// Logs in with a client of everything.
async fn logged_in(gateway: &Gateway) -> Client {
    let client = gateway.client_able(MODERN, URLS).await;
    let (link, _) = asked(&client.call("github_t", "{}").await);
    let done = Browser::default().log_in(&link).await;
    assert_eq!(done.status, 200, "{}", done.body);
    client
}

fn refreshes(server: &LoginServer) -> usize {
    let told = server.told("/token");
    let is_refresh =
        |form: &std::collections::HashMap<String, String>| form["grant_type"] == "refresh_token";
    told.iter().filter(|told| is_refresh(&told.form)).count()
}

#[tokio::test]
async fn a_token_that_ends_is_renewed_once_however_many_need_it() {
    let (server, github) = (LoginServer::start(), github(MODERN));
    // In its last half minute from the start.
    server.manners(|manners| manners.life = Some(20));
    let gateway = gateway(&github, &server).start().await;
    let client = logged_in(&gateway).await;
    server.manners(|manners| manners.life = Some(3_600));
    let calls = (0..20).map(|_| async { client.call("github_t", "{}").await.text() });
    for text in join_all(calls).await {
        assert_eq!(text, format!("Bearer {}", server.tokens()[1]));
    }
    assert_eq!(refreshes(&server), 1);
    let refresh = server.told("/token").pop().unwrap();
    assert!(refresh.form["resource"].ends_with("/mcp"), "{refresh:?}");
}

pairings! {
    only [modern_server = MODERN_MODERN, legacy_server = MODERN_LEGACY]
        because "what an upstream refuses does not depend on the client";
    /// A token that the upstream takes no more is renewed, and the call made again; one that cannot be renewed has somebody log
    /// in again.
    async fn a_refused_token_is_replaced_or_asked_for_again(pair: Pairing) {
        let server = LoginServer::start();
        let github = github(pair.upstream);
        let gateway = gateway(&github, &server).start().await;
        let client = logged_in(&gateway).await;
        assert!(client.call("github_t", "{}").await.text().ends_with(&server.tokens()[0]));
        takes_only_later_ones(&github, &server);
        let text = client.call("github_t", "{}").await.text();
        assert_eq!(text, format!("Bearer {}", server.tokens()[1]));
        assert_eq!(refreshes(&server), 1);
        server.forget();
        takes_only_later_ones(&github, &server);
        let (link, _) = asked(&client.call("github_t", "{}").await);
        assert_eq!(Browser::default().log_in(&link).await.status, 200);
        let text = client.call("github_t", "{}").await.text();
        assert_eq!(text, format!("Bearer {}", server.tokens()[2]));
    }
}

/// The upstream takes none of the tokens that were given so far.
pub(super) fn takes_only_later_ones(github: &Upstream, server: &LoginServer) {
    let old: Vec<_> = server.tokens();
    github.now_on("tools/call", move |heard| {
        let token = heard.header("authorization").unwrap_or_default();
        let token = token.strip_prefix("Bearer ").unwrap_or_default();
        if token.is_empty() || old.iter().any(|old| old == token) {
            Play::Status(401)
        } else {
            Play::Result(text_result(&format!("Bearer {token}")))
        }
    });
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_ends_no_connection() {
    let (server, github) = (LoginServer::start(), github(MODERN));
    server.manners(|manners| manners.life = Some(20));
    let gateway = gateway(&github, &server).start().await;
    let client = logged_in(&gateway).await;
    server.manners(|manners| manners.token_error = Some((503, "temporarily_unavailable")));
    let told = client.call("github_t", "{}").await;
    assert_eq!(told.tool_error(), "upstream_unavailable");
    let said = told.value();
    let pause =
        "the login server of `github` does not answer now, so nothing was done; try again in 2 s";
    assert_eq!(words(&said), pause);
    assert_eq!(said["_meta"]["dev.usher/retryAfterMs"], 2_000);
    assert!(!told.body.contains("LEAK"), "{}", told.body);
    server.manners(|manners| manners.token_error = None);
    // Nobody is asked to log in meanwhile.
    eventually("it is renewed", async || {
        let told = client.call("github_t", "{}").await.value();
        assert_ne!(told["resultType"], "input_required", "{told}");
        words(&told).starts_with("Bearer").then_some(())
    })
    .await;
}

// SECURITY REL-2
#[tokio::test]
async fn whoever_waits_for_a_renewal_is_answered_in_time_and_it_goes_on_once_for_all() {
    let (server, github) = (LoginServer::start(), github(MODERN));
    server.manners(|manners| manners.life = Some(20));
    let brief = format!("{}, timeout: {{ call: 1s, list: 1s }}", server.auth());
    let gateway = Gateway::of().upstream_with("github", &github, &brief);
    let gateway = gateway.start().await;
    let client = logged_in(&gateway).await;
    server.manners(|manners| manners.life = Some(3_600));
    server.hold(Some("/token"));
    let calls = (0..3).map(|_| async { client.call("github_t", "{}").await.tool_error() });
    let told = within(PATIENCE, "three answers", join_all(calls)).await;
    assert_eq!(told, ["upstream_timeout"; 3]);
    assert_eq!(refreshes(&server), 1);
    server.hold(None);
    // Under load one second may be too short for an answer that nobody holds back.
    let text = eventually("it is renewed", async || {
        let told = client.call("github_t", "{}").await;
        told.value()["isError"].is_null().then(|| told.text())
    })
    .await;
    assert_eq!(text, format!("Bearer {}", server.tokens()[1]));
    assert_eq!(refreshes(&server), 1, "what was begun was seen through");
}

/// A gateway with a store in this directory.
async fn stored(github: &Upstream, server: &LoginServer, directory: &Path) -> Gateway {
    let key = directory.join("key");
    if !key.exists() {
        fs::write(&key, "0123456789abcdef0123456789abcdef").unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        fs::set_permissions(&key, mode).unwrap();
    }
    let (store, key) = (directory.join("store"), key.display().to_string());
    gateway(github, server)
        .setting(&format!(
            "connections: {{ store: \"{}\", keys: [\"${{file:{key}}}\"] }}",
            store.display()
        ))
        .start()
        .await
}

#[tokio::test]
async fn a_connection_outlives_the_gateway_and_ends_within_a_second_of_being_revoked() {
    let directory = tempfile::tempdir().unwrap();
    let (server, github) = (LoginServer::start(), github(MODERN));
    let first = stored(&github, &server, directory.path()).await;
    logged_in(&first).await;
    first.app.clone().shutdown().await;
    let second = stored(&github, &server, directory.path()).await;
    let client = second.client_able(MODERN, URLS).await;
    let text = client.call("github_t", "{}").await.text();
    assert_eq!(text, format!("Bearer {}", server.tokens()[0]));
    // Nothing that was given lies there to be read.
    let mut files = 0;
    for entry in fs::read_dir(directory.path().join("store")).unwrap() {
        let text = String::from_utf8(fs::read(entry.unwrap().path()).unwrap()).unwrap();
        for marker in ["ACCESS", "REFRESH", "anonymous", "github"] {
            assert!(!text.contains(marker), "{marker} in {text}");
        }
        files += usize::from(!text.is_empty());
    }
    assert_eq!(files, 1);
    // As `usher connections revoke` does, beside the running gateway.
    let removed = fs::read_dir(directory.path().join("store"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|ending| ending == "sealed"));
    fs::remove_file(removed.unwrap()).unwrap();
    eventually("the connection has ended", async || {
        let told = client.call("github_t", "{}").await;
        (told.value()["resultType"] == "input_required").then_some(())
    })
    .await;
}

/// What was given is taken back at the server that gave it, by a command as by a gateway; and where it is not, that is said.
#[tokio::test]
async fn a_command_that_revokes_has_the_server_take_the_tokens_back_or_says_that_it_does_not() {
    let directory = tempfile::tempdir().unwrap();
    let (server, github) = (LoginServer::start(), github(MODERN));
    // Whoever registered there themselves is known by the address that they gave.
    let auth = format!(
        "auth: {{ authorization_code: {{ issuer: \"{}\" }} }}",
        server.issuer()
    );
    let key = directory.path().join("key");
    fs::write(&key, "0123456789abcdef0123456789abcdef").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    fs::set_permissions(&key, mode).unwrap();
    let connections = format!(
        "connections: {{ store: \"{}\", keys: [\"${{file:{}}}\"] }}",
        directory.path().join("store").display(),
        key.display()
    );
    let gateway = Gateway::of()
        .upstream_with("github", &github, &auth)
        .setting(&connections)
        .start()
        .await;
    logged_in(&gateway).await;
    let file = directory.path().join("usher.yaml");
    let revoke = async |address: &str| {
        let text = format!(
            "listen: {{ address: \"{address}\" }}\n{connections}\nupstreams: {{ github: {{ {}, {auth} }} }}\n",
            github.place()
        );
        fs::write(&file, text).unwrap();
        let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_usher"));
        command
            .args(["connections", "revoke", "github", "--all", "-c"])
            .arg(&file)
            .kill_on_drop(true);
        let ended = within(PATIENCE, "the command ends", command.output()).await;
        let ended = ended.unwrap();
        let said = String::from_utf8(ended.stderr).unwrap();
        assert!(ended.status.success(), "{said}");
        assert!(said.contains("1 connection revoked"), "{said}");
        said
    };
    let said = revoke(&gateway.address.to_string()).await;
    assert!(!said.contains("does not know"), "{said}");
    let told = server.told("/revoke");
    assert_eq!(told.len(), 1);
    assert!(told[0].form["token"].starts_with("REFRESH-"), "{told:?}");

    let client = gateway.client_able(MODERN, URLS).await;
    let link = eventually("the connection has ended", async || {
        let told = client.call("github_t", "{}").await;
        (told.value()["resultType"] == "input_required").then(|| asked(&told).0)
    })
    .await;
    assert_eq!(Browser::default().log_in(&link).await.status, 200);
    let said = revoke("127.0.0.1:1").await;
    assert!(said.contains("does not know that"), "{said}");
    assert_eq!(server.told("/revoke").len(), 1);
}
