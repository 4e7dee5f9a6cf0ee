"""How well held-out questions find their documents: by words (BM25, as the engine has it), by vectors, by both.

Both come together by scores: score(x) = BM25 of x + weight * cosine of x, over the best of each. BM25's points are
logarithms of odds already, and so is the cosine that training scales, so that one weight serves short and long questions.
"""

import math
import re
import sqlite3
from collections import Counter

import numpy as np

CANDIDATES = 64
RANKED = 10
WEIGHTS = (0, 1, 2, 3, 4, 6, 8, 10, 12, 15, 20, 25, 30, 40, 60, 100)
# BM25 as SQLite's FTS5 has it.
K1, B, LEAST_IDF = 1.2, 0.75, 1e-6
WORD = re.compile(r"[^\W_]+")
# The words that the engine leaves out of a question (src/retrieval/words.cpp).
SMALL = frozenset("""a about all am an and any are as at be been but by called can could did do does for from get give had has have
he her him his how i if in into is it its know many may me much must my name named no not of on or our out please s say she should so
some such t tell than that the their them then there these they this to us was we were what when where which who whom whose why will
with would you your yours""".split())


def plain_words(text):
    return WORD.findall(text.lower())


def asked_words(question):
    """The words of a question that are looked for, each once."""
    return telling(plain_words(question))


def telling(words):
    return list(dict.fromkeys([word for word in words if word not in SMALL] or words))


def stems(words):
    """{word: its stem} by FTS5's own tokenizer; a word that it cuts in two has none."""
    base = sqlite3.connect(":memory:")
    base.execute("CREATE VIRTUAL TABLE words USING fts5(body, tokenize=\"porter unicode61 remove_diacritics 2\")")
    base.execute("CREATE VIRTUAL TABLE terms USING fts5vocab(words, instance)")
    words = list(words)
    base.executemany("INSERT INTO words(rowid, body) VALUES(?, ?)", enumerate(words))
    found = Counter()
    stem = {}
    for term, number in base.execute("SELECT term, doc FROM terms"):
        found[number] += 1
        stem[words[number]] = term
    return {words[number]: stem[words[number]] for number, n in found.items() if n == 1}


def idf(n_texts, n_with):
    return np.maximum(np.log((n_texts - n_with + 0.5) / (n_with + 0.5)), LEAST_IDF)


def gain(counts, lengths, mean_length):
    """What a term of a text counts, beside its rarity."""
    return counts * (K1 + 1) / (counts + K1 * (1 - B + B * lengths / mean_length))


def word_scores(texts, questions):
    """[questions, texts] BM25; texts and questions are arrays of term numbers, those of questions each once."""
    lengths = np.array([len(text) for text in texts])
    where, counts = {}, {}
    for number, text in enumerate(texts):
        for term, n in Counter(text.tolist()).items():
            where.setdefault(term, []).append(number)
            counts.setdefault(term, []).append(n)
    scores = np.zeros((len(questions), len(texts)), np.float32)
    for row, question in zip(scores, questions):
        for term in question.tolist():
            if term in where:
                at = np.array(where[term])
                row[at] += idf(len(texts), len(at)) * gain(np.array(counts[term]), lengths[at], lengths.mean())
    return scores


def best(scores, n=CANDIDATES):
    return np.argsort(-scores, kind="stable")[:n]


def found_by(words, cosines):
    """Numbers of texts: (the best by words, these and the best by vectors)."""
    by_words = best(words)
    by_words = by_words[words[by_words] > 0]
    return by_words, np.unique(np.r_[by_words, best(cosines)])


def fused(words, cosines, weight, found=None):
    """Numbers of texts, best first, by both scores together; without a weight those that words find."""
    by_words, by_both = found or found_by(words, cosines)
    chosen = by_both if weight > 0 else by_words
    return chosen[np.argsort(-(words[chosen] + weight * cosines[chosen]), kind="stable")]


def ndcg(ranked, document_of, right):
    """nDCG@10 of documents: the best chunk of each counts."""
    total, seen = 0.0, set()
    for text in ranked:
        document = document_of[text]
        if document in seen:
            continue
        seen.add(document)
        if len(seen) > RANKED:
            break
        total += (document in right) / math.log2(len(seen) + 1)
    return total / sum(1 / math.log2(i + 2) for i in range(min(len(right), RANKED)))


def mean(values):
    values = list(values)
    return sum(values) / max(len(values), 1)


def curve(words, cosines, document_of, right, weights=WEIGHTS):
    """{weight: nDCG@10 of both together}."""
    sums = dict.fromkeys(weights, 0.0)
    for i, documents in enumerate(right):
        found = found_by(words[i], cosines[i])
        for weight in weights:
            sums[weight] += ndcg(fused(words[i], cosines[i], weight, found), document_of, documents)
    return {weight: total / max(len(right), 1) for weight, total in sums.items()}


def of_vectors(cosines, document_of, right):
    found = [best(row) for row in cosines]
    return {
        "vectors": mean(ndcg(row, document_of, right[i]) for i, row in enumerate(found)),
        "recall10": mean(bool(right[i] & {document_of[text] for text in row[:RANKED]}) for i, row in enumerate(found)),
    }


def nearness(cosines, document_of, right):
    """How near right and other documents are: what the least cosine of a file is chosen by."""
    documents = np.array(document_of)
    near, other = [], []
    for row, among in zip(cosines, right):
        is_right = np.isin(documents, list(among))
        near.append(row[is_right].max())
        other.append(row[~is_right])
    return {"right": np.quantile(near, (0.05, 0.1, 0.5)).tolist(), "others": np.quantile(np.concatenate(other), (0.5, 0.9, 0.99, 0.999)).tolist()}


def common_weight(curves):
    """The weight that is best for all sets together: the largest product of their figures."""
    return max(curves[0], key=lambda weight: math.prod(curve[weight] for curve in curves))
