"""WordPiece as the engine runs it (src/tokenizer/wordpiece.cpp): cleaned lower-case words, cut greedily into known pieces.

    counts = Counter()
    for text in texts: counts.update(words(text))
    tokenizer = WordPiece(train(counts, 14000))
    ids = tokenizer.encode("What causes anaemia?")     without [CLS] and [SEP]

A piece that starts a word is written with U+2581 before it, as in the file.
"""

import heapq
import re
import unicodedata
from collections import Counter

MARK = "\u2581"
SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PAD, UNK, CLS, SEP, MASK = range(len(SPECIALS))
NORMAL_TYPE, UNKNOWN_TYPE, CONTROL_TYPE = 1, 2, 3
LONGEST_WORD = 100
# A word's letters: rarer ones are left to [UNK], as a row that was never trained says nothing.
LEAST_LETTER_COUNT = 60
LEAST_WORD_COUNT = 2


def is_alone(char):
    """Whether a character is a word of its own: punctuation, and the symbols of ASCII."""
    category = unicodedata.category(char)
    return category[0] == "P" or (char < "\x80" and category[0] == "S")


def is_han(code):
    return (0x4E00 <= code <= 0x9FFF or 0x3400 <= code <= 0x4DBF or 0x20000 <= code <= 0x2A6DF
            or 0x2A700 <= code <= 0x2B73F or 0x2B920 <= code <= 0x2CEAF or 0xF900 <= code <= 0xFAFF
            or 0x2F800 <= code <= 0x2FA1F)


def escaped(chars):
    return "".join(re.escape(char) for char in chars)


ALONE = escaped(char for char in map(chr, range(0x10000)) if is_alone(char))
WORD = re.compile(f"[^\\s{ALONE}]+|[{ALONE}]")
ASCII_WORD = re.compile(r"[a-z0-9]+|[^\sa-z0-9]")
NOT_ASCII = re.compile(r"[^\x00-\x7f]")
CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")


def cleaned(match):
    """One character beyond ASCII: dropped where it is a control, apart where it is Chinese."""
    char = match.group()
    if char.isspace():
        return " "
    if char == "\ufffd" or unicodedata.category(char) in ("Cc", "Cf", "Co", "Cs"):
        return ""
    return f" {char} " if is_han(ord(char)) else char


def words(text):
    """The words of a text, in small letters without accents."""
    text = CONTROL.sub("", text)
    if text.isascii():
        return ASCII_WORD.findall(text.lower())
    text = unicodedata.normalize("NFD", NOT_ASCII.sub(cleaned, text))
    text = "".join(char for char in text if char < "\x80" or unicodedata.category(char) != "Mn")
    return WORD.findall(text.lower())


def train(counts, size):
    """The pieces of a vocabulary of `size`, specials first: letters, then what merging the most frequent pair gives.

    Merges are those of byte-pair encoding over letters. Encoding is greedy, so a piece may be used where no merge led to
    it, and one that greedy matching never uses is a row wasted: few are, as most pieces are whole words.
    """
    from nano.bpe import PairTable  # here alone: what only encodes does without its modules

    letters = Counter()
    for word, count in counts.items():
        letters[MARK + word[0]] += count
        for letter in word[1:]:
            letters[letter] += count
    known = [letter for letter, count in sorted(letters.items()) if count >= LEAST_LETTER_COUNT]
    tokens = SPECIALS + known
    ids = {token: i for i, token in enumerate(tokens)}
    if len(tokens) > size:
        raise ValueError(f"a vocabulary of {size} can not hold {len(known)} letters")
    spelled = []
    for word, count in sorted(counts.items()):
        parts = [MARK + word[0], *word[1:]]
        if count >= LEAST_WORD_COUNT and len(word) > 1 and all(part in ids for part in parts):
            spelled.append(([ids[part] for part in parts], count))
    table = PairTable(spelled)
    heap = [(-count, tokens[a], tokens[b], a, b) for (a, b), count in table.counts.items()]
    heapq.heapify(heap)
    while len(tokens) < size and heap:
        negative, left, right, a, b = heapq.heappop(heap)
        count = table.counts.get((a, b), 0)
        if count < -negative:
            if count > 0:
                heapq.heappush(heap, (-count, left, right, a, b))
            continue
        merged = ids.setdefault(left + right, len(tokens))
        if merged == len(tokens):
            tokens.append(left + right)
        for c, d in table.merge((a, b), merged):
            heapq.heappush(heap, (-table.counts[c, d], tokens[c], tokens[d], c, d))
    return tokens


class WordPiece:
    def __init__(self, tokens):
        if tokens[:len(SPECIALS)] != SPECIALS:
            raise ValueError(f"expected {SPECIALS} first, found {tokens[:len(SPECIALS)]}")
        self.tokens = tokens
        self.ids = {token: i for i, token in enumerate(tokens) if i >= len(SPECIALS)}
        self.longest = max(map(len, self.ids), default=1)
        self.known = {}

    def encode_word(self, word):
        if len(word) > LONGEST_WORD:
            return [UNK]
        rest, out = MARK + word, []
        while rest:
            least = 2 if not out else 1
            for end in range(min(len(rest), self.longest), least - 1, -1):
                found = self.ids.get(rest[:end])
                if found is not None:
                    break
            else:
                return [UNK]
            out.append(found)
            rest = rest[end:]
        return out

    def encode(self, text):
        out = []
        for word in words(text):
            pieces = self.known.get(word)
            if pieces is None:
                pieces = self.known[word] = self.encode_word(word)
            out += pieces
        return out

    def gguf_fields(self):
        types = [CONTROL_TYPE] * len(SPECIALS) + [NORMAL_TYPE] * (len(self.tokens) - len(SPECIALS))
        types[UNK] = UNKNOWN_TYPE
        return {
            "tokenizer.ggml.model": "bert",
            "tokenizer.ggml.pre": "bert-bge",
            "tokenizer.ggml.tokens": self.tokens,
            "tokenizer.ggml.token_type": types,
            "tokenizer.ggml.normalizer.lowercase": True,
            "tokenizer.ggml.padding_token_id": PAD,
            "tokenizer.ggml.unknown_token_id": UNK,
            "tokenizer.ggml.cls_token_id": CLS,
            "tokenizer.ggml.seperator_token_id": SEP,
            "tokenizer.ggml.mask_token_id": MASK,
            "tokenizer.ggml.bos_token_id": CLS,
            "tokenizer.ggml.eos_token_id": SEP,
        }
