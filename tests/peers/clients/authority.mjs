// A real authorization server (oidc-provider) that approves every login by itself: `node authority.mjs PORT RESOURCE`.
//
// Clients register themselves, must use PKCE, and name the resource that their token is for. The first login of a client is
// granted the scope `mcp` alone, whatever it asked for; later ones are granted everything. Prints `ready` when it listens.

import { createServer } from "node:http";

import { Provider } from "oidc-provider";

// Standard output says one word; the server has many.
console.log = console.info = console.warn = console.error;

const [port, resource] = process.argv.slice(2);
const issuer = `http://127.0.0.1:${port}`;
const logins = new Map();

const provider = new Provider(issuer, {
  claims: { openid: ["sub"] },
  scopes: ["mcp", "tools"],
  pkce: { required: () => true },
  clientAuthMethods: ["none", "client_secret_basic", "client_secret_post"],
  issueRefreshToken: async () => false,
  findAccount: async (_, id) => ({ accountId: id, claims: async () => ({ sub: id }) }),
  features: {
    devInteractions: { enabled: false },
    registration: { enabled: true },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: async (_, asked) => {
        if (asked !== resource) throw new Error(`not a resource of ours: ${asked}`);
        return {
          scope: "mcp tools",
          audience: resource,
          accessTokenFormat: "jwt",
          accessTokenTTL: 600,
          jwt: { sign: { alg: "RS256" } },
        };
      },
      useGrantedResource: async () => true,
    },
  },
  // Clients register with the scopes of the first challenge; a later one may name more.
  extraClientMetadata: {
    properties: ["any_scope"],
    validator: (_, __, ___, metadata) => {
      delete metadata.scope;
    },
  },
  interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
  // Only so that it starts without complaints.
  cookies: { keys: ["not a secret"] },
});

// Logs Ana in and grants what she is asked for.
async function interact(request, response) {
  const { prompt, params, grantId } = await provider.interactionDetails(request, response);
  if (prompt.name === "login") {
    await provider.interactionFinished(request, response, { login: { accountId: "ana" } });
    return;
  }
  const count = (logins.get(params.client_id) ?? 0) + 1;
  logins.set(params.client_id, count);
  const grant = grantId
    ? await provider.Grant.find(grantId)
    : new provider.Grant({ accountId: "ana", clientId: params.client_id });
  // The server knows the scopes both as its own and as the resource's.
  grant.addOIDCScope("openid mcp");
  grant.addResourceScope(resource, "mcp");
  if (count > 1) {
    grant.addOIDCScope("tools");
    grant.addResourceScope(resource, "tools");
  } else {
    grant.rejectOIDCScope("tools");
    grant.rejectResourceScope(resource, "tools");
  }
  const consent = { grantId: await grant.save() };
  await provider.interactionFinished(request, response, { consent }, { mergeWithLastSubmission: true });
}

const answer = provider.callback();
createServer((request, response) => {
  if (!request.url.startsWith("/interaction/")) return answer(request, response);
  interact(request, response).catch((error) => {
    console.error(error);
    response.writeHead(500).end();
  });
}).listen(port, "127.0.0.1", () => process.stdout.write("ready\n"));

for (const event of ["server_error", "authorization.error", "grant.error", "registration_create.error"]) {
  provider.on(event, (_, error) => console.error(event, error.message, error.error_detail ?? ""));
}
