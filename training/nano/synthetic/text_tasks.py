"""Instructions on a given text: small texts with known facts, and what people ask to be done with them.

given_text.py and newcomers.py have one or two shapes for each instruction. Here a text (banks/text_scenes.txt) comes with its summary, title, key words and
questions, so that the same text is asked about in every way, and short lines are rewritten, sorted, counted, completed and answered.
"""

import functools
import random

from . import common, given_text, toolcalls
from .fact import BANKS
from .newcomer_words import VERBS

MALE = set("""Ben David Felix Hugo Jack Leo Oscar Paul Sam Tom Will Amir Bruno Farid Ivan Kofi Nils Quinn Ravi Tariq Viktor Colin Erik Gustav Igor Karl Marco Otto Simon Walter Yusuf Boris Dennis Frank Harry Joel Luis Noah Peter Stefan Victor""".split())
PETS = "dog|cat|parrot|rabbit|horse".split("|")
SUMMARIES = ["Summarise", "Summarize this", "Summarize", "Summarise in one sentence", "Sum this up", "Sum it up in one sentence", "In one sentence", "Give me the main point", "What is this text about", "Give a short summary", "tl;dr", "Make a summary", "What is the main idea",
             "Shorten this to one sentence", "Say in one sentence what this is about", "Write a one-sentence summary", "What does the text say, in short", "Put this into one sentence", "What is the key message", "Can you summarise this for me", "Briefly, what does it say"]
TITLES = ["Give this text a title", "Write a title for this text", "Find a headline", "Suggest a title", "What would be a good title", "Give me a headline for this", "Write a short title", "Think of a title for this"]
KEYS = ["Give me three keywords of this text", "List three keywords", "What are the key words", "Name three important words of the text", "Pick three keywords", "Extract the keywords", "Find three key words"]
NAMED = ["Find all the names", "List the names in this text", "Which people are mentioned", "Who is mentioned in the text", "Extract the names of the people", "Which names are in the text", "List all people"]
FORMS = ["{q} {t}", "{t} {q}", "{q}\n\n{t}", "{t}\n\n{q}", "Text: {t}\nQuestion: {q}", 'Read this: "{t}" {q}', "{q} Here is the text: {t}", 'I got this text: "{t}" {q}', "From the text, {l} {t}", "According to this text, {l} {t}", 'Answer from the text: {l} "{t}"', "{q} (Text: {t})"]
# wordy and short
WORDY = [tuple(line.split("=")) for line in """due to the fact that {r}, {m}=because {r}, {m}
in view of the fact that {r}, {m}=because {r}, {m}
as a result of the fact that {r}, {m}=because {r}, {m}
I would like to let you know that {m}={m}
I am writing to inform you that {m}={m}
it should be noted that {m}={m}
please be informed that {m}={m}
what I want to say is that {m}={m}
in my own personal opinion, I think that {m}=I think that {m}
at this point in time {m}=now {m}
in spite of the fact that {r}, {m}=although {r}, {m}
it was because {r} that {m}={m} because {r}
I just wanted to quickly tell you that {m}={m}
as you may already know, {m}={m}
there is no doubt about the fact that {m}=surely {m}""".splitlines()]
WHY = "it was raining very heavily|the train was late|the shop was closed|I was ill|the road was blocked|there was no electricity|we had no money left|the children were tired|it was very cold outside|the teacher was away|the car did not start|nobody had a key".split("|")
WHAT = "we stayed at home|the party is cancelled|we took the bus|the lesson begins later|I cannot come to the meeting|we need more time|the match was moved to {d}|we cooked at home|the office is closed on {d}|the tickets are sold out|{a} will call you tomorrow|we have to find another room|the bill was too high|everybody went home early".split("|")
# plain words for hard ones
SIMPLER = [tuple(line.split("=")) for line in """The {x} has been postponed indefinitely.=The {x} will be later, and nobody knows when.
The {x} was cancelled due to unforeseen circumstances.=The {x} does not take place because something unexpected happened.
Attendance is mandatory.=Everybody has to be there.
The premises must be vacated by {d}.=Everybody has to leave the building by {d}.
Payment is due upon receipt.=You have to pay when you get it.
Please refrain from smoking.=Please do not smoke.
The {x} is currently unavailable.=You cannot get the {x} at the moment.
We regret to inform you that your request was denied.=We are sorry, but you cannot have what you asked for.
The committee reached a unanimous decision.=Everybody in the group decided the same.
He was reluctant to accept the offer.=He did not really want to say yes.
The two options are mutually exclusive.=You can have only one of the two.
The document must be submitted prior to {d}.=You have to hand in the paper before {d}.
{a} resides in the vicinity.={a} lives near here.
The device is not functioning properly.=The device does not work well.
A considerable number of people were absent.=Many people were not there.
The price will be increased substantially.=The price will be much higher.
Kindly await further instructions.=Please wait until we tell you more.
The path is inaccessible during winter.=You cannot use the path in winter.
She concluded her speech with an anecdote.=She ended her speech with a little story.
Children must be accompanied by an adult.=Children may only come with a grown-up.""".splitlines()]
REPLIES = [tuple(part.split("|") for part in line.split("=")) for line in """are you free for lunch on {d}?|do you have time on {d}?|can we meet on {d}?|shall we have coffee on {d}?|do you want to go to the cinema on {d}?=Yes, {d} is fine for me. I look forward to it!|Sorry, I have no time on {d}. How about {d2}?
thank you for the {g}!|thanks again for the {g}|the {g} was great, thank you=You are welcome! I am glad that you liked the {g}.
I am sorry, I will be late|I am stuck in traffic, sorry|my bus is late, I come at {t}=No problem, thank you for telling me. See you soon!
happy birthday!|all the best for your birthday!|happy birthday, have a great day=Thank you very much! That is so kind of you.
I got the job!|I passed the exam!|we won the game!=Congratulations! I am so happy for you.
can you help me with {h} on {d}?|could you help me with {h}?|I need help with {h}, do you have time?=Of course, I am happy to help with {h}. When shall I come?
where are you?|are you on your way?|when will you be here?=I am on my way and will be there soon.
how was your weekend?|did you have a nice weekend?|how was your holiday?=It was very nice, thank you! How was yours?
I am ill and cannot come today|I have a fever and stay at home today=I am sorry to hear that. Get well soon!
can you send me the {o}?|please send me the {o}|do you still have the {o}?=Sure, I will send you the {o} today.
do you want to come to my party on {d}?|you are invited to dinner on {d}|we have a barbecue on {d}, will you come?=Thank you for the invitation! I will be there on {d}.
the meeting is moved to {d}|we have to move our meeting to {d}, is that fine?=Thank you for letting me know. {d} is fine for me.""".splitlines()]
REPLY = ["Reply to this message", "Write a reply", "Answer this message", "What can I answer", "Write an answer to this text", "How should I reply to this", "Write a short friendly reply", "Help me answer this"]
SUBJECTS = [("He", "he", True), ("She", "she", True), ("{n}", "{n}", True), ("My brother", "my brother", True), ("The dog", "the dog", True), ("My mother", "my mother", True), ("They", "they", False), ("We", "we", False), ("The children", "the children", False)]
TYPOS = [("every", "evry"), ("because", "becaus"), ("friend", "freind"), ("tomorrow", "tomorow"), ("yesterday", "yesturday"), ("school", "scool"), ("beautiful", "beatiful"), ("really", "realy"), ("there", "ther"), ("always", "allways"), ("people", "peple"), ("house", "hous"), ("with", "whit"), ("morning", "moring"), ("evening", "evning"), ("water", "watter")]
EXTRAS = "every day|every morning|with a friend|in the evening|because it is fun|at school|in the house|after school|on Sundays|very often".split("|")
WORDS = """apple banana cherry pear plum grape lemon orange melon peach cat dog horse mouse rabbit bear fox lion tiger zebra camel duck table chair lamp sofa desk window door carpet bed shelf red blue green yellow black white pink brown grey
car train bus bike plane ship tram boat truck bread milk cheese butter sugar salt rice egg honey tea pen book paper ruler bag pencil notebook rain snow wind storm cloud sun fog tree flower grass leaf forest river mountain sea island beach king queen knight castle""".split()
PAIRS = [tuple(line.split("/")) for line in "the sun was shining/we went to the beach|the shop was closed/we went home|it was late/we took a taxi|{a} was hungry/{a} made a sandwich|the bus did not come/we walked|the film was boring/we left early|the dog barked/the cat ran away|it was cold/{a} put on a coat|the music was loud/nobody could sleep|the soup was hot/we waited".split("|")]


@functools.cache
def scenes():
    """(sentences, summary, title, keys, [(question, answer)]) of the bank."""
    out = []
    for block in (BANKS / "text_scenes.txt").read_text(encoding="utf8").strip().split("\n\n"):
        text, second, third = block.split("\n")
        summary, title, keys = second.removeprefix("= ").split(" = ")
        questions = [tuple(pair.split(" => ")) for pair in third.removeprefix("= ").split(" // ")]
        out.append((text.split(" / "), summary, title, keys.split(", "), questions))
    return out


def slots(rng):
    a, b, c = rng.sample(common.FIRST, 3)
    d, d2 = rng.sample(toolcalls.DAYS, 2)
    he = "he" if a in MALE else "she"
    animal, x = rng.choice("fox owl deer hare otter badger swan goat".split()), rng.choice(["a lamp", "a chair", "a blue folder", "a coffee machine", "some bread", "a phone", "a salad", "a warm jacket", "a clock", "a teapot"])
    places = rng.sample(["Bonn", "Leeds", "Lyon", "Oxford", "Turin", "Ghent", "Porto", "Graz", "Malmo", "Basel", "Cork", "Seville", "Bergen", "Krakow"], 2) if rng.random() < 0.6 else [common.place(rng), common.place(rng)]
    return {"a": a, "b": b, "c": c, "f": rng.choice(common.FAMILY), "d": d, "d2": d2, "he": he, "He": he.capitalize(), "his": "his" if he == "he" else "her", "an": animal, "An": animal.capitalize(), "x": x, "X": common.cap(x), "p": places[0], "p2": places[1], "pet": rng.choice(PETS),
            "z": rng.choice(["Rusty", "Bella", "Max", "Luna", "Coco", "Rocky", "Milo", "Daisy", "Oscar", "Ruby"]), "v": rng.choice(["town hall", "theatre", "school hall", "church", "market hall", "old mill"]), "o": rng.choice(["town hall", "old bridge", "swimming pool", "market hall", "theatre", "tunnel", "main road"]), "q": rng.choice(["river", "park", "church", "station", "harbour", "market", "lake", "school"]),
            "r": rng.choice(["kitchen", "office", "blue room", "library", "hall", "cafe", "garden room"]), "m": rng.choice(toolcalls.MONTHS), "t": toolcalls.draw(rng, "time"), "n": rng.choice(["two", "three", "four", "five", "six", "seven", "eight"]), "h": rng.choice(["seven", "eight", "nine"]), "k": rng.randint(11, 28), "k1": rng.choice(["two", "three", "four"]),
            "e": rng.randint(3, 40), "y": rng.randint(1600, 1950), "j": rng.choice("nurse baker teacher driver painter cook gardener".split()), "g": rng.choice(["soup", "sandwiches", "bread", "fruit", "salads", "noodles"]), "g2": rng.choice(["ball", "puzzle", "wooden train", "kite", "board game", "doll's house"])}


def scene(rng):
    sentences, summary, title, keys, questions = rng.choice(scenes())
    values = slots(rng)

    def filled(text):
        return common.cap(text.format(**values))
    return [filled(s) for s in sentences], filled(summary), filled(title), [k.format(**values) for k in keys], [(filled(q), filled(a)) for q, a in questions], values


def asked(rng, instruction, text):
    """An instruction and a text in one of the ways people put them together, quoted or not."""
    if rng.random() < 0.15:
        return f"{text}\n\n{instruction}" + rng.choice([".", ", please.", ""])
    return given_text.asked(rng, instruction, f'"{text}"' if rng.random() < 0.15 else text).replace('""', '"')


def summary(rng, data):
    sentences, short, *_ = scene(rng)
    return [(asked(rng, rng.choice(SUMMARIES), " ".join(sentences)), short)], rng.choice([f"The main point: {short}", "I say the most important thing in one sentence."])


def headline(rng, data):
    sentences, short, title, *_ = scene(rng)
    return [(asked(rng, rng.choice(TITLES), " ".join(sentences)), rng.choice([title, title, f'"{title}"']))], f"It is about this: {short}"


def keywords(rng, data):
    sentences, _, _, keys, *_ = scene(rng)
    answer = rng.choice([", ".join(keys) + ".", "\n".join("- " + key for key in keys), common.cap(", ".join(keys))])
    return [(asked(rng, rng.choice(KEYS), " ".join(sentences)), answer)], f"The important words are {common.listed(keys)}."


def question(rng, data):
    """One or two questions about the text, also as a talk of several turns."""
    sentences, _, _, _, questions, _ = scene(rng)
    if rng.random() < 0.2:
        sentences = [rng.choice(given_text.sentences(data)) if data else "We hope for good weather.", *sentences]
    text = " ".join(sentences)
    chosen = rng.sample(questions, min(len(questions), rng.choice([1, 1, 1, 2, 3])))
    q, a = chosen[0]
    short = rng.random() < 0.12 and a.startswith(("Yes,", "No,"))
    if short:
        a = a.split(",")[0] + "."
    user = rng.choice(FORMS).format(q=q, t=text, l=q[0].lower() + q[1:] if q.split(" ")[0] in ("Who", "What", "Where", "When", "Why", "How", "Which", "Is", "Was", "Can", "Until", "Since", "In") else q)
    turns = [(rng.choice(["Answer with yes or no: ", "Yes or no: "]) + user if short else user, a)]
    turns += [(common.typed(rng, q), a) for q, a in chosen[1:]]
    return turns, f'The text says it: {turns[-1][1]}'


def two_questions(rng, data):
    """Two questions in one breath: both are answered."""
    sentences, _, _, _, questions, _ = scene(rng)
    usable = [(q, a) for q, a in questions if q.split(" ")[0] in ("Who", "What", "Where", "When", "Why", "How")]
    if len(usable) < 2:
        return question(rng, data)
    (q1, a1), (q2, a2) = rng.sample(usable, 2)
    both = f"{q1.rstrip('?')} and {q2[0].lower() + q2[1:]}"
    return [(rng.choice(FORMS[:9]).format(q=both, t=" ".join(sentences), l=both[0].lower() + both[1:]), f"{a1} {a2}")], f"First: {a1} Second: {a2}"


def names(rng, data):
    people = rng.sample(common.FIRST, rng.choice([2, 2, 3, 3, 4]))
    if rng.random() < 0.4:
        people[-1] = rng.choice(["Mr ", "Mrs ", "Dr ", "Ms "]) + rng.choice(common.FAMILY)
    if rng.random() < 0.3:
        people[0] += " " + rng.choice(common.FAMILY)
    place, day = toolcalls.draw(rng, "city"), rng.choice(toolcalls.DAYS)
    first, rest = people[0], common.listed(people[1:])
    text = rng.choice([f"Yesterday {first} met {rest} at the library.", f"On {day} {first} and {rest} went to {place}." if len(people) == 2 else f"On {day} {common.listed(people)} went to {place}.", f"{first} wrote a letter to {rest}.", f"Last week {first} cooked for {rest} in {place}.",
                       f"In {place} {first} plays chess with {rest} every {day}.", f"Then {first} called {rest}, but nobody answered.", f"Today {common.listed(people)} have an exam.", f"The winners are {common.listed(people)}."])
    answer = rng.choice([common.listed(people) + ".", "\n".join("- " + p for p in people), f"The names are {common.listed(people)}.", ", ".join(people)])
    return [(asked(rng, rng.choice(NAMED), text), answer)], f"The people are {common.listed(people)}."


def fields(rng, data):
    """Two or three things out of a text, each with its label."""
    v = slots(rng)
    found = {"date": f"{v['k']} {v['m']}", "place": f"the {v['v']} in {v['p']}", "time": v["t"], "price": f"{v['e']} euros", "name": f"{v['a']} {v['f']}"}
    event = rng.choice(["concert", "meeting", "exhibition", "wedding", "course", "match", "reading", "market"])
    text = rng.choice([f"The {event} takes place on {found['date']} at {found['place']}.", f"You are invited to the {event} at {found['place']} on {found['date']}.", f"On {found['date']} there is a {event} at {found['place']}."])
    known = ["date", "place"]
    if rng.random() < 0.6:
        text += rng.choice([f" It begins at {found['time']}.", f" Doors open at {found['time']}."])
        known.append("time")
    if rng.random() < 0.5:
        text += rng.choice([f" Tickets cost {found['price']}.", f" The price is {found['price']}."])
        known.append("price")
    if rng.random() < 0.4:
        text += rng.choice([f" Please write to {found['name']}.", f" Ask {found['name']} if you have questions."])
        known.append("name")
    some = rng.sample(known, rng.choice([1, 2, 2, 2, min(3, len(known))]))
    chosen = [k for k in known if k in some]
    labels = common.listed("the " + k for k in chosen) if rng.random() < 0.5 else "the " + common.listed(chosen)
    ask = rng.choice([f"Extract {labels}", f"Find {labels}", f"Give me {labels}", f"What {'is' if len(chosen) == 1 else 'are'} {labels}", f"Pull out {labels}", f"Get {labels} from this text", f"Write down {labels}"])
    answer = common.cap(found[chosen[0]]) + "." if len(chosen) == 1 else "\n".join(f"{common.cap(k)}: {found[k]}" for k in chosen) if rng.random() < 0.75 else common.cap(common.listed(f"the {k} is {found[k]}" for k in chosen)) + "."
    return [(asked(rng, ask, text), answer)], " ".join(f"The {k} is {found[k]}." for k in chosen)


def shorter(rng, data):
    wordy, short = rng.choice(WORDY)
    v = slots(rng)
    m = rng.choice(WHAT).format(**v)
    r = rng.choice(WHY)
    text, answer = (common.cap(t.format(r=r, m=m)) + "." for t in (wordy, short))
    return [(asked(rng, rng.choice(["Make this shorter", "Shorten this sentence", "Say this in fewer words", "Simplify this sentence", "Write this more briefly", "Cut this down", "Make it shorter", "Shorten"]), text), answer)], "The long words say only this: " + answer


def simpler(rng, data):
    hard, plain = rng.choice(SIMPLER)
    v = slots(rng) | {"x": rng.choice(["meeting", "concert", "match", "course", "trip", "book", "service", "flight"])}
    return [(asked(rng, rng.choice(["Explain this sentence in simple words", "Say this in simple words", "What does this mean", "Put this in plain English", "Explain this", "Make this easier to understand", "Rewrite this in simple English", "Simplify this"]), hard.format(**v)), plain.format(**v))], \
        "I say the same with easy words."


def reply(rng, data):
    messages, answers = rng.choice(REPLIES)
    v = slots(rng) | {"g": rng.choice(["flowers", "present", "book", "cake", "nice evening", "help"]), "h": rng.choice(["the move", "my homework", "the garden", "my computer"]), "o": rng.choice(["photos", "report", "recipe", "address", "list"])}
    text = rng.choice(messages).format(**v).replace("the help", "your help")
    text = rng.choice(["{}", "Hi, {}", "Hey! {}", "Hi {}, {{}}".format(v["c"]), "Hello, {}"]).format(text)
    answer = rng.choice(answers).format(**v | {"h": v["h"].replace("my ", "your ")}).replace("the help", "my help")
    return [(asked(rng, rng.choice(REPLY), common.cap(text)), answer)], "I answer as the one who got the message."


def grammar(rng, data):
    """A wrong verb and perhaps a wrong spelling, made by rule."""
    base, third, past, rest = rng.choice(VERBS)
    subject, _, single = rng.choice(SUBJECTS)
    subject = subject.format(n=rng.choice(common.FIRST))
    extra = rng.choice(EXTRAS)
    right = f"{subject} {third if single else base} {rest} {extra}."
    wrong = f"{subject} {base if single else third} {rest} {extra}."
    if rng.random() < 0.25:
        right = f"{subject} {'does not' if single else 'do not'} {base} {rest}."
        wrong = f"{subject} {'do not' if single else 'does not'} {base} {rest}." if rng.random() < 0.5 else f"{subject} {'dont' if single else 'doesnt'} {base} {rest}."
    elif rng.random() < 0.2:
        right = f"Yesterday {subject if subject[0] != 'H' and subject not in ('She', 'They', 'We', 'My brother', 'My mother', 'The dog', 'The children') else subject.lower() if subject in ('He', 'She', 'They', 'We') else subject[0].lower() + subject[1:]} {past} {rest}."
        wrong = right.replace(f" {past} ", f" {base} ", 1)
    if rng.random() < 0.5:
        for good, bad in rng.sample(TYPOS, len(TYPOS)):
            if f" {good} " in wrong or f" {good}." in wrong:
                wrong = wrong.replace(good, bad, 1)
                break
    if rng.random() < 0.4:
        wrong = wrong[0].lower() + wrong[1:].rstrip(".")
    return [(asked(rng, rng.choice(["Correct the mistakes", "Fix the grammar", "Correct this sentence", "Fix the mistakes", "Is this correct? If not, fix it", "Correct my English", "Check this sentence", "Correct this", "Find the mistake and correct it", "Fix this"]), wrong), right if rng.random() < 0.8 else f"Correct is: {right}")], \
        f"The right sentence is: {right}"


def sorting(rng, data):
    words = rng.sample(WORDS, rng.randint(3, 6))
    ordered = sorted(words)
    shown = rng.choice([", ".join(words), ", ".join(words), common.listed(words), " ".join(words), "\n".join(words)])
    if rng.random() < 0.65:
        ask, result, why = rng.choice(["Put these in alphabetical order", "Sort these words alphabetically", "Sort alphabetically", "Order these words from A to Z", "Put these words in ABC order", "Arrange in alphabetical order"]), ordered, "From a to z: " + ", ".join(f"{w[:2]} {w}" for w in ordered) + "."
    elif rng.random() < 0.5:
        numbers = rng.sample(range(1, 99), rng.randint(3, 6))
        shown, result = ", ".join(map(str, numbers)), [str(n) for n in sorted(numbers)]
        ask, why = rng.choice(["Sort these numbers", "Put these numbers in order", "Sort from small to large", "Order these numbers from smallest to largest"]), "From small to large: " + ", ".join(result) + "."
    else:
        longest = max(words, key=len)
        if sum(len(w) == len(longest) for w in words) > 1:
            return sorting(rng, data)
        return [(asked(rng, rng.choice(["Which word is the longest", "Find the longest word", "What is the longest word"]), shown), rng.choice([longest, f'The longest word is "{longest}".', common.cap(longest) + "."]))], ", ".join(f"{w} {len(w)}" for w in words) + "."
    return [(asked(rng, ask, shown), ", ".join(result) if "\n" not in shown or rng.random() < 0.3 else "\n".join(result))], why


def counting(rng, data):
    """Words, letters, or how often a word stands in a sentence."""
    roll = rng.random()
    if roll < 0.45:
        line = rng.choice([s for s in rng.sample(given_text.sentences(data), 12) if len(s.split()) <= 10] or ["The cat sleeps."]) if data else "The cat sleeps on the sofa."
        words = line.rstrip(".").split()
        return [(asked(rng, rng.choice(["How many words are in this sentence", "Count the words", "How many words does this have", "How many words is this", "Number of words"]), line), rng.choice([f"There are {len(words)} words.", f"{len(words)}", f"The sentence has {len(words)} words."]))], \
            " ".join(f"{w.strip(',')} {i + 1}" for i, w in enumerate(words)) + "."
    word = rng.choice(WORDS)
    if roll < 0.75:
        return [(rng.choice([f"How many letters are in the word {word}?", f'How many letters has "{word}"?', f"Count the letters of {word}.", f"how many letters does {word} have", f"How long is the word {word}?"]), rng.choice([f"The word {word} has {len(word)} letters.", f"{len(word)} letters."]))], \
            " ".join(f"{c} {i + 1}" for i, c in enumerate(word)) + "."
    letter = rng.choice(word)
    times = word.count(letter)
    return [(rng.choice([f"How many times does the letter {letter} occur in {word}?", f"How many {letter}'s are in {word}?", f'How often is "{letter}" in the word "{word}"?']), f"{['', 'Once', 'Twice', 'Three times'][times] if times < 4 else str(times) + ' times'}.")], \
        " ".join(c for c in word) + f": {times}."


def spelled(rng, data):
    word = rng.choice(WORDS)
    ask, answer = rng.choice([([f"Spell the word {word}.", f"How do you spell {word}?", f"spell {word}"], "-".join(word.upper())), ([f"What is the first letter of {word}?", f"Which letter does {word} begin with?"], f"The first letter of {word} is {word[0]}."),
                              ([f"What is the last letter of {word}?", f"Which letter does {word} end with?"], f"The last letter of {word} is {word[-1]}."), ([f"Write {word} in capital letters.", f"{word} in upper case"], word.upper()), ([f"Write {word} backwards.", f"Spell {word} backwards.", f"reverse the word {word}"], word[::-1])])
    return [(rng.choice(ask), answer)], " ".join(word) + "."


def joined(rng, data):
    """Two sentences made one, or one made two."""
    first, second = (t.format(a="{a}") for t in rng.choice(PAIRS))
    a = rng.choice(common.FIRST)
    first, second = first.format(a=a), second.format(a=a)
    link = rng.choice(["so", "and", "because"])
    two = f"{common.cap(first)}. {common.cap(second)}."
    if link == "because":
        return [(asked(rng, rng.choice(['Join these sentences with "because"', 'Combine with "because"']), two), f"{common.cap(second)} because {first}.")], "The reason comes after because."
    if rng.random() < 0.65:
        return [(asked(rng, rng.choice([f'Join these sentences with "{link}"', f'Combine these two sentences with "{link}"'] + ([ "Combine these two sentences", "Make one sentence of these", "Join these sentences"] if link == "so" else [])), two), f"{common.cap(first)}, {link} {second}.")], f"I join them with {link}."
    return [(asked(rng, rng.choice(["Split this into two sentences", "Make two sentences of this", "Write this as two short sentences"]), f"{common.cap(first)}, {link} {second}."), two)], "One thought in each sentence."


def listing(rng, data):
    """Steps or things of a sentence as points, with or without numbers."""
    things = rng.sample(["buy bread", "call the doctor", "clean the kitchen", "feed the cat", "pay the bill", "water the plants", "write to Anna", "pack the bag", "book a table", "wash the car", "read the report", "post the letter"], rng.choice([3, 3, 4]))
    text = rng.choice(["Today I have to {}.", "Tomorrow I want to {}.", "Please remember to {}.", "First I have to {}.", "On my list for today: {}."]).format(common.listed(things))
    numbered = rng.random() < 0.3
    ask = rng.choice(["Turn this into a numbered list", "Number the tasks", "Make a numbered list"] if numbered else ["Turn this into a to-do list", "Make a to-do list", "List the tasks", "Write this as bullet points", "Make a list of what I have to do", "Turn this into bullet points"])
    return [(asked(rng, ask, text), "\n".join(f"{i}. {t}" if numbered else f"- {t}" for i, t in enumerate(things, 1)))], f"There are {len(things)} tasks."


TASKS = [(14, summary), (6, headline), (6, keywords), (26, question), (5, two_questions), (8, names), (10, fields), (7, shorter), (5, simpler), (7, reply), (11, grammar), (8, sorting), (7, counting), (3, spelled), (4, joined), (6, listing)]


def dialogues(rng, data, count):
    for _ in range(count):
        turns, thought = rng.choices([t for _, t in TASKS], [w for w, _ in TASKS])[0](rng, data)
        yield common.turns_to_dialogue(rng, turns, "given_text", thought)


if __name__ == "__main__":
    for one in dialogues(random.Random(1), None, 20):
        print(one["messages"])
