"""A 5-gram language model over token ids with interpolated modified Kneser-Ney smoothing: the baseline to beat.

    python3 -m nano.ngram train.bin held_out.bin...

The files hold unsigned 16-bit token ids; bit 15 is a flag of the training loop and is ignored. Documents follow each
other in one stream, their border being an ordinary token. Prints the perplexity of each held-out file.

The n-grams of each length are numbered by a sort, so that a longer one is the number of its context and its last
token packed into one integer. Counts below the highest order are continuation counts: in how many different
(n+1)-grams the n-gram is the suffix. Shortest of all is the uniform distribution over the vocabulary.
"""

import argparse
import dataclasses

import numpy as np

ORDER = 5
VOCABULARY = 8192
MOST_TOKENS = 60_000_000
ID_BITS = 0x7FFF


@dataclasses.dataclass
class Level:
    """The n-grams of one length, and what each context of that length less one keeps and gives away."""

    keys: np.ndarray  # context id * vocabulary + token, ascending; the place of a key is the id of the n-gram
    counts: np.ndarray  # raw at the highest order, continuation counts below
    discounts: np.ndarray  # taken off a count of 0, 1, 2, and 3 or more
    totals: np.ndarray  # by context: sum of the counts
    backoff: np.ndarray  # by context: weight of the next shorter level, 1 where the context was never continued


@dataclasses.dataclass
class Model:
    vocabulary: int
    levels: list


def discounts_of(counts):
    """The discounts of Chen and Goodman for counts of 1, 2, and 3 or more, from how many n-grams occur 1 to 4 times."""
    n1, n2, n3, n4 = np.bincount(np.minimum(counts, 5), minlength=6)[1:5].tolist()
    if 0 in (n1, n2, n3, n4):
        return np.array([0.0, 0.5, 1.0, 1.5])  # too little text for the estimate
    y = n1 / (n1 + 2 * n2)
    estimates = [0.0, 1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, 3 - 4 * y * n4 / n3]
    return np.clip(estimates, 0, [0, 1, 2, 3])


def make_level(keys, counts, n_contexts, vocabulary):
    discounts = discounts_of(counts)
    contexts = keys // vocabulary
    totals = np.bincount(contexts, counts, n_contexts)
    kept_back = np.bincount(contexts, discounts[np.minimum(counts, 3)], n_contexts)
    backoff = np.divide(kept_back, totals, out=np.ones(n_contexts), where=totals > 0)
    return Level(keys, counts, discounts, totals, backoff)


def number_ngrams(contexts, tokens, vocabulary):
    """The distinct (context, token) pairs: keys, how often each occurs, a place of each, and the id at every place."""
    keys = contexts.astype(np.int64) * vocabulary + tokens
    order = np.argsort(keys)
    keys = keys[order]
    fresh = np.concatenate(([True], keys[1:] != keys[:-1]))
    starts = np.flatnonzero(fresh)
    ids = np.empty(len(keys), np.int32)
    ids[order] = np.cumsum(fresh, dtype=np.int32) - 1
    return keys[starts], np.diff(starts, append=len(keys)), order[starts], ids


def train(tokens, vocabulary=VOCABULARY, order=ORDER):
    """The model of a stream of token ids."""
    tokens = checked(tokens, vocabulary)
    if len(tokens) < order:
        raise ValueError(f"{len(tokens)} tokens are too few for {order}-grams")
    levels = []
    ids = np.zeros(len(tokens) + 1, np.int32)  # of the shorter n-gram that starts at each place; at first the empty one
    n_contexts = n_shorter = 1
    shorter_keys = None
    for length in range(1, order + 1):
        keys, raw_counts, places, longer_ids = number_ngrams(ids[:-1], tokens[length - 1 :], vocabulary)
        if shorter_keys is not None:
            continuations = np.bincount(ids[places + 1], minlength=n_shorter)
            levels.append(make_level(shorter_keys, continuations, n_contexts, vocabulary))
        n_contexts, n_shorter = n_shorter, len(keys)
        shorter_keys, ids = keys, longer_ids
    levels.append(make_level(shorter_keys, raw_counts, n_contexts, vocabulary))
    return Model(vocabulary, levels)


def checked(tokens, vocabulary):
    tokens = np.asarray(tokens)
    if len(tokens) and (tokens.min() < 0 or tokens.max() >= vocabulary):
        raise ValueError(f"token ids from {tokens.min()} to {tokens.max()} in a vocabulary of {vocabulary}")
    return tokens


def look_up(keys, wanted):
    """Places of the wanted keys, -1 for those that are not there."""
    places = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[places] == wanted, places, -1)


def probabilities(model, tokens):
    """The probability of each token after those before it; the first ones have a shorter context."""
    tokens = checked(tokens, model.vocabulary)
    result = np.full(len(tokens), 1 / model.vocabulary)
    contexts = np.zeros(len(tokens), np.int64)
    for level in model.levels:
        ngrams = look_up(level.keys, contexts * model.vocabulary + tokens)
        ngrams[contexts < 0] = -1
        use = contexts >= 0
        use[use] = level.totals[contexts[use]] > 0
        counts = np.where(ngrams >= 0, level.counts[ngrams], 0)[use]
        own = (counts - level.discounts[np.minimum(counts, 3)]) / level.totals[contexts[use]]
        result[use] = own + level.backoff[contexts[use]] * result[use]
        contexts = np.concatenate(([-1], ngrams))[: len(tokens)]
    return result


def perplexity(model, tokens):
    """Perplexity of a stream of token ids. The first is context only: nothing stands before it to tell it from."""
    if len(tokens) < 2:
        raise ValueError("perplexity needs at least two tokens")
    return float(np.exp(-np.log(probabilities(model, tokens)[1:]).mean()))


def read_tokens(path, most=-1):
    return np.fromfile(path, np.uint16, most) & ID_BITS


def main():
    parser = argparse.ArgumentParser(description="Perplexity of a Kneser-Ney n-gram model on held-out tokens.")
    parser.add_argument("train", help="token ids to count")
    parser.add_argument("held_out", nargs="+", help="token ids to measure")
    parser.add_argument("--order", type=int, default=ORDER)
    parser.add_argument("--vocabulary", type=int, default=VOCABULARY)
    parser.add_argument("--most-tokens", type=int, default=MOST_TOKENS, help="training tokens to read at most")
    options = parser.parse_args()
    tokens = read_tokens(options.train, options.most_tokens)
    model = train(tokens, options.vocabulary, options.order)
    print(f"{options.train}: {len(tokens)} tokens, {len(model.levels[-1].keys)} different {options.order}-grams")
    for path in options.held_out:
        held_out = read_tokens(path)
        print(f"{path}: {len(held_out)} tokens, perplexity {perplexity(model, held_out):.3f}")


if __name__ == "__main__":
    main()
