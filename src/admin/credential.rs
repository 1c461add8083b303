//! Who comes to the admin plane, and as what.
//!
//! Guarantees: tokens are compared in constant time, by digests of equal length; whoever brings both of two equal tokens cannot
//! exist, since configuration refuses them; none is ever shown but the one that was made at the start, once.

use std::fmt::Write as _;

use aws_lc_rs::{
    constant_time::verify_slices_are_equal,
    digest::{Digest, SHA256, digest},
    rand,
};
use schemars::JsonSchema;
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;

use super::AdminSpec;

/// As what somebody comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Looks at everything.
    Auditor,
    /// Looks at everything, and changes what can be changed.
    Operator,
}

impl Role {
    /// `auditor` or `operator`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Auditor => "auditor",
            Self::Operator => "operator",
        }
    }
}

/// What proves to be whom.
pub(super) struct Credentials {
    operator: Digest,
    auditor: Option<Digest>,
}

impl Credentials {
    /// Those of `spec`; where it has no token for operators one is made, and given back to be told.
    pub(super) fn of(spec: &AdminSpec) -> (Self, Option<SecretString>) {
        let made = match &spec.token {
            Some(_) => None,
            None => Some(random()),
        };
        let operator = spec.token.as_ref().or(made.as_ref());
        let credentials = Self {
            operator: digested(operator.map_or("", ExposeSecret::expose_secret)),
            auditor: spec
                .auditor_token
                .as_ref()
                .map(|token| digested(token.expose_secret())),
        };
        (credentials, made)
    }

    /// As what whoever brings this token comes. Every token is compared, whichever matches.
    pub(super) fn role(&self, token: &str) -> Option<Role> {
        let brought = digested(token);
        let is = |known: &Digest| verify_slices_are_equal(known.as_ref(), brought.as_ref()).is_ok();
        let operator = is(&self.operator);
        let auditor = self.auditor.as_ref().is_some_and(is);
        match (operator, auditor) {
            (true, _) => Some(Role::Operator),
            (false, true) => Some(Role::Auditor),
            (false, false) => None,
        }
    }
}

/// 256 random bits in hexadecimal.
#[expect(clippy::expect_used, reason = "see the invariant")]
fn random() -> SecretString {
    let mut bytes = [0_u8; 32];
    // INVARIANT: the system's generator fails only before the machine has any entropy, where nothing of ours may run.
    rand::fill(&mut bytes).expect("the system gives random bytes");
    let text = bytes.iter().fold(String::new(), |mut text, byte| {
        _ = write!(text, "{byte:02x}");
        text
    });
    text.into()
}

fn digested(token: &str) -> Digest {
    digest(&SHA256, token.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::spec::ListenSpec;

    fn spec(token: Option<&str>, auditor: Option<&str>) -> AdminSpec {
        AdminSpec {
            listen: ListenSpec {
                address: ([127, 0, 0, 1], 0).into(),
                hosts: Vec::new(),
                trusted_proxies: Vec::new(),
                tls: None,
                bounds: AdminSpec::bounds(),
            },
            token: token.map(Into::into),
            auditor_token: auditor.map(Into::into),
        }
    }

    #[test]
    fn a_token_is_what_it_was_given_for_and_nothing_else_is_anything() {
        let (one, other) = ("a".repeat(32), "b".repeat(32));
        let (credentials, made) = Credentials::of(&spec(Some(&one), Some(&other)));
        assert!(made.is_none());
        assert_eq!(credentials.role(&one), Some(Role::Operator));
        assert_eq!(credentials.role(&other), Some(Role::Auditor));
        for wrong in ["", "a", &one[1..], &format!("{one}a")] {
            assert_eq!(credentials.role(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_token_is_made_for_each_start_where_none_is_configured() {
        let (credentials, made) = Credentials::of(&spec(None, None));
        let made = made.unwrap();
        assert_eq!(made.expose_secret().len(), 64);
        assert_eq!(credentials.role(made.expose_secret()), Some(Role::Operator));
        let (_, again) = Credentials::of(&spec(None, None));
        assert_ne!(made.expose_secret(), again.unwrap().expose_secret());
        assert_eq!(credentials.role(""), None);
    }
}
