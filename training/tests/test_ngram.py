"""Tests of the n-gram baseline against a slow implementation with dictionaries."""

import pathlib
import subprocess
import sys
import tempfile
import unittest
from collections import Counter, defaultdict

import numpy as np

TRAINING = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TRAINING))
from nano import ngram  # noqa: E402


class SlowModel:
    """Interpolated modified Kneser-Ney, written from the formulas."""

    def __init__(self, tokens, vocabulary, order):
        self.vocabulary = vocabulary
        self.order = order
        self.counts = {order: Counter(tuple(tokens[i : i + order]) for i in range(len(tokens) - order + 1))}
        for length in range(order - 1, 0, -1):
            longer = {tuple(tokens[i : i + length + 1]) for i in range(len(tokens) - length)}
            self.counts[length] = Counter(gram[1:] for gram in longer)
        self.discounts = {length: self.discounts_of(counts) for length, counts in self.counts.items()}
        self.followers = {length: defaultdict(list) for length in self.counts}
        for length, counts in self.counts.items():
            for gram, count in counts.items():
                self.followers[length][gram[:-1]].append(count)

    @staticmethod
    def discounts_of(counts):
        n = Counter(counts.values())
        if any(n[i] == 0 for i in (1, 2, 3, 4)):
            return [0, 0.5, 1, 1.5]
        y = n[1] / (n[1] + 2 * n[2])
        return [0] + [min(max(i - (i + 1) * y * n[i + 1] / n[i], 0), i) for i in (1, 2, 3)]

    def probability(self, context, token):
        length = len(context) + 1
        shorter = self.probability(context[1:], token) if context else 1 / self.vocabulary
        followers = self.followers[length].get(context)
        if not followers:
            return shorter
        discounts = self.discounts[length]
        count = self.counts[length].get(context + (token,), 0)
        kept_back = sum(discounts[min(c, 3)] for c in followers)
        return (count - discounts[min(count, 3)] + kept_back * shorter) / sum(followers)

    def probabilities(self, tokens):
        most = self.order - 1
        return [self.probability(tuple(tokens[max(0, i - most) : i]), token) for i, token in enumerate(tokens)]


def stream(seed, length, vocabulary):
    """Tokens that depend on the two before, with noise: n-grams of all lengths repeat."""
    rng = np.random.default_rng(seed)
    tokens = [0, 1]
    while len(tokens) < length:
        regular = (2 * tokens[-1] + 3 * tokens[-2] + 1) % vocabulary
        tokens.append(int(regular if rng.random() < 0.6 else rng.integers(vocabulary) ** 2 // vocabulary))
    return tokens[:length]


class AgainstSlowModel(unittest.TestCase):
    def test_equal_probabilities(self):
        shapes = [(1, 600, 9, 5), (2, 400, 23, 5), (3, 300, 5, 3), (4, 2000, 40, 5), (5, 9, 4, 5)]
        for seed, length, vocabulary, order in shapes:
            train, held_out = stream(seed, length, vocabulary), stream(seed + 100, 300, vocabulary)
            slow = SlowModel(train, vocabulary, order)
            fast = ngram.train(np.array(train, np.uint16), vocabulary, order)
            for tokens in (train, held_out, held_out[:1]):
                found = ngram.probabilities(fast, np.array(tokens, np.uint16))
                np.testing.assert_allclose(found, slow.probabilities(tokens), rtol=1e-9, atol=0)

    def test_the_estimated_discounts_are_tested_too(self):
        model = ngram.train(np.array(stream(4, 2000, 40)), 40)
        estimated = [not np.array_equal(level.discounts, [0, 0.5, 1, 1.5]) for level in model.levels]
        self.assertGreaterEqual(sum(estimated), 3)
        self.assertFalse(all(estimated))


class Properties(unittest.TestCase):
    def test_keys_hold_as_many_contexts_as_there_are_tokens(self):
        contexts = np.array([50_000_000, 3, 50_000_000], np.int32)
        keys, counts, places, ids = ngram.number_ngrams(contexts, np.array([8191, 5, 8191], np.uint16), 8192)
        self.assertEqual(keys.tolist(), [3 * 8192 + 5, 50_000_000 * 8192 + 8191])
        self.assertEqual((counts.tolist(), ids.tolist()), ([1, 2], [1, 0, 1]))
        self.assertEqual(contexts[places].tolist(), [3, 50_000_000])

    def test_probabilities_sum_to_one(self):
        vocabulary = 12
        train = stream(6, 800, vocabulary)
        model = ngram.train(np.array(train), vocabulary)
        contexts = [train[i : i + 4] for i in range(0, 790, 13)] + [train[-4:], train[:4], [11, 11, 11, 11], [3], []]
        for context in contexts:
            values = [ngram.probabilities(model, np.array(context + [token]))[-1] for token in range(vocabulary)]
            self.assertAlmostEqual(sum(values), 1, places=12)
            self.assertGreater(min(values), 0)

    def test_perplexity(self):
        train, held_out = np.array(stream(7, 3000, 16)), np.array(stream(8, 500, 16))
        model = ngram.train(train, 16)
        values = ngram.probabilities(model, held_out)[1:]
        self.assertAlmostEqual(ngram.perplexity(model, held_out), float(np.prod(values ** (-1 / len(values)))))
        self.assertLess(ngram.perplexity(model, held_out), 8)
        self.assertLess(ngram.perplexity(model, train), ngram.perplexity(model, held_out))

    def test_refuses_what_it_cannot_count(self):
        with self.assertRaises(ValueError):
            ngram.train(np.array([0, 1, 2, 3]), 4)
        with self.assertRaises(ValueError):
            ngram.train(np.array([0, 1, 2, 3, 4]), 4)
        model = ngram.train(np.array([0, 1, 2, 3, 0]), 4)
        with self.assertRaises(ValueError):
            ngram.perplexity(model, np.array([4, 4]))
        with self.assertRaises(ValueError):
            ngram.perplexity(model, np.array([1]))


class Command(unittest.TestCase):
    def test_flags_are_ignored(self):
        train, held_out = np.array(stream(9, 500, 300), np.uint16), np.array(stream(10, 200, 300), np.uint16)
        expected = ngram.perplexity(ngram.train(train), held_out)
        train[::3] |= 0x8000
        held_out[::2] |= 0x8000
        with tempfile.TemporaryDirectory() as folder:
            paths = [str(pathlib.Path(folder) / name) for name in ("train.bin", "held_out.bin")]
            train.tofile(paths[0])
            held_out.tofile(paths[1])
            command = [sys.executable, "-m", "nano.ngram", *paths]
            printed = subprocess.run(command, cwd=TRAINING, capture_output=True, text=True, check=True).stdout
        self.assertIn(f"held_out.bin: 200 tokens, perplexity {expected:.3f}", printed)


if __name__ == "__main__":
    unittest.main()
