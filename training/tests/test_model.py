"""The model against its definition: the delta rule in chunks, document borders, reference logits of the fixtures."""

import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

try:
    import torch
except ImportError:
    raise unittest.SkipTest("PyTorch is not installed")

import numpy as np

from nano import gdn
from nano.export import read_model
from nano.model import Config, Masks, Nano

SMALL = Config(
    vocab=64,
    width=32,
    layers=3,
    heads=2,
    kv_heads=1,
    head_dim=16,
    rope_dims=8,
    rope_sections=(2, 1, 1, 0),
    key_heads=1,
    value_heads=2,
    state_dim=16,
    experts=4,
    experts_used=2,
    expert_width=16,
    shared_width=16,
)


def random_inputs(length, repeat_keys=False):
    torch.manual_seed(length)
    shape = (2, length, 3, 16)
    q, k, v = (torch.randn(*shape, dtype=torch.float64) for _ in range(3))
    if repeat_keys:
        k = k[:, :1].expand(*shape).clone()
    q, k = q / q.norm(dim=-1, keepdim=True), k / k.norm(dim=-1, keepdim=True)
    g = -torch.rand(*shape[:3], dtype=torch.float64) * 0.3
    beta = torch.rand(*shape[:3], dtype=torch.float64)
    return [x.requires_grad_() for x in (q, k, v, g, beta)]


class GatedDeltaRule(unittest.TestCase):
    def test_chunks_equal_the_recurrence(self):
        for length in (1, 63, 64, 65, 200):
            for repeat_keys in (False, True):
                inputs = random_inputs(length, repeat_keys)
                difference = (gdn.chunked(*inputs) - gdn.recurrent(*inputs)).abs().max()
                self.assertLess(difference.item(), 1e-11, f"length {length}")

    def test_gradients_equal_those_of_the_recurrence(self):
        grads = []
        for rule in (gdn.chunked, gdn.recurrent):
            inputs = random_inputs(130)
            rule(*inputs).square().sum().backward()
            grads.append([x.grad for x in inputs])
        for name, a, b in zip("q k v g beta".split(), *grads):
            self.assertLess((a - b).abs().max().item(), 1e-9, name)


class Documents(unittest.TestCase):
    def test_a_document_does_not_see_the_one_before(self):
        torch.manual_seed(1)
        model = Nano(SMALL).double()
        first, second = torch.randint(64, (1, 70)), torch.randint(64, (1, 50))
        packed = torch.cat([first, second], 1)
        documents = torch.cat([torch.zeros_like(first), torch.ones_like(second)], 1)
        with torch.no_grad():
            alone_z, alone_n, _ = model(second, Masks(SMALL, None, 50, "cpu", torch.float64))
            z, n, _ = model(packed, Masks(SMALL, documents, 120, "cpu", torch.float64))
        self.assertLess((z[:, 70:] - alone_z).abs().max().item(), 1e-6)
        self.assertLess((n[:, 70:] - alone_n).abs().max().item(), 1e-6)


@unittest.skipUnless("CHIMERE_SHARED" in os.environ, "CHIMERE_SHARED does not name the reference fixtures")
class ReferenceLogits(unittest.TestCase):
    def test_equal_to_the_reference_implementation(self):
        for name in ("A", "B-untied", "C", "R"):
            folder = pathlib.Path(os.environ["CHIMERE_SHARED"]) / "fixtures" / f"qwen3_5_moe-{name}"
            model = read_model(folder / "model.gguf").double()
            for suffix, rows in (("48", range(48)), ("150", np.fromfile(folder / "positions_150.bin", np.int32))):
                tokens = torch.from_numpy(np.fromfile(folder / f"tokens_{suffix}.bin", np.int32).astype(np.int64))[None]
                expected = np.fromfile(folder / f"logits_{suffix}.bin", np.float32).reshape(len(rows), -1)
                with torch.no_grad():
                    z, _, _ = model(tokens, Masks(model.config, None, tokens.shape[1], "cpu", torch.float64))
                    found = model.logits(z)[0][list(rows)].numpy()
                # The reference ran in float32; its own cached decoding differs from its full pass by up to 2e-4.
                self.assertLess(np.abs(found - expected).max(), 5e-4, f"{name}, {suffix} tokens")


if __name__ == "__main__":
    unittest.main()
