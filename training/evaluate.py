#!/usr/bin/env python3
"""Measures a chimere-nano GGUF file: what it writes (through the server) and how well it predicts (in PyTorch).

    evaluate.py behaviour FILE --chimere PROGRAM --data FOLDER    arithmetic, tool calls, thinking, ten exchanges, and
                                                                  the skills of nano/evaluate_skills.py
    evaluate.py prediction FILE --prepared FOLDER [--baseline]    perplexity by domain, MTP agreement, 5-gram model
"""

import argparse
import concurrent.futures
import json
import pathlib
import socket
import subprocess
import sys
import time
import urllib.request


class Served:
    """The file behind `chimere serve`, asked over HTTP as any client would."""

    def __init__(self, program, model):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.process = subprocess.Popen(
            [program, "serve", model, "--port", str(self.port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        for _ in range(200):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=1)
                return
            except OSError:
                time.sleep(0.1)
        raise SystemExit("the server did not come up")

    def ask(self, messages, thinking, tools=None, temperature=0.0, max_tokens=600, seed=1, schema=None):
        body = {"messages": messages, "enable_thinking": thinking, "seed": seed}
        if temperature is not None:
            body["temperature"] = temperature
        if schema:
            body["response_format"] = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
        if max_tokens:
            body["max_tokens"] = max_tokens
        if tools:
            body["tools"] = tools
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/v1/chat/completions",
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        choice = json.load(urllib.request.urlopen(request, timeout=300))["choices"][0]
        return choice["message"], choice["finish_reason"]

    def ask_all(self, jobs):
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            return list(pool.map(lambda job: self.ask(**job), jobs))

    def close(self):
        self.process.terminate()
        self.process.wait()


def parsed_calls(message):
    calls = []
    for call in message.get("tool_calls") or []:
        try:
            calls.append({"name": call["function"]["name"], "arguments": json.loads(call["function"]["arguments"])})
        except (KeyError, json.JSONDecodeError):
            calls.append({"name": None, "arguments": {}})
    return calls


def arithmetic(served):
    from nano import cases_arithmetic as cases

    for name, chosen in (("two-digit sums", cases.cases(200)), ("word problems", cases.word_problem_cases(100))):
        for thinking in (True, False):
            replies = served.ask_all([{"messages": c["messages"], "thinking": thinking} for c in chosen])
            right = [cases.is_right(c, r.get("content") or "") for c, (r, _) in zip(chosen, replies)]
            print(f"{name:16} thinking {'on ' if thinking else 'off'} {sum(right)}/{len(right)}", flush=True)
            for c, (r, _), ok in zip(chosen, replies, right):
                if not ok:
                    print(f"    {c['messages'][-1]['content']!r} -> {r.get('content')!r}, expected {c['answer']}")


def tool_calls(served, data):
    from nano import cases_toolcalls as cases

    for name, chosen in (("held-out requests", cases.cases(data, 200)), ("unseen tools", cases.unseen_tool_cases(100))):
        for thinking in (True, False):
            replies = served.ask_all(
                [{"messages": c["messages"], "tools": c["tools"], "thinking": thinking} for c in chosen]
            )
            marks = [cases.is_right(c, parsed_calls(r)) for c, (r, _) in zip(chosen, replies)]
            valid, named, exact = (sum(m[i] for m in marks) for i in range(3))
            print(
                f"{name:18} thinking {'on ' if thinking else 'off'} of {len(marks)}: valid {valid}, "
                f"right function {named}, "
                f"right arguments {exact}",
                flush=True,
            )
            for c, (r, _), mark in list(zip(chosen, replies, marks)):
                if not mark[1]:
                    print(
                        f"    {c['messages'][-1]['content']!r} -> {parsed_calls(r) or r.get('content')!r}, "
                        f"expected {c['name']}"
                    )


def thinking(served, data):
    """Prompts of every kind: thoughts must end when on and not appear when off, greedy and at the file's sampling."""
    from nano import cases_arithmetic, cases_toolcalls
    from nano.questions import QUESTIONS

    prompts = [[{"role": "user", "content": q}] for q in QUESTIONS]
    rest = 200 - len(prompts)
    prompts += [c["messages"] for c in cases_arithmetic.cases(rest // 2)]
    prompts += [c["messages"] for c in cases_toolcalls.cases(data, rest - rest // 2)]
    for temperature in (0.0, 0.6):
        replies = served.ask_all(
            [{"messages": m, "thinking": True, "temperature": temperature, "seed": i} for i, m in enumerate(prompts)]
        )
        closed = [bool((r.get("content") or "").strip()) or bool(r.get("tool_calls")) for r, _ in replies]
        thought = [bool((r.get("reasoning_content") or "").strip()) for r, _ in replies]
        print(
            f"temperature {temperature}: <think> closed {sum(closed)}/{len(closed)}, with a thought {sum(thought)}",
            flush=True,
        )
        for m, (r, why), ok in zip(prompts, replies, closed):
            if not ok:
                print(f"    {m[-1]['content']!r} -> {r!r} ({why})")
        replies = served.ask_all(
            [{"messages": m, "thinking": False, "temperature": temperature, "seed": i} for i, m in enumerate(prompts)]
        )
        off = [
            not (r.get("reasoning_content") or "").strip() and "think>" not in (r.get("content") or "")
            for r, _ in replies
        ]
        print(f"temperature {temperature}: thinking off respected {sum(off)}/{len(off)}", flush=True)


def exchanges(served):
    from nano.questions import CONVERSATION

    messages = []
    for question in CONVERSATION:
        messages.append({"role": "user", "content": question})
        reply, _ = served.ask(messages, True, temperature=0.6, seed=len(messages))
        print(
            f"> {question}\n  [{(reply.get('reasoning_content') or '').strip()}]\n  {reply.get('content')}\n",
            flush=True,
        )
        messages.append({"role": "assistant", "content": reply.get("content") or ""})


def behaviour(options):
    from nano import evaluate_skills as skills

    served = Served(options.chimere, options.file)
    try:
        parts = {
            "arithmetic": lambda: arithmetic(served),
            "tools": lambda: tool_calls(served, options.data),
            "thinking": lambda: thinking(served, options.data),
            "exchanges": lambda: exchanges(served),
            "choice": lambda: skills.choice(served, parsed_calls),
            "results": lambda: skills.results(served),
            "forms": lambda: skills.forms(served),
            "notes": lambda: skills.notes(served),
            "steps": lambda: skills.steps(served),
            "chats": lambda: skills.chats(served, parsed_calls),
        }
        for part in options.only or parts:
            parts[part]()
    finally:
        served.close()


def prediction(options):
    import torch

    from nano import ngram, scoring
    from nano.export import read_model

    torch.set_num_threads(options.threads)
    model = read_model(options.file)
    baseline = None
    if options.baseline:
        baseline = ngram.train(ngram.read_tokens(options.prepared / "train.tokens"))
    result = scoring.perplexities(model, options.prepared / "held_out", most=options.tokens, baseline=baseline)
    for domain, line in result.items():
        print(f"{domain:14} {json.dumps({k: round(v, 4) for k, v in line.items()})}")
    total = sum(line["mtp_tokens"] for line in result.values())
    agreed = sum(line["mtp_agreement"] * line["mtp_tokens"] for line in result.values())
    print(f"MTP agreement over {total} tokens of all domains: {agreed / total:.4f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("behaviour", "prediction"))
    parser.add_argument(
        "--only", action="append", help="one part of behaviour, may be repeated: arithmetic, tools, thinking, exchanges, choice, results, forms, notes, steps, chats"
    )
    parser.add_argument("file")
    parser.add_argument("--chimere", default="build/release/chimere", help="the program to serve with")
    parser.add_argument("--data", type=pathlib.Path, help="the data folder")
    parser.add_argument("--prepared", type=pathlib.Path, help="the folder prepare.py wrote")
    parser.add_argument("--baseline", action="store_true", help="train the 5-gram model on the same tokens beside it")
    parser.add_argument("--tokens", type=int, default=40_000, help="tokens a domain (default %(default)s)")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    behaviour(options) if options.what == "behaviour" else prediction(options)


if __name__ == "__main__":
    sys.exit(main())
