"""Problems of two to four steps: with a thought the steps are written, without one only the answer.

A model of this size cannot add three times in its head, so here a thought is worth something. The thought often goes over its
steps once more ("Wait, ..."): what it had already found out it says again, which thinking control may cut.
Scenes marked by the hash of common.held_out are kept for the tests, and so is every sum of sums.held_out_pair.
"""

from . import common, quantities, steps_scenes, sums

# scene: what is counted | who has it at first | gain | loss | the question. {A} {B} people, {o} the thing, {x} a number.
SCENES = [
    ("stamps|coins|shells|cards|marbles|stickers", "{A} collects {o} and has {x} of them. / {A} owns {x} {o}. / In the box of {A} there are {x} {o}.",
     "{B} gives {him} {x} {o}. / On {his} birthday {he} gets {x} {o}. / {He} finds {x} {o} at the market. / A friend adds {x} {o}.",
     "{He} loses {x} {o}. / {He} trades {x} {o} away. / {x} {o} go to {his} sister. / {He} throws away {x} {o}.",
     "How many {o} does {A} have in the end? / How many {o} are left? / How many {o} has {A} now?", "{A} has {r} {o}."),
    ("passengers|people|travellers", "A {v} starts with {x} {o}. / There are {x} {o} in a {v}.", "At a stop {x} {o} get on. / {x} {o} come in.",
     "At the next stop {x} {o} get off. / {x} {o} leave it.", "How many {o} are in the {v} now? / How many {o} does the {v} carry at the end?", "There are {r} {o} in the {v}."),
    ("euros|dollars|pounds", "{A} has {x} {o} in {his} pocket. / {A} starts the day with {x} {o}. / There are {x} {o} in the savings of {A}.",
     "{He} earns {x} {o}. / {B} pays {him} back {x} {o}. / {He} finds {x} {o} in a coat. / {He} sells a lamp for {x} {o}.",
     "{He} spends {x} {o} on food. / {He} buys a book for {x} {o}. / {He} lends {B} {x} {o}. / The bus costs {him} {x} {o}.",
     "How much money does {A} have now? / How many {o} are left? / How much is left in the end?", "{A} has {r} {o}."),
    ("eggs|apples|pears|oranges|lemons|potatoes", "A farmer has {x} {o}. / There are {x} {o} in the kitchen of {A}. / {A} picked {x} {o}.",
     "{B} brings {x} more. / Another basket has {x} {o}. / In the afternoon {x} {o} are added.", "{x} of them are bad and thrown away. / The family eats {x} {o}. / {x} {o} are sold.",
     "How many {o} are there now? / How many {o} remain?", "There are {r} {o}."),
    ("pages", "{A} has a book and read {x} {o} on Monday. / On the first day {A} reads {x} {o}.", "On the next day {he} reads {x} {o}. / In the evening {he} reads {x} {o} more.",
     "{He} skips back {x} {o}. / {He} forgot {x} {o} and does not count them.", "How many {o} did {A} read? / How many {o} is that in all?", "{A} read {r} {o}."),
    ("litres", "A tank holds {x} {o} of water. / There are {x} {o} in the barrel of {A}.", "Rain adds {x} {o}. / {A} pours in {x} {o}.", "{A} uses {x} {o} for the garden. / {x} {o} leak out.",
     "How many {o} are in it now? / How much water is left?", "There are {r} {o} left."),
    ("books|films|records", "A library has {x} {o} on a shelf. / The shelf of {A} holds {x} {o}.", "{A} puts {x} {o} back. / {x} new {o} arrive.", "Readers take {x} {o}. / {x} {o} are lent out.",
     "How many {o} are on the shelf now? / How many {o} stand there in the end?", "There are {r} {o} on the shelf."),
    ("points", "{A} starts a game with {x} {o}. / After the first round {A} has {x} {o}.", "Then {he} wins {x} {o}. / The next round brings {x} {o}.", "A mistake costs {him} {x} {o}. / {He} loses {x} {o}.",
     "What is the score of {A}? / How many {o} does {A} have?", "{A} has {r} {o}."),
    ("sheep|cows|goats|ducks|hens", "On a farm there are {x} {o}. / {A} keeps {x} {o}.", "In spring {x} {o} are born. / {A} buys {x} {o}.", "{x} {o} run away. / {A} sells {x} {o}.",
     "How many {o} are on the farm now? / How many {o} are there in the end?", "There are {r} {o}."),
    ("chairs|tables|lamps|boxes", "A hall has {x} {o}. / There are {x} {o} in the store room.", "{A} carries in {x} {o}. / A truck brings {x} {o}.", "{x} {o} are broken and taken away. / {B} takes {x} {o}.",
     "How many {o} are there now? / How many {o} does the room have in the end?", "There are {r} {o}."),
    ("minutes", "{A} works for {x} {o}. / The first part of the trip takes {x} {o}.", "Then comes a part of {x} {o}. / After that {he} needs {x} {o} more.", "{x} {o} of it are a break and do not count. / {He} saves {x} {o}.",
     "How many {o} is that? / How long is it in all?", "It is {r} {o}."),
    ("cookies|muffins|rolls|cakes", "A baker makes {x} {o}. / {A} bakes {x} {o}.", "Later {he} bakes {x} more. / {B} brings {x} {o}.", "The guests eat {x} {o}. / {x} {o} burn.",
     "How many {o} are left? / How many {o} are there at the end?", "There are {r} {o} left."),
]
VEHICLES = ["bus", "train", "tram", "ship", "plane", "boat"]
TIMES = ["Then the number doubles.", "Then it becomes {x} times as many.", "After a year there are {x} times as many."]
PLANS = ["I go step by step.", "Let me work it out.", "One step at a time.", "First the start, then each change.", "I write down each step.", "Let me see.", "We count."]
CHECKS = ["Wait, let me check.", "Wait, I check it once more.", "Wait, let me go over it again.", "But let me check that."]
FIRST_LEADS = ["", "First ", "At first ", "To begin with ", "Start: ", "Step one: "]
LEADS = ["", "Then ", "Now ", "Next ", "After that ", "Next step: ", "And then ", "Going on: "]
# What the number of a step does is said before it is done: the number is looked up in the text, and what stands around it there says the sign.
DOES = {"+": ["more", "added", "come to it", "on top"], "-": ["less", "fewer", "go off", "taken away"], "x": ["times", "times that"], "/": ["equal parts", "parts"]}


def apply(value, op, x):
    return {"+": value + x, "-": value - x, "x": value * x, "/": value // x}[op]


def chain(rng, is_held_out):
    """A story in which a number changes two to four times: (question, [(a, op, b, result)], answer sentence)."""
    scenes = common.side(SCENES, is_held_out, "scene", 0.25)
    things, starts, gains, losses, questions, answer = rng.choice(scenes if is_held_out else scenes + steps_scenes.SCENES)
    count = rng.choices([2, 3, 4], [30, 42, 28])[0]
    male = rng.random() < 0.5
    slots = {"A": rng.choice(common.FIRST), "B": rng.choice(common.FIRST), "o": rng.choice(things.split("|")), "v": rng.choice(VEHICLES), "he": "he" if male else "she",
             "He": "He" if male else "She", "him": "him" if male else "her", "his": "his" if male else "her"}
    value = rng.randint(12, 75)
    sentences = [rng.choice(starts.split(" / ")).format(x=value, **slots)]
    steps = []
    for _ in range(count):
        roll = rng.random()
        if roll < 0.12 and value < 40:
            x, op = rng.choice([2, 3]), "x"
            text = TIMES[0] if x == 2 else rng.choice(TIMES[1:]).format(x=x)
        elif (roll < 0.56 and value < 150) or value < 14:
            x, op = rng.randint(6, 48), "+"
            text = rng.choice(gains.split(" / ")).format(x=x, **slots)
        else:
            x, op = rng.randint(5, min(value - 3, 45)), "-"
            text = rng.choice(losses.split(" / ")).format(x=x, **slots)
        result = apply(value, op, x)
        steps.append((value, op, x, result))
        sentences.append(common.cap(text))
        value = result
    sentences.append(rng.choice(questions.split(" / ")).format(**slots))
    return " ".join(sentences), steps, answer.format(r=value, **slots)


def shopping(rng, is_held_out):
    a, b = rng.sample(["apples", "pens", "rolls", "tickets", "cups", "hats", "candles", "pears", "notebooks", "balls", "plants", "books"], 2)
    n, p, m, q = rng.randint(2, 9), rng.randint(2, 9), rng.randint(2, 9), rng.randint(2, 9)
    name = rng.choice(common.FIRST)
    first, second = n * p, m * q
    steps = [(n, "x", p, first), (m, "x", q, second), (first, "+", second, first + second)]
    text = rng.choice([f"{name} buys {n} {a} for {p} euros each and {m} {b} for {q} euros each.", f"One of the {a} costs {p} euros and one of the {b} {q} euros. {name} takes {n} {a} and {m} {b}.",
                       f"At the shop {a} are {p} euros each and {b} {q} euros each. {name} wants {n} {a} and {m} {b}."])
    if rng.random() < 0.5:
        paid = rng.choice([x for x in (50, 100, 200) if x > first + second] or [200])
        steps.append((paid, "-", first + second, paid - first - second))
        return f"{text} {name} pays with {paid} euros. How much change is there?", steps, f"The change is {steps[-1][3]} euros."
    return text + " " + rng.choice(["How much is it in all?", f"How much does {name} pay?", "What is the total?"]), steps, f"The total is {steps[-1][3]} euros."


def packs(rng, is_held_out):
    n, m, x = rng.randint(3, 9), rng.randint(4, 12), rng.randint(5, 20)
    thing, box = rng.choice(["pencils", "eggs", "bottles", "tiles", "bulbs", "cans"]), rng.choice(["boxes", "packs", "crates", "bags"])
    name, total = rng.choice(common.FIRST), n * m
    less = rng.random() < 0.5 and total > x + 2
    steps = [(n, "x", m, total), (total, "-" if less else "+", x, total - x if less else total + x)]
    text = f"{name} has {n} {box} with {m} {thing} each" + (f" and uses {x} {thing}." if less else f" and {x} loose {thing}.")
    value = steps[-1][3]
    question = f"How many {thing} does {name} have?" if not less else f"How many {thing} are left?"
    if rng.random() < 0.4:
        for friends in (2, 3, 4, 5, 6):
            if value % friends == 0:
                steps.append((value, "/", friends, value // friends))
                return f"{text} They are shared among {friends} children. How many does each child get?", steps, f"Each child gets {value // friends} {thing}."
    return f"{text} {question}", steps, f"There are {value} {thing}."


def ages(rng, is_held_out):
    a, b, c = rng.sample(common.FIRST, 3)
    x, y, k = rng.randint(5, 30), rng.randint(2, 15), rng.randint(2, 3)
    older = x + y
    steps = [(x, "+", y, older), (older, "x", k, older * k)] if rng.random() < 0.5 else [(x, "x", k, x * k), (x * k, "+", y, x * k + y)]
    if steps[0][1] == "+":
        text = f"{a} is {x} years old. {b} is {y} years older than {a}. {c} is {'twice' if k == 2 else 'three times'} as old as {b}. How old is {c}?"
    else:
        text = f"{a} is {x} years old. {b} is {'twice' if k == 2 else 'three times'} as old as {a}. {c} is {y} years older than {b}. How old is {c}?"
    if rng.random() < 0.4:
        z = rng.randint(2, 9)
        last = steps[-1][3]
        steps.append((last, "+", z, last + z))
        return text.replace(f"How old is {c}?", f"How old will {c} be in {z} years?"), steps, f"{c} will be {last + z} years old."
    return text, steps, f"{c} is {steps[-1][3]} years old."


def recipe_of_numbers(rng, is_held_out):
    value = rng.randint(5, 40)
    words = [rng.choice(["Start with {}.", "Take the number {}.", "I think of {}.", "Begin with {}."]).format(value)]
    steps = []
    for _ in range(rng.choice([2, 3, 3, 4])):
        op = rng.choice("+-+-x")
        x = rng.randint(2, 4) if op == "x" else rng.randint(3, 40)
        if op == "x" and value > 45:
            op = "+"
        if op == "-" and value - x < 2:
            op = "+"
        result = apply(value, op, x)
        words.append({"+": rng.choice(["Add {}.", "Then add {}.", "Plus {}."]), "-": rng.choice(["Subtract {}.", "Take away {}.", "Then subtract {}."]),
                      "x": rng.choice(["Multiply by {}.", "Then multiply by {}.", "Times {}."])}[op].format(x))
        steps.append((value, op, x, result))
        value = result
    return " ".join(words) + " " + rng.choice(["What do you get?", "What is the result?", "Which number is it now?"]), steps, f"The result is {value}."


EAT = ["eat {x}", "give {x} to my friend", "lose {x}", "sell {x}", "drop {x}", "give away {x}", "throw away {x}", "use {x}"]
GET = ["buy {x} more", "find {x}", "get {x} from my sister", "buy {x}", "pick up {x} more", "my mother gives me {x}", "get {x} as a present"]


def everyday(rng, is_held_out):
    """The small problems people ask to try it out, in the first person and in one breath."""
    thing = rng.choice("apples oranges cookies candies coins pens books balls eggs bananas stickers flowers cards toys carrots pencils".split())
    value = rng.randint(3, 30)
    name = None if rng.random() < 0.6 else rng.choice(common.FIRST)
    text = rng.choice(["I have {x} {o}", "I had {x} {o}", "If I have {x} {o}", "There are {x} {o} in my bag", "Suppose I have {x} {o}", "I start with {x} {o}"]).format(x=value, o=thing)
    steps = []
    for i in range(rng.choice([2, 2, 3])):
        lose = rng.random() < 0.5 and value > 3
        x = rng.randint(1, min(value - 1, 15)) if lose else rng.randint(1, 20)
        text += rng.choice([" and ", ", then ", ", ", ". Then I ", ". I ", " and then "] if i else [" and ", ". I ", ", I ", " and I "])
        event = rng.choice(EAT if lose else GET).format(x="one" if x == 1 and rng.random() < 0.7 else x)
        text += event
        steps.append((value, "-" if lose else "+", x, value - x if lose else value + x))
        value = steps[-1][3]
    text = text.replace("I my mother", "my mother").replace(". my mother", ". My mother")
    question = rng.choice([f"How many {thing} do I have now?", f"How many {thing} do I have left?", "How many do I have now?", "How many are left?", f"how many {thing} do i have?"])
    answer = f"You have {value} {thing}." if value != 1 else f"You have 1 {thing[:-1]}."
    return f"{text}. {question}" if rng.random() < 0.8 else f"{text}, {question[0].lower() + question[1:]}", steps, answer


def tickets(rng, is_held_out):
    """A price, a number and what comes back, in the words of somebody in a shop."""
    thing = rng.choice("ticket|coffee|loaf|book|notebook|cup|ball|flower|ice cream|pen|postcard|sandwich".split("|"))
    many = {"loaf": "loaves", "sandwich": "sandwiches"}.get(thing, thing + "s")
    price, count = rng.randint(2, 12), rng.randint(2, 9)
    total = price * count
    paid = rng.choice([x for x in (20, 50, 60, 80, 100, 150) if x > total] or [200])
    steps = [(count, "x", price, total), (paid, "-", total, paid - total)]
    text = rng.choice([f"One {thing} costs {price} euros. I buy {count} {many} and pay with {paid} euros.", f"I want {count} {many} at {price} euros each and have {paid} euros.",
                       f"A {thing} is {price} dollars. I take {count} and give the man {paid} dollars."])
    if rng.random() < 0.35:
        question = rng.choice([f"How much do {count} {many} cost, and what do I get back?", f"What do they cost together, and how much is left?"])
        return f"{text} {question}", steps, f"They cost {total} together, and you get back {paid - total}."
    return text + " " + rng.choice(["How much do I get back?", "How much change do I get?", "How much is left?"]), steps, f"You get back {paid - total}."


def comparison(rng, is_held_out):
    """Is a sum more or less than a number: one step and a look. Counted as two."""
    a, b, op = rng.randint(20, 99), rng.randint(5, 60), rng.choice("+-")
    if op == "-" and b >= a:
        a, b = b + 20, a
    r = apply(a, op, b)
    c = max(1, r + rng.choice([-9, -4, -2, -1, 1, 2, 3, 8]))
    word = rng.choice(["more", "less", "greater", "smaller"])
    true = r > c if word in ("more", "greater") else r < c
    sign = ">" if r > c else "<"
    return f"Is {a} {op} {b} {word} than {c}?", [(a, op, b, r)], f"{'Yes' if true else 'No'}, {a} {op} {b} = {r}, which is {'more' if r > c else 'less'} than {c}."


KINDS = [(20, everyday), (8, tickets), (45, chain), (14, shopping), (11, packs), (8, ages), (12, recipe_of_numbers)]


def problem(rng, is_held_out=False):
    """(question, steps, answer) without a held-out sum, or with at least one for the tests."""
    while True:
        kind = rng.choices([k for _, k in KINDS], [w for w, _ in KINDS])[0]
        question, steps, answer = kind(rng, is_held_out)
        if min(step[3] for step in steps) < 1:
            continue
        reserved = any(sums.held_out_pair(a, op, b) for a, op, b, _ in steps if op in "+-")
        if reserved == is_held_out:
            return question, steps, answer


def step_text(steps):
    return " ".join(f"{a} {op} {b} = {r}." for a, op, b, r in steps)


def thought(rng, steps):
    """Each step with what its number does, then the result, then often a check. The wording of a step is open and that of the result fixed, so that the
    model's certainty is high where the work is done; and a check that is broken off changes no answer."""
    value = steps[-1][3]
    said = [f"{rng.choice(LEADS if i else FIRST_LEADS)}{b} {rng.choice(DOES[op])}: {a} {op} {b} = {r}." for i, (a, op, b, r) in enumerate(steps)]
    text = f"{rng.choice(PLANS)} {' '.join(said)} That was the last step, so the answer is {value}."
    if rng.random() < 0.74:
        again = steps[:rng.randrange(len(steps))] if rng.random() < 0.12 else steps
        text += f" {rng.choice(CHECKS)} {step_text(again)}" + (f" Yes, {value}." if again == steps else "")
    return text.rstrip()


def dialogue(rng):
    if rng.random() < 0.04:
        question, steps, answer = comparison(rng, False)
        while sums.held_out_pair(*steps[0][:3]):
            question, steps, answer = comparison(rng, False)
        why = f"{step_text(steps)} {answer.split('which is ')[-1].capitalize()}"
        return common.turns_to_dialogue(rng, [(question, answer)], "steps", why)
    question, steps, answer = quantities.problem(rng) if rng.random() < 0.4 else problem(rng)
    value = str(steps[-1][3])
    thinking = rng.random() < 0.62
    if rng.random() < 0.25 and "together" not in answer:
        answer = rng.choice([f"The answer is {value}.", f"It is {value}.", f"{value}."])
    return common.turns_to_dialogue(rng, [(question, answer)], "steps", thought(rng, steps), thinking=thinking)


def dialogues(rng, count):
    for _ in range(count):
        one = dialogue(rng)
        if not any(sums.mentions_held_out(m.get("reasoning_content") or "") for m in one["messages"]):
            yield one
