#!/usr/bin/env python3
"""Time answers with and without speculation, on this machine, and check that they are the same.

Each mode has a server of its own, and "off" another: what one leaves in its cache, and whether a draft pass has seen
it, is nothing to the other. Each prompt is asked of all of them in turns, so that what else the machine does falls on
all. The ratio of a pair is the time without speculation by the time with it: above 1 it was faster. The table has the
median of the ratios of each set of prompts with its 95 % interval (order statistics), what was guessed and accepted,
and by which source.

usage: compare_speculation.py --chimere BIN [--modes auto,ngram,...] [--pairs 20] [--tokens 160] [--streams 1]
                              [--threads 2] [--cpu-time] [--sets prose,sums] [--draft-max N] [--draft-model FILE]
                              [--drafter FILE] [--engram-text FILE | --tables NAMES] MODEL.gguf

--engram-text makes an Engram table of a text, --tables names those that the servers have: requests use them in all
modes, so that answers are the same; with the mode engram they also guess. Behind the table stands how many guesses of
each source were right, at each place of a draft.

--cpu-time compares what the servers' threads ran, of the whole request, instead of the time that went by: on a machine
that others use too this says more. Give it one thread (--threads 1): threads that wait for each other run, too.

Exit status: 0, or 1 when an answer was not the same or a server failed.
"""
import argparse
import concurrent.futures
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import urllib.request
from collections import Counter

CODE = """def area(width, height):
    return width * height

def volume(width, height, depth):
    return width * height * depth

def surface(width, height, depth):
    return 2 * (width * height + width * depth + height * depth)
"""
ROWS = ", ".join(f'{{"id": {i}, "name": "{n}", "age": {20 + i}, "city": "{c}"}}' for i, (n, c) in enumerate(
    [("Ann", "Rome"), ("Bob", "Paris"), ("Cleo", "Berlin"), ("Dan", "Madrid"), ("Eve", "Lisbon")], 1))
PERSON = {"type": "object", "properties": {"id": {"type": "integer"}, "name": {"type": "string", "maxLength": 12},
                                           "age": {"type": "integer"}, "city": {"type": "string", "maxLength": 12}},
          "required": ["id", "name", "age", "city"], "additionalProperties": False}
PEOPLE = {"type": "array", "items": PERSON, "minItems": 5, "maxItems": 5}
TOOLS = [{"type": "function", "function": {
    "name": name, "description": about, "parameters": {
        "type": "object", "properties": {"city": {"type": "string"}, "day": {"type": "string"}},
        "required": ["city", "day"]}}} for name, about in
    [("get_weather", "The weather of a city on a day"), ("find_train", "Trains from a city on a day")]]


def said(text, **fields):
    return {"messages": [{"role": "user", "content": text}], **fields}


SETS = {
    "JSON with a schema": [
        said(f"Give these people as JSON, sorted by age: {ROWS}", json_schema=PEOPLE),
        said(f"Copy this list as JSON: {ROWS}", json_schema=PEOPLE),
        said("Invent five people with an id, a name, an age and a city, as a JSON list.", json_schema=PEOPLE)],
    "tool calls": [
        said("What is the weather in Paris on Monday?", tools=TOOLS, tool_choice="required"),
        said("Find a train from Berlin on Friday, and the weather there.", tools=TOOLS, tool_choice="required"),
        said("Is it warm in Rome on Sunday?", tools=TOOLS, tool_choice="required")],
    "code and repeats": [
        said(f"Repeat this code and rename width to w:\n\n{CODE}"),
        said(f"Write this text once more, word for word:\n\n{CODE}"),
        said("Count from 1 to 40, one number on each line.")],
    "sums": [said("What is 348 + 271? Explain each step."), said("Add 17, 25, 36 and 48 step by step."),
             said("What is 12 * 14? Show your work.")],
    "prose": [said("Tell a short story about a fox and a lantern."), said("Why is the sea salty?"),
              said("Describe a walk through a forest in autumn.")],
}


class Server:
    def __init__(self, mode, args, cache=None, more=()):
        """cache: a folder for what is cached on the disk; without one nothing is. more: options of `serve`."""
        program, model, engram_text = args.chimere, args.model, args.engram_text
        self.home = tempfile.TemporaryDirectory()
        environment = {k: v for k, v in os.environ.items() if k != "CHIMERE_API_KEY"}
        environment["CHIMERE_HOME"] = self.home.name
        command = [program, "serve", model, "--port", "0", "--parallel", str(max(8, args.streams)), "--speculate",
                   "off" if mode == "again" else mode, *(["--cache-dir", cache] if cache else ["--no-disk-cache"]), *more]
        for option in ["threads", "draft_max", "draft_model", "drafter"]:
            needed = mode not in ("off", "again") or option == "threads"
            if needed and getattr(args, option) is not None:
                command += ["--" + option.replace("_", "-"), str(getattr(args, option))]
        if engram_text:
            tables = os.path.join(self.home.name, "tables")
            os.mkdir(tables)
            subprocess.run([program, "engram", "build", os.path.join(tables, "measured.engram"), "--model", model,
                            "--text", engram_text], check=True, stdout=subprocess.DEVNULL)
            command += ["--engram", tables]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                        env=environment)
        for line in self.process.stdout:
            if " is ready on " in line:
                self.url = line.split(" is ready on ")[1].split()[0]
                return
        raise SystemExit(f"{command} ended with {self.process.wait()}")

    def ask(self, body):
        request = urllib.request.Request(self.url + "/v1/chat/completions", json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=600) as answer:
            return json.load(answer)

    def status(self):
        with urllib.request.urlopen(self.url + "/v1/status", timeout=60) as answer:
            return json.load(answer)

    def cpu_ms(self):
        folder, total = f"/proc/{self.process.pid}/task", 0
        for task in os.listdir(folder):
            with open(f"{folder}/{task}/schedstat", encoding="ascii") as file:
                total += int(file.read().split()[0])
        return total / 1e6

    def stop(self):
        self.process.terminate()
        self.process.wait()
        self.home.cleanup()


def interval(values):
    """The median and its 95 % interval, from the order statistics of a binomial."""
    ordered, n = sorted(values), len(values)
    k, below = 0, 0.0
    while k < n // 2:
        below += math.comb(n, k) / 2 ** n
        if below > 0.025:
            break
        k += 1
    low = max(k - 1, 0) if k else 0
    return statistics.median(ordered), ordered[low], ordered[n - 1 - low]


def timed(server, body, streams, of_cpu):
    """Of so many such answers at once: what was said, milliseconds, guesses computed and accepted, tokens."""
    asked = [dict(body, seed=body["seed"] + i) for i in range(streams)]
    before = server.cpu_ms()
    with concurrent.futures.ThreadPoolExecutor(streams) as pool:
        answers = list(pool.map(server.ask, asked))
    said_now = [a["choices"][0]["message"] for a in answers]
    for message in said_now:
        for call in message.get("tool_calls") or []:
            call.pop("id", None)
    timings = [a["timings"] for a in answers]
    ms = server.cpu_ms() - before if of_cpu else sum(t["decode_ms"] for t in timings)
    return (said_now, ms, sum(t.get("draft_n", 0) for t in timings),
            sum(t.get("draft_n_accepted", 0) for t in timings), sum(a["usage"]["completion_tokens"] for a in answers))


def by_source(server):
    return {s["source"]: (s["draft_tokens"], s["accepted_tokens"]) for s in server.status()["speculation"]["sources"]}


def compare(servers, name, bodies, args):
    ratios = {mode: [] for mode in args.modes}
    drafted, accepted, tokens, same = Counter(), Counter(), 0, True
    before = {mode: by_source(servers[mode]) for mode in args.modes}
    turn = 0
    for pair in range(-1, args.pairs):
        for number, body in enumerate(bodies):
            body = dict(body, max_tokens=args.tokens, enable_thinking=False, seed=1000 * number + 50 * max(pair, 0),
                        temperature=0 if pair % 2 else 0.7)
            if args.tables:
                body["engram"] = {"tables": args.tables}
            order = ["off", *args.modes]
            turn += 1
            order = order[turn % len(order):] + order[:turn % len(order)]
            if turn // len(order) % 2:
                order.reverse()
            done = {mode: timed(servers[mode], body, args.streams, args.cpu_time) for mode in order}
            for mode in args.modes:
                if done[mode][0] != done["off"][0]:
                    same = False
                    print(f"{name}: another answer with {mode}: {done[mode]}, off: {done['off']}", file=sys.stderr)
                if pair >= 0:  # before that: caches and the first counts
                    ratios[mode].append(done["off"][1] / max(done[mode][1], 1e-6))
                    drafted[mode] += done[mode][2]
                    accepted[mode] += done[mode][3]
            tokens += done["off"][4] if pair >= 0 else 0
    for mode in args.modes:
        median, low, high = interval(ratios[mode])
        share = f"{100 * accepted[mode] / drafted[mode]:.0f} %" if drafted[mode] else "-"
        of_source = []
        for source, (n, right) in by_source(servers[mode]).items():
            n_before, right_before = before[mode].get(source, (0, 0))
            if n > n_before:
                of_source.append(f"{source} {right - right_before} of {n - n_before}")
        print(f"| {name} | {mode} | {len(ratios[mode])} | {median:.3f} | {low:.3f} to {high:.3f} | {tokens} | "
              f"{drafted[mode]} | {accepted[mode]} ({share}) | {', '.join(of_source)} |", flush=True)
    return same


def print_sources(sources):
    """What each source guessed since the start, and the share that was right by place."""
    if not sources:
        return
    places = max(len(source["by_position"]) for source in sources)
    print("\n| source | guessed | accepted |" + "".join(f" {place + 1} |" for place in range(places)))
    print("|---|---|---|" + "---|" * places)
    for source in sources:
        cells = [f"{100 * place['accepted_tokens'] / place['draft_tokens']:.0f} %" if place["draft_tokens"] else ""
                 for place in source["by_position"]]
        cells += [""] * (places - len(cells))
        print(f"| {source['source']} | {source['draft_tokens']} | {source['accepted_tokens']} | "
              + " | ".join(cells) + " |")


def print_costs(speculation):
    print("\nTimed at load, a step of", ", ".join(f"{s['rows']} rows: {s['ms']:.3f} ms" for s in speculation["step_ms"]))
    if speculation.get("mtp", {}).get("guess_ms"):
        print(f"a guess of the MTP block: {speculation['mtp']['guess_ms']:.3f} ms")
    if "draft_model" in speculation:
        print(f"a guess of the draft model: {speculation['draft_model']['guess_ms']:.3f} ms")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    names = ["again", "auto", "ngram", "engram", "mtp", "draft", "dflash", "always"]
    parser.add_argument("--chimere", metavar="BIN", required=True)
    parser.add_argument("--modes", default=["auto"], type=lambda text: text.split(","), help="of " + ", ".join(names))
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--tokens", type=int, default=160)
    parser.add_argument("--streams", type=int, default=1, help="answers at a time")
    parser.add_argument("--threads", type=int, help="of a server; as many as it takes by itself when absent")
    parser.add_argument("--cpu-time", action="store_true")
    parser.add_argument("--sets", type=lambda text: text.split(","), help="of prompts: " + ", ".join(SETS))
    parser.add_argument("--draft-max", type=int)
    parser.add_argument("--draft-model", metavar="FILE")
    parser.add_argument("--drafter", metavar="FILE", help="of DFlash")
    memory = parser.add_mutually_exclusive_group()
    memory.add_argument("--engram-text", metavar="FILE", help="a text that becomes a table of all requests")
    memory.add_argument("--tables", type=lambda names: names.split(","), help="tables of all requests, e.g. code,general")
    parser.add_argument("model", metavar="MODEL.gguf")
    args = parser.parse_args()
    if args.pairs < 6 or args.tokens < 1 or args.streams < 1:
        parser.error("expected at least 6 pairs, 1 token and 1 stream")
    unknown = [m for m in args.modes if m not in names] + [s for s in args.sets or [] if s not in SETS]
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}")
    if args.engram_text:
        args.tables = ["measured"]
    servers = {}
    try:
        for mode in ["off", *args.modes]:
            servers[mode] = Server(mode, args)
        print("| prompts | mode | pairs | off / mode | 95 % | tokens | guessed | accepted | by source |\n"
              "|---|---|---|---|---|---|---|---|---|")
        same = [compare(servers, name, bodies, args) for name, bodies in SETS.items()
                if not args.sets or name in args.sets]
        for mode in args.modes:
            speculation = servers[mode].status()["speculation"]
            print(f"\n{mode}:")
            print_sources(speculation["sources"])
            print_costs(speculation)
    finally:
        for server in servers.values():
            server.stop()
    return 0 if all(same) else 1


if __name__ == "__main__":
    sys.exit(main())
