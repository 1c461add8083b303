//! What a rule can see of a call.

use std::net::{IpAddr, Ipv6Addr};

use super::{
    meter_map::{Key, Keys, Making},
    rule::{Dimension, Pattern, Rule},
};
use crate::{
    call::{Identity, IdentityKind},
    protocol::{UpstreamId, names::Scope},
};

/// What a call is about, as far as rules may ask.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// Who sent it.
    pub identity: &'a Identity,
    /// From where; `None` on a pipe, and for what a session does of its own.
    pub address: Option<IpAddr>,
    /// Through which endpoint.
    pub scope: &'a Scope,
    /// Its method.
    pub method: &'a str,
    /// The tool that is called, by its name at the endpoint that serves everything; `None` for other methods, and at entry.
    pub tool: Option<&'a str>,
    /// Where it goes; `None` where it goes nowhere, and at entry.
    pub upstream: Option<&'a UpstreamId>,
}

impl<'a> Subject<'a> {
    /// Whether a rule is about this call: all of its patterns mean it, and where it counts by tool or by upstream there is
    /// one. What is counted by anything else that a call does not have counts together with all calls that do not have it:
    /// lacking a tenant is no way around a rule for tenants.
    pub(super) fn meets(&self, rule: &Rule) -> bool {
        let routed = |dimension: &Dimension| match dimension {
            Dimension::Tool => self.tool.is_some(),
            Dimension::Upstream => self.upstream.is_some(),
            Dimension::Principal
            | Dimension::Group
            | Dimension::Tenant
            | Dimension::Client
            | Dimension::Address
            | Dimension::Toolset
            | Dimension::Method => true,
        };
        rule.per.iter().all(routed)
            && rule
                .only
                .iter()
                .all(|(dimension, pattern)| match dimension {
                    Dimension::Group => self
                        .identity
                        .groups
                        .iter()
                        .any(|group| pattern.means(group)),
                    Dimension::Address => self
                        .address
                        .is_some_and(|address| pattern.means(&address.to_string())),
                    Dimension::Principal => pattern.means(&self.identity.name),
                    Dimension::Tenant
                    | Dimension::Client
                    | Dimension::Toolset
                    | Dimension::Upstream
                    | Dimension::Tool
                    | Dimension::Method => self
                        .text(*dimension)
                        .is_some_and(|text| pattern.means(text)),
                })
    }

    /// The keys that this call counts under: one, but where a rule counts by group, one for each group that it is about.
    pub(super) fn keys(&self, rule: &'a Rule, keys: &'a Keys) -> impl Iterator<Item = Key> {
        let by_group = rule.per.contains(&Dimension::Group);
        let meant = rule
            .only
            .iter()
            .find_map(|(dimension, pattern)| (*dimension == Dimension::Group).then_some(pattern));
        let groups = self.identity.groups.iter().map(|group| &**group);
        let mut groups = groups
            .filter(move |group| meant.is_none_or(|pattern: &Pattern| pattern.means(group)))
            .peekable();
        let alone = !by_group || groups.peek().is_none();
        let this = *self;
        let one = alone.then(|| this.key(rule, keys, None));
        let each = groups
            .filter(move |_| !alone)
            .map(move |group| this.key(rule, keys, Some(group)));
        one.into_iter().chain(each)
    }

    /// The key of the principal; `None` for whoever was not asked for a name.
    pub(super) fn named(&self, keys: &Keys) -> Option<Key> {
        (self.identity.kind != IdentityKind::Anonymous).then(|| {
            let mut making = keys.make();
            making.part(Some(self.identity.principal.as_str().as_bytes()));
            making.done()
        })
    }

    /// The key of the principal and where it goes, where there are both.
    pub(super) fn named_way(&self, keys: &Keys) -> Option<Key> {
        let upstream = self.upstream?;
        (self.identity.kind != IdentityKind::Anonymous).then(|| {
            let mut making = keys.make();
            making.part(Some(self.identity.principal.as_str().as_bytes()));
            making.part(Some(upstream.as_str().as_bytes()));
            making.done()
        })
    }

    fn key(&self, rule: &Rule, keys: &Keys, group: Option<&str>) -> Key {
        let mut making = keys.make();
        for dimension in &rule.per {
            self.part(*dimension, group, &mut making);
        }
        making.done()
    }

    fn part(&self, dimension: Dimension, group: Option<&str>, making: &mut Making) {
        match dimension {
            Dimension::Group => making.part(group.map(str::as_bytes)),
            Dimension::Address => match self.address {
                None => making.part(None),
                Some(IpAddr::V4(v4)) => making.part(Some(&v4.octets())),
                Some(IpAddr::V6(v6)) => making.part(Some(&network(v6))),
            },
            Dimension::Principal => {
                making.part(Some(self.identity.principal.as_str().as_bytes()));
            }
            Dimension::Tenant
            | Dimension::Client
            | Dimension::Toolset
            | Dimension::Upstream
            | Dimension::Tool
            | Dimension::Method => making.part(self.text(dimension).map(str::as_bytes)),
        }
    }

    fn text(&self, dimension: Dimension) -> Option<&'a str> {
        match dimension {
            Dimension::Tenant => self.identity.tenant.as_deref(),
            Dimension::Client => self.identity.client.as_deref(),
            Dimension::Toolset => match self.scope {
                Scope::Toolset(name) => Some(name),
                Scope::All | Scope::Upstream(_) => None,
            },
            Dimension::Upstream => self.upstream.map(UpstreamId::as_str),
            Dimension::Tool => self.tool,
            Dimension::Method => Some(self.method),
            Dimension::Principal => Some(&self.identity.name),
            // These are no texts, or more than one.
            Dimension::Group | Dimension::Address => None,
        }
    }
}

/// The part of an IPv6 address that one customer has.
fn network(address: Ipv6Addr) -> [u8; 8] {
    let [a, b, c, d, e, f, g, h, ..] = address.octets();
    [a, b, c, d, e, f, g, h]
}
