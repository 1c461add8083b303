// TypeScript SDK 1.x that is sent to a page in the handshake era: `node connect-1.mjs URL`.

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";

import { told } from "./connect.mjs";

const capabilities = { elicitation: { form: {}, url: {} } };
const client = new Client({ name: "connect-1", version: "1.0.0" }, { capabilities });
let tell;
client.setRequestHandler(ElicitRequestSchema, ({ params }) => tell(params));
await client.connect(new StreamableHTTPClientTransport(new URL(process.argv[2])));
await told(
  () => client.listTools(),
  (name) => client.callTool({ name, arguments: {} }),
  (answer) => void (tell = answer),
);
await client.close();
process.exit(); // an open stream would keep it
