"""The parts of evaluate.py that ask the held-out cases of cases_skills.py and the newcomer's chats. `served` is evaluate.Served."""

import json
import pathlib

from . import cases_arithmetic, cases_skills as cases, cases_toolcalls

CHATS = pathlib.Path(__file__).parent.parent / "newcomer_chats.json"


def report(name, marks, misses, show=6):
    print(f"{name:46} {sum(marks)}/{len(marks)}", flush=True)
    for miss in [m for m, ok in zip(misses, marks) if not ok][:show]:
        print(f"    {miss}")


def mode(thinking):
    return f"thinking {'on' if thinking else 'off'}"


def choice(served, parsed_calls):
    chosen = cases.tool_cases()
    for thinking in (True, False):
        replies = served.ask_all([{"messages": c["messages"], "tools": c["tools"], "thinking": thinking} for c in chosen])
        marks = [cases_toolcalls.is_right(c, parsed_calls(r)) for c, (r, _) in zip(chosen, replies)]
        misses = [f"{c['messages'][-1]['content']!r} -> {parsed_calls(r) or r.get('content')!r}, expected {c['name']} {c['arguments']}" for c, (r, _) in zip(chosen, replies)]
        report(f"right one of four unseen tools, {mode(thinking)}", [m[1] for m in marks], misses)
        report("    and the very arguments", [m[2] for m in marks], misses, 3)
    chosen = cases.no_tool_cases()
    for thinking in (True, False):
        replies = served.ask_all([{"messages": c["messages"], "tools": c["tools"], "thinking": thinking} for c in chosen])
        report(f"no call where none fits, {mode(thinking)}", [not r.get("tool_calls") for r, _ in replies], [f"{c['messages'][-1]['content']!r} -> {parsed_calls(r)}" for c, (r, _) in zip(chosen, replies)], 3)


def results(served):
    chosen = cases.result_cases()
    for thinking in (True, False):
        replies = served.ask_all([{"messages": c["messages"], "tools": c["tools"], "thinking": thinking} for c in chosen])
        report(f"tool result read, {mode(thinking)}", [cases.says(c["value"], r.get("content")) for c, (r, _) in zip(chosen, replies)],
               [f"{c['messages'][0]['content']!r}, {c['messages'][-1]['content']!r} -> {r.get('content')!r}, expected {c['value']}" for c, (r, _) in zip(chosen, replies)])


def forms(served):
    chosen = cases.form_cases()
    for thinking in (True, False):
        replies = served.ask_all([{"messages": c["messages"], "thinking": thinking, "schema": c["schema"]} for c in chosen])
        marks = [cases.form_is_right(c, r.get("content"), why) for c, (r, why) in zip(chosen, replies)]
        misses = [f"{c['messages'][-1]['content']!r} -> {r.get('content')!r} ({why})" for c, (r, why) in zip(chosen, replies)]
        report(f"form finished and sensible, {mode(thinking)}", [m[0] for m in marks], misses)
        known = [i for i, c in enumerate(chosen) if c["expected"] is not None]
        report("    with the very values of the text", [marks[i][1] for i in known], [misses[i] for i in known], 3)


def notes(served):
    for name, chosen, judge in (("answered from the note", cases.note_cases(), lambda c, t: cases.says(c["value"], t)), ("not in the note, said so", cases.absent_cases(), lambda c, t: cases.says_absent(t))):
        for thinking in (True, False):
            replies = served.ask_all([{"messages": c["messages"], "thinking": thinking} for c in chosen])
            report(f"{name}, {mode(thinking)}", [judge(c, r.get("content")) for c, (r, _) in zip(chosen, replies)],
                   [f"{c['messages'][-1]['content']!r} -> {r.get('content')!r}, expected {c.get('value')}" for c, (r, _) in zip(chosen, replies)])


def steps(served):
    chosen = cases.step_cases()
    for thinking in (True, False):
        replies = served.ask_all([{"messages": c["messages"], "thinking": thinking} for c in chosen])
        marks = [cases_arithmetic.is_right(c, r.get("content") or "") for c, (r, _) in zip(chosen, replies)]
        report(f"two to four steps, {mode(thinking)}", marks, [f"{c['messages'][-1]['content']!r} -> [{r.get('reasoning_content')}] {r.get('content')!r}, expected {c['answer']}" for c, (r, _) in zip(chosen, replies)], 4)
        for count in (2, 3, 4):
            mine = [ok for c, ok in zip(chosen, marks) if c["steps"] == count]
            print(f"    of {count} steps {sum(mine)}/{len(mine)}")


def offered(chat):
    return [{"type": "function", "function": {"name": name, "description": description, "parameters": {
        "type": "object", "properties": {key: {"type": kind} for key, kind in keys.items()}, "required": list(keys)}}} for name, description, keys in chat.get("tools", [])]


def chats(served, parsed_calls):
    """Every chat of newcomer_chats.json with its answers, for grading by the rules there; sampled as the file says, seed 1."""
    for number, chat in enumerate(json.loads(CHATS.read_text(encoding="utf8"))["chats"], 1):
        messages, tools = [], offered(chat) or None
        print(f"{number:2} {chat['kind']}")
        for turn in chat["turns"]:
            messages.append({"role": "user", "content": turn})
            reply, _ = served.ask(messages, True, tools, temperature=None, seed=1)
            calls = parsed_calls(reply)
            print(f"   > {turn}\n     [{(reply.get('reasoning_content') or '').strip()}]\n     {calls or reply.get('content')}", flush=True)
            messages.append({"role": "assistant", "content": reply.get("content") or "", **({"tool_calls": reply["tool_calls"]} if calls else {})})
            if calls and chat.get("call") and calls[0]["name"] == chat["call"]["name"]:
                messages.append({"role": "tool", "tool_call_id": reply["tool_calls"][0]["id"], "content": chat["result"]})
                reply, _ = served.ask(messages, True, tools, temperature=None, seed=1)
                print(f"     <- {chat['result']}\n     {reply.get('content')}", flush=True)
                messages.append({"role": "assistant", "content": reply.get("content") or ""})
