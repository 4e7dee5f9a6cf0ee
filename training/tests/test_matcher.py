"""chimere-matcher: what words say, and that training, the file and the program compute the same."""

import pathlib
import sys
import tempfile
import unittest
from collections import Counter

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "training"))

import numpy as np

from embed import matching, rank
from embed.matching import Matcher, Question

try:
    import torch
except ImportError:
    torch = None

# src/retrieval/matcher_test.cpp has the same question, texts, points and scores.
QUESTION = "Why did the widow call her son a thief?"
TEXTS = (
    "The widow wept all day. \"My son,\" she said, \"is a thief, for he took the golden goose of the king.\"",
    "The king had a son, and the son had a goose. Nobody called him anything.",
    "Because of the rain the road was closed, and the old woman cried that her boy had stolen the bread.",
    "",
)
POINTS = (6.5, 2.25, 0.0, 0.0)
SCORES = (2.6774, -3.9105, -9.2818, -6.8591)


def example():
    words = [rank.plain_words(text) for text in TEXTS]
    asked = rank.plain_words(QUESTION)
    stem_of = rank.stems(sorted({word for each in (*words, asked) for word in each}))
    texts = [[stem_of[word] for word in each] for each in words]
    n_with = Counter({"widow": 3, "call": 20, "son": 9, "thief": 2})
    return Question.of(asked, stem_of, n_with, 100), texts


class WordFeatures(unittest.TestCase):
    def test_words_close_together_count_most(self):
        rarity = [1.0, 2.0, 4.0]
        places = [(0, 0), (5, 1), (40, 2), (42, 2)]
        self.assertEqual(matching.close_together(places, rarity, 6), (4.0, (1 + 9 + 16 + 16) ** 0.5))
        self.assertEqual(matching.close_together(places, rarity, 48)[0], 7.0)
        self.assertEqual(matching.close_together([], rarity, 6), (0.0, 0.0))

    def test_runs_of_the_question_count_by_rarity(self):
        self.assertEqual(matching.in_a_row(["the", "old", "king"], ["an", "old", "king", "the"], {"old": 1.5, "king": 2.0}, 2), 3.5)
        self.assertEqual(matching.in_a_row(["the", "old", "king"], ["old", "the", "king"], {"old": 1.5, "king": 2.0}, 2), 0.0)

    def test_a_question_keeps_its_rarest_words(self):
        words = [f"w{i}" for i in range(20)]
        question = Question.of(words, {word: word for word in words}, {word: i + 1 for i, word in enumerate(words)}, 1000)
        self.assertEqual(question.terms, words[:matching.MAX_TERMS])
        self.assertEqual(len(question.rarity), matching.MAX_TERMS)

    def test_rows_have_all_features(self):
        question, texts = example()
        self.assertEqual(matching.features(question, texts, POINTS).shape, (len(texts), matching.N_WORDS))
        self.assertEqual(question.terms, ["widow", "call", "son", "thief"])
        self.assertEqual(matching.QUESTION_WORDS[question.kind], "why")


class File(unittest.TestCase):
    def test_scores_of_the_file_that_ships(self):
        question, texts = example()
        scores = Matcher.of_file(ROOT / "assets" / "chimere-matcher.gguf").scores(question, texts, POINTS)
        np.testing.assert_allclose(scores, SCORES, atol=2e-3)

    @unittest.skipIf(torch is None, "needs PyTorch")
    def test_training_and_file_score_alike(self):
        from train_matcher import Net

        question, texts = example()
        torch.manual_seed(1)
        stems = sorted({stem for text in texts for stem in text})[::2]
        vectors = torch.nn.functional.normalize(torch.randn(len(stems), matching.WIDTH), dim=-1).numpy()
        table = matching.features(question, texts, POINTS)
        net = Net(vectors, table.mean(0), table.std(0) + 1)
        torch.nn.init.normal_(net.answers)
        torch.nn.init.normal_(net.by_kind)
        net.eval()
        number = {stem: i for i, stem in enumerate(stems)}
        longest = matching.BLOCK * 4
        words = np.full((1, len(texts), longest), len(stems))
        same = np.zeros((1, len(texts), len(question.terms), longest), bool)
        for c, text in enumerate(texts):
            words[0, c, :len(text)] = [number.get(stem, len(stems)) for stem in text]
            same[0, c, :, :len(text)] = [[stem == term for stem in text] for term in question.terms]
        terms = np.array([[number.get(term, len(stems)) for term in question.terms]])
        weights = (question.rarity[None] / 5).astype(np.float32)
        inputs = [torch.from_numpy(array) for array in (table[None], terms, weights, np.array([question.kind]), words, same)]
        with torch.no_grad():
            trained = net(*inputs)[0].numpy()
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "m.gguf"
            net.matcher(stems).write(path)
            scores = Matcher.of_file(path).scores(question, texts, POINTS)
        np.testing.assert_allclose(scores - scores.mean(), trained - trained.mean(), atol=0.05)


if __name__ == "__main__":
    unittest.main()
