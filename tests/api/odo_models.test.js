// odo_models.test.js  The orchestrator of a server with a folder of models: one for all, with the model that a request names.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { environment, NANO } from "./server.js";

const sum = { messages: [{ role: "user", content: "What is 48271 * 3947?" }], temperature: 0, enable_thinking: false };
let child, url, folder;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "chimere-odo-models-"));
  await mkdir(join(folder, "models"));
  for (const name of ["first", "second"]) await symlink(NANO, join(folder, "models", `${name}.gguf`));
  child = spawn(process.env.CHIMERE_BINARY, ["serve", "--models", join(folder, "models"), "--models-max", "1", "--port", "0", "--threads", "1", "--no-disk-cache"], {
    env: environment({ XDG_DATA_HOME: folder }),
    stdio: ["ignore", "pipe", "inherit"],
  });
  let printed = "";
  for await (const bytes of child.stdout) {
    printed += bytes;
    url = / are ready on (http:\S+);/.exec(printed)?.[1];
    if (url) break;
  }
});
after(async () => {
  const ended = once(child, "exit");
  child.kill("SIGTERM");
  await ended;
  await rm(folder, { recursive: true, force: true });
});

const get = async (path) => (await fetch(url + path)).json();
const ask = async (fields) => {
  const answer = await fetch(`${url}/v1/chat/completions`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ ...sum, ...fields }) });
  return { status: answer.status, model: answer.headers.get("x-chimere-model"), json: await answer.json() };
};

test("its names, routes and tools are there before a model is", async () => {
  const { data } = await get("/v1/models");
  const odo = data.find((model) => model.id === "odo/fast");
  assert.deepEqual([odo.capabilities, odo.parent], [["chat"], "first"]);
  assert.ok((await get("/v1/odo/status")).routes.code);
  assert.ok((await get("/v1/odo/tools")).data.some((tool) => tool.name === "calculator"));
  assert.equal((await get("/health")).loaded.length, 0);
});

test("a run is answered by the model that is named beside it, else by the one used last, and traces are one list", async () => {
  const runs = [];
  for (const [fields, model] of [[{ base_model: "second" }, "second"], [{}, "second"], [{ base_model: "first" }, "first"]]) {
    const run = await ask({ model: "odo", ...fields });
    assert.equal(run.status, 200, JSON.stringify(run.json));
    assert.equal(run.model, model);
    assert.match(run.json.choices[0].message.content.replaceAll(",", ""), /190525637/);
    runs.push(run.json.odo.id);
  }
  const { data } = await get("/v1/odo/traces");
  for (const id of runs) assert.ok(data.some((trace) => trace.id === id), id);
  assert.equal((await get("/health")).loaded.length, 1);
});

test("what is not there is refused with what is", async () => {
  const none = await ask({ model: "odo", base_model: "third" });
  assert.equal(none.status, 404);
  assert.match(none.json.error.message, /base_model: expected one of 'first', 'second', found 'third'/);
  assert.match((await ask({ model: "odo/third" })).json.error.message, /odo\/fast/);
  assert.equal((await ask({ model: "third" })).status, 404);
});
