#!/usr/bin/env python3
"""Write this fixture: a tiny BERT that scores pairs of texts, as a checkpoint (hf/) and as a GGUF file, and its scores.

The forward pass below is the definition of BertForSequenceClassification with one label, in float64: token kinds 0 and
1 for the two texts, the first state through the pooler's tanh and the classifier. Weights have at most 8 significant
bits, so that bf16 and f32 hold the same values.

usage: make_fixture.py        (in any folder; needs numpy)
"""
import json
import math
import os
import re
import struct

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
WIDTH, LAYERS, HEADS, FF, POSITIONS, EPS = 48, 2, 3, 80, 96, 1e-12
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LETTERS = "abcdefghijklmnopqrstuvwxyz"
WORDS = ("the of to in and is was it on that for with as by at from this what where who how when river sea mountain "
         "flows water cat dog sat mat tree house city france paris capital country bread flour oven bake sun moon star "
         "light night day red green blue fast slow run walk train wheel music song play read book write word").split()
VOCAB = SPECIAL + list(LETTERS) + ["##" + c for c in LETTERS] + list("0123456789.,?!'-") + WORDS + ["##ing"]
PAIRS = [
    ("What is the capital of France?", "Paris is the capital city of France."),
    ("What is the capital of France?", "Bake the bread in the oven."),
    ("Where flows the river?", "The river flows from the mountain to the sea."),
    ("Where flows the river?", "A cat sat on the mat."),
    ("music", ""),
    ("How fast is a train?", "Running water; trains with 24 wheels, walking dogs, and the light of the moon at night."),
]


def eight_bits(values):
    mantissa, exponent = np.frexp(values)
    return np.ldexp(np.round(mantissa * 256) / 256, exponent)


def make_weights():
    rng = np.random.default_rng(31)
    w = {}

    def linear(name, rows, columns, spread=1.2):
        w[name + ".weight"] = eight_bits(rng.standard_normal((rows, columns)) * spread / np.sqrt(columns))
        w[name + ".bias"] = eight_bits(0.2 * rng.standard_normal(rows))

    def norm(name):
        w[name + ".weight"] = eight_bits(1 + 0.2 * rng.standard_normal(WIDTH))
        w[name + ".bias"] = eight_bits(0.2 * rng.standard_normal(WIDTH))

    for name, rows in (("word", len(VOCAB)), ("position", POSITIONS), ("token_type", 2)):
        w[f"bert.embeddings.{name}_embeddings.weight"] = eight_bits(rng.standard_normal((rows, WIDTH)) * 0.6)
    norm("bert.embeddings.LayerNorm")
    for i in range(LAYERS):
        at = f"bert.encoder.layer.{i}."
        for name in ("query", "key", "value"):
            linear(at + "attention.self." + name, WIDTH, WIDTH)
        linear(at + "attention.output.dense", WIDTH, WIDTH)
        norm(at + "attention.output.LayerNorm")
        linear(at + "intermediate.dense", FF, WIDTH)
        linear(at + "output.dense", WIDTH, FF)
        norm(at + "output.LayerNorm")
    linear("bert.pooler.dense", WIDTH, WIDTH)
    linear("classifier", 1, WIDTH, 3.0)
    return w


def pieces(text):
    """Ids of a text: words and single marks, lower-cased, cut into the longest known pieces."""
    ids = []
    for word in re.findall(r"[a-z0-9]+|[^\sa-z0-9]", text.lower()):
        found, at = [], 0
        while at < len(word):
            end = next((e for e in range(len(word), at, -1) if ("##" if at else "") + word[at:e] in VOCAB), None)
            if end is None:
                found = [VOCAB.index("[UNK]")]
                break
            found.append(VOCAB.index(("##" if at else "") + word[at:end]))
            at = end
        ids += found
    return ids


def pair_ids(query, document):
    first = [VOCAB.index("[CLS]"), *pieces(query), VOCAB.index("[SEP]")]
    return first + [*pieces(document), VOCAB.index("[SEP]")], len(first)


def score(w, ids, second_at):
    def linear(name, x):
        return x @ w[name + ".weight"].T + w[name + ".bias"]

    def norm(name, x):
        centred = x - x.mean(axis=-1, keepdims=True)
        scaled = centred / np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + EPS)
        return scaled * w[name + ".weight"] + w[name + ".bias"]

    t, d = len(ids), WIDTH // HEADS
    kinds = (np.arange(t) >= second_at).astype(int)
    x = norm("bert.embeddings.LayerNorm",
             w["bert.embeddings.word_embeddings.weight"][ids] + w["bert.embeddings.position_embeddings.weight"][:t]
             + w["bert.embeddings.token_type_embeddings.weight"][kinds])
    for i in range(LAYERS):
        at = f"bert.encoder.layer.{i}."
        q, k, v = (linear(at + "attention.self." + name, x).reshape(t, HEADS, d) for name in ("query", "key", "value"))
        mixed = np.zeros((t, HEADS, d))
        for h in range(HEADS):
            p = np.exp(q[:, h] @ k[:, h].T / np.sqrt(d))
            mixed[:, h] = p / p.sum(axis=1, keepdims=True) @ v[:, h]
        x = norm(at + "attention.output.LayerNorm", x + linear(at + "attention.output.dense", mixed.reshape(t, WIDTH)))
        hidden = linear(at + "intermediate.dense", x)
        hidden = hidden / 2 * (1 + np.vectorize(math.erf)(hidden / math.sqrt(2)))
        x = norm(at + "output.LayerNorm", x + linear(at + "output.dense", hidden))
    return float(linear("classifier", np.tanh(linear("bert.pooler.dense", x[0])))[0])


def write_json(path, value):
    with open(f"{HERE}/{path}", "w", encoding="utf-8") as out:
        json.dump(value, out, indent=1)
        out.write("\n")


def write_checkpoint(w):
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name in sorted(w):
        piece = (w[name].astype(np.float32).view(np.uint32) >> 16).astype(np.uint16).tobytes()
        header[name] = {"dtype": "BF16", "shape": list(w[name].shape),
                        "data_offsets": [len(data), len(data) + len(piece)]}
        data += piece
    text = json.dumps(header).encode()
    with open(f"{HERE}/hf/model.safetensors", "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text + data)
    write_json("hf/config.json", {
        "architectures": ["BertForSequenceClassification"], "model_type": "bert", "vocab_size": len(VOCAB),
        "hidden_size": WIDTH, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "intermediate_size": FF,
        "hidden_act": "gelu", "max_position_embeddings": POSITIONS, "type_vocab_size": 2, "layer_norm_eps": EPS,
        "id2label": {"0": "LABEL_0"}, "pad_token_id": 0})
    write_json("hf/tokenizer.json", {
        "version": "1.0",
        "added_tokens": [{"id": i, "content": s, "special": True} for i, s in enumerate(SPECIAL)],
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True,
                       "strip_accents": None, "lowercase": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                  "max_input_chars_per_word": 100, "vocab": {t: i for i, t in enumerate(VOCAB)}}})
    write_json("hf/tokenizer_config.json", {
        "do_lower_case": True, "cls_token": "[CLS]", "sep_token": "[SEP]", "unk_token": "[UNK]", "pad_token": "[PAD]",
        "mask_token": "[MASK]"})


def gguf_tensors(w):
    emb = "bert.embeddings."
    yield "token_embd.weight", w[emb + "word_embeddings.weight"]
    yield "position_embd.weight", w[emb + "position_embeddings.weight"]
    yield "token_types.weight", w[emb + "token_type_embeddings.weight"]
    parts = [("token_embd_norm", emb + "LayerNorm"), ("cls", "bert.pooler.dense"), ("cls.output", "classifier")]
    for i in range(LAYERS):
        at, to = f"bert.encoder.layer.{i}.", f"blk.{i}."
        parts += [(to + "attn_q", at + "attention.self.query"), (to + "attn_k", at + "attention.self.key"),
                  (to + "attn_v", at + "attention.self.value"), (to + "attn_output", at + "attention.output.dense"),
                  (to + "attn_output_norm", at + "attention.output.LayerNorm"),
                  (to + "ffn_up", at + "intermediate.dense"), (to + "ffn_down", at + "output.dense"),
                  (to + "layer_output_norm", at + "output.LayerNorm")]
    for name, source in parts:
        yield name + ".weight", w[source + ".weight"]
        yield name + ".bias", w[source + ".bias"]


def gguf_metadata():
    marked = [t if t in SPECIAL else t[2:] if t.startswith("##") else "\u2581" + t for t in VOCAB]
    ids = {"unknown": "[UNK]", "seperator": "[SEP]", "padding": "[PAD]", "cls": "[CLS]", "mask": "[MASK]"}
    return [
        ("general.architecture", "str", "bert"), ("general.type", "str", "model"),
        ("general.name", "str", "fixture bert-rank"), ("general.file_type", "u32", 0),
        ("bert.block_count", "u32", LAYERS), ("bert.context_length", "u32", POSITIONS),
        ("bert.embedding_length", "u32", WIDTH), ("bert.feed_forward_length", "u32", FF),
        ("bert.attention.head_count", "u32", HEADS), ("bert.attention.layer_norm_epsilon", "f32", EPS),
        ("bert.attention.causal", "bool", False), ("bert.pooling_type", "u32", 4),
        ("tokenizer.ggml.model", "str", "bert"), ("tokenizer.ggml.pre", "str", "bert-bge"),
        ("tokenizer.ggml.token_type_count", "u32", 2), ("tokenizer.ggml.tokens", "strs", marked),
        ("tokenizer.ggml.token_type", "i32s", [3] * len(SPECIAL) + [1] * (len(VOCAB) - len(SPECIAL))),
        ("tokenizer.ggml.normalizer.lowercase", "bool", True),
    ] + [(f"tokenizer.ggml.{key}_token_id", "u32", VOCAB.index(text)) for key, text in ids.items()]


def string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def encoded(kind, value):
    if kind == "str":
        return struct.pack("<I", 8) + string(value)
    if kind == "strs":
        return struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(string, value))
    if kind == "i32s":
        return struct.pack(f"<IIQ{len(value)}i", 9, 5, len(value), *value)
    code, form = {"u32": (4, "<I"), "f32": (6, "<f"), "bool": (7, "<?")}[kind]
    return struct.pack("<I", code) + struct.pack(form, value)


def write_gguf(w):
    entries, tensors = gguf_metadata(), list(gguf_tensors(w))
    out, data = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(entries)), b""
    for key, kind, value in entries:
        out += string(key) + encoded(kind, value)
    for name, values in tensors:
        shape = values.shape[::-1] if values.shape[0] > 1 else values.shape[1:] or values.shape
        out += string(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, 0, len(data))
        data += values.astype(np.float32).tobytes()
        data += bytes(-len(data) % 32)
    with open(f"{HERE}/model.gguf", "wb") as file:
        file.write(out + bytes(-len(out) % 32) + data)


if __name__ == "__main__":
    os.makedirs(f"{HERE}/hf", exist_ok=True)
    weights = make_weights()
    write_checkpoint(weights)
    write_gguf(weights)
    pairs = []
    for query, document in PAIRS:
        ids, second_at = pair_ids(query, document)
        pairs.append({"query": query, "document": document, "ids": ids, "second_at": second_at,
                      "score": score(weights, ids, second_at)})
        print(f"{pairs[-1]['score']:8.4f}  of one kind {score(weights, ids, len(ids)):8.4f}  {query} | {document}")
    write_json("pairs.json", pairs)
    arrays = {"scores": np.array([p["score"] for p in pairs], np.float32),
              "second_at": np.array([p["second_at"] for p in pairs], np.int32),
              "lengths": np.array([len(p["ids"]) for p in pairs], np.int32),
              "tokens": np.array([i for p in pairs for i in p["ids"]], np.int32)}
    with open(f"{HERE}/arrays.txt", "w", encoding="utf-8") as listing:
        for name, values in arrays.items():
            values.tofile(f"{HERE}/{name}.bin")
            print(name, values.dtype, 1, len(values), name + ".bin", file=listing)
