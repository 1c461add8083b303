// An MCP server made with TypeScript SDK 1.x that asks and tells beside the call: `node beside.mjs PORT`. Prints `ready` when it
// listens.
//
// Its tools do not say which request they are at work on, so that the SDK sends what they say on the GET stream of the session,
// and drops it where that is not open.

import { randomUUID } from "node:crypto";
import { createServer } from "node:http";

import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";

const [port] = process.argv.slice(2);
const form = {
  message: "Who?",
  requestedSchema: { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
};
const sample = { messages: [{ role: "user", content: { type: "text", text: "hello" } }], maxTokens: 10 };

function begun() {
  const server = new McpServer({ name: "beside", version: "1.0.0" }, { capabilities: { logging: {} } });
  const tool = (name, run) =>
    server.registerTool(name, { description: name }, async () => ({ content: [{ type: "text", text: JSON.stringify(await run()) }] }));
  tool("elicit", () => server.server.elicitInput(form));
  tool("sample", () => server.server.createMessage(sample));
  tool("roots", () => server.server.listRoots());
  tool("log", async () => {
    await server.sendLoggingMessage({ level: "warning", data: "said beside the call" });
    await new Promise((over) => setTimeout(over, 500));
    return "logged";
  });
  return server;
}

const sessions = new Map();
createServer(async (request, response) => {
  const id = request.headers["mcp-session-id"];
  let transport = sessions.get(id);
  if (id !== undefined && !transport) return response.writeHead(404).end();
  if (!transport) {
    transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (session) => void sessions.set(session, transport),
    });
    await begun().connect(transport);
  }
  await transport.handleRequest(request, response);
}).listen(port, "127.0.0.1", () => console.log("ready"));
