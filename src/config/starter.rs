//! What `usher init` writes: a file that runs as it is and shows by comments where to go on.

use std::{
    fs::OpenOptions,
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

/// The starting point.
pub const STARTER: &str = r#"# usher.yaml: one endpoint in front of many MCP servers.
# Check it with `usher check`, run it with `usher serve`. Every key: `usher schema config`.

listen:
  address: 127.0.0.1:8808            # only this machine; others need TLS, hosts and an authentication method

# The endpoint is /mcp: every upstream. /mcp/NAME serves a toolset, /mcp/u/NAME one upstream under its original names.
# endpoint: /mcp

upstreams:
  # A program that speaks MCP on stdin and stdout. Its tools appear as `files_…`.
  # files:
  #   command: [npx, -y, "@modelcontextprotocol/server-filesystem", /data]
  #   env: { NODE_OPTIONS: "--max-old-space-size=256" }

  # A server on the network. Secrets are references: ${env:NAME} or ${file:/path}.
  # github:
  #   url: https://api.githubcopilot.com/mcp/
  #   auth: { bearer: "${env:GITHUB_TOKEN}" }
  #   tools: { allow: ["*issue*", "*pull_request*"], deny: ["delete_*"] }
  #   timeout: { call: 60s }

# toolsets:
#   oncall: { tools: ["github_*issue*"], upstreams: [files] }   # served at /mcp/oncall

# names: { max: 64, charset: strict }       # what model APIs accept
# page_size: { items: 500, bytes: 1MiB }
# state: { key: "${file:/run/secrets/usher-key}" }   # cursors survive a restart; `openssl rand -hex 32` makes a key
"#;

/// Writes `text` to a new file that only its owner may write to.
///
/// # Errors
/// When the file exists, or cannot be written.
pub fn write_new(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o644)
        .open(path)?;
    file.write_all(text.as_bytes())
}
