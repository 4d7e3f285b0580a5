"""A model as Hugging Face publishes it: config.json, and beside it the tensors or their index."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kvbench import named
from kvbench.checkpoint.safetensors import INDEX, parsed, read_text, tensors
from kvbench.checkpoint.shapes import sizes_of
from kvbench.checkpoint.tensors import LAYER, OTHER, weights_of
from kvbench.errors import BadArgument
from kvbench.model.weights import Weights
from kvbench.suite import Model

_HINT = "kvbench size takes a geometry by options"
_LARGEST = 1 << 31
_SILENT: dict[str, dict[str, Any]] = {  # what transformers takes where a config.json of that type says nothing
    "gemma3_text": {
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": 256,
        "vocab_size": 262208,
        "sliding_window_pattern": 6,
        "max_position_embeddings": 131072,
    },
    "llama4_text": {"head_dim": 128, "attention_chunk_size": 8192, "sliding_window_pattern": 4},
}
_FORMS = {"full_attention": 0, "sliding_attention": 1, "chunked_attention": 1}
_NOT_YET = ("index_topk", "full_attention_interval", "linear_num_key_heads", "hybrid_override_pattern", "attn_layer_period",
            "layers_block_type", "mamba_d_state", "ssm_cfg", "kv_shared_layers", "num_kv_shared_layers")  # fmt: skip
_ELEMENT = {"float32": 4, "float16": 2, "bfloat16": 2}
_KNOWN_STORES = (None, "fp8", "mxfp4")  # ways of quantizing whose bytes follow from names and shapes


class _Facts:
    """The numbers of a config.json. Every complaint names the file and the key."""

    def __init__(self, path: Path, found: Mapping[str, Any]) -> None:
        self.path, self.found = path, found

    def refuse(self, what: str, hint: str = _HINT) -> BadArgument:
        return BadArgument(f"{self.path}: {what}", hint)

    def count(self, *names: str, default: int | None = None, least: int = 1) -> int:
        """The first that is there; null is not there."""
        name, value = next(
            ((name, value) for name in names if (value := self.found.get(name)) is not None), (names[0], default)
        )
        if value is None:
            raise self.refuse(f"{name} is missing")
        if type(value) is not int or not least <= value < _LARGEST:
            raise self.refuse(f"{name} is {str(value)[:60]!r}", f"a whole number from {least} to {_LARGEST - 1}")
        return value

    def listed(self, name: str) -> list[Any]:
        value = self.found.get(name)
        if value is not None and not isinstance(value, list):
            raise self.refuse(f"{name} is no list")
        return value or []


def read_config(path: Path) -> tuple[Model, str]:
    """And why its weights are not known; else empty."""
    whole = parsed(path, read_text(path, named.WRITTEN), dict[str, Any])
    text = whole.get("text_config")
    own = {**whole, **(text if isinstance(text, dict) else {})}
    silent = _SILENT.get(str(own.get("model_type")), {})
    facts = _Facts(path, silent | {name: value for name, value in own.items() if value is not None})
    if odd := [name for name in _NOT_YET if facts.found.get(name)]:
        raise facts.refuse(f"it has {odd[0]}: not every layer keeps K and V of all its tokens, or reads them")
    layers = facts.count("num_hidden_layers", "n_layer")
    window, every = _window(facts, layers)
    weights, why = _weights(facts, layers)
    return Model(
        layers=layers,
        max_context=facts.count("max_position_embeddings", "n_positions"),
        source=str(path),
        window=window,
        window_every=every,
        **_heads(facts),
        weights=weights,
    ), why


def _heads(facts: _Facts) -> dict[str, int]:
    """As the cache has them: where K and V come from one latent row, all query heads share it."""
    heads = facts.count("num_attention_heads", "n_head")
    if rank := facts.count("kv_lora_rank", default=0, least=0):
        return {"q_heads": heads, "kv_heads": 1, "head_dim": rank + facts.count("qk_rope_head_dim"), "latent": rank}
    own = facts.count("num_key_value_heads", default=heads)
    if heads % own:
        raise facts.refuse(f"{heads} query heads do not divide into {own} KV heads")
    return {"q_heads": heads, "kv_heads": own, "head_dim": _head_dim(facts, heads)}


def _head_dim(facts: _Facts, heads: int) -> int:
    return facts.count("head_dim", default=facts.count("hidden_size", "n_embd") // heads)


def _window(facts: _Facts, layers: int) -> tuple[int, int]:
    """Tokens of a sliding layer, and of how many layers one attends to everything."""
    kinds, turned = facts.listed("layer_types"), facts.listed("no_rope_layers")
    if odd := [kind for kind in kinds if kind not in _FORMS]:
        raise facts.refuse(f"layer_types: {str(odd[0])[:60]!r} is not known")
    window = facts.count("attention_chunk_size", "sliding_window", default=0, least=0)
    if not window or facts.found.get("use_sliding_window") is False:
        return 0, 0
    if kinds or turned:
        whole = kinds.count("full_attention") if kinds else turned.count(0)
        if len(kinds or turned) != layers:
            raise facts.refuse(f"layer_types has {len(kinds or turned)} of {layers} layers")
    else:
        pattern = facts.count("sliding_window_pattern", default=0, least=0)
        whole = layers // pattern if pattern else 0
    if whole in (0, layers):
        return (0, 0) if whole else (window, 0)
    if layers // (layers // whole) != whole:
        raise facts.refuse(f"{whole} of {layers} layers attend to everything, in no regular order")
    return window, layers // whole


# ---- weights ---------------------------------------------------------------------------------------------------------


def _weights(facts: _Facts, layers: int) -> tuple[Weights | None, str]:
    sizes, names, total = tensors(facts.path.parent)
    experts = facts.count("n_routed_experts", "num_local_experts", "num_experts", default=0, least=0)
    if not names:
        return None, f"there is no {INDEX} beside it"
    if sizes is None:
        sizes, why = _from_shapes(facts, names, experts, total)
        if sizes is None:
            return None, why
    ahead = frozenset(int(found[1]) for name in names if (found := LAYER.search(name)) and not OTHER.search(name))
    chosen = facts.count("num_experts_per_tok", "experts_per_token", default=0, least=0)
    ahead = frozenset(number for number in ahead if number >= layers)
    try:
        return weights_of(sizes, facts.count("vocab_size"), ahead, experts, chosen), ""
    except BadArgument as error:
        raise facts.refuse(*error.args, error.hint) from None


def _from_shapes(
    facts: _Facts, names: frozenset[str], experts: int, total: int | None
) -> tuple[dict[str, int] | None, str]:
    """None where what an index says is not enough, and why."""
    way = facts.found.get("quantization_config")
    way = way.get("quant_method") if isinstance(way, dict) else None
    word = str(facts.found.get("dtype", facts.found.get("torch_dtype", "bfloat16")))
    if way not in _KNOWN_STORES or word not in _ELEMENT:
        return None, f"its index does not say what {str(way or word)[:40]} takes, and its files are not there"
    try:
        sizes = sizes_of(names, _numbers(facts, experts), _ELEMENT[word])
    except KeyError:
        return None, "its index has names of unknown size, and its files are not there"
    left = 0 if total is None else total - sum(sizes.values())
    others = list(filter(OTHER.search, names))
    if others and left > 0:
        sizes[others[0]] = left
    elif left:
        return None, f"its index states {total} bytes, its shapes make {total - left}, and its files are not there"
    return sizes, ""


def _numbers(facts: _Facts, experts: int) -> dict[str, int]:
    """What shapes are made of; 0 where a model has no such part."""
    heads, rope = facts.count("num_attention_heads"), facts.count("qk_rope_head_dim", default=0, least=0)
    each = facts.count("qk_nope_head_dim", default=0, least=0) + rope or _head_dim(facts, heads)
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
        "kv_rank": facts.count("kv_lora_rank", default=0, least=0),
        "q_rank": facts.count("q_lora_rank", default=0, least=0),
        "experts": experts,
        "dense": facts.count("intermediate_size_mlp", "intermediate_size"),
        "routed": routed,
        "shared": facts.count("shared_expert_intermediate_size", default=shared, least=0),
    }
