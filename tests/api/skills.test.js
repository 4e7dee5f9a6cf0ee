// skills.test.js  Programs of one's own as tools: listed, called by the loop, read again, and never through a shell.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { NANO, startServer } from "./server.js";

const SHOW = `description: Shows a text.
argv: [/usr/bin/printf, "[%s]", --, "{text}"]
arguments: {text: {type: string, description: any text}}
`;
let server, folder, skills;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "chimere-skills-"));
  process.env.XDG_DATA_HOME = folder;
  skills = join(folder, "mine");
  await mkdir(skills);
  await writeFile(join(skills, "show.yaml"), SHOW);
  await writeFile(join(skills, "hidden.yaml"), `${SHOW}policy: deny\n`);
  await writeFile(join(skills, "broken.yaml"), `${SHOW}\n`.replace("{text}", "{word}"));
  server = await startServer(NANO, ["--odo-skills", skills]);
});
after(async () => {
  await server?.stop();
  await rm(folder, { recursive: true, force: true });
});

const get = async (path) => (await fetch(server.url + path)).json();
const named = async (name) => (await get("/v1/odo/tools")).data.find((tool) => tool.name === name);
const until = async (is_so) => {
  for (let i = 0; i < 300 && !(await is_so()); i++) await new Promise((done) => setTimeout(done, 100));
  assert.ok(await is_so());
};

// Where user namespaces are not allowed none is offered, and the log says why.
const offered = async (t) => {
  if (!/skills can not be run/.test(server.log())) return true;
  t.skip("no sandbox here");
  return false;
};

test("they are listed with their policies and schemas, and broken files with their lines", async (t) => {
  if (!(await offered(t))) return;
  const show = await named("show");
  assert.equal(show.policy, "ask");
  assert.deepEqual(show.parameters.required, ["text"]);
  assert.equal(await named("hidden"), undefined);
  assert.equal(await named("broken"), undefined);
  const { problems } = await get("/v1/odo/status");
  assert.match(problems[join(skills, "broken.yaml")], /broken\.yaml:2:\d+: argv: expected placeholders of `arguments`, found \{word\}/);
});

test("a file that changes is read again, and a broken one keeps its last good version", async (t) => {
  if (!(await offered(t))) return;
  await writeFile(join(skills, "show.yaml"), `${SHOW}policy: allow\n`);
  await until(async () => (await named("show"))?.policy === "allow");
  await writeFile(join(skills, "show.yaml"), "description: [\n");
  await until(async () => (await get("/v1/odo/status")).problems[join(skills, "show.yaml")]);
  assert.equal((await named("show")).policy, "allow");
  await writeFile(join(skills, "more.yaml"), SHOW);
  await until(async () => named("more"));
  await rm(join(skills, "more.yaml"));
  await until(async () => !(await named("more")));
});

test("a request may name them, and a request that names none of them is refused", async (t) => {
  if (!(await offered(t))) return;
  const ask = (tools) => server.json("/v1/chat/completions", { model: "odo", messages: [{ role: "user", content: "Hello" }], temperature: 0, max_tokens: 8, enable_thinking: false, odo: { tools } });
  assert.equal((await ask(["show"])).status, 200);
  assert.match((await ask(["nothing"])).body.error.message, /odo.tools: expected names/);
});

test("a folder that is not there ends the start", async () => {
  assert.ok(!existsSync(join(folder, "none")));
  await assert.rejects(startServer(NANO, ["--odo-skills", join(folder, "none")]), /expected a folder of skills/);
});

test("people call them at /skill: listed, matched by their name, run with one argument or several, and allowed by a word", async (t) => {
  if (!(await offered(t))) return;
  await writeFile(join(skills, "show.yaml"), SHOW);
  await until(async () => (await named("show"))?.policy === "ask");
  const { skills: listed } = await get("/skill/list");
  assert.deepEqual(listed.map((skill) => skill.name), ["show"], "neither other tools nor what the policy denies");
  assert.equal((await get("/skill/get/show")).parameters.properties.text.type, "string");
  assert.deepEqual((await get("/skill/match?text=Please+show+it")).skills.map((skill) => skill.name), ["show"]);
  assert.deepEqual((await get("/skill/match?text=showing")).skills, []);
  for (const path of ["/skill/get/hidden", "/skill/get/calculator", "/skill/get/none"]) assert.equal((await fetch(server.url + path)).status, 404, path);

  const invoke = (name, body) => server.json(`/skill/invoke/${name}`, body);
  const hostile = "; echo owned > /tmp/owned $(id) `id` \" ' | cat";
  assert.equal((await invoke("show", { args: "x" })).status, 403, "nobody has agreed");
  for (const body of [{ args: hostile }, { arguments: { text: hostile } }]) {
    const { status, body: said } = await invoke("show", { ...body, allow: true });
    assert.deepEqual([status, said.success, said.output, said.is_untrusted], [200, true, `[--][${hostile}]`, true]);
  }
  for (const body of [{ arguments: "x" }, { args: 3 }, [], "x"]) assert.equal((await invoke("show", body)).status, 400, JSON.stringify(body));
  assert.equal((await invoke("show", { arguments: { colour: "red" }, allow: true })).body.success, false);
  for (const name of ["hidden", "calculator", "none"]) assert.equal((await invoke(name, { args: "1+1", allow: true })).status, 404, name);
  const foreign = await server.post("/skill/invoke/show", { args: "x", allow: true }, { headers: { Origin: "https://evil.example" } });
  assert.equal(foreign.status, 403, "no page of the web reaches it");
});
