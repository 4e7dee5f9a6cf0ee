"""Short texts on request that keep what the request says: mails with a reason and a day, notices, invitations, captions, verses, lists, plans, pros and cons.

letters.py has eighteen occasions and learns these by heart. Here a request is put together from parts (to whom, what for, why, when), and the text has to
carry every one of them.
"""

from . import common, toolcalls

# who; how the greeting calls them (None: by name)
RECIPIENTS = [("my boss", "Boss"), ("my boss {p}", None), ("my teacher", "Teacher"), ("my teacher {p}", None), ("my colleague {p}", None), ("my landlord", "Landlord"), ("my neighbour", "Neighbour"), ("my neighbour {p}", None), ("my friend {p}", None), ("{p}", None), ("{p}", None), ("a customer", "Customer"),
              ("my doctor", "Doctor"), ("my team", "Team"), ("my aunt {p}", None), ("my grandmother", "Grandma"), ("the school", "Sir or Madam"), ("a hotel", "Sir or Madam"), ("the bank", "Sir or Madam"), ("my coach", "Coach"), ("my parents", "Mum and Dad"), ("a shop", "Sir or Madam")]
# the request's words; the sentence of the text. {r} a reason, {d} a day, {t} a time, {x} a thing, {e} an event, {c} a city
PURPOSES = [tuple(line.split("|")) for line in """asking for {d} off|may I take {d} off
asking for help with {h}|could you help me with {h}
asking to move our meeting to {d}|could we move our meeting to {d}
asking for the price of {x}|could you tell me the price of {x}
asking for a copy of {x}|could you send me a copy of {x}
asking when {e} begins|could you tell me when {e} begins
asking for a lift to {e}|could you take me to {e}
asking to borrow {l}|may I borrow {l}
asking for more time for {h}|could I have a little more time for {h}
asking if {d} at {t} is fine|is {d} at {t} fine for you
asking for an appointment on {d}|could I have an appointment on {d}
asking for a room from {d}|do you have a room for me from {d} on
saying that I will miss {e}|I will not be able to come to {e}
saying that I cannot come on {d}|I cannot come on {d}
saying that I will come at {t} instead|I will come at {t} instead
saying that {x} is broken|{x} is broken
saying that {x} has arrived|{x} has arrived
saying that {x} is ready|{x} is ready
saying that I found {x}|I have found {x}
saying that I lost {x}|I have lost {x}
saying that {e} is cancelled|{e} is cancelled
saying that {e} is moved to {d}|{e} is moved to {d}
saying that I am moving to {c}|I am moving to {c}
saying that I will be away until {d}|I will be away until {d}
inviting them to {e} on {d}|I would like to invite you to {e} on {d}
inviting them to dinner on {d} at {t}|I would like to invite you to dinner on {d} at {t}
thanking them for {g}|thank you very much for {g}
thanking them for coming to {e}|thank you very much for coming to {e}
reminding them of {e} on {d}|please remember {e} on {d}
reminding them to bring {x}|please do not forget to bring {x}
apologising for being late for {e}|I am sorry that I was late for {e}
apologising for breaking {x}|I am sorry that I broke {x}
complaining about {y}|I am not happy about {y}
cancelling {e}|I have to cancel {e}
confirming our meeting on {d} at {t}|I confirm our meeting on {d} at {t}
congratulating them on {s}|congratulations on {s}
wishing them luck for {e}|I wish you good luck for {e}""".splitlines()]
REASONS = ["I am ill", "my son is ill", "my daughter has a concert", "my car broke down", "I have to see the dentist", "my mother visits me", "we are moving house", "my train was cancelled", "I have to work late", "the weather is bad", "I hurt my foot", "my dog needs the vet", "I have an exam", "my flight is early",
           "the heating does not work", "I forgot my keys", "a friend gets married", "there is too much work", "I do not have a babysitter", "my bike was stolen"]
WITH_REASON = (" off", "move our", "more time", "a lift", "miss ", "cannot come", "instead", "cancelling", "late for")
VERBS = {"asking": ["asking", "asking", "to ask", "in which I ask"], "saying": ["saying", "saying", "to say", "telling them", "that says"], "inviting": ["inviting", "to invite"], "thanking": ["thanking", "to thank"], "reminding": ["reminding", "to remind"], "apologising": ["apologising", "to apologise", "apologizing"],
         "complaining": ["complaining", "to complain"], "cancelling": ["cancelling", "to cancel"], "confirming": ["confirming", "to confirm"], "congratulating": ["congratulating", "to congratulate"], "wishing": ["wishing", "to wish"]}
THINGS = ["the report", "the new lamp", "the key to the garage", "your umbrella", "the printer", "the homework", "the flowers", "my laptop", "the blue coat", "the washing machine", "the contract", "the photos", "the ladder", "the book about birds", "the cake", "the parcel", "the window", "the camera", "the invoice", "the green vase"]
MORE = {"h": "the move|my homework|the form|the garden|my speech|the tax papers|the new computer|the kitchen|the translation|my project".split("|"), "l": "your ladder|your drill|your bike|the tent|your car|your camera|the big pot|your sewing machine|the projector|a chair".split("|"),
        "g": "the flowers|the lovely evening|your help|the cake|the book|the lift|your advice|the present|the photos|your patience".split("|"), "y": "the broken lamp|the loud music|the late delivery|the cold soup|the wrong bill|the dirty room|the missing parts|the noise at night|the slow internet|the smell in the hall".split("|"),
        "s": "the new job|the exam|the baby|the prize|the new house|the wedding|the first book|the victory|the promotion|the birthday".split("|")}
EVENTS = ["the meeting", "the party", "the concert", "the lesson", "the training", "the wedding", "the exam", "the summer festival", "the talk", "the trip to {c}", "the book club", "the football match", "the barbecue", "the interview", "the opening"]
KINDS = ["email", "short email", "message", "letter", "note", "short message", "text message", "polite email", "friendly message", "mail", "quick email"]
ASKS = ["Write {a} to {w} {f}{b}.", "Write {a} to {w} {f}{b}", "Please write {a} to {w} {f}{b}.", "Can you write {a} to {w} {f}{b}?", "I need {a} to {w} {f}{b}.", "Help me write {a} to {w} {f}{b}.", "Draft {a} to {w} {f}{b}.", "write me {a} to {w} {f}{b}, please", "Could you draft {a} to {w} {f}{b}?", "Compose {a} to {w} {f}{b}."]
ENDS = {"asking": ["Thank you in advance.", "Please let me know.", "I look forward to your answer.", "Thank you!"], "saying": ["I wanted to let you know.", "Please tell me if you have questions.", "I hope that is all right."], "inviting": ["Please tell me if you can come.", "I would be very happy to see you.", "I hope that you have time."],
        "thanking": ["It made me very happy.", "That was very kind of you.", "I really appreciate it."], "reminding": ["Thank you!", "See you then.", "Please tell me if something is not clear."], "apologising": ["It will not happen again.", "Please forgive me.", "I hope that you are not angry."],
        "complaining": ["Could you please find a solution?", "I would like my money back.", "Please call me about it."], "cancelling": ["I am sorry for the trouble.", "Can we find another day?", "Thank you for your understanding."], "confirming": ["I look forward to it.", "See you then."],
        "congratulating": ["You really earned it.", "I am very happy for you.", "Let us celebrate soon!"], "wishing": ["You can do it!", "I will think of you.", "All the best!"]}
CLOSE = ["Best wishes,\n{me}", "Kind regards,\n{me}", "Best,\n{me}", "Yours,\n{me}", "Best wishes,\n[your name]", "Kind regards,\n[your name]"]


def mail(rng, data):
    to, greeting = rng.choice(RECIPIENTS)
    purpose, sentence = rng.choice(PURPOSES)
    person, me = rng.sample(common.FIRST, 2)
    slots = {"p": person, "d": rng.choice(toolcalls.DAYS), "t": toolcalls.draw(rng, "time"), "x": rng.choice(THINGS), "c": toolcalls.draw(rng, "city")}
    slots |= {key: rng.choice(options) for key, options in MORE.items()}
    slots["e"] = rng.choice(EVENTS).format(**slots)
    kind, verb = rng.choice(KINDS), purpose.split(" ")[0]
    because = f" because {rng.choice(REASONS)}" if any(word in purpose for word in WITH_REASON) and rng.random() < 0.6 else ""
    signed = rng.random() < 0.3
    question = rng.choice(ASKS).format(a=common.an(kind), w=to.format(**slots), f=purpose.format(**slots).replace("your ", "their ").replace(verb, rng.choice(VERBS[verb]), 1), b=because)
    if signed:
        question = question.rstrip(".?") + rng.choice([f". My name is {me}.", f". Sign it as {me}.", f", from {me}."])
    said = sentence.format(**slots)
    body = common.cap(said) + because + ("?" if said.startswith(("may", "could", "is ", "do ")) else "!" if verb in ("thanking", "congratulating", "wishing") else ".")
    name = person if greeting is None else greeting
    short = "message" in kind or kind == "note"
    text = f"{body} {rng.choice(ENDS[verb])}"
    if short and rng.random() < 0.75:
        text = f"{rng.choice(['Hi', 'Hello', 'Dear']) if greeting is None else 'Dear'} {name}{rng.choice(['!', ',', ','])} {text}" + (f"\n{me}" if signed else "")
    else:
        text = f"{rng.choice(['Dear', 'Dear', 'Hello', 'Hi']) if greeting is None else 'Dear'} {name},\n\n{text}\n\n" + (rng.choice(CLOSE[:4]).format(me=me) if signed else rng.choice(CLOSE[4:]))
    turns = [(common.typed(rng, question), text)]
    thought = rng.choice([f"To {name}: {said}{because}. A greeting, the point and an end.", f"It must say: {said}{because}.", f"{common.cap(common.an(kind))} to {name}. The point: {said}{because}."])
    if rng.random() < 0.1:
        other = rng.choice([n for n in common.FIRST if n not in (person, me)])
        turns.append((rng.choice(["Now for {n}.", "The same for {n}, please.", "Change the name to {n}.", "and now to {n}"]).format(n=other), text.replace(f" {name}", f" {other}", 1)))
        thought = f"The same text with {other}."
    return turns, thought


# topic: what it is, what it does, how it feels; nouns of the small texts below
TOPICS = [tuple(part.split("/") for part in line.split("|")) for line in """autumn/fall|The leaves turn red and yellow/The wind sings in the trees/The evenings grow long|golden/windy/quiet
winter/snow|Snow lies on the roofs/The lake is white and still/Children build a snowman|cold/white/silent
spring|The first flowers open/Birds build their nests/The days grow warm|fresh/green/bright
summer|The sun is high and hot/Children swim in the lake/The nights are short|warm/bright/long
the sea/the ocean|Waves roll onto the sand/A boat sails far away/The wind tastes of salt|blue/deep/wide
a cat/my cat|It sleeps in the sun/It walks without a sound/It purrs on my knees|soft/clever/quiet
a dog/my dog|It runs through the grass/It waits at the door for me/It wags its tail|loyal/happy/brave
coffee|It smells of morning/The cup warms my hands/One sip and I am awake|hot/dark/strong
rain|Drops drum on the window/The street shines like a mirror/The garden drinks|grey/soft/cool
the moon|It shines on the quiet town/It grows and gets thin again/It looks into my window|silver/round/far
friendship/friends|A friend listens when it is hard/We laugh about the same things/We share the last piece of bread|warm/true/strong
music|A song fills the room/My feet begin to dance/It makes heavy days light|sweet/loud/free
books/reading|Each page opens a door/I travel without a ticket/The story stays with me|old/wise/rich
the mountains/mountains|The path climbs above the clouds/An eagle circles in the air/The top is white with snow|high/proud/silent
a garden/my garden|Roses climb along the wall/Bees work from flower to flower/Tomatoes ripen in the sun|green/peaceful/sweet
the night|Stars come out one by one/The city falls asleep/An owl calls from the wood|dark/calm/deep
my grandmother/grandma|She bakes the best bread/She tells me stories of old times/Her hands are warm|kind/wise/gentle
trains/a train|It rolls through fields and towns/People look out of the window/The whistle sounds far away|fast/long/loud
love|Two hands find each other/A smile says more than words/It grows when it is shared|warm/patient/strong
home|A light burns in the window/The door is always open/It smells of soup|safe/warm/small
a river|It winds through the valley/It carries leaves and little boats/It never rests|clear/long/cool
school|The bell rings in the morning/Chalk squeaks on the board/Friends wait in the yard|loud/useful/busy
a bakery/our bakery|It smells of fresh bread/The oven glows before sunrise/People wait in a line|warm/sweet/busy
the city|Lights blink all night/Trams ring at the corner/A thousand people pass by|loud/colorful/quick
bread|The crust cracks when I cut it/It smells of the oven/With butter it is a feast|fresh/warm/simple
stars|They shine from far away/Sailors follow them home/We make wishes on them|bright/old/far
a birthday|Candles shine on the cake/Friends sing a song/A present waits on the table|happy/loud/sweet
hope|It is a small light in the dark/It waits behind the clouds/It gets up after every fall|small/strong/bright
tea|Steam rises from the cup/It tastes of far gardens/It makes the evening slow|warm/gentle/calm
an old tree/a tree|It has seen a hundred winters/Birds live in its branches/Its shade is cool|tall/old/strong""".splitlines()]


def near(topic):
    return topic[0].split(" ", 1)[-1] if topic[0].startswith(("a ", "an ", "the ", "my ")) else topic[0]


def verse(rng, data):
    topic, lines, words = rng.choice(TOPICS)
    name = rng.choice(topic)
    kind = rng.choice(["poem", "short poem", "poem of three lines", "haiku", "little verse", "poem of four lines"])
    chosen = lines[:]
    rng.shuffle(chosen)
    last = rng.choice([f"{common.cap(name)}, {words[0]} and {words[1]}.", f"How {rng.choice(words)} it is!", f"So {rng.choice(words)}, so {rng.choice(words)}."])
    text = "\n".join([line + rng.choice([",", "."]) if i < 2 else line + "." for i, line in enumerate(chosen)] + ([] if kind in ("haiku", "poem of three lines") else [last]))
    return [(common.typed(rng, rng.choice([f"Write {common.an(kind)} about {name}.", f"{common.an(kind)} about {name}, please", f"Can you write {common.an(kind)} about {name}?", f"Make {common.an(kind)} about {name}"])), text)], f"{common.cap(common.an(kind))} about {name}: {words[0]}, {words[1]}."


def sentences(rng, data):
    topic, lines, words = rng.choice(TOPICS)
    name, count = rng.choice(topic), rng.choice([1, 2, 3])
    number = ["one sentence", "two sentences", "three sentences"][count - 1]
    chosen = rng.sample(lines, count)
    if chosen[0].startswith(("It ", "They ")):
        chosen[0] = common.cap(name) + chosen[0][chosen[0].index(" "):]
    text = " ".join(line + "." for line in chosen)
    kind = rng.choice([number, number, number, "a short text" if count > 1 else "a sentence", "a few lines" if count > 2 else number])
    return [(common.typed(rng, rng.choice([f"Write {kind} about {name}.", f"Give me {kind} about {name}", f"{common.cap(kind)} about {name}, please.", f"Describe {name} in {number}.", f"Can you write {kind} about {name}?", f"Tell me about {name} in {number}."])), text)], f"{common.cap(number)} about {name}."


def words_about(rng, data):
    topic, _, words = rng.choice(TOPICS)
    name, count = rng.choice(topic), rng.choice([1, 2, 3])
    number = ["one word", "two words", "three words"][count - 1]
    chosen = rng.sample(words, count)
    return [(rng.choice([f"Describe {name} in {number}.", f"{common.cap(number)} for {name}", f"Give me {number} to describe {name}."]), common.cap(", ".join(chosen)) + ".")], f"{common.cap(name)} is {', '.join(words)}."


SHOPS = ["bakery", "bike shop", "flower shop", "cafe", "bookshop", "garage", "toy shop", "hotel", "pizza place", "tea shop", "gym", "hair salon", "farm shop", "shoe shop", "music school", "pet shop"]
SLOGANS = ["Fresh every day, made with love.|bakery,cafe,pizza place,tea shop,farm shop", "Come in, feel at home.|hotel,cafe,tea shop,bookshop,hair salon", "Quality you can trust.|garage,shoe shop,bike shop,pet shop", "A smile with every visit.|flower shop,toy shop,pet shop,hair salon,cafe", "Good things for every day.|farm shop,shoe shop,toy shop,bookshop,tea shop",
           "Strong today, stronger tomorrow.|gym", "Two wheels, one smile.|bike shop", "Every note begins with you.|music school", "Stories for every shelf.|bookshop", "Say it with flowers.|flower shop", "One slice and you stay.|pizza place", "Sleep well, wake up happy.|hotel", "We keep you rolling.|garage,bike shop", "Step into comfort.|shoe shop", "Play all day.|toy shop,pet shop"]


def slogan(rng, data):
    shop = rng.choice(SHOPS)
    fitting = [s.split("|")[0] for s in SLOGANS if shop in s.split("|")[1].split(",")]
    name = common.invented(rng)
    named = rng.random() < 0.4
    ask = rng.choice(["Write a slogan for {}.", "I need a slogan for {}", "Give me a slogan for {}.", "A short slogan for {}, please.", "Can you think of a slogan for {}?"]).format(f"my {shop} {name}" if named else rng.choice([f"a {shop}", f"my {shop}", f"our {shop}"]))
    text = rng.choice(fitting)
    return [(ask, f"{name}: {text}" if named else text)], f"A short line that fits a {shop}."


def notice(rng, data):
    """A sign or an announcement with what the user says in it."""
    shop, day, time, name = rng.choice(SHOPS + ["library", "museum", "pool", "office", "school", "kindergarten"]), rng.choice(toolcalls.DAYS), toolcalls.draw(rng, "time"), rng.choice(common.FIRST)
    thing = rng.choice(["sale", "concert", "open day", "flea market", "party", "reading", "course", "tasting"])
    what, text = rng.choice([(f"that says that our {shop} is closed on {day}", f"Dear guests, our {shop} is closed on {day}. Thank you for your understanding."), (f"for a {thing} on {day} at {time}", f"Welcome to our {thing} on {day} at {time}! Everybody is invited."),
                             (f"that a cat called {name} is lost", f"Our cat {name} is lost. If you see {name}, please call us. Thank you!"), (f"that the lift does not work until {day}", f"The lift does not work until {day}. Please use the stairs. We are sorry for the trouble."),
                             (f"that nobody may park here on {day}", f"No parking here on {day}, please. Thank you!"), (f"that we look for a cook for our {shop}", f"We are looking for a cook for our {shop}. Are you interested? Come in and talk to us!"),
                             (f"for the {shop}: open from {time} on", f"Our {shop} is open from {time} on. You are welcome!")])
    kind = rng.choice(["notice", "sign", "short announcement", "note for the door", "poster text"])
    return [(common.typed(rng, rng.choice([f"Write {common.an(kind)} {what}.", f"I need {common.an(kind)} {what}.", f"Make {common.an(kind)} {what}", f"Can you write {common.an(kind)} {what}?"])), text)], f"It must say: {text}"


# subject | ideas, each short
IDEAS = [tuple(line.split("|", 1)) for line in """a birthday present for {my} mother|a book|a scarf|flowers|a photo album|a day at the sea
a birthday present for a child|a ball|a picture book|a puzzle|crayons|a kite
things to do on a rainy day|read a book|bake a cake|play a board game|watch a film|write a letter
things to do at the weekend|take a walk|visit a museum|meet friends|cook something new|ride a bike
a quick dinner|pasta with tomato sauce|an omelette|a salad with cheese|soup with bread|rice with vegetables
a healthy breakfast|oatmeal with fruit|yogurt with nuts|whole bread with egg|a banana with peanut butter
things to pack for a holiday|clothes|a toothbrush|the passport|a charger|sun cream|a book
things to pack for the beach|a towel|sun cream|water|a hat|a swimsuit
names for a cat|Luna|Felix|Minka|Simba|Coco
names for a dog|Bello|Rex|Daisy|Max|Lucky
names for a robot|Robo|Bolt|Chip|Gizmo|Sparky
reasons to learn a language|you can talk to more people|travelling gets easier|it trains the brain|it helps at work
reasons to get up early|the morning is quiet|there is more time for breakfast|you get more done|you can see the sunrise
reasons to do sport|it keeps the heart healthy|you sleep better|it is good for the mood|you meet people
ways to save money|cook at home|make a shopping list|walk instead of driving|switch off the lights|buy used things
ways to save water|take short showers|close the tap while brushing your teeth|collect rain for the garden|repair dripping taps
ways to save energy|switch off the lights|dry clothes in the air|heat less|use the stairs
ways to relax|listen to music|take a warm bath|breathe slowly|go for a walk|read a book
ways to say thank you|Thanks a lot|I really appreciate it|Many thanks|That was very kind of you
ways to say hello|Hi|Good morning|Hey there|Nice to see you
tips for a job interview|be on time|wear clean clothes|read about the company|ask questions|smile
tips for better sleep|go to bed at the same time|keep the room dark|leave the phone away|drink no coffee in the evening
tips for learning words|use cards|learn a few each day|say them aloud|make sentences with them
tips for a good speech|know your first sentence|speak slowly|look at the people|keep it short
rules for a classroom|listen when others speak|be on time|be kind|raise your hand
questions for an interview|What do you like about your work|Why did you choose us|What are your strengths|Where do you want to be in five years
hobbies that cost nothing|walking|drawing|singing|reading books from the library|running
animals that can fly|eagles|bats|bees|owls|butterflies
animals that live in the sea|whales|sharks|dolphins|crabs|octopuses
things that are round|a ball|the moon|a coin|a wheel|an orange
things you find in a kitchen|a pot|a knife|a plate|an oven|a spoon
words that mean happy|glad|cheerful|joyful|merry|delighted
words that mean big|large|huge|great|giant|enormous
words that mean small|little|tiny|mini|short
vegetables that are green|peas|broccoli|spinach|cucumbers|beans
jobs in a hospital|doctor|nurse|cook|cleaner|surgeon
sports with a ball|football|tennis|basketball|volleyball|golf
countries in Asia|Japan|China|India|Thailand|Vietnam
countries in Africa|Kenya|Egypt|Nigeria|Ghana|Morocco
countries in South America|Brazil|Peru|Chile|Argentina|Bolivia
rivers|the Nile|the Danube|the Amazon|the Rhine|the Thames
programming languages|Python|C|JavaScript|Java|Rust
musical instruments|the piano|the violin|the guitar|the flute|the drum
fruits that are red|apples|cherries|strawberries|raspberries
ingredients of a pizza|dough|tomato sauce|cheese|olives|mushrooms
parts of a bicycle|the wheel|the saddle|the chain|the brake|the bell
parts of the body|the arm|the leg|the head|the hand|the knee
things to write with|a pen|a pencil|chalk|a marker""".splitlines()]
COUNTS = {2: "two", 3: "three", 4: "four", 5: "five"}


def ideas(rng, data):
    subject, rest = rng.choice(IDEAS)
    members = rest.split("|")
    subject = subject.format(my=rng.choice(["my", "his", "a"]))
    count = rng.choice([n for n in (2, 3, 3, 3, 4, 5) if n <= len(members)])
    chosen = rng.sample(members, count)
    number = rng.choice([COUNTS[count], COUNTS[count], str(count)])
    one = subject.startswith(("a ", "an "))
    ask = rng.choice(["Give me {n} ideas for {s}.", "{N} ideas for {s}", "List {n} ideas for {s}.", "I need {n} ideas for {s}"] if one else ["List {n} {s}.", "Name {n} {s}.", "Give me {n} {s}", "Tell me {n} {s}.", "{n} {s}, please", "What are {n} {s}?", "Can you list {n} {s}?"]).format(n=number, N=common.cap(number), s=subject)
    lines = [common.cap(c) for c in chosen]
    style = rng.random()
    answer = "\n".join(f"{i}. {c}" for i, c in enumerate(lines, 1)) if style < 0.5 else "\n".join(f"- {c}" for c in lines) if style < 0.75 else common.cap(common.listed(chosen)) + "."
    if rng.random() < 0.12:
        ask, answer = ask.rstrip(".?") + rng.choice([" as a list.", ", as bullet points."]), "\n".join(f"- {c}" for c in lines)
    turns = [(common.typed(rng, ask), answer)]
    left = [m for m in members if m not in chosen]
    if left and rng.random() < 0.2:
        turns.append((rng.choice(["One more, please.", "another one", "And one more?", "Give me another."]), common.cap(rng.choice(left)) + "."))
    return turns, f"{common.cap(COUNTS[count])} {subject}: {', '.join(chosen)}."


# what is made | steps
HOW = [tuple(line.split("|", 1)) for line in """make tea|Boil water.|Put a tea bag into a cup.|Pour the water over it.|Wait three to five minutes and take the bag out.
boil an egg|Bring water to the boil.|Put the egg into it.|Wait about seven minutes.|Cool the egg with cold water.
cook pasta|Boil a pot of water with salt.|Put the pasta in.|Stir now and then.|After about ten minutes pour the water off.
make a sandwich|Take two slices of bread.|Spread butter on them.|Put cheese and tomato between them.|Cut it in half.
plant a tree|Dig a hole.|Put the young tree into it.|Fill the hole with earth.|Water the tree well.
wash my hands|Wet your hands.|Use soap for twenty seconds.|Rinse them with water.|Dry them with a clean towel.
change a light bulb|Switch off the light.|Let the old bulb cool down.|Screw it out.|Screw the new bulb in.
write a letter|Write the date and a greeting.|Say why you write.|End with a friendly line.|Sign it with your name.
make coffee|Boil water.|Put ground coffee into a filter.|Pour the water slowly over it.|Enjoy it while it is hot.
clean a window|Mix water with a little soap.|Wipe the glass with a cloth.|Dry it with paper or a clean cloth.
bake a cake|Mix butter, sugar and eggs.|Add flour and baking powder.|Put the dough into a form.|Bake it for about forty minutes.
learn a poem|Read it aloud.|Learn two lines at a time.|Repeat them from the start.|Say it again the next day.
pack a suitcase|Make a list.|Put heavy things at the bottom.|Roll the clothes.|Keep papers in your hand luggage.
make a salad|Wash the vegetables.|Cut them into small pieces.|Add oil, vinegar and salt.|Mix everything.
fix a flat bike tyre|Take the wheel off.|Pull out the tube and find the hole.|Glue a patch on it.|Put everything back and pump it up.
make a fire|Put dry wood and paper together.|Light the paper.|Add small sticks, then larger ones.|Never leave the fire alone.
start a diary|Take a small book.|Write the date.|Write three sentences about your day.|Do it every evening.
install a program|Download it from the official site.|Open the file.|Follow the steps on the screen.|Start the program to test it.
take a good photo|Clean the lens.|Have the light behind you.|Hold the camera still.|Take more than one picture.
make lemonade|Squeeze three lemons.|Add sugar and stir.|Pour in cold water.|Add ice.""".splitlines()]


def how_to(rng, data):
    what, rest = rng.choice(HOW)
    steps = rest.split("|")
    ask = rng.choice(["How do I {}?", "How can I {}?", "Explain how to {}.", "how to {}", "Tell me step by step how to {}.", "What are the steps to {}?", "Can you tell me how to {}?", "Give me instructions to {}."]).format(what)
    answer = "\n".join(f"{i}. {s}" for i, s in enumerate(steps, 1)) if rng.random() < 0.65 else " ".join(steps)
    turns = [(common.typed(rng, ask), answer)]
    if rng.random() < 0.25:
        at = rng.randrange(len(steps))
        ordinal = ["first", "second", "third", "fourth"][at]
        turns.append((rng.choice(["What is the {} step?", "And the {} step again?", "Repeat step {n}."]).format(ordinal, n=at + 1), steps[at]))
        return turns, f"The {ordinal} step: {steps[at]}"
    return turns, f"There are {len(steps)} steps."


# subject | for | against
BOTH = [tuple(part.split("/") for part in line.split("|")) for line in """living in a big city|many jobs/good shops and cinemas/buses and trains everywhere|noise/high rents/a lot of traffic
living in the country|fresh air/quiet/more room|long ways/few shops/few buses
having a dog|it is a loyal friend/you walk more/children like it|it costs money/it needs time every day/holidays get harder
working from home|no way to work/more quiet/more time for the family|fewer colleagues around/work and free time mix/you need a good room
riding a bike|it is cheap/it is healthy/no parking problems|rain makes you wet/it is slow for long ways/it can be dangerous in traffic
buying a car|you can go anywhere/it carries a lot|it is expensive/it is bad for the air/you need a parking place
electric cars|clean air in the city/quiet/cheap to drive|a high price/charging takes time
online shopping|you save time/a large choice/it is open day and night|you cannot touch things/a lot of packaging/small shops suffer
getting up early|a quiet morning/more done by noon|you get tired early/it is hard in winter
school uniforms|nobody feels poor/no quarrel about clothes in the morning|everybody looks the same/they cost money
eating meat|it has protein/it tastes good to many|animals suffer/too much is not healthy/it is bad for the climate
social media|you stay in touch/you find news quickly|it takes a lot of time/not everything is true
travelling by train|you can read and walk around/it is better for the climate|it can be late/it may be expensive""".splitlines()]


def pros(rng, data):
    (subject,), good, bad = rng.choice(BOTH)
    roll = rng.random()
    if roll < 0.5:
        n = rng.choice([1, 2])
        g, b = rng.sample(good, n), rng.sample(bad, n)
        return [(rng.choice([f"What are the pros and cons of {subject}?", f"Pros and cons of {subject}", f"What speaks for and against {subject}?", f"Advantages and disadvantages of {subject}?"]), f"Pros: {common.listed(g)}.\nCons: {common.listed(b)}.")], f"For it: {g[0]}. Against it: {b[0]}."
    side, word = (good, rng.choice(["advantage", "pro", "good thing"])) if roll < 0.75 else (bad, rng.choice(["disadvantage", "con", "bad thing"]))
    count = rng.choice([1, 2])
    chosen = rng.sample(side, count)
    of = "about" if "thing" in word else "of"
    return [(rng.choice([f"Name {common.an(word) if count == 1 else 'two ' + word + 's'} {of} {subject}.", f"Tell me {'one' if count == 1 else 'two'} {word}{'s' if count == 2 else ''} {of} {subject}"]), common.cap(common.listed(chosen)) + ".")], f"{common.cap(subject)}: {', '.join(chosen)}."


# one sentence; as a question, a friendlier or shorter line
REWRITES = [tuple(line.split("|")) for line in """I am not able to come to the party on {d}.|I cannot come to the party on {d}.
Due to the fact that it is raining, we will stay at home.|Because it is raining, we will stay at home.
The dog, which was very big, ran after the cat.|The very big dog ran after the cat.
In the event that you have questions, please call me.|If you have questions, please call me.
At this point in time we do not have any {x}.|We have no {x} now.
It is necessary that you sign the form before {d}.|You must sign the form before {d}.
The meeting that we planned will take place on {d}.|Our meeting is on {d}.
I would like to express my thanks for your help.|Thank you for your help.
The {x} was bought by {n}.|{n} bought the {x}.
The cake was eaten by the children.|The children ate the cake.
A letter was written by {n}.|{n} wrote a letter.
The window was opened by {n}.|{n} opened the window.
The song was sung by the whole class.|The whole class sang the song.
{n} is a person who never gives up.|{n} never gives up.
There are many people who like {x}.|Many people like {x}.
He made the decision to sell the {x}.|He decided to sell the {x}.
We had a conversation about the {x}.|We talked about the {x}.
She gave an explanation of the plan.|She explained the plan.""".splitlines()]


def rewrite(rng, data):
    long, short = rng.choice(REWRITES)
    slots = {"d": rng.choice(toolcalls.DAYS), "n": rng.choice(common.FIRST), "x": rng.choice(["bread", "tea", "books", "music", "paper", "bikes", "cars", "flowers"])}
    long, short = long.format(**slots), short.format(**slots)
    passive = " by " in long and " was " in long
    ask = rng.choice(["Make this active", "Rewrite this sentence in the active voice", "Rewrite this in the active", "Say who did it first"] if passive else ["Rewrite this sentence in fewer words", "Make this sentence simpler", "Rewrite this more simply", "Say this in plain words", "Rewrite this sentence so that it is shorter", "Simplify this sentence", "Say it shorter"])
    return [(rng.choice([f"{ask}: {long}", f'{ask}: "{long}"', f"{ask}.\n{long}", f"{ask}:\n\n{long}", f"Please {ask[0].lower() + ask[1:]}: {long}"]), short)], "The same in fewer words." if not passive else "The one who does it comes first."


SHAPES = [(34, mail), (7, verse), (8, sentences), (3, words_about), (4, slogan), (8, notice), (16, ideas), (10, how_to), (5, pros), (6, rewrite)]


def dialogues(rng, data, count):
    for _ in range(count):
        turns, thought = rng.choices([s for _, s in SHAPES], [w for w, _ in SHAPES])[0](rng, data)
        yield common.turns_to_dialogue(rng, turns, "requests", thought)
