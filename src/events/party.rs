//! Parties: whose listens are counted together against the bound per principal.

use std::net::{IpAddr, Ipv6Addr};

use crate::call::Principal;

/// Whose place a listen takes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Party {
    /// A principal's that is known by name.
    Known(Principal),
    /// Of whoever has no name, and comes from this address elsewhere; of IPv6 from the network that one customer has.
    From(IpAddr),
    /// Of whoever has no name on this machine, where all are at one address, and its operator's guests.
    Anybody,
}

impl Party {
    /// The party of whoever calls from there.
    pub fn of(principal: &Principal, address: Option<IpAddr>) -> Self {
        if *principal != Principal::anonymous() {
            return Self::Known(principal.clone());
        }
        let address = address.map(|address| address.to_canonical());
        match address.filter(|address| !address.is_loopback()) {
            None => Self::Anybody,
            Some(IpAddr::V6(v6)) => {
                let network = v6.to_bits() & !u128::from(u64::MAX);
                Self::From(Ipv6Addr::from_bits(network).into())
            }
            Some(v4 @ IpAddr::V4(_)) => Self::From(v4),
        }
    }

    /// The principal.
    pub(super) fn principal(&self) -> Principal {
        match self {
            Self::Known(principal) => principal.clone(),
            Self::From(_) | Self::Anybody => Principal::anonymous(),
        }
    }

    /// Whether it has a bound of its own beside that of all together.
    pub(super) const fn is_bounded(&self) -> bool {
        match self {
            Self::Known(_) | Self::From(_) => true,
            Self::Anybody => false,
        }
    }
}
