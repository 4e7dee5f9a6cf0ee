"""Dialogues made from the instruction and question-answering sets of the data folder.

    dialogues(rng, data, "train" or "held_out")   Dialogues as nano.chatml describes them, in mixed order

Every row of a set becomes a request in plain words, a short tidy answer and a thought that shows how one gets from
the one to the other. One row in a hundred, chosen by its text, is held out.
`python3 -m nano.instructions DATA_DIR [SAMPLES]` prints counts and some dialogues.
"""

import collections
import difflib
import itertools
import pathlib
import random
import re
import sys
from typing import Iterator

from nano import chatml
from nano.corpus import (HELD_OUT_SHARE, common_words, held_out_ids, medical_answer, medical_question, normalise, part,
                         prose, rows, share, words)

THINKING_SHARE = 0.55
SYSTEM_SHARE = 0.15
FOLLOW_UP_SHARE = 0.08
LONGEST_THOUGHT = 60
LONGEST_INPUT = 120
TASK_LIMIT = 500

SYSTEMS = [
    "You are a helpful assistant.", "Answer briefly.", "You are a helpful assistant. Keep your answers short.",
    "Answer in one or two sentences.", "You are a friendly assistant.", "Be brief and clear.",
    "You answer questions in plain English.", "Follow the instruction of the user.", "Give short, correct answers.",
    "You are an assistant that reads carefully.", "Answer the question. Do not add anything else.",
]
UNWANTED = re.compile(
    r"\b(?:kill\w*|murder\w*|rape\w*|sex\w*|suicid\w*|porn\w*|nazi\w*|hitler|terroris\w*|drugs?|cocaine|heroin|naked|"
    r"nude|slave\w*|racis\w*|gay|lesbian|bomb\w*|assassin\w*|cartel|hate|stupid|idiot|fuck\w*|shit\w*|damn|ass|"
    r"bitch\w*|strip(?:per|ping|club)s?|penis|breasts?|abortion|drunk|gun|shoot\w*|pregnan\w*|condoms?|cheat\w*)\b",
                      re.I)
FOREIGN = re.compile("[\u0370-\u1fff\u3040-\ud7ff]")


# ---------------------------------------------------------------------------------------------------------------------
# Text

def tidy(text):
    """ASCII text on one line with ordinary spaces around its punctuation."""
    text = re.sub(r"\s+", " ", normalise(text)).strip()
    text = re.sub(r"\s+([,.;:!?])(?=\s|$)", r"\1", text)
    return re.sub(r"\b(\w+) (n't|'s|'re|'ve|'ll|'m|'d)\b", r"\1\2", text)


def bare(text):
    """An answer without its final full stop, to be put inside a sentence."""
    return tidy(text).rstrip(" .;,")


def capital(text):
    return text[:1].upper() + text[1:]


def sentence(text):
    """Text with a capital letter at the start and a mark at the end."""
    text = re.sub(r"[,;]+\.$", ".", capital(tidy(text)).rstrip(" ,;"))
    return text if not text or text[-1] in ".!?" or text[-2:] in ('."', '!"', '?"') else text + "."


def question(text):
    return capital(tidy(text)).rstrip(" ?.:;,") + "?"


def pick(rng, *templates, **fields):
    return rng.choice(templates).format(**fields)


def edits(before, after):
    """The changes from one sentence to another in words, or '' where it was written anew."""
    a, b = tidy(before).split(), tidy(after).split()
    matcher = difflib.SequenceMatcher(None, a, b, autojunk=False)
    if matcher.ratio() < 0.5:
        return ""
    said = []
    for kind, i, j, k, m in matcher.get_opcodes():
        old, new = " ".join(a[i:j]).strip(".,"), " ".join(b[k:m]).strip(".,")
        if kind == "equal" or old == new:
            continue
        if kind == "replace":
            said.append(f"'{old}' becomes '{new}'")
        elif kind == "delete":
            said.append(f"'{old}' goes")
        else:
            said.append(f"I add '{new}'")
    return capital(", ".join(said)) + "." if 1 <= len(said) <= 3 else ""


STOP = set("a an the of to in on at is are was were be been and or but for with by from as that this it he she they "
           "his her their its what who why how when where which did do does had has have not so because him them "
           "would could".split())


def content_words(text):
    return {word[:6] for word in re.findall(r"[a-z0-9']+", text.lower()) if word not in STOP}


# ---------------------------------------------------------------------------------------------------------------------
# Dialogues

def dialogue(rng, turns, thought, domain):
    """A dialogue of (user, answer) turns, its last answer with the thought where thinking is on."""
    thinking = bool(thought) and words(thought) <= LONGEST_THOUGHT and rng.random() < THINKING_SHARE
    messages = [{"role": "system", "content": rng.choice(SYSTEMS)}] if rng.random() < SYSTEM_SHARE else []
    for user, answer in turns:
        messages += [{"role": "user", "content": user.strip()}, {"role": "assistant", "content": answer.strip()}]
    if thinking:
        messages[-1]["reasoning_content"] = thought.strip()
    return chatml.check({"messages": messages, "thinking": thinking, "domain": domain})


def in_split(split, *names):
    return (share("instructions", *names) < HELD_OUT_SHARE) == (split == "held_out")


# ---------------------------------------------------------------------------------------------------------------------
# Natural Instructions: one function a task, (rng, input, output) -> (request, answer, thought) or None

def found(pattern, text):
    match = re.search(pattern, text, re.S)
    return {key: tidy(value) for key, value in match.groupdict().items()} if match else None


def combined_fact(rng, text, out):
    got = found(r"Fact 1: (?P<a>.+?)\s*\nFact 2: (?P<b>.+)", text)
    if not got:
        return None
    a, b, out = sentence(got["a"]), sentence(got["b"]), sentence(out)
    ask = pick(rng, "Fact 1: {a}\nFact 2: {b}\nWhat follows from these two facts?",
               "Combine these two facts into one conclusion.\n- {a}\n- {b}", "{a} {b} What can you conclude from this?",
               "Here are two facts: {a} {b} Write one sentence that follows from them.", a=a, b=b)
    return ask, out, pick(rng, "The first fact says: {a} The second says: {b} Together they give the conclusion.",
                          "I link the two facts. {a} And also: {b}", a=a, b=b)


def shared_word(rng, text, out):
    got = found(r"Sentence1: (?P<a>.+?)\s*\nSentence2: (?P<b>.+)", text)
    word = bare(out).lower()
    if not got or len(word.split()) != 1 or word not in got["a"].lower() or word not in got["b"].lower():
        return None
    a, b = sentence(got["a"]), sentence(got["b"])
    ask = pick(rng, "Which word do these two sentences share?\n1. {a}\n2. {b}",
               "Find a word that is in both sentences.\nSentence 1: {a}\nSentence 2: {b}", a=a, b=b)
    answer = pick(rng, 'Both sentences have the word "{w}".', 'The shared word is "{w}".', w=word)
    return ask, answer, pick(rng, 'I look for a word that comes in both. "{w}" does.',
                             'The first sentence has "{w}". The second has "{w}" too.', w=word)


def fact_to_question(rng, text, out):
    fact = tidy(re.sub(r"^Fact: ", "", text))
    out = question(out)
    if not re.match(r"(?:What|Who|Where|When|Which|How|Why)\b", out):
        return None
    ask = pick(rng, "Turn this fact into a question: {f}", "Write a question that this sentence answers: {f}",
               "{f}\nAsk a question about this fact.", "Make a question from this statement: {f}", f=sentence(fact))
    word = out.split()[0].lower()
    return ask, out, pick(rng, "The fact is: {f} I can ask for one part of it with '{w}'.",
                          "A good start is '{w}'. The answer must be in this fact: {f}", f=sentence(fact), w=word)


def answer_from_fact(pattern):
    def make(rng, text, out):
        got = found(pattern, text)
        if not got or words(out) > 12:
            return None
        fact, asked, out = sentence(got["a"]), question(got["q"]), bare(out)
        ask = pick(rng, "{f}\n\n{q}", "Fact: {f}\nQuestion: {q}", "Read this: {f}\n{q}",
                   "Use this sentence to answer the question.\nSentence: {f}\nQuestion: {q}", f=fact, q=asked)
        answer = pick(rng, "{o}.", "The answer is {p}.", o=capital(out), p=out)
        return ask, answer, pick(rng, "The text says: {f} So the answer is {o}.",
                                 "The question is: {q} The text gives it: {o}.",
                                 "I look in the sentence. It says {o}.", f=fact, q=asked, o=out)
    return make


def how_to(rng, text, out):
    goal = tidy(text).rstrip(" ,.:?")
    if words(goal) < 3 or words(out) < 5:
        return None
    lower = goal[0].lower() + goal[1:]
    if re.match(r"(?:how|what|where|when|why|which|can|is)\b", lower):
        ask = question(goal)
    elif lower.startswith("to "):
        ask = pick(rng, "How can I {g}?", "How do I {g}?", "What is a good way to {g}?", "Tell me how to {g}.",
                   g=re.sub(r",? (?:you can|you should|one can)$", "", lower[3:]))
    else:
        return None
    aim = ask.rstrip("?.")
    thought = pick(rng, "The question is practical: {a}? I name what to use and what to do.",
                   "{a}? I think of one simple way and describe it.",
                   "The user asks: {a}? One clear way is enough.", a=aim.removeprefix("Tell me "))
    return ask, sentence(out), capital(thought)


def where_is(rng, text, out):
    got = found(r"Passage: (?P<p>.+?) Question: Where is (?P<n>\w+)", text)
    if not got:
        return None
    moves = re.findall(r"[A-Z][^.]*\.", got["p"])
    own = [move for move in moves if move.startswith(got["n"] + " ")]
    if not own or words(got["p"]) > 90:
        return None
    ask = pick(rng, "{p}\nWhere is {n}?", "Read the story and answer.\n{p}\nWhere is {n} now?",
               "{p} So where is {n}?", **got)
    steps = own[-1] if len(own) == 1 else f"{own[-2]} Then: {own[-1]}"
    answer = pick(rng, "{n} is in the {o}.", "{n} is now in the {o}.", n=got["n"], o=bare(out))
    return ask, answer, pick(rng, "I follow {n}. {s} Nothing later moves {n}.", "The last move of {n} counts. {l}",
                             "Only the moves of {n} matter. {s}", n=got["n"], s=steps, l=own[-1])


def words_to_sentence(rng, text, out):
    given = [word for word in tidy(text).split("#")]
    told = re.match(r"(?:a|an|the|i|he|she|they|we|people|there|two|some|my|his|her|children|men)\b", out.lower())
    inflected = "|".join(re.escape(word) + "(?:e?s|e?d)" for word in given)
    verb = re.search(rf"\b(?:is|are|was|were|has|had|will|can|{inflected})\b", out)
    if not 6 <= words(out) <= 16 or not told or not verb or not all(word[:4] in out for word in given):
        return None
    listed = ", ".join(given[:-1]) + " and " + given[-1]
    ask = pick(rng, "Write a sentence with the words {l}.", "Use these words in one sentence: {c}.",
               "Make a sentence from these words: {c}", l=listed, c=", ".join(given))
    return ask, sentence(out), pick(rng, "I need one sentence that holds {l}.",
                                    "I picture a scene with {l} and say it.",
                                    "All the words must fit one scene: {c}.", l=listed, c=", ".join(given))


COUNTRY_ASKS = {
    "capital": (["What is the capital of {c}?", "Which city is the capital of {c}?", "Name the capital of {c}."],
                "The capital of {c} is {o}."),
    "currency": (["What is the currency of {c}?", "Which money do people use in {c}?", "What currency does {c} use?"],
                 "The currency of {c} is the {o}."),
    "continent": (["On which continent is {c}?", "Which continent does {c} belong to?", "What continent is {c} in?"],
                  "{c} is in {o}."),
    "region": (["In which part of the world is {c}?", "What region is {c} in?"], "{c} is in {o}."),
    "dish": (["What is the national dish of {c}?", "Name a national dish of {c}."], "A national dish of {c} is {o}."),
    "domain": (["What is the internet domain of {c}?", "Which top-level domain does {c} use?"],
               "The domain of {c} is {o}."),
    "year": (["When did {c} become independent?", "In which year did {c} become independent?"],
             "{c} became independent in {o}."),
}


def country(kind):
    asks, said = COUNTRY_ASKS[kind]

    def make(rng, text, out):
        name, out = bare(text), bare(out).split(",")[0].strip()
        if kind == "domain":
            out = "." + out.lstrip(".")
        if not out or re.search(r"\d|\(|\bIs$", name):
            return None
        thought = pick(rng, "The question is about {c}. The {k} I know for it is {o}.", "{c}: the {k} is {o}.",
                       "I recall the {k} of {c}: {o}.", c=name, k=kind, o=out)
        return rng.choice(asks).format(c=name), capital(said.format(c=name, o=out)), thought
    return make


def analogy(rng, text, out):
    got = found(r"(?P<a>[\w ]+) : (?P<b>[\w ]+)\. (?P<c>[\w ]+) : \?", text)
    if not got:
        return None
    out = bare(out)
    ask = pick(rng, "Complete the analogy: {a} is to {b} as {c} is to what?",
               "{a} : {b}. {c} : ?\nFill in the missing word.",
               "If {a} goes with {b}, what goes with {c}?", **got)
    answer = pick(rng, "{A} is to {b} as {c} is to {o}.", "The missing word is {o}.", A=capital(got["a"]), o=out, **got)
    return ask, answer, pick(rng, "{a} and {b} belong together. In the same way {c} goes with {o}.",
                             "How is {a} linked to {b}? The same link leads from {c} to {o}.", o=out, **got)


def missing_number(rng, text, out):
    gap = re.sub(r"_+", "____", tidy(text))
    out = bare(out)
    if gap.count("____") != 1 or words(gap) > 20:
        return None
    ask = pick(rng, "Fill in the missing number word: {g}", "Which number word fits? {g}",
               "Complete the sentence: {g}", g=gap)
    return ask, sentence(gap.replace("____", out)), pick(rng, "The gap needs a number word. '{o}' fits.",
                                                          "I ask how many. The answer is {o}.", o=out)


def two_options(text):
    """The letters and texts of '(A) one (B) two' and the text before them."""
    options = re.findall(r"\(([A-H]|\d)\)\s*(.+?)(?=\s*\((?:[A-H]|\d)\)|$)", text)
    before = re.split(r"\((?:[A-H]|\d)\)", text)[0].strip()
    return before, {letter: bare(option) for letter, option in options}


def lettered(rng, options, right, keep=4):
    """At most `keep` options under new letters, mixed, and the letter of the right one."""
    wrong = [text for letter, text in options.items() if letter != right]
    chosen = rng.sample(wrong, min(keep - 1, len(wrong))) + [options[right]]
    rng.shuffle(chosen)
    letters = "ABCDEFGH"[:len(chosen)]
    listed = "\n".join(f"{letter}) {text}" for letter, text in zip(letters, chosen))
    return listed, letters[chosen.index(options[right])]


def choose(rng, asked, options, right, reason):
    """A multiple-choice request with its answer; the reason leads the thought."""
    listed, letter = lettered(rng, options, right)
    ask = pick(rng, "{q}\n{l}", "{q}\nChoose one:\n{l}", "{q}\nWhich option is right?\n{l}", q=asked, l=listed)
    answer = pick(rng, "{x}) {o}", "The answer is {x}: {o}.", "{x}: {o}.", x=letter, o=options[right])
    return ask, answer, f"{reason} That is option {letter}."


def commonsense_choice(rng, text, out):
    got = found(r"Question: (?P<q>.+?)\s*Options: (?P<o>.+)", text)
    options = dict(re.findall(r"\b([A-E]) (.+?)(?= [A-E] |$)", got["o"])) if got else {}
    right = bare(out)
    if right not in options or len(options) < 3:
        return None
    asked = question(got["q"])
    reason = pick(rng, "I try each option. Only '{o}' fits well.", "What fits best here is '{o}'.",
                  "'{o}' is the most sensible one.", o=bare(options[right]))
    return choose(rng, asked, {key: bare(value) for key, value in options.items()}, right, reason)


def science_choice(rng, text, out):
    got = found(r"Fact1: (?P<a>.+?), Fact2: (?P<b>.+?), Question: (?P<q>.+)", text)
    if not got:
        return None
    asked, options = two_options(got["q"])
    if bare(out) not in options:
        return None
    a, b = sentence(got["a"]), sentence(got["b"])
    reason = pick(rng, "The facts say: {a} {b} So it is '{o}'.", "From the facts, '{o}' follows.", a=a, b=b,
                  o=options[bare(out)])
    return choose(rng, f"{a} {b}\n{question(asked)}", options, bare(out), reason)


def either_or(rng, text, out):
    """Quarel: a short scene, a question and two answers in words."""
    got = found(r"Sentence: (?P<s>.+?) Question: (?P<q>.+)", text)
    if not got:
        return None
    asked, options = two_options(got["q"])
    out = bare(out)
    scene = got["s"]
    if options:
        asked = question(asked)[:-1] + f": {' or '.join(options.values())}?"
    ask = pick(rng, "{s} {q}", "{s}\n{q}", "Read this: {s}\n{q}", s=sentence(scene), q=question(asked))
    thought = pick(rng, "I think about what the scene means for the question. It points to {o}.",
                   "The scene compares two things. The one asked for is {o}.",
                   "From the scene I can tell which one it is: {o}.", o=out)
    return ask, sentence(out), thought


def rule_question(rng, text, out):
    """Quartz: a general rule and a question whose answer follows from it."""
    got = found(r"Paragraph: (?P<p>.+?)\s*Question: (?P<q>.+?)\s*Choices: A\)(?P<a>.+?)\s*B\)(?P<b>.+)", text)
    if not got:
        got = found(r"Question: (?P<q>.+?)\s*Option1: (?P<a>.+?)\s*Option2: (?P<b>.+?)\s*Explanation: (?P<p>.+)", text)
    if not got or words(got["p"]) > 45:
        return None
    rule, asked, out = sentence(got["p"]), got["q"].rstrip(" ."), bare(out)
    if asked.count("_____") == 1:
        asks = ["{r}\nFill in the blank with {a} or {b}: {q}", "{r}\n{q}\nWhat goes in the blank: {a} or {b}?"]
    else:
        asks = (["{r}\n{q} {a} or {b}?", "Rule: {r}\nQuestion: {q}\nIs it {a} or {b}?"] if "?" in asked else
                ["{r}\nComplete: {q} ... ({a} / {b})", "Rule: {r}\nFinish the sentence with {a} or {b}: {q} ..."])
    ask = pick(rng, *asks, r=rule, q=asked, a=bare(got["a"]), b=bare(got["b"]))
    return ask, sentence(out), pick(rng, "The rule says: {r} So it must be {o}.",
                                    "I use the rule on this case. It gives {o}.",
                                    r=rule, o=out)


def why_rule(rng, text, out):
    got = found(r"Question: (?P<q>.+?)\s*Answer: (?P<a>.+)", text)
    if not got or "_" in got["q"] or not got["q"].endswith("?") or words(out) > 35:
        return None
    ask = pick(rng, "{q} The answer is {a}. Why?", "Question: {q}\nAnswer: {a}\nExplain the answer.", q=got["q"],
               a=bare(got["a"]))
    return ask, sentence(out), pick(rng, "I need the general rule that makes '{a}' right.",
                                    "Which rule lies behind the answer '{a}'? I state it.", a=bare(got["a"]))


def fill_blank(rng, text, out):
    before, options = two_options(tidy(text))
    gap = re.sub(r"_", "___", before if options else tidy(text))
    right = options.get(bare(out)) if options else bare(out)
    if not right or gap.count("___") != 1 or right.lower() not in gap.lower():
        return None
    ask = pick(rng, "Fill in the blank: {g}", "What goes in the blank? {g}", "{g}\nWhich word belongs in the blank?",
               g=gap)
    if options:
        ask += " (" + " or ".join(options.values()) + ")"
    filled = sentence(gap.replace("___", right))
    answer = pick(rng, "{r}. {f}", "{f}", "The blank is {b}.", r=capital(right), f=filled, b=right)
    return ask, answer, pick(rng, "I try '{b}': {f} That makes sense.", "Only '{b}' makes sense in the blank.",
                             "With '{b}' the sentence is logical.", b=right, f=filled)


def cause_or_effect(rng, text, out):
    if "Question:" in text:
        got = found(r"(?P<t>.+), Question: (?P<k>cause|effect)", text)
        kind, text = got["k"], got["t"]
    else:
        kind = ""
    premise, options = two_options(tidy(text))
    right = bare(out)
    if right not in options or len(options) != 2:
        return None
    premise = sentence(premise)
    asked = {"cause": pick(rng, "{p} What was the cause?", "{p} Why did this happen?", p=premise),
             "effect": pick(rng, "{p} What happened as a result?", "{p} What happened next?", p=premise),
             "": pick(rng, "{p} Which sentence fits better with this?", "{p} Which is more likely?", p=premise)}[kind]
    reason = pick(rng, "'{o}' goes with it, the other one does not.", "'{o}' is more likely.", o=options[right])
    return choose(rng, asked, options, right, reason)


def cause_label(rng, text, out):
    parts = [sentence(line) for line in normalise(text).split("\n") if line.strip()]
    if len(parts) != 2 or out not in ("cause", "effect"):
        return None
    ask = pick(rng, "1. {a}\n2. {b}\nIs the second sentence the cause or the effect of the first?",
               "{a} {b} Is the second event the cause or the effect of the first one?", a=parts[0], b=parts[1])
    answer = pick(rng, "It is the {o}.", "The second sentence is the {o}.", o=out)
    earlier, later = (parts[1], parts[0]) if out == "cause" else (parts[0], parts[1])
    thought = pick(rng, "First: {e} That leads to this: {l}", "What happens first? {e} Then: {l}",
                   "In time, this comes first: {e} So this follows: {l}", e=earlier, l=later)
    return ask, answer, thought


def antonym(rng, text, out):
    word, out = bare(text).lower(), bare(out).lower()
    if not (word.isalpha() and out.isalpha()) or max(len(word), len(out)) > 9:
        return None
    ask = pick(rng, "What is the opposite of {w}?", "Give an antonym of '{w}'.", "Name the opposite of the word {w}.",
               "What word means the opposite of {w}?", w=word)
    answer = pick(rng, "The opposite of {w} is {o}.", "{O}.", "An antonym of {w} is {o}.", w=word, o=out,
                  O=capital(out))
    return ask, answer, pick(rng, "I need a word that means the reverse of '{w}'. That is '{o}'.",
                             "'{w}' and '{o}' are opposites.", w=word, o=out)


def follows(rng, text, out):
    got = found(r"Premise: (?P<a>.+?)\s*Hypothesis: (?P<b>.+)", text) or found(r"(?P<a>.+?) <sep> (?P<b>.+)", text)
    label = {"entails": "yes", "entailment": "yes", "neutral": "open", "contradiction": "no"}.get(bare(out).lower())
    if not got or not label or words(got["a"]) > 40:
        return None
    a, b = sentence(got["a"]), sentence(got["b"])
    ask = pick(rng, "{a}\nDoes it follow that: {b}",
               "Sentence 1: {a}\nSentence 2: {b}\nDoes the second follow from the first?",
               "If this is true: {a} Is this true too? {b}", a=a, b=b)
    answer, thought = {
        "yes": ("Yes, it follows.", "The first sentence already says what the second one says."),
        "open": ("Not necessarily. The first sentence does not say so.",
                 "The second sentence says more than the first one gives."),
        "no": ("No, the two sentences disagree.", "Both sentences cannot be true at the same time."),
    }[label]
    return ask, answer, f"I compare the two sentences. {thought}"


def topic(rng, text, out):
    out = bare(out).lower()
    if out not in ("film", "music", "book", "tv", "sports", "location", "astronomy", "biology", "military", "food",
                   "language"):
        return None
    asked = question(text)
    named = {"tv": "television", "book": "books", "location": "geography"}.get(out, out)
    ask = pick(rng, "What topic is this question about? {q}", "Give the topic of this question in one word: {q}",
               "Which category fits this question? {q}", q=asked)
    answer = pick(rng, "The topic is {n}.", "{N}.", n=named, N=capital(named))
    return ask, answer, pick(rng, "I do not have to answer the question. It belongs to {n}.",
                             "The words point to {n}.", n=named)


def has_part(rng, text, out):
    got = found(r"(?P<a>[\w -]+) has (?P<b>[\w -]+)\?", text)
    if not got or out not in ("0", "1"):
        return None
    article = "an" if got["a"][0] in "aeiou" else "a"
    ask = pick(rng, "Does {t} {a} have {b}?", "Can {b} be a part of {t} {a}?", t=article, **got)
    whole = f"{article} {got['a']}"
    answer = f"Yes, {whole} has {got['b']}." if out == "1" else f"No, {got['b']} is not a part of {whole}."
    return ask, answer, pick(rng, "I think of the parts of {t} {a} and look for {b}.",
                             "What is {t} {a} made of? I check {b}.", t=article, **got)


PLAIN_STATES = {"temperature", "color", "state", "cleanness", "wetness", "size", "weight", "shape", "hardness"}


def changed_state(rng, text, out):
    got = found(r"entity: (?P<e>.+?)\s*\nbefore: (?P<b>.+?)\s*\nafter: (?P<a>.+?)\s*\nattr: (?P<x>.+)", text)
    if not got or got["x"] not in PLAIN_STATES or words(got["a"]) + words(got["b"]) > 2:
        return None
    ask = pick(rng, "Write one sentence about a change. Thing: {e}. Before: {b}. After: {a}.",
               "The {e} was {b} and is now {a}. Say in one sentence what changed.", **got)
    return ask, pick(rng, "The {x} of the {e} was {b} before and is {a} now.",
                     "The {x} of the {e} changed from {b} to {a}.", **got), \
        pick(rng, "What changed is the {x}: first {b}, then {a}.", "The {e} changed its {x}.", **got)


def numbers_in_words(to_words):
    def make(rng, text, out):
        given, out = tidy(text), tidy(out)
        if words(given) > 30 or given == out:
            return None
        ask = (pick(rng, "Write the numbers in this text as words: {g}", "Replace the digits by words: {g}",
                    g=given) if to_words
               else pick(rng, "Write the numbers in this text as digits: {g}",
                         "Replace the number words by digits: {g}", g=given))
        return ask, sentence(out), edits(given, out) or "I change only the numbers and keep the rest."
    return make


def pronoun_reference(rng, text, out):
    text = tidy(text).replace("..", ".")
    got = (found(r"Sentence: (?P<s>.+?) Question: (?P<q>.+)", text)
           or found(r"sentence: (?P<s>.+?)\s*\.?\s*pronoun: (?P<p>\w+)\. A\) (?P<a>.+?) B\) (?P<b>.+)", text))
    if not got or words(got["s"]) > 50:
        return None
    scene, out = re.sub(r"(?<=[.!?] )[a-z]", lambda m: m.group().upper(), sentence(got["s"])), bare(out)
    if not re.match(r"(?:the|a|an|his|her|my|their)\b", out):
        out = " ".join(word if word in ("and", "the") else capital(word) for word in out.split())
    asked = question(got["q"]) if "q" in got else f"Who or what does '{got['p']}' mean?"
    if "a" in got:
        asked += f" {capital(got['a'])} or {got['b']}?"
    ask = pick(rng, "{s} {q}", "{s}\n{q}", "Read the sentence: {s}\n{q}", s=scene, q=asked)
    return ask, sentence(out), pick(rng, "I read the sentence again. {o} fits the meaning.",
                                    "It can only be {p}, or the sentence would make no sense.", o=capital(out), p=out)


def plausible(rng, text, out):
    given = sentence(text)
    yes = bare(out) == "plausible"
    ask = pick(rng, "Does this make sense? {g}", "Is this sentence plausible? {g}", "Could this be true? {g}", g=given)
    answer = rng.choice(["Yes, that makes sense.", "Yes, it is plausible."] if yes
                        else ["No, that does not make sense.", "No, the second part does not follow."])
    first, _, second = given.partition(", so ")
    if not second:
        return None
    return ask, answer, (f"First: {first}. Then: {second} " + ("The first can lead to the second." if yes
                                                              else "The first does not lead to the second."))


def result(rng, text, out):
    given = tidy(text).removesuffix(", so")
    ask = pick(rng, "Finish the sentence: {g}, so ...", "{g}. What could happen next?", g=given)
    return ask, f"{given}, so {bare(out)}.", pick(rng, "I need something that follows from this: {g}.",
                                                  "What does this lead to? I name one likely result.", g=given)


def next_words(rng, text, out):
    given, out = tidy(text), tidy(out)
    if given[-1:] in ".!?" or not 4 <= words(out) <= 18 or "someone" in given.lower():
        return None
    ask = pick(rng, "Continue the text: {g} ...", "Finish this: {g} ...", "What comes next? {g} ...", g=given)
    return ask, sentence(f"{given} {out}"), pick(rng, "I keep to the scene and finish the last sentence.",
                                                 "The last sentence starts with '{w}'. I complete it.",
                                                 w=given.split(". ")[-1])


def pronouns(rng, text, out):
    ask = pick(rng, "Which pronouns are in this sentence? {s}", "List the pronouns: {s}", s=sentence(text))
    return ask, sentence(out), f"I go through the words and keep the pronouns: {bare(out)}."


def everyday_answer(rng, text, out):
    asked, out = tidy(text).rstrip(" :.?"), bare(out)
    if words(asked) > 18 or words(out) > 4 or not asked.startswith("name "):
        return None
    ask = pick(rng, "{A}.", "Can you {a}?", "Please {a}.", A=capital(asked), a=asked)
    answer = pick(rng, "One example is {o}.", "{O}.", "You could say {o}.", o=out, O=capital(out))
    return ask, answer, pick(rng, "I think of everyday life. {O} comes to mind.", "A common answer is {o}.", o=out,
                             O=capital(out))


def mood(rng, text, out):
    out = bare(out).lower()
    line = tidy(text)
    if out not in ("positive", "negative") or words(line) < 4:
        return None
    ask = pick(rng, 'Is the mood of this line positive or negative? "{l}"', 'Does this line sound happy or sad? "{l}"',
               'What is the feeling of this line: positive or negative? "{l}"', l=line)
    sounds = "happy" if out == "positive" else "sad"
    answer = f"It sounds {sounds}." if "happy" in ask else f"The mood is {out}."
    return ask, answer, f"I look at the words of the line. They sound {'bright' if out == 'positive' else 'dark'}."


def ask_about(rng, text, out):
    passage = sentence(re.sub(r"^(?:Sentence|context): ", "", tidy(text)))
    ask = pick(rng, "{p}\nWrite a question about this text.", "Ask one question that this text answers: {p}", p=passage)
    return ask, question(out), pick(rng, "I choose something that the text tells and ask for it.",
                                    "The question must be answered by the text.")


def things_named(rng, text, out):
    listed = [bare(item) for item in out.split(",") if item.strip()]
    if not 2 <= len(listed) <= 7:
        return None
    ask = pick(rng, "{p}\nList the main things in this text.", "Which things does this text talk about? {p}",
               p=sentence(text))
    return ask, sentence(", ".join(listed)), f"I read the text and note the things: {', '.join(listed)}."


def compare_things(rng, text, out):
    got = found(r"context: (?P<c>.+?)\s*<sep>group: .+?<sep>question: (?P<q>.+?)<sep>", text)
    if not got:
        return None
    return f"{sentence(got['c'])} {question(got['q'])}", sentence(out), pick(
        rng, "I compare the things in size and kind. {o}", "I picture each one. {o}", o=sentence(out))


def other_mood(name):
    def make(rng, text, out):
        given, out = sentence(text), sentence(out)
        if words(out) < 3:
            return None
        ask = pick(rng, "Make this review {n}: {g}", "Rewrite this as a {n} review: {g}",
                   "Change this sentence so that it sounds {n}: {g}", n=name, g=given)
        return ask, out, edits(given, out) or f"I keep the topic and make the opinion {name}."
    return make


def true_by_rules(rng, text, out):
    got = found(r"Paragraph: (?P<p>.+?)\s+Question: (?P<q>.+)", text)
    if not got or out not in ("True", "False") or words(got["p"]) > 70:
        return None
    claim = sentence(got["q"].rstrip("?"))
    stated = claim.lower() in sentence(got["p"]).lower()
    thought = (f"The text says it directly: {claim}" if stated and out == "True"
               else f"I check the facts and the rules for this claim: {claim} "
               + ("They lead to it." if out == "True" else "They do not lead to it."))
    ask = pick(rng, "{p}\nTrue or false: {q}", "{p}\nIs this true? {q}", p=got["p"], q=claim)
    answer = f"{out}." if "or false" in ask else ("Yes, it is true." if out == "True" else "No, it is not true.")
    return ask, answer, thought


def say_as_sentence(rng, text, out):
    got = found(r"Question: (?P<q>.+?) Answer: (?P<a>.+)", text)
    if not got:
        return None
    asked, short = question(got["q"]), bare(got["a"])
    ask = pick(rng, "Question: {q}\nAnswer: {a}\nSay this as one sentence.", "{q} {A}. Write that as a full sentence.",
               "Put the question and its answer into one sentence: {q} {A}.", q=asked, a=short, A=capital(short))
    return ask, sentence(out), pick(rng, "I put '{a}' where the question asks.",
                                    "The answer '{a}' goes into the statement.", a=short)


def plain_question(rng, text, out):
    asked, out = question(re.sub(r"^Question:", "", text)), bare(out)
    if words(out) > 6:
        return None
    return asked, pick(rng, "{o}.", "The answer is {p}.", o=capital(out), p=out), pick(
        rng, "I recall the answer: {o}.", "This is a trivia question. The answer is {o}.", o=out)


FACT_QUESTION = r"Fact: (?P<a>.+?)\s*\n\s*Question: (?P<q>.+)"
SENTENCE_QUESTION = r"Sentence: (?P<a>.+?) Question: (?P<q>.+)"
STATEMENT_QUESTION = r"statement: (?P<a>.+?), question: (?P<q>.+)"
TASKS = {
    "task033": fill_blank, "task038": combined_fact, "task039": shared_word, "task040": fact_to_question,
    "task041": answer_from_fact(FACT_QUESTION), "task080": how_to, "task083": where_is, "task102": words_to_sentence,
    "task1135": commonsense_choice, "task1146": country("capital"), "task1147": country("currency"),
    "task1152": analogy, "task1153": analogy, "task1156": analogy, "task1158": analogy,
    "task1297": science_choice, "task1318": country("dish"), "task1320": country("domain"),
    "task1321": country("continent"), "task1359": missing_number, "task1378": either_or, "task1382": either_or,
    "task1391": fill_blank, "task1393": cause_or_effect, "task1426": country("year"), "task1427": country("region"),
    "task1508": antonym, "task1529": follows, "task1555": answer_from_fact(SENTENCE_QUESTION),
    "task1556": say_as_sentence, "task1564": plain_question, "task1566": things_named, "task1567": ask_about,
    "task1580": fact_to_question, "task1581": answer_from_fact(STATEMENT_QUESTION), "task1583": has_part,
    "task1631": changed_state, "task1703": numbers_in_words(True), "task1704": numbers_in_words(False),
    "task1731": rule_question, "task178": rule_question, "task223": why_rule, "task249": pronoun_reference,
    "task391": plausible, "task393": result, "task453": next_words, "task489": ask_about, "task491": pronoun_reference,
    "task640": follows, "task646": pronouns, "task672": missing_number,
    "task820": everyday_answer, "task827": cause_or_effect, "task828": cause_label, "task833": mood,
    "task859": ask_about, "task861": compare_things, "task900": topic, "task927": other_mood("positive"),
    "task928": other_mood("negative"), "task966": true_by_rules,
}
# Skills worth more than the rest, and tasks whose rows are too much alike to take many of them.
TASK_LIMITS = {"task041": 1500, "task083": 990, "task1391": 1000, "task1555": 1400, "task1556": 1200, "task1508": 1000,
               "task1731": 1000, "task178": 1000, "task1135": 990, "task102": 1000, "task080": 1000, "task038": 1000,
               "task1153": 300, "task820": 700, "task827": 990, "task828": 990, "task1378": 790, "task1581": 800}


def natural_instructions(rng, data, split):
    known = common_words(data / "wordnet")
    for row in rows(part(data / "natural-instructions", "ni_permissive")):
        name = row["task"].split("_")[0]
        if name not in TASKS:
            continue
        pairs = sorted(row["instances"], key=lambda pair: share(row["task"], *pair))
        pairs = [pair for pair in pairs if in_split(split, row["task"], *pair) and words(pair[0]) <= LONGEST_INPUT
                 and not UNWANTED.search(pair[0] + " " + pair[1]) and not FOREIGN.search(pair[0] + pair[1])]
        if TASKS[name] is antonym:
            pairs = [pair for pair in pairs if known.issuperset(map(bare, pair))]
        made = (TASKS[name](rng, source.strip(), out.strip()) for source, out in pairs)
        before = None
        for ask, answer, thought in itertools.islice(filter(None, made), TASK_LIMITS.get(name, TASK_LIMIT)):
            turns = [before] if before and rng.random() < FOLLOW_UP_SHARE else []
            yield dialogue(rng, turns + [(ask, answer)], thought, "instructions")
            before = (ask, answer)


# ---------------------------------------------------------------------------------------------------------------------
# Tales

SENTENCE_END = re.compile(r"(?<=[.!?\"])\s+(?=[A-Z\"])")
LONGEST_PASSAGE = 150
WINDOW = 100


def passage_and_evidence(section, asked, answer):
    """A passage of at most 150 words with the answer in it, and the sentence that gives it; None if not found."""
    sentences = [tidy(piece) for piece in SENTENCE_END.split(section) if piece.strip()]
    if not sentences:
        return None
    wanted, asked_words = content_words(answer), content_words(asked)

    def fit(piece):
        have = content_words(piece)
        return 2 * len(have & wanted) / max(1, len(wanted)) + len(have & asked_words) / max(1, len(asked_words))

    best = max(range(len(sentences)), key=lambda i: fit(sentences[i]))
    first = last = best
    while words(section) > LONGEST_PASSAGE:
        grown = (max(0, first - 1), min(len(sentences) - 1, last + 1))
        if grown == (first, last) or words(" ".join(sentences[grown[0]:grown[1] + 1])) > WINDOW:
            break
        first, last = grown
    passage = " ".join(sentences if words(section) <= LONGEST_PASSAGE else sentences[first:last + 1])
    grounded = len(content_words(passage) & wanted) >= 0.6 * len(wanted)
    return (passage, sentences[best], grounded) if words(passage) <= LONGEST_PASSAGE else None


def tale_turns(row, wanted):
    """The questions of a tale that one short passage answers: passage -> [(question, answer, evidence, kind)]."""
    turns = collections.OrderedDict()
    for pair in row["qa"]:
        numbers = [int(number) for number in re.findall(r"\d+", str(pair["section"]))]
        asked, answer = question(pair["q"]), sentence(pair["a"])
        if len(numbers) != 1 or not 1 <= numbers[0] <= len(row["sections"]) or words(answer) > 30:
            continue
        if not wanted(row["id"], pair["q"]) or UNWANTED.search(asked + answer):
            continue
        got = passage_and_evidence(prose(row["sections"][numbers[0] - 1]), asked, answer)
        if got and (got[2] or pair["kind"] in ("feeling", "prediction") and words(got[0]) <= 120):
            turns.setdefault(got[0], []).append((asked, full_answer(asked, answer), got[1], got[2]))
    return turns


DEEDS = re.compile(r"(?:\w+ed|went|took|gave|said|saw|ran|made|put|told|came|got|found|sat|threw|began|ate|kept|"
                   r"brought|stood|laid|flew|fell|cut|set|became|bought|built|caught|drew|fought|sent|sold)\b")


def full_answer(asked, answer):
    """'Touched the cage.' as an answer to 'What did Joringel do ...?' becomes 'Joringel touched the cage.'"""
    who = re.match(r"What did ([\w' -]{2,40}?) do\b", asked)
    if not who or not DEEDS.match(answer[0].lower() + answer[1:]):
        return answer
    return f"{capital(who.group(1))} {answer[0].lower()}{answer[1:]}"


def tale_thought(rng, asked, answer, evidence, grounded):
    out = bare(answer)
    if not grounded:
        return pick(rng, "The story does not say it in so many words. What happens makes it clear: {o}.",
                    "I have to judge from what happens. It fits best to say: {o}.", o=out)
    if words(evidence) > 35:
        return pick(rng, "I look for the place in the story. It tells: {o}.", "The passage gives the answer: {o}.",
                    "The question is about the story, and the story says so: {o}.", o=out)
    return pick(rng, "The story says: {e} So the answer is: {o}.", "I find the place in the text: {e}",
                "The question is about the story. It says: {e}", "This sentence answers it: {e}", e=evidence, o=out)


def tales(rng, data, split):
    told = list(rows(part(data / "fairytaleqa", "fairytaleqa_train")))
    # A tale that the corpus holds out must not come back through its questions.
    unseen = held_out_ids("fairytaleqa", [row["id"] for row in told])

    def wanted(tale, asked):
        return split == "held_out" if tale in unseen else in_split(split, tale, asked)

    for row in told:
        for passage, asked in tale_turns(row, wanted).items():
            rng.shuffle(asked)
            while asked:
                count = 2 if len(asked) > 1 and rng.random() < 0.25 else 1
                taken, asked = asked[:count], asked[count:]
                first = pick(rng, "{p}\n\n{q}", "Read the story and answer the question.\n\n{p}\n\nQuestion: {q}",
                             "Here is a part of a story:\n{p}\n\n{q}", "{q}\n\n{p}", p=passage, q=taken[0][0])
                turns = [(first, taken[0][1])] + [(q, a) for q, a, _, _ in taken[1:]]
                yield dialogue(rng, turns, tale_thought(rng, *taken[-1]), "stories")


# ---------------------------------------------------------------------------------------------------------------------
# Facts

CLEAR_QUESTION = re.compile(
    r"\b(?:capital|currency|money|language|where (?:is|was|are)|born|located|president|wrote|invented|discovered|"
    r"founded|continent|ocean|river|author|when (?:did|was|is)|who (?:was|is|wrote)|country|religion)\b")
UNCLEAR_QUESTION = re.compile(
    r"\b(?:20\d\d|now|today|current|currently|time|zone|should|going|airport|hotel|best|die|died|"
    r"kill\w*|team|coach|girlfriend|dating|married|wife|husband|school|college|live)\b")


def web_questions(rng, data, split):
    for row in rows(part(data / "webquestions", "webquestions")):
        asked, answers = row["q"].strip().lower(), row["a"]
        if len(answers) != 1 or not CLEAR_QUESTION.search(asked) or UNCLEAR_QUESTION.search(asked):
            continue
        answer = re.sub(r" Language$", "", bare(answers[0]))
        if words(answer) > 5 or FOREIGN.search(answers[0]) or "UTC" in answer or not in_split(split, asked):
            continue
        thought = pick(rng, "This is a question about a fact. The answer I know is {o}.", "I recall: {o}.",
                       "The user asks '{q}' I know this one: {o}.", o=answer, q=question(asked))
        said = pick(rng, "{o}.", "The answer is {o}.", "It is {o}.", o=answer)
        yield dialogue(rng, [(rng.choice([question(asked), asked]), capital(said))], thought, "facts")


def medical(rng, data, split):
    for i, row in enumerate(rows(part(data / "medquad", "medquad"))):
        held_out = share("medquad", str(i)) < HELD_OUT_SHARE  # the same rows as in the corpus
        asked, answer = medical_question(row["q"]), medical_answer(row["a"])
        if not 6 <= words(answer) <= 45 or held_out != (split == "held_out") or re.search(r"https?:|www|click|:$",
                                                                                           answer):
            continue
        subject = re.sub(r"^.*\b(?:is|are|about|for|of|have|cause[sd]?|diagnose|by|with|treat|prevent) ", "",
                         asked).rstrip("?")
        thought = pick(rng, "This is a health question about {s}. I give the main fact in plain words.",
                       "The user asks about {s}. I answer only what is known.",
                       "I keep to the known facts about {s}.", s=subject)
        yield dialogue(rng, [(asked, sentence(answer))], capital(thought), "facts")


# ---------------------------------------------------------------------------------------------------------------------
# Open instructions

def joined_request(instruction, given):
    instruction, given = normalise(instruction).strip(), normalise(given or "").strip()
    if not given or given.lower() in ("<noinput>", "none", "n/a", "noinput"):
        return instruction
    return f"{instruction}\n{given}" if "\n" in given or words(given) > 8 else f"{instruction.rstrip(': ')}: {given}" \
        if instruction[-1:] not in ".?!" else f"{instruction}\n{given}"


def plain_text(text):
    """A reply without Markdown."""
    text = re.sub(r"\*\*([^*\n]+)\*\*", r"\1", normalise(text))
    text = re.sub(r"^#+ *", "", text, flags=re.M)
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def task_thought(rng, instruction, given, answer):
    """A thought for an instruction of any kind: the edit it makes, or what is asked for and in which shape."""
    if given:
        changed = edits(given, answer)
        if changed:
            return pick(rng, "I compare what it is with what it should be. {c}", "{c}", "What has to change: {c}",
                        c=changed)
    wanted = tidy(instruction).split("\n")[0]
    wanted = re.split(r"(?<=[.?!])\s", wanted)[0].rstrip(".")
    if words(wanted) > 22:
        wanted = " ".join(wanted.split()[:18]) + " ..."
    if wanted.endswith("?"):
        return pick(rng, "The question is: {w} I know a short answer.", "{w} I can answer that in plain words.",
                    "The user asks: {w} I say what I know.", w=wanted)
    if words(answer) <= 12:
        return pick(rng, "The task is: {w}. A short answer is enough.", "Asked for: {w}. This fits: {o}",
                    "I am asked this: {w}. That gives: {o}", w=wanted, o=sentence(answer))
    if "\n" in answer:
        return pick(rng, "The task is: {w}. I write it as a few lines.",
                    "Asked for: {w}. I give the points one by one.", w=wanted)
    return pick(rng, "The task is: {w}. I answer in a few plain sentences.", "Asked for: {w}. I keep to the point.",
                "I am asked this: {w}. I say it simply.", w=wanted)


def simple_instructions(rng, data, split):
    """Each of the 1,099 rows three times with other thoughts, for they are the plainest instructions there are."""
    for row in rows(part(data / "rasbt-instruction-data", "instruction-data")):
        answer = plain_text(row["output"])
        if FOREIGN.search(row["output"]) or not in_split(split, row["instruction"], row["input"]) or not answer:
            continue
        answer = sentence(answer) if " " in answer and "\n" not in answer and answer[-1].isalnum() else capital(answer)
        for _ in range(3 if split == "train" else 1):
            thought = task_thought(rng, row["instruction"], row["input"], answer)
            yield dialogue(rng, [(joined_request(row["instruction"], row["input"]), answer)], thought, "instructions")


def written_instructions(rng, data, split):
    for name in ("seed_tasks", "user_oriented_instructions"):
        for row in rows(part(data / "self-instruct", name)):
            for instance in row["instances"][:2]:
                ask, answer = joined_request(row["instruction"], instance["input"]), plain_text(instance["output"])
                if words(ask) > LONGEST_INPUT or not 1 <= words(answer) <= 90 or FOREIGN.search(instance["output"]):
                    continue
                if not in_split(split, ask) or UNWANTED.search(ask + " " + answer):
                    continue
                for _ in range(2 if split == "train" else 1):
                    thought = task_thought(rng, row["instruction"], instance["input"], answer)
                    yield dialogue(rng, [(ask, capital(answer))], thought, "instructions")


CLAIMS_A_SELF = re.compile(r"\b(?:AI|artificial intelligence|sentien\w*|robot|chatbot|language model|OpenAI|GPT)\b")


def roleplay(rng, data, split):
    for row in rows(part(data / "gpteacher", "roleplay-simple")):
        ask, answer = joined_request(row["instruction"], row["input"]), plain_text(row["response"])
        if words(answer) > 75 or words(answer) < 8 or words(ask) > 80 or "[" in answer or not in_split(split, ask):
            continue
        if CLAIMS_A_SELF.search(ask + answer) or UNWANTED.search(ask + " " + answer):
            continue
        role = re.search(r"\b(?:[Yy]ou are|[Aa]ct as|[Pp]retend (?:to be|you are)|[Rr]ole ?play as|[Ii]magine you are)"
                         r" ((?:an?|the) [\w' -]{3,40}?)(?=[.,]| who| tasked| and| giving| trying| in )", ask)
        thought = (pick(rng, "I speak as {r} here and stay in that role.",
                        "The user wants a role play. My part is {r}.",
                        "My role is {r}. I think of what such a person would say.", r=role.group(1)) if role
                   else pick(rng, "This is a role play. I take the part and answer in its voice.",
                             "I play the part that the user describes."))
        yield dialogue(rng, [(ask, answer)], thought, "chat")


def best_replies(node):
    """The best-ranked path of a message tree as (user, answer) turns."""
    turns = []
    while node and node.get("replies"):
        reply = min(node["replies"], key=lambda r: r.get("rank") if r.get("rank") is not None else 99)
        turns.append((node["text"], reply["text"]))
        node = min(reply["replies"], key=lambda r: r.get("rank") or 0) if reply.get("replies") else None
    return turns


def assistant_chats(rng, data, split):
    for row in rows(part(data / "open-assistant-sample", "en_100_tree")):
        path = [(plain_text(user), plain_text(answer)) for user, answer in best_replies(row["prompt"])]
        path = list(itertools.takewhile(lambda turn: words(turn[0]) <= 80 and words(turn[1]) <= 110, path))[:3]
        text = " ".join(user + " " + answer for user, answer in path)
        named = re.search(r"Open ?Assistant|LAION", text)
        if path and in_split(split, path[0][0]) and not UNWANTED.search(text) and not named:
            yield dialogue(rng, path, task_thought(rng, path[-1][0], "", path[-1][1]), "chat")
    for row in rows(part(data / "paredez-conversations", "combined_dataset")):
        spoken = [m for m in row["messages"] if m["role"] != "system"]
        path = [(plain_text(a["content"]), plain_text(b["content"])) for a, b in zip(spoken[::2], spoken[1::2])]
        path = list(itertools.takewhile(lambda turn: words(turn[1]) <= 140, path))
        if path and in_split(split, path[0][0]):
            yield dialogue(rng, path, task_thought(rng, path[-1][0], "", path[-1][1]), "chat")


SOURCES = {
    "natural-instructions": natural_instructions, "fairytaleqa": tales, "webquestions": web_questions,
           "medquad": medical,
    "rasbt-instruction-data": simple_instructions, "self-instruct": written_instructions, "gpteacher": roleplay,
    "open-assistant-sample, paredez-conversations": assistant_chats,
}


def dialogues(rng: random.Random, data: pathlib.Path, split: str) -> Iterator[dict]:
    """All dialogues of a split, "train" or "held_out", in mixed order."""
    if split not in ("train", "held_out"):
        raise ValueError(f"split {split!r}: expected train or held_out")
    made = [one for source in SOURCES.values() for one in source(rng, data, split)]
    rng.shuffle(made)
    yield from made


def report(data, samples):
    for split in ("train", "held_out"):
        print(f"{split}: set, dialogues, with thoughts, words")
        total = 0
        for name, source in SOURCES.items():
            made = list(source(random.Random(1), data, split))
            total += len(made)
            size = sum(words(chatml.render(one)) for one in made)
            print(f"    {name:48} {len(made):7d} {sum(one['thinking'] for one in made):7d} {size:9d}")
        print(f"    {'all':48} {total:7d}")
    for one in itertools.islice(dialogues(random.Random(2), data, "train"), samples):
        print("-" * 80 + "\n" + chatml.render(one))


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit("usage: python3 -m nano.instructions DATA_DIR [SAMPLES]")
    report(pathlib.Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) == 3 else 0)
