// TypeScript client 2.x as a modern client that can be asked; see two_way.mjs.

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

import { run, target } from "./steps.mjs";
import { capabilities, twoWay } from "./two_way.mjs";

const mode = { pin: "2026-07-28" };
const client = new Client({ name: "two-way-2", version: "1.0.0" }, { capabilities, versionNegotiation: { mode } });
const operations = twoWay(client, {
  onRequest: (method, answer) => client.setRequestHandler(method, answer),
  onNotification: (method, hear) => client.setNotificationHandler(method, hear),
  call: (params, options) => client.callTool(params, options),
  subscribe: async (uri) => (await client.listen({ resourceSubscriptions: [uri], toolsListChanged: true })).honoredFilter,
  level: async (level) => ({ "io.modelcontextprotocol/logLevel": level }),
});
await client.connect(new StreamableHTTPClientTransport(target.url));
await run(operations);
await client.close();
process.exit(); // an idle connection would keep it for seconds
