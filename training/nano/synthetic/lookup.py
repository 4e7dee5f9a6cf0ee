"""Plain copying and looking up: words and codes that mean nothing, found in a list by their neighbour.

At this size everything that is read from a context (a tool's name, a value of a note, a field of a result) rests on this one skill, and
here it is asked for with nothing else in the way. Several questions stand after one list, so that little of a row is spent on lists.
"""

from . import common, frames, toolcalls

KINDS = [lambda r: common.invented(r).lower(), lambda r: toolcalls.draw(r, "code8"), lambda r: r.choice(common.FIRST), lambda r: str(r.randint(10, 9999)), common.place,
         lambda r: f"{common.syllable(r)}_{common.syllable(r)}", lambda r: common.syllable(r) + common.syllable(r).capitalize(), lambda r: r.choice(frames.THINGS),
         lambda r: f"{common.syllable(r)}-{r.randint(1, 99)}", lambda r: r.choice(frames.WORDS["color"].split("|")), lambda r: r.choice(frames.WORDS["item"].split("|"))]
LINES = ["{k} = {v}", "{k}: {v}", "{k} -> {v}", "{k} is {v}.", "{v} ({k})", "- {k}: {v}", "{k}, {v}", '"{k}": "{v}"', "The {k} is {v}.", "[{k}] {v}"]
ASK = ["What is {k}?", "What stands at {k}?", "{k}?", "Give me the value of {k}.", "Which value has {k}?", "Look up {k}.", "What belongs to {k}?"]
ASK_BACK = ["Which one has {v}?", "Where does {v} stand?", "What has the value {v}?", "To which does {v} belong?"]
ORDINALS = ["first", "second", "third", "fourth", "fifth", "sixth"]


def different(rng, make, count):
    found = []
    for _ in range(count * 6):
        value = make(rng)
        if value not in found:
            found.append(value)
        if len(found) == count:
            break
    return found


def pairs(rng):
    """A list of pairs, and questions by key or by value."""
    count = rng.randint(2, 9)
    keys, values = different(rng, rng.choice(KINDS), count), different(rng, rng.choice(KINDS), count)
    both = [(k, v) for k, v in zip(keys, values) if k not in values]
    if len(both) < 2:
        return pairs(rng)
    line = rng.choice(LINES)
    text = rng.choice(["\n", "\n", "; ", ", "] if line[-1] != "." else ["\n", " "]).join(line.format(k=k, v=v) for k, v in both)
    turns = []
    for key, value in rng.sample(both, min(len(both), rng.choice([1, 2, 3, 4]))):
        if rng.random() < 0.7:
            turns.append((rng.choice(ASK).format(k=key), rng.choice([value, f"{key} is {value}.", f"It is {value}."])))
        else:
            turns.append((rng.choice(ASK_BACK).format(v=value), rng.choice([key, f"That is {key}.", f"{key} has {value}."])))
    thought = f"{turns[-1][1].rstrip('.')}." if rng.random() < 0.5 else f"I look for it in the list: {line.format(k=key, v=value)}"
    turns[0] = (rng.choice(["{t}\n\n{q}", "{q}\n\n{t}", "Here is a list:\n{t}\n{q}", "{t}\n{q}"]).format(t=text, q=turns[0][0]), turns[0][1])
    return turns, thought


def repeat(rng):
    """Say exactly this."""
    make = rng.choice(KINDS)
    text = rng.choice([" ", " ", ", ", "-"]).join(make(rng) if rng.random() < 0.6 else rng.choice(KINDS)(rng) for _ in range(rng.randint(1, 7)))
    if rng.random() < 0.4:
        text = frames.fact(rng).statement
    ask = rng.choice(["Repeat this: {}", "Say exactly: {}", "Repeat after me: {}", "Copy this text: {}", "Write this again: {}", 'Say "{}"', "Please repeat: {}", "Echo: {}", "Type this: {}"])
    return [(ask.format(text), text)], "I write the same."


def place_in_list(rng):
    items = different(rng, rng.choice(KINDS), rng.randint(3, 6))
    at = rng.randrange(len(items))
    text = rng.choice([", ", "\n", " / "]).join(items)
    turns = [("{}\n{}".format(text, f"What is the {ORDINALS[at]} one?") if rng.random() < 0.5 else f"What is the {ORDINALS[at]} of these? {text}", items[at])]
    at = rng.randrange(len(items) - 1)
    turns.append((rng.choice(["What comes after {}?", "Which one follows {}?", "And after {}?"]).format(items[at]), items[at + 1]))
    if rng.random() < 0.5:
        turns.append((rng.choice(["What comes before {}?", "Which one stands before {}?"]).format(items[at + 1]), items[at]))
    if rng.random() < 0.3:
        turns.append((rng.choice(["And the last one?", "What is the last one?"]), items[-1]))
    return turns, f"The list is {', '.join(items)}."


def put_in(rng):
    """A sentence or line with a gap that is to be filled with a given value."""
    value = rng.choice(KINDS)(rng)
    text = rng.choice(["Dear {}, thank you for your letter.", "The code is {}.", "My name is {}.", "Room {} is free.", "Welcome to {}!", "print(\"{}\")", "We meet at {}.", "Order {} was sent.", "{} is here.", "Please call {}."])
    ask = rng.choice(['Put "{v}" into the gap: {g}', "Fill in {v}: {g}", "Write {v} where the ___ is: {g}", "Replace ___ with {v}: {g}", "{g}\nFill the gap with {v}."])
    return [(ask.format(v=value, g=text.format("___")), text.format(value))], f"The gap becomes {value}."


SHAPES = [(55, pairs), (15, repeat), (18, place_in_list), (12, put_in)]


def dialogues(rng, data, count):
    for _ in range(count):
        turns, thought = rng.choices([s for _, s in SHAPES], [w for w, _ in SHAPES])[0](rng)
        yield common.turns_to_dialogue(rng, turns, "lookup", thought, thinking=rng.random() < 0.25)
