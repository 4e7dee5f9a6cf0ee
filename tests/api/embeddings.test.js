// embeddings.test.js  The official openai client asks for vectors: of an encoder beside the model, and of the model itself.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";

import OpenAI from "openai";

import { ENCODER, NANO, startServer } from "./server.js";

let server, client;
const texts = ["The dog sleeps.", "A dog is asleep.", "Prices rose by three per cent."];

before(async () => {
  server = await startServer(undefined, ["--embedding-model", ENCODER]);
  client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "none", maxRetries: 0 });
});
after(() => server?.stop());

const length = (vector) => Math.sqrt(vector.reduce((sum, x) => sum + x * x, 0));
const close = (a, b) => a.length === b.length && a.every((x, i) => Math.abs(x - b[i]) < 1e-6);

test("a list of texts has a vector each, at length 1", async () => {
  // The client asks for base64 by itself and turns it into numbers.
  const answer = await client.embeddings.create({ model: "bge", input: texts });
  assert.equal(answer.object, "list");
  assert.deepEqual(answer.data.map((entry) => entry.index), [0, 1, 2]);
  for (const { embedding } of answer.data) {
    assert.equal(embedding.length, 64);
    assert.ok(Math.abs(length(embedding) - 1) < 1e-5);
  }
  assert.equal(answer.usage.prompt_tokens, answer.usage.total_tokens);
});

test("floats and base64 are the same, alone and together", async () => {
  const together = await client.embeddings.create({ model: "bge", input: texts });
  for (const [i, input] of texts.entries()) {
    const alone = await client.embeddings.create({ model: "bge", input, encoding_format: "float" });
    assert.ok(close(alone.data[0].embedding, together.data[i].embedding));
  }
});

test("fewer dimensions, token ids, and what is wrong", async () => {
  const short = await client.embeddings.create({ model: "bge", input: texts[0], dimensions: 16 });
  assert.equal(short.data[0].embedding.length, 16);
  const ids = await client.embeddings.create({ model: "bge", input: [[2, 1426, 739, 3], [2, 3]] });
  assert.equal(ids.usage.prompt_tokens, 6);
  await assert.rejects(client.embeddings.create({ model: "bge", input: [] }), OpenAI.BadRequestError);
  await assert.rejects(
    client.embeddings.create({ model: "bge", input: texts[0], dimensions: 65 }),
    (error) => error.status === 400 && error.param === "dimensions",
  );
});

test("ids and texts in one list are one text", async () => {
  const [{ body: one }, { body: both }] = await Promise.all([
    server.json("/v1/embeddings", { input: "Hello world" }),
    server.json("/v1/embeddings", { input: ["Hello world", [2, "Hello world", 3], [2, "Hello", 1216, 1511, 3], { prompt_string: "Hello world" }] }),
  ]);
  assert.equal(both.data.length, 4);
  for (const { embedding } of both.data) assert.deepEqual(embedding, one.data[0].embedding);
  const mixed = await server.json("/v1/embeddings", { input: [2, "Hello world", 3] });
  assert.deepEqual(mixed.body.data[0].embedding, one.data[0].embedding);
  // A number behind texts is taken for a mistake.
  assert.equal((await server.json("/v1/embeddings", { input: ["Hello", 3] })).status, 400);
});

test("chats and embeds at the same time", async () => {
  const question = { model: "nano", messages: [{ role: "user", content: "Hello" }], temperature: 0, max_tokens: 16 };
  const alone = await client.chat.completions.create(question);
  const both = await Promise.all([
    client.chat.completions.create(question),
    ...texts.map((input) => client.embeddings.create({ model: "bge", input })),
  ]);
  assert.equal(both[0].choices[0].message.content, alone.choices[0].message.content);
  assert.equal(both.length, 4);
});

test("ranks documents", async () => {
  const { status, body } = await server.json("/v1/rerank", { query: texts[0], documents: texts, top_n: 2 });
  assert.equal(status, 200);
  assert.equal(body.results.length, 2);
  assert.equal(body.results[0].index, 0);
  assert.ok(body.results[0].relevance_score >= body.results[1].relevance_score);
});

test("the model that chats embeds when there is no other", async () => {
  const alone = await startServer(undefined, ["--embedding-model", "none"]);
  try {
    const { status, body } = await alone.json("/v1/embeddings", { input: [texts[0], texts[0], texts[2]] });
    assert.equal(status, 200);
    assert.deepEqual(body.data[0].embedding, body.data[1].embedding);
    assert.notDeepEqual(body.data[0].embedding, body.data[2].embedding);
  } finally {
    await alone.stop();
  }
});

const documents = {
  "garden.md": "Tomatoes want a sunny wall and water every evening.",
  "doctor.md": "High blood pressure is treated with tablets that widen the vessels.",
  "letter.md": "The king sent a messenger over the mountains to his brother.",
};
const box = join(dirname(NANO ?? "."), "chimere-embed.gguf");

async function withCollection(options, visit) {
  const folder = await mkdtemp(join(tmpdir(), "chimere-embed-"));
  const plain = await startServer(undefined, ["--collections-db", join(folder, "collections.db"), ...options]);
  try {
    for (const [name, text] of Object.entries(documents)) {
      assert.equal((await plain.json("/v1/collections/mine/documents", { name, text })).status, 200);
    }
    await visit(plain, (query, mode = "hybrid") => plain.json("/v1/collections/mine/search", { query, mode, k: 3 }));
  } finally {
    await plain.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

test("a server started plain finds what shares no word with the question", { skip: !existsSync(box) }, async () => {
  await withCollection([], async (plain, search) => {
    const { status, body } = await search("hypertension drugs");
    assert.equal(status, 200);
    assert.deepEqual([body.data[0].document, body.data[0].ranks], ["doctor.md", { words: 0, vectors: 1 }]);
    const { data } = await (await fetch(`${plain.url}/v1/models`)).json();
    const embedder = data.find((model) => model.id === "chimere-embed");
    assert.deepEqual(embedder.capabilities, ["embedding"]);
    const vectors = async (model) => (await plain.json("/v1/embeddings", { model, input: texts[0] })).body;
    assert.equal((await vectors("text-embedding-3-small")).model, "chimere-embed");
    assert.equal((await vectors("chimere-embed")).data[0].embedding.length, embedder.dimensions);
    assert.equal((await vectors(data[0].id)).model, data[0].id); // by its own name the model that chats still embeds
    const { memory } = await (await fetch(`${plain.url}/v1/status`)).json();
    assert.ok(memory.find(({ purpose }) => purpose === "embedding model").bytes > 1e6);
  });
});

test("without a model for embeddings documents are found by their words", async () => {
  await withCollection(["--embedding-model", "none"], async (plain, search) => {
    assert.deepEqual((await search("hypertension drugs")).body.data, []);
    assert.equal((await search("blood pressure tablets")).body.data[0].document, "doctor.md");
    assert.equal((await search("hypertension drugs", "vectors")).status, 415);
    const { data } = await (await fetch(`${plain.url}/v1/models`)).json();
    assert.ok(data.every((model) => model.id !== "chimere-embed"));
  });
});
