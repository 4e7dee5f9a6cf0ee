"""Batches out of a pack: rows of tokens gathered on the device, pairs of a group side by side, spans cut out of running text,
and what texts have in common by words.
"""

import numpy as np
import torch

from . import rank
from .wordpiece import CLS, MASK, PAD, SEP, SPECIALS

BLOCK = 16  # pairs of one group that come together
MASKED = 0.2
ROUND = 32  # rows are padded to a multiple of this; hops of windows divide it


class Texts:
    """All texts of a pack on the device."""

    def __init__(self, arrays, device):
        self.tokens = torch.from_numpy(arrays["tokens"].astype(np.int32)).to(device)
        starts = torch.from_numpy(arrays["starts"].astype(np.int64)).to(device)
        self.starts, self.lengths = starts[:-1], starts[1:] - starts[:-1]
        self.titles = torch.from_numpy(arrays["titles"].astype(np.int64)).to(device)
        self.device = device

    def gather(self, numbers, skip=None):
        """(ids, keep) of texts, padded; skip: (first, count) of a span of each that is left out."""
        starts, lengths = self.starts[numbers], self.lengths[numbers]
        if skip is not None:
            lengths = lengths - skip[1]
        at = torch.arange(max(int(lengths.max()), 1), device=self.device)[None]
        keep = at < lengths[:, None]
        from_at = at if skip is None else at + skip[1][:, None] * (at >= skip[0][:, None])
        return self.take(starts[:, None] + from_at, keep), keep

    def spans(self, numbers, first, count):
        at = torch.arange(int(count.max()), device=self.device)[None]
        keep = at < count[:, None]
        return self.take((self.starts[numbers] + first)[:, None] + at, keep), keep

    def take(self, places, keep):
        ids = self.tokens[places.clamp(max=len(self.tokens) - 1)].long()
        return ids.masked_fill(~keep, PAD)


class Words:
    """BM25 between texts of a pack, as they stand in the passages of one source."""

    def __init__(self, arrays, passages, n_stems, device):
        self.stems = torch.from_numpy(arrays["stems"].astype(np.int32)).to(device)
        starts = arrays["stem_starts"].astype(np.int64)
        self.starts, self.lengths = torch.from_numpy(starts[:-1]).to(device), torch.from_numpy(np.diff(starts)).to(device)
        rows = [arrays["stems"][starts[number]:starts[number + 1]] for number in passages]
        with_stem = np.zeros(n_stems, np.int64)
        for row in rows:
            with_stem[np.unique(row)] += 1
        self.idf = torch.from_numpy(rank.idf(len(rows), with_stem)).float().to(device)
        self.mean_length = max(float(np.mean([len(row) for row in rows])), 1.0)
        self.device = device

    def gather(self, numbers):
        """(stems, which are there, their rows) of texts, padded."""
        lengths = self.lengths[numbers]
        at = torch.arange(max(int(lengths.max()), 1), device=self.device)[None]
        keep = at < lengths[:, None]
        places = (self.starts[numbers][:, None] + at).clamp(max=len(self.stems) - 1)
        return self.stems[places].long(), keep

    def scores(self, queries, passages):
        """[queries, passages]. Columns are the stems of the queries alone, which are few."""
        asked, is_asked = self.gather(queries)
        wanted = torch.unique(asked[is_asked])
        column = torch.full((len(self.idf),), len(wanted), device=self.device)
        column[wanted] = torch.arange(len(wanted), device=self.device)
        weights = torch.zeros(len(queries), len(wanted) + 1, device=self.device)
        weights.scatter_(1, column[asked].masked_fill(~is_asked, len(wanted)), self.idf[asked])
        stems, keep = self.gather(passages)
        counts = torch.zeros(len(passages), len(wanted) + 1, device=self.device)
        counts.scatter_add_(1, column[stems].masked_fill(~keep, len(wanted)), torch.ones_like(stems, dtype=torch.float))
        lengths = self.lengths[passages][:, None]
        return weights[:, :-1] @ rank.gain(counts[:, :-1], lengths, self.mean_length).T

    def near_misses(self, pairs, n, block=2048):
        """[pairs, n] passages that words find for each query and that do not answer it, the nearest first; -1: no more."""
        passages, first = np.unique(pairs[:, 1], return_index=True)
        keys = torch.from_numpy(pairs[first, 3]).to(self.device)
        numbers = torch.from_numpy(passages).long().to(self.device)
        out = np.full((len(pairs), n), -1, np.int32)
        for begin in range(0, len(pairs), block):
            rows = torch.from_numpy(pairs[begin:begin + block]).long().to(self.device)
            scores = torch.cat([self.scores(rows[:, 0], part) for part in numbers.split(2 * block)], 1)
            scores = scores.masked_fill((rows[:, 3:] == keys) | (rows[:, 1:2] == numbers), 0)
            found = scores.topk(min(n, len(numbers)), 1)
            misses = numbers[found.indices].masked_fill(found.values <= 0, -1)
            out[begin:begin + block, :misses.shape[1]] = misses.cpu().numpy()
        return out


def compact(ids, keep):
    """The kept tokens of each row moved to its front, in their order."""
    order = torch.sort((~keep).to(torch.uint8), dim=1, stable=True).indices
    return ids.gather(1, order), keep.gather(1, order)


def framed(ids, keep, longest):
    """[CLS] text [SEP], cut where it is too long, padded to whole multiples of ROUND."""
    ids, keep = ids[:, :longest - 2], keep[:, :longest - 2]
    n = keep.sum(1, keepdim=True)
    width = -(-(int(n.max()) + 2) // ROUND) * ROUND
    out = torch.full((len(ids), width), PAD, dtype=torch.long, device=ids.device)
    n_read = min(ids.shape[1], width - 2)
    out[:, 1:1 + n_read] = ids[:, :n_read]
    out[:, 0] = CLS
    out.scatter_(1, n + 1, SEP)
    return out, torch.arange(width, device=ids.device)[None] < n + 2


def without_some(ids, keep, share):
    """Rows that lost a share of their tokens; none loses all."""
    kept = keep & (torch.rand(ids.shape, device=ids.device) >= share)
    kept[:, 0] |= ~kept.any(1)
    return compact(ids, kept)


def with_titles(texts, ids, keep, share):
    """Some rows behind a file's name, as an index embeds them."""
    chosen = texts.titles[torch.randint(len(texts.titles), (len(ids),), device=ids.device)]
    names, named = texts.gather(chosen)
    named = named & (torch.rand(len(ids), 1, device=ids.device) < share)
    return compact(torch.cat([names, ids], 1), torch.cat([named, keep], 1))


def hidden(ids, keep, vocab):
    """(ids with some tokens hidden, which ones)."""
    chosen = keep & (ids >= len(SPECIALS)) & (torch.rand(ids.shape, device=ids.device) < MASKED)
    dice = torch.rand(ids.shape, device=ids.device)
    masked = torch.where(chosen & (dice < 0.8), MASK, ids)
    other = torch.randint(len(SPECIALS), vocab, ids.shape, device=ids.device)
    return torch.where(chosen & (dice >= 0.8) & (dice < 0.9), other, masked), chosen


def cut_out(texts, numbers, keep_span, question_words, longest):
    """(query, passage) rows: a span of each text, words missing, and the text without it (in some rows with it)."""
    lengths = texts.lengths[numbers]
    n = len(numbers)
    count = torch.minimum(torch.randint(5, 30, (n,), device=texts.device), (lengths // 2).clamp(min=1))
    first = (torch.rand(n, device=texts.device) * (lengths - count + 1)).long()
    query, known = texts.spans(numbers, first, count)
    query, known = without_some(query, known, 0.15)
    # Half of them begin as a question does.
    asking = question_words[torch.randint(len(question_words), (n, 1), device=texts.device)]
    begins = torch.rand(n, 1, device=texts.device) < 0.5
    query, known = compact(torch.cat([asking, query], 1), torch.cat([begins, known], 1))
    removed = torch.where(torch.rand(n, device=texts.device) < keep_span, 0, count)
    passage, shown = texts.gather(numbers, (first, removed))
    return framed(query, known, longest), framed(passage, shown, longest)


class Source:
    """The pairs of one source, again and again, in an order that puts pairs of a group together."""

    def __init__(self, pairs, batch, seed):
        self.pairs, self.batch = pairs, min(batch, len(pairs))  # rows of (query, passage, group, key, ...)
        self.chance = np.random.default_rng(seed)
        self.order, self.at = np.zeros(0, np.int64), 0

    def shuffle(self):
        order = self.chance.permutation(len(self.pairs))
        order = order[np.argsort(self.pairs[order, 2], kind="stable")]
        groups = self.pairs[order, 2]
        starts = np.flatnonzero(np.r_[True, groups[1:] != groups[:-1]])
        within = np.arange(len(order)) - np.repeat(starts, np.diff(np.r_[starts, len(order)]))
        block = np.cumsum((within % BLOCK) == 0) - 1
        place = self.chance.permutation(block[-1] + 1)
        self.order, self.at = order[np.argsort(place[block], kind="stable")], 0

    def next(self):
        if self.at + self.batch > len(self.order):
            self.shuffle()
        chosen = self.order[self.at:self.at + self.batch]
        self.at += self.batch
        return self.pairs[chosen]
