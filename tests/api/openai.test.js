// openai.test.js  The official openai client.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import OpenAI from "openai";

import { joinChat, PERSON, startServer, WEATHER } from "./server.js";

let server, client;
const hello = { model: "nano", messages: [{ role: "user", content: "Hello" }], temperature: 0, max_tokens: 24 };

before(async () => {
  server = await startServer();
  client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "none", maxRetries: 0 });
});
after(() => server?.stop());

test("lists and retrieves models", async () => {
  const models = [];
  for await (const model of client.models.list()) models.push(model);
  // The model, the orchestrator's names for it, and the one in the box that embeds.
  const [embedder] = models.splice(-1);
  assert.deepEqual([embedder.id, embedder.capabilities], ["chimere-embed", ["embedding"]]);
  assert.ok(models.slice(1).every((model) => model.id.startsWith("odo") && model.parent === models[0].id));
  assert.equal(models[0].parent, undefined);
  models.push(embedder);
  for (const { id } of models) assert.equal((await client.models.retrieve(id)).id, id);
  await assert.rejects(client.models.retrieve("absent"), OpenAI.NotFoundError);
});

test("chats", async () => {
  const answer = await client.chat.completions.create(hello);
  assert.equal(answer.object, "chat.completion");
  assert.equal(answer.model, "chimere-nano");
  assert.equal(answer.choices.length, 1);
  const [choice] = answer.choices;
  assert.equal(choice.message.role, "assistant");
  assert.ok(["stop", "length"].includes(choice.finish_reason));
  assert.equal(typeof choice.message.content, "string");
  assert.equal(answer.usage.total_tokens, answer.usage.prompt_tokens + answer.usage.completion_tokens);
  assert.ok(answer.usage.completion_tokens <= 24);
  assert.ok(answer.usage.completion_tokens_details.reasoning_tokens <= answer.usage.completion_tokens);
  assert.ok(answer.usage.prompt_tokens_details.cached_tokens <= answer.usage.prompt_tokens);
  assert.ok(answer.timings.prefill_ms >= 0);
});

test("streams what it would have said at once", async () => {
  const whole = await client.chat.completions.create(hello);
  const chunks = [];
  const stream = await client.chat.completions.create({
    ...hello,
    stream: true,
    stream_options: { include_usage: true },
  });
  for await (const chunk of stream) chunks.push(chunk);
  const { choices, usage } = joinChat(chunks);
  assert.equal(choices[0].content, whole.choices[0].message.content);
  assert.equal(choices[0].reasoning, whole.choices[0].message.reasoning_content ?? "");
  assert.equal(choices[0].finish, whole.choices[0].finish_reason);
  assert.equal(usage.completion_tokens, whole.usage.completion_tokens);
  assert.equal(chunks[0].choices[0].delta.role, "assistant");
});

test("the client's own stream helper sees the same", async () => {
  const whole = await client.chat.completions.create(hello);
  const final = await client.chat.completions.stream(hello).finalChatCompletion();
  assert.equal(final.choices[0].message.content, whole.choices[0].message.content);
});

test("n answers share one prompt and differ by their draws", async () => {
  const request = { ...hello, temperature: 1.5, seed: 7, n: 3, max_tokens: 16 };
  const whole = await client.chat.completions.create(request);
  assert.deepEqual(whole.choices.map((choice) => choice.index), [0, 1, 2]);
  const text = (message) => (message.reasoning_content ?? "") + (message.content ?? "");
  assert.ok(new Set(whole.choices.map((choice) => text(choice.message))).size > 1);
  const alone = await client.chat.completions.create({ ...request, n: 1 });
  assert.equal(whole.usage.prompt_tokens, alone.usage.prompt_tokens);
  assert.equal(text(whole.choices[0].message), text(alone.choices[0].message));
  const chunks = [];
  for await (const chunk of await client.chat.completions.create({ ...request, stream: true })) chunks.push(chunk);
  const { choices } = joinChat(chunks);
  assert.deepEqual(
    choices.map((choice) => choice.reasoning + choice.content),
    whole.choices.map((choice) => text(choice.message)),
  );
});

test("the same seed gives the same text", async () => {
  const request = { ...hello, temperature: 1, seed: 42 };
  const [a, b] = [await client.chat.completions.create(request), await client.chat.completions.create(request)];
  assert.deepEqual(a.choices[0].message, b.choices[0].message);
});

test("stops before a stop string", async () => {
  const request = { ...hello, reasoning_effort: "none" };
  const whole = (await client.chat.completions.create(request)).choices[0].message.content;
  assert.ok(whole.length > 4);
  const stop = whole.slice(2, 4);
  const cut = await client.chat.completions.create({ ...request, stop });
  assert.equal(cut.choices[0].message.content, whole.slice(0, whole.indexOf(stop)));
  assert.equal(cut.choices[0].finish_reason, "stop");
});

test("a bias of -100 bans a token", async () => {
  const request = { ...hello, reasoning_effort: "none", max_tokens: 1, logprobs: true };
  const first = (await client.chat.completions.create(request)).choices[0].logprobs.content[0];
  const ids = (await server.json("/tokenize", { content: first.token })).body.tokens;
  assert.equal(ids.length, 1);
  const other = await client.chat.completions.create({ ...request, logit_bias: { [ids[0]]: -100 } });
  assert.notEqual(other.choices[0].logprobs.content[0].token, first.token);
});

test("gives logprobs", async () => {
  const answer = await client.chat.completions.create({ ...hello, max_tokens: 5, logprobs: true, top_logprobs: 20 });
  const tokens = answer.choices[0].logprobs.content;
  assert.equal(tokens.length, answer.usage.completion_tokens);
  for (const token of tokens) {
    assert.ok(token.logprob <= 0);
    assert.equal(token.top_logprobs.length, 20);
    for (let i = 1; i < 20; ++i) assert.ok(token.top_logprobs[i - 1].logprob >= token.top_logprobs[i].logprob);
    assert.ok(token.top_logprobs.reduce((sum, top) => sum + Math.exp(top.logprob), 0) < 1.001);
  }
});

test("thinks exactly as long as it may", async () => {
  const question = { ...hello, messages: [{ role: "user", content: "What is the weather in Rome?" }], max_tokens: 60 };
  for (const budget of [0, 1, 5]) {
    const answer = await client.chat.completions.create({ ...question, thinking_budget: budget });
    // A model may end its thought earlier by itself.
    assert.ok(answer.usage.completion_tokens_details.reasoning_tokens <= budget, `budget ${budget}`);
  }
  const silent = await client.chat.completions.create({
    ...question,
    chat_template_kwargs: { enable_thinking: false },
  });
  assert.equal(silent.choices[0].message.reasoning_content, undefined);
  assert.equal(silent.usage.completion_tokens_details.reasoning_tokens, 0);
});

test("a JSON schema binds the answer", async () => {
  for (const stream of [false, true]) {
    const request = {
      ...hello,
      max_tokens: 400,
      messages: [{ role: "user", content: "Describe a person" }],
      response_format: { type: "json_schema", json_schema: { name: "person", schema: PERSON, strict: true } },
      reasoning_effort: "none",
    };
    let text;
    if (stream) {
      const final = await client.chat.completions.stream(request).finalChatCompletion();
      text = final.choices[0].message.content;
    } else {
      text = (await client.chat.completions.create(request)).choices[0].message.content;
    }
    const person = JSON.parse(text);
    assert.deepEqual(Object.keys(person).sort(), ["age", "mood", "name"]);
    assert.ok(Number.isInteger(person.age) && person.age >= 0 && person.age <= 150);
    assert.ok(["good", "bad"].includes(person.mood));
  }
});

test("a regular expression and a grammar bind it too", async () => {
  const request = { ...hello, reasoning_effort: "none" };
  const regex = await client.chat.completions.create({ ...request, regex: "(yes|no), [a-c]{3}" });
  assert.match(regex.choices[0].message.content, /^(yes|no), [a-c]{3}$/);
  const grammar = await client.chat.completions.create({ ...request, grammar: 'root ::= "left" | "right"' });
  assert.match(grammar.choices[0].message.content, /^(left|right)$/);
});

test("tools make a round trip", async () => {
  const messages = [{ role: "user", content: "What is the weather in Rome?" }];
  const request = { ...hello, messages, tools: [WEATHER], tool_choice: "required", max_tokens: 300 };
  const asked = await client.chat.completions.create({ ...request, reasoning_effort: "none" });
  const [choice] = asked.choices;
  assert.equal(choice.finish_reason, "tool_calls");
  const [call] = choice.message.tool_calls;
  assert.equal(call.function.name, "get_weather");
  const input = JSON.parse(call.function.arguments);
  assert.equal(typeof input.city, "string");
  assert.ok(input.days >= 1 && input.days <= 9);
  const answer = await client.chat.completions.create({
    ...request,
    tool_choice: "auto",
    max_tokens: 40,
    messages: [...messages, choice.message, { role: "tool", tool_call_id: call.id, content: "Sunny, 25 degrees" }],
  });
  assert.ok(answer.usage.prompt_tokens > asked.usage.prompt_tokens);
});

test("a named tool is called, streamed as well", async () => {
  const other = { type: "function", function: { name: "other", parameters: { type: "object", properties: {} } } };
  const request = {
    ...hello,
    tools: [other, WEATHER],
    tool_choice: { type: "function", function: { name: "get_weather" } },
    parallel_tool_calls: false,
    max_tokens: 300,
    reasoning_effort: "none",
  };
  const whole = await client.chat.completions.create(request);
  assert.equal(whole.choices[0].message.tool_calls.length, 1);
  assert.equal(whole.choices[0].message.tool_calls[0].function.name, "get_weather");
  const chunks = [];
  for await (const chunk of await client.chat.completions.create({ ...request, stream: true })) chunks.push(chunk);
  const { choices } = joinChat(chunks);
  assert.equal(choices[0].calls[0].arguments, whole.choices[0].message.tool_calls[0].function.arguments);
  assert.equal(choices[0].finish, "tool_calls");
});

test("with tool_choice none nothing is called", async () => {
  const answer = await client.chat.completions.create({ ...hello, tools: [WEATHER], tool_choice: "none" });
  assert.equal(answer.choices[0].message.tool_calls, undefined);
});

test("completes text, many prompts, and token ids", async () => {
  const request = { model: "nano", prompt: "Once upon a time", temperature: 0, max_tokens: 8 };
  const one = await client.completions.create({ ...request, logprobs: 3 });
  assert.equal(one.object, "text_completion");
  const { tokens, token_logprobs, top_logprobs, text_offset } = one.choices[0].logprobs;
  assert.equal(tokens.join(""), one.choices[0].text);
  assert.equal(token_logprobs.length, tokens.length);
  assert.equal(top_logprobs.length, tokens.length);
  assert.equal(text_offset[0], 0);
  const { tokens: ids } = (await server.json("/tokenize", { content: request.prompt, add_special: true })).body;
  assert.equal((await client.completions.create({ ...request, prompt: ids })).choices[0].text, one.choices[0].text);
  const many = await client.completions.create({ ...request, prompt: [request.prompt, "The end"], n: 2, echo: true });
  assert.deepEqual(many.choices.map((choice) => choice.index), [0, 1, 2, 3]);
  assert.equal(many.choices[0].text, request.prompt + one.choices[0].text);
  assert.ok(many.choices[3].text.startsWith("The end"));
  let streamed = "";
  for await (const chunk of await client.completions.create({ ...request, stream: true })) {
    streamed += chunk.choices[0].text;
  }
  assert.equal(streamed, one.choices[0].text);
  await assert.rejects(client.completions.create({ ...request, suffix: "end" }), /fill in gaps/);
});

test("responses, at once and streamed", async () => {
  const request = { model: "nano", input: "Hello", instructions: "Be brief.", temperature: 0, max_output_tokens: 24 };
  const whole = await client.responses.create(request);
  assert.equal(whole.object, "response");
  assert.ok(["completed", "incomplete"].includes(whole.status));
  assert.equal(whole.store, true);
  assert.deepEqual(await client.responses.retrieve(whole.id), whole);
  await client.responses.delete(whole.id);
  await assert.rejects(client.responses.retrieve(whole.id), OpenAI.NotFoundError);
  const events = [];
  for await (const event of await client.responses.create({ ...request, stream: true })) events.push(event);
  assert.deepEqual(events.map((event) => event.sequence_number), events.map((_, i) => i));
  assert.deepEqual(events.slice(0, 2).map((event) => event.type), ["response.created", "response.in_progress"]);
  const last = events.at(-1);
  assert.equal(last.type, `response.${whole.status}`);
  const texts = (items) => items.map((item) => (item.content ?? []).map((part) => part.text).join(""));
  assert.deepEqual(texts(last.response.output), texts(whole.output));
  assert.equal(last.response.usage.output_tokens, whole.usage.output_tokens);
  const open = new Map();
  for (const event of events) {
    if (event.type === "response.output_item.added") open.set(event.output_index, "");
    if (event.type === "response.output_text.delta" || event.type === "response.reasoning_text.delta") {
      open.set(event.output_index, open.get(event.output_index) + event.delta);
    }
    if (event.type === "response.output_item.done") {
      assert.equal(open.get(event.output_index), event.item.content[0].text);
      open.delete(event.output_index);
    }
  }
  assert.equal(open.size, 0);
});

test("responses call tools and take their results", async () => {
  const tool = { type: "function", ...WEATHER.function, strict: true };
  const request = {
    model: "nano",
    input: [{ role: "user", content: [{ type: "input_text", text: "What is the weather in Rome?" }] }],
    tools: [tool],
    tool_choice: "required",
    reasoning: { effort: "none" },
    temperature: 0,
    max_output_tokens: 300,
  };
  const asked = await client.responses.create(request);
  const call = asked.output.find((item) => item.type === "function_call");
  assert.equal(call.name, "get_weather");
  JSON.parse(call.arguments);
  const streamed = await client.responses.stream(request).finalResponse();
  assert.equal(streamed.output.find((item) => item.type === "function_call").arguments, call.arguments);
  const answer = await client.responses.create({
    ...request,
    tool_choice: "auto",
    max_output_tokens: 30,
    input: [...request.input, ...asked.output, { type: "function_call_output", call_id: call.call_id, output: "Sunny" }],
  });
  assert.ok(answer.usage.input_tokens > asked.usage.input_tokens);
});

test("responses have forms", async () => {
  const answer = await client.responses.create({
    model: "nano",
    input: "Describe a person",
    text: { format: { type: "json_schema", name: "person", schema: PERSON, strict: true } },
    reasoning: { effort: "none" },
    temperature: 0,
    max_output_tokens: 400,
  });
  assert.ok("mood" in JSON.parse(answer.output_text));
});

test("errors are the client's error classes", async () => {
  await assert.rejects(client.chat.completions.create({ ...hello, temperature: 9 }), (error) => {
    assert.ok(error instanceof OpenAI.BadRequestError);
    assert.equal(error.param, "temperature");
    return true;
  });
  const long = { ...hello, messages: [{ role: "user", content: "word ".repeat(200_000) }] };
  await assert.rejects(client.chat.completions.create(long), (error) => {
    assert.equal(error.status, 400);
    assert.equal(error.code, "context_length_exceeded");
    assert.match(error.message, /This model's maximum context length is \d+ tokens\. However, you requested \d+/);
    return true;
  });
  await assert.rejects(client.responses.create({ model: "nano", input: "x", previous_response_id: "resp_1" }), /previous_response_id/);
});

test("unknown fields are named, not obeyed", async () => {
  const { response } = await client.chat.completions.create({ ...hello, max_tokens: 1, mood: "good" }).withResponse();
  assert.equal(response.headers.get("x-chimere-ignored"), "mood");
});

test("a request that is given up stops", async () => {
  const control = new AbortController();
  const stream = await client.chat.completions.create(
    { ...hello, max_tokens: 100_000, logit_bias: {}, stream: true, thinking_budget: 100_000 },
    { signal: control.signal },
  );
  let chunks = 0;
  await assert.rejects(
    (async () => {
      for await (const _ of stream) {
        if (++chunks === 2) control.abort();
      }
      if (control.signal.aborted) throw new OpenAI.APIUserAbortError();
    })(),
    OpenAI.APIUserAbortError,
  );
  for (;;) {
    const health = await (await fetch(`${server.url}/health`)).json();
    if (health.running === 0 && health.queued === 0) break;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
});
