"""What ha_run.py makes of what its clients met."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import ha_run  # noqa: E402


def report(**changes):
    phase = {"answers": 10, "failed_without_head": 0, "refused": 0, "streams_cut": 0, "streams_cut_not_by_a_kill": 0}
    kills = {**phase, "killed": 2, "cached_share_of_later_turns": 0.5, "cached_share_of_one_replica": 0.5}
    joining = {**phase, "by_replica": {"one": 5, "three": 5}}
    rolling = {**phase, "versions": ["0.1.1"]}
    whole = {"baseline": dict(phase), "joining": joining, "kills": kills, "rolling": rolling}
    for name, fields in changes.items():
        whole[name].update(fields)
    return whole


class HaRunTest(unittest.TestCase):
    def test_shares_are_weighed_by_turn(self):
        few, many = ha_run.Counts(), ha_run.Counts()
        for turn, cached in ((0, 0), (1, 50), (2, 90)):
            few.add_prompt(turn, 100, cached)
        many.add_prompt(1, 100, 50)
        many.add_prompt(2, 300, 270)
        self.assertAlmostEqual(few.share(), 0.7)
        self.assertAlmostEqual(many.share(), 0.8)
        self.assertAlmostEqual(few.share(many), 0.8)
        self.assertEqual(ha_run.Counts().share(), 0)
        self.assertEqual(ha_run.Counts().share(many), 0)

    def test_what_is_lost_is_a_problem(self):
        self.assertEqual(ha_run.problems_of(report()), [])
        self.assertEqual(ha_run.problems_of(report(kills={"streams_cut": 3})), [])
        self.assertEqual(ha_run.problems_of(report(kills={"cached_share_of_later_turns": 0.46})), [])
        for wrong in (
            {"kills": {"failed_without_head": 1}},
            {"kills": {"refused": 1}},
            {"kills": {"streams_cut_not_by_a_kill": 1}},
            {"kills": {"killed": 0}},
            {"kills": {"cached_share_of_later_turns": 0.44}},
            {"joining": {"failed_without_head": 1}},
            {"joining": {"streams_cut": 1}},
            {"joining": {"by_replica": {"one": 10}}},
            {"rolling": {"failed_without_head": 1}},
            {"rolling": {"streams_cut": 1}},
            {"rolling": {"answers": 0}},
        ):
            self.assertEqual(len(ha_run.problems_of(report(**wrong))), 1, wrong)
        self.assertEqual(ha_run.problems_of(report(), "0.1.1"), [])
        self.assertEqual(len(ha_run.problems_of(report(rolling={"versions": ["0.1.0", "0.1.1"]}), "0.1.1")), 1)


if __name__ == "__main__":
    unittest.main()
