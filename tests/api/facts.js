// facts.js  The made-up facts of facts.json, and how many of them a server knows that was told them: in how many cases
// the right note was found, and in how many the answer says it.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

export const facts = JSON.parse(readFileSync(new URL("facts.json", import.meta.url)));
export const FORTY = [...facts.tuning, ...facts.held_out];

// The ways in which people ask. `seeds`: the sampling of the file, once a seed; none: greedy.
const SEEDS = [1, 2, 3];
export const WAYS = {
  "thinking": { enable_thinking: true },
  "thinking, sampled": { enable_thinking: true, seeds: SEEDS },
  "not thinking": { enable_thinking: false },
  "not thinking, sampled": { enable_thinking: false, seeds: SEEDS },
  "/v1/messages": { path: "/v1/messages" },
  "/v1/messages, sampled": { path: "/v1/messages", seeds: SEEDS },
};

export async function teach(server, user, list) {
  for (const { fact } of list) {
    const { status, body } = await server.json("/v1/engram/accept", { user, text: fact });
    assert.equal(status, 200);
    assert.equal(body.learned, true);
  }
}

const textOf = (body) => body.choices?.[0].message.content ?? body.content?.map(({ text }) => text ?? "").join("") ?? "";

// {found, right, wrong} of `list`, with seeds the sums over them.
export async function countKnown(server, user, list, { path = "/v1/chat/completions", seeds = [undefined], ...more }) {
  const counts = { asked: list.length * seeds.length, found: 0, right: 0, wrong: [] };
  for (const seed of seeds) {
    for (const { fact, question, answer } of list) {
      const { status, body } = await server.json(path, {
        messages: [{ role: "user", content: question }], max_tokens: 200, ...more,
        ...(path === "/v1/messages" ? { metadata: { user_id: user } } : { user }),
        ...(seed === undefined ? { temperature: 0 } : { seed }),
      });
      assert.equal(status, 200, JSON.stringify(body));
      const notes = body.engram?.notes?.map((note) => note.text) ?? [];
      const text = textOf(body);
      counts.found += notes.includes(fact);
      if (new RegExp(answer, "i").test(text)) counts.right += 1;
      else counts.wrong.push({ question, text, notes, seed });
    }
  }
  return counts;
}
