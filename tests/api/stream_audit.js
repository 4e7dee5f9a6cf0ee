// stream_audit.js  Reads the bytes of a streamed chat completion as a strict client would and lists everything that is
// against the protocol. The clients of npm forgive much of it, each something else.

const FINISHES = ["stop", "length", "tool_calls"];
const ENDED = ["done", "failed", "skipped"];

// The data of the events, in order. What is no event is an error.
function dataLines(text, fail) {
  if (!text.endsWith("\n\n")) fail("framing", "the last event is not ended by an empty line");
  const lines = [];
  for (const block of text.split("\n\n").slice(0, -1)) {
    if (/^data: [^\n]*$/.test(block)) lines.push(block.slice(6));
    else fail("framing", `not one line of data: ${block.slice(0, 200)}`);
  }
  return lines;
}

function parseChunks(lines, fail) {
  const dones = lines.filter((line) => line === "[DONE]").length;
  if (dones !== 1) fail("done", `${dones} times [DONE]`);
  else if (lines.at(-1) !== "[DONE]") fail("done", "text after [DONE]");
  const chunks = [];
  for (const line of lines) {
    if (line === "[DONE]") continue;
    try {
      chunks.push(JSON.parse(line));
    } catch {
      fail("chunk", `no JSON: ${line.slice(0, 200)}`);
    }
  }
  return chunks;
}

function checkHeads(chunks, body, fail) {
  for (const name of ["id", "created", "model", "system_fingerprint"]) {
    const values = new Set(chunks.map((chunk) => chunk[name]));
    if (values.size !== 1 || values.has(undefined)) fail("chunk", `${name} is ${[...values]}`);
  }
  for (const chunk of chunks) {
    if (chunk.error) fail("error event", JSON.stringify(chunk.error));
    if (chunk.object !== "chat.completion.chunk") fail("chunk", `object is ${chunk.object}`);
    if (!Array.isArray(chunk.choices) || chunk.choices.length > 1) fail("chunk", `choices: ${JSON.stringify(chunk.choices)}`);
    else if (chunk.choices.length === 1 && chunk.choices[0].index !== 0) fail("index", `choice ${chunk.choices[0].index}`);
  }
  if (chunks[0]?.model !== body.model) fail("chunk", `model is ${chunks[0]?.model}, asked was ${body.model}`);
}

// One piece of a call: the first has id, type and name, the others arguments alone, and numbers rise by one.
function addCall(calls, delta, fail) {
  const known = calls[delta.index];
  if (!known) {
    if (delta.index !== calls.length) fail("index", `call ${delta.index} comes after ${calls.length} calls`);
    if (!delta.id) fail("call without id", JSON.stringify(delta));
    if (delta.type !== "function" || !delta.function?.name) fail("call", `first piece: ${JSON.stringify(delta)}`);
    calls[delta.index] = { id: delta.id, name: delta.function?.name, arguments: delta.function?.arguments ?? "" };
    return;
  }
  if (delta.index !== calls.length - 1) fail("index", `a piece of call ${delta.index} after call ${calls.length - 1} began`);
  if (delta.id || delta.function?.name) fail("call", `a later piece has a name: ${JSON.stringify(delta)}`);
  known.arguments += delta.function?.arguments ?? "";
}

function sumUp(chunks, fail) {
  const sum = { content: "", reasoning: "", calls: [], finish: null, usage: null };
  chunks.forEach((chunk, place) => {
    if (chunk.usage) {
      if (sum.usage || place !== chunks.length - 1) fail("usage", "not once, in the last chunk");
      sum.usage = chunk.usage;
    }
    const choice = chunk.choices?.[0];
    if (!choice) return chunk.usage || fail("chunk", "neither a choice nor the usage");
    if (sum.finish) fail("finish_reason", "a choice after its end");
    if (place === 0 && (choice.delta.role !== "assistant" || choice.delta.content !== "")) fail("chunk", "the first is not the role");
    if (place > 0 && choice.delta.role) fail("chunk", "a second role");
    sum.content += choice.delta.content ?? "";
    sum.reasoning += choice.delta.reasoning_content ?? "";
    for (const call of choice.delta.tool_calls ?? []) addCall(sum.calls, call, fail);
    sum.finish = choice.finish_reason ?? sum.finish;
  });
  return sum;
}

function checkEnd(sum, body, fail) {
  if (!FINISHES.includes(sum.finish)) fail("finish_reason", `${sum.finish}`);
  if (sum.finish === "tool_calls" && sum.calls.length === 0) fail("finish_reason", "tool_calls without a call");
  if (sum.finish === "stop" && sum.calls.length > 0) fail("finish_reason", "stop after a call");
  const wantsUsage = Boolean(body.stream_options?.include_usage);
  if (wantsUsage !== Boolean(sum.usage)) fail("usage", `asked for: ${wantsUsage}, there: ${Boolean(sum.usage)}`);
  const { prompt_tokens: read, completion_tokens: written, total_tokens: total } = sum.usage ?? {};
  if (sum.usage && !(read > 0 && written >= 0 && read + written === total)) fail("usage", JSON.stringify(sum.usage));
}

function checkCalls(sum, body, fail) {
  const offered = (body.tools ?? []).map((tool) => tool.function.name);
  if (body.tool_choice === "none" && sum.calls.length > 0) fail("call", "though the choice was none");
  if (body.tool_choice === "required" && sum.finish === "stop") fail("call", "none, though one was required");
  for (const call of sum.calls) {
    if (!offered.includes(call.name)) fail("call", `${call.name} is none of ${offered}`);
    if (sum.finish !== "tool_calls") continue;
    try {
      const given = JSON.parse(call.arguments);
      if (typeof given !== "object" || Array.isArray(given)) throw new TypeError();
    } catch {
      fail("call", `arguments are no object: ${call.arguments}`);
    }
  }
}

// Every step that begins ends, the last chunk has them all, and a result of a tool is followed by an answer that could
// read it.
function checkSteps(chunks, fail) {
  const last = new Map();
  for (const step of chunks.flatMap((chunk) => chunk.odo?.steps ?? [])) last.set(step.index, step);
  const steps = [...last.values()].sort((a, b) => a.index - b.index);
  const whole = chunks.findLast((chunk) => chunk.choices?.length === 1)?.odo;
  if (!whole?.id || !whole.route) fail("odo", "the end does not say which run it was");
  if (JSON.stringify(whole?.steps) !== JSON.stringify(steps)) fail("odo", "the steps at the end are not those that were told");
  steps.forEach((step, place) => {
    if (step.index !== place) fail("odo", `step ${step.index} at place ${place}`);
    if (!ENDED.includes(step.state)) fail("odo", `step ${place} (${step.stage}) is left ${step.state}`);
    const isRead = steps.slice(place).some((later) => later.stage === "answer");
    if (step.stage === "tool" && !isRead) fail("result ignored", `no answer after ${step.about}`);
  });
  return { id: whole?.id, steps };
}

// {errors: [{kind, detail}], content, reasoning, calls, finish, usage, run}
export function auditStream(text, body) {
  const errors = [];
  const fail = (kind, detail) => void errors.push({ kind, detail });
  const chunks = parseChunks(dataLines(text, fail), fail);
  checkHeads(chunks, body, fail);
  const sum = sumUp(chunks, fail);
  checkEnd(sum, body, fail);
  checkCalls(sum, body, fail);
  return { errors, ...sum, run: checkSteps(chunks, fail) };
}

// A fetch whose answers are read twice: by the client, and here. `seen` has a promise of an audit for each. `fields` are
// added to what is sent, for clients that pass on none but their own.
export function auditedFetch(fields = {}) {
  const seen = [];
  const audited = async (url, init) => {
    const body = { ...JSON.parse(init.body), ...fields };
    const response = await fetch(url, { ...init, body: JSON.stringify(body) });
    const type = response.headers.get("content-type");
    if (response.status !== 200 || type !== "text/event-stream") {
      const detail = `${response.status} ${type} ${await response.clone().text()}`;
      seen.push(Promise.resolve({ body, errors: [{ kind: "status", detail }] }));
      return response;
    }
    const [ours, theirs] = response.body.tee();
    seen.push(new Response(ours).text().then((text) => ({ body, ...auditStream(text, body) })));
    return new Response(theirs, { status: response.status, headers: response.headers });
  };
  return { seen, fetch: audited };
}
