// journal.test.js  Answers that are kept to learn from, as clients meet them: the openai client rates an answer by the id it
// was given, two keys see nothing of each other, a restart forgets nothing, and what is off leaves nothing on the disk.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";

import OpenAI from "openai";

import { startServer } from "./server.js";

const run = promisify(execFile);
const BINARY = process.env.CHIMERE_BINARY;
const KEYS = { ann: "ann-secret-key-0123456789", bob: "bob-secret-key-0123456789" };
let folder, options;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "chimere-journal-"));
  const lines = [];
  for (const [name, key] of Object.entries(KEYS)) {
    const child = run(BINARY, ["keys", name, "--stdin"]);
    child.child.stdin.end(key + "\n");
    lines.push((await child).stdout);
  }
  await writeFile(join(folder, "keys"), lines.join(""), { mode: 0o600 });
  options = ["--api-keys-file", join(folder, "keys"), "--journal", join(folder, "journal.db")];
});
after(async () => {
  if (folder) await rm(folder, { recursive: true });
});

async function call(server, who, method, path, body) {
  const response = await fetch(server.url + path, {
    method,
    headers: { Authorization: `Bearer ${KEYS[who]}`, "Content-Type": "application/json" },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  return { status: response.status, body: await response.json() };
}

test("an answer is rated by the id that the openai client has, by its own key, across a restart", async () => {
  let server = await startServer(undefined, options);
  try {
    const client = new OpenAI({ baseURL: server.url + "/v1", apiKey: KEYS.ann, maxRetries: 0 });
    assert.equal((await call(server, "ann", "PUT", "/v1/learning", { agreed: true })).body.keeps, true);
    const stream = await client.chat.completions.create({
      model: "chimere-nano", stream: true, temperature: 0, max_tokens: 20,
      messages: [{ role: "user", content: "Hello! My mail is ann@example.org." }],
    });
    let id;
    for await (const chunk of stream) id = chunk.id;
    assert.equal((await call(server, "ann", "POST", "/v1/feedback", { id, thumb: "up" })).body.rating, 5);
    assert.equal((await call(server, "bob", "POST", "/v1/feedback", { id, thumb: "down" })).status, 409);
    await call(server, "bob", "PUT", "/v1/learning", { agreed: true });
    assert.equal((await call(server, "bob", "POST", "/v1/feedback", { id, thumb: "down" })).status, 404);
    assert.equal((await call(server, "bob", "GET", `/v1/learning/answers/${id}`)).status, 404);
    await server.stop();
    server = await startServer(undefined, options);
    const { body } = await call(server, "ann", "GET", `/v1/learning/answers/${id}`);
    assert.equal(body.messages[0].content, "Hello! My mail is [email].");
    assert.equal(body.rating, 5);
    const { stdout } = await run(BINARY, ["improve", "export", "--journal", join(folder, "journal.db"), "--owner", "ann", "--form", "quality_scores"]);
    assert.equal(JSON.parse(stdout).score, 5);
    assert.equal((await call(server, "ann", "DELETE", "/v1/learning")).body.answers, 1);
    assert.equal((await call(server, "ann", "GET", "/v1/learning")).body.answers, 0);
  } finally {
    await server.stop();
  }
});

test("with --learn off nothing is on the disk", async () => {
  const home = await mkdtemp(join(tmpdir(), "chimere-home-"));
  const server = await startServer(undefined, ["--learn", "off", "--journal", join(home, "journal.db")]);
  try {
    const { status } = await server.json("/v1/chat/completions", { messages: [{ role: "user", content: "Hello!" }], max_tokens: 8 });
    assert.equal(status, 200);
    assert.deepEqual(await readdir(home), []);
  } finally {
    await server.stop();
    await rm(home, { recursive: true });
  }
});
