//! Who tells a server that a task is not wanted any more.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

use super::{super::session::Session, states::mapped};
use crate::{
    call::{Outcome, Reply},
    json::Json,
    protocol::{meta, methods},
    upstream::exchange,
};

/// How long telling the server that a task is not wanted any more may take.
const FAREWELL: Duration = Duration::from_secs(5);

/// Tells the server that a task is not wanted any more, unless it has come to an end.
pub(in super::super) struct Unwanted(Option<(Arc<Session>, Arc<str>)>);

impl Unwanted {
    /// Unless it comes to an end, this task of this session is not wanted.
    pub(super) const fn of(session: Arc<Session>, local: Arc<str>) -> Self {
        Self(Some((session, local)))
    }

    /// It is over, or the server's own affair.
    pub(super) fn keep(&mut self) {
        self.0 = None;
    }

    /// It is over if this is an end: a question is none, and whose result is lost may go on.
    pub(in super::super) fn heed(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Complete(_)
            | Outcome::Failed(_)
            | Outcome::Task(_)
            | Outcome::Listed(_)
            | Outcome::Card(_) => self.keep(),
            Outcome::InputRequired(_) | Outcome::Lost(_) => {}
        }
    }

    /// The reply, which is heeded.
    pub(in super::super) fn heeding(mut self, reply: Reply) -> Reply {
        mapped(reply, move |outcome| {
            self.heed(&outcome);
            outcome
        })
    }
}

impl Drop for Unwanted {
    fn drop(&mut self) {
        // Outside a runtime there is nobody to tell it: the process is ending.
        let Some((session, local)) = self.0.take() else {
            return;
        };
        if tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        let (tasks, parked) = (session.line.terms.tasks.clone(), session.parked.clone());
        // A session that ends waits for it, as for the calls that are parked there.
        tasks.spawn(parked.track_future(async move {
            let line = &session.line;
            let params = meta::object_of(&[("taskId", Json::string(&local))]);
            let headers = line.headers.clone();
            let deadline = Instant::now() + FAREWELL;
            let method = methods::TASKS_CANCEL;
            let told = exchange::ask(line, method, &params, headers, deadline, true).await;
            if let Err(error) = told {
                tracing::debug!(%error, "a task could not be cancelled");
            }
        }));
    }
}
