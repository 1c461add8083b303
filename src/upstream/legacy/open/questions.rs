//! What a server asks the caller of a call under way: taken in, put together, answered, or refused (PROTOCOL D2c).

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use http::StatusCode;
use tokio::time::Instant;

use super::OpenCall;
use crate::{
    call::{Call, InputRequired, Op, Outcome, Reply, State},
    json::{Edits, Fate, Json, Node},
    jsonrpc::{Request, RequestId, RpcError},
    metrics::{Bound, reached},
    protocol::{Era, codes, meta, methods},
    resume::Asked,
    upstream::{
        UpstreamError,
        asking::{self, Offer},
        exchange,
        legacy::park::{self, ParkedCalls},
        terms::CallSlot,
        transport::Answer,
        visits,
    },
};

/// How long further questions are waited for after the first, to ask them together.
const BATCH: Duration = Duration::from_millis(5);

/// A request of the server's that is open.
pub(super) struct Question {
    /// What the caller knows it by.
    key: String,
    pub(super) id: RequestId,
    /// `{method, params}` as the caller gets it.
    request: Json,
    pub(super) elicits: bool,
    /// Whether the caller was asked it.
    put: bool,
}

impl OpenCall {
    /// Goes on for `call`, which brings answers: they go to the server under the ids of its questions, and what was not
    /// answered will be asked again. `permit` is the call's share of work at once.
    ///
    /// # Errors
    /// What sending an answer failed with; the call is then given up.
    pub(in super::super) async fn resume(
        mut self: Box<Self>,
        call: &Call,
        deadline: Instant,
        permit: CallSlot,
    ) -> Result<Reply, UpstreamError> {
        let caller = &call.caller;
        self.meanwhile = None;
        self.aside = None;
        self.caller = Arc::clone(caller);
        let offer = Offer::to(&self.session.line.terms, call);
        self.offer = self.session.line.offer.and(offer);
        self.deadline = deadline;
        self.progress = call.wants_progress;
        let heard = self.session.line.wire.streamable || self.seat.is_some();
        let log = caller.log_level.filter(|_| heard);
        self.exchange.attach(deadline, call, Some(self.offer), log);
        self.exchange.hold(permit);
        if let Some(level) = log
            && self.over.is_none()
        {
            self.session.heed(level).await;
        }
        let resume = call.resume.as_ref();
        let responses = resume.and_then(|resume| resume.responses.as_ref());
        let refused = |key: &str| {
            let mut refused = resume.into_iter().flat_map(|resume| &resume.refused);
            refused
                .find(|(asked, _)| asked == key)
                .map(|(_, error)| Err(error.clone()))
        };
        let mut answers = Vec::new();
        self.questions.retain(|question| {
            let answer = responses.and_then(|responses| {
                let answer = responses.root().member(&question.key)?;
                Some(responses.slice(answer))
            });
            match answer.map(body_of).or_else(|| refused(&question.key)) {
                Some(body) => {
                    answers.push((question.id.clone(), body));
                    false
                }
                None => true,
            }
        });
        // Whoever goes on may be able to less than who was asked: what is not for them would be in the way of what comes
        // next. About a task somebody may ask later who is able to more.
        let (offer, is_outlived) = (self.offer, self.is_outlived());
        self.questions.retain(|question| {
            if is_outlived {
                return true;
            }
            let asks = question.request.root();
            let method = asks.member("method").and_then(Node::as_str);
            let allowed = offer.allows(&method.unwrap_or_default(), asks.member("params"));
            if let Err(why) = &allowed {
                let refusal = RpcError::new(why.code(), why.to_string());
                answers.push((question.id.clone(), Err(refusal)));
            }
            allowed.is_ok()
        });
        if self.over.is_none() {
            let line = &self.session.line;
            let sent = answers
                .iter()
                .map(|(id, body)| line.reply_before(id, body, deadline));
            for answer in join_all(sent).await {
                // Whether or not a message says why, it has not taken the answer.
                let (Answer::Status(head)
                | Answer::Accepted(head)
                | Answer::One(head, _)
                | Answer::Stream(head, _)) = answer.map_err(UpstreamError::of_a_call_under_way)?;
                if !head.status.is_success() {
                    // The call went with its session (PROTOCOL D7).
                    if head.status == StatusCode::NOT_FOUND {
                        self.slot.forget(&self.session);
                        return Err(UpstreamError::OutcomeUnknown);
                    }
                    return Err(exchange::bare(&head).of_a_call_under_way());
                }
            }
        } else if self.lingers.take().is_some() {
            // The outcome is there, whatever becomes of these.
            let line = &self.session.line;
            let sent = answers.iter().map(|(id, body)| line.reply(id, body));
            for told in join_all(sent).await {
                if let Err(error) = told {
                    tracing::debug!(%error, "a server could not be told the roots that it asked for");
                }
            }
            self.refuse_questions();
        }
        self.ask_at = (!self.questions.is_empty()).then(|| Instant::now() + BATCH);
        self.into_reply().await
    }

    /// Takes a request of the server's: kept, to be put to the caller, or refused.
    pub(super) async fn consider(&mut self, request: Request) {
        let line = &self.session.line;
        if &*request.method == methods::PING {
            return line.answer(&request).await;
        }
        match self.question(&request) {
            Ok(question) => {
                self.asked += 1;
                self.questions.push(question);
                self.ask_at.get_or_insert_with(|| Instant::now() + BATCH);
            }
            Err(refusal) => {
                line.terms.drop_frame();
                if let Err(error) = line.reply(&request.id, &Err(refusal)).await {
                    tracing::debug!(%error, "a server's request could not be refused");
                }
            }
        }
    }

    /// What the caller is asked by a request of the server's.
    ///
    /// # Errors
    /// What the server is told, where it may not be put to them.
    fn question(&self, request: &Request) -> Result<Question, RpcError> {
        let bounds = &self.session.line.terms.peer.asking;
        let params = request.params.as_ref().map(Json::root);
        self.offer
            .allows(&request.method, params)
            .map_err(|why| RpcError::new(why.code(), why.to_string()))?;
        if self.questions.len() >= bounds.inputs {
            reached(Bound::Inputs);
            let full = "too many requests of this call are open";
            return Err(RpcError::new(codes::INVALID_PARAMS, full));
        }
        // A task may be asked about again, on another call: its keys are unique for its life (PROTOCOL D3).
        let key = if matches!(self.op, Op::Task(..)) {
            format!("ask-{:016x}", park::random())
        } else {
            format!("ask-{}", self.asked + 1)
        };
        let question = Question {
            key,
            request: self.outward(request),
            elicits: &*request.method == methods::ELICITATION_CREATE,
            id: request.id.clone(),
            put: false,
        };
        // Those that are open go to the caller together. Whatever does not fit there ends the call, and here only itself
        // (SECURITY STATE-3).
        let together: Vec<_> = self
            .questions
            .iter()
            .chain([&question])
            .map(|question| (question.key.as_str(), question.request.clone()))
            .collect();
        let together = meta::object_of(&together);
        match Asked::of(&together, &self.caller.capabilities, bounds) {
            Ok(_fits) => Ok(question),
            Err(fault) => Err(RpcError::new(codes::INVALID_PARAMS, fault.to_string())),
        }
    }

    /// A request as the caller gets it: nothing of this hop in it, and no context of other servers asked for.
    fn outward(&self, request: &Request) -> Json {
        let method = ("method", Json::string(&request.method));
        let Some(params) = &request.params else {
            return meta::object_of(&[method]);
        };
        let mut edits = Edits::new();
        meta::rewrite(&mut edits, params.root(), &[]);
        let mut params = params.splice(&edits);
        if self.caller.revision.era() == Era::Legacy {
            params = visits::outward(&self.session.line.terms.id, &params);
        }
        let mut edits = Edits::new();
        let modern = self.caller.revision.era() == Era::Modern;
        edits.members(
            params.root(),
            |key, _| match key {
                // Nobody could follow the task up: none was offered.
                "task" => Fate::Remove,
                "elicitationId" if modern => Fate::Remove,
                _ => Fate::Keep,
            },
            &[],
        );
        if &*request.method == methods::SAMPLING_CREATE {
            asking::without_context(&mut edits, params.root());
        }
        meta::object_of(&[method, ("params", params.splice(&edits))])
    }

    pub(super) fn withdrawn(&mut self, id: &Json) {
        let same = |question: &Question| {
            question.id.json() == id
                || id.root().as_str().is_some()
                    && question.id.json().root().as_str() == id.root().as_str()
        };
        let withdrawn = self.questions.extract_if(.., |question| same(question));
        // Who was not asked it yet need not hear of it.
        let withdrawn = withdrawn.filter(|question| question.put);
        let withdrawn: Vec<_> = withdrawn.map(|question| question.key).collect();
        if let Some(meanwhile) = &self.meanwhile {
            meanwhile.send_modify(|meanwhile| meanwhile.withdrawn.extend(withdrawn));
        }
        if self.questions.is_empty() {
            self.ask_at = None;
        }
    }

    /// Asks the caller: the call is parked, and the outcome says under which number. Its share of work at once is free again,
    /// or a few slow people would keep everybody else out.
    ///
    /// # Errors
    /// Where there is no room to wait: [`UpstreamError::OutcomeUnknown`] for a tool, and [`UpstreamError::Overloaded`] for what
    /// only reads.
    pub(super) async fn ask(mut self: Box<Self>) -> Result<Outcome, UpstreamError> {
        let questions: Vec<_> = self
            .questions
            .iter_mut()
            .map(|question| {
                question.put = true;
                let question: &Question = question;
                (question.key.as_str(), question.request.clone())
            })
            .collect();
        let requests = meta::object_of(&questions);
        drop(self.exchange.release());
        self.exchange.rest();
        self.ask_at = None;
        match ParkedCalls::park(self) {
            Ok((number, hold)) => Ok(Outcome::InputRequired(InputRequired {
                requests,
                state: State::Parked(number),
                hold: Some(hold),
            })),
            // All that would have waited is its session's roots.
            Err(mut call) if call.has_outcome() => {
                call.refuse_questions();
                call.over.take().unwrap_or(Err(UpstreamError::Overloaded))
            }
            Err(call) => {
                // The server has been at work on it: what a tool may have done must not be done again for want of room.
                let full = if matches!(call.op, Op::CallTool(_)) {
                    UpstreamError::OutcomeUnknown
                } else {
                    UpstreamError::Overloaded
                };
                call.expire().await;
                Err(full)
            }
        }
    }

    /// Answers what is open with errors: the call it belonged to is over.
    pub(super) fn refuse_questions(&mut self) {
        let questions = std::mem::take(&mut self.questions);
        self.refuse(questions);
    }

    /// The same, but for those after the roots: whoever was asked the others hears that they are taken back.
    pub(super) fn refuse_all_but_roots(&mut self) {
        let asks_more = |question: &mut Question| {
            let method = question.request.root().member("method");
            method.and_then(Node::as_str).as_deref() != Some(methods::ROOTS_LIST)
        };
        let questions: Vec<_> = self.questions.extract_if(.., asks_more).collect();
        let put = questions.iter().filter(|question| question.put);
        let taken_back: Vec<_> = put.map(|question| question.key.clone()).collect();
        if let Some(meanwhile) = &self.meanwhile
            && !taken_back.is_empty()
        {
            meanwhile.send_modify(|meanwhile| meanwhile.withdrawn.extend(taken_back));
        }
        self.refuse(questions);
    }

    fn refuse(&mut self, questions: Vec<Question>) {
        self.ask_at = None;
        if questions.is_empty() {
            return;
        }
        let line = Arc::clone(&self.session.line);
        self.session.line.terms.tasks.spawn(async move {
            let error = RpcError::new(codes::INVALID_PARAMS, "the call it belonged to is over");
            let body = Err(error);
            join_all(
                questions
                    .iter()
                    .map(|question| line.reply(&question.id, &body)),
            )
            .await;
        });
    }
}

/// The body that answers a question. Results go as they are; an object that holds nothing but an error is one: that is how a
/// dialect says that its client refused.
fn body_of(answer: Json) -> Result<Json, RpcError> {
    let mut members = answer.root().members();
    if let (Some(only), None) = (members.next(), members.next())
        && only.key == "error"
        && let Some(code) = only.value.member("code").and_then(Node::as_i64)
    {
        let message = only.value.member("message").and_then(Node::as_str);
        return Err(RpcError::new(code, message.unwrap_or_default()));
    }
    Ok(answer)
}
