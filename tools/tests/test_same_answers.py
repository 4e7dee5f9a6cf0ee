"""Where two answers part, and how far the other's token is behind."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import same_answers  # noqa: E402


def answer(*tokens, second=("other", -1.25)):
    return [{"token": token, "logprob": -1.0,
             "top_logprobs": [{"token": token, "logprob": -1.0}, {"token": second[0], "logprob": second[1]}]}
            for token in tokens]


class SameAnswersTest(unittest.TestCase):
    def test_same(self):
        self.assertIsNone(same_answers.parted(answer("a", "b"), answer("a", "b")))

    def test_other_token(self):
        self.assertEqual(same_answers.parted(answer("a", "b"), answer("a", "other")), (1, 0.25))
        self.assertEqual(same_answers.parted(answer("a", "b", "c"), answer("other")), (0, 0.25))

    def test_token_that_was_not_near(self):
        self.assertEqual(same_answers.parted(answer("a", "b"), answer("a", "z")), (1, float("inf")))

    def test_one_ends_before(self):
        self.assertEqual(same_answers.parted(answer("a", "b"), answer("a")), (1, float("inf")))


if __name__ == "__main__":
    unittest.main()
