"""Dialogues about simple facts: countries, word meanings, an authored bank, the calendar, and honest "I do not know".

Every fact is a question with an answer whose key words stand between asterisks; the key feeds the thought and the
one-word answers. A fact is held out by its question, so held-out dialogues ask known things in unseen words.
"""

import json
import lzma
import random
import re
import sys
from pathlib import Path

from .. import chatml
from .fact import (BANKS, Fact, SYSTEMS, SYSTEM_SHARE, THINKING_SHARE, article, capital, fill, held, key_of,
                   lower_first, plain)
from .countries import WELL_KNOWN, country_fact, listing, read_countries


def automatic_follow_up(question):
    if "{1}" in question or "{a1}" in question or "{2}" in question:
        return []
    subject = "{a0}" if "{a0}" in question else "{0}"
    return [f"And {subject}?", f"What about {subject}?", f"And what about {subject}?"]


def table_facts(path):
    """The facts of the authored tables: each template pair applied to each row, one list per row and pair."""
    facts, name, pairs, follow = [], "", [], []
    for line in path.read_text(encoding="utf8").splitlines():
        if line.startswith("## "):
            name, pairs, follow = line[3:], [], []
        elif line.startswith("+ "):
            follow = line[2:].split(" | ")
        elif line.startswith("? "):
            pairs.append([line[2:].split(" | "), ""])
        elif line.startswith("! "):
            pairs[-1][1] = line[2:]
        elif line.strip():
            row = line.split(" ; ")
            for number, (questions, answer) in enumerate(pairs):
                follows = (follow or automatic_follow_up(questions[0])) if number == 0 else []
                facts.append([
                    Fact(capital(fill(question, row)), capital(fill(answer, row)),
                         fill(follows[i % len(follows)], row) if follows else "", f"{name}{number}")
                    for i, question in enumerate(questions)])
    return facts


def general_facts(path):
    facts = []
    for line in path.read_text(encoding="utf8").splitlines():
        questions, answer = line.split(" = ", 1) if " = mc2" not in line else line.rsplit(" = E", 1)
        if " = mc2" in line:
            answer = "E" + answer
        facts.append([Fact(question, answer) for question in questions.split(" | ")])
    return facts


def read_lists(path):
    """Kinds of things with members to name: [("fruits", ["apples", ...]), ...]."""
    rows = [line.split(" ; ") for line in path.read_text(encoding="utf8").splitlines()]
    return [(kind, members.split(", ")) for kind, members in rows]


def list_fact(rng, lists):
    kind, members = rng.choice(lists)
    count = rng.choice([2, 3, 3, 3, 4, 5])
    chosen, word = rng.sample(members, count), NUMBERS[count - 1]
    questions = [f"Name {word} {kind}.", f"Can you name {word} {kind}?", f"Give me {word} {kind}.",
                 f"List {word} {kind}.",
                 f"Tell me {word} {kind}.", f"What are {word} {kind}?"]
    return Fact(rng.choice(questions), f"{capital(word)} {kind} are *{listing(chosen)}*.", f"Now name {word} {kind}.",
                "list",
                f"I need {word} {kind}. " + " ".join(f"{i}: {member}." for i, member in enumerate(chosen, 1)))


# ---- words ----

NOT_DEFINED = set("""are not said but an or never mr who again why men things yes another eyes might heard both also mrs
almost everything while isn sat soon perhaps sometimes known days kept though already held getting
thank nobody within minutes neither spirits either someone whatever ways ain non hello with about
into this that from they them then than when what where will would should could been being have does
did done more most much many some such only very just over under after before these those there
their here because since until unless during each every other same anything something nothing anyone
everyone josh graham martin roman data tuition grace mark gin granite slush vaginal testament
himself herself myself itself themselves yourself ours mine yours hers his him her""".split())
UNFIT = re.compile(r"\b(genus|slang|sexual|sex|intercourse|offensive|disparag|vulgar|obscene|ethnic|slur|genital|"
                   r"prostitut|drug|breast|vagina|penis|anus|urin|feces|Jew|Negro|Nazi|heathen|homosexual|lesbian|"
                   r"kill|murder|suicid)", re.I)
UNCOUNTED = set("""element metal gas powder substance fabric cloth textile feeling emotion quality state science
discipline food nutriment meat liquid sugar acid wood paper music money grass soil material trait condition clothing
hair ability knowledge activity happiness behavior property attribute weather time sadness fear alcohol drink beverage
flour oil fuel mineral dirt rock stone poetry writing herb spice flavorer cheese sauce bread protein""".split()) | {
    "metallic element", "chemical element"}
ABSTRACT = re.compile(r"(an?|the) (\w+ )?(quality|state|feeling|condition|science|system|proportion|form|sense|"
                      r"act|lack|amount|protein) ")
KINDS = """animal bird fish insect tree flower fruit vegetable tool vehicle building furniture clothing color instrument
weapon game sport dance meal worker disease ship container machine garment hat
shoe gem language cake""".split()


def ascii_text(text):
    for odd, simple in (("\u2018", "'"), ("\u2019", "'"), ("\u201c", '"'), ("\u201d", '"'), ("\u2014", "-"),
                        ("\u2013", "-"), ("\u2026", "..."), ("\u00e9", "e")):
        text = text.replace(odd, simple)
    return text


def inflected(word, lemmas):
    """Whether the word is only a form of another one: a definition of "walked" teaches nothing."""
    stems = [word[:-n] for ending, n in (("ed", 2), ("ed", 1), ("ing", 3), ("s", 1), ("es", 2), ("er", 2), ("est", 3))
             if word.endswith(ending)]
    stems += [stem + "e" for stem in stems] + [word[:-3] + "y"] * word.endswith("ies")
    return any(stem in lemmas for stem in stems)


def common_words(data):
    with lzma.open(data / "common-voice-sentences" / "sentences_en.txt.xz", "rt", encoding="utf8") as file:
        counts = {}
        for word in re.findall(r"[a-z]+", file.read().lower()):
            counts[word] = counts.get(word, 0) + 1
    return counts


def read_words(data):
    """(lemma, synset, weight) of common words with one sense and a short plain definition."""
    senses = {}
    with lzma.open(data / "wordnet" / "english_wordnet_common.jsonl.xz", "rt", encoding="utf8") as file:
        for row in map(json.loads, file):
            for lemma in row["lemmas"]:
                senses.setdefault(lemma, []).append(row)
    counts, words = common_words(data), []
    for lemma, rows in senses.items():
        if not re.fullmatch(r"[a-z]{3,12}", lemma) or lemma in NOT_DEFINED or len(rows) > 1:
            continue
        row = rows[0]
        definition = ascii_text(row["definition"]).split(";")[0].strip().rstrip(".")
        definition = re.sub(r"\s*\([^)]*\)\s*", " ", definition).strip()
        ok = 3 <= len(definition.split()) < 20 and definition.isascii() and not UNFIT.search(definition)
        ok = ok and not re.search(rf"\b{lemma}", definition)
        ok = ok and all(counts.get(part, 0) >= 1
                        for part in re.findall(r"[a-z]{3,}", definition)) and (row["pos"] != "v" or "examples" in row)
        if ok and row["pos"] in ("n", "v", "a", "s") and counts.get(lemma, 0) >= 2 and not inflected(lemma, senses):
            weight = min(counts[lemma], 30) ** 0.5
            words.append((lemma, dict(row, definition=definition), weight))
    return words


def word_fact(rng, lemma, row):
    definition, pos = row["definition"], row["pos"]
    examples = [ascii_text(e) for e in row.get("examples", []) if e.isascii() and 3 <= len(e.split()) <= 12
                and re.search(rf"\b{lemma}", e) and not UNFIT.search(e)]
    synonyms = [l for l in row["lemmas"] if re.fullmatch(r"[a-z ]{3,14}", l) and l != lemma]
    kind = row.get("kind_of", "") if pos == "n" else ""
    roll = rng.random()
    if roll < 0.05 and synonyms:
        others = synonyms[:rng.choice([1, 1, 2])]
        quoted = listing([f'"{s}"' for s in others])
        return Fact(rng.choice([f'What is a synonym of "{lemma}"?', f"Give me another word for {lemma}.",
                                f"What is another word for {lemma}?",
                                f'Which word means the same as "{lemma}"?']),
                    f'*{capital(quoted)}* can mean the same as "{lemma}".', f'And of "{lemma}"?', "synonym")
    counted = kind not in UNCOUNTED and not re.search(r"(ness|ity|ism|ium|ance|ence|ics|ship|hood|ery|ware|wear)$",
                                                      lemma)
    counted = counted and not ABSTRACT.match(definition)
    starts = re.match(r"(a|an|the|any|someone|something|one) ", definition) and counted
    if roll < 0.20 and kind and re.fullmatch(r"[a-z ]+", kind) and starts and kind in KINDS:
        if rng.random() < 0.5:
            return Fact(rng.choice([f"Is {article(lemma)} {article(kind)}?", f"Is {article(lemma)} a kind of {kind}?"]),
                        f"*Yes*, {article(lemma)} is a kind of {kind}.")
        return Fact(rng.choice([f"What kind of thing is {article(lemma)}?",
                                f"What sort of thing is {article(lemma)}?"]),
                    f"{capital(article(lemma))} is *a kind of {kind}*.", f"And {article(lemma)}?", "kind")
    ask = [f"What does {lemma} mean?", f'What does "{lemma}" mean?', f"Define {lemma}.",
           f'What is the meaning of "{lemma}"?',
           f"Explain the word {lemma}.", f"What does the word {lemma} mean?", f'Can you define "{lemma}"?']
    if pos == "n" and starts:
        ask += [f"What is {article(lemma)}?", f"What is {article(lemma)}?"]
        answer = f"{capital(article(lemma))} is *{definition}*."
        if not re.match(r"(a|an|any|someone|something|one) ", definition):
            answer, ask = f'"{capital(lemma)}" means *{definition}*.', ask[:-2]
    elif pos == "v":
        definition = definition.removeprefix("to ")
        answer = rng.choice([f"To {lemma} is to *{definition}*.", f'"{capital(lemma)}" means to *{definition}*.'])
    elif pos in ("a", "s"):
        answer = rng.choice([f'"{capital(lemma)}" means *{definition}*.', f'The word "{lemma}" means *{definition}*.'])
    else:
        answer = f'"{capital(lemma)}" means *{definition}*.'
    if examples and rng.random() < 0.35:
        example = rng.choice(examples).rstrip(".")
        answer += f' For example: "{capital(example)}."'
    follow = rng.choice([f"And {lemma}?", f"What about {lemma}?", f'And "{lemma}"?'])
    return Fact(rng.choice(ask), answer, follow, "word")


# ---- calendar and alphabet ----

DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
          "December"]
LENGTHS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split()
NUMBERS = "one two three four five six seven eight nine ten eleven twelve".split()
NORTHERN_SEASONS = ["winter", "winter", "spring", "spring", "spring", "summer", "summer", "summer", "autumn", "autumn",
                    "autumn", "winter"]


def calendar_fact(rng):
    kind, i, m = rng.randrange(13), rng.randrange(7), rng.randrange(12)
    day, month = DAYS[i], MONTHS[m]
    pick = rng.choice
    if kind == 0:
        return Fact(pick([f"What day comes after {day}?", f"Which day follows {day}?",
                          f"What is the day after {day}?"]),
                    f"*{DAYS[(i + 1) % 7]}* comes after {day}.", f"And after {day}?", "day after")
    if kind == 1:
        return Fact(pick([f"What day comes before {day}?", f"Which day is before {day}?",
                          f"What is the day before {day}?"]),
                    f"*{DAYS[i - 1]}* comes before {day}.", f"And before {day}?", "day before")
    if kind == 2:
        return Fact(pick([f"If today is {day}, what day is tomorrow?", f"Today is {day}. What day is it tomorrow?"]),
                    f"If today is {day}, tomorrow is *{DAYS[(i + 1) % 7]}*.")
    if kind == 3:
        return Fact(pick([f"If today is {day}, what day was yesterday?",
                          f"Today is {day}. What day was it yesterday?"]),
                    f"If today is {day}, yesterday was *{DAYS[i - 1]}*.")
    if kind == 4:
        n = rng.randrange(2, 7)
        return Fact(pick([f"What day is {NUMBERS[n - 1]} days after {day}?",
                          f"Today is {day}. What day is it in {n} days?"]),
                    f"{capital(NUMBERS[n - 1])} days after {day} it is *{DAYS[(i + n) % 7]}*.",
                    thought=f"I count on from {day}: " + ", ".join(f"{k} {DAYS[(i + k) % 7]}" for k in range(1, n + 1))
                    + ".")
    if kind == 5:
        return Fact(pick([f"Which month comes after {month}?", f"What month follows {month}?",
                          f"What is the month after {month}?"]),
                    f"*{MONTHS[(m + 1) % 12]}* comes after {month}.", f"And after {month}?", "month after")
    if kind == 6:
        return Fact(pick([f"Which month comes before {month}?", f"What is the month before {month}?"]),
                    f"*{MONTHS[m - 1]}* comes before {month}.", f"And before {month}?", "month before")
    if kind == 7:
        return Fact(pick([f"What is the {ORDINALS[m]} month of the year?", f"Which month is number {m + 1}?",
                          f"Name month {m + 1} of the year."]),
                    f"The {ORDINALS[m]} month of the year is *{month}*.", f"And the {ORDINALS[m]} month?",
                    "month number")
    if kind == 8:
        return Fact(pick([f"What number is {month}?", f"Which number month is {month}?"]),
                    f"{month} is month *{m + 1}*.", f"And {month}?", "number")
    if kind == 9:
        text = "*28 days, or 29 in a leap year*" if m == 1 else f"*{LENGTHS[m]}* days"
        return Fact(pick([f"How many days does {month} have?", f"How many days are in {month}?",
                          f"How long is {month}?"]),
                    f"{month} has {text}.", f"And {month}?", "length")
    if kind == 10:
        return Fact(pick([f"In which season is {month} in Europe?",
                          f"What season is {month} in the northern half of the world?"]),
                    f"In the north, {month} is in *{NORTHERN_SEASONS[m]}*.", f"And {month}?", "season")
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    j = rng.randrange(25)
    if kind == 11:
        return Fact(pick([f"What letter comes after {letters[j]}?", f"Which letter follows {letters[j]}?"]),
                    f"*{letters[j + 1]}* comes after {letters[j]}.", f"And after {letters[j]}?", "letter")
    return Fact(pick([f"What letter comes before {letters[j + 1]}?", f"Which letter is before {letters[j + 1]}?"]),
                f"*{letters[j]}* comes before {letters[j + 1]}.", f"And before {letters[j + 1]}?", "letter before")


# ---- what nobody can know ----

def invented(rng):
    """A name that belongs to nothing: two or three syllables out of a large set."""
    heads = "Zor Quel Brim Vash Drof Plim Korv Mez Thrul Yab Grin Snod Wex Ulm Fliz Jorv Krad Nolb Prax Skel".split()
    middles = "a e i o u ar el in or us ax il".split()
    tails = "via nia dor mund beck stan lund vik rath zen mar tuk lix dran gol".split()
    return rng.choice(heads) + rng.choice(middles) + rng.choice(tails)


UNKNOWN = (
    ("What is the capital of {N}?", "I do not know a country called {N}. It may not exist, so I will not guess."),
    ("Where is {N}?", "I am not sure. I do not know a place called {N}."),
    ("Who is {F} {N}?", "I do not know anyone called {F} {N}. I would rather not guess."),
    ("Who was {F} {N}?", "I am not sure who {F} {N} was. I have no facts about that name."),
    ("What is a {n}?", "I do not know the word \"{n}\". Could you tell me where you saw it?"),
    ("What does {n} mean?", "I am not sure. I do not know the word \"{n}\"."),
    ("Define {n}.", "I do not know a word \"{n}\", so I cannot define it."),
    ("When was the battle of {N}?", "I do not know of a battle of {N}, so I cannot give a date."),
    ("Who wrote The {N} Diaries?", "I am not sure. I do not know a book with that title."),
    ("How tall is Mount {N}?", "I do not know a mountain called {N}, so I cannot tell its height."),
    ("Which river flows through {N}?", "I do not know a place called {N}, so I cannot say."),
    ("Who invented the {n}?", "I do not know what a {n} is, so I cannot say who invented it."),
    ("What language do people speak in {N}?", "I am not sure. I have not heard of {N}."),
    ("How many people live in {N}?", "I do not know a place called {N}, so I cannot give a number."),
    ("Tell me about the {N} company.", "I do not know a company called {N}. I do not want to make something up."),
    ("What is the currency of {N}?", "I do not know a country called {N}. Perhaps the name is spelled differently?"),
    ("What did {F} {N} discover?", "I am not sure. I know nothing about a person called {F} {N}."),
    ("Which planet is called {N}?",
     "I know no planet called {N}. It is not one of the eight planets of the solar system."),
    ("What does the {n} bird eat?", "I do not know a bird called {n}, so I cannot say what it eats."),
    ("What is my name?", "I do not know your name. You have not told me yet."),
    ("What did I eat yesterday?", "I cannot know what you ate yesterday."),
    ("How old am I?", "I do not know your age. You have not told me."),
    ("What is the weather like right now?", "I cannot see the weather from here. Please look at a weather service."),
    ("What time is it?", "I have no clock, so I cannot tell you the time."),
    ("What is today's date?", "I have no calendar at hand, so I do not know today's date."),
    ("Who won the game last night?", "I cannot see the news, so I do not know who won."),
    ("What will the lottery numbers be?", "Nobody can know the lottery numbers in advance."),
    ("What am I thinking of?", "I cannot read your thoughts. Will you tell me?"),
    ("What is in my pocket?", "I cannot see your pocket, so I do not know."),
    ("What is my neighbour's name?", "I do not know your neighbour, so I cannot tell the name."),
    ("How much does my house cost?", "I know nothing about your house, so I cannot give a price."),
    ("What is the price of gold today?", "I cannot see today's prices. Please check a current source."),
    ("Will it rain tomorrow?", "I cannot see the forecast, so I do not know. Please check a weather service."),
    ("Who will win the next election?", "Nobody can know that for sure, and I will not guess."),
    ("How many fish are in the sea right now?", "Nobody knows the exact number. There are very many."),
)
FIRST_NAMES = "Anna Peter Clara Otto Maria Henry Lena Victor Rosa Martin Ella Paul".split()


def unknown_turn(rng):
    question, answer = rng.choice(UNKNOWN if rng.random() < 0.35 else UNKNOWN[:19])
    name, first = invented(rng), rng.choice(FIRST_NAMES)
    def put(text):
        return text.replace("{N}", name).replace("{n}", name.lower()).replace("{F}", first)
    if "{" in question:
        who = first + " " + name if "{F}" in question else name.lower() if "{n}" in question else name
        thought = rng.choice([f"I do not know {who}. I should say so and not make something up.",
                              f"The name {who} is unknown to me. It is best to be honest.",
                              f"I have no facts about {who}. I will say that I do not know.",
                              f"Do I know {who}? No. Then I must not guess."])
    else:
        thought = rng.choice(["I have no way to know this. I will say so.",
                              "This is not something I can see or know. Be honest.",
                              "I cannot know this from here. I should say so and not guess."])
    return put(question), put(answer), thought


# ---- dialogues ----

OPENINGS = ("", "", "", "", "", "", "", "", "Quick question: ", "Can you tell me: ", "I have a question. ", "Hi! ",
            "Hello, ",
            "Please tell me: ", "Question: ", "I want to know: ", "Do you know this? ", "Help me with a quiz. ")
NEXT = ("", "", "", "Thanks! ", "Thank you. ", "Okay. ", "Good. ", "And one more: ", "Next question: ", "Great. ")


def ask(rng, question, openings=OPENINGS):
    """The question the way people type it: sometimes with a greeting, sometimes without care for capitals."""
    opening = rng.choice(openings if question.endswith("?") else ("", "", "Hi! ", "Please: "))
    text = opening + (lower_first(question) if opening.endswith((": ", ", ")) and ". " not in question else question)
    if not opening and rng.random() < 0.2:
        text = text.lower().rstrip("?.") if rng.random() < 0.5 else lower_first(text)
    return text


def thought_about(rng, fact):
    if fact.thought:
        return fact.thought
    question, key, full = fact.question, key_of(fact.answer), plain(fact.answer)
    if key in ("Yes", "No", "True", "False"):
        reason = capital(re.sub(r"^(Yes|No|True|False)[,.] ?", "", full))
        return f"{reason} So the answer is {key.lower()}." if reason else f"The answer is {key.lower()}."
    key = key.rstrip(".")
    choices = [f"The user asks: {question} Key fact: {key}.", f"I know this one: {key}.", f"The key point is: {key}.",
               f"Let me recall. {full}", f"A simple question. I remember: {key}."]
    return rng.choice(choices[1:] if len(question) > 70 or not question.endswith("?") else choices)


def build(rng, domain, turns, thought, systems=SYSTEMS):
    """A checked dialogue from (question, answer) turns; thinking is on for a little more than half of them."""
    thinking = bool(thought) and rng.random() < THINKING_SHARE
    messages = []
    if rng.random() < SYSTEM_SHARE:
        messages.append({"role": "system", "content": rng.choice(systems)})
    for question, answer in turns:
        messages.append({"role": "user", "content": question})
        messages.append({"role": "assistant", "content": answer})
    if thinking:
        messages[-1]["reasoning_content"] = thought
    return chatml.check({"messages": messages, "thinking": thinking, "domain": domain})


class Facts:
    """All sources of facts, drawn by weight."""

    def __init__(self, data):
        self.countries = read_countries(data)
        self.names = sorted(self.countries)
        self.country_weights = [8 if name in WELL_KNOWN else 1 for name in self.names]
        self.capitals = [info["capital"] for info in self.countries.values() if info["capital"]]
        self.words = read_words(data)
        self.word_weights = [weight for _, _, weight in self.words]
        self.authored = table_facts(BANKS / "facts_tables.txt")
        self.classes = [(article(row[0].answer.split(" is ")[0].lower()), key_of(row[0].answer))
                        for row in self.authored if row[0].group == "class0"]
        self.lists = read_lists(BANKS / "facts_lists.txt")
        self.general = general_facts(BANKS / "facts_general.txt")
        self.trivia = general_facts(BANKS / "facts_trivia.txt") + general_facts(BANKS / "facts_more.txt")

    def country(self, rng):
        while True:
            name = rng.choices(self.names, self.country_weights)[0]
            fact = country_fact(rng, name, self.countries[name], self.capitals)
            if fact:
                return fact

    def word(self, rng):
        lemma, row, _ = rng.choices(self.words, self.word_weights)[0]
        return word_fact(rng, lemma, row)

    def wrong_class(self, rng):
        """A yes/no question about an animal of another class, so that "yes" is not always right."""
        one, other = rng.sample(self.classes, 2)
        animal, its = one
        if its == other[1]:
            return Fact(f"Is {animal} {its}?", f"*Yes*, {animal} is {its}.")
        return Fact(rng.choice([f"Is {animal} {other[1]}?", f"Would you call {animal} {other[1]}?"]),
                    f"*No*, {animal} is {its}.")

    def draw(self, rng, kind):
        if kind == "country":
            return self.country(rng)
        if kind == "word":
            return self.word(rng)
        if kind == "calendar":
            return calendar_fact(rng)
        if kind == "list":
            return list_fact(rng, self.lists)
        if kind == "class":
            return self.wrong_class(rng)
        return rng.choice(rng.choice({"general": self.general, "trivia": self.trivia}.get(kind, self.authored)))

    def draw_from(self, rng, kind, held_out, group=None):
        """A fact of the wanted part of the split, and of one group where a follow-up needs it."""
        for _ in range(4000):
            fact = self.draw(rng, kind)
            if held(fact.question) == held_out and (group is None or fact.group == group and fact.follow_up):
                return fact
        return None


def short_answer(rng, fact):
    """The question with a wish for one word, and the key alone as its answer; None where the key is long."""
    key = key_of(fact.answer)
    if len(key.split()) > 3 or not fact.question.endswith("?") or " or " in key:
        return None
    wish = rng.choice(["Answer with one word or name.", "Short answer, please.", "Just the answer.",
                       "Only the answer, please."])
    return f"{fact.question} {wish}", capital(key).rstrip(".") + "."


def fact_dialogue(rng, facts, held_out):
    kind = rng.choices(["country", "word", "authored", "general", "trivia", "calendar", "class", "list"],
                       [20, 16, 32, 18, 26, 6, 2, 4])[0]
    fact = facts.draw_from(rng, kind, held_out)
    if fact is None:
        return None
    roll = rng.random()
    thought = thought_about(rng, fact)
    if roll < 0.06 and (short := short_answer(rng, fact)):
        return build(rng, "facts", [short], thought)
    if roll < 0.18 and fact.follow_up and (before := facts.draw_from(rng, kind, False,
            fact.group)) and before.answer != fact.answer:
        turns = [(ask(rng, before.question), plain(before.answer)), (fact.follow_up, plain(fact.answer))]
        third = facts.draw_from(rng, kind, False, fact.group) if rng.random() < 0.3 and not held_out else None
        if third and third.answer not in (fact.answer, before.answer):
            turns.append((third.follow_up, plain(third.answer)))
            thought = thought_about(rng, third)
        return build(rng, "facts", turns, thought)
    if roll < 0.24:
        before = facts.draw_from(rng, rng.choice(["authored", "general", "country"]), False)
        return build(rng, "facts", [(ask(rng, before.question), plain(before.answer)),
                                    (ask(rng, fact.question, NEXT), plain(fact.answer))], thought)
    if roll < 0.26:
        sure = rng.choice(["Are you sure?", "Is that right?", "Really?"])
        return build(rng, "facts", [(ask(rng, fact.question), plain(fact.answer)),
                                    (sure, "Yes, I am quite sure. " + plain(fact.answer))],
                     rng.choice(["I check it again: ", "The user doubts it. I recall: "])
                     + key_of(fact.answer).rstrip(".") + ".")
    return build(rng, "facts", [(ask(rng, fact.question), plain(fact.answer))], thought)


def unknown_dialogue(rng, held_out):
    while True:
        question, answer, thought = unknown_turn(rng)
        if held(question) == held_out:
            return build(rng, "facts", [(ask(rng, question), answer)], thought)


def dialogues(rng, data, split, count):
    """Yields `count` dialogues of the split ("train" or "held_out")."""
    facts, held_out, made = Facts(Path(data)), split == "held_out", 0
    while made < count:
        dialogue = unknown_dialogue(rng, held_out) if rng.random() < 0.05 else fact_dialogue(rng, facts, held_out)
        if dialogue:
            made += 1
            yield dialogue


def main():
    """Prints the counts of the bank, then samples: DATA [COUNT]."""
    facts = Facts(Path(sys.argv[1]))
    every = facts.authored + facts.general
    print(f"{len(every)} authored facts in {sum(map(len, every))} phrasings, {len(facts.words)} words, "
          f"{len(facts.names)} countries")
    for dialogue in dialogues(random.Random(1), Path(sys.argv[1]), "train",
                              int(sys.argv[2]) if len(sys.argv) > 2 else 0):
        print(chatml.render(dialogue) + "-" * 40)


if __name__ == "__main__":
    main()
