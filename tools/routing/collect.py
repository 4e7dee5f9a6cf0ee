#!/usr/bin/env python3
"""Puts together the questions that routing is measured on, and those it is developed on.

usage: collect.py OUTPUT_FOLDER          with CHIMERE_SHARED=FOLDER

Writes test.tsv and development.tsv: lines of `route <tab> source <tab> question`. What is written by hand stands in
sets/; the rest comes from public sets below CHIMERE_SHARED, which are not part of this repository. No public set is in
both files, nor were the rules and examples of assets/routes/ made from one that is in test.tsv.

Right answers of public sets follow from their labels, not from reading single questions:
  mbpp, humaneval        code       of HumanEval the description alone, without the signature, which gives it away
  medquad                medical    the same number from each of its nine sites
  clinc-oos, snips       default    commands to an assistant; out of scope ones ("oos") are `default` as well. Left out:
                                    the intents `vaccines` (medical or travel) and, of "oos", what was labelled by hand
                                    in sets/oos_labels.txt as belonging to a route
"""

import json
import lzma
import os
import pathlib
import random
import re
import sys

HERE = pathlib.Path(__file__).parent
ROUTES = ["code", "medical", "security", "research", "default"]


def rows(data, path):
    """The objects of a .jsonl, or .jsonl.xz, file."""
    path = data / path
    opened = lzma.open(path, "rt", encoding="utf8") if path.suffix == ".xz" else open(path, encoding="utf8")
    with opened as file:
        return [json.loads(line) for line in file]


def one_line(text):
    return re.sub(r"\s+", " ", text).strip()


def pick(questions, n, seed):
    """`n` of the distinct questions, always the same ones."""
    return random.Random(seed).sample(sorted(set(map(one_line, questions))), n)


def described(prompt):
    """The words of a HumanEval prompt: its last docstring up to the examples."""
    texts = re.findall(r'"""(.*?)"""|\'\'\'(.*?)\'\'\'', prompt, re.S)
    text = "".join(texts[-1]) if texts else prompt
    return re.split(r">>>|[Ee]xamples?\b|For example", text)[0]


def written(kind):
    for route in ROUTES:
        path = HERE / "sets" / f"{route}_{kind}.txt"
        if path.exists():
            for line in path.read_text(encoding="utf8").splitlines():
                yield route, "written", line


def oos_labels():
    """Out-of-scope questions that do belong to a route, as judged by hand before the first rule was written."""
    path = HERE / "sets" / "oos_labels.txt"
    return {line for line in path.read_text(encoding="utf8").splitlines() if line and not line.startswith("#")}


def test_set(data):
    yield from written("test")
    for text in pick([r["text"] for r in rows(data, "eval/mbpp_test_450.jsonl.xz")], 100, 1):
        yield "code", "mbpp", text
    for text in pick([described(r["prompt"]) for r in rows(data, "eval/humaneval_140.jsonl")], 50, 2):
        yield "code", "humaneval", text
    medical = rows(data, "medquad/medquad.jsonl.xz")
    for site in sorted({r["src"] for r in medical}):
        for text in pick([r["q"] for r in medical if r["src"] == site], 17, 3):
            yield "medical", "medquad", text
    clinc = rows(data, "clinc-oos/clinc150.jsonl.xz")
    inside = [r["text"] for r in clinc if r["split"] == "val" and r["intent"] not in ("oos", "vaccines")]
    for text in pick(inside, 150, 4):
        yield "default", "clinc", text
    labelled = oos_labels()
    for text in pick([r["text"] for r in clinc if r["split"] == "oos_test"], 150, 5):
        if text not in labelled:
            yield "default", "clinc-oos", text
    for text in pick([r["text"] for r in rows(data, "snips-nlu/snips.jsonl.xz")], 100, 6):
        yield "default", "snips", text


def development_set(data):
    yield from written("development")
    code = [r["instruction"] for r in rows(data, "gpteacher/codegen-instruct.jsonl.xz") if len(r["instruction"]) < 400]
    for text in pick(code, 100, 11):
        yield "code", "gpteacher", text
    home = [r["text"] for r in rows(data, "nlu-evaluation-home/nlu_home.jsonl.xz")]
    for text in pick(home, 100, 12):
        yield "default", "nlu-home", text
    for text in pick([r["q"] for r in rows(data, "webquestions/webquestions.jsonl.xz")], 100, 13):
        yield "default", "webquestions", text
    small_talk = [r["turns"][0] for r in rows(data, "chatterbot-corpus/english.jsonl.xz")
                  if r["cat"] in ("greetings", "conversations", "food", "humor", "sports", "movies")]
    for text in pick(small_talk, 60, 14):
        yield "default", "chatterbot", text


def main():
    if len(sys.argv) != 2 or "CHIMERE_SHARED" not in os.environ:
        sys.exit(__doc__)
    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    data = pathlib.Path(os.environ["CHIMERE_SHARED"]) / "data"
    for name, made in (("test", test_set(data)), ("development", development_set(data))):
        lines = ["\t".join(row) for row in made]
        (out / f"{name}.tsv").write_text("\n".join(lines) + "\n", encoding="utf8")
        print(f"{out / name}.tsv: {len(lines)} questions")


if __name__ == "__main__":
    main()
