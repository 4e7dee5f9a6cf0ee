"""Plain-text documents for language modelling, read from the data folder and cleaned.

    documents(data, "train")     what the model reads
    documents(data, "held_out")  about 1 % of every set, two whole books, and the texts of the eval folder
    normalise(text)              the ASCII form of a text that every reader of the data folder uses

`python3 -m nano.corpus DATA_DIR` prints what each set yields. One set is held in memory at a time.
"""

import ast
import dataclasses
import hashlib
import html
import json
import lzma
import math
import pathlib
import re
import sys
import textwrap
import unicodedata
from typing import Iterator

HELD_OUT_SHARE = 0.01
HELD_OUT_BOOKS = 2


@dataclasses.dataclass
class Document:
    """One text. `weight` is how often a pass over the training data reads it: a whole number, 1 or more.

    Shares below one have already been taken by leaving documents out, so that a caller only has to repeat.
    """

    set_name: str
    domain: str
    id: str
    text: str
    weight: int = 1


# ---------------------------------------------------------------------------------------------------------------------
# Characters

REPLACEMENTS = {
    "\u2018": "'", "\u2019": "'", "\u201a": "'", "\u201b": "'", "\u2032": "'", "\u00b4": "'", "\u02bc": "'",
    "\u201c": '"', "\u201d": '"', "\u201e": '"', "\u2033": '"', "\u00ab": '"', "\u00bb": '"',
    "\u2010": "-", "\u2011": "-", "\u2012": "-", "\u2013": "-", "\u2014": " - ", "\u2015": " - ", "\u2212": "-",
    "\u2026": "...", "\u2022": "-", "\u00b7": "-", "\u25cf": "-", "\u2023": "-", "\u25e6": "-",
    "\u00d7": "x", "\u00f7": "/", "\u2044": "/", "\u2215": "/", "\u00b1": "+/-", "\u2248": "~", "\u223c": "~",
    "\u2264": "<=", "\u2265": ">=", "\u2260": "!=", "\u2192": "->", "\u2190": "<-", "\u21d2": "=>", "\u2194": "<->",
    "\u00bd": "1/2", "\u00bc": "1/4", "\u00be": "3/4", "\u2153": "1/3", "\u2154": "2/3", "\u215b": "1/8",
    "\u00b2": "^2", "\u00b3": "^3", "\u00b9": "^1", "\u221a": "sqrt", "\u221e": "infinity",
    "\u00a0": " ", "\u2028": "\n", "\u2029": "\n\n", "\u00a9": "", "\u00ae": "", "\u2122": "", "\ufffd": "",
    "\u00e6": "ae", "\u00c6": "Ae", "\u0153": "oe", "\u0152": "Oe", "\u00df": "ss", "\u00f8": "o", "\u00d8": "O",
    "\u0131": "i", "\u0142": "l", "\u0141": "L", "\u0111": "d", "\u00f0": "d", "\u00fe": "th", "\u2502": "|",
    "\u251c": "|", "\u2514": "`", "\u2500": "-", "\u20b9": "Rs ", "\u00a5": "yen ", "\u00a7": "section ",
}
GREEK = dict(zip("αβγδεθλμπρσςτφχψωΔΣΩΠΦ",
                 "alpha beta gamma delta epsilon theta lambda mu pi rho sigma sigma tau phi chi psi omega "
                 "Delta Sigma Omega Pi Phi".split()))
NOT_ASCII = re.compile(r"[^\x00-\x7f]")
MIS_DECODED = re.compile("[\u00c2\u00c3][\u0080-\u00bf]")
_folded = {}


def fold(match):
    """The ASCII stand-in of one character: a table entry, the letter without its accent, or nothing."""
    char = match.group()
    if char not in _folded:
        plain = unicodedata.normalize("NFKD", char).encode("ascii", "ignore").decode()
        if not plain and unicodedata.category(char) == "Zs":
            plain = " "
        _folded[char] = REPLACEMENTS.get(char) if char in REPLACEMENTS else GREEK.get(char, plain)
    return _folded[char]


def normalise(text):
    """ASCII text: plain quotes and dashes, letters without accents, no emoji, no control characters."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not text.isascii():
        text = MIS_DECODED.sub(lambda m: m.group().encode("latin-1").decode("utf8", "ignore"), text)
        text = re.sub(r"£\s?([\d.,]*\d)", r"\1 pounds", text)
        text = re.sub(r"€\s?([\d.,]*\d)", r"\1 euros", text)
        text = re.sub(r"(?<=\d)\s?°\s?(?=[CFNSEW]\b)", " degrees ", text)
        text = re.sub(r"(?<=\d)\s?°", " degrees", text)
        text = re.sub(r"[^\S\n]*\u2014[^\S\n]*", " - ", text)
        text = NOT_ASCII.sub(fold, text)
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f]", "", text)


# ---------------------------------------------------------------------------------------------------------------------
# Lines

LETTER = re.compile(r"[A-Za-z]")
SIGN = re.compile(r"[^A-Za-z\s]")
LIST_ITEM = re.compile(r"\s*(?:[-*+>]|\d+[.)]|[A-Za-z][.)])\s")
FENCE = re.compile(r"^[ \t]*(?:```|~~~).*$", re.M)

# (a sign without which the pattern cannot match, pattern, flags, replacement): most texts lack most of the signs.
MARKUP = [(sign, re.compile(pattern, flags), by) for sign, pattern, flags, by in [
    ("<", r"<!--.*?-->", re.S, ""),
    ("<", r"<(style|script|svg|table|iframe|figure|details|Question|FrameworkSwitchCourse)\b.*?</\1>", re.S, ""),
    ("<", r"</?[A-Za-z][^<>\n]{0,300}/?>", 0, ""),
    ("&", r"&#?\w+;", 0, lambda match: normalise(html.unescape(match.group()))),
    ("{", r"\{%.*?%\}|\{\{.*?\}\}|\{:.*?\}|\{#.*?\}", 0, ""),
    ("[[", r"\[\[[^\]\n]*\]\]", 0, ""),
    ("[", r"!?\[\]\([^)\n]*\)", 0, ""),
    ("![", r"!\[[^\]\n]*\](?:\([^)\n]*\))?", 0, ""),
    ("](", r"\[([^\]\n]*)\]\((?:[^()\n]|\([^)\n]*\))*\)", 0, r"\1"),
    ("", r"^[ \t]*(?::::.*|\([\w-]+\)=|---+|===+|\^\^\^+|~~~+|\*\*\*+|___+)[ \t]*$", re.M, ""),
    ("shields.io", r"^.*shields\.io.*$", re.M, ""), ("travis-ci", r"^.*travis-ci.*$", re.M, ""),
    ("ketchnote", r"^.*[Ss]ketchnote.*$", re.M, ""), ("ecture", r"^.*(?:Pre|Post)-[Ll]ecture [Qq]uiz.*$", re.M, ""),
    ("]:", r"^[ \t]*\[\^?[^\]\n]+\]:.*$", re.M, ""), ("[^", r"\[\^[^\]\n]*\]", 0, ""),
    ("|", r"^[^\n|]*(?:\|[^\n|]*\|| \| ).*$", re.M, ""),
    ("other languages", r"^[ \t_*]*Read this in other languages:.*\n.*$", re.M, ""),
    ("://", r"^[ \t]*(?:<?https?://\S+>?)[ \t]*$", re.M, ""),
    ("://", r"\s*\(?<?https?://[^\s)>]+>?\)?", 0, ""),
    ("#", r"^#{1,6}[ \t]*", re.M, ""), ("#", r"[ \t]#+[ \t]*$", re.M, ""),
    ("**", r"\*\*\*?([^*\n]+)\*\*\*?", 0, r"\1"), ("__", r"__([^_\n]+)__", 0, r"\1"),
    ("*", r"(?<![\w*])\*([^*\s][^*\n]*)\*(?![\w*])", 0, r"\1"),
    ("_", r"(?<![\w_])_([^_\s][^_\n]*)_(?![\w_])", 0, r"\1"),
    ("--", r"(?<=[\w,;.!?'\"])(?:--+|[ \t]--+[ \t])(?=[\w'\"])", 0, " - "),
    ("\\", r"\\([*_#\[\]()'\".])", 0, r"\1"), ("", r"^([ \t]*)[*+][ \t]+", re.M, r"\1- "),
    ("(", r"\(\s*(?:[Ss]ee\s*)?\)", 0, ""),
]]
REST = [(re.compile(pattern, flags), by) for pattern, flags, by in [
    (r"^[ \t]*\.\. [^\n]*::[^\n]*$", re.M, ""), (r"^[ \t]*\.\. [^\n]*$", re.M, ""),
    (r"^[ \t]+:[\w-]+:[^\n]*$", re.M, ""), (r"^__ [^\n]*$", re.M, ""),
    (r":[\w:-]+:`~?([^`<\n]+?)(?:\s*<[^>`\n]*>)?`", 0, r"`\1`"),
    (r"`([^`<\n]+?)\s*<[^>`\n]+>`__?", 0, r"\1"), (r"(?<!`)`([^`\n]+)`__?(?!`)", 0, r"\1"),
    (r"\b([A-Za-z]\w*)_(?=[\s.,;)])", 0, r"\1"), (r"::[ \t]*$", re.M, ":"),
    (r"^(?:PEP|Author|Status|Type|Created|Python-Version|Post-History|Version|Last-Modified|Content-Type|Resolution|"
     r"Discussions-To|Sponsor|Replaces|Superseded-By|Requires|PEP-Delegate|BDFL-Delegate):[^\n]*$", re.M, ""),
]]


def readable(line):
    """False for what no one reads as a sentence: no letters, or mostly digits and signs."""
    return 2 * len(SIGN.findall(line)) <= len(line) - line.count(" ")


def joined_lines(text):
    """Text with hard-wrapped lines of one paragraph put together; list items and headings stay lines."""
    out = []
    for line in text.split("\n"):
        line = " ".join(line.split())
        if not readable(line):
            continue
        last = out[-1] if out else ""
        if last and line and not LIST_ITEM.match(line) and len(last) > 30 and (
                line[0].islower() or last[-1] not in ".!?:" or len(last) > 60 and not LIST_ITEM.match(last)):
            out[-1] += " " + line
        else:
            out.append(line)
    return squeezed("\n".join(out))


def squeezed(text):
    return re.sub(r"\n{3,}", "\n\n", re.sub(r"[ \t]+\n", "\n", text)).strip()


CODE_SPAN = re.compile(r"``([^`\n]+)``|`([^`\n]+)`")
HIDDEN_SPAN = re.compile("\x01span([a-j]+)\x01")
DIGITS_TO_LETTERS = str.maketrans("0123456789", "abcdefghij")
LETTERS_TO_DIGITS = str.maketrans("abcdefghij", "0123456789")
BACK_MATTER = re.compile(
    r"\n(?:References|Bibliography|Additional [Rr]esources|Further [Rr]eading|Recommended Resources|"
    r"Copyright|Footnotes|See also|Acknowledge?ments)\b[^\n]{0,40}\n")


def without_markup(text, restructured=False):
    """Text after the patterns, its lines joined. Code between backticks is hidden from both: `--all` is no dash."""
    spans = []

    def hide(match):
        spans.append(match.group(1) or match.group(2))
        return f"\x01span{str(len(spans) - 1).translate(DIGITS_TO_LETTERS)}\x01"

    if restructured:
        for pattern, by in REST:
            text = pattern.sub(by, text)
    text = CODE_SPAN.sub(hide, text)
    for sign, pattern, by in MARKUP:
        if sign in text:
            text = pattern.sub(by, text)
    text = joined_lines(text).replace("**", "")
    return HIDDEN_SPAN.sub(lambda m: f"`{spans[int(m.group(1).translate(LETTERS_TO_DIGITS))].strip()}`", text)


def without_back_matter(text):
    """A page cut where its lists of sources begin, if that is near its end."""
    found = BACK_MATTER.search(text, int(0.6 * len(text)))
    return text[:found.start()].rstrip() if found else text


def prose(text):
    """Markdown as plain text without code blocks, tables, links, tags and emphasis."""
    text = normalise(text)
    parts = FENCE.split(text)
    text = "\n".join(parts[::2]) if len(parts) > 1 else text
    return without_back_matter(without_markup(text))


INDENTED = re.compile(r"(?:\A|(?<=\n\n))((?:(?: {4}|\t)[^\n]*\n|[ \t]*\n(?= {4}|\t))+)")
CODE_SIGNS = re.compile(r"[(){}=<>$;\[\]/]|^\s*(?:import|from|def|class|\$) ", re.M)


def pieces(text):
    """(is code, text) parts of a page: fenced blocks, and indented ones that look like code."""
    parts, fences = FENCE.split(text), FENCE.findall(text)
    for i, part_text in enumerate(parts):
        if i % 2:
            yield re.sub(r"[`~{}.\s]", "", fences[i - 1]), part_text
            continue
        for j, block in enumerate(INDENTED.split(part_text + "\n")):
            if j % 2 and len(CODE_SIGNS.findall(block)) >= block.count("\n") / 2:
                yield "", textwrap.dedent(block.expandtabs(4))
            else:
                yield None, block


def documentation(text, restructured=False):
    """Markdown or reStructuredText as plain text that keeps its code blocks, as long as they look like code."""
    out = []
    for language, block in pieces(normalise(text)):
        if language is None:
            out.append(without_markup(block, restructured))
        elif code_like(block):
            language = {"py": "python", "python3": "python", "js": "javascript"}.get(language, language)
            body = re.sub(r"[ \t]+$", "", block.strip("\n"), flags=re.M)
            out.append(f"```{language if language.isalpha() else ''}\n{body}\n```")
    text = squeezed("\n\n".join(block for block in out if block))
    return without_back_matter(re.sub(r"^Output:\n\n(?!```)", "", text, flags=re.M))


def code_like(block):
    """Not too long, not too wide, and with words in it unless it is short."""
    lines = [line for line in block.split("\n") if line.strip()]
    return 0 < len(lines) <= 50 and max(map(len, lines)) <= 120 and (len(lines) <= 5 or mostly_text(block, 0.45))


def words(text):
    return len(text.split())


def mostly_text(text, least):
    """Whether letters make up at least this share of a text, white space left out."""
    visible = sum(map(len, text.split()))
    return visible > 0 and len(SIGN.findall(text)) <= (1 - least) * visible


# ---------------------------------------------------------------------------------------------------------------------
# Reading

def rows(path):
    """The objects of a .jsonl or .jsonl.xz file."""
    with (lzma.open(path, "rt", encoding="utf8") if path.suffix == ".xz" else open(path, encoding="utf8")) as lines:
        for line in lines:
            yield json.loads(line)


def part(folder, name):
    """The file of a set whose name begins with `name`, compressed or not."""
    found = sorted(folder.glob(name + "*"))
    if not found:
        raise FileNotFoundError(f"{folder / name}*: no such file in the data folder")
    return found[0]


def share(*names):
    """A number in [0, 1) that depends on the names only."""
    digest = hashlib.blake2b("\x1f".join(names).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


# ---------------------------------------------------------------------------------------------------------------------
# Sets: each reader yields (id, text, weight)

CHILDREN = re.compile(
    r"Dolittle|Pinocchio|Black Beauty|Happy Prince|Wizard|Oz$|Railway Children|Secret Garden|Peter Pan|Little Princess|"
    r"Aesop|Heidi|Beatrix Potter|Looking-Glass|Princess and the Goblin|Book of Dragons|Christmas Angel|Anne of|"
    r"Treasure Island|Tom Sawyer|Rainbow Valley|Little Men|Christmas Carol|Fairy Tales")
BOOK_HEAD = re.compile(r"\A\s*(?:#+ *(?:Title|Author|Year):[^\n]*\n\s*)*(?:-{3,}\s*\n)?")


def books(data):
    for row in rows(part(data, "books")):
        text = prose(BOOK_HEAD.sub("", row["text"].lstrip("\ufeff"), count=1))
        yield row["id"], text, 2 if CHILDREN.search(row["title"]) else 1


def paragraph_text(text):
    """A story whose lines were broken to fit a picture book: one line a paragraph."""
    text = re.sub(r"!{2,}", "!", re.sub(r"\?{2,}", "?", prose(text)))
    paragraphs = [re.sub(r"\s+", " ", paragraph).strip() for paragraph in re.split(r"\n\s*\n", text)]
    return "\n\n".join(paragraph for paragraph in paragraphs if LETTER.search(paragraph))


def picture_books(name, weight):
    def read(data):
        for row in rows(part(data, name)):
            text, title = paragraph_text(row["text"]), squeezed(normalise(row["title"]))
            if words(text) >= 25 and mostly_text(text, 0.85):
                yield row["id"], f"{title}\n\n{text}", weight
    return read


def tale(row):
    sections = [re.sub(r"\s*\n\s*\n\s*", "\n\n", prose(section)) for section in row["sections"]]
    return "\n\n".join(paragraph_text(section) for section in sections)


def fairytales(data):
    for row in rows(part(data, "fairytaleqa_train")):
        yield row["id"], tale(row), 1


def everyday_sentences(data, group=30):
    """Common Voice sentences. The file is in alphabetical order, so that they are mixed before they are grouped."""
    with lzma.open(part(data, "sentences_en"), "rt", encoding="utf8") as lines:
        sentences = [normalise(line).strip() for line in lines]
    sentences = [s for s in sentences if LETTER.search(s) and s[0].isupper() and s[-1] in ".!?" and words(s) <= 30]
    sentences.sort(key=lambda sentence: share("sentences", sentence))
    for start in range(0, len(sentences), group):
        yield str(start), "\n".join(sentences[start:start + group]), 2


# Textbooks name figures and tables by links that are gone: "... of fields. shows a few examples of this."
LOST_SUBJECT = re.compile(
    r"(?<=[.?!]) (?:shows?|illustrates?|lists|depicts|presents|displays|summarizes|provides|compares|gives|outlines|"
    r"plots|contains|describes|and show)\b[^.?!\n]*[.?!](?=\s|$)")
TEXTBOOK_MATTER = re.compile(
    r"^(?:Section Learning Objectives|Learning objectives|Section Key Terms|By the end of this section.*|"
    r"Key Terms|Teacher Support|References|Bibliography|\[[^\]]*\])$", re.M | re.I)


def textbooks(name, weight):
    def read(data):
        for row in rows(part(data, name)):
            text = documentation(row["text"]) if "python" in name else prose(row["text"])
            text = TEXTBOOK_MATTER.sub("", LOST_SUBJECT.sub("", text))
            text = squeezed(text)
            if words(text) >= 60 and mostly_text(text, 0.6 if "python" in name else 0.75):
                yield row["id"], text, weight
    return read


def government(name, weight):
    def read(data):
        for row in rows(part(data, name)):
            text = prose(row["text"])
            if words(text) >= 80 and mostly_text(text, 0.78):
                yield row["id"], text, weight
    return read


def recipes(data):
    for row in rows(part(data, "recipes")):
        text = re.sub(r"^(?:Contribution|Contributors?)\b.*\Z", "", prose(row["text"]), flags=re.M | re.S)
        if words(text) >= 30:
            yield row["id"], squeezed(text), 2


MEDICAL_NOISE = re.compile(r"Human Phenotype Ontology|MedlinePlus|Click|click here|https?:|www\.| - .* - .* - ")


def medical_question(question):
    """A MedQuAD question in plain grammar: 'What is (are) X ?' becomes 'What is X?'."""
    question = re.sub(r"\s+", " ", normalise(question)).strip(" ?")
    question = re.sub(r"\bis \(are\)", "is", question)
    question = re.sub(r"^Do you have information about", "What should I know about", question)
    return question + "?"


def medical_answer(answer):
    answer = re.sub(r"\s+", " ", normalise(answer)).strip()
    return re.sub(r"^(?:Summary|Answer) : ", "", answer)


def medicine(data):
    for i, row in enumerate(rows(part(data, "medquad"))):
        question, answer = medical_question(row["q"]), medical_answer(row["a"])
        if 12 <= words(answer) <= 140 and not MEDICAL_NOISE.search(answer) and mostly_text(answer, 0.85):
            yield str(i), f"Question: {question}\nAnswer: {answer}", 0.8


FACTBOOK_KEYS = [
    "Location", "Climate", "Terrain", "Natural resources", "Area - comparative", "Government type", "Languages",
    "Religions", "Agricultural products", "Industries", "Natural hazards", "Geography - note", "border countries",
    "National symbol(s)", "Population distribution", "Economic overview", "Exports - partners"]
FACTBOOK_NAMES = {"border countries": "Neighbours", "Area - comparative": "Size",
                  "National symbol(s)": "National symbol",
                  "Geography - note": "Note on geography", "Economic overview": "Economy"}


def fact_value(value):
    """One line of the Factbook without estimates, shares and lengths."""
    value = re.sub(r"\s*\((?:[^()]*\d[^()]*)\)", "", value)
    value = re.sub(r"\s*(?:less than |more than |about )?[<~]?\d[\d.,]*%|\s+\d[\d.,]* km\b", "", value)
    return re.sub(r"\s+([,;.])", r"\1", re.sub(r"\s+", " ", value)).strip(" ,;")


def shouted_name(match):
    return match.group().capitalize()


def factbook(data):
    for row in rows(part(data, "factbook")):
        text = normalise(re.sub(r"</?p>", "\n", row["text"]))
        name = normalise(row["name"]).strip()
        background = re.search(r"^Background: (.+(?:\n[^\n:]{60,}.*)*)", text, re.M)
        facts = []
        for key in FACTBOOK_KEYS:
            found = re.search(rf"^{re.escape(key)}: *(.+)$", text, re.M)
            value = fact_value(found.group(1)) if found else ""
            value = re.sub(rf"^metropolitan {re.escape(name)}: ", "", value)
            if 1 <= words(value) <= 80 and not value.startswith(("note", "total")):
                facts.append(f"{FACTBOOK_NAMES.get(key, key)}: {value}")
        capital = re.search(r"^Capital:\s*\n?name: *([^\n;(]+)", text, re.M)
        if capital:
            facts.insert(0, f"Capital: {capital.group(1).strip()}")
        if not background or len(facts) < 3:
            continue
        background = background.group(1).replace(" -- ", " - ")
        story = re.sub(r"(?<=[a-z,.] )(?!(?:NATO|OPEC)\b)[A-Z]{5,}\b", shouted_name, squeezed(background))
        yield row["id"], f"{name}\n\n{story}\n\n" + "\n".join(facts), 2


PARTS_OF_SPEECH = {"n": "noun", "v": "verb", "a": "adjective", "s": "adjective", "r": "adverb"}
NOT_FOR_A_DICTIONARY = re.compile(
    r"\b(?:sex|sexual|slang|offensive|obscene|vulgar|penis|vagina|copulat\w*|genus|family)\b", re.I)


def dictionary_line(row, known):
    """'able (adjective): having the means to do something. Example: ...', or None for a rare word."""
    lemmas = [normalise(lemma).replace("_", " ") for lemma in row["lemmas"]]
    lemmas = [lemma for lemma in lemmas if lemma.islower() and all(word in known for word in lemma.split())]
    definition = normalise(row["definition"]).strip()
    if not lemmas or NOT_FOR_A_DICTIONARY.search(definition) or not 2 <= words(definition) <= 25:
        return None
    example = next((normalise(e).strip() for e in row.get("examples") or []
                    if any(lemma in e.lower() for lemma in lemmas)), "")
    head = next((lemma for lemma in lemmas if lemma in example.lower()), lemmas[0])
    line = f"{head} ({PARTS_OF_SPEECH[row['pos']]}): {definition.rstrip('.;')}."
    others = [lemma for lemma in lemmas if lemma != head][:2]
    if others:
        line += f" Similar: {', '.join(others)}."
    if example and words(example) >= 3:
        example = example[0].upper() + example[1:]
        line += f" Example: {example}" + ("" if example[-1] in ".!?\"'" else ".")
    return line


def common_words(data):
    with lzma.open(part(data.parent / "common-voice-sentences", "sentences_en"), "rt", encoding="utf8") as lines:
        return set(re.findall(r"[a-z]+", lines.read().lower()))


def dictionary(data, group=20):
    known = common_words(data)
    lines = [line for line in (dictionary_line(row, known) for row in rows(part(data, "english_wordnet"))) if line]
    lines.sort(key=lambda line: share("wordnet", line))
    for start in range(0, len(lines), group):
        yield str(start), "\n".join(lines[start:start + group]), 1


# Until the fifth run a part of most of these was left out (0.2 to 0.8), and the last six entirely: read often, 3.9 M tokens were learnt by heart.
DOCS_WEIGHTS = {
    "30s_python": 3, "exercism_python": 1, "swc_python": 2, "whirlwind_python": 2, "norvig_pytudes": 1,
    "scipy_lectures": 1, "flask": 1, "python_peps": 1, "opensource_guide": 1, "swc_gapminder": 2, "swc_git": 1,
    "swc_shell": 1, "swc_sql": 1, "dc_sql": 1, "lc_shell": 1, "tldr": 1, "30s_snippets": 1, "30s_interviews": 1,
    "js_algorithms": 1, "exercism_problems": 1, "exercism_javascript": 1, "rust_book": 1, "rust_by_example": 1,
    "go_blog": 1, "django": 1, "programming_historian": 1, "turing_way": 1, "ms_data_science": 1,
    "hf_course": 1, "hf_agents": 1, "ms_ai": 1, "ms_iot": 1, "ms_web_dev": 1, "react": 1, "typescript": 1,
}
PROSE_DOCS = {"opensource_guide", "turing_way", "programming_historian"}


def manual(name, weight):
    def read(data):
        for row in rows(part(data, name + ".jsonl")):
            source = row["text"]
            if name == "tldr" and not row["id"].startswith(("pages/common", "pages/linux")):
                continue
            if name == "tldr":
                source = re.sub(r"^> (?:More information|See also|Note):.*\n|^> ", "", source, flags=re.M)
            if name == "whirlwind_python":
                source = re.sub(r"^(?:\*(?:This notebook|The text and code).*|< .* >)$", "", source, flags=re.M)
            text = documentation(source, restructured=row["id"].endswith((".rst", ".txt")))
            if words(text) >= (15 if name in ("tldr", "30s_python") else 40) and mostly_text(text, 0.6):
                python = name == "30s_snippets" and "/python/" in row["id"]
                yield row["id"], text, 3 if python else weight
    return read


def tidy_code(code):
    """Source with Unix line ends, spaces for tabs, no blanks at line ends."""
    lines = [line.rstrip() for line in normalise(code).expandtabs(4).split("\n")]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")


def problem(row):
    """An MBPP problem as a small file: the task as a comment, the solution, the tests."""
    task = re.sub(r"\s+", " ", normalise(row["text"])).strip()
    return f"# {task}\n{tidy_code(row['code'])}\n\n" + "\n".join(tidy_code(test) for test in row["test_list"])


# Problems whose solution nearly repeats one of the MBPP test split (16 or more runs of 13 words in common).
NEAR_MBPP_TEST = {530, 594, 608, 634, 635, 649, 733, 784, 793, 841, 842, 881, 884, 888, 922, 928, 952, 964}


def problems(data):
    for row in rows(part(data, "mbpp_train")):
        if row["task_id"] in NEAR_MBPP_TEST:
            continue
        text = problem(row)
        try:
            ast.parse(text)
        except SyntaxError:
            continue
        yield str(row["task_id"]), text, 4


def sets():
    """(name, folder, domain, reader) of every set, in reading order."""
    yield "books-public-domain", "books-public-domain", "prose", books
    yield "stories-african-storybook", "stories-african-storybook", "stories", picture_books("asp_en", 2)
    yield "stories-pratham", "stories-pratham", "stories", picture_books("pb_en", 2)
    yield "fairytaleqa", "fairytaleqa", "stories", fairytales
    yield "common-voice-sentences", "common-voice-sentences", "prose", everyday_sentences
    for name, weight in [("college-success-bundle", 1), ("introduction-anthropology", 1),
                         ("introduction-intellectual-property", 1), ("introduction-python-programming", 3),
                         ("life-liberty-and-pursuit-happiness", 1), ("physics", 2),
                         ("principles-economics-bundle", 1), ("statistics", 0.7)]:
        domain = "code" if name == "introduction-python-programming" else "prose"
        yield f"openstax-ccby/{name}", "openstax-ccby", domain, textbooks(name, weight)
    for name, weight in [("digitalgov", 1), ("18f_blog", 1), ("18f_handbook", 0.5), ("plainlanguage", 2)]:
        yield f"usgov-public-domain/{name}", "usgov-public-domain", "prose", government(name, weight)
    yield "recipes-based-cooking", "recipes-based-cooking", "prose", recipes
    yield "medquad", "medquad", "facts", medicine
    yield "world-factbook", "world-factbook", "facts", factbook
    yield "wordnet", "wordnet", "facts", dictionary
    for name, weight in DOCS_WEIGHTS.items():
        domain = "prose" if name in PROSE_DOCS else "code"
        yield f"docs-permissive/{name}", "docs-permissive", domain, manual(name, weight)
    yield "mbpp", "mbpp", "code", problems


def evaluation_texts(data):
    """Texts of the eval folder that read as documents; never part of training."""
    for row in rows(part(data / "eval", "fairytaleqa_val")):
        yield Document("eval/fairytaleqa_val", "stories", row["id"], tale(row))
    for row in rows(part(data / "eval", "humaneval")):
        code = tidy_code(row["prompt"]) + "\n" + tidy_code(row["canonical_solution"])
        yield Document("eval/humaneval_140", "code", row["task_id"], code)
    for row in rows(part(data / "eval", "mbpp_test")):
        yield Document("eval/mbpp_test_450", "code", str(row["task_id"]), problem(row))


def held_out_ids(set_name, ids):
    """The documents of a set that are never trained on: about 1 %, the same ones every time."""
    ranked = sorted(ids, key=lambda id: share(set_name, id))
    if set_name == "books-public-domain":
        return set(ranked[:HELD_OUT_BOOKS])
    least = 1 if len(ranked) > 50 else 0
    return {id for i, id in enumerate(ranked) if i < least or share(set_name, id) < HELD_OUT_SHARE}


def repeats(set_name, id, weight):
    """The whole number of times a document is read: 0.4 gives 1 to four documents in ten and 0 to the rest."""
    whole = math.floor(weight)
    return whole + (share("repeats", set_name, id) < weight - whole)


def split_documents(data):
    """(split, document) of everything; copies come once."""
    seen = set()
    for name, folder, domain, reader in sets():
        texts = [row for row in reader(data / folder) if not seen_before(row[1], seen)]
        held_out = held_out_ids(name, [id for id, _, _ in texts])
        for id, text, weight in texts:
            if id in held_out:
                yield "held_out", Document(name, domain, id, text)
            elif repeats(name, id, weight):
                yield "train", Document(name, domain, id, text, repeats(name, id, weight))
    for document in evaluation_texts(data):
        yield "held_out", document


def documents(data: pathlib.Path, split: str) -> Iterator[Document]:
    """The documents of a split, "train" or "held_out"."""
    if split not in ("train", "held_out"):
        raise ValueError(f"split {split!r}: expected train or held_out")
    return (document for which, document in split_documents(data) if which == split)


def seen_before(text, seen):
    """Whether a text, or one with the same longest paragraph, was read before: some pages were published twice."""
    longest = max(text.split("\n\n"), key=len)
    digest = hashlib.blake2b((longest if len(longest) >= 300 else text).encode(), digest_size=8).digest()
    known = digest in seen
    seen.add(digest)
    return known


def report(data):
    """A table per set: documents, megabytes once and with repeats, held-out documents."""
    table, totals = {}, {}
    for split, document in split_documents(data):
        line = table.setdefault(document.set_name, [0, 0, 0, 0, document.domain])
        if split == "held_out":
            line[3] += 1
            continue
        size = len(document.text)
        line[0] += 1
        line[1] += size
        line[2] += size * document.weight
        totals[document.domain] = totals.get(document.domain, 0) + size * document.weight
    print(f"{'set':48} {'domain':8} {'documents':>9} {'MB':>7} {'weight':>7} {'MB read':>8} {'held out':>8}")
    for name, (count, size, read, held, domain) in table.items():
        weight = read / size if size else 0
        print(f"{name:48} {domain:8} {count:9d} {size / 1e6:7.2f} {weight:7.2f} {read / 1e6:8.2f} {held:8d}")
    count, size, read, held = (sum(line[i] for line in table.values()) for i in range(4))
    print(f"{'all':48} {'':8} {count:9d} {size / 1e6:7.2f} {read / size:7.2f} {read / 1e6:8.2f} {held:8d}")
    print("MB read by domain: " + ", ".join(f"{domain} {size / 1e6:.1f}" for domain, size in sorted(totals.items())))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python3 -m nano.corpus DATA_DIR")
    report(pathlib.Path(sys.argv[1]))
