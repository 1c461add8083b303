//! API keys: made, hashed, found again (PRODUCT 7, SECURITY AUTHN-9).
//!
//! A key is `usher_ID_SECRET`. Its id finds the record, an HMAC-SHA-256 of the whole key under the operator's secret proves
//! it, compared in constant time. Guarantees: a key's text is nowhere once it was handed out; a record that is expired or
//! revoked proves nothing. Deliberately absent: files, which are read and written by whoever owns them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use aws_lc_rs::{hmac, rand};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::time;
use crate::call::{End, Identity, IdentityKind, Principal};

/// What every key begins with.
const MARK: &str = "usher_";
/// The longest text that is looked at as a key, in bytes.
pub const MAX_KEY: usize = 128;
/// The most keys of one file, revoked ones included.
pub const MOST: usize = 100_000;

/// One key, without itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyRecord {
    /// What finds it: 12 hexadecimal digits.
    pub id: String,
    /// What people call it; the name under which policy knows it. Unique among keys that are not revoked. With the owner it is
    /// whose things the key's are.
    pub name: String,
    /// Who answers for it.
    pub owner: String,
    /// Groups it is in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// Scopes it has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    /// Its tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// HMAC-SHA-256 of the key, base64url.
    pub hash: String,
    /// When it was made: unix seconds.
    pub created: u64,
    /// When it ends: unix seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<u64>,
    /// When it was revoked: unix seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked: Option<u64>,
}

/// The file of keys.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyFile {
    /// In the order in which they were made.
    pub keys: Vec<KeyRecord>,
}

/// A file of keys that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BadKeyFile {
    /// Not JSON of this shape.
    #[error("not a file of keys")]
    Shape(#[from] serde_json::Error),
    /// A record that no key can have.
    #[error("the record of the key `{0}` is not sound")]
    Record(String),
    /// More than 100,000.
    #[error("more than 100,000 keys")]
    TooMany,
}

/// A key just made: its text, to be handed out once, and what is kept.
pub struct NewKey {
    /// The key.
    pub text: SecretString,
    /// Its record.
    pub record: KeyRecord,
}

/// What a new key is to be.
#[derive(Debug, Clone, Default)]
pub struct KeyWish {
    /// See [`KeyRecord::name`].
    pub name: String,
    /// See [`KeyRecord::owner`].
    pub owner: String,
    /// See [`KeyRecord::groups`].
    pub groups: Vec<String>,
    /// See [`KeyRecord::scopes`].
    pub scopes: Vec<String>,
    /// See [`KeyRecord::tenant`].
    pub tenant: Option<String>,
    /// See [`KeyRecord::expires`].
    pub expires: Option<u64>,
}

/// Keys that can be found.
#[derive(Debug, Default)]
pub struct KeyTable {
    known: BTreeMap<String, Arc<Known>>,
    /// The hashes of those that are revoked, which prove nothing but that.
    revoked: BTreeMap<String, Vec<u8>>,
}

/// Why a key is not taken, which is for logs and records alone (SECURITY AUTHN-1).
const UNKNOWN: &str = "unknown API key";
/// See [`UNKNOWN`].
const REVOKED: &str = "revoked API key";
/// See [`UNKNOWN`].
const EXPIRED: &str = "expired API key";

#[derive(Debug)]
struct Known {
    record: KeyRecord,
    hash: Vec<u8>,
    identity: Arc<Identity>,
    /// Unix seconds of its last use here; zero for none.
    used: Arc<AtomicU64>,
}

/// Whether a text claims to be one of our keys.
pub fn looks_like_one(text: &str) -> bool {
    text.starts_with(MARK)
}

/// Makes a key.
#[expect(clippy::expect_used, reason = "see the invariant")]
pub fn create(wish: KeyWish, secret: &SecretString, now: u64) -> NewKey {
    let (mut id, mut random) = ([0; 6], [0; 32]);
    // INVARIANT: the system's random source does not fail after boot; without one there must be no keys.
    rand::fill(&mut id)
        .and_then(|()| rand::fill(&mut random))
        .expect("the system gives random bytes");
    let id: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let text = format!("{MARK}{id}_{}", URL_SAFE_NO_PAD.encode(random));
    let record = KeyRecord {
        id,
        name: wish.name,
        owner: wish.owner,
        groups: wish.groups,
        scopes: wish.scopes,
        tenant: wish.tenant,
        hash: URL_SAFE_NO_PAD.encode(hmac::sign(&hasher(secret), text.as_bytes())),
        created: now,
        expires: wish.expires,
        revoked: None,
    };
    NewKey {
        text: text.into(),
        record,
    }
}

fn hasher(secret: &SecretString) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, secret.expose_secret().as_bytes())
}

impl KeyFile {
    /// Reads one.
    ///
    /// # Errors
    /// See [`BadKeyFile`].
    pub fn parse(text: &[u8]) -> Result<Self, BadKeyFile> {
        let file: Self = serde_json::from_slice(text)?;
        if file.keys.len() > MOST {
            return Err(BadKeyFile::TooMany);
        }
        let mut ids = BTreeSet::new();
        let mut names = BTreeSet::new();
        for record in &file.keys {
            let unique =
                ids.insert(&record.id) && (record.revoked.is_some() || names.insert(&record.name));
            if !unique || record.hash_bytes().is_none() || record.name.is_empty() {
                return Err(BadKeyFile::Record(record.id.clone()));
            }
        }
        Ok(file)
    }

    /// The text of the file.
    #[expect(clippy::expect_used, reason = "see the invariant")]
    pub fn text(&self) -> String {
        // A file that people look at.
        // INVARIANT: strings, lists and numbers serialise; an empty file would revoke every key.
        serde_json::to_string_pretty(self).expect("strings and numbers serialise") + "\n"
    }
}

impl KeyRecord {
    fn hash_bytes(&self) -> Option<Vec<u8>> {
        let bytes = URL_SAFE_NO_PAD.decode(&self.hash).ok()?;
        (bytes.len() == 32).then_some(bytes)
    }

    /// Whether it proves anything at `now`.
    pub fn is_live(&self, now: u64) -> bool {
        self.revoked.is_none() && self.expires.is_none_or(|end| now < end)
    }

    fn identity(&self) -> Identity {
        let texts = |list: &[String]| list.iter().map(|text| Arc::from(text.as_str())).collect();
        // A name may be given anew, and what its first owner left belongs to nobody else (SECURITY I2); who makes a new key of their
        // own has it on.
        // INVARIANT: quoted as they are, different ones never spell the same.
        let principal = Principal::new(format!("key {:?} of {:?}", self.name, self.owner));
        Identity {
            principal,
            kind: IdentityKind::Key,
            name: self.name.as_str().into(),
            issuer: None,
            groups: texts(&self.groups),
            tenant: self.tenant.as_deref().map(Arc::from),
            scopes: texts(&self.scopes),
            client: None,
            owner: Some(self.owner.as_str().into()),
            until: self.expires.and_then(time).map(End::sharp),
            revoked: CancellationToken::new(),
            key: Some(self.id.as_str().into()),
            assertion: None,
        }
    }
}

impl KeyTable {
    /// The keys of a file.
    pub fn of(file: &KeyFile) -> Self {
        let (live, revoked): (Vec<_>, Vec<_>) = file
            .keys
            .iter()
            .partition(|record| record.revoked.is_none());
        let revoked = revoked
            .into_iter()
            .filter_map(|record| Some((record.id.clone(), record.hash_bytes()?)));
        let known = live.into_iter().filter_map(|record| {
            let known = Known {
                hash: record.hash_bytes()?,
                identity: record.identity().into(),
                record: record.clone(),
                used: Arc::default(),
            };
            Some((record.id.clone(), Arc::new(known)))
        });
        Self {
            known: known.collect(),
            revoked: revoked.collect(),
        }
    }

    /// This table; what is the same as in `before` stays the same, so that streams which hang on it go on.
    pub(super) fn following(mut self, before: &Self) -> Self {
        for (id, known) in &mut self.known {
            if let Some(same) = before.known.get(id).filter(|it| it.record == known.record) {
                *known = same.clone();
            }
        }
        self
    }

    pub(super) fn end_those_missing_in(&self, after: &Self) {
        for (id, known) in &self.known {
            let kept = (after.known.get(id)).is_some_and(|it| Arc::ptr_eq(it, known));
            if !kept {
                known.identity.revoked.cancel();
            }
        }
    }

    /// Whose key this is.
    ///
    /// # Errors
    /// Why it is not taken. That it is revoked or expired is said of the very key, and not of whatever bears its id.
    pub(super) fn find(
        &self,
        key: &str,
        secret: &SecretString,
        now: u64,
    ) -> Result<Arc<Identity>, &'static str> {
        let id = key.strip_prefix(MARK).and_then(|rest| rest.split_once('_'));
        let (id, _) = id.ok_or(UNKNOWN)?;
        let known = self.known.get(id);
        let hash = known
            .map(|known| &known.hash)
            .or_else(|| self.revoked.get(id));
        hmac::verify(&hasher(secret), key.as_bytes(), hash.ok_or(UNKNOWN)?).map_err(|_| UNKNOWN)?;
        let known = known.ok_or(REVOKED)?;
        if !known.record.is_live(now) {
            return Err(EXPIRED);
        }
        if known.used.load(Ordering::Relaxed) != now {
            known.used.store(now, Ordering::Relaxed);
        }
        Ok(known.identity.clone())
    }

    /// When each key was used last here: id and unix seconds.
    pub fn last_used(&self) -> BTreeMap<String, u64> {
        let used = |known: &Known| known.used.load(Ordering::Relaxed);
        self.known
            .iter()
            .filter(|(_, known)| used(known) > 0)
            .map(|(id, known)| (id.clone(), used(known)))
            .collect()
    }
}

impl std::fmt::Debug for NewKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "NewKey({})", self.record.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::AuthMethod;

    fn secret() -> SecretString {
        "0123456789abcdef0123456789abcdef".into()
    }

    fn made(name: &str, expires: Option<u64>) -> NewKey {
        let wish = KeyWish {
            name: name.into(),
            owner: "ana".into(),
            groups: vec!["eng".into()],
            expires,
            ..KeyWish::default()
        };
        create(wish, &secret(), 1_000)
    }

    fn table(records: &[&KeyRecord]) -> KeyTable {
        let keys = records.iter().copied().cloned().collect();
        let text = KeyFile { keys }.text();
        KeyTable::of(&KeyFile::parse(text.as_bytes()).unwrap())
    }

    // SECURITY AUTHN-9
    #[test]
    fn a_key_is_known_by_its_hash_and_no_other_text_is() {
        let key = made("ci", Some(2_000));
        let text = key.text.expose_secret();
        let table = table(&[&key.record]);
        let find = |text: &str, now| table.find(text, &secret(), now);
        let found = find(text, 1_500).unwrap();
        assert_eq!((found.kind, &*found.name), (IdentityKind::Key, "ci"));
        assert_eq!(found.method(), Some(AuthMethod::Key));
        assert_eq!(found.owner.as_deref(), Some("ana"));
        assert_eq!(table.last_used()[&key.record.id], 1_500);
        assert_eq!(found.key.as_deref(), Some(key.record.id.as_str()));
        assert_eq!(find(text, 2_000).err(), Some("expired API key"));
        assert!(table.find(text, &"x".repeat(32).into(), 1_500).is_err());
        let last = if text.ends_with('A') { "B" } else { "A" };
        for wrong in [
            &text[..text.len() - 1],
            &format!("{text}A"),
            &format!("{}{last}", &text[..text.len() - 1]),
            &text.replace(&key.record.id, "000000000000"),
            "usher_",
            "",
        ] {
            assert_eq!(find(wrong, 1_500).err(), Some("unknown API key"), "{wrong}");
        }
    }

    // SECURITY AUTHN-1, AUTHN-9
    #[test]
    fn that_a_key_is_revoked_is_said_of_that_key_and_not_of_whatever_bears_its_id() {
        let (mut key, again) = (made("ci", None), made("ci", None));
        key.record.revoked = Some(1_600);
        let table = table(&[&key.record, &again.record]);
        let text = key.text.expose_secret();
        let find = |text: &str| table.find(text, &secret(), 1_700);
        assert_eq!(find(text).err(), Some("revoked API key"));
        assert_eq!(find(&format!("{text}A")).err(), Some("unknown API key"));
        let found = find(again.text.expose_secret()).unwrap();
        assert_eq!(found.key.as_deref(), Some(again.record.id.as_str()));
    }

    // SECURITY AUTHN-9
    #[test]
    fn the_file_of_keys_holds_no_key() {
        let key = made("ci", None);
        let file = KeyFile {
            keys: vec![key.record.clone()],
        };
        let secret_part = key
            .text
            .expose_secret()
            .splitn(3, '_')
            .nth(2)
            .unwrap()
            .to_owned();
        assert!(!file.text().contains(&secret_part));
        assert!(!format!("{key:?}").contains(&secret_part));
    }

    // SECURITY AUTHN-5
    #[test]
    fn keys_that_are_revoked_or_changed_end_what_hangs_on_them_and_others_do_not() {
        let (one, two, three) = (made("a", None), made("b", None), made("c", None));
        let before = table(&[&one.record, &two.record, &three.record]);
        let identity = |key: &NewKey| {
            before
                .find(key.text.expose_secret(), &secret(), 1_500)
                .unwrap()
        };
        let all = [identity(&one), identity(&two), identity(&three)];
        let mut revoked = one.record.clone();
        revoked.revoked = Some(1_600);
        let mut changed = two.record.clone();
        changed.groups.push("admin".into());
        let after = table(&[&revoked, &changed, &three.record]).following(&before);
        before.end_those_missing_in(&after);
        let ended: Vec<bool> = all.iter().map(|it| it.revoked.is_cancelled()).collect();
        assert_eq!(ended, [true, true, false]);
    }

    // SECURITY I2
    #[test]
    fn a_name_that_is_given_anew_is_the_same_somebody_only_if_its_owner_is() {
        let principal = |name: &str, owner: &str| {
            let wish = KeyWish {
                name: name.into(),
                owner: owner.into(),
                ..KeyWish::default()
            };
            create(wish, &secret(), 1_000).record.identity().principal
        };
        let first = principal("ci", "ana");
        assert_eq!(first.as_str(), r#"key "ci" of "ana""#);
        assert_eq!(first, principal("ci", "ana"));
        let (hers, inner) = (principal("a", r#"b" of "c"#), principal(r#"a" of "b"#, "c"));
        for other in [principal("ci", "ben"), principal("cd", "ana"), hers] {
            assert!(other != first && other != inner, "{other:?}");
        }
    }

    #[test]
    fn a_file_with_two_keys_of_a_name_or_id_is_refused() {
        let (one, two) = (made("a", None), made("a", None));
        let file = |keys: Vec<KeyRecord>| KeyFile { keys }.text();
        let parse = |text: String| KeyFile::parse(text.as_bytes());
        assert!(parse(file(vec![one.record.clone(), two.record.clone()])).is_err());
        assert!(parse(file(vec![one.record.clone(), one.record.clone()])).is_err());
        let mut revoked = one.record;
        revoked.revoked = Some(1);
        assert!(parse(file(vec![revoked, two.record])).is_ok());
        assert!(parse("{}x".into()).is_err());
    }
}
