// anthropic.test.js  The official @anthropic-ai/sdk client.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import Anthropic from "@anthropic-ai/sdk";

import { startServer, WEATHER } from "./server.js";

let server, client;
const hello = { model: "nano", max_tokens: 24, temperature: 0, messages: [{ role: "user", content: "Hello" }] };
const tool = {
  name: WEATHER.function.name,
  description: WEATHER.function.description,
  input_schema: WEATHER.function.parameters,
};

before(async () => {
  server = await startServer();
  client = new Anthropic({ baseURL: server.url, apiKey: "none", maxRetries: 0 });
});
after(() => server?.stop());

test("answers with a message", async () => {
  const message = await client.messages.create({ ...hello, system: "Be brief." });
  assert.equal(message.type, "message");
  assert.equal(message.role, "assistant");
  assert.ok(["end_turn", "max_tokens"].includes(message.stop_reason));
  assert.ok(message.usage.input_tokens + message.usage.cache_read_input_tokens > 0);
  assert.ok(message.usage.output_tokens <= 24);
  assert.ok(message.content.every((block) => block.type === "text"));
});

test("streams the same blocks", async () => {
  const request = { ...hello, thinking: { type: "enabled", budget_tokens: 12 }, max_tokens: 48 };
  const whole = await client.messages.create(request);
  const events = [];
  const stream = client.messages.stream(request);
  for await (const event of stream) events.push(event.type);
  const final = await stream.finalMessage();
  assert.deepEqual(final.content, whole.content);
  assert.equal(final.stop_reason, whole.stop_reason);
  assert.equal(final.usage.output_tokens, whole.usage.output_tokens);
  assert.equal(events[0], "message_start");
  assert.deepEqual(events.slice(-2), ["message_delta", "message_stop"]);
  assert.equal(
    events.filter((type) => type === "content_block_start").length,
    events.filter((type) => type === "content_block_stop").length,
  );
});

test("thinks only when asked to", async () => {
  const silent = await client.messages.create(hello);
  assert.ok(silent.content.every((block) => block.type !== "thinking"));
});

test("stops at a stop sequence and names it", async () => {
  const whole = (await client.messages.create(hello)).content[0].text;
  const stop = whole.slice(2, 4);
  const cut = await client.messages.create({ ...hello, stop_sequences: [stop] });
  assert.equal(cut.stop_reason, "stop_sequence");
  assert.equal(cut.stop_sequence, stop);
  assert.equal(cut.content[0]?.text ?? "", whole.slice(0, whole.indexOf(stop)));
});

test("tools make a round trip", async () => {
  const messages = [{ role: "user", content: "What is the weather in Rome?" }];
  const request = { ...hello, messages, tools: [tool], tool_choice: { type: "any" }, max_tokens: 300 };
  const asked = await client.messages.create(request);
  assert.equal(asked.stop_reason, "tool_use");
  const call = asked.content.find((block) => block.type === "tool_use");
  assert.equal(call.name, "get_weather");
  assert.equal(typeof call.input.city, "string");
  const streamed = await client.messages.stream(request).finalMessage();
  assert.deepEqual(streamed.content.find((block) => block.type === "tool_use").input, call.input);
  const answer = await client.messages.create({
    ...request,
    tool_choice: { type: "auto" },
    max_tokens: 30,
    messages: [
      ...messages,
      { role: "assistant", content: asked.content },
      { role: "user", content: [{ type: "tool_result", tool_use_id: call.id, content: "Sunny" }] },
    ],
  });
  assert.ok(["end_turn", "max_tokens", "tool_use"].includes(answer.stop_reason));
});

test("counts tokens as it will read them", async () => {
  const counted = await client.messages.countTokens({ model: "nano", messages: hello.messages });
  const { usage } = await client.messages.create(hello);
  assert.equal(counted.input_tokens, usage.input_tokens + usage.cache_read_input_tokens);
  const more = await client.messages.countTokens({ model: "nano", messages: hello.messages, tools: [tool] });
  assert.ok(more.input_tokens > counted.input_tokens);
});

test("errors have the shape of this API", async () => {
  await assert.rejects(client.messages.create({ ...hello, temperature: 9 }), (error) => {
    assert.ok(error instanceof Anthropic.BadRequestError);
    assert.equal(error.error.type, "error");
    assert.equal(error.error.error.type, "invalid_request_error");
    assert.match(error.error.error.message, /temperature/);
    return true;
  });
  const long = { ...hello, messages: [{ role: "user", content: "word ".repeat(200_000) }] };
  await assert.rejects(client.messages.create(long), /prompt is too long: \d+ tokens > \d+ maximum/);
  const image = { type: "image", source: { type: "base64", media_type: "image/png", data: "" } };
  await assert.rejects(client.messages.create({ ...hello, messages: [{ role: "user", content: [image] }] }), /text only/);
});

test("a stream that is given up stops", async () => {
  const stream = client.messages.stream({
    ...hello,
    max_tokens: 100_000,
    thinking: { type: "enabled", budget_tokens: 100_000 },
  });
  await assert.rejects(
    (async () => {
      for await (const _ of stream) stream.abort();
      await stream.finalMessage();
    })(),
    Anthropic.APIUserAbortError,
  );
});
