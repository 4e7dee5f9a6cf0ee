"""Questions that only make sense after what was said: pronouns, "and of Spain?", "why?", "add 5 to that", "shorter, please"."""

import functools

from . import common, frames, given_text, sums, talk, word_problems

# subject; what is asked of it: (question, answer) pairs whose later questions say "it", "he" or "they".
SUBJECTS = [
    ("elephant", [("What is an elephant?", "An elephant is a large grey animal with a trunk."), ("What does it eat?", "It eats grass, leaves and fruit."), ("Where does it live?", "It lives in Africa and Asia."), ("Is it dangerous?", "It can be dangerous when it is angry.")]),
    ("penguin", [("What is a penguin?", "A penguin is a bird that cannot fly but swims very well."), ("Where does it live?", "Most penguins live in the cold south of the world."), ("What does it eat?", "It eats fish."), ("Can it fly?", "No, it cannot fly.")]),
    ("bee", [("What do bees make?", "Bees make honey."), ("How do they make it?", "They collect nectar from flowers and turn it into honey in the hive."), ("Do they sting?", "Yes, bees can sting when they feel in danger.")]),
    ("moon", [("What is the moon?", "The moon is a ball of rock that goes around the Earth."), ("How far away is it?", "It is about 384,000 kilometres away."), ("Can people live there?", "No, there is no air on the moon."), ("Does it shine?", "It reflects the light of the sun.")]),
    ("sun", [("What is the sun?", "The sun is a star."), ("How hot is it?", "Its surface is about 5,500 degrees hot."), ("Why does it shine?", "It shines because hydrogen turns into helium inside it."), ("How old is it?", "It is about 4.6 billion years old.")]),
    ("Einstein", [("Who was Einstein?", "Albert Einstein was a physicist who found the theory of relativity."), ("Where was he born?", "He was born in Ulm in Germany."), ("When did he die?", "He died in 1955."), ("What is he famous for?", "He is famous for the theory of relativity.")]),
    ("Mozart", [("Who was Mozart?", "Wolfgang Amadeus Mozart was a composer from Austria."), ("Where was he born?", "He was born in Salzburg."), ("What did he write?", "He wrote operas, concertos and symphonies.")]),
    ("Marie Curie", [("Who was Marie Curie?", "Marie Curie was a scientist who studied radioactivity."), ("Where was she born?", "She was born in Warsaw in Poland."), ("What did she discover?", "She discovered radium and polonium.")]),
    ("Shakespeare", [("Who was Shakespeare?", "William Shakespeare was an English writer of plays and poems."), ("What did he write?", "He wrote Hamlet, Macbeth, and Romeo and Juliet."), ("When did he live?", "He lived from 1564 to 1616.")]),
    ("water", [("What is water made of?", "Water is made of hydrogen and oxygen."), ("When does it boil?", "It boils at 100 degrees Celsius."), ("And when does it freeze?", "It freezes at 0 degrees Celsius."), ("Why is it important?", "All living things need water.")]),
    ("Python", [("What is Python?", "Python is a programming language that is easy to read."), ("Who made it?", "Guido van Rossum made it."), ("Is it hard to learn?", "No, it is one of the easier languages to learn.")]),
    ("Paris", [("Tell me about Paris.", "Paris is the capital of France and lies on the river Seine."), ("What can I see there?", "You can see the Eiffel Tower and the Louvre."), ("Which language do they speak there?", "People there speak French.")]),
    ("spider", [("How many legs does a spider have?", "A spider has eight legs."), ("And an ant?", "An ant has six legs."), ("And a dog?", "A dog has four legs."), ("What does it eat?", "A dog eats meat and dog food.")]),
    ("rain", [("Why does it rain?", "Water rises as vapour, cools down in the clouds and falls as drops."), ("And why does it snow?", "When the air is cold enough, the water freezes and falls as snow.")]),
    ("tree", [("What do trees need?", "Trees need water, light and air."), ("Why do they lose their leaves?", "They lose their leaves to save water in the cold season."), ("How old can they get?", "Some trees live for thousands of years.")]),
]
WHY = [("Is the sky blue?", "Yes, the sky is blue on a clear day.", "Because the air scatters blue light more than red light."), ("Is smoking healthy?", "No, smoking is bad for you.", "Because the smoke harms the lungs and the heart."),
       ("Should I drink water?", "Yes, you should drink enough water every day.", "Because your body loses water and needs it to work."), ("Do cats like water?", "Most cats do not like water.", "Because wet fur is heavy and cold for them."),
       ("Should I brush my teeth?", "Yes, brush your teeth twice a day.", "Because food between the teeth feeds bacteria that make holes."), ("Is ice lighter than water?", "Yes, ice floats on water.", "Because water takes more room when it freezes."),
       ("Do plants need light?", "Yes, plants need light.", "Because they make their food from light, water and air."), ("Should I wear a helmet?", "Yes, wear a helmet on a bicycle.", "Because it protects your head when you fall."),
       ("Is sleep important?", "Yes, sleep is very important.", "Because the body and the brain rest and repair themselves while you sleep."), ("Do birds fly south in winter?", "Many birds fly south in winter.", "Because there is more food and it is warmer there."),
       ("Is a whale a fish?", "No, a whale is a mammal.", "Because it breathes air and feeds its young with milk."), ("Should I eat vegetables?", "Yes, vegetables are good for you.", "Because they have vitamins and little fat."),
       ("Is a tomato a fruit?", "Yes, for a botanist a tomato is a fruit.", "Because it grows from a flower and has seeds."), ("Can we breathe on the moon?", "No, we cannot breathe on the moon.", "Because there is no air there.")]
WHY_ASKED = ["Why?", "Why is that?", "why", "And why?", "How come?", "Can you tell me why?", "What is the reason?"]
SHORTER = ["Shorter, please.", "Can you make it shorter?", "Make it shorter.", "Too long. Shorter please", "Say it in one sentence.", "In short?", "shorter", "Can you shorten that?", "Give me the short version."]
AGAIN = ["Can you repeat that?", "Say that again, please.", "What did you say?", "Once more, please.", "Again?"]
AND_OF = ["And of {}?", "And {}?", "What about {}?", "And for {}?", "And that of {}?", "How about {}?", "Now {}.", "And the one of {}?", "what about {}"]
THANKS = ["", "", "", "Thanks. ", "Ok. ", "Good. ", "I see. ", "Great, "]


@functools.cache
def countries(data):
    """(country, capital, continent) of the countries people ask about; those that everybody knows come more often."""
    from .countries import WELL_KNOWN, read_countries
    found = []
    for name, info in read_countries(data).items():
        if info["capital"] and name.isascii() and info["capital"].isascii() and len(name.split()) <= 2:
            found += [(name, info["capital"], info.get("continent"))] * (4 if name in WELL_KNOWN else 1)
    return found


def of_countries(rng, data):
    chosen = []
    while len(chosen) < 2 or (len(chosen) == 2 and rng.random() < 0.3):
        one = rng.choice(countries(data))
        if one not in chosen:
            chosen.append(one)
    by_continent = all(c[2] for c in chosen) and rng.random() < 0.25
    turns = []
    for i, (country, capital, continent) in enumerate(chosen):
        if i == 0:
            question = rng.choice([f"Which continent is {country} in?", f"On which continent is {country}?"]) if by_continent else rng.choice(
                [f"What is the capital of {country}?", f"capital of {country}?", f"Which city is the capital of {country}?", f"Do you know the capital of {country}?"])
        else:
            question = rng.choice(THANKS) + rng.choice(AND_OF).format(country)
        turns.append((question, f"{country} is in {continent}." if by_continent else rng.choice([f"The capital of {country} is {capital}.", f"The capital of {country} is {capital}.", f"It is {capital}."])))
    last = chosen[-1]
    return turns, f"The question is still about the {'continent' if by_continent else 'capital'}, now of {last[0]}. It is {last[2] if by_continent else last[1]}."


def of_subject(rng, data):
    _, pairs = rng.choice(SUBJECTS)
    chosen = [pairs[0]] + rng.sample(pairs[1:], rng.randint(1, min(2, len(pairs) - 1)))
    return [(rng.choice(THANKS if i else [""]) + q, a) for i, (q, a) in enumerate(chosen)], "The user still speaks of the same thing."


def why(rng, data):
    question, answer, reason = rng.choice(WHY)
    return [(question, answer), (rng.choice(WHY_ASKED), reason)], "The user asks for the reason of what I said."


def on_number(rng, data):
    """A sum, then changes of its result."""
    while True:
        a, b = rng.randint(3, 60), rng.randint(3, 60)
        facts = [(a, "+", b)]
        value = a + b
        turns = [(rng.choice(["What is {a} + {b}?", "{a} plus {b}?", "Add {a} and {b}.", "How much is {a} + {b}?", "{a}+{b}"]).format(a=a, b=b), f"{a} + {b} = {value}.")]
        for _ in range(rng.randint(1, 3)):
            kind, x = rng.choice("+-x"), rng.randint(2, 20)
            if kind == "x":
                x = rng.choice([2, 2, 3])
                text = {2: rng.choice(["Double that.", "Now times 2.", "Multiply that by 2.", "and twice as much?"]), 3: rng.choice(["Multiply it by 3.", "Now times 3."])}[x]
                result = value * x
            elif kind == "+":
                text, result = rng.choice(["Add {} to that.", "Now add {}.", "Plus {}?", "And {} more?", "add {} to it", "What if I add {}?", "Now add {} to the result."]).format(x), value + x
            else:
                if x >= value:
                    continue
                text, result = rng.choice(["Subtract {} from that.", "Take away {}.", "Minus {}?", "and minus {}?", "Now take {} away from the result.", "Subtract {}."]).format(x), value - x
            facts.append((value, kind, x))
            turns.append((text, f"{value} {kind} {x} = {result}."))
            value = result
        if not any(f[1] in "+-" and sums.held_out_pair(*f) for f in facts):
            return turns, f"The last result was {facts[-1][0]}. {turns[-1][1]}"


def shorter(rng, data):
    """A text or an explanation, then the same in short."""
    if rng.random() < 0.5:
        text, short = given_text.fill(rng, *rng.choice(given_text.ANNOUNCEMENTS))
        topic = rng.choice(["Write a short news item.", "Tell me a little story.", "Write me a short text.", "Give me an example text."])
        return [(topic, text), (rng.choice(SHORTER), short)], "I say the same in fewer words."
    intents = [pair for category in ("explain", "about") for pair in talk.bank().get(category, [])]
    asked, answers = rng.choice(intents)
    answer = max(answers, key=len)
    first = answer.split(". ")[0].rstrip(".") + "."
    if first == answer:
        return why(rng, data)
    return [(rng.choice(asked), answer), (rng.choice(SHORTER), first)], "I keep the first sentence."


def again(rng, data):
    fact = frames.fact(rng)
    return [(f"{fact.statement} {fact.question}", fact.answer), (rng.choice(AGAIN), rng.choice([fact.answer, f"I said: {fact.answer}"]))], "I say it again."


def about_fact(rng, data):
    """Facts about somebody, then a question with a pronoun."""
    facts = [f for f in frames.facts_of(rng, 3, False, True) if f.frame.kind == "person"]
    if len(facts) < 2:
        return of_countries(rng, data)
    he = rng.choice(["he", "she"])
    name = facts[0].entity
    turns = [(" ".join(f.statement for f in facts) + " " + facts[0].question, facts[0].answer)]
    question = facts[1].question.replace(f"of {name}", f"of {'him' if he == 'he' else 'her'}").replace(name, he)
    turns.append((question, facts[1].answer))
    return turns, f'"{he}" is {name}. It says: "{facts[1].statement}"'


def one_more(rng, data):
    """Another one of the same kind."""
    kind, items = rng.choice([("fruit", "an apple|a banana|a pear|a plum|a cherry|a lemon"), ("animal", "a dog|a horse|a fox|an owl|a whale|a frog"), ("color", "red|blue|green|yellow|purple|brown"),
                              ("country", "France|Japan|Brazil|Kenya|Canada|Norway"), ("sport", "football|tennis|swimming|chess boxing|cycling|rowing"), ("planet", "Mars|Venus|Jupiter|Saturn|Mercury|Neptune"),
                              ("vegetable", "a carrot|an onion|a potato|a leek|a bean|a cucumber"), ("word that rhymes with cat", "hat|bat|mat|rat|sat|fat")])
    chosen = rng.sample(items.split("|"), 3)
    first = rng.choice([f"Name {common.an(kind)}.", f"Tell me {common.an(kind)}.", f"Give me {common.an(kind)}."])
    turns = [(first, common.cap(chosen[0]) + ".")]
    for item in chosen[1:rng.choice([2, 3])]:
        turns.append((rng.choice(["Another one.", "One more, please.", "And another?", "Give me another one.", "another", "Name another one."]), common.cap(item) + "."))
    return turns, f"Another {kind}, not the same."


def changed_problem(rng, data):
    problem = word_problems.word_problem(rng)
    from .arithmetic import any_held_out
    while any_held_out(problem.facts):
        problem = word_problems.word_problem(rng)
    a, op, b = problem.facts[-1]
    value = word_problems.calculate(a, op, b)
    x = rng.randint(2, 15)
    while sums.held_out_pair(value, "+", x):
        x = rng.randint(1, 15)
    return [(problem.question, problem.plain), (rng.choice(["And with {} more?", "What if there are {} more?", "And {} more than that?", "Add {} to that."]).format(x), f"{value} + {x} = {value + x}.")], \
        f"The result was {value}. {value} + {x} = {value + x}."


KINDS = [(20, of_countries), (16, of_subject), (10, why), (16, on_number), (14, shorter), (5, again), (9, about_fact), (6, one_more), (4, changed_problem)]


def dialogues(rng, data, count):
    for _ in range(count):
        turns, thought = rng.choices([k for _, k in KINDS], [w for w, _ in KINDS])[0](rng, data)
        yield common.turns_to_dialogue(rng, turns, "follow_ups", thought)
