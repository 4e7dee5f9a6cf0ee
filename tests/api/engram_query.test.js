// engram_query.test.js  /v1/engram/query: what memory has about a text, for its owner alone.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";

import { NANO, startServer } from "./server.js";

const ANN = "key-of-ann-0123456789", BOB = "key-of-bob-0123456789";
const FACT = "The beans of Orlo are planted on the ninth of May.";
let server, folder;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "chimere-query-"));
  process.env.XDG_DATA_HOME = folder;
  await mkdir(join(folder, "tables"));
  await writeFile(join(folder, "herbs.txt"), "Sage and thyme of the north grow best beside a wall of red stone.\n");
  await promisify(execFile)(process.env.CHIMERE_BINARY, ["engram", "build", join(folder, "tables", "herbs.engram"), "--text", join(folder, "herbs.txt"), "--model", NANO]);
  server = await startServer(NANO, ["--engram", join(folder, "tables"), "--api-key", ANN, "--api-key", BOB]);
});
after(async () => {
  await server?.stop();
  await rm(folder, { recursive: true, force: true });
});

const post = async (path, body, key) => {
  const answer = await server.post(path, body, { headers: { Authorization: `Bearer ${key}` } });
  return { status: answer.status, json: await answer.json() };
};

test("a note is found by its words, by the key that taught it alone", async () => {
  const query = { query: "When are the beans of Orlo planted?" };
  assert.deepEqual((await post("/v1/engram/query", query, ANN)).json.entries, []);
  assert.equal((await post("/v1/engram/accept", { text: FACT }, ANN)).status, 200);
  const { status, json } = await post("/v1/engram/query", query, ANN);
  assert.equal(status, 200);
  assert.equal(json.method, "words+ngrams");
  const note = json.entries.find((entry) => entry.domain === "notes");
  assert.equal(note.text, FACT);
  assert.ok(note.similarity > 0 && note.similarity <= 1);
  assert.match(note.prompt_hash, /^[0-9a-f]{16}$/);
  for (const more of [{}, { domain: "notes" }, { domain: "own" }, { user: "ann" }, { user: "key-1" }]) {
    const others = await post("/v1/engram/query", { ...query, ...more }, BOB);
    assert.deepEqual([others.status, others.json.entries], [200, []], JSON.stringify(more));
  }
  const best = json.entries[0].similarity;
  assert.ok((await post("/v1/engram/query", { ...query, min_similarity: best }, ANN)).json.entries.length >= 1);
  assert.deepEqual((await post("/v1/engram/query", { query: "trains to Lisbon", min_similarity: 0.9 }, ANN)).json.entries, []);
});

test("a table for all says what followed the end of the text", async () => {
  const { json } = await post("/v1/engram/query", { query: "Do sage and thyme of the north grow best", domain: "herbs" }, BOB);
  assert.equal(json.method, "ngrams");
  assert.equal(json.entries.length, 1);
  assert.equal(json.entries[0].domain, "herbs");
  assert.match(json.entries[0].text, /grow best beside a wall of red stone/);
});

test("what can not be asked is refused with the reason", async () => {
  for (const [body, status, words] of [
    [{}, 400, /query/],
    [{ query: "x".repeat(5000) }, 400, /4096 bytes, found one of 5000/],
    [{ query: "x", top_k: 0 }, 400, /top_k/],
    [{ query: "x", min_similarity: 2 }, 400, /min_similarity/],
    [{ query: "x", domain: "nothing" }, 404, /notes, own.*herbs.*found 'nothing'/],
    [{ query: "x", domain: "users/key-1" }, 404, /expected one of/],
  ]) {
    const answer = await post("/v1/engram/query", body, ANN);
    assert.equal(answer.status, status, JSON.stringify(answer.json));
    assert.match(answer.json.error.message, words);
  }
  assert.equal((await server.post("/v1/engram/query", { query: "x" })).status, 401);
});
