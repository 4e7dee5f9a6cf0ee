// equality.test.js  The same greedy answer to each of 50 prompts, however it is asked for: streamed or not, alone or
// among eight, with a cold or a warm cache, before and after a restart.
import assert from "node:assert/strict";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { joinChat, readEvents, startServer } from "./server.js";

const prompts = JSON.parse(await readFile(new URL("./prompts.json", import.meta.url)));
let server, folder, cold;
let reused = 0;  // tokens of prompts that were not computed again

function request(prompt, stream) {
  return { temperature: 0, max_tokens: 24, stream, ...prompt };
}

// What a client gets to see of an answer, calls without their random ids.
function shown({ content, reasoning_content, tool_calls }, finish) {
  const calls = (tool_calls ?? []).map((call) => call.function);
  return { content: content ?? "", reasoning: reasoning_content ?? "", calls, finish };
}

async function ask(prompt) {
  const { status, body } = await server.json("/v1/chat/completions", request(prompt, false));
  assert.equal(status, 200, JSON.stringify(body));
  reused += body.usage.prompt_tokens_details.cached_tokens;
  return shown(body.choices[0].message, body.choices[0].finish_reason);
}

async function askStreamed(prompt) {
  const response = await server.post("/v1/chat/completions", request(prompt, true));
  assert.equal(response.status, 200);
  const events = (await readEvents(response)).filter((event) => event.data !== "[DONE]");
  const [choice] = joinChat(events.map((event) => event.data)).choices;
  const calls = choice.calls.map(({ name, arguments: text }) => ({ name, arguments: text }));
  return { content: choice.content, reasoning: choice.reasoning, calls, finish: choice.finish };
}

async function inTurn(how) {
  const answers = [];
  for (const prompt of prompts) answers.push(await how(prompt));
  return answers;
}

// Eight at any time; each takes the next prompt when it is done.
async function amongEight(how) {
  const answers = new Array(prompts.length);
  let next = 0;
  const worker = async () => {
    for (let i = next++; i < prompts.length; i = next++) answers[i] = await how(prompts[i]);
  };
  await Promise.all(Array.from({ length: 8 }, worker));
  return answers;
}

const start = async () => {
  server = await startServer(undefined, ["--cache-dir", folder]);
};

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "chimere-api-"));
  server = await startServer(undefined, ["--cache-gb", "0"]);
  cold = await inTurn(ask);
  await server.stop();
  await start();
});
after(async () => {
  await server?.stop();
  await rm(folder, { recursive: true, force: true });
});

test("there are 50 prompts, and a server without a cache", () => {
  assert.equal(prompts.length, 50);
  assert.equal(reused, 0);
});
test("streamed = whole", async () => assert.deepEqual(await inTurn(askStreamed), cold));
test("cached = cold", async () => {
  assert.deepEqual(await inTurn(ask), cold);
  assert.ok(reused > 0);
});
test("among eight = alone", async () => assert.deepEqual(await amongEight(ask), cold));
test("among eight, streamed = alone", async () => assert.deepEqual(await amongEight(askStreamed), cold));
test("after a restart = before", async () => {
  assert.equal(await server.stop(), 0);
  await start();
  reused = 0;
  assert.deepEqual(await inTurn(ask), cold);
  assert.ok(reused > 0);
});
