"""Calls a gateway in every way that a board shows, until a Prometheus that reads it finds a number for every query of the board.

Arguments: the gateway, the Prometheus, the board's file, and how long in seconds. Prints `{"queries": n, "missing": [...]}`.
"""

import http.client
import json
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

gateway, prometheus, board, seconds = sys.argv[1:]
REVISION = "2026-07-28"


def post(body, method="tools/call", name=None):
    headers = {
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": REVISION,
        "mcp-method": method,
    }
    if name:
        headers["mcp-name"] = name
    try:
        urllib.request.urlopen(urllib.request.Request(gateway, body.encode(), headers), timeout=10).read()
    except urllib.error.HTTPError as refused:
        refused.read()


def call(name, arguments):
    meta = {"io.modelcontextprotocol/protocolVersion": REVISION, "io.modelcontextprotocol/clientCapabilities": {}}
    params = {"_meta": meta, "name": name, "arguments": arguments}
    post(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}), name=name)


def round_of_calls():
    for name in ("turn", "say", "say", "fail", "nothing"):
        call(f"changing_{name}", {"x": "a"})
    call("changing_say", {"x": 1})
    post("[" * 200 + "]" * 200)
    late = [threading.Thread(target=call, args=("changing_late", {"x": "a"})) for _ in range(3)]
    for thread in late:
        thread.start()
    for thread in late:
        thread.join()


def session():
    """One of the handshake era, with a session of its own behind it, that ends."""
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}

    def send(method, message=None):
        body = message and json.dumps({"jsonrpc": "2.0", **message}).encode()
        with urllib.request.urlopen(urllib.request.Request(gateway, body, headers, method=method), timeout=10) as answer:
            answer.read()
            return answer.headers["mcp-session-id"]

    client = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "board", "version": "1"}}
    headers["mcp-session-id"] = send("POST", {"id": 1, "method": "initialize", "params": client})
    headers["mcp-protocol-version"] = client["protocolVersion"]
    send("POST", {"method": "notifications/initialized"})
    send("POST", {"id": 2, "method": "tools/call", "params": {"name": "apart_say", "arguments": {"x": "a"}}})
    send("DELETE")


def many_addresses():
    """From more addresses than a rule keeps meters for."""
    to = urllib.parse.urlsplit(gateway)
    connection = http.client.HTTPConnection(to.hostname, to.port, timeout=10)
    meta = {"io.modelcontextprotocol/protocolVersion": REVISION, "io.modelcontextprotocol/clientCapabilities": {}}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": meta}})
    for number in range(1_100):
        headers = {
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            "mcp-protocol-version": REVISION,
            "mcp-method": "server/discover",
            "x-forwarded-for": f"10.0.{number // 250}.{number % 250}",
        }
        connection.request("POST", to.path, body, headers)
        connection.getresponse().read()


def queries(panels):
    for panel in panels:
        yield from queries(panel.get("panels", []))
        for target in panel.get("targets", []):
            yield target["expr"]


def number_of(query):
    """Whether the query finds a series with a number, as Grafana would ask for it."""
    query = query.replace("$__rate_interval", "20s").replace("$upstream", ".*").replace("$method", ".*")
    assert "$" not in query, query
    address = f"{prometheus}/api/v1/query?" + urllib.parse.urlencode({"query": query})
    try:
        answer = json.load(urllib.request.urlopen(address, timeout=10))
    except urllib.error.HTTPError as refused:
        sys.exit(f"{query}\n{refused.read().decode()}")
    return any(series["value"][1] != "NaN" for series in answer["data"]["result"])


asked = list(queries(json.load(open(board))["panels"]))
many_addresses()
until = time.monotonic() + float(seconds)
missing = asked
while missing and time.monotonic() < until:
    round_of_calls()
    session()
    time.sleep(0.3)
    missing = [query for query in missing if not number_of(query)]
print(json.dumps({"queries": len(asked), "missing": missing}))
