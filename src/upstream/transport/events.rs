//! HTTP answer bodies that are event streams, to frames.
//!
//! Guarantees: no message and no stream of answers over its bound (32 MiB and 128 MiB unless configured) is held or passed on; an
//! answer that keeps silent for too long ends in an error, and one that ends too soon is resumed where that may be
//! (`http/resume.rs`).

use std::collections::VecDeque;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use tokio::time::Instant;

use super::{Frames, body::check_id, http::resume::Resume, owes::Owes, pool::Arriving};
use crate::{
    json::Limits,
    jsonrpc::{Frame, Message, decode, sse},
    memory::{self, Full, Hold},
    metrics::Bound,
    upstream::{UpstreamError, spec::PeerBounds},
};

/// An event stream being read.
pub(super) struct Events {
    body: Option<Arriving>,
    decoder: sse::Decoder,
    ready: VecDeque<sse::Event>,
    frames: VecDeque<Frame>,
    limits: Limits,
    /// The most bytes of all messages.
    most: usize,
    /// What ends it.
    owes: Owes,
    /// How to resume it where it ends before what it owes.
    resume: Option<Box<Resume>>,
    total: usize,
    /// What is held of an event that is not complete.
    hold: Hold,
}

impl Events {
    pub(super) fn new(body: Arriving, limits: Limits, bounds: &PeerBounds, mut owes: Owes) -> Self {
        let payer = match &mut owes {
            Owes::Response { payer, .. } => payer.take(),
            Owes::Nothing => None,
        };
        Self {
            body: Some(body),
            decoder: sse::Decoder::new(bounds.message_bytes),
            most: bounds.answer_bytes,
            ready: VecDeque::new(),
            frames: VecDeque::new(),
            limits,
            owes,
            resume: None,
            total: 0,
            hold: memory::process().hold().paid_by(payer),
        }
    }

    /// The same, resumed where it ends before what it owes.
    pub(super) fn resuming(mut self, resume: Resume) -> Self {
        self.resume = Some(Box::new(resume));
        self
    }

    /// The next frame; `None` when the stream is over. After an error, or the response that was owed, it is over.
    pub(super) async fn next(&mut self) -> Option<Result<Frame, UpstreamError>> {
        let next = self.advance().await;
        match &next {
            Some(Ok(Frame::Response(_))) => {
                if let Owes::Response { drain, .. } = &self.owes {
                    if let Some(body) = self.body.take() {
                        drain.take(body);
                    }
                    self.frames.clear();
                    self.ready.clear();
                }
            }
            Some(Err(_)) => {
                self.body = None;
                self.frames.clear();
                self.ready.clear();
            }
            Some(Ok(_)) | None => {}
        }
        next
    }

    /// The next event that has data, whatever its name; for transports whose events are not all frames.
    pub(super) async fn event(&mut self) -> Option<Result<sse::Event, UpstreamError>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(Ok(event));
            }
            self.body.as_ref()?;
            match self.piece().await {
                Err(error) => return Some(Err(error)),
                Ok(Some(data)) => {
                    if let Err(error) = self.feed(&data) {
                        return Some(Err(error));
                    }
                }
                Ok(None) => {
                    self.body = None;
                    return match self.owes {
                        Owes::Nothing => None,
                        Owes::Response { .. } => Some(Err(UpstreamError::unreached(
                            "the stream ended before the answer",
                        ))),
                    };
                }
            }
        }
    }

    /// The next bytes; where the stream ends before what it owes, those of the one that continues it.
    async fn piece(&mut self) -> Result<Option<Bytes>, UpstreamError> {
        let mut since = Instant::now();
        loop {
            let Some(body) = &mut self.body else {
                return Ok(None);
            };
            let ended = match self.owes.within(&mut since, body.piece()).await {
                Ok(Some(data)) => return Ok(Some(data)),
                ended @ (Ok(None) | Err(UpstreamError::Unavailable { .. })) => ended,
                // It was given up, and has not ended.
                Err(error) => return Err(error),
            };
            let Some(resume) = &mut self.resume else {
                return ended;
            };
            self.body = None;
            let Some(body) = Box::pin(resume.again(&self.owes, &mut since)).await? else {
                return ended;
            };
            self.body = Some(body);
            // What was cut off is told again.
            self.decoder = self.decoder.anew();
        }
    }

    fn feed(&mut self, data: &[u8]) -> Result<(), UpstreamError> {
        if matches!(
            self.owes,
            Owes::Response {
                silence: Some(_),
                ..
            }
        ) {
            self.total = self.total.saturating_add(data.len());
            if self.total > self.most {
                let most = self.most;
                return Err(UpstreamError::too_large(Bound::UpstreamAnswer, most));
            }
        }
        let (ready, resume) = (&mut self.ready, &mut self.resume);
        let (mut full, alone) = (Ok(()), matches!(self.owes, Owes::Response { .. }));
        // What is held of the event that comes to its end is held for it.
        let mut begun = self.hold.another();
        std::mem::swap(&mut begun, &mut self.hold);
        self.decoder
            .push(data, |mut event| {
                if let Some(resume) = resume {
                    resume.note(&event);
                }
                if event.data.is_empty() {
                    return;
                }
                let another = begun.another();
                let mut hold = std::mem::replace(&mut begun, another);
                match take(&mut hold, event.data.len(), alone) {
                    Ok(()) => {
                        event.data = hold.unpaid().with(event.data);
                        ready.push_back(event);
                    }
                    Err(error) => full = Err(error),
                }
            })
            .map_err(|sse::TooLarge(max)| UpstreamError::too_large(Bound::UpstreamMessage, max))?;
        full?;
        self.hold = begun;
        Ok(take(&mut self.hold, self.decoder.held(), alone)?)
    }

    async fn advance(&mut self) -> Option<Result<Frame, UpstreamError>> {
        loop {
            if let Some(frame) = self.frames.pop_front() {
                return Some(self.mine(frame));
            }
            let event = match self.event().await? {
                Ok(event) => event,
                Err(error) => return Some(Err(error)),
            };
            if event.name != sse::Name::Message {
                continue;
            }
            match decode(event.data, &self.limits) {
                Ok(Message::One(frame)) => self.frames.push_back(frame),
                Ok(Message::Batch(frames)) => self.frames.extend(frames),
                Err(error) => return Some(Err(UpstreamError::undecodable(&error))),
            }
        }
    }

    fn mine(&self, frame: Frame) -> Result<Frame, UpstreamError> {
        match &self.owes {
            Owes::Response { id, .. } => check_id(frame, id),
            Owes::Nothing => Ok(frame),
        }
    }

    pub(super) fn into_frames(self) -> Frames {
        stream::unfold(self, |mut events| async move {
            let next = events.next().await?;
            Some((next, events))
        })
        .boxed()
    }
}

/// Counts what is held of a stream, which is refused where there is no memory for it and it is of one call `alone`.
fn take(hold: &mut Hold, bytes: usize, alone: bool) -> Result<(), Full> {
    if alone {
        return hold.reach(bytes);
    }
    hold.count(bytes);
    Ok(())
}
