"""A LoRA adapter of chimere-nano by ordinary gradients in PyTorch, to compare with what the engine learns without them.

    lora_baseline.py ids MODEL.gguf EXAMPLES.jsonl IDS.txt
    lora_baseline.py train MODEL.gguf TRAIN.txt HELD_OUT.txt [--rank 8] [--steps 300] [--batch 8] [--rate 2e-3] [--head]

`ids` writes examples as lines of numbers (where the answer begins, then the tokens): what `chimere-core learn` reads, so
that both learn from the same tokens. `train` changes the matrices that the engine's adapters change, at the same rank,
with Adam, and prints one JSON object: loss by step and second, and how the held-out examples stand before and after.
With --out the change is written as an adapter that `chimere serve --lora` loads.
"""

import argparse
import json
import pathlib
import time

from nano import chatml, gguf
from nano.bpe import Tokenizer

# As `attn|ssm|ffn` chooses them in the engine: projections of attention and Gated DeltaNet; experts cannot change.
MATRICES = ("attn_qkv", "attn_gate", "ssm_alpha", "ssm_beta", "ssm_out", "attn_q", "attn_k", "attn_v", "attn_output")


def dialogue_of(line):
    if "messages" not in line:
        messages = [{"role": "user", "content": line["prompt"]}, {"role": "assistant", "content": line["answer"]}]
        return {"messages": messages}
    messages = []
    for message in line["messages"]:
        message = dict(message)
        if message.get("tool_calls"):
            message["tool_calls"] = [call.get("function", call) for call in message["tool_calls"]]
        messages.append(message)
    return {"messages": messages, "tools": line.get("tools")}


def write_ids(options):
    tokenizer = Tokenizer.load(options.model)
    count = 0
    with open(options.examples, encoding="utf-8") as lines, open(options.out, "w", encoding="utf-8") as out:
        for line in map(json.loads, lines):
            if line.get("keep"):
                continue
            texts = [text for text, _ in chatml.segments(dialogue_of(line))]
            # The last text is the line end behind the answer, which the model does not write.
            prompt, answer = tokenizer.encode("".join(texts[:-2])), tokenizer.encode(texts[-2])
            print(len(prompt), *prompt, *answer, file=out)
            count += 1
    print(f"{options.out}: {count} examples")


def read_ids(path):
    with open(path, encoding="utf-8") as lines:
        numbers = [list(map(int, line.split())) for line in lines]
    return [(row[0], row[1:]) for row in numbers]


def write_adapter(path, name, changes):
    """`changes`: {matrix of the file: (a [rank, in], b [out, rank])}."""
    tensors = []
    for matrix, (a, b) in changes.items():
        for end, values in (("lora_a", a), ("lora_b", b)):
            values = values.detach().cpu().numpy().astype("<f2")
            tensors.append((f"{matrix}.{end}", values.shape[::-1], "F16", values.tobytes()))
    rank = next(iter(changes.values()))[0].shape[0]
    metadata = {"general.architecture": "qwen35moe", "general.type": "adapter", "general.name": name,
                "adapter.type": "lora", "adapter.lora.alpha": gguf.F32(float(rank))}
    gguf.write(path, metadata, tensors)


def train(options):
    import torch
    import torch.nn.functional as F
    from torch import nn
    from torch.nn.utils import parametrize

    from nano import export
    from nano.model import Masks

    torch.manual_seed(options.seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"

    class LowRank(nn.Module):
        def __init__(self, out, width):
            super().__init__()
            self.a = nn.Parameter(torch.randn(options.rank, width) / width**0.5)
            self.b = nn.Parameter(torch.zeros(out, options.rank))

        def forward(self, weight):
            return weight + self.b @ self.a

    model = export.read_model(options.model)
    model.draft = None
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    learned, changes = [], {}
    if not options.head:
        for number, block in enumerate(model.blocks):
            for name in MATRICES:
                if hasattr(block.mixer, name):
                    change = LowRank(*getattr(block.mixer, name).shape)
                    parametrize.register_parametrization(block.mixer, name, change)
                    changes[f"blk.{number}.{name}.weight"] = change
                    learned += change.parameters()
    model.to(device)
    head = LowRank(*model.token_embd.shape).to(device) if options.head else None
    if head:
        learned = list(head.parameters())
        changes["output.weight"] = head

    def batch_of(examples):
        length = -(-max(len(ids) for _, ids in examples) // 64) * 64
        tokens = torch.zeros(len(examples), length, dtype=torch.long)
        counts = torch.zeros(len(examples), length, dtype=torch.bool)
        for i, (start, ids) in enumerate(examples):
            tokens[i, : len(ids)] = torch.tensor(ids)
            counts[i, start : len(ids)] = True
        return tokens.to(device), counts.to(device)

    def logits_of(tokens):
        states, _, _ = model(tokens, Masks(model.config, None, tokens.shape[1], device, torch.float32))
        out = model.logits(states)
        return out + states @ head.a.T @ head.b.T if head else out

    def score(examples):
        loss = right = count = exact = 0
        with torch.no_grad():
            for at in range(0, len(examples), 16):
                tokens, counts = batch_of(examples[at : at + 16])
                logits, targets, wanted = logits_of(tokens)[:, :-1], tokens[:, 1:], counts[:, 1:]
                each = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none").view_as(targets)
                same = logits.argmax(-1) == targets
                loss += each[wanted].sum().item()
                right += same[wanted].sum().item()
                count += wanted.sum().item()
                exact += (same | ~wanted).all(-1).sum().item()
        return {"loss": loss / count, "token_accuracy": right / count, "exact": exact / len(examples)}

    examples, held_out = read_ids(options.examples), read_ids(options.held_out)
    before = score(held_out)
    optimizer = torch.optim.Adam(learned, lr=options.rate)
    curve, order = [], []
    start = time.time()
    for step in range(options.steps):
        done = max(step / options.steps, (time.time() - start) / options.seconds)
        if done >= 1:
            break
        while len(order) < options.batch:
            order += torch.randperm(len(examples)).tolist()
        chosen, order = order[: options.batch], order[options.batch :]
        tokens, counts = batch_of([examples[i] for i in chosen])
        for group in optimizer.param_groups:
            group["lr"] = options.rate * (1 - done)
        loss = F.cross_entropy(logits_of(tokens)[:, :-1][counts[:, 1:]], tokens[:, 1:][counts[:, 1:]])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        curve.append([step + 1, round(loss.item(), 5), round(time.time() - start, 4)])
    result = {
        "device": torch.cuda.get_device_name() if device == "cuda" else "cpu",
        "parameters": sum(p.numel() for p in learned),
        "seconds": time.time() - start,
        "held_out_before": before,
        "held_out_after": score(held_out),
        "train_after": score(examples[:1000]),
        "curve": curve,
    }
    print(json.dumps(result))
    if options.out:
        write_adapter(options.out, options.out.stem, {matrix: (change.a, change.b) for matrix, change in changes.items()})


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parts = parser.add_subparsers(required=True)
    ids = parts.add_parser("ids")
    for name in ("model", "examples", "out"):
        ids.add_argument(name)
    ids.set_defaults(run=write_ids)
    learning = parts.add_parser("train")
    for name in ("model", "examples", "held_out"):
        learning.add_argument(name)
    learning.add_argument("--rank", type=int, default=8)
    learning.add_argument("--steps", type=int, default=300)
    learning.add_argument("--seconds", type=float, default=float("inf"), help="end after so long, whatever the steps")
    learning.add_argument("--batch", type=int, default=8)
    learning.add_argument("--rate", type=float, default=2e-3)
    learning.add_argument("--seed", type=int, default=1)
    learning.add_argument("--head", action="store_true", help="the output head alone")
    learning.add_argument("--out", type=pathlib.Path, help="adapter.gguf to write")
    learning.set_defaults(run=train)
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
