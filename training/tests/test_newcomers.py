"""First questions: every dialogue is well formed, and what can be worked out again is right."""

import pathlib
import random
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))

from nano import chatml
from nano.reserved import is_reserved
from nano.synthetic import common, newcomer_code, newcomer_sums, newcomers, relations, tool_choice
from nano.synthetic.facts import general_facts
from nano.synthetic.fact import BANKS, key_of, plain


class Newcomers(unittest.TestCase):
    def test_every_shape_gives_whole_dialogues(self):
        rng = random.Random(1)
        for _, shape in newcomers.SHAPES:
            for _ in range(30):
                turns, thought = shape(rng, None)
                self.assertTrue(thought)
                text = chatml.render(common.turns_to_dialogue(rng, turns, "newcomers", thought))
                self.assertNotRegex(text, r"\{\w\}")

    def test_sums_are_right(self):
        rng = random.Random(2)
        sums = re.compile(r"(\d+) ([-+x/]) (\d+) = (\d+)")
        seen = 0
        for _, shape in newcomer_sums.SUMS:
            for _ in range(60):
                turns, thought = shape(rng, None)
                for a, op, b, c in sums.findall(" ".join([thought] + [answer for _, answer in turns])):
                    seen += 1
                    self.assertEqual({"+": int(a) + int(b), "-": int(a) - int(b), "x": int(a) * int(b), "/": int(a) // int(b)}[op], int(c), thought)
        self.assertGreater(seen, 300)

    def test_python_that_is_shown_runs(self):
        for name, _, parameters, expression, *_ in newcomer_code.FUNCTIONS:
            compile(f"def {name}({parameters}):\n    return {expression}", name, "exec")
        for _, source in newcomer_code.LONGER.values():
            compile(source, "longer", "exec")
        space = {}
        exec(newcomer_code.LONGER["is_prime"][1], space)
        self.assertEqual([n for n in range(12) if space["is_prime"](n)], [2, 3, 5, 7, 11])

    def test_trivia_has_keys(self):
        rows = general_facts(BANKS / "facts_trivia.txt")
        self.assertGreater(len(rows), 300)
        for row in rows:
            for fact in row:
                self.assertIn(key_of(fact.answer), plain(fact.answer))

    def test_open_facts_hold_their_value(self):
        rng = random.Random(3)
        for shape in (relations.done_when, relations.done_by, relations.does, relations.at_time, relations.state, relations.numbered, relations.young):
            for _ in range(50):
                _, value, statement, question, _ = shape(rng, "company", "Lund Works")
                self.assertIn(value.lower(), statement.lower())
                self.assertNotIn(value.lower(), question.lower())

    def test_no_new_domain_asks_a_reserved_question(self):
        rng = random.Random(4)
        for tools in tool_choice.domains().values():
            for tool in tools:
                self.assertFalse(is_reserved(tool_choice.domain_tool(rng, tool)[1]))


if __name__ == "__main__":
    unittest.main()
