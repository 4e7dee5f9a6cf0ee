"""How much each column of each matrix matters to the loss: the mean square of the gradient over some training text.

The expected loss of an error e in the weights is about e^T F e / 2 with the Fisher matrix F; its diagonal, averaged
over the rows of a matrix, is what the quantisers weigh their rounding errors with.
"""

import numpy as np
import torch
import torch.nn.functional as F

from .batches import split_flags
from .export import file_name
from .model import Masks


def column_importance(model, batches, count, device="cpu"):
    """{tensor name: float32 array broadcastable to the tensor} from `count` batches."""
    sums = {name: None for name, p in model.named_parameters() if p.ndim >= 2}
    for _ in range(count):
        tokens, documents = batches.batch()
        ids, labels = (torch.from_numpy(x).to(device) for x in split_flags(tokens, documents))
        for row in range(len(ids)):
            model.zero_grad()
            masks = Masks(
                model.config, torch.from_numpy(documents[row : row + 1]).to(device), ids.shape[1], device, torch.float32
            )
            z, n, _ = model(ids[row : row + 1], masks)
            loss = F.cross_entropy(model.logits(z)[0], labels[row], ignore_index=-100)
            loss = loss + 0.3 * F.cross_entropy(model.logits(n)[0], labels[row], ignore_index=-100)
            loss.backward()
            for name, p in model.named_parameters():
                if name in sums and p.grad is not None:
                    square = p.grad.square().mean(-2, keepdim=True).cpu().numpy()
                    sums[name] = square if sums[name] is None else sums[name] + square
    return {
        file_name(name, model.config.layers): value.astype(np.float32)
        for name, value in sums.items()
        if value is not None
    }
