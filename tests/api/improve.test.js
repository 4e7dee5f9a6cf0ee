// improve.test.js  A person corrects answers; the server learns from that beside its work, proves it, uses it without a
// restart, goes back, and forgets. With the model in the box.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";

import { startServer } from "./server.js";

const run = promisify(execFile);
const LIMIT_MS = 240_000;
const CONVERSATIONS = 44;
let folder, server;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "chimere-improve-"));
  server = await startServer(undefined, ["--journal", join(folder, "journal.db"), "--learn", "on", "--improve-idle", "0"]);
});
after(async () => {
  await server?.stop();
  if (folder) await rm(folder, { recursive: true });
});

const get = async (path) => (await fetch(server.url + path)).json();
const wish = (i) => `Ahoy, gentle captain of the Zorblax line: ship ${(i * 37) % 101} lies in harbour ${(i * 53) % 97} and waits for the wind of the northern sea.`;

async function ask(user, content, max_tokens = 2) {
  const { status, headers, body } = await server.json("/v1/chat/completions", {
    messages: [{ role: "user", content }], temperature: 0, max_tokens, enable_thinking: false, user,
  });
  assert.equal(status, 200);
  return { id: headers.get("x-request-id"), text: body.choices[0].message.content };
}

async function until(look) {
  const end = Date.now() + LIMIT_MS;
  for (;;) {
    const seen = await look();
    if (seen) return seen;
    assert.ok(Date.now() < end, "it took too long");
    await sleep(250);
  }
}

// "T": stopped by a signal.
const stateOf = async (pid) => /State:\s+(\w)/.exec(await readFile(`/proc/${pid}/status`, "utf8"))[1];
async function jobOf(pid) {
  for (const entry of await readdir("/proc")) {
    if (!/^\d+$/.test(entry)) continue;
    const status = await readFile(`/proc/${entry}/status`, "utf8").catch(() => "");
    if (new RegExp(`PPid:\\s+${pid}\\b`).test(status) && status.startsWith("Name:\tchimere-improve")) return entry;
  }
  return null;
}

test("corrections become a table that is proven, served, rolled back and forgotten", async () => {
  for (let i = 0; i < CONVERSATIONS; i++) {
    const { id } = await ask("ann", `Where is ship number ${i} of the Zorblax line?`);
    const { status } = await server.json("/v1/feedback", { user: "ann", request_id: id, correction: wish(i) });
    assert.equal(status, 200);
  }
  assert.deepEqual((await get("/v1/improve?user=ann")).in_use, []);
  assert.equal((await server.json("/v1/improve/runs", { user: "ann", kind: "engram" })).status, 202);
  assert.equal((await server.json("/v1/improve/runs", { user: "ann", kind: "dreams" })).status, 400);

  // While somebody is answered the job stands still.
  const job = await until(() => jobOf(server.pid));
  const answer = ask("bob", "Tell me a long story about the sea.", 64);
  await until(async () => (await get("/v1/improve?user=ann")).running?.paused !== false);
  const state = await stateOf(job).catch(() => "gone");
  assert.ok(state === "T" || state === "gone", state);
  await answer;

  const made = await until(async () => (await get("/v1/improve?user=ann")).runs.find((one) => one.state !== "running"));
  assert.equal(made.state, "proven", JSON.stringify(made));
  assert.ok(made.verdict.gain.low > 0);
  assert.ok(made.learned_from.length > 20);

  // In use at once, for its owner alone, and the journal says so.
  assert.equal((await get("/v1/improve?user=ann")).in_use[0].versions[0].run, made.id);
  assert.deepEqual((await get("/v1/improve?user=bob")).in_use, []);
  assert.equal((await fetch(`${server.url}/v1/improve/runs/${made.id}?user=bob`)).status, 404);
  const learned = await ask("ann", "Where is ship number 7 of the Zorblax line?", 8);
  const kept = await get(`/v1/learning/answers/${learned.id}?user=ann`);
  assert.deepEqual(kept.artefacts, [`engram@${made.artefact.slice(0, 12)}`]);

  assert.equal((await server.json("/v1/improve/rollback", { user: "bob", kind: "engram" })).status, 404);
  assert.equal((await server.json("/v1/improve/promote", { user: "bob", run: made.id })).status, 404);
  assert.deepEqual((await server.json("/v1/improve/rollback", { user: "ann", kind: "engram" })).body.in_use, []);
  const plain = await ask("ann", "Where is ship number 7 of the Zorblax line?", 8);
  assert.deepEqual((await get(`/v1/learning/answers/${plain.id}?user=ann`)).artefacts, []);
  assert.equal((await server.json("/v1/improve/promote", { user: "ann", run: made.id })).body.in_use.length, 1);

  const report = await (await fetch(`${server.url}/v1/improve/report?user=ann`)).text();
  assert.match(report, /\| engram \|.*\| proven \|/);
  const listed = await run(process.env.CHIMERE_BINARY, ["improve", "list", "--dir", join(folder, "improve")]);
  assert.match(listed.stdout, new RegExp(`in use\\s+ann\\s+engram.*${made.id}`));

  // One conversation, then everything.
  const one = await server.json("/v1/improve/forget", { user: "ann", conversation: made.learned_from[0] });
  assert.equal(one.status, 200, JSON.stringify(one.body));
  assert.equal(one.body.rebuilt, 1);
  const anew = (await get("/v1/improve?user=ann")).in_use[0].versions[0].artefact;
  assert.notEqual(anew, made.artefact);
  assert.deepEqual(await readdir(join(folder, "improve", "artefacts")), [anew]);
  assert.equal((await server.json("/v1/improve/forget", { user: "ann", all: true })).status, 200);
  assert.deepEqual(await readdir(join(folder, "improve", "artefacts")), []);
  assert.deepEqual((await get("/v1/improve?user=ann")).runs, []);
  const metrics = await (await fetch(`${server.url}/metrics`)).text();
  assert.match(metrics, /chimere_improve_jobs_total\{result="started"\} [1-9]/);
});

test("what learns nothing says so", async () => {
  const off = await startServer(undefined, ["--learn", "off"]);
  try {
    assert.equal((await fetch(`${off.url}/v1/improve`)).status, 403);
  } finally {
    await off.stop();
  }
});
