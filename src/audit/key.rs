//! The key that signs checkpoints, and the public half that verifies them.

use std::fmt;

use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use base64::{Engine, engine::general_purpose::STANDARD};
use zeroize::Zeroizing;

use super::chain::{ChainPosition, Hash};

/// What a checkpoint says: all records from `first` to `last` are as they were.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// The first record it covers.
    pub first: u64,
    /// The last one, and its hash.
    pub last: ChainPosition,
    /// The root of the tree over the hashes of those records.
    pub root: Hash,
}

impl Checkpoint {
    /// What is signed.
    fn message(&self) -> String {
        let Self { first, last, root } = self;
        format!(
            "usher audit checkpoint v1\n{first}\n{}\n{}\n{root}\n",
            last.seq, last.hash
        )
    }
}

/// A key that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// Not a private key in PKCS#8, PEM.
    #[error("not an Ed25519 private key (PKCS#8, PEM)")]
    Private,
    /// Not a public key in the form that we write.
    #[error("not an Ed25519 public key of an audit file: `ed25519:` and 44 characters of Base64")]
    Public,
}

/// Signs.
pub struct SigningKey(Ed25519KeyPair);

const BEGIN: &str = "-----BEGIN PRIVATE KEY-----";
const END: &str = "-----END PRIVATE KEY-----";

impl SigningKey {
    /// A new key, and the text to keep it in.
    #[expect(clippy::expect_used, reason = "see the invariants")]
    pub fn generate() -> (Self, String) {
        // INVARIANT: needs random bytes and nothing else, which the operating system gives after boot.
        let pair = Ed25519KeyPair::generate().expect("the system gives random bytes");
        // INVARIANT: a pair that was generated here can be written down.
        let document = pair.to_pkcs8v1().expect("a whole key serialises");
        let text = format!("{BEGIN}\n{}\n{END}\n", STANDARD.encode(document.as_ref()));
        (Self(pair), text)
    }

    /// The key in a file that [`SigningKey::generate`] wrote.
    ///
    /// # Errors
    /// [`KeyError::Private`].
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let inner = text.trim().strip_prefix(BEGIN);
        let inner = inner.and_then(|text| text.strip_suffix(END));
        let digits = inner.ok_or(KeyError::Private)?.split_whitespace();
        let digits: Zeroizing<String> = Zeroizing::new(digits.collect());
        let document = STANDARD.decode(&*digits).map(Zeroizing::new);
        let document = document.map_err(|_| KeyError::Private)?;
        let pair = Ed25519KeyPair::from_pkcs8(&document).map_err(|_| KeyError::Private)?;
        Ok(Self(pair))
    }

    /// The half that others verify with.
    pub fn public(&self) -> VerifyingKey {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(self.0.public_key().as_ref());
        VerifyingKey(bytes)
    }

    /// The signature of a checkpoint, in Base64.
    pub fn sign(&self, checkpoint: &Checkpoint) -> String {
        STANDARD.encode(self.0.sign(checkpoint.message().as_bytes()))
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningKey(..)")
    }
}

/// Verifies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VerifyingKey([u8; 32]);

const FORM: &str = "ed25519:";

impl VerifyingKey {
    /// The key in a text that its `Display` wrote.
    ///
    /// # Errors
    /// [`KeyError::Public`].
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let digits = text.trim().strip_prefix(FORM).ok_or(KeyError::Public)?;
        let bytes = STANDARD.decode(digits).map_err(|_| KeyError::Public)?;
        Ok(Self(bytes.try_into().map_err(|_| KeyError::Public)?))
    }

    /// Whether `signature`, in Base64, is this key's under the checkpoint.
    pub fn verifies(&self, checkpoint: &Checkpoint, signature: &str) -> bool {
        STANDARD.decode(signature).is_ok_and(|signature| {
            UnparsedPublicKey::new(&ED25519, self.0)
                .verify(checkpoint.message().as_bytes(), &signature)
                .is_ok()
        })
    }
}

impl fmt::Display for VerifyingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{FORM}{}", STANDARD.encode(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_was_kept_signs_as_before_and_another_does_not() {
        let (key, text) = SigningKey::generate();
        let again = SigningKey::parse(&text).unwrap();
        let checkpoint = Checkpoint {
            first: 1,
            last: ChainPosition {
                seq: 9,
                hash: Hash::of(b"9"),
            },
            root: Hash::of(b"root"),
        };
        let signature = again.sign(&checkpoint);
        let public = VerifyingKey::parse(&key.public().to_string()).unwrap();
        assert!(public.verifies(&checkpoint, &signature));
        assert!(
            !SigningKey::generate()
                .0
                .public()
                .verifies(&checkpoint, &signature)
        );
        let other = Checkpoint {
            first: 2,
            ..checkpoint
        };
        assert!(!public.verifies(&other, &signature));
        assert!(!public.verifies(&other, "no Base64"));
        assert_eq!(SigningKey::parse("nothing").unwrap_err(), KeyError::Private);
        assert_eq!(
            VerifyingKey::parse("ed25519:AA==").unwrap_err(),
            KeyError::Public
        );
    }
}
