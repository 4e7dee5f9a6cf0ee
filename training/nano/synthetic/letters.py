"""Short texts on request: emails, messages, invitations, notes, small poems of the day; and stories with what the user wants in them."""

from . import common, toolcalls

# occasion: (what the request says, [openings], [middles], [ends])
OCCASIONS = [
    ("that I am sick", ["I am sorry, but I am sick today", "Unfortunately I am ill", "I do not feel well today"], ["and cannot come to {w}", "and have to stay in bed", "so I will not be at {w}"], ["I hope to be back on {d}.", "I will write again when I feel better.", "Thank you for your understanding."]),
    ("that I will be late", ["I am running late", "I will be about {n} minutes late", "My train is late"], ["because of the traffic", "so please start without me", "and will come as soon as I can"], ["Sorry for the trouble.", "See you soon.", "Thank you for waiting."]),
    ("to thank {p} for the help", ["Thank you so much for your help", "I want to thank you for your help", "Many thanks for all you did"], ["with the move", "last week", "with my work"], ["It meant a lot to me.", "I owe you a coffee.", "I really appreciate it."]),
    ("to wish {p} a happy birthday", ["Happy birthday", "All the best for your birthday", "I wish you a very happy birthday"], ["and a great year", "and lots of cake", "from all of us"], ["Have a wonderful day!", "Enjoy your day!", "See you at the party!"]),
    ("to invite {p} to dinner", ["I would like to invite you to dinner", "Would you like to come to dinner", "Please come to dinner at my place"], ["on {d} at seven", "on {d} evening", "next {d}"], ["I will cook pasta.", "Let me know if you can come.", "I hope you have time."]),
    ("to invite {p} to my party", ["I am having a party", "You are invited to my party", "Come to my party"], ["on {d} at eight", "next {d}", "on {d} evening"], ["There will be music and cake.", "Please tell me if you can come.", "Bring a friend if you like."]),
    ("to ask my boss for a day off", ["I would like to ask for a day off", "May I take a day off", "I would like to take {d} off"], ["on {d}", "because of a family matter", "next week"], ["Please let me know if that is possible.", "My work is up to date.", "Thank you in advance."]),
    ("to say sorry to {p}", ["I am sorry for what I said", "I want to say sorry", "Please forgive me"], ["yesterday", "for being late", "for forgetting our date"], ["It will not happen again.", "I hope we can talk soon.", "You are important to me."]),
    ("to ask for a meeting", ["I would like to meet you", "Could we have a short meeting", "May I ask for a meeting"], ["on {d}", "to talk about the project", "about the plan for next month"], ["Please tell me which time suits you.", "Half an hour is enough.", "I look forward to your answer."]),
    ("to cancel our meeting", ["I am sorry, but I have to cancel our meeting", "I cannot come to our meeting", "Our meeting cannot take place"], ["on {d}", "this week", "because I am travelling"], ["Can we find another day?", "Would next {d} work for you?", "Sorry for the short notice."]),
    ("to complain about a broken lamp", ["The lamp I bought from you is broken", "I am not happy with the lamp", "The lamp does not work"], ["after one day", "although it is new", "and the glass has a crack"], ["Please send me a new one.", "I would like my money back.", "I look forward to your answer."]),
    ("to my neighbour about the noise", ["The music was very loud", "I could not sleep because of the noise", "It was noisy again"], ["last night", "after midnight", "on {d}"], ["Could you please be quieter at night?", "Thank you for your understanding.", "I am sure we can find a solution."]),
    ("to apply for a job", ["I would like to apply for the job", "I am interested in the position", "I read about your open position"], ["in your shop", "in your office", "as an assistant"], ["I work carefully and learn fast.", "I look forward to meeting you.", "My papers are attached."]),
    ("to wish {p} a good trip", ["Have a good trip", "I wish you a nice journey", "Safe travels"], ["and take many photos", "and enjoy the sun", "to {c}"], ["Write to me when you arrive.", "Come back soon!", "I will miss you."]),
    ("to congratulate {p} on the new job", ["Congratulations on your new job", "I heard about your new job", "Well done"], ["and I am very happy for you", "you really earned it", "in {c}"], ["I wish you a great start.", "Let us celebrate soon!", "All the best!"]),
    ("to ask when the shop opens", ["Could you tell me when you open", "I would like to know your opening times", "When do you open"], ["on {d}", "this week", "in the morning"], ["Thank you.", "Best wishes.", "I look forward to your answer."]),
    ("to a friend I have not seen for long", ["How are you", "It has been a long time", "I often think of you"], ["and I would love to see you", "and of our time in {c}", "so I wanted to write"], ["Do you have time on {d}?", "Write me when you can.", "Let us meet soon."]),
    ("to my teacher because I missed a lesson", ["I am sorry that I missed the lesson", "I could not come to the lesson", "I was not in class"], ["on {d}", "because I was ill", "because of a doctor's visit"], ["Could you tell me what we have to do?", "I will do the homework today.", "Thank you very much."]),
]
KINDS = ["email", "message", "short message", "letter", "note", "text message", "short email", "mail", "card"]
ASKED = ["Write {a} {o}.", "Write {a} {o}, please.", "Can you write {a} {o}?", "Please write {a} {o}.", "I need {a} {o}.", "Help me write {a} {o}.", "Could you help me with {a} {o}?", "Draft {a} {o}.", "Write me {a} {o}", "Compose {a} {o}."]
GREET, CLOSE = ["Dear {p},", "Hi {p},", "Hello {p},", "Dear {p},"], ["Best wishes,\n{me}", "Kind regards,\n{me}", "Yours,\n{me}", "Best,\n{me}", "Best wishes,\n[your name]", "Kind regards,\n[your name]"]
WORK = ["work", "the office", "school", "the meeting", "the lesson", "training"]


def letter(rng):
    what, openings, middles, ends = rng.choice(OCCASIONS)
    kind = rng.choice(KINDS)
    slots = {"p": rng.choice(common.FIRST), "d": rng.choice(toolcalls.DAYS), "n": rng.choice([10, 15, 20, 30]), "w": rng.choice(WORK), "c": toolcalls.draw(rng, "city"), "me": rng.choice(common.FIRST)}
    named = "{p}" in what or rng.random() < 0.5
    occasion = what.format(**slots) if "{p}" in what else (f"to {slots['p']} " if named and what.startswith("that") else "") + what
    if what.startswith("that") and rng.random() < 0.5:
        occasion = (f"to {slots['p']} " if named else "") + "saying " + what
    question = rng.choice(ASKED).format(a=common.an(kind), o=occasion)
    body = f"{rng.choice(openings)} {rng.choice(middles)}. {rng.choice(ends)}".format(**slots).replace("..", ".")
    person = slots["p"] if named else rng.choice(["all", "[name]", "Sir or Madam"]) if kind not in ("message", "text message") else ""
    if kind in ("message", "short message", "text message", "note", "card") and rng.random() < 0.7:
        text = (f"Hi {slots['p']}! " if named else "Hi! ") + body
    else:
        text = rng.choice(GREET).format(p=person or "you") + "\n\n" + body + "\n\n" + rng.choice(CLOSE).format(**slots)
    if rng.random() < 0.12:
        text = rng.choice(["Here is a draft:\n\n", "You could write:\n\n"]) + text
    return common.typed(rng, question), text, f"{common.cap(common.an(kind))} {occasion}: a greeting, the point and an end." if rng.random() < 0.6 else "I write it short and friendly."


HEROES = "dragon|baker|robot|fox|princess|farmer|cat|pirate|teacher|mouse|giant|king|wizard|dog|sailor|queen|bear|painter|clown|knight|rabbit|astronaut|girl|boy|fisherman|owl|witch|penguin|doctor|horse".split("|")
THINGS = "golden key|magic lamp|lost letter|red balloon|old map|silver bell|broken clock|big cake|small boat|blue stone|flying carpet|strange book|music box|tall ladder|warm coat".split("|")
PLACES = "a small village|a dark forest|the sea|a high mountain|a big city|an old castle|a quiet island|the desert|the moon|a green valley|a cold land".split("|")
STORY_ASKED = ["Tell me a story about {a} and {b}.", "Write a short story about {a} and {b}.", "A story with {a} and {b}, please.", "Can you tell me a story about {a} and {b}?", "Make up a story about {a} and {b}", "I want a story with {a} and {b}.",
               "Write a story in which {a} meets {b}.", "Tell me a bedtime story with {a} and {b}"]
ONE_ASKED = ["Tell me a story about {a}.", "Write a short story about {a}.", "Tell me a short tale of {a}.", "A story about {a}, please", "Can you write a little story about {a}?", "Please write a short story with {a} in it."]
BEGIN = ["Once there was {a} who lived in {l}.", "In {l} there lived {a}.", "A long time ago {a} lived in {l}.", "Far away, in {l}, lived {a}."]
MEET = ["One day the {A} met {b}.", "One morning {b} came by.", "Then, on a rainy day, {b} knocked at the door.", "One evening the {A} heard somebody cry. It was {b}."]
TROUBLE = ["The {B} had lost {t} and was very sad.", "The {B} was hungry and had nothing to eat.", "The {B} did not know the way home.", "The {B} was looking for {t}.", "Both wanted {t}, and they began to quarrel.", "A storm had broken the roof of the {B}."]
HELP = ["The {A} thought for a while and had an idea.", '"Do not worry," said the {A}, "we will do it together."', "The {A} wanted to help at once.", '"Come with me," said the {A}.']
DEED = ["They looked under every stone and behind every tree.", "They walked for three days and sang to keep warm.", "They worked all day long.", "They asked everybody they met.", "They climbed up a hill and looked around."]
LUCK = ["In the end they found what they needed in an old well.", "At last a little bird showed them the way.", "When the sun went down, they had done it.", "Suddenly everything was easy, because they were two."]
LAST = ["From that day on the {A} and the {B} were friends.", "They shared some bread and laughed until late.", "And they never forgot that day.", "So the {A} and the {B} lived happily in {l}.", "Everybody in {l} still tells this story."]


def story(rng):
    a, b = rng.sample(HEROES, 2)
    thing, land = rng.choice(THINGS), rng.choice(PLACES)
    two = rng.random() < 0.6
    with_thing = rng.random() < 0.25
    asked = rng.choice(STORY_ASKED).format(a=common.an(a), b=common.an(thing) if with_thing else common.an(b)) if two else rng.choice(ONE_ASKED).format(a=common.an(a))
    slots = {"a": common.an(a), "b": common.an(b), "A": a, "B": b, "t": common.an(thing), "l": land}
    trouble = rng.choice([t for t in TROUBLE if not with_thing or "{t}" in t])
    parts = [rng.choice(BEGIN), rng.choice(MEET), trouble, rng.choice(HELP), rng.choice(DEED), rng.choice(LUCK), rng.choice(LAST)]
    text = " ".join(part.format(**slots) for part in parts[:3]) + "\n\n" + " ".join(part.format(**slots) for part in parts[3:])
    return common.typed(rng, asked), text, f"A story with {common.an(a)}" + (f" and {common.an(thing) if with_thing else common.an(b)}" if two else "") + ": a meeting, a trouble, a good end."


def dialogues(rng, count):
    for _ in range(count):
        user, text, thought = letter(rng) if rng.random() < 0.62 else story(rng)
        yield common.turns_to_dialogue(rng, [(user, text)], "letters", thought)
