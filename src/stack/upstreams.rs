//! The way from the stack to the upstreams, which whoever builds the stack hands in.

use std::{sync::Arc, time::Duration};

use futures_util::future::BoxFuture;

use super::Error;
use crate::{
    call::{Call, Identity, Reply},
    protocol::UpstreamId,
    stage::Passage,
    upstream::{Bearer, Claim, UpstreamError},
};

/// The way to the upstreams.
pub trait Upstreams: Send + Sync + 'static {
    /// Carries one call to the upstream that its passage leads to, and ends by the call's deadline.
    fn call(&self, call: Call, passage: Passage) -> BoxFuture<'static, Result<Reply, Error>>;

    /// How long a call of this upstream may take, where less than the call itself says.
    fn call_timeout(&self, _upstream: &UpstreamId) -> Option<Duration> {
        None
    }

    /// Why nothing is known of what an upstream offers; `None` where that is as it should be.
    fn absence(&self, _upstream: &UpstreamId) -> Option<UpstreamError> {
        None
    }

    /// What a call of this principal to an upstream goes with, where tokens for it are got; `None` where what it goes with is
    /// configured, or nothing.
    fn bearer(&self, _upstream: &UpstreamId, _identity: &Arc<Identity>) -> Option<Bearer> {
        None
    }

    /// What those upstreams offer to this principal alone is wanted, of which `of` says so: the claims, and how long each may
    /// be waited for. None, where all upstreams offer the same to everybody.
    fn claim(
        &self,
        _identity: &Arc<Identity>,
        _of: &dyn Fn(&UpstreamId) -> bool,
    ) -> Vec<(Claim, Duration)> {
        Vec::new()
    }
}
