// ai.test.js  The `ai` package with @ai-sdk/openai-compatible.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateObject, generateText, jsonSchema, stepCountIs, streamText, tool } from "ai";

import { PERSON, startServer, WEATHER } from "./server.js";

let server, model;
const fixed = { temperature: 0, maxRetries: 0, maxOutputTokens: 24 };
const silent = { chimere: { reasoningEffort: "none" } };

before(async () => {
  server = await startServer();
  const provider = createOpenAICompatible({
    name: "chimere",
    baseURL: `${server.url}/v1`,
    includeUsage: true,
    supportsStructuredOutputs: true,
  });
  model = provider.chatModel("nano");
});
after(() => server?.stop());

test("generates and streams the same text", async () => {
  const whole = await generateText({ model, prompt: "Hello", ...fixed });
  const stream = streamText({ model, prompt: "Hello", ...fixed });
  let text = "";
  for await (const piece of stream.textStream) text += piece;
  assert.equal(text, whole.text);
  assert.equal(await stream.reasoningText, whole.reasoningText);
  const usage = await stream.usage;
  assert.equal(usage.outputTokens, whole.usage.outputTokens);
  assert.equal(await stream.finishReason, whole.finishReason);
});

test("generates objects of a schema", async () => {
  const { object } = await generateObject({
    model,
    schema: jsonSchema(PERSON),
    prompt: "Describe a person",
    ...fixed,
    maxOutputTokens: 400,
    providerOptions: silent,
  });
  assert.ok(["good", "bad"].includes(object.mood));
});

test("runs tools and goes on with their results", async () => {
  const cities = [];
  const result = await generateText({
    model,
    prompt: "What is the weather in Rome?",
    ...fixed,
    maxOutputTokens: 300,
    providerOptions: silent,
    toolChoice: { type: "tool", toolName: "get_weather" },
    stopWhen: stepCountIs(2),
    prepareStep: ({ stepNumber }) => (stepNumber > 0 ? { toolChoice: "none" } : {}),
    tools: {
      get_weather: tool({
        description: WEATHER.function.description,
        inputSchema: jsonSchema(WEATHER.function.parameters),
        execute: async ({ city }) => {
          cities.push(city);
          return { sky: "sunny" };
        },
      }),
    },
  });
  assert.ok(cities.length >= 1);
  assert.equal(result.steps.length, 2);
  assert.equal(result.steps[0].finishReason, "tool-calls");
});

test("streams tool calls", async () => {
  const stream = streamText({
    model,
    prompt: "What is the weather in Rome?",
    ...fixed,
    maxOutputTokens: 300,
    providerOptions: silent,
    toolChoice: "required",
    tools: { get_weather: tool({ inputSchema: jsonSchema(WEATHER.function.parameters) }) },
  });
  const calls = await stream.toolCalls;
  assert.ok(calls.length >= 1);
  assert.equal(calls[0].toolName, "get_weather");
  assert.equal(typeof calls[0].input.city, "string");
});

test("errors carry the server's words", async () => {
  await assert.rejects(generateText({ model, prompt: "Hello", ...fixed, temperature: 9 }), /temperature/);
});

test("a stream can be given up", async () => {
  const control = new AbortController();
  const stream = streamText({
    model,
    prompt: "Hello",
    ...fixed,
    maxOutputTokens: 100_000,
    abortSignal: control.signal,
  });
  let aborted = false;
  for await (const part of stream.fullStream) {
    if (part.type === "start-step") control.abort();
    if (part.type === "abort") aborted = true;
  }
  assert.ok(aborted);
});
