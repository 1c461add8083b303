// The Inspector's command line as a client; see steps.mjs. It starts once per step, and it cannot complete arguments.
// Its default is the legacy era. It hands over complete lists and says error codes in words of its own.

import { execFile } from "node:child_process";
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

import { run, target } from "./steps.mjs";

// Under another path than its real one it does nothing and says nothing: the packages may be linked to.
const cli = realpathSync(
  join(import.meta.dirname, "../node_modules/@modelcontextprotocol/inspector/clients/cli/build/index.js"),
);
const scratch = mkdtempSync(join(tmpdir(), "usher-inspector-"));
const config = join(scratch, "mcp.json");
const server = target.stdio ?? { type: "streamable-http", url: target.url.href };
writeFileSync(config, JSON.stringify({ mcpServers: { peer: server } }));

async function method(name, ...more) {
  const chosen = ["--config", config, "--server", "peer", "--protocol-era", target.era ?? "legacy"];
  const args = [cli, ...chosen, "--method", name, "--format", "json", "--quiet", ...more];
  const outcome = await promisify(execFile)(process.execPath, args, { maxBuffer: 1 << 26 }).catch((error) => error);
  // An isError result is printed like any other and makes the exit code 5; another failure is printed to stderr.
  if (outcome.stdout) return JSON.parse(outcome.stdout).result ?? JSON.parse(outcome.stdout);
  throw JSON.parse(outcome.stderr.match(/^\{"error".*$/m)?.[0] ?? `{"error": ${JSON.stringify(outcome.stderr)}}`).error;
}

const pairs = (object = {}) => Object.entries(object).map(([key, value]) => `${key}=${value}`);

try {
  await run({
    list_tools: () => method("tools/list"),
    list_prompts: () => method("prompts/list"),
    list_resources: () => method("resources/list"),
    list_templates: () => method("resources/templates/list"),
    call: (step) => method("tools/call", "--tool-name", step.name, "--tool-args-json", JSON.stringify(step.arguments ?? {})),
    get_prompt: (step) => method("prompts/get", "--prompt-name", step.name, ...(step.arguments ? ["--prompt-args", ...pairs(step.arguments)] : [])),
    read: (step) => method("resources/read", "--uri", step.uri),
  });
} finally {
  rmSync(scratch, { recursive: true });
}
