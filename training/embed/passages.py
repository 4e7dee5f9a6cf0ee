"""Texts as an index has them: pieces of at most 1,200 bytes, cut between paragraphs and sentences, below their headings."""

import hashlib
import html
import json
import lzma
import re

CHUNK_BYTES = 1200
SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[A-Z\"'(])")
HEADING = re.compile(r"^(#{1,6})[ \t]+(.+?)[ \t#]*$")
FENCE = re.compile(r"^[ \t]*(?:```|~~~)")
TAG = re.compile(r"</?[A-Za-z][^<>\n]{0,300}/?>")
LINK = re.compile(r"!?\[([^\]\n]*)\]\((?:[^()\n]|\([^)\n]*\))*\)")


def rows(path):
    opener = lzma.open if path.suffix == ".xz" else open
    with opener(path, "rt", encoding="utf8") as stream:
        return [json.loads(line) for line in stream]


def share(text):
    """A number from 0 to 1 that follows from the text alone."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") / 2**64


def size(text):
    return len(text.encode("utf8", "ignore"))


def sentences(text):
    return [part for part in SENTENCE_END.split(text) if part.strip()]


def chunks(text):
    """Neighbouring paragraphs together while they fit; a paragraph that does not fit is cut between sentences."""
    pieces = []
    for paragraph in re.split(r"\n\s*\n", text):
        paragraph = paragraph.strip()
        if size(paragraph) <= CHUNK_BYTES:
            pieces.append(paragraph)
            continue
        for sentence in sentences(paragraph):
            raw = sentence.encode("utf8", "ignore")
            pieces += [raw[i:i + CHUNK_BYTES].decode("utf8", "ignore") for i in range(0, len(raw), CHUNK_BYTES)]
    out, current = [], ""
    for piece in filter(None, pieces):
        if current and size(current) + size(piece) + 2 > CHUNK_BYTES:
            out.append(current)
            current = ""
        current = f"{current}\n\n{piece}" if current else piece
    return out + [current] if current else out


def plain(text):
    """Markdown without links, tags and entities; its words are what counts."""
    return html.unescape(TAG.sub("", LINK.sub(r"\1", text)))


def sections(text, title=""):
    """(path of headings, text below) of a Markdown document."""
    path, lines, fenced = {0: title} if title else {}, [], False
    for line in text.split("\n"):
        if FENCE.match(line):
            fenced = not fenced
        found = None if fenced else HEADING.match(line)
        if not found:
            lines.append(line)
            continue
        if any(each.strip() for each in lines):
            yield [path[level] for level in sorted(path)], "\n".join(lines).strip()
        lines = []
        level = len(found.group(1))
        path = {other: name for other, name in path.items() if other < level}
        path[level] = plain(found.group(2)).strip("*_` ")
    if any(each.strip() for each in lines):
        yield [path[level] for level in sorted(path)], "\n".join(lines).strip()
