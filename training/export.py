#!/usr/bin/env python3
"""Writes trained weights as a GGUF file in the formats the model ships in. See README.md beside this file."""

import argparse
import json
import pathlib

import numpy as np

from nano import bpe, export
from nano.checkpoint import read_weights

# First match wins. Chosen by measured perplexity: docs/models.md has the table.
RECIPE = [("blk.6.", "Q4_K"), ("token_embd", "Q6_K"), ("", "Q5_K")]

DESCRIPTION = "A small language model of the Qwen3.5-MoE architecture that ships with the Chimère engine."


def chooser(recipe):
    def choose(tensor):
        return next(kind for part, kind in recipe if part in tensor)

    return choose


def importance_of(path):
    """The importance file written by an earlier run, or None."""
    if path is None:
        return None
    with np.load(path) as pack:
        return {name: pack[name] for name in pack.files}


def measure_importance(config, tensors, prepared, count):
    import torch

    from nano.batches import Batches
    from nano.importance import column_importance
    from nano.model import Config, Nano
    from train import FINAL

    model = Nano(Config(**config))
    model.load_state_dict({name: torch.from_numpy(values) for name, values in tensors.items()})
    return column_importance(model, Batches(prepared, FINAL, 512, 8, 7), count)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("weights", type=pathlib.Path, help="folder `weights` of a training run")
    parser.add_argument("tokenizer", type=pathlib.Path, help="tokenizer.json of prepare.py")
    parser.add_argument("out", type=pathlib.Path, help="GGUF file to write")
    parser.add_argument("--recipe", type=json.loads, default=RECIPE, help="JSON [[part of a tensor name, format], ...]")
    parser.add_argument(
        "--measure-importance",
        type=pathlib.Path,
        metavar="PREPARED",
        help="weigh rounding errors by gradients on this data",
    )
    parser.add_argument("--batches", type=int, default=6, help="batches of 4,096 tokens for that (default %(default)s)")
    parser.add_argument(
        "--importance", type=pathlib.Path, help="file with importances: read, or written when they are measured"
    )
    options = parser.parse_args()
    config, tensors = read_weights(options.weights)
    if options.measure_importance:
        importance = measure_importance(config, tensors, options.measure_importance, options.batches)
        if options.importance:
            np.savez(options.importance, **importance)
    else:
        importance = importance_of(options.importance)
    tokenizer = bpe.Tokenizer.load(options.tokenizer)
    kinds = export.write_file(
        options.out, config, tensors, tokenizer, chooser(options.recipe), "chimere-nano", DESCRIPTION, importance
    )
    counts = {kind: sum(k == kind for k in kinds.values()) for kind in sorted(set(kinds.values()))}
    print(f"{options.out}: {options.out.stat().st_size / 2**20:.2f} MiB, tensors by format {counts}")


if __name__ == "__main__":
    main()
