//! What an operation is: where it is served, who may do it, what it takes and answers.

use futures_util::future::BoxFuture;
use http::{Method, Response};
use schemars::{Schema, SchemaGenerator};

use super::{Role, asked::Asked, paging::Parameter, problem::Problem};
use crate::server::Body;

/// One operation.
pub(super) struct Operation {
    /// Its identifier, which stays the same.
    pub(super) id: &'static str,
    pub(super) verb: Verb,
    /// Its path; `{name}` stands for one segment.
    pub(super) path: &'static str,
    pub(super) about: &'static str,
    /// Who may do it.
    pub(super) who: Who,
    /// What may be in the query.
    pub(super) query: &'static [Parameter],
    /// What the body is; without one it is an empty object where the verb has any.
    pub(super) body: Option<Describe>,
    /// What is answered.
    pub(super) answer: ResponseKind,
    /// Beside those of every operation, the statuses of its problems.
    pub(super) problems: &'static [u16],
    pub(super) run: Run,
}

/// Reads or changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Get,
    /// Has a body, which is JSON.
    Post,
}

/// Who may do something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Who {
    /// Whoever reaches the listener.
    Anybody,
    /// Whoever reaches a listener that only this machine reaches; else whoever has a credential.
    Neighbours,
    /// Whoever has a credential of this role, or a greater one.
    Having(Role),
}

/// Makes the schema of a type.
pub(super) type Describe = fn(&mut SchemaGenerator) -> Schema;
/// Does an operation.
pub(super) type Run = fn(Asked) -> BoxFuture<'static, Result<Response<Body>, Problem>>;

/// What an operation answers.
pub(super) enum ResponseKind {
    Json(Describe),
    /// The document itself.
    Document,
    /// Text of this sort.
    Text(&'static str),
    /// Events of this name, each with data of this type; and [`missed`](super::follow::MISSED) ones.
    Events(&'static str, Describe),
    /// Whether it is so in the status too: `503` where it is not.
    Verdict(Describe),
}

const READING: &[Method] = &[Method::GET, Method::HEAD];
const CHANGING: &[Method] = &[Method::POST];

impl Verb {
    /// The methods that are taken for it: whatever is read can be asked for without its body (RFC 9110, section 9.3.2).
    pub(super) const fn methods(self) -> &'static [Method] {
        match self {
            Self::Get => READING,
            Self::Post => CHANGING,
        }
    }
}

impl Operation {
    /// The segments that its names stand for, if this is its path.
    pub(super) fn names(&self, path: &str) -> Option<Vec<String>> {
        let mut names = Vec::new();
        let (mut pattern, mut given) = (self.path.split('/'), path.split('/'));
        loop {
            match (pattern.next(), given.next()) {
                (None, None) => return Some(names),
                (Some(part), Some(text)) if part.starts_with('{') => {
                    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
                    if text.is_empty() || text.len() > 64 || !text.bytes().all(plain) {
                        return None;
                    }
                    names.push(text.to_owned());
                }
                (Some(part), Some(text)) if part == text => {}
                (_, _) => return None,
            }
        }
    }

    /// One that reads, for auditors, without a body and with no problems of its own.
    pub(super) const fn get(
        id: &'static str,
        path: &'static str,
        answer: ResponseKind,
        run: Run,
        about: &'static str,
    ) -> Self {
        Self {
            id,
            verb: Verb::Get,
            path,
            about,
            who: Who::Having(Role::Auditor),
            query: &[],
            body: None,
            answer,
            problems: &[],
            run,
        }
    }

    /// A change.
    pub(super) const fn post(
        id: &'static str,
        path: &'static str,
        answer: ResponseKind,
        run: Run,
        about: &'static str,
    ) -> Self {
        Self {
            verb: Verb::Post,
            who: Who::Having(Role::Operator),
            ..Self::get(id, path, answer, run, about)
        }
    }

    pub(super) const fn by(self, who: Who) -> Self {
        Self { who, ..self }
    }

    pub(super) const fn with(self, query: &'static [Parameter]) -> Self {
        Self { query, ..self }
    }

    pub(super) const fn of(self, body: Describe) -> Self {
        Self {
            body: Some(body),
            ..self
        }
    }

    pub(super) const fn failing(self, problems: &'static [u16]) -> Self {
        Self { problems, ..self }
    }
}
