#!/usr/bin/env python3
"""Writes a weighted mean of trained weights and of an earlier GGUF file of the same shape. See README.md beside this file.

A run that learns much forgets a little, and between its weights and those it began with lie models that forget less, and know less of
the new: docs/models.md has the figures of both ends and of the mean that ships.
"""

import argparse
import pathlib

import numpy as np

from export import DESCRIPTION
from nano import bpe, export, gguf, quants
from nano.checkpoint import read_weights


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weights", type=pathlib.Path, help="folder `weights` of a training run")
    parser.add_argument("earlier", type=pathlib.Path, help="GGUF file whose weights get the share")
    parser.add_argument("out", type=pathlib.Path, help="GGUF file to write")
    parser.add_argument("--share", type=float, default=0.3, help="of the earlier file (default %(default)s)")
    options = parser.parse_args()
    config, tensors = read_weights(options.weights)
    _, earlier = gguf.read(options.earlier)
    for name, values in tensors.items():
        dims, kind, raw = earlier[export.file_name(name, config["layers"])]
        old = export.from_file(name, quants.decode(kind, raw, tuple(reversed(dims)))).reshape(values.shape)
        tensors[name] = ((1 - options.share) * values + options.share * old).astype(np.float32)
    tokenizer = bpe.Tokenizer.load(options.earlier)
    export.write_file(options.out, config, tensors, tokenizer, "F16", "chimere-nano", DESCRIPTION)
    print(f"{options.out}: {options.out.stat().st_size / 2**20:.2f} MiB")


if __name__ == "__main__":
    main()
