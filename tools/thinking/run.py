#!/usr/bin/env python3
"""Accuracy against thinking tokens on generated tasks, and whether the budget is exact to the token.

    run.py --chimere build/release/chimere [--model FILE] [--out FOLDER] [--kind sums|steps] [--tasks 500] [--only curve|budget] [--setting NAME...]

Writes thinking.json (every figure), thinking.md (the table) and thinking.svg (the plot) into the folder. All answers
are greedy, so a run can be repeated. The program serves the file, or the model in the box, on a free port of this machine.
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

from plot import curve_svg
from tasks import KINDS, is_right, tasks

CGRS = {"suppress_above": 0.9, "release_below": 0.8}
CLOSING = {**CGRS, "close_at_reflection": True, "window": 16, "min_tokens": 24}


def configurations(kind):
    """(name, family, request fields): the family is a line of the plot. Thoughts about several steps are longer."""
    yield "no thought", "budget", {"enable_thinking": False}
    for budget in (0, 8, 16, 24, 32, 40, 48):
        yield f"budget {budget}", "budget", {"thinking_budget": budget}
    yield "full budget (192)", "budget", {}
    for window, least, threshold in ((8, 8, 0.9), (8, 8, 0.99), (8, 8, 0.999), (8, 8, 0.9999), (16, 16, 0.99),
                                     (16, 24, 0.99), (16, 24, 0.999), (16, 32, 0.99), (16, 40, 0.99)):
        abf = {"window": window, "min_tokens": least, "close_above": threshold}
        yield f"ABF {threshold}, window {window}, at least {least}", "ABF", {"thinking_control": abf}
        if least in (8, 24) and threshold in (0.99, 0.999):
            name = f"ABF {threshold}, window {window}, at least {least}, CGRS"
            yield name, "ABF + CGRS", {"thinking_control": {**abf, **CGRS}}
    for threshold in (0.9, 0.99):
        name = f"CGRS that closes, ABF {threshold}, window 16, at least 24"
        yield name, "CGRS that closes", {"thinking_control": {**CLOSING, "close_above": threshold}}
    yield "CGRS that closes, alone", "CGRS that closes", {"thinking_control": CLOSING}
    if kind == "steps":
        yield "CGRS alone", "ABF + CGRS", {"thinking_control": CGRS}
        for least, threshold in ((40, 0.9), (48, 0.8), (48, 0.9), (48, 0.95), (48, 0.99), (64, 0.9), (64, 0.99)):
            abf = {"window": 16, "min_tokens": least, "close_above": threshold}
            name = f"ABF {threshold}, window 16, at least {least}"
            yield name, "ABF", {"thinking_control": abf}
            yield f"{name}, CGRS", "ABF + CGRS", {"thinking_control": {**abf, **CGRS}}
    for mode in ("fast", "quality", "ultra"):
        yield f"mode {mode}", "modes", {"thinking_control": {"mode": mode}}


class Served:
    def __init__(self, program, threads=0, model=None):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.process = subprocess.Popen(
            [program, "serve", *([model] if model else []), "--port", str(self.port), "--no-disk-cache", "--threads", str(threads)],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        end = time.monotonic() + 120
        while time.monotonic() < end:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=1)
                return
            except OSError:
                time.sleep(0.1)
        raise SystemExit("the server did not come up")

    def ask(self, messages, fields, stream=False):
        """{"content", "reasoning", "thought_tokens", "tokens"}"""
        body = {"messages": messages, "temperature": 0, "max_tokens": 400, "stream": stream, **fields}
        if stream:
            body["stream_options"] = {"include_usage": True}
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/v1/chat/completions",
            json.dumps(body).encode(), {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=600) as response:
            if not stream:
                answer = json.load(response)
                message, usage = answer["choices"][0]["message"], answer["usage"]
                content, reasoning = message.get("content") or "", message.get("reasoning_content") or ""
            else:
                content = reasoning = ""
                usage = None
                for line in response:
                    if not line.startswith(b"data: {"):
                        continue
                    chunk = json.loads(line[6:])
                    usage = chunk.get("usage") or usage
                    for choice in chunk["choices"]:
                        content += choice["delta"].get("content") or ""
                        reasoning += choice["delta"].get("reasoning_content") or ""
        return {"content": content, "reasoning": reasoning, "tokens": usage["completion_tokens"],
                "thought_tokens": usage["completion_tokens_details"]["reasoning_tokens"]}

    def ask_all(self, listed, fields, at_a_time, stream=False):
        with concurrent.futures.ThreadPoolExecutor(at_a_time) as pool:
            return list(pool.map(lambda t: self.ask(t["messages"], fields, stream), listed))

    def close(self):
        self.process.terminate()
        self.process.wait()


def curve(served, listed, wanted, kind):
    lines = []
    for name, family, fields in configurations(kind):
        if wanted and not any(name.startswith(start) for start in wanted + ["full budget"]):
            continue
        answers = served.ask_all(listed, fields, 8)
        right = sum(is_right(t, a["content"]) for t, a in zip(listed, answers))
        lines.append({"name": name, "family": family, "accuracy": 100 * right / len(listed),
                      "thought_tokens": sum(a["thought_tokens"] for a in answers) / len(listed),
                      "tokens": sum(a["tokens"] for a in answers) / len(listed)})
        print(f"{name:44} {lines[-1]['accuracy']:6.1f} %  {lines[-1]['thought_tokens']:6.1f} tokens of thought",
              flush=True)
    return lines


def budget_checks(served, listed, budget=16):
    """Every thought has as many tokens as without a limit, or exactly the budget; and all ways give the same answer."""
    free = served.ask_all(listed, {}, 8)
    expected = [min(a["thought_tokens"], budget) for a in free]
    cut = sum(a["thought_tokens"] > budget for a in free)
    checks, first = [], None
    for at_a_time in (1, 8):
        for stream in (False, True):
            answers = served.ask_all(listed, {"thinking_budget": budget}, at_a_time, stream)
            exact = sum(a["thought_tokens"] == n for a, n in zip(answers, expected))
            first = first or answers
            same = sum(a == b for a, b in zip(answers, first))
            checks.append({"at_a_time": at_a_time, "streamed": stream, "budget": budget, "tasks": len(listed),
                           "cut": cut, "exact": exact, "same_answer": same})
            print(json.dumps(checks[-1]), flush=True)
    return checks


def table(lines):
    full = next(line for line in lines if line["name"].startswith("full"))
    rows = ["| setting | right | tokens of thought | saved |", "|---|---|---|---|"]
    for line in lines:
        saved = 100 * (1 - line["thought_tokens"] / full["thought_tokens"])
        rows.append(f"| {line['name']} | {line['accuracy']:.1f} % | {line['thought_tokens']:.1f} | {saved:.0f} % |")
    return "\n".join(rows) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chimere", default="build/release/chimere")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("."))
    parser.add_argument("--model", help="GGUF file; the model in the box when absent")
    parser.add_argument("--kind", choices=KINDS, default="sums", help="500 sums and word problems over one, or 200 problems of two to four steps")
    parser.add_argument("--tasks", type=int, default=500, help="at most so many of them")
    parser.add_argument("--threads", type=int, default=0, help="of the server; 0: one per core")
    parser.add_argument("--only", choices=("curve", "budget"))
    parser.add_argument("--setting", action="append", default=[],
                        help="only the settings whose names begin like this, and the full budget; may be repeated")
    options = parser.parse_args()
    listed = tasks(options.tasks, options.kind)
    options.out.mkdir(parents=True, exist_ok=True)
    served = Served(options.chimere, options.threads, options.model)
    result = {"tasks": len(listed)}
    try:
        if options.only != "curve":
            result["budget"] = budget_checks(served, listed)
        if options.only != "budget":
            result["curve"] = curve(served, listed, options.setting, options.kind)
    finally:
        served.close()
    (options.out / "thinking.json").write_text(json.dumps(result, indent=1) + "\n")
    if "curve" in result:
        (options.out / "thinking.md").write_text(table(result["curve"]))
        (options.out / "thinking.svg").write_text(curve_svg(result["curve"]))
    wrong = [c for c in result.get("budget", []) if c["exact"] != c["tasks"] or c["same_answer"] != c["tasks"]]
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
