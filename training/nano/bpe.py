"""Byte-level BPE with the qwen35 pre-tokenizer: training, encoding, decoding, and the fields a GGUF file needs.

    counter = Counter()
    count_words(texts, counter)
    tokenizer = train(counter, 8192, SPECIALS, min_count=2)
    ids = tokenizer.encode("Hello", specials=False)

Ids: the 256 bytes by value, then the merged tokens in the order they were learnt, then the special tokens.
Encoding many texts on several cores: multiprocessing.Pool(n, start_worker, (path,)) and pool.imap(encode_in_worker,
batches of texts).
"""

import heapq
import json
import pathlib
import re
import unicodedata
from array import array
from collections import Counter, defaultdict
from itertools import chain

import regex

CONTROL = "control"
USER_DEFINED = "user-defined"
NORMAL_TYPE = 1
GGUF_TYPES = {CONTROL: 3, USER_DEFINED: 4}

END_OF_TEXT = "<|endoftext|>"
TURN_END = "<|im_end|>"
SPECIALS = [
    (END_OF_TEXT, CONTROL),
    ("<|im_start|>", CONTROL),
    (TURN_END, CONTROL),
    ("<think>", USER_DEFINED),
    ("</think>", USER_DEFINED),
    ("<tool_call>", USER_DEFINED),
    ("</tool_call>", USER_DEFINED),
    ("<tool_response>", USER_DEFINED),
    ("</tool_response>", USER_DEFINED),
    ("<tools>", USER_DEFINED),
    ("</tools>", USER_DEFINED),
]

# --- pre-tokenizer ---------------------------------------------------------------------------------------------------

CONTRACTION = r"'(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL])"
UNICODE_WORD = regex.compile(
    CONTRACTION + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\p{White_Space}\p{L}\p{M}\p{N}]+[\r\n]*"
    r"|\p{White_Space}*[\r\n]+|\p{White_Space}+(?!\P{White_Space})|\p{White_Space}+"
)
# The same expression for ASCII text, where the standard engine is several times faster.
ASCII_WORD = re.compile(
    CONTRACTION + r"|[^\r\nA-Za-z0-9]?[A-Za-z]+|[0-9]| ?[^\sA-Za-z0-9]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+", re.ASCII
)
# No word spans a line feed followed by a visible character: the lines around it can be cut apart.
SAFE_CUT = re.compile(r"(?<=\n)(?=\S)")


def pre_tokens(text):
    """The words of a text, in order; together they are the text (in NFC when it is not ASCII)."""
    if text.isascii():
        return ASCII_WORD.findall(text)
    words = []
    for lines in SAFE_CUT.split(unicodedata.normalize("NFC", text)):
        words += (ASCII_WORD if lines.isascii() else UNICODE_WORD).findall(lines)
    return words


def special_pattern(texts):
    """Matches the longest of the texts at the leftmost place; None where there is none to match."""
    if not texts:
        return None
    return re.compile("(" + "|".join(re.escape(text) for text in sorted(texts, key=len, reverse=True)) + ")")


def count_words(texts, counter, specials=SPECIALS):
    """Adds the words of each text to the counter; the special tokens in it are borders and not counted."""
    pattern = special_pattern([text for text, _ in specials])
    for text in texts:
        for piece in pattern.split(text)[::2] if pattern else [text]:
            counter.update(pre_tokens(piece))


def utf8(word):
    """UTF-8 of a word. Raw bytes smuggled in by surrogateescape come out as they were, other lone surrogates as '?'."""
    try:
        return word.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return word.encode("utf-8", "replace")


# --- GPT-2 byte alphabet ---------------------------------------------------------------------------------------------


def byte_alphabet():
    """One printable character for each byte value."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    characters = {byte: chr(byte) for byte in printable}
    characters.update({byte: chr(0x100 + i) for i, byte in enumerate(others)})
    return [characters[byte] for byte in range(256)]


ALPHABET = byte_alphabet()
BYTE_OF = {character: byte for byte, character in enumerate(ALPHABET)}


def to_alphabet(data):
    return "".join(ALPHABET[byte] for byte in data)


def from_alphabet(text):
    return bytes(BYTE_OF[character] for character in text)


# --- training --------------------------------------------------------------------------------------------------------


def replace_pair(symbols, left, right, merged):
    """The symbols with every (left, right), found from the left, replaced by merged."""
    out = []
    i, last = 0, len(symbols) - 1
    while i <= last:
        if i < last and symbols[i] == left and symbols[i + 1] == right:
            out.append(merged)
            i += 2
        else:
            out.append(symbols[i])
            i += 1
    return out


class PairTable:
    """Counts of adjacent symbols over all words, kept up to date while pairs are merged."""

    def __init__(self, word_counts):
        self.words = [list(word) for word, _ in word_counts]
        self.weights = [count for _, count in word_counts]
        self.counts = defaultdict(int)
        self.places = defaultdict(list)  # pair -> words that held it once; a stale entry costs one look
        for index, word in enumerate(self.words):
            for pair in zip(word, word[1:]):
                self.counts[pair] += self.weights[index]
                self.places[pair].append(index)

    def merge(self, pair, merged):
        """Merges the pair in all words; returns the pairs that were seen more often because of it."""
        left, right = pair
        grown = set()
        for index in set(self.places.pop(pair)):
            word = self.words[index]
            after = replace_pair(word, left, right, merged)
            if len(after) == len(word):
                continue
            weight = self.weights[index]
            for old in zip(word, word[1:]):
                self.counts[old] -= weight
            for new in zip(after, after[1:]):
                self.counts[new] += weight
                if merged in new:
                    self.places[new].append(index)
                    grown.add(new)
            self.words[index] = after
        del self.counts[pair]
        return grown


def checked_words(word_counts, min_count):
    """(bytes, count) of the words worth learning from, in an order that does not depend on the counter's."""
    merged = Counter()
    for word, count in word_counts.items():
        if count >= min_count:
            merged[utf8(word) if isinstance(word, str) else bytes(word)] += count
    return sorted(merged.items())


def train(word_counts, vocab_size, specials=SPECIALS, min_count=1):
    """Learns a tokenizer of exactly vocab_size tokens from words and how often each occurs.

    The most frequent pair is merged first, the lexicographically smaller one of equals. A pair whose text is already
    a token becomes a further merge to that token and takes no id; one whose text is a special token is never merged.
    """
    forbidden = {utf8(text) for text, _ in specials}
    tokens = [bytes([byte]) for byte in range(256)]
    wanted = vocab_size - len(specials)
    if wanted < len(tokens):
        raise ValueError(f"a vocabulary of {vocab_size} cannot hold 256 bytes and {len(specials)} special tokens")
    ids = {token: i for i, token in enumerate(tokens)}
    table = PairTable(checked_words(word_counts, min_count))
    heap = [(-count, tokens[a], tokens[b], a, b) for (a, b), count in table.counts.items()]
    heapq.heapify(heap)
    merges = {}
    while len(tokens) < wanted:
        if not heap:
            raise ValueError(f"the text yields only {len(tokens) + len(specials)} tokens of {vocab_size}")
        negative, left, right, a, b = heapq.heappop(heap)
        count = table.counts.get((a, b), 0)
        if count < -negative:  # merged away in part since it was pushed
            if count > 0:
                heapq.heappush(heap, (-count, left, right, a, b))
            continue
        if left + right in forbidden:
            continue
        merged = ids.setdefault(left + right, len(tokens))
        if merged == len(tokens):
            tokens.append(left + right)
        # A token with two spellings can bring a pair back that was merged before: its rank stays the first one.
        merges.setdefault((a, b), merged)
        for c, d in table.merge((a, b), merged):
            heapq.heappush(heap, (-table.counts[c, d], tokens[c], tokens[d], c, d))
    return Tokenizer(tokens, [(a, b, merged) for (a, b), merged in merges.items()], specials)


# --- tokenizer -------------------------------------------------------------------------------------------------------


def merge_word(data, ranks):
    """Ids of one word: the adjacent pair of lowest rank is merged, leftmost first, until none is left."""
    ids = list(data)
    following = list(range(1, len(ids) + 1))
    previous = list(range(-1, len(ids) - 1))
    heap = []

    def offer(i, j):
        found = ranks.get((ids[i], ids[j]))
        if found is not None:
            heapq.heappush(heap, (found[0], i, j, ids[i], ids[j], found[1]))

    for i in range(len(ids) - 1):
        offer(i, i + 1)
    while heap:
        _, i, j, left, right, merged = heapq.heappop(heap)
        if ids[i] != left or ids[j] != right or following[i] != j:
            continue
        ids[i], ids[j] = merged, None
        following[i] = k = following[j]
        if k < len(ids):
            previous[k] = i
            offer(i, k)
        if previous[i] >= 0:
            offer(previous[i], i)
    return tuple(i for i in ids if i is not None)


class WordCache(dict):
    """Ids of the words met so far; a missing word is encoded when it is asked for."""

    LONGEST = 64
    LIMIT = 2_000_000

    def __init__(self, ranks):
        super().__init__()
        self.ranks = ranks

    def __missing__(self, word):
        ids = merge_word(utf8(word), self.ranks)
        if len(word) <= self.LONGEST and len(self) < self.LIMIT:
            self[word] = ids
        return ids


class Tokenizer:
    """tokens: bytes of the normal ids; merges: (left, right, merged) ids by rank; specials: (text, type)."""

    def __init__(self, tokens, merges, specials):
        self.tokens = tokens
        self.merges = merges
        self.specials = [(text, kind) for text, kind in specials]
        self.special_ids = {text: len(tokens) + i for i, (text, _) in enumerate(self.specials)}
        self.pieces = tokens + [utf8(text) for text, _ in self.specials]
        self.vocab_size = len(self.pieces)
        self._pattern = special_pattern(list(self.special_ids))
        self._cache = WordCache({(a, b): (rank, merged) for rank, (a, b, merged) in enumerate(merges)})

    def __reduce__(self):
        return Tokenizer, (self.tokens, self.merges, self.specials)

    def _words(self, text):
        return chain.from_iterable(map(self._cache.__getitem__, pre_tokens(text)))

    def encode(self, text, specials=True):
        """Ids of a text. With specials=False the text of a special token is plain text like any other."""
        if not specials or self._pattern is None:
            return list(self._words(text))
        ids = []
        for i, piece in enumerate(self._pattern.split(text)):
            if i % 2:
                ids.append(self.special_ids[piece])
            else:
                ids.extend(self._words(piece))
        return ids

    def encode_many(self, texts, specials=True):
        """Ids of each text as an array of unsigned 16-bit numbers."""
        return [array("H", self.encode(text, specials)) for text in texts]

    def decode_bytes(self, ids):
        return b"".join([self.pieces[i] for i in ids])

    def decode(self, ids):
        """The text of the ids, special tokens included; bytes that are no UTF-8 show as U+FFFD."""
        return self.decode_bytes(ids).decode("utf-8", "replace")

    def merge_lines(self):
        return [f"{to_alphabet(self.tokens[a])} {to_alphabet(self.tokens[b])}" for a, b, _ in self.merges]

    def save(self, path):
        content = {
            "tokens": [to_alphabet(token) for token in self.tokens],
            "merges": self.merge_lines(),
            "specials": self.specials,
        }
        pathlib.Path(path).write_text(json.dumps(content, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")

    @staticmethod
    def load(path):
        """The tokenizer of a tokenizer.json, or the one inside a GGUF file that export.py wrote."""
        if str(path).endswith(".gguf"):
            from . import gguf

            meta, _ = gguf.read(path)
            tokens, kinds = meta["tokenizer.ggml.tokens"], meta["tokenizer.ggml.token_type"]
            names = {number: kind for kind, number in GGUF_TYPES.items()}
            content = {
                "tokens": [token for token, kind in zip(tokens, kinds) if kind == NORMAL_TYPE],
                "merges": meta["tokenizer.ggml.merges"],
                "specials": [(token, names[kind]) for token, kind in zip(tokens, kinds) if kind != NORMAL_TYPE],
            }
        else:
            content = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
        tokens = [from_alphabet(token) for token in content["tokens"]]
        ids = {token: i for i, token in enumerate(tokens)}
        merges = []
        for line in content["merges"]:
            left, right = (from_alphabet(part) for part in line.split(" "))
            merges.append((ids[left], ids[right], ids[left + right]))
        return Tokenizer(tokens, merges, content["specials"])

    def gguf_fields(self):
        """What the tokenizer.ggml.* keys of GGUF say; eos and padding are ids, None where there is no such token."""
        return {
            "model": "gpt2",
            "pre": "qwen35",
            "tokens": [to_alphabet(token) for token in self.tokens] + [text for text, _ in self.specials],
            "token_types": [NORMAL_TYPE] * len(self.tokens) + [GGUF_TYPES[kind] for _, kind in self.specials],
            "merges": self.merge_lines(),
            "eos": self.special_ids.get(TURN_END),
            "padding": self.special_ids.get(END_OF_TEXT),
            "bos": None,
            "add_bos": False,
        }


# --- workers ---------------------------------------------------------------------------------------------------------

worker_tokenizer = None


def start_worker(path):
    """Pool initialiser: encode_in_worker then uses the tokenizer saved at path."""
    global worker_tokenizer
    worker_tokenizer = Tokenizer.load(path)


def encode_in_worker(texts):
    return worker_tokenizer.encode_many(texts)
