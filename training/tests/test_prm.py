"""Steps and their labels, from which the judge learns."""

import pathlib
import random
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import prm

QUESTION = "A hall has 60 chairs. A truck brings 24 chairs. 8 chairs are broken. How many chairs are there now?"
DONE = [(60, "+", 24, 84), (84, "-", 8, 76)]


def labels(thought, answer):
    return [(step, is_right) for _, step, is_right in prm.labelled(QUESTION, DONE, thought, answer)]


class Labels(unittest.TestCase):
    def test_a_right_thought_is_right_to_its_end(self):
        found = labels("Let me see. 24 + 60 = 84. Then 84 - 8 = 76. That was the last step, so the answer is 76.", "There are 76 chairs.")
        self.assertEqual([is_right for _, is_right in found], [True] * 5)
        self.assertEqual(found[1][0], " 24 + 60 = 84.")

    def test_behind_a_wrong_step_nothing_is_right(self):
        found = labels("Let me see. 60 - 24 = 36. Then 84 - 8 = 76.", "There are 76 chairs.")
        self.assertEqual([is_right for _, is_right in found], [True, False, False, True])

    def test_a_change_that_is_passed_over_is_wrong(self):
        self.assertEqual([is_right for _, is_right in labels("60 + 24 = 84. So the answer is 84.", "84.")], [True, False, False])

    def test_steps_and_what_stood_before_are_the_thought(self):
        thought = "Let me see. 60 + 24 = 84.\nThen 84 - 8 = 76."
        for before, step, _ in prm.labelled(QUESTION, DONE, thought, ""):
            self.assertTrue(thought.startswith(before + step))

    def test_stories_count_rightly_and_long_ones_are_longer(self):
        rng = random.Random(3)
        for i in range(200):
            question, done = prm.story(rng, i % 2 == 0, i % 3 == 0)
            for (_, _, _, result), (start, _, _, _) in zip(done, done[1:]):
                self.assertEqual(result, start)
            self.assertEqual(len(done) > 3, i % 3 == 0)
            self.assertTrue(all(str(step[2]) in question for step in done))


if __name__ == "__main__":
    unittest.main()
