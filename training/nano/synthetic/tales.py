"""Stories and poems on request: picture-book texts of the data folder and a grammar of small tales.

    dialogues(rng, data, split, count)  yields `count` dialogues of the domain "stories"

The split "held_out" tells only the picture books that nano.corpus keeps from training, and nothing of the grammar.
"""

import functools
import pathlib
import re

from nano import corpus
from nano.synthetic import tales_poems as poems

BANKS = pathlib.Path(__file__).parent / "banks"
BOOKS = [("stories-african-storybook", "asp_en"), ("stories-pratham", "pb_en")]
MAX_WORDS = 220
# Subjects of some picture books that a story on request should not bring up.
UNFIT = re.compile(r"\b(pregnan|protection|boyfriend|girlfriend|AIDS|HIV|kill|murder|blood|rape|beer|drunk|"
                   r"gun|beat (her|him)|died|dead|prayed|Jesus)", re.I)
THINKING_SHARE = 0.55
SYSTEM_SHARE = 0.15

SYSTEMS = ["You are a storyteller.", "You tell short stories for children.", "You are a helpful assistant.",
           "Use simple words.", "You are Chimere Nano.", "You write for small children.", "Be creative and kind."]
REQUESTS = ["Tell me a story about {}", "Tell me a short story about {}", "Write a short story about {}",
            "Can you tell me a story about {}?", "Please tell me a story about {}", "I want a story about {}",
            "Write a story for children about {}", "Do you know a story about {}?", "A bedtime story about {}, please",
            "Make up a story about {}", "Could you write a short tale about {}?", "My child wants a story about {}"]
OPEN_REQUESTS = ["Tell me a story", "Tell me a short story", "Write a short story", "Can you tell me a story?",
                 "I want to hear a story", "Tell me a bedtime story", "Please tell me a story"]
TITLE_REQUESTS = ['Tell me the story "{}"', 'Write a story with the title "{}"', 'Tell me a story called "{}"',
                  'Write a short story called "{}"']
CONTINUE_REQUESTS = ["Continue this story: {}", "Finish this story: {}", "What happens next? {}",
    "Go on with this story: {}"]
BOYS = "Ben Tom Leo Max Sam Hugo Kofi Ravi Omar Finn Oscar Jack Tim Paul Nico Otto Bruno Milo Timo Ali Pip Koko".split()
GIRLS = """Anna Mia Lily Rosa Nina Ella Zoe Ida Amina Priya Lucy Clara Mei Ruby Eva Tara Lola Kiki Nala Luna
Fay Molly""".split()
ANIMALS = """rabbit fox bear mouse cat dog duck hedgehog squirrel frog owl turtle elephant lion monkey goat donkey
penguin hippo giraffe zebra pig lamb sparrow beaver otter wolf dragon robot panda koala snail""".split()
ADJECTIVES = "small young little curious clever quiet cheerful gentle lively shy".split()
PLACES = ["in a green forest", "near a blue lake", "on a high hill", "in a small village", "by the sea",
    "in an old mill",
          "at the edge of a big town", "on a farm", "under a tall tree", "beside a wide river",
              "in a valley full of flowers",
          "in a house with a red roof", "on a small island", "behind the mountains"]
HELPERS = ["an old owl", "a friendly goat", "a little bird", "a wise turtle", "a small hedgehog", "an old woman",
    "a kind farmer",
           "a tall giraffe", "a tiny mouse", "a grey donkey", "a young deer", "an old fisherman", "a brown dog"]
OPENINGS = ["Once upon a time there was {a} called {N}. {He} lived {P}.", "{A} called {N} lived {P}.",
            "Long ago, {a} lived {P}. {His} name was {N}.", "{N} was {a}. {He} lived {P}.",
            "There was once {a} named {N}, who lived {P}."]


def pieces(text):
    return [piece.strip() for piece in text.split(" | ")]


@functools.cache
def plots():
    """The blocks of the plot bank: [{part: [choices]}]."""
    found = []
    for line in (BANKS / "tales_plots.txt").read_text(encoding="utf8").splitlines():
        if line.startswith("@"):
            found.append({})
        elif line.strip() and not line.startswith("#"):
            part, _, choices = line.partition(": ")
            found[-1][part] = pieces(choices)
    return found


@functools.cache
def books(data):
    """{split: [(title, text)]} of the short picture books, divided as nano.corpus divides them."""
    found = {"train": [], "held_out": []}
    for folder, name in BOOKS:
        rows = list(corpus.picture_books(name, 1)(data / folder))
        held_out = corpus.held_out_ids(folder, [id for id, _, _ in rows])
        for id, text, _ in rows:
            title, _, story = text.partition("\n\n")
            if is_tale(title, story):
                found["held_out" if id in held_out else "train"].append((title, flowing(story)))
    return found


def flowing(story, pages=3):
    """A picture book as running text: a few of its pages make one paragraph."""
    texts = [" ".join(page.split()) for page in story.split("\n\n") if page.strip()]
    return "\n\n".join(" ".join(texts[i:i + pages]) for i in range(0, len(texts), pages))


def is_tale(title, story):
    """False for books of questions, for parts of series and for what does not end a sentence."""
    return ("(" not in title and len(story.split()) < MAX_WORDS and story.rstrip()[-1] in ".!?\"'"
            and story.count("?") <= 4 and not UNFIT.search(story))


def an(noun):
    return ("an " if noun[0] in "aeiou" else "a ") + noun


def upper_first(text):
    return text[0].upper() + text[1:]


def hero(rng):
    """The slots that stand for the main character."""
    male = rng.random() < 0.5
    kind = rng.choice(ANIMALS) if rng.random() < 0.75 else ("boy" if male else "girl")
    look = rng.choice(ADJECTIVES)
    he, him, his = ("he", "him", "his") if male else ("she", "her", "her")
    return {"N": rng.choice(BOYS if male else GIRLS),
         "K": kind, "he": he, "him": him, "his": his, "He": he.capitalize(),
            "His": his.capitalize(), "aK": an(kind),
            "a": an(f"{look} {kind}"), "A": upper_first(an(f"{look} {kind}"))}


def tale(rng):
    """(topics that fit, the hero's name, moral, sentences) of a story of the grammar."""
    plot = rng.choice(plots())
    slots = hero(rng)
    helper = rng.choice([h for h in HELPERS if not h.endswith(" " + slots["K"])])
    slots |= {"P": rng.choice(PLACES), "X": rng.choice(plot["things"])}
    story = [rng.choice(OPENINGS).format(**slots)]
    for part in ("problem", "first", "second", "rescue", "end"):
        form = rng.choice(plot[part])
        story.append(form.format(**slots, H=upper_first(helper) if form.startswith("{H}") else helper))
    moral = rng.choice(plot["moral"])
    topics = [an(slots["K"]), slots["a"], an(slots["K"]) + " called " + slots["N"]]
    topics += [form.format(**slots) for form in plot["topic"]] + [an(slots["K"]) + " and " + helper]
    return topics, slots, moral, story


def casual(rng, text):
    roll = rng.random()
    if roll < 0.12:
        return text.lower().rstrip("?.!")
    return text + "." if roll < 0.3 and text[-1].isalnum() else text


def told_tale(rng):
    topics, slots, moral, story = tale(rng)
    ends_with_moral = rng.random() < 0.5
    text = " ".join(story[:-1]) + " " + story[-1] + (" " + moral if ends_with_moral else "")
    topic = rng.choice(topics)
    plan = rng.choice([f"I tell a short story about {topic}.",
                       f"The hero is {slots['N']}, {slots['a']}. There is a problem, a helper and a good end.",
                       f"A short story with a clear idea: {moral}"])
    if rng.random() < 0.15:
        asked, plan = rng.choice(OPEN_REQUESTS), f"I choose a hero: {slots['N']}, {slots['a']}. The story ends well."
    else:
        lesson = rng.random() < 0.1
        asked = rng.choice(REQUESTS).format(topic + (rng.choice([" with a moral", " with a lesson"]) if lesson else ""))
        if lesson:
            text = " ".join(story) + " " + moral
    return casual(rng, asked), text, plan


def continued_tale(rng):
    _, slots, moral, story = tale(rng)
    cut = rng.choice([2, 3])
    asked = rng.choice(CONTINUE_REQUESTS).format(" ".join(story[:cut]))
    answer = " ".join(story[cut:] + ([moral] if rng.random() < 0.5 else []))
    return asked, answer, f"The story is about {slots['N']}. I go on from there and bring it to a good end."


def moral_question(rng):
    _, slots, moral, story = tale(rng)
    asked = rng.choice(["What is the moral of this story? {}",
         "What can we learn from this story? {}"]).format(" ".join(story))
    return asked, moral, f"In the story, {slots['N']} has a problem and it ends well. I name the lesson."


def asked_about(rng):
    """A story and a question about it: messages before the question, the question, the answer, the thought."""
    topics, slots, moral, story = tale(rng)
    told = [{"role": "user", "content": casual(rng, rng.choice(REQUESTS).format(rng.choice(topics[:2])))},
            {"role": "assistant", "content": " ".join(story)}]
    name, kind, he = slots["N"], slots["K"], slots["he"]
    asked, answer, plan = rng.choice([
        (f"What was the name of the {kind}?", f"The {kind} was called {name}.", f"The hero of my story is {name}."),
        (f"Where did {name} live?", f"{name} lived {slots['P']}.", f"In the story {name} lives {slots['P']}."),
        (f"Who was {name}?", f"{name} was {slots['a']}.", f"The story says what {he} was: {slots['a']}."),
        ("What is the moral of the story?", moral, f"I think of what {name} learned."),
        (rng.choice(["Thank you!", "Thanks, that was nice.", "I liked that story."]),
         "You are welcome! I am glad you liked the story.", "The user liked the story. I answer kindly.")])
    return told, asked, answer, plan


def topic_of(title):
    """What a book is about, as its title says it: lower case unless it looks like a name."""
    title = re.sub(r"\s+", " ", title).strip(" .!?")
    return title[0].lower() + title[1:] if re.match(r"(The|A|An|My|How|Why|Who|What|When|Where) ", title) else title


def told_book(rng, data, split):
    title, story = rng.choice(books(data)[split])
    topic = topic_of(title)
    form = rng.choice(REQUESTS + TITLE_REQUESTS * 2 if topic.startswith(("the ", "a ", "an ")) else TITLE_REQUESTS)
    asked = form.format(title.strip(" .") if form in TITLE_REQUESTS else topic)
    return asked, story, rng.choice([f'I tell the story "{title}" in simple words.',
         "I tell a short story that fits this."])


def exchange(rng, data, split):
    if split == "held_out":
        return told_book(rng, data, split)
    roll = rng.random()
    if roll < 0.15:
        return told_book(rng, data, split)
    if roll < 0.27:
        return poems.poem(rng)
    if roll < 0.37:
        return continued_tale(rng)
    return moral_question(rng) if roll < 0.42 else told_tale(rng)


def dialogue(rng, data, split):
    told = []
    if split == "train" and rng.random() < 0.1:
        told, asked, answer, plan = asked_about(rng)
    else:
        asked, answer, plan = exchange(rng, data, split)
    message = {"role": "assistant", "content": answer}
    thinking = rng.random() < THINKING_SHARE
    if thinking:
        message["reasoning_content"] = plan
    messages = told + [{"role": "user", "content": asked}, message]
    if rng.random() < SYSTEM_SHARE:
        messages.insert(0, {"role": "system", "content": rng.choice(SYSTEMS)})
    return {"messages": messages, "thinking": thinking, "domain": "stories"}


def dialogues(rng, data, split, count):
    for _ in range(count):
        yield dialogue(rng, pathlib.Path(data), split)
