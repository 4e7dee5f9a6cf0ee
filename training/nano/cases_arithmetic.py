"""Held-out arithmetic questions: sums and differences no training generator shows, and word problems made of them."""

import random
import re

from nano.synthetic import arithmetic, sums, word_problems

CASES_SEED = 20_011
WORD_PROBLEM_SEED = 20_012
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def held_out_pairs(op: str) -> list:
    """Every held-out (a, b) with a >= b for the sign, each unordered pair once."""
    return [(a, b) for a in range(10, 100) for b in range(10, a + 1) if sums.held_out_pair(a, op, b)]


def sum_cases(rng, op, kind, count):
    pairs = held_out_pairs(op)
    rng.shuffle(pairs)
    out = []
    for i in range(count):
        a, b = pairs[i % len(pairs)]
        if op == "+" and rng.random() < 0.5:
            a, b = b, a
        question = sums.sum_question(rng, a, op, b)
        out.append({"messages": [{"role": "user", "content": question}], "answer": str(sums.apply(a, op, b)),
                    "kind": kind})
    return out


def cases(count: int = 200) -> list:
    """count two-digit questions from held-out pairs only, half addition and half subtraction; always the same."""
    rng = random.Random(CASES_SEED)
    additions = sum_cases(rng, "+", "add", (count + 1) // 2)
    return additions + sum_cases(rng, "-", "sub", count // 2)


def word_problem_cases(count: int = 100) -> list:
    """count word problems for information: every one rests on at least one held-out sum or difference."""
    rng = random.Random(WORD_PROBLEM_SEED)
    out = []
    while len(out) < count:
        problem = word_problems.word_problem(rng)
        if arithmetic.any_held_out(problem.facts):
            a, op, b = problem.facts[-1]
            answer = str(word_problems.calculate(a, op, b))
            out.append({"messages": [{"role": "user", "content": problem.question}], "answer": answer, "kind": "word"})
    return out


def last_number(text: str):
    """The last number written in the text as a string, or None; "85." and "1,200" read as 85 and 1200."""
    found = NUMBER.findall(re.sub(r"(?<=\d),(?=\d{3})", "", re.sub(r"(?<=[\d)]) *- *(?=\d)", " minus ", text)))
    return found[-1] if found else None


def is_right(case: dict, answer_text: str) -> bool:
    """Whether the last number in the answer is the right one; text before a closing think tag does not count."""
    number = last_number(answer_text.rsplit("</think>", 1)[-1])
    return number is not None and float(number) == float(case["answer"])
