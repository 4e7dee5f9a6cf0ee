"""Pairs of texts that belong together, read from the data folder: what is asked, and what answers it.

    for source, pairs in all_pairs(data): ...        Pair(query, passage, group, key)
    held_out_medquad(data), held_out_tales(data)     rows as the sets have them, never among the pairs

Pairs of one group (a tale, a disease, a page) come into one batch, so that each is the other's wrong answer; pairs of one
key have the same right answer and are never each other's wrong one.

Held out: of MedQuAD every question and answer about 15 % of the topics, chosen by hash, of FairytaleQA 10 % of the tales and
its validation part. Another 4 % of the topics and 6 % of the tales are kept to fit weights on. Texts elsewhere that share 13 words in a row with a held-out tale or answer are dropped (leaks()).
"""

import dataclasses
import re

from .passages import chunks, plain, rows, sections, share
from .wordpiece import words

HELD_OUT_TOPICS = 0.15
HELD_OUT_TALES = 0.10
KEPT_TOPICS = 0.04  # of the others, in no pair either: weights are fitted on them
KEPT_TALES = 0.06
KEPT_AMONG_ANSWERS, KEPT_AMONG_TALES = 800, 28  # others in which they are looked for, so that as many are wrong as of the held-out
LEAK_WORDS = 13


@dataclasses.dataclass
class Pair:
    query: str
    passage: str
    group: str = ""
    key: str = ""


# --- held out ---------------------------------------------------------------------------------------------------------

ASKED = re.compile(
    r"^(?:what (?:is|are) (?:the )?(?:\w+ ){0,3}?(?:of|for|related to|to prevent|to treat)|what research .*? (?:for|on)"
    r"|what i need to know about|what (?:is|are|causes|to do for)|who is at risk for|how (?:to \w+|many people are affected by)"
    r"|do you have information about|give me .*? about|how does|is|are)\b(?: \(are\))?(?: what i need to know about)?", re.I)


def topic(question):
    """What a question of MedQuAD is about: its words less the words that ask."""
    text = ASKED.sub("", question.strip(" ?")).lower()
    return " ".join(re.findall(r"\w+", re.sub(r"\binherited$", "", text.strip(" ?"))))


def is_held_out_topic(row):
    return share("medquad " + topic(row["q"])) < HELD_OUT_TOPICS


def is_kept_topic(row):
    return HELD_OUT_TOPICS <= share("medquad " + topic(row["q"])) < HELD_OUT_TOPICS + KEPT_TOPICS


def is_held_out_tale(tale):
    return share("tale " + tale["id"]) < HELD_OUT_TALES


def is_kept_tale(tale):
    return HELD_OUT_TALES <= share("tale " + tale["id"]) < HELD_OUT_TALES + KEPT_TALES


def medquad_rows(data):
    return rows(data / "medquad" / "medquad.jsonl.xz")


def tale_rows(data):
    return rows(data / "fairytaleqa" / "fairytaleqa_train.jsonl.xz")


def held_out_medquad(data):
    return [row for row in medquad_rows(data) if is_held_out_topic(row)]


def held_out_tales(data):
    return [tale for tale in tale_rows(data) if is_held_out_tale(tale)] + rows(data / "eval" / "fairytaleqa_val.jsonl.xz")


def kept_medquad(data):
    """Rows to fit weights on, with as many others as held-out ones among them: (those that are asked, all)."""
    kept = [row for row in medquad_rows(data) if is_kept_topic(row)]
    others = [row for row in medquad_rows(data) if not is_kept_topic(row) and not is_held_out_topic(row)]
    return kept, kept + sorted(others, key=lambda row: share("among " + row["q"] + row["a"]))[:KEPT_AMONG_ANSWERS]


def kept_tales(data):
    kept = [tale for tale in tale_rows(data) if is_kept_tale(tale)]
    others = [tale for tale in tale_rows(data) if not is_kept_tale(tale) and not is_held_out_tale(tale)]
    return kept, kept + sorted(others, key=lambda tale: share("among " + tale["id"]))[:KEPT_AMONG_TALES]


def ngrams(text):
    found = words(text)
    return (hash(tuple(found[i:i + LEAK_WORDS])) for i in range(len(found) - LEAK_WORDS + 1))


def held_out_ngrams(data):
    known = set()
    for row in held_out_medquad(data):
        known.update(ngrams(row["a"]))
    for tale in held_out_tales(data):
        for section in tale["sections"]:
            known.update(ngrams(section))
    return known


def leaks(text, known):
    return any(one in known for one in ngrams(text))


# --- questions by people ----------------------------------------------------------------------------------------------


def medquad(data):
    """Answers of other topics only, and none that is word for word a held-out one."""
    reserved = {row["a"].strip() for row in held_out_medquad(data)}
    for row in medquad_rows(data):
        if is_held_out_topic(row) or is_kept_topic(row) or row["a"].strip() in reserved:
            continue
        for text in chunks(row["a"])[:5]:
            yield Pair(row["q"], text, topic(row["q"]), "m " + row["q"])


def tale_pieces(data):
    """(tale, number of the section, question and answer, the piece of the section that has most words of both)."""
    for tale in tale_rows(data):
        if is_held_out_tale(tale) or is_kept_tale(tale):
            continue
        parts = [chunks(section) for section in tale["sections"]]
        for qa in tale["qa"]:
            number = int(qa["section"]) if str(qa["section"]).isdigit() else 0
            if not 1 <= number <= len(parts) or not parts[number - 1]:
                continue
            asked = set(words(f"{qa['q']} {qa['a']}"))
            best = max(parts[number - 1], key=lambda part: len(asked & set(words(part))))
            yield tale, number, qa, best


def fairytaleqa(data):
    for tale, number, qa, piece in tale_pieces(data):
        yield Pair(qa["q"], piece, tale["id"], f"{tale['id']} {number}")


def tale_answers(data):
    """What happens in a tale, as an answer says it."""
    for tale, number, qa, piece in tale_pieces(data):
        if len(qa["a"].split()) >= 4:
            yield Pair(qa["a"], piece, tale["id"], f"{tale['id']} {number}")


def strategyqa(data):
    for row in rows(next((data / "strategyqa").iterdir())):
        yield Pair(row["question"], " ".join(row["facts"]), "", "s " + row["qid"])
        yield Pair(row["term"], f"{row['description']}. {' '.join(row['facts'][:1])}", "", "s " + row["qid"])


def cos_e(data):
    explained = {}
    for path in sorted((data / "cos-e").iterdir()):
        for row in rows(path):
            if "explanation" in row:
                explained[row["id"]] = row["explanation"].get("open-ended", "")
    for path in sorted((data / "cos-e").iterdir()):
        for row in rows(path):
            text = explained.get(row["id"], "")
            if "question" in row and len(text.split()) > 3:
                yield Pair(row["question"]["stem"], text, "", "c " + row["id"])


# task: (what of the input is the passage, what is asked: of the input, or None for the output)
CONTEXT = r"(?:Context|Passage|Fact|Fact ?1|Paragraph|Background Paragraph|Sentence|statement):\s*(.+?)"
QUESTION = r"(?:Question|question):\s*(.+?)\s*(?:\n|$|<sep>| ?\(A\)| ?Options)"
BOTH = re.compile(CONTEXT + r"[,\s]*" + QUESTION, re.S)
NATURAL = {
    "task023": (re.compile(CONTEXT + r"\s*$", re.S), None),
    "task024": (BOTH, 2),
    "task037": (re.compile(CONTEXT + r"\s*$", re.S), None),
    "task040": (re.compile(CONTEXT + r"\s*$", re.S), None),
    "task041": (BOTH, 2),
    "task060": (re.compile(CONTEXT + r"\s*$", re.S), None),
    "task080": (re.compile(r"(.+)", re.S), None),
    "task1530": (re.compile(r"(.+)", re.S), None),
    "task1555": (BOTH, 2),
    "task1567": (re.compile(r"(.+)", re.S), None),
    "task1580": (re.compile(r"(.+)", re.S), None),
    "task565": (re.compile(r"(.+)", re.S), None),
    "task223": (re.compile(r"Question:\s*(.+)", re.S), None),
    "task1656": (re.compile(r"(.+)", re.S), None),
    "task1556": (re.compile(r"Question:\s*(.+)", re.S), None),
}


def natural_instructions(data):
    for task in rows(next((data / "natural-instructions").iterdir())):
        shape = NATURAL.get(task["task"].split("_")[0])
        if not shape:
            continue
        for given, wanted in task["instances"]:
            found = shape[0].search(given)
            if not found:
                continue
            wanted = wanted[0] if isinstance(wanted, list) else str(wanted)
            asked = found.group(shape[1]) if shape[1] else wanted
            if len(asked.split()) >= 3 and len(found.group(1).split()) >= 3:
                yield Pair(asked, found.group(1)[:1200], "", "n " + found.group(1)[:80])


def gpteacher(data):
    for path in sorted((data / "gpteacher").iterdir()):
        for number, row in enumerate(rows(path)):
            text = f"{row['instruction']} {row.get('input') or ''}".strip()
            if len(text) < 400 and len(row["response"].split()) >= 8:
                yield Pair(text, chunks(row["response"])[0], "", f"g {path.name} {number}")


def wordnet(data):
    """A word and its definition, asked in several ways; the examples stand behind it."""
    ways = ("{}", "what does {} mean", "meaning of {}", "{} definition")
    for number, row in enumerate(rows(next((data / "wordnet").iterdir()))):
        lemmas = [lemma.replace("_", " ") for lemma in row["lemmas"]]
        text = row["definition"] + "".join(f". {example}" for example in row.get("examples", [])[:1])
        if row.get("kind_of"):
            kind = row["kind_of"]
            text += f" ({', '.join(kind) if isinstance(kind, list) else kind})"
        yield Pair(ways[number % 4].format(" ".join(lemmas[:2])), text, "", f"w {number}")


# --- headings ---------------------------------------------------------------------------------------------------------

DOCS = """30s_interviews 30s_python 30s_snippets dc_sql django flask go_blog hf_course js_algorithms lc_shell ms_data_science
    opensource_guide programming_historian python_peps rust_book rust_by_example scipy_lectures swc_gapminder swc_git swc_python
    swc_shell swc_sql turing_way whirlwind_python""".split()


def under_headings(id, text, title=""):
    """The last headings of a section as what is asked, with the title where they are short."""
    for path, body in sections(text, title):
        if not path:
            continue
        asked = path[-1]
        if len(asked.split()) < 4 and len(path) > 1:
            asked = f"{path[0]} {asked}" if share(asked + body[:40]) < 0.7 else f"{asked} {path[-2]}"
        for part in chunks(plain(body))[:4]:
            if len(part.split()) >= 12 and len(asked.split()) >= 2:
                yield Pair(asked[:160], part, id, f"h {id} {asked}")


def openstax(data):
    for path in sorted((data / "openstax-ccby").iterdir()):
        for row in rows(path):
            yield from under_headings(row["id"], row["text"], row["title"])


def usgov(data):
    for path in sorted((data / "usgov-public-domain").iterdir()):
        for row in rows(path):
            yield from under_headings(row["id"], row["text"])


def docs(data):
    for name in DOCS:
        path = next((data / "docs-permissive").glob(name + ".jsonl*"))
        for row in rows(path):
            yield from under_headings(f"{name} {row['id']}", row["text"])


def tldr(data):
    """A command's page by its description, and each example by what it does."""
    for row in rows(data / "docs-permissive" / "tldr.jsonl.xz"):
        said = re.search(r"^> (.+?)\.?$", row["text"], re.M)
        if said and "alias of" not in said.group(1) and share(row["id"]) < 0.5:
            yield Pair(said.group(1), re.sub(r"^> .*$", "", plain(row["text"]), flags=re.M)[:900], "", "t " + row["id"])


def recipes(data):
    for row in rows(next((data / "recipes-based-cooking").iterdir())):
        found = re.match(r"# (.+)\n", row["text"])
        if found:
            for part in chunks(plain(row["text"][found.end():]))[:2]:
                yield Pair(f"how to make {found.group(1)}", part, "", "r " + row["id"])


def factbook(data):
    for row in rows(next((data / "world-factbook").iterdir())):
        for part in row["text"].split("\n"):
            name, colon, text = part.partition(":")
            if colon and len(text.split()) >= 12 and len(name.split()) <= 6 and share(row["id"] + name) < 0.5:
                yield Pair(f"{row['name']} {name.lower()}", text.strip()[:1200], row["name"], f"f {row['name']} {name}")


# --- running text: pairs are cut out of it while training ----------------------------------------------------------------


def books(data, part=0.3):
    for row in rows(next((data / "books-public-domain").iterdir())):
        for path, body in sections(row["text"]):
            for number, text in enumerate(chunks(plain(body))):
                if len(text.split()) >= 40 and share(f"{row['id']} {number} {text[:40]}") < part:
                    yield Pair("", text, row["id"], "")


def stories(data):
    for name in ("stories-african-storybook", "stories-pratham"):
        for row in rows(next((data / name).iterdir())):
            for text in chunks(plain(row["text"])):
                if len(text.split()) >= 25:
                    yield Pair(row["title"], text, row["id"], f"b {row['id']}")


SOURCES = {
    "medquad": medquad, "fairytaleqa": fairytaleqa, "tale_answers": tale_answers, "strategyqa": strategyqa, "cos_e": cos_e,
    "natural_instructions": natural_instructions, "gpteacher": gpteacher, "wordnet": wordnet, "openstax": openstax,
    "usgov": usgov, "docs": docs, "tldr": tldr, "recipes": recipes, "factbook": factbook, "books": books,
    "stories": stories,
}


def all_pairs(data):
    """(name, its pairs), held-out texts left out."""
    known = held_out_ngrams(data)
    seen = {}
    for name, read in SOURCES.items():
        found = []
        for pair in read(data):
            # MedQuAD's answers share whole sentences ("This condition is inherited in an autosomal ..."): a topic's own are apart.
            if name != "medquad":
                leak = seen.get(pair.passage)
                if leak is None:
                    leak = seen[pair.passage] = leaks(pair.passage, known)
                if leak:
                    continue
            found.append(pair)
        yield name, found
