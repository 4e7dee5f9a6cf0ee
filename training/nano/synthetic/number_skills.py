"""Problems beyond the plain sum: tables, percentages, number sense, lists, money, time and units."""


from .sums import BANKS, EXPRESSION_ORDERS, EXPRESSION_QUESTIONS, PLACES, Problem, decorate, number_words, wrap_order


# ---- products, tables, percentages ----------------------------------------------------------------------------------


def split_product(a, b):
    """a x b for a two-digit a: the tens and the ones apart; returns the thought and the sum inside it."""
    tens, ones = a // 10 * 10, a % 10
    if not ones:
        return f"{a // 10} x {b} = {a // 10 * b}, so {a} x {b} = {a * b}.", ()
    thought = f"{tens} x {b} = {tens * b}. {ones} x {b} = {ones * b}. {tens * b} + {ones * b} = {a * b}."
    return thought, ((tens * b, "+", ones * b),)


def product(rng):
    if rng.random() < 0.7:
        a, b = rng.randint(0, 12), rng.randint(0, 12)
        thought, facts = f"This is in the times tables. {a} x {b} = {a * b}.", ()
    else:
        a, b = rng.randint(13, 99), rng.randint(2, 9)
        thought, facts = split_product(a, b)
    e = rng.choice((f"{a} x {b}", f"{a} x {b}", f"{a} * {b}", f"{a}*{b}", f"{a}x{b}", f"{a} times {b}",
                    f"{a} times {b}",
                    f"{a} multiplied by {b}"))
    roll = rng.random()
    if roll < 0.6:
        question = rng.choice(EXPRESSION_QUESTIONS).format(e=e)
    elif roll < 0.8:
        question = wrap_order(rng, rng.choice(EXPRESSION_ORDERS).format(e=e))
    else:
        question = rng.choice((
            f"What is the product of {a} and {b}?", wrap_order(rng, f"multiply {a} by {b}"),
            wrap_order(rng, f"multiply {a} and {b}"),
            f"What do you get when you multiply {a} by {b}?", f"If I multiply {a} and {b}, what do I get?"))
    answer = f"{a} x {b} = {a * b}."
    return Problem(decorate(rng, question), thought, answer, answer, facts)


def quotient(rng):
    b, r = rng.randint(1, 12), rng.randint(1, 12)
    a = b * r
    e = rng.choice((f"{a} / {b}", f"{a}/{b}", f"{a} divided by {b}", f"{a} divided by {b}"))
    if rng.random() < 0.7:
        question = rng.choice(EXPRESSION_QUESTIONS).format(e=e)
    else:
        question = rng.choice((wrap_order(rng, f"divide {a} by {b}"), f"How many times does {b} go into {a}?",
                               f"How many {number_words(b)}s are in {a}?" if b in (1, 2, 3, 4, 5, 7, 8, 9, 10)
                               else f"Split {a} into {b} equal parts.",
                               f"What do you get when you divide {a} by {b}?"))
    answer = f"{a} / {b} = {r}."
    return Problem(decorate(rng, question), f"{b} x {r} = {a}, so {a} / {b} = {r}.", answer, answer)


def remainder(rng):
    b, q = rng.randint(2, 9), rng.randint(1, 9)
    left = rng.randint(0, b - 1)
    a = b * q + left
    question = rng.choice((f"What is the remainder when {a} is divided by {b}?", f"What is the remainder of {a} / {b}?",
                           f"Divide {a} by {b} and give the remainder."))
    thought = f"{b} x {q} = {b * q}. {a} - {b * q} = {left}."
    return Problem(question, thought, f"The remainder is {left}.", f"{b} x {q} = {b * q}, so the remainder is {left}.",
                   ((a, "-", b * q),))


def scaled(rng):
    """Halves, doubles, triples and squares."""
    kind = rng.choice(("double", "half", "triple", "square", "root"))
    n = rng.randint(1, 60)
    if kind == "double":
        question = rng.choice(("What is double {n}?", "Double {n}.", "What is twice {n}?", "Can you double {n}?",
                               "How much is two times {n}?"))
        return Problem(decorate(rng, question.format(n=n)), f"Double means times 2. 2 x {n} = {2 * n}.",
                       f"Double {n} is {2 * n}.",
                       f"2 x {n} = {2 * n}.", ((n, "+", n),))
    if kind == "half":
        question = rng.choice(("What is half of {n}?", "Halve {n}.", "How much is half of {n}?",
                               "Can you give me half of {n}?", "What's half of {n}?"))
        return Problem(decorate(rng, question.format(n=2 * n)), f"Half means divide by 2. {2 * n} / 2 = {n}.",
                       f"Half of {2 * n} is {n}.",
                       f"Half of {2 * n} is {n}.", ((n, "+", n),))
    if kind == "triple":
        n = rng.randint(1, 30)
        question = rng.choice(("What is triple {n}?", "Triple {n}.", "What is three times {n}?"))
        return Problem(decorate(rng, question.format(n=n)), f"Triple means times 3. 3 x {n} = {3 * n}.",
                       f"3 x {n} = {3 * n}.", f"3 x {n} = {3 * n}.")
    n = rng.randint(1, 20)
    if kind == "square":
        question = rng.choice(("What is {n} squared?", "What is the square of {n}?", "Square {n}.", "{n} squared?",
                               "What is {n}^2?", "{n}^2 = ?"))
        return Problem(decorate(rng, question.format(n=n)), f"{n} squared is {n} x {n} = {n * n}.",
                       f"{n} x {n} = {n * n}.", f"{n} x {n} = {n * n}.")
    question = rng.choice(("What is the square root of {m}?", "Square root of {m}?",
                           "Which number times itself is {m}?"))
    return Problem(decorate(rng, question.format(m=n * n)), f"{n} x {n} = {n * n}.",
                   f"The square root of {n * n} is {n}.",
                   f"{n} x {n} = {n * n}, so the square root of {n * n} is {n}.")


PARTS = {2: "half", 3: "a third", 4: "a quarter", 5: "a fifth", 10: "a tenth"}
PERCENTS = {50: (2, "half"), 25: (4, "a quarter"), 10: (10, "a tenth"), 20: (5, "a fifth"), 100: (1, "all")}


def percentage(rng):
    p = rng.choice((10, 10, 25, 50, 50, 20, 100))
    by, part = PERCENTS[p]
    r = rng.choice((rng.randint(1, 20), rng.randint(1, 9) * 10, rng.randint(1, 10)))
    n = r * by
    question = rng.choice((f"What is {p}% of {n}?", f"What is {p} percent of {n}?", f"How much is {p}% of {n}?",
                           f"{p}% of {n}?",
                           f"Calculate {p} percent of {n}.", f"Find {p}% of {n}.", f"Can you work out {p}% of {n}?"))
    thought = f"{p}% of something is all of it." if p == 100 else f"{p}% is {part}. {n} / {by} = {r}."
    answer = f"{p}% of {n} is {r}."
    return Problem(decorate(rng, question), thought, answer, answer)


def fraction(rng):
    by = rng.choice(tuple(PARTS))
    r = rng.randint(1, 12)
    n = by * r
    top = rng.choice((1, 1, by - 1)) if by > 2 else 1
    name = PARTS[by] if top == 1 else f"{top}/{by}"
    shown = rng.choice((name, f"{top}/{by}"))
    question = rng.choice((f"What is {shown} of {n}?", f"How much is {shown} of {n}?", f"Find {shown} of {n}.",
                           f"What's {shown} of {n}?"))
    thought = f"{n} / {by} = {r}." + (f" {top} x {r} = {top * r}." if top > 1 else "")
    answer = f"{name[0].upper() + name[1:]} of {n} is {top * r}."
    return Problem(decorate(rng, question), thought, answer, answer)


# ---- number sense ---------------------------------------------------------------------------------------------------


def any_number(rng):
    return rng.randint(0, rng.choice((9, 20, 99, 99, 999)))


def compare(rng):
    a, b = any_number(rng), any_number(rng)
    while a == b:
        b = any_number(rng)
    big, small = max(a, b), min(a, b)
    kind = rng.randrange(3)
    if kind == 0:
        question = rng.choice((f"Which is bigger, {a} or {b}?", f"Which number is larger: {a} or {b}?",
                               f"What is greater, {a} or {b}?",
                               f"Which is more, {a} or {b}?", f"Is {a} or {b} the bigger number?"))
        answer = f"{big} is bigger than {small}."
    elif kind == 1:
        question = rng.choice((f"Which is smaller, {a} or {b}?", f"Which number is less: {a} or {b}?",
                               f"What is less, {a} or {b}?"))
        answer = f"{small} is smaller than {big}."
    else:
        more = rng.random() < 0.5
        question = rng.choice(("Is {a} {w} than {b}?", "Is {a} a {w2} number than {b}?",
                               "True or false: {a} is {w} than {b}."))
        question = question.format(a=a, b=b, w="greater" if more else "less", w2="bigger" if more else "smaller")
        yes, no = ("True", "False") if question.startswith("True") else ("Yes", "No")
        answer = f"{yes if (a > b) == more else no}, {a} is {'greater' if a > b else 'less'} than {b}."
    if len(str(a)) != len(str(b)):
        thought = f"{big} has more digits than {small}, so {big} is bigger."
    else:
        place = next(i for i in range(len(str(a))) if str(a)[i] != str(b)[i])
        name = PLACES[len(str(a)) - 1 - place].lower()
        high, low = str(big)[place], str(small)[place]
        thought = f"Compare the {name}: {high} is more than {low}. So {big} is bigger than {small}."
    return Problem(decorate(rng, question), thought, answer, answer)


def neighbour(rng):
    n = rng.randint(1, rng.choice((30, 99, 99, 998)))
    if rng.random() < 0.5:
        question = rng.choice(("What number comes after {n}?", "What is the next number after {n}?",
                               "What comes right after {n}?", "Which number follows {n}?",
                               "What is one more than {n}?"))
        return Problem(decorate(rng, question.format(n=n)), f"One more than {n}: {n} + 1 = {n + 1}.",
                       f"{n + 1} comes after {n}.", f"{n + 1} comes after {n}.")
    question = rng.choice(("What number comes before {n}?", "What is the number before {n}?",
                           "What comes right before {n}?", "What is one less than {n}?"))
    return Problem(decorate(rng, question.format(n=n)), f"One less than {n}: {n} - 1 = {n - 1}.",
                   f"{n - 1} comes before {n}.", f"{n - 1} comes before {n}.")


def joined(numbers, last="and"):
    numbers = [str(n) for n in numbers]
    return numbers[0] if len(numbers) == 1 else ", ".join(numbers[:-1]) + f" {last} " + numbers[-1]


def counting(rng):
    step = rng.choice((1, 1, 2, 2, 3, 4, 5, 5, 10, 10))
    start = rng.choice((step, rng.randint(1, 20), rng.choice((10, 20, 30, 50))))
    length = rng.randint(4, 8)
    back = rng.random() < 0.25
    numbers = [start + i * step for i in range(length)]
    if back:
        numbers.reverse()
    a, z = numbers[0], numbers[-1]
    way = "down" if back else "up"
    by = "" if step == 1 else rng.choice((f" by {step}s", f" in steps of {step}", f" by {step}"))
    question = rng.choice((f"Count from {a} to {z}{by}.", f"Can you count{by} from {a} to {z}?",
                           f"Count {way} from {a} to {z}{by}.",
                           f"Please count{by} from {a} to {z}."))
    listing = ", ".join(map(str, numbers)) + "."
    sign = "less" if back else "more"
    return Problem(decorate(rng, question),
                   f"Each number is {step} {sign} than the one before. I start at {a} and stop at {z}.", listing,
                   listing)


def sequence(rng):
    step = rng.choice((1, 2, 3, 4, 5, 6, 10, 20, 100))
    start = rng.randint(1, 30)
    kind = rng.random()
    if kind < 0.7:
        numbers = [start + i * step for i in range(5)]
        why = f"Each number is {step} more. {numbers[3]} + {step} = {numbers[4]}."
        facts = ((numbers[3], "+", step),)
    elif kind < 0.85:
        numbers = [start + (5 - i) * step for i in range(5)]
        why = f"Each number is {step} less. {numbers[3]} - {step} = {numbers[4]}."
        facts = ((numbers[3], "-", step),)
    else:
        factor, first = rng.choice(((2, rng.randint(1, 6)), (3, rng.randint(1, 3)), (10, rng.randint(1, 3))))
        numbers = [first * factor**i for i in range(5)]
        why = f"Each number is {factor} times the one before. {numbers[3]} x {factor} = {numbers[4]}."
        facts = ()
    shown = ", ".join(map(str, numbers[:4]))
    question = rng.choice(("What comes next: {s}, ...?", "What is the next number: {s}?",
                           "Which number comes next? {s}, ?", "Continue: {s}, ...",
                           "Find the next number in the sequence {s}.", "What number follows {s}?"))
    return Problem(decorate(rng, question.format(s=shown)), why, f"The next number is {numbers[4]}.",
                   f"{why} The next number is {numbers[4]}.", facts)


def parity(rng):
    n = rng.randint(0, rng.choice((20, 99, 999)))
    kind = "even" if n % 2 == 0 else "odd"
    question = rng.choice((f"Is {n} even or odd?", f"Is {n} odd or even?", f"Is {n} an even number?",
                           f"Is {n} an odd number?",
                           f"Tell me if {n} is even or odd."))
    answer = f"{n} is {kind}."
    if " an even" in question or " an odd" in question:
        asked = "even" if " an even" in question else "odd"
        answer = f"{'Yes' if asked == kind else 'No'}, {n} is {kind}."
    return Problem(decorate(rng, question), f"The last digit of {n} is {n % 10}, which is {kind}. So {n} is {kind}.",
                   answer, answer)


def ordering(rng):
    top = rng.choice((9, 30, 99, 99, 999))
    numbers = rng.sample(range(1, top + 1), rng.randint(3, 5))
    shown = rng.choice((", ".join(map(str, numbers)), joined(numbers)))
    kind = rng.choice(("up", "up", "down", "max", "min"))
    low, high = min(numbers), max(numbers)
    if kind in ("up", "down"):
        words = ("from smallest to largest", "in order from smallest to largest", "in ascending order",
                 "from low to high") if kind == "up" else (
            "from largest to smallest", "in descending order", "from high to low")
        verb = rng.choice(("Sort these numbers {w}: {s}.", "Put these numbers {w}: {s}.", "Order {s} {w}.",
                           "Can you sort {s} {w}?", "Arrange {s} {w}."))
        question = verb.format(w=rng.choice(words), s=shown)
        result = ", ".join(map(str, sorted(numbers, reverse=kind == "down"))) + "."
        first = f"The smallest is {low} and the largest is {high}."
        return Problem(decorate(rng, question), first + (" I go up." if kind == "up" else " I go down."), result,
                       result)
    word, result = rng.choice((("largest", high), ("biggest", high),
                               ("highest", high))) if kind == "max" else rng.choice((("smallest", low),
                                                                                     ("lowest", low)))
    question = rng.choice(("What is the {w} number: {s}?", "Which of these is the {w}: {s}?", "Find the {w} of {s}.",
                           "Which number is the {w}? {s}",
                           "What is the {x} of {s}?")).format(w=word, s=shown,
                                                              x="maximum" if kind == "max" else "minimum")
    answer = f"The {word} is {result}."
    more = "more" if kind == "max" else "less"
    return Problem(decorate(rng, question),
                   f"I look at {', '.join(map(str, numbers))}. {result} is {more} than all the others.", answer, answer)


def rounding(rng):
    unit, top = rng.choice(((10, 99), (10, 999), (100, 999)))
    n = rng.randint(unit // 2, top)
    low = n // unit * unit
    result = (n + unit // 2) // unit * unit
    name = "ten" if unit == 10 else "hundred"
    question = rng.choice(("Round {n} to the nearest {m}.", "What is {n} rounded to the nearest {m}?",
                           "Can you round {n} to the nearest {m}?")).format(n=n, m=name)
    if n % unit == 0:
        thought = f"{n} is already a full {name}."
    else:
        way = "up" if result > low else "down"
        middle = low + unit // 2
        thought = f"{n} is between {low} and {low + unit}. The middle is {middle}, so it rounds {way} to {result}."
    answer = f"{n} rounded to the nearest {name} is {result}."
    return Problem(decorate(rng, question), thought, answer, answer)


def words_digits(rng):
    n = rng.randint(0, rng.choice((20, 99, 99, 999)))
    text = number_words(n)
    if rng.random() < 0.5:
        question = rng.choice((f"Write {n} in words.", f"How do you write {n} in words?", f"Spell the number {n}.",
                               f"How do you say {n} in English?",
                               f"What is {n} in words?"))
        answer = f"{n} in words is {text}."
    else:
        question = rng.choice((f"Write {text} as a number.", f"Write {text} in digits.", f"What is {text} in digits?",
                               f"Which number is {text}?"))
        answer = f"{text[0].upper() + text[1:]} is {n}."
    parts = [f"{n // 100 * 100} is {number_words(n // 100 * 100)}"] if n >= 100 else []
    rest = n % 100
    if rest or not parts:
        parts += [f"{rest} is {number_words(rest)}"]
    return Problem(decorate(rng, question), ", ".join(parts) + ".", answer, answer)


def place_value(rng):
    n = rng.randint(10, 999)
    i = rng.randrange(len(str(n)))
    name = PLACES[i].lower()
    d = n // 10**i % 10
    question = rng.choice((f"What is the {name} digit of {n}?", f"Which digit is in the {name} place in {n}?",
                           f"In {n}, what is the {name} digit?"))
    listing = ", ".join(f"{n // 10**k % 10} {PLACES[k].lower()}" for k in reversed(range(len(str(n)))))
    answer = f"The {name} digit of {n} is {d}."
    return Problem(question, f"{n} is {listing}.", answer, answer)


def average(rng):
    m, d = rng.randint(2, 20), rng.randint(0, 6)
    a, b = m - min(d, m - 1), m + min(d, m - 1)
    question = rng.choice((f"What is the average of {a} and {b}?", f"Find the average of {a} and {b}.",
                           f"What number is in the middle of {a} and {b}?"))
    thought = f"{a} + {b} = {a + b}. {a + b} / 2 = {m}."
    return Problem(decorate(rng, question), thought, f"The average of {a} and {b} is {m}.",
                   f"{thought} The average is {m}.", ((a, "+", b),))


# ---- words and lists ------------------------------------------------------------------------------------------------

WORDS = sorted(set((BANKS / "reasoning_words.txt").read_text(encoding="utf8").split()))


def spaced(word):
    return " ".join(word)


def letter_count(rng):
    word = rng.choice(WORDS)
    if rng.random() < 0.65:
        question = rng.choice(('How many letters are in the word "{w}"?', "How many letters does {w} have?",
                               'Count the letters in "{w}".',
                               "How many letters are there in {w}?", "How long is the word {w}?"))
        thought = "I count: " + ", ".join(f"{c} {i}" for i, c in enumerate(word, 1)) + "."
        answer = f'The word "{word}" has {len(word)} letters.'
        return Problem(decorate(rng, question.format(w=word)), thought, answer, f"{spaced(word)}: {len(word)} letters.")
    letter = rng.choice(word) if rng.random() < 0.85 else rng.choice("aeiou")
    times = word.count(letter)
    question = rng.choice(('How many times does "{c}" appear in "{w}"?', "How many {c}'s are in {w}?",
                           'Count the letter {c} in the word "{w}".'))
    thought = f"The letters are {spaced(word)}. The letter {letter} appears {times} time{'s' * (times != 1)}."
    answer = f'The letter {letter} appears {times} time{"s" * (times != 1)} in "{word}".'
    return Problem(question.format(w=word, c=letter), thought, answer, answer)


def list_length(rng):
    items = rng.sample(WORDS, rng.randint(2, 7))
    shown = ", ".join(items)
    question = rng.choice(("How many words are in this list: {s}?", "Count the words: {s}",
                           "How many items are here? {s}", "How many words do you see: {s}?",
                           "Count the items in this list: {s}."))
    thought = "I count: " + ", ".join(f"{w} {i}" for i, w in enumerate(items, 1)) + "."
    noun = "words" if "word" in question else "items"
    answer = f"There are {len(items)} {noun}."
    return Problem(question.format(s=shown), thought, answer, answer)
