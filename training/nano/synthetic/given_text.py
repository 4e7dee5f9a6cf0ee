"""Instructions on a text that the user gives: shorten, sum up, list, find, count, rewrite, replace, sort, title, judge."""

import functools
import random

from nano.corpus import part
from . import common, frames, toolcalls

COLON = ["{i}: {t}", "{i}:\n{t}", "{i}:\n\n{t}", '{i}: "{t}"', "{t}\n\n{i}.", "{t}\n{i}.", '"{t}" {i}.', "{i}.\n{t}", "Text: {t}\n{i}.", "{i}, please: {t}",
         "Please {li}: {t}", "Can you {li}? {t}", "Here is a text. {t} {i}.", "I have this text: {t}\nNow {li}.", "Could you {li}:\n{t}", '{i}.\n\n"{t}"']
KINDS = {
    "animals": "dog cat horse cow pig goat duck hen fox bear wolf owl frog rabbit mouse lion tiger monkey parrot turtle whale".split(),
    "fruits": "apples bananas pears plums grapes lemons oranges cherries peaches melons kiwis figs mangoes berries".split(),
    "colors": "red blue green yellow black white purple orange brown pink grey".split(),
    "cities": "Paris London Rome Berlin Madrid Lisbon Vienna Oslo Dublin Tokyo Cairo Delhi Boston Lima Prague Athens".split(),
    "names": common.FIRST, "tools": "hammer saw drill ladder wrench screwdriver knife rope shovel rake".split(),
    "drinks": "tea coffee milk water juice lemonade cocoa wine beer".split(), "days": toolcalls.DAYS,
    "vegetables": "carrots potatoes onions tomatoes beans peas leeks cucumbers beets spinach".split(),
    "clothes": "hat shirt scarf coat dress jacket skirt sweater sock belt".split(),
}
CARRIERS = {
    "animals": ["On the farm we saw a {0}, a {1} and a {2}.", "The {0} ran after the {1}, and the {2} watched them.", "A {0} and a {1} live next to a {2}.",
                "My uncle keeps a {0}, and his neighbour has a {1}. They also feed a {2}.", "First the {0} came out, then the {1}. The {2} stayed inside."],
    "fruits": ["Please buy {0}, {1} and some {2} at the market.", "Anna likes {0} but not {1}. Her brother eats {2}.", "The cake has {0} and {1}. We put {2} on top.",
               "There are {0} in the bowl, {1} on the table and {2} in the fridge."],
    "colors": ["The flag is {0} and {1}, with a {2} star.", "She painted the door {0}, the window {1} and the roof {2}.", "His car was {0}, now it is {1}. Mine is {2}."],
    "cities": ["We flew from {0} to {1} and took a train to {2}.", "I have lived in {0} and {1}. My sister lives in {2}.", "The tour starts in {0}, goes on to {1} and ends in {2}."],
    "names": ["{0} met {1} at the station. Later {2} joined them.", "{0} is older than {1}, and {2} is the youngest.", "{0} cooked, {1} washed up and {2} slept."],
    "tools": ["He took the {0} and the {1} and asked for a {2}.", "You need a {0}, a {1} and a {2} for this job."],
    "drinks": ["They ordered {0} and {1}. I had {2}.", "There was {0} for the children, {1} for the guests and {2} for me."],
    "days": ["The shop is open on {0} and {1}, but closed on {2}.", "We meet on {0}. The choir sings on {1} and {2}."],
    "vegetables": ["The soup needs {0}, {1} and {2}.", "He grows {0} and {1} behind the house and {2} in pots."],
    "clothes": ["She packed a {0}, a {1} and a {2}.", "He lost his {0}, tore his {1} and forgot his {2}."],
}
PLAIN_CARRIERS = ["My list has {0}.", "I can see {0} in the picture.", "There were {0}, and {1} was happy.", "{1} thinks of {0} all day.", "On the page you find {0}.",
                  "{1} wrote down {0}.", "The first chapter speaks of {0}."]
# (text, short) with the same slots; fillers in the long one are drawn from FILLERS.
ANNOUNCEMENTS = [
    ("The {place} will be closed on {day} because {why}. We are sorry for the trouble. It opens again on {day2}.", "The {place} is closed on {day} because {why}."),
    ("{A} has lived in {town} for {n} years. Every morning {she} walks to the {place}, even when it rains. {She} says that {she} would never move away.",
     "{A} loves living in {town} and walks to the {place} every morning."),
    ("Last {day} {A} found {item} in the {place}. {She} asked all the neighbours, but nobody knew to whom it belonged. In the end {she} brought it to the police.",
     "{A} found {item} in the {place} and brought it to the police."),
    ("The new {place} in {town} opened on {day}. More than {n}0 people came to see it. The mayor gave a speech and there was free cake.",
     "A new {place} opened in {town} on {day}, and many people came."),
    ("{A} wanted to bake a cake for {B}. {She} had no eggs, so {she} went to the shop. When {she} came back, {B} had already baked one.",
     "{A} wanted to bake a cake for {B}, but {B} had already baked one."),
    ("Our team met on {day} to talk about the {place}. We agreed that it needs new windows. {A} will ask for prices and report next week.",
     "The team agreed that the {place} needs new windows, and {A} will ask for prices."),
    ("Dear all, the trip to {town} starts at {time} on {day}. Please bring warm clothes and something to eat. The bus will not wait.",
     "The trip to {town} starts on {day} at {time}; bring warm clothes and food."),
    ("It was a cold winter. {A} and {B} had no wood left, so they went into the forest. There they met an old man who gave them a sledge full of wood.",
     "{A} and {B} had no wood, and an old man gave them some."),
    ("The train to {town} was late because of snow. Many people waited on the platform for {n} minutes. {A} sold hot tea to them and made good money.",
     "The train to {town} was late, and {A} sold tea to the people who waited."),
    ("{A} lost {item} on the way to the {place}. {She} looked everywhere for it. Finally {B} found it under a bench.", "{A} lost {item}, and {B} found it under a bench."),
    ("Bees are important for our gardens. They carry pollen from flower to flower, and without them we would have fewer apples and berries. Plant flowers to help them.",
     "Bees are important because they carry pollen, and flowers help them."),
    ("Sleep is good for you. When you sleep, your body rests and your brain sorts what you learned. Adults need about eight hours a night.",
     "Sleep lets the body rest and the brain sort what it learned."),
    ("{A} is a {job} from {town}. {She} works six days a week and has little time. On {day} {she} goes fishing with {B}.",
     "{A} is a {job} from {town} who goes fishing with {B} on {day}."),
    ("The museum has bought {item}. It cost {n} thousand euros. Visitors can see it from {day} on.", "The museum bought {item}, and visitors can see it from {day} on."),
    ("We had a storm last night. A tree fell on the roof of the {place}, but nobody was hurt. The fire brigade removed the tree before noon.",
     "A tree fell on the {place} in a storm, but nobody was hurt."),
    ("{A} started to learn the guitar in spring. At first it sounded terrible, and {B} complained every day. Now {she} plays so well that {B} asks for more.",
     "{A} learned the guitar and now plays so well that {B} asks for more."),
    ("Water boils at 100 degrees at sea level. On a high mountain the air is thinner, so water boils earlier there. That is why cooking takes longer.",
     "On a high mountain water boils at a lower temperature, so cooking takes longer."),
    ("Hi {A}, I am writing because I cannot come to your party on {day}. My {job} friend from {town} visits me that day. I hope you have a great time!",
     "The writer cannot come to {A}'s party on {day} because a friend visits."),
]
LONG = [("{day2} afternoon, after a long and tiring walk, {A}, who is a {job}, finally bought {item} at the market near the river.", "{A} bought {item} at the market."),
        ("In my opinion it would probably be a good idea if we all met again on {day} in order to talk about the {place}.", "Let us meet on {day} to talk about the {place}."),
        ("Due to the fact that it was raining very heavily, {A} made the decision to stay at home with {B}.", "Because of the rain, {A} stayed at home with {B}."),
        ("I just wanted to write to you in order to let you know that I will not be able to come on {day}.", "I cannot come on {day}."),
        ("{A}, the tall and friendly {job} who lives next door, gave {item} to {B} as a present for the birthday.", "{A} gave {item} to {B} for the birthday."),
        ("There is a small old house in {town}, which stands on a hill, and in this house lives a {job} named {A}.", "A {job} named {A} lives in a house in {town}."),
        ("At this point in time we do not have any {place} in the town of {town}, but one is going to be built.", "{town} has no {place} yet, but one will be built."),
        ("{A} and {B}, who had not seen each other for {n} years, met by chance in front of the {place} on {day}.", "{A} and {B} met by chance on {day}.")]
SHORTEN = ["Shorten this", "Make this shorter", "Say this in fewer words", "Shorten the text", "Make it shorter", "Cut this down", "Write this more briefly",
           "Put this in one short sentence"]
SUM_UP = ["Summarize this", "Summarize this text in one sentence", "Sum this up in one sentence", "Give me a summary of this", "What is the main point of this",
          "Summarise the text", "Write a one-sentence summary", "Summarize it briefly", "Tell me in one sentence what this says", "Shorten this to one sentence"]
SLOTS = {"place": "library|school|swimming pool|museum|bakery|theatre|sports hall|town hall|station|playground|cinema|bridge".split("|"),
         "why": "the roof is being repaired|the staff is on holiday|there is no electricity|the floor is wet|it is being painted|of a holiday".split("|"),
         "job": "teacher|baker|nurse|driver|painter|farmer|doctor|tailor".split("|"),
         "item": "an old clock|a red umbrella|a silver ring|a small painting|a wallet|a blue bicycle|a gold coin|a strange key|a wooden box".split("|")}
TYPO = [("the", "teh"), ("and", "adn"), ("because", "becuase"), ("friend", "freind"), ("their", "thier"), ("receive", "recieve"), ("tomorrow", "tommorow"),
        ("which", "wich"), ("really", "realy"), ("weather", "wether"), ("beautiful", "beautifull"), ("house", "huose"), ("with", "wiht"), ("people", "poeple"),
        ("school", "shcool"), ("very", "verry"), ("water", "watter"), ("morning", "mornig"), ("little", "littel"), ("always", "allways")]
FEELINGS = [("I love this {x}. It works perfectly and looks great.", "positive"), ("The {x} broke after two days. I want my money back.", "negative"),
            ("What a wonderful {x}! I am so happy with it.", "positive"), ("This {x} is terrible and far too expensive.", "negative"),
            ("Great {x}, fast delivery, I would buy it again.", "positive"), ("I am very disappointed with the {x}. It never worked.", "negative"),
            ("The best {x} I ever had.", "positive"), ("Do not buy this {x}, it is a waste of money.", "negative"),
            ("The staff was friendly and the {x} was excellent.", "positive"), ("I waited an hour, and then the {x} was cold and bad.", "negative")]
TITLES = [("bees", "Why Bees Matter"), ("Sleep is", "Why We Sleep"), ("Water boils", "Cooking on a Mountain"), ("storm", "A Tree in the Storm"), ("guitar", "Learning the Guitar"),
          ("bake a cake", "Two Cakes"), ("cold winter", "A Gift of Wood"), ("train to", "Tea at the Station"), ("museum has", "A New Piece in the Museum"),
          ("will be closed", "Closed for a Day"), ("found", "A Strange Find"), ("lost", "Lost and Found"), ("trip to", "The Trip"), ("opened on", "A New Opening")]
FORMAL = [("Hey, can you send me the {x}?", "Could you please send me the {x}?"), ("I want the {x} now.", "I would like to have the {x} as soon as possible."),
          ("Thanks for the {x}!", "Thank you very much for the {x}."), ("Give me the {x}.", "Could you please give me the {x}?"),
          ("The {x} is bad, fix it.", "There seems to be a problem with the {x}. Could you please look at it?"), ("I can't come, sorry.", "I am sorry, but I will not be able to come."),
          ("Where's my {x}?", "Could you please tell me where my {x} is?"), ("Call me about the {x}.", "Please call me about the {x} when you have time.")]


@functools.cache
def sentences(data):
    """Everyday sentences of the data folder, one a line."""
    from nano.corpus import share
    path = part(data / "common-voice-sentences", "sentences")
    import lzma
    opener = lzma.open if path.suffix == ".xz" else open
    with opener(path, "rt", encoding="utf8") as stream:
        lines = [line.strip() for line in stream]
    return [line for line in lines if line.isascii() and line[:1].isupper() and line[-1:] == "." and line.count(".") == 1 and 4 <= len(line.split()) <= 12
            and share("given", line) > 0.02]


def fill(rng, *texts):
    a, b = rng.sample(common.FIRST, 2)
    days = rng.sample(toolcalls.DAYS, 2)
    she = "he" if a in set("Ben David Felix Hugo Jack Leo Oscar Paul Sam Tom Will Amir Bruno Farid Ivan Kofi Nils Otto Karl Peter Walter".split()) else "she"
    values = {"A": a, "B": b, "she": she, "She": she.capitalize(), "day": days[0], "day2": days[1], "n": str(rng.randint(5, 60)), "town": common.place(rng) if rng.random() < 0.5
              else toolcalls.draw(rng, "city"), "time": toolcalls.draw(rng, "time"), **{key: rng.choice(options) for key, options in SLOTS.items()}}
    return [text.format(**values) for text in texts]


def asked(rng, instruction, text):
    instruction = instruction.rstrip(".")
    lower = instruction[0].lower() + instruction[1:]
    form = rng.choice(COLON)
    if lower.startswith(("which", "how", "what", "is ", "does", "who", "when", "where", "on ", "in ", "for ", "whose", "to whom", "at ", "from ", "until")):
        # A question is not a wish: "Please which ..." is said by nobody.
        form = rng.choice([f for f in COLON if "{li}" not in f and "please" not in f])
        instruction += "?"
    return form.format(i=instruction, li=lower, t=text).replace("?.", "?").replace("?:", "?")


def shorten(rng, data):
    if rng.random() < 0.5:
        text, short = fill(rng, *rng.choice(LONG))
        return asked(rng, rng.choice(SHORTEN), text), short, "I keep only what matters."
    text, short = fill(rng, *rng.choice(ANNOUNCEMENTS))
    return asked(rng, rng.choice(SUM_UP + SHORTEN), text), short, f"The main point: {short}"


def list_items(rng, data):
    kind = rng.choice(sorted(KINDS))
    many = rng.choice([2, 3, 3, 3, 4, 5])
    items = rng.sample(KINDS[kind], many)
    text = rng.choice(CARRIERS[kind]).format(*items) if many == 3 else rng.choice(PLAIN_CARRIERS).format(common.listed(items), rng.choice(common.FIRST))
    number = ["two", "three", "four", "five"][many - 2]
    if data and rng.random() < 0.4:
        extra = rng.choice(sentences(data))
        text = f"{text} {extra}" if rng.random() < 0.5 else f"{extra} {text}"
    if rng.random() < 0.3:
        return asked(rng, rng.choice([f"How many {kind} are mentioned", f"Count the {kind}", f"How many {kind} are in this text", f"How many {kind} does the text name"]), text), \
            rng.choice([common.cap(number) + ": {}.", f"The text names {number}: {{}}.", f"{many}: {{}}."]).format(common.listed(items)), \
            f"The {kind} are {common.listed(items)}. That is {number}."
    instruction = rng.choice([f"List the {kind}", f"List all {kind} in this text", f"Which {kind} are mentioned", f"Find the {kind} in the text", f"Name the {kind}",
                              f"Make a list of the {kind}", f"Extract the {kind}", f"What {kind} does the text mention", f"Pick out the {kind}"])
    answer = "\n".join("- " + item for item in items) if rng.random() < 0.45 else common.cap(common.listed(items)) + "."
    return asked(rng, instruction, text), answer, f"The {kind} are {common.listed(items)}."


def find(rng, data):
    """Who, when and where in a small announcement or among facts."""
    facts = frames.facts_of(rng, rng.choice([2, 3]), False, rng.random() < 0.5)
    f = facts[0]
    text = " ".join(x.statement for x in sorted(facts, key=lambda x: x.question))
    if data and rng.random() < 0.5:
        text += " " + rng.choice(sentences(data))
    return asked(rng, rng.choice(["Find this in the text: {}", "Answer from the text: {}", "Look it up in the text: {}", "{}"]).format(f.question.rstrip("?.")) , text), f.answer, \
        f'The text says: "{f.statement}"'


def count(rng, data):
    number = rng.randint(2, 5)
    lines = rng.sample(sentences(data), number)
    names = ["one", "two", "three", "four", "five"]
    if rng.random() < 0.5:
        text = " ".join(lines)
        return asked(rng, rng.choice(["How many sentences are there", "Count the sentences", "How many sentences does this text have"]), text), \
            rng.choice([f"The text has {names[number - 1]} sentences.", f"There are {number} sentences.", f"{number}."]), \
            " ".join(f"{i + 1}: {line.split()[0]}" for i, line in enumerate(lines)) + f". So {number}."
    line = rng.choice([s for s in lines if len(s.split()) <= 8] or [lines[0]])
    words = line.rstrip(".").split()
    return asked(rng, rng.choice(["How many words are there", "Count the words", "How many words does this sentence have"]), line), \
        rng.choice([f"There are {len(words)} words.", f"{len(words)} words.", f"The sentence has {len(words)} words."]), " ".join(f"{w} {i + 1}" for i, w in enumerate(words)) + "."


def pick_sentence(rng, data):
    lines = rng.sample(sentences(data), rng.randint(2, 4))
    text = " ".join(lines)
    place = rng.randrange(len(lines))
    ordinal = ["first", "second", "third", "fourth"][place]
    if place == len(lines) - 1 and rng.random() < 0.7:
        ordinal = "last"
    roll = rng.random()
    if roll < 0.4:
        return asked(rng, rng.choice(["Repeat the {} sentence", "What is the {} sentence", "Copy only the {} sentence", "Give me the {} sentence"]).format(ordinal), text), lines[place], \
            f"The {ordinal} sentence begins with {lines[place].split()[0]}."
    if roll < 0.75:
        words = [w.strip(",.") for w in lines[place].split() if len(w) > 4 and w.strip(",.").lower() not in " ".join(lines[:place] + lines[place + 1:]).lower()]
        if words:
            word = rng.choice(words)
            return asked(rng, rng.choice(['Which sentence has the word "{}"', 'Find the sentence with "{}"', 'Quote the sentence that mentions "{}"']).format(word), text), lines[place], \
                f'"{word}" stands in the {["first", "second", "third", "fourth"][place]} sentence.'
    word = lines[0].split()[0] if rng.random() < 0.5 else lines[-1].rstrip(".").split()[-1]
    which = "first" if word == lines[0].split()[0] else "last"
    return asked(rng, f"What is the {which} word of this text", text), f'The {which} word is "{word}".', f"It {'begins' if which == 'first' else 'ends'} with {word}."


def replace(rng, data):
    line = rng.choice(sentences(data))
    roll = rng.random()
    names = rng.sample(common.FIRST, 2)
    if roll < 0.45:
        words = [w for w in line.rstrip(".").split() if w.isalpha() and len(w) > 3]
        if words:
            old, new = rng.choice(words), rng.choice(["green", "river", "seven", "music", "window", "horse", "quiet", "paper", "garden", "silver"])
            answer = " ".join(new if w.rstrip(".,") == old and not w.endswith((",", ".")) else w.replace(old, new) if w.rstrip(".,") == old else w for w in line.split())
            return asked(rng, rng.choice(['Replace "{}" with "{}"', 'Change the word "{}" to "{}"', "Write {} as {} in this sentence"]).format(old, new), line), common.cap(answer), \
                f"{old} becomes {new}."
    if roll < 0.7:
        text = rng.choice(["{} went to the market and bought bread.", "Yesterday {} wrote a long letter.", "{} has a small garden behind the house.", "I met {} at the station.",
                           "{} is learning to swim.", "My friend {} lives near the sea."])
        return asked(rng, rng.choice(["Replace {} with {}", "Change the name {} to {}", "Write {} instead of {}"][:2]).format(*names), text.format(names[0])), text.format(names[1]), \
            f"{names[0]} becomes {names[1]}."
    if roll < 0.85:
        return asked(rng, rng.choice(["Write this in capital letters", "Put this in upper case", "Make this all caps"]), " ".join(line.split()[:5]).rstrip(".,")), \
            " ".join(line.split()[:5]).rstrip(".,").upper(), "Every letter becomes a capital."
    return asked(rng, rng.choice(["Write this in small letters", "Put this in lower case"]), " ".join(line.split()[:5]).rstrip(".,").upper()), \
        " ".join(line.split()[:5]).rstrip(".,").lower(), "Every letter becomes small."


def correct(rng, data):
    line = rng.choice(sentences(data))
    wrong = line
    for good, bad in rng.sample(TYPO, len(TYPO)):
        if f" {good} " in wrong:
            wrong = wrong.replace(f" {good} ", f" {bad} ", 1)
            if rng.random() < 0.5:
                break
    if wrong == line:
        wrong = line[0].lower() + line[1:].rstrip(".")
    return asked(rng, rng.choice(["Correct the mistakes", "Fix the spelling", "Correct this", "Fix the mistakes in this sentence", "Correct the spelling"]), wrong), line, "I write it correctly."


def order(rng, data):
    kind = rng.choice([k for k in KINDS if k != "days"])
    items = rng.sample(KINDS[kind], rng.randint(3, 5))
    text = ", ".join(items)
    roll = rng.random()
    if roll < 0.5:
        answer = ", ".join(sorted(items, key=str.lower))
        return asked(rng, rng.choice(["Sort this alphabetically", "Put these words in alphabetical order", "Order these by the alphabet", "Sort these words"]), text), answer, \
            "By the first letter: " + ", ".join(f"{w[0].lower()} {w}" for w in sorted(items, key=str.lower)) + "."
    if roll < 0.75:
        return asked(rng, rng.choice(["Reverse this list", "Write this list backwards", "Put these in the opposite order"]), text), ", ".join(items[::-1]), "I begin at the end."
    return asked(rng, rng.choice(["Make a bullet list of this", "Write this as a list", "Turn this into bullet points", "Put each on a line of its own"]), text), \
        "\n".join("- " + w for w in items), "One line for each."


def feeling(rng, data):
    text, mood = rng.choice(FEELINGS)
    text = text.format(x=rng.choice(["lamp", "soup", "phone", "hotel", "book", "coat", "chair", "coffee", "bike", "pizza", "camera", "film"]))
    return asked(rng, rng.choice(["Is this positive or negative", "Is this review good or bad, positive or negative", "What is the mood of this review, positive or negative",
                                  "Does the writer like it, positive or negative"]), text), rng.choice([f"It is {mood}.", f"The review is {mood}.", common.cap(mood) + "."]), \
        f"The words are {'kind' if mood == 'positive' else 'unkind'}, so it is {mood}."


def title(rng, data):
    text, short = fill(rng, *rng.choice(ANNOUNCEMENTS))
    for mark, name in TITLES:
        if mark in text:
            return asked(rng, rng.choice(["Give this text a title", "Find a title for this", "Suggest a title", "What would be a good title for this"]), text), name, f"It is about this: {short}"
    return shorten(rng, data)


def formal(rng, data):
    text, answer = rng.choice(FORMAL)
    x = rng.choice(["report", "bill", "parcel", "list", "key", "letter", "plan", "ticket", "photos", "contract"])
    return asked(rng, rng.choice(["Make this polite", "Rewrite this politely", "Make this more formal", "Rewrite this in a formal way", "Say this nicely", "Make this sound friendlier"]),
                 text.format(x=x)), answer.format(x=x), "I say it politely."


def person(rng, data):
    a = rng.choice(common.FIRST)
    verb = rng.choice([("like", "likes", "tea"), ("play", "plays", "the piano"), ("work", "works", "in a bank"), ("live", "lives", "near the sea"), ("have", "has", "two cats"),
                       ("write", "writes", "letters"), ("want", "wants", "a new bike"), ("sell", "sells", "apples"), ("teach", "teaches", "history")])
    past = {"like": "liked", "play": "played", "work": "worked", "live": "lived", "have": "had", "write": "wrote", "want": "wanted", "sell": "sold", "teach": "taught"}[verb[0]]
    text = f"{a} {verb[1]} {verb[2]}."
    way = rng.choice([("Put this in the past", f"{a} {past} {verb[2]}."), ("Write this in the past tense", f"{a} {past} {verb[2]}."), ("Put this in the future", f"{a} will {verb[0]} {verb[2]}."),
                      ("Make this a question", f"Does {a} {verb[0]} {verb[2]}?"), ("Make this negative", f"{a} does not {verb[0]} {verb[2]}."),
                      ("Turn this into a question", f"Does {a} {verb[0]} {verb[2]}?"), ("Write this as if you were " + a, f"I {verb[0]} {verb[2]}."),
                      ("Say the opposite", f"{a} does not {verb[0]} {verb[2]}.")])
    return asked(rng, way[0], text), way[1], f"I change the verb {verb[1]}."


TASKS = [(20, shorten), (18, list_items), (12, find), (8, count), (10, pick_sentence), (9, replace), (8, correct), (7, order), (4, feeling), (4, title), (5, formal), (6, person)]


def task(rng, data):
    return rng.choices([t for _, t in TASKS], [w for w, _ in TASKS])[0](rng, data)


def dialogue(rng, data):
    user, answer, thought = task(rng, data)
    return common.turns_to_dialogue(rng, [(user, answer)], "given_text", thought)


def dialogues(rng, data, count):
    for _ in range(count):
        yield dialogue(rng, data)


if __name__ == "__main__":
    import pathlib
    import sys
    for one in dialogues(random.Random(1), pathlib.Path(sys.argv[1]), 20):
        print(one["messages"])
