"""Python `mcp` 2.x logs in and calls a tool: `login.py URL TOOL`. Prints what happened, and the tool's result."""

import asyncio
import json
import sys
from urllib.parse import parse_qs, urljoin, urlparse

import httpx2
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata

REDIRECT = "http://127.0.0.1:9/callback"
log = []


class Memory:
    """Keeps everything in memory."""

    tokens = information = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        log.append(f"token for {tokens.scope}")
        self.tokens = tokens

    async def get_client_info(self):
        return self.information

    async def set_client_info(self, information):
        log.append("registered")
        self.information = information


class Browser:
    """What a person and a browser do during a login."""

    given = None

    async def open(self, url):
        asked = {name: values[0] for name, values in parse_qs(urlparse(url).query).items()}
        proof = "PKCE" if asked.get("code_challenge_method") == "S256" else "no PKCE"
        log.append(f"login for {asked.get('scope')} at {asked.get('resource')} with {proof}")
        async with httpx2.AsyncClient() as client:
            for _ in range(20):
                response = await client.get(url, follow_redirects=False)
                if "location" not in response.headers:
                    raise RuntimeError(f"no redirect from {url}: {response.status_code} {response.text}")
                url = urljoin(url, response.headers["location"])
                if url.startswith(REDIRECT):
                    self.given = {name: values[0] for name, values in parse_qs(urlparse(url).query).items()}
                    return
        raise RuntimeError("too many redirects")

    async def answer(self):
        names = ("code", "state", "iss")
        return AuthorizationCodeResult(**{name: self.given.get(name) for name in names})


async def main():
    url, tool = sys.argv[1:]
    browser = Browser()
    provider = OAuthClientProvider(
        server_url=url,
        client_metadata=OAuthClientMetadata(
            client_name="usher tests",
            redirect_uris=[REDIRECT],
            grant_types=["authorization_code"],
            response_types=["code"],
            token_endpoint_auth_method="none",
        ),
        storage=Memory(),
        redirect_handler=browser.open,
        callback_handler=browser.answer,
    )
    result = None
    for last in (False, True):
        try:
            async with httpx2.AsyncClient(auth=provider, timeout=30) as http:
                transport = streamable_http_client(url, http_client=http)
                async with Client(transport, read_timeout_seconds=30) as client:
                    called = await client.call_tool(tool, {})
                    result = called.model_dump(mode="json", by_alias=True, exclude_unset=True)
                    break
        except Exception as error:
            # One answer of 401 is made good within a request, and then one of 403 within the next.
            if last:
                raise
            log.append(f"again after {type(error).__name__}")
    json.dump({"log": log, "result": result}, sys.stdout)


asyncio.run(main())
