"""Dialogues made from the instruction and question-answering sets of the data folder.

    dialogues(rng, data, "train" or "held_out")   Dialogues as nano.chatml describes them, in mixed order

Every row of a set becomes a request in plain words, a short tidy answer and a thought that shows how one gets from
the one to the other. One row in a hundred, chosen by its text, is held out.
`python3 -m nano.instructions DATA_DIR [SAMPLES]` prints counts and some dialogues.
"""

import collections
import itertools
import pathlib
import random
import re
import sys
from typing import Iterator

from nano import chatml
from nano.corpus import (HELD_OUT_SHARE, held_out_ids, medical_answer, medical_question, normalise, part, prose, rows,
                         share, words)
from .wording import (FOREIGN, LONGEST_INPUT, UNWANTED, bare, capital, content_words, dialogue, edits, in_split, pick,
                      question, sentence, tidy)
from .natural_tasks import natural_instructions


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
