#!/usr/bin/env python3
"""Trains chimere-nano on one CUDA card from the folder that prepare.py made. See README.md beside this file."""

import argparse
import contextlib
import json
import math
import pathlib
import time

import numpy as np
import torch
import torch.nn.functional as F

from nano import batches, gdn
from nano.checkpoint import load_weights, save_weights
from nano.model import Config, Masks, Nano, parameters_by_kind
from nano.muon import Optimiser

# Shares of the tokens read, by category; the second list rules once the learning rate falls.
BROAD = {
    "prose": 32,
    "stories": 4,
    "facts": 4,
    "code": 7,
    "chat": 12,
    "facts_qa": 7,
    "arithmetic": 10,
    "reasoning": 4,
    "tools": 12,
    "code_qa": 3,
    "stories_qa": 2,
    "mixed": 4,
    "instructions": 3,
}
FINAL = {
    "prose": 17,
    "stories": 3,
    "facts": 2,
    "code": 4,
    "chat": 17,
    "facts_qa": 9,
    "arithmetic": 12,
    "reasoning": 5,
    "tools": 21,
    "code_qa": 4,
    "stories_qa": 3,
    "mixed": 9,
    "instructions": 4,
}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", help="folder made by prepare.py; several with : between them")
    parser.add_argument("out", help="folder for checkpoint, weights and log")
    parser.add_argument("--steps", type=int, default=6000, help="length of the whole schedule (default %(default)s)")
    parser.add_argument(
        "--minutes", type=float, default=None, help="end the schedule after this time if the steps take longer"
    )
    parser.add_argument(
        "--ends-at", type=float, default=None, help="instead of --minutes: the time, in seconds since 1970, by which all is done, the MTP block and the saving included"
    )
    parser.add_argument(
        "--wait", type=float, default=0, help="compile first, then wait up to this many seconds for folders that prepare.py is still writing; those that are not there by then are left out"
    )
    parser.add_argument(
        "--stop-after", type=float, default=None, help="save and stop after this many minutes; --resume goes on"
    )
    parser.add_argument("--save-every", type=float, default=3, help="minutes between checkpoints (default %(default)s)")
    parser.add_argument("--resume", action="store_true", help="go on from the checkpoint in OUT")
    parser.add_argument(
        "--start-from", default=None, help="weights of an earlier run, or a GGUF file, to start from with a fresh schedule"
    )
    parser.add_argument(
        "--shares", default=None, help="JSON file {broad: {...}, final: {...}} instead of the built-in shares"
    )
    parser.add_argument("--draft-weight", type=float, default=0.3, help="weight of the MTP block's loss (default %(default)s)")
    parser.add_argument("--draft-minutes", type=float, default=0, help="at the end train the MTP block alone for this long, the trunk frozen")
    parser.add_argument("--draft-rate", type=float, default=1.5e-3, help="peak rate of that (default %(default)s)")
    parser.add_argument("--evaluate-every", type=int, default=400, help="steps between measurements of the held-out sets (default %(default)s)")
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--length", type=int, default=2048)
    parser.add_argument("--long", type=int, default=16384, help="row length of the occasional long batch, 0 for none")
    parser.add_argument("--long-every", type=int, default=12)
    parser.add_argument("--rate", type=float, default=4e-3)
    parser.add_argument("--decay-from", type=float, default=0.5, help="part of the schedule after which the rate falls")
    parser.add_argument("--seed", type=int, default=20261115)
    parser.add_argument("--config", default="{}", help="JSON with Config fields to change (a small model for a test)")
    parser.add_argument("--no-compile", action="store_true")
    return parser.parse_args()


# Seconds of --ends-at that evaluating and saving take.
TO_SAVE = 14


def rate_factor(progress, decay_from):
    """Warm up over 2 %, hold, then fall linearly to 2 % of the peak."""
    if progress < 0.02:
        return max(progress, 1e-4) / 0.02
    if progress < decay_from:
        return 1.0
    return 1.0 - 0.98 * (progress - decay_from) / (1 - decay_from)


def losses(z, n, head, labels):
    """Cross entropy of the trunk and of the MTP block.

    The MTP block learns half from the text and half from the trunk's own distribution: what it must guess when it
    drafts is the trunk's choice, not the author's.
    """
    flat = labels.flatten()
    keep = flat >= 0
    count = keep.sum().clamp(min=1)
    target = flat.clamp(min=0)[:, None]
    trunk = F.log_softmax(F.linear(z, head).flatten(0, 1).float(), -1)
    draft = F.log_softmax(F.linear(n, head).flatten(0, 1).float(), -1)
    data = -(trunk.gather(1, target)[:, 0] * keep).sum() / count
    draft_data = -(draft.gather(1, target)[:, 0] * keep).sum() / count
    teacher = -((trunk.detach().exp() * draft).sum(-1) * keep).sum() / count
    agree = ((trunk.argmax(-1) == draft.argmax(-1)) & keep).sum() / count
    return data, 0.5 * (draft_data + teacher), agree


def teach_draft(z, n, head, labels):
    """Cross entropy of the MTP block against the trunk's own distribution, where there is something to say, and how often both choose the same.

    Not compiled: the number of such tokens differs from batch to batch.
    """
    keep = (labels.flatten() >= 0).nonzero()[:, 0]
    with torch.no_grad():
        trunk = F.linear(z.flatten(0, 1)[keep], head).float().softmax(-1)
    draft = F.log_softmax(F.linear(n.flatten(0, 1)[keep], head).float(), -1)
    agree = (trunk.argmax(-1) == draft.argmax(-1)).float().mean()
    return -(trunk * draft).sum(-1).mean(), agree


def eager():
    """A few odd-shaped evaluation batches are not worth compiling for."""
    return torch.compiler.set_stance("force_eager") if hasattr(torch, "compiler") else contextlib.nullcontext()


class Trainer:
    def __init__(self, options):
        self.options = options
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.compute = torch.bfloat16 if self.device == "cuda" else torch.float32
        torch.manual_seed(options.seed)
        torch.set_float32_matmul_precision("high")
        self.model = Nano(Config(**json.loads(options.config))).to(self.device)
        self.optimiser = Optimiser(self.model, options.rate, adam_rate=0.75 * options.rate)
        self.out = pathlib.Path(options.out)
        self.out.mkdir(parents=True, exist_ok=True)
        self.step, self.spent, self.read = 0, 0.0, 0
        self.losses = losses
        shares = json.loads(pathlib.Path(options.shares).read_text()) if options.shares else {}
        self.broad, self.final = shares.get("broad", BROAD), shares.get("final", FINAL)
        if self.device == "cuda" and not options.no_compile:
            self.compile()

    def compile(self):
        # The state scan is a loop over chunks: unrolled it would compile for minutes and gain nothing.
        gdn.scan = torch.compiler.disable(gdn.scan)
        torch._dynamo.config.cache_size_limit = 64
        for block in [*self.model.blocks, self.model.draft.block]:
            block.forward = torch.compile(block.forward, dynamic=False)
        self.losses = torch.compile(losses, dynamic=False)

    def forward(self, ids, labels, documents):
        ids, labels = (torch.from_numpy(x).to(self.device, non_blocking=True) for x in (ids, labels))
        documents = torch.from_numpy(documents).to(self.device, non_blocking=True)
        masks = Masks(self.model.config, documents, ids.shape[1], self.device, self.compute)
        z, n, balance = self.model(ids, masks)
        head = self.model.token_embd.to(self.compute)
        data, draft, agree = self.losses(z.to(self.compute), n.to(self.compute), head, labels)
        return data, draft, agree, balance

    @torch.no_grad()
    def evaluate(self, held_out, rows=16):
        """Loss of trunk and agreement of the MTP block by domain; one fixed batch each."""
        result = {}
        for name, (tokens, documents) in held_out.items():
            with eager():
                data, _, agree, _ = self.forward(
                    *batches.split_flags(tokens[:rows], documents[:rows]), documents[:rows]
                )
            result[name] = (round(data.item(), 4), round(agree.item(), 4))
        return result

    def save(self, seconds):
        """Checkpoint and weights after `seconds` of this run."""
        state = {
            "model": self.model.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "step": self.step,
            "spent": self.spent + seconds,
            "read": self.read,
        }
        torch.save(state, self.out / "checkpoint.tmp")
        (self.out / "checkpoint.tmp").rename(self.out / "checkpoint.pt")
        save_weights(self.model, self.out / "weights")

    def resume(self):
        state = torch.load(self.out / "checkpoint.pt", map_location=self.device)
        self.model.load_state_dict(state["model"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.step, self.spent, self.read = state["step"], state["spent"], state["read"]

    def progress(self, elapsed):
        by_steps = self.step / self.options.steps
        return max(by_steps, elapsed / (self.options.minutes * 60)) if self.options.minutes else by_steps

    def warm_up(self):
        """A step on made-up tokens that changes nothing: the kernels are compiled while the data is still being written."""
        shape = (self.options.rows, self.options.length)
        ids = np.random.default_rng(1).integers(0, self.model.config.vocab, shape)
        documents = np.broadcast_to(np.arange(shape[1], dtype=np.int32) // 100, shape).copy()
        data, draft, _, balance = self.forward(ids, ids, documents)
        (data + self.options.draft_weight * draft + 0.01 * balance).backward()
        self.optimiser.zero_grad()
        print(json.dumps({"warm": round(data.item(), 4)}), flush=True)

    def run(self):
        options = self.options
        if options.resume:
            self.resume()
        elif options.start_from:
            load_weights(self.model, pathlib.Path(options.start_from))

        def source():
            # A resumed run must not read the same rows again: the step is part of the seed.
            return batches.Batches(batches.ready(options.data, options.wait), self.broad, options.length, options.rows, options.seed + self.step)

        first = self.step
        feed = batches.Feed(source, options.long, options.long_every, self.step)
        if options.wait:
            self.warm_up()
        held_out = load_held_out(pathlib.Path(batches.ready(options.data, options.wait).split(":")[0]), options.length)
        falling = False
        log = open(self.out / "log.jsonl", "a")
        print(
            json.dumps({"parameters": parameters_by_kind(self.model), "config": self.model.config.as_dict()}),
            flush=True,
        )
        begun = start = saved = marked = time.time()
        since = self.read
        while True:
            progress = self.progress(self.spent + time.time() - start)
            if progress >= 1 or (options.stop_after and time.time() - begun > options.stop_after * 60):
                break
            if time.time() - saved > options.save_every * 60:
                self.save(time.time() - start)
                saved = time.time()
            if progress >= options.decay_from and not falling:
                falling = True
                feed.change(self.final, True)
            ids, labels, documents = feed.next()
            data, draft, agree, balance = self.forward(ids, labels, documents)
            (data + options.draft_weight * draft + 0.01 * balance).backward()
            norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimiser.step(rate_factor(progress, options.decay_from))
            self.optimiser.zero_grad()
            if self.step == first:
                start = time.time()  # compiling is not training: the schedule begins when the first step is done
                if options.ends_at:
                    options.minutes = (self.spent + options.ends_at - start - TO_SAVE) / 60 - options.draft_minutes
            self.step += 1
            self.read += ids.size
            if self.step % 20 == 0 or self.step <= 3:
                values = [x.item() for x in (data, draft, agree, norm)]
                if not all(math.isfinite(x) for x in values):
                    raise SystemExit(f"step {self.step}: the loss is not finite: {values}")
                now = time.time()
                line = {
                    "step": self.step,
                    "progress": round(progress, 4),
                    "loss": round(values[0], 4),
                    "draft": round(values[1], 4),
                    "agree": round(values[2], 4),
                    "norm": round(values[3], 3),
                    "tokens": self.read,
                    "tokens_per_s": round((self.read - since) / (now - marked)),
                }
                since, marked = self.read, now
                if self.step % options.evaluate_every == 0:
                    line["held_out"] = self.evaluate(held_out)
                    line["epochs"] = feed.epochs
                    marked = time.time()
                print(json.dumps(line), flush=True)
                log.write(json.dumps(line) + "\n")
                log.flush()
        seconds = time.time() - start
        final = {
            "step": self.step,
            "tokens": self.read,
            "seconds": round(self.spent + seconds),
            "held_out": self.evaluate(held_out, 32),
        }
        print(json.dumps(final), flush=True)
        log.write(json.dumps(final) + "\n")
        self.save(seconds)
        if options.draft_minutes and not options.stop_after:
            self.train_draft(feed, log, held_out)

    def train_draft(self, feed, log, held_out):
        """The MTP block alone: nothing but its guesses can change. Compiled blocks stay as they are, since the trunk still runs with gradients noted."""
        options, seconds = self.options, self.options.draft_minutes * 60
        self.model.draft_alone = True
        optimiser = Optimiser(self.model.draft, options.draft_rate, adam_rate=0.75 * options.draft_rate)
        head = self.model.token_embd.detach().to(self.compute)
        start, step = time.time(), 0
        while time.time() - start < seconds:
            ids, labels, documents = feed.next()
            tokens, target = (torch.from_numpy(x).to(self.device, non_blocking=True) for x in (ids, labels))
            masks = Masks(self.model.config, torch.from_numpy(documents).to(self.device, non_blocking=True), ids.shape[1], self.device, self.compute)
            z, n, balance = self.model(tokens, masks)
            loss, agree = teach_draft(z.to(self.compute), n.to(self.compute), head, target)
            (loss + 0.01 * balance).backward()
            torch.nn.utils.clip_grad_norm_(self.model.draft.parameters(), 1.0)
            optimiser.step(rate_factor(min(1.0, (time.time() - start) / seconds), 0.1))
            optimiser.zero_grad()
            step += 1
            if step % 20 == 0 or step <= 3:
                line = {"draft_step": step, "seconds": round(time.time() - start, 1), "loss": round(loss.item(), 4), "agree": round(agree.item(), 4)}
                if not math.isfinite(line["loss"]):
                    raise SystemExit(f"draft step {step}: the loss is not finite")
                print(json.dumps(line), flush=True)
                log.write(json.dumps(line) + "\n")
        self.model.draft_alone = False
        final = {"draft_steps": step, "held_out": self.evaluate(held_out, 32)}
        print(json.dumps(final), flush=True)
        log.write(json.dumps(final) + "\n")
        save_weights(self.model, self.out / "weights-draft")


def load_held_out(folder, length):
    """The held-out stream of each domain as rows of one length; documents end at <|endoftext|> in the index file."""
    result = {}
    for path in sorted((folder / "held_out").glob("*.npz")):
        pack = np.load(path)
        rows = min(64, len(pack["tokens"]) // length)
        if rows:
            tokens = pack["tokens"][: rows * length].reshape(rows, length)
            result[path.stem] = (tokens, pack["documents"][: rows * length].reshape(rows, length).astype(np.int32))
    return result


if __name__ == "__main__":
    Trainer(arguments()).run()
