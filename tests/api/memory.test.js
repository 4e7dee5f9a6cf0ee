// memory.test.js  What a person accepted is known in the chat afterwards: forty made-up facts asked in other words, the
// example of docs/engram.md as it stands there, passages, and a conversation that goes on. With the model in the box.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";

import { NANO, startServer } from "./server.js";

const run = promisify(execFile);
const BINARY = process.env.CHIMERE_BINARY;
const DOCS = join(dirname(NANO), "..", "docs", "engram.md");
const facts = JSON.parse(readFileSync(new URL("facts.json", import.meta.url)));
const LEAST_RIGHT = 30;
let server, folder;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "chimere-memory-"));
  await mkdir(join(folder, "tables"));
  const text = [...facts.tuning, ...facts.held_out].map(({ fact }) => fact).join("\n\n");
  await writeFile(join(folder, "facts.txt"), text);
  await run(BINARY, ["engram", "passages", "add", join(folder, "tables", "facts.passages"), "--text", join(folder, "facts.txt"), "--source", "facts", "--model", NANO]);
  server = await startServer(undefined, ["--engram", join(folder, "tables")]);
});
after(async () => {
  await server?.stop();
  if (folder) await rm(folder, { recursive: true });
});

async function ask(question, more = {}) {
  const { status, body } = await server.json("/v1/chat/completions", {
    messages: [{ role: "user", content: question }], temperature: 0, max_tokens: 200, ...more,
  });
  assert.equal(status, 200, JSON.stringify(body));
  return { text: body.choices[0].message.content ?? "", engram: body.engram, usage: body.usage };
}

async function countRight(list, more) {
  let right = 0;
  const wrong = [];
  for (const { question, answer } of list) {
    const { text, engram } = await ask(question, more);
    if (new RegExp(answer, "i").test(text)) right += 1;
    else wrong.push({ question, text, engram: engram?.notes?.map((note) => note.text) });
  }
  return { right, wrong };
}

test("of forty accepted facts, asked in other words, at least thirty are known", async (t) => {
  const before = await ask("How are you?", { user: "ann" });
  for (const { fact } of [...facts.tuning, ...facts.held_out]) {
    const { status, body } = await server.json("/v1/engram/accept", { user: "ann", text: fact });
    assert.equal(status, 200);
    assert.equal(body.learned, true);
  }
  const tuning = await countRight(facts.tuning, { user: "ann" });
  const heldOut = await countRight(facts.held_out, { user: "ann" });
  t.diagnostic(`tuning ${tuning.right} of ${facts.tuning.length}, held out ${heldOut.right} of ${facts.held_out.length}`);
  for (const miss of [...tuning.wrong, ...heldOut.wrong]) t.diagnostic(JSON.stringify(miss));
  assert.ok(tuning.right + heldOut.right >= LEAST_RIGHT, `${tuning.right} + ${heldOut.right}`);
  // Nobody else knows them, and small talk is as it was.
  assert.deepEqual(await ask("How are you?", { user: "ann" }).then(({ text, engram }) => ({ text, engram })), { text: before.text, engram: undefined });
  const { text, engram } = await ask(facts.tuning[0].question, { user: "bob" });
  assert.equal(engram, undefined);
  assert.ok(!/Lutzhaven/.test(text));
});

test("a conversation with notes goes on from what was computed before", async () => {
  const user = "carl";
  for (const { fact } of facts.tuning) await server.json("/v1/engram/accept", { user, text: fact });
  // Two turns; how many tokens of the second prompt were there already.
  const talk = async (rules, engram) => {
    const messages = [{ role: "system", content: rules }, { role: "user", content: facts.tuning[0].question }];
    const more = { user, engram, temperature: 0, max_tokens: 100 };
    const first = (await server.json("/v1/chat/completions", { messages, ...more })).body;
    messages.push({ role: "assistant", content: first.choices[0].message.content });
    messages.push({ role: "user", content: facts.tuning[1].question });
    const second = (await server.json("/v1/chat/completions", { messages, ...more })).body;
    return { notes: second.engram?.notes, cached: second.usage.prompt_tokens_details.cached_tokens };
  };
  const rules = (kind) => Array.from({ length: 60 }, (_, i) => `Rule ${i} of ${kind}: put part ${(i * 37) % 101} on shelf ${(i * 53) % 29}.`).join(" ");
  const plain = await talk(rules("shops"), { alpha: 0 });
  const noted = await talk(rules("yards"), {});
  assert.equal(plain.notes, undefined);
  assert.equal(noted.notes[0].text, facts.tuning[1].fact);
  assert.ok(plain.cached > 500, `${plain.cached} without notes`);
  assert.ok(noted.cached >= plain.cached, `${noted.cached} with notes, ${plain.cached} without`);
});

test("a passage that was found is read by the model", async () => {
  const { text, engram } = await ask("What is the capital of Zubrovia?", { engram: { passages: "facts", top: 1 } });
  assert.equal(engram.passages[0].text, facts.tuning[0].fact);
  assert.match(text, /Lutzhaven/);
});

// The first block of the page: commands as a reader types them, in an empty folder.
test("the example of docs/engram.md works as it stands there", async () => {
  const place = await mkdtemp(join(tmpdir(), "chimere-example-"));
  await symlink(BINARY, join(place, "chimere"));
  const block = /```\n([\s\S]*?)```/.exec(readFileSync(DOCS, "utf8"))[1];
  const commands = block.replace(/\s+#.*$/gm, "").split(/\n(?=\S)/).filter((line) => line.trim());
  assert.ok(commands.length >= 5, block);
  let example;
  const outputs = [];
  try {
    for (const command of commands) {
      if (command.startsWith("chimere serve")) {
        const options = command.trim().split(" ").slice(2).map((word) => (word === "tables" ? join(place, word) : word));
        example = await startServer(undefined, options);
        continue;
      }
      const local = command.replaceAll("localhost:8081", example ? new URL(example.url).host : "");
      const { stdout } = await run("bash", ["-ec", local], {
        cwd: place, env: { ...process.env, PATH: `${place}:${process.env.PATH}` },
      });
      outputs.push(stdout);
    }
    const chat = JSON.parse(outputs.find((text) => text.includes("chat.completion")));
    assert.match(chat.choices[0].message.content, /Lutzhaven/);
    assert.equal(chat.engram.notes.length, 1);
    assert.ok(outputs.some((text) => text.includes('"object":"list"') && text.includes("Lutzhaven")));
    assert.ok(outputs.some((text) => text.includes('"removed_notes":1')));
  } finally {
    await example?.stop();
    await rm(place, { recursive: true });
  }
});
