#!/usr/bin/env python3
"""Makes a model harder to quantise without changing what it computes: some columns of its matrices grow.

    plant_outliers.py IN.gguf OUT.gguf [--share 0.05] [--most 5] [--seed 1]

IN is a llama-like file in F32. A channel of a norm is divided by a power of two and the column of every matrix that reads
it multiplied by the same; a row of ffn_up is divided and its column of ffn_down multiplied. Powers of two are exact in floats: the
new file's logits are those of the old one, bit by bit, while blocks of the grown columns spend their bits on few weights.
"""

import argparse
import array
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "training"))

from nano import gguf  # noqa: E402

# What is divided by rows (a vector: by its elements), and whose columns are multiplied.
PAIRS = (
    ("attn_norm", ("attn_q", "attn_k", "attn_v")),
    ("ffn_norm", ("ffn_gate", "ffn_up")),
    ("ffn_up", ("ffn_down",)),
)


def factors(channels, share, most, rng):
    """1 for most channels, and 2^1 to 2^most for some of them."""
    return [2.0 ** rng.randint(1, most) if rng.random() < share else 1.0 for _ in range(channels)]


def multiply_columns(values, by):
    for i in range(len(values)):
        values[i] *= by[i % len(by)]


def divide_rows(values, by):
    length = len(values) // len(by)  # 1 for a vector
    for i in range(len(values)):
        values[i] /= by[i // length]


def plant(tensors, share, most, rng):
    """`tensors`: name -> (dims in file order, array of float32), changed in place. Returns how many channels grew."""
    grown = 0
    blocks = sorted({name.split(".")[1] for name in tensors if name.startswith("blk.")}, key=int)
    for block in blocks:
        for source, readers in PAIRS:
            dims, values = tensors[f"blk.{block}.{source}.weight"]
            by = factors(dims[-1], share, most, rng)
            divide_rows(values, by)
            for reader in readers:
                read_dims, read_values = tensors[f"blk.{block}.{reader}.weight"]
                if read_dims[0] != len(by):
                    raise SystemExit(f"blk.{block}.{reader}: rows of {read_dims[0]}, expected {len(by)}")
                multiply_columns(read_values, by)
            grown += sum(factor > 1 for factor in by)
    return grown


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", metavar="IN.gguf")
    parser.add_argument("out", metavar="OUT.gguf")
    parser.add_argument("--share", type=float, default=0.05, help="of the channels (default %(default)s)")
    parser.add_argument("--most", type=int, default=5, help="the largest power of two (default %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    metadata, stored = gguf.read(options.source, keep_types=True)
    wrong = [name for name, (_, kind, _) in stored.items() if kind != "F32"]
    if wrong:
        raise SystemExit(f"{options.source}: {wrong[0]} is {stored[wrong[0]][1]}, expected F32")
    tensors = {name: (dims, array.array("f", bytes(raw))) for name, (dims, _, raw) in stored.items()}
    grown = plant(tensors, options.share, options.most, random.Random(options.seed))
    gguf.write(options.out, metadata, [(name, dims, "F32", values.tobytes()) for name, (dims, values) in tensors.items()])
    print(f"{options.out}: {grown} channels grew by up to {2 ** options.most}")


if __name__ == "__main__":
    main()
