//! A transport that plays a script: for tests of everything that stands on transports.

mod stock;

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures_util::{FutureExt, StreamExt, future::BoxFuture, stream};
use http::{HeaderMap, HeaderValue, StatusCode};
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

use super::{
    UpstreamError,
    connector::Connector,
    spec::HttpTransport,
    transport::{Answer, Frames, Head, Outbound, Owners, Transport},
};
use crate::{
    json::Limits,
    jsonrpc::{Frame, Message, decode},
};

pub(super) use stock::{
    a_call, a_caller, a_pipe, a_route, a_tool_call, an_address, discovery, greeting, last, note,
    saying, terms,
};

/// A frame that was sent.
#[derive(Debug, Clone)]
pub(super) struct Sent {
    /// The method of a request or notification; `""` for a response.
    pub(super) method: String,
    /// The whole frame.
    pub(super) text: String,
    /// The params, `{}` when there were none.
    pub(super) params: String,
    /// Its headers.
    pub(super) headers: HeaderMap,
}

impl Sent {
    /// A header's text.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

/// What may wait to be read on a stream.
const ROOM: usize = 1_024;

/// What the script does with a frame. `$id` in texts becomes the request's id.
#[derive(Clone)]
pub(super) enum Play {
    /// A result.
    Result(String),
    /// A result that begins an HTTP session.
    Session(&'static str, String),
    /// An error under an HTTP status.
    Error(u16, i64, &'static str),
    /// An HTTP status and nothing else.
    Status(u16),
    /// These frames on a stream, each after this many seconds; a stream that then stays silent when `true`.
    Stream(Vec<(u64, String)>, bool),
    /// What is [`Scripted::tell`]ed, as it is: like every transport, it answers with the first frame.
    Open,
    /// These frames on a stream that stays open for what the test says with [`Scripted::tell_last`].
    Live(Vec<String>),
    /// One frame as it is.
    Raw(String),
    /// No answer, ever.
    Hang,
    /// The same, later.
    After(u64, Box<Self>),
    /// The same, which names an HTTP session.
    Naming(&'static str, Box<Self>),
    /// The transport fails so.
    Fail(UpstreamError),
    /// The transport ends.
    Die,
}

/// A result play.
pub(super) fn result(text: impl Into<String>) -> Play {
    Play::Result(text.into())
}

type Script = Box<dyn FnMut(&Sent) -> Play + Send>;

/// The transport.
pub(super) struct Scripted {
    script: Mutex<Script>,
    sent: Mutex<Vec<Sent>>,
    unasked: Arc<Mutex<VecDeque<String>>>,
    said: Arc<Notify>,
    open: Mutex<Vec<(String, mpsc::Sender<String>)>>,
    owners: OnceLock<Arc<dyn Owners>>,
    /// Streams of its own, the last one last; cancelled when they are cut.
    own: Mutex<Vec<CancellationToken>>,
    /// Sessions without a stream of their own, and how one is refused.
    shut: Mutex<Vec<(&'static str, UpstreamError)>>,
    /// How long each takes until it stands.
    pub(super) own_takes: Mutex<Duration>,
    /// Live answers by request id; those that ended are closed.
    live: Mutex<Vec<(String, mpsc::Sender<String>)>>,
    news: Arc<Notify>,
    dead: CancellationToken,
    /// How often it was closed.
    pub(super) closed: AtomicUsize,
    /// Sessions ended with DELETE.
    pub(super) ended: Mutex<Vec<String>>,
    /// Answers that were given up by dropping them.
    pub(super) dropped: Arc<AtomicUsize>,
}

impl Scripted {
    /// Answers each frame as `script` says.
    pub(super) fn new(script: impl FnMut(&Sent) -> Play + Send + 'static) -> Arc<Self> {
        Arc::new(Self {
            script: Mutex::new(Box::new(script)),
            sent: Mutex::default(),
            unasked: Arc::default(),
            said: Arc::new(Notify::new()),
            open: Mutex::default(),
            owners: OnceLock::new(),
            own: Mutex::default(),
            shut: Mutex::default(),
            own_takes: Mutex::default(),
            live: Mutex::default(),
            news: Arc::new(Notify::new()),
            dead: CancellationToken::new(),
            closed: AtomicUsize::new(0),
            ended: Mutex::default(),
            dropped: Arc::default(),
        })
    }

    /// Everything sent so far.
    pub(super) fn sent(&self) -> Vec<Sent> {
        self.sent.lock().unwrap().clone()
    }

    /// The frames of one method sent so far.
    pub(super) fn sent_of(&self, method: &str) -> Vec<Sent> {
        let mut sent = self.sent();
        sent.retain(|sent| sent.method == method);
        sent
    }

    /// Waits until a frame satisfies `wanted`.
    pub(super) async fn until(&self, wanted: impl Fn(&Sent) -> bool) -> Sent {
        loop {
            let news = self.news.notified();
            if let Some(sent) = self.sent().into_iter().find(&wanted) {
                return sent;
            }
            Self::soon(news).await;
        }
    }

    /// On paused time, what does not come is found out at once.
    async fn soon(news: impl Future<Output = ()>) {
        let waited = tokio::time::timeout(Duration::from_secs(7200), news).await;
        assert!(waited.is_ok(), "never sent");
    }

    /// Waits until `count` frames of `method` were sent.
    pub(super) async fn until_count(&self, method: &str, count: usize) {
        loop {
            let news = self.news.notified();
            if self.sent_of(method).len() >= count {
                return;
            }
            Self::soon(news).await;
        }
    }

    /// Makes the upstream say something that nobody asked for, on the stream opened last, or once its frames are read. What
    /// belongs to a request that was played [`Play::Open`] comes on its stream.
    pub(super) fn say(&self, text: &str) {
        let owner = self.owners.get().and_then(|it| it.whose(&frame(text)));
        if let Some(owner) = owner {
            let open = self.open.lock().unwrap();
            let its = open.iter().find(|(id, _)| *id == owner.to_string());
            if let Some((_, frames)) = its
                && frames.try_send(text.to_owned()).is_ok()
            {
                return;
            }
        }
        self.unasked.lock().unwrap().push_back(text.to_owned());
        self.said.notify_one();
    }

    /// Tells a frame on the stream of the `nth` request that was played [`Play::Open`], counted from 0.
    pub(super) fn tell(&self, nth: usize, text: &str) {
        let open = self.open.lock().unwrap();
        let (id, frames) = &open[nth];
        // Nobody may be reading any more. Like every pipe, it then tells who knows whose an answer was.
        let text = text.replace("$id", id);
        if frames.try_send(text.clone()).is_err()
            && let Frame::Response(response) = frame(&text)
            && let Some(number) = response.id.and_then(|id| id.as_minted())
            && let Some(owners) = self.owners.get()
        {
            owners.late(number);
        }
    }

    /// How often its own stream was opened.
    pub(super) fn opened(&self) -> usize {
        self.own.lock().unwrap().len()
    }

    /// From now on the streams of these sessions are refused so.
    pub(super) fn shut(&self, sessions: &[&'static str], error: &UpstreamError) {
        let shut = sessions.iter().map(|session| (*session, error.clone()));
        self.shut.lock().unwrap().extend(shut);
    }

    /// And from now on of none.
    pub(super) fn unshut(&self) {
        self.shut.lock().unwrap().clear();
    }

    /// Ends the stream of its own that was opened last.
    pub(super) fn cut(&self) {
        self.own.lock().unwrap().last().unwrap().cancel();
    }

    /// The ids of live answers that somebody still reads.
    pub(super) fn live(&self) -> Vec<String> {
        let live = self.live.lock().unwrap();
        let read = live.iter().filter(|(_, sender)| !sender.is_closed());
        read.map(|(id, _)| id.clone()).collect()
    }

    /// Says something on the live answer that was begun last, `$id` being its request's.
    pub(super) fn tell_last(&self, text: &str) {
        self.tell_before(0, text);
    }

    /// The same on the one that was begun so many before it.
    pub(super) fn tell_before(&self, others: usize, text: &str) {
        let live = self.live.lock().unwrap();
        let (id, sender) = live.iter().nth_back(others).unwrap();
        sender.try_send(text.replace("$id", id)).unwrap();
    }

    /// Ends the live answer that was begun last.
    pub(super) fn hang_up(&self) {
        self.live.lock().unwrap().last_mut().unwrap().1 = mpsc::channel(1).0;
    }

    /// Ends it.
    pub(super) fn die(&self) {
        self.dead.cancel();
    }

    fn gone() -> UpstreamError {
        UpstreamError::unreached("the script ended it")
    }

    fn answer(&self, play: Play, id: &str) -> BoxFuture<'_, Result<Answer, UpstreamError>> {
        let head = |status: u16| Head {
            status: StatusCode::from_u16(status).unwrap(),
            ..Head::default()
        };
        let said = match play {
            Play::Result(text) => Ok(Answer::One(head(200), result_frame(id, &text))),
            Play::Session(session, text) => {
                let head = Head {
                    session: Some(HeaderValue::from_static(session)),
                    ..head(200)
                };
                Ok(Answer::One(head, result_frame(id, &text)))
            }
            Play::Error(status, code, data) => {
                let data = if data.is_empty() { "null" } else { data };
                let text = format!(
                    r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"no","data":{data}}}}}"#
                );
                Ok(Answer::One(head(status), frame(&text)))
            }
            Play::Status(202) => Ok(Answer::Accepted(head(202))),
            Play::Status(status) => Ok(Answer::Status(head(status))),
            Play::Raw(text) => Ok(Answer::One(head(200), frame(&text.replace("$id", id)))),
            Play::Fail(error) => Err(error),
            Play::Stream(frames, open) => {
                let id = id.to_owned();
                let steps = stream::iter(frames).then(move |(after, text)| {
                    let text = text.replace("$id", &id);
                    async move {
                        tokio::time::sleep(Duration::from_secs(after)).await;
                        Ok(frame(&text))
                    }
                });
                let rest = if open {
                    stream::pending().boxed()
                } else {
                    stream::empty().boxed()
                };
                let mark = Mark(Arc::clone(&self.dropped));
                let steps = steps.chain(rest).map(move |step| {
                    let _held = &mark;
                    step
                });
                Ok(Answer::Stream(head(200), steps.boxed()))
            }
            Play::Open => {
                let (sender, frames) = mpsc::channel(64);
                self.open.lock().unwrap().push((id.to_owned(), sender));
                let mark = Mark(Arc::clone(&self.dropped));
                let mut steps = stream::unfold((frames, mark), |(mut frames, mark)| async {
                    let text = frames.recv().await?;
                    Some((Ok(frame(&text)), (frames, mark)))
                })
                .boxed();
                let head = head(200);
                return Box::pin(async move {
                    Ok(match steps.next().await {
                        Some(Ok(first @ Frame::Response(_))) => Answer::One(head, first),
                        Some(first) => {
                            let first = stream::once(std::future::ready(first));
                            Answer::Stream(head, first.chain(steps).boxed())
                        }
                        None => return Err(Self::gone()),
                    })
                });
            }
            Play::Live(frames) => {
                let (sender, receiver) = mpsc::channel(ROOM);
                for text in frames {
                    sender.try_send(text.replace("$id", id)).unwrap();
                }
                self.live.lock().unwrap().push((id.to_owned(), sender));
                let frames = receiving(receiver).map(|text| Ok(frame(&text)));
                Ok(Answer::Stream(head(200), frames.boxed()))
            }
            Play::Naming(session, play) => {
                let answer = self.answer(*play, id);
                return Box::pin(async move {
                    let mut answer = answer.await?;
                    let (Answer::Accepted(head)
                    | Answer::One(head, _)
                    | Answer::Stream(head, _)
                    | Answer::Status(head)) = &mut answer;
                    head.session = Some(HeaderValue::from_static(session));
                    Ok(answer)
                });
            }
            Play::Hang => {
                let mark = Mark(Arc::clone(&self.dropped));
                return Box::pin(async move {
                    let _held = mark;
                    self.dead.cancelled().await;
                    Err(Self::gone())
                });
            }
            Play::After(seconds, play) => {
                let id = id.to_owned();
                return Box::pin(async move {
                    tokio::time::sleep(Duration::from_secs(seconds)).await;
                    self.answer(*play, &id).await
                });
            }
            Play::Die => {
                self.dead.cancel();
                Err(Self::gone())
            }
        };
        std::future::ready(said).boxed()
    }
}

fn receiving(receiver: mpsc::Receiver<String>) -> impl futures_util::Stream<Item = String> {
    stream::unfold(receiver, |mut receiver| async {
        Some((receiver.recv().await?, receiver))
    })
}

/// Counts answers that are let go of.
struct Mark(Arc<AtomicUsize>);

impl Drop for Mark {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Transport for Scripted {
    fn send(&self, out: Outbound) -> BoxFuture<'_, Result<Answer, UpstreamError>> {
        if self.dead.is_cancelled() {
            return std::future::ready(Err(Self::gone())).boxed();
        }
        let text = String::from_utf8(out.frame.to_vec()).unwrap();
        let (method, params) = match frame(&text) {
            Frame::Request(request) => (request.method.to_string(), request.params),
            Frame::Notification(notification) => {
                (notification.method.to_string(), notification.params)
            }
            Frame::Response(_) => (String::new(), None),
        };
        let sent = Sent {
            method,
            text,
            params: params.map_or("{}".to_owned(), |params| params.as_str().to_owned()),
            headers: out.headers,
        };
        self.sent.lock().unwrap().push(sent.clone());
        self.news.notify_waiters();
        let Some(id) = out.id else {
            let play = (self.script.lock().unwrap())(&sent);
            let plays = matches!(play, Play::Status(_) | Play::Error(..) | Play::After(..));
            let play = if plays { play } else { Play::Status(202) };
            return self.answer(play, "null");
        };
        let play = (self.script.lock().unwrap())(&sent);
        let answer = self.answer(play, id.as_str());
        Box::pin(async move {
            tokio::select! {
                biased;
                answer = answer => answer,
                () = self.dead.cancelled() => Err(Self::gone()),
            }
        })
    }

    fn unsolicited(&self, headers: HeaderMap) -> BoxFuture<'_, Result<Frames, UpstreamError>> {
        let session = headers.get("mcp-session-id");
        let shut = self.shut.lock().unwrap();
        if let Some((_, error)) = shut
            .iter()
            .find(|(id, _)| session.is_some_and(|it| it == id))
        {
            return std::future::ready(Err(error.clone())).boxed();
        }
        drop(shut);
        let (unasked, said) = (Arc::clone(&self.unasked), Arc::clone(&self.said));
        let dead = self.dead.clone();
        let cut = CancellationToken::new();
        self.own.lock().unwrap().push(cut.clone());
        self.news.notify_waiters();
        let frames = stream::unfold((unasked, said), |(unasked, said)| async {
            loop {
                let next = unasked.lock().unwrap().pop_front();
                if let Some(text) = next {
                    return Some((Ok(frame(&text)), (unasked, said)));
                }
                said.notified().await;
            }
        })
        .take_until(async move {
            tokio::select! {
                () = dead.cancelled() => {}
                () = cut.cancelled() => {}
            }
        });
        let takes = *self.own_takes.lock().unwrap();
        Box::pin(async move {
            if !takes.is_zero() {
                tokio::time::sleep(takes).await;
            }
            Ok(frames.boxed())
        })
    }

    fn sort_by(&self, owners: Arc<dyn Owners>) {
        drop(self.owners.set(owners));
    }

    fn lost(&self) -> BoxFuture<'_, UpstreamError> {
        Box::pin(async {
            self.dead.cancelled().await;
            Self::gone()
        })
    }

    fn leave(&self, headers: HeaderMap) -> BoxFuture<'_, ()> {
        let session = headers.get("mcp-session-id").unwrap().to_str().unwrap();
        self.ended.lock().unwrap().push(session.to_owned());
        std::future::ready(()).boxed()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.closed.fetch_add(1, Ordering::SeqCst);
        self.dead.cancel();
        std::future::ready(()).boxed()
    }
}

type Make = Box<dyn Fn(usize, HttpTransport) -> Arc<Scripted> + Send + Sync>;

/// A connector that makes scripted transports.
pub(super) struct Processes {
    make: Make,
    made: Mutex<Vec<(HttpTransport, Arc<Scripted>)>>,
}

impl Processes {
    /// `make` is given the number of the transport, from 0, and which was asked for.
    pub(super) fn new(
        make: impl Fn(usize, HttpTransport) -> Arc<Scripted> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            make: Box::new(make),
            made: Mutex::default(),
        })
    }

    /// Every transport made so far.
    pub(super) fn made(&self) -> Vec<Arc<Scripted>> {
        let made = self.made.lock().unwrap();
        made.iter().map(|(_, made)| Arc::clone(made)).collect()
    }

    /// Which transports were asked for so far.
    pub(super) fn asked(&self) -> Vec<HttpTransport> {
        let made = self.made.lock().unwrap();
        made.iter().map(|(http, _)| *http).collect()
    }
}

impl Connector for Processes {
    fn connect(
        &self,
        http: HttpTransport,
    ) -> BoxFuture<'_, Result<Arc<dyn Transport>, UpstreamError>> {
        let mut made = self.made.lock().unwrap();
        let transport = (self.make)(made.len(), http);
        made.push((http, Arc::clone(&transport)));
        std::future::ready(Ok(transport as Arc<dyn Transport>)).boxed()
    }
}

fn result_frame(id: &str, text: &str) -> Frame {
    frame(&format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{}}}"#,
        text.replace("$id", id)
    ))
}

fn frame(text: &str) -> Frame {
    match decode(Bytes::copy_from_slice(text.as_bytes()), &Limits::LIST) {
        Ok(Message::One(frame)) => frame,
        other => panic!("{text}: {other:?}"),
    }
}
