"""Questions that follow what was said: about a person or an animal, about a list just given, about oneself, and longer or shorter."""

from . import common, toolcalls

# name; he or she; who; born; place; known for
PEOPLE = [tuple(part.strip() for part in line.split(";")) for line in """
Albert Einstein; he; a physicist; 1879; Ulm; the theory of relativity
Isaac Newton; he; a scientist from England; 1643; Woolsthorpe; the law of gravity
Marie Curie; she; a scientist; 1867; Warsaw; the discovery of radium
Leonardo da Vinci; he; an Italian artist and inventor; 1452; Vinci; his paintings and drawings
Vincent van Gogh; he; a Dutch painter; 1853; Zundert; The Starry Night
Pablo Picasso; he; a Spanish painter; 1881; Malaga; Guernica
William Shakespeare; he; an English writer; 1564; Stratford-upon-Avon; Hamlet and Romeo and Juliet
Wolfgang Amadeus Mozart; he; a composer from Austria; 1756; Salzburg; The Magic Flute
Ludwig van Beethoven; he; a German composer; 1770; Bonn; his nine symphonies
Johann Sebastian Bach; he; a German composer; 1685; Eisenach; his organ music
Charles Darwin; he; a scientist from England; 1809; Shrewsbury; the theory of evolution
Galileo Galilei; he; an Italian scientist; 1564; Pisa; his telescope
Christopher Columbus; he; a sailor; 1451; Genoa; his journey to America
Neil Armstrong; he; an American astronaut; 1930; Ohio; the first step on the Moon
Jane Austen; she; an English writer; 1775; Steventon; Pride and Prejudice
Charles Dickens; he; an English writer; 1812; Portsmouth; Oliver Twist
Agatha Christie; she; an English writer; 1890; Torquay; her crime stories
Nelson Mandela; he; a president of South Africa; 1918; Mvezo; his fight against apartheid
Mahatma Gandhi; he; a leader from India; 1869; Porbandar; his peaceful fight for freedom
Abraham Lincoln; he; a president of the United States; 1809; Kentucky; the end of slavery
George Washington; he; the first president of the United States; 1732; Virginia; the independence of America
Napoleon Bonaparte; he; an emperor of France; 1769; Corsica; his wars in Europe
Alexander Fleming; he; a doctor from Scotland; 1881; Scotland; the discovery of penicillin
Alexander Graham Bell; he; an inventor; 1847; Edinburgh; the telephone
Thomas Edison; he; an American inventor; 1847; Ohio; the light bulb
Ada Lovelace; she; an English mathematician; 1815; London; the first computer program
Alan Turing; he; an English mathematician; 1912; London; his work on computers
Florence Nightingale; she; an English nurse; 1820; Florence; better care of the sick
Frida Kahlo; she; a Mexican painter; 1907; Mexico City; her portraits of herself
Anne Frank; she; a Jewish girl; 1929; Frankfurt; her diary
""".strip().splitlines()]
# plural; facts, each a sentence of its own
ANIMALS = [(line.split(": ")[0], line.split(": ")[1].split(" | ")) for line in """
cats: Cats sleep about 15 hours a day. | Cats can see well in the dark. | A cat purrs when it feels good. | Cats clean themselves with their tongue. | A young cat is called a kitten.
dogs: Dogs can smell much better than people. | A young dog is called a puppy. | Dogs have lived with people for thousands of years. | Dogs wag their tail when they are happy.
elephants: Elephants are the largest land animals. | An elephant drinks with its trunk. | Elephants have a very good memory. | Elephants live in groups.
bees: Bees make honey from nectar. | Bees tell each other where flowers are by a dance. | A queen bee lays all the eggs. | Bees have five eyes.
horses: Horses can sleep while they stand. | A young horse is called a foal. | Horses eat grass and hay. | Horses can run soon after they are born.
penguins: Penguins are birds that cannot fly. | Penguins are very good swimmers. | Emperor penguins keep their egg warm on their feet. | Penguins eat fish.
whales: The blue whale is the largest animal of all. | Whales breathe air. | Some whales sing long songs. | A young whale is called a calf.
owls: Owls hunt at night. | An owl can turn its head very far. | Owls fly almost without a sound. | Owls eat mice.
spiders: Spiders have eight legs. | Most spiders have eight eyes. | Spiders make their webs of silk. | Spiders are not insects.
snakes: Snakes have no legs. | Snakes smell with their tongue. | A snake swallows its food whole. | Snakes shed their skin.
the moon: The moon goes around the Earth in about 27 days. | There is no air on the moon. | The moon causes the tides. | Twelve people have walked on the moon.
the sun: The sun is a star. | The light of the sun needs about eight minutes to reach us. | The sun is much larger than the Earth. | The sun is made mostly of hydrogen.
Paris: Paris is the capital of France. | The Eiffel Tower stands in Paris. | The river Seine flows through Paris. | The Louvre is in Paris.
Japan: Tokyo is the capital of Japan. | Japan is made of many islands. | Mount Fuji is the highest mountain in Japan. | Sushi comes from Japan.
water: Water freezes at 0 degrees Celsius. | Water boils at 100 degrees Celsius. | Most of the Earth is covered by water. | All living things need water.
""".strip().splitlines()]
LISTS = {"colors": "red|blue|green|yellow|purple|orange|brown|pink|black|white", "animals": "a dog|a cat|a horse|a lion|an owl|a whale|a fox|a rabbit", "fruits": "apples|bananas|pears|grapes|plums|cherries|oranges|melons", "countries": "France|Spain|Japan|Brazil|Kenya|Canada|Norway|India",
         "cities": "Paris|Rome|London|Madrid|Tokyo|Cairo|Lima|Oslo", "sports": "football|tennis|swimming|running|cycling|rowing|skiing", "planets": "Mars|Venus|Jupiter|Saturn|Earth|Mercury", "vegetables": "carrots|onions|potatoes|beans|peas|leeks", "birds": "the owl|the eagle|the robin|the swan|the crow",
         "drinks": "tea|coffee|milk|water|juice", "instruments": "the piano|the guitar|the violin|the drum|the flute", "European countries": "Spain|Italy|Poland|Greece|Sweden|Austria", "primary colors": "red|yellow|blue", "seasons": "spring|summer|autumn|winter", "farm animals": "a cow|a pig|a hen|a sheep|a goat"}
NUMBERS = ["two", "three", "four", "five"]
ORDINALS = ["first", "second", "third", "fourth"]
LENGTHS = [tuple(line.split("|")) for line in """the sea|The sea is calm.|The sea is calm and blue, and small waves roll onto the warm sand.
a cat|The cat sleeps on the sofa.|The small grey cat sleeps on the soft sofa while the rain falls outside.
autumn|The leaves are falling.|The red and yellow leaves are falling, and the children run through them on their way home.
a train|The train is late.|The train is late again, and many tired people wait on the cold platform.
winter|It is snowing.|It is snowing quietly, and the whole village looks white and peaceful.
a dog|The dog runs in the park.|The happy brown dog runs through the green park and chases a red ball.
the city|The city is loud.|The city is loud and full of people, cars and bright lights all day long.
friends|Friends help each other.|Good friends help each other, laugh together and stay close when times are hard.
coffee|I drink coffee in the morning.|Every morning I drink a large cup of hot coffee at the kitchen window.
the moon|The moon is bright.|The moon is bright tonight and shines on the quiet lake behind the house.
a garden|The garden is full of flowers.|The garden behind our house is full of red roses, white lilies and busy bees.
music|Music makes me happy.|Music makes me happy, and I sing along even when I do not know the words.""".splitlines()]
CHOICES = [tuple(line.split("|")) for line in """fruit|I recommend an apple.|Because it is healthy, tastes sweet and is easy to carry.
book|I recommend Treasure Island.|Because it is an exciting story about pirates and a hidden treasure.
city to visit|I recommend Rome.|Because it has old buildings, good food and warm weather.
sport|I recommend swimming.|Because it trains the whole body and is easy on the joints.
hobby|I recommend drawing.|Because you only need paper and a pencil, and it calms the mind.
drink|I recommend tea.|Because it is warm, cheap and there are many kinds.
pet|I recommend a cat.|Because a cat is clean, quiet and needs no walks.
dinner|I recommend pasta with tomato sauce.|Because it is quick, cheap and most people like it.
programming language|I recommend Python.|Because it is easy to read and you can do a lot with it.
instrument|I recommend the guitar.|Because it is easy to begin with and you can play it anywhere.
gift|I recommend a good book.|Because it is personal and brings many hours of joy.
flower|I recommend a rose.|Because it is beautiful and smells good.
color for my room|I recommend light blue.|Because it is calm and makes a room look larger.""".splitlines()]
MINE = [tuple(line.split("|")) for line in """name|My name is {v}.|I am {v}.|What is my name?|What's my name?|Your name is {v}.
home|I live in {v}.|My home is in {v}.|Where do I live?|Which city do I live in?|You live in {v}.
work|I work as a {v}.|I am a {v}.|What is my job?|What do I do for work?|You work as a {v}.
dog|My dog is called {v}.|I have a dog named {v}.|What is my dog called?|What is the name of my dog?|Your dog is called {v}.
cat|My cat is called {v}.|I have a cat, {v}.|How is my cat called?|What is my cat's name?|Your cat is called {v}.
sister|My sister is called {v}.|I have a sister, her name is {v}.|What is my sister called?|Who is my sister?|Your sister is called {v}.
brother|My brother is {v}.|I have a brother named {v}.|What is my brother's name?|Who is my brother?|Your brother is called {v}.
food|My favorite food is {v}.|I love {v}.|What is my favorite food?|What do I like to eat?|Your favorite food is {v}.
color|My favorite color is {v}.|I like {v} most of all colors.|What is my favorite color?|Which color do I like?|Your favorite color is {v}.
car|My car is {v}.|I drive a {v} car.|What color is my car?|Which color does my car have?|Your car is {v}.
trip|I am going to {v} next week.|Next week I travel to {v}.|Where am I going?|Where do I travel?|You are going to {v}.
meeting|My meeting is at {v}.|I have a meeting at {v}.|When is my meeting?|What time is my meeting?|Your meeting is at {v}.
birthday|My birthday is in {v}.|I have my birthday in {v}.|When is my birthday?|In which month is my birthday?|Your birthday is in {v}.
child|My son is called {v}.|I have a son, {v}.|What is my son called?|What is the name of my son?|Your son is called {v}.""".splitlines()]
KINDS = {"name": "person", "home": "city", "dog": "pet", "cat": "pet", "food": "food", "color": "color", "car": "color", "trip": "city", "meeting": "time", "birthday": "month", "work": "work"}
REPLIES = ["Thank you for telling me.", "Nice! How can I help you?", "Good to know.", "All right, I will remember that.", "I see. What would you like to know?", "Okay, noted."]


def drawn(rng, kind):
    if kind == "pet":
        return rng.choice("Rex|Bello|Minka|Luna|Max|Oscar|Bella|Rocky|Coco|Milo|Daisy|Simba".split("|"))
    if kind == "work":
        return rng.choice("teacher|nurse|baker|driver|cook|farmer|carpenter|doctor|painter|gardener|pilot".split("|"))
    return rng.choice(common.FIRST) if kind == "person" else toolcalls.draw(rng, kind)


def of_person(rng, data):
    name, he, who, year, place, known = rng.choice(PEOPLE)
    pairs = [(f"When was {he} born?", f"{common.cap(he)} was born in {year}."), (f"Where was {he} born?", f"{common.cap(he)} was born in {place}."), (f"What is {he} famous for?", f"{common.cap(he)} is famous for {known}."),
             (f"In which year was {he} born?", f"{common.cap(he)} was born in {year}."), (f"Why is {he} famous?", f"{common.cap(he)} is famous for {known}."), (f"what was {he}", f"{common.cap(he)} was {who}.")]
    first = rng.choice([(f"Who was {name}?", f"{name} was {who}."), (f"Tell me about {name}.", f"{name} was {who}, famous for {known}."), (f"who is {name}", f"{name} was {who}."), (f"What is {name} famous for?", f"{name} is famous for {known}.")])
    turns = [first] + [(rng.choice(["", "", "Ok. ", "Thanks. "]) + q if rng.random() < 0.7 else rng.choice(["", "and "]) + q.lower(), a) for q, a in rng.sample(pairs, rng.choice([1, 1, 2])) if a != first[1]]
    if len(turns) == 1:
        turns.append((pairs[0]))
    return turns, f'"{he}" is {name}. {turns[-1][1]}'


def facts_about(rng, data):
    subject, facts = rng.choice(ANIMALS)
    chosen = rng.sample(facts, rng.choice([1, 2, 2, 3]))
    turns = [(rng.choice(["Tell me a fact about {}.", "Tell me something about {}", "What do you know about {}?", "a fact about {}", "Give me a fun fact about {}.", "tell me about {}"]).format(subject), chosen[0])]
    for fact in chosen[1:]:
        turns.append((rng.choice(["tell me another one", "Another one, please.", "one more", "And another fact?", "Something else?", "more", "Tell me more."]), fact))
    return turns, f"The user wants to know about {subject}."


def of_list(rng, data):
    kind = rng.choice(sorted(LISTS))
    members = LISTS[kind].split("|")
    count = min(rng.choice([2, 3, 3, 4, 5]), len(members))
    chosen = members if kind in ("primary colors", "seasons") else rng.sample(members, count)
    count = len(chosen)
    word = NUMBERS[count - 2]
    answer = common.cap(common.listed(chosen)) + "." if rng.random() < 0.6 else "\n".join(f"{i}. {common.cap(c)}" for i, c in enumerate(chosen, 1))
    turns = [(rng.choice([f"Name {word} {kind}.", f"Give me {word} {kind}", f"List {word} {kind}.", f"Tell me {word} {kind}", f"name {count} {kind}"]), answer)]
    at = rng.randrange(min(count, 4))
    follow = rng.random()
    if follow < 0.5:
        turns.append((rng.choice(["Which of them is the {}?", "What was the {} one?", "And the {} one?", "which one is the {}", "Repeat the {} one."]).format(ORDINALS[at]), rng.choice([f"The {ORDINALS[at]} one is {chosen[at]}.", common.cap(chosen[at]) + "."])))
    elif follow < 0.7:
        turns.append((rng.choice(["How many did you name?", "How many are that?", "How many are in the list?"]), f"I named {word}."))
    elif follow < 0.85 or count == len(members):
        turns.append((rng.choice(["What was the last one?", "And the last?", "Which one is last?"]), rng.choice([f"The last one is {chosen[-1]}.", common.cap(chosen[-1]) + "."])))
    else:
        rest = [m for m in members if m not in chosen]
        turns.append((rng.choice(["One more, please.", "And another one?", "another one"]), common.cap(rng.choice(rest)) + "."))
    return turns, f"The list: {', '.join(chosen)}."


def longer(rng, data):
    about, short, long = rng.choice(LENGTHS)
    if rng.random() < 0.6:
        return [(rng.choice(["Write a sentence about {}.", "A sentence about {}, please.", "write one sentence about {}"]).format(about), short), (rng.choice(["now make it longer", "Make it longer.", "Longer, please.", "Can you add more details?", "a bit longer"]), long)], "The same with more details."
    return [(rng.choice(["Write a sentence about {}.", "A long sentence about {}, please."]).format(about), long), (rng.choice(["Shorter, please.", "Make it shorter.", "can you say it shorter", "Now in a few words."]), short)], "The same in fewer words."


def reason(rng, data):
    what, choice, because = rng.choice(CHOICES)
    return [(rng.choice(["Recommend me a {}.", "Can you recommend a {}?", "Which {} do you recommend?", "suggest a {}"]).format(what).replace("a instrument", "an instrument"), choice), (rng.choice(["Why?", "Why that one?", "why", "Why do you recommend it?", "What is good about it?"]), because)], "The user asks for the reason."


def about_me(rng, data):
    """What the user said of himself, and later a question about it."""
    lines = rng.sample(MINE, rng.choice([1, 2, 2, 3]))
    told = []
    for key, one, two, ask, ask2, answer in lines:
        value = drawn(rng, KINDS.get(key, "person"))
        told.append((rng.choice([one, two]).format(v=value), rng.choice([ask, ask2]), answer.format(v=value)))
    asked = rng.choice(told)
    question = asked[1] if rng.random() < 0.7 else asked[1].lower().rstrip("?")
    if rng.random() < 0.5:
        turns = [(" ".join(t[0] for t in told), rng.choice(REPLIES)), (question, asked[2])]
    elif rng.random() < 0.5:
        turns = [(t[0], rng.choice(REPLIES)) for t in told] + [(question, asked[2])]
    else:
        turns = [(" ".join(t[0] for t in told) + " " + asked[1], asked[2])]
    if rng.random() < 0.12:
        missing = rng.choice([m for m in MINE if m not in lines])
        turns[-1] = (missing[3], rng.choice(["I do not know that. You have not told me.", "You have not told me that yet."])) if len(turns) > 1 else turns[-1]
        return turns, "I look back at the chat." if len(turns) == 1 else "The user has not told me that."
    return turns, f'The user said: "{asked[0]}"'


def said_before(rng, data):
    first = rng.choice(["I like tea.", "It is cold today.", "I want to learn to cook.", "I have two cats.", "My bike is broken.", "I am from Spain.", "I need a new phone.", "We moved last week."])
    return [(first, rng.choice(REPLIES)), (rng.choice(["What did I just say?", "What did I tell you?", "Can you repeat what I said?"]), f'You said: "{first}"')], "I look at the last message."


FOLLOWS = [(7, of_person), (5, facts_about), (8, of_list), (3, longer), (3, reason), (12, about_me), (1, said_before)]
