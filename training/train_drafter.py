#!/usr/bin/env python3
"""Distils a DFlash drafter for a model from its GGUF file, on one CUDA card or, small, on a CPU. See README.md.

The model is frozen and is the quantised one: its weights are those of the file, decoded. Anchors are drawn anew in every
batch from the tokens of answers; the loss of slot k weighs exp(-(k - 1) / g). What a slot learns is half the text and
half what the model itself would say there, which is what its guess is compared with.
"""

import argparse
import json
import math
import pathlib
import time

import torch
import torch.nn.functional as F

from nano import batches, gguf
from nano.drafter import Drafter, DrafterConfig, tapped_states, write_file
from nano.export import read_model
from nano.model import Masks
from train import load_held_out

# Of the tokens that are read; what people ask of a drafted answer, tools, forms, code and sums, has more than its share of the data.
SHARES = {
    "prose": 5, "stories": 2, "facts": 1, "code": 4,
    "chat": 7, "facts_qa": 5, "arithmetic": 8, "reasoning": 3, "tools": 10, "code_qa": 4, "stories_qa": 5, "mixed": 8,
    "instructions": 3, "choice": 7, "results": 5, "notes": 4, "given_text": 4, "forms": 7, "follow_ups": 3, "steps": 6,
    "programs": 2, "languages": 0.5, "letters": 3, "unknowns": 0.5, "lookup": 2, "everyday": 1.5, "newcomers": 10,
    "requests": 3,
}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", help="GGUF file of the model")
    parser.add_argument("data", help="folder made by prepare.py with the model's tokenizer; several with : between them")
    parser.add_argument("out", help="the drafter's GGUF file; a log stands beside it")
    parser.add_argument("--steps", type=int, default=4000, help="length of the schedule (default %(default)s)")
    parser.add_argument("--minutes", type=float, help="end the schedule after this time if the steps take longer")
    parser.add_argument("--rows", type=int, default=48)
    parser.add_argument("--length", type=int, default=1024)
    parser.add_argument("--anchors", type=int, default=64, help="blocks of a row (default %(default)s)")
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.add_argument("--gamma", type=float, default=4.0, help="g of the slots' weights (default %(default)s)")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--config", default="{}", help="JSON with DrafterConfig fields to change")
    return parser.parse_args()


def rate_factor(progress):
    """Warm up over 4 %, then a cosine."""
    return progress / 0.04 if progress < 0.04 else 0.5 * (1 + math.cos(math.pi * (progress - 0.04) / 0.96))


class Trainer:
    def __init__(self, options):
        self.options = options
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.compute = torch.bfloat16 if self.device == "cuda" else torch.float32
        torch.manual_seed(options.seed)
        torch.set_float32_matmul_precision("high")
        self.model = read_model(pathlib.Path(options.model)).to(self.device).requires_grad_(False)
        own, about = self.model.config, gguf.read(options.model)[0]
        # No answer has the padding token in it.
        mask = about["tokenizer.ggml.padding_token_id"]
        fields = {"width": own.width, "vocab": own.vocab, "context": own.context, "mask_token": mask}
        fields.update(json.loads(options.config))
        fields["taps"] = tuple(fields.get("taps", DrafterConfig.taps))
        self.config = DrafterConfig(**fields)
        self.drafter = Drafter(self.config).to(self.device)
        # The head expects states of this size.
        self.drafter.output_norm.data.copy_(self.model.output_norm)
        matrices = [p for p in self.drafter.parameters() if p.ndim > 1]
        vectors = [p for p in self.drafter.parameters() if p.ndim < 2]
        groups = [{"params": matrices, "weight_decay": 0.01}, {"params": vectors, "weight_decay": 0.0}]
        self.optimiser = torch.optim.AdamW(groups, options.rate, betas=(0.9, 0.98))
        slots = torch.arange(self.config.block - 1, device=self.device)
        self.weights = torch.exp(-slots / options.gamma)
        self.random = torch.Generator().manual_seed(options.seed)

    def draw_anchors(self, labels, documents):
        """Positions [R, A] whose next token is learnt, and for each slot whether its token is, in the same document.

        A row with fewer such positions has some of them twice.
        """
        block = self.config.block
        learnt = labels >= 0  # at p: token p + 1 is one that the model writes
        learnt[:, -block:] = False
        chance = learnt.float() + 1e-9
        anchors = torch.multinomial(chance.cpu(), self.options.anchors, True, generator=self.random).to(labels.device)
        at = anchors[..., None] + torch.arange(block - 1, device=labels.device)
        rows = torch.arange(len(labels), device=labels.device)[:, None, None]
        inside = documents[rows, at + 1] == documents[rows, anchors[..., None]]
        return anchors, at, (labels[rows, at] >= 0) & inside

    def forward(self, *batch):
        ids, labels, documents = (torch.from_numpy(x).to(self.device) for x in batch)
        with torch.no_grad():
            masks = Masks(self.model.config, documents, ids.shape[1], self.device, self.compute)
            states, z = tapped_states(self.model, ids, masks, self.config.taps)
            anchors, at, keep = self.draw_anchors(labels, documents)
            rows = torch.arange(len(ids), device=self.device)[:, None, None]
            block = torch.full((*anchors.shape, self.config.block), self.config.mask_token, device=self.device)
            block[..., 0] = ids.gather(1, anchors)
            teacher = self.model.logits(z[rows, at].to(self.compute)).float().log_softmax(-1)
            target = ids[rows, at + 1]
        embedded = F.embedding(block, self.model.token_embd)
        out = self.drafter(states, embedded, anchors, documents, self.compute)[:, :, 1:]
        guessed = self.model.logits(out.to(self.compute)).float().log_softmax(-1)
        text = -guessed.gather(-1, target[..., None])[..., 0]
        said = -(teacher.exp() * guessed).sum(-1)
        weights = self.weights * keep
        loss = ((0.5 * text + 0.5 * said) * weights).sum() / weights.sum().clamp(min=1)
        # A slot counts while all before it are as the text goes on.
        taken = ((guessed.argmax(-1) == target) & keep).cumprod(-1).float()
        possible = keep[..., :1].float().sum().clamp(min=1)
        return loss, taken.sum((0, 1)) / possible

    @torch.no_grad()
    def evaluate(self, held_out, rows):
        """By domain: the share of blocks whose first 1, 2, ... slots are all right."""
        result = {}
        for name, (tokens, documents) in held_out.items():
            tokens, documents = tokens[:rows], documents[:rows]
            _, taken = self.forward(*batches.split_flags(tokens, documents), documents)
            result[name] = [round(x, 3) for x in taken.tolist()]
        return result

    def run(self):
        options = self.options

        def source():
            return batches.Batches(options.data, SHARES, options.length, options.rows, options.seed)

        held_out = load_held_out(pathlib.Path(options.data.split(":")[0]), options.length)
        feed = batches.Feed(source, 0, 1, 0)
        count = sum(p.numel() for p in self.drafter.parameters())
        print(json.dumps({"parameters": count, "config": self.config.as_dict()}), flush=True)
        log = open(options.out + ".jsonl", "w")
        start, step, progress = time.time(), 0, 0.0
        while progress < 1:
            loss, taken = self.forward(*feed.next())
            loss.backward()
            norm = torch.nn.utils.clip_grad_norm_(self.drafter.parameters(), 1.0)
            for group in self.optimiser.param_groups:
                group["lr"] = options.rate * rate_factor(progress)
            self.optimiser.step()
            self.optimiser.zero_grad()
            step += 1
            spent = time.time() - start
            progress = max(step / options.steps, spent / (options.minutes * 60) if options.minutes else 0.0)
            if step % 50 == 0 or step <= 2:
                line = {"step": step, "seconds": round(spent, 1), "loss": round(loss.item(), 4),
                        "norm": round(norm.item(), 3), "taken": [round(x, 3) for x in taken.tolist()]}
                if not math.isfinite(line["loss"]):
                    raise SystemExit(f"the loss is not finite: {line}")
                print(json.dumps(line), flush=True)
                log.write(json.dumps(line) + "\n")
        write_file(options.out, self.drafter, pathlib.Path(options.out).stem)
        final = {"step": step, "seconds": round(time.time() - start, 1), "held_out": self.evaluate(held_out, 16)}
        print(json.dumps(final), flush=True)
        log.write(json.dumps(final) + "\n")


if __name__ == "__main__":
    Trainer(arguments()).run()
