"""Read a model published by Hugging Face: config.json, and the index of tensors beside it."""

from pathlib import Path
from typing import Any

import msgspec

from kvbench import named
from kvbench.checkpoint.facts import LAYER, OTHER, Facts, model_of, weights_of
from kvbench.checkpoint.shapes import elements_of, sizes_of
from kvbench.errors import BadArgument
from kvbench.model.weights import Weights
from kvbench.suite import Model

_INDEX = "model.safetensors.index.json"
_LONGEST, _COLONS = 1 << 24, 400_000  # limits on an index: bytes and names; no model has as many
_GEMMA = {"num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "vocab_size": 262208}
# transformers' defaults by model type, for keys that a config.json lacks
_SILENT: dict[str, dict[str, Any]] = {
    "gemma3_text": _GEMMA | {"sliding_window_pattern": 6, "max_position_embeddings": 131072},
    "llama4_text": {"head_dim": 128, "attention_chunk_size": 8192, "sliding_window_pattern": 4},
}
_ELEMENT = {"float32": 4, "float16": 2, "bfloat16": 2}
_STORES = (None, "fp8", "mxfp4")  # quantizations whose bytes follow from names and shapes


class _Total(msgspec.Struct):
    total_size: int | float | None = None


class _Index(msgspec.Struct):
    weight_map: dict[str, str]
    metadata: _Total = msgspec.field(default_factory=_Total)


def read_config(path: Path) -> tuple[Model, str]:
    """Read the model; also return why its weights are unknown (empty if known)."""
    whole = _parsed(path, named.WRITTEN, dict[str, Any])
    text = whole.get("text_config")
    own = {**whole, **(text if isinstance(text, dict) else {})}
    silent = _SILENT.get(str(own.get("model_type")), {})
    if own.get("layer_types") or own.get("no_rope_layers"):
        silent = {name: value for name, value in silent.items() if name != "sliding_window_pattern"}
    facts = Facts(path, silent | own)
    weights, why = _weights(facts)
    return model_of(facts, weights), why


def _parsed(path: Path, most: int, kind: type) -> Any:
    """Read JSON from a file as a value of `kind`."""
    try:
        text = named.text(path, most)
        if text.count(":") > _COLONS:
            raise ValueError("it lists more tensors than any model has")
        return msgspec.json.decode(text, type=kind)
    except (OSError, ValueError, RecursionError) as error:
        why = getattr(error, "strerror", None) or str(error)[:120]
        raise BadArgument(
            f"{path} cannot be read: {why}", "give a config.json from Hugging Face"
        ) from None


def _weights(facts: Facts) -> tuple[Weights | None, str]:
    """The weights; or None and the reason, if the index does not say enough."""
    if not (path := facts.path.parent / _INDEX).exists():
        return None, f"its folder has no {_INDEX}"
    index = _parsed(path, _LONGEST, _Index)
    way = facts.found.get("quantization_config")
    way = way.get("quant_method") if isinstance(way, dict) else None
    word = str(facts.found.get("dtype", facts.found.get("torch_dtype", "bfloat16")))
    if way not in _STORES or word not in _ELEMENT:
        return None, f"its index does not say how many bytes {str(way or word)[:40]} takes"
    numbers = _numbers(facts)
    try:
        sizes = sizes_of(index.weight_map, numbers, _ELEMENT[word])
    except KeyError as error:
        return None, f"its index has names of unknown size, such as {str(error)[:60]}"
    total, found = index.metadata.total_size, sum(sizes.values())
    if others := [name for name in sizes if OTHER.search(name)]:
        sizes[others[0]] = max(0, int(total or 0) - found)
    elif total not in (None, found):
        return None, f"its index states {total} bytes, but its shapes give {found}"
    numbered = (int(layer[1]) for name in sizes if (layer := LAYER.search(name)))
    ahead = frozenset(number for number in numbered if number >= facts.layers)
    elements = elements_of(sizes, _ELEMENT[word])
    return weights_of(facts, sizes, elements, numbers["vocabulary"], ahead), ""


def _numbers(facts: Facts) -> dict[str, int]:
    """The numbers that shapes are computed from; 0 if the model has no such part."""
    heads, rope = facts.count("num_attention_heads"), facts.some("qk_rope_head_dim")
    each = facts.some("qk_nope_head_dim") + rope or facts.head_dim
    routed = facts.count("moe_intermediate_size", "intermediate_size")
    shared = facts.count("n_shared_experts", default=1, least=0) * routed
    return {
        "hidden": facts.count("hidden_size"),
        "vocabulary": facts.count("vocab_size"),
        "q_heads": heads,
        "kv_heads": facts.count("num_key_value_heads", default=heads),
        "qk_dim": each,
        "v_dim": facts.count("v_head_dim", default=each),
        "rope": rope,
        "kv_rank": facts.some("kv_lora_rank"),
        "q_rank": facts.some("q_lora_rank"),
        "experts": facts.some("n_routed_experts", "num_local_experts", "num_experts"),
        "dense": facts.count("intermediate_size_mlp", "intermediate_size"),
        "routed": routed,
        "shared": facts.count("shared_expert_intermediate_size", default=shared, least=0),
    }
