//! What a session listens for: changed lists for as long as it lives, resources for as long as they are subscribed to.
//!
//! Each is a call of its own, down the same stack as every other, so that a session hears of nothing it may not see.
//! Guarantees: a subscription is confirmed only when the acknowledgement lists its URI, and is not heard when its client has ended
//! it before that; all end with the session.

use std::{
    net::IpAddr,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use futures_util::{FutureExt as _, StreamExt};
use http::StatusCode;
use tokio::sync::watch;
use tokio_util::{future::FutureExt as _, sync::CancellationToken};

use super::{
    Session,
    dialect::{Legacy, in_band},
    notice::Notice,
    subscriptions::{Asking, NotNow},
};
use crate::{
    call::{
        Call, CallId, Cut, Event, Filter, Op, Origin, Outcome, Reply, ReplyStream, Step, Trail,
    },
    downstream::problem::{self, Problem},
    json::Json,
    jsonrpc::RequestId,
    metrics::{Bound, reached},
    protocol::{Era, codes, methods, methods::ListKind},
    stack::{Error, McpService},
};

/// How long a subscription may take to be confirmed: longer than it is waited for upstream, so that the answer is that one's.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long after a listen was lost the next one is tried, and at most where one after the other is refused.
const AGAIN: Duration = Duration::from_secs(5);
const AT_MOST: Duration = Duration::from_secs(60);

impl Legacy<'_> {
    /// Begins to hear of changed lists, once for each session.
    pub(in crate::downstream) fn hear(&self, session: &Arc<Session>) {
        if session.listening.swap(true, Ordering::Relaxed) {
            return;
        }
        let filter = Arc::new(Filter {
            tools: true,
            prompts: true,
            resources: true,
            ..Filter::default()
        });
        let (service, session) = (self.door.backing.service.clone(), session.clone());
        let life = self.door.sessions.bounds().absolute;
        let ended = session.ended.clone();
        let work = async move {
            let (mut missed, mut wait) = (false, AGAIN);
            loop {
                let mut proved = session.proved_anew();
                // In a box, since there is one such task for each session, and it does this once.
                let mut call = hearing(&session, filter.clone(), life);
                call.unasked = true;
                call.trail = Trail::of(Origin::default());
                let trail = call.trail.clone();
                match Box::pin(listen(&service, call)).await {
                    Ok(stream) => {
                        // What changed in between was not heard.
                        if missed {
                            session.tell_lists();
                        }
                        wait = AGAIN;
                        tokio::select! {
                            // Who has other rights now sees other lists, and has to be told by these.
                            () = has_other_rights(&mut proved, &trail) => {}
                            meant = forward(&session, stream, None) => if meant {
                                return;
                            },
                        }
                    }
                    // Whoever offers no listening now never will.
                    Err(
                        Error::NotOffered(_) | Error::NoScope | Error::ShuttingDown | Error::CutOff,
                    ) => return,
                    Err(_) if missed => wait = (wait * 2).min(AT_MOST),
                    Err(_) => {}
                }
                missed = true;
                tokio::time::sleep(wait).await;
            }
        };
        self.door
            .backing
            .tasks
            .spawn(work.with_cancellation_token_owned(ended).map(drop));
    }

    /// Subscribes to one resource: confirmed when the acknowledgement lists it. `address` and `trail` are of the request, whose
    /// record is that of the listen, and what a refusal refers to.
    pub(super) async fn subscribe(
        &self,
        session: &Arc<Session>,
        uri: Arc<str>,
        (address, trail): (Option<IpAddr>, Trail),
    ) -> Result<(), Problem> {
        let most = self.door.sessions.bounds().addresses;
        let asking = match Asking::of(session, &uri, most) {
            Ok(Some(asking)) => asking,
            Ok(None) => return Ok(()),
            Err(NotNow::TooMany) => return Err(too_many()),
            Err(NotNow::Ended) => return Err(Problem::session_unknown(None)),
        };
        let life = self.door.sessions.bounds().absolute;
        let mut proved = session.proved_anew();
        let mut call = watching(session, &uri, life);
        (call.address, call.trail) = (address, trail.clone());
        let number = call.id;
        let opened = tokio::select! {
            biased;
            () = unsubscribed(&asking.unwanted, session, &trail) => None,
            opened = confirmed(&self.door.backing.service, call, &uri) => Some(opened),
        };
        let opened = opened
            .transpose()
            .map_err(|error| refused(&error, number))?;
        let Some(stream) = opened else {
            return not_needed(session, &trail);
        };
        let Some(hearing) = asking.confirmed() else {
            return not_needed(session, &trail);
        };
        let (service, session) = (self.door.backing.service.clone(), session.clone());
        self.door.backing.tasks.spawn(async move {
            let heard = async {
                let (mut stream, mut trail) = (stream, trail);
                loop {
                    tokio::select! {
                        () = unsubscribed(&hearing.over, &session, &trail) => return true,
                        () = has_other_rights(&mut proved, &trail) => {}
                        meant = forward(&session, stream, Some(&uri)) => return meant,
                    }
                    // By other rights it is another subscription, if it is one still.
                    hearing.set_in_force(false);
                    match confirmed_again(&service, &session, &uri, life, &mut proved).await {
                        Some(again) => (stream, trail) = again,
                        None => return true,
                    }
                    hearing.set_in_force(true);
                    // What changed in between was not heard.
                    session.outbox.notify(Notice::updated(uri.clone()));
                }
            };
            let meant = tokio::select! {
                biased;
                meant = heard => meant,
                () = hearing.over.cancelled() => true,
            };
            // Ended from the other side: it is to be subscribed to anew, and worth looking at now, unless it was to end.
            drop(hearing);
            if !meant && !session.ended.is_cancelled() {
                session.outbox.notify(Notice::updated(uri));
            }
        });
        Ok(())
    }
}

/// Waits until its client no longer wants to hear of a resource, and says of the listen that it is over by that. Where the session
/// ends, and the listen with it, nobody said so.
async fn unsubscribed(token: &CancellationToken, session: &Session, trail: &Trail) {
    token.cancelled().await;
    if !session.ended.is_cancelled() {
        trail.finish();
    }
}

/// Waits until who listens has other rights, and says of the listen that it is over by that: another begins.
async fn has_other_rights(proved: &mut watch::Receiver<u64>, trail: &Trail) {
    // Whoever tells of it is the session, which is there.
    _ = proved.changed().await;
    trail.cut_alone(Cut::Renewed);
}

/// What is said where a listen is not to be heard: its client has unsubscribed meanwhile, or another one is heard.
fn not_needed(session: &Session, trail: &Trail) -> Result<(), Problem> {
    if session.ended.is_cancelled() {
        return Err(Problem::session_unknown(None));
    }
    // Before it is dropped, which else looks as if it had been given up.
    trail.finish();
    Ok(())
}

/// The call that listens for one resource.
fn watching(session: &Session, uri: &Arc<str>, life: Duration) -> Box<Call> {
    let filter = Filter {
        subscriptions: vec![uri.clone()],
        ..Filter::default()
    };
    hearing(session, filter.into(), life)
}

/// What such a call opens, if the acknowledgement lists the resource.
async fn confirmed(
    service: &McpService,
    call: Box<Call>,
    uri: &Arc<str>,
) -> Result<ReplyStream, Error> {
    let trail = call.trail.clone();
    let opening = async {
        let mut stream = listen(service, call).await?;
        Ok::<_, Error>((stream.next().await, stream))
    };
    // It is said of the listen before that is dropped, which else looks like one that its client gave up.
    let late = async {
        tokio::time::sleep(PATIENCE).await;
        trail.cut(Some(Cut::Late));
    };
    let (first, stream) = tokio::select! {
        biased;
        opened = opening => opened?,
        () = late => return Err(Error::Deadline),
    };
    match first {
        Some(Step::Event(Event::Acknowledged(filter))) if filter.subscriptions.contains(uri) => {
            Ok(stream)
        }
        _ => Err(Error::NotSubscribable { gone: false }),
    }
}

/// The same once more, by the rights that hold by now, tried until it is confirmed; `None` when it never will be. That its upstream is
/// away, or that there is no room, passes.
async fn confirmed_again(
    service: &McpService,
    session: &Session,
    uri: &Arc<str>,
    life: Duration,
    proved: &mut watch::Receiver<u64>,
) -> Option<(ReplyStream, Trail)> {
    let mut wait = AGAIN;
    loop {
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            // What was refused by the rights of before may be granted by these. Whoever tells of them is the session,
            // which is there.
            _ = proved.changed() => {
                wait = AGAIN;
                tokio::time::sleep(AGAIN).await;
            }
        }
        proved.mark_unchanged();
        let mut again = watching(session, uri, life);
        again.unasked = true;
        again.trail = Trail::of(Origin::default());
        let trail = again.trail.clone();
        match Box::pin(confirmed(service, again, uri)).await {
            Ok(stream) => return Some((stream, trail)),
            Err(Error::ShuttingDown | Error::CutOff) => return None,
            Err(error) if error.is_gone() => return None,
            Err(_) => wait = (wait * 2).min(AT_MOST),
        }
    }
}

impl Session {
    /// Tells the client that every list may be another one, where changes were missed.
    pub(in crate::downstream) fn tell_lists(&self) {
        for kind in [ListKind::Tools, ListKind::Prompts, ListKind::Resources] {
            self.outbox.notify(Notice::list(kind));
        }
    }
}

/// One listen of the session's.
fn hearing(session: &Session, filter: Arc<Filter>, life: Duration) -> Box<Call> {
    session.call(
        &session.identity(),
        Op::Listen(filter),
        Json::empty_object(),
        life,
    )
}

async fn listen(service: &McpService, call: Box<Call>) -> Result<ReplyStream, Error> {
    match service.call(call).await? {
        Reply::Stream(stream) => Ok(stream),
        Reply::Done(_) => Err(Error::NotOffered(methods::LISTEN.into())),
    }
}

/// The refusal of one more subscription than a session may have.
fn too_many() -> Problem {
    reached(Bound::StreamAddresses);
    let text = "too many subscriptions in this session";
    in_band(codes::OVERLOADED, text, "rate_limited")
}

/// The refusal of this listen; the id is the caller's to add.
fn refused(error: &Error, call: CallId) -> Problem {
    let problem = problem::problem(error, Era::Legacy, RequestId::minted(0), call);
    // A token that lacks a scope is told of in the same way everywhere.
    let status = problem
        .scopes
        .as_ref()
        .map_or(StatusCode::OK, |_| problem.status);
    Problem { status, ..problem }
}

/// Tells the client what is heard, of the resource that is watched by this, if one is. At the end: whether that was meant to be the
/// end.
async fn forward(session: &Session, mut stream: ReplyStream, watched: Option<&Arc<str>>) -> bool {
    while let Some(step) = stream.next().await {
        match step {
            Step::Event(Event::Changed(change)) => {
                if let Some(notice) = Notice::of(change, watched) {
                    session.outbox.notify(notice);
                }
            }
            Step::Event(_) => {}
            Step::Outcome(outcome) => {
                return !matches!(outcome, Outcome::Lost(_) | Outcome::Failed(_));
            }
        }
    }
    false
}

#[cfg(test)]
mod tests;
