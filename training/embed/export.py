"""Between the encoder and its GGUF file, of architecture `bert`."""

import numpy as np

from nano import gguf, quants

NAME = "chimere-embed"
DESCRIPTION = "Vectors of English texts for search: a question and the passage that answers it are near each other."
KIND = "Q8_0"
POOLING_MEAN = 1
WEIGHT_KEY = "chimere.retrieval.score_weight"
LEAST_KEY = "chimere.retrieval.least_cosine"
HOP_KEY = "chimere.retrieval.hop_tokens"
DIMENSIONS_KEY = "chimere.retrieval.dimensions"
FILE_TYPE_Q8_0 = 7


def metadata(config, tokenizer):
    return {
        "general.architecture": "bert",
        "general.type": "model",
        "general.name": NAME,
        "general.description": DESCRIPTION,
        "general.license": "apache-2.0",
        "general.languages": ["en"],
        "bert.block_count": config.layers,
        "bert.context_length": config.context,
        "bert.embedding_length": config.width,
        "bert.feed_forward_length": config.ffn,
        "bert.attention.head_count": config.heads,
        "bert.attention.layer_norm_epsilon": gguf.F32(config.epsilon),
        "bert.attention.causal": False,
        "bert.pooling_type": POOLING_MEAN,
        **tokenizer.gguf_fields(),
        "general.quantization_version": gguf.U32(2),
        "general.file_type": gguf.U32(FILE_TYPE_Q8_0),
    }


def kind_of(name, shape):
    """Matrices are small integers, positions halves, what is left is small and stays float."""
    if len(shape) < 2:
        return "F32"
    return "F16" if name.startswith("position") else KIND


def write_file(path, model, tokenizer):
    entries = []
    for name, values in model.state_dict().items():
        array = values.detach().float().cpu().numpy()
        kind = kind_of(name, array.shape)
        entries.append((name, tuple(reversed(array.shape)), kind, quants.encode(kind, array)))
    gguf.write(path, metadata(model.config, tokenizer), entries)


def set_use(path, weight, least_cosine, hop, dimensions):
    """Writes into a file how searches use its vectors (docs/retrieval.md): what a cosine of 1 counts in points of BM25, how near
    a text has to be, the tokens of a hop, and how many values of a vector count."""
    fields, tensors = gguf.read(path)
    entries = [(name, dims, kind, bytes(raw)) for name, (dims, kind, raw) in tensors.items()]
    use = {WEIGHT_KEY: gguf.F32(weight), LEAST_KEY: gguf.F32(least_cosine), HOP_KEY: gguf.U32(hop), DIMENSIONS_KEY: gguf.U32(dimensions)}
    gguf.write(path, {**fields, **use}, entries)


def read_weights(path, model):
    """Puts a file's weights, as they were rounded, into the model."""
    import torch

    _, tensors = gguf.read(path)
    state = {}
    for name, values in model.state_dict().items():
        dims, kind, raw = tensors[name]
        array = quants.decode(kind, raw, tuple(reversed(dims)))
        state[name] = torch.from_numpy(np.array(array, np.float32)).reshape(values.shape)
    model.load_state_dict(state)
