"""Word problems from skeletons: names, things, places and one or two steps of arithmetic."""

from .sums import BANKS, Problem, apply

BOYS = (
    "Tom Ben Sam Max Leo Jack Adam Noah Omar Luis Paul Mark David Peter Ali Hugo Ivan Kofi Raj Chen "
    "Finn Oscar Tim Alex Carlos Daniel Eric Felix George Henry Jamal Kenji Luca Marco Nico Oliver "
    "Ravi Simon Theo Victor"
).split()
GIRLS = (
    "Anna Mia Lucy Emma Sara Lily Zoe Rosa Nina Maya Eva Ella Kate Julia Maria Ruth Amina Priya Mei "
    "Clara Alice Beth Carla Diana Elena Fatima Grace Hana Iris Jane Kira Laura Molly Nora Olga Paula "
    "Rita Sofia Tina Vera"
).split()
THINGS = (
    "apples marbles stickers books pencils coins stamps cards shells toys balls buttons beads crayons "
    "stones cars dolls pens balloons flowers hats cups keys magnets postcards puzzles ribbons blocks "
    "badges feathers leaves photos erasers candles notebooks bricks plates spoons boxes bottles socks "
    "rings kites posters tickets"
).split()
FOODS = (
    "apples cookies muffins cakes oranges pears plums cherries grapes pies eggs bananas rolls peaches "
    "candies pancakes strawberries sandwiches lemons nuts tomatoes carrots potatoes buns donuts "
    "waffles crackers mangoes"
).split()
BAKED = "cookies muffins cakes pies rolls pancakes buns donuts waffles crackers brownies cupcakes".split()
PICKED = (
    "apples oranges pears plums cherries grapes peaches strawberries lemons tomatoes carrots potatoes "
    "mangoes nuts"
).split()
SPOTS = ("the park", "the market", "the zoo", "the shop", "the library", "the school", "the beach", "the museum",
         "the fair",
         "the station", "the cinema", "the garden", "the pool", "the farm", "the theater")
BOXES = "boxes bags baskets jars crates trays packs bowls drawers bins".split()
ANIMALS = "cows sheep ducks goats horses chickens birds rabbits pigs geese deer dogs".split()
ITEMS = (
    "book ball hat shirt bag lamp game bike jacket watch radio clock chair camera drum tent "
    "skateboard puzzle"
).split()


def read_skeletons():
    lines = (BANKS / "arithmetic_word_problems.txt").read_text(encoding="utf8").splitlines()
    return [tuple(part.strip() for part in line.split("|")) for line in lines if line.strip()
            and not line.startswith("#")]


SKELETONS = read_skeletons()


def small_or_two_digit(rng):
    return rng.randint(2, 20) if rng.random() < 0.5 else rng.randint(10, 80)


def problem_numbers(rng, kind):
    """Numbers for a kind of word problem and its calculation as (a, op, b) steps, or None when they do not suit."""
    n = small_or_two_digit
    if kind == "add":
        a, b = n(rng), n(rng)
        return (a, b, 0), ((a, "+", b),)
    if kind == "age":
        a, b = rng.randint(2, 50), rng.randint(2, 20)
        return (a, b, 0), ((a, "+", b),)
    if kind in ("sub", "change"):
        a = rng.choice((10, 20, 50, 100)) if kind == "change" else n(rng)
        b = n(rng)
        return (a, b, 0), ((a, "-", b),)
    if kind in ("mul", "mul4", "mul8"):
        a, b = rng.randint(2, 12), {"mul": rng.randint(2, 12), "mul4": 4, "mul8": 8}[kind]
        return (a, b, 0), ((a, "x", b),)
    if kind == "div":
        b, r = rng.randint(2, 10), rng.randint(2, 12)
        return (b * r, b, 0), ((b * r, "/", b),)
    if kind in ("addadd", "addsub", "subadd", "subsub"):
        a, b, c = n(rng), rng.randint(2, 30), rng.randint(2, 20)
        first, second = ("+" if part == "add" else "-" for part in (kind[:3], kind[3:]))
        return (a, b, c), ((a, first, b), (apply(a, first, b), second, c))
    if kind in ("muladd", "mulsub"):
        a, b, c = rng.randint(2, 9), rng.randint(2, 10), rng.randint(2, 20)
        return (a, b, c), ((a, "x", b), (a * b, "+" if kind == "muladd" else "-", c))
    if kind in ("adddiv", "subdiv"):
        c, r = rng.randint(2, 6), rng.randint(2, 10)
        b = rng.randint(2, 30)
        a = c * r - b if kind == "adddiv" else c * r + b
        return (a, b, c), ((a, "+" if kind == "adddiv" else "-", b), (c * r, "/", c))
    if kind in ("more", "fewer"):
        a, b = rng.randint(4, 40), rng.randint(2, 15)
        s = a + b if kind == "more" else a - b
        return (a, b, 0), ((a, "+" if kind == "more" else "-", b), (a, "+", s))
    if kind == "twice":
        a = rng.randint(2, 30)
        return (a, 2, 0), ((2, "x", a), (a, "+", 2 * a))
    raise ValueError(f"unknown kind of word problem {kind!r}")


def calculate(a, op, b):
    return {"+": a + b, "-": a - b, "x": a * b, "/": a // b if b else 0}[op]


def word_problem(rng):
    kind, text, reply = rng.choice(SKELETONS)
    while True:
        (a, b, c), steps = problem_numbers(rng, kind)
        results = [calculate(*step) for step in steps]
        if min(results) >= 2 and min(a, b) >= 2:
            break
    boy, other_boy = rng.random() < 0.5, rng.random() < 0.5
    name = rng.choice(BOYS if boy else GIRLS)
    other = rng.choice([n for n in (BOYS if other_boy else GIRLS) if n != name])
    place = rng.choice(SPOTS)
    slots = {"A": name, "B": other, "he": "he" if boy else "she", "He": "He" if boy else "She",
             "his": "his" if boy else "her",
             "him": "him" if boy else "her", "o": rng.choice(THINGS), "f": rng.choice(FOODS),
             "baked": rng.choice(BAKED),
             "picked": rng.choice(PICKED), "place": place,
             "place_cap": place[0].upper() + place[1:], "box": rng.choice(BOXES), "item": rng.choice(ITEMS),
             "animal": rng.choice(ANIMALS), "a": a, "b": b, "c": c, "r": results[-1]}
    if slots["o"] == slots["box"]:
        slots["box"] = "jars"
    question, answer = text.format(**slots), reply.format(**slots)
    worked_steps = " ".join(f"{x} {op} {y} = {r}." for (x, op, y), r in zip(steps, results))
    how = {"+": "Add", "-": "Subtract", "x": "Multiply", "/": "Divide"}
    first, last = how[steps[0][1]], how[steps[-1][1]]
    plan = first if len(steps) == 1 else f"{first} twice" if first == last else f"{first}, then {last.lower()}"
    plain = answer if len(steps) == 1 and rng.random() < 0.25 else f"{worked_steps} {answer}"
    return Problem(question, f"{plan}. {worked_steps}", answer, plain, steps)
