"""What a call came to, said in the words of the request: done, refused, or a value with its unit; also results of several fields, told in one sentence.

tool_results.py asks for one field of a record. Here the request is one for an action ("the lamp 7 can go"), the tool answers shortly ({"deleted": true}), and
the answer has to say what happened to what.
"""

import json

from nano import chatml
from . import common, frames, tool_choice, toolcalls
from .tool_words import ACTION

# action: participle, states in which a tool reports it, and what the answer says. {t} is the thing, {v} a name, {p} a place, {k} a number, {c} a color, {d} a day.
DEEDS = {
    "create": ("created", ["The {n} {v} was created.", "Done: there is now a {n} called {v}."]), "delete": ("deleted", ["{t} was deleted.", "Done, {t} is gone."]), "rename": ("renamed", ["{t} is now called {v}.", "Done: the new name is {v}."]),
    "move": ("moved", ["{t} was moved to {p}.", "{t} is in {p} now."]), "buy": ("ordered", ["I ordered {k} {ns}.", "{k} {ns} were ordered."]), "sell": ("offered", ["{t} is on sale now.", "{t} was put up for sale."]),
    "repair": ("repaired", ["{t} will be repaired.", "Somebody will repair {t}."]), "start": ("started", ["{t} is running now.", "{t} was started."]), "stop": ("stopped", ["{t} was stopped.", "{t} does not run any longer."]),
    "reserve": ("reserved", ["{t} is reserved for {v}.", "Done, {t} is kept for {v}."]), "lend": ("lent", ["You can have {t} for {k} days.", "{t} is yours for {k} days."]), "paint": ("painted", ["{t} is {c} now.", "{t} was painted {c}."]),
    "clean": ("cleaned", ["{t} is clean now.", "{t} was cleaned."]), "share": ("sent", ["{t} was sent to {v}.", "{v} has {t} now."]), "schedule": ("planned", ["{t} is planned.", "{t} is in the calendar now."]),
    "cancel": ("cancelled", ["{t} was cancelled.", "Done, {t} is called off."]), "rate": ("saved", ["Your {k} points for {t} were saved.", "{t} now has {k} points from you."]), "copy": ("copied", ["{t} was copied.", "There are two of them now."]),
    "lock": ("locked", ["{t} is locked now.", "{t} is safe: it was locked."]), "remind": ("set", ["I will remind you of {t}.", "The reminder is set."]),
}
REFUSALS = [("not found", "was not found"), ("access denied", "may not be changed: access is denied"), ("locked by another user", "is in use by somebody else"), ("already done", "was already done before"), ("service down", "cannot be reached right now")]
# key of the result; how its value is drawn; how it is said
PARTS = [("minutes_left", "n2-90", "{v} minutes are left"), ("hours_left", "n2-40", "{v} hours are left"), ("percent", "n3-99", "{v} percent are done"), ("temperature", "n5-90", "the temperature is {v} degrees"), ("battery", "n3-100", "the battery is at {v} percent"), ("queue", "n1-30", "{v} people are waiting"),
         ("free_places", "n1-60", "{v} places are free"), ("price", "money", "the price is {v}"), ("room", "n2-300", "the room is {v}"), ("platform", "n1-30", "the platform is {v}"), ("delay_minutes", "n2-90", "it is {v} minutes late"), ("arrives", "time", "it arrives at {v}"), ("opens", "time", "it opens at {v}"),
         ("closes", "time", "it closes at {v}"), ("day", "weekday", "the day is {v}"), ("contact", "name", "the contact is {v}"), ("color", "color", "the color is {v}"), ("city", "place", "the city is {v}"), ("items", "n2-80", "there are {v} items"), ("errors", "n1-20", "there are {v} errors"), ("speed", "n5-200", "the speed is {v}"),
         ("driver", "name", "the driver is {v}"), ("code", "code", "the code is {v}"), ("weight_kg", "n2-90", "it weighs {v} kilograms"), ("rating", "n1-5", "the rating is {v} of 5"), ("distance_km", "n2-700", "it is {v} kilometres away"), ("total", "n5-900", "the total is {v}"), ("unread", "n1-60", "{v} are unread"), ("wind", "n2-90", "the wind is {v} km/h"),
         ("sets", "n2-9", "there are {v} sets"), ("next_stop", "place", "the next stop is {v}"), ("winner", "name", "the winner is {v}"), ("score", "n1-90", "the score is {v}"), ("level", "n1-20", "the level is {v}")]
STATES = [("state", "it is {v}"), ("status", "it is {v}"), ("phase", "it is {v}"), ("mode", "it is {v}")]
WORDS = "running|waiting|ready|paused|closed|open|busy|on the way|in repair|cooling down|loading|empty|full|asleep|moving|delayed|charging|offline".split("|")
SUBJECTS = "parcel|order|elevator|oven|robot|bus|flight|print job|download|ferry|match|taxi|battery|backup|game|heater|machine|pump|delivery|exam|pool|library|train|car|drone|greenhouse|queue|upload|tram|phone|boiler|meeting".split("|")
ASK = ["How is the {s} {i} doing?", "What is the state of {s} {i}?", "What about {s} {i}?", "Tell me about {s} {i}.", "Is everything all right with {s} {i}?", "Any news of {s} {i}?", "How far is {s} {i}?", "Give me the status of {s} {i}, please.", "check {s} {i}", "what's with {s} {i}"]


def done(rng, data):
    """(tools, call, request, result, answer, thought)"""
    action = rng.choice(sorted(DEEDS))
    field, noun = tool_choice.draw_noun(rng, False, data)
    request = rng.choice(ACTION[action]["requests"])
    tool, user, arguments = tool_choice.action_tool(rng, action, noun, field, False, request)
    said = {"n": noun, "ns": tool_choice.plural(noun), "v": "", "p": "", "k": "", "c": "", "d": ""}
    # What the marks of the request became stands in the arguments, in their order.
    for mark, value in zip(marks(request), arguments.values()):
        said[mark] = value
    handle = said.get("h")
    said["t"] = f"the {noun} {handle}" if f"{noun} {handle}" in user else f"the {noun}"
    participle, answers = DEEDS[action]
    if rng.random() < 0.8:
        result = rng.choice([{participle: True}, {"status": participle}, {"result": participle}, {"ok": True, "action": participle}, {participle: True, "id": toolcalls.draw(rng, "code8")}, {"state": participle, "by": "system"}])
        answer, thought = rng.choice(answers).format(**said), rng.choice([f"It was {participle}.", f"The tool says {participle}. I tell the user what happened.", "That worked."])
    else:
        problem, told = rng.choice(REFUSALS)
        result, answer, thought = rng.choice([{"error": problem}, {"status": "failed", "reason": problem}, {participle: False, "reason": problem}]), f"Sorry, {said['t']} {told}.", f"The tool reports: {problem}."
    tools = offered(rng, tool)
    return tools, {"name": tool["function"]["name"], "arguments": arguments}, tool_choice.said(rng, user), as_text(rng, result), common.cap(answer), thought


def marks(request):
    """The marks of a request in the order in which action_tool draws them."""
    return [m for m in "hvpkcdwab" if "{" + m + "}" in request]


def offered(rng, tool):
    others = [tool_choice.unrelated(rng, False) for _ in range(rng.choice([0, 1, 2, 3]))]
    tools, names = [], set()
    for one in [tool] + others:
        if tool_choice.plain(one) not in names:
            names.add(tool_choice.plain(one))
            tools.append(one)
    rng.shuffle(tools)
    return tools


def as_text(rng, result):
    return json.dumps(result, ensure_ascii=False) if rng.random() < 0.85 else "\n".join(f"{k}: {v}" for k, v in result.items())


def state(rng, data):
    """A status of two to four fields; the whole is told, or the field that is asked for."""
    subject, number = rng.choice(SUBJECTS), rng.choice([str(rng.randint(1, 60)), toolcalls.draw(rng, "code8"), rng.choice(common.FIRST)])
    parts = rng.sample(PARTS, rng.choice([1, 1, 2, 2, 3]))
    record, sentences = {}, []
    if rng.random() < 0.6:
        key, sentence = rng.choice(STATES)
        record[key] = rng.choice(WORDS)
        sentences.append(sentence.format(v=record[key]))
    for key, kind, sentence in parts:
        value = frames.draw_value(rng, kind) if not kind.startswith("n") or kind == "name" else rng.randint(*map(int, kind[1:].split("-")))
        record[key] = value
        sentences.append(sentence.format(v=value))
    shown = list(record.items())
    label = rng.choice([None, "id", subject.replace(" ", "_"), "name"])
    if label:
        shown.insert(rng.choice([0, len(shown)]), (label, int(number) if number.isdigit() else number))
    words = subject.split()
    tool = toolcalls.schema(tool_choice.styled(rng, rng.choice([["get"] + words, words + ["status"], words + ["info"], ["check"] + words, ["state", "of"] + words])), rng.choice([f"Tells how {common.an(subject)} is doing.", f"State of {common.an(subject)}.", f"Looks after {common.an(subject)}.", f"Gives the status of {common.an(subject)}."]),
                            {rng.choice(["id", "name", "number", words[-1]]): {"type": "string", "description": f"Which {subject}"}}, [])
    key = next(iter(tool["function"]["parameters"]["properties"]))
    tool["function"]["parameters"]["required"] = [key]
    call = {"name": tool["function"]["name"], "arguments": {key: number}}
    if len(parts) > 1 and rng.random() < 0.45:
        field, kind, sentence = rng.choice(parts)
        request = rng.choice(["What is the {f} of {s} {i}?", "Tell me the {f} of {s} {i}.", "{s} {i}: what about the {f}?", "I need the {f} of {s} {i}"]).format(f=field.replace("_", " "), s=subject, i=number)
        answer = common.cap(sentence.format(v=record[field])) + "."
        thought = f"{field}: {record[field]}."
    else:
        request = rng.choice(ASK).format(s=subject, i=number)
        sentences[0] = sentences[0].replace("it is", f"the {subject} is", 1) if sentences[0].startswith("it is") else sentences[0]
        answer = common.cap(common.listed(sentences)) + "."
        thought = " ".join(f"{k}: {v}." for k, v in record.items())
    return offered(rng, tool), call, common.cap(request) if rng.random() < 0.7 else request, as_text(rng, dict(shown)), answer, thought


def dialogue(rng, data):
    thinking = rng.random() < 0.5
    tools, call, request, result, answer, thought = (done if rng.random() < 0.5 else state)(rng, data)
    messages = [{"role": "user", "content": request}, toolcalls.answer(thinking, "", toolcalls.weighed(tools, call["name"]), [call]), {"role": "tool", "content": result}, toolcalls.answer(thinking, answer, thought)]
    if rng.random() < 0.1:
        messages.insert(0, {"role": "system", "content": rng.choice(toolcalls.SYSTEMS)})
    return chatml.check({"messages": messages, "tools": tools, "thinking": thinking, "domain": "tools"})
