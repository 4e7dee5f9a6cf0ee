"""What the eighth run added: answers hold what text and result say, thoughts count right, and nothing of the tests is asked."""

import json
import pathlib
import random
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))

from nano import cases_skills, chatml
from nano.reserved import is_reserved
from nano.synthetic import common, newcomer_snippets, newcomer_turns, newcomer_words, newcomers, quantities, relations, steps, text_tasks, tool_everyday
from nano.synthetic.fact import BANKS, key_of, plain
from nano.synthetic.facts import general_facts
from nano.synthetic.tool_words import TEST_FIELDS


class Texts(unittest.TestCase):
    def test_every_task_gives_whole_dialogues(self):
        rng = random.Random(1)
        for _, task in text_tasks.TASKS:
            for _ in range(60):
                turns, thought = task(rng, None)
                self.assertNotRegex(chatml.render(common.turns_to_dialogue(rng, turns, "given_text", thought)), r"\{\w+\}")

    def test_names_and_fields_stand_in_the_text(self):
        rng = random.Random(2)
        for _ in range(200):
            [(user, answer)], _ = text_tasks.names(rng, None)
            for name in re.findall(r"[A-Z]\w+", answer.replace("The names", "")):
                self.assertIn(name, user)
            [(user, answer)], thought = text_tasks.fields(rng, None)
            for value in re.findall(r"(?:The \w+ is )([^.]+)", thought):
                self.assertIn(value, user)

    def test_sorted_is_sorted_and_counted_is_counted(self):
        rng = random.Random(3)
        for _ in range(200):
            [(user, answer)], thought = text_tasks.sorting(rng, None)
            if thought.startswith("From"):
                items = re.split(r", |\n", answer)
                self.assertEqual(items, sorted(items, key=lambda w: (int(w) if w.isdigit() else 0, w)))
                self.assertTrue(all(item in user for item in items))
            [(user, answer)], _ = text_tasks.counting(rng, None)
            found = re.search(r"the word (\w+) has (\d+) letters", answer)
            if found:
                self.assertEqual(len(found[1]), int(found[2]))

    def test_no_scene_asks_what_the_notes_of_the_tests_ask(self):
        kept = relations.kept_for_tests()
        for sentences, _, _, _, questions in text_tasks.scenes():
            for text in [*sentences, *(q for q, _ in questions)]:
                self.assertIsNone(kept.fullmatch(re.sub(r"\{\w+\}", "Xat", text).lower()), text)


class Tools(unittest.TestCase):
    def test_an_answer_says_only_what_the_request_or_the_result_has(self):
        rng = random.Random(4)
        for entry in tool_everyday.bank():
            for _ in range(20):
                request, call, result, answer, _ = tool_everyday.exchange(rng, entry, tool_everyday.tool(rng, entry))
                for number in re.findall(r"\d+", answer):
                    self.assertIn(number, request + result)
                for value in call["arguments"].values():
                    self.assertIn(str(value), request)

    def test_they_are_no_tools_of_the_tests(self):
        names = {case["name"].lower() for case in cases_skills.tool_cases()}
        words = {noun for nouns in TEST_FIELDS.values() for noun in nouns}
        kept = relations.kept_for_tests()
        for mine, descriptions, parameters, requests, results, _ in tool_everyday.bank():
            self.assertFalse(names & {name.lower() for name in mine})
            for text in requests + descriptions:
                self.assertFalse(words & set(re.findall(r"\w+", text.lower())), text)
            for request in requests:
                self.assertIsNone(kept.fullmatch(re.sub(r"\{\w+\}", "Xat", request).lower().rstrip("?") + "?"), request)
            keys = {key for result in results for key in json.loads(re.sub(r"\{(\w+)(:[\w-]+)?\}", "1", result))}
            self.assertFalse(keys & {"sky", "weather", "opens", "opening_time", "organizer", "host", "needs", "ingredient", "product", "makes", "founded", "built"}, keys)

    def test_dialogues_are_well_formed(self):
        rng = random.Random(5)
        for _ in range(300):
            chatml.segments(tool_everyday.dialogue(rng, None))


class Turns(unittest.TestCase):
    def test_every_shape_gives_whole_dialogues(self):
        rng = random.Random(6)
        for _, shape in newcomer_turns.TURNS + newcomer_snippets.SNIPPETS + newcomer_words.TRANSLATIONS:
            for _ in range(60):
                turns, thought = shape(rng, None)
                self.assertTrue(thought)
                self.assertNotRegex(chatml.render(common.turns_to_dialogue(rng, turns, "newcomers", thought)), r"\{[a-z]\w*\}(?!\")")

    def test_sums_that_go_on_are_right(self):
        rng = random.Random(7)
        for _ in range(300):
            _, thought = newcomer_turns.go_on(rng, None)
            a, op, b, c = re.search(r"(\d+) ([-+x/]) (\d+) = (\d+)", thought).groups()
            self.assertEqual({"+": int(a) + int(b), "-": int(a) - int(b), "x": int(a) * int(b), "/": int(a) / int(b)}[op], int(c))

    def test_python_that_is_shown_runs(self):
        for language, _, code in newcomer_snippets.snippets():
            if language == "python":
                compile(code, "snippet", "exec")

    def test_banks_have_keys_and_no_reserved_turn(self):
        for row in general_facts(BANKS / "facts_more.txt"):
            for fact in row:
                self.assertIn(key_of(fact.answer), plain(fact.answer))
                self.assertFalse(is_reserved(fact.question), fact.question)
        for asked, answers in newcomers.talk():
            self.assertTrue(all(answers))


class Thoughts(unittest.TestCase):
    def test_a_thought_counts_right_and_says_the_result_once_before_its_check(self):
        rng = random.Random(8)
        for _ in range(400):
            _, worked, _ = quantities.problem(rng) if rng.random() < 0.5 else steps.problem(rng)
            thought = steps.thought(rng, worked)
            first = thought.split("That was the last step")[0]
            self.assertEqual([tuple(map(int, (a, b, r))) for a, b, r in re.findall(r"(\d+) [-+x/] (\d+) = (\d+)", first)], [(a, b, r) for a, _, b, r in worked])
            self.assertIn(f"so the answer is {worked[-1][3]}.", thought)

    def test_problems_in_one_breath_and_baskets_say_their_numbers(self):
        rng = random.Random(9)
        for kind in (quantities.breath, quantities.basket):
            for _ in range(200):
                question, worked, answer = kind(rng)
                for _, _, x, _ in worked:
                    self.assertIn(str(x), re.findall(r"\d+", question))
                self.assertIn(str(worked[-1][3]), answer)


if __name__ == "__main__":
    unittest.main()
