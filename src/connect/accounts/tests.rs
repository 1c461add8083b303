//! Grants that come, are renewed and go, in one process and in two that share a store.

use std::time::Duration;

use secrecy::ExposeSecret;

use super::*;
use crate::{
    connect::{
        Connections,
        grant::tests::a_grant,
        spec::{AccountSpec, ClientSpec, ServerSpec, StoreSpec},
    },
    fetch::{Fetcher, TlsSpec},
    tasks::Tasks,
};

/// Of one upstream, with a store in this directory.
pub(in crate::connect) fn spec(directory: &std::path::Path, address: &str) -> ConnectSpec {
    let account = AccountSpec {
        address: address.into(),
        tls: TlsSpec::default(),
        resource: None,
        server: ServerSpec::Discovered,
        client: ClientSpec::Given {
            id: "c".into(),
            secret: None,
        },
        scopes: None,
    };
    ConnectSpec {
        accounts: [(UpstreamId::parse("github").unwrap(), account)].into(),
        store: Some(StoreSpec {
            directory: directory.join("store"),
            keys: vec!["a key of more than thirty-two bytes".into()],
        }),
        url: None,
        ca: None,
    }
}

pub(in crate::connect) fn ana() -> Account {
    Account {
        upstream: UpstreamId::parse("github").unwrap(),
        principal: Principal::new("ana"),
    }
}

/// What is used for Ana now.
fn now(grants: &Grants) -> Arc<Grant> {
    grants.slot(&ana()).unwrap().grant.load_full()
}

/// The one file of a record.
pub(in crate::connect) fn file_of(grants: &Grants) -> std::path::PathBuf {
    let files = std::fs::read_dir(grants.store().unwrap().directory()).unwrap();
    let mut files = files.map(|file| file.unwrap().path());
    let is_sealed = |file: &std::path::PathBuf| file.extension().is_some();
    files.find(is_sealed).unwrap()
}

#[test]
fn a_grant_is_used_at_the_address_it_was_given_for_and_nowhere_else() {
    let directory = tempfile::tempdir().unwrap();
    let before = spec(directory.path(), "https://mcp.example/mcp");
    let (grants, _) = Grants::open(&before).unwrap();
    grants.put(&ana(), a_grant("at-1"), || ()).unwrap();
    let (again, _) = Grants::open(&before).unwrap();
    let kept = again.slot(&ana()).unwrap().grant.load_full();
    assert_eq!(kept.access.expose_secret(), "at-1");
    let elsewhere = spec(directory.path(), "https://mallory.example/mcp");
    assert!(Grants::open(&elsewhere).unwrap().0.slot(&ana()).is_none());
}

#[test]
fn what_another_process_removes_or_renews_is_seen_when_the_store_is_read_again() {
    let directory = tempfile::tempdir().unwrap();
    let spec = spec(directory.path(), "https://mcp.example/mcp");
    let (grants, _) = Grants::open(&spec).unwrap();
    let (other, _) = Grants::open(&spec).unwrap();
    grants.put(&ana(), a_grant("at-1"), || ()).unwrap();
    other.load(&spec).unwrap();
    other.renew(&ana(), &now(&other), a_grant("at-2")).unwrap();
    assert_eq!(now(&other).access.expose_secret(), "at-2");
    grants.load(&spec).unwrap();
    assert_eq!(now(&grants).access.expose_secret(), "at-2");
    assert!(other.remove(&ana()).unwrap().is_some());
    // What the first still has in hand comes to nothing.
    let used = now(&grants);
    grants.renew(&ana(), &used, a_grant("at-3")).unwrap();
    assert!(grants.slot(&ana()).is_none() && grants.all().is_empty());
}

#[test]
fn a_read_puts_nothing_back_that_was_renewed_removed_or_given_while_it_was_under_way() {
    let directory = tempfile::tempdir().unwrap();
    let spec = spec(directory.path(), "https://mcp.example/mcp");
    let (grants, _) = Grants::open(&spec).unwrap();
    grants.put(&ana(), a_grant("at-1"), || ()).unwrap();
    let slot = grants.slot(&ana()).unwrap();
    let begun = || Seen::read(grants.store().unwrap(), &spec).unwrap();
    let seen = begun();
    grants
        .renew(&ana(), &now(&grants), a_grant("at-2"))
        .unwrap();
    grants.take_over(&seen, &spec);
    assert_eq!(now(&grants).access.expose_secret(), "at-2");
    // Whoever waits for a renewal waits in the place where it is.
    assert!(Arc::ptr_eq(&slot, &grants.slot(&ana()).unwrap()));
    let seen = begun();
    assert!(grants.remove(&ana()).unwrap().is_some());
    grants.take_over(&seen, &spec);
    assert!(grants.slot(&ana()).is_none());
    let seen = begun();
    grants.put(&ana(), a_grant("at-3"), || ()).unwrap();
    grants.take_over(&seen, &spec);
    assert_eq!(now(&grants).access.expose_secret(), "at-3");
}

#[test]
fn a_grant_ends_as_the_one_that_was_used_and_not_as_what_took_its_place() {
    let directory = tempfile::tempdir().unwrap();
    let spec = spec(directory.path(), "https://mcp.example/mcp");
    let (grants, _) = Grants::open(&spec).unwrap();
    grants.put(&ana(), a_grant("at-1"), || ()).unwrap();
    let (other, _) = Grants::open(&spec).unwrap();
    let used = now(&grants);
    // Another process renews it, and then so does this one with what is spent.
    other.renew(&ana(), &now(&other), a_grant("at-2")).unwrap();
    let instead = grants.end(&ana(), &used).unwrap().unwrap();
    assert_eq!(instead.access.expose_secret(), "at-2");
    let (again, _) = Grants::open(&spec).unwrap();
    assert_eq!(now(&again).access.expose_secret(), "at-2");
    // Nor does what was given anew end with what was used before, or make room for what that was renewed to.
    grants.put(&ana(), a_grant("at-3"), || ()).unwrap();
    grants.renew(&ana(), &instead, a_grant("at-4")).unwrap();
    other.renew(&ana(), &now(&other), a_grant("at-5")).unwrap();
    assert!(grants.end(&ana(), &instead).unwrap().is_some());
    for all in [&grants, &other, &Grants::open(&spec).unwrap().0] {
        assert_eq!(now(all).access.expose_secret(), "at-3");
    }
    assert!(grants.end(&ana(), &now(&grants)).unwrap().is_none());
    assert!(Grants::open(&spec).unwrap().0.all().is_empty());
}

// SECURITY REL-9
#[tokio::test(start_paused = true)]
async fn what_could_not_be_read_is_read_again_though_nothing_changes_in_the_directory() {
    let directory = tempfile::tempdir().unwrap();
    let spec = spec(directory.path(), "https://mcp.example/mcp");
    let (grants, _) = Grants::open(&spec).unwrap();
    grants.put(&ana(), a_grant("at-1"), || ()).unwrap();
    // The file is elsewhere, and at first cannot be read there.
    let file = file_of(&grants);
    let [aside, elsewhere] = ["aside", "elsewhere"].map(|name| directory.path().join(name));
    std::fs::rename(&file, &aside).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &file).unwrap();
    std::fs::create_dir(&elsewhere).unwrap();
    let (fetcher, tasks) = (Fetcher::new(None).unwrap(), Tasks::new());
    let connections = Connections::open(spec, fetcher, &tasks).unwrap();
    let looks = |count| tokio::time::sleep(Duration::from_secs(count));
    looks(3).await;
    assert!(connections.current(&ana()).is_none());
    std::fs::remove_dir(&elsewhere).unwrap();
    std::fs::rename(&aside, &elsewhere).unwrap();
    looks(3).await;
    assert!(connections.current(&ana()).is_some());
    tasks.stop();
}

#[test]
fn how_many_files_do_not_open_is_told_when_it_is_another_number() {
    let directory = tempfile::tempdir().unwrap();
    let spec = spec(directory.path(), "https://mcp.example/mcp");
    let (grants, _) = Grants::open(&spec).unwrap();
    grants.put(&ana(), a_grant("at-1"), || ()).unwrap();
    std::fs::write(file_of(&grants), "sealed with another key").unwrap();
    let (again, _) = Grants::open(&spec).unwrap();
    assert!(!again.note_strange(1), "it was told");
    assert!(again.load(&spec).unwrap() && !again.note_strange(1));
    assert!(again.note_strange(2) && !again.note_strange(0) && again.note_strange(1));
}

// SECURITY REL-9
#[test]
fn a_file_that_cannot_be_read_for_a_while_ends_no_connection_and_is_read_again() {
    let directory = tempfile::tempdir().unwrap();
    let spec = spec(directory.path(), "https://mcp.example/mcp");
    let (grants, _) = Grants::open(&spec).unwrap();
    grants.put(&ana(), a_grant("at-1"), || ()).unwrap();
    let file = file_of(&grants);
    let aside = directory.path().join("aside");
    // What is there cannot be read as a file.
    std::fs::rename(&file, &aside).unwrap();
    std::fs::create_dir(&file).unwrap();
    assert!(!grants.load(&spec).unwrap(), "not all of it");
    assert_eq!(now(&grants).access.expose_secret(), "at-1");
    assert!(Grants::open(&spec).is_ok(), "others are served");
    std::fs::remove_dir(&file).unwrap();
    std::fs::rename(&aside, &file).unwrap();
    assert!(grants.load(&spec).unwrap());
    std::fs::remove_file(&file).unwrap();
    assert!(grants.load(&spec).unwrap());
    assert!(grants.slot(&ana()).is_none());
}

#[test]
fn what_another_renewed_outlives_that_it_cannot_be_read_when_the_spent_one_ends() {
    let directory = tempfile::tempdir().unwrap();
    let spec = spec(directory.path(), "https://mcp.example/mcp");
    let (grants, _) = Grants::open(&spec).unwrap();
    grants.put(&ana(), a_grant("at-1"), || ()).unwrap();
    let (other, _) = Grants::open(&spec).unwrap();
    other.renew(&ana(), &now(&other), a_grant("at-2")).unwrap();
    let file = file_of(&grants);
    let aside = directory.path().join("aside");
    std::fs::rename(&file, &aside).unwrap();
    std::os::unix::fs::symlink(directory.path(), &file).unwrap();
    assert!(grants.end(&ana(), &now(&grants)).is_err());
    assert!(grants.slot(&ana()).is_none(), "nor is what is spent used");
    assert!(file.symlink_metadata().is_ok(), "it is still there");
    std::fs::rename(&aside, &file).unwrap();
    assert!(grants.load(&spec).unwrap());
    assert_eq!(now(&grants).access.expose_secret(), "at-2");
}

#[test]
fn a_renewed_grant_that_could_not_be_written_is_used_on_whatever_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let spec = spec(directory.path(), "https://mcp.example/mcp");
    let (grants, _) = Grants::open(&spec).unwrap();
    grants.put(&ana(), a_grant("at-1"), || ()).unwrap();
    let lock = grants.store().unwrap().directory().join(".lock");
    std::fs::remove_file(&lock).unwrap();
    std::fs::create_dir(&lock).unwrap();
    assert!(
        grants
            .renew(&ana(), &now(&grants), a_grant("at-2"))
            .is_err()
    );
    std::fs::remove_dir(&lock).unwrap();
    grants.load(&spec).unwrap();
    assert_eq!(now(&grants).access.expose_secret(), "at-2");
    grants
        .renew(&ana(), &now(&grants), a_grant("at-3"))
        .unwrap();
    assert_eq!(now(&grants).access.expose_secret(), "at-3");
    let (again, _) = Grants::open(&spec).unwrap();
    assert_eq!(now(&again).access.expose_secret(), "at-3");
}
