// TypeScript client 2.x logs in and calls a tool: `node login-2.mjs URL TOOL`. Prints what happened, and the tool's result.

import { Client, StreamableHTTPClientTransport, UnauthorizedError } from "@modelcontextprotocol/client";

import { Memory, approve } from "./browser.mjs";

const [url, tool] = process.argv.slice(2);
const provider = new Memory();
let result;
for (let tries = 0; result === undefined && tries < 4; tries++) {
  const client = new Client({ name: "login-2", version: "1.0.0" });
  const transport = new StreamableHTTPClientTransport(new URL(url), { authProvider: provider });
  try {
    await client.connect(transport);
    result = await client.callTool({ name: tool, arguments: {} });
  } catch (error) {
    if (!(error instanceof UnauthorizedError)) throw error;
    await transport.finishAuth(await approve(provider.asked, provider.redirectUrl));
  }
}
process.stdout.write(JSON.stringify({ log: provider.log, result }), () => process.exit());
