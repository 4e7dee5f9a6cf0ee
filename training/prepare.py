#!/usr/bin/env python3
"""Cleans, renders, tokenises and packs everything chimere-nano learns from. See README.md beside this file."""

import argparse
import hashlib
import itertools
import json
import lzma
import multiprocessing
import pathlib
import random
import sys
import time
from collections import Counter

import numpy as np

from nano import bpe, chatml, corpus, instructions
from nano.batches import PLAIN, UNTRAINED
from nano.held_out import eval_dialogues
from nano.reserved import is_reserved as is_reserved_turn
from nano.synthetic import (
    arithmetic, code, everyday, facts, follow_ups, forms, given_text, letters, lookup, messages, mixed, newcomers, notes, phrases,
    programs,
    reasoning, requests, steps, sums, tales, talk, text_tasks, tool_choice, tool_everyday, tool_results, toolcalls, unknowns,
)

VOCABULARY = 8192
# Dialogues drawn for each category, before equal ones are merged.
COUNTS = {
    "chat": 120_000,
    "facts_qa": 80_000,
    "arithmetic": 160_000,
    "reasoning": 50_000,
    "tools": 50_000,
    "code_qa": 28_000,
    "stories_qa": 30_000,
    "instructions": None,
    "mixed": 50_000,
    "choice": 70_000,
    "results": 45_000,
    "notes": 130_000,
    "given_text": 90_000,
    "forms": 80_000,
    "follow_ups": 50_000,
    "steps": 130_000,
    "programs": 14_000,
    "languages": 12_000,
    "letters": 30_000,
    "unknowns": 25_000,
    "lookup": 60_000,
    "everyday": 30_000,
    "newcomers": 210_000,
    "requests": 60_000,
    "text_tasks": 110_000,
    "assistant": 40_000,
}


# What the fourth to eighth runs added; prepare.py --part packs these and the others apart, since together they take a while.
ADDED = ("choice", "results", "notes", "given_text", "forms", "follow_ups", "steps", "programs", "languages", "letters", "unknowns",
         "lookup", "everyday", "newcomers", "requests", "text_tasks", "assistant")


def wanted(category, part, without=()):
    """Whether a part has a category: "all", "first" (all but ADDED), or a list of categories in which "added" stands for ADDED; `without` leaves out more."""
    if category in without:
        return False
    if part in ("all", "first") or category == "mixed":
        return part != "first" or category not in ADDED
    return category in part.split(",") or (category in ADDED and "added" in part.split(","))


def dialogue_sources(data, split, seed, scale=1.0):
    """(category, iterator of dialogues) of every generator; the held-out ones where a generator has any."""

    def rng(name):
        return random.Random(f"{seed} {name} {split}")

    counts = {name: 600 if split != "train" else int((count or 0) * scale) for name, count in COUNTS.items()}
    yield "facts_qa", facts.dialogues(rng("facts"), data, split, counts["facts_qa"])
    yield "reasoning", reasoning.dialogues(rng("reasoning"), data, split, counts["reasoning"])
    yield "tools", toolcalls.dialogues(rng("tools"), data, split, counts["tools"])
    yield "code_qa", code.dialogues(rng("code"), data, split, counts["code_qa"])
    yield "stories_qa", tales.dialogues(rng("stories"), data, split, counts["stories_qa"])
    yield "instructions", instructions.dialogues(rng("instructions"), data, split)
    if split == "train":
        yield "chat", talk.dialogues(rng("chat"), data, counts["chat"])
        yield "arithmetic", arithmetic.dialogues(rng("arithmetic"), counts["arithmetic"])
        yield "choice", tool_choice.dialogues(rng("choice"), data, counts["choice"])
        yield "results", tool_results.dialogues(rng("results"), data, counts["results"])
        yield "notes", notes.dialogues(rng("notes"), data, counts["notes"])
        yield "given_text", given_text.dialogues(rng("given_text"), data, counts["given_text"])
        yield "given_text", messages.dialogues(rng("messages"), counts["given_text"] // 2)
        yield "forms", forms.dialogues(rng("forms"), counts["forms"])
        yield "follow_ups", follow_ups.dialogues(rng("follow_ups"), data, counts["follow_ups"])
        yield "steps", steps.dialogues(rng("steps"), counts["steps"])
        yield "programs", programs.dialogues(rng("programs"), counts["programs"])
        yield "languages", phrases.dialogues(rng("languages"), counts["languages"])
        yield "letters", letters.dialogues(rng("letters"), counts["letters"])
        yield "unknowns", unknowns.dialogues(rng("unknowns"), counts["unknowns"])
        yield "lookup", lookup.dialogues(rng("lookup"), data, counts["lookup"])
        yield "everyday", everyday.dialogues(rng("everyday"), data, counts["everyday"])
        yield "newcomers", newcomers.dialogues(rng("newcomers"), data, counts["newcomers"])
        yield "requests", requests.dialogues(rng("requests"), data, counts["requests"])
        yield "text_tasks", text_tasks.dialogues(rng("text_tasks"), data, counts["text_tasks"])
        yield "assistant", tool_everyday.dialogues(rng("assistant"), data, counts["assistant"])


def mixed_source(turns, seed, scale=1.0):
    """Conversations over what all other generators have said; asked for last, when the turns are there."""
    yield "mixed", mixed.dialogues(random.Random(f"{seed} mixed"), turns, int(COUNTS["mixed"] * scale))


def collect(data, split, seed, part="all", scale=1.0, without=()):
    """Items as (category, [(text, trained)], repeats).

    A dialogue drawn more than once is kept once; one that holds an evaluation case is not kept at all.
    """
    items, seen, clock = [], set(), time.time()
    for document in corpus.documents(data, split) if part in ("all", "first") else ():
        items.append((document.domain, [(document.text, True)], document.weight))
    report(f"documents ({split})", items, clock)
    turns = {}
    sources = dialogue_sources(data, split, seed, scale)
    if split == "train":
        sources = itertools.chain(sources, mixed_source(turns, seed, scale))
    for category, dialogues in sources:
        if not wanted(category, part, without):
            continue
        clock, before = time.time(), len(items)
        pool = turns.setdefault(category, mixed.Turns(random.Random(f"{seed} turns {category}")))
        for dialogue in dialogues:
            if category != "forms":  # JSON that nobody asked for has no place in a conversation
                pool.offer(dialogue)
            # The banks are ASCII; the name is not.
            parts = [
                (text.replace("Chimere", "Chimère"), trained)
                for text, trained in chatml.segments(chatml.check(dialogue))
            ]
            text = "".join(text for text, _ in parts)
            digest = hashlib.blake2b(text.encode(), digest_size=12).digest()
            if digest not in seen and not (split == "train" and is_reserved(dialogue, text)):
                seen.add(digest)
                items.append((category, parts, 1))
        report(f"{category} ({split})", items[before:], clock)
    return items


def is_reserved(dialogue, text):
    """Whether a dialogue shows a held-out sum or asks one of the evaluation questions."""
    asked = any(m["role"] == "user" and is_reserved_turn(m["content"]) for m in dialogue["messages"])
    return asked or sums.mentions_held_out(text)


def report(name, items, clock):
    size = sum(len(text) for _, parts, _ in items for text, _ in parts)
    print(f"{name:28} {len(items):8} items {size / 1e6:8.1f} MB {time.time() - clock:6.1f} s", flush=True)


def encode_items(batch):
    """Token arrays of a batch of items; plain text ends with <|endoftext|>, dialogues with their last turn."""
    tokenizer = bpe.worker_tokenizer
    end = tokenizer.special_ids[bpe.END_OF_TEXT]
    out = []
    for category, parts, _ in batch:
        if category in PLAIN:
            out.append(np.array(tokenizer.encode(parts[0][0], specials=False) + [end], np.uint16))
            continue
        pieces = []
        for text, trained in parts:
            ids = np.array(tokenizer.encode(text), np.uint16)
            if isinstance(trained, tuple):
                ids = without_spans(tokenizer, text, ids, trained)
            pieces.append(ids if trained else ids | UNTRAINED)
        out.append(np.concatenate(pieces))
    return out


def without_spans(tokenizer, text, ids, spans):
    """The ids with those marked as not to be learnt that lie wholly inside one of the spans of characters."""
    places = [(len(text[:start].encode()), len(text[:end].encode())) for start, end in spans]
    at, out = 0, ids.copy()
    for i, token in enumerate(ids):
        end = at + len(tokenizer.decode_bytes([int(token)]))
        if any(first <= at and end <= last for first, last in places):
            out[i] |= UNTRAINED
        at = end
    return out


def encode_all(items, tokenizer_path, processes=None):
    batches = [items[i : i + 500] for i in range(0, len(items), 500)]
    if processes == 1:
        bpe.start_worker(tokenizer_path)
        return [array for batch in batches for array in encode_items(batch)]
    with multiprocessing.Pool(processes, bpe.start_worker, (tokenizer_path,)) as pool:
        return [array for batch in pool.imap(encode_items, batches) for array in batch]


def write_train(out, items, arrays, compress=True):
    names = sorted({category for category, _, _ in items})
    numbers = {name: i for i, name in enumerate(names)}
    starts = np.cumsum([0] + [len(a) for a in arrays[:-1]])
    tokens = np.concatenate(arrays)
    np.savez_compressed(
        out / "train.items.npz",
        starts=starts.astype(np.uint32),
        categories=np.array([numbers[c] for c, _, _ in items], np.uint8),
        repeats=np.array([r for _, _, r in items], np.uint8),
    )
    (out / "categories.json").write_text(json.dumps(names))
    tokens.tofile(out / "train.tokens")
    if compress:
        with lzma.open(out / "train.tokens.xz", "wb", preset=3) as stream:
            stream.write(tokens.tobytes())
    table = {}
    for name in names:
        mine = [(a, r) for a, (c, _, r) in zip(arrays, items) if c == name]
        table[name] = {
            "items": len(mine),
            "tokens": int(sum(len(a) for a, _ in mine)),
            "tokens_weighted": int(sum(len(a) * r for a, r in mine)),
            "learnt": int(sum(((a & UNTRAINED) == 0).sum() * r for a, r in mine)),
        }
        print(f"{name:14} {json.dumps(table[name])}")
    (out / "contents.json").write_text(json.dumps(table, indent=1))
    size = (out / "train.tokens.xz").stat().st_size if compress else 0
    print(f"{len(tokens):,} tokens, {size / 1e6:.1f} MB compressed")


def write_held_out(out, items, arrays, most=160_000):
    """One stream a category, shuffled by a fixed seed and cut at `most` tokens."""
    folder = out / "held_out"
    folder.mkdir(exist_ok=True)
    for name in sorted({category for category, _, _ in items}):
        mine = [a for a, (c, _, _) in zip(arrays, items) if c == name]
        random.Random(name).shuffle(mine)
        tokens = np.concatenate(mine)[:most]
        documents = np.repeat(np.arange(len(mine)), [len(a) for a in mine])[:most]
        np.savez_compressed(folder / f"{name}.npz", tokens=tokens, documents=documents.astype(np.int32))
        print(f"held out {name:14} {len(tokens):8} tokens, {int(((tokens & UNTRAINED) == 0).sum())} learnt")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=pathlib.Path, help="the data folder (DATA.md says what is in it)")
    parser.add_argument("out", type=pathlib.Path, help="folder to write tokenizer, packed tokens and held-out sets to")
    parser.add_argument("--seed", type=int, default=20261115)
    parser.add_argument(
        "--tokenizer", type=pathlib.Path, default=None, help="use this tokenizer.json, or that of this GGUF file, instead of training one"
    )
    parser.add_argument(
        "--part", default="all",
        help="all, first (what the first three runs read), or categories with commas between them, added for those of the fourth run",
    )
    parser.add_argument("--without", default="", help="categories that are not packed for training, with commas between them: those that another part draws anew")
    parser.add_argument("--scale", type=float, default=1.0, help="draw this many times as many generated dialogues")
    parser.add_argument("--processes", type=int, default=None, help="processes that encode (default: one a core)")
    parser.add_argument("--no-compress", action="store_true", help="leave out train.tokens.xz")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    items = collect(options.data, "train", options.seed, options.part, options.scale, options.without.split(","))
    held_out = []
    if options.part in ("all", "first"):
        held_out = collect(options.data, "held_out", options.seed) + [
            (d["domain"], chatml.segments(chatml.check(d)), 1) for d in eval_dialogues(options.data)
        ]
    path = options.out / "tokenizer.json"
    if options.tokenizer:
        bpe.Tokenizer.load(options.tokenizer).save(path)
    else:
        clock, counter = time.time(), Counter()
        bpe.count_words((text for _, parts, _ in items for text, _ in parts), counter)
        bpe.train(counter, VOCABULARY, bpe.SPECIALS, min_count=3).save(path)
        print(f"tokenizer: {len(counter):,} different words, {time.time() - clock:.0f} s", flush=True)
    clock = time.time()
    write_train(options.out, items, encode_all(items, path, options.processes), not options.no_compress)
    if held_out:
        write_held_out(options.out, held_out, encode_all(held_out, path))
    print(f"encoding and packing: {time.time() - clock:.0f} s")


if __name__ == "__main__":
    sys.exit(main())
