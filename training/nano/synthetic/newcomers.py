"""What people ask in their first minutes: small talk, work on a text of their own, sums in plain words, short code, and questions that follow.

The sixth run added this. Texts, numbers and names are put together anew each time, so that what is asked for has to be done instead of
remembered; newcomer_chats.json and all that is nearly one of its turns is dropped by prepare.py.
"""

import functools
from pathlib import Path

from . import common, frames, given_text, toolcalls
from .newcomer_code import code, printed, repaired, same_elsewhere
from .newcomer_follow import FOLLOWS
from .newcomer_more import MORE
from .newcomer_snippets import SNIPPETS
from .newcomer_sums import SUMS
from .newcomer_talk import TALK
from .newcomer_turns import TURNS
from .newcomer_words import TRANSLATIONS, VERBS

BANKS = Path(__file__).parent / "banks"
SUBJECTS = "the city council|the school board|our team|the owner of the cafe|the mayor|the sports club|the hospital|the new boss|the museum|the bus company|my landlord|the library|a farmer from {p}|the bank|the police|{n}|the teachers|our neighbours|the government|the band|a young engineer|the zoo|the airline|the old captain".split("|")
DECISIONS = """decided on {d} to close the {o} for repairs|wants to build a new {o} near the {q}|has sold the {o} to a company from {p}|will open a second {o} in {m}|found an old {o} under the {q}|has repaired the {o} after the storm|plans to paint the {o} {c}|moved the {o} to {p} last week|
bought a new {o} for {k} euros|will stop using the {o} from {m} on|lost the {o} in a fire on {d}|has won a prize for the {o}|asked everyone to keep away from the {o}|invited all families to the {q} on {d}|raised the price of the {o} by {k} percent|gave the {o} away for free|
cancelled the trip to {p} because of the weather|is looking for helpers for the {o}|repaired the {o} in only two days|will replace the old {o} with a larger one|started a course about the {o}|sent {k} boxes of food to {p}|saved a dog from the {q}|has to pay {k} euros for the broken {o}""".replace("\n", "").split("|")
OBJECTS = "bridge|swimming pool|playground|train station|library|bakery|bicycle path|car park|clock tower|boat|school bus|kitchen|garden|sports hall|machine|roof|fountain|market|cinema|website|radio|road|tunnel|ticket office|tower|ferry|lift|stage".split("|")
DETAILS = """It will take until {m}.|Drivers should use another road.|Many people are happy about it.|Some neighbours complained about the noise.|The work will cost about {k} thousand euros.|Nobody was hurt.|{n} said that it was about time.|The doors open at {t}.|There will be music and free coffee.|
Tickets can be bought online.|The old one was more than {k} years old.|The plan was discussed for a long time.|Children under six do not pay.|The weather was bad that day.|More than {k} people came to look at it.|It is the first time that this happens.|A newspaper wrote about it.|
The keys are with {n}.|Everybody should bring something to drink.|Until then a tent will be used.|The money comes from a fund.|{n} took many photos.|It was raining the whole time.|The answer is expected in {m}.""".replace("\n", "").split("|")
SHORT_PEOPLE = common.FIRST
ASK_SUMMARY = ["Summarize this in one sentence", "Summarise this", "Sum this up", "Give me a short summary", "What is the main point", "tl;dr", "Summarize the text in one sentence", "What is this text about", "Shorten this to one sentence", "What is the main idea",
               "What happened, in one sentence", "Write a summary", "In one sentence, what does this say"]
POINTS = ["Give me the key points", "List the key points", "What are the main points", "Turn this into bullet points", "Make bullet points from this", "Write this as a list", "What are the important points"]
FACTS = """We meet on {d} at {t}|Bring your {i}|Lunch is included|The bus leaves at {t}|The course costs {k} euros|{n} will pick you up|Please park behind the {q}|Wear warm clothes|The wifi password is {w}|Dinner is at {t}|Do not forget your {i}|The room is on floor {f}|The meeting ends at {t}|You can pay by card|
Smoking is not allowed|The shop is closed on {d}|Dogs are welcome|Call {n} if you are late|Please reply before {d}|The tickets are at the entrance|{n} brings the cake|We start with a short walk""".replace("\n", "").split("|")
CONTACTS = ["You can reach {n} at {v} or by phone.", "Please write to {v} if you have questions.", "My new address is {v}, so use that one.", "{n} gave me this: {v}. It should still work.", "For tickets contact {v} before {d}.", "Hello, I am {n}. Send the plan to {v}, please.", "The office is closed; in urgent cases use {v}.",
            "Thanks for your message. {n} is away, but {v} is always read."]
POLITE = """move your {i}|Your {i} is in the way. Move it.|Could you please move your {i}? It is in the way. Thank you!
turn down the music|Your music is too loud. Turn it down.|Could you please turn down the music a little? Thank you!
answer my mail|You did not answer my mail. Answer now.|I wanted to ask whether you have seen my mail. I would be happy about an answer.
send the {i}|Send me the {i} today.|Could you please send me the {i} today? Thank you very much!
clean the kitchen|The kitchen is dirty. Clean it.|Would you mind cleaning the kitchen? Thank you!
be on time|You are always late. Be on time.|I would be glad if you could be on time. Thank you!
pay the bill|Pay the bill now.|Could you please pay the bill soon? Thank you!
close the door|Close the door, it is cold.|Could you please close the door? It is a little cold.
give back the {i}|I want my {i} back.|Could I please have my {i} back? Thank you!
stop smoking here|Stop smoking here.|Would you please not smoke here? Thank you!
help me|Help me with the {i}.|Could you please help me with the {i}?
keep off the grass|Get off my grass.|Would you please stay off the grass? Thank you!
park elsewhere|You parked in my place. Go away.|I think you parked in my place. Could you please park somewhere else?
be quiet|Be quiet, I am working.|Could you please be a little quieter? I am working.
wait|Wait until I am done.|Could you please wait a moment until I am done?""".split("\n")
GOOD = "The {x} was delicious and the staff very kind.|I had a wonderful time, the {x} was perfect.|Best {x} in town, I will come back.|The {x} arrived early and works great.|My children love the {x}.|What a friendly place, and a great {x}!|I can only recommend the {x}.".split("|")
BAD = "The {x} was cold and the waiter was rude.|I waited two hours for the {x}.|The {x} broke on the first day.|Never again, the {x} was awful.|The {x} was dirty and too expensive.|I want my money back for the {x}.|The {x} made me ill.".split("|")
THINGS = "food|room|film|hotel|phone|soup|shoes|book|game|pizza|show|bike|cake|laptop".split("|")


def filled(rng, *texts):
    values = {"d": rng.choice(toolcalls.DAYS), "m": rng.choice(toolcalls.MONTHS), "o": rng.choice(OBJECTS), "q": rng.choice(["river", "church", "park", "town hall", "harbour", "school", "forest", "market square", "station"]), "p": toolcalls.draw(rng, "city"),
              "n": rng.choice(SHORT_PEOPLE), "k": str(rng.randint(2, 95)), "c": toolcalls.draw(rng, "color"), "t": toolcalls.draw(rng, "time"), "i": rng.choice(["laptop", "passport", "umbrella", "bike", "ticket", "report", "key", "shoes", "book", "car"]),
              "w": frames.draw_value(rng, "secret"), "f": str(rng.randint(1, 9)), "x": rng.choice(THINGS)}
    return [text.format(**values) for text in texts]


def summary(rng, data):
    """The main sentence among details: the summary is that sentence, or that sentence and what comes of it."""
    (main,) = filled(rng, f"{rng.choice(SUBJECTS)} {rng.choice(DECISIONS)}")
    main = common.cap(main) + "."
    details = [filled(rng, text)[0] for text in rng.sample(DETAILS, rng.choice([1, 2, 2, 3]))]
    if data and rng.random() < 0.3:
        details[rng.randrange(len(details))] = rng.choice(given_text.sentences(data))
    at = 0 if rng.random() < 0.8 else 1
    lines = details[:at] + [main] + details[at:]
    answer = main
    if rng.random() < 0.3:
        after = details[at] if at < len(details) else details[-1]
        first = after.split(" ")[0]
        after = after[0].lower() + after[1:] if first in ("It", "The", "There", "Nobody", "Many", "Some", "More", "Drivers", "Everybody", "A", "Until", "Children", "Tickets") else after
        if after[0].islower():
            answer = f"{main[:-1]}, and {after}"
    return [(given_text.asked(rng, rng.choice(ASK_SUMMARY), " ".join(lines)), answer)], rng.choice([f"The main point: {main}", f"Most important is: {main}", "I keep the main sentence."])


def key_points(rng, data):
    lines = [filled(rng, text)[0] for text in rng.sample(FACTS, rng.choice([2, 3, 3, 4]))]
    return [(given_text.asked(rng, rng.choice(POINTS), ". ".join(lines) + "."), "\n".join("- " + line for line in lines))], f"There are {len(lines)} points."


def extract(rng, data):
    """A mail address, a number, a date, a price or a place out of a text."""
    kind = rng.choice(["email", "phone number", "website", "date", "price", "name", "time"])
    name = rng.choice(common.FIRST)
    mail = f"{name.lower()}{rng.choice(['.', '_', ''])}{rng.choice(common.FAMILY).lower()}@{rng.choice(['example.com', 'mail.org', 'post.net', 'shop.com', 'school.edu'])}"
    if kind in ("email", "phone number", "website"):
        value = {"email": mail, "phone number": frames.draw_value(rng, "phone"), "website": f"www.{common.syllable(rng)}{common.syllable(rng)}.{rng.choice(['com', 'org', 'net'])}"}[kind]
        text = rng.choice(CONTACTS).format(n=name, v=value, d=rng.choice(toolcalls.DAYS))
    else:
        value = {"date": f"{rng.choice(toolcalls.MONTHS)} {rng.randint(1, 28)}", "price": f"{rng.randint(3, 90)} {rng.choice(['euros', 'dollars'])}", "name": f"{name} {rng.choice(common.FAMILY)}", "time": toolcalls.draw(rng, "time")}[kind]
        text = {"date": "The concert takes place on {v} in the park.|We will move to the new house on {v}.|Your appointment with the dentist is on {v}.|Please send the form back before {v}.", "price": "The ticket is {v}, and children pay half.|He sold his old bike for {v} last week.|Dinner with a drink was {v} in total.",
                "name": "Our new teacher is {v}, and the class likes her.|The letter was signed by {v} last Friday.|I spoke with {v} from the service desk.", "time": "The train leaves at {v} from platform 4.|The doctor can see you at {v} tomorrow.|Breakfast starts at {v} in the small room."}[kind]
        text = rng.choice(text.split("|")).format(v=value)
    if data and rng.random() < 0.4:
        text = rng.choice([f"{text} {rng.choice(given_text.sentences(data))}", f"{rng.choice(given_text.sentences(data))} {text}"])
    label = rng.choice({"email": ["email address", "email", "mail address"], "phone number": ["phone number", "number", "telephone number"], "website": ["website", "web address", "link"]}.get(kind, [kind]))
    ask = rng.choice([f"Extract the {label}", f"Extract the {label} from this text", f"Find the {label}", f"What is the {label} in this text", f"Give me the {label}", f"Which {label} is mentioned", f"Pull out the {label}", f"What {label} does the text mention"])
    return [(given_text.asked(rng, ask, text), rng.choice([value, value, f"The {label} is {value}." if rng.random() < 0.7 else value]))], f"The {label} is {value}."


def spelling(rng, data):
    """One or two words with a slip of the finger."""
    line = rng.choice(given_text.sentences(data)) if data else "The weather is beautiful today."
    words = line.split()
    places = [i for i, w in enumerate(words) if len(w.strip(".,")) > 3 and w.strip(".,").isalpha()]
    for i in rng.sample(places, min(len(places), rng.choice([1, 1, 2]))):
        word, at = words[i], rng.randrange(1, len(words[i].strip(".,")) - 1)
        slip = rng.random()
        if "ie" in word or "ei" in word:
            words[i] = word.replace("ie", "#").replace("ei", "ie").replace("#", "ei")
        elif slip < 0.4:
            words[i] = word[:at] + word[at + 1] + word[at] + word[at + 2:] if word[at + 1].isalpha() else word[:at] + word[at + 1:]
        elif slip < 0.7:
            words[i] = word[:at] + word[at + 1:]
        else:
            words[i] = word[:at] + word[at] + word[at:]
    wrong = " ".join(words)
    if wrong == line:
        wrong = line[0].lower() + line[1:]
    return [(given_text.asked(rng, rng.choice(["Correct the spelling", "Fix the typos", "Correct the mistakes", "Fix the spelling mistakes", "Correct this sentence", "Please correct this", "Find and fix the error"]), wrong), line)], "I write each word correctly."


def tense(rng, data):
    """A sentence with one or two verbs put into another tense, person or form."""
    (b1, s1, p1, r1), (b2, s2, p2, r2) = rng.sample(VERBS, 2)
    two = rng.random() < 0.5
    who = rng.choice(["I", "We", "They", "He", "She", rng.choice(common.FIRST)])
    third = who not in ("I", "We", "They")
    present = f"{who} {s1 if third else b1} {r1}" + (f" and {s2 if third else b2} {r2}" if two else "") + "."
    past = f"{who} {p1} {r1}" + (f" and {p2} {r2}" if two else "") + "."
    future = f"{who} will {b1} {r1}" + (f" and {b2} {r2}" if two else "") + "."
    question = f"{'Does' if third else 'Do'} {who if who not in ('We', 'They', 'He', 'She') else who.lower()} {b1} {r1}?"
    negative = f"{who} {'does' if third else 'do'} not {b1} {r1}."
    one = f"{who} {s1 if third else b1} {r1}."
    source, target, ask = rng.choice([
        (present, past, ["Rewrite in the past tense", "Put this in the past tense", "Write this in the past", "Change it to the past tense"]), (present, future, ["Put this in the future", "Rewrite in the future tense", "Write this in the future"]),
        (past, present, ["Put this in the present tense", "Rewrite in the present tense"]), (one, question, ["Turn this into a question", "Make this a question"]), (one, negative, ["Make this negative", "Write the negative form"])])
    return [(given_text.asked(rng, rng.choice(ask), source), target)], f"The verb is {b1}" + (f" and {b2}." if two else ".") + (f" In the past: {p1}" + (f", {p2}." if two else ".") if target == past else "")


def polite(rng, data):
    line = rng.choice(POLITE).split("|")
    _, rude, kind = filled(rng, *line)
    return [(given_text.asked(rng, rng.choice(["Make this friendlier", "Make this more polite", "Rewrite this politely", "Say this in a nicer way", "Make this sound nicer", "Make it friendly", "Rewrite this in a polite way"]), rude), kind)], "I ask for it kindly."


def mood(rng, data):
    good = rng.random() < 0.5
    text = filled(rng, rng.choice(GOOD if good else BAD))[0]
    word = "positive" if good else "negative"
    ask = rng.choice(["Is this review positive or negative", "Is this positive or negative", "What is the sentiment", "Does the customer sound happy", "Classify as positive or negative", "Is the writer satisfied"])
    answer = {"D": "Yes, the customer sounds happy." if good else "No, the customer does not sound happy.", "I": None}.get(ask[0]) or (("Yes, the writer is satisfied." if good else "No, the writer is not satisfied.") if "satisfied" in ask else rng.choice([f"It is {word}.", common.cap(word) + ".", f"The review is {word}."]))
    return [(given_text.asked(rng, ask, text), answer)], f"The words are {'friendly' if good else 'unfriendly'}, so it is {word}."


def shopping(rng, data):
    """Things to buy, to do or to pack as a list, with their amounts."""
    goods = [(a, g) for a, g in zip(rng.sample(["two", "three", "some", "a bag of", "a bottle of", "six", "a little", "four", "a box of"], 4), rng.sample("apples|eggs|rice|butter|tomatoes|milk|onions|cheese|bananas|tea|potatoes|oil|carrots|bread|sugar|pears".split("|"), 4))]
    count = rng.choice([2, 3, 3, 4])
    things = [f"{a} {g}" for a, g in goods[:count]]
    extra = rng.choice(["soap", "napkins", "batteries", "flowers for {n}", "a card for {n}", "cat food", "stamps"]).format(n=rng.choice(common.FIRST))
    items, text = things, common.listed(things)
    text = rng.choice(["Could you get {}? Thanks.", "For the soup I need {}.", "We are out of food. Please bring {}.", "At home we miss {}.", "Tomorrow I want to buy {}."]).format(text)
    if rng.random() < 0.5:
        text += rng.choice([" Oh, and {}.", " We also need {}.", " And please do not forget {}."]).format(extra)
        items = things + [extra]
    return [(given_text.asked(rng, rng.choice(["Make a shopping list", "Make a list of what to buy", "Write a shopping list from this", "List what I have to buy", "Turn this into a shopping list"]), text), "\n".join("- " + item for item in items))], f"There are {len(items)} things."


def yes_no(rng, data):
    """A question about the text with yes or no."""
    fact = frames.fact(rng)
    name, day, other = rng.choice(common.FIRST), *rng.sample(toolcalls.DAYS, 2)
    shop = rng.choice(["shop", "library", "pool", "cafe", "office", "museum"])
    text, question, answer = rng.choice([
        (f"The {shop} is open every day except {day}.", f"Is the {shop} open on {day}?", f"No, the {shop} is closed on {day}."), (f"The {shop} is open every day except {day}.", f"Is the {shop} open on {other}?", f"Yes, the {shop} is open on {other}."),
        (f"{name} cannot come on {day}, but {other} is fine.", f"Can {name} come on {other}?", f"Yes, {name} can come on {other}."), (f"{name} cannot come on {day}, but {other} is fine.", f"Can {name} come on {day}?", f"No, {name} cannot come on {day}.")])
    text = rng.choice([text, f"{text} {fact.statement}", f"{fact.statement} {text}"])
    return [(given_text.asked(rng, question.rstrip("?"), text), answer)], f'The text says: "{text if len(text) < 70 else answer}"'


@functools.cache
def talk():
    lines = [line for name in ("talk_first.txt", "talk_second.txt") for line in (BANKS / name).read_text(encoding="utf8").splitlines()]
    return [tuple(part.split("|") for part in line.split(" => ")) for line in lines if line]


def small_talk(rng, data):
    asked, answers = rng.choice(talk())
    turns = [(dressed(rng, rng.choice(asked)), rng.choice(answers))]
    if rng.random() < 0.3:
        asked, answers = rng.choice(talk())
        turns.append((dressed(rng, rng.choice(asked)), rng.choice(answers)))
    return turns, rng.choice(["A short friendly answer.", "The user talks to me. I answer kindly.", "I answer in a friendly way."])


def dressed(rng, text):
    """A line of talk the way people type it."""
    text = text.strip()
    roll = rng.random()
    if roll < 0.35:
        text = common.cap(text)
    elif roll < 0.5:
        text = common.cap(text.rstrip("?!. ")) + ("?" if text.endswith("?") else rng.choice([".", "!", ""]))
    elif roll < 0.62:
        text = text.rstrip("?!.")
    if rng.random() < 0.12 and len(text.split()) > 2:
        text = rng.choice(["hey, ", "hi, ", "Hello! ", "Hi Chimere, ", "hello, "]) + text
    return text


SHAPES = [(26, small_talk), (14, summary), (6, key_points), (9, extract), (7, spelling), (7, tense), (5, polite), (4, mood), (6, shopping), (4, yes_no)]
SHAPES += [(weight, shape) for weight, shape in TRANSLATIONS + SUMS + FOLLOWS + TALK + MORE + SNIPPETS + TURNS] + [(10, code), (5, printed), (3, repaired), (5, same_elsewhere)]


def dialogues(rng, data, count):
    for _ in range(count):
        turns, thought = rng.choices([s for _, s in SHAPES], [w for w, _ in SHAPES])[0](rng, data)
        yield common.turns_to_dialogue(rng, turns, "newcomers", thought)
