#!/usr/bin/env python3
"""Draws the loss curves of training logs (log.jsonl) as a PNG.   plot.py LOG... OUT.png

Several logs are runs that each started from the weights of the one before: their tokens add up.
"""

import json
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt


def main():
    *logs, out = sys.argv[1:]
    lines, borders = [], [0]
    for log in logs:
        run = [json.loads(line) for line in open(log)]
        lines += [{**line, "tokens": line["tokens"] + borders[-1]} for line in run]
        borders.append(lines[-1]["tokens"])
    steps = [line for line in lines if "loss" in line]
    tested = [line for line in lines if line.get("held_out")]
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2))
    millions = [line["tokens"] / 1e6 for line in steps]
    left.plot(millions, [line["loss"] for line in steps], lw=0.8, label="trunk")
    left.plot(millions, [line["draft"] for line in steps], lw=0.8, label="MTP block")
    left.set(title="Training loss", xlabel="million tokens", ylabel="nats a token")
    right.set_prop_cycle(color=plt.get_cmap("tab20").colors)
    for domain in tested[0]["held_out"] if tested else []:
        right.plot(
            [t["tokens"] / 1e6 for t in tested], [t["held_out"][domain][0] for t in tested], marker=".", label=domain
        )
    right.set(title="Held-out loss by domain", xlabel="million tokens")
    for axes in (left, right):
        axes.grid(alpha=0.3)
        for border in borders[1:-1]:
            axes.axvline(border / 1e6, color="black", lw=0.8, ls="--")
    left.legend(fontsize=7)
    right.legend(fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5))
    figure.tight_layout()
    figure.savefig(out, dpi=110)


if __name__ == "__main__":
    main()
