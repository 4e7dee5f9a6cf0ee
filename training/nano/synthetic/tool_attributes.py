"""Tools that tell, note, lend or suggest something about a thing, for the choice among several: what request and tool share is a word, in the name, in the
description or as a parameter.

The actions of tool_words.py are orders. Here people ask or tell ("is the barn 7 damp"), and the tool that fits is the one for the same thing and the same
side of it; beside it stand tools for the same thing and another side, and for another thing and the same side.
"""

from . import common, toolcalls

# side: words for the name | descriptions | requests. {n} the thing, {ns} several, {an} with its article, {h} which one, {k} a number, {v} a person, {w} a town, {d} a day.
SIDES = [tuple(part.split("/") if i != 2 else part.split(" ; ") for i, part in enumerate(line.split(" | "))) for line in """damp/moisture/humidity | Tells how damp {an} is/Moisture of {an} | is the {n} {h} damp ; is it damp in the {n} {h} ; does the {n} {h} need drying
height/how_tall/tallness | Tells how tall {an} is/Height of {an} | is the {n} {h} tall ; how tall is the {n} {h} ; how many metres has the {n} {h}
age/how_old/years | Tells how old {an} is/Age of {an} | is the {n} {h} old ; from which year is the {n} {h} ; how many years has the {n} {h} seen
temperature/heat/how_hot | Measures how hot {an} is/Degrees of {an} | is the {n} {h} too hot ; can I touch the {n} {h} ; how many degrees has the {n} {h}
noise/loudness/sound_level | Measures how loud {an} is/Noise of {an} | the {n} {h} is so loud, how loud exactly ; can one sleep next to the {n} {h} ; is the {n} {h} noisy
fill_level/how_full/contents | Says how full {an} is/What is left in {an} | is anything left in the {n} {h} ; how full is the {n} {h} ; must I fill up the {n} {h}
opening/hours/open_times | Says when {an} is open/Hours of {an} | can I still get into the {n} {h} ; how late does the {n} {h} close ; is the {n} {h} open {d}
risk/danger/hazard | Says how risky {an} is/Danger of {an} | is it safe to go near the {n} {h} ; must I be afraid of the {n} {h} ; is the {n} {h} a danger
depth/how_deep | Tells how deep {an} is/Depth of {an} | is the {n} {h} deep ; can I stand in the {n} {h} ; how many metres down is the {n} {h}
speed/pace/how_fast | Measures how fast {an} is/Speed of {an} | is the {n} {h} quick ; how fast does the {n} {h} go ; does the {n} {h} break the limit
taste/flavour | Describes how {an} tastes/Taste of {an} | is the {n} {h} sweet or sour ; what does the {n} {h} taste like ; would I like the {n} {h}
readiness/ready_when/finished | Says when {an} is ready/The day on which {an} is done | is the {n} {h} done yet ; how long must I wait for the {n} {h} ; when can I have the {n} {h}
material/made_of | Tells what {an} is made of/Material of {an} | is the {n} {h} wood or metal ; out of what did they make the {n} {h} ; does the {n} {h} rust
story/background/legend | Explains where {an} comes from/Background of {an} | explain the {n} {h} to me ; I would like to hear more about the {n} {h} ; why is the {n} {h} famous
staff/crew/people_of | Shows who works at {an}/People of {an} | who looks after the {n} {h} ; who works at the {n} {h} ; whom do I ask about the {n} {h}
timetable/program/plan_of | Shows what happens at {an}/Program of {an} | what is on at the {n} {h} {d} ; does anything happen at the {n} {h} {d} ; is there something at the {n} {h} {d}
space/room_in/capacity | Says how much fits into {an}/Capacity of {an} | do {k} people fit into the {n} {h} ; is there room for {k} in the {n} {h} ; would {k} be too many for the {n} {h}
rules/allowed/permitted | Tells what is allowed at {an}/Rules of {an} | may I smoke at the {n} {h} ; are dogs welcome at the {n} {h} ; what is forbidden at the {n} {h}
season/best_time | Says when {ns} are best/Season of {ns} | when do I get the best {ns} ; is it too early for {ns} {d} ; do {ns} make sense {d}
warning/alarm | Warns of {ns} near a town/Alarm for {ns} | are there {ns} near {w} ; must {w} expect {ns} {d} ; do people in {w} fear {ns}
advice/tip_for | Suggests what to do with {an}/Advice on {an} | what shall I do with the {n} {h} ; I have the {n} {h} and no idea ; help me with the {n} {h}
partner/goes_with/match_for | Suggests what suits {an}/What goes with {an} | what would suit the {n} {h} ; which color goes with the {n} {h} ; what do people take together with the {n} {h}
logbook/note_on/entry | Writes down what was seen at {an}/Entry about {an} | the {n} {h} looks fine, write it down ; I have been at the {n} {h}, all good ; put into the book that the {n} {h} is in order
yield/harvested/output | Notes how much {an} gave/Output of {an} | the {n} {h} gave {k} today ; {k} came out of the {n} {h} ; write {k} for the {n} {h}
exchange/give_to_town/outside_loan | Gives {an} to another town for a while/Loan of {an} to a town | {w} asks for the {n} {h} ; the {n} {h} should go to {w} for a while ; let {w} use the {n} {h}
trial/try_out/fitting_of | Arranges a day on which somebody tries {an}/Trial of {an} | {v} would like to try the {n} {h} {d} ; let {v} test the {n} {h} {d} ; {d} {v} comes for the {n} {h}
sleep_place/overnight/bed_in | Reserves a night in {an}/Nights in {an} | {k} nights in the {n} {h}, please ; we stay in the {n} {h} for {k} nights ; is the {n} {h} free for {k} nights
tour/visit/walk_through | Shows a group {an}/A tour of {an} | {k} visitors for the {n} {h} ; show the {n} {h} to {k} people ; {k} of us are curious about the {n} {h}
label/lettering/drawing_of | Draws a sign for {an}/Sign of {an} | I need a nice sign for the {n} {h} ; draw something for the {n} {h} ; what should the sign of the {n} {h} look like
direction/turn_to/point_at | Turns the camera to {an}/View of {an} | let me see the {n} {h} ; point the camera at the {n} {h} ; I would like a view of the {n} {h}
length/how_long | Measures how long {an} is/Length of {an} | how long is the {n} {h} ; is it far along the {n} {h} ; how many metres does the {n} {h} run
helpers/volunteers | Finds people who help with {an}/Help with {an} | I cannot do the {n} {h} alone ; who could lend a hand with the {n} {h} ; we are too few for the {n} {h}
photo/picture_of | Takes a picture of {an}/Picture of {an} | I would like to have the {n} {h} in my album ; a nice picture of the {n} {h}, please ; photograph the {n} {h}
value/estimate | Estimates what {an} is worth/Worth of {an} | could I get rich with the {n} {h} ; is the {n} {h} worth anything ; what would a dealer say about the {n} {h}
smell/odour | Describes how {an} smells/Smell of {an} | does the {n} {h} stink ; what does the {n} {h} smell of ; my nose does not like the {n} {h}""".splitlines()]
WHICH = [("{v}", ["name", "which"], "s", lambda r: common.invented(r)), ("{v}", ["name", "called"], "s", lambda r: r.choice(common.FIRST)), ("{v}", ["number", "no", "id"], "i", lambda r: str(r.randint(1, 900))), ("{v}", ["id", "code", "key"], "s", lambda r: toolcalls.draw(r, "code8"))]
TYPES = {"s": "string", "i": "integer"}


def tool(rng, side, noun, styled, plural):
    """(schema, request, arguments) for one side of a thing."""
    words, descriptions, requests = side
    request = rng.choice(requests)
    properties, arguments, said = {}, {}, {"n": noun, "ns": plural(noun), "an": common.an(noun)}
    _, keys, kind, draw = rng.choice(WHICH)
    key, value = rng.choice([noun, noun, rng.choice(keys), f"{noun}_{rng.choice(keys)}"]), draw(rng)
    extra = {"k": (["count", "number", "people", "amount", "nights"], "i", lambda: str(rng.randint(2, 60))), "v": (["person", "name", "who"], "s", lambda: rng.choice(common.FIRST)), "w": (["city", "town", "place"], "s", lambda: toolcalls.draw(rng, "city")), "d": (["day", "date", "when"], "s", lambda: toolcalls.draw(rng, "date"))}
    if any("{h}" in r for r in requests):
        properties[key] = {"type": TYPES[kind], "description": rng.choice([f"Which {noun}", common.cap(noun), "Name or number"])}
        said["h"] = value
        if "{h}" in request:
            arguments[key] = int(value) if kind == "i" else value
            # "the Anna barn", "the barn Anna": names may stand before the thing.
            if kind == "s" and value.isalpha() and rng.random() < 0.3:
                request = request.replace("{n} {h}", "{h} {n}")
    for mark, (choices, sort, make) in extra.items():
        if any("{" + mark + "}" in r for r in requests):
            name = next(c for c in rng.sample(choices, len(choices)) if c not in properties)
            properties[name] = {"type": TYPES[sort], "description": common.cap(name)}
            if "{" + mark + "}" in request:
                said[mark] = make()
                plain = said[mark].removeprefix("on ")
                arguments[name] = int(plain) if sort == "i" else plain
    required = [name for name in properties if name in arguments]
    verb = rng.choice(words).split("_")
    name = styled(rng, rng.choice([[noun] + verb, [noun] + verb, verb + [noun], ["get", noun] + verb, verb, ["the", noun] + verb]))
    return toolcalls.schema(name, rng.choice(descriptions).format(**said) + ".", properties, required), " ".join(request.format(**said).split()), arguments


def offer(rng, count, draw_noun, styled, plural, plain):
    """Entries like tool_choice.action_offer: the first is asked for; others are about the same thing, or ask the same of another."""
    side, noun = rng.choice(SIDES), draw_noun()
    entries, names, taken = [], set(), set()
    while len(entries) < count:
        if not entries:
            mine, thing = side, noun
        else:
            roll = rng.random()
            mine = side if roll < 0.25 else rng.choice(SIDES)
            thing = noun if 0.25 <= roll < 0.55 else draw_noun()
        if (mine[0][0], thing) in taken:
            continue
        made = tool(rng, mine, thing, styled, plural)
        if plain(made[0]) not in names:
            names.add(plain(made[0]))
            taken.add((mine[0][0], thing))
            entries.append((*made, (mine[0][0], thing)))
    return entries
