// odo_port.test.js  A second port at which the orchestrator answers for the model, with the same keys.
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";

import { NANO, startServer } from "./server.js";

const KEY = "key-of-the-port-test";
const hello = { messages: [{ role: "user", content: "Hello" }], temperature: 0, max_tokens: 8, enable_thinking: false };

let server, side, client, folder;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "chimere-odo-port-"));
  process.env.XDG_DATA_HOME = folder;
  server = await startServer(NANO, ["--odo-port", "0", "--api-key", KEY]);
  side = /odo answers on (http:\S+)/.exec(server.log())[1];
  client = new OpenAI({ baseURL: `${side}/v1`, apiKey: KEY, maxRetries: 0 });
});
after(async () => {
  await server?.stop();
  await rm(folder, { recursive: true, force: true });
});

const ask = async (url, fields, key = KEY) =>
  fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { "Content-Type": "application/json", Authorization: `Bearer ${key}` },
    body: JSON.stringify({ ...hello, ...fields }),
  });

test("no name, the model's name and a program's own are answered by odo there, and by the model at the main port", async () => {
  assert.notEqual(side, server.url);
  const bare = (await client.models.list()).data[0].id;
  for (const fields of [{}, { model: bare }, { model: "gpt-4" }]) {
    const run = await (await ask(side, fields)).json();
    assert.equal(run.model, "odo", JSON.stringify(fields));
    assert.equal(run.odo.route, "default");
    const plain = await (await ask(server.url, fields)).json();
    assert.equal(plain.model, bare);
    assert.equal(plain.odo, undefined);
    assert.equal(run.choices[0].message.content, plain.choices[0].message.content);
  }
  assert.equal((await (await ask(side, { model: "odo/fast" })).json()).odo.mode, "fast");
});

test("fields for runs are read there, and named as ignored at the main port", async () => {
  const there = await ask(side, { mode: "fast" });
  assert.equal(there.headers.get("x-chimere-ignored") ?? "", "");
  assert.equal((await there.json()).odo.mode, "fast");
  assert.match((await ask(server.url, { mode: "fast" })).headers.get("x-chimere-ignored"), /mode/);
  assert.equal((await ask(side, { odo: { mode: "slow" } })).status, 400);
});

test("other APIs do so, too, and streams stream", async () => {
  const anthropic = new Anthropic({ baseURL: side, apiKey: KEY, maxRetries: 0 });
  const message = await anthropic.messages.create({ model: "claude-x", max_tokens: 8, temperature: 0, messages: hello.messages });
  assert.equal(message.model, "odo");
  let steps = 0;
  for await (const chunk of await client.chat.completions.create({ ...hello, model: "gpt-4", stream: true })) steps += chunk.odo?.steps?.length ?? 0;
  assert.ok(steps > 0);
});

test("the port has the same keys and the same other paths", async () => {
  assert.equal((await ask(side, {}, "another")).status, 401);
  assert.equal((await fetch(`${side}/health`)).status, 200);
  assert.equal((await fetch(`${side}/v1/odo/status`)).status, 401);
  assert.equal((await fetch(`${side}/v1/odo/status`, { headers: { Authorization: `Bearer ${KEY}` } })).status, 200);
});
