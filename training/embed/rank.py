"""How well held-out questions find their documents: by words (SQLite's BM25, as the engine has it), by vectors, by both."""

import math
import re
import sqlite3

CANDIDATES = 64
RANKED = 10
FUSION_RANK = 60
WEIGHTS = (0, 0.1, 0.2, 0.35, 0.5, 0.75, 1, 1.5, 2, 3, 4, 6)
# The words that the engine leaves out of a question (src/retrieval/words.cpp).
SMALL = frozenset("""a about all am an and any are as at be been but by called can could did do does for from get give had has have
he her him his how i if in into is it its know many may me much must my name named no not of on or our out please s say she should so
some such t tell than that the their them then there these they this to us was we were what when where which who whom whose why will
with would you your yours""".split())


def by_words(texts, questions):
    """For each question the numbers of the best texts, at most CANDIDATES."""
    base = sqlite3.connect(":memory:")
    base.execute("CREATE VIRTUAL TABLE words USING fts5(body, content='', tokenize=\"porter unicode61 remove_diacritics 2\")")
    base.executemany("INSERT INTO words(rowid, body) VALUES(?, ?)", enumerate(texts))
    found = []
    for question in questions:
        all_terms = [term.lower() for term in re.findall(r"[^\W_]+", question)]
        terms = [term for term in all_terms if term not in SMALL] or all_terms
        match = " OR ".join(f'"{term}"' for term in dict.fromkeys(terms))
        rows = base.execute("SELECT rowid FROM words WHERE words MATCH ? ORDER BY rank LIMIT ?", (match, CANDIDATES)) if match else ()
        found.append([row[0] for row in rows])
    return found


def fused(by_word, by_vector, weight):
    """Reciprocal rank fusion, as src/retrieval/rank_fusion.h has it; equals in the order of words, then vectors."""
    scores = {}
    for number, text in enumerate(by_word):
        scores[text] = 1 / (FUSION_RANK + number + 1)
    for number, text in enumerate(by_vector):
        scores[text] = scores.get(text, 0) + weight / (FUSION_RANK + number + 1)
    return sorted(scores, key=lambda text: -scores[text])


def ndcg(ranked, document_of, right):
    """nDCG@10 of documents: the best chunk of each counts."""
    gain, seen = 0.0, set()
    for text in ranked:
        document = document_of[text]
        if document in seen:
            continue
        seen.add(document)
        if len(seen) > RANKED:
            break
        gain += (document in right) / math.log2(len(seen) + 1)
    return gain / sum(1 / math.log2(i + 2) for i in range(min(len(right), RANKED)))


def mean(values):
    values = list(values)
    return sum(values) / max(len(values), 1)


def report(words, vectors, document_of, right, is_fitted, weights=WEIGHTS):
    """{words, vectors, hybrid, weight} over the questions that the weight was not fitted on, and `fitted`: nDCG at each weight
    over the others."""

    def score(which, weight):
        return mean(ndcg(fused(words[i], vectors[i], weight), document_of, right[i])
                    for i in range(len(right)) if is_fitted[i] == which)

    measured = [i for i in range(len(right)) if not is_fitted[i]]
    fitted = {each: score(True, each) for each in weights}
    weight = max(weights, key=fitted.get)
    return {
        "questions": len(measured),
        "words": mean(ndcg(words[i], document_of, right[i]) for i in measured),
        "vectors": mean(ndcg(vectors[i], document_of, right[i]) for i in measured),
        "recall10": mean(bool(right[i] & {document_of[text] for text in vectors[i][:RANKED]}) for i in measured),
        "weight": weight,
        "hybrid": score(False, weight),
        "hybrid at weight 1": score(False, 1),
        "fitted": fitted,
    }


def common_weight(curves):
    """The weight that is best for all sets together: the largest product of their figures."""
    return max(curves[0], key=lambda weight: math.prod(curve[weight] for curve in curves))
