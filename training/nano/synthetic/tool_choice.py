"""The right one of several tools: made-up tools of very many names, fields and wordings, with near ones beside them.

Four families. One joins an action (ACTIONS of tool_words) to a thing; the request says the action in other words than the name
does, so that the description has to be read. The second has authored domains (banks/tools_domains.txt), where a request says
what a person wants, not what the tool is called. Fields and domains marked there are only for the tests. The third has what people
ask assistants for (tool_intents), the fourth sides of things (tool_attributes). A thought goes through the tools one by one (toolcalls.weighed).
"""

import functools
from pathlib import Path

from nano import chatml
from . import common, tool_attributes, tool_intents, toolcalls
from .tool_words import ACTION, TEST_FIELDS, TEST_VERBS, TRAIN_FIELDS

DOMAIN_FILE = Path(__file__).parent / "banks" / "tools_domains.txt"
TYPES = {"s": "string", "i": "integer"}
# Pairs of actions whose requests a person would not tell apart.
TWINS = [{"show", "history"}, {"show", "inspect"}, {"reserve", "lend"}, {"show", "locate"}, {"remind", "schedule"},
         {"stop", "cancel"}, {"repair", "inspect"}, {"share", "move"}, {"list", "show"}]
IRREGULAR = {"sheep": "sheep", "knife": "knives", "shelf": "shelves", "wolf": "wolves", "box": "boxes", "queenbee": "queenbees"}
EXTRAS = [("limit", {"type": "integer", "description": "Most results to return"}),
          ("verbose", {"type": "boolean", "description": "More details"}),
          ("format", {"type": "string", "enum": ["short", "long"], "description": "How much to say"}),
          ("unit", {"type": "string", "enum": ["metric", "imperial"]}), ("note", {"type": "string"}),
          ("dry_run", {"type": "boolean", "description": "Only try it"}), ("language", {"type": "string", "description": "Language"}),
          ("tags", {"type": "array", "items": {"type": "string"}, "description": "Words to find it by"})]
SAY = ["Please {}", "Can you {}?", "Could you {}?", "I want you to {}", "Hey, {}", "Now {}", "{}, please", "I would like you to {}"]


def plural(noun):
    if noun in IRREGULAR:
        return IRREGULAR[noun]
    if noun.endswith(("s", "x", "ch", "sh")):
        return noun + "es"
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return noun[:-1] + "ies"
    return noun + "s"


def styled(rng, words):
    """A function name of words: snake_case, camelCase, PascalCase, kebab-case or with a dot."""
    words = [part for word in words for part in word.split("_")]
    style = rng.choices(["snake", "camel", "pascal", "kebab", "dot", "flat"], [46, 26, 8, 8, 9, 3])[0]
    if style == "camel":
        return words[0] + "".join(w.capitalize() for w in words[1:])
    if style == "pascal":
        return "".join(w.capitalize() for w in words)
    if style == "dot":
        return ".".join([words[0], "_".join(words[1:])]) if len(words) > 1 else words[0]
    return {"snake": "_", "kebab": "-", "flat": ""}[style].join(words)


def nouns_of(held_out):
    return TEST_FIELDS if held_out else TRAIN_FIELDS


def is_test_word(word):
    return any(word in nouns for nouns in TEST_FIELDS.values())


@functools.cache
def dictionary_nouns(data):
    """Common concrete nouns of the dictionary: many more things than a list written by hand."""
    from nano.corpus import part, rows
    found = set()
    for row in rows(part(Path(data) / "wordnet", "english_wordnet")):
        word = row["lemmas"][0]
        if row["pos"] == "n" and word.isalpha() and word.islower() and 3 < len(word) < 10:
            if any(k in str(row.get("kind_of", "")) for k in ("device", "instrument", "vehicle", "animal", "plant", "food", "building",
                                                              "container", "clothing", "tool", "machine", "furniture", "bird",
                                                              "document", "structure", "equipment", "dish", "fruit", "garment")):
                found.add(word)
    return sorted(word for word in found if not is_test_word(word) and not word.endswith("s"))


def draw_noun(rng, held_out, data, field=None):
    fields = nouns_of(held_out)
    if not held_out and data and field is None and rng.random() < 0.55:
        words = dictionary_nouns(data)
        if words:
            return None, rng.choice(words)
    field = field or rng.choice(sorted(fields))
    return field, rng.choice(fields[field])


def slot_values(rng, request):
    """Values for the {marks} of a request: {mark: (key choices, schema, value, how it is said)}."""
    found = {}
    if "{h}" in request:
        keys, kind, about, slot, ways = rng.choice(toolcalls.HANDLES)
        value = toolcalls.draw(rng, slot)
        while slot == "person" and value[0].islower():
            value = toolcalls.draw(rng, slot)
        if slot == "date":
            keys, kind, about, value, ways = ["id", "key"], "string", "its id", toolcalls.draw(rng, "code8"), ["{v}"]
        found["h"] = (keys, {"type": kind, "description": common.cap(about)}, value, rng.choice(ways).format(v=value))
    for mark, keys, schema, draw in (
            ("v", ["name", "person", "new_name", "recipient", "title"], {"type": "string", "description": "A name"},
             lambda: common.person(rng)),
            ("p", ["place", "destination", "target", "to"], {"type": "string", "description": "The place"},
             lambda: "the " + toolcalls.draw(rng, "room") if rng.random() < 0.5 else common.place(rng)),
            ("k", ["count", "amount", "number", "quantity", "days", "points"], {"type": "integer", "description": "How many"},
             lambda: str(rng.randint(2, 60))),
            ("c", ["color", "colour", "shade"], {"type": "string", "description": "The color"}, lambda: toolcalls.draw(rng, "color")),
            ("d", ["date", "day", "when"], {"type": "string", "description": "The day"}, lambda: toolcalls.draw(rng, "date")),
            ("w", ["city", "place", "location"], {"type": "string", "description": "Only those of this place"},
             lambda: toolcalls.draw(rng, "city")),
            ("a", ["first", "left", "one"], {"type": "string", "description": "The first one"}, lambda: toolcalls.draw(rng, "code8")),
            ("b", ["second", "right", "other"], {"type": "string", "description": "The second one"},
             lambda: toolcalls.draw(rng, "code8"))):
        if "{" + mark + "}" in request:
            value = draw()
            said = f"in {value}" if mark == "w" else value
            if mark == "w" and rng.random() < 0.5:
                value = said = ""
            found[mark] = (keys, schema, value.removeprefix("on ") if mark == "d" else value, said)
    return found


def action_tool(rng, action, noun, field, held_out, request=None):
    """A made-up tool; with a request also the call it leads to: (schema, user text, arguments)."""
    words = ACTION[action]
    verb = rng.choice(TEST_VERBS[action]) if held_out and action in TEST_VERBS and rng.random() < 0.5 else rng.choice(words["words"])
    thing = plural(noun) if action in ("list", "count", "compare", "buy") and rng.random() < 0.8 else noun
    form = rng.random()
    parts = [verb, thing] if form < 0.62 else [thing, verb] if form < 0.85 else [field or "my", verb, thing] if form < 0.92 else [verb, "a", noun]
    description = rng.choice(words["descriptions"]).rstrip(".").format(an=common.an(noun), n=noun, ns=plural(noun)) + "."
    if rng.random() < 0.12:
        description += rng.choice([" Use it when the user asks for it.", " Returns JSON.", " For signed-in users.", " Fast.",
                                   f" Part of the {field or 'main'} service."])
    shape = request or rng.choice(words["requests"])
    slots = slot_values(rng, shape)
    properties, required, arguments = {}, [], {}
    for mark, (keys, schema, value, _) in slots.items():
        key = next((k for k in ([rng.choice(keys)] + list(keys)) if k not in properties), mark)
        if mark == "h" and rng.random() < 0.3:
            key = f"{noun}_{key}"
        properties[key] = dict(schema)
        if rng.random() < 0.15:
            properties[key].pop("description", None)
        if mark != "w":
            required.append(key)
        if value != "":
            arguments[key] = int(value) if schema["type"] == "integer" else value
    if rng.random() < 0.25:
        name, schema = rng.choice(EXTRAS)
        properties.setdefault(name, schema)
    tool = toolcalls.schema(styled(rng, parts), description, properties, required)
    user = shape.format(n=noun, ns=plural(noun), **{mark: said for mark, (_, _, _, said) in slots.items()}).strip()
    return tool, " ".join(user.split()), arguments


IMPERATIVE = set("""get delete throw put move take show count order sell find fix check look turn let start make stop keep book rent paint wash
send pass plan call cancel compare duplicate lock remind tell rename change register give buy""".split())


def said(rng, text):
    if text.split(" ")[0] in IMPERATIVE and rng.random() < 0.35 and "," not in text:
        text = rng.choice(SAY).format(text)
    elif rng.random() < 0.06:
        text = rng.choice(["hi, ", "hello, ", "quick one: ", "ok, "]) + text
    if rng.random() < 0.65:
        text = common.cap(text)
    if text[-1] not in "?!." and rng.random() < 0.6:
        text += "?" if toolcalls.ASKING.match(text) or text.lower().startswith(("whose", "to whom", "may ")) else "."
    return text


@functools.cache
def domains():
    """{domain: [tool]} of the bank; the names of those for the tests end in "!"."""
    found, current = {}, None
    for line in DOMAIN_FILE.read_text(encoding="utf8").splitlines():
        if line.startswith("["):
            current = found.setdefault(line.strip("[]"), [])
        elif line.strip() and not line.startswith("#"):
            names, descriptions, parameters, requests = line.split(" | ")
            current.append({"names": names.split("/"), "descriptions": [d.rstrip(".") + "." for d in descriptions.split("/")],
                            "parameters": [p.split(":") for p in parameters.split(",")],
                            "requests": [r.strip() for r in requests.split(" ; ")]})
    return found


def domain_tool(rng, source):
    """(schema, user text, arguments) of an authored tool."""
    request, values, properties, required, arguments = rng.choice(source["requests"]), {}, {}, [], {}
    for key, kind, slot in source["parameters"]:
        value = toolcalls.draw(rng, slot)
        values[key] = value
        properties[key] = {"type": TYPES[kind], "description": common.cap(key.replace("_", " "))}
        if slot in toolcalls.slots()[1]:
            properties[key]["enum"] = toolcalls.slots()[0][slot]
        if all("{" + key + "}" in r for r in source["requests"]):
            required.append(key)
        if "{" + key + "}" in request:
            value = value.removeprefix("on ") if slot in ("date", "weathertime") else value
            arguments[key] = int(value) if kind == "i" else value
    name = rng.choice(source["names"])
    if name.islower() and "." not in name and rng.random() < 0.5:
        name = styled(rng, name.split("_"))
    tool = toolcalls.schema(name, rng.choice(source["descriptions"]), properties, required)
    return tool, request.format(**values), arguments


def confusable(first, second):
    return first == second or any({first, second} <= twins for twins in TWINS)


def action_offer(rng, data, held_out, count):
    """A request and the tool that serves it, and count - 1 others that do not: (schema, user text, arguments, key) each."""
    field, noun = draw_noun(rng, held_out, data)
    action = rng.choice(sorted(ACTION))
    request = rng.choice(ACTION[action]["requests"])
    made = action_tool(rng, action, noun, field, held_out, request)
    others, names = [], {plain(made[0])}
    while len(others) < count - 1:
        roll = rng.random()
        if roll < 0.4:
            other_action, other_field, other = rng.choice(sorted(ACTION)), field, noun
            if confusable(action, other_action):
                continue
        elif roll < 0.65:
            other_action = action
            other_field, other = draw_noun(rng, held_out, data, field if rng.random() < 0.5 else None)
            if other == noun:
                continue
        elif roll < 0.9:
            other_action = rng.choice(sorted(ACTION))
            other_field, other = draw_noun(rng, held_out, data, field if rng.random() < 0.5 else None)
            if other == noun and confusable(action, other_action):
                continue
        else:
            tool = unrelated(rng, held_out)
            if plain(tool) not in names:
                names.add(plain(tool))
                others.append((tool, None, None, None))
            continue
        near = action_tool(rng, other_action, other, other_field, held_out)
        if plain(near[0]) not in names:
            names.add(plain(near[0]))
            others.append((*near, (other_action, other)))
    return [(*made, (action, noun))] + others


def plain(tool):
    return "".join(c for c in tool["function"]["name"].lower() if c.isalnum())


def unrelated(rng, held_out):
    """A tool of any domain of the side."""
    if not held_out and rng.random() < 0.5:
        return toolcalls.instance(rng, rng.choice(toolcalls.tools()))[0]
    name = rng.choice(sorted(d for d in domains() if d.endswith("!") == held_out))
    return domain_tool(rng, rng.choice(domains()[name]))[0]


def domain_offer(rng, held_out, count):
    name = rng.choice(sorted(d for d in domains() if d.endswith("!") == held_out))
    source = rng.choice(domains()[name])
    made, others, names = domain_tool(rng, source), [], set()
    names.add(plain(made[0]))
    near = [tool for tool in domains()[name] if tool is not source]
    rng.shuffle(near)
    while len(others) < count - 1:
        if near and rng.random() < 0.75:
            other = domain_tool(rng, near.pop())
        else:
            field = rng.choice(sorted(d for d in domains() if d.endswith("!") == held_out and d != name))
            other = domain_tool(rng, rng.choice(domains()[field]))
        if plain(other[0]) not in names:
            names.add(plain(other[0]))
            others.append((*other, (other[0]["function"]["description"],)))
    return [(*made, (made[0]["function"]["description"],))] + others


def case(rng, data, held_out, count):
    """((schema, user text, arguments), the other schemas) of one of the two families that the tests ask."""
    entries = domain_offer(rng, held_out, count) if rng.random() < 0.4 else action_offer(rng, data, held_out, count)
    return entries[0][:3], [entry[0] for entry in entries[1:]]


def offer(rng, data, count):
    """Tools with requests for training, of four families (three without the data folder); now and then under names that say nothing."""
    family = rng.choices(["action", "domain", "intent", "side"], [32, 28, 22 if data else 0, 24])[0]
    if family == "action":
        entries = action_offer(rng, data, False, count)
    elif family == "side":
        entries = tool_attributes.offer(rng, count, lambda: draw_noun(rng, False, data)[1], styled, plural, plain)
    elif family == "domain":
        entries = domain_offer(rng, False, count)
    else:
        asked, intents = tool_intents.offer(rng, data, count)
        entries = [(*entry, (intent,)) for entry, intent in zip(asked, intents)]
    if rng.random() < 0.2:
        for entry in entries:
            entry[0]["function"]["name"] = tool_intents.opaque(rng)
    if len({plain(entry[0]) for entry in entries}) < len(entries):
        return offer(rng, data, count)
    return family, entries


def is_clear(entry, entries):
    """Whether no other tool of the offer could serve the request of this one."""
    key = entry[3]
    return key is not None and not any(
        other is not entry and other[3] is not None and len(other[3]) == len(key) and other[3][-1] == key[-1]
        and (len(key) == 1 or confusable(key[0], other[3][0])) for other in entries)


NO_TOOL = toolcalls.NO_TOOL + ["I cannot do that: none of the tools I have fits.", "There is no tool for that here.",
                               "Sorry, that is not something my tools can do.", "I have no tool for this request."]


def want(key):
    """What the request comes to, where action and thing are known: the first line of the thought."""
    return f"Wanted: {key[0]} {key[1]}." if key and len(key) == 2 else ""


def general_question(rng):
    """A question of common knowledge."""
    from . import talk
    asked, answers = rng.choice(talk.bank()["explain"])
    return rng.choice(asked), rng.choice(answers), ""


def answered_without(rng, data):
    """What people ask whatever tools there are: words, sums, small texts, translations, talk."""
    from . import newcomer_sums, newcomer_talk, newcomer_words, requests, unknowns
    pick = rng.random()
    if pick < 0.3:
        first, second = rng.choice(synonyms())
        return rng.choice(['What is another word for {}?', 'Tell me a synonym for {}.', 'Which word means the same as {}?', "a word like {}"]).format(first), rng.choice([f'Another word for {first} is {second}.', f'{common.cap(second)}.'])
    shapes = newcomer_words.TRANSLATIONS if pick < 0.5 else newcomer_sums.SUMS if pick < 0.65 else newcomer_talk.TALK if pick < 0.8 else requests.SHAPES
    if pick > 0.95:
        return unknowns.exchange(rng)[:2]
    return rng.choices([s for _, s in shapes], [w for w, _ in shapes])[0](rng, data)[0][0]


@functools.cache
def synonyms():
    lines = (Path(__file__).parent / "banks" / "reasoning_synonyms.txt").read_text(encoding="utf8").splitlines()
    return [tuple(line.split()) for line in lines if len(line.split()) == 2 and "fast" not in line]  # one of the chats asks for that word


TOLD = [('{{"result": {n}}}', "The result is {n}."), ('{{"value": "{n}"}}', "The answer is {n}."), ('{{"answer": "{n}"}}', "It is {n}.")]
DONE = [('{"status": "ok"}', "Done."), ('{"success": true}', "It is done."), ("OK", "That is done."), ('{"result": "success"}', "That worked.")]


def answered(rng, request):
    """(result, final answer) of a call in the middle of a conversation."""
    if toolcalls.ASKING.match(request) or request.endswith("?"):
        result, answer = rng.choice(TOLD)
        number = rng.randint(2, 900)
        return result.format(n=number), answer.format(n=number)
    return rng.choice(DONE)


def spoken(rng, user, arguments):
    """The request as it is typed; an argument that is the whole request is what was typed."""
    request = said(rng, user)
    return request, {key: request if value == user else value for key, value in arguments.items()}


def last_turn(rng, data, family, thinking, entry, tools):
    """User and assistant of the turn that ends a dialogue: a call where a tool fits, plain words where none does."""
    if entry and plain(entry[0]) in {plain(tool) for tool in tools}:
        tool, user, arguments, key = entry
        request, arguments = spoken(rng, user, arguments)
        call = {"name": tool["function"]["name"], "arguments": arguments}
        return [{"role": "user", "content": request},
                toolcalls.answer(thinking, "", toolcalls.weighed(tools, call["name"], want(key)), [call])]
    if entry:
        user, key = said(rng, entry[1]), entry[3]
        if data and family != "intent" and rng.random() < 0.2:
            user, key = tool_intents.of_no_intent(rng, data), None
        return [{"role": "user", "content": user}, toolcalls.answer(thinking, rng.choice(NO_TOOL), toolcalls.weighed(tools, None, want(key)))]
    # A plain question needs no tool, whatever is on offer. Live questions are not among these: in the fourth run they were, and
    # the model then refused to ask a weather tool for the weather.
    roll = rng.random()
    if roll < 0.25:
        question, reply = rng.choice(toolcalls.PLAIN)
        question = toolcalls.said(rng, question)
    elif roll < 0.45:
        question, reply, _ = general_question(rng)
    else:
        question, reply = answered_without(rng, data)
    return [{"role": "user", "content": question},
            toolcalls.answer(thinking, reply, rng.choice(["This needs no tool.", "No tool is needed here. I answer directly."]))]


def dialogue(rng, data):
    """One offer, up to four requests: each asks to choose anew among the same tools."""
    thinking = rng.random() < 0.55
    count = rng.choices([1, 2, 3, 4, 5, 6], [4, 14, 20, 34, 16, 12])[0]
    roll = rng.random()
    none_fits, no_need = roll < 0.13, roll > 0.915
    family, entries = offer(rng, data, count + none_fits)
    tools = [entry[0] for entry in entries[none_fits:]]
    rng.shuffle(tools)
    asked = [entry for entry in entries[1:] if is_clear(entry, entries)]
    messages = []
    for tool, user, arguments, _ in rng.sample(asked, min(len(asked), rng.choices([0, 1, 2, 3], [50, 22, 18, 10])[0])):
        request, arguments = spoken(rng, user, arguments)
        result, answer = answered(rng, request)
        messages += [{"role": "user", "content": request},
                     {"role": "assistant", "content": "", "tool_calls": [{"name": tool["function"]["name"], "arguments": arguments}]},
                     {"role": "tool", "content": result}, {"role": "assistant", "content": answer}]
    messages += last_turn(rng, data, family, thinking, None if no_need else entries[0], tools)
    if rng.random() < 0.15:
        messages.insert(0, {"role": "system", "content": rng.choice(toolcalls.SYSTEMS)})
    return chatml.check({"messages": messages, "tools": tools, "thinking": thinking, "domain": "tools"})


def dialogues(rng, data, count):
    for _ in range(count):
        yield dialogue(rng, data)
