"""What training reads: texts as tokens, pairs of them, and the held-out questions, in one compressed file."""

import io
import lzma
import random

import numpy as np

from . import pairs, rank
from .passages import chunks, share

LONGEST = 318  # tokens of a text, less than the context by [CLS] and [SEP]
LONGEST_QUERY = 64
TITLES = 400  # names that stand before some passages, as an index puts a file's name there


class Texts:
    """Each text once, as tokens."""

    def __init__(self, tokenizer):
        self.tokenizer = tokenizer
        self.numbers, self.tokens = {}, []

    def add(self, text, longest=LONGEST):
        number = self.numbers.setdefault(text, len(self.tokens))
        if number == len(self.tokens):
            self.tokens.append(np.array(self.tokenizer.encode(text)[:longest], np.uint16))
        return number

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
    out = [(texts.add(pair.query, LONGEST_QUERY) if pair.query else -1, texts.add(pair.passage), group, key)
           for pair, group, key in zip(found, groups, keys)]
    return np.array(out, np.int32).reshape(-1, 4)


def evaluation(texts, documents, questions):
    """documents: texts; questions: (text, numbers of the right documents)."""
    pieces = [(number, piece) for number, text in enumerate(documents) for piece in chunks(text)]
    asked = [question for question, _ in questions]
    by_words = np.full((len(asked), rank.CANDIDATES), -1, np.int32)
    for row, found in zip(by_words, rank.by_words([piece for _, piece in pieces], asked)):
        row[:len(found)] = found
    return {
        # The engine embeds a document's name before each chunk; theirs say nothing.
        "chunks": np.array([texts.add(f"d{number}\n{piece}") for number, piece in pieces], np.int32),
        "document": np.array([number for number, _ in pieces], np.int32),
        "questions": np.array([texts.add(question, LONGEST_QUERY) for question in asked], np.int32),
        "right": np.array([(i, d) for i, (_, right) in enumerate(questions) for d in sorted(right)], np.int32),
        "fitted": np.array([share("fit " + question) < 0.5 for question in asked]),
        "words": by_words,
    }


def medquad_questions(rows):
    right = {}
    for number, row in enumerate(rows):
        right.setdefault(row["q"], set()).add(number)
    return [row["a"] for row in rows], list(right.items())


def tale_questions(tales):
    documents, questions = [], []
    for tale in tales:
        first = len(documents)
        documents += tale["sections"]
        for qa in tale["qa"]:
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
    sets = {
        "medquad": medquad_questions(pairs.held_out_medquad(data)),
        "fairytaleqa": tale_questions(pairs.held_out_tales(data)),
    }
    for name, (documents, questions) in sets.items():
        for part, values in evaluation(texts, documents, questions).items():
            arrays[f"held_out/{name}/{part}"] = values
    arrays |= texts.arrays()
    with lzma.open(path, "wb", preset=9) as stream:
        np.savez(stream, **arrays)
    return arrays


def read(path):
    with lzma.open(path, "rb") as stream:
        return dict(np.load(io.BytesIO(stream.read())))
