// measure_notes.js  Where a note helps the model in the box, and in which words: every placement below, on the facts of
// facts.json. The client puts the note into the messages itself, so that no server has to change for a try.
//   CHIMERE_BINARY=... CHIMERE_MODEL=... node measure_notes.js [tuning|held_out|all]      SHOW=1 prints wrong answers
import { readFileSync } from "node:fs";

import { startServer } from "./server.js";

const facts = JSON.parse(readFileSync(new URL("facts.json", import.meta.url)));
const which = process.argv[2] ?? "tuning";
const asked = which === "all" ? [...facts.tuning, ...facts.held_out] : facts[which];

const user = (content) => ({ role: "user", content });
const joined = (notes) => notes.join("\n");
const found = (notes, query) => [
  { role: "assistant", content: null, tool_calls: [{ id: "c1", type: "function", function: { name: "search_notes", arguments: JSON.stringify({ query }) } }] },
  { role: "tool", tool_call_id: "c1", content: JSON.stringify({ notes }) },
];
const PLACEMENTS = {
  "none": (notes, q) => [user(q)],
  "system, 'Notes:'": (notes, q) => [{ role: "system", content: `Notes:\n${joined(notes)}` }, user(q)],
  "system, 'Use these notes to answer:'": (notes, q) => [{ role: "system", content: `Use these notes to answer:\n${joined(notes)}` }, user(q)],
  "turn before, 'Noted.'": (notes, q) => [user(joined(notes)), { role: "assistant", content: "Noted." }, user(q)],
  "result of a tool": (notes, q) => [user(q), ...found(notes, q)],
  "behind the question": (notes, q) => [user(`${q}\n\n${joined(notes)}`)],
  "same line": (notes, q) => [user(`${notes.join(" ")} ${q}`)],
  "empty line between": (notes, q) => [user(`${joined(notes)}\n\n${q}`)],
  "line above": (notes, q) => [user(`${joined(notes)}\n${q}`)],
  "line above, 'Note:'": (notes, q) => [user(`Note: ${joined(notes)}\n${q}`)],
  "line above, 'You know this:'": (notes, q) => [user(`You know this: ${joined(notes)}\n${q}`)],
  "line above, 'True:'": (notes, q) => [user(`True: ${joined(notes)}\n${q}`)],
  "line above, 'Fact:'": (notes, q) => [user(`Fact: ${notes.join("\nFact: ")}\n${q}`)],
  "read the text": (notes, q) => [user(`Read the text and answer the question.\n\n${joined(notes)}\n\nQuestion: ${q}`)],
};

const server = await startServer(undefined, []);
console.log(`| placement | notes | ${which}: right of ${asked.length}, thinking | not thinking |`);
console.log("|---|---|---|---|");
for (const [name, make] of Object.entries(PLACEMENTS)) {
  for (const n of name === "none" ? [1] : [1, 3]) {
    const right = [0, 0];
    for (const [i, { fact, question, answer }] of asked.entries()) {
      const notes = [fact];
      for (let k = 1; k < n; k++) notes.push(asked[(i + 7 * k) % asked.length].fact);
      for (const thinking of [true, false]) {
        const { body } = await server.json("/v1/chat/completions", {
          messages: make(notes, question), temperature: 0, max_tokens: 200, enable_thinking: thinking,
        });
        const text = body.choices[0].message.content ?? "";
        const ok = new RegExp(answer, "i").test(text);
        right[thinking ? 0 : 1] += ok;
        if (process.env.SHOW && !ok) console.log(`    ${thinking} ${question} -> ${JSON.stringify(text)}`);
      }
    }
    console.log(`| ${name} | ${n} | ${right[0]} | ${right[1]} |`);
  }
}
await server.stop();
