// llama.test.js  Requests of the shape that Open WebUI, Continue, Zed, Cline, editors' plug-ins and llama.cpp's own page
// send to a llama.cpp server. Fields and headers are theirs; the texts are ours.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { joinChat, readEvents, startServer, WEATHER } from "./server.js";

let server;
const system = { role: "system", content: "Answer in few words." };
const sum = { role: "user", content: "What is 48 + 27?" };

before(async () => {
  server = await startServer();
});
after(() => server?.stop());

const get = async (path) => {
  const response = await fetch(server.url + path);
  return { status: response.status, body: await response.json() };
};
const chunksOf = async (response) => {
  assert.equal(response.status, 200);
  assert.match(response.headers.get("content-type"), /text\/event-stream/);
  const events = await readEvents(response);
  assert.equal(events.at(-1).data, "[DONE]");
  return events.slice(0, -1).map(({ data }) => data);
};

test("llama.cpp's page: properties, slots, and a chat with all of its fields", async () => {
  const props = (await get("/props")).body;
  assert.ok(props.default_generation_settings.n_ctx > 0);
  assert.ok(props.default_generation_settings.params.temperature >= 0);
  assert.ok(props.total_slots > 0);
  assert.equal(props.modalities.vision, false);
  const slots = (await get("/slots")).body;
  assert.ok(Array.isArray(slots) && slots.length > 0 && "is_processing" in slots[0]);
  assert.equal((await get("/health")).body.status, "ok");

  const body = {
    messages: [system, sum],
    stream: true,
    cache_prompt: true,
    reasoning_format: "auto",
    samplers: ["penalties", "dry", "top_k", "typ_p", "top_p", "min_p", "xtc", "temperature"],
    backend_sampling: false,
    temperature: 0,
    dynatemp_range: 0,
    dynatemp_exponent: 1,
    top_k: 40,
    top_p: 0.95,
    min_p: 0.05,
    xtc_probability: 0,
    xtc_threshold: 0.1,
    typ_p: 1,
    repeat_last_n: 64,
    repeat_penalty: 1,
    presence_penalty: 0,
    frequency_penalty: 0,
    dry_multiplier: 0,
    dry_base: 1.75,
    dry_allowed_length: 2,
    dry_penalty_last_n: -1,
    max_tokens: -1,
    return_progress: true,
    timings_per_token: true,
  };
  const chunks = await chunksOf(await server.post("/v1/chat/completions", body));
  const { choices } = joinChat(chunks.filter((chunk) => chunk.choices));
  assert.equal(choices[0].content, "48 + 27 = 75.");
  assert.ok(choices[0].reasoning.length > 0);
  assert.equal(choices[0].finish, "stop");
  assert.ok(chunks.some((chunk) => chunk.prompt_progress?.total > 0));
  const { timings } = chunks.findLast((chunk) => chunk.timings);
  for (const name of ["prompt_n", "prompt_ms", "predicted_n", "predicted_ms", "predicted_per_second"]) {
    assert.ok(timings[name] > 0, name);
  }
});

test("Open WebUI: models, a streamed chat, and titles and tags on the side", async () => {
  const headers = { Authorization: "Bearer none", "X-OpenWebUI-User-Name": "anna" };
  const models = await (await fetch(`${server.url}/v1/models`, { headers })).json();
  const model = models.data[0].id;
  const chat = {
    stream: true,
    model,
    messages: [sum],
    temperature: 0,
    stream_options: { include_usage: true },
    metadata: { chat_id: "c1", message_id: "m1" },
    features: { web_search: false },
  };
  const { choices, usage } = joinChat(await chunksOf(await server.post("/v1/chat/completions", chat, { headers })));
  assert.equal(choices[0].content, "48 + 27 = 75.");
  assert.ok(usage.completion_tokens > 0);
  const task = { model, messages: [{ role: "user", content: "Give this chat a title." }], stream: false, max_completion_tokens: 40 };
  const title = await server.json("/v1/chat/completions", task);
  assert.equal(title.status, 200);
  assert.equal(title.body.object, "chat.completion");
});

test("Continue: a streamed completion of a raw prompt, and one for what is typed", async () => {
  const raw = "<|im_start|>user\nWhat is 48 + 27?<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n";
  const body = {
    prompt: raw,
    stream: true,
    temperature: 0,
    top_p: 0.9,
    top_k: 40,
    min_p: 0.05,
    mirostat: 0,
    frequency_penalty: 0,
    presence_penalty: 0,
    n_predict: 64,
    stop: ["<|im_end|>", "\n\n\n"],
  };
  const response = await server.post("/completion", body, { headers: { Authorization: "Bearer " } });
  assert.equal(response.status, 200);
  const events = (await readEvents(response)).map(({ data }) => data);
  assert.equal(events.map(({ content }) => content).join("").trim(), "48 + 27 = 75.");
  assert.ok(events.slice(0, -1).every(({ stop }) => stop === false));
  assert.equal(events.at(-1).stop, true);
  assert.ok(events.at(-1).timings.predicted_n > 0);

  const typed = { model: "chimere-nano", prompt: "def is_even(n):\n    return", max_tokens: 16, temperature: 0.01, stop: ["\n\n"], stream: true };
  const text = (await chunksOf(await server.post("/v1/completions", typed))).map(({ choices }) => choices[0]?.text ?? "").join("");
  assert.ok(text.length > 0);
});

test("Editors' plug-ins: a gap that is filled, or an error that says why it is not", async () => {
  const body = {
    input_prefix: "def is_even(n):\n",
    input_suffix: "\n\nprint(is_even(4))\n",
    input_extra: [{ filename: "numbers.py", text: "def is_odd(n):\n    return n % 2 == 1\n" }],
    prompt: "    return ",
    n_predict: 16,
    n_indent: 4,
    top_k: 40,
    top_p: 0.9,
    stream: false,
    samplers: ["top_k", "top_p", "infill"],
    cache_prompt: true,
    t_max_prompt_ms: 500,
    t_max_predict_ms: 1000,
    response_fields: ["content", "timings/prompt_n", "timings/predicted_n", "truncated", "tokens_cached"],
  };
  const { status, body: answer } = await server.json("/infill", body);
  // The model in the box has no tokens for gaps; one that has them fills it.
  assert.equal(status, 400);
  assert.match(answer.error.message, /fill in gaps/);
});

test("Zed: tools and what belongs to them, streamed", async () => {
  const model = "chimere-nano";
  const body = {
    model,
    messages: [
      { role: "user", content: [{ type: "text", text: "What is the weather in Rome for 3 days? Use the tool." }] },
    ],
    stream: true,
    stream_options: { include_usage: true },
    max_completion_tokens: 300,
    stop: [],
    temperature: 0,
    tool_choice: "required",
    parallel_tool_calls: false,
    prompt_cache_key: "thread-1",
    tools: [WEATHER],
  };
  const { choices } = joinChat(await chunksOf(await server.post("/v1/chat/completions", body)));
  assert.equal(choices[0].finish, "tool_calls");
  assert.equal(choices[0].calls.length, 1);
  const [call] = choices[0].calls;
  assert.equal(call.name, "get_weather");
  assert.equal(typeof JSON.parse(call.arguments).city, "string");
  const next = {
    ...body,
    tool_choice: "auto",
    messages: [
      ...body.messages,
      { role: "assistant", content: null, tool_calls: [{ id: call.id, type: "function", function: { name: call.name, arguments: call.arguments } }] },
      { role: "tool", tool_call_id: call.id, content: "Sunny, 24 degrees." },
    ],
  };
  const answer = joinChat(await chunksOf(await server.post("/v1/chat/completions", next)));
  assert.ok(answer.usage.prompt_tokens_details.cached_tokens > 0);
  const predicted = { model, prompt: "one two three", max_tokens: 8, temperature: 0, stop: ["\n"], stream: false };
  assert.equal((await server.json("/v1/completions", predicted)).body.object, "text_completion");
});

test("Cline: messages in parts, a long system prompt, and the same prefix again", async () => {
  const long = { role: "system", content: "You are careful. ".repeat(60) };
  const turn = (text) => ({ role: "user", content: [{ type: "text", text }, { type: "text", text: "<environment>none</environment>" }] });
  const body = (messages) => ({
    model: "gpt-x",
    messages,
    temperature: 0,
    stream: true,
    stream_options: { include_usage: true },
    max_tokens: 60,
  });
  const first = joinChat(await chunksOf(await server.post("/v1/chat/completions", body([long, turn("Say hello.")]))));
  const history = [long, turn("Say hello."), { role: "assistant", content: [{ type: "text", text: first.choices[0].content }] }];
  const second = joinChat(await chunksOf(await server.post("/v1/chat/completions", body([...history, turn("Again.")]))));
  assert.ok(second.usage.prompt_tokens_details.cached_tokens > 100);
  const tooLong = await server.json("/v1/chat/completions", body([{ role: "user", content: "word ".repeat(60_000) }]));
  assert.equal(tooLong.status, 400);
  assert.match(tooLong.body.error.message, /context/);
});

test("Paths without /v1, templates, embeddings and reranking in llama.cpp's words", async () => {
  const chat = await server.json("/chat/completions", { messages: [sum], temperature: 0 });
  assert.equal(chat.body.choices[0].message.content, "48 + 27 = 75.");
  // What a client renders itself is the same to the model as what the server renders.
  const { body: rendered } = await server.json("/apply-template", { messages: [sum], enable_thinking: false });
  assert.match(rendered.prompt, /What is 48 \+ 27\?/);
  for (const prompt of [rendered.prompt, [rendered.prompt]]) {
    const { body: answers } = await server.json("/completion", { prompt, n_predict: 32, temperature: 0 });
    const [answer] = [answers].flat();
    assert.equal(answer.content, "48 + 27 = 75.");
    assert.equal(answer.stop_type, "eos");
    assert.equal(answer.prompt, rendered.prompt);
  }
  const raw = { model: "chimere-nano", prompt: rendered.prompt, raw: true, stream: false, options: { temperature: 0 } };
  assert.equal((await server.json("/api/generate", raw)).body.response, "48 + 27 = 75.");
  assert.equal((await get("/models")).body.data[0].object, "model");
  const { body: vectors } = await server.json("/embedding", { content: ["one", "two"] });
  assert.equal(vectors.length, 2);
  assert.deepEqual(vectors.map(({ index }) => index), [0, 1]);
  assert.ok(vectors[0].embedding[0].length > 0);
  const { status, body: ranks } = await server.json("/rerank", { query: "fruit", documents: ["an apple", "a car"], top_n: 1 });
  assert.equal(status, 200, JSON.stringify(ranks));
  assert.equal(ranks.results.length, 1);
});
