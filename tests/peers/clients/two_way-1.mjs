// TypeScript SDK 1.x as a client that can be asked; see two_way.mjs. It knows the legacy era only.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import * as types from "@modelcontextprotocol/sdk/types.js";

import { run, target } from "./steps.mjs";
import { capabilities, twoWay } from "./two_way.mjs";

const schemas = {
  "elicitation/create": types.ElicitRequestSchema,
  "sampling/createMessage": types.CreateMessageRequestSchema,
  "roots/list": types.ListRootsRequestSchema,
  "notifications/message": types.LoggingMessageNotificationSchema,
  "notifications/resources/updated": types.ResourceUpdatedNotificationSchema,
  "notifications/tools/list_changed": types.ToolListChangedNotificationSchema,
  "notifications/elicitation/complete": types.ElicitationCompleteNotificationSchema,
};
const client = new Client({ name: "two-way-1", version: "1.0.0" }, { capabilities });
const operations = twoWay(client, {
  onRequest: (method, answer) => client.setRequestHandler(schemas[method], answer),
  onNotification: (method, hear) => client.setNotificationHandler(schemas[method], hear),
  call: (params, options) => client.callTool(params, undefined, options),
  subscribe: (uri) => client.subscribeResource({ uri }),
  level: async (level) => void (await client.setLoggingLevel(level)),
});
await client.connect(new StreamableHTTPClientTransport(target.url));
await run(operations);
await client.close();
process.exit(); // an idle connection would keep it for seconds
