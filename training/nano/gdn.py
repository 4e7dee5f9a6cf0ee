"""The gated delta rule in chunks: what the recurrence gives, as matrix products.

    S <- exp(g) S;  d = beta (v - S^T k);  S <- S + k d^T;  o = S^T q

Inside a chunk of C tokens the updates form a unit lower triangular system; its inverse T turns them into products of
C x C and C x D matrices, and only the state S is carried from chunk to chunk.
"""

import torch
import torch.nn.functional as F

CHUNK = 64


def recurrent(q, k, v, g, beta):
    """The definition, one token at a time in the given precision: the twin that `chunked` is held against."""
    batch, length, heads, dim = q.shape
    state = torch.zeros(batch, heads, dim, v.shape[-1], dtype=v.dtype, device=v.device)
    out = []
    for t in range(length):
        state = state * g[:, t, :, None, None].exp()
        kt = k[:, t, :, :, None]
        delta = beta[:, t, :, None] * (v[:, t] - (state * kt).sum(2))
        state = state + kt * delta[:, :, None, :]
        out.append((state * q[:, t, :, :, None]).sum(2))
    return torch.stack(out, 1)


class UnitLowerInverse(torch.autograd.Function):
    """(I + A)^-1 for strictly lower triangular A, by doubling the size of inverted diagonal blocks.

    With T the inverse of the block diagonal, [[P, 0], [R, Q]]^-1 = [[P', 0], [-Q' R P', Q']] reads T - T (A * mask) T.
    Substitution by blocks is as stable as row by row; powers of A (a Neumann series) are not: they explode for
    repeated keys.
    """

    @staticmethod
    def forward(ctx, a):
        size = a.shape[-1]
        index = torch.arange(size, device=a.device)
        inverse = torch.eye(size, dtype=a.dtype, device=a.device) - a * off_diagonal(index, 1)
        block = 2
        while block < size:
            inverse = inverse - inverse @ (a * off_diagonal(index, block)) @ inverse
            block *= 2
        ctx.save_for_backward(inverse)
        return inverse

    @staticmethod
    def backward(ctx, grad):
        (inverse,) = ctx.saved_tensors
        transposed = inverse.transpose(-1, -2)
        return -(transposed @ grad @ transposed).tril(-1)


def off_diagonal(index, block):
    """The lower left quarter of every diagonal block of size 2 * block."""
    same = (index[:, None] // (2 * block)) == (index[None, :] // (2 * block))
    return same & ((index[:, None] // block) % 2 == 1) & ((index[None, :] // block) % 2 == 0)


class StateScan(torch.autograd.Function):
    """The sequential part: all states at chunk starts, S[n+1] = e[n] S[n] + Kd[n]^T (U[n] - W[n] S[n]).

    Backward runs the same chain from the end with the stored states: G[n] = e[n] G[n+1] - W[n]^T Kd[n] G[n+1] + dS[n].
    """

    @staticmethod
    def forward(ctx, w, u, kd, e):
        batch, chunks, _, dim = w.shape
        exact = torch.promote_types(u.dtype, torch.float32)
        state = torch.zeros(batch, dim, u.shape[-1], dtype=exact, device=w.device)
        states = torch.empty(batch, chunks, dim, u.shape[-1], dtype=u.dtype, device=w.device)
        for n in range(chunks):
            states[:, n] = state
            fresh = u[:, n] - w[:, n] @ states[:, n]
            state = state * e[:, n, None, None] + (kd[:, n].transpose(1, 2) @ fresh).to(exact)
        ctx.save_for_backward(w, u, kd, e, states)
        return states

    @staticmethod
    def backward(ctx, grad):
        w, u, kd, e, states = ctx.saved_tensors
        chunks = w.shape[1]
        exact = torch.promote_types(u.dtype, torch.float32)
        ahead = torch.zeros_like(states[:, 0], dtype=exact)
        carried = torch.empty_like(states)
        for n in range(chunks - 1, -1, -1):
            carried[:, n] = ahead
            through = w[:, n].transpose(1, 2) @ (kd[:, n] @ carried[:, n])
            ahead = ahead * e[:, n, None, None] - through.to(exact) + grad[:, n].to(exact)
        # carried[n] is the gradient of S[n+1]; everything else is local to its chunk.
        fresh = u - w @ states
        d_fresh = kd @ carried
        d_kd = fresh @ carried.transpose(-1, -2)
        d_e = (carried.to(exact) * states.to(exact)).sum((-1, -2))
        return -(d_fresh @ states.transpose(-1, -2)), d_fresh, d_kd, d_e


def scan(w, u, kd, e):
    return StateScan.apply(w, u, kd, e)


def chunked(q, k, v, g, beta):
    """q, k, v [B, T, H, D] (q scaled, q and k of unit length), g and beta [B, T, H] float32 -> o [B, T, H, D]."""
    batch, length, heads, dim = q.shape
    padded = -length % CHUNK
    if padded:
        q, k, v = (F.pad(x, (0, 0, 0, 0, 0, padded)) for x in (q, k, v))
        g, beta = (F.pad(x, (0, 0, 0, padded)) for x in (g, beta))
    chunks = (length + padded) // CHUNK

    def split(x):
        return x.transpose(1, 2).reshape(batch * heads, chunks, CHUNK, *x.shape[3:])

    q, k, v, g, beta = (split(x) for x in (q, k, v, g, beta))
    kind = v.dtype
    total = g.cumsum(-1)
    lower = torch.ones(CHUNK, CHUNK, dtype=torch.bool, device=q.device).tril()
    decay = (total[..., :, None] - total[..., None, :]).masked_fill(~lower, float("-inf")).exp()
    a = ((k @ k.transpose(-1, -2)).to(g.dtype) * decay * beta[..., None]).tril(-1)
    inverse = UnitLowerInverse.apply(a)
    u = (inverse * beta[..., None, :]).to(kind) @ v
    w = (inverse * (beta * total.exp())[..., None, :]).to(kind) @ k
    kd = k * (total[..., -1:] - total).exp()[..., None].to(kind)
    states = scan(w, u, kd, total[..., -1].exp())
    fresh = u - w @ states
    inside = ((q @ k.transpose(-1, -2)).to(g.dtype) * decay).to(kind)
    o = (q * total.exp()[..., None].to(kind)) @ states + inside @ fresh
    o = o.reshape(batch, heads, chunks * CHUNK, dim).transpose(1, 2)
    return o[:, :length]
