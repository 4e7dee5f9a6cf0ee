"""Tensor encodings: decoders against the golden blocks of the engine, and float types both ways."""

import pathlib
import sys
import unittest

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from nano import quants  # noqa: E402

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden" / "quant"


def there_and_back(type_name, array):
    return quants.decode(type_name, quants.encode(type_name, array), array.shape)


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

    def test_eight_bits(self):
        array = np.random.default_rng(3).normal(size=(4, 64)).astype(np.float32)
        step = np.abs(array).reshape(-1, 32).max(axis=1) / 127
        error = np.abs(there_and_back("Q8_0", array) - array).reshape(-1, 32).max(axis=1)
        self.assertTrue((error <= 0.51 * step + 127 * step * 2 ** -10).all())  # half a step, and the scale's rounding

    def test_block_formats_are_left_to_the_program(self):
        for type_name in (*(name for name in quants.DECODERS if name != "Q8_0"), "IQ2_S"):
            with self.assertRaisesRegex(ValueError, "chimere quantize"):
                quants.encode(type_name, np.zeros((1, 256)))


if __name__ == "__main__":
    unittest.main()
