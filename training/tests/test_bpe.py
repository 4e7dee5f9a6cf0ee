"""Tests of the byte-level BPE tokenizer: pre-tokenizer, training against a naive trainer, round trips, saved form."""

import pathlib
import pickle
import random
import sys
import tempfile
import unicodedata
import unittest
from collections import Counter
from multiprocessing import Pool

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from nano import bpe  # noqa: E402

TEXT = (
    "The quick brown fox jumps over the lazy dog. The dog doesn't mind; the fox thinks it's fun!\n\n"
    "def add(a, b):\n    return a + b\n\nShe said: “Déjà vu — 12 of 345 naïve cafés…”\n"
) * 3
HOSTILE = [
    "",
    " ",
    "\n",
    "\r\n \t\n  x",
    "   leading and trailing   ",
    "a" * 5000,
    "-" * 3000 + "\n" * 50,
    "\x00\x01\x1c\x1f\x7f\x85\xa0",
    "I'LL we'Ve x'S 'tis ''s",
    "日本語 한국어 हिन्दी עברית \u200d👩‍👩‍👧‍👦 🏳️‍🌈",
    "½ Ⅷ ٣ 12345 x²",
    "\u2028\u2029\u3000\u1680 z",
    "\U0010ffff\ue000\ufffd\ufeff",
    "<|im_start|>user\nhi<|im_end|>\n<think>\n\n</think>",
    "<think</think>><tool_call<tools></tools>",
]


def words_of(*texts):
    counter = Counter()
    bpe.count_words(texts, counter)
    return counter


def small_tokenizer(size=360):
    return bpe.train(words_of(TEXT), size, bpe.SPECIALS)


def naive_train(word_counts, wanted):
    """All pairs are counted anew before each merge."""
    words = [[bytes([byte]) for byte in bpe.utf8(word)] for word in sorted(word_counts)]
    weights = [word_counts[word] for word in sorted(word_counts)]
    vocabulary = [bytes([byte]) for byte in range(256)]
    merges = []
    while len(vocabulary) < wanted:
        counts = Counter()
        for word, weight in zip(words, weights):
            for pair in zip(word, word[1:]):
                counts[pair] += weight
        left, right = min(counts, key=lambda pair: (-counts[pair], pair))
        if left + right not in vocabulary:
            vocabulary.append(left + right)
        if (left, right) not in merges:
            merges.append((left, right))
        words = [bpe.replace_pair(word, left, right, left + right) for word in words]
    return vocabulary, merges


def naive_encode(word, tokenizer):
    ranks = {(a, b): (rank, merged) for rank, (a, b, merged) in enumerate(tokenizer.merges)}
    ids = list(bpe.utf8(word))
    while True:
        known = [(ranks[pair][0], i) for i, pair in enumerate(zip(ids, ids[1:])) if pair in ranks]
        if not known:
            return ids
        _, i = min(known)
        ids[i : i + 2] = [ranks[ids[i], ids[i + 1]][1]]


def random_text(rng, length):
    alphabets = ["ab", "abc XY", " \t\n\r'sStT", "é\u0301e\u0323漢½٣", "<>|/_thinkm"]
    alphabets += ["09.,-—“”’\u2009\u00a0", "😀\x00\x1c\x85"]
    return "".join(rng.choice(rng.choice(alphabets)) for _ in range(length))


class PreTokens(unittest.TestCase):
    def test_examples(self):
        self.assertEqual(bpe.pre_tokens("Hello, world's  end 42!\n\nOK"),
                         ["Hello", ",", " world", "'s", " ", " end", " ", "4", "2", "!\n\n", "OK"])
        self.assertEqual(bpe.pre_tokens("  \n  x \t "), ["  \n", " ", " x", " \t "])
        self.assertEqual(bpe.pre_tokens("“It’s”—cafés"), ["“It", "’s", "”—", "cafés"])

    def test_combining_marks_belong_to_the_word(self):
        self.assertEqual(bpe.pre_tokens("cafe\u0301 q\u0323\u0307"), ["café", " q\u0323\u0307"])

    def test_ascii_expression_equals_the_unicode_one(self):
        rng = random.Random(1)
        for _ in range(3000):
            text = "".join(rng.choice("abZ09 '\n\r\t\x0b\x1c.,<_sSlLdD") for _ in range(rng.randrange(30)))
            self.assertEqual(bpe.ASCII_WORD.findall(text), bpe.UNICODE_WORD.findall(text))

    def test_cutting_at_lines_changes_nothing(self):
        rng = random.Random(2)
        for _ in range(3000):
            text = unicodedata.normalize("NFC", random_text(rng, rng.randrange(40)))
            self.assertEqual(bpe.pre_tokens(text), bpe.UNICODE_WORD.findall(text))
            self.assertEqual("".join(bpe.pre_tokens(text)), text)

    def test_special_tokens_are_not_counted(self):
        self.assertEqual(words_of("a<|im_end|> b<think>a"), Counter({"a": 2, " b": 1}))


class Training(unittest.TestCase):
    def test_equals_naive_training(self):
        rng = random.Random(3)
        for round_ in range(30):
            letters = "ab" if round_ % 2 else "abcdé"
            counts = Counter()
            for _ in range(60):
                word = "".join(rng.choice(letters) for _ in range(rng.randrange(1, 12)))
                counts[word] += rng.randrange(1, 6)
            vocabulary, merges = naive_train(counts, 300)
            tokenizer = bpe.train(counts, 300, [])
            self.assertEqual(tokenizer.tokens, vocabulary)
            self.assertEqual([(vocabulary[a], vocabulary[b]) for a, b, _ in tokenizer.merges], merges)

    def test_order_of_the_counter_does_not_matter(self):
        counts = words_of(TEXT)
        again = Counter(dict(reversed(list(counts.items()))))
        self.assertEqual(bpe.train(counts, 360).merges, bpe.train(again, 360).merges)

    def test_size_and_places_of_the_specials(self):
        tokenizer = small_tokenizer()
        self.assertEqual(tokenizer.vocab_size, 360)
        self.assertEqual(tokenizer.special_ids["<|endoftext|>"], 349)
        self.assertEqual(tokenizer.special_ids["</tools>"], 359)
        self.assertEqual(len(set(tokenizer.pieces)), 360)

    def test_never_learns_a_special_token(self):
        counts = Counter({"<t>": 100, "<t>x": 5})
        with self.assertRaises(ValueError):
            bpe.train(counts, 261, [("<t>", bpe.CONTROL)])
        tokenizer = bpe.train(counts, 260, [("<t>", bpe.CONTROL)])
        self.assertNotIn(b"<t>", tokenizer.tokens)

    def test_rare_words_are_dropped(self):
        with self.assertRaises(ValueError):
            bpe.train(Counter({"abc": 1}), 257, [], min_count=2)
        self.assertEqual(bpe.train(Counter({b"abc": 2}), 258, [], min_count=2).tokens[-1], b"abc")

    def test_refuses_a_size_below_the_bytes(self):
        with self.assertRaises(ValueError):
            bpe.train(Counter(), 256, bpe.SPECIALS)


class Encoding(unittest.TestCase):
    def test_round_trip(self):
        tokenizer = small_tokenizer()
        rng = random.Random(4)
        for text in HOSTILE + [TEXT] + [random_text(rng, rng.randrange(60)) for _ in range(500)]:
            expected = unicodedata.normalize("NFC", text)
            self.assertEqual(tokenizer.decode(tokenizer.encode(text, specials=False)), expected)
            self.assertEqual(tokenizer.decode(tokenizer.encode(text)), expected)

    def test_round_trip_of_raw_bytes(self):
        tokenizer = small_tokenizer()
        rng = random.Random(5)
        for data in [bytes(range(256)), b"\xff\xfe\x80", b"caf\xc3"] + [rng.randbytes(20) for _ in range(200)]:
            text = data.decode("utf-8", "surrogateescape")
            if unicodedata.is_normalized("NFC", text):
                self.assertEqual(tokenizer.decode_bytes(tokenizer.encode(text)), data)

    def test_lone_surrogates_are_replaced(self):
        tokenizer = small_tokenizer()
        self.assertEqual(tokenizer.decode(tokenizer.encode("a\ud800b")), "a?b")

    def test_incomplete_characters_show_as_replacement(self):
        self.assertEqual(small_tokenizer().decode([0xC3]), "\ufffd")

    def test_equals_naive_encoding(self):
        tokenizer = small_tokenizer()
        rng = random.Random(6)
        for _ in range(500):
            word = "".join(rng.choice("the quickbrown aaé") for _ in range(rng.randrange(25)))
            ids = bpe.merge_word(bpe.utf8(word), tokenizer._cache.ranks)
            self.assertEqual(list(ids), naive_encode(word, tokenizer))

    def test_long_words_are_not_quadratic(self):
        tokenizer = bpe.train(Counter({"a" * 64: 1}), 262, [])
        self.assertEqual(tokenizer.encode("a" * 320_000), [261] * 5000)

    def test_special_tokens(self):
        tokenizer = small_tokenizer()
        start, end = tokenizer.special_ids["<|im_start|>"], tokenizer.special_ids["<|im_end|>"]
        text = "<|im_start|>a<|im_end|>"
        self.assertEqual(tokenizer.encode(text), [start, ord("a"), end])
        self.assertLess(max(tokenizer.encode(text, specials=False)), len(tokenizer.tokens))

    def test_longest_special_wins(self):
        tokenizer = bpe.train(Counter(), 259, [("<a", bpe.CONTROL), ("<a>", bpe.CONTROL), ("a>b", bpe.CONTROL)])
        self.assertEqual(tokenizer.encode("<a>b<a"), [257, ord("b"), 256])


class SavedForm(unittest.TestCase):
    def test_save_and_load(self):
        tokenizer = small_tokenizer()
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "tokenizer.json"
            tokenizer.save(path)
            loaded = bpe.Tokenizer.load(path)
            with Pool(2, bpe.start_worker, (path,)) as pool:
                batches = pool.map(bpe.encode_in_worker, [[TEXT], HOSTILE])
        self.assertEqual((loaded.tokens, loaded.merges), (tokenizer.tokens, tokenizer.merges))
        self.assertEqual(loaded.specials, tokenizer.specials)
        self.assertEqual(loaded.gguf_fields(), tokenizer.gguf_fields())
        self.assertEqual(batches[0] + batches[1], tokenizer.encode_many([TEXT] + HOSTILE))

    def test_pickle(self):
        tokenizer = small_tokenizer()
        self.assertEqual(pickle.loads(pickle.dumps(tokenizer)).encode(TEXT), tokenizer.encode(TEXT))

    def test_gguf_fields(self):
        tokenizer = small_tokenizer()
        fields = tokenizer.gguf_fields()
        self.assertEqual((fields["model"], fields["pre"]), ("gpt2", "qwen35"))
        self.assertEqual((fields["bos"], fields["add_bos"]), (None, False))
        self.assertEqual(fields["tokens"][fields["eos"]], "<|im_end|>")
        self.assertEqual(fields["tokens"][fields["padding"]], "<|endoftext|>")
        self.assertEqual(fields["tokens"][ord(" ")], "Ġ")
        self.assertEqual(fields["tokens"][ord("\n")], "Ċ")
        self.assertEqual(fields["token_types"], [1] * 349 + [3] * 3 + [4] * 8)
        left, right = fields["merges"][0].split(" ")
        self.assertEqual(left + right, fields["tokens"][256])
        self.assertEqual(len(fields["tokens"]), 360)


if __name__ == "__main__":
    unittest.main()
