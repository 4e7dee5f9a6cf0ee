"""chimere-embed: its words and pieces, its pairs, how results are counted, its batches, the encoder and its file."""

import pathlib
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
    def test_words_find_by_stems(self):
        found = rank.by_words(["a horse ran", "two cats slept", "the weather"], ["Where did the cat sleep?", "horses", "zebra"])
        self.assertEqual(found, [[1], [0], []])

    def test_ndcg_counts_documents_once(self):
        self.assertAlmostEqual(rank.ndcg([0, 1, 2], [5, 5, 6], {6}), 1 / np.log2(3))
        self.assertAlmostEqual(rank.ndcg([2, 0], [5, 5, 6], {5, 6}), 1.0)

    def test_fusion_with_weight_0_is_by_words(self):
        self.assertEqual(rank.fused([3, 1], [2, 1], 0)[:2], [3, 1])
        self.assertEqual(rank.fused([3, 1], [2, 1], 1)[0], 1)


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
            set_use(path, 2.5, 0.25)
            again, same = gguf.read(path)
            self.assertEqual(again.pop("chimere.retrieval.vector_weight"), 2.5)
            self.assertEqual(again.pop("chimere.retrieval.least_cosine"), 0.25)
            self.assertEqual(again, meta)
            self.assertEqual([bytes(raw) for _, _, raw in same.values()], payloads)


if __name__ == "__main__":
    unittest.main()
