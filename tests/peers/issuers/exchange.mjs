// Two real authorization servers (oidc-provider) and an MCP server (the official SDK) that takes the tokens of one of them.
//
// `login` is where people log in; it also gives identity assertions (ID-JAG) against their tokens. `files` is the authorization
// server of the MCP server: client credentials, token exchange (RFC 8693) and JWT bearer grants (RFC 7523). The MCP server
// checks signature, issuer, audience and expiry of each token, keeps its sessions to the `sub` that began them, and has one
// tool that says who calls. oidc-provider has no token exchange of its own, so the two grants stand here, on its documented
// hook for grant types; tokens, client authentication, resource indicators and metadata are its own.
//
// Prints one line of JSON when all three listen: their addresses, and tokens of people who logged in.

import { randomUUID } from 'node:crypto';
import http from 'node:http';

import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { SignJWT, createLocalJWKSet, exportJWK, generateKeyPair, jwtVerify } from 'jose';
import Provider, { errors } from 'oidc-provider';

const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';
const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer';
const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token';
const ID_JAG = 'urn:ietf:params:oauth:token-type:id-jag';
const SECRET = process.env.CLIENT_SECRET;
const GATEWAY = 'https://gateway.example/mcp';

const servers = {};
for (const name of ['login', 'files', 'mcp']) {
  const server = http.createServer();
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  servers[name] = { server, url: `http://127.0.0.1:${server.address().port}` };
}
const login = servers.login.url;
const files = servers.files.url;
const resource = `${servers.mcp.url}/mcp`;

async function keys(kid) {
  const { privateKey, publicKey } = await generateKeyPair('RS256', { extractable: true });
  const own = { kid, alg: 'RS256', use: 'sig' };
  return {
    sign: (claims, typ) =>
      new SignJWT(claims).setProtectedHeader({ alg: 'RS256', kid, typ }).setIssuedAt().sign(privateKey),
    private: { keys: [{ ...(await exportJWK(privateKey)), ...own }] },
    public: createLocalJWKSet({ keys: [{ ...(await exportJWK(publicKey)), ...own }] }),
  };
}

const loginKeys = await keys('login-1');
const filesKeys = await keys('files-1');
const strangerKeys = await keys('login-1');

function provider(issuer, jwks, grants) {
  return new Provider(issuer, {
    jwks,
    clients: [
      {
        client_id: 'usher',
        client_secret: SECRET,
        grant_types: grants,
        redirect_uris: [],
        response_types: [],
      },
    ],
    features: {
      clientCredentials: { enabled: true },
      devInteractions: { enabled: false },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => undefined,
        getResourceServerInfo: (_ctx, indicator) => {
          if (indicator !== resource) throw new errors.InvalidTarget('unknown resource');
          return info;
        },
      },
    },
  });
}

const info = {
  scope: 'files.read files.write',
  audience: resource,
  accessTokenTTL: 120,
  accessTokenFormat: 'jwt',
  jwt: { sign: { alg: 'RS256' } },
};

async function proved(token, key, expected) {
  try {
    return (await jwtVerify(token, key, expected)).payload;
  } catch {
    throw new errors.InvalidGrant('the token is not one that is taken here');
  }
}

// A token of `files` for the MCP server, in the name of `sub`.
async function token(ctx, sub) {
  const { client, params, provider } = ctx.oidc;
  if (params.resource !== resource) throw new errors.InvalidTarget('unknown resource');
  const { AccessToken, ResourceServer } = provider;
  const made = new AccessToken({ accountId: sub, client, scope: params.scope, grantId: randomUUID() });
  made.resourceServer = new ResourceServer(resource, info);
  ctx.oidc.entity('AccessToken', made);
  const answer = { access_token: await made.save(), token_type: 'Bearer', expires_in: made.expiration };
  return answer;
}

const filesProvider = provider(files, filesKeys.private, ['client_credentials', EXCHANGE, JWT_BEARER]);
filesProvider.registerGrantType(
  EXCHANGE,
  async (ctx) => {
    const { params } = ctx.oidc;
    if (params.subject_token_type !== ACCESS_TOKEN) throw new errors.InvalidRequest('not that type');
    const expected = { issuer: login, audience: GATEWAY };
    const { sub } = await proved(params.subject_token, loginKeys.public, expected);
    ctx.body = { ...(await token(ctx, sub)), issued_token_type: ACCESS_TOKEN };
  },
  ['subject_token', 'subject_token_type', 'requested_token_type', 'resource', 'audience', 'scope'],
);
filesProvider.registerGrantType(
  JWT_BEARER,
  async (ctx) => {
    const expected = { issuer: login, audience: files, typ: 'oauth-id-jag+jwt' };
    const jag = await proved(ctx.oidc.params.assertion, loginKeys.public, expected);
    if (jag.client_id !== 'usher' || jag.resource !== resource) throw new errors.InvalidGrant('for others');
    ctx.body = await token(ctx, jag.sub);
  },
  ['assertion', 'resource', 'scope'],
);
servers.files.server.on('request', filesProvider.callback());

const loginProvider = provider(login, loginKeys.private, [EXCHANGE]);
loginProvider.registerGrantType(
  EXCHANGE,
  async (ctx) => {
    const { params } = ctx.oidc;
    if (params.requested_token_type !== ID_JAG) throw new errors.InvalidRequest('only assertions');
    const expected = { issuer: login, audience: GATEWAY };
    const { sub } = await proved(params.subject_token, loginKeys.public, expected);
    const claims = {
      iss: login,
      sub,
      aud: params.audience,
      resource: params.resource,
      client_id: 'usher',
      jti: randomUUID(),
      exp: Math.floor(Date.now() / 1000) + 60,
    };
    const assertion = await loginKeys.sign(claims, 'oauth-id-jag+jwt');
    ctx.body = { access_token: assertion, issued_token_type: ID_JAG, token_type: 'N_A', expires_in: 60 };
  },
  ['subject_token', 'subject_token_type', 'requested_token_type', 'resource', 'audience', 'scope'],
);
servers.login.server.on('request', loginProvider.callback());

// The MCP server. Each session belongs to the `sub` that began it; another's token on it is refused.
const sessions = new Map();

function session(owner) {
  const server = new McpServer({ name: 'files', version: '1.0.0' });
  server.registerTool('whoami', { description: 'Says who calls.' }, ({ authInfo }) => ({
    content: [{ type: 'text', text: JSON.stringify(authInfo.extra) }],
  }));
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    onsessioninitialized: (id) => sessions.set(id, { owner, transport }),
  });
  return server.connect(transport).then(() => transport);
}

servers.mcp.server.on('request', async (req, res) => {
  const bearer = /^Bearer (\S+)$/.exec(req.headers.authorization ?? '')?.[1] ?? '';
  let claims;
  try {
    const expected = { issuer: files, audience: resource };
    claims = (await jwtVerify(bearer, filesKeys.public, expected)).payload;
  } catch {
    const challenge = 'Bearer error="invalid_token", resource_metadata="https://files.example/other"';
    return res.writeHead(401, { 'www-authenticate': challenge }).end();
  }
  const { sub, aud, iss, scope, client_id } = claims;
  const known = sessions.get(req.headers['mcp-session-id']);
  if (known && known.owner !== sub) return res.writeHead(403).end();
  const extra = { sub, aud, iss, scope, client_id, session: req.headers['mcp-session-id'] };
  req.auth = { token: 'not kept', clientId: client_id, scopes: [], extra };
  const transport = known?.transport ?? (await session(sub));
  await transport.handleRequest(req, res);
});

const person = (sub, from = loginKeys, aud = GATEWAY) =>
  from.sign({ iss: login, sub, aud, exp: Math.floor(Date.now() / 1000) + 600 }, 'at+jwt');
const people = {
  ana: await person('ana'),
  ben: await person('ben'),
  forged: await person('ana', strangerKeys),
  elsewhere: await person('ana', loginKeys, 'https://other.example/'),
};
console.log(JSON.stringify({ login, files, resource, people }));
