#!/usr/bin/env python3
"""Writes trained weights as a GGUF file in the formats the model ships in. See README.md beside this file."""

import argparse
import json
import pathlib

from nano import bpe, export
from nano.checkpoint import read_weights

# First match wins. Chosen by measured perplexity: docs/models.md has the table.
RECIPE = [("blk.6.", "Q4_K"), ("token_embd", "Q6_K"), ("", "Q5_K")]

DESCRIPTION = "A small language model of the Qwen3.5-MoE architecture that ships with the Chimère engine."


def chooser(recipe):
    def choose(tensor):
        return next(kind for part, kind in recipe if part in tensor)

    return choose


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("weights", type=pathlib.Path, help="folder `weights` of a training run")
    parser.add_argument("tokenizer", type=pathlib.Path, help="tokenizer.json of prepare.py")
    parser.add_argument("out", type=pathlib.Path, help="GGUF file to write")
    parser.add_argument("--recipe", type=json.loads, default=RECIPE, help="JSON [[part of a tensor name, format], ...]")
    options = parser.parse_args()
    config, tensors = read_weights(options.weights)
    tokenizer = bpe.Tokenizer.load(options.tokenizer)
    choose = chooser(options.recipe)
    kinds = export.write_file(options.out, config, tensors, tokenizer, choose, "chimere-nano", DESCRIPTION)
    counts = {kind: sum(k == kind for k in kinds.values()) for kind in sorted(set(kinds.values()))}
    print(f"{options.out}: {options.out.stat().st_size / 2**20:.2f} MiB, tensors by format {counts}")


if __name__ == "__main__":
    main()
