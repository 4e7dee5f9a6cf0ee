"""Hello world and other small programs in several languages, with the texts and numbers people ask for."""

from . import common

HELLO = {
    "Python": 'print("{t}")', "C": '#include <stdio.h>\n\nint main(void) {{\n    printf("{t}\\n");\n    return 0;\n}}',
    "C++": '#include <iostream>\n\nint main() {{\n    std::cout << "{t}" << std::endl;\n    return 0;\n}}',
    "HTML": "<!DOCTYPE html>\n<html>\n<head>\n  <title>{t}</title>\n</head>\n<body>\n  <h1>{t}</h1>\n</body>\n</html>",
    "shell": '#!/bin/sh\necho "{t}"', "bash": '#!/bin/bash\necho "{t}"', "JavaScript": 'console.log("{t}");',
    "Java": 'public class Main {{\n    public static void main(String[] args) {{\n        System.out.println("{t}");\n    }}\n}}',
    "Go": 'package main\n\nimport "fmt"\n\nfunc main() {{\n    fmt.Println("{t}")\n}}', "Rust": 'fn main() {{\n    println!("{t}");\n}}', "Ruby": 'puts "{t}"', "PHP": '<?php\necho "{t}";',
}
WEIGHTS = {"Python": 5, "C": 5, "HTML": 5, "shell": 3, "bash": 3, "JavaScript": 4, "C++": 2, "Java": 2, "Go": 1, "Rust": 1, "Ruby": 1, "PHP": 1}
HELLO_ASKED = ["Write hello world in {l}.", "Hello world in {l}", "Write a hello world program in {l}.", "How do I print hello world in {l}?", "Show me a hello world program in {l}.", "Can you write hello world in {l}?",
               "Give me a simple {l} program.", "What does hello world look like in {l}?", "I need a small {l} program that says hello.", "Write a {l} program that prints hello world.", "hello world {l}",
               "Please write a first program in {l}.", "Make a hello world in {l}"]
SAY_ASKED = ['Write a {l} program that prints "{t}".', "How do I print {t} in {l}?", 'Print "{t}" in {l}.', "Write {l} code that shows {t}.", 'Make a {l} program that says "{t}".']
TEXTS = ["Hello, world!", "Good morning", "Hi there", "I love tea", "Welcome", "It works", "Done", "Good night", "My name is Anna", "Have a nice day", "Bye", "One two three"]
LOOPS = {
    "Python": "for i in range(1, {n1}):\n    print(i)", "C": '#include <stdio.h>\n\nint main(void) {{\n    for (int i = 1; i <= {n}; i++) {{\n        printf("%d\\n", i);\n    }}\n    return 0;\n}}',
    "JavaScript": "for (let i = 1; i <= {n}; i++) {{\n  console.log(i);\n}}", "bash": "#!/bin/bash\nfor i in $(seq 1 {n}); do\n  echo $i\ndone", "shell": "#!/bin/sh\nfor i in $(seq 1 {n}); do\n  echo $i\ndone",
    "Java": "public class Main {{\n    public static void main(String[] args) {{\n        for (int i = 1; i <= {n}; i++) {{\n            System.out.println(i);\n        }}\n    }}\n}}",
}
LOOP_ASKED = ["Print the numbers from 1 to {n} in {l}.", "Write a loop from 1 to {n} in {l}.", "How do I count to {n} in {l}?", "Write a {l} program that counts from 1 to {n}.", "{l} loop that prints 1 to {n}", "Write a for loop in {l} that goes to {n}."]
ADD = {
    "Python": "def add(a, b):\n    return a + b", "C": "int add(int a, int b) {\n    return a + b;\n}", "JavaScript": "function add(a, b) {\n  return a + b;\n}", "Java": "static int add(int a, int b) {\n    return a + b;\n}",
    "Go": "func add(a int, b int) int {\n    return a + b\n}", "Rust": "fn add(a: i32, b: i32) -> i32 {\n    a + b\n}", "C++": "int add(int a, int b) {\n    return a + b;\n}", "bash": "add() {\n  echo $(($1 + $2))\n}",
}
ADD_ASKED = ["Write a {l} function that adds two numbers together.", "A function in {l} to add two numbers", "How do I add two numbers with a {l} function?", "{l} function for a sum of two numbers", "Can you write an add function in {l}?"]
# (language, what is asked for, code): {x} a name or number that the request and the code share.
SMALL = [
    ("Python", "asks for a name and says hello", 'name = input("What is your name? ")\nprint("Hello, " + name + "!")'),
    ("Python", "prints the numbers in a list", "numbers = [1, 2, 3]\nfor n in numbers:\n    print(n)"),
    ("Python", "adds up a list", "numbers = [1, 2, 3]\nprint(sum(numbers))"),
    ("Python", "checks if a number is even", 'n = 4\nif n % 2 == 0:\n    print("even")\nelse:\n    print("odd")'),
    ("Python", "prints a random number", "import random\n\nprint(random.randint(1, 10))"),
    ("Python", "reads a file and prints it", 'with open("file.txt") as f:\n    print(f.read())'),
    ("Python", "writes a text to a file", 'with open("file.txt", "w") as f:\n    f.write("Hello")'),
    ("Python", "reverses a word", 'word = "hello"\nprint(word[::-1])'),
    ("Python", "counts the letters of a word", 'word = "hello"\nprint(len(word))'),
    ("Python", "prints the current date", "import datetime\n\nprint(datetime.date.today())"),
    ("Python", "finds the largest number in a list", "numbers = [4, 9, 2]\nprint(max(numbers))"),
    ("Python", "sorts a list", "numbers = [3, 1, 2]\nnumbers.sort()\nprint(numbers)"),
    ("Python", "waits for one second", "import time\n\ntime.sleep(1)"),
    ("Python", "turns a text into capital letters", 'text = "hello"\nprint(text.upper())'),
    ("Python", "prints the squares from 1 to 5", "for i in range(1, 6):\n    print(i * i)"),
    ("C", "adds two numbers and prints the result", '#include <stdio.h>\n\nint main(void) {\n    int a = 2, b = 3;\n    printf("%d\\n", a + b);\n    return 0;\n}'),
    ("C", "reads a number and prints it", '#include <stdio.h>\n\nint main(void) {\n    int n;\n    scanf("%d", &n);\n    printf("%d\\n", n);\n    return 0;\n}'),
    ("C", "checks if a number is even", '#include <stdio.h>\n\nint main(void) {\n    int n = 4;\n    if (n % 2 == 0) {\n        printf("even\\n");\n    } else {\n        printf("odd\\n");\n    }\n    return 0;\n}'),
    ("HTML", "shows a heading and a paragraph", "<!DOCTYPE html>\n<html>\n<body>\n  <h1>My page</h1>\n  <p>This is a paragraph.</p>\n</body>\n</html>"),
    ("HTML", "has a link", '<!DOCTYPE html>\n<html>\n<body>\n  <a href="https://example.com">A link</a>\n</body>\n</html>'),
    ("HTML", "has a list of three items", "<!DOCTYPE html>\n<html>\n<body>\n  <ul>\n    <li>One</li>\n    <li>Two</li>\n    <li>Three</li>\n  </ul>\n</body>\n</html>"),
    ("HTML", "has a button", "<!DOCTYPE html>\n<html>\n<body>\n  <button>Click me</button>\n</body>\n</html>"),
    ("HTML", "has a form with a name field", '<!DOCTYPE html>\n<html>\n<body>\n  <form>\n    <input type="text" name="name">\n    <button>Send</button>\n  </form>\n</body>\n</html>'),
    ("HTML", "shows a picture", '<!DOCTYPE html>\n<html>\n<body>\n  <img src="cat.jpg" alt="A cat">\n</body>\n</html>'),
    ("shell", "lists all files", "#!/bin/sh\nls -la"), ("shell", "prints the date", "#!/bin/sh\ndate"), ("shell", "makes a folder", "#!/bin/sh\nmkdir -p new_folder"),
    ("bash", "counts the files in a folder", "#!/bin/bash\nls | wc -l"), ("bash", "says hello to a name", '#!/bin/bash\necho "Hello, $1!"'), ("bash", "copies a file", "#!/bin/bash\ncp old.txt new.txt"),
    ("bash", "checks if a file exists", '#!/bin/bash\nif [ -f "file.txt" ]; then\n  echo "It exists."\nfi'),
    ("JavaScript", "shows an alert", 'alert("Hello!");'), ("JavaScript", "adds up a list", "const numbers = [1, 2, 3];\nlet sum = 0;\nfor (const n of numbers) {\n  sum += n;\n}\nconsole.log(sum);"),
    ("JavaScript", "checks if a number is even", 'const n = 4;\nconsole.log(n % 2 === 0 ? "even" : "odd");'), ("JavaScript", "prints the current date", "console.log(new Date());"),
    ("JavaScript", "reverses a word", 'const word = "hello";\nconsole.log(word.split("").reverse().join(""));'),
    ("CSS", "makes the text red", "p {\n  color: red;\n}"), ("CSS", "makes the background blue", "body {\n  background-color: blue;\n}"), ("CSS", "centers the text", "p {\n  text-align: center;\n}"),
    ("SQL", "finds all users older than 30", "SELECT * FROM users WHERE age > 30;"), ("SQL", "counts the orders", "SELECT COUNT(*) FROM orders;"),
]
SMALL_ASKED = ["Write a {l} program that {w}.", "I need {l} code that {w}.", "How do I write a program in {l} that {w}?", "{l}: {w}", "Show me {l} code that {w}.", "Can you write something in {l} that {w}?", "Make a small {l} script that {w}.",
               "Please write {l} code that {w}."]
LEADS = ["", "", "Here it is:\n\n", "Here is a small program:\n\n", "This does it:\n\n", "In {l}:\n\n"]
MARK = {"shell": "sh", "C++": "cpp", "JavaScript": "javascript"}
EXPLAIN = {"Python": "print writes a text to the screen.", "C": "printf writes the text, and main is where the program starts.", "HTML": "The h1 tag makes a large heading.", "shell": "echo writes the text to the screen.",
           "bash": "echo writes the text to the screen.", "JavaScript": "console.log writes the text to the console.", "Java": "System.out.println writes the text, and main is where the program starts.",
           "C++": "std::cout writes the text.", "Go": "fmt.Println writes the text.", "Rust": "println! writes the text.", "Ruby": "puts writes the text.", "PHP": "echo writes the text."}
RUN = {"Python": "Save it as hello.py and run python3 hello.py.", "C": "Save it as hello.c, then run gcc hello.c -o hello and ./hello.", "HTML": "Save it as index.html and open it in a browser.",
       "shell": "Save it as hello.sh and run sh hello.sh.", "bash": "Save it as hello.sh and run bash hello.sh.", "JavaScript": "Save it as hello.js and run node hello.js.", "Java": "Save it as Main.java, then run javac Main.java and java Main.",
       "C++": "Save it as hello.cpp, then run g++ hello.cpp -o hello and ./hello.", "Go": "Save it as main.go and run go run main.go.", "Rust": "Save it as main.rs, then run rustc main.rs and ./main.", "Ruby": "Save it as hello.rb and run ruby hello.rb.",
       "PHP": "Save it as hello.php and run php hello.php."}


PATTERNS = {  # what -> Python, JavaScript, C condition of a loop to n
    "all even numbers": ("range(2, {n1}, 2)", "let i = 2; i <= {n}; i += 2", "int i = 2; i <= {n}; i += 2"), "all odd numbers": ("range(1, {n1}, 2)", "let i = 1; i <= {n}; i += 2", "int i = 1; i <= {n}; i += 2"),
    "every third number": ("range(3, {n1}, 3)", "let i = 3; i <= {n}; i += 3", "int i = 3; i <= {n}; i += 3"), "the numbers": ("range(1, {n1})", "let i = 1; i <= {n}; i++", "int i = 1; i <= {n}; i++"),
    "the multiples of 5": ("range(5, {n1}, 5)", "let i = 5; i <= {n}; i += 5", "int i = 5; i <= {n}; i += 5"),
}
PATTERN_ASKED = ["{l} code to print {w} up to {n}", "Print {w} up to {n} in {l}.", "Write a {l} program that prints {w} up to {n}.", "How do I print {w} up to {n} with {l}?", "Show {w} from 1 to {n} in {l}, please."]
COMMAND_ASKED = ["What is the command to {w}?", "Which command do I use to {w} on Linux?", "How do I {w} in the terminal?", "linux command to {w}", "How can I {w} on the command line?", "What do I type to {w} in a shell?", "Command to {w} on linux?", "Tell me the command to {w}."]
COMMANDS = [tuple(part.strip() for part in line.split(";")) for line in """list the files in a folder;ls
see which files are in a folder;ls
list all files in a directory;ls -a
see hidden files;ls -a
show the current folder;pwd
see where I am;pwd
change to another folder;cd folder
go up one folder;cd ..
make a new folder;mkdir new_folder
create a directory;mkdir new_folder
copy a file;cp old.txt new.txt
move a file;mv old.txt folder/
rename a file;mv old.txt new.txt
delete a file;rm file.txt
remove a folder;rm -r folder
show the content of a file;cat file.txt
read a text file;cat file.txt
see the first lines of a file;head file.txt
see the last lines of a file;tail file.txt
count the lines of a file;wc -l file.txt
search for a word in a file;grep "word" file.txt
find a file by its name;find . -name "file.txt"
see the free disk space;df -h
see the running programs;ps aux
stop a program;kill PID
show the date;date
make a script executable;chmod +x script.sh
create an empty file;touch file.txt
see who I am;whoami
clear the screen;clear
download a file;curl -O URL
see the size of a folder;du -sh folder
edit a text file;nano file.txt
install a package on Debian;sudo apt install package""".splitlines()]


def block(rng, language, code):
    mark = MARK.get(language, language.lower())
    return rng.choice(LEADS).format(l=language) + f"```{mark}\n{code}\n```"


def exchange(rng):
    roll = rng.random()
    language = rng.choices(sorted(HELLO), [WEIGHTS[k] for k in sorted(HELLO)])[0]
    said = rng.choice([language, language, language.lower()])
    if roll < 0.32:
        text = rng.choice(["Hello, world!", "Hello, world!", "Hello world"])
        turns = [(rng.choice(HELLO_ASKED).format(l=said), block(rng, language, HELLO[language].format(t=text)))]
        if rng.random() < 0.35:
            pick = rng.random()
            if pick < 0.3:
                turns.append((rng.choice(["What does it do?", "Explain it.", "Explain that, please.", "How does it work?"]), EXPLAIN[language]))
            elif pick < 0.6:
                turns.append((rng.choice(["How do I run it?", "How can I start it?", "How do I run that?"]), RUN[language]))
            else:
                other = rng.choice([k for k in sorted(HELLO) if k != language])
                turns.append((rng.choice(["And in {}?", "Now in {}.", "The same in {}, please.", "What about {}?"]).format(other), block(rng, other, HELLO[other].format(t=text))))
        return turns, f"A program in {language} that prints a text."
    if roll < 0.45:
        text = rng.choice(TEXTS)
        return [(rng.choice(SAY_ASKED).format(l=said, t=text), block(rng, language, HELLO[language].format(t=text)))], f"A {language} program that prints {text}."
    if roll < 0.54:
        language = rng.choice(sorted(LOOPS))
        n = rng.randint(3, 20)
        return [(rng.choice(LOOP_ASKED).format(l=language, n=n), block(rng, language, LOOPS[language].format(n=n, n1=n + 1)))], f"A loop from 1 to {n} in {language}."
    if roll < 0.63:
        what, n = rng.choice(sorted(PATTERNS)), rng.randint(10, 60)
        language = rng.choice(["Python", "Python", "JavaScript", "C"])
        python, script, c = (text.format(n=n, n1=n + 1) for text in PATTERNS[what])
        code = {"Python": f"for i in {python}:\n    print(i)", "JavaScript": f"for ({script}) {{\n  console.log(i);\n}}",
                "C": f'#include <stdio.h>\n\nint main(void) {{\n    for ({c}) {{\n        printf("%d\\n", i);\n    }}\n    return 0;\n}}'}[language]
        return [(common.typed(rng, rng.choice(PATTERN_ASKED).format(l=language, w=what, n=n)), block(rng, language, code))], f"A loop in {language} over {what} up to {n}."
    if roll < 0.7:
        what, command = rng.choice(COMMANDS)
        return [(common.typed(rng, rng.choice(COMMAND_ASKED).format(w=what)), rng.choice([f"Use `{command}`.", f"The command is `{command}`.", f"```sh\n{command}\n```"]))], f"The command for this is {command}."
    if roll < 0.75:
        language = rng.choice(sorted(ADD))
        return [(rng.choice(ADD_ASKED).format(l=language), block(rng, language, ADD[language]))], f"A function in {language} that adds a and b."
    language, what, code = rng.choice(SMALL)
    return [(common.typed(rng, rng.choice(SMALL_ASKED).format(l=language, w=what)), block(rng, language, code))], f"In {language}, a program that {what}."


def dialogues(rng, count):
    for _ in range(count):
        turns, thought = exchange(rng)
        yield common.turns_to_dialogue(rng, turns, "programs", thought)
