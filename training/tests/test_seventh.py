"""What the seventh run added: sums of the problems are right, mails say what was asked for, tools and relations stay apart from the tests."""

import json
import pathlib
import random
import re
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))

from nano import batches, chatml
from nano.synthetic import common, forms, frames, newcomer_talk, quantities, relations, requests, steps, steps_scenes, sums, tool_attributes, tool_choice, tool_replies, tool_results
from nano.synthetic.tool_words import TEST_FIELDS


class Problems(unittest.TestCase):
    def test_every_kind_counts_right_and_says_the_result(self):
        rng = random.Random(1)
        for _, kind in quantities.KINDS:
            for _ in range(40):
                question, worked, answer = kind(rng)
                for a, op, b, r in worked:
                    self.assertEqual({"+": a + b, "-": a - b, "x": a * b, "/": a / b}[op], r, question)
                self.assertIn(str(worked[-1][3]), re.findall(r"\d+", answer), question)
                self.assertNotRegex(question + answer, r"[{}]")

    def test_problems_show_no_held_out_sum(self):
        rng = random.Random(2)
        for _ in range(400):
            _, worked, _ = quantities.problem(rng)
            self.assertFalse(any(sums.held_out_pair(a, op, b) for a, op, b, _ in worked))

    def test_scenes_have_all_parts_and_are_not_those_of_the_tests(self):
        rng = random.Random(3)
        kept = " ".join(part for scene in common.side(steps.SCENES, True, "scene", 0.25) for part in scene[2:4])
        for scene in steps_scenes.SCENES:
            self.assertEqual(len(scene), 6)
            for event in (scene[2] + " / " + scene[3]).split(" / "):
                self.assertNotIn(event, kept)
        for _ in range(300):
            self.assertNotRegex(steps.chain(rng, False)[0], r"[{}]")


class Texts(unittest.TestCase):
    def test_every_shape_gives_whole_dialogues(self):
        rng = random.Random(4)
        for _, shape in requests.SHAPES + newcomer_talk.TALK:
            for _ in range(60):
                turns, thought = shape(rng, None)
                self.assertNotRegex(chatml.render(common.turns_to_dialogue(rng, turns, "requests", thought)), r"\{\w\}")

    def test_a_mail_has_the_day_and_the_reason_of_the_request(self):
        rng = random.Random(5)
        for _ in range(200):
            (question, text), *_ = requests.mail(rng, None)[0]
            for word in re.findall(r"\b(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day\b|because .*?(?=[.?,]|$)", question):
                self.assertIn(word.split(", please")[0].lower(), text.lower())


class Tools(unittest.TestCase):
    def test_the_tool_of_a_side_takes_what_the_request_says(self):
        rng = random.Random(6)
        for _ in range(200):
            entries = tool_attributes.offer(rng, 4, lambda: tool_choice.draw_noun(rng, False, None)[1], tool_choice.styled, tool_choice.plural, tool_choice.plain)
            self.assertEqual(len({tool_choice.plain(e[0]) for e in entries}), 4)
            tool, request, arguments, _ = entries[0]
            self.assertLessEqual(set(arguments), set(tool["function"]["parameters"]["properties"]))
            for value in arguments.values():
                self.assertIn(str(value), request)

    def test_replies_and_opaque_results_hold_the_value(self):
        rng = random.Random(7)
        words = {noun for nouns in TEST_FIELDS.values() for noun in nouns}
        for _ in range(150):
            dialogue = tool_replies.dialogue(rng, None)
            self.assertFalse(words & set(re.findall(r"\w+", dialogue["messages"][-1]["content"])))
        for _ in range(300):
            _, _, _, result, answer, value, _ = tool_results.case(rng)
            self.assertIn(json.dumps(value, ensure_ascii=False)[1:-1] if result[:1] in "{[" else value, result)

    def test_more_relations_are_not_those_of_the_tests(self):
        for kind, found in frames.more_frames().items():
            for frame in found:
                for text in frame.questions + frame.statements:
                    self.assertFalse(relations.kept_for_tests().fullmatch(text.replace("{e}", "Ann").replace("{v}", "x").replace("{av}", "a x").lower()), text)

    def test_things_of_any_kind_are_not_kinds_of_the_tests(self):
        self.assertFalse(set(forms.KINDS_OF_THING) & forms.TEST_KINDS)


class Ready(unittest.TestCase):
    def test_folders_that_are_not_finished_are_left_out(self):
        with tempfile.TemporaryDirectory() as folder:
            first, second = pathlib.Path(folder) / "a", pathlib.Path(folder) / "b"
            first.mkdir()
            second.mkdir()
            with self.assertRaises(ValueError):
                batches.ready(f"{first}:{second}", 0)
            (first / "contents.json").write_text("{}")
            self.assertEqual(batches.ready(f"{first}:{second}", 0), str(first))
            (second / "contents.json").write_text("{}")
            self.assertEqual(batches.ready(f"{first}:{second}", 5), f"{first}:{second}")


if __name__ == "__main__":
    unittest.main()
