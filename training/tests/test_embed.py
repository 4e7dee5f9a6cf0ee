"""chimere-embed: its words and pieces, its pairs, how results are counted, its batches, the encoder and its file."""

import pathlib
import random
import sqlite3
import sys
import tempfile
import unittest
from collections import Counter

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

import numpy as np

from embed import pairs, rank
from embed.passages import chunks, sections
from embed.wordpiece import CLS, MARK, SEP, UNK, WordPiece, train, words
from nano import gguf, quants

try:
    import torch
except ImportError:
    torch = None

TEXT = "the cat sat on the mat and the other cat sat there. Cats sit, mats lie; what is a cat? "


def small_tokenizer():
    counts = Counter()
    for _ in range(70):
        counts.update(words(TEXT))
    return WordPiece(train(counts, 60))


class Words(unittest.TestCase):
    def test_words_are_small_and_without_accents(self):
        self.assertEqual(words("Caf\u00e9 don't \u2014 a_b 2.5%"), ["cafe", "don", "'", "t", "\u2014", "a", "_", "b", "2", ".", "5", "%"])
        self.assertEqual(words("zero\u200bwidth \u4e16\u754c\x01!"), ["zerowidth", "\u4e16", "\u754c", "!"])

    def test_pieces_are_the_longest_known(self):
        tokenizer = WordPiece(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", MARK + "ca", MARK + "cat", "s", "at"])
        self.assertEqual(tokenizer.encode("cats cat"), [6, 7, 6])
        self.assertEqual(tokenizer.encode("cats dog"), [6, 7, UNK])

    def test_training_gives_whole_words(self):
        tokenizer = small_tokenizer()
        self.assertIn(MARK + "the", tokenizer.ids)
        self.assertNotIn(UNK, tokenizer.encode(TEXT))
        self.assertEqual(len(set(tokenizer.tokens)), len(tokenizer.tokens))


class Passages(unittest.TestCase):
    def test_chunks_fit_and_keep_all(self):
        text = "\n\n".join(" ".join(f"Sentence {i} of {j} is here." for i in range(40)) for j in range(5))
        parts = chunks(text)
        self.assertTrue(all(len(part.encode()) <= 1200 for part in parts))
        self.assertEqual(" ".join(parts).split(), text.split())

    def test_sections_have_their_path(self):
        text = "# A\nfirst\n## B\n```\n# no heading\n```\nsecond\n# C\nthird"
        self.assertEqual([(path, body.split("\n")[-1]) for path, body in sections(text)],
                         [(["A"], "first"), (["A", "B"], "second"), (["C"], "third")])

    def test_questions_about_one_disease_are_one_topic(self):
        asked = ["What is (are) Cole disease ?", "What are the symptoms of Cole disease ?", "Is Cole disease inherited ?",
                 "What are the genetic changes related to Cole disease ?", "How many people are affected by Cole disease ?",
                 "what research (or clinical trials) is being done for Cole disease ?", "What causes Cole disease ?"]
        self.assertEqual({pairs.topic(question) for question in asked}, {"cole disease"})

    def test_a_copied_sentence_is_a_leak(self):
        known = set(pairs.ngrams("one two three four five six seven eight nine ten eleven twelve thirteen fourteen"))
        self.assertTrue(pairs.leaks("so: two three four five six seven eight nine ten eleven twelve thirteen fourteen!", known))
        self.assertFalse(pairs.leaks("one two three four five six seven eight nine ten eleven twelve and then", known))


class Ranks(unittest.TestCase):
    def test_words_are_scored_as_sqlite_scores_them(self):
        chance = random.Random(3)
        known = ["horse", "horses", "running", "ran", "cat", "cats", "the", "weather", "sleeps", "sleeping", "caf\u00e9", "2", "don"]
        texts = [" ".join(chance.choices(known, k=chance.randrange(3, 30))) for _ in range(40)] + ["a zebra"]
        questions = ["Where did the cat sleep?", "horses running", "zebra", "Cafe 2", "unheard of"]
        base = sqlite3.connect(":memory:")
        base.execute("CREATE VIRTUAL TABLE words USING fts5(body, tokenize=\"porter unicode61 remove_diacritics 2\")")
        base.executemany("INSERT INTO words(rowid, body) VALUES(?, ?)", enumerate(texts))
        stem_of = rank.stems({word for text in texts + questions for word in rank.plain_words(text)})
        numbers = {stem: number for number, stem in enumerate(sorted(set(stem_of.values())))}

        def stems(words):
            return np.array([numbers[stem_of[word]] for word in words], np.int64)

        scores = rank.word_scores([stems(rank.plain_words(text)) for text in texts],
                                  [np.unique(stems(rank.asked_words(question))) for question in questions])
        for question, row in zip(questions, scores):
            match = " OR ".join(f'"{word}"' for word in rank.asked_words(question))
            expected = np.zeros(len(texts))
            for number, score in base.execute("SELECT rowid, rank FROM words WHERE words MATCH ?", (match,)):
                expected[number] = -score
            self.assertLess(np.abs(row - expected).max(), 1e-4, question)

    def test_ndcg_counts_documents_once(self):
        self.assertAlmostEqual(rank.ndcg([0, 1, 2], [5, 5, 6], {6}), 1 / np.log2(3))
        self.assertAlmostEqual(rank.ndcg([2, 0], [5, 5, 6], {5, 6}), 1.0)

    def test_fusion_adds_scores(self):
        words, cosines = np.array([0, 2.0, 0, 3.0]), np.array([0.1, 0.5, 0.9, 0.0])
        self.assertEqual(rank.fused(words, cosines, 0).tolist(), [3, 1])
        self.assertEqual(rank.fused(words, cosines, 4).tolist(), [1, 2, 3, 0])
        self.assertEqual(rank.curve([words], [cosines], [5, 6, 7, 8], [{6}], (0, 4)), {0: 1 / np.log2(3), 4: 1.0})


    def test_fusion_is_that_of_searches(self):
        """The example of CollectionsTest.ScoresOfWordsAndVectorsAreAdded, in src/retrieval/collections_test.cpp."""
        texts = ["d0 The red house stands by the river.", "d1 A house of red stone, and a red roof on the house.",
                 "d2 Nobody crossed the river in winter.", "d3 The cat sleeps in the garden all day.", "d4 Leaves fell upon cold water."]
        cosines = np.array([0.2, 0.1, 0.9, -0.1, 0.4])
        words = sorted({word for text in texts for word in rank.plain_words(text)})
        stem_of = rank.stems(words)
        numbers = {stem: number for number, stem in enumerate(sorted(set(stem_of.values())))}
        scores = rank.word_scores([np.array([numbers[stem_of[word]] for word in rank.plain_words(text)]) for text in texts],
                                  [np.array([numbers[stem_of[word]] for word in rank.asked_words("Where is the red house?")])])[0]
        order = rank.fused(scores, cosines, 2).tolist()
        self.assertEqual(order, [2, 0, 1, 4, 3])
        self.assertTrue(np.allclose((scores + 2 * cosines)[order], [1.8, 1.09272, 1.0089, 0.8, -0.2], atol=1e-4))


class Q8(unittest.TestCase):
    def test_rounding(self):
        values = np.random.default_rng(1).normal(size=(4, 64)).astype(np.float32)
        values[0, :32] = 0
        back = quants.decode("Q8_0", quants.encode("Q8_0", values), values.shape)
        steps = np.abs(values.reshape(-1, 32)).max(1) / 127
        self.assertTrue((np.abs(values - back).reshape(-1, 32) <= steps[:, None] * 0.6 + 1e-7).all())


@unittest.skipUnless(torch, "PyTorch is not installed")
class Model(unittest.TestCase):
    def setUp(self):
        from embed.model import Config, Encoder
        torch.manual_seed(1)
        self.tokenizer = small_tokenizer()
        self.config = Config(vocab=len(self.tokenizer.tokens), width=64, layers=2, heads=2, ffn=96, context=32)
        self.model = Encoder(self.config).eval()

    def texts(self, *given):
        from embed.batches import Texts
        tokens = [np.array(self.tokenizer.encode(text), np.uint16) for text in given]
        starts = np.r_[0, np.cumsum([len(one) for one in tokens])]
        return Texts({"tokens": np.concatenate(tokens), "starts": starts, "titles": np.array([0])}, "cpu")

    def test_padding_changes_nothing(self):
        from embed.batches import framed
        texts = self.texts("the cat", "the other cat sat on the mat and there")
        with torch.no_grad():
            both = self.model.embed(*framed(*texts.gather(torch.tensor([0, 1])), 32))
            alone = self.model.embed(*framed(*texts.gather(torch.tensor([0])), 32))
        self.assertLess(float((both[0] - alone[0]).abs().max()), 1e-5)
        self.assertAlmostEqual(float(both[1].norm()), 1, places=5)

    def test_windows_are_sums_of_two_hops(self):
        from embed.model import Encoder
        states = torch.arange(2 * 12 * 3, dtype=torch.float).reshape(2, 12, 3)
        keep = torch.arange(12)[None] < torch.tensor([[12], [3]])
        sums, there = Encoder.windows(states, keep, 4)
        self.assertEqual(there.tolist(), [[True, True], [True, False]])
        self.assertTrue(torch.equal(sums[0, 1], states[0, 4:].sum(0)))
        self.assertTrue(torch.equal(sums[1, 0], states[1, :3].sum(0)))
        self.assertTrue(torch.equal(Encoder.windows(states[:, :4], keep[:, :4], 4)[0][0, 0], states[0, :4].sum(0)))

    def test_words_of_a_pack_are_made_of_its_tokens(self):
        from embed import pack
        arrays = {"tokens": np.array(self.tokenizer.encode("What is the cat? the mat mats"), np.uint16), "starts": np.array([0, 10])}
        arrays["starts"] = np.array([0, len(self.tokenizer.encode("What is the cat?")), len(arrays["tokens"])])
        arrays |= {"pairs/x": np.array([[0, 1, 0, 0]]), "measured": np.zeros(0, int), "measured_starts": np.array([0]),
                   "words": np.frombuffer("cat\nmat\nmats\nwhat".encode(), np.uint8), "word_stems": np.array([3, 5, 5, 9], np.uint16)}
        found = pack.all_stems(arrays, self.tokenizer.tokens)
        self.assertEqual((found["stems"].tolist(), found["stem_starts"].tolist()), ([3, 5, 5], [0, 1, 3]))

    def test_rows_are_framed_and_cut(self):
        from embed.batches import framed
        texts = self.texts("the cat", TEXT)
        ids, keep = framed(*texts.gather(torch.tensor([0, 1])), 16)
        self.assertEqual(ids[0, :4].tolist(), [CLS, *self.tokenizer.encode("the cat"), SEP])
        self.assertEqual(keep.sum(1).tolist(), [4, 16])
        self.assertEqual(int(ids[1, 15]), SEP)

    def test_a_span_and_the_text_without_it(self):
        from embed.batches import cut_out
        texts = self.texts(TEXT)
        words = torch.tensor([self.tokenizer.ids[MARK + "what"]])
        _, (passage, keep) = cut_out(texts, torch.tensor([0] * 50), 0.0, words, 64)
        whole = self.tokenizer.encode(TEXT)
        for row, n in zip(passage.tolist(), keep.sum(1).tolist()):
            left = row[1:n - 1]
            self.assertLess(len(left), len(whole))
            self.assertTrue(any(whole[:i] + whole[i + len(whole) - len(left):] == left for i in range(len(left) + 1)))

    def test_words_of_a_batch_are_scored_as_all_are(self):
        from embed.batches import Words
        chance = np.random.default_rng(5)
        passages = [chance.integers(0, 40, chance.integers(1, 30)) for _ in range(50)]
        queries = [chance.permutation(40)[:chance.integers(0, 5)] for _ in range(20)]
        rows = passages + queries
        arrays = {"stems": np.concatenate(rows).astype(np.uint16), "stem_starts": np.r_[0, np.cumsum([len(row) for row in rows])]}
        words = Words(arrays, np.arange(50), 40, "cpu")
        found = words.scores(torch.arange(50, 70), torch.arange(50)).numpy()
        expected = rank.word_scores(passages, queries)
        self.assertLess(np.abs(found - expected).max(), 1e-4)
        pairs = np.array([(50 + i, i, 0, i // 2) for i in range(20)] + [(50, i, 0, i // 2) for i in range(20, 50)], np.int32)
        misses = words.near_misses(pairs, 5, block=7)
        for (query, right, _, key), row in zip(pairs, misses):
            scores = expected[query - 50].copy()
            scores[[key * 2, key * 2 + 1]] = 0
            known = row[row >= 0]
            self.assertEqual(len(known), min(5, (scores > 0).sum()))
            self.assertTrue(np.allclose(scores[known], np.sort(scores)[::-1][:len(known)], atol=1e-4))

    def test_pairs_of_a_group_come_together_and_all_come(self):
        from embed.batches import BLOCK, Source
        rows = np.array([(i, i, i % 5, i) for i in range(160)], np.int32)
        source = Source(rows, 32, 1)
        read = np.concatenate([source.next() for _ in range(5)])
        self.assertEqual(sorted(read[:, 0].tolist()), list(range(160)))
        for begin in range(0, 160, BLOCK):
            self.assertEqual(len(set(read[begin:begin + BLOCK, 2].tolist())), 1)

    def test_file(self):
        from embed.export import read_weights, set_use, write_file
        from embed.model import Encoder
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "embed.gguf"
            write_file(path, self.model, self.tokenizer)
            meta, tensors = gguf.read(path)
            payloads = [bytes(raw) for _, _, raw in tensors.values()]
            self.assertEqual(meta["general.architecture"], "bert")
            self.assertEqual(meta["tokenizer.ggml.tokens"], self.tokenizer.tokens)
            self.assertEqual(tensors["blk.1.ffn_down.weight"][:2], ((96, 64), "Q8_0"))
            self.assertEqual(tensors["token_embd_norm.bias"][:2], ((64,), "F32"))
            other = Encoder(self.config).eval()
            read_weights(path, other)
            ids = torch.tensor([[CLS, 7, 8, SEP]])
            keep = torch.ones(1, 4, dtype=torch.bool)
            with torch.no_grad():
                near = (self.model.embed(ids, keep) * other.embed(ids, keep)).sum()
            self.assertGreater(float(near), 0.999)
            set_use(path, 2.5, 0.25, 32, 48)
            again, same = gguf.read(path)
            self.assertEqual(again.pop("chimere.retrieval.score_weight"), 2.5)
            self.assertEqual(again.pop("chimere.retrieval.hop_tokens"), 32)
            self.assertEqual(again.pop("chimere.retrieval.dimensions"), 48)
            self.assertEqual(again.pop("chimere.retrieval.least_cosine"), 0.25)
            self.assertEqual(again, meta)
            self.assertEqual([bytes(raw) for _, _, raw in same.values()], payloads)


if __name__ == "__main__":
    unittest.main()
