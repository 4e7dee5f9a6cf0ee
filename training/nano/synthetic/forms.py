"""Answers in JSON: values taken from a text, and things made up, short and closed.

With `response_format` the engine's grammar writes the form, so that the model need not learn it: a message with "form" teaches the
values alone, and nobody gets JSON who did not ask for it. In the other half the user asks for JSON and the model writes it all.
"""

import json

from . import common, frames, toolcalls

WORDS = frames.WORDS
ADJECTIVES = "small red quiet bright old happy simple warm sweet brave lazy clever cold strange blue golden wild soft fast light".split()
TITLES = ["The Long Road", "Blue Morning", "A Winter Song", "The Last Lamp", "Two Brothers", "The Sea House", "Green Fields", "Night Train", "The Lost Key", "Summer Rain",
          "The Old Clock", "A Small Boat", "City Lights", "The Quiet Garden", "Paper Moon", "Under the Bridge"]
SENTENCES = ["It is easy to use.", "A nice thing for every day.", "Very good quality.", "It tastes sweet.", "People like it.", "A quiet place near the sea.", "It is cheap and good.",
             "Made with care.", "A story about friends.", "Good for beginners.", "Small but strong.", "It works well.", "A warm and friendly place.", "Easy and quick."]


def n(low, high):
    return lambda rng: rng.randint(low, high)


def one(kind):
    return lambda rng: rng.choice(WORDS[kind].split("|"))


def draw(slot):
    return lambda rng: toolcalls.draw(rng, slot)


def some(make, low=2, high=4):
    def many(rng):
        found = []
        while len(found) < rng.randint(low, high):
            value = make(rng)
            if value not in found:
                found.append(value)
        return found
    return many


def among(*values):
    return lambda rng: rng.choice(values)


yes = among(True, False)
name = lambda rng: f"{rng.choice(common.FIRST)} {rng.choice(common.FAMILY)}" if rng.random() < 0.5 else rng.choice(common.FIRST)
mail = lambda rng: f"{rng.choice(common.FIRST).lower()}{rng.choice(['', str(rng.randint(1, 99))])}@example.{rng.choice(['com', 'org'])}"
price = lambda rng: rng.choice([rng.randint(1, 200), round(rng.randint(100, 9999) / 100, 2)])
date = lambda rng: f"20{rng.randint(18, 26)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"
sentence = among(*SENTENCES)
title = among(*TITLES)
food, city, country, color = draw("food"), draw("city"), draw("country"), draw("color")

# What can be made up: kind -> fields. Kinds marked by the hash of common.held_out are for the tests.
RECORDS = {
    "person": {"name": name, "first_name": among(*common.FIRST), "age": n(18, 80), "city": city, "country": country, "job": one("job"), "email": mail, "hobbies": some(one("hobby")), "married": yes,
               "height_cm": n(150, 200), "favorite_color": color, "phone": lambda r: frames.draw_value(r, "phone")},
    "user": {"username": lambda r: r.choice(common.FIRST).lower() + str(r.randint(1, 99)), "email": mail, "age": n(18, 70), "active": yes, "role": among("admin", "user", "guest"), "id": n(1, 999)},
    "product": {"name": one("item"), "title": one("item"), "price": price, "currency": among("EUR", "USD"), "color": color, "in_stock": yes, "quantity": n(1, 90), "category": among("home", "kitchen", "garden", "toys", "books", "clothes"),
                "description": sentence, "rating": n(1, 5), "tags": some(among(*ADJECTIVES)), "weight": n(1, 40)},
    "book": {"title": title, "author": name, "pages": n(60, 700), "year": n(1900, 2024), "genre": among("novel", "history", "travel", "fantasy", "crime"), "summary": sentence, "language": among("English", "French", "German"), "available": yes},
    "movie": {"title": title, "director": name, "year": n(1950, 2024), "genre": among("drama", "comedy", "action", "thriller"), "length_minutes": n(70, 180), "actors": some(name), "rating": n(1, 10), "plot": sentence},
    "recipe": {"name": among(*frames.DISHES), "title": among(*frames.DISHES), "minutes": n(5, 120), "servings": n(1, 8), "ingredients": some(draw("grocery"), 2, 5), "difficulty": among("easy", "medium", "hard"), "vegetarian": yes,
               "steps": some(among("Cut everything.", "Heat the oil.", "Mix well.", "Cook it for ten minutes.", "Add some salt.", "Serve it warm."), 2, 4)},
    "city": {"name": city, "country": country, "population": n(20000, 9000000), "river": lambda r: common.invented(r), "has_airport": yes, "famous_for": one("goods"), "language": among("English", "Spanish", "French", "Polish")},
    "animal": {"name": one("petname"), "species": draw("animal"), "kind": draw("animal"), "age": n(1, 20), "legs": among(2, 4), "color": color, "food": one("petfood"), "sound": among("meow", "woof", "moo", "baa", "quack", "roar"), "wild": yes, "can_fly": yes},
    "event": {"title": among(*frames.EVENTS), "name": among(*frames.EVENTS), "date": date, "day": among(*toolcalls.DAYS), "time": lambda r: f"{r.randint(8, 20):02}:{r.choice(['00', '15', '30'])}", "place": one("venue"), "guests": n(4, 90), "host": name, "free": yes,
              "participants": some(name)},
    "task": {"title": draw("task"), "task": draw("task"), "priority": among("low", "medium", "high"), "done": yes, "due": date, "assignee": name, "minutes": n(5, 90), "tags": some(among("home", "work", "shop", "urgent", "family"))},
    "car": {"brand": among("Toyota", "Ford", "Fiat", "Volvo", "Honda", "Opel"), "model": lambda r: common.invented(r), "year": n(1990, 2024), "color": color, "electric": yes, "doors": among(3, 5), "price": n(2000, 40000), "seats": among(2, 4, 5, 7)},
    "weather": {"city": city, "temperature": n(-8, 36), "sky": one("sky"), "rain": yes, "wind_kmh": n(0, 70), "unit": among("celsius", "fahrenheit"), "forecast": one("sky")},
    "song": {"title": title, "artist": name, "length_seconds": n(120, 300), "genre": among("jazz", "rock", "pop", "folk"), "year": n(1950, 2024)},
    "company": {"name": lambda r: f"{r.choice(common.FAMILY)} and Sons", "city": city, "employees": n(3, 900), "product": one("goods"), "founded": n(1900, 2020), "ceo": name, "website": lambda r: f"{common.syllable(r)}.example.com"},
    "house": {"rooms": n(1, 9), "price": n(50000, 900000), "city": city, "garden": yes, "color": color, "owner": name, "built": n(1850, 2020)},
    "plant": {"name": draw("plant"), "height_cm": n(5, 200), "color": color, "needs_sun": yes, "water": among("little", "some", "much"), "months": some(among(*toolcalls.MONTHS), 1, 3)},
    "character": {"name": name, "race": among("elf", "dwarf", "human", "giant"), "level": n(1, 50), "weapon": among("sword", "bow", "staff", "hammer"), "health": n(10, 100), "skills": some(among("hiding", "cooking", "climbing", "magic", "singing")), "brave": yes},
    "review": {"rating": n(1, 5), "text": sentence, "author": name, "recommended": yes, "sentiment": among("positive", "negative", "neutral")},
    "order": {"id": draw("code8"), "customer": name, "items": some(one("item")), "total": price, "paid": yes, "status": among("open", "sent", "done")},
    "ticket": {"from": city, "to": city, "date": date, "seat": draw("code8"), "price": price, "passenger": name, "window": yes, "class": among("first", "second")},
    "school": {"name": lambda r: f"{r.choice(common.FAMILY)} School", "pupils": n(40, 900), "city": city, "subjects": some(one("subject")), "head": name, "public": yes},
    "pet": {"name": one("petname"), "kind": among(*frames.PETS), "age": n(1, 15), "owner": name, "food": one("petfood"), "vaccinated": yes, "color": color},
    "drink": {"name": draw("drink"), "price": price, "hot": yes, "size": among("small", "medium", "large"), "ingredients": some(draw("grocery"))},
    "game": {"name": title, "players": n(1, 8), "minutes": n(5, 120), "difficulty": among("easy", "medium", "hard"), "board": yes, "rules": sentence},
    "planet": {"name": lambda r: common.invented(r), "moons": n(0, 12), "color": color, "has_water": yes, "distance_km": n(100000, 9000000), "inhabitants": among("none", "robots", "birds", "people")},
}
TEST_KINDS = {kind for kind in RECORDS if common.held_out("record", kind, portion=0.25)} or {"planet"}
INVENT = ["Give me {a}.", "Make up {a}.", "Invent {a}.", "Create {a}.", "I need {a} as an example.", "Generate {a}.", "Describe {a}.", "Write {a}.", "Show me an example of {a}.",
          "Make {a} for my test.", "Return {a}.", "Give me the data of {a}.", "{A}, please."]
AS_JSON = [" Answer in JSON.", " As JSON.", " Return JSON only.", " Use JSON with the keys {k}.", " Give {k} as JSON.", " JSON please, with {k}.", " Fields: {k}.", " Reply with a JSON object with {k}."]
EXTRACT = ["Extract the {k}: {t}", "{t}\nExtract {k}.", "{t}\n\nGive me {k} as JSON.", "Turn this into JSON: {t}", "Read the text and fill in the form. {t}", "Get the {k} from this text: {t}",
           "{t} Put that into JSON.", "Here is a text: {t} Which {k} does it give?", "Parse this: {t}", "{t}", "Fill in {k}.\n{t}", "Structured data, please: {t}"]


def spoken(keys):
    return common.listed([key.replace("_", " ") for key in keys])


def value_of(text):
    """A value of a frame as JSON has it: numbers as numbers."""
    return int(text) if text.lstrip("-").isdigit() else text


def schema_of(value):
    if isinstance(value, bool):
        return {"type": "boolean"}
    if isinstance(value, int):
        return {"type": "integer"}
    if isinstance(value, float):
        return {"type": "number"}
    if isinstance(value, list):
        return {"type": "array", "items": schema_of(value[0]) if value else {"type": "string"}}
    if isinstance(value, dict):
        return object_schema(value)
    return {"type": "string"}


def object_schema(record):
    return {"type": "object", "properties": {key: schema_of(value) for key, value in record.items()}, "required": list(record), "additionalProperties": False}


def invent(rng, held_out=False):
    """(user text, record, kind): a thing that is made up."""
    kind = rng.choice(sorted(TEST_KINDS if held_out else set(RECORDS) - TEST_KINDS))
    fields = RECORDS[kind]
    keys = rng.sample(sorted(fields), rng.randint(2, min(6, len(fields))))
    record = {key: fields[key](rng) for key in keys}
    look = rng.choice(ADJECTIVES) if rng.random() < 0.3 and kind in ("product", "car", "house", "plant", "animal", "pet", "drink", "planet") else ""
    if look in ("red", "blue", "golden") and "color" in record:
        record["color"] = look
    user = rng.choice(INVENT).format(a=common.an(f"{look} {kind}".strip()), A=common.cap(common.an(f"{look} {kind}".strip())))
    if rng.random() < 0.12 and not held_out:
        count = rng.randint(2, 3)
        many = [{key: fields[key](rng) for key in keys[:3]} for _ in range(count)]
        return f"Give me {['two', 'three'][count - 2]} examples of {common.an(kind)}.", {rng.choice(["items", "results", "list", kind + "s"]): many}, kind
    return user, record, kind


def extract(rng, held_out=False):
    """(user text, record): the values stand in the text."""
    facts = frames.facts_of(rng, rng.choice([1, 2, 3, 4]), held_out, True)
    record = {}
    if rng.random() < 0.6 and facts[0].frame.kind in ("person", "town", "company", "event", "thing"):
        record["name"] = facts[0].entity
    for f in facts:
        key = rng.choice(f.frame.keys)
        if key not in record:
            record[key] = value_of(f.value)
    if not record:
        record["name"] = facts[0].entity
    keys = list(record)
    if rng.random() < 0.4:
        rng.shuffle(keys)
        record = {key: record[key] for key in keys}
    text = " ".join(f.statement for f in facts)
    return rng.choice(EXTRACT).format(t=text, k=spoken(keys)), record


def classify(rng):
    from .given_text import FEELINGS
    text, mood = rng.choice(FEELINGS)
    text = text.format(x=rng.choice(["lamp", "soup", "phone", "hotel", "book", "coat", "chair"]))
    key = rng.choice(["sentiment", "mood", "label", "category"])
    user = rng.choice(["Is this positive or negative? {}", "Classify: {}", "{}\nWhat is the sentiment?", "How does the writer feel? {}"]).format(text)
    record = {key: mood}
    if rng.random() < 0.4:
        record[rng.choice(["confident", "is_review", "clear"])] = True
    return user, record


def short_answer(rng):
    a, b = rng.randint(2, 40), rng.randint(2, 40)
    kind = rng.randrange(4)
    if kind == 0:
        from . import sums
        while sums.held_out_pair(a, "+", b):
            a, b = rng.randint(2, 40), rng.randint(2, 40)
        return f"What is {a} + {b}?", {rng.choice(["answer", "result", "sum", "value"]): a + b}
    if kind == 1:
        items = rng.sample("apple pear plum cherry grape lemon banana peach melon fig".split(), rng.randint(2, 5))
        count = ["two", "three", "four", "five"][len(items) - 2]
        return rng.choice([f"Name {count} fruits.", f"List {count} fruits.", f"Give me {count} fruits."]), {rng.choice(["fruits", "items", "list", "names"]): items}
    if kind == 2:
        items = rng.sample(WORDS["color"].split("|")[:9], rng.randint(2, 4))
        count = ["two", "three", "four"][len(items) - 2]
        return rng.choice([f"Name {count} colors.", f"List {count} colors."]), {rng.choice(["colors", "items", "list"]): items}
    city_name, country_name = rng.choice([("Paris", "France"), ("Rome", "Italy"), ("Madrid", "Spain"), ("Berlin", "Germany"), ("Tokyo", "Japan"), ("Cairo", "Egypt"), ("Lisbon", "Portugal"), ("Oslo", "Norway")])
    return rng.choice([f"What is the capital of {country_name}?", f"Capital of {country_name}"]), {rng.choice(["capital", "answer", "city"]): city_name}


def reminder(rng):
    who, what, day = rng.choice(common.FIRST), rng.choice(["call", "visit", "write to", "pay", "meet", "thank", "help"]), rng.choice(toolcalls.DAYS)
    hour = toolcalls.draw(rng, "time")
    record = {rng.choice(["task", "action", "title"]): f"{what} {who}", rng.choice(["day", "date"]): day, rng.choice(["time", "at"]): hour}
    if rng.random() < 0.5:
        record[rng.choice(["person", "with", "who"])] = who
    return rng.choice(["Remind me to {w} {p} on {d} at {h}.", "I must {w} {p} on {d} at {h}.", "On {d} at {h} I want to {w} {p}.", "Please note: {w} {p}, {d}, {h}."]).format(w=what, p=who, d=day, h=hour), record


# Fields that any thing may have. One name stands for text here and for a number there, as in other people's forms.
ANY = {"size": among("small", "medium", "large", "tiny", "huge"), "type": among("standard", "special", "simple", "double", "classic"), "level": among("low", "high", "middle"), "state": one("state"), "mood": one("feeling"), "taste": one("taste"), "material": one("material"), "speed": among("slow", "fast", "very fast"),
       "quality": among("good", "poor", "excellent"), "season": among("spring", "summer", "autumn", "winter"), "outlook": among("good", "mixed", "bad", "better soon"), "shape": among("round", "square", "long", "flat"), "measure": among("kilos", "litres", "metres", "pieces"), "trend": among("rising", "falling", "steady"),
       "smell": among("fresh", "sweet", "none", "strong"), "note": sentence, "comment": sentence, "origin": country, "maker": name, "owner": name, "label": lambda r: common.invented(r), "day": among(*toolcalls.DAYS), "parts": some(one("part"), 2, 4), "colors": some(one("color"), 2, 3), "contents": some(draw("grocery"), 2, 5),
       "toppings": some(draw("grocery"), 2, 4), "users": some(name, 2, 3), "places": some(city, 2, 3), "count": n(1, 60), "weight_kg": n(1, 90), "speed_kmh": n(3, 160), "percent": n(0, 100), "price": price, "grams": n(5, 900), "minutes": n(1, 90), "warm": yes, "open": yes, "safe": yes, "cold": yes, "fresh": yes}
ANY_OTHER = {"size": n(1, 60), "level": n(1, 20), "speed": n(2, 200), "quality": n(1, 10), "outlook": sentence, "state": yes, "shape": n(1, 9), "label": n(1, 99), "day": n(1, 28), "season": n(1, 4)}
KINDS_OF_THING = "sandwich|lamp|trip|lake|bag|storm|cake|river|shop|tool|toy|bus|cup|table|market|salad|boat|phone|park|stone|train|chair|soup|bridge|garden|street|machine|jacket|farm|meal|concert|room|shelf|robot|island|path|blanket|letter|clock|bakery".split("|")


def anything(rng):
    """A thing of any kind with fields of any kind."""
    kind = rng.choice(KINDS_OF_THING)
    if common.held_out("record", kind, portion=0.25) and kind in RECORDS:
        raise ValueError(f"{kind} is kept for the tests")
    record = {}
    for key in rng.sample(sorted(ANY), rng.randint(2, 6)):
        record[key] = (ANY_OTHER[key] if key in ANY_OTHER and rng.random() < 0.3 else ANY[key])(rng)
    described = common.an(f"{rng.choice(ADJECTIVES)} {kind}" if rng.random() < 0.25 else kind)
    return rng.choice(INVENT).format(a=described, A=common.cap(described)), record


def dialogue(rng):
    roll = rng.random()
    if roll < 0.4:
        user, record = extract(rng)
    elif roll < 0.55:
        user, record = anything(rng)
    elif roll < 0.78:
        user, record, _ = invent(rng)
    elif roll < 0.84:
        user, record = classify(rng)
    elif roll < 0.93:
        user, record = short_answer(rng)
    else:
        user, record = reminder(rng)
    asks = rng.random() < 0.4
    if asks:
        user += rng.choice(AS_JSON).format(k=spoken(record))
    thought = rng.choice(["I answer with short values.", f"The fields are {spoken(record)}.", "I fill in the fields.", "JSON with short values."])
    # A thought about fields where nobody asked for any made the model write JSON unasked: the fourth run had such thoughts.
    thinking = None if asks else False
    one = common.turns_to_dialogue(rng, [(user, json.dumps(record, ensure_ascii=False))], "forms", thought, thinking=thinking)
    # Only who asks for JSON teaches the model to begin it.
    one["messages"][-1]["form"] = not asks or rng.random() < 0.2
    return one


def dialogues(rng, count):
    for _ in range(count):
        yield dialogue(rng)
