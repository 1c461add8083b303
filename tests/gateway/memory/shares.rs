//! Whoever holds much leaves room for others.

use std::{fs, os::unix::fs::PermissionsExt as _};

use http_body_util::BodyExt as _;
use secrecy::ExposeSecret as _;
use tempfile::TempDir;
use usher::{
    auth::keys::{KeyFile, KeyWish, create},
    tasks::Tasks,
};

use super::{BIG, is_big, notes, refusal, sees_tools, served, unread};
use crate::harness::{Client, Revision, eventually, now};

const SECRET: &str = "an example of a secret of more than thirty-two bytes";

#[tokio::test]
async fn rel_3_who_has_a_share_already_is_refused_more_once_half_is_held_and_others_are_not() {
    let home = TempDir::new().unwrap();
    let directory = home.path().display();
    let mut file = KeyFile::default();
    let keys = ["one", "other"].map(|name| {
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
    let served = served(
        &notes,
        &format!(
            "write_stall: 2m }} }}\naudit: off\npolicy: {{ dir: '{directory}' }}\nauth: {{ keys: {{ file: '{directory}/keys.json', secret: '${{file:{directory}/secret}}' }} }}"
        ),
    )
    .await;
    let mut clients = Vec::new();
    for key in keys {
        let own = [("authorization", format!("Bearer {key}"))];
        let revision = Revision::V2026_07_28;
        let client = Client::connect_with(served.address, "/mcp", revision, "{}", &own);
        clients.push(client.await.unwrap());
    }
    let [one, other] = &clients[..] else { panic!() };
    sees_tools(one).await;
    let tasks = Tasks::new();
    let first = unread(&tasks, one).await;
    assert!(is_big(&first), "a message alone may be larger than a share");
    let second = unread(&tasks, one).await;
    let told = refusal(second).await;
    assert!(told.contains(r#""overloaded""#), "{told}");
    let theirs = unread(&tasks, other).await;
    assert!(is_big(&theirs));
    // So it is with requests.
    let large = format!(r#"{{"note":"{}"}}"#, "x".repeat(100_000));
    let refused = one.call("notes_t", &large).await;
    assert_eq!(
        (refused.status, refused.refusal().1.as_str()),
        (503, "overloaded")
    );
    assert_eq!(one.call("notes_t", "{}").await.text(), "called t");
    assert_eq!(
        first.into_body().collect().await.unwrap().to_bytes().len() >> 20,
        BIG >> 20
    );
    eventually("there is room again", async || {
        (one.call("notes_big", "{}").await.status == 200).then_some(())
    })
    .await;
}
