"""Conversations: small talk, advice, lists, short texts, rewriting and remembering what the user said.

    dialogues(rng, data, count)  yields `count` dialogues of the domain "chat"

The content comes from the chat_*.txt and talk_more.txt banks, from the slots of talk_slots.py, and from the computer
help in the chatterbot corpus of `data`.
"""

import functools
import pathlib
import re

from nano import corpus
from nano.synthetic import talk_slots as slots

BANKS = pathlib.Path(__file__).parent / "banks"
FILES = ["chat_smalltalk.txt", "chat_support.txt", "chat_explain.txt", "chat_topics.txt", "chat_yesno.txt",
         "talk_more.txt"]

THINKING_SHARE = 0.55
SYSTEM_SHARE = 0.15
OPENERS = {"greeting"}
CLOSERS = {"goodbye", "thanks"}
# What makes sense anywhere in a conversation, whatever was said before.
SELF_CONTAINED = {"identity", "explain", "advice", "list", "steps", "tips", "write", "compare", "joke", "about",
                  "rewrite", "feelings"}
# The intents of these categories are requests, so that "Please" and "Can you tell me" fit before them.
REQUESTS = {"explain", "list", "steps", "tips", "write", "compare", "joke", "about"}
WEIGHTS = {"greeting": 5, "goodbye": 2, "thanks": 2, "feelings": 4, "identity": 12, "compliment": 2, "insult": 2,
           "correction": 3, "clarify": 5, "bored": 2, "explain": 28, "support": 8, "advice": 8, "safety": 5,
           "refusal": 4, "unknown": 6, "list": 7, "steps": 5, "tips": 5, "write": 6, "compare": 5, "live": 6,
           "joke": 7, "about": 18, "rewrite": 14, "tech": 2}


def bank_lines(name):
    """(category, line) of a bank; remarks and empty lines left out."""
    category = ""
    for line in (BANKS / name).read_text(encoding="utf8").splitlines():
        line = corpus.normalise(line).strip()
        if line.startswith("[") and line.endswith("]"):
            category = line[1:-1]
        elif line and not line.startswith("#"):
            yield category, line


def parts(text):
    return [part.strip().replace("\\n", "\n") for part in text.split(" | ")]


@functools.cache
def bank():
    """{category: [(questions, answers)]} of all bank files."""
    intents = {}
    for name in FILES:
        for category, line in bank_lines(name):
            asked, _, answered = line.partition("=>")
            if category == "joke":
                intent = (slots.JOKE_REQUESTS, [line])
            elif category == "about":
                intent = ([form.format(asked.strip()) for form in slots.ABOUT_REQUESTS], parts(answered.strip()))
            else:
                intent = (parts(asked.strip()), parts(answered.strip()))
            intents.setdefault(category, []).append(intent)
    return intents


@functools.cache
def corpus_intents(data):
    """Help with computers: the part of the chatterbot corpus that is correct and fits a program that says so."""
    found = {}
    for row in corpus.rows(corpus.part(data / "chatterbot-corpus", "english")):
        if row["cat"] == "tech_support" and len(row["turns"]) == 2:
            asked, answered = (corpus.normalise(turn).strip() for turn in row["turns"])
            found[asked] = answered
    return {"tech": [([asked], [answered]) for asked, answered in sorted(found.items())]}


def lower_first(text):
    """The text as it goes on after a prefix: names and "I" keep their capital."""
    first = re.split(r"[\s']", text)[0].strip(",.!?")
    return text[0].lower() + text[1:] if first.lower() in slots.SENTENCE_STARTS else text


def varied(rng, text, category):
    """The text the way different people type it."""
    roll = rng.random()
    question = text.endswith("?")
    if category in REQUESTS and roll < 0.4 and "\n" not in text:
        if question:
            prefix = rng.choice(slots.QUESTION_PREFIXES)
            text = prefix + (lower_first(text) if not prefix.endswith(". ") else text)
        else:
            before, after = rng.choice(slots.REQUEST_FRAMES)
            text = before + lower_first(text) + after if before else text + after
    elif category in REQUESTS and roll < 0.45:
        text += rng.choice([" Please answer briefly.", " Keep it short.", " Thank you!"]) if text[-1] in "?.!" else \
            rng.choice([". Keep it short.", ". Thank you!"])
    style = rng.random()
    if style < 0.12:
        text = text.lower()
    elif style < 0.22 and category != "rewrite":
        text = text.lower().rstrip("?.!")
    elif style < 0.3 and category != "rewrite":
        text = text.rstrip("?.!")
    elif style < 0.4 and text[-1].isalnum():
        text += "!" if category in OPENERS | CLOSERS else "."
    return text or "hello"


def thought(rng, category, question):
    """A short plan that fits the category; now and then it quotes the question."""
    short = " ".join(question.split())
    plan = rng.choice(slots.THOUGHTS.get(category, slots.THOUGHTS["other"]))
    if len(short) < 70 and rng.random() < 0.35:
        return f'The user says: "{short}" ' + plan
    return plan


def exchange(rng, data, categories=None):
    """(category, question, answer, thought) of one intent."""
    intents = {**bank(), **corpus_intents(data)}
    names = sorted(name for name in WEIGHTS if categories is None or name in categories)
    category = rng.choices(names, [WEIGHTS[name] for name in names])[0]
    if category == "rewrite":
        question, answer, plan = slots.rewrite(rng)
        return category, varied(rng, question, "rewrite"), answer, plan
    asked, answered = rng.choice(intents[category])
    question = varied(rng, rng.choice(asked), category)
    answer = rng.choice(answered)
    if category == "joke" and rng.random() < 0.3:
        answer = rng.choice(["Here is one: ", "Sure! ", "All right. ", "Of course. "]) + answer
    return category, question, answer, thought(rng, category, question)


def turn(question, answer):
    return [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]


def conversation(rng, data):
    """One to four exchanges about different things, with a greeting first and a closing last now and then."""
    if rng.random() < 0.75:
        _, question, answer, plan = exchange(rng, data)
        return turn(question, answer), plan
    messages, seen, plan = [], set(), ""
    length = rng.choice([2, 2, 3, 3, 4])
    while len(messages) < 2 * length:
        index = len(messages) // 2
        kinds = SELF_CONTAINED
        if index == 0 and rng.random() < 0.35:
            kinds = OPENERS
        elif index == length - 1 and rng.random() < 0.35:
            kinds = CLOSERS
        elif index == 0 and rng.random() < 0.2:
            kinds = {"support", "unknown", "live"}
        _, question, answer, plan = exchange(rng, data, kinds)
        if answer not in seen:
            seen.add(answer)
            messages += turn(question, answer)
    return messages, plan


def remembering(rng, data):
    """The user tells something, talks of something else, and asks for it again."""
    messages = []
    told = rng.sample(slots.MEMORIES, rng.choice([1, 1, 2]))
    facts = [slots.memory(rng, skeleton) for skeleton in told]
    for fact in facts:
        messages += turn(fact["told"], fact["reply"])
    for _ in range(rng.choice([0, 0, 1, 1, 2])):
        _, question, answer, _ = exchange(rng, data, SELF_CONTAINED - {"identity", "feelings"})
        messages += turn(question, answer)
    fact = rng.choice(facts)
    messages += turn(fact["asked"], fact["answer"])
    return messages, fact["thought"]


def dialogue(rng, data):
    messages, plan = remembering(rng, data) if rng.random() < 0.14 else conversation(rng, data)
    thinking = rng.random() < THINKING_SHARE
    if thinking:
        messages[-1]["reasoning_content"] = plan
    if rng.random() < SYSTEM_SHARE:
        messages.insert(0, {"role": "system", "content": rng.choice(slots.SYSTEMS)})
    return {"messages": messages, "thinking": thinking, "domain": "chat"}


def dialogues(rng, data, count):
    for _ in range(count):
        yield dialogue(rng, pathlib.Path(data))
