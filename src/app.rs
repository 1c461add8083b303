//! STAND-IN, dropped at merge: the shape of the app that the command line is written against.
#![allow(missing_docs, clippy::unused_async)]

use std::time::Duration;

use crate::{
    config::Plan,
    json::Json,
    jsonrpc::RpcError,
    protocol::{Revision, UpstreamId, methods::ListKind},
    tasks::Tasks,
};

#[derive(Clone, Debug)]
pub struct App {
    plan: Plan,
}

#[derive(Debug, thiserror::Error)]
#[error("not built")]
pub struct AppError;

#[derive(Debug, Clone)]
pub struct UpstreamStatus {
    pub id: UpstreamId,
    pub state: &'static str,
    pub revision: Option<Revision>,
    pub counts: [usize; 4],
    pub error: Option<String>,
    pub reports: Vec<String>,
}

impl App {
    pub async fn build(plan: Plan, _tasks: Tasks) -> Result<Self, AppError> {
        Ok(Self { plan })
    }

    pub async fn bind(&self) -> Result<std::net::SocketAddr, AppError> {
        Ok(self.plan.listen.address)
    }

    pub async fn stdio(&self) -> std::io::Result<()> {
        Ok(())
    }

    pub async fn settled(&self, _deadline: Duration) -> Vec<UpstreamStatus> {
        self.statuses()
    }

    pub fn statuses(&self) -> Vec<UpstreamStatus> {
        self.plan
            .upstreams
            .iter()
            .map(|spec| UpstreamStatus {
                id: spec.id.clone(),
                state: "away",
                revision: None,
                counts: [0; 4],
                error: Some("stand-in".into()),
                reports: Vec::new(),
            })
            .collect()
    }

    pub fn catalog(&self, _kind: ListKind) -> Vec<Json> {
        Vec::new()
    }

    pub async fn request(&self, _method: &str, _params: Json) -> Result<Json, RpcError> {
        Err(RpcError::new(-32603, "stand-in"))
    }

    pub async fn shutdown(self) {}
}
