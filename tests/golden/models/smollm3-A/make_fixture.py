#!/usr/bin/env python3
"""Write this fixture: a tiny SmolLM3 with random weights as a checkpoint (hf/) and as a GGUF file, and its logits.

The forward pass below is the definition of the model class in float64, on the checkpoint's layout (rotary halves); the
GGUF file has the rows of q and k as adjacent pairs. Weights have at most 8 significant bits, so that bf16 and f16 hold
the same values.

usage: make_fixture.py        (in any folder; needs numpy)
"""
import json
import os
import struct

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
VOCAB, WIDTH, LAYERS, HEADS, KV_HEADS, FF = 320, 64, 6, 4, 2, 96
HEAD = WIDTH // HEADS
THETA, EPS, CONTEXT = 5e6, 1e-6, 4096
NO_ROPE_EVERY = 4
SPECIAL = ["<|im_start|>", "<|im_end|>", "<|endoftext|>"]
CONFIG = {
    "architectures": ["SmolLM3ForCausalLM"], "model_type": "smollm3", "vocab_size": VOCAB, "hidden_size": WIDTH,
    "intermediate_size": FF, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS,
    "max_position_embeddings": CONTEXT, "rms_norm_eps": EPS, "rope_theta": THETA, "rope_scaling": None,
    "tie_word_embeddings": True, "attention_bias": False, "mlp_bias": False, "hidden_act": "silu",
    "use_sliding_window": False, "sliding_window": None, "no_rope_layer_interval": NO_ROPE_EVERY,
    "no_rope_layers": [int((i + 1) % NO_ROPE_EVERY != 0) for i in range(LAYERS)],
}
TEMPLATE = ("{% for message in messages %}{{ '<|im_start|>' + message.role + '\\n' + message.content }}"
            "{{ '<|im_end|>\\n' }}{% endfor %}"
            "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}")
LLAMA3_WORDS = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
                r"|\s*[\r\n]+|\s+(?!\S)|\s+")


def eight_bits(values):
    mantissa, exponent = np.frexp(values)
    return np.ldexp(np.round(mantissa * 256) / 256, exponent)


def make_weights():
    rng = np.random.default_rng(20)

    def matrix(rows, columns, spread=1.2):
        return eight_bits(rng.standard_normal((rows, columns)) * spread / np.sqrt(columns))

    def norm():
        return eight_bits(1 + 0.2 * rng.standard_normal(WIDTH))

    w = {"model.embed_tokens.weight": matrix(VOCAB, WIDTH, 2.4), "model.norm.weight": norm()}
    for i in range(LAYERS):
        at = f"model.layers.{i}."
        w[at + "input_layernorm.weight"] = norm()
        w[at + "post_attention_layernorm.weight"] = norm()
        for name, rows, columns in (("self_attn.q_proj", WIDTH, WIDTH), ("self_attn.k_proj", KV_HEADS * HEAD, WIDTH),
                                    ("self_attn.v_proj", KV_HEADS * HEAD, WIDTH), ("self_attn.o_proj", WIDTH, WIDTH),
                                    ("mlp.gate_proj", FF, WIDTH), ("mlp.up_proj", FF, WIDTH),
                                    ("mlp.down_proj", WIDTH, FF)):
            w[at + name + ".weight"] = matrix(rows, columns)
    return w


def rms_norm(x, weight):
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + EPS) * weight


def rotate(x):
    """x [tokens, heads, HEAD]: element i turns with element i + HEAD / 2."""
    angle = np.arange(len(x))[:, None] * THETA ** (-np.arange(0, HEAD, 2) / HEAD)
    cos, sin = np.cos(angle)[:, None, :], np.sin(angle)[:, None, :]
    a, b = x[..., :HEAD // 2], x[..., HEAD // 2:]
    return np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)


def attend(w, at, n, rope):
    t = len(n)
    q = (n @ w[at + "q_proj.weight"].T).reshape(t, HEADS, HEAD)
    k = (n @ w[at + "k_proj.weight"].T).reshape(t, KV_HEADS, HEAD)
    v = (n @ w[at + "v_proj.weight"].T).reshape(t, KV_HEADS, HEAD)
    if rope:
        q, k = rotate(q), rotate(k)
    out = np.zeros((t, HEADS, HEAD))
    for h in range(HEADS):
        shared = h // (HEADS // KV_HEADS)
        scores = q[:, h] @ k[:, shared].T / np.sqrt(HEAD)
        scores[np.triu_indices(t, 1)] = -np.inf
        p = np.exp(scores - scores.max(axis=1, keepdims=True))
        out[:, h] = p / p.sum(axis=1, keepdims=True) @ v[:, shared]
    return out.reshape(t, WIDTH) @ w[at + "o_proj.weight"].T


def forward(w, tokens):
    """Logits [tokens, VOCAB] of every position."""
    x = w["model.embed_tokens.weight"][tokens]
    for i in range(LAYERS):
        at = f"model.layers.{i}."
        n = rms_norm(x, w[at + "input_layernorm.weight"])
        x = x + attend(w, at + "self_attn.", n, CONFIG["no_rope_layers"][i] == 1)
        n = rms_norm(x, w[at + "post_attention_layernorm.weight"])
        gate = n @ w[at + "mlp.gate_proj.weight"].T
        hidden = gate / (1 + np.exp(-gate)) * (n @ w[at + "mlp.up_proj.weight"].T)
        x = x + hidden @ w[at + "mlp.down_proj.weight"].T
    return rms_norm(x, w["model.norm.weight"]) @ w["model.embed_tokens.weight"].T


def bf16(values):
    return (np.asarray(values, np.float32).view(np.uint32) >> 16).astype(np.uint16).tobytes()


def byte_alphabet():
    """The printable stand-ins of the 256 bytes that byte-level vocabularies use."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    spare = iter(range(256, 512))
    return [chr(b) if b in plain else chr(next(spare)) for b in range(256)]


def vocabulary():
    """(tokens, merges): the bytes, pairs of frequent letters, then what is special."""
    space = byte_alphabet()[32]
    merges = [(space, c) for c in "taoswcbpfmdri"] + [(a, b) for a, b in (
        "th", "he", "in", "er", "an", "re", "on", "at", "en", "nd", "ti", "es", "or", "te", "of", "ed", "is", "it",
        "al", "ar", "st", "to", "nt", "ng", "se", "ha", "as", "ou", "io", "le", "ve", "co", "me", "de", "hi", "ri",
        "ro", "ic", "ne", "ea", "ra", "ce", "li", "ch", "ll", "be", "ma", "si")]
    tokens = byte_alphabet() + [a + b for a, b in merges]
    return tokens + SPECIAL, merges


def write_checkpoint(w):
    tokens, merges = vocabulary()
    assert len(tokens) == VOCAB, len(tokens)
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name in sorted(w):
        piece = bf16(w[name])
        header[name] = {"dtype": "BF16", "shape": list(w[name].shape),
                        "data_offsets": [len(data), len(data) + len(piece)]}
        data += piece
    text = json.dumps(header).encode()
    with open(f"{HERE}/hf/model.safetensors", "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text + data)
    normal = len(tokens) - len(SPECIAL)
    tokenizer = {
        "version": "1.0",
        "added_tokens": [{"id": normal + i, "content": s, "special": True} for i, s in enumerate(SPECIAL)],
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": LLAMA3_WORDS}, "behavior": "Isolated", "invert": False},
            {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}]},
        "model": {"type": "BPE", "ignore_merges": True, "vocab": {t: i for i, t in enumerate(tokens[:normal])},
                  "merges": [list(m) for m in merges]},
    }
    settings = {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>", "add_bos_token": False,
                "chat_template": TEMPLATE}
    for name, value in (("config.json", CONFIG), ("tokenizer.json", tokenizer), ("tokenizer_config.json", settings)):
        with open(f"{HERE}/hf/{name}", "w", encoding="utf-8") as out:
            json.dump(value, out, indent=1)
            out.write("\n")


def adjacent_pairs(rows):
    """Rows of each head from [first half | second half] to pairs."""
    return rows.reshape(-1, 2, HEAD // 2, rows.shape[1]).swapaxes(1, 2).reshape(rows.shape)


def gguf_tensors(w):
    yield "token_embd.weight", w["model.embed_tokens.weight"], "f16"
    yield "output_norm.weight", w["model.norm.weight"], "f32"
    for i in range(LAYERS):
        at, to = f"model.layers.{i}.", f"blk.{i}."
        yield to + "attn_norm.weight", w[at + "input_layernorm.weight"], "f32"
        yield to + "attn_q.weight", adjacent_pairs(w[at + "self_attn.q_proj.weight"]), "f16"
        yield to + "attn_k.weight", adjacent_pairs(w[at + "self_attn.k_proj.weight"]), "f16"
        yield to + "attn_v.weight", w[at + "self_attn.v_proj.weight"], "f16"
        yield to + "attn_output.weight", w[at + "self_attn.o_proj.weight"], "f16"
        yield to + "ffn_norm.weight", w[at + "post_attention_layernorm.weight"], "f32"
        for part in ("gate", "up", "down"):
            yield to + f"ffn_{part}.weight", w[at + f"mlp.{part}_proj.weight"], "f16"


def gguf_metadata():
    tokens, merges = vocabulary()
    a = "smollm3."
    types = [1] * (VOCAB - len(SPECIAL)) + [3] * len(SPECIAL)
    return [
        ("general.architecture", "str", "smollm3"), ("general.type", "str", "model"),
        ("general.name", "str", "fixture smollm3-A"), ("general.file_type", "u32", 1),
        (a + "block_count", "u32", LAYERS), (a + "context_length", "u32", CONTEXT),
        (a + "embedding_length", "u32", WIDTH),
        (a + "feed_forward_length", "u32", FF), (a + "attention.head_count", "u32", HEADS),
        (a + "attention.head_count_kv", "u32", KV_HEADS), (a + "attention.layer_norm_rms_epsilon", "f32", EPS),
        (a + "rope.freq_base", "f32", THETA), (a + "rope.dimension_count", "u32", HEAD),
        (a + "vocab_size", "u32", VOCAB),
        ("tokenizer.ggml.model", "str", "gpt2"), ("tokenizer.ggml.pre", "str", "llama-bpe"),
        ("tokenizer.ggml.tokens", "strs", tokens), ("tokenizer.ggml.token_type", "i32s", types),
        ("tokenizer.ggml.merges", "strs", [" ".join(m) for m in merges]),
        ("tokenizer.ggml.eos_token_id", "u32", tokens.index("<|im_end|>")),
        ("tokenizer.ggml.padding_token_id", "u32", tokens.index("<|endoftext|>")),
        ("tokenizer.ggml.add_bos_token", "bool", False), ("tokenizer.chat_template", "str", TEMPLATE),
    ]


def string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def encoded(kind, value):
    codes = {"u32": (4, "<I"), "i32": (5, "<i"), "f32": (6, "<f"), "bool": (7, "<?")}
    if kind == "str":
        return struct.pack("<I", 8) + string(value)
    if kind == "strs":
        return struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(string, value))
    if kind == "i32s":
        return struct.pack("<IIQ", 9, 5, len(value)) + struct.pack(f"<{len(value)}i", *value)
    code, form = codes[kind]
    return struct.pack("<I", code) + struct.pack(form, value)


def write_gguf(w):
    entries, tensors = gguf_metadata(), list(gguf_tensors(w))
    out = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(entries))
    for key, kind, value in entries:
        out += string(key) + encoded(kind, value)
    data = b""
    for name, values, kind in tensors:
        shape = values.shape[::-1]
        out += string(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind == "f16", len(data))
        data += values.astype(np.float16 if kind == "f16" else np.float32).tobytes()
        data += bytes(-len(data) % 32)
    out += bytes(-len(out) % 32)
    with open(f"{HERE}/model.gguf", "wb") as file:
        file.write(out + data)


def write_arrays(w):
    rng = np.random.default_rng(21)
    text = rng.integers(0, VOCAB, 48)
    random = rng.integers(0, VOCAB, 150)
    random[100:130] = random[20:50]
    positions = np.array([0, 1, 2, 15, 16, 31, 62, 63, 64, 65, 100, 127, 128, 129, 149])
    logits = forward(w, random)
    greedy = list(text)
    for _ in range(32):
        greedy.append(int(np.argmax(forward(w, np.array(greedy))[-1])))
    arrays = {"tokens_48": text, "logits_48": forward(w, text), "tokens_150": random, "positions_150": positions,
              "logits_150": logits[positions], "decode_150": logits[134:], "greedy_48": np.array(greedy[48:])}
    with open(f"{HERE}/arrays.txt", "w", encoding="utf-8") as listing:
        for name, values in arrays.items():
            kind = "float32" if values.dtype.kind == "f" else "int32"
            values.astype(kind).tofile(f"{HERE}/{name}.bin")
            print(name, kind, values.ndim, *values.shape, name + ".bin", file=listing)
    print("standard deviation of the logits", np.std(logits))


if __name__ == "__main__":
    os.makedirs(f"{HERE}/hf", exist_ok=True)
    weights = make_weights()
    write_checkpoint(weights)
    write_gguf(weights)
    write_arrays(weights)
