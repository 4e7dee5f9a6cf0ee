// traces.test.js  Traces of requests, as a collector of OpenTelemetry's protocol decodes them; ids of requests and traces in
// the log; `chimere top` beside it.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { environment, NANO, startServer } from "./server.js";

const { opentelemetry } = createRequire(import.meta.url)("@opentelemetry/otlp-transformer/build/src/generated/root.js");
const Request = opentelemetry.proto.collector.trace.v1.ExportTraceServiceRequest;

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736", PARENT = "00f067aa0ba902b7";
const hello = { messages: [{ role: "user", content: "Hello" }], temperature: 0, max_tokens: 8, enable_thinking: false };

// In OTLP's JSON ids are hexadecimal; of protobuf's own JSON they are base64.
const isId = (key) => key === "traceId" || key === "spanId" || key === "parentSpanId";
const ids = (value, from, to) =>
  JSON.parse(JSON.stringify(value), (key, part) => (isId(key) ? Buffer.from(part, from).toString(to) : part));

// What the published messages make of a body: fields that they do not know, or of another type, are lost or refused.
function decoded(body) {
  const json = JSON.parse(body);
  const asProto = ids(json, "hex", "base64");
  const bytes = Request.encode(Request.fromObject(asProto)).finish();
  const back = Request.toObject(Request.decode(bytes), { longs: String, bytes: String });
  assert.deepEqual(ids(back, "base64", "hex"), json);
  return json.resourceSpans.flatMap((resource) =>
    resource.scopeSpans.flatMap((scope) => scope.spans.map((span) => ({ ...span, resource: resource.resource }))));
}
const facts = (span) =>
  Object.fromEntries((span.attributes ?? []).map(({ key, value }) => [key, Object.values(value)[0]]));

let server, collector, folder;
const spans = [];
const keys = [];
let problem; // with what was sent

async function spansOf(trace, n) {
  for (let i = 0; i < 600; ++i) {
    const found = spans.filter((span) => span.traceId === trace);
    if (problem) throw problem;
    if (found.length >= n) return found;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  assert.fail(`expected ${n} spans of ${trace}, found ${JSON.stringify(spans.map((span) => [span.traceId, span.name]))}`);
}

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "chimere-traces-"));
  process.env.XDG_DATA_HOME = folder;
  collector = createServer(async (request, response) => {
    const parts = [];
    for await (const part of request) parts.push(part);
    keys.push(request.headers["x-collector-key"]);
    try {
      assert.equal(request.url, "/v1/traces");
      assert.equal(request.headers["content-type"], "application/json");
      spans.push(...decoded(Buffer.concat(parts).toString()));
    } catch (error) {
      problem = error;
    }
    response.setHeader("Content-Type", "application/json").end("{}");
  });
  collector.listen(0, "127.0.0.1");
  await once(collector, "listening");
  process.env.OTEL_EXPORTER_OTLP_ENDPOINT = `http://127.0.0.1:${collector.address().port}`;
  process.env.OTEL_EXPORTER_OTLP_HEADERS = "x-collector-key=a%20key";
  server = await startServer(NANO, ["--log-format", "json"]);
  delete process.env.OTEL_EXPORTER_OTLP_ENDPOINT;
  delete process.env.OTEL_EXPORTER_OTLP_HEADERS;
});
after(async () => {
  await server?.stop();
  collector?.close();
  await rm(folder, { recursive: true, force: true });
});

const ask = (fields, headers) => server.post("/v1/chat/completions", { ...hello, ...fields }, { headers });

test("a request is a span of its caller's trace, with queue, prompt and decode below it", async () => {
  const response = await ask({ stream: true }, { traceparent: `00-${TRACE}-${PARENT}-01`, "X-Request-Id": "of-the-test" });
  assert.equal(response.headers.get("x-request-id"), "of-the-test");
  await response.text();
  const found = await spansOf(TRACE, 4);
  assert.deepEqual(found.map((span) => span.name), ["POST /v1/chat/completions", "queue", "prompt", "decode"]);
  const [request, , prompt, decode] = found;
  assert.equal(request.parentSpanId, PARENT);
  assert.equal(facts(request)["chimere.request_id"], "of-the-test");
  assert.equal(facts(request)["http.response.status_code"], "200");
  assert.equal(facts(request.resource)["service.name"], "chimere");
  assert.ok(Number(facts(prompt)["chimere.prompt_tokens"]) > 0);
  assert.equal(facts(decode)["chimere.completion_tokens"], facts(request)["gen_ai.usage.output_tokens"]);
  const began = Number(BigInt(request.startTimeUnixNano) / 1_000_000n);
  assert.ok(Math.abs(Date.now() - began) < 3600_000, `${began}`);
  assert.ok(keys.every((key) => key === "a key"));
});

test("the log's line has the ids of request and trace", async () => {
  const lines = () => server.log().split("\n").filter((line) => line.includes("of-the-test"));
  for (let i = 0; i < 100 && lines().length === 0; ++i) await new Promise((resolve) => setTimeout(resolve, 50));
  const line = JSON.parse(lines()[0]);
  assert.equal(line.request_id, "of-the-test");
  assert.equal(line.trace_id, TRACE);
});

test("steps of the orchestrator are spans, with what the model took below them", async () => {
  const trace = "0af7651916cd43dd8448eb211c80319c";
  const answer = await (await ask({ model: "odo/fast" }, { traceparent: `00-${trace}-${PARENT}-01` })).json();
  const found = await spansOf(trace, 2 + 3);
  const [request] = found;
  assert.equal(facts(request)["chimere.odo.run"], answer.odo.id);
  assert.equal(facts(request)["chimere.odo.route"], answer.odo.route);
  assert.equal(facts(request)["chimere.odo.mode"], "fast");
  const steps = found.filter((span) => span.name.startsWith("odo."));
  assert.deepEqual(steps.map((span) => span.name), answer.odo.steps.map((step) => `odo.${step.stage}`));
  for (const step of steps) {
    assert.equal(step.parentSpanId, request.spanId);
    assert.ok(BigInt(step.startTimeUnixNano) >= BigInt(request.startTimeUnixNano));
    assert.ok(BigInt(step.endTimeUnixNano) <= BigInt(request.endTimeUnixNano));
    assert.equal(facts(step)["chimere.odo.about"], undefined); // words of questions stay here
  }
  const answering = steps.find((span) => span.name === "odo.answer");
  const below = found.filter((span) => span.parentSpanId === answering.spanId).map((span) => span.name);
  assert.deepEqual(below, ["queue", "prompt", "decode"]);
});

test("a trace that its caller does not keep is not sent", async () => {
  const trace = "1".repeat(32), kept = "2".repeat(32);
  await (await ask({}, { traceparent: `00-${trace}-${PARENT}-00` })).json();
  await (await ask({}, { traceparent: `00-${kept}-${PARENT}-01` })).json();
  await spansOf(kept, 4);
  assert.equal(spans.filter((span) => span.traceId === trace).length, 0);
  const metrics = await (await fetch(`${server.url}/metrics`)).text();
  assert.match(metrics, /chimere_trace_spans_total\{result="dropped"\} 0\n/);
});

async function top(args, env = {}) {
  const child = spawn(process.env.CHIMERE_BINARY, ["top", ...args], { env: environment(env), stdio: ["ignore", "pipe", "pipe"] });
  let out = "", error = "";
  child.stdout.on("data", (bytes) => (out += bytes));
  child.stderr.on("data", (bytes) => (error += bytes));
  const [code] = await once(child, "close");
  return { code, out, error };
}

test("`chimere top --once` shows the server, its load and its requests", async () => {
  const long = { prompt: "Once upon a time", n_predict: 8000, ignore_eos: true, stream: true };
  const under = await server.post("/completion", long, { headers: { "X-Request-Id": "seen-by-top" } });
  const reader = under.body.getReader();
  await reader.read();
  const { code, out, error } = await top(["--once", "--url", server.url]);
  await reader.cancel();
  assert.equal(code, 0, error);
  assert.match(out, /chimere-nano/);
  assert.match(out, /tok\/s/);
  assert.match(out, /seen-by-top/);
  assert.doesNotMatch(out, /\x1b/);
});

test("`chimere top` says so where no server answers", async () => {
  const { code, out, error } = await top(["--once", "--url", "http://127.0.0.1:9"]);
  assert.equal(code, 1);
  assert.equal(out, "");
  assert.match(error, /no server answers at http:\/\/127\.0\.0\.1:9/);
});
