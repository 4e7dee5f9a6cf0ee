"""Weights on disk between machines: float16 in parts small enough to travel, under the names of the state dict.

Half precision keeps 11 bits of each weight, far finer than any format the model ships in.
"""

import json

import numpy as np

PART_BYTES = 15 << 20


def save_weights(model, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("part-*"):
        old.unlink()
    index, blob = [], bytearray()
    for name, tensor in model.state_dict().items():
        values = tensor.detach().float().cpu().numpy().astype(np.float16)
        if not np.isfinite(values).all():
            raise ValueError(f"{name} has a value outside the range of float16")
        index.append({"name": name, "shape": list(values.shape)})
        blob += values.tobytes()
    for number, start in enumerate(range(0, len(blob), PART_BYTES)):
        (folder / f"part-{number}").write_bytes(blob[start : start + PART_BYTES])
    config = {"config": model.config.as_dict(), "tensors": index}
    (folder / "index.json").write_text(json.dumps(config, indent=1))


def read_weights(folder):
    """(config, {name: float32 array}) of a folder of save_weights."""
    index = json.loads((folder / "index.json").read_text())
    blob = b"".join((folder / f"part-{i}").read_bytes() for i in range(len(list(folder.glob("part-*")))))
    values, at, tensors = np.frombuffer(blob, np.float16), 0, {}
    for entry in index["tensors"]:
        count = int(np.prod(entry["shape"]))
        tensors[entry["name"]] = values[at : at + count].reshape(entry["shape"]).astype(np.float32)
        at += count
    if at != len(values):
        raise ValueError(f"{folder}: the parts hold {len(values)} values, the index names {at}")
    return index["config"], tensors


def load_weights(model, folder):
    """Weights of a folder of save_weights, or those of a GGUF file as far as its formats kept them."""
    import torch

    if folder.suffix == ".gguf":
        from .export import read_model

        model.load_state_dict(read_model(folder).state_dict())
        return
    _, tensors = read_weights(folder)
    model.load_state_dict({name: torch.from_numpy(values) for name, values in tensors.items()})
