"""Answers from a note that the user gives: made-up facts, dictionary entries, and what is not in the note.

Wordings and positions vary (the note first, last, in the system message, as the engine's memory puts it), and so does the number of
other facts around the one that is asked for. A tenth of the wordings is kept for the tests.
"""

import functools

from nano.corpus import part, rows, words
from . import common, frames

# {t} the text, {q} the question. The first is how the engine puts what it remembers (src/orchestrator/recall.cpp).
FORMS = [
    "Note: {t}\nQuestion: {q}", "Note: {t}\n\n{q}", "{t}\n\n{q}", "{t} {q}", "Here is a note: {t}\n{q}", "Text: {t}\n\nQuestion: {q}",
    "Read this text and answer the question.\n\n{t}\n\n{q}", "{q}\n\nText: {t}", "{q} Here is what I know: {t}", "Context: {t}\nQ: {q}\nA:",
    "According to this note, {lq}\n{t}", "My notes say: {t} {q}", "I will give you a text. {t} Now tell me: {q}", 'The text says: "{t}" {q}',
    "Use only this note.\n{t}\n{q}", "Answer from the text: {t}\n{q}", "\"{t}\"\n{q}", "I found this: {t}\n\nMy question: {q}",
    "{t}\nSo: {q}", "Information:\n{t}\n\nQuestion:\n{q}", "Please read: {t}\nThen answer: {q}", "Look at this message: {t}\n{q}",
    "From a letter: {t}\n{q}", "### Note\n{t}\n### Question\n{q}", "Passage: {t}\nAnswer this from the passage: {q}",
    "Facts: {t}\nQuestion: {q}", "Given the following text, {lq}\n\n{t}", "Here is some information.\n{t}\nWhat I want to know: {q}",
    "{q}\n\nNote: {t}", "Memo: {t}\n\nCan you tell me: {q}", "Remember this: {t}\n{q}", "This is from my diary: {t}\n{q}",
    "Let me tell you something. {t} {q}", "Answer the question with the help of the note.\nNote: {t}\nQuestion: {q}",
    "Document:\n{t}\n\n{q}", "Here are my notes from today.\n{t}\n\n{q}", "We wrote down: {t} Now: {q}",
]
FRAGMENTS = ["Please look at what I wrote: {t} {q}", "Story: {t}\n{q}", "Question: {q}\nNote: {t}", "I read that {lt} {q}"]
ABSENT = ["The note does not say that.", "That is not in the note.", "The text does not say.", "The note does not tell.",
          "I cannot find that in the note.", "The note says nothing about that.", "It does not say that in the text.",
          "I do not know: the note does not mention it.", "That is not mentioned in the text."]
NOT_SAID = ["The note does not say {x}.", "The text does not tell {x}.", "I do not know {x}: it is not in the note.",
            "It is not mentioned {x}."]
SHORTLY = ["Answer in one word.", "Only the answer, please.", "Short answer.", "Just the value.", "Keep it short."]


def lower_question(question):
    return question[:1].lower() + question[1:] if not question.startswith(("I ", "I'")) else question


def place_note(rng, text, question, held_out):
    forms = FRAGMENTS + common.side(FORMS, True, "note form", 0.15) if held_out else common.side(FORMS, False, "note form", 0.15)
    lower = text if text.split(" ")[0] not in ("The", "A", "An", "In", "There", "You", "We", "It", "On") else text[0].lower() + text[1:]
    return rng.choice(forms).format(t=text, q=question, lq=lower_question(question), lt=lower)


def engine_form(rng, fact, others):
    """As src/orchestrator/recall.cpp tells the model what was remembered."""
    told = f"Fact: {fact}\n"
    texts = [fact] + others if rng.random() < 0.5 else others + [fact]
    if rng.random() < 0.4 and others:
        texts = [" ".join(texts)]
    told += "".join(text + "\n" for text in texts if text != fact)
    return told


def found_thought(rng, statement):
    return rng.choice([f'The note says: "{statement}"', f'It says: "{statement}" That is the answer.', f'I find in the text: "{statement}"',
                       f'The text: "{statement}"'])


def small_text(rng, facts):
    statements = [f.statement for f in facts]
    rng.shuffle(statements)
    style = rng.random()
    if style < 0.72:
        return " ".join(statements)
    if style < 0.86:
        return "\n".join("- " + s for s in statements)
    return "\n".join(statements)


def made_up(rng, held_out=False):
    """(user text, answer, thought, the value) of a made-up note that has the answer."""
    facts = frames.facts_of(rng, rng.choices([1, 2, 3, 4, 5, 6], [20, 22, 24, 18, 10, 6])[0], held_out, rng.random() < 0.4)
    asked = facts[0]
    answer, question = asked.answer, asked.question
    if rng.random() < 0.3:
        answer = asked.statement
    if rng.random() < 0.22:
        user = engine_form(rng, asked.statement, [f.statement for f in facts[1:]])
        if question.endswith("?") and rng.random() < 0.85:
            user += "Write at least a full sentence.\n"
        user += question
    else:
        if rng.random() < 0.08 and not held_out:
            question, answer = question + " " + rng.choice(SHORTLY), common.cap(asked.value) + "."
        user = place_note(rng, small_text(rng, facts), question, held_out)
    return user, answer, found_thought(rng, asked.statement), asked.value


def not_there(rng, held_out=False):
    """A note and a question that it does not answer: of somebody else, or another thing about the same."""
    facts = frames.facts_of(rng, rng.choice([1, 2, 3, 4]), held_out, rng.random() < 0.4)
    if rng.random() < 0.55:
        other = frames.fact(rng, held_out)
        while any(other.frame is f.frame and other.entity == f.entity for f in facts):
            other = frames.fact(rng, held_out)
    else:
        same = [f for f in frames.frames(held_out and rng.random() < 0.5) if f.kind == facts[0].frame.kind
                and all(f.keys != g.frame.keys for g in facts)]
        other = frames.fact(rng, held_out, facts[0].entity if same else None, rng.choice(same) if same else None)
    user = place_note(rng, small_text(rng, facts), other.question, held_out)
    answer = rng.choice(ABSENT)
    thought = rng.choice([f'The question is: "{other.question}" The note does not say it.', "I look in the note. It is not there.",
                          f"The note is about {facts[0].entity}. It does not answer this.", "Nothing in the note answers this."])
    return user, answer, thought, None


@functools.cache
def definitions(data):
    found = []
    for row in rows(part(data / "wordnet", "english_wordnet")):
        word, text = row["lemmas"][0], row["definition"].split(";")[0].strip()
        if row["pos"] == "n" and word.isascii() and text.isascii() and word.islower() and 3 < words(text) < 14 and "(" not in text:
            found.append((word, text))
    return found


def dictionary(rng, data):
    """Entries of a dictionary as the note: real language instead of the wordings of the frames."""
    entries = rng.sample(definitions(data), rng.choice([1, 2, 3, 4]))
    word, text = entries[0]
    shuffled = entries[:]
    rng.shuffle(shuffled)
    note = rng.choice([" ", "\n"]).join(f"{common.cap(common.an(w))} is {t}." if rng.random() < 0.6 else f"{common.cap(w)}: {t}."
                                        for w, t in shuffled)
    roll = rng.random()
    if roll < 0.15:
        other = rng.choice(definitions(data))[0]
        if other not in dict(entries):
            return place_note(rng, note, f"What is {common.an(other)}?", False), rng.choice(ABSENT), f"The note says nothing about {other}.", None
    if roll < 0.6:
        question = rng.choice([f"What is {common.an(word)}?", f"What does {word} mean?", f"How is {word} explained?", f"What does it say about {word}?"])
        return place_note(rng, note, question, False), f"{common.cap(common.an(word))} is {text}.", f'The text says about {word}: "{text}".', word
    question = rng.choice([f"Which word means {text}?", f"What do you call {text}?", f"What is {text} called?"])
    return place_note(rng, note, question, False), rng.choice([f"That is {common.an(word)}.", f"It is called {common.an(word)}.", f"The word is {word}."]), \
        f'"{text}" stands at {word}.', word


def unrelated_fact(rng, question, answer):
    """The engine found a note that does not matter: the question is answered as always."""
    other = frames.fact(rng)
    return f"Fact: {other.statement}\nWrite at least a full sentence.\n{question}", answer, "The fact does not matter here. I answer from what I know.", None


def system_note(rng):
    """The note stands in the system message."""
    facts = frames.facts_of(rng, rng.choice([2, 3, 4, 5]), False, rng.random() < 0.3)
    asked, text = facts[0], " ".join(f.statement for f in sorted(facts, key=lambda f: f.statement))
    frame = rng.choice(["Answer from these notes: {}", "You know this: {}", "{} Answer the user's questions.", "Notes of the user: {}",
                        "You are a helpful assistant. Use this information: {}", "Context:\n{}"])
    return common.turns_to_dialogue(rng, [(asked.question, asked.answer)], "notes", found_thought(rng, asked.statement), frame.format(text))


def several_questions(rng):
    """One note, two or three questions one after another; now and then one that it does not answer."""
    facts = frames.facts_of(rng, rng.choice([3, 4, 5]), False, rng.random() < 0.6)
    asked = facts[:rng.choice([2, 2, 3])]
    turns = [(place_note(rng, small_text(rng, facts), asked[0].question, False), asked[0].answer)]
    thought = found_thought(rng, asked[0].statement)
    for f in asked[1:]:
        turns.append((rng.choice(["", "", "And ", "Ok. ", "Thanks. "]) + f.question, f.answer))
        thought = found_thought(rng, f.statement)
    if rng.random() < 0.25:
        other = frames.fact(rng)
        turns.append((other.question, rng.choice(ABSENT)))
        thought = "I look in the note. It is not there."
    return common.turns_to_dialogue(rng, turns, "notes", thought)


def told_first(rng):
    """The user tells facts in turns of their own and asks later."""
    facts = frames.facts_of(rng, rng.choice([1, 2, 3]), False, rng.random() < 0.4)
    turns = [(rng.choice(["", "Remember: ", "Please note: ", "You should know: ", "Listen: "]) + f.statement,
              rng.choice(["All right, I will remember that.", "Noted.", "Thank you for telling me.", "Good to know.", "Okay, noted."])) for f in facts]
    asked = rng.choice(facts)
    turns.append((asked.question, asked.answer))
    return common.turns_to_dialogue(rng, turns, "notes", f'The user said: "{asked.statement}"')


def dialogue(rng, data):
    roll = rng.random()
    if roll < 0.07:
        return system_note(rng)
    if roll < 0.15:
        return several_questions(rng)
    if roll < 0.2:
        return told_first(rng)
    if roll < 0.37:
        user, answer, thought, _ = not_there(rng)
    elif roll < 0.5:
        user, answer, thought, _ = dictionary(rng, data)
    else:
        user, answer, thought, _ = made_up(rng)
    return common.turns_to_dialogue(rng, [(user, answer)], "notes", thought)


def dialogues(rng, data, count):
    for _ in range(count):
        yield dialogue(rng, data)
