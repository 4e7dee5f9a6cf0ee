"""What measure_prompts.py takes for a good answer."""

import pathlib
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import measure_prompts as measure  # noqa: E402


def sandbox_works():
    if not shutil.which("bwrap"):
        return False
    return subprocess.run(["bwrap", "--unshare-all", "--ro-bind", "/", "/", "/bin/true"], capture_output=True, check=False).returncode == 0


class MeasurePrompts(unittest.TestCase):
    def test_words_that_both_have(self):
        self.assertEqual(measure.words_f1("Iron is low in the brain.", "iron, LOW, brain"), 1)
        self.assertEqual(measure.words_f1("Iron is low.", "Nobody knows."), 0)
        self.assertEqual(measure.words_f1("", ""), 0)
        self.assertEqual(measure.words_f1("The red house", "a blue house"), 0.5)
        self.assertLess(measure.words_f1("red house", "red red house house"), 1)

    def test_code_of_an_answer(self):
        self.assertEqual(measure.code_in("Here:\n```python\nx = 1\n```\nThat is all.\n```\ny\n```"), "x = 1\n")
        self.assertEqual(measure.code_in("```\nx = 1"), "x = 1")
        self.assertEqual(measure.code_in("x = 1"), "x = 1")

    @unittest.skipUnless(sandbox_works(), "bubblewrap makes no sandbox here")
    def test_code_is_judged_by_its_tests(self):
        self.assertEqual(measure.passes("def f(x):\n    return x + 1", "assert f(1) == 2"), 1)
        for code in ("def f(x):\n    return x", "def f(x:", "raise SystemExit(0)", "import os\nos._exit(0)",
                     "import socket\nsocket.create_connection(('127.0.0.1', 1))", "open('/etc/passwd')"):
            self.assertEqual(measure.passes(code, "assert f(1) == 2"), 0, code)
        self.assertEqual(measure.passes("import os", "assert os.listdir('/tmp') == [] and 'HOME' not in os.environ"), 1)

    def test_order_and_interval_are_always_the_same(self):
        questions = [{"question": str(i)} for i in range(20)]
        self.assertEqual(measure.shuffled(questions), measure.shuffled([*reversed(questions), *questions]))
        gain = measure.interval([0.0, 1.0] * 10)
        self.assertEqual(gain, measure.interval([0.0, 1.0] * 10))
        self.assertTrue(0.2 < gain["low"] < gain["mean"] == 0.5 < gain["high"] < 0.8)
        self.assertEqual(measure.interval([0.0] * 5), {"mean": 0, "low": 0, "high": 0})


if __name__ == "__main__":
    unittest.main()
