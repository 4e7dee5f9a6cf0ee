// agent_loops.test.js  Loops that call tools and go on with their results: Anthropic's tool runner, which would rather
// send a thread, and the agents of `ai` over three providers, one of which refers to earlier answers by their ids.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { isStepCount, jsonSchema, tool, ToolLoopAgent } from "ai-7";
import Anthropic from "anthropic-1";
import { createOpenAICompatible } from "openai-compatible-3";

import { startServer, WEATHER } from "./server.js";

let server;
before(async () => {
  server = await startServer();
});
after(() => server?.stop());

const question = "What is the weather in Rome?";

// A fetch that remembers what was sent.
function recording() {
  const sent = [];
  const recorded = async (url, init) => {
    const response = await fetch(url, init);
    sent.push({ url: String(url), body: JSON.parse(init.body), status: response.status });
    return response;
  };
  return { sent, fetch: recorded };
}

for (const stream of [false, true]) {
  test(`Anthropic's tool runner ${stream ? "streams" : "answers"} without a thread`, async () => {
    const { sent, fetch } = recording();
    const client = new Anthropic({ baseURL: server.url, apiKey: "none", maxRetries: 0, fetch });
    const cities = [];
    const runner = client.beta.messages.toolRunner({
      model: "claude-x",
      max_tokens: 200,
      temperature: 0,
      stream,
      messages: [{ role: "user", content: question }],
      tools: [
        {
          type: "custom",
          name: "get_weather",
          description: WEATHER.function.description,
          input_schema: WEATHER.function.parameters,
          parse: (input) => input,
          run: ({ city }) => {
            cities.push(city);
            return "Sunny, 25 degrees";
          },
        },
      ],
      tool_choice: { type: "tool", name: "get_weather" },
      max_iterations: 2,
    });
    const turns = [];
    for await (const turn of runner) turns.push(stream ? await turn.finalMessage() : turn);
    assert.equal(turns.length, 2);
    assert.ok(cities.length >= 1);
    assert.ok(turns.every((turn) => turn.model === "chimere-nano"));
    // The first request asks for a thread; the refusal makes the runner send whole conversations.
    assert.ok(sent[0].body.thread);
    assert.deepEqual(sent.map((request) => request.status), [400, 200, 200]);
    assert.ok(sent.slice(1).every((request) => !request.body.thread));
    assert.equal(sent[2].body.messages.length, 3);
  });
}

const getWeather = (cities) =>
  tool({
    description: WEATHER.function.description,
    inputSchema: jsonSchema(WEATHER.function.parameters),
    execute: async ({ city }) => {
      cities.push(city);
      return "Sunny, 25 degrees";
    },
  });

// The agent calls in its first step and answers in its second.
async function loop(model, providerOptions) {
  const cities = [];
  const agent = new ToolLoopAgent({
    model,
    tools: { get_weather: getWeather(cities) },
    temperature: 0,
    maxRetries: 0,
    maxOutputTokens: 200,
    providerOptions,
    stopWhen: isStepCount(2),
    prepareStep: ({ stepNumber }) => ({
      toolChoice: stepNumber === 0 ? { type: "tool", toolName: "get_weather" } : "none",
    }),
  });
  const whole = await agent.generate({ prompt: question });
  assert.equal(whole.steps.length, 2);
  assert.equal(cities.length, 1);
  // What is written between two looks of the server is one piece, and so may be all of a call as short as this one.
  let pieces = 0;
  for (let n = 1; pieces < 2 && n <= 20; ++n) {
    const streamed = await agent.stream({ prompt: question });
    pieces = 0;
    for await (const part of streamed.fullStream) {
      if (part.type === "error") throw part.error;
      if (part.type === "tool-input-delta") ++pieces;
    }
    assert.equal(cities.length, 1 + n);
    assert.equal((await streamed.steps).length, 2);
  }
  assert.ok(pieces >= 2, `${pieces} pieces of arguments`);
  return whole;
}

test("an agent over chat completions", async () => {
  const provider = createOpenAICompatible({ name: "chimere", baseURL: `${server.url}/v1`, includeUsage: true });
  await loop(provider.chatModel("nano"), { chimere: { reasoningEffort: "none" } });
});

test("an agent over Anthropic's messages", async () => {
  const provider = createAnthropic({ baseURL: `${server.url}/v1`, apiKey: "none" });
  await loop(provider("claude-x"));
});

test("an agent over responses, with items by reference", async () => {
  const { sent, fetch } = recording();
  const provider = createOpenAI({ baseURL: `${server.url}/v1`, apiKey: "none", fetch });
  const whole = await loop(provider.responses("gpt-4o"));
  assert.ok(sent.every((request) => request.status === 200));
  // A further turn names the answer before it.
  const agent = new ToolLoopAgent({ model: provider.responses("gpt-4o"), temperature: 0, maxRetries: 0, maxOutputTokens: 20 });
  const messages = [
    { role: "user", content: question },
    ...whole.response.messages,
    { role: "user", content: "And in Oslo?" },
  ];
  await agent.generate({ messages });
  const references = sent.at(-1).body.input.filter((item) => item.type === "item_reference");
  assert.ok(references.length > 0, JSON.stringify(sent.at(-1).body.input));
  assert.equal(sent.at(-1).status, 200);
});

test("responses go on with an earlier one", async () => {
  const provider = createOpenAI({ baseURL: `${server.url}/v1`, apiKey: "none" });
  const agent = new ToolLoopAgent({ model: provider.responses("gpt-4o"), temperature: 0, maxRetries: 0, maxOutputTokens: 20 });
  const first = await agent.generate({ prompt: "Hello" });
  const previousResponseId = first.providerMetadata.openai.responseId;
  const next = new ToolLoopAgent({
    model: provider.responses("gpt-4o"),
    temperature: 0,
    maxRetries: 0,
    maxOutputTokens: 20,
    providerOptions: { openai: { previousResponseId } },
  });
  const second = await next.generate({ prompt: "And now?" });
  assert.ok(second.usage.inputTokens > first.usage.inputTokens);
  const kept = await fetch(`${server.url}/v1/responses/${previousResponseId}`);
  assert.equal((await kept.json()).id, previousResponseId);
});
