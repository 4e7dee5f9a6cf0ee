"""The document check finds each kind of mistake in a small repository, and nothing in the same one without mistakes."""

import pathlib
import sys
import tempfile
import textwrap
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import check_docs  # noqa: E402

SOUND = {
    "README.md": """
        # A program
        See [the API](docs/api.md#the-paths), `chimere cache stat` and `src/base/hash.h`.
        ```
        cat notes.txt | chimere chat MODEL.gguf -p "Sum
        this up" --seed=1   # a comment
        chimere chat --think on off && build/release/chimere cache clear
        ```
        """,
    "ARCHITECTURE.md": """
        # Architecture
        `Hash::add` in `base/hash.h` has `kRounds` = 64; `foo_test.cpp` tests `foo.cpp`. [A
        decision](docs/decisions/0001-one.md).
        ```
        src/
          base/          hash
          server/        http/ and what it answers
        docs/            decisions/
        ```
        """,
    "CONTRIBUTING.md": "# Contributing\n",
    "SECURITY.md": """
        | limit | value | where |
        |---|---|---|
        | body; depth; time | 8 MiB, 1,024; 2 million; 15 s | `HttpConfig` |
        | disk | 5 % of what is free | `src/base/hash.h` |
        """,
    "docs/api.md": """
        # API
        ## The paths
        | path | method | what |
        |---|---|---|
        | [`/v1/chat`](#the-paths) | POST | an answer |
        | `/v1/kept` | POST | keeps an answer |
        | `/v1/kept`, `/v1/kept/{id}` | GET | what is kept |
        | `/v1/kept/{id}` | DELETE | its end |
        """,
    "docs/decisions/0001-one.md": "# One\n",
    "src/base/hash.h": """
        struct Hash { void add(); };
        inline constexpr int kRounds = 64;
        inline int part(int n) { return n / 20; }
        """,
    "src/base/foo.cpp": "",
    "src/base/foo_test.cpp": "",
    "src/server/http/config.h": """
        struct HttpConfig {
          size_t body = size_t{8} << 20;
          size_t depth = 16 * kRounds;
          static constexpr int kRounds = 64;
          long steps = 2'000'000;
          std::chrono::milliseconds time{15'000};
        };
        """,
    "src/server/endpoints.cpp": """
        add_parsed_route<std::variant<Call, Error>>(
            router, services, "/v1/chat", parse, chat);
        add_parsed_route(router, services, "/v1/kept", parse, keep);
        router.add({.method = "GET", .path = "/v1/kept", .handler = list});
        for (const char* method : {"GET", "DELETE"}) {
          router.add({.method = method, .path = "/v1/kept/{id}", .handler = one});
        }
        """,
}

HELP = r"""#!/bin/sh
case "$*" in
  "--help") printf 'Options:\n  --config                    a file\n\nSubcommands:\n  chat                 talk\n  cache                kept\n' ;;
  "chat --help") printf 'Positionals:\n  model TEXT                  file\n\nOptions:\n  -p,--prompt TEXT            words\n  --seed INT=0                seed\n\nThinking:\n  --think TEXT ...            how\n' ;;
  "cache --help") printf 'Subcommands:\n  stat                        how much\n  clear                       all\n' ;;
  "cache stat --help" | "cache clear --help") printf 'Options:\n  --json                      as JSON\n' ;;
  *) exit 2 ;;
esac
"""


class CheckDocs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name).resolve()
        for name, text in SOUND.items():
            self.write(name, text)
        self.program = self.root / "build" / "chimere"
        self.write("build/chimere", HELP)
        self.program.chmod(0o755)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8")

    def add(self, name, text):
        """Adds lines to a sound file, which must make it wrong."""
        self.write(name, textwrap.dedent(SOUND[name]).lstrip("\n") + textwrap.dedent(text))

    def found(self):
        repository = check_docs.Repository(self.root)
        return [problem for check in check_docs.CHECKS for problem in check(repository)]

    def found_commands(self):
        return list(check_docs.check_commands(check_docs.Repository(self.root), str(self.program)))

    def expect(self, problem, found):
        self.assertTrue(any(problem in line for line in found), f"expected '{problem}' in {found}")
        self.assertEqual(len(found), 1, found)

    def test_a_sound_repository_has_no_problems(self):
        self.assertEqual(self.found(), [])
        self.assertEqual(self.found_commands(), [])

    def test_files(self):
        for text in ("`src/base/nothing.h`", "`base/nothing/`", "(nothing_test.cpp)", "`docs/*_nothing.md`"):
            self.add("CONTRIBUTING.md", f"See {text}.\n")
            with self.subTest(text):
                self.expect("CONTRIBUTING.md:2: there is no file or folder", self.found())

    def test_links(self):
        self.add("CONTRIBUTING.md", "[a](docs/none.md)\n")
        self.expect("CONTRIBUTING.md:2: the link docs/none.md leads nowhere", self.found())
        self.add("CONTRIBUTING.md", "[a\nb](docs/api.md#the-pathes)\n")
        self.expect("CONTRIBUTING.md:3: docs/api.md has no heading #the-pathes", self.found())
        self.add("CONTRIBUTING.md", "")
        self.write("docs/alone.md", "# Alone\n")
        self.expect("docs/alone.md:1: no other document links it", self.found())

    def test_tree(self):
        self.write("src/extra/a.h", "")
        self.expect("the tree lacks src/extra/", self.found())
        self.add("ARCHITECTURE.md", "")
        (self.root / "src/extra/a.h").unlink()
        (self.root / "src/extra").rmdir()
        for wrong in ("  gone/", "  base/          hash, gone/ and others", "bench/"):
            text = textwrap.dedent(SOUND["ARCHITECTURE.md"]).replace("docs/            decisions/", wrong)
            self.write("ARCHITECTURE.md", text)
            with self.subTest(wrong):
                self.expect("which does not exist", self.found())

    def test_names(self):
        for name in ("Hash::remove", "NoSuchType", "no_such_field"):
            self.add("CONTRIBUTING.md", f"`{name}`\n")
            with self.subTest(name):
                self.expect(f"CONTRIBUTING.md:2: `{name}`: the sources have no", self.found())

    def test_endpoints(self):
        self.add("docs/api.md", "| `/v1/none` | GET | nothing |\n")
        self.assertIn("docs/api.md:9: the server has no GET /v1/none", self.found())
        self.write("docs/api.md", SOUND["docs/api.md"].replace("DELETE", "GET"))
        self.expect("its table lacks DELETE /v1/kept/{id}", self.found())
        self.add("docs/api.md", "")
        self.add("CONTRIBUTING.md", "`POST /v1/none/ID`\n")
        self.expect("CONTRIBUTING.md:2: the server has no path /v1/none/ID", self.found())
        self.add("CONTRIBUTING.md", "")
        self.add("src/server/endpoints.cpp", "router.add({.method = m, .path = path, .handler = h});\n")
        self.expect("expected a route whose method and path can be read", self.found())

    def test_numbers(self):
        self.write("ARCHITECTURE.md", SOUND["ARCHITECTURE.md"].replace("= 64", "= 32"))
        self.expect("kRounds is not 32", self.found())
        self.add("ARCHITECTURE.md", "")
        for right, wrong in (("8 MiB", "9 MiB"), ("1,024", "1,023"), ("2 million", "3 million"), ("15 s", "16 s"), ("5 %", "6 %")):
            self.write("SECURITY.md", SOUND["SECURITY.md"].replace(right, wrong))
            with self.subTest(wrong):
                self.expect(f"has no {wrong}", self.found())
        self.write("SECURITY.md", SOUND["SECURITY.md"].replace("`HttpConfig`", "`GoneConfig`"))
        self.assertIn("SECURITY.md:3: the sources have no `GoneConfig`", self.found())

    def test_unfilled(self):
        self.add("CONTRIBUTING.md", "Embedded at @SPEED@.\n")
        self.expect("CONTRIBUTING.md:2: @SPEED@ was not filled in", self.found())
        self.add("CONTRIBUTING.md", "`@ROOT@` is replaced; write to ann@example.org or to @ANN.\n```\n@ROOT@\n```\n")
        self.assertEqual(self.found(), [])
        self.write("bench/results/one.md", "# One\n\n@COST_2@\n")
        self.expect("bench/results/one.md:3: @COST_2@ was not filled in", self.found())

    def test_commands(self):
        for line, problem in (
            ("chimere chat --tokens 3", "chimere chat has no option --tokens"),
            ("chimere chat a.gguf b.gguf", "chimere chat takes no word b.gguf"),
            ("chimere speak", "chimere has no command speak"),
            ("chimere cache", "chimere cache is incomplete"),
            ("true | ./build/chimere cache stat --jsn", "chimere cache stat has no option --jsn"),
        ):
            self.add("CONTRIBUTING.md", f"```\n{line}\n```\n")
            with self.subTest(line):
                self.expect(f"CONTRIBUTING.md:3: {problem}", self.found_commands())
        self.add("CONTRIBUTING.md", "`chimere cache` and `chimere COMMAND --help` name commands, `--think` an option.\n")
        self.assertEqual(self.found_commands(), [])
        self.add("CONTRIBUTING.md", "`--thnk N`\n")
        self.expect("CONTRIBUTING.md:2: no command has the option --thnk", self.found_commands())


if __name__ == "__main__":
    unittest.main()
