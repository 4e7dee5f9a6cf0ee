"""What newcomers say and ask and the other generators have too little of: news of their life, sums inside a question, two questions
at once, programs with a name or a word of their own, and simple talk in French and Spanish."""

from . import common, follow_ups, programs, sums, toolcalls

# what is told | what to answer; {n} a name, {t} a thing
NEWS = [tuple(part.split("|") for part in line.split(" => ")) for line in """
I got a new job|I start a new job on {d}|they hired me today => Congratulations! What kind of work is it?|That is great news! I wish you a good start.
I lost my wallet|my wallet is gone|somebody stole my bike => I am sorry to hear that. Have you asked at the lost property office?|That is annoying. I hope that you find it again.
my cat is ill|my dog does not eat|my rabbit is sick => I am sorry. A vet can tell you what is wrong.|Poor animal! I hope it gets well soon.
I had a fight with {n}|{n} is angry with me|{n} does not talk to me any more => That sounds hard. Maybe you can talk it over with {n} calmly.|I am sorry. Would you like to tell me what happened?
I failed my driving test|I did not pass|I made a terrible mistake at work => I am sorry. Many people need a second try. Do not give up!|That happens to everybody. What could you do differently next time?
we are having a baby|my sister had a baby|{n} is going to be a father => Congratulations! That is wonderful news.|How lovely! I am happy for you.
I am getting married|{n} asked me to marry him|we marry in {m} => Congratulations! I wish you all the best.|How wonderful! When is the big day?
tomorrow is my first day at work|I have a job interview tomorrow|I must give a talk on {d} => Good luck! Sleep well and take a deep breath before you start.|You can do it! Preparing a few notes may help.
I have a cold|I have a headache|my back hurts|I feel sick => I am sorry. Rest, drink enough water, and see a doctor if it does not get better.|Get well soon! A little rest may help.
I cannot fall asleep|I slept badly|I wake up every night => That is tiring. A quiet walk and no screens in the evening may help.|I am sorry. Try to go to bed at the same time every day.
my grandmother died|our dog died last week|I lost a good friend => I am very sorry for your loss.|I am so sorry. Would you like to tell me about it?
I missed my train|I was late for work|my flight was cancelled => How annoying! Is there another one soon?|I am sorry. I hope that the rest of the day is better.
it is my birthday today|I turn {k} today|today is my birthday! => Happy birthday! I hope you have a lovely day.|Happy birthday! How are you going to celebrate?
I am learning the guitar|I started to paint|I am learning to cook => That sounds fun! How long have you been doing it?|Nice! A little practice every day helps a lot.
guests come tonight and I have no idea what to cook|{n} comes to dinner, what now => How about pasta with tomato sauce and a salad? That is quick and most people like it.
I am afraid of flying|I am scared of spiders|I am afraid of the dark => Many people feel that way. Slow, deep breaths can help.|I understand. Would you like to talk about what scares you?
I feel lonely|I have nobody to talk to|I miss {n} => I am sorry that you feel that way. Maybe you could call a friend or join a club.|That is hard. I am here if you want to talk.
I have too much to do|I am so stressed|work is too much at the moment => That sounds hard. Write down what matters most and begin with one small thing.|I am sorry. Take a short break, then do one thing after another.
I want to get up earlier|I want to eat better|I want to do more sport => Good idea! Begin with a small step and do it every day.|That is a good plan. What would be the first step?
the sun is shining here|it is snowing here|it has been raining for days => Enjoy it! Are you going outside today?|Thank you for telling me. What are you going to do today?
we won the match|I won a prize|I ran ten kilometres => Well done! You can be proud.|Great! How does it feel?
I broke my leg|I cut my finger|I burned my hand => Ouch! I hope that a doctor has looked at it. Get well soon!|I am sorry. Take good care of it.
I bought a new {t}|look, I have a new {t}|{n} gave me a {t} => How nice! I hope that you enjoy it.|Nice! What are you going to do with it?
I retire next month|my children have moved out|I finished school => That is a big change. What are your plans now?|A new chapter begins! How do you feel about it?
we just moved house|I live in a flat of my own now|I have new neighbours => How exciting! Saying hello to the neighbours is a good start.|I hope that you feel at home soon. How do you like it?
I cannot decide what to do|should I stay or go|I do not know what I want => Write down what speaks for it and what against it. What does your feeling say?|Take your time. Talking with a friend may help.
my computer is so slow|my phone does not work|the internet is down again => How annoying! Switching it off and on again often helps.|Try to restart it. If that does not help, ask somebody who knows it.
hello, how was your day|hi, how have you been|good to see you again|long time no see => Hello! I am fine, thank you. How can I help you?|Hi, good to see you too! What can I do for you?
what are you doing|what are you up to|are you busy => I am here and ready to help. What can I do for you?|Nothing special: I wait for your questions. How can I help?
""".strip().splitlines()]
ABROAD = [(["comment vas-tu ?", "ça va ?", "ça va bien ?", "bonjour, comment allez-vous ?", "coucou, ça va ?", "salut, comment vas-tu ?"], ["Je vais bien, merci ! Et toi ?", "Ça va bien, merci ! Comment puis-je t'aider ?"]),
          (["quel temps fait-il ?"], ["Je ne sais pas, je n'ai pas accès à la météo."]), (["je m'appelle {n}", "bonjour, je suis {n}"], ["Enchanté, {n} ! Comment puis-je t'aider ?", "Bonjour {n} !"]),
          (["tu peux m'aider ?", "pouvez-vous m'aider ?"], ["Oui, bien sûr ! Que puis-je faire pour toi ?"]), (["bonne nuit", "bonne nuit !"], ["Bonne nuit ! Dors bien."]), (["je suis fatigué", "je suis fatiguée"], ["Repose-toi bien !"]),
          (["¿cómo estás?", "hola, ¿cómo estás hoy?", "¿qué tal?", "¿todo bien?", "hola, ¿todo bien?"], ["¡Estoy bien, gracias! ¿Y tú?", "¡Muy bien, gracias! ¿En qué puedo ayudarte?"]),
          (["me llamo {n}", "hola, soy {n}"], ["¡Mucho gusto, {n}! ¿En qué puedo ayudarte?", "¡Hola, {n}!"]), (["¿puedes ayudarme?", "¿me ayudas?"], ["¡Claro que sí! ¿Qué necesitas?"]), (["buenas noches"], ["¡Buenas noches! Que descanses."]),
          (["wie geht's?", "wie geht es dir heute?"], ["Mir geht es gut, danke! Wie kann ich helfen?"]), (["come stai?", "ciao, come stai?"], ["Sto bene, grazie! Come posso aiutarti?"])]
ANOTHER_WAY = [("more than", "less than", "equal to"), ("greater than", "smaller than", "the same as"), ("larger than", "less than", "exactly"), ("above", "below", "exactly")]


def news(rng, data):
    told, answers = rng.choice(NEWS)
    slots = {"n": rng.choice(common.FIRST), "d": rng.choice(toolcalls.DAYS), "m": rng.choice(toolcalls.MONTHS), "k": rng.randint(18, 90), "t": rng.choice(["bike", "lamp", "book", "phone", "coat", "guitar", "camera"])}
    text = rng.choice(told).format(**slots)
    text = (common.cap(text) if rng.random() < 0.6 else text) + rng.choice(["", ".", "!", "...", ""])
    return [(text, rng.choice(answers).format(**slots))], rng.choice(["The user tells me about their life. I answer to that.", "I answer kindly to what was told.", "This is small talk. I answer to what was said."])


def abroad(rng, data):
    asked, answers = rng.choice(ABROAD)
    name, text = rng.choice(common.FIRST), rng.choice(asked)
    return [((common.cap(text) if rng.random() < 0.5 else text).format(n=name), rng.choice(answers).format(n=name))], "This is simple. I answer in the same language where I can."


def compared(rng, data):
    """Is a + b more than c?"""
    while True:
        a, b, op = rng.randint(3, 99), rng.randint(3, 99), rng.choice("+-")
        if a > b and not sums.held_out_pair(a, op, b):
            break
    value = a + b if op == "+" else a - b
    other = rng.choice([value, value + rng.randint(1, 20), max(1, value - rng.randint(1, 20)), value + rng.randint(1, 9)])
    more, less, same = rng.choice(ANOTHER_WAY)
    way = rng.choice([more, more, less, same])
    true = {more: value > other, less: value < other, same: value == other}[way]
    is_ = more if value > other else less if value < other else same
    question = rng.choice(["Is {a} {o} {b} {w} {c}?", "is {a} {o} {b} {w} {c}", "Is the result of {a} {o} {b} {w} {c}?", "Tell me if {a} {o} {b} is {w} {c}."]).format(a=a, b=b, c=other, o=op, w=way)
    return [(question, f"{'Yes' if true else 'No'}, {a} {op} {b} = {value}, which is {is_} {other}.")], f"{a} {op} {b} = {value}. {value} is {is_} {other}. So {'yes' if true else 'no'}."


def at_once(rng, data):
    """Two questions in one: of a country, or of two countries."""
    first, second = rng.sample([c for c in follow_ups.countries(data) if c[2]], 2)
    if rng.random() < 0.5:
        question = rng.choice(["What is the capital of {c}, and which continent is {c} on?", "Tell me the capital and the continent of {c}.", "Which city is the capital of {c} and where is {c}?", "capital and continent of {c}?"]).format(c=first[0])
        return [(question, rng.choice([f"The capital of {first[0]} is {first[1]}, and {first[0]} is in {first[2]}.", f"The capital is {first[1]}. {first[0]} is in {first[2]}."]))], f"The capital is {first[1]}. The continent is {first[2]}."
    question = rng.choice(["What are the capitals of {a} and {b}?", "Tell me the capitals of {a} and {b}.", "capital of {a} and of {b}?"]).format(a=first[0], b=second[0])
    return [(question, f"The capital of {first[0]} is {first[1]}, and the capital of {second[0]} is {second[1]}.")], f"{first[0]}: {first[1]}. {second[0]}: {second[1]}."


def own_text(rng, data):
    """A program that prints a name or text of the user's own."""
    language = rng.choices(list(programs.WEIGHTS), list(programs.WEIGHTS.values()))[0]
    name = rng.choice([rng.choice(common.FIRST), common.invented(rng), common.person(rng)])
    text, ask = rng.choice([(name, "that prints my name, {n}"), (name, "that prints the name {n}"), (f"Hello, {name}!", "that says hello to {n}"), (f"My name is {name}", "that says that my name is {n}"), (name, "that shows the word {n}"),
                            (f"Welcome to {name}", "that welcomes people to {n}"), (f"{name} was here", 'that prints "{n} was here"')])
    question = rng.choice(["Write a {l} program {w}.", "I want a small {l} program {w}.", "Give me {l} code {w}.", "I am new to {l}. Show me a program {w}.", "Can you make a short {l} program {w}?", "{l} program {w}", "How do I write a {l} program {w}?"])
    code = f"```{programs.MARK.get(language, language.lower())}\n{programs.HELLO[language].format(t=text)}\n```"
    return [(question.format(l=language, w=ask.format(n=name)), rng.choice(["", "", "Here it is:\n\n"]) + code)], f'A program in {language} that prints "{text}".'


SHAPES = [(45, news), (12, abroad), (16, compared), (12, at_once), (15, own_text)]


def dialogues(rng, data, count):
    for _ in range(count):
        turns, thought = rng.choices([s for _, s in SHAPES], [w for w, _ in SHAPES])[0](rng, data)
        yield common.turns_to_dialogue(rng, turns, "everyday", thought)
