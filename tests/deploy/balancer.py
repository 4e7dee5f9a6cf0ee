#!/usr/bin/env python3
"""HAProxy with the configuration that people are given, before replicas that only say who they are.

    balancer.py       ends with 1 where a request went elsewhere than it should

A conversation goes to one replica from turn to turn, conversations go to several, and who sends X-Chimere-Affinity says
where to. A request whose connection fails goes to another replica. In the cluster's form the replicas are known by names,
which a server of names here gives addresses to: one that comes back at another address gets its conversations back.
"""
import contextlib
import http.server
import json
import os
import pathlib
import re
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

CONFIGURATION = pathlib.Path(__file__).resolve().parents[2] / "deploy/haproxy/haproxy.cfg"
LIMIT_S = 120


def free_port(kind=socket.SOCK_STREAM):
    with socket.socket(type=kind) as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Replica:
    def __init__(self, name, address, port):
        class Handler(http.server.BaseHTTPRequestHandler):
            def answer(self):
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                body = json.dumps({"name": name, "id": self.headers.get("X-Request-Id")}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                with contextlib.suppress(ConnectionError):  # who checks health reads no more than the head
                    self.wfile.write(body)

            do_GET = do_POST = answer

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer((address, port), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


class Names:
    """A server of names over UDP: addresses of those that it was given, and no such name for all else."""

    def __init__(self):
        self.addresses = {}
        self.socket = socket.socket(type=socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            query, sender = self.socket.recvfrom(4096)
            labels, at = [], 12
            while query[at]:
                labels.append(query[at + 1 : at + 1 + query[at]].decode())
                at += 1 + query[at]
            question = query[12 : at + 5]
            kind = struct.unpack("!H", query[at + 1 : at + 3])[0]
            address = self.addresses.get(labels[0])
            is_found = address and kind == 1  # A
            flags = 0x8180 if address else 0x8183
            answer = query[:2] + struct.pack("!HHHHH", flags, 1, 1 if is_found else 0, 0, 0) + question
            if is_found:
                answer += b"\xc0\x0c" + struct.pack("!HHIH", 1, 1, 1, 4) + socket.inet_aton(address)
            self.socket.sendto(answer, sender)


class Balancer:
    def __init__(self, text, folder, replicas_name=None):
        self.port = free_port()
        text, n = re.subn(r"bind :8080\b", f"bind 127.0.0.1:{self.port}", text)
        assert n == 1, "the configuration binds no port 8080"
        # With so little to do, a request that has just ended, and is still counted, would send the next one elsewhere.
        text, n = re.subn(r"  hash-balance-factor \d+\n", "", text)
        assert n == 1, "the configuration gives nothing away"
        file = pathlib.Path(folder) / "haproxy.cfg"
        file.write_text(text)
        env = {"PATH": os.environ["PATH"]} | ({"CHIMERE_REPLICAS": replicas_name} if replicas_name else {})
        self.log = open(pathlib.Path(folder) / "log", "wb")
        self.process = subprocess.Popen(["haproxy", "-f", str(file), "-db"], env=env, stdout=self.log, stderr=self.log)

    def ask(self, path="/v1/chat/completions", body=None, headers=None):
        """The name of the replica that answered; None where none did."""
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data, headers or {})
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                answer = json.load(response)
                assert response.headers["X-Chimere-Replica"], "the head of an answer names no replica"
                assert answer["id"], "the replica got no X-Request-Id"
                return answer["name"]
        except OSError:
            return None

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.log.close()


def until(what, so):
    end = time.monotonic() + LIMIT_S
    while not so():
        if time.monotonic() > end:
            sys.exit(f"balancer: {what} did not come to be within {LIMIT_S} s")
        time.sleep(0.05)


def chat(words, turns=1, system=None):
    messages = [{"role": "system", "content": system}] if system else []
    messages.append({"role": "user", "content": words})
    for turn in range(1, turns):
        messages += [{"role": "assistant", "content": f"answer {turn}"}, {"role": "user", "content": f"and {turn}?"}]
    return {"messages": messages}


def check_rules(balancer, replicas):
    """Who goes where, of a balancer whose replicas all answer."""
    until("every replica", lambda: {balancer.ask(body=chat(f"first words {i}")) for i in range(40)} == set(replicas))
    for system in (None, "You are brief."):
        for words in ("hello", "good evening"):
            where = {balancer.ask(body=chat(words, turns, system)) for turns in (1, 2, 5)}
            assert len(where) == 1, f"the conversation '{words}' went to {where}"
    system = "one text of the system for all"
    assert len({balancer.ask(body=chat(f"user {i}", 1, system)) for i in range(40)}) > 1, "a text of the system decides alone"
    where = {balancer.ask(body=chat(f"words {i}"), headers={"X-Chimere-Affinity": "mine"}) for i in range(10)}
    assert len(where) == 1, f"one X-Chimere-Affinity went to {where}"
    where = {balancer.ask("/v1/responses", {"input": str(i)}, {"Authorization": "Bearer one"}) for i in range(10)}
    assert len(where) == 1, f"one key went to {where}"


def at_ports(folder):
    text = CONFIGURATION.read_text()
    ports = {name: free_port() for name in ("one", "two", "three")}
    for i, port in enumerate(ports.values()):
        text, n = re.subn(rf"127\.0\.0\.1:818{i + 1}\b", f"127.0.0.1:{port}", text)
        assert n == 1, f"the configuration has no replica {i + 1}"
    replicas = {name: Replica(name, "127.0.0.1", port) for name, port in ports.items()}
    balancer = Balancer(text, folder)
    try:
        check_rules(balancer, replicas)
        # Nobody notices one that is gone, not even before the balancer has.
        replicas.pop("two").stop()
        for i in range(30):
            assert balancer.ask(body=chat(f"first words {i}")) in replicas, "a request was lost when a replica went"
    finally:
        balancer.stop()


def by_names(folder):
    names, port = Names(), free_port()
    text, n = re.subn(r'(\$\{CHIMERE_REPLICAS\}"?):8081\b', rf"\g<1>:{port}", CONFIGURATION.read_text())
    assert n >= 3, "the configuration names no replicas"
    text, n = re.subn(r"parse-resolv-conf", f"nameserver test 127.0.0.1:{names.port}", text)
    assert n == 1, "the configuration asks no server of names"
    replicas = {}
    for i in range(3):
        names.addresses[f"chimere-{i}"] = f"127.0.0.{i + 2}"
        replicas[f"chimere-{i}"] = Replica(f"chimere-{i}", f"127.0.0.{i + 2}", port)
    balancer = Balancer(text, folder, "chimere-replicas.test.svc.cluster.local")
    try:
        check_rules(balancer, replicas)
        before = [balancer.ask(body=chat(f"first words {i}")) for i in range(40)]
        replicas.pop("chimere-1").stop()
        until("others for those of a replica that is gone", lambda: "chimere-1" not in
              [balancer.ask(body=chat(f"first words {i}")) for i in range(40)])
        names.addresses["chimere-1"] = "127.0.0.9"
        Replica("chimere-1", "127.0.0.9", port)
        until("the replica at its new address, with its own conversations",
              lambda: [balancer.ask(body=chat(f"first words {i}")) for i in range(40)] == before)
    finally:
        balancer.stop()


def main():
    for form in (at_ports, by_names):
        with tempfile.TemporaryDirectory() as folder:
            form(folder)


if __name__ == "__main__":
    main()
