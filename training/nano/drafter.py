"""A DFlash drafter in PyTorch: it reads hidden states of a model and guesses a whole block of its next tokens at once.

    context   c_p = RMSNorm(fc [states after the tapped layers at p]), for every position of the text
    a block   [token at the anchor a, MASK, MASK, ...] at positions a, a + 1, ...
    a layer   queries of the block see keys and values made from c_p, p < a, and from all rows of the block

The embedding and the output head are the model's. Weights carry the names of the GGUF file, which llama.cpp reads and
writes too (general.architecture "dflash").
"""

from dataclasses import asdict, dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from . import gguf, quants
from .model import linear, ones, rms_norm, weight


@dataclass
class DrafterConfig:
    width: int
    vocab: int
    taps: tuple = (1, 3, 5)  # layers of the model whose output is read
    layers: int = 2
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 64
    ffn: int = 512
    block: int = 8
    mask_token: int = 0
    rope_base: float = 1e6
    context: int = 16384
    epsilon: float = 1e-6

    def as_dict(self):
        return asdict(self)


class Layer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.attn_norm, self.ffn_norm = ones(c.width), ones(c.width)
        self.attn_q = weight(c.heads * c.head_dim, c.width)
        self.attn_k = weight(c.kv_heads * c.head_dim, c.width)
        self.attn_v = weight(c.kv_heads * c.head_dim, c.width)
        self.attn_q_norm, self.attn_k_norm = ones(c.head_dim), ones(c.head_dim)
        self.attn_output = weight(c.width, c.heads * c.head_dim)
        self.ffn_gate, self.ffn_up = weight(c.ffn, c.width), weight(c.ffn, c.width)
        self.ffn_down = weight(c.width, c.ffn)

    def keys_and_values(self, x, cos, sin):
        c = self.c
        k = linear(x, self.attn_k).unflatten(-1, (c.kv_heads, c.head_dim))
        v = linear(x, self.attn_v).unflatten(-1, (c.kv_heads, c.head_dim))
        return rotate(rms_norm(k, self.attn_k_norm, c.epsilon), cos, sin), v

    def forward(self, x, context, visible, angles, compute):
        """x [R, Q, width]: rows of all blocks; context [R, T, width]; visible [R, Q, T + Q]."""
        c = self.c
        n = rms_norm(x, self.attn_norm, c.epsilon, compute)
        q = linear(n, self.attn_q).unflatten(-1, (c.heads, c.head_dim))
        q = rotate(rms_norm(q, self.attn_q_norm, c.epsilon), *angles.block)
        k, v = self.keys_and_values(n, *angles.block)
        past_k, past_v = self.keys_and_values(context, *angles.text)
        k, v = torch.cat([past_k, k], 1), torch.cat([past_v, v], 1)
        group = c.heads // c.kv_heads
        k, v = k.repeat_interleave(group, 2), v.repeat_interleave(group, 2)
        o = attend(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), visible[:, None])
        x = x + linear(o.transpose(1, 2).flatten(2), self.attn_output)
        n = rms_norm(x, self.ffn_norm, c.epsilon, compute)
        return x + linear(F.silu(linear(n, self.ffn_gate)) * linear(n, self.ffn_up), self.ffn_down)


def attend(q, k, v, visible):
    if hasattr(F, "scaled_dot_product_attention"):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=visible)
    scores = (q @ k.transpose(-1, -2)) * q.shape[-1] ** -0.5
    return scores.masked_fill(~visible, float("-inf")).softmax(-1).to(v.dtype) @ v


def rotate(x, cos, sin):
    """As model.rope(), with the angles of each row: cos and sin [R or 1, T, D / 2]."""
    half = cos.shape[-1]
    a, b = x[..., :half], x[..., half:]
    cos, sin = cos[:, :, None].to(x.dtype), sin[:, :, None].to(x.dtype)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


class Angles:
    """Of the text's positions 0 .. length - 1, and of the rows of blocks, positions [R, Q]."""

    def __init__(self, c, length, positions):
        frequency = c.rope_base ** (
            -torch.arange(c.head_dim // 2, device=positions.device).float() * 2 / c.head_dim
        )
        text = torch.arange(length, device=positions.device).float()[None, :, None] * frequency
        block = positions.float()[..., None] * frequency
        self.text, self.block = (text.cos(), text.sin()), (block.cos(), block.sin())


class Drafter(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.fc = weight(config.width, len(config.taps) * config.width)
        self.enc_output_norm, self.output_norm = ones(config.width), ones(config.width)
        self.blocks = nn.ModuleList([Layer(config) for _ in range(config.layers)])

    def forward(self, states, embedded, anchors, documents, compute=torch.float32):
        """What the rows of blocks lead to, before the model's output head: [R, A, block, width].

        states [R, T, taps * width]; embedded [R, A, block, width]: the anchor's token and masks; anchors [R, A];
        documents [R, T]: a block sees its own document alone.
        """
        c = self.config
        rows, length = states.shape[:2]
        offsets = torch.arange(c.block, device=anchors.device)
        positions = (anchors[..., None] + offsets).flatten(1)
        angles = Angles(c, length, positions)
        context = rms_norm(linear(states.to(compute), self.fc), self.enc_output_norm, c.epsilon)
        visible = visible_keys(anchors, documents, c.block)
        x = embedded.flatten(1, 2).float()
        for layer in self.blocks:
            x = layer(x, context, visible, angles, compute)
        return rms_norm(x, self.output_norm, c.epsilon).view(rows, anchors.shape[1], c.block, c.width)


def visible_keys(anchors, documents, block):
    """[R, A * block, T + A * block]: of the text what stands before the anchor in its document, and the own block."""
    rows, count = anchors.shape
    at = torch.arange(documents.shape[1], device=documents.device)
    own = documents.gather(1, anchors)
    text = (at < anchors[..., None]) & (documents[:, None] == own[..., None])
    blocks = torch.arange(count, device=anchors.device).repeat_interleave(block)
    inside = (blocks[:, None] == blocks).expand(rows, -1, -1)
    return torch.cat([text.repeat_interleave(block, 1), inside], -1)


def tapped_states(model, tokens, masks, taps):
    """The residual stream after the tapped layers side by side, and the normed states behind the last layer."""
    x = F.embedding(tokens, model.token_embd)
    found = []
    for number, block in enumerate(model.blocks):
        x, _ = block(x, masks)
        if number in taps:
            found.append(x)
    return torch.cat(found, -1), rms_norm(x, model.output_norm, model.config.epsilon)


# ------------------------------------------------------------------------------------------------------------- file

NAMES = {"fc": "fc.weight", "enc_output_norm": "enc.output_norm.weight", "output_norm": "output_norm.weight"}


def file_name(parameter):
    if parameter in NAMES:
        return NAMES[parameter]
    _, number, inner = parameter.split(".")
    return f"blk.{number}.{inner}.weight"


def metadata(c, name):
    a = "dflash"
    return {
        "general.architecture": a,
        "general.type": "model",
        "general.name": name,
        "general.license": "apache-2.0",
        f"{a}.block_count": c.layers,
        f"{a}.context_length": c.context,
        f"{a}.embedding_length": c.width,
        f"{a}.feed_forward_length": c.ffn,
        f"{a}.attention.head_count": c.heads,
        f"{a}.attention.head_count_kv": c.kv_heads,
        f"{a}.attention.key_length": c.head_dim,
        f"{a}.attention.value_length": c.head_dim,
        f"{a}.attention.layer_norm_rms_epsilon": gguf.F32(c.epsilon),
        f"{a}.rope.freq_base": gguf.F32(c.rope_base),
        f"{a}.rope.dimension_count": c.head_dim,
        f"{a}.vocab_size": c.vocab,
        f"{a}.block_size": c.block,
        # The file counts inputs of layers: input i + 1 is the output of layer i.
        f"{a}.target_layers": [tap + 1 for tap in c.taps],
        "tokenizer.ggml.mask_token_id": c.mask_token,
        "general.quantization_version": gguf.U32(2),
    }


def write_file(path, drafter, name, kind="F16"):
    """Matrices in the float type `kind`, norms in float32."""
    entries = []
    for parameter, tensor in drafter.state_dict().items():
        values = tensor.detach().float().cpu().numpy().astype(np.float32)
        chosen = kind if values.ndim > 1 else "F32"
        entries.append((file_name(parameter), tuple(reversed(values.shape)), chosen, quants.encode(chosen, values)))
    gguf.write(path, metadata(drafter.config, name), entries)
