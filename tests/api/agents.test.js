// agents.test.js  First requests of the shape that agent programs send (agents.json): their fields, roles and the
// structure of their tools, with texts of our own. Each is answered as it was sent, and once more with a call demanded,
// whose arguments must arrive in pieces.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";

import { joinChat, readEvents, startServer } from "./server.js";

const AGENTS = JSON.parse(readFileSync(new URL("agents.json", import.meta.url)));
// Theirs are 32,000 and more; a model of 24 M parameters has nothing to say for so long.
const ENOUGH = 160;

let server;
before(async () => {
  server = await startServer();
});
after(() => server?.stop());

const apiOf = (agent) => agent.path.split("?")[0].split("/").pop();

// Each takes the events of a stream, checks their order and says what they add up to.
const readers = {
  completions(events, body) {
    assert.equal(events.at(-1).data, "[DONE]");
    const chunks = events.slice(0, -1).map((event) => event.data);
    assert.deepEqual(chunks[0].choices[0].delta, { role: "assistant", content: "" });
    assert.equal(new Set(chunks.map((chunk) => chunk.id)).size, 1);
    for (const chunk of chunks) assert.equal(chunk.object, "chat.completion.chunk");
    assert.equal(chunks.filter((chunk) => chunk.choices[0]?.finish_reason).length, 1);
    const { choices, usage } = joinChat(chunks);
    assert.equal(Boolean(usage), Boolean(body.stream_options?.include_usage));
    const pieces = chunks.flatMap((chunk) => chunk.choices[0]?.delta.tool_calls ?? []);
    assert.ok(["stop", "length", "tool_calls"].includes(choices[0].finish), choices[0].finish);
    return {
      model: chunks[0].model,
      calls: choices[0].calls.map((call, index) => ({
        name: call.name,
        text: call.arguments,
        pieces: pieces.filter((piece) => piece.index === index && piece.function.arguments).length,
      })),
    };
  },
  responses(events) {
    const list = events.map((event) => event.data);
    list.forEach((event, i) => assert.equal(event.sequence_number, i));
    events.forEach((event) => assert.equal(event.event, event.data.type));
    assert.equal(list[0].type, "response.created");
    const last = list.at(-1);
    assert.match(last.type, /^response\.(completed|incomplete)$/);
    const items = list.filter((event) => event.type === "response.output_item.done").map((event) => event.item);
    assert.deepEqual(items, last.response.output);
    assert.equal(list.filter((event) => event.type === "response.output_item.added").length, items.length);
    const kinds = ["response.function_call_arguments.delta", "response.custom_tool_call_input.delta"];
    const calls = items.filter((item) => /_call$/.test(item.type));
    return {
      model: last.response.model,
      calls: calls.map((item) => {
        const deltas = list.filter((event) => event.item_id === item.id && kinds.includes(event.type));
        if (item.type === "tool_search_call") {  // whose arguments are an object, and come whole
          assert.equal(typeof item.arguments, "object");
          assert.equal(deltas.length, 0);
          return { ...item, text: JSON.stringify(item.arguments), pieces: 0 };
        }
        assert.equal(deltas.map((event) => event.delta).join(""), item.arguments ?? item.input);
        return { ...item, text: item.arguments ?? item.input, pieces: deltas.length };
      }),
    };
  },
  messages(events) {
    const list = events.map((event) => event.data);
    events.forEach((event) => assert.equal(event.event, event.data.type));
    assert.equal(list[0].type, "message_start");
    assert.equal(list.at(-2).type, "message_delta");
    assert.equal(list.at(-1).type, "message_stop");
    const blocks = [];
    for (const event of list.slice(1, -2)) {
      if (event.type === "content_block_start") {
        assert.equal(event.index, blocks.length);
        blocks.push({ ...event.content_block, text: "", pieces: 0, open: true });
      } else if (event.type === "content_block_delta") {
        assert.ok(blocks[event.index].open);
        blocks[event.index].text += event.delta.partial_json ?? "";
        blocks[event.index].pieces += event.delta.partial_json ? 1 : 0;
      } else {
        assert.equal(event.type, "content_block_stop");
        blocks[event.index].open = false;
      }
    }
    assert.ok(blocks.every((block) => !block.open));
    return { model: list[0].message.model, calls: blocks.filter((block) => block.type === "tool_use") };
  },
};

// Deltas that the server has no time to send one by one are joined, so a call is asked for until it comes in pieces.
const TRIES = 5;
async function askForPieces(agent, name) {
  for (let i = 0; ; ++i) {
    const { calls } = await ask(agent, { ...demanding(agent, name), seed: i });
    if (calls[0]?.pieces >= 2 || i === TRIES) return calls[0];
  }
}

// The same request, its length bounded.
function bounded(agent) {
  const body = structuredClone(agent.body);
  const field = { completions: "max_tokens", responses: "max_output_tokens", messages: "max_tokens" }[apiOf(agent)];
  const theirs = "max_completion_tokens" in body ? "max_completion_tokens" : field;
  return { ...body, [theirs]: ENOUGH };
}

function demanding(agent, name) {
  const body = bounded(agent);
  if (apiOf(agent) === "messages") return { ...body, tool_choice: { type: "tool", name }, thinking: { type: "disabled" } };
  if (apiOf(agent) === "responses") {
    return { ...body, tool_choice: { type: "function", name }, reasoning: { effort: "none" } };
  }
  return { ...body, tool_choice: { type: "function", function: { name } }, reasoning_effort: "none" };
}

async function ask(agent, body) {
  const response = await server.post(agent.path, body, { headers: agent.headers });
  if (response.status !== 200) assert.fail(`${response.status} ${await response.text()}`);
  assert.match(response.headers.get("content-type"), /^text\/event-stream/);
  const answer = readers[apiOf(agent)](await readEvents(response), body);
  assert.equal(answer.model, "chimere-nano");
  assert.equal(response.headers.get("x-chimere-model"), "chimere-nano");
  return { ...answer, ignored: response.headers.get("x-chimere-ignored") ?? "" };
}

for (const [name, agent] of Object.entries(AGENTS)) {
  const called = typeof agent.call === "string" ? { name: agent.call } : agent.call;

  test(`${name}: its first request is answered`, async () => {
    const { ignored } = await ask(agent, bounded(agent));
    // What nothing here can do is named; no tool that the program runs itself is.
    const unserved = (agent.body.tools ?? []).map((tool, i) => (tool.type === "web_search" ? `tools[${i}]` : null));
    const named = ignored.split(", ").filter((field) => /^tools\[\d+\]$/.test(field));
    assert.deepEqual(named, unserved.filter(Boolean));
  });

  test(`${name}: a call of ${called.name} arrives in pieces`, async () => {
    const call = await askForPieces(agent, called.name);
    assert.equal(call.name, called.name);
    assert.equal(call.namespace, called.namespace);
    assert.ok(call.pieces >= 2, `${call.pieces} pieces of ${call.text}`);
    assert.ok(call.text.startsWith("{"), call.text);
  });
}

test("codex: a freeform tool gets text", async () => {
  const { calls } = await ask(AGENTS.codex, demanding(AGENTS.codex, "apply_patch"));
  assert.equal(calls[0].type, "custom_tool_call");
  assert.equal(calls[0].name, "apply_patch");
  assert.equal(calls[0].arguments, undefined);
  assert.ok(calls[0].pieces >= 1 && calls[0].text.length > 0);
});

test("codex: the second request brings the call and its result", async () => {
  const agent = AGENTS["codex with namespaces"];
  const body = bounded(agent);
  const call = { type: "function_call", call_id: "call_1", ...agent.call, arguments: '{"text":"Hello"}' };
  const output = [{ type: "input_text", text: "Wall time: 0.1 seconds" }, { type: "input_text", text: "Added." }];
  body.input.push(call, { type: "function_call_output", call_id: "call_1", output });
  await ask(agent, body);
});

test("claude code: tokens are counted", async () => {
  const { model, system, messages, tools } = AGENTS["claude code"].body;
  const counted = await server.json("/v1/messages/count_tokens?beta=true", { model, system, messages, tools });
  assert.equal(counted.status, 200);
  assert.ok(counted.body.input_tokens > 100);
});

test("a conversation that is too long is said in the words that programs compact on", async () => {
  const word = "word ".repeat(30_000);
  for (const agent of [AGENTS["claude code"], AGENTS.codex, AGENTS.opencode]) {
    const body = structuredClone(agent.body);
    (body.messages ?? body.input).at(-1).content = word;
    const response = await server.post(agent.path, body, { headers: agent.headers });
    if (agent === AGENTS.codex) {
      const last = (await readEvents(response)).at(-1);
      assert.equal(last.event, "response.failed");
      assert.equal(last.data.response.error.code, "context_length_exceeded");
      continue;
    }
    assert.equal(response.status, 400);
    const { error } = await response.json();
    if (agent === AGENTS.opencode) {
      assert.equal(error.code, "context_length_exceeded");
      assert.match(error.message, /^This model's maximum context length is \d+ tokens\. However, you requested \d+/);
    } else {
      assert.equal(error.type, "invalid_request_error");
      assert.match(error.message, /^prompt is too long: \d+ tokens > \d+ maximum$/);
    }
    assert.ok(error.n_prompt_tokens > error.n_ctx);
  }
});
