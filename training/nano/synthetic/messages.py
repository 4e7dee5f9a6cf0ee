"""Messages as people write them, and what others want to know of them: who comes, when, where, what to bring, what to buy."""

from . import common, toolcalls

# message; then "question => answer" for what stands in it. {a} {b} {c} people, {d} {d2} days, {t} a time, {w} a place, {x} {y} {z} things, {n} a number.
MESSAGES = [tuple(part.strip() for part in block.strip().split("\n")) for block in """
Hi {b}, {a} and I arrive on {d} at {t}. We bring {x}. See you, {c}
Who is coming? => {a} and {c} are coming. || When do they arrive? => They arrive on {d} at {t}. || What do they bring? => They bring {x}. || Who wrote this? => {c} wrote it. || Who is coming and when? => {a} and {c} are coming on {d} at {t}.

Dear {b}, the meeting on {d} is moved to {d2}. It takes place in {w} at {t}. Best wishes, {c}
When is the meeting now? => The meeting is now on {d2} at {t}. || Where is the meeting? => It is in {w}. || On which day was the meeting planned at first? => At first it was planned on {d}. || What changed? => The meeting was moved from {d} to {d2}. || Who sent this? => {c} sent it.

{a}, can you pick up {x} and {y} on the way home? I am in {w} until {t}. {b}
What should {a} pick up? => {a} should pick up {x} and {y}. || Where is {b}? => {b} is in {w}. || Until when is {b} there? => {b} is there until {t}. || Who should get {x}? => {a} should get it. || What does {b} want? => {b} wants {a} to pick up {x} and {y}.

Mum, I forgot {x} at home. Could you bring it to {w} before {t}? Thanks! {a}
What did {a} forget? => {a} forgot {x}. || Where should it be brought? => It should be brought to {w}. || By when is it needed? => It is needed before {t}. || What does {a} ask for? => {a} asks to have {x} brought to {w}.

Good news! {a} got the job in {city} and starts on {d}. We celebrate at {t} in {w}. {b}
What is the good news? => {a} got the job in {city}. || When does {a} start? => {a} starts on {d}. || Where do they celebrate? => They celebrate in {w}. || In which city is the job? => The job is in {city}. || Who got the job? => {a} got the job.

Reminder: the dentist expects {a} on {d} at {t}. Please bring {x}.
When is the appointment? => It is on {d} at {t}. || Who has to go to the dentist? => {a} has to go to the dentist. || What should {a} bring? => {a} should bring {x}. || With whom is the appointment? => It is with the dentist.

Hello neighbours, on {d} from {t} we have a party in {w}. It may get loud. Come by and bring {x}! {a} and {b}
Who has a party? => {a} and {b} have a party. || When is the party? => It is on {d} from {t}. || Where is the party? => It is in {w}. || What should the guests bring? => They should bring {x}. || Why do they write? => They write because their party may get loud.

Our trip: on {d} we take the train to {city}, on {d2} we visit {w}. {a} has the tickets, {b} takes care of the food.
Who has the tickets? => {a} has the tickets. || Where does the train go? => It goes to {city}. || What do they do on {d2}? => They visit {w}. || Who takes care of the food? => {b} takes care of the food. || How do they travel? => They take the train.

Lost: {x}, near {w}, on {d}. If you find it, please call {a} at {phone}. Reward: {n} euros.
What was lost? => {x} was lost. || Where was it lost? => It was lost near {w}. || Whom should I call? => You should call {a} at {phone}. || How much is the reward? => The reward is {n} euros. || When was it lost? => It was lost on {d}.

For sale: {x}, {n} euros, almost new. Can be seen in {w} on {d}. Ask for {a}.
What is for sale? => {x} is for sale. || How much is it? => It costs {n} euros. || Where can it be seen? => It can be seen in {w}. || Whom do I ask for? => Ask for {a}. || When can I see it? => You can see it on {d}.

Hi all, {a} is ill and cannot play on {d}. {b} plays instead. We meet at {t} in front of {w}.
Who is ill? => {a} is ill. || Who plays instead? => {b} plays instead. || When do they meet? => They meet at {t}. || Where do they meet? => They meet in front of {w}. || Why does {a} not play? => {a} is ill.

Dear customer, your order of {x} was sent on {d}. It weighs {n} kilos and will arrive on {d2}. Regards, {c} Shop
What was ordered? => {x} was ordered. || When will it arrive? => It will arrive on {d2}. || When was it sent? => It was sent on {d}. || How heavy is it? => It weighs {n} kilos. || Which shop wrote this? => It was the {c} Shop.

{a} was born in {city}. At {n} {she} moved to {city2} and opened a small shop for {y}. Today {her} daughter {b} runs it.
Where was {a} born? => {a} was born in {city}. || What did {a} sell? => {a} sold {y}. || Who runs the shop today? => {b} runs it. || Where did {a} move? => {a} moved to {city2}. || How old was {a} at the move? => {a} was {n}.

Yesterday {a} and {b} went to {w}. It rained, so they drank tea and looked at {y}. On the way home {b} lost {x}.
Where did they go? => They went to {w}. || What was the weather like? => It rained. || What did {b} lose? => {b} lost {x}. || What did they drink? => They drank tea. || Who went to {w}? => {a} and {b} went there.
""".strip().split("\n\n")]
PLACES = ["the library", "the town hall", "the park", "the office", "the old mill", "the station", "the garden", "the museum", "room 12", "the school", "the church", "the cafe", "the swimming pool"]
THINGS = ["a cake", "salad", "the blue folder", "an umbrella", "two bottles of juice", "my keys", "a warm jacket", "the photos", "bread", "a chair", "the passport", "a red bicycle", "a lamp", "a small dog", "some cheese", "a good mood",
          "a guitar", "the camera", "flowers", "a sleeping bag"]
PLURALS = ["hats", "books", "candles", "clocks", "shoes", "toys", "cakes", "lamps", "paintings", "boats", "stars", "maps"]
FORMS = ["{q}\n\n{m}", "{m}\n\n{q}", "{q} \"{m}\"", "\"{m}\" {q}", "Here is a message: {m}\n{q}", "From this message, {lq} \"{m}\"", "{m} {q}", "I got this message: {m}\n{q}", "Read this: {m}\nNow tell me: {q}", "Look at this text: \"{m}\"\n{q}",
         "Text:\n{m}\n\nQuestion: {q}", "{q}\nMessage: {m}", "My friend wrote: {m}\n{q}"]
BUY = ["eggs", "flour", "milk", "butter", "candles", "sugar", "apples", "rice", "tomatoes", "bread", "cheese", "coffee", "tea", "onions", "salt", "soap", "paper", "honey", "olives", "lemons", "nails", "stamps", "batteries", "pasta", "yeast"]
AMOUNTS = ["two", "three", "six", "some", "a few", "a lot of", "fresh", "five", "four"]
NEEDS = ["We need {0} and {1}, and please get {2} too.", "Please buy {0}, {1} and {2}.", "I am out of {0}. We also need {1}, and {2} for the cake.", "Do not forget {0}! And {1} and {2}.", "Can you get {0}? Oh, and {1}. {2} would be nice as well.",
         "For the party we still need {0}, then {1}, and {2} for Grandma.", "Get {0} at the market, {1} at the shop next door and {2} if they have any.", "There is no {p0} left, and we want {1} for dinner. {2} too, please."]
BUY_ASKED = ["Make a shopping list", "Make a list of what to buy", "Write a shopping list from this", "What do we need to buy?", "Turn this into a shopping list", "List the things to get", "Which things should I buy?"]
FRIENDLY = [("{x} is in the way. Move it.", "Could you please move {x}? It is in the way. Thank you!"), ("Turn down the music.", "Could you please turn down the music a little? Thank you!"), ("Your dog is too loud.", "Your dog is a little loud. Could you please calm it down?"),
            ("You are late again.", "It would be great if you could come on time. Thank you!"), ("Clean the kitchen.", "Could you please clean the kitchen? That would be very kind."), ("I need the report today.", "Could you please send me the report today? Thank you very much!"),
            ("Do not park here.", "Could you please park somewhere else? Thank you!"), ("Answer my mail.", "I would be happy if you could answer my mail."), ("{x} is broken. Send a new one.", "Unfortunately {x} is broken. Could you please send me a new one?"),
            ("Stop talking.", "Could you please be quiet for a moment? Thank you!"), ("Bring back {x}.", "Could you please bring back {x} when you have time?"), ("Wash your cups.", "Could you please wash your cups? Thank you!"),
            ("Close the door.", "Could you please close the door? Thank you!"), ("The soup is cold. Warm it up.", "The soup is a little cold. Could you please warm it up?"), ("Your bags block the door. Take them away.", "Your bags are in front of the door. Could you please take them away? Thank you!")]
FRIENDLY_ASKED = ["Make this friendlier", "Please make this friendlier", "Say this in a nicer way", "Rewrite this in a friendly way", "Make this more polite", "How can I say this more kindly?", "Put this politely", "Make this message sound nicer"]
RELATIVES = "sister brother mother father friend cousin aunt uncle neighbour son daughter boss teacher".split()
JOBS = "carpenter baker nurse pilot teacher gardener doctor painter cook driver plumber farmer singer dentist judge".split()


def message(rng):
    text, questions = rng.choice(MESSAGES)
    a, b, c = rng.sample(common.FIRST, 3)
    d, d2 = rng.sample(toolcalls.DAYS, 2)
    x, z = rng.sample(THINGS, 2)
    she = rng.choice(["she", "he"])
    slots = {"a": a, "b": b, "c": c, "d": d, "d2": d2, "t": rng.choice(["four", "five o'clock", "noon", "8 pm", "7:30", "ten", "half past two", toolcalls.draw(rng, "time")]), "w": rng.choice(PLACES), "x": x, "y": rng.choice(PLURALS), "z": z,
             "n": rng.randint(12, 90), "city": toolcalls.draw(rng, "city"), "city2": common.place(rng), "phone": f"{rng.randint(100, 999)}-{rng.randint(100, 999)}", "she": she, "her": "her" if she == "she" else "his"}
    question, _, answer = rng.choice(questions.split(" || ")).partition(" => ")
    text, question, answer = (part.format(**slots) for part in (text, question, answer))
    answer = common.cap(answer)
    form = rng.choice(FORMS)
    return form.format(m=common.cap(text), q=question, lq=question[0].lower() + question[1:] if not question.startswith((a, b, c)) else question), answer, "The message says it: " + answer


def shopping(rng):
    items = [f"{rng.choice(AMOUNTS)} {item}" if rng.random() < 0.5 else item for item in rng.sample(BUY, 3)]
    text = rng.choice(NEEDS).format(*items, p0=items[0].split()[-1])
    if "{p0}" not in text and text.startswith("There is no"):
        items[0] = items[0].split()[-1]
    asked = rng.choice(BUY_ASKED)
    user = rng.choice(["{q}: {m}", "{m}\n{q}", "{q}:\n{m}", "{q} \"{m}\""]).format(q=asked.rstrip("?") if rng.random() < 0.5 else asked, m=text)
    return user, "\n".join("- " + item for item in items) if rng.random() < 0.7 else common.cap(common.listed(items)) + ".", f"To buy: {', '.join(items)}."


def friendlier(rng):
    text, answer = rng.choice(FRIENDLY)
    x = rng.choice(["the parcel", "your bike", "the ladder", "the lamp", "your car", "the box", "the chair", "my book"])
    asked = rng.choice(FRIENDLY_ASKED)
    return rng.choice(["{q}: {m}", "{q}:\n{m}", "{m}\n{q}.", '{q}: "{m}"']).format(q=asked, m=common.cap(text.format(x=x))).replace("?.", "?").replace("?:", "?"), common.cap(answer.format(x=x)), "The same wish, said kindly."


def family(rng):
    """Turns: something about the user's people, then a question with a pronoun."""
    who, name, job = rng.choice(RELATIVES), rng.choice(common.FIRST), rng.choice(JOBS)
    he = {"sister": "she", "mother": "she", "aunt": "she", "daughter": "she", "brother": "he", "father": "he", "uncle": "he", "son": "he"}.get(who, rng.choice(["he", "she"]))
    town, age, pet = toolcalls.draw(rng, "city"), rng.randint(5, 90), rng.choice(["dog", "cat", "parrot", "horse"])
    facts = {"job": (f"{he} is {common.an(job)}", [f"What does {he} do for a living?", f"What does {he} do?", f"What is {'his' if he == 'he' else 'her'} job?", f"What work does {he} do?"], f"{name} is {common.an(job)}."),
             "town": (f"{he} lives in {town}", [f"Where does {he} live?", "In which city is that?", f"Which city does {he} live in?"], f"{name} lives in {town}."),
             "age": (f"{he} is {age} years old", [f"How old is {he}?", f"What is {'his' if he == 'he' else 'her'} age?"], f"{name} is {age} years old."),
             "pet": (f"{he} has {common.an(pet)}", [f"Which pet does {he} have?", f"What animal does {he} have?"], f"{name} has {common.an(pet)}.")}
    told = rng.sample(sorted(facts), rng.randint(1, 2))
    first = rng.choice([f"My {who} is called {name} and {facts[told[0]][0]}.", f"My {who} {name}: {facts[told[0]][0]}.", f"I have a {who}, {name}. {common.cap(facts[told[0]][0])}."])
    if len(told) > 1:
        first += f" {common.cap(facts[told[1]][0])}."
    turns = [(first, rng.choice([f"Nice! Tell me more about {name}.", f"Thank you for telling me about {name}.", f"That is good to know. {name} sounds nice.", "I see. What would you like to know?"]))]
    asked = rng.choice(told)
    if rng.random() < 0.3:
        turns.append((rng.choice([f"What is the name of my {who}?", f"What is my {who} called?"]), f"Your {who} is called {name}."))
    turns.append((rng.choice(facts[asked][1]), facts[asked][2]))
    return turns, f"The user told me about {name}: {facts[asked][0]}."


def exchange(rng):
    """(turns, thought)"""
    roll = rng.random()
    if roll < 0.16:
        return family(rng)
    user, answer, thought = message(rng) if roll < 0.62 else shopping(rng) if roll < 0.82 else friendlier(rng)
    return [(user, answer)], thought


def dialogues(rng, count):
    for _ in range(count):
        turns, thought = exchange(rng)
        yield common.turns_to_dialogue(rng, turns, "given_text", thought)
