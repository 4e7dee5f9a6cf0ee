#!/usr/bin/env python3
"""Trains chimere-embed from what prepare_embed.py made, on one CUDA card or, small, on a CPU. See README.md.

First the encoder learns words from running text: hidden tokens, and which text a span was cut out of. Then it learns from
pairs: of all passages of a batch, and of more that words find for some questions and that do not answer them, the right one
must be nearest (InfoNCE). Part of the loss adds BM25, as searches do, so that vectors learn what words do not find. How near a
passage is to a question is said by the nearest of its windows (embed/model.py); how long these are and how many values count
changes from step to step, and the file can be used with each.
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
from embed.batches import ROUND, Source, Texts, Words, cut_out, framed, hidden, with_titles, without_some
from embed.export import read_weights, write_file
from embed.model import Config, Encoder, MaskedHead, at_length_one
from embed.wordpiece import MARK, WordPiece

# How often a batch is of this source, once pairs are learnt.
SHARES = {
    "fairytaleqa": 12, "tale_answers": 7, "medquad": 12, "natural_instructions": 9, "wordnet": 5, "openstax": 8, "usgov": 5,
    "docs": 6, "strategyqa": 3, "cos_e": 2, "gpteacher": 3, "tldr": 1, "recipes": 1, "factbook": 2, "spans": 20,
}
# Sources of which near misses are learnt, too.
MISSED = ("fairytaleqa", "tale_answers", "medquad", "natural_instructions", "openstax", "usgov", "docs", "strategyqa")
NEAR_MISSES = 24  # of each question
RUNNING = ("books", "stories", "openstax", "usgov", "docs", "fairytaleqa", "medquad")
USES = ((32, 128), (16, 128), (32, 320))  # tokens of a hop, values of a vector
TALES = ("fairytaleqa", "tale_answers")
MISSING = 0.5  # part of the questions that bring a near miss
EVALUATIONS = 4
QUESTION_WORDS = ("what", "who", "why", "how", "where", "when", "which")
FILE = "chimere-embed.gguf"
PARTS = 4  # of a batch: rows of like length go together, so that few are padded far
WARM_UP = 0.02


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=pathlib.Path, help="folder made by prepare_embed.py")
    parser.add_argument("out", type=pathlib.Path, help="folder for chimere-embed.gguf and the log")
    parser.add_argument("--seconds", type=float, default=240, help="of training (default %(default)s)")
    parser.add_argument("--ends-at", type=float, default=math.inf, help="when training ends at the latest, in seconds since 1970")
    parser.add_argument("--steps", type=int, default=None, help="end after so many steps, whatever the time")
    parser.add_argument("--batch", type=int, default=768)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--drop", type=float, default=0.1)
    parser.add_argument("--word-share", type=float, default=0.8, help="part of the loss that BM25 is added to")
    parser.add_argument("--pairs-from", type=float, default=0.35, help="part of the time after which pairs are learnt")
    parser.add_argument("--tales", type=float, default=1, help="how often tales come, against the usual")
    parser.add_argument("--compile", action="store_true", help="compile the encoder, where that works")
    parser.add_argument("--log-every", type=int, default=50)
    parser.add_argument("--seed", type=int, default=20261118)
    parser.add_argument("--config", default="{}", help="JSON with Config fields to change (a small model for a test)")
    return parser.parse_args()


def rate_factor(progress, falls_from):
    if progress < WARM_UP:
        return max(progress, 1e-3) / WARM_UP
    return 1.0 if progress < falls_from else max(0.01, (1 - progress) / (1 - falls_from))


def nearest_loss(scores, same):
    """Each row's own column among all but those that are right as well, and each own column's row."""
    scores = scores.masked_fill(same, -1e4)
    target = torch.arange(len(scores), device=scores.device)
    return F.cross_entropy(scores, target) + 0.5 * F.cross_entropy(scores[:, :len(scores)].T, target)


class Measured:
    """Questions and documents of one set, with what words say of them."""

    def __init__(self, arrays, name):
        self.name = name
        self.chunks, self.questions = arrays[f"{name}/chunks"], arrays[f"{name}/questions"]
        self.document_of = arrays[f"{name}/document"].tolist()
        self.right = [set() for _ in range(len(self.questions))]
        for question, document in arrays[f"{name}/right"].tolist():
            self.right[question].add(document)
        starts = arrays["stem_starts"]

        def stems(numbers):
            return [arrays["stems"][starts[number]:starts[number + 1]] for number in numbers]

        self.words = rank.word_scores(stems(self.chunks), stems(self.questions))


class Trainer:
    def __init__(self, options):
        self.options = options
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        torch.manual_seed(options.seed)
        torch.set_float32_matmul_precision("high")
        self.tokenizer = WordPiece(json.loads((options.data / "vocab.json").read_text(encoding="utf8")))
        self.arrays = pack.read(options.data / "pack.npz.xz", self.tokenizer.tokens)
        self.texts = Texts(self.arrays, self.device)
        self.config = Config(**{"vocab": len(self.tokenizer.tokens), **json.loads(options.config)})
        self.model = Encoder(self.config, options.drop).to(self.device)
        self.head = MaskedHead(self.config).to(self.device)
        self.forward = self.model.forward
        self.scale = torch.nn.Parameter(torch.tensor(math.log(20.0), device=self.device))
        self.word_weight = torch.nn.Parameter(torch.tensor(-1.0, device=self.device))  # before softplus
        self.optimiser = self.make_optimiser()
        self.question_words = torch.tensor([self.tokenizer.ids[MARK + word] for word in QUESTION_WORDS], device=self.device)
        self.hop, self.dims = USES[0]
        self.shares = {name: share * (options.tales if name in TALES else 1) for name, share in SHARES.items()}
        self.sources, self.words, self.keys = {}, {}, {}  # keys: of each passage of a source
        for number, name in enumerate(SHARES):
            if name != "spans":
                self.add_source(name, options.seed + number)
        self.running = Source(self.running_text(), options.batch, options.seed)
        self.kept = [Measured(self.arrays, f"kept/{name}") for name in ("medquad", "fairytaleqa")]
        self.held_out = [Measured(self.arrays, f"held_out/{name}") for name in ("medquad", "fairytaleqa")]
        self.log = []

    def add_source(self, name, seed):
        """Rows of a source have its near misses behind what the pack has of them."""
        pairs = self.arrays[f"pairs/{name}"]
        self.words[name] = Words(self.arrays, np.unique(pairs[:, 1]), pack.N_STEMS, self.device)
        misses = self.words[name].near_misses(pairs, NEAR_MISSES) if name in MISSED else np.zeros((len(pairs), 0), np.int32)
        self.sources[name] = Source(np.concatenate([pairs, misses], 1), self.options.batch, seed)
        self.keys[name] = torch.full((len(self.texts.starts),), -1, device=self.device)
        self.keys[name][torch.from_numpy(pairs[:, 1]).long()] = torch.from_numpy(pairs[:, 3]).long().to(self.device)

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

    def autocast(self):
        return torch.autocast(self.device, dtype=torch.bfloat16, enabled=self.device == "cuda")

    def parts(self, keep):
        """Rows by length, in PARTS, each with the width that it needs."""
        lengths = keep.sum(1)
        for part in torch.argsort(lengths, stable=True).chunk(PARTS):
            yield part, -(-int(lengths[part[-1]]) // ROUND) * ROUND

    def run(self, ids, keep, pool):
        """What `pool` makes of the states of rows, in the order of the rows."""
        found, order = [], []
        for part, width in self.parts(keep):
            with self.autocast():
                states = (self.forward if self.model.training else self.model)(ids[part, :width], keep[part, :width])
            found.append(pool(states, keep[part, :width], part))
            order.append(part)
        return found, torch.argsort(torch.cat(order))

    def asked(self, ids, keep):
        found, order = self.run(ids, keep, lambda states, kept, _: self.model.pooled(states, kept))
        return torch.cat(found)[order]

    def windows(self, ids, keep):
        return in_order(*self.run(ids, keep, lambda states, kept, _: self.model.windows(states, kept, self.hop)))

    def windows_and_guesses(self, ids, keep):
        """Windows of rows some of whose tokens are hidden, and how badly these are guessed."""
        shown, chosen = hidden(ids, keep, self.config.vocab)
        losses = []

        def pool(states, kept, part):
            hides, answers = chosen[part, :kept.shape[1]], ids[part, :kept.shape[1]]
            with self.autocast():
                guesses = self.head(states[hides], self.model.token_embd.weight)
            losses.append(F.cross_entropy(guesses.float(), answers[hides], reduction="sum"))
            return self.model.windows(states, kept, self.hop)

        found = in_order(*self.run(shown, keep, pool))
        return found, sum(losses) / chosen.sum().clamp(min=1)

    def span_loss(self):
        rows = torch.from_numpy(self.running.next()).long().to(self.device)
        query, passage = cut_out(self.texts, rows[:, 1], 0.1, self.question_words, self.config.context)
        found, guessing = self.windows_and_guesses(*passage)
        return nearest_loss(self.nearness(self.asked(*query), found), self.same(rows[:, 3])) + guessing

    def nearness(self, asked, found):
        """Cosines of the nearest windows, scaled; not in halves, which have too few digits for them."""
        sums, there = found
        vectors = at_length_one(sums, self.dims)
        cosines = at_length_one(asked, self.dims) @ vectors.flatten(0, 1).T
        nearest = cosines.unflatten(1, there.shape).masked_fill(~there, -2).amax(-1)
        return self.scale.exp().clamp(max=60) * nearest

    @staticmethod
    def same(keys):
        same = keys[:, None] == keys[None]
        return same & ~torch.eye(len(keys), dtype=torch.bool, device=keys.device)

    def pair_loss(self, name):
        rows = torch.from_numpy(self.sources[name].next()).long().to(self.device)
        numbers, same = rows[:, 1], self.same(rows[:, 3]) | self.same(rows[:, 1])
        if name in MISSED:
            numbers, same = self.with_near_misses(rows, same, self.keys[name])
        ids, keep = without_some(*self.texts.gather(rows[:, 0]), 0.1)
        query = framed(ids, keep, self.config.context)
        ids, keep = without_some(*self.texts.gather(numbers), 0.05)
        passage = framed(*with_titles(self.texts, ids, keep, 0.4), self.config.context)
        scores = self.nearness(self.asked(*query), self.windows(*passage))
        loss = (1 - self.options.word_share) * nearest_loss(scores, same)
        common = self.words[name].scores(rows[:, 0], numbers)
        return loss + self.options.word_share * nearest_loss(scores + F.softplus(self.word_weight) * common, same)

    def with_near_misses(self, rows, same, keys):
        """Passages of a batch with near misses of some rows, the nearer ones more often; one that answers another row is not
        wrong there."""
        misses = rows[:, 4:]
        n_known = (misses >= 0).sum(1)
        chosen = (n_known * torch.rand(len(rows), device=self.device) ** 2).long()
        bring = (n_known > 0) & (torch.rand(len(rows), device=self.device) < MISSING)
        wrong = misses.gather(1, chosen[:, None])[:, 0][bring]
        answers = (wrong == rows[:, 1:2]) | (keys[wrong] == rows[:, 3:4])
        return torch.cat([rows[:, 1], wrong]), torch.cat([same, answers], 1)

    def step(self, progress, chance, learns=True):
        self.hop, self.dims = USES[chance.integers(len(USES))]
        if progress < self.options.pairs_from:
            name, loss = "running", self.span_loss()
        else:
            name = chance.choice(list(self.shares), p=np.array(list(self.shares.values())) / sum(self.shares.values()))
            loss = self.span_loss() if name == "spans" else self.pair_loss(name)
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        if not learns:
            self.optimiser.zero_grad(set_to_none=True)
            return name, loss.detach()
        torch.nn.utils.clip_grad_norm_([p for group in self.optimiser.param_groups for p in group["params"]], 1.0)
        for group in self.optimiser.param_groups:
            group["lr"] = self.options.rate * rate_factor(progress, self.options.pairs_from)
        self.optimiser.step()
        return name, loss.detach()

    def train(self):
        chance = np.random.default_rng(self.options.seed)
        start, step, sums, evaluated = time.time(), 0, {}, 0
        seconds = min(self.options.seconds, self.options.ends_at - start)
        self.model.train()
        while True:
            progress = step / self.options.steps if self.options.steps else (time.time() - start) / seconds
            if progress >= 1:
                break
            name, loss = self.step(progress, chance)
            step += 1
            total = sums.setdefault(name, [0.0, 0])
            total[0], total[1] = total[0] + loss, total[1] + 1
            if step % self.options.log_every == 0:
                means = {key: round(float(value) / count, 3) for key, (value, count) in sums.items()}
                self.say({"step": step, "seconds": round(time.time() - start, 1), "progress": round(progress, 3),
                          "scale": round(float(self.scale.exp()), 1), "word_weight": round(float(F.softplus(self.word_weight)), 3), "loss": means})
                sums = {}
            if int(progress * EVALUATIONS) > evaluated:
                evaluated = int(progress * EVALUATIONS)
                self.evaluate(f"at {progress:.2f}", self.kept, USES[0], (0, 5, 10, 15, 20, 30, 40))
                write_file(self.options.out / FILE, self.model, self.tokenizer)
        return step

    def say(self, row):
        self.log.append(row)
        print(json.dumps(row), flush=True)

    @torch.no_grad()
    def cosines(self, questions, chunks):
        """[questions, chunks]: of the nearest windows."""
        asked = torch.cat([at_length_one(self.asked(*self.whole(part)), self.dims) for part in self.split(questions)]).cpu().numpy()
        vectors, counts = [], []
        for part in self.split(chunks):
            sums, there = self.windows(*self.whole(part))
            vectors.append(at_length_one(sums, self.dims)[there].cpu().numpy())
            counts.append(there.sum(1).cpu().numpy())
        counts = np.concatenate(counts)
        return np.maximum.reduceat(asked @ np.concatenate(vectors).T, np.cumsum(counts) - counts, axis=1)

    def split(self, numbers):
        return torch.from_numpy(numbers).long().to(self.device).split(512)

    def whole(self, numbers):
        return framed(*self.texts.gather(numbers), self.config.context)

    def evaluate(self, when, sets, use, weights=rank.WEIGHTS):
        """Prints how well questions find their documents; gives how well each weight does, for each set."""
        self.model.eval()
        self.hop, self.dims = use
        curves = []
        for one in sets:
            cosines = self.cosines(one.questions, one.chunks)
            curves.append(rank.curve(one.words, cosines, one.document_of, one.right, weights))
            alone = rank.of_vectors(cosines, one.document_of, one.right)
            self.say({"set": one.name, "when": when, "hop": self.hop, "dims": self.dims, "questions": len(one.questions),
                      "documents": one.document_of[-1] + 1,
                      **{key: np.round(values, 3).tolist() for key, values in rank.nearness(cosines, one.document_of, one.right).items()},
                      **{key: round(value, 4) for key, value in alone.items()},
                      "hybrid": {weight: round(value, 4) for weight, value in curves[-1].items()}})
        self.model.train()
        return curves

    def compile(self):
        """Fuses what lies between the products of the encoder; without it all is as well, but slower."""
        eager = self.forward
        try:
            self.forward = torch.compile(self.model.forward, dynamic=True)
            chance = np.random.default_rng(0)
            for progress in (0.0, 0.0, 1.0, 1.0):
                self.step(progress, chance, learns=False)
        except Exception as error:  # whatever it is, the run goes on
            self.forward = eager
            self.say({"not compiled": str(error)[:300]})


def in_order(found, order):
    """(sums, which are there) of parts with different numbers of windows."""
    n = max(there.shape[1] for _, there in found)
    sums = torch.cat([F.pad(sums, (0, 0, 0, n - sums.shape[1])) for sums, _ in found])
    there = torch.cat([F.pad(there, (0, n - there.shape[1])) for _, there in found])
    return sums[order], there[order]


def main():
    options = arguments()
    options.out.mkdir(parents=True, exist_ok=True)
    begun = time.time()
    trainer = Trainer(options)
    parameters = sum(p.numel() for p in trainer.model.parameters())
    trainer.say({"parameters": parameters, "tokens": len(trainer.arrays["tokens"]), "loaded_seconds": round(time.time() - begun, 1),
                 "torch": torch.__version__, "device": trainer.device})
    if options.compile:
        trainer.compile()
        trainer.say({"ready_seconds": round(time.time() - begun, 1)})
    steps = trainer.train()
    path = options.out / FILE
    write_file(path, trainer.model, trainer.tokenizer)
    read_weights(path, trainer.model)
    for use in USES:
        weight = rank.common_weight(trainer.evaluate("of the file", trainer.kept, use))
        held_out = trainer.evaluate("of the file", trainer.held_out, use)
        trainer.say({"use": use, "weight": weight, "gain_percent": [round(100 * (curve[weight] / curve[0] - 1), 1) for curve in held_out]})
    trainer.say({"steps": steps, "bytes": path.stat().st_size, "seconds": round(time.time() - begun, 1)})
    (options.out / "embed_log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in trainer.log))


if __name__ == "__main__":
    main()
