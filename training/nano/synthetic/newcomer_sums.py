"""Sums in plain words: parts and percentages, prices and change, days and weeks, clock times, and what is more."""

from . import common, toolcalls

THINGS = "apple|pen|book|ticket|stamp|cup|postcard|bread roll|bottle|notebook|flower|ball|candle|chair|sandwich|coffee|key ring|ice cream".split("|")
SHARES = [(2, "half"), (3, "a third"), (4, "a quarter"), (5, "a fifth"), (10, "a tenth")]


def plural(noun):
    return noun + ("es" if noun.endswith(("s", "x", "ch", "sh")) else "s")


def percent(rng, data):
    """By way of ten percent, a half or a quarter."""
    p = rng.choice([1, 5, 10, 15, 20, 25, 30, 40, 50, 60, 75, 90, 100])
    n = rng.randint(1, 30) * (100 if p == 1 else 20 if p in (5, 15) else 4 if p in (25, 75) else 2 if p == 50 else 10)
    value = n * p // 100
    tenth = n // 10
    way = {1: f"1% is a hundredth: {n} / 100 = {value}.", 5: f"10% of {n} is {tenth}. 5% is half of that: {value}.", 15: f"10% of {n} is {tenth}, 5% is {n // 20}. {tenth} + {n // 20} = {value}.", 25: f"25% is a quarter: {n} / 4 = {value}.",
           50: f"50% is a half: {n} / 2 = {value}.", 75: f"25% of {n} is {n // 4}. 3 x {n // 4} = {value}.", 100: f"100% is all of it: {n}.", 10: f"10% is a tenth: {n} / 10 = {value}."}.get(p, f"10% of {n} is {tenth}. {p // 10} x {tenth} = {value}.")
    if rng.random() < 0.3:
        thing = rng.choice(["coat", "bike", "lamp", "table", "phone", "bag", "pair of shoes"])
        return [(rng.choice([f"A {thing} costs {n} euros. It is {p}% off. What do I pay?", f"There is a discount of {p} percent on a {thing} of {n} euros. What is the new price?"]), rng.choice([f"You pay {n - value} euros.", f"The discount is {value} euros, so you pay {n - value} euros."]))], \
            f"{way} {n} - {value} = {n - value}."
    question = rng.choice([f"What is {p}% of {n}?", f"{p}% of {n}", f"What is {p} percent of {n}?", f"how much is {p}% of {n}", f"Calculate {p}% of {n}.", f"{p} percent of {n}?"])
    return [(question, rng.choice([f"{p}% of {n} is {value}.", f"The answer is {value}."]))], way


def part_of(rng, data):
    k, name = rng.choice(SHARES)
    value = rng.randint(2, 150 if k == 2 else 60)
    n = value * k
    if rng.random() < 0.25:
        return [(rng.choice([f"double {value}", f"What is double {value}?", f"twice {value}?", f"What is two times {value}?"]), f"Double {value} is {2 * value}.")], f"2 x {value} = {2 * value}."
    return [(rng.choice([f"{name} of {n}", f"What is {name} of {n}?", f"how much is {name} of {n}", f"{common.cap(name)} of {n}?", f"Give me {name} of {n}."]), rng.choice([f"{common.cap(name)} of {n} is {value}.", f"It is {value}."]))], f"{n} / {k} = {value}."


def per_day(rng, data):
    n, (days, span) = rng.randint(2, 15), rng.choice([(7, "a week"), (7, "one week"), (5, "five days"), (10, "ten days"), (12, "a year, when it is each month"), (30, "30 days"), (14, "two weeks")])
    unit, each = ("month", "a month") if days == 12 else ("day", "a day")
    span = "a year" if days == 12 else span
    verb, things = rng.choice([("read", "pages"), ("run", "kilometres"), ("drink", "glasses of water"), ("save", "euros"), ("walk", "miles"), ("write", "letters"), ("learn", "words"), ("eat", "apples"), ("sell", "cakes"), ("work", "hours")])
    who = rng.choice(["I", "I", rng.choice(common.FIRST)])
    s, do = ("", "do") if who == "I" else ("es" if verb.endswith("h") else "s", "does")
    question = rng.choice([f"If {who} {verb}{s} {n} {things} {each}, how many {things} {do} {who} {verb} in {span}?", f"{who} {verb}{s} {n} {things} every {unit}. How many {things} is that in {span}?", f"{n} {things} {each}, how many is that in {span}?"])
    you = "You" if who == "I" else who
    return [(question, rng.choice([f"{days} x {n} = {days * n}. That is {days * n} {things}.", f"{you} {verb}{s} {days * n} {things} in {span}.", f"That is {days * n} {things}."]))], f"{common.cap(span)} has {days} {unit}s. {days} x {n} = {days * n}."


def prices(rng, data):
    thing, price, count = rng.choice(THINGS), rng.randint(2, 12), rng.randint(2, 9)
    total = price * count
    note = next(x for x in (10, 20, 50, 100, 200) if x > total)
    question = rng.choice([f"One {thing} costs {price} euros. How much are {count} {plural(thing)}?", f"How much do {count} {plural(thing)} cost if one is {price} dollars?", f"I buy {count} {plural(thing)} for {price} euros each. What do I pay?"])
    unit = "dollars" if "dollars" in question else "euros"
    if rng.random() < 0.5:
        question += rng.choice([f" I pay with a {note} {unit[:-1]} note. How much do I get back?", f" And what change do I get from {note} {unit}?"])
        return [(question, rng.choice([f"{count} x {price} = {total} {unit}, and {note} - {total} = {note - total} {unit} back.", f"They cost {total} {unit}, and you get {note - total} {unit} back."]))], f"{count} x {price} = {total}. {note} - {total} = {note - total}."
    return [(question, rng.choice([f"{count} x {price} = {total}. They cost {total} {unit}.", f"You pay {total} {unit}.", f"That is {total} {unit}."]))], f"{count} x {price} = {total}."


def used_up(rng, data):
    """A heap from which something is taken, twice, or to which something is added."""
    n, a, b = rng.randint(12, 60), rng.randint(2, 6), rng.randint(2, 6)
    thing = plural(rng.choice(THINGS))
    v1, v2 = rng.sample([("lost", "lost"), ("sold", "sold"), ("gave {x} to {n}", ""), ("broke", "broke"), ("threw away", ""), ("ate", ""), ("used", ""), ("gave away", "")], 2)
    friend = rng.choice(common.FIRST)
    first = v1[0].format(x=a, n=friend) if "{" in v1[0] else f"{v1[0]} {a}"
    if rng.random() < 0.55:
        second = v2[0].format(x=b, n=friend) if "{" in v2[0] else f"{v2[0]} {b}"
        question = rng.choice([f"I had {n} {thing}, {first} and {second}. How many do I have now?", f"There were {n} {thing}. I {first} and then {second}. how many are left?", f"I have {n} {thing}. I {first}, then I {second}. How many {thing} are left?"])
        return [(question, rng.choice([f"{n - a - b} {thing} are left.", f"You have {n - a - b} {thing} left."]))], f"{n} - {a} = {n - a}. {n - a} - {b} = {n - a - b}."
    question = rng.choice([f"I had {n} {thing}, {first} and bought {b} more. How many do I have now?", f"There were {n} {thing}. I {first}, then I got {b} new ones. How many are there?"])
    return [(question, rng.choice([f"You have {n - a + b} {thing} now.", f"There are {n - a + b} {thing}."]))], f"{n} - {a} = {n - a}. {n - a} + {b} = {n - a + b}."


def shared(rng, data):
    people, each = rng.randint(2, 9), rng.randint(2, 12)
    n, thing = people * each, plural(rng.choice(THINGS))
    if rng.random() < 0.35:
        return [(f"I have {people} {rng.choice(['boxes', 'bags', 'shelves', 'rows'])} with {each} {thing} each. How many {thing} are there?", f"{people} x {each} = {n}. There are {n} {thing}.")], f"{people} x {each} = {n}."
    return [(rng.choice([f"{people} friends share {n} {thing}. How many does each get?", f"I want to divide {n} {thing} among {people} children. How many for each?", f"Split {n} {thing} between {people} people."]), rng.choice([f"Each gets {each} {thing}.", f"{n} / {people} = {each}. Each gets {each}."]))], f"{n} / {people} = {each}."


def clock(rng, data):
    start, hours, minutes = rng.randint(6, 18), rng.randint(1, 4), rng.choice([0, 0, 15, 30, 45])
    end = start + hours
    if rng.random() < 0.5:
        text = f"{hours} hour{'s' if hours > 1 else ''}" + (f" and {minutes} minutes" if minutes else "")
        return [(rng.choice([f"How long is it from {start}:00 to {end}:{minutes:02d}?", f"A film starts at {start}:00 and ends at {end}:{minutes:02d}. How long is it?", f"How much time is between {start}:00 and {end}:{minutes:02d}?"]), rng.choice([f"It is {text}.", f"{common.cap(text)}."]))], f"From {start} to {end} are {hours} hours" + (f", and {minutes} minutes more." if minutes else ".")
    return [(rng.choice([f"It is {start}:{minutes:02d}. What time is it in {hours} hours?", f"I start at {start}:{minutes:02d} and work {hours} hours. When am I done?"]), rng.choice([f"It is {end}:{minutes:02d} then.", f"At {end}:{minutes:02d}."]))], f"{start} + {hours} = {end}, so {end}:{minutes:02d}."


def born(rng, data):
    year, age = rng.randint(1940, 2010), rng.randint(10, 80)
    return [(rng.choice([f"Somebody was born in {year}. How old was that person in {year + age}?", f"If I was born in {year}, how old am I in {year + age}?"]), f"{year + age} - {year} = {age}. {age} years old.")], f"{year + age} - {year} = {age}."


def minutes_of(rng, data):
    n, (many, one, other) = rng.randint(2, 12), rng.choice([(60, "hours", "minutes"), (60, "minutes", "seconds"), (24, "days", "hours"), (7, "weeks", "days"), (100, "metres", "centimetres"), (1000, "kilometres", "metres"), (1000, "kilograms", "grams"), (12, "years", "months"), (12, "dozen", "pieces"), (100, "euros", "cents")])
    return [(rng.choice([f"How many {other} are {n} {one}?", f"How many {other} are in {n} {one}?", f"{n} {one} in {other}", f"Convert {n} {one} to {other}."]), rng.choice([f"{n} {one} are {n * many} {other}.", f"{n} x {many} = {n * many} {other}."]))], f"{n} x {many} = {n * many}."


def largest(rng, data):
    numbers = rng.sample(range(2, 999 if rng.random() < 0.4 else 99), rng.choice([2, 3, 3, 4]))
    if len(numbers) == 2:
        return [(rng.choice([f"Which is larger, {numbers[0]} or {numbers[1]}?", f"What is more, {numbers[0]} or {numbers[1]}?", f"Is {numbers[0]} bigger than {numbers[1]}?"]),) + (f"{max(numbers)} is larger than {min(numbers)}.",)], f"{max(numbers)} is more than {min(numbers)}."
    listing, ordered = ", ".join(map(str, numbers)), ", ".join(map(str, sorted(numbers)))
    if rng.random() < 0.5:
        return [(rng.choice([f"Sort these numbers: {listing}", f"Put these numbers in order: {listing}", f"Order from small to large: {listing}"]), ordered)], f"From small to large: {ordered}."
    return [(rng.choice([f"Which is the largest: {listing}?", f"What is the biggest of these numbers: {listing}?"]), f"The largest is {max(numbers)}.")], f"In order: {ordered}."


def journey(rng, data):
    """From one time to another, with minutes on both sides: whole hours first, then what is over."""
    start, length = rng.randint(6 * 60, 19 * 60) // 5 * 5, rng.randint(20, 290) // 5 * 5
    end = start + length

    def at(minutes):
        return f"{minutes // 60}:{minutes % 60:02d}"
    hours, minutes = divmod(length, 60)
    said = " and ".join(part for part in (f"{hours} hour{'s' if hours > 1 else ''}" if hours else "", f"{minutes} minutes" if minutes else "") if part)
    what = rng.choice(["A train leaves at {a} and arrives at {b}. How long is the trip?", "The bus goes at {a} and is there at {b}. How long does it take?", "I work from {a} to {b}. How long is that?", "The film starts at {a} and ends at {b}. How long is the film?", "How long is it from {a} to {b}?",
                       "My flight leaves at {a} and lands at {b}, how long is it?", "I went to bed at {a} and got up at {b}. How long did I sleep?"]).format(a=at(start), b=at(end))
    middle = start + hours * 60
    thought = (f"From {at(start)} to {at(middle)} is {hours} hour{'s' if hours > 1 else ''}. " if hours else "") + (f"From {at(middle)} to {at(end)} is {minutes} minutes." if minutes else "")
    return [(what, rng.choice([f"It is {said}.", f"{common.cap(said)}.", f"It takes {said}." if "take" in what or "trip" in what else f"That is {said}."]))], thought.strip()


SUMS = [(4, journey), (5, percent), (4, part_of), (5, per_day), (5, prices), (6, used_up), (4, shared), (3, clock), (1, born), (3, minutes_of), (2, largest)]
