"""Short code that newcomers ask for: small functions in three languages, pages, what a line prints, and what is wrong with it."""

from . import common

# name; what it does; parameters; Python, JavaScript and C expressions (C "-" where it has none)
FUNCTIONS = [tuple(part.strip() for part in line.split(";")) for line in """
add; adds two numbers; a, b; a + b; a + b; a + b
subtract; subtracts two numbers; a, b; a - b; a - b; a - b
multiply; multiplies two numbers; a, b; a * b; a * b; a * b
divide; divides two numbers; a, b; a / b; a / b; a / b
maximum; returns the larger of two numbers; a, b; max(a, b); Math.max(a, b); a > b ? a : b
minimum; returns the smaller of two numbers; a, b; min(a, b); Math.min(a, b); a < b ? a : b
average; returns the average of two numbers; a, b; (a + b) / 2; (a + b) / 2; (a + b) / 2
difference; returns the difference of two numbers; a, b; a - b; a - b; a - b
square; returns the square of a number; n; n * n; n * n; n * n
cube; returns the cube of a number; n; n * n * n; n * n * n; n * n * n
double; doubles a number; n; n * 2; n * 2; n * 2
triple; triples a number; n; n * 3; n * 3; n * 3
half; halves a number; n; n / 2; n / 2; n / 2
is_even; checks if a number is even; n; n % 2 == 0; n % 2 === 0; n % 2 == 0
is_odd; checks if a number is odd; n; n % 2 == 1; n % 2 === 1; n % 2 == 1
is_positive; checks if a number is positive; n; n > 0; n > 0; n > 0
is_negative; checks if a number is negative; n; n < 0; n < 0; n < 0
absolute; returns the absolute value of a number; n; abs(n); Math.abs(n); n < 0 ? -n : n
area; returns the area of a rectangle; width, height; width * height; width * height; width * height
perimeter; returns the perimeter of a rectangle; width, height; 2 * (width + height); 2 * (width + height); 2 * (width + height)
to_fahrenheit; converts Celsius to Fahrenheit; c; c * 9 / 5 + 32; c * 9 / 5 + 32; c * 9 / 5 + 32
reverse; reverses a string; text; text[::-1]; text.split("").reverse().join(""); -
length; returns the length of a string; text; len(text); text.length; -
shout; turns a string into upper case; text; text.upper(); text.toUpperCase(); -
lower; turns a string into lower case; text; text.lower(); text.toLowerCase(); -
first_letter; returns the first letter of a word; word; word[0]; word[0]; -
last_letter; returns the last letter of a word; word; word[-1]; word[word.length - 1]; -
count_words; counts the words in a text; text; len(text.split()); text.split(" ").length; -
is_palindrome; checks if a word is a palindrome; word; word == word[::-1]; word === word.split("").reverse().join(""); -
greet; says hello to a name; name; "Hello, " + name + "!"; "Hello, " + name + "!"; -
total; returns the sum of a list; numbers; sum(numbers); numbers.reduce((a, b) => a + b, 0); -
largest; finds the largest number in a list; numbers; max(numbers); Math.max(...numbers); -
smallest; finds the smallest number in a list; numbers; min(numbers); Math.min(...numbers); -
first; returns the first item of a list; items; items[0]; items[0]; -
last; returns the last item of a list; items; items[-1]; items[items.length - 1]; -
is_empty; checks if a list is empty; items; len(items) == 0; items.length === 0; -
sorted_list; sorts a list; items; sorted(items); [...items].sort(); -
contains; checks if a list contains an item; items, item; item in items; items.includes(item); -
is_adult; checks if an age is 18 or more; age; age >= 18; age >= 18; age >= 18
""".strip().splitlines()]
LONGER = {
    "factorial": ("returns the factorial of a number", "def factorial(n):\n    result = 1\n    for i in range(2, n + 1):\n        result *= i\n    return result"),
    "is_prime": ("checks if a number is prime", "def is_prime(n):\n    if n < 2:\n        return False\n    for i in range(2, n):\n        if n % i == 0:\n            return False\n    return True"),
    "fibonacci": ("returns the first n Fibonacci numbers", "def fibonacci(n):\n    numbers = []\n    a, b = 0, 1\n    for _ in range(n):\n        numbers.append(a)\n        a, b = b, a + b\n    return numbers"),
    "count_vowels": ("counts the vowels in a text", 'def count_vowels(text):\n    return sum(1 for c in text.lower() if c in "aeiou")'),
    "fizzbuzz": ("plays fizzbuzz up to 15", 'for i in range(1, 16):\n    if i % 15 == 0:\n        print("FizzBuzz")\n    elif i % 3 == 0:\n        print("Fizz")\n    elif i % 5 == 0:\n        print("Buzz")\n    else:\n        print(i)'),
    "sum_to": ("adds the numbers from 1 to n", "def sum_to(n):\n    return sum(range(1, n + 1))"),
    "unique": ("removes duplicates from a list", "def unique(items):\n    return list(dict.fromkeys(items))"),
    "table": ("prints the multiplication table of a number", 'def table(n):\n    for i in range(1, 11):\n        print(n, "x", i, "=", n * i)'),
}
LANGUAGES = {"Python": 3, "JavaScript": 4, "C": 5}
ASK = ["Write a {l} function that {w}.", "{l} function that {w}", "How do I write a function that {w} in {l}?", "Can you write a function in {l} that {w}?", "I need a {l} function which {w}", "Show me a {l} function that {w}.", "write a function in {l}, it {w}", "Give me {l} code that {w}.", "please code a {l} function that {w}"]
SHORT_ASK = ["{v} in {l}", "how to {v} in {l}", "{l} code to {v}", "How can I {v} with {l}?", "{l}: {v}"]
PAGES = ["Make a web page that says {t}", "Write a web page with the text {t}.", "Create a simple website that shows {t}", "I need a page in HTML with the heading {t}", "Write HTML that shows {t}", "html page with {t}", "Make me a website that says {t}"]
TEXTS = ["Hello World", "Hello, world!", "Welcome", "My first page", "Good morning", "Hi, I am {n}", "Welcome to my shop", "{n}'s page", "Under construction"]


def camel(name):
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def written(language, name, parameters, expression):
    if language == "Python":
        return f"```python\ndef {name}({parameters}):\n    return {expression}\n```"
    if language == "JavaScript":
        return f"```javascript\nfunction {camel(name)}({parameters}) {{\n  return {expression};\n}}\n```"
    typed = ", ".join(f"int {p.strip()}" for p in parameters.split(","))
    return f"```c\nint {name}({typed}) {{\n    return {expression};\n}}\n```"


def base(what):
    """The first verb without its s: "adds two numbers" -> "add two numbers"."""
    verb, rest = what.split(" ", 1)
    verb = {"says": "say", "halves": "halve", "doubles": "double", "triples": "triple", "multiplies": "multiply", "reverses": "reverse", "divides": "divide", "removes": "remove"}.get(verb, verb[:-1])
    return f"{verb} {rest}"


def choose(rng):
    while True:
        entry, language = rng.choice(FUNCTIONS), rng.choices(sorted(LANGUAGES), [1, 2, 4])[0]
        if entry[LANGUAGES[language]] != "-":
            return entry, language


def asked(rng, what, language):
    if rng.random() < 0.75:
        return common.typed(rng, rng.choice(ASK).format(l=language, w=what))
    return rng.choice(SHORT_ASK).format(v=base(what), l=rng.choice([language, language.lower()]))


def code(rng, data):
    roll = rng.random()
    if roll < 0.15:
        text = rng.choice(TEXTS).format(n=rng.choice(common.FIRST))
        page = f"```html\n<!DOCTYPE html>\n<html>\n<head>\n  <title>{text}</title>\n</head>\n<body>\n  <h1>{text}</h1>\n</body>\n</html>\n```"
        return [(rng.choice(PAGES).format(t=text), page)], "A web page is written in HTML."
    if roll < 0.3:
        name = rng.choice(sorted(LONGER))
        what, text = LONGER[name]
        return [(asked(rng, what, "Python"), f"```python\n{text}\n```")], f"In Python, something that {what}."
    entry, language = choose(rng)
    answer = written(language, entry[0], entry[2], entry[LANGUAGES[language]])
    turns = [(asked(rng, entry[1], language), answer)]
    if rng.random() < 0.15:
        turns.append((rng.choice(["What does it do?", "Explain it.", "Can you explain that?", "how does it work"]), f"The function {entry[0] if language != 'JavaScript' else camel(entry[0])} {entry[1]}."))
    return turns, f"A {language} function that {entry[1]}: {entry[LANGUAGES[language]]}."


def same_elsewhere(rng, data):
    """The same in another language, or another operation in the same one."""
    entry, language = choose(rng)
    turns = [(asked(rng, entry[1], language), written(language, entry[0], entry[2], entry[LANGUAGES[language]]))]
    if rng.random() < 0.5:
        others = [l for l in sorted(LANGUAGES) if l != language and entry[LANGUAGES[l]] != "-"]
        other = rng.choice(others)
        turns.append((rng.choice(["And in {}?", "Now in {}, please.", "The same in {}", "can you do that in {}?", "How does it look in {}?", "in {} please"]).format(other), written(other, entry[0], entry[2], entry[LANGUAGES[other]])))
        return turns, f"The same in {other}."
    near = [e for e in FUNCTIONS if e[2] == entry[2] and e[0] != entry[0] and e[LANGUAGES[language]] != "-"]
    if not near:
        return code(rng, data)
    new = rng.choice(near)
    them = "them" if "," in entry[2] else "it"
    what = base(new[1])
    if new[0] in ("add", "subtract", "multiply", "divide") and entry[0] in ("add", "subtract", "multiply", "divide"):
        ask = rng.choice([f"Now make it {new[0]} {them}", f"Change it so that it {new[1].split()[0]} {them}.", f"now {new[0]} instead", f"And one that {new[1].split()[0]} {them}?"])
    else:
        ask = rng.choice([f"Now write one that {new[1]}.", f"And a function to {what}?", f"now the same to {what}"])
    turns.append((ask, written(language, new[0], new[2], new[LANGUAGES[language]])))
    return turns, f"Now a function that {new[1]}: {new[LANGUAGES[language]]}."


def printed(rng, data):
    """A line or two of Python and what they print; the answer is worked out by Python itself."""
    a, b, c = rng.randint(2, 12), rng.randint(2, 9), rng.randint(2, 6)
    word, other = rng.sample(["hello", "cat", "sun", "python", "tree", "apple", "moon", "house"], 2)
    items = rng.sample(range(1, 20), 3)
    source = rng.choice([f"print({a} + {b})", f"print({a} * {b})", f"print({a} - {b})", f'print("{word}")', f'print("{word}" + "{other}")', f'print(len("{word}"))', f'print("{word}".upper())', f"x = {a}\nprint(x + {b})", f"x = {a}\ny = {b}\nprint(x * y)", f"for i in range({c}):\n    print(i)",
                         f"print(max({items}))", f"print(sum({items}))", f"print({items}[0])", f"print({a} > {b})", f"print({a} == {b})", f'print("{word}"[0])', f'print("{word[:2]}" * {c})', f"print({a * b} // {b})", f"x = {a}\nx = x + 1\nprint(x)", f'if {a} > {b}:\n    print("yes")\nelse:\n    print("no")',
                         f"print(sorted({items}))", f"print(len({items}))"])
    out = []
    exec(source, {"print": lambda *values: out.append(" ".join(map(str, values))), "__builtins__": {"len": len, "range": range, "max": max, "sum": sum, "sorted": sorted}})
    shown = "\n".join(out)
    question = rng.choice(["What does this code print? {s}", "What is the output of this code?\n{s}", "What does this print?\n\n{s}", "What will be printed: {s}", "output of\n{s}", "What does this Python code do?\n```python\n{s}\n```"]).format(s=source)
    if "code do" in question:
        return [(question, f"It prints {', '.join(out)}.")], f"It prints {', '.join(out)}."
    return [(question, rng.choice([f"It prints {', '.join(out)}.", f"```\n{shown}\n```", f"{shown}" if len(out) == 1 else f"It prints {', '.join(out)}."]))], f"The output is {', '.join(out)}."


def repaired(rng, data):
    """One small error, and what is right."""
    text, n = rng.choice(["Hello", "Good morning", "Welcome", "It works"]), rng.randint(3, 20)
    wrong, right, why = rng.choice([
        (f'print("{text}"', f'print("{text}")', "The closing bracket is missing."), (f'print("{text})', f'print("{text}")', "The closing quote is missing."), (f'prnt("{text}")', f'print("{text}")', "The function is called print."),
        (f"for i in range({n})\n    print(i)", f"for i in range({n}):\n    print(i)", "A colon is missing after the for line."), (f"if x == {n}\n    print(x)", f"if x == {n}:\n    print(x)", "A colon is missing after the if line."), (f"if x = {n}:\n    print(x)", f"if x == {n}:\n    print(x)", "A comparison needs two equals signs."),
        ("def add(a, b)\n    return a + b", "def add(a, b):\n    return a + b", "A colon is missing after the def line."), (f"while x < {n}\n    x = x + 1", f"while x < {n}:\n    x = x + 1", "A colon is missing after the while line."), (f"for i in range({n}):\nprint(i)", f"for i in range({n}):\n    print(i)", "The line in the loop must be indented."),
        (f'Print("{text}")', f'print("{text}")', "print is written with a small letter.")])
    return [(rng.choice(["Fix this code: {s}", "What is wrong with this code?\n{s}", "Why does this not work?\n{s}", "Find the bug:\n{s}", "this gives an error, help: {s}"]).format(s=wrong), f"{why}\n\n```python\n{right}\n```")], why
