//! Validate: arguments before a call leaves and results before they return are held to the tool's own schemas.
//! See PRODUCT 11, SECURITY MSG-12.
//!
//! Guarantees: what is judged is the very text that policies saw and that the upstream is sent, and the very text that it sent;
//! a call whose arguments do not fit reaches nobody, and whoever made it is told the places and what is wanted there, never a
//! value; a result that does not fit is refused, or noted, as the rules say; no tree is built, and nothing is looked at where a
//! tool has no schema. Deliberately absent: the judging, which is `schema`'s, and the rules, which are `catalog`'s.

use std::{sync::Arc, time::SystemTime};

use futures_util::StreamExt;

use super::{Error, Gate, Parts, Wrap};
use crate::{
    call::{CallId, Op, Outcome, Reply, ReplyStream, Step, TaskOp, Trail},
    catalog::{Terms, rules::OnBroken},
    findings::{Action, Direction, Finding, Findings},
    json::{Json, Kind},
    jsonrpc::RpcError,
    metrics::{self, Bound, Side},
    protocol::{UpstreamId, codes, meta},
    schema::{Problem, Verdict},
    snapshot::Seen,
    stage::{Passage, Permitted},
    tasks::look_through,
};

/// Holds arguments to the input schema.
#[derive(Debug)]
pub(super) struct CheckArguments {
    findings: Findings,
}

/// Holds results to the output schema.
#[derive(Debug)]
pub(super) struct CheckResult {
    findings: Findings,
}

impl CheckArguments {
    pub(super) fn new(parts: &Parts) -> Self {
        Self {
            findings: parts.findings.clone(),
        }
    }
}

impl CheckResult {
    pub(super) fn new(parts: &Parts) -> Self {
        Self {
            findings: parts.findings.clone(),
        }
    }
}

impl Gate<Box<Permitted>> for CheckArguments {
    type Pass = Box<Permitted>;

    fn admit(&self, routed: Box<Permitted>) -> Result<Box<Permitted>, Error> {
        let Some(route) = routed.passage().map(Passage::route) else {
            return Ok(routed);
        };
        let Some(terms) = &route.terms else {
            return Ok(routed);
        };
        let Op::CallTool(_) = &routed.call.op else {
            return Ok(routed);
        };
        let arguments = routed.call.params.root().member("arguments");
        let arguments = arguments.filter(|arguments| arguments.kind() != Kind::Null);
        let bytes = routed.call.params.len();
        let problems = match look_through(bytes, || terms.arguments(arguments)) {
            Verdict::Fits | Verdict::Unjudged => return Ok(routed),
            Verdict::Broken(problems) => problems,
            Verdict::TooMuch => vec![too_much()],
        };
        metrics::instruments().invalid(Side::Arguments, "refuse");
        let about = About {
            upstream: route.upstream.clone(),
            tool: route.local.clone(),
            call: routed.call.id,
            trail: routed.call.trail.clone(),
        };
        about.note(
            &self.findings,
            Direction::Arguments,
            Action::Block,
            &problems,
        );
        Err(Error::InvalidArguments(problems.into()))
    }
}

/// What is remembered of a call whose result is held to something.
#[derive(Debug)]
pub(super) struct Mark {
    terms: Arc<Terms>,
    snapshot: Seen,
    findings: Findings,
    about: About,
    /// Whether the result is inside the state of a task.
    inside: bool,
}

/// Whose value does not fit.
#[derive(Debug)]
struct About {
    upstream: UpstreamId,
    tool: Arc<str>,
    call: CallId,
    trail: Trail,
}

impl Wrap<Box<Permitted>> for CheckResult {
    type Mark = Option<Mark>;

    fn enter(&self, routed: &mut Box<Permitted>) -> Self::Mark {
        let route = routed.passage()?.route();
        let terms = route.terms.as_ref().filter(|terms| terms.binds_results())?;
        let inside = match &routed.call.op {
            Op::CallTool(_) | Op::Task(TaskOp::Result, _) => false,
            Op::Task(TaskOp::Get, _) => true,
            Op::Discover
            | Op::List(..)
            | Op::GetPrompt(_)
            | Op::ReadResource(_)
            | Op::Complete(_)
            | Op::GetSkill(_)
            | Op::ReadDirectory(..)
            | Op::Task(TaskOp::Update | TaskOp::Cancel, _)
            | Op::ListTasks(_)
            | Op::Listen(_) => return None,
        };
        Some(Mark {
            terms: terms.clone(),
            snapshot: routed.snapshot.clone(),
            findings: self.findings.clone(),
            about: About {
                upstream: route.upstream.clone(),
                tool: route.local.clone(),
                call: routed.call.id,
                trail: routed.call.trail.clone(),
            },
            inside,
        })
    }

    fn leave(&self, mark: Self::Mark, result: Result<Reply, Error>) -> Result<Reply, Error> {
        let Some(mark) = mark else { return result };
        match result? {
            Reply::Done(outcome) => match mark.broken(&outcome) {
                None => Ok(Reply::Done(outcome)),
                Some(problems) => Err(Error::InvalidResult {
                    upstream: mark.about.upstream,
                    problems: problems.into(),
                }),
            },
            Reply::Stream(stream) => {
                let steps = stream.map(move |step| match step {
                    Step::Event(event) => Step::Event(event),
                    Step::Outcome(outcome) => Step::Outcome(match mark.broken(&outcome) {
                        None => outcome,
                        Some(problems) => lost(&mark.about.upstream, &problems),
                    }),
                });
                Ok(Reply::Stream(ReplyStream::new(steps.boxed())))
            }
        }
    }
}

impl Mark {
    /// Where a result does not fit, if it is to be refused for it.
    fn broken(&self, outcome: &Outcome) -> Option<Vec<Problem>> {
        let (Outcome::Complete(result) | Outcome::Task(result)) = outcome else {
            return None;
        };
        let bytes = result.len();
        let result = match (self.inside, outcome) {
            (true, _) => result.root().member("result")?,
            (false, Outcome::Complete(_)) => result.root(),
            // No result yet.
            (false, _) => return None,
        };
        let problems = match look_through(bytes, || self.terms.result(result)) {
            Some(Verdict::Fits | Verdict::Unjudged) => return None,
            Some(Verdict::Broken(problems)) => problems,
            Some(Verdict::TooMuch) => vec![too_much()],
            None if !self.owes_structure() => return None,
            None => vec![Problem {
                path: String::new(),
                wanted: "must be there: there is no `structuredContent`".to_owned(),
            }],
        };
        let (action, word) = match self.terms.on_results {
            OnBroken::Refuse => (Action::Block, "refuse"),
            OnBroken::Flag | OnBroken::Off => (Action::Flag, "flag"),
        };
        metrics::instruments().invalid(Side::Result, word);
        self.about
            .note(&self.findings, Direction::Results, action, &problems);
        (action == Action::Block).then_some(problems)
    }

    /// Whether the upstream's revision knows of structured results.
    fn owes_structure(&self) -> bool {
        let revision = self.snapshot.catalog.revision_of(&self.about.upstream);
        revision.is_none_or(|revision| revision.features().structured_output)
    }
}

impl About {
    fn note(
        &self,
        findings: &Findings,
        direction: Direction,
        action: Action,
        problems: &[Problem],
    ) {
        // The first place stands for all; no text matched anything.
        let place = problems.first().map_or("", |problem| &problem.path);
        let place = findings.place(place);
        tracing::debug!(
            call = %self.call,
            upstream = %self.upstream,
            tool = &*self.tool,
            place = &*place,
            action = action.word(),
            side = direction.word(),
            "does not fit its schema"
        );
        let finding = Finding {
            kind: "schema",
            rule: match direction {
                Direction::Arguments => "input_schema".into(),
                Direction::Results | Direction::Definitions => "output_schema".into(),
            },
            action,
            direction,
            place: place.into_owned().into(),
            length: 0,
            digest: None,
            upstream: Some(self.upstream.clone()),
            item: Some(self.tool.clone()),
            call: Some(self.call),
            at: SystemTime::now(),
        };
        findings.note(finding, Some(&self.trail));
    }
}

/// What is said of a value that cannot be judged within bounds.
fn too_much() -> Problem {
    metrics::reached(Bound::SchemaTime);
    Problem {
        path: String::new(),
        wanted: "must be smaller, or hold smaller numbers: it cannot be checked in time".to_owned(),
    }
}

/// The places and what is wanted there, for a model to read.
pub fn in_words(problems: &[Problem]) -> String {
    let words: Vec<_> = problems
        .iter()
        .map(|problem| match problem.path.as_str() {
            "" => format!("the whole {}", problem.wanted),
            path => format!("`{path}` {}", problem.wanted),
        })
        .collect();
    words.join("; ")
}

/// A result that is refused after events went out.
fn lost(upstream: &UpstreamId, problems: &[Problem]) -> Outcome {
    let error = Error::InvalidResult {
        upstream: upstream.clone(),
        problems: problems.into(),
    };
    let reason = Json::string(error.reason());
    Outcome::Lost(RpcError {
        data: Some(meta::object_of(&[("reason", reason)])),
        ..RpcError::new(codes::UPSTREAM_PROTOCOL, refused(upstream, problems))
    })
}

/// What is said of a result that does not fit.
pub fn refused(upstream: &UpstreamId, problems: &[Problem]) -> String {
    format!(
        "the tool was run, and the answer of the server `{upstream}` is withheld: its `structuredContent` does not fit the tool's own output schema: {}",
        in_words(problems)
    )
}
