//! Watching a legacy upstream on the gateway's own session: its stream, and the resources subscribed to (PROTOCOL B4, D1).
//!
//! Guarantees: a resource is subscribed to once however many watch it, given up after the last, and subscribed to again on
//! a session that takes the place of a lost one; it counts as in force only once the server said so; while the stream was
//! not open nothing is taken for told. Bounds: [`AT_ONCE`] such requests at once.

use std::{
    collections::{HashMap, VecDeque},
    future::pending,
    sync::Arc,
    time::Duration,
};

use futures_util::{FutureExt, StreamExt, future::BoxFuture, stream::FuturesUnordered};
use tokio::time::{Instant, sleep, sleep_until};

use super::{Legacy, session::Session};
use crate::{
    call::Identity,
    events::{Lists, ResourceInterest, Wanted},
    json::Json,
    jsonrpc::Frame,
    protocol::{codes, meta, methods},
    upstream::{
        UpstreamError,
        exchange::{self, AskOutcome, Others as _},
        health::{Pause, is_unconnected},
        promised::Promised,
        refresh_signal::RefreshSignal,
    },
};

/// The most subscriptions that are asked for or given up at once.
const AT_ONCE: usize = 8;
/// When a resource that could not be asked for is asked for again.
const AGAIN: Duration = Duration::from_secs(30);

impl Legacy {
    /// Watches for as long as it is polled, on one session after the other.
    pub(super) async fn keep_watch(&self) {
        let mut pause = Pause::default();
        loop {
            let deadline = Instant::now() + self.terms.timeouts.connect;
            let began = Instant::now();
            if let Ok(session) = self.session(&self.service, None, deadline).await {
                let opened = || {
                    self.terms.refresh.missed(Promised::of(&session.card).lists);
                    self.terms.interest.look_again();
                };
                tokio::select! {
                    biased;
                    () = session.gone.cancelled() => {}
                    () = hear(&session, opened) => {}
                    () = Subscriptions::of(&session, &self.terms.interest).keep() => {}
                }
                self.terms.interest.lost();
            }
            sleep(pause.after(began.elapsed())).await;
        }
    }
}

impl Legacy {
    /// Watches for changes of what one principal is offered, on the session that it is read on.
    pub(super) async fn keep_watch_for(
        &self,
        who: &Arc<Identity>,
        refresh: &RefreshSignal,
        interest: &Arc<ResourceInterest>,
    ) {
        let mut pause = Pause::default();
        loop {
            let deadline = Instant::now() + self.terms.timeouts.connect;
            let began = Instant::now();
            if let Ok(slot) = self.own_slot(who)
                && let Ok(session) = self.session(&slot, Some(who), deadline).await
            {
                let opened = || {
                    refresh.missed(Promised::of(&session.card).lists);
                    interest.look_again();
                };
                tokio::select! {
                    biased;
                    () = session.gone.cancelled() => {}
                    () = hear(&session, opened) => {}
                    () = Subscriptions::of(&session, interest).keep() => {}
                }
                interest.lost();
            }
            sleep(pause.after(began.elapsed())).await;
        }
    }
}

/// Reads the session's own stream, opened again whenever it ends. On a pipe the session itself reads what comes unasked.
/// `opened` hears of each time: what happened before may have been said to nobody.
async fn hear(session: &Session, opened: impl Fn()) {
    let line = &session.line;
    let (wire, terms) = (&line.wire, &line.terms);
    if !wire.streamable {
        return pending().await;
    }
    let (mut pause, mut heard) = (Pause::default(), false);
    loop {
        let began = Instant::now();
        let opening = async {
            let headers = line.credentialed().await?;
            wire.transport.unsolicited(headers).await
        };
        match opening.await {
            Ok(mut frames) => {
                heard = true;
                opened();
                while let Some(Ok(frame)) = frames.next().await {
                    match frame {
                        Frame::Request(request) => line.answer(&request).await,
                        Frame::Notification(notification)
                            if &*notification.method == methods::PROGRESS =>
                        {
                            if !session.ear.progress(notification) {
                                terms.drop_frame();
                            }
                        }
                        Frame::Notification(notification) => line.hear(&notification),
                        Frame::Response(_) => terms.drop_frame(),
                    }
                }
            }
            Err(error) if session.is_named() && says_gone(&error, heard) => {
                session.gone.cancel();
                return pending().await;
            }
            Err(error) => {
                tracing::debug!(%error, "a session's stream cannot be opened");
                if is_unconnected(&error) {
                    // It may be gone: then its lists cannot be read either.
                    terms.refresh.ring(Lists::ALL);
                }
            }
        }
        sleep(pause.after(began.elapsed())).await;
    }
}

/// Whether the refusal of a session's stream says that there is no such session any more: 404 (PROTOCOL B4), and the 400 that some
/// servers give instead. One that gives that for a stream that it `heard` of never before may do so for every stream, and each
/// new session would be given up at once.
fn says_gone(error: &UpstreamError, heard: bool) -> bool {
    let is_unknown =
        matches!(error, UpstreamError::Refused(error) if error.code == codes::SESSION_NOT_FOUND);
    is_unknown || heard && error.status() == Some(400)
}

/// What is subscribed to on one session.
struct Subscriptions<'a> {
    session: &'a Arc<Session>,
    interest: &'a Arc<ResourceInterest>,
    able: bool,
    /// What was wanted when it was last looked at.
    wanted: HashMap<Arc<str>, Wanted>,
    held: HashMap<Arc<str>, Held>,
    /// What may have to be asked for or given up.
    todo: VecDeque<Arc<str>>,
    under_way: FuturesUnordered<BoxFuture<'static, (Arc<str>, Done)>>,
    again_at: Option<Instant>,
}

/// How a resource stands on the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Held {
    /// A request is under way.
    Busy,
    /// It is subscribed to.
    Yes,
    /// The server refused.
    No,
}

/// How a request ended.
enum Done {
    Subscribed,
    Refused,
    /// It could not be asked.
    Failed,
    /// The session is gone.
    Gone,
    Unsubscribed,
}

impl<'a> Subscriptions<'a> {
    fn of(session: &'a Arc<Session>, interest: &'a Arc<ResourceInterest>) -> Self {
        Self {
            able: Promised::of(&session.card).resources,
            session,
            interest,
            wanted: HashMap::new(),
            held: HashMap::new(),
            todo: VecDeque::new(),
            under_way: FuturesUnordered::new(),
            again_at: None,
        }
    }

    async fn keep(mut self) {
        let mut changes = self.interest.changes();
        self.look();
        loop {
            self.ask();
            let again_at = self.again_at;
            let again = async {
                match again_at {
                    Some(at) => sleep_until(at).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                Some((uri, done)) = self.under_way.next() => self.done(uri, done),
                changed = changes.changed() => match changed {
                    Ok(()) => self.look(),
                    // The interest outlives its watch.
                    Err(_) => return pending().await,
                },
                () = again => {
                    self.again_at = None;
                    self.held.retain(|_, held| *held != Held::No);
                    self.look();
                }
            }
        }
    }

    /// Looks at what is wanted now.
    fn look(&mut self) {
        let wanted = self.interest.wanted();
        if !self.able {
            self.interest.settle(wanted.iter().map(|it| (it, false)));
            return;
        }
        let verdict = |uri| match self.held.get(uri)? {
            Held::Busy => None,
            Held::Yes => Some(true),
            Held::No => Some(false),
        };
        let verdicts = wanted.iter().filter_map(|it| Some((it, verdict(&it.uri)?)));
        self.interest.settle(verdicts);
        self.wanted = wanted
            .into_iter()
            .map(|it| (Arc::clone(&it.uri), it))
            .collect();
        // What was refused and is wanted no more may be asked for when it is wanted again.
        self.held
            .retain(|uri, held| *held != Held::No || self.wanted.contains_key(uri));
        self.todo = self
            .wanted
            .keys()
            .chain(self.held.keys())
            .filter(|uri| self.step(uri).is_some())
            .cloned()
            .collect();
    }

    /// What has to be asked for a resource, if anything.
    fn step(&self, uri: &Arc<str>) -> Option<&'static str> {
        match (self.wanted.contains_key(uri), self.held.get(uri)) {
            (true, None) => Some(methods::SUBSCRIBE),
            (false, Some(Held::Yes)) => Some(methods::UNSUBSCRIBE),
            _ => None,
        }
    }

    fn ask(&mut self) {
        while self.under_way.len() < AT_ONCE
            && let Some(uri) = self.todo.pop_front()
        {
            if let Some(method) = self.step(&uri) {
                self.held.insert(Arc::clone(&uri), Held::Busy);
                let asking = asked(Arc::clone(self.session), method, uri);
                self.under_way.push(asking.boxed());
            }
        }
    }

    fn done(&mut self, uri: Arc<str>, done: Done) {
        let verdict = match done {
            Done::Subscribed => Some(true),
            Done::Refused | Done::Failed => Some(false),
            Done::Gone | Done::Unsubscribed => None,
        };
        match verdict {
            Some(true) => self.held.insert(Arc::clone(&uri), Held::Yes),
            Some(false) => self.held.insert(Arc::clone(&uri), Held::No),
            None => self.held.remove(&uri),
        };
        if let (Some(verdict), Some(wanted)) = (verdict, self.wanted.get(&uri)) {
            self.interest.settle([(wanted, verdict)]);
        }
        match done {
            Done::Gone => self.session.gone.cancel(),
            Done::Failed => {
                let at = Instant::now() + AGAIN;
                self.again_at.get_or_insert(at);
            }
            // Other things may be wanted by now.
            Done::Subscribed | Done::Unsubscribed => self.todo.push_back(uri),
            Done::Refused => {}
        }
    }
}

async fn asked(session: Arc<Session>, method: &'static str, uri: Arc<str>) -> (Arc<str>, Done) {
    let line = &session.line;
    let params = meta::object_of(&[("uri", Json::string(&uri))]);
    let deadline = Instant::now() + line.terms.timeouts.list;
    let told = exchange::ask(line, method, &params, line.headers.clone(), deadline, false).await;
    let done = match told {
        Ok(AskOutcome::Error(head, error)) if session.is_forgotten(&head, Some(&error)) => {
            Done::Gone
        }
        Ok(AskOutcome::Status(head)) if session.is_forgotten(&head, None) => Done::Gone,
        _ if method == methods::UNSUBSCRIBE => Done::Unsubscribed,
        Ok(AskOutcome::Result(..)) => Done::Subscribed,
        Ok(AskOutcome::Error(..) | AskOutcome::Status(_)) => Done::Refused,
        Err(_) => Done::Failed,
    };
    (uri, done)
}

#[cfg(test)]
mod tests;
