#!/usr/bin/env python3
"""Writes into the file of an embedder how searches use its vectors: weigh_embed.py FILE WEIGHT LEAST_COSINE. See README.md."""

import argparse
import pathlib

from embed.export import set_use


def within(least, most):
    def read(text):
        value = float(text)
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"expected {least} to {most}, found {text}")
        return value
    return read


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=pathlib.Path, help="GGUF file")
    parser.add_argument("weight", type=within(0, 100), help="of ranks by vectors, beside 1 for those by words")
    parser.add_argument("least_cosine", type=within(-1, 1), help="texts that are less near to a question are not found by vectors")
    options = parser.parse_args()
    set_use(options.file, options.weight, options.least_cosine)


if __name__ == "__main__":
    main()
