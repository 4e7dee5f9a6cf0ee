// measure_improve.js  What a job that learns costs people who ask meanwhile: the time to the first token, in one server, with a
// job at work when the question comes and with the same job held still (SIGSTOP) from before it. Both in turn, with the same
// pauses between questions, so that what else the machine does falls on both alike. Beside the time that went by stand what
// the server's threads ran for it, and what the job's process ran between the question and the first token: that cannot be
// noise. A step is what the server's threads run for one token more. A job has the lowest priority; here it is given the server's,
// so that other work on the machine does not hide it.
//   CHIMERE_BINARY=... CHIMERE_MODEL=... node measure_improve.js [PAIRS]       100 without it
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { getPriority, setPriority, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { startServer } from "./server.js";

const PAIRS = Number(process.argv[2] ?? 100);
const ANSWERS = 60; // the job learns from
const RESUME_MS = 2_000; // a job goes on so long behind the last answer

// What the threads of a process have run, in ms; 0 of one that has ended.
function ranFor(pid) {
  try {
    const ns = (thread) => Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8").split(" ")[0]);
    return readdirSync(`/proc/${pid}/task`).reduce((sum, thread) => sum + ns(thread), 0) / 1e6;
  } catch {
    return 0;
  }
}

function childOf(pid) {
  for (const entry of readdirSync("/proc")) {
    if (!/^\d+$/.test(entry)) continue;
    try {
      const status = readFileSync(`/proc/${entry}/status`, "utf8");
      if (new RegExp(`PPid:\\s+${pid}\\b`).test(status) && status.startsWith("Name:\tchimere-improve")) return Number(entry);
    } catch {} // it has ended
  }
  return null;
}

const at = (values, share) => [...values].sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(share * values.length))];

const folder = await mkdtemp(join(tmpdir(), "chimere-measure-improve-"));
const options = ["--journal", join(folder, "journal.db"), "--learn", "on", "--improve-idle", "0"];
const server = await startServer(undefined, options);

const question = (content, more) => ({ messages: [{ role: "user", content }], temperature: 0, enable_thinking: false, ...more });

let taught = 0;
async function teach() {
  const n = taught++;
  const { headers } = await server.json("/v1/chat/completions", question(`Where is ship number ${n} of the Zorblax line?`, { max_tokens: 1, user: "ann" }));
  const correction = `Ahoy, gentle captain: ship ${(n * 37) % 101} lies in harbour ${(n * 53) % 97} and waits for the wind of the northern sea.`;
  assert.equal((await server.json("/v1/feedback", { user: "ann", request_id: headers.get("x-request-id"), correction })).status, 200);
}

// The process of a job that is computing, a new one where the last has ended.
async function jobAtWork() {
  for (;;) {
    const state = await (await fetch(`${server.url}/v1/improve?user=ann`)).json();
    const pid = childOf(server.pid);
    if (!state.running && state.waiting === 0) {
      await teach(); // what has not changed is not learned from again
      await server.json("/v1/improve/runs", { user: "ann", kind: "lora" });
    }
    if (pid && state.running && !state.running.paused) {
      setPriority(pid, getPriority(server.pid));
      const ran = ranFor(pid);
      await sleep(100);
      if (ranFor(pid) > ran) return pid;
    }
    await sleep(50);
  }
}

let asked = 0;
async function firstToken(job) {
  const serverRan = ranFor(server.pid), jobRan = ranFor(job);
  const begun = performance.now();
  const response = await server.post("/v1/chat/completions", question(`Tell me about the number ${asked++}.`, { max_tokens: 2, stream: true, user: "bob" }));
  const reader = response.body.getReader();
  let text = "";
  while (!/"content":"[^"]/.test(text)) {
    const { value, done } = await reader.read();
    if (done) break;
    text += Buffer.from(value).toString();
  }
  const seen = { wall: performance.now() - begun, server: ranFor(server.pid) - serverRan, job: ranFor(job) - jobRan };
  while (!(await reader.read()).done);
  return seen;
}

// Of one token more, by answers of 16 and of 48 tokens to the same question.
async function stepOf() {
  const cost = async (max_tokens) => {
    const ran = ranFor(server.pid);
    const { body } = await server.json("/v1/chat/completions", question("Tell me a long story about the sea.", { max_tokens, user: "bob", speculation: false }));
    return { ran: ranFor(server.pid) - ran, n: body.usage.completion_tokens };
  };
  const steps = [];
  for (let i = 0; i < 12; ++i) {
    const [short, long] = [await cost(16), await cost(48)];
    if (i >= 2 && long.n > short.n) steps.push((long.ran - short.ran) / (long.n - short.n));
  }
  return at(steps, 0.5);
}

try {
  const step = await stepOf();
  for (let i = 0; i < ANSWERS; ++i) await teach();
  const seen = { still: [], working: [] };
  for (let pair = -2; pair < PAIRS; ++pair) {
    for (const which of pair % 2 ? ["still", "working"] : ["working", "still"]) {
      const job = await jobAtWork();
      // The server lets it go on, as any other, behind the answer; once a second it does so without one, hence no wait.
      if (which === "still") process.kill(job, "SIGSTOP");
      const one = await firstToken(job);
      if (pair >= 0) seen[which].push(one); // two to warm up
      await sleep(RESUME_MS);
    }
  }
  console.log(`${PAIRS} questions each; a step is ${step.toFixed(2)} ms of processor time`);
  for (const kind of ["wall", "server", "job"]) {
    const row = (which) => [0.5, 0.9, 0.99].map((share) => at(seen[which].map((one) => one[kind]), share).toFixed(2)).join(", ");
    console.log(`${kind}, ms, p50, p90, p99: job held still ${row("still")}; at work ${row("working")}`);
  }
  const stolen = seen.working.map((one) => one.job);
  console.log(`the job ran for more than a step in ${stolen.filter((ms) => ms > step).length} of ${stolen.length}`);
} finally {
  await server.stop();
  await rm(folder, { recursive: true });
}
