//! What labels of metrics and attributes of spans are called: the MCP conventions' words, and ours beside them.
//!
//! `gateway.` is of this gateway and stands beside the conventions' names; `usher.` is of nobody else.

/// The method of a request.
pub const METHOD: &str = "mcp.method.name";
/// The revision spoken.
pub const REVISION: &str = "mcp.protocol.version";
/// The tool.
pub const TOOL: &str = "gen_ai.tool.name";
/// The prompt.
pub const PROMPT: &str = "gen_ai.prompt.name";
/// The id of a request, on the hop of its span.
pub const REQUEST: &str = "jsonrpc.request.id";
/// `execute_tool`, on calls of tools.
pub const OPERATION: &str = "gen_ai.operation.name";
/// The class of what went wrong; not there where nothing did.
pub const ERROR: &str = "error.type";
/// The code of a JSON-RPC error.
pub const STATUS_CODE: &str = "rpc.response.status_code";
/// `tcp` or `pipe`.
pub const TRANSPORT: &str = "network.transport";
/// The key of an upstream.
pub const UPSTREAM: &str = "gateway.upstream";
/// Who calls, as digested for spans.
pub const PRINCIPAL: &str = "gateway.principal";

/// What stands for a tool or an error that is one too many to be told apart.
pub const OTHER: &str = "_OTHER";
