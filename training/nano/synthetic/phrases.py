"""Simple sentences in French, Spanish, German and Italian: greetings, numbers, days, and small translations."""

from . import common

# English | French | Spanish | German | Italian
PHRASES = [tuple(part.strip() for part in line.split("|")) for line in """
Hello|Bonjour|Hola|Hallo|Ciao
Good morning|Bonjour|Buenos días|Guten Morgen|Buongiorno
Good evening|Bonsoir|Buenas tardes|Guten Abend|Buonasera
Good night|Bonne nuit|Buenas noches|Gute Nacht|Buona notte
Goodbye|Au revoir|Adiós|Auf Wiedersehen|Arrivederci
See you tomorrow|À demain|Hasta mañana|Bis morgen|A domani
See you soon|À bientôt|Hasta pronto|Bis bald|A presto
Thank you|Merci|Gracias|Danke|Grazie
Thank you very much|Merci beaucoup|Muchas gracias|Vielen Dank|Grazie mille
You are welcome|De rien|De nada|Bitte|Prego
Please|S'il vous plaît|Por favor|Bitte|Per favore
Yes|Oui|Sí|Ja|Sì
No|Non|No|Nein|No
Excuse me|Excusez-moi|Perdón|Entschuldigung|Scusi
I am sorry|Je suis désolé|Lo siento|Es tut mir leid|Mi dispiace
How are you?|Comment ça va ?|¿Cómo estás?|Wie geht es dir?|Come stai?
I am fine|Je vais bien|Estoy bien|Mir geht es gut|Sto bene
What is your name?|Comment t'appelles-tu ?|¿Cómo te llamas?|Wie heißt du?|Come ti chiami?
My name is Anna|Je m'appelle Anna|Me llamo Anna|Ich heiße Anna|Mi chiamo Anna
Nice to meet you|Enchanté|Mucho gusto|Freut mich|Piacere
Where is the station?|Où est la gare ?|¿Dónde está la estación?|Wo ist der Bahnhof?|Dov'è la stazione?
Where are the toilets?|Où sont les toilettes ?|¿Dónde están los baños?|Wo sind die Toiletten?|Dove sono i bagni?
How much is it?|Combien ça coûte ?|¿Cuánto cuesta?|Wie viel kostet das?|Quanto costa?
I do not understand|Je ne comprends pas|No entiendo|Ich verstehe nicht|Non capisco
I love you|Je t'aime|Te quiero|Ich liebe dich|Ti amo
I am hungry|J'ai faim|Tengo hambre|Ich habe Hunger|Ho fame
I am thirsty|J'ai soif|Tengo sed|Ich habe Durst|Ho sete
I am tired|Je suis fatigué|Estoy cansado|Ich bin müde|Sono stanco
I live in Paris|J'habite à Paris|Vivo en París|Ich wohne in Paris|Abito a Parigi
The cat is black|Le chat est noir|El gato es negro|Die Katze ist schwarz|Il gatto è nero
The dog is big|Le chien est grand|El perro es grande|Der Hund ist groß|Il cane è grande
The house is small|La maison est petite|La casa es pequeña|Das Haus ist klein|La casa è piccola
I have a dog|J'ai un chien|Tengo un perro|Ich habe einen Hund|Ho un cane
I like music|J'aime la musique|Me gusta la música|Ich mag Musik|Mi piace la musica
I drink water|Je bois de l'eau|Bebo agua|Ich trinke Wasser|Bevo acqua
The book is on the table|Le livre est sur la table|El libro está en la mesa|Das Buch liegt auf dem Tisch|Il libro è sul tavolo
It is raining|Il pleut|Llueve|Es regnet|Piove
It is cold|Il fait froid|Hace frío|Es ist kalt|Fa freddo
It is hot|Il fait chaud|Hace calor|Es ist heiß|Fa caldo
Today is Monday|Aujourd'hui, c'est lundi|Hoy es lunes|Heute ist Montag|Oggi è lunedì
Happy birthday|Joyeux anniversaire|Feliz cumpleaños|Alles Gute zum Geburtstag|Buon compleanno
Merry Christmas|Joyeux Noël|Feliz Navidad|Frohe Weihnachten|Buon Natale
Good luck|Bonne chance|Buena suerte|Viel Glück|Buona fortuna
Welcome|Bienvenue|Bienvenido|Willkommen|Benvenuto
Have a nice day|Bonne journée|Que tengas un buen día|Schönen Tag|Buona giornata
Enjoy your meal|Bon appétit|Buen provecho|Guten Appetit|Buon appetito
The sun is shining|Le soleil brille|El sol brilla|Die Sonne scheint|Il sole splende
We are friends|Nous sommes amis|Somos amigos|Wir sind Freunde|Siamo amici
I would like a coffee|Je voudrais un café|Quisiera un café|Ich möchte einen Kaffee|Vorrei un caffè
Can you help me?|Pouvez-vous m'aider ?|¿Puede ayudarme?|Können Sie mir helfen?|Può aiutarmi?
""".strip().splitlines()]
WORDS = [tuple(part.strip() for part in line.split("|")) for line in """
cat|le chat|el gato|die Katze|il gatto
dog|le chien|el perro|der Hund|il cane
house|la maison|la casa|das Haus|la casa
water|l'eau|el agua|das Wasser|l'acqua
bread|le pain|el pan|das Brot|il pane
milk|le lait|la leche|die Milch|il latte
cheese|le fromage|el queso|der Käse|il formaggio
apple|la pomme|la manzana|der Apfel|la mela
book|le livre|el libro|das Buch|il libro
friend|l'ami|el amigo|der Freund|l'amico
mother|la mère|la madre|die Mutter|la madre
father|le père|el padre|der Vater|il padre
sister|la sœur|la hermana|die Schwester|la sorella
brother|le frère|el hermano|der Bruder|il fratello
sun|le soleil|el sol|die Sonne|il sole
moon|la lune|la luna|der Mond|la luna
tree|l'arbre|el árbol|der Baum|l'albero
flower|la fleur|la flor|die Blume|il fiore
car|la voiture|el coche|das Auto|la macchina
school|l'école|la escuela|die Schule|la scuola
red|rouge|rojo|rot|rosso
blue|bleu|azul|blau|blu
green|vert|verde|grün|verde
black|noir|negro|schwarz|nero
white|blanc|blanco|weiß|bianco
one|un|uno|eins|uno
two|deux|dos|zwei|due
three|trois|tres|drei|tre
four|quatre|cuatro|vier|quattro
five|cinq|cinco|fünf|cinque
ten|dix|diez|zehn|dieci
today|aujourd'hui|hoy|heute|oggi
tomorrow|demain|mañana|morgen|domani
day|le jour|el día|der Tag|il giorno
night|la nuit|la noche|die Nacht|la notte
bird|l'oiseau|el pájaro|der Vogel|l'uccello
fish|le poisson|el pescado|der Fisch|il pesce
horse|le cheval|el caballo|das Pferd|il cavallo
city|la ville|la ciudad|die Stadt|la città
beautiful|beau|hermoso|schön|bello
""".strip().splitlines()]
LANGUAGES = ["English", "French", "Spanish", "German", "Italian"]
WEIGHTS = [4, 4, 2, 1]
NUMBERS = {"French": "un, deux, trois, quatre, cinq, six, sept, huit, neuf, dix", "Spanish": "uno, dos, tres, cuatro, cinco, seis, siete, ocho, nueve, diez",
           "German": "eins, zwei, drei, vier, fünf, sechs, sieben, acht, neun, zehn"}
DAYS = {"French": "lundi, mardi, mercredi, jeudi, vendredi, samedi, dimanche", "Spanish": "lunes, martes, miércoles, jueves, viernes, sábado, domingo",
        "German": "Montag, Dienstag, Mittwoch, Donnerstag, Freitag, Samstag, Sonntag"}
INTO = ['How do you say "{x}" in {l}?', "How do I say {x} in {l}?", "Translate to {l}: {x}", 'Translate "{x}" into {l}.', "What is {x} in {l}?",
        "Say {x} in {l}", "{x} in {l}, please", 'Please translate this into {l}: "{x}"', "Can you translate {x} to {l}?", "How would a {l} speaker say {x}?",
        "Put this into {l}: {x}", "Write {x} in {l}."]
FROM = ['What does "{x}" mean?', "What does {x} mean in English?", "Translate to English: {x}", 'Translate "{x}" into English.', 'What is "{x}" in English?',
        "I read {x}. What does it mean?"]
GREETED = [(["Bonjour", "Bonjour !", "Salut", "Salut !", "Bonjour, ça va ?", "Bonsoir", "Bonjour, comment ça va ?", "Coucou"],
            ["Bonjour ! Comment puis-je vous aider ?", "Bonjour ! Que puis-je faire pour vous ? Je parle surtout anglais."]),
           (["Hola", "¡Hola!", "Hola, ¿qué tal?", "Buenos días", "Buenas tardes", "Hola, ¿cómo estás?", "hola que tal"],
            ["¡Hola! ¿En qué puedo ayudarte?", "¡Hola! Hablo sobre todo inglés. ¿Qué necesitas?"]),
           (["Hallo", "Guten Tag", "Guten Morgen", "Hallo, wie geht es dir?"], ["Hallo! Wie kann ich helfen?", "Guten Tag! Ich spreche vor allem Englisch."]),
           (["Ciao", "Ciao!", "Buongiorno"], ["Ciao! Come posso aiutarti?"]),
           (["Merci", "Merci beaucoup", "Merci !"], ["De rien !", "Avec plaisir !"]), (["Gracias", "Muchas gracias", "¡Gracias!"], ["¡De nada!", "¡Con gusto!"]),
           (["Au revoir", "Au revoir !", "À bientôt"], ["Au revoir ! Bonne journée !"]), (["Adiós", "Hasta luego"], ["¡Adiós! ¡Que tengas un buen día!"]),
           (["Comment t'appelles-tu ?", "Qui es-tu ?", "Tu es qui ?"], ["Je m'appelle Chimere Nano. Je suis un petit modèle de langage."]),
           (["¿Cómo te llamas?", "¿Quién eres?"], ["Me llamo Chimere Nano. Soy un pequeño modelo de lenguaje."]),
           (["Parles-tu français ?", "Tu parles français ?", "Do you speak French?", "Can you speak French?"],
            ["Un peu ! I know simple sentences in French, but I speak English best."]),
           (["¿Hablas español?", "Do you speak Spanish?", "Can you speak Spanish?"], ["¡Un poco! I know simple sentences in Spanish, but I speak English best."]),
           (["Which languages do you speak?", "What languages do you know?", "Do you speak other languages?"],
            ["I speak English, and I know simple sentences in French, Spanish and German."])]


def pick(rng):
    entry = rng.choice(PHRASES) if rng.random() < 0.65 else rng.choice(WORDS)
    number = rng.choices([1, 2, 3, 4], WEIGHTS)[0]
    return entry, number


def answered(rng, entry, number):
    text, language = entry[number], LANGUAGES[number]
    end = "" if text[-1] in "?!." else "."
    return rng.choice([f"{text}{end}", f'In {language}: "{text}"', f'"{common.cap(entry[0])}" in {language} is "{text}".', f'"{text}"'])


def exchange(rng):
    roll = rng.random()
    if roll < 0.16:
        asked, answers = rng.choice(GREETED)
        return [(rng.choice(asked), rng.choice(answers))], "This is simple. I answer in the same language where I can."
    if roll < 0.22:
        language = rng.choice(sorted(NUMBERS))
        if rng.random() < 0.5:
            return [(rng.choice(["Count to ten in {}.", "What are the numbers from one to ten in {}?", "Can you count to ten in {}?"]).format(language),
                     common.cap(NUMBERS[language]) + ".")], f"The numbers in {language}."
        return [(rng.choice(["What are the days of the week in {}?", "Name the days of the week in {}."]).format(language),
                 common.cap(DAYS[language]) + ".")], f"The days in {language}."
    entry, number = pick(rng)
    if roll < 0.75:
        turns = [(common.typed(rng, rng.choice(INTO).format(x=entry[0] if rng.random() < 0.6 else entry[0].lower(), l=LANGUAGES[number])),
                  answered(rng, entry, number))]
        thought = f'"{entry[0]}" is "{entry[number]}" in {LANGUAGES[number]}.'
        if rng.random() < 0.3:
            other = rng.choice([n for n in (1, 2, 3) if n != number])
            turns.append((rng.choice(["And in {}?", "In {}?", "What about {}?", "And how do you say it in {}?"]).format(LANGUAGES[other]), answered(rng, entry, other)))
            thought = f'"{entry[0]}" is "{entry[other]}" in {LANGUAGES[other]}.'
        return turns, thought
    text = entry[number]
    return [(rng.choice(FROM).format(x=text), rng.choice([f'It means "{entry[0]}".', f'"{text}" is {LANGUAGES[number]} and means "{entry[0]}".',
                                                          entry[0] + ("" if entry[0][-1] in "?!" else ".")]))], f'That is {LANGUAGES[number]} for "{entry[0]}".'


def dialogues(rng, count):
    for _ in range(count):
        turns, thought = exchange(rng)
        yield common.turns_to_dialogue(rng, turns, "languages", thought)
