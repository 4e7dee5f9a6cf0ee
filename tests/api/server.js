// server.js  A real `chimere serve` on a free port, started and stopped by the tests.
import { spawn } from "node:child_process";
import { once } from "node:events";

const READY = / is ready on (http:\S+)/;
const START_LIMIT_MS = 120_000;

export const NANO = process.env.CHIMERE_MODEL;
export const ENCODER = process.env.CHIMERE_ENCODER;

// Variables named CHIMERE_ are options of the program: those of the tests are not for it.
export function environment(more = {}) {
  const ofTests = /^CHIMERE_(BINARY|MODEL|ENCODER|SHARED|OFFLINE|CONVERSATIONS|API_TESTS.*)$/;
  return { ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !ofTests.test(name))), ...more };
}

export async function startServer(model = NANO, options = []) {
  // One thread: a loaded machine makes two wait for each other. No disk: what a test computes is nobody else's.
  const args = ["serve", "--model", model, "--port", "0", "--threads", "1", ...options];
  if (!options.includes("--cache-dir")) args.push("--no-disk-cache");
  const child = spawn(process.env.CHIMERE_BINARY, args, { env: environment(), stdio: ["ignore", "pipe", "pipe"] });
  let printed = "";
  const url = await new Promise((resolve, reject) => {
    const limit = setTimeout(() => reject(new Error(`the server did not start:\n${printed}`)), START_LIMIT_MS);
    const look = (bytes) => {
      printed += bytes;
      const ready = READY.exec(printed);
      if (!ready) return;
      clearTimeout(limit);
      resolve(ready[1]);
    };
    child.stdout.on("data", look);
    child.stderr.on("data", look);
    child.on("exit", (code) => {
      clearTimeout(limit);
      reject(new Error(`the server ended with ${code}:\n${printed}`));
    });
  });
  return {
    url,
    pid: child.pid,
    log: () => printed,
    async stop() {
      const ended = once(child, "exit");
      child.kill("SIGTERM");
      const [code] = await ended;
      return code;
    },
    async post(path, body, init = {}) {
      return fetch(url + path, {
        method: "POST",
        headers: { "Content-Type": "application/json", ...init.headers },
        body: typeof body === "string" ? body : JSON.stringify(body),
        signal: init.signal,
      });
    },
    async json(path, body) {
      const response = await this.post(path, body);
      return { status: response.status, headers: response.headers, body: await response.json() };
    },
  };
}

// The events of a stream: [{event, data}], data parsed, "[DONE]" left as it is.
export async function readEvents(response) {
  const events = [];
  for (const block of (await response.text()).split("\n\n")) {
    if (!block.trim()) continue;
    const entry = { event: undefined, data: undefined };
    for (const line of block.split("\n")) {
      if (line.startsWith("event: ")) entry.event = line.slice(7);
      if (line.startsWith("data: ")) entry.data = line.slice(6);
    }
    if (entry.data !== "[DONE]") entry.data = JSON.parse(entry.data);
    events.push(entry);
  }
  return events;
}

// What the deltas of streamed chat choices add up to.
export function joinChat(chunks) {
  const choices = [];
  let usage = null;
  for (const chunk of chunks) {
    if (chunk.usage) usage = chunk.usage;
    for (const { index, delta, finish_reason } of chunk.choices) {
      const sum = (choices[index] ??= { content: "", reasoning: "", calls: [], finish: null });
      sum.content += delta.content ?? "";
      sum.reasoning += delta.reasoning_content ?? "";
      for (const call of delta.tool_calls ?? []) {
        const whole = (sum.calls[call.index] ??= { id: call.id, name: "", arguments: "" });
        whole.name += call.function?.name ?? "";
        whole.arguments += call.function?.arguments ?? "";
      }
      if (finish_reason) sum.finish = finish_reason;
    }
  }
  return { choices, usage };
}

export const WEATHER = {
  type: "function",
  function: {
    name: "get_weather",
    description: "The weather of a city",
    parameters: {
      type: "object",
      properties: { city: { type: "string" }, days: { type: "integer", minimum: 1, maximum: 9 } },
      required: ["city", "days"],
      additionalProperties: false,
    },
  },
};

export const PERSON = {
  type: "object",
  properties: {
    name: { type: "string", maxLength: 20 },
    age: { type: "integer", minimum: 0, maximum: 150 },
    mood: { enum: ["good", "bad"] },
  },
  required: ["name", "age", "mood"],
  additionalProperties: false,
};
