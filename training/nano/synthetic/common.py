"""What the newer generators share: made-up names, ways of typing, a dialogue put together, and what is held out.

Held out means held out by construction: every bank is a list, and a fixed hash of the entry says on which side it stands.
Training never sees an entry of the other side, whatever the seed.
"""

from nano import chatml
from nano.corpus import share

THINKING_SHARE = 0.5
SYSTEM_SHARE = 0.15
SYSTEMS = ["You are a helpful assistant.", "Answer briefly.", "You are Chimere Nano, a small assistant.",
           "Be friendly and clear.", "Keep your answers short.", "You help people with small tasks.",
           "Use plain English.", "You are a careful assistant.", "Answer the user.", "Be concise."]
FIRST = """Anna Ben Clara David Emma Felix Grace Hugo Ida Jack Kate Leo Maria Nina Oscar Paul Rosa Sam Tom Vera Will Zoe Amir
Bruno Carla Dina Elif Farid Gita Hana Ivan Jana Kofi Lena Mona Nils Olga Pia Quinn Ravi Sara Tariq Uma Viktor Wanda Yara
Bella Colin Doris Erik Fiona Gustav Helen Igor Julia Karl Laura Marco Nadia Otto Petra Rita Simon Tina Ursula Walter Xenia
Yusuf Alice Boris Cora Dennis Eva Frank Gloria Harry Irene Joel Kira Luis Mila Noah Olive Peter Ruth Stefan Thea Victor""".split()
FAMILY = """Miller Stone Berg Costa Duval Evans Fuchs Garcia Hill Ito Jansen Klein Lopez Moreau Novak Olsen Patel Quist Rossi
Silva Turner Ueda Vogel Weber Young Zander Banner Clay Dawson Ellis Forde Grant Hobbs Irwin Keller Lang Marsh North Parker
Reed Shaw Tate Wells Baker Carver Frost Hale Kemp Lund""".split()
ONSETS = "b br c ch d dr f fl g gl gr h j k kl l m n p pr r s sh sk st t th tr v w y z bl cr fr kr".split()
VOWELS = "a e i o u a e o ai ea oo ou".split()
CODAS = "l n r s t m nd rn lm sk x th rd n r l".split() + ["", "", ""]
PLACE_ENDS = "ia ton ville burg mark land ford haven field stead mouth wick by dale port ova ara heim".split()


def held_out(*parts, portion=0.12):
    """Whether an entry of a bank is kept for the tests."""
    return share("bank", *map(str, parts)) < portion


def side(entries, is_held_out, name, portion=0.12):
    """The entries of a bank on one side; both sides must have some."""
    chosen = [e for e in entries if held_out(name, e, portion=portion) == is_held_out]
    if not chosen:
        raise ValueError(f"bank {name} has no entry with held out {is_held_out}")
    return chosen


def syllable(rng):
    return rng.choice(ONSETS) + rng.choice(VOWELS) + rng.choice(CODAS)


def invented(rng, ends=None):
    """A name that means nothing, so that nobody can know it except from the text."""
    word = syllable(rng) + (rng.choice(ends) if ends else syllable(rng) if rng.random() < 0.6 else "")
    return word.capitalize()


def place(rng):
    return invented(rng, PLACE_ENDS)


def person(rng):
    roll = rng.random()
    first = rng.choice(FIRST) if roll < 0.7 else invented(rng)
    if rng.random() < 0.3:
        return f"{first} {rng.choice(FAMILY) if rng.random() < 0.6 else invented(rng)}"
    return first


def typed(rng, text):
    """A line the way different people type it."""
    roll = rng.random()
    if roll < 0.08:
        text = text[:1].lower() + text[1:]
    elif roll < 0.14:
        text = text.lower()
    elif roll < 0.19 and text[-1:] in "?.":
        text = text[:-1]
    elif roll < 0.23 and text[-1:] == ".":
        text = text[:-1] + rng.choice(["!", " please.", ", please."])
    return text


def cap(text):
    return text[:1].upper() + text[1:]


def an(noun):
    return ("an " if noun[:1].lower() in "aeiou" else "a ") + noun


def listed(items):
    items = list(items)
    return items[0] if len(items) == 1 else ", ".join(items[:-1]) + " and " + items[-1]


def turns_to_dialogue(rng, turns, domain, thought=None, system=None, thinking=None):
    """A dialogue of (question, answer) turns; `thought` belongs to the last answer. One without a thought never thinks."""
    if thinking is None:
        thinking = bool(thought) and rng.random() < THINKING_SHARE
    messages = []
    if system or rng.random() < SYSTEM_SHARE:
        messages.append({"role": "system", "content": system or rng.choice(SYSTEMS)})
    for question, answer in turns:
        messages += [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
    if thinking:
        messages[-1]["reasoning_content"] = thought
    return chatml.check({"messages": messages, "thinking": bool(thinking), "domain": domain})
