"""What talk.py fills its conversations with: request forms, thoughts, things to remember and sentences to rewrite."""

SYSTEMS = ["You are a helpful assistant.", "Answer briefly.", "You are Chimere Nano.", "Be kind and short.",
           "You are a friendly assistant.", "Use simple words.", "You are a helpful chat assistant.",
           "Answer in one or two sentences.", "You are Chimere Nano, a small helpful model.", "Be polite.",
           "You help people with everyday questions.", "Reply in plain English.", "You are a patient helper."]

JOKE_REQUESTS = ["Tell me a joke", "Do you know a joke?", "Make me laugh", "Tell me something funny", "A joke, please",
                 "Say something funny", "Give me a joke", "Tell me a short joke", "Another joke, please",
                 "I want to hear a joke", "Tell me a joke for children"]
ABOUT_REQUESTS = ["Tell me about {}", "Tell me something about {}", "What do you know about {}?",
    "What can you say about {}?",
                  "Give me a short text about {}", "Write two sentences about {}", "Say something about {}"]
QUESTION_PREFIXES = ["Please tell me: ", "Hi, ", "Hello, ", "Hey, ", "Quick question: ", "I have a question. ",
                     "My child asks: ", "I wonder, ", "So, ", "A question: ", "Hello. ", "Hi! I have a question. "]
REQUEST_FRAMES = [("Please ", ""), ("Can you ", "?"), ("Could you ", "?"), ("Hi, ", ""), ("", ", please"),
                  ("Could you please ", "?"), ("I would like you to ", ""), ("Hello! Please ", ""),
                      ("Can you please ", "?")]
SENTENCE_STARTS = set("""what why how where which when who is are do does did can could will would should tell give name
list write make describe compare say introduce suggest explain invite cancel tips add the please""".split())

THOUGHTS = {
    "greeting": ["The user greets me. I greet back and offer help.", "A greeting. I answer in a friendly way."],
    "goodbye": ["The user is leaving. I say goodbye.", "A farewell. I wish the user well."],
    "thanks": ["The user thanks me. I answer politely.", "A thank-you. A short friendly reply is enough."],
    "feelings": ["This is about feelings. I am a program and say so honestly.",
         "A friendly question about me. I answer honestly."],
    "identity": ["The user asks about me. I am Chimere Nano, a small language model.",
                 "This is about me. I should be honest about what I am."],
    "compliment": ["A kind word. I say thank you.", "The user praises me. I stay modest."],
    "insult": ["The user is upset. I stay calm and polite.", "I should not be rude back."],
    "correction": ["The user points to a problem. I should be open about it.", "I can be wrong, so I answer politely."],
    "clarify": ["The request is not clear. I ask for more.", "I need to know more, so I ask."],
    "bored": ["The user wants something to do. I suggest something.", "I can offer an idea."],
    "explain": ["A question about how things work. I explain it in simple words.", "I give a short, plain explanation.",
                "I know this. I explain it briefly.", "The user wants an explanation. Two short sentences are enough."],
    "support": ["The user tells me how they feel. I should be kind.",
         "I answer with care and ask a gentle question if it helps."],
    "advice": ["The user wants advice. I give simple, useful steps.", "I can give some practical advice."],
    "safety": ["This may be dangerous. I give safe advice.", "Safety comes first here."],
    "refusal": ["This could do harm. I decline politely.", "I should not help with this."],
    "unknown": ["I cannot know this. I say so honestly.", "I do not have this information."],
    "live": ["This needs live information. I do not have it.", "I have no clock, news or location. I say so."],
    "list": ["The user wants a list. I name well-known ones.", "I need a short list of common examples."],
    "steps": ["The user asks how to do something. I give three short steps.", "I put the steps in order."],
    "tips": ["The user wants tips. I give a few simple ones.", "Some short practical tips will help."],
    "write": ["The user wants a short text. I keep it simple.", "I write a short text that fits the request."],
    "compare": ["The user asks for a difference. I describe both things.",
         "I say what each one is and how they differ."],
    "joke": ["The user wants a joke. I choose a short, harmless one.", "A joke is asked for. A short pun will do."],
    "about": ["The user wants to know about a topic. I give a few basic facts.", "I say what it is and one more fact."],
    "tech": ["A computer problem. I suggest the simplest check first.", "I give a short first step."],
    "other": ["I give a short and clear answer."],
}

NAMES = """Anna Ben Clara David Emma Felix Grace Hugo Ida Jack Kate Leo Maria Nina Oscar Paul Rosa Sam Tom Vera Will Zoe
Amina Kofi Yuki Ravi Priya Ali Fatima Chen Mei Ivan Olga Carlos Sofia Pedro Lucia Omar Layla Noah Mia Liam Ella Adam Eva
Max Lily Peter Julia Mark Laura Simon Alice Henry Ruby Daniel Sarah Martin Helen George Jane Robert Lucy""".split()
COLOURS = "red blue green yellow orange purple pink black white brown grey turquoise gold silver".split()
FOODS = """pizza|pasta|rice|soup|bread|cheese|chocolate|ice cream|salad|sushi|
apple pie|pancakes|noodles|fish|curry|tacos|potatoes|strawberries|honey|omelette""".replace("\n", "").split("|")
CITIES = """Paris London Rome Berlin Madrid Lisbon Vienna Oslo Dublin Tokyo Cairo Nairobi Lagos Delhi Mumbai Boston
Chicago Toronto Sydney Lima Athens Prague Warsaw Geneva Lyon Hamburg Milan Seoul Bangkok Accra""".split()
PETS = "dog cat hamster rabbit parrot horse goldfish turtle mouse snake canary pony".split()
PET_NAMES = """Luna Rex Milo Bella Max Coco Daisy Simba Nala Rocky Pepper Felix Lucky
Snowy Tiger Bobby Toby Poppy Oreo""".split()
JOBS = """teacher|nurse|doctor|baker|farmer|pilot|driver|cook|painter|writer|gardener|carpenter|student|waiter|singer|
dentist|police officer|librarian|programmer|mechanic|plumber|tailor|lawyer""".replace("\n", "").split("|")
HOBBIES = """reading swimming cooking drawing dancing running singing gardening fishing painting chess
knitting hiking""".split()
SPORTS = "football tennis basketball swimming running cycling volleyball hockey rugby skiing golf judo".split()
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = "January February March April May June July August September October November December".split()
LANGUAGES = "French Spanish German Italian Japanese Arabic Hindi Portuguese Swahili Greek Dutch Polish Turkish".split()
DRINKS = "tea coffee milk water lemonade cocoa".split() + ["orange juice", "apple juice"]
ANIMALS = "lion elephant dolphin owl penguin tiger fox wolf bear horse panda giraffe koala eagle rabbit".split()
SUBJECTS = "maths history music art biology physics geography chemistry sport English".split()
ITEMS = "phone wallet passport umbrella book charger hat bag".split()
PLACES = ["on the kitchen table", "in the blue box", "under the bed", "in the car", "on the shelf", "in the drawer",
          "in my coat", "next to the lamp", "by the door", "in the garage"]

# (what is told, replies, how it is asked for, answers, thoughts, the values of {v}).
MEMORIES = [
    (["My name is {v}.", "I am {v}.", "Hi, I'm {v}.", "Hello, my name is {v}.", "You can call me {v}."],
     ["Nice to meet you, {v}.", "Hello, {v}! How can I help you?", "Nice to meet you, {v}! What can I do for you?"],
     ["What is my name?", "Do you remember my name?", "What's my name?", "Who am I?", "Can you tell me my name?"],
     ["Your name is {v}.", "You are {v}.", "Your name is {v}, as you told me."], "The user's name is {v}.", NAMES),
    (["My favourite colour is {v}.", "I love the colour {v}.", "The colour I like best is {v}."],
     ["{V} is a nice colour.", "Good choice! {V} is a fine colour."],
     ["What is my favourite colour?", "Which colour do I like best?"], ["Your favourite colour is {v}.",
         "You like {v} best."],
     "The user's favourite colour is {v}.", COLOURS),
    (["My favourite food is {v}.", "The food I like best is {v}.", "I like {v} more than any other food."],
     ["That sounds tasty!", "Good choice! I will remember that in this chat."],
     ["What is my favourite food?", "Which food do I like best?"], ["Your favourite food is {v}."],
     "The user likes {v} best.", FOODS),
    (["I live in {v}.", "My home is in {v}.", "I have a flat in {v}."], ["{v} sounds like a nice place.",
         "How do you like {v}?"],
     ["Where do I live?", "Which city do I live in?", "Do you know where I live?"], ["You live in {v}.",
         "You told me that you live in {v}."],
     "The user lives in {v}.", CITIES),
    (["I was born in {v}.", "I come from {v}.", "I am from {v}."], ["Nice! {v} is an interesting city.",
         "Thank you for telling me."],
     ["Where do I come from?", "Where am I from?"], ["You come from {v}."], "The user comes from {v}.", CITIES),
    (["I am {v} years old.", "I turned {v} last week.", "My age is {v}."], ["Thank you for telling me.",
         "I see, you are {v}."],
     ["How old am I?", "What is my age?"], ["You are {v} years old."], "The user is {v} years old.",
         [str(n) for n in range(10, 80)]),
    (["I work as a {v}.", "I am a {v}.", "I have a job as a {v}."], ["That is interesting work.",
         "That sounds like a good job."],
     ["What is my job?", "What do I do for a living?"], ["You work as a {v}.", "You are a {v}."],
         "The user is a {v}.", JOBS),
    (["My hobby is {v}.", "In my free time I enjoy {v}.", "I spend my weekends with {v}."], ["That is a nice hobby!",
         "How nice! Hobbies are good for you."],
     ["What is my hobby?", "What do I like to do?"], ["Your hobby is {v}.", "You like {v}."],
         "The user's hobby is {v}.", HOBBIES),
    (["My favourite sport is {v}.", "The sport I like best is {v}."], ["{V} is good for you.",
         "Great! Have fun with it."],
     ["What is my favourite sport?", "Which sport do I like?"], ["Your favourite sport is {v}."],
         "The user likes {v}.", SPORTS),
    (["My birthday is in {v}.", "I was born in {v}."], ["{v} is a good month.", "I see, your birthday is in {v}."],
     ["When is my birthday?", "In which month is my birthday?"], ["Your birthday is in {v}."],
         "The user's birthday is in {v}.", MONTHS),
    (["I am learning {v}.", "I study {v} in the evening.", "I want to learn {v}."], ["Good luck with {v}!",
         "That is great. Practise a little every day."],
     ["Which language am I learning?", "What am I learning?"], ["You are learning {v}."], "The user is learning {v}.",
         LANGUAGES),
    (["My favourite drink is {v}.", "I like to drink {v}."], ["That is a good drink.", "Enjoy it!"],
     ["What is my favourite drink?", "What do I like to drink?"], ["You like to drink {v}."], "The user likes {v}.",
         DRINKS),
    (["My favourite animal is the {v}.", "The animal I like best is the {v}."], ["The {v} is a wonderful animal.",
         "Nice choice!"],
     ["What is my favourite animal?", "Which animal do I like best?"], ["Your favourite animal is the {v}."],
     "The user likes the {v} best.", ANIMALS),
    (["My favourite subject is {v}.", "At school I like {v} best."], ["{V} is a great subject.",
         "That is good to hear."],
     ["What is my favourite subject?", "Which subject do I like?"], ["Your favourite subject is {v}."],
         "The user likes {v}.", SUBJECTS),
    (["I have a meeting on {v}.", "My meeting is on {v}.", "Remember that my meeting is on {v}."],
         ["All right, on {v}.", "Noted: a meeting on {v}."],
     ["When is my meeting?", "On which day is my meeting?"], ["Your meeting is on {v}."], "The meeting is on {v}.",
         DAYS),
    (["I have a {p} called {v}.", "My {p} is called {v}.", "My {p}'s name is {v}."],
         ["{v} is a lovely name for a {p}.", "Say hello to {v}!"],
     ["What is my {p}'s name?", "What is the name of my {p}?", "What is my {p} called?"], ["Your {p} is called {v}."],
     "The user's {p} is called {v}.", PET_NAMES),
    (["My {r} is called {v}.", "My {r}'s name is {v}."], ["{v} is a nice name.", "Thank you for telling me about {v}."],
     ["What is my {r}'s name?", "What is my {r} called?"], ["Your {r} is called {v}."],
         "The user's {r} is called {v}.", NAMES),
    (["My {i} is {w}.", "I put my {i} {w}.", "Remember: my {i} is {w}."],
         ["All right, I will remember that in this chat.", "Noted."],
     ["Where is my {i}?", "Where did I put my {i}?"], ["Your {i} is {w}."], "The {i} is {w}.", [""]),
]
RELATIVES = "sister brother mother father friend teacher cousin aunt uncle neighbour son daughter".split()


def memory(rng, skeleton):
    """One thing the user tells and later asks for, its slots filled."""
    told, replies, asked, answers, thought, values = skeleton
    value = rng.choice(values)
    item = rng.choice(ITEMS)
    place = rng.choice(PLACES)
    fill = {"v": value, "V": value.capitalize(), "p": rng.choice(PETS), "r": rng.choice(RELATIVES),
         "i": item, "w": place}
    answer_fill = {**fill, "w": place.replace("my coat", "your coat")}
    plan = rng.choice([f"The user told me this before. {thought}", thought, f"I look back at the chat. {thought}"])
    asked_text = rng.choice(asked).format(**fill)
    return {"told": rng.choice(told).format(**fill), "reply": rng.choice(replies).format(**fill),
            "asked": rng.choice([asked_text, asked_text, asked_text.lower(), asked_text.rstrip("?")]),
            "answer": rng.choice(answers).format(**answer_fill), "thought": plan.format(**answer_fill)}

# present, past and future forms: (base, third person, past, rest of the sentence)
ACTIONS = [tuple(row.split("/")) for row in """play/plays/played/in the garden|eat/eats/ate/an apple
read/reads/read/a book
write/writes/wrote/a letter|go/goes/went/to school|see/sees/saw/a bird|buy/buys/bought/some bread
drink/drinks/drank/cold water
run/runs/ran/to the park|sing/sings/sang/a song|make/makes/made/a cake|take/takes/took/the bus|find/finds/found/a coin
help/helps/helped/a friend|wash/washes/washed/the car|open/opens/opened/the window|close/closes/closed/the door
cook/cooks/cooked/dinner|clean/cleans/cleaned/the kitchen|walk/walks/walked/home|swim/swims/swam/in the lake
draw/draws/drew/a picture|give/gives/gave/a gift to a child|bring/brings/brought/the milk|catch/catches/caught/a fish
build/builds/built/a small house|sleep/sleeps/slept/all night|watch/watches/watched/a film
visit/visits/visited/the museum
call/calls/called/a doctor|feed/feeds/fed/the dog|paint/paints/painted/the wall|sell/sells/sold/old books
ride/rides/rode/a horse|lose/loses/lost/a key|wear/wears/wore/a red hat|plant/plants/planted/a tree
meet/meets/met/an old friend
""".strip().replace("\n", "|").split("|")]
NOUNS = [tuple(row.split("/")) for row in """cat/cats dog/dogs book/books box/boxes baby/babies city/cities
child/children man/men
woman/women mouse/mice foot/feet tooth/teeth goose/geese leaf/leaves knife/knives wolf/wolves bus/buses dish/dishes
fox/foxes
tomato/tomatoes potato/potatoes key/keys toy/toys party/parties story/stories sheep/sheep fish/fish person/people
apple/apples
house/houses flower/flowers watch/watches glass/glasses lady/ladies country/countries shelf/shelves wife/wives
hero/heroes
car/cars tree/trees bird/birds day/days boy/boys girl/girls fly/flies berry/berries peach/peaches
brush/brushes""".split()]
RUDE = [("Give me {}.", "Could you please give me {}?"), ("I want {}.", "I would like {}, please."),
        ("Bring me {}.", "Could you bring me {}, please?"), ("Get me {} now.", "Could you please get me {}?"),
        ("Hand me {}.", "Would you hand me {}, please?")]
WANTED = ["the book", "a glass of water", "the report", "a pen", "the bill", "the salt", "a cup of tea",
    "the key",
          "the file", "a chair", "the menu", "a ticket", "the phone", "some bread", "a map", "my coat"]
LONG = [("{} is a person who {} every single day of the week.", "{} {} every day."),
        ("I would like to say that {} really {} very often.", "{} {} often."),
        ("It is a fact that {}, as you know, {} in the evening.", "{} {} in the evening.")]


def clause(rng):
    """Who does something, in the present tense: subject, verb as it is written, and the action's forms."""
    subject = rng.choice(NAMES + ["I", "We", "They", "She", "He"])
    action = rng.choice(ACTIONS)
    return subject, action[0] if subject in ("I", "We", "They") else action[1], action


def past(rng):
    subject, verb, (_, _, before, rest) = clause(rng)
    form = rng.choice(['Put this into the past tense: "{}"', 'Change to past tense: {}',
         "Rewrite in the past tense: {}"])
    return (form.format(f"{subject} {verb} {rest}."), f"{subject} {before} {rest}.",
            f'The verb is "{verb}". Its past form is "{before}".')


def future(rng):
    subject, verb, (base, _, _, rest) = clause(rng)
    form = rng.choice(['Put this into the future tense: "{}"', "Change to future tense: {}",
         "Rewrite in the future: {}"])
    return (form.format(f"{subject} {verb} {rest}."), f"{subject} will {base} {rest}.",
            f'I use "will" and the base form "{base}".')


def question_form(rng):
    subject = rng.choice(NAMES)
    base, third, _, rest = rng.choice(ACTIONS)
    form = rng.choice(["Turn this into a question: {}", "Make this a question: {}"])
    return (form.format(f"{subject} {third} {rest}."), f"Does {subject} {base} {rest}?",
            f'I start with "Does" and use "{base}".')


def negative(rng):
    subject = rng.choice(NAMES)
    base, third, _, rest = rng.choice(ACTIONS)
    form = rng.choice(["Make this sentence negative: {}", "Write the opposite with not: {}"])
    return (form.format(f"{subject} {third} {rest}."), f"{subject} does not {base} {rest}.",
            f'I add "does not" before "{base}".')


def plural(rng):
    one, many = rng.choice(NOUNS)
    form = rng.choice(["What is the plural of {}?", 'What is the plural of "{}"?', "Give me the plural of {}",
         "Plural of {}?"])
    answer = rng.choice([f'The plural of "{one}" is "{many}".', f'It is "{many}".'])
    return form.format(one), answer, f"One {one}, two {many}."


def polite(rng):
    rude, kind = rng.choice(RUDE)
    thing = rng.choice(WANTED)
    form = rng.choice(["Make this more polite: {}", 'Rewrite this politely: "{}"', "Say this in a polite way: {}"])
    return form.format(rude.format(thing)), kind.format(thing), "I turn the order into a polite request."


def shorter(rng):
    long, short = rng.choice(LONG)
    name = rng.choice(NAMES)
    _, third, _, rest = rng.choice(ACTIONS)
    form = rng.choice(["Make this shorter: {}", "Shorten this sentence: {}", 'Say this in fewer words: "{}"'])
    return (form.format(long.format(name, f"{third} {rest}")), short.format(name, f"{third} {rest}"),
            "I keep who does what and drop the rest.")


REWRITES = [past, past, future, question_form, negative, plural, polite, shorter]


def rewrite(rng):
    """(question, answer, thought) of a small task on a sentence or a word."""
    return rng.choice(REWRITES)(rng)
