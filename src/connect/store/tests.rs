//! The store: sealed on disk, bound to its name, keys that rotate, revocations that last.

use std::collections::HashSet;

use base64::{Engine, engine::general_purpose};

use super::*;

const MARKER: &str = "MARKER-8c1f~tok.en/of+ana";
const OLD: &str = "an old key of thirty-two bytes!!";
const NEW: &str = "a new key of thirty-two bytes!!!";

fn spec(directory: &Path, keys: &[&str]) -> StoreSpec {
    StoreSpec {
        directory: directory.join("connections"),
        keys: keys.iter().map(|key| (*key).into()).collect(),
    }
}

fn key(whose: &str) -> Key {
    Key {
        kind: GRANT,
        whose: whose.into(),
        place: "github".into(),
    }
}

fn whose(store: &Store) -> HashSet<String> {
    let records = store.read().unwrap().records;
    records.into_iter().map(|record| record.key.whose).collect()
}

/// Every way in which a text may be found in bytes.
fn spellings(text: &str) -> Vec<String> {
    let bytes = text.as_bytes();
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let percent: String = bytes.iter().map(|byte| format!("%{byte:02X}")).collect();
    let mut all = vec![text.to_owned(), hex.to_uppercase(), hex, percent];
    // Base64 of the text wherever it begins within three bytes; the outer characters depend on what is around.
    for shift in 0..3 {
        let mut padded = vec![b'x'; shift];
        padded.extend_from_slice(bytes);
        for engine in [&general_purpose::STANDARD, &general_purpose::URL_SAFE] {
            let encoded = engine.encode(&padded);
            let inner = encoded.get(4..encoded.len() - 4).unwrap_or_default();
            all.extend((inner.len() > 6).then(|| inner.to_owned()));
        }
    }
    all
}

#[test]
fn what_is_kept_opens_after_a_restart_and_nothing_of_it_can_be_read_on_disk() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(&spec(directory.path(), &[NEW])).unwrap();
    let ana = key("user:https://login.example:ana-PRINCIPAL-MARKER");
    store.put(&ana, MARKER.as_bytes()).unwrap();
    let again = Store::open(&spec(directory.path(), &[NEW])).unwrap();
    let Contents {
        records, strange, ..
    } = again.read().unwrap();
    assert_eq!(strange, 0);
    assert_eq!(records[0].key, ana);
    assert_eq!(records[0].plain.as_slice(), MARKER.as_bytes());
    let mut looked_at = 0;
    for entry in fs::read_dir(store.directory()).unwrap() {
        let entry = entry.unwrap();
        let mut bytes = fs::read(entry.path()).unwrap();
        bytes.extend_from_slice(entry.file_name().as_encoded_bytes());
        let mode = entry.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", entry.path().display());
        for marker in [MARKER, "ana-PRINCIPAL-MARKER", "github"] {
            for spelling in spellings(marker) {
                assert!(
                    !bytes
                        .windows(spelling.len())
                        .any(|window| window == spelling.as_bytes()),
                    "{spelling} in {}",
                    entry.path().display()
                );
            }
        }
        looked_at += usize::from(bytes.starts_with(HEAD.as_bytes()));
    }
    assert_eq!(looked_at, 1);
    let mode = fs::metadata(store.directory()).unwrap().permissions();
    assert_eq!(mode.mode() & 0o777, 0o700);
}

#[test]
fn old_keys_open_and_the_first_one_seals_what_is_written_next() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    Store::open(&spec(at, &[OLD]))
        .unwrap()
        .put(&key("ana"), b"1")
        .unwrap();
    let both = Store::open(&spec(at, &[NEW, OLD])).unwrap();
    assert_eq!(whose(&both), HashSet::from(["ana".to_owned()]));
    let new = Store::open(&spec(at, &[NEW])).unwrap();
    assert_eq!(
        new.read().unwrap().strange,
        1,
        "not sealed again by reading"
    );
    let replaced = both.replace(&key("ana"), |known| known == b"1", b"2");
    assert!(matches!(replaced, Ok(Change::Made)));
    assert_eq!(whose(&new), HashSet::from(["ana".to_owned()]));
    let old = Store::open(&spec(at, &[OLD])).unwrap();
    assert!(whose(&old).is_empty());
}

#[test]
fn a_record_does_not_open_under_the_name_of_another() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(&spec(directory.path(), &[NEW])).unwrap();
    store.put(&key("mallory"), b"m").unwrap();
    store.put(&key("ana"), b"a").unwrap();
    let path = |whose: &str| store.directory().join(name_of(&key(whose)));
    fs::copy(path("mallory"), path("ana")).unwrap();
    assert_eq!(whose(&store), HashSet::from(["mallory".to_owned()]));
    assert_eq!(store.read().unwrap().strange, 1);
    // Nor when any byte of it was changed.
    let sealed = fs::read(path("mallory")).unwrap();
    for at in 0..sealed.len() {
        let mut changed = sealed.clone();
        changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
        fs::write(path("mallory"), &changed).unwrap();
        assert!(whose(&store).is_empty(), "byte {at}");
    }
}

#[test]
fn what_was_removed_is_not_brought_back_by_a_refresh_under_way() {
    let directory = tempfile::tempdir().unwrap();
    let gateway = Store::open(&spec(directory.path(), &[NEW])).unwrap();
    let operator = Store::open(&spec(directory.path(), &[NEW])).unwrap();
    gateway.put(&key("ana"), b"1").unwrap();
    let before = gateway.stamp().unwrap();
    assert!(operator.remove(&key("ana")).unwrap());
    assert_ne!(gateway.stamp().unwrap(), before, "which the gateway sees");
    let replaced = gateway.replace(&key("ana"), |known| known == b"1", b"2");
    assert!(matches!(replaced, Ok(Change::Gone)));
    assert!(whose(&gateway).is_empty());
    assert!(!operator.remove(&key("ana")).unwrap());
}

#[test]
fn what_another_has_written_meanwhile_is_neither_replaced_nor_removed() {
    let directory = tempfile::tempdir().unwrap();
    let gateway = Store::open(&spec(directory.path(), &[NEW])).unwrap();
    let other = Store::open(&spec(directory.path(), &[NEW])).unwrap();
    gateway.put(&key("ana"), b"1").unwrap();
    other.put(&key("ana"), b"2").unwrap();
    let known = |plain: &[u8]| plain == b"1";
    for change in [
        gateway.replace(&key("ana"), known, b"3"),
        gateway.remove_known(&key("ana"), known),
    ] {
        assert!(matches!(change, Ok(Change::Other(plain)) if *plain == *b"2"));
    }
    assert_eq!(*gateway.find(&key("ana")).unwrap().unwrap().plain, *b"2");
    let removed = other.remove_known(&key("ana"), |plain| plain == b"2");
    assert!(matches!(removed, Ok(Change::Made)));
    assert!(gateway.find(&key("ana")).unwrap().is_none());
}

#[test]
fn what_cannot_be_read_makes_room_for_what_is_newer_and_is_not_removed() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(&spec(directory.path(), &[NEW])).unwrap();
    store.put(&key("ana"), b"1").unwrap();
    let file = store.directory().join(name_of(&key("ana")));
    // It is elsewhere, and cannot be read there.
    let elsewhere = directory.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &file).unwrap();
    let removed = store.remove_known(&key("ana"), |plain| plain == b"1");
    assert!(matches!(removed, Err(StoreError::File { path, .. }) if path == file));
    assert!(fs::symlink_metadata(&file).is_ok(), "it is still there");
    let replaced = store.replace(&key("ana"), |plain| plain == b"1", b"2");
    assert!(matches!(replaced, Ok(Change::Made)));
    assert_eq!(*store.find(&key("ana")).unwrap().unwrap().plain, *b"2");
}

#[test]
fn entries_that_cannot_be_read_are_counted() {
    let entry = |name: &str| Ok(OsString::from(name));
    let entries = [
        entry("b.sealed"),
        Err(io::Error::other("input/output error")),
        entry(".lock"),
        entry("a.sealed"),
    ];
    let found = names(entries.into_iter());
    assert_eq!(
        found,
        (vec!["a.sealed".to_owned(), "b.sealed".to_owned()], 1)
    );
}

#[test]
fn a_directory_that_others_may_look_into_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let spec = spec(directory.path(), &[NEW]);
    drop(Store::open(&spec).unwrap());
    fs::set_permissions(&spec.directory, fs::Permissions::from_mode(0o750)).unwrap();
    assert!(matches!(Store::open(&spec), Err(StoreError::Open(_))));
}

#[test]
fn what_a_process_left_unfinished_is_removed_when_the_store_is_opened() {
    let directory = tempfile::tempdir().unwrap();
    let spec = spec(directory.path(), &[NEW]);
    let store = Store::open(&spec).unwrap();
    store.put(&key("ana"), b"1").unwrap();
    let files = [unfinished(7, 0), ".keep-me".into(), ".1-x".into()];
    for name in &files {
        fs::write(store.directory().join(name), "half").unwrap();
    }
    let again = Store::open(&spec).unwrap();
    let are_there = files.map(|name| again.directory().join(name).exists());
    assert_eq!(are_there, [false, true, true]);
    assert_eq!(whose(&again), HashSet::from(["ana".to_owned()]));
}

#[test]
fn what_is_in_its_place_is_kept_though_nobody_knows_whether_it_outlives_a_failure_of_the_machine() {
    let directory = tempfile::tempdir().unwrap();
    let mut store = Store::open(&spec(directory.path(), &[NEW])).unwrap();
    store.sync = |_| Err(io::Error::other("on purpose"));
    store.put(&key("ana"), b"1").unwrap();
    let change = store.replace(&key("ana"), |known| known == b"1", b"2");
    assert!(matches!(change, Ok(Change::Made)));
    let found = store.find(&key("ana")).unwrap().unwrap();
    assert_eq!(found.plain.as_slice(), b"2");
    // That something is gone for good is what whoever removes it has to know.
    assert!(store.remove(&key("ana")).is_err());
    assert!(store.find(&key("ana")).unwrap().is_none());
}
