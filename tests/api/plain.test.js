// plain.test.js  What needs no client: tokens, deadlines, and errors in the shape of each API.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { readEvents, startServer } from "./server.js";

let server;
const hello = { messages: [{ role: "user", content: "Hello" }], temperature: 0 };

before(async () => {
  server = await startServer();
});
after(() => server?.stop());

test("text becomes tokens and text again", async () => {
  const text = "Crème brûlée, 3 × 🍮 <|im_end|>";
  const { body } = await server.json("/tokenize", { content: text, with_pieces: true });
  assert.equal(body.count, body.tokens.length);
  const bytes = body.tokens.map(({ piece }) => Buffer.from(piece));
  assert.equal(Buffer.concat(bytes).toString(), text);
  const tokens = body.tokens.map(({ id }) => id);
  assert.equal((await server.json("/detokenize", { tokens })).body.content, text);
  assert.equal((await server.json("/detokenize", { tokens: [-1] })).status, 400);
  assert.equal((await server.json("/tokenize", {})).status, 400);
});

test("a conversation is counted as it will be read", async () => {
  const { body } = await server.json("/tokenize", hello);
  const answer = await server.json("/v1/chat/completions", { ...hello, max_tokens: 1 });
  assert.equal(body.count, answer.body.usage.prompt_tokens);
});

test("a deadline ends an answer with what there is", async () => {
  const request = { ...hello, max_tokens: 100_000, timeout: 0.001, thinking_budget: 100_000 };
  const { status, body } = await server.json("/v1/chat/completions", request);
  assert.equal(status, 200);
  assert.equal(body.choices[0].finish_reason, "length");
  const events = await readEvents(await server.post("/v1/chat/completions", { ...request, stream: true }));
  assert.equal(events.at(-1).data, "[DONE]");
});

test("a prompt that was read before is not read again", async () => {
  const messages = [{ role: "system", content: "Rule: be kind. ".repeat(40) }, ...hello.messages];
  const request = { ...hello, messages, max_tokens: 1 };
  await server.json("/v1/chat/completions", request);
  const { usage } = (await server.json("/v1/chat/completions", request)).body;
  assert.ok(usage.prompt_tokens_details.cached_tokens > usage.prompt_tokens / 2);
  assert.ok(usage.prompt_tokens_details.cached_tokens < usage.prompt_tokens);
});

test("tokens that were guessed ahead say so, and change nothing", async () => {
  const request = { messages: [{ role: "user", content: "What is 48 + 27?" }], temperature: 0, token_stats: true };
  const ask = async (speculation) => (await server.json("/v1/chat/completions", { ...request, speculation })).body;
  const [plain, drafted] = [await ask("off"), await ask("always")];
  assert.deepEqual(drafted.choices[0].message, plain.choices[0].message);
  const guessed = (answer) => answer.choices[0].token_stats.filter((token) => token.guessed).length;
  assert.equal(guessed(plain), 0);
  assert.ok(guessed(drafted) > 0);
  assert.equal(guessed(drafted), drafted.timings.draft_n_accepted);
});

test("bodies that are no request are refused in the shape of their API", async () => {
  const bodies = ["", "{", "[]", "3", '{"messages": 1}', '{"input": {}, "prompt": {}}', "[".repeat(10_000)];
  for (const body of bodies) {
    for (const path of ["/v1/chat/completions", "/v1/completions", "/v1/responses", "/tokenize", "/detokenize"]) {
      const refused = await server.json(path, body);
      assert.equal(refused.status, 400, `${path} ${body.slice(0, 30)}`);
      assert.deepEqual(Object.keys(refused.body.error), ["message", "type", "param", "code"]);
    }
    for (const path of ["/v1/messages", "/v1/messages/count_tokens"]) {
      const refused = await server.json(path, body);
      assert.equal(refused.status, 400);
      assert.equal(refused.body.type, "error");
      assert.equal(refused.body.error.type, "invalid_request_error");
    }
  }
});
