"""Small sentences in French, Spanish and German put together from words, and English verbs with their forms."""

from . import common

# English; French with article and gender; Spanish; German
NOUNS = [tuple(line.split("/")) for line in """house/la maison/la casa/das Haus|dog/le chien/el perro/der Hund|cat/le chat/el gato/die Katze|book/le livre/el libro/das Buch|car/la voiture/el coche/das Auto|table/la table/la mesa/der Tisch|city/la ville/la ciudad/die Stadt|
garden/le jardin/el jardín/der Garten|door/la porte/la puerta/die Tür|window/la fenêtre/la ventana/das Fenster|tree/l'arbre/el árbol/der Baum|sea/la mer/el mar/das Meer|sun/le soleil/el sol/die Sonne|moon/la lune/la luna/der Mond|bread/le pain/el pan/das Brot|
cheese/le fromage/el queso/der Käse|milk/le lait/la leche/die Milch|coffee/le café/el café/der Kaffee|boy/le garçon/el chico/der Junge|girl/la fille/la chica/das Mädchen|school/l'école/la escuela/die Schule|hotel/l'hôtel/el hotel/das Hotel|train/le train/el tren/der Zug|
station/la gare/la estación/der Bahnhof|bird/l'oiseau/el pájaro/der Vogel|flower/la fleur/la flor/die Blume|kitchen/la cuisine/la cocina/die Küche|river/la rivière/el río/der Fluss|apple/la pomme/la manzana/der Apfel|water/l'eau/el agua/das Wasser""".replace("\n", "").split("|")]
# English; French masculine, feminine; Spanish masculine, feminine; German
ADJECTIVES = [tuple(line.split("/")) for line in """big/grand/grande/grande/grande/groß|small/petit/petite/pequeño/pequeña/klein|beautiful/beau/belle/bonito/bonita/schön|old/vieux/vieille/viejo/vieja/alt|new/nouveau/nouvelle/nuevo/nueva/neu|red/rouge/rouge/rojo/roja/rot|green/vert/verte/verde/verde/grün|
white/blanc/blanche/blanco/blanca/weiß|black/noir/noire/negro/negra/schwarz|good/bon/bonne/bueno/buena/gut|cold/froid/froide/frío/fría/kalt|hot/chaud/chaude/caliente/caliente/heiß|expensive/cher/chère/caro/cara/teuer""".replace("\n", "").split("|")]
FEMININE = set("la voiture|la maison|la table|la ville|la porte|la fenêtre|la mer|la lune|la fille|l'école|la gare|la fleur|la cuisine|la rivière|la pomme|l'eau".split("|"))
# English; French; Spanish; German
PHRASES = [tuple(line.split("/")) for line in """thank you/merci/gracias/danke|thank you very much/merci beaucoup/muchas gracias/vielen Dank|good morning/bonjour/buenos días/guten Morgen|good evening/bonsoir/buenas tardes/guten Abend|good night/bonne nuit/buenas noches/gute Nacht|hello/bonjour/hola/hallo|goodbye/au revoir/adiós/auf Wiedersehen|
please/s'il vous plaît/por favor/bitte|yes/oui/sí/ja|no/non/no/nein|see you tomorrow/à demain/hasta mañana/bis morgen|see you soon/à bientôt/hasta pronto/bis bald|I love you/je t'aime/te quiero/ich liebe dich|how are you?/comment ça va ?/¿cómo estás?/wie geht es dir?|
what is your name?/comment tu t'appelles ?/¿cómo te llamas?/wie heißt du?|my name is {n}/je m'appelle {n}/me llamo {n}/ich heiße {n}|I am tired/je suis fatigué/estoy cansado/ich bin müde|I am hungry/j'ai faim/tengo hambre/ich habe Hunger|I am thirsty/j'ai soif/tengo sed/ich habe Durst|I am cold/j'ai froid/tengo frío/mir ist kalt|
I do not understand/je ne comprends pas/no entiendo/ich verstehe nicht|excuse me/excusez-moi/perdón/Entschuldigung|I am sorry/je suis désolé/lo siento/es tut mir leid|happy birthday/joyeux anniversaire/feliz cumpleaños/alles Gute zum Geburtstag|welcome/bienvenue/bienvenido/willkommen|
where are the toilets?/où sont les toilettes ?/¿dónde están los baños?/wo sind die Toiletten?|how much is it?/combien ça coûte ?/¿cuánto cuesta?/wie viel kostet das?|it is raining/il pleut/llueve/es regnet|the weather is nice/il fait beau/hace buen tiempo/das Wetter ist schön|I live in {p}/j'habite à {p}/vivo en {p}/ich wohne in {p}|
I speak a little French/je parle un peu français/hablo un poco de francés/ich spreche ein wenig Französisch|today/aujourd'hui/hoy/heute|tomorrow/demain/mañana/morgen|friend/ami/amigo/Freund|mother/mère/madre/Mutter|father/père/padre/Vater|one/un/uno/eins|two/deux/dos/zwei|three/trois/tres/drei|
Monday/lundi/lunes/Montag|red/rouge/rojo/rot|blue/bleu/azul/blau|water/eau/agua/Wasser|bread/pain/pan/Brot""".replace("\n", "").split("|")]
LANGUAGES = ["French", "Spanish", "German"]
# English base; French and Spanish forms for I, you, he, she, we
ACTIONS = [tuple(part.split() if " " in part else part for part in line.split("/")) for line in """have/ai as a a avons/tengo tienes tiene tiene tenemos|see/vois vois voit voit voyons/veo ves ve ve vemos|buy/achète achètes achète achète achetons/compro compras compra compra compramos|
want/veux veux veut veut voulons/quiero quieres quiere quiere queremos|sell/vends vends vend vend vendons/vendo vendes vende vende vendemos""".replace("\n", "").split("|")]
WHO = [("I", "je", ""), ("you", "tu", ""), ("he", "il", "él"), ("she", "elle", "ella"), ("we", "nous", "")]
CALLS = [tuple(line.split("/")) for line in "my friend/mon ami/mi amigo|Anna/Anna/Anna|Paul/Paul/Paul|everybody/tout le monde/a todos|Maria/Maria/María|sir/monsieur/señor|madam/madame/señora|dear friends/chers amis/queridos amigos".split("|")]
HAILS = [tuple(line.split("/")) for line in "good morning/bonjour/buenos días|good evening/bonsoir/buenas tardes|hello/bonjour/hola|good night/bonne nuit/buenas noches|thank you/merci/gracias|goodbye/au revoir/adiós|see you tomorrow/à demain/hasta mañana|welcome/bienvenue/bienvenido".split("|")]


def sentence_of(rng):
    """(English, French, Spanish) of a greeting with a name, or of a small sentence with a verb and a thing."""
    if rng.random() < 0.35:
        hail, call = rng.choice(HAILS), rng.choice(CALLS)
        return tuple(common.cap(f"{h}, {c}.") for h, c in zip(hail, call))
    at = rng.randrange(len(WHO))
    (english, french, spanish), (base, fr, es) = WHO[at], rng.choice(ACTIONS)
    noun, le, el, _ = rng.choice([n for n in NOUNS if n[0] not in ("sun", "moon", "sea", "water", "milk", "bread", "cheese", "coffee")])
    une = "une" if le in FEMININE else "un"
    bare = le.split("'")[-1].split(" ")[-1]
    verb = {"have": "has"}.get(base, base + "s") if english in ("he", "she") else base
    je = f"j'{fr[at]}" if french == "je" and fr[at][0] in "aeéè" else f"{french} {fr[at]}"
    return (common.cap(f"{english} {verb} {common.an(noun)}."), common.cap(f"{je} {une} {bare}."), common.cap(f"{spanish} {es[at]} {'una' if el.startswith('la') else 'un'} {el.split(' ')[1]}.".strip()))


def sentence(rng, data):
    words = sentence_of(rng)
    at = rng.choice([1, 2])
    language = LANGUAGES[at - 1]
    if rng.random() < 0.2:
        return [(rng.choice([f"Translate to English: {words[at]}", f'What does "{words[at].rstrip(".")}" mean?', f"{words[at]} in English?"]), words[0])], f'"{words[at]}" is {language} for "{words[0]}"'
    turns = [(into(rng, words[0], language), words[at] if rng.random() < 0.8 else f'In {language}: "{words[at]}"')]
    if rng.random() < 0.25:
        at = 3 - at
        language = LANGUAGES[at - 1]
        turns.append((rng.choice(["And in {}?", "and in {}?", "Now in {}.", "in {}?"]).format(language), words[at]))
    return turns, f'"{words[0]}" is "{words[at]}" in {language}.'


def words_of(rng):
    """(English, French, Spanish, German) of a noun with its article, a sentence about one, or a phrase."""
    roll = rng.random()
    if roll < 0.4:
        name, place = rng.choice(["Anna", "Paul", "Maria", "Leo"]), rng.choice(["Paris", "Madrid", "Berlin", "Lyon"])
        return tuple(text.format(n=name, p=place) for text in rng.choice(PHRASES))
    english, french, spanish, german = rng.choice(NOUNS)
    if roll < 0.55:
        return f"the {english}", french, spanish, german
    if roll < 0.85:
        adjective = rng.choice(ADJECTIVES)
        cap = common.cap
        return f"The {english} is {adjective[0]}.", f"{cap(french)} est {adjective[2 if french in FEMININE else 1]}.", f"{cap(spanish)} {'está' if adjective[0] in ('cold', 'hot') else 'es'} {adjective[4 if spanish.startswith('la') else 3]}.", f"{cap(german)} ist {adjective[5]}."
    return f"Where is the {english}?", f"Où est {french} ?", f"¿Dónde está {spanish}?", f"Wo ist {german}?"


def into(rng, english, language):
    bare = english.rstrip(".")
    return rng.choice([f"Translate to {language}: {english}", f"Translate into {language}: {english}", f'How do you say "{bare}" in {language}?', f"How do you say {bare} in {language}?", f"What is {bare} in {language}?", f"Say this in {language}: {english}", f"{english} in {language}?", f'Translate "{bare}" to {language}.',
                       f"Write this in {language}: {english}", f"translate {bare.lower()} to {language.lower()}"])


def translated(rng, data):
    words = words_of(rng)
    at = rng.randrange(3)
    answer = words[at + 1]
    turns = [(into(rng, words[0], LANGUAGES[at]), stated(rng, words[0], answer, LANGUAGES[at]))]
    if rng.random() < 0.4:
        other = rng.choice([i for i in range(3) if i != at])
        turns.append((rng.choice(["And in {}?", "and in {}?", "What about {}?", "Now in {}, please.", "in {}?", "And {}?", "How about in {}?"]).format(LANGUAGES[other]), stated(rng, words[0], words[other + 1], LANGUAGES[other])))
        answer, at = words[other + 1], other
    return turns, f'"{words[0]}" is "{answer}" in {LANGUAGES[at]}.'


def stated(rng, english, answer, language):
    return rng.choice([common.cap(answer), common.cap(answer), f'In {language}: "{answer}"', f'"{common.cap(english.rstrip("."))}" in {language} is "{answer.rstrip(".")}".'])


def meaning(rng, data):
    words = words_of(rng)
    at = rng.randrange(3)
    foreign = words[at + 1].rstrip(".")
    return [(rng.choice([f'What does "{foreign}" mean?', f"What does {foreign} mean in English?", f"Translate to English: {foreign}", f'What is "{foreign}" in English?', f"Translate this {LANGUAGES[at]} text: {foreign}"]),
             rng.choice([common.cap(words[0]), f'It means "{words[0].rstrip(".")}".', f'"{common.cap(foreign)}" means "{words[0].rstrip(".")}".']))], f'"{foreign}" is {LANGUAGES[at]} for "{words[0]}".'


def which_language(rng, data):
    words = words_of(rng)
    at = rng.randrange(3)
    return [(rng.choice([f'Which language is this: "{words[at + 1]}"', f"What language is this? {words[at + 1]}", f'In which language is "{words[at + 1]}"?']), rng.choice([f"That is {LANGUAGES[at]}.", f"It is {LANGUAGES[at]}."]))], f'"{words[at + 1]}" is {LANGUAGES[at]}.'


TRANSLATIONS = [(13, translated), (8, sentence), (4, meaning), (1.5, which_language)]

# base, third person, past, what follows
VERBS = [tuple(line.split("/")) for line in """walk/walks/walked/to school|eat/eats/ate/an apple|go/goes/went/to the park|see/sees/saw/a bird|buy/buys/bought/bread|write/writes/wrote/a letter|read/reads/read/a book|drink/drinks/drank/tea|sing/sings/sang/a song|run/runs/ran/home|play/plays/played/football|
make/makes/made/a cake|take/takes/took/the bus|give/gives/gave/flowers to Anna|find/finds/found/a coin|lose/loses/lost/the key|sell/sells/sold/old books|tell/tells/told/a story|sleep/sleeps/slept/for an hour|speak/speaks/spoke/with the teacher|swim/swims/swam/in the lake|drive/drives/drove/to work|
cook/cooks/cooked/dinner|open/opens/opened/the window|help/helps/helped/a friend|watch/watches/watched/a film|visit/visits/visited/the museum|work/works/worked/in the garden|love/loves/loved/the sea|bring/brings/brought/a cake|think/thinks/thought/about it|catch/catches/caught/the ball|fly/flies/flew/to Rome|
leave/leaves/left/the house|meet/meets/met/a friend|pay/pays/paid/the bill|send/sends/sent/a card|sit/sits/sat/under a tree|teach/teaches/taught/history|wear/wears/wore/a hat|win/wins/won/the game|break/breaks/broke/the glass|draw/draws/drew/a map|know/knows/knew/the answer|call/calls/called/the doctor|wash/washes/washed/the car""".replace("\n", "").split("|")]
