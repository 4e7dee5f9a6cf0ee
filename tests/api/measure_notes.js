// measure_notes.js  Where a note helps the model in the box, and in which words: every placement below, on the facts of
// facts.json that wordings are tuned on. The client puts the note into the messages itself, so that no server has to
// change for a try. Then, with `served`, what a server that was told the facts does by itself, in every way of asking.
//   CHIMERE_BINARY=... CHIMERE_MODEL=... node measure_notes.js [placements|served]      SHOW=1 prints wrong answers
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { FORTY, WAYS, countKnown, facts, teach } from "./facts.js";
import { startServer } from "./server.js";

const asked = [...facts.tuning, ...facts.development];
const SEED = 100;

const user = (content) => ({ role: "user", content });
const system = (content) => ({ role: "system", content });
const found = (notes, query) => [
  { role: "assistant", content: null, tool_calls: [{ id: "c1", type: "function", function: { name: "search_notes", arguments: JSON.stringify({ query }) } }] },
  { role: "tool", tool_call_id: "c1", content: JSON.stringify({ notes }) },
];
const above = (start, end) => (note, q) => [user(`${start}${note}\n${end}${q}`)];
const PLACEMENTS = {
  "none": (note, q) => [user(q)],
  "system message, 'Notes:'": (note, q) => [system(`Notes:\n${note}`), user(q)],
  "system message, 'Use these notes to answer:'": (note, q) => [system(`Use these notes to answer:\n${note}`), user(q)],
  "turn before, answered with 'Noted.'": (note, q) => [user(note), { role: "assistant", content: "Noted." }, user(q)],
  "result of a call of a tool `search_notes`": (note, q) => [user(q), ...found([note], q)],
  "behind the question, after an empty line": (note, q) => [user(`${q}\n\n${note}`)],
  "before the question, on the same line": (note, q) => [user(`${note} ${q}`)],
  "before the question, an empty line between": (note, q) => [user(`${note}\n\n${q}`)],
  "before the question, on the line above": above("", ""),
  "the same, 'Note:' before it": above("Note: ", ""),
  "the same, 'You know this:' before it": above("You know this: ", ""),
  "the same, 'Read this:' before it": above("Read this: ", ""),
  "the same, 'Fact:' before it": above("Fact: ", ""),
  "the same, twice": (note, q) => [user(`Fact: ${note}\nFact: ${note}\n${q}`)],
  "the same, 'Question:' before the question": above("Fact: ", "Question: "),
  "'Use this sentence to answer the question. Sentence:', 'Question:'": above("Use this sentence to answer the question.\nSentence: ", "Question: "),
  "'Read the text and answer the question.', the note, 'Question:'": (note, q) => [user(`Read the text and answer the question.\n\n${note}\n\nQuestion: ${q}`)],
  "'Fact:', then 'Answer in full sentences.'": above("Fact: ", "Answer in full sentences.\n"),
  "'Fact:', then 'Answer in a full sentence.'": above("Fact: ", "Answer in a full sentence.\n"),
  "'Fact:', then 'Write the answer as a full sentence.'": above("Fact: ", "Write the answer as a full sentence.\n"),
  "'Fact:', then 'Write at least a full sentence.'": above("Fact: ", "Write at least a full sentence.\n"),
  "'Fact:', the question, 'Write that as a full sentence.'": (note, q) => [user(`Fact: ${note}\n${q}\nWrite that as a full sentence.`)],
  // More than one sentence was found: `more` are two that are about something else.
  "two notes, 'Fact:' before each": (note, q, more) => [user(`Fact: ${note}\nFact: ${more[0]}\n${q}`)],
  "two notes, 'Fact:' before each, then 'Write at least ...'": (note, q, more) => [user(`Fact: ${note}\nFact: ${more[0]}\nWrite at least a full sentence.\n${q}`)],
  "two notes, the right one last with 'Fact:', then 'Write at least ...'": (note, q, more) => [user(`${more[0]}\nFact: ${note}\nWrite at least a full sentence.\n${q}`)],
  "two notes, the right one first with 'Fact:', then 'Write at least ...'": (note, q, more) => [user(`Fact: ${note}\n${more[0]}\nWrite at least a full sentence.\n${q}`)],
  "a note of three sentences, 'Fact:'": (note, q, more) => [user(`Fact: ${more[0]} ${note} ${more[1]}\n${q}`)],
  "a note of three sentences, 'Fact:', then 'Write at least ...'": (note, q, more) => [user(`Fact: ${more[0]} ${note} ${more[1]}\nWrite at least a full sentence.\n${q}`)],
  "the same, its second sentence below it with 'Fact:', then 'Write at least ...'": (note, q, more) => [user(`${more[0]} ${note} ${more[1]}\nFact: ${note}\nWrite at least a full sentence.\n${q}`)],
  "the same, its second sentence above it with 'Fact:', then 'Write at least ...'": (note, q, more) => [user(`Fact: ${note}\n${more[0]} ${note} ${more[1]}\nWrite at least a full sentence.\n${q}`)],
};

async function measurePlacements() {
  const server = await startServer(undefined, []);
  console.log(`| placement of the note, right of ${asked.length} | thinking | sampled | not thinking | sampled |`);
  console.log("|---|---|---|---|---|");
  for (const [name, make] of Object.entries(PLACEMENTS)) {
    const right = [];
    for (const thinking of [true, false]) {
      for (const how of [{ temperature: 0 }, { seed: SEED }]) {
        let count = 0;
        for (const [i, { fact, question, answer }] of asked.entries()) {
          const more = [7, 14].map((step) => asked[(i + step) % asked.length].fact);
          const { body } = await server.json("/v1/chat/completions", {
            messages: make(fact, question, more), max_tokens: 200, enable_thinking: thinking, ...how,
          });
          const text = body.choices[0].message.content ?? "";
          const ok = new RegExp(answer, "i").test(text);
          count += ok;
          if (process.env.SHOW && !ok) console.log(`    ${thinking} ${question} -> ${JSON.stringify(text)}`);
        }
        right.push(count);
      }
    }
    console.log(`| ${name} | ${right.join(" | ")} |`);
  }
  await server.stop();
}

async function measureServed() {
  const folder = await mkdtemp(join(tmpdir(), "chimere-notes-"));
  const server = await startServer(undefined, ["--engram", folder]);
  await teach(server, "ann", FORTY);
  console.log("| asked | right note found | right, of tuning | of held out | of all |");
  console.log("|---|---|---|---|---|");
  for (const [name, way] of Object.entries(WAYS)) {
    const [tuning, heldOut] = [await countKnown(server, "ann", facts.tuning, way), await countKnown(server, "ann", facts.held_out, way)];
    const n = tuning.asked + heldOut.asked;
    console.log(`| ${name} | ${tuning.found + heldOut.found} of ${n} | ${tuning.right} | ${heldOut.right} | ${tuning.right + heldOut.right} of ${n} |`);
    if (process.env.SHOW) for (const miss of [...tuning.wrong, ...heldOut.wrong]) console.log(`    ${JSON.stringify(miss)}`);
  }
  await server.stop();
  await rm(folder, { recursive: true });
}

await (process.argv[2] === "served" ? measureServed() : measurePlacements());
