"""Between the PyTorch model and a GGUF file, in both directions."""

import pathlib

import numpy as np

from . import gguf, quants

TEMPLATE = pathlib.Path(__file__).with_name("chat_template.jinja")

# Its thoughts are trained to stay under some 100 tokens: a longer one has lost its way.
THINKING_BUDGET = 192

# What general.file_type says of a file of mostly this type.
FILE_TYPES = {"F32": 0, "F16": 1, "BF16": 32}

# State-dict names inside a block -> tensor names of the file. `ssm_a` is stored as -exp(log_a).
ATTENTION = {
    f"mixer.{name}": name for name in ("attn_q", "attn_k", "attn_v", "attn_q_norm", "attn_k_norm", "attn_output")
}
DELTA = {
    f"mixer.{name}": name
    for name in ("attn_qkv", "attn_gate", "ssm_conv1d", "ssm_alpha", "ssm_beta", "ssm_norm", "ssm_out")
}
EXPERTS = {
    f"ffn.{name}": name
    for name in (
        "ffn_gate_inp",
        "ffn_gate_exps",
        "ffn_up_exps",
        "ffn_down_exps",
        "ffn_gate_inp_shexp",
        "ffn_gate_shexp",
        "ffn_up_shexp",
        "ffn_down_shexp",
    )
}
NORMS = {"attn_norm": "attn_norm", "post_attention_norm": "post_attention_norm"}
NEXTN = {name: f"nextn.{name}" for name in ("eh_proj", "enorm", "hnorm", "shared_head_norm")}
# These are small and decide much: routers, gates, norms and the convolution stay in float32.
ALWAYS_F32 = ("norm", "ssm_conv1d", "ssm_a", "ssm_dt", "ffn_gate_inp", "ssm_alpha", "ssm_beta")


def file_name(name, layers):
    """The tensor of the file that a parameter becomes."""
    if name == "token_embd":
        return "token_embd.weight"
    if name == "output_norm":
        return "output_norm.weight"
    if name.startswith("draft."):
        inner = name.removeprefix("draft.")
        if inner in NEXTN:
            return f"blk.{layers}.{NEXTN[inner]}.weight"
        return block_name(layers, inner.removeprefix("block."))
    _, number, inner = name.split(".", 2)
    return block_name(int(number), inner)


def block_name(number, inner):
    if inner == "mixer.log_a":
        return f"blk.{number}.ssm_a"
    if inner == "mixer.ssm_dt":
        return f"blk.{number}.ssm_dt.bias"
    for table in (ATTENTION, DELTA, EXPERTS, NORMS):
        if inner in table:
            return f"blk.{number}.{table[inner]}.weight"
    raise ValueError(f"{inner}: no tensor of the file corresponds to this parameter")


def to_file(name, values):
    """Values as the file stores them."""
    return -np.exp(values) if name.endswith("log_a") else values


def from_file(name, values):
    return np.log(-values) if name.endswith("log_a") else values


def must_be_f32(tensor):
    return any(part in tensor for part in ALWAYS_F32)


def metadata(config, tokenizer, name, description):
    fields = tokenizer.gguf_fields()
    c, a = config, "qwen35moe"
    return {
        "general.architecture": a,
        "general.type": "model",
        "general.name": name,
        "general.description": description,
        "general.license": "apache-2.0",
        "general.languages": ["en"],
        "general.sampling.temp": gguf.F32(0.6),
        "general.sampling.top_k": gguf.I32(20),
        "general.sampling.top_p": gguf.F32(0.9),
        "chimere.thinking_budget": THINKING_BUDGET,
        f"{a}.block_count": c["layers"] + c["mtp"],
        f"{a}.nextn_predict_layers": c["mtp"],
        f"{a}.context_length": c["context"],
        f"{a}.embedding_length": c["width"],
        f"{a}.attention.head_count": c["heads"],
        f"{a}.attention.head_count_kv": c["kv_heads"],
        f"{a}.attention.key_length": c["head_dim"],
        f"{a}.attention.value_length": c["head_dim"],
        f"{a}.attention.layer_norm_rms_epsilon": gguf.F32(c["epsilon"]),
        f"{a}.rope.freq_base": gguf.F32(c["rope_base"]),
        f"{a}.rope.dimension_count": c["rope_dims"],
        f"{a}.rope.dimension_sections": [int(x) for x in c["rope_sections"]],
        f"{a}.full_attention_interval": c["attention_every"],
        f"{a}.ssm.conv_kernel": c["conv"],
        f"{a}.ssm.state_size": c["state_dim"],
        f"{a}.ssm.group_count": c["key_heads"],
        f"{a}.ssm.time_step_rank": c["value_heads"],
        f"{a}.ssm.inner_size": c["value_heads"] * c["state_dim"],
        f"{a}.expert_count": c["experts"],
        f"{a}.expert_used_count": c["experts_used"],
        f"{a}.expert_feed_forward_length": c["expert_width"],
        f"{a}.expert_shared_feed_forward_length": c["shared_width"],
        "tokenizer.ggml.model": fields["model"],
        "tokenizer.ggml.pre": fields["pre"],
        "tokenizer.ggml.tokens": fields["tokens"],
        "tokenizer.ggml.token_type": fields["token_types"],
        "tokenizer.ggml.merges": fields["merges"],
        "tokenizer.ggml.eos_token_id": fields["eos"],
        "tokenizer.ggml.padding_token_id": fields["padding"],
        "tokenizer.ggml.add_bos_token": False,
        "tokenizer.chat_template": TEMPLATE.read_text(),
        "general.quantization_version": gguf.U32(2),
    }


def write_file(path, config, tensors, tokenizer, kind, name, description):
    """Writes the model with its matrices in the float type `kind`; small tensors are float32 whatever it is."""
    entries = []
    for parameter, values in tensors.items():
        tensor = file_name(parameter, config["layers"])
        values = to_file(parameter, values.astype(np.float32))
        chosen = "F32" if must_be_f32(tensor) or values.ndim < 2 else kind
        entries.append((tensor, tuple(reversed(values.shape)), chosen, quants.encode(chosen, values)))
    meta = metadata(config, tokenizer, name, description) | {"general.file_type": gguf.U32(FILE_TYPES[kind])}
    gguf.write(path, meta, entries)
    return {tensor: kind for tensor, _, kind, _ in entries}


def read_config(meta):
    """The Config fields of a qwen35moe file."""

    def key(name):
        return meta[f"qwen35moe.{name}"]

    mtp = meta.get("qwen35moe.nextn_predict_layers", 0)
    return {
        "vocab": len(meta["tokenizer.ggml.tokens"]),
        "width": key("embedding_length"),
        "layers": key("block_count") - mtp,
        "attention_every": key("full_attention_interval"),
        "heads": key("attention.head_count"),
        "kv_heads": key("attention.head_count_kv"),
        "head_dim": key("attention.key_length"),
        "rope_dims": key("rope.dimension_count"),
        "rope_base": key("rope.freq_base"),
        "rope_sections": tuple(key("rope.dimension_sections")),
        "key_heads": key("ssm.group_count"),
        "value_heads": key("ssm.time_step_rank"),
        "state_dim": key("ssm.state_size"),
        "conv": key("ssm.conv_kernel"),
        "experts": key("expert_count"),
        "experts_used": key("expert_used_count"),
        "expert_width": key("expert_feed_forward_length"),
        "shared_width": key("expert_shared_feed_forward_length"),
        "mtp": mtp,
        "context": key("context_length"),
        "epsilon": key("attention.layer_norm_rms_epsilon"),
    }


def read_model(path):
    """The PyTorch model of a file, its weights decoded to float32."""
    import torch

    from .model import Config, Nano

    meta, tensors = gguf.read(path)
    model = Nano(Config(**read_config(meta)))
    state = {}
    for parameter, placeholder in model.state_dict().items():
        tensor = file_name(parameter, model.config.layers)
        dims, kind, raw = tensors[tensor]
        shape = tuple(reversed(dims))
        values = from_file(parameter, quants.decode(kind, raw, shape))
        state[parameter] = torch.from_numpy(np.ascontiguousarray(values, np.float32)).reshape(placeholder.shape)
    model.load_state_dict(state)
    if "output.weight" in tensors:
        # The model ties its head to the embedding; a file with its own head is read for comparison only.
        dims, kind, raw = tensors["output.weight"]
        head = torch.from_numpy(np.ascontiguousarray(quants.decode(kind, raw, tuple(reversed(dims))), np.float32))
        model.logits = lambda states: states @ head.to(states.dtype).T
    return model
