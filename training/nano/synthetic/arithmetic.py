"""Arithmetic dialogues made by program: sums, differences, tables, time, money, units, word problems and follow-ups.

The tokenizer gives each digit its own token, so every answer restates the problem right before its result and every
thought works column by column in one fixed form. About 6 % of the two-digit additions and subtractions are held out
(see held_out_pair): no generator here ever shows one, so the evaluation can ask them.
"""

import hashlib
import re
from pathlib import Path
from typing import Iterator, NamedTuple

from nano import chatml

BANKS = Path(__file__).parent / "banks"
HELD_OUT_SHARE = 0.06
THINKING_SHARE = 0.55
SYSTEM_SHARE = 0.15
PLACES = ("Ones", "Tens", "Hundreds", "Thousands")

SYSTEM_PROMPTS = (
    "You are a helpful assistant.", "Answer briefly.", "You are a math helper.", "You are a careful calculator.",
    "Give short answers.", "You are Nano, a small and friendly assistant.", "You help with numbers.",
    "You are a patient math teacher.", "Be short and correct.", "Answer the question.", "Keep your answers short.",
    "You are a helpful tutor for school children.", "You answer math questions.", "Be accurate.",
    "You are a small assistant that runs on the user's own machine.",
)


class Problem(NamedTuple):
    """One question with its worked thought, its answers, and the sums it contains.

    plain is the answer without a thought before it: it may hold one more equation than answer, which follows a thought.
    facts lists each (a, op, b) the text works out, so that held-out sums can be kept away.
    """

    question: str
    thought: str
    answer: str
    plain: str
    facts: tuple = ()


# ---- held-out sums --------------------------------------------------------------------------------------------------


def held_out_pair(a: int, op: str, b: int) -> bool:
    """Whether a + b or a - b, both of two digits, is kept for the evaluation; the order of the two does not matter."""
    if op not in "+-" or not (10 <= a <= 99 and 10 <= b <= 99):
        return False
    key = f"{min(a, b)}{op}{max(a, b)}".encode()
    digest = hashlib.blake2b(key, digest_size=8, person=b"nano-arith").digest()
    return int.from_bytes(digest, "big") < HELD_OUT_SHARE * 2**64


# A lookahead finds overlapping pairs too, so that both sums of "12 + 34 + 56" are seen.
EQUATION = re.compile(r"(?<![\d.,:/])(?=(\d\d)(?: [A-Za-z%]+)? *(\+|-|plus|minus) *(\d\d)(?![\d:/])(?!\.\d)(?!,\d))")


def mentions_held_out(text: str) -> bool:
    """Whether the text spells out a held-out sum or difference in digits ("47 + 38", "$47 - $38", "47 plus 38")."""
    signs = {"plus": "+", "minus": "-"}
    return any(held_out_pair(int(found[1]), signs.get(found[2], found[2]), int(found[3]))
               for found in EQUATION.finditer(text.replace("$", "")))


# ---- worked sums ----------------------------------------------------------------------------------------------------


def add_steps(a, b):
    """47 + 38 as "Ones: 7 + 8 = 15, write 5, carry 1. Tens: 4 + 3 + 1 = 8."; one-digit sums need no steps."""
    width = max(len(str(a)), len(str(b)))
    if width == 1:
        return ""
    steps, carry = [], 0
    for i in range(width):
        parts = [str(n // 10**i % 10) for n in (a, b) if i < len(str(n))] + (["1"] if carry else [])
        total = sum(map(int, parts))
        text = f"{PLACES[i]}: {' + '.join(parts)}" + (f" = {total}" if len(parts) > 1 else "")
        carry = int(total > 9 and i + 1 < width)
        steps.append(text + (f", write {total % 10}, carry 1." if carry else "."))
    return " ".join(steps)


def sub_steps(a, b):
    """81 - 17 as "Ones: 1 is less than 7, borrow, 11 - 7 = 4. Tens: 8 - 1 - 1 = 6."; a must not be below b."""
    width = len(str(a))
    if width == 1 or a < 20 and b < 10:
        return ""
    steps, borrow = [], 0
    for i in range(width):
        top = a // 10**i % 10
        takes = ([b // 10**i % 10] if i < len(str(b)) else []) + ([1] if borrow else [])
        below = "".join(f" - {t}" for t in takes)
        left = top - sum(takes)
        if left < 0:
            step = f"{top} is less than {sum(takes)}, borrow, {top + 10}{below} = {left + 10}"
        else:
            step = f"{top}{below} = {left}" if takes else str(top)
        borrow = int(left < 0)
        steps.append(f"{PLACES[i]}: {step}.")
    return " ".join(steps)


def worked(a, op, b):
    """The whole thought for a + b or a - b."""
    if op == "+":
        steps, result = add_steps(a, b), a + b
    elif a >= b:
        steps, result = sub_steps(a, b), a - b
    else:
        steps = f"{a} is less than {b}, so the result is below zero. {sub_steps(b, a)} {b} - {a} = {b - a}."
        steps, result = steps.replace("  ", " "), a - b
    return f"{a} {op} {b}. {steps} So {a} {op} {b} = {result}." if steps else f"{a} {op} {b} = {result}."


def apply(a, op, b):
    return a + b if op == "+" else a - b


ONES = ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
        "seventeen eighteen nineteen").split()
TENS = "zero ten twenty thirty forty fifty sixty seventy eighty ninety".split()


def number_words(n):
    if n < 0:
        return "minus " + number_words(-n)
    if n < 20:
        return ONES[n]
    if n < 100:
        return TENS[n // 10] + ("-" + ONES[n % 10] if n % 10 else "")
    return ONES[n // 100] + " hundred" + (" " + number_words(n % 100) if n % 100 else "")


# ---- phrasing -------------------------------------------------------------------------------------------------------

OPENERS = ("Hi, ", "Hello. ", "Hey, ", "Hi there! ", "Quick question: ", "Quick one: ", "Math question: ", "Okay, ",
           "Next: ", "Please help: ", "One more: ", "I have a question. ", "Tell me, ", "So, ", "My homework says: ",
           "Simple math: ", "Let's do some math. ", "Excuse me, ", "Good morning. ", "Question: ")
CLOSERS = (" Thanks!", " Thank you.", " Thanks.", " Keep it short.", " Please be quick.", " Please keep it short.")
EXPRESSION_QUESTIONS = (
    "What is {e}?", "What is {e}?", "What's {e}?", "How much is {e}?", "What does {e} equal?", "{e} = ?", "{e}=?",
    "{e} =", "{e}", "{e}?", "What is the result of {e}?", "What is the answer to {e}?", "What's the answer to {e}?",
    "How much does {e} make?", "What do you get for {e}?", "What do I get for {e}?", "What number is {e}?",
    "Do you know what {e} is?", "Can you tell me what {e} is?", "Could you tell me what {e} is?",
    "I need to know what {e} is.", "Tell me what {e} is.", "Let me know what {e} is.", "What would {e} be?",
    "What does {e} come to?", "What is the value of {e}?", "What's {e} equal to?", "{e} equals what?", "{e} is what?",
    "How much would {e} be?", "I want to know {e}.", "What will {e} give me?", "what is {e}", "how much is {e}",
    "Any idea what {e} is?", "{e} makes how much?", "Give me {e}.", "Finish this: {e} =", "Work this out: {e}",
    "Solve this: {e}", "Compute this: {e}", "Can you solve this? {e}", "Please work this out: {e}", "Calculate: {e}",
)
EXPRESSION_ORDERS = ("calculate {e}", "compute {e}", "work out {e}", "solve {e}", "evaluate {e}", "find {e}",
                     "figure out {e}", "do {e}", "give me the result of {e}", "give me the answer to {e}",
                     "do the math for {e}", "tell me {e}")
ADD_QUESTIONS = (
    "What is the sum of {a} and {b}?", "What's the sum of {a} and {b}?", "What is the total of {a} and {b}?",
    "What do you get when you add {a} and {b}?", "What do you get if you add {a} to {b}?",
    "If I add {a} and {b}, what do I get?", "If you add {a} to {b}, what is the result?",
    "What is {a} increased by {b}?",
    "What do {a} and {b} add up to?", "What do {a} and {b} make together?", "How much is {a} and {b} together?",
    "How much are {a} and {b} in total?", "What number is {a} more than {b}?",
    "I have {a} and get {b} more. How many is that?",
    "What is {a} added to {b}?", "Sum of {a} and {b}?", "If I put {a} and {b} together, how many is that?",
    "What happens when I add {a} and {b}?", "Start with {a} and add {b}. What is it?",
    "what is {a} and {b} added together?",
)
ADD_ORDERS = ("add {a} and {b}", "add {a} to {b}", "add up {a} and {b}", "sum {a} and {b}",
              "find the sum of {a} and {b}",
              "add {a} and {b} together", "find the total of {a} and {b}", "add the numbers {a} and {b}",
              "add these: {a}, {b}", "calculate the sum of {a} and {b}", "put {a} and {b} together")
SUB_QUESTIONS = (
    "What do you get when you take {b} away from {a}?", "What do you get if you subtract {b} from {a}?",
    "If I take {b} from {a}, what is left?", "What is left when I take {b} away from {a}?",
    "What is {a} take away {b}?",
    "What is {a} less {b}?", "What is {a} decreased by {b}?", "What is {b} subtracted from {a}?",
    "If I have {a} and give away {b}, how many are left?", "What number is {b} less than {a}?",
    "What's {b} less than {a}?",
    "If you subtract {b} from {a}, what is the result?", "I have {a} and lose {b}. How many are left?",
    "What is {a} reduced by {b}?", "Start with {a} and take away {b}. What is left?", "How much is {a} without {b}?",
    "What happens when I take {b} from {a}?", "How much is left if I spend {b} out of {a}?",
)
DIFFERENCE_QUESTIONS = (
    "What is the difference between {a} and {b}?", "What's the difference between {a} and {b}?",
    "How much more is {a} than {b}?",
    "How much bigger is {a} than {b}?", "How far is it from {b} to {a}?", "What must I add to {b} to get {a}?",
    "How much do I add to {b} to reach {a}?",
)
SUB_ORDERS = ("subtract {b} from {a}", "take {b} away from {a}", "take {b} from {a}", "remove {b} from {a}",
              "find the difference between {a} and {b}", "deduct {b} from {a}", "calculate {a} take away {b}")
ORDER_WRAPS = ("{O}.", "{O}.", "{O}", "Please {o}.", "Can you {o}?", "Could you {o}?", "Can you please {o}?",
               "{O}, please.",
               "Could you please {o}?", "Would you {o}?", "I'd like you to {o}.", "Help me {o}.",
               "Can you help me {o}?",
               "I need you to {o}.", "Will you {o}?", "Now {o}.", "{O} for me.", "Can you {o} for me?", "Try to {o}.")


def wrap_order(rng, order):
    text = rng.choice(ORDER_WRAPS).format(o=order, O=order[0].upper() + order[1:])
    return text.replace(" for me", "") if " me " in order else text


def decorate(rng, text):
    """The same question as different people would type it: greetings, thanks, small letters, no full stop."""
    roll = rng.random()
    if roll < 0.12:
        opener = rng.choice(OPENERS)
        keep = opener.rstrip()[-1] in ".!" or re.match(r"I\b", text)
        text = opener + (text if keep else text[0].lower() + text[1:])
    elif roll < 0.20 and text[-1] in ".?!":
        text += rng.choice(CLOSERS)
    elif roll < 0.32:
        text = text[0].lower() + text[1:]
        if rng.random() < 0.5 and text[-1] in ".?":
            text = text[:-1]
    elif roll < 0.36 and text[-1] == ".":
        text = text[:-1]
    return text


def sum_question(rng, a, op, b, spelled=False):
    """One natural way to ask for a + b or a - b."""
    show = number_words if spelled else str
    word = {"+": "plus", "-": "minus"}[op]
    if spelled:
        expression = f"{show(a)} {word} {show(b)}"
    else:
        expression = rng.choice((f"{a} {op} {b}", f"{a} {op} {b}", f"{a}{op}{b}", f"{a} {word} {b}", f"{a} {word} {b}"))
    # "I have 3 and lose 8" makes no sense, so a result below zero is asked for as an expression.
    roll = rng.random() * (0.58 if op == "-" and a < b else 1)
    if roll < 0.42:
        text = rng.choice(EXPRESSION_QUESTIONS).format(e=expression)
    elif roll < 0.58:
        text = wrap_order(rng, rng.choice(EXPRESSION_ORDERS).format(e=expression))
    else:
        if op == "+":
            questions, orders = ADD_QUESTIONS, ADD_ORDERS
        else:
            questions, orders = SUB_QUESTIONS + (DIFFERENCE_QUESTIONS if a > b else ()), SUB_ORDERS
        if roll < 0.80:
            text = rng.choice(questions).format(a=show(a), b=show(b))
        else:
            text = wrap_order(rng, rng.choice(orders).format(a=show(a), b=show(b)))
    return decorate(rng, text)


# ---- addition and subtraction ---------------------------------------------------------------------------------------


def draw_pair(rng, op):
    """Mostly two-digit numbers, evenly spread; some smaller and some of three digits."""
    roll = rng.random()
    if roll < 0.68:
        a, b = rng.randint(10, 99), rng.randint(10, 99)
    elif roll < 0.78:
        a, b = rng.randint(10, 99), rng.randint(0, 9)
    elif roll < 0.86:
        a, b = rng.randint(0, 9), rng.randint(0, 9)
    elif roll < 0.93:
        a, b = rng.randint(100, 999), rng.randint(10, 99)
    else:
        a, b = rng.randint(100, 999), rng.randint(100, 999)
    if op == "-":
        return (max(a, b), min(a, b)) if rng.random() < 0.94 else (min(a, b), max(a, b))
    return (a, b) if rng.random() < 0.5 else (b, a)


def plain_sum(rng):
    op = rng.choice("+-")
    a, b = draw_pair(rng, op)
    result = apply(a, op, b)
    question = sum_question(rng, a, op, b, spelled=rng.random() < 0.04)
    equation = f"{a} {op} {b} = {result}"
    answer = rng.choice((f"{equation}.", f"{equation}.", f"{equation}.", f"{equation}", f"The answer is {result}."))
    plain = rng.choice((f"{equation}.", f"{equation}.", f"{equation}.", f"{equation}.", f"{equation}",
                        f"{equation}. The answer is {result}."))
    if rng.random() < 0.03:
        question = re.sub(r" (Thank.*|Keep.*|Please (be|keep).*)$", "", question)
        question += rng.choice((" Just the number.", " Only the number, please.", " Answer with the number only."))
        answer = plain = str(result)
    return Problem(question, worked(a, op, b), answer, plain, ((a, op, b),))


def bare_check(rng):
    """Is 47 + 38 equal to 85?"""
    op = rng.choice("+-")
    a, b = draw_pair(rng, op)
    if a < b and op == "-":
        a, b = b, a
    result = apply(a, op, b)
    claim = result if rng.random() < 0.5 else max(0, result + rng.choice((-10, -2, -1, 1, 2, 10)))
    question = rng.choice(("Is {e} equal to {c}?", "Is it true that {e} = {c}?", "Does {e} equal {c}?",
                           "Is {e} = {c} right?",
                           "I think {e} is {c}. Am I right?", "True or false: {e} = {c}", "Is {e} really {c}?"))
    question = question.format(e=f"{a} {op} {b}", c=claim)
    right = claim == result
    yes, no = ("True", "False") if question.startswith("True") else ("Yes", "No")
    answer = f"{yes if right else no}, {a} {op} {b} = {result}."
    return Problem(question, f"{worked(a, op, b)} {claim} is {'right' if right else 'wrong'}.", answer, answer,
                   ((a, op, b),))


def three_numbers(rng):
    a, b, c = (rng.randint(1, 9) if rng.random() < 0.5 else rng.randint(10, 40) for _ in range(3))
    s, r = a + b, a + b + c
    question = rng.choice((
        f"What is {a} + {b} + {c}?", f"Add {a}, {b} and {c}.", f"What is the sum of {a}, {b} and {c}?",
        f"{a}+{b}+{c}=?",
        f"How much is {a} plus {b} plus {c}?", f"What do {a}, {b} and {c} add up to?", f"{a} + {b} + {c} =",
        f"Can you add up {a}, {b} and {c}?", f"Find the total of {a}, {b} and {c}."))
    thought = f"{a} + {b} = {s}. {s} + {c} = {r}."
    return Problem(decorate(rng, question), thought, f"{a} + {b} + {c} = {r}.",
                   f"{a} + {b} = {s}, and {s} + {c} = {r}.",
                   ((a, "+", b), (s, "+", c)))


def equation(rng):
    a, x = rng.randint(1, 30), rng.randint(1, 40)
    letter = rng.choice("xxxyn")
    ask = rng.choice(("Solve {q}.", "What is {v} if {q}?", "Find {v}: {q}", "If {q}, what is {v}?",
                      "Solve for {v}: {q}",
                      "{q}. What is {v}?"))
    kind = rng.randrange(3)
    if kind == 0:
        b = a + x
        text = rng.choice((f"{letter} + {a} = {b}", f"{a} + {letter} = {b}"))
        thought, facts = f"{letter} = {b} - {a} = {x}.", ((b, "-", a), (a, "+", x))
    elif kind == 1:
        b = x
        x = a + b
        text, thought, facts = f"{letter} - {a} = {b}", f"{letter} = {b} + {a} = {x}.", ((b, "+", a), (x, "-", a))
    else:
        a, x = rng.randint(2, 12), rng.randint(2, 12)
        text, thought, facts = f"{a}{letter} = {a * x}", f"{letter} = {a * x} / {a} = {x}.", ()
    return Problem(ask.format(q=text, v=letter), thought, f"{letter} = {x}.", thought, facts)


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


# ---- money, time, units ---------------------------------------------------------------------------------------------

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


# ---- word problems --------------------------------------------------------------------------------------------------

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


# ---- conversations --------------------------------------------------------------------------------------------------

ADD_MORE = ("And if I add {n} more?", "Now add {n}.", "Add {n} to that.", "Plus {n}?", "And plus {n}?",
            "What if I add {n}?", "And {n} more?", "Now plus {n}.")
TAKE_AWAY = ("Now take away {n}.", "Subtract {n} from that.", "And minus {n}?", "What if I take {n} away?",
             "Now minus {n}.", "And if I remove {n}?")
DOUBLE = ("Now double it.", "Double that.", "And twice that?", "Can you double it?", "Times two?",
          "What is double that?")
HALVE = ("Now halve it.", "And half of that?", "What is half of that?", "Cut it in half.")


def follow_up(rng, value):
    """A next turn about the last result: question, thought, equation text, new value and the sum in it."""
    kinds = ["add", "add", "double"] + (["sub", "sub"] if value > 3
                                        else []) + (["halve"] if value % 2 == 0 and value > 1 else [])
    kind = rng.choice(kinds)
    if kind == "add":
        n = rng.randint(1, 30) if rng.random() < 0.7 else rng.choice((10, 20, 50))
        return rng.choice(ADD_MORE).format(n=n), worked(value, "+",
                                                        n), f"{value} + {n} = {value + n}.", value + n, (value, "+", n)
    if kind == "sub":
        n = rng.randint(1, min(30, value))
        return rng.choice(TAKE_AWAY).format(n=n), worked(value, "-",
                                                         n), f"{value} - {n} = {value - n}.", value - n, (value, "-", n)
    if kind == "double":
        text = f"2 x {value} = {2 * value}."
        return rng.choice(DOUBLE), f"The last result is {value}. {text}", text, 2 * value, (value, "+", value)
    half = value // 2
    text = f"{value} / 2 = {half}."
    return rng.choice(HALVE), f"The last result is {value}. {text}", text, half, (half, "+", half)


def running_total(rng):
    """A sum and one to three follow-ups about its result, as (turns, facts); a turn is (question, thought, answer)."""
    op = rng.choice("+-")
    a, b = draw_pair(rng, op)
    if op == "-" and a < b:
        a, b = b, a
    value = apply(a, op, b)
    turns = [(sum_question(rng, a, op, b), worked(a, op, b), f"{a} {op} {b} = {value}.")]
    facts = [(a, op, b)]
    for _ in range(rng.randint(1, 3)):
        question, thought, answer, value, fact = follow_up(rng, value)
        turns.append((question, thought, answer))
        facts.append(fact)
    return turns, facts


def drill(rng):
    """Several separate questions of one kind in a row."""
    skill = rng.choice((plain_sum, plain_sum, plain_sum, product, quotient, scaled, compare, calendar, units,
                        word_problem, time_shift))
    turns, facts = [], []
    for i in range(rng.randint(2, 4)):
        problem = skill(rng)
        question = problem.question
        if i and skill is plain_sum and rng.random() < 0.5:
            a, op, b = problem.facts[0]
            question = rng.choice(("And {e}?", "And what is {e}?", "What about {e}?", "Now {e}.",
                                   "{e}?")).format(e=f"{a} {op} {b}")
        turns.append((question, problem.thought, problem.plain))
        facts += problem.facts
    return turns, facts


# ---- dialogues ------------------------------------------------------------------------------------------------------

SKILLS = (
    (46, plain_sum), (2, bare_check), (2.5, three_numbers), (2, equation), (4.5, product), (2.5, quotient),
    (0.7, remainder), (2.5, scaled),
    (1.5, percentage), (1.2, fraction), (1.8, compare), (1, neighbour), (1, counting), (1.5, sequence), (1, parity),
    (1.7, ordering),
    (0.8, rounding), (1.2, words_digits), (0.6, place_value), (0.7, average), (1.2, letter_count), (0.6, list_length),
    (1.8, money),
    (1.5, time_shift), (1.5, calendar), (1.5, units), (11, word_problem),
)
CONVERSATIONS = ((4, running_total), (3, drill))
CONVERSATION_SHARE = 0.07


def weighted(rng, table):
    return rng.choices([item for _, item in table], [weight for weight, _ in table])[0]


def any_held_out(facts):
    return any(held_out_pair(*fact) for fact in facts if fact[1] in "+-")


def draw_turns(rng):
    """One conversation without held-out sums: its turns and, for a single problem, its answer after a thought."""
    while True:
        if rng.random() < CONVERSATION_SHARE:
            turns, facts = weighted(rng, CONVERSATIONS)(rng)
            final = turns[-1][2]
        else:
            problem = weighted(rng, SKILLS)(rng)
            turns, facts, final = [(problem.question, problem.thought, problem.plain)], problem.facts, problem.answer
        if not any_held_out(facts) and not any(mentions_held_out(text) for turn in turns for text in turn):
            return turns, final


def dialogue(rng):
    turns, final = draw_turns(rng)
    thinking = rng.random() < THINKING_SHARE
    messages = [{"role": "system", "content": rng.choice(SYSTEM_PROMPTS)}] if rng.random() < SYSTEM_SHARE else []
    for question, _, answer in turns:
        messages += [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
    if thinking:
        messages[-1] = {"role": "assistant", "reasoning_content": turns[-1][1], "content": final}
    return chatml.check({"messages": messages, "thinking": thinking, "domain": "arithmetic"})


def dialogues(rng, count: int) -> Iterator[dict]:
    """count arithmetic dialogues, all drawn from rng; none shows a held-out sum."""
    for _ in range(count):
        yield dialogue(rng)
