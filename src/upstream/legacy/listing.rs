//! What a server of the handshake era offers, to all or to one.
//! Each list is walked on one session, and again on another if that was forgotten.

use std::sync::Arc;

use tokio::time::Instant;

use super::{
    Legacy,
    pool::{SessionKey, Slot},
};
use crate::{
    call::Identity,
    catalog::{Contribution, Listing},
    json::Json,
    protocol::{Era, codes, meta, methods::ListKind},
    upstream::{
        UpstreamError,
        asking::Offer,
        exchange::{self, AskOutcome},
        holdings::Holder,
        lists,
        modern::offers,
        transport::is_busy,
    },
};

impl Legacy {
    /// The session on which the lists of one principal are read, and heard of.
    pub(super) fn own_slot(&self, who: &Identity) -> Result<Arc<Slot>, UpstreamError> {
        let key = SessionKey {
            owner: who.grantee().text(),
            offer: Offer::LISTING,
        };
        self.keyed.slot(&key, Some(&who.principal), None)
    }

    /// What a principal sees of the server, on a session of their own.
    pub(super) async fn offered(
        &self,
        who: &Arc<Identity>,
        holder: &Holder,
    ) -> Result<Contribution, UpstreamError> {
        let slot = self.own_slot(who)?;
        let deadline = Instant::now() + self.terms.timeouts.list;
        let session = self.session(&slot, Some(who), deadline).await?;
        session.line.speaks_for(who);
        let mut contribution = Contribution::default();
        for kind in ListKind::EVERY {
            if offers(&session.card, kind) {
                let listing = self.listing(&slot, Some(who), kind, holder).await?;
                *contribution.listing_mut(kind) = listing;
            }
        }
        contribution.card = Some(session.card.clone());
        Ok(contribution)
    }

    pub(super) async fn listing(
        &self,
        slot: &Arc<Slot>,
        behalf: Option<&Arc<Identity>>,
        kind: ListKind,
        holder: &Holder,
    ) -> Result<Listing, UpstreamError> {
        let deadline = Instant::now() + self.terms.timeouts.list;
        let walk = || self.drain(slot, behalf, kind, holder, deadline);
        match walk().await {
            // Pages belong to one session, so the walk begins again with a new one.
            Ok(None) => walk()
                .await?
                .ok_or_else(|| UpstreamError::answered("its session ended at once")),
            Ok(Some(listing)) => Ok(listing),
            Err(error) => Err(error),
        }
    }

    /// The whole list; `None` when the session turned out to be gone.
    async fn drain(
        &self,
        slot: &Arc<Slot>,
        behalf: Option<&Arc<Identity>>,
        kind: ListKind,
        holder: &Holder,
        deadline: Instant,
    ) -> Result<Option<Listing>, UpstreamError> {
        let session = self.session(slot, behalf, deadline).await?;
        let page = |cursor: Option<String>| {
            let session = &session;
            async move {
                let members: Vec<_> = cursor
                    .map(|cursor| ("cursor", Json::string(&cursor)))
                    .into_iter()
                    .collect();
                let line = &session.line;
                let headers = line.headers.clone();
                let params = meta::object_of(&members);
                let asked =
                    exchange::ask(line, kind.method(), &params, headers, deadline, false).await?;
                match asked {
                    AskOutcome::Result(_, result) => Ok(result),
                    // It came at a bad time, whatever the message says.
                    AskOutcome::Error(head, _) if is_busy(head.status.as_u16()) => {
                        Err(exchange::bare(&head))
                    }
                    // A list may be asked for again, so any refusal that is not of this era is reason to open anew.
                    AskOutcome::Error(head, error)
                        if session.is_named() && head.status.is_client_error() =>
                    {
                        if session.is_forgotten(&head, Some(&error)) {
                            session.gone.cancel();
                        } else {
                            session.replaced();
                        }
                        Err(UpstreamError::answered("its session had ended"))
                    }
                    // Some servers that are what they were send their errors with such a status, too.
                    AskOutcome::Error(head, error) => {
                        session.suspect(&head);
                        if error.code == codes::METHOD_NOT_FOUND {
                            Ok(meta::object_of(&[(kind.member(), Json::of::<[u8]>(&[]))]))
                        } else {
                            Err(UpstreamError::Refused(error))
                        }
                    }
                    AskOutcome::Status(head) => {
                        if session.is_forgotten(&head, None) {
                            session.gone.cancel();
                        }
                        session.suspect(&head);
                        Err(exchange::bare(&head))
                    }
                }
            }
        };
        match lists::drain(kind, Era::Legacy, &self.terms.bounds, holder, page).await {
            Ok(listing) => Ok(Some(listing)),
            Err(_) if session.gone.is_cancelled() && session.is_named() => Ok(None),
            Err(error) => Err(error),
        }
    }
}
