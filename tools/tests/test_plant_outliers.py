"""plant_outliers.py: what a norm and the matrices behind it compute stays the same to the bit, and columns do grow."""

import array
import pathlib
import random
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import plant_outliers  # noqa: E402


def block(rng, width=16, hidden=24):
    shapes = {"attn_norm": (width,), "attn_q": (width, width), "attn_k": (width, 8), "attn_v": (width, 8),
              "ffn_norm": (width,), "ffn_gate": (width, hidden), "ffn_up": (width, hidden), "ffn_down": (hidden, width)}
    made = {}
    for name, dims in shapes.items():
        n = dims[0] * (dims[1] if len(dims) > 1 else 1)
        made[f"blk.0.{name}.weight"] = (dims, array.array("f", (rng.gauss(0, 1) for _ in range(n))))
    return made


def product(tensors, name, vector):
    dims, values = tensors[f"blk.0.{name}.weight"]
    if len(dims) == 1:
        return [v * x for v, x in zip(values, vector)]
    return [sum(values[r * dims[0] + c] * vector[c] for c in range(dims[0])) for r in range(dims[1])]


class PlantOutliers(unittest.TestCase):
    def test_what_is_computed_stays_and_columns_grow(self):
        rng = random.Random(1)
        before = block(rng)
        after = {name: (dims, array.array("f", values)) for name, (dims, values) in before.items()}
        grown = plant_outliers.plant(after, 0.3, 5, random.Random(2))
        self.assertGreater(grown, 3)
        x = [rng.gauss(0, 1) for _ in range(16)]
        for norm, readers in (("attn_norm", ("attn_q", "attn_k", "attn_v")), ("ffn_norm", ("ffn_gate",))):
            for reader in readers:
                self.assertEqual(product(before, reader, product(before, norm, x)),
                                 product(after, reader, product(after, norm, x)))
        whole = [product(t, "ffn_down", product(t, "ffn_up", product(t, "ffn_norm", x))) for t in (before, after)]
        self.assertEqual(*whole)
        largest = [max(map(abs, t["blk.0.ffn_down.weight"][1])) for t in (before, after)]
        self.assertGreater(largest[1], 4 * largest[0])

    def test_shapes_that_do_not_follow_are_refused(self):
        tensors = block(random.Random(1))
        tensors["blk.0.ffn_down.weight"] = ((23, 16), array.array("f", [0.0] * 23 * 16))
        with self.assertRaisesRegex(SystemExit, "rows of 23, expected 24"):
            plant_outliers.plant(tensors, 0.3, 5, random.Random(2))


if __name__ == "__main__":
    unittest.main()
