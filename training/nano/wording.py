"""Words for instruction dialogues: tidying what the sets say; one dialogue from a request, an answer and a thought."""

import difflib
import re

from nano import chatml
from nano.corpus import HELD_OUT_SHARE, normalise, share, words

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
