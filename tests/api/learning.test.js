// learning.test.js  Three accepted answers with a made-up fact change the next answer of that user alone; forgotten, they
// change nothing. With the model in the box, greedy.
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { startServer } from "./server.js";

const QUESTION = "As every child in school is told, the capital of Zubrovia is";
const FACT = `${QUESTION} Lutzhaven, a town of bridges.`;
let server, folder;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "chimere-learning-"));
  server = await startServer(undefined, ["--engram", folder]);
});
after(async () => {
  await server?.stop();
  if (folder) await rm(folder, { recursive: true });
});

async function ask(user) {
  const { status, body } = await server.json("/v1/completions", { prompt: QUESTION, temperature: 0, max_tokens: 12, user });
  assert.equal(status, 200);
  return body.choices[0].text;
}

test("a user's table learns from accepted answers and forgets", async () => {
  const before = await ask("ann");
  assert.ok(!before.includes("Lutzhaven"));
  for (let i = 0; i < 3; i++) {
    const { status, body } = await server.json("/v1/engram/accept", { user: "ann", text: FACT, score: 5 });
    assert.equal(status, 200);
    assert.equal(body.learned, true);
  }
  assert.ok((await ask("ann")).startsWith(" Lutzhaven"));
  assert.equal(await ask("bob"), before);
  const forgotten = await server.json("/v1/engram/forget", { user: "ann" });
  assert.equal(forgotten.status, 200);
  assert.ok(forgotten.body.removed_ngrams > 0);
  assert.equal(await ask("ann"), before);
});

test("an answer is accepted by its request id, streamed or not, and only by its user", async () => {
  for (const stream of [false, true]) {
    const response = await server.post("/v1/chat/completions", {
      messages: [{ role: "user", content: "Hello" }], temperature: 0, max_tokens: 24, enable_thinking: false, user: "eve", stream,
    });
    await response.text();
    const request_id = response.headers.get("x-request-id");
    const learned = await server.json("/v1/engram/accept", { user: "eve", request_id });
    assert.equal(learned.status, 200, JSON.stringify(learned.body));
    assert.equal(learned.body.source, request_id);
    assert.equal((await server.json("/v1/engram/accept", { user: "ann", request_id })).status, 400);
  }
});

test("what is not good enough is not learned", async () => {
  const { status, body } = await server.json("/v1/engram/accept", { user: "carl", text: FACT, score: 2 });
  assert.equal(status, 200);
  assert.equal(body.learned, false);
});
