"""A server of Python's `mcp` 2.x, with its spans sent: on a port, or on its standard streams."""

import json
import sys

from mcp.server import MCPServer
from mcp.server.mcpserver import Context

import tracing

server = MCPServer("observed")


@server.tool()
def echo(text: str) -> str:
    """Says it again."""
    return text


@server.tool()
def fail(text: str) -> str:
    """Cannot do it."""
    raise ValueError(text)


@server.tool()
def luggage(ctx: Context) -> str:
    """What of the trace came along: in `_meta`, and in headers where there are any."""
    kept = ("traceparent", "tracestate", "baggage")
    meta, headers = ctx.request_context.meta or {}, ctx.headers or {}
    return json.dumps([{key: of[key] for key in kept if key in of} for of in (dict(meta), dict(headers))])


@server.prompt()
def greet(name: str) -> str:
    """Greets somebody."""
    return f"Greet {name}"


tracing.begin("upstream")
if len(sys.argv) > 1:
    server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
else:
    server.run()
