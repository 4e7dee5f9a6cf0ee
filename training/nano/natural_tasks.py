"""Natural Instructions: one function a task, (rng, input, output) -> (request, answer, thought) or None."""

import itertools
import re

from nano.corpus import common_words, normalise, part, rows, share, words
from .wording import (FOLLOW_UP_SHARE, FOREIGN, LONGEST_INPUT, TASK_LIMIT, UNWANTED, bare, capital, dialogue, edits,
                      in_split, pick, question, sentence, tidy)


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
