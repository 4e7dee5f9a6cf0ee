#!/usr/bin/env python3
"""Time answers with and without speculation, on this machine, and check that they are the same.

Each mode has a server of its own, and "off" another: what one leaves in its cache, and whether a draft pass has seen
it, is nothing to the other. Each prompt is asked of all of them in turns, so that what else the machine does falls on
all. The ratio of a pair is the time without speculation by the time with it: above 1 it was faster. The table has the
median of the ratios of each set of prompts with its 95 % interval (order statistics), what was guessed and accepted,
and by which source. Two servers of the same mode differ by some percent, by where their memory lies: with --servers N
the pairs are asked of N servers of each mode, one after the other.

usage: compare_speculation.py --chimere BIN [--modes auto,ngram,...] [--pairs 20] [--servers 5] [--tokens 160]
                              [--streams 1] [--threads 2] [--cpu-time] [--sets prose,sums] [--draft-max N] [--draft-model FILE]
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


class Found:
    """What was found for one set of prompts."""

    def __init__(self, modes):
        self.ratios = {mode: [] for mode in modes}
        self.drafted, self.accepted, self.tokens, self.same = Counter(), Counter(), 0, True
        self.by_source = {mode: {} for mode in modes}

    def print(self, name):
        for mode, ratios in self.ratios.items():
            median, low, high = interval(ratios)
            drafted, accepted = self.drafted[mode], self.accepted[mode]
            share = f"{100 * accepted / drafted:.0f} %" if drafted else "-"
            of_source = [f"{source} {right} of {n}" for source, (n, right) in self.by_source[mode].items() if n]
            print(f"| {name} | {mode} | {len(ratios)} | {median:.3f} | {low:.3f} to {high:.3f} | {self.tokens} | "
                  f"{drafted} | {accepted} ({share}) | {', '.join(of_source)} |", flush=True)


def compare(servers, name, bodies, args, first, found):
    """The pairs that these servers are asked, from number `first` on."""
    before = {mode: by_source(servers[mode]) for mode in args.modes}
    turn = first
    for pair in range(first - 1, first + args.pairs // args.servers):
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
                    found.same = False
                    print(f"{name}: another answer with {mode}: {done[mode]}, off: {done['off']}", file=sys.stderr)
                if pair >= first:  # before that: caches and the first counts
                    found.ratios[mode].append(done["off"][1] / max(done[mode][1], 1e-6))
                    found.drafted[mode] += done[mode][2]
                    found.accepted[mode] += done[mode][3]
            found.tokens += done["off"][4] if pair >= first else 0
    for mode in args.modes:
        for source, (n, right) in by_source(servers[mode]).items():
            n_before, right_before = before[mode].get(source, (0, 0))
            n_all, right_all = found.by_source[mode].get(source, (0, 0))
            found.by_source[mode][source] = n_all + n - n_before, right_all + right - right_before


def add_sources(total, sources):
    """total: by source, [(guessed, accepted)] by place."""
    for source in sources:
        places = total.setdefault(source["source"], [])
        for at, place in enumerate(source["by_position"]):
            if at == len(places):
                places.append((0, 0))
            places[at] = places[at][0] + place["draft_tokens"], places[at][1] + place["accepted_tokens"]


def print_sources(total):
    """What each source guessed, and the share that was right by place."""
    if not total:
        return
    n_places = max(len(places) for places in total.values())
    print("\n| source | guessed | accepted |" + "".join(f" {place + 1} |" for place in range(n_places)))
    print("|---|---|---|" + "---|" * n_places)
    for source, places in total.items():
        cells = [f"{100 * right / n:.0f} %" if n else "" for n, right in places] + [""] * (n_places - len(places))
        print(f"| {source} | {sum(n for n, _ in places)} | {sum(right for _, right in places)} | "
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
    parser.add_argument("--servers", type=int, default=1, help="of each mode, one after the other")
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
    if args.pairs < 6 or args.tokens < 1 or args.streams < 1 or not 1 <= args.servers <= args.pairs:
        parser.error("expected at least 6 pairs, 1 token, 1 stream and no more servers than pairs")
    unknown = [m for m in args.modes if m not in names] + [s for s in args.sets or [] if s not in SETS]
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}")
    if args.engram_text:
        args.tables = ["measured"]
    sets = {name: bodies for name, bodies in SETS.items() if not args.sets or name in args.sets}
    found = {name: Found(args.modes) for name in sets}
    sources = {mode: {} for mode in args.modes}
    costs = {mode: [] for mode in args.modes}
    for number in range(args.servers):
        servers = {}
        try:
            for mode in ["off", *args.modes]:
                servers[mode] = Server(mode, args)
            for name, bodies in sets.items():
                compare(servers, name, bodies, args, number * (args.pairs // args.servers), found[name])
            for mode in args.modes:
                speculation = servers[mode].status()["speculation"]
                add_sources(sources[mode], speculation["sources"])
                costs[mode].append(speculation)
        finally:
            for server in servers.values():
                server.stop()
    print("| prompts | mode | pairs | off / mode | 95 % | tokens | guessed | accepted | by source |\n"
          "|---|---|---|---|---|---|---|---|---|")
    for name in sets:
        found[name].print(name)
    for mode in args.modes:
        print(f"\n{mode}:")
        print_sources(sources[mode])
        for speculation in costs[mode]:
            print_costs(speculation)
    return 0 if all(f.same for f in found.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
