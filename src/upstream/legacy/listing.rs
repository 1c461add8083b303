//! What a server of the handshake era offers, to all or to one.
//! Each list is walked on one session, and again on another if that was forgotten.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::time::Instant;

use super::{
    Legacy,
    pool::{SessionKey, Slot},
    session::Session,
};
use crate::{
    call::{Identity, ServerCard},
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

/// How long a server is waited for that is asked for what it has not promised: it may not answer at all.
const UNPROMISED: Duration = Duration::from_secs(5);

/// Whether a server promises not one list, as some do that have tools all the same.
fn promises_no_list(card: &ServerCard) -> bool {
    !ListKind::EVERY.into_iter().any(|kind| offers(card, kind))
}

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
            let listing = self.offered_on(&session, (&slot, Some(who)), kind, holder);
            *contribution.listing_mut(kind) = listing.await?;
        }
        contribution.card = Some(session.card.clone());
        Ok(contribution)
    }

    /// One list of what `session`, which is in the slot now, says that it offers.
    pub(super) async fn offered_on(
        &self,
        session: &Session,
        (slot, behalf): (&Arc<Slot>, Option<&Arc<Identity>>),
        kind: ListKind,
        holder: &Holder,
    ) -> Result<Listing, UpstreamError> {
        let unsaid = kind == ListKind::Tools && promises_no_list(&session.card);
        if offers(&session.card, kind) || unsaid && self.has_tools(session).await {
            self.listing(slot, behalf, kind, holder).await
        } else {
            Ok(Listing::default())
        }
    }

    /// Whether a server that promises nothing answers when it is asked for its tools. Whatever else it says at first is no sign
    /// of anything, for it has promised none; later a failure is one, and not the end of its tools.
    async fn has_tools(&self, session: &Session) -> bool {
        if self.has_unpromised.load(Ordering::Relaxed) {
            return true;
        }
        let line = &session.line;
        let deadline = Instant::now() + self.terms.timeouts.list.min(UNPROMISED);
        let kind = ListKind::Tools;
        let (params, headers) = (Json::empty_object(), line.headers.clone());
        let asked = exchange::ask(line, kind.method(), &params, headers, deadline, false).await;
        let has = match asked {
            Ok(AskOutcome::Result(_, result)) => result.root().member(kind.member()).is_some(),
            Ok(AskOutcome::Error(..) | AskOutcome::Status(_)) | Err(_) => false,
        };
        self.has_unpromised.fetch_or(has, Ordering::Relaxed);
        has
    }

    async fn listing(
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upstream::{
        Peer,
        legacy::tests::over,
        scripted::{Play, Scripted, an_address, result},
    };

    /// A peer whose server promises these capabilities, and answers `tools/list` so.
    async fn promising(capabilities: &'static str, tools: Play) -> (Arc<Scripted>, Legacy) {
        let transport = Scripted::new(move |sent| match sent.method.as_str() {
            "initialize" => Play::Session(
                "s",
                format!(r#"{{"protocolVersion":"2025-06-18","capabilities":{capabilities}}}"#),
            ),
            "notifications/initialized" => Play::Status(202),
            "tools/list" => tools.clone(),
            _ => Play::Error(200, -32601, ""),
        });
        let peer = over(&transport, &an_address()).await;
        (transport, peer)
    }

    /// To all, and to one.
    async fn tools_of(peer: &Legacy) -> [usize; 2] {
        let all = peer.list(ListKind::Tools).await.unwrap();
        let who = Identity::anonymous();
        let own = peer.offer_to(&who, &peer.terms.lists).await.unwrap();
        [all.items.len(), own.tools.items.len()]
    }

    #[tokio::test(start_paused = true)]
    async fn who_promises_nothing_is_asked_for_tools_and_whatever_but_a_list_is_none() {
        let begun = Instant::now();
        for (play, found) in [
            (result(r#"{"tools":[{"name":"a"}]}"#), 1),
            (result("{}"), 0),
            (Play::Error(200, -32601, ""), 0),
            (Play::Error(400, -32602, ""), 0),
            (Play::Error(500, -32603, ""), 0),
            (Play::Status(404), 0),
            (Play::Hang, 0),
        ] {
            let (transport, peer) = promising("{}", play).await;
            assert_eq!(tools_of(&peer).await, [found; 2]);
            // What it was asked for unasked says nothing of its sessions, or of what it is.
            assert_eq!(transport.sent_of("initialize").len(), 2);
            assert!(!peer.wire.doubt.take());
            for kind in ListKind::EVERY {
                let others = kind != ListKind::Tools;
                assert!(!others || transport.sent_of(kind.method()).is_empty());
            }
        }
        assert!(begun.elapsed() < 3 * UNPROMISED);
    }

    /// A server that was begun anew knows no session, and one that is away has its tools all the same.
    #[tokio::test]
    async fn tools_that_were_not_promised_are_not_lost_with_a_session_or_an_answer() {
        let mut plays = [
            result(r#"{"tools":[{"name":"a"}]}"#),
            result(r#"{"tools":[{"name":"a"}]}"#),
            Play::Status(404),
            result(r#"{"tools":[{"name":"b"}]}"#),
            Play::Status(503),
        ]
        .into_iter();
        let transport = Scripted::new(move |sent| match sent.method.as_str() {
            "initialize" => Play::Session(
                "s",
                r#"{"protocolVersion":"2025-06-18","capabilities":{}}"#.into(),
            ),
            "notifications/initialized" => Play::Status(202),
            _ => plays.next().unwrap(),
        });
        let peer = over(&transport, &an_address()).await;
        for found in [Some(1), Some(1), None] {
            let listing = peer.list(ListKind::Tools).await.ok();
            assert_eq!(listing.map(|listing| listing.items.len()), found);
        }
        assert_eq!(transport.sent_of("initialize").len(), 2);
    }

    #[tokio::test]
    async fn who_promises_another_list_is_not_asked_for_tools() {
        let tools = result(r#"{"tools":[{"name":"a"}]}"#);
        let (transport, peer) = promising(r#"{"prompts":{}}"#, tools).await;
        assert_eq!(tools_of(&peer).await, [0; 2]);
        assert!(transport.sent_of("tools/list").is_empty());
    }
}
