"""Labelled steps for a process reward model: an adapter of chimere-nano that says whether a step is right (docs/odo.md).

    prm.py sample STEPS.jsonl [--server URL] [--problems 1200] [--tries 4] [--seed 1]
    prm.py ids MODEL.gguf STEPS.jsonl IDS.txt
    lora_baseline.py train MODEL.gguf IDS.txt HELD_OUT.txt --out prm.gguf

`sample` has a server that runs the model answer problems with known steps, several times each, and cuts every thought as the
search does. A step is right while the equations of the thought are those of the problem, in their order; behind the first that
is not, nothing is. Scenes are those of training; with --held-out those kept for tests. `ids` asks about each step as the judge
does (`verdict_question` of src/odo/judge.cpp).
"""

import argparse
import json
import random
import re
import urllib.request
from concurrent.futures import ThreadPoolExecutor

from lora_baseline import dialogue_of
from nano import chatml
from nano.bpe import Tokenizer
from nano.synthetic import common, steps, steps_scenes

EQUATION = re.compile(r"(\d[\d,]*) ([-+x*/×÷]) (\d[\d,]*) = (\d[\d,]*)")
NUMBER = re.compile(r"\d[\d,]*")
SIGNS = {"*": "x", "×": "x", "÷": "/"}
BORDER = re.compile(r"(?<=[.!?]) |(?<=\n)")


def story(rng, is_held_out, is_long):
    """A number that changes two or three times, or four or five times and is larger: (question, [(a, op, b, result)])."""
    scenes = common.side(steps.SCENES, is_held_out, "scene", 0.25)
    things, starts, gains, losses, questions, _ = rng.choice(scenes if is_held_out else scenes + steps_scenes.SCENES)
    male = rng.random() < 0.5
    slots = {"A": rng.choice(common.FIRST), "B": rng.choice(common.FIRST), "o": rng.choice(things.split("|")),
             "v": rng.choice(steps.VEHICLES), "he": "he" if male else "she", "He": "He" if male else "She",
             "him": "him" if male else "her", "his": "his" if male else "her"}
    value = rng.randint(100, 500) if is_long else rng.randint(12, 90)
    said, done = [rng.choice(starts.split(" / ")).format(x=value, **slots)], []
    for _ in range(rng.choice([4, 5] if is_long else [2, 3])):
        gains_now = rng.random() < 0.5 or value < 14
        x = rng.randint(5, 300 if is_long else 45) if gains_now else rng.randint(2, value - 4)
        result = value + x if gains_now else value - x
        said.append(common.cap(rng.choice((gains if gains_now else losses).split(" / ")).format(x=x, **slots)))
        done.append((value, "+" if gains_now else "-", x, result))
        value = result
    return " ".join([*said, rng.choice(questions.split(" / ")).format(**slots)]), done


def problem(rng, is_held_out):
    roll = rng.random()
    if roll < 0.75:
        return story(rng, is_held_out, roll < 0.4)
    question, done, _ = steps.problem(rng, is_held_out)
    return question, done


def number(text):
    return int(text.replace(",", ""))


def same(a, b):
    return a == b or (a[1] == b[1] and a[1] in "+x" and a[0] == b[2] and a[2] == b[0] and a[3] == b[3])


def labelled(question, done, thought, answer):
    """[(what stood before, step, whether it is right)]; None instead of a label where that cannot be told."""
    known = {number(n) for n in NUMBER.findall(question)} | {step[3] for step in done}
    at, is_right, begin, out = 0, True, 0, []
    ends = [match.start() if match.group() else match.end() for match in BORDER.finditer(thought)]
    for end in [*ends, len(thought)]:
        step = thought[begin:end]
        if not step.strip():
            continue
        is_known = True
        for a, sign, b, result in EQUATION.findall(step):
            found = (number(a), SIGNS.get(sign, sign), number(b), number(result))
            if at < len(done) and same(found, done[at]):
                at += 1
            elif not any(same(found, before) for before in done[:at]):
                is_right = False
        if not EQUATION.search(step):
            numbers = [number(n) for n in NUMBER.findall(step)]
            if re.search(r"answer is|result is|That was the last", step) and numbers:
                is_right = is_right and at == len(done) and numbers[-1] == done[-1][3]
            elif any(n not in known for n in numbers):
                is_known = False
        out.append((thought[:begin], step, is_right if is_known or not is_right else None))
        begin = end
    if answer.strip():
        values = [number(n) for n in NUMBER.findall(answer)]
        out.append((thought, answer, done[-1][3] in values))
    return out


def ask(server, question, tries, seed):
    body = {"messages": [{"role": "user", "content": question}], "temperature": 0.9, "top_k": 40, "n": tries, "seed": seed,
            "max_tokens": 400, "chat_template_kwargs": {"enable_thinking": True}}
    request = urllib.request.Request(server + "/v1/chat/completions", json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=600) as answer:
        choices = json.load(answer)["choices"]
    return [(c["message"].get("reasoning_content") or "", c["message"].get("content") or "") for c in choices
            if c["finish_reason"] == "stop"]


def sample(options):
    rng = random.Random(options.seed)
    problems = [problem(rng, options.held_out) for _ in range(options.problems)]
    counts = {True: 0, False: 0, None: 0}
    with open(options.steps, "w", encoding="utf-8") as out, ThreadPoolExecutor(4) as pool:
        answers = pool.map(lambda i: ask(options.server, problems[i][0], options.tries, options.seed + i), range(len(problems)))
        for (question, done), tried in zip(problems, answers):
            for thought, answer in tried:
                for before, step, is_right in labelled(question, done, thought, answer):
                    counts[is_right] += 1
                    if is_right is not None:
                        line = {"question": question, "before": before, "step": step, "right": is_right}
                        print(json.dumps(line, ensure_ascii=False), file=out)
    print(f"{options.steps}: {counts[True]} right, {counts[False]} wrong, {counts[None]} left out")


def write_ids(options):
    """Each step once, as many wrong ones as right ones."""
    rng = random.Random(1)
    lines = {(one["question"], one["before"], one["step"]): one["right"]
             for one in map(json.loads, open(options.steps, encoding="utf-8"))}
    of = {label: sorted(key for key, right in lines.items() if right is label) for label in (True, False)}
    n = min(options.most // 2, *map(len, of.values()))
    chosen = [(key, label) for label in of for key in rng.sample(of[label], n)]
    rng.shuffle(chosen)
    tokenizer = Tokenizer.load(options.model)
    with open(options.out, "w", encoding="utf-8") as out:
        for (question, before, step), is_right in chosen:
            asked = f"Question: {question}\n\nSolution: {before}{step}\n\nIs the last step right? Answer + or -."
            texts = [text for text, _ in chatml.segments(dialogue_of({"prompt": asked, "answer": "+" if is_right else "-"}))]
            prompt, answer = tokenizer.encode("".join(texts[:-2])), tokenizer.encode(texts[-2])
            print(len(prompt), *prompt, *answer, file=out)
    print(f"{options.out}: {len(chosen)} steps")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parts = parser.add_subparsers(required=True)
    sampling = parts.add_parser("sample")
    sampling.add_argument("steps")
    sampling.add_argument("--server", default="http://127.0.0.1:8081")
    sampling.add_argument("--problems", type=int, default=1200)
    sampling.add_argument("--tries", type=int, default=4)
    sampling.add_argument("--seed", type=int, default=1)
    sampling.add_argument("--held-out", action="store_true")
    sampling.set_defaults(run=sample)
    ids = parts.add_parser("ids")
    for name in ("model", "steps", "out"):
        ids.add_argument(name)
    ids.add_argument("--most", type=int, default=40000)
    ids.set_defaults(run=write_ids)
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
