//! The Rust SDK as a client; the command line and the steps are those of steps.mjs.
//!
//! `--revision` picks one revision; otherwise `--era` decides, and without it the client probes.
#![expect(
    clippy::disallowed_types,
    reason = "steps and results are whatever the SDK takes and gives"
)]

use std::{future::Future, io::Read as _};

use clap::{Parser, ValueEnum};
use rmcp::{
    RoleClient, ServiceError,
    model::{CallToolResult, ClientConfig, ErrorCode, ProtocolVersion},
    service::{ClientLifecycleMode, ClientServiceExt as _, RunningService},
    transport::{StreamableHttpClientTransport, TokioChildProcess},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};
use tokio::process::Command;

type Failure = Box<dyn std::error::Error + Send + Sync>;
type Client = RunningService<RoleClient, ClientConfig>;

/// Runs steps with the Rust SDK.
#[derive(Parser)]
struct Arguments {
    /// Connect to this endpoint
    #[arg(long, required_unless_present = "command")]
    url: Option<String>,
    /// Start this shell command and speak to its standard streams
    #[arg(long, conflicts_with = "url")]
    command: Option<String>,
    /// Speak only this era
    #[arg(long, value_enum, default_value = "auto")]
    era: Choice,
    /// Speak only this revision
    #[arg(long)]
    revision: Option<ProtocolVersionArgument>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Choice {
    Modern,
    Legacy,
    Auto,
}

#[derive(Clone)]
struct ProtocolVersionArgument(ProtocolVersion);

impl std::str::FromStr for ProtocolVersionArgument {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = ProtocolVersion::KNOWN_VERSIONS.iter();
        let found = known.filter(|version| version.as_str() == text).cloned();
        found
            .map(Self)
            .next()
            .ok_or_else(|| format!("unknown revision {text}"))
    }
}

#[tokio::main]
async fn main() -> Result<(), Failure> {
    // The HTTP client takes the process's TLS provider; this one is the crate's only.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let arguments = Arguments::parse();
    let client = connect(&arguments).await?;
    let mut steps = String::new();
    std::io::stdin().read_to_string(&mut steps)?;
    let mut results = Vec::new();
    for step in serde_json::from_str::<Vec<Value>>(&steps)? {
        results.push(match perform(&client, &step).await {
            Ok(result) => json!({"ok": result}),
            Err(ServiceError::McpError(error)) => {
                json!({"error": {"code": error.code, "message": error.message}})
            }
            Err(error) => return Err(error.into()),
        });
    }
    serde_json::to_writer(std::io::stdout(), &results)?;
    client.cancel().await?;
    Ok(())
}

async fn connect(arguments: &Arguments) -> Result<Client, Failure> {
    let revision = arguments.revision.clone().map(|revision| revision.0);
    let modern = ProtocolVersion::V_2026_07_28;
    let mut info = ClientConfig::default();
    if let Some(revision) = revision.clone().filter(|revision| *revision != modern) {
        info.protocol_version = revision;
    }
    let preferred_versions = vec![modern.clone()];
    let mode = match (arguments.era, revision) {
        (_, Some(revision)) if revision == modern => {
            ClientLifecycleMode::Discover { preferred_versions }
        }
        (Choice::Legacy, None) | (_, Some(_)) => ClientLifecycleMode::Initialize,
        (Choice::Modern, None) => ClientLifecycleMode::Discover { preferred_versions },
        (Choice::Auto, None) => ClientLifecycleMode::Auto {
            preferred_versions,
            legacy_version: None,
        },
    };
    Ok(match (&arguments.url, &arguments.command) {
        (Some(url), _) => {
            let transport = StreamableHttpClientTransport::from_uri(url.as_str());
            info.serve_with_lifecycle(transport, mode).await?
        }
        (None, command) => {
            let mut shell = Command::new("sh");
            let line = command.as_deref().unwrap_or_default();
            shell.arg("-c").arg(format!("exec {line}"));
            info.serve_with_lifecycle(TokioChildProcess::new(shell)?, mode)
                .await?
        }
    })
}

async fn perform(client: &Client, step: &Value) -> Result<Value, ServiceError> {
    match step["op"].as_str().unwrap_or_default() {
        "list_tools" => list("tools", client.list_all_tools()).await,
        "list_prompts" => list("prompts", client.list_all_prompts()).await,
        "list_resources" => list("resources", client.list_all_resources()).await,
        "list_templates" => list("resourceTemplates", client.list_all_resource_templates()).await,
        // What the SDK asks for when nobody follows cursors for it; no other client has this operation.
        "first_page" => plain(client.list_tools(None).await?),
        "call" => plain(call(client, step).await?),
        "get_prompt" => plain(client.get_prompt(params(step)).await?),
        "read" => plain(client.read_resource(params(step)).await?),
        "complete" => plain(client.complete(params(step)).await?),
        other => Err(ServiceError::McpError(rmcp::ErrorData::invalid_request(
            format!("no such operation: {other}"),
            None,
        ))),
    }
}

/// Calls a tool, and once more after a fresh list of the tools where the server misses a header, as a client is to do
/// (PROTOCOL B3). rmcp 3.9 has it happen at times: what of a list is to be mirrored it does not learn when the end of the
/// list's stream overtakes the list inside it, which takes a busy machine and a server that answers lists as a stream.
async fn call(client: &Client, step: &Value) -> Result<CallToolResult, ServiceError> {
    match client.call_tool(params(step)).await {
        Err(ServiceError::McpError(error)) if error.code == ErrorCode::HEADER_MISMATCH => {
            client.clear_response_cache().await;
            client.list_all_tools().await?;
            client.call_tool(params(step)).await
        }
        first => first,
    }
}

async fn list<T: Serialize>(
    key: &str,
    items: impl Future<Output = Result<Vec<T>, ServiceError>>,
) -> Result<Value, ServiceError> {
    let items = items.await?;
    plain(Map::from_iter([(key.to_owned(), json!(items))]))
}

#[expect(clippy::expect_used, reason = "a wrong step is a mistake in the test")]
fn params<T: DeserializeOwned>(step: &Value) -> T {
    let mut params = step.clone();
    if let Some(fields) = params.as_object_mut() {
        fields.remove("op");
    }
    // INVARIANT: the steps are written by the test beside this, which knows the operations' fields.
    serde_json::from_value(params).expect("the step has the fields of its operation")
}

fn plain(result: impl Serialize) -> Result<Value, ServiceError> {
    Ok(json!(result))
}
