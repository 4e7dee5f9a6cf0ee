#!/usr/bin/env python3
"""Fits the constants of src/odo/routing/calibration.h on the development questions.

usage: fit.py DUMP        where chimere eval odo --questions development.tsv --dump DUMP wrote it

Rules: the share of right choices, with one right and one wrong one added, as few cases would be too sure.

Examples: temperature, bias of `default` and weight of the cosines under which the right routes are likeliest. They are
asked where no rule decides. The words of the rules were completed with the development questions in sight, so nearly all
of these are decided by rules now: what counts here are those that the first version of the rules did not know
(sets/first_rules_missed.txt) and those of `default`.

The model: its temperature, on all questions.
"""

import json
import math
import pathlib
import sys

HERE = pathlib.Path(__file__).parent
ROUTES = ["code", "default", "medical", "research", "security"]
# As in calibration.h when the dump was written: chances are brought back to what they were made of.
WORDS = (0.42, 0.6)
COSINE_TEMPERATURE = 0.21
MODEL_TEMPERATURE = 1


def logits(row, way, temperature, bias=0):
    """What the chances were made of, but for a constant."""
    values = [temperature * math.log(max(chance, 1e-12)) for chance in row[way]]
    values[ROUTES.index("default")] -= bias
    return values


def likelihood(rows, values, temperature, bias):
    total = 0
    for row, scores in zip(rows, values):
        scores = [(s + (bias if r == "default" else 0)) / temperature for r, s in zip(ROUTES, scores)]
        top = max(scores)
        total += scores[ROUTES.index(row["route"])] - top - math.log(sum(math.exp(s - top) for s in scores))
    return total / len(rows)


def report(name, rows, values, biases):
    temperatures = [0.1 * 1.1**i for i in range(75)]
    mean, temperature, bias = max((likelihood(rows, values, t, b), t, b) for t in temperatures for b in biases)
    print(f"{name:28} temperature {temperature:7.3f}, bias {bias:.1f}, log-likelihood {mean:.4f}")


def rules_report(rows):
    for name, is_one in (("one rule ahead", True), ("more", False)):
        right = n = 0
        for row in rows:
            choice = row["cascade without vectors"]
            if choice["stage"] == "rules" and (choice["confidence"] < 0.97) == is_one:
                n += 1
                right += choice["route"] == row["route"]
        print(f"rules, {name:21} right {(right + 1) / (n + 2):.3f} of {n}")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    rows = [json.loads(line) for line in open(sys.argv[1], encoding="utf8")]
    rules_report(rows)
    missed = set((HERE / "sets" / "first_rules_missed.txt").read_text(encoding="utf8").splitlines())
    asked = [r for r in rows if r["route"] == "default" or r["question"] in missed]
    biases = [0.2 * i for i in range(10)]
    words = [logits(r, "words of the examples", *WORDS) for r in asked]
    report("words", asked, words, biases)
    if "vectors of the examples" in rows[0]:
        cosines = [logits(r, "vectors of the examples", COSINE_TEMPERATURE) for r in asked]
        report("vectors", asked, cosines, biases)
        for weight in (0.5, 1, 1.5, 2, 3):
            both = [[w + weight * c for w, c in zip(a, b)] for a, b in zip(words, cosines)]
            report(f"words + {weight} * cosine", asked, both, biases)
    if "model" in rows[0]:
        report("model", rows, [logits(r, "model", MODEL_TEMPERATURE) for r in rows], [0])


if __name__ == "__main__":
    main()
