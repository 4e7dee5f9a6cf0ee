"""Tests of tool calls: requests held out from training, tools whose names were never seen,
and the judge of an answer."""

import random
from pathlib import Path

from .synthetic import toolcalls


def case(rng, data, request):
    return {"messages": [{"role": "user", "content": request["user"]}], "tools": toolcalls.offered(rng, data, request),
            "name": request["call"]["name"], "arguments": request["call"]["arguments"]}


def cases(data, count=200):
    """Half held-out voice commands of the data folder, half held-out utterances of the authored tools."""
    data, rng = Path(data), random.Random("tool call cases")
    held = list(toolcalls.command_rows(data, True))
    rng.shuffle(held)
    out = [case(rng, data, toolcalls.command(rng, data, True, row)) for row in held[:count // 2]]
    seen = set()
    while len(out) < count:
        request = toolcalls.authored(rng, rng.choice(toolcalls.tools()), True)
        if request and request["user"].lower() not in seen:
            seen.add(request["user"].lower())
            out.append(case(rng, data, request))
    return out


def unseen_tool_cases(count=100):
    """Requests for tools whose verb and noun never meet in training; every other tool on offer may have been seen."""
    rng = random.Random("unseen tool cases")
    return [case(rng, None, toolcalls.novel(rng, held_out=True)) for _ in range(count)]


def fits_schema(call, tools):
    """Whether the call names an offered tool, with only keys of its schema and all the required ones."""
    for tool in tools:
        function = tool["function"]
        if function["name"] == call.get("name"):
            keys, parameters = set(call.get("arguments") or {}), function["parameters"]
            return keys <= set(parameters["properties"]) and set(parameters["required"]) <= keys
    return False


def same_arguments(given, expected):
    def plain(arguments):
        return {key: str(value).strip().lower() for key, value in (arguments or {}).items()}
    return plain(given) == plain(expected)


def is_right(case, calls):
    """(valid, right name, right arguments) of the calls of an answer: every call must fit its schema to be valid.

    Arguments count only with the right name. They are compared as text without regard to case, because a parsed call
    may carry "5" where the schema says integer.
    """
    if not calls:
        return False, False, False
    valid = all(fits_schema(call, case["tools"]) for call in calls)
    right_name = len(calls) == 1 and calls[0].get("name") == case["name"]
    return valid, right_name, right_name and same_arguments(calls[0].get("arguments"), case["arguments"])
