// odo.test.js  The orchestrator as the openai client sees it: tools are called on the way, steps are told, traces are kept,
// documents are cited, and the bare model's answers stay what they are.
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, before, test } from "node:test";

import OpenAI from "openai";

import { NANO, startServer } from "./server.js";

const user = (content) => ({ role: "user", content });
const sum = { model: "odo", messages: [user("What is 48271 * 3947?")], temperature: 0, enable_thinking: false };
const calledSum = { ...sum, odo: { calculate: false } }; // the model has to call the calculator itself

let server, client, folder;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "chimere-odo-"));
  process.env.XDG_DATA_HOME = folder;
  const everything = resolve("node_modules/@modelcontextprotocol/server-everything/dist/index.js");
  const config = join(folder, "odo.yaml");
  await writeFile(config, `mcp_servers:\n  everything:\n    command: [${process.execPath}, ${everything}]\n    policy: deny\n  broken:\n    command: [sh, -c, "read greeting; echo no licence >&2; exit 3"]\ntools: {run_code: deny}\n`);
  server = await startServer(NANO, ["--odo-config", config]);
  client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "none", maxRetries: 0 });
});
after(async () => {
  await server?.stop();
  await rm(folder, { recursive: true, force: true });
});

const get = async (path) => (await fetch(server.url + path)).json();
const post = async (path, body) => {
  const answer = await fetch(server.url + path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
  return { status: answer.status, json: answer.status === 202 ? null : await answer.json() };
};

test("the names are listed, and another one is refused with the list", async () => {
  const ids = (await client.models.list()).data.map((model) => model.id);
  for (const name of ["odo", "odo/fast", "odo/quality", "odo/ultra", "odo/code", "odo/default"]) assert.ok(ids.includes(name), name);
  await assert.rejects(client.chat.completions.create({ ...sum, model: "odo/nothing" }), (error) => {
    assert.equal(error.status, 404);
    assert.match(error.message, /odo\/fast/);
    return true;
  });
  await assert.rejects(client.chat.completions.create({ ...sum, odo: { mode: "slow" } }), { status: 400 });
  await assert.rejects(client.chat.completions.create({ ...sum, odo: { colour: "red" } }), { status: 400 });
  await assert.rejects(client.chat.completions.create({ ...sum, n: 2 }), { status: 400 });
});

test("a sum is computed before the model answers, unless the request says no", async () => {
  const answer = await client.chat.completions.create(sum);
  assert.match(answer.choices[0].message.content.replaceAll(",", ""), /190525637/);
  assert.deepEqual(answer.odo.steps.map((step) => step.stage), ["route", "calculate", "answer"]);
  const step = answer.odo.steps[1];
  assert.equal(step.state, "done");
  assert.deepEqual(step.detail, { expression: "48271 * 3947", result: "190525637" });
  for (const odo of [{ calculate: false }, { tools: [] }]) {
    const other = await client.chat.completions.create({ ...sum, max_tokens: 5, odo });
    assert.ok(!other.odo.steps.some((s) => s.stage === "calculate"), JSON.stringify(odo));
  }
  const date = await client.chat.completions.create({ ...sum, messages: [user("What is 2024-11-17?")], max_tokens: 5 });
  assert.ok(!date.odo.steps.some((s) => s.stage === "calculate"));
  const wrong = await client.chat.completions.create({ ...sum, messages: [user("What is 5 / 0 + 1?")], max_tokens: 5 });
  assert.equal(wrong.odo.steps.find((s) => s.stage === "calculate").state, "failed");
  await assert.rejects(client.chat.completions.create({ ...sum, odo: { calculate: "no" } }), { status: 400 });
});

test("a sum is calculated by a tool that the model calls, and the answer says how", async () => {
  const answer = await client.chat.completions.create(calledSum);
  assert.match(answer.choices[0].message.content.replaceAll(",", ""), /190525637/);
  assert.equal(answer.model, "odo");
  assert.equal(answer.choices[0].finish_reason, "stop");
  assert.equal(answer.odo.route, "default");
  const tool = answer.odo.steps.find((step) => step.stage === "tool");
  assert.equal(tool.state, "done");
  assert.equal(tool.detail.tool, "calculator");
  assert.equal(tool.detail.result, "190525637");
  const trace = await get(`/v1/odo/traces/${answer.odo.id}`);
  assert.deepEqual(trace.steps, answer.odo.steps);
  assert.equal((await fetch(`${server.url}/v1/odo/traces/none`)).status, 404);
});

test("a stream tells each step when it begins and when it ends, and the text as it comes", async () => {
  const states = new Map();
  let text = "", run;
  const stream = await client.chat.completions.create({ ...calledSum, stream: true });
  for await (const chunk of stream) {
    text += chunk.choices[0]?.delta?.content ?? "";
    for (const step of chunk.odo?.steps ?? []) states.set(step.index, [...(states.get(step.index) ?? []), step.state]);
    if (chunk.odo?.id) run = chunk.odo;
  }
  assert.match(text.replaceAll(",", ""), /190525637/);
  const tool = run.steps.find((step) => step.stage === "tool");
  assert.deepEqual(states.get(tool.index), ["running", "done", "done"]);
});

test("a greeting costs no token more, and the bare model is told what it does not use", async () => {
  const hello = { messages: [user("Hello")], temperature: 0, max_tokens: 40 };
  const [run, bare] = [await client.chat.completions.create({ ...hello, model: "odo" }), await client.chat.completions.create({ ...hello, model: "nano" })];
  assert.equal(run.choices[0].message.content, bare.choices[0].message.content);
  assert.equal(run.usage.total_tokens, bare.usage.total_tokens);
  assert.equal(bare.odo, undefined);
  const { response } = await client.chat.completions.create({ ...hello, model: "nano", odo: { mode: "fast" } }).withResponse();
  assert.match(response.headers.get("x-chimere-ignored"), /odo/);
});

test("the model's doubt says whether to think, where nobody else does", async () => {
  const capital = { model: "odo/default", messages: [user("What is the capital of France?")], temperature: 0, max_tokens: 100 };
  const answerStep = async (more) => (await client.chat.completions.create({ ...capital, ...more })).odo.steps.find((step) => step.stage === "answer");
  const { detail } = await answerStep({});
  assert.equal(typeof detail.entropy, "number");
  assert.equal(typeof detail.thinks, "boolean");
  for (const more of [{ odo: { entropy: false } }, { enable_thinking: false }, { model: "odo/ultra" }]) {
    assert.equal((await answerStep(more)).detail, undefined, JSON.stringify(more));
  }
  await assert.rejects(client.chat.completions.create({ ...capital, odo: { entropy: "yes" } }), { status: 400 });
});

const story = { model: "odo", messages: [user("Theo has 64 marbles. He wins 27 marbles. He loses 38 marbles. How many marbles does Theo have now?")], seed: 5, max_tokens: 300 };

test("several answers are searched, judged and told of, by request and by stream", async () => {
  for (const search of ["dvts", "best_of", "majority"]) {
    const answer = await client.chat.completions.create({ ...story, odo: { search, branches: 2, width: 2, tokens: 800 } });
    assert.match(answer.choices[0].message.content, /53/, search);
    const step = answer.odo.steps.find((s) => s.stage === "search");
    assert.equal(step.state, "done");
    assert.equal(step.detail.kind, search);
    assert.equal(step.detail.branches.length, 2);
    assert.equal(step.detail.branches.filter((b) => b.chosen).length, 1);
    assert.ok(step.detail.branches.every((b) => b.score >= 0 && b.score <= 1));
    assert.equal(step.tokens, answer.usage.completion_tokens);
  }
  const states = [];
  let text = "";
  const stream = await client.chat.completions.create({ ...story, stream: true, odo: { search: "dvts", branches: 2 } });
  for await (const chunk of stream) {
    for (const step of chunk.odo?.steps ?? []) if (step.stage === "search") states.push(step.state);
    text += chunk.choices[0]?.delta?.content ?? "";
  }
  assert.match(text, /53/);
  assert.ok(states.filter((state) => state === "running").length > 1, "progress is told");
  assert.equal(states.at(-1), "done");
  const cold = await client.chat.completions.create({ ...story, temperature: 0, odo: { search: "dvts" } });
  assert.equal(cold.odo.steps.find((s) => s.stage === "search").state, "skipped");
  for (const odo of [{ search: "deep" }, { branches: 0 }, { branches: 17 }, { width: 5 }, { tokens: -1 }, { gate: 3 }, { few_shot: 9 }, { source_weight: 2 }]) {
    await assert.rejects(client.chat.completions.create({ ...story, odo }), { status: 400 }, JSON.stringify(odo));
  }
});

test("the gate judges, and examples are those that their owner accepted", async () => {
  const gated = await client.chat.completions.create({ ...story, temperature: 0, odo: { gate: true } });
  const gate = gated.odo.steps.find((s) => s.stage === "gate");
  assert.equal(gate.detail.retried, gate.detail.stars <= 2);
  assert.ok(gated.choices[0].message.content.length > 0);

  const capital = (land, more) => ({ model: "odo", messages: [user(`What is the capital of ${land}?`)], temperature: 0, enable_thinking: false, user: "ann", ...more });
  await fetch(`${server.url}/v1/learning`, { method: "PUT", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ agreed: true, user: "ann" }) });
  const first = await client.chat.completions.create(capital("Italy"));
  const feedback = await post("/v1/feedback", { id: first.id, user: "ann", correction: "=> Rome" });
  assert.equal(feedback.status, 200);
  const shown = (answer) => answer.odo.steps.find((s) => s.stage === "few_shot");
  const helped = await client.chat.completions.create(capital("Austria", { odo: { few_shot: 2 } }));
  assert.equal(shown(helped).detail.examples.length, 1);
  const other = await client.chat.completions.create(capital("Austria", { user: "bob", odo: { few_shot: 2 } }));
  assert.equal(shown(other).state, "skipped", "of who did not agree nothing is kept");
});

test("the caller's own tools go to the caller", async () => {
  const tools = [{ type: "function", function: { name: "get_weather", description: "Says what the weather is in a city.", parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] } } }];
  const messages = [user("What is the weather in Lyon?")];
  const answer = await client.chat.completions.create({ model: "odo", messages, tools, temperature: 0, enable_thinking: false });
  assert.equal(answer.choices[0].finish_reason, "tool_calls");
  const call = answer.choices[0].message.tool_calls[0];
  assert.equal(call.function.name, "get_weather");
  messages.push(answer.choices[0].message, { role: "tool", tool_call_id: call.id, content: "31 degrees and sunny" });
  const last = await client.chat.completions.create({ model: "odo", messages, tools, temperature: 0, enable_thinking: false });
  assert.match(last.choices[0].message.content, /31/);
});

test("documents of a collection are told to the model and listed as sources", async () => {
  const made = await post("/v1/collections/garden/documents", { name: "beans.md", text: "# Beans\nThe beans of Orlo are planted on the ninth of May.\n" });
  assert.equal(made.status, 200);
  const answer = await client.chat.completions.create({ model: "odo/default", messages: [user("When are the beans of Orlo planted?")], temperature: 0, enable_thinking: false, user: "ann", odo: { collections: ["garden"] } });
  const step = answer.odo.steps.find((s) => s.stage === "retrieve");
  assert.equal(step.state, "done");
  assert.equal(step.detail.sources[0].document, "beans.md");
  assert.equal(step.detail.sources[0].collection, "garden");
  assert.match(step.detail.sources[0].snippet, /ninth of May/);
  assert.match(answer.choices[0].message.content, /ninth of May/);
});

test("policies hold, servers of tools are there, and the web is silent unless configured", async () => {
  const { data, denied } = await get("/v1/odo/tools");
  const names = data.map((tool) => tool.name);
  assert.ok(names.includes("calculator") && names.includes("clock") && names.includes("retrieve"), names.join());
  assert.ok(!names.includes("run_code") && !names.some((name) => name.startsWith("everything__")), names.join());
  assert.ok(denied.every((tool) => tool.policy === "deny" && !names.includes(tool.name)));
  assert.ok(denied.some((tool) => tool.name === "everything__echo"), "people see what is denied");
  assert.equal((await post("/v1/search", { query: "x" })).status, 400);
  const list = await post("/mcp", { jsonrpc: "2.0", id: 1, method: "tools/list" });
  assert.deepEqual(list.json.result.tools.map((tool) => tool.name).sort(), ["forget", "remember", "retrieve"]);
  const found = await post("/mcp", { jsonrpc: "2.0", id: 2, method: "tools/call", params: { name: "retrieve", arguments: { query: "beans of Orlo" } } });
  assert.match(found.json.result.content[0].text, /ninth of May/);
  assert.equal((await post("/mcp", { jsonrpc: "2.0", method: "notifications/initialized" })).status, 202);
  assert.equal((await post("/v1/odo/approvals/none", { allow: true })).status, 404);
  const status = await get("/v1/odo/status");
  assert.deepEqual(status.problems, {});
  assert.equal(status.web, false);
  const [running, broken] = status.mcp_servers;
  assert.deepEqual([running.name, running.state, running.policy, running.problem], ["everything", "running", "deny", ""]);
  assert.ok(running.tools.includes("everything__echo") && running.server, JSON.stringify(running));
  assert.deepEqual([broken.name, broken.state, broken.tools], ["broken", "failed", []]);
  assert.match(broken.problem, /exit code 3: no licence/);
  assert.ok(status.stages.tool.n >= 2);
  const metrics = await (await fetch(`${server.url}/metrics`)).text();
  const count = Number(/chimere_odo_stage_seconds_count\{stage="tool"\} (\d+)/.exec(metrics)[1]);
  assert.equal(Number(/chimere_odo_stage_seconds_bucket\{stage="tool",le="\+Inf"\} (\d+)/.exec(metrics)[1]), count);
  assert.ok(count >= 2);
});
