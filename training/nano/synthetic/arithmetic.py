"""Arithmetic dialogues made by program: sums, differences, tables, time, money, units, word problems and follow-ups.

The tokenizer gives each digit its own token, so every answer restates the problem right before its result and every
thought works column by column in one fixed form. About 6 % of the two-digit additions and subtractions are held out
(sums.held_out_pair): no generator here ever shows one, so the evaluation can ask them.
"""

import re
from typing import Iterator

from nano import chatml
from .sums import (Problem, SYSTEM_PROMPTS, SYSTEM_SHARE, THINKING_SHARE, apply, decorate, held_out_pair,
                   mentions_held_out, sum_question, worked)
from .measures import calendar, money, time_shift, units
from .number_skills import (average, compare, counting, fraction, letter_count, list_length, neighbour, ordering,
                            parity, percentage, place_value, product, quotient, remainder, rounding, scaled, sequence,
                            words_digits)
from .word_problems import word_problem


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
