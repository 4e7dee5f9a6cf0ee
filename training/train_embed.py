#!/usr/bin/env python3
"""Trains chimere-embed from what prepare_embed.py made, on one CUDA card or, small, on a CPU. See README.md.

First the encoder learns words from running text: hidden tokens, and which text a span was cut out of. Then it learns from
pairs: of all passages of a batch the right one must be nearest to the question (InfoNCE), and part of the loss adds what
common words say already, so that vectors learn what words do not find. The loss has each direction.
"""

import argparse
import json
import math
import pathlib
import time

import numpy as np
import torch
import torch.nn.functional as F

from embed import pack, rank
from embed.batches import Source, Texts, cut_out, framed, hidden, with_titles, without_some
from embed.export import read_weights, write_file
from embed.model import Config, Encoder, MaskedHead
from embed.wordpiece import MARK, SPECIALS, WordPiece

# How often a batch is of this source, once pairs are learnt.
SHARES = {
    "fairytaleqa": 15, "medquad": 15, "natural_instructions": 8, "wordnet": 5, "openstax": 10, "usgov": 7, "docs": 8, "stories": 2,
    "strategyqa": 3, "cos_e": 2, "gpteacher": 3, "tldr": 2, "recipes": 1, "factbook": 2, "spans": 22,
}
RUNNING = ("books", "stories", "openstax", "usgov", "docs", "fairytaleqa", "medquad")
QUESTION_WORDS = ("what", "who", "why", "how", "where", "when", "which")
PAIRS_FROM = 0.4  # part of the time after which pairs are learnt
WARM_UP = 0.02


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=pathlib.Path, help="folder made by prepare_embed.py")
    parser.add_argument("out", type=pathlib.Path, help="folder for chimere-embed.gguf and the log")
    parser.add_argument("--seconds", type=float, default=240, help="of training (default %(default)s)")
    parser.add_argument("--steps", type=int, default=None, help="end after so many steps, whatever the time")
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--drop", type=float, default=0.1)
    parser.add_argument("--word-share", type=float, default=0.3, help="part of the loss that common words help with")
    parser.add_argument("--log-every", type=int, default=50)
    parser.add_argument("--seed", type=int, default=20261118)
    parser.add_argument("--config", default="{}", help="JSON with Config fields to change (a small model for a test)")
    return parser.parse_args()


def rate_factor(progress):
    if progress < WARM_UP:
        return max(progress, 1e-3) / WARM_UP
    return 1.0 if progress < PAIRS_FROM else max(0.01, (1 - progress) / (1 - PAIRS_FROM))


def word_scores(query, passage, weights):
    """How much each pair of rows has in common, as BM25 weighs it, up to a factor."""
    vocab = len(weights)
    asked = torch.zeros(len(query), vocab, device=query.device).scatter_(1, query, 1.0)
    counts = torch.zeros(len(passage), vocab, device=query.device)
    counts.scatter_add_(1, passage, torch.ones_like(passage, dtype=torch.float))
    counts[:, :len(SPECIALS)] = 0
    return (asked * weights) @ (counts / (counts + 1.2)).T


def nearest_loss(scores, same):
    """Each row's own column among all but those that are right as well, and each column's own row."""
    scores = scores.masked_fill(same, -1e4)
    target = torch.arange(len(scores), device=scores.device)
    return F.cross_entropy(scores, target) + 0.5 * F.cross_entropy(scores.T, target)


class Trainer:
    def __init__(self, options):
        self.options = options
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        torch.manual_seed(options.seed)
        torch.set_float32_matmul_precision("high")
        self.tokenizer = WordPiece(json.loads((options.data / "vocab.json").read_text(encoding="utf8")))
        self.arrays = pack.read(options.data / "pack.npz.xz")
        self.texts = Texts(self.arrays, self.device)
        self.config = Config(**{"vocab": len(self.tokenizer.tokens), **json.loads(options.config)})
        self.model = Encoder(self.config, options.drop).to(self.device)
        self.head = MaskedHead(self.config).to(self.device)
        self.scale = torch.nn.Parameter(torch.tensor(math.log(20.0), device=self.device))
        self.word_weight = torch.nn.Parameter(torch.tensor(0.3, device=self.device))
        self.optimiser = self.make_optimiser()
        self.question_words = torch.tensor([self.tokenizer.ids[MARK + word] for word in QUESTION_WORDS], device=self.device)
        self.rarity = self.token_rarity()
        self.sources = {}
        for number, name in enumerate(SHARES):
            if name != "spans":
                self.sources[name] = Source(self.arrays[f"pairs/{name}"], options.batch, options.seed + number)
        self.running = Source(self.running_text(), options.batch, options.seed)
        self.log = []

    def make_optimiser(self):
        modules = (self.model, self.head)
        matrices = [p for module in modules for p in module.parameters() if p.ndim > 1]
        others = [p for module in modules for p in module.parameters() if p.ndim < 2]
        groups = [{"params": matrices, "weight_decay": 0.05}, {"params": [*others, self.scale, self.word_weight], "weight_decay": 0.0}]
        return torch.optim.AdamW(groups, lr=self.options.rate, betas=(0.9, 0.98), eps=1e-8)

    def running_text(self):
        """Passages that spans are cut out of, each once; the group is that of its source."""
        found, offset = [], 0
        for name in RUNNING:
            pairs = self.arrays[f"pairs/{name}"]
            _, first = np.unique(pairs[:, 1], return_index=True)
            rows = pairs[first].copy()
            rows[:, 2] += offset
            rows[:, 3] = rows[:, 1]
            offset = int(rows[:, 2].max()) + 1
            found.append(rows)
        found = np.concatenate(found)
        lengths = np.diff(self.arrays["starts"].astype(np.int64))[found[:, 1]]
        return found[lengths >= 24]

    def token_rarity(self):
        """ln of the share of passages without a token against those with it."""
        numbers = np.unique(np.concatenate([v[:, 1] for k, v in self.arrays.items() if k.startswith("pairs/")]))
        tokens, starts = self.arrays["tokens"], self.arrays["starts"].astype(np.int64)
        tokens, texts = tokens.astype(np.int64), np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        wanted = np.isin(texts, numbers, assume_unique=False)
        each = np.unique(texts[wanted] * self.config.vocab + tokens[wanted])
        seen = np.bincount(each % self.config.vocab, minlength=self.config.vocab)
        weights = torch.from_numpy(np.log(1 + (len(numbers) - seen + 0.5) / (seen + 0.5))).float()
        weights[:len(SPECIALS)] = 0
        return weights.to(self.device)

    def autocast(self):
        return torch.autocast(self.device, dtype=torch.bfloat16, enabled=self.device == "cuda")

    def span_loss(self, also_hidden):
        rows = torch.from_numpy(self.running.next()).long().to(self.device)
        query, (passage, kept) = cut_out(self.texts, rows[:, 1], 0.1, self.question_words, self.config.context)
        chosen = None
        shown = passage
        if also_hidden:
            shown, chosen = hidden(passage, kept, self.config.vocab)
        with self.autocast():
            asked = self.model.embed(*query)
            states = self.model(shown, kept)
            found = self.model.pooled(states, kept)
            guesses = self.head(states[chosen], self.model.token_embd.weight) if also_hidden else None
        loss = nearest_loss(self.nearness(asked, found), self.same(rows[:, 3]))
        return loss + F.cross_entropy(guesses.float(), passage[chosen]) if also_hidden else loss

    def nearness(self, asked, found):
        """Cosines, scaled; not in halves, which have too few digits for them."""
        return self.scale.exp().clamp(max=60) * (asked.float() @ found.float().T)

    @staticmethod
    def same(keys):
        same = keys[:, None] == keys[None]
        return same & ~torch.eye(len(keys), dtype=torch.bool, device=keys.device)

    def pair_loss(self, name):
        rows = torch.from_numpy(self.sources[name].next()).long().to(self.device)
        ids, keep = without_some(*self.texts.gather(rows[:, 0]), 0.05)
        query = framed(ids, keep, self.config.context)
        passage = framed(*with_titles(self.texts, *self.texts.gather(rows[:, 1]), 0.4), self.config.context)
        with self.autocast():
            asked, found = self.model.embed(*query), self.model.embed(*passage)
        scores = self.nearness(asked, found)
        same = self.same(rows[:, 3]) | self.same(rows[:, 1])
        loss = (1 - self.options.word_share) * nearest_loss(scores, same)
        if self.options.word_share > 0:
            common = word_scores(query[0], passage[0], self.rarity)
            loss = loss + self.options.word_share * nearest_loss(scores + F.softplus(self.word_weight) * common, same)
        return loss

    def step(self, progress, chance):
        if progress < PAIRS_FROM:
            name, loss = "running", self.span_loss(also_hidden=True)
        else:
            name = chance.choice(list(SHARES), p=np.array(list(SHARES.values())) / sum(SHARES.values()))
            loss = self.span_loss(also_hidden=False) if name == "spans" else self.pair_loss(name)
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_([p for group in self.optimiser.param_groups for p in group["params"]], 1.0)
        for group in self.optimiser.param_groups:
            group["lr"] = self.options.rate * rate_factor(progress)
        self.optimiser.step()
        return name, loss.detach()

    def train(self):
        chance = np.random.default_rng(self.options.seed)
        start, step, sums, evaluated = time.time(), 0, {}, 0  # the start moves on by what evaluations take
        self.model.train()
        while True:
            progress = step / self.options.steps if self.options.steps else (time.time() - start) / self.options.seconds
            if progress >= 1:
                break
            name, loss = self.step(progress, chance)
            step += 1
            total = sums.setdefault(name, [0.0, 0])
            total[0], total[1] = total[0] + loss, total[1] + 1
            if step % self.options.log_every == 0:
                means = {key: round(float(value) / count, 3) for key, (value, count) in sums.items()}
                self.say({"step": step, "seconds": round(time.time() - start, 1), "progress": round(progress, 3),
                          "scale": round(float(self.scale.exp()), 1), "loss": means})
                sums = {}
            if int(progress * 5) > evaluated:
                evaluated = int(progress * 5)
                before = time.time()
                self.evaluate(f"at {progress:.2f}", 400, (0.5, 1, 2))
                start += time.time() - before
        return step

    def say(self, row):
        self.log.append(row)
        print(json.dumps(row), flush=True)

    @torch.no_grad()
    def vectors(self, numbers):
        out = []
        for part in torch.from_numpy(numbers).long().to(self.device).split(512):
            with self.autocast():
                out.append(self.model.embed(*framed(*self.texts.gather(part), self.config.context)))
        return torch.cat(out)

    def evaluate(self, when, most=None, weights=rank.WEIGHTS):
        """Prints how well held-out questions find their documents; most: only so many of them. Gives how good each weight
        is, for each set, on the questions that weights are fitted on."""
        self.model.eval()
        curves = []
        for name in ("medquad", "fairytaleqa"):
            held = {part: self.arrays[f"held_out/{name}/{part}"] for part in
                    ("chunks", "document", "questions", "right", "fitted", "words")}
            chunks, questions = self.vectors(held["chunks"]), self.vectors(held["questions"][:most])
            near = (questions @ chunks.T).topk(min(rank.CANDIDATES, len(chunks)), 1).indices.tolist()
            right = [set() for _ in range(len(questions))]
            for question, document in held["right"].tolist():
                if question < len(right):
                    right[question].add(document)
            words = [[text for text in row if text >= 0] for row in held["words"][:, :rank.CANDIDATES].tolist()]
            found = rank.report(words, near, held["document"].tolist(), right, held["fitted"].tolist(), weights)
            curves.append(found.pop("fitted"))
            found = {key: round(value, 4) for key, value in found.items()}
            gain = round(100 * (found["hybrid"] / found["words"] - 1), 1)
            self.say({"held_out": name, "when": when, "documents": int(held["document"].max()) + 1, **found, "gain_percent": gain})
        self.model.train()
        return curves


def main():
    options = arguments()
    options.out.mkdir(parents=True, exist_ok=True)
    begun = time.time()
    trainer = Trainer(options)
    parameters = sum(p.numel() for p in trainer.model.parameters())
    trainer.say({"parameters": parameters, "tokens": len(trainer.arrays["tokens"]), "loaded_seconds": round(time.time() - begun, 1),
                 "torch": torch.__version__, "device": trainer.device})
    steps = trainer.train()
    path = options.out / "chimere-embed.gguf"
    write_file(path, trainer.model, trainer.tokenizer)
    read_weights(path, trainer.model)
    weight = rank.common_weight(trainer.evaluate("of the file"))
    trainer.say({"common_weight": weight, "steps": steps, "bytes": path.stat().st_size, "seconds": round(time.time() - begun, 1)})
    (options.out / "embed_log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in trainer.log))


if __name__ == "__main__":
    main()
