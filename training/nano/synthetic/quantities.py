"""Problems of one to four steps as people put them: journeys, wages, seats, savings, recipes, what was there before.

steps.py has few scenes, and a model that was trained on these alone takes the two numbers that stand nearest and adds them. Here what has to be
done follows from the words, some numbers do not matter, and small ones may be written out. For training alone: the tests ask the scenes of steps.py.
"""

from . import common, sums

THINGS = "apples|books|pens|cards|shells|marbles|buttons|stickers|plates|chairs|roses|photos|tickets|bottles|sweets|pebbles|balls|candles|cups|keys|nuts|tiles|toys|coins|postcards|ribbons".split("|")
GOODS = [tuple(line.split("/")) for line in "coffee/coffees|cake/cakes|pizza/pizzas|juice/juices|sandwich/sandwiches|shirt/shirts|book/books|ticket/tickets|plant/plants|mug/mugs|pen/pens|soup/soups|ball/balls|poster/posters|map/maps|lamp/lamps|hat/hats|pie/pies|bag of rice/bags of rice|jar of honey/jars of honey".split("|")]
COINS = "euros|dollars|pounds|francs|crowns".split("|")
VEHICLES = "train|car|ship|cyclist|bus|truck|plane|hiker|runner|tram".split("|")
MALE = set("Ben David Felix Hugo Jack Leo Oscar Paul Sam Tom Will Amir Bruno Farid Ivan Kofi Nils Ravi Tariq Viktor Colin Erik Gustav Igor Karl Marco Otto Simon Walter Yusuf Boris Dennis Frank Harry Joel Luis Noah Peter Stefan Victor".split())


def pronouns(name):
    return ("he", "his", "him") if name in MALE else ("she", "her", "her")


def who(rng):
    """(subject, verb ending s, possessive, object, how the answer calls him): somebody by name, or the user."""
    if rng.random() < 0.4:
        return "I", "", "my", "me", "You"
    name = rng.choice(common.FIRST)
    return name, "s", pronouns(name)[1], pronouns(name)[2], name


def have(subject):
    return "have" if subject in ("I", "You", "They") else "has"


def do(subject):
    return "do" if subject in ("I", "You", "They") else "does"


def lower(subject):
    return subject if subject == "I" or subject in common.FIRST else subject.lower()


def compare(rng):
    a, b = rng.sample(common.FIRST, 2)
    x, y, o = rng.randint(4, 45), rng.randint(2, 20), rng.choice(THINGS)
    more = rng.random() < 0.5 or y >= x
    other = x + y if more else x - y
    word = "more" if more else "fewer"
    text = rng.choice([f"{a} has {x} {o}. {b} has {y} {word} than {a}.", f"{a} owns {x} {o} and {b} {y} {word} than that.", f"{b} has {y} {word} {o} than {a}, who has {x}."])
    steps = [(x, "+" if more else "-", y, other)]
    if rng.random() < 0.5:
        question, answer = rng.choice([f"How many {o} do they have together?", "How many is that together?", f"How many {o} do {a} and {b} have in all?"]), f"Together they have {x + other} {o}."
        steps.append((x, "+", other, x + other))
    else:
        question, answer = rng.choice([f"How many {o} does {b} have?", f"How many {o} has {b} got?"]), f"{b} has {other} {o}."
    return f"{text} {question}", steps, answer


# what, where; what makes fewer of them; what makes more of them
BREATH = [tuple(part.split("/") for part in line.split("|")) for line in """birds/on a tree/sitting on a roof|{x} fly away/{x} leave/a cat scares {x} of them away|{x} come/{x} more land/{x} join them
fish/in a tank/in my pond|{x} die/I give {x} away/a heron takes {x}|I buy {x} more/{x} are born/I add {x}
cars/in a car park/in front of the house|{x} drive off/{x} leave|{x} arrive/{x} more come
cookies/on a plate/in the tin|{x} are eaten/I eat {x}/my brother takes {x}|mum adds {x}/I put {x} more on it
frogs/in a pond/by the lake|{x} jump out/{x} hop away|{x} jump in/{x} more come
balloons/in the room/at the party|{x} pop/{x} fly away|{x} are blown up/I blow up {x} more
kids/in the playground/in a room|{x} go home/{x} leave|{x} come in/{x} more arrive
slices of pizza/on the table|I eat {x}/my friend eats {x}/{x} fall on the floor|another pizza brings {x}
candles/on the cake|I blow out {x}/{x} go out|{x} are added/we light {x} more
mails/in my inbox|I delete {x}/I answer {x} and they are gone|{x} new ones arrive/{x} come in
bottles/in the fridge|we drink {x}/{x} break|I put in {x} more/dad brings {x}
leaves/on a branch|{x} fall/the wind takes {x}|{x} grow/{x} new ones grow
files/in a folder|I delete {x}/I move {x} away|I add {x}/I copy {x} into it
socks/in the drawer|{x} get lost/{x} have holes and I throw them out|I buy {x}/grandma knits {x}""".splitlines()]


def breath(rng):
    """A small problem in one breath, without names and often without capitals."""
    (thing, *places), fewer, more = rng.choice(BREATH)
    value = start = rng.randint(5, 40)
    parts, steps = [], []
    for _ in range(rng.choice([1, 2, 2, 3])):
        loses = rng.random() < 0.55 and value > 4
        x = rng.randint(2, min(value - 2, 14)) if loses else rng.randint(2, 18)
        parts.append(rng.choice(fewer if loses else more).format(x=x))
        steps.append((value, "-" if loses else "+", x, value - x if loses else value + x))
        value = steps[-1][3]
    text = rng.choice(["There are {x} {o} {p}", "there are {x} {o} {p}", "{x} {o} are {p}", "We have {x} {o} {p}", "I see {x} {o} {p}"]).format(x=start, o=thing, p=rng.choice(places)).replace("are sitting", "sit")
    text += rng.choice([", ", ". ", ", then ", " and "]) + rng.choice([", ", " and then ", ", then ", " and "]).join(parts)
    text = text.replace(". " + parts[0], ". " + common.cap(parts[0]))
    question = rng.choice([f"How many {thing} are there now?", f"how many {thing} are left?", f"How many {thing} are there in the end?", f"how many {thing} now?", f"How many {thing} remain?"])
    return f"{text}{rng.choice(['. ', ', ', '. '])}{question}", steps, f"There are {value} {thing} {rng.choice(['now', 'left']) if value < start else 'now'}."


def basket(rng):
    """Some money, and two or three things that are bought from it."""
    subject, s, _, _, answered = who(rng)
    coin = rng.choice(COINS)
    things = rng.sample(["a book", "a pen", "a coffee", "a sandwich", "a ticket", "a hat", "a toy", "some fruit", "a magazine", "a T-shirt", "a cake", "a plant", "lunch", "a game", "stamps"], rng.choice([2, 2, 3]))
    prices = [rng.randint(2, 25) for _ in things]
    value = sum(prices) + rng.randint(2, 40)
    steps, left = [], value
    for price in prices:
        steps.append((left, "-", price, left - price))
        left -= price
    verb = rng.choice(["buy", "get", "take"]) + s
    bought = common.listed(f"{thing} for {price} {coin}" if rng.random() < 0.6 else f"{thing} for {price}" for thing, price in zip(things, prices))
    again = subject if subject == "I" else rng.choice([subject, pronouns(subject)[0].capitalize()])
    text = rng.choice([f"{subject} {have(subject)} {value} {coin}. {again} {verb} {bought}.", f"{subject} {have(subject)} {value} {coin} and {verb} {bought}.", f"With {value} {coin} {lower(subject)} {verb} {bought}."])
    owner = "I" if subject == "I" else subject
    return f"{text} " + rng.choice(["How much money is left?", f"How many {coin} are left?", f"How much {do(owner)} {lower(owner)} have left?", "What is left?"]), steps, rng.choice([f"{left} {coin} are left.", f"{answered} {have(answered)} {left} {coin} left."])


def apart(rng):
    a, b = rng.sample(common.FIRST, 2)
    x, y, o = rng.randint(20, 95), rng.randint(5, 60), rng.choice(THINGS)
    if x <= y:
        x, y = y + 12, x
    verb = rng.choice(["has", "found", "sold", "collected", "counted", "bought"])
    base = {"has": "have", "found": "find", "sold": "sell", "collected": "collect", "counted": "count", "bought": "buy"}[verb]
    does = "does" if verb == "has" else "did"
    question = rng.choice([f"{a} {verb} {x} {o} and {b} {verb} {y}. How many more {o} {does} {a} {base} than {b}?", f"{a} {verb} {x} {o}, {b} only {y}. What is the difference?", f"How many {o} more {does} {a} {base} than {b}, if {a} {verb} {x} and {b} {verb} {y}?"])
    return question, [(x, "-", y, x - y)], rng.choice([f"The difference is {x - y} {o}.", f"It is {x - y} {o} more."])


def journey(rng):
    v, t, thing = rng.randint(3, 90), rng.randint(2, 6), rng.choice(VEHICLES)
    if thing in ("hiker", "runner", "cyclist"):
        v = rng.randint(4, 25)
    unit = rng.choice(["km", "kilometres", "miles"])
    way = v * t
    steps = [(v, "x", t, way)]
    text = rng.choice([f"A {thing} goes {v} {unit} an hour.", f"A {thing} makes {v} {unit} every hour.", f"The speed of a {thing} is {v} {unit} an hour.", f"In one hour a {thing} covers {v} {unit}."])
    roll = rng.random()
    if roll < 0.45:
        return f"{text} " + rng.choice([f"How far does it get in {t} hours?", f"How many {unit} is that in {t} hours?", f"How far is it after {t} hours?"]), steps, f"In {t} hours it is {way} {unit}."
    if roll < 0.75:
        x = rng.randint(5, 60)
        return f"{text} It travels for {t} hours and then another {x} {unit}. " + rng.choice(["How far is that in all?", f"How many {unit} does it travel?"]), steps + [(way, "+", x, way + x)], f"It travels {way + x} {unit} in all."
    return rng.choice([f"A {thing} needs {t} hours for {way} {unit}. How many {unit} is that an hour?", f"It takes a {thing} {t} hours to go {way} {unit}. How fast is it?"]), [(way, "/", t, v)], f"It goes {v} {unit} an hour."


def savings(rng):
    subject, s, his, him, you = who(rng)
    y, weeks, x, coin = rng.randint(3, 25), rng.randint(2, 9), rng.randint(5, 60), rng.choice(COINS)
    price = x + y * weeks
    thing, span = rng.choice(["bike", "phone", "guitar", "camera", "tent", "coat", "game", "ring", "drum", "clock"]), rng.choice(["week", "month", "day"])
    text = rng.choice([f"{subject} want{s} to buy a {thing} for {price} {coin}. {subject} already {have(subject)} {x} {coin} and save{s} {y} every {span}.", f"A {thing} costs {price} {coin}. {subject} {have(subject)} {x} and get{s} {y} more each {span}."])
    if rng.random() < 0.6:
        return f"{text} " + rng.choice([f"After how many {span}s is there enough?", f"How many {span}s does it take?", f"How many {span}s {do(subject)} {lower(subject)} have to save?"]), [(price, "-", x, y * weeks), (y * weeks, "/", y, weeks)], f"It takes {weeks} {span}s."
    return f"{subject} {have(subject)} {x} {coin} and save{s} {y} {coin} every {span}. " + rng.choice([f"How much is that after {weeks} {span}s?", f"How much {do(subject)} {lower(subject)} have after {weeks} {span}s?"]), [(y, "x", weeks, y * weeks), (x, "+", y * weeks, price)], f"{you} {have(you)} {price} {coin} then."


def seats(rng):
    n, m = rng.randint(3, 12), rng.randint(4, 12)
    total = n * m
    x, place = rng.randint(2, total - 2), rng.choice(["cinema", "theatre", "bus", "hall", "classroom", "train", "church", "tent"])
    free = rng.random() < 0.6
    text = rng.choice([f"A {place} has {n} rows of {m} seats.", f"In a {place} there are {n} rows with {m} seats each.", f"There are {m} seats in each of the {n} rows of a {place}."])
    if rng.random() < 0.3:
        return f"{text} " + rng.choice(["How many seats are there?", "How many people can sit there?"]), [(n, "x", m, total)], f"There are {total} seats."
    taken = rng.choice([f"{x} are taken.", f"{x} people have sat down.", f"{x} seats are already sold."]) if free else rng.choice([f"{x} are still free.", f"{x} of them are empty."])
    question = rng.choice(["How many seats are still free?", "How many are left?", "How many more people can come?"]) if free else rng.choice(["How many are taken?", "How many people sit there?"])
    return f"{text} {taken} {question}", [(n, "x", m, total), (total, "-", x, total - x)], f"{total - x} seats are {'free' if free else 'taken'}."


def group(rng):
    whole = rng.choice([("class", "children", "girls", "boys"), ("choir", "singers", "women", "men"), ("stable", "animals", "horses", "cows"), ("garden", "flowers", "roses", "tulips"), ("car park", "cars", "red ones", "blue ones"), ("box", "fruits", "apples", "pears"), ("shelf", "books", "novels", "atlases"), ("bag", "balls", "green balls", "red balls")])
    place, all_, some, others = whole
    x, y = rng.randint(12, 60), rng.randint(3, 40)
    if x - y < 3:
        x += 40
    steps = [(x, "-", y, x - y)]
    text = rng.choice([f"In a {place} there are {x} {all_}. {y} are {some}, the others are {others}.", f"Of the {x} {all_} in a {place}, {y} are {some} and the rest are {others}.", f"A {place} has {x} {all_}, {some} and {others}. There are {y} {some}."])
    if rng.random() < 0.6:
        return f"{text} " + rng.choice([f"How many {others} are there?", f"How many are {others}?", f"What is the number of {others}?"]), steps, f"There are {x - y} {others}."
    z = rng.randint(1, x - y - 1)
    return f"{text} {z} of the {others} {rng.choice(['leave', 'are taken away', 'are gone today'])}. How many {others} are left?", steps + [(x - y, "-", z, x - y - z)], f"{x - y - z} {others} are left."


def before(rng):
    """What there was at first."""
    subject, s, his, him, you = who(rng)
    x, left, o = rng.randint(3, 40), rng.randint(4, 50), rng.choice(THINGS)
    gave = rng.choice([("gave away", "give away"), ("sold", "sell"), ("lost", "lose"), ("used", "use"), ("threw away", "throw away"), ("gave a friend", "")])
    steps = [(left, "+", x, left + x)]
    text = rng.choice([f"After {subject} {gave[0]} {x} {o}, {left} were left.", f"{subject} {gave[0]} {x} {o} and now {have(subject)} {left}.", f"{subject} {gave[0]} {x} of {his} {o}. {left} {o} are left."])
    question = rng.choice([f"How many {o} were there at first?", f"How many {o} did {lower(subject)} have before?", f"With how many {o} did {lower(subject)} begin?", f"How many were there in the beginning?"])
    return f"{text} {question}", steps, rng.choice([f"At first there were {left + x} {o}.", f"{you} had {left + x} {o}."])


def wages(rng):
    subject, s, his, him, you = who(rng)
    w, h, d, coin = rng.randint(5, 25), rng.randint(2, 8), rng.randint(2, 6), rng.choice(COINS)
    steps = [(w, "x", h, w * h)]
    text = rng.choice([f"{subject} earn{s} {w} {coin} an hour and work{s} {h} hours a day.", f"For each hour {subject} get{s} {w} {coin}. {subject} work{s} {h} hours every day.", f"{subject} get{s} {w} {coin} an hour for {h} hours of work a day."])
    if rng.random() < 0.4:
        return f"{text} " + rng.choice(["How much is that a day?", f"How much {do(subject)} {lower(subject)} earn in a day?"]), steps, f"{you} earn{'' if you == 'You' else 's'} {w * h} {coin} a day."
    if rng.random() < 0.5:
        return f"{text} " + rng.choice([f"How much is that in {d} days?", f"How much {do(subject)} {lower(subject)} earn in {d} days?"]), steps + [(w * h, "x", d, w * h * d)], f"{you} earn{'' if you == 'You' else 's'} {w * h * d} {coin} in {d} days."
    x = rng.randint(2, w * h - 1)
    return f"{text} Of that {lower(subject)} spend{s} {x} {coin}. How much is left of a day's money?", steps + [(w * h, "-", x, w * h - x)], f"{w * h - x} {coin} are left."


def bill(rng):
    (one, many), (two, more) = rng.sample(GOODS, 2)
    p, q, n, m, coin = rng.randint(2, 12), rng.randint(2, 12), rng.randint(1, 5), rng.randint(2, 5), rng.choice(COINS)
    text = rng.choice([f"A {one} costs {p} {coin} and a {two} {q} {coin}.", f"{many.capitalize()} are {p} {coin} each, {more} {q} {coin} each.", f"At the shop a {one} is {p} {coin} and a {two} is {q} {coin}."])
    first, second = n * p, m * q
    steps = ([(n, "x", p, first)] if n > 1 else []) + [(m, "x", q, second), (first, "+", second, first + second)]
    wish = f"{n} {many} and {m} {more}" if n > 1 else f"one {one} and {m} {more}"
    question = rng.choice([f"What do {wish} cost?", f"How much do I pay for {wish}?", f"I take {wish}. How much is that?", f"What is the price of {wish}?"])
    return f"{text} {question}", steps, rng.choice([f"That is {first + second} {coin}.", f"You pay {first + second} {coin}."])


def portions(rng):
    n, k, x = rng.randint(2, 6), rng.randint(2, 4), rng.randint(2, 9)
    dish, stuff = rng.choice([("cake", "eggs"), ("soup", "potatoes"), ("salad", "tomatoes"), ("bread", "cups of flour"), ("pancakes", "eggs"), ("sauce", "onions"), ("stew", "carrots"), ("pie", "apples")])
    if rng.random() < 0.5:
        text = rng.choice([f"A recipe for {n} people needs {x} {stuff}.", f"For {n} people I need {x} {stuff} for the {dish}."])
        return f"{text} " + rng.choice([f"How many {stuff} do I need for {n * k} people?", f"And for {n * k} people?", f"{n * k} people come. How many {stuff} do I need?"]), [(n * k, "/", n, k), (x, "x", k, x * k)], f"You need {x * k} {stuff}."
    text = f"One {dish.rstrip('s')} needs {x} {stuff}."
    return f"{text} How many {stuff} do I need for {k + 1} of them?", [(x, "x", k + 1, x * (k + 1))], f"You need {x * (k + 1)} {stuff}."


def up_and_down(rng):
    value = rng.randint(3, 25)
    what = rng.choice([("The lift", "is on floor {}", "goes up {} floors", "goes down {} floors", "On which floor is it now?", "It is on floor {}."), ("The temperature", "is {} degrees", "rises by {} degrees", "falls by {} degrees", "How many degrees is it now?", "It is {} degrees."),
                       ("The price", "is {} euros", "goes up by {} euros", "goes down by {} euros", "What is the price now?", "The price is {} euros."), ("The water", "is {} metres deep", "rises by {} metres", "sinks by {} metres", "How deep is it now?", "It is {} metres deep."),
                       ("The counter", "shows {}", "goes up by {}", "goes back by {}", "What does it show now?", "It shows {}."), ("My score", "is {} points", "grows by {} points", "falls by {} points", "What is my score now?", "Your score is {} points.")])
    text, steps = f"{what[0]} {what[1].format(value)}", []
    for i in range(rng.choice([1, 2, 2, 3])):
        up = rng.random() < 0.5 or value < 4
        x = rng.randint(1, 12) if up else rng.randint(1, value - 1)
        text += rng.choice([". Then it ", " and then ", ". It "] if i else [". It ", ". Then it ", " and "]) + (what[2] if up else what[3]).format(x)
        result = value + x if up else value - x
        steps.append((value, "+" if up else "-", x, result))
        value = result
    return f"{text}. {what[4]}", steps, what[5].format(value)


def legs(rng):
    kinds = [("dogs", 4), ("hens", 2), ("spiders", 8), ("ants", 6), ("cows", 4), ("ducks", 2), ("cats", 4), ("tables", 4), ("stools", 3), ("horses", 4), ("beetles", 6), ("children", 2)]
    (a, p), (b, q) = rng.sample(kinds, 2)
    n, m = rng.randint(2, 6), rng.randint(2, 6)
    steps = [(n, "x", p, n * p), (m, "x", q, m * q), (n * p, "+", m * q, n * p + m * q)]
    return rng.choice([f"How many legs do {n} {a} and {m} {b} have?", f"There are {n} {a} and {m} {b} in a room. How many legs are that?", f"I count the legs of {n} {a} and {m} {b}. How many are there?"]), steps, f"They have {n * p + m * q} legs."


def rectangle(rng):
    a, b = rng.randint(3, 30), rng.randint(2, 20)
    what, unit = rng.choice(["garden", "room", "field", "carpet", "table", "park", "sheet"]), rng.choice(["metres", "cm", "feet"])
    text = rng.choice([f"A {what} is {a} {unit} long and {b} {unit} wide.", f"A {what} has the sides {a} {unit} and {b} {unit}.", f"The length of a {what} is {a} {unit}, its width {b} {unit}."])
    if rng.random() < 0.5 and a * b < 400:
        return f"{text} " + rng.choice(["What is its area?", f"How many square {unit} is that?", "How large is it?"]), [(a, "x", b, a * b)], f"The area is {a * b} square {unit}."
    return f"{text} " + rng.choice(["How long is the way around it?", "What is its perimeter?", f"How many {unit} of fence go around it?"]), [(a, "+", b, a + b), (2, "x", a + b, 2 * (a + b))], f"It is {2 * (a + b)} {unit} around."


def boxes(rng):
    m, n, x = rng.randint(3, 12), rng.randint(2, 9), rng.randint(1, 9)
    o, box = rng.choice(THINGS), rng.choice(["box", "bag", "crate", "basket", "pack", "jar"])
    total, several = m * n, box + ("es" if box == "box" else "s")
    if rng.random() < 0.5:
        return rng.choice([f"{m} {o} fit in one {box}. How many {several} do I need for {total} {o}?", f"I have {total} {o} and put {m} in each {box}. How many {several} is that?", f"Each {box} holds {m} {o}. How many {several} are needed for {total}?"]), [(total, "/", m, n)], f"You need {n} {several}."
    steps = [(n, "x", m, total), (total, "+", x, total + x)]
    return rng.choice([f"I have {n} {several} with {m} {o} in each and {x} {o} on the table. How many {o} are there?", f"There are {m} {o} in each of {n} {several}, and {x} more {o} lie beside them. How many {o} is that?"]), steps, f"There are {total + x} {o}."


def fair(rng):
    people, each, keep = rng.randint(2, 8), rng.randint(2, 9), rng.randint(1, 9)
    o, subject = rng.choice(THINGS), rng.choice(common.FIRST)
    total = people * each + keep
    steps = [(total, "-", keep, people * each), (people * each, "/", people, each)]
    return rng.choice([f"{subject} has {total} {o}, keeps {keep} and shares the rest fairly among {people} friends. How many does each friend get?", f"From {total} {o} {subject} takes {keep}. The others are divided among {people} children. How many {o} for each child?"]), steps, f"Each gets {each} {o}."


def halves(rng):
    subject, s, his, him, you = who(rng)
    half, x, o = rng.randint(3, 40), rng.randint(1, 20), rng.choice(THINGS)
    total = half * 2
    back = rng.random() < 0.5 or x >= half
    value = half + x if back else half - x
    text = rng.choice([f"{subject} {have(subject)} {total} {o} and give{s} half of them away.", f"Of {total} {o} {lower(subject)} sell{s} half.", f"{subject} {have(subject)} {total} {o}. Half of them break."])
    later = rng.choice([f"Then {lower(subject)} buy{s} {x} more.", f"Later {lower(subject)} find{s} {x}."]) if back else rng.choice([f"Then {lower(subject)} lose{s} {x} more.", f"After that {x} more are gone."])
    return f"{text} {later} " + rng.choice([f"How many {o} are there now?", f"How many {o} {do(subject)} {lower(subject)} have now?", "How many are left?"]), [(total, "/", 2, half), (half, "+" if back else "-", x, value)], f"{you} {have(you)} {value} {o}."


def reading(rng):
    subject, s, his, him, you = who(rng)
    x, y, left = rng.randint(8, 60), rng.randint(8, 60), rng.randint(10, 120)
    pages = x + y + left
    steps = [(x, "+", y, x + y), (pages, "-", x + y, left)] if rng.random() < 0.5 else [(pages, "-", x, pages - x), (pages - x, "-", y, left)]
    d1, d2 = rng.choice([("on Monday", "on Tuesday"), ("today", "yesterday"), ("in the morning", "in the evening"), ("last week", "this week")])
    what = rng.choice([("A book has {n} pages.", "read", "pages"), ("A road is {n} kilometres long.", "walked", "kilometres"), ("There are {n} letters to write.", "wrote", "letters"), ("A wall needs {n} bricks.", "laid", "bricks"), ("The list has {n} words.", "learned", "words")])
    return f"{what[0].format(n=pages)} {subject} {what[1]} {x} {d1} and {y} {d2}. " + rng.choice([f"How many {what[2]} are left?", f"How many {what[2]} are still missing?", "How many remain?"]), steps, f"{left} {what[2]} are left."


def family(rng):
    a, b = rng.sample(common.FIRST, 2)
    x, y = rng.randint(8, 60), rng.randint(2, 25)
    older = rng.random() < 0.5 or y >= x - 2
    other = x + y if older else x - y
    steps = [(x, "+" if older else "-", y, other)]
    text = rng.choice([f"{a} is {x}. {pronouns(a)[1].capitalize()} {rng.choice(['brother', 'sister', 'cousin', 'friend'])} {b} is {y} years {'older' if older else 'younger'}.", f"{a} is {x} years old and {b} {y} years {'older' if older else 'younger'}."])
    roll = rng.random()
    if roll < 0.45:
        return f"{text} How old is {b}?", steps, f"{b} is {other} years old."
    if roll < 0.75:
        return f"{text} " + rng.choice(["How old are they together?", "What is the sum of their ages?"]), steps + [(x, "+", other, x + other)], f"Together they are {x + other} years old."
    z = rng.randint(2, 12)
    return f"{text} How old will {b} be in {z} years?", steps + [(other, "+", z, other + z)], f"{b} will be {other + z}."


def points(rng):
    w, d, l = rng.randint(2, 9), rng.randint(1, 5), rng.randint(1, 6)
    per, draw = rng.choice([(3, 1), (2, 1)])
    team = rng.choice(["Our team", "The team", "A club", "The red team"])
    steps = [(w, "x", per, w * per), (w * per, "+", d * draw, w * per + d)]
    return rng.choice([f"{team} gets {per} points for a win and 1 for a draw. It won {w} games, drew {d} and lost {l}. How many points is that?", f"A win gives {per} points and a draw one. {team} has {w} wins, {d} draws and {l} defeats. How many points does it have?"]), steps, f"It has {w * per + d} points."


def entrance(rng):
    p, q, n, m, coin = rng.randint(6, 20), rng.randint(2, 8), rng.randint(2, 4), rng.randint(2, 6), rng.choice(COINS)
    place = rng.choice(["zoo", "museum", "pool", "circus", "castle", "cinema"])
    steps = [(n, "x", p, n * p), (m, "x", q, m * q), (n * p, "+", m * q, n * p + m * q)]
    return rng.choice([f"At the {place} adults pay {p} {coin} and children {q}. What do {n} adults and {m} children pay?", f"A ticket for the {place} costs {p} {coin} for adults and {q} {coin} for children. We are {n} adults and {m} children. How much is it?"]), steps, f"They pay {n * p + m * q} {coin}."


def clocked(rng):
    t, n, x = rng.choice([5, 6, 10, 12, 15, 20]), rng.randint(2, 9), rng.randint(5, 30)
    task = rng.choice([("paint a chair", "chairs"), ("bake a tray of rolls", "trays"), ("wash a car", "cars"), ("write a card", "cards"), ("plant a tree", "trees"), ("peel a bowl of potatoes", "bowls"), ("repair a shoe", "shoes")])
    subject, s, his, him, you = who(rng)
    steps = [(t, "x", n, t * n)]
    text = f"{subject} need{s} {t} minutes to {task[0]}."
    if rng.random() < 0.5:
        return f"{text} " + rng.choice([f"How long does it take for {n} {task[1]}?", f"How many minutes are needed for {n} {task[1]}?"]), steps, f"It takes {t * n} minutes."
    return f"{text} How many minutes do {n} {task[1]} take with a break of {x} minutes?", steps + [(t * n, "+", x, t * n + x)], f"It takes {t * n + x} minutes."


def mean(rng):
    values = [rng.randint(2, 20) for _ in range(rng.choice([2, 3]))]
    while sum(values) % len(values):
        values[-1] += 1
    total, steps = values[0], []
    for v in values[1:]:
        steps.append((total, "+", v, total + v))
        total += v
    steps.append((total, "/", len(values), total // len(values)))
    return rng.choice(["What is the average of {}?", "Find the mean of {}.", "average of {}?"]).format(common.listed(map(str, values))), steps, f"The average is {total // len(values)}."


def twice_as(rng):
    a, b = rng.sample(common.FIRST, 2)
    x, k, o = rng.randint(3, 20), rng.choice([2, 2, 3, 4]), rng.choice(THINGS)
    word = {2: "twice", 3: "three times", 4: "four times"}[k]
    steps = [(x, "x", k, x * k)]
    text = rng.choice([f"{a} has {x} {o}. {b} has {word} as many.", f"{b} has {word} as many {o} as {a}, who has {x}."])
    if rng.random() < 0.5:
        return f"{text} How many {o} does {b} have?", steps, f"{b} has {x * k} {o}."
    return f"{text} " + rng.choice(["How many do they have together?", f"How many {o} is that in all?"]), steps + [(x, "+", x * k, x + x * k)], f"Together they have {x + x * k} {o}."


def several_gifts(rng):
    """Some are eaten, given and got in one sentence, with a number that does not matter."""
    subject, s, his, him, you = who(rng)
    value, o = rng.randint(8, 50), rng.choice(THINGS)
    lines, steps = [], []
    for _ in range(rng.choice([2, 2, 3])):
        friend = rng.choice(common.FIRST)
        lose = rng.random() < 0.5 and value > 6
        x = rng.randint(1, min(value - 2, 14)) if lose else rng.randint(1, 15)
        lines.append(rng.choice([f"give{s} {x} to {friend}", f"lose{s} {x}", f"sell{s} {x} of them", f"break{s} {x}", f"leave{s} {x} at school"] if lose else [f"get{s} {x} from {friend}", f"buy{s} {x} new ones", f"find{s} {x} under the bed", f"win{s} {x} in a game", f"pick{s} up {x} more"]))
        steps.append((value, "-" if lose else "+", x, value - x if lose else value + x))
        value = steps[-1][3]
    extra = rng.choice(["", "", "", f" {common.cap(his)} brother is {rng.randint(5, 19)} years old.", f" It is {rng.randint(2, 11)} o'clock.", f" The bag costs {rng.randint(3, 30)} euros."])
    return f"{subject} {have(subject)} {steps[0][0]} {o}, {', '.join(lines[:-1])} and then {lines[-1]}.{extra} " + rng.choice([f"How many {o} {do(subject)} {lower(subject)} have at the end?", f"How many {o} are that now?", "How many are there in the end?"]), steps, f"{you} {have(you)} {value} {o}."


KINDS = [(9, breath), (8, basket), (9, compare), (5, apart), (7, journey), (7, savings), (6, seats), (7, group), (8, before), (6, wages), (8, bill), (5, portions), (6, up_and_down), (3, legs), (4, rectangle), (6, boxes), (5, fair), (7, halves), (6, reading), (7, family),
         (2, points), (4, entrance), (4, clocked), (2, mean), (6, twice_as), (10, several_gifts)]


def spelled(rng, text):
    """Now and then the small numbers as words."""
    if rng.random() < 0.8:
        return text
    return " ".join(sums.number_words(int(w)) if w.isdigit() and 1 < int(w) < 13 and rng.random() < 0.7 else w for w in text.split(" "))


def easy(a, op, b, result):
    """Whether a product is one of the tables, or near them: more cannot be done in the head."""
    if op in "+-":
        return True
    small, large = sorted((a, b) if op == "x" else (b, result))
    return small <= 12 and (large <= 12 or large <= 30 and small <= 4 or large <= 100 and large % 10 == 0)


def problem(rng):
    """(question, steps, answer) without a held-out sum."""
    while True:
        text, steps, answer = rng.choices([k for _, k in KINDS], [w for w, _ in KINDS])[0](rng)
        if min(step[3] for step in steps) < 1 or any(sums.held_out_pair(a, op, b) for a, op, b, _ in steps) or not all(easy(*step) for step in steps):
            continue
        question = spelled(rng, common.cap(text))
        if rng.random() < 0.12:
            question = rng.choice(["Can you solve this? ", "Please help me with this: ", "Homework: ", "A riddle for you: ", "Question: "]) + question
        return common.typed(rng, question), steps, answer
