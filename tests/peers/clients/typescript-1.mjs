// TypeScript SDK 1.x as a client; see steps.mjs. It knows the legacy era only.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

import { operations, run, target } from "./steps.mjs";

if (target.era === "modern") throw new Error("this client knows no modern era");
const client = new Client({ name: "typescript-1", version: "1.0.0" });
await client.connect(target.url ? new StreamableHTTPClientTransport(target.url) : new StdioClientTransport(target.stdio));
await run(operations(client));
await client.close();
process.exit(); // an idle connection would keep it for seconds
