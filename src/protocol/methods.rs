//! Method names, and the facts about each that routing needs.

use super::extensions;
use crate::json::Json;

/// `initialize` (legacy).
pub const INITIALIZE: &str = "initialize";
/// `notifications/initialized` (legacy).
pub const INITIALIZED: &str = "notifications/initialized";
/// `ping` (legacy).
pub const PING: &str = "ping";
/// `server/discover` (modern).
pub const DISCOVER: &str = "server/discover";
/// `tools/list`.
pub const TOOLS_LIST: &str = "tools/list";
/// `tools/call`.
pub const TOOLS_CALL: &str = "tools/call";
/// `prompts/list`.
pub const PROMPTS_LIST: &str = "prompts/list";
/// `prompts/get`.
pub const PROMPTS_GET: &str = "prompts/get";
/// `resources/list`.
pub const RESOURCES_LIST: &str = "resources/list";
/// `resources/templates/list`.
pub const TEMPLATES_LIST: &str = "resources/templates/list";
/// `resources/read`.
pub const RESOURCES_READ: &str = "resources/read";
/// `completion/complete`.
pub const COMPLETE: &str = "completion/complete";
/// `logging/setLevel` (legacy).
pub const SET_LEVEL: &str = "logging/setLevel";
/// `subscriptions/listen` (modern).
pub const LISTEN: &str = "subscriptions/listen";
/// `resources/subscribe` (legacy).
pub const SUBSCRIBE: &str = "resources/subscribe";
/// `resources/unsubscribe` (legacy).
pub const UNSUBSCRIBE: &str = "resources/unsubscribe";
/// `notifications/resources/updated`.
pub const RESOURCE_UPDATED: &str = "notifications/resources/updated";
/// `notifications/tasks` (modern, the tasks extension).
pub const TASK: &str = "notifications/tasks";
/// `notifications/subscriptions/acknowledged` (modern).
pub const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
/// `tasks/get` (2025-11-25, and the tasks extension in other shapes).
pub const TASKS_GET: &str = "tasks/get";
/// `tasks/result` (2025-11-25).
pub const TASKS_RESULT: &str = "tasks/result";
/// `tasks/update` (tasks extension).
pub const TASKS_UPDATE: &str = "tasks/update";
/// `tasks/cancel` (2025-11-25, and the tasks extension in another shape).
pub const TASKS_CANCEL: &str = "tasks/cancel";
/// `tasks/list` (2025-11-25).
pub const TASKS_LIST: &str = "tasks/list";
/// `notifications/cancelled`.
pub const CANCELLED: &str = "notifications/cancelled";
/// `notifications/roots/list_changed` (legacy, of clients).
pub const ROOTS_CHANGED: &str = "notifications/roots/list_changed";
/// `notifications/tasks/status` (2025-11-25, of either side).
pub const TASK_STATUS: &str = "notifications/tasks/status";
/// `notifications/progress`.
pub const PROGRESS: &str = "notifications/progress";
/// `notifications/message`.
pub const MESSAGE: &str = "notifications/message";

/// `elicitation/create`: a legacy server's request, or an input request.
pub const ELICITATION_CREATE: &str = "elicitation/create";
/// `sampling/createMessage`: likewise.
pub const SAMPLING_CREATE: &str = "sampling/createMessage";
/// `roots/list`: likewise.
pub const ROOTS_LIST: &str = "roots/list";
/// `notifications/elicitation/complete` (2025-11-25).
pub const ELICITATION_COMPLETE: &str = "notifications/elicitation/complete";

/// `skills/list` (skills extension).
pub const SKILLS_LIST: &str = "skills/list";
/// `skills/get` (skills extension).
pub const SKILLS_GET: &str = "skills/get";
/// `resources/directory/read` (skills extension).
pub const DIRECTORY_READ: &str = "resources/directory/read";

/// The things that are listed: four of the core, and those of extensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ListKind {
    /// `tools/list`
    Tools,
    /// `prompts/list`
    Prompts,
    /// `resources/list`
    Resources,
    /// `resources/templates/list`
    Templates,
    /// `skills/list`, of the skills extension.
    Skills,
}

impl ListKind {
    /// The four of the core protocol.
    pub const ALL: [Self; 4] = [Self::Tools, Self::Prompts, Self::Resources, Self::Templates];
    /// How many there are with those of extensions.
    pub const COUNT: usize = 5;
    /// Those of extensions too, in the order they are drained.
    pub const EVERY: [Self; Self::COUNT] = [
        Self::Tools,
        Self::Prompts,
        Self::Resources,
        Self::Templates,
        Self::Skills,
    ];

    /// The method that lists them.
    pub const fn method(self) -> &'static str {
        match self {
            Self::Tools => TOOLS_LIST,
            Self::Prompts => PROMPTS_LIST,
            Self::Resources => RESOURCES_LIST,
            Self::Templates => TEMPLATES_LIST,
            Self::Skills => SKILLS_LIST,
        }
    }

    /// The member of the result that holds them.
    pub const fn member(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
            Self::Skills => "skills",
        }
    }

    /// Whether a server's `capabilities` promise them.
    pub fn promised_in(self, capabilities: &Json) -> bool {
        let root = capabilities.root();
        match self {
            Self::Tools => root.member("tools"),
            Self::Prompts => root.member("prompts"),
            Self::Resources | Self::Templates => root.member("resources"),
            Self::Skills => root
                .member(extensions::MEMBER)
                .and_then(|all| all.member(extensions::SKILLS)),
        }
        .is_some()
    }

    /// The notification of another list; resources and templates share one.
    pub const fn changed(self) -> &'static str {
        match self {
            Self::Tools => "notifications/tools/list_changed",
            Self::Prompts => "notifications/prompts/list_changed",
            // Skills are served as resources, and no change of their list has a name of its own.
            Self::Resources | Self::Templates | Self::Skills => {
                "notifications/resources/list_changed"
            }
        }
    }

    /// The list that a notification tells of; of those that share one, the first.
    pub fn of_changed(method: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.changed() == method)
    }

    /// The member that identifies an item: its name or URI.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Tools | Self::Prompts => "name",
            Self::Resources | Self::Skills => "uri",
            Self::Templates => "uriTemplate",
        }
    }
}

/// Whether clients have a method of this name in any revision, extensions included (PROTOCOL A2, A4).
pub fn is_of_clients(method: &str) -> bool {
    of_clients(method).is_some()
}

/// The same name, if clients have a method of it.
pub fn of_clients(method: &str) -> Option<&'static str> {
    const ALL: [&str; 28] = [
        INITIALIZE,
        INITIALIZED,
        PING,
        DISCOVER,
        TOOLS_LIST,
        TOOLS_CALL,
        PROMPTS_LIST,
        PROMPTS_GET,
        RESOURCES_LIST,
        TEMPLATES_LIST,
        RESOURCES_READ,
        COMPLETE,
        SET_LEVEL,
        LISTEN,
        SUBSCRIBE,
        UNSUBSCRIBE,
        TASKS_GET,
        TASKS_RESULT,
        TASKS_UPDATE,
        TASKS_CANCEL,
        TASKS_LIST,
        SKILLS_LIST,
        SKILLS_GET,
        DIRECTORY_READ,
        CANCELLED,
        PROGRESS,
        TASK_STATUS,
        ROOTS_CHANGED,
    ];
    ALL.into_iter().find(|name| *name == method)
}

/// Whether this is a request, of either side, in any revision: a frame of this method must have an id. In every revision exactly
/// the notifications' names begin with `notifications/` (PROTOCOL A4).
pub fn is_request(method: &str) -> bool {
    let of_servers = [ELICITATION_CREATE, SAMPLING_CREATE, ROOTS_LIST];
    !method.starts_with("notifications/") && (is_of_clients(method) || of_servers.contains(&method))
}

/// Whether the answer to `method` may be a question (PROTOCOL A3).
pub fn may_ask_back(method: &str) -> bool {
    // A core task asks on the stream of its result.
    matches!(
        method,
        TOOLS_CALL | PROMPTS_GET | RESOURCES_READ | TASKS_RESULT
    )
}

/// The member of params that `Mcp-Name` mirrors for `method`, if it has one (PROTOCOL B2).
pub fn mirrored_member(method: &str) -> Option<&'static str> {
    match method {
        TOOLS_CALL | PROMPTS_GET => Some("name"),
        RESOURCES_READ => Some("uri"),
        TASKS_GET | TASKS_UPDATE | TASKS_CANCEL => Some("taskId"),
        _ => None,
    }
}
