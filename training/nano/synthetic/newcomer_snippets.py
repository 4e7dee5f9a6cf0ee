"""Small code in many languages: how something is written, what a word of a language does, which command does a thing, and the same in another language."""

import functools

from . import common
from .fact import BANKS

NAMES = {"python": "Python", "javascript": "JavaScript", "c": "C", "java": "Java", "bash": "bash", "cpp": "C++", "html": "HTML", "css": "CSS", "sql": "SQL", "go": "Go", "rust": "Rust", "ruby": "Ruby", "php": "PHP"}
TABLES = "users|orders|books|products|customers|songs|cities|students|animals|invoices".split("|")
HOW = ["How do I {w}?", "how do i {w}", "How can I {w}?", "How do you {w}?", "Show me how to {w}.", "What is the code to {w}?", "I want to {w}.", "Please {w}.", "{w}, please", "can you {w}?", "I need to {w}", "how to {w}", "Help me {w}."]
THING = ["{w}", "{w}, please", "Give me {w}.", "Show me {w}.", "I need {w}.", "Write {w}.", "Can you write {w}?", "Please write {w}.", "What does {w} look like?"]
LEADS = ["", "", "", "Here it is:\n\n", "Like this:\n\n", "In {l} you write:\n\n"]
NOUNS = ("a ", "an ", "the ", "red ", "bold ", "celsius")
WHAT = ["What does {w} do in {l}?", "what is {w} in {l}", "What is {w} for in {l}?", "Explain {w} in {l}.", "What does {w} mean in {l}?", "{l}: what does {w} do?", "I do not understand {w} in {l}."]
COMMAND = ["How do I {w} in Linux?", "How can I {w} on Linux?", "What is the command to {w}?", "Which command do I use to {w}?", "linux command to {w}", "How do I {w} in the terminal?", "how to {w} in the shell", "command line: {w}", "I want to {w} in the terminal.", "Tell me the command to {w}.", "{w} linux",
           "How do you {w} with the command line?"]


@functools.cache
def snippets():
    """(language, ways to ask, code) of the bank."""
    out = []
    for block in (BANKS / "code_snippets.txt").read_text(encoding="utf8").strip().split("\n\n"):
        # A blank line inside of the code belongs to the block before.
        if "? " not in block.split("\n")[0] or block.split("? ")[0] not in NAMES:
            language, asked, code = out[-1]
            out[-1] = (language, asked, code + "\n\n" + block)
            continue
        head, code = block.split("\n", 1)
        language, asked = head.split("? ", 1)
        out.append((language, asked.split(" | "), code))
    return out


@functools.cache
def others():
    """What can be asked for in more than one language: way to ask -> {language: code}."""
    table = {}
    for language, asked, code in snippets():
        for text in asked:
            table.setdefault(text, {})[language] = code
    return {text: found for text, found in table.items() if len(found) > 1}


@functools.cache
def rows(name, mark):
    return [tuple(line.split(mark)) for line in (BANKS / name).read_text(encoding="utf8").splitlines()]


def shown(rng, language, code):
    return rng.choice(LEADS).format(l=NAMES[language]) + f"```{language}\n{code}\n```"


def asked_for(rng, text, language):
    named = rng.choice([NAMES[language], NAMES[language], NAMES[language].lower()])
    if rng.random() < 0.25 and text.endswith(" in {l}"):
        return rng.choice(["{l}: {w}", "{l} code to {w}" if not text.startswith(NOUNS) else "{l}: {w}", "in {l}, {w}"]).format(l=named, w=text.removesuffix(" in {l}"))
    return rng.choice(THING if text.startswith(NOUNS) else HOW).format(w=text.format(l=named, x="{x}"))


def snippet(rng, data):
    language, asked, code = rng.choice(snippets())
    table = rng.choice(TABLES)
    text = rng.choice(asked)
    question = asked_for(rng, text, language)
    turns = [(common.typed(rng, common.cap(question).replace("{x}", table)) if rng.random() < 0.6 else question.replace("{x}", table), shown(rng, language, code.replace("{x}", table)))]
    wish = text.removesuffix(" in {l}").removesuffix(" with {l}").replace("{l}", NAMES[language]).replace("{x}", table)
    thought = f"{NAMES[language]}: {wish}."
    if text in others() and rng.random() < 0.35:
        other = rng.choice([name for name in others()[text] if name != language])
        turns.append((rng.choice(["and in {}?", "Now in {}.", "the same in {} please", "And in {}?", "What about {}?", "how does that look in {}?", "now in {}", "How would I do it in {}?"]).format(NAMES[other]), shown(rng, other, others()[text][other].replace("{x}", table))))
        thought = f"The same in {NAMES[other]}: {wish}."
    return turns, thought


def word(rng, data):
    language, name, does, example, value = rng.choice(rows("code_words.txt", "|"))
    question = common.typed(rng, rng.choice(WHAT).format(w=name, l=NAMES[language]))
    thing = common.cap(name) if name.startswith(("a ", "the ")) else f"`{name}`"
    answer = f"{thing} {does}"
    if rng.random() < 0.6:
        answer += rng.choice([" For example:", " Example:"]) + f"\n\n```{language}\n{example}\n```" if not value else f" For example, `{example}` gives `{value}`."
    return [(question, answer)], f"{name} {does}"


def command(rng, data):
    asked, line = rng.choice(rows("commands.txt", "="))
    wish = rng.choice(asked.split("|"))
    if wish.startswith("git: "):
        wish = wish.removeprefix("git: ")
        question = rng.choice(["git command to {w}", "How do I {w} in git?", "Which git command do I use to {w}?", "git: {w}", "how to {w} with git", "What is the git command to {w}?"]).format(w=wish)
    elif line.startswith(("git", "python3", "pip", "gcc", "node")):
        question = rng.choice(["How do I {w}?", "What is the command to {w}?", "how to {w}", "Which command do I use to {w}?"]).format(w=wish)
    else:
        question = rng.choice(COMMAND).format(w=wish)
    answer = rng.choice([f"Use `{line}`.", f"The command is `{line}`.", f"```sh\n{line}\n```", f"`{line}`", f"You can {wish} with `{line}`."])
    return [(common.typed(rng, question), answer)], f"The command for this is {line}."


SNIPPETS = [(16, snippet), (6, word), (7, command)]
