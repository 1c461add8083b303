//! `tasks/list`: the tasks that a client has made, asked for one by one where they live (PROTOCOL D3).
//!
//! What an upstream lists itself is never used: behind a shared session it would hold everybody's.

use std::sync::Arc;

use futures_util::{StreamExt, stream};

use super::{
    Handles, cursor,
    ledger::{Entry, Holder},
    named,
};
use crate::{
    call::{Call, CallId, Op, Outcome, Reply, TaskOp},
    json::Json,
    protocol::{codes, meta},
    seal::unix_seconds,
    snapshot::{Seen, Snapshot},
    stack::{Error, Upstreams, authorize, sanitize::Watch},
    stage::Passage,
};

/// Tasks on one page.
const PAGE: usize = 20;
/// How many upstream requests of one list run at once.
const AT_ONCE: usize = 4;

impl Handles {
    /// One page of a caller's tasks. Those that their upstream no longer knows are forgotten. Those that cannot be asked for now
    /// are left out, and those of which something must not come through: whoever asks for one of these is told why.
    ///
    /// # Errors
    /// For a cursor that is not of this list.
    pub(in crate::stack) async fn list(
        self,
        upstreams: Arc<dyn Upstreams>,
        call: Box<Call>,
        snapshot: Seen,
        cursor: Option<String>,
    ) -> Result<Reply, Error> {
        let holder = Holder::of(&call);
        let now = unix_seconds();
        let after = match &cursor {
            None => 0,
            Some(text) => cursor::open(&self.sealer, &holder, text, now).ok_or(Error::BadCursor)?,
        };
        let (page, more) = self.ledger.after(&holder, after, PAGE);
        let last = page.last().map(|entry| entry.number).filter(|_| more);
        let states: Vec<_> = stream::iter(page)
            .map(|entry| self.state(&upstreams, &call, &snapshot, entry))
            .buffered(AT_ONCE)
            .collect()
            .await;
        let mut tasks = Vec::with_capacity(states.len());
        for state in states {
            match state {
                State::Known(task) => tasks.push(task),
                State::Gone(number) => self.ledger.forget(&holder, number),
                State::Unasked => {}
            }
        }
        let mut members = vec![("tasks", Json::array(&tasks))];
        if let Some(last) = last {
            let cursor = cursor::seal(&self.sealer, &holder, last, now);
            members.push(("nextCursor", Json::string(&cursor)));
        }
        Ok(Reply::Done(Outcome::Complete(meta::object_of(&members))))
    }
}

enum State {
    Known(Json),
    Gone(u64),
    Unasked,
}

impl Handles {
    async fn state(
        &self,
        upstreams: &Arc<dyn Upstreams>,
        call: &Call,
        snapshot: &Snapshot,
        entry: Entry,
    ) -> State {
        let task = &entry.task;
        let tool = task.tool.as_deref();
        let Ok(permit) = authorize::of_task(call, snapshot, &task.upstream, tool) else {
            return State::Unasked;
        };
        let ask = Call {
            id: CallId::new(),
            op: Op::Task(TaskOp::Get, entry.handle.clone()),
            params: meta::object_of(&[("taskId", Json::string(&entry.handle))]),
            wants_progress: false,
            resume: None,
            ..call.clone()
        };
        let tool = task.tool_in(&snapshot.catalog, &call.scope);
        let tool = tool.map(|tool| tool.local.clone());
        let passage = Passage::to_task(task.route(), permit, tool);
        // As if it had been asked for alone: each is judged by the rules of its own server and tool.
        let bearer = upstreams.bearer(&task.upstream, &call.identity);
        let watch = Watch::of(&self.sanitizer, call, &ask.op, (&passage, bearer));
        let reply = match upstreams.call(ask, passage).await {
            Ok(Reply::Done(outcome)) => outcome,
            Ok(Reply::Stream(mut steps)) => loop {
                match steps.next().await {
                    Some(crate::call::Step::Outcome(outcome)) => break outcome,
                    Some(crate::call::Step::Event(_)) => {}
                    None => return State::Unasked,
                }
            },
            Err(_) => return State::Unasked,
        };
        match reply {
            Outcome::Complete(state) => match watch.result(state, None) {
                Ok(state) => State::Known(named(&state, &entry.handle)),
                Err(_) => State::Unasked,
            },
            Outcome::Failed(error) if error.code == codes::INVALID_PARAMS => {
                State::Gone(entry.number)
            }
            Outcome::Failed(_)
            | Outcome::Listed(_)
            | Outcome::Card(_)
            | Outcome::Task(_)
            | Outcome::InputRequired(_)
            | Outcome::Lost(_) => State::Unasked,
        }
    }
}
