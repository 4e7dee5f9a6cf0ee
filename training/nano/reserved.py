"""What training must not see: the questions and chats that the model is judged by. prepare.py drops every dialogue that asks one."""

import functools
import json
import pathlib
import re

from .questions import QUESTIONS

CHATS = pathlib.Path(__file__).parent.parent / "newcomer_chats.json"


def plain(text):
    return " ".join(re.findall(r"\w+", text.lower()))


@functools.cache
def reserved():
    """(plain texts, their sets of words) of the questions and of every user's turn of the chats."""
    turns = [turn for chat in json.loads(CHATS.read_text(encoding="utf8"))["chats"] for turn in chat["turns"]]
    texts = {plain(text) for text in turns}
    return frozenset(QUESTIONS), texts, [frozenset(text.split()) for text in texts if len(text.split()) > 3]


def is_reserved(text):
    """Whether a user's turn is one of them: the questions word for word, the chats also when nearly all words are the same."""
    questions, texts, sets = reserved()
    if text.strip() in questions:
        return True
    if len(text) > 400:
        return False
    words = plain(text)
    if words in texts:
        return True
    mine = set(words.split())
    return any(len(mine & other) >= 0.8 * len(mine | other) for other in sets)
