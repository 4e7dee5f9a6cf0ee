"""Facts about countries: capitals, currencies, languages, dishes, neighbours, population."""

import json
import lzma
import re
import unicodedata

from .fact import Fact, capital

WELL_KNOWN = """Argentina Australia Austria Belgium Brazil Bulgaria Canada Chile China Colombia Croatia Cuba Denmark
Egypt Ethiopia Finland France Germany Greece Hungary Iceland India Indonesia Iran Iraq Ireland Italy Jamaica Japan Kenya
Malaysia Mexico Morocco Nepal Netherlands Nigeria Norway Pakistan Peru Philippines Poland Portugal Romania Russia
Singapore Spain Sweden Switzerland Thailand Turkey Ukraine Vietnam Venezuela""".split() + [
    "United States", "United Kingdom", "New Zealand", "South Korea", "Saudi Arabia", "South Africa", "Czechia",
    "North Korea"]
WITH_THE = {"United States", "United Kingdom", "Netherlands", "Philippines", "Bahamas", "Maldives", "Gambia",
            "United Arab Emirates", "Dominican Republic", "Central African Republic", "Comoros", "Seychelles",
            "Solomon Islands", "Marshall Islands", "Democratic Republic of the Congo", "Republic of the Congo"}
NAMES = {"Turkey (Turkiye)": "Turkey", "Korea, South": "South Korea", "Korea, North": "North Korea", "Burma": "Myanmar",
         "Bahamas, The": "Bahamas", "Gambia, The": "Gambia", "Cote d'Ivoire": "Ivory Coast", "Cabo Verde": "Cape Verde",
         "Congo, Democratic Republic of the": "Democratic Republic of the Congo",
         "Congo, Republic of the": "Republic of the Congo", "Czech Republic": "Czechia", "Holland": "Netherlands",
         "The Gambia": "Gambia", "The Bahamas": "Bahamas", "Russian Federation": "Russia", "Viet Nam": "Vietnam",
         "Macedonia": "North Macedonia", "Swaziland": "Eswatini", "Micronesia, Federated States of":
         "Micronesia", "Fiji Islands": "Fiji", "Libyan Arab Jamahiriya": "Libya", "Holy See (Vatican City State)": ""}
CAPITALS = {"United States": "Washington, D.C.", "Netherlands": "Amsterdam", "South Africa": "Pretoria",
            "Bolivia": "Sucre", "Kazakhstan": "Astana", "Sri Lanka": "", "Israel": "", "Malaysia": "Kuala Lumpur",
            "Tanzania": "Dodoma", "Benin": "Porto-Novo", "Ivory Coast": "Yamoussoukro", "Burundi": "Gitega",
            "Myanmar": "Naypyidaw", "Chile": "Santiago", "Eswatini": "Mbabane", "Nauru": "", "Ukraine": "Kyiv",
            "Equatorial Guinea": "", "Moldova": "Chisinau", "Luxembourg": "Luxembourg City", "Indonesia": "Jakarta",
            "Montenegro": "Podgorica"}
EURO = set("""Austria Belgium Bulgaria Croatia Cyprus Estonia Finland France Germany Greece Ireland Italy Latvia
Lithuania Luxembourg Malta Netherlands Portugal Slovakia Slovenia Spain Monaco Andorra Montenegro
Kosovo""".split()) | {"San Marino"}
CURRENCIES = {
    "United States": "US dollar", "United Kingdom": "pound sterling", "Japan": "yen", "China": "yuan", "India":
    "Indian rupee", "Russia": "Russian ruble", "Switzerland": "Swiss franc", "Sweden": "Swedish krona", "Norway":
    "Norwegian krone", "Denmark": "Danish krone", "Iceland": "Icelandic krona", "Poland": "zloty", "Czechia":
    "Czech koruna", "Hungary": "forint", "Romania": "leu", "Turkey": "Turkish lira", "Ukraine": "hryvnia", "Canada":
    "Canadian dollar", "Australia": "Australian dollar", "New Zealand": "New Zealand dollar", "Mexico": "Mexican peso",
    "Brazil": "real", "Argentina": "Argentine peso", "Chile": "Chilean peso", "Colombia": "Colombian peso",
    "Peru": "sol",
    "South Korea": "won", "North Korea": "North Korean won", "Thailand": "baht", "Vietnam": "dong",
    "Indonesia": "rupiah",
    "Malaysia": "ringgit", "Philippines": "Philippine peso", "Singapore": "Singapore dollar", "Pakistan":
    "Pakistani rupee", "Nepal": "Nepalese rupee", "Bangladesh": "taka", "Saudi Arabia": "riyal", "Iran": "rial",
    "Iraq": "Iraqi dinar", "Israel": "shekel", "Egypt": "Egyptian pound", "South Africa": "rand", "Nigeria": "naira",
    "Kenya": "Kenyan shilling", "Ethiopia": "birr", "Morocco": "dirham", "Ghana": "cedi", "Cuba": "Cuban peso",
    "Jamaica": "Jamaican dollar", "Venezuela": "bolivar", "United Arab Emirates": "dirham", "Mongolia": "tugrik",
    "Kazakhstan": "tenge", "Georgia": "lari", "Armenia": "dram", "Algeria": "Algerian dinar",
    "Tunisia": "Tunisian dinar",
    "Bolivia": "boliviano", "Paraguay": "guarani", "Uruguay": "Uruguayan peso", "Costa Rica": "colon", "Serbia":
    "Serbian dinar", "Albania": "lek", "Cambodia": "riel", "Laos": "kip", "Myanmar": "kyat", "Sri Lanka":
    "Sri Lankan rupee", "Kuwait": "Kuwaiti dinar", "Jordan": "Jordanian dinar", "Zambia": "kwacha", "Tanzania":
    "Tanzanian shilling", "Uganda": "Ugandan shilling", "Botswana": "pula", "Senegal": "West African CFA franc"}
CONTINENTS = {"Russia": "Europe and Asia", "Turkey": "Europe and Asia", "Kazakhstan": "Asia", "Egypt": "Africa",
              "Cyprus": "Europe", "Georgia": "Asia", "Armenia": "Asia", "Azerbaijan": "Asia"}
DISHES = {"Japan": "sushi", "Italy": "pizza and pasta", "Spain": "paella", "Mexico": "tacos",
          "Germany": "sausages and bread",
          "Switzerland": "cheese fondue", "Hungary": "goulash", "Ukraine": "borscht",
          "United Kingdom": "fish and chips",
          "Austria": "Wiener schnitzel", "Greece": "moussaka", "Brazil": "feijoada", "Peru": "ceviche",
          "Vietnam": "pho",
          "South Korea": "kimchi", "Thailand": "pad thai", "Morocco": "couscous", "Poland": "pierogi",
          "Sweden": "meatballs",
          "France": "croissants and cheese", "Belgium": "waffles and chips", "Argentina": "grilled beef",
          "India": "curry",
          "Turkey": "kebab", "Canada": "poutine", "Ethiopia": "injera", "Indonesia": "nasi goreng", "Egypt": "koshari"}


LANGUAGES = {"Afghanistan": ["Pashto", "Dari"], "Austria": ["German"],
             "Switzerland": ["German", "French", "Italian", "Romansh"],
             "China": ["Chinese"], "Mexico": ["Spanish"], "Spain": ["Spanish"], "United States": ["English"],
             "Ireland": ["English", "Irish"], "Ghana": ["English"], "Iran": ["Persian"], "Indonesia": ["Indonesian"],
             "Malaysia": ["Malay"], "Tanzania": ["Swahili", "English"], "Kenya": ["Swahili", "English"],
             "Bolivia": ["Spanish"],
             "India": ["Hindi", "English"], "Norway": ["Norwegian"], "New Zealand": ["English"],
             "Pakistan": ["Urdu", "English"],
             "Philippines": ["Filipino", "English"], "Nigeria": ["English"], "Morocco": ["Arabic", "Berber"],
             "Peru": ["Spanish"],
             "Netherlands": ["Dutch"], "Bangladesh": ["Bengali"], "South Africa": [], "Kyrgyzstan": [], "Mali": [],
             "Mauritius": [],
             "Zimbabwe": [], "Haiti": ["French", "Haitian Creole"], "Fiji": [], "Ethiopia": ["Amharic", "Oromo"],
             "Poland": ["Polish"],
             "Canada": ["English", "French"], "Sri Lanka": ["Sinhala", "Tamil"], "Portugal": ["Portuguese"],
             "Romania": ["Romanian"], "Serbia": ["Serbian"]}
NEIGHBOURS = {"Canada": ["United States"], "Denmark": ["Germany"], "Egypt": [], "Israel": [], "Jordan": [], "Cuba": [],
              "Morocco": ["Algeria"], "Kosovo": [], "Georgia": [], "Cyprus": [], "Syria": [], "Lebanon": []}
SHORT_NAMES = {"US": "United States", "UK": "United Kingdom", "Holy See": "Vatican City", "UAE": "United Arab Emirates"}


def simple_letters(text):
    """The text without accents, since the model reads plain letters best."""
    return "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))


def factbook_field(text, pattern):
    match = re.search(pattern, text, re.M)
    return simple_letters(match.group(1)).strip() if match else ""


def languages_of(text):
    """The official languages, or the only one named; nothing when the entry is too tangled to state simply."""
    line = factbook_field(text, r"^Languages: (.+)$")
    official = re.findall(r"(?:^|[,;] |and )(?:[Mm]odern )?([A-Z][a-z]+(?: [A-Z][a-z]+)?) "
                          r"\((?:[^)]*\b)?official\b[^)]*\)", line)
    if official:
        names = official
    else:
        first = re.split(r"[;,(]", line)[0].strip()
        names = [re.sub(r" [\d.]+%$", "", first)]
    names = [re.sub(r"^(Standard|Bokmal|Nynorsk|Castilian) ", "", name) for name in names]
    names = ["Spanish" if name == "Castilian" else name for name in names]
    names = list(dict.fromkeys(names))
    ok = 1 <= len(names) <= 4 and all(re.fullmatch(r"[A-Z][a-z]+(?: [A-Z][a-z]+)?", name) for name in names)
    return names if ok else []


def rounded_population(text):
    number = factbook_field(text, r"^Population:\ntotal: ([\d,]+)")
    people = int(number.replace(",", "")) if number else 0
    if people >= 1_000_000_000:
        return f"about {people / 1e9:.1f} billion"
    if people >= 10_000_000:
        return f"about {round(people / 1e6)} million"
    if people >= 1_000_000:
        return f"about {people / 1e6:.1f} million".replace(".0 ", " ")
    return ""


def listing(names):
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


def read_countries(data):
    """Country name -> capital, continent, currency, languages, neighbours and more, simple values only."""
    rows = {}
    with open(data / "country-json" / "countries.jsonl", encoding="utf8") as file:
        for row in map(json.loads, file):
            rows[NAMES.get(row["country"], row["country"])] = row
    countries = {}
    with lzma.open(data / "world-factbook" / "factbook.jsonl.xz", "rt", encoding="utf8") as file:
        for entry in map(json.loads, file):
            name = NAMES.get(entry["name"], entry["name"])
            row, text = rows.get(name), entry["text"]
            if not name or row is None or "independence-date" not in row and name not in WELL_KNOWN:
                continue
            seat = re.split(r"[;(]", factbook_field(text, r"^Capital:\nname: (.+)$"))[0].strip()
            seat = CAPITALS.get(name, seat)
            borders = factbook_field(text, r"^border countries(?: \(\d+\))?: (.+)$")
            near = [re.sub(r"\s*\(.*?\)", "", part) for part in re.split(r"[;,] (?=[A-Z])", borders)]
            near = [match.group(1) for match in (re.match(r"([A-Z][A-Za-z' .-]+?) [\d,.]+ km", part) for part in near)
                    if match]
            countries[name] = {
                "capital": seat if re.fullmatch(r"[A-Za-z' .,-]+", seat) else "",
                "continent": CONTINENTS.get(name, row.get("continent", "")),
                "currency": "euro" if name in EURO else CURRENCIES.get(name, ""),
                "languages": LANGUAGES.get(name, languages_of(text)),
                "neighbours": NEIGHBOURS.get(name, [SHORT_NAMES.get(n, NAMES.get(n, n)) for n in near
                                                    if "Gibraltar" not in n]),
                "landlocked": row.get("landlocked") == "1",
                "island": not borders or name == "Cuba",
                "population": rounded_population(text),
                "driving": row.get("driving-side", ""),
                "dish": DISHES.get(name, ""),
                "monarchy": "monarchy" in factbook_field(text, r"^Government type: (.+)$"),
                "republic": "republic" in factbook_field(text, r"^Government type: (.+)$"),
                "highest": factbook_field(text, r"^highest point: ([A-Z][A-Za-z' .-]+?) [\d,]+ m$"),
            }
    return countries


def the(name):
    return "the " + name if name in WITH_THE else name


def country_fact(rng, name, info, capitals):
    """One question about a country; None where the value is missing."""
    place, kind = the(name), rng.choice(
        ["capital"] * 5 + ["reverse"] * 3 + ["is_capital", "continent", "continent", "currency", "currency", "language",
         "language", "neighbours", "landlocked", "population", "driving", "dish", "government", "is_in", "highest",
         "island"])
    def fact(questions, answer, follow=()):
        return Fact(capital(rng.choice(questions)), capital(answer), rng.choice(follow) if follow else "",
                    "country " + kind)
    follow = [f"And of {place}?", f"And {place}?", f"What about {place}?"]
    if kind == "capital" and info["capital"]:
        return fact([f"What is the capital of {place}?", f"Which city is the capital of {place}?",
                     f"Name the capital of {place}.",
                     f"What is the capital city of {place}?", f"Tell me the capital of {place}.",
                     f"Capital of {place}?",
                     f"Do you know the capital of {place}?"],
                    f"The capital of {place} is *{info['capital']}*" + ("" if info["capital"].endswith(".") else "."),
                    follow)
    if kind == "reverse" and info["capital"]:
        seat = info["capital"]
        return fact([f"Which country has the capital {seat}?", f"{seat} is the capital of which country?",
                     f"What country is {seat} the capital of?", f"Of which country is {seat} the capital?"],
                    f"{seat} is the capital of *{place}*.", [f"And {seat}?"])
    if kind == "is_capital" and info["capital"]:
        other = rng.choice(capitals)
        if rng.random() < 0.5 or other == info["capital"]:
            return fact([f"Is {info['capital']} the capital of {place}?",
                         f"Is it true that {info['capital']} is the capital of {place}?"],
                        f"*Yes*, {info['capital']} is the capital of {place}.")
        return fact([f"Is {other} the capital of {place}?", f"Is it true that {other} is the capital of {place}?"],
                    f"*No*, the capital of {place} is {info['capital']}.")
    if kind == "continent" and info["continent"]:
        return fact([f"On which continent is {place}?", f"What continent is {place} in?",
                     f"Where in the world is {place}?",
                     f"Which continent does {place} belong to?"], f"{place} is in *{info['continent']}*.", follow[1:])
    if kind == "currency" and info["currency"]:
        return fact([f"What is the currency of {place}?", f"What money do people use in {place}?",
                     f"Which currency does {place} use?",
                     f"What do people pay with in {place}?"], f"The currency of {place} is *the {info['currency']}*.",
                     follow)
    if kind == "language" and info["languages"]:
        many = listing(info["languages"])
        label = "language" if len(info["languages"]) == 1 else "languages"
        return fact([f"What language do people speak in {place}?", f"Which languages are spoken in {place}?",
                     f"What is the main language of {place}?", f"What do people speak in {place}?"],
                    f"The main {label} of {place} {'is' if label == 'language' else 'are'} *{many}*.",
                    [f"And in {place}?"] + follow[2:])
    if kind == "neighbours" and 1 <= len(info["neighbours"]) <= 6:
        near = [the(n) for n in info["neighbours"]]
        return fact([f"Which countries border {place}?", f"What are the neighbours of {place}?",
                     f"Name the neighbours of {place}.",
                     f"Which countries are next to {place}?"], f"{place} borders *{listing(near)}*.", follow[1:])
    if kind == "landlocked":
        if info["landlocked"]:
            return fact([f"Is {place} landlocked?", f"Does {place} have a coast?"],
                        f"{place} is *landlocked*: it has no coast.")
        return fact([f"Is {place} landlocked?", f"Does {place} have a coast?"],
                    f"{place} *has a coast*, so it is not landlocked.")
    if kind == "island" and info["island"]:
        return fact([f"Does {place} have land borders?", f"Which countries border {place}?"],
                    f"{place} has *no land borders*. It is surrounded by the sea.")
    if kind == "population" and info["population"]:
        return fact([f"How many people live in {place}?", f"What is the population of {place}?",
                     f"How big is the population of {place}?"],
                    f"{place} has *{info['population']}* people.", [f"And in {place}?"])
    if kind == "driving" and info["driving"] in ("left", "right"):
        return fact([f"On which side do people drive in {place}?",
                     f"Do people drive on the left or the right in {place}?"],
                    f"In {place} people drive on the *{info['driving']}*.", [f"And in {place}?"])
    if kind == "dish" and info["dish"]:
        return fact([f"What is a famous dish from {place}?", f"What food is {place} known for?",
                     f"Name a typical dish of {place}."],
                    f"{place} is known for *{info['dish']}*.", [f"And {place}?"])
    if kind == "government" and info["monarchy"] != info["republic"]:
        form = "a monarchy" if info["monarchy"] else "a republic"
        return fact([f"Is {place} a monarchy or a republic?", f"What kind of government does {place} have?"],
                    f"{place} is *{form}*.", follow[1:])
    if kind == "is_in" and info["continent"] and " and " not in info["continent"]:
        other = rng.choice(["Europe", "Asia", "Africa", "South America", "North America"])
        reply = "*Yes*, " if other == info["continent"] else "*No*, "
        return fact([f"Is {place} in {other}?"], f"{reply}{place} is in {info['continent']}.")
    if kind == "highest" and name in WELL_KNOWN and info["highest"] and not re.search(r"unnamed|location| on ",
            info["highest"]):
        return fact([f"What is the highest mountain in {place}?", f"What is the highest point of {place}?"],
                    f"The highest point of {place} is *{info['highest']}*.", [f"And in {place}?"])
    return None
