"""Muon for matrices, AdamW for everything else, as one optimiser with one learning-rate factor.

Muon (Jordan et al. 2024) steps along the orthogonalised momentum; the step is scaled to the size an Adam step has
(Liu et al. 2025), so that both halves share a schedule. Matrices of one shape are orthogonalised together.
"""

import torch


def orthogonalise(matrices, steps=5):
    """The nearest semi-orthogonal matrices by a quintic Newton-Schulz iteration, batched, in bfloat16."""
    x = matrices.to(torch.bfloat16)
    tall = x.shape[-2] > x.shape[-1]
    if tall:
        x = x.transpose(-1, -2)
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(steps):
        gram = x @ x.transpose(-1, -2)
        x = 3.4445 * x + (-4.7750 * gram + 2.0315 * gram @ gram) @ x
    return (x.transpose(-1, -2) if tall else x).float()


class Optimiser:
    def __init__(self, model, rate, decay=0.1, momentum=0.95, adam_rate=None):
        self.rate, self.decay, self.momentum = rate, decay, momentum
        self.steps = 0
        named = list(model.named_parameters())
        self.matrices = [p for name, p in named if p.ndim >= 2 and min(p.shape[-2:]) >= 64 and "token_embd" not in name]
        chosen = {id(p) for p in self.matrices}
        others = [(name, p) for name, p in named if id(p) not in chosen]
        self.adam = torch.optim.AdamW(
            [
                {"params": [p for _, p in others if p.ndim >= 2], "weight_decay": 0.01},
                {"params": [p for _, p in others if p.ndim < 2], "weight_decay": 0.0},
            ],
            lr=adam_rate or rate,
            betas=(0.9, 0.95),
            eps=1e-10,
        )
        self.adam_rate = adam_rate or rate
        self.buffers = [torch.zeros_like(p) for p in self.matrices]
        self.groups = {}
        for i, p in enumerate(self.matrices):
            self.groups.setdefault(tuple(p.shape[-2:]), []).append(i)

    @torch.no_grad()
    def step(self, factor):
        for group in self.adam.param_groups:
            group["lr"] = self.adam_rate * factor
        self.adam.step()
        rate = self.rate * factor
        warm = min(1.0, self.steps / 300)
        momentum = 0.85 + (self.momentum - 0.85) * warm
        towards = []
        for p, buffer in zip(self.matrices, self.buffers):
            buffer.lerp_(p.grad, 1 - momentum)
            towards.append(p.grad.lerp(buffer, momentum))
        for (rows, columns), members in self.groups.items():
            stacked = torch.cat([towards[i].reshape(-1, rows, columns) for i in members])
            update = orthogonalise(stacked) * (0.2 * max(rows, columns) ** 0.5)
            at = 0
            for i in members:
                p = self.matrices[i]
                count = p.numel() // (rows * columns)
                p.mul_(1 - rate * self.decay).add_(update[at : at + count].reshape(p.shape), alpha=-rate)
                at += count
        self.steps += 1

    def zero_grad(self):
        for p in self.matrices:
            p.grad = None
        self.adam.zero_grad(set_to_none=True)

    def state_dict(self):
        return {"adam": self.adam.state_dict(), "buffers": self.buffers, "steps": self.steps}

    def load_state_dict(self, state):
        self.adam.load_state_dict(state["adam"])
        for mine, theirs in zip(self.buffers, state["buffers"]):
            mine.copy_(theirs)
        self.steps = state["steps"]
