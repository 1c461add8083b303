//! Who sent what never came to be a call, and by which method: for the record of the refusal.

use std::{borrow::Cow, net::IpAddr, sync::Arc};

use super::Inbound;
use crate::{
    audit::journal::Sender,
    call::{Identity, IdentityKind},
    protocol::methods,
};

/// What of a message is kept while it is answered: nothing of it is at hand any more when it turns out to be no call.
pub(super) struct Sent {
    /// Who sent it, where they are known.
    identity: Option<Arc<Identity>>,
    /// What it asks for, as far as it was read.
    method: Method,
}

/// A method that was read. Those of the protocol cost nothing to keep.
pub(super) type Method = Option<Cow<'static, str>>;

impl Sent {
    /// Of this somebody.
    pub(super) fn by(identity: &Arc<Identity>, method: Method) -> Self {
        let known = identity.kind != IdentityKind::Anonymous;
        Self {
            identity: known.then(|| identity.clone()),
            method,
        }
    }

    /// Who sent it from this address.
    pub(super) fn at(&self, address: Option<IpAddr>) -> Sender<'_> {
        let sender = Sender::at(address).asking(self.method.as_deref());
        match &self.identity {
            Some(identity) => sender.by(identity),
            None => sender,
        }
    }
}

impl Inbound {
    /// Who sent it.
    pub(super) fn sender(&self) -> Sender<'_> {
        Sender::at(self.address).by(&self.identity)
    }
}

/// A method to keep.
pub(super) fn method(name: &str) -> Method {
    Some(match methods::of_clients(name) {
        Some(known) => Cow::Borrowed(known),
        None => Cow::Owned(name.to_owned()),
    })
}
