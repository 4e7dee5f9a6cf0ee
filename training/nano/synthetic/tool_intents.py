"""Tools behind what people ask assistants for: the requests are those of clinc-oos, the names and descriptions our own
(banks/tools_intents.txt). The same request meets its tool under many names, some of which say nothing."""

import functools
from pathlib import Path

from nano.corpus import part, rows
from . import common, toolcalls

BANK = Path(__file__).parent / "banks" / "tools_intents.txt"
WHOLE = [("query", "What the user said"), ("text", "The request"), ("request", "The words of the user"), ("input", "What is asked"), ("question", "The question of the user")]
NOTHING = "oos"  # what clinc-oos calls requests of no intent


@functools.cache
def intents():
    """{intent: (area, names, descriptions)} of the bank."""
    found, area = {}, None
    for line in BANK.read_text(encoding="utf8").splitlines():
        if line.startswith("["):
            area = line.strip("[]")
        elif line.strip() and not line.startswith("#"):
            intent, names, descriptions = line.split(" | ")
            found[intent] = (area, names.split("/"), [d.rstrip(".") + "." for d in descriptions.split("/")])
    return found


@functools.cache
def requests(data):
    """{intent: requests}, as people typed them; those of no intent under NOTHING."""
    found = {}
    for row in rows(part(Path(data) / "clinc-oos", "clinc150")):
        text = " ".join(row["text"].split())
        if (row["intent"] in intents() or row["intent"] == NOTHING) and text.isascii() and len(text) <= 90:
            found.setdefault(row["intent"], []).append(text)
    return found


def opaque(rng):
    """A name that says nothing: the description alone tells what the tool does."""
    word = common.syllable(rng) + (common.syllable(rng) if rng.random() < 0.6 else "")
    return rng.choice([word, f"{word}{rng.randint(1, 9)}", f"tool_{word}", f"{word}_{common.syllable(rng)}", f"fn{rng.randint(1, 99)}", f"{word}.run",
                       word + common.syllable(rng).capitalize(), f"action_{rng.randint(1, 40)}", f"svc_{word}"])


def tool(rng, intent, text=None):
    """(schema, arguments) of an intent; with a text the arguments may be its words."""
    _, names, descriptions = intents()[intent]
    name = rng.choice(names)
    if "_" in name and rng.random() < 0.5:
        name = toolcalls.styled(rng, name)[0]
    properties, required, arguments = {}, [], {}
    if rng.random() < 0.45:
        key, about = rng.choice(WHOLE)
        properties, required, arguments = {key: {"type": "string", "description": about}}, [key], {key: text}
    return toolcalls.schema(name, rng.choice(descriptions), properties, required), arguments


def asked(rng, data, intent):
    text = rng.choice(requests(data)[intent])
    made, arguments = tool(rng, intent, text)
    return made, text, arguments


def offer(rng, data, count):
    """`count` tools, each with a request and its arguments: about half of one area."""
    names, chosen = sorted(set(intents()) & set(requests(data))), []
    area = rng.choice(sorted({intents()[n][0] for n in names}))
    near = [n for n in names if intents()[n][0] == area]
    for _ in range(count):
        pool = [n for n in (near if rng.random() < 0.55 else names) if n not in chosen] or [n for n in names if n not in chosen]
        chosen.append(rng.choice(pool))
    return [asked(rng, data, intent) for intent in chosen], chosen


def of_no_intent(rng, data):
    return rng.choice(requests(data)[NOTHING])
