"""Dialogues about tiny programs: Python functions, what code prints, small repairs, how-tos, shell, SQL and HTML.

The authored solutions carry a test each; `python3 -m nano.synthetic.code` runs all of them, with the renamed variants.
What a snippet prints is found by running the generated snippet, never by guessing.
"""

import ast
import builtins
import contextlib
import io
import json
import lzma
import random
import re
import sys
import tokenize
from dataclasses import dataclass, replace
from pathlib import Path

from .. import chatml
from .fact import capital, held
from .facts import build

BANKS = Path(__file__).parent / "banks"
SAFE_BUILTINS = {name: getattr(builtins, name) for name in (
    "abs all any bin bool chr dict divmod enumerate filter float int isinstance len list map max min ord pow print "
    "range reversed round set sorted str sum tuple zip ValueError KeyError IndexError ZeroDivisionError "
    "__build_class__").split()}


@dataclass(frozen=True)
class Task:
    name: str
    wishes: tuple       # what the function does, in several words: "adds two numbers"
    code: str
    note: str
    test: str
    expected: str
    is_class: bool = False


def only_math(name, *_):
    if name != "math":
        raise ImportError(name)
    return __import__(name)


def namespace():
    """A fresh namespace for the snippets: harmless built-ins, and math as the only module."""
    return {"__builtins__": dict(SAFE_BUILTINS, __import__=only_math), "__name__": "snippet"}


def printed(code):
    """What the code prints when it is really run."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(code, namespace())
    return out.getvalue().rstrip("\n")


def passes(task):
    scope = namespace()
    exec(task.code, scope)
    return eval(task.test, scope) == eval(task.expected, namespace())


def read_tasks(path):
    tasks = []
    for part in re.split(r"^@ ", path.read_text(encoding="utf8"), flags=re.M)[1:]:
        head, rest = part.split("\n", 1)
        body, tail = rest.split("\n> ", 1)
        note, test = tail.strip().split("\n= ", 1)
        name, *wishes = head.split(" | ")
        is_class = wishes[0] == "class"
        expression, expected = test.rsplit(" -> ", 1)
        tasks.append(Task(name, tuple(wishes[is_class:]), body, note, expression, expected, is_class))
    return tasks


def read_columns(path):
    return [[cell.replace("\\n", "\n").replace("\\\n", "\\n") for cell in line.split(" ; ")]
            for line in path.read_text(encoding="utf8").splitlines() if line.strip()]


# ---- tasks with constants ----

def constant_task(rng):
    """A task with numbers or words drawn afresh: the same skill with other constants."""
    k, m = rng.randrange(2, 13), rng.randrange(2, 100)
    word = rng.choice("apple river music happy tiger window orange silver garden planet".split())
    letter = rng.choice("abcdefghilmnoprstw")
    choices = (
        ("add_" + str(k), f"adds {k} to a number", f"def add_{k}(n):\n    return n + {k}",
         f"It returns the number plus {k}.", f"add_{k}(10)", 10 + k),
        (f"times_{k}", f"multiplies a number by {k}", f"def times_{k}(n):\n    return n * {k}",
         f"It returns {k} times the number.", f"times_{k}(5)", 5 * k),
        ("is_divisible", f"checks if a number is divisible by {k}", f"def is_divisible(n):\n    return n % {k} == 0",
         f"The remainder by {k} must be zero.", f"(is_divisible({k * 4}), is_divisible({k * 4 + 1}))", (True, False)),
        ("is_greater", f"checks if a number is greater than {m}", f"def is_greater(n):\n    return n > {m}",
         f"It compares the number with {m}.", f"(is_greater({m}), is_greater({m + 1}))", (False, True)),
        ("count_above", f"counts the numbers in a list that are above {m}",
         f"def count_above(numbers):\n    return sum(1 for n in numbers if n > {m})",
         f"It counts one for every number above {m}.", f"count_above([{m - 1}, {m + 1}, {m + 2}])", 2),
        ("filter_above", f"keeps the numbers of a list that are above {m}",
         f"def filter_above(numbers):\n    return [n for n in numbers if n > {m}]",
         f"The list comprehension keeps numbers above {m}.", f"filter_above([{m - 1}, {m + 1}])", [m + 1]),
        ("first_multiples", f"returns the first {k} multiples of a number",
         f"def first_multiples(n):\n    return [n * i for i in range(1, {k + 1})]",
         f"It multiplies by 1 to {k}.", "first_multiples(2)[:2]", [2, 4]),
        ("multiples_of", f"returns the multiples of {k} up to n",
         f"def multiples_of(n):\n    return list(range({k}, n + 1, {k}))",
         f"The range starts at {k} and takes steps of {k}.", f"multiples_of({3 * k})", [k, 2 * k, 3 * k]),
        ("count_letter", f"counts the letter {letter} in a string",
         f'def count_letter(text):\n    return text.count("{letter}")',
         "The method count does the work.", f'count_letter("{letter}x{letter}")', 2),
        ("starts_with", f"checks if a string starts with {letter}",
         f'def starts_with(text):\n    return text.startswith("{letter}")',
         "The method startswith does the work.", f'starts_with("{letter}q")', True),
        ("has_word", f'checks if a text contains the word "{word}"',
         f'def has_word(text):\n    return "{word}" in text.split()',
         "It splits the text into words and looks for the word.", f'has_word("my {word} here")', True),
        ("first_items", f"returns the first {k} items of a list", f"def first_items(items):\n    return items[:{k}]",
         f"The slice stops before index {k}.", "first_items([1, 2, 3])[:1]", [1]),
        ("last_items", f"returns the last {k} items of a list", f"def last_items(items):\n    return items[-{k}:]",
         "A negative index counts from the end.", "last_items([1, 2, 3])[-1]", 3),
        ("long_words", f"returns the words longer than {k} letters",
         f"def long_words(words):\n    return [word for word in words if len(word) > {k}]",
         f"It keeps the words with more than {k} letters.", f'long_words(["a", "{"b" * (k + 1)}"])', ["b" * (k + 1)]),
        ("repeat", f"repeats a string {k} times", f"def repeat(text):\n    return text * {k}",
         "A string times a number repeats it.", 'repeat("a")', "a" * k),
        ("greet", f'returns "{capital(word)}" and a name',
         f'def greet(name):\n    return f"{capital(word)}, {{name}}!"',
         "An f-string puts the name into the text.", 'greet("Ann")', f"{capital(word)}, Ann!"),
        ("power_of", f"raises a number to the power of {k}", f"def power_of(n):\n    return n ** {k}",
         "The operator ** raises to a power.", "power_of(2)", 2 ** k),
        ("remainder", f"returns the remainder of a number divided by {k}", f"def remainder(n):\n    return n % {k}",
         "The operator % gives the remainder.", "remainder(100)", 100 % k),
        ("shift_all", f"adds {m} to every number in a list",
         f"def shift_all(numbers):\n    return [n + {m} for n in numbers]",
         f"The list comprehension adds {m} to each number.", "shift_all([1, 2])", [1 + m, 2 + m]),
        ("scale_all", f"multiplies every number in a list by {k}",
         f"def scale_all(numbers):\n    return [n * {k} for n in numbers]",
         f"The list comprehension multiplies each number by {k}.", "scale_all([1, 2])", [k, 2 * k]),
        ("price_with_tax", f"adds {m} percent tax to a price",
         f"def price_with_tax(price):\n    return price * {100 + m} / 100",
         f"The price with tax is {100 + m} percent of the price.", "price_with_tax(100)", 100.0 + m),
        ("in_range", f"checks if a number is between {k} and {k + m}",
         f"def in_range(n):\n    return {k} <= n <= {k + m}",
         "Python lets you chain comparisons.", f"(in_range({k}), in_range({k - 1}))", (True, False)),
    )
    name, wish, code, note, test, expected = rng.choice(choices)
    return Task(name, (wish,), code, note, test, repr(expected))


# ---- variants ----

RENAMINGS = {
    "numbers": ["nums", "values", "data"], "number": ["num", "value", "x"], "items": ["values", "elements", "lst"],
    "item": ["element", "x", "value"], "text": ["s", "string", "sentence"], "n": ["number", "x", "num"],
    "total": ["result", "acc", "s"], "result": ["answer", "out", "res"], "count": ["total", "counter"],
    "d": ["data", "mapping", "table"], "word": ["w", "token"], "words": ["tokens", "word_list"],
    "c": ["char", "letter", "ch"],
    "i": ["k", "j"], "first": ["left", "a"], "second": ["right", "b"], "target": ["wanted", "goal"],
    "counts": ["freq", "table"],
    "largest": ["best", "biggest"], "smallest": ["lowest", "least"]}
HINTS = {"numbers": "list", "items": "list", "text": "str", "n": "int", "words": "list", "name": "str", "word": "str",
         "year": "int", "d": "dict", "a": "int", "b": "int"}


def rename(code, old, new):
    return re.sub(rf"(?<![.\w]){old}(?!\w)", new, code)


def variant(rng, task):
    """The task with other variable names, and now and then a docstring, hints or another function name."""
    code, test, name = task.code, task.test, task.name
    words = set(re.findall(r"\w+", " ".join(task.wishes) + " " + task.note))
    if not task.is_class and rng.random() < 0.5:
        pair = rng.choice([("x", "y"), ("first", "second"), ("left", "right"), ("num1", "num2")])
        known = set(re.findall(r"\w+", code))
        if {"a", "b"} <= known and not known & {*pair, "c"} and not words & {"b"} and '"a"' not in code:
            code = rename(rename(code, "a", pair[0]), "b", pair[1])
        for old, options in RENAMINGS.items():
            new = rng.choice(options)
            known = set(re.findall(r"\w+", code))
            # A one-letter name that the sentences mention must stay, or they would no longer fit the code.
            if old in known and new not in known and not (len(old) == 1 and old in words
                                                          | {"c"} & known & ({"c"} if {"a", "b"} & known
                                                                  else set())) and old != name and rng.random() < 0.5:
                code = rename(code, old, new)
    if not task.is_class and rng.random() < 0.06:
        head = re.search(r"def \w+\(([^()=*]*)\):", code)
        if head and head.group(1):
            hinted = ", ".join(p + (f": {HINTS[p]}" if p in HINTS else "") for p in head.group(1).split(", "))
            code = code[:head.start(1)] + hinted + code[head.end(1):]
    if not task.is_class and rng.random() < 0.15:
        new = rng.choice(["my_", "do_", "get_", "compute_"]) + name
        code, test, name = rename(code, name, new), rename(test, name, new), new
    return replace(task, code=code, test=test, name=name)


def with_docstring(task):
    text = capital(task.wishes[0])
    return re.sub(r"(def [^\n]*:\n)( +)", lambda m: f'{m.group(1)}{m.group(2)}"""{text}."""\n{m.group(2)}', task.code,
                  count=1)


def simple_call(task):
    return task.test.startswith(task.name + "(") and " for " not in task.test and "[:" not in task.test


def block(code, language="python"):
    return f"```{language}\n{code}\n```"


FUNCTION_REQUESTS = (
    "Write a Python function that {}.", "Write a function that {}.", "Can you write a Python function that {}?",
    "I need a Python function that {}.", "Please write a Python function that {}.",
    "Show me a Python function that {}.",
    "Give me a function in Python that {}.", "Create a Python function that {}.", "How do I write a function that {}?",
    "Help me write a Python function that {}.", "Python: a function that {}.", "Could you code a function that {}?",
    "Make a small Python function that {}.", "I want a function that {}. Can you write it in Python?")
NAMED_REQUESTS = ("Write a Python function called {n} that {w}.", "Write a function `{n}` that {w}.",
                  "Define a Python function {n} which {w}.", "Please implement {n}, a function that {w}.")
CLASS_REQUESTS = ("Write {} in Python.", "Show me {}.", "Can you write {}?", "Create {} in Python.",
                  "I need {} in Python.")
LEADS = ("Here is the function:", "Here you go:", "Sure, here is the code:", "This function does it:",
         "Here is one way:")


def request_for(rng, task, original):
    wish = rng.choice(task.wishes)
    if task.is_class:
        return rng.choice(CLASS_REQUESTS).format(wish), wish
    if task.name != original or rng.random() < 0.25:
        return rng.choice(NAMED_REQUESTS).format(n=task.name, w=wish), wish
    return rng.choice(FUNCTION_REQUESTS).format(wish), wish


def answer_with(rng, code, note, lead=LEADS):
    parts = [block(code)]
    if rng.random() < 0.3:
        parts.insert(0, rng.choice(lead))
    if rng.random() < 0.45:
        parts.append(note)
    return "\n\n".join(parts)


def function_turns(rng, task):
    """A request with its solution and thought, sometimes with a second turn about the same code."""
    changed = variant(rng, task)
    question, wish = request_for(rng, changed, task.name)
    code = changed.code
    if not task.is_class and rng.random() < 0.12:
        code = with_docstring(changed)
    elif simple_call(changed) and rng.random() < 0.15:
        code += f"\n\nprint({changed.test})  # {eval(task.expected, namespace())}"
    subject = wish if task.is_class else f"a function that {wish}"
    thought = rng.choice([f"The user wants {subject}. {task.note}", f"I need {subject}. {task.note}",
                          f"Task: {subject}. Idea: {task.note}", f"{task.note} That is all the code needs."])
    turns = [(question, answer_with(rng, code, task.note, LEADS[1:3] if task.is_class else LEADS))]
    roll = rng.random()
    if roll < 0.05:
        turns.append((rng.choice(["Can you explain it?", "How does it work?", "Explain the code, please."]), task.note))
        thought = "The user wants to know how the code works."
    elif roll < 0.09 and simple_call(changed):
        value = eval(task.expected, namespace())
        turns.append((rng.choice(["How do I call it?", "Show me how to use it.", "Can you give an example?"]),
                      block(f"print({changed.test})  # {value}")))
        thought = f"An example call is {changed.test}, which gives {value}."
    elif roll < 0.12 and not task.is_class:
        turns.append((rng.choice(["Add a docstring, please.", "Can you add a docstring?"]),
                      block(with_docstring(changed))))
        thought = "I put a docstring under the first line of the function."
    return turns, thought


# ---- what does it print ----

def snippet(rng):
    """A tiny program and a short trace that leads to its output."""
    a, b, c = rng.randrange(1, 20), rng.randrange(1, 20), rng.randrange(2, 6)
    numbers = [rng.randrange(1, 30) for _ in range(rng.randrange(3, 6))]
    word = rng.choice("cat apple python river hello moon garden table music tiger".split())
    fruits = rng.sample(["apple", "pear", "plum", "fig", "kiwi", "lemon"], 3)
    x, y = rng.sample(["x", "y", "a", "b", "n", "m", "k"], 2)
    kinds = (
        (f"{x} = {a}\n{y} = {b}\nprint({x} + {y})", f"{a} + {b} = {a + b}."),
        (f"{x} = {a}\n{y} = {b}\nprint({x} * {y})", f"{a} * {b} = {a * b}."),
        (f"{x} = {a}\n{x} = {x} + {b}\nprint({x})", f"{x} starts at {a} and becomes {a} + {b} = {a + b}."),
        (f"{x} = {a}\n{x} += {b}\n{x} -= {c}\nprint({x})", f"{a} + {b} = {a + b}, then {a + b} - {c} = {a + b - c}."),
        (f"print({a} > {b})", f"I compare {a} with {b}: {a} > {b} is {a > b}."),
        (f"print({a + b} % {c})",
         f"{a + b} = {(a + b) // c} * {c} + {(a + b) % c}, so the remainder is {(a + b) % c}."),
        (f"print({a + b} // {c})", f"{a + b} divided by {c} is {(a + b) // c} without the rest."),
        (f"print({c} ** 2)", f"{c} ** 2 is {c} * {c} = {c * c}."),
        (f"numbers = {numbers}\nprint(len(numbers))", f"The list has {len(numbers)} items."),
        (f"numbers = {numbers}\nprint(max(numbers))", f"The largest number is {max(numbers)}."),
        (f"numbers = {numbers}\nprint(min(numbers))", f"The smallest number is {min(numbers)}."),
        (f"numbers = {numbers[:3]}\nprint(sum(numbers))", f"{' + '.join(map(str, numbers[:3]))} = {sum(numbers[:3])}."),
        (f"numbers = {numbers}\nprint(sorted(numbers))", f"Sorted from small to large: {sorted(numbers)}."),
        (f"numbers = {numbers}\nprint(numbers[0])", f"Index 0 is the first item: {numbers[0]}."),
        (f"numbers = {numbers}\nprint(numbers[-1])", f"Index -1 is the last item: {numbers[-1]}."),
        (f"numbers = {numbers}\nprint(numbers[1:3])", f"The slice takes index 1 and 2: {numbers[1:3]}."),
        (f"numbers = {numbers}\nnumbers.append({a})\nprint(numbers)", f"The number {a} goes to the end."),
        (f"fruits = {fruits}\nfor fruit in fruits:\n    print(fruit)", "The loop prints each item on its own line."),
        (f"fruits = {fruits}\nprint(fruits[{c % 3}])",
         f"Index {c % 3} holds {fruits[c % 3]}, since counting starts at 0."),
        (f"fruits = {fruits}\nprint(\", \".join(fruits))", "The items are joined with a comma and a space."),
        (f"for i in range({c}):\n    print(i)", f"The loop runs from 0 to {c - 1}."),
        (f"for i in range(1, {c + 1}):\n    print(i * {b})", f"The loop prints {b} times 1 to {c}."),
        (f"{x} = {c}\nwhile {x} > 0:\n    print({x})\n    {x} -= 1", f"It counts down from {c} to 1."),
        (f"total = 0\nfor i in range(1, {c + 1}):\n    total += i\nprint(total)",
         f"{' + '.join(str(i) for i in range(1, c + 1))} = {sum(range(1, c + 1))}."),
        (f'word = "{word}"\nprint(len(word))', f'"{word}" has {len(word)} letters.'),
        (f'word = "{word}"\nprint(word.upper())', "The method upper makes capital letters."),
        (f'word = "{word}"\nprint(word[0])', f"Index 0 is the first letter: {word[0]}."),
        (f'word = "{word}"\nprint(word[::-1])', "The slice [::-1] reverses the word."),
        (f'word = "{word}"\nprint(word * {min(c, 3)})', f"The word is repeated {min(c, 3)} times."),
        (f'name = "{capital(word)}"\nprint(f"Hello, {{name}}!")', f"The f-string puts {capital(word)} into the text."),
        (f"{x} = {a}\nif {x} > {b}:\n    print(\"big\")\nelse:\n    print(\"small\")", f"{a} > {b} is {a > b}."),
        (f"{x} = {a}\nif {x} % 2 == 0:\n    print(\"even\")\nelse:\n    print(\"odd\")", f"{a} % 2 is {a % 2}."),
        (f"ages = {{\"Anna\": {a}, \"Ben\": {b}}}\nprint(ages[\"{'Anna' if a % 2 else 'Ben'}\"])",
         f"The key {'Anna' if a % 2 else 'Ben'} holds {a if a % 2 else b}."),
        (f"def double(n):\n    return n * 2\n\nprint(double({a}))", f"{a} * 2 = {a * 2}."),
        (f"def add(a, b):\n    return a + b\n\nprint(add({a}, {b}))", f"{a} + {b} = {a + b}."),
        (f"squares = [n * n for n in range(1, {c + 1})]\nprint(squares)", f"The squares of 1 to {c}."),
        (f"print([n for n in {numbers} if n % 2 == 0])",
         f"Only the even numbers stay: {[n for n in numbers if n % 2 == 0]}."),
        (f"print({b} in {numbers})", f"{b} is {'in' if b in numbers else 'not in'} the list."),
        (f"{x}, {y} = {a}, {b}\n{x}, {y} = {y}, {x}\nprint({x}, {y})",
         f"The two values are swapped: first {b}, then {a}."),
        (f"print(\"{a}\" + \"{b}\")", "Both are strings, so they are put together."),
        (f"print(str({a}) + \"{word}\")", "The number becomes text and the word follows."),
        (f"print(not {a > b})", f"The opposite of {a > b} is {not a > b}."),
    )
    return rng.choice(kinds)


def print_turns(rng):
    code, trace = snippet(rng)
    output = printed(code)
    question = rng.choice(["What does this code print?", "What is the output of this code?",
                           "What will this Python code print?",
                           "What does this program output?", "Tell me the output:"])
    many = "\n" in output
    answer = ("It prints:\n\n" + block(output, "")) if many else rng.choice([f"It prints `{output}`.",
            f"The output is `{output}`.", f"It prints `{output}`."])
    if not many and rng.random() < 0.3:
        answer += " " + trace
    return [(f"{question}\n\n{block(code)}", answer)], trace


# ---- repairs, explanations, loops ----

def broken(rng, code):
    """The code with one usual mistake, and what it is; None where the drawn mistake does not fit."""
    lines = code.split("\n")
    head = next(i for i, line in enumerate(lines) if line.startswith(("def ", "class ")))
    kind = rng.randrange(7)
    if kind == 0:
        word = lines[head].split(" ", 1)[0]
        wrong = lines[:head] + [lines[head].rstrip(":")] + lines[head + 1:]
        return "\n".join(wrong), f"The colon at the end of the first {word} line is missing."
    if kind == 1 and "return " in code:
        return code.replace("return ", rng.choice(["retrun ", "retun ", "Return "]),
                            1), "The word return is misspelled."
    if kind == 2 and re.search(r"if [^\n]*==", code):
        return re.sub(r"(if [^\n]*?)==", r"\1=", code, count=1), "A comparison needs == instead of =."
    if kind == 3 and lines[-1].endswith(")") and lines[-1].count("(") == lines[-1].count(")"):
        return code[:-1], "A closing bracket is missing in the last line."
    if kind == 4 and lines[head].startswith("def ") and not code.count("\n    def"):
        return "\n".join(lines[:head + 1] + [lines[head + 1].strip()]
                         + lines[head + 2:]), "The line after the def line must be indented."
    if kind == 5 and lines[head].startswith("def "):
        return "\n".join(lines[:head] + [lines[head].replace("def ", rng.choice(["function ", "fun ", "define "]), 1)]
                         + lines[head + 1:]), "A Python function starts with def."
    if kind == 6 and re.search(r"for \w+ in ", code) and "\n    for" in code:
        return re.sub(r"(\n    for [^\n]*):", r"\1", code, count=1), "The colon after the for line is missing."
    return None


def fix_turns(rng, tasks):
    while True:
        task = variant(rng, rng.choice(tasks))
        mistake = broken(rng, task.code)
        if mistake and mistake[0] != task.code:
            wrong, reason = mistake
            question = rng.choice(["Fix this code:", "What is wrong with this code?",
                                   "This code does not work. Can you fix it?",
                                   "Find the error:", "Please correct this Python code:"])
            return [(f"{question}\n\n{block(wrong)}",
                     f"{reason} Here is the fixed code:\n\n{block(task.code)}")], f"I look for the mistake. {reason}"


def explain_turns(rng, tasks):
    task = variant(rng, rng.choice([task for task in tasks if not task.is_class]))
    wish = task.wishes[0]
    verb = "This function " + wish + "." if not wish.startswith("is a") else "This " + wish[3:] + "."
    question = rng.choice(["What does this code do?", "Explain this code:", "Explain this function in one sentence.",
                           "What is this function for?",
                           "Can you tell me what this code does?"])
    answer = verb if rng.random() < 0.6 else f"{verb} {task.note}"
    return [(f"{question}\n\n{block(task.code)}", answer)], f"I read the code. {task.note}"


def loop_turns(rng):
    a, k = rng.randrange(0, 6), rng.randrange(2, 11)
    b = a + rng.randrange(3, 20)
    things = rng.sample(["red", "green", "blue", "cat", "dog", "bird", "tea", "milk", "Anna", "Ben"], 3)
    choices = (
        (f"prints the numbers from {a} to {b}", f"for i in range({a}, {b + 1}):\n    print(i)",
         f"The range ends before {b + 1}."),
        (f"counts down from {b} to 1", f"for i in range({b}, 0, -1):\n    print(i)", "The step of -1 counts down."),
        (f"prints the even numbers from 0 to {2 * b}", f"for i in range(0, {2 * b + 1}, 2):\n    print(i)",
         "The step of 2 gives even numbers."),
        (f"prints the odd numbers below {2 * b}", f"for i in range(1, {2 * b}, 2):\n    print(i)",
         "It starts at 1 and takes steps of 2."),
        (f"adds the numbers from 1 to {b}", f"total = 0\nfor i in range(1, {b + 1}):\n    total += i\nprint(total)",
         f"The total is {sum(range(1, b + 1))}."),
        (f"prints the times table of {k}", f"for i in range(1, 11):\n    print({k} * i)",
         f"It multiplies {k} by 1 to 10."),
        (f"prints each item of the list {things}", f"for item in {things}:\n    print(item)",
         "A for loop walks over the list."),
        (f'prints "{things[0]}" {k} times', f'for _ in range({k}):\n    print("{things[0]}")',
         f"The range runs {k} times."),
        (f"prints the squares of 1 to {k}", f"for i in range(1, {k + 1}):\n    print(i * i)",
         "Each number is multiplied by itself."),
        (f"prints a triangle of {k} lines of stars", f'for i in range(1, {k + 1}):\n    print("*" * i)',
         "Line i has i stars."),
        (f"doubles a number until it is above {b * 10}", f"n = 1\nwhile n <= {b * 10}:\n    n *= 2\nprint(n)",
         "A while loop runs as long as the condition is true."),
        (f'prints the letters of "{things[1]}"', f'for letter in "{things[1]}":\n    print(letter)',
         "A for loop walks over the letters."),
        (f"prints the numbers from 1 to {b} that {k} divides",
         f"for i in range(1, {b + 1}):\n    if i % {k} == 0:\n        print(i)", f"The remainder by {k} must be zero."),
    )
    wish, code, note = rng.choice(choices)
    question = rng.choice(["Write a loop that {}.", "Write a Python loop that {}.", "Show me a loop in Python that {}.",
                           "Can you write a loop that {}?"])
    return [(question.format(wish), answer_with(rng, code, note,
                                                LEADS[1:3]))], f"The user wants a loop that {wish}. {note}"


def howto_turns(rng, rows):
    wish, note, code = rng.choice(rows)
    language = "bash" if code.startswith(("pip ", "python3 ")) else "python"
    question = rng.choice(["How do I {} in Python?", "How can I {} in Python?", "How do you {} in Python?",
                           "Python: how to {}?",
                           "What is the Python code to {}?", "Show me how to {} in Python.",
                           "I want to {} in Python. How?",
                           "In Python, how do I {}?"])
    answer = f"{note}\n\n{block(code, language)}" if rng.random() < 0.75 else block(code, language)
    return [(question.format(wish), answer)], rng.choice([f"The user wants to {wish} in Python. {note}",
                                                          f"To {wish}: {note}"])


def other_turns(rng, rows):
    language, wish, code = rng.choice(rows)
    tag = {"shell": "bash", "SQL": "sql", "HTML": "html"}[language]
    where = {"shell": "in the terminal", "SQL": "in SQL", "HTML": "in HTML"}[language]
    question = rng.choice(["How do I {} {}?", "How can I {} {}?", "Show me how to {} {}.", "What do I write to {} {}?",
                           "I want to {} {}."])
    thought = rng.choice([f"The user wants to {wish}. The language is {language}.",
                          f"This is a {language} question: {wish}."])
    return [(question.format(wish, where), block(code, tag))], thought

OBSCURE = re.compile(
    r"(?i)\b(bell number|catalan|newman|woodall|carol|jacobsthal|lucas|perrin|tetrahedral|octagonal|nonagonal|"
    r"hexagonal|pentagonal|polygonal|decagonal|centered|star number|dodecahedron|eulerian|stirling|harmonic|lps|lis|"
    r"subsequence|dp|bitonic|sublist|knapsack|domino|smart number|rencontres|entringer|delannoy|lateral surface|"
    r"minimum jumps|regex|regular expression|nth|k'th|permutation|coefficient|bit|bitwise|equilibrium|polar)\b")
FOREIGN = re.compile(
    r"\b(requests|urllib|http|tensorflow|keras|selenium|password|pandas|numpy|matplotlib|tkinter|sklearn|nltk|flask|"
    r"django|bs4|cv2|torch|PIL|smtplib|socket|sqlite3|eval|exec)\b")


def double_quoted(code):
    """The code with its plain 'strings' between double quotes, token by token: a pattern would join two strings."""
    lines = code.split("\n")
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        (row, start), (last, end) = token.start, token.end
        if token.type == tokenize.STRING and row == last and re.fullmatch(r"'[^'\"\\]*'", token.string):
            lines[row - 1] = f'{lines[row - 1][:start]}"{token.string[1:-1]}"{lines[row - 1][end:]}'
    return "\n".join(lines)


def tidy_code(code):
    """The code in one style (4 spaces, double quotes, no comments); empty where it is not valid Python."""
    try:
        code = ast.unparse(ast.parse(code.replace("\r\n", "\n").expandtabs(4)))
    except (SyntaxError, ValueError):
        return ""
    code = double_quoted(code)
    return re.sub(r"(\n {4}[^\n]*\n)(?=[a-zA-Z_])(?!else|elif|except|finally|def |class )", r"\1\n", code)


def compiles(code):
    try:
        compile(code, "row", "exec")
    except (SyntaxError, ValueError):
        return False
    return True


def read_mbpp(data):
    rows = []
    with lzma.open(data / "mbpp" / "mbpp_train_474.jsonl.xz", "rt", encoding="utf8") as file:
        for row in map(json.loads, file):
            code, text = tidy_code(row["code"]), re.sub(r"\s+", " ", row["text"]).strip().replace("python", "Python")
            fit = code and len(code.split("\n")) <= 15 and len(code) < 700 and code.isascii() and text.isascii()
            if fit and not OBSCURE.search(text) and "http" not in text:
                rows.append((text, code))
    return rows


def read_codegen(data):
    rows = []
    with lzma.open(data / "gpteacher" / "codegen-instruct.jsonl.xz", "rt", encoding="utf8") as file:
        for row in map(json.loads, file):
            code, text, given = tidy_code(row["response"]), row["instruction"].strip(), row["input"].strip()
            python = re.search(r"\bpython\b", text, re.I) and re.search(r"^(def|import|from|class|for|print|\w+ = )",
                    code, re.M)
            clean = not re.search(r"```|^[A-Z][a-z]+ [a-z]+ [a-z]+", code,
                                  re.M) and code.isascii() and text.isascii() and given.isascii()
            short = len(code.split("\n")) <= 15 and 20 < len(code) < 600 and len(text) < 250 and len(given) < 120
            if python and clean and short and compiles(code) and not FOREIGN.search(code):
                code_given = re.search(r"\n|def |print", given)
                label = "" if code_given else "Example input: "
                rows.append((text + (f"\n\n{label}{given}" if given and given.lower() not in ("none", "n/a") else ""),
                             code))
    return rows


def row_turns(rng, row):
    text, code = row
    names = re.findall(r"^(?:def|class) (\w+)", code, re.M)
    thought = "A few lines of Python are enough."
    if names:
        thought = rng.choice([f"The user wants Python code. I define {names[-1]}.",
                              f"I write a short function named {names[-1]}.",
                              f"A short Python function is enough. I call it {names[-1]}."])
    lead = rng.choice(["", "", "", "", "Here is the code:\n\n", "Here you go:\n\n", "You can do it like this:\n\n"])
    return [(text, lead + block(code))], thought


# ---- dialogues ----

SYSTEMS = ("You are a helpful assistant.", "You are a Python tutor.", "You write short, correct Python code.",
           "Answer with code.",
           "You are a coding assistant.", "Keep the code short.", "You help people learn to program.")


ROW_KINDS = ("mbpp", "codegen")


class Sources:
    """The authored banks, and the data rows of one part of the split."""

    def __init__(self, data, held_out):
        def part(rows):
            return [row for row in rows if held(row[0]) == held_out]
        self.tasks = read_tasks(BANKS / "code_tasks.txt")
        self.howtos = read_columns(BANKS / "code_howto.txt")
        self.others = read_columns(BANKS / "code_other.txt")
        self.rows = {"mbpp": part(read_mbpp(data)), "codegen": part(read_codegen(data))}

    def turns(self, rng):
        """The kind drawn and its (turns, thought); None in place of these where the part has no such rows."""
        kind = rng.choices("task constant print fix explain loop howto other mbpp codegen".split(),
                           [26, 9, 16, 7, 7, 6, 13, 6, 6, 4])[0]
        if kind in ROW_KINDS:
            return kind, row_turns(rng, rng.choice(self.rows[kind])) if self.rows[kind] else None
        makers = {"task": lambda: function_turns(rng, rng.choice(self.tasks)),
                  "constant": lambda: function_turns(rng, constant_task(rng)),
                  "print": lambda: print_turns(rng), "fix": lambda: fix_turns(rng, self.tasks),
                  "loop": lambda: loop_turns(rng),
                  "explain": lambda: explain_turns(rng, self.tasks), "howto": lambda: howto_turns(rng, self.howtos),
                  "other": lambda: other_turns(rng, self.others)}
        return kind, makers[kind]()


def dialogues(rng, data, split, count):
    """Yields `count` dialogues of the split ("train" or "held_out"): data split by row, the rest by question."""
    held_out, made = split == "held_out", 0
    sources = Sources(Path(data), held_out)
    while made < count:
        kind, drawn = sources.turns(rng)
        if drawn is None or kind not in ROW_KINDS and held(drawn[0][0][0]) != held_out:
            continue
        made += 1
        yield build(rng, "code", *drawn, systems=SYSTEMS)


def self_check():
    """Runs every authored solution and many variants against their tests; returns what failed."""
    rng, failures = random.Random(7), []
    tasks = read_tasks(BANKS / "code_tasks.txt")
    candidates = list(tasks) + [variant(rng, task) for task in tasks for _ in range(8)] + [constant_task(rng)
            for _ in range(400)]
    candidates += [replace(task, code=with_docstring(task)) for task in tasks if not task.is_class]
    for task in candidates:
        try:
            if not passes(task):
                failures.append((task.name, "wrong value", task.code))
        except Exception as error:
            failures.append((task.name, repr(error), task.code))
    for wish, _, code in read_columns(BANKS / "code_howto.txt"):
        if not code.startswith(("pip ", "python3 ")) and not compiles(code):
            failures.append((wish, "does not compile", code))
    return len(tasks), len(candidates), failures


def main():
    """Checks the solutions; with DATA and COUNT also prints samples."""
    count, runs, failures = self_check()
    for failure in failures:
        print("FAILED", *failure, sep="\n  ")
    print(f"{count} tasks, {runs} runs, {len(failures)} failures")
    if len(sys.argv) > 2:
        for dialogue in dialogues(random.Random(1), Path(sys.argv[1]), "train", int(sys.argv[2])):
            print(chatml.render(dialogue) + "-" * 40)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
