"""One fact: a question with its answer, and the small words around it."""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

BANKS = Path(__file__).parent / "banks"
HELD_OUT_PERCENT = 2
THINKING_SHARE = 0.55
SYSTEM_SHARE = 0.15
SYSTEMS = (
    "You are a helpful assistant.", "Answer briefly.", "You are a small language model.",
    "Give short and correct answers.", "You answer questions in plain English.", "Be kind and brief.",
    "You are a friendly helper.", "Answer in one or two sentences.", "You are a careful assistant.",
    "If you are not sure, say so.", "Help the user with short answers.", "You are a quiz partner.",
)


@dataclass(frozen=True)
class Fact:
    question: str
    answer: str            # with the key words between asterisks
    follow_up: str = ""    # the question as a second turn after another fact of the same group
    group: str = ""
    thought: str = ""      # the way to the answer, where it is more than remembering


def held(text):
    """Whether a row belongs to the held-out part: the same on every machine."""
    digest = hashlib.blake2b(text.encode("utf8"), digest_size=4).digest()
    return int.from_bytes(digest, "big") % 100 < HELD_OUT_PERCENT


def article(noun):
    """The noun with a or an, by its first letter and a few exceptions."""
    if re.match(r"(a|an|the) ", noun):
        return noun
    an = noun[0].lower() in "aeiou" and not re.match(r"(?i)(uni|use|usu|eu|ewe|one\b|ukulele|utensil)", noun)
    an = an or re.match(r"(?i)(hour|honest|honou?r|heir)", noun) is not None
    return ("an " if an else "a ") + noun


def capital(text):
    return text[:1].upper() + text[1:]


def lower_first(text):
    """The text as the middle of a sentence: names, "I" and abbreviations keep their capital."""
    small = {"The", "A", "An", "What", "Who", "Where", "When", "Which", "How", "Why", "Is", "Are", "Can", "Do", "Does",
             "In", "On", "Of", "At", "If", "Name", "Give", "Tell", "It", "There", "You", "People", "Yes", "No",
             "Explain", "Define", "List"}
    first = text.split(" ", 1)[0]
    return text[0].lower() + text[1:] if first in small else text


def plain(answer):
    return answer.replace("*", "")


def key_of(answer):
    match = re.search(r"\*(.+?)\*", answer)
    return match.group(1) if match else plain(answer).rstrip(".")


def fill(template, row):
    """A table template with its row: {0} as is, {C0} capitalised, {a0} with article, {A0} both."""
    def value(match):
        text = row[int(match.group(2))]
        style = match.group(1)
        if style in ("a", "A"):
            text = article(text)
        return capital(text) if style in ("A", "C") else text
    return re.sub(r"\{([aAC]?)(\d)\}", value, template)
