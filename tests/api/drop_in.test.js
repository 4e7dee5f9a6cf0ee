// drop_in.test.js  Requests as programs send them that were made for another orchestrator of this kind: its ports, paths,
// fields and answers (docs/odo.md, "In place of another"). The texts are ours.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";

import { NANO, readEvents, startServer } from "./server.js";

const KEY = "key-of-the-web-ui-0123456789";
const BEANS = "The beans of Orlo are planted on the ninth of May.";
let server, side, folder, searcher;

// A search server with one result. Pages on loopback are refused by the guard, so that the snippet stands for the page.
function startSearcher() {
  const listening = createServer((request, response) => {
    const query = new URL(request.url, "http://x").searchParams.get("q");
    const results = [{ title: "Beans", url: "http://127.0.0.1:9/beans", content: BEANS, engine: "one", engines: ["one"], score: 1 }];
    response.setHeader("Content-Type", "application/json");
    response.end(JSON.stringify({ query, number_of_results: 1, results, answers: [], infoboxes: [], suggestions: [], unresponsive_engines: [] }));
  });
  return new Promise((resolve) => listening.listen(0, "127.0.0.1", () => resolve(listening)));
}

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "chimere-drop-in-"));
  process.env.XDG_DATA_HOME = folder;
  await mkdir(join(folder, "tables"));
  await writeFile(join(folder, "herbs.txt"), "Sage and thyme of the north grow best beside a wall of red stone.\n");
  await promisify(execFile)(process.env.CHIMERE_BINARY, ["engram", "build", join(folder, "tables", "herbs.engram"), "--text", join(folder, "herbs.txt"), "--model", NANO]);
  searcher = await startSearcher();
  server = await startServer(NANO, ["--engram", join(folder, "tables"), "--api-key", KEY, "--odo-port", "0", "--searxng", `http://127.0.0.1:${searcher.address().port}`]);
  side = /odo answers on (http:\S+)/.exec(server.log())?.[1];
});
after(async () => {
  await server?.stop();
  searcher?.close();
  await rm(folder, { recursive: true, force: true });
});

const headers = (more) => ({ "Content-Type": "application/json", Authorization: `Bearer ${KEY}`, ...more });
const get = async (path) => {
  const answer = await fetch(server.url + path, { headers: headers() });
  return { status: answer.status, json: await answer.json() };
};
const send = (path, body, more, base = server.url) => fetch(base + path, { method: "POST", headers: headers(more), body: JSON.stringify(body) });
const post = async (path, body, more, base) => {
  const answer = await send(path, body, more, base);
  return { status: answer.status, headers: answer.headers, json: await answer.json() };
};
const question = (content, more) => ({ model: "odo", messages: [{ role: "user", content }], temperature: 0, max_tokens: 60, chat_template_kwargs: { enable_thinking: false }, ...more });

test("a search tool: sources with title, url, snippet and score, their number and the time", async () => {
  const { status, json } = await post("/v1/search", { query: "When are the beans of Orlo planted?", depth: "quick" });
  assert.equal(status, 200);
  assert.equal(json.n_sources, 1);
  assert.equal(typeof json.search_ms, "number");
  assert.equal(typeof json.synthesis, "string");
  const [source] = json.sources;
  assert.deepEqual([source.title, source.url, typeof source.score], ["Beans", "http://127.0.0.1:9/beans", "number"]);
  assert.match(source.snippet, /ninth of May/);
});

test("the same tool without that path: a chat with a hint", async () => {
  for (const hint of [true, { query: "beans of Orlo", depth: "quick" }]) {
    const { status, json } = await post("/v1/chat/completions", question("When are the beans of Orlo planted?", { model: "odo/default", chimere_search: hint }));
    assert.equal(status, 200);
    assert.equal(json.odo.steps.find((step) => step.stage === "web").state, "done", JSON.stringify(hint));
    assert.match(json.choices[0].message.content, /ninth of May/);
  }
  const without = await post("/v1/chat/completions", question("When are the beans of Orlo planted?", { model: "odo/default", chimere_search: false }));
  assert.ok(!without.json.odo.steps.some((step) => step.stage === "web"));
});

test("a tool of memory: what is kept about a text, and how much there is", async () => {
  assert.equal((await post("/v1/engram/accept", { text: BEANS })).status, 200);
  const { status, json } = await post("/v1/engram/query", { query: "When are the beans of Orlo planted?", domain: "notes", top_k: 3, min_similarity: 0.1 });
  assert.equal(status, 200);
  assert.equal(json.entries[0].text, BEANS);
  for (const field of ["text", "domain", "similarity", "prompt_hash"]) assert.ok(field in json.entries[0], field);
  assert.equal(typeof json.method, "string");
  const stats = (await get("/stats")).json;
  assert.ok(stats.engram.users >= 1 && stats.engram.bytes > 0);
});

test("a pipe for code: a stream whose deltas have thought and text, and whose end names the route", async () => {
  const asked = { ...question("Write a Python function that adds two numbers.", { stream: true, max_tokens: 200 }), chat_template_kwargs: { enable_thinking: true } };
  const response = await send("/v1/chat/completions", asked);
  assert.equal(response.status, 200);
  const events = await readEvents(response);
  assert.equal(events.at(-1).data, "[DONE]");
  const chunks = events.slice(0, -1).map((event) => event.data);
  assert.ok(chunks.every((chunk) => Array.isArray(chunk.choices)));
  const text = (field) => chunks.map((chunk) => chunk.choices[0]?.delta?.[field] ?? "").join("");
  assert.ok(text("reasoning_content").length > 0);
  assert.ok(text("content").length > 0);
  assert.equal(chunks.at(-1).x_odo_route, "code");
});

test("routes are pinned, files and modes are read, tables are named, and a header for a scorer changes nothing", async () => {
  for (const pin of [{ odo_route: "medical" }, { x_odo_route: "medical" }]) {
    const { json } = await post("/v1/chat/completions", question("Hello", { ...pin, mode: "fast", pipeline: false }));
    assert.deepEqual([json.x_odo_route, json.odo.route, json.odo.mode], ["medical", "medical", "fast"]);
  }
  assert.equal((await post("/v1/chat/completions", question("Hello", { odo_route: "nothing" }))).status, 400);
  const files = await post("/v1/chat/completions", question("What is this?", { odo_metadata: { files: [{ name: "main.py" }] }, pipeline: false }));
  assert.equal(files.json.x_odo_route, "code");

  const herbs = (more) => post("/v1/completions", { model: "nano", prompt: "Sage and thyme of the north grow best", temperature: 0, max_tokens: 8, ...more });
  const named = await herbs({ engram: { tables: ["herbs"], alpha: 2 } });
  for (const engram_table of ["herbs", "~/.chimere/data/engram/herbs.engr", "tables/herbs.engram"]) {
    const { status, json } = await herbs({ engram_table, engram_alpha: 2 });
    assert.deepEqual([status, json.choices[0].text], [200, named.json.choices[0].text], engram_table);
  }
  assert.notEqual(named.json.choices[0].text, (await herbs({})).json.choices[0].text, "the table takes part");
  assert.equal((await herbs({ engram_table: "nothing" })).status, 400);
  assert.equal((await herbs({ engram_table: "herbs", engram: { tables: [] } })).status, 400);
  assert.equal((await herbs({ engram_alpha: 3 })).status, 400);

  const [plain, canary] = await Promise.all([post("/v1/chat/completions", question("Hello")), post("/v1/chat/completions", question("Hello"), { "x-prm-canary": "1" })]);
  assert.equal(canary.json.choices[0].message.content, plain.json.choices[0].message.content);
  const bare = await post("/v1/chat/completions", question("Hello", { model: "nano", odo_route: "medical", chimere_search: true }));
  assert.match(bare.headers.get("x-chimere-ignored"), /odo_route, chimere_search/);
  assert.equal(bare.json.x_odo_route, undefined);
});

test("what a command line asks for: health, routes, stats, skills, models, at both ports", async () => {
  const health = await get("/health");
  assert.deepEqual([health.json.status, health.json.engine], ["ok", "chimere"]);
  const routes = (await get("/routes")).json.routes;
  for (const name of ["code", "medical", "security", "research", "default"]) {
    for (const field of ["name", "thinking", "engram", "lora"]) assert.ok(field in routes[name], `${name}.${field}`);
  }
  const { last_24h: day } = (await get("/stats")).json;
  assert.ok(day.total >= 5 && day.routes.medical >= 2 && day.avg_ms > 0, JSON.stringify(day));
  assert.deepEqual((await get("/skill/list")).json, { skills: [] });
  assert.deepEqual((await get("/skill/match?text=anything")).json, { skills: [] });
  assert.equal((await get("/skill/get/none")).status, 404);
  const models = (await get("/v1/models")).json.data.map((model) => model.id);
  assert.ok(models.includes("odo"));
  assert.ok(side, server.log());
  const other = await post("/v1/chat/completions", question("Hello", { model: "chimere" }), {}, side);
  assert.ok(other.json.odo, "at the second port the orchestrator answers for the model");
});
