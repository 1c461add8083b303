//! The configuration in force, and reading again what can be read again.

use futures_util::FutureExt as _;
use http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;

use super::{Answer, Given, now};
use crate::{
    admin::{asked::Asked, problem::Problem, reply},
    json::Json,
};

/// The configuration in force.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Configuration")]
pub(in crate::admin) struct Shown {
    /// As its file says it, with what it includes: references where those stand, `(set)` in the place of what may be a secret.
    /// What it does not say has its default.
    configuration: Given,
    /// Whether a reload has found that the file, or what it refers to, says something else, which needs a restart.
    restart_needed: bool,
}

pub(in crate::admin) fn show(asked: Asked) -> Answer {
    let configured = asked.gateway.controls.configuration();
    now(Ok(Shown {
        configuration: Given(configured.loaded),
        restart_needed: configured.restart_needed,
    }))
}

pub(in crate::admin) fn reload(asked: Asked) -> Answer {
    let reload = asked.gateway.controls.reload();
    async move {
        match reload.await {
            Ok(reloaded) => Ok(reply::json(&Json::of(&reloaded))),
            Err(problems) => Err(Problem {
                problems,
                ..Problem::new(
                    StatusCode::CONFLICT,
                    "not_reloaded",
                    "something is wrong with what was read; what was in force stays so",
                )
            }),
        }
    }
    .boxed()
}
