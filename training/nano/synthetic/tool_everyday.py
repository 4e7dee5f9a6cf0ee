"""Tools of an everyday assistant from the request to the last sentence: the call, its result, and an answer that says what was asked. With the same
tools at hand also questions that need none of them, which are answered as if there were no tools.

tool_choice.py ends at the call, and tool_results.py asks for one field of a record; people see neither, but a request and the sentence that comes back.
"""

import functools
import json
import re

from nano import chatml
from . import common, facts, frames, newcomers, tool_choice, toolcalls
from .fact import BANKS, plain

ERRORS = [({"error": "not found"}, "I am sorry, that was not found."), ({"error": "service unavailable"}, "I am sorry, this does not work at the moment."), ({"status": "failed", "reason": "no connection"}, "I am sorry, there is no connection."), ({"error": "permission denied"}, "I am sorry, I am not allowed to do that.")]
TYPES = {"s": "string", "i": "integer"}
OPENINGS = ["", "", "", "", "please ", "hey, ", "can you help? ", "hello, ", "quick question: ", "ok, "]
# What a thing is called differs between the bank and the tests of the 28 chats: no request here is about laundry.
NOT_HERE = {"washing machine", "dryer"}


@functools.cache
def bank():
    """(names, descriptions, [(key, kind, slot)], requests, results, answers) of every tool."""
    out = []
    for line in (BANKS / "tools_everyday.txt").read_text(encoding="utf8").splitlines():
        if line.startswith("#"):
            continue
        names, descriptions, parameters, requests, results, answers = line.split(" | ")
        out.append((names.split("/"), descriptions.split("./"), [tuple(p.split(":")) for p in parameters.split(",")], requests.split(" ; "), results.split(" ; "), answers.split(" ; ")))
    return out


def tool(rng, entry):
    names, descriptions, parameters, *_ = entry
    name = rng.choice(names)
    if name.islower() and rng.random() < 0.4:
        name = tool_choice.styled(rng, name.split("_"))
    described = rng.random() < 0.6
    properties = {key: {"type": TYPES[kind], **({"description": common.cap(key.replace("_", " "))} if described else {})} for key, kind, _ in parameters}
    return toolcalls.schema(name, rng.choice(descriptions).rstrip(".") + ("." if rng.random() < 0.8 else ""), properties, [key for key, _, _ in parameters])


def value(rng, slot):
    if slot in ("phone", "weekday"):
        return frames.draw_value(rng, slot)
    if slot == "code8" and rng.random() < 0.5:
        return str(rng.randint(100, 99999))
    found = toolcalls.draw(rng, slot)
    while found in NOT_HERE:
        found = toolcalls.draw(rng, slot)
    return found


def filled(rng, text, values):
    """The text with {key} and {v1:slot}; what was drawn for a mark is remembered in `values`."""
    def put(match):
        name, _, slot = match.group(1).partition(":")
        if name not in values:
            values[name] = value(rng, slot)
        return values[name]
    return re.sub(r"\{([a-z]\w*(?::[\w-]+)?)\}", put, text)


def exchange(rng, entry, offered):
    """(request, call, result, answer, thought about the result)"""
    _, _, parameters, requests, results, answers = entry
    values = {key: value(rng, slot) for key, _, slot in parameters}
    while len(set(values.values())) < len(values):
        values = {key: value(rng, slot) for key, _, slot in parameters}
    request = filled(rng, rng.choice(requests), values)
    asking = re.match(r"(how|what|when|where|who|is|do|does|did|can|has|which)\b", request) is not None
    request = rng.choice([o for o in OPENINGS if not (asking and "please" in o)]) + request + rng.choice(["?", "?", ""] if asking else [".", "", "", "!"])
    if rng.random() < 0.6:
        request = common.cap(request)
    arguments = {}
    for key, kind, slot in parameters:
        bare = values[key].removeprefix("on ") if slot in ("date", "weathertime") else values[key]
        arguments[key] = int(bare) if kind == "i" else bare
    call = {"name": offered["function"]["name"], "arguments": arguments}
    if rng.random() < 0.05:
        result, answer = rng.choice(ERRORS)
        return request, call, json.dumps(result), answer, "The tool reports an error. I say so."
    seen = dict(values)
    text = filled(rng, rng.choice(results), seen)
    json.loads(text)
    # An answer may only say what the request or the result has.
    fitting = [a for a in answers if all(m.partition(":")[0] in seen for m in re.findall(r"\{(\w+)", a))]
    answer = common.cap(filled(rng, rng.choice(fitting), seen)) if fitting else "Done."
    if rng.random() < 0.1:
        text = "\n".join(f"{k}: {v}" for k, v in json.loads(text).items())
    drawn = [v for k, v in seen.items() if k not in values]
    thought = f"The result says {', '.join(drawn)}. I say it in a sentence." if drawn else rng.choice(["It worked. I say what was done.", "The tool did it. I tell the user."])
    return request, call, text, answer, thought


@functools.cache
def known():
    """(ways to ask, answer) of what needs no tool: facts of the banks."""
    return [([f.question for f in row], plain(row[0].answer)) for name in ("facts_trivia.txt", "facts_more.txt", "facts_general.txt") for row in facts.general_facts(BANKS / name)]


def without(rng, data):
    roll = rng.random()
    if roll < 0.5:
        asked, answer = rng.choice(known())
        return common.typed(rng, rng.choice(asked)), answer
    if roll < 0.75:
        asked, answers = rng.choice(newcomers.talk())
        return newcomers.dressed(rng, rng.choice(asked)), rng.choice(answers)
    return tool_choice.answered_without(rng, data)


def dialogue(rng, data):
    thinking = rng.random() < 0.55
    entries = rng.sample(bank(), rng.choices([1, 2, 3, 4, 5, 6], [6, 14, 24, 34, 12, 10])[0])
    tools, plain_names = [], set()
    for entry in entries:
        one = tool(rng, entry)
        tools.append(one)
        plain_names.add(tool_choice.plain(one))
    if rng.random() < 0.2:
        other = tool_choice.unrelated(rng, False)
        if tool_choice.plain(other) not in plain_names:
            tools.append(other)
    shown = tools[:]
    rng.shuffle(shown)
    messages = []
    for _ in range(rng.choices([1, 2, 3], [70, 22, 8])[0]):
        if rng.random() < 0.22:
            request, answer = without(rng, data)
            messages += [{"role": "user", "content": request}, toolcalls.answer(thinking, answer, rng.choice(["This needs no tool.", "No tool is needed here. I answer directly."]))]
            continue
        at = rng.randrange(len(entries))
        request, call, result, answer, thought = exchange(rng, entries[at], tools[at])
        messages += [{"role": "user", "content": request}, toolcalls.answer(thinking, "", toolcalls.weighed(shown, call["name"]), [call]), {"role": "tool", "content": result}, toolcalls.answer(thinking, answer, thought)]
    # As in chats, only the last turn keeps its thought.
    last = max(i for i, m in enumerate(messages) if m["role"] == "user")
    for message in messages[:last]:
        message.pop("reasoning_content", None)
    if rng.random() < 0.12:
        messages.insert(0, {"role": "system", "content": rng.choice(toolcalls.SYSTEMS)})
    return chatml.check({"messages": messages, "tools": shown, "thinking": thinking, "domain": "tools"})


def dialogues(rng, data, count):
    for _ in range(count):
        yield dialogue(rng, data)
