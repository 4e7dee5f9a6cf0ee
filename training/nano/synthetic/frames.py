"""Made-up facts: what can be said of people, towns, things and events, asked and answered in several wordings.

One bank serves three skills: a fact in a note, in the result of a tool, and as a field of a JSON answer. About an eighth of the
kinds of fact are kept for the tests, so that a test never asks for a relation that was trained.
"""

import dataclasses
import functools
from pathlib import Path

from . import common, toolcalls

BANK = Path(__file__).parent / "banks" / "frames.txt"
MORE = Path(__file__).parent / "banks" / "frames_more.txt"
WORDS = {
    "job": "teacher|nurse|doctor|baker|farmer|pilot|driver|cook|painter|writer|gardener|carpenter|waiter|singer|plumber|judge|"
           "dentist|engineer|tailor|miller|fisherman|librarian|clerk|photographer|guide|electrician|butcher|actor",
    "petname": "Luna|Rex|Milo|Bella|Max|Coco|Daisy|Simba|Nala|Rocky|Pepper|Lucky|Biscuit|Fritz|Oreo|Tiger|Molly|Bruno|Ginger|Socks|"
               "Poppy|Ziggy|Hazel|Mango|Pixel|Waffles|Shadow|Toffee|Bandit|Olive|Rusty|Pumpkin|Domino|Truffle|Noodle|Comet",
    "allergen": "peanuts|eggs|milk|strawberries|fish|pollen|dust|nuts|shrimp|soy|wheat|honey|kiwis|tomatoes|celery|mustard",
    "hobby": "fishing|painting|hiking|knitting|swimming|playing chess|baking|reading|gardening|singing|dancing|cycling|climbing|"
             "collecting stamps|repairing clocks|taking photos|sailing|rowing|skating|playing cards|building kites|running",
    "cars": "red van|old truck|blue bus|small electric car|white pickup|green jeep|silver sports car|yellow taxi|black limousine|"
            "motorbike|camper|brown tractor",
    "instrument": "piano|violin|flute|guitar|drums|trumpet|cello|harp|accordion|clarinet|banjo|saxophone|organ|tuba|oboe",
    "subject": "history|maths|biology|music|art|botany|geography|chemistry|physics|French|German|Latin|sport|cooking|law|pottery",
    "item": "umbrella|blue scarf|wallet|wooden spoon|lamp|red hat|torch|basket|ladder|clock|silver ring|notebook|suitcase|kettle|"
            "blanket|compass|candle|pair of gloves|map|bottle of juice|cake|guitar|chair|bicycle|tent|mirror|green bag|radio|book",
    "goods": "candles|cheese|carpets|clocks|pottery|knives|bicycles|chocolate|apples|honey|boots|hats|violins|lamps|glass|tea|"
             "silk|mirrors|pencils|toys|bells|soap|baskets|boats|bread|kites|wine|windows|umbrellas|chairs|salt",
    "color": "red|blue|green|yellow|black|white|purple|orange|brown|grey|pink|silver|golden|turquoise|dark blue|light green",
    "spot": "behind the door|under the bed|on the top shelf|in the cellar|in the blue box|next to the window|in the garage|on the desk|"
            "in the kitchen|behind the mirror|under the stairs|in the drawer|on the balcony|in the shed|beside the stove|in the attic|"
            "in the left cupboard|under the blanket|in the car|by the gate|on the roof|in locker nine",
    "material": "wood|steel|glass|plastic|wool|leather|stone|paper|cotton|copper|bamboo|clay|silver|cork|marble|rubber",
    "part": "handle|screen|wheel|battery|lid|motor|button|chain|spring|cable|lens|hinge|switch|belt|filter|plug",
    "petfood": "carrots|fish|rice and chicken|dry food|lettuce|seeds|hay|minced meat|apples|tuna|oats|worms|boiled eggs|grass",
    "fear": "thunder|the vacuum cleaner|cats|water|fireworks|loud music|the postman|bicycles|the dark|balloons|geese|umbrellas",
    "topic": "a lost island|the sea|two brothers|a winter in the mountains|a bank robbery|honey bees|an old sailor|a magic lamp|"
             "trains|the moon|a strange neighbour|cooking|a war between kings|a girl who draws maps|the desert|a talking fox",
    "venue": "the town hall|the library|room 12|the garden|the old barn|the school|the blue hall|the park|the museum|the church|"
             "the sports hall|the cafe at the corner|the office on the second floor|the theatre",
    "secret": "maple-42|blue7river|sunny88|tiger-lily|north-star-5|coffee2go|h4ppyd4y|winter-rose|ninebirds|ocean31|greenfrog6|"
              "lemon-tree-3|silver77|quiet-owl|redbrick9",
    "traffic": "heavy|light|slow|terrible|calm|chaotic|quiet|dense|dangerous", "feeling": "cheerful|tense|calm|gloomy|excited|sleepy|happy|angry|nervous|tired|bored|proud", "air": "clean|dusty|fresh|smoky|damp|salty|dry|stale|sweet",
    "water": "clean|salty|muddy|cold|warm|brown|hard|soft|green", "taste": "sweet|sour|spicy|salty|bitter|mild|fruity|smoky|bland|creamy", "state": "broken|new|rusty|dirty|perfect|scratched|clean|dusty|bent|spotless|worn",
    "fuel": "diesel|gas|wood|batteries|petrol|coal|steam|sunlight|oil|alcohol", "trick": "roll over|shake hands|open doors|jump through a ring|dance|sing|fetch the paper|count to three|sit still|ride a ball|play dead",
    "sky": "sunny|cloudy|rainy|windy|foggy|snowy|stormy|clear|hazy",
}
THINGS = """kettle|garden chair|desk lamp|blue vase|old radio|tent|bicycle|coffee machine|winter coat|camera|ladder|wooden table|red
carpet|toolbox|lawn mower|spare key|projector|first aid kit|printer|grey sofa|wall clock|fan heater|picnic basket|violin case|drill|
fishing rod|mixer|sewing machine|telephone|microscope|guitar|fire extinguisher|suitcase|rain barrel|globe|bread knife""".replace("\n", " ").split("|")
EVENTS = """summer party|budget meeting|book club|choir practice|school trip|chess evening|cooking class|flea market|garden day|team lunch|
parents' evening|yoga course|film night|first aid course|spring cleaning|dance class|board meeting|science fair|quiz night|open day|
photo walk|job interview|swimming lesson|farewell party|harvest festival|staff training|poetry reading""".replace("\n", "").split("|")
DISHES = """pea soup|apple cake|fish stew|rice pudding|onion pie|bean salad|lamb curry|potato bake|carrot bread|plum jam|noodle soup|
mushroom sauce|cheese tart|chicken stew|berry crumble|corn bread|lentil soup|leek pie""".replace("\n", "").split("|")
BUILDINGS = ["tower", "bridge", "castle", "lighthouse", "library", "windmill", "town hall", "opera house", "station", "mill", "school"]
NETWORKS = ["guest network", "office wifi", "kitchen tablet", "red laptop", "archive", "alarm box", "shared folder", "old phone"]
PETS = "dog|cat|hamster|rabbit|parrot|horse|goldfish|turtle|mouse|snake|canary|pony|goat|duck".split("|")


@dataclasses.dataclass(frozen=True)
class Frame:
    kind: str
    keys: tuple
    value: str
    statements: tuple
    questions: tuple
    answers: tuple


@dataclasses.dataclass
class Fact:
    frame: Frame
    entity: str
    value: str
    statement: str
    question: str
    answer: str


def parts(text):
    return tuple(part.strip() for part in text.split(" / "))


def read(bank):
    for line in bank.read_text(encoding="utf8").splitlines():
        if line.strip() and not line.startswith("#"):
            head, statements, questions, answers = line.split(" | ")
            kind, keys, value = (part.strip() for part in head.split(" ; "))
            yield Frame(kind, tuple(keys.split(",")), value, parts(statements), parts(questions), parts(answers))


@functools.cache
def frames(held_out):
    return [frame for frame in read(BANK) if common.held_out("frame", frame.kind, ",".join(frame.keys)) == held_out]


@functools.cache
def more_frames():
    """{kind: relations} of the bank that no test reads."""
    found = {}
    for frame in read(MORE):
        found.setdefault(frame.kind, []).append(frame)
    return found


def draw_value(rng, kind):
    if kind in WORDS:
        return rng.choice(WORDS[kind].split("|"))
    if kind == "place":
        return common.place(rng)
    if kind == "invented":
        return common.invented(rng)
    if kind == "name":
        return common.person(rng)
    if kind == "year":
        return str(rng.randint(1400, 2024))
    if kind == "weekday":
        return rng.choice(toolcalls.DAYS)
    if kind == "day":
        return f"{rng.choice(toolcalls.MONTHS)} {rng.randint(1, 28)}"
    if kind == "phone":
        return "-".join(str(rng.randint(10, 999)) for _ in range(rng.choice([2, 2, 3])))
    if kind == "mail":
        return f"{common.syllable(rng)}{rng.randint(1, 99) if rng.random() < 0.4 else ''}@{common.syllable(rng)}.{rng.choice(['com', 'org', 'net'])}"
    if kind == "money":
        return f"{rng.randint(2, 900)} {rng.choice(['dollars', 'euros', 'euros', 'pounds', 'francs'])}"
    if kind == "code":
        return toolcalls.draw(rng, "code8")
    if kind == "room":
        return rng.choice([str(rng.randint(1, 480)), toolcalls.draw(rng, "code8")[:4]])
    return toolcalls.draw(rng, kind)


def draw_entity(rng, kind):
    if kind == "person":
        roll = rng.random()
        if roll < 0.65:
            return common.person(rng)
        title = rng.choice(["Doctor", "Professor", "Captain", "Mrs", "Mr", "Uncle", "Aunt", "Sister", "Chef", "Judge", "Inspector"])
        return f"{title} {rng.choice(common.FAMILY) if rng.random() < 0.6 else common.invented(rng)}"
    if kind in ("town", "country"):
        return common.place(rng)
    if kind == "thing":
        return rng.choice(THINGS)
    if kind == "company":
        name = common.invented(rng) if rng.random() < 0.5 else rng.choice(common.FAMILY)
        return rng.choice(["{} and Sons", "the {} bakery", "{} Works", "Cafe {}", "the {} museum", "{} Motors", "the {} library", "{} and Co",
                           "the {} hotel", "{} Garden Shop"]).format(name)
    if kind == "event":
        return rng.choice(EVENTS)
    if kind == "vehicle":
        return rng.choice(["the train to {p}", "bus {n}", "the ship {p}", "the ferry to {p}", "tram {n}", "flight {c}", "the night train"]).format(
            p=common.place(rng), n=rng.randint(1, 99), c=toolcalls.draw(rng, "code8"))
    if kind == "animal":
        return rng.choice(WORDS["petname"].split("|"))
    if kind == "wifi":
        return rng.choice(NETWORKS)
    if kind == "recipe":
        return rng.choice(DISHES)
    if kind == "book":
        return rng.choice(['"The {}"', "The {} Story", '"{}"', "The Road to {}"]).format(common.invented(rng))
    if kind == "building":
        return f"{common.place(rng)} {rng.choice(BUILDINGS)}"
    raise ValueError(f"unknown kind of entity {kind!r}")


def put(text, entity, value, pet):
    text = text.replace("{e}", entity).replace("{av}", value if value.startswith(("pair", "bottle")) and False else common.an(value))
    text = text.replace("{v}", value).replace("{pet}", pet)
    return common.cap(text.replace("the the ", "the "))


OPEN_SHARE = 0.55


def fact(rng, held_out=False, entity=None, frame=None):
    """A fact of the bank; in training often one of the open kinds of relations.py instead, of which there are very many."""
    if not held_out and entity is None and frame is None and rng.random() < OPEN_SHARE:
        from . import relations
        return relations.fact(rng)
    frame = frame or rng.choice(frames(held_out))
    entity = entity or draw_entity(rng, frame.kind)
    value, pet = draw_value(rng, frame.value), rng.choice(PETS)
    statement, question, answer = (put(rng.choice(texts), entity, value, pet) for texts in (frame.statements, frame.questions, frame.answers))
    return Fact(frame, entity, value, statement, question, answer)


def facts_of(rng, count, held_out=False, one_entity=False):
    """Different facts; of one entity where asked for and where its kind has as many."""
    if not held_out and rng.random() < OPEN_SHARE:
        from . import relations
        return relations.facts_of(rng, count, one_entity)
    found, seen = [], set()
    kind, entity = None, None
    if one_entity:
        kind = rng.choice(["person", "person", "town", "thing", "company", "event", "vehicle"])
        entity = draw_entity(rng, kind)
    for _ in range(50):
        if len(found) == count:
            break
        # A test has distractors of the trained kinds, too; the fact that is asked for comes first.
        pool = frames(held_out and not found)
        pool = [f for f in pool if not kind or f.kind == kind] or ([] if found else frames(held_out))
        pool = [f for f in pool if (f.kind, f.keys, entity) not in seen] if one_entity else pool
        if not pool:
            break
        frame = rng.choice(pool)
        if one_entity and frame.kind != kind:
            kind, entity = frame.kind, draw_entity(rng, frame.kind)
        new = fact(rng, held_out, entity, frame)
        mark = (frame.kind, frame.keys, new.entity)
        if mark not in seen and not (new.value in {f.value for f in found}):
            seen.add(mark)
            found.append(new)
    return found
