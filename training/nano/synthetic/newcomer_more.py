"""More of what people try first: grammar, two operations in one sum, pages with parts, wishes, mails about a trouble, and names that nobody knows."""

from . import common, given_text, sums, toolcalls

# right | wrong; {n} a name, {t} a thing
GRAMMAR = [tuple(line.split("|")) for line in """{n} doesn't like {t}.|{n} don't like {t}.
{n} goes to the park every day.|{n} go to the park every day.
{n} and I go to the market.|Me and {n} goes to the market.
They were at home yesterday.|They was at home yesterday.
We have seen that film.|We has saw that film.
I have two children.|I has two childs.
The children are playing outside.|The childrens is playing outside.
He ran to the bus.|He runned to the bus.
She bought {t} last week.|She buyed {t} last week.
There are many people here.|There is many peoples here.
I didn't see {n} yesterday.|I didn't saw {n} yesterday.
{n} is taller than me.|{n} is more tall than me.
My brother works in a bank.|My brother work in a bank.
These shoes are too small.|This shoes is too small.
Where do you live?|Where you live?
I am going home now.|I going home now.
He has lived here for ten years.|He live here since ten years.
{n} can swim very well.|{n} can swims very good.
I would like some {t}, please.|I would likes some {t} please.
Her hair is long.|Her hairs are long.""".splitlines()]
FIX = ["Fix the grammar", "Correct the grammar", "Is this right? Correct it", "Rewrite this sentence correctly", "Correct this sentence", "What is wrong here? Write it correctly", "Please correct my English", "Rewrite this in good English", "Fix this sentence"]
OPS = {"+": ["plus", "+", "and then add"], "-": ["minus", "-", "and then take away"], "x": ["times", "x", "multiplied by"], "/": ["divided by", "/", "divided by"]}
WISHES = [("a birthday wish for {w}", "Happy birthday, {p}! I wish you a wonderful day and all the best for the new year of your life."), ("a get well wish for {w}", "Get well soon, {p}! We think of you and hope to see you again soon."), ("a wedding wish for {w}", "Dear {p}, all the best for your wedding! I wish you both a long and happy life together."), ("a farewell message for {w}", "Goodbye, {p}! Thank you for the good time. We will miss you."),
          ("a thank you card for {w}", "Dear {p}, thank you so much! You made me very happy."), ("a New Year's wish for {w}", "Happy New Year, {p}! I wish you health, joy and luck."), ("a good luck message for {w}", "Good luck, {p}! You can do it."), ("a welcome message for {w}", "Welcome, {p}! We are happy that you are here."), ("congratulations for {w} on the new baby", "Congratulations, {p}! All the best to you and the little one.")]
TROUBLES = [tuple(line.split("/")) for line in "a leaking pipe/the pipe is leaking|a broken window/the window is broken|the cold radiator/the radiator stays cold|a wrong bill/the bill is wrong|a lost parcel/my parcel has not arrived|the noisy neighbours/the neighbours are very noisy|a broken lift/the lift does not work|the slow internet/the internet is very slow|a late delivery/the delivery is late|a missing key/a key is missing|a blocked sink/the sink is blocked|the dirty stairs/the stairs are dirty|a barking dog/a dog barks every night|a dead lamp in the hall/the lamp in the hall is dead|mould in the bathroom/there is mould in the bathroom".split("|")]
RECEIVERS = [("my landlord", "Dear Landlord"), ("the shop", "Dear Sir or Madam"), ("my neighbour {p}", "Dear {p}"), ("the caretaker", "Dear Caretaker"), ("the post office", "Dear Sir or Madam"), ("my boss {p}", "Dear {p}"), ("the company", "Dear Sir or Madam"), ("{p}", "Dear {p}")]
TITLES = ["emperor", "king", "queen", "president", "mayor", "bishop", "champion", "governor", "sultan"]


def grammar(rng, data):
    right, wrong = rng.choice(GRAMMAR)
    slots = {"n": rng.choice(common.FIRST), "t": rng.choice(["tea", "bread", "rice", "soup", "cheese", "fish", "milk"])}
    return [(given_text.asked(rng, rng.choice(FIX), wrong.format(**slots)), right.format(**slots))], f"The right form is: {right.format(**slots)}"


def two_ops(rng, data):
    while True:
        a, b, c = rng.randint(2, 12), rng.randint(2, 12), rng.randint(2, 30)
        first, second = rng.choice([("x", "+"), ("x", "-"), ("+", "-"), ("+", "+"), ("-", "+"), ("/", "+"), ("/", "-")])
        a = a if first == "x" else a * b if first == "/" else rng.randint(10, 60)
        one = {"x": a * b, "+": a + b, "-": a - b, "/": a // b}[first]
        two = one + c if second == "+" else one - c
        if one > 0 and two > 0 and not sums.held_out_pair(a, first, b) and not sums.held_out_pair(one, second, c):
            break
    says = rng.choice([f"{a} {rng.choice(OPS[first][:2])} {b} {rng.choice(OPS[second])} {c}", f"{a} {OPS[first][0]} {b} {OPS[second][0]} {c}"])
    question = rng.choice(["What is {}?", "what's {}", "{}", "{} = ?", "Calculate {}.", "How much is {}?", "Please work out {}."]).format(says)
    return [(question, rng.choice([f"{a} {first} {b} {second} {c} = {two}.", f"The answer is {two}.", f"It is {two}."]))], f"{a} {first} {b} = {one}. {one} {second} {c} = {two}."


def page(rng, data):
    name = rng.choice(common.FIRST)
    head, text = rng.choice(["Welcome", "My page", "Hello", f"{name}'s garden", "News", "About me", "Our shop"]), rng.choice(["This is my first page.", "Nice that you are here.", f"My name is {name}.", "We are open every day.", "I like books and tea."])
    parts = rng.choice([("a heading and a paragraph", [f"<h1>{head}</h1>", f"<p>{text}</p>"]), ("a title and a text", [f"<h1>{head}</h1>", f"<p>{text}</p>"]), ("a heading and a list", [f"<h1>{head}</h1>", "<ul>", "  <li>One</li>", "  <li>Two</li>", "</ul>"]), ("a heading and a link", [f"<h1>{head}</h1>", '<a href="https://example.com">A link</a>']), ("a heading and a button", [f"<h1>{head}</h1>", "<button>Click me</button>"]), ("two paragraphs", [f"<p>{text}</p>", "<p>This is the second one.</p>"])])
    question = rng.choice([f"Make an HTML page with {parts[0]}.", f"html page with {parts[0]}", f"Write a small web page with {parts[0]}", f"I need HTML for {parts[0]}.", f"How do I make a page with {parts[0]} in HTML?", f"Show me HTML with {parts[0]}, please."])
    body = "\n".join("  " + line for line in parts[1])
    return [(question, f"```html\n<!DOCTYPE html>\n<html>\n<head>\n  <title>{head}</title>\n</head>\n<body>\n{body}\n</body>\n</html>\n```")], f"A page in HTML with {parts[0]}."


def repeated(rng, data):
    count, word = rng.randint(2, 10), rng.choice(["hello", "Hello", "hi", "good morning", "yes", "Chimere", rng.choice(common.FIRST)])
    language = rng.choice(["Python", "shell", "JavaScript", "C", "bash"])
    code = {"Python": f'for i in range({count}):\n    print("{word}")', "JavaScript": f'for (let i = 0; i < {count}; i++) {{\n  console.log("{word}");\n}}', "C": f'#include <stdio.h>\n\nint main(void) {{\n    for (int i = 0; i < {count}; i++) {{\n        printf("{word}\\n");\n    }}\n    return 0;\n}}'}.get(
        language, f'#!/bin/sh\nfor i in $(seq {count}); do\n  echo "{word}"\ndone')
    times = rng.choice([f"{count} times", f"{sums.number_words(count)} times"])
    question = rng.choice([f"{language} program that prints {word} {times}", f"Write a {language} script that prints {word} {times}.", f"Print {word} {times} in {language}.", f"How do I print {word} {times} with {language}?"])
    return [(question, f"```{ {'Python': 'python', 'JavaScript': 'javascript', 'C': 'c'}.get(language, 'sh') }\n{code}\n```")], f"A loop of {count} in {language} that prints {word}."


def wish(rng, data):
    what, text = rng.choice(WISHES)
    person = rng.choice(common.FIRST)
    whom = rng.choice([person, f"my colleague {person}", f"my friend {person}", f"my sister {person}", f"my teacher {person}", f"our neighbour {person}"])
    return [(rng.choice(["Write {}.", "Please write {}.", "I need {}", "Can you write {}?", "Give me {}."]).format(what.format(w=whom)), text.format(p=person))], f"It is for {person}."


def trouble(rng, data):
    about, said = rng.choice(TROUBLES)
    person = rng.choice(common.FIRST)
    to, greeting = rng.choice(RECEIVERS)
    kind = rng.choice(["email", "short email", "message", "letter", "two-sentence email", "note"])
    ask = rng.choice(["Could you please have a look at it?", "Please let me know what we can do.", "I would be glad if you could help soon."])
    text = f"{greeting.format(p=person)},\n\n{common.cap(said)}. {ask}\n\n{rng.choice(['Best wishes', 'Kind regards'])},\n[your name]"
    return [(rng.choice(["Write {a} to {t} about {x}.", "I need {a} to {t} about {x}", "Please write {a} to {t} about {x}.", "Can you write {a} to {t} about {x}?", "Help me with {a} to {t}: {s}."]).format(a=common.an(kind), t=to.format(p=person), x=about, s=said), text)], f"It must say: {said}."


def nobody(rng, data):
    place, name, word = common.place(rng), f"{common.invented(rng)} {common.invented(rng)}", common.syllable(rng) + common.syllable(rng)
    question = rng.choice([f"Who was the {rng.choice(['first', 'second', 'last', 'third'])} {rng.choice(TITLES)} of {place}?", f"When was the battle of {place}?", f"What is the {word} theory?", f"Who discovered {word}?", f"In which year did {name} die?", f"What is {name} famous for?", f"Which language do they speak in {place}?", f"Who is the {rng.choice(TITLES)} of {place}?", f"What is the longest river of {place}?", f"Who painted the {common.invented(rng)}?"])
    return [(common.typed(rng, question), rng.choice(["I do not know.", "I do not know that.", "I have never heard of it, so I do not know.", "I am sorry, I do not know that."]))], rng.choice(["I do not know this name.", "I have never heard of this. I do not guess."])


MORE = [(7, grammar), (6, two_ops), (4, page), (4, repeated), (5, wish), (5, trouble), (6, nobody)]
