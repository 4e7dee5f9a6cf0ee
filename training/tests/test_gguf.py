"""The GGUF container: what is written reads back, and damaged files are refused with a reason, never misread."""

import pathlib
import random
import struct
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from nano import gguf  # noqa: E402

METADATA = {
    "general.architecture": "qwen35moe",
    "general.sampling.top_k": gguf.I32(-40),
    "general.sampling.temp": 0.5,
    "block_count": gguf.U32(8),
    "tied": True,
    "split.no": gguf.U16(7),
    "big": gguf.U64(1 << 40),
    "tokenizer.ggml.tokens": ["a", "b\u00e9", b"\xff\xfe"],
    "tokenizer.ggml.token_type": [1, 1, 3],
    "scores": [0.5, -1.25],
    "empty": gguf.ARRAY("i32", []),
}
TENSORS = [
    ("norm.weight", (5,), "F32", struct.pack("<5f", 1, 2, 3, 4, 5)),
    ("blk.0.weight", (64, 3), "Q8_0", bytes(range(204))),
    ("last", (2, 1, 2), "F16", b"payload!"),
]


def written(metadata=METADATA, tensors=TENSORS):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "m.gguf"
        gguf.write(path, metadata, tensors)
        return path.read_bytes()


class RoundTrip(unittest.TestCase):
    def test_file_reads_back(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "m.gguf"
            gguf.write(path, METADATA, TENSORS)
            metadata, tensors = gguf.read(path)
            kept, _ = gguf.read(path, keep_types=True)
            again = pathlib.Path(folder) / "again.gguf"
            gguf.write(again, kept, TENSORS)
            self.assertEqual(path.read_bytes(), again.read_bytes())
        self.assertEqual(metadata["general.architecture"], "qwen35moe")
        self.assertEqual(metadata["general.sampling.top_k"], -40)
        self.assertEqual(metadata["tokenizer.ggml.tokens"], ["a", "b\u00e9", b"\xff\xfe"])
        self.assertEqual(metadata["scores"], [0.5, -1.25])
        self.assertEqual(metadata["empty"], [])
        self.assertIs(metadata["tied"], True)
        self.assertEqual(kept["big"], gguf.U64(1 << 40))
        self.assertEqual(kept["tokenizer.ggml.token_type"], gguf.ARRAY("i32", [1, 1, 3]))
        self.assertEqual(list(tensors), [name for name, _, _, _ in TENSORS])
        for name, dims, type_name, payload in TENSORS:
            self.assertEqual(tensors[name][:2], (dims, type_name))
            self.assertEqual(bytes(tensors[name][2]), payload)

    def test_layout_is_the_documented_one(self):
        data = written({"k": gguf.U32(9)}, [("t", (1,), "F32", b"abcd")])
        header = (b"GGUF" + struct.pack("<IQQ", 3, 1, 1) + struct.pack("<Q", 1) + b"k" + struct.pack("<II", 4, 9)
                  + struct.pack("<Q", 1) + b"t" + struct.pack("<IQIQ", 1, 1, 0, 0))
        self.assertEqual(data, header + bytes(-len(header) % 32) + b"abcd" + bytes(28))

    def test_every_tensor_is_aligned(self):
        for alignment in (32, 64):
            data = written(METADATA | {"general.alignment": alignment})
            _, tensors = gguf.parse(data)
            for _, _, payload in tensors.values():
                self.assertEqual(data.find(bytes(payload)) % alignment, 0)

    def test_file_without_tensors(self):
        self.assertEqual(gguf.parse(written({"a": 1}, [])), ({"a": 1}, {}))


class Refusals(unittest.TestCase):
    def refuses(self, pattern, call, *arguments):
        with self.assertRaisesRegex(gguf.GgufError, pattern):
            call(*arguments)

    def test_writer(self):
        self.refuses("takes 34 bytes", written, {}, [("t", (32,), "Q8_0", b"")])
        self.refuses("multiple of 256", written, {}, [("t", (128,), "Q4_K", bytes(72))])
        self.refuses("twice", written, {}, [("t", (1,), "F32", b"1234")] * 2)
        self.refuses("unknown tensor type", written, {}, [("t", (1,), "Q9", b"1234")])
        self.refuses("name", written, {}, [("t" * 64, (1,), "F32", b"1234")])
        self.refuses("dimensions", written, {}, [("t", (0,), "F32", b"")])
        self.refuses("does not fit u32", written, {"k": gguf.U32(-1)}, [])
        self.refuses("'k'.*does not fit i32", written, {"k": [1 << 31]}, [])
        self.refuses("empty list", written, {"k": []}, [])
        self.refuses("one type", written, {"k": ["a", 1]}, [])
        self.refuses("power of two", written, {"general.alignment": 48}, [])

    def test_reader(self):
        good = written({"k": 1}, [("t", (1,), "F32", b"1234")])
        self.refuses("magic", gguf.parse, b"GGML" + good[4:])
        self.refuses("version 1 ", gguf.parse, good[:4] + struct.pack("<I", 1) + good[8:])
        self.refuses("byte-swapped", gguf.parse, good[:4] + struct.pack(">I", 3) + good[8:])
        self.refuses("tensors do not fit", gguf.parse, good[:8] + struct.pack("<Q", 1 << 60) + good[16:])
        self.refuses("entries do not fit", gguf.parse, good[:16] + struct.pack("<Q", 1 << 60) + good[24:])
        two = written({"k": 1}, [("t", (8,), "F32", bytes(32)), ("u", (8,), "F32", bytes(32))])
        at = two.rfind(struct.pack("<IQ", 0, 32))
        self.refuses("overlap", gguf.parse, two[:at + 4] + struct.pack("<Q", 0) + two[at + 12:])
        self.refuses("not a multiple", gguf.parse, two[:at + 4] + struct.pack("<Q", 8) + two[at + 12:])
        self.refuses("the file at", gguf.parse, two[:at + 4] + struct.pack("<Q", 1 << 63) + two[at + 12:])
        self.refuses("unknown tensor type 4", gguf.parse, two[:at] + struct.pack("<I", 4) + two[at + 4:])

    def test_every_truncation_is_refused(self):
        data = written({"k": ["ab", "c"], "f": 1.0}, [("t", (8,), "F32", bytes(32))])
        for size in range(len(data)):
            with self.assertRaises(gguf.GgufError):
                gguf.parse(data[:size])

    def test_damaged_bytes_never_raise_anything_else(self):
        data = written()
        rng = random.Random(1)
        for _ in range(2000):
            broken = bytearray(data)
            for _ in range(rng.randint(1, 4)):
                broken[rng.randrange(len(broken))] = rng.choice((0, 1, 127, 255, rng.randrange(256)))
            try:
                gguf.parse(broken)
            except gguf.GgufError:
                pass


if __name__ == "__main__":
    unittest.main()
