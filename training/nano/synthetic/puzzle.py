"""One puzzle: a question with its thought and its answers."""

import hashlib
from typing import NamedTuple

from .word_problems import BOYS, GIRLS

SPLITS = ("train", "held_out")
HELD_OUT_SHARE = 0.01
NAMES = BOYS + GIRLS
SYSTEM_PROMPTS = (
    "You are a helpful assistant.", "Answer briefly.", "Think about the question and answer it.", "Give short answers.",
    "You are Nano, a small and friendly assistant.", "Answer the question.", "Be short and correct.",
    "You solve puzzles.",
    "You are a patient teacher.", "Explain in one sentence.", "Keep your answers short.",
    "You are a logical assistant.",
)


class Puzzle(NamedTuple):
    """One question; answer follows a thought, plain stands alone (and may say a little more)."""

    question: str
    thought: str
    answer: str
    plain: str


def puzzle(question, thought, answer, plain=None):
    return Puzzle(question, thought, answer, plain or answer)


def in_held_out(key: str) -> bool:
    digest = hashlib.blake2b(key.encode(), digest_size=8, person=b"nano-reason").digest()
    return int.from_bytes(digest, "big") < HELD_OUT_SHARE * 2**64


def capital(text):
    return text[0].upper() + text[1:]


def article(noun):
    return ("an " if noun[0] in "aeiou" or noun == "hour" else "a ") + noun
