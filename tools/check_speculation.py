#!/usr/bin/env python3
"""Check that drafts change no answer: every prompt, greedy and drawn, with each source, in each of eight ways.

One server answers without drafts and one with each source, all with the same Engram table, the same LoRA adapter and a
prefix cache on the disk. Each asks the same; what was said, why it ended and the tokens of it have to be the same. The
ways: alone, eight at once, streamed, held to a JSON schema, with a thinking budget, with Engram memory, with LoRA, and
as the next turn of the first answer behind a restart, from the disk.

usage: check_speculation.py --chimere BIN [--modes auto,always,ngram,engram,mtp,draft] [--prompts 50] [--tokens 48]
                            [--ways alone,eight,...] [--drafter FILE] MODEL.gguf

The mode draft takes the model itself as its draft model. A source alone guesses where that pays, which may be nowhere on
this machine: always-draft and always-dflash are the mode always with a draft model or a drafter, as always alone is with
the MTP block. The table and the adapter are made up here: the table of the
first answers without drafts, so that it knows much of what will be said and not all.

Exit status: 0, or 1 when an answer was not the same.
"""
import argparse
import concurrent.futures
import json
import os
import random
import re
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request

from compare_speculation import Server

SCHEMA = {"type": "object", "properties": {"topic": {"type": "string", "maxLength": 20},
                                           "words": {"type": "array", "items": {"type": "string", "maxLength": 8},
                                                     "maxItems": 3},
                                           "sure": {"type": "boolean"}},
          "required": ["topic", "words", "sure"], "additionalProperties": False}
WAYS = {"alone": {}, "eight": {}, "streamed": {}, "schema": {"json_schema": SCHEMA},
        "budget": {"enable_thinking": True, "thinking_budget": 17}, "engram": {"engram": {"tables": ["measured"]}},
        "lora": {"lora": "made"}, "restarted": {}}


def text_of(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def write_adapter(path, program, model):
    """A small random change of some projections."""
    listed = subprocess.run([program, "inspect", "--tensors", model], check=True, capture_output=True, text=True).stdout
    found = re.findall(r"(blk\.[0-3]\.(?:attn_q|attn_output|ssm_out)\.weight)\s+\S+\s+\{(\d+), (\d+)\}", listed)
    architecture = re.search(r"architecture\s+(\S+)", listed).group(1)
    rng, rank, data, infos = random.Random(20), 2, b"", b""
    for name, n_in, n_out in found:
        for part, shape in (("lora_a", (int(n_in), rank)), ("lora_b", (rank, int(n_out)))):
            infos += text_of(f"{name}.{part}") + struct.pack("<IQQIQ", 2, *shape, 0, len(data))
            values = [rng.uniform(-0.05, 0.05) for _ in range(shape[0] * shape[1])]
            data += struct.pack(f"<{len(values)}f", *values)
            data += bytes(-len(data) % 32)
    entries = b"".join(text_of(key) + struct.pack("<I", 8) + text_of(value) for key, value in
                       [("general.type", "adapter"), ("general.architecture", architecture), ("adapter.type", "lora")])
    entries += text_of("adapter.lora.alpha") + struct.pack("<If", 6, 4.0)
    out = b"GGUF" + struct.pack("<IQQ", 3, 2 * len(found), 4) + entries + infos
    with open(path, "wb") as file:
        file.write(out + bytes(-len(out) % 32) + data)


def told(answer):
    """What has to be the same of an answer."""
    choice = answer["choices"][0]
    message = choice["message"]
    return (message.get("content"), message.get("reasoning_content"), choice["finish_reason"],
            answer["usage"]["completion_tokens"], answer["timings"].get("draft_n", 0),
            answer["usage"].get("prompt_tokens_details", {}).get("cached_tokens", 0))


def streamed(server, body):
    request = urllib.request.Request(server.url + "/v1/chat/completions", json.dumps(dict(body, stream=True, stream_options={
        "include_usage": True})).encode(), {"Content-Type": "application/json"})
    content, reasoning, reason, tokens, drafted = "", "", None, 0, 0
    with urllib.request.urlopen(request, timeout=600) as answer:
        for line in answer:
            if not line.startswith(b"data: {"):
                continue
            chunk = json.loads(line[6:])
            tokens = (chunk.get("usage") or {}).get("completion_tokens", tokens)
            drafted = (chunk.get("timings") or {}).get("draft_n", drafted)
            for choice in chunk["choices"]:
                content += choice["delta"].get("content") or ""
                reasoning += choice["delta"].get("reasoning_content") or ""
                reason = choice.get("finish_reason") or reason
    return content or None, reasoning or None, reason, tokens, drafted, 0


def bodies_of(way, prompts, first, args):
    for number, prompt in enumerate(prompts):
        for temperature in (0, 0.7):
            body = dict(prompt, max_tokens=args.tokens, enable_thinking=False, temperature=temperature, seed=number)
            if way == "restarted":  # the turn behind the first answer
                said = first.get((number, temperature))
                body["messages"] = [*prompt["messages"], {"role": "assistant", "content": said or "Yes."},
                                    {"role": "user", "content": "Say that again, in other words."}]
            yield (number, temperature), dict(body, **WAYS[way])


def ask_all(server, way, bodies):
    if way == "streamed":
        return {key: streamed(server, body) for key, body in bodies}
    if way != "eight":
        return {key: told(server.ask(body)) for key, body in bodies}
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        return dict(zip([key for key, _ in bodies], pool.map(lambda pair: told(server.ask(pair[1])), bodies)))


def answers_of(mode, prompts, first, folder, args):
    """All answers of a mode by way; `first`, where it is empty, is filled with those of the way alone."""
    cache = os.path.join(folder, "cache-" + mode)
    os.makedirs(cache)
    more = ["--lora", f"made={folder}/made.gguf", "--engram", f"{folder}/tables"]
    done = {}
    for is_again in (False, True):
        ways = [w for w in args.ways if (w == "restarted") == is_again]
        if not ways:
            continue
        server = Server(mode.split("-")[0], args, cache, more)
        try:
            for way in ways:
                done[way] = ask_all(server, way, list(bodies_of(way, prompts, first, args)))
                if way == "alone" and not first:
                    first.update({key: answer[0] for key, answer in done[way].items()})
            if not is_again:
                time.sleep(3.5)  # then states go to the disk
        finally:
            server.stop()
    return done


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--chimere", metavar="BIN", required=True)
    parser.add_argument("--modes", default=["auto", "always", "ngram", "engram", "mtp", "draft"],
                        type=lambda text: text.split(","))
    parser.add_argument("--ways", default=list(WAYS), type=lambda text: text.split(","), help="of " + ", ".join(WAYS))
    parser.add_argument("--prompts", type=int, default=50)
    parser.add_argument("--tokens", type=int, default=48)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--drafter", metavar="FILE", help="of DFlash, for the mode dflash")
    parser.add_argument("model", metavar="MODEL.gguf")
    args = parser.parse_args()
    if set(args.ways) - set(WAYS) or "alone" not in args.ways:
        parser.error("expected ways of " + ", ".join(WAYS) + ", alone among them")
    args.streams, args.draft_max, args.engram_text, drafter = 8, None, None, args.drafter
    with open(os.path.join(os.path.dirname(__file__), "..", "tests", "api", "prompts.json"), encoding="utf-8") as file:
        prompts = json.load(file)[:args.prompts]
    failed = total = 0
    with tempfile.TemporaryDirectory() as folder:
        os.makedirs(f"{folder}/tables")
        write_adapter(f"{folder}/made.gguf", args.chimere, args.model)
        args.draft_model = args.drafter = None
        plain = Server("off", args)
        said = [plain.ask(dict(p, max_tokens=args.tokens, enable_thinking=False, temperature=0))["choices"][0]["message"]
                for p in prompts]
        plain.stop()
        with open(f"{folder}/said.txt", "w", encoding="utf-8") as file:
            file.write("\n".join(m.get("content") or "" for m in said))
        subprocess.run([args.chimere, "engram", "build", f"{folder}/tables/measured.engram", "--model", args.model,
                        "--text", f"{folder}/said.txt"], check=True, stdout=subprocess.DEVNULL)
        first = {}
        off = answers_of("off", prompts, first, folder, args)
        print("| source | compared | different | guesses by way |\n|---|---|---|---|")
        for mode in args.modes:
            args.draft_model = args.model if mode.endswith("draft") else None
            args.drafter = drafter if mode.endswith("dflash") else None
            done = answers_of(mode, prompts, first, folder, args)
            n_wrong = n_mode = 0
            guesses = []
            for way, answers in done.items():
                for key, answer in answers.items():
                    n_mode += 1
                    if answer[:4] != off[way][key][:4]:
                        n_wrong += 1
                        print(f"{mode}, {way}, prompt {key[0]} at {key[1]}: {answer}, off: {off[way][key]}", file=sys.stderr)
                guesses.append(f"{way} {sum(a[4] for a in answers.values())}")
                if way == "restarted" and not any(a[5] for a in answers.values()):
                    n_wrong += 1
                    print(f"{mode}: nothing came back from the disk", file=sys.stderr)
            print(f"| {mode} | {n_mode} | {n_wrong} | {', '.join(guesses)} |", flush=True)
            total += n_mode
            failed += n_wrong
    print(f"\n{total} answers compared with those without drafts, {failed} different")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
