"""Problems about money, clock, calendar and units."""

from .sums import Problem, decorate

GOODS = (
    "book pen cup ball hat toy sandwich notebook lamp shirt bag cap game puzzle kite mug plate scarf "
    "poster ticket candle brush basket plant pillow towel belt drum doll map"
).split()


def money(rng):
    x, y = rng.sample(GOODS, 2)
    kind = rng.randrange(3)
    if kind == 0:
        a, b = rng.randint(1, 60), rng.randint(1, 60)
        question = rng.choice((f"A {x} costs ${a} and a {y} costs ${b}. How much do they cost together?",
                               f"I buy a {x} for ${a} and a {y} for ${b}. What do I pay?",
                               f"How much is a {x} for {a} dollars plus a {y} for {b} dollars?"))
        return Problem(question, f"{a} + {b} = {a + b}.", f"Together they cost ${a + b}.", f"${a} + ${b} = ${a + b}.",
                       ((a, "+", b),))
    if kind == 1:
        paid = rng.choice((5, 10, 20, 50, 100))
        cost = rng.randint(1, paid - 1)
        question = rng.choice((f"A {x} costs ${cost}. I pay with ${paid}. How much change do I get?",
                               f"I pay ${paid} for a {x} that costs ${cost}. What is my change?",
                               f"What is the change from ${paid} if the {x} costs ${cost}?"))
        left = paid - cost
        return Problem(question, f"{paid} - {cost} = {left}.", f"The change is ${left}.",
                       f"${paid} - ${cost} = ${left}.", ((paid, "-", cost),))
    a, n = rng.randint(1, 12), rng.randint(2, 10)
    question = rng.choice((f"One {x} costs ${a}. How much do {n} cost?",
                           f"What do {n} of them cost if one {x} is ${a}?",
                           f"I want {n} {x}s at ${a} each. What is the price?"))
    if x in ("sandwich", "scarf", "brush"):
        question = f"One {x} costs ${a}. How much do {n} cost?"
    return Problem(question, f"{n} x {a} = {n * a}.", f"{n} cost ${n * a}.", f"{n} x ${a} = ${n * a}.")


def clock(minutes):
    hour, minute = minutes // 60 % 12 or 12, minutes % 60
    return f"{hour}:{minute:02d}"


def time_shift(rng):
    start = rng.randint(1, 12) * 60 + rng.randrange(0, 60, 5)
    kind = rng.random()
    now = clock(start)
    hour, minute = start // 60, start % 60
    if kind < 0.25:
        h = rng.randint(1, 6)
        end = clock(start + 60 * h)
        s = "s" * (h > 1)
        question = rng.choice((f"What time is it {h} hour{s} after {now}?",
                               f"It is {now}. What time is it in {h} hour{s}?",
                               f"What time is {h} hour{s} after {now}?"))
        thought = f"{hour} + {h} = {hour + h} hours" + (f", and {hour + h} - 12 = {hour + h - 12}" if hour + h > 12
                                                        else "") + f". So it is {end}."
        return Problem(question, thought, f"It is {end}.", f"{h} hour{s} after {now} is {end}.",
                       ((hour, "+", h), (hour + h, "-", 12)))
    m = rng.randrange(5, 60, 5)
    if kind < 0.75:
        end = clock(start + m)
        question = rng.choice((f"What time is it {m} minutes after {now}?",
                               f"It is {now}. What time will it be in {m} minutes?",
                               f"What is {m} minutes after {now}?",
                               f"A show starts at {now} and lasts {m} minutes. When does it end?",
                               f"If it is {now} now, what time is it in {m} minutes?"))
        total = minute + m
        if total >= 60:
            thought = f"{minute} + {m} = {total} minutes. {total} - 60 = {total - 60}, so one hour more: {end}."
            facts = ((minute, "+", m), (total, "-", 60))
        else:
            thought, facts = f"{minute} + {m} = {total} minutes. So it is {end}.", ((minute, "+", m),)
        answer = f"It ends at {end}." if "show" in question else f"It is {end}."
        return Problem(question, thought, answer, f"{m} minutes after {now} is {end}.", facts)
    if kind < 0.88:
        m = rng.randrange(5, 65 - 5, 5)
        end = clock(start - m + 720)
        question = rng.choice((f"What time was it {m} minutes before {now}?",
                               f"It is {now}. What time was it {m} minutes ago?"))
        if minute >= m:
            thought, facts = f"{minute} - {m} = {minute - m} minutes. So it was {end}.", ((minute, "-", m),)
        else:
            more = minute + 60
            thought = f"{minute} + 60 = {more}. {more} - {m} = {more - m} minutes, one hour earlier: {end}."
            facts = ((minute, "+", 60), (minute + 60, "-", m))
        return Problem(question, thought, f"It was {end}.", f"{m} minutes before {now} is {end}.", facts)
    m = rng.randrange(5, 60 - minute + 1, 5) if minute < 55 else 5
    end = clock(start + m)
    question = rng.choice((f"How many minutes is it from {now} to {end}?", f"How long is it from {now} to {end}?"))
    to = minute + m
    return Problem(question, f"{to} - {minute} = {m}.", f"It is {m} minutes.", f"From {now} to {end} is {m} minutes.",
                   ((to, "-", minute),))


DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = "January February March April May June July August September October November December".split()
MONTH_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def calendar(rng):
    names, one, many = rng.choice(((DAYS, "day", "days"), (DAYS, "day", "days"), (MONTHS, "month", "months")))
    i = rng.randrange(len(names))
    here = names[i]
    kind = rng.random()
    if kind < 0.4:
        n = rng.randint(1, 6)
        steps = [names[(i + k) % len(names)] for k in range(1, n + 1)]
        span = f"{n} {many if n > 1 else one}"
        question = rng.choice((f"What {one} is it {span} after {here}?",
                               f"If it is {here}, what {one} is it in {span}?",
                               f"Today is {here}. What {one} is it in {span}?")
                              if one == "day" else (f"What {one} is {span} after {here}?",
                                                    f"If it is {here}, what {one} is it in {span}?"))
        return Problem(question, f"Count on from {here}: {', '.join(steps)}.", f"It is {steps[-1]}.",
                       f"{span[0].upper() + span[1:]} after {here} is {steps[-1]}.")
    if kind < 0.6:
        after = names[(i + 1) % len(names)]
        question = rng.choice((f"What {one} comes after {here}?", f"Which {one} follows {here}?",
                               f"What is the {one} after {here}?"))
        return Problem(decorate(rng, question), f"The order is {here}, {after}.", f"{after} comes after {here}.",
                       f"{after} comes after {here}.")
    if kind < 0.8:
        before = names[i - 1]
        question = rng.choice((f"What {one} comes before {here}?", f"What is the {one} before {here}?",
                               f"Which {one} is before {here}?"))
        return Problem(decorate(rng, question), f"The order is {before}, {here}.", f"{before} comes before {here}.",
                       f"{before} comes before {here}.")
    if one == "month":
        if rng.random() < 0.5:
            extra = " (29 in a leap year)" if here == "February" else ""
            question = rng.choice((f"How many days does {here} have?", f"How many days are in {here}?"))
            answer = f"{here} has {MONTH_DAYS[i]} days{extra}."
            return Problem(question, f"{here} is month {i + 1}. It has {MONTH_DAYS[i]} days.", answer, answer)
        return Problem(rng.choice((f"Which month of the year is {here}?", f"What number is the month {here}?")),
                       f"I count: {', '.join(f'{m} {k}' for k, m in enumerate(MONTHS[:i + 1], 1))}.",
                       f"{here} is month number {i + 1}.", f"{here} is month number {i + 1}.")
    weeks = rng.randint(1, 10)
    question = rng.choice((f"How many days are in {weeks} week{'s' * (weeks > 1)}?",
                           f"How many days do {weeks + 1} weeks have?"))
    n = weeks + 1 if " do " in question else weeks
    return Problem(question, f"A week has 7 days. {n} x 7 = {7 * n}.",
                   f"{n} week{'s' * (n > 1)} {'have' if n > 1 else 'has'} {7 * n} days.", f"{n} x 7 = {7 * n} days.")


UNITS = (("meter", "meters", "centimeters", 100), ("kilometer", "kilometers", "meters", 1000),
         ("kilogram", "kilograms", "grams", 1000),
         ("hour", "hours", "minutes", 60), ("minute", "minutes", "seconds", 60), ("foot", "feet", "inches", 12),
         ("yard", "yards", "feet", 3),
         ("dozen", "dozen", "pieces", 12), ("day", "days", "hours", 24), ("week", "weeks", "days", 7),
         ("year", "years", "months", 12),
         ("dollar", "dollars", "cents", 100), ("liter", "liters", "milliliters", 1000),
         ("centimeter", "centimeters", "millimeters", 10),
         ("decade", "decades", "years", 10), ("century", "centuries", "years", 100))


def units(rng):
    one, many, small, k = rng.choice(UNITS)
    n = rng.randint(1, 12 if k != 24 else 4)
    name = one if n == 1 else many
    if one == "dozen":
        small = rng.choice(("eggs", "rolls", "cookies", "pieces"))
    fact = f"One {one} is {k} {small}."
    if rng.random() < 0.6 or one == "dozen":
        question = rng.choice(("How many {s} are in {n} {u}?", "How many {s} is {n} {u}?", "Convert {n} {u} to {s}.",
                               "What is {n} {u} in {s}?"))
        question = question.format(s=small, n=n, u=name) if one != "dozen" else f"How many {small} are in {n} dozen?"
        if one == "dozen":
            fact = "A dozen is 12."
        return Problem(decorate(rng, question), f"{fact} {n} x {k} = {n * k}.",
                       f"{n} {name} {'is' if n == 1 else 'are'} {n * k} {small}.",
                       f"{n} x {k} = {n * k}, so {n} {name} {'is' if n == 1 else 'are'} {n * k} {small}.")
    question = rng.choice(("How many {u} are {t} {s}?", "Convert {t} {s} to {u}.",
                           "What is {t} {s} in {u}?")).format(u=many, t=n * k, s=small)
    answer = f"{n * k} {small} are {n} {name}."
    return Problem(decorate(rng, question), f"{fact} {n * k} / {k} = {n}.", answer, answer)
