"""500 reasoning tasks of the kind chimere-nano was trained on, none of them seen in training; always the same."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "training"))

from nano import cases_arithmetic  # noqa: E402

SUMS, WORD_PROBLEMS = 300, 200


def tasks(count: int = SUMS + WORD_PROBLEMS) -> list:
    """Held-out sums and differences, and word problems that rest on one: [{"messages", "answer", "kind"}]."""
    made = cases_arithmetic.cases(SUMS) + cases_arithmetic.word_problem_cases(WORD_PROBLEMS)
    # Every part of the list has the same mixture.
    order = sorted(range(len(made)), key=lambda i: (i * 7919) % len(made))
    return [made[i] for i in order][:count]


def is_right(task: dict, answer: str) -> bool:
    return cases_arithmetic.is_right(task, answer)
