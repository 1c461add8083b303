// A real authorization server (oidc-provider) and, at /mcp of the same origin, an MCP server that takes nothing but its tokens:
// `node accounts.mjs PORT`. Prints `ready` when it listens.
//
// Ana logs in and agrees to everything by herself. Access tokens live for 20 s, less than a gateway sends a token for, so that
// each call needs a fresh one; refresh tokens are good once. The tool `whoami` tells who its token is of and for, and how many
// tokens were seen.

import { createServer } from "node:http";

import { Provider } from "oidc-provider";

const [port] = process.argv.slice(2);
const issuer = `http://127.0.0.1:${port}`;
const resource = `${issuer}/mcp`;

const provider = new Provider(issuer, {
  claims: { openid: ["sub"] },
  scopes: ["openid", "offline_access", "mcp"],
  pkce: { required: () => true },
  clientAuthMethods: ["client_secret_basic"],
  rotateRefreshToken: true,
  findAccount: async (_, id) => ({ accountId: id, claims: async () => ({ sub: id }) }),
  features: {
    devInteractions: { enabled: false },
    registration: { enabled: true },
    revocation: { enabled: true },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: async (_, asked) => {
        if (asked !== resource) throw new Error(`not a resource of ours: ${asked}`);
        return { scope: "mcp", audience: resource, accessTokenFormat: "opaque", accessTokenTTL: 20 };
      },
      useGrantedResource: async () => true,
    },
  },
  interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
  // Only so that it starts without complaints.
  cookies: { keys: ["not a secret"] },
});

async function interact(request, response) {
  const { prompt, params, grantId } = await provider.interactionDetails(request, response);
  if (prompt.name === "login") {
    await provider.interactionFinished(request, response, { login: { accountId: "ana" } });
    return;
  }
  const grant = grantId
    ? await provider.Grant.find(grantId)
    : new provider.Grant({ accountId: "ana", clientId: params.client_id });
  grant.addOIDCScope("openid offline_access mcp");
  grant.addResourceScope(resource, "mcp");
  const consent = { grantId: await grant.save() };
  await provider.interactionFinished(request, response, { consent }, { mergeWithLastSubmission: true });
}

const seen = new Set();
const tool = { name: "whoami", inputSchema: { type: "object" } };
const results = {
  initialize: () => ({ protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: { name: "accounts", version: "1" } }),
  ping: () => ({}),
  "tools/list": () => ({ tools: [tool] }),
  "tools/call": (token) => ({ content: [{ type: "text", text: `${token.accountId} for ${token.aud}, token ${seen.size}` }] }),
};

async function mcp(request, response) {
  const answer = (status, body, headers = {}) => {
    response.writeHead(status, { "content-type": "application/json", ...headers });
    response.end(body === undefined ? "" : JSON.stringify(body));
  };
  const text = /^Bearer (.+)$/.exec(request.headers.authorization ?? "")?.[1];
  const token = text && (await provider.AccessToken.find(text));
  if (token?.aud !== resource || token.isExpired) {
    return answer(401, {}, { "www-authenticate": `Bearer resource_metadata="${issuer}/.well-known/oauth-protected-resource/mcp"` });
  }
  if (request.method !== "POST") return answer(405, {}, { allow: "POST" });
  seen.add(text);
  let body = "";
  for await (const piece of request) body += piece;
  const { id, method } = JSON.parse(body);
  if (id === undefined) return answer(202);
  const result = results[method];
  if (!result) return answer(method === "server/discover" ? 400 : 200, { jsonrpc: "2.0", id, error: { code: -32601, message: "no such method" } });
  answer(200, { jsonrpc: "2.0", id, result: result(token) });
}

const oauth = provider.callback();
createServer((request, response) => {
  const failed = (error) => {
    console.error(error);
    response.writeHead(500).end();
  };
  const { pathname } = new URL(request.url, issuer);
  if (pathname === "/mcp") return mcp(request, response).catch(failed);
  if (pathname === "/.well-known/oauth-protected-resource/mcp") {
    response.writeHead(200, { "content-type": "application/json" });
    return response.end(JSON.stringify({ resource, authorization_servers: [issuer], scopes_supported: ["mcp"] }));
  }
  if (pathname.startsWith("/interaction/")) return interact(request, response).catch(failed);
  return oauth(request, response);
}).listen(port, "127.0.0.1", () => console.log("ready"));

for (const event of ["server_error", "authorization.error", "grant.error", "registration_create.error"]) {
  provider.on(event, (_, error) => console.error(event, error.message, error.error_detail ?? ""));
}
