//! A grant: what one principal was given for one upstream.

use std::fmt;

use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

/// Tokens, and what they are good for. Shows nothing of them.
pub struct Grant {
    /// What goes upstream.
    pub access: SecretString,
    /// What gets the next one.
    pub refresh: Option<SecretString>,
    /// When `access` ends, in seconds since 1970; `None` where the server does not say.
    pub until: Option<u64>,
    /// For how many seconds it was given.
    pub life: Option<u64>,
    /// Who gave it.
    pub issuer: String,
    /// The address of the upstream that it is for: it is sent nowhere else.
    pub address: String,
    /// What was asked for with it (RFC 8707).
    pub resource: Option<String>,
    /// Scopes that were granted, as the server spelled them.
    pub scope: Option<String>,
    /// When somebody logged in, in seconds since 1970; of two logins of one account the later one has the later second.
    pub since: u64,
    /// What operators call whoever logged in.
    pub who: String,
    /// The id of the client that it was given to, where we registered that ourselves; `None` also in those from before this was
    /// written down.
    pub client: Option<String>,
}

/// How a grant is written down.
#[derive(Serialize, Deserialize)]
struct Written<'a> {
    access: &'a str,
    refresh: Option<&'a str>,
    until: Option<u64>,
    life: Option<u64>,
    issuer: String,
    address: String,
    resource: Option<String>,
    scope: Option<String>,
    since: u64,
    who: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client: Option<String>,
}

/// Seconds before its end at which a token is no longer sent (SECURITY EGR-10).
const LAST: u64 = 30;
/// Seconds before its end at which the next one is fetched, if its life is long enough.
const AHEAD: u64 = 120;

/// What may be done with a token now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    /// Send it.
    Fresh,
    /// Send it, and fetch the next one meanwhile.
    Due,
    /// Fetch another one first.
    Over,
}

impl Grant {
    /// What may be done with it at `now`, in seconds since 1970.
    pub fn freshness(&self, now: u64) -> Freshness {
        let Some(until) = self.until else {
            return Freshness::Fresh;
        };
        let left = until.saturating_sub(now);
        // A token that nothing can follow is used to its end.
        if self.refresh.is_none() {
            return if left > 0 {
                Freshness::Fresh
            } else {
                Freshness::Over
            };
        }
        if left <= LAST {
            Freshness::Over
        } else if left <= AHEAD.min(self.life.unwrap_or(u64::MAX) / 2) {
            Freshness::Due
        } else {
            Freshness::Fresh
        }
    }

    /// The text that is sealed.
    #[expect(clippy::expect_used, reason = "see the invariant")]
    pub(super) fn written(&self) -> Zeroizing<Vec<u8>> {
        let written = Written {
            access: self.access.expose_secret(),
            refresh: self.refresh.as_ref().map(ExposeSecret::expose_secret),
            until: self.until,
            life: self.life,
            issuer: self.issuer.clone(),
            address: self.address.clone(),
            resource: self.resource.clone(),
            scope: self.scope.clone(),
            since: self.since,
            who: self.who.clone(),
            client: self.client.clone(),
        };
        // INVARIANT: strings and numbers serialise; an empty record in the place of a grant would lose it.
        Zeroizing::new(serde_json::to_vec(&written).expect("strings and numbers serialise"))
    }

    /// Whether it is the same as `other` in every word.
    pub(super) fn is(&self, other: &Self) -> bool {
        *self.written() == *other.written()
    }

    /// Whether it is what a text says that was sealed.
    pub(super) fn is_in(&self, text: &[u8]) -> bool {
        Self::read(text).is_some_and(|read| read.is(self))
    }

    /// The grant in a text that was sealed.
    pub(super) fn read(text: &[u8]) -> Option<Self> {
        // Tokens hold no characters that JSON escapes (see `token`), so borrowing never fails.
        let read: Written<'_> = serde_json::from_slice(text).ok()?;
        Some(Self {
            access: read.access.into(),
            refresh: read.refresh.map(Into::into),
            until: read.until,
            life: read.life,
            issuer: read.issuer,
            address: read.address,
            resource: read.resource,
            scope: read.scope,
            since: read.since,
            who: read.who,
            client: read.client,
        })
    }
}

impl fmt::Debug for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grant")
            .field("issuer", &self.issuer)
            .field("until", &self.until)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A grant with nothing special about it.
    pub(in crate::connect) fn a_grant(access: &str) -> Grant {
        Grant {
            access: access.into(),
            refresh: Some("refresh-1".into()),
            until: Some(10_000),
            life: Some(3_600),
            issuer: "https://login.example".into(),
            address: "https://mcp.example/mcp".into(),
            resource: None,
            scope: Some("a b".into()),
            since: 1_000,
            who: "ana".into(),
            client: None,
        }
    }

    #[test]
    fn a_grant_reads_as_it_was_written_and_shows_no_token() {
        let grant = a_grant("at-1");
        let read = Grant::read(&grant.written()).unwrap();
        assert_eq!(read.access.expose_secret(), "at-1");
        assert_eq!(read.refresh.unwrap().expose_secret(), "refresh-1");
        assert_eq!((read.until, read.since), (Some(10_000), 1_000));
        assert!(Grant::read(b"{}").is_none());
        let shown = format!("{grant:?}");
        assert!(!shown.contains("at-1") && !shown.contains("refresh-1"));
    }

    #[test]
    fn a_token_is_renewed_ahead_and_never_sent_in_its_last_half_minute() {
        let grant = a_grant("t");
        for (now, want) in [
            (0, Freshness::Fresh),
            (10_000 - AHEAD - 1, Freshness::Fresh),
            (10_000 - AHEAD, Freshness::Due),
            (10_000 - LAST - 1, Freshness::Due),
            (10_000 - LAST, Freshness::Over),
            (20_000, Freshness::Over),
        ] {
            assert_eq!(grant.freshness(now), want, "{now}");
        }
        let last = Grant {
            refresh: None,
            ..a_grant("t")
        };
        assert_eq!(last.freshness(9_999), Freshness::Fresh);
        assert_eq!(last.freshness(10_000), Freshness::Over);
        let endless = Grant {
            until: None,
            ..a_grant("t")
        };
        assert_eq!(endless.freshness(u64::MAX), Freshness::Fresh);
    }
}
