"""Reasoning dialogues: four data sets turned into thought and answer, and small logic puzzles made by program.

The data sets are gsm8k, llm-adapters-math, strategyqa and cos-e; rows that work out a held-out sum are left out, like
everywhere in the training text. One row in a hundred, and one made puzzle in a hundred, belongs to the held-out split.
"""

from collections import Counter
from pathlib import Path
from typing import Iterator

from nano import chatml
from .arithmetic import weighted
from .number_skills import WORDS, joined, spaced
from .sums import BANKS, SYSTEM_SHARE, THINKING_SHARE, decorate, number_words
from .puzzle import NAMES, SPLITS, SYSTEM_PROMPTS, article, capital, in_held_out, puzzle
from .puzzle_sets import adapter_puzzles, commonsense_puzzles, gsm8k_puzzles, is_clean, set_puzzles, strategy_puzzles


# ---- banks ----------------------------------------------------------------------------------------------------------


def bank_lines(name):
    lines = (BANKS / f"reasoning_{name}.txt").read_text(encoding="utf8").splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def read_categories():
    rows = [[part.strip() for part in line.split("|")] for line in bank_lines("categories")]
    return [(one, many, [word.strip() for word in members.split(",")]) for one, many, members in rows]


def partners(name):
    """Each word of a pair bank that has only one partner, with that partner: the others would be ambiguous."""
    pairs = [tuple(line.split()) for line in bank_lines(name)]
    count = Counter(word for pair in pairs for word in pair)
    return sorted([(a, b) for a, b in pairs if count[a] == 1] + [(b, a) for a, b in pairs if count[b] == 1])


def read_analogies():
    out = []
    for line in bank_lines("analogies"):
        relation, pairs = line.split("|")
        out.append((relation.strip(), [tuple(word.strip() for word in pair.split(":")) for pair in pairs.split(";")]))
    return out


CATEGORIES = read_categories()
OPPOSITES = partners("opposites")
SYNONYMS = partners("synonyms")
RHYMES = [line.split() for line in bank_lines("rhymes")]
ANALOGIES = read_analogies()
EVENTS = [[step.strip() for step in line.split(";")] for line in bank_lines("events")]
SIZES = [[thing.strip() for thing in line.split(";")] for line in bank_lines("sizes")]
# Things that take "a" or "an"; names of countries, days and colors do not.
COUNTABLE = [row for row in CATEGORIES if row[0] in ("fruit", "vegetable", "animal", "bird", "insect", "tool",
                                                     "vehicle", "shape", "tree", "flower",
                                                     "piece of furniture", "musical instrument", "piece of clothing",
                                                     "body part")]


# ---- order and comparison -------------------------------------------------------------------------------------------

RELATIONS = (("taller", "tallest", "shorter", "shortest"), ("older", "oldest", "younger", "youngest"),
             ("faster", "fastest", "slower", "slowest"),
             ("stronger", "strongest", "weaker", "weakest"), ("heavier", "heaviest", "lighter", "lightest"),
             ("richer", "richest", "poorer", "poorest"),
             ("louder", "loudest", "quieter", "quietest"))


def transitive(rng):
    more, most, less, least = rng.choice(RELATIONS)
    people = rng.sample(NAMES, rng.choice((3, 3, 3, 4)))
    facts = [f"{a} is {more} than {b}." if rng.random() < 0.65 else f"{b} is {less} than {a}."
             for a, b in zip(people, people[1:])]
    if rng.random() < 0.4:
        rng.shuffle(facts)
    chain = f"From {most} to {least}: {', '.join(people)}."
    kind = rng.randrange(3)
    if kind == 0:
        top = rng.random() < 0.5
        word, who = (most, people[0]) if top else (least, people[-1])
        return puzzle(" ".join(facts) + f" Who is the {word}?", chain, f"{who} is the {word}.")
    a, b = (people[0], people[-1]) if rng.random() < 0.5 else (people[-1], people[0])
    yes = a == people[0]
    if kind == 1:
        answer = f"Yes, {a} is {more} than {b}." if yes else f"No, {a} is {less} than {b}."
        return puzzle(" ".join(facts) + f" Is {a} {more} than {b}?", chain, answer)
    return puzzle(" ".join(facts) + f" Who is {more}, {a} or {b}?", chain, f"{people[0]} is {more} than {people[-1]}.")


def size_question(rng):
    row = rng.choice(SIZES)
    i, j = sorted(rng.sample(range(len(row)), 2))
    small, big = row[i], row[j]
    more, less = ("longer", "shorter") if "hour" in row else ("bigger", "smaller")
    a, b = rng.sample((small, big), 2)
    thought = f"{capital(article(big))} is {more} than {article(small)}."
    pick = rng.random()
    if pick < 0.4:
        question, answer = f"Which is {more}, {article(a)} or {article(b)}?", thought
    elif pick < 0.7:
        question = f"Which is {less}, {article(a)} or {article(b)}?"
        answer = f"{capital(article(small))} is {less} than {article(big)}."
    else:
        question = f"Is {article(a)} {more} than {article(b)}?"
        verdict, word = ("Yes", more) if a == big else ("No", less)
        answer = f"{verdict}, {article(a)} is {word} than {article(b)}."
    return puzzle(decorate(rng, question), f"I think of their {'length' if 'hour' in row else 'size'}. {thought}",
                  answer)


def queue(rng):
    people = rng.sample(NAMES, rng.choice((3, 4, 5)))
    order = ", ".join(people)
    kind = rng.randrange(4)
    ordinals = ("first", "second", "third", "fourth", "fifth")
    if kind == 0:
        i = rng.randrange(len(people))
        return puzzle(f"{joined(people)} stand in a line in this order. Who is {ordinals[i]}?",
                      f"The order is {order}. Number {i + 1} is {people[i]}.",
                      f"{people[i]} is {ordinals[i]}.")
    if kind == 1:
        return puzzle(f"{joined(people)} stand in a line in this order. Who is last?",
                      f"The order is {order}. The last is {people[-1]}.", f"{people[-1]} is last.")
    if kind == 2:
        i = rng.randrange(len(people) - 1)
        return puzzle(f"From left to right: {order}. Who is directly to the right of {people[i]}?",
                      f"After {people[i]} comes {people[i + 1]}.", f"{people[i + 1]} is to the right of {people[i]}.")
    i = rng.randrange(1, len(people))
    return puzzle(f"From left to right: {order}. Who is directly to the left of {people[i]}?",
                  f"Before {people[i]} comes {people[i - 1]}.",
                  f"{people[i - 1]} is to the left of {people[i]}.")


def event_order(rng):
    steps = rng.choice(EVENTS)
    mixed = rng.sample(steps, len(steps))
    kind = rng.randrange(3)
    if kind == 0:
        question = rng.choice(("Put these steps in order: {s}.", "What is the right order? {s}",
                               "Order these events: {s}.")).format(s="; ".join(mixed))
        answer = f"First {steps[0]}, then {steps[1]}, and last {steps[2]}."
        return puzzle(question, f"You must {steps[0]} before you can {steps[1]}. You {steps[2]} at the end.", answer)
    a, b = sorted(rng.sample(range(3), 2))
    x, y = rng.sample((steps[a], steps[b]), 2)
    if kind == 1:
        return puzzle(rng.choice((f"What comes first: {x} or {y}?", f"What do you do first: {x} or {y}?")),
                      f"You {steps[a]} before you {steps[b]}.",
                      f"First you {steps[a]}.", f"First you {steps[a]}, then you {steps[b]}.")
    return puzzle(rng.choice((f"What do you do last: {', '.join(mixed[:2])} or {mixed[2]}?",
                              f"Which step is the last one: {'; '.join(mixed)}?")),
                  f"The order is: {'; '.join(steps)}.", f"Last you {steps[2]}.")


# ---- logic ----------------------------------------------------------------------------------------------------------

MADE_UP = "blick zorp wug dap fep toma gorp lum nib quib rasp snerd tove vim yark".split()
TRAITS = "green round small heavy soft kind fast loud warm old brave shiny quiet sweet cold tall".split()


def syllogism(rng):
    kind = rng.randrange(5)
    name = rng.choice(NAMES)
    if kind == 0:
        one, many, members = rng.choice([row for row in COUNTABLE
                                         if row[0] in ("animal", "bird", "insect", "tree", "flower", "vehicle",
                                                       "tool")])
        m = rng.choice(members)
        if one in ("animal", "bird", "insect"):
            return puzzle(f"All {plural(m)} are {many}. {name} is {article(m)}. Is {name} {article(one)}?",
                          f"{name} is {article(m)}, and all {plural(m)} are {many}.", f"Yes, {name} is {article(one)}.")
        return puzzle(f"All {plural(m)} are {many}. I have {article(m)}. Do I have {article(one)}?",
                      f"It is {article(m)}, and all {plural(m)} are {many}.", f"Yes, {article(m)} is {article(one)}.")
    x, y, z = rng.sample(MADE_UP, 3)
    trait = rng.choice(TRAITS)
    if kind == 1:
        return puzzle(f"All {x}s are {trait}. {name} is a {x}. Is {name} {trait}?",
                      f"{name} is a {x}, and all {x}s are {trait}.", f"Yes, {name} is {trait}.")
    if kind == 2:
        return puzzle(f"No {x}s are {trait}. {name} is a {x}. Is {name} {trait}?",
                      f"{name} is a {x}, and no {x} is {trait}.", f"No, {name} is not {trait}.")
    if kind == 3:
        return puzzle(f"All {x}s are {y}s. All {y}s are {z}s. Are all {x}s {z}s?",
                      f"Every {x} is a {y}, and every {y} is a {z}.", f"Yes, all {x}s are {z}s.")
    return puzzle(f"All {x}s are {trait}. {name} is {trait}. Is {name} a {x}?",
                  f"Other things can be {trait} too. Being {trait} is not enough.",
                  f"We cannot know. {name} may be {trait} without being a {x}.")


WHEN = (("it rains", "the ground gets wet"), ("it snows", "the school is closed"),
        ("the bell rings", "the class starts"), ("the light is red", "cars stop"),
        ("the sun shines", "we go to the park"), ("the cat is hungry", "it meows"),
        ("the shop is open", "the lamp is on"), ("it is Sunday", "the bank is closed"),
        ("the alarm rings", "the dog barks"), ("the oven is on", "the kitchen is warm"),
        ("the tank is empty", "the car stops"), ("the wind blows", "the flag moves"),
        ("it is cold", "the lake freezes"), ("the baby is tired", "she cries"),
        ("the door is open", "the room is cold"))
NEGATED = {"the ground gets wet": "the ground is not wet", "the school is closed": "the school is not closed",
           "the class starts": "the class has not started",
           "cars stop": "cars do not stop", "we go to the park": "we do not go to the park",
           "it meows": "it does not meow", "the lamp is on": "the lamp is not on",
           "the bank is closed": "the bank is not closed", "the dog barks": "the dog does not bark",
           "the kitchen is warm": "the kitchen is not warm",
           "the car stops": "the car does not stop", "the flag moves": "the flag does not move",
           "the lake freezes": "the lake does not freeze",
           "she cries": "she does not cry", "the room is cold": "the room is not cold"}


def if_then(rng):
    cause, effect = rng.choice(WHEN)
    rule = rng.choice((f"If {cause}, {effect}.", f"When {cause}, {effect}.", f"If {cause}, then {effect}."))
    kind = rng.randrange(3)
    now = rng.choice(("Now", "Right now"))
    if kind == 0:
        return puzzle(f"{rule} {now} {cause}. What follows?", f"The rule says: if {cause}, {effect}. And {cause}.",
                      f"{capital(effect)}.")
    if kind == 1:
        return puzzle(f"{rule} {now} {NEGATED[effect]}. Is it true that {cause}?",
                      f"The rule says: if {cause}, {effect}. But {NEGATED[effect]}.",
                      f"No, because {NEGATED[effect]}.")
    return puzzle(f"{rule} Now we see that {effect}. Must it be true that {cause}?",
                  "There can be another reason. The rule only works in one direction.",
                  f"Not for sure. There can be another reason why {effect}.")


def plural(noun):
    if noun in ("sheep", "salmon"):
        return noun
    if noun in ("fly", "butterfly", "cherry", "strawberry", "daisy", "lily", "city"):
        return noun[:-1] + "ies"
    if noun == "wolf":
        return "wolves"
    return noun + ("es" if noun.endswith(("s", "x", "ch", "sh", "potato")) else "s")


COMPASS = ("north", "east", "south", "west")


def direction(rng):
    kind = rng.randrange(5)
    i = rng.randrange(4)
    here = COMPASS[i]
    if kind == 0:
        side = rng.choice(("right", "left"))
        end = COMPASS[(i + (1 if side == "right" else -1)) % 4]
        return puzzle(rng.choice((f"I face {here} and turn {side}. Which way do I face now?",
                                  f"You are facing {here}. You turn {side}. Where are you facing?")),
                      f"Going right the order is north, east, south, west. {capital(side)} of {here} is {end}.",
                      f"The new direction is {end}.")
    if kind == 1:
        end = COMPASS[(i + 2) % 4]
        thought = f"The opposite pairs are north and south, east and west. So {here} becomes {end}."
        if rng.random() < 0.4:
            question = rng.choice((f"I face {here} and turn around. Which way do I face?",
                                   f"You look {here} and turn around. Where do you look?"))
            return puzzle(question, thought, f"The new direction is {end}.")
        question = rng.choice((f"What is the opposite of {here}?", f"Which direction is opposite to {here}?"))
        return puzzle(question, thought, f"The opposite of {here} is {end}.")
    if kind == 2:
        a, b = rng.sample(NAMES, 2)
        end = COMPASS[(i + 2) % 4]
        return puzzle(f"{a}'s house is {here} of {b}'s house. Where is {b}'s house from {a}'s house?",
                      f"The opposite of {here} is {end}.",
                      f"{b}'s house is {end} of {a}'s house.")
    if kind == 3:
        a, b = rng.sample(("cup", "book", "lamp", "ball", "key", "box", "plate", "hat", "pen", "phone"), 2)
        near, far = rng.choice((("left of", "right of"), ("right of", "left of"), ("above", "below"),
                                ("below", "above"), ("behind", "in front of"), ("in front of", "behind")))
        side = ("to the " if "left" in near or "right" in near else "")
        return puzzle(f"The {a} is {side}{near} the {b}. Where is the {b}?", f"The opposite of {near} is {far}.",
                      f"The {b} is {side}{far} the {a}.")
    n, m = rng.randint(2, 9), rng.randint(2, 9)
    back = COMPASS[(i + 2) % 4]
    if n == m:
        return puzzle(f"I walk {n} steps {here} and then {m} steps {back}. Where am I?", f"{n} - {m} = 0 steps.",
                      "You are back where you started.")
    left, way = abs(n - m), here if n > m else back
    steps = f"{left} step{'s' * (left > 1)}"
    return puzzle(f"I walk {n} steps {here} and then {m} steps {back}. How far am I from the start?",
                  f"{max(n, m)} - {min(n, m)} = {left}.",
                  f"You are {steps} {way} of the start.")


THINGS_MOVED = "ball book key cup hat coin apple letter toy pen phone ring".split()
PLACES_IN_HOUSE = "kitchen garden bedroom bathroom office hall garage cellar".split()


def tracking(rng):
    a, b, c = rng.sample(NAMES, 3)
    thing = rng.choice(THINGS_MOVED)
    rooms = rng.sample(PLACES_IN_HOUSE, 3)
    kind = rng.randrange(4)
    if kind == 0:
        return puzzle(f"{a} has the {thing}. {a} gives the {thing} to {b}. {b} gives it to {c}. Who has the {thing}?",
                      f"The {thing} goes from {a} to {b} to {c}.",
                      f"{c} has the {thing}.")
    if kind == 1:
        return puzzle(f"{a} takes the {thing} to the {rooms[0]}. Then {a} carries it to the {rooms[1]} and leaves it "
                      f"there. Where is the {thing}?",
                      f"The last place is the {rooms[1]}.", f"The {thing} is in the {rooms[1]}.")
    if kind == 2:
        return puzzle(f"{a} is in the {rooms[0]}. {b} is in the {rooms[1]}. {a} goes to the {rooms[2]}. Where is {a}?",
                      f"{a} was in the {rooms[0]} and went to the {rooms[2]}.",
                      f"{a} is in the {rooms[2]}.")
    box = rng.choice(("box", "bag", "basket", "drawer"))
    return puzzle(f"The {thing} is in the {box}. The {box} is in the {rooms[0]}. Where is the {thing}?",
                  f"The {box} is in the {rooms[0]}, and the {thing} is in the {box}.",
                  f"The {thing} is in the {box} in the {rooms[0]}.")


# ---- kinds of things ------------------------------------------------------------------------------------------------


# Kinds that share members or names, so that a question about both could have two right answers.
CONFUSABLE = {frozenset(pair.split("/")) for pair in (
    "animal/bird", "animal/fish", "animal/insect", "bird/fish", "bird/insect", "fish/insect", "flower/tree",
    "fruit/tree", "fruit/color",
    "metal/color", "flower/color", "fruit/vegetable", "month/season", "drink/fruit")}


def two_categories(rng):
    while True:
        first, second = rng.sample(CATEGORIES, 2)
        if frozenset((first[0], second[0])) not in CONFUSABLE:
            return first, second


def odd_one_out(rng):
    (one, many, members), (other, _, strangers) = two_categories(rng)
    group = rng.sample(members, 3)
    odd = rng.choice([word for word in strangers if word not in members])
    listing = group + [odd]
    rng.shuffle(listing)
    question = rng.choice(("Which word does not belong: {s}?", "Find the odd one out: {s}.",
                           "Which is the odd one out: {s}?", "Which one is different? {s}",
                           "One of these does not fit: {s}. Which one?")).format(s=", ".join(listing))
    why = f"{capital(joined(group))} are {many}."
    mark = article(other)
    if other in ("feeling", "fish") or odd in ("football", "swimming", "water", "milk"):
        mark = "not " + article(one)
    return puzzle(question, f"{why} {capital(odd)} is {mark}.", f"{capital(odd)} does not belong.",
                  f"{capital(odd)} does not belong. The others are {many}.")


NEAR_KINDS = (("fruit", "vegetable"), ("bird", "insect"), ("tree", "flower"), ("tool", "musical instrument"),
              ("piece of furniture", "vehicle"),
              ("piece of clothing", "body part"), ("insect", "bird"), ("vegetable", "fruit"), ("bird", "fruit"),
              ("insect", "tree"))


def category_yes_no(rng):
    table = {row[0]: row for row in COUNTABLE}
    one, other = rng.choice(NEAR_KINDS) if rng.random() < 0.5 else rng.sample(sorted(table), 2)
    if rng.random() < 0.5 or frozenset((one, other)) in (frozenset(("animal", "bird")),
                                                         frozenset(("animal", "insect"))):
        word = rng.choice(table[one][2])
        return puzzle(decorate(rng, f"Is {article(word)} {article(one)}?"),
                      f"{capital(article(word))} is {article(one)}.", f"Yes, {article(word)} is {article(one)}.")
    word = rng.choice(table[other][2])
    return puzzle(decorate(rng, f"Is {article(word)} {article(one)}?"),
                  f"{capital(article(word))} is {article(other)}, not {article(one)}.",
                  f"No, {article(word)} is {article(other)}.")


def category_name(rng):
    one, many, members = rng.choice(CATEGORIES)
    kind = rng.randrange(3)
    if kind == 0:
        group = rng.sample(members, min(len(members), rng.randint(3, 4)))
        question = rng.choice(("What do {s} have in common?", "What kind of things are {s}?",
                               "What are {s}?")).format(s=joined(group))
        return puzzle(question, f"I look for one word for {joined(group)}: {many}.", f"They are all {many}.")
    if kind == 1:
        n = rng.randint(2, min(4, len(members) - 1))
        group = rng.sample(members, n)
        question = rng.choice((f"Name {number_words(n)} {many}.", f"Give me {n} {many}.",
                               f"Can you list {number_words(n)} {many}?", f"Tell me {n} {many}."))
        return puzzle(question, f"I need {n} {many}: {joined(group)}.", f"{capital(joined(group))}.")
    (one, many, members), (_, _, strangers) = two_categories(rng)
    word = rng.choice(members)
    listing = [word] + rng.sample([w for w in strangers if w not in members], 2)
    rng.shuffle(listing)
    return puzzle(f"Which of these is {article(one)}: {joined(listing, 'or')}?",
                  f"{capital(word)} is {article(one)}. The other two are not.",
                  f"{capital(word)} is {article(one)}.")


def count_kind(rng):
    (_, many, members), (_, _, strangers) = two_categories(rng)
    n, k = rng.randint(1, min(4, len(members))), rng.randint(1, 3)
    chosen = rng.sample(members, n)
    listing = chosen + rng.sample([w for w in strangers if w not in members], k)
    rng.shuffle(listing)
    chosen = [word for word in listing if word in chosen]
    are = f"There {'is' if n == 1 else 'are'} {n}"
    question = rng.choice(("How many {m} are in this list: {s}?", "Count the {m}: {s}.",
                           "How many of these are {m}: {s}?")).format(m=many, s=", ".join(listing))
    return puzzle(question, f"The {many} are: {', '.join(chosen)}. That is {n}." if n > 1
                  else f"I see only {chosen[0]}. That is 1.", f"{are}: {joined(chosen)}.")


def word_pair(rng):
    word, other = rng.choice(OPPOSITES)
    if rng.random() < 0.6:
        question = rng.choice(('What is the opposite of "{w}"?', "What is the opposite of {w}?",
                               "Give me the opposite of {w}.", "What's the opposite of {w}?",
                               "Tell me a word that means the opposite of {w}.", "Which word is the opposite of {w}?",
                               "antonym of {w}?"))
        return puzzle(question.format(w=word), f"{capital(word)} and {other} are opposites.",
                      f"The opposite of {word} is {other}.")
    word, other = rng.choice(SYNONYMS)
    question = rng.choice(('What is another word for "{w}"?', "What is another word for {w}?",
                           "Give me a synonym for {w}.", "Which word means the same as {w}?",
                           "Tell me a word that means {w}.", "What is a synonym of {w}?"))
    return puzzle(question.format(w=word), f"{capital(word)} means about the same as {other}.",
                  f"Another word for {word} is {other}.")


def analogy(rng):
    relation, pairs = rng.choice(ANALOGIES)
    (a, b), (c, d) = rng.sample(pairs, 2)
    question = rng.choice(("{a} is to {b} as {c} is to what?", "{a} is to {b} as {c} is to ...",
                           "Complete: {a} is to {b} as {c} is to ___.",
                           "If {a} goes with {b}, what goes with {c}?", "{a} : {b} = {c} : ?")).format(a=a, b=b, c=c)
    return puzzle(capital(question), f"{a} : {b}. {relation} For {c} that is {d}.",
                  f"{capital(a)} is to {b} as {c} is to {d}.")


# ---- letters --------------------------------------------------------------------------------------------------------

ORDINALS = ("first", "second", "third", "fourth", "fifth")
ALPHABET = "abcdefghijklmnopqrstuvwxyz"


def spelling(rng):
    word = rng.choice(WORDS)
    kind = rng.randrange(8)
    letters = spaced(word)
    if kind <= 1:
        dashes = "-".join(word)
        question = rng.choice(("Spell the word {w}.", 'How do you spell "{w}"?', "Spell {w}.",
                               "Can you spell {w} for me?", "How is {w} spelled?")).format(w=word)
        return puzzle(question, f"I go letter by letter through {word}.", f"{capital(word)} is spelled {dashes}.")
    if kind == 2:
        return puzzle(rng.choice(('What is the first letter of "{w}"?', "What letter does {w} start with?",
                                  "Which letter does the word {w} begin with?")).format(w=word),
                      f"The letters are {letters}. The first is {word[0]}.",
                      f"The first letter of {word} is {word[0]}.")
    if kind == 3:
        return puzzle(rng.choice(('What is the last letter of "{w}"?', "What letter does {w} end with?",
                                  "Which letter is last in the word {w}?")).format(w=word),
                      f"The letters are {letters}. The last is {word[-1]}.",
                      f"The last letter of {word} is {word[-1]}.")
    if kind == 4:
        i = rng.randrange(min(len(word), 5))
        return puzzle(f"What is the {ORDINALS[i]} letter of {word}?",
                      f"The letters are {letters}. The {ORDINALS[i]} is {word[i]}.",
                      f"The {ORDINALS[i]} letter of {word} is {word[i]}.")
    if kind == 5:
        word = rng.choice([w for w in WORDS if len(w) <= 5])
        back = word[::-1]
        question = rng.choice(('Reverse the word "{w}".', "Spell {w} backwards.", "Write {w} backwards.",
                               "What is {w} backwards?")).format(w=word)
        return puzzle(question, f"The letters are {spaced(word)}. From the end: {spaced(back)}.",
                      f"{capital(word)} backwards is {back}.",
                      f"{spaced(word)} becomes {spaced(back)}: {back}.")
    if kind == 6:
        vowels = [c for c in word if c in "aeiou"]
        listing = ", ".join(vowels) if vowels else "none"
        are = f"{word} has {len(vowels)} vowel{'s' * (len(vowels) != 1)}" + (f": {joined(vowels)}." if vowels else ".")
        return puzzle(rng.choice((f"How many vowels are in {word}?", f"Count the vowels in the word {word}.",
                                  f"Which vowels are in {word}?")),
                      f"The letters are {letters}. The vowels are {listing}.", capital(are))
    i = rng.randrange(1, 25)
    c = ALPHABET[i]
    if rng.random() < 0.5:
        return puzzle(rng.choice((f"Which letter comes after {c} in the alphabet?",
                                  f"What comes after {c.upper()} in the alphabet?")),
                                  f"In order: {ALPHABET[i - 1]}, {c}, {ALPHABET[i + 1]}.",
                      f"{ALPHABET[i + 1].upper()} comes after {c.upper()}.")
    return puzzle(rng.choice((f"Which letter comes before {c} in the alphabet?",
                              f"What comes before {c.upper()} in the alphabet?")),
                              f"In order: {ALPHABET[i - 1]}, {c}, {ALPHABET[i + 1]}.",
                  f"{ALPHABET[i - 1].upper()} comes before {c.upper()}.")


def alphabetical(rng):
    words = rng.sample(WORDS, rng.randint(3, 5))
    if len({word[0] for word in words}) < len(words):
        return alphabetical(rng)
    ordered = sorted(words)
    if rng.random() < 0.3:
        a, b = words[:2]
        return puzzle(f"Which word comes first in the dictionary, {a} or {b}?",
                      f"{capital(a)} starts with {a[0]}, {b} starts with {b[0]}. {min(a, b)[0].upper()} comes first.",
                      f"{capital(min(a, b))} comes first.")
    question = rng.choice(("Sort these words alphabetically: {s}.", "Put these words in alphabetical order: {s}.",
                           "Sort in ABC order: {s}", "Can you sort these words from A to Z? {s}"))
    return puzzle(question.format(s=", ".join(words)),
                  f"The first letters in order are {', '.join(word[0] for word in ordered)}.", ", ".join(ordered) + ".")


def rhyme(rng):
    group = rng.choice(RHYMES)
    a, b = rng.sample(group, 2)
    if rng.random() < 0.5:
        question = rng.choice(("What rhymes with {w}?", "Give me a word that rhymes with {w}.",
                               'Which word rhymes with "{w}"?', "Tell me a rhyme for {w}."))
        return puzzle(question.format(w=a), f"{capital(a)} and {b} end with the same sound.",
                      f"{capital(b)} rhymes with {a}.")
    other = rng.choice(rng.choice([row for row in RHYMES if row is not group]))
    if rng.random() < 0.5:
        return puzzle(f"Do {a} and {b} rhyme?", f"{capital(a)} and {b} end with the same sound.",
                      f"Yes, {a} and {b} rhyme.")
    return puzzle(f"Do {a} and {other} rhyme?", f"{capital(a)} and {other} end with different sounds.",
                  f"No, {a} and {other} do not rhyme.")


def repetition(rng):
    word, n = rng.choice(WORDS), rng.randint(2, 5)
    question = rng.choice((f'Say "{word}" {n} times.', f"Write the word {word} {number_words(n)} times.",
                           f"Repeat {word} {n} times."))
    return puzzle(question, f"I write {word} {n} times.", " ".join([word] * n))


def list_lookup(rng):
    words = rng.sample(WORDS, rng.randint(3, 6))
    listing = ", ".join(words)
    kind = rng.randrange(4)
    if kind == 0:
        i = rng.randrange(min(5, len(words)))
        return puzzle(f"What is the {ORDINALS[i]} word in this list: {listing}?",
                      f"Number {i + 1} in the list is {words[i]}.", f"The {ORDINALS[i]} word is {words[i]}.")
    if kind == 1:
        return puzzle(f"What is the last word in this list: {listing}?", f"The list ends with {words[-1]}.",
                      f"The last word is {words[-1]}.")
    if kind == 2:
        present = rng.random() < 0.5
        word = rng.choice(words if present else [w for w in WORDS if w not in words])
        answer = f"Yes, {word} is in the list." if present else f"No, {word} is not in the list."
        return puzzle(f"Is the word {word} in this list? {listing}", f"I read the list: {listing}.", answer)
    longest = max(words, key=len)
    if [len(w) for w in words].count(len(longest)) > 1:
        return list_lookup(rng)
    return puzzle(f"Which is the longest word: {joined(words, 'or')}?",
                  "I count the letters: " + ", ".join(f"{w} {len(w)}" for w in words) + ".",
                  f"The longest word is {longest}.")


PUZZLES = ((10, transitive), (4, size_question), (4, queue), (4, event_order), (6, syllogism), (4, if_then),
           (6, direction), (6, tracking), (7, odd_one_out),
           (6, category_yes_no), (6, category_name), (5, count_kind), (8, word_pair), (6, analogy), (9, spelling),
           (5, alphabetical), (3, rhyme),
           (1, repetition), (4, list_lookup))


# ---- dialogues ------------------------------------------------------------------------------------------------------

SETS = ((20, gsm8k_puzzles), (6, adapter_puzzles), (6, strategy_puzzles), (6, commonsense_puzzles))
PUZZLE_WEIGHT = 62
CONVERSATION_SHARE = 0.08


def made_puzzle(rng, split):
    while True:
        one = weighted(rng, PUZZLES)(rng)
        if in_held_out(one.question) == (split == "held_out") and is_clean(one):
            return one


def shuffled_forever(rng, rows):
    """Every row once in random order, then again in another order, without end."""
    while rows:
        yield from rng.sample(rows, len(rows))


def assemble(rng, turns):
    thinking = rng.random() < THINKING_SHARE
    messages = [{"role": "system", "content": rng.choice(SYSTEM_PROMPTS)}] if rng.random() < SYSTEM_SHARE else []
    for one in turns:
        messages += [{"role": "user", "content": one.question}, {"role": "assistant", "content": one.plain}]
    if thinking:
        messages[-1] = {"role": "assistant", "reasoning_content": turns[-1].thought, "content": turns[-1].answer}
    return chatml.check({"messages": messages, "thinking": thinking, "domain": "reasoning"})


def dialogues(rng, data: Path, split: str, count: int) -> Iterator[dict]:
    """count reasoning dialogues of a split ("train" or "held_out"): data-set rows and made puzzles, mixed by weight."""
    if split not in SPLITS:
        raise ValueError(f"split {split!r}: expected train or held_out")
    sources = [(PUZZLE_WEIGHT, None)]
    for weight, make in SETS:
        rows = set_puzzles(make, data, split)
        if rows:
            sources.append((weight, shuffled_forever(rng, rows)))
    for _ in range(count):
        source = weighted(rng, sources)
        if source is not None:
            yield assemble(rng, [next(source)])
        elif rng.random() < CONVERSATION_SHARE:
            yield assemble(rng, [made_puzzle(rng, split) for _ in range(rng.randint(2, 3))])
        else:
            yield assemble(rng, [made_puzzle(rng, split)])
