# What accounts.mjs is, of the authorization server that comes with the Python SDK: `python accounts.py PORT`. Prints `ready` when
# it listens.
#
# It takes secrets in forms, and lets clients ask for nothing that they did not register for. The MCP server names it with a slash
# at the end, which it has not. Ana agrees to everything by herself.

import secrets
import sys
import time
import warnings

import uvicorn
from mcp.server import MCPServer
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    OAuthAuthorizationServerProvider,
    ProviderTokenVerifier,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.routes import create_auth_routes
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.shared.auth import OAuthToken

port = int(sys.argv[1])
issuer = f"http://127.0.0.1:{port}"
resource = f"{issuer}/mcp"


class Provider(OAuthAuthorizationServerProvider):
    def __init__(self):
        self.clients, self.codes, self.refresh, self.access = {}, {}, {}, {}

    async def get_client(self, client_id):
        return self.clients.get(client_id)

    async def register_client(self, client_info):
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client, params):
        code = AuthorizationCode(
            code=secrets.token_urlsafe(),
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            client_id=client.client_id,
            subject="ana",
            **params.model_dump(exclude={"state", "scopes"}),
        )
        self.codes[code.code] = code
        return construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state)

    async def load_authorization_code(self, client, authorization_code):
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(self, client, authorization_code):
        del self.codes[authorization_code.code]
        return self.tokens(authorization_code)

    async def load_refresh_token(self, client, refresh_token):
        return self.refresh.get(refresh_token)

    async def exchange_refresh_token(self, client, refresh_token, scopes):
        del self.refresh[refresh_token.token]
        return self.tokens(refresh_token)

    async def load_access_token(self, token):
        return self.access.get(token)

    # Good for less than a gateway sends a token for, so that each call needs a fresh one.
    def tokens(self, of):
        about = {name: getattr(of, name) for name in ("client_id", "scopes", "resource", "subject")}
        access = AccessToken(token=secrets.token_urlsafe(), expires_at=int(time.time()) + 20, **about)
        refresh = RefreshToken(token=secrets.token_urlsafe(), **about)
        self.access[access.token], self.refresh[refresh.token] = access, refresh
        return OAuthToken(access_token=access.token, expires_in=20, refresh_token=refresh.token, scope=" ".join(of.scopes))


# Of what is new in the SDK.
warnings.simplefilter("ignore")
provider = Provider()
about = {"required_scopes": ["mcp"], "resource_server_url": resource, "validate_token_resource": True}
server = MCPServer(
    "accounts",
    token_verifier=ProviderTokenVerifier(provider),
    auth=AuthSettings(issuer_url=f"{issuer}/", **about),
    log_level="ERROR",
)
seen = set()


@server.tool()
def whoami() -> str:
    token = get_access_token()
    seen.add(token.token)
    return f"{token.subject} for {token.resource}, token {len(seen)}"


app = server.streamable_http_app()
own = AuthSettings(issuer_url=issuer, **about).issuer_url
registration = ClientRegistrationOptions(enabled=True, valid_scopes=["mcp"])
app.routes.extend(create_auth_routes(provider, own, client_registration_options=registration))


class Server(uvicorn.Server):
    async def startup(self, sockets=None):
        await super().startup(sockets)
        print("ready", flush=True)


Server(uvicorn.Config(app, host="127.0.0.1", port=port, log_level="error")).run()
