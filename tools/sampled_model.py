#!/usr/bin/env python3
"""A model of Qwen3.5-35B-A3B's true shapes in BF16 whose file is mostly holes, to time plans of that size.

    sampled_model.py OUT.gguf [--layers 40] [--whole PATTERN...] [--experts 256]

`chimere quantize --dry-run` measures errors on rows spread evenly over a tensor (src/quantizer/errors.h), and only these
are written; everything else reads as zeros and takes no room on the disk. A file of 70 GB takes 0.3. Matrices whose name
contains a PATTERN are written in full: to encode them. Values are heavy-tailed (Student's t, 4 degrees of freedom): rows
are slices of a pool of 2^20 of them, each under a scale of its own.
"""

import argparse
import math
import random
import struct

WIDTH, VOCAB, FF, HEAD, HEADS, KV, STATE, KEYS, VALUES = 2048, 248320, 512, 256, 16, 2, 128, 16, 32
SAMPLED, LEAST_ROWS = 1 << 18, 64  # of ErrorSampling
ALIGNMENT = 32
F32, BF16 = 0, 30


def text(s):
    return struct.pack("<Q", len(s)) + s.encode()


def number(key, value):
    return text(key) + struct.pack("<II", 4, value)


def tensors(layers, experts):
    """Name, shape and type, as the converter names them."""
    yield "token_embd.weight", (WIDTH, VOCAB), BF16
    yield "output_norm.weight", (WIDTH,), F32
    yield "output.weight", (WIDTH, VOCAB), BF16
    keys, values = KEYS * STATE, VALUES * STATE
    for i in range(layers):
        b = f"blk.{i}."
        if i % 4 == 3:
            yield b + "attn_q.weight", (WIDTH, 2 * HEADS * HEAD), BF16
            yield b + "attn_k.weight", (WIDTH, KV * HEAD), BF16
            yield b + "attn_v.weight", (WIDTH, KV * HEAD), BF16
            yield b + "attn_output.weight", (HEADS * HEAD, WIDTH), BF16
        else:
            yield b + "attn_qkv.weight", (WIDTH, 2 * keys + values), BF16
            yield b + "attn_gate.weight", (WIDTH, values), BF16
            yield b + "ssm_conv1d.weight", (4, 2 * keys + values), F32
            yield b + "ssm_beta.weight", (WIDTH, VALUES), BF16
            yield b + "ssm_alpha.weight", (WIDTH, VALUES), BF16
            yield b + "ssm_out.weight", (values, WIDTH), BF16
        yield b + "attn_norm.weight", (WIDTH,), F32
        yield b + "ffn_gate_inp.weight", (WIDTH, experts), F32
        for part in ("gate", "up"):
            yield b + f"ffn_{part}_exps.weight", (WIDTH, FF, experts), BF16
            yield b + f"ffn_{part}_shexp.weight", (WIDTH, FF), BF16
        yield b + "ffn_down_exps.weight", (FF, WIDTH, experts), BF16
        yield b + "ffn_down_shexp.weight", (FF, WIDTH), BF16


class Pool:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        gauss = self.rng.gauss
        values = []
        for _ in range(1 << 20):
            chi = sum(gauss(0, 1) ** 2 for _ in range(4))
            values.append(0.02 * gauss(0, 1) / math.sqrt(chi / 4))
        # One copy of the pool a scale: rows of one matrix differ in size.
        self.scaled = []
        for scale in (0.6, 0.8, 1.0, 1.3):
            floats = struct.pack(f"<{len(values)}f", *(scale * v for v in values))
            halves = bytearray(len(values) * 2)
            halves[0::2], halves[1::2] = floats[2::4], floats[3::4]
            self.scaled.append(bytes(halves))

    def row(self, n):
        start = self.rng.randrange((1 << 20) - n)
        return self.rng.choice(self.scaled)[2 * start : 2 * (start + n)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("--layers", type=int, default=40)
    parser.add_argument("--experts", type=int, default=256)
    parser.add_argument("--whole", nargs="*", default=[])
    args = parser.parse_args()
    listed = list(tensors(args.layers, args.experts))
    arch = "qwen35moe"
    keys = [text("general.architecture") + struct.pack("<I", 8) + text(arch)]
    keys.append(number(arch + ".block_count", args.layers))
    keys.append(number(arch + ".expert_count", args.experts))
    keys.append(number(arch + ".expert_used_count", 8))
    head = [struct.pack("<4sIQQ", b"GGUF", 3, len(listed), len(keys)), *keys]
    at, places = 0, []
    for name, shape, kind in listed:
        head.append(text(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *shape))
        head.append(struct.pack("<IQ", kind, at))
        places.append(at)
        at += -(-math.prod(shape) * (4 if kind == F32 else 2) // ALIGNMENT) * ALIGNMENT
    head = b"".join(head)
    start = -(-len(head) // ALIGNMENT) * ALIGNMENT
    pool = Pool(1)
    with open(args.out, "wb") as out:
        out.write(head)
        out.truncate(start + at)
        for (name, shape, kind), place in zip(listed, places):
            if kind == F32:
                continue
            width, rows = shape[0], math.prod(shape[1:])
            n = min(rows, max(LEAST_ROWS, SAMPLED // width))
            whole = n == rows or any(p in name for p in args.whole)
            for s in range(rows if whole else n):
                r = s if whole else (2 * s + 1) * rows // (2 * n)
                out.seek(start + place + r * width * 2)
                out.write(pool.row(width))


if __name__ == "__main__":
    main()
