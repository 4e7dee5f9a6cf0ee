#!/usr/bin/env python3
"""HAProxy before two real replicas, of which one is killed while a stream still waits in it for its first word.

    waiting.py CHIMERE MODEL.gguf       ends with 1 where the stream was lost

The head of a stream leaves with its first word, so that HAProxy can give a request that has none yet to another replica. The
client notices nothing; only the answer that had begun is cut.
"""
import http.client
import json
import pathlib
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
from balancer import CONFIGURATION, LIMIT_S, Balancer, free_port, until  # noqa: E402
from ha_run import Replica  # noqa: E402

AFFINITY = {"X-Chimere-Affinity": "one conversation"}


def ask(port, method, path, body=None, headers=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT_S)
    connection.request(method, path, json.dumps(body) if body else None, headers or {})
    return connection


def under_way(replica):
    try:
        connection = ask(replica.port, "GET", "/v1/requests")
        return json.load(connection.getresponse())["data"]
    except (OSError, http.client.HTTPException):
        return []


def main():
    program, model = sys.argv[1:3]
    replicas = []
    with tempfile.TemporaryDirectory() as folder:
        text = CONFIGURATION.read_text()
        try:
            for i, name in enumerate(("one", "two")):
                replicas.append(Replica(name, program, model, folder, ["--parallel", "1"]))
                replicas[i].start()
                text = text.replace(f"127.0.0.1:818{i + 1}", f"127.0.0.1:{replicas[i].port}")
            text = text.replace("127.0.0.1:8183", f"127.0.0.1:{free_port()}")
            for replica in replicas:
                until(f"replica {replica.name}", lambda: ready(replica))
            balancer = Balancer(text, folder)
            try:
                until("the balancer", lambda: ready(balancer))
                check(balancer, replicas)
            finally:
                balancer.stop()
        finally:
            for replica in replicas:
                replica.kill()


def ready(server):
    try:
        return ask(server.port, "GET", "/health").getresponse().status == 200
    except OSError:
        return False


def check(balancer, replicas):
    endless = {"prompt": "Once upon a time", "n_predict": 12000, "ignore_eos": True, "stream": True}
    first = ask(balancer.port, "POST", "/completion", endless, AFFINITY).getresponse()
    name = first.headers["X-Chimere-Replica"]
    assert first.status == 200 and name, f"the first request: {first.status} {first.read()}"
    victim = next(r for r in replicas if r.name == name)

    body = {"messages": [{"role": "user", "content": "What is 2 + 3?"}], "stream": True, "temperature": 0}
    waiting = ask(balancer.port, "POST", "/v1/chat/completions", body, AFFINITY)
    until("a second request of the same conversation, which waits with its prompt made",
          lambda: len([r for r in under_way(victim) if r["prompt_tokens"] > 0]) == 2)
    began = time.monotonic()
    victim.kill()
    second = waiting.getresponse()
    answer = second.read().decode()
    assert second.status == 200, f"the request that waited: {second.status} {answer}"
    assert second.headers["X-Chimere-Replica"] not in (None, name), f"answered by {second.headers['X-Chimere-Replica']}"
    assert answer.endswith("data: [DONE]\n\n") and '"finish_reason":"stop"' in answer, f"the stream: {answer[-300:]}"
    try:
        cut = first.read().decode()
    except (OSError, http.client.HTTPException):
        cut = ""
    assert '"stop":true' not in cut, "the first request had ended before its replica was killed"
    print(f"waiting: answered by the other replica {time.monotonic() - began:.1f} s behind the kill")


if __name__ == "__main__":
    main()
