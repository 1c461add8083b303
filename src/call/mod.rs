//! The canonical call and reply: the shape of the stateless era, which every dialect lowers into and every peer speaks from.
//!
//! A call carries everything needed to judge and serve it; a reply is zero or more events and then exactly one outcome;
//! dropping the reply cancels. Request ids, progress tokens, session ids and status codes do not exist here.

mod approved;
mod caller;
mod found;
mod identity;
mod input;
mod listen;
mod owner;
mod reply;
mod stake;
mod task;
mod trail;

use std::{
    cell::Cell,
    fmt,
    net::IpAddr,
    num::NonZeroU64,
    ops::Range,
    sync::{
        Arc, LazyLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use tokio::time::Instant;

use crate::{
    json::Json,
    protocol::{methods::ListKind, names::Scope},
};

pub use approved::{Approved, Means, Reference};
pub use caller::{Affinity, Caller, LogLevel, Principal};
pub use found::{Alike, Found, MOST};
pub use identity::{Assertion, AuthMethod, BY_CERTIFICATE, End, Grantee, Identity, IdentityKind};
pub use input::{Aside, Hold, InputRequired, Meanwhile, Resume, State};
pub use listen::{Change, Filter};
pub use owner::Owner;
pub use reply::{Event, Events, Outcome, Page, Reply, ReplyStream, ServerCard, Step};
pub use stake::Stake;
pub use task::TaskOp;
pub use trail::{Cut, Decision, Denial, Facts, Grounds, Listener, Origin, Spent, Trail};

/// One request, on its way to being answered.
#[derive(Debug, Clone)]
pub struct Call {
    /// The gateway's own id of this call.
    pub id: CallId,
    /// What is wanted.
    pub op: Op,
    /// The params as the client sent them, `_meta` included; `{}` when there were none.
    pub params: Json,
    /// Who wants it and how they speak.
    pub caller: Arc<Caller>,
    /// Who was proved to send this request, and by what.
    pub identity: Arc<Identity>,
    /// Where the request came from: the peer of the connection. `None` on a pipe, and for what a session does of its own.
    pub address: Option<IpAddr>,
    /// The part of the catalog that the client's endpoint serves.
    pub scope: Scope,
    /// Set when this call goes on where an earlier one asked for input.
    pub resume: Option<Resume>,
    /// Whether the caller can and wants to take progress events.
    pub wants_progress: bool,
    /// The decoded `Mcp-Param-*` headers in lower case, where the transport has headers and the revision mirrors arguments.
    pub mirrored: Option<Vec<(String, String)>>,
    /// Whether it is none of its client's requests: the gateway makes it of its own accord, for one that was. Rates and quotas,
    /// which are for what clients ask, do not count it.
    pub unasked: bool,
    /// What it uses up if it is sent: the approval that it goes by, where it needs one.
    pub stake: Option<Stake>,
    /// When the answer is due; the upstream's own deadline may come sooner.
    pub deadline: Instant,
    /// What it learns about itself on its way.
    pub trail: Trail,
}

impl Call {
    /// The method that it came by: what records and metrics call it.
    pub fn method(&self) -> &'static str {
        let asked = self.trail.origin().and_then(|origin| origin.method);
        asked.unwrap_or_else(|| self.op.method())
    }

    /// Whose everything is that comes of it and outlives it.
    pub fn owner(&self) -> Owner {
        Owner::of(&self.identity, &self.scope)
    }
}

/// The gateway's id of a call: unique in this process, and as text in all processes, for it names its records too
/// (SECURITY 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CallId(NonZeroU64);

impl CallId {
    /// The next id.
    #[expect(clippy::new_without_default, reason = "each one differs")]
    pub fn new() -> Self {
        /// Taken at a time, so that calls of two lanes seldom count together.
        const TAKEN: u64 = 256;
        static NEXT: AtomicU64 = AtomicU64::new(1);
        thread_local! {
            static LEFT: Cell<Range<u64>> = const { Cell::new(0..0) };
        }
        let mut left = LEFT.take();
        let id = left.next().unwrap_or_else(|| {
            let first = NEXT.fetch_add(TAKEN, Relaxed);
            left = first + 1..first + TAKEN;
            first
        });
        LEFT.set(left);
        // They count from one.
        Self(NonZeroU64::new(id).unwrap_or(NonZeroU64::MIN))
    }

    /// The one of this number, which may be another call's too.
    #[cfg(test)]
    pub(crate) fn numbered(number: u64) -> Self {
        Self(NonZeroU64::new(number).unwrap_or(NonZeroU64::MIN))
    }

    /// Its number among the calls of this process, from 1. What is later may have a smaller one.
    pub const fn number(self) -> u64 {
        self.0.get()
    }
}

/// Tells this process from others: eight random bytes.
static PROCESS: LazyLock<u64> = LazyLock::new(|| {
    let mut bytes = [0; 8];
    aws_lc_rs::rand::fill(&mut bytes).map_or_else(
        // Not unique without the system's random source, but a name all the same.
        |_| u64::from(std::process::id()),
        |()| u64::from_le_bytes(bytes),
    )
});

/// What all ids of this process begin with: 16 hexadecimal digits.
pub fn process() -> String {
    format!("{:016x}", *PROCESS)
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}-{}", *PROCESS, self.0)
    }
}

/// What a call wants. Names and URIs are the outward ones until the call is routed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// What this endpoint offers.
    Discover,
    /// One page of a list, from the start or from a cursor.
    List(ListKind, Option<String>),
    /// `tools/call`
    CallTool(Arc<str>),
    /// `prompts/get`
    GetPrompt(Arc<str>),
    /// `resources/read`
    ReadResource(Arc<str>),
    /// `completion/complete`
    Complete(CompletionRef),
    /// `skills/get`, by the URI of its `SKILL.md`
    GetSkill(Arc<str>),
    /// One page of `resources/directory/read`, from the start or from a cursor.
    ReadDirectory(Arc<str>, Option<String>),
    /// Something about a task, by the handle that the client knows it by.
    Task(TaskOp, Arc<str>),
    /// `tasks/list`, from the start or from a cursor.
    ListTasks(Option<String>),
    /// Changes as they happen, for as long as the caller wants them: `subscriptions/listen`, and a session's own.
    Listen(Arc<Filter>),
}

/// What a completion is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompletionRef {
    /// `ref/prompt`, by name.
    Prompt(Arc<str>),
    /// `ref/resource`, by URI or URI template.
    Resource(Arc<str>),
}

impl Op {
    /// The name or the URI that it asks for, as its client knows it; `None` where it asks for nothing by one, or for several. A
    /// task's handle is no name: whoever has it may use it.
    pub fn target(&self) -> Option<&Arc<str>> {
        match self {
            Self::CallTool(name)
            | Self::GetPrompt(name)
            | Self::ReadResource(name)
            | Self::Complete(CompletionRef::Prompt(name) | CompletionRef::Resource(name))
            | Self::GetSkill(name)
            | Self::ReadDirectory(name, _) => Some(name),
            Self::Listen(filter) => filter.only(),
            Self::Discover | Self::List(..) | Self::Task(..) | Self::ListTasks(_) => None,
        }
    }

    /// Whether its answer says how long, and by whom, it may be kept, and comes from an upstream (PROTOCOL D5).
    pub const fn may_be_kept(&self) -> bool {
        matches!(self, Self::ReadResource(_) | Self::GetSkill(_))
    }

    /// The method's name, the same in both eras but for discovery.
    pub const fn method(&self) -> &'static str {
        use crate::protocol::methods;
        match self {
            Self::Discover => methods::DISCOVER,
            Self::List(kind, _) => kind.method(),
            Self::CallTool(_) => methods::TOOLS_CALL,
            Self::GetPrompt(_) => methods::PROMPTS_GET,
            Self::ReadResource(_) => methods::RESOURCES_READ,
            Self::Complete(_) => methods::COMPLETE,
            Self::GetSkill(_) => methods::SKILLS_GET,
            Self::ReadDirectory(..) => methods::DIRECTORY_READ,
            Self::Task(op, _) => op.method(),
            Self::ListTasks(_) => methods::TASKS_LIST,
            Self::Listen(_) => methods::LISTEN,
        }
    }
}
