#!/usr/bin/env python3
"""Asks two programs the same and compares their answers token by token, as one is built for another machine than the other.

usage: same_answers.py --program "CHIMERE" --other "qemu-aarch64-static CHIMERE" --model FILE.gguf
                       [--prompts tests/api/prompts.json] [--count 20] [--tokens 24] [--near 0.1]

Answers are greedy. Instruction sets differ in the last bits, so where two tokens are as good as equally likely each may
take its own: where answers part, the first program's own probabilities say how far the other's token is behind its best.
That is a near tie up to --near (in nats), and the rest of the two answers is not compared. Ends with 1 unless every
answer is the same or parts at a near tie.
"""

import argparse
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import time
import urllib.request

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
START_LIMIT_S = 300
ANSWER_LIMIT_S = 600


def parted(one, other):
    """Where two answers part, as (index, how far the other's token is behind), or None: lists of OpenAI's logprobs.

    The distance is infinite where the other's token is not among the likeliest ones that the first program named.
    """
    for i, (ours, theirs) in enumerate(zip(one, other)):
        if ours["token"] == theirs["token"]:
            continue
        behind = [ours["logprob"] - top["logprob"] for top in ours["top_logprobs"] if top["token"] == theirs["token"]]
        return i, min(behind, default=float("inf"))
    # Of a greedy answer that goes on after the other's end only a difference before that end is an explanation.
    return None if len(one) == len(other) else (min(len(one), len(other)), float("inf"))


class Server:
    def __init__(self, command, model, folder):
        env = {name: value for name, value in os.environ.items() if not name.startswith(("CHIMERE_", "OTEL_"))}
        env |= {"CHIMERE_HOME": str(folder), "CHIMERE_CONFIG": "none"}
        words = shlex.split(command) + ["serve", "--model", str(model), "--port", "0", "--threads", "1", "--no-odo", "--embedding-model", "none"]
        self.log = pathlib.Path(folder) / "log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(words, env=env, stdout=log, stderr=log)

    def wait(self):
        end = time.monotonic() + START_LIMIT_S
        while time.monotonic() < end and self.process.poll() is None:
            found = re.search(r" is ready on ([^ ;\s]+)", self.log.read_text(errors="replace"))
            if found:
                self.url = found[1].rstrip("/")
                return
            time.sleep(0.1)
        sys.exit(f"same_answers.py: no server within {START_LIMIT_S} s: {self.log.read_text(errors='replace')[-2000:]}")

    def ask(self, prompt, tokens):
        body = {"temperature": 0, "max_tokens": tokens, "logprobs": True, "top_logprobs": 10, **prompt}
        request = urllib.request.Request(self.url + "/v1/chat/completions", json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        began = time.monotonic()
        with urllib.request.urlopen(request, timeout=ANSWER_LIMIT_S) as response:
            choice = json.load(response)["choices"][0]
        return choice["logprobs"]["content"], choice["finish_reason"], time.monotonic() - began

    def stop(self):
        self.process.kill()
        self.process.wait()


def main():
    parser = argparse.ArgumentParser()
    for option in ("program", "other", "model"):
        parser.add_argument("--" + option, required=True)
    parser.add_argument("--prompts", default=REPOSITORY / "tests/api/prompts.json")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--tokens", type=int, default=24)
    parser.add_argument("--near", type=float, default=0.1)
    options = parser.parse_args()
    # Those with tools of their own are about the parser, not about arithmetic.
    prompts = [p for p in json.loads(pathlib.Path(options.prompts).read_text()) if set(p) <= {"messages", "chat_template_kwargs"}]
    prompts = prompts[:options.count]
    if len(prompts) < options.count:
        sys.exit(f"same_answers.py: {options.prompts} has {len(prompts)} prompts, expected {options.count}")

    same = near = tokens = 0
    seconds = [0.0, 0.0]
    failures = []
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        servers = [Server(options.program, options.model, one), Server(options.other, options.model, other)]
        try:
            for server in servers:
                server.wait()
            for prompt in prompts:
                answers = []
                for i, server in enumerate(servers):
                    content, finish, took = server.ask(prompt, options.tokens)
                    answers.append((content, finish))
                    seconds[i] += took
                tokens += len(answers[0][0])
                where = parted(answers[0][0], answers[1][0])
                if where is None and answers[0][1] == answers[1][1]:
                    same += 1
                elif where is not None and where[1] <= options.near:
                    near += 1
                    print(f"near tie of {where[1]:.4f} at token {where[0]}: {prompt['messages'][-1]['content'][:60]!r}")
                else:
                    failures.append((prompt["messages"][-1]["content"][:60], where))
        finally:
            for server in servers:
                server.stop()
    for prompt, where in failures:
        print(f"another answer: {prompt!r}, at {where}")
    print(f"{same} of {len(prompts)} answers are the same, {near} part at a near tie; {tokens} tokens, {seconds[0]:.1f} and {seconds[1]:.1f} s")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
