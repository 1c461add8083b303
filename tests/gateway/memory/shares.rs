//! Whoever holds much leaves room for others.

use std::{fs, os::unix::fs::PermissionsExt as _};

use secrecy::ExposeSecret as _;
use tempfile::TempDir;
use usher::auth::keys::{KeyFile, KeyWish, create};

use super::{BIG, Scene, Unread, notes, sees_tools};
use crate::{
    harness::{Client, Revision, eventually, now},
    splicing::UNSEEN,
};

const SECRET: &str = "an example of a secret of more than thirty-two bytes";

#[tokio::test]
async fn rel_3_who_has_a_share_already_is_refused_more_once_half_is_held_and_others_are_not() {
    let home = TempDir::new().unwrap();
    let mut file = KeyFile::default();
    let keys = ["one", "other", "third"].map(|name| {
        let wish = KeyWish {
            name: name.into(),
            owner: "ana".into(),
            ..KeyWish::default()
        };
        let key = create(wish, &SECRET.into(), now());
        file.keys.push(key.record);
        key.text.expose_secret().to_owned()
    });
    fs::write(home.path().join("keys.json"), file.text()).unwrap();
    let secret = home.path().join("secret");
    fs::write(&secret, SECRET).unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(
        home.path().join("all.cedar"),
        "permit (principal, action, resource);",
    )
    .unwrap();
    let notes = notes();
    let directory = home.path().display();
    let scene = Scene::of(
        &notes,
        "write_stall: 2m",
        &format!(
            "audit: off\npolicy: {{ dir: '{directory}' }}\nauth: {{ keys: {{ file: '{directory}/keys.json', secret: '${{file:{directory}/secret}}' }} }}\n{UNSEEN}"
        ),
    )
    .await;
    let mut clients = Vec::new();
    for key in keys {
        let own = [("authorization", format!("Bearer {key}"))];
        let revision = Revision::V2026_07_28;
        let client = Client::connect_with(scene.served.address, "/mcp", revision, "{}", &own);
        clients.push(client.await.unwrap());
    }
    let [one, other, third] = &clients[..] else {
        panic!()
    };
    sees_tools(one).await;
    let first = Unread::of(one).await;
    assert!(first.is_big(), "a message alone may be larger than a share");
    let told = Unread::of(one).await.read().await;
    assert!(told.contains(r#""overloaded""#), "{told}");
    assert_eq!(one.call("notes_t", "{}").await.text(), "called t");
    let theirs = Unread::of(other).await;
    assert!(theirs.is_big());
    // More than half is held: who has a share begins nothing, and whoever has none goes on.
    let large = format!(r#"{{"note":"{}"}}"#, "x".repeat(100_000));
    for arguments in ["{}", &large] {
        let heard = notes.heard("tools/call").len();
        for client in [one, other] {
            let refused = client.call("notes_t", arguments).await;
            let status = (refused.status, refused.refusal().1);
            assert_eq!(status, (503, "overloaded".to_owned()));
            assert!(refused.headers.contains_key("retry-after"));
        }
        assert_eq!(notes.heard("tools/call").len(), heard);
        assert_eq!(third.call("notes_t", arguments).await.text(), "called t");
    }
    assert_eq!(first.read().await.len() >> 20, BIG >> 20);
    eventually("there is room again", async || {
        let answer = one.call("notes_big", "{}").await;
        (answer.status == 200 && answer.text().len() == BIG).then_some(())
    })
    .await;
}
