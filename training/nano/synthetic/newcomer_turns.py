"""Second questions of all kinds: one more of the same, shorter, for a child, the same for something else, a sum that goes on, what was said about oneself."""

import functools

from . import common, facts, sums, toolcalls
from .fact import BANKS, plain

# what is asked for one of; members
ONES = {"a name for a dog": "Rex|Bella|Max|Luna|Rocky|Daisy|Bruno|Lucky", "a name for a cat": "Mia|Felix|Whiskers|Tiger|Minka|Simba|Coco|Shadow", "a girl's name": "Emma|Clara|Lily|Sophie|Anna|Nora|Ella", "a boy's name": "Leo|Tom|Felix|Oscar|Ben|Paul|Max",
        "a colour": "blue|red|green|yellow|purple|orange|white", "a fruit": "apple|banana|pear|cherry|orange|mango|grape", "a vegetable": "carrot|potato|tomato|onion|pepper|cabbage|spinach", "an animal": "dog|horse|elephant|owl|tiger|rabbit|whale", "a bird": "robin|eagle|owl|swan|sparrow|duck|crow",
        "a country in Europe": "Italy|France|Spain|Poland|Greece|Norway|Austria", "a country": "Japan|Brazil|Kenya|Canada|India|Peru|Egypt", "a city": "Paris|London|Tokyo|Rome|Cairo|Madrid|Lima", "a planet": "Mars|Venus|Jupiter|Saturn|Neptune|Mercury", "a hobby": "reading|painting|swimming|cooking|chess|hiking|photography", "a sport": "football|tennis|swimming|cycling|basketball|skiing",
        "a musical instrument": "piano|guitar|violin|flute|drum|trumpet", "a job": "teacher|nurse|baker|pilot|gardener|engineer", "a flower": "rose|tulip|daisy|lily|sunflower|orchid", "a tree": "oak|birch|maple|pine|willow|beech", "a drink": "tea|coffee|water|lemonade|milk|juice", "a breakfast idea": "pancakes|porridge with fruit|scrambled eggs|bread with honey|yoghurt with nuts",
        "a dinner idea": "vegetable soup|pasta with tomatoes|fried rice|a big salad|pizza", "a present for my mother": "flowers|a book|a scarf|a nice cup|a box of chocolates", "a present for a friend": "a board game|a plant|a book|concert tickets|a mug", "a name for my bakery": "Golden Crust|The Happy Loaf|Sweet Corner|Morning Bread", "a password idea": "three random words with a number|a sentence that only you know"}
ASK_ONE = ["Give me {x}.", "Name {x}.", "Suggest {x}", "Tell me {x}.", "I need {x}", "Can you think of {x}?", "Recommend {x}.", "Do you know {x}?", "{x}, please"]
AGAIN = ["another one please", "another one", "another", "one more", "Another one, please.", "and another?", "give me a different one", "Something else?", "I don't like that one, another?", "next one", "one more please", "and one more"]
WHY = {"a hobby": "Because you can do it almost anywhere and it calms the mind.", "a sport": "Because it is healthy and more fun with friends.", "a dinner idea": "Because it is quick, cheap and tasty.", "a drink": "Because it is simple and good at any time of the day.", "a present for my mother": "Because it is personal and shows that you think of her.", "a present for a friend": "Because it is something that both of you can enjoy.",
       "a name for a dog": "Because it is short and easy to call.", "a name for a cat": "Because it is short and sounds nice.", "a name for my bakery": "Because it is easy to remember and sounds warm."}
MANY = {kind.split(" ", 1)[1] + "s" if kind not in ("a country in Europe", "a hobby", "a city", "a country", "a sport") else {"a country in Europe": "countries in Europe", "a hobby": "hobbies", "a city": "cities", "a country": "countries", "a sport": "sports"}[kind]: members
        for kind, members in ONES.items() if kind in ("a colour", "a fruit", "a vegetable", "an animal", "a bird", "a country in Europe", "a planet", "a hobby", "a sport", "a musical instrument", "a flower", "a tree", "a country", "a city", "a drink", "a job")}
NUMBERS = ["one", "two", "three", "four", "five", "six"]
JOKES = [tuple(line.split("=")) for line in """What do you call a bear without teeth?=A gummy bear.
Why did the math book look sad?=Because it had too many problems.
What do you get when you cross a snowman with a dog?=Frostbite.
Why can't a bicycle stand on its own?=Because it is two tired.
What do you call cheese that is not yours?=Nacho cheese.
Why did the scarecrow win a prize?=Because he was outstanding in his field.
What has four wheels and flies?=A garbage truck.
Why do bees have sticky hair?=Because they use honeycombs.
What did the ocean say to the beach?=Nothing, it just waved.
Why did the cookie go to the doctor?=Because it felt crumbly.
What do you call a fish without eyes?=A fsh.
How does the moon cut its hair?=Eclipse it.""".splitlines()]
# thing: what it is; the same in short; the same for a child
EXPLAINED = [tuple(part.strip() for part in line.split("|")) for line in """rain|Rain is water that falls from clouds in drops. It is part of the water cycle.|Rain is water that falls from clouds.|Imagine that a cloud is a big sponge. When it is full of water, drops fall down, and that is rain.
gravity|Gravity is the force that pulls things towards each other. It keeps us on the ground and the Moon near the Earth.|Gravity pulls things down to the ground.|Gravity is like an invisible hand that pulls everything down. That is why a ball falls when you let it go.
electricity|Electricity is the flow of tiny charged particles, mostly through wires. It gives us light and runs machines.|Electricity is the flow of charges that runs our lamps and machines.|Electricity is like very small helpers that run through a wire and make the lamp shine.
photosynthesis|Photosynthesis is how plants make sugar from light, water and carbon dioxide. They give off oxygen.|Plants make food from light, water and air.|Plants cook their own food. They use sunlight like a stove, and water and air as ingredients.
a computer|A computer is a machine that works with data. It follows the steps of a program very quickly.|A computer is a machine that follows programs.|A computer is a machine that does exactly what you tell it, very, very fast.
the internet|The internet is a worldwide network of computers. Through it people send messages, pages and films.|The internet connects computers all over the world.|The internet is like a huge net of roads for messages. Your message can travel around the world in a second.
a star|A star is a huge ball of hot gas that shines. Our Sun is a star.|A star is a big ball of glowing gas.|A star is like our Sun, but so far away that it looks like a little dot of light.
money|Money is what people use to pay for things. It can be coins, notes or numbers in a bank.|Money is what people pay with.|Money is something you give in a shop to get something else, like an ice cream.
a desert|A desert is a very dry area where little rain falls. Only few plants and animals live there.|A desert is a very dry area.|A desert is a place where it almost never rains, so there is a lot of sand and only few plants.
an earthquake|An earthquake is a shaking of the ground. It happens when plates of the Earth's crust move.|An earthquake is when the ground shakes.|Deep under us there are big pieces of rock. When they push each other, the ground shakes.
the heart|The heart is a muscle that pumps blood through the body. It beats about 70 times a minute.|The heart pumps blood through the body.|Your heart is like a little pump in your chest. It sends blood to every part of you.
snow|Snow is frozen water that falls from clouds as small crystals. It falls when the air is cold.|Snow is frozen water from the clouds.|When it is very cold, the drops in the clouds freeze and become little white stars. That is snow.
a dinosaur|Dinosaurs were reptiles that lived millions of years ago. Some of them were very large.|Dinosaurs were animals that lived long ago.|Dinosaurs were animals like giant lizards. They lived a very, very long time ago.
a program|A program is a list of steps that a computer follows. It is written in a programming language.|A program is a list of steps for a computer.|A program is like a recipe, but for a computer.
a rainbow|A rainbow is an arc of colours in the sky. It appears when sunlight passes through drops of rain.|A rainbow is an arc of colours made by sun and rain.|When the sun shines through the rain, the drops split the light into all its colours.
democracy|Democracy is a way to rule a country. The people choose who governs them by voting.|Democracy means that the people choose their government.|Democracy is when everybody may say what they want, and then the most votes win.
a bank|A bank is a company that keeps money for people. It also lends money.|A bank keeps and lends money.|A bank is like a very safe money box for many people.
the moon|The Moon is a ball of rock that goes around the Earth. It needs about a month for one round.|The Moon is a ball of rock that circles the Earth.|The Moon is a big grey ball that flies around our Earth. At night it shines because the Sun lights it up.
a vaccine|A vaccine is a medicine that prepares the body for an illness. After it people do not get so ill.|A vaccine protects against an illness.|A vaccine teaches your body how to fight a germ before the germ comes.""".splitlines()]
SHORT = ["can you make that shorter?", "shorter please", "Say it in one sentence.", "in fewer words please", "Make it shorter.", "too long, shorter?", "Sum that up.", "the short version?", "briefly?", "Can you put that in one short sentence?"]
CHILD = ["explain it to a child", "Explain it like I'm five.", "can you explain that to a kid?", "Explain it in simple words.", "I don't understand, explain it more simply", "simpler please", "Now for a child.", "How would you explain it to a six year old?", "easier words please"]
LONGER = ["tell me more", "Can you say more about it?", "more details please", "Go on.", "explain it in more detail", "a bit longer please"]
# what people tell about themselves: sentence; questions; answer
OWN = [tuple(part.split(" / ") for part in line.split(" | ")) for line in """I have two brothers, {a} and {b}. / My brothers are {a} and {b}. | How many brothers do I have? => You have two brothers, {a} and {b}. / What are my brothers called? => Your brothers are called {a} and {b}. / Do I have brothers? => Yes, you have two brothers, {a} and {b}.
I live in {c} and work as {j}. / I am {j} and live in {c}. | Where do I live? => You live in {c}. / What is my job? => You work as {j}. / What do I do? => You are {j}. / Which city do I live in? => You live in {c}.
My favourite colour is {col}. / I like {col} best of all colours. | What's my favourite colour? => Your favourite colour is {col}. / Which colour do I like? => You like {col}.
I was born in {y} in {c}. / My birthday was in {y}, in {c}. | When was I born? => You were born in {y}. / Where was I born? => You were born in {c}.
I have a {pet} called {z}. / My {pet} is called {z}. | What is my {pet} called? => Your {pet} is called {z}. / What pet do I have? => You have a {pet}. / What's the name of my {pet}? => It is called {z}.
My name is {a} and I am {k} years old. / I'm {a}, {k} years old. | How old am I? => You are {k} years old. / What is my name? => Your name is {a}. / Who am I? => You are {a}, {k} years old.
I am going to {c} on {d} with {a}. / On {d} I travel to {c} with {a}. | When do I travel? => You travel on {d}. / Who comes with me? => {a} comes with you. / Where am I going? => You are going to {c}. / With whom do I travel? => You travel with {a}.
I like {f} but I hate {f2}. / My favourite food is {f}, and I cannot stand {f2}. | What do I like to eat? => You like {f}. / Which food do I hate? => You hate {f2}. / What is my favourite food? => It is {f}.
I have three children: {a}, {b} and {e}. / My children are {a}, {b} and {e}. | How many children do I have? => You have three children. / What are my children called? => They are called {a}, {b} and {e}. / Who are my children? => Your children are {a}, {b} and {e}.
My car is {col}. / I drive a {col} car. | What colour is my car? => Your car is {col}.
My meeting with {a} is at {t}. / I meet {a} at {t}. | When is my meeting? => It is at {t}. / Who do I meet? => You meet {a}. / At what time do I meet {a}? => You meet {a} at {t}.
The code of my locker is {n}, please remember it. / Remember this number: {n}. | What was the number? => The number is {n}. / What is the code? => The code is {n}. / Which number did I tell you? => You told me {n}.
I play the piano and my sister plays the {i}. / My sister plays the {i}, I play the piano. | What does my sister play? => Your sister plays the {i}. / Which instrument do I play? => You play the piano.
I bought {x} for {k} euros. / Yesterday I paid {k} euros for {x}. | How much did I pay? => You paid {k} euros. / What did I buy? => You bought {x}.""".splitlines()]
HEARD = ["Nice! Thank you for telling me.", "That is good to know.", "Thank you, I will remember it in this chat.", "I see! What else would you like to tell me?", "Good to know! How can I help you?", "All right."]
# things that can be compared: bigger first
SIZES = [tuple(line.split("/")) for line in "an elephant/a mouse|a whale/a dog|the Sun/the Moon|Russia/France|London/Bonn|a horse/a cat|Jupiter/Mars|the Pacific/the Atlantic|Asia/Europe|a truck/a bike|a melon/a cherry|Paris/Lyon|Tokyo/Rome|Canada/Spain|a lion/a fox".split("|")]


def one_more(rng, data):
    kind = rng.choice(sorted(ONES))
    members = rng.sample(ONES[kind].split("|"), 2 if len(ONES[kind].split("|")) < 4 else rng.choice([2, 2, 3]))

    def said(member):
        return rng.choice(["{}.", "{}!", "How about {}?", "{}"]).format(common.cap(member) if rng.random() < 0.8 else member).replace("How about " + common.cap(member), "How about " + member)
    turns = [(common.typed(rng, common.cap(rng.choice(ASK_ONE).format(x=kind))), said(members[0]))] + [(rng.choice(AGAIN), said(m)) for m in members[1:]]
    thought = f"Another one, not {members[-2]}: {members[-1]}."
    if kind in WHY and rng.random() < 0.25:
        turns = turns[:1] + [(rng.choice(["why that one?", "Why?", "why this?", "And why that?"]), WHY[kind])]
        thought = "The user asks for the reason."
    if rng.random() < 0.2:
        turns, thought = turns[:1], f"{common.cap(kind)}: {members[0]}."
    return turns, thought


def add_to_list(rng, data):
    kind = rng.choice(sorted(MANY))
    count = rng.choice([2, 3, 3, 4])
    members = rng.sample(MANY[kind].split("|"), min(count + 1, len(MANY[kind].split("|"))))
    first, extra = members[:-1], members[-1]
    points = rng.random() < 0.35
    show = (lambda items: "\n".join("- " + common.cap(i) for i in items)) if points else (lambda items: common.cap(common.listed(items)) + ".")
    turns = [(rng.choice(["List {n} {k}.", "Name {n} {k}.", "Give me {n} {k}", "Tell me {n} {k}.", "{n} {k} please"]).format(n=NUMBERS[len(first) - 1], k=kind), show(first))]
    roll = rng.random()
    if roll < 0.5:
        turns.append((rng.choice(["add one more", "Add another one.", "one more please", "and one more?", "add one"]), show(members) if rng.random() < 0.6 else f"{common.cap(extra)}."))
        return turns, f"One more of the {kind}: {extra}."
    if roll < 0.7:
        turns.append((rng.choice(["which one is the first?", "What was the first one?", "repeat the first"]), f"The first one is {first[0]}."))
        return turns, f"The list begins with {first[0]}."
    if roll < 0.85:
        turns.append((rng.choice(["and the last one?", "What is the last one?", "which one did you say last?"]), f"The last one is {first[-1]}."))
        return turns, f"The list ends with {first[-1]}."
    turns.append((rng.choice(["in alphabetical order please", "Sort them alphabetically.", "sort them"]), show(sorted(first))))
    return turns, "From a to z: " + ", ".join(sorted(first)) + "."


def joke(rng, data):
    chosen = rng.sample(JOKES, 2)
    turns = [(rng.choice(["Tell me a joke", "tell me a joke please", "Do you know a joke?", "make me laugh", "A joke, please!", "say something funny"]), " ".join(chosen[0]))]
    roll = rng.random()
    if roll < 0.6:
        turns.append((rng.choice(AGAIN + ["tell me another joke", "another joke"]), " ".join(chosen[1])))
        return turns, "Another joke, not the same."
    if roll < 0.75:
        turns.append((rng.choice(["haha", "that was good", "lol, nice", "very funny"]), "I am glad that you like it! Would you like another one?"))
        return turns, "The user liked the joke."
    return turns, "A short joke."


def explain(rng, data):
    thing, long, short, child = rng.choice(EXPLAINED)
    question = common.typed(rng, rng.choice(["Explain what {x} is.", "What is {x}?", "Explain {x}.", "Can you explain {x}?", "Tell me about {x}.", "what is {x} exactly?"]).format(x=thing))
    roll = rng.random()
    if roll < 0.35:
        return [(question, long), (rng.choice(SHORT), short)], f"In short: {short}"
    if roll < 0.75:
        return [(question, rng.choice([long, short])), (rng.choice(CHILD), child)], f"For a child, about {thing}."
    if roll < 0.85:
        return [(question, short), (rng.choice(LONGER), long)], f"More about {thing}."
    return [(rng.choice(["Explain {x} to a child.", "Explain {x} in simple words.", "What is {x}? Explain it like I'm five.", "How would you explain {x} to a kid?"]).format(x=thing), child)], f"For a child, about {thing}."


def go_on(rng, data):
    """A sum whose result is worked on."""
    while True:
        a, b = rng.randint(2, 40), rng.randint(2, 12)
        op = rng.choice("+-x")
        first = {"+": a + b, "-": a - b, "x": a * b}[op]
        kind = rng.choice(["+", "-", "x", "/", "half", "double"])
        c = rng.randint(2, 12)
        if kind == "half":
            kind, c, words = "/", 2, ["and half of that?", "half of it?", "Now halve it.", "what is half of that"]
        elif kind == "double":
            kind, c, words = "x", 2, ["double it", "and twice that?", "now double that", "Times two?"]
        else:
            words = {"+": ["and plus {c}?", "now add {c}", "add {c} to that", "plus {c}?", "and if I add {c}?"], "-": ["and minus {c}?", "now subtract {c}", "take away {c}", "minus {c}?", "and {c} less?"], "x": ["and times {c}?", "now times {c}", "multiply that by {c}", "times {c}?"],
                     "/": ["and divided by {c}?", "now divide it by {c}", "divided by {c}?", "divide that by {c}"]}[kind]
        if first < 1 or first > 200 or kind == "/" and first % c or kind == "x" and first > 30 or kind == "-" and first <= c:
            continue
        if sums.held_out_pair(a, op, b) or kind in "+-" and sums.held_out_pair(first, kind, c):
            continue
        break
    last = {"+": first + c, "-": first - c, "x": first * c, "/": first // c}[kind]
    spoken = {"+": ["+", "plus"], "-": ["-", "minus"], "x": ["x", "times", "*"]}[op]
    question = rng.choice(["What is {}?", "what's {}", "{}", "How much is {}?", "{}?"]).format(f"{a} {rng.choice(spoken)} {b}")
    return [(question, rng.choice([f"{a} {op} {b} = {first}.", f"It is {first}.", f"{first}."])), (rng.choice(words).format(c=c), rng.choice([f"{first} {kind} {c} = {last}.", f"That is {last}."]))], f"The last result is {first}. {first} {kind} {c} = {last}."


def about_me(rng, data):
    told, questions = rng.choice(OWN)
    a, b, e = rng.sample(common.FIRST, 3)
    f, f2 = rng.sample(["pizza", "fish", "cheese", "soup", "rice", "noodles", "salad", "chocolate", "olives"], 2)
    slots = {"a": a, "b": b, "e": e, "c": toolcalls.draw(rng, "city"), "j": common.an(rng.choice("nurse|baker|teacher|driver|cook|painter|gardener|farmer|dentist|waiter".split("|"))), "col": rng.choice("green blue red yellow black white".split()), "y": rng.randint(1940, 2015), "pet": rng.choice(["dog", "cat", "horse", "parrot", "rabbit"]),
             "z": rng.choice("Rex Bella Max Luna Coco Milo Daisy Oscar".split()), "k": rng.randint(6, 80), "d": rng.choice(toolcalls.DAYS), "f": f, "f2": f2, "t": toolcalls.draw(rng, "time"), "n": rng.randint(100, 9999), "i": rng.choice("violin guitar flute drums trumpet".split()), "x": rng.choice(["a lamp", "a bike", "shoes", "a coat", "a table"])}
    question, answer = rng.choice(questions).split(" => ")
    turns = [(common.typed(rng, rng.choice(told).format(**slots)), rng.choice(HEARD))]
    if rng.random() < 0.25:
        other, reply = rng.choice([q for q in questions if not q.startswith(question)] or questions).split(" => ")
        turns.append((common.typed(rng, other.format(**slots)), reply.format(**slots)))
    elif rng.random() < 0.2:
        row = rng.choice(trivia())
        turns.append((common.typed(rng, rng.choice(row).question), plain(row[0].answer)))
    turns.append((common.typed(rng, question.format(**slots)), common.cap(answer.format(**slots))))
    return turns, f"The user told me: {turns[0][0]}"


@functools.cache
def trivia():
    return facts.general_facts(BANKS / "facts_trivia.txt") + facts.general_facts(BANKS / "facts_more.txt")


def bigger(rng, data):
    large, small = rng.choice(SIZES)
    turn = rng.random() < 0.5
    x, y = (large, small) if turn else (small, large)
    if rng.random() < 0.5:
        return [(rng.choice([f"Is {x} bigger than {y}?", f"is {x} larger than {y}?"]), f"{'Yes' if turn else 'No'}, {large} is bigger than {small}.")], f"{common.cap(large)} is the bigger one."
    return [(rng.choice([f"What is bigger, {x} or {y}?", f"Which is bigger: {x} or {y}?"]), f"{common.cap(large)} is bigger than {small}.")], f"{common.cap(large)} is the bigger one."


TURNS = [(12, one_more), (8, add_to_list), (5, joke), (10, explain), (9, go_on), (14, about_me), (2, bigger)]
