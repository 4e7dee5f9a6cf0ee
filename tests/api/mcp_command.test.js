// mcp_command.test.js  `chimere mcp` as the official client starts it: what a running server knows, over pipes.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

import { environment, NANO, startServer } from "./server.js";

const ANN = "key-of-ann-0123456789", BOB = "key-of-bob-0123456789";
let server, folder;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "chimere-mcp-command-"));
  process.env.XDG_DATA_HOME = folder;
  await mkdir(join(folder, "tables"));
  server = await startServer(NANO, ["--engram", join(folder, "tables"), "--api-key", ANN, "--api-key", BOB]);
});
after(async () => {
  await server?.stop();
  await rm(folder, { recursive: true, force: true });
});

async function connected(key, url = server.url) {
  const client = new Client({ name: "test", version: "1" });
  const env = { ...environment(), CHIMERE_API_KEY: key };
  await client.connect(new StdioClientTransport({ command: process.env.CHIMERE_BINARY, args: ["mcp", "--url", url], env, stderr: "ignore" }));
  return client;
}
const textOf = (result) => result.content[0].text;
const call = (client, name, args, options) => client.callTool({ name, arguments: args }, undefined, options);

test("tools are listed and called, and each key sees its own", async () => {
  const [ann, bob] = [await connected(ANN), await connected(BOB)];
  try {
    assert.equal(ann.getServerVersion().name, "chimere");
    await ann.ping();
    const { tools } = await ann.listTools();
    assert.deepEqual(tools.map((tool) => tool.name).sort(), ["forget", "remember", "retrieve"]);
    assert.ok(tools.every((tool) => tool.description && tool.inputSchema.type === "object"));

    const made = await server.post("/v1/collections/garden/documents", { name: "beans.md", text: "The beans of Orlo are planted on the ninth of May." }, { headers: { Authorization: `Bearer ${ANN}` } });
    assert.equal(made.status, 200);
    assert.match(textOf(await call(ann, "retrieve", { query: "beans of Orlo" })), /ninth of May/);
    assert.doesNotMatch(textOf(await call(bob, "retrieve", { query: "beans of Orlo" })), /ninth of May/);

    const kept = await call(ann, "remember", { text: "The gate of Orlo is green." });
    assert.ok(!kept.isError, textOf(kept));
    assert.ok((await call(bob, "forget", { text: "gate of Orlo" })).isError, "another key's notes are not there");
    assert.match(textOf(await call(ann, "forget", { text: "gate of Orlo" })), /green/);
  } finally {
    await Promise.all([ann.close(), bob.close()]);
  }
});

test("forty calls side by side are forty answers, each to its own question", async () => {
  const client = await connected(ANN);
  try {
    const names = ["Anna", "Bela", "Cora", "Dora", "Egon", "Fritz", "Gesa", "Horst"];
    for (const name of names) {
      const made = await server.post("/v1/collections/keys/documents", { name: `${name}.md`, text: `The key of ${name} hangs in the shed of ${name}.` }, { headers: { Authorization: `Bearer ${ANN}` } });
      assert.equal(made.status, 200);
    }
    const asked = Array.from({ length: 40 }, (_, i) => names[i % names.length]);
    const answers = await Promise.all(asked.map((name) => call(client, "retrieve", { query: `${name} shed` })));
    answers.forEach((answer, i) => assert.match(textOf(answer), new RegExp(`^\\[1\\][^\\[]*shed of ${asked[i]}`)));
  } finally {
    await client.close();
  }
});

test("what is wrong is told: a tool that is not there, a key that is none, a server that is gone", async () => {
  const client = await connected(ANN);
  await assert.rejects(call(client, "run_code", { code: "1" }), /there is no tool 'run_code'/);
  assert.ok((await call(client, "retrieve", { question: 1 })).isError);
  await client.close();
  await assert.rejects(connected("no-such-key"), /--api-key/);
  await assert.rejects(connected(ANN, "http://127.0.0.1:1"), /no server answers at http:\/\/127.0.0.1:1.*chimere serve/);
});

// Its replies, and the code with which it ends. `feed` writes its input and ends it.
async function piped(url, feed) {
  const child = spawn(process.env.CHIMERE_BINARY, ["mcp", "--url", url], { env: { ...environment(), CHIMERE_API_KEY: ANN } });
  let out = "";
  child.stdout.on("data", (bytes) => (out += bytes));
  const closed = new Promise((resolve) => child.on("close", resolve));
  await feed(child.stdin);
  const code = await closed;
  return { code, replies: out.split("\n").filter(Boolean).map((line) => JSON.parse(line)) };
}
const line = (message) => JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n";

test("lines that are no messages are answered, notifications are not, and it ends with its input", async () => {
  const { code, replies } = await piped(server.url, (input) => input.end(`{\n${line({ method: "notifications/initialized" })}${line({ id: "a\nb", method: "ping" })}`));
  assert.equal(code, 0);
  assert.equal(replies.length, 2);
  assert.equal(replies.find((reply) => reply.id === null).error.code, -32700);
  assert.deepEqual(replies.find((reply) => reply.id === "a\nb").result, {});
});

test("a call that is cancelled is ended at the server and has no reply", { timeout: 60_000 }, async () => {
  const slow = createServer();
  const asked = new Promise((resolve) => slow.once("request", (request) => resolve(request)));
  await new Promise((resolve) => slow.listen(0, "127.0.0.1", resolve));
  try {
    const { code, replies } = await piped(`http://127.0.0.1:${slow.address().port}`, async (input) => {
      input.write(line({ id: 7, method: "tools/call", params: { name: "retrieve", arguments: { query: "x" } } }));
      const request = await asked;
      const left = new Promise((resolve) => request.socket.on("close", resolve));
      input.write(line({ method: "notifications/cancelled", params: { requestId: 7 } }));
      await left;
      input.end();
    });
    assert.deepEqual([code, replies], [0, []]);
  } finally {
    slow.closeAllConnections();
    slow.close();
  }
});
