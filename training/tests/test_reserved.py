"""What is held out is held out: the chats, the words of the test tools, and the sides of the banks."""

import pathlib
import random
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))

from nano import cases_skills, chatml
from nano.reserved import is_reserved
from nano.synthetic import forms, frames, lookup, notes, relations, steps, tool_choice, tool_intents, tool_results, toolcalls, toolcalls_bank
from nano.synthetic.tool_words import TEST_FIELDS, TEST_VERBS, TRAIN_FIELDS, ACTION


class Reserved(unittest.TestCase):
    def test_chats_are_reserved_also_in_other_dress(self):
        self.assertTrue(is_reserved("Whats 36 plus 57?"))
        self.assertTrue(is_reserved("who painted the Mona Lisa"))
        self.assertTrue(is_reserved("What currency does India use?"))
        self.assertFalse(is_reserved("What is the capital of Sweden?"))

    def test_words_of_the_test_tools_are_in_no_training_tool(self):
        test = {noun for nouns in TEST_FIELDS.values() for noun in nouns}
        train = {noun for nouns in TRAIN_FIELDS.values() for noun in nouns} | set(toolcalls_bank.NOUNS)
        self.assertFalse(test & train)
        words = {word for action in ACTION.values() for word in action["words"]}
        self.assertFalse(words & {verb for verbs in TEST_VERBS.values() for verb in verbs})
        names = {name for tool in toolcalls.tools() for name in tool["names"]}
        mine = {name for domain, tools in tool_choice.domains().items() if domain.endswith("!") for tool in tools for name in tool["names"]}
        theirs = {name for domain, tools in tool_choice.domains().items() if not domain.endswith("!") for tool in tools for name in tool["names"]}
        self.assertFalse(mine & (names | theirs))

    def test_training_never_offers_a_tool_of_the_tests(self):
        names = {case["name"].lower() for case in cases_skills.tool_cases()}
        rng = random.Random(5)
        for _ in range(2000):
            for tool in tool_choice.dialogue(rng, None)["tools"]:
                self.assertNotIn(tool["function"]["name"].lower(), names)

    def test_relations_kinds_and_scenes_have_two_sides(self):
        self.assertFalse({(f.kind, f.keys) for f in frames.frames(True)} & {(f.kind, f.keys) for f in frames.frames(False)})
        self.assertTrue(forms.TEST_KINDS < set(forms.RECORDS))
        train = {steps.problem(random.Random(i))[0] for i in range(500)}
        self.assertFalse(train & {case["messages"][0]["content"] for case in cases_skills.step_cases()})

    def test_open_relations_are_none_of_the_tests(self):
        rng = random.Random(11)
        asked = {case["messages"][0]["content"] for case in cases_skills.note_cases() + cases_skills.result_cases()}
        for _ in range(2000):
            fact = relations.fact(rng)
            self.assertIsNone(relations.kept_for_tests().fullmatch(fact.question.lower()))
            self.assertNotIn(fact.question, asked)

    def test_intents_have_no_name_of_the_tests(self):
        names = {case["name"].lower() for case in cases_skills.tool_cases()}
        self.assertFalse(names & {name.lower() for _, mine, _ in tool_intents.intents().values() for name in mine})

    def test_a_weighed_thought_ends_at_the_tool_that_is_called(self):
        rng = random.Random(13)
        for _ in range(300):
            dialogue = tool_choice.dialogue(rng, None)
            last = dialogue["messages"][-1]
            if dialogue["thinking"] and last.get("tool_calls"):
                line = last["reasoning_content"].splitlines()[-1]
                self.assertTrue(line.startswith(last["tool_calls"][0]["name"] + ": ") and line.endswith(" Yes."), line)

    def test_dialogues_are_well_formed(self):
        rng = random.Random(7)
        for dialogue in lookup.dialogues(rng, None, 300):
            chatml.segments(dialogue)
        for dialogue in [*forms.dialogues(rng, 300), *steps.dialogues(rng, 300)]:
            chatml.segments(chatml.check(dialogue))
        for _ in range(300):
            chatml.segments(tool_results.dialogue(rng, None))
            self.assertTrue(notes.made_up(rng)[1])


if __name__ == "__main__":
    unittest.main()
