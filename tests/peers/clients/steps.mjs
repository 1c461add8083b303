// What the JavaScript clients share: the command line, the steps on standard input, the results on standard output.
//
//   CLIENT (--url URL | --command 'CMD ...') [--era modern|legacy|auto] < steps.json > results.json
//
// A step is {"op": ...} with the operation's own fields; its result is {"ok": ...} or {"error": {code, message}}. A list holds
// the items of all pages. --command is a line for the shell. Anything else that goes wrong ends the client with a message.

import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";

// Standard output is for results alone, and one SDK talks there.
console.log = console.info = console.debug = console.error;

const { values } = parseArgs({
  options: { url: { type: "string" }, command: { type: "string" }, era: { type: "string" } },
});

// Where to connect to: {url} or {command, args}, and the era asked for.
export const target = {
  url: values.url && new URL(values.url),
  stdio: values.command && { command: "sh", args: ["-c", `exec ${values.command}`] },
  era: values.era,
};

// Runs every step by the function of its name in `operations`.
export async function run(operations) {
  const results = [];
  for (const { op, ...step } of JSON.parse(readFileSync(0, "utf8"))) {
    try {
      results.push({ ok: await operations[op](step) });
    } catch (error) {
      if (error.code === undefined) throw error;
      results.push({ error: { code: error.code, message: error.message } });
    }
  }
  // Waited for, since a client may end its process right after.
  await new Promise((written) => process.stdout.write(JSON.stringify(results), written));
}

// Reads all pages of a list; `page` takes the parameters of one.
export async function drain(key, page) {
  const items = [];
  let cursor;
  do {
    const result = await page(cursor === undefined ? {} : { cursor });
    items.push(...result[key]);
    cursor = result.nextCursor;
  } while (cursor !== undefined);
  return { [key]: items };
}

// The operations, by the client both TypeScript SDKs have.
export function operations(client) {
  return {
    list_tools: () => drain("tools", (page) => client.listTools(page)),
    list_prompts: () => drain("prompts", (page) => client.listPrompts(page)),
    list_resources: () => drain("resources", (page) => client.listResources(page)),
    list_templates: () => drain("resourceTemplates", (page) => client.listResourceTemplates(page)),
    call: (step) => client.callTool(step),
    get_prompt: (step) => client.getPrompt(step),
    read: (step) => client.readResource(step),
    complete: (step) => client.complete(step),
  };
}
