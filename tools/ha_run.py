#!/usr/bin/env python3
"""Three replicas behind HAProxy on this machine, with clients that talk to them while replicas are killed and restarted.

usage: ha_run.py --program CHIMERE --model FILE.gguf [--seconds 600] [--clients 32] [--kill-every 60]
                 [--baseline 60] [--next-program CHIMERE] [--folder FOLDER] [--check]

Clients hold conversations of several turns, each turn a streamed answer. Four phases:

  baseline   one replica alone, nobody is killed: how much of the prompts comes from its cache
  joining    two replicas, and a third that is started while they are busy
  kills      three replicas, every --kill-every seconds one of them is killed (SIGKILL) and started again
  rolling    each replica is told to stop (SIGTERM), drains, and comes back (as --next-program, where given)

and a report in JSON at the end: requests that failed before they had a head, streams that were cut, by whom, and how much
of the prompts of a conversation's later turns came from the cache. --check ends with 1 unless no request failed without a
head, every stream that was cut was one of a killed replica, the one that joined answered somebody, the rolling restart
lost nothing and left --next-program's version everywhere, and the share of cached tokens is at least 90 % of one
replica's. It needs haproxy and nothing else beside the program.
"""

import argparse
import asyncio
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
BALANCER = REPOSITORY / "deploy/haproxy/haproxy.cfg"
NAMES = ("one", "two", "three")
START_LIMIT_S = 120
WORDS = "river stone lamp garden window paper ship cloud market winter bridge copper letter forest engine".split()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Replica:
    """A `chimere serve` with a folder of its own."""

    def __init__(self, name, program, model, folder, options=()):
        self.name, self.program, self.model, self.options = name, program, model, list(options)
        self.folder = pathlib.Path(folder) / name
        self.folder.mkdir(parents=True)
        self.port = free_port()
        self.process = None
        self.killed_at = []

    def start(self):
        # Options of whoever runs this are not meant for the replicas.
        env = {name: value for name, value in os.environ.items() if not name.startswith(("CHIMERE_", "OTEL_"))}
        env |= {"CHIMERE_HOME": str(self.folder), "CHIMERE_CONFIG": "none"}
        command = [self.program, "serve", "--model", self.model, "--port", str(self.port), "--threads", "1"]
        command += ["--embedding-model", "none", "--drain", "60", "--queue", "256", "--log-format", "json", *self.options]
        log = open(self.folder / "log", "ab")
        self.process = subprocess.Popen(command, env=env, stdout=log, stderr=log)
        log.close()

    async def ready(self):
        end = time.monotonic() + START_LIMIT_S
        while time.monotonic() < end:
            if self.process.poll() is not None:
                break
            try:
                if (await exchange(self.port, "GET", "/health"))[0] == 200:
                    return
            except OSError:
                pass
            await asyncio.sleep(0.1)
        sys.exit(f"replica {self.name} did not start; its log is {self.folder}/log")

    async def version(self):
        return json.loads((await exchange(self.port, "GET", "/v1/status"))[2])["version"]

    def kill(self):
        self.killed_at.append(time.monotonic())
        self.process.kill()
        self.process.wait()

    async def stop(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            while self.process.poll() is None:
                await asyncio.sleep(0.05)


class Balancer:
    """HAProxy with the configuration that people are given, at other ports."""

    def __init__(self, replicas, folder):
        text = BALANCER.read_text()
        self.port = free_port()
        text, n = re.subn(r"bind :8080\b", f"bind 127.0.0.1:{self.port}", text)
        assert n == 1, "the balancer's configuration binds no port 8080"
        for i, replica in enumerate(replicas):
            text, n = re.subn(rf"127\.0\.0\.1:818{i + 1}\b", f"127.0.0.1:{replica.port}", text)
            assert n == 1, f"the balancer's configuration has no replica {i + 1}"
        file = pathlib.Path(folder) / "haproxy.cfg"
        file.write_text(text)
        self.log = open(pathlib.Path(folder) / "haproxy.log", "wb")
        self.process = subprocess.Popen(["haproxy", "-f", str(file), "-db"], stdout=self.log, stderr=self.log)

    async def ready(self):
        for _ in range(100):
            try:
                if (await exchange(self.port, "GET", "/health"))[0] == 200:
                    return
            except OSError:
                pass
            await asyncio.sleep(0.1)
        sys.exit("haproxy did not start")

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.log.close()


async def exchange(port, method, path, body=None):
    """Status, headers and the whole body; OSError where there is no answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        data = json.dumps(body).encode() if body is not None else b""
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: {len(data)}\r\n\r\n"
        writer.write(head.encode() + data)
        await writer.drain()
        try:
            top = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        except asyncio.IncompleteReadError as error:
            raise ConnectionError("closed before its head") from error
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in top[1:])}
        try:
            rest = await reader.read()
        except OSError:
            rest = b""
        return int(top[0].split()[1]), headers, rest.decode("utf-8", "replace")
    finally:
        writer.close()


class Counts:
    def __init__(self):
        self.by_replica = {}  # answers
        self.turns = self.failed = self.refused = self.cut = self.cut_otherwise = self.moved = 0
        self.tokens = {}  # by turn: of prompts, and of these those that came from the cache
        self.failures = []

    def add_prompt(self, turn, prompt, cached):
        before = self.tokens.get(turn, (0, 0))
        self.tokens[turn] = (before[0] + prompt, before[1] + cached)

    def share(self, turns_like=None):
        """Of prompts of later turns, what came from the cache; as if these had come as often as those of `turns_like`."""
        weights = {turn: tokens[0] for turn, tokens in (turns_like or self).tokens.items() if turn > 0}
        known = {turn: weight for turn, weight in weights.items() if self.tokens.get(turn, (0, 0))[0] > 0}
        total = sum(known.values())
        if total == 0:
            return 0.0
        return sum(weight * self.tokens[turn][1] / self.tokens[turn][0] for turn, weight in known.items()) / total

    def report(self):
        return {
            "answers": self.turns,
            "by_replica": dict(sorted(self.by_replica.items())),
            "failed_without_head": self.failed,
            "refused": self.refused,
            "streams_cut": self.cut + self.cut_otherwise,
            "streams_cut_not_by_a_kill": self.cut_otherwise,
            "turns_at_another_replica": self.moved,
            "cached_share_of_later_turns": round(self.share(), 4),
            "failures": self.failures[:10],
        }


class Client:
    """One person after the other, each with a key of their own words, who talks for some turns and goes."""

    def __init__(self, index, port, replicas, counts, until):
        self.random = random.Random(index)
        self.port, self.replicas, self.counts, self.until = port, replicas, counts, until
        self.replica = None

    def is_over(self):
        return time.monotonic() >= self.until()

    async def run(self):
        while not self.is_over():
            await self.conversation()

    async def conversation(self):
        def say(n):
            return " ".join(self.random.choice(WORDS) for _ in range(n))

        self.replica = None  # that gave the last answer of the conversation
        messages = [{"role": "user", "content": f"Let us talk about the {say(3)}. {say(24)}."}]
        for turn in range(self.random.randint(4, 8)):
            answer = None
            while answer is None:
                if self.is_over():
                    return
                answer = await self.ask(messages, turn)
            messages += [{"role": "assistant", "content": answer}, {"role": "user", "content": f"And {say(12)}?"}]
            await asyncio.sleep(self.random.uniform(0.2, 1.0))

    async def ask(self, messages, turn):
        """The answer; None where there was none, and the same is to be asked again."""
        body = {"messages": messages, "stream": True, "stream_options": {"include_usage": True}, "max_tokens": 24,
                "temperature": 0, "enable_thinking": False}
        counts = self.counts
        try:
            status, headers, text = await exchange(self.port, "POST", "/v1/chat/completions", body)
        except OSError as error:
            counts.failed += 1
            counts.failures.append(f"{error}")
            await asyncio.sleep(0.2)
            return None
        if status != 200:
            # What the balancer says because no replica answered is no answer.
            ours = "x-request-id" in headers and status not in (502, 503, 504)
            counts.refused += ours
            counts.failed += not ours
            counts.failures.append(f"{status} {text[:200]}")
            await asyncio.sleep(0.2)
            return None
        if "data: [DONE]" not in text:
            killed = self.was_killed(headers.get("x-chimere-replica", ""))
            counts.cut += killed
            counts.cut_otherwise += not killed
            if not killed:
                counts.failures.append(f"cut: {headers} {text[-200:]}")
            return None
        content, usage = "", {}
        for line in text.split("\n"):
            if not line.startswith("data: {"):
                continue
            chunk = json.loads(line[6:])
            usage = chunk.get("usage") or usage
            content += "".join(choice["delta"].get("content") or "" for choice in chunk["choices"])
        counts.turns += 1
        replica = headers.get("x-chimere-replica", "")
        counts.by_replica[replica] = counts.by_replica.get(replica, 0) + 1
        counts.moved += self.replica is not None and replica != self.replica
        self.replica = replica
        counts.add_prompt(turn, usage.get("prompt_tokens", 0), usage.get("prompt_tokens_details", {}).get("cached_tokens", 0))
        return content

    def was_killed(self, name):
        now = time.monotonic()
        return any(r.name == name and any(now - at < 30 for at in r.killed_at) for r in self.replicas)


async def load(port, replicas, n_clients, until, counts=None):
    counts = counts or Counts()
    await asyncio.gather(*(Client(i, port, replicas, counts, until).run() for i in range(n_clients)))
    return counts


async def phases(args, folder, replicas):
    report = {}

    def said(name, counts):
        report[name] = counts.report()
        print(f"{name}: {json.dumps(report[name])}", flush=True)

    if args.baseline > 0:
        alone = Replica("alone", args.program, args.model, folder)
        replicas.append(alone)
        alone.start()
        await alone.ready()
        end = time.monotonic() + args.baseline
        baseline = await load(alone.port, [], args.clients, lambda: end)
        said("baseline", baseline)
        await alone.stop()
        replicas.remove(alone)

    for name in NAMES:
        replicas.append(Replica(name, args.program, args.model, folder))
    for replica in replicas[:-1]:
        replica.start()
    for replica in replicas[:-1]:
        await replica.ready()
    balancer = Balancer(replicas, folder)
    try:
        await balancer.ready()
        done, counts = False, Counts()
        running = asyncio.create_task(
            load(balancer.port, replicas, args.clients, lambda: 0 if done else time.monotonic() + 1, counts))
        await asyncio.sleep(2)
        last = replicas[-1]
        last.start()
        await last.ready()
        limit = time.monotonic() + START_LIMIT_S
        while last.name not in counts.by_replica and time.monotonic() < limit:
            await asyncio.sleep(0.2)
        done = True
        said("joining", await running)

        end = time.monotonic() + args.seconds
        running = asyncio.create_task(load(balancer.port, replicas, args.clients, lambda: end))
        kills = 0
        while time.monotonic() + args.kill_every < end:
            await asyncio.sleep(args.kill_every)
            victim = replicas[kills % len(replicas)]
            victim.kill()
            kills += 1
            await asyncio.sleep(min(5, args.kill_every / 4))
            victim.start()
            await victim.ready()
        counts = await running
        said("kills", counts)
        report["kills"]["killed"] = kills
        if args.baseline > 0:
            # Later turns have more to find: those of the two are weighed alike.
            report["kills"]["cached_share_of_one_replica"] = round(baseline.share(counts), 4)

        done = False
        running = asyncio.create_task(
            load(balancer.port, replicas, args.clients, lambda: 0 if done else time.monotonic() + 1))
        for replica in replicas:
            await asyncio.sleep(2)
            await replica.stop()
            replica.program = args.next_program or replica.program
            replica.start()
            await replica.ready()
            await asyncio.sleep(3)  # until the balancer has seen it
        done = True
        said("rolling", await running)
        report["rolling"]["versions"] = sorted({await replica.version() for replica in replicas})
    finally:
        balancer.stop()
    return report


def version_of(program):
    """As `--version` says: "chimere 0.1.0"."""
    return subprocess.run([program, "--version"], check=True, capture_output=True, text=True).stdout.split()[1]


def problems_of(report, next_version=None):
    problems = []
    for name in ("joining", "kills", "rolling"):
        phase = report[name]
        if phase["failed_without_head"] or phase["refused"]:
            problems.append(f"{name}: {phase['failed_without_head']} requests failed, {phase['refused']} were refused")
        if phase["streams_cut_not_by_a_kill"]:
            problems.append(f"{name}: {phase['streams_cut_not_by_a_kill']} streams were cut, and not by a kill")
        if phase["answers"] == 0:
            problems.append(f"{name}: nobody was answered")
    for name in ("joining", "rolling"):
        if report[name]["streams_cut"]:
            problems.append(f"{name}: {report[name]['streams_cut']} streams were cut")
    if NAMES[-1] not in report["joining"]["by_replica"]:
        problems.append("joining: the replica that came answered nobody")
    if next_version and report["rolling"]["versions"] != [next_version]:
        problems.append(f"rolling: replicas of {report['rolling']['versions']}, expected {next_version} alone")
    if report["kills"]["killed"] == 0:
        problems.append("kills: nobody was killed")
    if "baseline" in report:
        three, alone = (report["kills"][name] for name in ("cached_share_of_later_turns", "cached_share_of_one_replica"))
        if three < 0.9 * alone:
            problems.append(f"cached share {three}, expected at least 90 % of {alone}")
    return problems


async def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--next-program")
    parser.add_argument("--model", required=True)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--kill-every", type=float, default=60)
    parser.add_argument("--baseline", type=float, default=60)
    parser.add_argument("--folder", help="where logs and caches go, and stay; else a temporary one")
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    if not shutil.which("haproxy", path=os.environ["PATH"] + ":/usr/sbin"):
        sys.exit("haproxy is not installed")
    os.environ["PATH"] += ":/usr/sbin"
    args.program = os.path.abspath(args.program)
    args.next_program = args.next_program and os.path.abspath(args.next_program)
    if args.next_program and version_of(args.next_program) == version_of(args.program):
        sys.exit("--next-program: expected another version than that of --program")
    args.model = os.path.abspath(args.model)
    folder = args.folder or tempfile.mkdtemp(prefix="chimere-ha-")
    os.makedirs(folder, exist_ok=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # replicas end with us
    replicas = []
    try:
        report = await phases(args, folder, replicas)
    finally:
        for replica in replicas:
            if replica.process and replica.process.poll() is None:
                replica.process.kill()
                replica.process.wait()
        if not args.folder:
            shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps(report, indent=2))
    if args.check:
        problems = problems_of(report, args.next_program and version_of(args.next_program))
        for problem in problems:
            print(problem, file=sys.stderr)
        sys.exit(1 if problems else 0)


if __name__ == "__main__":
    asyncio.run(main())
