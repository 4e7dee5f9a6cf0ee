#!/usr/bin/env python3
"""Trains chimere-matcher, which reads the best of what a search has found again with the question, on a CPU. See README.md.

It learns from the questions that chimere-embed learnt from: among the 32 texts that words find best in as many documents as are
searched when it is measured, those that answer a question must come first. Vectors of words begin as what the encoder's table
has of their pieces. What a cosine of the encoder counts beside that is chosen on the kept questions; the held-out ones are
looked at with --held-out alone.
"""

import argparse
import json
import pathlib
import time
from collections import Counter

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from embed import matching, pack, pairs, rank
from embed.export import read_weights
from embed.matching import BLOCK, BLOCKS, Matcher, Question
from embed.model import Config, Encoder, at_length_one
from embed.passages import chunks, share
from embed.wordpiece import CLS, SEP, WordPiece
from nano import gguf

CANDIDATES = 32  # that are read again (src/retrieval/collection_search.cpp)
SCORE_WEIGHT, HOP, DIMENSIONS = 8, 32, 128  # as searches use chimere-embed
TALES_AT_ONCE, TOPICS_AT_ONCE = 48, 1 / 6  # tales, part of the topics: what is searched together while training
VOCABULARY = 16000
VOCABULARY_FROM = ("medquad", "fairytaleqa", "tale_answers", "natural_instructions", "openstax", "usgov", "stories", "wordnet", "factbook", "gpteacher")
COSINE_WEIGHTS = (0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12)
BATCH, HIDDEN, DROP = 16, 32, 0.1
N_READ = 16  # texts of a question in a step
FILE = "chimere-matcher.gguf"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=pathlib.Path, help="the data folder")
    parser.add_argument("embedder", type=pathlib.Path, help="chimere-embed.gguf")
    parser.add_argument("out", type=pathlib.Path, help="folder for chimere-matcher.gguf")
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.add_argument("--vector-rate", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=20261119)
    parser.add_argument("--held-out", action="store_true", help="measure the file on the held-out questions, train nothing")
    return parser.parse_args()


class Pool:
    """Documents that are searched together, and questions about them: (text, numbers of the right documents)."""

    def __init__(self, documents, questions):
        pieces = [(number, piece) for number, text in enumerate(documents) for piece in chunks(text)]
        self.document_of = [number for number, _ in pieces]
        self.texts = [piece for _, piece in pieces]
        self.words = [rank.plain_words(piece) for piece in self.texts]
        self.questions = [text for text, _ in questions]
        self.asked = [rank.plain_words(text) for text in self.questions]
        self.right = [right for _, right in questions]

    def all_words(self):
        return {word for words in (*self.words, *self.asked) for word in words}

    def compare(self, stem_of):
        """Finds by words, and makes what the matcher is told."""
        self.stems = [[stem_of[word] for word in words if word in stem_of] for words in self.words]
        n_with = Counter(stem for stems in self.stems for stem in set(stems))
        self.asks = [Question.of(words, stem_of, n_with, len(self.stems)) for words in self.asked]
        number = {}

        def numbers(stems):
            return np.array([number.setdefault(stem, len(number)) for stem in stems], np.int32)

        terms = [[stem_of[word] for word in rank.telling(words) if word in stem_of] for words in self.asked]
        self.points = rank.word_scores([numbers(stems) for stems in self.stems], [numbers(stems) for stems in terms])

    def answers(self, question, texts):
        return np.array([self.document_of[text] in self.right[question] for text in texts])


def training_pools(data):
    tales = [tale for tale in pairs.tale_rows(data) if not pairs.is_held_out_tale(tale) and not pairs.is_kept_tale(tale)]
    tales.sort(key=lambda tale: share("matcher " + tale["id"]))
    told = [{**tale, "qa": [*tale["qa"], *({**qa, "q": qa["a"]} for qa in tale["qa"] if len(qa["a"].split()) >= 4)]} for tale in tales]
    for first in range(0, len(told), TALES_AT_ONCE):
        part = told[first:first + TALES_AT_ONCE]
        yield Pool(*pack.tale_questions(part, part))
    parts = {}
    for row in pairs.medquad_rows(data):
        if not pairs.is_held_out_topic(row) and not pairs.is_kept_topic(row):
            parts.setdefault(int(share("matcher " + pairs.topic(row["q"])) / TOPICS_AT_ONCE), []).append(row)
    for _, part in sorted(parts.items()):
        yield Pool(*pack.medquad_questions(part, part))


def measured_pools(data, held_out):
    if held_out:
        medquad, tales = pairs.held_out_medquad(data), pairs.held_out_tales(data)
        return {"medquad": Pool(*pack.medquad_questions(medquad, medquad)), "fairytaleqa": Pool(*pack.tale_questions(tales, tales))}
    return {"medquad": Pool(*pack.medquad_questions(*pairs.kept_medquad(data))),
            "fairytaleqa": Pool(*pack.tale_questions(*pairs.kept_tales(data)))}


def stem_all(pools):
    return rank.stems(sorted(set().union(*(pool.all_words() for pool in pools))))


# --- the encoder -------------------------------------------------------------------------------------------------------


class Embedder:
    def __init__(self, path):
        fields, _ = gguf.read(path)
        self.tokenizer = WordPiece(list(fields["tokenizer.ggml.tokens"]))
        self.model = Encoder(Config(vocab=len(self.tokenizer.tokens))).eval()
        read_weights(path, self.model)

    @torch.no_grad()
    def states(self, texts, longest):
        """(number of the text, its states, which of them are text), texts of like length together."""
        ids = [[CLS, *self.tokenizer.encode(text)[:longest], SEP] for text in texts]
        order = sorted(range(len(ids)), key=lambda i: len(ids[i]))
        for first in range(0, len(order), 16):
            part = order[first:first + 16]
            width = -(-max(len(ids[i]) for i in part) // HOP) * HOP
            rows = torch.zeros(len(part), width, dtype=torch.long)
            keep = torch.zeros(len(part), width, dtype=torch.bool)
            for row, i in enumerate(part):
                rows[row, :len(ids[i])] = torch.tensor(ids[i])
                keep[row, :len(ids[i])] = True
            yield part, self.model(rows, keep), keep

    def cosines(self, pool):
        """[questions, texts]: of the nearest windows."""
        asked = np.zeros((len(pool.questions), DIMENSIONS), np.float32)
        for part, states, keep in self.states(pool.questions, pack.LONGEST_QUERY):
            asked[part] = at_length_one(self.model.pooled(states, keep), DIMENSIONS).numpy()
        cosines = np.zeros((len(pool.questions), len(pool.texts)), np.float32)
        titled = [f"d{document}\n{text}" for document, text in zip(pool.document_of, pool.texts)]
        for part, states, keep in self.states(titled, pack.LONGEST):
            sums, there = self.model.windows(states, keep, HOP)
            for i, vectors, known in zip(part, at_length_one(sums, DIMENSIONS).numpy(), there.numpy()):
                cosines[:, i] = (asked @ vectors[known].T).max(1)
        return cosines

    def word_vectors(self, counts, stem_of, stems):
        """Of each stem the mean of its words, and of each word the mean of its pieces, in the directions that differ most."""
        table = self.model.token_embd.weight.detach().numpy()
        table = table - table[5:].mean(0)
        table = table @ np.linalg.svd(table[5:], full_matrices=False)[2][:matching.WIDTH].T
        number, vectors = {stem: i for i, stem in enumerate(stems)}, np.zeros((len(stems), matching.WIDTH), np.float32)
        for word, n in counts.items():
            i = number.get(stem_of.get(word))
            if i is not None:
                vectors[i] += n * table[self.tokenizer.encode(word)].mean(0)
        return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-6)


# --- training ----------------------------------------------------------------------------------------------------------


class Example:
    """A question with the texts that words find best."""

    def __init__(self, pool, number):
        self.pool, self.question = pool, pool.asks[number]
        self.texts = rank.best(pool.points[number], CANDIDATES)
        self.right = pool.answers(number, self.texts)
        self.features = matching.features(self.question, [pool.stems[text] for text in self.texts], pool.points[number][self.texts])


class Net(nn.Module):
    """What matching.Matcher does, with gradients."""

    def __init__(self, vectors, mean, spread):
        super().__init__()
        self.vectors = nn.Embedding.from_pretrained(torch.cat([torch.from_numpy(vectors), torch.zeros(1, matching.WIDTH)]), freeze=False,
                                                    padding_idx=len(vectors))
        kinds = len(matching.QUESTION_WORDS) + 1
        self.power = nn.Parameter(torch.tensor(0.5))
        self.steps = nn.Parameter(torch.full((len(matching.SCALES), len(matching.STEPS)), 0.3))
        self.answers = nn.Parameter(torch.zeros(kinds, matching.WIDTH))
        self.direct = nn.Linear(matching.N_INPUTS, 1, bias=False)
        self.hidden = nn.Linear(matching.N_INPUTS, HIDDEN, bias=False)
        self.by_kind = nn.Parameter(torch.zeros(kinds, HIDDEN))
        self.output = nn.Linear(HIDDEN, 1, bias=False)
        self.mean, self.spread = torch.from_numpy(mean), torch.from_numpy(spread)
        self.over = torch.tensor(matching.STEPS)

    def by_vectors(self, terms, weights, kind, words, same):
        n = words.shape[-1] // BLOCK
        found = F.normalize(self.vectors(words), dim=-1, eps=1e-3)
        asked = F.normalize(self.vectors(terms), dim=-1, eps=1e-3)
        cosines = torch.einsum("bqd,bcld->bcql", asked, found) * matching.UNLIKE
        answers = torch.einsum("bd,bcld->bcl", self.answers[kind], found)[:, :, None]
        rows = torch.cat([torch.where(same, torch.ones(()), cosines), answers], 2)
        blocks = F.pad(rows.unflatten(-1, (n, BLOCK)).amax(-1).clamp(min=0), (0, BLOCKS - n))
        weights = weights.clamp(min=matching.LEAST_WEIGHT)**self.power * (weights > 0)
        weights = weights / weights.sum(1, keepdim=True)
        found = []
        for scale, steps in zip(matching.SCALES, self.steps):
            windows = F.max_pool1d(blocks.flatten(0, 1), scale, 1).unflatten(0, blocks.shape[:2])
            over = (windows[:, :, :-1, :, None] - self.over).clamp(min=0) @ steps
            values = torch.einsum("bq,bcqw->bcw", weights, over)
            found += [values.amax(-1), values.mean(-1), (values + windows[:, :, -1]).amax(-1)]
        return torch.stack(found, -1)

    def forward(self, features, terms, weights, kind, words, same):
        by_words = torch.cat([(features - self.mean) / self.spread, *((features - other) / self.spread for other in
                              (features.mean(1, keepdim=True), features.amax(1, keepdim=True)))], -1)
        by_vectors = self.by_vectors(terms, weights, kind, words, same)
        inputs = torch.cat([by_words, by_vectors, by_vectors - by_vectors.amax(1, keepdim=True)], -1)
        hidden = F.dropout((self.hidden(inputs) + self.by_kind[kind][:, None]).relu(), DROP, self.training)
        return (self.direct(inputs) + self.output(hidden))[..., 0]

    @torch.no_grad()
    def matcher(self, stems):
        """With the scales of its inputs inside its weights."""
        scale = torch.cat([(1 / self.spread).repeat(3), torch.ones(2 * matching.N_VECTORS)])
        shift = -(self.hidden.weight[:, :matching.N_WORDS] @ (self.mean / self.spread))
        return Matcher(stems, F.normalize(self.vectors.weight[:-1], dim=-1, eps=1e-3).numpy(), float(self.power), self.steps.numpy(),
                       self.answers.numpy(), (self.direct.weight[0] * scale).numpy(), (self.hidden.weight * scale).numpy(),
                       (self.by_kind + shift).numpy(), self.output.weight[0].numpy())


class Batches:
    def __init__(self, examples, stems, seed):
        self.examples, self.chance = examples, np.random.default_rng(seed)
        self.number, self.none = {stem: i for i, stem in enumerate(stems)}, len(stems)
        self.rows = {}

    def row(self, pool, text):
        """(numbers of the vectors of a text's words, its words)"""
        key = id(pool), text
        if key not in self.rows:
            stems = pool.stems[text][:BLOCK * BLOCKS]
            self.rows[key] = np.array([self.number.get(stem, self.none) for stem in stems], np.int64), np.array(stems, object)
        return self.rows[key]

    def chosen(self, example):
        """Right texts, and others, the better ones more often."""
        right, wrong = np.flatnonzero(example.right), np.flatnonzero(~example.right)
        right = self.chance.permutation(right)[:4]
        weights = np.exp(-wrong / 12)
        return np.r_[right, self.chance.choice(wrong, N_READ - len(right), False, weights / weights.sum())]

    def next(self):
        examples = [self.examples[i] for i in self.chance.integers(len(self.examples), size=BATCH)]
        chosen = [self.chosen(example) for example in examples]
        texts = [[self.row(example.pool, example.texts[i]) for i in some] for example, some in zip(examples, chosen)]
        n_terms = max(len(example.question.terms) for example in examples)
        longest = -(-max(len(numbers) for some in texts for numbers, _ in some) // BLOCK) * BLOCK
        terms, weights = np.full((BATCH, n_terms), self.none), np.zeros((BATCH, n_terms), np.float32)
        words, same = np.full((BATCH, N_READ, longest), self.none), np.zeros((BATCH, N_READ, n_terms, longest), bool)
        for b, (example, some) in enumerate(zip(examples, texts)):
            question = example.question
            terms[b, :len(question.terms)] = [self.number.get(term, self.none) for term in question.terms]
            weights[b, :len(question.terms)] = question.rarity / 5
            for c, (numbers, stems) in enumerate(some):
                words[b, c, :len(numbers)] = numbers
                for t, term in enumerate(question.terms):
                    same[b, c, t, :len(numbers)] = stems == term
        arrays = (np.stack([example.features[some] for example, some in zip(examples, chosen)]), terms, weights,
                  np.array([example.question.kind for example in examples]), words, same)
        right = np.stack([example.right[some] for example, some in zip(examples, chosen)]).astype(np.float32)
        return [torch.from_numpy(array) for array in arrays], torch.from_numpy(right)


def train(options, net, batches):
    vectors = [net.vectors.weight]
    others = [parameter for name, parameter in net.named_parameters() if name != "vectors.weight"]
    rates = (options.vector_rate, options.rate)
    optimiser = torch.optim.AdamW([{"params": vectors, "weight_decay": 0.0}, {"params": others, "weight_decay": 1e-3}])
    start, mean = time.time(), 0.0
    net.train()
    for step in range(options.steps):
        for group, rate in zip(optimiser.param_groups, rates):
            group["lr"] = rate * min(1, (step + 1) / 50) * (1 - step / options.steps)
        inputs, right = batches.next()
        loss = -(right / right.sum(1, keepdim=True) * net(*inputs).log_softmax(1)).sum(1).mean()
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimiser.step()
        mean += float(loss)
        if (step + 1) % 200 == 0:
            print(json.dumps({"step": step + 1, "seconds": round(time.time() - start), "loss": round(mean / 200, 4)}), flush=True)
            mean = 0.0
    net.eval()


# --- measuring ---------------------------------------------------------------------------------------------------------


def measure(matcher, pool, cosines, weights):
    """nDCG@10 of words, of both, and of both read again, by what a cosine counts."""
    words, both, again = [], [], {weight: [] for weight in weights}
    for i, question in enumerate(pool.asks):
        def ndcg(ranked, right=pool.right[i]):
            return rank.ndcg(ranked, pool.document_of, right)

        words.append(ndcg(rank.fused(pool.points[i], cosines[i], 0)))
        found = rank.fused(pool.points[i], cosines[i], SCORE_WEIGHT)
        both.append(ndcg(found))
        read, rest = found[:CANDIDATES], found[CANDIDATES:]
        scores = matcher.scores(question, [pool.stems[text] for text in read], pool.points[i][read])
        for weight, values in again.items():
            values.append(ndcg(np.r_[read[np.argsort(-(scores + weight * cosines[i][read]), kind="stable")], rest]))
    return rank.mean(words), rank.mean(both), {weight: rank.mean(values) for weight, values in again.items()}


def say(name, words, both, again):
    def gain(value):
        return f"{value:.4f} ({100 * (value / words - 1):+.1f} %)"
    print(json.dumps({"set": name, "words": round(words, 4), "both": gain(both), "read again": {weight: gain(value) for weight, value in again.items()}}),
          flush=True)


def main():
    options = arguments()
    torch.manual_seed(options.seed)
    options.out.mkdir(parents=True, exist_ok=True)
    path, embedder = options.out / FILE, Embedder(options.embedder)
    measured = measured_pools(options.data, options.held_out)
    if options.held_out:
        stem_of, matcher = stem_all(measured.values()), Matcher.of_file(path)
        for name, pool in measured.items():
            pool.compare(stem_of)
            say("held-out " + name, *measure(matcher, pool, embedder.cosines(pool), (matcher.cosine_weight,)))
        return
    pools = list(training_pools(options.data))
    counts = Counter()
    for source in VOCABULARY_FROM:
        for pair in pairs.SOURCES[source](options.data):
            counts.update(rank.plain_words(f"{pair.query} {pair.passage}"))
    stem_of = rank.stems(sorted({*counts, *set().union(*(pool.all_words() for pool in (*pools, *measured.values())))}))
    stem_counts = Counter()
    for word, n in counts.items():
        if word in stem_of:
            stem_counts[stem_of[word]] += n
    stems = sorted(stem for stem, _ in sorted(stem_counts.items(), key=lambda item: (-item[1], item[0]))[:VOCABULARY])
    for pool in (*pools, *measured.values()):
        pool.compare(stem_of)
    examples = [Example(pool, i) for pool in pools for i in range(len(pool.asks)) if pool.asks[i].terms]
    examples = [example for example in examples if example.right.any() and (~example.right).sum() >= N_READ]
    table = np.concatenate([example.features for example in examples])
    print(json.dumps({"questions": len(examples), "stems": len(stems), "distinct": len(stem_counts)}), flush=True)
    net = Net(embedder.word_vectors(counts, stem_of, stems), table.mean(0), table.std(0) + 1e-6)
    train(options, net, Batches(examples, stems, options.seed))
    net.matcher(stems).write(path)
    matcher = Matcher.of_file(path)
    found = {name: measure(matcher, pool, embedder.cosines(pool), COSINE_WEIGHTS) for name, pool in measured.items()}
    for name, values in found.items():
        say("kept " + name, *values)
    matcher.cosine_weight = rank.common_weight([again for _, _, again in found.values()])
    matcher.write(path)
    print(json.dumps({"cosine weight": matcher.cosine_weight, "bytes": path.stat().st_size}))


if __name__ == "__main__":
    main()
