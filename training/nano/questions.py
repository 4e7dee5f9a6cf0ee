"""Fixed questions for looking at the model, never selected by its answers."""

# What a newcomer types first. Being ordinary, several of these occur in the training dialogues word for word.
CONVERSATION = [
    "Hello! Who are you?",
    "What can you do?",
    "What is the capital of Japan?",
    "And of Italy?",
    "What is 48 + 27?",
    "Tell me a short story about a fox.",
    "Why do birds fly south in winter?",
    "Write a Python function that returns the larger of two numbers.",
    "I feel tired today. Any advice?",
    "Thank you, goodbye!",
]

# None of these is the user's turn of a training dialogue: prepare.py leaves out every dialogue that asks one.
QUESTIONS = [
    "Good evening, how is it going?", "What does the word brave mean?", "Which animal says moo?",
    "Give me a tip for better sleep.", "Tell me a story about a lonely robot.", "What is 7 times 8?",
    "Which is heavier, 1 kg or 500 g?", "Write a function that adds two numbers in Python.",
    "What does len do in Python?", "Fix the grammar: she go to school.",
    "Make this sentence polite: give me the salt.", "What should I cook tonight?",
    "My dog is sick. What should I do?", "I am so happy today!", "Can you help me write an email to my teacher?",
    "Where is Brazil?", "What currency does India use?", "What is the weather like today?",
    "Do you remember what I told you yesterday?", "asdf jkl qwerty", "?", "tell me about quantum chromodynamics",
    "who won the football match last night", "Write the numbers from one to ten.", "Spell the word house.",
    "Tom has 5 apples and eats 2. How many are left?",
    "Anna is older than Ben. Ben is older than Carl. Who is the youngest?", "What comes next: 2, 4, 6, 8?",
    "Give me a name for a cat.", "What is a good gift for my mother?", "How can I learn to swim?",
    "Explain gravity to a child.", "Are cats better than dogs?", "Should I drink more water?",
    "Say hello in Spanish.", "Why do we need to sleep?", "Give me an example of a verb.", "What do doctors do?",
    "How do plants grow?", "What is inside the Earth?", "Who was Albert Einstein?",
    "I do not understand. Can you say it in another way?",
]
