#!/usr/bin/env python3
"""Writes trained weights as a GGUF file in floats, for `chimere quantize` to make small. See README.md beside this file."""

import argparse
import pathlib

from nano import bpe, export
from nano.checkpoint import read_weights

DESCRIPTION = "A small language model of the Qwen3.5-MoE architecture that ships with the Chimère engine."


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("weights", type=pathlib.Path, help="folder `weights` of a training run")
    parser.add_argument("tokenizer", type=pathlib.Path, help="tokenizer.json of prepare.py")
    parser.add_argument("out", type=pathlib.Path, help="GGUF file to write")
    parser.add_argument("--type", choices=("F32", "F16", "BF16"), default="F16", help="of the matrices (default %(default)s)")
    options = parser.parse_args()
    config, tensors = read_weights(options.weights)
    tokenizer = bpe.Tokenizer.load(options.tokenizer)
    kinds = export.write_file(options.out, config, tensors, tokenizer, options.type, "chimere-nano", DESCRIPTION)
    counts = {kind: sum(k == kind for k in kinds.values()) for kind in sorted(set(kinds.values()))}
    print(f"{options.out}: {options.out.stat().st_size / 2**20:.2f} MiB, tensors by format {counts}")


if __name__ == "__main__":
    main()
