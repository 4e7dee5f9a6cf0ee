"""Tensor encodings: decoders against the golden blocks of the engine, encoders against plain rounding and odd input."""

import pathlib
import sys
import unittest

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from nano import quants  # noqa: E402
from nano.gguf import TENSOR_TYPES  # noqa: E402

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden" / "quant"

# Relative error on Gaussian rows, and how far below plain rounding the search must stay.
GAUSSIAN_ERROR = {
    "Q8_0": (0.0049, 0.90), "Q4_0": (0.083, 0.96), "Q5_0": (0.041, 0.95), "Q5_1": (0.034, 0.90),
    "IQ4_NL": (0.075, 0.94), "IQ4_XS": (0.0755, 0.94), "Q3_K": (0.147, 0.95), "Q4_K": (0.071, 0.90),
    "Q5_K": (0.0345, 0.90), "Q6_K": (0.0168, 0.90),
}


def gaussian(rows=16, columns=1024, seed=1):
    return 0.02 * np.random.default_rng(seed).standard_normal((rows, columns)).astype(np.float32)


def there_and_back(type_name, array, **options):
    return quants.decode(type_name, quants.encode(type_name, array, **options), array.shape)


def relative_error(array, decoded, weights=1.0):
    return np.sqrt((weights * (array - decoded) ** 2).mean() / (weights * array ** 2).mean())


class Decoders(unittest.TestCase):
    def test_golden_blocks(self):
        for type_name in quants.FORMATS:
            if type_name == "F32":
                continue
            with self.subTest(type_name):
                wanted = np.fromfile(GOLDEN / f"{type_name}.f32", "<f4")
                raw = (GOLDEN / f"{type_name}.blocks").read_bytes()
                np.testing.assert_allclose(quants.decode(type_name, raw, wanted.shape), wanted, rtol=1e-6)

    def test_wrong_size_is_refused(self):
        with self.assertRaises(ValueError):
            quants.decode("Q8_0", bytes(33), (32,))
        with self.assertRaises(ValueError):
            quants.decode("Q4_K", bytes(144), (8, 32))
        with self.assertRaises(ValueError):
            quants.decode("IQ2_S", bytes(82), (256,))


class Encoders(unittest.TestCase):
    def test_plain_types(self):
        array = np.array([[0.0, -1.5, 3.14159, 65504.0, 1e-8, -7e-5]], np.float32)
        np.testing.assert_array_equal(there_and_back("F32", array), array)
        np.testing.assert_array_equal(there_and_back("F16", array), array.astype(np.float16).astype(np.float32))
        np.testing.assert_allclose(there_and_back("BF16", array), array, rtol=2 ** -8)
        ties = np.array([0x3F808000, 0x3F818000, 0x7FC00001], np.uint32).view(np.float32)
        self.assertEqual(quants.encode("BF16", ties), np.array([0x3F80, 0x3F82, 0x7FC0], "<u2").tobytes())

    def test_search_beats_rounding(self):
        array = gaussian()
        for type_name, (limit, share) in GAUSSIAN_ERROR.items():
            with self.subTest(type_name):
                found = relative_error(array, there_and_back(type_name, array))
                rounded = relative_error(array, there_and_back(type_name, array, search=False))
                self.assertLess(found, limit)
                self.assertLess(found, share * rounded)

    def test_size_is_that_of_the_format(self):
        array = gaussian(3, 512)
        for type_name in quants.BLOCK_FORMATS:
            _, block_elems, block_bytes = TENSOR_TYPES[type_name]
            self.assertEqual(len(quants.encode(type_name, array)), array.size // block_elems * block_bytes)
            self.assertEqual(quants.bits_per_weight(type_name), 8 * block_bytes / block_elems)

    def test_importance_moves_the_error_away_from_what_matters(self):
        array = gaussian()
        weights = np.random.default_rng(2).lognormal(0, 1, array.shape[1]).astype(np.float32)
        for type_name in quants.BLOCK_FORMATS:
            with self.subTest(type_name):
                blind = relative_error(array, there_and_back(type_name, array), weights)
                decoded = there_and_back(type_name, array, weights=weights, emphasis=False)
                exact = relative_error(array, decoded, weights)
                emphasised = relative_error(array, there_and_back(type_name, array, weights=weights), weights)
                self.assertLess(exact, 0.97 * blind)
                self.assertLess(emphasised, 0.99 * blind)

    def test_importance_may_differ_between_rows(self):
        array = gaussian(200, 1024)
        weights = np.random.default_rng(3).lognormal(0, 1, array.shape).astype(np.float32)
        whole = quants.encode("Q4_K", array, weights=weights)
        last = quants.encode("Q4_K", array[-1:], weights=weights[-1:])
        self.assertEqual(whole[-len(last):], last)
        experts = quants.encode("Q4_K", array.reshape(2, 100, 1024), weights=weights[:2].reshape(2, 1, 1024))
        one_by_one = [quants.encode("Q4_K", array[100 * i:100 * i + 100], weights=weights[i]) for i in range(2)]
        self.assertEqual(experts, b"".join(one_by_one))

    def test_rows_are_independent_and_repeatable(self):
        array = gaussian(100, 1024)
        for type_name in quants.BLOCK_FORMATS:
            whole = quants.encode(type_name, array)
            last = quants.encode(type_name, array[-1:])
            self.assertEqual(whole[-len(last):], last, type_name)
            stack = quants.encode(type_name, array.reshape(4, 25, 1024))
            self.assertEqual(whole, stack, type_name)

    def test_small_weights_keep_their_relative_precision(self):
        array = gaussian()
        for type_name in quants.BLOCK_FORMATS:
            with self.subTest(type_name):
                small = array * np.float32(0.05)
                error = relative_error(array, there_and_back(type_name, array))
                self.assertLess(relative_error(small, there_and_back(type_name, small)), 1.03 * error)

    def test_odd_blocks(self):
        outlier = gaussian(1, 256)
        outlier[0, 7] = 50
        ramp = np.linspace(0.001, 0.002, 256, dtype=np.float32)[None]
        half_empty = gaussian(1, 256)
        half_empty[0, 64:] = 0
        for type_name in quants.BLOCK_FORMATS:
            for label, array, limit in (
                ("zeros", np.zeros((1, 256), np.float32), 0),
                ("constant", np.full((1, 256), 0.25, np.float32), 0.001),
                ("negative constant", np.full((1, 256), -0.25, np.float32), 0.001),
                ("outlier", outlier, 0.05),
                ("all positive", ramp, 0.2),
                ("all negative", -ramp, 0.2),
                ("half empty", half_empty, 0.2),
                ("denormal", np.full((1, 256), 1e-40, np.float32), None),
                ("large", gaussian(1, 256) * 1e5, 0.2),
            ):
                for weights in (None, np.zeros(256), np.r_[np.ones(1), np.zeros(255)], np.geomspace(1e-9, 1e9, 256)):
                    with self.subTest(type_name=type_name, array=label):
                        with np.errstate(all="raise", under="ignore"):
                            decoded = there_and_back(type_name, array, weights=weights)
                        self.assertTrue(np.isfinite(decoded).all())
                        if limit == 0:
                            self.assertFalse(decoded.any())
                        elif limit and weights is None:
                            self.assertLess(relative_error(array, decoded), limit)

    def test_bad_input_is_refused(self):
        with self.assertRaises(ValueError):
            quants.encode("Q4_K", np.zeros((2, 128)))
        with self.assertRaises(ValueError):
            quants.encode("Q8_0", np.full((1, 32), np.nan))
        with self.assertRaises(ValueError):
            quants.encode("IQ2_S", np.zeros((1, 256)))
        with self.assertRaises(ValueError):
            quants.encode("Q8_0", np.zeros((1, 32)), weights=-np.ones(32))


if __name__ == "__main__":
    unittest.main()
