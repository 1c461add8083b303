//! Who a case or a command is about: somebody by name, as an identity.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use crate::{
    call::{Identity, IdentityKind, Principal},
    policy::schema::type_of,
};

/// Somebody, as files and command lines tell of them.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Somebody {
    /// A person.
    pub user: Option<String>,
    /// An OAuth client that acts for itself.
    pub agent: Option<String>,
    /// An API key.
    pub key: Option<String>,
    /// Groups that the credential names.
    pub groups: Vec<String>,
    /// The tenant.
    pub tenant: Option<String>,
    /// Scopes that were granted.
    pub scopes: Vec<String>,
    /// The OAuth client.
    pub client: Option<String>,
    /// Who vouches.
    pub issuer: Option<String>,
    /// Who answers for the key.
    pub owner: Option<String>,
}

impl Somebody {
    /// As an identity: anonymous where nobody is named; `None` where several are.
    pub fn identity(&self) -> Option<Identity> {
        let named = [&self.user, &self.agent, &self.key];
        let several = named.into_iter().flatten().count() > 1;
        (!several).then(|| self.only())
    }

    /// The first that is named.
    pub(in crate::policy) fn only(&self) -> Identity {
        let named = [
            (IdentityKind::User, &self.user),
            (IdentityKind::Agent, &self.agent),
            (IdentityKind::Key, &self.key),
        ];
        let mut named = named
            .into_iter()
            .filter_map(|(kind, name)| Some((kind, name.as_deref()?)));
        let (kind, name) = named
            .next()
            .unwrap_or((IdentityKind::Anonymous, "anonymous"));
        let shared = |text: &String| Arc::<str>::from(text.as_str());
        Identity {
            principal: Principal::new(format!("{}:{name}", type_of(kind))),
            kind,
            name: name.into(),
            issuer: self.issuer.as_ref().map(shared),
            groups: self.groups.iter().map(shared).collect(),
            tenant: self.tenant.as_ref().map(shared),
            scopes: self.scopes.iter().map(shared).collect(),
            client: self.client.as_ref().map(shared),
            owner: self.owner.as_ref().map(shared),
            until: None,
            revoked: CancellationToken::new(),
            key: None,
            assertion: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whom_a_command_line_names_has_proved_nothing() {
        let ana = Somebody {
            user: Some("ana".into()),
            ..Somebody::default()
        };
        assert_eq!(ana.only().method(), None);
    }
}
