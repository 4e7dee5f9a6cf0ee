#!/usr/bin/env python3
"""Makes what train_embed.py reads from the data folder: vocabulary, pairs as tokens, and the held-out sets.

    python3 training/prepare_embed.py DATA_DIR OUT_DIR

Writes vocab.json, pack.npz.xz, and medquad.jsonl and fairytaleqa.jsonl with what is held out, as quality_bench reads it.
"""

import argparse
import json
import pathlib
from collections import Counter

from embed import pack, pairs
from embed.wordpiece import WordPiece, train, words


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--vocab", type=int, default=14336, help="tokens of the vocabulary (default %(default)s)")
    return parser.parse_args()


def write_rows(path, rows):
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf8")


def main():
    options = arguments()
    options.out.mkdir(parents=True, exist_ok=True)
    sources = list(pairs.all_pairs(options.data))
    counts = Counter()
    for name, found in sources:
        print(f"{name}: {len(found)} pairs", flush=True)
        for text in {pair.passage for pair in found} | {pair.query for pair in found}:
            counts.update(words(text))
    tokens = train(counts, options.vocab)
    tokenizer = WordPiece(tokens)
    (options.out / "vocab.json").write_text(json.dumps(tokens, ensure_ascii=False), encoding="utf8")
    arrays = pack.write(options.out / "pack.npz.xz", options.data, tokenizer, sources)
    write_rows(options.out / "medquad.jsonl", pairs.held_out_medquad(options.data))
    write_rows(options.out / "fairytaleqa.jsonl", pairs.held_out_tales(options.data))
    unknown = float((arrays["tokens"] == 1).mean())
    print(f"{len(arrays['starts']) - 1} texts, {len(arrays['tokens'])} tokens, unknown {unknown:.4%}; pack "
          f"{(options.out / 'pack.npz.xz').stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
