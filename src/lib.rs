//! Usher: an MCP gateway. One endpoint in front of many MCP servers, for every client, in every revision of the protocol.
//!
//! # Bird's-eye view
//!
//! Clients come in at `downstream`, each in the era and revision it speaks. Whatever they ask becomes one canonical
//! [`call::Call`], in the shape of the stateless era, which goes down one tower stack ([`stack::mcp`]) and is either answered
//! from memory or carried to exactly one upstream by that upstream's [`upstream::Peer`], in the era and revision *it* speaks.
//! The reply comes back up the same stack and is worded for the client. Nothing in the middle asks which era is on either
//! side.
//!
//! In the background each upstream has a supervisor that connects, finds out what is spoken, reads every list and
//! publishes them; [`snapshot::World`] builds the next catalog from that and swaps it in. A call loads the current
//! [`snapshot::Snapshot`] once and sees that one world to its end.
//!
//! # Floors
//!
//! A module imports from lower floors and from its own; on floor 2 modules do not know each other. `tests/tidy.rs` enforces
//! it. The `mod` lines below go from floor 0 up, which is the order to read in; the table goes from the top down.
//!
//! ```text
//! 7  config app cli demo telemetry main    read files and arguments, build the rest, own the runtime
//! 6  server downstream admin               listeners, TLS, what HTTP must refuse; bindings and dialects facing clients; operators
//! 5  stack                                 gates, wraps, dispatch: the tower layers and their one composition
//! 4  upstream                              peers, transports, probing, health, refreshing
//! 3  snapshot stage connect                the world one call sees; the types that prove how far a call has come
//! 2  audit auth catalog events limits pins policy resume sanitize    domain decisions: no tower
//! 1  call feed fetch findings metrics schema spans tasks seal        the canonical call and reply; what was found and counted; tasks
//! 0  glob json jsonrpc memory protocol     bytes, frames, the specification's words: no I/O, no clock
//! ```
//!
//! # The life of a `tools/call`
//!
//! 1. `server` has judged host, origin, framing and sizes before it hands the request over. `downstream::http` reads the
//!    body under a limit; [`jsonrpc::decode()`] scans it once and finds id, method and params as slices of that buffer.
//! 2. [`downstream::Door::accept`] picks the dialect from the body. The dialect makes a [`call::Call`]: the stateless one from
//!    `_meta` and the mirrored headers, the handshake one from the session. The request id, the progress token, the session
//!    and the status code stay in the dialect.
//! 3. [`stack::mcp`]: the call is pinned to a snapshot and becomes a [`stage::Pinned`]; its caller is held to [`limits`]; its
//!    name is looked up and it becomes a [`stage::Routed`]; the policies of that snapshot permit it and it becomes a
//!    [`stage::Permitted`]; headers that mirror arguments are compared with the arguments. Up to here a call waits only where a
//!    limit has a queue, or where lists are still to be read with its caller's own token.
//! 4. [`stack::Dispatch`] hands it to the route's [`upstream::Upstream`], which finds its peer. The peer waits for a slot,
//!    splices the upstream's own name and `_meta` into the client's params, which are otherwise not touched, mints an id, and
//!    sends.
//! 5. The result comes up as [`call::Reply::Done`], or as a stream of events that ends in one outcome. Links, embedded
//!    resources and `contents[].uri` become outward URIs, by edits that are applied in one copy, or by none.
//! 6. The dialect words the result for the client's revision and frames it with the client's id; `http` writes one JSON
//!    message, or an event stream if an event or ten seconds came first. Dropping the answer cancels the call upstream,
//!    unless the client's era says that a lost connection is no cancellation.
//!
//! A list call ends at step 3, for the catalog holds its pages encoded; except `tasks/list`, which asks the upstreams that hold
//! the tasks.

// Floor 0: bytes in, values and frames out.
pub mod glob;
pub mod json;
pub mod jsonrpc;
#[cfg(test)]
mod logged;
pub mod memory;
pub mod protocol;

// Floor 1: what is asked and answered, how small documents are fetched, what is counted, and who owns what runs.
pub mod call;
pub mod feed;
pub mod fetch;
pub mod findings;
pub mod metrics;
pub mod schema;
pub mod seal;
pub mod spans;
pub mod tasks;

// Floor 2: who calls; how much they may have; what is offered under which name; who may use it; how a call that asked for input goes on; who hears of
// changes.
pub mod audit;
pub mod auth;
pub mod catalog;
pub mod events;
pub mod limits;
pub mod pins;
pub mod policy;
pub mod resume;
pub mod sanitize;

// Floor 3: one world, and how far a call has come in it.
pub mod connect;
pub mod snapshot;
pub mod stage;

// Floor 4: facing MCP servers.
pub mod upstream;

// Floor 5: what happens to every call.
pub mod stack;

// Floor 6: facing clients, and operators.
pub mod admin;
pub mod downstream;
pub mod server;

// Floor 7: from a file and a command line to a running gateway.
pub mod app;
pub mod cli;
pub mod config;
pub mod demo;
pub mod telemetry;
