"""Models as they are published, without their numbers: config.json with an index, and headers of
.gguf files.
"""

import json
import math
import os

import gguf
import numpy as np

KINDS = gguf.GGMLQuantizationType
FEED = ("gate", "up", "down")


def config(**facts):
    return {"torch_dtype": "bfloat16", "max_position_embeddings": 131072} | facts


def shape(layers, q_heads, kv_heads, head_dim, hidden, wide, words):
    names = (
        "num_hidden_layers",
        "num_attention_heads",
        "num_key_value_heads",
        "head_dim",
        "hidden_size",
    )
    values = (layers, q_heads, kv_heads, head_dim, hidden, wide, words)
    return dict(zip((*names, "intermediate_size", "vocab_size"), values, strict=True))


def names(layers, *parts, head=True, pre="model."):
    """Of all tensors; `parts`: of a layer."""
    own = [f"{pre}layers.{layer}.{part}" for layer in range(layers) for part in parts]
    return [
        f"{pre}embed_tokens.weight",
        f"{pre}norm.weight",
        *own,
        *(["lm_head.weight"] if head else []),
    ]


DENSE = [f"self_attn.{x}_proj.weight" for x in "qkvo"]
NORMS = ["input_layernorm.weight", "post_attention_layernorm.weight"]
MLP = [f"mlp.{x}_proj.weight" for x in FEED]


def experts(count):
    return [
        "mlp.gate.weight",
        *(f"mlp.experts.{e}.{x}_proj.weight" for e in range(count) for x in FEED),
    ]


def folder(path, facts, tensors=None, total=None):
    path.mkdir()
    (path / "config.json").write_text(json.dumps(facts))
    if tensors is not None:
        index = {
            "metadata": {"total_size": total} if total else {},
            "weight_map": dict.fromkeys(tensors, "a.safetensors"),
        }
        (path / "model.safetensors.index.json").write_text(json.dumps(index))
    return path


def gguf_file(path, arch, facts, tensors):
    """As the package writes it; the numbers are a hole in the file. tensors: name to shape and
    type.
    """
    writer = gguf.GGUFWriter(path, arch)
    for key, value in facts.items():
        (writer.add_array if isinstance(value, list) else writer.add_uint32)(f"{arch}.{key}", value)
    writer.add_token_list([f"word {number}" for number in range(1000)])
    end = 0
    for name, (axes, kind) in tensors.items():
        block, each = gguf.GGML_QUANT_SIZES[kind]
        count = math.prod(axes) // block * each
        plain = {KINDS.F32: np.float32, KINDS.F16: np.float16}.get(kind)
        stored = axes if plain else gguf.quant_shape_to_byte_shape(axes, kind)
        writer.add_tensor_info(name, stored, plain or np.uint8, count, raw_dtype=kind)
        end += -(-count // 32) * 32
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    writer.close()
    os.truncate(path, -(-os.path.getsize(path) // 32) * 32 + end)
    return path
