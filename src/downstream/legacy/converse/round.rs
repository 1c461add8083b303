//! One round: what is open, what came in, and the hold on what waits for it.

use std::{collections::VecDeque, time::Duration};

use futures_util::{FutureExt, future::BoxFuture, stream::FuturesUnordered};
use tokio::{sync::watch, time::Instant};

use super::super::asks::{Answered, Asks, Awaited};
use crate::{
    call::{Event, Hold, Meanwhile, State},
    json::{Edits, Json},
    jsonrpc::{RequestId, RpcError, encode},
    protocol::{codes, meta, methods},
};

/// The questions of one round.
pub(super) struct Round {
    pub(super) open: FuturesUnordered<BoxFuture<'static, (usize, Option<Answered>)>>,
    pub(super) questions: Vec<Question>,
    pub(super) answers: Vec<(String, Json)>,
    /// Errors of the client's own, which not every server can hear of.
    pub(super) refused: Vec<(String, RpcError)>,
    /// Nothing was asked: there is only state to bring back.
    pub(super) empty: bool,
    /// What the call goes on with, once.
    pub(super) state: Option<State>,
    /// Keeps what waits for it upstream: a round that is dropped lets go of that.
    pub(super) hold: Option<Hold>,
    /// Tells what becomes of that.
    pub(super) meanwhile: Option<watch::Receiver<Meanwhile>>,
    /// Until when a person may take.
    pub(super) until: Instant,
    /// What was left of the time for machines when the round began.
    pub(super) left: Duration,
}

/// One question that is open.
pub(super) struct Question {
    pub(super) key: String,
    pub(super) id: RequestId,
    pub(super) elicits: bool,
    pub(super) open: bool,
}

impl Round {
    pub(super) fn await_answer(&mut self, key: String, elicits: bool, mut awaited: Awaited) {
        let at = self.questions.len();
        self.questions.push(Question {
            key,
            id: awaited.id.clone(),
            elicits,
            open: true,
        });
        let answer = async move { (at, (&mut awaited.answer).await.ok()) };
        self.open.push(answer.boxed());
    }

    /// Takes an answer; `false` when it refuses what has no words for a refusal in every era, which ends the round (PROTOCOL H4).
    pub(super) fn take(&mut self, at: usize, answer: Option<Answered>) -> bool {
        let Some(question) = self.questions.get_mut(at) else {
            return true;
        };
        // What was taken back is not answered.
        if !question.open {
            return true;
        }
        let Some(answer) = answer else {
            // Nobody answers any more: it is taken back with the others.
            return question.elicits;
        };
        question.open = false;
        match answer {
            Ok(result) => {
                let mut edits = Edits::new();
                meta::rewrite(&mut edits, result.root(), &[]);
                let answer = (question.key.clone(), result.splice(&edits));
                self.answers.push(answer);
                true
            }
            _ if question.elicits => {
                let key = question.key.clone();
                self.cancel(key);
                true
            }
            Err(error) => {
                self.refused.push((question.key.clone(), error));
                false
            }
        }
    }

    /// Closes what the server has taken back: the notices that say so. No answer goes to it.
    pub(super) fn take_back(&mut self, keys: &[String], asks: &Asks) -> VecDeque<Event> {
        let mut notices = VecDeque::new();
        for question in self.questions.iter_mut().filter(|question| question.open) {
            if keys.contains(&question.key) {
                question.open = false;
                asks.forget(&question.id);
                notices.push_back(question.withdrawal());
            }
        }
        notices
    }

    /// Closes what nobody has answered and nobody is going to: the notices that say so.
    pub(super) fn withdraw(&mut self) -> VecDeque<Event> {
        self.open.clear();
        let mut notices = VecDeque::new();
        let mut closed = Vec::new();
        for question in self.questions.iter_mut().filter(|question| question.open) {
            question.open = false;
            notices.push_back(question.withdrawal());
            if question.elicits {
                closed.push(question.key.clone());
            } else if !self.refused.is_empty() {
                let error = RpcError::new(codes::INTERNAL_ERROR, "not asked any more");
                self.refused.push((question.key.clone(), error));
            }
        }
        closed.into_iter().for_each(|key| self.cancel(key));
        notices
    }

    /// Whoever is asked and says nothing has not agreed.
    pub(super) fn cancel(&mut self, key: String) {
        let answer = meta::object_of(&[("action", Json::string("cancel"))]);
        self.answers.push((key, answer));
    }
}

impl Question {
    /// Says that no answer to it is wanted any more.
    fn withdrawal(&self) -> Event {
        let params = meta::object_of(&[("requestId", self.id.json().clone())]);
        Event::Worded(encode::notification(methods::CANCELLED, Some(&params)))
    }
}

/// What becomes of what is held open; never ready where nothing is.
pub(super) async fn becomes(meanwhile: &mut Option<watch::Receiver<Meanwhile>>) -> Meanwhile {
    match meanwhile {
        Some(told) => match told.changed().await {
            Ok(()) => told.borrow_and_update().clone(),
            // Nobody reads it on, so there is nothing to wait for.
            Err(_) => Meanwhile {
                over: true,
                ..Meanwhile::default()
            },
        },
        None => std::future::pending().await,
    }
}
