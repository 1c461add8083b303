"""Python `mcp` 2.x as a client that can be asked; the steps are those of two_way.mjs."""

import argparse
import asyncio
import json
import sys

from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp.types import CreateMessageResult, ElicitResult, ListRootsResult, Root, TextContent

heard = []


def plain(model):
    return model.model_dump(mode="json", by_alias=True, exclude_unset=True)


def note(method, params):
    heard.append({"method": method, "params": params and plain(params)})


def filled_in(schema):
    properties = schema["properties"]
    fields = schema.get("required") or [
        name for name, field in properties.items() if field["type"] == "string" and not {"format", "enum"} & field.keys()
    ]
    usual = {"string": "Ada", "boolean": True}
    return {name: properties[name].get("enum", [usual.get(properties[name]["type"], 7)])[0] for name in fields}


async def elicited(_, params):
    note("elicitation/create", params)
    if params.mode == "url":
        return ElicitResult(action="accept")
    return ElicitResult(action="accept", content=filled_in(plain(params)["requestedSchema"]))


async def sampled(_, params):
    note("sampling/createMessage", params)
    content = params.messages[0].content
    text = (content[0] if isinstance(content, list) else content).text
    return CreateMessageResult(role="assistant", model="parrot", content=TextContent(text=f"parrot heard: {text}"))


async def rooted(_):
    note("roots/list", None)
    return ListRootsResult(roots=[Root(uri="file:///home/ada", name="ada")])


async def logged(params):
    note("notifications/message", params)


async def told(message):
    if not isinstance(message, Exception) and message.method != "notifications/message":
        note(message.method, message.params)


async def progressed(progress, total, message):
    heard.append({"method": "notifications/progress", "params": {"progress": progress, "total": total, "message": message}})


async def waited(method):
    for _ in range(600):
        if any(one["method"] == method for one in heard):
            return {}
        await asyncio.sleep(0.05)
    raise MCPError(0, f"no {method} came")


streams = []


async def subscribe(client, modern, uri):
    if not modern:
        return plain(await client.subscribe_resource(uri))
    stream = client.listen(resource_subscriptions=[uri], tools_list_changed=True)
    subscription = await stream.__aenter__()
    streams.append(stream)
    return plain(subscription.honored)


async def perform(client, modern, step):
    match step["op"]:
        case "list_tools":
            return plain(await client.list_tools())
        case "call":
            meta = modern and {"io.modelcontextprotocol/logLevel": "debug"} or None
            arguments = step.get("arguments", {})
            return plain(await client.call_tool(step["name"], arguments, progress_callback=progressed, meta=meta))
        case "subscribe":
            return await subscribe(client, modern, step["uri"])
        case "level":
            return {} if modern else plain(await client.set_logging_level(step["level"]))
        case "wait":
            return await waited(step["method"])
        case "heard":
            return heard
    raise ValueError(f"no such operation: {step}")


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", required=True)
    parser.add_argument("--era", choices=["modern", "legacy"], required=True)
    arguments = parser.parse_args()
    modern = arguments.era == "modern"
    client = Client(
        arguments.url,
        mode="2026-07-28" if modern else "legacy",
        read_timeout_seconds=30,
        elicitation_callback=elicited,
        sampling_callback=sampled,
        list_roots_callback=rooted,
        logging_callback=logged,
        message_handler=told,
    )
    results = []
    async with client:
        for step in json.load(sys.stdin):
            try:
                results.append({"ok": await perform(client, modern, step)})
            except MCPError as error:
                results.append({"error": {"code": error.error.code, "message": error.error.message}})
        for stream in streams:
            await stream.__aexit__(None, None, None)
    json.dump(results, sys.stdout)


asyncio.run(main())
