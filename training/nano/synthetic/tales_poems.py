"""Poems of four rhyming lines, put together from couplets that fit a topic."""

COUPLETS = {
    "the sun": ["The sun comes up, the sky turns gold,\nand warms the young and warms the old.",
                "O golden sun, so warm and high,\nyou paint your colours on the sky.",
                "The morning sun is on my bed,\nit shines so softly on my head."],
    "the moon": ["The moon is bright, the moon is round,\nit sheds its light without a sound.",
                 "The silver moon looks down on me\nand on the hill and on the sea.",
                 "Good night, dear moon, so white and far,\nyou shine beside a little star."],
    "the sea": ["The sea is deep, the sea is wide,\nthe boats go dancing with the tide.",
                "The waves roll in, the waves roll out,\nand happy children run and shout.",
                "I hear the song of wind and sea,\nit sings a quiet song to me."],
    "rain": ["The rain is falling, drop by drop,\nit makes a song on my roof top.",
             "The rain comes down on field and tree,\nand on my house, and then on me.",
             "Soft rain, sweet rain, come wash the day,\nand when you go, we will go play."],
    "winter": ["The snow is soft, the snow is white,\nit falls so gently in the night.",
               "The trees are bare, the wind is cold,\nthe fire is warm, and tales are told.",
               "We build a snowman, big and round,\nand roll our snowballs on the ground."],
    "spring": ["The snow has gone, the grass is green,\nthe brightest flowers can be seen.",
               "The birds are back, they sing all day,\nand chase the winter far away.",
               "The buds are small, the sky is clear,\nbe glad, be glad, for spring is here."],
    "a cat": ["My little cat sleeps in the sun,\nand when she wakes, she has some fun.",
              "She chases shadows, jumps up high,\nand looks at birds up in the sky.",
              "She comes to me when day is done,\nmy soft and warm and furry one."],
    "a dog": ["My dog is brown, my dog is fast,\nhe runs and never comes in last.",
              "He brings a stick, he wags his tail,\nhe loves to run along the trail.",
              "And when I come home late at night,\nmy dog is there, all eyes and light."],
    "friendship": ["A friend is someone who is near\nwhen you are sad and full of fear.",
                   "We share our bread, we share our play,\nwe share the good and rainy day.",
                   "A friendly word, a helping hand,\na friend will always understand."],
    "a tree": ["The tree stands tall, the tree stands still,\nit guards the top of our green hill.",
               "The birds build nests up in the tree,\nand sing their songs for you and me.",
               "In summer shade, in autumn gold,\nthe tree is strong, the tree is old."],
    "night": ["The day is done, the light is low,\nand home the sleepy people go.",
              "The stars come out, first one, then two,\nand shine on me and shine on you.",
              "Now close your eyes and softly dream\nof quiet woods and silver stream."],
    "books": ["A book can take me far away,\nto other lands, on any day.",
              "I turn a page and start to read\nof knights and dragons, and brave deed.",
              "When I have read it to the end,\nI close the book: it is my friend."],
    "my mother": ["My mother's hands are warm and kind,\nno better hands you'll ever find.",
                  "She sings to me when day is through,\nshe says, \"My child, I do love you.\"",
                  "And when I fall, she is right there,\nto dry my tears and stroke my hair."],
    "a bird": ["A little bird sits on a tree,\nand sings a morning song for me.",
               "It spreads its wings, it flies up high,\na tiny spot in the blue sky.",
               "Come back, come back, dear little bird,\nyours is the best song ever heard."],
}
REQUESTS = ["Write a poem about {}", "Write a short poem about {}", "Can you write a poem about {}?",
    "A poem about {}, please",
            "Please write a short poem about {}", "Make a rhyme about {}", "Give me a poem about {}",
                "I want a poem about {}",
            "Tell me a poem about {}", "Write four lines about {}"]


def poem(rng):
    """(request, poem, thought)"""
    topic = rng.choice(sorted(COUPLETS))
    # In the order of the table, so that a line that begins with "and" does not open the poem.
    chosen = sorted(rng.sample(range(len(COUPLETS[topic])), 2))
    lines = [line[0].upper() + line[1:] for i in chosen for line in COUPLETS[topic][i].split("\n")]
    request = rng.choice(REQUESTS).format(topic)
    request = rng.choice([request, request, request.lower(), request + ("" if request.endswith("?") else ".")])
    plan = rng.choice([f"A short poem about {topic}. Two lines rhyme each time.",
                       f"Four lines about {topic}, with rhymes in pairs.", "I write two pairs of lines that rhyme."])
    return request, "\n".join(lines), plan
