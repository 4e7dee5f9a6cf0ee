// ollama.test.js  The official `ollama` client, and requests of the shape that programs send in their Ollama mode.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { Ollama } from "ollama";

import { startServer, WEATHER } from "./server.js";

let server, client;
const model = "chimere-nano:latest";
const sum = [{ role: "user", content: "What is 48 + 27?" }];
const options = { temperature: 0 };

before(async () => {
  server = await startServer();
  client = new Ollama({ host: server.url });
});
after(() => server?.stop());

// The parts of a stream, joined.
async function joined(stream) {
  const whole = { content: "", thinking: "", calls: [], last: null, parts: 0 };
  for await (const part of stream) {
    whole.content += part.message?.content ?? part.response ?? "";
    whole.thinking += part.message?.thinking ?? part.thinking ?? "";
    whole.calls.push(...(part.message?.tool_calls ?? []));
    whole.last = part;
    whole.parts += 1;
  }
  return whole;
}

test("chats, whole and in pieces", async () => {
  const whole = await client.chat({ model, messages: sum, options });
  assert.equal(whole.model, model);
  assert.equal(whole.message.role, "assistant");
  assert.equal(whole.message.content, "48 + 27 = 75.");
  assert.ok(whole.message.thinking.length > 0);
  assert.equal(whole.done, true);
  assert.equal(whole.done_reason, "stop");
  for (const name of ["total_duration", "prompt_eval_count", "prompt_eval_duration", "eval_count", "eval_duration"]) {
    assert.ok(whole[name] > 0, name);
  }
  assert.ok(!Number.isNaN(Date.parse(whole.created_at)));
  const pieces = await joined(await client.chat({ model, messages: sum, options, stream: true }));
  assert.equal(pieces.content, whole.message.content);
  assert.equal(pieces.thinking, whole.message.thinking);
  assert.ok(pieces.parts > 5);
  assert.equal(pieces.last.eval_count, whole.eval_count);
});

test("thinks or not, as it is told", async () => {
  const silent = await client.chat({ model, messages: sum, options, think: false });
  assert.equal(silent.message.thinking, undefined);
  assert.equal(silent.message.content, "48 + 27 = 75.");
  const low = await client.chat({ model, messages: sum, options, think: "low" });
  assert.ok(low.message.thinking.length > 0);
});

test("generates from a prompt, and from a raw one", async () => {
  const answer = await client.generate({ model, prompt: "What is 2 + 3?", options, think: false });
  assert.equal(answer.response, "2 + 3 = 5.");
  const pieces = await joined(await client.generate({ model, prompt: "What is 2 + 3?", options, think: false, stream: true }));
  assert.equal(pieces.content, answer.response);
  const system = await client.generate({ model, system: "Be brief.", prompt: "Hello", options, think: false });
  assert.ok(system.response.length > 0);
  const raw = await client.generate({ model, prompt: "Once upon a time", raw: true, options: { ...options, num_predict: 8 } });
  assert.equal(raw.eval_count, 8);
  assert.equal(raw.done_reason, "length");
  const plain = await server.json("/v1/completions", { prompt: "Once upon a time", max_tokens: 8, temperature: 0 });
  assert.equal(raw.response, plain.body.choices[0].text);
});

test("calls a tool, and reads its result", async () => {
  const messages = [{ role: "user", content: "What is the weather in Paris?" }];
  const request = { model, messages, options, think: false, tools: [WEATHER] };
  const called = await client.chat(request);
  assert.equal(called.message.tool_calls.length, 1);
  const { name, arguments: args } = called.message.tool_calls[0].function;
  assert.equal(name, WEATHER.function.name);
  assert.equal(args.city, "Paris");
  const pieces = await joined(await client.chat({ ...request, stream: true }));
  assert.deepEqual(pieces.calls.map((c) => c.function), called.message.tool_calls.map((c) => c.function));
  const answer = await client.chat({
    ...request,
    messages: [...messages, called.message, { role: "tool", tool_name: name, content: '{"temperature_c": 18}' }],
  });
  assert.ok(answer.message.content.length > 0);
});

test("holds to a form", async () => {
  const format = { type: "object", properties: { name: { type: "string" }, age: { type: "integer" } }, required: ["name", "age"] };
  const messages = [{ role: "user", content: "Make up a person." }];
  const answer = await client.chat({ model, messages, format, think: false, options: { seed: 3 } });
  const person = JSON.parse(answer.message.content);
  assert.equal(typeof person.name, "string");
  assert.ok(Number.isInteger(person.age));
  const any = await client.chat({ model, messages, format: "json", think: false, options: { seed: 3, num_predict: 200 } });
  assert.equal(typeof JSON.parse(any.message.content), "object");
});

test("takes options by their names here", async () => {
  const request = { model, messages: [{ role: "user", content: "Tell me a story." }], think: false };
  const one = await client.chat({ ...request, options: { seed: 7, num_predict: 12, repeat_penalty: 1.1, repeat_last_n: 64 } });
  const same = await client.chat({ ...request, options: { seed: 7, num_predict: 12, repeat_penalty: 1.1, repeat_last_n: 64 } });
  assert.equal(one.message.content, same.message.content);
  assert.equal(one.eval_count, 12);
  assert.equal(one.done_reason, "length");
  const cut = await client.chat({ ...request, options: { ...options, stop: [" "] } });
  assert.ok(!cut.message.content.includes(" "));
});

test("embeds", async () => {
  const { embeddings, prompt_eval_count: n } = await client.embed({ model, input: ["a cat", "a dog"] });
  assert.equal(embeddings.length, 2);
  assert.ok(n > 0);
  assert.ok(Math.abs(Math.hypot(...embeddings[0]) - 1) < 1e-3);
  const short = await client.embed({ model, input: "a cat", dimensions: 32 });
  assert.equal(short.embeddings[0].length, 32);
  const old = await client.embeddings({ model, prompt: "a cat" });
  assert.deepEqual(old.embedding, embeddings[0]);
});

test("lists, shows and tells what runs", async () => {
  const { models } = await client.list();
  assert.equal(models[0].name, model);
  assert.ok(models[0].size > 1e6);
  assert.equal(models[0].details.format, "gguf");
  const shown = await client.show({ model });
  for (const capability of ["completion", "tools", "thinking", "embedding"]) assert.ok(shown.capabilities.includes(capability));
  assert.equal(shown.model_info["qwen35moe.context_length"], 16384);
  const running = await client.ps();
  assert.equal(running.models[0].model, model);
  assert.match((await client.version()).version, /^\d+\.\d+\.\d+$/);
});

test("an answer can be aborted, and the next one comes", async () => {
  const own = new Ollama({ host: server.url });
  const stream = await own.chat({ model, messages: [{ role: "user", content: "Tell me a long story." }], think: false, stream: true });
  await assert.rejects(async () => {
    let n = 0;
    for await (const part of stream) if (part && ++n === 3) own.abort();
  }, /abort/i);
  assert.equal((await client.chat({ model, messages: sum, options })).message.content, "48 + 27 = 75.");
});

test("errors are strings", async () => {
  for (const [path, body, status] of [
    ["/api/chat", { model, messages: 7 }, 400],
    ["/api/chat", { model, messages: [{ role: "user", content: "x", images: ["aGk="] }] }, 400],
    ["/api/generate", { model, prompt: "a", suffix: "b" }, 400],
    ["/api/generate", { model, prompt: "a", options: { temperature: "hot" } }, 400],
    ["/api/embed", { model }, 400],
    ["/api/show", {}, 400],
    ["/api/pull", { model: "other" }, 404],
    ["/api/chat", "{", 400],
  ]) {
    const answer = await server.json(path, body);
    assert.equal(answer.status, status, path);
    assert.equal(typeof answer.body.error, "string");
  }
  await assert.rejects(client.chat({ model, messages: [{ role: "alien", content: "x" }] }), /expected system, user, assistant or tool/);
});

test("a prompt that is too long is an error before the stream", async () => {
  const answer = await server.json("/api/chat", { model, messages: [{ role: "user", content: "word ".repeat(30000) }] });
  assert.equal(answer.status, 400);
  assert.match(answer.body.error, /context length/);
});

// What programs send beside what they mean: Open WebUI, Continue, Zed, Cline, in shape; the texts are ours.
test("requests of programs in their Ollama mode are answered", async () => {
  const tools = [WEATHER];
  const bodies = [
    { model, messages: sum, options: { ...options, num_ctx: 8192, num_thread: 4 }, keep_alive: "5m", stream: true },
    { model, messages: [{ role: "system", content: "Help." }, ...sum], options: { ...options, num_predict: 1024, mirostat: 0, tfs_z: 1 }, keep_alive: 1800, stream: true },
    { model, messages: [...sum, { role: "assistant", content: "75", tool_calls: [] }, ...sum], stream: true, keep_alive: -1, options: { ...options, num_ctx: 16384 }, tools, think: false },
    { model, messages: sum, stream: true, options: { ...options, num_ctx: 32768, stop: [] } },
  ];
  for (const body of bodies) {
    const response = await server.post("/api/chat", body);
    assert.equal(response.status, 200);
    assert.equal(response.headers.get("content-type"), "application/x-ndjson");
    const lines = (await response.text()).trim().split("\n").map((line) => JSON.parse(line));
    assert.equal(lines.at(-1).done, true);
    assert.ok(lines.slice(0, -1).every((line) => line.done === false));
    assert.ok(lines.map((line) => line.message.content).join("").length > 0);
  }
  const loaded = await server.json("/api/generate", { model, keep_alive: "10m" });
  assert.equal(loaded.body.done_reason, "load");
});
