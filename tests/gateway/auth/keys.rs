//! API keys, by the file that `usher keys` writes (SECURITY AUTHN-9).

use std::{fs, path::Path};

use secrecy::ExposeSecret as _;
use tempfile::TempDir;
use usher::auth::{
    keys::{KeyFile, KeyWish, create},
    spec::KeysSpec,
};

use super::{call, call_with, challenge};
use crate::harness::{Authority, Gateway, Revision, Upstream, eventually, now, resource, tool};

const SECRET: &str = "an example of a secret of more than thirty-two bytes";

/// A key of this name in the file; its text.
fn make(file: &Path, name: &str, expires: Option<u64>) -> String {
    let mut keys = fs::read(file).map_or_else(
        |_| KeyFile::default(),
        |text| KeyFile::parse(&text).unwrap(),
    );
    let wish = KeyWish {
        name: name.into(),
        owner: "ana".into(),
        expires,
        ..KeyWish::default()
    };
    let key = create(wish, &SECRET.into(), now());
    keys.keys.push(key.record);
    fs::write(file, keys.text()).unwrap();
    key.text.expose_secret().to_owned()
}

async fn scene(directory: &TempDir) -> (Upstream, Gateway) {
    let notes = Upstream::http(Revision::V2026_07_28)
        .tools([tool("t")])
        .resources([resource("note://1")])
        .telling();
    let mut spec = Authority::start().await.spec();
    spec.issuers.clear();
    spec.keys = Some(KeysSpec {
        file: directory.path().join("keys.json"),
        secret: SECRET.into(),
    });
    let gateway = Gateway::of()
        .upstream("notes", &notes)
        .auth(spec)
        .start()
        .await;
    (notes, gateway)
}

// SECURITY AUTHN-9
#[tokio::test]
async fn authn_9_a_key_counts_by_either_header_until_it_expires_and_is_stored_nowhere() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("keys.json");
    let key = make(&file, "ci", None);
    let late = make(&file, "late", Some(now() - 1));
    let (notes, gateway) = scene(&directory).await;
    assert_eq!(call(&gateway, &key).await.text(), "called t");
    assert_eq!(
        call_with(&gateway, &[("x-api-key", key.clone())])
            .await
            .text(),
        "called t"
    );
    let last = if key.ends_with('A') { 'B' } else { 'A' };
    let near = format!("{}{last}", &key[..key.len() - 1]);
    for wrong in [
        late.as_str(),
        near.as_str(),
        "usher_",
        "usher_000000000000_x",
        "",
    ] {
        let answer = call(&gateway, wrong).await;
        assert_eq!(answer.status, 401, "{wrong}");
        assert!(
            !challenge(&answer).contains("resource_metadata"),
            "there is nowhere to sign in"
        );
        assert_eq!(
            call_with(&gateway, &[("x-api-key", wrong.to_owned())])
                .await
                .status,
            401
        );
    }
    assert_eq!(notes.heard("tools/call").len(), 2);
    gateway.app.clone().shutdown().await;
    let secret_part = key.splitn(3, '_').nth(2).unwrap();
    let mut seen = 0;
    for entry in fs::read_dir(directory.path()).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        assert!(!text.contains(secret_part));
        seen += 1;
    }
    assert_eq!(seen, 2, "keys, and when they were used last");
    let used = usher::server::guard::last_used(&file);
    assert!(
        used.values().all(|at| now() - at < 600) && used.len() == 1,
        "{used:?}"
    );
}

// SECURITY AUTHN-5
#[tokio::test]
async fn authn_5_a_key_that_is_revoked_is_refused_and_its_streams_end_and_others_do_not() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("keys.json");
    let (key, other) = (make(&file, "ci", None), make(&file, "other", None));
    let (_notes, gateway) = scene(&directory).await;
    let mine = gateway.client_with(Revision::V2026_07_28, &key).await;
    let others = gateway.client_with(Revision::V2026_07_28, &other).await;
    let mut watch = mine.watch(&["tools"], &[]).await;
    let mut stays = others.watch(&["tools"], &[]).await;
    let mut keys = KeyFile::parse(&fs::read(&file).unwrap()).unwrap();
    keys.keys[0].revoked = Some(now());
    fs::write(&file, keys.text()).unwrap();
    let ended = watch.end().await.expect("a last word");
    assert_eq!(ended["error"]["data"]["reason"], "credential_revoked");
    assert_eq!(call(&gateway, &key).await.status, 401);
    assert_eq!(call(&gateway, &other).await.text(), "called t");
    _notes.offer(0, [tool("t"), tool("u")]);
    _notes.announce("tools").await;
    assert_eq!(stays.change().await.0, "tools/list_changed");
}

#[tokio::test]
async fn a_key_that_is_made_while_the_gateway_runs_counts_and_a_broken_file_changes_nothing() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("keys.json");
    let (_notes, gateway) = scene(&directory).await;
    let key = make(&file, "ci", None);
    eventually("the key is read", || async {
        (call(&gateway, &key).await.status == 200).then_some(())
    })
    .await;
    fs::write(&file, "{").unwrap();
    let second = {
        let other = directory.path().join("other.json");
        make(&other, "second", None)
    };
    for _ in 0..3 {
        assert_eq!(call(&gateway, &key).await.text(), "called t");
        assert_eq!(call(&gateway, &second).await.status, 401);
    }
}
