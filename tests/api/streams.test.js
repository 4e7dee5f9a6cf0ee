// streams.test.js  Arguments of tools as agents see them: in pieces, and kept when the answer is cut off. Answers that a
// request begins. In the three APIs, through their own clients.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { after, before, test } from "node:test";

import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";

import { readEvents, startServer } from "./server.js";

// The JSON form of tool calls, as Hermes and Qwen write them.
const HERMES = `{%- if tools %}<|im_start|>system
{%- for tool in tools %}
{{ tool | tojson }}{% endfor %}
<tool_call>
{"name": NAME, "arguments": {}}
</tool_call><|im_end|>
{% endif %}{%- for message in messages %}<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{% endfor %}{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}`;

const parameters = {
  type: "object",
  properties: { content: { type: "string", minLength: 5000 } },
  required: ["content"],
};
const WRITE = { type: "function", function: { name: "write", description: "Writes a file", parameters } };
const question = "Write a long story about the sea";
const chat = {
  model: "nano",
  messages: [{ role: "user", content: question }],
  tools: [WRITE],
  tool_choice: { type: "function", function: { name: "write" } },
  reasoning_effort: "none",
  temperature: 0,
  max_tokens: 150,
};

const servers = {};
before(async () => {
  writeFileSync("hermes.jinja", HERMES);
  servers.tags = await startServer();
  servers.json = await startServer(undefined, ["--chat-template", "hermes.jinja"]);
});
after(() => Promise.all(Object.values(servers).map((server) => server.stop())));

const openai = (server) => new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "none", maxRetries: 0 });
const anthropic = (server) => new Anthropic({ baseURL: server.url, apiKey: "none", maxRetries: 0 });

for (const form of ["tags", "json"]) {
  test(`chat completions: arguments come in pieces and survive a cut (${form})`, async () => {
    const client = openai(servers[form]);
    const whole = (await client.chat.completions.create(chat)).choices[0];
    assert.equal(whole.finish_reason, "length");
    assert.ok(!whole.message.content, whole.message.content);
    const [call] = whole.message.tool_calls;
    assert.match(call.function.arguments, /^\{"content": ?"/);
    assert.ok(call.function.arguments.length > 150, call.function.arguments);
    let joined = "";
    let pieces = 0;
    let finish;
    for await (const chunk of await client.chat.completions.create({ ...chat, stream: true })) {
      const [choice] = chunk.choices;
      finish = choice.finish_reason ?? finish;
      assert.ok(!choice.delta.content);
      for (const delta of choice.delta.tool_calls ?? []) {
        assert.equal(delta.index, 0);
        if (joined === "" && delta.id) {
          assert.match(delta.id, /^call_/);
          assert.equal(delta.function.name, "write");
        } else {
          assert.equal(delta.id, undefined);
          assert.equal(delta.function.name, undefined);
        }
        if (delta.function.arguments) pieces += 1;
        joined += delta.function.arguments;
      }
    }
    assert.equal(finish, "length");
    assert.equal(joined, call.function.arguments);
    assert.ok(pieces > 5, `${pieces} pieces`);
  });

  test(`responses: arguments come in pieces and survive a cut (${form})`, async () => {
    const client = openai(servers[form]);
    const request = {
      model: "nano",
      input: question,
      tools: [{ type: "function", name: "write", parameters, strict: false }],
      tool_choice: { type: "function", name: "write" },
      reasoning: { effort: "none" },
      temperature: 0,
      max_output_tokens: 150,
      stream: true,
    };
    let joined = "";
    let pieces = 0;
    let done;
    let last;
    for await (const event of await client.responses.create(request)) {
      if (event.type === "response.function_call_arguments.delta") {
        joined += event.delta;
        pieces += 1;
      }
      if (event.type === "response.function_call_arguments.done") done = event.arguments;
      last = event;
    }
    assert.ok(pieces > 5, `${pieces} pieces`);
    assert.equal(done, joined);
    assert.equal(last.type, "response.incomplete");
    const item = last.response.output.find((one) => one.type === "function_call");
    assert.equal(item.status, "incomplete");
    assert.equal(item.arguments, joined);
  });

  test(`messages: arguments come in pieces and survive a cut (${form})`, async () => {
    const client = anthropic(servers[form]);
    const request = {
      model: "nano",
      max_tokens: 150,
      temperature: 0,
      messages: chat.messages,
      tools: [{ name: "write", input_schema: parameters }],
      tool_choice: { type: "tool", name: "write" },
    };
    let joined = "";
    let pieces = 0;
    const stream = client.messages.stream(request);
    for await (const event of stream) {
      if (event.type !== "content_block_delta") continue;
      assert.equal(event.delta.type, "input_json_delta");
      joined += event.delta.partial_json;
      if (event.delta.partial_json) pieces += 1;
    }
    assert.ok(pieces > 5, `${pieces} pieces`);
    assert.match(joined, /^\{"content": ?"/);
    const streamed = await stream.finalMessage();
    assert.equal(streamed.stop_reason, "max_tokens");
    const whole = await client.messages.create(request);
    assert.equal(whole.stop_reason, "max_tokens");
    const [block] = whole.content;
    assert.equal(block.type, "tool_use");
    assert.ok(block.input.content.length > 100);
    assert.equal(JSON.parse(`${joined}"}`).content, block.input.content);
  });
}

test("an answer goes on with what the request began", async () => {
  const client = openai(servers.tags);
  const request = { ...chat, tools: undefined, tool_choice: undefined, max_tokens: 24 };
  const whole = (await client.chat.completions.create(request)).choices[0].message.content;
  const cut = whole.indexOf(" ", 8);
  const messages = [...chat.messages, { role: "assistant", content: whole.slice(0, cut) }];
  const same = (text) => {
    const n = Math.min(text.length, whole.length - cut);
    assert.ok(n > 8);
    assert.equal(text.slice(0, n), whole.slice(cut, cut + n));
  };
  for (const more of [{}, { continue_final_message: true, add_generation_prompt: false }, { reasoning_effort: "low" }]) {
    const { message } = (await client.chat.completions.create({ ...request, ...more, messages })).choices[0];
    assert.equal(message.reasoning_content, undefined);
    same(message.content);
  }
  const claude = await anthropic(servers.tags).messages.create({
    model: "nano",
    max_tokens: 24,
    temperature: 0,
    messages,
    thinking: { type: "enabled", budget_tokens: 1024 },
  });
  assert.deepEqual(claude.content.map((block) => block.type), ["text"]);
  same(claude.content[0].text);
  const call = { id: "c", type: "function", function: { name: "write", arguments: "{}" } };
  const called = [...chat.messages, { role: "assistant", content: null, tool_calls: [call] }];
  await assert.rejects(client.chat.completions.create({ ...request, messages: called }), /messages: expected a text/);
  await assert.rejects(
    client.chat.completions.create({ ...request, continue_final_message: true }),
    /continue_final_message/,
  );
});

test("a thought that broke off goes on, in three APIs", async () => {
  const client = openai(servers.tags);
  const asked = [{ role: "user", content: "Tom has 3 apples and buys 4 more. How many apples does he have?" }];
  const request = { model: "nano", messages: asked, temperature: 0, max_tokens: 80, enable_thinking: true };
  const whole = (await client.chat.completions.create(request)).choices[0].message;
  const cut = whole.reasoning_content.indexOf(" ", whole.reasoning_content.length / 2);
  const [begun, rest] = [whole.reasoning_content.slice(0, cut), whole.reasoning_content.slice(cut)];
  const messages = [...asked, { role: "assistant", content: "", reasoning_content: begun }];
  for (const more of [{}, { continue_final_message: true }, { enable_thinking: false }]) {
    const { message } = (await client.chat.completions.create({ ...request, ...more, messages })).choices[0];
    assert.equal(message.reasoning_content, rest);
    assert.equal(message.content, whole.content);
  }
  const claude = await anthropic(servers.tags).messages.create({
    model: "nano",
    max_tokens: 80,
    temperature: 0,
    thinking: { type: "enabled", budget_tokens: 1024 },
    messages: [...asked, { role: "assistant", content: [{ type: "thinking", thinking: begun, signature: "" }] }],
  });
  assert.deepEqual(claude.content.map((block) => block.thinking ?? block.text), [rest, whole.content]);
  const ollama = await servers.tags.json("/api/chat", {
    stream: false,
    think: true,
    options: { temperature: 0, num_predict: 80 },
    messages: [...asked, { role: "assistant", content: "", thinking: begun }],
  });
  assert.equal(ollama.body.message.thinking, rest);
  assert.equal(ollama.body.message.content, whole.content);
});

test("parts of a message stand on lines of their own in all three APIs", async () => {
  const texts = ["First part", "second part"];
  const joined = texts.join("\n");
  const parts = (type) => texts.map((text) => ({ type, text }));
  const count = async (path, body, pick) => {
    const answer = await servers.tags.json(path, { model: "nano", temperature: 0, ...body });
    assert.equal(answer.status, 200, JSON.stringify(answer.body));
    return pick(answer.body);
  };
  const ids = (content) =>
    count("/tokenize", { messages: [{ role: "user", content }] }, (body) => JSON.stringify(body.tokens));
  assert.equal(await ids(parts("text")), await ids(joined));
  const tokens = (content) =>
    count("/v1/messages/count_tokens", { messages: [{ role: "user", content }] }, (body) => body.input_tokens);
  assert.equal(await tokens(parts("text")), await tokens(joined));
  const items = (content) =>
    count(
      "/v1/responses",
      { input: [{ role: "user", content }], max_output_tokens: 1 },
      (body) => body.usage.input_tokens,
    );
  assert.equal(await items(parts("input_text")), await items(joined));
});

test("llama.cpp's words for a schema bind the answer", async () => {
  const schema = { type: "object", properties: { ok: { type: "boolean" } }, required: ["ok"], additionalProperties: false };
  const request = { messages: chat.messages, reasoning_effort: "none", temperature: 0, max_tokens: 40 };
  for (const more of [{ response_format: { type: "json_object", schema } }, { json_schema: schema }]) {
    const { body, headers } = await servers.tags.json("/v1/chat/completions", { ...request, ...more });
    assert.deepEqual(Object.keys(JSON.parse(body.choices[0].message.content)), ["ok"]);
    assert.equal(headers.get("x-chimere-ignored"), null);
  }
});

test("unknown fields are named by their path", async () => {
  const { status, headers } = await servers.tags.json("/v1/chat/completions", {
    messages: [{ role: "user", content: "a" }, { role: "user", content: [{ type: "text", text: "b", bar: 1 }] }],
    tools: [{ ...WRITE, function: { ...WRITE.function, foo: 1 } }],
    response_format: { type: "text", baz: 1 },
    max_tokens: 1,
  });
  assert.equal(status, 200);
  assert.equal(
    headers.get("x-chimere-ignored"),
    "messages[1].content[0].bar, tools[0].function.foo, response_format.baz",
  );
});

test("the first delta has a role and an empty text, and every chunk the fingerprint", async () => {
  const request = { messages: chat.messages, max_tokens: 3, stream: true, stream_options: { include_usage: true } };
  const events = (await readEvents(await servers.tags.post("/v1/chat/completions", request))).slice(0, -1);
  assert.deepEqual(events[0].data.choices[0].delta, { role: "assistant", content: "" });
  const fingerprints = new Set(events.map(({ data }) => data.system_fingerprint));
  assert.equal(fingerprints.size, 1);
  assert.match([...fingerprints][0], /^fp_[0-9a-f]{10}$/);
});
