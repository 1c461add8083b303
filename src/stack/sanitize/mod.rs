//! Sanitize: no upstream is sent what must not leave, and no client what must not come through (SECURITY 7).
//!
//! Guarantees: arguments and answers to questions, errors among them, are refused or sent as they came, never altered
//! (SECURITY I1), and the upstream of a refused call is not contacted; everything an upstream says within a call is looked at
//! before anything above sees it, events and errors included; a question of which more would change than what people read of
//! it is not asked. Content that is clean is handed on as it is. What is watched counts as said to its upstream, and the
//! address of a change as said by it. Deliberately absent: what is looked for and what becomes of it, which `sanitize` says.

#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, PoisonError};

use futures_util::StreamExt;
use secrecy::SecretString;

use super::{Error, Gate, Parts, Upstreams, Wrap, skills::Named};
use crate::{
    call::{
        Call, CallId, Event, InputRequired, LogLevel, Op, Outcome, Reply, ReplyStream, Step,
        TaskOp, Trail,
    },
    catalog::Terms,
    findings::Direction,
    json::{Edits, Fate, Json, Kind, Node},
    jsonrpc::RpcError,
    protocol::{UpstreamId, codes, meta},
    sanitize::{
        Blocked, Blocks, Class, Marks, Questions, Sanitizer, Subject, Tail, Verdict, ask_the_same,
        rules::Actions,
    },
    stage::{Passage, Permitted, PermittedWatch, Watchable, Way},
    tasks::{clock, look_through},
    upstream::Bearer,
};

/// Judges what goes to an upstream.
pub(super) struct CheckContent {
    sanitizer: Arc<Sanitizer>,
    upstreams: Arc<dyn Upstreams>,
}

/// Judges what comes back.
pub(super) struct Sanitize {
    sanitizer: Arc<Sanitizer>,
    upstreams: Arc<dyn Upstreams>,
    /// What is held to a digest by an answer that came through here.
    named: Arc<Named>,
}

impl Sanitize {
    pub(super) fn new(parts: &Parts) -> Self {
        Self {
            sanitizer: parts.sanitizer.clone(),
            upstreams: parts.upstreams.clone(),
            named: Arc::default(),
        }
    }
}

/// What is remembered of a call.
#[derive(Debug)]
pub(super) struct Watch {
    sanitizer: Arc<Sanitizer>,
    actions: Actions,
    upstream: Option<UpstreamId>,
    item: Option<Arc<str>>,
    call: CallId,
    trail: Trail,
    /// What the call goes with, where that was got for it.
    bearer: Option<Bearer>,
    /// How a result is read; what else comes back is read as what it is.
    result: Reading,
    /// Whether the reader of the result may know its digest.
    sealed: bool,
    /// Where it is kept what the result names with digests, if it does.
    names: Option<Arc<Named>>,
    /// What such content is held to.
    terms: Option<Arc<Terms>>,
}

/// How a value is read: which of its own members are handles, where in it people are asked, and what of it is one text.
#[derive(Debug, Clone, Copy)]
struct Reading {
    handles: &'static [&'static str],
    questions: Questions,
    blocks: Blocks,
}

impl Reading {
    const PLAIN: Self = Self::with(&[]);
    /// The state of a task, which may ask.
    const TASK: Self = Self {
        handles: &["taskId"],
        questions: Questions::State,
        blocks: Blocks::Named,
    };
    /// Questions, whose keys are whatever who asks calls them.
    const REQUESTS: Self = Self::asking(Questions::Requests);
    /// An error: its message and whatever is in its data.
    const ERROR: Self = Self {
        blocks: Blocks::All,
        ..Self::PLAIN
    };
    /// One that sends people to addresses.
    const VISITS: Self = Self {
        questions: Questions::Visits,
        ..Self::ERROR
    };

    const fn with(handles: &'static [&'static str]) -> Self {
        Self {
            handles,
            questions: Questions::None,
            blocks: Blocks::Named,
        }
    }

    const fn asking(questions: Questions) -> Self {
        Self {
            handles: &[],
            questions,
            blocks: Blocks::Named,
        }
    }
}

/// Members of params that are handles of ours, which do not go to an upstream as they are.
const fn ours(op: &Op) -> &'static [&'static str] {
    match op {
        Op::CallTool(_) | Op::GetPrompt(_) | Op::ReadResource(_) => &["requestState"],
        Op::Task(..) => &["taskId"],
        Op::ReadDirectory(..) => &["cursor"],
        Op::Discover
        | Op::List(..)
        | Op::Complete(_)
        | Op::GetSkill(_)
        | Op::ListTasks(_)
        | Op::Listen(_) => &[],
    }
}

/// How the result of a call is read.
const fn result_of(op: &Op) -> Reading {
    match op {
        Op::Task(TaskOp::Get, _) => Reading::TASK,
        Op::Task(TaskOp::Cancel, _) => Reading::with(&["taskId"]),
        Op::ReadDirectory(..) => Reading::with(&["nextCursor"]),
        Op::Task(TaskOp::Update | TaskOp::Result, _)
        | Op::Discover
        | Op::List(..)
        | Op::CallTool(_)
        | Op::GetPrompt(_)
        | Op::ReadResource(_)
        | Op::Complete(_)
        | Op::GetSkill(_)
        | Op::ListTasks(_)
        | Op::Listen(_) => Reading::PLAIN,
    }
}

impl Gate<Box<Permitted>> for CheckContent {
    type Pass = Box<Permitted>;

    fn admit(&self, permitted: Box<Permitted>) -> Result<Box<Permitted>, Error> {
        match &permitted.way {
            Way::Upstream(passage) => self.sent(&permitted.call, passage)?,
            Way::Hub(watched) => self.watched(&permitted.call, watched)?,
            Way::Snapshot | Way::Caller(_) => {}
        }
        Ok(permitted)
    }
}

impl CheckContent {
    pub(super) fn new(parts: &Parts) -> Self {
        Self {
            sanitizer: parts.sanitizer.clone(),
            upstreams: parts.upstreams.clone(),
        }
    }

    /// What a call says.
    fn sent(&self, call: &Call, passage: &Passage) -> Result<(), Error> {
        let route = passage.route();
        let tool = passage.tool(&call.op);
        let bearer = self.upstreams.bearer(&route.upstream, &call.identity);
        let actions = self.sanitizer.rules().actions(Some(&route.upstream), tool);
        let lent = first(bearer, actions, Direction::Arguments);
        let subject = Subject {
            upstream: Some(&route.upstream),
            item: Some(&route.local),
            call: Some((call.id, &call.trail)),
            skip: ours(&call.op),
            ..Subject::new(Direction::Arguments, actions, lent.as_slice())
        };
        // Their keys are whatever who asked called them.
        let answered = Subject {
            skip: &[],
            ..subject
        };
        let answers = call.resume.as_ref().and_then(|resume| {
            // What the client wrote in its params is looked at there.
            let responses = resume.responses.as_ref()?;
            call.params
                .root()
                .member("inputResponses")
                .is_none()
                .then_some((responses, &answered))
        });
        // A client may answer with an error of its own, which goes to the upstream as well.
        let refusal = Subject {
            blocks: Blocks::All,
            ..answered
        };
        let refused = call.resume.iter().flat_map(|resume| &resume.refused);
        let refused: Vec<_> = refused.map(|(_, error)| said_in(error)).collect();
        let refused = refused.iter().map(|said| (said, &refusal));
        let all = std::iter::once((&call.params, &subject)).chain(answers);
        for (value, subject) in all.chain(refused) {
            self.look(call, value, subject)?;
        }
        Ok(())
    }

    /// What is watched is named to its upstream as what is read is.
    fn watched(&self, call: &Call, watched: &[PermittedWatch]) -> Result<(), Error> {
        for Watchable {
            upstream, local, ..
        } in watched.iter().map(|watched| &watched.at)
        {
            let actions = self.sanitizer.rules().actions(Some(upstream), None);
            let bearer = self.upstreams.bearer(upstream, &call.identity);
            let lent = first(bearer, actions, Direction::Arguments);
            let subject = Subject {
                upstream: Some(upstream),
                item: Some(local),
                call: Some((call.id, &call.trail)),
                ..Subject::new(Direction::Arguments, actions, lent.as_slice())
            };
            self.look(call, &named(local), &subject)?;
        }
        Ok(())
    }

    fn look(&self, call: &Call, value: &Json, subject: &Subject<'_>) -> Result<(), Error> {
        let look = || look_through(value.len(), || self.sanitizer.look(value, subject));
        match timed(&call.trail, look) {
            Verdict::Clean | Verdict::Flagged(_) => Ok(()),
            Verdict::Blocked(blocked) => Err(Error::Withheld(Box::new(blocked))),
            // INVARIANT: no action on arguments alters them; if one ever does, nothing goes.
            Verdict::Changed(..) => {
                let blocked = self.sanitizer.noted(Blocked::whole("integrity"), subject);
                Err(Error::Withheld(Box::new(blocked)))
            }
        }
    }
}

/// What nobody may be told of as a call begins, beside what is always held; nothing where that is not looked for.
fn first(bearer: Option<Bearer>, actions: &Actions, direction: Direction) -> Option<SecretString> {
    let bearer = bearer.filter(|_| is_sought(actions, direction));
    bearer.and_then(Bearer::into_first)
}

/// What nobody may learn of a call beside what is always held; nothing where that is not looked for.
fn tokens(bearer: Option<&Bearer>, actions: &Actions, direction: Direction) -> Vec<SecretString> {
    let bearer = bearer.filter(|_| is_sought(actions, direction));
    bearer.map(Bearer::tokens).unwrap_or_default()
}

/// Whether credentials of the gateway's own are looked for.
fn is_sought(actions: &Actions, direction: Direction) -> bool {
    actions.of(Class::Own, direction).is_some()
}

/// A resource as params name it.
fn named(uri: &str) -> Json {
    meta::object_of(&[("uri", Json::string(uri))])
}

/// Whether the address of what lies below a watched resource may be told as its upstream writes it: nothing would be altered in
/// it. `bearer` is what the listen goes with there.
pub(super) fn may_be_told(
    sanitizer: &Sanitizer,
    (call, trail): &(CallId, Trail),
    (watched, bearer): (&Watchable, Option<&Bearer>),
    below: &Arc<str>,
) -> bool {
    let upstream = Some(&watched.upstream);
    let actions = sanitizer.rules().actions(upstream, None);
    let lent = tokens(bearer, actions, Direction::Results);
    let subject = Subject {
        upstream,
        item: Some(&watched.local),
        call: Some((*call, trail)),
        ..Subject::new(Direction::Results, actions, &lent)
    };
    let address = named(below);
    match look_through(address.len(), || sanitizer.look(&address, &subject)) {
        Verdict::Clean | Verdict::Flagged(_) => true,
        Verdict::Changed(..) | Verdict::Blocked(_) => false,
    }
}

impl Wrap<Box<Permitted>> for Sanitize {
    type Mark = Option<Box<Watch>>;

    fn enter(&self, permitted: &mut Box<Permitted>) -> Self::Mark {
        let call = &permitted.call;
        // What is answered here is ours, but for the states in a list of tasks: they are looked at where they are asked for.
        let passage = permitted.passage()?;
        let route = passage.route();
        let bearer = self.upstreams.bearer(&route.upstream, &call.identity);
        let mut watch = Watch::of(&self.sanitizer, call, &call.op, (passage, bearer));
        if matches!(call.op, Op::ReadResource(_)) {
            if route.local.starts_with("ui://") {
                // An app is active content, by its nature; its host shuts it in (PROTOCOL G16).
                watch.actions.set_all(Class::Active, None);
            }
            let catalog = &permitted.snapshot.catalog;
            watch.sealed = catalog.is_of_a_skill(&route.upstream, &route.local)
                || self.named.hold(&route.upstream, &route.local);
        }
        watch.names = matches!(call.op, Op::GetSkill(_)).then(|| self.named.clone());
        Some(Box::new(watch))
    }

    fn leave(&self, mark: Self::Mark, result: Result<Reply, Error>) -> Result<Reply, Error> {
        let Some(watch) = mark else { return result };
        match result? {
            Reply::Done(outcome) => {
                let outcome = watch.outcome(outcome, None)?;
                Ok(Reply::Done(meanwhile(watch, Tails::default(), outcome)))
            }
            Reply::Stream(stream) => {
                let mut tails = Tails::default();
                let mut watch = Some(watch);
                let steps = stream.map(move |step| match step {
                    Step::Event(event) => Step::Event(match &watch {
                        Some(watch) => watch.event(event, &mut tails),
                        None => event,
                    }),
                    // Once an event has gone out a refusal can only be an outcome.
                    Step::Outcome(outcome) => Step::Outcome(match watch.take() {
                        Some(watch) => {
                            let outcome = watch.outcome(outcome, Some(&mut tails.last));
                            let outcome = outcome.unwrap_or_else(|error| lost(&error));
                            meanwhile(watch, std::mem::take(&mut tails), outcome)
                        }
                        None => outcome,
                    }),
                });
                Ok(Reply::Stream(ReplyStream::new(steps.boxed())))
            }
        }
    }
}

/// What happens while the caller is asked is looked at as what happened before.
fn meanwhile(watch: Box<Watch>, tails: Tails, mut outcome: Outcome) -> Outcome {
    if let Outcome::InputRequired(InputRequired {
        hold: Some(hold), ..
    }) = &mut outcome
    {
        let tails = Mutex::new(tails);
        hold.look_through(move |event| {
            // A look that panicked leaves the ends of texts that came before.
            let mut tails = tails.lock().unwrap_or_else(PoisonError::into_inner);
            watch.event(event, &mut tails)
        });
    }
    outcome
}

/// Looks, and notes how long that took where somebody wants to know.
fn timed<T>(trail: &Trail, look: impl FnOnce() -> T) -> T {
    if !trail.is_read() {
        return look();
    }
    let began = clock::now_fresh();
    let seen = look();
    let took = clock::now_fresh() - began;
    trail.note(|facts| facts.spent.sanitising += took);
    seen
}

/// How the texts before ended: of each sort of event, and of whichever was last.
#[derive(Debug, Default)]
struct Tails {
    progress: Tail,
    log: Tail,
    last: Tail,
}

impl Watch {
    /// Of what comes back along this passage, where `op` is asked for within `call` and goes with that.
    pub(super) fn of(
        sanitizer: &Arc<Sanitizer>,
        call: &Call,
        op: &Op,
        (passage, bearer): (&Passage, Option<Bearer>),
    ) -> Self {
        let route = passage.route();
        let rules = sanitizer.rules();
        Self {
            sanitizer: sanitizer.clone(),
            actions: *rules.actions(Some(&route.upstream), passage.tool(op)),
            upstream: Some(route.upstream.clone()),
            item: Some(route.local.clone()),
            call: call.id,
            trail: call.trail.clone(),
            bearer,
            result: result_of(op),
            sealed: false,
            names: None,
            terms: route.terms.clone(),
        }
    }

    fn subject<'s>(&'s self, reading: Reading, lent: &'s [SecretString]) -> Subject<'s> {
        Subject {
            upstream: self.upstream.as_ref(),
            item: self.item.as_ref(),
            call: Some((self.call, &self.trail)),
            skip: reading.handles,
            questions: reading.questions,
            blocks: reading.blocks,
            sealed: self.sealed,
            ..Subject::new(Direction::Results, &self.actions, lent)
        }
    }

    /// What does not go on though nothing in it is blocked: for this reason, which is noted as what is found is.
    fn withheld(&self, reason: Blocked, reading: Reading) -> Blocked {
        self.sanitizer.noted(reason, &self.subject(reading, &[]))
    }

    fn look(&self, value: &Json, tail: Option<&mut Tail>, reading: Reading) -> Verdict {
        let lent = tokens(self.bearer.as_ref(), &self.actions, Direction::Results);
        let subject = self.subject(reading, &lent);
        let verdict = timed(&self.trail, || {
            look_through(value.len(), || {
                self.sanitizer.look_after(value, &subject, tail)
            })
        });
        if let Verdict::Changed(changed, _) = &verdict
            && !ask_the_same(value, changed, reading.questions)
        {
            let reason = Blocked::whole("requested_schema");
            return Verdict::Blocked(self.withheld(reason, reading));
        }
        verdict
    }

    fn event(&self, event: Event, tails: &mut Tails) -> Event {
        let seen = |value: Json, tail: &mut Tail, place: &str| {
            let verdict = self.look(&value, Some(tail), Reading::PLAIN);
            match verdict {
                Verdict::Clean | Verdict::Flagged(_) => value,
                Verdict::Changed(value, _) => value,
                // It happened, and that may be told; what it said may not.
                Verdict::Blocked(blocked) => {
                    let word = Json::string(&format!("[blocked:{}]", blocked.kind));
                    let fate = |key: &str, member: Node<'_>| {
                        if says_nothing(key, member) {
                            Fate::Keep
                        } else {
                            Fate::Remove
                        }
                    };
                    let mut edits = Edits::new();
                    edits.members(value.root(), fate, &[(place, word)]);
                    value.splice(&edits)
                }
            }
        };
        match event {
            Event::Progress(params) => {
                let params = seen(params, &mut tails.progress, "message");
                tails.last.clone_from(&tails.progress);
                Event::Progress(params)
            }
            Event::Log(level, params) => {
                let params = seen(params, &mut tails.log, "data");
                tails.last.clone_from(&tails.log);
                Event::Log(level, params)
            }
            // The end of an elicitation goes on as an id of ours and nothing else; a listen's tasks are looked at by calls, and its
            // resources where it is known which of them is watched.
            other @ (Event::Worded(_)
            | Event::Elicited(_)
            | Event::Acknowledged(_)
            | Event::Changed(_)) => other,
        }
    }

    fn outcome(&self, outcome: Outcome, tail: Option<&mut Tail>) -> Result<Outcome, Error> {
        Ok(match outcome {
            Outcome::Complete(result) => Outcome::Complete(self.result(result, tail)?),
            Outcome::Task(state) => {
                let (state, marks) = self.fitting(state, None, Reading::TASK)?;
                Outcome::Task(marked(state, &marks))
            }
            Outcome::Failed(error) => Outcome::Failed(self.failed(error, tail)?),
            Outcome::InputRequired(asked) => {
                let requests = match self.look(&asked.requests, None, Reading::REQUESTS) {
                    Verdict::Clean | Verdict::Flagged(_) => asked.requests,
                    Verdict::Changed(requests, _) => requests,
                    Verdict::Blocked(blocked) => return Err(Error::Blocked(Box::new(blocked))),
                };
                Outcome::InputRequired(InputRequired { requests, ..asked })
            }
            // Ours already.
            other @ (Outcome::Listed(_) | Outcome::Card(_) | Outcome::Lost(_)) => other,
        })
    }

    fn value(
        &self,
        value: Json,
        tail: Option<&mut Tail>,
        reading: Reading,
    ) -> Result<(Json, Marks), Error> {
        match self.look(&value, tail, reading) {
            Verdict::Clean => Ok((value, Marks::default())),
            Verdict::Flagged(marks) => Ok((value, marks)),
            Verdict::Changed(value, marks) => Ok((value, marks)),
            Verdict::Blocked(blocked) => Err(Error::Blocked(Box::new(blocked))),
        }
    }

    pub(super) fn result(&self, result: Json, tail: Option<&mut Tail>) -> Result<Json, Error> {
        let (result, marks) = self.fitting(result, tail, self.result)?;
        if let (Some(named), Some(upstream)) = (&self.names, &self.upstream) {
            named.take(upstream, &result);
        }
        Ok(marked(result, &marks))
    }

    /// A value that still fits its tool's schema: what is taken out must not leave a result that the tool never gives
    /// (SECURITY 7).
    fn fitting(
        &self,
        value: Json,
        tail: Option<&mut Tail>,
        reading: Reading,
    ) -> Result<(Json, Marks), Error> {
        let before = self.terms.as_ref().map(|terms| (terms, value.clone()));
        let (value, marks) = self.value(value, tail, reading)?;
        if let Some((terms, before)) = before.filter(|_| !marks.is_empty())
            && fits(terms, &before)
            && !fits(terms, &value)
        {
            let blocked = self.withheld(Blocked::misfit(&marks), reading);
            return Err(Error::Blocked(Box::new(blocked)));
        }
        Ok((value, marks))
    }

    fn failed(&self, error: RpcError, tail: Option<&mut Tail>) -> Result<RpcError, Error> {
        let reading = match error.code {
            codes::URL_ELICITATION_REQUIRED => Reading::VISITS,
            _ => Reading::ERROR,
        };
        let said = match self.look(&said_in(&error), tail, reading) {
            Verdict::Clean | Verdict::Flagged(_) => return Ok(error),
            Verdict::Changed(said, _) => said,
            Verdict::Blocked(blocked) => return Err(Error::Blocked(Box::new(blocked))),
        };
        // By their order: a rule of the operator's own may match the names.
        let mut values = said.root().members().map(|member| member.value);
        let message = values.next().and_then(Node::as_str);
        let data = values.next().map(|data| said.slice(data));
        match message {
            Some(message) if data.is_some() == error.data.is_some() => Ok(RpcError {
                code: error.code,
                message: message.into_owned(),
                data,
            }),
            _ => {
                let blocked = self.withheld(Blocked::whole("integrity"), reading);
                Err(Error::Blocked(Box::new(blocked)))
            }
        }
    }
}

/// What an error says. It is read as one: what is cut in two may begin in its message and end in its data.
fn said_in(error: &RpcError) -> Json {
    let mut members = vec![("message", Json::string(&error.message))];
    members.extend(error.data.clone().map(|data| ("data", data)));
    meta::object_of(&members)
}

/// Whether a member of a withheld event may stay: it is a number or a word of the protocol, and not text that an upstream wrote
/// in its place.
fn says_nothing(key: &str, member: Node<'_>) -> bool {
    match key {
        "progressToken" | "progress" | "total" => member.kind() == Kind::Number,
        "level" => member
            .as_str()
            .is_some_and(|word| LogLevel::parse(&word).is_some()),
        _ => false,
    }
}

/// Whether the structured content of a result, or of the one inside the state of a task, is as its tool says, if there is any.
fn fits(terms: &Terms, result: &Json) -> bool {
    let root = result.root();
    let inside = || root.member("result")?.member("structuredContent");
    let structured = root.member("structuredContent").or_else(inside);
    structured.is_none_or(|structured| look_through(result.len(), || terms.conforms(structured)))
}

/// The result, or the state of a task, with what was done to it in its `_meta`; what its upstream wrote there under our keys is cut.
fn marked(result: Json, marks: &Marks) -> Json {
    let root = result.root();
    let meta = root.member(meta::META);
    let forged = meta.is_some_and(|meta| meta.members().any(|member| meta::is_told(&member.key)));
    if marks.is_empty() && !forged {
        return result;
    }
    let mut edits = Edits::new();
    let own = [(meta::CONTENT, marks.told())];
    let own = if marks.is_empty() { &[] } else { &own[..] };
    match meta {
        Some(meta) if forged => {
            let fate = |key: &str, _: Node<'_>| {
                if meta::is_told(key) {
                    Fate::Remove
                } else {
                    Fate::Keep
                }
            };
            edits.members(meta, fate, own);
        }
        _ => meta::stamp(&mut edits, root, own),
    }
    result.splice(&edits)
}

/// A refusal after the first event.
fn lost(error: &Error) -> Outcome {
    let text = if let Error::Blocked(blocked) = error {
        format!("the answer was withheld: {}", blocked.why("come through"))
    } else {
        error.reason().to_owned()
    };
    Outcome::Lost(RpcError {
        data: Some(meta::object_of(&[("reason", Json::string(error.reason()))])),
        ..RpcError::new(codes::CONTENT_BLOCKED, text)
    })
}
