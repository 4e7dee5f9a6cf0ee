// soak.mjs  The load of tests/soak/run. Seven tenths of the time the server lives; in the rest it is killed again and
// again. Memory is watched in the first part, after a warm-up of a fifth of it.
import { spawn } from "node:child_process";
import fs from "node:fs";
import http from "node:http";
import net from "node:net";
import os from "node:os";
import path from "node:path";

const [chimere, model, minutesText, reportPath] = process.argv.slice(2);
const minutes = Number(minutesText);
const port = Number(process.env.PORT ?? 18195);
const seed = Number(process.env.SEED ?? Date.now() % 1e6);
const clients = Number(process.env.CLIENTS ?? 6);
const cacheFolder = fs.mkdtempSync(path.join(os.tmpdir(), "chimere-soak-"));

// A small generator of our own, so that a run can be repeated.
let randomState = seed >>> 0;
function random() {
  randomState = (Math.imul(randomState, 1664525) + 1013904223) >>> 0;
  return randomState / 2 ** 32;
}
const pick = (list) => list[Math.floor(random() * list.length)];
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const counts = {};
const count = (what) => (counts[what] = (counts[what] ?? 0) + 1);
const problems = [];
function problem(text) {
  problems.push(text);
  console.error("PROBLEM " + text);
}

let server = null;
let isDown = true; // while the server is meant to be gone
let generation = 0; // of the server: answers that span a kill are no concern

function request(method, path, body, onResponse, headers = {}) {
  const options = { host: "127.0.0.1", port, method, path, headers: { "Content-Type": "application/json", ...headers } };
  const message = http.request(options, onResponse);
  message.end(body);
  return message;
}

// Status and text of an answer; status 0 when the connection broke.
function ask(method, path, body) {
  return new Promise((resolve) => {
    const message = request(method, path, body, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (chunk) => (text += chunk));
      response.on("end", () => resolve({ status: response.statusCode, text, headers: response.headers }));
      response.on("error", () => resolve({ status: 0, text }));
    });
    message.on("error", () => resolve({ status: 0, text: "" }));
  });
}

async function startServer() {
  const log = fs.openSync(path.join(cacheFolder, "server.log"), "a");
  // A cache that is full long before the warm-up ends: what grows after that is a leak, and states are evicted all along.
  const cache = ["--cache-dir", cacheFolder, "--cache-gb", "0.2", "--cache-disk-gb", "0.5"];
  const options = ["serve", model, "--port", String(port), ...cache, "--parallel", "4", "--queue", "8"];
  server = spawn(chimere, [...options, "--dump-on-stall", "20"], { stdio: ["ignore", log, log] });
  const started = server;
  server.on("exit", (code, signal) => {
    if (started === server && !isDown) problem(`the server ended by itself: code ${code}, signal ${signal}`);
  });
  for (;;) {
    const { status } = await ask("GET", "/health");
    if (status === 200) break;
    if (started.exitCode !== null) throw new Error("the server does not start; see " + cacheFolder);
    await sleep(100);
  }
  ++generation;
  isDown = false;
}

async function killServer() {
  isDown = true;
  const gone = new Promise((resolve) => server.once("exit", resolve));
  server.kill("SIGKILL");
  await gone;
  count("kill -9");
}

// Prompts whose greedy answers are known, with a long shared beginning so that the prefix cache has work.
const system = "You are a careful assistant. ".repeat(20);
const known = [];
for (const question of ["Hello", "What is 2 + 2?", "Name a colour.", "Tell me a story about a fox.", "Who are you?"]) {
  for (const withSystem of [false, true]) {
    const messages = [{ role: "user", content: question }];
    if (withSystem) messages.unshift({ role: "system", content: system });
    known.push({ messages, answer: null });
  }
}
const bodyOf = (entry, stream) =>
  JSON.stringify({ messages: entry.messages, temperature: 0, max_tokens: 48, stream, stream_options: stream ? { include_usage: true } : undefined });

function textOf(message) {
  return (message.reasoning_content ?? "") + "|" + (message.content ?? "") + "|" + JSON.stringify(message.tool_calls ?? []);
}

function streamText(text) {
  const sum = { reasoning_content: "", content: "" };
  const calls = [];
  for (const event of text.split("\n\n")) {
    if (!event.startsWith("data: {")) continue;
    const json = JSON.parse(event.slice(6));
    if (json.error) return "error: " + json.error.message;
    for (const choice of json.choices) {
      sum.reasoning_content += choice.delta.reasoning_content ?? "";
      sum.content += choice.delta.content ?? "";
      for (const call of choice.delta.tool_calls ?? []) calls.push(call);
    }
  }
  return calls.length > 0 ? null : sum.reasoning_content + "|" + sum.content + "|[]";
}

async function learnAnswers() {
  for (const entry of known) {
    const { status, text } = await ask("POST", "/v1/chat/completions", bodyOf(entry, false));
    if (status !== 200) throw new Error("a known prompt was answered with " + status + ": " + text);
    entry.answer = textOf(JSON.parse(text).choices[0].message);
  }
}

function compare(entry, text, how, before) {
  if (text === null) return; // tool calls come in pieces; whole answers compare them
  if (text === entry.answer) return count("equal answers");
  if (before !== generation || isDown) return count("answers cut by a kill");
  problem(`${how}: another answer to ${JSON.stringify(entry.messages.at(-1).content)}: ${text.slice(0, 200)}`);
}

async function askKnown() {
  const entry = pick(known);
  const stream = random() < 0.5;
  const before = generation;
  const { status, text } = await ask("POST", "/v1/chat/completions", bodyOf(entry, stream));
  if (status === 429) return count("429 queue full");
  if (status !== 200) {
    if (before === generation && !isDown) problem(`a known prompt was answered with ${status}: ${text.slice(0, 200)}`);
    return count("answers cut by a kill");
  }
  if (stream && !text.includes("data: [DONE]")) {
    if (before === generation && !isDown) problem("a stream without an end");
    return count("answers cut by a kill");
  }
  compare(entry, stream ? streamText(text) : textOf(JSON.parse(text).choices[0].message), stream ? "streamed" : "whole", before);
}

function leaveEarly() {
  return new Promise((resolve) => {
    const body = JSON.stringify({ messages: [{ role: "user", content: "Count to a thousand. " + random() }], stream: random() < 0.7, max_tokens: 400 });
    const message = request("POST", "/v1/chat/completions", body, (response) => {
      response.on("data", () => random() < 0.3 && message.destroy());
      response.on("end", resolve);
      response.on("error", resolve);
    });
    message.on("error", resolve);
    message.on("close", resolve);
    setTimeout(() => message.destroy(), 50 + random() * 1500);
    count("clients that left");
  });
}

function readSlowly() {
  return new Promise((resolve) => {
    const entry = pick(known);
    const before = generation;
    const message = request("POST", "/v1/chat/completions", bodyOf(entry, true), (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (chunk) => {
        text += chunk;
        response.pause();
        setTimeout(() => response.resume(), 100);
      });
      response.on("end", () => {
        count("slow readers");
        if (response.statusCode === 200 && text.includes("[DONE]")) compare(entry, streamText(text), "slow reader", before);
        resolve();
      });
      response.on("error", resolve);
    });
    message.on("error", resolve);
  });
}

const malformed = ["", "{", "[]", "nul", '{"messages":1}', '{"messages":[]}', '{"messages":[{"role":"user"}]}', "[".repeat(5000),
  '{"messages":[{"role":"user","content":"x"}],"temperature":"hot"}', '{"messages":[{"role":"user","content":"\ud800"}],"max_tokens":1}',
  '{"messages":[{"role":"user","content":"x"}],"max_tokens":-1}', "\u0000\u0001", '{"a":' + "[".repeat(60)];

async function sendMalformed() {
  const before = generation;
  const path = pick(["/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages", "/tokenize", "/nowhere"]);
  const { status } = await ask("POST", path, pick(malformed));
  count("malformed bodies");
  if (status >= 500 && before === generation && !isDown) problem(`a malformed body was answered with ${status}`);
}

async function sendOversized() {
  const before = generation;
  const words = random() < 0.5 ? 30_000 : 3_000_000; // beyond the context; beyond the limit of a body
  const body = JSON.stringify({ messages: [{ role: "user", content: "word ".repeat(words) }], max_tokens: 4 });
  const { status } = await ask("POST", "/v1/chat/completions", body);
  count("oversized prompts");
  if (![0, 400, 413, 429].includes(status) && before === generation && !isDown) problem(`an oversized prompt was answered with ${status}`);
}

function sendGarbage() {
  return new Promise((resolve) => {
    const socket = net.connect(port, "127.0.0.1", () => {
      const bytes = Buffer.alloc(Math.floor(random() * 3000));
      for (let i = 0; i < bytes.length; ++i) bytes[i] = Math.floor(random() * 256);
      socket.write(random() < 0.5 ? bytes : "GET /health HTTP/1.1\r\nContent-Length: 99999\r\n\r\nabc");
      setTimeout(() => socket.destroy(), 200);
    });
    socket.on("error", resolve);
    socket.on("close", resolve);
    socket.resume();
    count("garbage on a socket");
  });
}

let stopping = false;
async function client() {
  while (!stopping) {
    if (isDown) {
      await sleep(100);
      continue;
    }
    const dice = random();
    if (dice < 0.5) await askKnown();
    else if (dice < 0.65) await leaveEarly();
    else if (dice < 0.75) await readSlowly();
    else if (dice < 0.87) await sendMalformed();
    else if (dice < 0.92) await sendOversized();
    else await sendGarbage();
  }
}

let slowestHealth = 0;
async function watchHealth() {
  while (!stopping) {
    const before = generation;
    const start = performance.now();
    const { status } = await ask("GET", "/health");
    const ms = performance.now() - start;
    if (before === generation && !isDown) {
      slowestHealth = Math.max(slowestHealth, ms);
      if (status !== 200) problem("/health answered with " + status);
      if (ms > 1000) problem(`/health took ${ms.toFixed(0)} ms`);
    }
    await sleep(250);
  }
}

function residentMegabytes() {
  const line = fs.readFileSync(`/proc/${server.pid}/status`, "utf8").match(/VmRSS:\s+(\d+) kB/);
  return line ? Number(line[1]) / 1000 : 0;
}

const memory = [];
async function watchMemory(until) {
  const start = Date.now();
  while (Date.now() < until) {
    memory.push({ seconds: Math.round((Date.now() - start) / 1000), mb: residentMegabytes() });
    await sleep(2000);
  }
}

function judgeMemory() {
  const warm = memory.slice(Math.floor(memory.length * 0.2));
  if (warm.length < 8) return "too short to say";
  const half = Math.floor(warm.length / 2);
  const highest = (list) => Math.max(...list.map((m) => m.mb));
  const first = highest(warm.slice(0, half));
  const second = highest(warm.slice(half));
  if (second > first * 1.1 + 20) problem(`memory grew from ${first.toFixed(0)} to ${second.toFixed(0)} MB after the warm-up`);
  return `${first.toFixed(0)} MB at most in the first half after the warm-up, ${second.toFixed(0)} MB in the second`;
}

function report(memoryVerdict) {
  const lines = ["# Soak", "", `\`tests/soak/run ${minutes}\`, ${clients} clients, seed ${seed}, ${os.cpus().length} cores, ${new Date().toISOString().slice(0, 16)} UTC.`, ""];
  lines.push("| what | how often |", "|---|---|");
  for (const what of Object.keys(counts).sort()) lines.push(`| ${what} | ${counts[what]} |`);
  lines.push("", `- Slowest answer of /health: ${slowestHealth.toFixed(0)} ms (limit 1000).`, `- Memory: ${memoryVerdict}.`);
  lines.push(`- Problems: ${problems.length === 0 ? "none" : problems.length}.`);
  for (const text of problems.slice(0, 50)) lines.push("  - " + text);
  fs.writeFileSync(reportPath, lines.join("\n") + "\n");
  console.log(lines.join("\n"));
}

const start = Date.now();
const quietEnd = start + minutes * 60_000 * 0.7;
const end = start + minutes * 60_000;
await startServer();
await learnAnswers();
const work = [watchHealth(), ...Array.from({ length: clients }, client)];
await watchMemory(quietEnd);
const memoryVerdict = judgeMemory();
while (Date.now() < end) {
  await sleep(3000 + random() * 12_000);
  await killServer();
  await startServer();
}
stopping = true;
await Promise.all(work);
// What the last server found on the disk is asked for once more, by a single client.
for (const entry of known) {
  const { text } = await ask("POST", "/v1/chat/completions", bodyOf(entry, false));
  compare(entry, textOf(JSON.parse(text).choices[0].message), "at the end", generation);
}
isDown = true;
server.kill("SIGTERM");
await new Promise((resolve) => server.once("exit", resolve));
report(memoryVerdict);
if (problems.length === 0) fs.rmSync(cacheFolder, { recursive: true });
else console.error("the log of the server is in " + cacheFolder);
process.exit(problems.length === 0 ? 0 : 1);
