#!/usr/bin/env python3
"""Writes into the file of an embedder how searches use its vectors. See README.md."""

import argparse
import pathlib

from embed.export import set_use


def within(kind, least, most):
    def read(text):
        value = kind(text)
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"expected {least} to {most}, found {text}")
        return value
    return read


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=pathlib.Path, help="GGUF file")
    parser.add_argument("weight", type=within(float, 0, 1000), help="what a cosine of 1 counts in points of BM25")
    parser.add_argument("least_cosine", type=within(float, -1, 1), help="texts that are less near to a question are not found by vectors")
    parser.add_argument("hop", type=within(int, 0, 4096), help="tokens of a hop: a window has two; 0: texts are embedded whole")
    parser.add_argument("dimensions", type=within(int, 1, 65536), help="how many values of a vector count")
    options = parser.parse_args()
    set_use(options.file, options.weight, options.least_cosine, options.hop, options.dimensions)


if __name__ == "__main__":
    main()
