#!/usr/bin/env python3
"""Time chimere beside other engines on the same GGUF files, on this machine.

Shared machines drift, so figures taken minutes apart do not compare. The programs therefore take turns: one
alternation is one run of each program on one file, and the order rotates from one alternation to the next so that
none always runs first. The medians over the alternations are what to quote. The range of the ratios taken within
single alternations says how far to trust them.

usage: compare_peers.py --chimere BIN --peer NAME=LLAMA_BENCH [--peer ...] [-p 256] [-n 64] [-t 2] [-r 5]
                        [--csv OUT.csv] FILE.gguf [FILE.gguf ...]

A peer is any program with the options and JSON of llama-bench. Its value may carry more arguments, as in
--peer "flash=path/llama-bench -fa 1". Without --chimere the peers alone are timed.
A peer that cannot run a file is named, left out of that file's table and out of the CSV; the others go on.
Exit status: 0, or 1 when chimere itself failed on a file or when nothing could be timed.
"""
import argparse
import csv
import datetime
import json
import os
import platform
import shlex
import statistics
import subprocess
import sys

CHIMERE = "chimere"
COLUMNS = ["file", "program", "prefill_tok_s", "prefill_spread", "decode_tok_s", "decode_spread", "threads",
           "cpu_model", "date"]


class RunFailed(Exception):
    """A program ended badly or answered something that is not its documented JSON."""


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--chimere", metavar="BIN", help="the chimere program")
    parser.add_argument("--peer", metavar="NAME=LLAMA_BENCH", action="append", default=[])
    parser.add_argument("-p", type=int, default=256, help="prompt tokens (prefill)")
    parser.add_argument("-n", type=int, default=64, help="generated tokens (decode)")
    parser.add_argument("-t", type=int, default=2, help="threads")
    parser.add_argument("-r", type=int, default=5, help="alternations")
    parser.add_argument("--timeout", type=float, default=600, help="seconds one run may take")
    parser.add_argument("--csv", metavar="OUT.csv", help="write the table there")
    parser.add_argument("files", metavar="FILE.gguf", nargs="+")
    args = parser.parse_args()
    if args.p < 1 or args.n < 1 or args.t < 1 or args.r < 1:
        parser.error("-p, -n, -t and -r must be at least 1")
    args.programs = {CHIMERE: [args.chimere]} if args.chimere else {}
    for peer in args.peer:
        name, _, command = peer.partition("=")
        if not name or not command or name in args.programs:
            parser.error(f"--peer {peer!r}: expected NAME=LLAMA_BENCH with a name not used before")
        args.programs[name] = shlex.split(command)
    if not args.programs:
        parser.error("nothing to run: give --chimere or --peer")
    return args


def telling_line(output):
    """The last line that names an error; a crash may print pages of backtrace after it."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    named = [line for line in lines if "error" in line.lower() or "assert" in line.lower()]
    return (named or lines or ["no output"])[-1]


def run(command, timeout):
    """Standard output of command."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
                              timeout=timeout)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RunFailed(str(error)) from error
    if done.returncode != 0:
        raise RunFailed(f"exit status {done.returncode}: {telling_line(done.stderr + done.stdout)}")
    return done.stdout


def first_json(text, opening):
    """The first JSON value of text that begins a line with `opening`; some builds print log lines around it."""
    at = 0 if text.startswith(opening) else text.find("\n" + opening) + 1
    if at == 0 and not text.startswith(opening):
        raise RunFailed(f"no line of its output begins with {opening!r}")
    try:
        return json.JSONDecoder().raw_decode(text, at)[0]
    except ValueError as error:
        raise RunFailed(f"its output is not JSON: {error}") from error


def run_chimere(command, file, args):
    """(prefill, decode) in tokens per second."""
    out = run(command + ["bench", "--model", file, "-p", str(args.p), "-n", str(args.n), "-r", "1", "-t", str(args.t),
                         "--json"], args.timeout)
    result = first_json(out, "{")
    try:
        return float(result["prefill_tok_s"]), float(result["decode_tok_s"])
    except (KeyError, TypeError, ValueError) as error:
        raise RunFailed(f"its JSON lacks prefill_tok_s or decode_tok_s as numbers: {error!r}") from error


def run_peer(command, file, args):
    """(prefill, decode) in tokens per second. llama-bench makes one test of each and warms up before both."""
    out = run(command + ["-m", file, "-p", str(args.p), "-n", str(args.n), "-r", "1", "-t", str(args.t), "-o", "json"],
              args.timeout)
    prefill = decode = None
    try:
        for test in first_json(out, "["):
            speed = statistics.median(test["samples_ts"]) if test.get("samples_ts") else float(test["avg_ts"])
            if test["n_prompt"] == args.p and test["n_gen"] == 0:
                prefill = speed
            elif test["n_prompt"] == 0 and test["n_gen"] == args.n:
                decode = speed
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise RunFailed(f"its JSON is not that of llama-bench: {error!r}") from error
    if prefill is None or decode is None:
        raise RunFailed(f"its JSON lacks the test of {args.p} prompt tokens or that of {args.n} generated tokens")
    return prefill, decode


def alternate(file, args):
    """({program: [(prefill, decode), ...]}, {program: why it failed}); a program that fails once is left out."""
    samples = {name: [] for name in args.programs}
    failures = {}
    names = list(args.programs)
    for turn in range(args.r):
        shift = turn % len(names)
        for name in names[shift:] + names[:shift]:
            if name in failures:
                continue
            try:
                runner = run_chimere if name == CHIMERE else run_peer
                samples[name].append(runner(args.programs[name], file, args))
            except RunFailed as error:
                failures[name] = str(error)
                del samples[name]
    return samples, failures


def median_and_spread(values):
    """Spread is the distance from the slowest to the fastest run, in the unit of the values."""
    return statistics.median(values), max(values) - min(values)


def ratio_text(ours, theirs):
    """Ratio of the medians, then the range of the ratios within one alternation."""
    paired = [a / b for a, b in zip(ours, theirs)]
    return f"{statistics.median(ours) / statistics.median(theirs):.2f}x ({min(paired):.2f}..{max(paired):.2f})"


def print_table(file, samples, failures, args):
    print(f"\n{os.path.basename(file)}   {args.t} threads, {args.r} alternations, tok/s median (spread)")
    for name, runs in samples.items():
        prefill, decode = zip(*runs)
        cells = [f"{m:9.1f} ({s:.1f})" for m, s in (median_and_spread(prefill), median_and_spread(decode))]
        line = f"  {name:<14} prefill {args.p} {cells[0]:<20} decode {args.n} {cells[1]:<18}"
        if name != CHIMERE and CHIMERE in samples:
            ours = list(zip(*samples[CHIMERE]))
            line += f" chimere/{name}: prefill {ratio_text(ours[0], prefill)}, decode {ratio_text(ours[1], decode)}"
        print(line.rstrip())
    for name, reason in failures.items():
        print(f"  {name:<14} failed: {reason}")
    sys.stdout.flush()


def cpu_model():
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as info:
            for line in info:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def csv_rows(file, samples, args):
    for name, runs in samples.items():
        prefill, decode = (median_and_spread(column) for column in zip(*runs))
        yield [os.path.basename(file), name, *(f"{value:.2f}" for value in prefill + decode), args.t, cpu_model(),
               datetime.date.today().isoformat()]


def main():
    args = parse_arguments()
    rows, chimere_failed = [], False
    for file in args.files:
        samples, failures = alternate(file, args)
        print_table(file, samples, failures, args)
        rows.extend(csv_rows(file, samples, args))
        chimere_failed = chimere_failed or CHIMERE in failures
    if args.csv:
        with open(args.csv, "w", newline="", encoding="utf-8") as out:
            writer = csv.writer(out, lineterminator="\n")
            writer.writerow(COLUMNS)
            writer.writerows(rows)
    return 1 if chimere_failed or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
