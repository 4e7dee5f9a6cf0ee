"""Perplexity by domain and agreement of the MTP block, from a GGUF file's own weights in PyTorch."""

import math

import numpy as np
import torch
import torch.nn.functional as F

from . import ngram
from .batches import UNTRAINED
from .model import Masks


def rows_of(pack, length, most):
    """(tokens, documents) of a held-out set as rows of one length, at most `most` tokens."""
    count = max(1, min(most, len(pack["tokens"])) // length)
    size = min(len(pack["tokens"]), count * length)
    width = size // count
    cut = count * width
    return (pack["tokens"][:cut].reshape(count, width), pack["documents"][:cut].reshape(count, width).astype(np.int64))


@torch.no_grad()
def score(model, tokens, documents, device="cpu"):
    """Per position: log-probability of the next token, whether it counts, and whether MTP and trunk choose the same."""
    ids = torch.from_numpy((tokens & (UNTRAINED - 1)).astype(np.int64)).to(device)
    groups = torch.from_numpy(documents).to(device)
    learnt = torch.from_numpy((tokens & UNTRAINED) == 0).to(device)
    logps, agrees, counts = [], [], []
    for row in range(len(ids)):
        masks = Masks(model.config, groups[row : row + 1], ids.shape[1], device, torch.float32)
        z, n, _ = model(ids[row : row + 1], masks)
        trunk, draft = model.logits(z)[0], model.logits(n)[0]
        logp = F.log_softmax(trunk[:-1], -1).gather(1, ids[row, 1:, None])[:, 0]
        inside = groups[row, 1:] == groups[row, :-1]
        logps.append(logp.cpu().numpy())
        counts.append((inside & learnt[row, 1:]).cpu().numpy())
        # The MTP block has nothing to go by at the first token of a document.
        drafted = torch.cat([torch.zeros_like(inside[:1]), inside])[:-1] & inside
        agrees.append((trunk.argmax(-1) == draft.argmax(-1))[:-1][drafted].cpu().numpy())
    return np.concatenate(logps), np.concatenate(counts), np.concatenate(agrees)


def perplexities(model, held_out, length=1024, most=40_000, device="cpu", baseline=None):
    """{domain: {tokens, perplexity, [five_gram], agreement}} over the tokens the model is meant to write."""
    result = {}
    for path in sorted(held_out.glob("*.npz")):
        tokens, documents = rows_of(np.load(path), length, most)
        logp, counted, agree = score(model, tokens, documents, device)
        line = {
            "tokens": int(counted.sum()),
            "perplexity": math.exp(-logp[counted].mean()),
            "mtp_agreement": float(agree.mean()),
            "mtp_tokens": int(len(agree)),
        }
        if baseline is not None:
            flat = (tokens & (UNTRAINED - 1)).astype(np.int64)
            p = np.concatenate([np.log(ngram.probabilities(baseline, row))[-(len(row) - 1) :] for row in flat])
            line["five_gram"] = math.exp(-p[counted].mean())
        result[path.stem] = line
    return result
