"""Small talk that answers to what was said: the thing, the person or the feeling of the user's line comes back in the answer.

A bank of lines and answers (talk_first.txt) teaches stock phrases; here both are put together from parts, so that the answer has to look at the line.
"""

from . import common, toolcalls

# what is ahead; as the answer names it
AHEAD = [tuple(line.split("/")) for line in "a math test/the math test|my driving test/the driving test|a job interview/the interview|a piano concert/the concert|a visit to the dentist/the dentist|my first day at the new school/your first day|a race/the race|a long flight/the flight|a speech at my sister's wedding/the speech|an operation/the operation|a first date/the date|a talk with my boss/the talk|the final of our club/the final|an audition/the audition|a French test/the French test|my first day as a nurse/your first day|a swimming contest/the contest|an important meeting/the meeting".split("|")]
WHEN = "tomorrow|on {d}|next week|tonight|this afternoon|in two days|soon".split("|")
FEAR = [("nervous", "It is normal to be nervous."), ("scared", "It is normal to be scared."), ("excited", "How exciting!"), ("worried", "I understand that you are worried."), ("a bit afraid", "Many people would be afraid, too."), ("looking forward to it", "How nice that you look forward to it!")]
CALM = ["Breathe slowly and take one step after another.", "You have prepared for it, and you can do it.", "Get some rest before it.", "A short walk before it may help.", "I keep my fingers crossed for you!"]
DONE = [tuple(line.split("/")) for line in "painted my room/painted your room|finished my book/finished your book|ran five kilometres/ran five kilometres|cooked dinner for ten people/cooked for ten people|repaired my bike/repaired your bike|planted tomatoes/planted tomatoes|passed my driving test/passed your driving test|learned to swim/learned to swim|cleaned the whole house/cleaned the whole house|wrote my first poem/wrote your first poem|sold my old car/sold your old car|built a table/built a table|baked bread for the first time/baked bread|won a chess game against my dad/won against your dad|stopped smoking/stopped smoking|got a puppy/got a puppy|found an old friend again/found your friend again".split("|")]
PRAISE = ["Well done! You {x}, you can be proud.", "Wow, you {x}! How do you feel?", "That is great! I am happy that you {x}.", "You {x}? Wonderful!"]
BAD = [tuple(line.split("/")) for line in "my bus did not come/the bus did not come|I dropped my phone/you dropped your phone|the rain ruined our picnic/the rain ruined the picnic|my team lost again/your team lost|I burned the cake/the cake burned|my neighbour was rude to me/your neighbour was rude|I forgot my wife's birthday/you forgot the birthday|I spilled coffee on my laptop/coffee got on your laptop|my plant died/your plant died|my best friend moved away/your best friend moved away|I did not get the job/you did not get the job|my tooth hurts/your tooth hurts|the cinema was sold out/the cinema was sold out|I could not find my shoes/you could not find your shoes|my boss shouted at me/your boss shouted at you|I broke my favorite cup/your favorite cup broke".split("|")]
COMFORT = ["I am sorry that {x}.", "Oh no, I am sorry that {x}. Can I help?", "That is a pity. I hope that the rest of the day is better.", "How annoying that {x}! Do you want to talk about it?"]
PLANS = [tuple(line.split("/")) for line in "visit my grandparents/visit your grandparents|bake a cake/bake a cake|go hiking/go hiking|paint the kitchen/paint the kitchen|watch a film/watch a film|learn Italian/learn Italian|sleep all day/sleep all day|meet an old friend/meet your friend|go to the market/go to the market|read in the park/read in the park|swim in the lake/swim in the lake|build a bird house/build a bird house|try a new restaurant/try a new restaurant|play football with my son/play football with your son|start a garden/start a garden".split("|")]
LOVE = [("I love {x}", "{X} is a fine thing! What do you like most about it?"), ("I really like {x}", "Nice! How did you come to like {x}?"), ("{X} makes me happy", "How lovely that {x} makes you happy!"), ("I could talk about {x} for hours", "Then tell me about {x}! What is best about it?"), ("I spend every evening with {x}", "You must be good at {x} by now! How did you start?")]
HATE = [("I do not like {x}", "That is fine, not everybody likes {x}. What do you like instead?"), ("I hate {x}", "I see, {x} is not for you. What do you like better?"), ("{X} bores me", "Then {x} is not for you. What would you rather do?")]
HOBBIES = "cooking|chess|music|swimming|drawing|football|gardening|cycling|reading|knitting|photography|dancing|history|skiing|running|painting|singing|travelling|board games|rain|the summer|old films|jazz|coffee".split("|")
OPINION = [("Do you prefer {a} or {b}?", "I am a program, so I have no taste of my own, but many people like {a}. And you?"), ("{a} or {b}?", "Both are good. I would try {a} today."), ("What is better, {a} or {b}?", "That depends on you. {A} is a good choice if you are not sure."), ("should I take {a} or {b}", "Take the one you look forward to. I would begin with {a}.")]
CHOICES = "tea|coffee|cats|dogs|summer|winter|the sea|the mountains|books|films|pizza|pasta|the city|the country|trains|planes|apples|pears|football|tennis|chocolate|vanilla".split("|")
FROM = [("I am from {c}", "Nice! What do you like most about {c}?"), ("I live in {c}", "{c} must be an interesting place. How long have you lived there?"), ("greetings from {c}", "Greetings back to {c}! How can I help you?"), ("I just came back from {c}", "Welcome back! How was {c}?"), ("I am travelling to {c} {w}", "Have a good trip to {c}! What do you want to see there?")]
NAMED = [("Hi, I'm {n}. What should I call you?", "Hi {n}! You can call me Chimere Nano."), ("my name is {n}, and yours?", "Nice to meet you, {n}! My name is Chimere Nano."), ("hello, {n} here", "Hello {n}! What can I do for you?"), ("I am {n} and I am new to this", "Welcome, {n}! Just ask me something, and I will try to help."), ("This is {n}, {k} years old", "Hello {n}! What would you like to talk about?")]
SMALL = [tuple(line.split("=")) for line in """the coffee here is terrible=Oh, that is a pity. Maybe tea is the better choice there.
what a week=It sounds like a lot happened. Tell me about it!
finally friday=Yes! Enjoy your weekend. Do you have plans?
it is monday again=A new week begins. I hope that it starts well for you.
I can't wait for the holidays=I understand! What are you going to do then?
I am waiting for my train=Then we have time to talk. Where are you going?
just testing you=Go ahead! Ask me something simple, a sum or a fact.
are you there?=Yes, I am here. What can I do for you?
sorry, wrong window=No problem! If you need anything, I am here.
you are fast=Thank you! I am a small model, so I am quick.
tell me a secret=I have no secrets, but here is a fact: an octopus has three hearts.
what do you think about me?=You seem curious, and I like questions. What is on your mind?
I don't trust computers=That is understandable. Please check what I say, I can be wrong.
can I ask you something personal?=Of course. I am a program, but I will answer as well as I can.
good afternoon=Good afternoon! How can I help you?
howdy=Howdy! What can I do for you?
what's new?=Not much here. What is new with you?
how's everything?=Everything is fine here, thank you. How are things with you?
long day today=I hope that you can rest now. What made it so long?
my kids are finally asleep=Then enjoy the quiet evening! You have earned it.
I need a hug=I cannot hug you, but I am here. What happened?
I am proud of myself today=That is wonderful! What did you do?
I miss my home=I am sorry. What do you miss most?
everyone is so busy, nobody has time for me=That sounds lonely. I have time. What is on your mind?
it is so hot today=Then drink enough water and stay in the shade!
it is freezing here=Brr! Put on something warm and have a hot tea.
my friends forgot my birthday=I am sorry, that hurts. Happy birthday from me!
do you remember me?=I only know what you write in this chat. But it is nice to see you!
give me a compliment=You ask good questions, and you are kind to a small program.
I am learning English=Great! You are doing well. Practise a little every day.
your English is good=Thank you! Yours is good, too.
are you tired of me?=No, I never get tired. Ask as much as you like!""".splitlines()]


def line(rng, text):
    """A line the way people type it."""
    roll = rng.random()
    text = common.cap(text) if roll < 0.55 else text
    return text + (rng.choice(["", ".", "!", "..."]) if text[-1] not in "?!." else "")


def ahead(rng):
    (what, named), (feeling, understood) = rng.choice(AHEAD), rng.choice(FEAR)
    when = rng.choice(WHEN).format(d=rng.choice(toolcalls.DAYS))
    said = rng.choice([f"I have {what} {when} and I am {feeling}", f"{when} I have {what}, I'm so {feeling}" if "looking" not in feeling else f"{when} I have {what}, I am {feeling}", f"I am {feeling}: {what} {when}", f"{what} {when}... I am {feeling}"])
    return said, f"{understood} " + rng.choice([f"Good luck with {named}!", f"I wish you all the best for {named}.", f"{rng.choice(CALM)}"]) + ("" if rng.random() < 0.5 else f" {rng.choice(CALM)}")


def done(rng):
    mine, yours = rng.choice(DONE)
    return rng.choice([f"I {mine}", f"I {mine} today", f"guess what, I {mine}", f"today I {mine}", f"I finally {mine}"]), rng.choice(PRAISE).format(x=yours)


def bad(rng):
    mine, yours = rng.choice(BAD)
    return rng.choice([f"{mine}", f"{mine} today", f"oh no, {mine}", f"bad day: {mine}", f"{mine} :("]), rng.choice(COMFORT).format(x=yours)


def plan(rng):
    mine, yours = rng.choice(PLANS)
    when = rng.choice(WHEN).format(d=rng.choice(toolcalls.DAYS))
    return rng.choice([f"{when} I want to {mine}", f"I am going to {mine} {when}", f"my plan for {rng.choice(toolcalls.DAYS)}: {mine}", f"I would like to {mine}"]), rng.choice([f"That sounds good! Have fun when you {yours}.", f"To {yours} is a nice plan. Enjoy it!", f"Good idea to {yours}! Who comes with you?"])


def taste(rng):
    said, answer = rng.choice(LOVE if rng.random() < 0.65 else HATE)
    x = rng.choice(HOBBIES)
    return said.format(x=x, X=common.cap(x)), answer.format(x=x, X=common.cap(x))


def opinion(rng):
    said, answer = rng.choice(OPINION)
    a, b = rng.sample(CHOICES, 2)
    return said.format(a=a, b=b), answer.format(a=a, b=b, A=common.cap(a))


def place(rng):
    said, answer = rng.choice(FROM)
    c = toolcalls.draw(rng, "city")
    return said.format(c=c, w=rng.choice(WHEN).format(d=rng.choice(toolcalls.DAYS))), answer.format(c=c)


def named(rng):
    said, answer = rng.choice(NAMED)
    n = rng.choice(common.FIRST)
    return said.format(n=n, k=rng.randint(8, 80)), answer.format(n=n)


def small(rng):
    return rng.choice(SMALL)


KINDS = [(18, ahead), (14, done), (16, bad), (12, plan), (12, taste), (5, opinion), (6, place), (5, named), (14, small)]


def answering_talk(rng, data):
    turns = []
    for _ in range(1 if rng.random() < 0.85 else 2):
        said, answer = rng.choices([k for _, k in KINDS], [w for w, _ in KINDS])[0](rng)
        turns.append((line(rng, said), answer))
    return turns, rng.choice([f'The user says: "{turns[-1][0]}" I answer to that.', "I answer to what was said.", "The user tells me something. I answer kindly to it."])


TALK = [(14, answering_talk)]
