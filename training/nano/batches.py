"""Token files and the batches drawn from them.

A data folder holds `train.tokens.xz` (uint16 a token; bit 15 marks a token the model reads but does not learn to
write) and `train.items.npz` (start of each item, category, repeats). Rows are packed full: dialogues stay whole, plain
documents are cut where a row ends and go on in a later one.
"""

import json
import lzma
import multiprocessing
import pathlib
import time

import numpy as np

UNTRAINED = 1 << 15
PLAIN = ("stories", "prose", "facts", "code")


class Pool:
    """The items of one category in shuffled order, for ever."""

    def __init__(self, name, starts, ends, repeats, rng):
        self.name, self.rng = name, rng
        self.plain = name in PLAIN
        order = np.repeat(np.arange(len(starts)), repeats)
        self.starts, self.ends = starts[order], ends[order]
        self.order, self.next = rng.permutation(len(self.starts)), 0
        self.rest = None
        self.epochs = 0.0

    def take(self, room):
        """(start, end) of an item or of the part of a plain one that fits, or None when a whole item does not fit."""
        start, end = self.rest or self.peek()
        if end - start > room and not self.plain:
            return None
        self.rest = None
        if end - start > room:
            self.rest = (start + room, end)
            end = start + room
        if self.rest is None:
            self.advance()
        return start, end

    def peek(self):
        i = self.order[self.next]
        return int(self.starts[i]), int(self.ends[i])

    def advance(self):
        self.next += 1
        self.epochs += 1 / len(self.order)
        if self.next == len(self.order):
            self.order, self.next = self.rng.permutation(len(self.order)), 0


def read_folders(folders):
    """Tokens, and start, end, category and repeats of each item, of one folder or of several with ":" between them."""
    parts, at = [], 0
    for folder in map(pathlib.Path, str(folders).split(":")):
        if (folder / "train.tokens.xz").exists():
            with lzma.open(folder / "train.tokens.xz") as stream:
                tokens = np.frombuffer(stream.read(), np.uint16)
        else:
            tokens = np.fromfile(folder / "train.tokens", np.uint16)
        items = np.load(folder / "train.items.npz")
        names = np.array(json.loads((folder / "categories.json").read_text()))
        starts = items["starts"].astype(np.int64)
        ends = np.append(starts[1:], len(tokens))
        parts.append((tokens, starts + at, ends + at, names[items["categories"]], items["repeats"]))
        at += len(tokens)
    return tuple(np.concatenate(column) for column in zip(*parts))


def ready(folders, seconds):
    """Those of the folders that prepare.py has finished (contents.json comes last), once all are or after this many seconds."""
    names, until = str(folders).split(":"), time.time() + seconds
    while True:
        done = [name for name in names if (pathlib.Path(name) / "contents.json").exists()]
        if len(done) == len(names):
            return ":".join(done)
        if time.time() >= until:
            if names[0] not in done:
                raise ValueError(f"{names[0]} is not there")
            print(json.dumps({"left out": sorted(set(names) - set(done))}), flush=True)
            return ":".join(done)
        time.sleep(0.2)


class Batches:
    def __init__(self, folder, shares, length, rows, seed):
        self.tokens, starts, ends, categories, repeats = read_folders(folder)
        rng = np.random.default_rng(seed)
        self.pools = []
        for name in sorted(set(categories)):
            # An item longer than a row could never be served whole.
            mine = (categories == name) & ((ends - starts <= length) | (name in PLAIN))
            self.pools.append(Pool(name, starts[mine], ends[mine], repeats[mine], rng))
        self.length, self.rows = length, rows
        self.set_shares(shares)

    def set_shares(self, shares):
        unknown = set(shares) - {p.name for p in self.pools}
        if unknown:
            raise ValueError(f"shares name {sorted(unknown)}, the data has {[p.name for p in self.pools]}")
        self.share = np.array([shares.get(p.name, 0.0) if len(p.order) else 0.0 for p in self.pools], float)
        self.share /= self.share.sum()
        self.served = np.zeros(len(self.pools))

    def row(self, length, only_plain=False):
        """One full row: tokens with flags, and a number for each token that says to which item it belongs."""
        tokens, documents = np.empty(length, np.uint16), np.empty(length, np.int32)
        filled, count = 0, 0
        while filled < length:
            span = None
            due = np.where(self.share > 0, self.served / np.maximum(self.share, 1e-9), np.inf)
            for choice in np.argsort(due):
                pool = self.pools[choice]
                if not np.isfinite(due[choice]) or (only_plain and not pool.plain):
                    continue
                span = pool.take(length - filled)
                if span is not None:
                    break
            if span is None:
                # Nothing fits any more: the rest of the row is there but teaches nothing.
                tokens[filled:], documents[filled:] = UNTRAINED, count
                break
            start, end = span
            tokens[filled : filled + end - start] = self.tokens[start:end]
            documents[filled : filled + end - start] = count
            self.served[choice] += end - start
            filled, count = filled + end - start, count + 1
        return tokens, documents

    def batch(self):
        pairs = [self.row(self.length) for _ in range(self.rows)]
        return np.stack([t for t, _ in pairs]), np.stack([d for _, d in pairs])

    def long_batch(self, length):
        """As many tokens in fewer, longer rows of running text."""
        rows = max(1, self.rows * self.length // length)
        pairs = [self.row(length, only_plain=True) for _ in range(rows)]
        return np.stack([t for t, _ in pairs]), np.stack([d for _, d in pairs])


class Feed:
    """Batches made in a process of their own, a few ahead of the consumer: in a thread they would take turns with the training loop.

    `make_source` is called in that process. `change` sets shares and long rows from some batch on (those that are ready come first).
    """

    def __init__(self, make_source, long_length, long_every, first, depth=6):
        self.make_source, self.source, self.long_length, self.long_every = make_source, None, long_length, long_every
        self.turn, self.long_rows, self.epochs = first, False, {}
        context = multiprocessing.get_context("fork")  # the shares and the model's step are there without being sent
        self.ready, self.changes = context.Queue(depth), context.SimpleQueue()
        self.child = context.Process(target=self.work, daemon=True)
        self.child.start()

    def change(self, shares, long_rows):
        self.changes.put((shares, long_rows))

    def make(self):
        while not self.changes.empty():
            shares, self.long_rows = self.changes.get()
            self.source.set_shares(shares)
        self.turn += 1
        is_long = self.long_rows and self.long_length and self.turn % self.long_every == 0
        tokens, documents = self.source.long_batch(self.long_length) if is_long else self.source.batch()
        return (*split_flags(tokens, documents), documents), {p.name: round(p.epochs, 2) for p in self.source.pools}

    def work(self):
        try:
            self.source = self.make_source()
            while True:
                self.ready.put(self.make())
        except Exception as problem:  # handed to the consumer, which would otherwise wait for ever
            self.ready.put((problem, {}))

    def next(self):
        batch, self.epochs = self.ready.get()
        if isinstance(batch, Exception):
            raise batch
        return batch


def split_flags(tokens, documents):
    """Inputs and labels: label t is token t + 1 where that is to be learnt and belongs to the same item, else -100."""
    ids = (tokens & (UNTRAINED - 1)).astype(np.int64)
    trained = (tokens & UNTRAINED) == 0
    labels = np.full_like(ids, -100)
    good = trained[:, 1:] & (documents[:, 1:] == documents[:, :-1])
    labels[:, :-1] = np.where(good, ids[:, 1:], -100)
    return ids, labels
