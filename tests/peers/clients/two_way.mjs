// What the JavaScript clients share when servers talk back; the command line, steps and results are those of steps.mjs.
//
// Everything that is asked is answered at once and noted, and so is every notification; `heard` hands the notes over, and
// `wait` waits for a method among them. A form gets its required fields, or else its plain text fields.

import { operations } from "./steps.mjs";

export const capabilities = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} };

const answers = {
  "elicitation/create": (params) =>
    params.mode === "url" ? { action: "accept" } : { action: "accept", content: filledIn(params.requestedSchema) },
  "sampling/createMessage": ({ messages: [{ content }] }) => ({
    role: "assistant",
    model: "parrot",
    content: { type: "text", text: `parrot heard: ${(content[0] ?? content).text}` },
  }),
  "roots/list": () => ({ roots: [{ uri: "file:///home/ada", name: "ada" }] }),
};

const notifications = [
  "notifications/message",
  "notifications/resources/updated",
  "notifications/tools/list_changed",
  "notifications/elicitation/complete",
];

function filledIn({ properties, required }) {
  const plain = Object.keys(properties).filter((name) => properties[name].type === "string" && !properties[name].format && !properties[name].enum);
  const value = ({ type, enum: words, default: usual }) => words?.[0] ?? (type === "boolean" ? true : type === "string" ? "Ada" : (usual ?? 7));
  return Object.fromEntries((required ?? plain).map((name) => [name, value(properties[name])]));
}

// The operations of a client, by what differs between the SDKs: how to listen for a method, how to call and subscribe, and
// how to say the log level, which may give the `_meta` of later calls.
export function twoWay(client, { onRequest, onNotification, call, subscribe, level }) {
  const heard = [];
  for (const [method, answer] of Object.entries(answers)) {
    onRequest(method, ({ params }) => {
      heard.push({ method, params });
      return answer(params);
    });
  }
  for (const method of notifications) onNotification(method, ({ params }) => void heard.push({ method, params }));
  const onprogress = (params) => void heard.push({ method: "notifications/progress", params });
  let meta;
  return {
    ...operations(client),
    call: (step) => call({ ...step, _meta: meta }, { onprogress }),
    subscribe: ({ uri }) => subscribe(uri),
    level: async (step) => void (meta = await level(step.level)),
    heard: () => heard,
    wait: async ({ method }) => {
      for (let tries = 0; tries < 600; tries += 1) {
        if (heard.some((note) => note.method === method)) return {};
        await new Promise((again) => setTimeout(again, 50));
      }
      throw Object.assign(new Error(`no ${method} came`), { code: 0 });
    },
  };
}
