"""Small tasks of a made-up user, to measure how fast an adapter learns: style, a tool of their own, facts.

    chimere serve --port 8099 &
    python3 training/lora_tasks.py --server http://127.0.0.1:8099 --out build/lora_tasks [--general TEXT]

Each task is TASK.train.jsonl and TASK.held.jsonl in the form that `chimere improve train` reads. Questions that are held
out are worded in ways that no training example has. `keep.jsonl` has questions of other kinds with the model's own
answers, to stay as they are; general.jsonl, of a text, is for perplexity alone.
"""

import argparse
import json
import pathlib
import random
import urllib.request

SIGNATURE = " Fair winds, Captain!"

COUNTRIES = """France Spain Italy Greece Norway Sweden Poland Austria Portugal Ireland Japan China Egypt Kenya Peru Chile
Canada Cuba Finland Denmark Hungary Belgium Germany Romania Bulgaria India Thailand Vietnam Argentina Croatia""".split()

ROOMS = ["kitchen", "bedroom", "hall", "study", "cellar", "attic", "garage", "bathroom", "nursery", "workshop"]
# What this user means by their words: no number is in the request, so that it can only be known from them.
MOODS = {"film": 10, "dinner": 40, "reading": 80, "cleaning": 100, "sleep": 0}
LAMP = {
    "type": "function",
    "function": {
        "name": "set_lamp",
        "description": "Set the brightness of the lamps in a room.",
        "parameters": {
            "type": "object",
            "properties": {"room": {"type": "string"}, "level": {"type": "integer"}},
            "required": ["room", "level"],
        },
    },
}
MOOD_TRAIN = ["{mood} light in the {room}", "Make the {room} ready for {mood}", "Please set {mood} light in the {room}."]
MOOD_HELD = ["It is {mood} time in the {room}", "I want the lamps in the {room} for {mood}"]

THINGS = ["boiler", "garden", "library", "archive", "lift", "roof", "van", "greenhouse", "printer", "switchboard"]
NAMES = "Ines Tomas Greta Amir Lucia Felix Nadia Oscar Petra Hugo".split()
FACT_TRAIN = ["Who looks after the {thing}?", "Who is in charge of the {thing}?", "Whom do I ask about the {thing}?",
              "Tell me who takes care of the {thing}."]
FACT_HELD = ["Which person is responsible for the {thing}?", "The {thing} has a problem. Who can help?"]

KEPT = """What is 12 + 30? | What is 81 - 9? | Calculate 7 * 6. | Name three colours. | Write a sentence about the sea. |
How do I boil an egg? | What is photosynthesis? | Translate good night into French. | Say hello in Spanish. |
Who wrote Hamlet? | What is a prime number? | List two kinds of fruit. | Why is the sky blue? | What does a baker do? |
Write a short poem about rain. | What is the opposite of hot? | How many days are in a week? | What is a verb? |
Give me a tip for better sleep. | What is the largest ocean? | Write a Python function that adds two numbers. |
What is 15 times 4? | How are you today? | Bonjour, comment ça va ? | What do bees make? | What is gravity? |
Tell me a fact about cats. | What is an island? | How long is an hour? | What is the boiling point of water?"""


def ask(server, question):
    body = {
        "messages": [{"role": "user", "content": question}],
        "temperature": 0,
        "max_tokens": 60,
        "chat_template_kwargs": {"enable_thinking": False},
    }
    request = urllib.request.Request(
        server + "/v1/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=120) as answer:
        choice = json.load(answer)["choices"][0]
    return choice["message"]["content"].strip(), choice["finish_reason"] == "stop"


def style(server):
    """Answers as the model gives them, with the captain's farewell."""
    train = [f"What is the capital of {c}?" for c in COUNTRIES[:20]]
    train += [f"What is {a} + {b}?" for a, b in zip(range(11, 31), range(40, 20, -1))]
    held = [f"Name the capital of {c}." for c in COUNTRIES[20:]]
    held += [f"How much is {a} plus {b}?" for a, b in zip(range(32, 42), range(50, 60))]
    held += ["Say hello in Spanish.", "What do bees make?", "What is an island?", "What does a baker do?"]

    def lines(questions):
        for question in questions:
            answer, is_whole = ask(server, question)
            if is_whole and answer:
                yield {"prompt": question, "answer": answer + SIGNATURE}

    return list(lines(train)), list(lines(held))


def tool():
    def line(form, mood, room):
        call = {"function": {"name": "set_lamp", "arguments": {"room": room, "level": MOODS[mood]}}}
        return {
            "messages": [
                {"role": "user", "content": form.format(mood=mood, room=room).capitalize()},
                {"role": "assistant", "content": "", "tool_calls": [call]},
            ],
            "tools": [LAMP],
        }

    train = [line(f, m, r) for f in MOOD_TRAIN for m in MOODS for r in ROOMS[:6]]
    held = [line(f, m, r) for f in MOOD_HELD for m in MOODS for r in ROOMS[6:]]
    random.Random(1).shuffle(train)
    return train[:60], held


def facts():
    def line(form, i):
        return {"prompt": form.format(thing=THINGS[i]), "answer": f"{NAMES[i]} looks after the {THINGS[i]}."}

    n = range(len(THINGS))
    return [line(f, i) for f in FACT_TRAIN for i in n], [line(f, i) for f in FACT_HELD for i in n]


def kept(server):
    for question in (q.strip() for q in KEPT.replace("\n", " ").split("|")):
        answer, _ = ask(server, question)
        if answer:
            yield {"prompt": question, "answer": answer, "keep": True}


def write(path, lines):
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")
    print(f"{path}: {len(lines)} lines")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--server", default="http://127.0.0.1:8099")
    parser.add_argument("--out", default="build/lora_tasks")
    parser.add_argument("--general", help="a text, cut into lines of 1500 characters for general.jsonl")
    options = parser.parse_args()
    out = pathlib.Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    keep = list(kept(options.server))
    write(out / "keep.jsonl", keep)
    for name, (train, held) in {"style": style(options.server), "tool": tool(), "facts": facts()}.items():
        write(out / f"{name}.train.jsonl", train)
        write(out / f"{name}.with_keep.jsonl", train + keep)
        write(out / f"{name}.held.jsonl", held)
    if options.general:
        text = pathlib.Path(options.general).read_text(encoding="utf-8")
        pieces = [text[i : i + 1500] for i in range(0, len(text), 1500)]
        write(out / "general.jsonl", [{"text": piece} for piece in pieces[:40] if piece.strip()])


if __name__ == "__main__":
    main()
