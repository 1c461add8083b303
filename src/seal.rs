//! Sealing: small state handed to clients and taken back, readable and changeable by nobody but us.
//!
//! AES-256-GCM-SIV under a key per purpose, derived from one secret, so that any replica with the secret opens what another
//! sealed and nothing needs to be stored. Guarantees: what opens was sealed for the same purpose and the same binding, bit
//! for bit. Deliberately absent: expiry, which whoever seals writes inside and checks after opening.

use std::{
    fmt,
    time::{SystemTime, UNIX_EPOCH},
};

use aws_lc_rs::{
    aead::{AES_256_GCM_SIV, Aad, Nonce, RandomizedNonceKey},
    hkdf::{HKDF_SHA256, KeyType, Salt},
    rand,
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};

/// What sealed state is for. State sealed for one purpose never opens for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Positions in merged lists (PRODUCT 5, SECURITY STATE-1).
    Cursor,
    /// What a client brings back to go on with a call that asked for input (SECURITY STATE-2).
    Resume,
    /// Handles of tasks (PROTOCOL D3, SECURITY STATE-7).
    Task,
    /// What is kept on disk of people's connections to upstreams (SECURITY EGR-10).
    Connection,
    /// Who logged in with a browser last, in a cookie (PROTOCOL F7).
    Browser,
}

impl Purpose {
    const ALL: [Self; 5] = [
        Self::Cursor,
        Self::Resume,
        Self::Task,
        Self::Connection,
        Self::Browser,
    ];

    /// The label its key is derived under; changing one invalidates everything sealed for it.
    const fn label(self) -> &'static [u8] {
        match self {
            Self::Cursor => b"usher cursor v1",
            Self::Resume => b"usher resume v1",
            Self::Task => b"usher task v1",
            Self::Connection => b"usher connection v1",
            Self::Browser => b"usher browser v1",
        }
    }
}

/// Something that is not ours, not whole, or bound to something else. Says no more on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("sealed state does not open")]
pub struct SealError;

/// Seals and opens.
pub struct Sealer {
    /// Tells secrets apart: what another one has sealed is refused before it is decrypted. Derived; tells nothing of the secret.
    key_id: [u8; KEY_ID],
    keys: [RandomizedNonceKey; Purpose::ALL.len()],
    /// Of secrets that this one took the place of: they open and seal nothing.
    former: Vec<Self>,
}

const VERSION: u8 = 1;
const KEY_ID: usize = 4;
const NONCE: usize = 12;
const HEAD: usize = 1 + KEY_ID + NONCE;

impl Sealer {
    /// A sealer from a secret shared by all replicas, which should be at least 32 random bytes.
    pub fn new(secret: &[u8]) -> Self {
        Self {
            key_id: derive(secret, b"usher key id v1"),
            keys: Purpose::ALL.map(|purpose| key(secret, purpose)),
            former: Vec::new(),
        }
    }

    /// The same, which also opens what these sealed: secrets can be replaced while what was sealed is still out (SECURITY 10).
    #[must_use]
    pub fn after(mut self, former: impl IntoIterator<Item = Self>) -> Self {
        self.former.extend(former);
        self
    }

    /// A sealer with a secret of its own, whose seals end with the process.
    #[expect(clippy::expect_used, reason = "see the invariant")]
    pub fn ephemeral() -> Self {
        let mut secret = [0; 32];
        // INVARIANT: the operating system's random source does not fail after boot; a process without one must not serve.
        rand::fill(&mut secret).expect("the system gives random bytes");
        Self::new(&secret)
    }

    /// `plain` as base64url text that only [`Sealer::open`] with the same `purpose` and `binding` reads.
    #[expect(clippy::expect_used, reason = "see the invariant")]
    pub fn seal(&self, purpose: Purpose, binding: &[&[u8]], plain: &[u8]) -> String {
        let mut body = plain.to_vec();
        // INVARIANT: sealing fails only beyond 2^36 bytes or without a random source.
        let nonce = self.keys[purpose as usize]
            .seal_in_place_append_tag(Aad::from(self.bound(purpose, binding)), &mut body)
            .expect("small state seals");
        let mut out = Vec::with_capacity(HEAD + body.len());
        out.push(VERSION);
        out.extend_from_slice(&self.key_id);
        out.extend_from_slice(nonce.as_ref());
        out.extend_from_slice(&body);
        URL_SAFE_NO_PAD.encode(out)
    }

    /// What was sealed.
    ///
    /// # Errors
    /// [`SealError`] when the text was changed in any way, or sealed with another secret, purpose or binding.
    pub fn open(
        &self,
        purpose: Purpose,
        binding: &[&[u8]],
        text: &str,
    ) -> Result<Vec<u8>, SealError> {
        let mut bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| SealError)?;
        let (head, body) = bytes.split_at_mut_checked(HEAD).ok_or(SealError)?;
        let mut sealers = std::iter::once(self).chain(&self.former);
        let by = sealers.find(|sealer| sealer.key_id == head[1..=KEY_ID]);
        let by = by.filter(|_| head[0] == VERSION).ok_or(SealError)?;
        let nonce = Nonce::try_assume_unique_for_key(&head[1 + KEY_ID..]).map_err(|_| SealError)?;
        let plain = by.keys[purpose as usize]
            .open_in_place(nonce, Aad::from(by.bound(purpose, binding)), body)
            .map_err(|_| SealError)?;
        Ok(plain.to_vec())
    }

    /// Everything a seal is tied to, each part with its length so that no two lists of parts read the same.
    fn bound(&self, purpose: Purpose, binding: &[&[u8]]) -> Vec<u8> {
        let mut out = vec![VERSION];
        out.extend_from_slice(&self.key_id);
        for part in std::iter::once(&purpose.label()).chain(binding) {
            out.extend_from_slice(&(part.len() as u64).to_le_bytes());
            out.extend_from_slice(part);
        }
        out
    }
}

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sealer")
    }
}

/// Seconds since 1970, by the wall clock: comparable between replicas.
pub fn unix_seconds() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

#[expect(clippy::expect_used, reason = "see the invariant")]
fn key(secret: &[u8], purpose: Purpose) -> RandomizedNonceKey {
    // INVARIANT: the key has the length the algorithm takes.
    RandomizedNonceKey::new(&AES_256_GCM_SIV, &derive::<32>(secret, purpose.label()))
        .expect("32 bytes are an AES-256 key")
}

#[expect(clippy::expect_used, reason = "see the invariant")]
fn derive<const N: usize>(secret: &[u8], label: &[u8]) -> [u8; N] {
    struct Length(usize);
    impl KeyType for Length {
        fn len(&self) -> usize {
            self.0
        }
    }
    let mut out = [0; N];
    // INVARIANT: HKDF-SHA-256 yields up to 8,160 bytes and we ask for at most 32, into a buffer of that length.
    Salt::new(HKDF_SHA256, b"usher")
        .extract(secret)
        .expand(&[label], Length(N))
        .and_then(|material| material.fill(&mut out))
        .expect("HKDF yields a few bytes");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const BINDING: [&[u8]; 2] = [b"alice", b"tools"];

    #[test]
    fn what_is_sealed_opens_with_the_same_secret_on_another_replica() {
        let sealed = Sealer::new(b"secret").seal(Purpose::Cursor, &BINDING, b"here");
        assert_eq!(
            Sealer::new(b"secret")
                .open(Purpose::Cursor, &BINDING, &sealed)
                .unwrap(),
            b"here"
        );
    }

    #[test]
    fn equal_state_seals_differently_each_time() {
        let sealer = Sealer::new(b"secret");
        let seal = || sealer.seal(Purpose::Cursor, &BINDING, b"here");
        assert_ne!(seal(), seal());
    }

    #[test]
    fn nothing_opens_after_any_change() {
        let sealer = Sealer::new(b"secret");
        let sealed = sealer.seal(Purpose::Cursor, &BINDING, b"here");
        let bytes = URL_SAFE_NO_PAD.decode(&sealed).unwrap();
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut changed = bytes.clone();
                changed[at] ^= 1 << bit;
                let text = URL_SAFE_NO_PAD.encode(changed);
                assert_eq!(
                    sealer.open(Purpose::Cursor, &BINDING, &text),
                    Err(SealError)
                );
            }
        }
        for end in 0..sealed.len() {
            assert!(
                sealer
                    .open(Purpose::Cursor, &BINDING, &sealed[..end])
                    .is_err()
            );
        }
        assert!(
            sealer
                .open(Purpose::Cursor, &BINDING, &format!("{sealed}="))
                .is_err()
        );
    }

    /// SECURITY 10
    #[test]
    fn what_a_former_secret_sealed_opens_and_what_is_sealed_now_is_the_new_ones() {
        let (old, new) = (|| Sealer::new(b"old"), || Sealer::new(b"new"));
        let both = new().after([old()]);
        let open = |sealer: &Sealer, text: &str| sealer.open(Purpose::Resume, &BINDING, text);
        let sealed = old().seal(Purpose::Resume, &BINDING, b"here");
        assert_eq!(open(&both, &sealed).unwrap(), b"here");
        let anew = both.seal(Purpose::Resume, &BINDING, b"here");
        assert_eq!(open(&new(), &anew).unwrap(), b"here");
        assert!(open(&old(), &anew).is_err());
        assert!(
            open(
                &both,
                &Sealer::new(b"other").seal(Purpose::Resume, &BINDING, b"")
            )
            .is_err()
        );
    }

    #[test]
    fn nothing_opens_under_another_secret_or_binding() {
        let sealed = Sealer::new(b"secret").seal(Purpose::Cursor, &BINDING, b"here");
        assert!(
            Sealer::new(b"other")
                .open(Purpose::Cursor, &BINDING, &sealed)
                .is_err()
        );
        let wrong: [&[&[u8]]; 3] = [
            &[b"alicet", b"ools"],
            &[b"alice"],
            &[b"alice", b"tools", b""],
        ];
        for binding in wrong {
            assert!(
                Sealer::new(b"secret")
                    .open(Purpose::Cursor, binding, &sealed)
                    .is_err()
            );
        }
    }
}
