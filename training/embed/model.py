"""The encoder as the engine runs it (src/models/bert.cpp): learned positions, LayerNorm behind every residual sum, exact GELU.

A question's vector is the mean of its last states, [CLS] and [SEP] among them, at length 1. A passage has several: the mean
of each window of its last states. Windows have two hops of tokens, [CLS] and [SEP] among them, and begin a hop after one
another, so that what a sentence says is whole in one, and still read with all of the passage around it. Of a mean the first
`dims` values count.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Config:
    vocab: int = 14336
    width: int = 320
    layers: int = 4
    heads: int = 10
    ffn: int = 960
    context: int = 320
    epsilon: float = 1e-6


def attend(q, k, v, bias):
    if hasattr(F, "scaled_dot_product_attention"):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=bias)
    return ((q @ k.transpose(-1, -2)) * q.shape[-1]**-0.5 + bias).softmax(-1) @ v


class Layer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.heads = c.heads
        self.attn_q, self.attn_k, self.attn_v, self.attn_output = (nn.Linear(c.width, c.width) for _ in range(4))
        self.attn_output_norm = nn.LayerNorm(c.width, c.epsilon)
        self.ffn_up, self.ffn_down = nn.Linear(c.width, c.ffn), nn.Linear(c.ffn, c.width)
        self.layer_output_norm = nn.LayerNorm(c.width, c.epsilon)

    def forward(self, x, bias, drop):
        def split(y):
            return y.unflatten(-1, (self.heads, -1)).transpose(1, 2)

        mixed = attend(split(self.attn_q(x)), split(self.attn_k(x)), split(self.attn_v(x)), bias)
        mixed = self.attn_output(mixed.transpose(1, 2).flatten(2))
        x = self.attn_output_norm(x + F.dropout(mixed, drop, self.training))
        y = self.ffn_down(F.gelu(self.ffn_up(x)))
        return self.layer_output_norm(x + F.dropout(y, drop, self.training))


class Encoder(nn.Module):
    def __init__(self, config, drop=0.0):
        super().__init__()
        self.config, self.drop = config, drop
        self.token_embd = nn.Embedding(config.vocab, config.width)
        self.position_embd = nn.Embedding(config.context, config.width)
        self.token_embd_norm = nn.LayerNorm(config.width, config.epsilon)
        self.blk = nn.ModuleList(Layer(config) for _ in range(config.layers))
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=0.02 if isinstance(module, nn.Embedding) else config.width**-0.5 * 0.7)
            if isinstance(module, nn.Linear):
                nn.init.zeros_(module.bias)

    def forward(self, ids, keep):
        """States of rows of ids; keep: which of them are text."""
        x = self.token_embd(ids) + self.position_embd.weight[:ids.shape[1]]
        x = F.dropout(self.token_embd_norm(x), self.drop, self.training)
        # Of the type that products have, so that no layer converts it again.
        bias = torch.zeros(keep.shape, device=x.device, dtype=torch.bfloat16 if x.is_cuda else x.dtype)
        bias = bias.masked_fill(~keep, float("-inf"))[:, None, None, :].expand(-1, 1, ids.shape[1], -1)
        for layer in self.blk:
            x = layer(x, bias, self.drop)
        return x

    @staticmethod
    def pooled(states, keep):
        return (states.float() * keep[..., None]).sum(1)

    @staticmethod
    def windows(states, keep, hop):
        """(sums of the states of windows, which windows are there). REQUIRES: rows are whole hops long."""
        blocks = (states.float() * keep[..., None]).unflatten(1, (-1, hop)).sum(2)
        sums = blocks[:, :-1] + blocks[:, 1:] if blocks.shape[1] > 1 else blocks
        n = (-(-keep.sum(1) // hop) - 1).clamp(min=1)
        return sums, torch.arange(sums.shape[1], device=keep.device)[None] < n[:, None]

    def embed(self, ids, keep, dims=None):
        return at_length_one(self.pooled(self(ids, keep), keep), dims)


def at_length_one(sums, dims):
    return F.normalize(sums[..., :dims], dim=-1)


class MaskedHead(nn.Module):
    """Guesses hidden tokens from their states, while the encoder learns words; not in the file."""

    def __init__(self, config):
        super().__init__()
        self.dense = nn.Linear(config.width, config.width)
        self.norm = nn.LayerNorm(config.width, config.epsilon)
        self.bias = nn.Parameter(torch.zeros(config.vocab))

    def forward(self, states, table):
        return F.linear(self.norm(F.gelu(self.dense(states))), table.to(states.dtype)) + self.bias
