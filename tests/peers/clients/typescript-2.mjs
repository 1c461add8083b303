// TypeScript client 2.x; see steps.mjs. Its default is the modern era, without falling back.

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

import { operations, run, target } from "./steps.mjs";

const mode = { modern: { pin: "2026-07-28" }, legacy: "legacy", auto: "auto" }[target.era ?? "modern"];
const client = new Client({ name: "typescript-2", version: "1.0.0" }, { versionNegotiation: { mode } });
await client.connect(target.url ? new StreamableHTTPClientTransport(target.url) : new StdioClientTransport(target.stdio));
await run(operations(client));
await client.close();
process.exit(); // an idle connection would keep it for seconds
