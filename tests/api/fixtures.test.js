// fixtures.test.js  Models of random weights say anything; whatever it is, a request for a chat, a tool call or a schema
// is answered with 200, streamed and not. Runs when CHIMERE_SHARED names the folder of fixtures.
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";

import { joinChat, PERSON, readEvents, startServer, WEATHER } from "./server.js";

const shared = process.env.CHIMERE_SHARED;
const templates = join(shared ?? "", "templates");

// Fixture and template; null: its own, which may know no tools.
const MODELS = [
  ["qwen3_5-A", "Qwen3.5-4B.jinja"],
  ["qwen3_5_moe-R", null],
  ["qwen3-A", "Qwen-Qwen3-0.6B.jinja"],
  ["llama-A", "meta-llama-Llama-3.1-8B-Instruct.jinja"],
  ["qwen2-A", "mistralai-Mistral-Nemo-Instruct-2407.jinja"],
  ["qwen2-A", "mistralai-Ministral-3-14B-Reasoning-2512.jinja"],
  ["qwen3_next-A", null],
  ["nemotron_h-moe-A", "NVIDIA-Nemotron-3-Nano-30B-A3B-BF16.jinja"],
  ["granitemoehybrid-moe-A", "ibm-granite-granite-4.0.jinja"],
  ["gpt_oss-A", null],
];

const base = { messages: [{ role: "user", content: "Hi" }], max_tokens: 24, temperature: 1 };
const tools = [WEATHER];
const schema = { type: "json_schema", json_schema: { name: "person", schema: PERSON } };
const REQUESTS = {
  chat: {},
  thinking: { reasoning_effort: "low", thinking_budget: 4 },
  silent: { reasoning_effort: "none" },
  "two answers": { n: 2 },
  logprobs: { logprobs: true, top_logprobs: 2 },
  tools: { tools },
  "a required tool": { tools, tool_choice: "required" },
  "a named tool": { tools, tool_choice: { type: "function", function: { name: "get_weather" } } },
  "no tool": { tools, tool_choice: "none" },
  "JSON object": { response_format: { type: "json_object" } },
  "JSON schema": { response_format: schema },
  "JSON schema, long": { response_format: schema, max_tokens: 200 },
};

// Null for an architecture that this build does not know.
async function startFixture(model, options) {
  try {
    return await startServer(join(shared, "fixtures", model, "model.gguf"), options);
  } catch (error) {
    if (/general\.architecture: .* is not supported/.test(error.message)) return null;
    throw error;
  }
}

async function answers(server, name, request, seed) {
  const body = { ...base, seed, ...request };
  const whole = await server.json("/v1/chat/completions", body);
  assert.equal(whole.status, 200, `${name}: ${JSON.stringify(whole.body)}`);
  const response = await server.post("/v1/chat/completions", { ...body, stream: true });
  assert.equal(response.status, 200, name);
  const events = await readEvents(response);
  assert.equal(events.at(-1).data, "[DONE]", name);
  for (const { data } of events) assert.equal(data.error, undefined, `${name}: ${JSON.stringify(data)}`);
  const { choices } = joinChat(events.slice(0, -1).map((event) => event.data));
  assert.equal(choices.length, whole.body.choices.length, name);
  choices.forEach((choice, i) => {
    const { message, finish_reason } = whole.body.choices[i];
    assert.equal(choice.content, message.content ?? "", name);
    assert.equal(choice.reasoning, message.reasoning_content ?? "", name);
    assert.equal(choice.finish, finish_reason, name);
  });
}

for (const [model, file] of MODELS) {
  test(`${model} with ${file ?? "its own template"}`, { skip: !shared }, async (t) => {
    const options = ["--ctx", "8192"];
    if (file) options.push("--chat-template", join(templates, file));
    const server = await startFixture(model, options);
    if (!server) return t.skip("this build does not know the architecture");
    try {
      let seed = 0;
      for (const [name, request] of Object.entries(REQUESTS)) await answers(server, name, request, ++seed);
      const { status } = await server.json("/v1/messages", {
        ...base,
        tools: [{ name: "get_weather", input_schema: WEATHER.function.parameters }],
        thinking: { type: "enabled", budget_tokens: 4 },
      });
      assert.equal(status, 200);
      assert.equal((await server.json("/v1/responses", { input: "Hi", max_output_tokens: 24 })).status, 200);
    } finally {
      await server.stop();
    }
  });
}

test("a model without a chat template completes text and says what to do", { skip: !shared }, async () => {
  const server = await startFixture("llama-spm", []);
  try {
    const completed = await server.json("/v1/completions", { prompt: "Once", max_tokens: 4 });
    assert.equal(completed.status, 200, JSON.stringify(completed.body));
    const refused = await server.json("/v1/chat/completions", base);
    assert.equal(refused.status, 400);
    assert.match(refused.body.error.message, /--chat-template/);
  } finally {
    await server.stop();
  }
});
