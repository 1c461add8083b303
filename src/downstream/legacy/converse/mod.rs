//! Converse: a call that asks for input, unrolled for a client that is asked with requests of ours (PROTOCOL D2b).
//!
//! All questions of a round go out at once on the stream of the call; when the answers are in, the call is made again with
//! them, through the whole stack, until it ends; what its server tells meanwhile is told as it comes. Guarantees: an answer that
//! was refused, or did not come within `MessageBounds::patience`, is never taken for consent; the call's deadline counts machines'
//! time only; a call that is given up between two rounds is not left waiting upstream; one that ends while its client is asked ends at once, and a question that is taken back is taken back
//! from the client (PROTOCOL A4), and that end is on record as any other is (SECURITY 8).

mod round;
#[cfg(test)]
mod tests;

use std::{collections::VecDeque, net::IpAddr, sync::Arc, time::Duration};

use futures_util::{
    StreamExt,
    future::BoxFuture,
    stream::{self, BoxStream, FuturesUnordered},
};
use tokio::time::{Instant, sleep, sleep_until};

use super::{Session, asks, questions, tasks};
use crate::{
    call::{
        Aside, Call, CallId, Caller, Event, Hold, Identity, InputRequired, Op, Outcome, Reply,
        ReplyStream, Resume, Step, Trail,
    },
    downstream::Backing,
    json::{Json, Node},
    jsonrpc::encode,
    protocol::{meta, methods},
    stack::{Error, Pause},
    tasks::LaneArc,
};

use round::{Round, becomes};

/// The first pause before a call is repeated that brought nothing but state; doubled each time.
const PACE: Duration = Duration::from_millis(100);
/// The longest such pause.
const PACE_MAX: Duration = Duration::from_secs(2);

/// What is kept of a call of a client that can be asked, beside what its exchange keeps anyway.
pub(in crate::downstream) struct Converse {
    session: Arc<Session>,
    caller: Arc<Caller>,
    identity: Arc<Identity>,
    address: Option<IpAddr>,
    params: Json,
    deadline: Instant,
    trail: Trail,
    patience: Duration,
}

/// What the exchange keeps of the call.
pub(in crate::downstream) struct Kept {
    /// Its number.
    pub(in crate::downstream) id: CallId,
    /// What is wanted.
    pub(in crate::downstream) op: Op,
    /// Whether progress is.
    pub(in crate::downstream) wants_progress: bool,
}

/// What happens on the way to the outcome.
pub(in crate::downstream) enum Turn {
    /// Something for the client.
    Event(Event),
    /// The end; nothing follows.
    End(Result<Outcome, Error>),
}

/// A conversation: turns, of which the last is the end. Dropping it gives the call up.
pub(in crate::downstream) type Talk = BoxStream<'static, Turn>;

impl Converse {
    /// A call of `session`'s client, about to be made; a person has `patience` for one round.
    pub(in crate::downstream) fn new(
        patience: Duration,
        session: &Arc<Session>,
        call: &Call,
    ) -> Self {
        Self {
            session: Arc::clone(session),
            caller: call.caller.clone(),
            identity: call.identity.clone(),
            address: call.address,
            params: call.params.clone(),
            deadline: call.deadline,
            trail: call.trail.clone(),
            patience,
        }
    }

    /// Goes on where the call has asked for input; it is made again through this.
    pub(in crate::downstream) fn go_on(
        self,
        backing: LaneArc<Backing>,
        kept: Kept,
        required: InputRequired,
    ) -> Talk {
        let call = Call {
            id: kept.id,
            op: kept.op,
            params: self.params,
            caller: self.caller,
            identity: self.identity,
            address: self.address,
            scope: self.session.owner.scope().clone(),
            resume: None,
            wants_progress: kept.wants_progress,
            mirrored: None,
            unasked: false,
            stake: None,
            deadline: self.deadline,
            trail: self.trail,
        };
        let talk = Talking {
            unrolled: Unrolled {
                backing,
                session: self.session,
                call,
                patience: self.patience,
                pause: None,
                aside: None,
                idle: 0,
            },
            phase: Phase::Asked(required),
        };
        stream::unfold(Some(talk), |talk| async move {
            let mut talk = talk?;
            let turn = talk.turn().await;
            let over = matches!(turn, Turn::End(_));
            Some((turn, (!over).then_some(talk)))
        })
        .boxed()
    }
}

/// A conversation under way.
struct Talking {
    unrolled: Unrolled,
    phase: Phase,
}

/// The call, and what it takes to make it again.
struct Unrolled {
    backing: LaneArc<Backing>,
    session: Arc<Session>,
    call: Call,
    /// Tells how the call ended, where it does while the client is asked.
    pause: Option<Pause>,
    /// What happens while the client is asked, where the call is held open.
    aside: Option<Aside>,
    /// Rounds that brought nothing but state.
    idle: u32,
    /// How long a person has for one round.
    patience: Duration,
}

#[expect(
    clippy::large_enum_variant,
    reason = "there is one, in a box with the conversation"
)]
enum Phase {
    /// The call has asked.
    Asked(InputRequired),
    /// Events are to go out, and then.
    Telling(VecDeque<Event>, Next),
    /// The call is made again.
    Calling(BoxFuture<'static, Result<Reply, Error>>),
    /// Its reply is read.
    Reading(ReplyStream),
}

enum Next {
    Wait(Round),
    Call(Call),
    /// The call that was made again has come to this.
    Take(Result<Reply, Error>),
    End,
}

impl Talking {
    async fn turn(&mut self) -> Turn {
        loop {
            match &mut self.phase {
                Phase::Asked(_) => {
                    let placeholder = Phase::Telling(VecDeque::new(), Next::End);
                    if let Phase::Asked(required) = std::mem::replace(&mut self.phase, placeholder)
                    {
                        self.phase = self.unrolled.ask(required);
                    }
                }
                Phase::Telling(events, next) => {
                    if let Some(event) = events.pop_front() {
                        return Turn::Event(event);
                    }
                    match next {
                        Next::Wait(round) => {
                            let (told, then) = self.unrolled.gather(round).await;
                            match then {
                                Some(next) => self.phase = Phase::Telling(told, next),
                                None => *events = told,
                            }
                        }
                        Next::Call(call) => {
                            if let Some(pause) = self.unrolled.pause.take() {
                                pause.go_on();
                            }
                            let call = self.unrolled.backing.service.call(Box::new(call.clone()));
                            self.phase = Phase::Calling(call);
                        }
                        Next::Take(_) => match std::mem::replace(next, Next::End) {
                            Next::Take(Ok(Reply::Stream(stream))) => {
                                self.phase = Phase::Reading(stream);
                            }
                            Next::Take(Ok(Reply::Done(Outcome::InputRequired(required)))) => {
                                self.phase = Phase::Asked(required);
                            }
                            Next::Take(Ok(Reply::Done(outcome))) => return Turn::End(Ok(outcome)),
                            Next::Take(Err(error)) => return Turn::End(Err(error)),
                            Next::Wait(_) | Next::Call(_) | Next::End => {}
                        },
                        Next::End => {
                            let error = Error::InputRefused;
                            if let Some(pause) = self.unrolled.pause.take() {
                                pause.end(&error);
                            }
                            return Turn::End(Err(error));
                        }
                    }
                }
                // What came while the client was asked came first, also what came at the very end. But the call is what brings
                // the answers, and events could go on for ever.
                Phase::Calling(call) => {
                    let reply = tokio::select! {
                        Some(event) = aside(&mut self.unrolled.aside) => return Turn::Event(event),
                        reply = call => reply,
                    };
                    self.phase = self.unrolled.take(reply);
                }
                Phase::Reading(stream) => {
                    let step = tokio::select! {
                        biased;
                        Some(event) = aside(&mut self.unrolled.aside) => return Turn::Event(event),
                        step = stream.next() => step,
                    };
                    let reply = match step {
                        Some(Step::Event(event)) => return Turn::Event(event),
                        Some(Step::Outcome(outcome)) => Ok(Reply::Done(outcome)),
                        None => Err(Error::Deadline),
                    };
                    self.phase = self.unrolled.take(reply);
                }
            }
        }
    }
}

impl Unrolled {
    /// Puts every question of a round.
    fn ask(&mut self, required: InputRequired) -> Phase {
        let InputRequired {
            requests,
            state,
            hold,
        } = required;
        self.pause = self.backing.service.pause(&self.call);
        self.aside = hold.as_ref().and_then(Hold::events);
        let mut round = Round {
            open: FuturesUnordered::new(),
            questions: Vec::new(),
            answers: Vec::new(),
            refused: Vec::new(),
            empty: requests.root().members().next().is_none(),
            left: self.call.deadline.saturating_duration_since(Instant::now()),
            state: Some(state),
            meanwhile: hold.as_ref().map(Hold::meanwhile),
            hold,
            until: Instant::now() + self.patience,
        };
        let mut frames = VecDeque::new();
        for request in requests.root().members() {
            let method = request.value.member("method").and_then(Node::as_str);
            let method = method.as_deref().unwrap_or_default();
            let elicits = method == methods::ELICITATION_CREATE;
            let params = match request.value.member("params") {
                Some(params) => requests.slice(params),
                None => Json::empty_object(),
            };
            let revision = self.session.revision;
            let id = || self.session.page(&params);
            let worded = questions::params(method, &params, revision, id)
                .and_then(|params| Some((params, asks::open(&self.session)?)));
            match worded {
                Some((params, awaited)) => {
                    // Whatever a task asks says which task's it is (PROTOCOL D3).
                    let params = if let Op::Task(_, handle) = &self.call.op {
                        tasks::related(&params, handle)
                    } else {
                        params
                    };
                    let frame = encode::request(&awaited.id, method, &params);
                    frames.push_back(Event::Worded(frame));
                    round.await_answer(request.key.into_owned(), elicits, awaited);
                }
                // There are no words for it, or too many are open: as if the person had closed the window.
                None if elicits => {
                    tracing::debug!(%revision, "a question has no words in the client's revision");
                    round.cancel(request.key.into_owned());
                }
                None => return Phase::Telling(VecDeque::new(), Next::End),
            }
        }
        Phase::Telling(frames, Next::Wait(round))
    }

    /// Waits for the answers; what is then to be said, and done. Where nothing is to be done, more is waited for. Answers and
    /// the end of patience come before what is told meanwhile, which could go on for ever.
    async fn gather(&mut self, round: &mut Round) -> (VecDeque<Event>, Option<Next>) {
        if round.empty {
            // A server that has nothing to ask wants time.
            let pause = PACE.saturating_mul(1 << self.idle.min(8)).min(PACE_MAX);
            self.idle += 1;
            tokio::select! {
                () = self.session.ended.cancelled() => return (VecDeque::new(), Some(Next::End)),
                () = sleep(pause) => {}
            }
            return (VecDeque::new(), Some(Next::Call(self.again(round))));
        }
        let ended = self.session.ended.clone();
        let late = sleep_until(round.until);
        tokio::pin!(late);
        let mut refused = false;
        while !refused && !round.open.is_empty() {
            tokio::select! {
                biased;
                () = ended.cancelled() => return (VecDeque::new(), Some(Next::End)),
                Some((at, answer)) = round.open.next() => refused = !round.take(at, answer),
                () = &mut late => {
                    // A task asks whoever waits for its result next, and nothing is said in the name of a person who may still
                    // come (PROTOCOL D3).
                    if matches!(self.call.op, Op::Task(..)) {
                        return (round.withdraw(), Some(Next::End));
                    }
                    refused = round.questions.iter().any(|one| one.open && !one.elicits);
                    break;
                }
                Some(event) = aside(&mut self.aside) => return (VecDeque::from([event]), None),
                became = becomes(&mut round.meanwhile) => {
                    if became.over {
                        // Nobody waits for an answer, and the outcome is there.
                        let notices = round.withdraw();
                        round.answers.clear();
                        return (notices, Some(Next::Call(self.again(round))));
                    }
                    let notices = round.take_back(&became.withdrawn, &self.session.asks);
                    return (notices, None);
                }
            }
        }
        let notices = round.withdraw();
        // A server that can hear of a refusal is told; for all others the call ends when it is made again.
        if refused && round.refused.is_empty() {
            return (notices, Some(Next::End));
        }
        (notices, Some(Next::Call(self.again(round))))
    }

    /// What the call that was made again has come to, once all is told that happened before.
    fn take(&mut self, reply: Result<Reply, Error>) -> Phase {
        let untold = self.aside.as_mut().map(Aside::rest).unwrap_or_default();
        Phase::Telling(untold, Next::Take(reply))
    }

    /// The call once more, with the answers of this round and no other (PROTOCOL G10).
    fn again(&mut self, round: &mut Round) -> Call {
        let answers: Vec<_> = round
            .answers
            .iter()
            .map(|(key, answer)| (key.as_str(), answer.clone()))
            .collect();
        let deadline = Instant::now() + round.left;
        self.call.deadline = deadline;
        // Of the same request; and what is learned now is what is known while the client is asked the next time.
        self.call.trail = self.call.trail.renewed();
        Call {
            resume: Some(Resume {
                responses: (!round.empty).then(|| meta::object_of(&answers)),
                refused: std::mem::take(&mut round.refused),
                state: round.state.take(),
                hold: round.hold.take(),
            }),
            ..self.call.clone()
        }
    }
}

/// What happens while the client is asked; never ready where nothing can.
async fn aside(aside: &mut Option<Aside>) -> Option<Event> {
    match aside {
        Some(aside) => aside.next().await,
        None => std::future::pending().await,
    }
}
