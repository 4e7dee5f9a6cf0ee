"""The model in PyTorch: Qwen3.5-MoE (Gated DeltaNet, gated attention, routed and shared experts, one MTP block).

Weights carry the names and the layout of the GGUF file, so that export writes them as they are and a GGUF file loads
back into the same class. Every operation is differentiable and has one form for training and evaluation.
"""

import math
from dataclasses import dataclass, asdict

import torch
import torch.nn.functional as F
from torch import nn

from . import gdn


@dataclass
class Config:
    vocab: int = 8192
    width: int = 256
    layers: int = 6
    attention_every: int = 3
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 128
    rope_dims: int = 32
    rope_base: float = 1e6
    rope_sections: tuple = (6, 5, 5, 0)
    key_heads: int = 2
    value_heads: int = 4
    state_dim: int = 128
    conv: int = 4
    experts: int = 12
    experts_used: int = 4
    expert_width: int = 256
    shared_width: int = 256
    mtp: int = 1
    context: int = 16384
    epsilon: float = 1e-6

    def is_attention(self, layer):
        return layer >= self.layers or (layer + 1) % self.attention_every == 0

    def as_dict(self):
        return asdict(self)


def rms_norm(x, weight, epsilon, dtype=None):
    exact = x.to(torch.promote_types(x.dtype, torch.float32))
    normed = exact * torch.rsqrt(exact.square().mean(-1, keepdim=True) + epsilon) * weight
    return normed.to(dtype or x.dtype)


def linear(x, matrix):
    """Weights are kept in float32 and multiplied in the precision of the activations."""
    return F.linear(x, matrix.to(x.dtype))


def weight(*shape, scale=None):
    """A matrix {out, in} with a spread of half the usual 1/sqrt(fan-in); small enough that Muon's first steps rule."""
    spread = 0.5 / math.sqrt(shape[-1]) if scale is None else scale
    return nn.Parameter(torch.randn(*shape) * spread)


def ones(*shape):
    return nn.Parameter(torch.ones(*shape))


def rope(x, cos, sin):
    """Rotates the leading dimensions of each head in pairs (k, k + n/2); x is [B, T, H, D]."""
    half = cos.shape[-1]
    a, b, rest = x[..., :half], x[..., half : 2 * half], x[..., 2 * half :]
    cos, sin = cos[:, None, :].to(x.dtype), sin[:, None, :].to(x.dtype)
    return torch.cat([a * cos - b * sin, b * cos + a * sin, rest], -1)


class DeltaNet(nn.Module):
    def __init__(self, c, out_scale):
        super().__init__()
        self.c = c
        keys, values = c.key_heads * c.state_dim, c.value_heads * c.state_dim
        self.attn_qkv = weight(2 * keys + values, c.width)
        self.attn_gate = weight(values, c.width)
        self.ssm_conv1d = weight(2 * keys + values, c.conv, scale=0.5)
        self.ssm_alpha = weight(c.value_heads, c.width)
        self.ssm_beta = weight(c.value_heads, c.width)
        # Decay rates from slow to fast over the heads: half-lives of a few tokens to a few hundred.
        rates = torch.logspace(-2.5, 0, c.value_heads)
        self.ssm_dt = nn.Parameter(torch.log(torch.expm1(rates)))
        self.log_a = nn.Parameter(torch.zeros(c.value_heads))
        self.ssm_norm = ones(c.state_dim)
        self.ssm_out = weight(c.width, values, scale=out_scale / math.sqrt(values))

    def forward(self, x, masks):
        c = self.c
        batch, length, _ = x.shape
        u = causal_conv(linear(x, self.attn_qkv), self.ssm_conv1d, masks)
        keys = c.key_heads * c.state_dim
        q, k, v = u.split([keys, keys, c.value_heads * c.state_dim], -1)
        q = unit(q.view(batch, length, c.key_heads, c.state_dim)) * c.state_dim**-0.5
        k = unit(k.view(batch, length, c.key_heads, c.state_dim))
        v = v.view(batch, length, c.value_heads, c.state_dim)
        # Value head j belongs to key head j % key_heads (the order of the GGUF file).
        repeat = c.value_heads // c.key_heads
        q, k = q.repeat(1, 1, repeat, 1), k.repeat(1, 1, repeat, 1)
        exact = torch.promote_types(x.dtype, torch.float32)
        beta = linear(x.to(exact), self.ssm_beta).sigmoid()
        decay = -self.log_a.exp() * F.softplus(linear(x.to(exact), self.ssm_alpha) + self.ssm_dt)
        decay = decay + masks.reset[..., None]
        o = gdn.chunked(q, k, v, decay, beta)
        o = rms_norm(o, self.ssm_norm, c.epsilon)
        z = linear(x, self.attn_gate).view(batch, length, c.value_heads, c.state_dim)
        return linear((o * F.silu(z)).reshape(batch, length, -1), self.ssm_out)


def unit(x):
    exact = x.to(torch.promote_types(x.dtype, torch.float32))
    return (exact * torch.rsqrt(exact.square().sum(-1, keepdim=True) + 1e-6)).to(x.dtype)


def causal_conv(u, kernel, masks):
    """Depthwise convolution over time that never looks across the start of a document; then SiLU."""
    taps = kernel.shape[1]
    kernel = kernel.to(u.dtype)
    out = u * kernel[:, taps - 1]
    for back in range(1, taps):
        shifted = F.pad(u, (0, 0, back, 0))[:, : u.shape[1]]
        out = out + shifted * kernel[:, taps - 1 - back] * masks.same[back - 1][..., None].to(u.dtype)
    return F.silu(out)


class Attention(nn.Module):
    def __init__(self, c, out_scale):
        super().__init__()
        self.c = c
        self.attn_q = weight(2 * c.heads * c.head_dim, c.width)
        self.attn_k = weight(c.kv_heads * c.head_dim, c.width)
        self.attn_v = weight(c.kv_heads * c.head_dim, c.width)
        self.attn_q_norm = ones(c.head_dim)
        self.attn_k_norm = ones(c.head_dim)
        self.attn_output = weight(c.width, c.heads * c.head_dim, scale=out_scale / math.sqrt(c.heads * c.head_dim))

    def forward(self, x, masks):
        c = self.c
        batch, length, _ = x.shape
        q, gate = linear(x, self.attn_q).view(batch, length, c.heads, 2, c.head_dim).unbind(3)
        k = linear(x, self.attn_k).view(batch, length, c.kv_heads, c.head_dim)
        v = linear(x, self.attn_v).view(batch, length, c.kv_heads, c.head_dim)
        q = rope(rms_norm(q, self.attn_q_norm, c.epsilon), masks.cos, masks.sin)
        k = rope(rms_norm(k, self.attn_k_norm, c.epsilon), masks.cos, masks.sin)
        group = c.heads // c.kv_heads
        k, v = k.repeat_interleave(group, 2), v.repeat_interleave(group, 2)
        o = attend(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), masks.attention)
        o = o.transpose(1, 2) * gate.sigmoid()
        return linear(o.reshape(batch, length, -1), self.attn_output)


def attend(q, k, v, mask):
    if hasattr(F, "scaled_dot_product_attention"):
        if mask is None:
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    length = q.shape[2]
    scores = (q @ k.transpose(-1, -2)) * q.shape[-1] ** -0.5
    visible = torch.ones(length, length, dtype=torch.bool, device=q.device).tril() if mask is None else mask
    return scores.masked_fill(~visible, float("-inf")).softmax(-1).to(v.dtype) @ v


class Experts(nn.Module):
    """Softmax router, top-k renormalised, plus the gated shared expert.

    All experts run on all tokens and the routing weight, zero for those not chosen, multiplies the activation before
    the down projection: twelve small experts as two plain matrix products beat gathering and scattering tokens.
    """

    def __init__(self, c, out_scale):
        super().__init__()
        self.c = c
        down = out_scale / math.sqrt(c.expert_width)
        self.ffn_gate_inp = weight(c.experts, c.width)
        self.ffn_gate_exps = weight(c.experts, c.expert_width, c.width)
        self.ffn_up_exps = weight(c.experts, c.expert_width, c.width)
        self.ffn_down_exps = weight(c.experts, c.width, c.expert_width, scale=down)
        self.ffn_gate_inp_shexp = nn.Parameter(torch.zeros(c.width))
        self.ffn_gate_shexp = weight(c.shared_width, c.width)
        self.ffn_up_shexp = weight(c.shared_width, c.width)
        self.ffn_down_shexp = weight(c.width, c.shared_width, scale=down)

    def forward(self, x):
        c = self.c
        exact = torch.promote_types(x.dtype, torch.float32)
        logits = linear(x.to(exact), self.ffn_gate_inp)
        p = logits.softmax(-1)
        top, chosen = p.topk(c.experts_used, -1)
        routed = torch.zeros_like(p).scatter(-1, chosen, top / top.sum(-1, keepdim=True))
        shared_gate = linear(x, self.ffn_gate_inp_shexp[None]).sigmoid()
        gate = linear(x, torch.cat([self.ffn_gate_exps.flatten(0, 1), self.ffn_gate_shexp]))
        up = linear(x, torch.cat([self.ffn_up_exps.flatten(0, 1), self.ffn_up_shexp]))
        share = torch.cat(
            [
                routed.to(x.dtype).repeat_interleave(c.expert_width, -1),
                shared_gate.expand(*x.shape[:-1], c.shared_width),
            ],
            -1,
        )
        down = torch.cat([self.ffn_down_exps.transpose(0, 1).flatten(1, 2), self.ffn_down_shexp], 1)
        y = linear(F.silu(gate) * up * share, down)
        # Balance: the share of tokens an expert gets times the probability it is given, 1 when both are even.
        load = (routed > 0).float().flatten(0, -2).mean(0) / c.experts_used
        balance = c.experts * (load * p.flatten(0, -2).mean(0)).sum()
        return y, balance + 1e-2 * logits.logsumexp(-1).square().mean()


class Block(nn.Module):
    def __init__(self, c, attention, out_scale):
        super().__init__()
        self.c = c
        self.attn_norm = ones(c.width)
        self.mixer = Attention(c, out_scale) if attention else DeltaNet(c, out_scale)
        self.post_attention_norm = ones(c.width)
        self.ffn = Experts(c, out_scale)

    def forward(self, x, masks):
        # The residual stream stays in float32; the mixers and experts work in the compute precision.
        x = x + self.mixer(rms_norm(x, self.attn_norm, self.c.epsilon, masks.compute), masks)
        y, balance = self.ffn(rms_norm(x, self.post_attention_norm, self.c.epsilon, masks.compute))
        return x + y, balance


class Draft(nn.Module):
    """The MTP block: from the trunk's state at t - 1 and token t it guesses token t + 1, before the trunk can."""

    def __init__(self, c, out_scale):
        super().__init__()
        self.c = c
        self.eh_proj = weight(c.width, 2 * c.width)
        self.enorm, self.hnorm, self.shared_head_norm = ones(c.width), ones(c.width), ones(c.width)
        self.block = Block(c, True, out_scale)

    def forward(self, before, embedded, masks):
        e = rms_norm(embedded, self.enorm, self.c.epsilon, masks.compute)
        h = rms_norm(before, self.hnorm, self.c.epsilon, masks.compute)
        x, balance = self.block(linear(torch.cat([e, h], -1), self.eh_proj).to(before.dtype), masks)
        return rms_norm(x, self.shared_head_norm, self.c.epsilon), balance


class Masks:
    """What the layers need to know of document borders and positions, computed once a batch."""

    def __init__(self, config, documents, length, device, compute):
        self.compute = compute
        positions = torch.arange(length, device=device).float()
        frequency = config.rope_base ** (
            -torch.arange(config.rope_dims // 2, device=device).float() * 2 / config.rope_dims
        )
        angles = positions[:, None] * frequency
        self.cos, self.sin = angles.cos(), angles.sin()
        if documents is None:
            documents = torch.zeros(1, length, dtype=torch.int32, device=device)
            self.attention = None
        else:
            causal = torch.ones(length, length, dtype=torch.bool, device=device).tril()
            self.attention = (documents[:, None, :, None] == documents[:, None, None, :]) & causal
        self.same = [F.pad(documents[:, back:] == documents[:, :-back], (back, 0)) for back in range(1, config.conv)]
        # e^-50 wipes the state of the document before; a larger exponent would cost precision in the running sums.
        self.reset = torch.where(F.pad(documents[:, 1:] == documents[:, :-1], (1, 0)), 0.0, -50.0)


class Nano(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        out_scale = 0.5 / math.sqrt(2 * config.layers)
        self.token_embd = weight(config.vocab, config.width, scale=0.02)
        self.blocks = nn.ModuleList([Block(config, config.is_attention(i), out_scale) for i in range(config.layers)])
        self.output_norm = ones(config.width)
        self.draft = Draft(config, out_scale) if config.mtp else None
        self.draft_alone = False  # the MTP block learns from a trunk that stays as it is

    def forward(self, tokens, masks):
        """tokens [B, T] -> the trunk's normed states, those of the MTP block, and the routers' balance loss.

        Both states at t lead to token t + 1. The MTP block has no state before the first token of a document: zero.
        """
        embedded = F.embedding(tokens, self.token_embd)
        x, balance = embedded, 0.0
        for block in self.blocks:
            x, one = block(x, masks)
            balance = balance + one
        z = rms_norm(x, self.output_norm, self.config.epsilon)
        if self.draft is None:
            return z, None, balance
        if self.draft_alone:
            z, embedded, balance = z.detach(), embedded.detach(), 0.0
        before = F.pad(z, (0, 0, 1, 0))[:, :-1] * masks.same[0][..., None]
        n, one = self.draft(before, embedded, masks)
        return z, n, balance + one

    def logits(self, states):
        return linear(states, self.token_embd)


def parameters_by_kind(model):
    """Total and active parameter counts: an unused expert is not active."""
    c = model.config
    total = sum(p.numel() for p in model.parameters())
    trunk = sum(p.numel() for name, p in model.named_parameters() if not name.startswith("draft"))
    idle = c.layers * 3 * c.width * c.expert_width * (c.experts - c.experts_used)
    return {"total": total, "trunk": trunk, "active": trunk - idle}
