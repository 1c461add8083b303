"""A server on its standard streams whose calls come out in every way that a board shows: well, wrongly, late, with something in
them that does not go through, with another definition than before. Nothing but Python is needed."""

import json
import sys
import time

turns = 0


def tools():
    text = {"type": "object", "properties": {"x": {"type": "string"}}}
    known = {"turn": f"Turned {turns} times", "say": "Says it", "fail": "Cannot do it", "late": "Takes its time"}
    return [{"name": name, "description": about, "inputSchema": text} for name, about in known.items()]


def say(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def answer(method, params):
    global turns
    if method == "initialize":
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {"listChanged": True}},
            "serverInfo": {"name": "changing", "version": "1"},
        }
    if method == "tools/list":
        return {"tools": tools()}
    name = params.get("name")
    if name == "turn":
        turns += 1
        say({"method": "notifications/tools/list_changed"})
    if name == "late":
        time.sleep(0.02)
    text = "4539 5787 6362 1486" if name == "say" else "done"
    return {"content": [{"type": "text", "text": text}], "isError": name == "fail"}


for line in sys.stdin:
    request = json.loads(line)
    if "id" in request and "method" in request:
        say({"id": request["id"], "result": answer(request["method"], request.get("params", {}))})
