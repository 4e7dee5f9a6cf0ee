"""Tool-call dialogues: the model learns to pick a function of the schema and to copy its names and the user's values.

Three sources: the authored tools of toolcalls_bank, novel tools put together from a verb and a noun (so that unseen
names get copied), and voice commands of the data folder whose intents and slots become functions and arguments.
"""

import json
import re
from collections import Counter
from functools import lru_cache
from pathlib import Path

from ..corpus import part, rows, share
from . import toolcalls_bank as bank

SLOTS_FILE = Path(__file__).parent / "banks" / "tools_slots.txt"
HELD_OUT_UTTERANCES, HELD_OUT_ROWS, HELD_OUT_PAIRS = 0.03, 0.02, 0.04
TYPES = {"s": "string", "i": "integer", "n": "number"}
SYSTEMS = ["You are a helpful assistant.", "Answer briefly.", "You are Chimère Nano, a small assistant.",
           "Use the tools when they help.", "You are a home assistant.", "Be short and friendly."]
DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
          "December"]


# ---------------------------------------------------------------------------------------------------------------------
# The authored bank

@lru_cache(maxsize=None)
def slots():
    """(values by kind, the kinds whose values the schema lists)."""
    values, listed = {}, set()
    for line in SLOTS_FILE.read_text(encoding="utf8").splitlines():
        if line.strip() and not line.startswith("#"):
            kind, _, rest = line.partition(":")
            if kind.endswith(" enum"):
                kind = kind[:-5]
                listed.add(kind)
            values[kind] = [value.strip() for value in rest.split(";")]
    return values, listed


def parse(block):
    names, descriptions, *lines = block.replace("\n  ", "").splitlines()
    tool = {"names": names.split("/"), "descriptions": descriptions.split("/"), "result": None, "missing": None}
    for line in lines:
        mark, rest = line.split(" ", 1)
        if mark == "p":
            tool["parameters"] = []
            for text in rest.split(";"):
                keys, kind, description, slot = text.split(":")
                tool["parameters"].append({"keys": keys.split(","), "type": TYPES[kind], "description": description,
                                           "slot": slot.rstrip("!"), "required": slot.endswith("!")})
        elif mark == "w":
            tool["want"] = rest
        elif mark == "u":
            tool["utterances"] = rest.split("|")
        else:
            tool["result" if mark == "r" else "missing"] = tuple(rest.split(" => "))
    for utterance in tool["utterances"]:
        for parameter in tool["parameters"]:
            if parameter["required"] and "{" + parameter["keys"][0] + "}" not in utterance:
                raise ValueError(f"{utterance!r} lacks the required {parameter['keys'][0]}")
    return tool


@lru_cache(maxsize=None)
def tools():
    return [parse(block) for block in (bank.TOOLS.strip() + "\n\n" + bank.MORE_TOOLS.strip()).split("\n\n")]


def draw(rng, kind):
    """A value for a slot kind, as text."""
    span = re.fullmatch(r"n(-?\d+)-(\d+)", kind)
    if span:
        return str(rng.randint(int(span[1]), int(span[2])))
    if kind == "time":
        hour, minute = rng.randint(1, 12), rng.choice([0, 0, 0, 15, 30, 45, rng.randint(0, 59)])
        if rng.random() < 0.3:
            return f"{rng.randint(0, 23):02}:{minute:02}"
        return f"{hour}{f':{minute:02}' if minute else ''} {rng.choice(['am', 'pm'])}"
    if kind == "date":
        return rng.choice(["tomorrow", "today", "tonight", "next week", f"on {rng.choice(DAYS)}",
                           f"next {rng.choice(DAYS)}", f"on {rng.choice(MONTHS)} {rng.randint(1, 28)}"])
    if kind == "expr":
        numbers = [rng.randint(2, rng.choice([20, 100, 1000])) for _ in range(rng.choice([2, 2, 3]))]
        text = str(numbers[0])
        for number in numbers[1:]:
            text += f" {rng.choice('+-*/')} {number}"
        return text
    if kind == "code8":
        letters = "".join(rng.choice("ABCDEFGHJKLMNPQRSTUVWXYZ") for _ in range(rng.randint(1, 3)))
        return letters + str(rng.randint(100, 99999))
    return rng.choice(slots()[0][kind])


def styled(rng, name):
    """A snake_case name in one of the usual styles, and whether its parameters follow the camel style."""
    style = rng.choices(["snake", "camel", "pascal", "kebab"], [62, 24, 8, 6])[0]
    words = name.split("_")
    if style == "camel":
        return words[0] + "".join(word.capitalize() for word in words[1:]), True
    if style == "pascal":
        return "".join(word.capitalize() for word in words), True
    return ("-" if style == "kebab" else "_").join(words), False


def key_styled(key, camel):
    first, *others = key.split("_")
    return first + "".join(word.capitalize() for word in others) if camel else key


def schema(name, description, properties, required):
    return {"type": "function", "function": {"name": name, "description": description, "parameters": {
        "type": "object", "properties": properties, "required": required}}}


def instance(rng, tool):
    """An authored tool with its names chosen: the schema and the key of each parameter."""
    name, camel = styled(rng, rng.choice(tool["names"]))
    keys, properties, required = {}, {}, []
    for parameter in tool["parameters"]:
        free = [key for key in parameter["keys"] if key_styled(key, camel) not in properties]
        key = key_styled(free[0] if rng.random() < 0.5 else rng.choice(free), camel)
        keys[parameter["keys"][0]] = key
        properties[key] = {"type": parameter["type"], "description": parameter["description"]}
        if parameter["slot"] in slots()[1]:
            properties[key]["enum"] = slots()[0][parameter["slot"]]
        if parameter["required"]:
            required.append(key)
    return schema(name, rng.choice(tool["descriptions"]), properties, required), keys


def typed(text, kind):
    return int(text) if kind in ("integer", "number") else text


def fill(template, values):
    for key, value in values.items():
        template = template.replace("{" + key + "}", str(value))
    return template


VERB_STARTS = frozenset("""show tell set start give wake make remind add create schedule put book plan list check take
write save send email text message phone ring dial play turn switch change lock calculate compute convert exchange
translate define search look find get order reserve read open print delete remove erase run execute query fetch load
download visit pick choose generate roll throw vacuum clean log record track transfer pay draw paint report call rent
buy""".split())
ASKING = re.compile(r"(what|how|who|when|where|which|is|are|do|does|did|will|has|can|could|any|am)\b", re.I)


def said(rng, text):
    """The utterance with the small differences of how people type."""
    if text.split(" ")[0] in VERB_STARTS and not re.search(r"[:?]|please", text) and rng.random() < 0.3:
        text = rng.choice(["please ", "can you ", "could you ", "hey, ", "now ", "I want you to "]) + text
    if rng.random() < 0.6:
        text = text[:1].upper() + text[1:]
    if rng.random() < 0.5 and text[-1:] not in "?.!":
        text += "?" if ASKING.match(text) else rng.choice([".", ".", "!"])
    return text


def authored(rng, tool, held_out):
    """A request an authored tool serves: dict(tool, call, user, want, values); None if the split does not hold it."""
    template = rng.choice(tool["utterances"])
    values, used = {}, set()
    for parameter in tool["parameters"]:
        key = parameter["keys"][0]
        if "{" + key + "}" in template:
            value = draw(rng, parameter["slot"])
            while value in used:
                value = draw(rng, parameter["slot"])
            used.add(value)
            values[key] = value
    text = fill(template, values)
    if (share("utterance", text) < HELD_OUT_UTTERANCES) != held_out:
        return None
    made, keys = instance(rng, tool)
    kinds = {parameter["keys"][0]: parameter["type"] for parameter in tool["parameters"]}
    # "on Monday" is how it is said; the argument is the day.
    values = {key: value.removeprefix("on ") if len(value) > 4 else value for key, value in values.items()}
    arguments = {keys[key]: typed(value, kinds[key]) for key, value in values.items()}
    return {"text": text, "tool": made, "call": {"name": made["function"]["name"], "arguments": arguments},
            "user": said(rng, text),
            "want": fill(tool["want"], values), "values": values, "source": tool}


# ---------------------------------------------------------------------------------------------------------------------
# Novel tools

# (parameter names, type, what the description says, slot kind, how the user says it)
HANDLES = [
    (["id", "identifier", "ref"], "string", "its id", "code8", ["{v}", "with id {v}", "with the id {v}"]),
    (["number", "no", "index"], "integer", "its number", "n1-999", ["number {v}", "{v}", "with number {v}"]),
    (["name", "label", "title"], "string", "its name", "person", ["named {v}", "called {v}", "with the name {v}"]),
    (["city", "location", "site"], "string", "its city", "city", ["in {v}", "from {v}", "located in {v}"]),
    (["color", "colour", "shade"], "string", "its color", "color", ["with the color {v}", "that is {v}"]),
    (["owner", "user", "holder"], "string", "its owner", "person", ["of {v}", "owned by {v}", "that belongs to {v}"]),
    (["room", "place", "area"], "string", "its room", "room", ["in the {v}", "from the {v}"]),
    (["date", "day", "when"], "string", "the day", "date", ["{v}", "due {v}"]),
    (["weight", "kilos", "mass"], "integer", "its weight in kilos", "n2-90", ["of {v} kilos", "that weighs {v} kilos"]),
]
EXTRAS = [
    (["count", "times", "amount"], "integer", "How many times", "n2-20", ["{v} times"]),
    (["time", "at", "hour"], "string", "Time of day", "time", ["at {v}"]),
    (["priority", "urgency", "level"], "string", "How urgent it is", "priority", ["with {v} priority"]),
    (["speed", "pace", "rate"], "integer", "Speed in percent", "n5-100", ["at speed {v}"]),
]
NAME_FORMS = ["{v}_{n}", "{v}_{n}", "{v}_{n}", "{n}_{v}", "{v}_the_{n}", "do_{v}_{n}", "{v}_one_{n}", "my_{n}_{v}"]


def reserved(verb, noun):
    """Whether a pair is kept for the tests of tools never seen in training."""
    return share("pair", verb, noun) < HELD_OUT_PAIRS


def pair(rng, held_out):
    while True:
        chosen = rng.choice(bank.VERBS), rng.choice(bank.NOUNS)
        if reserved(*chosen) == held_out:
            return chosen


def article(word):
    return ("an " if word[0] in "aeiou" else "a ") + word


def novel_tool(rng, verb, noun):
    """A made-up tool: its schema, its handle and its optional extra, each with the chosen key."""
    name, camel = styled(rng, rng.choice(NAME_FORMS).format(v=verb, n=noun))
    handle, extra = rng.choice(HANDLES), rng.choice(EXTRAS) if rng.random() < 0.3 else None
    spoken = "look up" if verb == "lookup" else verb
    description = f"{spoken.capitalize()} {rng.choice([article(noun), 'the ' + noun])} by {handle[2]}."
    key = key_styled(rng.choice(handle[0] + [f"{noun}_{handle[0][0]}"]), camel)
    properties = {key: {"type": handle[1], "description": f"{handle[2].capitalize()}"}}
    extra_key = None
    if extra:
        extra_key = rng.choice(extra[0])
        properties[extra_key] = {"type": extra[1], "description": extra[2]}
        if extra[3] in slots()[1]:
            properties[extra_key]["enum"] = slots()[0][extra[3]]
    return schema(name, description, properties, [key]), spoken, (key, handle), (extra_key, extra)


def novel(rng, held_out=False):
    verb, noun = pair(rng, held_out)
    tool, spoken, (key, handle), (extra_key, extra) = novel_tool(rng, verb, noun)
    value = draw(rng, handle[3])
    while handle[3] == "person" and value[0].islower():
        value = draw(rng, handle[3])
    arguments = {key: typed(value.removeprefix("on "), handle[1])}
    text = f"{spoken} the {noun} {rng.choice(handle[4]).format(v=value)}"
    if extra and rng.random() < 0.6:
        extra_value = draw(rng, extra[3])
        arguments[extra_key] = typed(extra_value, extra[1])
        text += " " + rng.choice(extra[4]).format(v=extra_value)
    want = f"to {spoken} the {noun} {value}" if handle[3] in ("code8", "n1-999") else f"to {spoken} the {noun}"
    if rng.random() < 0.25:
        text = rng.choice(["please ", "can you ", "I want to ", "I need to ", "could you "]) + text
    elif rng.random() < 0.1:
        text = f"{spoken} {noun} {value}" if len(arguments) == 1 else text
    return {"tool": tool, "call": {"name": tool["function"]["name"], "arguments": arguments}, "user": said(rng, text),
            "want": want, "values": {}, "source": None, "pair": (verb, noun),
            "done": f"The {noun} is ready.", "ask": (f"{spoken} the {noun}", f"Please tell me {handle[2]}.")}


def novel_distractor(rng, near=None):
    """Another made-up tool; with `near` (verb, noun) it often shares one of the two words."""
    way = rng.random() if near else 1
    for _ in range(20):
        verb = near[0] if way < 0.3 else rng.choice(bank.VERBS)
        noun = near[1] if 0.3 <= way < 0.6 else rng.choice(bank.NOUNS)
        if not reserved(verb, noun) and (verb, noun) != near:
            return novel_tool(rng, verb, noun)[0]
    return novel_tool(rng, *pair(rng, False))[0]


# ---------------------------------------------------------------------------------------------------------------------
# Voice commands of the data folder

LEFT_OUT = {"qa_factoid", "qa_maths", "social_post", "lists_createoradd", "email_addcontact", "music_likeness",
            "lists_remove",
            "general_joke", "iot_hue_lightdim", "social_query", "email_query", "qa_currency", "music_settings",
            "music_query",
            "lists_query", "iot_coffee", "play_podcasts", "datetime_convert"}
SNIPS_NAMES = {
    "AddToPlaylist": ["add_to_playlist", "playlist_add"], "BookRestaurant": ["book_restaurant", "reserve_restaurant"],
    "GetWeather": ["get_weather", "weather_forecast"], "PlayMusic": ["play_music", "music_player"],
    "RateBook": ["rate_book", "book_rating"], "SearchCreativeWork": ["search_creative_work", "find_work"],
    "SearchScreeningEvent": ["search_screening_event", "find_screening"]}
HOME_NAMES = {
    "email_querycontact": ["query_contact", "find_contact"], "email_sendemail": ["send_email", "email_send"],
    "iot_cleaning": ["start_cleaning", "clean_home"], "iot_hue_lightchange": ["change_light", "light_change"],
    "iot_hue_lightoff": ["light_off", "lights_off"], "iot_hue_lighton": ["light_on", "lights_on"],
    "iot_hue_lightup": ["light_up", "brighten_light"], "iot_wemo_off": ["plug_off", "switch_off"],
    "iot_wemo_on": ["plug_on", "switch_on"], "qa_definition": ["define", "get_definition"],
    "qa_stock": ["stock_price", "get_stock"],
    "recommendation_events": ["find_events", "recommend_events"], "recommendation_locations": ["find_places",
                                                                                               "places_nearby"],
    "recommendation_movies": ["recommend_movies", "find_movies"]}
DESCRIPTIONS = {
    "AddToPlaylist": "Add music to a playlist.", "BookRestaurant": "Book a restaurant.",
    "GetWeather": "Get the weather.",
    "PlayMusic": "Play music.", "RateBook": "Rate a book.", "SearchCreativeWork": "Find a book, song, game or show.",
    "SearchScreeningEvent": "Find movie times.", "alarm_query": "Look up the alarms.",
    "alarm_remove": "Remove an alarm.",
    "alarm_set": "Set an alarm.", "audio_volume_down": "Turn the volume down.", "audio_volume_mute": "Mute the sound.",
    "audio_volume_up": "Turn the volume up.", "calendar_query": "Look up the calendar.",
    "calendar_remove": "Remove an event from the calendar.",
    "calendar_set": "Add an event or reminder to the calendar.",
    "cooking_recipe": "Find a recipe or cooking advice.", "datetime_query": "Tell the date or time.",
    "email_querycontact": "Look up a contact.", "email_sendemail": "Send an email.",
    "iot_cleaning": "Start the vacuum cleaner.",
    "iot_hue_lightchange": "Change the color of the lights.", "iot_hue_lightoff": "Turn the lights off.",
    "iot_hue_lighton": "Turn the lights on.", "iot_hue_lightup": "Make the lights brighter.",
    "iot_wemo_off": "Switch a smart plug off.", "iot_wemo_on": "Switch a smart plug on.", "news_query": "Get the news.",
    "play_audiobook": "Play an audiobook.", "play_game": "Play a game.", "play_music": "Play music.",
    "play_radio": "Play a radio station.", "qa_definition": "Define a word.", "qa_stock": "Get a stock price.",
    "recommendation_events": "Find events.", "recommendation_locations": "Find places nearby.",
    "recommendation_movies": "Recommend movies.", "takeaway_order": "Order takeaway food.",
    "takeaway_query": "Ask about takeaway food.", "transport_query": "Look up transport or directions.",
    "transport_taxi": "Book a taxi.", "transport_ticket": "Book a travel ticket.",
    "transport_traffic": "Check the traffic.",
    "weather_query": "Get the weather."}
DATA_DISTRACTORS = {"calculate", "convert_units", "generate_password", "roll_dice", "run_python", "delete_file",
                    "query_database", "track_parcel", "log_workout", "transfer_money", "lock_door", "print_document"}


def snake(name):
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


@lru_cache(maxsize=2)
def commands(data):
    """(rows, how often each intent has each slot) of the two sets of voice commands."""
    kept, counts = [], {}
    for folder, name in (("snips-nlu", "snips"), ("nlu-evaluation-home", "nlu_home")):
        for row in rows(part(data / folder, name)):
            intent, text, found = row["intent"], row["text"].strip(), row["slots"]
            if intent.startswith("general_") or intent in LEFT_OUT or not found or len(text) > 120:
                continue
            if all(isinstance(value, str) and value.strip() and value in text for value in found.values()):
                kept.append({"intent": intent, "text": text, "slots": found})
                counts.setdefault(intent, Counter()).update(found.keys())
    return kept, counts


def plain(text):
    """The words alone: the same command in other dress is the same command."""
    return " ".join(re.findall(r"[a-z0-9]+", text.lower()))


@lru_cache(maxsize=4)
def command_rows(data, held_out):
    """Commands to train on, or those that every run of the shipped model held out: the first told rows apart by their
    text as it stands, so that a held-out row has to be held out by both rules."""

    def is_held_out(row):
        return share("row", plain(row["text"])) < HELD_OUT_ROWS

    if not held_out:
        return [row for row in commands(data)[0] if not is_held_out(row)]
    return [row for row in commands(data)[0] if is_held_out(row) and share("row", row["text"]) < HELD_OUT_ROWS]


def command_tool(rng, data, intent, present):
    """The function of an intent with the slots `present` and some of its other common ones; keys by slot."""
    counts = commands(data)[1][intent]
    swapped = "_".join(reversed(intent.split("_")))
    names = SNIPS_NAMES.get(intent) or HOME_NAMES.get(intent) or [intent, swapped if intent.count("_") == 1 else intent]
    name, camel = styled(rng, rng.choice(names))
    others = [slot for slot, _ in counts.most_common(5) if slot not in present]
    chosen = list(present) + rng.sample(others, min(len(others), rng.randint(0, 2)))
    rng.shuffle(chosen)
    keys = {slot: key_styled(snake(slot), camel) for slot in chosen}
    properties = {}
    for slot in chosen:
        properties[keys[slot]] = {"type": "string", "description": snake(slot).replace("_", " ").capitalize()}
    most = counts.most_common(1)[0][0]
    required = [keys[most]] if most in present else []
    return schema(name, DESCRIPTIONS[intent], properties, required), keys


def command(rng, data, held_out, row=None):
    row = row or rng.choice(command_rows(data, held_out))
    tool, keys = command_tool(rng, data, row["intent"], list(row["slots"]))
    arguments = {keys[slot]: value for slot, value in sorted(row["slots"].items(),
                                                             key=lambda s: row["text"].index(s[1]))}
    return {"tool": tool, "call": {"name": tool["function"]["name"], "arguments": arguments}, "user": row["text"],
            "values": {}, "source": None, "intent": row["intent"]}


# ---------------------------------------------------------------------------------------------------------------------
# Dialogues

# Tools that could serve one another's requests never stand side by side when nothing is meant to fit.
GROUPS = [set(group.split()) for group in (
    "play_music play_genre play_podcast set_channel tell_joke", "switch_light set_light_color switch_device",
    "send_email send_message make_call transfer_money open_ticket",
    "calculate run_python run_command random_number roll_dice",
    "set_timer set_alarm create_reminder create_event list_events add_todo create_note add_grocery log_workout",
    "convert_units convert_currency calculate",
    "get_route search_flights train_times book_taxi book_hotel get_time get_weather",
    "find_restaurant book_table find_nearby find_recipe order_drink add_to_cart add_grocery find_book movie_info",
    "order_status track_parcel",
    "read_file list_files print_document fetch_url write_file delete_file run_command run_python "
    "create_note query_database", "get_balance transfer_money crypto_price get_stock_price convert_currency",
    "country_info get_quote define_word translate_text get_news movie_info find_book team_score get_time get_weather")]
SEEKERS = {"web_search", "fetch_url", "get_news"}
PLAIN = [
    ("hello", "Hello! How can I help you?"),
    ("hi there", "Hi! What can I do for you?"),
    ("good morning", "Good morning! How can I help?"),
    ("good evening", "Good evening! What can I do for you?"),
    ("thank you", "You're welcome!"),
    ("thanks a lot", "You're welcome!"),
    ("how are you", "I am doing well, thank you. How can I help?"),
    ("bye", "Goodbye! Have a nice day."),
    ("who are you", "I am Chimère Nano, a small language model that runs on your own machine."),
    ("what is your name", "My name is Chimère Nano."),
    ("what color is the sky", "On a clear day the sky is blue."),
    ("how many days are in a week", "A week has seven days."),
    ("how many legs does a spider have", "A spider has eight legs."),
    ("what do cows drink", "Cows drink water. Calves drink milk."),
    ("is the sun a star", "Yes, the sun is a star."),
    ("what is the opposite of hot", "The opposite of hot is cold."),
    ("how many months are in a year", "A year has twelve months."),
    ("what do bees make", "Bees make honey."),
    ("is a whale a fish", "No, a whale is a mammal."),
    ("what is ice made of", "Ice is frozen water."),
    ("how many hours are in a day", "A day has 24 hours."),
    ("what comes after Monday", "Tuesday comes after Monday."),
    ("what is a baby dog called", "A baby dog is called a puppy."),
    ("which is bigger, a mouse or an elephant", "An elephant is bigger than a mouse."),
    ("you are great", "Thank you, that is kind!"),
    ("what do plants need to grow", "Plants need water, light and air."),
    ("can birds fly", "Most birds can fly, but some, like penguins, cannot."),
    ("I am happy today", "I am glad to hear that!"),
    ("I am tired", "I am sorry to hear that. A short rest may help."),
    ("never mind", "All right. Tell me when you need something."),
    ("ok", "Good. Is there anything else?"),
    ("what sound does a cat make", "A cat says meow."),
    ("how many minutes are in an hour", "An hour has 60 minutes."),
    ("what is the opposite of up", "The opposite of up is down."),
    ("what is a baby cat called", "A baby cat is called a kitten."),
    ("do fish live in water", "Yes, fish live in water."),
    ("what color is grass", "Grass is green."),
    ("what color is snow", "Snow is white."),
    ("is fire hot", "Yes, fire is hot."),
    ("how many wheels does a car have", "Most cars have four wheels."),
    ("what do you call frozen rain", "Frozen rain can be hail or sleet."),
    ("which season comes after winter", "Spring comes after winter."),
    ("what is a group of wolves called", "A group of wolves is called a pack."),
    ("are you a human", "No, I am a small language model."),
    ("what can you do", "I can answer simple questions and use the tools I am given."),
    ("good night", "Good night! Sleep well."),
    ("how many legs does a dog have", "A dog has four legs."),
    ("what do we use to see", "We see with our eyes."),
    ("what month comes after May", "June comes after May."),
    ("is the moon made of cheese", "No, the moon is made of rock."),
    ("that is all for now", "All right. Have a nice day!"),
    ("I am bored", "You could read a book or go for a walk."),
    ("what is a triangle", "A triangle is a shape with three sides."),
    ("how many sides does a square have", "A square has four sides."),
    ("what do we call the home of a bird", "The home of a bird is called a nest."),
    ("you made a mistake", "I am sorry about that. I can be wrong."),
    ("can you help me", "Of course. What do you need?"),
    ("I have a question", "Go ahead, I am listening."),
    ("what is water made of", "Water is made of hydrogen and oxygen."),
    ("where does milk come from", "Most milk comes from cows."),
]
NO_TOOL = [
    "I do not have a tool for that.",
    "Sorry, I do not have a tool for that.",
    "I am sorry, I cannot do that with my tools.",
    "None of my tools can do that.",
    "Sorry, I have no tool that can do this.",
]


def primary(tool):
    return tool["names"][0]


def apart(first, second):
    return primary(first) != primary(second) and not any(primary(first) in g and primary(second) in g for g in GROUPS)


def distractors(rng, data, request, count):
    """Tools of other families, with names unlike the one to call."""
    found, names, descriptions = [], {request["call"]["name"].lower()}, set()
    while len(found) < count:
        if request.get("pair"):
            near = rng.random() < 0.6
            made = novel_distractor(rng, request["pair"]) if near else instance(rng, rng.choice(tools()))[0]
        elif request.get("intent"):
            other = rng.choice([i for i in commands(data)[1] if i.split("_")[0] not in request["intent"]])
            # An intent of one set may serve a request of the other, so only those of snips stand side by side.
            near = request["intent"] not in SNIPS_NAMES or other not in SNIPS_NAMES
            pick = rng.random()
            if pick < 0.4:
                made = novel_distractor(rng)
            elif pick < 0.7 or near:
                made = instance(rng, rng.choice([t for t in tools() if primary(t) in DATA_DISTRACTORS]))[0]
            else:
                made = command_tool(rng, data, other, [commands(data)[1][other].most_common(1)[0][0]])[0]
        else:
            other = rng.choice(tools())
            if primary(other) == primary(request["source"]) or primary(other) in SEEKERS:
                continue
            if not apart(other, request["source"]) and rng.random() < 0.7:
                continue
            made = instance(rng, other)[0] if rng.random() < 0.8 else novel_distractor(rng)
        name = made["function"]["name"]
        keys = frozenset(property["description"] for property in made["function"]["parameters"]["properties"].values())
        twin = keys in descriptions and not request.get("pair")
        if name.lower() not in names and not twin:
            names.add(name.lower())
            descriptions.add(keys)
            found.append(made)
    return found


def offered(rng, data, request):
    listed = [request["tool"]] + distractors(rng, data, request, rng.choices([0, 1, 2, 3], [25, 30, 28, 17])[0])
    rng.shuffle(listed)
    return listed


def request_of(rng, data, held_out, with_data=True):
    """A request that one tool serves: novel 35 %, a voice command 30 % of the single calls, else an authored tool."""
    pick = rng.random()
    if pick < 0.35 and not held_out:
        return novel(rng)
    if with_data and pick < 0.65:
        return command(rng, data, held_out)
    while True:
        request = authored(rng, rng.choice(tools()), held_out)
        if request:
            return request


def weighed(tools, name, want=""):
    """The tools one by one, up to the one that fits: a model of this size cannot compare them all at once.

    Each line has the name before what the tool does and takes, as the offer has it, so that all are copied in their order; the name of the
    call is then the one that was written last. Parameters are named because requests often share a word with them alone.
    """
    lines = [want] if want else []
    for function in (tool["function"] for tool in tools):
        does = " ".join(function["description"].split(". ")[0].rstrip(".").split()[:14])
        keys = ", ".join(list(function["parameters"].get("properties", {}))[:3])
        lines.append(f"{function['name']}: {does}{f' ({keys})' if keys else ''}. {'Yes' if function['name'] == name else 'No'}.")
        if function["name"] == name:
            return "\n".join(lines)
    return "\n".join(lines + ["None fits."])


def answer(thinking, content, reasoning, calls=None):
    message = {"role": "assistant", "content": content}
    if thinking:
        message["reasoning_content"] = reasoning
    if calls:
        message["tool_calls"] = calls
    return message


def with_result(rng, request):
    """The tool message and the final answer of a request; the '#' slots of both agree."""
    if request.get("done"):
        noun = request["pair"][1]
        result, final = rng.choice([
            ('{"status": "ok"}', f"It is done: the {noun} is taken care of."),
            ('{"status": "done"}', f"Done! The {noun} is taken care of."),
            ('{"error": "not found"}', f"Sorry, the {noun} was not found."),
            ('{"ok": true}', "That worked."), ('{"ok": false}', "Sorry, that did not work."),
            ('{"error": "access denied"}', f"Sorry, I have no access to the {noun}.")])
        return result, final
    result, final = request["source"]["result"]
    values = dict(request["values"])
    for kind in dict.fromkeys(re.findall(r"\{#([\w-]+)\}", result)):
        values["#" + kind] = draw(rng, kind)
    if rng.random() < 0.08:
        return '{"error": "service not available"}', "Sorry, the service is not available right now."
    final = fill(final, values)
    return fill(result, {key: json.dumps(str(value), ensure_ascii=False)[1:-1] for key, value in values.items()}), \
        final[:1].upper() + final[1:]


def no_fit(rng, thinking, held_out):
    source = rng.choice(tools())
    if rng.random() < 0.55:
        question, reply = rng.choice(PLAIN)
        others = [tool for tool in tools() if primary(tool) not in SEEKERS | {"calculate", "define_word"}]
        user, why = said(rng, question), rng.choice(["No tool is needed here. I answer directly.",
                                                     "This needs no tool.",
                                                     "I can answer this in plain words."])
    else:
        request = authored(rng, source, held_out)
        while not request:
            # A tool with few fixed utterances may have none on this side.
            source = rng.choice(tools())
            request = authored(rng, source, held_out)
        user, reply = request["user"], rng.choice(NO_TOOL)
        others = [tool for tool in tools() if apart(tool, source) and primary(tool) not in SEEKERS]
        why = None
    listed, names = [], set()
    for _ in range(rng.randint(1, 4)):
        made = instance(rng, rng.choice(others))[0] if rng.random() < 0.65 else novel_distractor(rng)
        if made["function"]["name"].lower() not in names:
            names.add(made["function"]["name"].lower())
            listed.append(made)
    return listed, [{"role": "user", "content": user}, answer(thinking, reply, why or weighed(listed, None))]


def missing(rng, data, thinking):
    if rng.random() < 0.35:
        request = novel(rng)
        text, question = request["ask"]
    else:
        source = rng.choice([tool for tool in tools() if tool["missing"]])
        request = None
        while not request:
            request = authored(rng, source, False)
        texts, question = source["missing"]
        text = rng.choice(texts.split("|"))
    name = request["call"]["name"]
    listed = offered(rng, data, request)
    why = weighed(listed, name) + " But a value is missing. I ask for it."
    return listed, [{"role": "user", "content": said(rng, text)}, answer(thinking, question, why)]


def wish(rng, held_out):
    """An authored request that starts with its verb, so that two of them join into one sentence."""
    while True:
        request = authored(rng, rng.choice(tools()), held_out)
        if request and request["text"].split(" ")[0] in VERB_STARTS and not re.search(r"[?:,]", request["text"]):
            return request


def two_calls(rng, thinking, held_out):
    first = second = wish(rng, held_out)
    while second["source"] is first["source"]:
        second = wish(rng, held_out)
    listed = [first["tool"], second["tool"]]
    rng.shuffle(listed)
    user = said(rng, first["text"] + rng.choice([" and ", ", then ", " and then ", " and also "]) + second["text"])
    why = f"There are two wishes. First {first['call']['name']}, then {second['call']['name']}."
    return listed, [{"role": "user", "content": user}, answer(thinking, "", why, [first["call"], second["call"]])]


def dialogue(rng, data, held_out):
    thinking = rng.random() < 0.55
    kind = rng.choices(["single", "result", "none", "missing", "two"], [60, 15, 17, 5, 3])[0]
    if held_out and kind == "missing":
        kind = "single"
    if kind in ("single", "result"):
        request = request_of(rng, data, held_out, kind == "single")
        while kind == "result" and not (request.get("done") or request["source"]["result"]):
            request = request_of(rng, data, held_out, False)
        listed = offered(rng, data, request)
        messages = [{"role": "user", "content": request["user"]},
                    answer(thinking, "", weighed(listed, request["call"]["name"]), [request["call"]])]
        if kind == "result":
            result, final = with_result(rng, request)
            why = rng.choice(["The tool has answered. I tell the user.", "I have the result and pass it on.",
                              f"The result of {request['call']['name']} is there. I report it.", "Now I can answer."])
            messages += [{"role": "tool", "content": result}, answer(thinking, final, why)]
    elif kind == "none":
        listed, messages = no_fit(rng, thinking, held_out)
    elif kind == "missing":
        listed, messages = missing(rng, data, thinking)
    else:
        listed, messages = two_calls(rng, thinking, held_out)
    if len({tool["function"]["name"].lower() for tool in listed}) < len(listed):
        return dialogue(rng, data, held_out)
    if rng.random() < 0.15:
        messages.insert(0, {"role": "system", "content": rng.choice(SYSTEMS)})
    return {"messages": messages, "tools": listed, "thinking": thinking, "domain": "tools"}


def dialogues(rng, data, split, count):
    """`count` dialogues of the split "train" or "held_out", whose requests never meet."""
    for _ in range(count):
        yield dialogue(rng, Path(data), split == "held_out")
