//! Whose browser it is: who logged in with it last is remembered in a cookie, and for nobody else's login is it used.
//!
//! Guarantees: a browser that was used to log in for one principal is sent away from every other's login, so that a person who
//! was lured cannot give their account to whoever lured them, however alike the page looks (PROTOCOL F7); the cookie names
//! nobody, is nobody's credential, and is read by us alone. What cannot be read (another key, another gateway) says nothing.
//! Deliberately absent: proof of who sits before a browser that logs in for the first time; that person is shown whose login it
//! is, and has to say that it is theirs.

use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use secrecy::ExposeSecret;

use super::spec::ConnectSpec;
use crate::{
    call::Principal,
    seal::{Purpose, Sealer, unix_seconds},
};

/// How long a browser is remembered.
pub const REMEMBERED: Duration = Duration::from_secs(30 * 24 * 3_600);
/// The most characters of a cookie of ours.
const CHARS: usize = 256;

/// Remembers browsers.
pub(super) struct Browsers {
    /// The first seals, all open. With a store: of its keys; else ends with the process, as grants do.
    sealers: Vec<Sealer>,
}

impl Browsers {
    pub(super) fn new(spec: &ConnectSpec) -> Self {
        let keys = spec.store.iter().flat_map(|store| &store.keys);
        let mut sealers: Vec<_> = keys
            .map(|key| Sealer::new(key.expose_secret().as_bytes()))
            .collect();
        if sealers.is_empty() {
            sealers.push(Sealer::ephemeral());
        }
        Self { sealers }
    }

    /// The cookie of a browser with which this principal has logged in.
    pub(super) fn of(&self, principal: &Principal) -> String {
        let until = unix_seconds().saturating_add(REMEMBERED.as_secs());
        let mut plain = until.to_le_bytes().to_vec();
        plain.extend_from_slice(digest(&SHA256, principal.as_str().as_bytes()).as_ref());
        let first = self.sealers.first();
        first.map_or_else(String::new, |it| it.seal(Purpose::Browser, &[], &plain))
    }

    /// Whether the browser with this cookie is another principal's.
    pub(super) fn is_foreign(&self, cookie: Option<&str>, principal: &Principal) -> bool {
        self.is_whose(cookie, principal) == Some(false)
    }

    /// Whether the browser with this cookie is this principal's, as far as is known.
    pub(super) fn is_of(&self, cookie: Option<&str>, principal: &Principal) -> bool {
        self.is_whose(cookie, principal) == Some(true)
    }

    /// Whether it is this principal's or another's; `None` where that is not known.
    fn is_whose(&self, cookie: Option<&str>, principal: &Principal) -> Option<bool> {
        let cookie = cookie.filter(|cookie| cookie.len() <= CHARS)?;
        let opened = |sealer: &Sealer| sealer.open(Purpose::Browser, &[], cookie).ok();
        let plain = self.sealers.iter().find_map(opened)?;
        let (until, whose) = plain.split_first_chunk::<8>()?;
        let is_good = u64::from_le_bytes(*until) > unix_seconds();
        is_good.then(|| whose == digest(&SHA256, principal.as_str().as_bytes()).as_ref())
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::connect::spec::StoreSpec;

    fn keyed(keys: &[&str]) -> Browsers {
        Browsers::new(&ConnectSpec {
            store: Some(StoreSpec {
                directory: PathBuf::new(),
                keys: keys.iter().map(|key| (*key).into()).collect(),
            }),
            ..ConnectSpec::default()
        })
    }

    #[test]
    fn a_browser_is_of_whoever_logged_in_with_it_last_and_of_nobody_where_that_is_not_known() {
        let (ana, bob) = (Principal::new("ana"), Principal::new("bob"));
        let old = keyed(&["one"]);
        let cookie = old.of(&ana);
        assert!(cookie.len() <= CHARS, "{}", cookie.len());
        assert!(!old.is_foreign(Some(&cookie), &ana) && old.is_of(Some(&cookie), &ana));
        assert!(!old.is_of(Some(&cookie), &bob));
        assert!(old.is_foreign(Some(&cookie), &bob));
        for nothing in [
            None,
            Some(""),
            Some("x"),
            Some(&*cookie.to_ascii_lowercase()),
        ] {
            assert!(!old.is_foreign(nothing, &bob), "{nothing:?}");
            assert!(!old.is_of(nothing, &bob), "{nothing:?}");
        }
        // The key has been changed, or the gateway is another.
        assert!(keyed(&["two", "one"]).is_foreign(Some(&cookie), &bob));
        assert!(!keyed(&["two"]).is_foreign(Some(&cookie), &bob));
    }
}
