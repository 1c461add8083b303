"""Python `mcp` 2.x as a client; the command line and the steps are those of steps.mjs.

Its default is to probe, as the SDK's own is.
"""

import argparse
import asyncio
import json
import sys

from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.shared.exceptions import MCPError
from mcp.types import PromptReference, ResourceTemplateReference


async def drain(key, attribute, page):
    items, cursor = [], None
    while True:
        result = await page(cursor=cursor)
        items += [plain(item) for item in getattr(result, attribute)]
        cursor = result.next_cursor
        if cursor is None:
            return {key: items}


def plain(model):
    return model.model_dump(mode="json", by_alias=True, exclude_unset=True)


def reference(ref):
    kind = PromptReference if ref["type"] == "ref/prompt" else ResourceTemplateReference
    return kind.model_validate(ref)


async def perform(client, op, step):
    match op:
        case "list_tools":
            return await drain("tools", "tools", client.list_tools)
        case "list_prompts":
            return await drain("prompts", "prompts", client.list_prompts)
        case "list_resources":
            return await drain("resources", "resources", client.list_resources)
        case "list_templates":
            return await drain("resourceTemplates", "resource_templates", client.list_resource_templates)
        case "call":
            return plain(await client.call_tool(step["name"], step.get("arguments", {})))
        case "get_prompt":
            return plain(await client.get_prompt(step["name"], step.get("arguments")))
        case "read":
            return plain(await client.read_resource(step["uri"]))
        case "complete":
            return plain(await client.complete(reference(step["ref"]), step["argument"]))
    raise ValueError(f"no such operation: {op}")


async def main():
    parser = argparse.ArgumentParser()
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--url")
    where.add_argument("--command")
    parser.add_argument("--era", choices=["modern", "legacy", "auto"], default="auto")
    arguments = parser.parse_args()
    server = arguments.url or StdioServerParameters(command="sh", args=["-c", f"exec {arguments.command}"])
    mode = "2026-07-28" if arguments.era == "modern" else arguments.era
    results = []
    async with Client(server, mode=mode, read_timeout_seconds=30) as client:
        for step in json.load(sys.stdin):
            try:
                results.append({"ok": await perform(client, step.pop("op"), step)})
            except MCPError as error:
                results.append({"error": {"code": error.error.code, "message": error.error.message}})
    json.dump(results, sys.stdout)


asyncio.run(main())
