"""Puzzles from the licensed sets: word problems, yes-or-no questions with facts, everyday choices."""

import json
import lzma
import re
from collections import Counter

from .number_skills import joined
from .sums import mentions_held_out
from .word_problems import calculate
from .puzzle import capital, in_held_out, puzzle

STRAIGHT = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u2013": "-", "\u2014": "-",
                          "\u2212": "-", "\u00d7": "x",
                          "\u00f7": "/", "\u00a0": " ", "\u2026": "...", "\u00e9": "e"})


def tidy(text):
    """Plain ASCII punctuation and single spaces; text that is still not ASCII is left for the caller to drop."""
    text = re.sub(r"\s+", " ", text.translate(STRAIGHT)).strip()
    return re.sub(r" ([?.!,])(?=\s|$)", r"\1", text)


def tidy_sum(text):
    """Sums written one way: spaces around + = and a small x for times."""
    text = re.sub(r"(?<=[\d)%]) *\* *(?=[\d($])", " x ", text).replace(" * ", " x ")
    text = re.sub(r"(?<=[\d)%]) *([+=]) *(?=[\d($-])", r" \1 ", text)
    return re.sub(r"(?<=\d)-(?=\d+ =)", " - ", text)


def sentence(text):
    text = capital(text.strip())
    return text if text[-1] in ".!?" else text + "."


def words_in(text):
    return len(text.split())


def read_rows(path):
    with lzma.open(path, "rt", encoding="utf8") as lines:
        return [json.loads(line) for line in lines]


AMOUNT = r"\$?(\d+(?:\.\d+)?)"
STEP_EQUATION = re.compile(rf"(?<![\d+*/x-] )(?<![\d.,]){AMOUNT} ([+x/-]) {AMOUNT} = {AMOUNT}(?![\d,/])")


def sums_are_right(text):
    """Whether every plain equation of two numbers in the text holds."""
    for a, op, b, result in STEP_EQUATION.findall(text):
        a, b, result = float(a), float(b), float(result)
        value = (a / b if b else 0.0) if op == "/" else calculate(a, op, b)
        if abs(value - result) > 0.011:
            return False
    return True


def gsm8k_puzzles(data):
    for row in read_rows(data / "gsm8k" / "train.jsonl.xz"):
        steps, _, final = row["answer"].partition("####")
        lines = [tidy_sum(tidy(re.sub(r"<<.*?>>", "", line))) for line in steps.strip().split("\n")]
        thought = " ".join(sentence(line) for line in lines if line)
        question, final = tidy(row["question"]), final.strip()
        if words_in(thought) > 65 or words_in(question) > 70 or not sums_are_right(thought):
            continue
        answer = f"The answer is {'$' if '$' + final in thought else ''}{final}."
        yield row["question"], puzzle(question, thought, answer, f"{thought} {answer}")


def adapter_puzzles(data):
    for row in read_rows(data / "llm-adapters-math" / "math_data.jsonl.xz"):
        output = row["output"].strip()
        question = tidy(row["instruction"])
        if "Answer Choices" in question or not output.startswith("A:") or not re.fullmatch(r"-?\d+(\.\d+)?",
                                                                                           row["answer"]):
            continue
        body, mark, tail = tidy(re.sub(r"(?<=[\w)])\s*\n", ". ", output[2:].strip())).rpartition("The answer is ")
        final = re.sub(r"\.0$", "", row["answer"])
        thought = tidy_sum(body.strip())
        said = re.findall(r"\d+(?:\.\d+)?", tail.replace(",", ""))
        if not mark or not said or float(said[0]) != float(final):
            continue
        if not 4 <= words_in(thought) <= 60 or not sums_are_right(thought):
            continue
        answer = f"The answer is {tail.rstrip('.')}."
        yield row["instruction"], puzzle(question, sentence(thought), answer, f"{sentence(thought)} {answer}")


def strategy_puzzles(data):
    for row in read_rows(data / "strategyqa" / "strategyqa.jsonl.xz"):
        facts = [sentence(tidy(fact)) for fact in row["facts"] if fact.strip()]
        verdict = "Yes" if row["answer"] else "No"
        thought = " ".join(facts)
        steps = [tidy(step) for step in row["decomposition"] if "#" not in step]
        if steps and words_in(thought) + words_in(steps[0]) <= 50:
            thought = f"{sentence(steps[0])} {thought}"
        if not facts or words_in(thought) > 58:
            continue
        reason = facts[-1] if words_in(facts[-1]) >= 4 else facts[0]
        plain = " ".join(facts) if words_in(" ".join(facts)) <= 35 else reason
        yield row["qid"], puzzle(tidy(row["question"]), f"{thought} So the answer is {verdict.lower()}.",
                                 f"{verdict}. {reason}", f"{verdict}. {plain}")


JUNK = re.compile(
    r"(?i)http|www|\.com|relevant|option|choice|question|correct|answer|rivers flow|word|context|suitable|explanation|"
    r"logical|sense|google|wiki|obvious|self.?explan|i think|amazon|\bmy\b|\bi\b|[?\"()/]|listed|only place|people is|"
    r"colour|products|inc\.|com\b"
)
STOP_WORDS = frozenset(
    "the and for are you that this with from they have has was were not can what where when who how will would".split()
)


def shares_run(text, other, length):
    """Whether the two have a run of that many words in common."""
    runs = [{tuple(words[i:i + length]) for i in range(len(words) - length + 1)}
            for words in (re.findall(r"[a-z']+", part.lower()) for part in (text, other))]
    return bool(runs[0] & runs[1])


def usable_explanation(text, stem, answer):
    """A whole sentence that names the answer, says something about the question and does more than repeat it."""
    if JUNK.search(text) or not text.isascii() or not 5 <= words_in(text) <= 22 or not re.match(r"[A-Za-z][a-z]* ",
                                                                                                text):
        return False
    said = set(re.findall(r"[a-z]{3,}", text.lower())) - STOP_WORDS
    asked = set(re.findall(r"[a-z]{3,}", stem.lower())) - STOP_WORDS
    verb = re.search(r"\b(is|are|was|were|can|will|would|has|have|do|does|\w+s|\w+ed)\b", text.lower())
    named = re.search(rf"\b{re.escape(answer.lower())}s?\b", text.lower())
    added = said - asked - set(re.findall(r"[a-z]{3,}", answer.lower()))
    # Several capitals inside the sentence are titles and shop pages pasted in.
    titled = len(re.findall(r" [A-Z][a-z]", text)) > 1
    return bool(verb and named and said & asked and added) and not titled and not shares_run(text, stem, 4)


def commonsense_puzzles(data):
    """CommonsenseQA questions with the explanations people wrote for them; many of those are poor and fall out here."""
    notes = {row["id"]: tidy(row["explanation"]["open-ended"])
             for row in read_rows(data / "cos-e" / "cose_train_v1.11.jsonl.xz")}
    seen = Counter(notes.values())
    for row in read_rows(data / "cos-e" / "train_rand_split_v1.0.jsonl.xz"):
        choices = {choice["label"]: tidy(choice["text"]) for choice in row["question"]["choices"]}
        stem, key = tidy(row["question"]["stem"]), row["answerKey"]
        answer, note = choices[key], notes.get(row["id"], "")
        if words_in(stem) > 35 or seen[note] != 1 or not usable_explanation(note, stem, answer):
            continue
        stem, note = capital(stem), sentence(note)
        lettered = "\n".join(f"{label}) {text}" for label, text in choices.items())
        yield row["id"], puzzle(f"{stem}\n{lettered}", f"{note} So it is {key}.", f"{key}) {answer}",
                                f"{key}) {answer}")
        either = joined(list(choices.values()), "or")
        yield row["id"], puzzle(f"{stem} Choose one: {either}.", note, f"The best answer is {answer}.",
                                f"The best answer is {answer}. {note}")
        if stem.endswith("?"):
            yield row["id"], puzzle(stem, note, f"{capital(answer)}.", note)


UNSUITABLE = re.compile(
    r"(?i)suicid|murder|\brap(e|ed|ist)\b|\bsex|nazi|hitler|porn|genital|\bkill|slave|drunk|cocaine|heroin|terroris|"
    r"corpse"
)


def is_clean(one):
    text = " ".join(one)
    return text.isascii() and not UNSUITABLE.search(text) and not mentions_held_out(text) and all(part.strip()
                                                                                                  for part in one)


def set_puzzles(make, data, split):
    wanted = split == "held_out"
    return [one for key, one in make(data) if in_held_out(key) == wanted and is_clean(one)]
