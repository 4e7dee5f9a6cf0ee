"""Held-out cases of what the model learns since its fourth run, and their judges: the right one of four tools, results read, forms
filled in, notes answered from, and problems of several steps. All are drawn by fixed seeds from the sides of the banks that
training never reads (nano/synthetic/common.py says how they are told apart)."""

import json
import random
import re

from .synthetic import forms, notes, steps, tool_choice, tool_results


def tool_cases(count=200):
    """One request, four tools: names, things and domains that training never showed."""
    rng, out = random.Random("four unseen tools"), []
    for _ in range(count):
        (tool, user, arguments), others = tool_choice.case(rng, None, True, 4)
        tools = [tool] + others
        rng.shuffle(tools)
        out.append({"messages": [{"role": "user", "content": tool_choice.said(rng, user)}], "tools": tools, "name": tool["function"]["name"], "arguments": arguments})
    return out


def no_tool_cases(count=50):
    """Requests of one domain, three tools of others: none should be called."""
    rng, out = random.Random("no tool fits"), []
    names = sorted(d for d in tool_choice.domains() if d.endswith("!"))
    for _ in range(count):
        mine, *others = rng.sample(names, 4)
        _, user, _ = tool_choice.domain_tool(rng, rng.choice(tool_choice.domains()[mine]))
        tools = [tool_choice.domain_tool(rng, rng.choice(tool_choice.domains()[name]))[0] for name in others]
        out.append({"messages": [{"role": "user", "content": tool_choice.said(rng, user)}], "tools": tools})
    return out


def result_cases(count=200):
    """A call has been made and its result is there: the answer must say the value."""
    rng, out = random.Random("tool results"), []
    for i in range(count):
        tools, call, question, result, _, value, _ = tool_results.case(rng, True)
        messages = [{"role": "user", "content": question},
                    {"role": "assistant", "content": "", "tool_calls": [{"id": f"call_{i}", "type": "function",
                                                                        "function": {"name": call["name"], "arguments": json.dumps(call["arguments"])}}]},
                    {"role": "tool", "tool_call_id": f"call_{i}", "content": result}]
        out.append({"messages": messages, "tools": tools, "value": value})
    return out


def says(value, text):
    """Whether the value stands in the text as a word, in any letter case."""
    return re.search(rf"(?<!\w){re.escape(value.lower())}(?!\w)", (text or "").lower()) is not None


def form_cases(count=200):
    """Half made-up things of kinds never trained, half values taken from a text about relations never trained."""
    rng, out = random.Random("forms"), []
    while len(out) < count:
        if len(out) % 2:
            user, record = forms.extract(rng, True)
            expected = record
        else:
            user, record, _ = forms.invent(rng, True)
            expected = None
        if rng.random() < 0.5:
            user += rng.choice(forms.AS_JSON).format(k=forms.spoken(record))
        out.append({"messages": [{"role": "user", "content": user}], "schema": forms.object_schema(record), "expected": expected})
    return out


def sensible(value):
    """A short closed value: no endless text or number, no run of the same thing, something in it."""
    if isinstance(value, bool):
        return True
    if isinstance(value, (int, float)):
        return abs(value) < 10**8
    if isinstance(value, list):
        return 1 <= len(value) <= 8 and all(map(sensible, value)) and len({json.dumps(v) for v in value}) > len(value) // 2
    if isinstance(value, dict):
        return all(map(sensible, value.values()))
    words = value.split()
    return 0 < len(value) <= 90 and bool(re.search(r"[A-Za-z0-9]", value)) and len(set(words)) * 2 > len(words) and not re.search(r"[{}\[\]<>\\]", value)


def form_is_right(case, text, finish):
    """(finished and sensible, and the very values where they stand in the text)."""
    try:
        record = json.loads(text)
    except (TypeError, json.JSONDecodeError):
        return False, False
    good = finish == "stop" and sensible(record)
    same = case["expected"] is None or all(str(record.get(k)).strip().lower() == str(v).lower() for k, v in case["expected"].items())
    return good, good and same


def note_cases(count=200):
    rng, out = random.Random("notes"), []
    for _ in range(count):
        user, _, _, value = notes.made_up(rng, True)
        out.append({"messages": [{"role": "user", "content": user}], "value": value})
    return out


def absent_cases(count=100):
    rng, out = random.Random("not in the note"), []
    for _ in range(count):
        user, _, _, _ = notes.not_there(rng, True)
        out.append({"messages": [{"role": "user", "content": user}]})
    return out


def says_absent(text):
    """Whether the answer says that the note has no answer."""
    return re.search(r"\b(not|cannot|nothing|no)\b.*\b(say|tell|mention|mentioned|know|find|in the (note|text)|about that)\b|do not know|not in the (note|text)|says nothing", (text or "").lower()) is not None


def step_cases(count=200):
    """Problems of two to four steps from scenes and sums never trained."""
    rng, out = random.Random("several steps"), []
    for _ in range(count):
        question, worked, _ = steps.problem(rng, True)
        out.append({"messages": [{"role": "user", "content": question}], "answer": str(worked[-1][3]), "steps": len(worked)})
    return out
