//! The pipe binding: one message a line in both directions, both eras on the same pipe (PROTOCOL B6, C1).
//!
//! Guarantees: answers are written whole, one after the other; the era is chosen per message; a cancelled request gets no
//! answer; at the end of the input the requests in flight are still answered.

use std::{collections::HashMap, io, sync::Arc};

use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
};
use tokio_util::sync::CancellationToken;

use super::{Answer, Door, Inbound, Told};
use crate::{
    call::Principal,
    json::Limits,
    jsonrpc::{Frame, Message, decode},
    protocol::{methods, names::Scope},
    tasks::Tasks,
};

/// The longest line, in bytes.
const LINE: usize = 16 << 20;
/// Requests in flight on one pipe; reading pauses beyond that.
const IN_FLIGHT: usize = 256;

/// Speaks MCP over a pair of pipes until the input ends, then until the last answer is out.
///
/// # Errors
/// When reading or writing fails, or a line is longer than 16 MiB.
pub async fn serve(
    door: Arc<Door>,
    mut input: impl AsyncRead + Unpin + Send,
    output: impl AsyncWrite + Unpin + Send + 'static,
) -> io::Result<()> {
    let (lines, outgoing) = mpsc::channel(64);
    let tasks = door.tasks.child();
    let (done, written) = tokio::sync::oneshot::channel();
    tasks.spawn(async move {
        // The reader side notices a broken output when its channel closes.
        drop(done.send(write(output, outgoing).await));
    });
    let pipe = Pipe {
        door,
        tasks,
        lines,
        room: Arc::new(Semaphore::new(IN_FLIGHT)),
        session: None,
        running: HashMap::new(),
    };
    let read = pipe.read(&mut input).await;
    let written = written.await.unwrap_or(Ok(()));
    read.and(written)
}

async fn write(
    mut output: impl AsyncWrite + Unpin,
    mut outgoing: mpsc::Receiver<Bytes>,
) -> io::Result<()> {
    while let Some(line) = outgoing.recv().await {
        output.write_all(&line).await?;
        if outgoing.is_empty() {
            output.flush().await?;
        }
    }
    output.flush().await
}

struct Pipe {
    door: Arc<Door>,
    tasks: Tasks,
    lines: mpsc::Sender<Bytes>,
    room: Arc<Semaphore>,
    /// The one legacy session of this pipe, once `initialize` came.
    session: Option<Arc<str>>,
    /// What can be cancelled: by id, as spelled.
    running: HashMap<String, CancellationToken>,
}

impl Pipe {
    async fn read(mut self, input: &mut (impl AsyncRead + Unpin)) -> io::Result<()> {
        let mut buffer = BytesMut::with_capacity(16 << 10);
        let mut searched = 0;
        loop {
            while let Some(at) = memchr::memchr(b'\n', &buffer[searched..]) {
                let line = buffer.split_to(searched + at + 1).freeze();
                searched = 0;
                if !line.trim_ascii().is_empty() {
                    self.take(line).await;
                }
            }
            searched = buffer.len();
            if searched > LINE {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "a line of more than 16 MiB",
                ));
            }
            if self.lines.is_closed() {
                break;
            }
            if input.read_buf(&mut buffer).await? == 0 {
                break;
            }
        }
        // Dropping the last sender, here and in the tasks, ends the writer.
        let Self {
            room,
            lines,
            door,
            session,
            ..
        } = self;
        drop(lines);
        let _all = room
            .acquire_many(u32::try_from(IN_FLIGHT).unwrap_or(u32::MAX))
            .await;
        if let Some(session) = session.and_then(|id| {
            door.sessions
                .find(&id, &Principal::anonymous(), &Scope::All)
        }) {
            door.sessions.end(&session);
        }
        Ok(())
    }

    async fn take(&mut self, line: Bytes) {
        let peeked = decode(line.clone(), &Limits::CLIENT).ok();
        let inbound = Inbound {
            body: line,
            headers: None,
            principal: Principal::anonymous(),
            scope: Scope::All,
            session: self.session.clone(),
        };
        match peeked {
            // The handshake changes what follows, so it is answered before the next line is looked at.
            Some(Message::One(Frame::Request(request)))
                if &*request.method == methods::INITIALIZE =>
            {
                let answer = self.door.accept(inbound).await;
                if let Answer::Frame(Told {
                    session: Some(session),
                    ..
                }) = &answer
                {
                    self.session = session.to_str().ok().map(Into::into);
                }
                tell(answer, &self.lines).await;
            }
            Some(Message::One(Frame::Notification(notification)))
                if &*notification.method == methods::CANCELLED =>
            {
                let id = notification
                    .params
                    .as_ref()
                    .and_then(|params| params.root().member("requestId"));
                if let Some(token) = id.and_then(|id| self.running.remove(id.raw())) {
                    token.cancel();
                }
            }
            Some(Message::One(Frame::Request(request))) => {
                self.start(request.id.as_str().to_owned(), inbound).await
            }
            Some(Message::Batch(_)) => self.start(String::new(), inbound).await,
            Some(Message::One(Frame::Notification(_) | Frame::Response(_))) | None => {
                tell(self.door.accept(inbound).await, &self.lines).await
            }
        }
    }

    async fn start(&mut self, id: String, inbound: Inbound) {
        let Ok(permit) = self.room.clone().acquire_owned().await else {
            return;
        };
        let token = CancellationToken::new();
        self.running.retain(|_, token| !token.is_cancelled());
        if !id.is_empty() {
            self.running.insert(id, token.clone());
        }
        let (door, lines) = (self.door.clone(), self.lines.clone());
        self.tasks
            .spawn(answer(door, inbound, lines, token, permit));
    }
}

async fn answer(
    door: Arc<Door>,
    inbound: Inbound,
    lines: mpsc::Sender<Bytes>,
    token: CancellationToken,
    permit: OwnedSemaphorePermit,
) {
    let work = async { tell(door.accept(inbound).await, &lines).await };
    tokio::select! {
        biased;
        () = token.cancelled() => {}
        () = work => {}
    }
    // Marks the id as free in the table of what can be cancelled.
    token.cancel();
    drop(permit);
}

async fn tell(answer: Answer, lines: &mpsc::Sender<Bytes>) {
    match answer {
        Answer::Accepted => {}
        Answer::Frame(told) => drop(lines.send(line(&told.segments)).await),
        Answer::Stream(mut frames) => {
            while let Some(segments) = frames.next().await {
                if lines.send(line(&segments)).await.is_err() {
                    return;
                }
            }
        }
    }
}

/// The message on one line: line ends inside JSON are white space, so a space says the same.
fn line(segments: &[Bytes]) -> Bytes {
    let mut out = BytesMut::with_capacity(segments.iter().map(Bytes::len).sum::<usize>() + 1);
    for segment in segments {
        out.extend(segment.iter().map(|byte| {
            if matches!(byte, b'\n' | b'\r') {
                b' '
            } else {
                *byte
            }
        }));
    }
    out.extend_from_slice(b"\n");
    out.freeze()
}
