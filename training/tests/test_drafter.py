"""The drafter: what its blocks see, and its file."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

try:
    import torch
except ImportError:
    raise unittest.SkipTest("PyTorch is not installed")

import numpy as np

from nano import gguf, quants
from nano.drafter import Drafter, DrafterConfig, write_file

SMALL = DrafterConfig(width=32, vocab=64, taps=(0, 2), layers=2, heads=2, kv_heads=1, head_dim=16, ffn=48, block=4)


class Blocks(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)
        self.drafter = Drafter(SMALL)
        self.states = torch.randn(1, 20, 64)
        self.documents = torch.tensor([[0] * 6 + [1] * 14], dtype=torch.int32)
        self.anchors = torch.tensor([[9, 14]])
        self.embedded = torch.randn(1, 2, 4, 32)

    def run_with(self, states=None, embedded=None):
        with torch.no_grad():
            return self.drafter(self.states if states is None else states,
                                self.embedded if embedded is None else embedded, self.anchors, self.documents)

    def changed_by(self, position):
        states = self.states.clone()
        states[0, position] += 1
        difference = (self.run_with(states) - self.run_with()).abs().amax((0, 2, 3))
        return [value > 1e-6 for value in difference.tolist()]

    def test_a_block_sees_its_document_before_its_anchor(self):
        self.assertEqual(self.changed_by(5), [False, False])  # another document
        self.assertEqual(self.changed_by(6), [True, True])
        self.assertEqual(self.changed_by(8), [True, True])
        self.assertEqual(self.changed_by(9), [False, True])  # the anchor's own state is not known when it drafts
        self.assertEqual(self.changed_by(14), [False, False])

    def test_rows_of_a_block_see_all_of_it_and_no_other(self):
        embedded = self.embedded.clone()
        embedded[0, 0, 3] += 1
        difference = (self.run_with(embedded=embedded) - self.run_with()).abs().amax(-1)[0]
        self.assertTrue((difference[0] > 1e-6).all())
        self.assertTrue((difference[1] == 0).all())

    def test_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "drafter.gguf"
            write_file(path, self.drafter, "small", "F32")
            meta, tensors = gguf.read(path)
        self.assertEqual(meta["general.architecture"], "dflash")
        self.assertEqual(list(meta["dflash.target_layers"]), [1, 3])
        self.assertEqual(meta["dflash.block_size"], 4)
        self.assertEqual(len(tensors), 3 + 2 * 11)
        dims, kind, raw = tensors["blk.1.ffn_down.weight"]
        self.assertEqual(dims, (48, 32))
        values = quants.decode(kind, raw, (32, 48))
        np.testing.assert_array_equal(values, self.drafter.blocks[1].ffn_down.detach().numpy())


if __name__ == "__main__":
    unittest.main()
