#!/usr/bin/env python3
"""Draws the loss curves of a training log (log.jsonl) as a PNG.   plot.py LOG... OUT.png"""

import json
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt


def main():
    *logs, out = sys.argv[1:]
    lines = [json.loads(line) for log in logs for line in open(log)]
    steps = [line for line in lines if "loss" in line]
    tested = [line for line in lines if line.get("held_out")]
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2))
    millions = [line["tokens"] / 1e6 for line in steps]
    left.plot(millions, [line["loss"] for line in steps], lw=0.8, label="trunk")
    left.plot(millions, [line["draft"] for line in steps], lw=0.8, label="MTP block")
    left.set(title="Training loss", xlabel="million tokens", ylabel="nats a token")
    for domain in tested[0]["held_out"] if tested else []:
        right.plot(
            [t["tokens"] / 1e6 for t in tested], [t["held_out"][domain][0] for t in tested], marker=".", label=domain
        )
    right.set(title="Held-out loss by domain", xlabel="million tokens")
    for axes in (left, right):
        axes.grid(alpha=0.3)
        axes.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(out, dpi=110)


if __name__ == "__main__":
    main()
