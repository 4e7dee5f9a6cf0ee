"""The matcher: what tells, with the question at hand, which of a few texts answers it (src/retrieval/matcher.cpp has the same).

    question = Question(words of the question, {stem: how many texts have it}, number of texts)
    rows = features(question, texts, points)                 what words say of each text, one row a text
    scores = Matcher.of_file(path).scores(question, texts, points)

Texts are lists of stems. Beside BM25 counts how many words of the question stand close together, in the same order, and how
rare they are; then how near the words of a text are to those of the question by a table of vectors, a window at a time. All is
weighed for each text and against the others. Everything here is numpy; train_matcher.py has the same with gradients.
"""

import math
from dataclasses import dataclass, field

import numpy as np

from nano import gguf, quants

from . import rank

NAME = "chimere-matcher"
VERSION = 1
MAX_TERMS, MAX_ASKED = 16, 64  # telling words of a question that count, and all of its words
SPANS = (6, 12, 24, 48)  # words within which those of the question are counted
NEAR, FAR = 4, 8  # words between two that follow one another in the question
RARE = 3
N_WORDS = 27
BLOCK, BLOCKS = 8, 32  # words of a text that vectors see: blocks of so many
SCALES = (2, 4, 8, 32)  # blocks of a window
STEPS = (0.2, 0.35, 0.5, 0.65, 0.8)  # of a cosine: from each on it counts more
UNLIKE = 0.95  # the cosine of words that are not the same is at most this
N_VECTORS = 3 * len(SCALES)
N_INPUTS = 3 * N_WORDS + 2 * N_VECTORS
WIDTH = 32  # values of a word's vector
QUESTION_WORDS = ("what", "who", "why", "how", "where", "when", "which")  # and none of them
LEAST_WEIGHT = 0.02


@dataclass
class Question:
    """`asked`: the stems of all its words; `terms`: of those that tell something, each once, with their rarity."""

    asked: list
    terms: list
    rarity: np.ndarray
    kind: int
    rarity_of: dict = field(default_factory=dict)

    @staticmethod
    def of(words, stem_of, n_with, n_texts):
        """`stem_of`: {word: stem}; `n_with`: {stem: how many texts have it}."""
        def known(some):
            return [stem_of[word] for word in some if word in stem_of]

        asked = known(words)[:MAX_ASKED]
        terms = list(dict.fromkeys(known(rank.telling(words))))
        rarity = [rarity_of(n_texts, n_with.get(term, 0)) for term in terms]
        if len(terms) > MAX_TERMS:
            kept = sorted(sorted(range(len(terms)), key=lambda i: -rarity[i])[:MAX_TERMS])
            terms, rarity = [terms[i] for i in kept], [rarity[i] for i in kept]
        kind = next((QUESTION_WORDS.index(word) for word in words if word in QUESTION_WORDS), len(QUESTION_WORDS))
        return Question(asked, terms, np.array(rarity, np.float64), kind, dict(zip(terms, rarity)))


def rarity_of(n_texts, n_with):
    return max(math.log((n_texts - n_with + 0.5) / (n_with + 0.5)), rank.LEAST_IDF)


def close_together(places, rarity, span):
    """(the most rarity of different words of the question within `span` words, and the root of the sum of squares of it at
    each of their places)."""
    best, squares, current, first = 0.0, 0.0, 0.0, 0
    counts = [0] * len(rarity)
    for place, term in places:
        if counts[term] == 0:
            current += rarity[term]
        counts[term] += 1
        while places[first][0] < place - span:
            gone = places[first][1]
            counts[gone] -= 1
            if counts[gone] == 0:
                current -= rarity[gone]
            first += 1
        best = max(best, current)
        squares += current * current
    return best, math.sqrt(max(squares, 0.0))


def in_a_row(asked, text, rarity_of_term, n):
    """The rarity of all runs of n words of the question that stand in the text so; small words have none."""
    there = {tuple(text[i:i + n]) for i in range(len(text) - n + 1)}
    runs = (tuple(asked[i:i + n]) for i in range(len(asked) - n + 1))
    return sum(rarity_of_term.get(word, 0.0) for run in runs if run in there for word in run)


def word_features(question, text, points):
    rarity, terms = question.rarity.tolist(), question.terms
    number = {term: i for i, term in enumerate(terms)}
    found = [[] for _ in terms]
    for place, stem in enumerate(text):
        if stem in number:
            found[number[stem]].append(place)
    places = sorted((place, term) for term, at in enumerate(found) for place in at)
    all_rarity = sum(rarity) + rank.LEAST_IDF
    covered = sum(r for r, at in zip(rarity, found) if at)
    row = [points, covered, covered / all_rarity, sum(1 for at in found if at) / max(len(terms), 1), math.log(len(text) + 1)]
    for span in SPANS:
        best, squares = close_together(places, rarity, span)
        row += [best, best / all_rarity, squares]
    row += [in_a_row(question.asked, text, question.rarity_of, 2), in_a_row(question.asked, text, question.rarity_of, 3)]
    near = far = 0.0
    for i in range(len(terms) - 1):
        steps = [b - a for a in found[i] for b in found[i + 1]]
        both = rarity[i] + rarity[i + 1]
        near += both if any(0 < step <= NEAR for step in steps) else 0.0
        far += both if any(abs(step) <= FAR for step in steps) else 0.0
    row += [near, far]
    n = max(len(text), 1)
    row += [places[0][0] / n, sum(place for place, _ in places) / len(places) / n] if places else [1.0, 0.5]
    rarest = sorted(range(len(terms)), key=lambda i: -rarity[i])[:RARE]
    row += [1.0 if found[i] else 0.0 for i in rarest] + [0.0] * (RARE - len(rarest))
    return row + [sum(r * math.log1p(len(at)) for r, at in zip(rarity, found))]


def features(question, texts, points):
    return np.array([word_features(question, text, point) for text, point in zip(texts, points)], np.float32)


def against_others(rows):
    """Each row, and what it is above the mean and above the best of all."""
    return np.concatenate([rows, rows - rows.mean(0), rows - rows.max(0)], 1)


@dataclass
class Matcher:
    stems: list
    vectors: np.ndarray  # [stems, WIDTH], each at length 1
    power: float  # of rarity
    steps: np.ndarray  # [SCALES, STEPS]
    answers: np.ndarray  # [kinds, WIDTH]: what words of an answer to such a question are near to
    direct: np.ndarray  # [N_INPUTS]
    hidden: np.ndarray  # [hidden, N_INPUTS]
    by_kind: np.ndarray  # [kinds, hidden]
    output: np.ndarray  # [hidden]
    cosine_weight: float = 0.0  # what a cosine of 1 by the encoder counts

    def __post_init__(self):
        self.numbers = {stem: i for i, stem in enumerate(self.stems)}

    def vectors_of(self, stems):
        rows = np.zeros((len(stems), WIDTH), np.float32)
        for row, stem in zip(rows, stems):
            number = self.numbers.get(stem)
            if number is not None:
                row[:] = self.vectors[number]
        return rows

    def vector_features(self, question, text):
        text = text[:BLOCK * BLOCKS]
        found = self.vectors_of(text)
        cosines = np.minimum(self.vectors_of(question.terms) @ found.T * UNLIKE, 1)
        cosines[np.array(question.terms, object)[:, None] == np.array(text, object)[None]] = 1
        blocks = np.zeros((len(question.terms) + 1, BLOCKS), np.float32)
        answers = found @ self.answers[question.kind]
        for i in range(0, len(text), BLOCK):
            blocks[:-1, i // BLOCK] = np.maximum(cosines[:, i:i + BLOCK].max(1), 0) if len(question.terms) else 0
            blocks[-1, i // BLOCK] = max(answers[i:i + BLOCK].max(), 0)
        weights = np.maximum(question.rarity / 5, LEAST_WEIGHT)**self.power
        weights = weights / max(weights.sum(), 1e-9)
        row = []
        for scale, steps in zip(SCALES, self.steps):
            windows = np.stack([blocks[:, i:i + scale].max(1) for i in range(BLOCKS - scale + 1)], 1)
            over = np.maximum(windows[:-1, :, None] - np.array(STEPS), 0) @ steps
            values = weights @ over if len(weights) else np.zeros(windows.shape[1])
            row += [values.max(), values.mean(), (values + windows[-1]).max()]
        return row

    def scores(self, question, texts, points):
        by_words = against_others(features(question, texts, points))
        by_vectors = np.array([self.vector_features(question, text) for text in texts], np.float32)
        inputs = np.concatenate([by_words, by_vectors, by_vectors - by_vectors.max(0)], 1)
        hidden = np.maximum(inputs @ self.hidden.T + self.by_kind[question.kind], 0)
        return inputs @ self.direct + hidden @ self.output

    def write(self, path):
        fields = {
            "general.architecture": NAME, "general.type": "model", "general.name": NAME, "general.license": "apache-2.0",
            "general.description": "Tells which of a few English texts answers a question, by their words.",
            f"{NAME}.version": gguf.U32(VERSION), f"{NAME}.power": gguf.F32(self.power),
            f"{NAME}.cosine_weight": gguf.F32(self.cosine_weight), f"{NAME}.stems": list(self.stems),
            "general.quantization_version": gguf.U32(2),
        }
        tensors = [("vectors", "Q8_0", self.vectors)]
        tensors += [(name, "F32", getattr(self, name)) for name in ("steps", "answers", "direct", "hidden", "by_kind", "output")]
        gguf.write(path, fields, [(name, tuple(reversed(array.shape)), kind, quants.encode(kind, np.ascontiguousarray(array, np.float32)))
                                  for name, kind, array in tensors])

    @staticmethod
    def of_file(path):
        fields, tensors = gguf.read(path)
        arrays = {name: np.array(quants.decode(kind, raw, tuple(reversed(dims))), np.float32) for name, (dims, kind, raw) in tensors.items()}
        return Matcher(list(fields[f"{NAME}.stems"]), power=float(fields[f"{NAME}.power"]),
                       cosine_weight=float(fields[f"{NAME}.cosine_weight"]), **arrays)
