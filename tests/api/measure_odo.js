// measure_odo.js  What the orchestrator costs those who do not need it: a greeting to the bare model of a server with it and
// of one without, and to `odo`. Pairs alternate, so that what else the machine does falls on both alike; two servers without it
// show what is left of that. Beside the time that went by stands what the server's threads ran.
//   CHIMERE_BINARY=... CHIMERE_MODEL=... node measure_odo.js [PAIRS]       20 without it
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { startServer } from "./server.js";

const PAIRS = Number(process.argv[2] ?? 20);
const GREETING = { messages: [{ role: "user", content: "Hello" }], temperature: 0, max_tokens: 32, logprobs: true, top_logprobs: 5 };

// What the threads of a server have run, in ms.
function ranFor({ pid }) {
  const ns = (thread) => Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8").split(" ")[0]);
  return readdirSync(`/proc/${pid}/task`).reduce((sum, thread) => sum + ns(thread), 0) / 1e6;
}

async function ask(server, model) {
  const ran = ranFor(server);
  const begun = performance.now();
  const response = await server.post("/v1/chat/completions", { ...GREETING, model });
  const text = await response.text();
  return { wall: performance.now() - begun, cpu: ranFor(server) - ran, body: JSON.parse(text) };
}

// What was computed: every token with its probabilities, to the last digit, and how many there were.
const computed = ({ choices, usage }) => ({ choices, read: usage.prompt_tokens, written: usage.completion_tokens });

function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length / 2;
  return (sorted[Math.ceil(middle) - 1] + sorted[Math.floor(middle)]) / 2;
}

async function compare(name, first, second) {
  const pairs = [];
  for (let pair = -2; pair < PAIRS; ++pair) {
    const order = pair % 2 ? [1, 0] : [0, 1];
    const answers = [];
    for (const which of order) answers[which] = await [first, second][which]();
    assert.deepEqual(computed(answers[0].body), computed(answers[1].body), name);
    if (pair >= 0) pairs.push(answers);  // two to warm up
  }
  console.log(`${name}: ${PAIRS} pairs, all answers equal`);
  for (const kind of ["wall", "cpu"]) {
    const of = (which) => median(pairs.map((answers) => answers[which][kind])).toFixed(2);
    const difference = median(pairs.map(([one, other]) => other[kind] - one[kind])).toFixed(2);
    console.log(`  ${kind}: ${of(0)} ms and ${of(1)} ms, median of the differences ${difference} ms`);
  }
}

const folder = await mkdtemp(join(tmpdir(), "chimere-measure-odo-"));
process.env.XDG_DATA_HOME = folder;
const [without, again, having] = [await startServer(undefined, ["--no-odo"]), await startServer(undefined, ["--no-odo"]), await startServer()];
await compare("the bare model, of two servers without the orchestrator", () => ask(without, "chimere-nano"), () => ask(again, "chimere-nano"));
await compare("the bare model, without and with the orchestrator beside it", () => ask(without, "chimere-nano"), () => ask(having, "chimere-nano"));
await compare("a greeting, to the bare model and to odo", () => ask(having, "chimere-nano"), () => ask(having, "odo"));
await Promise.all([without, again, having].map((server) => server.stop()));
await rm(folder, { recursive: true, force: true });
