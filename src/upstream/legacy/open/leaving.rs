//! The end of a call before it is answered: its server is told, and what it asks is answered as by a person who walked away.

use std::sync::Arc;

use futures_util::future::join_all;
use tokio::sync::oneshot;

use super::OpenCall;
use crate::{
    call::Op,
    json::Json,
    jsonrpc::RpcError,
    protocol::{codes, meta},
};

impl OpenCall {
    /// Ends a call whose caller does not answer: its questions are answered as a person who walked away would, unless they can
    /// be asked again, and it is cancelled. Returns when the server has been told, or cannot be.
    pub(in super::super) async fn expire(mut self: Box<Self>) {
        // Nobody goes on with it, from here on and not only when the server has been told.
        self.meanwhile = None;
        self.aside = None;
        self.hang_up();
        let line = Arc::clone(&self.session.line);
        let cancel = Ok(meta::object_of(&[("action", Json::string("cancel"))]));
        let error = Err(RpcError::new(codes::INTERNAL_ERROR, "nobody answered"));
        let mut questions = std::mem::take(&mut self.questions);
        if self.is_outlived() {
            questions.clear();
        }
        let told = questions.into_iter().map(|question| {
            let body = if question.elicits { &cancel } else { &error };
            let line = &line;
            async move { line.reply(&question.id, body).await }
        });
        for told in join_all(told).await {
            if let Err(error) = told {
                tracing::debug!(%error, "a server could not be told that nobody answers");
            }
        }
        // Its seat, if it has one, is given up last: until then no other call of the session may be asked.
        self.give_up().await;
    }

    /// Reads no more of what comes on a pipe: what its server still asks there is refused at once, and its answer, which may come
    /// before it is told of the end, is known to be nobody's and lets others be asked.
    fn hang_up(&mut self) {
        if self.seat.is_some() {
            self.sending = None;
            self.exchange.hang_up();
        }
    }

    /// Gives it up, and returns when the server has been told. Its seat is left when the server has had time to heed that.
    pub(super) async fn give_up(&mut self) {
        self.hang_up();
        let Some(telling) = self.exchange.giving_up() else {
            return;
        };
        let seat = self.seat.take();
        let (told, hears) = oneshot::channel::<()>();
        // Whoever waits for that may go at any time, and the server is told all the same.
        self.session.line.terms.tasks.spawn(async move {
            telling.await;
            drop(told);
            if let Some(seat) = seat {
                seat.leave_in_time().await;
            }
        });
        drop(hears.await);
    }

    /// Whether it only reads what a task of its caller's comes to. The task goes on without it, and asks whoever reads next:
    /// nothing is answered in the name of a person who may still come (PROTOCOL D3).
    pub(super) const fn is_outlived(&self) -> bool {
        matches!(self.op, Op::Task(..))
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        // However long it took: its session was in use until now.
        self.slot.touch();
        // Outside a runtime there is nobody to tell it: the process is ending.
        if let Some(seat) = self.seat.take()
            && tokio::runtime::Handle::try_current().is_ok()
            && let Some(telling) = self.exchange.giving_up()
        {
            self.session.line.terms.tasks.spawn(async move {
                telling.await;
                seat.leave_in_time().await;
            });
        }
    }
}
