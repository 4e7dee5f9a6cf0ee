"""What every arithmetic dialogue rests on: held-out sums, sums worked column by column, and the ways to ask for one."""

import hashlib
import re
from pathlib import Path
from typing import NamedTuple

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
