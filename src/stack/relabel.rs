//! Relabel: what an upstream calls its resources becomes what the client may call them (PROTOCOL E).
//!
//! Only the places that the protocol defines as URIs are touched: content links, embedded resources, `contents[].uri`, error
//! `data.uri`; and, where those are looked for, the `_meta` beside them, of which goes on what may cross a hop (PROTOCOL A7), and
//! the `icons`, of which goes on what does in lists. Text, `structuredContent` and arguments are opaque. Nothing is copied when
//! nothing changes.

use std::sync::Arc;

use futures_util::StreamExt;

use super::{Error, Wrap, asks};
use crate::{
    call::{Event, InputRequired, Op, Outcome, Reply, ReplyStream, Step, TaskOp},
    catalog::{Namespace, icons},
    json::{Edits, Fate, Json, Node},
    jsonrpc::RpcError,
    protocol::{UpstreamId, codes, meta},
    stage::Permitted,
};

/// How servers say that a resource is not there, the SDKs among them: words before its URI, or behind it.
const NONE_BEFORE: [&str; 3] = ["unknown resource", "resource not found", "no such resource"];
const NONE_BEHIND: [&str; 3] = ["not found", "was not found", "does not exist"];

/// Rewrites URIs on the way back.
#[derive(Debug)]
pub(super) struct Relabel;

/// What is remembered of a call: how its upstream's URIs look from outside.
#[derive(Debug, Clone)]
pub(super) struct Labels {
    namespace: Arc<Namespace>,
    upstream: UpstreamId,
    place: Place,
    /// Whether clients of its revision are told in one way that a resource is not there.
    names_missing: bool,
    /// Whether all may see what comes back, as far as the gateway knows.
    public: bool,
}

/// Where the URIs of a result stand.
#[derive(Debug, Clone)]
enum Place {
    /// `content[]`
    Tool,
    /// `messages[].content`
    Prompt,
    /// `contents[].uri`; the one asked for is echoed as it was asked.
    Resource { asked: Arc<str>, local: Arc<str> },
    /// In the entry of a skill; the one asked for is echoed as it was asked.
    Skill { asked: Arc<str>, local: Arc<str> },
    /// `resources[].uri`
    Directory,
    /// As in `content[]` of the `result` that a task may hold, or in the `data` of its `error`.
    Task,
    /// Nowhere.
    None,
}

impl Wrap<Box<Permitted>> for Relabel {
    type Mark = Option<Labels>;

    fn enter(&self, routed: &mut Box<Permitted>) -> Self::Mark {
        let route = routed.passage()?.route();
        let namespace = routed
            .snapshot
            .catalog
            .namespace(&routed.call.scope, &route.upstream)?;
        let place = match &routed.call.op {
            Op::CallTool(_) | Op::Task(TaskOp::Result, _) => Place::Tool,
            Op::Task(TaskOp::Get, _) => Place::Task,
            Op::GetPrompt(_) => Place::Prompt,
            Op::ReadResource(asked) => Place::Resource {
                asked: asked.clone(),
                local: route.local.clone(),
            },
            Op::GetSkill(asked) => Place::Skill {
                asked: asked.clone(),
                local: route.local.clone(),
            },
            Op::ReadDirectory(..) => Place::Directory,
            Op::Complete(_)
            | Op::Discover
            | Op::List(..)
            | Op::Task(TaskOp::Update | TaskOp::Cancel, _)
            | Op::ListTasks(_)
            | Op::Listen(_) => Place::None,
        };
        Some(Labels {
            namespace,
            upstream: route.upstream.clone(),
            place,
            names_missing: routed.call.caller.revision.features().names_missing,
            public: routed.snapshot.policy().policy().is_unrestricted(),
        })
    }

    fn leave(&self, mark: Self::Mark, result: Result<Reply, Error>) -> Result<Reply, Error> {
        let Some(labels) = mark else { return result };
        Ok(match result? {
            Reply::Done(outcome) => Reply::Done(labels.outcome(outcome)),
            Reply::Stream(stream) => {
                let steps = stream.map(move |step| match step {
                    Step::Event(event) => Step::Event(named(event, &labels.upstream)),
                    Step::Outcome(outcome) => Step::Outcome(labels.outcome(outcome)),
                });
                Reply::Stream(ReplyStream::new(steps.boxed()))
            }
        })
    }
}

/// An event of an upstream, which a log line says.
fn named(event: Event, upstream: &UpstreamId) -> Event {
    if let Event::Log(level, params) = event {
        Event::Log(level, asks::logger(&params, upstream))
    } else {
        event
    }
}

impl Labels {
    fn outcome(&self, outcome: Outcome) -> Outcome {
        match outcome {
            Outcome::Complete(result) => {
                let mut edits = Edits::new();
                self.result(result.root(), &mut edits);
                self.keeping(result.root(), &mut edits);
                Outcome::Complete(result.splice(&edits))
            }
            Outcome::Failed(mut error) => {
                error.data = match error.data {
                    Some(data) => Some(self.error_data(error.code, data)),
                    None => self.missing(&error),
                };
                Outcome::Failed(error)
            }
            Outcome::InputRequired(asked) => {
                let uri = |block: Node<'_>, edits: &mut Edits| self.block(block, edits);
                let requests = asks::outward(&asked.requests, &self.upstream, uri);
                let mut hold = asked.hold;
                if let Some(hold) = &mut hold {
                    let upstream = self.upstream.clone();
                    hold.look_through(move |event| named(event, &upstream));
                }
                Outcome::InputRequired(InputRequired {
                    requests,
                    hold,
                    ..asked
                })
            }
            other @ (Outcome::Listed(_)
            | Outcome::Card(_)
            | Outcome::Task(_)
            | Outcome::Lost(_)) => other,
        }
    }

    fn result(&self, result: Node<'_>, edits: &mut Edits) {
        match &self.place {
            Place::Tool => self.content(result, edits),
            Place::Skill { asked, local } => {
                let skill = result.member("skill");
                let own = skill.and_then(|skill| skill.member("uri"));
                for uri in own.into_iter().chain(uris(skill)) {
                    self.echo(uri, asked, local, edits);
                }
            }
            Place::Directory => resources(Some(result)).for_each(|entry| {
                described(entry, edits);
                self.member(entry, edits);
            }),
            Place::Task => {
                if let Some(asking) = result.member("inputRequests") {
                    let uri = |block: Node<'_>, edits: &mut Edits| self.block(block, edits);
                    let requests = Json::composed(asking.raw().to_owned().into());
                    let outward = asks::outward(&requests, &self.upstream, uri);
                    edits.replace(asking, outward);
                }
                if let Some(result) = result.member("result") {
                    self.content(result, edits);
                }
                let data = result
                    .member("error")
                    .and_then(|error| error.member("data"));
                if let Some(data) = data {
                    self.member(data, edits);
                }
            }
            Place::Prompt => {
                for message in result
                    .member("messages")
                    .into_iter()
                    .flat_map(Node::elements)
                {
                    let Some(content) = message.member("content") else {
                        continue;
                    };
                    self.block(content, edits);
                    content
                        .elements()
                        .for_each(|block| self.block(block, edits));
                }
            }
            Place::Resource { asked, local } => {
                for contents in result
                    .member("contents")
                    .into_iter()
                    .flat_map(Node::elements)
                {
                    meta::rewrite(edits, contents, &[]);
                    let Some(uri) = contents.member("uri") else {
                        continue;
                    };
                    self.echo(uri, asked, local, edits);
                }
            }
            Place::None => {}
        }
    }

    fn content(&self, result: Node<'_>, edits: &mut Edits) {
        for block in result
            .member("content")
            .into_iter()
            .flat_map(Node::elements)
        {
            self.block(block, edits);
        }
    }

    /// A content block: a link's own URI, or that of the resource it embeds; of either's `_meta` what crosses, and of a link's icons
    /// what lists show.
    fn block(&self, block: Node<'_>, edits: &mut Edits) {
        match block.member("type").and_then(Node::as_str).as_deref() {
            Some("resource_link") => {
                described(block, edits);
                self.member(block, edits);
            }
            Some("resource") => {
                meta::rewrite(edits, block, &[]);
                if let Some(resource) = block.member("resource") {
                    meta::rewrite(edits, resource, &[]);
                    self.member(resource, edits);
                }
            }
            _ => meta::rewrite(edits, block, &[]),
        }
    }

    fn member(&self, object: Node<'_>, edits: &mut Edits) {
        if let Some(uri) = object.member("uri") {
            self.uri(uri, edits);
        }
    }

    /// A URI beside which the client has one of its own for the same thing.
    fn echo(&self, uri: Node<'_>, asked: &Arc<str>, local: &Arc<str>, edits: &mut Edits) {
        if uri.as_str().as_deref() != Some(local) {
            self.uri(uri, edits);
        } else if asked != local {
            edits.replace(uri, Json::string(asked));
        }
    }

    fn uri(&self, uri: Node<'_>, edits: &mut Edits) {
        if let Some(outward) = uri
            .as_str()
            .and_then(|local| self.namespace.outward_uri(&local))
        {
            edits.replace(uri, Json::string(&outward));
        }
    }

    /// What is read may be kept by whoever carries it for all only where all may read it (PROTOCOL D5).
    fn keeping(&self, result: Node<'_>, edits: &mut Edits) {
        if self.public || !matches!(self.place, Place::Resource { .. } | Place::Skill { .. }) {
            return;
        }
        if let Some(scope) = result.member("cacheScope")
            && scope.as_str().as_deref() != Some("private")
        {
            edits.replace(scope, Json::literal("\"private\""));
        }
    }

    /// Where an error says in its text alone that the resource asked for is not there: the `data` that says it, too
    /// (PROTOCOL D6).
    fn missing(&self, error: &RpcError) -> Option<Json> {
        let (Place::Resource { asked, local } | Place::Skill { asked, local }) = &self.place else {
            return None;
        };
        let code = matches!(
            error.code,
            codes::INVALID_PARAMS | codes::INTERNAL_ERROR | 0
        );
        let it_is = self.names_missing && code && says_missing(&error.message, local);
        it_is.then(|| meta::object_of(&[("uri", Json::string(asked))]))
    }

    fn error_data(&self, code: i64, data: Json) -> Json {
        let mut edits = Edits::new();
        if code == codes::URL_ELICITATION_REQUIRED {
            asks::visits(data.root(), &self.upstream, &mut edits);
        }
        if let Some(uri) = data.root().member("uri") {
            let text = uri.as_str();
            if let Place::Resource { asked, local } = &self.place
                && text.as_deref() == Some(local)
            {
                edits.replace(uri, Json::string(asked));
            } else {
                self.uri(uri, &mut edits);
            }
        }
        data.splice(&edits)
    }
}

/// Whether a text says that what has this URI is not there, and not that something else is not while it is read.
fn says_missing(text: &str, uri: &str) -> bool {
    let Some((before, behind)) = text.split_once(uri) else {
        return false;
    };
    // Some write an address without a path with one.
    let behind = behind.strip_prefix('/').unwrap_or(behind);
    let quote = |mark| matches!(mark, '"' | '\'' | '`' | '<' | '>' | ' ');
    let (open, close) = (
        before.trim_end_matches(quote),
        behind.trim_start_matches(quote),
    );
    let (open, close) = (open.to_ascii_lowercase(), close.to_ascii_lowercase());
    let close = close.trim_end_matches(['.', '!', ' ']);
    let named = open.strip_suffix(':').unwrap_or(&open).trim_end();
    let named = named.strip_suffix(" uri").unwrap_or(named);
    let named = [" for", " with"]
        .iter()
        .find_map(|word| named.strip_suffix(word))
        .unwrap_or(named);
    // What goes on with a word goes on with the URI, too.
    let ends = behind
        .chars()
        .next()
        .is_none_or(|next| quote(next) || matches!(next, '.' | '!'));
    ends && (close.is_empty() && NONE_BEFORE.iter().any(|words| named.ends_with(words))
        || (open.is_empty() || open.ends_with("resource") || open.ends_with(':'))
            && NONE_BEHIND.contains(&close))
}

/// What describes a resource without holding it, as a list does: of its `_meta` goes on what crosses, of its icons what lists show.
fn described(resource: Node<'_>, edits: &mut Edits) {
    if resource.member("icons").is_none() {
        return meta::rewrite(edits, resource, &[]);
    }
    let crosses = |meta: Node<'_>| meta.members().any(|member| meta::crosses(&member.key));
    // In one go: what is cut of one object must not overlap.
    let fate = |key: &str, value: Node<'_>| match key {
        "icons" => icons(value),
        meta::META if !crosses(value) => Fate::Remove,
        _ => Fate::Keep,
    };
    edits.members(resource, fate, &[]);
    if resource.member(meta::META).is_some_and(crosses) {
        meta::rewrite(edits, resource, &[]);
    }
}

/// `resources[].uri`
fn uris(holder: Option<Node<'_>>) -> impl Iterator<Item = Node<'_>> {
    resources(holder).filter_map(|resource| resource.member("uri"))
}

/// `resources[]`
fn resources(holder: Option<Node<'_>>) -> impl Iterator<Item = Node<'_>> {
    holder
        .and_then(|holder| holder.member("resources"))
        .into_iter()
        .flat_map(Node::elements)
}
