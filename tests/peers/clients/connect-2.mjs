// TypeScript client 2.x that is sent to a page in the stateless era: `node connect-2.mjs URL`.

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

import { told } from "./connect.mjs";

const mode = { pin: "2026-07-28" };
const capabilities = { elicitation: { form: {}, url: {} } };
const client = new Client({ name: "connect-2", version: "1.0.0" }, { capabilities, versionNegotiation: { mode } });
const answering = (answer) => client.setRequestHandler("elicitation/create", ({ params }) => answer(params));
let tell;
answering((params) => tell(params));
await client.connect(new StreamableHTTPClientTransport(new URL(process.argv[2])));
await told(
  () => client.listTools(),
  (name) => client.callTool({ name, arguments: {} }),
  (answer) => void (tell = answer),
);
await client.close();
process.exit(); // an idle connection would keep it for seconds
