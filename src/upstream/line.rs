//! A line to an upstream: a transport, the ids minted on it, and what every frame sent carries.
//!
//! Guarantees: ids are unique per transport, however many sessions share it. Deliberately absent: what the frames mean.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::{
    UpstreamError,
    terms::Terms,
    transport::{Outbound, Transport},
};
use crate::{
    json::{Json, Limits},
    jsonrpc::{Request, RequestId, RpcError, encode},
    protocol::{Era, codes, meta, methods},
};

/// How long a frame that wants no answer may take to be sent.
const ASIDE: Duration = Duration::from_secs(2);

/// One transport and the numbers given out on it.
pub(super) struct Wire {
    /// What carries the frames.
    pub(super) transport: Arc<dyn Transport>,
    /// Whether each request has an HTTP exchange of its own: then its frames are attributable, and in the stateless era
    /// letting go of it is the cancellation.
    pub(super) streamable: bool,
    next: AtomicU64,
}

impl Wire {
    /// Numbers from 1.
    pub(super) fn new(transport: Arc<dyn Transport>, streamable: bool) -> Arc<Self> {
        Arc::new(Self {
            transport,
            streamable,
            next: AtomicU64::new(1),
        })
    }

    /// The next number: a request's id, and its progress token.
    pub(super) fn mint(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }
}

/// A wire, and how this conversation speaks on it.
pub(super) struct Line {
    /// The wire; other lines may share it.
    pub(super) wire: Arc<Wire>,
    /// Version and session: sent with every frame over HTTP.
    pub(super) headers: HeaderMap,
    /// How it speaks.
    pub(super) era: Era,
    /// What it keeps to.
    pub(super) terms: Arc<Terms>,
    /// Cancelled when an answer shows that the server no longer speaks this way.
    pub(super) doubt: CancellationToken,
}

impl Line {
    /// A line in `era` whose frames carry `headers`.
    pub(super) fn new(wire: Arc<Wire>, era: Era, headers: HeaderMap, terms: Arc<Terms>) -> Self {
        let mut all = wire.transport.headers();
        all.extend(headers);
        Self {
            wire,
            headers: all,
            era,
            terms,
            doubt: CancellationToken::new(),
        }
    }

    /// Whether giving up on a request must be told (PROTOCOL D1, cancel).
    pub(super) fn tells_of_cancelling(&self) -> bool {
        match self.era {
            Era::Legacy => true,
            Era::Modern => !self.wire.streamable,
        }
    }

    /// Sends a frame that wants no answer, within 2 s.
    ///
    /// # Errors
    /// What the transport fails with, and [`UpstreamError::Timeout`].
    pub(super) async fn aside(
        &self,
        frame: Bytes,
    ) -> Result<super::transport::Answer, UpstreamError> {
        let out = Outbound {
            frame,
            id: None,
            headers: self.headers.clone(),
            limits: Limits::UPSTREAM,
        };
        timeout(ASIDE, self.wire.transport.send(out))
            .await
            .map_err(|_| UpstreamError::Timeout("send"))?
    }

    /// Tells the upstream that request `number` is no longer wanted; best effort.
    pub(super) async fn cancel(&self, number: u64) {
        let params = meta::object_of(&[
            ("requestId", Json::of(&number)),
            ("reason", Json::string("no longer wanted")),
        ]);
        let frame = encode::notification(methods::CANCELLED, Some(&params));
        if let Err(error) = self.aside(frame).await {
            tracing::debug!(%error, "a cancellation could not be told");
        }
    }

    /// Answers a request of a legacy server: a ping promptly, all else with an error, for nothing was declared to it.
    pub(super) async fn answer(&self, request: &Request) {
        let frame = if &*request.method == methods::PING {
            let mut frame = BytesMut::new();
            for segment in encode::result(&request.id, &Json::empty_object()) {
                frame.extend_from_slice(&segment);
            }
            frame.freeze()
        } else {
            self.terms.drop_frame();
            let error = RpcError::new(
                codes::METHOD_NOT_FOUND,
                "the client did not declare this capability",
            );
            encode::error(Some(&request.id), &error)
        };
        if let Err(error) = self.aside(frame).await {
            tracing::debug!(%error, "a server's request could not be answered");
        }
    }

    /// The id that stands for `number`.
    pub(super) fn id(number: u64) -> RequestId {
        RequestId::minted(number)
    }
}
