"""What training reads: texts as tokens and as stems, pairs of them, and the questions that are measured, in one compressed
file.
"""

import io
import lzma
import random
from collections import Counter

import numpy as np

from . import pairs, rank
from .passages import chunks
from .wordpiece import MARK, SPECIALS

LONGEST = 318  # tokens of a text, less than the context by [CLS] and [SEP]
LONGEST_QUERY = 64
TITLES = 400  # names that stand before some passages, as an index puts a file's name there
# Of the stems the commonest have a number of their own, the others share one with a few.
OWN_STEMS, SHARED_STEMS = 49152, 16384
N_STEMS = OWN_STEMS + SHARED_STEMS


class Texts:
    """Each text once, as tokens."""

    def __init__(self, tokenizer):
        self.tokenizer = tokenizer
        self.numbers, self.tokens = {}, []
        self.words = {}  # of those that are compared by words: number of the text to its words
        self.measured = set()  # those whose stems are kept as they are

    def add(self, text, longest=LONGEST):
        number = self.numbers.setdefault(text, len(self.tokens))
        if number == len(self.tokens):
            self.tokens.append(np.array(self.tokenizer.encode(text)[:longest], np.uint16))
        return number

    def add_with_words(self, text, words, longest=LONGEST):
        number = self.add(text, longest)
        self.words.setdefault(number, words)
        return number

    def add_measured(self, text, words, longest=LONGEST):
        number = self.add_with_words(text, words, longest)
        self.measured.add(number)
        return number

    def stem_arrays(self):
        """The stem of every word, and the stems of measured texts, in the order in which they stand."""
        counts = Counter()
        for words in self.words.values():
            counts.update(words)
        stem_of = rank.stems(sorted(counts))
        stem_counts = Counter()
        for word, stem in stem_of.items():
            stem_counts[stem] += counts[word]
        numbers = {stem: n if n < OWN_STEMS else OWN_STEMS + n % SHARED_STEMS for n, (stem, _) in enumerate(stem_counts.most_common())}
        number_of = {word: numbers[stem] for word, stem in stem_of.items()}
        measured = sorted(self.measured)
        rows = [np.array([number_of[word] for word in self.words[i] if word in number_of], np.uint16) for i in measured]
        return {
            "words": np.frombuffer("\n".join(number_of).encode(), np.uint8),
            "word_stems": np.array(list(number_of.values()), np.uint16),
            "measured": np.array(measured, np.int32),
            "measured_stems": np.concatenate(rows),
            "measured_starts": np.cumsum([0] + [len(row) for row in rows]).astype(np.uint32),
        }

    def arrays(self):
        starts = np.zeros(len(self.tokens) + 1, np.int64)
        np.cumsum([len(tokens) for tokens in self.tokens], out=starts[1:])
        return {"tokens": np.concatenate(self.tokens), "starts": starts.astype(np.uint32)}


def numbered(names):
    known = {}
    return [known.setdefault(name, len(known)) for name in names]


def pair_array(texts, found):
    """Rows of (query or -1, passage, group, key); a pair without group or key has one of its own."""
    groups = numbered(pair.group or f"\0{i}" for i, pair in enumerate(found))
    keys = numbered(pair.key or f"\0{i}" for i, pair in enumerate(found))

    def passage(pair):
        return texts.add_with_words(pair.passage, rank.plain_words(pair.passage)) if pair.query else texts.add(pair.passage)

    out = [(asked(texts, pair.query) if pair.query else -1, passage(pair), group, key) for pair, group, key in zip(found, groups, keys)]
    return np.array(out, np.int32).reshape(-1, 4)


def asked(texts, question):
    return texts.add_with_words(question, rank.asked_words(question), LONGEST_QUERY)


def evaluation(texts, documents, questions):
    """documents: texts; questions: (text, numbers of the right documents)."""
    pieces = [(number, piece) for number, text in enumerate(documents) for piece in chunks(text)]
    return {
        # The engine embeds a document's name before each chunk; theirs say nothing.
        "chunks": np.array([texts.add_measured(f"d{number}\n{piece}", rank.plain_words(piece)) for number, piece in pieces], np.int32),
        "document": np.array([number for number, _ in pieces], np.int32),
        "questions": np.array([texts.add_measured(question, rank.asked_words(question), LONGEST_QUERY) for question, _ in questions], np.int32),
        "right": np.array([(i, d) for i, (_, right) in enumerate(questions) for d in sorted(right)], np.int32),
    }


def medquad_questions(rows, among):
    """rows: those whose questions are asked; among: all that have an answer there."""
    right, is_asked = {}, {row["q"] for row in rows}
    for number, row in enumerate(among):
        if row["q"] in is_asked:
            right.setdefault(row["q"], set()).add(number)
    return [row["a"] for row in among], list(right.items())


def tale_questions(tales, among):
    documents, questions, is_asked = [], [], {tale["id"] for tale in tales}
    for tale in among:
        first = len(documents)
        documents += tale["sections"]
        for qa in tale["qa"] if tale["id"] in is_asked else ():
            if str(qa["section"]).isdigit() and 1 <= int(qa["section"]) <= len(tale["sections"]):
                questions.append((qa["q"], {first + int(qa["section"]) - 1}))
    return documents, questions


def titles(texts):
    chance = random.Random(1)
    kinds = ("d{}", "{}.txt", "notes-{}.md", "chapter {}", "page_{}.html", "doc{}", "file {}", "report-{}.pdf")
    return np.array([texts.add(chance.choice(kinds).format(chance.randrange(5000))) for _ in range(TITLES)], np.int32)


def write(path, data, tokenizer, sources):
    texts = Texts(tokenizer)
    arrays = {"titles": titles(texts)}
    for name, found in sources:
        arrays[f"pairs/{name}"] = pair_array(texts, found)
    medquad, tales = pairs.held_out_medquad(data), pairs.held_out_tales(data)
    sets = {
        "held_out/medquad": medquad_questions(medquad, medquad),
        "held_out/fairytaleqa": tale_questions(tales, tales),
        "kept/medquad": medquad_questions(*pairs.kept_medquad(data)),
        "kept/fairytaleqa": tale_questions(*pairs.kept_tales(data)),
    }
    for name, (documents, questions) in sets.items():
        for part, values in evaluation(texts, documents, questions).items():
            arrays[f"{name}/{part}"] = values
    arrays |= texts.stem_arrays()
    arrays |= texts.arrays()
    with lzma.open(path, "wb", preset=9) as stream:
        np.savez(stream, **arrays)
    return arrays


def read(path, tokens):
    """The arrays of a pack, with the stems of all texts that are compared: those of training's are made out of their tokens."""
    with lzma.open(path, "rb") as stream:
        arrays = dict(np.load(io.BytesIO(stream.read())))
    return arrays | all_stems(arrays, tokens)


def all_stems(arrays, tokens):
    stem_of = dict(zip(arrays["words"].tobytes().decode().split("\n"), arrays["word_stems"].tolist()))
    starts = arrays["starts"].astype(np.int64)
    rows = [()] * (len(starts) - 1)
    for name, pairs_ in arrays.items():
        if not name.startswith("pairs/"):
            continue
        for column, is_question in ((1, False), (0, True)):
            for number in np.unique(pairs_[pairs_[:, 0] >= 0, column]).tolist():
                words = words_of(arrays["tokens"][starts[number]:starts[number + 1]].tolist(), tokens)
                words = rank.telling(words) if is_question else words
                rows[number] = [stem_of[word] for word in words if word in stem_of]
    begins = arrays["measured_starts"].astype(np.int64)
    for i, number in enumerate(arrays["measured"].tolist()):
        rows[number] = arrays["measured_stems"][begins[i]:begins[i + 1]]
    stem_starts = np.cumsum([0] + [len(row) for row in rows]).astype(np.uint32)
    return {"stems": np.concatenate([np.asarray(row, np.uint16) for row in rows]), "stem_starts": stem_starts}


def words_of(ids, tokens):
    """The words that pieces spell."""
    out = []
    for i in ids:
        if i < len(SPECIALS):
            continue
        piece = tokens[i]
        if piece[0] == MARK:
            out.append(piece[1:])
        elif out:
            out[-1] += piece
    return out
