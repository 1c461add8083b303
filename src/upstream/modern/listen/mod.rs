//! The one listen of a modern upstream: what lists it tells of, and the union of the resources that are wanted (PROTOCOL B7).
//!
//! Guarantees: nothing counts as in force that was not acknowledged; when other resources are wanted another listen is
//! acknowledged before the old one is let go of, and what had come on that is heard, so that nothing falls between them;
//! however a listen ends (H1) it is begun again, and whoever relied on it is told to look again. Bounds:
//! [`PARTING_AT_ONCE`] old listens. Deliberately absent: noticing a connection that died silently, which is TCP's and the
//! poll's.

use std::{
    collections::{BTreeMap, HashSet},
    future::pending,
    sync::Arc,
    time::Duration,
};

use futures_util::{
    StreamExt,
    future::{BoxFuture, OptionFuture},
    stream::FuturesUnordered,
};
use http::{HeaderName, HeaderValue};
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use super::{doubt, self_description};
use crate::{
    call::{ServerCard, Trail},
    events::{Lists, ResourceInterest, Wanted},
    json::{Json, Kind, Node},
    jsonrpc::{Frame, Notification, RpcError, encode},
    protocol::{Revision, codes, members, meta, methods, methods::ListKind, mirror},
    upstream::{
        Deadline, UpstreamError,
        exchange::bare,
        health::{Pause, is_unconnected},
        line::Line,
        promised::Promised,
        refresh_signal::RefreshSignal,
        transport::{Answer, Frames, Outbound},
    },
};

/// How long resources that nobody wants any more stay in a listen: others may want them, and another listen costs more.
const LINGER: Duration = Duration::from_secs(1);
/// When resources that a listen was refused for are asked for again.
const AGAIN: Duration = Duration::from_secs(60);

/// How long an old listen is heard after another was acknowledged: no longer than it takes to read what is here, since a server
/// tells both of what comes after that.
const PARTING: Duration = Duration::from_millis(1);
/// The most old listens that are still heard.
const PARTING_AT_ONCE: usize = 4;

/// A listen that was acknowledged. Dropping it ends it.
struct Listening {
    under_way: UnderWay,
    frames: Frames,
    began: Instant,
    asked: HashSet<Arc<str>>,
    honoured: HashSet<Arc<str>>,
}

/// A listen whose end must be told where that is the manner, unless the server ended it.
struct UnderWay {
    line: Arc<Line>,
    number: u64,
    over: bool,
}

type Opening = BoxFuture<'static, Result<Listening, NotListening>>;

/// Why there is no listen.
enum NotListening {
    /// The server does not listen at all.
    Unknown,
    /// It refused this one.
    Refused(RpcError),
    /// It gave a status without a message, as what does not know listens does, or what stands in front of it for now.
    Bare(UpstreamError),
    /// It could not be asked.
    Failed(UpstreamError),
}

impl From<UpstreamError> for NotListening {
    fn from(error: UpstreamError) -> Self {
        Self::Failed(error)
    }
}

/// Listens for as long as it is polled: for what rings `refresh`, and for the resources that `interest` wants. What is heard goes where
/// the line says.
pub(super) async fn watch(
    line: &Arc<Line>,
    card: &ServerCard,
    refresh: &RefreshSignal,
    interest: &Arc<ResourceInterest>,
) {
    let offered = Promised::of(card);
    let mut watch = Watch {
        line,
        refresh,
        interest,
        revision: card.revision,
        offered,
        known: true,
        live: None,
        taken: HashSet::new(),
        opening: None,
        parting: FuturesUnordered::new(),
        retry_at: Instant::now(),
        hopeless: false,
        pause: Pause::default(),
        refused: BTreeMap::new(),
        unwanted_since: None,
    };
    watch.run().await;
}

struct Watch<'a> {
    line: &'a Arc<Line>,
    refresh: &'a RefreshSignal,
    interest: &'a Arc<ResourceInterest>,
    revision: Revision,
    offered: Promised,
    /// Whether the server knows listens, as far as it said.
    known: bool,
    live: Option<Listening>,
    /// What the last that was acknowledged had asked for, whether or not it is still there.
    taken: HashSet<Arc<str>>,
    /// The one that is begun, and for what.
    opening: Option<(Vec<Wanted>, Opening)>,
    /// Old ones that are still heard; whether all was heard that they had to tell.
    parting: FuturesUnordered<BoxFuture<'static, bool>>,
    /// No listen is begun before.
    retry_at: Instant,
    /// Whether nothing is believed to come of one until then.
    hopeless: bool,
    pause: Pause,
    /// Resources that a listen was refused for, and until when that is believed.
    refused: BTreeMap<Arc<str>, Instant>,
    /// Since when the listen asks for what nobody wants.
    unwanted_since: Option<Instant>,
}

impl Watch<'_> {
    async fn run(&mut self) {
        let mut changes = self.interest.changes();
        loop {
            changes.borrow_and_update();
            let wake = self.decide(self.interest.wanted());
            let live = self.live.as_mut().map(Listening::next);
            let opening = self.opening.as_mut().map(|(_, opening)| opening);
            let wake = wake.map(sleep_until);
            tokio::select! {
                biased;
                Some(whole) = self.parting.next() => if !whole {
                    self.look_again();
                },
                Some(opened) = OptionFuture::from(opening) => self.opened(opened),
                Some(heard) = OptionFuture::from(live) => match heard {
                    Ok(notification) => self.line.hear(&notification),
                    Err(end) => self.ended(&end),
                },
                Some(()) = OptionFuture::from(wake) => {}
                changed = changes.changed() => if changed.is_err() {
                    // The interest outlives its watch.
                    return pending().await;
                },
            }
        }
    }

    /// Says what is known of what is wanted, and begins another listen where one is needed. Until when to wait otherwise.
    fn decide(&mut self, wanted: Vec<Wanted>) -> Option<Instant> {
        let now = Instant::now();
        self.refused.retain(|_, until| *until > now);
        let able = self.known && self.offered.resources;
        let verdict = |uri: &Arc<str>| match &self.live {
            _ if !able || self.refused.contains_key(uri) => Some(false),
            Some(live) if live.asked.contains(uri) => Some(live.honoured.contains(uri)),
            // Whoever wants it need not wait for that.
            _ if self.hopeless && now < self.retry_at => Some(false),
            _ => None,
        };
        let verdicts = wanted
            .iter()
            .filter_map(|wanted| Some((wanted, verdict(&wanted.uri)?)));
        self.interest.settle(verdicts);
        if !self.known || self.opening.is_some() {
            return None;
        }
        let wanted: Vec<_> = wanted
            .into_iter()
            .filter(|wanted| able && !self.refused.contains_key(&wanted.uri))
            .collect();
        let again = self.refused.values().min().copied();
        let due = match &self.live {
            None if wanted.is_empty() && self.offered.lists.is_empty() => return again,
            None => self.retry_at,
            Some(live) if wanted.iter().any(|it| !live.asked.contains(&it.uri)) => self.retry_at,
            // All of them are in it; so there are more in it where it has more.
            Some(live) if live.asked.len() > wanted.len() => {
                let since = *self.unwanted_since.get_or_insert(now);
                self.retry_at.max(since + LINGER)
            }
            Some(_) => {
                self.unwanted_since = None;
                return again;
            }
        };
        if due > now {
            return Some(due);
        }
        self.unwanted_since = None;
        if wanted.is_empty() && self.offered.lists.is_empty() {
            self.live = None;
            return again;
        }
        let uris = wanted
            .iter()
            .map(|wanted| Arc::clone(&wanted.uri))
            .collect();
        let opening = open(
            Arc::clone(self.line),
            self.revision,
            self.offered.lists,
            uris,
        );
        self.opening = Some((wanted, Box::pin(opening)));
        None
    }

    fn opened(&mut self, opened: Result<Listening, NotListening>) {
        let Some((asked, _)) = self.opening.take() else {
            return;
        };
        let why = match opened {
            Ok(listening) => {
                self.hopeless = false;
                self.taken.clone_from(&listening.asked);
                match self.live.replace(listening) {
                    // What happened before is not told; nobody who watched before another listened for them knows of that.
                    None => self.look_again(),
                    Some(old) => self.part_with(old),
                }
                return;
            }
            Err(why) => why,
        };
        let now = Instant::now();
        self.retry_at = now + self.pause.after(Duration::ZERO);
        self.hopeless = matches!(why, NotListening::Bare(_));
        match why {
            NotListening::Unknown => self.known = false,
            NotListening::Refused(error) => {
                let (upstream, error) = (&self.line.terms.id, UpstreamError::Refused(error));
                tracing::info!(%upstream, %error, "an upstream refuses to be listened to");
                let is_new = |wanted: &Wanted| !self.taken.contains(&wanted.uri);
                if self.live.is_none() && !asked.iter().any(is_new) {
                    // What it took once it takes no more.
                    self.taken.clear();
                }
                // What it took before is asked for again by itself: one that it does not take must not cost the others.
                let is_new = |wanted: &Wanted| !self.taken.contains(&wanted.uri);
                let new = asked.into_iter().filter(is_new);
                self.refused
                    .extend(new.map(|wanted| (wanted.uri, now + AGAIN)));
            }
            NotListening::Bare(error) | NotListening::Failed(error) => {
                let upstream = &self.line.terms.id;
                tracing::debug!(%upstream, %error, "an upstream cannot be listened to");
                if is_unconnected(&error) {
                    // It may be gone: then its lists cannot be read either.
                    self.line.terms.refresh.ring(Lists::ALL);
                }
            }
        }
    }

    /// Hears what an old listen was told before the other was acknowledged: on a pipe it is here, though nobody read it yet.
    /// What is still on its way on a stream of its own is not waited for, or all that comes after would be told twice.
    fn part_with(&mut self, old: Listening) {
        if self.parting.len() < PARTING_AT_ONCE {
            self.parting.push(Box::pin(old.heard_out()));
        } else {
            self.look_again();
        }
    }

    /// Something may have been missed.
    fn look_again(&self) {
        self.refresh.missed(self.offered.lists);
        self.interest.look_again();
    }

    fn ended(&mut self, end: &UpstreamError) {
        tracing::debug!(upstream = %self.line.terms.id, %end, "a listen ended");
        let lived = self.live.take().map(|live| live.began.elapsed());
        self.retry_at = Instant::now() + self.pause.after(lived.unwrap_or_default());
        self.interest.lost();
    }
}

/// Begins a listen and waits for its acknowledgement, for as long as a connection may take.
async fn open(
    line: Arc<Line>,
    revision: Revision,
    lists: Lists,
    uris: HashSet<Arc<str>>,
) -> Result<Listening, NotListening> {
    let number = line.wire.mint();
    let id = Line::id(number);
    let own = meta::object_of(&self_description(revision));
    let params = meta::object_of(&[("notifications", filter(lists, &uris)), (meta::META, own)]);
    let mut headers = line.headers.clone();
    if line.wire.streamable {
        headers.insert(
            HeaderName::from_static(mirror::METHOD),
            HeaderValue::from_static(methods::LISTEN),
        );
    }
    let out = Outbound {
        frame: encode::request(&id, methods::LISTEN, &params),
        id: Some(id),
        headers,
        limits: line.terms.peer.json,
        patience: None,
        payer: None,
        listens: true,
        resumes: false,
        credential: None,
        trail: Trail::NONE,
    };
    let deadline = Instant::now() + line.terms.timeouts.connect;
    let late = |_| UpstreamError::Timeout(Deadline::Listen);
    let mut under_way = UnderWay {
        line: Arc::clone(&line),
        number,
        over: false,
    };
    let answer = timeout_at(deadline, line.send(out, None))
        .await
        .map_err(late)?
        .inspect_err(|_| under_way.over = true)?;
    let mut frames = match answer {
        Answer::Stream(_, frames) => frames,
        Answer::One(_, Frame::Response(response)) => {
            under_way.over = true;
            return Err(match response.body {
                Err(error) if error.code == codes::METHOD_NOT_FOUND => NotListening::Unknown,
                Err(error) => NotListening::Refused(error),
                Ok(_) => NotListening::Failed(ended()),
            });
        }
        Answer::One(..) | Answer::Accepted(_) => {
            return Err(NotListening::Failed(unacknowledged()));
        }
        Answer::Status(head) => {
            under_way.over = true;
            // Without a message it may come of what stands in front of the server, and only for now (PROTOCOL B1).
            doubt(&line, &head);
            return Err(match head.status.as_u16() {
                400 | 404 | 405 => NotListening::Bare(bare(&head)),
                _ => NotListening::Failed(bare(&head)),
            });
        }
    };
    match timeout_at(deadline, frames.next()).await.map_err(late)? {
        Some(Ok(Frame::Notification(notification)))
            if &*notification.method == methods::ACKNOWLEDGED =>
        {
            Ok(Listening {
                honoured: honoured(&notification),
                asked: uris,
                under_way,
                frames,
                began: Instant::now(),
            })
        }
        Some(Ok(_)) => Err(NotListening::Failed(unacknowledged())),
        Some(Err(error)) => Err(NotListening::Failed(error)),
        None => Err(NotListening::Failed(ended())),
    }
}

impl Listening {
    /// The next notification, or how it ended.
    async fn next(&mut self) -> Result<Notification, UpstreamError> {
        loop {
            let frame = match self.frames.next().await {
                None => return Err(ended()),
                Some(Err(error)) => return Err(error),
                Some(Ok(frame)) => frame,
            };
            match frame {
                Frame::Response(_) => {
                    self.under_way.over = true;
                    return Err(ended());
                }
                Frame::Notification(notification)
                    if &*notification.method == methods::CANCELLED =>
                {
                    self.under_way.over = true;
                    return Err(ended());
                }
                Frame::Notification(notification) => return Ok(notification),
                Frame::Request(_) => self.under_way.line.terms.drop_frame(),
            }
        }
    }

    /// Hears it for [`PARTING`]. False where it broke off before that, and with it perhaps what it had to tell.
    async fn heard_out(mut self) -> bool {
        let rest = async {
            while let Ok(notification) = self.next().await {
                self.under_way.line.hear(&notification);
            }
        };
        timeout(PARTING, rest).await.is_err()
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        // Outside a runtime there is nobody to tell it: the process is ending.
        if self.over
            || !self.line.tells_of_cancelling()
            || tokio::runtime::Handle::try_current().is_err()
        {
            return;
        }
        let (line, number) = (Arc::clone(&self.line), self.number);
        self.line
            .terms
            .tasks
            .spawn(async move { line.cancel(number).await });
    }
}

fn filter(lists: Lists, uris: &HashSet<Arc<str>>) -> Json {
    let flags = [
        (members::TOOLS_CHANGED, ListKind::Tools),
        (members::PROMPTS_CHANGED, ListKind::Prompts),
        (members::RESOURCES_CHANGED, ListKind::Resources),
    ];
    let mut asked: Vec<_> = flags
        .into_iter()
        .filter(|(_, kind)| lists.has(*kind))
        .map(|(name, _)| (name, Json::of(&true)))
        .collect();
    if !uris.is_empty() {
        let mut uris: Vec<_> = uris.iter().collect();
        uris.sort_unstable();
        let uris: Vec<_> = uris.into_iter().map(|uri| Json::string(uri)).collect();
        asked.push((members::SUBSCRIPTIONS, Json::array(&uris)));
    }
    meta::object_of(&asked)
}

/// The resources that an acknowledgement says are in force.
fn honoured(acknowledgement: &Notification) -> HashSet<Arc<str>> {
    let uris = acknowledgement
        .params
        .as_ref()
        .and_then(|params| params.root().member("notifications"))
        .and_then(|honoured| honoured.member(members::SUBSCRIPTIONS))
        .filter(|uris| uris.kind() == Kind::Array);
    uris.into_iter()
        .flat_map(Node::elements)
        .filter_map(Node::as_str)
        .map(|uri| Arc::from(&*uri))
        .collect()
}

fn ended() -> UpstreamError {
    UpstreamError::unreached("it ended the listen")
}

fn unacknowledged() -> UpstreamError {
    UpstreamError::Protocol("a listen was not acknowledged first".into())
}

#[cfg(test)]
mod tests;
