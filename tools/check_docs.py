#!/usr/bin/env python3
"""Compares the documents with the repository, and exits with 1 where they disagree.

usage: check_docs.py [--root REPOSITORY]                    everything that can be read from the sources
       check_docs.py [--root REPOSITORY] --program CHIMERE  command lines and options, against the program's --help

It reads README.md, ARCHITECTURE.md, CONTRIBUTING.md, SECURITY.md, docs/**/*.md and INNER_DOCUMENTS. Without a program:

  files       a file or folder that is named exists: from the root, from src/, from src/backend/, beside the document,
              or, for a bare name, anywhere. NAME and * in a path stand for anything.
  links       a relative link leads to a file, and its #anchor to a heading of it; every document is linked or named.
  tree        the drawing of the tree in ARCHITECTURE.md has every folder of src/ and no other.
  names       Type::member, snake_case and CamelCase in `code` occur somewhere in the sources.
  endpoints   the table of paths in docs/api.md is what the router registers; other documents name no other paths.
  numbers     `kName` = 16 is what the source says; each limit of SECURITY.md occurs in the file it names.
  unfilled    no Markdown file of the repository has a mark such as @SPEED@ outside of code: a figure was to be written there.

With a program, every `chimere ...` in `code` or in a block of commands must consist of sub-commands and options that
exist, and an option that stands alone (`--state-gb`) must belong to some sub-command.
"""

import argparse
import functools
import os
import pathlib
import re
import shlex
import subprocess
import sys

ROOT_DOCUMENTS = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"]
INNER_DOCUMENTS = ["assets/engram/README.md", "bench/results/README.md"]
CODE_FOLDERS = ["apps", "bench", "cmake", "scripts", "src", "studio", "tests", "tools", "training"]
CODE_FILES = {".h", ".cpp", ".cu", ".cuh", ".py", ".sh", ".js", ".mjs", ".ts", ".tsx", ".cmake", ".txt", ".json", ".in"}
NOT_OURS = {".git", "node_modules", "build", "__pycache__"}

# Words that look like files, members or options and are none of ours.
PRODUCTS = {"llama.cpp", "ik_llama.cpp", "Node.js", "highlight.js", "hyperloglog.c"}
FOREIGN_NAMES = {"std::expected", "std::source_location", "CamelCase", "snake_case", "weight_scale_inv"}
PAGE_ROUTES = "page_endpoints.cpp"  # files of the web page, whose names the build makes

FILE_ENDING = r"(?:h|cpp|cu|cuh|py|sh|js|mjs|ts|tsx|cmake|md|csv|svg|png|yml)"
PATH_WORD = re.compile(r"[\w.*{}\-/]+")
NAMED_FILE = re.compile(rf"(?<![\w./*$-])((?:[\w.*-]+/)*[\w*-][\w.*-]*\.{FILE_ENDING})(?![\w/-])")
PLACEHOLDER = re.compile(r"\b(?:[A-Z]{3,}|foo)(?=[_./]|$)")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CODE_SPAN = re.compile(r"(`+)(.+?)\1")
IDENTIFIER = re.compile(r"^([A-Za-z_]\w*)((?:::~?\w+)*)(?:\(\))?$")
CONSTANT = re.compile(r"`(k[A-Z]\w+)` = ([\d,]+)")
UNFILLED = re.compile(r"@[A-Z][A-Z0-9_]*@")
HTTP_PATH = re.compile(r"(?<![\w.}])(/(?:v1/[\w{}./-]+|health|livez|readyz|metrics|tokenize|detokenize))\b/?")


class Document:
    """A Markdown file: its lines, which of them lie inside fenced blocks, and its headings."""

    def __init__(self, path, root):
        self.path = path
        self.name = path.relative_to(root).as_posix()
        self.lines = path.read_text(encoding="utf-8").splitlines()
        self.blocks = []  # (language, number of the first line, lines)
        self.text = []  # (number, line) outside of the blocks
        block = None
        for number, line in enumerate(self.lines, start=1):
            fence = re.match(r"\s*```(\S*)", line)
            if fence and block is None:
                block = (fence[1], number + 1, [])
            elif fence:
                self.blocks.append(block)
                block = None
            elif block is not None:
                block[2].append(line)
            else:
                self.text.append((number, line))

    def at(self, number):
        return f"{self.name}:{number}"

    def spans(self):
        """Inline code, with the number of its line."""
        for number, line in self.text:
            for match in CODE_SPAN.finditer(line):
                yield number, match[2].strip()

    def links(self):
        """Targets of links, which may reach over the end of a line, with the number of the line they end on."""
        text = "\n".join(CODE_SPAN.sub(lambda m: m[2].replace("]", " "), line) for _, line in self.text)
        for match in LINK.finditer(text):
            yield self.text[text.count("\n", 0, match.end())][0], match[1]

    @functools.cached_property
    def anchors(self):
        """What GitHub calls the headings: small letters, blanks as '-', no other punctuation."""
        found = {}
        for _, line in self.text:
            heading = re.match(r"#{1,6}\s+(.*)", line)
            if heading:
                plain = LINK.sub(lambda m: m[0][1 : m[0].index("]")], heading[1]).replace("`", "")
                slug = re.sub(r"[^\w\- ]", "", plain.strip().lower()).replace(" ", "-")
                found[slug if slug not in found else f"{slug}-{found[slug]}"] = found.get(slug, 0) + 1
        return set(found)


class Repository:
    def __init__(self, root):
        self.root = root
        documents = [root / name for name in ROOT_DOCUMENTS + INNER_DOCUMENTS if (root / name).is_file()]
        documents += sorted((root / "docs").rglob("*.md"))
        self.documents = [Document(path, root) for path in documents]

    @functools.cached_property
    def files(self):
        found = []
        for folder, folders, names in os.walk(self.root):
            folders[:] = [name for name in folders if name not in NOT_OURS]
            found += [pathlib.Path(folder) / name for name in names]
        return found

    @functools.cached_property
    def file_names(self):
        return {path.name for path in self.files}

    @functools.cached_property
    def sources(self):
        """Text of the code by path from the root."""
        found = {}
        for path in self.files:
            name = path.relative_to(self.root)
            if name.parts[0] in CODE_FOLDERS and (path.suffix in CODE_FILES or not path.suffix):
                found[name.as_posix()] = path.read_text(encoding="utf-8", errors="replace")
        return found

    @functools.cached_property
    def words(self):
        found = set()
        for name, text in self.sources.items():
            if not name.startswith("tools/tests/") and name != "tools/check_docs.py":
                found.update(re.findall(r"[A-Za-z_]\w*", text))
        return found

    def finds(self, document, name):
        """Whether a path or a pattern of one leads to a file or a folder."""
        if not (self.root / name).exists():
            name = PLACEHOLDER.sub("*", name.rstrip("/"))
        if "/" not in name and "*" not in name and name in self.file_names:
            return True
        for base in (self.root, self.root / "src", self.root / "src/backend", document.path.parent):
            if "*" in name:
                if any(base.glob(name if "/" in name else "**/" + name)):
                    return True
            elif (base / name).exists():
                return True
        folder = name if "/" in name else None
        return folder is not None and any(f"/{folder}" in f"/{path}" for path in self.sources)

    @functools.cached_property
    def first_folders(self):
        """Folders that a path in a document may begin with."""
        found = set()
        for base in (self.root, self.root / "src", self.root / "src/backend"):
            if base.is_dir():
                found.update(p.name for p in base.iterdir() if p.is_dir() and p.name not in NOT_OURS)
        return found


# --- files, links, tree, names ---------------------------------------------------------------------------------------


def named_paths(repository, document):
    """Paths that a document names: (line number, path)."""
    for number, line in document.text:
        plain = LINK.sub(" ", line)
        for match in NAMED_FILE.finditer(plain):
            if match[1] not in PRODUCTS and not re.search(r"https?://\S*$", plain[: match.start()]):
                yield number, match[1]
    for number, span in document.spans():
        for word in span.split():
            if not PATH_WORD.fullmatch(word) or "/" not in word or "..." in word or "//" in word:
                continue
            if word.split("/")[0] in repository.first_folders and not NAMED_FILE.fullmatch(word):
                yield number, word


def check_files(repository):
    for document in repository.documents:
        for number, path in dict.fromkeys(named_paths(repository, document)):
            if not repository.finds(document, path):
                yield f"{document.at(number)}: there is no file or folder {path}"


def check_links(repository):
    by_path = {document.path.resolve(): document for document in repository.documents}
    linked = set()
    for document in repository.documents:
        for number, link in document.links():
            target, _, anchor = link.partition("#")
            if re.match(r"[a-z]+:", target):
                continue
            path = (document.path.parent / target).resolve() if target else document.path.resolve()
            if not path.exists():
                yield f"{document.at(number)}: the link {link} leads nowhere"
                continue
            if path != document.path.resolve():
                linked.add(path)
            if anchor and path in by_path and anchor not in by_path[path].anchors:
                yield f"{document.at(number)}: {by_path[path].name} has no heading #{anchor}"
    for document in repository.documents:
        if document.name not in ROOT_DOCUMENTS and document.path.resolve() not in linked:
            yield f"{document.at(1)}: no other document links it"


def check_tree(repository):
    document = next((d for d in repository.documents if d.name == "ARCHITECTURE.md"), None)
    drawings = [b for b in document.blocks if any(line.startswith("src/") for line in b[2])] if document else []
    if not drawings:
        yield "ARCHITECTURE.md: expected a drawing of the tree, with a line that begins with src/"
        return
    _, first, lines = drawings[0]
    drawn, parents = set(), []  # parents: (indentation, path)
    for number, line in enumerate(lines, start=first):
        match = re.match(r"( {0,6})([\w./-]+/)(?= |$)", line)  # further in, a line goes on with the description above
        if match:
            while parents and parents[-1][0] >= len(match[1]):
                parents.pop()
            parents.append((len(match[1]), (parents[-1][1] if parents else "") + match[2]))
            drawn.add(parents[-1][1])
        path = parents[-1][1] if parents else ""
        described = re.findall(r"(?<=[\s(])([\w-]+/)(?=[\s:,;)]|$)", line[match.end() if match else 0 :])
        for folder in [path, *(path + name for name in described)]:
            if not (repository.root / folder).is_dir():
                yield f"{document.at(number)}: the tree draws {folder}, which does not exist"
    for folder in sorted(p for p in (repository.root / "src").iterdir() if p.is_dir()):
        if f"src/{folder.name}/" not in drawn:
            yield f"{document.at(first)}: the tree lacks src/{folder.name}/"


def is_name(word):
    """Whether a word of inline code is meant as a name in the sources, not as a value or an example."""
    return "::" in word or "_" in word.strip("_") or re.search(r"[a-z][A-Z]", word) is not None


def check_names(repository):
    for document in repository.documents:
        for number, span in document.spans():
            match = IDENTIFIER.match(span)
            if not match or not is_name(span) or span in FOREIGN_NAMES or PLACEHOLDER.search(span):
                continue
            for part in re.findall(r"\w+", span):
                if part not in repository.words:
                    yield f"{document.at(number)}: `{span}`: the sources have no {part}"


# --- endpoints -------------------------------------------------------------------------------------------------------


def registered_routes(repository):
    """(method, path) of every route in src/server, and problems with those that can not be read."""
    routes, problems = set(), []
    for name, text in repository.sources.items():
        if not name.startswith("src/server/") or not name.endswith(".cpp") or name.endswith("_test.cpp"):
            continue
        for match in re.finditer(r"add_parsed_route(?:<[^(]*>)?\(\s*router,\s*services,\s*\"([^\"]+)\"", text):
            routes.add(("POST", match[1]))
        for match in re.finditer(r"router\.add\(\s*\{\s*\.method = ([^,]+),\s*\.path = ([^,]+),", text):
            line = text.count("\n", 0, match.start()) + 1
            method, path = match[1], match[2]
            methods = [method.strip('"')]
            if not method.startswith('"'):
                loops = re.findall(rf"for \(const char\* {method} : \{{([^}}]*)\}}\)", text[: match.start()])
                methods = re.findall(r'"(\w+)"', loops[-1]) if loops else []
            if path.startswith('"') and methods:
                routes.update((m, path.strip('"')) for m in methods)
            elif not name.endswith(PAGE_ROUTES):
                problems.append(f"{name}:{line}: expected a route whose method and path can be read here")
    return routes, problems


def check_endpoints(repository):
    routes, problems = registered_routes(repository)
    yield from problems
    document = next((d for d in repository.documents if d.name == "docs/api.md"), None)
    if not document or not routes:
        yield "docs/api.md: expected a table of paths, and routes in src/server"
        return
    listed = {}
    for number, line in document.text:
        row = re.match(r"\| (.*?) \| ([A-Z]+(?:, [A-Z]+)*) \|", line)
        for path in re.findall(r"`(/[^`]*)`", row[1]) if row else []:
            listed.update({(method, path): number for method in row[2].split(", ")})
    for method, path in sorted(routes - listed.keys()):
        yield f"{document.name}: its table lacks {method} {path}"
    for (method, path), number in listed.items():
        if (method, path) not in routes:
            yield f"{document.at(number)}: the server has no {method} {path}"
    patterns = [re.compile(re.sub(r"\\\{id\\\}", r"[^/]+", re.escape(path))) for _, path in routes]
    prefixes = {path.rsplit("/", 1)[0] for _, path in routes}  # "paths below /v1/messages"
    for other in repository.documents:
        for number, span in other.spans():
            for match in HTTP_PATH.finditer(span):
                path = match[1].rstrip("./")
                if not any(p.fullmatch(path) for p in patterns) and path not in prefixes:
                    yield f"{other.at(number)}: the server has no path {path}"


# --- numbers ---------------------------------------------------------------------------------------------------------

UNITS = {
    "KiB": [1 << 10], "MiB": [1 << 20, 1], "GiB": [1 << 30, 1], "GB": [10**9, 1 << 30, 1], "million": [10**6],
    "s": [1, 1000], "minute": [1, 60], "hour": [1, 60, 3600], "": [1],
}  # fmt: skip
TERM = r"\d[\d']*(?:\.\d+)?(?:e\d+)?"
EXPRESSION = re.compile(rf"(?<![\w.]){TERM}[uUlL]*(?:\s*(?:<<|\*)\s*{TERM}[uUlL]*)*")


def value(expression):
    """Of a constant such as 16 << 10 or 2'000'000."""
    total = None
    for operator, term in re.findall(rf"(<<|\*|^)\s*({TERM})", expression.strip()):
        number = float(term.replace("'", ""))
        total = number if total is None else total * (2**number if operator == "<<" else number)
    return total


def constants_of(text):
    text = re.sub(rf"\b[\w:]+\{{({TERM})\}}", r"\1", text)  # size_t{64} << 20
    for name, number in re.findall(rf"\b(k[A-Z]\w*) = ({TERM});", text):  # 16 * kMaxPlaces
        text = re.sub(rf"\b{name}\b(?! =)", number, text)
    return {value(match[0]) for match in EXPRESSION.finditer(text)}


def stated_numbers(cell):
    """Numbers of a cell with all values they may have in the source: 16 KiB is 16384, 2 million 2000000."""
    cell = re.sub(r"`[^`]*`", "", cell)
    number = r"(?<![\w.,])(\d[\d,]*(?:\.\d+)?)"
    for match in re.finditer(rf"{number}\s?(KiB|MiB|GiB|GB|million|minute|hour|s\b|%)?", cell):
        amount = float(match[1].rstrip(",").replace(",", ""))
        shares = {amount, amount / 100, 100 / amount} if match[2] == "%" else set()
        yield match[0].strip(" ,"), shares or {amount * factor for factor in UNITS[match[2] or ""]}


def places(repository, span):
    """Sources that the last column of the table of limits means by a path, a type or a member."""
    product = {n: t for n, t in repository.sources.items() if n.startswith("src/") and "_test." not in n}
    if "." in span:
        pattern = re.compile("(.*/)?" + re.escape(span).replace(r"\*", "[^/]*") + "$")
        meant = [n for n in product if pattern.match(n)]
    else:
        owner = span.split("::")[0]
        definition = re.compile(rf"\b(?:struct|class) {owner}\b[^;(]*\{{|^[\w:<>]+ {span}\(.*\{{$", re.M)
        meant = [n for n, t in product.items() if owner in t and definition.search(t)]
    stems = {n.rsplit(".", 1)[0] for n in meant}  # a header and its source are one place
    return {n: t for n, t in product.items() if n.rsplit(".", 1)[0] in stems}


def check_numbers(repository):
    for document in repository.documents:
        for number, line in document.text:
            for name, stated in CONSTANT.findall(line):
                found = {
                    value(m)
                    for text in repository.sources.values()
                    if name in text
                    for m in re.findall(rf"\b{name}\s*=\s*([^;,]+)[;,]", text)
                    if EXPRESSION.match(m)
                }
                if float(stated.rstrip(",").replace(",", "")) not in found:
                    yield f"{document.at(number)}: {name} is not {stated} in the sources"
            if document.name != "SECURITY.md" or not line.startswith("|") or line.startswith("|---"):
                continue
            cells = [cell.strip() for cell in line.strip("|").split(" | ")]
            if len(cells) != 3 or cells[2] == "where":
                continue
            text = ""
            for span in re.findall(r"`([^`]+)`", cells[2]):
                found = places(repository, span)
                if not found:
                    yield f"{document.at(number)}: the sources have no `{span}`"
                text += "\n".join(found.values())
            known = constants_of(text)
            for words, values in stated_numbers(cells[1]):
                if not values & known:
                    yield f"{document.at(number)}: {cells[2]} has no {words}"


# --- command lines ---------------------------------------------------------------------------------------------------


class Command:
    """What a sub-command's --help says: its sub-commands, its positionals, and its options with their values."""

    def __init__(self, program, words=()):
        run = subprocess.run([program, *words, "--help"], capture_output=True, text=True, timeout=60)
        if run.returncode != 0:
            raise RuntimeError(f"{program} {' '.join(words)} --help: exit code {run.returncode}, {run.stderr.strip()}")
        self.words = words
        self.positionals, self.options, names = 0, {}, []
        section = ""
        for line in run.stdout.splitlines():
            if re.match(r"\S.*:$", line):
                section = line
            elif section == "Positionals:" and re.match(r"  \S", line):
                self.positionals = 10**6 if " ... " in line[:40] else self.positionals + 1
            elif section == "Subcommands:" and re.match(r"  \S", line):
                names.append(line.split()[0])
            elif re.match(r"  -", line):  # below "Options:" or the name of a group of them
                spelt, _, rest = line.strip().partition(" ")
                kind = re.match(r"(?:TEXT|INT|UINT|FLOAT|NUMBER|BOOLEAN)\S*((?: \.\.\.| x \d+)?)", rest)
                values = 0 if not kind else 10**6 if "..." in kind[1] else int(kind[1][3:] or 1)
                self.options.update({name: values for name in spelt.split(",")})
        self.commands = {name: Command(program, (*words, name)) for name in names}

    def all_options(self):
        return set(self.options).union(*(c.all_options() for c in self.commands.values()))

    def problems(self, words, may_end_early, outer=None):
        """What is wrong with the words behind the program's name. Options of the command above may follow too."""
        options = {**(outer or {}), **self.options}
        name = " ".join(("chimere", *self.words))
        words, n_positionals, values = list(words), 0, 0
        while words:
            word = words.pop(0)
            if re.match(r"--?[A-Za-z]", word) and not re.match(r"-\d", word):
                option, equals, _ = word.partition("=")
                if option not in options:
                    yield f"{name} has no option {option}"
                    return
                values = 0 if equals else options[option]
                if values and words:
                    words.pop(0)
                    values -= 1
            elif values and not self.commands:
                values -= 1
            elif word in self.commands:
                yield from self.commands[word].problems(words, may_end_early, options)
                return
            elif re.fullmatch(r"[A-Z]+|\.\.\.", word) and self.commands:
                return  # a placeholder
            elif self.commands:
                yield f"{name} has no command {word}"
                return
            elif word != "..." and not word.startswith("["):
                n_positionals += 1
                if n_positionals > self.positionals:
                    yield f"{name} takes no word {word}"
                    return
        if self.commands and not may_end_early:
            yield f"{name} is incomplete: expected one of {', '.join(self.commands)}"


def chimere_calls(text):
    """Words behind each `chimere` of a shell command; None where its quotes do not close."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    calls, words = [], None
    try:
        for token in lexer:
            if set(token) <= set("();<>|&"):
                words = None
            elif words is not None:
                words.append(token)
            elif token == "chimere" or token.endswith("/chimere"):
                words = []
                calls.append(words)
    except ValueError:
        return None
    return calls


def command_lines(document):
    """(line number, words, may end early): calls in blocks of commands, and in inline code, which may only name one."""
    for language, first, lines in document.blocks:
        if language not in ("", "sh", "bash", "console"):
            continue
        number = 0
        while number < len(lines):
            begin, text = number, lines[number]
            number += 1
            if not re.search(r"(?:^|[\s/|(])chimere\s", text):
                continue
            while (text.endswith("\\") or chimere_calls(text) is None) and number < len(lines):
                text = text.removesuffix("\\") + "\n" + lines[number]
                number += 1
            for words in chimere_calls(text) or []:
                yield first + begin, words, False
    for number, span in document.spans():
        if re.search(r"(?:^|[\s/|(])chimere\s", span):
            for words in chimere_calls(span.replace("\\|", "|")) or []:
                yield number, words, True


def check_commands(repository, program):
    top = Command(program)
    everything = top.all_options()
    # Options of ./run and of tools that stand beside the program's own.
    for name in ("run", "scripts/setup.sh", "tests/api/run", *(n for n in repository.sources if n.startswith("tools/"))):
        if (repository.root / name).is_file():
            everything |= set(re.findall(r"--[a-z][\w-]+", (repository.root / name).read_text(encoding="utf-8")))
    n_calls = 0
    for document in repository.documents:
        for number, words, may_end_early in command_lines(document):
            n_calls += 1
            for problem in top.problems(words, may_end_early):
                yield f"{document.at(number)}: {problem}"
        for number, span in document.spans():
            alone = re.match(r"(--[a-z][a-z-]+[a-z])(-?\.\.\.)?(?=$|[ =\[])", span)
            if not alone:
                continue
            if alone[1] not in everything and not (alone[2] and any(o.startswith(alone[1]) for o in everything)):
                yield f"{document.at(number)}: no command has the option {alone[1]}"
    if n_calls == 0:
        yield "README.md: expected command lines of chimere"


def check_unfilled(repository):
    for path in sorted(path for path in repository.files if path.suffix == ".md"):
        document = Document(path, repository.root)
        for number, line in document.text:
            for mark in UNFILLED.findall(CODE_SPAN.sub(" ", line)):
                yield f"{document.at(number)}: {mark} was not filled in"


CHECKS = [check_files, check_links, check_tree, check_names, check_endpoints, check_numbers, check_unfilled]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    parser.add_argument("--program", help="the chimere program; checks command lines instead of files")
    arguments = parser.parse_args()
    repository = Repository(arguments.root.resolve())
    checks = [lambda r: check_commands(r, arguments.program)] if arguments.program else CHECKS
    found = [problem for check in checks for problem in check(repository)]
    for problem in found:
        print(problem)
    if found:
        print(f"{len(found)} statements of the documents are not so", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
