//! HTTP answer bodies that are one piece of text, and the ends of those whose answer has been taken.
//!
//! Guarantees: no message over its bound (32 MiB unless configured) is held or passed on; a body that ended well leaves its
//! connection reusable. Deliberately absent: event streams (`events.rs`).

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::{FutureExt, StreamExt, stream};
use tokio::sync::mpsc;

use super::pool::Arriving;
use crate::{
    jsonrpc::{Frame, RequestId},
    memory::Hold,
    metrics::Bound,
    tasks::Tasks,
    upstream::UpstreamError,
};

/// Reads a whole body of at most `max` bytes, held as `hold` says; a body in one piece is not copied.
pub(super) async fn whole(
    body: &mut Arriving,
    max: usize,
    mut hold: Hold,
) -> Result<Bytes, UpstreamError> {
    let too_large = || UpstreamError::too_large(Bound::UpstreamMessage, max);
    let expected = body.promised();
    if expected > max as u64 {
        return Err(too_large());
    }
    let Some(first) = body.piece().await? else {
        return Ok(Bytes::new());
    };
    if first.len() > max {
        return Err(too_large());
    }
    hold.reach(first.len())?;
    let Some(second) = (if body.is_over() {
        None
    } else {
        body.piece().await?
    }) else {
        return Ok(hold.unpaid().with(first));
    };
    let held = first.len() + second.len();
    // The peer's promise of a length is worth at most a megabyte of ours in advance.
    let promised = usize::try_from(expected).unwrap_or(max);
    let mut all = BytesMut::with_capacity(held.max(promised.min(1 << 20)));
    all.extend_from_slice(&first);
    let mut next = Some(second);
    while let Some(part) = next {
        if all.len() + part.len() > max {
            return Err(too_large());
        }
        hold.reach(all.len() + part.len())?;
        all.extend_from_slice(&part);
        next = body.piece().await?;
    }
    Ok(hold.unpaid().with(all.freeze()))
}

/// Finishes bodies whose answer has been taken, where no connection's next user does: one task per transport. What does not end
/// within a second, or does not fit the queue, is dropped.
#[derive(Debug, Clone)]
pub(super) struct Drain(mpsc::Sender<Arriving>);

impl Drain {
    const QUEUE: usize = 64;
    const PATIENCE: Duration = Duration::from_secs(1);

    pub(super) fn new(tasks: &Tasks) -> Self {
        let (sender, mut bodies) = mpsc::channel::<Arriving>(Self::QUEUE);
        tasks.spawn(async move {
            let mut open = stream::FuturesUnordered::new();
            loop {
                tokio::select! {
                    body = bodies.recv(), if open.len() < Self::QUEUE => match body {
                        Some(body) => open.push(tokio::time::timeout(Self::PATIENCE, rest(body))),
                        None => return,
                    },
                    Some(_ended) = open.next() => {}
                }
            }
        });
        Self(sender)
    }

    pub(super) fn take(&self, mut body: Arriving) {
        match body.piece().now_or_never() {
            Some(Ok(None) | Err(_)) => {}
            Some(Ok(Some(_))) | None => {
                if let Some(body) = body.leave() {
                    drop(self.0.try_send(body));
                }
            }
        }
    }
}

/// The first bytes of a body, `most` at most. It is read to its end if that is near: then its connection serves again.
pub(super) async fn beginning(body: &mut Arriving, most: usize) -> Vec<u8> {
    let mut all = Vec::new();
    while all.len() < most
        && let Ok(Some(piece)) = body.piece().await
    {
        all.extend_from_slice(&piece[..piece.len().min(most - all.len())]);
    }
    all
}

/// Reads a short body of no interest to its end; gives up after a few kilobytes.
pub(super) async fn rest(mut body: Arriving) {
    let mut left = 8 << 10;
    while let Ok(Some(data)) = body.piece().await {
        if data.len() > left {
            return;
        }
        left -= data.len();
    }
}

/// A response must be to `id`; only an error may leave the id out (PROTOCOL B1.9, SECURITY EGR-11).
pub(super) fn check_id(frame: Frame, id: &RequestId) -> Result<Frame, UpstreamError> {
    if let Frame::Response(response) = &frame
        && response.id.as_ref().is_some_and(|theirs| !theirs.same(id))
    {
        return Err(UpstreamError::Protocol(
            "an answer to an id that was not asked".into(),
        ));
    }
    Ok(frame)
}
