"""What a tool has answered, told in a sentence: JSON and plain text, small and large, with the value that was asked for among others."""

import json
import re

from nano import chatml
from . import common, frames, tool_choice, tool_replies, toolcalls

LOOKUPS = ["get_{k}", "lookup_{k}", "{k}_info", "find_{k}", "query_{k}", "{k}_details", "fetch_{k}_data", "search_{k}", "read_{k}", "{k}_record"]
OTHER_KEYS = [("id", lambda r: toolcalls.draw(r, "code8")), ("status", lambda r: r.choice(["ok", "active", "done"])), ("updated", lambda r: f"20{r.randint(20, 26)}-0{r.randint(1, 9)}-1{r.randint(0, 9)}"),
              ("source", lambda r: r.choice(["cache", "live", "db1"])), ("version", lambda r: r.randint(1, 9)), ("ok", lambda r: True), ("count", lambda r: r.randint(1, 9)), ("page", lambda r: 1)]
FAILED = [('{"error": "not found"}', "Sorry, I could not find that."), ('{"error": "timeout"}', "Sorry, the service did not answer in time."), ('{"error": "access denied"}', "Sorry, I do not have access to that."),
          ("Error: service not available", "Sorry, the service is not available right now."), ("[]", "Nothing was found."), ('{"results": []}', "There are no results."), ('{"status": "failed"}', "Sorry, that did not work."),
          ("null", "There is no result."), ('{"error": "invalid key"}', "Sorry, the tool reports an invalid key.")]
DONE = [('{"status": "ok"}', "Done."), ('{"success": true}', "It is done."), ("OK", "That is done."), ('{"result": "success"}', "That worked."), ('{"ok": true, "id": "{c}"}', "Done. The id is {c}."),
        ('{"status": "created", "id": "{c}"}', "It was created with the id {c}."), ('{"status": "deleted"}', "It was deleted."), ('{"confirmation": "{c}"}', "Done. Your confirmation code is {c}.")]
PASS_ON = ["The result is there. I tell the user.", "I have the result.", "The tool has answered.", "Now I can answer."]


def sort_of(value):
    """What a value looks like: a number, a time, a day, money, a name, or a word."""
    if value.lstrip("-").isdigit():
        return "number"
    if re.fullmatch(r"\d+(:\d\d)?( [ap]m)?", value):
        return "time"
    if value in toolcalls.DAYS or value.split(" ")[0] in toolcalls.MONTHS:
        return "day"
    if value[:1].isdigit():
        return "amount"
    return "name" if value[:1].isupper() else "word"


def opaque_result(rng, facts):
    """Fields whose names say nothing: the sort of the value has to fit the question word."""
    names = rng.choice([["f1", "f2", "f3", "f4", "f5"], ["a", "b", "c", "d", "e"], ["col1", "col2", "col3", "col4", "col5"], ["x1", "x2", "x3", "x4", "x5"], ["item0", "item1", "item2", "item3", "item4"]])
    values = [value_of(rng, f) for f in facts]
    rng.shuffle(values)
    return json.dumps(dict(zip(names, values)), ensure_ascii=False) if rng.random() < 0.8 else json.dumps(values, ensure_ascii=False)


def as_result(rng, facts, asked):
    """The facts as a tool gives them back, in one of several shapes."""
    record = {}
    for f in facts:
        key = rng.choice(f.frame.keys)
        record.setdefault(key if rng.random() < 0.85 else "".join(w.capitalize() if i else w for i, w in enumerate(key.split("_"))),
                          int(f.value) if f.value.lstrip("-").isdigit() and rng.random() < 0.9 else f.value)
    items = list(record.items())
    if rng.random() < 0.5:
        items += [(key, make(rng)) for key, make in rng.sample(OTHER_KEYS, rng.randint(1, 2)) if key not in record]
    if rng.random() < 0.4:
        items.append((rng.choice(["name", "title"]), asked.entity))
    rng.shuffle(items)
    shape = rng.random()
    if shape < 0.6:
        return json.dumps(dict(items), ensure_ascii=False)
    if shape < 0.7:
        return json.dumps({rng.choice(["result", "data", "response"]): dict(items)}, ensure_ascii=False)
    if shape < 0.78:
        return json.dumps([dict(items)], ensure_ascii=False)
    if shape < 0.88:
        return "\n".join(f"{key}: {value}" for key, value in items)
    return " ".join(f.statement for f in facts)


def nested_result(rng, facts, asked):
    """The same deeper down: objects in objects, other rows beside the one that is asked for, and fields nobody asked for."""
    def record(of):
        fields = {}
        for f in of:  # the one that is asked for comes first, and stays where two have the same key
            fields.setdefault(rng.choice(f.frame.keys), value_of(rng, f))
        fields |= {key: make(rng) for key, make in rng.sample(OTHER_KEYS, rng.randint(0, 3)) if key not in fields}
        return shuffled(rng, fields)
    mine = record(facts)
    label = rng.choice(["name", "title", "id", "key", "of"])
    roll = rng.random()
    if roll < 0.35:
        outer = {label: asked.entity, rng.choice(["details", "info", "data", "values", "attributes"]): mine}
        if rng.random() < 0.5:
            outer[rng.choice(["meta", "request", "source"])] = dict((key, make(rng)) for key, make in rng.sample(OTHER_KEYS, 2))
        return json.dumps(shuffled(rng, outer), ensure_ascii=False)
    if roll < 0.75:
        rows = [{label: asked.entity, **mine}]
        for _ in range(rng.randint(1, 3)):
            rows.append({label: frames.draw_entity(rng, asked.frame.kind), **{key: another(rng, value) for key, value in mine.items()}})
        rng.shuffle(rows)
        return json.dumps(rows if rng.random() < 0.4 else {rng.choice(["results", "items", "rows", "data"]): rows, "count": len(rows)}, ensure_ascii=False)
    if roll < 0.9:
        return json.dumps({rng.choice(["response", "result", "output"]): {rng.choice(["status", "code"]): rng.choice(["ok", 200]), rng.choice(["body", "content", "data"]): {label: asked.entity, **mine}}}, ensure_ascii=False)
    return f"Results for {asked.entity}:\n" + "\n".join(f"- {key.replace('_', ' ')}: {value}" for key, value in mine.items())


def value_of(rng, fact):
    return int(fact.value) if fact.value.lstrip("-").isdigit() and rng.random() < 0.9 else fact.value


def shuffled(rng, fields):
    items = list(fields.items())
    rng.shuffle(items)
    return dict(items)


def another(rng, value):
    """A value of the same sort."""
    if isinstance(value, bool):
        return rng.random() < 0.5
    if isinstance(value, int):
        return rng.randint(1, max(9, 2 * abs(value)))
    return frames.draw_value(rng, rng.choice(["name", "place", "item", "color", "invented", "code", "food", "weekday"]))


def lookup_tool(rng, kind):
    key = rng.choice(["name", "id", "query", "key", "item", kind])
    words = rng.choice(LOOKUPS).format(k=kind).split("_")
    description = rng.choice([f"Looks up {common.an(kind)}.", f"Returns what is known about {common.an(kind)}.", f"Gets the data of {common.an(kind)}.", f"Information on {common.an(kind)}."])
    return toolcalls.schema(tool_choice.styled(rng, words), description, {key: {"type": "string", "description": rng.choice(["Name", "What to look for", f"Which {kind}"])}}, [key]), key


def case(rng, held_out=False):
    """(tools, call, question, result, answer, value): a question whose answer stands in the result."""
    facts = frames.facts_of(rng, rng.choice([1, 2, 3, 4]), held_out, True)
    asked = facts[0]
    tool, key = lookup_tool(rng, asked.frame.kind)
    others = [tool_choice.unrelated(rng, held_out) for _ in range(rng.choice([0, 0, 1, 2, 3]))]
    tools = [tool] + [t for t in others if tool_choice.plain(t) != tool_choice.plain(tool)]
    names = set()
    tools = [t for t in tools if not (t["function"]["name"].lower() in names or names.add(t["function"]["name"].lower()))]
    rng.shuffle(tools)
    call = {"name": tool["function"]["name"], "arguments": {key: asked.entity.strip('"')}}
    result = as_result(rng, facts, asked) if held_out or rng.random() < 0.55 else nested_result(rng, facts, asked)
    if not held_out and len(facts) > 1 and rng.random() < 0.25 and sum(sort_of(f.value) == sort_of(asked.value) for f in facts) == 1:
        result = opaque_result(rng, facts)
    return tools, call, asked.question, result, asked.answer, asked.value, asked


def many_rows(rng):
    """A list of rows, of which one is asked for."""
    kind = rng.choice(["price", "stock", "age", "score", "distance"])
    names = rng.sample(common.FIRST if kind in ("age", "score") else frames.THINGS if kind in ("price", "stock") else [common.place(rng) for _ in range(6)], rng.randint(2, 5))
    rows = [{"name": name, kind: rng.randint(3, 99)} for name in names]
    row = rng.choice(rows)
    the = "the " if kind in ("price", "stock") else ""
    question = {"price": f"What does the {row['name']} cost?", "stock": f"How many of the {row['name']} do we have?", "age": f"How old is {row['name']}?", "score": f"What is the score of {row['name']}?",
                "distance": f"How far is {row['name']}?"}[kind]
    answer = {"price": f"The {row['name']} costs {row[kind]}.", "stock": f"There are {row[kind]} of the {row['name']}.", "age": f"{row['name']} is {row[kind]} years old.",
              "score": f"{row['name']} has a score of {row[kind]}.", "distance": f"{row['name']} is {row[kind]} away."}[kind]
    if rng.random() < 0.25:
        high = max(rows, key=lambda r: r[kind])
        if sum(r[kind] == high[kind] for r in rows) == 1:
            question, answer = f"Which has the highest {kind}?", f"{common.cap(the)}{high['name']} has the highest {kind}: {high[kind]}."
    elif rng.random() < 0.15:
        question, answer = "Which names are in the list?", "The names are " + common.listed(names) + "."
    tool = toolcalls.schema(tool_choice.styled(rng, ["list", kind + "s"]), f"Lists every {kind}.", {"limit": {"type": "integer", "description": "Most rows"}}, [])
    return [tool], {"name": tool["function"]["name"], "arguments": {}}, question, json.dumps(rows if rng.random() < 0.5 else {"rows": rows}), answer


def table(rng):
    """Rows with several fields, a cell of which is asked for; (tools, call, question, result, answer, then further questions)."""
    first = rng.choice([("name", lambda: rng.choice(common.FIRST)), ("city", lambda: common.place(rng)), ("item", lambda: rng.choice(frames.THINGS)), ("id", lambda: toolcalls.draw(rng, "code8"))])
    fields = rng.sample(["price", "age", "room", "color", "owner", "stock", "phone", "day", "time", "size", "team", "status", "score", "country", "weight", "floor"], rng.randint(2, 4))
    makers = {"price": "money", "room": "room", "color": "color", "owner": "name", "phone": "phone", "day": "weekday", "time": "time", "team": "color", "status": "mood", "country": "country"}
    names = list({first[1]() for _ in range(rng.randint(2, 5))})
    rows = [{first[0]: name, **{field: frames.draw_value(rng, makers[field]) if field in makers else rng.randint(2, 99) for field in fields}} for name in names]
    cells = [(row, field) for row in rows for field in fields]
    asked = rng.sample(cells, min(len(cells), rng.choice([1, 1, 2, 3])))
    turns = [(rng.choice(["What is the {f} of {n}?", "Which {f} does {n} have?", "{n}: what is the {f}?", "Tell me the {f} of {n}.", "I need the {f} of {n}."]).format(f=field, n=row[first[0]]),
              rng.choice(["The {f} of {n} is {v}.", "{n} has the {f} {v}."]).format(f=field, n=row[first[0]], v=row[field])) for row, field in asked]
    tool = toolcalls.schema(tool_choice.styled(rng, [rng.choice(["list", "get", "read", "fetch"]), rng.choice(["table", "rows", "records", first[0] + "s"])]), "Reads all rows.", {}, [])
    result = json.dumps(rows if rng.random() < 0.6 else {"rows": rows}, ensure_ascii=False) if rng.random() < 0.75 else \
        " | ".join(rows[0]) + "\n" + "\n".join(" | ".join(str(value) for value in row.values()) for row in rows)
    return [tool], {"name": tool["function"]["name"], "arguments": {}}, result, turns


def several_cells(rng):
    """A table that is read once and asked about again and again."""
    tools, call, result, turns = table(rng)
    thinking = rng.random() < 0.4
    messages = [{"role": "user", "content": turns[0][0]}]
    if len(turns) == 1:
        messages += [toolcalls.answer(thinking, "", toolcalls.weighed(tools, call["name"]), [call]), {"role": "tool", "content": result}, toolcalls.answer(thinking, turns[0][1], rng.choice(PASS_ON))]
    else:
        messages += [{"role": "assistant", "content": "", "tool_calls": [call]}, {"role": "tool", "content": result}, {"role": "assistant", "content": turns[0][1]}]
        for question, answer in turns[1:-1]:
            messages += [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
        messages += [{"role": "user", "content": turns[-1][0]}, toolcalls.answer(thinking, turns[-1][1], "The result is already there.")]
    return chatml.check({"messages": messages, "tools": tools, "thinking": thinking, "domain": "tools"})


def where_it_stands(rng, result, value):
    """The thought names the field, where the result has one: it is the field that has to be matched with the question."""
    found = re.search(rf'"?(\w+)"?: "?{re.escape(value)}(?!\w)', result)
    if found and rng.random() < 0.75:
        return rng.choice([f'The field "{found[1]}" says {value}.', f"{found[1]}: {value}.", f'The answer stands at "{found[1]}": {value}.'])
    return rng.choice([f"The result says {value}.", f"It is {value}.", f"The value is {value}."])


def dialogue(rng, data):
    kind = rng.random()
    if kind < 0.15:
        return several_cells(rng)
    if kind < 0.37:
        return tool_replies.dialogue(rng, data)
    thinking = rng.random() < 0.5
    roll = rng.random()
    if roll < 0.62:
        tools, call, question, result, answer, value, asked = case(rng)
        why = where_it_stands(rng, result, value)
        if rng.random() < 0.2:
            answer = rng.choice([f"It is {value}.", f"The answer is {value}.", f"{common.cap(asked.frame.keys[0].replace('_', ' '))}: {value}."])
    elif roll < 0.77:
        tools, call, question, result, answer = many_rows(rng)
        why = rng.choice(PASS_ON)
    else:
        (tool, user, arguments), others = tool_choice.case(rng, data, False, rng.choice([2, 3, 4]))
        tools, question = [tool] + others, tool_choice.said(rng, user)
        rng.shuffle(tools)
        call = {"name": tool["function"]["name"], "arguments": arguments}
        asks = toolcalls.ASKING.match(question) or question.endswith("?")
        number = rng.randint(2, 90)
        told = [(f'{{"result": {number}}}', f"The result is {number}."), (f'{{"value": "{number}"}}', f"The answer is {number}.")]
        result, answer = rng.choice(told + FAILED if asks else DONE + FAILED)
        code = toolcalls.draw(rng, "code8")
        result, answer = result.replace("{c}", code), answer.replace("{c}", code)
        why = rng.choice(PASS_ON)
    if rng.random() < 0.06 and roll < 0.62:
        result, answer = rng.choice(FAILED)
        why = "The tool reports an error."
    messages = [{"role": "user", "content": common.typed(rng, question)}, toolcalls.answer(thinking, "", toolcalls.weighed(tools, call["name"]), [call]),
                {"role": "tool", "content": result}, toolcalls.answer(thinking, answer, why)]
    if rng.random() < 0.1:
        messages.insert(0, {"role": "system", "content": rng.choice(toolcalls.SYSTEMS)})
    return chatml.check({"messages": messages, "tools": tools, "thinking": thinking, "domain": "tools"})


def dialogues(rng, data, count):
    for _ in range(count):
        yield dialogue(rng, data)
