//! Whose something is that outlives its request (SECURITY I2).

use std::sync::Arc;

use super::{Identity, Principal};
use crate::protocol::names::Scope;

/// Whose a session, a stream with its own post, a question, a task or a place in a list is: who, by which OAuth client, and
/// at which endpoint. To anybody else, another client of the same person among them, it is as unknown as none (SECURITY
/// STATE-1, STATE-2, STATE-6, STATE-7).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Owner {
    principal: Principal,
    client: Option<Arc<str>>,
    scope: Scope,
}

impl Owner {
    /// The owner of what this somebody begins at this endpoint.
    pub fn of(identity: &Identity, scope: &Scope) -> Self {
        Self {
            principal: identity.principal.clone(),
            client: identity.client.clone(),
            scope: scope.clone(),
        }
    }

    /// Whether this is what [`Owner::of`] makes of them.
    pub fn is(&self, identity: &Identity, scope: &Scope) -> bool {
        let Self {
            principal,
            client,
            scope: own,
        } = self;
        *principal == identity.principal && *client == identity.client && own == scope
    }

    /// Who.
    pub const fn principal(&self) -> &Principal {
        &self.principal
    }

    /// At which endpoint.
    pub const fn scope(&self) -> &Scope {
        &self.scope
    }

    /// What a seal is tied to that opens for this owner alone; as long as whatever else it is tied to has a fixed number of
    /// parts, no two owners' are the same.
    pub fn parts(&self) -> impl Iterator<Item = &[u8]> {
        let (sort, name) = match &self.scope {
            Scope::All => ("all", ""),
            Scope::Toolset(name) => ("toolset", &**name),
            Scope::Upstream(id) => ("upstream", id.as_str()),
        };
        // Left out, not empty, where there is none: so do handles that earlier versions gave out open.
        let client = self.client.as_deref();
        let parts = std::iter::once(self.principal.as_str()).chain(client);
        parts.chain([sort, name]).map(str::as_bytes)
    }
}

#[cfg(test)]
impl Owner {
    /// Somebody of this name at this endpoint, for tests.
    pub(crate) fn named(name: &str, client: Option<&str>, scope: &Scope) -> Self {
        Self {
            principal: Principal::new(name),
            client: client.map(Arc::from),
            scope: scope.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::UpstreamId;

    #[test]
    fn no_two_owners_are_sealed_for_alike() {
        let scopes = [
            Scope::All,
            Scope::Toolset("".into()),
            Scope::Toolset("x".into()),
            Scope::Upstream(UpstreamId::parse("x").unwrap()),
        ];
        let mut all = Vec::new();
        for scope in &scopes {
            for who in ["", "ana", "all", "anaall"] {
                for client in [None, Some(""), Some("all"), Some("ana")] {
                    all.push(Owner::named(who, client, scope));
                }
            }
        }
        for (at, one) in all.iter().enumerate() {
            for (other_at, other) in all.iter().enumerate() {
                assert_eq!(one.parts().eq(other.parts()), at == other_at);
                assert_eq!(one == other, at == other_at);
            }
        }
    }
}
