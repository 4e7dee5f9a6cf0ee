// batches.test.js  The official openai client uploads requests, has them run while nobody else asks, and reads the results.
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import OpenAI, { toFile } from "openai";

import { startServer } from "./server.js";

const LIMIT_MS = 60_000;
const path = "/v1/chat/completions";
const question = (content) => ({ model: "nano", messages: [{ role: "user", content }], temperature: 0, max_tokens: 8 });
const line = (custom_id, body, url = path) => JSON.stringify({ custom_id, method: "POST", url, body });

let server, client, folder;

async function start() {
  server = await startServer();
  client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "none", maxRetries: 0 });
}

before(async () => {
  // What this test leaves behind is nobody's.
  folder = await mkdtemp(join(tmpdir(), "chimere-batches-"));
  process.env.XDG_DATA_HOME = folder;
  await start();
});
after(async () => {
  await server?.stop();
  await rm(folder, { recursive: true, force: true });
});

async function create(lines, endpoint = path) {
  const file = await client.files.create({ file: await toFile(Buffer.from(lines.join("\n")), "in.jsonl"), purpose: "batch" });
  assert.equal(file.object, "file");
  assert.equal(file.filename, "in.jsonl");
  assert.equal(file.bytes, Buffer.byteLength(lines.join("\n")));
  return client.batches.create({ input_file_id: file.id, endpoint, completion_window: "24h", metadata: { for: "a test" } });
}

async function ended(id) {
  const limit = Date.now() + LIMIT_MS;
  for (;;) {
    const batch = await client.batches.retrieve(id);
    if (["completed", "failed", "cancelled", "expired"].includes(batch.status)) return batch;
    assert.ok(Date.now() < limit, `still ${batch.status}`);
    await sleep(200);
  }
}

const results = async (id) =>
  (await (await client.files.content(id)).text())
    .trim()
    .split("\n")
    .map((text) => JSON.parse(text));

test("requests of a file are answered as those of people", async () => {
  const created = await create([
    line("one", question("Hello")),
    line("two", question("What is 2 + 3?")),
    line("wrong", { ...question("Hello"), temperature: -1 }),
  ]);
  assert.equal(created.object, "batch");
  assert.equal(created.status, "validating");
  const batch = await ended(created.id);
  assert.equal(batch.status, "completed");
  assert.deepEqual(batch.request_counts, { total: 3, completed: 2, failed: 1 });
  assert.deepEqual(batch.metadata, { for: "a test" });
  const lines = await results(batch.output_file_id);
  assert.deepEqual(lines.map((result) => result.custom_id).sort(), ["one", "two"]);
  for (const { custom_id, response, error } of lines) {
    assert.equal(response.status_code, 200);
    assert.equal(error, null);
    const same = await client.chat.completions.create(question(custom_id === "one" ? "Hello" : "What is 2 + 3?"));
    assert.equal(response.body.choices[0].message.content, same.choices[0].message.content);
  }
  const [failed] = await results(batch.error_file_id);
  assert.equal(failed.custom_id, "wrong");
  assert.equal(failed.response.status_code, 400);
  assert.match(failed.error.message, /temperature/);

  const files = [];
  for await (const file of client.files.list()) files.push(file);
  assert.deepEqual(files.map((file) => file.purpose).sort(), ["batch", "batch_output", "batch_output"]);
  const batches = [];
  for await (const one of client.batches.list({ limit: 1 })) batches.push(one.id);
  assert.deepEqual(batches, [batch.id]);
  assert.equal((await client.files.retrieve(batch.output_file_id)).id, batch.output_file_id);
  assert.equal((await client.files.delete(batch.output_file_id)).deleted, true);
  await assert.rejects(client.files.retrieve(batch.output_file_id), OpenAI.NotFoundError);
});

test("vectors, and what is no batch", async () => {
  const url = "/v1/embeddings";
  const batch = await ended((await create([line("a", { model: "nano", input: "A dog" }, url)], url)).id);
  const [result] = await results(batch.output_file_id);
  assert.ok(result.response.body.data[0].embedding.length > 0);
  const failed = await ended((await create(["{}"])).id);
  assert.equal(failed.status, "failed");
  assert.match(failed.errors.data[0].message, /custom_id/);
  await assert.rejects(create([line("a", {})], "/v1/status"), OpenAI.BadRequestError);
  await assert.rejects(client.batches.retrieve("batch_none"), OpenAI.NotFoundError);
});

test("a batch outlives the server, and can be cancelled", async () => {
  const long = { ...question("Tell me a story."), max_tokens: 200, ignore_eos: true };
  const created = await create([1, 2, 3, 4, 5].map((n) => line(`${n}`, long)));
  while ((await client.batches.retrieve(created.id)).status === "validating") await sleep(100);
  await server.stop();
  await start();
  const batch = await ended(created.id);
  assert.deepEqual(batch.request_counts, { total: 5, completed: 5, failed: 0 });
  assert.equal((await results(batch.output_file_id)).length, 5);
  const other = await create(Array.from({ length: 40 }, (_, n) => line(`${n}`, long)));
  await client.batches.cancel(other.id);
  assert.equal((await ended(other.id)).status, "cancelled");
});
