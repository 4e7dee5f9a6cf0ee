// conversations.test.js  Agents as people write them with `openai` and `ai`: five streamed turns with `odo`, which calls the
// caller's tool, tools of the program and tools of an MCP server. What is counted are errors of the protocol
// (stream_audit.js) and of the clients; what the model says is its own affair.
//   CHIMERE_CONVERSATIONS=200 tests/api/run    so many conversations instead of the few of every run
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, before, test } from "node:test";

import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { jsonSchema, stepCountIs, streamText, tool } from "ai";
import { isStepCount, jsonSchema as jsonSchema7, streamText as streamText7, tool as tool7 } from "ai-7";
import OpenAI from "openai";

import { NANO, startServer } from "./server.js";
import { auditedFetch } from "./stream_audit.js";

const RUNS = Number(process.env.CHIMERE_CONVERSATIONS ?? 6);
const MOST_STEPS = 3;  // of one turn
const CITIES = ["Rome", "Oslo", "Lyon", "Paris", "Madrid", "Berlin", "Vienna", "London"];
const OURS = ["calculator", "clock", "everything__echo", "everything__get-sum"];

const DESCRIPTION = "Says what the weather is in a city.";
const PARAMETERS = {
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"],
  additionalProperties: false,
};

let server, folder;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "chimere-conversations-"));
  process.env.XDG_DATA_HOME = folder;
  const everything = resolve("node_modules/@modelcontextprotocol/server-everything/dist/index.js");
  const config = join(folder, "odo.yaml");
  await writeFile(config, `mcp_servers:\n  everything:\n    command: [${process.execPath}, ${everything}]\n    policy: allow\n`);
  server = await startServer(NANO, ["--odo-config", config]);
});
after(async () => {
  await server?.stop();
  await rm(folder, { recursive: true, force: true });
});

// Run by run other questions, half of them greedy, a third of them with thoughts.
function planOf(run) {
  const pick = (list) => list[run % list.length];
  return {
    // With two tools for sums the model may prefer either: every other run has the program's own alone.
    settings: { temperature: run % 2 ? 0.8 : 0, seed: run, thinks: run % 3 === 2, tools: run % 2 ? OURS : OURS.filter((name) => name !== "everything__get-sum") },
    turns: [
      { says: "Hello" },
      { says: `What is the weather in ${pick(CITIES)}?`, choice: run % 4 === 1 ? "required" : "auto" },
      { says: `What is ${1234 + 37 * run} * ${56 + run}?` },
      { says: `What is the sum of ${19 + run} and ${23 + run}?` },
      { says: `And what is the weather in ${pick(CITIES.slice(1))}?` },
    ],
    degrees: 11 + (run % 20),
  };
}

// Sums are for the tools, whose calls are what is looked at here.
const fieldsOf = ({ thinks, tools }) => ({ enable_thinking: thinks, ...(thinks && { thinking_budget: 60 }), odo: { tools, calculate: false } });

// The helper of `openai` that calls functions until there is an answer.
async function withOpenai(fetch, { settings, turns, degrees }) {
  const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "none", maxRetries: 0, fetch });
  let messages = [{ role: "system", content: "You help people." }];
  const asked = [];
  const weather = {
    type: "function",
    function: {
      name: "get_weather",
      description: DESCRIPTION,
      parameters: PARAMETERS,
      parse: JSON.parse,
      function: (given) => void asked.push(given) ?? `${degrees} degrees and sunny`,
    },
  };
  for (const { says, choice = "auto" } of turns) {
    const body = {
      model: "odo",
      stream: true,
      stream_options: { include_usage: true },
      messages: [...messages, { role: "user", content: says }],
      tools: [weather],
      max_tokens: 200,
      temperature: settings.temperature,
      seed: settings.seed,
      ...fieldsOf(settings),
    };
    const runner = client.chat.completions.runTools({ ...body, tool_choice: choice }, { maxChatCompletions: choice === "auto" ? MOST_STEPS : 1 });
    await runner.done();
    messages = runner.messages;
  }
  return asked;
}

// The same of `ai`, which has two forms of each of its names.
async function withAi(kit, model, { settings, turns, degrees }) {
  const messages = [];
  const asked = [];
  const weather = kit.tool({
    description: DESCRIPTION,
    inputSchema: kit.schema(PARAMETERS),
    execute: async (given) => void asked.push(given) ?? { degrees, sky: "sunny" },
  });
  for (const { says, choice } of turns) {
    messages.push({ role: "user", content: says });
    const result = kit.stream({
      model,
      [kit.system]: "You help people.",
      messages,
      tools: { get_weather: weather },
      stopWhen: kit.stopAfter(MOST_STEPS),
      prepareStep: ({ stepNumber }) => ({ toolChoice: stepNumber === 0 && choice ? choice : "auto" }),
      maxOutputTokens: 200,
      maxRetries: 0,
      temperature: settings.temperature,
      seed: settings.seed,
      providerOptions: { chimere: fieldsOf(settings) },
    });
    for await (const part of result.fullStream) if (part.type === "error") throw part.error;
    for (const step of await result.steps) {
      if (!(step.usage.inputTokens > 0)) throw new Error(`a step without usage: ${JSON.stringify(step.usage)}`);
    }
    messages.push(...(await result.response).messages);
  }
  return asked;
}

const AI_5 = { stream: streamText, tool, schema: jsonSchema, stopAfter: stepCountIs, system: "system" };
const AI_7 = { stream: streamText7, tool: tool7, schema: jsonSchema7, stopAfter: isStepCount, system: "instructions" };

const CLIENTS = {
  openai: (audit, plan) => withOpenai(audit.fetch, plan),
  "ai, openai-compatible": (audit, plan) => {
    const provider = createOpenAICompatible({ name: "chimere", baseURL: `${server.url}/v1`, includeUsage: true, fetch: audit.fetch });
    return withAi(AI_5, provider.chatModel("odo"), plan);
  },
  "ai 7, openai": (audit, plan) => {
    const provider = createOpenAI({ baseURL: `${server.url}/v1`, apiKey: "none", fetch: audit.fetch });
    return withAi(AI_7, provider.chat("odo"), plan);
  },
};

// Results of tools are read where the prompt has them: it is at least as long as the conversation that was sent.
async function checkRead({ body, usage, errors }) {
  const { stream, stream_options, max_tokens, ...asked } = body;
  const { body: counted } = await server.json("/v1/chat/completions/input_tokens", { ...asked, model: "chimere-nano" });
  if (!(usage?.prompt_tokens >= counted.input_tokens)) errors.push({ kind: "result ignored", detail: `${usage?.prompt_tokens} tokens of ${JSON.stringify(counted)}` });
}

function checkIds(answers, errors) {
  const ids = answers.flatMap((answer) => (answer.calls ?? []).map((call) => call.id));
  if (new Set(ids).size !== ids.length) errors.push({ kind: "call", detail: `ids come twice: ${ids}` });
}

// {errors, called: {caller's, program's, server's}} of one conversation
async function converse(name, run) {
  const plan = planOf(run);
  const audit = auditedFetch(name === "ai 7, openai" ? fieldsOf(plan.settings) : {});
  const errors = [];
  let asked = [];
  try {
    asked = await CLIENTS[name](audit, plan);
  } catch (error) {
    errors.push({ kind: "the client throws", detail: error.stack });
  }
  const answers = await Promise.all(audit.seen);
  if (answers.length < plan.turns.length) errors.push({ kind: "turns", detail: `${answers.length} answers` });
  for (const answer of answers) if (answer.body.messages.at(-1).role === "tool") await checkRead(answer);
  checkIds(answers, errors);
  const calls = answers.flatMap((answer) => answer.calls ?? []);
  if (calls.length !== asked.length) errors.push({ kind: "call", detail: `${calls.length} calls, ${asked.length} of them reached the function` });
  const done = answers.flatMap((answer) => answer.run?.steps ?? []).filter((step) => step.stage === "tool" && step.state === "done");
  const ofServer = done.filter((step) => step.detail.tool.startsWith("everything__")).length;
  return {
    errors: [...errors, ...answers.flatMap((answer) => answer.errors)].map((error) => ({ client: name, run, ...error })),
    answers: answers.length,
    called: { own: asked.length, program: done.length - ofServer, server: ofServer },
  };
}

test(`${RUNS} conversations of five turns`, async (context) => {
  const names = Object.keys(CLIENTS);
  const errors = [];
  const sums = Object.fromEntries(names.map((name) => [name, { runs: 0, answers: 0, own: 0, program: 0, server: 0 }]));
  for (let run = 0; run < RUNS; ++run) {
    const name = names[run % names.length];
    const seen = await converse(name, Math.floor(run / names.length));
    errors.push(...seen.errors);
    const sum = sums[name];
    sum.runs += 1;
    sum.answers += seen.answers;
    for (const kind of Object.keys(seen.called)) sum[kind] += seen.called[kind];
  }
  for (const name of names) context.diagnostic(`${name}: ${JSON.stringify(sums[name])}`);
  context.diagnostic(`errors of the protocol: ${errors.length}`);
  assert.deepEqual(errors, []);
  // Without calls of every kind this would show nothing.
  for (const kind of ["own", "program", "server"]) assert.ok(names.some((name) => sums[name][kind] > 0), kind);
});
