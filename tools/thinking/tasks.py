"""Reasoning tasks of the kind chimere-nano was trained on, none of them seen in training; always the same."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "training"))

from nano import cases_arithmetic, cases_skills  # noqa: E402

SUMS, WORD_PROBLEMS = 300, 200
KINDS = ("sums", "steps")


def tasks(count: int = SUMS + WORD_PROBLEMS, kind: str = "sums") -> list:
    """[{"messages", "answer"}]: held-out sums and differences and word problems that rest on one, or problems of two to four steps."""
    if kind == "steps":
        return cases_skills.step_cases()[:count]
    made = cases_arithmetic.cases(SUMS) + cases_arithmetic.word_problem_cases(WORD_PROBLEMS)
    # Every part of the list has the same mixture.
    order = sorted(range(len(made)), key=lambda i: (i * 7919) % len(made))
    return [made[i] for i in order][:count]


def is_right(task: dict, answer: str) -> bool:
    return cases_arithmetic.is_right(task, answer)
