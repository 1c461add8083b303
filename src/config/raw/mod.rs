//! The file as it is spelled: one type per block, plain values, unknown keys refused.
//!
//! Every default of a key is either here as a constant or in the `Default` of the module type that the key sets, never
//! twice. Nothing is validated here beyond shape; [`super::check`] does that.

mod admin;
pub(super) mod audit;
pub(super) mod auth;
pub(super) mod bounds;
mod connections;
mod definitions;
mod grants;
pub(super) mod limits;
mod policy;
pub(super) mod sanitize;
mod telemetry;

use std::{collections::BTreeMap, fmt};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer,
    de::{self, MapAccess, Visitor, value::MapAccessDeserializer},
};

use super::{
    typed::mistake,
    units::{Ordered, Secret, Size, Time},
};

pub(super) use admin::{ADDRESS as ADMIN_ADDRESS, Admin};
pub(super) use connections::{AuthorizationCode, Connections, Registering};
pub(super) use definitions::{Arguments, Definitions, Pin, Results, UpstreamValidate, Validate};
pub(super) use grants::{ClientProof, ListReader, SubjectToken, TokenGrant};
pub(super) use policy::{DIR as POLICY_DIR, Policy};
pub(super) use telemetry::{INTERVAL as TELEMETRY_INTERVAL, OtlpProtocol, Telemetry};

use policy::{Annotations, Tags};

/// Default of `listen.address`.
pub(super) const LISTEN_ADDRESS: &str = "127.0.0.1:8808";
/// Default of `endpoint`.
pub(super) const ENDPOINT: &str = "/mcp";
/// Default of `upstreams.*.concurrency`.
pub(super) const CONCURRENCY: usize = 64;
/// Default of `upstreams.*.poll`.
pub(super) const POLL: &str = "5m";
/// Default of `upstreams.*.stale_for`.
pub(super) const STALE_FOR: &str = "5m";

/// Usher's configuration: usher.yaml.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(title = "usher.yaml")]
pub(super) struct Raw {
    /// Where clients come in.
    pub(super) listen: Listen,
    /// Where operators come in.
    pub(super) admin: Option<Admin>,
    /// Who is admitted.
    pub(super) auth: Option<auth::Auth>,
    /// The path that serves every upstream; toolsets are at PATH/NAME, single upstreams at PATH/u/NAME. Default: /mcp.
    pub(super) endpoint: Option<String>,
    /// The servers behind this gateway, by key: [a-z][a-z0-9-]*, at most 32 characters. Their order is the order of lists.
    pub(super) upstreams: Ordered<Upstream>,
    /// Named selections, each with an endpoint of its own.
    pub(super) toolsets: Ordered<Toolset>,
    /// What exposed tool and prompt names may look like.
    pub(super) names: Names,
    /// When a page of a list is full: whichever comes first.
    pub(super) page_size: PageSize,
    /// Who may do what. Without this block nobody may use anything where there is `auth`, and everybody everything where there is not.
    pub(super) policy: Option<Policy>,
    /// How much one caller may have, in rules.
    pub(super) limits: Vec<limits::Limit>,
    /// What may go through, and what becomes of what may not.
    pub(super) sanitize: sanitize::Sanitize,
    /// Whether calls are held to the schemas of their tools.
    pub(super) validate: Validate,
    /// What becomes of definitions that change after they were first seen.
    pub(super) definitions: Definitions,
    /// What calls are recorded. Default: who, what, when and how it ended, in the user's state directory.
    pub(super) audit: Option<audit::Audit>,
    /// Fixed bounds.
    pub(super) bounds: bounds::Bounds,
    /// What people are given for upstreams that they log in to.
    pub(super) connections: Option<Connections>,
    /// Where metrics and traces go to.
    pub(super) telemetry: Telemetry,
    /// What outlives a request.
    pub(super) state: State,
    /// Further files, relative to this one. Their keys are added; no key may be set twice.
    pub(super) include: Vec<String>,
}

/// Where clients come in.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Listen {
    /// IP address and port. Default: 127.0.0.1:8808. Others than loopback need tls, hosts and an authentication method.
    pub(super) address: Option<String>,
    /// Host names that clients may use, beside the loopback names.
    pub(super) hosts: Vec<String>,
    /// Proxies in front, as addresses or networks such as 10.0.0.0/8: of these alone X-Forwarded-For is read. Default: none.
    pub(super) trusted_proxies: Vec<String>,
    /// TLS.
    pub(super) tls: Option<ListenTls>,
    /// Serves the transport of 2024-11-05 too: streams at /sse, messages to /messages. Default: false.
    pub(super) legacy_sse: bool,
}

/// TLS of the listener: our own, or `terminated_upstream` where a proxy ends it.
#[derive(Debug)]
pub(super) enum ListenTls {
    /// `terminated_upstream`
    TerminatedUpstream,
    /// Ended here.
    Here(ListenIdentity),
}

/// Certificate and key of the listener, in PEM.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ListenIdentity {
    /// Certificate chain: "${file:/path}".
    #[schemars(required)]
    pub(super) cert: Option<String>,
    /// Its key: "${file:/path}".
    #[schemars(required)]
    pub(super) key: Option<Secret>,
    /// Roots that client certificates must chain to; then a certificate is required.
    pub(super) client_ca: Option<String>,
}

/// A server behind this gateway: either `url` or `command`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Upstream {
    /// Its MCP endpoint.
    pub(super) url: Option<String>,
    /// Which HTTP transport it has. Default: auto.
    pub(super) transport: Option<Transport>,
    /// The program and its arguments; no shell is involved.
    pub(super) command: Option<Vec<String>>,
    /// The environment of the program, beside PATH, HOME, LANG and TMPDIR. A secret among it: `${env:NAME}` or `${file:/path}`.
    #[schemars(with = "BTreeMap<String, String>")]
    pub(super) env: BTreeMap<String, Secret>,
    /// The working directory of the program, relative to this file. Default: that of the gateway.
    pub(super) cwd: Option<String>,
    /// Headers sent with every request. A secret among them: `${env:NAME}` or `${file:/path}`.
    #[schemars(with = "BTreeMap<String, String>")]
    pub(super) headers: BTreeMap<String, Secret>,
    /// The credential sent with every request.
    pub(super) auth: Option<Auth>,
    /// Trust and identity for https.
    pub(super) tls: UpstreamTls,
    /// Allows http to an address that is not loopback. Default: false.
    pub(super) plain_http: bool,
    /// Who may share one legacy session of it. Default: session for url, shared for command.
    pub(super) isolation: Option<Sharing>,
    /// Whom it may send to web addresses. Default: own, which is nobody where callers have names and it sees one user in all of them.
    pub(super) url_elicitation: Option<UrlElicitation>,
    /// auto, modern, legacy, or a revision such as 2025-11-25. Default: auto.
    pub(super) protocol: Option<String>,
    /// What stands before its names. Default: its key; "" for nothing.
    pub(super) prefix: Option<String>,
    /// Which of its tools are taken, and how they are shown.
    pub(super) tools: Tools,
    /// Whether calls are held to the schemas of its tools.
    pub(super) validate: UpstreamValidate,
    /// What becomes of its definitions that change after they were first seen. Default: that of the top.
    pub(super) definitions: Definitions,
    /// Tags for policies, by globs over original names and URIs: { "delete_*": [danger] }.
    pub(super) tags: Tags,
    /// What is done about content of this upstream.
    pub(super) sanitize: sanitize::UpstreamSanitize,
    /// Deadlines.
    pub(super) timeout: Timeout,
    /// Calls in flight at once. Default: 64.
    pub(super) concurrency: Option<usize>,
    /// How often its lists are read again when it gives no sign of change. Default: 5m.
    pub(super) poll: Option<Time>,
    /// How long its entries stay listed while it is away. Default: 5m.
    pub(super) stale_for: Option<Time>,
}

/// Which HTTP transport an upstream has.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Transport {
    /// Found out.
    Auto,
    /// Streamable HTTP.
    Streamable,
    /// The two-endpoint HTTP+SSE transport of 2024-11-05.
    Sse,
}

/// Who may share one legacy session of an upstream.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Sharing {
    /// One for all.
    Shared,
    /// One per principal.
    Principal,
    /// One per downstream session.
    Session,
}

/// Whom an upstream may send to web addresses.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum UrlElicitation {
    /// Whoever is a user of their own to it.
    Own,
    /// Everybody, also where all callers are one user to it: what one of them allows is allowed for all.
    Shared,
}

/// A credential: exactly one of these.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Auth {
    /// `Authorization: Bearer …`
    Bearer(Secret),
    /// `Authorization: Basic …`
    Basic(Basic),
    /// A header of its own.
    Header(AuthHeader),
    /// People log in, each with an account of their own.
    AuthorizationCode(AuthorizationCode),
    /// A token of the gateway's own (OAuth client credentials).
    ClientCredentials(TokenGrant),
    /// A token for each user, exchanged for the one that they came with (RFC 8693).
    TokenExchange(TokenGrant),
    /// A token for each user, by an assertion from where they logged in (Identity Assertion Authorization Grant).
    IdJag(TokenGrant),
}

/// User and password.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Basic {
    /// The user.
    #[schemars(required)]
    pub(super) user: Option<Secret>,
    /// The password.
    #[schemars(required)]
    pub(super) password: Option<Secret>,
}

/// A header that holds a credential.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct AuthHeader {
    /// Its name.
    #[schemars(required)]
    pub(super) name: Option<String>,
    /// Its value.
    #[schemars(required)]
    pub(super) value: Option<Secret>,
}

/// TLS toward an upstream, in PEM.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct UpstreamTls {
    /// Roots to trust instead of the system's.
    pub(super) ca: Option<String>,
    /// Our certificate chain.
    pub(super) cert: Option<String>,
    /// Its key.
    pub(super) key: Option<Secret>,
}

/// Which tools are taken, and how they are shown; all by original names, if nothing else is said.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Tools {
    /// Globs; a tool is taken if one matches. Default: ["*"].
    pub(super) allow: Option<Vec<String>>,
    /// Globs; and if none of these does.
    pub(super) deny: Vec<String>,
    /// New names, before the prefix is added.
    pub(super) rename: BTreeMap<String, String>,
    /// New descriptions, by new or original names.
    pub(super) describe: BTreeMap<String, String>,
    /// What tools do, for policies, by globs over original names; of several that match, the last that says something counts:
    /// { "delete_*": { destructive: true } }.
    pub(super) annotations: Ordered<Annotations>,
}

/// Deadlines toward an upstream.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Timeout {
    /// To the outcome of a call, or of whatever else is asked for, such as to read a resource. Default: 60s, at most 300s.
    /// A call that reports progress has this time again from each report on, for five times as long and 300s in all at most.
    pub(super) call: Option<Time>,
    /// To a whole list, and to a prompt or a skill that is got by its name. Default: 15s.
    pub(super) list: Option<Time>,
    /// To a connection, a handshake over the network. Default: 5s, at most 60s.
    pub(super) connect: Option<Time>,
    /// From the start of a program to the end of its handshake; npx and uvx download first. Default: 60s, at most 10m.
    pub(super) start: Option<Time>,
    /// Without a byte on a stream that owes an outcome. Default: 60s.
    pub(super) silence: Option<Time>,
}

/// A named selection: `upstreams` are taken whole, the globs select outward names of all of them beside that.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Toolset {
    /// Globs over exposed tool names.
    pub(super) tools: Vec<String>,
    /// Globs over exposed prompt names.
    pub(super) prompts: Vec<String>,
    /// Globs over exposed resource URIs and templates.
    pub(super) resources: Vec<String>,
    /// Upstreams taken whole.
    pub(super) upstreams: Vec<String>,
}

/// What exposed names may look like.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Names {
    /// The most characters, 16 to 128. Default: 64.
    pub(super) max: Option<usize>,
    /// Which characters. Default: strict.
    pub(super) charset: Option<Alphabet>,
}

/// Characters of exposed names.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Alphabet {
    /// [A-Za-z0-9_-]
    Strict,
    /// [A-Za-z0-9_.-]
    Spec,
}

/// When a page is full.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct PageSize {
    /// Entries, 1 to 10,000. Default: 500.
    pub(super) items: Option<usize>,
    /// Bytes. Default: 1MiB.
    pub(super) bytes: Option<Size>,
}

/// What outlives a request.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct State {
    /// Where it is kept. Default: memory.
    pub(super) store: Option<Store>,
    /// A directory for what outlives the process, relative to this file: what was approved of definitions. Made if it is not
    /// there. Default: nothing outlives it.
    pub(super) dir: Option<String>,
    /// What cursors are sealed with, at least 32 bytes and the same for every replica. Default: made at start.
    pub(super) key: Option<Secret>,
    /// Keys that `key` took the place of: what they sealed still opens. Default: none.
    pub(super) former_keys: Vec<Secret>,
}

/// Where state is kept.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Store {
    /// In this process.
    Memory,
}

impl<'de> Deserialize<'de> for ListenTls {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct WordOrBlock;

        impl<'de> Visitor<'de> for WordOrBlock {
            type Value = ListenTls;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("`terminated_upstream` or a mapping with `cert` and `key`")
            }

            fn visit_str<E: de::Error>(self, word: &str) -> Result<ListenTls, E> {
                if word == "terminated_upstream" {
                    Ok(ListenTls::TerminatedUpstream)
                } else {
                    Err(mistake(
                        "not a way to have TLS",
                        "write `terminated_upstream` if a proxy ends TLS, or `{ cert: …, key: … }`",
                    ))
                }
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ListenTls, A::Error> {
                ListenIdentity::deserialize(MapAccessDeserializer::new(map)).map(ListenTls::Here)
            }
        }

        deserializer.deserialize_any(WordOrBlock)
    }
}

impl JsonSchema for ListenTls {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ListenTls".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let block = generator.subschema_for::<ListenIdentity>();
        json_schema!({
            "description": "TLS of the listener: our own, or `terminated_upstream` where a proxy ends it.",
            "anyOf": [{ "const": "terminated_upstream" }, block],
        })
    }
}
